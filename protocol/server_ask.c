/* SPDX-License-Identifier: Apache-2.0 */
/* The server between slots: which question to ask, of whom, in which variant,
 * and again when an attempt came to nothing. Every attempt burns a slot. */
#include <stdlib.h>
#include <string.h>

#include "lib/secret.h"
#include "protocol/server_state.h"
#include "protocol/weaken.h"

/* Forget what belongs to the slot alone. */
void dafl_server_drop_slot(dafl_server *s)
{
    size_t k = s->node.roster->n_clients;

    s->chosen = s->ready = s->seen = s->a = s->waiting = s->granted = s->done =
        s->u3 = s->signers = s->revealed = s->liars = dafl_members_none(k);
    dafl_adder_drop(&s->total);
    dafl_server_drop_opening(s);
    for (size_t u = 0; u < k && s->cells != NULL && s->seats != NULL; u++) {
        dafl_adder_drop(&s->cells[u]);
        dafl_writer_drop(&s->seats[u].upload);
        dafl_secret_free(s->seats[u].shares_of);
        s->seats[u].shares_of = NULL;
        s->seats[u].holders = dafl_members_none(k);
    }
}

dafl_err dafl_server_chapter(dafl_server *s, uint32_t number)
{
    dafl_chapter *chapter;

    if (number < s->n_chapters)
        return DAFL_OK;
    if (number > s->n_chapters)
        return DAFL_ERR_ARG;
    if (s->n_chapters == s->room_chapters) {
        uint32_t room = s->room_chapters == 0 ? 64 : 2 * s->room_chapters;
        dafl_chapter *more = realloc(s->chapters, room * sizeof *more);
        if (more == NULL)
            return DAFL_ERR_NOMEM;
        s->chapters = more;
        s->room_chapters = room;
    }
    chapter = &s->chapters[number];
    memset(chapter, 0, sizeof *chapter);
    if (s->method->segment(s->method_self, number, &chapter->segment,
                           &chapter->bytes) != DAFL_FAULT_NONE ||
        dafl_writer_done(&chapter->bytes) != DAFL_OK) {
        dafl_writer_drop(&chapter->bytes);
        return DAFL_ERR_NOMEM;
    }
    chapter->segment.query = number;
    chapter->segment.slot = number == 0 ? 0 : s->chapters[number - 1].slot;
    chapter->segment.bytes = dafl_writer_bytes(&chapter->bytes);
    if (number > 0)
        chapter->model = s->chapters[number - 1].model;
    dafl_context_model(&chapter->model, &chapter->segment);
    s->n_chapters++;
    return DAFL_OK;
}

void dafl_server_note_answer(dafl_server *s, uint32_t slot,
                             const dafl_question *q, const dafl_members *u3,
                             const dafl_members *signers)
{
    dafl_chapter *chapter = &s->chapters[q->number];

    chapter->slot = slot;
    chapter->cohort = *u3;
    chapter->signers = *signers;
    s->stats.answered++;
    s->stats.tied += s->shape.n_ties > 0;
    s->failures = 0;
    s->thin = 0;
    s->plain = false;
}

/* Those who are there in whole cells and are to answer. */
static dafl_members expected(const dafl_server *s)
{
    dafl_members there = dafl_members_both(&s->online, &s->chosen);

    return dafl_server_whole(s, &there);
}

/* Whether a cohort is the very one of the questions that this one is tied to,
 * and each of its members signed for that: others could not know it. */
static bool fits_ties(const dafl_server *s, const dafl_members *cohort)
{
    for (size_t i = 0; i < s->shape.n_ties; i++) {
        uint32_t tie = s->shape.ties[i];
        if (tie >= s->n_chapters || s->chapters[tie].slot == 0 ||
            !dafl_members_equal(cohort, &s->chapters[tie].cohort) ||
            !dafl_members_within(cohort, &s->chapters[tie].signers))
            return false;
    }
    return true;
}

/* The question of this attempt and who is to answer it. False when there is no
 * question left. */
static bool choose_question(dafl_server *s)
{
    for (;;) {
        dafl_members cohort;
        if (!s->method->next(s->method_self, s->plain, &s->question))
            return false;
        if (s->method->shape(s->method_self, &s->question, &s->shape) !=
                DAFL_FAULT_NONE ||
            dafl_server_chapter(s, s->question.number) != DAFL_OK) {
            s->err = DAFL_ERR_NOMEM;
            return true;
        }
        if (dafl_config_upload_bytes(s->node.config, s->shape.len) ==
            SIZE_MAX) {
            s->err = DAFL_ERR_ARG; /* no client would answer that */
            return true;
        }
        s->chosen = s->usable;
        if (s->method->choose != NULL)
            s->method->choose(s->method_self, &s->question, s->node.roster,
                              &s->chosen);
        dafl_server_leave_out(s, &s->chosen);
        cohort = expected(s);
        if (s->shape.n_ties == 0 || fits_ties(s, &cohort))
            return true;
        s->plain = true;
    }
}

