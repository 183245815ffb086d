/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "tests/sites.h"
#include "lib/file.h"

/* A model in training: rows over two sites, and the two cohorts that the tests
 * use, everyone and the first site alone. */
typedef struct {
    dafl_data data;
    dafl_pool *pool;
    dafl_model *model;
    dafl_trainer *trainer;
    dafl_set all, first;
    crew crew;
} run;

static void start(run *r, dafl_params p)
{
    assert_ok(dafl_params_check(&p, NULL));
    r->model = NULL;
    r->trainer = NULL;
    assert_ok(dafl_model_new(&r->model, &p));
    assert_ok(dafl_trainer_new(&r->trainer, r->model, 2));
    r->crew = make_crew(r->model, r->pool, &r->data, 2);
}

static void stop(run *r)
{
    drop_crew(&r->crew);
    dafl_trainer_free(&r->trainer);
    dafl_model_free(&r->model);
}

static run *the_run;

static int setup(void **state)
{
    run *r = calloc(1, sizeof *r);

    if (r == NULL || make_dir(state) != 0)
        return -1;
    r->data = random_data(200, 7, 4);
    assert_ok(dafl_pool_new(&r->pool, 1));
    assert_ok(dafl_set_init(&r->all, 2));
    assert_ok(dafl_set_init(&r->first, 2));
    dafl_set_add(&r->all, 0);
    dafl_set_add(&r->all, 1);
    dafl_set_add(&r->first, 0);
    the_run = r;
    return 0;
}

static int teardown(void **state)
{
    run *r = the_run;

    dafl_set_drop(&r->first);
    dafl_set_drop(&r->all);
    dafl_pool_free(&r->pool);
    dafl_data_close(&r->data);
    free(r);
    return remove_dir(state);
}

/* Answer the next query of everyone; false when there is none. */
static bool step(run *r)
{
    dafl_query query;
    dafl_why why = {""};
    dafl_sum sum;

    dafl_trainer_next(r->trainer, &query, &r->all);
    if (query.kind == DAFL_QUERY_DONE)
        return false;
    sum = ask(&r->crew, &query);
    if (dafl_trainer_take(r->trainer, &query, &sum, &r->all, &why) != DAFL_OK)
        fail_msg("%s: %s", dafl_query_name(query.kind), why.text);
    dafl_sum_drop(&sum);
    return true;
}

static bool same_query(dafl_query a, dafl_query b)
{
    return a.kind == b.kind && a.layer == b.layer && a.rank == b.rank;
}

/* Every (kind, layer) but the expected one is refused and changes nothing,
 * all the way through a training. */
static void queries_out_of_turn_are_refused(void **state)
{
    run *r = the_run;

    (void)state;
    start(r, small_params());
    do {
        dafl_query next, after;

        dafl_trainer_next(r->trainer, &next, &r->all);
        for (int kind = 0; kind <= DAFL_QUERY_DONE; kind++)
            for (size_t layer = 0; layer <= 3; layer++) {
                dafl_query query = {.kind = (dafl_query_kind)kind,
                                    .layer = layer,
                                    .rank = next.rank};
                dafl_sum sum = empty_sum(&r->model->params, &query);
                bool full = query.kind == DAFL_QUERY_GRAM &&
                            next.kind == DAFL_QUERY_INCREMENT;

                if (layer != next.layer || (query.kind != next.kind && !full) ||
                    query.kind == DAFL_QUERY_DONE)
                    assert_int_equal(dafl_trainer_take(r->trainer, &query, &sum,
                                                       &r->all, NULL),
                                     DAFL_ERR_ARG);
                dafl_sum_drop(&sum);
            }
        dafl_trainer_next(r->trainer, &after, &r->all);
        assert_true(same_query(next, after));
    } while (step(r));
    assert_int_equal(r->model->n_heads, 3);
    assert_int_equal(r->model->n_blocks, 2);
    stop(r);
}

static void sums_of_another_length_are_refused(void **state)
{
    run *r = the_run;
    dafl_query query;

    (void)state;
    start(r, small_params());
    for (;;) {
        dafl_trainer_next(r->trainer, &query, &r->all);
        if (query.kind == DAFL_QUERY_DONE)
            break;
        for (int more = -1; more <= 1; more += 2) {
            dafl_sum right = empty_sum(&r->model->params, &query), sum;

            assert_ok(dafl_sum_init(&sum, right.len + (size_t)more, true));
            assert_int_equal(
                dafl_trainer_take(r->trainer, &query, &sum, &r->all, NULL),
                DAFL_ERR_ARG);
            dafl_sum_drop(&sum);
            dafl_sum_drop(&right);
        }
        assert_true(step(r));
    }
    stop(r);
}

