/* SPDX-License-Identifier: Apache-2.0 */
/* A method of one's own over the same secure sums: linear regression of y on
 * three inputs, the rows spread over six sites. Server and clients are machines
 * of one process here; what passes between them is what would pass over a
 * network.
 *
 *     cc -std=c11 regression.c $(pkg-config --cflags --libs deepafl) -lm
 *
 * Question 0: rows and the sum of every column. Question 1: with the means that
 * came of it, products of the centred columns. Numbers are multiples of 1/1024,
 * so all sums are of integers and exact. The program compares every sum with
 * the one over all rows in the clear, which only an example can.
 *
 * What it leaves out: journals (docs/state.md; without one, a client that is
 * started anew does not know what it has sent) and floors on single rows: a
 * site with few rows, or one that stands out, would keep its answer back. */
#define _DEFAULT_SOURCE
#include <deepafl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SITES = 6, CELL = 3, ROWS = 40 };
enum { COLUMNS = 4 }; /* three inputs, then y */
enum { SUMS = 1 + COLUMNS, PRODUCTS = (1 + COLUMNS) * (2 + COLUMNS) / 2 };
enum { SCALE = 1024, LARGEST = 8 * SCALE };

typedef int64_t row[COLUMNS];

/* ---- what is computed, of any rows ---- */

static void add_sums(int64_t out[SUMS], const row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        out[0]++;
        for (size_t k = 0; k < COLUMNS; k++)
            out[1 + k] += rows[i][k];
    }
}

/* The lower triangle of the products of (1, row - means). */
static void add_products(int64_t out[PRODUCTS], const row *rows, size_t n,
                         const row means)
{
    for (size_t i = 0; i < n; i++) {
        int64_t v[1 + COLUMNS] = {1}, *to = out;
        for (size_t k = 0; k < COLUMNS; k++)
            v[1 + k] = rows[i][k] - means[k];
        for (size_t a = 0; a <= COLUMNS; a++)
            for (size_t b = 0; b <= a; b++)
                *to++ += v[a] * v[b];
    }
}

static dafl_fault shape(void *self, const dafl_question *q, dafl_shape *out)
{
    (void)self;
    if (q->number > 1 || q->rank != 0)
        return DAFL_E_MODEL;
    *out = (dafl_shape){.len = q->number == 0 ? SUMS : PRODUCTS};
    return DAFL_FAULT_NONE;
}

/* ---- a client's side ---- */

typedef struct {
    row rows[ROWS];
    uint32_t followed; /* segments */
    row means;
} site;

/* Segment 0 is empty, segment 1 has the means. A client never trusts it: means
 * out of range would drive sums out of the ring. */
static dafl_fault site_follow(void *self, const dafl_segment *segment)
{
    site *s = self;
    dafl_reader r = dafl_read(segment->bytes);
    row means = {0};

    for (size_t k = 0; segment->query == 1 && k < COLUMNS; k++) {
        uint64_t bits;
        if (dafl_get_u64(&r, &bits) != DAFL_OK)
            return DAFL_E_MODEL;
        memcpy(&means[k], &bits, sizeof bits);
        if (means[k] < -LARGEST || means[k] > LARGEST)
            return DAFL_E_MODEL;
    }
    if (segment->query > 1 || dafl_get_end(&r) != DAFL_OK)
        return DAFL_E_MODEL;
    memcpy(s->means, means, sizeof means);
    s->followed++;
    return DAFL_FAULT_NONE;
}

static dafl_fault site_answer(void *self, const dafl_question *q, int64_t *x,
                              size_t len)
{
    const site *s = self;

    if (q->number + 1 !=
        s->followed) /* an earlier question: means have moved */
        return DAFL_E_MODEL;
    memset(x, 0, len * sizeof *x);
    if (q->number == 0)
        add_sums(x, s->rows, ROWS);
    else
        add_products(x, s->rows, ROWS, s->means);
    return DAFL_FAULT_NONE;
}

static dafl_fault site_rewind(void *self)
{
    ((site *)self)->followed = 0;
    return DAFL_FAULT_NONE;
}

/* Without `data` a client cannot tell that its rows changed, or were summed in
 * other company before; here they live as long as the run. */
static const dafl_client_method site_method = {.follow = site_follow,
                                               .shape = shape,
                                               .answer = site_answer,
                                               .rewind = site_rewind};

/* ---- the server's side ---- */

typedef struct {
    uint32_t answered;
    int64_t sums[SUMS], products[PRODUCTS];
    row means;
} centre;

static bool centre_next(void *self, bool plain, dafl_question *out)
{
    const centre *c = self;

    (void)plain; /* no question is tied to the cohort of another */
    *out = (dafl_question){.number = c->answered};
    return c->answered < 2;
}

static dafl_fault centre_segment(void *self, uint32_t number, dafl_segment *out,
                                 dafl_writer *bytes)
{
    const centre *c = self;

    (void)out; /* kind and layer: for methods that have several */
    for (size_t k = 0; number == 1 && k < COLUMNS; k++)
        dafl_put_u64(bytes, (uint64_t)c->means[k]);
    return DAFL_FAULT_NONE;
}

