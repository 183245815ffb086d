/* SPDX-License-Identifier: Apache-2.0 */
/* A model trained through the machines is the one that its rows give (I1, D3).
 * With the argument "all" for every phase of every question. */
#include "tests/check.h"

#include "protocol/deep.h"
#include "tests/lab/rogue.h"
#include "tests/lab/school.h"
#include "tests/same_model.h"

static bool try_all;

static int open_school(void **state)
{
    (void)state;
    return school_open(random_u64(), 2);
}

static int close_school(void **state)
{
    (void)state;
    return school_close();
}

static lab *school_lab(uint16_t k, uint16_t cell_size)
{
    lab_scenario s = lab_scenario_for(k, cell_size, random_u64());

    school_deal(k);
    school_fit(&s);
    if (k >= 50)
        s.config.slots -= 4;
    return lab_new(&s);
}

/* I1. Bit for bit, and for every split that of one site with all the rows. */
static void the_model_does_not_depend_on_who_has_which_rows(void **state)
{
    static const uint16_t sizes[] = {3, 7, 100};

    (void)state;
    school.p.layers = 1;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        lab *l = school_lab(sizes[i], 1);
        school_plot all = {school.rows, SCHOOL_ROWS};
        dafl_model *plain;
        lab_check_done(l);
        assert_int_equal(school.n_taken, dafl_deep_questions(&school.p));
        for (size_t q = 0; q < school.n_taken; q++)
            assert_int_equal(dafl_members_count(&school.cohorts[q]), sizes[i]);
        plain = school_plain(&all, 1);
        assert_int_equal(school.model->n_heads,
                         school.model->params.layers + 1);
        assert_same_model(school.model, plain);
        dafl_model_free(&plain);
        lab_free(&l);
    }
}

/* D3. Client 4, of the cell 3 4 5, is gone for the rest of a slot. Question 2
 * is the residual of layer 0, 3 the Gram of layer 1 on top of it. */
static void a_cell_with_a_gap_costs_its_rows_and_nothing_else(void **state)
{
    (void)state;
    for (uint32_t q = 1; q <= 4; q++)
        for (int p = LAB_AT_CAST; p < LAB_PHASES; p++) {
            uint32_t gram = q <= 3 ? 3 : 5;
            dafl_members all, left;
            dafl_model *plain;
            lab *l;
            if (!try_all && (q == 1 || q == 4) && p != LAB_AT_CAST)
                continue;
            l = school_lab(9, 3);
            all = lab_everybody(l);
            left = rogue_without(l, 4);
            lab_leave(l, 4, q, (lab_phase)p, LAB_NEXT_SLOT);
            lab_check_done(l);
            /* An increment is not for the others alone: asked again, in full,
             * as is the Gram after any other sum without the cell. */
            if (p < LAB_AFTER_END)
                assert_true(dafl_members_equal(&school.cohorts[q], &left) ||
                            (q == 3 && school.asked[q].rank == 0));
            else
                assert_true(dafl_members_equal(&school.cohorts[q], &all));
            if (p < LAB_AFTER_END)
                assert_int_equal(school.asked[gram].rank, 0);
            plain = school_plain(school.plots, school.k);
            assert_int_equal(school.model->n_heads,
                             school.model->params.layers + 1);
            assert_same_model(school.model, plain);
            dafl_model_free(&plain);
            lab_free(&l);
        }
}

/* D3. What the case above compares with: increments, when nobody leaves. */
static void without_a_gap_increments_are_asked(void **state)
{
    lab *l = school_lab(9, 3);
    dafl_model *plain;

    (void)state;
    lab_check_done(l);
    assert_true(school.asked[3].rank > 0 && school.asked[5].rank > 0);
    plain = school_plain(school.plots, school.k);
    assert_int_equal(school.model->n_heads, school.model->params.layers + 1);
    assert_same_model(school.model, plain);
    dafl_model_free(&plain);
    lab_free(&l);
}

#define SCHOOL(f) cmocka_unit_test_setup_teardown(f, open_school, close_school)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SCHOOL(the_model_does_not_depend_on_who_has_which_rows),
        SCHOOL(a_cell_with_a_gap_costs_its_rows_and_nothing_else),
        SCHOOL(without_a_gap_increments_are_asked),
    };

    try_all = argc > 1 && strcmp(argv[1], "all") == 0;
    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
