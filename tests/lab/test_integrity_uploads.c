/* SPDX-License-Identifier: Apache-2.0 */
/* Of uploads that are cut off, damaged or sent twice only whole ones are
 * added, each once (I3, I4).
 *
 * Built twice: the second program has machines whose checks can be left out one
 * at a time, and shows that what the cases here try would then succeed. */
#include "tests/check.h"

#include "protocol/context.h"
#include "tests/lab/control.h"
#include "tests/lab/inside.h"
#include "tests/lab/rogue.h"
#include "tests/lab/table.h"

/* ---- what one client sends, and what the wire makes of it ---- */

typedef enum {
    WHOLE,       /* leave it as it is */
    RAW_SHORT,   /* a chunk's envelope cut off somewhere */
    CHUNK_SHORT, /* less of a chunk, signed again */
    CHUNK_GONE,
    CHUNKS_SWAPPED, /* a chunk and the one after it */
    CHUNK_MOVED,    /* at an offset that leaves a gap */
    END_SHORTER,    /* says fewer bytes */
    END_LONGER,
    END_OTHER,    /* of other bytes */
    END_UNSIGNED, /* or not by the client */
    END_EARLY,    /* before the chunk; none later */
    END_OF_TORN   /* without the chunk, yet right for the others */
} tear;

static struct {
    tear tear;
    unsigned chunk, times; /* which one; how many uploads to damage */
    uint16_t client;
    /* what has been seen of the upload so far: */
    unsigned at;
    dafl_digest ctx;
    dafl_members a;
    dafl_writer kept, rest;
    uint64_t kept_seq;
} torn;

static void torn_start(tear how, uint16_t client, unsigned chunk,
                       unsigned times)
{
    dafl_writer_drop(&torn.kept);
    dafl_writer_drop(&torn.rest);
    memset(&torn, 0, sizeof torn);
    torn.tear = how;
    torn.client = client;
    torn.chunk = chunk;
    torn.times = times;
}

static void post_as(lab *l, uint16_t from, dafl_msg_type type, uint32_t slot,
                    uint64_t seq, dafl_bytes body, uint64_t after)
{
    dafl_writer w = {0};

    lab_seal(l, &w, from, type, slot, seq, body);
    lab_post(l, from, lab_server_index(l), dafl_writer_bytes(&w), after);
    dafl_writer_drop(&w);
}

/* The END that belongs to these bytes. */
static void put_end_of(const lab *l, dafl_writer *w, dafl_bytes bytes)
{
    dafl_end_msg end = {.len = bytes.len};
    dafl_digest ctx2;

    dafl_context_cast(&ctx2, &torn.ctx, &torn.a);
    dafl_context_upload(&end.dig, &ctx2, torn.client, bytes);
    lab_sign_end(l, torn.client, &ctx2, &end);
    dafl_put_end(w, &end);
}

