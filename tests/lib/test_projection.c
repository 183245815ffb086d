/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "tests/check.h"
#include "lib/npy.h"
#include "lib/projection.h"

static dafl_params params(void)
{
    dafl_params p = {.features = 30,
                     .width = 50,
                     .hidden = 40,
                     .classes = 3,
                     .layers = 2,
                     .seed = {{1, 2, 3}},
                     .contract = DAFL_CONTRACT_DEFAULT};

    assert_ok(dafl_params_check(&p, NULL));
    return p;
}

static void assert_same(const dafl_projection *a, const dafl_projection *b)
{
    assert_int_equal(a->in, b->in);
    assert_int_equal(a->out, b->out);
    assert_memory_equal(a->w, b->w, a->in * a->out * sizeof *a->w);
    assert_memory_equal(a->b, b->b, a->out * sizeof *a->b);
}

/* Mean and variance of a uniform variate, within five standard deviations. */
static void assert_uniform(const double *x, size_t n, double bound)
{
    double sum = 0, squares = 0;

    for (size_t i = 0; i < n; i++) {
        assert_true(fabs(x[i]) < bound);
        sum += x[i];
        squares += x[i] * x[i];
    }
    assert_true(fabs(sum) < 5 * bound * sqrt((double)n / 3));
    assert_true(fabs(squares / (double)n - bound * bound / 3) <
                5 * bound * bound * sqrt(4.0 / 45 / (double)n));
}

static void draws_are_uniform_within_their_fan_in(void **state)
{
    dafl_params p = params();

    (void)state;
    for (size_t k = 0; k <= p.layers; k++) {
        dafl_projection m;
        double bound = 1 / sqrt(k == 0 ? 30.0 : 50.0);

        assert_ok(dafl_projection_draw(&m, &p, k));
        assert_int_equal(m.in, k == 0 ? 30 : 50);
        assert_int_equal(m.out, k == 0 ? 50 : 40);
        assert_uniform(m.w, m.in * m.out, bound);
        assert_uniform(m.b, m.out, bound);
        dafl_projection_drop(&m);
        assert_null(m.w);
    }
}

static void the_seed_decides_every_bit(void **state)
{
    dafl_params p = params(), other = p;
    dafl_projection a, b, c;

    (void)state;
    other.seed.b[31] = 1;
    assert_ok(dafl_projection_draw(&a, &p, 1));
    assert_ok(dafl_projection_draw(&b, &p, 1));
    assert_ok(dafl_projection_draw(&c, &other, 1));
    assert_same(&a, &b);
    assert_memory_not_equal(a.w, c.w, 8 * sizeof *a.w);
    assert_memory_not_equal(a.b, c.b, 8 * sizeof *a.b);
    dafl_projection_drop(&b);
    assert_ok(dafl_projection_draw(&b, &p, 2));
    assert_memory_not_equal(a.w, b.w, 8 * sizeof *a.w);
    assert_memory_not_equal(a.b, b.b, 8 * sizeof *a.b);
    dafl_projection_drop(&c);
    dafl_projection_drop(&b);
    dafl_projection_drop(&a);
}

/* 0: A, 1: a, 2 + 2t: B_t, 3 + 2t: b_t. */
static void every_matrix_has_the_stream_of_its_number(void **state)
{
    dafl_params p = params();
    double x[100];

    (void)state;
    for (size_t k = 0; k <= p.layers; k++) {
        dafl_projection m;

        assert_ok(dafl_projection_draw(&m, &p, k));
        dafl_stream_uniform(x, 100, &p.seed, DAFL_STREAM_PROJECTION, 2 * k,
                            1 / sqrt((double)m.in));
        assert_memory_equal(m.w, x, 100 * sizeof *x);
        dafl_stream_uniform(x, m.out, &p.seed, DAFL_STREAM_PROJECTION,
                            2 * k + 1, 1 / sqrt((double)m.in));
        assert_memory_equal(m.b, x, m.out * sizeof *x);
        dafl_projection_drop(&m);
    }
}

static void without_projections_the_maps_are_the_identity(void **state)
{
    dafl_params p = params();
    dafl_projection m, drawn;

    (void)state;
    assert_ok(dafl_projection_draw(&drawn, &p, 0));
    p.hidden = p.width;
    p.ablate = DAFL_ABLATE_PROJECTION;
    assert_ok(dafl_projection_draw(&m, &p, 0)); /* A stays */
    assert_same(&m, &drawn);
    dafl_projection_drop(&m);
    assert_ok(dafl_projection_draw(&m, &p, 2));
    for (size_t i = 0; i < m.in; i++)
        for (size_t j = 0; j < m.out; j++)
            assert_true(m.w[i * m.out + j] == (i == j ? 1 : 0));
    for (size_t j = 0; j < m.out; j++)
        assert_true(m.b[j] == 0);
    dafl_projection_drop(&m);
    dafl_projection_drop(&drawn);
}

