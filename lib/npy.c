/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/npy.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#ifdef __F16C__
#include <immintrin.h>
#endif

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "elements are read in place: this file needs a little-endian machine"
#endif

#define MAGIC "\x93NUMPY"
#define MAGIC_LEN 6

static const struct {
    char kind; /* f, u or i */
    unsigned char size;
    const char *name;
} types[] = {
    [DAFL_NPY_F16] = {'f', 2, "float16"}, [DAFL_NPY_F32] = {'f', 4, "float32"},
    [DAFL_NPY_F64] = {'f', 8, "float64"}, [DAFL_NPY_U8] = {'u', 1, "uint8"},
    [DAFL_NPY_U16] = {'u', 2, "uint16"},  [DAFL_NPY_U32] = {'u', 4, "uint32"},
    [DAFL_NPY_U64] = {'u', 8, "uint64"},  [DAFL_NPY_I8] = {'i', 1, "int8"},
    [DAFL_NPY_I16] = {'i', 2, "int16"},   [DAFL_NPY_I32] = {'i', 4, "int32"},
    [DAFL_NPY_I64] = {'i', 8, "int64"},
};
#define N_TYPES (sizeof types / sizeof types[0])

size_t dafl_npy_type_size(dafl_npy_type type)
{
    assert((size_t)type < N_TYPES);
    return types[type].size;
}

const char *dafl_npy_type_name(dafl_npy_type type)
{
    assert((size_t)type < N_TYPES);
    return types[type].name;
}

/* The array as doubles must be addressable too, and so must one row of an
 * array without rows: callers size buffers by either. */
static bool shape_fits(size_t rows, size_t cols)
{
    const size_t max = PTRDIFF_MAX / sizeof(double);

    return cols <= max && (cols == 0 || rows <= max / cols);
}

/* The header: a Python dictionary literal of three known keys. The parse
 * functions return NULL or what is wrong, as the end of a sentence. */

typedef struct {
    const uint8_t *at, *end;
} cursor;

typedef struct {
    dafl_bytes descr;
    bool fortran;
    size_t n_dims;
    size_t dims[2]; /* the first two */
} header;

static bool take(cursor *c, char want)
{
    while (c->at < c->end && *c->at != '\0' &&
           strchr(" \t\r\n", *c->at) != NULL)
        c->at++;
    if (c->at == c->end || *c->at != (uint8_t)want)
        return false;
    c->at++;
    return true;
}

static bool take_word(cursor *c, const char *word)
{
    size_t rest_len = strlen(word) - 1;

    if (!take(c, word[0]))
        return false;
    if ((size_t)(c->end - c->at) < rest_len ||
        memcmp(c->at, word + 1, rest_len) != 0)
        return false;
    c->at += rest_len;
    return true;
}

/* A string in either quote. NumPy needs no escapes here, so none are read. */
static bool take_string(cursor *c, dafl_bytes *out)
{
    uint8_t quote = '\'';

    if (!take(c, '\'')) {
        quote = '"';
        if (!take(c, '"'))
            return false;
    }
    out->ptr = c->at;
    while (c->at < c->end && *c->at != quote)
        if (*c->at++ == '\\')
            return false;
    if (c->at == c->end)
        return false;
    out->len = (size_t)(c->at++ - out->ptr);
    return true;
}

static const char *parse_descr(header *h, cursor *c)
{
    if (take(c, '[') || take(c, '('))
        return "has a structured dtype; save each field as an array of its own";
    return take_string(c, &h->descr) ? NULL
                                     : "its header has no string as its dtype";
}

static const char *parse_order(header *h, cursor *c)
{
    cursor start = *c;

    if (take_word(c, "False"))
        return NULL;
    *c = start;
    h->fortran = take_word(c, "True");
    return h->fortran
               ? NULL
               : "its header has a fortran_order other than True and False";
}

static const char *parse_dim(size_t *out, cursor *c)
{
    bool zero = take(c, '0'); /* which also skips the space before a digit */
    size_t dim = 0, n_digits = 0;

    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        size_t digit = (size_t)(*c->at - '0');

        if (dim > (SIZE_MAX - digit) / 10)
            return "its header has a dimension too large for this machine";
        dim = 10 * dim + digit;
        n_digits++;
    }
    if (zero == (n_digits > 0)) /* nothing, or Python's forbidden 01 */
        return "its header has a dimension that is not a whole number";
    *out = dim;
    return NULL;
}

