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

static uint64_t load_word(const uint8_t *p)
{
    uint64_t v;

    /* Little endian (lib/npy.c insists); bits above w are never looked at. */
    memcpy(&v, p, sizeof v);
    return v;
}

void dafl_ring_add_words(uint64_t *acc, const uint8_t *words, size_t n,
                         unsigned w, bool negate)
{
    const size_t size = w / 8;
    size_t i = 0;

#ifdef __AVX2__
    /* Four words at a time: two 16-byte loads hold two words each, a shuffle
     * within each half moves them to the start of their lanes. (a ^ m) - m
     * negates when m is all ones. */
    const __m256i move = _mm256_setr_epi8(
        0, 1, 2, 3, 4, 5, 6, 7, (char)size, (char)(size + 1), (char)(size + 2),
        (char)(size + 3), (char)(size + 4), (char)(size + 5), (char)(size + 6),
        (char)(size + 7), 0, 1, 2, 3, 4, 5, 6, 7, (char)size, (char)(size + 1),
        (char)(size + 2), (char)(size + 3), (char)(size + 4), (char)(size + 5),
        (char)(size + 6), (char)(size + 7));
    const __m256i minus = _mm256_set1_epi64x(negate ? -1 : 0);

    for (; i + 4 <= n; i += 4) {
        const uint8_t *p = words + i * size;
        __m256i *out = (__m256i *)(void *)(acc + i);
        __m256i v =
            _mm256_loadu2_m128i((const __m128i *)(const void *)(p + 2 * size),
                                (const __m128i *)(const void *)p);
        v = _mm256_shuffle_epi8(v, move);
        v = _mm256_sub_epi64(_mm256_xor_si256(v, minus), minus);
        _mm256_storeu_si256(out, _mm256_add_epi64(_mm256_loadu_si256(out), v));
    }
#endif
    for (; i < n; i++) {
        uint64_t v = load_word(words + i * size), minus64 = negate ? ~0ull : 0;
        acc[i] += (v ^ minus64) - minus64;
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
