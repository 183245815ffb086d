/* SPDX-License-Identifier: Apache-2.0 */
/* The check that is left out: one for good in the programs attacks_CHECK, else
 * the test's choice. Only linked with machines that can. */
#include "tests/lab/attack.h"

#ifdef DAFL_WEAKENED
dafl_weak dafl_weakened = DAFL_WEAKENED;
#else
dafl_weak dafl_weakened;
#endif

dafl_weak lab_weakened(void)
{
    return dafl_weakened;
}
