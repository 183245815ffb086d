/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lab/school.h"

#include "protocol/deep.h"
#include "tests/sites.h"

school_state school;

dafl_server_method school_server;

static dafl_err found(void *ctx, const dafl_params *p,
                      const dafl_projection *first, dafl_site **site,
                      dafl_site **held, dafl_digest *rows, dafl_why *why)
{
    const school_plot *plot = ctx;

    *held = NULL;
    DAFL_TRY(dafl_deep_digest(rows, &school.data, plot->rows, plot->n));
    return dafl_site_new(site, p, school.pool, &school.data, plot->rows,
                         plot->n, first, why);
}

static void *new_client(lab *l, uint16_t client)
{
    dafl_deep_client *c = NULL;

    (void)l;
    assert_ok(dafl_deep_client_new(&c, &school.p, found, NULL,
                                   &school.plots[client], NULL));
    dafl_deep_client_allow(c, true, true);
    return c;
}

static void free_client(void *self)
{
    dafl_deep_client *c = self;

    dafl_deep_client_free(&c);
}

static void *new_server(lab *l)
{
    static const dafl_participation everyone = {.permille = 1000};
    dafl_deep_server *s = NULL;

    (void)l;
    school.n_taken = 0; /* a server that restarts is given its sums again */
    dafl_model_free(&school.model);
    assert_ok(dafl_model_new(&school.model, &school.p));
    assert_ok(dafl_deep_server_new(&s, school.model, &everyone, school.k));
    dafl_deep_server_allow_small(s);
    return s;
}

static void free_server(void *self)
{
    dafl_deep_server *s = self;

    dafl_deep_server_free(&s);
}

static dafl_fault take(void *self, const dafl_question *q, const int64_t *sum,
                       size_t len, const dafl_members *cohort, dafl_why *why)
{
    dafl_fault fault =
        dafl_deep_server_method.take(self, q, sum, len, cohort, why);

    if (fault == DAFL_FAULT_NONE) {
        assert_true(q->number == school.n_taken &&
                    q->number < SCHOOL_QUESTIONS);
        school.asked[school.n_taken] = *q;
        school.cohorts[school.n_taken++] = *cohort;
    }
    return fault;
}

const lab_method school_method = {
    .name = "deepafl",
    .client = &dafl_deep_client_method,
    .server = &school_server,
    .new_client = new_client,
    .new_server = new_server,
    .free_client = free_client,
    .free_server = free_server,
};

int school_open(uint64_t seed, size_t layers)
{
    check_state = seed;
    if (make_dir(NULL) != 0)
        return -1;
    memset(&school, 0, sizeof school);
    school.data = random_data(SCHOOL_ROWS, 5, 3);
    assert_ok(dafl_pool_new(&school.pool, 1));
    school_server = dafl_deep_server_method;
    school_server.take = take;
    school.p = (dafl_params){.features = 5,
                             .width = 6,
                             .hidden = 6,
                             .classes = 3,
                             .layers = layers,
                             .lambda = 0.5,
                             .gamma = 0.1,
                             .contract = DAFL_CONTRACT_DEFAULT};
    school.p.seed.b[0] = (uint8_t)random_u64();
    assert_ok(dafl_params_check(&school.p, NULL));
    for (uint32_t i = 0; i < SCHOOL_ROWS; i++) {
        size_t j = random_size(0, i);
        school.rows[i] = school.rows[j];
        school.rows[j] = i;
    }
    return 0;
}

int school_close(void)
{
    dafl_model_free(&school.model);
    dafl_pool_free(&school.pool);
    dafl_data_close(&school.data);
    return remove_dir(NULL);
}

void school_deal(size_t k)
{
    size_t from = 0;

    school.k = k;
    school.n_taken = 0;
    for (size_t u = 0; u < k; u++) {
        size_t most = 2 * (SCHOOL_ROWS - from) / (k - u);
        size_t n = u + 1 == k ? SCHOOL_ROWS - from
                              : random_size(0, most < SCHOOL_ROWS - from
                                                   ? most
                                                   : SCHOOL_ROWS - from);
        school.plots[u] = (school_plot){school.rows + from, n};
        from += n;
    }
}

void school_fit(lab_scenario *s)
{
    static const dafl_participation everyone = {.permille = 1000};
    static uint8_t bytes[256];
    dafl_writer w = {0};

    dafl_put_deep_params(&w, &school.p, &everyone);
    assert_true(w.len <= sizeof bytes);
    memcpy(bytes, w.ptr, w.len);
    s->config.method_params = (dafl_bytes){bytes, w.len};
    dafl_writer_drop(&w);
    s->config.contract = school.p.contract;
    s->config.slots = dafl_deep_questions(&school.p) + 4;
    s->questions = dafl_deep_questions(&school.p);
    s->method = &school_method;
}

lab_scenario school_scenario(uint16_t k, uint16_t cell_size)
{
    lab_scenario s = lab_scenario_for(k, cell_size, random_u64());

    school_deal(k);
    school_fit(&s);
    return s;
}

dafl_model *school_plain(const school_plot *plots, size_t n)
{
    dafl_site *sites[SCHOOL_SITES] = {NULL};
    dafl_model *model = NULL;
    dafl_trainer *trainer = NULL;
    dafl_projection first = {0};
    dafl_set cohort;

    assert_ok(dafl_model_new(&model, &school.p));
    assert_ok(dafl_trainer_new(&trainer, model, n));
    assert_ok(dafl_set_init(&cohort, n));
    assert_ok(dafl_model_projection(model, &first, 0));
    for (size_t u = 0; u < n; u++)
        assert_ok(dafl_site_new(&sites[u], &school.p, school.pool, &school.data,
                                plots[u].rows, plots[u].n, &first, NULL));
    for (size_t i = 0; i < school.n_taken; i++) {
        dafl_projection m;
        dafl_query query;
        dafl_sum sum;
        dafl_deep_query(&query, &school.p, &school.asked[i]);
        m = projection_for(model, &query);
        sum = empty_sum(&school.p, &query);
        dafl_set_clear(&cohort);
        for (size_t u = 0; u < n; u++) {
            bool in = n == 1 || dafl_members_has(&school.cohorts[i], u);
            dafl_sum part = empty_sum(&school.p, &query);
            if (in)
                dafl_set_add(&cohort, u);
            assert_ok(dafl_site_answer(sites[u], model, &query, &m,
                                       in ? &part : NULL, NULL));
            dafl_sum_add(&sum, &part);
            dafl_sum_drop(&part);
        }
        assert_ok(dafl_trainer_take(trainer, &query, &sum, &cohort, NULL));
        dafl_sum_drop(&sum);
        dafl_projection_drop(&m);
    }
    for (size_t u = 0; u < n; u++)
        dafl_site_free(&sites[u]);
    dafl_projection_drop(&first);
    dafl_set_drop(&cohort);
    dafl_trainer_free(&trainer);
    return model;
}
