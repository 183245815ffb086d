/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent of any role works with: the run and its own key, its state
 * on disk, its audit log, the link to the others. It carries out what a machine
 * wants, in order: a line of the log is written when every record before it is
 * durable, and a message sent when everything before it is. */
#ifndef DAFL_AGENTS_DESK_H
#define DAFL_AGENTS_DESK_H

#include "agents/link.h"
#include "agents/logfile.h"
#include "agents/metrics.h"
#include "agents/runfile.h"
#include "agents/store.h"
#include "agents/watch.h"
#include "protocol/audit.h"

/* Exit codes of an agent, besides those of agents/cli.h. */
enum {
    EXIT_STATE = 3,   /* the disk failed or is not as the journal says */
    EXIT_STOPPED = 4, /* told to stop; start again to go on */
};

typedef struct {
    const char *config, *key, *state;
    const char *audit;      /* NULL: audit.log in the state directory */
    const char *metrics;    /* where they are served; NULL: nowhere */
    const char *secure_agg; /* as on the command line; must be the config's */
    bool verbose, quiet;
} desk_options;

typedef struct {
    runfile *run;
    dafl_secret_identity *self; /* secret memory */
    uint16_t index;
    bool at_disk; /* the state directory was looked at */
    store *store;
    logfile *log;
    dafl_audit audit;
    dafl_writer line;
    /* Not durable yet: lines of the audit log, one of which at least is not
     * just of a message that was dropped, and what the store was given after
     * them.
     */
    bool lines, pressing, records;
    dafl_link *link;
    metrics *metrics;
    watch watch;
} desk;

/* Read the run and the key, find ourselves in the roster in this role, open the
 * state directory and the audit log. Clear *d first; close it in any case. */
DAFL_CHECK dafl_err desk_open(desk *d, const desk_options *o, dafl_role role,
                              dafl_why *why);
void desk_close(desk *d);

/* Carry out one effect. After an error nothing more is to be sent. */
DAFL_CHECK dafl_err desk_do(desk *d, const dafl_effect *effect, dafl_why *why);
/* When there is time: make everything durable, but lines on messages that were
 * dropped: whoever sends many of them must not keep the disk busy. Their lines
 * are durable before anything is sent, like all others. */
DAFL_CHECK dafl_err desk_rest(desk *d, dafl_why *why);

/* Bounds for the link: messages as long as the run needs them. Others may have
 * a whole upload waiting for the server, the server some messages for each
 * client and a whole sum for the key holder. */
link_caps desk_caps(const desk *d);

/* Milliseconds on a clock that only moves forward. */
uint64_t desk_now(void);

/* From now on the first SIGINT or SIGTERM ends a wait in link_next and sets
 * what desk_stopped tells; a second one ends the program at once, which is safe
 * at any moment. */
void desk_catch_signals(desk *d);
bool desk_stopped(void);

#endif
