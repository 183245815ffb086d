/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdbool.h>

#include "tests/crypto/bytes.h"
#include "tests/noise.h"
#include "crypto/hash.h"
#include "crypto/mask.h"
#include "lib/ring.h"
#include "tests/vectors/crypto.h"

static const unsigned widths[] = {32, 40, 48, 56, 64};

static uint64_t low_bits(unsigned w)
{
    return UINT64_MAX >> (64 - w);
}

/* Of exactly n words. */
static uint64_t *words(size_t n)
{
    return exactly(n * sizeof(uint64_t));
}

static void mask_words_equal_the_independent_model(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(prg_known); i++) {
        size_t n = prg_known[i].at + 1;
        uint64_t *acc = words(n);
        dafl_mask mask = {.negate = false};

        from_hex(mask.key.b, sizeof mask.key.b, prg_known[i].key);
        memset(acc, 0, n * sizeof *acc);
        dafl_mask_apply(acc, n, prg_known[i].w, &mask, 1, NULL);
        assert_true((acc[n - 1] & low_bits(prg_known[i].w)) ==
                    prg_known[i].word);
        free(acc);
    }
}

static void masked_vectors_equal_the_independent_model(void **state)
{
    dafl_mask masks[COUNT(masked_keys)];

    (void)state;
    for (size_t i = 0; i < COUNT(masks); i++) {
        from_hex(masks[i].key.b, sizeof masks[i].key.b, masked_keys[i].key);
        masks[i].negate = masked_keys[i].negate != 0;
    }
    for (size_t i = 0; i < COUNT(masked_known); i++) {
        unsigned w = masked_known[i].w;
        uint64_t acc[MASKED];
        uint8_t packed[MASKED * 8], first[32];
        dafl_digest digest, known;

        for (size_t k = 0; k < MASKED; k++)
            acc[k] = k * 0x9e3779b97f4a7c15u;
        dafl_mask_apply(acc, MASKED, w, masks, COUNT(masks), NULL);
        dafl_ring_pack(packed, acc, MASKED, w);
        from_hex(first, sizeof first, masked_known[i].first);
        assert_memory_equal(packed, first, sizeof first);
        dafl_hash_one(&digest, "test/vector",
                      (dafl_bytes){packed, MASKED * w / 8});
        from_hex(known.b, sizeof known.b, masked_known[i].digest);
        assert_memory_equal(&digest, &known, sizeof digest);
    }
}

/* ---- the definition ---- */

/* The whole stream at once, its words put together byte by byte. */
static void apply_naively(uint64_t *acc, size_t n, unsigned w,
                          const dafl_mask *masks, size_t n_masks)
{
    static const uint8_t nonce[crypto_stream_chacha20_NONCEBYTES];
    uint8_t *stream = exactly(n * w / 8 + 1);

    for (size_t m = 0; m < n_masks; m++) {
        (void)crypto_stream_chacha20(stream, n * w / 8, nonce, masks[m].key.b);
        for (size_t i = 0; i < n; i++) {
            uint64_t word = 0;

            for (size_t k = w / 8; k-- > 0;)
                word = word << 8 | stream[i * w / 8 + k];
            acc[i] = masks[m].negate ? acc[i] - word : acc[i] + word;
        }
    }
    free(stream);
}

static void assert_same_words(const uint64_t *a, const uint64_t *b, size_t n,
                              unsigned w)
{
    for (size_t i = 0; i < n; i++)
        if (((a[i] ^ b[i]) & low_bits(w)) != 0)
            fail_msg("w = %u: word %zu of %zu differs", w, i, n);
}

static void random_masks(dafl_mask *masks, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        random_bytes(&masks[i].key, sizeof masks[i].key);
        masks[i].negate = random_u64() % 2 != 0;
    }
}

