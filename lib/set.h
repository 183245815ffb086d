/* SPDX-License-Identifier: Apache-2.0 */
/* A set of site numbers: a cohort. */
#ifndef DAFL_LIB_SET_H
#define DAFL_LIB_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"

typedef struct {
    size_t n; /* numbers 0 .. n-1 */
    uint64_t *words;
} dafl_set;

/* Empty. */
DAFL_CHECK dafl_err dafl_set_init(dafl_set *set, size_t n);
void dafl_set_drop(dafl_set *set);
void dafl_set_clear(dafl_set *set);
void dafl_set_add(dafl_set *set, size_t member);
bool dafl_set_has(const dafl_set *set, size_t member);
size_t dafl_set_count(const dafl_set *set);
/* Sets over different n differ. */
bool dafl_set_equal(const dafl_set *a, const dafl_set *b);
/* Over the same n. */
void dafl_set_copy(dafl_set *to, const dafl_set *from);

#endif