/* The chunk to be damaged, or the one after it. */
static bool tear_chunk(lab *l, lab_letter *m, const dafl_upload *chunk)
{
    dafl_upload less = *chunk;
    dafl_writer w = {0};

    switch (torn.tear) {
    case RAW_SHORT:
        lab_letter_set(m, (dafl_bytes){m->bytes, lab_random(l, m->len)});
        return true;
    case CHUNK_SHORT:
        less.chunk.len = 1 + (size_t)lab_random(l, chunk->chunk.len - 1);
        dafl_put_upload(&w, &less);
        break;
    case CHUNK_MOVED:
        less.offset += 1 + lab_random(l, 100);
        dafl_put_upload(&w, &less);
        break;
    case CHUNK_GONE:
    case END_OF_TORN:
        return false;
    case CHUNKS_SWAPPED:
        torn.kept_seq = m->envelope.seq;
        dafl_put_fixed(&torn.kept, m->envelope.body.ptr, m->envelope.body.len);
        return false;
    case END_EARLY:
        /* In the chunk's place; a later upload starts anew. */
        m->envelope.type = DAFL_MSG_END;
        put_end_of(l, &w, chunk->chunk);
        break;
    default:
        return true;
    }
    lab_letter_reseal(l, m, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    return true;
}

static bool tear_end(lab *l, lab_letter *m, const dafl_end_msg *sent)
{
    dafl_end_msg end = *sent;
    dafl_writer w = {0};

    if (torn.tear == END_SHORTER)
        end.len -= 1 + lab_random(l, end.len - 1);
    else if (torn.tear == END_LONGER)
        end.len += 1 + lab_random(l, 100);
    else if (torn.tear == END_UNSIGNED)
        end.sig.b[lab_random(l, 64)] ^= (uint8_t)(1u << lab_random(l, 8));
    else if (torn.tear == END_OTHER) {
        dafl_digest ctx2;
        dafl_context_cast(&ctx2, &torn.ctx, &torn.a);
        end.dig.b[lab_random(l, 32)] ^= (uint8_t)(1u << lab_random(l, 8));
        lab_sign_end(l, torn.client, &ctx2, &end);
    } else if (torn.tear == END_EARLY)
        return false;
    if (torn.tear == END_OF_TORN)
        put_end_of(l, &w, dafl_writer_bytes(&torn.rest));
    else
        dafl_put_end(&w, &end);
    lab_letter_reseal(l, m, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    return true;
}

/* Damages the uploads of torn.client in slot 1. */
static bool tear_uploads(lab *l, lab_letter *m, void *ctx)
{
    dafl_bytes body = m->envelope.body;
    dafl_upload chunk;
    dafl_end_msg end;

    (void)ctx;
    if (m->envelope.slot != 1 ||
        (m->from != torn.client && m->to != torn.client))
        return true;
    if (m->envelope.type == DAFL_MSG_READY)
        assert_ok(dafl_get_ready(&torn.ctx, body));
    if (m->envelope.type == DAFL_MSG_CAST)
        assert_ok(dafl_get_cast(&torn.a, body));
    if (torn.times == 0)
        return true;
    if (m->envelope.type == DAFL_MSG_END) {
        bool goes;
        assert_ok(dafl_get_end_msg(&end, body));
        goes = tear_end(l, m, &end);
        torn.times--;
        torn.at = 0;
        dafl_writer_clear(&torn.rest);
        dafl_writer_clear(&torn.kept);
        return goes;
    }
    if (m->envelope.type != DAFL_MSG_UPLOAD)
        return true;
    assert_ok(dafl_get_upload(&chunk, body));
    if (torn.at++ == torn.chunk)
        return tear_chunk(l, m, &chunk);
    dafl_put_fixed(&torn.rest, chunk.chunk.ptr, chunk.chunk.len);
    if (torn.kept.len > 0 && torn.at == torn.chunk + 2) {
        post_as(l, m->from, DAFL_MSG_UPLOAD, 1, torn.kept_seq, body, 1);
        lab_letter_reseal(l, m, dafl_writer_bytes(&torn.kept));
    }
    return true;
}

#define CHUNKS 3
#define TORN 4 /* the client */

static lab *torn_lab(uint16_t k, uint16_t cell_size, uint32_t questions)
{
    lab_scenario s = lab_scenario_for(k, cell_size, random_u64());

    s.questions = questions;
    lab_scenario_chunks(&s, CHUNKS);
    /* Else chunks of one attempt may complete another. */
    s.net.latency_min = s.net.latency_max = 1;
    s.intercept = tear_uploads;
    return lab_new(&s);
}

static size_t delivered(const lab *l, uint16_t from, dafl_msg_type type)
{
    size_t at_entry = 0, n = 0;

    while (lab_find(l, &at_entry, LAB_DELIVERED, from, lab_server_index(l),
                    type, 1) != NULL)
        n++;
    return n;
}

/* I3. After `chunks` chunks, the last of which is short when `mid`, the
 * connection is gone. */
static void cut_off(uint16_t k, uint16_t cell_size, unsigned chunks, bool mid)
{
    lab *l;
    dafl_members left, all;

    torn_start(mid ? CHUNK_SHORT : WHOLE, TORN, chunks - 1, 1);
    l = torn_lab(k, cell_size, 3);
    left = rogue_without(l, TORN);
    all = lab_everybody(l);
    assert_true(lab_run_to(l, DAFL_MSG_CAST, 0));
    while (delivered(l, TORN, DAFL_MSG_UPLOAD) < chunks && lab_step(l))
        ;
    lab_disconnect(l, TORN);
    assert_true(lab_run_to(l, DAFL_MSG_RESULT, 0));
    lab_reconnect(l, TORN);
    lab_check_done(l);
    assert_int_equal(delivered(l, TORN, DAFL_MSG_UPLOAD), chunks);
    assert_int_equal(delivered(l, TORN, DAFL_MSG_END), 0);
    lab_check_cohort(l, 0, &left);
    lab_check_cohort(l, 2, &all); /* it is back while 1 is being asked */
    assert_int_equal(dafl_server_stat(lab_server(l)).failed, 0);
    lab_free(&l);
}

static void an_upload_cut_off_is_not_added(void **state)
{
    (void)state;
    for (unsigned chunks = 0; chunks <= CHUNKS; chunks++)
        for (int mid = 0; mid <= (chunks > 0); mid++) {
            cut_off(5, 1, chunks, mid == 1);
            cut_off(6, 3, chunks, mid == 1);
        }
}

static const struct {
    tear tear;
    dafl_fault fault; /* that the server records */
} tears[] = {
    {RAW_SHORT, DAFL_E_FORMAT},   {CHUNK_SHORT, DAFL_E_FORMAT},
    {CHUNK_GONE, DAFL_E_FORMAT},  {CHUNKS_SWAPPED, DAFL_E_FORMAT},
    {CHUNK_MOVED, DAFL_E_FORMAT}, {END_SHORTER, DAFL_E_FORMAT},
    {END_LONGER, DAFL_E_FORMAT},  {END_OTHER, DAFL_E_FORGED},
    {END_EARLY, DAFL_E_FORMAT},   {END_OF_TORN, DAFL_E_FORMAT},
    {END_UNSIGNED, DAFL_E_AUTH},
};

/* I3. However often it is tried, until the server has waited long enough. */
static void a_damaged_upload_is_not_added(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(tears); i++)
        for (unsigned chunk = 0; chunk < CHUNKS; chunk++) {
            bool swap = tears[i].tear == CHUNKS_SWAPPED;
            dafl_members left;
            lab *l;
            if (swap && chunk + 1 == CHUNKS)
                continue;
            torn_start(tears[i].tear, TORN, chunk, UINT_MAX);
            l = torn_lab(i % 2 == 0 ? 5 : 6, i % 2 == 0 ? 1 : 3, 1);
            left = rogue_without(l, TORN);
            lab_check_done(l);
            lab_check_cohort(l, 0, &left);
            assert_int_equal(dafl_server_stat(lab_server(l)).failed, 0);
            /* Half an envelope names nobody. */
            assert_true(
                rogue_blamed(l, lab_server_index(l),
                             tears[i].tear == RAW_SHORT ? DAFL_NOBODY : TORN,
                             tears[i].fault) > 0);
            assert_true(
                rogue_blamed(l, lab_server_index(l), TORN, DAFL_E_TIMEOUT) > 0);
            lab_free(&l);
        }
}

/* I3. What came of the first one does not linger. */
static void a_damaged_upload_sent_again_counts_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(tears); i++)
        for (unsigned chunk = 0; chunk + 1 < CHUNKS; chunk++) {
            dafl_members all;
            lab *l;
            torn_start(tears[i].tear, TORN, chunk, 1);
            l = torn_lab(i % 2 == 1 ? 5 : 6, i % 2 == 1 ? 1 : 3, 1);
            all = lab_everybody(l);
            lab_check_done(l);
            lab_check_cohort(l, 0, &all);
            assert_int_equal(dafl_server_stat(lab_server(l)).slots, 1);
            lab_free(&l);
        }
}

