/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lab/curious.h"

#include "tests/same_model.h"
#include "tests/sites.h"

/* One lab at a time, so one of these. */
static curious *watching;
static dafl_server_method keeping; /* DeepAFL's, with keep_sum */

static const dafl_participation everyone = {.permille = 1000};

/* ---- the method ---- */

static dafl_err found(void *ctx, const dafl_params *p,
                      const dafl_projection *first, dafl_site **site,
                      dafl_site **held, dafl_digest *rows, dafl_why *why)
{
    const size_t *from = ctx;

    *held = NULL;
    DAFL_TRY(dafl_deep_digest(rows, watching->data, watching->rows + from[0],
                              from[1] - from[0]));
    return dafl_site_new(site, p, watching->pool, watching->data,
                         watching->rows + from[0], from[1] - from[0], first,
                         why);
}

/* A client's side of the method: DeepAFL's, but for the answers. */
typedef struct {
    dafl_deep_client *deep;
    uint16_t client;
} seat;

static void *new_client(lab *l, uint16_t client)
{
    seat *s = calloc(1, sizeof *s);

    (void)l;
    assert_non_null(s);
    s->client = client;
    assert_ok(dafl_deep_client_new(&s->deep, &watching->p, found, NULL,
                                   &watching->first[client], NULL));
    dafl_deep_client_allow(s->deep, !watching->careful, !watching->careful);
    return s;
}

static void free_client(void *self)
{
    seat *s = self;

    dafl_deep_client_free(&s->deep);
    free(s);
}

static dafl_fault follow(void *self, const dafl_segment *segment)
{
    return dafl_deep_client_method.follow(((seat *)self)->deep, segment);
}

static dafl_fault shape(void *self, const dafl_question *q, dafl_shape *out)
{
    return dafl_deep_client_method.shape(((seat *)self)->deep, q, out);
}

static dafl_fault answer(void *self, const dafl_question *q, int64_t *x,
                         size_t len)
{
    seat *s = self;
    dafl_fault fault = dafl_deep_client_method.answer(s->deep, q, x, len);

    if (fault == DAFL_FAULT_NONE && watching->spoil != NULL)
        watching->spoil(watching, s->client, q, x, len);
    return fault;
}

static dafl_fault data_of(void *self, dafl_digest *rows, dafl_digest *basis)
{
    return dafl_deep_client_method.data(((seat *)self)->deep, rows, basis);
}

static dafl_fault rewind_client(void *self)
{
    return dafl_deep_client_method.rewind(((seat *)self)->deep);
}

static const dafl_client_method client_method = {.follow = follow,
                                                 .shape = shape,
                                                 .answer = answer,
                                                 .data = data_of,
                                                 .rewind = rewind_client};

static void *new_server(lab *l)
{
    dafl_deep_server *self = NULL;

    (void)l;
    curious_drop(watching);
    assert_ok(dafl_model_new(&watching->model, &watching->p));
    assert_ok(
        dafl_deep_server_new(&self, watching->model, &everyone, watching->k));
    if (!watching->careful_server)
        dafl_deep_server_allow_small(self);
    return self;
}

static void free_server(void *self)
{
    dafl_deep_server *s = self;

    dafl_deep_server_free(&s);
}

static dafl_fault keep_sum(void *self, const dafl_question *q,
                           const int64_t *sum, size_t len,
                           const dafl_members *cohort, dafl_why *why)
{
    curious *c = watching;
    curious_sum *kept = &c->sums[c->n_sums];
    dafl_fault fault =
        dafl_deep_server_method.take(self, q, sum, len, cohort, why);

    if (fault != DAFL_FAULT_NONE)
        return fault;
    assert_true(c->n_sums < CURIOUS_SUMS && q->number == c->n_sums);
    dafl_deep_query(&kept->query, &c->p, q);
    kept->cohort = *cohort;
    kept->sum = empty_sum(&c->p, &kept->query);
    assert_int_equal(kept->sum.len, len);
    memcpy(kept->sum.i, sum, len * sizeof *sum);
    c->n_sums++;
    if (c->plant != NULL)
        c->plant(c, &kept->query);
    return DAFL_FAULT_NONE;
}

static const lab_method method = {
    .name = "deepafl",
    .client = &client_method,
    .server = &keeping,
    .new_client = new_client,
    .new_server = new_server,
    .free_client = free_client,
    .free_server = free_server,
};

