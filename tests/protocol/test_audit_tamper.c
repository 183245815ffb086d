/* SPDX-License-Identifier: Apache-2.0 */
/* No byte of a log can be changed, and nobody else can write it (R7
 * audit_tamper). Logs of whole runs: tests/lab/test_audit.c. */
#include "tests/check.h"

#include "protocol/audit_check.h"

/* A roster of two clients and a server, and a short log of the first. */
static dafl_secret_identity self;
static dafl_roster roster;
static dafl_config config;

static void make_roster(void)
{
    dafl_party parties[3];
    dafl_why why = {{0}};

    memset(parties, 0, sizeof parties);
    for (size_t i = 0; i < 3; i++) {
        uint8_t seed[64];
        dafl_secret_identity id;
        memset(seed, (int)i + 1, sizeof seed);
        assert_ok(dafl_identity_new_derand(&id,
                                           i == 0   ? "one"
                                           : i == 1 ? "two"
                                                    : "server",
                                           seed, NULL));
        if (i == 0)
            self = id;
        parties[i] =
            (dafl_party){.id = id.public,
                         .role = i < 2 ? DAFL_ROLE_CLIENT : DAFL_ROLE_SERVER,
                         .cell = i < 2 ? 0 : DAFL_NO_CELL};
    }
    assert_ok(dafl_roster_make(&roster, parties, 3, &why));
    config = dafl_config_default();
    config.policy = (dafl_policy){.n_min = 2, .m = 2, .g = 1};
    (void)snprintf(config.method, sizeof config.method, "none");
}

static void put_short_log(dafl_writer *log)
{
    const dafl_event events[] = {
        {.kind = DAFL_EVENT_START, .number = 1, .peer = DAFL_NOBODY},
        {.kind = DAFL_EVENT_INVITE, .peer = 2},
        {.kind = DAFL_EVENT_ERROR, .peer = 2, .fault = DAFL_E_POLICY},
        {.kind = DAFL_EVENT_ERROR, .peer = 2, .fault = DAFL_E_REPLAY},
        {.kind = DAFL_EVENT_RESULT, .peer = 2, .fault = DAFL_E_POLICY},
    };
    dafl_audit a;

    dafl_audit_init(&a, &self, 0, 2);
    for (size_t i = 0; i < COUNT(events); i++) {
        dafl_writer more = {0};
        dafl_digest d;
        if (i == 0) {
            assert_ok(dafl_roster_digest(&d, &roster));
            dafl_put_fixed(&more, d.b, sizeof d.b);
            assert_ok(dafl_config_digest(&d, &config));
            dafl_put_fixed(&more, d.b, sizeof d.b);
            dafl_put_fixed(&more, self.public.name, strlen(self.public.name));
        }
        assert_ok(
            dafl_audit_add(&a, log, &events[i], dafl_writer_bytes(&more), 7));
        dafl_writer_drop(&more);
    }
}

/* Whether what is wrong is found, and named with party and line. */
static bool is_named(dafl_bytes log, uint64_t seq)
{
    const dafl_audit_log given = {"log", log};
    dafl_audit_report *r = NULL;
    dafl_why why = {{0}};
    bool named = false;

    assert_ok(dafl_audit_verify(&r, &roster, &config, &given, 1, &why));
    for (size_t i = 0; i < r->n_findings; i++)
        named |= r->findings[i].party == 0 && r->findings[i].seq == seq &&
                 r->findings[i].why.text[0] != '\0';
    if (seq == 0)
        named = r->n_found == 0;
    dafl_audit_report_free(&r);
    return named;
}

static void any_changed_byte_is_found_and_named(void **state)
{
    dafl_writer log = {0};
    uint64_t line = 1;

    (void)state;
    make_roster();
    put_short_log(&log);
    assert_true(is_named(dafl_writer_bytes(&log), 0));
    for (size_t i = 0; i < log.len; i++) {
        uint8_t was = log.ptr[i];
        for (int n = 0; n < 3; n++) {
            /* One bit, a byte that may well stand there, any byte. */
            log.ptr[i] = (uint8_t)random_u64();
            if (n == 0)
                log.ptr[i] = (uint8_t)(was ^ 1u << random_size(0, 7));
            if (n == 1)
                log.ptr[i] = log.ptr[random_size(0, log.len - 1)];
            if (log.ptr[i] != was && !is_named(dafl_writer_bytes(&log), line))
                fail_msg("byte %zu of line %llu: %d for %d is not found", i,
                         (unsigned long long)line, log.ptr[i], was);
            log.ptr[i] = was;
        }
        line += was == '\n';
    }
    /* Cut in the middle of a line, or nothing but an empty file. */
    for (size_t len = 0; len < log.len; len++)
        assert_int_equal(is_named((dafl_bytes){log.ptr, len}, 0),
                         len > 0 && log.ptr[len - 1] == '\n');
    dafl_writer_drop(&log);
}

