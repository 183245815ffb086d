/* SPDX-License-Identifier: Apache-2.0 */
/* What was said by whom, and whether it could be said. */
#include "tests/lab/inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lab_broken(lab *l, const char *format, ...)
{
    va_list args;

    if (l->violation[0] != '\0')
        return;
    va_start(args, format);
    (void)vsnprintf(l->violation, sizeof l->violation, format, args);
    va_end(args);
    lab_say(l, "BROKEN: %s", l->violation);
}

/* ---- recording ---- */

static bool is_long(uint8_t type)
{
    return type == DAFL_MSG_PEERS || type == DAFL_MSG_SHARES ||
           type == DAFL_MSG_SETUP;
}

void lab_witness_message(lab *l, lab_way way, uint16_t from, uint16_t to,
                         dafl_bytes bytes)
{
    lab_seen *s = lab_list_add(&l->seen, sizeof *s);
    dafl_envelope m = {0};
    bool whole = dafl_get_envelope(&m, bytes, UINT64_MAX) == DAFL_FAULT_NONE;

    *s = (lab_seen){.time = l->now,
                    .way = way,
                    .from = from,
                    .to = to,
                    .type = whole ? m.type : 0,
                    .slot = m.slot,
                    .seq = m.seq};
    if (is_long(s->type)) {
        s->envelope = m;
        s->envelope.body = (dafl_bytes){NULL, 0};
    } else {
        s->bytes = (dafl_bytes){lab_copy(bytes), bytes.len};
        if (whole)
            (void)dafl_get_envelope(&s->envelope, s->bytes, UINT64_MAX);
    }
    lab_say(l, "%s %s of slot %u from %u to %u, %zu bytes",
            way == LAB_SENT ? "sent" : "  delivered",
            whole ? dafl_msg_name(m.type) : "rubbish", (unsigned)m.slot,
            (unsigned)from, (unsigned)to, bytes.len);
}

void lab_witness_event(lab *l, const lab_party *p, const dafl_event *event)
{
    lab_event *e = lab_list_add(&l->events, sizeof *e);

    *e = (lab_event){.time = l->now, .party = p->index, .event = *event};
    lab_say(l, "party %u tells %s, slot %u, number %u, %zu members, %s",
            (unsigned)p->index, dafl_event_name(event->kind),
            (unsigned)event->slot, (unsigned)event->number,
            dafl_members_count(&event->set), dafl_fault_name(event->fault));
}

void lab_witness_drop(lab *l)
{
    lab_seen *seen = l->seen.items;
    lab_sum *sums = l->sums.items;

    for (size_t i = 0; i < l->seen.n; i++)
        free((void *)(uintptr_t)seen[i].bytes.ptr);
    for (size_t i = 0; i < l->sums.n; i++)
        free((void *)(uintptr_t)sums[i].sum);
    lab_list_drop(&l->seen);
    lab_list_drop(&l->sums);
    lab_list_drop(&l->events);
}

/* ---- looking ---- */

size_t lab_events(const lab *l, const lab_event **out)
{
    *out = l->events.items;
    return l->events.n;
}

size_t lab_count(const lab *l, uint16_t party, dafl_event_kind kind,
                 dafl_fault fault)
{
    const lab_event *events = l->events.items;
    size_t n = 0;

    for (size_t i = 0; i < l->events.n; i++)
        n += (party == LAB_ANYBODY || party == events[i].party) &&
             events[i].event.kind == kind &&
             (fault == DAFL_FAULT_COUNT || fault == events[i].event.fault);
    return n;
}

size_t lab_transcript(const lab *l, const lab_seen **out)
{
    *out = l->seen.items;
    return l->seen.n;
}

const lab_seen *lab_find(const lab *l, size_t *at, lab_way way, uint16_t from,
                         uint16_t to, dafl_msg_type type, uint32_t slot)
{
    const lab_seen *seen = l->seen.items;

    while (*at < l->seen.n) {
        const lab_seen *s = &seen[(*at)++];
        if (s->way == way && s->type == type &&
            (from == LAB_ANYBODY || from == s->from) &&
            (to == LAB_ANYBODY || to == s->to) &&
            (slot == UINT32_MAX || slot == s->slot))
            return s;
    }
    return NULL;
}

size_t lab_sums(const lab *l, const lab_sum **out)
{
    *out = l->sums.items;
    return l->sums.n;
}

const lab_sum *lab_sum_of(const lab *l, uint32_t question)
{
    const lab_sum *sums = l->sums.items, *last = NULL;

    for (size_t i = 0; i < l->sums.n; i++)
        if (sums[i].question == question)
            last = &sums[i];
    return last;
}

size_t lab_wrong_sums(const lab *l)
{
    return l->wrong_sums;
}

/* ---- what the disk must hold, and not hold, when a message is sent ---- */

