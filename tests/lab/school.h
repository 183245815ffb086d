/* SPDX-License-Identifier: Apache-2.0 */
/* DeepAFL in the lab: a few rows, dealt to the clients, and what was summed
 * over whom. One at a time. */
#ifndef DAFL_TESTS_LAB_SCHOOL_H
#define DAFL_TESTS_LAB_SCHOOL_H

#include "lib/data.h"
#include "lib/pool.h"
#include "protocol/deep.h"
#include "tests/lab/lab.h"

#define SCHOOL_ROWS 300
#define SCHOOL_SITES_MAX 100
#define SCHOOL_QUESTIONS_MAX 16

/* The rows of a client. */
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
    school_plot plots[SCHOOL_SITES_MAX];
    dafl_model *model; /* the server's */
    size_t n_taken;
    dafl_question asked[SCHOOL_QUESTIONS_MAX];
    dafl_members cohorts[SCHOOL_QUESTIONS_MAX];
} school_record;
extern school_record school;

/* Rows at random, and small params that may be changed before the first
 * scenario. For cmocka: the state is not used. */
int school_open(void **state);
int school_close(void **state);

/* The rows are dealt to k clients, to some of them maybe none; its seed is
 * random. */
lab_scenario school_scenario(uint16_t k, uint16_t cell_size);

/* What the lab sums then. A server's side of one's own can begin as a copy of
 * school_server, which is DeepAFL's and takes notes; it is there once the
 * school is open. */
extern const lab_method school_method;
extern dafl_server_method school_server;

#endif
