/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what was said could be said. The transcript is read once, in its
 * order; what later messages are compared with is remembered. */
#include "tests/lab/inside.h"

#include <stdlib.h>
#include <string.h>

/* What one client has said in the slot that it last spoke in. */
typedef struct {
    uint16_t client;
    uint32_t slot;
    lab_list uploads; /* size_t: places in the transcript */
    size_t end, sign; /* such places, counted from 1; 0: none */
    bool *gave;       /* [dealer] whose share was given */
    dafl_revealed *given;
    lab_list confirmed; /* uint32_t: slots of which a CONF has reached it */
} speech;

/* What all have said in a slot. */
typedef struct {
    size_t cast, surv;  /* the server's first, as above */
    size_t key, opened; /* the key holder's */
    uint8_t *kinds;     /* [dealer] of the shares that were given; 0: none */
} slot_words;

struct lab_judge {
    size_t at; /* the next to be read */
    speech *speeches;
    lab_list slots; /* slot_words */
};

static lab_judge *judge_new(const lab *l)
{
    size_t k = l->scenario.k;
    lab_judge *j = lab_alloc(1, sizeof *j);

    j->speeches = lab_alloc(k, sizeof *j->speeches);
    for (uint16_t u = 0; u < k; u++) {
        j->speeches[u].client = u;
        j->speeches[u].gave = lab_alloc(k, sizeof(bool));
        j->speeches[u].given = lab_alloc(k, sizeof(dafl_revealed));
    }
    return j;
}

void lab_judge_drop(lab *l)
{
    lab_judge *j = l->judge;

    if (j == NULL)
        return;
    for (uint16_t u = 0; u < l->scenario.k; u++) {
        speech *s = &j->speeches[u];
        lab_list_drop(&s->uploads);
        lab_list_drop(&s->confirmed);
        free(s->gave);
        free(s->given);
    }
    for (size_t i = 0; i < j->slots.n; i++)
        free(((slot_words *)j->slots.items)[i].kinds);
    lab_list_drop(&j->slots);
    free(j->speeches);
    free(j);
    l->judge = NULL;
}

/* Slots are those of the machines' own messages, so there are not many. */
static slot_words *words_of(const lab *l, uint32_t slot)
{
    lab_list *slots = &l->judge->slots;
    slot_words *words;

    while (slots->n <= slot)
        (void)lab_list_add(slots, sizeof *words);
    words = (slot_words *)slots->items + slot;
    if (words->kinds == NULL)
        words->kinds = lab_alloc(l->scenario.k, 1);
    return words;
}

static const lab_seen *seen_at(const lab *l, size_t place)
{
    return (const lab_seen *)l->seen.items + place;
}

/* ---- what one client says in one slot ---- */

static void speech_slot(lab *l, speech *s, uint32_t slot)
{
    if (slot == s->slot)
        return;
    if (slot < s->slot)
        lab_broken(l, "client %u speaks in slot %u after slot %u",
                   (unsigned)s->client, (unsigned)slot, (unsigned)s->slot);
    s->slot = slot;
    s->uploads.n = 0;
    s->end = s->sign = 0;
    memset(s->gave, 0, l->scenario.k * sizeof *s->gave);
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
    const size_t *earlier = s->uploads.items;
    dafl_upload now, then;

    if (dafl_get_upload(&now, m->envelope.body) != DAFL_OK) {
        lab_broken(l, "client %u sends a malformed UPLOAD",
                   (unsigned)s->client);
        return;
    }
    for (size_t i = 0; i < s->uploads.n; i++) {
        uint64_t from, to;
        if (dafl_get_upload(&then, seen_at(l, earlier[i])->envelope.body) !=
            DAFL_OK)
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
    *(size_t *)lab_list_add(&s->uploads, sizeof(size_t)) =
        (size_t)(m - seen_at(l, 0));
}

/* One END, one SIGN: the first, or the same again. */
static void check_once(lab *l, const speech *s, size_t *first,
                       const lab_seen *m)
{
    if (*first == 0)
        *first = (size_t)(m - seen_at(l, 0)) + 1;
    else if (!same_body(seen_at(l, *first - 1), m))
        twice(l, s, m);
}

static bool was_confirmed(const speech *s, uint32_t slot)
{
    const uint32_t *confirmed = s->confirmed.items;

    for (size_t i = s->confirmed.n; i-- > 0;)
        if (confirmed[i] == slot)
            return true;
    return false;
}

static void note_conf(const lab *l, speech *s, const lab_seen *m)
{
    const uint8_t *pk = l->roster.parties[l->scenario.k].id.sign_pk;

    if (!was_confirmed(s, m->slot) &&
        dafl_envelope_check(&m->envelope, pk) == DAFL_FAULT_NONE)
        *(uint32_t *)lab_list_add(&s->confirmed, sizeof m->slot) = m->slot;
}

/* One kind of share of a dealer in a slot, whoever gives it. */
static void check_kind(lab *l, uint32_t slot, const dafl_revealed *r)
{
    uint8_t *kind = &words_of(l, slot)->kinds[r->dealer];

    if (*kind != 0 && *kind != (uint8_t)r->kind)
        lab_broken(l, "both shares of client %u leave in slot %u",
                   (unsigned)r->dealer, (unsigned)slot);
    *kind = (uint8_t)r->kind;
}

static void check_reveal(lab *l, speech *s, const lab_seen *m)
{
    dafl_reveal reveal;

    if (dafl_get_reveal(&reveal, m->envelope.body) != DAFL_OK) {
        lab_broken(l, "client %u sends a malformed REVEAL",
                   (unsigned)s->client);
        return;
    }
    if (!was_confirmed(s, m->slot))
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
        check_kind(l, m->slot, &r);
    }
}

