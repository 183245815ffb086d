/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/keys.h"

#include <sodium.h>

void dafl_key_random(dafl_key *key)
{
    randombytes_buf(key->b, sizeof key->b);
}

void dafl_key_wipe(dafl_key *key)
{
    sodium_memzero(key, sizeof *key);
}

void dafl_key_public(dafl_public *out, const dafl_key *sk)
{
    (void)crypto_scalarmult_curve25519_base(out->b, sk->b);
}

/* libsodium refuses points of low order. */
static dafl_err agree(dafl_key *out, const dafl_key *sk, const dafl_public *pk)
{
    return crypto_scalarmult_curve25519(out->b, sk->b, pk->b) == 0
               ? DAFL_OK
               : DAFL_ERR_CRYPTO;
}

/* The u below 2^255 of all points of order 1, 2, 4 and 8 on the curve and its
 * twist. What libsodium refuses in a product, known without computing one: a
 * setup has thousands of keys to look at. */
static const uint8_t low_order[][32] = {
    {0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
     0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
     0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00},
    {0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
     0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
     0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00},
    {0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3,
     0xfa, 0xf1, 0x9f, 0xc4, 0x6a, 0xda, 0x09, 0x8d, 0xeb, 0x9c, 0x32,
     0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49, 0xb8, 0x00},
    {0x5f, 0x9c, 0x95, 0xbc, 0xa3, 0x50, 0x8c, 0x24, 0xb1, 0xd0, 0xb1,
     0x55, 0x9c, 0x83, 0xef, 0x5b, 0x04, 0x44, 0x5c, 0xc4, 0x58, 0x1c,
     0x8e, 0x86, 0xd8, 0x22, 0x4e, 0xdd, 0xd0, 0x9f, 0x11, 0x57},
    {0xec, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
     0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
     0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
    {0xed, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
     0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
     0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
    {0xee, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
     0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
     0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}};

dafl_err dafl_public_check(const dafl_public *pk)
{
    dafl_public u = *pk;

    u.b[31] &= 0x7f; /* the curve ignores the last bit */
    for (size_t i = 0; i < sizeof low_order / sizeof low_order[0]; i++)
        if (sodium_memcmp(u.b, low_order[i], sizeof u.b) == 0)
            return DAFL_ERR_CRYPTO;
    return DAFL_OK;
}

/* Start a derivation from the secret that `own` and `peer` share. */
static dafl_err begin(dafl_hash *h, const dafl_key *own,
                      const dafl_public *peer, const char *label)
{
    dafl_key shared;
    dafl_err err = agree(&shared, own, peer);

    if (err == DAFL_OK)
        dafl_kdf_init(h, shared.b, label);
    dafl_key_wipe(&shared);
    return err;
}

static void finish(dafl_hash *h, dafl_key *out)
{
    dafl_digest d;

    dafl_hash_end(h, &d);
    for (size_t i = 0; i < sizeof out->b; i++)
        out->b[i] = d.b[i];
    sodium_memzero(&d, sizeof d);
}

dafl_err dafl_key_packet(dafl_key *out, const dafl_key *own,
                         const dafl_run_id *run, const dafl_end *from,
                         const dafl_end *to, bool own_is_from)
{
    dafl_hash h;

    DAFL_TRY(
        begin(&h, own, own_is_from ? &to->ek : &from->ek, "deepafl/share"));
    dafl_hash_part(&h, run->b, sizeof run->b);
    dafl_hash_u16(&h, from->index);
    dafl_hash_u16(&h, to->index);
    dafl_hash_part(&h, from->ek.b, sizeof from->ek.b);
    dafl_hash_digest(&h, &from->hk);
    dafl_hash_part(&h, to->ek.b, sizeof to->ek.b);
    dafl_hash_digest(&h, &to->hk);
    finish(&h, out);
    return DAFL_OK;
}

dafl_err dafl_key_pair(dafl_key *out, const dafl_key *own,
                       const dafl_digest *ctx2, uint16_t u,
                       const dafl_public *pk_u, uint16_t v,
                       const dafl_public *pk_v)
{
    const dafl_public *pk_lo = u < v ? pk_u : pk_v;
    const dafl_public *pk_hi = u < v ? pk_v : pk_u;
    dafl_hash h;

    DAFL_TRY(begin(&h, own, pk_v, "deepafl/pair"));
    dafl_hash_digest(&h, ctx2);
    dafl_hash_u16(&h, u < v ? u : v);
    dafl_hash_u16(&h, u < v ? v : u);
    dafl_hash_part(&h, pk_lo->b, sizeof pk_lo->b);
    dafl_hash_part(&h, pk_hi->b, sizeof pk_hi->b);
    finish(&h, out);
    return DAFL_OK;
}

void dafl_key_self(dafl_key *out, const dafl_key *b, const dafl_digest *ctx2,
                   uint16_t u)
{
    dafl_hash h;

    dafl_kdf_init(&h, b->b, "deepafl/self");
    dafl_hash_digest(&h, ctx2);
    dafl_hash_u16(&h, u);
    finish(&h, out);
}

void dafl_key_commit(dafl_digest *out, const dafl_key *b)
{
    dafl_hash_one(out, "deepafl/cb", (dafl_bytes){b->b, sizeof b->b});
}
