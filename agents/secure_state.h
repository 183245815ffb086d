/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of agents/secure.h: how it is made (secure_make.c), how it runs
 * (secure.c). */
#ifndef DAFL_AGENTS_SECURE_STATE_H
#define DAFL_AGENTS_SECURE_STATE_H

#include "agents/letters.h"
#include "agents/secure.h"
#include "agents/shared.h"
#include "protocol/client.h"
#include "protocol/holder.h"

/* Where in a slot a client drops out: the last thing it does, or does not. */
typedef enum {
    DROP_AT_MODEL, /* does not get the question */
    DROP_AFTER_READY,
    DROP_AT_UPLOAD, /* was cast and sends nothing */
    DROP_MID_UPLOAD,
    DROP_AFTER_END,
    DROP_AT_SIGN, /* has uploaded and does not sign */
    DROP_AFTER_SIGN,
    DROP_AFTER_REVEAL,
    DROP_PHASES,
    DROP_NOT
} drop_phase;

typedef struct {
    secure *fed;
    size_t number;
    dafl_secret_identity id;
    dafl_deep_client *deep;
    dafl_client *machine;
    const dafl_projection *lent;
    letters in, out;
    bool connected;
    uint32_t slot;            /* the newest whose MODEL went to it */
    drop_phase phase;         /* in that slot */
    uint32_t leaves;          /* the question in which it leaves for good */
    double busy_s, compute_s; /* thread time since the last look */
    dafl_err err;
    dafl_why why;
} secure_client;

struct secure {
    const dafl_params *params;
    dafl_pool *pool;
    const dafl_data *train;
    const partition *part;
    secure_plan plan;
    size_t n;
    secure_client *clients;
    dafl_roster roster;
    dafl_config config;
    dafl_writer method_params;
    dafl_secret_identity server_id, holder_id;
    dafl_deep_server *deep;
    dafl_server *server;
    dafl_holder *holder; /* NULL: no encryption */
    letters to_holder, from_holder;
    shared *projections;
    uint64_t now; /* virtual milliseconds */
    dafl_draw dice;
    secure_step step, last; /* of the question at hand, the answered one */
    dafl_question asking;
    bool answered;
    double solve_s;
};

/* Carry out what a machine wants: keep what it sends; it has no journal here,
 * because nobody restarts. */
void secure_empty_client(secure_client *c);
DAFL_CHECK dafl_err secure_empty_holder(secure *s);
/* On all threads, if that is worth it. */
void secure_for_all(secure *s, dafl_pool_fn *fn);
/* The error of the first client that had one. */
DAFL_CHECK dafl_err secure_first_error(const secure *s, dafl_why *why);
bool secure_by_chance(secure *s, double p);

#endif
