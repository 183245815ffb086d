/* SPDX-License-Identifier: Apache-2.0 */
/* X25519 key pairs and every key that is derived in the protocol. Each
 * derivation has its own label and takes in everything the two sides must
 * agree on: sides that were told different things derive different keys.
 *
 *   packet key u -> v  KDF(X25519(ek_u, EK_v), "deepafl/share", run_id, u, v,
 *                          EK_u, hk_u, EK_v, hk_v)
 *   pair mask key      KDF(X25519(sk_u, pk_v), "deepafl/pair", ctx2, lo, hi,
 *                          pk_lo, pk_hi)
 *   self mask key      KDF(b_u, "deepafl/self", ctx2, u)
 *   commitment         H("deepafl/cb", b)
 */
#ifndef DAFL_CRYPTO_KEYS_H
#define DAFL_CRYPTO_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "crypto/hash.h"
#include "lib/err.h"

#define DAFL_RUN_ID_BYTES 16

typedef struct {
    uint8_t b[DAFL_RUN_ID_BYTES];
} dafl_run_id;

/* Secret: wipe with dafl_key_wipe. */
typedef struct {
    uint8_t b[DAFL_KEY_BYTES];
} dafl_key;

typedef struct {
    uint8_t b[crypto_scalarmult_curve25519_BYTES];
} dafl_public;

void dafl_key_random(dafl_key *key);
void dafl_key_wipe(dafl_key *key);

/* The public key of a secret scalar. */
void dafl_key_public(dafl_public *out, const dafl_key *sk);

/* Whether a peer's public key may be used at all: not of low order. */
DAFL_CHECK dafl_err dafl_public_check(const dafl_public *pk);

/* What the two ends of a packet are known by. */
typedef struct {
    uint16_t index;
    dafl_public ek;
    dafl_digest hk;
} dafl_end;

/* DAFL_ERR_CRYPTO, nothing written, when the peer's key is of low order. */
DAFL_CHECK dafl_err dafl_key_packet(dafl_key *out, const dafl_key *own,
                                    const dafl_run_id *run,
                                    const dafl_end *from, const dafl_end *to,
                                    bool own_is_from);

/* `own` is the secret key of party u. Symmetric: v derives the same key. */
DAFL_CHECK dafl_err dafl_key_pair(dafl_key *out, const dafl_key *own,
                                  const dafl_digest *ctx2, uint16_t u,
                                  const dafl_public *pk_u, uint16_t v,
                                  const dafl_public *pk_v);

void dafl_key_self(dafl_key *out, const dafl_key *b, const dafl_digest *ctx2,
                   uint16_t u);
void dafl_key_commit(dafl_digest *out, const dafl_key *b);

#endif
