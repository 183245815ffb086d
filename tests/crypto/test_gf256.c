/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/crypto/bytes.h"
#include "crypto/gf256.h"

/* Long multiplication of polynomials, then long division. */
static uint8_t multiplied(unsigned a, unsigned b)
{
    unsigned product = 0;

    for (unsigned i = 0; i < 8; i++)
        if (b >> i & 1)
            product ^= a << i;
    for (unsigned i = 15; i-- > 8;)
        if (product >> i & 1)
            product ^= 0x11bu << (i - 8);
    return (uint8_t)product;
}

static void all_products_are_right(void **state)
{
    (void)state;
    for (unsigned a = 0; a < 256; a++)
        for (unsigned b = 0; b < 256; b++)
            assert_int_equal(dafl_gf_mul((uint8_t)a, (uint8_t)b),
                             multiplied(a, b));
}

static void all_inverses_are_right(void **state)
{
    (void)state;
    assert_int_equal(dafl_gf_inverse(0), 0);
    for (unsigned a = 1; a < 256; a++)
        assert_int_equal(multiplied(a, dafl_gf_inverse((uint8_t)a)), 1);
}

static void rows_are_scaled_and_added_as_their_elements_are(void **state)
{
    (void)state;
    for (unsigned x = 0; x < 256; x++)
        for (int round = 0; round < 8; round++) {
            uint8_t out[32], before[32], v[32];

            random_bytes(before, sizeof before);
            /* Every v at every place sooner or later: 8 rounds of 32. */
            for (unsigned i = 0; i < 32; i++)
                v[i] = (uint8_t)(32 * round + (int)(i + x));
            memcpy(out, before, sizeof out);
            dafl_gf_add_scaled(out, v, (uint8_t)x);
            for (size_t i = 0; i < 32; i++)
                assert_int_equal(out[i], before[i] ^ multiplied(x, v[i]));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_products_are_right),
        cmocka_unit_test(all_inverses_are_right),
        cmocka_unit_test(rows_are_scaled_and_added_as_their_elements_are),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
