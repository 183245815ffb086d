/* SPDX-License-Identifier: Apache-2.0 */
/* A trap for one row (S16). The server has a guess of it, say a poor copy of
 * the picture, and plants a model in which every other row of everybody is
 * driven below zero in the trapped units of layer 1, where relu silences it.
 * The units' part of Pi_1 is then f f' of one row, and f is read off.
 *
 * The order of things:
 *     head 0 is there:     trap_head
 *     Pi_0 and Upsilon_0:  trap_block
 *     Pi_1:                trap_row
 */
#ifndef DAFL_TESTS_LAB_TRAP_H
#define DAFL_TESTS_LAB_TRAP_H

#include "lib/model.h"
#include "lib/sum.h"

/* The first `units` units of layer 1 are trapped; all of them if that is
 * hidden (which is to be below width then). The model has relu. */
void trap_head(dafl_model *model, size_t units);

/* x: raw features as the server guesses them; from the first parts of the sums
 * of census and residual 0. How far below zero the others come is limited by q:
 * `height` is how far above zero the guess itself is lifted. */
void trap_block(dafl_model *model, size_t units, const double *x, double rows,
                const double *pi, const double *upsilon, double height);

/* Whether exactly one row is alive in the trapped units of Pi_1: then f[0 ..
 * units) are its hidden features there, exactly. */
bool trap_row(double *f, const dafl_params *p, size_t units,
              const dafl_sum *sum);

#endif
