/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/envelope.h"

#include <string.h>

static const uint8_t magic[4] = {'D', 'A', 'F', '1'};

/* Everything before the body. */
static void put_header(dafl_writer *w, const dafl_envelope *m)
{
    dafl_put_fixed(w, magic, sizeof magic);
    dafl_put_u8(w, m->type);
    dafl_put_fixed(w, m->run.b, sizeof m->run.b);
    dafl_put_u32(w, m->slot);
    dafl_put_u16(w, m->sender);
    dafl_put_u64(w, m->seq);
    dafl_put_fixed(w, m->log_head.b, sizeof m->log_head.b);
    dafl_put_u64(w, m->body.len);
}

/* H("deepafl/msg", header, H("deepafl/body", body)). */
static void digest(dafl_digest *out, dafl_bytes header, dafl_bytes body)
{
    dafl_digest inner;
    dafl_hash h;

    dafl_hash_one(&inner, "deepafl/body", body);
    dafl_hash_init(&h, "deepafl/msg");
    dafl_hash_part(&h, header.ptr, header.len);
    dafl_hash_digest(&h, &inner);
    dafl_hash_end(&h, out);
}

void dafl_put_envelope(dafl_writer *w, const dafl_envelope *m,
                       const dafl_secret_identity *sender)
{
    size_t start = w->len;
    dafl_digest d;
    dafl_signature sig;

    put_header(w, m);
    if (dafl_writer_done(w) != DAFL_OK)
        return;
    digest(&d, (dafl_bytes){w->ptr + start, w->len - start}, m->body);
    dafl_sign(&sig, &d, sender);
    dafl_put_fixed(w, m->body.ptr, m->body.len);
    dafl_put_fixed(w, sig.b, sizeof sig.b);
}

static dafl_err get_fields(dafl_envelope *m, dafl_bytes bytes, uint64_t cap)
{
    dafl_reader r = dafl_read(bytes);
    uint8_t got_magic[sizeof magic];
    uint64_t len = 0;

    DAFL_TRY(dafl_get_fixed(&r, got_magic, sizeof got_magic));
    DAFL_TRY(dafl_get_u8(&r, &m->type));
    DAFL_TRY(dafl_get_fixed(&r, m->run.b, sizeof m->run.b));
    DAFL_TRY(dafl_get_u32(&r, &m->slot));
    DAFL_TRY(dafl_get_u16(&r, &m->sender));
    DAFL_TRY(dafl_get_u64(&r, &m->seq));
    DAFL_TRY(dafl_get_fixed(&r, m->log_head.b, sizeof m->log_head.b));
    DAFL_TRY(dafl_get_u64(&r, &len));
    if (len > cap)
        return DAFL_ERR_PEER;
    DAFL_TRY(dafl_get_view(&r, &m->body, len));
    DAFL_TRY(dafl_get_fixed(&r, m->sig.b, sizeof m->sig.b));
    DAFL_TRY(dafl_get_end(&r));
    if (memcmp(got_magic, magic, sizeof magic) != 0 || m->type < 1 ||
        m->type >= DAFL_MSG_COUNT)
        return DAFL_ERR_PEER;
    return DAFL_OK;
}

dafl_fault dafl_get_envelope(dafl_envelope *m, dafl_bytes bytes, uint64_t cap)
{
    dafl_envelope got;

    if (get_fields(&got, bytes, cap) != DAFL_OK)
        return DAFL_E_FORMAT;
    *m = got;
    return DAFL_FAULT_NONE;
}

dafl_fault dafl_envelope_check(const dafl_envelope *m,
                               const uint8_t sign_pk[32])
{
    dafl_writer w = {0};
    dafl_digest d;
    dafl_fault fault = DAFL_E_AUTH;

    put_header(&w, m);
    if (dafl_writer_done(&w) == DAFL_OK) {
        digest(&d, dafl_writer_bytes(&w), m->body);
        if (dafl_sign_check(&m->sig, &d, sign_pk) == DAFL_OK)
            fault = DAFL_FAULT_NONE;
    }
    dafl_writer_drop(&w);
    return fault;
}
