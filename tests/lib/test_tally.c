/* SPDX-License-Identifier: Apache-2.0 */
/* Values near the largest magnitude, of equal signs and odd: with random signs
 * a sum stays far from the bound, and with even ones bits may be lost unseen.
 */
#include <math.h>

#include "tests/check.h"
#include "lib/blas.h"
#include "lib/tally.h"

enum { D = 4, C = 3, WORKERS = 3 };

/* Grids whose capacity, 2^53 / (q 2^s)^2, is small enough to be exceeded. */
static const dafl_contract grids[] = {
    {.exact = true, .s = 12, .q = 1024}, {.exact = true, .s = 12, .q = 16384},
    {.exact = true, .s = 16, .q = 64},   {.exact = true, .s = 16, .q = 100},
    {.exact = true, .s = 16, .q = 1023}, {.exact = true, .s = 20, .q = 4},
    {.exact = true, .s = 20, .q = 5},    {.exact = true, .s = 20, .q = 64},
    {.exact = true, .s = 22, .q = 1},    {.exact = true, .s = 22, .q = 3},
    {.exact = true, .s = 22, .q = 16},   {.exact = true, .s = 24, .q = 4}};

typedef struct {
    size_t n;
    dafl_contract grid;
    dafl_layout layout;
    int64_t *a, *b; /* n x D, n x C, in units of 2^-s */
    double *x, *y;  /* the same on the grid */
    uint32_t *labels;
} sample;

/* Column 0 is odd, 1 the largest magnitude, 2 a little below it, 3 odd and
 * negative. */
static sample make_sample(const dafl_contract *grid, size_t n)
{
    sample s = {.n = n, .grid = *grid};
    int64_t q = (int64_t)grid->q << grid->s;

    dafl_layout_add(&s.layout, "AA", D, D, true, 2 * grid->s);
    dafl_layout_add(&s.layout, "AB", D, C, false, 2 * grid->s);
    dafl_layout_add(&s.layout, "LA", C, D, false, grid->s);
    s.a = calloc(n * D, sizeof *s.a);
    s.b = calloc(n * C, sizeof *s.b);
    s.labels = calloc(n, sizeof *s.labels);
    s.x = doubles(n * D);
    s.y = doubles(n * C);
    assert_true(s.a != NULL && s.b != NULL && s.labels != NULL);
    for (size_t i = 0; i < n; i++) {
        int64_t row[D] = {q - 1, q, q - (int64_t)random_size(0, 5), 1 - q};

        for (size_t c = 0; c < D; c++) {
            s.a[i * D + c] = row[c];
            s.x[i * D + c] = ldexp((double)row[c], -(int)grid->s);
        }
        for (size_t c = 0; c < C; c++) {
            s.b[i * C + c] = c == 0 ? q - 1 : row[random_size(0, D - 1)];
            s.y[i * C + c] = ldexp((double)s.b[i * C + c], -(int)grid->s);
        }
        s.labels[i] = (uint32_t)random_size(0, C - 1);
    }
    return s;
}

static void drop_sample(sample *s)
{
    free(s->labels);
    free(s->y);
    free(s->x);
    free(s->b);
    free(s->a);
}

/* All three parts by brute force. */
static void expect(const sample *s, int64_t *out)
{
    memset(out, 0, s->layout.len * sizeof *out);
    for (size_t i = 0; i < s->n; i++) {
        const int64_t *a = s->a + i * D, *b = s->b + i * C;
        int64_t *at = out;

        for (size_t r = 0; r < D; r++)
            for (size_t c = r; c < D; c++)
                *at++ += a[r] * a[c];
        for (size_t r = 0; r < D; r++)
            for (size_t c = 0; c < C; c++)
                *at++ += a[r] * b[c];
        for (size_t c = 0; c < D; c++)
            at[s->labels[i] * D + c] += a[c];
    }
}

static void tally_block(dafl_tally *t, const sample *s, unsigned worker,
                        size_t first, size_t n)
{
    const double *x = s->x + first * D;

    dafl_tally_square(t, worker, 0, x, n);
    dafl_tally_product(t, worker, 1, x, s->y + first * C, n);
    dafl_tally_by_label(t, worker, 2, x, s->labels + first, n);
}

