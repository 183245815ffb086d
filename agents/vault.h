/* SPDX-License-Identifier: Apache-2.0 */
/* The secrets of slots, on disk. A file of records of one size that are only
 * ever overwritten in their places: no copies, no free pages, no temporary
 * files. What is erased is zeros where it was (below that, file systems that
 * copy on write and flash memory keep what they keep).
 *
 *   stamp        two blocks, agents/store_stamp.h
 *   record ..    at STORE_STAMP_BYTES + p * stride, p = (slot - 1) % slots:
 *                check[32], u32 slot, u32 len, bytes, zeros up to stride
 *   check        H("deepafl/vault", id, slot, bytes)
 *
 * The stride is a multiple of a block. A record cut short by a crash does not
 * hold its check: it counts as absent and is wiped at the next opening. */
#ifndef DAFL_AGENTS_VAULT_H
#define DAFL_AGENTS_VAULT_H

#include "agents/store_stamp.h"
#include "lib/bytes.h"

#define VAULT_RECORD_MAX ((size_t)1 << 30)
#define VAULT_SLOTS_MAX ((uint32_t)1 << 20)

typedef struct vault vault;

/* Open the vault of store `id` for records of up to `record_bytes` and `slots`
 * places; nothing is changed yet. With `fresh` it may be missing or half made,
 * and is made. A vault of other sizes is taken as it is: its secrets can be
 * read and erased, and when there are none left it gets the new sizes; until
 * then nothing can be kept. */
DAFL_CHECK dafl_err vault_open(vault **out, const char *path, bool fresh,
                               const uint8_t id[STORE_ID_BYTES],
                               size_t record_bytes, uint32_t slots,
                               dafl_why *why);
void vault_close(vault **out);

uint64_t vault_generation(const vault *v);
/* Wipe what a crash tore and write the stamp; durable. */
DAFL_CHECK dafl_err vault_begin(vault *v, uint64_t generation, dafl_why *why);

/* Written, and durable after vault_sync. */
DAFL_CHECK dafl_err vault_keep(vault *v, uint32_t slot, dafl_bytes secret,
                               dafl_why *why);
DAFL_CHECK dafl_err vault_erase(vault *v, uint32_t upto, dafl_why *why);
/* Does nothing when nothing was written. */
DAFL_CHECK dafl_err vault_sync(vault *v, dafl_why *why);

/* Every record, in the order of places; the bytes live for the call. Stops at
 * the first error and returns it; *ours says whether it was the vault's. */
typedef dafl_err vault_fn(void *ctx, uint32_t slot, dafl_bytes secret);
DAFL_CHECK dafl_err vault_each(vault *v, vault_fn *fn, void *ctx, bool *ours,
                               dafl_why *why);

#endif