static void
masks_equal_their_definition_for_any_length_and_threads(void **state)
{
    static const size_t lengths[] = {0,    1,    2,    3,    4,    5,    63,
                                     64,   65,   1023, 1024, 1025, 1028, 2047,
                                     2048, 2049, 5000, 0,    0};
    dafl_pool *pools[4] = {NULL};

    (void)state;
    for (unsigned i = 1; i < COUNT(pools); i++)
        assert_ok(dafl_pool_new(&pools[i], i));
    for (size_t l = 0; l < COUNT(lengths); l++)
        for (size_t i = 0; i < COUNT(widths); i++) {
            /* Lengths of 0 after the first are drawn. */
            size_t n =
                l > 0 && lengths[l] == 0 ? random_size(1, 9999) : lengths[l];
            size_t n_masks = random_size(0, 5);
            unsigned w = widths[i];
            uint64_t *start = words(n), *naive = words(n), *acc = words(n);
            dafl_mask masks[5];

            random_masks(masks, n_masks);
            random_bytes(start, n * sizeof *start);
            if (n > 0)
                memcpy(naive, start, n * sizeof *naive);
            apply_naively(naive, n, w, masks, n_masks);
            for (size_t p = 0; p < COUNT(pools); p++) {
                if (n > 0)
                    memcpy(acc, start, n * sizeof *acc);
                dafl_mask_apply(acc, n, w, masks, n_masks, pools[p]);
                assert_same_words(acc, naive, n, w);
            }
            free(start);
            free(naive);
            free(acc);
        }
    for (size_t i = 0; i < COUNT(pools); i++)
        dafl_pool_free(&pools[i]);
}

static void the_order_of_masks_does_not_matter(void **state)
{
    enum { N = 1500, MASKS = 6 };
    uint64_t a[N] = {0}, b[N] = {0};
    dafl_mask masks[MASKS], reversed[MASKS];

    (void)state;
    random_masks(masks, MASKS);
    for (size_t i = 0; i < MASKS; i++)
        reversed[i] = masks[MASKS - 1 - i];
    for (size_t i = 0; i < COUNT(widths); i++) {
        dafl_mask_apply(a, N, widths[i], masks, MASKS, NULL);
        dafl_mask_apply(b, N, widths[i], reversed, MASKS, NULL);
        assert_same_words(a, b, N, widths[i]);
    }
}

static void a_mask_and_its_negative_leave_the_vector(void **state)
{
    enum { N = 1500 };
    uint64_t a[N], b[N];
    dafl_mask masks[2];

    (void)state;
    for (size_t i = 0; i < COUNT(widths); i++) {
        random_bytes(a, sizeof a);
        memcpy(b, a, sizeof a);
        random_masks(masks, 1);
        masks[1] = masks[0];
        masks[1].negate = !masks[0].negate;
        dafl_mask_apply(a, N, widths[i], masks, 1, NULL);
        assert_memory_not_equal(a, b, sizeof a);
        dafl_mask_apply(a, N, widths[i], masks + 1, 1, NULL);
        assert_same_words(a, b, N, widths[i]);
        dafl_mask_apply(a, N, widths[i], masks, 2, NULL);
        assert_same_words(a, b, N, widths[i]);
    }
}

/* ---- cohorts ---- */

enum { CLIQUE = 12, LENGTH = 1100 };

/* The masks of member u of the clique: + towards higher members. */
static size_t pair_masks(dafl_mask *masks, dafl_key keys[CLIQUE][CLIQUE],
                         size_t u, size_t n_members)
{
    size_t n = 0;

    for (size_t v = 0; v < n_members; v++)
        if (v != u) {
            masks[n].key = u < v ? keys[u][v] : keys[v][u];
            masks[n++].negate = u > v;
        }
    return n;
}

static void masks_cancel_over_any_clique(void **state)
{
    static dafl_key keys[CLIQUE][CLIQUE];
    static uint64_t plain[LENGTH], masked[LENGTH], y[LENGTH];

    (void)state;
    for (int round = 0; round < 20; round++) {
        unsigned w = widths[random_size(0, COUNT(widths) - 1)];
        size_t members = random_size(2, CLIQUE), n = random_size(1, LENGTH);

        random_bytes(keys, sizeof keys);
        memset(plain, 0, sizeof plain);
        memset(masked, 0, sizeof masked);
        for (size_t u = 0; u < members; u++) {
            dafl_mask masks[CLIQUE];
            size_t n_masks = pair_masks(masks, keys, u, members);

            random_bytes(y, sizeof y);
            for (size_t i = 0; i < n; i++)
                plain[i] += y[i];
            dafl_mask_apply(y, n, w, masks, n_masks, NULL);
            for (size_t i = 0; i < n; i++)
                masked[i] += y[i];
        }
        assert_same_words(masked, plain, n, w);
    }
}

