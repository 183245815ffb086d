/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "tests/sites.h"
#include "lib/blas.h"

enum { ROWS = 500 };

static dafl_model *model_of(dafl_params p)
{
    dafl_model *model = NULL;

    assert_ok(dafl_params_check(&p, NULL));
    assert_ok(dafl_model_new(&model, &p));
    return model;
}

/* Train with one site; other splits of the same rows must answer every query
 * with the same integers. Returns the kinds of queries met, as bits. */
static unsigned assert_splits_agree(dafl_params p, const dafl_data *data)
{
    dafl_pool *pools[2] = {NULL};
    dafl_model *model = model_of(p);
    dafl_trainer *trainer = NULL;
    dafl_set all;
    dafl_query query;
    crew one, others[3];
    unsigned kinds = 0;

    assert_ok(dafl_pool_new(&pools[0], 1));
    assert_ok(dafl_pool_new(&pools[1], 3));
    one = make_crew(model, pools[0], data, 1);
    for (size_t i = 0; i < COUNT(others); i++)
        others[i] =
            make_crew(model, pools[i % 2], data, random_size(1, SITES_MAX));
    assert_ok(dafl_trainer_new(&trainer, model, 1));
    assert_ok(dafl_set_init(&all, 1));
    dafl_set_add(&all, 0);
    for (;;) {
        dafl_sum sum;

        dafl_trainer_next(trainer, &query, &all);
        kinds |= 1u << query.kind;
        if (query.kind == DAFL_QUERY_DONE)
            break;
        sum = ask(&one, &query);
        for (size_t i = 0; i < COUNT(others); i++) {
            dafl_sum other = ask(&others[i], &query);

            for (size_t k = 0; k < sum.len; k++)
                if (sum.i[k] != other.i[k])
                    fail_msg("%s of layer %zu, number %zu: %lld of one site, "
                             "%lld of %zu",
                             dafl_query_name(query.kind), query.layer, k,
                             (long long)sum.i[k], (long long)other.i[k],
                             others[i].n);
            dafl_sum_drop(&other);
        }
        assert_ok(dafl_trainer_take(trainer, &query, &sum, &all, NULL));
        dafl_sum_drop(&sum);
    }
    for (size_t i = 0; i < COUNT(others); i++)
        drop_crew(&others[i]);
    drop_crew(&one);
    dafl_set_drop(&all);
    dafl_trainer_free(&trainer);
    dafl_model_free(&model);
    dafl_pool_free(&pools[1]);
    dafl_pool_free(&pools[0]);
    return kinds;
}

static void any_split_of_the_rows_gives_the_same_sums(void **state)
{
    dafl_data data = random_data(ROWS, 7, 4);
    unsigned kinds = 0;

    (void)state;
    dafl_blas_single_thread();
    if (!dafl_blas_rows_are_stable()) {
        dafl_data_close(&data);
        print_message("this BLAS does not keep the bits of rows: skipped\n");
        skip();
    }
    for (int a = DAFL_ABLATE_NOTHING; a <= DAFL_ABLATE_OMEGA; a++) {
        dafl_params p = small_params();

        p.ablate = (dafl_ablation)a;
        kinds |= assert_splits_agree(p, &data);
    }
    for (unsigned s = 16; s <= 22; s += 6) { /* in doubles, and emptied often */
        dafl_params p = small_params();

        p.contract =
            (dafl_contract){.exact = true, .s = s, .q = 16, .n_max = ROWS};
        p.hidden = 25;
        kinds |= assert_splits_agree(p, &data);
    }
    {
        dafl_params p = small_params();

        p.schedule = DAFL_SCHEDULE_FULL;
        kinds |= assert_splits_agree(p, &data);
        p.method = DAFL_METHOD_AFL;
        kinds |= assert_splits_agree(p, &data);
    }
    assert_int_equal(kinds, (1u << (DAFL_QUERY_DONE + 1)) - 1);
    dafl_data_close(&data);
}

