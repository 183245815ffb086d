/* SPDX-License-Identifier: Apache-2.0 */
/* A federation inside one process: K sites, each with its own rows, and a
 * trainer that is handed the sums of their answers and nothing else. The sums
 * are added up plainly, or go through the protocol (agents/secure.h). */
#ifndef DAFL_AGENTS_FEDERATION_H
#define DAFL_AGENTS_FEDERATION_H

#include "agents/partition.h"
#include "agents/secure.h"
#include "lib/pool.h"
#include "lib/site.h"
#include "lib/trainer.h"

typedef struct {
    double participation; /* share of the sites in each sum, (0, 1] */
    bool consistent;      /* one draw per layer instead of one per sum */
    bool shuffle;         /* visit the sites in an order drawn from `order` */
    uint64_t order;
    bool masks; /* through the protocol, as `secure` says */
    secure_plan secure;
} federation_plan;

typedef struct federation federation;

/* Deal the rows out and compute every site's first features. Borrows model,
 * pool and data (test may be NULL). */
DAFL_CHECK dafl_err federation_new(federation **out, dafl_model *model,
                                   dafl_pool *pool, const dafl_data *train,
                                   const dafl_data *test, const partition *p,
                                   const federation_plan *plan, dafl_why *why);
void federation_free(federation **fed);

/* What one query cost. */
typedef struct {
    dafl_query query;
    size_t cohort;          /* sites in the sum */
    size_t slots, dropouts; /* attempts, clients that dropped out of them */
    /* wall seconds: sites computing, masking; server unmasking, solving */
    double compute_s, masking_s, unmasking_s, solve_s;
    double upload, download; /* bytes per site */
} federation_step;

/* Ask the next query, add the answers up, hand the sum to the trainer.
 * step->query.kind is DONE when there was nothing left to ask. */
DAFL_CHECK dafl_err federation_ask(federation *fed, federation_step *step,
                                   dafl_why *why);

/* Queries of the whole training. */
size_t federation_total_queries(const federation *fed);

/* What the protocol has cost; NULL when sums are added up plainly. */
const secure *federation_secure(const federation *fed);

dafl_risk federation_risk(const federation *fed);
/* Share of correct answers of a layer's head over the rows of the sites in the
 * newest sum, or over the test rows (NaN without). */
double federation_train_accuracy(const federation *fed, size_t layer);
double federation_test_accuracy(const federation *fed, size_t layer);
/* Rows of the smallest and largest site. */
void federation_site_sizes(const federation *fed, size_t *least, size_t *most);

#endif
