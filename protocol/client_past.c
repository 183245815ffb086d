/* SPDX-License-Identifier: Apache-2.0 */
/* What a client has given before. Sums of the same rows, seen through the same
 * projection, in the company of others each time, could be subtracted from each
 * other until one client is left; and sums of rows that change show the change.
 * So the rows stay the same during a run, and keep their cell over all runs. */
#include <stdlib.h>
#include <string.h>

#include "protocol/client_state.h"
#include "protocol/weaken.h"

enum { KEY_BYTES = 32 };

static int compare_keys(const void *a, const void *b)
{
    return memcmp(a, b, KEY_BYTES);
}

/* The members of our cell by their keys: numbers and names are the roster's.
 * Where any cohort goes, everybody is a cell. */
static void digest_cell(const dafl_client *c, dafl_digest *out)
{
    const dafl_roster *roster = c->node.roster;
    dafl_members cell =
        dafl_roster_cell(roster, roster->parties[c->node.index].cell);
    uint8_t keys[DAFL_CLIENTS_MAX][KEY_BYTES];
    size_t n = 0;

    for (size_t u = 0; u < cell.n; u++)
        if (u == c->node.index ||
            (c->node.config->policy.g != 1 && dafl_members_has(&cell, u)))
            memcpy(keys[n++], roster->parties[u].id.sign_pk, sizeof keys[0]);
    qsort(keys, n, sizeof keys[0], compare_keys);
    dafl_hash_one(out, "deepafl/cell",
                  (dafl_bytes){&keys[0][0], n * sizeof keys[0]});
}

static dafl_fault look(const dafl_client *c, dafl_given *out)
{
    *out = (dafl_given){0};
    digest_cell(c, &out->cell);
    return c->method->data == NULL
               ? DAFL_FAULT_NONE
               : c->method->data(c->method_self, &out->rows, &out->basis);
}

static bool same_data(const dafl_given *a, const dafl_given *b)
{
    return dafl_digest_equal(&a->rows, &b->rows) &&
           dafl_digest_equal(&a->basis, &b->basis);
}

dafl_fault dafl_client_look_back(dafl_client *c, bool same_run)
{
    bool changed = false;
    dafl_given now;
    dafl_fault fault = look(c, &now);

    if (fault != DAFL_FAULT_NONE)
        return fault;
    if (same_run && !same_data(&now, &c->given) && !DAFL_WEAK(DATA))
        return DAFL_E_DATA_CHANGED;
    for (size_t i = 0; i < c->n_past && c->method->data != NULL; i++) {
        const dafl_given *past = &c->past[i];
        if (!dafl_digest_equal(&past->basis, &now.basis))
            continue;
        if (!dafl_digest_equal(&past->rows, &now.rows))
            changed = true;
        else if (!dafl_digest_equal(&past->cell, &now.cell) &&
                 !DAFL_WEAK(CELL_HISTORY))
            return DAFL_E_CELL_CHANGED;
    }
    if (changed)
        dafl_node_error(&c->node, 0, DAFL_NOBODY, DAFL_E_ROW_DIFF);
    c->given = now;
    return DAFL_FAULT_NONE;
}

dafl_fault dafl_client_look_again(dafl_client *c)
{
    dafl_given now;
    dafl_fault fault = look(c, &now);

    if (fault == DAFL_FAULT_NONE && !same_data(&now, &c->given) &&
        !DAFL_WEAK(DATA))
        fault = DAFL_E_DATA_CHANGED;
    return fault;
}

dafl_err dafl_client_give(dafl_client *c)
{
    dafl_given *more;

    for (size_t i = 0; i < c->n_past; i++)
        if (same_data(&c->past[i], &c->given) &&
            dafl_digest_equal(&c->past[i].cell, &c->given.cell))
            return DAFL_OK;
    more = realloc(c->past, (c->n_past + 1) * sizeof *more);
    if (more == NULL)
        return DAFL_ERR_NOMEM;
    c->past = more;
    c->past[c->n_past++] = c->given;
    return DAFL_OK;
}
