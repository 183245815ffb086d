/* SPDX-License-Identifier: Apache-2.0 */
/* Homomorphic encryption of vectors over Z_2^w: a client encrypts under a
 * public key, a server adds without any key, and the holder of the secret key
 * reads the sum. BFV with 128 bits of security; a number is a coefficient.
 * Sums of 1024 vectors are exact for every w.
 *
 * Whoever has a ciphertext decrypted of his choice gets the secret key: one
 * key pair opens one sum, and what is encrypted is masked beforehand.
 *
 * On the wire a ciphertext is two polynomials of DAFL_HE_N residues modulo two
 * primes of 36 bits, packed: 18 bytes for each number. A public key is two
 * polynomials modulo these and a third prime of 37 bits.
 *
 * A dafl_he and what is made with it are used by one thread at a time (or by
 * workers of its pool) and freed before it. When the library underneath finds
 * no memory the process ends. */
#ifndef DAFL_CRYPTO_HE_H
#define DAFL_CRYPTO_HE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/bytes.h"
#include "lib/codec.h"
#include "lib/err.h"
#include "lib/pool.h"

#define DAFL_HE_N 4096   /* numbers in one ciphertext */
#define DAFL_HE_W_MAX 56 /* bits of a number */

/* Whether this build has it. If not, dafl_he_new says what to install. */
bool dafl_he_built(void);

/* Parameters and working memory of one party. w <= 56, a width of lib/ring.h.
 * Threads of `pool` share the work (NULL: this thread alone). */
typedef struct dafl_he dafl_he;
DAFL_CHECK dafl_err dafl_he_new(dafl_he **out, unsigned w, dafl_pool *pool,
                                dafl_why *why);
void dafl_he_free(dafl_he **he);

size_t dafl_he_key_bytes(void);
/* Of len encrypted numbers, a whole number of ciphertexts; SIZE_MAX when there
 * is no such size. */
size_t dafl_he_bytes(uint64_t len);

/* The key holder's. Memory only, wiped when freed. */
typedef struct dafl_he_secret dafl_he_secret;
DAFL_CHECK dafl_err dafl_he_keygen(dafl_he *he, dafl_he_secret **sk,
                                   dafl_writer *pk);
void dafl_he_secret_free(dafl_he_secret **sk);
/* out[0..len) of `cts`, which must be dafl_he_bytes(len) long. DAFL_ERR_PEER
 * for malformed bytes; after an error out is zero. */
DAFL_CHECK dafl_err dafl_he_decrypt(dafl_he *he, const dafl_he_secret *sk,
                                    dafl_bytes cts, uint64_t *out, size_t len);

/* The clients'. DAFL_ERR_PEER for a malformed key. */
typedef struct dafl_he_public dafl_he_public;
DAFL_CHECK dafl_err dafl_he_public_read(dafl_he *he, dafl_he_public **out,
                                        dafl_bytes pk);
void dafl_he_public_free(dafl_he_public **pk);
/* Append y[0..len) mod 2^w, encrypted. */
DAFL_CHECK dafl_err dafl_he_encrypt(dafl_he *he, const dafl_he_public *pk,
                                    const uint64_t *y, size_t len,
                                    dafl_writer *out);

/* The server's: a sum of vectors of len numbers, at first of none. */
typedef struct dafl_he_sum dafl_he_sum;
DAFL_CHECK dafl_err dafl_he_sum_new(dafl_he_sum **out, dafl_he *he, size_t len);
void dafl_he_sum_free(dafl_he_sum **sum);
/* DAFL_ERR_PEER: malformed, or it cancels the randomness of the sum so far;
 * the sum is unchanged. After DAFL_ERR_SYS it is lost. */
DAFL_CHECK dafl_err dafl_he_sum_add(dafl_he_sum *s, dafl_bytes upload);
/* Add another sum of the same length, made with the same dafl_he; errors as
 * above. */
DAFL_CHECK dafl_err dafl_he_sum_merge(dafl_he_sum *s, const dafl_he_sum *other);
/* Add r[0..len) mod 2^w, unencrypted. DAFL_ERR_ARG for a sum of none. */
DAFL_CHECK dafl_err dafl_he_sum_blind(dafl_he_sum *s, const uint64_t *r);
/* Append its ciphertexts. DAFL_ERR_ARG for a sum of none. */
DAFL_CHECK dafl_err dafl_he_sum_put(const dafl_he_sum *s, dafl_writer *w);

#endif
