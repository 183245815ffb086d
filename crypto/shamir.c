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

/* Places are public, so products of them go by tables of logarithms. */
typedef struct {
    uint8_t exp[2 * 255]; /* twice, for sums of two logarithms */
    uint8_t log[256];
} logs;

static void make_logs(logs *l)
{
    uint8_t power = 1;

    l->log[0] = 0;
    for (unsigned i = 0; i < 255; i++) {
        l->exp[i] = l->exp[i + 255] = power;
        l->log[power] = (uint8_t)i;
        power = dafl_gf_mul(power, 3); /* which generates the group */
    }
}

/* The logarithms of 1 / product of (x_i - x_j), j != i. */
static void weigh(uint8_t *weights, const uint8_t *places, size_t n,
                  const logs *l)
{
    for (size_t i = 0; i < n; i++) {
        unsigned sum = 0; /* <= 254 * 254 */
        for (size_t j = 0; j < n; j++)
            sum += l->log[places[i] ^ places[j]]; /* log[0] is 0 */
        weights[i] = (uint8_t)((255 - sum % 255) % 255);
    }
}

dafl_err dafl_shamir_join(dafl_key *secret, const dafl_share *shares,
                          const uint8_t *places, size_t t)
{
    uint8_t weights[DAFL_HOLDERS_MAX];
    dafl_key sum = {{0}};
    unsigned product = 0;
    logs l;

    if (t < 1 || t > DAFL_HOLDERS_MAX || !places_ok(places, t))
        return DAFL_ERR_ARG;
    make_logs(&l);
    weigh(weights, places, t, &l);
    for (size_t i = 0; i < t; i++)
        product += l.log[places[i]];
    for (size_t i = 0; i < t; i++) {
        /* Lagrange's coefficient at 0: the product of x_j / (x_j - x_i). */
        unsigned others = product - l.log[places[i]];
        dafl_gf_add_scaled(sum.b, shares[i].b,
                           l.exp[(weights[i] + others) % 255]);
    }
    *secret = sum;
    dafl_key_wipe(&sum);
    return DAFL_OK;
}

/* Values f(x_i) of a polynomial of degree < t are orthogonal to weights times
 * values p(x_i), for every polynomial p of degree < n - t, and nothing else is
 * orthogonal to all of those. The coefficients of p are powers of 3 to random
 * bytes, of which none is likelier than 2 / 256; so much is the chance of
 * others to be orthogonal to one p. */
bool dafl_shamir_agree_derand(const dafl_share *shares, const uint8_t *places,
                              size_t n, size_t t, const uint8_t *random)
{
    uint8_t weights[DAFL_HOLDERS_MAX];
    uint8_t sums[DAFL_SHAMIR_TESTS][sizeof(dafl_share)] = {{0}};
    bool agree;
    logs l;

    if (t < 1 || t > n || n > DAFL_HOLDERS_MAX || !places_ok(places, n))
        return false;
    make_logs(&l);
    weigh(weights, places, n, &l);
    for (size_t i = 0; i < n; i++) {
        const uint8_t *p = random;
        uint8_t values[DAFL_SHAMIR_TESTS] = {0};
        unsigned x = l.log[places[i]], power = weights[i];
        for (size_t j = 0; j < n - t; j++) {
            for (size_t k = 0; k < DAFL_SHAMIR_TESTS; k++)
                values[k] ^= l.exp[power + *p++];
            power = power + x < 255 ? power + x : power + x - 255;
        }
        for (size_t k = 0; k < DAFL_SHAMIR_TESTS; k++)
            dafl_gf_add_scaled(sums[k], shares[i].b, values[k]);
    }
    agree = sodium_is_zero(sums[0], sizeof sums) == 1;
    sodium_memzero(sums, sizeof sums);
    return agree;
}

bool dafl_shamir_agree(const dafl_share *shares, const uint8_t *places,
                       size_t n, size_t t)
{
    uint8_t random[DAFL_SHAMIR_TESTS * DAFL_HOLDERS_MAX];

    if (t < 1 || t > n || n > DAFL_HOLDERS_MAX)
        return false;
    randombytes_buf(random, DAFL_SHAMIR_TESTS * (n - t));
    return dafl_shamir_agree_derand(shares, places, n, t, random);
}