/* Census, G_0, residual of everyone: an increment may follow. */
static void start_until_increment(run *r, dafl_params p)
{
    dafl_query query;

    start(r, p);
    for (int i = 0; i < 3; i++)
        assert_true(step(r));
    dafl_trainer_next(r->trainer, &query, &r->all);
    assert_int_equal(query.kind, DAFL_QUERY_INCREMENT);
    assert_int_equal(query.layer, 1);
    assert_int_equal(query.rank, r->model->blocks[0].rank);
}

static void an_increment_of_another_cohort_is_refused(void **state)
{
    run *r = the_run;
    dafl_query increment, query;
    dafl_sum sum;

    (void)state;
    start_until_increment(r, small_params());
    dafl_trainer_next(r->trainer, &increment, &r->all);
    sum = empty_sum(&r->model->params, &increment);
    assert_int_equal(
        dafl_trainer_take(r->trainer, &increment, &sum, &r->first, NULL),
        DAFL_ERR_ARG);
    dafl_sum_drop(&sum);
    /* They are asked for all of G and H instead, and that is taken. */
    dafl_trainer_next(r->trainer, &query, &r->first);
    assert_int_equal(query.kind, DAFL_QUERY_GRAM);
    sum = ask(&(crew){.n = 1, .model = r->model, .sites = {r->crew.sites[0]}},
              &query);
    assert_ok(dafl_trainer_take(r->trainer, &query, &sum, &r->first, NULL));
    dafl_sum_drop(&sum);
    assert_false(dafl_trainer_risk(r->trainer).known);
    stop(r);
}

/* G is of the first site alone: nobody can add to it but the first site, and
 * that only if it gave the residual alone too. */
static void an_increment_needs_one_cohort_throughout(void **state)
{
    run *r = the_run;
    crew alone;
    dafl_query query;
    dafl_sum sum;

    (void)state;
    start(r, small_params());
    alone = (crew){.n = 1, .model = r->model, .sites = {r->crew.sites[0]}};
    assert_true(step(r));
    dafl_trainer_next(r->trainer, &query, &r->first);
    sum = ask(&alone, &query);
    assert_ok(dafl_trainer_take(r->trainer, &query, &sum, &r->first, NULL));
    dafl_sum_drop(&sum);
    assert_true(step(r)); /* the residual of all */
    dafl_trainer_next(r->trainer, &query, &r->all);
    assert_int_equal(query.kind, DAFL_QUERY_GRAM);
    dafl_trainer_next(r->trainer, &query, &r->first);
    assert_int_equal(query.kind, DAFL_QUERY_GRAM);
    stop(r);
}

static void an_increment_of_another_rank_is_refused(void **state)
{
    run *r = the_run;
    dafl_query query;

    (void)state;
    start_until_increment(r, small_params());
    dafl_trainer_next(r->trainer, &query, &r->all);
    for (int more = -1; more <= 1; more += 2) {
        dafl_query other = query;
        dafl_sum sum;

        other.rank += (size_t)more;
        sum = empty_sum(&r->model->params, &other);
        assert_int_equal(
            dafl_trainer_take(r->trainer, &other, &sum, &r->all, NULL),
            DAFL_ERR_ARG);
        dafl_sum_drop(&sum);
    }
    stop(r);
}

static void a_full_schedule_never_asks_for_increments(void **state)
{
    run *r = the_run;
    dafl_params p = small_params();

    (void)state;
    p.schedule = DAFL_SCHEDULE_FULL;
    start(r, p);
    do {
        dafl_query query;

        dafl_trainer_next(r->trainer, &query, &r->all);
        assert_int_not_equal(query.kind, DAFL_QUERY_INCREMENT);
    } while (step(r));
    stop(r);
}

