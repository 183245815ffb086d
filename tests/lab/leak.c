/* SPDX-License-Identifier: Apache-2.0 */
/* What the attacker sees. */
#include "tests/lab/leak_inside.h"

#include <stdlib.h>
#include <string.h>

#include "lib/ring.h"
#include "lib/secret.h"
#include "protocol/client_state.h"

leak *leak_new(lab *l, const dafl_members *colluders, bool taps)
{
    leak *k = lab_alloc(1, sizeof *k);

    k->lab = l;
    k->n = lab_server_index(l);
    k->colluders = *colluders;
    k->taps = taps;
    k->places = lab_alloc(k->n, sizeof *k->places);
    return k;
}

leak_slot *leak_slot_of(leak *k, uint32_t slot)
{
    while (k->slots.n <= slot)
        (void)lab_list_add(&k->slots, sizeof(leak_slot));
    return (leak_slot *)k->slots.items + slot;
}

const leak_setup *leak_setup_of(const leak *k, uint32_t slot)
{
    uint32_t enrolment = (slot - 1) / lab_config(k->lab)->slots;
    const leak_setup *s = (const leak_setup *)k->setups.items + enrolment;

    if (enrolment >= k->setups.n || s->t == 0)
        lab_die("leak: enrolment %u has no setup", (unsigned)enrolment);
    return s;
}

leak_vector *leak_vector_at(const leak *k, size_t i)
{
    return ((leak_vector **)k->uploads.items)[i];
}

static leak_upload *upload_at(const leak *k, size_t i)
{
    return &leak_vector_at(k, i)->up;
}

static void forget_secrets(const leak *k, leak_slot *v)
{
    if (v->secrets != NULL)
        dafl_wipe(v->secrets, k->n * sizeof *v->secrets);
    free(v->secrets);
    v->secrets = NULL;
}

void leak_free(leak **leak_)
{
    leak *k = *leak_;

    if (k == NULL)
        return;
    for (size_t i = 0; i < k->slots.n; i++) {
        leak_slot *v = (leak_slot *)k->slots.items + i;
        forget_secrets(k, v);
        free(v->held);
    }
    for (size_t i = 0; i < k->uploads.n; i++) {
        leak_vector *v = leak_vector_at(k, i);
        free(v->up.bytes);
        dafl_wipe(v, sizeof *v);
        free(v);
    }
    for (size_t i = 0; i < k->setups.n; i++)
        free((void *)(uintptr_t)((leak_setup *)k->setups.items)[i].keys.ptr);
    lab_list_drop(&k->slots);
    lab_list_drop(&k->uploads);
    lab_list_drop(&k->setups);
    free(k->places);
    free(k->rows);
    free(k->combos);
    free(k);
    *leak_ = NULL;
}

/* ---- what the attacker sees ---- */

static void learn_setup(leak *k, dafl_bytes record)
{
    dafl_reader r = dafl_read(record);
    dafl_digest h_setup;
    dafl_bytes keys;
    dafl_run_id run;
    uint32_t enrolment;
    uint8_t kind;
    leak_setup s;

    if (dafl_get_u8(&r, &kind) != DAFL_OK || kind != DAFL_RECORD_STANDS)
        return;
    if (dafl_get_fixed(&r, run.b, sizeof run.b) != DAFL_OK ||
        dafl_get_u32(&r, &enrolment) != DAFL_OK ||
        dafl_get_u16(&r, &s.t) != DAFL_OK ||
        dafl_get_fixed(&r, h_setup.b, sizeof h_setup.b) != DAFL_OK ||
        dafl_get_members(&r, &s.u0) != DAFL_OK ||
        dafl_get_members(&r, &s.u1) != DAFL_OK ||
        dafl_get_items(&r, &keys,
                       (uint64_t)dafl_members_count(&s.u1) *
                           lab_config(k->lab)->slots,
                       DAFL_SLOT_KEYS_BYTES) != DAFL_OK)
        lab_die("leak: the server's journal is not understood");
    s.keys = (dafl_bytes){lab_copy(keys), keys.len};
    while (k->setups.n <= enrolment)
        (void)lab_list_add(&k->setups, sizeof(leak_setup));
    ((leak_setup *)k->setups.items)[enrolment] = s;
}

