/* SPDX-License-Identifier: Apache-2.0 */
/* Sums that cannot be true (I7). Built twice: the second program has machines
 * that do not judge them. */
#include <math.h>

#include "tests/protocol/deep_world.h"
#include "tests/same_model.h"
#include "protocol/weaken.h"

typedef struct {
    world *w;
    dafl_question q;
    dafl_members all;
    size_t len;
    int64_t *honest, *x;
    size_t refused;
} court;

/* The altered sum is refused for this reason and nothing has changed. */
static void refuse_sum(court *c, const char *words)
{
    dafl_why why = {""};
    dafl_question next = {0};
    size_t heads = c->w->model->n_heads, blocks = c->w->model->n_blocks;

    assert_int_equal(sm->take(c->w->server, &c->q, c->x, c->len, &c->all, &why),
                     DAFL_E_SUM_INVALID);
    assert_says(&why, words);
    assert_true(sm->next(c->w->server, c->q.rank == 0, &next));
    assert_true(next.number == c->q.number && next.rank == c->q.rank);
    assert_int_equal(c->w->model->n_heads, heads);
    assert_int_equal(c->w->model->n_blocks, blocks);
    memcpy(c->x, c->honest, c->len * sizeof *c->x);
    c->refused++;
}

static void refuse_at(court *c, size_t where, int64_t value, const char *words)
{
    c->x[where] = value;
    refuse_sum(c, words);
}

/* A square of n rows at the beginning of the sum, products of two operands. */
static void refuse_squares(court *c, size_t n, int64_t most)
{
    int64_t a = c->x[0], root, most_of_three;
    size_t corner = n * (n + 1) / 2 - 1;

    refuse_at(c, 0, -1, "diagonal");
    refuse_at(c, corner, -1, "diagonal");
    refuse_at(c, corner, INT64_MIN, "diagonal");
    refuse_at(c, 0, most + 1, "diagonal");
    refuse_at(c, corner, INT64_MAX, "diagonal");
    /* the smallest entry that is too large for its diagonal */
    root = (int64_t)sqrt((double)a * (double)c->x[n]);
    while (root * root > a * c->x[n])
        root--;
    while (root * root <= a * c->x[n])
        root++;
    refuse_at(c, 1, root, "larger than its diagonal");
    refuse_at(c, 1, -root, "larger than its diagonal");
    refuse_at(c, 1, INT64_MIN, "larger than its diagonal");
    refuse_at(c, corner - 1, INT64_MAX, "larger than its diagonal");
    /* every pair is possible, and (1, 1, 1, 0 ..) G (..)' = -2.4 a is not */
    most_of_three = a > c->x[n] ? a : c->x[n];
    if (c->x[2 * n - 1] > most_of_three)
        most_of_three = c->x[2 * n - 1];
    c->x[0] = c->x[n] = c->x[2 * n - 1] = most_of_three;
    c->x[1] = c->x[2] = c->x[n + 1] = -(most_of_three / 10 * 9);
    refuse_sum(c, "negative eigenvalue");
}

/* Before every true sum, everything that can be wrong with it. */
static void refuse_all(court *c)
{
    const dafl_params *p = &c->w->p;
    const dafl_contract *k = &p->contract;
    int64_t unit = (int64_t)k->q << k->s, n_max = (int64_t)k->n_max;
    int64_t most = n_max * unit * unit;
    dafl_query query;

    dafl_deep_query(&query, p, &c->q);
    switch (query.kind) {
    case DAFL_QUERY_CENSUS:
        refuse_at(c, 0, -1, "count");
        refuse_at(c, 0, n_max + 1, "count");
        refuse_at(c, 1, -1, "count");
        refuse_at(c, 1, c->x[1] + 1, "add up");
        refuse_at(c, 0, c->x[0] + 1, "add up");
        refuse_at(c, 2, INT64_MAX, "count");
        memset(c->x, 0, c->len * sizeof *c->x);
        refuse_sum(c, "rows together");
        break;
    case DAFL_QUERY_GRAM:
        refuse_squares(c, p->width, most);
        refuse_at(c, c->len - 1, n_max * unit + 1, "beyond");
        refuse_at(c, c->len - 1, -n_max * unit - 1, "beyond");
        break;
    case DAFL_QUERY_RESIDUAL:
        refuse_squares(c, p->hidden, most);
        refuse_at(c, c->len - 1, most + 1, "beyond");
        refuse_at(c, c->len - 1, INT64_MIN, "beyond");
        break;
    case DAFL_QUERY_INCREMENT:
        refuse_at(c, 0, most + 1, "beyond");
        refuse_at(c, c->len - 1, INT64_MIN, "beyond");
        refuse_at(c, 0, most, "negative eigenvalue");
        refuse_at(c, c->len - 1, -most, "negative eigenvalue");
        break;
    case DAFL_QUERY_REPORT:
        refuse_at(c, 0, -1, "count");
        refuse_at(c, 1, n_max + 1, "count");
        refuse_at(c, 2, -1, "count");
        refuse_at(c, 2, c->x[0] + 1, "count");
        refuse_at(c, c->len - 1, c->x[1] + 1, "count");
        break;
    case DAFL_QUERY_DONE:
        break;
    }
}

