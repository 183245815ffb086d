/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/grid.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

dafl_err dafl_contract_derive(dafl_contract *c, dafl_why *why)
{
    uint64_t square;

    if (!c->exact) {
        c->w = 64;
        return DAFL_OK;
    }
    if (c->s < 1 || c->s > 24)
        return dafl_fail(why, DAFL_ERR_INPUT, "grid of %u bits: choose 1 to 24",
                         c->s);
    if (c->q < 1 || c->q > 65536)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "largest magnitude %" PRIu32 ": choose 1 to 65536",
                         c->q);
    /* q 2^s <= 2^26: a product of two operands is exact in a double, and so is
     * the sum of two. */
    if ((uint64_t)c->q << c->s > (uint64_t)1 << 26)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "magnitude %" PRIu32 " on a grid of %u bits: products "
                         "are not exact beyond 26 bits in all",
                         c->q, c->s);
    if (c->n_max < 1 || c->n_max > (uint64_t)1 << 40)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "n_max %" PRIu64 ": choose 1 to 2^40", c->n_max);
    square = (uint64_t)c->q * c->q << 2 * c->s; /* <= 2^52 */
    for (unsigned w = 32; w <= 64; w += 8) {
        uint64_t most = ((uint64_t)1 << (w - 1)) - 1;
        if (c->n_max <= most / square) {
            c->w = w;
            return DAFL_OK;
        }
    }
    return dafl_fail(why, DAFL_ERR_INPUT,
                     "sums of %" PRIu64 " rows of magnitude %" PRIu32
                     " on a grid of %u bits do not fit 64 bits: lower one",
                     c->n_max, c->q, c->s);
}

uint64_t dafl_contract_exact_rows(const dafl_contract *c)
{
    /* square <= 2^52, see dafl_contract_derive. */
    uint64_t square = (uint64_t)c->q * c->q << 2 * c->s;

    return c->exact ? ((uint64_t)1 << 53) / square : UINT64_MAX;
}

size_t dafl_grid_round(const dafl_contract *c, double *x, size_t n)
{
    /* Adding and subtracting 1.5 * 2^(52-s) rounds to multiples of 2^-s; that
     * is exact for |x| < 2^(51-s), and q 2^s <= 2^26. Without a grid the shift
     * is zero and only what is not finite is bad. */
    double shift = c->exact ? ldexp(1.5, 52 - (int)c->s) : 0.0;
    double limit = c->exact ? (double)c->q : DBL_MAX;
    uint64_t bad = 0; /* as wide as a double, so that the loop vectorises */

    for (size_t i = 0; i < n; i++) {
        double r = (x[i] + shift) - shift;
        bad |= fabs(r) <= limit ? 0u : 1u;
        x[i] = r;
    }
    if (bad == 0)
        return n;
    for (size_t i = 0; i < n; i++)
        if (!(fabs(x[i]) <= limit))
            return i;
    return n;
}
