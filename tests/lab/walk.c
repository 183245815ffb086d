/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lab/walk_inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "crypto/he.h"
#include "tests/lab/school.h"

#define DAY 86400000

const char *walk_op_name(walk_op op)
{
    static const char *const names[WALK_OPS] = {
        "drop",    "late",       "restart client", "restart server", "replay",
        "reorder", "equivocate", "bad share",      "bad upload",     "clock"};

    return (size_t)op < WALK_OPS ? names[op] : "?";
}

uint64_t walk_below(walk *w, uint64_t n)
{
    return dafl_draw_below(&w->dice, n);
}

uint64_t walk_between(walk *w, uint64_t from, uint64_t to)
{
    return from + walk_below(w, to - from + 1);
}

uint16_t walk_client(walk *w)
{
    return (uint16_t)walk_below(w, WALK_CLIENTS);
}

uint16_t walk_peer(walk *w)
{
    return w->report->sealed && walk_below(w, 4) == 0 ? lab_holder_index(w->lab)
                                                      : walk_client(w);
}

uint16_t walk_colluder(walk *w)
{
    uint16_t u;

    do
        u = walk_client(w);
    while (!dafl_members_has(&w->colluders, u));
    return u;
}

void walk_broken(walk *w, const char *format, ...)
{
    va_list args;

    if (w->report->broken[0] != '\0')
        return;
    va_start(args, format);
    (void)vsnprintf(w->report->broken, sizeof w->report->broken, format, args);
    va_end(args);
}

/* ---- the scenario ---- */

/* Cells of 12 clients; each is large enough for c colluders. */
static const struct {
    uint16_t c, sizes[4];
} layouts[] = {
    {0, {3, 3, 3, 3}}, {0, {2, 3, 3, 4}}, {0, {2, 2, 4, 4}}, {0, {2, 5, 5, 0}},
    {1, {3, 3, 3, 3}}, {1, {3, 4, 5, 0}}, {1, {3, 3, 6, 0}}, {1, {4, 4, 4, 0}},
    {2, {4, 4, 4, 0}}, {2, {4, 4, 4, 0}}, {2, {4, 4, 4, 0}}, {2, {4, 4, 4, 0}},
};

/* Clients of a cell are anywhere in the roster. */
static void deal_cells(walk *w, uint16_t *cells, const uint16_t *sizes)
{
    size_t at = 0;

    for (uint16_t cell = 0; cell < 4; cell++)
        for (uint16_t i = 0; i < sizes[cell]; i++)
            cells[at++] = cell;
    for (size_t i = WALK_CLIENTS; i > 1; i--) {
        size_t j = (size_t)walk_below(w, i);
        uint16_t swap = cells[j];
        cells[j] = cells[i - 1];
        cells[i - 1] = swap;
    }
}

/* The machines' own randomness is one of a few worlds: there is no other in
 * what they do before the first trouble, and curve operations are remembered
 * (tests/memo.c). */
static lab_scenario draw_scenario(walk *w, uint16_t *cells)
{
    size_t layout = (size_t)walk_below(w, sizeof layouts / sizeof layouts[0]);
    uint16_t c = layouts[layout].c;
    lab_scenario s = lab_scenario_for(WALK_CLIENTS, 1, 1000 + walk_below(w, 4));

    deal_cells(w, cells, layouts[layout].sizes);
    s.cells = cells;
    s.floor.any_cohort = false;
    s.config.policy.g = (uint16_t)(c + 2);
    s.config.policy.n_min = (uint16_t)walk_between(w, 8, WALK_CLIENTS);
    lab_scenario_collude(&s, c);
    s.config.policy.m = (uint16_t)walk_between(w, c + 2u, 6);
    s.config.tries = (uint16_t)walk_below(w, 3);
    s.config.slots = walk_below(w, 4) == 0 ? 6 : 0;
    s.questions = WALK_QUESTIONS;
    s.ties = true;
    s.tail = (uint32_t)walk_between(w, 2, 6);
    s.wrong_sums_expected = true;
    s.intercept = walk_intercept;
    s.ctx = w;
    w->report->deep = walk_below(w, 16) == 0;
    if (w->report->deep)
        school_fit(&s);
    if (w->report->sealed) {
        lab_scenario_encrypt(&s);
        s.config.chunk = 1 << 20;
    }
    return s;
}

/* ---- a walk ---- */

static void begin(walk *w, uint16_t *cells)
{
    lab_scenario s = draw_scenario(w, cells);
    size_t colluders = (size_t)walk_below(w, s.config.policy.c + 1u);

    w->lab = lab_new(&s);
    /* Early enough, or late enough, for any jumps. */
    lab_clock_jump(w->lab, (int64_t)20000 * DAY);
    w->colluders = w->lies_of_shares = w->lies_of_uploads =
        lab_members(w->lab, 0);
    while (dafl_members_count(&w->colluders) < colluders)
        dafl_members_add(&w->colluders, walk_client(w));
    liar_init(&w->liar, w->lab);
    w->liar.colluders = w->colluders;
    w->leak = leak_new(w->lab, &w->colluders, walk_below(w, 2) == 0);
    w->left = (uint32_t)walk_between(w, 2, 16);
    w->spacing = 1200 / w->left;
    for (size_t u = 0; u < WALK_CLIENTS + 2; u++)
        w->back_at[u] = LAB_NEVER;
}

static void step_on(walk *w)
{
    bool more = true;

    while (more && w->report->broken[0] == '\0') {
        walk_trouble(w);
        more = lab_step(w->lab);
        if (lab_violation(w->lab) != NULL)
            walk_broken(w, "%s", lab_violation(w->lab));
        else
            leak_watch(w->leak);
        if (w->report->broken[0] == '\0')
            walk_judge(w, false);
    }
}

static bool somebody_is_away(const walk *w)
{
    for (uint16_t u = 0; u < WALK_CLIENTS; u++)
        if (u < lab_server_index(w->lab) &&
            (!lab_connected(w->lab, u) || lab_client(w->lab, u) == NULL ||
             dafl_client_where(lab_client(w->lab, u)) == DAFL_CLIENT_OUT))
            return true;
    return false;
}

static void end(walk *w)
{
    const dafl_server *server = lab_server(w->lab);

    w->report->outcome = lab_outcome_of(w->lab);
    w->report->fault =
        server == NULL ? DAFL_FAULT_NONE : dafl_server_fault(server);
    /* A server waits without end for clients that are gone before a slot. */
    if (w->report->outcome == LAB_HUNG &&
        !(server != NULL && dafl_server_awaits(server) && somebody_is_away(w)))
        walk_broken(w, "the run hangs");
    if (w->report->outcome == LAB_FAILED && w->report->fault == DAFL_FAULT_NONE)
        walk_broken(w, "the run ends without a reason");
    if (w->report->broken[0] == '\0')
        walk_judge(w, true);
    leak_free(&w->leak);
    liar_drop(&w->liar);
    lab_list_drop(&w->poisoned);
    lab_free(&w->lab);
}

void walk_run(walk_report *out, uint64_t seed, uint64_t number)
{
    static walk w;
    uint16_t cells[WALK_CLIENTS];
    dafl_seed dice;

    memset(&w, 0, sizeof w);
    memset(out, 0, sizeof *out);
    w.report = out;
    out->sealed = dafl_he_built() && number % WALK_SEALED == WALK_SEALED / 2;
    lab_dice_derive(dice.b, sizeof dice.b, seed, "walk", (uint32_t)number);
    dafl_draw_init(&w.dice, &dice, DAFL_STREAM_SIMULATION, 2);
    begin(&w, cells);
    step_on(&w);
    end(&w);
}
