/* SPDX-License-Identifier: Apache-2.0 */
/* The numeric contract of a run. Operands of every product that is summed over
 * sites lie on the grid of multiples of 2^-s and within +-q; sums over at most
 * n_max rows are then integers (times a power of two) that a ring of w bits
 * holds without wrapping:  n_max (q 2^s)^2 < 2^(w-1). */
#ifndef DAFL_LIB_GRID_H
#define DAFL_LIB_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"

typedef struct {
    bool exact;     /* false: no grid, plain doubles; for comparisons only */
    unsigned s;     /* grid step 2^-s, 1..24 */
    uint32_t q;     /* largest magnitude, 1..65536 */
    uint64_t n_max; /* most rows over all sites */
    unsigned w;     /* ring width in bits, derived: 32, 40, 48, 56 or 64 */
} dafl_contract;

#define DAFL_CONTRACT_DEFAULT \
    ((dafl_contract){.exact = true, .s = 12, .q = 4, .n_max = 1u << 18})

/* Check the ranges and derive w; DAFL_ERR_INPUT when no ring is wide enough. */
DAFL_CHECK dafl_err dafl_contract_derive(dafl_contract *c, dafl_why *why);

/* Rows whose products a double sums exactly: floor(2^53 / (q 2^s)^2), at
 * least 2. */
uint64_t dafl_contract_exact_rows(const dafl_contract *c);

/* Round x[0..n) to the grid, ties to even. Returns n when every result is
 * within +-q, else the first index that is not (NaN included). Without a grid
 * it changes nothing and looks for values that are not finite. */
size_t dafl_grid_round(const dafl_contract *c, double *x, size_t n);

#endif
