/* SPDX-License-Identifier: Apache-2.0 */
/* How evenly the rows of an operand carry a product that is summed over them.
 * When one row outweighs all others, the sum says much about that row. */
#ifndef DAFL_LIB_WEIGHTS_H
#define DAFL_LIB_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>

/* Squared norms of rows; starts as {0}. */
typedef struct {
    bool used; /* it has columns */
    double total, most;
} dafl_weights;

/* Weigh n rows of an operand with `cols` columns. */
dafl_weights dafl_weights_of(const double *x, size_t n, size_t cols);
void dafl_weights_add(dafl_weights *all, const dafl_weights *more);
/* The share of the heaviest row; 1 when all are zero, 0 without columns. */
double dafl_weights_share(const dafl_weights *w);

#endif
