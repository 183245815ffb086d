/* SPDX-License-Identifier: Apache-2.0 */
/* The paper's theorems, on random data, sizes and activations.
 * DEEPAFL_TEST_SEED replays a run. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tests/reference/run.h"

#define TRIALS 12
#define LAYERS_MAX 10

static uint64_t seed;
static dafl_draw draw;

static size_t between(size_t least, size_t most)
{
    return least + (size_t)dafl_draw_below(&draw, most - least + 1);
}

static double normal(void)
{
    double u = dafl_draw_unit(&draw), v = dafl_draw_unit(&draw);

    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* Random rows around a random centre per class, and who holds them. */
typedef struct {
    dafl_data data;
    double *x;
    uint32_t *rows, *order;
    size_t *first;
} world;

static void world_new(world *w, size_t n, size_t features, size_t classes)
{
    double *centre = test_malloc(classes * features * sizeof *centre);

    *w = (world){.data = {.path = "random", .n = n, .classes = classes}};
    w->x = test_malloc(n * features * sizeof *w->x);
    w->data.y = test_malloc(n * sizeof *w->data.y);
    w->rows = test_malloc(n * sizeof *w->rows);
    w->order = test_malloc(n * sizeof *w->order);
    w->first = test_malloc((n + 1) * sizeof *w->first);
    for (size_t i = 0; i < classes * features; i++)
        centre[i] = normal();
    for (size_t i = 0; i < n; i++) {
        w->data.y[i] = (uint32_t)between(0, classes - 1);
        for (size_t c = 0; c < features; c++)
            w->x[i * features + c] =
                normal() + centre[w->data.y[i] * features + c];
    }
    w->data.x = (dafl_npy){.type = DAFL_NPY_F64,
                           .n_dims = 2,
                           .rows = n,
                           .cols = features,
                           .data = (const uint8_t *)w->x};
    test_free(centre);
}

static void world_drop(world *w)
{
    test_free(w->x);
    test_free(w->data.y);
    test_free(w->rows);
    test_free(w->order);
    test_free(w->first);
}

/* All rows in a drawn order, cut at drawn places: any partition, sites without
 * rows among them. One site holds the rows as they are. */
static deal deal_out(world *w, size_t n_sites)
{
    size_t n = w->data.n;

    for (size_t i = 0; i < n; i++)
        w->rows[i] = (uint32_t)i;
    for (size_t k = 0; k < n_sites; k++)
        w->order[k] = (uint32_t)k;
    for (size_t k = 0; k <= n_sites; k++)
        w->first[k] = k == 0 ? 0 : k == n_sites ? n : between(0, n);
    for (size_t k = 1; k < n_sites; k++) /* insertion sort */
        for (size_t i = k; i > 1 && w->first[i] < w->first[i - 1]; i--) {
            size_t swap = w->first[i];
            w->first[i] = w->first[i - 1];
            w->first[i - 1] = swap;
        }
    if (n_sites > 1) {
        dafl_draw_shuffle(&draw, w->rows, n);
        dafl_draw_shuffle(&draw, w->order, n_sites);
    }
    return (deal){n_sites, w->rows, w->first, w->order, NULL};
}

static dafl_params random_params(const world *w, bool exact)
{
    dafl_params p = {.features = w->data.x.cols,
                     .classes = w->data.classes,
                     .width = between(5, 60),
                     .hidden = between(5, 60),
                     .layers = between(3, LAYERS_MAX),
                     .activation =
                         (dafl_activation)between(0, DAFL_ACT_COUNT - 1),
                     .schedule = (dafl_schedule)between(0, 1),
                     .lambda = pow(10, (double)between(0, 3) - 2),
                     .gamma = pow(10, (double)between(0, 3) - 2),
                     .contract = DAFL_CONTRACT_DEFAULT};

    p.contract.exact = exact;
    p.seed.b[0] = (uint8_t)between(0, 255);
    return p;
}

