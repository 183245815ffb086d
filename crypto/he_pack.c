/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/he_inside.h"

#include <assert.h>
#include <string.h>

/* The default of SEAL for N = 4096 and 128 bits of security. */
const uint64_t dafl_he_primes[DAFL_HE_KEY_PRIMES] = {
    UINT64_C(0xffffee001), UINT64_C(0xffffc4001), UINT64_C(0x1ffffe0001)};
static const unsigned prime_bits[DAFL_HE_KEY_PRIMES] = {36, 36, 37};

/* Residues at a time: they fill `bits` bytes exactly. */
#define BLOCK 8
#define MAX_BITS 37

size_t dafl_he_row_bytes(unsigned p)
{
    assert(p < DAFL_HE_KEY_PRIMES);
    return (size_t)DAFL_HE_N * prime_bits[p] / 8;
}

size_t dafl_he_poly_bytes(unsigned n)
{
    size_t bytes = 0;

    for (unsigned p = 0; p < n; p++)
        bytes += dafl_he_row_bytes(p);
    return bytes;
}

size_t dafl_he_key_bytes(void)
{
    return 2 * dafl_he_poly_bytes(DAFL_HE_KEY_PRIMES);
}

size_t dafl_he_bytes(uint64_t len)
{
    uint64_t n = len / DAFL_HE_N + (len % DAFL_HE_N != 0);
    size_t each = 2 * dafl_he_poly_bytes(DAFL_HE_PRIMES);

    return n <= SIZE_MAX / each ? (size_t)n * each : SIZE_MAX;
}

/* Little endian (lib/npy.c insists). Stores reach 8 bytes beyond the block. */
static inline void pack_block(uint8_t *out, const uint64_t *x, unsigned bits)
{
    uint64_t carry = 0;

    for (unsigned k = 0; k < BLOCK; k++) {
        unsigned at = k * bits, next = at + bits;
        uint64_t word = carry | x[k] << at % 8;

        memcpy(out + at / 8, &word, sizeof word);
        carry = word >> (next / 8 - at / 8) * 8;
    }
}

/* Loads reach 8 bytes beyond the block. */
static inline void unpack_block(uint64_t *x, const uint8_t *in, unsigned bits)
{
    for (unsigned k = 0; k < BLOCK; k++) {
        unsigned at = k * bits;
        uint64_t word;

        memcpy(&word, in + at / 8, sizeof word);
        x[k] = word >> at % 8 & ((UINT64_C(1) << bits) - 1);
    }
}

/* The last block goes through a buffer that may be overrun. Inlined, so that
 * `bits` is a constant in the loops. */
static inline void pack(uint8_t *row, const uint64_t *x, unsigned bits)
{
    uint8_t end[MAX_BITS + 8];
    size_t last = DAFL_HE_N / BLOCK - 1;

    for (size_t i = 0; i < last; i++)
        pack_block(row + i * bits, x + i * BLOCK, bits);
    pack_block(end, x + last * BLOCK, bits);
    memcpy(row + last * bits, end, bits);
}

static inline void unpack(uint64_t *x, const uint8_t *row, unsigned bits)
{
    uint8_t end[MAX_BITS + 8] = {0};
    size_t last = DAFL_HE_N / BLOCK - 1;

    for (size_t i = 0; i < last; i++)
        unpack_block(x + i * BLOCK, row + i * bits, bits);
    memcpy(end, row + last * bits, bits);
    unpack_block(x + last * BLOCK, end, bits);
}

void dafl_he_pack(uint8_t *row, const uint64_t *residues, unsigned p)
{
    assert(p < DAFL_HE_KEY_PRIMES);
    if (p < DAFL_HE_PRIMES)
        pack(row, residues, 36);
    else
        pack(row, residues, 37);
}

bool dafl_he_unpack(uint64_t *residues, const uint8_t *row, unsigned p)
{
    uint64_t above = 0;

    assert(p < DAFL_HE_KEY_PRIMES);
    if (p < DAFL_HE_PRIMES)
        unpack(residues, row, 36);
    else
        unpack(residues, row, 37);
    for (size_t i = 0; i < DAFL_HE_N; i++)
        above |= dafl_he_primes[p] - 1 - residues[i]; /* wraps if too large */
    return above >> 63 == 0;
}

bool dafl_he_transparent(const uint8_t *polys, unsigned n)
{
    size_t half = dafl_he_poly_bytes(n);

    for (size_t i = half; i < 2 * half; i++)
        if (polys[i] != 0)
            return false;
    return true;
}
