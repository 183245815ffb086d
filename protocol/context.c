/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/context.h"

#include "protocol/weaken.h"

static void part_members(dafl_hash *h, const dafl_members *m)
{
    uint8_t n[2] = {(uint8_t)m->n, (uint8_t)(m->n >> 8)};
    size_t len = ((size_t)m->n + 7) / 8;

    dafl_hash_begin(h, sizeof n + len);
    dafl_hash_piece(h, n, sizeof n);
    dafl_hash_piece(h, m->bits, len);
}

void dafl_context_keys(dafl_digest *hk, dafl_bytes keys)
{
    dafl_hash_one(hk, "deepafl/hk", keys);
}

void dafl_context_enroll(dafl_digest *out, const dafl_run_id *run,
                         uint32_t enrolment, uint16_t u, const dafl_public *ek,
                         const dafl_digest *hk)
{
    dafl_hash h;

    dafl_hash_init(&h, "deepafl/enroll");
    dafl_hash_part(&h, run->b, sizeof run->b);
    dafl_hash_u32(&h, DAFL_WEAK(ENROLMENT) ? 0 : enrolment);
    dafl_hash_u16(&h, u);
    dafl_hash_part(&h, ek->b, sizeof ek->b);
    dafl_hash_digest(&h, hk);
    dafl_hash_end(&h, out);
}

void dafl_context_shares(dafl_digest *h_shares, dafl_bytes dealt_part)
{
    dafl_hash_one(h_shares, "deepafl/shares", dealt_part);
}

void dafl_context_dealt(dafl_digest *out, const dafl_run_id *run,
                        uint32_t enrolment, uint16_t u,
                        const dafl_digest *h_shares)
{
    dafl_hash h;

    dafl_hash_init(&h, "deepafl/dealt");
    dafl_hash_part(&h, run->b, sizeof run->b);
    dafl_hash_u32(&h, DAFL_WEAK(ENROLMENT) ? 0 : enrolment);
    dafl_hash_u16(&h, u);
    dafl_hash_digest(&h, h_shares);
    dafl_hash_end(&h, out);
}

void dafl_context_setup(dafl_digest *h_setup, const dafl_run_id *run,
                        const dafl_digest *roster, const dafl_digest *config,
                        uint16_t t, const dafl_setup_member *members, size_t n)
{
    dafl_hash h;

    dafl_hash_init(&h, "deepafl/setup");
    dafl_hash_part(&h, run->b, sizeof run->b);
    if (!DAFL_WEAK(SPLIT)) {
        dafl_hash_digest(&h, roster);
        dafl_hash_digest(&h, config);
        dafl_hash_u16(&h, t);
    }
    for (size_t i = 0; i < n && !DAFL_WEAK(SPLIT); i++) {
        dafl_hash_u16(&h, members[i].client);
        dafl_hash_part(&h, members[i].ek.b, sizeof members[i].ek.b);
        dafl_hash_digest(&h, &members[i].hk);
        dafl_hash_digest(&h, &members[i].dealt);
    }
    dafl_hash_end(&h, h_setup);
}

void dafl_context_model(dafl_digest *model, const dafl_segment *segment)
{
    uint8_t kind = segment->kind;
    dafl_hash h;

    dafl_hash_init(&h, "deepafl/model");
    dafl_hash_digest(&h, model);
    dafl_hash_u32(&h, segment->query);
    dafl_hash_part(&h, &kind, sizeof kind);
    dafl_hash_u16(&h, segment->layer);
    dafl_hash_u32(&h, segment->slot);
    dafl_hash_part(&h, segment->bytes.ptr, segment->bytes.len);
    dafl_hash_end(&h, model);
}

void dafl_context_he(dafl_digest *he, dafl_bytes pk)
{
    dafl_hash_one(he, "deepafl/he", pk);
}

