/* SPDX-License-Identifier: Apache-2.0 */
/* The one hash of the protocol, always with a label that says what for.
 *
 *   H(label, part ..)        BLAKE2b-256 over LP(label) || LP(part) ..
 *   KDF(key, label, part ..) the same, keyed with 32 bytes
 *   LP(x)                    u32 length || x, little endian
 *
 * The lengths make the parts' boundaries part of what is hashed. */
#ifndef DAFL_CRYPTO_HASH_H
#define DAFL_CRYPTO_HASH_H

#include <stddef.h>
#include <stdint.h>

#include <sodium.h>

#include "lib/bytes.h"

#define DAFL_HASH_BYTES 32
#define DAFL_KEY_BYTES 32

typedef struct {
    uint8_t b[DAFL_HASH_BYTES];
} dafl_digest;

typedef struct {
    crypto_generichash_blake2b_state state;
} dafl_hash;

void dafl_hash_init(dafl_hash *h, const char *label);
void dafl_kdf_init(dafl_hash *h, const uint8_t key[DAFL_KEY_BYTES],
                   const char *label);

/* One part: bytes, or an integer of that width. len < 2^32. */
void dafl_hash_part(dafl_hash *h, const void *part, size_t len);
void dafl_hash_digest(dafl_hash *h, const dafl_digest *part);
void dafl_hash_u16(dafl_hash *h, uint16_t part);
void dafl_hash_u32(dafl_hash *h, uint32_t part);
void dafl_hash_u64(dafl_hash *h, uint64_t part);

/* A part that comes in pieces: its length first, then pieces that add up to
 * it. */
void dafl_hash_begin(dafl_hash *h, size_t len);
void dafl_hash_piece(dafl_hash *h, const void *piece, size_t len);

/* Finish and wipe the state. */
void dafl_hash_end(dafl_hash *h, dafl_digest *out);

/* H(label, part), the most common case. */
void dafl_hash_one(dafl_digest *out, const char *label, dafl_bytes part);

/* Constant-time equality. */
int dafl_digest_equal(const dafl_digest *a, const dafl_digest *b);

#endif
