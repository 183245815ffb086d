/* SPDX-License-Identifier: Apache-2.0 */
/* A server that lies in a slot: about cohorts, survivors, signatures. */
#include "tests/lab/attack.h"

const lab_attack attacks_slot[] = {
    {0},
};
