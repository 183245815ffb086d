/* SPDX-License-Identifier: Apache-2.0 */
/* What a party must remember over a crash: its journal (agents/journal.h) and,
 * for a client, its vault of slot secrets (agents/vault.h), in a directory of
 * its own that one process at a time uses.
 *
 *   DIR/lock         the pid of the process that has it
 *   DIR/journal.db   the records; -wal beside it while it is open
 *   DIR/vault        the secrets
 *   DIR/generation   how often the store was opened; how many records it had
 *
 * A driver carries the effects of protocol/effect.h out as
 *
 *   APPEND  store_append      KEEP  store_keep
 *   SEND    store_flush, then send      ERASE  store_erase
 *
 * and after a restart feeds store_each_record and store_each_secret to the
 * machine. Journal and vault become durable in the order of the calls, what was
 * given to one before what was then given to the other. So a record that speaks
 * of secrets is there only when they are, and secrets are gone only when the
 * record that closes their slot is there.
 *
 * Every opening counts the generation up in the journal, then in the vault and
 * in DIR/generation. A journal that is older than one of them, or two or more
 * openings ahead, means that a file was put back from a copy: E_STATE_LOST. The
 * number of records is written after each flush and left to the system to sync:
 * it is never ahead of what is durable, and after anything but a power cut it
 * tells when the end of the journal's log is missing. A copy of the whole
 * directory looks right from here; the server, which knows the slots that were
 * played, finds it out. */
#ifndef DAFL_AGENTS_STORE_H
#define DAFL_AGENTS_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/bytes.h"
#include "lib/err.h"

typedef struct store store;

/* Open, or make, the store of the party `owner` in `dir`. The vault's numbers
 * count only with `has_vault`; they may differ from those the vault was made
 * with, see agents/vault.h. DAFL_ERR_INPUT when the directory is in use,
 * foreign, damaged, rolled back or open to others: nothing is ever made anew in
 * its place. DAFL_ERR_SYS when the system refused something. */
DAFL_CHECK dafl_err store_open(store **out, const char *dir, const char *owner,
                               bool has_vault, size_t vault_record_bytes,
                               uint32_t vault_slots, dafl_why *why);
/* What was not flushed may be lost. */
void store_close(store **out);

/* The first error is final: it is given back by every later call, so that
 * nothing is sent that is not on disk. DAFL_ERR_SYS for the system's,
 * DAFL_ERR_ARG for a record that is empty or too long, a slot 0 or a secret
 * that is too long,
 * DAFL_ERR_NOMEM. */
DAFL_CHECK dafl_err store_append(store *s, dafl_bytes record);
DAFL_CHECK dafl_err store_keep(store *s, uint32_t slot, dafl_bytes secret);
/* The secrets of all slots <= upto. */
DAFL_CHECK dafl_err store_erase(store *s, uint32_t upto);
/* After DAFL_OK everything before is durable. */
DAFL_CHECK dafl_err store_flush(store *s);
/* The sentence of the first error; "" while there is none. */
const char *store_why(const store *s);

/* Every record in order, every secret in no order. The bytes live for the call;
 * the first error of `fn` ends it and is given back, and is not final. `fn`
 * must not change the store. */
typedef dafl_err store_record_fn(void *ctx, dafl_bytes record);
typedef dafl_err store_secret_fn(void *ctx, uint32_t slot, dafl_bytes secret);
DAFL_CHECK dafl_err store_each_record(store *s, store_record_fn *fn, void *ctx);
DAFL_CHECK dafl_err store_each_secret(store *s, store_secret_fn *fn, void *ctx);

/* Openings so far, this one too. */
uint64_t store_generation(const store *s);

#endif
