/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors over Z_2^w. In memory a number is a uint64_t of which only the low w
 * bits mean anything: 2^w divides 2^64, so additions need no reduction. On the
 * wire and in a mask stream it is w/8 bytes, little endian, without padding. */
#ifndef DAFL_LIB_RING_H
#define DAFL_LIB_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* w is one of 32, 40, 48, 56, 64. */
bool dafl_ring_width_ok(unsigned w);

/* acc[0..n) += (or -=, if negate) the n words at `words`. Constant
 * time. */
void dafl_ring_add_words(uint64_t *acc, const uint8_t *words, size_t n,
                         unsigned w, bool negate);

/* Write the low w bits of acc[0..n) as n words. */
void dafl_ring_pack(uint8_t *words, const uint64_t *acc, size_t n, unsigned w);

/* Signed integers to ring elements and back: the representative in
 * [-2^(w-1), 2^(w-1)). */
void dafl_ring_from_int(uint64_t *acc, const int64_t *x, size_t n);
void dafl_ring_to_int(int64_t *x, const uint64_t *acc, size_t n, unsigned w);

#endif
