/* SPDX-License-Identifier: Apache-2.0 */
/* A party that does what a client does to its store, with records and secrets
 * that can be foretold: after any crash they show what survived. Also files of
 * a directory as a whole: copies, searches. */
#ifndef DAFL_TESTS_STORE_PARTY_H
#define DAFL_TESTS_STORE_PARTY_H

#include "agents/store.h"
#include "tests/check.h"

/* An enrolment has 4 slots: a record for all, with their secrets before it,
 * then three for each slot. The last of them closes it. */
#define PARTY_SLOTS 4
#define PARTY_RECORDS (1 + 3 * PARTY_SLOTS)
#define PARTY_RECORD_MAX 9000
#define PARTY_SECRET_BYTES 5000 /* two blocks of the vault */

/* The n-th record (from 0): writes it, returns its length. */
size_t party_record(uint8_t *out, size_t n);
void party_secret(uint8_t *out, uint32_t slot);

DAFL_CHECK dafl_err party_open(store **out, const char *path, dafl_why *why);

/* Open, go on where the records end until there are `until`, close. After each
 * flush *acked (unless NULL) is the number of records that are durable, also
 * written to the descriptor `tell` (unless negative). After an error the store
 * must stand by it: fails the test if it does not. */
DAFL_CHECK dafl_err party_run(const char *path, size_t until, size_t *acked,
                              int tell, dafl_why *why);

/* Open and look: the records are those foretold, at least `acked` of them; the
 * secrets of open slots are there, those of slots that `acked` records close
 * are nowhere in the directory. Returns the number of records. */
size_t party_check(const char *path, size_t acked);

/* Counts records into a size_t; compares with party_record. */
dafl_err party_count(void *ctx, dafl_bytes record);

/* ---- files ---- */

#define SNAP_FILES 8

typedef struct {
    size_t n;
    struct {
        char name[64];
        uint8_t *bytes;
        size_t len;
    } file[SNAP_FILES];
} snap;

void snap_take(snap *out, const char *path);
/* Make the directory hold this and nothing else. */
void snap_put(const snap *s, const char *path);
/* Only the file `name`. */
void snap_put_one(const snap *s, const char *path, const char *name);
void snap_drop(snap *s);
/* The index of a file; fails the test when there is none. */
size_t snap_find(const snap *s, const char *name);

/* Remove the directory and the files in it, if it is there. */
void remove_all(const char *path);
void write_file(const char *path, const void *bytes, size_t len);
/* Whether a file holds these bytes anywhere. */
bool snap_holds(const snap *s, const uint8_t *bytes, size_t len);

#endif
