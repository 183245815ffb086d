/* SPDX-License-Identifier: Apache-2.0 */
/* The server in a slot: READYs in; CAST out, uploads in; SURV out, signatures
 * in; CONF out, shares in. */
#include <stdlib.h>
#include <string.h>

#include "lib/ring.h"
#include "lib/secret.h"
#include "protocol/server_state.h"
#include "protocol/weaken.h"

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
    dafl_adder_drop(&s->cells[cell]);
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
    if (sodium_is_zero(ctx.b, sizeof ctx.b)) {
        /* It keeps its answer back, or has lost it on its way. */
        if (dafl_members_has(&s->granted, m->sender)) {
            dafl_node_error(&s->node, s->slot, m->sender, DAFL_E_SLOT_SPENT);
            give_up_cell(s, dafl_server_cell(s, m->sender));
        }
        return DAFL_FAULT_NONE;
    }
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
    if (!dafl_server_cohort_stands(s, &s->a))
        return;
    s->err = dafl_adder_start(&s->total, s->encryption, (size_t)s->shape.len,
                              s->node.config->contract.w);
    if (s->err != DAFL_OK)
        return;
    dafl_context_cast(&s->ctx2, &s->ctx, &s->a);
    dafl_node_tell(&s->node,
                   &(dafl_event){.kind = DAFL_EVENT_CAST,
                                 .slot = s->slot,
                                 .peer = DAFL_NOBODY,
                                 .set = s->a,
                                 .digest = s->ctx2},
                   NULL);
    s->state = DAFL_SERVER_COLLECT;
    s->deadline = UINT64_MAX; /* each upload has its own */
    s->waiting = s->a;
    helpers = dafl_members_both(&s->online, &s->acked);
    helpers = dafl_members_minus(&helpers, &s->a);
    send_cast(s, &helpers);
    grant(s);
}

/* Bytes of an upload. */
static size_t upload_bytes(const dafl_server *s)
{
    return dafl_config_upload_bytes(s->node.config, s->shape.len);
}

dafl_fault dafl_server_on_upload(dafl_server *s, const dafl_envelope *m)
{
    if (m->slot != s->slot ||
        (!dafl_members_has(&s->granted, m->sender) && !DAFL_WEAK(FIRST_END)))
        return DAFL_E_STATE;
    return dafl_node_take_chunk(&s->seats[m->sender].upload, m->body,
                                upload_bytes(s), &s->err);
}

/* Add a whole upload to its cell, and the cell to the total once it is whole.
 * DAFL_ERR_PEER for ciphertexts that are none, or cancel others. */
static dafl_err add_upload(dafl_server *s, uint16_t client)
{
    uint16_t of = dafl_server_cell(s, client);
    dafl_members missing = dafl_server_cell_members(s, of);
    dafl_writer *upload = &s->seats[client].upload;
    dafl_adder *cell = &s->cells[of];

    if (!dafl_adder_started(cell))
        DAFL_TRY(dafl_adder_start(cell, s->encryption, (size_t)s->shape.len,
                                  s->node.config->contract.w));
    DAFL_TRY(dafl_adder_add(cell, dafl_writer_bytes(upload)));
    dafl_writer_drop(upload);
    missing = dafl_members_minus(&missing, &s->done);
    dafl_members_remove(&missing, client);
    return dafl_members_count(&missing) == 0 ? dafl_adder_merge(&s->total, cell)
                                             : DAFL_OK;
}

dafl_fault dafl_server_on_end(dafl_server *s, const dafl_envelope *m)
{
    dafl_seat *seat = &s->seats[m->sender];
    dafl_end_msg end;
    dafl_digest dig, said;
    dafl_err err;

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
    dafl_context_end(&said, &s->ctx2, m->sender, &end.dig);
    if (dafl_sign_check(&end.sig, &said,
                        s->node.roster->parties[m->sender].id.sign_pk) !=
        DAFL_OK)
        return DAFL_E_AUTH;
    err = add_upload(s, m->sender);
    if (err == DAFL_ERR_PEER) {
        /* It says itself that there will be nothing else. */
        dafl_node_error(&s->node, s->slot, m->sender, DAFL_E_SEAL);
        give_up_cell(s, dafl_server_cell(s, m->sender));
        return DAFL_FAULT_NONE;
    }
    if (err != DAFL_OK)
        return dafl_server_broke(s, err);
    seat->dig = end.dig;
    seat->end_sig = end.sig;
    if (dafl_members_has(&s->granted, m->sender))
        dafl_members_remove(&s->granted, m->sender);
    dafl_members_add(&s->done, m->sender);
    dafl_node_tell(&s->node,
                   &(dafl_event){.kind = DAFL_EVENT_UPLOAD,
                                 .slot = s->slot,
                                 .peer = m->sender,
                                 .digest = end.dig},
                   NULL);
    return DAFL_FAULT_NONE;
}

/* What the survivors' uploads were, in order. */
static void put_digests(const dafl_server *s, dafl_writer *w)
{
    for (size_t u = 0; u < s->u3.n; u++)
        if (dafl_members_has(&s->u3, u))
            dafl_put_fixed(w, s->seats[u].dig.b, DAFL_HASH_BYTES);
}