static void a_census_out_of_range_is_refused(void **state)
{
    run *r = the_run;
    dafl_query query = {.kind = DAFL_QUERY_CENSUS};

    (void)state;
    for (int exact = 0; exact < 2; exact++) {
        const double bad[] = {0, -1, 201, 1e15, NAN, INFINITY};
        dafl_params p = small_params();

        p.contract.exact = exact;
        p.contract.n_max = 200;
        start(r, p);
        for (size_t i = 0; i < COUNT(bad) - (exact ? 2 : 0); i++) {
            dafl_sum sum = empty_sum(&p, &query);
            dafl_why why = {""};
            dafl_query next;

            if (exact)
                sum.i[0] = (int64_t)bad[i];
            else
                sum.f[0] = bad[i];
            assert_int_not_equal(
                dafl_trainer_take(r->trainer, &query, &sum, &r->all, &why),
                DAFL_OK);
            assert_says(&why, "allows 1 to 200");
            dafl_trainer_next(r->trainer, &next, &r->all);
            assert_int_equal(next.kind, DAFL_QUERY_CENSUS);
            dafl_sum_drop(&sum);
        }
        assert_true(step(r));
        assert_int_equal(dafl_trainer_rows(r->trainer), 200);
        stop(r);
    }
}

static dafl_map trained(run *r, const char *name)
{
    dafl_map map;

    while (step(r))
        ;
    /* The file cannot say that there was no grid. */
    r->model->params.contract = DAFL_CONTRACT_DEFAULT;
    assert_ok(dafl_contract_derive(&r->model->params.contract, NULL));
    assert_ok(dafl_model_save(r->model, at(name), NULL));
    assert_ok(dafl_map_open(&map, at(name), NULL));
    return map;
}

/* Before every good sum, one with a number that is not finite, at every part:
 * refused, and the model is the same as if nothing had happened. */
static void a_sum_without_solution_changes_nothing(void **state)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    run *r = the_run;

    (void)state;
    for (int full = 0; full < 2; full++) {
        dafl_params p = small_params();
        dafl_map plain, troubled;
        size_t refused = 0;
        dafl_query query;

        p.contract.exact = false;
        p.schedule = full ? DAFL_SCHEDULE_FULL : DAFL_SCHEDULE_DELTA;
        check_state = 7; /* the same split twice */
        start(r, p);
        plain = trained(r, "plain");
        stop(r);
        check_state = 7;
        start(r, p);
        for (;;) {
            dafl_layout layout;
            dafl_risk before = dafl_trainer_risk(r->trainer), after;

            dafl_trainer_next(r->trainer, &query, &r->all);
            if (query.kind == DAFL_QUERY_REPORT)
                break;
            dafl_query_layout(&layout, &p, &query);
            for (unsigned part = 0;
                 query.kind != DAFL_QUERY_CENSUS && part < layout.n; part++)
                for (size_t b = 0; b < COUNT(bad); b++) {
                    dafl_sum sum = empty_sum(&p, &query);
                    const dafl_part *at_part = &layout.parts[part];
                    dafl_why why = {""};
                    dafl_query next;

                    for (size_t i = 0; i < sum.len; i++)
                        sum.f[i] = random_double();
                    sum.f[at_part->offset + at_part->len - 1] = bad[b];
                    assert_int_equal(dafl_trainer_take(r->trainer, &query, &sum,
                                                       &r->all, &why),
                                     DAFL_ERR_NUMERIC);
                    assert_string_not_equal(why.text, "");
                    dafl_trainer_next(r->trainer, &next, &r->all);
                    assert_true(same_query(next, query));
                    dafl_sum_drop(&sum);
                    refused++;
                }
            after = dafl_trainer_risk(r->trainer);
            assert_true(before.known == after.known &&
                        before.risk == after.risk);
            assert_true(step(r));
        }
        assert_int_equal(refused, full ? 30 : 24);
        troubled = trained(r, "troubled");
        stop(r);
        assert_int_equal(plain.bytes.len, troubled.bytes.len);
        assert_memory_equal(plain.bytes.ptr, troubled.bytes.ptr,
                            plain.bytes.len);
        dafl_map_close(&troubled);
        dafl_map_close(&plain);
    }
}

/* Phi'Z carries G and H to the next layer: the same heads, up to rounding. */
static void increments_and_full_sums_give_the_same_model(void **state)
{
    run *r = the_run;
    double w[2][3 * 20 * 4];

    (void)state;
    for (int full = 0; full < 2; full++) {
        dafl_params p = small_params();

        p.contract.exact = false;
        p.schedule = full ? DAFL_SCHEDULE_FULL : DAFL_SCHEDULE_DELTA;
        start(r, p);
        while (step(r))
            ;
        for (size_t t = 0; t < 3; t++)
            memcpy(w[full] + 80 * t, r->model->heads[t].w, 80 * sizeof(double));
        stop(r);
    }
    for (size_t i = 0; i < COUNT(w[0]); i++)
        assert_true(fabs(w[0][i] - w[1][i]) < 1e-9);
}

