/* SPDX-License-Identifier: Apache-2.0 */
/* Questions, answers and what comes of them: the model of all rows, whoever
 * misses questions, is asked again or starts over. */
#include <math.h>

#include "tests/protocol/deep_world.h"
#include "tests/same_model.h"

/* ---- questions and segments ---- */

static void questions_are_numbered_in_the_order_they_are_asked(void **state)
{
    (void)state;
    for (size_t i = 0; i < 40; i++) {
        dafl_params p = variant(i % VARIANTS);
        world *w = new_world(&p, 2);
        bool omega = p.ablate == DAFL_ABLATE_OMEGA;
        uint32_t n = 0;
        dafl_question q;
        dafl_query query;

        while (sm->next(w->server, random_size(0, 1), &q)) {
            dafl_shape shape;

            assert_int_equal(q.number, n++);
            dafl_deep_query(&query, &p, &q);
            assert_int_equal(dafl_deep_number(&p, &query), q.number);
            assert_int_equal(query.rank, q.rank);
            assert_int_equal(query.kind == DAFL_QUERY_INCREMENT, q.rank > 0);
            assert_int_equal(sm->shape(w->server, &q, &shape), 0);
            assert_int_equal(shape.n_ties, q.rank > 0 ? 2 : 0);
            if (q.rank > 0) {
                assert_int_equal(shape.ties[0], q.number - 1);
                assert_int_equal(shape.ties[1], q.number - 2);
                assert_int_equal(shape.len, p.width * q.rank);
            }
            assert_true(step(w, q.rank == 0));
        }
        assert_int_equal(n, dafl_deep_questions(&p));
        assert_int_equal(n, 3 + (omega ? 1 : 2) * p.layers);
        q = (dafl_question){.number = n};
        dafl_deep_query(&query, &p, &q);
        assert_int_equal(query.kind, DAFL_QUERY_DONE);
        assert_int_equal(dafl_deep_number(&p, &query), n);
        drop_world(w);
    }
}

/* The heart of it: whoever holds which rows. */
static void the_model_is_that_of_one_site_with_all_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < VARIANTS; i++) {
        dafl_params p = variant(i);
        dafl_site *site = NULL;
        dafl_model *plain = plain_model(&p, &site);
        world *w = new_world(&p, random_size(1, MOST_CLIENTS));

        while (step(w, false))
            ;
        assert_same_model(w->model, plain);
        assert_int_equal(dafl_deep_server_rows(w->server, false), ROWS);
        assert_int_equal(dafl_deep_server_rows(w->server, true), HELD);
        for (size_t t = 0; t <= p.layers; t++) {
            size_t train = 0;

            for (size_t k = 0; k < w->n; k++)
                train +=
                    dafl_site_correct(dafl_deep_client_site(w->clients[k]), t);
            assert_int_equal(dafl_deep_server_correct(w->server, t, false),
                             dafl_site_correct(site, t));
            assert_int_equal(train, dafl_site_correct(site, t));
        }
        drop_world(w);
        dafl_site_free(&site);
        dafl_model_free(&plain);
    }
}

static void held_out_rows_follow_the_model_and_are_counted_only(void **state)
{
    dafl_params p = params();
    world *w = new_world(&p, 3);
    uint32_t rows[HELD];
    plot apart = {.rows = rows, .n = HELD}; /* as a site's own */
    dafl_deep_client *c;
    uint32_t followed = 0;
    dafl_question q = {0};

    (void)state;
    for (uint32_t i = 0; i < HELD; i++)
        rows[i] = ROWS + i;
    c = new_client(&p, &apart);
    while (sm->next(w->server, false, &q)) {
        (void)step(w, false);
        if (q.number + 1 < dafl_deep_questions(&p))
            (void)get_segment(w, q.number + 1);
    }
    free(answer_of(w, c, &followed, &q));
    for (size_t t = 0; t <= p.layers; t++)
        assert_int_equal(dafl_deep_server_correct(w->server, t, true),
                         dafl_site_correct(dafl_deep_client_site(c), t));
    dafl_deep_client_free(&c);
    drop_world(w);
}

/* ---- missing, asking again, starting over ---- */

/* A twin of client 0 that is asked only now and then, and may forget what it
 * has left behind. */
