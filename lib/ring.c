/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/ring.h"

#include <string.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

bool dafl_ring_width_ok(unsigned w)
{
    return w >= 32 && w <= 64 && w % 8 == 0;
}

/* The word at p, of which `left` bytes can be read. Little endian (lib/npy.c
 * insists); bits above w are never looked at. */
static uint64_t load_word(const uint8_t *p, size_t size, size_t left)
{
    uint64_t v = 0;

    if (left >= sizeof v)
        memcpy(&v, p, sizeof v);
    else
        memcpy(&v, p, size);
    return v;
}

#ifdef __AVX2__
/* Words i .. i+3 in four lanes: two 16-byte loads hold two words each, and a
 * shuffle within each half moves them to the start of their lanes. */
static inline __m256i load_four(const uint8_t *p, size_t size, __m256i move)
{
    __m256i v = _mm256_inserti128_si256(
        _mm256_castsi128_si256(
            _mm_loadu_si128((const __m128i *)(const void *)p)),
        _mm_loadu_si128((const __m128i *)(const void *)(p + 2 * size)), 1);

    return _mm256_shuffle_epi8(v, move);
}

/* Eight words in eight lanes: one byte permutation of a 64-byte load. Where the
 * CPU has it (asked at run time), this halves the cost of the addition. It
 * stops short of the end, because the load reaches beyond its eight words. */
__attribute__((target("avx512f,avx512bw,avx512vbmi"))) static size_t
add_eights(uint64_t *acc, const uint8_t *words, size_t n, size_t size,
           bool negate)
{
    uint8_t from[64];
    __m512i move;
    size_t i = 0;

    for (size_t k = 0; k < sizeof from; k++)
        from[k] = (uint8_t)(k / 8 * size + k % 8);
    move = _mm512_loadu_si512(from);
    for (; i + 16 <= n; i += 8) {
        __m512i v =
            _mm512_permutexvar_epi8(move, _mm512_loadu_si512(words + i * size));
        __m512i a = _mm512_loadu_si512(acc + i);
        _mm512_storeu_si512(acc + i, negate ? _mm512_sub_epi64(a, v)
                                            : _mm512_add_epi64(a, v));
    }
    return i;
}

/* As far as loads of fours stay within the words; returns how many that was. */
static inline size_t add_fours(uint64_t *acc, const uint8_t *words, size_t n,
                               size_t size, bool negate)
{
    const __m256i lane =
        _mm256_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1,
                         2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i second = _mm256_setr_epi64x(0, -1, 0, -1);
    const __m256i move = _mm256_add_epi8(
        lane, _mm256_and_si256(second, _mm256_set1_epi8((char)size)));
    size_t i = 0;

    for (; (i + 2) * size + 16 <= n * size; i += 4) {
        __m256i *out = (__m256i *)(void *)(acc + i);
        __m256i a = _mm256_loadu_si256(out);
        __m256i v = load_four(words + i * size, size, move);
        _mm256_storeu_si256(out, negate ? _mm256_sub_epi64(a, v)
                                        : _mm256_add_epi64(a, v));
    }
    return i;
}
#endif

void dafl_ring_add_words(uint64_t *acc, const uint8_t *words, size_t n,
                         unsigned w, bool negate)
{
    const size_t size = w / 8;
    size_t i = 0;

#ifdef __AVX2__
    if (__builtin_cpu_supports("avx512vbmi"))
        i = add_eights(acc, words, n, size, negate);
    /* Two calls, so that each loop is compiled for its sign. */
    i += negate ? add_fours(acc + i, words + i * size, n - i, size, true)
                : add_fours(acc + i, words + i * size, n - i, size, false);
#endif
    for (; i < n; i++) {
        uint64_t v = load_word(words + i * size, size, (n - i) * size);
        acc[i] = negate ? acc[i] - v : acc[i] + v;
    }
}

void dafl_ring_pack(uint8_t *words, const uint64_t *acc, size_t n, unsigned w)
{
    const size_t size = w / 8;
    size_t i = 0;

    /* Eight bytes at a time while the next word overwrites the excess. */
    for (; (i + 1) * size + 8 <= n * size; i++)
        memcpy(words + i * size, &acc[i], 8);
    for (; i < n; i++)
        memcpy(words + i * size, &acc[i], size);
}

void dafl_ring_from_int(uint64_t *acc, const int64_t *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        acc[i] = (uint64_t)x[i];
}

void dafl_ring_to_int(int64_t *x, const uint64_t *acc, size_t n, unsigned w)
{
    const uint64_t sign = (uint64_t)1 << (w - 1);
    const uint64_t mask = sign | (sign - 1);

    for (size_t i = 0; i < n; i++) {
        uint64_t v = ((acc[i] & mask) ^ sign) - sign;
        memcpy(&x[i], &v, sizeof v);
    }
}
