/* SPDX-License-Identifier: Apache-2.0 */
/* A server that makes the most of clients that go and come back (D2, D4, D5,
 * D6, D10): what it says in their absence gets it nothing.
 *
 * Built twice: the second program has machines whose checks can be left out one
 * at a time, and shows what the server would learn then. */
#include "tests/check.h"

#include "protocol/weaken.h"
#include "tests/lab/control.h"
#include "tests/lab/rogue.h"
#include "tests/lab/stage.h"

/* ---- D2: too few signatures ---- */

/* CONF with so many signatures, of the 7 that there are. */
static stage_act confirm_with(lab *l, size_t signatures)
{
    stage_act signing = stage_first(l), after = signing;
    dafl_writer w = {0};

    stage_put_conf(l, &w, &signing, signatures);
    after.from = stage_now(l);
    stage_say_all(l, DAFL_MSG_CONF, 1, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    stage_listen(l);
    after.to = stage_now(l);
    return after;
}

/* D2. Whoever signs needs t others. */
static void a_confirmation_with_too_few_signatures_moves_nobody(void **state)
{
    (void)state;
    for (size_t n = 0; n <= 5; n++) {
        lab_scenario s = lab_scenario_for(7, 1, random_u64());
        lab *l = stage_taken(&s, DAFL_MSG_CONF, s.k);
        stage_act after = confirm_with(l, n);
        assert_int_equal(rogue_threshold(l), 4);
        assert_int_equal(stage_n_senders(l, &after, DAFL_MSG_REVEAL),
                         n == 5 ? s.k : 0);
        assert_int_equal(
            lab_count(l, LAB_ANYBODY, DAFL_EVENT_ERROR, DAFL_E_QUORUM),
            n == 5 ? 0 : s.k);
        lab_check_invariants(l);
        lab_free(&l);
    }
}

#ifdef DAFL_WEAKEN
/* D2 control. One signature opens everybody's secrets. */
static void without_the_quorum_one_signature_brings_the_shares_out(void **state)
{
    lab_scenario s = lab_scenario_for(7, 1, random_u64());
    lab *l = stage_taken(&s, DAFL_MSG_CONF, s.k);
    stage_act before = stage_first(l), after;
    int64_t *sum;

    (void)state;
    dafl_weakened = DAFL_WEAK_QUORUM;
    after = confirm_with(l, 1);
    assert_int_equal(stage_n_senders(l, &after, DAFL_MSG_REVEAL), s.k);
    before.to = after.to;
    sum = stage_sum(l, &before);
    assert_non_null(sum);
    assert_true(stage_are_answers(l, sum, &before.u3));
    free(sum);
    lab_free(&l);
}
#endif

/* ---- D4: the same question again ---- */

#define VICTIM 4

/* Nine clients in cells of three have answered question 0 in slot 1 and
 * revealed; the server says that it came to nothing. */
static lab *retried_lab(stage_act *first)
{
    lab_scenario s = lab_scenario_for(9, 3, random_u64());
    lab *l = stage_taken(&s, DAFL_MSG_RESULT, s.k);
    dafl_writer w = {0};

    *first = stage_first(l);
    dafl_put_result(&w, &(dafl_result){.fault = DAFL_E_UNRECOVERABLE});
    stage_say_all(l, DAFL_MSG_RESULT, 1, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    stage_listen(l);
    return l;
}

/* What an upload gives with a secret key from elsewhere. */
static bool opens(const lab *l, const stage_act *upload,
                  const stage_act *b_from, const stage_act *sk_from)
{
    dafl_key b, sk;
    int64_t *x;
    bool right;

    if (!stage_rebuild(l, b_from, VICTIM, DAFL_REVEAL_B, &b) ||
        !stage_rebuild(l, sk_from, VICTIM, DAFL_REVEAL_SK, &sk))
        return false;
    x = stage_unmask(l, upload, VICTIM, &sk, &b);
    right = stage_is_answer(l, x, VICTIM);
    free(x);
    return right;
}

/* D4. */
static void a_spent_slot_is_not_played_again(void **state)
{
    stage_act first, again;
    dafl_members all, left, cell;
    lab *l = retried_lab(&first);

    (void)state;
    all = lab_everybody(l);
    cell = rogue_cell(l, VICTIM);
    left = dafl_members_minus(&all, &cell);
    again = stage_play(l, 1, &all, &left, &first);
    assert_int_equal(stage_n_senders(l, &again, DAFL_MSG_READY), 0);
    assert_int_equal(stage_n_senders(l, &again, DAFL_MSG_UPLOAD), 0);
    assert_int_equal(stage_n_senders(l, &again, DAFL_MSG_SIGN), 0);
    assert_int_equal(stage_n_senders(l, &again, DAFL_MSG_REVEAL), 0);
    assert_false(opens(l, &first, &first, &again));
    lab_check_invariants(l);
    lab_free(&l);
}

/* Minuend, which is freed, less subtrahend, which is freed. */
static int64_t *difference(const lab *l, int64_t *a, int64_t *b)
{
    assert_non_null(a);
    assert_non_null(b);
    for (size_t i = 0; i < lab_answer_len(l, 0); i++)
        a[i] -= b[i];
    free(b);
    return a;
}

/* D4. In another slot the keys are others, and only whole cells may be missing:
 * what the server learns of the victim is the sum of its cell. */
static void a_question_asked_again_tells_of_no_single_client(void **state)
{
    stage_act first, split, again;
    dafl_members all, left, cell;
    lab *l = retried_lab(&first);
    int64_t *more;

    (void)state;
    all = left = lab_everybody(l);
    dafl_members_remove(&left, VICTIM);
    split = stage_play(l, 2, &all, &left, NULL);
    assert_int_equal(stage_n_senders(l, &split, DAFL_MSG_END), all.n);
    assert_int_equal(stage_n_senders(l, &split, DAFL_MSG_SIGN), 0);
    assert_int_equal(
        lab_count(l, LAB_ANYBODY, DAFL_EVENT_ERROR, DAFL_E_CELL_SPLIT), all.n);

    cell = rogue_cell(l, VICTIM);
    left = dafl_members_minus(&all, &cell);
    again = stage_play(l, 3, &all, &left, NULL);
    assert_int_equal(stage_n_senders(l, &again, DAFL_MSG_REVEAL), all.n);
    assert_false(opens(l, &first, &first, &again));
    assert_false(opens(l, &again, &first, &again));
    assert_false(opens(l, &split, &first, &again));
    more = difference(l, stage_sum(l, &first), stage_sum(l, &again));
    assert_true(stage_are_answers(l, more, &cell));
    free(more);
    lab_check_invariants(l);
    lab_free(&l);
}

#ifdef DAFL_WEAKEN
/* D4 control "slot_reuse". Both secrets of one client in one slot: its upload
 * is open. */
static void in_a_slot_played_again_a_client_is_laid_open(void **state)
{
    stage_act first, again;
    dafl_members all, left, cell;
    lab *l = retried_lab(&first);

    (void)state;
    dafl_weakened = DAFL_WEAK_SLOT;
    all = lab_everybody(l);
    cell = rogue_cell(l, VICTIM);
    left = dafl_members_minus(&all, &cell);
    again = stage_play(l, 1, &all, &left, NULL);
    assert_int_equal(stage_n_senders(l, &again, DAFL_MSG_REVEAL), all.n);
    assert_true(opens(l, &first, &first, &again));
    assert_non_null(lab_violation(l));
    lab_free(&l);
}
#endif

/* ---- D5: back after a while ---- */

/* Client 2 misses questions 1 .. n. `restart`: its machine is gone as well, and
 * it comes back with nothing but its disk. */
static void miss_questions(uint32_t n, lab_phase phase, bool restart)
{
    lab_scenario s = lab_scenario_for(5, 1, random_u64());
    size_t at_entry, ready, hello, old = 0;
    dafl_model_msg model;
    const lab_seen *m;
    dafl_members all;
    lab *l;

    s.questions = 8;
    s.ties = n % 2 == 0;
    l = stage_new(&s);
    all = lab_everybody(l);
    (restart ? lab_leave_crashing : lab_leave)(l, 2, 1, phase, LAB_FOR_GOOD);
    assert_true(lab_run_to(l, DAFL_MSG_MODEL, n + 1));
    at_entry = stage_now(l);
    if (restart)
        lab_restart(l, 2);
    else
        lab_reconnect(l, 2);
    /* It has everything anew that it missed, and is among the others. */
    assert_true(lab_run_to(l, DAFL_MSG_CAST, 7));
    m = lab_find(l, &at_entry, LAB_DELIVERED, LAB_ANYBODY, 2, DAFL_MSG_MODEL,
                 UINT32_MAX);
    assert_non_null(m);
    assert_ok(dafl_get_model(&model, m->envelope.body));
    assert_true(model.n >= (restart ? n + 1 : n));
    /* One message is enough: it does not ask for more. */
    ready = hello = at_entry;
    assert_non_null(
        lab_find(l, &ready, LAB_SENT, 2, LAB_ANYBODY, DAFL_MSG_READY, m->slot));
    assert_true(lab_find(l, &hello, LAB_SENT, 2, LAB_ANYBODY, DAFL_MSG_HELLO,
                         UINT32_MAX) == NULL ||
                hello > ready);
    assert_int_equal(dafl_client_where(lab_client(l, 2)), DAFL_CLIENT_READY);
    /* No slot from before is taken any more, missed or not. */
    for (uint32_t slot = 1; slot < dafl_server_slot(lab_server(l)); slot++) {
        at_entry = 0;
        m = lab_find(l, &at_entry, LAB_SENT, s.k, LAB_ANYBODY, DAFL_MSG_MODEL,
                     slot);
        assert_non_null(m);
        stage_say(l, 2, DAFL_MSG_MODEL, slot, m->envelope.body);
        old++;
    }
    lab_check_done(l);
    assert_int_equal(lab_count(l, 2, DAFL_EVENT_ERROR, DAFL_E_SLOT_SPENT), old);
    for (uint32_t q = 1; q <= n; q++)
        assert_false(dafl_members_has(&lab_sum_of(l, q)->cohort, 2));
    lab_check_cohort(l, 7, &all);
    /* A question tied to the others alone is asked again when it is back. */
    assert_true(dafl_server_stat(lab_server(l)).failed <= s.ties);
    lab_free(&l);
}

/* D5. */
static void a_client_that_missed_questions_is_summed_again(void **state)
{
    static const lab_phase phases[] = {LAB_BEFORE_MODEL, LAB_AFTER_READY,
                                       LAB_AT_CAST};

    (void)state;
    for (uint32_t n = 1; n <= 5; n++)
        for (int restart = 0; restart <= 1; restart++)
            miss_questions(n, phases[random_size(0, COUNT(phases) - 1)],
                           restart == 1);
}

/* ---- D6: after a restart ---- */

#define CRASHED 1

/* Client CRASHED restarts from its disk and is asked question 0 in slot 1 once
 * more, up to CAST. */
static stage_act ask_again(lab *l, const dafl_members *a)
{
    stage_act again = {.slot = 1, .from = stage_now(l), .a = *a};
    dafl_writer w = {0};

    lab_crash(l, CRASHED, 1);
    stage_listen(l);
    assert_true(lab_connected(l, CRASHED));
    stage_say_model(l, CRASHED, 1);
    stage_listen(l);
    dafl_put_cast(&w, a);
    stage_say(l, CRASHED, DAFL_MSG_CAST, 1, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    stage_listen(l);
    again.to = stage_now(l);
    assert_non_null(stage_sent(l, &again, CRASHED, DAFL_MSG_READY));
    return again;
}

static bool same_body(const lab_seen *a, const lab_seen *b)
{
    assert_non_null(a);
    assert_non_null(b);
    return a->envelope.body.len == b->envelope.body.len &&
           memcmp(a->envelope.body.ptr, b->envelope.body.ptr,
                  a->envelope.body.len) == 0;
}

/* Everybody but client 6. */
static dafl_members other_cohort(const lab *l)
{
    dafl_members other = lab_everybody(l);

    dafl_members_remove(&other, 6);
    return other;
}

/* D6. (a_client_may_crash_after_any_effect of test_crash.c has the crashes.) */
static void a_client_that_restarts_uploads_the_same_or_nothing(void **state)
{
    (void)state;
    for (int other = 0; other <= 1; other++) {
        lab_scenario s = lab_scenario_for(7, 1, random_u64());
        lab *l = stage_taken(&s, DAFL_MSG_END, CRASHED);
        stage_act first = stage_first(l), again;
        dafl_members a = other == 1 ? other_cohort(l) : lab_everybody(l);
        again = ask_again(l, &a);
        if (other == 1) {
            assert_null(stage_sent(l, &again, CRASHED, DAFL_MSG_UPLOAD));
            assert_null(stage_sent(l, &again, CRASHED, DAFL_MSG_END));
        } else {
            assert_true(
                same_body(stage_sent(l, &again, CRASHED, DAFL_MSG_UPLOAD),
                          stage_sent(l, &first, CRASHED, DAFL_MSG_UPLOAD)));
            assert_true(
                same_body(stage_sent(l, &again, CRASHED, DAFL_MSG_END),
                          stage_sent(l, &first, CRASHED, DAFL_MSG_END)));
        }
        assert_int_equal(
            lab_count(l, CRASHED, DAFL_EVENT_ERROR, DAFL_E_SLOT_SPENT), other);
        lab_check_invariants(l);
        lab_free(&l);
    }
}

#ifdef DAFL_WEAKEN
/* D6 control. */
static void without_its_journal_a_client_uploads_twice(void **state)
{
    lab_scenario s = lab_scenario_for(7, 1, random_u64());
    lab *l = stage_taken(&s, DAFL_MSG_END, CRASHED);
    stage_act first = stage_first(l), again;
    dafl_members a = other_cohort(l);

    (void)state;
    dafl_weakened = DAFL_WEAK_RESEND;
    again = ask_again(l, &a);
    assert_false(same_body(stage_sent(l, &again, CRASHED, DAFL_MSG_UPLOAD),
                           stage_sent(l, &first, CRASHED, DAFL_MSG_UPLOAD)));
    assert_non_null(lab_violation(l));
    lab_free(&l);
}
#endif

/* Everybody has signed in slot 1; now client CRASHED, restarted or not, is
 * given another list of survivors. */
static stage_act survey_again(lab *l, bool restart)
{
    stage_act first = stage_first(l), again = first;
    dafl_members all = lab_everybody(l), u3 = other_cohort(l);
    dafl_writer w = {0};

    if (restart)
        (void)ask_again(l, &all);
    again.from = stage_now(l);
    stage_put_surv(l, &w, &first, &all, &u3);
    stage_say(l, CRASHED, DAFL_MSG_SURV, 1, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    stage_listen(l);
    again.to = stage_now(l);
    return again;
}

/* D6. */
static void a_client_signs_one_statement_also_after_a_restart(void **state)
{
    (void)state;
    for (int restart = 0; restart <= 1; restart++) {
        lab_scenario s = lab_scenario_for(7, 1, random_u64());
        lab *l = stage_taken(&s, DAFL_MSG_CONF, s.k);
        stage_act again = survey_again(l, restart == 1);
        assert_null(stage_sent(l, &again, CRASHED, DAFL_MSG_SIGN));
        assert_int_equal(
            lab_count(l, CRASHED, DAFL_EVENT_ERROR, DAFL_E_SECOND_STMT), 1);
        lab_check_invariants(l);
        lab_free(&l);
    }
}

#ifdef DAFL_WEAKEN
/* D6 control. */
static void without_the_rule_a_client_signs_two_statements(void **state)
{
    (void)state;
    dafl_weakened = DAFL_WEAK_STATEMENT;
    for (int restart = 0; restart <= 1; restart++) {
        lab_scenario s = lab_scenario_for(7, 1, random_u64());
        lab *l = stage_taken(&s, DAFL_MSG_CONF, s.k);
        stage_act first = stage_first(l), again = survey_again(l, restart == 1);
        assert_false(same_body(stage_sent(l, &again, CRASHED, DAFL_MSG_SIGN),
                               stage_sent(l, &first, CRASHED, DAFL_MSG_SIGN)));
        assert_non_null(lab_violation(l));
        lab_free(&l);
    }
}
#endif

/* ---- D10: the next attempt is over another cohort ---- */

/* The sum over everybody and then, in slot 2, over all but the victim. */
static int64_t *cast_without_victim(lab *l, stage_act *first, stage_act *second)
{
    dafl_members left = lab_everybody(l);

    dafl_members_remove(&left, VICTIM);
    *second = stage_play(l, 2, &left, &left, first);
    if (stage_n_senders(l, second, DAFL_MSG_REVEAL) == 0)
        return NULL;
    return difference(l, stage_sum(l, first), stage_sum(l, second));
}

/* D10. */
static void a_cohort_with_half_a_cell_gets_no_upload(void **state)
{
    stage_act first, second;
    lab *l = retried_lab(&first);

    (void)state;
    assert_null(cast_without_victim(l, &first, &second));
    assert_int_equal(stage_n_senders(l, &second, DAFL_MSG_READY), 9);
    assert_int_equal(stage_n_senders(l, &second, DAFL_MSG_UPLOAD), 0);
    assert_int_equal(stage_n_senders(l, &second, DAFL_MSG_SIGN), 0);
    assert_int_equal(
        lab_count(l, LAB_ANYBODY, DAFL_EVENT_ERROR, DAFL_E_CELL_SPLIT), 9);
    lab_check_invariants(l);
    lab_free(&l);
}

#ifdef DAFL_WEAKEN
/* D10 control. Two sums that differ by one client. */
static void without_whole_cells_two_sums_lay_a_client_open(void **state)
{
    stage_act first, second;
    lab *l = retried_lab(&first);
    int64_t *x;

    (void)state;
    dafl_weakened = DAFL_WEAK_CELLS;
    x = cast_without_victim(l, &first, &second);
    assert_non_null(x);
    assert_true(stage_is_answer(l, x, VICTIM));
    free(x);
    lab_free(&l);
}
#endif

/* ---- */

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_confirmation_with_too_few_signatures_moves_nobody),
    cmocka_unit_test(a_spent_slot_is_not_played_again),
    cmocka_unit_test(a_question_asked_again_tells_of_no_single_client),
    cmocka_unit_test(a_client_that_missed_questions_is_summed_again),
    cmocka_unit_test(a_client_that_restarts_uploads_the_same_or_nothing),
    cmocka_unit_test(a_client_signs_one_statement_also_after_a_restart),
    cmocka_unit_test(a_cohort_with_half_a_cell_gets_no_upload),
};

#ifdef DAFL_WEAKEN
static const struct CMUnitTest controls[] = {
    CONTROL(without_the_quorum_one_signature_brings_the_shares_out),
    CONTROL(in_a_slot_played_again_a_client_is_laid_open),
    CONTROL(without_its_journal_a_client_uploads_twice),
    CONTROL(without_the_rule_a_client_signs_two_statements),
    CONTROL(without_whole_cells_two_sums_lay_a_client_open),
};
#endif

int main(int argc, char **argv)
{
    check_seed();
    return RUN_CASES(tests, controls, argc > 1 && strcmp(argv[1], "all") == 0);
}