/* A client that lies can spoil a sum; what cannot be a sum of rows is refused,
 * and the protocol looks for the cell at fault. */
static dafl_fault centre_take(void *self, const dafl_question *q,
                              const int64_t *sum, size_t len,
                              const dafl_members *cohort, dafl_why *why)
{
    centre *c = self;

    (void)cohort;
    if (sum[0] < 1)
        return dafl_fail(why, DAFL_E_SUM_INVALID, "there are no rows");
    if (q->number == 1) {
        memcpy(c->products, sum, len * sizeof *sum);
        c->answered++;
        return DAFL_FAULT_NONE;
    }
    for (size_t k = 0; k < COLUMNS; k++)
        if (fabs((double)sum[1 + k]) > (double)sum[0] * LARGEST)
            return dafl_fail(why, DAFL_E_SUM_INVALID, "column %zu", k);
    memcpy(c->sums, sum, len * sizeof *sum);
    for (size_t k = 0; k < COLUMNS; k++)
        c->means[k] = llround((double)sum[1 + k] / (double)sum[0]);
    c->answered++;
    return DAFL_FAULT_NONE;
}

static const dafl_server_method centre_method = {.next = centre_next,
                                                 .shape = shape,
                                                 .segment = centre_segment,
                                                 .take = centre_take};

/* Normal equations of y - mean on (1, inputs - means), by elimination; the
 * matrix is positive definite, so pivots are positive. */
static bool solve(double w[COLUMNS], const centre *c)
{
    double m[COLUMNS][COLUMNS + 1];
    const int64_t *p = c->products;

    for (size_t a = 0; a < COLUMNS; a++)
        for (size_t b = 0; b <= COLUMNS; b++) {
            size_t hi = a > b ? a : b, lo = a > b ? b : a;
            size_t at = hi * (hi + 1) / 2 + lo;
            m[a][b] = (double)p[at];
        }
    for (size_t a = 0; a < COLUMNS; a++) {
        if (!(m[a][a] > 1e-9))
            return false;
        for (size_t i = a + 1; i < COLUMNS; i++)
            for (size_t b = COLUMNS + 1; b-- > a;)
                m[i][b] -= m[i][a] / m[a][a] * m[a][b];
    }
    for (size_t a = COLUMNS; a-- > 0;) {
        w[a] = m[a][COLUMNS];
        for (size_t b = a + 1; b < COLUMNS; b++)
            w[a] -= m[a][b] * w[b];
        w[a] /= m[a][a];
    }
    w[0] += (double)c->means[COLUMNS - 1];
    for (size_t k = 1; k < COLUMNS; k++)
        w[0] -= w[k] * (double)c->means[k - 1];
    w[0] /= SCALE;
    return true;
}

/* ---- a run ---- */

typedef struct {
    dafl_secret_identity ids[SITES + 1]; /* the server's is the last */
    dafl_roster roster;
    dafl_config config;
    site sites[SITES];
    dafl_client *clients[SITES];
    centre centre;
    dafl_server *server;
} run;

static void draw_rows(run *r)
{
    const int64_t unit = SCALE;
    dafl_seed seed;
    dafl_draw draw;

    (void)!dafl_seed_parse(&seed, "1", NULL);
    dafl_draw_init(&draw, &seed, DAFL_STREAM_SIMULATION, 0);
    for (size_t u = 0; u < SITES; u++)
        for (size_t i = 0; i < ROWS; i++) {
            int64_t *x = r->sites[u].rows[i];
            for (size_t k = 0; k < 3; k++)
                x[k] =
                    (int64_t)dafl_draw_below(&draw, 2 * (uint64_t)unit) - unit;
            x[3] = 3 * unit + 2 * x[0] - x[1] + x[2] / 2 +
                   (int64_t)dafl_draw_below(&draw, 101) - 50;
        }
}

/* Everybody's keys; two cells of three. In earnest each party makes its own
 * (dafl_identity_new, _save, _load) and all compare dafl_roster_digest and
 * dafl_config_digest beforehand. */
static dafl_err agree(run *r, dafl_why *why)
{
    dafl_party parties[SITES + 1];
    dafl_policy *p = &r->config.policy;

    for (size_t u = 0; u <= SITES; u++) {
        char name[16];
        bool server = u == SITES;
        (void)snprintf(name, sizeof name, server ? "server" : "site%zu", u);
        DAFL_TRY(dafl_identity_new(&r->ids[u], name, why));
        parties[u] =
            (dafl_party){.id = r->ids[u].public,
                         .role = server ? DAFL_ROLE_SERVER : DAFL_ROLE_CLIENT,
                         .cell = (uint16_t)(server ? DAFL_NO_CELL : u / CELL)};
    }
    DAFL_TRY(dafl_roster_make(&r->roster, parties, SITES + 1, why));
    r->config = dafl_config_default();
    r->config.mode = DAFL_MODE_MASKS;
    /* One site may collude with the server; a sum is over whole cells. */
    p->c = 1;
    p->g = p->m = CELL;
    p->n_min = SITES;
    p->a = (uint16_t)dafl_threshold_absent(SITES, p->c);
    /* No sum leaves the ring: n_max (q 2^s)^2 < 2^(w-1), and a centred value
     * is at most twice LARGEST. */
    r->config.contract =
        (dafl_contract){.exact = true, .s = 10, .q = 16, .n_max = 1 << 16};
    DAFL_TRY(dafl_contract_derive(&r->config.contract, why));
    r->config.slots = dafl_config_slots(2);
    (void)strcpy(r->config.method, "regression-example");
    return DAFL_OK;
}

