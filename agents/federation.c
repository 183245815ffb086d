/* SPDX-License-Identifier: Apache-2.0 */
#include "agents/federation.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "agents/cli.h"

struct federation {
    dafl_model *model;
    dafl_pool *pool;
    dafl_trainer *trainer;
    secure *secure; /* instead of trainer and sites */
    federation_plan plan;
    size_t n, test_rows;
    dafl_site **sites;
    dafl_site *test;
    uint32_t *order;
    dafl_set cohort;
};

/* One query on its way through the sites. */
typedef struct {
    federation *fed;
    const dafl_query *query;
    const dafl_projection *projection;
    dafl_layout layout;
    dafl_sum *total;
    pthread_mutex_t lock;
    /* Under the lock: the error of the first site that had one, whichever
     * thread met it first. */
    dafl_err err;
    size_t err_site;
    dafl_why why;
} asking;

static void keep_error(asking *a, size_t site, dafl_err err,
                       const dafl_why *why)
{
    pthread_mutex_lock(&a->lock);
    if (a->err == DAFL_OK || site < a->err_site) {
        a->err = err;
        a->err_site = site;
        a->why = *why;
    }
    pthread_mutex_unlock(&a->lock);
}

/* One site's answer. A site outside the cohort follows without answering. */
static void ask_site(void *ctx, unsigned worker, size_t item)
{
    asking *a = ctx;
    federation *fed = a->fed;
    size_t k = fed->order[item];
    bool answers = dafl_set_has(&fed->cohort, k);
    dafl_sum upload = {0};
    dafl_why why = {{0}};
    dafl_err err = DAFL_OK;

    (void)worker;
    if (answers)
        err = dafl_sum_init(&upload, a->layout.len,
                            fed->model->params.contract.exact);
    if (err == DAFL_OK)
        err = dafl_site_answer(fed->sites[k], fed->model, a->query,
                               a->projection, answers ? &upload : NULL, &why);
    if (err != DAFL_OK) {
        keep_error(a, k, err, &why);
    } else if (answers) {
        pthread_mutex_lock(&a->lock);
        dafl_sum_add(a->total, &upload);
        pthread_mutex_unlock(&a->lock);
    }
    dafl_sum_drop(&upload);
}

/* Many small sites share the workers; few large ones use them one by one. */
static void for_all_sites(federation *fed, dafl_pool_fn *fn, void *ctx)
{
    if (fed->n >= 2 * (size_t)dafl_pool_size(fed->pool))
        dafl_pool_run(fed->pool, fed->n, fn, ctx);
    else
        for (size_t i = 0; i < fed->n; i++)
            fn(ctx, 0, i);
}

/* Sites that answer: all of them for the counts, else a draw from the seed,
 * numbered so that consistent participation has one draw per layer. */
static dafl_err draw_cohort(federation *fed, const dafl_query *query)
{
    size_t n = (size_t)(fed->plan.participation * (double)fed->n + 0.5);
    bool all = query->kind == DAFL_QUERY_CENSUS ||
               query->kind == DAFL_QUERY_REPORT || n >= fed->n;
    bool second = !fed->plan.consistent && query->kind == DAFL_QUERY_RESIDUAL;
    uint32_t *k = malloc(fed->n * sizeof *k);
    dafl_draw draw;

    if (k == NULL)
        return DAFL_ERR_NOMEM;
    for (size_t i = 0; i < fed->n; i++)
        k[i] = (uint32_t)i;
    dafl_draw_init(&draw, &fed->model->params.seed, DAFL_STREAM_PARTICIPATION,
                   2 * query->layer + (second ? 1 : 0));
    dafl_draw_shuffle(&draw, k, fed->n);
    dafl_set_clear(&fed->cohort);
    for (size_t i = 0; i < (all ? fed->n : n < 1 ? 1 : n); i++)
        dafl_set_add(&fed->cohort, k[i]);
    free(k);
    return DAFL_OK;
}

/* The projection that sites need to follow a query; *needed says whether. */
static dafl_err query_projection(const federation *fed, const dafl_query *query,
                                 dafl_projection *out, bool *needed)
{
    bool omega = fed->model->params.ablate == DAFL_ABLATE_OMEGA;

    *needed = true;
    if (query->kind == DAFL_QUERY_RESIDUAL)
        return dafl_model_projection(fed->model, out, query->layer + 1);
    if (query->kind == DAFL_QUERY_GRAM && omega && query->layer > 0)
        return dafl_model_projection(fed->model, out, query->layer);
    *needed = false;
    return DAFL_OK;
}

/* Bytes of the model's newest segment, which this query's sum gave. */
static double segment_bytes(const dafl_model *model, const dafl_query *query)
{
    const dafl_params *p = &model->params;
    size_t rank;

    switch (query->kind) {
    case DAFL_QUERY_GRAM:
    case DAFL_QUERY_INCREMENT:
        rank = model->heads[query->layer].rank;
        return 8.0 * (double)(rank * (p->width + p->classes));
    case DAFL_QUERY_RESIDUAL:
        return 8.0 * (double)(model->blocks[query->layer].rank * p->hidden);
    case DAFL_QUERY_CENSUS:
    case DAFL_QUERY_REPORT:
    case DAFL_QUERY_DONE:
        break;
    }
    return 0;
}

