/* SPDX-License-Identifier: Apache-2.0 */
/* A tall matrix kept between passes. Values on the default grid are small
 * integers times 2^-s and fit 16 bits, finer ones a float, both exactly: a
 * quarter or half of the memory and of the traffic of doubles. */
#ifndef DAFL_LIB_ROWS_H
#define DAFL_LIB_ROWS_H

#include <stddef.h>

#include "lib/err.h"
#include "lib/grid.h"

typedef struct {
    size_t n, cols;
    enum { DAFL_ROWS_I16, DAFL_ROWS_F32, DAFL_ROWS_F64 } kind;
    double unit; /* I16: what one counts for, 2^-s */
    void *data;  /* n * cols */
} dafl_rows;

DAFL_CHECK dafl_err dafl_rows_init(dafl_rows *rows, const dafl_contract *c,
                                   size_t n, size_t cols);
/* Wipes and releases. */
void dafl_rows_drop(dafl_rows *rows);

/* Rows first .. first+n as doubles, then zero rows up to `padded`. */
void dafl_rows_load(const dafl_rows *rows, double *out, size_t first, size_t n,
                    size_t padded);
/* Keep one row, already rounded. */
void dafl_rows_store(dafl_rows *rows, const double *row, size_t at);

#endif
