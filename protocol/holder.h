/* SPDX-License-Identifier: Apache-2.0 */
/* The key holder of the protocol as a pure machine: messages go in, effects
 * come out (protocol/effect.h). For every slot it makes one key pair and opens
 * one vector of ciphertexts, after the checks that a client makes before it
 * reveals anything. Secret keys live in memory only: a restart loses the slot
 * at hand and nothing else. The table [state][message] heads protocol/holder.c.
 */
#ifndef DAFL_PROTOCOL_HOLDER_H
#define DAFL_PROTOCOL_HOLDER_H

#include "lib/pool.h"
#include "protocol/config.h"
#include "protocol/effect.h"

typedef enum {
    DAFL_HOLDER_WAITING, /* for an invitation */
    DAFL_HOLDER_INVITED,
    DAFL_HOLDER_LISTED,  /* knows who has enrolled */
    DAFL_HOLDER_IDLE,    /* set up; has no key */
    DAFL_HOLDER_KEYED,   /* has given the slot's public key */
    DAFL_HOLDER_OPENING, /* has agreed to open what comes */
    DAFL_HOLDER_OPENED,  /* the key is gone, the answer is kept */
    DAFL_HOLDER_OUT,     /* the run is over */
    DAFL_HOLDER_STATES
} dafl_holder_state;

const char *dafl_holder_state_name(dafl_holder_state state);

typedef struct dafl_holder dafl_holder;

/* All borrowed for the key holder's life. */
typedef struct {
    const dafl_roster *roster;
    const dafl_config *config;
    const dafl_secret_identity *self; /* the key holder of the roster */
    dafl_floor floor; /* its own, as a client's; `plain` is not looked at */
    dafl_pool *pool;
} dafl_holder_params;

/* As dafl_client_new. */
DAFL_CHECK dafl_err dafl_holder_new(dafl_holder **out,
                                    const dafl_holder_params *params,
                                    dafl_fault *fault, dafl_why *why);
/* Wipes every secret. */
void dafl_holder_free(dafl_holder **holder);

/* After a restart, before dafl_holder_start: every journal record in order,
 * then what the vault has. DAFL_ERR_INPUT for one that is malformed. */
DAFL_CHECK dafl_err dafl_holder_recall(dafl_holder *h, dafl_bytes record);
DAFL_CHECK dafl_err dafl_holder_recall_answer(dafl_holder *h, uint32_t slot,
                                              dafl_bytes answer);
DAFL_CHECK dafl_err dafl_holder_start(dafl_holder *h);

/* As of a client. */
DAFL_CHECK dafl_err dafl_holder_hello(dafl_holder *h);
DAFL_CHECK dafl_err dafl_holder_receive(dafl_holder *h, dafl_bytes message);
void dafl_holder_log(dafl_holder *h, const dafl_digest *head);
bool dafl_holder_next(dafl_holder *h, dafl_effect *out);

dafl_holder_state dafl_holder_where(const dafl_holder *h);
dafl_fault dafl_holder_fault(const dafl_holder *h);
const char *dafl_holder_says(const dafl_holder *h);
bool dafl_holder_over(const dafl_holder *h);

#endif
