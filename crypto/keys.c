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

dafl_err dafl_public_check(const dafl_public *pk)
{
    /* Any scalar shows it: the result is zero for all of them or for none. */
    static const dafl_key any = {{8}};
    dafl_key shared;
    dafl_err err = agree(&shared, &any, pk);

    dafl_key_wipe(&shared);
    return err;
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
