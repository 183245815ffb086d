/* SPDX-License-Identifier: Apache-2.0 */
/* What every machine must keep to, whatever it is told and whenever it is
 * restarted, as long as its disk is what it wrote. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/machines.h"

/* Chunks of the longest upload. */
#define FM_CHUNKS 2

/* What a party said in one slot of one run. */
typedef struct fm_speech {
    uint16_t party;
    dafl_run_id run;
    uint32_t slot;
    bool conf;                        /* CONF was delivered to it */
    dafl_digest said[DAFL_MSG_COUNT]; /* digests of bodies; zeros: nothing */
    dafl_digest chunks[FM_CHUNKS];    /* of the upload */
    uint8_t kinds[FM_K_MAX];          /* of the shares it gave of each dealer */
} fm_speech;

/* No party: what all clients together revealed. */
#define EVERYBODY 1000

void fm_trace(const char *format, ...)
{
    va_list args;

    if (getenv("DAFL_FUZZ_TRACE") == NULL)
        return;
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
}

void fm_broken(const char *claim, unsigned party, unsigned slot)
{
    (void)fprintf(stderr, "broken: %s (party or question %u, slot %u)\n", claim,
                  party, slot);
    abort();
}

static fm_speech *speech_of(fm_world *w, uint16_t party, const dafl_envelope *m)
{
    fm_speech *s = w->speeches;

    for (size_t i = 0; i < w->n_speeches; i++, s++)
        if (s->party == party && s->slot == m->slot &&
            memcmp(s->run.b, m->run.b, sizeof s->run.b) == 0)
            return s;
    if (w->n_speeches == w->room_speeches) {
        w->room_speeches = 2 * w->room_speeches + 16;
        w->speeches =
            realloc(w->speeches, w->room_speeches * sizeof *w->speeches);
        if (w->speeches == NULL)
            abort();
    }
    s = &w->speeches[w->n_speeches++];
    *s = (fm_speech){.party = party, .run = m->run, .slot = m->slot};
    return s;
}

void fm_claims_drop(fm_world *w)
{
    free(w->speeches);
    w->speeches = NULL;
    w->n_speeches = w->room_speeches = 0;
}

void fm_claim_conf(fm_world *w, uint16_t client, const dafl_envelope *m)
{
    speech_of(w, client, m)->conf = true;
}

void fm_claim_cohort(const fm_world *w, const fm_party *p, const dafl_event *e)
{
    if (dafl_policy_cohort(&w->rules->config.policy, &w->rules->roster, &e->set,
                           &e->set) != DAFL_FAULT_NONE)
        fm_broken("cohorts are whole cells and m clients", p->index, e->slot);
}

/* What is said once in a slot, or the same again. */
static void same(dafl_digest *first, const fm_speech *s, dafl_bytes body,
                 const char *claim)
{
    static const dafl_digest nothing;
    dafl_digest d;

    dafl_hash_one(&d, "fuzz", body);
    if (!dafl_digest_equal(first, &nothing) && !dafl_digest_equal(first, &d))
        fm_broken(claim, s->party, s->slot);
    *first = d;
}

static void once(fm_speech *s, const dafl_envelope *m, const char *claim)
{
    same(&s->said[m->type], s, m->body, claim);
}

static void upload(const fm_world *w, fm_speech *s, const dafl_envelope *m)
{
    dafl_upload u;

    if (dafl_get_upload(&u, m->body) != DAFL_OK ||
        u.offset / w->rules->config.chunk >= FM_CHUNKS)
        fm_broken("UPLOAD is well formed", s->party, s->slot);
    same(&s->chunks[u.offset / w->rules->config.chunk], s, m->body,
         "one UPLOAD in a slot");
}

static bool said(const fm_speech *s, dafl_msg_type type)
{
    static const dafl_digest nothing;

    return !dafl_digest_equal(&s->said[type], &nothing);
}

/* The journal has a record of this kind and, unless it is 0, slot. */
static bool journaled(const fm_party *p, dafl_record_kind kind, uint32_t slot)
{
    for (size_t i = p->disk.journal.n; i-- > 0;) {
        const fm_block *b = &p->disk.journal.items[i];
        dafl_reader r = dafl_read((dafl_bytes){b->ptr, b->len});
        uint8_t got = 0;
        uint32_t of = 0;
        if (dafl_get_u8(&r, &got) == DAFL_OK && got == (uint8_t)kind &&
            (slot == 0 || (dafl_get_u32(&r, &of) == DAFL_OK && of == slot)))
            return true;
    }
    return false;
}

