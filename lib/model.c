/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/model.h"

#include <stdlib.h>
#include <string.h>

#include "lib/blas.h"
#include "lib/secret.h"

dafl_err dafl_model_new(dafl_model **out, const dafl_params *p)
{
    dafl_model *m = calloc(1, sizeof *m);

    if (m == NULL)
        return DAFL_ERR_NOMEM;
    m->params = *p;
    m->heads = calloc(p->layers + 1, sizeof *m->heads);
    m->blocks = calloc(p->layers + 1, sizeof *m->blocks);
    if (m->heads == NULL || m->blocks == NULL) {
        dafl_model_free(&m);
        return DAFL_ERR_NOMEM;
    }
    *out = m;
    return DAFL_OK;
}

void dafl_model_forget(dafl_model *model, size_t layer)
{
    for (size_t t = 0; t < layer && t < model->n_heads; t++) {
        dafl_head *head = &model->heads[t];
        dafl_bulk_free(head->u);
        dafl_bulk_free(head->m);
        dafl_bulk_free(head->w);
        *head = (dafl_head){.rank = head->rank};
    }
    for (size_t t = 0; t < layer && t < model->n_blocks; t++) {
        dafl_bulk_free(model->blocks[t].n);
        model->blocks[t].n = NULL;
    }
}

void dafl_model_free(dafl_model **model)
{
    dafl_model *m = *model;

    if (m == NULL)
        return;
    if (m->heads != NULL && m->blocks != NULL)
        dafl_model_forget(m, SIZE_MAX);
    for (size_t k = 0; m->given != NULL && k <= m->params.layers; k++)
        dafl_projection_drop(&m->given[k]);
    free(m->given);
    free(m->heads);
    free(m->blocks);
    free(m);
    *model = NULL;
}

static double *copy_of(const double *x, size_t n)
{
    double *y = dafl_bulk_alloc(n, sizeof *y);

    if (y != NULL && n > 0)
        memcpy(y, x, n * sizeof *y);
    return y;
}

dafl_err dafl_model_add_head(dafl_model *model, const double *u,
                             const double *m, size_t rank)
{
    size_t d = model->params.width, c = model->params.classes;
    dafl_head head = {.rank = rank};

    if (model->n_heads > model->params.layers)
        return DAFL_ERR_ARG;
    head.u = copy_of(u, d * rank);
    head.m = copy_of(m, rank * c);
    head.w = dafl_bulk_alloc(d * c, sizeof *head.w);
    if (head.u == NULL || head.m == NULL || head.w == NULL) {
        dafl_bulk_free(head.u);
        dafl_bulk_free(head.m);
        dafl_bulk_free(head.w);
        return DAFL_ERR_NOMEM;
    }
    memset(head.w, 0, d * c * sizeof *head.w);
    dafl_gemm(head.w, head.u, head.m, d, c, rank, 0.0);
    model->heads[model->n_heads++] = head;
    return DAFL_OK;
}

dafl_err dafl_model_add_block(dafl_model *model, const double *n, size_t rank)
{
    dafl_block block = {.rank = rank};

    if (model->n_blocks >= model->params.layers)
        return DAFL_ERR_ARG;
    if (rank > 0) {
        block.n = copy_of(n, model->params.hidden * rank);
        if (block.n == NULL)
            return DAFL_ERR_NOMEM;
    }
    model->blocks[model->n_blocks++] = block;
    return DAFL_OK;
}

dafl_err dafl_model_read_projections(dafl_model *model, const char *dir,
                                     dafl_why *why)
{
    size_t n = model->params.layers + 1;

    model->params.own_projections = true;
    model->given = calloc(n, sizeof *model->given);
    if (model->given == NULL)
        return DAFL_ERR_NOMEM;
    for (size_t k = 0; k < n; k++)
        DAFL_TRY(dafl_projection_read(&model->given[k], &model->params, dir, k,
                                      why));
    return DAFL_OK;
}

dafl_err dafl_model_projection(const dafl_model *model, dafl_projection *out,
                               size_t k)
{
    const dafl_projection *given;

    if (model->given == NULL)
        return dafl_projection_draw(out, &model->params, k);
    given = &model->given[k];
    return dafl_projection_copy(out, given->in, given->out, given->w, given->b);
}
