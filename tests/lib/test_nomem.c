/* SPDX-License-Identifier: Apache-2.0 */
/* Linked with --wrap: the k-th allocation fails, for each k until there are no
 * more. Every time a clean error, and a sanitizer sees that nothing leaked. */
#include <jansson.h>

#include "tests/sites.h"
#include "lib/blas.h"

void *__wrap_malloc(size_t len);
void *__real_malloc(size_t len);
void *__wrap_calloc(size_t n, size_t len);
void *__real_calloc(size_t n, size_t len);
int __wrap_posix_memalign(void **out, size_t alignment, size_t len);
int __real_posix_memalign(void **out, size_t alignment, size_t len);

/* Allocations left until one fails; none does while it is negative. Volatile,
 * because compilers know that malloc() changes no variable. */
static volatile long left = -1;
static volatile bool failed;

static bool fails(void)
{
    if (left < 0)
        return false;
    if (left > 0) {
        left--;
        return false;
    }
    left = -1;
    failed = true;
    return true;
}

void *__wrap_malloc(size_t len)
{
    return fails() ? NULL : __real_malloc(len);
}

void *__wrap_calloc(size_t n, size_t len)
{
    return fails() ? NULL : __real_calloc(n, len);
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t len)
{
    return fails() ? 12 : __real_posix_memalign(out, alignment, len);
}

typedef dafl_err work_fn(void *ctx);

typedef enum {
    NOMEM_ONLY, /* DAFL_ERR_NOMEM */
    ANY_ERROR,  /* jansson does not say why it failed */
    OR_NONE,    /* what failed was not needed for the result */
} expected;

/* Run `work` with its first, second, .. allocation failing, until none does.
 * Returns how many there were. */
static size_t fail_each(work_fn *work, void *ctx, expected expect)
{
    for (long k = 0;; k++) {
        dafl_err err;

        failed = false;
        left = k;
        err = work(ctx);
        left = -1;
        if (!failed) {
            assert_int_equal(err, DAFL_OK);
            return (size_t)k;
        }
        if (expect == NOMEM_ONLY ? err != DAFL_ERR_NOMEM
                                 : expect == ANY_ERROR && err == DAFL_OK)
            fail_msg("allocation %ld failed: %s", k, dafl_err_name(err));
    }
}

/* ---- files ---- */

static dafl_err open_data(void *ctx)
{
    dafl_data data;
    dafl_err err = dafl_data_open(&data, at("x.npy"), at("y.npy"), 0, NULL);

    (void)ctx;
    if (err == DAFL_OK)
        dafl_data_close(&data);
    return err;
}

static void opening_data_survives(void **state)
{
    dafl_data data = random_data(20, 3, 3);

    (void)state;
    dafl_data_close(&data);
    assert_true(fail_each(open_data, NULL, NOMEM_ONLY) >= 2);
}

/* All of the file or nothing. */
static dafl_err save(void *ctx)
{
    dafl_err err = dafl_model_save(ctx, at("model"), NULL);
    dafl_model *again = NULL;

    assert_int_equal(count_names(0), err == DAFL_OK ? 1 : 0);
    if (err == DAFL_OK) {
        left = -1;
        assert_ok(dafl_model_load(&again, at("model"), NULL));
        dafl_model_free(&again);
        assert_int_equal(unlink(at("model")), 0);
    }
    return err;
}

static dafl_err load(void *ctx)
{
    dafl_model *model = NULL;
    dafl_err err = dafl_model_load(&model, ctx, NULL);

    assert_int_equal(err == DAFL_OK, model != NULL);
    dafl_model_free(&model);
    return err;
}

static dafl_err read_projections(void *ctx)
{
    dafl_model *model = NULL;
    dafl_err err = dafl_model_new(&model, ctx);

    if (err == DAFL_OK)
        err = dafl_model_read_projections(model, dir, NULL);
    dafl_model_free(&model);
    return err;
}

