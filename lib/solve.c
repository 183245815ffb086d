/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/solve.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <lapacke.h>

#include "lib/blas.h"
#include "lib/secret.h"

/* The lower triangle in column-major order is the upper one in row-major
 * order, the one our sums fill. */
#define UPLO 'L'

static int all_finite(const double *x, size_t n)
{
    double sum = 0; /* x - x is 0 for finite x and NaN otherwise */

    for (size_t i = 0; i < n; i++)
        sum += x[i] - x[i];
    return sum == 0;
}

static double max_abs(const double *x, size_t n)
{
    double max = 0;

    for (size_t i = 0; i < n; i++)
        max = fmax(max, fabs(x[i]));
    return max;
}

/* Eigen-decomposition in place: a becomes V (columns are eigenvectors), l the
 * eigenvalues, ascending. */
static dafl_err eigen(double *a, double *l, size_t d, dafl_why *why)
{
    lapack_int n = (lapack_int)d, n_ints = 0, info;
    double n_doubles = 0, *work;
    lapack_int *ints;

    info = LAPACKE_dsyevd_work(LAPACK_COL_MAJOR, 'V', UPLO, n, a, n, l,
                               &n_doubles, -1, &n_ints, -1);
    if (info != 0)
        return DAFL_ERR_NOMEM;
    work = dafl_bulk_alloc((size_t)n_doubles, sizeof *work);
    ints = dafl_bulk_alloc((size_t)n_ints, sizeof *ints);
    info = LAPACK_WORK_MEMORY_ERROR;
    if (work != NULL && ints != NULL)
        info = LAPACKE_dsyevd_work(LAPACK_COL_MAJOR, 'V', UPLO, n, a, n, l,
                                   work, (lapack_int)n_doubles, ints, n_ints);
    dafl_bulk_free(ints);
    dafl_bulk_free(work);
    if (info == 0)
        return DAFL_OK;
    if (info == LAPACK_WORK_MEMORY_ERROR)
        return DAFL_ERR_NOMEM;
    return dafl_fail(why, DAFL_ERR_NUMERIC,
                     "the eigenvalue iteration did not converge");
}

/* x (k rows of length d) <- rows times V, scaled entry by entry, times V':
 * scale(i, j) multiplies component i of row j. */
typedef double scale_fn(const void *ctx, double l, double l_cut, size_t j);

static dafl_err apply_spectrum(double *x, double *a, size_t d, size_t k,
                               scale_fn *scale, const void *ctx, dafl_why *why)
{
    dafl_err err = DAFL_ERR_NOMEM;
    double *l = dafl_bulk_alloc(d, sizeof *l);
    double *y = dafl_bulk_alloc(k * d, sizeof *y);
    double cut;

    if (l == NULL || y == NULL)
        goto out;
    err = eigen(a, l, d, why);
    if (err != DAFL_OK)
        goto out;
    cut = (double)d * DBL_EPSILON * max_abs(l, d);
    /* Column-major V is V' to row-major eyes: y = x V = x (a)'. */
    dafl_gemm_nt(y, x, a, k, d, d, 0.0);
    for (size_t j = 0; j < k; j++)
        for (size_t i = 0; i < d; i++)
            y[j * d + i] *= scale(ctx, l[i], cut, j);
    dafl_gemm(x, y, a, k, d, d, 0.0);
out:
    dafl_bulk_free(y);
    dafl_bulk_free(l);
    return err;
}

static double inverse_or_zero(const void *ctx, double l, double cut, size_t j)
{
    (void)ctx;
    (void)j;
    return l > cut ? 1.0 / l : 0.0;
}

/* Cholesky; says whether the result can be trusted. */
static dafl_err solve_definite(double *g, double *w, size_t d, size_t k,
                               int *singular)
{
    lapack_int n = (lapack_int)d;
    double norm = LAPACKE_dlansy(LAPACK_COL_MAJOR, '1', UPLO, n, g, n);
    double rcond = 0;
    lapack_int info = LAPACKE_dpotrf(LAPACK_COL_MAJOR, UPLO, n, g, n);

    *singular = 1;
    if (info > 0)
        return DAFL_OK;
    if (info < 0 ||
        LAPACKE_dpocon(LAPACK_COL_MAJOR, UPLO, n, g, n, norm, &rcond) != 0)
        return DAFL_ERR_NOMEM;
    if (!(rcond > (double)d * DBL_EPSILON))
        return DAFL_OK;
    *singular = 0;
    return LAPACKE_dpotrs(LAPACK_COL_MAJOR, UPLO, n, (lapack_int)k, g, n, w,
                          n) == 0
               ? DAFL_OK
               : DAFL_ERR_NOMEM;
}

