/* SPDX-License-Identifier: Apache-2.0 */
/* What a site answers and the server adds up: a few named matrices laid end to
 * end as one vector of integers. The layout is known to both sides beforehand;
 * only the vector travels. */
#ifndef DAFL_LIB_SUM_H
#define DAFL_LIB_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"

typedef struct {
    const char *name;
    size_t rows, cols;
    bool upper;    /* square and symmetric: only the upper triangle is kept */
    unsigned frac; /* the integers count units of 2^-frac */
    size_t offset, len;
} dafl_part;

#define DAFL_PARTS_MAX 4

typedef struct {
    unsigned n;
    dafl_part parts[DAFL_PARTS_MAX];
    size_t len; /* integers in all */
} dafl_layout;

/* Append a matrix. */
void dafl_layout_add(dafl_layout *layout, const char *name, size_t rows,
                     size_t cols, bool upper, unsigned frac);

/* The vector: integers, or doubles in a run without a grid. */
typedef struct {
    size_t len;
    int64_t *i;
    double *f;
} dafl_sum;

/* Zeros. */
DAFL_CHECK dafl_err dafl_sum_init(dafl_sum *sum, size_t len, bool exact);
void dafl_sum_drop(dafl_sum *sum);
void dafl_sum_clear(dafl_sum *sum);
/* a += b, of equal length and kind; integers wrap like the ring. */
void dafl_sum_add(dafl_sum *a, const dafl_sum *b);

/* Add a dense matrix of doubles, multiples of 2^-frac below 2^53 units, to a
 * part; of an `upper` part only the upper triangle is read. */
void dafl_sum_put(dafl_sum *sum, const dafl_part *part, const double *matrix);
/* The part as a dense matrix of doubles, symmetric if `upper`. */
void dafl_sum_get(const dafl_sum *sum, const dafl_part *part, double *matrix);

#endif
