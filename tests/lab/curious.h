/* SPDX-License-Identifier: Apache-2.0 */
/* A training through the machines with a curious server: it keeps every sum
 * that is opened, whose it is, and the model, and nothing else. What it makes
 * of them is the test's affair.
 *
 *     curious c = {.p = .., .data = &data, .pool = pool, .k = 6};
 *     lab *l = curious_lab(&c, 3, seed);
 *
 *     lab_leave(l, 4, 3, LAB_AT_CAST, LAB_NEXT_SLOT);
 *     lab_check_done(l);
 *     g = curious_part(&c, 1, 0);
 *     ..
 *     lab_free(&l);
 *     curious_drop(&c);
 */
#ifndef DAFL_TESTS_LAB_CURIOUS_H
#define DAFL_TESTS_LAB_CURIOUS_H

#include "lib/data.h"
#include "lib/pool.h"
#include "protocol/deep.h"
#include "tests/lab/lab.h"

#define CURIOUS_CLIENTS 16
#define CURIOUS_SUMS 8

/* Of the question with the same number. */
typedef struct {
    dafl_query query;
    dafl_members cohort;
    dafl_sum sum;
} curious_sum;

typedef struct curious curious;
struct curious {
    dafl_params p; /* checked */
    const dafl_data *data;
    dafl_pool *pool;
    /* Client u has the rows rows[first[u]] .. rows[first[u + 1] - 1]. */
    size_t k;
    const uint32_t *rows;
    size_t first[CURIOUS_CLIENTS + 1];
    /* Called after each sum: here a malicious server changes its model before
     * it sends it. NULL: an honest one. */
    void (*plant)(curious *c, const dafl_query *query);
    /* Called with every answer before it is masked: here a malicious client
     * changes its own. NULL: all are honest. */
    void (*spoil)(curious *c, uint16_t client, const dafl_question *q,
                  int64_t *x, size_t len);
    /* As in lab_scenario, with this struct as ctx. NULL: nothing is touched. */
    lab_intercept *intercept;
    /* What clients, and the server, refuse by default: rows that stand out,
     * too few of them. Else they put up with all of it. */
    bool careful, careful_server;
    /* What the server has: */
    dafl_model *model;
    size_t n_sums;
    curious_sum sums[CURIOUS_SUMS];
};

/* Two layers with relu, ten classes, full sums; checked. */
dafl_params curious_params(size_t features, size_t width, size_t hidden,
                           uint32_t q);

/* Borrows c, which is to outlive the lab, and forgets the sums of the lab
 * before. */
lab *curious_lab(curious *c, uint16_t cell_size, uint64_t seed);
void curious_drop(curious *c);

/* A matrix of the sum of a question; to be freed. */
double *curious_part(const curious *c, uint32_t question, unsigned part);

/* The same of the rows of these clients alone: what an attack is compared
 * with. No server has it. */
double *curious_truth(const curious *c, uint32_t question, unsigned part,
                      const dafl_members *clients);

/* Whether two servers have the same: then nothing that can be computed from it
 * tells their clients apart. */
bool curious_same(const curious *a, const curious *b);

#endif
