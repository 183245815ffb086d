/* SPDX-License-Identifier: Apache-2.0 */
/* Random walks: twelve clients in three or four cells answer nine questions,
 * and at random moments something goes wrong or somebody lies. Whatever it is,
 * after every step the lab's invariants hold (lab_violation), and of every slot
 * and of the whole run the attacker learns what it may:
 *
 *   C2  a slot gives the sum over its one confirmed cohort, or nothing;
 *   C3  a run gives nothing below a cell;
 *   I1  what is taken as a sum is the plain sum over its cohort;
 *   D2  nobody reveals before its CONF (the lab's);
 *   S2  honest clients confirm one statement a slot, signed by a quorum, over
 *       whole cells and at least m of them; of a tied question the one cohort;
 *   S10 an honest client signs one statement a slot;
 *   R6  every vector is masked.
 *
 * And it ends: with all questions answered, or with a named fault.
 *
 * The attacker is the server's side of the wire, with the server's signing key,
 * and the colluding clients. The server's machine itself is as it is.
 *
 * A walk follows from a seed and its number; in one of WALK_SEALED there is
 * encryption, with a key holder that has its troubles too (what SEAL draws does
 * not follow from the seed). */
#ifndef DAFL_TESTS_LAB_WALK_H
#define DAFL_TESTS_LAB_WALK_H

#include "tests/lab/lab.h"

#define WALK_CLIENTS 12
#define WALK_SEALED 64
#define WALK_LAYERS 3
#define WALK_QUESTIONS (2 * WALK_LAYERS + 3)

typedef enum {
    WALK_DROP,           /* a connection, or a message */
    WALK_LATE,           /* a line that stands still */
    WALK_RESTART_CLIENT, /* between two effects */
    WALK_RESTART_SERVER,
    WALK_REPLAY,     /* an old message as it was, or signed again; a slot */
    WALK_REORDER,    /* a message behind later ones */
    WALK_EQUIVOCATE, /* MODEL, CAST or SURV, and what follows from them */
    WALK_BAD_SHARE,  /* of a colluder */
    WALK_BAD_UPLOAD, /* of a colluder */
    WALK_CLOCK,      /* the server's, a day ahead or back */
    WALK_OPS
} walk_op;
const char *walk_op_name(walk_op op);

typedef struct {
    char broken[256];       /* what did not hold; empty: all did */
    uint32_t ops[WALK_OPS]; /* that were carried out */
    uint32_t slots, opened, torn, refused; /* torn: confirmed, without a sum */
    uint32_t split; /* of these slots: clients uploaded for different casts */
    bool deep;      /* summed for DeepAFL, not for vectors */
    bool sealed;    /* encrypted */
    uint32_t holder_restarts;
    lab_outcome outcome;
    dafl_fault fault; /* that ended the run */
} walk_report;

/* The tests' school is open and its rows are dealt to WALK_CLIENTS. */
void walk_run(walk_report *out, uint64_t seed, uint64_t number);

#endif
