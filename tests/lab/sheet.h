/* SPDX-License-Identifier: Apache-2.0 */
/* A method for the lab whose clients have rows of numbers and answer every
 * question with their sum: what changes between two answers is what changed in
 * the rows. The server keeps the sums. */
#ifndef DAFL_TESTS_LAB_SHEET_H
#define DAFL_TESTS_LAB_SHEET_H

#include "tests/lab/lab.h"

#define SHEET_CLIENTS 12
#define SHEET_ROWS 8
#define SHEET_COLS 4
#define SHEET_SUMS 4

typedef struct {
    int64_t rows[SHEET_CLIENTS][SHEET_ROWS][SHEET_COLS];
    size_t n_rows[SHEET_CLIENTS];
    uint8_t basis;      /* another number is another projection */
    bool cell_by_cell;  /* question i is for cell i alone */
    uint32_t questions; /* at most SHEET_SUMS */
    /* what the server has got: */
    uint32_t n_sums;
    int64_t sums[SHEET_SUMS][SHEET_COLS];
    dafl_members cohorts[SHEET_SUMS];
} sheet;

/* Random rows for everybody. */
void sheet_fill(sheet *sh);
/* The sum of the rows that a client has now. */
void sheet_answer(const sheet *sh, size_t client, int64_t x[SHEET_COLS]);

/* For lab_scenario.method; scenario.ctx is the sheet. */
extern const lab_method sheet_method;

#endif
