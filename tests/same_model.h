/* SPDX-License-Identifier: Apache-2.0 */
/* Two models, bit for bit. */
#ifndef DAFL_TESTS_SAME_MODEL_H
#define DAFL_TESTS_SAME_MODEL_H

#include <string.h>

#include "lib/model.h"
#include "tests/check.h"

static inline bool same_doubles(const double *a, const double *b, size_t n)
{
    return n == 0 || memcmp(a, b, n * sizeof *a) == 0;
}

static inline bool same_model(const dafl_model *a, const dafl_model *b)
{
    const dafl_params *p = &a->params;
    bool same = a->n_heads == b->n_heads && a->n_blocks == b->n_blocks;

    for (size_t t = 0; same && t < a->n_heads; t++) {
        const dafl_head *x = &a->heads[t], *y = &b->heads[t];

        same = x->rank == y->rank &&
               same_doubles(x->u, y->u, p->width * x->rank) &&
               same_doubles(x->m, y->m, x->rank * p->classes) &&
               same_doubles(x->w, y->w, p->width * p->classes);
    }
    for (size_t t = 0; same && t < a->n_blocks; t++) {
        const dafl_block *x = &a->blocks[t], *y = &b->blocks[t];

        same =
            x->rank == y->rank && same_doubles(x->n, y->n, p->hidden * x->rank);
    }
    return same;
}

#define assert_same_model(a, b) assert_true(same_model(a, b))

#endif
