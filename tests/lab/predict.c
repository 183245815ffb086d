/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lab/predict.h"

#include <math.h>

#include "lib/blas.h"
#include "tests/check.h"

#define ORDER 4 /* Hermite polynomials 0 .. 3 */

/* c[k] = E s(mu + sd x) He_k(x), x standard normal. The trapezoidal rule: for
 * an integrand that is smooth and falls off like this one it is as good as
 * Gauss' (errors far below 1e-10 at this step). */
static void hermite(double c[ORDER], dafl_activation act, double mu, double sd)
{
    const double step = 0.1;
    double total = 0;

    memset(c, 0, ORDER * sizeof *c);
    for (int i = -80; i <= 80; i++) {
        double x = step * i, weight = exp(-x * x / 2), y = mu + sd * x;
        dafl_activation_apply(act, &y, 1);
        total += weight;
        c[0] += weight * y;
        c[1] += weight * y * x;
        c[2] += weight * y * (x * x - 1);
        c[3] += weight * y * (x * x * x - 3 * x);
    }
    for (size_t k = 0; k < ORDER; k++)
        c[k] /= total;
}

/* E s(x_i) s(x_j) = sum_k c_ik c_jk rho^k / k!. */
static double mehler(const double a[ORDER], const double b[ORDER], double rho)
{
    return a[0] * b[0] + rho * (a[1] * b[1] + rho * (a[2] * b[2] / 2 +
                                                     rho * a[3] * b[3] / 6));
}

double *predict_pi(const dafl_params *p, const dafl_projection *b, double n,
                   const double *g, const double *ht)
{
    size_t d = p->width, f = p->hidden;
    double *mean = doubles(d), *cov = doubles(d * d), *mu = doubles(f);
    double *cb = doubles(d * f), *s = doubles(f * f), *c = doubles(f * ORDER);
    double *pi = doubles(f * f);

    for (size_t i = 0; i < p->classes * d; i++)
        mean[i % d] += ht[i] / n;
    for (size_t i = 0; i < d * d; i++)
        cov[i] = g[i] / n - mean[i / d] * mean[i % d];
    memcpy(mu, b->b, f * sizeof *mu);
    dafl_gemm(mu, mean, b->w, 1, f, d, 1.0);
    dafl_gemm(cb, cov, b->w, d, f, d, 0.0);
    dafl_gemm_tn(s, b->w, cb, f, f, d, 0.0);
    for (size_t i = 0; i < f; i++)
        hermite(c + i * ORDER, p->activation, mu[i], sqrt(s[i * f + i]));
    for (size_t i = 0; i < f; i++)
        for (size_t j = 0; j < f; j++) {
            double rho = s[i * f + j] / sqrt(s[i * f + i] * s[j * f + j]);
            pi[i * f + j] = n * mehler(c + i * ORDER, c + j * ORDER, rho);
        }
    free(c);
    free(s);
    free(cb);
    free(mu);
    free(cov);
    free(mean);
    return pi;
}
