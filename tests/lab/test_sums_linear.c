/* SPDX-License-Identifier: Apache-2.0 */
/* L11: a malicious server plants a block that lifts some units of the next
 * layer so far that relu never cuts them. They are linear in Phi_1 then, and
 * their part of Pi_1 = F'F follows from G_1, H_1 and the projection, all
 * public. Pi_1 over a cohort without somebody, taken off it, leaves the block
 * of who is missing.
 *
 * The plant (tests/lab/plant.h), with B_1 known from the seed: m = h B_S
 * (B_S'B_S)^-1 1, which added to a row of Phi lifts the units S by h; n =
 * Pi_0^-1 F'1, for which F n is as near to 1 as F can come. So Phi_1 is near
 * Phi_0 + m'.
 *
 * What limits the precision is the grid alone: F is rounded by E, |E| <=
 * 2^-(s+1), so the others leave F'E behind, about 2^-s sqrt(rows) against the
 * rows of the missing. s = 24 is the finest grid there is, and q = 4 then
 * allows 2047 rows; for 1e-9 the missing have most of them. */
#include "tests/lab/curious.h"
#include "tests/lab/figures.h"
#include "tests/lab/plant.h"
#include "tests/sites.h"
#include "lib/blas.h"

#define FEATURES 8
#define D 64
#define C 3
#define ROWS 2000
#define Q 4
#define K 6
#define CELL 3
#define MISSING 4  /* the client; cell 3 4 5 */
#define UNITS 4    /* that the server means to lift */
#define LIFT 2.0   /* so much, or less */
#define SURE 5.0   /* standard deviations from zero: a unit counts as linear */
#define QUESTION 4 /* Pi_1 */

static dafl_data data;
static dafl_pool *pool;
static uint32_t rows[ROWS], other_rows[ROWS];

static int open_data(void **state)
{
    if (open_rows(state, &data, &pool, ROWS, FEATURES, C) != 0)
        return -1;
    by_label(rows, &data);
    return 0;
}

static int close_data(void **state)
{
    return close_rows(state, &data, &pool);
}

/* ---- the plant ---- */

static double largest(const double *m)
{
    double most = 0;

    for (size_t i = 0; i < D; i++)
        most = fmax(most, fabs(m[i]));
    return most;
}

/* m of above, for those units for which Phi_0 + m' stays farthest from q, and
 * smaller if it comes near. */
static double *lifting(const dafl_projection *b)
{
    double *m = plant_lift(b, 0, UNITS), most = Q - 1.5, h;

    for (size_t first = UNITS; first < D; first += UNITS) {
        double *other = plant_lift(b, first, UNITS);
        if (largest(other) < largest(m)) {
            double *kept = m;
            m = other;
            other = kept;
        }
        free(other);
    }
    h = fmin(LIFT, most / largest(m));
    take_off(m, m, 1 - h, D);
    return m;
}

static void plant(curious *c, const dafl_query *query)
{
    dafl_projection b;
    double *m;

    if (query->layer != 0 || query->kind == DAFL_QUERY_CENSUS)
        return;
    assert_ok(dafl_model_projection(c->model, &b, 2));
    m = lifting(&b);
    if (query->kind == DAFL_QUERY_GRAM) {
        plant_head(c->model, m);
    } else {
        double *pi = curious_part(c, 2, 0), *upsilon = curious_part(c, 2, 1);
        double *f1 = plant_totals(&c->p, upsilon);
        double *n = plant_ones(&c->p, pi, f1);
        plant_block(c->model, n, m);
        free(n);
        free(f1);
        free(upsilon);
        free(pi);
    }
    free(m);
    dafl_projection_drop(&b);
}

/* ---- the attack ---- */

/* Pi_1 over everybody if all units were linear: with A = [Phi_1 1] and B =
 * [B_1; b_1'] it is B' A'A B, and A'A is made of G_1, H_1 1 and n. Units that
 * stay clear of zero are marked. */
