/* SPDX-License-Identifier: Apache-2.0 */
/* One site's rows and the work it does on them, layer by layer. A site sees
 * the model and its own rows; what leaves it are the integer matrices that it
 * adds to a dafl_sum.
 *
 * The order of calls is fixed by the layers:
 *   new, [gram], then per layer t:  hidden(t), advance(t), [gram];
 * at the end score. Every site makes every hidden and advance call, whether or
 * not its answer is wanted (sum = NULL when it is not), so its features follow
 * the model. After an error other than DAFL_ERR_ARG the site and the sum it was
 * adding to are of no more use. */
#ifndef DAFL_LIB_SITE_H
#define DAFL_LIB_SITE_H

#include "lib/data.h"
#include "lib/model.h"
#include "lib/pool.h"
#include "lib/query.h"

typedef struct dafl_site dafl_site;

/* Take the rows index[0..n) of `data` (all n of them when index is NULL; n may
 * be 0) and compute Phi_0. `first` is projection 0, NULL for AFL. Borrows
 * params and pool for its life and data for the call. DAFL_ERR_INPUT, with the
 * row, for a feature that is not finite or (with its value) beyond the
 * contract. */
DAFL_CHECK dafl_err dafl_site_new(dafl_site **out, const dafl_params *params,
                                  dafl_pool *pool, const dafl_data *data,
                                  const uint32_t *index, size_t n,
                                  const dafl_projection *first, dafl_why *why);
/* Wipes everything. */
void dafl_site_free(dafl_site **site);

size_t dafl_site_rows(const dafl_site *site);

/* Rows and rows per class. */
void dafl_site_census(const dafl_site *site, dafl_sum *sum);

/* G and H' of the present features. */
DAFL_CHECK dafl_err dafl_site_gram(dafl_site *site, dafl_sum *sum,
                                   dafl_why *why);

/* F_t = s(Phi_t B_t + b_t); counts the head's correct answers; adds Pi_t and
 * Upsilon_t. */
DAFL_CHECK dafl_err dafl_site_hidden(dafl_site *site, const dafl_head *head,
                                     const dafl_projection *projection,
                                     dafl_sum *sum, dafl_why *why);

/* Z = F_t N_t; adds the increment Phi_t'Z; Phi_t+1 = Phi_t + Z U_t'. */
DAFL_CHECK dafl_err dafl_site_advance(dafl_site *site, const dafl_head *head,
                                      const dafl_block *block, dafl_sum *sum,
                                      dafl_why *why);

/* Apply a head to the present features: count its correct answers and, unless
 * NULL, write scores (rows x classes). */
DAFL_CHECK dafl_err dafl_site_score(dafl_site *site, const dafl_head *head,
                                    double *scores, dafl_why *why);

/* Correct answers of the head of `layer`, counted by hidden or score. */
uint64_t dafl_site_correct(const dafl_site *site, size_t layer);

/* Bring the features to where `query` needs them and answer it: the calls above
 * in their order. `projection` is number layer + 1 for a residual query and,
 * when Omega is ablated, number `layer` for a Gram query; else unused.
 * sum = NULL follows the model without answering. A Gram query
 * may be asked again, or after the increment to the same layer; an increment
 * cannot (its base is gone). DAFL_ERR_ARG when the features are at another
 * layer. A report counts the last
 * head's answers; it adds the counts only when sum is given (held rows: see
 * below). */
DAFL_CHECK dafl_err dafl_site_answer(dafl_site *site, const dafl_model *model,
                                     const dafl_query *query,
                                     const dafl_projection *projection,
                                     dafl_sum *sum, dafl_why *why);

/* How much a single row weighs in what was answered last: the largest share
 * that one row has of the squared norm of an operand of the sum (1 for an
 * operand that is zero). 0 when the answer had no operands. */
double dafl_site_prominence(const dafl_site *site);

/* The counts of a site and of its held-out rows (NULL: none). */
void dafl_site_report(const dafl_site *site, const dafl_site *held,
                      dafl_sum *sum);

#endif
