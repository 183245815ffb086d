/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors files holding float64 matrices and a map of strings: eight bytes
 * of header length, a JSON header, the tensors' bytes one after another.
 * What we write is canonical (keys sorted, no white space but the padding of
 * the header to 8 bytes), so equal contents give equal files. */
#ifndef DAFL_LIB_SAFETENSORS_H
#define DAFL_LIB_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/bytes.h"
#include "lib/err.h"

#define DAFL_ST_HEADER_MAX ((size_t)4 << 20)
#define DAFL_ST_TENSORS_MAX ((size_t)4096)

typedef struct {
    const char *name;
    unsigned n_dims;   /* 1 or 2 */
    size_t rows, cols; /* cols = 1 for one dimension */
    const double *data;
} dafl_st_tensor;

typedef struct {
    const char *key, *value;
} dafl_st_meta;

/* Write atomically. Tensors are laid out in the order given; names and keys
 * must be distinct, non-empty and UTF-8. */
DAFL_CHECK dafl_err dafl_st_write(const char *path,
                                  const dafl_st_tensor *tensors, size_t n,
                                  const dafl_st_meta *meta, size_t n_meta,
                                  dafl_why *why);

typedef struct dafl_st dafl_st;

/* Parse bytes; tensors and strings are copied, so `file` may go away. Refused,
 * each with its reason: lengths that do not match, offsets with gaps or
 * overlaps, a dtype other than F64, more than two dimensions, duplicate names,
 * metadata that is not a string, anything beyond the caps above. */
DAFL_CHECK dafl_err dafl_st_parse(dafl_st **out, dafl_bytes file,
                                  const char *name, dafl_why *why);
DAFL_CHECK dafl_err dafl_st_read(dafl_st **out, const char *path,
                                 dafl_why *why);
void dafl_st_free(dafl_st **st);

/* NULL when there is none. */
const char *dafl_st_get_meta(const dafl_st *st, const char *key);
const dafl_st_tensor *dafl_st_find(const dafl_st *st, const char *name);

/* In the file's order of data. */
size_t dafl_st_count(const dafl_st *st);
const dafl_st_tensor *dafl_st_at(const dafl_st *st, size_t i);
size_t dafl_st_meta_count(const dafl_st *st);
dafl_st_meta dafl_st_meta_at(const dafl_st *st, size_t i);

#endif
