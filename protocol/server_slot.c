/* SPDX-License-Identifier: Apache-2.0 */
/* The server in a slot: MODEL out, READYs in; CAST out, uploads in; SURV out,
 * signatures in; CONF out, shares in. Every attempt burns a slot. */
#include <stdlib.h>
#include <string.h>

#include "lib/ring.h"
#include "lib/secret.h"
#include "protocol/server_state.h"
#include "protocol/weaken.h"

/* Forget what belongs to the slot alone. */
void dafl_server_drop_slot(dafl_server *s)
{
    size_t k = s->node.roster->n_clients;

    s->chosen = s->ready = s->seen = s->a = s->waiting = s->granted = s->done =
        s->u3 = s->signers = s->revealed = dafl_members_none(k);
    dafl_bulk_free(s->total);
    s->total = NULL;
    for (size_t u = 0; u < k && s->cells != NULL && s->seats != NULL; u++) {
        dafl_bulk_free(s->cells[u]);
        s->cells[u] = NULL;
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
        s->chosen = s->usable;
        if (s->method->choose != NULL)
            s->method->choose(s->method_self, &s->question, s->node.roster,
                              &s->chosen);
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
    dafl_writer w = {0};
    uint16_t n = 0;

    if (segments == NULL) {
        s->err = DAFL_ERR_NOMEM;
        return;
    }
    for (uint32_t i = first; i <= last && n < UINT16_MAX; i++) {
        const dafl_segment *segment = &s->chapters[i].segment;
        if (n > 0 && segment->bytes.len + fields > room)
            break;
        room -= segment->bytes.len + fields < room ? segment->bytes.len + fields
                                                   : room;
        segments[n++] = *segment;
    }
    dafl_put_model(&w, last, s->question.rank, segments, n);
    free(segments);
    dafl_node_send(&s->node, DAFL_MSG_MODEL, s->slot, to, &w);
}

/* The segments that clients lack; one message for all who lack the same. */
static void send_model(dafl_server *s, const dafl_members *to)
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

static void open_slot(dafl_server *s)
{
    static const dafl_digest no_encryption;
    dafl_members to = dafl_members_both(&s->online, &s->acked);
    dafl_writer w = {0};

    s->slot++;
    s->stats.slots++;
    dafl_context_slot(&s->ctx, &s->h_setup, s->slot, s->question.number,
                      &s->chapters[s->question.number].model, s->shape.len,
                      (uint8_t)s->node.config->contract.w, &no_encryption);
    dafl_put_u8(&w, DAFL_RECORD_SLOT);
    dafl_put_u32(&w, s->slot);
    dafl_put_u32(&w, s->question.number);
    dafl_put_u32(&w, s->question.rank);
    dafl_node_append(&s->node, &w);
    send_model(s, &to);
    dafl_node_tell(
        &s->node,
        &(dafl_event){.kind = DAFL_EVENT_MODEL,
                      .slot = s->slot,
                      .number = s->question.number,
                      .peer = DAFL_NOBODY,
                      .set = s->chosen,
                      .digest = s->chapters[s->question.number].model});
    dafl_server_enter(s, DAFL_SERVER_CASTING, DAFL_WAIT_READY);
}

static bool too_thin(const dafl_server *s, const dafl_members *cohort);

/* Open a slot if enough are there to answer and to sign, else wait. */
static void open_or_pause(dafl_server *s, bool late)
{
    dafl_members there = expected(s);
    dafl_members able = dafl_members_both(&s->online, &s->acked);

    if (dafl_members_count(&s->acked) <= s->t) {
        /* Too few have the keys of this enrolment. */
        dafl_server_invite_again(s, DAFL_E_QUORUM);
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
    open_or_pause(s, false);
}

static void send_result(dafl_server *s, dafl_fault fault)
{
    dafl_writer w = {0};

    dafl_put_result(&w, &(dafl_result){.fault = (uint16_t)fault});
    dafl_node_send(&s->node, DAFL_MSG_RESULT, s->slot, &s->online, &w);
    dafl_node_tell(&s->node, &(dafl_event){.kind = DAFL_EVENT_RESULT,
                                           .slot = s->slot,
                                           .number = s->question.number,
                                           .peer = DAFL_NOBODY,
                                           .fault = fault,
                                           .set = s->u3});
}

void dafl_server_fail(dafl_server *s, dafl_fault fault)
{
    s->stats.failed++;
    send_result(s, fault);
    s->plain = true;
    if (++s->failures > s->node.config->retries)
        dafl_server_over(s, fault);
    else
        dafl_server_ask(s);
}

/* The cohort stands but is thin: the next attempt may find more. */
static void send_home(dafl_server *s)
{
    s->stats.failed++;
    send_result(s, DAFL_E_COHORT);
    s->thin++;
    s->plain = true;
    s->patient = true;
    dafl_server_ask(s);
}

void dafl_server_bar(dafl_server *s, size_t client)
{
    dafl_members cell =
        dafl_server_cell_members(s, dafl_server_cell(s, client));
    dafl_writer w = {0};

    for (size_t u = 0; u < cell.n; u++)
        if (dafl_members_has(&cell, u))
            dafl_members_add(&s->barred, u);
    s->usable = dafl_members_minus(&s->usable, &s->barred);
    dafl_put_u8(&w, DAFL_RECORD_BARRED);
    dafl_put_members(&w, &s->barred);
    dafl_node_append(&s->node, &w);
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

/* Judge a cohort as the clients will, and by its number. True when the slot
 * goes on with it. */
static bool cohort_stands(dafl_server *s, const dafl_members *cohort)
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

dafl_fault dafl_server_on_ready(dafl_server *s, const dafl_envelope *m)
{
    dafl_digest ctx;

    if (dafl_get_ready(&ctx, m->body) != DAFL_OK)
        return DAFL_E_FORMAT;
    if (m->slot != s->slot || !dafl_members_has(&s->acked, m->sender))
        return DAFL_E_STATE;
    dafl_members_add(&s->seen, m->sender);
    s->seats[m->sender].have = s->question.number + 1;
    if (sodium_is_zero(ctx.b, sizeof ctx.b))
        return DAFL_FAULT_NONE; /* keeps its answer back */
    if (!dafl_digest_equal(&ctx, &s->ctx))
        return DAFL_E_MODEL; /* it was told something else */
    if (s->state == DAFL_SERVER_CASTING)
        dafl_members_add(&s->ready, m->sender);
    return DAFL_FAULT_NONE;
}

static void send_cast(dafl_server *s, const dafl_members *to)
{
    dafl_writer w = {0};

    if (dafl_members_count(to) == 0)
        return;
    dafl_put_cast(&w, &s->a);
    dafl_node_send(&s->node, DAFL_MSG_CAST, s->slot, to, &w);
}

/* A cell that cannot become whole any more is out of this slot; what its
 * members sent stays closed. */
static void give_up_cell(dafl_server *s, uint16_t cell)
{
    dafl_members out = dafl_server_cell_members(s, cell);

    for (size_t u = 0; u < out.n; u++)
        if (dafl_members_has(&out, u))
            dafl_writer_drop(&s->seats[u].upload);
    s->waiting = dafl_members_minus(&s->waiting, &out);
    s->granted = dafl_members_minus(&s->granted, &out);
    s->done = dafl_members_minus(&s->done, &out);
    dafl_bulk_free(s->cells[cell]);
    s->cells[cell] = NULL;
}

/* Let more clients upload, cell by cell, as far as the credit goes: a client
 * starts when it is sent CAST. */
static void grant(dafl_server *s)
{
    dafl_members now = dafl_members_none(s->a.n);
    size_t flying = dafl_members_count(&s->granted);

    if (dafl_members_count(&s->waiting) == 0)
        return;
    for (uint16_t i = 0; i < dafl_server_n_cells(s); i++)
        for (size_t u = 0; u < s->a.n && flying < DAFL_CREDIT; u++)
            if (dafl_server_cell(s, u) == i &&
                dafl_members_has(&s->waiting, u)) {
                dafl_members_remove(&s->waiting, u);
                dafl_members_add(&s->granted, u);
                dafl_members_add(&now, u);
                s->seats[u].until =
                    s->now + s->node.config->wait[DAFL_WAIT_UPLOAD];
                flying++;
            }
    send_cast(s, &now);
}

static void cast(dafl_server *s)
{
    dafl_members able = dafl_members_both(&s->ready, &s->chosen), helpers;

    able = dafl_members_both(&able, &s->online);
    s->a = dafl_server_whole(s, &able);
    if (!cohort_stands(s, &s->a))
        return;
    s->total = dafl_bulk_alloc(s->shape.len, sizeof *s->total);
    if (s->total == NULL) {
        s->err = DAFL_ERR_NOMEM;
        return;
    }
    memset(s->total, 0, s->shape.len * sizeof *s->total);
    dafl_context_cast(&s->ctx2, &s->ctx, &s->a);
    dafl_node_tell(&s->node, &(dafl_event){.kind = DAFL_EVENT_CAST,
                                           .slot = s->slot,
                                           .peer = DAFL_NOBODY,
                                           .set = s->a,
                                           .digest = s->ctx2});
    s->state = DAFL_SERVER_COLLECT;
    s->deadline = UINT64_MAX; /* each upload has its own */
    s->waiting = s->a;
    helpers = dafl_members_both(&s->online, &s->acked);
    helpers = dafl_members_minus(&helpers, &s->a);
    send_cast(s, &helpers);
    grant(s);
}

static size_t upload_bytes(const dafl_server *s)
{
    return (size_t)s->shape.len * (s->node.config->contract.w / 8);
}

dafl_fault dafl_server_on_upload(dafl_server *s, const dafl_envelope *m)
{
    dafl_writer *upload = &s->seats[m->sender].upload;
    dafl_upload got;

    if (dafl_get_upload(&got, m->body) != DAFL_OK)
        return DAFL_E_FORMAT;
    if (m->slot != s->slot ||
        (!dafl_members_has(&s->granted, m->sender) && !DAFL_WEAK(FIRST_END)))
        return DAFL_E_STATE;
    if (got.offset == 0)
        dafl_writer_clear(upload); /* it starts anew */
    if (got.offset != upload->len ||
        got.chunk.len > upload_bytes(s) - upload->len)
        return DAFL_E_FORMAT;
    dafl_put_fixed(upload, got.chunk.ptr, got.chunk.len);
    return dafl_writer_done(upload) == DAFL_OK
               ? DAFL_FAULT_NONE
               : dafl_server_broke(s, DAFL_ERR_NOMEM);
}

/* Add a whole upload to its cell, and a whole cell to the total. */
static dafl_err add_upload(dafl_server *s, uint16_t client)
{
    uint16_t cell = dafl_server_cell(s, client);
    dafl_members members = dafl_server_cell_members(s, cell);
    dafl_writer *upload = &s->seats[client].upload;
    unsigned w = s->node.config->contract.w;
    size_t len = (size_t)s->shape.len;
    uint64_t *acc;

    if (s->cells[cell] == NULL) {
        s->cells[cell] = dafl_bulk_alloc(len, sizeof *s->cells[cell]);
        if (s->cells[cell] == NULL)
            return DAFL_ERR_NOMEM;
        memset(s->cells[cell], 0, len * sizeof *s->cells[cell]);
    }
    acc = s->cells[cell];
    dafl_ring_add_words(acc, upload->ptr, upload->len / (w / 8), w, false);
    dafl_writer_drop(upload);
    if (!dafl_members_within(&members, &s->done))
        return DAFL_OK;
    for (size_t i = 0; i < len; i++)
        s->total[i] += acc[i];
    dafl_bulk_free(acc);
    s->cells[cell] = NULL;
    return DAFL_OK;
}

dafl_fault dafl_server_on_end(dafl_server *s, const dafl_envelope *m)
{
    dafl_seat *seat = &s->seats[m->sender];
    dafl_end_msg end;
    dafl_digest dig;

    if (dafl_get_end_msg(&end, m->body) != DAFL_OK)
        return DAFL_E_FORMAT;
    if (m->slot != s->slot ||
        (!dafl_members_has(&s->granted, m->sender) && !DAFL_WEAK(FIRST_END)))
        return DAFL_E_STATE; /* the first END counts */
    if ((end.len != upload_bytes(s) || seat->upload.len != end.len) &&
        !DAFL_WEAK(END))
        return DAFL_E_FORMAT;
    dafl_context_upload(&dig, &s->ctx2, m->sender,
                        dafl_writer_bytes(&seat->upload));
    if (!dafl_digest_equal(&dig, &end.dig) && !DAFL_WEAK(END))
        return DAFL_E_FORGED;
    seat->dig = end.dig;
    if (dafl_members_has(&s->granted, m->sender))
        dafl_members_remove(&s->granted, m->sender);
    dafl_members_add(&s->done, m->sender);
    dafl_node_tell(&s->node, &(dafl_event){.kind = DAFL_EVENT_UPLOAD,
                                           .slot = s->slot,
                                           .peer = m->sender,
                                           .digest = end.dig});
    if (add_upload(s, m->sender) != DAFL_OK)
        return dafl_server_broke(s, DAFL_ERR_NOMEM);
    return DAFL_FAULT_NONE;
}

static void send_surv(dafl_server *s, const dafl_members *to)
{
    dafl_surv surv = {.a = s->a, .u3 = s->u3};
    dafl_writer digests = {0}, w = {0};

    for (size_t u = 0; u < s->u3.n; u++)
        if (dafl_members_has(&s->u3, u))
            dafl_put_fixed(&digests, s->seats[u].dig.b, DAFL_HASH_BYTES);
    surv.digests = dafl_writer_bytes(&digests);
    dafl_put_surv(&w, &surv);
    w.failed |= digests.failed;
    dafl_context_statement(&s->stmt, &s->ctx2, &s->u3, surv.digests);
    dafl_writer_drop(&digests);
    dafl_node_send(&s->node, DAFL_MSG_SURV, s->slot, to, &w);
}

static void survey(dafl_server *s)
{
    dafl_members to = dafl_members_both(&s->online, &s->seen);

    s->u3 = dafl_server_whole(s, &s->done);
    if (!cohort_stands(s, &s->u3))
        return;
    send_surv(s, &to);
    dafl_node_tell(&s->node, &(dafl_event){.kind = DAFL_EVENT_SURV,
                                           .slot = s->slot,
                                           .peer = DAFL_NOBODY,
                                           .set = s->u3,
                                           .digest = s->stmt});
    dafl_server_enter(s, DAFL_SERVER_SURVEY, DAFL_WAIT_SIGN);
}

dafl_fault dafl_server_on_sign(dafl_server *s, const dafl_envelope *m)
{
    dafl_seat *seat = &s->seats[m->sender];
    dafl_signature sig;

    if (dafl_get_sign(&sig, m->body) != DAFL_OK)
        return DAFL_E_FORMAT;
    if (m->slot != s->slot || !dafl_members_has(&s->acked, m->sender))
        return DAFL_E_STATE;
    if (dafl_sign_check(&sig, &s->stmt,
                        s->node.roster->parties[m->sender].id.sign_pk) !=
        DAFL_OK)
        return DAFL_E_AUTH;
    seat->stmt_sig = sig;
    dafl_members_add(&s->signers, m->sender);
    return DAFL_FAULT_NONE;
}

/* As many signatures as a quorum needs, t besides anyone's own. */
static void send_conf(dafl_server *s, const dafl_members *to)
{
    dafl_conf conf = {.signers = dafl_members_none(s->signers.n)};
    dafl_writer signatures = {0}, w = {0};

    for (size_t u = 0, n = 0; u < s->signers.n && n <= s->t; u++)
        if (dafl_members_has(&s->signers, u)) {
            dafl_members_add(&conf.signers, u);
            dafl_put_fixed(&signatures, s->seats[u].stmt_sig.b,
                           DAFL_SIGNATURE_BYTES);
            n++;
        }
    conf.signatures = dafl_writer_bytes(&signatures);
    dafl_put_conf(&w, &conf);
    w.failed |= signatures.failed;
    dafl_writer_drop(&signatures);
    dafl_node_send(&s->node, DAFL_MSG_CONF, s->slot, to, &w);
}

static void confirm(dafl_server *s)
{
    /* t signers besides itself, for everyone who signs or was cast. */
    if (dafl_members_count(&s->signers) < s->t + 1) {
        dafl_server_fail(s, DAFL_E_QUORUM);
        return;
    }
    send_conf(s, &s->signers);
    dafl_node_tell(&s->node, &(dafl_event){.kind = DAFL_EVENT_CONF,
                                           .slot = s->slot,
                                           .peer = DAFL_NOBODY,
                                           .set = s->signers,
                                           .digest = s->stmt});
    dafl_server_enter(s, DAFL_SERVER_REVEAL, DAFL_WAIT_REVEAL);
}

dafl_fault dafl_server_on_reveal(dafl_server *s, const dafl_envelope *m)
{
    size_t k = s->node.roster->n_clients;
    dafl_reveal reveal;

    if (dafl_get_reveal(&reveal, m->body) != DAFL_OK)
        return DAFL_E_FORMAT;
    if (m->slot != s->slot || !dafl_members_has(&s->signers, m->sender) ||
        dafl_members_has(&s->revealed, m->sender))
        return DAFL_E_STATE;
    for (size_t i = 0; i < reveal.n; i++) {
        dafl_revealed r = dafl_reveal_at(&reveal, i);
        bool fits = r.dealer != m->sender && r.dealer < k &&
                    (unsigned)r.kind ==
                        (unsigned)dafl_rule_reveal(&s->a, &s->u3, r.dealer);
        dafl_wipe(&r, sizeof r);
        if (!fits)
            return DAFL_E_FORMAT;
    }
    for (size_t i = 0; i < reveal.n; i++) {
        dafl_revealed r = dafl_reveal_at(&reveal, i);
        dafl_seat *dealer = &s->seats[r.dealer];
        if (dealer->shares_of == NULL)
            dealer->shares_of = dafl_secret_alloc(k, sizeof r.share);
        if (dealer->shares_of != NULL) {
            dealer->shares_of[m->sender] = r.share;
            dafl_members_add(&dealer->holders, m->sender);
        }
        dafl_wipe(&r, sizeof r);
        if (dealer->shares_of == NULL)
            return dafl_server_broke(s, DAFL_ERR_NOMEM);
    }
    dafl_members_add(&s->revealed, m->sender);
    return DAFL_FAULT_NONE;
}

void dafl_server_catch_up(dafl_server *s, uint16_t client)
{
    dafl_members one = dafl_members_none(s->node.roster->n_clients);
    bool slot =
        s->state >= DAFL_SERVER_CASTING && s->state <= DAFL_SERVER_REVEAL;

    dafl_members_add(&one, client);
    if (!slot)
        return;
    send_model(s, &one);
    if (s->state == DAFL_SERVER_CASTING)
        return;
    /* One that is still to upload gets its CAST in its turn. */
    if (!dafl_members_has(&s->waiting, client))
        send_cast(s, &one);
    if (s->state >= DAFL_SERVER_SURVEY)
        send_surv(s, &one);
    if (s->state == DAFL_SERVER_REVEAL && dafl_members_has(&s->signers, client))
        send_conf(s, &one);
}

/* Uploads whose time is over, or whose sender is lost, take their cell along.
 */
static void give_up_uploads(dafl_server *s)
{
    for (size_t u = 0; u < s->a.n; u++) {
        bool granted = dafl_members_has(&s->granted, u);
        bool pending = granted || dafl_members_has(&s->waiting, u);
        bool late = granted && s->now >= s->seats[u].until;
        if (pending && (late || !dafl_members_has(&s->online, u))) {
            if (late)
                dafl_members_remove(&s->online, u);
            dafl_node_error(&s->node, s->slot, (uint16_t)u, DAFL_E_TIMEOUT);
            give_up_cell(s, dafl_server_cell(s, u));
        }
    }
}

/* Those of `set` that are online and not in `got`; when it is late they are
 * taken to be gone. */
static bool all_there(dafl_server *s, const dafl_members *set,
                      const dafl_members *got, bool late)
{
    dafl_members missing = dafl_members_minus(set, got);

    missing = dafl_members_both(&missing, &s->online);
    if (late)
        s->online = dafl_members_minus(&s->online, &missing);
    return late || dafl_members_count(&missing) == 0;
}

static void collect_progress(dafl_server *s)
{
    give_up_uploads(s);
    grant(s);
    if (dafl_members_count(&s->granted) == 0 &&
        dafl_members_count(&s->waiting) == 0)
        survey(s);
}

void dafl_server_slot_progress(dafl_server *s, bool late)
{
    if (s->state == DAFL_SERVER_PAUSED)
        open_or_pause(s, late);
    else if (s->state == DAFL_SERVER_COLLECT)
        collect_progress(s);
    else if (s->state == DAFL_SERVER_CASTING &&
             all_there(s, &s->acked, &s->seen, late))
        cast(s);
    else if (s->state == DAFL_SERVER_SURVEY &&
             all_there(s, &s->seen, &s->signers, late))
        confirm(s);
    else if (s->state == DAFL_SERVER_REVEAL &&
             all_there(s, &s->signers, &s->revealed, late))
        dafl_server_open(s);
}
