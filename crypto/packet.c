/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/packet.h"

#include <string.h>

#include <sodium.h>

_Static_assert(DAFL_PACKET_NONCE_BYTES ==
                   crypto_aead_xchacha20poly1305_ietf_NPUBBYTES,
               "the nonce of XChaCha20");
_Static_assert(DAFL_PACKET_OVERHEAD - DAFL_PACKET_NONCE_BYTES ==
                   crypto_aead_xchacha20poly1305_ietf_ABYTES,
               "the tag of Poly1305");

#define AD_BYTES (DAFL_RUN_ID_BYTES + 4)

/* run_id || u16 from || u16 to. */
static void associate(uint8_t ad[AD_BYTES], const dafl_run_id *run,
                      uint16_t from, uint16_t to)
{
    memcpy(ad, run->b, sizeof run->b);
    ad[DAFL_RUN_ID_BYTES] = (uint8_t)from;
    ad[DAFL_RUN_ID_BYTES + 1] = (uint8_t)(from >> 8);
    ad[DAFL_RUN_ID_BYTES + 2] = (uint8_t)to;
    ad[DAFL_RUN_ID_BYTES + 3] = (uint8_t)(to >> 8);
}

void dafl_packet_seal_derand(uint8_t *out, dafl_bytes plain,
                             const dafl_key *key, const dafl_run_id *run,
                             uint16_t from, uint16_t to,
                             const uint8_t nonce[DAFL_PACKET_NONCE_BYTES])
{
    uint8_t ad[AD_BYTES];

    associate(ad, run, from, to);
    memcpy(out, nonce, DAFL_PACKET_NONCE_BYTES);
    (void)crypto_aead_xchacha20poly1305_ietf_encrypt(
        out + DAFL_PACKET_NONCE_BYTES, NULL, plain.ptr, plain.len, ad,
        sizeof ad, NULL, nonce, key->b);
}

void dafl_packet_seal(uint8_t *out, dafl_bytes plain, const dafl_key *key,
                      const dafl_run_id *run, uint16_t from, uint16_t to)
{
    uint8_t nonce[DAFL_PACKET_NONCE_BYTES];

    randombytes_buf(nonce, sizeof nonce);
    dafl_packet_seal_derand(out, plain, key, run, from, to, nonce);
}

dafl_err dafl_packet_open(uint8_t *out, size_t len, dafl_bytes sealed,
                          const dafl_key *key, const dafl_run_id *run,
                          uint16_t from, uint16_t to)
{
    uint8_t ad[AD_BYTES];

    if (sealed.len < DAFL_PACKET_OVERHEAD ||
        sealed.len - DAFL_PACKET_OVERHEAD != len)
        return DAFL_ERR_PEER;
    associate(ad, run, from, to);
    if (crypto_aead_xchacha20poly1305_ietf_decrypt(
            out, NULL, NULL, sealed.ptr + DAFL_PACKET_NONCE_BYTES,
            sealed.len - DAFL_PACKET_NONCE_BYTES, ad, sizeof ad, sealed.ptr,
            key->b) != 0)
        return DAFL_ERR_CRYPTO;
    return DAFL_OK;
}