bool dafl_solve_definite(double *a, size_t d)
{
    return LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, UPLO, (lapack_int)d, a,
                               (lapack_int)d) == 0;
}

dafl_err dafl_solve_ridge(double *g, double *w, size_t d, size_t k,
                          double lambda, dafl_why *why)
{
    dafl_err err = DAFL_ERR_NOMEM;
    int singular = 0;
    double *keep = dafl_bulk_alloc(d * d, sizeof *keep);

    if (keep == NULL)
        goto out;
    err = DAFL_ERR_NUMERIC;
    if (!all_finite(g, d * d) || !all_finite(w, d * k) || !isfinite(lambda)) {
        dafl_why_set(why, "the Gram matrix is not finite");
        goto out;
    }
    for (size_t i = 0; i < d; i++)
        g[i * d + i] += lambda;
    memcpy(keep, g, d * d * sizeof *g);
    err = solve_definite(g, w, d, k, &singular);
    if (err == DAFL_OK && singular)
        err = apply_spectrum(w, keep, d, k, inverse_or_zero, NULL, why);
    if (err == DAFL_OK && !all_finite(w, d * k))
        err = dafl_fail(why, DAFL_ERR_NUMERIC,
                        "the ridge solution is not finite: raise lambda");
out:
    dafl_bulk_free(keep);
    return err;
}

dafl_err dafl_solve_factor(double *u, double *m, double *s, size_t *rank,
                           double *w, size_t d, size_t k, dafl_why *why)
{
    dafl_err err = DAFL_ERR_NOMEM;
    size_t r, full = d < k ? d : k;
    double *qt = dafl_bulk_alloc(full * k, sizeof *qt);
    lapack_int info;

    if (qt == NULL)
        goto out;
    err = DAFL_ERR_NUMERIC;
    if (!all_finite(w, d * k)) {
        dafl_why_set(why, "the classifier is not finite");
        goto out;
    }
    err = DAFL_ERR_NOMEM;
    info = LAPACKE_dgesdd(LAPACK_COL_MAJOR, 'S', (lapack_int)d, (lapack_int)k,
                          w, (lapack_int)d, s, u, (lapack_int)d, qt,
                          (lapack_int)full);
    if (info == LAPACK_WORK_MEMORY_ERROR)
        goto out;
    err = DAFL_ERR_NUMERIC;
    if (info != 0) {
        dafl_why_set(why, "the singular value iteration did not converge");
        goto out;
    }
    r = 0;
    while (r < full && s[r] > (double)(d > k ? d : k) * DBL_EPSILON * s[0])
        r++;
    for (size_t j = 0; j < r; j++)
        for (size_t c = 0; c < k; c++)
            m[j * k + c] = s[j] * qt[c * full + j];
    *rank = r;
    err = DAFL_OK;
out:
    dafl_bulk_free(qt);
    return err;
}

/* (s_j^2 T + gamma I) x = row j of n, for the tridiagonal T with diagonal t and
 * off-diagonal e. `a` is room for 2 d doubles. False when a system is not
 * positive definite. */
static int solve_tridiagonal(double *n, const double *t, const double *e,
                             double *a, const double *s, size_t d, size_t r,
                             double gamma)
{
    double *diag = a, *off = a + d;

    for (size_t j = 0; j < r; j++) {
        double s2 = s[j] * s[j];
        for (size_t i = 0; i < d; i++) {
            diag[i] = s2 * t[i] + gamma;
            off[i] = i + 1 < d ? s2 * e[i] : 0;
        }
        if (LAPACKE_dpttrf((lapack_int)d, diag, off) != 0)
            return 0;
        (void)LAPACKE_dpttrs(LAPACK_COL_MAJOR, (lapack_int)d, 1, diag, off,
                             n + j * d, (lapack_int)d);
    }
    return 1;
}

/* Pi to tridiagonal form in place. Like the eigenvalues it gets its workspace
 * from us: LAPACKE's own is not wiped and has nothing behind its end. */
