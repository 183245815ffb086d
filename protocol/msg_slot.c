/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of a slot, both directions. */
#include "protocol/messages.h"

#define REVEALED_BYTES (2 + 1 + 32)

const char *dafl_msg_name(unsigned type)
{
    static const char *const names[DAFL_MSG_COUNT] = {
        "?",         "INVITE", "ENROLL", "PEERS",  "SHARES", "SETUP",
        "SETUP_ACK", "MODEL",  "READY",  "CAST",   "UPLOAD", "END",
        "SURV",      "SIGN",   "CONF",   "REVEAL", "RESULT", "HELLO",
        "ASK",       "KEY",    "OPEN",   "OPENED"};

    return type < DAFL_MSG_COUNT ? names[type] : "?";
}

static void put_segment(dafl_writer *w, const dafl_segment *s)
{
    dafl_put_u32(w, s->query);
    dafl_put_u8(w, s->kind);
    dafl_put_u16(w, s->layer);
    dafl_put_u32(w, s->slot);
    dafl_put_u64(w, s->bytes.len);
    dafl_put_fixed(w, s->bytes.ptr, s->bytes.len);
}

static dafl_err get_segment(dafl_reader *r, dafl_segment *out)
{
    dafl_segment s;
    uint64_t len = 0;

    DAFL_TRY(dafl_get_u32(r, &s.query));
    DAFL_TRY(dafl_get_u8(r, &s.kind));
    DAFL_TRY(dafl_get_u16(r, &s.layer));
    DAFL_TRY(dafl_get_u32(r, &s.slot));
    DAFL_TRY(dafl_get_u64(r, &len));
    DAFL_TRY(dafl_get_view(r, &s.bytes, len));
    *out = s;
    return DAFL_OK;
}

void dafl_put_model(dafl_writer *w, const dafl_model_msg *m,
                    const dafl_segment *segments)
{
    dafl_put_u32(w, m->query);
    dafl_put_u32(w, m->rank);
    dafl_put_u32(w, (uint32_t)m->key.len);
    dafl_put_fixed(w, m->key.ptr, m->key.len);
    dafl_put_u16(w, m->n);
    for (size_t i = 0; i < m->n; i++)
        put_segment(w, &segments[i]);
}

dafl_err dafl_get_model(dafl_model_msg *m, dafl_bytes body)
{
    dafl_reader r = dafl_read(body);
    dafl_model_msg got;
    dafl_segment segment;
    uint32_t key_len = 0;

    DAFL_TRY(dafl_get_u32(&r, &got.query));
    DAFL_TRY(dafl_get_u32(&r, &got.rank));
    DAFL_TRY(dafl_get_u32(&r, &key_len));
    DAFL_TRY(dafl_get_view(&r, &got.key, key_len));
    DAFL_TRY(dafl_get_u16(&r, &got.n));
    got.list = (dafl_bytes){r.at, r.left};
    for (size_t i = 0; i < got.n; i++)
        DAFL_TRY(get_segment(&r, &segment));
    DAFL_TRY(dafl_get_end(&r));
    *m = got;
    return DAFL_OK;
}

dafl_err dafl_model_next(dafl_model_msg *m, dafl_segment *out)
{
    dafl_reader r = dafl_read(m->list);

    if (m->n == 0)
        return DAFL_ERR_ARG;
    DAFL_TRY(get_segment(&r, out));
    m->n--;
    m->list = (dafl_bytes){r.at, r.left};
    return DAFL_OK;
}

/* A body that is one value of fixed length. */
static dafl_err get_only(void *out, size_t len, dafl_bytes body)
{
    dafl_reader r = dafl_read(body);

    if (body.len != len)
        return DAFL_ERR_PEER;
    return dafl_get_fixed(&r, out, len);
}

void dafl_put_ready(dafl_writer *w, const dafl_digest *ctx)
{
    dafl_put_fixed(w, ctx->b, sizeof ctx->b);
}

dafl_err dafl_get_ready(dafl_digest *ctx, dafl_bytes body)
{
    return get_only(ctx->b, sizeof ctx->b, body);
}

void dafl_put_cast(dafl_writer *w, const dafl_members *a)
{
    dafl_put_members(w, a);
}

dafl_err dafl_get_cast(dafl_members *a, dafl_bytes body)
{
    dafl_reader r = dafl_read(body);
    dafl_members got;

    DAFL_TRY(dafl_get_members(&r, &got));
    DAFL_TRY(dafl_get_end(&r));
    *a = got;
    return DAFL_OK;
}

void dafl_put_upload(dafl_writer *w, const dafl_upload *m)
{
    dafl_put_u64(w, m->offset);
    dafl_put_fixed(w, m->chunk.ptr, m->chunk.len);
}

dafl_err dafl_get_upload(dafl_upload *m, dafl_bytes body)
{
    dafl_reader r = dafl_read(body);
    dafl_upload got;

    DAFL_TRY(dafl_get_u64(&r, &got.offset));
    if (r.left == 0)
        return DAFL_ERR_PEER;
    got.chunk = (dafl_bytes){r.at, r.left};
    *m = got;
    return DAFL_OK;
}