static dafl_err ask_all(federation *fed, asking *a, dafl_sum *total,
                        dafl_why *why)
{
    a->total = total;
    pthread_mutex_init(&a->lock, NULL);
    for_all_sites(fed, ask_site, a);
    pthread_mutex_destroy(&a->lock);
    if (a->err != DAFL_OK && why != NULL)
        *why = a->why;
    return a->err;
}

/* Rows that nobody holds follow the model too. */
static dafl_err follow_test(federation *fed, const dafl_query *query,
                            const dafl_projection *projection, dafl_why *why)
{
    return fed->test == NULL ? DAFL_OK
                             : dafl_site_answer(fed->test, fed->model, query,
                                                projection, NULL, why);
}

static dafl_err ask_plainly(federation *fed, federation_step *step,
                            dafl_why *why)
{
    dafl_err err;
    dafl_query *query = &step->query;
    asking a = {.fed = fed, .query = query};
    dafl_projection projection = {0};
    dafl_sum total = {0};
    bool needed = false;
    double start;

    dafl_trainer_next(fed->trainer, query, &fed->cohort);
    if (query->kind == DAFL_QUERY_DONE)
        return DAFL_OK;
    DAFL_TRY(draw_cohort(fed, query));
    dafl_trainer_next(fed->trainer, query, &fed->cohort);
    step->cohort = dafl_set_count(&fed->cohort);
    step->slots = 1;
    dafl_query_layout(&a.layout, &fed->model->params, query);
    start = cli_now();
    err = query_projection(fed, query, &projection, &needed);
    a.projection = needed ? &projection : NULL;
    if (err == DAFL_OK)
        err = dafl_sum_init(&total, a.layout.len,
                            fed->model->params.contract.exact);
    if (err == DAFL_OK)
        err = ask_all(fed, &a, &total, why);
    step->compute_s = cli_now() - start;
    if (err == DAFL_OK)
        err = follow_test(fed, query, a.projection, why);
    start = cli_now();
    if (err == DAFL_OK)
        err = dafl_trainer_take(fed->trainer, query, &total, &fed->cohort, why);
    step->solve_s = cli_now() - start;
    if (err == DAFL_OK) {
        step->upload =
            (double)a.layout.len * fed->model->params.contract.w / 8.0;
        step->download = segment_bytes(fed->model, query);
    }
    dafl_sum_drop(&total);
    dafl_projection_drop(&projection);
    return err;
}

/* The same through the protocol. */
static dafl_err ask_securely(federation *fed, federation_step *step,
                             dafl_why *why)
{
    dafl_projection projection = {0};
    bool more = false, needed = false;
    secure_step cost;
    dafl_err err;

    step->query.kind = DAFL_QUERY_DONE;
    DAFL_TRY(secure_ask(fed->secure, &cost, &more, why));
    if (!more)
        return DAFL_OK;
    dafl_deep_query(&step->query, &fed->model->params, &cost.question);
    dafl_set_clear(&fed->cohort);
    for (size_t k = 0; k < fed->n; k++)
        if (dafl_members_has(&cost.cohort, k))
            dafl_set_add(&fed->cohort, k);
    step->cohort = dafl_set_count(&fed->cohort);
    step->slots = cost.slots;
    step->dropouts = cost.dropouts;
    step->compute_s = cost.compute_s;
    step->masking_s = cost.masking_s;
    step->unmasking_s = cost.unmasking_s;
    step->solve_s = cost.solve_s;
    step->upload = cost.upload;
    step->download = cost.download;
    err = query_projection(fed, &step->query, &projection, &needed);
    if (err == DAFL_OK)
        err = follow_test(fed, &step->query, needed ? &projection : NULL, why);
    dafl_projection_drop(&projection);
    return err;
}

dafl_err federation_ask(federation *fed, federation_step *step, dafl_why *why)
{
    *step = (federation_step){0};
    return fed->secure != NULL ? ask_securely(fed, step, why)
                               : ask_plainly(fed, step, why);
}

typedef struct {
    federation *fed;
    const dafl_data *data;
    const partition *p;
    const dafl_projection *first;
    asking errors;
} founding;

static void found_site(void *ctx, unsigned worker, size_t k)
{
    founding *f = ctx;
    federation *fed = f->fed;
    dafl_why why = {{0}};
    dafl_err err =
        dafl_site_new(&fed->sites[k], &fed->model->params, fed->pool, f->data,
                      f->p->rows + f->p->first[k],
                      f->p->first[k + 1] - f->p->first[k], f->first, &why);

    (void)worker;
    if (err != DAFL_OK)
        keep_error(&f->errors, k, err, &why);
}

