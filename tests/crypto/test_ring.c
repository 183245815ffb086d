/* SPDX-License-Identifier: Apache-2.0 */
/* Every buffer has exactly the size that the header promises to stay within:
 * a sanitizer or valgrind sees one byte more. */
#include <stdbool.h>

#include "tests/crypto/bytes.h"
#include "lib/ring.h"

static const unsigned widths[] = {32, 40, 48, 56, 64};

static uint64_t low_bits(unsigned w)
{
    return UINT64_MAX >> (64 - w);
}

static uint64_t *random_words(size_t n)
{
    uint64_t *x = exactly(n * sizeof *x);

    random_bytes(x, n * sizeof *x);
    return x;
}

static void five_widths_are_ok(void **state)
{
    (void)state;
    for (unsigned w = 0; w < 300; w++)
        assert_int_equal(dafl_ring_width_ok(w),
                         w == 32 || w == 40 || w == 48 || w == 56 || w == 64);
    assert_false(dafl_ring_width_ok(1u << 31));
}

static void pack_writes_the_low_bytes_lowest_first(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(widths); i++)
        for (size_t n = 0; n < 70; n++) {
            size_t size = widths[i] / 8;
            uint64_t *acc = random_words(n);
            uint8_t *packed = exactly(n * size);

            dafl_ring_pack(packed, acc, n, widths[i]);
            for (size_t k = 0; k < n * size; k++)
                assert_int_equal(packed[k],
                                 acc[k / size] >> 8 * (k % size) & 0xff);
            free(acc);
            free(packed);
        }
}

/* n words at an address `shift` above an aligned one, and nothing behind them;
 * free the first. */
static uint8_t *packed_at(uint8_t **words, const uint64_t *acc, size_t n,
                          unsigned w, size_t shift)
{
    uint8_t *block = exactly(shift + n * w / 8);

    *words = block + shift;
    dafl_ring_pack(*words, acc, n, w);
    return block;
}

static void assert_sum(const uint64_t *sum, const uint64_t *a,
                       const uint64_t *b, bool negate, size_t n, unsigned w)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t right = negate ? a[i] - b[i] : a[i] + b[i];

        if (((sum[i] ^ right) & low_bits(w)) != 0)
            fail_msg("w = %u, n = %zu, negate = %d: word %zu is wrong", w, n,
                     negate, i);
    }
}

static void added_and_subtracted_words_are_right_for_any_length(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(widths); i++)
        for (size_t n = 0; n < 70; n++)
            for (int negate = 0; negate < 2; negate++) {
                uint64_t *a = random_words(n), *b = random_words(n);
                uint64_t *sum = exactly(n * sizeof *sum);
                uint8_t *words, *block = packed_at(&words, b, n, widths[i],
                                                   random_size(0, 15));

                if (n > 0)
                    memcpy(sum, a, n * sizeof *sum);
                dafl_ring_add_words(sum, words, n, widths[i], negate != 0);
                assert_sum(sum, a, b, negate != 0, n, widths[i]);
                free(a);
                free(b);
                free(sum);
                free(block);
            }
}

static void packed_words_come_back(void **state)
{
    (void)state;
    for (int round = 0; round < 50; round++) {
        unsigned w = widths[random_size(0, COUNT(widths) - 1)];
        size_t n = random_size(0, 3000);
        uint64_t *a = random_words(n), *b = exactly(n * sizeof *b);
        uint8_t *words, *block = packed_at(&words, a, n, w, 0);

        if (n > 0)
            memset(b, 0, n * sizeof *b);
        dafl_ring_add_words(b, words, n, w, false);
        for (size_t i = 0; i < n; i++)
            assert_true((b[i] & low_bits(w)) == (a[i] & low_bits(w)));
        dafl_ring_add_words(b, words, n, w, true);
        for (size_t i = 0; i < n; i++)
            assert_true((b[i] & low_bits(w)) == 0);
        free(a);
        free(b);
        free(block);
    }
}

static void extremes_come_back_for_every_width(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(widths); i++) {
        unsigned w = widths[i];
        int64_t most = (int64_t)(low_bits(w) >> 1);
        const int64_t x[] = {-most - 1, -most,    -2,   -1,       0,    1,
                             2,         most - 1, most, most / 2, -128, 255};
        int64_t back[COUNT(x)];
        uint64_t acc[COUNT(x)];

        dafl_ring_from_int(acc, x, COUNT(x));
        dafl_ring_to_int(back, acc, COUNT(x), w);
        assert_memory_equal(back, x, sizeof x);
        /* What lies above w bits means nothing. */
        for (size_t k = 0; w < 64 && k < COUNT(x); k++)
            acc[k] ^= random_u64() << w;
        dafl_ring_to_int(back, acc, COUNT(x), w);
        assert_memory_equal(back, x, sizeof x);
        /* One more than the most is the least. */
        acc[0] = (uint64_t)most + 1;
        dafl_ring_to_int(back, acc, 1, w);
        assert_true(back[0] == -most - 1);
        acc[0] = 0u - (uint64_t)most - 2;
        dafl_ring_to_int(back, acc, 1, w);
        assert_true(back[0] == most);
    }
}

static void sums_of_integers_are_exact_while_they_fit(void **state)
{
    enum { N = 200, TERMS = 30 };

    (void)state;
    for (size_t i = 0; i < COUNT(widths); i++) {
        unsigned w = widths[i];
        int64_t right[N] = {0}, x[N], sum[N];
        uint64_t acc[N] = {0}, one[N];

        for (int k = 0; k < TERMS; k++) {
            uint8_t words[N * 8] = {0};

            for (size_t j = 0; j < N; j++) {
                /* 30 terms below 2^(w - 6) in size: the sum fits. */
                x[j] = (int64_t)(random_u64() >> (64 - w + 5)) -
                       ((int64_t)1 << (w - 6));
                right[j] += x[j];
            }
            dafl_ring_from_int(one, x, N);
            dafl_ring_pack(words, one, N, w);
            dafl_ring_add_words(acc, words, N, w, false);
        }
        dafl_ring_to_int(sum, acc, N, w);
        assert_memory_equal(sum, right, sizeof sum);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(five_widths_are_ok),
        cmocka_unit_test(pack_writes_the_low_bytes_lowest_first),
        cmocka_unit_test(added_and_subtracted_words_are_right_for_any_length),
        cmocka_unit_test(packed_words_come_back),
        cmocka_unit_test(extremes_come_back_for_every_width),
        cmocka_unit_test(sums_of_integers_are_exact_while_they_fit),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
