/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/* Every message of the protocol. Integers are little endian; x[n] is n bytes,
 * x[rest] all bytes that are left; n (..) is n times what stands in brackets;
 * members is a set of clients (protocol/members.h), #X how many it has. Lists
 * of clients ascend strictly. Nothing is optional and nothing may follow: a
 * body that decodes encodes to the same bytes. docs/wire.md has the same lines
 * and explains them; a test compares both and reads messages by them.
 *
 *   envelope  = "DAF1", u8 type, run_id[16], u32 slot, u16 sender, u64 seq,
 *               log_head[32], u64 body_len, body[body_len], sig[64]
 *
 * Setup
 *   INVITE    = u32 enrolment, roster[32], config[32]
 *   ENROLL    = ek[32], hk[32], sig[64], u32 n_slots, n_slots (pk[32], cb[32])
 *   PEERS     = u16 n, n (u16 client, ek[32], hk[32], sig[64])
 *   SHARES    = u16 n, u32 packet_len, n (u16 to, packet[packet_len]), sig[64]
 *   SETUP     = u16 n, u32 n_slots, u32 packet_len,
 *               n (u16 client, h_shares[32], sig[64]),
 *               n - 1 (packet[packet_len]), n (n_slots (pk[32], cb[32]))
 *   SETUP_ACK = h_setup[32], members failed
 *
 * Slot
 *   MODEL     = u32 query, u32 rank, u32 key_len, key[key_len], u16 n,
 *               n (u32 query, u8 kind, u16 layer, u32 slot, u64 len, bytes[len])
 *   READY     = ctx[32]
 *   CAST      = members A
 *   UPLOAD    = u64 offset, bytes[rest]
 *   END       = u64 len, dig[32], sig[64]
 *   SURV      = members A, members U3, #U3 (dig[32]), #U3 (sig[64])
 *   SIGN      = sig[64]
 *   CONF      = members Sg, #Sg (sig[64])
 *   REVEAL    = u16 n, n (u16 dealer, u8 kind, share[32])
 *   RESULT    = u16 fault, sum[32]
 *
 * Any time
 *   HELLO     = u32 keys, u32 last_slot, model[32]
 *
 * Between server and key holder, in a slot
 *   ASK       = nothing
 *   KEY       = sig[64], residues[rest]
 *   OPEN      = u32 query, u32 rank, model[32], u64 len, dig[32], u32 surv_len,
 *               SURV[surv_len], CONF[rest]
 *   OPENED    = dig[32]
 */
/* clang-format on */
#ifndef DAFL_PROTOCOL_MESSAGES_H
#define DAFL_PROTOCOL_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

#include "crypto/identity.h"
#include "crypto/keys.h"
#include "crypto/shamir.h"
#include "lib/bytes.h"
#include "lib/codec.h"
#include "protocol/members.h"

typedef enum {
    DAFL_MSG_INVITE = 1,
    DAFL_MSG_ENROLL,
    DAFL_MSG_PEERS,
    DAFL_MSG_SHARES,
    DAFL_MSG_SETUP,
    DAFL_MSG_SETUP_ACK,
    DAFL_MSG_MODEL,
    DAFL_MSG_READY,
    DAFL_MSG_CAST,
    DAFL_MSG_UPLOAD,
    DAFL_MSG_END,
    DAFL_MSG_SURV,
    DAFL_MSG_SIGN,
    DAFL_MSG_CONF,
    DAFL_MSG_REVEAL,
    DAFL_MSG_RESULT,
    DAFL_MSG_HELLO,
    DAFL_MSG_ASK,
    DAFL_MSG_KEY,
    DAFL_MSG_OPEN,
    DAFL_MSG_OPENED,
    DAFL_MSG_COUNT /* one more than the last */
} dafl_msg_type;

/* "INVITE", ..; "?" for a number that is no type. */
const char *dafl_msg_name(unsigned type);

/* Decoders write *m only on success; views in it borrow the body. They fail
 * with DAFL_ERR_PEER. Encoders append to w. */

typedef struct {
    uint32_t enrolment; /* counts re-enrolments within a run, from 0 */
    dafl_digest roster, config;
} dafl_invite;
void dafl_put_invite(dafl_writer *w, const dafl_invite *m);
DAFL_CHECK dafl_err dafl_get_invite(dafl_invite *m, dafl_bytes body);

