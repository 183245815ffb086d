/* SPDX-License-Identifier: Apache-2.0 */
/* What client and server machines have in common: who they are, the envelope
 * they speak in, and the queue of effects. Internal to protocol/. */
#ifndef DAFL_PROTOCOL_NODE_H
#define DAFL_PROTOCOL_NODE_H

#include "protocol/config.h"
#include "protocol/effect.h"
#include "protocol/envelope.h"
#include "protocol/messages.h"

/* Nobody can fill a party's log from outside: of one peer it gets so many lines
 * for errors of one kind, and for heads of the peer's log, from one recap to
 * the next. What comes after them is counted. */
#define DAFL_ERRORS_TOLD 16
#define DAFL_HEADS_TOLD 32

/* Lives of one party in a run that the server hears of: each is a record of its
 * journal. */
#define DAFL_LIVES_MAX 4096

/* The last head of a peer's log, and what said so. */
typedef struct {
    dafl_digest digest;
    uint64_t seq;
    uint32_t slot, seen; /* new ones since the last recap */
} dafl_peer_head;

typedef struct {
    const dafl_roster *roster;
    const dafl_config *config;
    const dafl_secret_identity *self;
    uint16_t index;
    dafl_digest roster_hash, config_hash;
    dafl_run_id run;
    uint32_t boot, sent;
    uint64_t heard[DAFL_PARTIES_MAX]; /* the last seq of each party */
    uint32_t lives[DAFL_PARTIES_MAX]; /* the server's: records of them */
    dafl_digest log_head;             /* of our audit log; zeros: none */
    dafl_peer_head heads[DAFL_PARTIES_MAX];
    /* Since the last recap; those of nobody in the last row. */
    uint32_t errors[DAFL_PARTIES_MAX + 1][DAFL_FAULT_COUNT];
    const char *says; /* of the next error, a literal; NULL: nothing more */
    dafl_effects effects;
} dafl_node;

/* Find ourselves in the roster, judge roster and config, hash both. */
DAFL_CHECK dafl_err dafl_node_init(dafl_node *n, const dafl_roster *roster,
                                   const dafl_config *config,
                                   const dafl_secret_identity *self,
                                   dafl_role role, dafl_fault *fault,
                                   dafl_why *why);
void dafl_node_drop(dafl_node *n);

/* One more boot: journal it. Numbers of messages go on above all earlier ones.
 */
void dafl_node_boot(dafl_node *n);

/* Sign and queue; takes over the body. `to` is NULL for the server. */
void dafl_node_send(dafl_node *n, dafl_msg_type type, uint32_t slot,
                    const dafl_members *to, dafl_writer *body);
/* The same, from the server to the key holder. */
void dafl_node_send_holder(dafl_node *n, dafl_msg_type type, uint32_t slot,
                           dafl_writer *body);
/* UPLOADs of all these bytes, in chunks. `holder`: from the server. */
void dafl_node_send_chunks(dafl_node *n, uint32_t slot, dafl_bytes bytes,
                           bool holder);
/* Take a chunk that comes next, or first; at most `most` bytes in all.
 * DAFL_E_FORMAT for another one; *err is DAFL_ERR_NOMEM when memory is short.
 */
dafl_fault dafl_node_take_chunk(dafl_writer *w, dafl_bytes body, size_t most,
                                dafl_err *err);
/* Queue a journal record; the writer starts with its kind. */
void dafl_node_append(dafl_node *n, dafl_writer *record);
/* `more` (NULL: nothing) is taken over; see dafl_event_kind. */
void dafl_node_tell(dafl_node *n, const dafl_event *event, dafl_writer *more);
/* The beginning of this life. */
void dafl_node_tell_start(dafl_node *n);
/* An event of the kind MODEL. */
void dafl_node_tell_model(dafl_node *n, const dafl_event *event, uint32_t rank,
                          uint64_t len, const dafl_digest *h_setup,
                          const dafl_digest *he);
/* An event of the kind ERROR, unless there were too many of this peer and fault
 * since the last recap. */
void dafl_node_error(dafl_node *n, uint32_t slot, uint16_t peer,
                     dafl_fault fault);
/* A slot or more is over: tell how many errors had no line of their own, and
 * the last head of whom more were seen than told, and count anew. */
void dafl_node_recap(dafl_node *n, uint32_t slot);

/* Split and check a message: caps, sender, run, order, signature, in this
 * order. The run of an INVITE or a HELLO, which may come from outside of it, is
 * left to the receiver. A head of the sender's log that is new is told. At the
 * server, a HELLO that its sender has signed and that is no newer than what it
 * said before is DAFL_E_STATE_LOST, and a new life of its sender is journalled;
 * one too many is DAFL_E_STATE. */
dafl_fault dafl_node_open(dafl_node *n, dafl_envelope *m, dafl_bytes message);

/* The server's: journal that a party lives for this (boot) time. False when it
 * has lived too often. */
bool dafl_node_lives(dafl_node *n, uint16_t party, uint32_t boot);

/* RESULT of slot 0 says that the run is over, or, with a number in it, that the
 * server has heard so much from us already; then whether that is more than we
 * know to have sent: our disk is an old copy. */
bool dafl_node_is_doubted(const dafl_result *result);
bool dafl_node_rolled_back(dafl_node *n, const dafl_result *result);

/* DAFL_E_BAD_KEY unless none is of low order and none stands twice. Sorts the
 * keys. */
dafl_fault dafl_node_check_keys(dafl_public *keys, size_t n);
/* Whether a key is among those that have been sorted so. */
bool dafl_node_has_key(const dafl_public *sorted, size_t n,
                       const dafl_public *key);

/* Re-enrolments of one run; keeps slot numbers within 32 bits. */
#define DAFL_ENROLMENTS_MAX 65536

/* Slots are numbered from 1 over the whole run; an enrolment prepares
 * config->slots of them. */
uint32_t dafl_node_first_slot(const dafl_node *n, uint32_t enrolment);
uint32_t dafl_node_last_slot(const dafl_node *n, uint32_t enrolment);

#endif
