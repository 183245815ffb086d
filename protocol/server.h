/* SPDX-License-Identifier: Apache-2.0 */
/* The server of the protocol as a pure machine: messages and the time go in,
 * effects come out (protocol/effect.h). Time is any clock in milliseconds; it
 * decides nothing but how long the server waits. The table [state][message]
 * heads protocol/server.c. */
#ifndef DAFL_PROTOCOL_SERVER_H
#define DAFL_PROTOCOL_SERVER_H

#include "lib/pool.h"
#include "protocol/config.h"
#include "protocol/effect.h"
#include "protocol/method.h"

typedef enum {
    DAFL_SERVER_NEW,
    DAFL_SERVER_ENROLLING, /* INVITE sent, ENROLLs come */
    DAFL_SERVER_DEALING,   /* PEERS sent, SHARES come */
    DAFL_SERVER_ACKING,    /* SETUP sent, SETUP_ACKs come */
    DAFL_SERVER_PAUSED,    /* too few clients online for a slot */
    DAFL_SERVER_KEYING,    /* ASK sent, the key holder's KEY comes */
    DAFL_SERVER_CASTING,   /* MODEL sent, READYs come */
    DAFL_SERVER_COLLECT,   /* CAST sent, uploads come */
    DAFL_SERVER_SURVEY,    /* SURV sent, signatures come */
    DAFL_SERVER_REVEAL,    /* CONF sent, shares come */
    DAFL_SERVER_OPENING,   /* OPEN sent, the key holder's words come */
    DAFL_SERVER_DONE,      /* no more questions */
    DAFL_SERVER_FAILED,    /* the run is over, see dafl_server_fault */
    DAFL_SERVER_STATES
} dafl_server_state;

const char *dafl_server_state_name(dafl_server_state state);

typedef struct dafl_server dafl_server;

/* All borrowed for the server's life. */
typedef struct {
    const dafl_roster *roster;
    const dafl_config *config;
    const dafl_secret_identity *self; /* the server of the roster */
    const dafl_server_method *method;
    void *method_self;
    dafl_pool *pool;
    dafl_run_id run; /* fresh for every run; after a restart the same */
} dafl_server_params;

/* Uploads on their way at one time: bounds the server's memory. */
#define DAFL_CREDIT 32

/* What the run has cost so far. */
typedef struct {
    uint32_t slots, enrolments;
    uint32_t answered; /* questions */
    uint32_t failed;   /* slots that gave no sum */
    uint32_t tied;     /* sums that only one cohort could give */
    uint32_t rebuilt;  /* secrets of clients that were cast and had gone */
} dafl_server_stats;

DAFL_CHECK dafl_err dafl_server_new(dafl_server **out,
                                    const dafl_server_params *params,
                                    dafl_fault *fault, dafl_why *why);
void dafl_server_free(dafl_server **server);

/* After a restart, before dafl_server_start: every journal record in order. The
 * method must be as new: it is given the recorded sums again. DAFL_ERR_INPUT
 * for one that is malformed or out of place. */
DAFL_CHECK dafl_err dafl_server_recall(dafl_server *s, dafl_bytes record);

DAFL_CHECK dafl_err dafl_server_start(dafl_server *s, uint64_t now);

/* A message; what is wrong with it becomes an event. */
DAFL_CHECK dafl_err dafl_server_receive(dafl_server *s, dafl_bytes message,
                                        uint64_t now);
/* A party's connection has brought what cannot be its message: an event. */
DAFL_CHECK dafl_err dafl_server_refuse(dafl_server *s, uint16_t party,
                                       dafl_fault fault);
/* The transport has lost a party; it is back when it speaks again. */
DAFL_CHECK dafl_err dafl_server_lost(dafl_server *s, uint16_t party,
                                     uint64_t now);
/* To be called when the deadline has passed (any other call is harmless). */
DAFL_CHECK dafl_err dafl_server_tick(dafl_server *s, uint64_t now);
/* UINT64_MAX when it waits for nothing. */
uint64_t dafl_server_deadline(const dafl_server *s);
/* Too few clients have come to begin; it waits for more, however long. */
bool dafl_server_awaits(const dafl_server *s);

/* The head of the audit log, as of dafl_client_log. */
void dafl_server_log(dafl_server *s, const dafl_digest *head);

bool dafl_server_next(dafl_server *s, dafl_effect *out);

dafl_server_state dafl_server_where(const dafl_server *s);
dafl_fault dafl_server_fault(const dafl_server *s);
uint32_t dafl_server_slot(const dafl_server *s);
dafl_server_stats dafl_server_stat(const dafl_server *s);

#endif
