/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy .npy arrays of one or two dimensions, versions 1 to 3, C order, little
 * endian. Everything else is refused with a sentence that says what was found
 * and how to save the array instead. */
#ifndef DAFL_LIB_NPY_H
#define DAFL_LIB_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "lib/bytes.h"
#include "lib/err.h"
#include "lib/file.h"

typedef enum {
    DAFL_NPY_F16,
    DAFL_NPY_F32,
    DAFL_NPY_F64,
    DAFL_NPY_U8,
    DAFL_NPY_U16,
    DAFL_NPY_U32,
    DAFL_NPY_U64,
    DAFL_NPY_I8,
    DAFL_NPY_I16,
    DAFL_NPY_I32,
    DAFL_NPY_I64,
} dafl_npy_type;

typedef struct {
    dafl_npy_type type;
    unsigned n_dims;     /* 1 or 2 */
    size_t rows, cols;   /* cols = 1 for a one-dimensional array */
    const uint8_t *data; /* rows * cols elements, maybe not aligned */
    dafl_map map;        /* empty when parsed from memory */
} dafl_npy;

/* Read an array out of bytes; `name` stands for the file in messages. The
 * array borrows `file`. */
DAFL_CHECK dafl_err dafl_npy_parse(dafl_npy *out, dafl_bytes file,
                                   const char *name, dafl_why *why);

/* Map a file and parse it; dafl_npy_close unmaps it. */
DAFL_CHECK dafl_err dafl_npy_open(dafl_npy *out, const char *path,
                                  dafl_why *why);
void dafl_npy_close(dafl_npy *npy);

/* Bytes of one element, and the type's NumPy name ("float16"). */
size_t dafl_npy_type_size(dafl_npy_type type);
const char *dafl_npy_type_name(dafl_npy_type type);

/* Convert the rows index[0..n) (or first .. first+n when index is NULL) to
 * double, row after row, `cols` values each. 64-bit integers beyond 2^53 are
 * rounded. Every index must be below npy->rows. */
void dafl_npy_get_rows(const dafl_npy *npy, double *out, const uint32_t *index,
                       size_t first, size_t n);

/* Read element i of an integer array exactly; DAFL_ERR_INPUT for a float
 * array or a u64 above INT64_MAX. */
DAFL_CHECK dafl_err dafl_npy_get_int(const dafl_npy *npy, int64_t *out,
                                     size_t i);

/* Write an array (version 1) atomically. `data` has rows * cols elements of
 * `type`; n_dims = 1 needs cols = 1. */
DAFL_CHECK dafl_err dafl_npy_write(const char *path, dafl_npy_type type,
                                   unsigned n_dims, size_t rows, size_t cols,
                                   const void *data, dafl_why *why);

#endif
