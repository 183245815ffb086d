/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing bytes, little endian. A reader never looks beyond its
 * bytes and hands out views, not copies; a writer grows its own buffer. */
#ifndef DAFL_LIB_CODEC_H
#define DAFL_LIB_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/bytes.h"
#include "lib/err.h"

typedef struct {
    const uint8_t *at;
    size_t left;
} dafl_reader;

dafl_reader dafl_read(dafl_bytes bytes);

/* DAFL_ERR_PEER, nothing taken and nothing written, when too few bytes are
 * left. */
DAFL_CHECK dafl_err dafl_get_u8(dafl_reader *r, uint8_t *out);
DAFL_CHECK dafl_err dafl_get_u16(dafl_reader *r, uint16_t *out);
DAFL_CHECK dafl_err dafl_get_u32(dafl_reader *r, uint32_t *out);
DAFL_CHECK dafl_err dafl_get_u64(dafl_reader *r, uint64_t *out);
/* Copy `len` bytes. */
DAFL_CHECK dafl_err dafl_get_fixed(dafl_reader *r, void *out, size_t len);
/* A view of the next `len` bytes. */
DAFL_CHECK dafl_err dafl_get_view(dafl_reader *r, dafl_bytes *out,
                                  uint64_t len);
/* A view of `count` items of `size` bytes; the product may overflow. */
DAFL_CHECK dafl_err dafl_get_items(dafl_reader *r, dafl_bytes *out,
                                   uint64_t count, size_t size);
/* DAFL_ERR_PEER unless everything has been read. */
DAFL_CHECK dafl_err dafl_get_end(const dafl_reader *r);

/* Starts as {0}. Once memory is short everything more is passed over;
 * dafl_writer_done tells. */
typedef struct {
    uint8_t *ptr;
    size_t len, room;
    bool failed;
} dafl_writer;

void dafl_put_u8(dafl_writer *w, uint8_t v);
void dafl_put_u16(dafl_writer *w, uint16_t v);
void dafl_put_u32(dafl_writer *w, uint32_t v);
void dafl_put_u64(dafl_writer *w, uint64_t v);
void dafl_put_fixed(dafl_writer *w, const void *bytes, size_t len);
/* Put `len` bytes that the caller fills in before he puts more; NULL when
 * memory is short. */
uint8_t *dafl_put_room(dafl_writer *w, size_t len);
/* DAFL_ERR_NOMEM when something is missing. */
DAFL_CHECK dafl_err dafl_writer_done(const dafl_writer *w);
dafl_bytes dafl_writer_bytes(const dafl_writer *w);
/* Forget what was written and keep the room. */
void dafl_writer_clear(dafl_writer *w);
/* Wipe and release. */
void dafl_writer_drop(dafl_writer *w);

#endif
