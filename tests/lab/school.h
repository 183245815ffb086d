/* SPDX-License-Identifier: Apache-2.0 */
/* DeepAFL as what a lab sums: a few random rows, dealt to the clients, and a
 * tiny model. What was asked and taken is kept, so that the same can be had
 * again without machines.
 *
 *     school_open(seed, layers);
 *     school_deal(k);
 *     school_fit(&scenario);
 *     l = lab_new(&scenario);
 *     ..
 *     plain = school_plain(school.plots, school.k);
 *     assert_same_model(school.model, plain);
 */
#ifndef DAFL_TESTS_LAB_SCHOOL_H
#define DAFL_TESTS_LAB_SCHOOL_H

#include "lib/data.h"
#include "lib/pool.h"
#include "protocol/deep.h"
#include "tests/lab/lab.h"

#define SCHOOL_ROWS 300
#define SCHOOL_SITES 100
#define SCHOOL_QUESTIONS 16

typedef struct {
    const uint32_t *rows;
    size_t n;
} school_plot;

/* One training: who has which rows, and what was summed over whom. */
typedef struct {
    dafl_params p;
    dafl_data data;
    dafl_pool *pool;
    size_t k;
    uint32_t rows[SCHOOL_ROWS];
    school_plot plots[SCHOOL_SITES];
    dafl_model *model;
    size_t n_taken;
    dafl_question asked[SCHOOL_QUESTIONS];
    dafl_members cohorts[SCHOOL_QUESTIONS];
} school_state;
extern school_state school;

/* Rows and parameters; 0 when it is open. */
int school_open(uint64_t seed, size_t layers);
int school_close(void);
/* Cut the rows into k lots, some of them maybe empty. */
void school_deal(size_t k);
/* Let a scenario sum for it. */
void school_fit(lab_scenario *s);
/* Both for a scenario of k clients with a random seed. */
lab_scenario school_scenario(uint16_t k, uint16_t cell_size);
/* What the lab sums then. A server's side of one's own can begin as a copy of
 * school_server, which is DeepAFL's and takes notes; it is there once the
 * school is open. */
extern const lab_method school_method;
extern dafl_server_method school_server;
/* Without machines: the same questions, put to n sites, of which those in the
 * cohort answer (of one all the time). To be freed. */
dafl_model *school_plain(const school_plot *plots, size_t n);

#endif
