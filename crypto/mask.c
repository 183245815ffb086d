/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/mask.h"

#include <assert.h>
#include <string.h>

#include <sodium.h>

#include "lib/ring.h"

/* Words a worker takes at a time. A multiple of 64, so that for every w a
 * piece starts at a 64-byte block of the keystream; 8 to 16 kB of it and
 * 16 kB of vector stay in the first-level cache while all masks go over them.
 */
#define PIECE 2048

typedef struct {
    uint64_t *acc;
    size_t n;
    unsigned w;
    const dafl_mask *masks;
    size_t n_masks;
} job;

static void apply_piece(void *ctx, unsigned worker, size_t piece)
{
    static const uint8_t nonce[crypto_stream_chacha20_NONCEBYTES];
    const job *j = ctx;
    uint8_t stream[PIECE * 8];
    size_t first = piece * PIECE;
    size_t n = j->n - first < PIECE ? j->n - first : PIECE;
    size_t len = n * (j->w / 8);
    uint64_t block = (uint64_t)first * (j->w / 8) / 64;

    (void)worker;
    for (size_t i = 0; i < j->n_masks; i++) {
        memset(stream, 0, len);
        (void)crypto_stream_chacha20_xor_ic(stream, stream, len, nonce, block,
                                            j->masks[i].key.b);
        dafl_ring_add_words(j->acc + first, stream, n, j->w,
                            j->masks[i].negate);
    }
    sodium_memzero(stream, sizeof stream);
}

void dafl_mask_apply(uint64_t *acc, size_t n, unsigned w,
                     const dafl_mask *masks, size_t n_masks, dafl_pool *pool)
{
    job j = {acc, n, w, masks, n_masks};
    size_t n_pieces = (n + PIECE - 1) / PIECE;

    assert(dafl_ring_width_ok(w));
    if (pool != NULL)
        dafl_pool_run(pool, n_pieces, apply_piece, &j);
    else
        for (size_t i = 0; i < n_pieces; i++)
            apply_piece(&j, 0, i);
}
