/* SPDX-License-Identifier: Apache-2.0 */
/* Public randomness from a run's 32-byte seed. Every use has a stream of its
 * own (ChaCha20, the stream's number as nonce), so any party can expand any
 * part alone and nobody can choose it. */
#ifndef DAFL_LIB_STREAM_H
#define DAFL_LIB_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"

#define DAFL_SEED_BYTES 32

typedef struct {
    uint8_t b[DAFL_SEED_BYTES];
} dafl_seed;

/* What a stream is for; the low 56 bits number the streams of one use. */
typedef enum {
    DAFL_STREAM_PROJECTION = 0, /* 0: A, 1: a, 2 + 2t: B_t, 3 + 2t: b_t */
    DAFL_STREAM_PARTICIPATION = 1,
    DAFL_STREAM_SIMULATION = 2, /* partition, label noise, order of clients */
} dafl_stream_use;

/* 64 hexadecimal digits, or a decimal number below 2^64 (its little-endian
 * bytes, zero-padded). */
DAFL_CHECK dafl_err dafl_seed_parse(dafl_seed *out, const char *text,
                                    dafl_why *why);
/* text: 65 bytes. */
void dafl_seed_format(char *text, const dafl_seed *seed);

/* out[0..n) uniform in (-bound, bound), symmetric about zero, 53 bits each. */
void dafl_stream_uniform(double *out, size_t n, const dafl_seed *seed,
                         dafl_stream_use use, uint64_t number, double bound);

/* The same stream read number by number, for draws and shuffles. */
typedef struct {
    dafl_seed seed;
    uint64_t nonce, block;
    size_t used;
    uint8_t buffer[512];
} dafl_draw;

void dafl_draw_init(dafl_draw *draw, const dafl_seed *seed, dafl_stream_use use,
                    uint64_t number);
uint64_t dafl_draw_u64(dafl_draw *draw);
/* Uniform in [0, n) without bias; n > 0. */
uint64_t dafl_draw_below(dafl_draw *draw, uint64_t n);
/* Uniform in (0, 1). */
double dafl_draw_unit(dafl_draw *draw);
void dafl_draw_shuffle(dafl_draw *draw, uint32_t *items, size_t n);

#endif
