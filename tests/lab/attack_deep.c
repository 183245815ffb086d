/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks on whole trainings of DeepAFL: a model that traps a row, a class with
 * one row, clients whose matrices cannot be true. */
#include "tests/lab/attack.h"

#include "tests/lab/curious.h"
#include "tests/lab/figures.h"
#include "tests/lab/trap.h"
#include "tests/sites.h"

#define K 6
#define CELL 3
#define TRIES 16

static dafl_data digits;
static dafl_pool *pool;

static void open_digits(void)
{
    assert_ok(dafl_pool_new(&pool, 1));
    assert_ok(dafl_data_open(&digits, DIGITS "/train_features.npy",
                             DIGITS "/train_labels.npy", 10, NULL));
}

static void close_digits(void)
{
    dafl_data_close(&digits);
    dafl_pool_free(&pool);
}

/* n rows for k clients, as many for each. */
static void deal(curious *c, const uint32_t *rows, size_t n, size_t k)
{
    c->data = &digits;
    c->pool = pool;
    c->k = k;
    c->rows = rows;
    for (size_t u = 0; u <= k; u++)
        c->first[u] = n * u / k;
}

/* The sum of a query over one row alone, by a client that has seen what the
 * others have seen; drop it. */
static dafl_sum sum_of_row(const curious *c, uint32_t row, uint32_t question)
{
    crew one = crew_of_row(c->model, pool, &digits, row);
    dafl_sum sum = {0};

    for (uint32_t q = 1; q <= question; q++) {
        dafl_sum_drop(&sum);
        sum = ask(&one, &c->sums[q].query);
    }
    drop_crew(&one);
    return sum;
}

/* ---- S16 ---- */

#define WIDTH 256
#define HIDDEN 128
#define RESIDUAL_1 4 /* census, Gram, residual, Gram, this */

static uint32_t target; /* the row that is trapped */

static void plant_trap(curious *c, const dafl_query *query)
{
    double *pi, *upsilon, *x;

    if (query->kind == DAFL_QUERY_GRAM && query->layer == 0)
        trap_head(c->model, HIDDEN);
    if (query->kind != DAFL_QUERY_RESIDUAL || query->layer != 0)
        return;
    pi = curious_part(c, 2, 0);
    upsilon = curious_part(c, 2, 1);
    x = doubles(digits.x.cols);
    dafl_npy_get_rows(&digits.x, x, &target, 0, 1);
    for (size_t i = 0; i < digits.x.cols; i++)
        x[i] += 0.05 * random_double(); /* a poor copy */
    trap_block(c->model, HIDDEN, x, (double)c->sums[0].sum.i[0], pi, upsilon,
               2);
    free(x);
    free(upsilon);
    free(pi);
}

/* Whether the row's hidden features are read off Pi_1, each exactly. */
static bool is_caught(const curious *c)
{
    double got[HIDDEN], want[HIDDEN];
    dafl_sum own;
    bool caught;

    if (c->n_sums <= RESIDUAL_1 ||
        !trap_row(got, &c->p, HIDDEN, &c->sums[RESIDUAL_1].sum))
        return false;
    own = sum_of_row(c, target, RESIDUAL_1);
    caught = trap_row(want, &c->p, HIDDEN, &own) &&
             memcmp(got, want, sizeof got) == 0;
    dafl_sum_drop(&own);
    return caught;
}

static bool trap_model(bool stopped)
{
    uint32_t *rows;
    bool caught = false;

    open_digits();
    rows = calloc(digits.n, sizeof *rows);
    assert_non_null(rows);
    for (uint32_t i = 0; i < digits.n; i++)
        rows[i] = i;
    shuffle(rows, digits.n);
    for (int i = 0; i < (stopped ? 2 : TRIES) && !caught; i++) {
        curious c = {.p = curious_params(digits.x.cols, WIDTH, HIDDEN, 128),
                     .plant = plant_trap,
                     .careful = true};
        lab *l;
        deal(&c, rows, digits.n, K);
        target = rows[random_size(0, digits.n - 1)];
        l = curious_lab(&c, CELL, random_u64());
        (void)lab_run(l);
        caught = is_caught(&c);
        if (stopped) {
            /* Everybody has one row or none left, and says nothing. */
            assert_int_equal(c.n_sums, RESIDUAL_1);
            for (uint16_t u = 0; u < K; u++)
                assert_true(
                    lab_count(l, u, DAFL_EVENT_ERROR, DAFL_E_DOMINATED) > 0);
        }
        lab_free(&l);
        curious_drop(&c);
    }
    free(rows);
    close_digits();
    return caught;
}

/* ---- L4 ---- */

/* Digits 0 to 8, thirty of each, and so many of 9. Returns their number. */
static size_t pick_rows(uint32_t *rows, size_t nines)
{
    size_t counts[10] = {0}, n = 0;

    for (uint32_t i = 0; i < digits.n; i++) {
        uint32_t label = digits.y[i];
        if (counts[label] < (label == 9 ? nines : 30)) {
            counts[label]++;
            rows[n++] = i;
        }
    }
    shuffle(rows, n);
    return n;
}

