/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/deep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/blas.h"
#include "lib/secret.h"
#include "protocol/weaken.h"

struct dafl_deep_client {
    const dafl_params *params;
    dafl_deep_found *found;
    dafl_deep_project *project;
    void *ctx;
    dafl_model *model;
    dafl_site *site, *held;
    uint32_t followed;   /* segments: the next one has this number */
    uint32_t reached;    /* questions that the features have been taken past */
    bool broken;         /* the sites are of no more use */
    bool forgets;        /* layers that are left behind */
    bool small;          /* any census will do */
    bool prominent;      /* so will a row that stands out */
    dafl_digest rows;    /* of the site's rows */
    dafl_projection own; /* number own_k, unless there is a project function */
    size_t own_k;
};

/* ---- sites and their projections ---- */

static dafl_err lend(dafl_deep_client *c, size_t k, const dafl_projection **out)
{
    if (c->project != NULL)
        return c->project(c->ctx, k, out);
    if (c->own.w == NULL || c->own_k != k) {
        dafl_projection_drop(&c->own);
        DAFL_TRY(dafl_projection_draw(&c->own, c->params, k));
        c->own_k = k;
    }
    *out = &c->own;
    return DAFL_OK;
}

static dafl_err start(dafl_deep_client *c, dafl_why *why)
{
    const dafl_projection *first = NULL;
    dafl_err err = dafl_model_new(&c->model, c->params);

    if (err == DAFL_OK && c->params->method != DAFL_METHOD_AFL)
        err = lend(c, 0, &first);
    if (err == DAFL_OK)
        err = c->found(c->ctx, c->params, first, &c->site, &c->held, &c->rows,
                       why);
    c->followed = 0;
    c->reached = 0;
    c->broken = err != DAFL_OK;
    return err;
}

static void drop(dafl_deep_client *c)
{
    dafl_site_free(&c->site);
    dafl_site_free(&c->held);
    dafl_model_free(&c->model);
}

dafl_err dafl_deep_client_new(dafl_deep_client **out, const dafl_params *params,
                              dafl_deep_found *found,
                              dafl_deep_project *project, void *ctx,
                              dafl_why *why)
{
    dafl_deep_client *c;
    dafl_err err;

    if (!params->contract.exact)
        return DAFL_ERR_ARG;
    c = calloc(1, sizeof *c);
    if (c == NULL)
        return DAFL_ERR_NOMEM;
    c->params = params;
    c->found = found;
    c->project = project;
    c->ctx = ctx;
    err = start(c, why);
    if (err == DAFL_OK)
        *out = c;
    else
        dafl_deep_client_free(&c);
    return err;
}

void dafl_deep_client_free(dafl_deep_client **client)
{
    dafl_deep_client *c = *client;

    if (c == NULL)
        return;
    drop(c);
    dafl_projection_drop(&c->own);
    free(c);
    *client = NULL;
}

void dafl_deep_client_allow(dafl_deep_client *client, bool small,
                            bool prominent)
{
    client->small = small;
    client->prominent = prominent;
}

void dafl_deep_client_forget(dafl_deep_client *client)
{
    client->forgets = true;
}

dafl_site *dafl_deep_client_site(const dafl_deep_client *client)
{
    return client->site;
}

static dafl_fault rewind_client(void *self)
{
    dafl_deep_client *c = self;

    drop(c);
    switch (start(c, NULL)) {
    case DAFL_OK:
        return DAFL_FAULT_NONE;
    case DAFL_ERR_INPUT: /* the same rows were good before */
        return DAFL_E_DATA_CHANGED;
    default:
        return DAFL_E_MODEL;
    }
}

/* ---- segments ---- */

/* u32 rank and n = rank * per_rank numbers, nothing more; *x is the caller's to
 * free. */
static dafl_err get_factor(dafl_bytes bytes, size_t most, size_t per_rank,
                           size_t *rank, double **x)
{
    dafl_reader r = dafl_read(bytes);
    uint32_t got = 0;
    size_t n;

    DAFL_TRY(dafl_get_u32(&r, &got));
    if (got > most)
        return DAFL_ERR_PEER;
    n = got * per_rank; /* <= 2^16 * 2^17 */
    if (r.left != n * sizeof(double))
        return DAFL_ERR_PEER;
    *x = dafl_bulk_alloc(n, sizeof(double));
    if (*x == NULL)
        return DAFL_ERR_NOMEM;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = 0;

        DAFL_TRY(dafl_get_u64(&r, &bits));
        memcpy(*x + i, &bits, sizeof bits);
        if (!(fabs((*x)[i]) <= DAFL_DEEP_LARGEST)) /* nor NaN */
            return DAFL_ERR_PEER;
    }
    *rank = got;
    return DAFL_OK;
}

