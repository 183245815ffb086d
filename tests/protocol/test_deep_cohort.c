/* SPDX-License-Identifier: Apache-2.0 */
/* Whose sums a server of DeepAFL asks for and takes. */
#include <math.h>

#include "tests/protocol/deep_world.h"
#include "tests/protocol/party.h"

static void an_increment_is_for_the_cohort_of_its_ties(void **state)
{
    dafl_params p = params();
    world *w = new_world(&p, 3);
    dafl_members all = all_of(3), two = all, four = all_of(4);
    dafl_question q;
    int64_t *sum;

    (void)state;
    dafl_members_remove(&two, 2);
    for (int i = 0; i < 3; i++)
        assert_true(step(w, false));
    assert_true(sm->next(w->server, false, &q));
    assert_int_equal(q.rank, p.classes);
    sum = sum_of(w, &q, &two);
    assert_int_equal(sm->take(w->server, &q, sum, length(w, &q), &two, NULL),
                     DAFL_E_COHORT);
    assert_int_equal(sm->take(w->server, &q, sum, length(w, &q), &four, NULL),
                     DAFL_E_COHORT);
    free(sum);
    /* they can give the whole */
    assert_true(sm->next(w->server, true, &q));
    assert_int_equal(q.rank, 0);
    sum = sum_of(w, &q, &two);
    give(w, &q, sum, &two);
    free(sum);
    /* A residual over another cohort than that of G: nobody could give an
     * increment, and it is not asked for. */
    assert_true(step(w, false));
    assert_true(sm->next(w->server, false, &q));
    assert_int_equal(q.rank, 0);
    assert_true(step(w, false));
    drop_world(w);
}

static void only_the_next_question_is_taken(void **state)
{
    dafl_params p = params();
    world *w = new_world(&p, 1);
    dafl_members all = all_of(1);
    dafl_question q;

    (void)state;
    while (sm->next(w->server, false, &q)) {
        size_t len = length(w, &q);
        int64_t *zeros = integers(4096);

        for (uint32_t n = 0; n <= dafl_deep_questions(&p); n++)
            for (uint32_t rank = 0; rank <= 5; rank++) {
                dafl_question other = {n, rank};
                dafl_shape shape = {.len = len};

                if (n == q.number && (rank == 0 || rank == q.rank))
                    continue;
                (void)dafl_deep_shape(&shape, w->model, &other);
                assert_int_equal(sm->take(w->server, &other, zeros,
                                          (size_t)shape.len, &all, NULL),
                                 DAFL_E_STATE);
            }
        assert_int_equal(sm->take(w->server, &q, zeros, len - 1, &all, NULL),
                         DAFL_E_STATE);
        assert_int_equal(sm->take(w->server, &q, zeros, len + 1, &all, NULL),
                         DAFL_E_STATE);
        free(zeros);
        assert_true(step(w, false));
        /* a segment that is not there yet */
        if (q.number + 2 < dafl_deep_questions(&p)) {
            dafl_segment segment;
            dafl_writer bytes = {0};

            if (q.number > 0)
                assert_int_equal(
                    sm->segment(w->server, q.number + 2, &segment, &bytes),
                    DAFL_E_MODEL);
            dafl_writer_drop(&bytes);
        }
    }
    drop_world(w);
}

/* Nothing is learnt from sums of zeros: W = 0 has rank 0, its increment would
 * be empty, so the full sum is asked for. */
static void after_a_classifier_of_rank_zero_full_sums_are_asked(void **state)
{
    dafl_params p = params();
    world *w = new_world(&p, 2);
    dafl_members all = all_of(2);
    dafl_question q;

    (void)state;
    assert_true(step(w, false));
    while (sm->next(w->server, false, &q)) {
        int64_t *zeros = integers(length(w, &q));

        assert_int_equal(q.rank, 0);
        for (size_t k = 0; k < 2; k++)
            bring_up(w, w->clients[k], &w->followed[k], q.number);
        give(w, &q, zeros, &all);
        free(zeros);
    }
    for (size_t t = 0; t <= p.layers; t++)
        assert_int_equal(w->model->heads[t].rank, 0);
    q = (dafl_question){.number = dafl_deep_questions(&p) - 1};
    free(sum_of(w, &q, &all)); /* the clients can follow such a model */
    drop_world(w);
}

#define PARTIES 24

