/* SPDX-License-Identifier: Apache-2.0 */
/* Activations over arrays of doubles. The result of a value depends on the
 * value alone, never on where it stands in the array, on the array's length or
 * on its alignment: the bit-identity of models rests on it. */
#ifndef DAFL_LIB_ACTIVATION_H
#define DAFL_LIB_ACTIVATION_H

#include <stddef.h>

#include "lib/err.h"

typedef enum {
    DAFL_ACT_GELU,      /* x Phi(x), exact (erf), not the tanh approximation */
    DAFL_ACT_RELU,      /* max(x, 0) */
    DAFL_ACT_LEAKYRELU, /* x if x > 0, else x / 100 */
    DAFL_ACT_TANH,
    DAFL_ACT_HARDSWISH,  /* x clip(x + 3, 0, 6) / 6 */
    DAFL_ACT_SOFTSHRINK, /* sign(x) max(|x| - 1/2, 0) */
    DAFL_ACT_NONE,       /* x */
    DAFL_ACT_COUNT
} dafl_activation;

/* In place. NaN stays NaN. */
void dafl_activation_apply(dafl_activation act, double *x, size_t n);

const char *dafl_activation_name(dafl_activation act);

/* DAFL_ERR_INPUT, listing the names, when there is none of that name. */
DAFL_CHECK dafl_err dafl_activation_parse(dafl_activation *out,
                                          const char *name, dafl_why *why);

#endif
