/* SPDX-License-Identifier: Apache-2.0 */
/* Whole runs of the real machines without trouble; and the lab itself: what it
 * looks for, it finds. */
#include "tests/check.h"

#include "protocol/context.h"
#include "tests/lab/inside.h"

static uint64_t seed;

/* ---- without trouble ---- */

static void every_sum_over_everybody_is_exact(void **state)
{
    static const uint16_t sizes[][2] = {{3, 1}, {3, 3},  {5, 1},
                                        {5, 3}, {12, 1}, {12, 3}};

    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        lab_scenario s = lab_scenario_for(sizes[i][0], sizes[i][1], seed + i);
        dafl_members all;
        lab *l;

        s.questions = 6;
        s.ties = true;
        l = lab_new(&s);
        all = lab_everybody(l);
        lab_check_done(l);
        for (uint32_t q = 0; q < s.questions; q++) {
            lab_check_cohort(l, q, &all);
            assert_int_equal(lab_sum_of(l, q)->rank, q == 3 || q == 5);
        }
        assert_int_equal(dafl_server_stat(lab_server(l)).slots, s.questions);
        assert_int_equal(dafl_server_stat(lab_server(l)).failed, 0);
        assert_int_equal(
            lab_count(l, LAB_ANYBODY, DAFL_EVENT_ERROR, DAFL_FAULT_COUNT), 0);
        lab_free(&l);
    }
}

static void spent_slots_are_followed_by_another_enrolment(void **state)
{
    lab_scenario s = lab_scenario_for(5, 1, seed);
    dafl_members all;
    lab *l;

    (void)state;
    s.questions = 7;
    s.config.slots = 3;
    l = lab_new(&s);
    all = lab_everybody(l);
    lab_check_done(l);
    for (uint32_t q = 0; q < s.questions; q++)
        lab_check_cohort(l, q, &all);
    assert_int_equal(dafl_server_stat(lab_server(l)).enrolments, 3);
    lab_free(&l);
}

/* Impatient clients ask before an answer can be there, and so say everything of
 * the setup several times. */
static void what_is_sent_twice_in_the_setup_is_no_fault(void **state)
{
    static const dafl_msg_type types[] = {DAFL_MSG_ENROLL, DAFL_MSG_SHARES,
                                          DAFL_MSG_SETUP_ACK};
    lab_scenario s = lab_scenario_for(6, 3, seed);
    const lab_event *events;
    size_t n_events;
    lab *l;

    (void)state;
    s.net.latency_min = s.net.latency_max = 20;
    s.hello_after = 7;
    l = lab_new(&s);
    lab_check_done(l);
    for (size_t i = 0; i < COUNT(types); i++) {
        size_t n = 0, at = 0;
        while (lab_find(l, &at, LAB_DELIVERED, LAB_ANYBODY, lab_server_index(l),
                        types[i], UINT32_MAX) != NULL)
            n++;
        assert_true(n > s.k);
    }
    n_events = lab_events(l, &events);
    for (size_t i = 0; i < n_events; i++)
        assert_false(events[i].party == lab_server_index(l) &&
                     events[i].event.kind == DAFL_EVENT_ERROR &&
                     events[i].event.slot == 0);
    lab_free(&l);
}

/* Send another ENROLL after the first one of client 0. */
static bool enrol_again(lab *l, lab_letter *letter, void *ctx)
{
    const dafl_envelope *m = &letter->envelope;
    dafl_writer body = {0}, w = {0};

    if (letter->from != 0 || m->type != DAFL_MSG_ENROLL)
        return true;
    dafl_put_fixed(&body, m->body.ptr, m->body.len);
    assert_ok(dafl_writer_done(&body));
    body.ptr[0] ^= *(uint8_t *)ctx; /* of EK */
    lab_seal(l, &w, 0, DAFL_MSG_ENROLL, 0, m->seq + 1,
             dafl_writer_bytes(&body));
    lab_post(l, 0, lab_server_index(l), dafl_writer_bytes(&w), 21);
    dafl_writer_drop(&body);
    dafl_writer_drop(&w);
    return true;
}

static void other_keys_than_the_first_are_a_fault(void **state)
{
    (void)state;
    for (uint8_t bit = 0; bit < 2; bit++) {
        lab_scenario s = lab_scenario_for(6, 3, seed);
        size_t at = 0;
        lab *l;

        s.net.latency_min = s.net.latency_max = 20;
        s.intercept = enrol_again;
        s.ctx = &bit;
        l = lab_new(&s);
        for (int n = 0; n < 2;)
            if (lab_find(l, &at, LAB_DELIVERED, 0, lab_server_index(l),
                         DAFL_MSG_ENROLL, UINT32_MAX) != NULL)
                n++;
            else
                assert_true(lab_step(l));
        assert_int_equal(lab_count(l, lab_server_index(l), DAFL_EVENT_ERROR,
                                   DAFL_FAULT_COUNT),
                         bit);
        lab_free(&l);
    }
}