static dafl_err make_machines(run *r, dafl_why *why)
{
    dafl_server_params sp = {.roster = &r->roster,
                             .config = &r->config,
                             .self = &r->ids[SITES],
                             .method = &centre_method,
                             .method_self = &r->centre};

    if (getentropy(sp.run.b, sizeof sp.run.b) != 0)
        return DAFL_ERR_SYS;
    DAFL_TRY(dafl_server_new(&r->server, &sp, NULL, why));
    for (size_t u = 0; u < SITES; u++) {
        dafl_client_params cp = {.roster = &r->roster,
                                 .config = &r->config,
                                 .self = &r->ids[u],
                                 .floor = {.least_m = CELL, .least_g = CELL},
                                 .method = &site_method,
                                 .method_self = &r->sites[u]};
        DAFL_TRY(dafl_client_new(&r->clients[u], &cp, NULL, why));
        DAFL_TRY(dafl_client_start(r->clients[u]));
    }
    return DAFL_OK;
}

/* Carry out what all machines want; *any: there was something. Of the effects
 * only messages matter here: nothing is kept on disk and nobody watches. */
static dafl_err turn(run *r, uint64_t now, bool *any)
{
    dafl_effect e;

    *any = false;
    while (dafl_server_next(r->server, &e)) {
        *any = true;
        for (size_t u = 0; e.kind == DAFL_DO_SEND && u < SITES; u++)
            if (dafl_members_has(&e.to, u))
                DAFL_TRY(dafl_client_receive(r->clients[u], e.bytes));
    }
    for (size_t u = 0; u < SITES; u++)
        while (dafl_client_next(r->clients[u], &e)) {
            *any = true;
            if (e.kind == DAFL_DO_SEND)
                DAFL_TRY(dafl_server_receive(r->server, e.bytes, now));
        }
    return DAFL_OK;
}

static dafl_err play(run *r, dafl_why *why)
{
    uint64_t now = 0; /* milliseconds of a clock that need not be real */
    bool any;

    DAFL_TRY(dafl_server_start(r->server, now));
    while (dafl_server_where(r->server) != DAFL_SERVER_DONE) {
        if (dafl_server_where(r->server) == DAFL_SERVER_FAILED)
            return dafl_fail(why, DAFL_ERR_PEER, "%s",
                             dafl_fault_text(dafl_server_fault(r->server)));
        DAFL_TRY(turn(r, now, &any));
        if (any)
            continue;
        now = dafl_server_deadline(r->server);
        if (now == UINT64_MAX)
            return dafl_fail(why, DAFL_ERR_PEER, "nothing happens any more");
        DAFL_TRY(dafl_server_tick(r->server, now));
    }
    return DAFL_OK;
}

/* ---- */

static bool report(const run *r)
{
    int64_t sums[SUMS] = {0}, products[PRODUCTS] = {0};
    double w[COLUMNS];
    const centre *c = &r->centre;
    bool same;

    for (size_t u = 0; u < SITES; u++) {
        add_sums(sums, r->sites[u].rows, ROWS);
        add_products(products, r->sites[u].rows, ROWS, c->means);
    }
    same = memcmp(sums, c->sums, sizeof sums) == 0 &&
           memcmp(products, c->products, sizeof products) == 0;
    if (!solve(w, c))
        return false;
    printf("%lld rows of %d sites, in %u slots\n", (long long)c->sums[0], SITES,
           (unsigned)dafl_server_stat(r->server).slots);
    printf("y = %.3f %+.3f x1 %+.3f x2 %+.3f x3\n", w[0], w[1], w[2], w[3]);
    printf("the opened sums %s those of all rows in one place\n",
           same ? "are" : "are NOT");
    return same;
}

int main(void)
{
    run *r = calloc(1, sizeof *r);
    dafl_why why = {{0}};
    dafl_err err = DAFL_ERR_NOMEM;
    bool ok = false;

    if (r != NULL) {
        draw_rows(r);
        err = agree(r, &why);
        if (err == DAFL_OK)
            err = make_machines(r, &why);
        if (err == DAFL_OK)
            err = play(r, &why);
        if (err == DAFL_OK)
            ok = report(r);
        else
            (void)fprintf(stderr, "%s: %s\n", dafl_err_name(err), why.text);
        for (size_t u = 0; u < SITES; u++)
            dafl_client_free(&r->clients[u]);
        dafl_server_free(&r->server);
        for (size_t u = 0; u <= SITES; u++)
            dafl_identity_wipe(&r->ids[u]);
    }
    free(r);
    return ok ? 0 : 1;
}
