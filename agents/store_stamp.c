/* SPDX-License-Identifier: Apache-2.0 */
#include "agents/store_stamp.h"

#include <string.h>

#include "crypto/hash.h"
#include "lib/codec.h"

/* magic[8], id[16], u64 serial, u64 generation, u32 stride, u32 n, check[32] */
#define BODY_BYTES (8 + STORE_ID_BYTES + 8 + 8 + 4 + 4)
#define BYTES (BODY_BYTES + DAFL_HASH_BYTES)
#define MARK 2 /* the block behind the two */

static const uint8_t magic[8] = {'D', 'A', 'F', 'L', 'S', 'T', 'O', '1'};

static dafl_err get_stamp(store_stamp *out, dafl_bytes block, const char *label)
{
    dafl_reader r = dafl_read(block);
    dafl_digest check, wanted;
    store_stamp got = {0};
    uint8_t first[sizeof magic];

    DAFL_TRY(dafl_get_fixed(&r, first, sizeof first));
    DAFL_TRY(dafl_get_fixed(&r, got.id, sizeof got.id));
    DAFL_TRY(dafl_get_u64(&r, &got.serial));
    DAFL_TRY(dafl_get_u64(&r, &got.generation));
    DAFL_TRY(dafl_get_u32(&r, &got.stride));
    DAFL_TRY(dafl_get_u32(&r, &got.n));
    DAFL_TRY(dafl_get_fixed(&r, check.b, sizeof check.b));
    dafl_hash_one(&wanted, label, (dafl_bytes){block.ptr, BODY_BYTES});
    if (memcmp(first, magic, sizeof magic) != 0 ||
        !dafl_digest_equal(&check, &wanted))
        return DAFL_ERR_PEER;
    *out = got;
    return DAFL_OK;
}

/* *found: block `i` is whole. */
static dafl_err read_block(store_stamp *out, bool *found, const store_file *f,
                           uint64_t i, const char *label, dafl_why *why)
{
    uint8_t block[BYTES];
    size_t len = 0;

    DAFL_TRY(
        store_file_read(f, block, sizeof block, i * STORE_BLOCK, &len, why));
    *found = get_stamp(out, (dafl_bytes){block, len}, label) == DAFL_OK;
    return DAFL_OK;
}

dafl_err store_stamp_read(store_stamp *out, bool *found, const store_file *f,
                          const char *label, dafl_why *why)
{
    *found = false;
    for (uint64_t i = 0; i < 2; i++) {
        store_stamp got;
        bool whole = false;

        DAFL_TRY(read_block(&got, &whole, f, i, label, why));
        if (!whole || (*found && got.serial < out->serial))
            continue;
        *out = got;
        *found = true;
    }
    return DAFL_OK;
}

/* Write it over block `i`. */
static dafl_err put_stamp(const store_stamp *stamp, const store_file *f,
                          uint64_t i, const char *label, dafl_why *why)
{
    dafl_writer w = {0};
    dafl_digest check;
    dafl_err err;

    dafl_put_fixed(&w, magic, sizeof magic);
    dafl_put_fixed(&w, stamp->id, sizeof stamp->id);
    dafl_put_u64(&w, stamp->serial);
    dafl_put_u64(&w, stamp->generation);
    dafl_put_u32(&w, stamp->stride);
    dafl_put_u32(&w, stamp->n);
    dafl_hash_one(&check, label, dafl_writer_bytes(&w));
    dafl_put_fixed(&w, check.b, sizeof check.b);
    err = dafl_writer_done(&w);
    if (err == DAFL_OK)
        err = store_file_write(f, w.ptr, w.len, i * STORE_BLOCK, why);
    else
        dafl_why_set(why, "%s: out of memory", f->path);
    dafl_writer_drop(&w);
    return err;
}

dafl_err store_stamp_write(store_stamp *stamp, const store_file *f,
                           const char *label, dafl_why *why)
{
    store_stamp next = *stamp;

    next.serial++;
    DAFL_TRY(put_stamp(&next, f, next.serial % 2, label, why));
    DAFL_TRY(store_file_sync(f, why));
    *stamp = next;
    return DAFL_OK;
}

dafl_err store_mark_read(store_stamp *out, bool *found, const store_file *f,
                         const char *label, dafl_why *why)
{
    return read_block(out, found, f, MARK, label, why);
}

dafl_err store_mark_write(const store_stamp *mark, const store_file *f,
                          const char *label, dafl_why *why)
{
    return put_stamp(mark, f, MARK, label, why);
}
