/* SPDX-License-Identifier: Apache-2.0 */
/* The server after a restart. The slot it was in is burnt; setup, model and
 * answered questions are as they were. */
#include <stdlib.h>
#include <string.h>

#include "lib/ring.h"
#include "lib/secret.h"
#include "protocol/server_state.h"

static dafl_err recall_invited(dafl_server *s, dafl_reader *r)
{
    dafl_digest roster, config;

    DAFL_TRY(dafl_get_fixed(r, s->node.run.b, sizeof s->node.run.b));
    DAFL_TRY(dafl_get_u32(r, &s->enrolment));
    DAFL_TRY(dafl_get_fixed(r, roster.b, sizeof roster.b));
    DAFL_TRY(dafl_get_fixed(r, config.b, sizeof config.b));
    DAFL_TRY(dafl_get_end(r));
    /* Sums of one run make no model of another. */
    if (s->enrolment >= DAFL_ENROLMENTS_MAX ||
        !dafl_digest_equal(&roster, &s->node.roster_hash) ||
        !dafl_digest_equal(&config, &s->node.config_hash))
        return DAFL_ERR_PEER;
    s->stands = false;
    s->stats.enrolments++;
    return DAFL_OK;
}

static dafl_err recall_setup(dafl_server *s, dafl_reader *r)
{
    size_t slots = s->node.config->slots, at = 0;
    dafl_bytes keys;
    uint16_t t = 0;

    DAFL_TRY(dafl_get_fixed(r, s->node.run.b, sizeof s->node.run.b));
    DAFL_TRY(dafl_get_u32(r, &s->enrolment));
    DAFL_TRY(dafl_get_u16(r, &t));
    DAFL_TRY(dafl_get_fixed(r, s->h_setup.b, sizeof s->h_setup.b));
    DAFL_TRY(dafl_get_members(r, &s->u0));
    DAFL_TRY(dafl_get_members(r, &s->u1));
    DAFL_TRY(dafl_get_items(r, &keys,
                            (uint64_t)dafl_members_count(&s->u1) * slots,
                            DAFL_SLOT_KEYS_BYTES));
    DAFL_TRY(dafl_get_end(r));
    if (s->enrolment >= DAFL_ENROLMENTS_MAX ||
        s->u0.n != s->node.roster->n_clients ||
        !dafl_members_within(&s->u1, &s->u0))
        return DAFL_ERR_PEER;
    for (size_t u = 0; u < s->u1.n; u++) {
        if (!dafl_members_has(&s->u1, u))
            continue;
        free(s->seats[u].keys);
        s->seats[u].keys = calloc(slots, sizeof *s->seats[u].keys);
        if (s->seats[u].keys == NULL)
            return DAFL_ERR_NOMEM;
        for (size_t e = 0; e < slots; e++)
            s->seats[u].keys[e] = dafl_slot_keys_at(keys, at++);
    }
    s->t = t;
    s->acked = s->u1;
    s->usable = dafl_members_minus(&s->u1, &s->barred);
    s->stands = false; /* the packets are gone: unless a slot follows */
    s->slot = dafl_node_first_slot(&s->node, s->enrolment) - 1;
    return DAFL_OK;
}

static dafl_err recall_slot(dafl_server *s, dafl_reader *r)
{
    dafl_question q;

    DAFL_TRY(dafl_get_u32(r, &s->slot));
    DAFL_TRY(dafl_get_u32(r, &q.number));
    DAFL_TRY(dafl_get_u32(r, &q.rank));
    DAFL_TRY(dafl_get_end(r));
    if (s->slot < dafl_node_first_slot(&s->node, s->enrolment) ||
        s->slot > dafl_node_last_slot(&s->node, s->enrolment))
        return DAFL_ERR_PEER;
    s->stands = true;
    s->plain = true; /* unless its sum follows */
    s->stats.slots++;
    return DAFL_OK;
}

