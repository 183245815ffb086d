/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/codec.h"

#include <string.h>

#include "lib/secret.h"

dafl_reader dafl_read(dafl_bytes bytes)
{
    return (dafl_reader){bytes.ptr, bytes.len};
}

dafl_err dafl_get_view(dafl_reader *r, dafl_bytes *out, uint64_t len)
{
    if (len > r->left)
        return DAFL_ERR_PEER;
    *out = (dafl_bytes){r->at, (size_t)len};
    if (len > 0)
        r->at += len;
    r->left -= (size_t)len;
    return DAFL_OK;
}

dafl_err dafl_get_items(dafl_reader *r, dafl_bytes *out, uint64_t count,
                        size_t size)
{
    if (size != 0 && count > r->left / size)
        return DAFL_ERR_PEER;
    return dafl_get_view(r, out, count * size);
}

dafl_err dafl_get_fixed(dafl_reader *r, void *out, size_t len)
{
    dafl_bytes view;

    DAFL_TRY(dafl_get_view(r, &view, len));
    if (len > 0)
        memcpy(out, view.ptr, len);
    return DAFL_OK;
}

/* An integer of n <= 8 bytes. */
static dafl_err get_integer(dafl_reader *r, uint64_t *out, size_t n)
{
    dafl_bytes view;
    uint64_t v = 0;

    DAFL_TRY(dafl_get_view(r, &view, n));
    for (size_t i = n; i-- > 0;)
        v = v << 8 | view.ptr[i];
    *out = v;
    return DAFL_OK;
}

dafl_err dafl_get_u8(dafl_reader *r, uint8_t *out)
{
    uint64_t v = 0;

    DAFL_TRY(get_integer(r, &v, 1));
    *out = (uint8_t)v;
    return DAFL_OK;
}

dafl_err dafl_get_u16(dafl_reader *r, uint16_t *out)
{
    uint64_t v = 0;

    DAFL_TRY(get_integer(r, &v, 2));
    *out = (uint16_t)v;
    return DAFL_OK;
}

dafl_err dafl_get_u32(dafl_reader *r, uint32_t *out)
{
    uint64_t v = 0;

    DAFL_TRY(get_integer(r, &v, 4));
    *out = (uint32_t)v;
    return DAFL_OK;
}

dafl_err dafl_get_u64(dafl_reader *r, uint64_t *out)
{
    return get_integer(r, out, 8);
}

dafl_err dafl_get_end(const dafl_reader *r)
{
    return r->left == 0 ? DAFL_OK : DAFL_ERR_PEER;
}

/* Room for `more` bytes; false, and failed for good, when there is none. */
static bool make_room(dafl_writer *w, size_t more)
{
    size_t room = w->room < 256 ? 256 : w->room;
    uint8_t *ptr;

    if (w->failed || more > SIZE_MAX / 4 - w->len) {
        w->failed = true;
        return false;
    }
    if (more <= w->room - w->len)
        return true;
    while (room < w->len + more)
        room *= 2;
    ptr = dafl_bulk_alloc(room, 1);
    if (ptr == NULL) {
        w->failed = true;
        return false;
    }
    if (w->len > 0)
        memcpy(ptr, w->ptr, w->len);
    dafl_bulk_free(w->ptr);
    w->ptr = ptr;
    w->room = room;
    return true;
}

void dafl_put_fixed(dafl_writer *w, const void *bytes, size_t len)
{
    if (!make_room(w, len) || len == 0)
        return;
    memcpy(w->ptr + w->len, bytes, len);
    w->len += len;
}

uint8_t *dafl_put_room(dafl_writer *w, size_t len)
{
    if (!make_room(w, len))
        return NULL;
    w->len += len;
    return w->ptr + (w->len - len);
}

static void put_integer(dafl_writer *w, uint64_t v, size_t n)
{
    uint8_t le[8];

    for (size_t i = 0; i < n; i++, v >>= 8)
        le[i] = (uint8_t)v;
    dafl_put_fixed(w, le, n);
}

void dafl_put_u8(dafl_writer *w, uint8_t v)
{
    put_integer(w, v, 1);
}

void dafl_put_u16(dafl_writer *w, uint16_t v)
{
    put_integer(w, v, 2);
}

void dafl_put_u32(dafl_writer *w, uint32_t v)
{
    put_integer(w, v, 4);
}

void dafl_put_u64(dafl_writer *w, uint64_t v)
{
    put_integer(w, v, 8);
}

dafl_err dafl_writer_done(const dafl_writer *w)
{
    return w->failed ? DAFL_ERR_NOMEM : DAFL_OK;
}

dafl_bytes dafl_writer_bytes(const dafl_writer *w)
{
    return (dafl_bytes){w->ptr, w->len};
}

void dafl_writer_clear(dafl_writer *w)
{
    w->len = 0;
    w->failed = false;
}

void dafl_writer_drop(dafl_writer *w)
{
    dafl_bulk_free(w->ptr);
    *w = (dafl_writer){0};
}
