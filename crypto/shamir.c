/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/shamir.h"

#include <string.h>

#include <sodium.h>

#include "crypto/gf256.h"

uint8_t dafl_shamir_place(size_t dealer, size_t holder)
{
    return (uint8_t)(holder < dealer ? holder + 1 : holder);
}

static bool places_ok(const uint8_t *places, size_t n)
{
    bool seen[256] = {[0] = true};

    for (size_t i = 0; i < n; i++) {
        if (seen[places[i]])
            return false;
        seen[places[i]] = true;
    }
    return true;
}

dafl_err dafl_shamir_split_derand(dafl_share *shares, const dafl_key *secret,
                                  const uint8_t *places, size_t n, size_t t,
                                  const dafl_key *coefficients)
{
    if (t < 1 || t > n || n > DAFL_HOLDERS_MAX || !places_ok(places, n))
        return DAFL_ERR_ARG;
    for (size_t i = 0; i < n; i++) {
        /* Horner's rule from the highest power down to the secret. */
        dafl_share y = {{0}}, next;
        for (size_t k = t; k-- > 0;) {
            memcpy(next.b, k > 0 ? coefficients[k - 1].b : secret->b,
                   sizeof next.b);
            dafl_gf_add_scaled(next.b, y.b, places[i]);
            y = next;
        }
        shares[i] = y;
        sodium_memzero(&y, sizeof y);
        sodium_memzero(&next, sizeof next);
    }
    return DAFL_OK;
}

dafl_err dafl_shamir_split(dafl_share *shares, const dafl_key *secret,
                           const uint8_t *places, size_t n, size_t t)
{
    dafl_key coefficients[DAFL_HOLDERS_MAX];
    dafl_err err = DAFL_ERR_ARG;

    if (t < 1 || t > n || n > DAFL_HOLDERS_MAX)
        return err;
    randombytes_buf(coefficients, (t - 1) * sizeof coefficients[0]);
    err = dafl_shamir_split_derand(shares, secret, places, n, t, coefficients);
    sodium_memzero(coefficients, (t - 1) * sizeof coefficients[0]);
    return err;
}

dafl_err dafl_shamir_join(dafl_key *secret, const dafl_share *shares,
                          const uint8_t *places, size_t t)
{
    dafl_key sum = {{0}};

    if (t < 1 || t > DAFL_HOLDERS_MAX || !places_ok(places, t))
        return DAFL_ERR_ARG;
    for (size_t i = 0; i < t; i++) {
        /* Lagrange's coefficient at 0: the product of x_j / (x_j - x_i). */
        uint8_t above = 1, below = 1;
        for (size_t j = 0; j < t; j++) {
            if (j == i)
                continue;
            above = dafl_gf_mul(above, places[j]);
            below = dafl_gf_mul(below, places[j] ^ places[i]);
        }
        dafl_gf_add_scaled(sum.b, shares[i].b,
                           dafl_gf_mul(above, dafl_gf_inverse(below)));
    }
    *secret = sum;
    dafl_key_wipe(&sum);
    return DAFL_OK;
}
