/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/safetensors.h"

#include <assert.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/file.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tensors are copied as they are: this file needs a little-endian machine"
#endif

#define META "__metadata__"
#define LEN_BYTES 8

struct dafl_st {
    json_t *header; /* owns every name, key and value */
    double *data;
    dafl_st_tensor *tensors;
    size_t n;
    dafl_st_meta *meta;
    size_t n_meta;
};

/* Bytes of a rows * cols matrix; false when they cannot be addressed, or one
 * row cannot in a matrix without rows. */
static bool matrix_len(size_t *out, size_t rows, size_t cols)
{
    const size_t max = PTRDIFF_MAX / sizeof(double);

    if (rows > max || cols > max || (cols > 0 && rows > max / cols))
        return false;
    *out = rows * cols * sizeof(double);
    return true;
}

static dafl_err fail_nomem(dafl_why *why, const char *name)
{
    return dafl_fail(why, DAFL_ERR_NOMEM, "%s: out of memory", name);
}

/* Writing */

/* Add the one member of `entry` to `object`, which must not have it yet.
 * `entry` comes from json_pack_ex with `error` and is taken in every case. */
static dafl_err add_entry(json_t *object, json_t *entry,
                          const json_error_t *error, const char *name,
                          const char *path, dafl_why *why)
{
    dafl_err err = DAFL_ERR_ARG;

    if (entry == NULL && json_error_code(error) == json_error_invalid_utf8)
        return dafl_fail(why, err, "%s: a name or value is not UTF-8", path);
    if (name[0] == '\0')
        err = dafl_fail(why, err, "%s: a name is empty", path);
    else if (json_object_get(object, name) != NULL)
        err =
            dafl_fail(why, err, "%s: the name '%s' is used twice", path, name);
    else if (entry == NULL || json_object_update(object, entry) != 0)
        err = fail_nomem(why, path);
    else
        err = DAFL_OK;
    json_decref(entry);
    return err;
}

static dafl_err add_tensor(json_t *header, size_t *end, const dafl_st_tensor *t,
                           const char *path, dafl_why *why)
{
    json_error_t error;
    json_t *entry = NULL;
    size_t begin = *end, len = 0;

    if (t->n_dims < 1 || t->n_dims > 2 || (t->n_dims == 1 && t->cols != 1) ||
        !matrix_len(&len, t->rows, t->cols) || len > PTRDIFF_MAX - *end)
        return dafl_fail(why, DAFL_ERR_ARG,
                         "%s: no tensor has the shape of "
                         "'%s'",
                         path, t->name);
    if (strcmp(t->name, META) == 0)
        return dafl_fail(why, DAFL_ERR_ARG, "%s: no tensor has the name '%s'",
                         path, META);
    *end = begin + len;
    entry = json_pack_ex(&error, 0, "{s:{s:[I,I],s:s,s:[I]}}", t->name,
                         "data_offsets", (json_int_t)begin, (json_int_t)*end,
                         "dtype", "F64", "shape", (json_int_t)t->rows);
    if (entry != NULL && t->n_dims == 2) {
        json_t *shape =
            json_object_get(json_object_get(entry, t->name), "shape");

        if (json_array_append_new(shape, json_integer((json_int_t)t->cols))) {
            json_decref(entry);
            return fail_nomem(why, path);
        }
    }
    return add_entry(header, entry, &error, t->name, path, why);
}

/* The file up to the data; the caller frees out->ptr. */
static dafl_err dump_header(dafl_bytes *out, const json_t *header,
                            const char *path, dafl_why *why)
{
    const size_t flags = JSON_COMPACT | JSON_SORT_KEYS;
    size_t len = json_dumpb(header, NULL, 0, flags);
    size_t padded = (len + 7) / 8 * 8;
    uint8_t *head = NULL;

    if (padded > DAFL_ST_HEADER_MAX)
        return dafl_fail(why, DAFL_ERR_ARG,
                         "%s: the names and metadata take "
                         "%zu bytes, at most %zu are read back",
                         path, padded, DAFL_ST_HEADER_MAX);
    head = malloc(LEN_BYTES + padded);
    if (head == NULL || len == 0 ||
        json_dumpb(header, (char *)head + LEN_BYTES, len, flags) != len) {
        free(head);
        return fail_nomem(why, path);
    }
    for (unsigned i = 0; i < LEN_BYTES; i++)
        head[i] = (uint8_t)((uint64_t)padded >> 8 * i);
    memset(head + LEN_BYTES + len, ' ', padded - len);
    *out = (dafl_bytes){head, LEN_BYTES + padded};
    return DAFL_OK;
}