/* U'U = I; u: d x r. */
static dafl_err check_orthonormal(const double *u, size_t d, size_t r)
{
    double *uu = dafl_bulk_alloc(r * r, sizeof *uu);
    dafl_err err = DAFL_OK;

    if (uu == NULL)
        return DAFL_ERR_NOMEM;
    dafl_gemm_tn(uu, u, u, r, r, d, 0.0);
    for (size_t i = 0; i < r * r; i++) {
        double want = i % (r + 1) == 0 ? 1.0 : 0.0;

        if (!(fabs(uu[i] - want) <= DAFL_DEEP_ORTHONORMAL) &&
            !DAFL_WEAK(ORTHONORMAL))
            err = DAFL_ERR_PEER;
    }
    dafl_bulk_free(uu);
    return err;
}

static dafl_err follow_head(dafl_model *model, size_t layer, dafl_bytes bytes)
{
    const dafl_params *p = &model->params;
    size_t d = p->width, c = p->classes, rank = 0;
    double *x = NULL;
    dafl_err err = get_factor(bytes, d < c ? d : c, d + c, &rank, &x);

    if (err == DAFL_OK && rank > 0)
        err = check_orthonormal(x, d, rank);
    if (err == DAFL_OK)
        err = dafl_model_add_head(model, x, x + d * rank, rank);
    if (err == DAFL_OK && p->ablate == DAFL_ABLATE_OMEGA && layer < p->layers)
        err = dafl_model_add_block(model, NULL, 0);
    dafl_bulk_free(x);
    return err;
}

static dafl_err follow_block(dafl_model *model, size_t layer, dafl_bytes bytes)
{
    size_t most = model->heads[layer].rank, rank = 0;
    double *x = NULL;
    dafl_err err = get_factor(bytes, most, model->params.hidden, &rank, &x);

    if (err == DAFL_OK)
        err =
            rank == most ? dafl_model_add_block(model, x, rank) : DAFL_ERR_PEER;
    dafl_bulk_free(x);
    return err;
}

/* What the server says of all rows; an honest one is believed. */
static dafl_fault follow_census(const dafl_deep_client *c, dafl_bytes bytes)
{
    size_t classes = c->params->classes;
    dafl_reader r = dafl_read(bytes);
    dafl_fault fault = DAFL_E_MODEL;
    uint64_t *counts, rows = 0;

    if (r.left != (classes + 1) * sizeof *counts)
        return DAFL_E_MODEL;
    counts = calloc(classes, sizeof *counts);
    if (counts == NULL)
        return DAFL_E_MODEL;
    if (dafl_get_u64(&r, &rows) == DAFL_OK)
        fault = DAFL_FAULT_NONE;
    for (size_t i = 0; i < classes && fault == DAFL_FAULT_NONE; i++)
        if (dafl_get_u64(&r, &counts[i]) != DAFL_OK)
            fault = DAFL_E_MODEL;
    if (fault == DAFL_FAULT_NONE && !c->small && !DAFL_WEAK(CENSUS))
        fault = dafl_deep_census(c->params, rows, counts, NULL);
    free(counts);
    return fault;
}

static dafl_fault follow(void *self, const dafl_segment *segment)
{
    dafl_deep_client *c = self;
    dafl_segment want = {0};
    dafl_err err = DAFL_ERR_PEER;
    dafl_fault fault;

    dafl_deep_segment(&want, c->params, c->followed);
    if (c->model == NULL || c->followed >= dafl_deep_questions(c->params) ||
        segment->query != want.query || segment->kind != want.kind ||
        segment->layer != want.layer)
        return DAFL_E_MODEL;
    switch (want.kind) {
    case DAFL_SEGMENT_NOTHING:
        err = segment->bytes.len == 0 ? DAFL_OK : DAFL_ERR_PEER;
        break;
    case DAFL_SEGMENT_CENSUS:
        fault = follow_census(c, segment->bytes);
        if (fault != DAFL_FAULT_NONE)
            return fault;
        err = DAFL_OK;
        break;
    case DAFL_SEGMENT_HEAD:
        err = follow_head(c->model, want.layer, segment->bytes);
        break;
    case DAFL_SEGMENT_BLOCK:
        err = follow_block(c->model, want.layer, segment->bytes);
        break;
    default:
        break;
    }
    if (err != DAFL_OK)
        return DAFL_E_MODEL;
    c->followed++;
    return DAFL_FAULT_NONE;
}

