/* SPDX-License-Identifier: Apache-2.0 */
/* The server's side: asks one query after another, sees nothing but their sums
 * and grows the model from them. It never meets a site.
 *
 *   census, G_0 H_0, then per layer  Pi_t Upsilon_t  and  Phi_t'Z (or G H),
 *   report.
 */
#ifndef DAFL_LIB_TRAINER_H
#define DAFL_LIB_TRAINER_H

#include "lib/model.h"
#include "lib/query.h"
#include "lib/set.h"
#include "lib/sum.h"

typedef struct dafl_trainer dafl_trainer;

/* What the sums say about a layer. */
typedef struct {
    bool known;              /* false when the rows in the sums are unknown */
    double risk;             /* ||Y - Phi W||^2 */
    double regularised_risk; /* + lambda ||W||^2 + gamma sum ||Omega||^2 */
} dafl_risk;

/* Takes the (empty) model's parameters and will fill the model, which it
 * borrows. Cohorts are sets over n_sites. Switches OpenBLAS to one thread, as a
 * pool does: the bits of a solve depend on it. */
DAFL_CHECK dafl_err dafl_trainer_new(dafl_trainer **out, dafl_model *model,
                                     size_t n_sites);
void dafl_trainer_free(dafl_trainer **trainer);

/* Whether a training of this kind asks for increments at all. */
bool dafl_trainer_increments(const dafl_params *p);

/* The next query, if `cohort` is going to answer it: an increment only when it
 * is the cohort both of the residual sum and of the G that would be added to,
 * else a full Gram query. */
void dafl_trainer_next(const dafl_trainer *trainer, dafl_query *out,
                       const dafl_set *cohort);

/* Take the sum that `cohort` gave to `query`, solve, and append to the model.
 * DAFL_ERR_ARG when the query is not the next one or an increment comes from
 * another cohort; DAFL_ERR_NUMERIC, trainer and model unchanged, when the sum
 * has no finite solution; DAFL_ERR_INPUT when there are no rows or more than
 * the contract allows. */
DAFL_CHECK dafl_err dafl_trainer_take(dafl_trainer *trainer,
                                      const dafl_query *query,
                                      const dafl_sum *sum,
                                      const dafl_set *cohort, dafl_why *why);

/* The G (d x d) that the increment `query` would give with this sum, for a
 * caller that judges sums before they are taken. */
DAFL_CHECK dafl_err dafl_trainer_carried(const dafl_trainer *trainer, double *g,
                                         const dafl_query *query,
                                         const dafl_sum *sum);

/* Of the newest head. */
dafl_risk dafl_trainer_risk(const dafl_trainer *trainer);
/* Rows counted by the census. */
uint64_t dafl_trainer_rows(const dafl_trainer *trainer);

#endif