static double squares(const double *x, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sum;
}

/* lambda ||W||^2 of the newest head + gamma sum ||N||^2. */
static double penalty(const dafl_model *model)
{
    const dafl_params *p = &model->params;
    double sum = p->lambda * squares(model->heads[model->n_heads - 1].w,
                                     p->width * p->classes);

    for (size_t t = 0; t < model->n_blocks; t++)
        sum += p->gamma *
               squares(model->blocks[t].n, p->hidden * model->blocks[t].rank);
    return sum;
}

/* ||Y - Phi W||^2 from the sums alone, and from the scores of the rows. */
static void the_risk_is_that_of_the_rows_and_never_rises(void **state)
{
    run *r = the_run;
    dafl_params p = small_params();
    double last = INFINITY, *scores = doubles(200 * 4), risk = 0;
    dafl_site *site = NULL;
    dafl_projection m;
    size_t head = 0;

    (void)state;
    p.contract.exact = false;
    start(r, p);
    assert_ok(dafl_model_projection(r->model, &m, 0));
    assert_ok(dafl_site_new(&site, &r->model->params, r->pool, &r->data, NULL,
                            200, &m, NULL));
    dafl_projection_drop(&m);
    while (step(r)) {
        dafl_risk now = dafl_trainer_risk(r->trainer);

        if (r->model->n_heads == head)
            continue;
        if (head > 0) {
            dafl_head *before = &r->model->heads[head - 1];

            assert_ok(dafl_model_projection(r->model, &m, head));
            assert_ok(dafl_site_hidden(site, before, &m, NULL, NULL));
            assert_ok(dafl_site_advance(
                site, before, &r->model->blocks[head - 1], NULL, NULL));
            dafl_projection_drop(&m);
        }
        assert_ok(dafl_site_score(site, &r->model->heads[head], scores, NULL));
        risk = 0;
        for (size_t i = 0; i < 200 * 4; i++) {
            double y = r->data.y[i / 4] == i % 4 ? 1 : 0;
            risk += (y - scores[i]) * (y - scores[i]);
        }
        assert_true(now.known && fabs(now.risk - risk) < 1e-9 * risk);
        assert_true(now.regularised_risk <= last * (1 + 1e-12));
        assert_true(fabs(now.regularised_risk - risk - penalty(r->model)) <
                    1e-9 * risk);
        last = now.regularised_risk;
        head++;
    }
    assert_int_equal(head, 3);
    dafl_site_free(&site);
    stop(r);
    free(scores);
}

/* G = 0 and H = 0: the classifier is zero, of rank zero, and training goes on
 * with blocks and increments that have no columns. */
static void a_classifier_of_rank_zero_is_carried_on(void **state)
{
    run *r = the_run;

    (void)state;
    start(r, small_params());
    assert_true(step(r));
    for (;;) {
        dafl_query query;
        dafl_sum sum;

        dafl_trainer_next(r->trainer, &query, &r->all);
        if (query.kind == DAFL_QUERY_DONE)
            break;
        sum = empty_sum(&r->model->params, &query);
        assert_ok(dafl_trainer_take(r->trainer, &query, &sum, &r->all, NULL));
        dafl_sum_drop(&sum);
    }
    for (size_t t = 0; t < 3; t++)
        assert_int_equal(r->model->heads[t].rank, 0);
    assert_true(dafl_trainer_risk(r->trainer).risk == 200);
    stop(r);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(queries_out_of_turn_are_refused),
        CASE(sums_of_another_length_are_refused),
        CASE(an_increment_of_another_cohort_is_refused),
        CASE(an_increment_needs_one_cohort_throughout),
        CASE(an_increment_of_another_rank_is_refused),
        CASE(a_full_schedule_never_asks_for_increments),
        CASE(a_census_out_of_range_is_refused),
        CASE(a_sum_without_solution_changes_nothing),
        CASE(increments_and_full_sums_give_the_same_model),
        CASE(the_risk_is_that_of_the_rows_and_never_rises),
        CASE(a_classifier_of_rank_zero_is_carried_on),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