/* The features of AFL are the data: G and H' by brute force. */
static void the_gram_matrix_is_that_of_the_rows(void **state)
{
    dafl_data data = random_data(ROWS, 3, 4);
    dafl_params p = small_params();
    dafl_query query = {.kind = DAFL_QUERY_GRAM};
    dafl_model *model;
    dafl_pool *pool = NULL;
    int64_t g[6] = {0}, ht[4][3] = {{0}};
    double *x = doubles(ROWS * 3);
    dafl_sum sum;
    crew c;

    (void)state;
    p.features = 3;
    p.method = DAFL_METHOD_AFL;
    model = model_of(p);
    assert_ok(dafl_pool_new(&pool, 2));
    c = make_crew(model, pool, &data, 3);
    sum = ask(&c, &query);
    dafl_npy_get_rows(&data.x, x, NULL, 0, ROWS);
    for (size_t i = 0; i < ROWS; i++)
        for (size_t r = 0, k = 0; r < 3; r++) {
            int64_t v = (int64_t)rint(ldexp(x[i * 3 + r], 12));

            ht[data.y[i]][r] += v;
            for (size_t col = r; col < 3; col++, k++)
                g[k] += v * (int64_t)rint(ldexp(x[i * 3 + col], 12));
        }
    assert_int_equal(sum.len, 6 + 12);
    assert_memory_equal(sum.i, g, sizeof g);
    assert_memory_equal(sum.i + 6, ht, sizeof ht);
    dafl_sum_drop(&sum);
    drop_crew(&c);
    dafl_model_free(&model);
    dafl_pool_free(&pool);
    free(x);
    dafl_data_close(&data);
}

/* What a server asks when somebody left during an increment: the full matrices
 * of the same layer. Its increment cannot be asked twice. */
static void assert_gram_may_follow(crew *asked, crew *silent,
                                   const dafl_query *increment)
{
    dafl_query full = {.kind = DAFL_QUERY_GRAM, .layer = increment->layer};
    dafl_sum again = empty_sum(&asked->model->params, increment);
    dafl_sum x = ask(asked, &full);
    dafl_sum y = empty_sum(&asked->model->params, &full);

    assert_ok(dafl_site_gram(silent->sites[0], &y, NULL));
    assert_memory_equal(x.i, y.i, x.len * sizeof *x.i);
    assert_int_equal(dafl_site_answer(asked->sites[0], asked->model, increment,
                                      NULL, &again, NULL),
                     DAFL_ERR_ARG);
    dafl_sum_drop(&again);
    dafl_sum_drop(&y);
    dafl_sum_drop(&x);
}