static dafl_err found_sites(federation *fed, const dafl_data *train,
                            const dafl_data *test, const partition *p,
                            dafl_why *why)
{
    dafl_projection first = {0};
    bool projected = fed->model->params.method != DAFL_METHOD_AFL;
    founding f = {.fed = fed, .data = train, .p = p};
    dafl_err err = DAFL_OK;

    if (projected)
        err = dafl_model_projection(fed->model, &first, 0);
    f.first = projected ? &first : NULL;
    if (err == DAFL_OK && fed->secure == NULL) {
        pthread_mutex_init(&f.errors.lock, NULL);
        for_all_sites(fed, found_site, &f);
        pthread_mutex_destroy(&f.errors.lock);
        err = f.errors.err;
        if (err != DAFL_OK && why != NULL)
            *why = f.errors.why;
    }
    if (err == DAFL_OK && test != NULL)
        err = dafl_site_new(&fed->test, &fed->model->params, fed->pool, test,
                            NULL, test->n, f.first, why);
    dafl_projection_drop(&first);
    return err;
}

dafl_err federation_new(federation **out, dafl_model *model, dafl_pool *pool,
                        const dafl_data *train, const dafl_data *test,
                        const partition *p, const federation_plan *plan,
                        dafl_why *why)
{
    dafl_err err = DAFL_ERR_NOMEM;
    federation *fed = calloc(1, sizeof *fed);
    dafl_draw draw;

    if (fed == NULL)
        return DAFL_ERR_NOMEM;
    fed->model = model;
    fed->pool = pool;
    fed->plan = *plan;
    fed->n = p->n_clients;
    fed->test_rows = test == NULL ? 0 : test->n;
    fed->sites = calloc(fed->n, sizeof(dafl_site *));
    fed->order = malloc(fed->n * sizeof *fed->order);
    if (fed->sites == NULL || fed->order == NULL ||
        dafl_set_init(&fed->cohort, fed->n) != DAFL_OK)
        goto out;
    for (size_t k = 0; k < fed->n; k++)
        fed->order[k] = (uint32_t)k;
    if (plan->shuffle) {
        dafl_draw_init(&draw, &model->params.seed, DAFL_STREAM_SIMULATION,
                       0x10000 + plan->order);
        dafl_draw_shuffle(&draw, fed->order, fed->n);
    }
    err = plan->masks ? secure_new(&fed->secure, model, pool, train, p,
                                   &plan->secure, why)
                      : dafl_trainer_new(&fed->trainer, model, fed->n);
    if (err == DAFL_OK)
        err = found_sites(fed, train, test, p, why);
out:
    if (err == DAFL_OK)
        *out = fed;
    else
        federation_free(&fed);
    return err;
}

void federation_free(federation **fed)
{
    federation *f = *fed;

    if (f == NULL)
        return;
    for (size_t k = 0; f->sites != NULL && k < f->n; k++)
        dafl_site_free(&f->sites[k]);
    dafl_site_free(&f->test);
    dafl_trainer_free(&f->trainer);
    secure_free(&f->secure);
    dafl_set_drop(&f->cohort);
    free(f->order);
    free(f->sites);
    free(f);
    *fed = NULL;
}

size_t federation_total_queries(const federation *fed)
{
    const dafl_params *p = &fed->model->params;

    return 3 + p->layers * (p->ablate == DAFL_ABLATE_OMEGA ? 1 : 2);
}

const secure *federation_secure(const federation *fed)
{
    return fed->secure;
}

static const dafl_site *site_of(const federation *fed, size_t k)
{
    return fed->secure == NULL ? fed->sites[k] : secure_site(fed->secure, k);
}

dafl_risk federation_risk(const federation *fed)
{
    return dafl_trainer_risk(fed->secure == NULL ? fed->trainer
                                                 : secure_trainer(fed->secure));
}

double federation_train_accuracy(const federation *fed, size_t layer)
{
    uint64_t correct = 0, rows = 0;

    for (size_t k = 0; k < fed->n; k++)
        if (fed->secure == NULL || dafl_set_has(&fed->cohort, k)) {
            correct += dafl_site_correct(site_of(fed, k), layer);
            rows += dafl_site_rows(site_of(fed, k));
        }
    return rows == 0 ? NAN : (double)correct / (double)rows;
}

double federation_test_accuracy(const federation *fed, size_t layer)
{
    if (fed->test == NULL)
        return NAN;
    return (double)dafl_site_correct(fed->test, layer) / (double)fed->test_rows;
}

void federation_site_sizes(const federation *fed, size_t *least, size_t *most)
{
    *least = SIZE_MAX;
    *most = 0;
    for (size_t k = 0; k < fed->n; k++) {
        size_t n = dafl_site_rows(site_of(fed, k));
        *least = n < *least ? n : *least;
        *most = n > *most ? n : *most;
    }
}
