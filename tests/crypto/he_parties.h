/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of encryption: three parties in one, and every Load function of
 * SEAL's C library is counted and not executed (linked with --wrap). */
#ifndef DAFL_TESTS_CRYPTO_HE_PARTIES_H
#define DAFL_TESTS_CRYPTO_HE_PARTIES_H

#include "tests/crypto/bytes.h"

#include "crypto/he.h"

typedef struct {
    dafl_he *he;
    unsigned w;
    dafl_pool *pool;
    dafl_he_secret *sk;
    dafl_he_public *pk;
    dafl_writer key;
} parties;

/* With a pool of so many threads, or none. */
parties start(unsigned w, unsigned threads);
void stop(parties *p);

uint64_t *words(size_t n);
/* y[0..n) at random, all 64 bits, and with the extremes. */
void draw(uint64_t *y, size_t n);
void assert_equal_mod(const uint64_t *got, const uint64_t *want, size_t n,
                      unsigned w);

/* Drop what these two give. */
dafl_writer encrypted(const parties *p, const uint64_t *y, size_t n);
dafl_writer put(const dafl_he_sum *s);
void assert_opens_to(const parties *p, const dafl_he_sum *s,
                     const uint64_t *want, size_t n);

/* H9: counted over the whole program, so the last two of its table. */
void nothing_was_loaded(void **state);
void loads_would_have_been_seen(void **state);

/* Whether encryption is built in; if not, says so: leave with 77. */
bool can_encrypt(void);

#endif