static court open_court(world *w, bool plain)
{
    court c = {.w = w, .all = all_of(w->n)};

    assert_true(sm->next(w->server, plain, &c.q));
    c.len = length(w, &c.q);
    c.honest = sum_of(w, &c.q, &c.all);
    c.x = integers(c.len);
    memcpy(c.x, c.honest, c.len * sizeof *c.x);
    return c;
}

static void close_court(court *c)
{
    give(c->w, &c->q, c->honest, &c->all);
    free(c->honest);
    free(c->x);
}

static void impossible_sums_are_refused_and_change_nothing(void **state)
{
    (void)state;
    for (int plain = 0; plain < 2; plain++) {
        dafl_params p = params();
        world *w;
        dafl_model *expected;
        size_t refused = 0;

        p.schedule = plain ? DAFL_SCHEDULE_FULL : DAFL_SCHEDULE_DELTA;
        w = new_world(&p, 3);
        for (uint32_t n = 0; n < dafl_deep_questions(&p); n++) {
            court c = open_court(w, plain == 1);

            refuse_all(&c);
            refused += c.refused;
            close_court(&c);
        }
        assert_int_equal(refused,
                         7 + 5 + 12 * (1 + LAYERS) + (plain ? 12 : 4) * LAYERS);
        expected = plain_model(&p, NULL);
        assert_same_model(w->model, expected);
        dafl_model_free(&expected);
        drop_world(w);
    }
}

/* A server that has counted three rows; drop both. */
static dafl_deep_server *counted_server(dafl_model **model,
                                        const dafl_params *p)
{
    const int64_t census[] = {3, 1, 2};
    dafl_members one = all_of(1);
    dafl_deep_server *server = NULL;
    dafl_question q = {0};

    assert_ok(dafl_model_new(model, p));
    assert_ok(dafl_deep_server_new(&server, *model, &everyone, 1));
    dafl_deep_server_allow_small(server);
    assert_int_equal(sm->take(server, &q, census, 3, &one, NULL), 0);
    return server;
}

/* Three directions at equal angles, their products -1/2 of their squares, have
 * the eigenvalue 0. One unit further apart is impossible, even where lambda
 * would hide it. The directions stand around a place where the elimination goes
 * from one block of pivots to the next. */
static void a_negative_eigenvalue_is_refused_whatever_lambda_is(void **state)
{
    enum { D = 40, LEN = D * (D + 1) / 2 + 2 * D };
    static const double lambdas[] = {0, 1e-3, 1, 1000};
    static const size_t places[] = {0, 1, 30, 31, 32, 33, D - 1};
    dafl_members one = all_of(1);
    size_t tried = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(places) * COUNT(places) * COUNT(places); i++) {
        size_t of[] = {places[i % 7], places[i / 7 % 7], places[i / 49]};
        dafl_params p = params();
        dafl_model *model = NULL;
        dafl_deep_server *server;
        dafl_question q = {.number = 1};
        dafl_why why = {""};
        int64_t x[LEN] = {0}, a = (int64_t)1 << 31;

        if (!(of[0] < of[1] && of[1] < of[2]))
            continue;
        p.width = D;
        p.classes = 2;
        p.layers = 0;
        p.lambda = lambdas[tried++ % COUNT(lambdas)];
        server = counted_server(&model, &p);
        for (int beyond = 1; beyond >= 0; beyond--) {
            for (size_t r = 0; r < 3; r++)
                for (size_t k = r; k < 3; k++)
                    x[of[r] * (2 * D - of[r] + 1) / 2 + of[k] - of[r]] =
                        r == k ? a : -a / 2 - beyond;
            assert_int_equal(sm->take(server, &q, x, LEN, &one, &why),
                             beyond ? DAFL_E_SUM_INVALID : DAFL_FAULT_NONE);
            assert_says(&why, "negative eigenvalue");
        }
        dafl_deep_server_free(&server);
        dafl_model_free(&model);
    }
    assert_int_equal(tried, 35);
}

