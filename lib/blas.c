/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/blas.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include "lib/secret.h"

void dafl_blas_single_thread(void)
{
    openblas_set_num_threads(1);
}

const char *dafl_blas_core(void)
{
    return openblas_get_corename();
}

const char *dafl_blas_better_core(void)
{
#if defined(__x86_64__)
    /* The kernels that use AVX2 or more. */
    static const char *const fast[] = {"Haswell", "Zen", "SkylakeX",
                                       "Cooperlake", "SapphireRapids"};
    const char *core = openblas_get_corename();

    if (getenv("OPENBLAS_CORETYPE") != NULL)
        return NULL;
    for (size_t i = 0; i < sizeof fast / sizeof fast[0]; i++)
        if (strcmp(core, fast[i]) == 0)
            return NULL;
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
        return "SkylakeX";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return "Haswell";
#endif
    return NULL;
}

/* Sizes are bounded by DAFL_SIZE_MAX (lib/params.h), far below INT_MAX. A zero
 * size is legal for us and a leading dimension of zero is not for CBLAS. */
static blasint ld(size_t n)
{
    return n == 0 ? 1 : (blasint)n;
}

void dafl_gemm(double *c, const double *a, const double *b, size_t m, size_t n,
               size_t k, double beta)
{
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (blasint)m,
                (blasint)n, (blasint)k, 1.0, a, ld(k), b, ld(n), beta, c,
                ld(n));
}

void dafl_gemm_tn(double *c, const double *a, const double *b, size_t m,
                  size_t n, size_t k, double beta)
{
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (blasint)m, (blasint)n,
                (blasint)k, 1.0, a, ld(m), b, ld(n), beta, c, ld(n));
}

void dafl_gemm_nt(double *c, const double *a, const double *b, size_t m,
                  size_t n, size_t k, double beta)
{
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)m, (blasint)n,
                (blasint)k, 1.0, a, ld(k), b, ld(k), beta, c, ld(n));
}

void dafl_batch_gemm(double *c, const double *a, const double *b, size_t n,
                     size_t k, double beta)
{
    dafl_gemm(c, a, b, DAFL_BATCH, n, k, beta);
}

void dafl_batch_gemm_nt(double *c, const double *a, const double *b, size_t n,
                        size_t k, double beta)
{
    dafl_gemm_nt(c, a, b, DAFL_BATCH, n, k, beta);
}

void dafl_syrk(double *c, const double *a, size_t n, size_t k, double beta)
{
    cblas_dsyrk(CblasRowMajor, CblasUpper, CblasTrans, (blasint)n, (blasint)k,
                1.0, a, ld(n), beta, c, ld(n));
}

void dafl_syr2k(double *c, const double *a, const double *b, size_t n, size_t k)
{
    cblas_dsyr2k(CblasRowMajor, CblasUpper, CblasNoTrans, (blasint)n,
                 (blasint)k, 1.0, a, ld(k), b, ld(k), 1.0, c, ld(n));
}

/* Fill with numbers whose products need all 53 bits, so that any change in the
 * order of additions shows. */
static void fill(double *x, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        x[i] = (double)(int64_t)seed * 0x1p-63;
    }
}

/* One product shape: the same row at every position, with other rows around it
 * in a second call. work: BATCH * (k + n) + k * n + k + n doubles. */
static bool rows_stable_at(double *work, size_t k, size_t n)
{
    double *a = work, *b = a + DAFL_BATCH * k, *c = b + k * n;
    double *row = c + DAFL_BATCH * n, *first = row + k;

    fill(b, k * n, 1);
    fill(row, k, 2);
    for (size_t step = 1; step <= 7; step += 6) {
        fill(a, DAFL_BATCH * k, 2 + step);
        for (size_t i = 0; i < DAFL_BATCH; i += step)
            memcpy(a + i * k, row, k * sizeof *a);
        dafl_batch_gemm(c, a, b, n, k, 0.0);
        if (step == 1)
            memcpy(first, c, n * sizeof *c);
        for (size_t i = 0; i < DAFL_BATCH; i += step)
            if (memcmp(first, c + i * n, n * sizeof *c) != 0)
                return false;
    }
    return true;
}

bool dafl_blas_rows_are_stable(void)
{
    static const size_t shapes[][2] = {
        {64, 256}, {513, 10}, {300, 257}, {99, 333}, {512, 100}};
    const size_t most = DAFL_BATCH * 846 + 300 * 257 + 846;
    double *work = dafl_bulk_alloc(most, sizeof *work);
    bool stable = work != NULL;

    dafl_blas_single_thread();
    for (size_t i = 0; stable && i < sizeof shapes / sizeof shapes[0]; i++)
        stable = rows_stable_at(work, shapes[i][0], shapes[i][1]);
    dafl_bulk_free(work);
    return stable;
}