/* A model with projections of its own, so that every branch allocates. */
static void saving_and_loading_a_model_survive(void **state)
{
    dafl_params p = small_params();
    dafl_model *model = NULL;
    double *x = random_doubles(20 * 20);

    (void)state;
    assert_ok(dafl_params_check(&p, NULL));
    assert_ok(dafl_model_new(&model, &p));
    for (size_t k = 0; k <= p.layers; k++) {
        dafl_projection m;

        assert_ok(dafl_projection_draw(&m, &p, k));
        assert_ok(dafl_projection_write(&m, dir, k, NULL));
        dafl_projection_drop(&m);
        assert_ok(dafl_model_add_head(model, x, x, 3));
        if (k < p.layers)
            assert_ok(dafl_model_add_block(model, x, 3));
    }
    assert_true(fail_each(read_projections, &p, NOMEM_ONLY) >= 9);
    assert_ok(dafl_model_read_projections(model, dir, NULL));
    (void)count_names(1);
    assert_true(fail_each(save, model, OR_NONE) >= 3);
    assert_ok(dafl_model_save(model, at("model"), NULL));
    assert_true(fail_each(load, (void *)(uintptr_t)at("model"), ANY_ERROR) >=
                10);
    dafl_model_free(&model);
    free(x);
}

/* ---- a whole training, step by step ---- */

typedef struct {
    dafl_params *p;
    dafl_model *model; /* trained: read only */
    dafl_data *data;
    dafl_set *all;
} training;

/* Everything a site does, with a pool of its own. */
static dafl_err be_a_site(void *ctx)
{
    const training *t = ctx;
    dafl_pool *pool = NULL;
    dafl_site *site = NULL;
    dafl_projection m = {0};
    dafl_sum gram = {0}, residual = {0}, increment = {0};
    dafl_query query = {.kind = DAFL_QUERY_GRAM};
    dafl_layout layout;
    dafl_err err = dafl_pool_new(&pool, 1);

    if (err == DAFL_OK)
        err = dafl_projection_draw(&m, t->p, 0);
    if (err == DAFL_OK)
        err = dafl_site_new(&site, t->p, pool, t->data, NULL, t->data->n, &m,
                            NULL);
    dafl_projection_drop(&m);
    dafl_query_layout(&layout, t->p, &query);
    if (err == DAFL_OK)
        err = dafl_sum_init(&gram, layout.len, true);
    if (err == DAFL_OK)
        err = dafl_site_gram(site, &gram, NULL);
    query.kind = DAFL_QUERY_RESIDUAL;
    dafl_query_layout(&layout, t->p, &query);
    if (err == DAFL_OK)
        err = dafl_sum_init(&residual, layout.len, true);
    if (err == DAFL_OK)
        err = dafl_projection_draw(&m, t->p, 1);
    if (err == DAFL_OK)
        err = dafl_site_hidden(site, &t->model->heads[0], &m, &residual, NULL);
    dafl_projection_drop(&m);
    query = (dafl_query){DAFL_QUERY_INCREMENT, 1, t->model->blocks[0].rank};
    dafl_query_layout(&layout, t->p, &query);
    if (err == DAFL_OK)
        err = dafl_sum_init(&increment, layout.len, true);
    if (err == DAFL_OK)
        err = dafl_site_advance(site, &t->model->heads[0], &t->model->blocks[0],
                                &increment, NULL);
    if (err == DAFL_OK)
        err = dafl_site_score(site, &t->model->heads[1], NULL, NULL);
    dafl_sum_drop(&increment);
    dafl_sum_drop(&residual);
    dafl_sum_drop(&gram);
    dafl_site_free(&site);
    dafl_pool_free(&pool);
    return err;
}

/* A trainer that gets to query number `upto` without trouble and then takes
 * that one. */
typedef struct {
    const training *t;
    const dafl_sum *sums;
    size_t upto;
} taking;

