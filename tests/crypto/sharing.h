/* SPDX-License-Identifier: Apache-2.0 */
/* Sharings for tests. */
#ifndef DAFL_TESTS_CRYPTO_SHARING_H
#define DAFL_TESTS_CRYPTO_SHARING_H

#include "tests/crypto/bytes.h"

#include "crypto/shamir.h"

#define MOST DAFL_HOLDERS_MAX

/* n different places in random order. */
CHECK_HELPER void random_places(uint8_t *places, size_t n)
{
    uint8_t all[255];

    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (uint8_t)(i + 1);
    for (size_t i = 0; i < n; i++) {
        size_t k = random_size(i, sizeof all - 1);

        places[i] = all[k];
        all[k] = all[i];
    }
}

/* A random secret, split for n holders at random places. */
CHECK_HELPER void deal(dafl_share *shares, dafl_key *secret, uint8_t *places,
                       size_t n, size_t t)
{
    random_places(places, n);
    dafl_key_random(secret);
    assert_ok(dafl_shamir_split(shares, secret, places, n, t));
}

CHECK_HELPER size_t bits_in(unsigned set)
{
    size_t n = 0;

    for (; set != 0; set &= set - 1)
        n++;
    return n;
}

/* The members of `set` among n shares. */
CHECK_HELPER size_t chosen(dafl_share *shares, uint8_t *places, unsigned set,
                           const dafl_share *all, const uint8_t *all_places,
                           size_t n)
{
    size_t k = 0;

    for (size_t i = 0; i < n; i++)
        if (set >> i & 1) {
            shares[k] = all[i];
            places[k++] = all_places[i];
        }
    return k;
}

#endif
