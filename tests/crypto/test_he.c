/* SPDX-License-Identifier: Apache-2.0 */
/* What is encrypted and added comes back exactly (H1). */
#include "tests/crypto/he_parties.h"

static const size_t lengths[] = {1, 4095, 4096, 4097, 20000};

static void numbers_come_back(void **state)
{
    (void)state;
    for (unsigned w = 32; w <= 56; w += 8) {
        parties p = start(w, 2);

        for (size_t k = 0; k < COUNT(lengths); k++) {
            size_t n = lengths[k];
            uint64_t *y = words(n), *got = words(n);
            dafl_writer cts;

            draw(y, n);
            cts = encrypted(&p, y, n);
            assert_ok(
                dafl_he_decrypt(p.he, p.sk, dafl_writer_bytes(&cts), got, n));
            assert_equal_mod(got, y, n, w);
            dafl_writer_drop(&cts);
            free(got);
            free(y);
        }
        stop(&p);
    }
}

static void sums_and_blinded_sums_are_exact(void **state)
{
    (void)state;
    for (unsigned w = 48; w <= 56; w += 8) {
        parties p = start(w, 2);

        for (size_t k = 0; k < COUNT(lengths); k++) {
            size_t n = lengths[k];
            uint64_t *y = words(n), *total = words(n);
            dafl_he_sum *s = NULL, *other = NULL;

            memset(total, 0, n * sizeof *total);
            assert_ok(dafl_he_sum_new(&s, p.he, n));
            assert_ok(dafl_he_sum_new(&other, p.he, n));
            assert_ok(dafl_he_sum_merge(s, other)); /* none and none */
            for (size_t i = 0; i < 7; i++) {
                dafl_writer cts;

                draw(y, n);
                cts = encrypted(&p, y, n);
                assert_ok(dafl_he_sum_add(i % 3 == 0 ? s : other,
                                          dafl_writer_bytes(&cts)));
                dafl_writer_drop(&cts);
                for (size_t c = 0; c < n; c++)
                    total[c] += y[c];
            }
            assert_ok(dafl_he_sum_merge(s, other));
            assert_opens_to(&p, s, total, n);
            draw(y, n);
            assert_ok(dafl_he_sum_blind(s, y));
            for (size_t c = 0; c < n; c++)
                total[c] += y[c];
            assert_opens_to(&p, s, total, n);
            dafl_he_sum_free(&other);
            assert_ok(dafl_he_sum_new(&other, p.he, n));
            assert_ok(dafl_he_sum_merge(other, s)); /* to none */
            assert_opens_to(&p, other, total, n);
            dafl_he_sum_free(&other);
            dafl_he_sum_free(&s);
            assert_null(s);
            free(total);
            free(y);
        }
        stop(&p);
    }
}

/* H1. A sum that is doubled b times and still exact had b bits of noise budget
 * left; doubled often enough it is not, so the numbers are looked at. */
static void sums_of_1024_are_exact_with_room_to_spare(void **state)
{
    parties p = start(56, 2);
    uint64_t *y = words(DAFL_HE_N), *total = words(DAFL_HE_N);
    uint64_t *got = words(DAFL_HE_N);
    dafl_he_sum *s = NULL;
    unsigned budget = 0;

    (void)state;
    memset(total, 0, DAFL_HE_N * sizeof *total);
    assert_ok(dafl_he_sum_new(&s, p.he, DAFL_HE_N));
    for (size_t i = 0; i < 1024; i++) {
        dafl_writer cts;

        random_bytes(y, DAFL_HE_N * sizeof *y);
        cts = encrypted(&p, y, DAFL_HE_N);
        assert_ok(dafl_he_sum_add(s, dafl_writer_bytes(&cts)));
        dafl_writer_drop(&cts);
        for (size_t c = 0; c < DAFL_HE_N; c++)
            total[c] += y[c];
    }
    assert_opens_to(&p, s, total, DAFL_HE_N);
    random_bytes(y, DAFL_HE_N * sizeof *y);
    assert_ok(dafl_he_sum_blind(s, y));
    for (size_t c = 0; c < DAFL_HE_N; c++)
        total[c] += y[c];
    assert_opens_to(&p, s, total, DAFL_HE_N);
    for (bool exact = true; exact && budget < 64; budget += exact) {
        dafl_writer cts = put(s);

        assert_ok(dafl_he_sum_add(s, dafl_writer_bytes(&cts)));
        dafl_writer_drop(&cts);
        cts = put(s);
        assert_ok(dafl_he_decrypt(p.he, p.sk, dafl_writer_bytes(&cts), got,
                                  DAFL_HE_N));
        dafl_writer_drop(&cts);
        for (size_t c = 0; c < DAFL_HE_N; c++) {
            total[c] *= 2;
            exact = exact && got[c] == (total[c] & UINT64_MAX >> 8);
        }
    }
    print_message("a budget of %u bits is left\n", budget);
    assert_true(budget >= 2 && budget < 16);
    dafl_he_sum_free(&s);
    free(got);
    free(total);
    free(y);
    stop(&p);
}