/* The public keys and commitments of one slot. */
#define DAFL_SLOT_KEYS_BYTES 64
typedef struct {
    dafl_public pk;
    dafl_digest cb;
} dafl_slot_keys;
dafl_slot_keys dafl_slot_keys_at(dafl_bytes list, size_t i);

typedef struct {
    dafl_public ek;
    dafl_digest hk;
    dafl_signature sig;
    uint32_t n_slots;
    dafl_bytes keys; /* n_slots * DAFL_SLOT_KEYS_BYTES */
} dafl_enroll;
void dafl_put_enroll(dafl_writer *w, const dafl_enroll *m);
DAFL_CHECK dafl_err dafl_get_enroll(dafl_enroll *m, dafl_bytes body);

typedef struct {
    uint16_t client;
    dafl_public ek;
    dafl_digest hk;
    dafl_signature sig;
} dafl_peer;
typedef struct {
    uint16_t n;
    dafl_bytes list;
} dafl_peers;
void dafl_put_peers(dafl_writer *w, const dafl_peer *peers, uint16_t n);
DAFL_CHECK dafl_err dafl_get_peers(dafl_peers *m, dafl_bytes body);
dafl_peer dafl_peers_at(const dafl_peers *m, size_t i);

typedef struct {
    uint16_t to;
    dafl_bytes packet;
} dafl_addressed;
typedef struct {
    uint16_t n;
    uint32_t packet_len;
    dafl_bytes list;
    dafl_bytes dealt;   /* the whole body before sig */
    dafl_signature sig; /* of the dealer, see `dealt` in protocol/context.h */
} dafl_shares;
/* Packets of one length. What is written is what the dealer signs; its
 * signature follows by dafl_put_shares_sig. */
void dafl_put_shares(dafl_writer *w, const dafl_addressed *packets, uint16_t n,
                     uint32_t packet_len);
void dafl_put_shares_sig(dafl_writer *w, const dafl_signature *sig);
DAFL_CHECK dafl_err dafl_get_shares(dafl_shares *m, dafl_bytes body);
dafl_addressed dafl_shares_at(const dafl_shares *m, size_t i);

typedef struct {
    uint16_t client;
    dafl_digest h_shares;
    dafl_signature sig;
} dafl_dealer;
typedef struct {
    uint16_t n;
    uint32_t n_slots, packet_len;
    dafl_bytes dealers, packets, keys;
} dafl_setup;
/* m->dealers is taken from `dealers`, the other lists from m. */
void dafl_put_setup(dafl_writer *w, const dafl_setup *m,
                    const dafl_dealer *dealers);
DAFL_CHECK dafl_err dafl_get_setup(dafl_setup *m, dafl_bytes body);
dafl_dealer dafl_setup_dealer(const dafl_setup *m, size_t i);
/* Packet i of n - 1. */
dafl_bytes dafl_setup_packet(const dafl_setup *m, size_t i);
/* All slots' keys of member i. */
dafl_bytes dafl_setup_keys(const dafl_setup *m, size_t i);

typedef struct {
    dafl_digest h_setup;
    dafl_members failed;
} dafl_setup_ack;
void dafl_put_setup_ack(dafl_writer *w, const dafl_setup_ack *m);
DAFL_CHECK dafl_err dafl_get_setup_ack(dafl_setup_ack *m, dafl_bytes body);

typedef struct {
    uint32_t query;
    uint8_t kind;
    uint16_t layer;
    uint32_t slot; /* in which the previous query was answered */
    dafl_bytes bytes;
} dafl_segment;
typedef struct {
    uint32_t query, rank;
    dafl_bytes key; /* the body of KEY */
    uint16_t n;
    dafl_bytes list;
} dafl_model_msg;
/* m->n segments, from `segments`. */
void dafl_put_model(dafl_writer *w, const dafl_model_msg *m,
                    const dafl_segment *segments);
DAFL_CHECK dafl_err dafl_get_model(dafl_model_msg *m, dafl_bytes body);
/* Take the next segment off m->list. */
DAFL_CHECK dafl_err dafl_model_next(dafl_model_msg *m, dafl_segment *out);

