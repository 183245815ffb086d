/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/crypto/bytes.h"
#include "crypto/he_inside.h"

static const unsigned bits[DAFL_HE_KEY_PRIMES] = {36, 36, 37};

/* Bit by bit: residue i is bits [i * b, (i + 1) * b) of the row. */
static uint64_t read_bits(const uint8_t *row, size_t i, unsigned b)
{
    uint64_t x = 0;

    for (unsigned k = b; k-- > 0;)
        x = x << 1 | (row[(i * b + k) / 8] >> (i * b + k) % 8 & 1);
    return x;
}

static void rows_are_bits_in_a_row(void **state)
{
    (void)state;
    for (unsigned p = 0; p < DAFL_HE_KEY_PRIMES; p++) {
        size_t len = dafl_he_row_bytes(p);
        uint64_t *x = exactly(DAFL_HE_N * sizeof *x);
        uint64_t *y = exactly(DAFL_HE_N * sizeof *y);
        uint8_t *row = exactly(len);

        assert_int_equal(len, DAFL_HE_N / 8 * bits[p]);
        for (size_t i = 0; i < DAFL_HE_N; i++)
            x[i] = random_u64() % dafl_he_primes[p];
        dafl_he_pack(row, x, p);
        for (size_t i = 0; i < DAFL_HE_N; i++)
            assert_true(read_bits(row, i, bits[p]) == x[i]);
        assert_true(dafl_he_unpack(y, row, p));
        assert_memory_equal(x, y, DAFL_HE_N * sizeof *x);
        free(row);
        free(y);
        free(x);
    }
}

static void residues_from_the_prime_on_are_refused(void **state)
{
    uint64_t x[DAFL_HE_N] = {0}, y[DAFL_HE_N];
    uint8_t row[DAFL_HE_N / 8 * 37];

    (void)state;
    for (unsigned p = 0; p < DAFL_HE_KEY_PRIMES; p++) {
        size_t where[] = {0, 7, 8, DAFL_HE_N - 1, random_size(0, 4095)};
        uint64_t q = dafl_he_primes[p], most = (UINT64_C(1) << bits[p]) - 1;

        for (size_t i = 0; i < COUNT(where); i++) {
            x[where[i]] = q - 1;
            dafl_he_pack(row, x, p);
            assert_true(dafl_he_unpack(y, row, p));
            x[where[i]] = q;
            dafl_he_pack(row, x, p);
            assert_false(dafl_he_unpack(y, row, p));
            x[where[i]] = most;
            dafl_he_pack(row, x, p);
            assert_false(dafl_he_unpack(y, row, p));
            x[where[i]] = 0;
        }
    }
}

static void transparent_is_a_second_polynomial_of_zeros(void **state)
{
    (void)state;
    for (unsigned n = DAFL_HE_PRIMES; n <= DAFL_HE_KEY_PRIMES; n++) {
        size_t half = dafl_he_poly_bytes(n);
        uint8_t *polys = exactly(2 * half);

        random_bytes(polys, 2 * half);
        assert_false(dafl_he_transparent(polys, n));
        memset(polys + half, 0, half);
        assert_true(dafl_he_transparent(polys, n));
        polys[half] = 1;
        assert_false(dafl_he_transparent(polys, n));
        polys[half] = 0;
        polys[2 * half - 1] = 0x80;
        assert_false(dafl_he_transparent(polys, n));
        free(polys);
    }
}

static void a_number_takes_18_bytes(void **state)
{
    (void)state;
    assert_int_equal(dafl_he_bytes(0), 0);
    assert_int_equal(dafl_he_bytes(1), 18 * 4096);
    assert_int_equal(dafl_he_bytes(4096), 18 * 4096);
    assert_int_equal(dafl_he_bytes(4097), 18 * 8192);
    assert_true(dafl_he_bytes(UINT64_MAX) == SIZE_MAX);
    assert_int_equal(dafl_he_key_bytes(), 2 * 512 * (36 + 36 + 37));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_bits_in_a_row),
        cmocka_unit_test(residues_from_the_prime_on_are_refused),
        cmocka_unit_test(transparent_is_a_second_polynomial_of_zeros),
        cmocka_unit_test(a_number_takes_18_bytes),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
