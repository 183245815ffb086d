/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/deep.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
};

/* ---- whether a sum can be true ---- */

/* A sum under judgement: at most n_max rows, of operands within +-q on the
 * grid. */
typedef struct {
    const dafl_params *params;
    const dafl_query *query;
    const int64_t *x;
    dafl_layout layout;
    dafl_why *why;
} judged;

#define IMPOSSIBLE(j, ...) \
    (dafl_why_set((j)->why, __VA_ARGS__), DAFL_ERR_NUMERIC)

/* The largest an entry can be: so many rows of an operand (frac = s) or of the
 * product of two (frac = 2 s), in its integers. < 2^63 by the contract. */
static int64_t largest(const judged *j, const dafl_part *part)
{
    const dafl_contract *c = &j->params->contract;
    int64_t unit = (int64_t)c->q << c->s, most = (int64_t)c->n_max;

    for (unsigned bits = part->frac; bits > 0; bits -= c->s)
        most *= unit;
    return most;
}

static dafl_err judge_magnitude(const judged *j, const dafl_part *part)
{
    int64_t most = largest(j, part);

    for (size_t i = 0; i < part->len; i++)
        if (j->x[part->offset + i] > most || j->x[part->offset + i] < -most)
            return IMPOSSIBLE(j, "%s: entry %zu is beyond what n_max rows give",
                              part->name, i);
    return DAFL_OK;
}

/* Counts from 0 to `most`. */
static dafl_err judge_counts(const judged *j, const dafl_part *part,
                             int64_t most)
{
    for (size_t i = 0; i < part->len; i++)
        if (j->x[part->offset + i] < 0 || j->x[part->offset + i] > most)
            return IMPOSSIBLE(j, "%s: count %zu is not between 0 and %lld",
                              part->name, i, (long long)most);
    return DAFL_OK;
}

static dafl_err judge_census(const judged *j)
{
    const dafl_part *classes = &j->layout.parts[1];
    int64_t rows = j->x[0], sum = 0;

    DAFL_TRY(judge_counts(j, &j->layout.parts[0],
                          (int64_t)j->params->contract.n_max));
    DAFL_TRY(judge_counts(j, classes, rows));
    for (size_t i = 0; i < classes->len; i++)
        sum += j->x[classes->offset + i]; /* <= 2^16 * 2^40 */
    if (sum != rows)
        return IMPOSSIBLE(j, "the classes do not add up to the rows");
    return DAFL_OK;
}

static dafl_err judge_report(const judged *j)
{
    DAFL_TRY(judge_counts(j, &j->layout.parts[0],
                          (int64_t)j->params->contract.n_max));
    DAFL_TRY(judge_counts(j, &j->layout.parts[1], j->x[0]));
    return judge_counts(j, &j->layout.parts[2], j->x[1]);
}

__extension__ typedef unsigned __int128 wide;

/* a^2 <= b c, for b, c >= 0. */
static bool within_product(int64_t a, int64_t b, int64_t c)
{
    uint64_t size = a < 0 ? 0 - (uint64_t)a : (uint64_t)a;

    return (wide)size * size <= (wide)(uint64_t)b * (uint64_t)c;
}

/* A sum of squares: no negative diagonal, and |a_ij|^2 <= a_ii a_jj, exactly.
 * Row i of the upper triangle begins with a_ii. */
static dafl_err judge_square(const judged *j, const dafl_part *part)
{
    const int64_t *x = j->x + part->offset;
    size_t n = part->rows;
    int64_t most = largest(j, part);

    for (size_t i = 0, at = 0; i < n; at += n - i, i++)
        if (x[at] < 0 || x[at] > most)
            return IMPOSSIBLE(j,
                              "%s: diagonal entry %zu is negative or beyond "
                              "what n_max rows give",
                              part->name, i);
    for (size_t i = 0, at = 0; i < n; at += n - i, i++)
        for (size_t k = i + 1, other = at + n - i; k < n; other += n - k, k++)
            if (!within_product(x[at + k - i], x[at], x[other]))
                return IMPOSSIBLE(j,
                                  "%s: entry %zu, %zu is larger than its "
                                  "diagonal allows",
                                  part->name, i, k);
    return DAFL_OK;
}

#define PIVOTS 32

/* Cholesky's method on the upper triangle, in place; whether it comes to the
 * end. A few pivot rows at a time, so that they stay in the cache. */
static bool is_definite(double *a, size_t d)
{
    for (size_t first = 0; first < d; first += PIVOTS) {
        size_t end = d - first < PIVOTS ? d : first + PIVOTS;

        for (size_t i = first; i < d; i++) {
            double *row = a + i * d, scale;

            for (size_t k = first; k < i && k < end; k++) {
                const double *pivot = a + k * d;
                double factor = pivot[i];

                for (size_t c = i; c < d; c++)
                    row[c] -= factor * pivot[c];
            }
            if (i >= end)
                continue;
            if (!(row[i] > 0))
                return false;
            scale = 1.0 / sqrt(row[i]);
            for (size_t c = i; c < d; c++)
                row[c] *= scale;
        }
    }
    return true;
}