/* Segments of which only two fit into a message: who has missed many asks for
 * the rest until it has all. */
static void a_long_model_comes_in_several_messages(void **state)
{
    lab_scenario s = lab_scenario_for(5, 1, seed);
    size_t at = 0, models = 0;
    dafl_members all;
    lab *l;

    (void)state;
    s.questions = 8;
    s.segment_more = 200;
    s.config.body_max = s.config.chunk = DAFL_CHUNK_MIN;
    s.config.body_max += 8;
    l = lab_new(&s);
    assert_true(lab_run_to(l, DAFL_MSG_MODEL, 1));
    lab_disconnect(l, 3);
    assert_true(lab_run_to(l, DAFL_MSG_MODEL, 7));
    lab_reconnect(l, 3);
    lab_check_done(l);
    all = lab_everybody(l);
    lab_check_cohort(l, 7, &all);
    while (lab_find(l, &at, LAB_DELIVERED, LAB_ANYBODY, 3, DAFL_MSG_MODEL,
                    UINT32_MAX) != NULL)
        models++;
    assert_true(models >= 4);
    lab_free(&l);
}

/* The next run of the same clients, whose journals say that the last one is
 * over; and the first one over again, which no client takes part in. */
static void a_client_takes_part_in_every_run_once(void **state)
{
    lab_scenario s = lab_scenario_for(4, 1, seed);
    lab_disk *disks[4];
    lab *l = lab_new(&s);

    (void)state;
    lab_check_done(l);
    for (int again = 0; again < 2; again++) {
        for (uint16_t u = 0; u < s.k; u++)
            disks[u] = lab_disk_copy(l, u);
        lab_free(&l);
        s.run = again == 0 ? 1 : 0;
        l = lab_new(&s);
        for (uint16_t u = 0; u < s.k; u++) {
            lab_disk_put(l, u, disks[u]);
            lab_disk_free(&disks[u]);
        }
        while (lab_client(l, 0) == NULL)
            assert_true(lab_step(l));
        assert_true(dafl_client_over(lab_client(l, 0)));
        if (again == 0) {
            assert_true(lab_run_to(l, DAFL_MSG_PEERS, UINT32_MAX));
            assert_false(dafl_client_over(lab_client(l, 0)));
            lab_check_done(l);
        } else {
            assert_int_equal(lab_run(l), LAB_FAILED);
            lab_check_invariants(l);
            assert_int_equal(lab_sums(l, &(const lab_sum *){NULL}), 0);
            assert_true(lab_count(l, 0, DAFL_EVENT_ERROR, DAFL_E_REPLAY) > 0);
        }
    }
    lab_free(&l);
}

/* Without it its cell is out and the others are too few, however long they
 * wait: a site starts when it is ready. */
static void a_late_member_of_a_cell_is_waited_for(void **state)
{
    lab_scenario s = lab_scenario_for(9, 3, seed);
    dafl_members all;
    lab *l;

    (void)state;
    s.config.policy.n_min = 8;
    lab_scenario_collude(&s, 1);
    l = lab_new(&s);
    all = lab_everybody(l);
    lab_disconnect(l, 8);
    while (lab_now(l) <
               (s.config.retries + 3) * s.config.wait[DAFL_WAIT_SETUP] &&
           lab_step(l))
        ;
    assert_int_equal(dafl_server_where(lab_server(l)), DAFL_SERVER_ENROLLING);
    assert_true(dafl_server_awaits(lab_server(l)));
    assert_int_equal(lab_count(l, 9, DAFL_EVENT_ERROR, DAFL_E_TIMEOUT), 1);
    lab_reconnect(l, 8);
    lab_check_done(l);
    lab_check_cohort(l, 0, &all);
    lab_free(&l);
}

static void a_seed_replays_the_whole_run(void **state)
{
    lab_scenario s = lab_scenario_for(5, 1, seed);
    dafl_digest heads[3];

    (void)state;
    s.net.duplicate = s.net.reorder = s.net.delay = 100;
    for (size_t i = 0; i < COUNT(heads); i++) {
        const lab_seen *seen;
        dafl_hash h;
        size_t n;
        lab *l;
        s.seed = i == 2 ? seed + 1 : seed;
        l = lab_new(&s);
        lab_run(l);
        n = lab_transcript(l, &seen);
        dafl_hash_init(&h, "deepafl/test");
        for (size_t j = 0; j < n; j++) {
            dafl_hash_u64(&h, seen[j].time);
            dafl_hash_part(&h, seen[j].bytes.ptr, seen[j].bytes.len);
        }
        dafl_hash_end(&h, &heads[i]);
        lab_free(&l);
    }
    assert_true(dafl_digest_equal(&heads[0], &heads[1]));
    assert_false(dafl_digest_equal(&heads[0], &heads[2]));
}

