/* SPDX-License-Identifier: Apache-2.0 */
#include "agents/vault.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "crypto/hash.h"
#include "lib/codec.h"
#include "lib/secret.h"

#define LABEL "deepafl/vault-stamp"
#define HEAD_BYTES (DAFL_HASH_BYTES + 4 + 4)

typedef struct {
    uint32_t slot; /* 0: nothing is kept here */
    bool torn;
} place;

struct vault {
    store_file file;
    store_stamp stamp;
    uint32_t stride, n; /* as wanted; the stamp says what the file has */
    place *places;      /* stamp.n */
    uint8_t *record;    /* secret, stamp.stride bytes */
    bool dirty;
};

static uint64_t offset_of(const vault *v, uint32_t p)
{
    return STORE_STAMP_BYTES + (uint64_t)p * v->stamp.stride;
}

static void check_of(dafl_digest *out, const vault *v, uint32_t slot,
                     const uint8_t *bytes, size_t len)
{
    dafl_hash h;

    dafl_hash_init(&h, "deepafl/vault");
    dafl_hash_part(&h, v->stamp.id, sizeof v->stamp.id);
    dafl_hash_u32(&h, slot);
    dafl_hash_part(&h, bytes, len);
    dafl_hash_end(&h, out);
}

/* ---- one record ---- */

/* Read place p into v->record. *slot is 0 when it holds no whole record. */
static dafl_err load(vault *v, uint32_t p, uint32_t *slot, dafl_bytes *secret,
                     dafl_why *why)
{
    dafl_digest check, wanted;
    dafl_reader r;
    uint32_t len = 0;
    size_t got = 0;

    *slot = 0;
    DAFL_TRY(store_file_read(&v->file, v->record, v->stamp.stride,
                             offset_of(v, p), &got, why));
    if (got < v->stamp.stride)
        return dafl_fail(why, DAFL_ERR_INPUT, "%s: its end is missing: %s",
                         v->file.path, STORE_LOST);
    r = dafl_read((dafl_bytes){v->record, got});
    if (dafl_get_fixed(&r, check.b, sizeof check.b) != DAFL_OK ||
        dafl_get_u32(&r, slot) != DAFL_OK || dafl_get_u32(&r, &len) != DAFL_OK)
        return DAFL_ERR_ARG; /* a stride is longer than a head */
    if (*slot == 0 || (*slot - 1) % v->stamp.n != p ||
        dafl_get_view(&r, secret, len) != DAFL_OK) {
        *slot = 0;
        return DAFL_OK;
    }
    check_of(&wanted, v, *slot, secret->ptr, secret->len);
    if (!dafl_digest_equal(&check, &wanted))
        *slot = 0;
    return DAFL_OK;
}

/* Write zeros over place p. */
static dafl_err wipe(vault *v, uint32_t p, dafl_why *why)
{
    dafl_wipe(v->record, v->stamp.stride);
    v->dirty = true;
    DAFL_TRY(store_file_write(&v->file, v->record, v->stamp.stride,
                              offset_of(v, p), why));
    v->places[p] = (place){0, false};
    return DAFL_OK;
}

/* ---- the file ---- */

/* Memory for the sizes of the stamp. */
static dafl_err make_room(vault *v, dafl_why *why)
{
    place *places = calloc(v->stamp.n, sizeof *places);
    uint8_t *record = dafl_secret_alloc(v->stamp.stride, 1);

    if (places == NULL || record == NULL) {
        free(places);
        dafl_secret_free(record);
        return dafl_fail(why, DAFL_ERR_NOMEM, "%s: out of memory",
                         v->file.path);
    }
    free(v->places);
    dafl_secret_free(v->record);
    v->places = places;
    v->record = record;
    return DAFL_OK;
}

/* Give a vault without secrets the sizes that are wanted: zeros, then stamps
 * that say so, both of them, so that none tells of other places. */
