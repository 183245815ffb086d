/* SPDX-License-Identifier: Apache-2.0 */
/* Share packets: what a dealer sends to one holder at setup, its shares of all
 * slots in one sealed piece. XChaCha20-Poly1305 under the packet key of that
 * direction, with (run, from, to) authenticated beside it. */
#ifndef DAFL_CRYPTO_PACKET_H
#define DAFL_CRYPTO_PACKET_H

#include <stddef.h>
#include <stdint.h>

#include "crypto/keys.h"
#include "lib/bytes.h"
#include "lib/err.h"

#define DAFL_PACKET_NONCE_BYTES 24
/* What sealing adds: the nonce in front, the tag behind. */
#define DAFL_PACKET_OVERHEAD (DAFL_PACKET_NONCE_BYTES + 16)

/* out: plain.len + DAFL_PACKET_OVERHEAD bytes. */
void dafl_packet_seal(uint8_t *out, dafl_bytes plain, const dafl_key *key,
                      const dafl_run_id *run, uint16_t from, uint16_t to);
void dafl_packet_seal_derand(uint8_t *out, dafl_bytes plain,
                             const dafl_key *key, const dafl_run_id *run,
                             uint16_t from, uint16_t to,
                             const uint8_t nonce[DAFL_PACKET_NONCE_BYTES]);

/* out: sealed.len - DAFL_PACKET_OVERHEAD bytes, which must equal len.
 * DAFL_ERR_PEER for another length; DAFL_ERR_CRYPTO, `out` zeroed, when the
 * packet was not sealed by `from` for `to` in this run. */
DAFL_CHECK dafl_err dafl_packet_open(uint8_t *out, size_t len,
                                     dafl_bytes sealed, const dafl_key *key,
                                     const dafl_run_id *run, uint16_t from,
                                     uint16_t to);

#endif
