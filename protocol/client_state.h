/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a client, shared by the files client*.c. */
#ifndef DAFL_PROTOCOL_CLIENT_STATE_H
#define DAFL_PROTOCOL_CLIENT_STATE_H

#include "crypto/he.h"
#include "protocol/client.h"
#include "protocol/context.h"
#include "protocol/node.h"
#include "protocol/rules.h"

/* A slot's record, in memory and in the vault: sk[32], b[32], then for every
 * member of U0 in order its shares of b[32] and sk[32] (zeros for ourselves and
 * for packets that did not open). */
#define DAFL_OWN_BYTES 64
#define DAFL_HELD_BYTES 64

/* A cohort whose statement this client signed. */
typedef struct {
    uint32_t slot;
    dafl_members u3;
} dafl_witnessed;

/* What uploads were made of, and in whose company: digests of the rows, of what
 * they are first multiplied with, and of the members of our cell. */
typedef struct {
    dafl_digest rows, basis, cell;
} dafl_given;

struct dafl_client {
    dafl_node node;
    const dafl_client_method *method;
    void *method_self;
    dafl_pool *pool;
    dafl_he *encryption; /* NULL: the mode has none */
    dafl_client_state state;
    dafl_fault fault; /* why OUT; how the run ended */
    const char *says; /* of this fault; NULL: its own text does */
    bool over;        /* the journal's last run is */
    dafl_err err;     /* what our own machine could not do */

    /* the run */
    bool in_run;
    uint32_t enrolment;
    dafl_run_id *runs; /* this one and all before it */
    size_t n_runs;
    bool foreign;     /* the journal's last run has another roster or config */
    dafl_given given; /* in this run */
    dafl_given *past; /* in all runs in which something was uploaded */
    size_t n_past;

    /* the setup */
    dafl_key *ek;        /* secret memory; NULL after SETUP */
    uint8_t *secrets;    /* secret memory: a record for each slot */
    size_t record_bytes; /* of one */
    dafl_members u0, u1;
    dafl_peer *peers;                /* [client], from PEERS */
    dafl_slot_keys *keys;            /* [client * slots + i], from SETUP */
    dafl_writer enroll, shares, ack; /* bodies, for sending again */
    dafl_digest own_shares;          /* H of what we dealt */
    size_t t;
    dafl_digest h_setup;

    /* the model */
    uint32_t n_segments, room_segments;
    uint32_t *answered; /* [n]: the slot in which question n - 1 was answered */
    dafl_digest model;

    /* the slot */
    uint32_t slot;   /* the newest that was opened; 0: none */
    uint32_t closed; /* all up to this one are */
    dafl_question question;
    dafl_shape shape;
    dafl_digest ctx, ctx2, dig, stmt;
    dafl_members a, u3;
    bool uploaded;          /* dig is that of `slot` */
    uint32_t resulted;      /* the newest slot whose RESULT was told */
    int64_t *x;             /* bulk memory, until it is masked */
    dafl_writer y;          /* masked and packed or encrypted, until SURV */
    dafl_he_public *he_key; /* to encrypt with, else NULL */
    dafl_digest he;         /* of it, else zeros */

    /* what the journal says of the newest slot with an upload, a signature */
    uint32_t journal_upload, journal_sign;
    dafl_digest journal_ctx2, journal_dig, journal_stmt;
    size_t n_witnessed, room_witnessed;
    dafl_witnessed *witnessed;
};

/* Handlers return the fault that the message deserves. Where our own machine
 * fails they set c->err. */
typedef dafl_fault dafl_client_handler(dafl_client *c, const dafl_envelope *m);

dafl_client_handler dafl_client_on_invite, dafl_client_on_peers,
    dafl_client_on_setup, dafl_client_on_model, dafl_client_on_cast,
    dafl_client_on_surv, dafl_client_on_conf, dafl_client_on_result;

/* Begin with a run: remember it and forget all that belonged to another. */
DAFL_CHECK dafl_err dafl_client_join(dafl_client *c, const dafl_run_id *run);
/* Whether a run is one of those it has been in. */
bool dafl_client_knows(const dafl_client *c, const dafl_run_id *run);

/* Before ENROLL: whether the data may be given in this run (they are those of
 * the enrolment before, if it was in the same run). DAFL_E_DATA_CHANGED,
 * DAFL_E_CELL_CHANGED; a warning is told. */
dafl_fault dafl_client_look_back(dafl_client *c, bool same_run);
/* In a slot: whether they are still the same. DAFL_E_DATA_CHANGED. */
dafl_fault dafl_client_look_again(dafl_client *c);
/* They are uploaded. */
DAFL_CHECK dafl_err dafl_client_give(dafl_client *c);

/* Note a fault of ours and go on as if nothing came. */
dafl_fault dafl_client_broke(dafl_client *c, dafl_err err);

/* Where the record of a slot of this enrolment is. */
uint8_t *dafl_client_record(const dafl_client *c, uint32_t slot);
/* The place of a client's shares in it. */
size_t dafl_client_held(const dafl_client *c, size_t client);
/* Room for the records of U0, zeroed. */
DAFL_CHECK dafl_err dafl_client_make_records(dafl_client *c);
/* Spread a list of the keys of U1 (in order, all slots of each) out. */
DAFL_CHECK dafl_err dafl_client_keep_keys(dafl_client *c,
                                          const dafl_members *u1,
                                          dafl_bytes keys);
/* Forget the slot in hand, and wipe every secret of slots <= slot. */
void dafl_client_close(dafl_client *c, uint32_t slot);
/* Release what a setup made; wipes. */
void dafl_client_drop_setup(dafl_client *c);
/* Remember a cohort. */
DAFL_CHECK dafl_err dafl_client_witness(dafl_client *c, uint32_t slot,
                                        const dafl_members *u3);

#endif