#ifdef DAFL_WEAKEN
/* I3 control. */
static void without_the_check_of_end_a_torn_upload_is_added(void **state)
{
    static const tear some[] = {CHUNK_GONE, CHUNK_SHORT, CHUNKS_SWAPPED,
                                END_OF_TORN};

    (void)state;
    dafl_weakened = DAFL_WEAK_END;
    for (size_t i = 0; i < COUNT(some); i++) {
        lab_scenario s = lab_scenario_for(5, 1, random_u64());
        lab *l;
        lab_scenario_chunks(&s, CHUNKS);
        s.intercept = tear_uploads;
        s.wrong_sums_expected = true;
        torn_start(some[i], TORN, 1, UINT_MAX);
        l = lab_new(&s);
        assert_int_equal(lab_run(l), LAB_DONE);
        assert_int_equal(lab_wrong_sums(l), 1);
        lab_free(&l);
    }
}
#endif

/* ---- I4: an END that comes again ---- */

typedef enum { SAME_END, SAME_UPLOAD, OTHER_UPLOAD, AGAINS } again;

/* Client 0 answers once more in slot 1. Its messages get new numbers, so that
 * there is room for more of them. */
static struct {
    again again;
    bool late; /* everybody else has finished */
    uint64_t seq;
    dafl_writer upload;
    unsigned extra; /* messages */
} twice;

