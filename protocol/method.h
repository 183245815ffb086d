/* SPDX-License-Identifier: Apache-2.0 */
/* What a closed-form method gives to the protocol. The method asks numbered
 * questions, 0, 1, 2 .., each answered by one sum of integer vectors over a
 * cohort; from the sums its server side grows a model, one segment a question;
 * segment n is what a client needs to answer question n. The protocol moves
 * segments and sums and knows nothing of what they mean: another method is two
 * more of these tables.
 *
 * Functions that fail return the fault that the protocol will name. They are
 * called by one thread at a time. */
#ifndef DAFL_PROTOCOL_METHOD_H
#define DAFL_PROTOCOL_METHOD_H

#include "protocol/fault.h"
#include "protocol/messages.h"
#include "protocol/roster.h"

typedef struct {
    uint32_t number;
    uint32_t rank; /* of the method: which variant; 0 is one that any cohort
                      can answer */
} dafl_question;

#define DAFL_TIES_MAX 2

/* What an answer looks like. A question may be tied to earlier ones: only the
 * very cohort of each of them may answer it. */
typedef struct {
    uint64_t len; /* numbers, at least 1 */
    size_t n_ties;
    uint32_t ties[DAFL_TIES_MAX]; /* numbers of earlier questions */
} dafl_shape;

/* A client's side. */
typedef struct {
    /* Take the next segment; each number comes once, in order. DAFL_E_MODEL,
     * nothing changed, for one that is malformed or out of bounds. */
    dafl_fault (*follow)(void *self, const dafl_segment *segment);
    /* DAFL_E_MODEL for a question that cannot be asked now. */
    dafl_fault (*shape)(void *self, const dafl_question *q, dafl_shape *out);
    /* Write the answer. All segments up to its number have been followed. A
     * fault of the class SLOT keeps this client's numbers back; it goes on as
     * a helper. May be asked twice for one question and must then give the
     * same numbers, or a fault. */
    dafl_fault (*answer)(void *self, const dafl_question *q, int64_t *x,
                         size_t len);
    /* What the answers are made of: a digest of the client's rows, whatever
     * their order, and one of what they are first multiplied with. Both are
     * the same as long as the data are. NULL: there are no data. */
    dafl_fault (*data)(void *self, dafl_digest *rows, dafl_digest *basis);
    /* Forget every segment: the client starts anew from segment 0, in another
     * run. */
    dafl_fault (*rewind)(void *self);
} dafl_client_method;

/* The server's side. */
typedef struct {
    /* The question to ask now; false when there is none left. With `plain` one
     * without ties. */
    bool (*next)(void *self, bool plain, dafl_question *out);
    dafl_fault (*shape)(void *self, const dafl_question *q, dafl_shape *out);
    /* Write the bytes of segment `number`, the newest; kind and layer are for
     * the client's side. The machine fills in the rest. */
    dafl_fault (*segment)(void *self, uint32_t number, dafl_segment *out,
                          dafl_writer *bytes);
    /* Leave in `cohort` those who are to answer; whole cells. NULL: all. */
    void (*choose)(void *self, const dafl_question *q,
                   const dafl_roster *roster, dafl_members *cohort);
    /* Take the sum over `cohort`. DAFL_E_SUM_INVALID, nothing changed, when it
     * cannot be true. */
    dafl_fault (*take)(void *self, const dafl_question *q, const int64_t *sum,
                       size_t len, const dafl_members *cohort, dafl_why *why);
} dafl_server_method;

#endif
