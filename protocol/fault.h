/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol's errors by name. A fault says which rule was broken; its class
 * says what falls: the message, the slot or the run. There is no fault that
 * makes a run go on in a weaker mode. */
#ifndef DAFL_PROTOCOL_FAULT_H
#define DAFL_PROTOCOL_FAULT_H

#include "lib/err.h"

#define DAFL_FAULTS(X)                                     \
    X(POLICY, RUN, "not the run that was agreed on")       \
    X(SETUP_SPLIT, RUN, "parties saw different setups")    \
    X(PARAMS, RUN, "too few enrolled or no threshold")     \
    X(STATE_LOST, RUN, "journal missing or rolled back")   \
    X(CENSUS, RUN, "too few rows or a rare class")         \
    X(DATA_CHANGED, RUN, "rows changed during the run")    \
    X(CELL_CHANGED, RUN, "same data in another cell")      \
    X(MODEL, SLOT, "model out of shape or range")          \
    X(DOMINATED, SLOT, "one row carries an operand")       \
    X(CELL_SPLIT, SLOT, "cohort is not of whole cells")    \
    X(COHORT, SLOT, "cohort too small or another one")     \
    X(QUORUM, SLOT, "too few signatures")                  \
    X(SECOND_STMT, SLOT, "a second statement in one slot") \
    X(FORGED, SLOT, "named as survivor without upload")    \
    X(SLOT_SPENT, SLOT, "slot was used before")            \
    X(UNRECOVERABLE, SLOT, "a secret cannot be rebuilt")   \
    X(SUM_INVALID, SLOT, "sum fails its sanity checks")    \
    X(SEAL, SLOT, "ciphertext refused")                    \
    X(TIMEOUT, SLOT, "deadline passed")                    \
    X(FORMAT, MESSAGE, "malformed message")                \
    X(AUTH, MESSAGE, "not signed by its sender")           \
    X(REPLAY, MESSAGE, "seen before or of another run")    \
    X(STATE, MESSAGE, "out of turn")                       \
    X(BAD_KEY, MESSAGE, "unusable public key")             \
    X(ROW_DIFF, WARNING, "rows changed since an earlier run")

typedef enum {
    DAFL_FAULT_NONE = 0,
#define X(name, class, text) DAFL_E_##name,
    DAFL_FAULTS(X)
#undef X
        DAFL_FAULT_COUNT
} dafl_fault;

typedef enum {
    DAFL_FALLS_NOTHING,
    DAFL_FALLS_WARNING, /* go on, and say so */
    DAFL_FALLS_MESSAGE, /* drop it */
    DAFL_FALLS_SLOT,    /* retry in a fresh one */
    DAFL_FALLS_RUN,     /* stop */
} dafl_falls;

/* "E_QUORUM" (the warning is "W_ROW_DIFF"), and a few words; "OK" for none. */
const char *dafl_fault_name(dafl_fault fault);
const char *dafl_fault_text(dafl_fault fault);
dafl_falls dafl_fault_falls(dafl_fault fault);
/* The library's class: whose mistake it was. */
dafl_err dafl_fault_err(dafl_fault fault);

#endif
