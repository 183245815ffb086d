/* SPDX-License-Identifier: Apache-2.0 */
/* L1: the Gram sums of two layers, one of them without a client. A layer adds
 * Z U' to the features, so with P = I - U U' nothing of it is left in
 *
 *     P G_t+1 P = P G_t P,
 *
 * and what two sums over different cohorts differ by there is P G P of those
 * who are missing. The server is honest, the model is what training gives.
 *
 * What limits the precision is the grid alone: Phi_t+1 is Phi_t + Z U' rounded
 * by E, |E| <= 2^-(s+1), so the rows of everybody else leave Phi'E behind,
 * about 2^-s sqrt(their rows) against the rows of the missing. With equal lots
 * that is 2e-5 on the default grid and 1e-8 on 2^-23, the finest that q = 2 and
 * so many rows allow; below 1e-9 it takes a client that has nearly all rows.
 *
 * `test_sums_gram demo` shows it to a person (scripts/leak-demo). */
#include "tests/lab/curious.h"
#include "tests/lab/figures.h"
#include "tests/sites.h"
#include "lib/blas.h"

#define FEATURES 8
#define D 32
#define C 3
#define ROWS 30000
#define K 6
#define CELL 3
#define MISSING 4 /* the client; cell 3 4 5 */

static dafl_data data;
static dafl_pool *pool;
static uint32_t rows[ROWS], other_rows[ROWS];

static int open_data(void **state)
{
    if (open_rows(state, &data, &pool, ROWS, FEATURES, C) != 0)
        return -1;
    by_label(rows, &data);
    return 0;
}

static int close_data(void **state)
{
    return close_rows(state, &data, &pool);
}

/* Rows lie in the order of their labels, so that clients differ. `few` rows for
 * everybody before client `from` and after client `to`, equal lots of the
 * others for those between. */
static curious server(unsigned s, size_t few, size_t from, size_t to)
{
    curious c = {.data = &data, .pool = pool, .k = K, .rows = rows};
    size_t many = (ROWS - few * (from + K - 1 - to)) / (to - from + 1);

    c.p = (dafl_params){
        .features = FEATURES,
        .width = D,
        .hidden = D,
        .classes = C,
        .layers = 1,
        .lambda = 1,
        .gamma = 0.1,
        .schedule = DAFL_SCHEDULE_FULL,
        .contract = {.exact = true, .s = s, .q = 2, .n_max = ROWS}};
    c.p.seed.b[0] = (uint8_t)random_u64();
    assert_ok(dafl_params_check(&c.p, NULL));
    for (size_t u = 0; u < K; u++)
        c.first[u + 1] = c.first[u] + (u < from || u > to ? few : many);
    return c;
}

/* Question 1 is G_0, 3 is G_1: the client leaves before it uploads that. */
static void train(curious *c, uint16_t cell_size)
{
    lab *l = curious_lab(c, cell_size, random_u64());

    lab_leave(l, MISSING, 3, LAB_AT_CAST, LAB_NEXT_SLOT);
    lab_check_done(l);
    assert_int_equal(c->sums[3].query.kind, DAFL_QUERY_GRAM);
    lab_free(&l);
}

/* P x P in place, x symmetric. */
static void project(double *x, const dafl_head *head)
{
    double *p = doubles(D * D), *px = doubles(D * D);

    for (size_t i = 0; i < D; i++)
        p[i * D + i] = -1;
    dafl_gemm_nt(p, head->u, head->u, D, D, head->rank, 1.0);
    dafl_gemm(px, p, x, D, D, D, 0.0);
    dafl_gemm(x, px, p, D, D, D, 0.0);
    free(px);
    free(p);
}

/* The attack: from the sums and the model alone. */
static double *difference(const curious *c)
{
    double *g = curious_part(c, 1, 0), *later = curious_part(c, 3, 0);

    take_off(g, later, 1, D * D);
    project(g, &c->model->heads[0]);
    free(later);
    return g;
}

static double compared_with(const curious *c, const double *got,
                            const dafl_members *clients)
{
    double *want = curious_truth(c, 1, 0, clients), off;

    project(want, &c->model->heads[0]);
    off = off_by(got, want, D * D);
    free(want);
    return off;
}

/* What the grid leaves behind of the rows of `others`, against P G P of the
 * missing: E of uniform entries, so ||P (Phi'E + E'Phi) P||^2 is about
 * 2 (d - r + 1) tr(P G P) 4^-s / 12. */
