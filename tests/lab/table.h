/* SPDX-License-Identifier: Apache-2.0 */
/* A method for the lab that sums what the test writes down: the same numbers
 * for every question. */
#ifndef DAFL_TESTS_LAB_TABLE_H
#define DAFL_TESTS_LAB_TABLE_H

#include "tests/lab/lab.h"

typedef struct {
    size_t k, len;
    int64_t *x; /* [client][len], for every question */
    uint32_t questions, taken;
    int64_t *sum; /* the last one that was taken, whatever it was */
    dafl_members cohort;
} table_state;
extern table_state table;

/* One question, all zeros; close it. */
void table_open(uint16_t k, size_t len);
void table_close(void);
/* Whether the last sum is the plain sum over its cohort. */
bool table_holds(void);

extern const dafl_client_method table_client_method;
extern const dafl_server_method table_server_method;
/* For lab_scenario.method. */
extern const lab_method table_method;

#endif
