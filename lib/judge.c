/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/judge.h"

#include <float.h>
#include <math.h>

#include "lib/secret.h"
#include "lib/solve.h"

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
    if (!dafl_solve_definite(a, d))
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

dafl_err dafl_judge_sum(const dafl_trainer *trainer, const dafl_params *params,
                        const dafl_query *query, const dafl_sum *sum,
                        dafl_why *why)
{
    judged j = {.params = params, .query = query, .x = sum->i, .why = why};

    dafl_query_layout(&j.layout, j.params, query);
    switch (query->kind) {
    case DAFL_QUERY_CENSUS:
        return judge_census(&j);
    case DAFL_QUERY_GRAM:
    case DAFL_QUERY_RESIDUAL:
        DAFL_TRY(judge_square(&j, &j.layout.parts[0]));
        DAFL_TRY(judge_magnitude(&j, &j.layout.parts[1]));
        return judge_definite(&j, trainer, sum);
    case DAFL_QUERY_INCREMENT:
        DAFL_TRY(judge_magnitude(&j, &j.layout.parts[0]));
        return judge_definite(&j, trainer, sum);
    case DAFL_QUERY_REPORT:
        return judge_report(&j);
    case DAFL_QUERY_DONE:
        break;
    }
    return DAFL_ERR_ARG;
}
