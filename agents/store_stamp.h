/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a file that belongs to a store: whose it is and how often the
 * store was opened. It stands twice, in blocks of their own that are written in
 * turn, so that a write cut short leaves the one before it. */
#ifndef DAFL_AGENTS_STORE_STAMP_H
#define DAFL_AGENTS_STORE_STAMP_H

#include "agents/store_file.h"

#define STORE_ID_BYTES 16
/* A write of one block does not reach another one, torn or not. */
#define STORE_BLOCK 4096
/* What a file holds besides begins here. */
#define STORE_STAMP_BYTES (2 * (uint64_t)STORE_BLOCK)

typedef struct {
    uint8_t id[STORE_ID_BYTES]; /* drawn with the journal */
    uint64_t serial;            /* of writes: the larger of the two counts */
    uint64_t generation;        /* openings of the store */
    uint32_t stride, n;         /* a vault's: bytes per record, records */
} store_stamp;

/* *found: at least one of the two is whole. `label` tells kinds of files
 * apart. */
DAFL_CHECK dafl_err store_stamp_read(store_stamp *out, bool *found,
                                     const store_file *f, const char *label,
                                     dafl_why *why);

/* Count the serial number up, write over the older of the two and sync. */
DAFL_CHECK dafl_err store_stamp_write(store_stamp *stamp, const store_file *f,
                                      const char *label, dafl_why *why);

/* A mark: a stamp in a block of its own that is written again and again and
 * never synced. One that was cut short is not found. It must say nothing that
 * was not durable before. */
DAFL_CHECK dafl_err store_mark_read(store_stamp *out, bool *found,
                                    const store_file *f, const char *label,
                                    dafl_why *why);
DAFL_CHECK dafl_err store_mark_write(const store_stamp *mark,
                                     const store_file *f, const char *label,
                                     dafl_why *why);

#endif
