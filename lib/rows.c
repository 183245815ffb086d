/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/rows.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "lib/secret.h"

dafl_err dafl_rows_init(dafl_rows *rows, const dafl_contract *c, size_t n,
                        size_t cols)
{
    /* |k| <= q 2^s fits 15 bits and a sign, or a float's 24, or neither. */
    uint64_t largest = (uint64_t)c->q << c->s;
    dafl_rows r = {.n = n, .cols = cols, .kind = DAFL_ROWS_F64};
    size_t size = sizeof(double);

    if (c->exact && largest <= INT16_MAX) {
        r.kind = DAFL_ROWS_I16;
        r.unit = ldexp(1.0, -(int)c->s);
        size = sizeof(int16_t);
    } else if (c->exact && largest <= (uint64_t)1 << 24) {
        r.kind = DAFL_ROWS_F32;
        size = sizeof(float);
    }
    if (cols == 0 || n <= SIZE_MAX / cols)
        r.data = dafl_bulk_alloc(n * cols, size);
    if (r.data == NULL)
        return DAFL_ERR_NOMEM;
    *rows = r;
    return DAFL_OK;
}

void dafl_rows_drop(dafl_rows *rows)
{
    dafl_bulk_free(rows->data);
    *rows = (dafl_rows){0};
}

void dafl_rows_load(const dafl_rows *rows, double *out, size_t first, size_t n,
                    size_t padded)
{
    size_t at = first * rows->cols, len = n * rows->cols;
    double unit = rows->unit;

    if (rows->kind == DAFL_ROWS_I16) {
        const int16_t *in = (const int16_t *)rows->data + at;
        for (size_t i = 0; i < len; i++)
            out[i] = (double)in[i] * unit;
    } else if (rows->kind == DAFL_ROWS_F32) {
        const float *in = (const float *)rows->data + at;
        for (size_t i = 0; i < len; i++)
            out[i] = (double)in[i];
    } else {
        memcpy(out, (const double *)rows->data + at, len * sizeof *out);
    }
    memset(out + len, 0, (padded - n) * rows->cols * sizeof *out);
}

void dafl_rows_store(dafl_rows *rows, const double *row, size_t at)
{
    size_t cols = rows->cols;

    if (rows->kind == DAFL_ROWS_I16) {
        int16_t *out = (int16_t *)rows->data + at * cols;
        double scale = 1.0 / rows->unit;
        for (size_t i = 0; i < cols; i++)
            out[i] = (int16_t)(int32_t)(row[i] * scale);
    } else if (rows->kind == DAFL_ROWS_F32) {
        float *out = (float *)rows->data + at * cols;
        for (size_t i = 0; i < cols; i++)
            out[i] = (float)row[i];
    } else {
        memcpy((double *)rows->data + at * cols, row, cols * sizeof *row);
    }
}
