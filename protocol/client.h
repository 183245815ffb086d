/* SPDX-License-Identifier: Apache-2.0 */
/* A client of the protocol as a pure machine: messages go in, effects come out
 * (protocol/effect.h). It has no clock and needs none. The table [state]
 * [message] heads protocol/client.c. */
#ifndef DAFL_PROTOCOL_CLIENT_H
#define DAFL_PROTOCOL_CLIENT_H

#include "lib/pool.h"
#include "protocol/config.h"
#include "protocol/effect.h"
#include "protocol/method.h"

typedef enum {
    DAFL_CLIENT_WAITING,  /* for an invitation */
    DAFL_CLIENT_ENROLLED, /* keys sent */
    DAFL_CLIENT_DEALT,    /* shares sent */
    DAFL_CLIENT_IDLE,     /* set up, between slots */
    DAFL_CLIENT_MODELED,  /* knows the question, keeps its own answer back */
    DAFL_CLIENT_READY,    /* has computed its answer */
    DAFL_CLIENT_CAST,     /* knows the cohort; a helper, or about to upload */
    DAFL_CLIENT_UPLOADED,
    DAFL_CLIENT_SIGNED,
    DAFL_CLIENT_REVEALED,
    DAFL_CLIENT_CLOSED, /* refused something: silent until the next slot */
    DAFL_CLIENT_OUT,    /* the run is over for this client */
    DAFL_CLIENT_STATES
} dafl_client_state;

const char *dafl_client_state_name(dafl_client_state state);

typedef struct dafl_client dafl_client;

/* All borrowed for the client's life, the config's method_params too. */
typedef struct {
    const dafl_roster *roster;
    const dafl_config *config;
    const dafl_secret_identity *self; /* a client of the roster */
    dafl_floor floor;
    const dafl_client_method *method;
    void *method_self;
    dafl_pool *pool; /* NULL: one thread */
} dafl_client_params;

/* DAFL_ERR_INPUT with the reason when the roster does not know this client or
 * the config breaks a rule or this client's floors; *fault (unless NULL) is
 * then E_POLICY or E_PARAMS. */
DAFL_CHECK dafl_err dafl_client_new(dafl_client **out,
                                    const dafl_client_params *params,
                                    dafl_fault *fault, dafl_why *why);
/* Wipes every secret. */
void dafl_client_free(dafl_client **client);

/* After a restart, before dafl_client_start: every journal record in its order,
 * then every record of the vault. DAFL_ERR_INPUT for one that is malformed. */
DAFL_CHECK dafl_err dafl_client_recall(dafl_client *c, dafl_bytes record);
DAFL_CHECK dafl_err dafl_client_recall_secret(dafl_client *c, uint32_t slot,
                                              dafl_bytes record);

/* Begin, or go on after a restart. When the vault lacks what the journal
 * promises, the client is OUT with E_STATE_LOST. */
DAFL_CHECK dafl_err dafl_client_start(dafl_client *c);

/* Tell the server where we are: on every (re)connection, and when nothing was
 * heard for a while. */
DAFL_CHECK dafl_err dafl_client_hello(dafl_client *c);

/* A message that came from the server. What is wrong with it becomes an event;
 * only DAFL_ERR_NOMEM and DAFL_ERR_CRYPTO are returned, after which the client
 * is to be restarted. */
DAFL_CHECK dafl_err dafl_client_receive(dafl_client *c, dafl_bytes message);

/* The head of the audit log that the driver writes (protocol/audit.h), for all
 * messages from now on: after a restart before dafl_client_start, and whenever
 * a line is durable. */
void dafl_client_log(dafl_client *c, const dafl_digest *head);

/* Take the next effect; its bytes live until the next call. */
bool dafl_client_next(dafl_client *c, dafl_effect *out);

dafl_client_state dafl_client_where(const dafl_client *c);
/* The fault that took it OUT, or with which its run was over. */
dafl_fault dafl_client_fault(const dafl_client *c);
/* In words. */
const char *dafl_client_says(const dafl_client *c);
/* By its journal its last run is over, and it has not been invited to another
 * one since. */
bool dafl_client_over(const dafl_client *c);

#endif
