/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lab/plant.h"

#include "lib/blas.h"
#include "lib/solve.h"
#include "tests/lab/figures.h"

/* Take what column j has of the columns before it off it, and make it 1 long.
 */
static void orthonormalise(double *u, size_t d, size_t rank, size_t j)
{
    double norm = 0;

    for (size_t k = 0; k < j; k++) {
        double along = 0;
        for (size_t i = 0; i < d; i++)
            along += u[i * rank + j] * u[i * rank + k];
        for (size_t i = 0; i < d; i++)
            u[i * rank + j] -= along * u[i * rank + k];
    }
    for (size_t i = 0; i < d; i++)
        norm += u[i * rank + j] * u[i * rank + j];
    for (size_t i = 0; i < d; i++)
        u[i * rank + j] /= sqrt(norm);
}

void plant_head(dafl_model *model, const double *m)
{
    const dafl_params *p = &model->params;
    dafl_head *head = &model->heads[0];
    size_t d = p->width, rank = head->rank;

    assert_true(rank > 0);
    for (size_t j = 0; j < rank; j++) {
        for (size_t i = 0; i < d; i++)
            head->u[i * rank + j] = j == 0 ? m[i] : i == j;
        orthonormalise(head->u, d, rank, j);
    }
    memset(head->m, 0, rank * p->classes * sizeof *head->m);
    memset(head->w, 0, d * p->classes * sizeof *head->w);
}

void plant_block(dafl_model *model, const double *n, const double *m)
{
    const dafl_params *p = &model->params;
    dafl_block *block = &model->blocks[0];
    double size = sqrt(dot(m, m, p->width));

    memset(block->n, 0, p->hidden * block->rank * sizeof *block->n);
    for (size_t i = 0; i < p->hidden; i++)
        block->n[i * block->rank] = size * n[i];
}

double *plant_lift(const dafl_projection *b, size_t first, size_t units)
{
    double *bs = doubles(b->in * units), *bb = doubles(units * units);
    double *x = doubles(units), *m = doubles(b->in);

    for (size_t i = 0; i < b->in; i++)
        memcpy(bs + i * units, b->w + i * b->out + first, units * sizeof *bs);
    for (size_t j = 0; j < units; j++)
        x[j] = 1;
    dafl_gemm_tn(bb, bs, bs, units, units, b->in, 0.0);
    assert_ok(dafl_solve_ridge(bb, x, units, 1, 0, NULL));
    dafl_gemm(m, bs, x, b->in, 1, units, 0.0);
    free(x);
    free(bb);
    free(bs);
    return m;
}

double *plant_ones(const dafl_params *p, const double *pi, const double *f1)
{
    size_t f = p->hidden;
    double *a = doubles(f * f), *n = doubles(f);

    memcpy(a, pi, f * f * sizeof *a);
    memcpy(n, f1, f * sizeof *n);
    assert_ok(dafl_solve_ridge(a, n, f, 1, 1e-6, NULL));
    free(a);
    return n;
}

double *plant_totals(const dafl_params *p, const double *upsilon)
{
    double *f1 = doubles(p->hidden);

    for (size_t i = 0; i < p->hidden * p->classes; i++)
        f1[i / p->classes] += upsilon[i];
    return f1;
}
