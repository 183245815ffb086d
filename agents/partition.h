/* SPDX-License-Identifier: Apache-2.0 */
/* How a simulation deals one data set out to its clients. */
#ifndef DAFL_AGENTS_PARTITION_H
#define DAFL_AGENTS_PARTITION_H

#include <stddef.h>
#include <stdint.h>

#include "lib/data.h"
#include "lib/err.h"
#include "lib/stream.h"

typedef struct {
    size_t n_clients;
    uint32_t *rows; /* a permutation of all rows, client after client */
    size_t *first;  /* n_clients + 1: client k has rows[first[k]..first[k+1]) */
} partition;

/* `how`: "iid" (a random deal in equal parts), "dirichlet:ALPHA" (each class
 * spread with Dirichlet(ALPHA) proportions; clients may get nothing) or
 * "shards:S" (rows sorted by label, cut in S * K shards, S to each client). */
DAFL_CHECK dafl_err partition_make(partition *out, const dafl_data *data,
                                   size_t n_clients, const char *how,
                                   const dafl_seed *seed, dafl_why *why);
void partition_drop(partition *p);

/* Change the labels of a share tau of the rows, drawn from the seed, each to
 * another class. */
DAFL_CHECK dafl_err partition_flip_labels(dafl_data *data, double tau,
                                          const dafl_seed *seed, dafl_why *why);

#endif