/* Segments from `first` on, as many as fit into a message. A client that needs
 * more asks for them. */
static void send_segments(dafl_server *s, uint32_t first,
                          const dafl_members *to)
{
    /* A segment's own fields, and those of the message, are shorter. */
    const uint64_t fields = 32;
    uint32_t last = s->question.number;
    uint64_t room = s->node.config->body_max - fields;
    dafl_segment *segments = calloc(last - first + 1, sizeof *segments);
    dafl_model_msg model = {.query = last,
                            .rank = s->question.rank,
                            .key = dafl_writer_bytes(&s->key)};
    dafl_writer w = {0};

    if (segments == NULL) {
        s->err = DAFL_ERR_NOMEM;
        return;
    }
    room -= model.key.len < room ? model.key.len : room;
    for (uint32_t i = first; i <= last && model.n < UINT16_MAX; i++) {
        const dafl_segment *segment = &s->chapters[i].segment;
        if (model.n > 0 && segment->bytes.len + fields > room)
            break;
        room -= segment->bytes.len + fields < room ? segment->bytes.len + fields
                                                   : room;
        segments[model.n++] = *segment;
    }
    dafl_put_model(&w, &model, segments);
    free(segments);
    dafl_node_send(&s->node, DAFL_MSG_MODEL, s->slot, to, &w);
}

/* The segments that clients lack; one message for all who lack the same. */
void dafl_server_send_model(dafl_server *s, const dafl_members *to)
{
    uint32_t last = s->question.number;

    for (uint32_t have = 0; have <= last + 1; have++) {
        dafl_members group = dafl_members_none(to->n);
        for (size_t u = 0; u < to->n; u++)
            if (dafl_members_has(to, u) && s->seats[u].have == have)
                dafl_members_add(&group, u);
        if (dafl_members_count(&group) > 0)
            send_segments(s, have <= last ? have : last, &group);
    }
}

void dafl_server_begin_slot(dafl_server *s)
{
    dafl_members to = dafl_members_both(&s->online, &s->acked);

    dafl_context_slot(
        &s->ctx, &s->h_setup,
        &(dafl_slot_task){.slot = s->slot,
                          .query = s->question.number,
                          .rank = s->question.rank,
                          .model = s->chapters[s->question.number].model,
                          .len = s->shape.len,
                          .w = (uint8_t)s->node.config->contract.w,
                          .he = s->he});
    dafl_node_tell_model(
        &s->node,
        &(dafl_event){.slot = s->slot,
                      .number = s->question.number,
                      .peer = DAFL_NOBODY,
                      .set = s->chosen,
                      .digest = s->chapters[s->question.number].model},
        s->question.rank, s->shape.len, &s->h_setup, &s->he);
    dafl_server_send_model(s, &to);
    dafl_server_enter(s, DAFL_SERVER_CASTING, DAFL_WAIT_READY);
}

static void open_slot(dafl_server *s)
{
    dafl_writer w = {0};

    dafl_node_recap(&s->node, s->slot);
    s->slot++;
    s->stats.slots++;
    dafl_put_u8(&w, DAFL_RECORD_SLOT);
    dafl_put_u32(&w, s->slot);
    dafl_put_u32(&w, s->question.number);
    dafl_put_u32(&w, s->question.rank);
    dafl_node_append(&s->node, &w);
    if (s->encryption != NULL)
        dafl_server_ask_key(s);
    else
        dafl_server_begin_slot(s);
}

static size_t count_cells(const dafl_server *s, const dafl_members *set)
{
    size_t n = 0;

    for (uint16_t i = 0; i < dafl_server_n_cells(s); i++) {
        dafl_members cell = dafl_server_cell_members(s, i);
        n += dafl_members_within(&cell, set);
    }
    return n;
}

/* Fewer cells than wanted of those that were there since the question was
 * first asked, and tries left to get more. */
static bool too_thin(const dafl_server *s, const dafl_members *cohort)
{
    dafl_members could = dafl_members_both(&s->chosen, &s->around);

    return s->thin < s->node.config->tries &&
           count_cells(s, cohort) * 1000 <
               count_cells(s, &could) * s->node.config->want;
}

/* All who have the keys of this enrolment are too few, and would be enough with
 * those who are there without: no slot can come to anything. */