static bool journal_has(const lab_party *p, dafl_record_kind kind,
                        uint32_t slot)
{
    const lab_record *records = p->disk.journal.items;

    for (size_t i = p->disk.journal.n; i-- > 0;) {
        dafl_reader r = dafl_read((dafl_bytes){records[i].ptr, records[i].len});
        uint8_t got = 0;
        uint32_t of = 0;
        if (dafl_get_u8(&r, &got) != DAFL_OK || got != (uint8_t)kind)
            continue;
        if (kind == DAFL_RECORD_ENROLLED ||
            (dafl_get_u32(&r, &of) == DAFL_OK && of == slot))
            return true;
    }
    return false;
}

/* Secrets of earlier slots are gone when a client speaks in one. */
static void check_vault(lab *l, const lab_party *p, const dafl_envelope *m)
{
    const lab_kept *kept = p->disk.vault.items;

    for (size_t i = 0; i < p->disk.vault.n; i++)
        if (kept[i].slot < m->slot)
            lab_broken(l, "client %u sends %s of slot %u and keeps slot %u",
                       (unsigned)p->index, dafl_msg_name(m->type),
                       (unsigned)m->slot, (unsigned)kept[i].slot);
}

void lab_witness_disk(lab *l, const lab_party *p, const dafl_envelope *m)
{
    static const struct {
        dafl_msg_type type;
        dafl_record_kind kind;
    } before[] = {{DAFL_MSG_ENROLL, DAFL_RECORD_ENROLLED},
                  {DAFL_MSG_UPLOAD, DAFL_RECORD_UPLOAD},
                  {DAFL_MSG_SIGN, DAFL_RECORD_SIGN},
                  {DAFL_MSG_REVEAL, DAFL_RECORD_SIGN},
                  {DAFL_MSG_MODEL, DAFL_RECORD_SLOT}};

    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++)
        if (m->type == before[i].type &&
            !journal_has(p, before[i].kind, m->slot))
            lab_broken(l, "party %u sends %s of slot %u without journal",
                       (unsigned)p->index, dafl_msg_name(m->type),
                       (unsigned)m->slot);
    if (p->index != l->scenario.k && m->type != DAFL_MSG_HELLO)
        check_vault(l, p, m);
}

/* ---- what one client said in one slot ---- */

typedef struct {
    uint16_t client;
    uint32_t slot;
    lab_list uploads; /* size_t: places in the transcript */
    const lab_seen *end, *sign;
    bool gave[DAFL_CLIENTS_MAX]; /* dealers whose share was given */
    dafl_revealed given[DAFL_CLIENTS_MAX];
} speech;

static void speech_slot(lab *l, speech *s, uint32_t slot)
{
    if (slot == s->slot)
        return;
    if (slot < s->slot)
        lab_broken(l, "client %u speaks in slot %u after slot %u",
                   (unsigned)s->client, (unsigned)slot, (unsigned)s->slot);
    lab_list_drop(&s->uploads);
    *s = (speech){.client = s->client, .slot = slot};
}

static bool same_body(const lab_seen *a, const lab_seen *b)
{
    return a->envelope.body.len == b->envelope.body.len &&
           memcmp(a->envelope.body.ptr, b->envelope.body.ptr,
                  a->envelope.body.len) == 0;
}

static void twice(lab *l, const speech *s, const lab_seen *m)
{
    lab_broken(l, "client %u sends two different %ss in slot %u",
               (unsigned)s->client, dafl_msg_name(m->type), (unsigned)s->slot);
}

/* Where two chunks overlap they are equal. */
static void check_upload(lab *l, speech *s, const lab_seen *m)
{
    const lab_seen *seen = l->seen.items;
    const size_t *earlier = s->uploads.items;
    dafl_upload now, then;

    if (dafl_get_upload(&now, m->envelope.body) != DAFL_OK) {
        lab_broken(l, "client %u sends a malformed UPLOAD",
                   (unsigned)s->client);
        return;
    }
    for (size_t i = 0; i < s->uploads.n; i++) {
        uint64_t from, to;
        if (dafl_get_upload(&then, seen[earlier[i]].envelope.body) != DAFL_OK)
            continue;
        from = now.offset > then.offset ? now.offset : then.offset;
        to = now.offset + now.chunk.len < then.offset + then.chunk.len
                 ? now.offset + now.chunk.len
                 : then.offset + then.chunk.len;
        if (from < to && memcmp(now.chunk.ptr + (from - now.offset),
                                then.chunk.ptr + (from - then.offset),
                                (size_t)(to - from)) != 0)
            twice(l, s, m);
    }
    *(size_t *)lab_list_add(&s->uploads, sizeof(size_t)) = (size_t)(m - seen);
}

/* One END, one SIGN: the first, or the same again. */
static void check_once(lab *l, const speech *s, const lab_seen **first,
                       const lab_seen *m)
{
    if (*first == NULL)
        *first = m;
    else if (!same_body(*first, m))
        twice(l, s, m);
}