dafl_err dafl_st_write(const char *path, const dafl_st_tensor *tensors,
                       size_t n, const dafl_st_meta *meta, size_t n_meta,
                       dafl_why *why)
{
    dafl_err err = DAFL_ERR_NOMEM;
    json_t *header = json_object(), *strings = json_object();
    dafl_bytes *parts = NULL, head = {NULL, 0};
    json_error_t error;
    size_t end = 0;

    if (n > DAFL_ST_TENSORS_MAX) {
        err = dafl_fail(why, DAFL_ERR_ARG,
                        "%s: has %zu tensors, at most %zu "
                        "are read back",
                        path, n, DAFL_ST_TENSORS_MAX);
        goto out;
    }
    parts = calloc(n + 1, sizeof *parts);
    if (header == NULL || strings == NULL || parts == NULL) {
        err = fail_nomem(why, path);
        goto out;
    }
    for (size_t i = 0; i < n_meta; i++) {
        json_t *entry =
            json_pack_ex(&error, 0, "{s:s}", meta[i].key, meta[i].value);

        err = add_entry(strings, entry, &error, meta[i].key, path, why);
        if (err != DAFL_OK)
            goto out;
    }
    if (n_meta > 0 && json_object_set(header, META, strings) != 0) {
        err = fail_nomem(why, path);
        goto out;
    }
    for (size_t i = 0; i < n; i++) {
        size_t begin = end;

        err = add_tensor(header, &end, &tensors[i], path, why);
        if (err != DAFL_OK)
            goto out;
        parts[i + 1] =
            (dafl_bytes){(const uint8_t *)tensors[i].data, end - begin};
    }
    err = dump_header(&head, header, path, why);
    if (err != DAFL_OK)
        goto out;
    parts[0] = head;
    err = dafl_file_replace(path, parts, n + 1, why);
out:
    free((void *)(uintptr_t)head.ptr);
    free(parts);
    json_decref(strings);
    json_decref(header);
    return err;
}

/* Reading */

typedef struct {
    const char *key; /* the tensor's */
    size_t begin, end;
    dafl_st_tensor tensor; /* data is set once the layout has been checked */
} entry;

/* A JSON whole number that is not negative. */
static bool get_size(size_t *out, const json_t *value)
{
    json_int_t v = json_integer_value(value);

    if (!json_is_integer(value) || v < 0 || (uint64_t)v > SIZE_MAX)
        return false;
    *out = (size_t)v;
    return true;
}

/* What is wrong with a tensor's description, as the end of a sentence; NULL
 * when nothing is. */
static const char *parse_entry(entry *out, const char *key, const json_t *value)
{
    const json_t *dtype = json_object_get(value, "dtype");
    const json_t *shape = json_object_get(value, "shape");
    const json_t *offsets = json_object_get(value, "data_offsets");
    entry e = {.key = key, .tensor = {.name = key, .cols = 1}};
    size_t len = 0;

    if (!json_is_string(dtype) || !json_is_array(shape) ||
        !json_is_array(offsets) || json_object_size(value) != 3)
        return "is not described by dtype, shape and data_offsets alone";
    if (strcmp(json_string_value(dtype), "F64") != 0)
        return "has a dtype other than F64";
    e.tensor.n_dims = (unsigned)json_array_size(shape);
    if (json_array_size(shape) < 1 || json_array_size(shape) > 2)
        return "has neither one nor two dimensions";
    if (!get_size(&e.tensor.rows, json_array_get(shape, 0)) ||
        (e.tensor.n_dims == 2 &&
         !get_size(&e.tensor.cols, json_array_get(shape, 1))))
        return "has a dimension that is not a whole number";
    if (json_array_size(offsets) != 2 ||
        !get_size(&e.begin, json_array_get(offsets, 0)) ||
        !get_size(&e.end, json_array_get(offsets, 1)) || e.begin > e.end)
        return "has data_offsets that are not a range";
    if (!matrix_len(&len, e.tensor.rows, e.tensor.cols))
        return "is too large for this machine";
    if (len != e.end - e.begin)
        return "has data_offsets that do not match its shape";
    *out = e;
    return NULL;
}

