/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that go, come back or never come (D2, D3, D8, D10): a question is
 * answered exactly, or asked again in a slot of its own, or the run says why
 * not. */
#include "tests/check.h"

#include "tests/lab/rogue.h"

/* So many clients, at random. */
static dafl_members some(const lab *l, size_t n)
{
    dafl_members m = lab_members(l, 0);

    while (dafl_members_count(&m) < n)
        dafl_members_add(&m, random_size(0, m.n - 1u));
    return m;
}

static const struct {
    uint16_t k, cell_size; /* a = 1, 2, 3, 4 */
} sizes[] = {{5, 1}, {7, 1}, {9, 3}, {12, 3}};

/* ---- D2: one more than the threshold tolerates ---- */

/* D2. They are back for the next slot. */
static void
with_too_many_gone_the_slot_has_no_sum_and_no_share_leaves(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++)
        for (int p = 0; p <= LAB_AT_SURV; p++) {
            lab_scenario s =
                lab_scenario_for(sizes[i].k, sizes[i].cell_size, random_u64());
            dafl_members gone, all;
            dafl_fault fault;
            lab *l;
            if (p == LAB_MID_UPLOAD)
                lab_scenario_chunks(&s, 2);
            l = lab_new(&s);
            all = lab_everybody(l);
            gone = some(l, s.config.policy.a + 1u);
            lab_leave_all(l, &gone, 0, (lab_phase)p, LAB_NEXT_SLOT);
            lab_check_done(l);
            fault = lab_result(l, 1);
            assert_true(fault == DAFL_E_QUORUM || fault == DAFL_E_COHORT);
            assert_int_equal(rogue_sent(l, LAB_ANYBODY, DAFL_MSG_CONF, 1), 0);
            assert_int_equal(rogue_sent(l, LAB_ANYBODY, DAFL_MSG_REVEAL, 1), 0);
            assert_int_equal(dafl_server_stat(lab_server(l)).failed, 1);
            assert_int_equal(lab_result(l, 2), DAFL_FAULT_NONE);
            lab_check_cohort(l, s.questions - 1, &all);
            lab_free(&l);
        }
}

/* D2. After CONF it is the shares that are too few. */
static void with_too_many_gone_after_signing_nothing_is_opened(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        lab_scenario s =
            lab_scenario_for(sizes[i].k, sizes[i].cell_size, random_u64());
        lab *l = lab_new(&s);
        dafl_members all = lab_everybody(l);
        dafl_members gone = some(l, s.config.policy.a + 1u);
        lab_leave_all(l, &gone, 0, LAB_AFTER_SIGN, LAB_NEXT_SLOT);
        lab_check_done(l);
        assert_int_equal(lab_result(l, 1), DAFL_E_UNRECOVERABLE);
        assert_int_equal(dafl_server_stat(lab_server(l)).failed, 1);
        /* Nobody's cell is to blame. */
        lab_check_cohort(l, s.questions - 1, &all);
        lab_free(&l);
    }
}

/* D2. */
static void with_too_many_gone_for_good_the_run_ends_with_a_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++)
        for (int p = 0; p <= LAB_AT_SURV; p++) {
            lab_scenario s =
                lab_scenario_for(sizes[i].k, sizes[i].cell_size, random_u64());
            const lab_sum *sums;
            dafl_members gone;
            lab *l;
            if (p == LAB_MID_UPLOAD)
                lab_scenario_chunks(&s, 2);
            s.config.retries = 2;
            l = lab_new(&s);
            gone = some(l, s.config.policy.a + 1u);
            lab_leave_all(l, &gone, 0, (lab_phase)p, LAB_FOR_GOOD);
            assert_int_equal(lab_run(l), LAB_FAILED);
            lab_check_invariants(l);
            assert_int_equal(dafl_server_fault(lab_server(l)), DAFL_E_COHORT);
            assert_int_equal(lab_sums(l, &sums), 0);
            assert_int_equal(
                rogue_sent(l, LAB_ANYBODY, DAFL_MSG_REVEAL, UINT32_MAX), 0);
            lab_free(&l);
        }
}

/* ---- D3: a cell with a gap ---- */

/* D3. Client 7 of the cell 6 7 8 is gone for the rest of the slot of question
 * 2, to which question 3 would be tied. (a_cell_with_a_gap_.. of
 * test_integrity_model.c is the same with a model.) */