void dafl_context_key(dafl_digest *key, const dafl_run_id *run,
                      const dafl_digest *h_setup, uint32_t slot,
                      const dafl_digest *he)
{
    dafl_hash h;

    dafl_hash_init(&h, "deepafl/key");
    dafl_hash_part(&h, run->b, sizeof run->b);
    dafl_hash_digest(&h, h_setup);
    dafl_hash_u32(&h, slot);
    dafl_hash_digest(&h, he);
    dafl_hash_end(&h, key);
}

void dafl_context_slot(dafl_digest *ctx, const dafl_digest *h_setup,
                       const dafl_slot_task *task)
{
    dafl_hash h;

    dafl_hash_init(&h, "deepafl/ctx");
    dafl_hash_digest(&h, h_setup);
    dafl_hash_u32(&h, task->slot);
    dafl_hash_u32(&h, task->query);
    dafl_hash_u32(&h, DAFL_WEAK(VARIANT) ? 0 : task->rank);
    if (!DAFL_WEAK(BINDING))
        dafl_hash_digest(&h, &task->model);
    dafl_hash_u64(&h, task->len);
    dafl_hash_part(&h, &task->w, sizeof task->w);
    dafl_hash_digest(&h, &task->he);
    dafl_hash_end(&h, ctx);
}

void dafl_context_cast(dafl_digest *ctx2, const dafl_digest *ctx,
                       const dafl_members *a)
{
    dafl_hash h;

    dafl_hash_init(&h, "deepafl/cast");
    dafl_hash_digest(&h, ctx);
    part_members(&h, a);
    dafl_hash_end(&h, ctx2);
}

void dafl_context_upload_begin(dafl_hash *h, const dafl_digest *ctx2,
                               uint16_t u, size_t len)
{
    dafl_hash_init(h, "deepafl/up");
    dafl_hash_digest(h, ctx2);
    dafl_hash_u16(h, u);
    dafl_hash_begin(h, len);
}

void dafl_context_upload(dafl_digest *dig, const dafl_digest *ctx2, uint16_t u,
                         dafl_bytes upload)
{
    dafl_hash h;

    dafl_context_upload_begin(&h, ctx2, u, upload.len);
    dafl_hash_piece(&h, upload.ptr, upload.len);
    dafl_hash_end(&h, dig);
}

void dafl_context_end(dafl_digest *end, const dafl_digest *ctx2, uint16_t u,
                      const dafl_digest *dig)
{
    dafl_hash h;

    dafl_hash_init(&h, "deepafl/end");
    if (!DAFL_WEAK(AGREED))
        dafl_hash_digest(&h, ctx2);
    dafl_hash_u16(&h, u);
    dafl_hash_digest(&h, dig);
    dafl_hash_end(&h, end);
}

void dafl_context_statement(dafl_digest *stmt, const dafl_digest *ctx2,
                            const dafl_members *u3, dafl_bytes digests)
{
    dafl_hash h;

    dafl_hash_init(&h, "deepafl/stmt");
    dafl_hash_digest(&h, ctx2);
    part_members(&h, u3);
    dafl_hash_part(&h, digests.ptr, digests.len);
    dafl_hash_end(&h, stmt);
}

void dafl_context_sealed(dafl_digest *sealed, const dafl_digest *ctx2,
                         dafl_bytes ciphertexts)
{
    dafl_hash h;

    dafl_hash_init(&h, "deepafl/sealed");
    dafl_hash_digest(&h, ctx2);
    dafl_hash_part(&h, ciphertexts.ptr, ciphertexts.len);
    dafl_hash_end(&h, sealed);
}

void dafl_context_opened(dafl_digest *opened, const dafl_digest *sealed,
                         dafl_bytes words)
{
    dafl_hash h;

    dafl_hash_init(&h, "deepafl/opened");
    dafl_hash_digest(&h, sealed);
    dafl_hash_part(&h, words.ptr, words.len);
    dafl_hash_end(&h, opened);
}