static void check_client(lab *l, speech *s, const lab_seen *m)
{
    if (m->type < DAFL_MSG_MODEL || m->type == DAFL_MSG_HELLO)
        return;
    speech_slot(l, s, m->slot);
    if (m->type == DAFL_MSG_UPLOAD)
        check_upload(l, s, m);
    else if (m->type == DAFL_MSG_END)
        check_once(l, s, &s->end, m);
    else if (m->type == DAFL_MSG_SIGN)
        check_once(l, s, &s->sign, m);
    else if (m->type == DAFL_MSG_REVEAL)
        check_reveal(l, s, m);
}

/* ---- what the server says ---- */

/* CAST and SURV: one of each in a slot. */
static void check_server(lab *l, const lab_seen *m)
{
    size_t *first;

    if (m->type != DAFL_MSG_CAST && m->type != DAFL_MSG_SURV)
        return;
    if (m->slot >= l->questions.n) {
        lab_broken(l, "%s in slot %u, which was never opened",
                   dafl_msg_name(m->type), (unsigned)m->slot);
        return;
    }
    first = m->type == DAFL_MSG_CAST ? &words_of(l, m->slot)->cast
                                     : &words_of(l, m->slot)->surv;
    if (*first == 0)
        *first = (size_t)(m - seen_at(l, 0)) + 1;
    else if (!same_body(seen_at(l, *first - 1), m))
        lab_broken(l, "the server sends two different %ss in slot %u",
                   dafl_msg_name(m->type), (unsigned)m->slot);
}

/* ---- what the key holder says ---- */

/* One key and one answer in a slot: OPENED has the digest of all of it. */
static void check_holder(lab *l, const lab_seen *m)
{
    size_t *first;

    if (m->type != DAFL_MSG_KEY && m->type != DAFL_MSG_OPENED)
        return;
    first = m->type == DAFL_MSG_KEY ? &words_of(l, m->slot)->key
                                    : &words_of(l, m->slot)->opened;
    if (*first == 0)
        *first = (size_t)(m - seen_at(l, 0)) + 1;
    else if (!same_body(seen_at(l, *first - 1), m))
        lab_broken(l, "the key holder sends two different %ss in slot %u",
                   dafl_msg_name(m->type), (unsigned)m->slot);
}

const char *lab_violation(lab *l)
{
    uint16_t server = l->scenario.k;

    if (l->judge == NULL)
        l->judge = judge_new(l);
    for (size_t *at = &l->judge->at; *at < l->seen.n; (*at)++) {
        const lab_seen *m = seen_at(l, *at);
        if (m->way == LAB_SENT && m->from == server)
            check_server(l, m);
        else if (m->way == LAB_SENT && m->from > server)
            check_holder(l, m);
        else if (m->way == LAB_SENT)
            check_client(l, &l->judge->speeches[m->from], m);
        else if (m->to < server && m->type == DAFL_MSG_CONF)
            note_conf(l, &l->judge->speeches[m->to], m);
    }
    return l->violation[0] == '\0' ? NULL : l->violation;
}