/* Blocks of up to `most` rows by random workers, in order or backwards. Their
 * scratch holds NaN at first: nobody clears it for them. */
static void tally_in_blocks(const sample *s, dafl_sum *sum, size_t most,
                            bool backwards)
{
    double *scratch[WORKERS];
    size_t *ends = calloc(s->n + 1, sizeof *ends), n_ends = 0;
    dafl_tally t;

    assert_non_null(ends);
    for (size_t at = 0; at < s->n; n_ends++) {
        at += random_size(1, most);
        ends[n_ends + 1] = at = at < s->n ? at : s->n;
    }
    assert_ok(dafl_tally_init(&t, &s->grid, &s->layout, sum, WORKERS));
    for (unsigned w = 0; w < WORKERS; w++) {
        size_t len = dafl_tally_scratch(&s->layout);

        scratch[w] = doubles(len);
        for (size_t i = 0; i < len; i++)
            scratch[w][i] = NAN;
        dafl_tally_bind(&t, w, scratch[w]);
    }
    for (size_t i = 0; i < n_ends; i++) {
        size_t k = backwards ? n_ends - 1 - i : i;

        tally_block(&t, s, (unsigned)random_size(0, WORKERS - 1), ends[k],
                    ends[k + 1] - ends[k]);
    }
    dafl_tally_finish(&t);
    for (unsigned w = 0; w < WORKERS; w++)
        free(scratch[w]);
    free(ends);
}

static void assert_exact(const sample *s, size_t most, bool backwards)
{
    int64_t *out = calloc(s->layout.len, sizeof *out);
    dafl_sum sum;

    assert_non_null(out);
    assert_ok(dafl_sum_init(&sum, s->layout.len, true));
    expect(s, out);
    tally_in_blocks(s, &sum, most, backwards);
    for (size_t i = 0; i < s->layout.len; i++)
        if (sum.i[i] != out[i])
            fail_msg("s = %u, q = %u, %zu rows: sum %zu is %lld, not %lld",
                     s->grid.s, (unsigned)s->grid.q, s->n, i,
                     (long long)sum.i[i], (long long)out[i]);
    dafl_sum_drop(&sum);
    free(out);
}

static void sums_are_exact_around_the_capacity(void **state)
{
    (void)state;
    for (size_t g = 0; g < COUNT(grids); g++) {
        size_t rows = (size_t)dafl_contract_exact_rows(&grids[g]);
        const size_t sizes[] = {1,        rows - 1,     rows,
                                rows + 1, 2 * rows + 1, 3 * rows + 2};

        for (size_t i = 0; i < COUNT(sizes); i++) {
            sample s = make_sample(&grids[g], sizes[i]);

            assert_exact(&s, sizes[i], false); /* blocks of any size */
            assert_exact(&s, 7, true);
            drop_sample(&s);
        }
    }
}

/* The same rows summed in doubles alone lose their last bit one row beyond the
 * capacity, so the case above can fail. */
static void doubles_alone_are_not_exact_beyond_the_capacity(void **state)
{
    (void)state;
    for (size_t g = 0; g < COUNT(grids); g++) {
        size_t rows = (size_t)dafl_contract_exact_rows(&grids[g]);
        sample s = make_sample(&grids[g], 2 * rows + 1);
        double unit = ldexp(1, 2 * (int)grids[g].s), aa[D * D];
        int64_t out[64];

        expect(&s, out);
        assert_true(out[0] % 2 != 0 && out[0] > (int64_t)1 << 53);
        dafl_syrk(aa, s.x, D, s.n, 0.0);
        assert_true((int64_t)(aa[0] * unit) != out[0]);
        drop_sample(&s);
    }
}

typedef struct {
    dafl_tally tally;
    const sample *s;
} shared;

static void shared_block(void *ctx, unsigned worker, size_t item)
{
    shared *sh = ctx;

    tally_block(&sh->tally, sh->s, worker, item, 1);
}

/* Partials are emptied every other row, so that workers meet; 2000 rows of
 * (2^26)^2 stay below 2^63. */
