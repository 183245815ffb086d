/* SPDX-License-Identifier: Apache-2.0 */
/* A small federation for tests: random rows, dealt to sites, that answer the
 * queries of a trainer. */
#ifndef DAFL_TESTS_SITES_H
#define DAFL_TESTS_SITES_H

#include <stdbool.h>

#include "tests/check.h"
#include "lib/npy.h"
#include "lib/site.h"
#include "lib/trainer.h"

#define SITES_MAX 8

/* Rows with one centre per class, so that there is something to learn, in
 * x.npy and y.npy of the test's directory. */
CHECK_HELPER dafl_data random_data(size_t n, size_t features, size_t classes)
{
    double *x = random_doubles(n * features);
    int64_t *y = calloc(n, sizeof *y);
    dafl_data data;

    assert_non_null(y);
    for (size_t i = 0; i < n; i++) {
        y[i] = (int64_t)random_size(0, classes - 1);
        x[i * features + (size_t)y[i] % features] += 1;
    }
    assert_ok(
        dafl_npy_write(at("x.npy"), DAFL_NPY_F64, 2, n, features, x, NULL));
    assert_ok(dafl_npy_write(at("y.npy"), DAFL_NPY_I64, 1, n, 1, y, NULL));
    assert_ok(dafl_data_open(&data, at("x.npy"), at("y.npy"), classes, NULL));
    free(y);
    free(x);
    return data;
}

/* Around a case: random rows in a directory of its own, and a pool. */
CHECK_HELPER int open_rows(void **state, dafl_data *data, dafl_pool **pool,
                           size_t n, size_t features, size_t classes)
{
    if (make_dir(state) != 0)
        return -1;
    *data = random_data(n, features, classes);
    assert_ok(dafl_pool_new(pool, 1));
    return 0;
}

CHECK_HELPER int close_rows(void **state, dafl_data *data, dafl_pool **pool)
{
    dafl_pool_free(pool);
    dafl_data_close(data);
    return remove_dir(state);
}

typedef struct {
    size_t n;
    dafl_model *model; /* borrowed */
    dafl_site *sites[SITES_MAX];
} crew;

/* The rows, shuffled and cut at random places into n sites, maybe empty. */
CHECK_HELPER crew make_crew(dafl_model *model, dafl_pool *pool,
                            const dafl_data *data, size_t n)
{
    crew c = {.n = n, .model = model};
    uint32_t *rows = calloc(data->n, sizeof *rows);
    dafl_projection first = {0};
    bool afl = model->params.method == DAFL_METHOD_AFL;
    size_t from = 0;

    assert_non_null(rows);
    for (size_t i = 0; i < data->n; i++) {
        size_t j = random_size(0, i);

        rows[i] = rows[j];
        rows[j] = (uint32_t)i;
    }
    if (!afl)
        assert_ok(dafl_model_projection(model, &first, 0));
    for (size_t k = 0; k < n; k++) {
        size_t to = k + 1 == n ? data->n : random_size(from, data->n);

        assert_ok(dafl_site_new(&c.sites[k], &model->params, pool, data,
                                rows + from, to - from, afl ? NULL : &first,
                                NULL));
        from = to;
    }
    dafl_projection_drop(&first);
    free(rows);
    return c;
}

/* One site with one row. */
CHECK_HELPER crew crew_of_row(dafl_model *model, dafl_pool *pool,
                              const dafl_data *data, uint32_t row)
{
    crew c = {.n = 1, .model = model};
    dafl_projection first;

    assert_ok(dafl_model_projection(model, &first, 0));
    assert_ok(dafl_site_new(&c.sites[0], &model->params, pool, data, &row, 1,
                            &first, NULL));
    dafl_projection_drop(&first);
    return c;
}

CHECK_HELPER void drop_crew(crew *c)
{
    for (size_t k = 0; k < c->n; k++)
        dafl_site_free(&c->sites[k]);
}

/* The projection that a query needs; drop it. */
CHECK_HELPER dafl_projection projection_for(const dafl_model *model,
                                            const dafl_query *query)
{
    dafl_projection m = {0};
    bool omega = model->params.ablate == DAFL_ABLATE_OMEGA;

    if (query->kind == DAFL_QUERY_RESIDUAL)
        assert_ok(dafl_model_projection(model, &m, query->layer + 1));
    else if (query->kind == DAFL_QUERY_GRAM && omega && query->layer > 0)
        assert_ok(dafl_model_projection(model, &m, query->layer));
    return m;
}

CHECK_HELPER dafl_sum empty_sum(const dafl_params *p, const dafl_query *query)
{
    dafl_layout layout;
    dafl_sum sum;

    dafl_query_layout(&layout, p, query);
    assert_ok(dafl_sum_init(&sum, layout.len, p->contract.exact));
    return sum;
}

/* What all sites answer, added up; drop it. */
CHECK_HELPER dafl_sum ask(crew *c, const dafl_query *query)
{
    dafl_projection m = projection_for(c->model, query);
    dafl_sum sum = empty_sum(&c->model->params, query);

    for (size_t k = 0; k < c->n; k++) {
        dafl_sum part = empty_sum(&c->model->params, query);
        dafl_why why = {""};

        if (dafl_site_answer(c->sites[k], c->model, query, &m, &part, &why) !=
            DAFL_OK)
            fail_msg("%s", why.text);
        dafl_sum_add(&sum, &part);
        dafl_sum_drop(&part);
    }
    dafl_projection_drop(&m);
    return sum;
}

CHECK_HELPER dafl_params small_params(void)
{
    return (dafl_params){.features = 7,
                         .width = 20,
                         .hidden = 20,
                         .classes = 4,
                         .layers = 2,
                         .lambda = 1,
                         .gamma = 0.1,
                         .seed = {{42}},
                         .contract = DAFL_CONTRACT_DEFAULT};
}

#endif
