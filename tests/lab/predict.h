/* SPDX-License-Identifier: Apache-2.0 */
/* A sum guessed from others: Pi of a layer from its Gram sums, as if the
 * pre-activations Phi B + b were jointly Gaussian. G and H give their mean and
 * covariance; Mehler's formula, to third order, the rest. */
#ifndef DAFL_TESTS_LAB_PREDICT_H
#define DAFL_TESTS_LAB_PREDICT_H

#include "lib/params.h"
#include "lib/projection.h"

/* g: d x d, ht: H' (C x d), n: rows. dF x dF, to be freed. */
double *predict_pi(const dafl_params *p, const dafl_projection *b, double n,
                   const double *g, const double *ht);

#endif
