/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a walk, shared by its files. */
#ifndef DAFL_TESTS_LAB_WALK_INSIDE_H
#define DAFL_TESTS_LAB_WALK_INSIDE_H

#include "tests/lab/inside.h"
#include "tests/lab/leak.h"
#include "tests/lab/liar.h"
#include "tests/lab/walk.h"

/* Something else than the machine says, told to some clients in one slot: from
 * `start` on, one message after the other until CONF. */
typedef struct {
    bool on, begun; /* it begins with the machine's own message `start` */
    bool after;     /* besides that message, else instead of it */
    bool shuts;     /* the machine's later messages do not reach the fooled */
    bool apart;     /* the fooled are cells, each told that it alone is cast;
                       the others, that all of them are there */
    dafl_msg_type start, next;
    uint32_t slot;
    uint64_t at; /* when `next` is told */
    bool chosen; /* `fooled` is set beforehand */
    dafl_members fooled, a, u3;
    dafl_members led; /* who is told what follows: the fooled, or the others */
} walk_lie;

typedef enum { POISON, TORN, OTHER_END, BAD_UPLOADS } bad_upload;

typedef struct {
    walk_report *report;
    lab *lab;
    leak *leak;
    dafl_draw dice;
    dafl_members colluders;
    liar liar;
    walk_lie lie;
    uint32_t left;    /* operations to come */
    uint32_t spacing; /* steps between two of them, on the average */
    /* one message that does not go its way */
    bool hold, hold_for_good;
    uint16_t hold_client;
    uint64_t hold_time;
    /* what colluders are about to do */
    dafl_members lies_of_shares, lies_of_uploads;
    bad_upload upload;
    bool end_follows;
    dafl_digest end_dig;
    lab_list poisoned; /* uint32_t: slots whose sum may be wrong */
    /* who comes back when */
    uint64_t back_at[WALK_CLIENTS + 2]; /* [party] */
    uint64_t stuck_at; /* since when the clock is behind; 0: it is not */
    uint32_t judged;   /* slots up to this one */
} walk;

/* A random number below n; from .. to. */
uint64_t walk_below(walk *w, uint64_t n);
uint64_t walk_between(walk *w, uint64_t from, uint64_t to);
uint16_t walk_client(walk *w);
/* A client, or now and then the key holder. */
uint16_t walk_peer(walk *w);
/* Somebody who colludes; there is one. */
uint16_t walk_colluder(walk *w);
void walk_broken(walk *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- walk_trouble.c ---- */

lab_intercept walk_intercept;
/* Between two steps. */
void walk_trouble(walk *w);

/* ---- walk_lie.c ---- */

/* Plan one. */
void walk_lie_plan(walk *w, bool replay);
/* To this client the next CAST. */
void walk_lie_plan_cast(walk *w, uint16_t client);
/* The server's message meets it; false: it goes no further. */
bool walk_lie_meet(walk *w, lab_letter *m);
/* Go on with it when it is time. */
void walk_lie_tick(walk *w);

/* ---- walk_judge.c ---- */

/* Slots before the newest; at the end all, and the run. */
void walk_judge(walk *w, bool over);

#endif
