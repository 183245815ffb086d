/* SPDX-License-Identifier: Apache-2.0 */
/* The closed-form solutions. The only door to LAPACKE, called column-major: a
 * symmetric matrix has the same bytes either way, and the row-major path would
 * leave unwiped copies on the heap. */
#ifndef DAFL_LIB_SOLVE_H
#define DAFL_LIB_SOLVE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/err.h"

/* Solve (G + lambda I) W = H. g: d x d symmetric, all of it filled, destroyed.
 * w: d x k column-major, holds H on entry and W on success. When the matrix is
 * singular to working precision (reciprocal condition below d * eps) the answer
 * is the least-squares solution of least norm. DAFL_ERR_NUMERIC when an input
 * or the answer is not finite, or LAPACK does not converge. */
DAFL_CHECK dafl_err dafl_solve_ridge(double *g, double *w, size_t d, size_t k,
                                     double lambda, dafl_why *why);

/* Whether Cholesky's method comes to the end. a: d x d symmetric, destroyed. */
bool dafl_solve_definite(double *a, size_t d);

/* W = U M with U'U = I and M = S Q' of full row rank: the thin singular value
 * decomposition, cut at s_j > max(d, k) * eps * s_1.
 * w: d x k column-major, destroyed. u: room for d * min(d, k), on return r rows
 * of length d (U', row-major). m: room for min(d, k) * k, r x k row-major.
 * s: room for min(d, k). W = 0 has rank 0. */
DAFL_CHECK dafl_err dafl_solve_factor(double *u, double *m, double *s,
                                      size_t *rank, double *w, size_t d,
                                      size_t k, dafl_why *why);

/* Solve (s_j^2 Pi + gamma I) n_j = s_j (Upsilon Q)_j for j < r, the sandwiched
 * least-squares problem with Omega = N U'. pi: d x d symmetric, destroyed.
 * n: r rows of length d (N', row-major); on entry row j holds s_j (Upsilon
 * Q)_j. One tridiagonal reduction serves all j. With gamma = 0, or so
 * small that a system is singular to working precision, eigenvectors are
 * computed, and directions in which neither Pi nor gamma / s_j^2 exceeds
 * d * eps * l_max count as absent. */
DAFL_CHECK dafl_err dafl_solve_sandwich(double *n, double *pi, const double *s,
                                        size_t d, size_t r, double gamma,
                                        dafl_why *why);

#endif
