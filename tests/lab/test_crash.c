/* SPDX-License-Identifier: Apache-2.0 */
/* Machines that die after any effect (D6 client_crash_points, D7
 * server_crash_points), and networks that damage everything. */
#include "tests/check.h"

#include "tests/lab/lab.h"

static uint64_t seed;

/* ---- a bad network ---- */

static void a_lossy_run_ends_with_its_sums_or_a_name(void **state)
{
    size_t done = 0, runs = 40;

    (void)state;
    for (size_t i = 0; i < runs; i++) {
        lab_scenario s =
            lab_scenario_for((uint16_t)random_size(3, 8), 1, random_u64());
        lab *l;
        s.questions = 3;
        s.ties = i % 2 == 0;
        s.net.drop = (uint16_t)random_size(0, 40);
        s.net.delay = (uint16_t)random_size(0, 200);
        s.net.reorder = (uint16_t)random_size(0, 50);
        s.net.duplicate = (uint16_t)random_size(0, 100);
        s.net.truncate = (uint16_t)random_size(0, 20);
        s.net.flip = (uint16_t)random_size(0, 20);
        s.net.delay_max = (uint32_t)random_size(10, 3000);
        s.net.spare_setup = i % 2 == 0;
        if (i % 3 == 0)
            lab_scenario_chunks(&s, 2);
        l = lab_new(&s);
        lab_run(l);
        lab_check_invariants(l);
        if (lab_outcome_of(l) == LAB_HUNG)
            fail_msg("seed %llu: hung", (unsigned long long)s.seed);
        if (lab_outcome_of(l) == LAB_FAILED &&
            dafl_server_fault(lab_server(l)) == DAFL_FAULT_NONE)
            fail_msg("seed %llu: failed without a name",
                     (unsigned long long)s.seed);
        done += lab_outcome_of(l) == LAB_DONE;
        lab_free(&l);
    }
    print_message("%zu of %zu lossy runs finish\n", done, runs);
    assert_true(done > 0);
}

/* ---- D6 client_crash_points, D7 server_crash_points ---- */

static lab *crash_lab(uint16_t party, uint64_t point, uint32_t restart_after)
{
    lab_scenario s = lab_scenario_for(6, 1, seed);
    lab *l;

    /* One may be missing from the beginning. */
    s.config.policy.n_min = 5;
    lab_scenario_collude(&s, 1);
    lab_scenario_chunks(&s, 2);
    s.questions = 2;
    s.restart_after = restart_after;
    l = lab_new(&s);
    if (point > 0)
        lab_crash_after(l, party, point);
    return l;
}

/* Whether the run finishes as if little had happened: a crash burns the slot
 * at hand, at most. */
static bool survives(uint16_t party, uint64_t point, uint32_t restart_after)
{
    lab *l = crash_lab(party, point, restart_after);
    bool done = lab_run(l) == LAB_DONE;
    uint32_t slots = done ? dafl_server_stat(lab_server(l)).slots : 0;
    const char *violation = lab_violation(l);
    bool well =
        done && violation == NULL && slots <= lab_scenario_of(l)->questions + 1;

    if (!well)
        print_message("seed %llu: party %u crashes after effect %llu for %u "
                      "ms: %s, %u slots%s%s\n",
                      (unsigned long long)seed, (unsigned)party,
                      (unsigned long long)point, (unsigned)restart_after,
                      done ? "done" : "not done", (unsigned)slots,
                      violation == NULL ? "" : ", ",
                      violation == NULL ? "" : violation);
    lab_free(&l);
    return well;
}

/* Once so that it is back before anybody notices, once not. */
static void crash_everywhere(uint16_t party)
{
    lab *l = crash_lab(party, 0, 0);
    uint64_t points;
    size_t bad = 0;

    lab_check_done(l);
    points = lab_effects(l, party);
    lab_free(&l);
    for (uint64_t n = 1; n <= points; n++)
        bad +=
            (size_t)!survives(party, n, 5) + (size_t)!survives(party, n, 400);
    print_message("%llu crash points\n", (unsigned long long)points);
    assert_int_equal(bad, 0);
}

static void a_client_may_crash_after_any_effect(void **state)
{
    (void)state;
    crash_everywhere(1);
}

static void the_server_may_crash_after_any_effect(void **state)
{
    (void)state;
    crash_everywhere(6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lossy_run_ends_with_its_sums_or_a_name),
        cmocka_unit_test(a_client_may_crash_after_any_effect),
        cmocka_unit_test(the_server_may_crash_after_any_effect),
    };

    check_seed();
    seed = random_u64();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