static void a_client_that_keeps_its_answer_back_still_helps(void **state)
{
    lab_scenario s = lab_scenario_for(5, 1, seed);
    dafl_members others;
    lab *l = lab_new(&s);
    size_t at = 0;

    (void)state;
    others = lab_everybody(l);
    dafl_members_remove(&others, 3);
    lab_refuse(l, 3, 1, DAFL_E_DOMINATED);
    lab_check_done(l);
    lab_check_cohort(l, 1, &others);
    assert_int_equal(lab_count(l, 3, DAFL_EVENT_ERROR, DAFL_E_DOMINATED), 1);
    assert_null(lab_find(l, &at, LAB_SENT, 3, LAB_ANYBODY, DAFL_MSG_UPLOAD, 2));
    at = 0;
    assert_non_null(
        lab_find(l, &at, LAB_SENT, 3, LAB_ANYBODY, DAFL_MSG_REVEAL, 2));
    lab_free(&l);
}

/* ---- the lab itself: what it looks for, it finds ---- */

/* A client that uploads something else than it signs for: what the attacker
 * has to know to make a sum that is wrong. */
static struct {
    dafl_digest ctx;
    dafl_members a;
    dafl_writer bytes;
} spoil;

static bool spoil_upload(lab *l, lab_letter *m, void *ctx)
{
    dafl_bytes body = m->envelope.body;
    dafl_writer w = {0};
    dafl_digest ctx2;
    dafl_upload chunk;
    dafl_end_msg end;

    (void)ctx;
    if (m->envelope.slot != 1 || (m->from != 2 && m->to != 2))
        return true;
    if (m->envelope.type == DAFL_MSG_READY)
        assert_ok(dafl_get_ready(&spoil.ctx, body));
    if (m->envelope.type == DAFL_MSG_CAST)
        assert_ok(dafl_get_cast(&spoil.a, body));
    if (m->envelope.type == DAFL_MSG_UPLOAD) {
        size_t at = spoil.bytes.len;
        assert_ok(dafl_get_upload(&chunk, body));
        dafl_put_fixed(&spoil.bytes, chunk.chunk.ptr, chunk.chunk.len);
        spoil.bytes.ptr[at] ^= 1;
        dafl_put_upload(
            &w, &(dafl_upload){chunk.offset,
                               {spoil.bytes.ptr + at, chunk.chunk.len}});
    }
    if (m->envelope.type == DAFL_MSG_END) {
        assert_ok(dafl_get_end_msg(&end, body));
        dafl_context_cast(&ctx2, &spoil.ctx, &spoil.a);
        dafl_context_upload(&end.dig, &ctx2, 2,
                            dafl_writer_bytes(&spoil.bytes));
        lab_sign_end(l, 2, &ctx2, &end);
        dafl_put_end(&w, &end);
    }
    if (w.len > 0)
        lab_letter_reseal(l, m, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    return true;
}

static void the_lab_notices_a_wrong_sum(void **state)
{
    lab_scenario s = lab_scenario_for(5, 1, seed);
    lab *l;

    (void)state;
    s.intercept = spoil_upload;
    for (int expected = 0; expected <= 1; expected++) {
        s.wrong_sums_expected = expected == 1;
        l = lab_new(&s);
        assert_int_equal(lab_run(l), LAB_DONE);
        assert_int_equal(lab_wrong_sums(l), 1);
        assert_int_equal(lab_violation(l) == NULL, expected);
        assert_int_equal(lab_count(l, 2, DAFL_EVENT_ERROR, DAFL_E_FORGED), 1);
        lab_free(&l);
        dafl_writer_drop(&spoil.bytes);
    }
}

/* A finished run in which client 4 was silent from SURV on. */
static lab *finished(void)
{
    lab_scenario s = lab_scenario_for(5, 1, seed);
    lab *l;

    s.questions = 2;
    l = lab_new(&s);
    lab_leave(l, 4, 1, LAB_AT_SURV, LAB_FOR_GOOD);
    lab_check_done(l);
    return l;
}

static const lab_seen *said(const lab *l, lab_way way, uint16_t from,
                            uint16_t to, dafl_msg_type type)
{
    size_t at = 0;
    const lab_seen *m = lab_find(l, &at, way, from, to, type, 2);

    assert_non_null(m);
    return m;
}

static void pretend(lab *l, uint16_t from, dafl_msg_type type, uint32_t slot,
                    dafl_bytes body)
{
    dafl_writer w = {0};

    lab_seal(l, &w, from, type, slot, 0, body);
    lab_witness_message(l, LAB_SENT, from, lab_server_index(l),
                        dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
}

static void assert_noticed(lab *l, const char *words)
{
    const char *violation = lab_violation(l);

    if (violation == NULL || strstr(violation, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"",
                 violation == NULL ? "" : violation, words);
    lab_free(&l);
}

static void the_lab_notices_what_no_client_may_say(void **state)
{
    static const struct {
        dafl_msg_type type;
        size_t at; /* the byte of the body that is another one */
        const char *words;
    } second[] = {{DAFL_MSG_UPLOAD, 20, "two different UPLOAD"},
                  {DAFL_MSG_END, 20, "two different END"},
                  {DAFL_MSG_SIGN, 20, "two different SIGN"},
                  {DAFL_MSG_REVEAL, 2 + 2 + 1, "two different REVEAL"},
                  {DAFL_MSG_REVEAL, 2 + 2, "gives both shares"}};
    lab *l;

    (void)state;
    for (size_t i = 0; i < COUNT(second); i++) {
        uint8_t body[1024];
        const lab_seen *m;
        l = finished();
        m = said(l, LAB_SENT, 1, LAB_ANYBODY, second[i].type);
        assert_true(m->envelope.body.len <= sizeof body);
        memcpy(body, m->envelope.body.ptr, m->envelope.body.len);
        body[second[i].at] ^= 3; /* makes 2 of 1 */
        pretend(l, 1, second[i].type, 2,
                (dafl_bytes){body, m->envelope.body.len});
        assert_noticed(l, second[i].words);
    }
    l = finished();
    pretend(l, 1, DAFL_MSG_READY, 1,
            said(l, LAB_SENT, 1, LAB_ANYBODY, DAFL_MSG_READY)->envelope.body);
    assert_noticed(l, "speaks in slot 1 after slot 2");
}

static void the_lab_notices_shares_that_no_one_may_give(void **state)
{
    const lab_seen *conf;
    uint8_t body[1024];
    dafl_bytes reveal;
    lab *l = finished();

    (void)state;
    reveal = said(l, LAB_SENT, 0, LAB_ANYBODY, DAFL_MSG_REVEAL)->envelope.body;
    pretend(l, 4, DAFL_MSG_REVEAL, 2, reveal);
    assert_noticed(l, "before CONF");

    l = finished();
    reveal = said(l, LAB_SENT, 0, LAB_ANYBODY, DAFL_MSG_REVEAL)->envelope.body;
    conf = said(l, LAB_DELIVERED, 5, 0, DAFL_MSG_CONF);
    memcpy(body, reveal.ptr, reveal.len);
    body[4] ^= 3;
    lab_witness_message(l, LAB_DELIVERED, 5, 4, conf->bytes);
    pretend(l, 4, DAFL_MSG_REVEAL, 2, (dafl_bytes){body, reveal.len});
    assert_noticed(l, "both shares of client 1 leave");
}

static void the_lab_notices_two_statements_of_the_server(void **state)
{
    static const dafl_msg_type types[] = {DAFL_MSG_CAST, DAFL_MSG_SURV};

    (void)state;
    for (size_t i = 0; i < COUNT(types); i++) {
        lab *l = finished();
        dafl_bytes body =
            said(l, LAB_SENT, 5, LAB_ANYBODY, types[i])->envelope.body;
        uint8_t other[1024];
        memcpy(other, body.ptr, body.len);
        other[2] ^= 1;
        pretend(l, 5, types[i], 2, (dafl_bytes){other, body.len});
        assert_noticed(l, "the server sends two different");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sum_over_everybody_is_exact),
        cmocka_unit_test(spent_slots_are_followed_by_another_enrolment),
        cmocka_unit_test(what_is_sent_twice_in_the_setup_is_no_fault),
        cmocka_unit_test(other_keys_than_the_first_are_a_fault),
        cmocka_unit_test(a_long_model_comes_in_several_messages),
        cmocka_unit_test(a_client_takes_part_in_every_run_once),
        cmocka_unit_test(a_late_member_of_a_cell_is_waited_for),
        cmocka_unit_test(a_seed_replays_the_whole_run),
        cmocka_unit_test(a_client_that_keeps_its_answer_back_still_helps),
        cmocka_unit_test(the_lab_notices_a_wrong_sum),
        cmocka_unit_test(the_lab_notices_what_no_client_may_say),
        cmocka_unit_test(the_lab_notices_shares_that_no_one_may_give),
        cmocka_unit_test(the_lab_notices_two_statements_of_the_server),
    };

    check_seed();
    seed = random_u64();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