static dafl_err take(void *ctx)
{
    const taking *k = ctx;
    dafl_model *model = NULL;
    dafl_trainer *trainer = NULL;
    dafl_err err = DAFL_OK;
    long armed = left;

    left = -1;
    assert_ok(dafl_model_new(&model, k->t->p));
    assert_ok(dafl_trainer_new(&trainer, model, 1));
    for (size_t i = 0; i <= k->upto; i++) {
        dafl_query query;

        dafl_trainer_next(trainer, &query, k->t->all);
        left = i == k->upto ? armed : -1;
        err = dafl_trainer_take(trainer, &query, &k->sums[i], k->t->all, NULL);
        left = -1;
        if (i < k->upto)
            assert_ok(err);
        else if (err != DAFL_OK)
            assert_ok(dafl_trainer_take(trainer, &query, &k->sums[i], k->t->all,
                                        NULL));
    }
    dafl_trainer_free(&trainer);
    dafl_model_free(&model);
    return err;
}

static dafl_err make_trainer(void *ctx)
{
    const training *t = ctx;
    dafl_model *model = NULL;
    dafl_trainer *trainer = NULL;
    dafl_err err = dafl_model_new(&model, t->p);

    if (err == DAFL_OK)
        err = dafl_trainer_new(&trainer, model, 5);
    dafl_trainer_free(&trainer);
    dafl_model_free(&model);
    return err;
}

static void assert_training_survives(dafl_params p)
{
    enum { MOST = 12 };
    dafl_data data = random_data(40, 7, 4);
    training t = {.p = &p, .data = &data};
    dafl_trainer *trainer = NULL;
    dafl_pool *pool = NULL;
    dafl_query query;
    dafl_sum sums[MOST];
    dafl_set all;
    size_t n = 0;
    crew c;

    assert_ok(dafl_params_check(&p, NULL));
    assert_ok(dafl_model_new(&t.model, &p));
    assert_ok(dafl_trainer_new(&trainer, t.model, 1));
    assert_ok(dafl_pool_new(&pool, 1));
    assert_ok(dafl_set_init(&all, 1));
    dafl_set_add(&all, 0);
    t.all = &all;
    c = make_crew(t.model, pool, &data, 1);
    for (dafl_trainer_next(trainer, &query, &all);
         query.kind != DAFL_QUERY_DONE;
         dafl_trainer_next(trainer, &query, &all)) {
        assert_true(n < MOST);
        sums[n] = ask(&c, &query);
        assert_ok(dafl_trainer_take(trainer, &query, &sums[n++], &all, NULL));
    }
    for (size_t i = 0; i < n; i++) {
        taking k = {.t = &t, .sums = sums, .upto = i};
        size_t allocations = fail_each(take, &k, NOMEM_ONLY);

        /* The census and the report need none. */
        assert_int_equal(allocations > 0, i > 0 && i + 1 < n);
    }
    assert_true(fail_each(make_trainer, &t, NOMEM_ONLY) > 10);
    if (p.ablate == DAFL_ABLATE_NOTHING)
        assert_true(fail_each(be_a_site, &t, NOMEM_ONLY) > 20);
    for (size_t i = 0; i < n; i++)
        dafl_sum_drop(&sums[i]);
    drop_crew(&c);
    dafl_set_drop(&all);
    dafl_pool_free(&pool);
    dafl_trainer_free(&trainer);
    dafl_model_free(&t.model);
    dafl_data_close(&data);
}

static void sites_and_trainers_survive(void **state)
{
    dafl_params p = small_params();

    (void)state;
    assert_training_survives(p);
    p.gamma = p.lambda = 0; /* the ways that need eigenvectors */
    p.width = p.hidden = 50;
    assert_training_survives(p);
    p.schedule = DAFL_SCHEDULE_FULL;
    assert_training_survives(p);
}

static void training_without_omega_survives(void **state)
{
    dafl_params p = small_params();

    (void)state;
    p.ablate = DAFL_ABLATE_OMEGA;
    assert_training_survives(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE_IN_DIR(opening_data_survives),
        CASE_IN_DIR(saving_and_loading_a_model_survive),
        CASE_IN_DIR(sites_and_trainers_survive),
        CASE_IN_DIR(training_without_omega_survives),
    };

    json_set_alloc_funcs(__wrap_malloc, free);
    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
