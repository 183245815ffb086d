/* SPDX-License-Identifier: Apache-2.0 */
/* Masks: the ChaCha20 keystream of a key (nonce 0) read as w-bit words. Two
 * clients that share a key add and subtract the same words, and their sum is
 * unchanged. A mask is never in memory as a whole: pieces of it are generated
 * in the cache and added at once. */
#ifndef DAFL_CRYPTO_MASK_H
#define DAFL_CRYPTO_MASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/keys.h"
#include "lib/err.h"
#include "lib/pool.h"

typedef struct {
    dafl_key key;
    bool negate; /* subtract the words instead of adding them */
} dafl_mask;

/* acc[0..n) += the words of every mask, mod 2^w. A key masks one vector of one
 * slot: reuse reveals a difference of inputs. Constant time in keys and acc.
 * Threads of `pool` share the work (NULL: this thread alone); the result does
 * not depend on them. */
void dafl_mask_apply(uint64_t *acc, size_t n, unsigned w,
                     const dafl_mask *masks, size_t n_masks, dafl_pool *pool);

#endif
