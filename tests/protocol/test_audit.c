/* SPDX-License-Identifier: Apache-2.0 */
/* The line of every event in the audit log (I2), and what is no line. */
#include "tests/crypto/bytes.h"

#include <ctype.h>

#include "protocol/audit.h"
#include "tests/vectors/audit.h"

#define N_CLIENTS 12
#define PARTY 9

/* ---- the vectors ---- */

static dafl_secret_identity self;

static int make_self(void **state)
{
    uint8_t seed[64];

    (void)state;
    from_hex(seed, sizeof seed, given_seed);
    return dafl_identity_new_derand(&self, "Site-9_a.b", seed, NULL) != DAFL_OK;
}

static dafl_digest digest(const char *hex)
{
    dafl_digest d;

    from_hex(d.b, sizeof d.b, hex);
    return d;
}

static dafl_run_id run_id(void)
{
    dafl_run_id run;

    from_hex(run.b, sizeof run.b, given_run);
    return run;
}

static dafl_members set(uint32_t bits)
{
    dafl_members m = dafl_members_none(N_CLIENTS);

    for (size_t i = 0; i < N_CLIENTS; i++)
        if (bits >> i & 1)
            dafl_members_add(&m, i);
    return m;
}

static void put_hex(dafl_writer *w, const char *hex)
{
    uint8_t bytes[64];

    from_hex(bytes, strlen(hex) / 2, hex);
    dafl_put_fixed(w, bytes, strlen(hex) / 2);
}

/* The bytes that go with an event of the vectors. */
static void put_more(dafl_writer *w, const dafl_event *e)
{
    dafl_members all = set(0xfff);

    switch (e->kind) {
    case DAFL_EVENT_START:
        put_hex(w, given_roster);
        put_hex(w, given_config);
        dafl_put_fixed(w, "Site-9_a.b", 10);
        break;
    case DAFL_EVENT_SETUP:
        dafl_put_u16(w, 258);
        dafl_put_members(w, &all);
        break;
    case DAFL_EVENT_MODEL:
        dafl_put_u32(w, e->slot == 9 ? 65537 : 0);
        dafl_put_u64(w, e->slot == 9 ? 627200 : ((uint64_t)1 << 40) + 1);
        dafl_put_u8(w, e->slot == 9 ? 48 : 255);
        put_hex(w, given_h_setup);
        put_hex(w, given_he);
        break;
    case DAFL_EVENT_SIGN:
        put_hex(w, given_sig);
        /* fall through */
    case DAFL_EVENT_SURV:
        put_hex(w, given_dig);
        put_hex(w, given_dig_10);
        put_hex(w, given_dig_11);
        break;
    case DAFL_EVENT_CONF:
        put_hex(w, given_sig_0);
        put_hex(w, given_sig_11);
        break;
    case DAFL_EVENT_PEER_HEAD:
        dafl_put_u64(w, (uint64_t)UINT32_MAX << 32 | 17);
        break;
    default:
        break;
    }
}

