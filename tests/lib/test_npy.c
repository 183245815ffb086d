/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "tests/check.h"
#include "lib/npy.h"

#define HEADER(descr, order, shape) \
    "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }"
#define PLAIN(descr) HEADER("'" descr "'", "False", "(2, 3)")
#define SHAPED(shape) HEADER("'<f4'", "False", shape)

static char path[160];

static int make_path(void **state)
{
    int failed = make_dir(state);

    (void)snprintf(path, sizeof path, "%s/a.npy", dir);
    return failed;
}

/* A file of the given version, header text and count of data bytes, in memory
 * of exactly its length so that a sanitizer sees a read beyond it. */
static dafl_bytes make(unsigned version, const char *header, size_t data_len)
{
    static const uint8_t magic[6] = "\x93NUMPY";
    size_t at = version == 1 ? 10 : 12, len = strlen(header);
    uint8_t *p = calloc(1, at + len + data_len);

    assert_non_null(p);
    memcpy(p, magic, sizeof magic);
    p[6] = (uint8_t)version;
    p[8] = (uint8_t)len;
    p[9] = (uint8_t)(len >> 8);
    for (size_t i = 0; i < len; i++)
        p[at + i] = (uint8_t)header[i];
    for (size_t i = 0; i < data_len; i++)
        p[at + len + i] = (uint8_t)(i + 1);
    return (dafl_bytes){p, at + len + data_len};
}

static void drop(dafl_bytes file)
{
    free((void *)(uintptr_t)file.ptr);
}

