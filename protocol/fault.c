/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/fault.h"

typedef struct {
    const char *name, *text;
    dafl_falls falls;
} entry;

static const entry entries[DAFL_FAULT_COUNT] = {
    [DAFL_FAULT_NONE] = {"OK", "no fault", DAFL_FALLS_NOTHING},
#define X(name, class, text) \
    [DAFL_E_##name] = {"E_" #name, text, DAFL_FALLS_##class},
    DAFL_FAULTS(X)
#undef X
};

const char *dafl_fault_name(dafl_fault fault)
{
    if ((unsigned)fault >= DAFL_FAULT_COUNT)
        return "E_UNKNOWN";
    return fault == DAFL_E_ROW_DIFF ? "W_ROW_DIFF" : entries[fault].name;
}

const char *dafl_fault_text(dafl_fault fault)
{
    return (unsigned)fault < DAFL_FAULT_COUNT ? entries[fault].text
                                              : "unknown fault";
}

dafl_falls dafl_fault_falls(dafl_fault fault)
{
    return (unsigned)fault < DAFL_FAULT_COUNT ? entries[fault].falls
                                              : DAFL_FALLS_RUN;
}

dafl_err dafl_fault_err(dafl_fault fault)
{
    switch (fault) {
    case DAFL_FAULT_NONE:
    case DAFL_E_ROW_DIFF:
        return DAFL_OK;
    case DAFL_E_AUTH:
    case DAFL_E_BAD_KEY:
    case DAFL_E_QUORUM:
    case DAFL_E_UNRECOVERABLE:
        return DAFL_ERR_CRYPTO;
    case DAFL_E_SUM_INVALID:
        return DAFL_ERR_NUMERIC;
    case DAFL_E_POLICY:
    case DAFL_E_PARAMS:
    case DAFL_E_CENSUS:
    case DAFL_E_DATA_CHANGED:
    case DAFL_E_CELL_CHANGED:
    case DAFL_E_DOMINATED:
        return DAFL_ERR_INPUT;
    case DAFL_E_STATE_LOST:
    case DAFL_E_TIMEOUT:
        return DAFL_ERR_SYS;
    default:
        return DAFL_ERR_PEER;
    }
}
