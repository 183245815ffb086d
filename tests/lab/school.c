/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lab/school.h"

#include "tests/sites.h"

school_record school;

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

/* DeepAFL's own, and a note of what was taken. */
static dafl_fault take(void *self, const dafl_question *q, const int64_t *sum,
                       size_t len, const dafl_members *cohort, dafl_why *why)
{
    dafl_fault fault =
        dafl_deep_server_method.take(self, q, sum, len, cohort, why);

    if (fault == DAFL_FAULT_NONE) {
        assert_true(q->number == school.n_taken &&
                    q->number < SCHOOL_QUESTIONS_MAX);
        school.asked[school.n_taken] = *q;
        school.cohorts[school.n_taken++] = *cohort;
    }
    return fault;
}

dafl_server_method school_server;

const lab_method school_method = {
    .name = "deepafl",
    .client = &dafl_deep_client_method,
    .server = &school_server,
    .new_client = new_client,
    .new_server = new_server,
    .free_client = free_client,
    .free_server = free_server,
};

int school_open(void **state)
{
    if (make_dir(state) != 0)
        return -1;
    school_server = dafl_deep_server_method;
    school_server.take = take;
    memset(&school, 0, sizeof school);
    school.data = random_data(SCHOOL_ROWS, 5, 3);
    assert_ok(dafl_pool_new(&school.pool, 1));
    school.p = (dafl_params){.features = 5,
                             .width = 6,
                             .hidden = 6,
                             .classes = 3,
                             .layers = 2,
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

int school_close(void **state)
{
    dafl_model_free(&school.model);
    dafl_pool_free(&school.pool);
    dafl_data_close(&school.data);
    return remove_dir(state);
}

/* Cut the rows into k lots, some of them maybe empty. */
static void deal_rows(size_t k)
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

lab_scenario school_scenario(uint16_t k, uint16_t cell_size)
{
    static const dafl_participation everyone = {.permille = 1000};
    static uint8_t bytes[256];
    lab_scenario s = lab_scenario_for(k, cell_size, random_u64());
    dafl_writer w = {0};

    deal_rows(k);
    dafl_put_deep_params(&w, &school.p, &everyone);
    assert_true(w.len <= sizeof bytes);
    memcpy(bytes, w.ptr, w.len);
    s.config.method_params = (dafl_bytes){bytes, w.len};
    dafl_writer_drop(&w);
    s.config.contract = school.p.contract;
    s.config.slots = dafl_deep_questions(&school.p) + (k < 50 ? 4 : 0);
    s.method = &school_method;
    return s;
}