static void answer_again(lab *l, dafl_bytes end)
{
    dafl_writer w = {0}, second = {0};

    if (twice.again == OTHER_UPLOAD)
        twice.upload.ptr[lab_random(l, twice.upload.len)] ^= 1;
    put_end_of(l, &second, dafl_writer_bytes(&twice.upload));
    dafl_put_upload(&w, &(dafl_upload){0, dafl_writer_bytes(&twice.upload)});
    if (twice.again != SAME_END)
        post_as(l, 0, DAFL_MSG_UPLOAD, 1, ++twice.seq, dafl_writer_bytes(&w),
                2);
    post_as(l, 0, DAFL_MSG_END, 1, ++twice.seq,
            twice.again == SAME_END ? end : dafl_writer_bytes(&second), 2);
    twice.extra = twice.again == SAME_END ? 1 : 2;
    dafl_writer_drop(&w);
    dafl_writer_drop(&second);
}

static bool upload_twice(lab *l, lab_letter *m, void *ctx)
{
    uint16_t last = (uint16_t)(lab_scenario_of(l)->k - 1);
    dafl_upload chunk;

    (void)ctx;
    if (m->to == 0 && m->envelope.type == DAFL_MSG_CAST)
        assert_ok(dafl_get_cast(&torn.a, m->envelope.body));
    if (m->from == last && m->envelope.type == DAFL_MSG_END && !twice.late) {
        lab_post(l, last, m->to, (dafl_bytes){m->bytes, m->len}, 100);
        return false;
    }
    if (m->from != 0)
        return true;
    m->envelope.seq = ++twice.seq;
    lab_letter_reseal(l, m, m->envelope.body);
    if (m->envelope.slot != 1)
        return true;
    if (m->envelope.type == DAFL_MSG_READY)
        assert_ok(dafl_get_ready(&torn.ctx, m->envelope.body));
    if (m->envelope.type == DAFL_MSG_UPLOAD) {
        assert_ok(dafl_get_upload(&chunk, m->envelope.body));
        dafl_put_fixed(&twice.upload, chunk.chunk.ptr, chunk.chunk.len);
    }
    if (m->envelope.type == DAFL_MSG_END)
        answer_again(l, m->envelope.body);
    return true;
}

