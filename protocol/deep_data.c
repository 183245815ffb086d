/* SPDX-License-Identifier: Apache-2.0 */
/* What DeepAFL's parties ask of data: digests that tell whether rows are the
 * same as before, and counts that are too small to be summed. */
#include <stdlib.h>
#include <string.h>

#include "lib/secret.h"
#include "protocol/deep.h"

static int compare_digests(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(dafl_digest));
}

/* One row: its features as doubles, its label. */
static void digest_row(dafl_digest *out, const dafl_data *data, uint32_t row,
                       double *x)
{
    dafl_hash h;

    dafl_npy_get_rows(&data->x, x, &row, 0, 1);
    dafl_hash_init(&h, "deepafl/row");
    dafl_hash_part(&h, x, data->x.cols * sizeof *x);
    dafl_hash_u32(&h, data->y == NULL ? UINT32_MAX : data->y[row]);
    dafl_hash_end(&h, out);
}

dafl_err dafl_deep_digest(dafl_digest *out, const dafl_data *data,
                          const uint32_t *index, size_t n)
{
    dafl_digest *rows = dafl_bulk_alloc(n, sizeof *rows);
    double *x = dafl_bulk_alloc(data->x.cols, sizeof *x);
    dafl_err err = DAFL_ERR_NOMEM;

    if (rows == NULL || x == NULL)
        goto out;
    for (size_t i = 0; i < n; i++)
        digest_row(&rows[i], data, index == NULL ? (uint32_t)i : index[i], x);
    qsort(rows, n, sizeof *rows, compare_digests);
    dafl_hash_one(out, "deepafl/rows",
                  (dafl_bytes){(const uint8_t *)rows, n * sizeof *rows});
    err = DAFL_OK;
out:
    dafl_bulk_free(x);
    dafl_bulk_free(rows);
    return err;
}

void dafl_deep_basis(dafl_digest *out, const dafl_params *p)
{
    bool raw = p->method == DAFL_METHOD_AFL;

    dafl_hash_one(out, raw ? "deepafl/raw" : "deepafl/basis",
                  (dafl_bytes){p->seed.b, raw ? 0 : sizeof p->seed.b});
}

dafl_fault dafl_deep_census(const dafl_params *p, uint64_t rows,
                            const uint64_t *classes, dafl_why *why)
{
    if (rows < 2 * p->width)
        return dafl_fail(why, DAFL_E_CENSUS,
                         "%llu rows: a width of %zu needs at least %zu",
                         (unsigned long long)rows, p->width, 2 * p->width);
    for (size_t i = 0; i < p->classes; i++)
        if (classes[i] > 0 && classes[i] < DAFL_DEEP_CLASS_ROWS)
            return dafl_fail(why, DAFL_E_CENSUS,
                             "class %zu has %llu rows: fewer than %u show "
                             "themselves in the sums",
                             i, (unsigned long long)classes[i],
                             DAFL_DEEP_CLASS_ROWS);
    return DAFL_FAULT_NONE;
}