static double *linear_pi(const curious *c, bool linear[D], size_t *n_linear)
{
    double *n = curious_part(c, 0, 0), *g = curious_part(c, 3, 0);
    double *ht = curious_part(c, 3, 1), *aa = doubles((D + 1) * (D + 1));
    double *b = doubles((D + 1) * D), *ab = doubles((D + 1) * D);
    double *pi = doubles(D * D);
    dafl_projection p;

    assert_ok(dafl_model_projection(c->model, &p, 2));
    memcpy(b, p.w, D * D * sizeof *b);
    memcpy(b + D * D, p.b, D * sizeof *b);
    dafl_projection_drop(&p);
    for (size_t i = 0; i < D * D; i++)
        aa[i / D * (D + 1) + i % D] = g[i];
    for (size_t i = 0; i < C * D; i++) {
        aa[i % D * (D + 1) + D] += ht[i];
        aa[D * (D + 1) + i % D] += ht[i];
    }
    aa[(D + 1) * (D + 1) - 1] = *n;
    dafl_gemm(ab, aa, b, D + 1, D, D + 1, 0.0);
    dafl_gemm_tn(pi, b, ab, D, D, D + 1, 0.0);
    *n_linear = 0;
    for (size_t j = 0; j < D; j++) {
        double mean = ab[D * D + j] / *n;
        double sd = sqrt(pi[j * D + j] / *n - mean * mean);
        linear[j] = mean > SURE * sd;
        *n_linear += linear[j];
    }
    free(ab);
    free(b);
    free(aa);
    free(ht);
    free(g);
    free(n);
    return pi;
}

/* Keep the rows and columns of the linear units. */
static void cut(double *pi, const bool linear[D])
{
    for (size_t i = 0; i < D * D; i++)
        if (!linear[i / D] || !linear[i % D])
            pi[i] = 0;
}

typedef struct {
    bool linear[D];
    size_t n_linear;
    double *pred, *got; /* over all, over the missing */
} loot;

static loot attack(const curious *c)
{
    loot a;
    double *without = curious_part(c, QUESTION, 0);

    a.pred = linear_pi(c, a.linear, &a.n_linear);
    a.got = doubles(D * D);
    memcpy(a.got, a.pred, D * D * sizeof *a.got);
    take_off(a.got, without, 1, D * D);
    cut(a.got, a.linear);
    cut(a.pred, a.linear);
    free(without);
    return a;
}

static void drop_loot(loot *a)
{
    free(a->pred);
    free(a->got);
}

/* How far `share` of the loot is off what these clients have; beyond the
 * average, which is `average` of the prediction, if that is not 0. */
static double compared_with(const curious *c, const loot *a, double share,
                            double average, const dafl_members *clients)
{
    double *want = curious_truth(c, QUESTION, 0, clients), off;
    double *got = doubles(D * D);

    cut(want, a->linear);
    take_off(got, a->got, -share, D * D);
    take_off(got, a->pred, average, D * D);
    take_off(want, a->pred, average, D * D);
    off = off_by(got, want, D * D);
    free(got);
    free(want);
    return off;
}

/* ---- runs ---- */

static curious server(const size_t lots[K])
{
    curious c = {.data = &data, .pool = pool, .k = K, .rows = rows};

    c.plant = plant;
    c.p = (dafl_params){
        .features = FEATURES,
        .width = D,
        .hidden = D,
        .classes = C,
        .layers = 2,
        .activation = DAFL_ACT_RELU,
        .lambda = 1,
        .gamma = 0.1,
        .schedule = DAFL_SCHEDULE_FULL,
        .contract = {.exact = true, .s = 24, .q = Q, .n_max = ROWS}};
    c.p.seed.b[0] = (uint8_t)random_u64();
    assert_ok(dafl_params_check(&c.p, NULL));
    for (size_t u = 0; u < K; u++)
        c.first[u + 1] = c.first[u] + lots[u];
    assert_int_equal(c.first[K], ROWS);
    return c;
}