static dafl_err reduce(double *pi, double *t, double *e, double *tau, size_t d)
{
    lapack_int n = (lapack_int)d;
    double len = 0, *work;
    dafl_err err = DAFL_ERR_NOMEM;

    if (LAPACKE_dsytrd_work(LAPACK_COL_MAJOR, UPLO, n, pi, n, t, e, tau, &len,
                            -1) != 0)
        return err;
    work = dafl_bulk_alloc((size_t)len, sizeof *work);
    if (work != NULL && LAPACKE_dsytrd_work(LAPACK_COL_MAJOR, UPLO, n, pi, n, t,
                                            e, tau, work, (lapack_int)len) == 0)
        err = DAFL_OK;
    dafl_bulk_free(work);
    return err;
}

/* The quick way: Pi = V T V' with T tridiagonal. *definite says whether it
 * gave an answer: every system must be positive definite by more than the
 * rounding of its largest eigenvalue, which Gershgorin's circles bound. */
static dafl_err sandwich_tridiagonal(double *n, double *pi, const double *s,
                                     size_t d, size_t r, double gamma,
                                     int *definite)
{
    dafl_err err = DAFL_ERR_NOMEM;
    lapack_int ln = (lapack_int)d, lr = (lapack_int)r;
    double *t = dafl_bulk_alloc(5 * d, sizeof *t);
    double *e = t + d, *tau = e + d, largest;

    *definite = 0;
    if (t == NULL)
        return DAFL_ERR_NOMEM;
    memset(t, 0, 3 * d * sizeof *t);
    if (reduce(pi, t, e, tau, d) != DAFL_OK)
        goto out;
    err = DAFL_OK;
    largest = max_abs(t, d) + 2 * max_abs(e, d);
    if (!all_finite(pi, d * d) || !all_finite(t, 3 * d) ||
        !(gamma > (double)d * DBL_EPSILON * s[0] * s[0] * largest))
        goto out;
    err = DAFL_ERR_NOMEM;
    if (LAPACKE_dormtr(LAPACK_COL_MAJOR, 'L', UPLO, 'T', ln, lr, pi, ln, tau, n,
                       ln) != 0)
        goto out;
    *definite = solve_tridiagonal(n, t, e, tau + d, s, d, r, gamma);
    if (*definite && LAPACKE_dormtr(LAPACK_COL_MAJOR, 'L', UPLO, 'N', ln, lr,
                                    pi, ln, tau, n, ln) != 0)
        goto out;
    err = DAFL_OK;
out:
    dafl_bulk_free(t);
    return err;
}

typedef struct {
    const double *s;
    double gamma;
} sandwich_ctx;

/* A direction in which neither Pi nor gamma stands out from the rounding is
 * absent: nothing is known about it. */
static double sandwich_scale(const void *ctx, double l, double cut, size_t j)
{
    const sandwich_ctx *c = ctx;
    double s2 = c->s[j] * c->s[j];

    if (l <= cut)
        l = 0;
    return l == 0 && c->gamma <= cut * s2 ? 0.0 : 1.0 / (c->gamma + l * s2);
}

dafl_err dafl_solve_sandwich(double *n, double *pi, const double *s, size_t d,
                             size_t r, double gamma, dafl_why *why)
{
    dafl_err err = DAFL_ERR_NOMEM;
    int definite = 0;
    double *keep_pi = NULL, *keep_n = NULL;

    if (!all_finite(pi, d * d) || !all_finite(n, r * d))
        return dafl_fail(why, DAFL_ERR_NUMERIC,
                         "the sums of the hidden features are not finite");
    if (r == 0)
        return DAFL_OK;
    keep_pi = dafl_bulk_alloc(d * d, sizeof *keep_pi);
    keep_n = dafl_bulk_alloc(r * d, sizeof *keep_n);
    if (keep_pi == NULL || keep_n == NULL)
        goto out;
    memcpy(keep_pi, pi, d * d * sizeof *pi);
    memcpy(keep_n, n, r * d * sizeof *n);
    if (gamma > 0) {
        err = sandwich_tridiagonal(n, pi, s, d, r, gamma, &definite);
        if (err != DAFL_OK)
            goto out;
    }
    err = DAFL_OK;
    if (!definite) {
        sandwich_ctx ctx = {s, gamma};
        memcpy(n, keep_n, r * d * sizeof *n);
        err = apply_spectrum(n, keep_pi, d, r, sandwich_scale, &ctx, why);
    }
    if (err == DAFL_OK && !all_finite(n, r * d))
        err = dafl_fail(why, DAFL_ERR_NUMERIC,
                        "the block's solution is not finite: raise gamma");
out:
    dafl_bulk_free(keep_n);
    dafl_bulk_free(keep_pi);
    return err;
}