static void note_kind(fm_speech *s, const dafl_revealed *r, const char *claim)
{
    if (s->kinds[r->dealer] != 0 && s->kinds[r->dealer] != (uint8_t)r->kind)
        fm_broken(claim, r->dealer, s->slot);
    s->kinds[r->dealer] = (uint8_t)r->kind;
}

static void reveal(fm_world *w, fm_party *p, const dafl_envelope *m)
{
    dafl_reveal list;

    if (dafl_get_reveal(&list, m->body) != DAFL_OK)
        fm_broken("REVEAL is well formed", p->index, m->slot);
    if (!speech_of(w, p->index, m)->conf)
        fm_broken("nothing is revealed before CONF", p->index, m->slot);
    if (!said(speech_of(w, p->index, m), DAFL_MSG_SIGN))
        fm_broken("nothing is revealed before SIGN", p->index, m->slot);
    once(speech_of(w, p->index, m), m, "one REVEAL in a slot");
    for (size_t i = 0; i < list.n; i++) {
        dafl_revealed r = dafl_reveal_at(&list, i);
        if (r.dealer >= w->rules->k || r.dealer == p->index)
            fm_broken("shares are of other clients", p->index, m->slot);
        note_kind(speech_of(w, p->index, m), &r,
                  "one kind of share from a holder");
        if (!w->fed)
            note_kind(speech_of(w, EVERYBODY, m), &r,
                      "one kind of share from all holders");
    }
}

static void client_sent(fm_world *w, fm_party *p, const dafl_envelope *m)
{
    fm_speech *s = speech_of(w, p->index, m);

    for (size_t i = 0; m->type != DAFL_MSG_HELLO && i < p->disk.vault.n; i++)
        if (p->disk.vault.items[i].slot < m->slot)
            fm_broken("secrets of closed slots are erased", p->index, m->slot);
    switch (m->type) {
    case DAFL_MSG_ENROLL:
        if (!journaled(p, DAFL_RECORD_ENROLLED, 0))
            fm_broken("the journal stands before ENROLL", p->index, 0);
        break;
    case DAFL_MSG_UPLOAD:
        if (!journaled(p, DAFL_RECORD_UPLOAD, m->slot))
            fm_broken("the journal stands before UPLOAD", p->index, m->slot);
        upload(w, s, m);
        break;
    case DAFL_MSG_END:
        once(s, m, "one END in a slot");
        break;
    case DAFL_MSG_SIGN:
        if (!journaled(p, DAFL_RECORD_SIGN, m->slot))
            fm_broken("the journal stands before SIGN", p->index, m->slot);
        once(s, m, "one SIGN in a slot");
        break;
    case DAFL_MSG_REVEAL:
        reveal(w, p, m);
        break;
    default:
        break;
    }
}

static void holder_sent(fm_world *w, fm_party *p, const dafl_envelope *m)
{
    fm_speech *s = speech_of(w, p->index, m);

    if (m->type == DAFL_MSG_KEY || m->type == DAFL_MSG_OPENED)
        once(s, m, "one KEY and one OPENED in a slot");
    if (m->type == DAFL_MSG_KEY && !journaled(p, DAFL_RECORD_KEY, m->slot))
        fm_broken("the journal stands before KEY", p->index, m->slot);
    if (m->type == DAFL_MSG_OPENED &&
        (!journaled(p, DAFL_RECORD_OPEN, m->slot) || p->disk.vault.n != 1 ||
         p->disk.vault.items[0].slot != m->slot))
        fm_broken("the answer is kept before OPENED", p->index, m->slot);
}

static void server_sent(fm_world *w, fm_party *p, const dafl_envelope *m)
{
    fm_speech *s = speech_of(w, p->index, m);

    if (m->type == DAFL_MSG_MODEL && !journaled(p, DAFL_RECORD_SLOT, m->slot))
        fm_broken("the journal stands before MODEL", p->index, m->slot);
    if (m->type == DAFL_MSG_CAST || m->type == DAFL_MSG_SURV ||
        m->type == DAFL_MSG_CONF)
        once(s, m, "one CAST, one SURV, one CONF in a slot");
}

void fm_claim_sent(fm_world *w, fm_party *p, const dafl_effect *e)
{
    dafl_envelope m;

    if (dafl_get_envelope(&m, e->bytes, w->rules->config.body_max) !=
            DAFL_FAULT_NONE ||
        m.sender != p->index)
        fm_broken("messages are well formed", p->index, 0);
    if (p->fed)
        return;
    if (m.seq <= p->seq)
        fm_broken("messages are numbered upwards", p->index, m.slot);
    p->seq = m.seq;
    if (p->index < w->rules->k)
        client_sent(w, p, &m);
    else if (p->index > w->rules->k)
        holder_sent(w, p, &m);
    else
        server_sent(w, p, &m);
}