/* A run of one question with coded inputs. */
static lab *twice_lab(again what, bool late, dafl_mode mode)
{
    lab_scenario s = lab_scenario_for(5, 1, random_u64());

    table_open(s.k, s.k + 3u);
    for (size_t u = 0; u < s.k; u++) {
        table.x[u * table.len + u] = 1;
        for (size_t i = s.k; i < table.len; i++)
            table.x[u * table.len + i] = (int64_t)random_size(0, 1000) - 500;
    }
    torn_start(WHOLE, 0, 0, 0);
    memset(&twice, 0, sizeof twice);
    twice.again = what;
    twice.late = late;
    twice.seq = (uint64_t)1 << 32;
    s.method = &table_method;
    s.questions = 1;
    s.config.mode = mode;
    s.floor.plain = true;
    s.net.latency_min = s.net.latency_max = 1;
    s.intercept = upload_twice;
    return lab_new(&s);
}

static void twice_over(lab **l)
{
    lab_free(l);
    table_close();
    dafl_writer_drop(&twice.upload);
}

static size_t uploads_noted(const lab *l, uint16_t client)
{
    const lab_event *events;
    size_t n = lab_events(l, &events), found = 0;

    for (size_t i = 0; i < n; i++)
        found += events[i].party == lab_server_index(l) &&
                 events[i].event.kind == DAFL_EVENT_UPLOAD &&
                 events[i].event.peer == client && events[i].event.slot == 1;
    return found;
}

/* I4. */
static void a_second_end_is_recorded_and_not_counted(void **state)
{
    (void)state;
    for (int what = 0; what < AGAINS; what++)
        for (int late = 0; late <= 1; late++)
            for (int masks = 0; masks <= 1; masks++) {
                lab *l =
                    twice_lab((again)what, late == 1,
                              masks == 1 ? DAFL_MODE_MASKS : DAFL_MODE_NONE);
                dafl_members all = lab_everybody(l);
                lab_check_done(l);
                assert_int_equal(dafl_server_stat(lab_server(l)).slots, 1);
                assert_true(dafl_members_equal(&table.cohort, &all));
                assert_true(table_holds());
                assert_int_equal(table.sum[0], 1);
                assert_int_equal(uploads_noted(l, 0), 1);
                assert_int_equal(
                    rogue_blamed(l, lab_server_index(l), 0,
                                 late == 1 ? DAFL_E_TIMEOUT : DAFL_E_STATE),
                    twice.extra);
                twice_over(&l);
            }
}

#ifdef DAFL_WEAKEN
/* I4 control. Under masks the two count as well, and nothing opens. */
static void without_the_first_end_rule_an_upload_counts_twice(void **state)
{
    (void)state;
    dafl_weakened = DAFL_WEAK_FIRST_END;
    for (int masks = 0; masks <= 1; masks++) {
        lab *l = twice_lab(SAME_UPLOAD, false,
                           masks == 1 ? DAFL_MODE_MASKS : DAFL_MODE_NONE);
        assert_int_equal(lab_run(l), LAB_DONE);
        assert_int_equal(uploads_noted(l, 0), 2);
        assert_false(table_holds());
        for (size_t u = 0; u < table.k && masks == 0; u++)
            assert_int_equal(table.sum[u], u == 0 ? 2 : 1);
        twice_over(&l);
    }
}
#endif

/* ---- */

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_upload_cut_off_is_not_added),
    cmocka_unit_test(a_damaged_upload_is_not_added),
    cmocka_unit_test(a_damaged_upload_sent_again_counts_once),
    cmocka_unit_test(a_second_end_is_recorded_and_not_counted),
};

#ifdef DAFL_WEAKEN
static const struct CMUnitTest controls[] = {
    CONTROL(without_the_check_of_end_a_torn_upload_is_added),
    CONTROL(without_the_first_end_rule_an_upload_counts_twice),
};
#endif

int main(int argc, char **argv)
{
    check_seed();
    return RUN_CASES(tests, controls, argc > 1 && strcmp(argv[1], "all") == 0);
}