/* Whether the column of H of the last class is the one row that has it. */
static bool row_is_in_h(const curious *c)
{
    double *h, *own;
    dafl_layout layout;
    dafl_sum sum;
    size_t d = c->p.width;
    bool same;
    uint32_t row = 0;

    if (c->n_sums < 2)
        return false;
    for (size_t i = 0; i < c->first[c->k]; i++)
        if (digits.y[c->rows[i]] == 9)
            row = c->rows[i];
    sum = sum_of_row(c, row, 1);
    dafl_query_layout(&layout, &c->p, &c->sums[1].query);
    own = doubles(10 * d);
    dafl_sum_get(&sum, &layout.parts[1], own);
    h = curious_part(c, 1, 1);
    same = memcmp(h + 9 * d, own + 9 * d, d * sizeof *h) == 0;
    free(h);
    free(own);
    dafl_sum_drop(&sum);
    return same;
}

static bool with_nines(size_t nines, bool careful_server, lab_outcome *outcome,
                       size_t *refusals)
{
    uint32_t rows[10 * 30];
    curious c = {.p = curious_params(digits.x.cols, 16, 16, 4),
                 .careful = true,
                 .careful_server = careful_server};
    bool seen;
    lab *l;

    c.p.activation = DAFL_ACT_GELU;
    deal(&c, rows, pick_rows(rows, nines), K);
    l = curious_lab(&c, CELL, random_u64());
    *outcome = lab_run(l);
    *refusals = 0;
    for (uint16_t u = 0; u < K; u++)
        *refusals += dafl_client_fault(lab_client(l, u)) == DAFL_E_CENSUS;
    seen = row_is_in_h(&c);
    lab_free(&l);
    curious_drop(&c);
    return seen;
}

static bool rare_class(bool stopped)
{
    static const size_t nines[] = {0, 1, 9, 10};
    bool seen = false;

    open_digits();
    for (size_t i = 0; i < COUNT(nines); i++)
        for (int server = 0; server < 2; server++) {
            bool rare = nines[i] % 10 != 0, found;
            lab_outcome outcome;
            size_t refusals;
            found = with_nines(nines[i], server != 0, &outcome, &refusals);
            seen |= nines[i] == 1 && found;
            if (!stopped)
                continue;
            /* The server ends the run, or all leave it. */
            assert_int_equal(outcome, rare ? LAB_FAILED : LAB_DONE);
            assert_int_equal(refusals, rare ? K : 0);
        }
    close_digits();
    return seen;
}

/* ---- M8 ---- */

#define POISONER 4
#define POISONED 2 /* the cell of 3, 4, 5 is number 1: the residual */

static int poison; /* which */

static void poison_answer(curious *c, uint16_t client, const dafl_question *q,
                          int64_t *x, size_t len)
{
    (void)c;
    if (client != POISONER || q->number != POISONED)
        return;
    if (poison == 0)
        for (size_t i = 0; i < len; i += 7)
            x[i] += (int64_t)1 << 40;
    else /* a negative semidefinite part, and no entry out of range */
        for (size_t i = 0; i < len; i++)
            x[i] *= -20;
}

/* Whether a question's sum is the true one over its cohort. */
static bool is_true(const curious *c, uint32_t question)
{
    double *got = curious_part(c, question, 0);
    double *want = curious_truth(c, question, 0, &c->sums[question].cohort);
    dafl_layout layout;
    bool same;

    dafl_query_layout(&layout, &c->p, &c->sums[question].query);
    same =
        memcmp(got, want,
               layout.parts[0].rows * layout.parts[0].cols * sizeof *got) == 0;
    free(want);
    free(got);
    return same;
}

/* The cell at fault is named once, and is in no sum any more. */
static void check_blame(lab *l, const curious *c)
{
    dafl_members cell = lab_members(l, 7u << 3);
    const lab_event *events;
    size_t n = lab_events(l, &events), named = 0;

    for (size_t i = 0; i < n; i++)
        if (events[i].party == lab_server_index(l) &&
            events[i].event.kind == DAFL_EVENT_ERROR &&
            events[i].event.fault == DAFL_E_SUM_INVALID) {
            assert_true(dafl_members_equal(&events[i].event.set, &cell));
            named++;
        }
    assert_int_equal(named, 1);
    for (uint32_t q = POISONED; q < c->n_sums; q++)
        assert_false(dafl_members_has(&c->sums[q].cohort, POISONER));
}

static bool poison_visible(bool stopped)
{
    bool taken = true;

    open_digits();
    for (poison = 0; poison < 2; poison++) {
        uint32_t rows[10 * 30];
        curious c = {.p = curious_params(digits.x.cols, 16, 16, 4),
                     .spoil = poison_answer};
        bool right = true;
        lab *l;
        c.p.activation = DAFL_ACT_GELU;
        deal(&c, rows, pick_rows(rows, 30), 9);
        l = curious_lab(&c, CELL, random_u64());
        (void)lab_run(l);
        assert_true(c.n_sums > POISONED);
        for (uint32_t q = 1; q + 1 < c.n_sums || q <= POISONED; q++)
            right = right && is_true(&c, q);
        taken = taken && !is_true(&c, POISONED);
        if (stopped) {
            assert_true(right);
            assert_int_equal(lab_outcome_of(l), LAB_DONE);
            assert_int_equal(c.n_sums, dafl_deep_questions(&c.p));
            check_blame(l, &c);
        }
        lab_free(&l);
        curious_drop(&c);
    }
    close_digits();
    return taken;
}

const lab_attack attacks_deep[] = {
    {"S16 trap_model", DAFL_WEAK_DOMINATED, trap_model},
    {"L4 rare_class", DAFL_WEAK_CENSUS, rare_class},
    {"M8 poison_visible", DAFL_WEAK_SANITY, poison_visible},
    {0},
};