/* By place, then by length so that empty tensors come before the one that
 * starts there, then by name so that the header's order does not matter. */
static int compare_entries(const void *lhs, const void *rhs)
{
    const entry *a = lhs, *b = rhs;

    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end)
        return a->end < b->end ? -1 : 1;
    return strcmp(a->key, b->key);
}

/* Fill st->tensors from the header and check that they tile the data. */
static dafl_err parse_tensors(dafl_st *st, size_t data_len, const char *name,
                              dafl_why *why)
{
    dafl_err err = DAFL_ERR_INPUT;
    size_t n_keys = json_object_size(st->header), end = 0;
    entry *entries = NULL;
    const char *key = NULL;
    json_t *value = NULL;

    if (n_keys > DAFL_ST_TENSORS_MAX + 1)
        return dafl_fail(why, err, "%s: has %zu tensors, at most %zu are read",
                         name, n_keys, DAFL_ST_TENSORS_MAX);
    entries = calloc(n_keys + 1, sizeof *entries);
    st->tensors = calloc(n_keys + 1, sizeof *st->tensors);
    if (entries == NULL || st->tensors == NULL) {
        err = fail_nomem(why, name);
        goto out;
    }
    json_object_foreach(st->header, key, value)
    {
        const char *problem = NULL;

        if (strcmp(key, META) == 0)
            continue;
        problem = key[0] == '\0' ? "has no name"
                                 : parse_entry(&entries[st->n], key, value);
        if (problem != NULL) {
            err = dafl_fail(why, err, "%s: tensor '%.100s' %s", name, key,
                            problem);
            goto out;
        }
        st->n++;
    }
    if (st->n > DAFL_ST_TENSORS_MAX) {
        err = dafl_fail(why, err, "%s: has %zu tensors, at most %zu are read",
                        name, st->n, DAFL_ST_TENSORS_MAX);
        goto out;
    }
    qsort(entries, st->n, sizeof *entries, compare_entries);
    for (size_t i = 0; i < st->n; i++) {
        if (entries[i].begin != end) {
            err = dafl_fail(
                why, err, "%s: tensor '%.100s' %s", name, entries[i].key,
                entries[i].begin < end ? "overlaps the one before it"
                                       : "leaves a gap before it");
            goto out;
        }
        end = entries[i].end;
        st->tensors[i] = entries[i].tensor;
    }
    if (end != data_len) {
        err = dafl_fail(why, err,
                        "%s: is %s: its tensors take %zu bytes, but "
                        "%zu follow the header",
                        name, data_len < end ? "cut short" : "too long", end,
                        data_len);
        goto out;
    }
    err = DAFL_OK;
out:
    free(entries);
    return err;
}

static dafl_err parse_meta(dafl_st *st, const char *name, dafl_why *why)
{
    json_t *meta = json_object_get(st->header, META), *value = NULL;
    const char *key = NULL;

    if (meta == NULL)
        return DAFL_OK;
    if (!json_is_object(meta))
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "%s: the metadata is not a map "
                         "of strings",
                         name);
    st->meta = calloc(json_object_size(meta) + 1, sizeof *st->meta);
    if (st->meta == NULL)
        return fail_nomem(why, name);
    json_object_foreach(meta, key, value)
    {
        if (key[0] == '\0' || !json_is_string(value))
            return dafl_fail(
                why, DAFL_ERR_INPUT,
                "%s: the metadata '%.100s' "
                "%s",
                name, key, key[0] == '\0' ? "has no name" : "is not a string");
        st->meta[st->n_meta++] = (dafl_st_meta){key, json_string_value(value)};
    }
    return DAFL_OK;
}

