/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/reference/run.h"

#include <stdlib.h>

#include "lib/secret.h"

typedef struct {
    dafl_model *model;
    dafl_pool *pool;
    const dafl_data *data;
    const deal *d;
    dafl_site **sites;
    dafl_trainer *trainer;
    size_t question;
    dafl_set cohort; /* that answers it */
} run;

/* FNV-1a over the words of a sum. */
static uint64_t hash_sum(uint64_t hash, const dafl_sum *sum)
{
    for (size_t i = 0; sum->i != NULL && i < sum->len; i++)
        hash = (hash ^ (uint64_t)sum->i[i]) * 0x100000001b3;
    return hash;
}

static dafl_err found(run *r, dafl_why *why)
{
    dafl_projection first = {0};
    bool projected = r->model->params.method != DAFL_METHOD_AFL;
    dafl_err err = DAFL_OK;

    if (projected)
        err = dafl_model_projection(r->model, &first, 0);
    for (size_t k = 0; err == DAFL_OK && k < r->d->n_sites; k++)
        err = dafl_site_new(&r->sites[k], &r->model->params, r->pool, r->data,
                            r->d->rows + r->d->first[k],
                            r->d->first[k + 1] - r->d->first[k],
                            projected ? &first : NULL, why);
    dafl_projection_drop(&first);
    return err;
}

static void gather(run *r)
{
    size_t n = r->d->n_sites;
    bool listed =
        r->d->present != NULL && r->question < 2 * r->model->params.layers + 3;

    dafl_set_clear(&r->cohort);
    for (size_t k = 0; k < n; k++)
        if (!listed || r->d->present[r->question * n + k] != 0)
            dafl_set_add(&r->cohort, k);
}

/* Who is not in the cohort follows the model all the same. */
static dafl_err answer_all(run *r, const dafl_query *query, dafl_sum *total,
                           dafl_why *why)
{
    dafl_projection projection = {0};
    dafl_sum part;
    dafl_err err = DAFL_OK;

    if (query->kind == DAFL_QUERY_RESIDUAL)
        DAFL_TRY(
            dafl_model_projection(r->model, &projection, query->layer + 1));
    for (size_t i = 0; err == DAFL_OK && i < r->d->n_sites; i++) {
        size_t k = r->d->order == NULL ? i : r->d->order[i];
        err = dafl_sum_init(&part, total->len, total->i != NULL);
        if (err != DAFL_OK)
            break;
        err = dafl_site_answer(r->sites[k], r->model, query, &projection,
                               dafl_set_has(&r->cohort, k) ? &part : NULL, why);
        dafl_sum_add(total, &part);
        dafl_sum_drop(&part);
    }
    dafl_projection_drop(&projection);
    return err;
}

/* ||Y - Phi W||^2 of the newest head over one site's rows. */
static dafl_err site_risk(run *r, size_t k, double *risk, dafl_why *why)
{
    size_t n = r->d->first[k + 1] - r->d->first[k];
    size_t c = r->model->params.classes;
    double *scores = dafl_bulk_alloc(n * c, sizeof *scores);
    dafl_err err = DAFL_ERR_NOMEM;

    if (scores != NULL)
        err = dafl_site_score(
            r->sites[k], &r->model->heads[r->model->n_heads - 1], scores, why);
    for (size_t i = 0; err == DAFL_OK && i < n * c; i++) {
        uint32_t label = r->data->y[r->d->rows[r->d->first[k] + i / c]];
        double miss = (label == i % c ? 1.0 : 0.0) - scores[i];
        *risk += miss * miss;
    }
    dafl_bulk_free(scores);
    return err;
}

/* The trace of a sum's first part, n x n. */
static dafl_err trace_of(const dafl_sum *sum, const dafl_layout *layout,
                         double *trace)
{
    size_t n = layout->parts[0].rows;
    double *m = dafl_bulk_alloc(n * n, sizeof *m);

    if (m == NULL)
        return DAFL_ERR_NOMEM;
    dafl_sum_get(sum, &layout->parts[0], m);
    for (size_t i = 0; i < n; i++)
        *trace += m[i * n + i];
    dafl_bulk_free(m);
    return DAFL_OK;
}

static dafl_err look(run *r, layer_facts *facts, bool carried, dafl_why *why)
{
    const dafl_params *p = &r->model->params;
    dafl_query query = {.kind = DAFL_QUERY_GRAM};
    dafl_layout layout;
    dafl_sum sum = {0};
    dafl_err err;

    dafl_query_layout(&layout, p, &query);
    *facts = (layer_facts){.said = dafl_trainer_risk(r->trainer),
                           .carried = carried};
    err = dafl_sum_init(&sum, layout.len, p->contract.exact);
    for (size_t k = 0; err == DAFL_OK && k < r->d->n_sites; k++) {
        err = dafl_site_gram(r->sites[k], &sum, why);
        if (err == DAFL_OK)
            err = site_risk(r, k, &facts->risk, why);
    }
    if (err == DAFL_OK)
        err = trace_of(&sum, &layout, &facts->trace);
    dafl_sum_drop(&sum);
    return err;
}

/* One query and its sum; *done when there is none left. */
static dafl_err step(run *r, layer_facts *facts, uint64_t *hash, bool *done,
                     dafl_why *why)
{
    dafl_query query;
    dafl_layout layout;
    dafl_sum total;
    dafl_err err;

    gather(r);
    dafl_trainer_next(r->trainer, &query, &r->cohort);
    *done = query.kind == DAFL_QUERY_DONE;
    if (*done)
        return DAFL_OK;
    dafl_query_layout(&layout, &r->model->params, &query);
    DAFL_TRY(
        dafl_sum_init(&total, layout.len, r->model->params.contract.exact));
    err = answer_all(r, &query, &total, why);
    if (err == DAFL_OK)
        err = dafl_trainer_take(r->trainer, &query, &total, &r->cohort, why);
    r->question++;
    *hash = hash_sum(*hash, &total);
    if (err == DAFL_OK && facts != NULL && query.kind == DAFL_QUERY_RESIDUAL)
        err = trace_of(&total, &layout, &facts[query.layer].pi_trace);
    dafl_sum_drop(&total);
    if (err == DAFL_OK && facts != NULL &&
        (query.kind == DAFL_QUERY_GRAM || query.kind == DAFL_QUERY_INCREMENT))
        err = look(r, &facts[query.layer], query.kind == DAFL_QUERY_INCREMENT,
                   why);
    return err;
}

dafl_err run_training(dafl_model *model, dafl_pool *pool, const dafl_data *data,
                      const deal *d, layer_facts *facts, uint64_t *print,
                      dafl_why *why)
{
    run r = {.model = model, .pool = pool, .data = data, .d = d};
    uint64_t hash = 0xcbf29ce484222325;
    bool done = false;
    dafl_err err = DAFL_ERR_NOMEM;

    r.sites = calloc(d->n_sites, sizeof(dafl_site *));
    if (r.sites == NULL || dafl_set_init(&r.cohort, d->n_sites) != DAFL_OK)
        goto out;
    err = dafl_trainer_new(&r.trainer, model, d->n_sites);
    if (err == DAFL_OK)
        err = found(&r, why);
    while (err == DAFL_OK && !done)
        err = step(&r, facts, &hash, &done, why);
    if (print != NULL)
        *print = hash;
out:
    for (size_t k = 0; r.sites != NULL && k < d->n_sites; k++)
        dafl_site_free(&r.sites[k]);
    dafl_trainer_free(&r.trainer);
    dafl_set_drop(&r.cohort);
    free(r.sites);
    return err;
}
