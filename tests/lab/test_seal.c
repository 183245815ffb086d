/* SPDX-License-Identifier: Apache-2.0 */
/* H2 equals_mask_mode: with encryption the sums are those of the masks alone,
 * whoever goes away and whenever. */
#include "tests/check.h"

#include "crypto/he.h"
#include "tests/lab/audited.h"

static uint64_t seed;

static void check_logs(lab *l)
{
    dafl_audit_report *r = audited_judge_lab(l);

    audited_print(r);
    if (r->n_found > 0) {
        lab_dump(l);
        fail_msg("seed %llu: %zu findings in an honest run",
                 (unsigned long long)lab_scenario_of(l)->seed, r->n_found);
    }
    assert_int_equal(r->n_proofs, 0);
    dafl_audit_report_free(&r);
}

/* ---- H2 equals_mask_mode ---- */

static void masks_and_encryption_give_the_same_sums(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        lab_scenario s =
            lab_scenario_for(i == 0 ? 2 : 6, i == 2 ? 3 : 1, random_u64());
        int64_t *sums[8];
        lab *l;
        s.config.contract.w = DAFL_HE_W_MAX;
        s.tail = i == 1 ? 2 * DAFL_HE_N : 5;
        s.config.slots = i == 0 ? 2 : 0; /* two enrolments */
        s.audit = true;
        l = lab_new(&s);
        lab_check_done(l);
        for (uint32_t q = 0; q < s.questions; q++) {
            const lab_sum *sum = lab_sum_of(l, q);
            sums[q] = calloc(sum->len, sizeof *sums[q]);
            assert_non_null(sums[q]);
            memcpy(sums[q], sum->sum, sum->len * sizeof *sum->sum);
        }
        lab_free(&l);
        lab_scenario_encrypt(&s);
        l = lab_new(&s);
        lab_check_done(l);
        check_logs(l);
        assert_int_equal(
            lab_count(l, LAB_ANYBODY, DAFL_EVENT_ERROR, DAFL_FAULT_COUNT), 0);
        for (uint32_t q = 0; q < s.questions; q++) {
            dafl_members all = lab_everybody(l);
            lab_check_cohort(l, q, &all);
            assert_memory_equal(sums[q], lab_sum_of(l, q)->sum,
                                lab_sum_of(l, q)->len * sizeof *sums[q]);
            free(sums[q]);
        }
        assert_int_equal(dafl_holder_where(lab_holder(l)), DAFL_HOLDER_OUT);
        lab_free(&l);
    }
}

static void clients_may_leave_in_any_phase(void **state)
{
    (void)state;
    for (lab_phase phase = 0; phase < LAB_PHASES; phase++)
        for (lab_back back = LAB_FOR_GOOD; back <= LAB_SOON; back++) {
            lab_scenario s = lab_scenario_for(5, 1, random_u64());
            lab *l;
            lab_scenario_encrypt(&s);
            s.audit = true;
            s.questions = 2;
            l = lab_new(&s);
            (random_size(0, 1) ? lab_leave_crashing : lab_leave)(l, 2, 0, phase,
                                                                 back);
            lab_check_done(l);
            check_logs(l);
            lab_free(&l);
        }
}

/* Its upload cannot be made again; the others do not wait for it. */
static void a_client_that_lost_its_upload_says_so(void **state)
{
    lab_scenario s = lab_scenario_for(5, 1, random_u64());
    dafl_members others;
    lab *l;

    (void)state;
    lab_scenario_encrypt(&s);
    l = lab_new(&s);
    lab_leave_crashing(l, 2, 1, LAB_MID_UPLOAD, LAB_SOON);
    lab_check_done(l);
    others = lab_members(l, ~(uint64_t)4);
    lab_check_cohort(l, 1, &others);
    assert_int_equal(dafl_server_stat(lab_server(l)).slots, s.questions);
    assert_true(lab_now(l) < s.config.wait[DAFL_WAIT_UPLOAD]);
    lab_free(&l);
}

/* ---- crashes ---- */

static lab *crash_lab(uint16_t party, uint64_t point, uint32_t restart_after)
{
    lab_scenario s = lab_scenario_for(5, 1, seed);
    lab *l;

    /* One may be missing from the beginning. */
    s.config.policy.n_min = 4;
    lab_scenario_collude(&s, 1);
    lab_scenario_encrypt(&s);
    s.questions = 2;
    s.audit = true;
    s.restart_after = restart_after;
    l = lab_new(&s);
    if (point > 0)
        lab_crash_after(l, party, point);
    return l;
}

/* A crash burns the slot at hand, at most. */
static void survive(uint16_t party, uint64_t point, uint32_t restart_after)
{
    lab *l = crash_lab(party, point, restart_after);
    uint32_t slots;

    lab_check_done(l);
    check_logs(l);
    slots = dafl_server_stat(lab_server(l)).slots;
    if (slots > lab_scenario_of(l)->questions + 1)
        fail_msg("seed %llu: %u slots when party %u crashes after effect %llu",
                 (unsigned long long)seed, (unsigned)slots, (unsigned)party,
                 (unsigned long long)point);
    lab_free(&l);
}

/* So that it is back before anybody notices, or not. */
static void crash_everywhere(uint16_t party)
{
    bool holder = party == 6;
    lab *l = crash_lab(party, 0, 0);
    uint64_t points;

    lab_check_done(l);
    points = lab_effects(l, party);
    lab_free(&l);
    /* Every second point of machines whose masks are tested at all of them. */
    for (uint64_t n = holder ? 1 : random_size(1, 2); n <= points;
         n += holder ? 1 : 2) {
        if (holder || n % 4 < 2)
            survive(party, n, 5);
        if (holder || n % 4 >= 2)
            survive(party, n, 400);
    }
    print_message("%llu crash points\n", (unsigned long long)points);
}

static void a_client_may_crash_after_any_effect(void **state)
{
    (void)state;
    crash_everywhere(1);
}

static void the_server_may_crash_after_any_effect(void **state)
{
    (void)state;
    crash_everywhere(5);
}

static void the_key_holder_may_crash_after_any_effect(void **state)
{
    (void)state;
    crash_everywhere(6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_and_encryption_give_the_same_sums),
        cmocka_unit_test(clients_may_leave_in_any_phase),
        cmocka_unit_test(a_client_that_lost_its_upload_says_so),
        cmocka_unit_test(a_client_may_crash_after_any_effect),
        cmocka_unit_test(the_server_may_crash_after_any_effect),
        cmocka_unit_test(the_key_holder_may_crash_after_any_effect),
    };

    if (!lab_can_encrypt())
        return 77;
    check_seed();
    seed = random_u64();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
