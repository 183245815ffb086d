/* SPDX-License-Identifier: Apache-2.0 */
/* The journal of a party: records in their order, in an SQLite database. The
 * one door to SQLite. It holds no secrets.
 *
 * Records are chained, link = H("deepafl/journal", link before, seq, bytes), so
 * that a changed, missing or moved one shows. SQLite writes to its log (-wal)
 * alone until the journal is closed or opened again: a database without its log
 * is therefore one of an earlier generation, and agents/store.h tells. */
#ifndef DAFL_AGENTS_JOURNAL_H
#define DAFL_AGENTS_JOURNAL_H

#include "agents/store_stamp.h"
#include "lib/bytes.h"

/* SQLite's own limit is 10^9 for a row. */
#define JOURNAL_RECORD_MAX ((size_t)999000000)

typedef struct journal journal;

/* Open the journal of `owner` and check all of it. With `may_create` it may be
 * missing or empty and is made, of generation 0; nothing else is written. A
 * damaged or foreign file: DAFL_ERR_INPUT. */
DAFL_CHECK dafl_err journal_open(journal **out, const char *path,
                                 const char *owner, bool has_vault,
                                 bool may_create, dafl_why *why);
/* What was not committed is dropped. With `broken` nothing more is written. */
void journal_close(journal **out, bool broken);

/* STORE_ID_BYTES, drawn when it was made. */
const uint8_t *journal_id(const journal *j);
uint64_t journal_generation(const journal *j);
/* Appended ones too. */
uint64_t journal_records(const journal *j);
/* Record the new generation; durable. */
DAFL_CHECK dafl_err journal_begin(journal *j, uint64_t generation,
                                  dafl_why *why);

/* Durable after journal_commit, and not there without it. */
DAFL_CHECK dafl_err journal_append(journal *j, dafl_bytes record,
                                   dafl_why *why);
/* Whether something was appended and not committed. */
bool journal_pending(const journal *j);
/* Does nothing when nothing is pending. */
DAFL_CHECK dafl_err journal_commit(journal *j, dafl_why *why);

/* Every record in order; the bytes live for the call. Stops at the first error
 * and returns it; *ours says whether it was the journal's. */
typedef dafl_err journal_fn(void *ctx, dafl_bytes record);
DAFL_CHECK dafl_err journal_each(journal *j, journal_fn *fn, void *ctx,
                                 bool *ours, dafl_why *why);

#endif