static dafl_err recall_sum(dafl_server *s, dafl_reader *r)
{
    unsigned w = s->node.config->contract.w;
    dafl_members u3, signers;
    dafl_fault fault;
    dafl_bytes words;
    uint32_t slot = 0;
    uint64_t *ring;
    size_t len;

    DAFL_TRY(dafl_get_u32(r, &slot));
    DAFL_TRY(dafl_get_u32(r, &s->question.number));
    DAFL_TRY(dafl_get_u32(r, &s->question.rank));
    DAFL_TRY(dafl_get_members(r, &u3));
    DAFL_TRY(dafl_get_members(r, &signers));
    if (s->question.number > s->n_chapters)
        return DAFL_ERR_PEER;
    DAFL_TRY(dafl_server_chapter(s, s->question.number));
    if (s->method->shape(s->method_self, &s->question, &s->shape) !=
        DAFL_FAULT_NONE)
        return DAFL_ERR_PEER;
    len = (size_t)s->shape.len;
    DAFL_TRY(dafl_get_items(r, &words, len, w / 8));
    DAFL_TRY(dafl_get_end(r));
    ring = dafl_bulk_alloc(len, sizeof *ring);
    if (ring == NULL)
        return DAFL_ERR_NOMEM;
    memset(ring, 0, len * sizeof *ring);
    dafl_ring_add_words(ring, words.ptr, len, w, false);
    dafl_ring_to_int((int64_t *)ring, ring, len, w);
    fault = s->method->take(s->method_self, &s->question, (int64_t *)ring, len,
                            &u3, NULL);
    dafl_bulk_free(ring);
    if (fault != DAFL_FAULT_NONE)
        return DAFL_ERR_PEER;
    dafl_server_note_answer(s, slot, &s->question, &u3, &signers);
    return DAFL_OK;
}

static dafl_err recall_barred(dafl_server *s, dafl_reader *r)
{
    DAFL_TRY(dafl_get_members(r, &s->barred));
    DAFL_TRY(dafl_get_end(r));
    s->usable = dafl_members_minus(&s->usable, &s->barred);
    return s->barred.n == s->node.roster->n_clients ? DAFL_OK : DAFL_ERR_PEER;
}

static dafl_err recall_heard(dafl_server *s, dafl_reader *r)
{
    uint16_t party = 0;
    uint32_t boot = 0;

    DAFL_TRY(dafl_get_u16(r, &party));
    DAFL_TRY(dafl_get_u32(r, &boot));
    DAFL_TRY(dafl_get_end(r));
    if (party >= s->node.roster->n)
        return DAFL_ERR_PEER;
    s->node.heard[party] = (uint64_t)boot << 32;
    s->node.lives[party]++;
    return DAFL_OK;
}

static dafl_err recall_boot(dafl_server *s, dafl_reader *r)
{
    DAFL_TRY(dafl_get_u32(r, &s->node.boot));
    return dafl_get_end(r);
}

dafl_err dafl_server_recall(dafl_server *s, dafl_bytes record)
{
    dafl_reader r = dafl_read(record);
    uint8_t kind = 0;
    dafl_err err = dafl_get_u8(&r, &kind);

    if (err == DAFL_OK)
        err = kind == DAFL_RECORD_BOOT      ? recall_boot(s, &r)
              : kind == DAFL_RECORD_INVITED ? recall_invited(s, &r)
              : kind == DAFL_RECORD_STANDS  ? recall_setup(s, &r)
              : kind == DAFL_RECORD_SLOT    ? recall_slot(s, &r)
              : kind == DAFL_RECORD_SUM     ? recall_sum(s, &r)
              : kind == DAFL_RECORD_BARRED  ? recall_barred(s, &r)
              : kind == DAFL_RECORD_HEARD   ? recall_heard(s, &r)
                                            : DAFL_ERR_PEER;
    return err == DAFL_ERR_PEER ? DAFL_ERR_INPUT : err;
}

dafl_err dafl_server_start(dafl_server *s, uint64_t now)
{
    s->now = now;
    dafl_node_boot(&s->node);
    dafl_node_tell_start(&s->node);
    if (s->stands) {
        /* Whoever is gone will be found out. */
        s->online = s->u1;
        dafl_server_ask(s);
    } else {
        /* An enrolment that was interrupted is not gone on with. */
        s->enrolment += s->stats.enrolments > 0 ? 1 : 0;
        dafl_server_invite(s);
    }
    return s->err != DAFL_OK        ? s->err
           : s->node.effects.failed ? DAFL_ERR_NOMEM
                                    : DAFL_OK;
}
