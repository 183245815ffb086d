/* SPDX-License-Identifier: Apache-2.0 */
/* The few BLAS calls we make, row-major, and the property of them that the
 * bit-identity of models rests on. The only door to CBLAS. */
#ifndef DAFL_LIB_BLAS_H
#define DAFL_LIB_BLAS_H

#include <stdbool.h>
#include <stddef.h>

/* A row of a product must have the same bits wherever it stands among whichever
 * other rows. BLAS kernels do not promise that: they choose their path by the
 * shape of the whole call and treat its last few rows in another way. So rows
 * are multiplied in batches of exactly this many, filled up with zeros; it is
 * a multiple of every kernel's tile (4, 8, 12, 16, 24 rows). */
#define DAFL_BATCH 192

void dafl_blas_single_thread(void);

/* OpenBLAS picks its kernels when it is loaded, by a list of CPU models; one
 * newer than its list runs several times slower than it could. Returns the
 * value of the environment variable OPENBLAS_CORETYPE that would fit this CPU
 * better, or NULL when the choice is fine or the variable is set. */
const char *dafl_blas_better_core(void);
const char *dafl_blas_core(void);

/* c (m x n) = a (m x k) b (k x n) + beta c. */
void dafl_gemm(double *c, const double *a, const double *b, size_t m, size_t n,
               size_t k, double beta);
/* c (m x n) = a' b + beta c, a: k x m, b: k x n. */
void dafl_gemm_tn(double *c, const double *a, const double *b, size_t m,
                  size_t n, size_t k, double beta);
/* c (m x n) = a b' + beta c, a: m x k, b: n x k. */
void dafl_gemm_nt(double *c, const double *a, const double *b, size_t m,
                  size_t n, size_t k, double beta);
/* The products whose rows keep their bits: c (DAFL_BATCH x n) = a b + beta c,
 * and c = a b' + beta c. */
void dafl_batch_gemm(double *c, const double *a, const double *b, size_t n,
                     size_t k, double beta);
void dafl_batch_gemm_nt(double *c, const double *a, const double *b, size_t n,
                        size_t k, double beta);
/* Upper triangle of c (n x n) = a' a + beta c, a: k x n. */
void dafl_syrk(double *c, const double *a, size_t n, size_t k, double beta);
/* Upper triangle of c (n x n) += a b' + b a', a, b: n x k. */
void dafl_syr2k(double *c, const double *a, const double *b, size_t n,
                size_t k);

/* Whether, on this CPU with this BLAS, a row of dafl_batch_gemm keeps its bits
 * at every position, tried on a few shapes. Takes milliseconds; leaves
 * BLAS single-threaded. */
bool dafl_blas_rows_are_stable(void);

#endif