/* PARTIES clients in cells of `size`. */
static dafl_roster *make_roster(size_t size)
{
    dafl_party *p = calloc(PARTIES + 1, sizeof *p);
    dafl_roster *roster = calloc(1, sizeof *roster);

    assert_non_null(p);
    assert_non_null(roster);
    for (size_t i = 0; i <= PARTIES; i++) {
        dafl_secret_identity id;

        p[i] = party_at(i, PARTIES, size, &id);
    }
    assert_ok(dafl_roster_make(roster, p, PARTIES + 1, NULL));
    free(p);
    return roster;
}

/* What agents/federation.c draws: `cohort` sites of n. */
static dafl_members federation_draw(const dafl_params *p, double participation,
                                    bool consistent, const dafl_query *query)
{
    size_t n = (size_t)(participation * (double)PARTIES + 0.5);
    bool all = query->kind == DAFL_QUERY_CENSUS ||
               query->kind == DAFL_QUERY_REPORT || n >= PARTIES;
    bool second = !consistent && query->kind == DAFL_QUERY_RESIDUAL;
    dafl_members m = dafl_members_none(PARTIES);
    uint32_t k[PARTIES];
    dafl_draw draw;

    for (uint32_t i = 0; i < PARTIES; i++)
        k[i] = i;
    dafl_draw_init(&draw, &p->seed, DAFL_STREAM_PARTICIPATION,
                   2 * query->layer + (second ? 1 : 0));
    dafl_draw_shuffle(&draw, k, PARTIES);
    for (size_t i = 0; i < (all ? PARTIES : n < 1 ? 1 : n); i++)
        dafl_members_add(&m, k[i]);
    return m;
}

static void whole_cells_are_drawn_as_the_federation_draws_sites(void **state)
{
    static const size_t sizes[] = {1, 2, 3, 5, 8, 24};
    static const uint16_t shares[] = {1, 20, 145, 300, 333, 500, 999, 1000};

    (void)state;
    for (size_t i = 0; i < COUNT(sizes) * COUNT(shares) * 2; i++) {
        size_t size = sizes[i % COUNT(sizes)];
        dafl_participation part = {shares[i / COUNT(sizes) % COUNT(shares)],
                                   i >= COUNT(sizes) * COUNT(shares)};
        dafl_roster *roster = make_roster(size);
        dafl_params p = params();
        dafl_model *model = NULL;
        dafl_deep_server *server = NULL;
        double exact = part.permille * (double)roster->n_cells / 1000;

        assert_ok(dafl_model_new(&model, &p));
        assert_ok(dafl_deep_server_new(&server, model, &part, PARTIES));
        for (uint32_t n = 0; n < dafl_deep_questions(&p); n++) {
            dafl_question q = {.number = n};
            dafl_members cohort = dafl_roster_clients(roster), some = cohort;
            size_t cells = 0;
            dafl_query query;

            dafl_deep_query(&query, &p, &q);
            sm->choose(server, &q, roster, &cohort);
            assert_true(dafl_roster_whole_cells(roster, &cohort));
            for (uint16_t c = 0; c < roster->n_cells; c++) {
                dafl_members cell = dafl_roster_cell(roster, c);

                cells += dafl_members_within(&cell, &cohort);
            }
            if (query.kind == DAFL_QUERY_CENSUS ||
                query.kind == DAFL_QUERY_REPORT)
                assert_int_equal(cells, roster->n_cells);
            else if (exact < 1)
                assert_int_equal(cells, 1);
            else
                assert_true(fabs((double)cells - exact) <= 0.5);
            if (size == 1) {
                dafl_members drawn = federation_draw(&p, part.permille / 1000.0,
                                                     part.consistent, &query);

                assert_true(dafl_members_equal(&cohort, &drawn));
            }
            /* narrowed, never widened */
            for (size_t k = 0; k < PARTIES; k++)
                if (random_size(0, 1) == 0)
                    dafl_members_remove(&some, k);
            {
                dafl_members before = some;

                sm->choose(server, &q, roster, &some);
                assert_true(dafl_members_within(&some, &before));
                assert_true(dafl_members_within(&some, &cohort));
                before = dafl_members_minus(&before, &cohort);
                assert_false(dafl_members_within(&before, &some) &&
                             dafl_members_count(&before) > 0);
            }
        }
        dafl_deep_server_free(&server);
        dafl_model_free(&model);
        free(roster);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(an_increment_is_for_the_cohort_of_its_ties),
        CASE(only_the_next_question_is_taken),
        CASE(after_a_classifier_of_rank_zero_full_sums_are_asked),
        CASE(whole_cells_are_drawn_as_the_federation_draws_sites),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