static const char *parse_shape(header *h, cursor *c)
{
    static const char no_tuple[] = "its header has a shape that is not a tuple";

    if (!take(c, '('))
        return no_tuple;
    while (!take(c, ')')) {
        size_t dim = 0;
        const char *problem = parse_dim(&dim, c);

        if (problem != NULL)
            return problem;
        if (h->n_dims < 2)
            h->dims[h->n_dims] = dim;
        h->n_dims++;
        if (take(c, ','))
            continue;
        /* To Python, (3) is a number: one dimension needs its comma. */
        return h->n_dims > 1 && take(c, ')') ? NULL : no_tuple;
    }
    return NULL;
}

static const char *parse_header(header *h, cursor *c)
{
    static const char malformed[] =
        "its header is not a dictionary of descr, fortran_order and shape";
    static const struct {
        const char *name;
        const char *(*parse)(header *h, cursor *c);
    } keys[] = {{"descr", parse_descr},
                {"fortran_order", parse_order},
                {"shape", parse_shape}};
    const size_t n_keys = sizeof keys / sizeof keys[0];
    unsigned seen = 0;

    if (!take(c, '{'))
        return malformed;
    while (!take(c, '}')) {
        dafl_bytes key;
        const char *problem = NULL;
        size_t k = 0;

        if (!take_string(c, &key) || !take(c, ':'))
            return malformed;
        while (k < n_keys && (strlen(keys[k].name) != key.len ||
                              memcmp(keys[k].name, key.ptr, key.len) != 0))
            k++;
        if (k == n_keys)
            return "its header has a key that is not descr, fortran_order or "
                   "shape";
        if (seen & 1u << k)
            return "its header has a key twice";
        seen |= 1u << k;
        problem = keys[k].parse(h, c);
        if (problem != NULL)
            return problem;
        if (take(c, ','))
            continue;
        if (!take(c, '}'))
            return malformed;
        break;
    }
    if (seen != (1u << n_keys) - 1)
        return "its header lacks descr, fortran_order or shape";
    (void)take(c, '\n'); /* for the padding before it */
    return c->at == c->end ? NULL : "its header goes on after the dictionary";
}

static const char *judge_descr(dafl_npy_type *out, dafl_bytes descr)
{
    char order = '\0', kind = '\0';
    size_t t = 0;

    if (descr.len >= 2) {
        order = (char)descr.ptr[0];
        kind = (char)descr.ptr[1];
    }
    while (t < N_TYPES && (descr.len != 3 || kind != types[t].kind ||
                           descr.ptr[2] != '0' + types[t].size))
        t++;
    if (order == '>' && t < N_TYPES)
        return "big-endian numbers; save x.astype(x.dtype.newbyteorder('<'))";
    if (t < N_TYPES && (order == '<' || order == '=' ||
                        (order == '|' && types[t].size == 1))) {
        *out = (dafl_npy_type)t;
        return NULL;
    }
    switch (kind) {
    case 'b':
        return "booleans; save x.astype('uint8')";
    case 'O':
        return "Python objects; save an array of numbers";
    case 'S':
    case 'U':
        return "strings; save an array of numbers";
    default:
        return "a type not read here; save x.astype('float32') or an integer "
               "type";
    }
}

static const char *judge_shape(dafl_npy *npy, const header *h)
{
    if (h->fortran)
        return "is in Fortran order; save numpy.ascontiguousarray(x) instead";
    if (h->n_dims == 0)
        return "is a single number; save an array of one or two dimensions "
               "instead";
    if (h->n_dims > 2)
        return "has more than two dimensions; save x.reshape(len(x), -1) "
               "instead";
    npy->n_dims = (unsigned)h->n_dims;
    npy->rows = h->dims[0];
    npy->cols = h->n_dims == 2 ? h->dims[1] : 1;
    if (npy->cols == 0)
        return "has no columns";
    return shape_fits(npy->rows, npy->cols)
               ? NULL
               : "has a shape too large for this machine";
}