static double limit(const curious *c, const dafl_members *missing)
{
    dafl_members others = dafl_members_none(K);
    double *g = curious_truth(c, 1, 0, missing), trace = 0, norm;

    for (size_t u = 0; u < K; u++)
        if (!dafl_members_has(missing, u))
            dafl_members_add(&others, u);
    project(g, &c->model->heads[0]);
    norm = sqrt(dot(g, g, D * D));
    free(g);
    g = curious_truth(c, 1, 0, &others);
    project(g, &c->model->heads[0]);
    for (size_t i = 0; i < D; i++)
        trace += g[i * D + i];
    free(g);
    return ldexp(sqrt(2 * (D - C + 1) * trace / 12), -(int)c->p.contract.s) /
           norm;
}

static dafl_members one(size_t client)
{
    dafl_members m = dafl_members_none(K);

    dafl_members_add(&m, client);
    return m;
}

static void without_cells_a_client_is_exposed(void **state)
{
    static const struct {
        unsigned s;
        size_t few;
        double most;
    } tries[] = {{12, ROWS / K, 1e-4}, {23, ROWS / K, 3e-8}, {23, 200, 1e-9}};
    dafl_members missing = one(MISSING);

    (void)state;
    for (size_t i = 0; i < COUNT(tries); i++) {
        curious c = server(tries[i].s, tries[i].few, MISSING, MISSING);
        double *got, off, most;
        train(&c, 1);
        assert_int_equal(dafl_members_count(&c.sums[3].cohort), K - 1);
        got = difference(&c);
        off = compared_with(&c, got, &missing);
        most = limit(&c, &missing);
        print_message("L1 g = 1: P G P of a client with %zu of %d rows, grid "
                      "2^-%u: off by %.1e, the grid's doing %.1e\n",
                      c.first[MISSING + 1] - c.first[MISSING], ROWS, tries[i].s,
                      off, most);
        assert_true(off < 2 * most && off > most / 2);
        assert_true(off < tries[i].most);
        free(got);
        curious_drop(&c);
    }
}

static void with_cells_only_the_cell_is(void **state)
{
    curious c = server(23, 200, CELL, 2 * CELL - 1), again = c;
    dafl_members cell = dafl_members_none(K);
    double *got, off, nearest = INFINITY;

    (void)state;
    train(&c, CELL);
    assert_int_equal(dafl_members_count(&c.sums[3].cohort), K - CELL);
    got = difference(&c);
    for (size_t u = CELL; u < 2 * CELL; u++)
        dafl_members_add(&cell, u);
    off = compared_with(&c, got, &cell);
    take_off(got, got, 1 - 1.0 / CELL, D * D);
    for (size_t u = CELL; u < 2 * CELL; u++) {
        dafl_members member = one(u);
        nearest = fmin(nearest, compared_with(&c, got, &member));
    }
    print_message("L1 cells of %d: P G P of the cell off by %.1e; its share "
                  "from the nearest member's by %.1e\n",
                  CELL, off, nearest);
    assert_true(off < 1e-9);
    assert_true(nearest > 0.1);
    free(got);

    /* Nothing below: with other rows for each member the server has the same,
     * to the last bit. */
    memcpy(other_rows, rows, sizeof rows);
    again.rows = other_rows;
    deal_again(other_rows, again.first, CELL, 2 * CELL);
    train(&again, CELL);
    assert_true(curious_same(&c, &again));
    curious_drop(&again);
    /* Not so across cells. */
    other_rows[0] = rows[again.first[CELL]];
    other_rows[again.first[CELL]] = rows[0];
    train(&again, CELL);
    assert_false(curious_same(&c, &again));
    curious_drop(&again);
    curious_drop(&c);
}

/* ---- a server that leaves one client out itself ---- */

static bool struck[32]; /* [slot]: somebody was told so */