/* Two sites with the same rows; one is never asked for a sum. */
static void a_site_that_does_not_answer_follows(void **state)
{
    (void)state;
    for (int a = DAFL_ABLATE_NOTHING; a <= DAFL_ABLATE_OMEGA; a++) {
        dafl_data data = random_data(100, 7, 4);
        dafl_params p = small_params();
        dafl_model *model;
        dafl_pool *pool = NULL;
        dafl_trainer *trainer = NULL;
        dafl_set all;
        dafl_query query = {0}, gram = {.kind = DAFL_QUERY_GRAM};
        dafl_sum x, y;
        crew asked, silent;

        p.ablate = (dafl_ablation)a;
        model = model_of(p);
        assert_ok(dafl_pool_new(&pool, 1));
        asked = make_crew(model, pool, &data, 1);
        silent = make_crew(model, pool, &data, 1);
        assert_ok(dafl_trainer_new(&trainer, model, 1));
        assert_ok(dafl_set_init(&all, 1));
        dafl_set_add(&all, 0);
        for (;;) {
            dafl_projection m;
            dafl_sum sum;

            dafl_trainer_next(trainer, &query, &all);
            if (query.kind == DAFL_QUERY_DONE)
                break;
            m = projection_for(model, &query);
            assert_ok(dafl_site_answer(silent.sites[0], model, &query, &m, NULL,
                                       NULL));
            sum = ask(&asked, &query);
            if (query.kind == DAFL_QUERY_INCREMENT)
                assert_gram_may_follow(&asked, &silent, &query);
            assert_ok(dafl_trainer_take(trainer, &query, &sum, &all, NULL));
            dafl_sum_drop(&sum);
            dafl_projection_drop(&m);
        }
        x = empty_sum(&p, &gram);
        y = empty_sum(&p, &gram);
        assert_ok(dafl_site_gram(asked.sites[0], &x, NULL));
        assert_ok(dafl_site_gram(silent.sites[0], &y, NULL));
        assert_memory_equal(x.i, y.i, x.len * sizeof *x.i);
        for (size_t t = 0; t <= p.layers; t++)
            assert_int_equal(dafl_site_correct(asked.sites[0], t),
                             dafl_site_correct(silent.sites[0], t));
        dafl_sum_drop(&y);
        dafl_sum_drop(&x);
        drop_crew(&silent);
        drop_crew(&asked);
        dafl_set_drop(&all);
        dafl_trainer_free(&trainer);
        dafl_model_free(&model);
        dafl_pool_free(&pool);
        dafl_data_close(&data);
    }
}

/* ---- one site by hand ---- */

typedef struct {
    dafl_params p;
    dafl_model *model;
    dafl_pool *pool;
    dafl_data data;
    dafl_projection first, second;
    dafl_head head;
    dafl_block block;
    dafl_site *site;
} fixture;

/* Row i of the data has the single feature x[i]; AFL unless `deep`. */
static void make_fixture(fixture *f, const double *x, size_t n, bool deep)
{
    static const uint8_t y[8] = {0, 1, 0, 1, 0, 1, 0, 1};

    *f = (fixture){.p = {.method = deep ? DAFL_METHOD_DEEPAFL : DAFL_METHOD_AFL,
                         .features = 1,
                         .width = 1,
                         .hidden = 1,
                         .classes = 2,
                         .layers = 1,
                         .activation = DAFL_ACT_NONE,
                         .contract = DAFL_CONTRACT_DEFAULT}};
    assert_ok(dafl_params_check(&f->p, NULL));
    assert_ok(dafl_model_new(&f->model, &f->p));
    assert_ok(dafl_pool_new(&f->pool, 1));
    assert_ok(dafl_npy_write(at("x.npy"), DAFL_NPY_F64, 2, n, 1, x, NULL));
    assert_ok(dafl_npy_write(at("y.npy"), DAFL_NPY_U8, 1, n, 1, y, NULL));
    assert_ok(dafl_data_open(&f->data, at("x.npy"), at("y.npy"), 2, NULL));
    assert_ok(dafl_projection_draw(&f->first, &f->p, 0));
    assert_ok(dafl_projection_draw(&f->second, &f->p, 0));
}

static void drop_fixture(fixture *f)
{
    dafl_site_free(&f->site);
    dafl_projection_drop(&f->second);
    dafl_projection_drop(&f->first);
    dafl_data_close(&f->data);
    dafl_pool_free(&f->pool);
    dafl_model_free(&f->model);
}

static dafl_err open_site(fixture *f, const uint32_t *index, size_t n,
                          dafl_why *why)
{
    return dafl_site_new(&f->site, &f->p, f->pool, &f->data, index, n,
                         f->p.method == DAFL_METHOD_AFL ? NULL : &f->first,
                         why);
}