/* Someone without the key makes hash and chain right again. */
static void a_line_without_the_key_is_found_and_named(void **state)
{
    uint8_t seed[64] = {9};
    dafl_secret_identity thief;
    dafl_writer log = {0}, more = {0};
    dafl_event e = {.kind = DAFL_EVENT_ERROR, .peer = 2};
    dafl_why why = {{0}};
    size_t keep = 0;
    dafl_audit a;

    (void)state;
    make_roster();
    put_short_log(&log);
    assert_ok(dafl_identity_new_derand(&thief, "thief", seed, NULL));
    dafl_audit_init(&a, &self, 0, 2);
    assert_ok(dafl_audit_resume(&a, &keep, dafl_writer_bytes(&log), &why));
    a.self = &thief;
    assert_ok(dafl_audit_add(&a, &log, &e, dafl_writer_bytes(&more), 8));
    assert_true(is_named(dafl_writer_bytes(&log), 6));
    dafl_writer_drop(&log);
}

/* Where line i (from 1) begins. */
static size_t line_at(const dafl_writer *log, int i)
{
    size_t at = 0;

    while (i > 1)
        i -= log->ptr[at++] == '\n';
    return at;
}

/* Its own party signs another line in the middle: the next does not follow. */
static void a_line_that_is_signed_anew_breaks_the_chain(void **state)
{
    dafl_writer log = {0}, forged = {0};
    dafl_event e = {.kind = DAFL_EVENT_ERROR, .peer = 2};
    dafl_why why = {{0}};
    size_t keep = 0;
    dafl_audit a;

    (void)state;
    make_roster();
    put_short_log(&log);
    dafl_audit_init(&a, &self, 0, 2);
    assert_ok(dafl_audit_resume(&a, &keep,
                                (dafl_bytes){log.ptr, line_at(&log, 3)}, &why));
    dafl_put_fixed(&forged, log.ptr, keep);
    assert_ok(dafl_audit_add(&a, &forged, &e, (dafl_bytes){NULL, 0}, 8));
    assert_true(is_named(dafl_writer_bytes(&forged), 0));
    dafl_put_fixed(&forged, log.ptr + line_at(&log, 4),
                   log.len - line_at(&log, 4));
    assert_true(is_named(dafl_writer_bytes(&forged), 4));
    dafl_writer_drop(&forged);
    dafl_writer_drop(&log);
}

/* A log of one party is not another's, nor of another config. */
static void a_log_is_bound_to_roster_and_config(void **state)
{
    dafl_writer log = {0};

    (void)state;
    make_roster();
    put_short_log(&log);
    assert_true(is_named(dafl_writer_bytes(&log), 0));
    config.retries++;
    assert_true(is_named(dafl_writer_bytes(&log), 1));
    config.retries--;
    roster.parties[1].id.curve_pk.b[0] ^= 1;
    assert_true(is_named(dafl_writer_bytes(&log), 1));
    dafl_writer_drop(&log);
}

/* Nothing that one party writes makes the judge work without end. */
static void a_log_of_too_many_runs_is_given_up(void **state)
{
    dafl_event e = {.kind = DAFL_EVENT_ERROR, .peer = 2};
    dafl_writer log = {0};
    dafl_why why = {{0}};
    size_t keep = 0;
    dafl_audit a;

    (void)state;
    make_roster();
    put_short_log(&log);
    dafl_audit_init(&a, &self, 0, 2);
    assert_ok(dafl_audit_resume(&a, &keep, dafl_writer_bytes(&log), &why));
    for (uint64_t i = 1; i <= 4100; i++) {
        memcpy(e.run.b, &i, sizeof i);
        assert_ok(dafl_audit_add(&a, &log, &e, (dafl_bytes){NULL, 0}, 8));
        if (i == 4095)
            assert_true(is_named(dafl_writer_bytes(&log), 0));
    }
    assert_true(is_named(dafl_writer_bytes(&log), 5 + 4096));
    dafl_writer_drop(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_changed_byte_is_found_and_named),
        cmocka_unit_test(a_line_without_the_key_is_found_and_named),
        cmocka_unit_test(a_line_that_is_signed_anew_breaks_the_chain),
        cmocka_unit_test(a_log_is_bound_to_roster_and_config),
        cmocka_unit_test(a_log_of_too_many_runs_is_given_up),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
