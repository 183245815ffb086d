/* SPDX-License-Identifier: Apache-2.0 */
/* L10: how many rows somebody has. A run counts rows twice, in the census and
 * in the report; if a client is in one of them only, the difference is its own.
 * Each count is a linear equation in the clients' numbers of rows, with the
 * cohort for coefficients; what all of them determine is found by elimination,
 * exactly. */
#include "tests/lab/curious.h"
#include "tests/lab/figures.h"
#include "tests/sites.h"

#define K 12
#define CELL 3
#define RUNS 6
#define REPORT 4 /* the question */

static dafl_data data;
static dafl_pool *pool;
static uint32_t *rows;

static int open_data(void **state)
{
    (void)state;
    assert_ok(dafl_data_open(&data, DIGITS "/train_features.npy",
                             DIGITS "/train_labels.npy", 10, NULL));
    assert_ok(dafl_pool_new(&pool, 1));
    rows = calloc(data.n, sizeof *rows);
    assert_non_null(rows);
    by_label(rows, &data);
    return 0;
}

static int close_data(void **state)
{
    (void)state;
    free(rows);
    dafl_pool_free(&pool);
    dafl_data_close(&data);
    return 0;
}

static curious server(void)
{
    curious c = {.data = &data, .pool = pool, .k = K, .rows = rows};

    c.p = (dafl_params){.features = data.x.cols,
                        .width = 8,
                        .hidden = 8,
                        .classes = 10,
                        .layers = 1,
                        .lambda = 1,
                        .gamma = 0.1,
                        .contract = DAFL_CONTRACT_DEFAULT};
    assert_ok(dafl_params_check(&c.p, NULL));
    for (size_t u = 1; u < K; u++)
        c.first[u] = u * data.n / K;
    c.first[K] = data.n;
    deal_again(rows, c.first, 0, K);
    return c;
}

/* ---- elimination over the rationals ---- */

/* Row by row: coefficients of the clients' numbers, then the count; each row in
 * lowest terms. Every pivot stands alone in its column. */
typedef struct {
    size_t n;
    int64_t rows[K][K + 1];
    size_t pivot[K];
} equations;

static int64_t gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

/* x -= the multiple of by that clears column `at`, up to a factor. The entries
 * are minors of a matrix of 12 cohorts, so small: no overflow. */
static void clear(int64_t *x, const int64_t *by, size_t at)
{
    int64_t a = x[at], b = by[at], common = 0;

    for (size_t i = 0; i <= K; i++) {
        x[i] = x[i] * b - by[i] * a;
        common = gcd(x[i], common);
    }
    for (size_t i = 0; common > 1 && i <= K; i++)
        x[i] /= common;
}

static void add_equation(equations *e, const dafl_members *cohort,
                         int64_t count)
{
    int64_t x[K + 1];
    size_t at_column = 0;

    for (size_t u = 0; u < K; u++)
        x[u] = dafl_members_has(cohort, u);
    x[K] = count;
    for (size_t i = 0; i < e->n; i++)
        clear(x, e->rows[i], e->pivot[i]);
    while (at_column < K && x[at_column] == 0)
        at_column++;
    if (at_column == K) {
        assert_int_equal(x[K], 0); /* or the counts contradict each other */
        return;
    }
    for (size_t i = 0; i < e->n; i++)
        clear(e->rows[i], x, at_column);
    memcpy(e->rows[e->n], x, sizeof x);
    e->pivot[e->n++] = at_column;
}

/* Whether the equations determine how many rows these clients have together. */
static bool determined(const equations *e, const dafl_members *clients,
                       size_t *count)
{
    int64_t x[K + 1] = {0}, factor = 1;

    for (size_t u = 0; u < K; u++)
        x[u] = dafl_members_has(clients, u);
    for (size_t i = 0; i < e->n; i++) {
        int64_t a = x[e->pivot[i]], b = e->rows[i][e->pivot[i]];
        for (size_t j = 0; j <= K; j++)
            x[j] = x[j] * b - e->rows[i][j] * a;
        factor *= b;
    }
    for (size_t u = 0; u < K; u++)
        if (x[u] != 0)
            return false;
    *count = (size_t)(-x[K] / factor);
    return true;
}

