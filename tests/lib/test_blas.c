/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "tests/check.h"
#include "lib/blas.h"

/* Small integers: every sum is exact, so results must be equal, not close. */
static double *integers(size_t n)
{
    double *x = doubles(n);

    for (size_t i = 0; i < n; i++)
        x[i] = (double)random_size(0, 16) - 8;
    return x;
}

static double *nans(size_t n)
{
    double *x = doubles(n);

    for (size_t i = 0; i < n; i++)
        x[i] = NAN;
    return x;
}

/* Element (i, l) of a matrix with `cols` columns, or of its transpose. */
static double element(const double *x, size_t cols, size_t i, size_t l,
                      bool transposed)
{
    return transposed ? x[l * cols + i] : x[i * cols + l];
}

/* op: 0 a b, 1 a' b, 2 a b'. With beta = 0 what c held must not matter. */
static void assert_product(int op, size_t m, size_t n, size_t k, double beta)
{
    double *a = integers(m * k), *b = integers(k * n);
    double *c = beta == 0 ? nans(m * n) : integers(m * n);
    double *old = doubles(m * n);

    memcpy(old, c, m * n * sizeof *c);
    if (op == 0)
        dafl_gemm(c, a, b, m, n, k, beta);
    else if (op == 1)
        dafl_gemm_tn(c, a, b, m, n, k, beta);
    else
        dafl_gemm_nt(c, a, b, m, n, k, beta);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = beta == 0 ? 0 : beta * old[i * n + j];

            for (size_t l = 0; l < k; l++)
                sum += element(a, op == 1 ? m : k, i, l, op == 1) *
                       element(b, op == 2 ? k : n, l, j, op == 2);
            if (c[i * n + j] != sum)
                fail_msg("product %d of %zu x %zu x %zu at (%zu, %zu)", op, m,
                         n, k, i, j);
        }
    free(old);
    free(c);
    free(b);
    free(a);
}

static void products_equal_naive_loops(void **state)
{
    static const double betas[] = {0, 1, -2};

    (void)state;
    for (int op = 0; op < 3; op++)
        for (size_t b = 0; b < COUNT(betas); b++) {
            for (size_t zero = 0; zero < 8; zero++)
                assert_product(op, zero & 1 ? 0 : 5, zero & 2 ? 0 : 4,
                               zero & 4 ? 0 : 3, betas[b]);
            for (size_t i = 0; i < 12; i++)
                assert_product(op, random_size(1, 70), random_size(1, 70),
                               random_size(1, 70), betas[b]);
        }
}

static void products_of_batches_are_products(void **state)
{
    (void)state;
    for (size_t round = 0; round < 10; round++) {
        size_t n = round == 4 ? 0 : random_size(1, 40);
        size_t k = round == 5 ? 0 : random_size(1, 40);
        double *a = integers(DAFL_BATCH * k), *b = integers(k * n);
        double *c = nans(DAFL_BATCH * n), *d = nans(DAFL_BATCH * n);

        for (double beta = 0; beta < 2; beta++) {
            dafl_gemm(c, a, b, DAFL_BATCH, n, k, beta);
            dafl_batch_gemm(d, a, b, n, k, beta);
            assert_memory_equal(d, c, DAFL_BATCH * n * sizeof *c);
        }
        for (double beta = 0; beta < 2; beta++) {
            dafl_gemm_nt(c, a, b, DAFL_BATCH, n, k, beta);
            dafl_batch_gemm_nt(d, a, b, n, k, beta);
            assert_memory_equal(d, c, DAFL_BATCH * n * sizeof *c);
        }
        free(d);
        free(c);
        free(b);
        free(a);
    }
}

static void assert_syrk(size_t n, size_t k, double beta)
{
    double *a = integers(k * n), *c = nans(n * n);

    for (size_t i = 0; beta != 0 && i < n; i++)
        for (size_t j = i; j < n; j++)
            c[i * n + j] = 1;
    dafl_syrk(c, a, n, k, beta);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = beta;

            for (size_t l = 0; l < k; l++)
                sum += a[l * n + i] * a[l * n + j];
            /* The lower triangle is not touched. */
            assert_true(i <= j ? c[i * n + j] == sum : isnan(c[i * n + j]));
        }
    free(c);
    free(a);
}

