/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/trainer.h"

#include <stdlib.h>
#include <string.h>

#include "lib/blas.h"
#include "lib/secret.h"
#include "lib/solve.h"

struct dafl_trainer {
    dafl_model *model;
    dafl_query_kind stage; /* GRAM stands for INCREMENT too */
    size_t layer;
    uint64_t rows;
    dafl_set census, base, residual; /* cohorts of n, of G and of Pi */
    double *g, *ht;                  /* d x d symmetric, C x d (H') */
    double *zz, *nups; /* N'Pi N (r x r), N'Upsilon (r x C): the newest block */
    double *s;         /* singular values of the newest head */
    double penalty;    /* gamma sum ||Omega||^2 so far */
    dafl_risk risk;
};

dafl_err dafl_trainer_new(dafl_trainer **out, dafl_model *model, size_t n_sites)
{
    const dafl_params *p = &model->params;
    size_t d = p->width, c = p->classes, full = d < c ? d : c;
    dafl_trainer *t = calloc(1, sizeof *t);

    if (t == NULL)
        return DAFL_ERR_NOMEM;
    dafl_blas_single_thread(); /* a server without a pool solves alike */
    t->model = model;
    t->g = dafl_bulk_alloc(d * d, sizeof *t->g);
    t->ht = dafl_bulk_alloc(c * d, sizeof *t->ht);
    t->zz = dafl_bulk_alloc(full * full, sizeof *t->zz);
    t->nups = dafl_bulk_alloc(full * c, sizeof *t->nups);
    t->s = dafl_bulk_alloc(full, sizeof *t->s);
    if (t->g == NULL || t->ht == NULL || t->zz == NULL || t->nups == NULL ||
        t->s == NULL || dafl_set_init(&t->census, n_sites) != DAFL_OK ||
        dafl_set_init(&t->base, n_sites) != DAFL_OK ||
        dafl_set_init(&t->residual, n_sites) != DAFL_OK) {
        dafl_trainer_free(&t);
        return DAFL_ERR_NOMEM;
    }
    *out = t;
    return DAFL_OK;
}

void dafl_trainer_free(dafl_trainer **trainer)
{
    dafl_trainer *t = *trainer;

    if (t == NULL)
        return;
    dafl_bulk_free(t->g);
    dafl_bulk_free(t->ht);
    dafl_bulk_free(t->zz);
    dafl_bulk_free(t->nups);
    dafl_bulk_free(t->s);
    dafl_set_drop(&t->census);
    dafl_set_drop(&t->base);
    dafl_set_drop(&t->residual);
    free(t);
    *trainer = NULL;
}

bool dafl_trainer_increments(const dafl_params *p)
{
    return p->schedule == DAFL_SCHEDULE_DELTA &&
           p->ablate != DAFL_ABLATE_SKIP && p->ablate != DAFL_ABLATE_OMEGA;
}

void dafl_trainer_next(const dafl_trainer *t, dafl_query *out,
                       const dafl_set *cohort)
{
    *out = (dafl_query){.kind = t->stage, .layer = t->layer};
    if (t->stage == DAFL_QUERY_GRAM && t->layer > 0 &&
        dafl_trainer_increments(&t->model->params) &&
        dafl_set_equal(cohort, &t->residual) &&
        dafl_set_equal(cohort, &t->base)) {
        out->kind = DAFL_QUERY_INCREMENT;
        out->rank = t->model->blocks[t->layer - 1].rank;
    }
}

/* out (cols x rows) = transpose of in (rows x cols). */
static void transpose(double *out, const double *in, size_t rows, size_t cols)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            out[c * rows + r] = in[r * cols + c];
}

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* tr Y'Y - 2 tr W'H + tr W'G W; Y'Y is the number of rows, which the census
 * tells for its own cohort only. wt: W', gwt: room, both C x d. */
static void assess(dafl_trainer *t, const double *g, const double *ht,
                   const double *wt, double *gwt, const dafl_set *cohort)
{
    const dafl_params *p = &t->model->params;
    size_t n = p->classes * p->width;

    dafl_gemm(gwt, wt, g, p->classes, p->width, p->width, 0.0);
    t->risk.known = dafl_set_equal(&t->census, cohort);
    t->risk.risk = (double)t->rows - 2 * dot(wt, ht, n) + dot(wt, gwt, n);
    t->risk.regularised_risk =
        t->risk.risk + p->lambda * dot(wt, wt, n) + t->penalty;
}