void dafl_put_end(dafl_writer *w, const dafl_end_msg *m)
{
    dafl_put_u64(w, m->len);
    dafl_put_fixed(w, m->dig.b, sizeof m->dig.b);
    dafl_put_fixed(w, m->sig.b, sizeof m->sig.b);
}

dafl_err dafl_get_end_msg(dafl_end_msg *m, dafl_bytes body)
{
    dafl_reader r = dafl_read(body);
    dafl_end_msg got;

    DAFL_TRY(dafl_get_u64(&r, &got.len));
    DAFL_TRY(dafl_get_fixed(&r, got.dig.b, sizeof got.dig.b));
    DAFL_TRY(dafl_get_fixed(&r, got.sig.b, sizeof got.sig.b));
    DAFL_TRY(dafl_get_end(&r));
    *m = got;
    return DAFL_OK;
}

void dafl_put_surv(dafl_writer *w, const dafl_surv *m)
{
    dafl_put_members(w, &m->a);
    dafl_put_members(w, &m->u3);
    dafl_put_fixed(w, m->digests.ptr, m->digests.len);
    dafl_put_fixed(w, m->ends.ptr, m->ends.len);
}

dafl_err dafl_get_surv(dafl_surv *m, dafl_bytes body)
{
    dafl_reader r = dafl_read(body);
    dafl_surv got;

    DAFL_TRY(dafl_get_members(&r, &got.a));
    DAFL_TRY(dafl_get_members(&r, &got.u3));
    DAFL_TRY(dafl_get_items(&r, &got.digests, dafl_members_count(&got.u3),
                            DAFL_HASH_BYTES));
    DAFL_TRY(dafl_get_items(&r, &got.ends, dafl_members_count(&got.u3),
                            DAFL_SIGNATURE_BYTES));
    DAFL_TRY(dafl_get_end(&r));
    *m = got;
    return DAFL_OK;
}

void dafl_put_sign(dafl_writer *w, const dafl_signature *sig)
{
    dafl_put_fixed(w, sig->b, sizeof sig->b);
}

dafl_err dafl_get_sign(dafl_signature *sig, dafl_bytes body)
{
    return get_only(sig->b, sizeof sig->b, body);
}

void dafl_put_conf(dafl_writer *w, const dafl_conf *m)
{
    dafl_put_members(w, &m->signers);
    dafl_put_fixed(w, m->signatures.ptr, m->signatures.len);
}

dafl_err dafl_get_conf(dafl_conf *m, dafl_bytes body)
{
    dafl_reader r = dafl_read(body);
    dafl_conf got;

    DAFL_TRY(dafl_get_members(&r, &got.signers));
    DAFL_TRY(dafl_get_items(&r, &got.signatures,
                            dafl_members_count(&got.signers),
                            DAFL_SIGNATURE_BYTES));
    DAFL_TRY(dafl_get_end(&r));
    *m = got;
    return DAFL_OK;
}

void dafl_put_reveal(dafl_writer *w, const dafl_revealed *items, uint16_t n)
{
    dafl_put_u16(w, n);
    for (size_t i = 0; i < n; i++) {
        dafl_put_u16(w, items[i].dealer);
        dafl_put_u8(w, (uint8_t)items[i].kind);
        dafl_put_fixed(w, items[i].share.b, sizeof items[i].share.b);
    }
}

/* One revealed share; dealers ascend from *least on. */
static dafl_err get_revealed(dafl_reader *r, dafl_revealed *out,
                             uint32_t *least)
{
    uint8_t kind = 0;

    DAFL_TRY(dafl_get_u16(r, &out->dealer));
    DAFL_TRY(dafl_get_u8(r, &kind));
    DAFL_TRY(dafl_get_fixed(r, out->share.b, sizeof out->share.b));
    if ((kind != DAFL_REVEAL_B && kind != DAFL_REVEAL_SK) ||
        out->dealer < *least || out->dealer >= DAFL_CLIENTS_MAX)
        return DAFL_ERR_PEER;
    out->kind = (dafl_reveal_kind)kind;
    *least = out->dealer + 1u;
    return DAFL_OK;
}

dafl_err dafl_get_reveal(dafl_reveal *m, dafl_bytes body)
{
    dafl_reader r = dafl_read(body), items;
    dafl_reveal got;
    dafl_revealed one;
    uint32_t least = 0;
    dafl_err err = DAFL_OK;

    DAFL_TRY(dafl_get_u16(&r, &got.n));
    DAFL_TRY(dafl_get_items(&r, &got.list, got.n, REVEALED_BYTES));
    DAFL_TRY(dafl_get_end(&r));
    items = dafl_read(got.list);
    for (size_t i = 0; i < got.n && err == DAFL_OK; i++)
        err = get_revealed(&items, &one, &least);
    sodium_memzero(&one, sizeof one);
    if (err == DAFL_OK)
        *m = got;
    return err;
}