static bool strike(lab *l, lab_letter *m, void *ctx)
{
    dafl_writer w = {0};
    dafl_members a;

    (void)ctx;
    if (m->envelope.type != DAFL_MSG_CAST ||
        lab_slot_question(l, m->envelope.slot) != 3)
        return true;
    assert_ok(dafl_get_cast(&a, m->envelope.body));
    if (!dafl_members_has(&a, MISSING))
        return true;
    assert_true(m->envelope.slot < COUNT(struck));
    struck[m->envelope.slot] = true;
    dafl_members_remove(&a, MISSING);
    dafl_put_cast(&w, &a);
    lab_letter_reseal(l, m, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    return true;
}

/* How many clients refuse that by its name. Nobody uploads anything in such a
 * slot; if there is a sum in the end it is one of whole cells. */
static size_t refuse(curious *c)
{
    const lab_seen *sent;
    size_t n = 0, at = 0;
    lab *l;

    memset(struck, 0, sizeof struck);
    c->intercept = strike;
    l = curious_lab(c, CELL, random_u64());
    (void)lab_run(l);
    lab_check_invariants(l);
    for (uint16_t u = 0; u < K; u++)
        n += lab_count(l, u, DAFL_EVENT_ERROR, DAFL_E_CELL_SPLIT) > 0;
    while ((sent = lab_find(l, &at, LAB_SENT, LAB_ANYBODY, LAB_ANYBODY,
                            DAFL_MSG_UPLOAD, UINT32_MAX)) != NULL)
        assert_true(sent->slot >= COUNT(struck) || !struck[sent->slot]);
    for (size_t i = 0; i < c->n_sums; i++)
        assert_true(dafl_roster_whole_cells(lab_roster(l), &c->sums[i].cohort));
    lab_free(&l);
    c->intercept = NULL;
    return n;
}

static void with_cells_nobody_can_be_left_out(void **state)
{
    curious c = server(12, ROWS / K, MISSING, MISSING);

    (void)state;
    assert_int_equal(refuse(&c), K);
    curious_drop(&c);
}

/* ---- for a person ---- */

static void show_numbers(const double *got, const double *want)
{
    printf("    %-28s", "what the server computes");
    for (size_t i = 0; i < 4; i++)
        printf(" %14.6f", got[i]);
    printf(" ..\n    %-28s", "what the site has");
    for (size_t i = 0; i < 4; i++)
        printf(" %14.6f", want[i]);
    printf(" ..\n");
}

static void show(void **state)
{
    curious c = server(23, 200, MISSING, MISSING);
    dafl_members missing = one(MISSING), cell = dafl_members_none(K);
    double *got, *want, off, cell_off, member_off;
    size_t refused;

    (void)state;
    printf("Six sites, %d rows (site %d has %zu, on a grid of 2^-23), matrices "
           "of %d x %d; masked sums, an honest model.\n"
           "Site %d misses one sum, of the second Gram matrix.\n",
           ROWS, MISSING, c.first[MISSING + 1] - c.first[MISSING], D, D,
           MISSING);

    printf("\nAny cohort (g = 1). The server subtracts the two sums and looks "
           "where the layer changed nothing:\n");
    train(&c, 1);
    got = difference(&c);
    want = curious_truth(&c, 1, 0, &missing);
    project(want, &c.model->heads[0]);
    off = off_by(got, want, D * D);
    show_numbers(got, want);
    printf("    relative error of the site's matrix: %.1e  -> the site is "
           "exposed\n",
           off);
    free(want);
    free(got);
    curious_drop(&c);

    printf("\nCells of %d. The site's whole cell is left out of that sum:\n",
           CELL);
    c = server(23, 200, CELL, 2 * CELL - 1);
    train(&c, CELL);
    got = difference(&c);
    for (size_t u = CELL; u < 2 * CELL; u++)
        dafl_members_add(&cell, u);
    cell_off = compared_with(&c, got, &cell);
    member_off = compared_with(&c, got, &missing);
    printf("    relative error of the cell's matrix: %.1e, of the site's: "
           "%.1e  -> the cell shows, the site does not\n",
           cell_off, member_off);
    free(got);
    curious_drop(&c);

    printf("\nCells of %d. The server asks for a sum without site %d alone:\n",
           CELL, MISSING);
    refused = refuse(&c);
    printf("    %zu of %d sites refuse: %s; nothing is uploaded  -> no such "
           "sum\n",
           refused, K, dafl_fault_name(DAFL_E_CELL_SPLIT));
    curious_drop(&c);
    assert_true(off < 1e-9);
    assert_true(cell_off < 1e-9 && member_off > 0.1);
    assert_int_equal(refused, K);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, open_data, close_data)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE(without_cells_a_client_is_exposed),
        CASE(with_cells_only_the_cell_is),
        CASE(with_cells_nobody_can_be_left_out),
    };
    const struct CMUnitTest demo[] = {CASE(show)};

    check_seed();
    if (argc > 1 && strcmp(argv[1], "demo") == 0)
        return cmocka_run_group_tests(demo, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
