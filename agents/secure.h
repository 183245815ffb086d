/* SPDX-License-Identifier: Apache-2.0 */
/* A federation inside one process whose sums are masked: the machines of
 * protocol/ for every client, the server and if there is one the key holder,
 * with messages between them that get lost when a client drops out. The clock
 * is virtual: waiting costs nothing. */
#ifndef DAFL_AGENTS_SECURE_H
#define DAFL_AGENTS_SECURE_H

#include "agents/partition.h"
#include "lib/pool.h"
#include "protocol/deep.h"
#include "protocol/server.h"

typedef struct {
    size_t cell_size, colluders, min_cohort;
    bool encrypt;         /* on top of the masks, with a key holder */
    double drop;          /* chance of a client to drop out of a slot */
    double drop_for_good; /* and to leave during the run */
    dafl_participation participation;
} secure_plan;

/* What a plan must satisfy for so many clients; the reason names the option. */
DAFL_CHECK dafl_err secure_check(const secure_plan *plan, size_t clients,
                                 dafl_why *why);

typedef struct secure secure;

/* Borrows everything; fills the (empty) model. */
DAFL_CHECK dafl_err secure_new(secure **out, dafl_model *model, dafl_pool *pool,
                               const dafl_data *train, const partition *p,
                               const secure_plan *plan, dafl_why *why);
void secure_free(secure **s);

/* What one question cost, failed attempts included. */
typedef struct {
    dafl_question question;
    dafl_members cohort; /* whose sum was opened */
    size_t slots, dropouts;
    /* wall seconds: clients computing, clients masking (and all else they do),
     * server collecting and unmasking, server solving */
    double compute_s, masking_s, unmasking_s, solve_s;
    double upload, download; /* bytes per client */
} secure_step;

/* Go on until one more question is answered. *more is false when there was none
 * left. */
DAFL_CHECK dafl_err secure_ask(secure *s, secure_step *step, bool *more,
                               dafl_why *why);

dafl_server_stats secure_stats(const secure *s);
const dafl_trainer *secure_trainer(const secure *s);
dafl_site *secure_site(const secure *s, size_t client);
const dafl_policy *secure_policy(const secure *s);

#endif
