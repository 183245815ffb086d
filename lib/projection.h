/* SPDX-License-Identifier: Apache-2.0 */
/* The random linear maps: number 0 is (A, a), number t + 1 is (B_t, b_t).
 * Weights and biases are uniform in +-1/sqrt(inputs), drawn from the run's
 * seed, so they are never sent. */
#ifndef DAFL_LIB_PROJECTION_H
#define DAFL_LIB_PROJECTION_H

#include <stddef.h>

#include "lib/err.h"
#include "lib/params.h"

typedef struct {
    size_t in, out;
    double *w; /* in x out */
    double *b; /* out */
} dafl_projection;

/* Draw number k; B_t = I and b_t = 0 when the run ablates projections. */
DAFL_CHECK dafl_err dafl_projection_draw(dafl_projection *out,
                                         const dafl_params *p, size_t k);
/* A copy of in * out weights and `out` biases. */
DAFL_CHECK dafl_err dafl_projection_copy(dafl_projection *out, size_t in,
                                         size_t n_out, const double *w,
                                         const double *b);
void dafl_projection_drop(dafl_projection *projection);

/* DIR/A.npy and DIR/a.npy, DIR/B0.npy and DIR/b0.npy, .. */
DAFL_CHECK dafl_err dafl_projection_read(dafl_projection *out,
                                         const dafl_params *p, const char *dir,
                                         size_t k, dafl_why *why);
DAFL_CHECK dafl_err dafl_projection_write(const dafl_projection *projection,
                                          const char *dir, size_t k,
                                          dafl_why *why);

/* "A" or "B3", and with `bias` "a" or "b3"; name: 24 bytes. */
void dafl_projection_name(char *name, size_t k, int bias);

#endif