/* The classifier for given G and H', appended to the model. */
static dafl_err add_head(dafl_trainer *t, const double *g, const double *ht,
                         const dafl_set *cohort, dafl_why *why)
{
    const dafl_params *p = &t->model->params;
    size_t d = p->width, c = p->classes, full = d < c ? d : c, rank = 0;
    dafl_err err = DAFL_ERR_NOMEM;
    double *work = dafl_bulk_alloc(d * d, sizeof *work);
    double *wt = dafl_bulk_alloc(2 * c * d, sizeof *wt), *copy;
    double *ut = dafl_bulk_alloc(2 * full * d, sizeof *ut);
    double *m = dafl_bulk_alloc(full * c, sizeof *m);

    if (work == NULL || wt == NULL || ut == NULL || m == NULL)
        goto out;
    copy = wt + c * d;
    memcpy(work, g, d * d * sizeof *g);
    memcpy(wt, ht, c * d * sizeof *ht);
    err = dafl_solve_ridge(work, wt, d, c, p->lambda, why);
    if (err != DAFL_OK)
        goto out;
    memcpy(copy, wt, c * d * sizeof *wt);
    err = dafl_solve_factor(ut, m, t->s, &rank, copy, d, c, why);
    if (err != DAFL_OK)
        goto out;
    transpose(ut + full * d, ut, rank, d);
    err = dafl_model_add_head(t->model, ut + full * d, m, rank);
    if (err == DAFL_OK)
        assess(t, g, ht, wt, copy, cohort);
out:
    dafl_bulk_free(m);
    dafl_bulk_free(ut);
    dafl_bulk_free(wt);
    dafl_bulk_free(work);
    return err;
}

static dafl_err take_census(dafl_trainer *t, const dafl_sum *sum,
                            const dafl_layout *layout, const dafl_set *cohort,
                            dafl_why *why)
{
    double rows = 0;

    dafl_sum_get(sum, &layout->parts[0], &rows);
    if (!(rows >= 1) || rows > (double)t->model->params.contract.n_max)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "the sites have %.0f rows together, the numeric "
                         "contract allows 1 to %llu",
                         rows,
                         (unsigned long long)t->model->params.contract.n_max);
    t->rows = (uint64_t)rows;
    dafl_set_copy(&t->census, cohort);
    t->stage = DAFL_QUERY_GRAM;
    return DAFL_OK;
}

/* After a head: the next layer's residual, or the end. Without a trainable
 * Omega there is nothing to ask about F. */
static dafl_err after_head(dafl_trainer *t)
{
    const dafl_params *p = &t->model->params;

    t->stage = DAFL_QUERY_REPORT;
    if (t->layer == p->layers)
        return DAFL_OK;
    t->stage = DAFL_QUERY_RESIDUAL;
    if (p->ablate == DAFL_ABLATE_OMEGA) {
        DAFL_TRY(dafl_model_add_block(t->model, NULL, 0));
        t->stage = DAFL_QUERY_GRAM;
        t->layer++;
    }
    return DAFL_OK;
}

/* Solve for the head of new sums *g and *ht; if that works they become the
 * trainer's (the caller frees what it then holds). */
static dafl_err adopt(dafl_trainer *t, double **g, double **ht,
                      const dafl_set *cohort, dafl_why *why)
{
    double *old_g = t->g, *old_ht = t->ht;

    DAFL_TRY(add_head(t, *g, *ht, cohort, why));
    t->g = *g;
    t->ht = *ht;
    *g = old_g;
    *ht = old_ht;
    dafl_set_copy(&t->base, cohort);
    return after_head(t);
}

