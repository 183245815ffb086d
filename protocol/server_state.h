/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the server, shared by the files server*.c. */
#ifndef DAFL_PROTOCOL_SERVER_STATE_H
#define DAFL_PROTOCOL_SERVER_STATE_H

#include "protocol/adder.h"
#include "protocol/context.h"
#include "protocol/node.h"
#include "protocol/rules.h"
#include "protocol/server.h"

/* What the server knows of one client. */
typedef struct {
    /* the setup */
    dafl_peer peer;       /* EK, hk and the signature on them */
    dafl_slot_keys *keys; /* of all slots */
    dafl_writer shares;   /* its packets, until everybody has them */
    dafl_digest h_shares;
    dafl_signature shares_sig;
    dafl_members unopened; /* holders that could not open its packet */
    /* the model */
    uint32_t have; /* segments */
    /* the slot */
    dafl_writer upload; /* what has come, until END */
    uint64_t until;     /* when to give it up */
    dafl_digest dig;
    dafl_signature end_sig; /* on dig */
    dafl_signature stmt_sig;
    dafl_members holders;  /* whose share of this dealer has come */
    dafl_share *shares_of; /* [holder] */
} dafl_seat;

/* A question that has been answered, and the segment that came before it. */
typedef struct {
    dafl_segment segment; /* bytes: those of `bytes` */
    dafl_writer bytes;
    dafl_digest model; /* with this segment */
    uint32_t slot;     /* in which it was answered; 0: not yet */
    dafl_members cohort, signers;
} dafl_chapter;

struct dafl_server {
    dafl_node node;
    const dafl_server_method *method;
    void *method_self;
    dafl_pool *pool;
    dafl_he *encryption; /* NULL: the mode has none */
    dafl_server_state state;
    dafl_fault fault;
    dafl_err err;
    uint64_t now, deadline;
    dafl_server_stats stats;
    dafl_members online;

    /* the setup */
    uint32_t enrolment;
    bool stands; /* the setup is over */
    dafl_members enrolled, dealt, u0, u1, acked;
    size_t awaited;      /* it was told when so many had enrolled, and one */
    dafl_members usable; /* of U1: may be summed */
    dafl_members barred; /* whole cells, for the rest of the run */
    size_t t;
    dafl_digest h_setup;
    dafl_seat *seats;  /* [client] */
    bool holder_acked; /* the key holder knows the setup */

    /* the model */
    dafl_chapter *chapters;
    uint32_t n_chapters, room_chapters;

    /* the question */
    dafl_question question;
    dafl_shape shape;
    unsigned failures, thin; /* attempts that failed, that were too thin */
    bool plain;              /* no tied variant any more */
    bool patient;            /* give those who left a while to come back */
    dafl_members around;     /* online at some time since it was first asked */
    bool doubting;           /* its sum could not be true, with all of .. */
    dafl_members suspects;   /* .. these; now without .. */
    uint16_t left_out;       /* .. this cell */

    /* the slot */
    uint32_t slot;
    dafl_digest ctx, ctx2, stmt;
    dafl_members chosen, ready, seen; /* to answer, able to, have the model */
    dafl_members a, waiting, granted, done, u3;
    dafl_members signers, revealed;
    dafl_members liars; /* named for a wrong share */
    dafl_adder total;   /* whole cells */
    dafl_adder *cells;  /* [cell]: sums of cells that are not whole yet */
    /* with encryption: */
    dafl_writer key;          /* the body of KEY */
    dafl_digest he;           /* of the key in it; zeros without encryption */
    dafl_writer sealed, open; /* the blinded sum, and what asks to open it */
    dafl_digest sealed_dig;
    uint64_t *blind;    /* bulk memory */
    dafl_writer opened; /* what has come of it */
};

typedef dafl_fault dafl_server_handler(dafl_server *s, const dafl_envelope *m);
dafl_server_handler dafl_server_on_enroll, dafl_server_on_shares,
    dafl_server_on_ack, dafl_server_on_ready, dafl_server_on_upload,
    dafl_server_on_end, dafl_server_on_sign, dafl_server_on_reveal,
    /* from the key holder: */
    dafl_server_on_holder_hello, dafl_server_on_holder_ack, dafl_server_on_key,
    dafl_server_on_opening, dafl_server_on_opened, dafl_server_on_refusal;