static void assert_bytes_refused(dafl_bytes file, const char *reason)
{
    dafl_npy npy = {.rows = 77};
    dafl_why why = {""};

    assert_int_equal(dafl_npy_parse(&npy, file, "x.npy", &why), DAFL_ERR_INPUT);
    assert_int_equal(strncmp(why.text, "x.npy: ", 7), 0);
    if (strstr(why.text, reason) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", why.text, reason);
    assert_int_equal(npy.rows, 77); /* outputs only on success */
    assert_int_equal(dafl_npy_parse(&npy, file, "x.npy", NULL), DAFL_ERR_INPUT);
}

static void assert_header_refused(const char *header, const char *reason)
{
    dafl_bytes file = make(1, header, 24);

    assert_bytes_refused(file, reason);
    drop(file);
}

static void assert_header_read(unsigned version, const char *header,
                               dafl_npy_type type, size_t data_len)
{
    dafl_bytes file = make(version, header, data_len);
    dafl_why why = {""};
    dafl_npy npy;

    if (dafl_npy_parse(&npy, file, "x.npy", &why) != DAFL_OK)
        fail_msg("%s", why.text);
    assert_int_equal(npy.type, type);
    assert_int_equal(npy.rows * npy.cols * dafl_npy_type_size(type), data_len);
    assert_ptr_equal(npy.data, file.ptr + file.len - data_len);
    assert_null(npy.map.bytes.ptr);
    dafl_npy_close(&npy); /* harmless on a borrowed array */
    drop(file);
}

static void every_version_is_read(void **state)
{
    (void)state;
    for (unsigned version = 1; version <= 3; version++)
        assert_header_read(version, PLAIN("<f4"), DAFL_NPY_F32, 24);
}

static void every_type_is_read(void **state)
{
    (void)state;
    assert_header_read(1, PLAIN("<f2"), DAFL_NPY_F16, 12);
    assert_header_read(1, PLAIN("<f4"), DAFL_NPY_F32, 24);
    assert_header_read(1, PLAIN("<f8"), DAFL_NPY_F64, 48);
    assert_header_read(1, PLAIN("|u1"), DAFL_NPY_U8, 6);
    assert_header_read(1, PLAIN("<u1"), DAFL_NPY_U8, 6);
    assert_header_read(1, PLAIN("<u2"), DAFL_NPY_U16, 12);
    assert_header_read(1, PLAIN("<u4"), DAFL_NPY_U32, 24);
    assert_header_read(1, PLAIN("<u8"), DAFL_NPY_U64, 48);
    assert_header_read(1, PLAIN("|i1"), DAFL_NPY_I8, 6);
    assert_header_read(1, PLAIN("<i2"), DAFL_NPY_I16, 12);
    assert_header_read(1, PLAIN("<i4"), DAFL_NPY_I32, 24);
    assert_header_read(1, PLAIN("=i8"), DAFL_NPY_I64, 48);
}

static void any_literal_of_the_dictionary_is_read(void **state)
{
    static const char *const headers[] = {
        "{'shape':(2,3),'fortran_order':False,'descr':'<f4'}",
        "{\"descr\": \"<f4\", \"fortran_order\": False, 'shape': (2, 3)}",
        " \t{ 'fortran_order' :False ,\n'descr': '<f4','shape':( 2 ,3 , ),}",
        PLAIN("<f4") "                    \n",
        SHAPED("(6,)"),
        SHAPED("( 6 , )"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        assert_header_read(1, headers[i], DAFL_NPY_F32, 24);
}

static void shapes_arrive_as_written(void **state)
{
    static const struct {
        const char *header;
        unsigned n_dims;
        size_t rows, cols, data_len;
    } cases[] = {{SHAPED("(5,)"), 1, 5, 1, 20},
                 {SHAPED("(5, 1)"), 2, 5, 1, 20},
                 {SHAPED("(1, 5)"), 2, 1, 5, 20},
                 {SHAPED("(0,)"), 1, 0, 1, 0},
                 {SHAPED("(0, 7)"), 2, 0, 7, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dafl_bytes file = make(1, cases[i].header, cases[i].data_len);
        dafl_npy npy;

        assert_int_equal(dafl_npy_parse(&npy, file, "x.npy", NULL), DAFL_OK);
        assert_int_equal(npy.n_dims, cases[i].n_dims);
        assert_int_equal(npy.rows, cases[i].rows);
        assert_int_equal(npy.cols, cases[i].cols);
        drop(file);
    }
}

static void other_files_are_refused(void **state)
{
    static const char zip[] = "PK\x03\x04 and more";
    dafl_bytes file = {(const uint8_t *)zip, sizeof zip};

    (void)state;
    assert_bytes_refused(file, ".npz or zip archive; save the array with "
                               "numpy.save");
    assert_bytes_refused((dafl_bytes){NULL, 0}, "is not a .npy file");
    file = make(1, PLAIN("<f4"), 24);
    for (size_t i = 0; i < 6; i++) {
        uint8_t *p = (uint8_t *)(uintptr_t)file.ptr + i;

        *p ^= 1;
        assert_bytes_refused(file, "is not a .npy file");
        *p ^= 1;
    }
    drop(file);
}

static void other_versions_are_refused(void **state)
{
    dafl_bytes file = make(0, PLAIN("<f4"), 24);

    (void)state;
    assert_bytes_refused(file, "version other than 1.0, 2.0 and 3.0");
    drop(file);
    file = make(4, PLAIN("<f4"), 24);
    assert_bytes_refused(file, "version other than 1.0, 2.0 and 3.0");
    drop(file);
    file = make(1, PLAIN("<f4"), 24);
    ((uint8_t *)(uintptr_t)file.ptr)[7] = 1;
    assert_bytes_refused(file, "version other than 1.0, 2.0 and 3.0");
    drop(file);
}

static void malformed_dictionaries_are_refused(void **state)
{
    static const char form[] = "not a dictionary of descr";
    static const char lacks[] = "lacks descr, fortran_order or shape";

    (void)state;
    assert_header_refused("", form);
    assert_header_refused("[]", form);
    assert_header_refused("{", form);
    assert_header_refused("{'descr'", form);
    assert_header_refused("{'descr", form);
    assert_header_refused("{'des\\x63r': '<f4'}", form);
    assert_header_refused("{descr: '<f4'}", form);
    assert_header_refused("{'descr' '<f4'}", form);
    assert_header_refused("{,}", form);
    assert_header_refused("{'descr': '<f4' 'shape': (6,)}", form);
    assert_header_refused("{'descr': '<f4',, 'shape': (6,)}", form);
    assert_header_refused("{'descr': '<f4\"}", "no string as its dtype");
    assert_header_refused("{'descr': 4}", "no string as its dtype");
    assert_header_refused("{'descr': None}", "no string as its dtype");
    assert_header_refused("{'descr': '<f4', 'order': False}", "a key that");
    assert_header_refused("{'descr': '<f4', 'Shape': (6,)}", "a key that");
    assert_header_refused("{'': '<f4'}", "a key that");
    assert_header_refused("{'descr': '<f4', 'descr': '<f4'}", "a key twice");
    assert_header_refused("{}", lacks);
    assert_header_refused("{'descr': '<f4', 'shape': (6,)}", lacks);
    assert_header_refused("{'fortran_order': False, 'shape': (6,)}", lacks);
    assert_header_refused("{'descr': '<f4', 'fortran_order': False}", lacks);
    assert_header_refused(PLAIN("<f4") " x", "goes on after the dictionary");
    assert_header_refused(PLAIN("<f4") "{}", "goes on after the dictionary");
}

static void other_orders_are_refused(void **state)
{
    (void)state;
    assert_header_refused(HEADER("'<f4'", "True", "(2, 3)"),
                          "Fortran order; save numpy.ascontiguousarray(x)");
    assert_header_refused(HEADER("'<f4'", "True", "(6,)"), "Fortran order");
    assert_header_refused(HEADER("'<f4'", "0", "(6,)"),
                          "a fortran_order other than");
    assert_header_refused(HEADER("'<f4'", "false", "(6,)"),
                          "a fortran_order other than");
    assert_header_refused(HEADER("'<f4'", "Falsey", "(6,)"),
                          "not a dictionary");
    assert_header_refused("{'fortran_order': Fal",
                          "a fortran_order other than");
}

static void other_types_are_refused(void **state)
{
    static const char *const unread[] = {
        PLAIN("<c8"), PLAIN("<f16"), PLAIN("<f1"),    PLAIN("<f3"),
        PLAIN("<i0"), PLAIN("<i16"), PLAIN("<M8[D]"), PLAIN("|V4"),
        PLAIN("|f4"), PLAIN("f4"),   PLAIN("!f4"),    PLAIN("<f"),
        PLAIN("<"),   PLAIN(""),     PLAIN("<F4"),    PLAIN("<f4 ")};

    (void)state;
    assert_header_refused(PLAIN(">f4"),
                          "dtype '>f4', big-endian numbers; "
                          "save x.astype(x.dtype.newbyteorder('<')) instead");
    assert_header_refused(PLAIN(">u1"), "big-endian");
    assert_header_refused(PLAIN("|b1"), "'|b1', booleans; save "
                                        "x.astype('uint8') instead");
    assert_header_refused(PLAIN("|O"), "Python objects");
    assert_header_refused(PLAIN("<U5"), "strings");
    assert_header_refused(PLAIN("|S5"), "strings");
    assert_header_refused(HEADER("[('a', '<f4')]", "False", "(6,)"),
                          "structured dtype; save each field");
    assert_header_refused(HEADER("('<f4', (2,))", "False", "(3,)"),
                          "structured dtype");
    for (size_t i = 0; i < sizeof unread / sizeof unread[0]; i++)
        assert_header_refused(unread[i],
                              "a type not read here; save "
                              "x.astype('float32') or an integer type");
}

static void other_shapes_are_refused(void **state)
{
    static const char whole[] = "a dimension that is not a whole number";
    static const char tuple[] = "a shape that is not a tuple";
    static const char large[] = "too large for this machine";

    (void)state;
    assert_header_refused(SHAPED("()"), "is a single number");
    assert_header_refused(SHAPED("(1, 2, 3)"),
                          "more than two dimensions; save x.reshape(len(x)");
    assert_header_refused(SHAPED("(1, 1, 1, 1, 6,)"), "more than two");
    assert_header_refused(SHAPED("(6, 0)"), "has no columns");
    assert_header_refused(SHAPED("(0, 0)"), "has no columns");
    assert_header_refused(SHAPED("[6]"), tuple);
    assert_header_refused(SHAPED("6"), tuple);
    assert_header_refused(SHAPED("(6)"), tuple);
    assert_header_refused(SHAPED("(2, 3"), whole);
    assert_header_refused(SHAPED("(2 3)"), tuple);
    assert_header_refused("{'shape': (2, 3", tuple);
    assert_header_refused("{'shape': (2, ", whole);
    assert_header_refused(SHAPED("(,)"), whole);
    assert_header_refused(SHAPED("(2,,3)"), whole);
    assert_header_refused(SHAPED("(-2, 3)"), whole);
    assert_header_refused(SHAPED("(+2, 3)"), whole);
    assert_header_refused(SHAPED("(02, 3)"), whole);
    assert_header_refused(SHAPED("(00, 3)"), whole);
    assert_header_refused(SHAPED("('2', 3)"), whole);
    assert_header_refused(SHAPED("(2.0, 3)"), tuple);
    assert_header_refused(SHAPED("(2L, 3L)"), tuple);
    /* 2^64, 2^64 - 1, and products that would wrap to 6 or 0. */
    assert_header_refused(SHAPED("(18446744073709551616,)"), large);
    assert_header_refused(SHAPED("(18446744073709551615,)"), large);
    assert_header_refused(SHAPED("(6148914691236517206, 3)"), large);
    assert_header_refused(SHAPED("(4611686018427387904, 4)"), large);
    assert_header_refused(SHAPED("(0, 18446744073709551615)"), large);
    assert_header_refused(SHAPED("(99999999999999999999999999,)"), large);
}

static void lengths_that_differ_from_the_header_are_refused(void **state)
{
    dafl_bytes file = make(1, PLAIN("<f4"), 23);

    (void)state;
    assert_bytes_refused(file, "cut short: 2 x 3 elements of float32 take 24 "
                               "bytes, but 23 follow");
    drop(file);
    file = make(1, PLAIN("<f4"), 25);
    assert_bytes_refused(file, "too long: 2 x 3 elements of float32 take 24 "
                               "bytes, but 25 follow");
    drop(file);
    file = make(1, SHAPED("(0, 3)"), 1);
    assert_bytes_refused(file, "too long");
    drop(file);
}

static void a_file_cut_anywhere_is_refused(void **state)
{
    (void)state;
    for (unsigned version = 1; version <= 3; version++) {
        dafl_bytes file = make(version, PLAIN("<f4") "   \n", 24);

        for (size_t len = 0; len < file.len; len++) {
            uint8_t *cut = malloc(len > 0 ? len : 1);

            assert_non_null(cut);
            memcpy(cut, file.ptr, len);
            assert_bytes_refused((dafl_bytes){cut, len},
                                 len < 8 ? "is not a .npy file" : "cut short");
            free(cut);
        }
        drop(file);
    }
}

static uint64_t bits_of(double x)
{
    uint64_t bits = 0;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The definition of binary16, with NaNs quiet and their payload kept. */
static uint64_t f16_bits(unsigned half)
{
    unsigned exponent = half >> 10 & 31, fraction = half & 1023;
    double sign = half >> 15 ? -1 : 1;

    if (exponent == 31 && fraction != 0)
        return (uint64_t)(half >> 15) << 63 | UINT64_C(0x7ff8) << 48 |
               (uint64_t)fraction << 42;
    if (exponent == 31)
        return bits_of(sign * (double)INFINITY);
    if (exponent == 0)
        return bits_of(sign * ldexp(fraction, -24));
    return bits_of(sign * ldexp(1024 + fraction, (int)exponent - 25));
}

/* Long runs may use vector instructions and short ones do not: both are held
 * to the same bits, at an address that is not aligned. */
static void every_float16_is_exact_in_runs_and_alone(void **state)
{
    const uint32_t n = 65536;
    uint8_t *data = malloc(2 * n + 1);
    double *run = malloc(n * sizeof *run);
    dafl_npy npy = {.type = DAFL_NPY_F16, .n_dims = 1, .rows = n, .cols = 1};

    (void)state;
    assert_non_null(data);
    assert_non_null(run);
    npy.data = data + 1;
    for (uint32_t i = 0; i < n; i++) {
        data[2 * i + 1] = (uint8_t)i;
        data[2 * i + 2] = (uint8_t)(i >> 8);
    }
    dafl_npy_get_rows(&npy, run, NULL, 0, n);
    for (uint32_t i = 0; i < n; i++) {
        double alone = 0;

        dafl_npy_get_rows(&npy, &alone, &i, 0, 1);
        assert_int_equal(bits_of(alone), f16_bits(i));
        assert_int_equal(bits_of(run[i]), f16_bits(i));
    }
    free(run);
    free(data);
}

static const union {
    uint16_t f16[6];
    float f32[6];
    double f64[6];
    uint8_t u8[6];
    uint16_t u16[6];
    uint32_t u32[6];
    uint64_t u64[6];
    int8_t i8[6];
    int16_t i16[6];
    int32_t i32[6];
    int64_t i64[6];
} samples[] = {
    [DAFL_NPY_F16] = {.f16 = {0, 0x8000, 0x3c00, 0xc000, 0x7c00, 1}},
    [DAFL_NPY_F32] = {.f32 = {0, -0.0F, 1.5F, -3e38F, 1e-45F, INFINITY}},
    [DAFL_NPY_F64] = {.f64 = {0, -0.0, 0.1, -1e308, 5e-324, INFINITY}},
    [DAFL_NPY_U8] = {.u8 = {0, 1, 2, 127, 128, UINT8_MAX}},
    [DAFL_NPY_U16] = {.u16 = {0, 1, 2, INT16_MAX, 32768, UINT16_MAX}},
    [DAFL_NPY_U32] = {.u32 = {0, 1, 2, INT32_MAX, 1u << 31, UINT32_MAX}},
    [DAFL_NPY_U64] = {.u64 = {0, 1, 2, 1ull << 53, INT64_MAX, UINT64_MAX}},
    [DAFL_NPY_I8] = {.i8 = {0, 1, -1, INT8_MAX, INT8_MIN, 2}},
    [DAFL_NPY_I16] = {.i16 = {0, 1, -1, INT16_MAX, INT16_MIN, 2}},
    [DAFL_NPY_I32] = {.i32 = {0, 1, -1, INT32_MAX, INT32_MIN, 2}},
    [DAFL_NPY_I64] = {.i64 = {0, 1, -1, INT64_MAX, INT64_MIN, 2}},
};

static double sample_double(dafl_npy_type type, size_t i)
{
    static const double f16[] = {0, -0.0, 1, -2, INFINITY, 0x1p-24};

    switch (type) {
    case DAFL_NPY_F16:
        return f16[i];
    case DAFL_NPY_F32:
        return (double)samples[type].f32[i];
    case DAFL_NPY_F64:
        return samples[type].f64[i];
    case DAFL_NPY_U8:
        return samples[type].u8[i];
    case DAFL_NPY_U16:
        return samples[type].u16[i];
    case DAFL_NPY_U32:
        return samples[type].u32[i];
    case DAFL_NPY_U64:
        return (double)samples[type].u64[i];
    case DAFL_NPY_I8:
        return samples[type].i8[i];
    case DAFL_NPY_I16:
        return samples[type].i16[i];
    case DAFL_NPY_I32:
        return samples[type].i32[i];
    case DAFL_NPY_I64:
        return (double)samples[type].i64[i];
    }
    return 0;
}

static int64_t sample_int(dafl_npy_type type, size_t i)
{
    switch (type) {
    case DAFL_NPY_I64:
        return samples[type].i64[i];
    case DAFL_NPY_U64:
        return (int64_t)samples[type].u64[i];
    default:
        return (int64_t)sample_double(type, i);
    }
}

static void every_type_survives_a_round_trip(void **state)
{
    static const struct {
        unsigned n_dims;
        size_t rows, cols;
    } shapes[] = {{1, 6, 1}, {2, 2, 3}, {2, 6, 1}, {2, 0, 3}, {1, 0, 1}};

    (void)state;
    for (dafl_npy_type t = DAFL_NPY_F16; t <= DAFL_NPY_I64; t++) {
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
            size_t rows = shapes[s].rows, n = rows * shapes[s].cols;
            double out[6];
            dafl_npy npy;

            assert_int_equal(dafl_npy_write(path, t, shapes[s].n_dims, rows,
                                            shapes[s].cols, &samples[t], NULL),
                             DAFL_OK);
            assert_int_equal(dafl_npy_open(&npy, path, NULL), DAFL_OK);
            assert_int_equal(npy.type, t);
            assert_int_equal(npy.n_dims, shapes[s].n_dims);
            assert_int_equal(npy.rows, rows);
            assert_int_equal(npy.cols, shapes[s].cols);
            assert_int_equal((npy.data - npy.map.bytes.ptr) % 64, 0);
            dafl_npy_get_rows(&npy, out, NULL, 0, rows);
            for (size_t i = 0; i < n; i++) {
                assert_int_equal(bits_of(out[i]), bits_of(sample_double(t, i)));
            }
            dafl_npy_close(&npy);
            assert_null(npy.map.bytes.ptr);
        }
    }
}

static void integers_are_exact_and_floats_refused(void **state)
{
    (void)state;
    for (dafl_npy_type t = DAFL_NPY_F16; t <= DAFL_NPY_I64; t++) {
        dafl_npy npy = {.type = t, .n_dims = 2, .rows = 2, .cols = 3};

        npy.data = (const uint8_t *)&samples[t];
        for (size_t i = 0; i < 6; i++) {
            int64_t v = 77;
            dafl_err err = dafl_npy_get_int(&npy, &v, i);

            if (t <= DAFL_NPY_F64 ||
                (t == DAFL_NPY_U64 && samples[t].u64[i] > INT64_MAX)) {
                assert_int_equal(err, DAFL_ERR_INPUT);
                assert_int_equal(v, 77);
            } else {
                assert_int_equal(err, DAFL_OK);
                assert_true(v == sample_int(t, i));
            }
        }
    }
}

static void rows_come_in_the_order_asked_for(void **state)
{
    const size_t n_rows = 5, n_cols = 19;
    static const uint32_t index[] = {4, 0, 0, 3};
    float data[5 * 19];
    double out[4 * 19];
    dafl_npy npy = {.type = DAFL_NPY_F32,
                    .n_dims = 2,
                    .rows = n_rows,
                    .cols = n_cols,
                    .data = (const uint8_t *)data};

    (void)state;
    for (size_t i = 0; i < n_rows * n_cols; i++)
        data[i] = (float)i;
    dafl_npy_get_rows(&npy, out, index, 0, 4);
    for (size_t r = 0; r < 4; r++)
        for (size_t c = 0; c < n_cols; c++)
            assert_true(out[r * n_cols + c] ==
                        (double)data[index[r] * n_cols + c]);
    dafl_npy_get_rows(&npy, out, NULL, 2, 3);
    for (size_t i = 0; i < 3 * n_cols; i++)
        assert_true(out[i] == (double)data[2 * n_cols + i]);
    dafl_npy_get_rows(&npy, out, index, 0, 0);
    dafl_npy_get_rows(&npy, out, NULL, n_rows, 0);
}

static void open_names_the_file_it_refuses(void **state)
{
    dafl_npy npy = {.rows = 77};
    dafl_why why = {""};
    dafl_bytes junk = {(const uint8_t *)"junk", 4};

    (void)state;
    assert_int_equal(dafl_npy_open(&npy, path, &why), DAFL_ERR_INPUT);
    assert_non_null(strstr(why.text, "No such file"));
    assert_int_equal(dafl_file_replace(path, &junk, 1, NULL), DAFL_OK);
    assert_int_equal(dafl_npy_open(&npy, path, &why), DAFL_ERR_INPUT);
    assert_int_equal(strncmp(why.text, path, strlen(path)), 0);
    assert_non_null(strstr(why.text, "is not a .npy file"));
    assert_int_equal(npy.rows, 77);
    dafl_npy_close(NULL);
}

static void write_refuses_shapes_that_cannot_be_read_back(void **state)
{
    static const struct {
        unsigned n_dims;
        size_t rows, cols;
    } shapes[] = {{0, 1, 1}, {3, 1, 1},        {1, 3, 2},
                  {2, 3, 0}, {2, SIZE_MAX, 2}, {2, 0, SIZE_MAX}};
    struct stat st;

    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        dafl_why why = {""};

        assert_int_equal(dafl_npy_write(path, DAFL_NPY_F64, shapes[i].n_dims,
                                        shapes[i].rows, shapes[i].cols,
                                        &samples[0], &why),
                         DAFL_ERR_ARG);
        assert_non_null(strstr(why.text, "no .npy array has this shape"));
    }
    assert_int_not_equal(stat(path, &st), 0);
}

static void a_write_that_fails_keeps_the_old_file(void **state)
{
    char below[200];
    dafl_why why = {""};
    dafl_npy npy;

    (void)state;
    (void)snprintf(below, sizeof below, "%s/b.npy", path);
    assert_int_equal(
        dafl_npy_write(path, DAFL_NPY_U8, 1, 6, 1, &samples[0], NULL), DAFL_OK);
    assert_int_equal(
        dafl_npy_write(below, DAFL_NPY_U8, 1, 6, 1, &samples[0], &why),
        DAFL_ERR_INPUT);
    assert_non_null(strstr(why.text, "Not a directory"));
    assert_int_equal(dafl_npy_open(&npy, path, NULL), DAFL_OK);
    dafl_npy_close(&npy);
}

static void types_have_the_names_numpy_gives_them(void **state)
{
    (void)state;
    assert_string_equal(dafl_npy_type_name(DAFL_NPY_F16), "float16");
    assert_string_equal(dafl_npy_type_name(DAFL_NPY_U64), "uint64");
    assert_string_equal(dafl_npy_type_name(DAFL_NPY_I8), "int8");
    assert_int_equal(dafl_npy_type_size(DAFL_NPY_F16), 2);
    assert_int_equal(dafl_npy_type_size(DAFL_NPY_I64), 8);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, make_path, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_version_is_read),
        cmocka_unit_test(every_type_is_read),
        cmocka_unit_test(any_literal_of_the_dictionary_is_read),
        cmocka_unit_test(shapes_arrive_as_written),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(other_versions_are_refused),
        cmocka_unit_test(malformed_dictionaries_are_refused),
        cmocka_unit_test(other_orders_are_refused),
        cmocka_unit_test(other_types_are_refused),
        cmocka_unit_test(other_shapes_are_refused),
        cmocka_unit_test(lengths_that_differ_from_the_header_are_refused),
        cmocka_unit_test(a_file_cut_anywhere_is_refused),
        cmocka_unit_test(every_float16_is_exact_in_runs_and_alone),
        CASE(every_type_survives_a_round_trip),
        cmocka_unit_test(integers_are_exact_and_floats_refused),
        cmocka_unit_test(rows_come_in_the_order_asked_for),
        CASE(open_names_the_file_it_refuses),
        CASE(write_refuses_shapes_that_cannot_be_read_back),
        CASE(a_write_that_fails_keeps_the_old_file),
        cmocka_unit_test(types_have_the_names_numpy_gives_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
