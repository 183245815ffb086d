/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lab/sheet.h"

#include <stdlib.h>
#include <string.h>

#include "tests/check.h"
#include "tests/lab/silent.h"
#include "tests/lab/inside.h"

typedef struct {
    sheet *sheet;
    uint16_t client;
} desk;

void sheet_fill(sheet *sh)
{
    for (size_t u = 0; u < SHEET_CLIENTS; u++) {
        sh->n_rows[u] = SHEET_ROWS / 2;
        for (size_t r = 0; r < SHEET_ROWS; r++)
            for (size_t i = 0; i < SHEET_COLS; i++)
                sh->rows[u][r][i] = (int64_t)random_size(0, 2000) - 1000;
    }
}

void sheet_answer(const sheet *sh, size_t client, int64_t x[SHEET_COLS])
{
    memset(x, 0, SHEET_COLS * sizeof *x);
    for (size_t r = 0; r < sh->n_rows[client]; r++)
        for (size_t i = 0; i < SHEET_COLS; i++)
            x[i] += sh->rows[client][r][i];
}

static void *new_client(lab *l, uint16_t client)
{
    desk *d = lab_alloc(1, sizeof *d);

    *d = (desk){lab_scenario_of(l)->ctx, client};
    return d;
}

static void *new_server(lab *l)
{
    sheet *sh = lab_scenario_of(l)->ctx;

    sh->n_sums = 0; /* the journal gives it its sums again */
    return sh;
}

static dafl_fault shape(void *self, const dafl_question *q, dafl_shape *out)
{
    (void)self;
    (void)q;
    *out = (dafl_shape){.len = SHEET_COLS};
    return DAFL_FAULT_NONE;
}

static dafl_fault answer(void *self, const dafl_question *q, int64_t *x,
                         size_t len)
{
    const desk *d = self;

    (void)q;
    assert_int_equal(len, SHEET_COLS);
    sheet_answer(d->sheet, d->client, x);
    return DAFL_FAULT_NONE;
}

static dafl_fault data(void *self, dafl_digest *rows, dafl_digest *basis)
{
    const desk *d = self;
    const sheet *sh = d->sheet;

    dafl_hash_one(rows, "sheet/rows",
                  (dafl_bytes){(const uint8_t *)sh->rows[d->client],
                               sh->n_rows[d->client] * sizeof sh->rows[0][0]});
    dafl_hash_one(basis, "sheet/basis", (dafl_bytes){&sh->basis, 1});
    return DAFL_FAULT_NONE;
}

static bool next(void *self, bool plain, dafl_question *out)
{
    const sheet *sh = self;

    (void)plain;
    *out = (dafl_question){.number = sh->n_sums};
    return sh->n_sums < sh->questions;
}

static void choose(void *self, const dafl_question *q,
                   const dafl_roster *roster, dafl_members *cohort)
{
    dafl_members cell = dafl_roster_cell(roster, (uint16_t)q->number);

    if (((const sheet *)self)->cell_by_cell)
        *cohort = dafl_members_both(cohort, &cell);
}

static dafl_fault take(void *self, const dafl_question *q, const int64_t *sum,
                       size_t len, const dafl_members *cohort, dafl_why *why)
{
    sheet *sh = self;

    (void)q;
    (void)why;
    assert_true(len == SHEET_COLS && sh->n_sums < SHEET_SUMS);
    memcpy(sh->sums[sh->n_sums], sum, len * sizeof *sum);
    sh->cohorts[sh->n_sums++] = *cohort;
    return DAFL_FAULT_NONE;
}

static const dafl_client_method client_method = {.follow = follow_nothing,
                                                 .shape = shape,
                                                 .answer = answer,
                                                 .data = data,
                                                 .rewind = rewind_nothing};
static const dafl_server_method server_method = {.next = next,
                                                 .shape = shape,
                                                 .segment = segment_of_nothing,
                                                 .choose = choose,
                                                 .take = take};
const lab_method sheet_method = {.name = "sheet",
                                 .client = &client_method,
                                 .server = &server_method,
                                 .new_client = new_client,
                                 .new_server = new_server,
                                 .free_client = free,
                                 .free_server = free_nothing};