/* The length of the JSON text after the first eight bytes. */
static dafl_err get_header_len(size_t *out, dafl_bytes file, const char *name,
                               dafl_why *why)
{
    uint64_t len = 0;

    if (file.len < LEN_BYTES)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "%s: is cut short within its "
                         "header",
                         name);
    for (unsigned i = LEN_BYTES; i-- > 0;)
        len = len << 8 | file.ptr[i];
    if (len > DAFL_ST_HEADER_MAX)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "%s: is not a safetensors file, "
                         "or has a header above %zu bytes",
                         name, DAFL_ST_HEADER_MAX);
    if (len > file.len - LEN_BYTES)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "%s: is cut short within its "
                         "header",
                         name);
    if (len == 0 || file.ptr[LEN_BYTES] != '{')
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "%s: is not a safetensors file: "
                         "its header is no JSON object",
                         name);
    *out = (size_t)len;
    return DAFL_OK;
}

dafl_err dafl_st_parse(dafl_st **out, dafl_bytes file, const char *name,
                       dafl_why *why)
{
    dafl_err err = DAFL_ERR_NOMEM;
    dafl_st *st = NULL;
    json_error_t error;
    size_t header_len = 0, data_len = 0, at = 0;

    DAFL_TRY(get_header_len(&header_len, file, name, why));
    data_len = file.len - LEN_BYTES - header_len;
    st = calloc(1, sizeof *st);
    if (st == NULL)
        goto nomem;
    st->header = json_loadb((const char *)file.ptr + LEN_BYTES, header_len,
                            JSON_REJECT_DUPLICATES, &error);
    if (st->header == NULL) {
        if (error.text[0] == '\0') /* jansson's parser, out of memory */
            goto nomem;
        err = dafl_fail(why, DAFL_ERR_INPUT,
                        "%s: its header is not valid "
                        "JSON: %s",
                        name, error.text);
        goto out;
    }
    err = parse_tensors(st, data_len, name, why);
    if (err != DAFL_OK)
        goto out;
    err = parse_meta(st, name, why);
    if (err != DAFL_OK)
        goto out;
    st->data = malloc(data_len > 0 ? data_len : 1);
    if (st->data == NULL)
        goto nomem;
    memcpy(st->data, file.ptr + LEN_BYTES + header_len, data_len);
    for (size_t i = 0; i < st->n; i++) {
        st->tensors[i].data = st->data + at;
        at += st->tensors[i].rows * st->tensors[i].cols;
    }
    *out = st;
    st = NULL;
    err = DAFL_OK;
    goto out;
nomem:
    err = fail_nomem(why, name);
out:
    dafl_st_free(&st);
    return err;
}

dafl_err dafl_st_read(dafl_st **out, const char *path, dafl_why *why)
{
    dafl_map map;
    dafl_err err = DAFL_OK;

    DAFL_TRY(dafl_map_open(&map, path, why));
    err = dafl_st_parse(out, map.bytes, path, why);
    dafl_map_close(&map);
    return err;
}

void dafl_st_free(dafl_st **st)
{
    if (st == NULL || *st == NULL)
        return;
    free((*st)->data);
    free((*st)->tensors);
    free((*st)->meta);
    json_decref((*st)->header);
    free(*st);
    *st = NULL;
}

const char *dafl_st_get_meta(const dafl_st *st, const char *key)
{
    return json_string_value(
        json_object_get(json_object_get(st->header, META), key));
}

const dafl_st_tensor *dafl_st_find(const dafl_st *st, const char *name)
{
    for (size_t i = 0; i < st->n; i++)
        if (strcmp(st->tensors[i].name, name) == 0)
            return &st->tensors[i];
    return NULL;
}

size_t dafl_st_count(const dafl_st *st)
{
    return st->n;
}

const dafl_st_tensor *dafl_st_at(const dafl_st *st, size_t i)
{
    assert(i < st->n);
    return &st->tensors[i];
}

size_t dafl_st_meta_count(const dafl_st *st)
{
    return st->n_meta;
}

dafl_st_meta dafl_st_meta_at(const dafl_st *st, size_t i)
{
    assert(i < st->n_meta);
    return st->meta[i];
}