/* The log of the vectors, line by line. */
static void put_log(dafl_writer *log)
{
    const dafl_event events[] = {
        {.kind = DAFL_EVENT_START, .number = 1, .peer = DAFL_NOBODY},
        {.kind = DAFL_EVENT_INVITE, .peer = 12},
        {.kind = DAFL_EVENT_ENROLL,
         .peer = DAFL_NOBODY,
         .digest = digest(given_hk)},
        {.kind = DAFL_EVENT_SETUP,
         .number = UINT32_MAX - 1,
         .peer = 12,
         .set = set(0xe07),
         .digest = digest(given_h_setup)},
        {.kind = DAFL_EVENT_MODEL,
         .slot = 9,
         .number = 2,
         .peer = 12,
         .digest = digest(given_model)},
        {.kind = DAFL_EVENT_MODEL,
         .slot = 10,
         .number = 3,
         .peer = DAFL_NOBODY,
         .set = set(0),
         .digest = digest(given_model)},
        {.kind = DAFL_EVENT_READY,
         .slot = 9,
         .peer = DAFL_NOBODY,
         .digest = digest(given_ctx)},
        {.kind = DAFL_EVENT_CAST,
         .slot = 9,
         .peer = 12,
         .set = set(0xe07),
         .digest = digest(given_ctx2)},
        {.kind = DAFL_EVENT_UPLOAD,
         .slot = 9,
         .peer = DAFL_NOBODY,
         .digest = digest(given_dig)},
        {.kind = DAFL_EVENT_SURV,
         .slot = 9,
         .peer = DAFL_NOBODY,
         .set = set(0xe00),
         .digest = digest(given_stmt)},
        {.kind = DAFL_EVENT_SIGN,
         .slot = 9,
         .peer = 12,
         .set = set(0xe00),
         .digest = digest(given_stmt)},
        {.kind = DAFL_EVENT_CONF,
         .slot = 9,
         .peer = 12,
         .fault = DAFL_E_QUORUM,
         .set = set(0x801),
         .digest = digest(given_stmt)},
        {.kind = DAFL_EVENT_REVEAL,
         .slot = 9,
         .peer = DAFL_NOBODY,
         .set = set(7)},
        {.kind = DAFL_EVENT_RESULT,
         .slot = 9,
         .number = DAFL_NO_QUESTION,
         .peer = 12,
         .digest = digest(given_sum)},
        {.kind = DAFL_EVENT_RESULT,
         .slot = UINT32_MAX,
         .number = 2,
         .peer = DAFL_NOBODY,
         .fault = DAFL_E_SUM_INVALID,
         .set = set(0xe00),
         .digest = digest(given_sum)},
        {.kind = DAFL_EVENT_ERROR,
         .slot = 7,
         .peer = DAFL_NOBODY,
         .fault = DAFL_E_ROW_DIFF},
        {.kind = DAFL_EVENT_DONE, .slot = 9, .peer = DAFL_NOBODY},
        {.kind = DAFL_EVENT_KEY,
         .slot = 9,
         .peer = 12,
         .digest = digest(given_he)},
        {.kind = DAFL_EVENT_OPEN,
         .slot = 9,
         .peer = 12,
         .set = set(0xe00),
         .digest = digest(given_sealed)},
        {.kind = DAFL_EVENT_ERRORS,
         .slot = 9,
         .number = UINT32_MAX - 16,
         .peer = 3,
         .fault = DAFL_E_REPLAY},
        {.kind = DAFL_EVENT_PEER_HEAD,
         .slot = 9,
         .peer = 12,
         .digest = digest(given_head)},
    };
    static const uint64_t times[] = {
        0,  1,  2,  1700000000000, 4, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
        16, 17, 18, INT64_MAX};
    dafl_audit a;

    dafl_audit_init(&a, &self, PARTY, N_CLIENTS);
    for (size_t i = 0; i < COUNT(events); i++) {
        dafl_event e = events[i];
        dafl_writer more = {0};
        if (e.kind != DAFL_EVENT_START)
            e.run = run_id();
        put_more(&more, &e);
        assert_ok(
            dafl_audit_add(&a, log, &e, dafl_writer_bytes(&more), times[i]));
        dafl_writer_drop(&more);
    }
    assert_int_equal(a.seq, COUNT(events));
}

static void lines_equal_the_independent_model(void **state)
{
    dafl_writer log = {0};
    size_t at = 0;

    (void)state;
    put_log(&log);
    for (size_t i = 0; i < COUNT(known_lines); i++) {
        size_t len = strlen(known_lines[i]) / 2;
        uint8_t *known = exactly(len);
        from_hex(known, len, known_lines[i]);
        assert_true(log.len - at >= len);
        assert_memory_equal(log.ptr + at, known, len);
        free(known);
        at += len;
    }
    assert_int_equal(at, log.len);
    dafl_writer_drop(&log);
}

/* ---- reading ---- */

/* The length of the first line, without its newline. */
static size_t line_len(dafl_bytes log)
{
    const uint8_t *end = memchr(log.ptr, '\n', log.len);

    assert_non_null(end);
    return (size_t)(end - log.ptr);
}

/* What is read is what was written, event and bytes. */
static void lines_are_read_as_they_were_written(void **state)
{
    dafl_writer log = {0}, again = {0};
    dafl_bytes rest;
    dafl_digest before = {{0}};
    uint64_t seq = 0;

    (void)state;
    put_log(&log);
    rest = dafl_writer_bytes(&log);
    while (rest.len > 0) {
        dafl_bytes text = {rest.ptr, line_len(rest)};
        dafl_audit_line line;
        dafl_writer more = {0};
        dafl_digest hash;
        assert_ok(dafl_get_audit_line(&line, text, N_CLIENTS));
        assert_int_equal(line.seq, ++seq);
        assert_int_equal(line.party, PARTY);
        put_more(&more, &line.event);
        assert_int_equal(line.more.len, more.len);
        assert_true(more.len == 0 ||
                    memcmp(line.more.ptr, more.ptr, more.len) == 0);
        assert_ok(dafl_audit_line_digest(&hash, &line));
        assert_memory_equal(hash.b, line.hash.b, sizeof hash.b);
        assert_memory_equal(before.b, line.prev.b, sizeof before.b);
        assert_ok(dafl_sign_check(&line.sig, &hash, self.public.sign_pk));
        before = hash;
        assert_ok(dafl_put_audit_line(&again, &line));
        dafl_writer_drop(&more);
        dafl_audit_line_drop(&line);
        rest.ptr += text.len + 1;
        rest.len -= text.len + 1;
    }
    assert_int_equal(again.len, log.len);
    assert_memory_equal(again.ptr, log.ptr, log.len);
    dafl_writer_drop(&again);
    dafl_writer_drop(&log);
}

