/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "tests/check.h"
#include "lib/file.h"
#include "lib/safetensors.h"

#define TENSOR(shape, begin, end)                                             \
    "{\"dtype\":\"F64\",\"shape\":" shape ",\"data_offsets\":[" begin "," end \
    "]}"

static char path[160];

static int make_path(void **state)
{
    int failed = make_dir(state);

    (void)snprintf(path, sizeof path, "%s/a.safetensors", dir);
    return failed;
}

/* A file with this header and this many bytes of data, in memory of exactly
 * its length so that a sanitizer sees a read beyond it. */
static dafl_bytes make(const char *header, size_t data_len)
{
    size_t len = strlen(header);
    uint8_t *p = calloc(1, 8 + len + data_len);

    assert_non_null(p);
    for (size_t i = 0; i < 8; i++)
        p[i] = (uint8_t)((uint64_t)len >> 8 * i);
    for (size_t i = 0; i < len; i++)
        p[8 + i] = (uint8_t)header[i];
    return (dafl_bytes){p, 8 + len + data_len};
}

static void drop(dafl_bytes file)
{
    free((void *)(uintptr_t)file.ptr);
}

static void assert_bytes_refused(dafl_bytes file, const char *reason)
{
    dafl_st *st = NULL;
    dafl_why why = {""};

    assert_int_equal(dafl_st_parse(&st, file, "x.st", &why), DAFL_ERR_INPUT);
    assert_int_equal(strncmp(why.text, "x.st: ", 6), 0);
    if (strstr(why.text, reason) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", why.text, reason);
    assert_int_equal(dafl_st_parse(&st, file, "x.st", NULL), DAFL_ERR_INPUT);
    assert_null(st);
}

static void assert_refused(const char *header, size_t data_len,
                           const char *reason)
{
    dafl_bytes file = make(header, data_len);

    assert_bytes_refused(file, reason);
    drop(file);
}

static dafl_st *parse(const char *header, size_t data_len)
{
    dafl_bytes file = make(header, data_len);
    dafl_why why = {""};
    dafl_st *st = NULL;

    if (dafl_st_parse(&st, file, "x.st", &why) != DAFL_OK)
        fail_msg("%s", why.text);
    drop(file); /* what was parsed was copied */
    return st;
}

static const double values[] = {1, -0.0, 5e-324, 1e308, INFINITY, 0.1};
static const dafl_st_tensor tensors[] = {
    {"weights", 2, 2, 3, values},
    {"bias", 1, 3, 1, values + 1},
    {"empty", 2, 0, 5, NULL},
    {"flat", 2, 5, 0, NULL},
    {"na\xc3\xafve \"\\\n", 2, 1, 1, values + 5},
};
static const dafl_st_meta meta[] = {{"rounds", "12"},
                                    {"key \xe2\x82\xac", "line\nline\t\"\\"},
                                    {"nothing", ""}};
enum { N_TENSORS = 5, N_META = 3 };

static void write_samples(void)
{
    dafl_why why = {""};

    if (dafl_st_write(path, tensors, N_TENSORS, meta, N_META, &why) != DAFL_OK)
        fail_msg("%s", why.text);
}

static void contents_survive_a_round_trip(void **state)
{
    dafl_st *st = NULL;

    (void)state;
    write_samples();
    assert_int_equal(dafl_st_read(&st, path, NULL), DAFL_OK);
    assert_int_equal(dafl_st_count(st), N_TENSORS);
    for (size_t i = 0; i < N_TENSORS; i++) {
        const dafl_st_tensor *t = dafl_st_find(st, tensors[i].name);

        assert_non_null(t);
        assert_string_equal(t->name, tensors[i].name);
        assert_int_equal(t->n_dims, tensors[i].n_dims);
        assert_int_equal(t->rows, tensors[i].rows);
        assert_int_equal(t->cols, tensors[i].cols);
        if (t->rows * t->cols > 0)
            assert_memory_equal(t->data, tensors[i].data,
                                t->rows * t->cols * sizeof(double));
    }
    assert_int_equal(dafl_st_meta_count(st), N_META);
    for (size_t i = 0; i < N_META; i++) {
        dafl_st_meta m = dafl_st_meta_at(st, i);

        assert_string_equal(dafl_st_get_meta(st, meta[i].key), meta[i].value);
        assert_string_equal(dafl_st_get_meta(st, m.key), m.value);
    }
    assert_null(dafl_st_find(st, "bia"));
    assert_null(dafl_st_find(st, "__metadata__"));
    assert_null(dafl_st_get_meta(st, "weights"));
    dafl_st_free(&st);
    assert_null(st);
    dafl_st_free(&st);
    dafl_st_free(NULL);
}

static void tensors_are_laid_out_in_the_order_given(void **state)
{
    static const dafl_st_tensor order[] = {{"z", 1, 2, 1, values},
                                           {"a", 1, 4, 1, values + 2}};
    dafl_st *st = NULL;
    dafl_map map;

    (void)state;
    assert_int_equal(dafl_st_write(path, order, 2, NULL, 0, NULL), DAFL_OK);
    assert_int_equal(dafl_st_read(&st, path, NULL), DAFL_OK);
    assert_string_equal(dafl_st_at(st, 0)->name, "z");
    assert_string_equal(dafl_st_at(st, 1)->name, "a");
    assert_int_equal(dafl_st_meta_count(st), 0);
    assert_null(dafl_st_get_meta(st, "z"));
    assert_int_equal(dafl_map_open(&map, path, NULL), DAFL_OK);
    assert_memory_equal(map.bytes.ptr + map.bytes.len - sizeof values, values,
                        sizeof values);
    dafl_map_close(&map);
    dafl_st_free(&st);
}

/* The layout to the byte, as the format's description has it. */
static void the_written_bytes_are_canonical(void **state)
{
    static const dafl_st_tensor t = {"w", 2, 1, 2, values};
    static const dafl_st_meta m[] = {{"b", "2"}, {"a", "1"}};
    static const char header[] =
        "{\"__metadata__\":{\"a\":\"1\",\"b\":\"2\"},\"w\":{\"data_offsets\":"
        "[0,16],\"dtype\":\"F64\",\"shape\":[1,2]}}";
    size_t len = sizeof header - 1, padded = (len + 7) / 8 * 8;
    dafl_map map;

    (void)state;
    assert_int_equal(dafl_st_write(path, &t, 1, m, 2, NULL), DAFL_OK);
    assert_int_equal(dafl_map_open(&map, path, NULL), DAFL_OK);
    assert_int_equal(map.bytes.len, 8 + padded + 16);
    assert_int_equal(map.bytes.ptr[0], padded);
    for (size_t i = 1; i < 8; i++)
        assert_int_equal(map.bytes.ptr[i], 0);
    assert_memory_equal(map.bytes.ptr + 8, header, len);
    for (size_t i = len; i < padded; i++)
        assert_int_equal(map.bytes.ptr[8 + i], ' ');
    assert_memory_equal(map.bytes.ptr + 8 + padded, values, 16);
    dafl_map_close(&map);
}

static void data_starts_at_a_multiple_of_eight(void **state)
{
    char name[12] = "";
    dafl_st_tensor t = {name, 1, 1, 1, values};

    (void)state;
    for (size_t i = 0; i < 9; i++) {
        dafl_map map;

        name[i] = 'x';
        assert_int_equal(dafl_st_write(path, &t, 1, NULL, 0, NULL), DAFL_OK);
        assert_int_equal(dafl_map_open(&map, path, NULL), DAFL_OK);
        assert_int_equal(map.bytes.ptr[0] % 8, 0);
        assert_int_equal(map.bytes.len % 8, 0);
        dafl_map_close(&map);
    }
}

static void nothing_at_all_is_a_file_too(void **state)
{
    dafl_st *st = NULL;

    (void)state;
    assert_int_equal(dafl_st_write(path, NULL, 0, NULL, 0, NULL), DAFL_OK);
    assert_int_equal(dafl_st_read(&st, path, NULL), DAFL_OK);
    assert_int_equal(dafl_st_count(st), 0);
    assert_int_equal(dafl_st_meta_count(st), 0);
    dafl_st_free(&st);
}

static void tensors_come_in_the_order_of_their_data(void **state)
{
    dafl_st *st =
        parse("{\"c\":" TENSOR("[2]", "8", "24") ",\"a\":" TENSOR(
                  "[1,1]", "0",
                  "8") ",\"b\":" TENSOR("[0]", "8",
                                        "8") ",\"d\":" TENSOR("[7,0]", "24",
                                                              "24") "}  ",
              24);
    static const char *const names[] = {"a", "b", "c", "d"};

    (void)state;
    assert_int_equal(dafl_st_count(st), 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(dafl_st_at(st, i)->name, names[i]);
    assert_ptr_equal(dafl_st_at(st, 2)->data, dafl_st_at(st, 0)->data + 1);
    assert_int_equal(dafl_st_at(st, 3)->rows, 7);
    assert_int_equal(dafl_st_at(st, 3)->cols, 0);
    dafl_st_free(&st);
}

static void headers_that_are_not_json_are_refused(void **state)
{
    static const char json[] = "not valid JSON";
    static const char object[] = "its header is no JSON object";

    (void)state;
    assert_refused("", 0, object);
    assert_refused("[]", 0, object);
    assert_refused(" {}", 0, object);
    assert_refused("{", 0, json);
    assert_refused("{}}", 0, json);
    assert_refused("{} x", 0, json);
    assert_refused("{\"a\":1,}", 0, json);
    assert_refused("{\"a\xff\":1}", 0, json);
    assert_refused("{\"a\\u0000\":1}", 0, json);
    assert_refused("{\"a\":" TENSOR("[1]", "0", "99999999999999999999") "}", 8,
                   json);
    assert_refused("{\"a\":" TENSOR("[1]", "0",
                                    "8") ",\"a\":" TENSOR("[1]", "8", "16") "}",
                   16, "duplicate");
    assert_refused("{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}", 0,
                   "duplicate");
    assert_refused("{\"a\":{\"dtype\":\"F64\",\"dtype\":\"F64\"}}", 0,
                   "duplicate");
}

static void malformed_descriptions_are_refused(void **state)
{
    static const char form[] = "tensor 'a' is not described by dtype, shape "
                               "and data_offsets alone";

    (void)state;
    assert_refused("{\"a\":1}", 0, form);
    assert_refused("{\"a\":null}", 0, form);
    assert_refused("{\"a\":[]}", 0, form);
    assert_refused("{\"a\":{}}", 0, form);
    assert_refused("{\"a\":{\"shape\":[0],\"data_offsets\":[0,0]}}", 0, form);
    assert_refused("{\"a\":{\"dtype\":\"F64\",\"data_offsets\":[0,0]}}", 0,
                   form);
    assert_refused("{\"a\":{\"dtype\":\"F64\",\"shape\":[0]}}", 0, form);
    assert_refused("{\"a\":{\"dtype\":64,\"shape\":[0],\"data_offsets\":"
                   "[0,0]}}",
                   0, form);
    assert_refused("{\"a\":" TENSOR("0", "0", "0") "}", 0, form);
    assert_refused("{\"a\":{\"dtype\":\"F64\",\"shape\":[0],\"data_offsets\":"
                   "[0,0],\"more\":1}}",
                   0, form);
    assert_refused("{\"\":" TENSOR("[0]", "0", "0") "}", 0, "has no name");
}

static void other_dtypes_and_shapes_are_refused(void **state)
{
    static const char dims[] = "neither one nor two dimensions";
    static const char whole[] = "a dimension that is not a whole number";
    static const char large[] = "too large for this machine";

    (void)state;
    assert_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":"
                   "[0,8]}}",
                   8, "tensor 'a' has a dtype other than F64");
    assert_refused("{\"a\":" TENSOR("[]", "0", "8") "}", 8, dims);
    assert_refused("{\"a\":" TENSOR("[1,1,1]", "0", "8") "}", 8, dims);
    assert_refused("{\"a\":" TENSOR("[-1]", "0", "8") "}", 8, whole);
    assert_refused("{\"a\":" TENSOR("[1.0]", "0", "8") "}", 8, whole);
    assert_refused("{\"a\":" TENSOR("[1,\"1\"]", "0", "8") "}", 8, whole);
    assert_refused("{\"a\":" TENSOR("[9223372036854775807]", "0", "8") "}", 8,
                   large);
    /* 2^32 * 2^32 and 2^61 * 8 would wrap to nothing. */
    assert_refused("{\"a\":" TENSOR("[4294967296,4294967296]", "0", "0") "}", 0,
                   large);
    assert_refused("{\"a\":" TENSOR("[2305843009213693952]", "0", "0") "}", 0,
                   large);
    assert_refused("{\"a\":" TENSOR("[0,2305843009213693952]", "0", "0") "}", 0,
                   large);
    assert_refused("{\"a\":" TENSOR("[2305843009213693952,0]", "0", "0") "}", 0,
                   large);
}

static void offsets_that_do_not_tile_the_data_are_refused(void **state)
{
    static const char range[] = "data_offsets that are not a range";
    static const char match[] = "data_offsets that do not match its shape";

    (void)state;
    assert_refused("{\"a\":" TENSOR("[1]", "8", "0") "}", 8, range);
    assert_refused("{\"a\":" TENSOR("[1]", "-8", "0") "}", 8, range);
    assert_refused("{\"a\":" TENSOR("[1]", "0", "8.0") "}", 8, range);
    assert_refused("{\"a\":" TENSOR("[1]", "0", "8,8") "}", 8, range);
    assert_refused("{\"a\":" TENSOR("[1]", "0", "0") "}", 0, match);
    assert_refused("{\"a\":" TENSOR("[1]", "0", "16") "}", 16, match);
    assert_refused("{\"a\":" TENSOR("[0]", "0", "8") "}", 8, match);
    assert_refused("{\"a\":" TENSOR("[1]", "8", "16") "}", 16,
                   "'a' leaves a gap before it");
    assert_refused("{\"a\":" TENSOR("[1]", "0", "8") ",\"b\":" TENSOR(
                       "[1]", "16", "24") "}",
                   24, "'b' leaves a gap before it");
    assert_refused("{\"a\":" TENSOR("[2]", "0", "16") ",\"b\":" TENSOR(
                       "[1]", "8", "16") "}",
                   16, "'b' overlaps the one before it");
    assert_refused(
        "{\"a\":" TENSOR("[1]", "0", "8") ",\"b\":" TENSOR("[1]", "0", "8") "}",
        8, "'b' overlaps the one before it");
    assert_refused("{\"a\":" TENSOR("[2]", "0",
                                    "16") ",\"b\":" TENSOR("[0]", "8", "8") "}",
                   16, "'b' overlaps the one before it");
    assert_refused(
        "{\"a\":" TENSOR("[1]", "0", "8") ",\"b\":" TENSOR("[0]", "9", "9") "}",
        8, "'b' leaves a gap before it");
    assert_refused("{\"a\":" TENSOR("[1]", "0", "8") "}", 7, "cut short");
    assert_refused("{\"a\":" TENSOR("[1]", "0", "8") "}", 9, "too long");
    assert_refused("{}", 1, "too long");
}

static void other_metadata_is_refused(void **state)
{
    (void)state;
    assert_refused("{\"__metadata__\":1}", 0, "not a map of strings");
    assert_refused("{\"__metadata__\":" TENSOR("[0]", "0", "0") "}", 0,
                   "is not a string");
    assert_refused("{\"__metadata__\":{\"a\":1}}", 0,
                   "the metadata 'a' is not a string");
    assert_refused("{\"__metadata__\":{\"a\":null}}", 0, "is not a string");
    assert_refused("{\"__metadata__\":{\"\":\"\"}}", 0, "has no name");
}

static void header_lengths_are_checked_before_use(void **state)
{
    dafl_bytes file = make("{}", 0);
    uint8_t *p = (uint8_t *)(uintptr_t)file.ptr;

    (void)state;
    p[0] = 3;
    assert_bytes_refused(file, "cut short within its header");
    p[0] = 0;
    assert_bytes_refused(file, "its header is no JSON object");
    p[0] = 2;
    p[7] = 0x80;
    assert_bytes_refused(file, "not a safetensors file, or has a header above");
    p[7] = 0;
    p[2] = 0x40; /* 4 MiB + 2 */
    assert_bytes_refused(file, "not a safetensors file, or has a header above");
    drop(file);
}

static void a_file_cut_anywhere_is_refused(void **state)
{
    dafl_map map;

    (void)state;
    write_samples();
    assert_int_equal(dafl_map_open(&map, path, NULL), DAFL_OK);
    for (size_t len = 0; len < map.bytes.len; len++) {
        uint8_t *cut = malloc(len > 0 ? len : 1);

        assert_non_null(cut);
        memcpy(cut, map.bytes.ptr, len);
        assert_bytes_refused((dafl_bytes){cut, len}, "cut short");
        free(cut);
    }
    dafl_map_close(&map);
}

/* One more than the most tensors, each empty, with and without metadata. */
static void the_count_of_tensors_is_capped(void **state)
{
    const size_t max = DAFL_ST_TENSORS_MAX;
    dafl_st_tensor *many = calloc(max + 1, sizeof *many);
    char(*names)[8] = calloc(max + 1, sizeof *names);
    char *header = calloc(max + 2, 80), *at = header;
    dafl_why why = {""};
    dafl_st *st = NULL;

    (void)state;
    assert_non_null(many);
    assert_non_null(names);
    assert_non_null(header);
    *at++ = '{';
    for (size_t i = 0; i <= max; i++) {
        (void)snprintf(names[i], sizeof names[i], "%zu", i);
        many[i] = (dafl_st_tensor){names[i], 1, 0, 1, NULL};
        at += snprintf(at, 80, "\"%zu\":%s,", i, TENSOR("[0]", "0", "0"));
    }
    at[-1] = '}';
    assert_refused(header, 0, "tensors, at most 4096 are read");
    (void)snprintf(at - 1, 80, ",\"__metadata__\":{}}");
    assert_refused(header, 0, "tensors, at most 4096 are read");
    assert_int_equal(dafl_st_write(path, many, max + 1, NULL, 0, &why),
                     DAFL_ERR_ARG);
    assert_non_null(strstr(why.text, "tensors, at most 4096"));
    assert_int_equal(dafl_st_write(path, many, max, meta, 1, NULL), DAFL_OK);
    assert_int_equal(dafl_st_read(&st, path, NULL), DAFL_OK);
    assert_int_equal(dafl_st_count(st), max);
    dafl_st_free(&st);
    free(header);
    free(names);
    free(many);
}

static void assert_write_refused(const dafl_st_tensor *t, size_t n,
                                 const dafl_st_meta *m, size_t n_meta,
                                 const char *reason)
{
    dafl_why why = {""};
    struct stat st;

    assert_int_equal(dafl_st_write(path, t, n, m, n_meta, &why), DAFL_ERR_ARG);
    if (strstr(why.text, reason) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", why.text, reason);
    assert_int_not_equal(stat(path, &st), 0);
}

static void write_refuses_what_cannot_be_read_back(void **state)
{
    static const dafl_st_tensor t[] = {
        {"a", 0, 1, 1, values},        {"a", 3, 1, 1, values},
        {"a", 1, 1, 2, values},        {"a", 2, SIZE_MAX, SIZE_MAX, values},
        {"a", 2, 0, SIZE_MAX, values},
    };
    static const dafl_st_tensor large[] = {{"a", 1, PTRDIFF_MAX / 8, 1, values},
                                           {"b", 1, 1, 1, values}};
    static const dafl_st_tensor twice[] = {{"a", 1, 1, 1, values},
                                           {"a", 1, 1, 1, values}};
    static const dafl_st_tensor named[] = {{"", 1, 1, 1, values},
                                           {"\xff", 1, 1, 1, values},
                                           {"__metadata__", 1, 1, 1, values}};
    static const dafl_st_meta m[] = {{"a", "1"},
                                     {"a", "2"},
                                     {"", "3"},
                                     {"\xc0\x80", "4"},
                                     {"b", "\xed\xa0\x80"}};
    const size_t long_len = DAFL_ST_HEADER_MAX;
    char *long_text = malloc(long_len + 1);
    dafl_st_meta long_meta = {"a", long_text};

    (void)state;
    assert_non_null(long_text);
    memset(long_text, 'x', long_len);
    long_text[long_len] = '\0';
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++)
        assert_write_refused(&t[i], 1, NULL, 0, "no tensor has the shape");
    assert_write_refused(large, 2, NULL, 0, "no tensor has the shape of 'b'");
    assert_write_refused(twice, 2, NULL, 0, "the name 'a' is used twice");
    assert_write_refused(&named[0], 1, NULL, 0, "a name is empty");
    assert_write_refused(&named[1], 1, NULL, 0, "not UTF-8");
    assert_write_refused(&named[2], 1, NULL, 0, "no tensor has the name");
    assert_write_refused(NULL, 0, m, 2, "the name 'a' is used twice");
    assert_write_refused(NULL, 0, m + 2, 1, "a name is empty");
    assert_write_refused(NULL, 0, m + 3, 1, "not UTF-8");
    assert_write_refused(NULL, 0, m + 4, 1, "not UTF-8");
    assert_write_refused(NULL, 0, &long_meta, 1, "at most 4194304 are read");
    free(long_text);
}

static void a_write_that_fails_keeps_the_old_file(void **state)
{
    static const dafl_st_tensor bad = {"", 1, 1, 1, values};
    char below[200];
    dafl_why why = {""};
    dafl_st *st = NULL;

    (void)state;
    (void)snprintf(below, sizeof below, "%s/b", path);
    write_samples();
    assert_int_equal(dafl_st_write(path, &bad, 1, NULL, 0, NULL), DAFL_ERR_ARG);
    assert_int_equal(dafl_st_write(below, NULL, 0, NULL, 0, &why),
                     DAFL_ERR_INPUT);
    assert_non_null(strstr(why.text, "Not a directory"));
    assert_int_equal(dafl_st_read(&st, path, NULL), DAFL_OK);
    assert_int_equal(dafl_st_count(st), N_TENSORS);
    dafl_st_free(&st);
}

static void read_names_the_file_it_refuses(void **state)
{
    dafl_why why = {""};
    dafl_st *st = NULL;

    (void)state;
    assert_int_equal(dafl_st_read(&st, path, &why), DAFL_ERR_INPUT);
    assert_non_null(strstr(why.text, "No such file"));
    assert_int_equal(dafl_file_replace(path, NULL, 0, NULL), DAFL_OK);
    assert_int_equal(dafl_st_read(&st, path, &why), DAFL_ERR_INPUT);
    assert_int_equal(strncmp(why.text, path, strlen(path)), 0);
    assert_non_null(strstr(why.text, "cut short"));
    assert_null(st);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, make_path, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(contents_survive_a_round_trip),
        CASE(tensors_are_laid_out_in_the_order_given),
        CASE(the_written_bytes_are_canonical),
        CASE(data_starts_at_a_multiple_of_eight),
        CASE(nothing_at_all_is_a_file_too),
        cmocka_unit_test(tensors_come_in_the_order_of_their_data),
        cmocka_unit_test(headers_that_are_not_json_are_refused),
        cmocka_unit_test(malformed_descriptions_are_refused),
        cmocka_unit_test(other_dtypes_and_shapes_are_refused),
        cmocka_unit_test(offsets_that_do_not_tile_the_data_are_refused),
        cmocka_unit_test(other_metadata_is_refused),
        cmocka_unit_test(header_lengths_are_checked_before_use),
        CASE(a_file_cut_anywhere_is_refused),
        CASE(the_count_of_tensors_is_capped),
        CASE(write_refuses_what_cannot_be_read_back),
        CASE(a_write_that_fails_keeps_the_old_file),
        CASE(read_names_the_file_it_refuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
