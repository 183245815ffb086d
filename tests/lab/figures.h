/* SPDX-License-Identifier: Apache-2.0 */
/* How close an attacker came, in numbers; and lots of rows. */
#ifndef DAFL_TESTS_LAB_FIGURES_H
#define DAFL_TESTS_LAB_FIGURES_H

#include <math.h>

#include "lib/data.h"
#include "tests/check.h"

CHECK_HELPER double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* ||got - want|| / ||want||, Frobenius. */
CHECK_HELPER double off_by(const double *got, const double *want, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (got[i] - want[i]) * (got[i] - want[i]);
    return sqrt(sum / dot(want, want, n));
}

/* Cosine of the angle between two deviations. */
CHECK_HELPER double correlation(const double *a, const double *b, size_t n)
{
    return dot(a, b, n) / sqrt(dot(a, a, n) * dot(b, b, n));
}

/* a -= scale b. */
CHECK_HELPER void take_off(double *a, const double *b, double scale, size_t n)
{
    for (size_t i = 0; i < n; i++)
        a[i] -= scale * b[i];
}

/* All rows, label by label. */
CHECK_HELPER void by_label(uint32_t *rows, const dafl_data *data)
{
    size_t n = 0;

    for (uint32_t label = 0; n < data->n; label++)
        for (uint32_t i = 0; i < data->n; i++)
            if (data->y[i] == label)
                rows[n++] = i;
}

CHECK_HELPER void shuffle(uint32_t *rows, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = random_size(0, i - 1);
        uint32_t kept = rows[j];

        rows[j] = rows[i - 1];
        rows[i - 1] = kept;
    }
}

/* Deal the rows of the clients [from, to) among them anew: other rows for each,
 * and other numbers of them. */
CHECK_HELPER void deal_again(uint32_t *rows, size_t *first, size_t from,
                             size_t to)
{
    size_t n = first[to] - first[from];

    shuffle(rows + first[from], n);
    for (size_t u = from + 1; u < to; u++) /* no lot gets empty */
        first[u] = first[u - 1] +
                   random_size(1, (first[to] - first[u - 1]) / (to - u + 1));
}

#endif
