/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that go away at every moment of a slot (D1 drop_matrix): what is
 * summed is summed exactly (I1). With the argument "all" every pattern is
 * tried in every way of leaving, else in one of them. */
#include "tests/check.h"

#include "tests/lab/lab.h"

static bool try_all;

static const struct {
    void (*leave)(lab *l, uint16_t client, uint32_t question, lab_phase phase,
                  lab_back back);
    lab_back back;
} ways[] = {{lab_leave, LAB_NEXT_SLOT},
            {lab_leave, LAB_FOR_GOOD},
            {lab_leave_crashing, LAB_NEXT_SLOT},
            {lab_leave_crashing, LAB_FOR_GOOD}};

/* The clients in `gone` leave in the slot of question 0. */
static void drop_one_pattern(uint16_t k, uint16_t c, unsigned gone,
                             lab_phase phase, size_t way)
{
    lab_scenario s = lab_scenario_for(k, 1, random_u64());
    dafl_members left;
    lab *l;

    lab_scenario_collude(&s, c);
    if (phase == LAB_MID_UPLOAD)
        lab_scenario_chunks(&s, 3);
    /* One more for those who come back while question 1 is being cast. */
    s.questions = ways[way].back == LAB_FOR_GOOD ? 2 : 3;
    l = lab_new(&s);
    for (uint16_t u = 0; u < k; u++)
        if (gone >> u & 1)
            ways[way].leave(l, u, 0, phase, ways[way].back);
    lab_check_done(l);
    left = lab_members(l, phase < LAB_AFTER_END ? ~gone : ~0u);
    lab_check_cohort(l, 0, &left);
    assert_int_equal(dafl_server_stat(lab_server(l)).failed, 0);
    left = lab_members(l, ways[way].back == LAB_FOR_GOOD ? ~gone : ~0u);
    lab_check_cohort(l, s.questions - 1, &left);
    lab_free(&l);
}

/* Every set of as many as the threshold tolerates, at each phase. */
static void every_pattern_of_dropouts_sums_exactly(void **state)
{
    static const struct {
        uint16_t k, c; /* a = 1, 1, 2, 1 */
    } sizes[] = {{4, 0}, {5, 1}, {6, 0}, {6, 1}};
    size_t turn = random_size(0, COUNT(ways) - 1);

    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        size_t a = dafl_threshold_absent(sizes[i].k, sizes[i].c);
        for (unsigned gone = 1; gone < 1u << sizes[i].k; gone++)
            for (int p = 0; p < LAB_PHASES; p++) {
                if ((size_t)__builtin_popcount(gone) > a)
                    continue;
                for (size_t way = 0; way < COUNT(ways); way++)
                    if (try_all || way == turn)
                        drop_one_pattern(sizes[i].k, sizes[i].c, gone,
                                         (lab_phase)p, way);
                turn = (turn + 1) % COUNT(ways);
            }
    }
}

/* Each of them at another phase, now and then twice. */
static void dropouts_of_all_kinds_at_once_sum_exactly(void **state)
{
    (void)state;
    for (unsigned i = 0; i < (try_all ? 400 : 50); i++) {
        uint16_t k = (uint16_t)random_size(4, 9);
        lab_scenario s = lab_scenario_for(k, 1, random_u64());
        lab *l;
        s.questions = 5;
        s.ties = i % 2 == 0;
        s.config.tries = (uint16_t)(i % 3);
        if (i % 4 == 0)
            lab_scenario_chunks(&s, 2);
        l = lab_new(&s);
        for (size_t n = random_size(1, k); n > 0; n--)
            (random_u64() % 4 == 0 ? lab_leave_crashing : lab_leave)(
                l, (uint16_t)random_size(0, k - 1u),
                (uint32_t)random_size(0, 4),
                (lab_phase)random_size(0, LAB_PHASES - 1),
                random_u64() % 2 == 0 ? LAB_NEXT_SLOT : LAB_SOON);
        lab_check_done(l);
        lab_free(&l);
    }
}

static void a_cell_with_a_gap_is_left_out(void **state)
{
    (void)state;
    for (int p = 0; p < LAB_PHASES; p++) {
        lab_scenario s = lab_scenario_for(12, 3, random_u64());
        dafl_members left, cell;
        lab *l;
        lab_scenario_chunks(&s, 2);
        s.questions = 2;
        l = lab_new(&s);
        left = lab_everybody(l);
        cell = dafl_roster_cell(lab_roster(l), 2);
        if (p < LAB_AFTER_END)
            left = dafl_members_minus(&left, &cell);
        lab_leave(l, 7, 0, (lab_phase)p, LAB_NEXT_SLOT);
        lab_check_done(l);
        lab_check_cohort(l, 0, &left);
        assert_int_equal(dafl_server_stat(lab_server(l)).failed, 0);
        lab_free(&l);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pattern_of_dropouts_sums_exactly),
        cmocka_unit_test(dropouts_of_all_kinds_at_once_sum_exactly),
        cmocka_unit_test(a_cell_with_a_gap_is_left_out),
    };

    try_all = argc > 1 && strcmp(argv[1], "all") == 0;
    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
