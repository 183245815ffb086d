/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/threshold.h"

dafl_fault dafl_threshold(size_t *t, size_t n, size_t c, size_t a)
{
    size_t need;

    if (n < 2 || n > DAFL_CLIENTS_MAX || c >= n || a >= n)
        return DAFL_E_PARAMS;
    need = (n - 1 + c) / 2 + 1;
    if (n - 1 < a + need)
        return DAFL_E_PARAMS;
    *t = need;
    return DAFL_FAULT_NONE;
}

size_t dafl_threshold_absent(size_t n, size_t c)
{
    size_t t = 0;

    return dafl_threshold(&t, n, c, 0) == DAFL_FAULT_NONE ? n - 1 - t : 0;
}
