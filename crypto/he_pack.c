/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/he_inside.h"

#include <assert.h>
#include <string.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

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

/* Loads reach 8 bytes beyond the block. The highest bit of the result is set
 * if one is not below q. */
static inline uint64_t unpack_block(uint64_t *x, const uint8_t *in,
                                    unsigned bits, uint64_t q)
{
    uint64_t above = 0;

    for (unsigned k = 0; k < BLOCK; k++) {
        unsigned at = k * bits;
        uint64_t word;

        memcpy(&word, in + at / 8, sizeof word);
        x[k] = word >> at % 8 & ((UINT64_C(1) << bits) - 1);
        above |= q - 1 - x[k];
    }
    return above;
}

#ifdef __AVX2__
/* The same for 36 bits, four at a time: of the nine bytes of two residues the
 * first five go to one lane and the last five to the next. */
static inline uint64_t unpack_block_36(uint64_t *x, const uint8_t *in,
                                       uint64_t q)
{
    const __m256i move =
        _mm256_setr_epi8(0, 1, 2, 3, 4, -1, -1, -1, 4, 5, 6, 7, 8, -1, -1, -1,
                         0, 1, 2, 3, 4, -1, -1, -1, 4, 5, 6, 7, 8, -1, -1, -1);
    const __m256i shift = _mm256_setr_epi64x(0, 4, 0, 4);
    const __m256i mask = _mm256_set1_epi64x((INT64_C(1) << 36) - 1);
    const __m256i most = _mm256_set1_epi64x((int64_t)q - 1);
    __m256i above = _mm256_setzero_si256();

    for (unsigned k = 0; k < BLOCK; k += 4, in += 18) {
        __m256i v = _mm256_inserti128_si256(
            _mm256_castsi128_si256(
                _mm_loadu_si128((const __m128i *)(const void *)in)),
            _mm_loadu_si128((const __m128i *)(const void *)(in + 9)), 1);

        v = _mm256_srlv_epi64(_mm256_shuffle_epi8(v, move), shift);
        v = _mm256_and_si256(v, mask);
        above = _mm256_or_si256(above, _mm256_sub_epi64(most, v));
        _mm256_storeu_si256((__m256i *)(void *)(x + k), v);
    }
    return _mm256_movemask_pd(_mm256_castsi256_pd(above)) != 0
               ? UINT64_C(1) << 63
               : 0;
}
#else
#define unpack_block_36(x, in, q) unpack_block((x), (in), 36, (q))
#endif

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

static inline bool unpack(uint64_t *x, const uint8_t *row, unsigned bits,
                          uint64_t q)
{
    uint8_t end[MAX_BITS + 8] = {0};
    size_t last = DAFL_HE_N / BLOCK - 1;
    uint64_t above = 0;

    for (size_t i = 0; i < last; i++)
        above |= bits == 36
                     ? unpack_block_36(x + i * BLOCK, row + i * bits, q)
                     : unpack_block(x + i * BLOCK, row + i * bits, bits, q);
    memcpy(end, row + last * bits, bits);
    above |= unpack_block(x + last * BLOCK, end, bits, q);
    return above >> 63 == 0;
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
    assert(p < DAFL_HE_KEY_PRIMES);
    return p < DAFL_HE_PRIMES ? unpack(residues, row, 36, dafl_he_primes[p])
                              : unpack(residues, row, 37, dafl_he_primes[p]);
}

bool dafl_he_transparent(const uint8_t *polys, unsigned n)
{
    size_t half = dafl_he_poly_bytes(n);

    for (size_t i = half; i < 2 * half; i++)
        if (polys[i] != 0)
            return false;
    return true;
}
