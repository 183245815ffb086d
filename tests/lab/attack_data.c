/* SPDX-License-Identifier: Apache-2.0 */
/* What a client asks of its own data before it answers. */
#include "tests/lab/attack.h"

const lab_attack attacks_data[] = {
    {0},
};
