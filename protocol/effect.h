/* SPDX-License-Identifier: Apache-2.0 */
/* What a machine wants done, in order. Whoever drives it carries the effects
 * out one by one, each finished (a record durable, a secret on disk) before the
 * next is begun: what must be journaled before a message stands before it. */
#ifndef DAFL_PROTOCOL_EFFECT_H
#define DAFL_PROTOCOL_EFFECT_H

#include "crypto/hash.h"
#include "crypto/keys.h"
#include "lib/codec.h"
#include "protocol/fault.h"
#include "protocol/members.h"

typedef enum {
    DAFL_DO_SEND,   /* bytes: an envelope. To the server; from the server to
                       every client in `to`, or to the key holder */
    DAFL_DO_APPEND, /* bytes: a record for the end of the journal */
    DAFL_DO_KEEP,  /* bytes, secret: overwrite the record of `slot` in the vault
                    */
    DAFL_DO_ERASE, /* overwrite the vault's records of all slots <= `slot` */
    DAFL_DO_TELL,  /* event: for the audit log and whoever watches; bytes: what
                      it says beyond dafl_event */
} dafl_effect_kind;

/* The first byte of a journal record. */
typedef enum {
    /* everybody's: */
    DAFL_RECORD_BOOT = 1, /* u32 boot */
    /* a client's: */
    DAFL_RECORD_ENROLLED, /* run[16], u32 enrolment, roster[32], config[32],
                             rows[32], basis[32], cell[32] */
    DAFL_RECORD_SETUP,    /* run[16], u32 enrolment, u16 t, h_setup[32],
                             members U0, members U1, members failed, #U1
                             (n_slots (pk, cb)) */
    DAFL_RECORD_UPLOAD,   /* u32 slot, ctx2[32], dig[32] */
    DAFL_RECORD_SIGN,     /* u32 slot, stmt[32], members U3 */
    DAFL_RECORD_CLOSED,   /* u32 slot */
    /* the server's: */
    DAFL_RECORD_INVITED, /* run[16], u32 enrolment, roster[32], config[32] */
    DAFL_RECORD_STANDS,  /* as SETUP, without `failed` */
    DAFL_RECORD_SLOT,    /* u32 slot, u32 question, u32 rank */
    DAFL_RECORD_SUM,     /* u32 slot, u32 question, u32 rank, members U3,
                            members signers, words */
    DAFL_RECORD_BARRED,  /* members: cells that are left out from now on */
    DAFL_RECORD_HEARD,   /* u16 party, u32 boot: the highest of its lives */
    /* a client's and a key holder's: */
    DAFL_RECORD_OVER, /* u16 fault: how the server says that the run ended */
    /* the key holder's: */
    DAFL_RECORD_HOLDS, /* run[16], u32 enrolment, roster[32], config[32], u16 t,
                          h_setup[32], members U0, members U1 */
    DAFL_RECORD_KEY,   /* u32 slot: has a key, in memory */
    DAFL_RECORD_OPEN,  /* u32 slot, sealed[32]: its one opening */
} dafl_record_kind;

/* Whatever is told stands before the message that makes it known to others, so
 * that a log knows at least as much as its party's peers do. */
typedef enum {
    DAFL_EVENT_START,  /* number: boot; bytes: roster[32], config[32], name */
    DAFL_EVENT_INVITE, /* number: enrolment */
    DAFL_EVENT_ENROLL, /* number: enrolment, digest: hk */
    DAFL_EVENT_SETUP,  /* number: enrolment, set: U1, digest: h_setup; bytes:
                          u16 t, members U0 */
    DAFL_EVENT_MODEL,  /* number: question, digest: M, set: who is to answer
                          (the server's); bytes: u32 rank, u64 len, u8 w,
                          h_setup[32], he[32] */
    DAFL_EVENT_READY,  /* digest: ctx */
    DAFL_EVENT_CAST,   /* set: A, digest: ctx2 */
    DAFL_EVENT_UPLOAD, /* digest: dig */
    DAFL_EVENT_SURV,   /* set: U3, digest: stmt; bytes: the digests of U3 */
    DAFL_EVENT_SIGN,   /* set: U3, digest: stmt; bytes: sig[64], the digests */
    DAFL_EVENT_CONF,   /* set: signers, digest: stmt, fault: why it was
                          refused; bytes: their signatures */
    DAFL_EVENT_REVEAL, /* set: whose shares of sk (not b) were given */
    DAFL_EVENT_RESULT, /* fault, digest: H(sum), number: question; set: U3 (the
                          server's) */
    DAFL_EVENT_ERROR,  /* fault, by or because of `peer`; of a wrong share,
                          number: whose it is; of a sum that cannot be true,
                          set: the cell without which it can */
    DAFL_EVENT_DONE,   /* the method has no more questions, or a fault */
    DAFL_EVENT_PEER_HEAD, /* digest: the head of the peer's log; bytes: the
                             number of the message that says so, u64 seq */
    DAFL_EVENT_KEY,  /* the key holder's: digest: he, of the slot's new key */
    DAFL_EVENT_OPEN, /* digest: sealed; set: U3. The server asks for it, the key
                        holder has opened it */
    DAFL_EVENT_ERRORS, /* so many (number) errors of this fault and peer that
                          have no line of their own, see dafl_node_recap */
    DAFL_EVENTS
} dafl_event_kind;

#define DAFL_NOBODY 65535
#define DAFL_NO_QUESTION UINT32_MAX

typedef struct {
    dafl_event_kind kind;
    dafl_run_id run; /* the party's own; zeros before its first */
    uint32_t slot, number;
    uint16_t peer; /* DAFL_NOBODY: none */
    dafl_fault fault;
    const char *says; /* of the fault, in this case; NULL: its own text does */
    dafl_members set;
    dafl_digest digest;
} dafl_event;

/* "start", "invite", .. */
const char *dafl_event_name(dafl_event_kind kind);

typedef struct {
    dafl_effect_kind kind;
    uint32_t slot;
    dafl_members to;
    bool to_holder;   /* the server's, instead of `to` */
    dafl_bytes bytes; /* valid until the next effect is taken */
    dafl_event event;
} dafl_effect;

/* The queue inside a machine. Starts as {0}. */
typedef struct dafl_effects {
    struct dafl_effect_node *head, *tail, *taken;
    bool failed; /* memory was short: something is missing */
} dafl_effects;

/* Take over what was written and clear *bytes (NULL: no bytes). */
void dafl_effects_add(dafl_effects *q, const dafl_effect *effect,
                      dafl_writer *bytes);
bool dafl_effects_next(dafl_effects *q, dafl_effect *out);
/* Wipe and release everything. */
void dafl_effects_drop(dafl_effects *q);

#endif
