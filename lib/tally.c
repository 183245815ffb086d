/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/tally.h"

#include <stdlib.h>
#include <string.h>

#include "lib/blas.h"

static size_t partial_len(const dafl_part *part)
{
    return part->rows * part->cols;
}

size_t dafl_tally_scratch(const dafl_layout *layout)
{
    size_t n = 0;

    for (unsigned i = 0; i < layout->n; i++)
        n += partial_len(&layout->parts[i]);
    return n;
}

dafl_err dafl_tally_init(dafl_tally *t, const dafl_contract *c,
                         const dafl_layout *layout, dafl_sum *sum,
                         unsigned n_workers)
{
    size_t n = (size_t)n_workers * DAFL_PARTS_MAX;
    double **partial = calloc(n, sizeof *partial);
    uint64_t *rows = calloc(n, sizeof *rows);

    if (partial == NULL || rows == NULL) {
        free(partial);
        free(rows);
        return DAFL_ERR_NOMEM;
    }
    *t = (dafl_tally){.layout = layout,
                      .sum = sum,
                      .exact_rows = dafl_contract_exact_rows(c),
                      .partial = partial,
                      .rows = rows,
                      .n_workers = n_workers};
    pthread_mutex_init(&t->lock, NULL);
    return DAFL_OK;
}

void dafl_tally_bind(dafl_tally *t, unsigned worker, double *scratch)
{
    for (unsigned i = 0; i < t->layout->n; i++) {
        t->partial[worker * DAFL_PARTS_MAX + i] = scratch;
        scratch += partial_len(&t->layout->parts[i]);
    }
}

static void empty(dafl_tally *t, unsigned worker, unsigned part)
{
    unsigned at = worker * DAFL_PARTS_MAX + part;

    if (t->rows[at] == 0)
        return;
    pthread_mutex_lock(&t->lock);
    dafl_sum_put(t->sum, &t->layout->parts[part], t->partial[at]);
    pthread_mutex_unlock(&t->lock);
    t->rows[at] = 0;
}

/* Make room for some of n more rows. Returns how many fit; *beta is 0 for a
 * partial that holds nothing yet (whatever its memory holds), else 1. */
static size_t claim(dafl_tally *t, unsigned worker, unsigned part, size_t n,
                    double *beta)
{
    uint64_t *rows = &t->rows[worker * DAFL_PARTS_MAX + part];

    if (*rows == t->exact_rows)
        empty(t, worker, part);
    if (n > t->exact_rows - *rows)
        n = (size_t)(t->exact_rows - *rows);
    *beta = *rows == 0 ? 0.0 : 1.0;
    *rows += n;
    return n;
}

void dafl_tally_square(dafl_tally *t, unsigned worker, unsigned part,
                       const double *a, size_t n)
{
    size_t cols = t->layout->parts[part].cols;
    double *out = t->partial[worker * DAFL_PARTS_MAX + part], beta;

    while (n > 0) {
        size_t m = claim(t, worker, part, n, &beta);
        dafl_syrk(out, a, cols, m, beta);
        a += m * cols;
        n -= m;
    }
}

void dafl_tally_product(dafl_tally *t, unsigned worker, unsigned part,
                        const double *a, const double *b, size_t n)
{
    size_t rows = t->layout->parts[part].rows;
    size_t cols = t->layout->parts[part].cols;
    double *out = t->partial[worker * DAFL_PARTS_MAX + part], beta;

    while (n > 0) {
        size_t m = claim(t, worker, part, n, &beta);
        dafl_gemm_tn(out, a, b, rows, cols, m, beta);
        a += m * rows;
        b += m * cols;
        n -= m;
    }
}

void dafl_tally_by_label(dafl_tally *t, unsigned worker, unsigned part,
                         const double *a, const uint32_t *labels, size_t n)
{
    const dafl_part *p = &t->layout->parts[part];
    double *out = t->partial[worker * DAFL_PARTS_MAX + part], beta;

    while (n > 0) {
        size_t m = claim(t, worker, part, n, &beta);
        if (beta == 0.0)
            memset(out, 0, partial_len(p) * sizeof *out);
        for (size_t i = 0; i < m; i++) {
            double *row = out + labels[i] * p->cols;
            for (size_t c = 0; c < p->cols; c++)
                row[c] += a[i * p->cols + c];
        }
        a += m * p->cols;
        labels += m;
        n -= m;
    }
}

void dafl_tally_finish(dafl_tally *t)
{
    for (unsigned w = 0; w < t->n_workers; w++)
        for (unsigned i = 0; i < t->layout->n; i++)
            empty(t, w, i);
    pthread_mutex_destroy(&t->lock);
    free(t->partial);
    free(t->rows);
    *t = (dafl_tally){0};
}