static void learn_share(leak *k, uint32_t slot, size_t dealer, size_t holder,
                        leak_kind kind, const uint8_t share[32])
{
    leak_slot *v = leak_slot_of(k, slot);
    leak_held *h;

    if (dealer >= k->n || holder >= k->n)
        return;
    if (v->held == NULL)
        v->held = lab_alloc(k->n * k->n, sizeof *v->held);
    forget_secrets(k, v);
    h = &v->held[dealer * k->n + holder];
    h->have[kind] = true;
    memcpy(h->share[kind].b, share, sizeof h->share[kind].b);
}

/* All that a colluder's vault says of a slot. A dealer's own secrets go where
 * the shares that it would hold of itself would be. */
static void learn_vault(leak *k, uint16_t client, uint32_t slot)
{
    const leak_setup *s = leak_setup_of(k, slot);
    dafl_bytes record = lab_disk_secret(k->lab, client, slot);
    const uint8_t *at = record.ptr + DAFL_OWN_BYTES;

    if (record.ptr == NULL)
        return;
    learn_share(k, slot, client, client, LEAK_SK, record.ptr);
    learn_share(k, slot, client, client, LEAK_B, record.ptr + 32);
    for (size_t u = 0; u < k->n; u++) {
        if (!dafl_members_has(&s->u0, u))
            continue;
        if (u != client && !sodium_is_zero(at, DAFL_HELD_BYTES)) {
            learn_share(k, slot, u, client, LEAK_B, at);
            learn_share(k, slot, u, client, LEAK_SK, at + 32);
        }
        at += DAFL_HELD_BYTES;
    }
}

static void learn_colluder(leak *k, uint16_t client)
{
    uint32_t slots = lab_config(k->lab)->slots;

    for (uint32_t e = 0; e < k->setups.n; e++)
        for (uint32_t i = 0;
             i < slots && ((const leak_setup *)k->setups.items)[e].t != 0; i++)
            learn_vault(k, client, e * slots + i + 1);
}

/* A colluder's shares are known from its vault: what it reveals may be lies. */
static void learn_reveal(leak *k, const dafl_envelope *m)
{
    dafl_reveal reveal;

    if (dafl_get_reveal(&reveal, m->body) != DAFL_OK || m->sender >= k->n ||
        dafl_members_has(&k->colluders, m->sender))
        return;
    for (size_t i = 0; i < reveal.n; i++) {
        dafl_revealed r = dafl_reveal_at(&reveal, i);
        learn_share(k, m->slot, r.dealer, m->sender,
                    r.kind == DAFL_REVEAL_B ? LEAK_B : LEAK_SK, r.share.b);
    }
}

/* Whether a chunk is, or continues, what an upload has so far. */
static bool fits(const leak_upload *u, const dafl_upload *chunk, bool more)
{
    if (chunk->offset + chunk->chunk.len > u->len)
        return more && chunk->offset == u->len;
    return memcmp(u->bytes + chunk->offset, chunk->chunk.ptr,
                  chunk->chunk.len) == 0;
}

static leak_upload *new_upload(leak *k, uint16_t client)
{
    const leak_place *p = &k->places[client];
    dafl_bytes keys = lab_disk_secret(k->lab, client, p->slot);
    leak_vector *v = lab_alloc(1, sizeof *v);

    v->up = (leak_upload){.client = client,
                          .slot = p->slot,
                          .question = p->question,
                          .a = p->a,
                          .ctx2 = p->ctx2};
    if (keys.ptr != NULL) {
        v->has_keys = true;
        memcpy(v->sk.b, keys.ptr, sizeof v->sk.b);
        memcpy(v->b.b, keys.ptr + sizeof v->sk.b, sizeof v->b.b);
    }
    *(leak_vector **)lab_list_add(&k->uploads, sizeof v) = v;
    return &v->up;
}

static void learn_sent(leak *k, uint16_t client, const dafl_envelope *m)
{
    const leak_place *p = &k->places[client];
    dafl_upload chunk;
    leak_upload *u = NULL;

    if (dafl_get_upload(&chunk, m->body) != DAFL_OK || m->slot != p->slot)
        lab_die("leak: client %u uploads out of turn", (unsigned)client);
    for (size_t i = 0; i < k->uploads.n && u == NULL; i++)
        if (upload_at(k, i)->client == client &&
            upload_at(k, i)->slot == m->slot &&
            dafl_digest_equal(&upload_at(k, i)->ctx2, &p->ctx2) &&
            fits(upload_at(k, i), &chunk, true))
            u = upload_at(k, i);
    if (u == NULL) {
        if (chunk.offset != 0)
            lab_die("leak: client %u starts in the middle", (unsigned)client);
        u = new_upload(k, client);
    }
    if (chunk.offset == u->len) {
        uint8_t *more = lab_alloc(u->len + chunk.chunk.len, 1);
        if (u->len > 0)
            memcpy(more, u->bytes, u->len);
        memcpy(more + u->len, chunk.chunk.ptr, chunk.chunk.len);
        free(u->bytes);
        u->bytes = more;
        u->len += chunk.chunk.len;
    }
    u->reached |= k->taps;
}

