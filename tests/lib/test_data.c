/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/check.h"
#include "lib/data.h"
#include "lib/params.h"

static const double x[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

static const char *put_x(size_t rows, size_t cols)
{
    assert_ok(
        dafl_npy_write(at("x.npy"), DAFL_NPY_F64, 2, rows, cols, x, NULL));
    return at("x.npy");
}

static const char *put_y(dafl_npy_type type, size_t n, const void *y)
{
    assert_ok(dafl_npy_write(at("y.npy"), type, 1, n, 1, y, NULL));
    return at("y.npy");
}

static void features_and_labels_are_read(void **state)
{
    static const int64_t y[4] = {2, 0, 5, 0};
    double row[3];
    dafl_data data;

    (void)state;
    for (size_t classes = 0; classes <= 8; classes += 8) {
        assert_ok(dafl_data_open(&data, put_x(4, 3), put_y(DAFL_NPY_I64, 4, y),
                                 classes, NULL));
        assert_int_equal(data.n, 4);
        assert_int_equal(data.x.cols, 3);
        assert_int_equal(data.classes, classes == 0 ? 6 : 8);
        assert_string_equal(data.path, at("x.npy"));
        for (size_t i = 0; i < 4; i++)
            assert_int_equal(data.y[i], y[i]);
        dafl_npy_get_rows(&data.x, row, NULL, 2, 1);
        assert_true(row[0] == 7 && row[2] == 9);
        dafl_data_close(&data);
        assert_true(data.y == NULL && data.path == NULL);
        dafl_data_close(&data);
    }
}

static void labels_of_every_integer_type_are_read(void **state)
{
    static const uint8_t y8[4] = {3, 0, 1, 3};
    static const uint16_t y16[4] = {3, 0, 1, 3};
    static const uint32_t y32[4] = {3, 0, 1, 3};
    static const uint64_t y64[4] = {3, 0, 1, 3};
    static const struct {
        dafl_npy_type type;
        const void *y;
    } types[] = {{DAFL_NPY_U8, y8},   {DAFL_NPY_I8, y8},   {DAFL_NPY_U16, y16},
                 {DAFL_NPY_I16, y16}, {DAFL_NPY_U32, y32}, {DAFL_NPY_I32, y32},
                 {DAFL_NPY_U64, y64}, {DAFL_NPY_I64, y64}};

    (void)state;
    for (size_t i = 0; i < COUNT(types); i++) {
        dafl_data data;

        assert_ok(dafl_data_open(&data, put_x(4, 3),
                                 put_y(types[i].type, 4, types[i].y), 0, NULL));
        assert_int_equal(data.classes, 4);
        assert_memory_equal(data.y, y32, sizeof y32);
        dafl_data_close(&data);
    }
}

static void labels_may_be_absent_or_a_column(void **state)
{
    static const int64_t y[4] = {1, 0, 1, 0};
    dafl_data data;

    (void)state;
    assert_ok(dafl_data_open(&data, put_x(4, 3), NULL, 7, NULL));
    assert_null(data.y);
    assert_int_equal(data.classes, 7);
    dafl_data_close(&data);
    assert_ok(dafl_npy_write(at("y.npy"), DAFL_NPY_I64, 2, 4, 1, y, NULL));
    assert_ok(dafl_data_open(&data, at("x.npy"), at("y.npy"), 0, NULL));
    assert_int_equal(data.classes, 2);
    dafl_data_close(&data);
}

static void assert_refused(const char *features, const char *labels,
                           size_t classes, const char *culprit,
                           const char *reason)
{
    dafl_data data = {.n = 77};
    dafl_why why = {""};

    assert_int_equal(dafl_data_open(&data, features, labels, classes, &why),
                     DAFL_ERR_INPUT);
    if (strncmp(why.text, culprit, strlen(culprit)) != 0)
        fail_msg("\"%s\" does not begin with %s", why.text, culprit);
    assert_says(&why, reason);
    assert_int_equal(data.n, 77);
    assert_int_equal(dafl_data_open(&data, features, labels, classes, NULL),
                     DAFL_ERR_INPUT);
}

static void features_of_another_kind_are_refused(void **state)
{
    double *wide = doubles(DAFL_SIZE_MAX + 1);

    (void)state;
    assert_refused(at("none"), NULL, 0, at("none"), "No such file");
    assert_refused(dir, NULL, 0, dir, "is a directory");
    assert_ok(dafl_npy_write(at("x.npy"), DAFL_NPY_F64, 1, 4, 1, x, NULL));
    assert_refused(at("x.npy"), NULL, 0, at("x.npy"), "need two dimensions");
    (void)put_x(0, 3);
    assert_refused(at("x.npy"), NULL, 0, at("x.npy"), "at least one row");
    assert_ok(dafl_npy_write(at("x.npy"), DAFL_NPY_F64, 2, 1, DAFL_SIZE_MAX + 1,
                             wide, NULL));
    assert_refused(at("x.npy"), NULL, 0, at("x.npy"),
                   "has 65537 columns, at most 65536");
    free(wide);
}

static void labels_of_another_kind_are_refused(void **state)
{
    static const int64_t negative[4] = {0, 1, -1, 1}, beyond[4] = {0, 9, 1, 0};
    static const int64_t far[4] = {0, 0, 0, 65536};
    static const uint64_t huge[4] = {0, (uint64_t)1 << 63, 0, 0};

    (void)state;
    (void)put_x(4, 3);
    assert_refused(at("x.npy"), at("none"), 0, at("none"), "No such file");
    (void)put_y(DAFL_NPY_I64, 3, negative);
    assert_refused(at("x.npy"), at("y.npy"), 0, at("y.npy"), "has 3 labels");
    assert_refused(at("x.npy"), at("y.npy"), 0, at("y.npy"), "has 4 rows");
    (void)put_y(DAFL_NPY_F64, 4, x);
    assert_refused(at("x.npy"), at("y.npy"), 0, at("y.npy"),
                   "must be integers, these are float64");
    (void)put_y(DAFL_NPY_I64, 4, negative);
    assert_refused(at("x.npy"), at("y.npy"), 0, at("y.npy"),
                   "label -1 in row 2 is not in 0..65535");
    (void)put_y(DAFL_NPY_I64, 4, beyond);
    assert_refused(at("x.npy"), at("y.npy"), 9, at("y.npy"),
                   "label 9 in row 1 is not in 0..8");
    (void)put_y(DAFL_NPY_I64, 4, far);
    assert_refused(at("x.npy"), at("y.npy"), 0, at("y.npy"),
                   "label 65536 in row 3 is not in 0..65535");
    (void)put_y(DAFL_NPY_U64, 4, huge);
    assert_refused(at("x.npy"), at("y.npy"), 0, at("y.npy"), "");
    assert_ok(dafl_npy_write(at("y.npy"), DAFL_NPY_I64, 2, 2, 2, beyond, NULL));
    assert_refused(at("x.npy"), at("y.npy"), 0, at("y.npy"),
                   "this array has 2 columns");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE_IN_DIR(features_and_labels_are_read),
        CASE_IN_DIR(labels_of_every_integer_type_are_read),
        CASE_IN_DIR(labels_may_be_absent_or_a_column),
        CASE_IN_DIR(features_of_another_kind_are_refused),
        CASE_IN_DIR(labels_of_another_kind_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
