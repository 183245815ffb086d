/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/* What the keys of a slot are bound to. Each party computes these digests from
 * the bytes it received itself, so a server that told two clients different
 * models, rosters, cohorts or keys gets masks that do not cancel and signatures
 * on different statements. H: crypto/hash.h; docs/wire.md says who signs what.
 *
 *   hk       = H("deepafl/hk", all pk, cb of a client)
 *   enrol    = H("deepafl/enroll", run_id, enrolment, u, EK, hk)
 *   h_shares = H("deepafl/shares", SHARES of u before its signature)
 *   dealt    = H("deepafl/dealt", run_id, enrolment, u, h_shares)
 *   h_setup  = H("deepafl/setup", run_id, roster, config, t,
 *                (u, EK, hk, dealt) of each member)
 *   M_q      = H("deepafl/model", M_q-1, query, kind, layer, slot, bytes)
 *   he       = H("deepafl/he", residues of the slot's public key)
 *   key      = H("deepafl/key", run_id, h_setup, slot, he)
 *   ctx      = H("deepafl/ctx", h_setup, slot, query, rank, M, len, w, he)
 *   ctx2     = H("deepafl/cast", ctx, A)
 *   dig      = H("deepafl/up", ctx2, u, upload)
 *   end      = H("deepafl/end", ctx2, u, dig)
 *   stmt     = H("deepafl/stmt", ctx2, U3, digests)
 *   sealed   = H("deepafl/sealed", ctx2, ciphertexts)
 *   opened   = H("deepafl/opened", sealed, words)
 */
/* clang-format on */
#ifndef DAFL_PROTOCOL_CONTEXT_H
#define DAFL_PROTOCOL_CONTEXT_H

#include "protocol/messages.h"

void dafl_context_keys(dafl_digest *hk, dafl_bytes keys);
/* The number of the enrolment keeps keys of an earlier one out, some of which
 * were revealed in their slots. */
void dafl_context_enroll(dafl_digest *out, const dafl_run_id *run,
                         uint32_t enrolment, uint16_t u, const dafl_public *ek,
                         const dafl_digest *hk);
/* The server passes the first on; every holder computes the second from it. */
void dafl_context_shares(dafl_digest *h_shares, dafl_bytes dealt_part);
void dafl_context_dealt(dafl_digest *out, const dafl_run_id *run,
                        uint32_t enrolment, uint16_t u,
                        const dafl_digest *h_shares);

/* One member of the setup, in ascending order of clients. */
typedef struct {
    uint16_t client;
    dafl_public ek;
    dafl_digest hk, dealt;
} dafl_setup_member;
void dafl_context_setup(dafl_digest *h_setup, const dafl_run_id *run,
                        const dafl_digest *roster, const dafl_digest *config,
                        uint16_t t, const dafl_setup_member *members, size_t n);

/* Fold one segment into the model's digest. */
void dafl_context_model(dafl_digest *model, const dafl_segment *segment);

/* The digest of a slot's encryption key, and what its holder signs. */
void dafl_context_he(dafl_digest *he, dafl_bytes pk);
void dafl_context_key(dafl_digest *key, const dafl_run_id *run,
                      const dafl_digest *h_setup, uint32_t slot,
                      const dafl_digest *he);

/* What a client answers in a slot. Two variants (rank) of one question can have
 * the same length; one client's answer to another would stand out of a sum. */
typedef struct {
    uint32_t slot, query, rank;
    dafl_digest model;
    uint64_t len;
    uint8_t w;
    dafl_digest he; /* zeros without encryption */
} dafl_slot_task;
void dafl_context_slot(dafl_digest *ctx, const dafl_digest *h_setup,
                       const dafl_slot_task *task);
void dafl_context_cast(dafl_digest *ctx2, const dafl_digest *ctx,
                       const dafl_members *a);

/* The digest of an upload that comes in chunks: begin, pieces, end. */
void dafl_context_upload_begin(dafl_hash *h, const dafl_digest *ctx2,
                               uint16_t u, size_t len);
void dafl_context_upload(dafl_digest *dig, const dafl_digest *ctx2, uint16_t u,
                         dafl_bytes upload);

/* What a client says with its upload: this is mine, in the cohort that I was
 * cast in. */
void dafl_context_end(dafl_digest *end, const dafl_digest *ctx2, uint16_t u,
                      const dafl_digest *dig);

void dafl_context_statement(dafl_digest *stmt, const dafl_digest *ctx2,
                            const dafl_members *u3, dafl_bytes digests);

/* What a key holder is asked to open, and what it has opened it to. */
void dafl_context_sealed(dafl_digest *sealed, const dafl_digest *ctx2,
                         dafl_bytes ciphertexts);
void dafl_context_opened(dafl_digest *opened, const dafl_digest *sealed,
                         dafl_bytes words);

#endif
