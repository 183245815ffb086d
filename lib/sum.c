/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/sum.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "lib/secret.h"

void dafl_layout_add(dafl_layout *layout, const char *name, size_t rows,
                     size_t cols, bool upper, unsigned frac)
{
    size_t len = upper ? rows * (rows + 1) / 2 : rows * cols;

    assert(layout->n < DAFL_PARTS_MAX && (!upper || rows == cols));
    layout->parts[layout->n++] =
        (dafl_part){name, rows, cols, upper, frac, layout->len, len};
    layout->len += len;
}

dafl_err dafl_sum_init(dafl_sum *sum, size_t len, bool exact)
{
    dafl_sum s = {.len = len};

    if (exact)
        s.i = dafl_bulk_alloc(len, sizeof *s.i);
    else
        s.f = dafl_bulk_alloc(len, sizeof *s.f);
    if (s.i == NULL && s.f == NULL)
        return DAFL_ERR_NOMEM;
    dafl_sum_clear(&s);
    *sum = s;
    return DAFL_OK;
}

void dafl_sum_drop(dafl_sum *sum)
{
    dafl_bulk_free(sum->i);
    dafl_bulk_free(sum->f);
    *sum = (dafl_sum){0};
}

void dafl_sum_clear(dafl_sum *sum)
{
    if (sum->i != NULL)
        memset(sum->i, 0, sum->len * sizeof *sum->i);
    else
        memset(sum->f, 0, sum->len * sizeof *sum->f);
}

/* Two's complement addition without the undefined overflow of int64_t. */
static int64_t wrapping_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

void dafl_sum_add(dafl_sum *a, const dafl_sum *b)
{
    assert(a->len == b->len && (a->i == NULL) == (b->i == NULL));
    if (a->i != NULL)
        for (size_t k = 0; k < a->len; k++)
            a->i[k] = wrapping_add(a->i[k], b->i[k]);
    else
        for (size_t k = 0; k < a->len; k++)
            a->f[k] += b->f[k];
}

void dafl_sum_put(dafl_sum *sum, const dafl_part *part, const double *matrix)
{
    double unit = ldexp(1.0, (int)part->frac);
    size_t at = part->offset;

    for (size_t r = 0; r < part->rows; r++) {
        const double *row = matrix + r * part->cols;
        size_t first = part->upper ? r : 0, n = part->cols - first;
        if (sum->i != NULL)
            for (size_t c = 0; c < n; c++)
                sum->i[at + c] = wrapping_add(sum->i[at + c],
                                              (int64_t)(row[first + c] * unit));
        else
            for (size_t c = 0; c < n; c++)
                sum->f[at + c] += row[first + c];
        at += n;
    }
}

void dafl_sum_get(const dafl_sum *sum, const dafl_part *part, double *matrix)
{
    double unit = ldexp(1.0, -(int)part->frac);
    size_t at = part->offset;

    for (size_t r = 0; r < part->rows; r++) {
        for (size_t c = part->upper ? r : 0; c < part->cols; c++, at++) {
            double v = sum->i != NULL ? (double)sum->i[at] * unit : sum->f[at];
            matrix[r * part->cols + c] = v;
            if (part->upper)
                matrix[c * part->cols + r] = v;
        }
    }
}
