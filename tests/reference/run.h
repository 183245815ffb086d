/* SPDX-License-Identifier: Apache-2.0 */
/* A whole training inside one process, with everything a comparison wants to
 * see: for the programs of this directory. */
#ifndef DAFL_TESTS_REFERENCE_RUN_H
#define DAFL_TESTS_REFERENCE_RUN_H

#include "lib/site.h"
#include "lib/trainer.h"

/* Who holds which row: site k has rows[first[k]] .. rows[first[k + 1] - 1]. */
typedef struct {
    size_t n_sites;
    const uint32_t *rows;
    const size_t *first;
    const uint32_t *order; /* in which the sites answer; NULL: by number */
    /* [question][site], 2 * layers + 3 questions: 0 for a site that does not
     * answer. NULL: all do. */
    const uint8_t *present;
} deal;

/* Of one layer: what the trainer says, and what the sites' rows say. */
typedef struct {
    dafl_risk said;
    double risk; /* ||Y - Phi W||^2 from the scores */
    /* Traces, which bound the spectral norms: of G, from a Gram sum of its
     * own, and of Pi (0 at the last layer). */
    double trace, pi_trace;
    bool carried; /* G came by an increment */
} layer_facts;

/* Fill `model` (new, empty). facts: layers + 1; *print becomes a hash of every
 * integer of every sum. Both may be NULL. */
DAFL_CHECK dafl_err run_training(dafl_model *model, dafl_pool *pool,
                                 const dafl_data *data, const deal *d,
                                 layer_facts *facts, uint64_t *print,
                                 dafl_why *why);

#endif
