/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/hash.h"

#include <assert.h>
#include <string.h>

static void put(dafl_hash *h, const void *bytes, size_t len)
{
    /* Fails only after the state was finished. */
    (void)crypto_generichash_blake2b_update(&h->state, bytes, len);
}

static void store_le(uint8_t *out, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++, v >>= 8)
        out[i] = (uint8_t)v;
}

static void start(dafl_hash *h, const uint8_t *key, size_t key_len,
                  const char *label)
{
    (void)crypto_generichash_blake2b_init(&h->state, key, key_len,
                                          DAFL_HASH_BYTES);
    dafl_hash_part(h, label, strlen(label));
}

void dafl_hash_init(dafl_hash *h, const char *label)
{
    start(h, NULL, 0, label);
}

void dafl_kdf_init(dafl_hash *h, const uint8_t key[DAFL_KEY_BYTES],
                   const char *label)
{
    start(h, key, DAFL_KEY_BYTES, label);
}

void dafl_hash_begin(dafl_hash *h, size_t len)
{
    uint8_t prefix[4];

    assert(len <= UINT32_MAX);
    store_le(prefix, len, sizeof prefix);
    put(h, prefix, sizeof prefix);
}

void dafl_hash_piece(dafl_hash *h, const void *piece, size_t len)
{
    put(h, piece, len);
}

void dafl_hash_part(dafl_hash *h, const void *part, size_t len)
{
    dafl_hash_begin(h, len);
    put(h, part, len);
}

void dafl_hash_digest(dafl_hash *h, const dafl_digest *part)
{
    dafl_hash_part(h, part->b, sizeof part->b);
}

static void put_integer(dafl_hash *h, uint64_t v, size_t size)
{
    uint8_t le[8];

    store_le(le, v, size);
    dafl_hash_part(h, le, size);
}

void dafl_hash_u16(dafl_hash *h, uint16_t part)
{
    put_integer(h, part, 2);
}

void dafl_hash_u32(dafl_hash *h, uint32_t part)
{
    put_integer(h, part, 4);
}

void dafl_hash_u64(dafl_hash *h, uint64_t part)
{
    put_integer(h, part, 8);
}

void dafl_hash_end(dafl_hash *h, dafl_digest *out)
{
    (void)crypto_generichash_blake2b_final(&h->state, out->b, sizeof out->b);
    sodium_memzero(h, sizeof *h);
}

void dafl_hash_one(dafl_digest *out, const char *label, dafl_bytes part)
{
    dafl_hash h;

    dafl_hash_init(&h, label);
    dafl_hash_part(&h, part.ptr, part.len);
    dafl_hash_end(&h, out);
}

int dafl_digest_equal(const dafl_digest *a, const dafl_digest *b)
{
    return sodium_memcmp(a->b, b->b, sizeof a->b) == 0;
}
