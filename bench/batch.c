/* SPDX-License-Identifier: Apache-2.0 */
/* Why rows are multiplied in batches of DAFL_BATCH: for several batch sizes, in
 * how many of 300 random shapes a row's bits depend on its position, and how
 * fast the product of the usual widths is. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "agents/cli.h"
#include "lib/blas.h"
#include "lib/secret.h"
#include "lib/stream.h"

#define SHAPES 300
#define WIDEST ((size_t)1100)
#define MOST_ROWS ((size_t)384)

typedef struct {
    double *a, *b, *c;
} room;

/* The same row everywhere in a; whether all rows of a b come out the same. */
static bool stable(const room *r, size_t m, size_t n, size_t k)
{
    for (size_t i = 1; i < m; i++)
        memcpy(r->a + i * k, r->a, k * sizeof *r->a);
    dafl_gemm(r->c, r->a, r->b, m, n, k, 0.0);
    for (size_t i = 1; i < m; i++)
        if (memcmp(r->c, r->c + i * n, n * sizeof *r->c) != 0)
            return false;
    return true;
}

static double gflops(const room *r, size_t m)
{
    const size_t width = 1024;
    double best = 0;

    for (int i = 0; i < 30; i++) {
        double start = cli_now(), rate;
        dafl_gemm(r->c, r->a, r->b, m, width, width, 0.0);
        rate = 2e-9 * (double)(m * width * width) / (cli_now() - start);
        best = rate > best ? rate : best;
    }
    return best;
}

int main(int argc, char **argv)
{
    static const size_t rows[] = {8, 64, 96, 128, 192, 256, 384};
    const dafl_seed seed = {{5}};
    dafl_draw draw;
    room r;

    (void)argc;
    cli_use_fast_blas(argv);
    dafl_blas_single_thread();
    r.a = dafl_bulk_alloc(MOST_ROWS * WIDEST, sizeof *r.a);
    r.b = dafl_bulk_alloc(WIDEST * WIDEST, sizeof *r.b);
    r.c = dafl_bulk_alloc(MOST_ROWS * WIDEST, sizeof *r.c);
    if (r.a == NULL || r.b == NULL || r.c == NULL)
        return EXIT_FAILED;
    dafl_stream_uniform(r.a, MOST_ROWS * WIDEST, &seed, DAFL_STREAM_SIMULATION,
                        1, 1.0);
    dafl_stream_uniform(r.b, WIDEST * WIDEST, &seed, DAFL_STREAM_SIMULATION, 2,
                        1.0);
    printf("kernels %s\n", dafl_blas_core());
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t bad = 0;
        dafl_draw_init(&draw, &seed, DAFL_STREAM_SIMULATION, 3);
        for (size_t s = 0; s < SHAPES; s++) {
            size_t most = s % 3 == 0 ? WIDEST : 300;
            size_t n = 1 + (size_t)dafl_draw_below(&draw, most);
            size_t k = 1 + (size_t)dafl_draw_below(&draw, most);
            bad += !stable(&r, rows[i], n, k);
        }
        printf("%3zu rows: %3zu of %d shapes depend on the position; "
               "%.0f GFLOP/s at 1024 x 1024\n",
               rows[i], bad, SHAPES, gflops(&r, rows[i]));
    }
    dafl_bulk_free(r.c);
    dafl_bulk_free(r.b);
    dafl_bulk_free(r.a);
    return 0;
}
