/* SPDX-License-Identifier: Apache-2.0 */
/* Shamir's secret sharing of 32-byte secrets over GF(2^8), byte by byte: any t
 * shares rebuild a secret, t - 1 say nothing about it. The places x of the
 * holders are public, distinct and not 0 (the secret's own place). */
#ifndef DAFL_CRYPTO_SHAMIR_H
#define DAFL_CRYPTO_SHAMIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/keys.h"
#include "lib/err.h"

#define DAFL_HOLDERS_MAX 255

/* Secret. */
typedef struct {
    uint8_t b[DAFL_KEY_BYTES];
} dafl_share;

/* The place at which `holder` keeps its shares of `dealer`, both numbered from
 * 0 in the same list: the dealer itself is skipped, so that a list of 256 fits
 * the 255 places of the field. holder != dealer. */
uint8_t dafl_shamir_place(size_t dealer, size_t holder);

/* shares[i] is for places[i]. 1 <= t <= n <= 255, else DAFL_ERR_ARG. Constant
 * time in secret and coefficients. */
DAFL_CHECK dafl_err dafl_shamir_split(dafl_share *shares,
                                      const dafl_key *secret,
                                      const uint8_t *places, size_t n,
                                      size_t t);
/* The same with the t - 1 random coefficients given, the lowest power first. */
DAFL_CHECK dafl_err dafl_shamir_split_derand(dafl_share *shares,
                                             const dafl_key *secret,
                                             const uint8_t *places, size_t n,
                                             size_t t,
                                             const dafl_key *coefficients);

/* The secret from exactly t shares; constant time in them. DAFL_ERR_ARG for
 * places that are 0 or not distinct. A wrong share gives a wrong secret:
 * compare it with its commitment. */
DAFL_CHECK dafl_err dafl_shamir_join(dafl_key *secret, const dafl_share *shares,
                                     const uint8_t *places, size_t t);

/* Whether n >= t shares are of one sharing. Others pass at most once in 2^28
 * times, whoever made them up: the tests are drawn here. Who is wrong is found
 * by dafl_shamir_correct, in a hundred times the time. False for places that
 * are 0 or not distinct and for sizes that cannot be. Constant time in the
 * shares. */
bool dafl_shamir_agree(const dafl_share *shares, const uint8_t *places,
                       size_t n, size_t t);
/* The same with the random numbers given, n - t for each test. */
#define DAFL_SHAMIR_TESTS 4
bool dafl_shamir_agree_derand(const dafl_share *shares, const uint8_t *places,
                              size_t n, size_t t, const uint8_t *random);

/* The secret from n >= t shares of which up to (n - t) / 2 may be wrong, and
 * which were: wrong[i] is set. DAFL_ERR_CRYPTO, wrong[] untouched, when there
 * is no polynomial that close. For shares that have been revealed: not constant
 * time. */
DAFL_CHECK dafl_err dafl_shamir_correct(dafl_key *secret, bool *wrong,
                                        const dafl_share *shares,
                                        const uint8_t *places, size_t n,
                                        size_t t);

#endif