/* Train anew; facts and print as run_training has them. */
static dafl_model *train(const dafl_params *params, const world *w,
                         const deal *d, unsigned threads, layer_facts *facts,
                         uint64_t *print)
{
    dafl_params p = *params;
    dafl_model *model = NULL;
    dafl_pool *pool = NULL;
    dafl_why why = {{0}};
    dafl_err err = dafl_params_check(&p, &why);

    assert_int_equal(err, DAFL_OK);
    assert_int_equal(dafl_model_new(&model, &p), DAFL_OK);
    assert_int_equal(dafl_pool_new(&pool, threads), DAFL_OK);
    err = run_training(model, pool, &w->data, d, facts, print, &why);
    if (err != DAFL_OK)
        print_error("%s: %s\n", dafl_err_name(err), why.text);
    assert_int_equal(err, DAFL_OK);
    dafl_pool_free(&pool);
    return model;
}

static void describe(const dafl_params *p, size_t n, size_t sites)
{
    print_message("  N %3zu, d0 %2zu, d %2zu, dF %2zu, C %2zu, T %2zu, %s, %s, "
                  "lambda %g, gamma %g, %zu sites\n",
                  n, p->features, p->width, p->hidden, p->classes, p->layers,
                  dafl_activation_name(p->activation),
                  dafl_schedule_name(p->schedule), p->lambda, p->gamma, sites);
}

static double square(const double *x, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sum;
}

static void assert_same_bits(const double *a, const double *b, size_t n)
{
    assert_memory_equal(a, b, n * sizeof *a);
}

static void assert_same_model(const dafl_model *a, const dafl_model *b)
{
    const dafl_params *p = &a->params;

    for (size_t t = 0; t <= p->layers; t++) {
        size_t r = a->heads[t].rank;
        assert_int_equal(r, b->heads[t].rank);
        assert_same_bits(a->heads[t].u, b->heads[t].u, p->width * r);
        assert_same_bits(a->heads[t].m, b->heads[t].m, r * p->classes);
        assert_same_bits(a->heads[t].w, b->heads[t].w, p->width * p->classes);
        if (t < p->layers)
            assert_same_bits(a->blocks[t].n, b->blocks[t].n, p->hidden * r);
    }
}

static void theorem_1_any_partition_gives_the_same_bits(void **state)
{
    (void)state;
    for (int trial = 0; trial < TRIALS; trial++) {
        world w;
        uint64_t print, again;
        world_new(&w, between(20, 900), between(3, 20), between(2, 10));
        dafl_params p = random_params(&w, true);
        p.contract.q = 64; /* small penalties make large blocks */
        p.layers = 4;
        deal d = deal_out(&w, 1);
        dafl_model *one = train(&p, &w, &d, 1, NULL, &print);
        for (unsigned i = 0; i < 3; i++) {
            d = deal_out(&w, between(2, 20));
            describe(&p, w.data.n, d.n_sites);
            dafl_model *many = train(&p, &w, &d, 1 + i, NULL, &again);
            assert_int_equal(print, again);
            assert_same_model(one, many);
            dafl_model_free(&many);
        }
        dafl_model_free(&one);
        world_drop(&w);
    }
}

/* The trainer's own statement of the risk, from sums, is that of the rows. */
static void assert_risk_stated(const layer_facts *f, double tolerance)
{
    assert_true(f->said.known);
    if (!(fabs(f->said.risk - f->risk) <= tolerance))
        fail_msg("risk %.17g stated as %.17g", f->risk, f->said.risk);
}

/* What rounding may add to a risk of layer t. W has a backward error: it solves
 * (G + lambda I + E) W = H with ||E|| <= c d eps ||G + lambda I||, so it misses
 * the least objective by tr W'E (G + lambda I)^-1 E W, at most
 * (c d eps)^2 cond ||G + lambda I|| ||W||^2; where cond is beyond 1 / (d eps)
 * the solver cuts the spectrum there, so that is below c d eps (tr G + lambda)
 * ||W||^2. Evaluating the risk adds c d eps (N + tr G ||W||^2). A G carried
 * forward by increments has in it, from each block, the rounding of Z'Z = N'Pi
 * N, c dF eps tr Pi ||N||^2 (`carried` is the sum of these without c eps). c
 * = 4. */
