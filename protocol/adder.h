/* SPDX-License-Identifier: Apache-2.0 */
/* A sum of uploads as they come: of masked words, or of ciphertexts of them.
 * Internal to protocol/. */
#ifndef DAFL_PROTOCOL_ADDER_H
#define DAFL_PROTOCOL_ADDER_H

#include "crypto/he.h"
#include "lib/bytes.h"

/* Starts as {0}; has one of the two. */
typedef struct {
    uint64_t *words; /* bulk memory */
    dafl_he_sum *sealed;
    size_t len;
    unsigned w;
} dafl_adder;

/* Zero, of `len` numbers; `he` NULL: of words. */
DAFL_CHECK dafl_err dafl_adder_start(dafl_adder *a, dafl_he *he, size_t len,
                                     unsigned w);
bool dafl_adder_started(const dafl_adder *a);
/* Of an upload of the right length. DAFL_ERR_PEER, nothing changed, for
 * ciphertexts that are none. */
DAFL_CHECK dafl_err dafl_adder_add(dafl_adder *a, dafl_bytes upload);
/* Add all of `from` and end it. DAFL_ERR_PEER, nothing changed, when their
 * ciphertexts cancel. */
DAFL_CHECK dafl_err dafl_adder_merge(dafl_adder *a, dafl_adder *from);
void dafl_adder_drop(dafl_adder *a);

#endif