static void names_follow_the_papers_letters(void **state)
{
    static const struct {
        size_t k;
        int bias;
        const char *name;
    } names[] = {{0, 0, "A"},        {0, 1, "a"},
                 {1, 0, "B0"},       {1, 1, "b0"},
                 {1024, 0, "B1023"}, {SIZE_MAX, 1, "b18446744073709551614"}};

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        char name[24];

        dafl_projection_name(name, names[i].k, names[i].bias);
        assert_string_equal(name, names[i].name);
    }
}

static void files_and_copies_keep_every_bit(void **state)
{
    dafl_params p = params();

    (void)state;
    for (size_t k = 0; k <= p.layers; k++) {
        dafl_projection m, read, copy;

        assert_ok(dafl_projection_draw(&m, &p, k));
        assert_ok(dafl_projection_write(&m, dir, k, NULL));
        assert_ok(dafl_projection_read(&read, &p, dir, k, NULL));
        assert_ok(dafl_projection_copy(&copy, m.in, m.out, m.w, m.b));
        assert_same(&m, &read);
        assert_same(&m, &copy);
        dafl_projection_drop(&copy);
        dafl_projection_drop(&read);
        dafl_projection_drop(&m);
    }
    assert_int_equal(count_names(0), 6);
}

static void assert_refused(const dafl_params *p, size_t k, const char *file,
                           const char *reason)
{
    dafl_projection m = {.in = 77};
    dafl_why why = {""};

    assert_int_equal(dafl_projection_read(&m, p, dir, k, &why), DAFL_ERR_INPUT);
    assert_says(&why, file);
    assert_says(&why, reason);
    assert_int_equal(m.in, 77);
}

static void put(const char *name, size_t rows, size_t cols, const double *x)
{
    assert_ok(dafl_npy_write(at(name), DAFL_NPY_F64, cols == 1 ? 1 : 2, rows,
                             cols, x, NULL));
}

static void files_of_another_shape_or_not_finite_are_refused(void **state)
{
    static double x[30 * 50];
    dafl_params p = params();

    (void)state;
    assert_refused(&p, 0, at("A.npy"), "No such file");
    put("A.npy", 50, 30, x);
    assert_refused(&p, 0, at("A.npy"), "50 x 30 numbers, this run needs 30 x");
    put("A.npy", 30, 49, x);
    assert_refused(&p, 0, at("A.npy"), "30 x 49");
    x[77] = NAN;
    put("A.npy", 30, 50, x);
    assert_refused(&p, 0, at("A.npy"), "element 77 is not finite");
    x[77] = 0;
    put("A.npy", 30, 50, x);
    assert_refused(&p, 0, at("a.npy"), "No such file");
    put("a.npy", 49, 1, x);
    assert_refused(&p, 0, at("a.npy"), "49 x 1 numbers, this run needs 50 x 1");
    x[3] = -INFINITY;
    put("a.npy", 50, 1, x);
    assert_refused(&p, 0, at("a.npy"), "element 3 is not finite");
    x[3] = 0;
}

static void a_directory_that_does_not_exist_is_named(void **state)
{
    dafl_params p = params();
    char name[5000];
    dafl_projection m;
    dafl_why why = {""};

    (void)state;
    assert_ok(dafl_projection_draw(&m, &p, 0));
    assert_int_not_equal(dafl_projection_write(&m, at("none"), 0, &why),
                         DAFL_OK);
    assert_says(&why, at("none"));
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_int_equal(dafl_projection_write(&m, name, 0, &why), DAFL_ERR_INPUT);
    assert_int_equal(dafl_projection_read(&m, &p, name, 0, &why),
                     DAFL_ERR_INPUT);
    dafl_projection_drop(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_are_uniform_within_their_fan_in),
        cmocka_unit_test(the_seed_decides_every_bit),
        cmocka_unit_test(every_matrix_has_the_stream_of_its_number),
        cmocka_unit_test(without_projections_the_maps_are_the_identity),
        cmocka_unit_test(names_follow_the_papers_letters),
        CASE_IN_DIR(files_and_copies_keep_every_bit),
        CASE_IN_DIR(files_of_another_shape_or_not_finite_are_refused),
        CASE_IN_DIR(a_directory_that_does_not_exist_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