static dafl_err take_gram(dafl_trainer *t, const dafl_sum *sum,
                          const dafl_layout *layout, const dafl_set *cohort,
                          dafl_why *why)
{
    const dafl_params *p = &t->model->params;
    dafl_err err = DAFL_ERR_NOMEM;
    double *g = dafl_bulk_alloc(p->width * p->width, sizeof *g);
    double *ht = dafl_bulk_alloc(p->classes * p->width, sizeof *ht);

    if (g != NULL && ht != NULL) {
        dafl_sum_get(sum, &layout->parts[0], g);
        dafl_sum_get(sum, &layout->parts[1], ht);
        err = adopt(t, &g, &ht, cohort, why);
    }
    dafl_bulk_free(ht);
    dafl_bulk_free(g);
    return err;
}

/* G += P U' + U P' + U (Z'Z) U' and H += U (Z'Y), where P = Phi'Z,
 * Z'Z = N'Pi N and Z'Y = N'Upsilon + P'W. With P2 = P + U (Z'Z) / 2 the first
 * is P2 U' + U P2'. g and ht hold G and H' on entry and are brought forward. */
static dafl_err carry_forward(const dafl_trainer *t, double *g, double *ht,
                              const double *phiz)
{
    const dafl_params *p = &t->model->params;
    const dafl_head *head = &t->model->heads[t->layer - 1];
    size_t d = p->width, c = p->classes, r = head->rank;
    double *half = dafl_bulk_alloc(d * r, sizeof *half);
    double *zy = dafl_bulk_alloc(r * c, sizeof *zy);
    dafl_err err = DAFL_ERR_NOMEM;

    if (half == NULL || zy == NULL)
        goto out;
    memcpy(zy, t->nups, r * c * sizeof *zy);
    dafl_gemm_tn(zy, phiz, head->w, r, c, d, 1.0);
    dafl_gemm(half, head->u, t->zz, d, r, r, 0.0);
    for (size_t i = 0; i < d * r; i++)
        half[i] = phiz[i] + 0.5 * half[i];
    dafl_syr2k(g, half, head->u, d, r);
    for (size_t i = 0; i < d; i++)
        for (size_t j = i + 1; j < d; j++)
            g[j * d + i] = g[i * d + j];
    transpose(half, head->u, d, r);
    dafl_gemm_tn(ht, zy, half, c, d, r, 1.0);
    err = DAFL_OK;
out:
    dafl_bulk_free(zy);
    dafl_bulk_free(half);
    return err;
}

/* G and H' as an increment makes them. */
static dafl_err carried(const dafl_trainer *t, double *g, double *ht,
                        const dafl_sum *sum, const dafl_layout *layout)
{
    const dafl_params *p = &t->model->params;
    size_t d = p->width, c = p->classes;
    dafl_err err = DAFL_ERR_NOMEM;
    double *phiz = dafl_bulk_alloc(layout->len, sizeof *phiz);

    if (phiz != NULL) {
        memcpy(g, t->g, d * d * sizeof *g);
        memcpy(ht, t->ht, c * d * sizeof *ht);
        dafl_sum_get(sum, &layout->parts[0], phiz);
        err = carry_forward(t, g, ht, phiz);
    }
    dafl_bulk_free(phiz);
    return err;
}

dafl_err dafl_trainer_carried(const dafl_trainer *t, double *g,
                              const dafl_query *query, const dafl_sum *sum)
{
    const dafl_params *p = &t->model->params;
    dafl_err err = DAFL_ERR_NOMEM;
    dafl_layout layout;
    double *ht;

    dafl_query_layout(&layout, p, query);
    if (query->kind != DAFL_QUERY_INCREMENT || t->stage != DAFL_QUERY_GRAM ||
        t->layer == 0 || query->layer != t->layer ||
        query->rank != t->model->blocks[t->layer - 1].rank ||
        sum->len != layout.len)
        return DAFL_ERR_ARG;
    ht = dafl_bulk_alloc(p->classes * p->width, sizeof *ht);
    if (ht != NULL)
        err = carried(t, g, ht, sum, &layout);
    dafl_bulk_free(ht);
    return err;
}

static dafl_err take_increment(dafl_trainer *t, const dafl_sum *sum,
                               const dafl_layout *layout,
                               const dafl_set *cohort, dafl_why *why)
{
    const dafl_params *p = &t->model->params;
    dafl_err err = DAFL_ERR_NOMEM;
    double *g = dafl_bulk_alloc(p->width * p->width, sizeof *g);
    double *ht = dafl_bulk_alloc(p->classes * p->width, sizeof *ht);

    if (g != NULL && ht != NULL)
        err = carried(t, g, ht, sum, layout);
    if (err == DAFL_OK)
        err = adopt(t, &g, &ht, cohort, why);
    dafl_bulk_free(ht);
    dafl_bulk_free(g);
    return err;
}

