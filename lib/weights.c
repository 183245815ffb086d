/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/weights.h"

dafl_weights dafl_weights_of(const double *x, size_t n, size_t cols)
{
    dafl_weights w = {.used = cols > 0};

    for (size_t i = 0; i < n; i++) {
        double square = 0.0;
        for (size_t c = 0; c < cols; c++)
            square += x[i * cols + c] * x[i * cols + c];
        w.total += square;
        w.most = square > w.most ? square : w.most;
    }
    return w;
}

void dafl_weights_add(dafl_weights *all, const dafl_weights *more)
{
    all->used |= more->used;
    all->total += more->total;
    all->most = more->most > all->most ? more->most : all->most;
}

double dafl_weights_share(const dafl_weights *w)
{
    if (!w->used)
        return 0.0;
    return w->total > 0.0 ? w->most / w->total : 1.0;
}