static void squares_equal_naive_loops(void **state)
{
    (void)state;
    for (int beta = 0; beta < 2; beta++) {
        assert_syrk(0, 3, beta);
        assert_syrk(3, 0, beta);
        assert_syrk(0, 0, beta);
        for (size_t i = 0; i < 15; i++)
            assert_syrk(random_size(1, 60), random_size(1, 60), beta);
    }
}

static void assert_syr2k(size_t n, size_t k)
{
    double *a = integers(n * k), *b = integers(n * k), *c = nans(n * n);

    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++)
            c[i * n + j] = 3;
    dafl_syr2k(c, a, b, n, k);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = 3;

            for (size_t l = 0; l < k; l++)
                sum +=
                    a[i * k + l] * b[j * k + l] + b[i * k + l] * a[j * k + l];
            assert_true(i <= j ? c[i * n + j] == sum : isnan(c[i * n + j]));
        }
    free(c);
    free(b);
    free(a);
}

static void updates_of_rank_two_equal_naive_loops(void **state)
{
    (void)state;
    assert_syr2k(0, 2);
    assert_syr2k(5, 0);
    for (size_t i = 0; i < 15; i++)
        assert_syr2k(random_size(1, 60), random_size(1, 60));
}

typedef void batch_fn(double *c, const double *a, const double *b, size_t n,
                      size_t k, double beta);

/* One row at every position of a batch of other rows, and alone with zeros:
 * the same bits. */
static void assert_rows_stable(batch_fn *multiply, size_t n, size_t k,
                               double beta)
{
    double *a = doubles(DAFL_BATCH * k), *row = random_doubles(k);
    double *b = random_doubles(k * n), *c = doubles(DAFL_BATCH * n);
    double *alone = doubles(n), *start = random_doubles(n);

    memcpy(a, row, k * sizeof *a);
    memcpy(c, start, n * sizeof *c);
    multiply(c, a, b, n, k, beta);
    memcpy(alone, c, n * sizeof *c);
    for (size_t stride = 1; stride <= 5; stride += 4) {
        random_fill(a, DAFL_BATCH * k);
        random_fill(c, DAFL_BATCH * n);
        for (size_t i = 0; i < DAFL_BATCH; i += stride) {
            memcpy(a + i * k, row, k * sizeof *a);
            memcpy(c + i * n, start, n * sizeof *c);
        }
        multiply(c, a, b, n, k, beta);
        for (size_t i = 0; i < DAFL_BATCH; i += stride)
            if (memcmp(c + i * n, alone, n * sizeof *c) != 0)
                fail_msg("%s, n = %zu, k = %zu, beta = %g: row %zu",
                         multiply == dafl_batch_gemm ? "a b" : "a b'", n, k,
                         beta, i);
    }
    free(start);
    free(alone);
    free(c);
    free(b);
    free(row);
    free(a);
}

static void rows_keep_their_bits_at_every_position(void **state)
{
    (void)state;
    if (!dafl_blas_rows_are_stable()) {
        print_message("this BLAS (%s) does not keep the bits of rows: "
                      "skipped\n",
                      dafl_blas_core());
        skip();
    }
    for (double beta = 0; beta < 2; beta++) {
        assert_rows_stable(dafl_batch_gemm, 1024, 512, beta);
        assert_rows_stable(dafl_batch_gemm, 100, 1024, beta);
        assert_rows_stable(dafl_batch_gemm_nt, 1024, 10, beta);
        for (size_t i = 0; i < 30; i++) {
            size_t n = random_size(1, i % 2 == 0 ? 30 : 300);
            size_t k = random_size(1, i % 3 == 0 ? 30 : 300);

            assert_rows_stable(dafl_batch_gemm, n, k, beta);
            assert_rows_stable(dafl_batch_gemm_nt, n, k, beta);
        }
    }
}

static void a_better_core_is_another_one(void **state)
{
    (void)state;
    dafl_blas_single_thread();
    assert_non_null(dafl_blas_core());
    /* NULL or the name of a core; never asks for the one that runs. */
    if (dafl_blas_better_core() != NULL)
        assert_string_not_equal(dafl_blas_better_core(), dafl_blas_core());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_better_core_is_another_one),
        cmocka_unit_test(products_equal_naive_loops),
        cmocka_unit_test(products_of_batches_are_products),
        cmocka_unit_test(squares_equal_naive_loops),
        cmocka_unit_test(updates_of_rank_two_equal_naive_loops),
        cmocka_unit_test(rows_keep_their_bits_at_every_position),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
