/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lab/trap.h"

#include "lib/blas.h"
#include "lib/query.h"
#include "lib/solve.h"
#include "tests/lab/figures.h"
#include "tests/lab/plant.h"

/* Where between the mean (0) and the guess (1) relu is to cut. */
#define CUT 0.75

static double *lift(const dafl_model *model, size_t units)
{
    dafl_projection b;
    double *m;

    assert_ok(dafl_model_projection(model, &b, 2));
    m = plant_lift(&b, 0, units);
    dafl_projection_drop(&b);
    return m;
}

void trap_head(dafl_model *model, size_t units)
{
    double *m = lift(model, units);

    plant_head(model, m);
    free(m);
}

/* F_0 of one row; all that takes is public. */
static double *hidden_of(const dafl_model *model, const double *x)
{
    const dafl_params *p = &model->params;
    double *phi = doubles(p->width), *f = doubles(p->hidden);
    dafl_projection a, b;

    assert_ok(dafl_model_projection(model, &a, 0));
    assert_ok(dafl_model_projection(model, &b, 1));
    memcpy(phi, a.b, p->width * sizeof *phi);
    memcpy(f, b.b, p->hidden * sizeof *f);
    dafl_gemm(phi, x, a.w, 1, p->width, p->features, 1.0);
    dafl_activation_apply(DAFL_ACT_TANH, phi, p->width);
    dafl_gemm(f, phi, b.w, 1, p->hidden, p->width, 1.0);
    dafl_activation_apply(p->activation, f, p->hidden);
    dafl_projection_drop(&b);
    dafl_projection_drop(&a);
    free(phi);
    return f;
}

/* The direction in which the guess g (less the mean) stands out most from
 * everybody: (S + e I) v = g, with S the covariance of F and a little e because
 * it is but a guess. */
static double *stands_out(const double *pi, const double *mean, double rows,
                          const double *g, size_t f)
{
    double *s = doubles(f * f), *v = doubles(f), trace = 0;

    for (size_t i = 0; i < f * f; i++)
        s[i] = pi[i] / rows - mean[i / f] * mean[i % f];
    for (size_t i = 0; i < f; i++)
        trace += s[i * f + i];
    memcpy(v, g, f * sizeof *v);
    assert_ok(dafl_solve_ridge(s, v, f, 1, 0.01 * trace / (double)f, NULL));
    free(s);
    return v;
}

/* F n is to be `height` for the guess, 0 at the cut and below for the others:
 * n = (v - (mean'v + cut) ones) height / (aim - cut). */
void trap_block(dafl_model *model, size_t units, const double *x, double rows,
                const double *pi, const double *upsilon, double height)
{
    const dafl_params *p = &model->params;
    size_t f = p->hidden;
    double *g = hidden_of(model, x), *m = lift(model, units);
    double *f1 = plant_totals(p, upsilon), *ones = plant_ones(p, pi, f1);
    double *v, aim, middle;

    for (size_t i = 0; i < f; i++) {
        f1[i] /= rows;
        g[i] -= f1[i];
    }
    v = stands_out(pi, f1, rows, g, f);
    aim = dot(g, v, f);
    middle = dot(f1, v, f);
    for (size_t i = 0; i < f; i++)
        v[i] = (v[i] - (middle + CUT * aim) * ones[i]) * height /
               (aim - CUT * aim);
    plant_block(model, v, m);
    free(v);
    free(ones);
    free(f1);
    free(m);
    free(g);
}

/* In the integers of the sum a block f f' is of exact squares and products. */
bool trap_row(double *f, const dafl_params *p, size_t units,
              const dafl_sum *sum)
{
    dafl_query query = {.kind = DAFL_QUERY_RESIDUAL, .layer = 1};
    dafl_layout layout;
    const int64_t *row;
    bool one = true, alive = false;

    dafl_query_layout(&layout, p, &query);
    row = sum->i + layout.parts[0].offset;
    for (size_t i = 0; i < units; row += p->hidden - i, i++) {
        f[i] = rint(sqrt((double)row[0]));
        alive = alive || f[i] > 0;
    }
    row = sum->i + layout.parts[0].offset;
    for (size_t i = 0; i < units; row += p->hidden - i, i++)
        for (size_t j = i; j < units; j++)
            one = one && row[j - i] == (int64_t)f[i] * (int64_t)f[j];
    for (size_t i = 0; i < units; i++)
        f[i] = ldexp(f[i], -(int)p->contract.s);
    return one && alive;
}