/* N from Pi and Upsilon. Row j of the right-hand side is s_j (Upsilon Q)_j',
 * and s_j Q_j' is row j of M. */
static dafl_err take_residual(dafl_trainer *t, const dafl_sum *sum,
                              const dafl_layout *layout, const dafl_set *cohort,
                              dafl_why *why)
{
    const dafl_params *p = &t->model->params;
    const dafl_head *head = &t->model->heads[t->layer];
    size_t f = p->hidden, c = p->classes, r = head->rank;
    dafl_err err = DAFL_ERR_NOMEM;
    double *pi = dafl_bulk_alloc(f * f, sizeof *pi);
    double *ups = dafl_bulk_alloc(f * c, sizeof *ups);
    double *nt = dafl_bulk_alloc(r * f, sizeof *nt);
    double *n = dafl_bulk_alloc(f * r, sizeof *n);

    if (pi == NULL || ups == NULL || nt == NULL || n == NULL)
        goto out;
    dafl_sum_get(sum, &layout->parts[0], pi);
    dafl_sum_get(sum, &layout->parts[1], ups);
    dafl_gemm_nt(nt, head->m, ups, r, f, c, 0.0);
    err = dafl_solve_sandwich(nt, pi, t->s, f, r, p->gamma, why);
    if (err != DAFL_OK)
        goto out;
    transpose(n, nt, r, f);
    err = dafl_model_add_block(t->model, n, r);
    if (err != DAFL_OK)
        goto out;
    dafl_gemm(t->nups, nt, ups, r, c, f, 0.0);
    dafl_sum_get(sum, &layout->parts[0], pi); /* the solver destroyed it */
    dafl_gemm(n, nt, pi, r, f, f, 0.0);
    dafl_gemm_nt(t->zz, n, nt, r, r, f, 0.0);
    t->penalty += p->gamma * dot(nt, nt, r * f); /* ||N U'|| = ||N|| */
    dafl_set_copy(&t->residual, cohort);
    t->stage = DAFL_QUERY_GRAM;
    t->layer++;
out:
    dafl_bulk_free(n);
    dafl_bulk_free(nt);
    dafl_bulk_free(ups);
    dafl_bulk_free(pi);
    return err;
}

dafl_err dafl_trainer_take(dafl_trainer *t, const dafl_query *query,
                           const dafl_sum *sum, const dafl_set *cohort,
                           dafl_why *why)
{
    dafl_query expected;
    dafl_layout layout;

    dafl_trainer_next(t, &expected, cohort);
    /* A full query is right whenever an increment would be. */
    if (query->layer != expected.layer ||
        (query->kind == DAFL_QUERY_INCREMENT && query->rank != expected.rank) ||
        (query->kind != expected.kind &&
         !(query->kind == DAFL_QUERY_GRAM &&
           expected.kind == DAFL_QUERY_INCREMENT)))
        return DAFL_ERR_ARG;
    dafl_query_layout(&layout, &t->model->params, query);
    if (sum->len != layout.len)
        return DAFL_ERR_ARG;
    switch (query->kind) {
    case DAFL_QUERY_CENSUS:
        return take_census(t, sum, &layout, cohort, why);
    case DAFL_QUERY_GRAM:
        return take_gram(t, sum, &layout, cohort, why);
    case DAFL_QUERY_RESIDUAL:
        return take_residual(t, sum, &layout, cohort, why);
    case DAFL_QUERY_INCREMENT:
        return take_increment(t, sum, &layout, cohort, why);
    case DAFL_QUERY_REPORT:
        t->stage = DAFL_QUERY_DONE;
        return DAFL_OK;
    case DAFL_QUERY_DONE:
        break;
    }
    return DAFL_ERR_ARG;
}

dafl_risk dafl_trainer_risk(const dafl_trainer *t)
{
    return t->risk;
}

uint64_t dafl_trainer_rows(const dafl_trainer *t)
{
    return t->rows;
}