static dafl_err lay_out(vault *v, dafl_why *why)
{
    store_stamp before = v->stamp;
    dafl_err err;

    v->stamp.stride = v->stride;
    v->stamp.n = v->n;
    err = make_room(v, why);
    if (err != DAFL_OK) {
        v->stamp = before; /* the memory is still that of before */
        return err;
    }
    for (uint32_t p = 0; p < v->n; p++)
        DAFL_TRY(wipe(v, p, why));
    DAFL_TRY(vault_sync(v, why));
    DAFL_TRY(store_stamp_write(&v->stamp, &v->file, LABEL, why));
    return store_stamp_write(&v->stamp, &v->file, LABEL, why);
}

/* Which place holds what. */
static dafl_err survey(vault *v, dafl_why *why)
{
    for (uint32_t p = 0; p < v->stamp.n; p++) {
        dafl_bytes secret;
        DAFL_TRY(load(v, p, &v->places[p].slot, &secret, why));
        v->places[p].torn = v->places[p].slot == 0 &&
                            !sodium_is_zero(v->record, v->stamp.stride);
    }
    dafl_wipe(v->record, v->stamp.stride);
    return DAFL_OK;
}

/* Any slot whose secrets are kept; 0: none. */
static uint32_t kept_slot(const vault *v)
{
    for (uint32_t p = 0; p < v->stamp.n; p++)
        if (v->places[p].slot != 0)
            return v->places[p].slot;
    return 0;
}

/* Larger records than wanted do no harm. */
static bool fits(const vault *v)
{
    return v->stamp.n == v->n && v->stamp.stride >= v->stride;
}

static dafl_err load_file(vault *v, bool fresh, const uint8_t *id,
                          dafl_why *why)
{
    const char *path = v->file.path;
    bool found = false;

    DAFL_TRY(store_stamp_read(&v->stamp, &found, &v->file, LABEL, why));
    if (!found && fresh) {
        v->stamp = (store_stamp){0};
        memcpy(v->stamp.id, id, STORE_ID_BYTES);
        return lay_out(v, why);
    }
    if (!found)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "%s: is damaged or not a vault: %s", path, STORE_LOST);
    if (memcmp(v->stamp.id, id, STORE_ID_BYTES) != 0)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "%s: belongs to another journal: %s", path,
                         STORE_LOST);
    if (v->stamp.n == 0 || v->stamp.n > VAULT_SLOTS_MAX ||
        v->stamp.stride == 0 || v->stamp.stride % STORE_BLOCK != 0 ||
        v->stamp.stride > VAULT_RECORD_MAX + (size_t)2 * STORE_BLOCK)
        return dafl_fail(why, DAFL_ERR_INPUT, "%s: its sizes make no sense: %s",
                         path, STORE_LOST);
    DAFL_TRY(make_room(v, why));
    return survey(v, why);
}

dafl_err vault_open(vault **out, const char *path, bool fresh,
                    const uint8_t id[STORE_ID_BYTES], size_t record_bytes,
                    uint32_t slots, dafl_why *why)
{
    dafl_err err = DAFL_ERR_ARG;
    vault *v = NULL;

    if (record_bytes == 0 || record_bytes > VAULT_RECORD_MAX || slots == 0 ||
        slots > VAULT_SLOTS_MAX)
        return dafl_fail(why, err, "%s: cannot hold %lu records of %zu bytes",
                         path, (unsigned long)slots, record_bytes);
    if (!fresh && !store_path_taken(path))
        return dafl_fail(why, DAFL_ERR_INPUT, "%s: is missing: %s", path,
                         STORE_LOST);
    v = calloc(1, sizeof *v);
    if (v == NULL)
        return dafl_fail(why, DAFL_ERR_NOMEM, "%s: out of memory", path);
    v->file.fd = -1;
    v->n = slots;
    v->stride = (uint32_t)((HEAD_BYTES + record_bytes + STORE_BLOCK - 1) /
                           STORE_BLOCK * STORE_BLOCK);
    err = store_file_open(&v->file, path, fresh ? O_CREAT : 0, 077, why);
    if (err == DAFL_OK)
        err = load_file(v, fresh, id, why);
    if (err == DAFL_OK)
        *out = v;
    else
        vault_close(&v);
    return err;
}