static void a_cell_with_a_gap_is_out_and_stays_closed(void **state)
{
    (void)state;
    for (int p = LAB_AT_CAST; p < LAB_PHASES; p++) {
        lab_scenario s = lab_scenario_for(12, 3, random_u64());
        dafl_members left, cell;
        size_t at_entry = 0;
        const lab_seen *m;
        lab *l;
        lab_scenario_chunks(&s, 2);
        s.questions = 5;
        s.ties = true;
        l = lab_new(&s);
        left = lab_everybody(l);
        cell = rogue_cell(l, 7);
        if (p < LAB_AFTER_END)
            left = dafl_members_minus(&left, &cell);
        lab_leave(l, 7, 2, (lab_phase)p, LAB_NEXT_SLOT);
        lab_check_done(l);
        lab_check_cohort(l, 2, &left);
        assert_int_equal(dafl_server_stat(lab_server(l)).failed, 0);
        if (p < LAB_AFTER_END)
            assert_int_equal(lab_sum_of(l, 3)->rank, 0);
        /* b of a cell that is out, never; of one that is in, only that. */
        while ((m = lab_find(l, &at_entry, LAB_SENT, LAB_ANYBODY, LAB_ANYBODY,
                             DAFL_MSG_REVEAL, 3)) != NULL) {
            dafl_reveal reveal;
            assert_ok(dafl_get_reveal(&reveal, m->envelope.body));
            for (size_t i = 0; i < reveal.n; i++) {
                dafl_revealed r = dafl_reveal_at(&reveal, i);
                bool out =
                    p < LAB_AFTER_END && dafl_members_has(&cell, r.dealer);
                assert_int_equal(r.kind, out ? DAFL_REVEAL_SK : DAFL_REVEAL_B);
            }
        }
        lab_free(&l);
    }
}

/* ---- D10: the next attempt is over another cohort ---- */

/* D10. All have signed, and the cell 0 1 2 is gone before CONF, with others who
 * come back: there is no quorum. */
static void a_question_is_asked_again_without_a_cell_that_vanished(void **state)
{
    (void)state;
    for (uint32_t q = 0; q < 5; q++) {
        lab_scenario s = lab_scenario_for(12, 3, random_u64());
        dafl_members all, cell, left, others;
        uint32_t slot = q + 1; /* of the attempt that fails */
        lab *l;
        s.questions = 5;
        s.ties = true;
        l = lab_new(&s);
        all = lab_everybody(l);
        cell = rogue_cell(l, 0);
        left = dafl_members_minus(&all, &cell);
        others = lab_members(l, (uint64_t)3 << random_size(3, 10));
        lab_leave_all(l, &cell, q, LAB_AT_SURV, LAB_FOR_GOOD);
        lab_leave_all(l, &others, q, LAB_AT_SURV, LAB_NEXT_SLOT);
        lab_check_done(l);
        assert_int_equal(lab_result(l, slot), DAFL_E_QUORUM);
        assert_int_equal(rogue_sent(l, LAB_ANYBODY, DAFL_MSG_SIGN, slot), s.k);
        assert_int_equal(rogue_sent(l, LAB_ANYBODY, DAFL_MSG_REVEAL, slot), 0);
        assert_int_equal(lab_slot_question(l, slot), q);
        assert_int_equal(lab_slot_question(l, slot + 1), q);
        assert_int_equal(lab_result(l, slot + 1), DAFL_FAULT_NONE);
        assert_int_equal(dafl_server_stat(lab_server(l)).failed, 1);
        assert_true(dafl_members_within(&lab_sum_of(l, q)->cohort, &left));
        if (q < 4)
            lab_check_cohort(l, 4, &left);
        lab_free(&l);
    }
}

/* ---- disks and keys that are not what they were ---- */

/* Client 5 restarts before it has the keys of this enrolment, and everybody is
 * needed: it gets others, instead of slot after slot being lost without it. */
