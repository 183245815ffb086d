/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a test can switch off, one at a time, to show that the attack
 * they stop would work. Only the copy of this module that is linked into such
 * tests has the switch (DAFL_WEAKEN); elsewhere DAFL_WEAK is a constant and
 * the checks cannot be left out. The names are those of the build option
 * `weaken` in capitals: a tree test compares them. */
#ifndef DAFL_PROTOCOL_WEAKEN_H
#define DAFL_PROTOCOL_WEAKEN_H

typedef enum {
    DAFL_WEAK_NOTHING,
    DAFL_WEAK_END,          /* server: an upload counts before END verifies */
    DAFL_WEAK_FIRST_END,    /* server: a second END counts again */
    DAFL_WEAK_COMMITMENT,   /* server: rebuilt secrets are not compared */
    DAFL_WEAK_SANITY,       /* method: sums are not judged */
    DAFL_WEAK_CELLS,        /* client: cohorts may split cells */
    DAFL_WEAK_COHORT,       /* client: cohorts may be smaller than m */
    DAFL_WEAK_TIES,         /* client: increments over any cohort */
    DAFL_WEAK_FORGED,       /* client: takes any digest for an upload */
    DAFL_WEAK_AGREED,       /* client: survivors may be of another cast */
    DAFL_WEAK_QUORUM,       /* client: CONF is not checked */
    DAFL_WEAK_STATEMENT,    /* client: signs every statement */
    DAFL_WEAK_SLOT,         /* client: slots may be used again */
    DAFL_WEAK_RESEND,       /* client: after a restart any upload may be sent */
    DAFL_WEAK_WIPE,         /* client: secrets of closed slots stay */
    DAFL_WEAK_DATA,         /* client: its rows may change during a run */
    DAFL_WEAK_CELL_HISTORY, /* client: the same rows in any cell */
    DAFL_WEAK_DOMINATED,    /* method: one row may carry an operand */
    DAFL_WEAK_CENSUS,       /* method: few rows, rare classes */
    DAFL_WEAK_TURN,         /* client: messages count in any state */
    DAFL_WEAK_OUTSIDE,      /* client: reveals of those who were not cast */
    DAFL_WEAK_BINDING,      /* both: keys are not bound to the model */
    DAFL_WEAK_VARIANT,      /* both: nor to the variant of the question */
    DAFL_WEAK_AGREE,       /* server: shares that are not needed may be wrong */
    DAFL_WEAK_BAR,         /* server: bad dealers are asked again and again */
    DAFL_WEAK_FLOOR,       /* client: has no floors of its own */
    DAFL_WEAK_PIN,         /* client: roster and config may be others */
    DAFL_WEAK_RUNS,        /* client: enters a run twice */
    DAFL_WEAK_PEERS,       /* client: enrolments need no signature */
    DAFL_WEAK_KEYS,        /* client: takes any keys of slots for enrolled */
    DAFL_WEAK_BAD_KEY,     /* client: keys may stand twice */
    DAFL_WEAK_ORTHONORMAL, /* client: a head may be stretched and skewed */
    DAFL_WEAK_ENROLMENT,   /* both: signatures are good for any enrolment */
    DAFL_WEAK_ROLLBACK,    /* client: goes on with an old copy of its disk */
    DAFL_WEAK_SPLIT,       /* both: keys are not bound to the setup */
    DAFL_WEAK_HOLDER_KEY,  /* client: encrypts with anybody's key */
    DAFL_WEAK_OPENING,     /* key holder: opens without a quorum */
    DAFL_WEAK_ONE_OPENING, /* key holder: opens as often as it is asked */
    DAFL_WEAK_LINES,       /* all: whatever comes has a line in the log */
    DAFL_WEAK_LIVES,       /* server: a party begins as often as it likes */
} dafl_weak;

#ifdef DAFL_WEAKEN
extern dafl_weak dafl_weakened;
#define DAFL_WEAK(check) (dafl_weakened == DAFL_WEAK_##check)
#else
#define DAFL_WEAK(check) 0
#endif

#endif