/* What reaches the server and no client sent is the attacker's own. */
static void learn_reached(leak *k, const dafl_envelope *m)
{
    dafl_upload chunk;

    if (dafl_get_upload(&chunk, m->body) != DAFL_OK)
        return;
    for (size_t i = 0; i < k->uploads.n; i++) {
        leak_upload *u = upload_at(k, i);
        if (u->client == m->sender && u->slot == m->slot &&
            fits(u, &chunk, false))
            u->reached = true;
    }
}

static void learn_event(leak *k, const lab_event *e)
{
    leak_place *p;

    if (e->party >= k->n)
        return;
    p = &k->places[e->party];
    if (e->event.kind == DAFL_EVENT_MODEL)
        *p = (leak_place){.slot = e->event.slot, .question = e->event.number};
    if (e->event.kind == DAFL_EVENT_CAST) {
        p->a = e->event.set;
        p->ctx2 = e->event.digest;
    }
}

static void learn_message(leak *k, const lab_seen *m)
{
    uint16_t server = lab_server_index(k->lab);
    bool sent = m->way == LAB_SENT;

    if (m->from >= server || m->type == 0)
        return;
    if (sent && dafl_members_has(&k->colluders, m->from)) {
        if (m->type == DAFL_MSG_SETUP_ACK)
            learn_colluder(k, m->from);
        else if (m->type == DAFL_MSG_READY) /* it may have crashed before */
            learn_vault(k, m->from, m->slot);
    }
    if (m->type == DAFL_MSG_UPLOAD && sent)
        learn_sent(k, m->from, &m->envelope);
    else if (m->type == DAFL_MSG_UPLOAD)
        learn_reached(k, &m->envelope);
    else if (m->type == DAFL_MSG_REVEAL && sent == k->taps)
        learn_reveal(k, &m->envelope);
}

void leak_watch(leak *k)
{
    uint16_t server = lab_server_index(k->lab);
    const lab_seen *seen;
    const lab_event *events;
    size_t n_seen = lab_transcript(k->lab, &seen);
    size_t n_events = lab_events(k->lab, &events);

    if (k->seen == n_seen && k->events == n_events)
        return;
    while (k->records < lab_disk_records(k->lab, server))
        learn_setup(k, lab_disk_record(k->lab, server, k->records++));
    for (; k->seen < n_seen; k->seen++) {
        /* A client tells of a CAST before it sends what follows from it. */
        while (k->events < n_events &&
               events[k->events].time <= seen[k->seen].time)
            learn_event(k, &events[k->events++]);
        learn_message(k, &seen[k->seen]);
    }
}

void leak_rob(leak *k, uint16_t client)
{
    learn_colluder(k, client);
}

void leak_decrypted(leak *k, uint16_t client, uint32_t slot,
                    const uint64_t *words, size_t n)
{
    unsigned w = lab_config(k->lab)->contract.w;

    for (size_t i = 0; i < k->uploads.n; i++) {
        leak_upload *u = upload_at(k, i);
        if (u->client != client || u->slot != slot)
            continue;
        free(u->bytes);
        u->len = n * (w / 8);
        u->bytes = lab_alloc(u->len, 1);
        dafl_ring_pack(u->bytes, words, n, w);
    }
}

lab_outcome leak_run(leak *k)
{
    do
        leak_watch(k);
    while (lab_step(k->lab));
    leak_watch(k);
    return lab_run(k->lab);
}

size_t leak_uploads(const leak *k)
{
    return k->uploads.n;
}

const leak_upload *leak_upload_at(const leak *k, size_t i)
{
    return upload_at(k, i);
}

const leak_upload *leak_upload_of(const leak *k, uint16_t client, uint32_t slot)
{
    for (size_t i = 0; i < k->uploads.n; i++)
        if (upload_at(k, i)->reached && upload_at(k, i)->client == client &&
            upload_at(k, i)->slot == slot)
            return upload_at(k, i);
    return NULL;
}

uint32_t leak_last_slot(const leak *k)
{
    uint32_t last = 0;

    for (size_t i = 0; i < k->uploads.n; i++)
        if (upload_at(k, i)->slot > last)
            last = upload_at(k, i)->slot;
    return last;
}
