/* SPDX-License-Identifier: Apache-2.0 */
/* Linked with --wrap=free and --wrap=posix_memalign: what a block holds is
 * looked at in the moment it is given back. */
#include <malloc.h>
#include <stdbool.h>

#include "tests/check.h"
#include "lib/npy.h"
#include "lib/secret.h"
#include "lib/site.h"

int __wrap_posix_memalign(void **out, size_t alignment, size_t len);
int __real_posix_memalign(void **out, size_t alignment, size_t len);
void __wrap_free(void *p);
void __real_free(void *p);

/* The newest aligned block; whether it was freed, and was all zeros then. */
static uint8_t *block;
static size_t block_len, blocks;
static bool freed, zeros;

/* No freed block may hold these bytes, when there are any. Volatile, because
 * compilers know that free() changes no variable. */
static const void *volatile trace;
static volatile size_t trace_len, traces;

int __wrap_posix_memalign(void **out, size_t alignment, size_t len)
{
    int failed = __real_posix_memalign(out, alignment, len);

    if (failed == 0) {
        block = *out;
        block_len = len;
        blocks++;
        freed = false;
    }
    return failed;
}

void __wrap_free(void *p)
{
    const uint8_t *b = p;
    size_t len = p == NULL ? 0 : malloc_usable_size(p);

    if (p != NULL && p == block) {
        freed = zeros = true;
        for (size_t i = 0; i < block_len; i++)
            zeros = zeros && block[i] == 0;
        block = NULL;
    }
    for (size_t i = 0; trace != NULL && i + trace_len <= len; i += trace_len)
        if (memcmp(b + i, trace, trace_len) == 0)
            traces++;
    __real_free(p);
}

static void free_wipes_the_block(void **state)
{
    static const size_t sizes[] = {1, 7, 8, 63, 64, 65, 1000, 100001};

    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        void *p = dafl_bulk_alloc(sizes[i], 1);

        assert_non_null(p);
        memset(p, 0xa5, sizes[i]);
        /* The block seen is this one, with 64 bytes behind it to read. */
        assert_true((uint8_t *)p > block &&
                    (uint8_t *)p + sizes[i] + 64 <= block + block_len);
        dafl_bulk_free(p);
        assert_true(freed && zeros);
    }
}

static void blocks_are_aligned_for_vectors(void **state)
{
    (void)state;
    for (size_t n = 0; n < 200; n += 13) {
        void *p = dafl_bulk_alloc(n, 3);

        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 64, 0);
        if (n > 0)
            memset(p, 1, 3 * n);
        dafl_bulk_free(p);
    }
}

static void blocks_of_no_bytes_can_be_freed(void **state)
{
    void *p = dafl_bulk_alloc(0, 8), *q = dafl_bulk_alloc(8, 0);

    (void)state;
    assert_non_null(p);
    assert_non_null(q);
    assert_ptr_not_equal(p, q);
    dafl_bulk_free(p);
    dafl_bulk_free(q);
    dafl_bulk_free(NULL);
}

static void products_that_overflow_give_null(void **state)
{
    size_t before = blocks;

    (void)state;
    assert_null(dafl_bulk_alloc(SIZE_MAX, 1));
    assert_null(dafl_bulk_alloc(SIZE_MAX - 10, 1));
    assert_null(dafl_bulk_alloc(SIZE_MAX / 2, 3));
    assert_null(dafl_bulk_alloc((size_t)1 << 61, 8));
    assert_null(dafl_bulk_alloc(2, SIZE_MAX));
    assert_int_equal(blocks, before);
}

static void wipe_makes_zeros_and_no_more(void **state)
{
    uint8_t x[5] = {1, 2, 3, 4, 5};
    static const uint8_t y[5] = {1, 0, 0, 0, 5};

    (void)state;
    dafl_wipe(x + 1, 3);
    assert_memory_equal(x, y, 5);
    dafl_wipe(x, 0);
    assert_memory_equal(x, y, 5);
}

/* Every feature has one value; no block that a site, its pool or its sum give
 * back may still hold it, as a double or as a float. */
static void a_site_leaves_nothing_behind(void **state)
{
    enum { N = 300, D = 16 };
    static const double as_double = 0.8125;
    static const float as_float = 0.8125f;
    static double x[N * D];
    static uint8_t y[N];
    static const unsigned grid_bits[] = {12, 24};
    dafl_data data;

    (void)state;
    for (size_t i = 0; i < N * D; i++)
        x[i] = as_double;
    y[0] = 1;
    assert_ok(dafl_npy_write(at("x.npy"), DAFL_NPY_F64, 2, N, D, x, NULL));
    assert_ok(dafl_npy_write(at("y.npy"), DAFL_NPY_U8, 1, N, 1, y, NULL));
    assert_ok(dafl_data_open(&data, at("x.npy"), at("y.npy"), 0, NULL));
    for (int wide = 0; wide < 2; wide++) {
        dafl_params p = {.method = DAFL_METHOD_AFL,
                         .features = D,
                         .classes = 2,
                         .contract = DAFL_CONTRACT_DEFAULT};
        dafl_query query = {.kind = DAFL_QUERY_GRAM};
        dafl_layout layout;
        dafl_pool *pool = NULL;
        dafl_site *site = NULL;
        dafl_sum sum;

        p.contract.s = grid_bits[wide];
        p.contract.n_max = N;
        trace = wide ? (const void *)&as_double : (const void *)&as_float;
        trace_len = wide ? sizeof as_double : sizeof as_float;
        assert_ok(dafl_params_check(&p, NULL));
        assert_ok(dafl_pool_new(&pool, 2));
        dafl_query_layout(&layout, &p, &query);
        assert_ok(dafl_sum_init(&sum, layout.len, true));
        assert_ok(dafl_site_new(&site, &p, pool, &data, NULL, N, NULL, NULL));
        assert_ok(dafl_site_gram(site, &sum, NULL));
        traces = 0;
        dafl_site_free(&site);
        dafl_sum_drop(&sum);
        dafl_pool_free(&pool);
        assert_int_equal(traces, 0);
    }
    trace = &as_double; /* the search does find what is there */
    {
        double *p = doubles(8);
        volatile double *kept = p; /* or the store before free is dropped */

        kept[3] = as_double;
        traces = 0;
        free(p);
        assert_int_equal(traces, 1);
    }
    trace = NULL;
    dafl_data_close(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_wipes_the_block),
        cmocka_unit_test(blocks_are_aligned_for_vectors),
        cmocka_unit_test(blocks_of_no_bytes_can_be_freed),
        cmocka_unit_test(products_that_overflow_give_null),
        cmocka_unit_test(wipe_makes_zeros_and_no_more),
        CASE_IN_DIR(a_site_leaves_nothing_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