static void threads_change_nothing(void **state)
{
    size_t n = 3 * DAFL_HE_N + 5;
    uint64_t *y = words(n);

    (void)state;
    draw(y, n);
    /* Keys and ciphertexts of one dafl_he are good for any other. */
    for (unsigned threads = 0; threads <= 2; threads++) {
        parties p = start(48, threads);

        for (unsigned others = 0; others <= 2; others++) {
            dafl_pool *pool = NULL;
            dafl_he *he = NULL;
            dafl_he_public *pk = NULL;
            dafl_he_sum *s = NULL;
            dafl_writer cts = {0};

            if (others > 0)
                assert_ok(dafl_pool_new(&pool, others));
            assert_ok(dafl_he_new(&he, 48, pool, NULL));
            assert_ok(dafl_he_public_read(he, &pk, dafl_writer_bytes(&p.key)));
            assert_ok(dafl_he_encrypt(he, pk, y, n, &cts));
            assert_ok(dafl_he_sum_new(&s, he, n));
            assert_ok(dafl_he_sum_add(s, dafl_writer_bytes(&cts)));
            assert_opens_to(&p, s, y, n);
            dafl_writer_drop(&cts);
            dafl_he_sum_free(&s);
            dafl_he_public_free(&pk);
            dafl_he_free(&he);
            dafl_pool_free(&pool);
        }
        stop(&p);
    }
    free(y);
}

static void equal_numbers_are_encrypted_differently(void **state)
{
    parties p = start(56, 1);
    uint64_t *y = words(DAFL_HE_N);
    dafl_writer a, b;
    size_t same = 0;

    (void)state;
    memset(y, 0, DAFL_HE_N * sizeof *y);
    a = encrypted(&p, y, DAFL_HE_N);
    b = encrypted(&p, y, DAFL_HE_N);
    for (size_t i = 0; i < a.len; i++)
        same += a.ptr[i] == b.ptr[i];
    /* 288 are expected, with a standard deviation of 17. */
    assert_true(same < 400);
    dafl_writer_drop(&a);
    dafl_writer_drop(&b);
    free(y);
    stop(&p);
}

static void another_key_does_not_open_it(void **state)
{
    parties p = start(56, 1), q = start(56, 1);
    uint64_t *y = words(DAFL_HE_N), *got = words(DAFL_HE_N);
    dafl_writer cts;
    size_t same = 0;

    (void)state;
    random_bytes(y, DAFL_HE_N * sizeof *y);
    cts = encrypted(&p, y, DAFL_HE_N);
    assert_ok(
        dafl_he_decrypt(q.he, q.sk, dafl_writer_bytes(&cts), got, DAFL_HE_N));
    for (size_t i = 0; i < DAFL_HE_N; i++)
        same += got[i] == (y[i] & UINT64_MAX >> 8);
    assert_int_equal(same, 0);
    dafl_writer_drop(&cts);
    free(got);
    free(y);
    stop(&q);
    stop(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_come_back),
        cmocka_unit_test(sums_and_blinded_sums_are_exact),
        cmocka_unit_test(sums_of_1024_are_exact_with_room_to_spare),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(equal_numbers_are_encrypted_differently),
        cmocka_unit_test(another_key_does_not_open_it),
        cmocka_unit_test(nothing_was_loaded),
        cmocka_unit_test(loads_would_have_been_seen),
    };

    if (!can_encrypt())
        return 77;
    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
