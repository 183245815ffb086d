/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/deep.h"

#include <stdlib.h>
#include <string.h>

#include "lib/judge.h"
#include "lib/secret.h"
#include "protocol/weaken.h"

struct dafl_deep_server {
    dafl_model *model;
    dafl_trainer *trainer;
    dafl_participation part;
    dafl_set newest;   /* the cohort of the sum taken last */
    dafl_set cohort;   /* of the sum being taken */
    uint64_t *correct; /* per head, on training rows, then on held-out ones */
    uint64_t rows[2];
    uint64_t *census; /* rows, then rows of each class */
    bool small;       /* any census will do */
};

dafl_err dafl_deep_server_new(dafl_deep_server **out, dafl_model *model,
                              const dafl_participation *part, size_t n_clients)
{
    dafl_deep_server *s;

    if (!model->params.contract.exact)
        return DAFL_ERR_ARG;
    s = calloc(1, sizeof *s);
    if (s == NULL)
        return DAFL_ERR_NOMEM;
    s->model = model;
    s->part = *part;
    s->correct = calloc(2 * (model->params.layers + 1), sizeof *s->correct);
    s->census = calloc(model->params.classes + 1, sizeof *s->census);
    if (s->correct == NULL || s->census == NULL ||
        dafl_set_init(&s->newest, n_clients) != DAFL_OK ||
        dafl_set_init(&s->cohort, n_clients) != DAFL_OK ||
        dafl_trainer_new(&s->trainer, model, n_clients) != DAFL_OK) {
        dafl_deep_server_free(&s);
        return DAFL_ERR_NOMEM;
    }
    *out = s;
    return DAFL_OK;
}

void dafl_deep_server_free(dafl_deep_server **server)
{
    dafl_deep_server *s = *server;

    if (s == NULL)
        return;
    dafl_trainer_free(&s->trainer);
    dafl_set_drop(&s->newest);
    dafl_set_drop(&s->cohort);
    free(s->correct);
    free(s->census);
    free(s);
    *server = NULL;
}

void dafl_deep_server_allow_small(dafl_deep_server *server)
{
    server->small = true;
}

const dafl_trainer *dafl_deep_server_trainer(const dafl_deep_server *server)
{
    return server->trainer;
}

uint64_t dafl_deep_server_rows(const dafl_deep_server *server, bool held)
{
    return server->rows[held];
}

uint64_t dafl_deep_server_correct(const dafl_deep_server *server, size_t layer,
                                  bool held)
{
    size_t n_heads = server->model->params.layers + 1;

    return server->correct[(held ? n_heads : 0) + layer];
}

/* An increment is worth asking for when the newest sum, the residual's, is over
 * the cohort of G; any other cohort could not answer it. A block of rank 0 has
 * none. */
static bool next(void *self, bool plain, dafl_question *out)
{
    dafl_deep_server *s = self;
    dafl_query query;

    dafl_trainer_next(s->trainer, &query, &s->newest);
    if (query.kind == DAFL_QUERY_DONE)
        return false;
    out->number = dafl_deep_number(&s->model->params, &query);
    out->rank = plain ? 0 : (uint32_t)query.rank;
    return true;
}

static dafl_fault shape(void *self, const dafl_question *q, dafl_shape *out)
{
    const dafl_deep_server *s = self;

    return dafl_deep_shape(out, s->model, q);
}

static void put_doubles(dafl_writer *w, const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;

        memcpy(&bits, x + i, sizeof bits);
        dafl_put_u64(w, bits);
    }
}

static dafl_fault segment(void *self, uint32_t number, dafl_segment *out,
                          dafl_writer *bytes)
{
    const dafl_deep_server *s = self;
    const dafl_model *model = s->model;
    const dafl_params *p = &model->params;

    dafl_deep_segment(out, p, number);
    if (number >= dafl_deep_questions(p))
        return DAFL_E_MODEL;
    if (out->kind == DAFL_SEGMENT_CENSUS) {
        for (size_t i = 0; i <= p->classes; i++)
            dafl_put_u64(bytes, s->census[i]);
    } else if (out->kind == DAFL_SEGMENT_HEAD) {
        const dafl_head *head = &model->heads[out->layer];

        if (out->layer >= model->n_heads)
            return DAFL_E_MODEL;
        dafl_put_u32(bytes, (uint32_t)head->rank);
        put_doubles(bytes, head->u, p->width * head->rank);
        put_doubles(bytes, head->m, head->rank * p->classes);
    } else if (out->kind == DAFL_SEGMENT_BLOCK) {
        const dafl_block *block = &model->blocks[out->layer];

        if (out->layer >= model->n_blocks)
            return DAFL_E_MODEL;
        dafl_put_u32(bytes, (uint32_t)block->rank);
        put_doubles(bytes, block->n, p->hidden * block->rank);
    }
    return dafl_writer_done(bytes) == DAFL_OK ? DAFL_FAULT_NONE : DAFL_E_MODEL;
}

/* Cells that answer: all of them for the counts, else a draw from the seed,
 * numbered so that consistent participation has one draw per layer. */
