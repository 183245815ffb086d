/* SPDX-License-Identifier: Apache-2.0 */
/* Whether bytes look like noise. */
#ifndef DAFL_TESTS_NOISE_H
#define DAFL_TESTS_NOISE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/ring.h"

/* Two-sided p = 1e-6 of the normal distribution. */
#define Z_LIMIT 4.8916

typedef struct {
    size_t count[256], n;
    double sum, squares, products;
    int last;
} statistics;

static inline void look_at(statistics *s, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        /* Centred, so that the sums stay exact. */
        double b = bytes[i] - 127.5;

        s->count[bytes[i]]++;
        if (s->n > 0)
            s->products += b * (s->last - 127.5);
        s->sum += b;
        s->squares += b * b;
        s->last = bytes[i];
        s->n++;
    }
}

/* Words as the wire has them. */
static inline void look_at_words(statistics *s, const uint64_t *words, size_t n,
                                 unsigned w)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t bytes[8];

        dafl_ring_pack(bytes, &words[i], 1, w);
        look_at(s, bytes, w / 8);
    }
}

/* Chi-square of the histogram, 255 degrees of freedom, as a normal deviate by
 * Wilson and Hilferty's cube root. */
static inline double histogram_z(const statistics *s)
{
    double expected = (double)s->n / 256, chi = 0, v = 2.0 / (9 * 255);

    for (size_t i = 0; i < 256; i++) {
        double off = (double)s->count[i] - expected;

        chi += off * off / expected;
    }
    return (cbrt(chi / 255) - (1 - v)) / sqrt(v);
}

/* The correlation of neighbours has standard deviation 1 / sqrt(n). */
static inline double serial_z(const statistics *s)
{
    double n = (double)s->n, mean = s->sum / n;
    double variance = s->squares / n - mean * mean;

    if (variance == 0)
        return sqrt(n);
    return (s->products / n - mean * mean) / variance * sqrt(n);
}

static inline bool is_uniform(const statistics *s)
{
    return fabs(histogram_z(s)) <= Z_LIMIT && fabs(serial_z(s)) <= Z_LIMIT;
}

#endif
