/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a key holder, shared by the files holder*.c. */
#ifndef DAFL_PROTOCOL_HOLDER_STATE_H
#define DAFL_PROTOCOL_HOLDER_STATE_H

#include "crypto/he.h"
#include "protocol/context.h"
#include "protocol/holder.h"
#include "protocol/node.h"
#include "protocol/rules.h"

struct dafl_holder {
    dafl_node node;
    dafl_he *encryption;
    dafl_holder_state state;
    dafl_fault fault; /* why OUT; how the run ended */
    const char *says; /* of this fault; NULL: its own text does */
    bool over;        /* the journal's last run is */
    dafl_err err;     /* what our own machine could not do */

    /* the run */
    bool in_run;
    uint32_t enrolment;
    dafl_run_id *runs; /* this one and all before it */
    size_t n_runs;

    /* the setup */
    dafl_members u0, u1;
    dafl_peer *peers; /* [client], from PEERS */
    size_t t;
    dafl_digest h_setup;

    /* the slot */
    uint32_t slot;       /* the newest with a key; 0: none */
    dafl_he_secret *key; /* NULL: lost or destroyed */
    dafl_writer key_msg; /* the body of KEY */
    dafl_digest he;
    uint64_t len; /* numbers to open */
    dafl_digest ctx2;
    dafl_digest sealed; /* the one vector that is opened, if .. */
    bool spent;         /* .. there is one */
    dafl_writer came;   /* of it */
    dafl_writer answer; /* packed words; empty: none */
};

typedef dafl_fault dafl_holder_handler(dafl_holder *h, const dafl_envelope *m);
dafl_holder_handler dafl_holder_on_invite, dafl_holder_on_peers,
    dafl_holder_on_setup;

/* Note a fault of ours and go on as if nothing came. */
dafl_fault dafl_holder_broke(dafl_holder *h, dafl_err err);
/* Destroy the slot's key, forget what was opened. */
void dafl_holder_drop_slot(dafl_holder *h);
/* And on disk: the answers of all slots up to this one. */
void dafl_holder_erase(dafl_holder *h, uint32_t slot);

#endif