static double slack(const dafl_params *p, const layer_facts *f, size_t t,
                    size_t n, double w2, double carried)
{
    double d = (double)(p->width + p->classes);

    return 4 * DBL_EPSILON *
           ((double)(t + 1) * d * ((double)n + (f->trace + p->lambda) * w2) +
            (p->schedule == DAFL_SCHEDULE_DELTA ? carried * w2 : 0));
}

/* Theorems 2 and 3: risk + lambda ||W||^2 + gamma sum ||Omega||^2 (only the
 * risk when both are 0) never increases. Returns the largest increase over
 * the slack. */
static double assert_never_increases(const dafl_params *p, world *w,
                                     size_t n_sites)
{
    layer_facts facts[LAYERS_MAX + 1];
    deal d = deal_out(w, n_sites);
    dafl_model *model = train(p, w, &d, 2, facts, NULL);
    double paid = 0, carried = 0, before = INFINITY, worst = 0;

    for (size_t t = 0; t <= p->layers; t++) {
        double w2 = square(model->heads[t].w, p->width * p->classes);
        double allowed = slack(p, &facts[t], t, w->data.n, w2, carried);
        double now = facts[t].risk + p->lambda * w2 + paid;
        assert_true(isfinite(now));
        worst = fmax(worst, (now - before) / allowed);
        if (!(now <= before + allowed))
            fail_msg("layer %zu: from %.17g to %.17g", t, before, now);
        assert_risk_stated(&facts[t], allowed);
        if (!(fabs(facts[t].said.regularised_risk - now) <= allowed))
            fail_msg("regularised risk %.17g stated as %.17g", now,
                     facts[t].said.regularised_risk);
        before = now;
        if (t < p->layers) {
            double n2 =
                square(model->blocks[t].n, p->hidden * model->blocks[t].rank);
            paid += p->gamma * n2;
            carried += (double)p->hidden * facts[t].pi_trace * n2;
        }
    }
    print_message(
        "    %.6g at layer 0, %.6g at layer %zu; largest step up %.2g "
        "of what is allowed\n",
        facts[0].risk, facts[p->layers].risk, p->layers, worst);
    dafl_model_free(&model);
    return worst;
}

static void theorem_2_risk_never_increases_without_penalties(void **state)
{
    (void)state;
    for (int trial = 0; trial < TRIALS; trial++) {
        world w;
        world_new(&w, between(150, 500), between(3, 20), between(2, 10));
        dafl_params p = random_params(&w, false);
        size_t sites = between(1, 5);
        p.lambda = p.gamma = 0;
        describe(&p, w.data.n, sites);
        (void)assert_never_increases(&p, &w, sites);
        world_drop(&w);
    }
}

static void theorem_3_regularised_risk_never_increases(void **state)
{
    (void)state;
    for (int trial = 0; trial < 2 * TRIALS; trial++) {
        world w;
        world_new(&w, between(10, 500), between(3, 20), between(2, 10));
        dafl_params p = random_params(&w, false);
        size_t sites = between(1, 5);
        describe(&p, w.data.n, sites);
        (void)assert_never_increases(&p, &w, sites);
        world_drop(&w);
    }
}

/* Fewer rows than features: G and Pi are singular. The theorems still hold, and
 * without lambda rows in general position are fitted perfectly, up to what
 * cutting the spectrum at d eps leaves. */
static void singular_sums_without_penalties_are_solved(void **state)
{
    (void)state;
    for (int trial = 0; trial < 2 * TRIALS; trial++) {
        world w;
        layer_facts facts[LAYERS_MAX + 1];
        world_new(&w, between(3, 25), between(3, 20), between(2, 10));
        dafl_params p = random_params(&w, false);
        size_t sites = between(1, 3);
        p.width = between(30, 60);
        p.hidden = between(30, 60);
        p.lambda = trial % 3 == 0 ? p.lambda : 0;
        p.gamma = trial % 3 == 1 ? p.gamma : 0;
        describe(&p, w.data.n, sites);
        (void)assert_never_increases(&p, &w, sites);
        deal d = deal_out(&w, sites);
        dafl_model *model = train(&p, &w, &d, 1, facts, NULL);
        for (size_t t = 0; p.lambda == 0 && t <= p.layers; t++)
            assert_true(facts[t].risk <= 1e-6 * (double)w.data.n);
        dafl_model_free(&model);
        world_drop(&w);
    }
}

