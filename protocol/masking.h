/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of one slot. A client of the cohort A sends
 *
 *   y_u = x_u + PRG(self_u) + sum over v in A, v != u of +-PRG(pair_uv)
 *
 * mod 2^w, + when u < v. The server adds the y of U3, a subset of A, and takes
 * off what does not cancel: the self masks of U3, and the pair masks between
 * U3 and A \ U3, which the secret keys of A \ U3 give. */
#ifndef DAFL_PROTOCOL_MASKING_H
#define DAFL_PROTOCOL_MASKING_H

#include "crypto/mask.h"
#include "protocol/members.h"

/* The public keys of all clients for the slot; [client], those outside A are
 * not read. */
typedef struct {
    const dafl_digest *ctx2;
    const dafl_members *a;
    const dafl_public *pk;
    unsigned w;
} dafl_masking;

/* Add all masks of client u to acc[0..n). sk and b are its secrets of the slot.
 * DAFL_ERR_CRYPTO for an unusable public key in A, DAFL_ERR_ARG when u is not
 * in A; acc is untouched then. */
DAFL_CHECK dafl_err dafl_masking_own(uint64_t *acc, size_t n,
                                     const dafl_masking *m, uint16_t u,
                                     const dafl_key *sk, const dafl_key *b,
                                     dafl_pool *pool);

/* Take off what remains in the sum over u3: b[u] for u in U3, sk[v] for v in
 * A \ U3 ([client], others are not read). DAFL_ERR_ARG unless U3 is within A.
 */
DAFL_CHECK dafl_err dafl_masking_open(uint64_t *acc, size_t n,
                                      const dafl_masking *m,
                                      const dafl_members *u3, const dafl_key *b,
                                      const dafl_key *sk, dafl_pool *pool);

#endif
