/* SPDX-License-Identifier: Apache-2.0 */
/* A server that lies before the first slot, and about models. */
#include "tests/lab/attack.h"

const lab_attack attacks_setup[] = {
    {0},
};
