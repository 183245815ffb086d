/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent shows while it works, on stderr: a status line on a terminal,
 * JSON lines when nobody looks. Names and numbers of what happened, never what
 * was sent. */
#ifndef DAFL_AGENTS_WATCH_H
#define DAFL_AGENTS_WATCH_H

#include <stdbool.h>

#include "protocol/deep.h"
#include "protocol/effect.h"
#include "protocol/roster.h"

struct metrics;

typedef struct {
    struct metrics *metrics; /* to be told of changes; NULL: none */
    bool over, over_failed;  /* the run is; for an error */
    const char *self;        /* the party's name */
    const dafl_roster *roster;
    const dafl_params *params;
    bool terminal, verbose, quiet;
    /* the question and the slot at hand */
    bool asked;
    uint32_t question, slot;
    const char *phase;
    size_t uploads, cast;  /* uploads that are there, of so many */
    size_t dropouts;       /* clients that were cast and did not make it */
    uint32_t failed;       /* slots without a sum */
    double start;          /* of the first question, by cli_now */
    uint32_t answered;     /* since then */
    double risk;           /* of the newest layer; negative: not known */
    bool shown;            /* a status line is on the screen */
    bool awaits;           /* it was said that the key holder is awaited */
    dafl_members enrolled; /* the server's: who has */
    size_t awaited;        /* it was said when so many had, and one; 0: not */
    /* the key holder's own: */
    bool holder;
    uint32_t opened, refused; /* slots */
} watch;

/* All borrowed; `self`: number in the roster. */
void watch_init(watch *w, uint16_t self, const dafl_roster *roster,
                const dafl_params *params, bool verbose, bool quiet);

/* Whether this is the server's. */
bool watch_serves(const watch *w);

/* An event of this party's machine. */
void watch_event(watch *w, const dafl_event *event);
/* The risk of the newest layer, for the status line. */
void watch_risk(watch *w, const dafl_risk *risk);
/* A sentence: `event` names it for programs ("listening", "lost", ..). */
void watch_say(watch *w, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Take the status line off the screen. */
void watch_clear(watch *w);

#endif