/* ---- answers ---- */

/* The newest question only: what an older one was about has been summed. */
static dafl_fault shape(void *self, const dafl_question *q, dafl_shape *out)
{
    dafl_deep_client *c = self;

    if (c->followed == 0 || q->number != c->followed - 1)
        return DAFL_E_MODEL;
    return dafl_deep_shape(out, c->model, q);
}

static dafl_err query_projection(dafl_deep_client *c, const dafl_query *query,
                                 const dafl_projection **out)
{
    *out = NULL;
    if (query->kind == DAFL_QUERY_RESIDUAL)
        return lend(c, query->layer + 1, out);
    if (query->kind == DAFL_QUERY_GRAM && query->layer > 0 &&
        c->params->ablate == DAFL_ABLATE_OMEGA)
        return lend(c, query->layer, out);
    return DAFL_OK;
}

/* Take the features past a question, answering it unless sum is NULL. Held-out
 * rows follow once and enter the report only. */
static dafl_err pass(dafl_deep_client *c, const dafl_question *q, dafl_sum *sum)
{
    const dafl_projection *projection;
    dafl_query query;
    bool report;

    dafl_deep_query(&query, c->params, q);
    report = query.kind == DAFL_QUERY_REPORT;
    DAFL_TRY(query_projection(c, &query, &projection));
    DAFL_TRY(dafl_site_answer(c->site, c->model, &query, projection,
                              report ? NULL : sum, NULL));
    if (c->held != NULL && q->number >= c->reached)
        DAFL_TRY(dafl_site_answer(c->held, c->model, &query, projection, NULL,
                                  NULL));
    if (report && sum != NULL)
        dafl_site_report(c->site, c->held, sum);
    if (q->number >= c->reached)
        c->reached = q->number + 1;
    if (c->forgets)
        dafl_model_forget(c->model, query.layer);
    return DAFL_OK;
}

static dafl_fault answer(void *self, const dafl_question *q, int64_t *x,
                         size_t len)
{
    dafl_deep_client *c = self;
    dafl_sum sum = {.len = len, .i = x};
    dafl_shape want;
    dafl_err err = DAFL_OK;

    if (c->broken || shape(c, q, &want) != DAFL_FAULT_NONE || want.len != len)
        return DAFL_E_MODEL;
    /* An increment's base is gone once the features have advanced. */
    if (q->rank > 0 && q->number < c->reached)
        return DAFL_E_MODEL;
    while (err == DAFL_OK && c->reached < q->number) {
        dafl_question missed = {.number = c->reached};

        err = pass(c, &missed, NULL);
    }
    dafl_sum_clear(&sum);
    if (err == DAFL_OK)
        err = pass(c, q, &sum);
    if (err != DAFL_OK) {
        /* DAFL_ERR_INPUT: this model drives a value out of the contract. */
        c->broken = true;
        dafl_wipe(x, len * sizeof *x);
        return DAFL_E_MODEL;
    }
    if (!c->prominent && dafl_site_rows(c->site) >= DAFL_DEEP_PROMINENT_ROWS &&
        dafl_site_prominence(c->site) > DAFL_DEEP_PROMINENT &&
        !DAFL_WEAK(DOMINATED)) {
        dafl_wipe(x, len * sizeof *x);
        return DAFL_E_DOMINATED;
    }
    return DAFL_FAULT_NONE;
}

static dafl_fault data(void *self, dafl_digest *rows, dafl_digest *basis)
{
    const dafl_deep_client *c = self;

    *rows = c->rows;
    dafl_deep_basis(basis, c->params);
    return DAFL_FAULT_NONE;
}

const dafl_client_method dafl_deep_client_method = {
    .follow = follow,
    .shape = shape,
    .answer = answer,
    .data = data,
    .rewind = rewind_client,
};
