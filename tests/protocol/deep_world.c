/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/protocol/deep_world.h"

#include "tests/sites.h"

static dafl_data data;
static dafl_pool *pool;

int open_world(void **state)
{
    return open_rows(state, &data, &pool, ROWS + HELD, 7, 4);
}

int close_world(void **state)
{
    return close_rows(state, &data, &pool);
}

dafl_params params(void)
{
    dafl_params p = {.features = 7,
                     .width = 12,
                     .hidden = 12,
                     .classes = 4,
                     .layers = LAYERS,
                     .lambda = 0.5,
                     .gamma = 0.1,
                     .contract = DAFL_CONTRACT_DEFAULT};

    p.seed.b[0] = (uint8_t)random_u64();
    assert_ok(dafl_params_check(&p, NULL));
    return p;
}

dafl_err found(void *ctx, const dafl_params *p, const dafl_projection *first,
               dafl_site **site, dafl_site **held, dafl_digest *rows,
               dafl_why *why)
{
    plot *at_plot = ctx;

    if (at_plot->gone)
        return DAFL_ERR_INPUT;
    at_plot->founded++;
    assert_ok(dafl_deep_digest(rows, &data, at_plot->rows, at_plot->n));
    DAFL_TRY(dafl_site_new(site, p, pool, &data, at_plot->rows, at_plot->n,
                           first, why));
    if (at_plot->n_held > 0)
        assert_ok(dafl_site_new(held, p, pool, &data, at_plot->held,
                                at_plot->n_held, first, why));
    return DAFL_OK;
}

dafl_deep_client *new_client(const dafl_params *p, plot *at_plot)
{
    dafl_deep_client *c = NULL;

    assert_ok(dafl_deep_client_new(&c, p, found, NULL, at_plot, NULL));
    dafl_deep_client_allow(c, true, true);
    return c;
}

world *new_world(const dafl_params *p, size_t n)
{
    world *w = calloc(1, sizeof *w);
    size_t from = 0;

    assert_non_null(w);
    w->p = *p;
    w->n = n;
    for (uint32_t i = 0; i < ROWS; i++) {
        size_t j = random_size(0, i);

        w->rows[i] = w->rows[j];
        w->rows[j] = i;
    }
    for (uint32_t i = 0; i < HELD; i++)
        w->held[i] = ROWS + i;
    for (size_t k = 0; k < n; k++) {
        size_t to = k + 1 == n ? ROWS : random_size(from, ROWS);

        w->plots[k] = (plot){.rows = w->rows + from, .n = to - from};
        if (k == 0) {
            w->plots[k].held = w->held;
            w->plots[k].n_held = HELD;
        }
        w->clients[k] = new_client(&w->p, &w->plots[k]);
        from = to;
    }
    assert_ok(dafl_model_new(&w->model, p));
    assert_ok(dafl_deep_server_new(&w->server, w->model, &everyone, n));
    dafl_deep_server_allow_small(w->server);
    return w;
}

void drop_world(world *w)
{
    for (size_t k = 0; k < w->n; k++)
        dafl_deep_client_free(&w->clients[k]);
    for (size_t i = 0; i < MOST_QUESTIONS; i++)
        dafl_writer_drop(&w->segments[i]);
    dafl_deep_server_free(&w->server);
    dafl_model_free(&w->model);
    free(w);
}

dafl_members all_of(size_t n)
{
    dafl_members m = dafl_members_none(n);

    for (size_t k = 0; k < n; k++)
        dafl_members_add(&m, k);
    return m;
}

const dafl_segment *get_segment(world *w, uint32_t number)
{
    while (w->n_segments <= number) {
        uint32_t i = w->n_segments++;

        assert_int_equal(
            sm->segment(w->server, i, &w->heads[i], &w->segments[i]), 0);
        w->heads[i].query = i;
        w->heads[i].bytes = dafl_writer_bytes(&w->segments[i]);
    }
    return &w->heads[number];
}

void bring_up(world *w, dafl_deep_client *c, uint32_t *followed,
              uint32_t number)
{
    for (; *followed <= number; ++*followed)
        assert_int_equal(cm->follow(c, get_segment(w, *followed)), 0);
}

size_t length(world *w, const dafl_question *q)
{
    dafl_shape shape;

    assert_int_equal(sm->shape(w->server, q, &shape), 0);
    return (size_t)shape.len;
}