static void a_bad_feature_is_named_with_its_row(void **state)
{
    static const uint32_t some[3] = {0, 5, 2};
    static const struct {
        double value;
        bool deep;
        const char *reason;
    } bad[] = {{NAN, false, "not finite"},
               {INFINITY, false, "not finite"},
               {NAN, true, "not finite"},
               {-INFINITY, true, "not finite"},
               {4.5, false,
                "the feature 4.5 at layer 0 is beyond the largest "
                "magnitude 4"},
               {-1e300, false, "-1e+300"}};

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        double x[6] = {1, 2, 3, 1, 2, bad[i].value};
        dafl_why why = {""};
        fixture f;

        make_fixture(&f, x, 6, bad[i].deep);
        assert_int_equal(open_site(&f, NULL, 6, &why), DAFL_ERR_INPUT);
        assert_says(&why, at("x.npy"));
        assert_says(&why, "row 5");
        assert_says(&why, bad[i].reason);
        assert_null(f.site);
        /* A row keeps the number it has in the file. */
        assert_int_equal(open_site(&f, some, 3, &why), DAFL_ERR_INPUT);
        assert_says(&why, "row 5");
        assert_ok(open_site(&f, NULL, 5, NULL));
        drop_fixture(&f);
    }
}

static void the_first_bad_row_is_named(void **state)
{
    double x[6] = {1, 9, NAN, 1, 8, INFINITY};
    dafl_why why = {""};
    fixture f;

    (void)state;
    make_fixture(&f, x, 6, false);
    assert_int_equal(open_site(&f, NULL, 6, &why), DAFL_ERR_INPUT);
    assert_says(&why, "row 1: the feature 9 ");
    drop_fixture(&f);
}

static void rows_that_do_not_fit_the_model_are_refused(void **state)
{
    static const uint32_t beyond[2] = {0, 4};
    static const double x[4] = {1, 2, 3, 1};
    dafl_why why = {""};
    fixture f;

    (void)state;
    make_fixture(&f, x, 4, false);
    assert_int_equal(open_site(&f, beyond, 2, &why), DAFL_ERR_ARG);
    assert_int_equal(
        dafl_site_new(&f.site, &f.p, f.pool, &f.data, NULL, 4, &f.first, NULL),
        DAFL_ERR_ARG);
    f.data.y[2] = 2;
    assert_int_equal(open_site(&f, NULL, 4, &why), DAFL_ERR_INPUT);
    assert_says(&why, "row 2 has label 2, the model has 2 classes");
    f.p.features = 2;
    assert_int_equal(open_site(&f, NULL, 4, &why), DAFL_ERR_INPUT);
    assert_says(&why, "has 1 columns, the model has 2 features");
    assert_null(f.site);
    f.p.features = 1;
    f.p.method = DAFL_METHOD_DEEPAFL;
    assert_int_equal(
        dafl_site_new(&f.site, &f.p, f.pool, &f.data, NULL, 4, NULL, NULL),
        DAFL_ERR_ARG);
    drop_fixture(&f);
}

