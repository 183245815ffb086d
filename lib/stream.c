/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#define BLOCK 64 /* bytes of one ChaCha20 block */

static uint64_t load64_le(const uint8_t *p)
{
    uint64_t v = 0;

    for (int i = 7; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

static void store64_le(uint8_t *p, uint64_t v)
{
    for (int i = 0; i < 8; i++, v >>= 8)
        p[i] = (uint8_t)v;
}

static uint64_t nonce_of(dafl_stream_use use, uint64_t number)
{
    return (uint64_t)use << 56 | number;
}

/* len bytes of keystream from 64-byte block `block` on. */
static void keystream(uint8_t *out, size_t len, const dafl_seed *seed,
                      uint64_t nonce, uint64_t block)
{
    uint8_t n[crypto_stream_chacha20_NONCEBYTES];

    store64_le(n, nonce);
    memset(out, 0, len);
    /* Fails only for lengths no caller here asks for. */
    (void)crypto_stream_chacha20_xor_ic(out, out, len, n, block, seed->b);
}

dafl_err dafl_seed_parse(dafl_seed *out, const char *text, dafl_why *why)
{
    dafl_seed seed = {{0}};
    size_t n = strlen(text), bin_len = 0;
    char *end = NULL;
    unsigned long long v;

    if (n == 2 * (size_t)DAFL_SEED_BYTES) {
        if (sodium_hex2bin(seed.b, sizeof seed.b, text, n, NULL, &bin_len,
                           NULL) != 0 ||
            bin_len != sizeof seed.b)
            return dafl_fail(why, DAFL_ERR_INPUT,
                             "seed '%s' has characters that are not "
                             "hexadecimal digits",
                             text);
        *out = seed;
        return DAFL_OK;
    }
    errno = 0;
    v = strtoull(text, &end, 10);
    if (n == 0 || text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "seed '%s' is neither a number below 2^64 nor 64 "
                         "hexadecimal digits",
                         text);
    store64_le(seed.b, v);
    *out = seed;
    return DAFL_OK;
}

void dafl_seed_format(char *text, const dafl_seed *seed)
{
    sodium_bin2hex(text, 2 * sizeof seed->b + 1, seed->b, sizeof seed->b);
}

/* 64 random bits as an odd multiple of 2^-53 in (-1, 1): the top 53 bits as a
 * signed number k in [-2^52, 2^52), and k + 1/2 is exact in a double. */
static double signed_unit(uint64_t bits)
{
    int64_t k = (int64_t)(bits >> 11) - ((int64_t)1 << 52);

    return ((double)k + 0.5) * 0x1p-52;
}

void dafl_stream_uniform(double *out, size_t n, const dafl_seed *seed,
                         dafl_stream_use use, uint64_t number, double bound)
{
    uint8_t buffer[64 * BLOCK];
    const size_t per_buffer = sizeof buffer / 8;
    uint64_t nonce = nonce_of(use, number);

    for (size_t i = 0; i < n; i += per_buffer) {
        size_t m = n - i < per_buffer ? n - i : per_buffer;
        keystream(buffer, sizeof buffer, seed, nonce, i * 8 / BLOCK);
        for (size_t j = 0; j < m; j++)
            out[i + j] = signed_unit(load64_le(buffer + 8 * j)) * bound;
    }
}

void dafl_draw_init(dafl_draw *draw, const dafl_seed *seed, dafl_stream_use use,
                    uint64_t number)
{
    draw->seed = *seed;
    draw->nonce = nonce_of(use, number);
    draw->block = 0;
    draw->used = sizeof draw->buffer;
}

uint64_t dafl_draw_u64(dafl_draw *draw)
{
    uint64_t v;

    if (draw->used == sizeof draw->buffer) {
        keystream(draw->buffer, sizeof draw->buffer, &draw->seed, draw->nonce,
                  draw->block);
        draw->block += sizeof draw->buffer / BLOCK;
        draw->used = 0;
    }
    v = load64_le(draw->buffer + draw->used);
    draw->used += 8;
    return v;
}

uint64_t dafl_draw_below(dafl_draw *draw, uint64_t n)
{
    /* 2^64 mod n values at the bottom are drawn again. */
    uint64_t v, reject = (0 - n) % n;

    do
        v = dafl_draw_u64(draw);
    while (v < reject);
    return v % n;
}

double dafl_draw_unit(dafl_draw *draw)
{
    return ((double)(dafl_draw_u64(draw) >> 12) + 0.5) * 0x1p-52;
}

void dafl_draw_shuffle(dafl_draw *draw, uint32_t *items, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)dafl_draw_below(draw, i);
        uint32_t swap = items[i - 1];
        items[i - 1] = items[j];
        items[j] = swap;
    }
}