void dafl_server_put_surv(const dafl_server *s, dafl_writer *w)
{
    dafl_surv surv = {.a = s->a, .u3 = s->u3};
    dafl_writer digests = {0}, ends = {0};

    put_digests(s, &digests);
    for (size_t u = 0; u < s->u3.n; u++)
        if (dafl_members_has(&s->u3, u))
            dafl_put_fixed(&ends, s->seats[u].end_sig.b, DAFL_SIGNATURE_BYTES);
    surv.digests = dafl_writer_bytes(&digests);
    surv.ends = dafl_writer_bytes(&ends);
    dafl_put_surv(w, &surv);
    w->failed |= digests.failed || ends.failed;
    dafl_writer_drop(&digests);
    dafl_writer_drop(&ends);
}

static void send_surv(dafl_server *s, const dafl_members *to)
{
    dafl_writer w = {0};

    dafl_server_put_surv(s, &w);
    dafl_node_send(&s->node, DAFL_MSG_SURV, s->slot, to, &w);
}

static void survey(dafl_server *s)
{
    dafl_members to = dafl_members_both(&s->online, &s->seen);
    dafl_writer digests = {0};

    s->u3 = dafl_server_whole(s, &s->done);
    if (!dafl_server_cohort_stands(s, &s->u3))
        return;
    put_digests(s, &digests);
    dafl_context_statement(&s->stmt, &s->ctx2, &s->u3,
                           dafl_writer_bytes(&digests));
    dafl_node_tell(&s->node,
                   &(dafl_event){.kind = DAFL_EVENT_SURV,
                                 .slot = s->slot,
                                 .peer = DAFL_NOBODY,
                                 .set = s->u3,
                                 .digest = s->stmt},
                   &digests);
    send_surv(s, &to);
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
void dafl_server_put_conf(const dafl_server *s, dafl_writer *w)
{
    dafl_conf conf = {.signers = dafl_members_none(s->signers.n)};
    dafl_writer signatures = {0};

    for (size_t u = 0, n = 0; u < s->signers.n && n <= s->t; u++)
        if (dafl_members_has(&s->signers, u)) {
            dafl_members_add(&conf.signers, u);
            dafl_put_fixed(&signatures, s->seats[u].stmt_sig.b,
                           DAFL_SIGNATURE_BYTES);
            n++;
        }
    conf.signatures = dafl_writer_bytes(&signatures);
    dafl_put_conf(w, &conf);
    w->failed |= signatures.failed;
    dafl_writer_drop(&signatures);
}

static void send_conf(dafl_server *s, const dafl_members *to)
{
    dafl_writer w = {0};

    dafl_server_put_conf(s, &w);
    dafl_node_send(&s->node, DAFL_MSG_CONF, s->slot, to, &w);
}

static void confirm(dafl_server *s)
{
    dafl_writer w = {0};

    /* t signers besides itself, for everyone who signs or was cast. */
    if (dafl_members_count(&s->signers) < s->t + 1) {
        dafl_server_fail(s, DAFL_E_QUORUM);
        return;
    }
    for (size_t u = 0; u < s->signers.n; u++)
        if (dafl_members_has(&s->signers, u))
            dafl_put_fixed(&w, s->seats[u].stmt_sig.b, DAFL_SIGNATURE_BYTES);
    dafl_node_tell(&s->node,
                   &(dafl_event){.kind = DAFL_EVENT_CONF,
                                 .slot = s->slot,
                                 .peer = DAFL_NOBODY,
                                 .set = s->signers,
                                 .digest = s->stmt},
                   &w);
    send_conf(s, &s->signers);
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

void dafl_server_catch_up(dafl_server *s, uint16_t client, bool in_slot)
{
    dafl_members one = dafl_members_none(s->node.roster->n_clients);
    bool slot =
        s->state >= DAFL_SERVER_CASTING && s->state <= DAFL_SERVER_OPENING;

    dafl_members_add(&one, client);
    if (!slot)
        return;
    in_slot = in_slot && dafl_members_has(&s->done, client);
    if (!in_slot)
        dafl_server_send_model(s, &one);
    if (s->state == DAFL_SERVER_CASTING)
        return;
    /* One that is still to upload gets its CAST in its turn; one that has would
     * send it all again. */
    if (!in_slot && !dafl_members_has(&s->waiting, client))
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
        dafl_server_resume(s, late);
    else if (s->state == DAFL_SERVER_COLLECT)
        collect_progress(s);
    else if (s->state == DAFL_SERVER_CASTING &&
             all_there(s, &s->acked, &s->seen, late))
        cast(s);
    else if (s->state == DAFL_SERVER_SURVEY &&
             all_there(s, &s->seen, &s->signers, late))
        confirm(s);
    else if (s->state == DAFL_SERVER_REVEAL &&
             all_there(s, &s->signers, &s->revealed, late)) {
        if (s->encryption != NULL)
            dafl_server_ask_open(s);
        else
            dafl_server_open(s);
    } else if (late && s->state == DAFL_SERVER_KEYING)
        dafl_server_await_holder(s, DAFL_WAIT_SIGN);
    else if (late && s->state == DAFL_SERVER_OPENING)
        dafl_server_await_holder(s, DAFL_WAIT_UPLOAD);
}
