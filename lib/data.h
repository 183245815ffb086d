/* SPDX-License-Identifier: Apache-2.0 */
/* A labelled data set: features in a mapped .npy file, labels in memory. */
#ifndef DAFL_LIB_DATA_H
#define DAFL_LIB_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"
#include "lib/npy.h"

typedef struct {
    char *path;  /* of the features, for messages */
    dafl_npy x;  /* n x features */
    uint32_t *y; /* n labels, or NULL */
    size_t n;
    size_t classes; /* largest label + 1, or what the caller said */
} dafl_data;

/* Open features and, unless labels_path is NULL, labels (integers from 0).
 * classes = 0 takes the largest label plus one. Refused: counts that differ,
 * no rows, labels that are not integers or out of range. Whether the features
 * are finite is seen when they are read. */
DAFL_CHECK dafl_err dafl_data_open(dafl_data *out, const char *features_path,
                                   const char *labels_path, size_t classes,
                                   dafl_why *why);
/* Wipes the labels. */
void dafl_data_close(dafl_data *data);

#endif
