/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/rows.h"

#include <string.h>

#include "lib/secret.h"

dafl_err dafl_rows_init(dafl_rows *rows, const dafl_contract *c, size_t n,
                        size_t cols)
{
    /* A float has 24 bits: |k| <= q 2^s <= 2^24 is exact. */
    bool narrow = c->exact && (uint64_t)c->q << c->s <= (uint64_t)1 << 24;
    size_t size = narrow ? sizeof(float) : sizeof(double);
    void *data = NULL;

    if (cols == 0 || n <= (size_t)-1 / cols)
        data = dafl_bulk_alloc(n * cols, size);
    if (data == NULL)
        return DAFL_ERR_NOMEM;
    *rows = (dafl_rows){n, cols, narrow, data};
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

    if (rows->narrow) {
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
    if (rows->narrow) {
        float *out = (float *)rows->data + at * rows->cols;
        for (size_t i = 0; i < rows->cols; i++)
            out[i] = (float)row[i];
    } else {
        memcpy((double *)rows->data + at * rows->cols, row,
               rows->cols * sizeof *row);
    }
}