static void one_that_missed_questions_answers_like_the_others(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3 * VARIANTS; i++) {
        dafl_params p = variant(i % VARIANTS);
        world *w = new_world(&p, 2);
        plot same = w->plots[0];
        dafl_deep_client *twin = new_client(&p, &same);
        dafl_members all = all_of(w->n);
        uint32_t followed = 0, absent = (uint32_t)random_size(0, 5);
        size_t compared = 0;
        dafl_question q;

        if (random_size(0, 1) == 0)
            dafl_deep_client_forget(twin);
        while (sm->next(w->server, random_size(0, 3) == 0, &q)) {
            size_t len = length(w, &q);
            int64_t *mine = NULL, *sum = integers(len);

            for (size_t k = 0; k < w->n; k++) {
                int64_t *x = answer_of(w, w->clients[k], &w->followed[k], &q);

                assert_non_null(x);
                for (size_t j = 0; j < len; j++)
                    sum[j] += x[j];
                if (k == 0)
                    mine = x;
                else
                    free(x);
            }
            if (absent-- == 0 || q.number + 1 == dafl_deep_questions(&p)) {
                int64_t *x = answer_of(w, twin, &followed, &q);

                assert_non_null(x);
                assert_memory_equal(x, mine, len * sizeof *x);
                free(x);
                compared++;
                absent = (uint32_t)random_size(1, 5);
            }
            free(mine);
            give(w, &q, sum, &all);
            free(sum);
        }
        assert_true(compared > 0);
        dafl_deep_client_free(&twin);
        drop_world(w);
    }
}

/* Every attempt but the last is thrown away, whichever variant it was. */
static void a_question_may_be_asked_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < VARIANTS; i++) {
        dafl_params p = variant(i);
        dafl_model *plain;
        world *w = new_world(&p, 3);
        dafl_members all = all_of(w->n);
        dafl_question q;

        dafl_deep_client_forget(w->clients[0]);
        while (sm->next(w->server, false, &q)) {
            dafl_question full = {.number = q.number};
            size_t len;
            int64_t *first, *again;

            if (q.rank > 0)
                free(sum_of(w, &q, &all));
            /* An increment is gone with its base, for good. */
            for (size_t k = 0; q.rank > 0 && k < w->n; k++)
                assert_null(answer_of(w, w->clients[k], &w->followed[k], &q));
            len = length(w, &full);
            first = sum_of(w, &full, &all);
            for (size_t times = random_size(1, 3); times > 0; times--) {
                again = sum_of(w, &full, &all);
                assert_memory_equal(first, again, len * sizeof *first);
                free(again);
            }
            give(w, &full, first, &all);
            free(first);
        }
        /* ... and what comes of it is what the full schedule gives. */
        p.schedule = DAFL_SCHEDULE_FULL;
        plain = plain_model(&p, NULL);
        assert_same_model(w->model, plain);
        dafl_model_free(&plain);
        drop_world(w);
    }
}

/* On a fine grid, where increments lose little: 200 rows of errors 2^-24 in
 * operands near 1. */
static void increments_and_full_sums_give_the_same_model(void **state)
{
    dafl_params p = params();
    dafl_model *models[2];
    double worst = 0;

    (void)state;
    p.contract = (dafl_contract){.exact = true, .s = 24, .q = 4, .n_max = 2000};
    assert_ok(dafl_params_check(&p, NULL));
    for (size_t plain = 0; plain < 2; plain++) {
        world *w = new_world(&p, 3);
        dafl_question q;

        while (sm->next(w->server, plain == 1, &q)) {
            bool later = q.number % 2 == 1 && q.number > 1 &&
                         q.number + 1 < dafl_deep_questions(&p);

            assert_int_equal(q.rank > 0, plain == 0 && later);
            assert_true(step(w, plain == 1));
        }
        models[plain] = w->model;
        w->model = NULL;
        drop_world(w);
    }
    for (size_t t = 0; t <= p.layers; t++)
        for (size_t i = 0; i < p.width * p.classes; i++)
            worst = fmax(worst, fabs(models[0]->heads[t].w[i] -
                                     models[1]->heads[t].w[i]));
    assert_true(worst < 1e-5);
    dafl_model_free(&models[0]);
    dafl_model_free(&models[1]);
}