/* Find the header from what stands before it. */
static const char *find_header(cursor *out, dafl_bytes file)
{
    const uint8_t *p = file.ptr;
    size_t at = 0, len = 0;

    if (file.len >= 4 && memcmp(p, "PK\x03\x04", 4) == 0)
        return "is a .npz or zip archive; save the array with numpy.save "
               "instead";
    if (file.len < MAGIC_LEN + 2 || memcmp(p, MAGIC, MAGIC_LEN) != 0)
        return "is not a .npy file";
    if (p[6] < 1 || p[6] > 3 || p[7] != 0)
        return "is of a .npy version other than 1.0, 2.0 and 3.0";
    at = p[6] == 1 ? 10 : 12; /* the length has 2 bytes, later 4 */
    for (size_t i = at; i > MAGIC_LEN + 2 && file.len >= at; i--)
        len = len << 8 | p[i - 1];
    if (file.len < at || file.len - at < len)
        return "is cut short within its header";
    *out = (cursor){p + at, p + at + len};
    return NULL;
}

dafl_err dafl_npy_parse(dafl_npy *out, dafl_bytes file, const char *name,
                        dafl_why *why)
{
    dafl_npy npy = {.cols = 1};
    header h = {.n_dims = 0};
    cursor c = {NULL, NULL};
    size_t want = 0, have = 0;
    const char *problem = find_header(&c, file);

    npy.data = c.end;
    if (problem == NULL)
        problem = parse_header(&h, &c);
    if (problem == NULL)
        problem = judge_shape(&npy, &h);
    if (problem != NULL)
        return dafl_fail(why, DAFL_ERR_INPUT, "%s: %s", name, problem);
    problem = judge_descr(&npy.type, h.descr);
    if (problem != NULL)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "%s: has dtype '%.*s', %s instead", name,
                         h.descr.len < 20 ? (int)h.descr.len : 20,
                         (const char *)h.descr.ptr, problem);
    want = npy.rows * npy.cols * types[npy.type].size;
    have = file.len - (size_t)(npy.data - file.ptr);
    if (have != want)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "%s: is %s: %zu x %zu elements of %s take %zu bytes, "
                         "but %zu follow the header",
                         name, have < want ? "cut short" : "too long", npy.rows,
                         npy.cols, types[npy.type].name, want, have);
    *out = npy;
    return DAFL_OK;
}

dafl_err dafl_npy_open(dafl_npy *out, const char *path, dafl_why *why)
{
    dafl_map map;
    dafl_npy npy;
    dafl_err err = DAFL_OK;

    DAFL_TRY(dafl_map_open(&map, path, why));
    err = dafl_npy_parse(&npy, map.bytes, path, why);
    if (err != DAFL_OK) {
        dafl_map_close(&map);
        return err;
    }
    npy.map = map;
    *out = npy;
    return DAFL_OK;
}

void dafl_npy_close(dafl_npy *npy)
{
    if (npy == NULL)
        return;
    dafl_map_close(&npy->map);
    *npy = (dafl_npy){.cols = 0};
}

/* Exact: every float16 is a double. NaNs keep their payload and become quiet,
 * as the F16C instruction makes them. */
static double from_f16(uint16_t half)
{
    uint64_t sign = (uint64_t)(half >> 15) << 63;
    uint64_t exponent = half >> 10 & 31, fraction = half & 1023;
    uint64_t bits = sign;
    double value = 0;

    if (exponent == 31) {
        bits |= UINT64_C(0x7ff) << 52 | fraction << 42;
        bits |= fraction != 0 ? UINT64_C(1) << 51 : 0;
    } else if (exponent > 0) {
        bits |= (exponent + 1023 - 15) << 52 | fraction << 42;
    } else { /* zero or subnormal */
        value = (double)fraction * 0x1p-24;
        return sign != 0 ? -value : value;
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void widen_f16(double *out, const uint8_t *src, size_t n)
{
    size_t i = 0;

#ifdef __F16C__
    for (; i + 8 <= n; i += 8) {
        __m256 x = _mm256_cvtph_ps(
            _mm_loadu_si128((const __m128i *)(const void *)(src + 2 * i)));

        _mm256_storeu_pd(out + i, _mm256_cvtps_pd(_mm256_castps256_ps128(x)));
        _mm256_storeu_pd(out + i + 4,
                         _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)));
    }
#endif
    for (; i < n; i++) {
        uint16_t half = 0;

        memcpy(&half, src + 2 * i, sizeof half);
        out[i] = from_f16(half);
    }
}

