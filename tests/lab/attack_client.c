/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that lie. */
#include "tests/lab/attack.h"

const lab_attack attacks_client[] = {
    {0},
};