int64_t *integers(size_t n)
{
    int64_t *x = calloc(n + 1, sizeof *x);

    assert_non_null(x);
    return x;
}

int64_t *answer_of(world *w, dafl_deep_client *c, uint32_t *followed,
                   const dafl_question *q)
{
    size_t len = length(w, q);
    int64_t *x = integers(len);
    dafl_shape shape = {0};
    dafl_fault fault;

    bring_up(w, c, followed, q->number);
    assert_int_equal(cm->shape(c, q, &shape), 0);
    assert_int_equal(shape.len, len);
    memset(x, 0x55, len * sizeof *x);
    fault = cm->answer(c, q, x, len);
    if (fault == DAFL_FAULT_NONE)
        return x;
    assert_int_equal(fault, DAFL_E_MODEL);
    free(x);
    return NULL;
}

int64_t *sum_or_none(world *w, const dafl_question *q,
                     const dafl_members *cohort)
{
    size_t len = length(w, q);
    int64_t *sum = integers(len);

    for (size_t k = 0; k < w->n && sum != NULL; k++) {
        int64_t *x;

        if (!dafl_members_has(cohort, k))
            continue;
        x = answer_of(w, w->clients[k], &w->followed[k], q);
        for (size_t i = 0; x != NULL && i < len; i++)
            sum[i] += x[i];
        if (x == NULL) {
            free(sum);
            sum = NULL;
        }
        free(x);
    }
    return sum;
}

int64_t *sum_of(world *w, const dafl_question *q, const dafl_members *cohort)
{
    int64_t *sum = sum_or_none(w, q, cohort);

    assert_non_null(sum);
    return sum;
}

void give(world *w, const dafl_question *q, const int64_t *sum,
          const dafl_members *cohort)
{
    dafl_why why = {""};

    if (sm->take(w->server, q, sum, length(w, q), cohort, &why) != 0)
        fail_msg("question %u: %s", (unsigned)q->number, why.text);
}

bool step(world *w, bool plain)
{
    dafl_members all = all_of(w->n);
    dafl_question q;
    int64_t *sum;

    if (!sm->next(w->server, plain, &q))
        return false;
    sum = sum_of(w, &q, &all);
    give(w, &q, sum, &all);
    free(sum);
    return true;
}

dafl_model *plain_model(const dafl_params *p, dafl_site **site)
{
    dafl_model *model = NULL;
    dafl_trainer *trainer = NULL;
    dafl_data pooled = data;
    dafl_query query;
    dafl_set one;
    crew c;

    pooled.n = ROWS;
    assert_ok(dafl_model_new(&model, p));
    assert_ok(dafl_trainer_new(&trainer, model, 1));
    assert_ok(dafl_set_init(&one, 1));
    dafl_set_add(&one, 0);
    c = make_crew(model, pool, &pooled, 1);
    for (dafl_trainer_next(trainer, &query, &one);
         query.kind != DAFL_QUERY_DONE;
         dafl_trainer_next(trainer, &query, &one)) {
        dafl_sum sum = ask(&c, &query);

        assert_ok(dafl_trainer_take(trainer, &query, &sum, &one, NULL));
        dafl_sum_drop(&sum);
    }
    if (site != NULL)
        *site = c.sites[0];
    else
        drop_crew(&c);
    dafl_set_drop(&one);
    dafl_trainer_free(&trainer);
    return model;
}

dafl_params variant(size_t i)
{
    dafl_params p = params();

    p.schedule = i % 2 == 0 ? DAFL_SCHEDULE_DELTA : DAFL_SCHEDULE_FULL;
    p.ablate = (dafl_ablation)(i / 2 % 5);
    p.layers = random_size(0, LAYERS);
    if (i < 2)
        p.layers = LAYERS;
    if (i >= 10) {
        p.method = DAFL_METHOD_AFL;
        p.contract.q = 8;
    }
    assert_ok(dafl_params_check(&p, NULL));
    return p;
}

static void put_bits(uint8_t *at_byte, uint64_t bits)
{
    for (int i = 0; i < 8; i++)
        at_byte[i] = (uint8_t)(bits >> 8 * i);
}

void put_number(uint8_t *at_byte, double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof bits);
    put_bits(at_byte, bits);
}

double get_number(const uint8_t *at_byte)
{
    uint64_t bits = 0;
    double v;

    for (int i = 7; i >= 0; i--)
        bits = bits << 8 | at_byte[i];
    memcpy(&v, &bits, sizeof v);
    return v;
}