/* One member told of another context: the sum does not open. */
static void one_different_key_leaves_the_sum_masked(void **state)
{
    static dafl_key keys[CLIQUE][CLIQUE];
    static uint64_t sum[LENGTH];
    size_t zeros = 0;

    (void)state;
    random_bytes(keys, sizeof keys);
    for (size_t u = 0; u < 4; u++) {
        dafl_mask masks[CLIQUE];
        size_t n_masks = pair_masks(masks, keys, u, 4);

        if (u == 2)
            flip(masks[0].key.b, random_size(0, 255));
        dafl_mask_apply(sum, LENGTH, 32, masks, n_masks, NULL);
    }
    for (size_t i = 0; i < LENGTH; i++)
        zeros += (sum[i] & low_bits(32)) == 0;
    assert_true(zeros <= 1);
}

/* ---- what an upload shows ---- */

/* x all zero, all 2^w - 1, or a one here and there. */
enum { ZEROS, ONES, SPARSE, N_INPUTS };

static uint64_t input_at(int kind, size_t i)
{
    return kind == ZEROS ? 0 : kind == ONES ? UINT64_MAX : i % 37 == 5;
}

/* 1000 uploads of one input, and the two slots compared word by word. */
static size_t upload(statistics *s, int kind, unsigned w, size_t n_masks)
{
    enum { UPLOADS = 1000, N = 64 };
    uint64_t y[N], before[N] = {0};
    uint8_t packed[N * 8];
    dafl_mask masks[4];
    size_t equal = 0;

    for (int k = 0; k < UPLOADS; k++) {
        for (size_t i = 0; i < N; i++)
            y[i] = input_at(kind, i);
        random_masks(masks, n_masks);
        dafl_mask_apply(y, N, w, masks, n_masks, NULL);
        dafl_ring_pack(packed, y, N, w);
        look_at(s, packed, N * w / 8);
        for (size_t i = 0; i < N; i++) {
            equal += k > 0 && ((y[i] ^ before[i]) & low_bits(w)) == 0;
            before[i] = y[i];
        }
    }
    return equal;
}

static void uploads_of_any_input_look_uniform(void **state)
{
    (void)state;
    for (int kind = 0; kind < N_INPUTS; kind++)
        for (size_t i = 0; i < COUNT(widths); i++) {
            statistics s = {.n = 0};
            /* 64000 chances of 2^-32. */
            size_t equal = upload(&s, kind, widths[i], 4);

            assert_true(equal <= 1);
            if (!is_uniform(&s))
                fail_msg("input %d, w = %u: histogram %.2f, serial "
                         "correlation %.2f standard deviations",
                         kind, widths[i], histogram_z(&s), serial_z(&s));
        }
}

/* The statistics see what they should see. */
static void uploads_without_a_mask_do_not_look_uniform(void **state)
{
    (void)state;
    for (int kind = 0; kind < N_INPUTS; kind++)
        for (size_t i = 0; i < COUNT(widths); i++) {
            statistics s = {.n = 0};

            assert_true(upload(&s, kind, widths[i], 0) > 1000);
            assert_true(histogram_z(&s) > Z_LIMIT);
            assert_true(kind == SPARSE || fabs(serial_z(&s)) > Z_LIMIT);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mask_words_equal_the_independent_model),
        cmocka_unit_test(masked_vectors_equal_the_independent_model),
        cmocka_unit_test(
            masks_equal_their_definition_for_any_length_and_threads),
        cmocka_unit_test(the_order_of_masks_does_not_matter),
        cmocka_unit_test(a_mask_and_its_negative_leave_the_vector),
        cmocka_unit_test(masks_cancel_over_any_clique),
        cmocka_unit_test(one_different_key_leaves_the_sum_masked),
        cmocka_unit_test(uploads_of_any_input_look_uniform),
        cmocka_unit_test(uploads_without_a_mask_do_not_look_uniform),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