dafl_revealed dafl_reveal_at(const dafl_reveal *m, size_t i)
{
    dafl_reader r = dafl_read(
        (dafl_bytes){m->list.ptr + i * REVEALED_BYTES, REVEALED_BYTES});
    dafl_revealed one = {0};
    uint32_t least = 0;

    if (get_revealed(&r, &one, &least) != DAFL_OK)
        return (dafl_revealed){0}; /* the decoder has checked it */
    return one;
}

void dafl_put_result(dafl_writer *w, const dafl_result *m)
{
    dafl_put_u16(w, m->fault);
    dafl_put_fixed(w, m->sum.b, sizeof m->sum.b);
}

dafl_err dafl_get_result(dafl_result *m, dafl_bytes body)
{
    dafl_reader r = dafl_read(body);
    dafl_result got;

    DAFL_TRY(dafl_get_u16(&r, &got.fault));
    DAFL_TRY(dafl_get_fixed(&r, got.sum.b, sizeof got.sum.b));
    DAFL_TRY(dafl_get_end(&r));
    if (got.fault >= DAFL_FAULT_COUNT)
        return DAFL_ERR_PEER;
    *m = got;
    return DAFL_OK;
}

void dafl_put_hello(dafl_writer *w, const dafl_hello *m)
{
    dafl_put_u32(w, m->keys);
    dafl_put_u32(w, m->last_slot);
    dafl_put_fixed(w, m->model.b, sizeof m->model.b);
}

dafl_err dafl_get_hello(dafl_hello *m, dafl_bytes body)
{
    dafl_reader r = dafl_read(body);
    dafl_hello got;

    DAFL_TRY(dafl_get_u32(&r, &got.keys));
    DAFL_TRY(dafl_get_u32(&r, &got.last_slot));
    DAFL_TRY(dafl_get_fixed(&r, got.model.b, sizeof got.model.b));
    DAFL_TRY(dafl_get_end(&r));
    *m = got;
    return DAFL_OK;
}

dafl_err dafl_get_ask(dafl_bytes body)
{
    return body.len == 0 ? DAFL_OK : DAFL_ERR_PEER;
}

void dafl_put_key_msg(dafl_writer *w, const dafl_key_msg *m)
{
    dafl_put_fixed(w, m->sig.b, sizeof m->sig.b);
    dafl_put_fixed(w, m->pk.ptr, m->pk.len);
}

dafl_err dafl_get_key_msg(dafl_key_msg *m, dafl_bytes body)
{
    dafl_reader r = dafl_read(body);
    dafl_key_msg got;

    DAFL_TRY(dafl_get_fixed(&r, got.sig.b, sizeof got.sig.b));
    got.pk = (dafl_bytes){r.at, r.left};
    *m = got;
    return DAFL_OK;
}

void dafl_put_open(dafl_writer *w, const dafl_open_msg *m)
{
    dafl_writer surv = {0};

    dafl_put_u32(w, m->query);
    dafl_put_u32(w, m->rank);
    dafl_put_fixed(w, m->model.b, sizeof m->model.b);
    dafl_put_u64(w, m->len);
    dafl_put_fixed(w, m->dig.b, sizeof m->dig.b);
    dafl_put_surv(&surv, &m->surv);
    dafl_put_u32(w, (uint32_t)surv.len);
    dafl_put_fixed(w, surv.ptr, surv.len);
    w->failed |= surv.failed;
    dafl_writer_drop(&surv);
    dafl_put_conf(w, &m->conf);
}

dafl_err dafl_get_open(dafl_open_msg *m, dafl_bytes body)
{
    dafl_reader r = dafl_read(body);
    uint32_t surv_len = 0;
    dafl_open_msg got;
    dafl_bytes surv;

    DAFL_TRY(dafl_get_u32(&r, &got.query));
    DAFL_TRY(dafl_get_u32(&r, &got.rank));
    DAFL_TRY(dafl_get_fixed(&r, got.model.b, sizeof got.model.b));
    DAFL_TRY(dafl_get_u64(&r, &got.len));
    DAFL_TRY(dafl_get_fixed(&r, got.dig.b, sizeof got.dig.b));
    DAFL_TRY(dafl_get_u32(&r, &surv_len));
    DAFL_TRY(dafl_get_view(&r, &surv, surv_len));
    DAFL_TRY(dafl_get_surv(&got.surv, surv));
    DAFL_TRY(dafl_get_conf(&got.conf, (dafl_bytes){r.at, r.left}));
    *m = got;
    return DAFL_OK;
}

void dafl_put_opened(dafl_writer *w, const dafl_digest *dig)
{
    dafl_put_fixed(w, dig->b, sizeof dig->b);
}

dafl_err dafl_get_opened(dafl_digest *dig, dafl_bytes body)
{
    return get_only(dig->b, sizeof dig->b, body);
}
