/* SPDX-License-Identifier: Apache-2.0 */
/* S16, the attack without anything to stop it: sites of the library, which do
 * not look at what a model makes of their rows. Digits; the server has a poor
 * copy of one row and wants its hidden features, digit by digit.
 *
 * Two traps. The first takes all units: every site but one then has an F of
 * zeros, and the one has a single row in it, which it can see. The second takes
 * four units and leaves the others alone: the row is read off in the four, and
 * carries next to nothing of the norm of F. To see that one a site would have
 * to look at F column by column. */
#include "tests/lab/curious.h"
#include "tests/lab/figures.h"
#include "tests/lab/trap.h"
#include "tests/sites.h"

#define SITES 6
#define WIDTH 256
#define HIDDEN 128
#define TARGETS 8
#define BLUR 0.05 /* of the copy: so much is added to a pixel or taken off */

static dafl_data data;
static dafl_pool *pool;

static int open_data(void **state)
{
    (void)state;
    assert_ok(dafl_pool_new(&pool, 1));
    return dafl_data_open(&data, DIGITS "/train_features.npy",
                          DIGITS "/train_labels.npy", 10, NULL) != DAFL_OK;
}

static int close_data(void **state)
{
    (void)state;
    dafl_data_close(&data);
    dafl_pool_free(&pool);
    return 0;
}

/* Rows in turn: target t is with site t mod SITES. */
static crew make_sites(dafl_model *model)
{
    crew c = {.n = SITES, .model = model};
    uint32_t *rows = calloc(data.n, sizeof *rows);
    dafl_projection first;

    assert_non_null(rows);
    assert_ok(dafl_model_projection(model, &first, 0));
    for (uint32_t k = 0; k < SITES; k++) {
        size_t n = 0;
        for (uint32_t i = k; i < data.n; i += SITES)
            rows[n++] = i;
        assert_ok(dafl_site_new(&c.sites[k], &model->params, pool, &data, rows,
                                n, &first, NULL));
    }
    dafl_projection_drop(&first);
    free(rows);
    return c;
}

static double *part(const dafl_params *p, const dafl_query *query,
                    const dafl_sum *sum, unsigned number)
{
    dafl_layout layout;
    double *x;

    dafl_query_layout(&layout, p, query);
    x = doubles(layout.parts[number].rows * layout.parts[number].cols);
    dafl_sum_get(sum, &layout.parts[number], x);
    return x;
}

static double *blurred(uint32_t row)
{
    double *x = doubles(data.x.cols);

    dafl_npy_get_rows(&data.x, x, &row, 0, 1);
    for (size_t i = 0; i < data.x.cols; i++)
        x[i] += BLUR * random_double();
    return x;
}

/* The training of a server that plants its trap; the sum of Pi_1. */
static dafl_sum spring(dafl_model *model, size_t units, const double *x,
                       double height)
{
    const dafl_params *p = &model->params;
    crew c = make_sites(model);
    dafl_trainer *trainer = NULL;
    dafl_set all;
    dafl_sum sum = {0};
    double rows = 0;

    assert_ok(dafl_set_init(&all, SITES));
    for (size_t k = 0; k < SITES; k++)
        dafl_set_add(&all, k);
    assert_ok(dafl_trainer_new(&trainer, model, SITES));
    for (uint32_t q = 0; q < 5; q++) {
        dafl_query query;
        dafl_trainer_next(trainer, &query, &all);
        dafl_sum_drop(&sum);
        sum = ask(&c, &query);
        assert_ok(dafl_trainer_take(trainer, &query, &sum, &all, NULL));
        if (query.kind == DAFL_QUERY_CENSUS) {
            rows = (double)sum.i[0];
        } else if (query.kind == DAFL_QUERY_GRAM && query.layer == 0) {
            trap_head(model, units);
        } else if (query.kind == DAFL_QUERY_RESIDUAL && query.layer == 0) {
            double *pi = part(p, &query, &sum, 0);
            double *upsilon = part(p, &query, &sum, 1);
            trap_block(model, units, x, rows, pi, upsilon, height);
            free(upsilon);
            free(pi);
        }
    }
    dafl_trainer_free(&trainer);
    dafl_set_drop(&all);
    drop_crew(&c);
    return sum;
}

/* Pi_1 of a few rows under the same model. */
static dafl_sum follow(crew *c)
{
    dafl_query queries[] = {{.kind = DAFL_QUERY_RESIDUAL, .layer = 0},
                            {.kind = DAFL_QUERY_GRAM, .layer = 1},
                            {.kind = DAFL_QUERY_RESIDUAL, .layer = 1}};
    dafl_sum sum = {0};

    for (size_t i = 0; i < COUNT(queries); i++) {
        dafl_sum_drop(&sum);
        sum = ask(c, &queries[i]);
    }
    return sum;
}

static double trace(const dafl_sum *sum)
{
    const int64_t *row = sum->i;
    double total = 0;

    for (size_t i = 0; i < HIDDEN; row += HIDDEN - i, i++)
        total += (double)row[0];
    return total;
}

/* The row's share of the squared norm of F at its site. */
static double share_of(dafl_model *model, uint32_t row, const dafl_sum *own)
{
    crew c = make_sites(model), site = {.n = 1, .model = model};
    dafl_sum sum;
    double share;

    site.sites[0] = c.sites[row % SITES];
    sum = follow(&site);
    share = trace(own) / trace(&sum);
    dafl_sum_drop(&sum);
    drop_crew(&c);
    return share;
}

/* How many of so many targets are caught, all their digits right; `share`
 * becomes the largest of their shares of F. */
static size_t catch_rows(size_t units, uint32_t q, double height, double *share)
{
    dafl_params p = curious_params(data.x.cols, WIDTH, HIDDEN, q);
    size_t caught = 0;

    *share = 0;
    for (size_t i = 0; i < TARGETS; i++) {
        uint32_t target = (uint32_t)random_size(0, data.n - 1);
        double *x = blurred(target), *got = doubles(units);
        double *want = doubles(units);
        dafl_model *model = NULL;
        dafl_sum sum, own;
        crew row;
        assert_ok(dafl_model_new(&model, &p));
        sum = spring(model, units, x, height);
        row = crew_of_row(model, pool, &data, target);
        own = follow(&row);
        if (trap_row(got, &p, units, &sum) && trap_row(want, &p, units, &own) &&
            memcmp(got, want, units * sizeof *got) == 0) {
            caught++;
            *share = fmax(*share, share_of(model, target, &own));
        }
        dafl_sum_drop(&own);
        dafl_sum_drop(&sum);
        drop_crew(&row);
        dafl_model_free(&model);
        free(want);
        free(got);
        free(x);
    }
    print_message("S16 %zu of %d units, q = %u: %zu of %d rows caught, each "
                  "feature exact; share of F at its site %.3g\n",
                  units, HIDDEN, (unsigned)q, caught, TARGETS, *share);
    return caught;
}

static void a_trap_in_all_units_leaves_one_row_alive(void **state)
{
    double share;

    (void)state;
    assert_true(catch_rows(HIDDEN, 128, 2, &share) >= 2);
    assert_true(share == 1);
}

static void a_trap_in_a_few_units_is_hard_to_see(void **state)
{
    double share;

    (void)state;
    assert_true(catch_rows(4, 8, 1.5, &share) >= 2);
    assert_true(share < 0.05);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trap_in_all_units_leaves_one_row_alive),
        cmocka_unit_test(a_trap_in_a_few_units_is_hard_to_see),
    };

    check_seed();
    return cmocka_run_group_tests(tests, open_data, close_data);
}