static void train(curious *c, uint16_t cell_size)
{
    lab *l = curious_lab(c, cell_size, random_u64());

    lab_leave(l, MISSING, QUESTION, LAB_AT_CAST, LAB_NEXT_SLOT);
    /* What becomes of the model after that is of no interest to the server. */
    assert_true(lab_run_to(l, DAFL_MSG_MODEL, QUESTION + 1));
    lab_check_invariants(l);
    /* Nobody has refused anything. */
    assert_int_equal(lab_count(l, LAB_ANYBODY, DAFL_EVENT_ERROR, DAFL_E_MODEL),
                     0);
    assert_int_equal(dafl_members_count(&c->sums[3].cohort), K);
    assert_int_equal(dafl_members_count(&c->sums[QUESTION].cohort),
                     K - cell_size);
    lab_free(&l);
}

static dafl_members clients(size_t from, size_t to)
{
    dafl_members m = dafl_members_none(K);

    for (size_t u = from; u < to; u++)
        dafl_members_add(&m, u);
    return m;
}

static void without_cells_a_client_is_exposed(void **state)
{
    static const size_t lots[K] = {50, 50, 50, 50, 1750, 50};
    curious c = server(lots);
    dafl_members missing = clients(MISSING, MISSING + 1);
    double share = (double)lots[MISSING] / ROWS, off, beyond;
    loot a;

    (void)state;
    train(&c, 1);
    a = attack(&c);
    off = compared_with(&c, &a, 1, 0, &missing);
    beyond = compared_with(&c, &a, 1, share, &missing);
    print_message("L11 g = 1: %zu linear units, a client's block of Pi_1 off "
                  "by %.1e, what it has beyond the average by %.1e\n",
                  a.n_linear, off, beyond);
    assert_true(a.n_linear >= UNITS);
    assert_true(off < 1e-9);
    drop_loot(&a);
    curious_drop(&c);
}

static void with_cells_only_the_cell_is(void **state)
{
    static const size_t lots[K] = {50, 50, 50, 616, 617, 617};
    curious c = server(lots), again = c;
    dafl_members cell = clients(CELL, 2 * CELL);
    double off, nearest = INFINITY;
    loot a;

    (void)state;
    train(&c, CELL);
    a = attack(&c);
    off = compared_with(&c, &a, 1, 0, &cell);
    for (size_t u = CELL; u < 2 * CELL; u++) {
        dafl_members member = clients(u, u + 1);
        nearest = fmin(nearest, compared_with(&c, &a, 1.0 / CELL, 0, &member));
    }
    print_message("L11 cells of %d: %zu linear units, the cell's block of Pi_1 "
                  "off by %.1e; its share from the nearest member's by %.1e\n",
                  CELL, a.n_linear, off, nearest);
    assert_true(a.n_linear >= UNITS);
    assert_true(off < 1e-9);
    assert_true(nearest > 1e-3);
    drop_loot(&a);

    /* Nothing below: with other rows for each member the server has the same,
     * to the last bit. */
    memcpy(other_rows, rows, sizeof rows);
    again.rows = other_rows;
    deal_again(other_rows, again.first, CELL, 2 * CELL);
    train(&again, CELL);
    assert_true(curious_same(&c, &again));
    curious_drop(&again);
    curious_drop(&c);
}

/* What the plant is for. */
static void an_honest_model_has_no_linear_units(void **state)
{
    static const size_t lots[K] = {50, 50, 50, 50, 1750, 50};
    curious c = server(lots);
    loot a;

    (void)state;
    c.plant = NULL;
    train(&c, 1);
    a = attack(&c);
    print_message("L11 g = 1, honest model: %zu linear units\n", a.n_linear);
    assert_true(a.n_linear == 0);
    drop_loot(&a);
    curious_drop(&c);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, open_data, close_data)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(without_cells_a_client_is_exposed),
        CASE(with_cells_only_the_cell_is),
        CASE(an_honest_model_has_no_linear_units),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
