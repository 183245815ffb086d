/* SPDX-License-Identifier: Apache-2.0 */
/* The roles of deepafl-agent. Each runs until the run is over or it is told to
 * stop, and returns the exit code. */
#ifndef DAFL_AGENTS_ROLE_H
#define DAFL_AGENTS_ROLE_H

#include "agents/desk.h"

typedef struct {
    desk_options desk;
    const char *endpoint; /* to listen on, to connect to */
    size_t threads;
    bool allow_small, json;
    /* the server's: */
    const char *model;
    /* a client's: */
    const char *features, *labels, *test_features, *test_labels;
    /* a client's and the key holder's: */
    size_t min_cohort, min_cell;
    bool allow_any_cohort, allow_plaintext;
} role_options;

int role_server(const role_options *o);
int role_client(const role_options *o);
int role_keyholder(const role_options *o);

/* Print what went wrong and give the exit code for it: from the
 * opening of the state directory on, a system error is one of the disk. */
int role_fail(desk *d, dafl_err err, const dafl_why *why);

#endif