/* The scores of n rows at the last layer. */
static double *score(const dafl_model *model, const world *w,
                     const uint32_t *rows, size_t n)
{
    const dafl_params *p = &model->params;
    double *scores = test_malloc(n * p->classes * sizeof *scores);
    dafl_pool *pool = NULL;
    dafl_site *site = NULL;
    dafl_projection m;

    assert_int_equal(dafl_pool_new(&pool, 1), DAFL_OK);
    for (size_t k = 0; k <= p->layers; k++) {
        assert_int_equal(dafl_model_projection(model, &m, k), DAFL_OK);
        if (k == 0) {
            assert_int_equal(
                dafl_site_new(&site, p, pool, &w->data, rows, n, &m, NULL),
                DAFL_OK);
        } else {
            const dafl_head *head = &model->heads[k - 1];
            assert_int_equal(dafl_site_hidden(site, head, &m, NULL, NULL),
                             DAFL_OK);
            assert_int_equal(dafl_site_advance(
                                 site, head, &model->blocks[k - 1], NULL, NULL),
                             DAFL_OK);
        }
        dafl_projection_drop(&m);
    }
    assert_int_equal(
        dafl_site_score(site, &model->heads[p->layers], scores, NULL), DAFL_OK);
    dafl_site_free(&site);
    dafl_pool_free(&pool);
    return scores;
}

/* What Theorem 1 rests on; without a grid no rounding hides a different bit. */
static void a_row_has_the_same_bits_in_any_company(void **state)
{
    (void)state;
    for (int trial = 0; trial < TRIALS; trial++) {
        world w;
        world_new(&w, between(400, 900), between(3, 70), between(2, 10));
        dafl_params p = random_params(&w, false);
        p.width = between(30, 300);
        p.hidden = between(30, 300);
        p.layers = 2;
        deal d = deal_out(&w, 1);
        dafl_model *model = train(&p, &w, &d, 1, NULL, NULL);
        double *whole = score(model, &w, w.rows, w.data.n);
        for (int i = 0; i < 4; i++) {
            size_t n = between(1, w.data.n);
            dafl_draw_shuffle(&draw, w.rows, w.data.n);
            double *some = score(model, &w, w.rows, n);
            for (size_t r = 0; r < n; r++)
                assert_same_bits(some + r * p.classes,
                                 whole + w.rows[r] * p.classes, p.classes);
            test_free(some);
        }
        test_free(whole);
        dafl_model_free(&model);
        world_drop(&w);
    }
}

static int announce(void **state)
{
    dafl_seed s = {{0}};

    (void)state;
    memcpy(s.b, &seed, sizeof seed);
    dafl_draw_init(&draw, &s, DAFL_STREAM_SIMULATION, 0);
    print_message("DEEPAFL_TEST_SEED=%" PRIu64 "\n", seed);
    return 0;
}

int main(void)
{
    const char *given = getenv("DEEPAFL_TEST_SEED");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(theorem_1_any_partition_gives_the_same_bits,
                               announce),
        cmocka_unit_test_setup(theorem_2_risk_never_increases_without_penalties,
                               announce),
        cmocka_unit_test_setup(theorem_3_regularised_risk_never_increases,
                               announce),
        cmocka_unit_test_setup(a_row_has_the_same_bits_in_any_company,
                               announce),
        cmocka_unit_test_setup(singular_sums_without_penalties_are_solved,
                               announce),
    };

    seed = given == NULL ? (uint64_t)time(NULL) : strtoull(given, NULL, 10);
    return cmocka_run_group_tests_name("theorems", tests, NULL, NULL);
}