static bool keys_are_missing(const dafl_server *s)
{
    size_t m = s->node.config->policy.m;
    dafl_members keyed = dafl_members_both(&s->acked, &s->chosen);
    dafl_members there = expected(s);

    keyed = dafl_server_whole(s, &keyed);
    return dafl_members_count(&keyed) < m && dafl_members_count(&there) >= m;
}

/* Open a slot if enough are there to answer and to sign, else wait. */
void dafl_server_resume(dafl_server *s, bool late)
{
    dafl_members there = expected(s);
    dafl_members able = dafl_members_both(&s->online, &s->acked);

    if (dafl_members_count(&s->acked) <= s->t) {
        /* Too few have the keys of this enrolment. */
        dafl_server_invite_again(s, DAFL_E_QUORUM);
        return;
    }
    if (keys_are_missing(s)) {
        dafl_server_invite_again(s, DAFL_E_COHORT);
        return;
    }
    if (dafl_members_count(&there) >= s->node.config->policy.m &&
        dafl_members_count(&able) > s->t &&
        (late || !s->patient || !too_thin(s, &there))) {
        s->patient = false;
        open_slot(s);
        return;
    }
    if (s->state == DAFL_SERVER_PAUSED && !late)
        return;
    if (late && ++s->failures > s->node.config->retries)
        dafl_server_over(s, DAFL_E_COHORT);
    else
        dafl_server_enter(s, DAFL_SERVER_PAUSED,
                          s->patient ? DAFL_WAIT_SIGN : DAFL_WAIT_READY);
}

void dafl_server_ask(dafl_server *s)
{
    dafl_server_drop_slot(s);
    if (s->thin + s->failures == 0)
        s->around = s->online;
    if (!choose_question(s)) {
        dafl_server_over(s, DAFL_FAULT_NONE);
        return;
    }
    if (s->err != DAFL_OK)
        return;
    if (s->slot >= dafl_node_last_slot(&s->node, s->enrolment)) {
        /* The keys are spent. */
        s->enrolment++;
        dafl_server_invite(s);
        return;
    }
    s->state = DAFL_SERVER_CASTING; /* pausing begins now, if it does */
    dafl_server_resume(s, false);
}

static void send_result(dafl_server *s, dafl_fault fault)
{
    dafl_writer w = {0};

    dafl_node_tell(&s->node,
                   &(dafl_event){.kind = DAFL_EVENT_RESULT,
                                 .slot = s->slot,
                                 .number = s->question.number,
                                 .peer = DAFL_NOBODY,
                                 .fault = fault,
                                 .set = s->u3},
                   NULL);
    if (s->state == DAFL_SERVER_KEYING)
        return; /* no client has heard of the slot */
    dafl_put_result(&w, &(dafl_result){.fault = (uint16_t)fault});
    dafl_node_send(&s->node, DAFL_MSG_RESULT, s->slot, &s->online, &w);
}

void dafl_server_retry(dafl_server *s, dafl_fault fault)
{
    s->stats.failed++;
    send_result(s, fault);
    s->plain = true;
    if (s->failures > s->node.config->retries)
        dafl_server_over(s, fault);
    else
        dafl_server_ask(s);
}

void dafl_server_fail(dafl_server *s, dafl_fault fault)
{
    s->failures++;
    dafl_server_retry(s, fault);
}

/* The cohort stands but is thin: the next attempt may find more. */
static void send_home(dafl_server *s)
{
    s->thin++;
    s->patient = true;
    dafl_server_retry(s, DAFL_E_COHORT);
}

void dafl_server_bar(dafl_server *s, size_t client)
{
    dafl_members cell =
        dafl_server_cell_members(s, dafl_server_cell(s, client));
    dafl_writer w = {0};

    if (DAFL_WEAK(BAR))
        return;
    for (size_t u = 0; u < cell.n; u++)
        if (dafl_members_has(&cell, u))
            dafl_members_add(&s->barred, u);
    s->usable = dafl_members_minus(&s->usable, &s->barred);
    dafl_put_u8(&w, DAFL_RECORD_BARRED);
    dafl_put_members(&w, &s->barred);
    dafl_node_append(&s->node, &w);
}

/* Judge a cohort as the clients will, and by its number. True when the slot
 * goes on with it. */
bool dafl_server_cohort_stands(dafl_server *s, const dafl_members *cohort)
{
    if (dafl_members_count(cohort) < s->node.config->policy.m ||
        !fits_ties(s, cohort))
        dafl_server_fail(s, DAFL_E_COHORT);
    else if (too_thin(s, cohort))
        send_home(s);
    else
        return true;
    return false;
}