/* Products near 2^126: a bound that doubles would blur. */
static void the_bound_of_a_product_is_exact(void **state)
{
    dafl_params p = params();
    dafl_contract k = {.exact = true, .s = 24, .q = 4, .n_max = 2047};
    int64_t most = (int64_t)2047 << 52;
    const struct {
        int64_t a, b, c;
        bool possible;
    } cases[] = {
        {most, most, most, true},
        {most, -most, most, true},
        {most, most, most - 1, false},
        {most - 1, -most, most, false},
        {most, most - 1, most - 1, true},  /* m^2 - 2m + 1 <= m^2 - m */
        {most - 2, most - 1, most, false}, /* m^2 - 2m + 1 > m^2 - 2m */
        {most + 1, 0, 0, false},
        {0, 0, most, true},
        {0, 1, most, false},
        {1, 1, 1, true},
        {1, 1, 0, false},
        {0, 0, 0, true},
    };

    (void)state;
    p.width = p.classes = 2;
    p.layers = 0;
    p.contract = k;
    assert_ok(dafl_params_check(&p, NULL));
    for (size_t i = 0; i < COUNT(cases); i++) {
        dafl_members one = all_of(1);
        dafl_model *model = NULL;
        dafl_deep_server *server = counted_server(&model, &p);
        int64_t gram[7] = {cases[i].a, cases[i].b, cases[i].c};
        dafl_question q = {.number = 1};
        dafl_fault fault;

        fault = sm->take(server, &q, gram, 7, &one, NULL);
        assert_int_equal(fault, cases[i].possible ? DAFL_FAULT_NONE
                                                  : DAFL_E_SUM_INVALID);
        assert_int_equal(model->n_heads, cases[i].possible);
        dafl_deep_server_free(&server);
        dafl_model_free(&model);
    }
}

/* No false alarm: more columns than rows, dead units, no regularisation, coarse
 * grids. (The other cases accept honest sums too.) */
static void true_sums_are_never_refused(void **state)
{
    size_t carried = 0;

    (void)state;
    for (size_t i = 0; i < 40; i++) {
        dafl_params p = params();
        dafl_members all;
        dafl_question q;
        world *w;

        p.width = i % 4 == 0 ? ROWS + 20 : random_size(1, 40);
        p.hidden = random_size(1, 70);
        p.activation = (dafl_activation)random_size(0, DAFL_ACT_COUNT - 1);
        p.lambda = (double)random_size(0, 2);
        p.gamma = p.lambda + 0.01;
        p.contract.s = (unsigned)random_size(8, 14);
        p.contract.q = 16;
        assert_ok(dafl_params_check(&p, NULL));
        w = new_world(&p, random_size(1, 4));
        all = all_of(w->n);
        while (sm->next(w->server, false, &q)) {
            int64_t *sum = sum_or_none(w, &q, &all);

            if (sum == NULL) /* not even 16 is enough for so bad a fit */
                break;
            give(w, &q, sum, &all);
            free(sum);
            carried += q.rank > 0;
        }
        drop_world(w);
    }
    assert_true(carried > 60);
}

#ifdef DAFL_WEAKEN
/* The control: without the judgement a poisoned sum becomes the model. */
static void without_the_judgement_a_poisoned_sum_is_taken(void **state)
{
    dafl_params p = params();
    dafl_model *expected;
    world *w = new_world(&p, 2);
    court c;

    (void)state;
    assert_true(step(w, false));
    c = open_court(w, false);
    c.x[0] = -c.x[0];
    dafl_weakened = DAFL_WEAK_SANITY;
    assert_int_equal(sm->take(w->server, &c.q, c.x, c.len, &c.all, NULL), 0);
    dafl_weakened = DAFL_WEAK_NOTHING;
    assert_int_equal(w->model->n_heads, 1);
    expected = plain_model(&p, NULL);
    assert_false(same_doubles(w->model->heads[0].w, expected->heads[0].w,
                              p.width * p.classes));
    dafl_model_free(&expected);
    free(c.honest);
    free(c.x);
    drop_world(w);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(impossible_sums_are_refused_and_change_nothing),
        CASE(a_negative_eigenvalue_is_refused_whatever_lambda_is),
        CASE(the_bound_of_a_product_is_exact),
        CASE(true_sums_are_never_refused),
#ifdef DAFL_WEAKEN
        CASE(without_the_judgement_a_poisoned_sum_is_taken),
#endif
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