dafl_params curious_params(size_t features, size_t width, size_t hidden,
                           uint32_t q)
{
    dafl_params p = {.features = features,
                     .width = width,
                     .hidden = hidden,
                     .classes = 10,
                     .layers = 2,
                     .activation = DAFL_ACT_RELU,
                     .lambda = 1,
                     .gamma = 0.1,
                     .schedule = DAFL_SCHEDULE_FULL,
                     .contract = DAFL_CONTRACT_DEFAULT};

    p.seed.b[0] = (uint8_t)random_u64();
    p.contract.q = q;
    assert_ok(dafl_params_check(&p, NULL));
    return p;
}

lab *curious_lab(curious *c, uint16_t cell_size, uint64_t seed)
{
    static uint8_t bytes[256];
    lab_scenario s = lab_scenario_for((uint16_t)c->k, cell_size, seed);
    dafl_writer w = {0};

    assert_true(c->k <= CURIOUS_CLIENTS);
    watching = c;
    keeping = dafl_deep_server_method;
    keeping.take = keep_sum;
    dafl_put_deep_params(&w, &c->p, &everyone);
    assert_true(w.len <= sizeof bytes);
    memcpy(bytes, w.ptr, w.len);
    s.config.method_params = (dafl_bytes){bytes, w.len};
    dafl_writer_drop(&w);
    s.config.contract = c->p.contract;
    s.config.slots = dafl_deep_questions(&c->p) + 4;
    s.method = &method;
    s.intercept = c->intercept;
    s.ctx = c;
    return lab_new(&s);
}

void curious_drop(curious *c)
{
    while (c->n_sums > 0)
        dafl_sum_drop(&c->sums[--c->n_sums].sum);
    dafl_model_free(&c->model);
}

/* ---- looking ---- */

static double *part_of(const dafl_params *p, const dafl_query *query,
                       const dafl_sum *sum, unsigned part)
{
    dafl_layout layout;
    double *x;

    dafl_query_layout(&layout, p, query);
    assert_true(part < layout.n);
    x = doubles(layout.parts[part].rows * layout.parts[part].cols);
    dafl_sum_get(sum, &layout.parts[part], x);
    return x;
}

double *curious_part(const curious *c, uint32_t question, unsigned part)
{
    assert_true(question < c->n_sums);
    return part_of(&c->p, &c->sums[question].query, &c->sums[question].sum,
                   part);
}

static dafl_site *site_of(const curious *c, const dafl_members *clients)
{
    uint32_t *rows = calloc(c->first[c->k] + 1, sizeof *rows);
    dafl_projection first = {0};
    dafl_site *site = NULL;
    size_t n = 0;

    assert_non_null(rows);
    for (size_t u = 0; u < c->k; u++)
        for (size_t i = c->first[u];
             dafl_members_has(clients, u) && i < c->first[u + 1]; i++)
            rows[n++] = c->rows[i];
    assert_ok(dafl_model_projection(c->model, &first, 0));
    assert_ok(
        dafl_site_new(&site, &c->p, c->pool, c->data, rows, n, &first, NULL));
    dafl_projection_drop(&first);
    free(rows);
    return site;
}

double *curious_truth(const curious *c, uint32_t question, unsigned part,
                      const dafl_members *clients)
{
    dafl_site *site = site_of(c, clients);
    const dafl_query *asked = &c->sums[question].query;
    dafl_sum sum = empty_sum(&c->p, asked);
    double *x;

    assert_true(question < c->n_sums);
    for (uint32_t i = 0; i <= question; i++) {
        const dafl_query *query = &c->sums[i].query;
        dafl_projection projection = projection_for(c->model, query);
        assert_ok(dafl_site_answer(site, c->model, query, &projection,
                                   i == question ? &sum : NULL, NULL));
        dafl_projection_drop(&projection);
    }
    x = part_of(&c->p, asked, &sum, part);
    dafl_sum_drop(&sum);
    dafl_site_free(&site);
    return x;
}

bool curious_same(const curious *a, const curious *b)
{
    bool same = a->n_sums == b->n_sums && same_model(a->model, b->model);

    for (size_t i = 0; same && i < a->n_sums; i++) {
        const curious_sum *x = &a->sums[i], *y = &b->sums[i];
        same = x->query.kind == y->query.kind &&
               x->query.layer == y->query.layer &&
               x->query.rank == y->query.rank &&
               dafl_members_equal(&x->cohort, &y->cohort) &&
               x->sum.len == y->sum.len &&
               memcmp(x->sum.i, y->sum.i, x->sum.len * sizeof *x->sum.i) == 0;
    }
    return same;
}
