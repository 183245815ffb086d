/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/blas.h"

#include <stdint.h>
#include <string.h>

#include <cblas.h>

#include "lib/secret.h"

void dafl_blas_single_thread(void)
{
    openblas_set_num_threads(1);
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

/* One product shape: a probe row among zeros and among other rows, at several
 * positions of several batch sizes, against the row computed first. */
static bool rows_stable_at(double *work, size_t k, size_t n)
{
    static const size_t sizes[] = {64, 128, 192, 320, 512};
    const size_t max = 512;
    double *a = work, *b = a + max * k, *c = b + k * n, *probe = c + max * n;
    double *first = probe + k;
    bool have_first = false;

    fill(b, k * n, 1);
    fill(probe, k, 2);
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        size_t m = sizes[s];
        size_t at[] = {0, 1, 7, 13, m / 2 + 3, m - 1};
        fill(a, m * k, 3 + s);
        for (size_t i = 0; i < sizeof at / sizeof at[0]; i++)
            memcpy(a + at[i] * k, probe, k * sizeof *a);
        dafl_gemm(c, a, b, m, n, k, 0.0);
        if (!have_first)
            memcpy(first, c, n * sizeof *c);
        have_first = true;
        for (size_t i = 0; i < sizeof at / sizeof at[0]; i++)
            if (memcmp(first, c + at[i] * n, n * sizeof *c) != 0)
                return false;
    }
    return true;
}

bool dafl_blas_rows_are_stable(void)
{
    static const size_t shapes[][2] = {{64, 96}, {513, 10}, {300, 257}};
    double *work = dafl_bulk_alloc((size_t)1 << 20, sizeof *work);
    bool stable = work != NULL;

    for (size_t i = 0; stable && i < sizeof shapes / sizeof shapes[0]; i++)
        stable = rows_stable_at(work, shapes[i][0], shapes[i][1]);
    dafl_bulk_free(work);
    return stable;
}
