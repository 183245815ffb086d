/* SPDX-License-Identifier: Apache-2.0 */
/* GF(2^8) with the polynomial x^8 + x^4 + x^3 + x + 1 (that of AES). */
#ifndef DAFL_CRYPTO_GF256_H
#define DAFL_CRYPTO_GF256_H

#include <stddef.h>
#include <stdint.h>

/* Constant time in both. */
static inline uint8_t dafl_gf_mul(uint8_t a, uint8_t b)
{
    unsigned product = 0, shifted = a;

    for (unsigned i = 0; i < 8; i++) {
        product ^= shifted & (0u - ((unsigned)b >> i & 1u));
        shifted = shifted << 1 ^ (0x11bu & (0u - (shifted >> 7 & 1u)));
    }
    return (uint8_t)product;
}

/* a^254 = 1/a, and 0 for 0; constant time. */
static inline uint8_t dafl_gf_inverse(uint8_t a)
{
    uint8_t square = a, result = 1;

    for (unsigned i = 0; i < 7; i++) {
        square = dafl_gf_mul(square, square);
        result = dafl_gf_mul(result, square);
    }
    return result;
}

/* 32 elements at once: out ^= x * v, for a public x. Constant time in v. */
void dafl_gf_add_scaled(uint8_t out[32], const uint8_t v[32], uint8_t x);

#endif