/* Set the state and how long it may last. */
void dafl_server_enter(dafl_server *s, dafl_server_state state, dafl_wait wait);
dafl_fault dafl_server_broke(dafl_server *s, dafl_err err);

/* The whole cells of a set; with g = 1 everybody is one. */
dafl_members dafl_server_whole(const dafl_server *s, const dafl_members *set);
/* Number of the client's cell, and how many there are. */
uint16_t dafl_server_cell(const dafl_server *s, size_t client);
uint16_t dafl_server_n_cells(const dafl_server *s);
dafl_members dafl_server_cell_members(const dafl_server *s, uint16_t cell);

/* Setup: begin an enrolment; begin another because one came to nothing; look
 * whether a phase can end. */
void dafl_server_invite(dafl_server *s);
void dafl_server_invite_again(dafl_server *s, dafl_fault fault);
void dafl_server_setup_progress(dafl_server *s, bool late);
/* Whether a message of the setup says again what its sender has said: keys,
 * shares and answers are sent again to a server that may not have got them. */
bool dafl_server_has_it(const dafl_server *s, const dafl_envelope *m);
void dafl_server_send_invite(dafl_server *s, const dafl_members *to);
void dafl_server_send_peers(dafl_server *s, const dafl_members *to);
void dafl_server_send_setup(dafl_server *s, uint16_t to);
void dafl_server_drop_shares(dafl_server *s);

/* Slots: ask what is to be asked next; look whether a phase can end; bring one
 * client up to date, which has not restarted since it was asked in this slot if
 * it is `in_slot`. */
void dafl_server_ask(dafl_server *s);
/* Open a slot for the question that was chosen, or wait until enough are there;
 * `late`: they were waited for long enough. */
void dafl_server_resume(dafl_server *s, bool late);
/* The question, and the segments that these clients lack. */
void dafl_server_send_model(dafl_server *s, const dafl_members *to);
/* The key holder has given a key, or none is needed: send the question. */
void dafl_server_begin_slot(dafl_server *s);
/* The bodies of SURV and CONF. */
void dafl_server_put_surv(const dafl_server *s, dafl_writer *w);
void dafl_server_put_conf(const dafl_server *s, dafl_writer *w);

/* The key holder: tell it of the setup, ask it for the slot's key, ask it to
 * open the sum, tell it that the run is over. */
void dafl_server_introduce(dafl_server *s);
void dafl_server_ask_key(dafl_server *s);
void dafl_server_ask_open(dafl_server *s);
void dafl_server_dismiss(dafl_server *s);
/* It is late; nothing goes on without it. */
void dafl_server_await_holder(dafl_server *s, dafl_wait wait);
/* Forget what belongs to it in the slot. */
void dafl_server_drop_opening(dafl_server *s);

/* Judge a cohort as the clients will, and by its number; when it does not stand
 * the attempt is over. */
bool dafl_server_cohort_stands(dafl_server *s, const dafl_members *cohort);
void dafl_server_slot_progress(dafl_server *s, bool late);
void dafl_server_catch_up(dafl_server *s, uint16_t client, bool in_slot);
void dafl_server_drop_slot(dafl_server *s);
/* The run is over. */
void dafl_server_over(dafl_server *s, dafl_fault fault);
/* This attempt has failed; the next one follows. dafl_server_fail counts it
 * against the question's tries. */
void dafl_server_fail(dafl_server *s, dafl_fault fault);
void dafl_server_retry(dafl_server *s, dafl_fault fault);
/* The sum of U3 cannot be true: try without one of its cells, the next one. */
void dafl_server_doubt(dafl_server *s);
/* Take the cell that is left out from a cohort. */
void dafl_server_leave_out(const dafl_server *s, dafl_members *cohort);
/* The sum can be true: name the cell that was left out, and bar it. */
void dafl_server_blame(dafl_server *s);
/* Open the sum of U3 from what was revealed and hand it to the method. */
void dafl_server_open(dafl_server *s);
/* The segment before a question, made when it is first asked. */
DAFL_CHECK dafl_err dafl_server_chapter(dafl_server *s, uint32_t number);
/* Leave a client's cell out from now on, and journal it. */
void dafl_server_bar(dafl_server *s, size_t client);
/* Enter an answered question into the book. */
void dafl_server_note_answer(dafl_server *s, uint32_t slot,
                             const dafl_question *q, const dafl_members *u3,
                             const dafl_members *signers);

#endif
