/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a sum can be true: what a server can tell of a sum that was torn,
 * poisoned or opened wrongly, before anything is solved from it. */
#ifndef DAFL_LIB_JUDGE_H
#define DAFL_LIB_JUDGE_H

#include "lib/query.h"
#include "lib/trainer.h"

/* DAFL_ERR_NUMERIC, with the reason, for an answer to `query` that no rows
 * within the contract can have given: counts that do not add up, entries that
 * are too large, a Gram matrix with a negative eigenvalue (also the one that an
 * increment would lead to). For sums of integers. */
DAFL_CHECK dafl_err dafl_judge_sum(const dafl_trainer *trainer,
                                   const dafl_params *params,
                                   const dafl_query *query, const dafl_sum *sum,
                                   dafl_why *why);

#endif
