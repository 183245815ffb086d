/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lab/table.h"

#include "tests/check.h"
#include "tests/lab/silent.h"

table_state table;

void table_open(uint16_t k, size_t len)
{
    table.k = k;
    table.len = len;
    table.questions = 1;
    table.x = calloc(k * len, sizeof *table.x);
    table.sum = calloc(len, sizeof *table.sum);
    assert_non_null(table.x);
    assert_non_null(table.sum);
}

void table_close(void)
{
    free(table.x);
    free(table.sum);
    memset(&table, 0, sizeof table);
}

bool table_holds(void)
{
    bool equal = table.taken > 0;

    for (size_t i = 0; i < table.len && equal; i++) {
        int64_t plain = 0;
        for (size_t u = 0; u < table.k; u++)
            if (dafl_members_has(&table.cohort, u))
                plain += table.x[u * table.len + i];
        equal = plain == table.sum[i];
    }
    return equal;
}

static void *table_client(lab *l, uint16_t client)
{
    uint16_t *self = malloc(sizeof *self);

    (void)l;
    assert_non_null(self);
    *self = client;
    return self;
}

static void *table_server(lab *l)
{
    (void)l;
    table.taken = 0;
    return malloc(1);
}

static dafl_fault table_shape(void *self, const dafl_question *q,
                              dafl_shape *out)
{
    (void)self;
    (void)q;
    *out = (dafl_shape){.len = table.len};
    return DAFL_FAULT_NONE;
}

static dafl_fault table_answer(void *self, const dafl_question *q, int64_t *x,
                               size_t len)
{
    (void)q;
    memcpy(x, table.x + *(uint16_t *)self * table.len, len * sizeof *x);
    return DAFL_FAULT_NONE;
}

static bool table_next(void *self, bool plain, dafl_question *out)
{
    (void)self;
    (void)plain;
    *out = (dafl_question){.number = table.taken};
    return table.taken < table.questions;
}

static dafl_fault table_take(void *self, const dafl_question *q,
                             const int64_t *sum, size_t len,
                             const dafl_members *cohort, dafl_why *why)
{
    (void)self;
    (void)q;
    (void)why;
    memcpy(table.sum, sum, len * sizeof *sum);
    table.cohort = *cohort;
    table.taken++;
    return DAFL_FAULT_NONE;
}

const dafl_client_method table_client_method = {
    .follow = follow_nothing,
    .shape = table_shape,
    .answer = table_answer,
    .rewind = rewind_nothing,
};

const dafl_server_method table_server_method = {
    .next = table_next,
    .shape = table_shape,
    .segment = segment_of_nothing,
    .take = table_take,
};

const lab_method table_method = {
    .name = "table",
    .client = &table_client_method,
    .server = &table_server_method,
    .new_client = table_client,
    .new_server = table_server,
    .free_client = free,
    .free_server = free,
};
