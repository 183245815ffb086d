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

typedef enum { IN_A_SLOT, RESTARTED, ENROLLED_AGAIN } when;

/* One row more after the first of two sums. */
static bool row_added(bool stopped, when changes)
{
    sheet sh = {.questions = 2};
    lab_scenario s = scenario(&sh, random_u64());
    dafl_members left;
    bool seen;
    lab *l;

    if (changes == ENROLLED_AGAIN) {
        s.config.slots = 1;
        s.config.policy.n_min = K - 3;
        lab_scenario_collude(&s, 1);
    }
    l = lab_new(&s);
    sheet_fill(&sh);
    left = lab_members(l, ~7u); /* without its cell */
    assert_true(changes == ENROLLED_AGAIN ? lab_run_to(l, DAFL_MSG_RESULT, 0)
                                          : lab_run_to(l, DAFL_MSG_MODEL, 1));
    if (changes == RESTARTED)
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
    return row_added(stopped, IN_A_SLOT);
}

static bool row_added_over_a_restart(bool stopped)
{
    return row_added(stopped, RESTARTED);
}

static bool row_added_between_enrolments(bool stopped)
{
    return row_added(stopped, ENROLLED_AGAIN);
}

/* ---- L2: the same rows in another cell ---- */

/* A run of the same clients. */
typedef struct {
    sheet sheet;
    const uint16_t *cells;
    bool any_cohort;
} turn;

/* Play them all; the last one may end as it likes, its lab is *out. */
static lab_outcome play(turn *turns, uint32_t n, lab **out)
{
    lab_disk *disks[K] = {NULL};
    uint64_t seed = random_u64();

    for (uint32_t i = 0; i < n; i++) {
        lab_scenario s = scenario(&turns[i].sheet, seed);
        s.run = i;
        s.cells = turns[i].cells;
        s.floor.any_cohort = turns[i].any_cohort;
        if (turns[i].any_cohort)
            s.config.policy.g = 1;
        *out = lab_new(&s);
        for (uint16_t u = 0; u < K && i > 0; u++) {
            lab_disk_put(*out, u, disks[u]);
            lab_disk_free(&disks[u]);
        }
        if (i + 1 == n)
            break;
        lab_check_done(*out);
        for (uint16_t u = 0; u < K; u++)
            disks[u] = lab_disk_copy(*out, u);
        lab_free(out);
    }
    return lab_run(*out);
}

static const uint16_t usual[K] = {0, 0, 0, 1, 1, 1, 2, 2, 2};
/* Clients 2 and 3 have changed places. */
static const uint16_t swapped[K] = {0, 0, 1, 0, 1, 1, 2, 2, 2};

/* The first cell of each run: its sums differ by two single clients. */
static bool cells_drawn_anew(bool stopped)
{
    turn t[2] = {{.sheet = {.questions = 3, .cell_by_cell = true}}};
    const sheet *first = &t[0].sheet, *second = &t[1].sheet;
    int64_t x2[SHEET_COLS], x3[SHEET_COLS];
    bool singled_out = true;
    lab *l = NULL;

    sheet_fill(&t[0].sheet);
    t[1] = t[0];
    t[1].cells = swapped;
    (void)play(t, 2, &l);
    for (uint16_t u = 0; u < 6 && stopped; u++)
        assert_int_equal(dafl_client_fault(lab_client(l, u)),
                         DAFL_E_CELL_CHANGED);
    sheet_answer(first, 2, x2);
    sheet_answer(first, 3, x3);
    for (size_t i = 0; i < SHEET_COLS; i++)
        singled_out = singled_out && second->n_sums > 0 &&
                      first->sums[0][i] - second->sums[0][i] == x2[i] - x3[i];
    lab_free(&l);
    return singled_out;
}

/* In the last of three runs; whether there is a sum. */
static bool is_summed(bool stopped, turn *t)
{
    bool summed;
    lab *l = NULL;

    (void)play(t, 3, &l);
    for (uint16_t u = 0; u < 6 && stopped; u++)
        assert_int_equal(dafl_client_fault(lab_client(l, u)),
                         DAFL_E_CELL_CHANGED);
    summed = t[2].sheet.n_sums > 0;
    lab_free(&l);
    return summed;
}

/* What was given later counts as well: under another projection, with a row
 * more, and where any cohort went, which is no cell of the roster. */
static bool every_run_counts(bool stopped)
{
    turn t[3] = {{.sheet = {.questions = 1}, .cells = usual}};
    turn begin;
    bool summed;

    sheet_fill(&t[0].sheet);
    begin = t[1] = t[2] = t[0];
    t[1].sheet.basis = t[2].sheet.basis = 1;
    t[2].cells = swapped;
    summed = is_summed(stopped, t);
    t[0] = t[1] = t[2] = begin;
    t[1].sheet.n_rows[GROWS]++;
    t[2] = t[1];
    t[2].cells = swapped;
    summed &= is_summed(stopped, t);
    t[0] = t[1] = t[2] = begin;
    t[0].any_cohort = t[1].any_cohort = true;
    summed &= is_summed(stopped, t);
    return summed;
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
        turn t[2] = {{.sheet = {.questions = 1}}};
        lab *l = NULL;
        sheet_fill(&t[0].sheet);
        t[1] = t[0];
        t[1].sheet.basis = later[i].basis;
        for (uint16_t u = 0; u < later[i].changed; u++)
            t[1].sheet.n_rows[later[i].first + u]++;
        t[1].cells = later[i].cells;
        assert_int_equal(play(t, 2, &l), LAB_DONE);
        lab_check_invariants(l);
        assert_int_equal(dafl_members_count(&t[1].sheet.cohorts[0]), K);
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
    {"L3 row_added_between_enrolments", DAFL_WEAK_DATA,
     row_added_between_enrolments},
    {"L2 cells_drawn_anew", DAFL_WEAK_CELL_HISTORY, cells_drawn_anew},
    {"L2 every_run_counts", DAFL_WEAK_CELL_HISTORY, every_run_counts},
    {"L2 nothing_else_is_refused", DAFL_WEAK_NOTHING, nothing_else_is_refused},
    {0},
};
