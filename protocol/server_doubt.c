/* SPDX-License-Identifier: Apache-2.0 */
/* A sum that cannot be true was taken from the sum of good answers and of a bad
 * one. Which one, masks do not tell; so the question is asked again without one
 * cell at a time, of those that were in it. The cell without which the sum can
 * be true is named and stays out. (A bad client that behaves whenever another
 * cell is missing can so have that one named: what is known is the cohort that
 * went wrong.) */
#include "protocol/server_state.h"

/* Those who were in the bad sum without one cell. */
static dafl_members without(const dafl_server *s, uint16_t cell)
{
    dafl_members out = dafl_server_cell_members(s, cell);

    return dafl_members_minus(&s->suspects, &out);
}

/* The next cell from `from` on that was in the sum and that enough others were
 * with; their number when there is none. */
static uint16_t next_suspect(const dafl_server *s, uint16_t from)
{
    uint16_t n = dafl_server_n_cells(s), cell;

    for (cell = from; cell < n; cell++) {
        dafl_members members = dafl_server_cell_members(s, cell);
        dafl_members left = without(s, cell);
        if (dafl_members_within(&members, &s->suspects) &&
            dafl_members_count(&left) >= s->node.config->policy.m)
            break;
    }
    return cell;
}

void dafl_server_doubt(dafl_server *s)
{
    if (!s->doubting)
        s->suspects = s->u3;
    s->left_out =
        next_suspect(s, s->doubting ? (uint16_t)(s->left_out + 1) : 0);
    s->doubting = s->left_out < dafl_server_n_cells(s);
    if (!s->doubting)
        dafl_server_fail(s, DAFL_E_SUM_INVALID);
    else
        dafl_server_retry(s, DAFL_E_SUM_INVALID);
}

void dafl_server_leave_out(const dafl_server *s, dafl_members *cohort)
{
    dafl_members others;

    if (!s->doubting)
        return;
    others = without(s, s->left_out);
    *cohort = dafl_members_both(cohort, &others);
}

void dafl_server_blame(dafl_server *s)
{
    dafl_members cell;

    if (!s->doubting)
        return;
    s->doubting = false;
    cell = dafl_server_cell_members(s, s->left_out);
    dafl_node_tell(&s->node,
                   &(dafl_event){.kind = DAFL_EVENT_ERROR,
                                 .slot = s->slot,
                                 .number = s->left_out,
                                 .peer = DAFL_NOBODY,
                                 .fault = DAFL_E_SUM_INVALID,
                                 .set = cell},
                   NULL);
    for (size_t u = 0; u < cell.n; u++)
        if (dafl_members_has(&cell, u)) {
            dafl_server_bar(s, u);
            return;
        }
}