static void choose(void *self, const dafl_question *q,
                   const dafl_roster *roster, dafl_members *cohort)
{
    const dafl_deep_server *s = self;
    const dafl_params *p = &s->model->params;
    size_t n = (size_t)(s->part.permille / 1000.0 * roster->n_cells + 0.5);
    uint32_t cells[DAFL_CLIENTS_MAX];
    dafl_query query;
    dafl_draw draw;
    bool second;

    dafl_deep_query(&query, p, q);
    if (query.kind == DAFL_QUERY_CENSUS || query.kind == DAFL_QUERY_REPORT ||
        n >= roster->n_cells)
        return;
    for (uint32_t i = 0; i < roster->n_cells; i++)
        cells[i] = i;
    second = !s->part.consistent && query.kind == DAFL_QUERY_RESIDUAL;
    dafl_draw_init(&draw, &p->seed, DAFL_STREAM_PARTICIPATION,
                   2 * query.layer + (second ? 1 : 0));
    dafl_draw_shuffle(&draw, cells, roster->n_cells);
    for (size_t i = n < 1 ? 1 : n; i < roster->n_cells; i++) {
        dafl_members cell = dafl_roster_cell(roster, (uint16_t)cells[i]);

        *cohort = dafl_members_minus(cohort, &cell);
    }
}

static void keep_report(dafl_deep_server *s, const dafl_layout *layout,
                        const int64_t *x)
{
    size_t n_heads = s->model->params.layers + 1;

    for (size_t held = 0; held < 2; held++) {
        const int64_t *counts = x + layout->parts[1 + held].offset;

        s->rows[held] = (uint64_t)x[held];
        for (size_t t = 0; t < n_heads; t++)
            s->correct[held * n_heads + t] = (uint64_t)counts[t];
    }
}

/* A sum that has been judged: counts from 0 to n_max. */
static dafl_fault keep_census(dafl_deep_server *s, const dafl_layout *layout,
                              const int64_t *x, dafl_why *why)
{
    const dafl_params *p = &s->model->params;

    s->census[0] = (uint64_t)x[layout->parts[0].offset];
    for (size_t i = 0; i < p->classes; i++)
        s->census[1 + i] = (uint64_t)x[layout->parts[1].offset + i];
    return s->small || DAFL_WEAK(CENSUS)
               ? DAFL_FAULT_NONE
               : dafl_deep_census(p, s->census[0], s->census + 1, why);
}

static dafl_fault fault_of(dafl_err err, dafl_why *why)
{
    switch (err) {
    case DAFL_OK:
        return DAFL_FAULT_NONE;
    case DAFL_ERR_INPUT:
    case DAFL_ERR_NUMERIC:
        return DAFL_E_SUM_INVALID;
    case DAFL_ERR_ARG:
        return DAFL_E_STATE;
    default: /* blames nobody, and the question is asked again */
        dafl_why_set(why, "%s", dafl_err_name(err));
        return DAFL_E_TIMEOUT;
    }
}

static dafl_fault take(void *self, const dafl_question *q, const int64_t *x,
                       size_t len, const dafl_members *cohort, dafl_why *why)
{
    dafl_deep_server *s = self;
    const dafl_params *p = &s->model->params;
    dafl_sum sum = {.len = len, .i = (int64_t *)x}; /* only read */
    dafl_query query, expected;
    dafl_layout layout;
    dafl_shape want;
    dafl_err err = DAFL_OK;

    if (cohort->n != s->cohort.n)
        return DAFL_E_COHORT;
    dafl_set_clear(&s->cohort);
    for (size_t i = 0; i < cohort->n; i++)
        if (dafl_members_has(cohort, i))
            dafl_set_add(&s->cohort, i);
    dafl_trainer_next(s->trainer, &expected, &s->cohort);
    if (q->number != dafl_deep_number(p, &expected) ||
        dafl_deep_shape(&want, s->model, q) != DAFL_FAULT_NONE ||
        want.len != len)
        return DAFL_E_STATE;
    dafl_deep_query(&query, p, q);
    if (query.kind == DAFL_QUERY_INCREMENT &&
        expected.kind != DAFL_QUERY_INCREMENT)
        return DAFL_E_COHORT;
    if (!DAFL_WEAK(SANITY))
        err = dafl_judge_sum(s->trainer, &s->model->params, &query, &sum, why);
    dafl_query_layout(&layout, p, &query);
    if (err == DAFL_OK && query.kind == DAFL_QUERY_CENSUS) {
        dafl_fault fault = keep_census(s, &layout, x, why);

        if (fault != DAFL_FAULT_NONE)
            return fault;
    }
    if (err == DAFL_OK)
        err = dafl_trainer_take(s->trainer, &query, &sum, &s->cohort, why);
    if (err != DAFL_OK)
        return fault_of(err, why);
    dafl_set_copy(&s->newest, &s->cohort);
    if (query.kind == DAFL_QUERY_REPORT)
        keep_report(s, &layout, x);
    return DAFL_FAULT_NONE;
}

const dafl_server_method dafl_deep_server_method = {
    .next = next,
    .shape = shape,
    .segment = segment,
    .choose = choose,
    .take = take,
};
