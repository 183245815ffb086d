/* SPDX-License-Identifier: Apache-2.0 */
/* Planted models: what a malicious server sends instead of the head and the
 * block of layer 0, so that every row becomes
 *
 *     Phi_1 = Phi_0 + (F_0 n) m'
 *
 * for an n and m of its choice. They pass all that a client asks of a model:
 * finite, below 1e6, U'U = I. W is 0, so that R = Y and Upsilon 1 = F'1. */
#ifndef DAFL_TESTS_LAB_PLANT_H
#define DAFL_TESTS_LAB_PLANT_H

#include "lib/model.h"

/* Replace head 0; m: d. */
void plant_head(dafl_model *model, const double *m);
/* Replace block 0, once there is one; n: dF. */
void plant_block(dafl_model *model, const double *n, const double *m);

/* The smallest m that adds 1 to the units [first, first + units) of layer 1:
 * m'B_1 = 1 there. d, to be freed. */
double *plant_lift(const dafl_projection *b, size_t first, size_t units);
/* The n for which F n is as near to 1 for every row as it can be, from Pi_0 and
 * F'1. dF, to be freed. */
double *plant_ones(const dafl_params *p, const double *pi, const double *f1);
/* F'1 from Upsilon_0 under a planted head. dF, to be freed. */
double *plant_totals(const dafl_params *p, const double *upsilon);

#endif