static bool conf_reached(const lab *l, const lab_seen *reveal)
{
    const uint8_t *pk = l->roster.parties[l->scenario.k].id.sign_pk;
    size_t at = 0;

    for (;;) {
        const lab_seen *c = lab_find(l, &at, LAB_DELIVERED, LAB_ANYBODY,
                                     reveal->from, DAFL_MSG_CONF, reveal->slot);
        if (c == NULL || c > reveal)
            return false;
        if (dafl_envelope_check(&c->envelope, pk) == DAFL_FAULT_NONE)
            return true;
    }
}

static void check_reveal(lab *l, speech *s, const lab_seen *m)
{
    dafl_reveal reveal;

    if (dafl_get_reveal(&reveal, m->envelope.body) != DAFL_OK) {
        lab_broken(l, "client %u sends a malformed REVEAL",
                   (unsigned)s->client);
        return;
    }
    if (!conf_reached(l, m))
        lab_broken(l, "client %u reveals in slot %u before CONF",
                   (unsigned)s->client, (unsigned)s->slot);
    for (size_t i = 0; i < reveal.n; i++) {
        dafl_revealed r = dafl_reveal_at(&reveal, i);
        dafl_revealed *given;
        if (r.dealer >= l->scenario.k) {
            lab_broken(l, "client %u reveals a share of nobody",
                       (unsigned)s->client);
            return;
        }
        given = &s->given[r.dealer];
        if (!s->gave[r.dealer]) {
            s->gave[r.dealer] = true;
            *given = r;
        } else if (given->kind != r.kind) {
            lab_broken(l, "client %u gives both shares of client %u in slot %u",
                       (unsigned)s->client, (unsigned)r.dealer,
                       (unsigned)s->slot);
        } else if (memcmp(&given->share, &r.share, sizeof r.share) != 0) {
            twice(l, s, m);
        }
    }
}

static void check_client(lab *l, uint16_t client)
{
    const lab_seen *seen = l->seen.items;
    speech s = {.client = client};

    for (size_t i = 0; i < l->seen.n; i++) {
        const lab_seen *m = &seen[i];
        if (m->way != LAB_SENT || m->from != client ||
            m->type < DAFL_MSG_MODEL || m->type == DAFL_MSG_HELLO)
            continue;
        speech_slot(l, &s, m->slot);
        if (m->type == DAFL_MSG_UPLOAD)
            check_upload(l, &s, m);
        else if (m->type == DAFL_MSG_END)
            check_once(l, &s, &s.end, m);
        else if (m->type == DAFL_MSG_SIGN)
            check_once(l, &s, &s.sign, m);
        else if (m->type == DAFL_MSG_REVEAL)
            check_reveal(l, &s, m);
    }
    lab_list_drop(&s.uploads);
}

/* ---- what all say together ---- */

/* One kind of share of a dealer in a slot, whoever gives it. */
static void check_kinds(lab *l)
{
    size_t k = l->scenario.k, slots = l->questions.n, at = 0;
    uint8_t *kinds = lab_alloc(slots * k + 1, 1);
    const lab_seen *m;
    dafl_reveal reveal;

    while ((m = lab_find(l, &at, LAB_SENT, LAB_ANYBODY, LAB_ANYBODY,
                         DAFL_MSG_REVEAL, UINT32_MAX)) != NULL) {
        if (dafl_get_reveal(&reveal, m->envelope.body) != DAFL_OK ||
            m->slot >= slots || k == 0)
            continue;
        for (size_t i = 0; i < reveal.n; i++) {
            dafl_revealed r = dafl_reveal_at(&reveal, i);
            uint8_t *kind = &kinds[m->slot * k + r.dealer % k];
            if (*kind != 0 && *kind != (uint8_t)r.kind)
                lab_broken(l, "both shares of client %u leave in slot %u",
                           (unsigned)r.dealer, (unsigned)m->slot);
            *kind = (uint8_t)r.kind;
        }
    }
    free(kinds);
}

/* The server's CAST and SURV: one of each in a slot. */
static void check_server(lab *l, dafl_msg_type type)
{
    const lab_seen *seen = l->seen.items, *m;
    /* By slot; places in the transcript, counted from 1. */
    size_t *first = lab_alloc(l->questions.n + 1, sizeof(size_t)), at = 0;

    while ((m = lab_find(l, &at, LAB_SENT, l->scenario.k, LAB_ANYBODY, type,
                         UINT32_MAX)) != NULL) {
        if (m->slot >= l->questions.n)
            lab_broken(l, "%s in slot %u, which was never opened",
                       dafl_msg_name(type), (unsigned)m->slot);
        else if (first[m->slot] == 0)
            first[m->slot] = at;
        else if (!same_body(&seen[first[m->slot] - 1], m))
            lab_broken(l, "the server sends two different %ss in slot %u",
                       dafl_msg_name(type), (unsigned)m->slot);
    }
    free(first);
}

const char *lab_violation(lab *l)
{
    for (uint16_t u = 0; u < l->scenario.k; u++)
        check_client(l, u);
    check_kinds(l);
    check_server(l, DAFL_MSG_CAST);
    check_server(l, DAFL_MSG_SURV);
    return l->violation[0] == '\0' ? NULL : l->violation;
}