static dafl_err read_text(const char *text)
{
    size_t len = strlen(text);
    uint8_t *bytes = exactly(len);
    dafl_audit_line line = {0};
    dafl_err err;

    memcpy(bytes, text, len);
    err = dafl_get_audit_line(&line, (dafl_bytes){bytes, len}, N_CLIENTS);
    dafl_audit_line_drop(&line);
    free(bytes);
    return err;
}

/* The same with other spaces, another order, another form of a value, more or
 * fewer members. */
static void only_one_text_of_an_event_is_a_line(void **state)
{
    static const struct {
        const char *of, *by;
    } changes[] = {
        {"{\"data\"", " {\"data\""},
        {"\"v\":1}", "\"v\":1} "},
        {"\"v\":1}", "\"v\":1}x"},
        {"\"v\":1}", "\"v\":1.0}"},
        {"\"v\":1}", "\"v\":2}"},
        {"\"v\":1}", "\"v\":true}"},
        {"\"v\":1}", "\"v\":1,\"w\":1}"},
        {"\"v\":1}", "\"v\":1,\"v\":1}"},
        {",\"v\":1}", "}"},
        {"\"slot\":9", "\"slot\":09"},
        {"\"slot\":9", "\"slot\":9e0"},
        {"\"slot\":9", "\"slot\":-9"},
        {"\"slot\":9", "\"slot\":-0"},
        {"\"slot\":9", "\"slot\": 9"},
        {"\"slot\":9", "\"slot\":\"9\""},
        {"\"slot\":9", "\"slot\":4294967296"},
        {"\"slot\":9", "\"slot\":99999999999999999999"},
        {"\"party\":9", "\"party\":65536"},
        {"\"event\":\"conf\"", "\"event\":\"cone\""},
        {"\"event\":\"conf\"", "\"event\":\"con\\u0066\""},
        {"\"event\":\"conf\"", "\"event\":\"sign\""},
        {"\"event\":\"conf\"", "\"event\":null"},
        {"[0,11]", "[11,0]"},
        {"[0,11]", "[0,0]"},
        {"[0,11]", "[0,12]"},
        {"[0,11]", "[0]"},
        {"[0,11]", "[0,1,11]"},
        {"[0,11]", "[0, 11]"},
        {"[0,11]", "{}"},
        {"[0,11]", "[\"0\",11]"},
        {"\"E_QUORUM\"", "\"E_quorum\""},
        {"\"E_QUORUM\"", "\"E_UNKNOWN\""},
        {"\"E_QUORUM\"", "7"},
        {"\"peer\":12", "\"peer\":65535"},
        {"\"peer\":12", "\"peer\":12,\"pier\":1"},
        {"\"data\":{", "\"data\":[{"},
        {"\"data\":", "\"data\":1,\"dbta\":"},
    };
    dafl_writer log = {0};
    dafl_bytes rest;
    char *line, text[4096];
    size_t i = 0;

    (void)state;
    put_log(&log);
    rest = dafl_writer_bytes(&log);
    for (; i < 11; i++) { /* the CONF */
        size_t n = line_len(rest) + 1;
        rest.ptr += n;
        rest.len -= n;
    }
    line = calloc(line_len(rest) + 1, 1);
    assert_non_null(line);
    memcpy(line, rest.ptr, line_len(rest));
    assert_ok(read_text(line));
    for (i = 0; i < COUNT(changes); i++) {
        const char *at = strstr(line, changes[i].of);
        assert_non_null(at);
        (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - line), line,
                       changes[i].by, at + strlen(changes[i].of));
        if (read_text(text) != DAFL_ERR_PEER)
            fail_msg("accepted: %s", changes[i].by);
    }
    /* In capitals; not all of it. */
    (void)snprintf(text, sizeof text, "%s", line);
    for (char *at = strstr(text, "\"hash\":\"") + 8; *at != '"'; at++)
        *at = (char)toupper(*at);
    assert_int_equal(read_text(text), DAFL_ERR_PEER);
    for (i = 0; line[i] != '\0'; i++) {
        (void)snprintf(text, sizeof text, "%.*s", (int)i, line);
        assert_int_equal(read_text(text), DAFL_ERR_PEER);
    }
    free(line);
    dafl_writer_drop(&log);
}