/* Phi_0 = tanh(2) = 0.964 everywhere but in row 1, where it is tanh(-2). */
static void values_beyond_the_contract_are_named_at_every_step(void **state)
{
    static const double x[4] = {1, -1, 1, 1};
    double u[1] = {1}, w[2] = {0, 0}, n[1] = {0};
    dafl_head head = {.rank = 1, .u = u, .m = w, .w = w};
    dafl_block block = {.rank = 1, .n = n};
    dafl_query residual = {.kind = DAFL_QUERY_RESIDUAL};
    dafl_query increment = {.kind = DAFL_QUERY_INCREMENT, .rank = 1};
    dafl_why why = {""};
    dafl_sum sum, grown;
    fixture f;

    (void)state;
    make_fixture(&f, x, 4, true);
    f.first.w[0] = 2;
    f.first.b[0] = 0;
    f.second.w[0] = -3; /* F = 2.11 in row 1, else -7.89 */
    f.second.b[0] = -5;
    sum = empty_sum(&f.p, &residual);
    grown = empty_sum(&f.p, &increment);
    assert_ok(open_site(&f, NULL, 4, NULL));
    assert_int_equal(dafl_site_hidden(f.site, &head, &f.second, &sum, &why),
                     DAFL_ERR_INPUT);
    assert_says(&why, "row 0: the hidden feature -7.89");
    f.second.b[0] = 1;
    w[0] = 10; /* R = -8.64 or +9.64 */
    assert_int_equal(dafl_site_hidden(f.site, &head, &f.second, &sum, &why),
                     DAFL_ERR_INPUT);
    assert_says(&why, "row 0: the residual -8.6");
    w[0] = 0;
    assert_ok(dafl_site_hidden(f.site, &head, &f.second, &sum, &why));
    n[0] = 3; /* Z = -5.67, in row 1 11.7 */
    assert_int_equal(dafl_site_advance(f.site, &head, &block, &grown, &why),
                     DAFL_ERR_INPUT);
    assert_says(&why, "row 0: the block output -5.6");
    dafl_site_free(&f.site);
    assert_ok(open_site(&f, NULL, 4, NULL));
    assert_ok(dafl_site_hidden(f.site, &head, &f.second, NULL, &why));
    n[0] = 1; /* Z = 3.89 in row 1, Phi - 3 Z = -12.6 */
    u[0] = -3;
    assert_int_equal(dafl_site_advance(f.site, &head, &block, NULL, &why),
                     DAFL_ERR_INPUT);
    assert_says(&why, "the feature ");
    dafl_sum_drop(&grown);
    dafl_sum_drop(&sum);
    drop_fixture(&f);
}

static void calls_out_of_place_are_our_mistake(void **state)
{
    static const double x[4] = {1, -1, 1, 1};
    double u[1] = {1}, w[2] = {0, 0}, n[1] = {0};
    dafl_head head = {.rank = 1, .u = u, .m = w, .w = w};
    dafl_block block = {.rank = 1, .n = n};
    dafl_query done = {.kind = DAFL_QUERY_DONE};
    dafl_query gram = {.kind = DAFL_QUERY_GRAM};
    dafl_sum wrong, sum;
    fixture f;

    (void)state;
    make_fixture(&f, x, 4, true);
    assert_ok(open_site(&f, NULL, 4, NULL));
    assert_ok(dafl_sum_init(&wrong, 77, true));
    sum = empty_sum(&f.p, &gram);
    assert_int_equal(dafl_site_answer(f.site, f.model, &done, NULL, NULL, NULL),
                     DAFL_ERR_ARG);
    assert_int_equal(dafl_site_gram(f.site, &wrong, NULL), DAFL_ERR_ARG);
    assert_int_equal(dafl_site_hidden(f.site, &head, &f.second, &wrong, NULL),
                     DAFL_ERR_ARG);
    assert_int_equal(dafl_site_advance(f.site, &head, &block, &wrong, NULL),
                     DAFL_ERR_ARG);
    assert_ok(dafl_site_hidden(f.site, &head, &f.second, NULL, NULL));
    assert_ok(dafl_site_advance(f.site, &head, &block, NULL, NULL));
    /* One layer is all there is. */
    assert_int_equal(dafl_site_hidden(f.site, &head, &f.second, NULL, NULL),
                     DAFL_ERR_ARG);
    assert_int_equal(dafl_site_advance(f.site, &head, &block, NULL, NULL),
                     DAFL_ERR_ARG);
    /* Without labels there is no answer, but there are scores. */
    dafl_site_free(&f.site);
    dafl_data_close(&f.data);
    assert_ok(dafl_data_open(&f.data, at("x.npy"), NULL, 2, NULL));
    assert_ok(open_site(&f, NULL, 4, NULL));
    assert_int_equal(dafl_site_gram(f.site, &sum, NULL), DAFL_ERR_ARG);
    assert_ok(dafl_site_hidden(f.site, &head, &f.second, NULL, NULL));
    assert_ok(dafl_site_score(f.site, &head, NULL, NULL));
    dafl_sum_drop(&sum);
    dafl_sum_drop(&wrong);
    drop_fixture(&f);
}

