/* SPDX-License-Identifier: Apache-2.0 */
/* Exact sums of products over rows. Workers multiply blocks of rows into
 * partial matrices of doubles; a partial takes no more rows than a double can
 * sum exactly and is then emptied into the integers of a dafl_sum. Which worker
 * took which block, and in which order, leaves no trace. */
#ifndef DAFL_LIB_TALLY_H
#define DAFL_LIB_TALLY_H

#include <pthread.h>

#include "lib/grid.h"
#include "lib/pool.h"
#include "lib/sum.h"

typedef struct {
    const dafl_layout *layout;
    dafl_sum *sum;
    uint64_t exact_rows;
    pthread_mutex_t lock;
    /* [worker * DAFL_PARTS_MAX + part]: the partial and the rows in it. */
    double **partial;
    uint64_t *rows;
    unsigned n_workers;
} dafl_tally;

/* Doubles of scratch that each worker brings. */
size_t dafl_tally_scratch(const dafl_layout *layout);

/* Borrows layout and sum. */
DAFL_CHECK dafl_err dafl_tally_init(dafl_tally *t, const dafl_contract *c,
                                    const dafl_layout *layout, dafl_sum *sum,
                                    unsigned n_workers);
/* Give `worker` its scratch, before its first block. */
void dafl_tally_bind(dafl_tally *t, unsigned worker, double *scratch);

/* part += a' a; a: n x part.cols. */
void dafl_tally_square(dafl_tally *t, unsigned worker, unsigned part,
                       const double *a, size_t n);
/* part += a' b; a: n x part.rows, b: n x part.cols. */
void dafl_tally_product(dafl_tally *t, unsigned worker, unsigned part,
                        const double *a, const double *b, size_t n);
/* Row labels[i] of part += row i of a; a: n x part.cols. */
void dafl_tally_by_label(dafl_tally *t, unsigned worker, unsigned part,
                         const double *a, const uint32_t *labels, size_t n);

/* Empty every partial into the sum and release what init took. */
void dafl_tally_finish(dafl_tally *t);

#endif