/* ---- writing ---- */

static void what_does_not_belong_together_is_not_written(void **state)
{
    const dafl_event cast = {.kind = DAFL_EVENT_CAST, .set = set(7)};
    const dafl_event sign = {.kind = DAFL_EVENT_SIGN, .set = set(7)};
    const dafl_event start = {.kind = DAFL_EVENT_START};
    static const uint8_t zeros[64 + 4 * 32];
    dafl_writer w = {0};
    dafl_audit a;

    (void)state;
    dafl_audit_init(&a, &self, PARTY, N_CLIENTS);
    /* Bytes where none belong; too few, too many; a name that is none. */
    assert_int_equal(dafl_audit_add(&a, &w, &cast, (dafl_bytes){zeros, 1}, 0),
                     DAFL_ERR_ARG);
    assert_int_equal(
        dafl_audit_add(&a, &w, &sign, (dafl_bytes){zeros, 64 + 2 * 32}, 0),
        DAFL_ERR_ARG);
    assert_int_equal(
        dafl_audit_add(&a, &w, &sign, (dafl_bytes){zeros, 64 + 4 * 32}, 0),
        DAFL_ERR_ARG);
    assert_int_equal(dafl_audit_add(&a, &w, &sign, (dafl_bytes){zeros, 63}, 0),
                     DAFL_ERR_ARG);
    assert_int_equal(dafl_audit_add(&a, &w, &start, (dafl_bytes){zeros, 64}, 0),
                     DAFL_ERR_ARG);
    assert_int_equal(dafl_audit_add(&a, &w, &start, (dafl_bytes){zeros, 66}, 0),
                     DAFL_ERR_ARG);
    assert_int_equal(dafl_audit_add(&a, &w, &cast, (dafl_bytes){NULL, 0},
                                    (uint64_t)INT64_MAX + 1),
                     DAFL_ERR_ARG);
    assert_int_equal(w.len, 0);
    assert_int_equal(a.seq, 0);
    assert_ok(
        dafl_audit_add(&a, &w, &sign, (dafl_bytes){zeros, 64 + 3 * 32}, 0));
    dafl_writer_drop(&w);
}

/* A log is gone on with where it ended, however its last line was cut. */
static void a_stored_log_is_resumed_after_its_last_whole_line(void **state)
{
    dafl_writer log = {0};
    dafl_secret_identity other;
    uint8_t seed[64] = {1};
    dafl_why why = {{0}};
    size_t at = 0, keep = 0;
    uint64_t lines = 0;
    dafl_audit a;

    (void)state;
    put_log(&log);
    for (size_t len = 0; len <= log.len; len++) {
        if (len > 0 && log.ptr[len - 1] == '\n') {
            at = len;
            lines++;
        }
        dafl_audit_init(&a, &self, PARTY, N_CLIENTS);
        assert_ok(
            dafl_audit_resume(&a, &keep, (dafl_bytes){log.ptr, len}, &why));
        assert_int_equal(keep, at);
        assert_int_equal(a.seq, lines);
    }
    assert_ok(dafl_identity_new_derand(&other, "other", seed, NULL));
    dafl_audit_init(&a, &other, PARTY, N_CLIENTS);
    assert_int_equal(
        dafl_audit_resume(&a, &keep, dafl_writer_bytes(&log), &why),
        DAFL_ERR_INPUT);
    assert_says(&why, "not by 'other'");
    dafl_audit_init(&a, &self, PARTY - 1, N_CLIENTS);
    assert_int_equal(
        dafl_audit_resume(&a, &keep, dafl_writer_bytes(&log), &why),
        DAFL_ERR_INPUT);
    log.ptr[log.len - 10] ^= 1;
    dafl_audit_init(&a, &self, PARTY, N_CLIENTS);
    assert_int_equal(
        dafl_audit_resume(&a, &keep, dafl_writer_bytes(&log), &why),
        DAFL_ERR_INPUT);
    dafl_writer_drop(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_equal_the_independent_model),
        cmocka_unit_test(lines_are_read_as_they_were_written),
        cmocka_unit_test(only_one_text_of_an_event_is_a_line),
        cmocka_unit_test(what_does_not_belong_together_is_not_written),
        cmocka_unit_test(a_stored_log_is_resumed_after_its_last_whole_line),
    };

    check_seed();
    return cmocka_run_group_tests(tests, make_self, NULL);
}
