/* SPDX-License-Identifier: Apache-2.0 */
/* The few BLAS calls we make, row-major, and the property of them that the
 * bit-identity of models rests on. The only door to CBLAS. */
#ifndef DAFL_LIB_BLAS_H
#define DAFL_LIB_BLAS_H

#include <stdbool.h>
#include <stddef.h>

/* Batches of rows are padded with zero rows to a multiple of this: a row of a
 * product then has the same bits wherever it stands in whichever batch. */
#define DAFL_ROW_PAD 64

void dafl_blas_single_thread(void);

/* c (m x n) = a (m x k) b (k x n) + beta c. */
void dafl_gemm(double *c, const double *a, const double *b, size_t m, size_t n,
               size_t k, double beta);
/* c (m x n) = a' b + beta c, a: k x m, b: k x n. */
void dafl_gemm_tn(double *c, const double *a, const double *b, size_t m,
                  size_t n, size_t k, double beta);
/* c (m x n) = a b' + beta c, a: m x k, b: n x k. */
void dafl_gemm_nt(double *c, const double *a, const double *b, size_t m,
                  size_t n, size_t k, double beta);
/* Upper triangle of c (n x n) = a' a + beta c, a: k x n. */
void dafl_syrk(double *c, const double *a, size_t n, size_t k, double beta);
/* Upper triangle of c (n x n) += a b' + b a', a, b: n x k. */
void dafl_syr2k(double *c, const double *a, const double *b, size_t n,
                size_t k);

/* Whether, on this CPU with this BLAS, a row of a padded product keeps its
 * bits at any position in batches of any padded size. Takes milliseconds. */
bool dafl_blas_rows_are_stable(void);

#endif
