/* SPDX-License-Identifier: Apache-2.0 */
/* What a client asks of its own data before it answers. */
#include "tests/lab/attack.h"

#include "tests/check.h"
#include "tests/lab/sheet.h"

#define K 9

static lab_scenario scenario(sheet *sh, uint64_t seed)
{
    lab_scenario s = lab_scenario_for(K, 3, seed);

    s.method = &sheet_method;
    s.ctx = sh;
    s.config.slots = 8;
    return s;
}

/* ---- L3: rows that change ---- */

#define GROWS 2 /* the client with one row more */

/* Whether the second sum minus the first is the new row. */
static bool row_is_seen(const sheet *sh)
{
    const int64_t *row = sh->rows[GROWS][sh->n_rows[GROWS] - 1];

    for (size_t i = 0; i < SHEET_COLS; i++)
        if (sh->n_sums < 2 || sh->sums[1][i] - sh->sums[0][i] != row[i])
            return false;
    return true;
}

/* One row more after the first of two sums. */
static bool row_added(bool stopped, bool restart)
{
    sheet sh = {.questions = 2};
    lab_scenario s = scenario(&sh, random_u64());
    lab *l = lab_new(&s);
    dafl_members left;
    bool seen;

    sheet_fill(&sh);
    left = lab_members(l, ~7u); /* without its cell */
    assert_true(lab_run_to(l, DAFL_MSG_MODEL, 1));
    if (restart)
        lab_crash(l, GROWS, 0);
    sh.n_rows[GROWS]++;
    assert_int_equal(lab_run(l), LAB_DONE);
    lab_check_invariants(l);
    assert_int_equal(sh.n_sums, 2);
    if (stopped) {
        assert_int_equal(
            lab_count(l, GROWS, DAFL_EVENT_ERROR, DAFL_E_DATA_CHANGED), 1);
        assert_int_equal(dafl_client_where(lab_client(l, GROWS)),
                         DAFL_CLIENT_OUT);
        assert_true(dafl_members_equal(&sh.cohorts[1], &left));
    }
    seen = row_is_seen(&sh);
    lab_free(&l);
    return seen;
}

static bool row_added_between_slots(bool stopped)
{
    return row_added(stopped, false);
}

static bool row_added_over_a_restart(bool stopped)
{
    return row_added(stopped, true);
}

/* ---- L2: the same rows in another cell ---- */

static lab_outcome two_runs(sheet *first, sheet *second, const uint16_t *cells,
                            lab **out)
{
    lab_disk *disks[K];
    lab_scenario s;
    lab *l;
    uint64_t seed = random_u64();

    s = scenario(first, seed);
    l = lab_new(&s);
    lab_check_done(l);
    for (uint16_t u = 0; u < K; u++)
        disks[u] = lab_disk_copy(l, u);
    lab_free(&l);
    s = scenario(second, seed);
    s.run = 1;
    s.cells = cells;
    *out = lab_new(&s);
    for (uint16_t u = 0; u < K; u++) {
        lab_disk_put(*out, u, disks[u]);
        lab_disk_free(&disks[u]);
    }
    return lab_run(*out);
}

static const uint16_t usual[K] = {0, 0, 0, 1, 1, 1, 2, 2, 2};
/* Clients 2 and 3 have changed places. */
static const uint16_t swapped[K] = {0, 0, 1, 0, 1, 1, 2, 2, 2};

/* The first cell of each run: its sums differ by two single clients. */
static bool cells_drawn_anew(bool stopped)
{
    sheet first = {.questions = 3, .cell_by_cell = true}, second;
    int64_t x2[SHEET_COLS], x3[SHEET_COLS];
    bool singled_out = true;
    lab *l = NULL;

    sheet_fill(&first);
    second = first;
    (void)two_runs(&first, &second, swapped, &l);
    for (uint16_t u = 0; u < 6 && stopped; u++)
        assert_int_equal(dafl_client_fault(lab_client(l, u)),
                         DAFL_E_CELL_CHANGED);
    sheet_answer(&first, 2, x2);
    sheet_answer(&first, 3, x3);
    for (size_t i = 0; i < SHEET_COLS; i++)
        singled_out = singled_out && second.n_sums > 0 &&
                      first.sums[0][i] - second.sums[0][i] == x2[i] - x3[i];
    lab_free(&l);
    return singled_out;
}

/* What is allowed: the same cells again; other cells under another projection;
 * other rows in the same cells, with a warning from those who have them; and,
 * a limit that threat-model/proofs.md names, other cells when the rows of
 * everybody have changed, be it by one row. */
static bool nothing_else_is_refused(bool stopped)
{
    static const struct {
        const uint16_t *cells;
        uint8_t basis;
        uint16_t changed, first; /* so many clients have a row more */
    } later[] = {{usual, 0, 0, 0},
                 {swapped, 1, 0, 0},
                 {usual, 0, 1, GROWS},
                 {swapped, 0, K, 0}};

    (void)stopped;
    for (size_t i = 0; i < COUNT(later); i++) {
        sheet first = {.questions = 1}, second;
        lab *l = NULL;
        sheet_fill(&first);
        second = first;
        second.basis = later[i].basis;
        for (uint16_t u = 0; u < later[i].changed; u++)
            second.n_rows[later[i].first + u]++;
        assert_int_equal(two_runs(&first, &second, later[i].cells, &l),
                         LAB_DONE);
        lab_check_invariants(l);
        assert_int_equal(dafl_members_count(&second.cohorts[0]), K);
        assert_int_equal(
            lab_count(l, LAB_ANYBODY, DAFL_EVENT_ERROR, DAFL_E_ROW_DIFF),
            later[i].changed);
        assert_int_equal(lab_count(l, GROWS, DAFL_EVENT_ERROR, DAFL_E_ROW_DIFF),
                         later[i].changed > 0);
        lab_free(&l);
    }
    return false;
}

const lab_attack attacks_data[] = {
    {"L3 row_added_between_slots", DAFL_WEAK_DATA, row_added_between_slots},
    {"L3 row_added_over_a_restart", DAFL_WEAK_DATA, row_added_over_a_restart},
    {"L2 cells_drawn_anew", DAFL_WEAK_CELL_HISTORY, cells_drawn_anew},
    {"L2 nothing_else_is_refused", DAFL_WEAK_NOTHING, nothing_else_is_refused},
    {0},
};
