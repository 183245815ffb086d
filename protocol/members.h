/* SPDX-License-Identifier: Apache-2.0 */
/* A set of clients by their number in the roster, as a value. On the wire:
 *
 *   members = u16 n (<= 256), ceil(n / 8) bytes, client i at bit i % 8 of byte
 *             i / 8, bits from n on zero
 */
#ifndef DAFL_PROTOCOL_MEMBERS_H
#define DAFL_PROTOCOL_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/codec.h"
#include "protocol/threshold.h"

typedef struct {
    uint16_t n; /* clients in the roster */
    uint8_t bits[DAFL_CLIENTS_MAX / 8];
} dafl_members;

/* None of n clients; n <= DAFL_CLIENTS_MAX. */
dafl_members dafl_members_none(size_t n);
void dafl_members_add(dafl_members *m, size_t client);
void dafl_members_remove(dafl_members *m, size_t client);
bool dafl_members_has(const dafl_members *m, size_t client);
size_t dafl_members_count(const dafl_members *m);
bool dafl_members_equal(const dafl_members *a, const dafl_members *b);
/* Every member of a is one of b, over the same n. */
bool dafl_members_within(const dafl_members *a, const dafl_members *b);
/* Members of a that are not in b; members of both. */
dafl_members dafl_members_minus(const dafl_members *a, const dafl_members *b);
dafl_members dafl_members_both(const dafl_members *a, const dafl_members *b);
/* How many members come before a client. */
size_t dafl_members_rank(const dafl_members *m, size_t client);

void dafl_put_members(dafl_writer *w, const dafl_members *m);
DAFL_CHECK dafl_err dafl_get_members(dafl_reader *r, dafl_members *m);

#endif