void vault_close(vault **out)
{
    if (*out == NULL)
        return;
    store_file_close(&(*out)->file);
    free((*out)->places);
    dafl_secret_free((*out)->record);
    free(*out);
    *out = NULL;
}

uint64_t vault_generation(const vault *v)
{
    return v->stamp.generation;
}

dafl_err vault_begin(vault *v, uint64_t generation, dafl_why *why)
{
    for (uint32_t p = 0; p < v->stamp.n; p++)
        if (v->places[p].torn)
            DAFL_TRY(wipe(v, p, why));
    DAFL_TRY(vault_sync(v, why));
    v->stamp.generation = generation;
    if (!fits(v) && kept_slot(v) == 0)
        return lay_out(v, why);
    return store_stamp_write(&v->stamp, &v->file, LABEL, why);
}

/* ---- secrets ---- */

dafl_err vault_keep(vault *v, uint32_t slot, dafl_bytes secret, dafl_why *why)
{
    dafl_err err;
    dafl_digest check;
    dafl_writer head = {0};
    uint32_t p;

    if (slot == 0 || secret.len > v->stride - HEAD_BYTES)
        return dafl_fail(why, DAFL_ERR_ARG,
                         "%s: has no place for %zu bytes of slot %lu",
                         v->file.path, secret.len, (unsigned long)slot);
    if (!fits(v))
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "%s: still holds secrets of slot %lu of a run with "
                         "other sizes; finish that run first",
                         v->file.path, (unsigned long)kept_slot(v));
    p = (slot - 1) % v->stamp.n;
    check_of(&check, v, slot, secret.ptr, secret.len);
    dafl_put_fixed(&head, check.b, sizeof check.b);
    dafl_put_u32(&head, slot);
    dafl_put_u32(&head, (uint32_t)secret.len);
    err = dafl_writer_done(&head);
    if (err == DAFL_OK) {
        dafl_wipe(v->record, v->stamp.stride);
        memcpy(v->record, head.ptr, head.len);
        if (secret.len > 0)
            memcpy(v->record + head.len, secret.ptr, secret.len);
        v->dirty = true;
        err = store_file_write(&v->file, v->record, v->stamp.stride,
                               offset_of(v, p), why);
        dafl_wipe(v->record, v->stamp.stride);
    } else {
        dafl_why_set(why, "%s: out of memory", v->file.path);
    }
    dafl_writer_drop(&head);
    if (err == DAFL_OK)
        v->places[p] = (place){slot, false};
    return err;
}

dafl_err vault_erase(vault *v, uint32_t upto, dafl_why *why)
{
    for (uint32_t p = 0; p < v->stamp.n; p++)
        if (v->places[p].slot != 0 && v->places[p].slot <= upto)
            DAFL_TRY(wipe(v, p, why));
    return !fits(v) && kept_slot(v) == 0 ? lay_out(v, why) : DAFL_OK;
}

dafl_err vault_sync(vault *v, dafl_why *why)
{
    if (v->dirty)
        DAFL_TRY(store_file_sync(&v->file, why));
    v->dirty = false;
    return DAFL_OK;
}

dafl_err vault_each(vault *v, vault_fn *fn, void *ctx, bool *ours,
                    dafl_why *why)
{
    dafl_err err = DAFL_OK;

    *ours = true;
    for (uint32_t p = 0; p < v->stamp.n && err == DAFL_OK; p++) {
        dafl_bytes secret;
        uint32_t slot = 0;
        if (v->places[p].slot == 0)
            continue;
        err = load(v, p, &slot, &secret, why);
        if (err != DAFL_OK || slot == 0)
            continue;
        err = fn(ctx, slot, secret);
        *ours = err == DAFL_OK;
    }
    dafl_wipe(v->record, v->stamp.stride);
    return err;
}