/* No eigenvalue of a (d x d, destroyed) below minus `error`. In d steps of
 * rounding Cholesky's method behaves as if a_ij were off by no more than
 * (d + 1) eps sqrt(a_ii a_jj), a matrix of norm (d + 1) eps trace
 * (Higham, 10.1); the integers became doubles with one eps more. Twice that on
 * the diagonal lets every true sum pass. */
static dafl_err judge_spectrum(const judged *j, double *a, size_t d,
                               double error)
{
    double trace = 0, shift;

    for (size_t i = 0; i < d; i++)
        trace += fabs(a[i * d + i]);
    shift = error + 2 * (double)(d + 2) * DBL_EPSILON * trace;
    if (shift == 0) /* all zeros: judge_square has seen the rest */
        return DAFL_OK;
    for (size_t i = 0; i < d; i++)
        a[i * d + i] += shift;
    if (!is_definite(a, d))
        return IMPOSSIBLE(j, "the matrix has a negative eigenvalue");
    return DAFL_OK;
}

/* How far below zero an eigenvalue of a carried G may honestly be. The sites
 * round Z (n x r, r <= d) and then Phi (n x d) to the grid at each layer, which
 * G does not follow: both matrices are off by less than e / 2 in the Frobenius
 * norm, e = 2^-s sqrt(n d), so G is by less than 2 ||Phi|| e + e^2 a layer,
 * with
 * ||Phi||^2 = tr G, today's for every layer: the norm of an error is far below
 * its Frobenius norm, which leaves room for a Phi that was larger before. */
static double carried_error(const judged *j, const double *g)
{
    const dafl_params *p = j->params;
    double trace = 0, e;

    for (size_t i = 0; i < p->width; i++)
        trace += fabs(g[i * p->width + i]);
    e = ldexp(sqrt((double)p->contract.n_max * (double)p->width),
              -(int)p->contract.s);
    return (double)j->query->layer * (2 * sqrt(trace) * e + e * e);
}

static dafl_err judge_definite(const judged *j, const dafl_trainer *trainer,
                               const dafl_sum *sum)
{
    bool increment = j->query->kind == DAFL_QUERY_INCREMENT;
    size_t d = increment ? j->params->width : j->layout.parts[0].rows;
    double *a = dafl_bulk_alloc(d * d, sizeof *a);
    dafl_err err = DAFL_ERR_NOMEM;

    if (a == NULL)
        return err;
    if (increment) {
        err = dafl_trainer_carried(trainer, a, j->query, sum);
    } else {
        dafl_sum_get(sum, &j->layout.parts[0], a);
        err = DAFL_OK;
    }
    if (err == DAFL_OK)
        err = judge_spectrum(j, a, d, increment ? carried_error(j, a) : 0);
    dafl_bulk_free(a);
    return err;
}

/* DAFL_ERR_NUMERIC, with the reason, for a sum that no rows within the contract
 * can have given. */
static dafl_err judge(const dafl_deep_server *s, const dafl_query *query,
                      const dafl_sum *sum, dafl_why *why)
{
    judged j = {
        .params = &s->model->params, .query = query, .x = sum->i, .why = why};

    dafl_query_layout(&j.layout, j.params, query);
    switch (query->kind) {
    case DAFL_QUERY_CENSUS:
        return judge_census(&j);
    case DAFL_QUERY_GRAM:
    case DAFL_QUERY_RESIDUAL:
        DAFL_TRY(judge_square(&j, &j.layout.parts[0]));
        DAFL_TRY(judge_magnitude(&j, &j.layout.parts[1]));
        return judge_definite(&j, s->trainer, sum);
    case DAFL_QUERY_INCREMENT:
        DAFL_TRY(judge_magnitude(&j, &j.layout.parts[0]));
        return judge_definite(&j, s->trainer, sum);
    case DAFL_QUERY_REPORT:
        return judge_report(&j);
    case DAFL_QUERY_DONE:
        break;
    }
    return DAFL_ERR_ARG;
}

/* ---- the server's side ---- */

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
    if (s->correct == NULL || dafl_set_init(&s->newest, n_clients) != DAFL_OK ||
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
    free(s);
    *server = NULL;
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
    if (out->kind == DAFL_SEGMENT_HEAD) {
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
        err = judge(s, &query, &sum, why);
    if (err == DAFL_OK)
        err = dafl_trainer_take(s->trainer, &query, &sum, &s->cohort, why);
    if (err != DAFL_OK)
        return fault_of(err, why);
    dafl_set_copy(&s->newest, &s->cohort);
    if (query.kind == DAFL_QUERY_REPORT) {
        dafl_query_layout(&layout, p, &query);
        keep_report(s, &layout, x);
    }
    return DAFL_FAULT_NONE;
}

const dafl_server_method dafl_deep_server_method = {
    .next = next,
    .shape = shape,
    .segment = segment,
    .choose = choose,
    .take = take,
};
