/* SPDX-License-Identifier: Apache-2.0 */
/* A server that does as a test says. When the lab's server sends a chosen
 * message of a chosen slot, the script takes the wire over: this message and
 * all that the machine says later is kept back, nothing reaches it any more,
 * and the script speaks in its name. A leakage checker sees all that clients
 * send.
 *
 *     script *s = script_new(&scenario, &colluders, 1, DAFL_MSG_MODEL);
 *
 *     script_model(s, 1);
 *     script_tell(s, &all, &all);
 *     s->clients[3].u3 = others; // it alone is told so
 *     script_cast(s);
 *     script_survey(s);
 *     script_confirm(s);
 *     assert_int_equal(leak_dim(s->leak, 1), 0);
 *     script_goes_on(s);
 *     script_free(&s);
 *
 * Each step sends a message to every client and returns when all that was under
 * way has arrived and has been answered. */
#ifndef DAFL_TESTS_LAB_SCRIPT_H
#define DAFL_TESTS_LAB_SCRIPT_H

#include "tests/lab/lab.h"
#include "tests/lab/leak.h"

/* A client in the slot at hand. */
typedef struct {
    /* What it is told: A in CAST and SURV, U3 in SURV. */
    dafl_members a, u3;
    /* What it was heard to say, the last of each. */
    bool ready, uploaded, has_signed, revealed;
    dafl_digest ctx, dig;
    dafl_signature end_sig, sig;
    /* The statement of the last SURV to it: what an honest one signs. */
    dafl_digest stmt;
} script_client;

typedef struct script script;
struct script {
    lab *lab;
    leak *leak;
    dafl_members colluders; /* sign whatever the script likes, END and SIGN */
    uint32_t slot;          /* at hand */
    script_client clients[DAFL_CLIENTS_MAX];
    size_t quorum; /* signatures in a CONF at most */
    /* Change the body of a message to a client; false: it is not sent. NULL:
     * all go as they are. */
    bool (*change)(script *s, uint16_t to, dafl_msg_type type,
                   dafl_writer *body);
    void *ctx;         /* the test's */
    dafl_writer model; /* the MODEL to send: at first the machine's last */
    /* inside: */
    uint32_t from_slot;
    dafl_msg_type from_type;
    bool taken;
    uint64_t seq;
};

/* Make a lab and let it run until the script takes over. The scenario's
 * intercept and ctx are the script's. */
script *script_new(const lab_scenario *scenario, const dafl_members *colluders,
                   uint32_t slot, dafl_msg_type type);
void script_free(script **s);

/* Begin a slot with s->model. */
void script_model(script *s, uint32_t slot);
/* Let s->model be the next question, as if the slot at hand had answered the
 * one before. */
void script_ask_next(script *s);
/* From now on all are told this. */
void script_tell(script *s, const dafl_members *a, const dafl_members *u3);
void script_cast(script *s);
/* SURV with the digests that were heard, and the signatures on them; zeros of
 * clients without one. */
void script_survey(script *s);
/* CONF: to each client the signatures on its own statement that there are, of
 * those who were told the same and signed it, and of all who collude. */
void script_confirm(script *s);
/* All of it. */
void script_play(script *s, uint32_t slot, const dafl_members *a,
                 const dafl_members *u3);

/* Crash a client and let it come back; wait for one that is on its way. */
void script_restart(script *s, uint16_t client);
void script_await(script *s, uint16_t client);

/* ---- what came of it ---- */

dafl_members script_honest(const script *s);
size_t script_honest_n(const script *s);
uint16_t script_any_honest(script *s);
/* Everybody but one. */
dafl_members script_others(const script *s, uint16_t client);
/* Honest clients that named this fault in the slot at hand; that signed; that
 * revealed. */
size_t script_refusals(const script *s, dafl_fault fault);
size_t script_signatures(const script *s);
size_t script_reveals(const script *s);
/* The sum over these is there, its numbers are right, and there is nothing
 * else. */
bool script_opens(script *s, uint32_t slot, const dafl_members *u3);
/* A client's own numbers are there: the masks are off its vector, and what is
 * left is its input. */
bool script_reads(script *s, uint16_t client, uint32_t slot);
/* Fails the test unless the clients, asked as they should be in the next slot,
 * give the sum over everybody, and have broken no rule so far. */
void script_goes_on(script *s);

#endif