/* AFL on x: the scores are x times the head, and the larger one wins. */
static void scores_are_products_and_correct_answers_are_counted(void **state)
{
    /* The labels are 0 1 0 1 0 1. */
    static const double x[6] = {1, -1, 0.5, -0.5, -2, 0};
    double u[1] = {1}, w[2] = {1, -1}, scores[12], out[9];
    dafl_head head = {.rank = 1, .u = u, .m = w, .w = w};
    dafl_query census = {.kind = DAFL_QUERY_CENSUS};
    dafl_query report = {.kind = DAFL_QUERY_REPORT};
    dafl_site *held = NULL;
    dafl_sum sum;
    fixture f;

    (void)state;
    make_fixture(&f, x, 6, false);
    assert_ok(open_site(&f, NULL, 6, NULL));
    assert_int_equal(dafl_site_rows(f.site), 6);
    assert_ok(dafl_site_score(f.site, &head, scores, NULL));
    for (size_t i = 0; i < 6; i++)
        assert_true(scores[2 * i] == x[i] && scores[2 * i + 1] == -x[i]);
    /* Row 4 is wrong; in row 5 both scores are 0 and the first class wins. */
    assert_int_equal(dafl_site_correct(f.site, 0), 4);
    sum = empty_sum(&f.p, &census);
    dafl_site_census(f.site, &sum);
    assert_true(sum.i[0] == 6 && sum.i[1] == 3 && sum.i[2] == 3);
    dafl_sum_drop(&sum);
    assert_ok(dafl_site_new(&held, &f.p, f.pool, &f.data, NULL, 2, NULL, NULL));
    assert_ok(dafl_site_score(held, &head, NULL, NULL));
    sum = empty_sum(&f.p, &report);
    dafl_site_report(f.site, held, &sum);
    for (size_t i = 0; i < sum.len; i++)
        out[i] = (double)sum.i[i];
    assert_int_equal(sum.len, 4);
    assert_true(out[0] == 6 && out[1] == 2 && out[2] == 4 && out[3] == 2);
    dafl_sum_clear(&sum);
    dafl_site_report(f.site, NULL, &sum);
    assert_true(sum.i[0] == 6 && sum.i[1] == 0 && sum.i[2] == 4 &&
                sum.i[3] == 0);
    dafl_sum_drop(&sum);
    dafl_site_free(&held);
    drop_fixture(&f);
}

static void a_site_without_rows_adds_nothing(void **state)
{
    static const double x[2] = {1, 2};
    dafl_query gram = {.kind = DAFL_QUERY_GRAM};
    dafl_sum sum;
    fixture f;

    (void)state;
    make_fixture(&f, x, 2, false);
    assert_ok(open_site(&f, NULL, 0, NULL));
    assert_int_equal(dafl_site_rows(f.site), 0);
    sum = empty_sum(&f.p, &gram);
    assert_ok(dafl_site_gram(f.site, &sum, NULL));
    for (size_t i = 0; i < sum.len; i++)
        assert_true(sum.i[i] == 0);
    dafl_sum_drop(&sum);
    drop_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE_IN_DIR(any_split_of_the_rows_gives_the_same_sums),
        CASE_IN_DIR(the_gram_matrix_is_that_of_the_rows),
        CASE_IN_DIR(a_site_that_does_not_answer_follows),
        CASE_IN_DIR(a_bad_feature_is_named_with_its_row),
        CASE_IN_DIR(the_first_bad_row_is_named),
        CASE_IN_DIR(rows_that_do_not_fit_the_model_are_refused),
        CASE_IN_DIR(values_beyond_the_contract_are_named_at_every_step),
        CASE_IN_DIR(calls_out_of_place_are_our_mistake),
        CASE_IN_DIR(scores_are_products_and_correct_answers_are_counted),
        CASE_IN_DIR(a_site_without_rows_adds_nothing),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