static void threads_leave_no_trace(void **state)
{
    sample s = make_sample(&grids[7], 2000);
    int64_t *out = calloc(s.layout.len, sizeof *out);

    (void)state;
    assert_non_null(out);
    expect(&s, out);
    for (unsigned round = 0; round < 40; round++) {
        unsigned threads = 1 + round % 4;
        shared sh = {.s = &s};
        dafl_pool *pool = NULL;
        dafl_sum sum;

        assert_ok(dafl_pool_new(&pool, threads));
        assert_ok(dafl_sum_init(&sum, s.layout.len, true));
        assert_ok(dafl_pool_reserve(pool, dafl_tally_scratch(&s.layout) *
                                              sizeof(double)));
        assert_ok(
            dafl_tally_init(&sh.tally, &s.grid, &s.layout, &sum, threads));
        for (unsigned w = 0; w < threads; w++)
            dafl_tally_bind(&sh.tally, w, dafl_pool_scratch(pool, w));
        dafl_pool_run(pool, s.n, shared_block, &sh);
        dafl_tally_finish(&sh.tally);
        assert_memory_equal(sum.i, out, s.layout.len * sizeof *out);
        dafl_sum_drop(&sum);
        dafl_pool_free(&pool);
    }
    free(out);
    drop_sample(&s);
}

/* Whatever a sum holds already is added to. */
static void a_tally_adds_to_the_sum(void **state)
{
    sample s = make_sample(&grids[5], 10);
    int64_t out[64];
    dafl_sum sum;

    (void)state;
    assert_ok(dafl_sum_init(&sum, s.layout.len, true));
    expect(&s, out);
    for (int64_t times = 1; times <= 3; times++) {
        tally_in_blocks(&s, &sum, 4, false);
        for (size_t i = 0; i < s.layout.len; i++)
            assert_true(sum.i[i] == times * out[i]);
    }
    dafl_sum_drop(&sum);
    drop_sample(&s);
}

static void sums_of_plain_doubles_are_close(void **state)
{
    sample s = make_sample(&grids[0], 3000);
    int64_t out[64];
    dafl_sum sum;

    (void)state;
    expect(&s, out);
    s.grid.exact = false;
    assert_ok(dafl_sum_init(&sum, s.layout.len, false));
    tally_in_blocks(&s, &sum, 100, false);
    for (size_t i = 0; i < s.layout.len; i++) {
        unsigned frac = i < D * (D + 1) / 2 + D * C ? 24 : 12;
        double v = ldexp((double)out[i], -(int)frac);

        assert_true(fabs(sum.f[i] - v) <= 3000 * 0x1p-52 * fabs(v));
    }
    dafl_sum_drop(&sum);
    drop_sample(&s);
}

static void empty_parts_and_no_rows_add_nothing(void **state)
{
    dafl_layout layout = {0};
    double scratch[8], x[6] = {1, 1, 1, 1, 1, 1};
    dafl_tally t;
    dafl_sum sum;

    (void)state;
    dafl_layout_add(&layout, "none", 2, 0, false, 24);
    dafl_layout_add(&layout, "some", 2, 2, true, 24);
    assert_ok(dafl_sum_init(&sum, layout.len, true));
    assert_ok(dafl_tally_init(&t, &grids[0], &layout, &sum, 1));
    dafl_tally_bind(&t, 0, scratch);
    dafl_tally_product(&t, 0, 0, x, x, 3);
    dafl_tally_square(&t, 0, 1, x, 0);
    dafl_tally_finish(&t);
    assert_true(sum.i[0] == 0 && sum.i[1] == 0 && sum.i[2] == 0);
    dafl_sum_drop(&sum);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_exact_around_the_capacity),
        cmocka_unit_test(doubles_alone_are_not_exact_beyond_the_capacity),
        cmocka_unit_test(threads_leave_no_trace),
        cmocka_unit_test(a_tally_adds_to_the_sum),
        cmocka_unit_test(sums_of_plain_doubles_are_close),
        cmocka_unit_test(empty_parts_and_no_rows_add_nothing),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
