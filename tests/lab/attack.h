/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks on the machines, each with the one check that stops it. A program
 * with all of them is linked twice: with the machines as they are, where no
 * attack may succeed; and, once for every check of protocol/weaken.h, with
 * machines that lack it, where the attacks that rely on it must succeed.
 *
 *     build/tests/lab/attacks            all of them, on machines as they are
 *     build/tests/lab/attacks S5         those whose name begins so
 *     build/tests/lab/attacks_cohort     without the check COHORT */
#ifndef DAFL_TESTS_LAB_ATTACK_H
#define DAFL_TESTS_LAB_ATTACK_H

#include "protocol/weaken.h"
#include "tests/lab/lab.h"

typedef struct {
    const char *name; /* "S5 tiny_cohort_cast": the property's id first */
    dafl_weak check;  /* that stops it; DAFL_WEAK_NOTHING: several do, no
                         single one opens the way */
    /* Whether the attacker got what it was after. Whatever else must hold,
     * whether or not it did (a refusal by its name, nobody else disturbed), is
     * asserted inside; `stopped` says whether the check is in force. */
    bool (*succeeds)(bool stopped);
} lab_attack;

/* Lists, each ending with an entry without a name; one file each. */
extern const lab_attack attacks_slot[];    /* a server, in a slot */
extern const lab_attack attacks_quorum[];  /* .. with signatures and shares */
extern const lab_attack attacks_setup[];   /* a server, before the first slot */
extern const lab_attack attacks_keys[];    /* the same, between the clients */
extern const lab_attack attacks_members[]; /* .. that hides some of them */
extern const lab_attack attacks_model[];   /* a server that makes models up */
extern const lab_attack attacks_replay[];  /* a server, with what is old */
extern const lab_attack attacks_client[];  /* clients */
extern const lab_attack attacks_flood[];   /* anybody, to fill a disk */
extern const lab_attack attacks_deep[];    /* on whole trainings */
extern const lab_attack attacks_data[];    /* what a client asks of its data */
extern const lab_attack attacks_seal[];    /* a server, with encryption */

/* The check that these machines lack (weakened.c, strong.c). */
dafl_weak lab_weakened(void);

#endif