void dafl_put_ready(dafl_writer *w, const dafl_digest *ctx);
DAFL_CHECK dafl_err dafl_get_ready(dafl_digest *ctx, dafl_bytes body);

void dafl_put_cast(dafl_writer *w, const dafl_members *a);
DAFL_CHECK dafl_err dafl_get_cast(dafl_members *a, dafl_bytes body);

typedef struct {
    uint64_t offset;
    dafl_bytes chunk;
} dafl_upload;
void dafl_put_upload(dafl_writer *w, const dafl_upload *m);
DAFL_CHECK dafl_err dafl_get_upload(dafl_upload *m, dafl_bytes body);

typedef struct {
    uint64_t len;
    dafl_digest dig;
    dafl_signature sig; /* of the client, see `end` in protocol/context.h */
} dafl_end_msg;
void dafl_put_end(dafl_writer *w, const dafl_end_msg *m);
DAFL_CHECK dafl_err dafl_get_end_msg(dafl_end_msg *m, dafl_bytes body);

typedef struct {
    dafl_members a, u3;
    dafl_bytes digests; /* of U3 in order, */
    dafl_bytes ends;    /* and the signatures of their END */
} dafl_surv;
void dafl_put_surv(dafl_writer *w, const dafl_surv *m);
DAFL_CHECK dafl_err dafl_get_surv(dafl_surv *m, dafl_bytes body);

void dafl_put_sign(dafl_writer *w, const dafl_signature *sig);
DAFL_CHECK dafl_err dafl_get_sign(dafl_signature *sig, dafl_bytes body);

typedef struct {
    dafl_members signers;
    dafl_bytes signatures; /* of the signers in order */
} dafl_conf;
void dafl_put_conf(dafl_writer *w, const dafl_conf *m);
DAFL_CHECK dafl_err dafl_get_conf(dafl_conf *m, dafl_bytes body);

typedef enum { DAFL_REVEAL_B = 1, DAFL_REVEAL_SK = 2 } dafl_reveal_kind;
typedef struct {
    uint16_t dealer;
    dafl_reveal_kind kind;
    dafl_share share;
} dafl_revealed;
typedef struct {
    uint16_t n;
    dafl_bytes list;
} dafl_reveal;
void dafl_put_reveal(dafl_writer *w, const dafl_revealed *items, uint16_t n);
DAFL_CHECK dafl_err dafl_get_reveal(dafl_reveal *m, dafl_bytes body);
/* A copy: wipe it. */
dafl_revealed dafl_reveal_at(const dafl_reveal *m, size_t i);

typedef struct {
    uint16_t fault;
    dafl_digest sum;
} dafl_result;
void dafl_put_result(dafl_writer *w, const dafl_result *m);
DAFL_CHECK dafl_err dafl_get_result(dafl_result *m, dafl_bytes body);

typedef struct {
    uint32_t keys; /* of which enrolment it has them, counted from 1; 0: none */
    uint32_t last_slot;
    dafl_digest model;
} dafl_hello;
void dafl_put_hello(dafl_writer *w, const dafl_hello *m);
DAFL_CHECK dafl_err dafl_get_hello(dafl_hello *m, dafl_bytes body);

DAFL_CHECK dafl_err dafl_get_ask(dafl_bytes body);

typedef struct {
    dafl_signature sig; /* of the key holder, see `key` in protocol/context.h */
    dafl_bytes pk;
} dafl_key_msg;
void dafl_put_key_msg(dafl_writer *w, const dafl_key_msg *m);
DAFL_CHECK dafl_err dafl_get_key_msg(dafl_key_msg *m, dafl_bytes body);

typedef struct {
    uint32_t query, rank;
    dafl_digest model;
    uint64_t len;    /* numbers */
    dafl_digest dig; /* of the ciphertexts that follow */
    dafl_surv surv;
    dafl_conf conf;
} dafl_open_msg;
void dafl_put_open(dafl_writer *w, const dafl_open_msg *m);
DAFL_CHECK dafl_err dafl_get_open(dafl_open_msg *m, dafl_bytes body);

void dafl_put_opened(dafl_writer *w, const dafl_digest *dig);
DAFL_CHECK dafl_err dafl_get_opened(dafl_digest *dig, dafl_bytes body);

#endif
