/* SPDX-License-Identifier: Apache-2.0 */
/* Residues on the wire. A row is DAFL_HE_N residues modulo one prime, at the
 * bit length of the prime, little endian, without padding. A ciphertext is the
 * rows of its first and of its second polynomial modulo primes 0 and 1, a key
 * those modulo primes 0, 1 and 2. */
#ifndef DAFL_CRYPTO_HE_INSIDE_H
#define DAFL_CRYPTO_HE_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/he.h"

#define DAFL_HE_KEY_PRIMES 3
#define DAFL_HE_PRIMES 2 /* of a ciphertext */

extern const uint64_t dafl_he_primes[DAFL_HE_KEY_PRIMES];

/* Bytes of a row modulo prime `p`, of a polynomial modulo the first n. */
size_t dafl_he_row_bytes(unsigned p);
size_t dafl_he_poly_bytes(unsigned n);

/* residues[0..DAFL_HE_N), each below the prime. */
void dafl_he_pack(uint8_t *row, const uint64_t *residues, unsigned p);
/* False unless every residue is below the prime. */
bool dafl_he_unpack(uint64_t *residues, const uint8_t *row, unsigned p);

/* Two polynomials modulo the first n primes whose second is zero everywhere:
 * nothing is encrypted. */
bool dafl_he_transparent(const uint8_t *polys, unsigned n);

#endif