static void a_client_without_keys_is_enrolled_anew(void **state)
{
    lab_scenario s = lab_scenario_for(6, 3, random_u64());
    dafl_members all;
    size_t at = 0;
    lab *l;

    (void)state;
    s.config.policy.m = 6;
    s.config.slots = 40; /* more than may fail */
    l = lab_new(&s);
    all = lab_everybody(l);
    while (lab_find(l, &at, LAB_SENT, 6, 5, DAFL_MSG_SETUP, 0) == NULL)
        assert_true(lab_step(l));
    lab_crash(l, 5, 100);
    lab_check_done(l);
    for (uint32_t q = 0; q < s.questions; q++)
        lab_check_cohort(l, q, &all);
    assert_int_equal(dafl_server_stat(lab_server(l)).slots, s.questions);
    assert_int_equal(dafl_server_stat(lab_server(l)).enrolments, 2);
    lab_free(&l);
}

/* How often client 5 has sent a message of this type in slot 2; every time the
 * same, if it is sent once (not in chunks). */
static size_t times_said(lab *l, dafl_msg_type type, bool once)
{
    const lab_seen *first = NULL, *m;
    size_t n = 0, at = 0;

    while ((m = lab_find(l, &at, LAB_SENT, 5, LAB_ANYBODY, type, 2)) != NULL) {
        first = first == NULL ? m : first;
        if (once)
            assert_true(m->envelope.body.len == first->envelope.body.len &&
                        memcmp(m->envelope.body.ptr, first->envelope.body.ptr,
                               m->envelope.body.len) == 0);
        n++;
    }
    return n;
}

/* A second process on a copy of the disk, made before the client uploaded in
 * this slot: its journal does not know of that. It has the same keys and rows,
 * so what it sends is the same (lab_check_invariants looks at every chunk). */
static void a_twin_on_a_copy_of_the_disk_uploads_the_same(void **state)
{
    static const dafl_msg_type until[] = {DAFL_MSG_UPLOAD, DAFL_MSG_END};

    (void)state;
    for (size_t i = 0; i < COUNT(until); i++) {
        lab_scenario s = lab_scenario_for(6, 3, random_u64());
        lab *l = lab_new(&s);
        dafl_members all = lab_everybody(l);
        lab_disk *copy;

        assert_true(lab_run_to(l, DAFL_MSG_MODEL, 1));
        copy = lab_disk_copy(l, 5);
        while (times_said(l, until[i], false) == 0)
            assert_true(lab_step(l));
        lab_crash(l, 5, LAB_NEVER);
        lab_disk_put(l, 5, copy);
        lab_restart(l, 5);
        lab_check_done(l);
        lab_check_cohort(l, 1, &all);
        assert_true(times_said(l, DAFL_MSG_UPLOAD, false) >= 2);
        assert_int_equal(times_said(l, DAFL_MSG_END, true), 2);
        lab_disk_free(&copy);
        lab_free(&l);
    }
}

/* It knows of no run, so it is told in none. The numbers of its messages begin
 * anew, which is no invariant to keep here. */
static void a_client_that_lost_its_disk_is_told_that_it_is_out(void **state)
{
    lab_scenario s = lab_scenario_for(6, 3, random_u64());
    lab *l = lab_new(&s);
    lab_disk *empty = lab_disk_copy(l, 5);

    (void)state;
    assert_true(lab_run_to(l, DAFL_MSG_MODEL, 1));
    lab_crash(l, 5, LAB_NEVER);
    lab_disk_put(l, 5, empty);
    lab_restart(l, 5);
    assert_int_equal(lab_run(l), LAB_DONE);
    assert_int_equal(dafl_client_where(lab_client(l, 5)), DAFL_CLIENT_OUT);
    assert_int_equal(dafl_client_fault(lab_client(l, 5)), DAFL_E_STATE_LOST);
    lab_disk_free(&empty);
    lab_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            with_too_many_gone_the_slot_has_no_sum_and_no_share_leaves),
        cmocka_unit_test(with_too_many_gone_after_signing_nothing_is_opened),
        cmocka_unit_test(with_too_many_gone_for_good_the_run_ends_with_a_name),
        cmocka_unit_test(a_cell_with_a_gap_is_out_and_stays_closed),
        cmocka_unit_test(
            a_question_is_asked_again_without_a_cell_that_vanished),
        cmocka_unit_test(a_client_without_keys_is_enrolled_anew),
        cmocka_unit_test(a_twin_on_a_copy_of_the_disk_uploads_the_same),
        cmocka_unit_test(a_client_that_lost_its_disk_is_told_that_it_is_out),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