/* ---- runs ---- */

static dafl_members cell_of(size_t client, size_t size)
{
    dafl_members m = dafl_members_none(K);

    for (size_t u = client - client % size; u < client - client % size + size;
         u++)
        dafl_members_add(&m, u);
    return m;
}

static size_t rows_of(const curious *c, const dafl_members *clients)
{
    size_t n = 0;

    for (size_t u = 0; u < K; u++)
        if (dafl_members_has(clients, u))
            n += c->first[u + 1] - c->first[u];
    return n;
}

/* `who` leaves in `question`; adds what the run says. */
static void run(curious *c, uint16_t cell_size, equations *e, uint16_t who,
                uint32_t question)
{
    lab *l = curious_lab(c, cell_size, random_u64());

    lab_leave(l, who, question, (lab_phase)random_size(0, LAB_MID_UPLOAD),
              LAB_NEXT_SLOT);
    lab_check_done(l);
    assert_int_equal(c->n_sums, REPORT + 1);
    add_equation(e, &c->sums[0].cohort, c->sums[0].sum.i[0]);
    add_equation(e, &c->sums[REPORT].cohort, c->sums[REPORT].sum.i[0]);
    lab_free(&l);
}

static void without_cells_a_client_is_counted(void **state)
{
    curious c = server();
    equations e = {0};
    uint16_t who = (uint16_t)random_size(0, K - 1);
    size_t n = 0;

    (void)state;
    run(&c, 1, &e, who, REPORT);
    for (size_t u = 0; u < K; u++) {
        dafl_members one = cell_of(u, 1);
        assert_int_equal(determined(&e, &one, &n), u == who);
    }
    print_message("L10 g = 1: a client has %zu rows, in truth %zu\n", n,
                  c.first[who + 1] - c.first[who]);
    assert_int_equal(n, c.first[who + 1] - c.first[who]);
    curious_drop(&c);
}

static void with_cells_only_cells_are(void **state)
{
    curious c = server();
    equations e = {0};
    size_t n;

    (void)state;
    /* Somebody of every cell is missing somewhere. */
    for (size_t r = 0; r < RUNS; r++)
        run(&c, CELL, &e, (uint16_t)(r * CELL % K + random_size(0, CELL - 1)),
            random_size(0, 1) == 0 ? 0 : REPORT);
    for (size_t i = 0; i < e.n; i++)
        for (size_t u = 0; u < K; u++)
            assert_int_equal(e.rows[i][u], e.rows[i][u - u % CELL]);
    for (size_t u = 0; u < K; u++) {
        dafl_members one = cell_of(u, 1), cell = cell_of(u, CELL);
        assert_false(determined(&e, &one, &n));
        assert_true(determined(&e, &cell, &n));
        assert_int_equal(n, rows_of(&c, &cell));
    }
    print_message("L10 cells of %d, %d runs: the rows of all %d cells, of no "
                  "client\n",
                  CELL, RUNS, K / CELL);
    curious_drop(&c);
}

/* Other rows for each member of a cell, and other numbers of them. */
static void with_cells_the_members_could_have_any_number(void **state)
{
    curious c = server(), again;
    uint32_t *other = calloc(data.n, sizeof *other);
    uint16_t who = (uint16_t)random_size(0, K - 1);
    size_t first = who - who % CELL;
    equations e = {0};

    (void)state;
    assert_non_null(other);
    memcpy(other, rows, data.n * sizeof *rows);
    run(&c, CELL, &e, who, REPORT);
    again = c;
    again.n_sums = 0;
    again.model = NULL;
    again.rows = other;
    deal_again(other, again.first, first, first + CELL);
    run(&again, CELL, &e, who, REPORT);
    assert_true(curious_same(&c, &again));
    curious_drop(&again);
    curious_drop(&c);
    free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_cells_a_client_is_counted),
        cmocka_unit_test(with_cells_only_cells_are),
        cmocka_unit_test(with_cells_the_members_could_have_any_number),
    };

    check_seed();
    return cmocka_run_group_tests(tests, open_data, close_data);
}
