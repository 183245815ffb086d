/* SPDX-License-Identifier: Apache-2.0 */
/* A second server on the wire. It has the server's signing key, sees every
 * message of the newest slot, and tells some clients other things than the
 * machine does: another model, cohort, set of survivors, quorum. The machine
 * goes on beside it; the numbers of its messages are moved up where the liar
 * has used them, so that clients take both.
 *
 * To be called by the test's own intercept:
 *
 *     liar_see(a, letter);
 *     .. change, keep back or tell ..
 *     liar_number(a, letter);
 */
#ifndef DAFL_TESTS_LAB_LIAR_H
#define DAFL_TESTS_LAB_LIAR_H

#include "tests/lab/lab.h"

typedef struct {
    lab *lab;
    dafl_members colluders; /* sign an END for whatever cohort is told */
    uint64_t told[DAFL_CLIENTS_MAX]; /* the last number towards each, */
    uint64_t said[DAFL_CLIENTS_MAX]; /* and of each */
    /* what the newest slot has brought: */
    uint32_t slot; /* 0: none yet */
    dafl_members modeled, ready, ended, signers;
    dafl_writer model[DAFL_CLIENTS_MAX]; /* MODEL to each */
    dafl_digest ctx[DAFL_CLIENTS_MAX];   /* READY of each */
    dafl_end_msg end[DAFL_CLIENTS_MAX];  /* END of each */
    dafl_signature sig[DAFL_CLIENTS_MAX];
    bool cast, surveyed; /* the machine has sent those: */
    dafl_members a, u3;
} liar;

void liar_init(liar *a, lab *l);
void liar_drop(liar *a);

/* Remember a message as its sender made it. */
void liar_see(liar *a, const lab_letter *m);
/* Give a message of a machine a number that its receiver takes, whatever was
 * told or said besides. */
void liar_number(liar *a, lab_letter *m);

/* Sign a message as the server and send it to these. */
void liar_tell(liar *a, const dafl_members *to, dafl_msg_type type,
               uint32_t slot, dafl_bytes body, uint64_t after);
/* Sign a message as a client and send it to the server. */
void liar_say(liar *a, uint16_t client, dafl_msg_type type, uint32_t slot,
              dafl_bytes body, uint64_t after);
/* In the newest slot: */
void liar_cast(liar *a, const dafl_members *to, const dafl_members *cast,
               uint64_t after);
/* With the digests of the uploads that were seen and the signatures on them,
 * zeros for others. */
void liar_surv(liar *a, const dafl_members *to, const dafl_members *cast,
               const dafl_members *u3, uint64_t after);
/* With the signatures that were seen, whatever they are on. */
void liar_conf(liar *a, const dafl_members *to, const dafl_members *signers,
               uint64_t after);
/* Sign as a client that was told these and has the context of `like`. */
void liar_sign_as(liar *a, uint16_t client, uint16_t like,
                  const dafl_members *cast, const dafl_members *u3);

/* The body that liar_surv sends to these, for a message that is on its way. */
void liar_put_surv(const liar *a, dafl_writer *w, const dafl_members *to,
                   const dafl_members *cast, const dafl_members *u3);

#endif