#define WIDEN(ctype)                              \
    for (size_t i = 0; i < n; i++) {              \
        ctype v;                                  \
        memcpy(&v, src + i * sizeof v, sizeof v); \
        out[i] = (double)v;                       \
    }                                             \
    break

static void widen(double *out, dafl_npy_type type, const uint8_t *src, size_t n)
{
    switch (type) {
    case DAFL_NPY_F16:
        widen_f16(out, src, n);
        break;
    case DAFL_NPY_F32:
        WIDEN(float);
    case DAFL_NPY_F64:
        WIDEN(double);
    case DAFL_NPY_U8:
        WIDEN(uint8_t);
    case DAFL_NPY_U16:
        WIDEN(uint16_t);
    case DAFL_NPY_U32:
        WIDEN(uint32_t);
    case DAFL_NPY_U64:
        WIDEN(uint64_t);
    case DAFL_NPY_I8:
        WIDEN(int8_t);
    case DAFL_NPY_I16:
        WIDEN(int16_t);
    case DAFL_NPY_I32:
        WIDEN(int32_t);
    case DAFL_NPY_I64:
        WIDEN(int64_t);
    }
}

void dafl_npy_get_rows(const dafl_npy *npy, double *out, const uint32_t *index,
                       size_t first, size_t n)
{
    size_t cols = npy->cols, row_len = cols * types[npy->type].size;

    if (index == NULL) { /* rows in sequence are one run of elements */
        assert(first <= npy->rows && n <= npy->rows - first);
        widen(out, npy->type, npy->data + first * row_len, n * cols);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        assert(index[i] < npy->rows);
        widen(out + i * cols, npy->type, npy->data + index[i] * row_len, cols);
    }
}

dafl_err dafl_npy_get_int(const dafl_npy *npy, int64_t *out, size_t i)
{
    size_t size = types[npy->type].size;
    uint64_t sign = UINT64_C(1) << (8 * size - 1), v = 0;

    assert(i < npy->rows * npy->cols);
    if (types[npy->type].kind == 'f')
        return DAFL_ERR_INPUT;
    memcpy(&v, npy->data + i * size, size); /* the low bytes come first */
    if (types[npy->type].kind == 'u') {
        if (v > INT64_MAX)
            return DAFL_ERR_INPUT;
        *out = (int64_t)v;
        return DAFL_OK;
    }
    /* Sign extension in unsigned arithmetic, which C defines for all values:
     * flip the sign bit, then subtract it. */
    v = (v ^ sign) - sign;
    memcpy(out, &v, sizeof v);
    return DAFL_OK;
}

dafl_err dafl_npy_write(const char *path, dafl_npy_type type, unsigned n_dims,
                        size_t rows, size_t cols, const void *data,
                        dafl_why *why)
{
    /* 10 bytes, 51 of dictionary, two numbers of at most 20 digits, and the
     * padding to a multiple of 64, where NumPy likes the data to start. */
    char head[192] = MAGIC "\x01";
    char shape[48];
    dafl_bytes parts[2];
    size_t len = 10, padded = 0;

    if ((size_t)type >= N_TYPES || n_dims < 1 || n_dims > 2 || cols == 0 ||
        (n_dims == 1 && cols != 1) || !shape_fits(rows, cols))
        return dafl_fail(why, DAFL_ERR_ARG, "%s: no .npy array has this shape",
                         path);
    if (n_dims == 1)
        (void)snprintf(shape, sizeof shape, "(%zu,)", rows);
    else
        (void)snprintf(shape, sizeof shape, "(%zu, %zu)", rows, cols);
    len += (size_t)snprintf(head + len, sizeof head - len,
                            "{'descr': '%c%c%u', 'fortran_order': False, "
                            "'shape': %s, }",
                            types[type].size == 1 ? '|' : '<', types[type].kind,
                            types[type].size, shape);
    padded = (len + 1 + 63) / 64 * 64;
    assert(padded <= sizeof head);
    memset(head + len, ' ', padded - len);
    head[padded - 1] = '\n';
    head[8] = (char)(padded - 10); /* below 256: the other byte stays 0 */
    parts[0] = (dafl_bytes){(const uint8_t *)head, padded};
    parts[1] = (dafl_bytes){data, rows * cols * types[type].size};
    return dafl_file_replace(path, parts, 2, why);
}
