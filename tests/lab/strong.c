/* SPDX-License-Identifier: Apache-2.0 */
/* The machines as they are: nothing is left out. */
#include "tests/lab/attack.h"

dafl_weak lab_weakened(void)
{
    return DAFL_WEAK_NOTHING;
}
