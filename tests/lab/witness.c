/* SPDX-License-Identifier: Apache-2.0 */
/* What was said by whom, and what the disk held when it was said. */
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

dafl_fault lab_result(const lab *l, uint32_t slot)
{
    const lab_event *events = l->events.items;

    for (size_t i = 0; i < l->events.n; i++)
        if (events[i].party == lab_server_index(l) &&
            events[i].event.kind == DAFL_EVENT_RESULT &&
            events[i].event.slot == slot)
            return events[i].event.fault;
    return DAFL_FAULT_COUNT;
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

/* What the key holder answers is kept, and nothing else is. */
static void check_kept(lab *l, const lab_party *p, const dafl_envelope *m)
{
    const lab_kept *kept = p->disk.vault.items;

    if (m->type == DAFL_MSG_OPENED &&
        (p->disk.vault.n != 1 || kept[0].slot != m->slot))
        lab_broken(l, "the key holder answers in slot %u and keeps %zu answers",
                   (unsigned)m->slot, p->disk.vault.n);
}

void lab_witness_disk(lab *l, const lab_party *p, const dafl_envelope *m)
{
    static const struct {
        dafl_role role;
        dafl_msg_type type;
        dafl_record_kind kind;
    } before[] = {{DAFL_ROLE_CLIENT, DAFL_MSG_ENROLL, DAFL_RECORD_ENROLLED},
                  {DAFL_ROLE_CLIENT, DAFL_MSG_UPLOAD, DAFL_RECORD_UPLOAD},
                  {DAFL_ROLE_CLIENT, DAFL_MSG_SIGN, DAFL_RECORD_SIGN},
                  {DAFL_ROLE_CLIENT, DAFL_MSG_REVEAL, DAFL_RECORD_SIGN},
                  {DAFL_ROLE_SERVER, DAFL_MSG_MODEL, DAFL_RECORD_SLOT},
                  {DAFL_ROLE_SERVER, DAFL_MSG_ASK, DAFL_RECORD_SLOT},
                  {DAFL_ROLE_KEYHOLDER, DAFL_MSG_KEY, DAFL_RECORD_KEY},
                  {DAFL_ROLE_KEYHOLDER, DAFL_MSG_UPLOAD, DAFL_RECORD_OPEN}};
    dafl_role role = l->roster.parties[p->index].role;

    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++)
        if (role == before[i].role && m->type == before[i].type &&
            !journal_has(p, before[i].kind, m->slot))
            lab_broken(l, "party %u sends %s of slot %u without journal",
                       (unsigned)p->index, dafl_msg_name(m->type),
                       (unsigned)m->slot);
    if (role == DAFL_ROLE_CLIENT && m->type != DAFL_MSG_HELLO)
        check_vault(l, p, m);
    if (role == DAFL_ROLE_KEYHOLDER)
        check_kept(l, p, m);
}