static void only_the_newest_question_is_answered(void **state)
{
    (void)state;
    for (size_t v = 0; v < 4; v++) { /* delta and full, with and without skip */
        dafl_params p = variant(v);
        world *w = new_world(&p, 1);
        dafl_deep_client *c = w->clients[0];
        uint32_t questions = dafl_deep_questions(&p);
        int64_t *x = integers(4096);
        dafl_question q = {0};

        assert_int_equal(cm->answer(c, &q, x, 1 + p.classes), DAFL_E_MODEL);
        while (sm->next(w->server, false, &q)) {
            size_t len = length(w, &q);
            dafl_shape shape;

            bring_up(w, c, &w->followed[0], q.number);
            for (uint32_t n = 0; n <= questions; n++)
                for (uint32_t rank = 0; rank <= 5; rank++) {
                    dafl_question other = {n, rank};

                    if (n == q.number && (rank == 0 || rank == q.rank))
                        continue;
                    assert_int_equal(cm->shape(c, &other, &shape),
                                     DAFL_E_MODEL);
                    assert_int_equal(cm->answer(c, &other, x, len),
                                     DAFL_E_MODEL);
                    /* the server knows the increment it has just had */
                    if (rank > 0 && n + 1 != q.number)
                        assert_int_equal(sm->shape(w->server, &other, &shape),
                                         DAFL_E_MODEL);
                }
            assert_int_equal(cm->answer(c, &q, x, len - 1), DAFL_E_MODEL);
            assert_int_equal(cm->answer(c, &q, x, len + 1), DAFL_E_MODEL);
            assert_true(step(w, false));
        }
        /* beyond the last question there is nothing to follow */
        assert_int_equal(cm->follow(c, &(dafl_segment){.query = questions}),
                         DAFL_E_MODEL);
        assert_int_equal(sm->segment(w->server, questions, &(dafl_segment){0},
                                     &(dafl_writer){0}),
                         DAFL_E_MODEL);
        free(x);
        drop_world(w);
    }
}

static void one_that_starts_over_answers_as_before(void **state)
{
    dafl_params p = params();
    world *w = new_world(&p, 2);
    dafl_members all = all_of(2);
    dafl_question q;
    size_t times = 1;

    (void)state;
    dafl_deep_client_forget(w->clients[0]);
    while (sm->next(w->server, true, &q)) {
        int64_t *sum = sum_of(w, &q, &all), *again;

        if (random_size(0, 1) == 0) {
            assert_int_equal(cm->rewind(w->clients[0]), 0);
            w->followed[0] = 0;
            assert_int_equal(w->plots[0].founded, ++times);
        }
        again = sum_of(w, &q, &all);
        assert_memory_equal(sum, again, length(w, &q) * sizeof *sum);
        give(w, &q, sum, &all);
        free(again);
        free(sum);
    }
    /* rows that are no longer good are other rows */
    w->plots[1].gone = true;
    assert_int_equal(cm->rewind(w->clients[1]), DAFL_E_DATA_CHANGED);
    assert_null(dafl_deep_client_site(w->clients[1]));
    q = (dafl_question){0};
    w->followed[1] = 0;
    assert_null(answer_of(w, w->clients[1], &w->followed[1], &q));
    w->plots[1].gone = false;
    assert_int_equal(cm->rewind(w->clients[1]), 0);
    w->followed[1] = 0;
    {
        int64_t *x = answer_of(w, w->clients[1], &w->followed[1], &q);

        assert_non_null(x);
        assert_int_equal(x[0], w->plots[1].n);
        free(x);
    }
    drop_world(w);
}

static void a_run_without_a_grid_is_not_for_the_protocol(void **state)
{
    dafl_params p = params();
    dafl_deep_client *c = NULL;
    dafl_deep_server *s = NULL;
    dafl_model *model = NULL;
    plot none = {0};

    (void)state;
    p.contract.exact = false;
    assert_ok(dafl_model_new(&model, &p));
    assert_int_equal(dafl_deep_client_new(&c, &p, found, NULL, &none, NULL),
                     DAFL_ERR_ARG);
    assert_int_equal(dafl_deep_server_new(&s, model, &everyone, 1),
                     DAFL_ERR_ARG);
    dafl_model_free(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(questions_are_numbered_in_the_order_they_are_asked),
        CASE(the_model_is_that_of_one_site_with_all_rows),
        CASE(held_out_rows_follow_the_model_and_are_counted_only),
        CASE(one_that_missed_questions_answers_like_the_others),
        CASE(a_question_may_be_asked_again),
        CASE(increments_and_full_sums_give_the_same_model),
        CASE(only_the_newest_question_is_answered),
        CASE(one_that_starts_over_answers_as_before),
        CASE(a_run_without_a_grid_is_not_for_the_protocol),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
