/* SPDX-License-Identifier: Apache-2.0 */
/* A client in a slot: MODEL, CAST, SURV, CONF. Everything it sends is bound to
 * what it has itself been told. */
#include <stdlib.h>
#include <string.h>

#include "lib/ring.h"
#include "lib/secret.h"
#include "protocol/client_state.h"
#include "protocol/masking.h"
#include "protocol/weaken.h"

/* The cohort that answered an earlier question, or NULL when we have not
 * signed for it. */
static const dafl_members *cohort_of(const dafl_client *c, uint32_t question)
{
    if (question + 1 >= c->n_segments)
        return NULL;
    for (size_t i = c->n_witnessed; i-- > 0;)
        if (c->witnessed[i].slot == c->answered[question + 1])
            return &c->witnessed[i].u3;
    return NULL;
}

/* What the rules are asked with. DAFL_E_COHORT when the cohorts that the
 * question is tied to differ or are unknown to us. */
static dafl_fault view_slot(const dafl_client *c, dafl_slot_view *v)
{
    *v = (dafl_slot_view){.roster = c->node.roster,
                          .policy = &c->node.config->policy,
                          .u1 = &c->u1,
                          .t = c->t};
    for (size_t i = 0; i < c->shape.n_ties; i++) {
        const dafl_members *tied = cohort_of(c, c->shape.ties[i]);
        if (!DAFL_WEAK(TIES) &&
            (tied == NULL ||
             (i > 0 && !dafl_members_equal(tied, v->increment_over))))
            return DAFL_E_COHORT;
        v->increment_over = tied;
    }
    return DAFL_FAULT_NONE;
}

static dafl_err remember_answered(dafl_client *c, uint32_t slot)
{
    if (c->n_segments == c->room_segments) {
        uint32_t room = c->room_segments == 0 ? 64 : 2 * c->room_segments;
        uint32_t *more = realloc(c->answered, room * sizeof *more);
        if (more == NULL)
            return DAFL_ERR_NOMEM;
        c->answered = more;
        c->room_segments = room;
    }
    c->answered[c->n_segments++] = slot;
    return DAFL_OK;
}

/* Follow the segments that we do not have yet; those we have are passed over
 * (our own digest decides). */
static dafl_fault follow(dafl_client *c, dafl_model_msg *model)
{
    while (model->n > 0) {
        dafl_segment s;
        dafl_fault fault;
        if (dafl_model_next(model, &s) != DAFL_OK)
            return DAFL_E_FORMAT;
        if (s.query < c->n_segments)
            continue;
        if (s.query > c->n_segments || s.query > model->query)
            return DAFL_E_STATE;
        fault = c->method->follow(c->method_self, &s);
        if (fault != DAFL_FAULT_NONE)
            return fault;
        dafl_context_model(&c->model, &s);
        if (remember_answered(c, s.slot) != DAFL_OK)
            return dafl_client_broke(c, DAFL_ERR_NOMEM);
    }
    /* A server may not go back to an earlier question either. */
    return c->n_segments > model->query + 1 ? DAFL_E_STATE : DAFL_FAULT_NONE;
}

/* Zeros instead of the context: we keep our answer back. */
static void send_ready(dafl_client *c)
{
    static const dafl_digest back;
    dafl_writer w = {0};

    dafl_put_ready(&w, c->state == DAFL_CLIENT_READY ? &c->ctx : &back);
    dafl_node_send(&c->node, DAFL_MSG_READY, c->slot, NULL, &w);
}

/* Ask the method. Without an answer of our own we can still help others. */
static dafl_fault answer(dafl_client *c)
{
    dafl_fault fault;

    c->x = dafl_bulk_alloc(c->shape.len, sizeof *c->x);
    if (c->x == NULL)
        return dafl_client_broke(c, DAFL_ERR_NOMEM);
    memset(c->x, 0, c->shape.len * sizeof *c->x);
    fault = c->method->answer(c->method_self, &c->question, c->x,
                              (size_t)c->shape.len);
    if (fault == DAFL_FAULT_NONE) {
        c->state = DAFL_CLIENT_READY;
        dafl_node_tell(&c->node,
                       &(dafl_event){.kind = DAFL_EVENT_READY,
                                     .slot = c->slot,
                                     .peer = DAFL_NOBODY,
                                     .digest = c->ctx},
                       NULL);
        send_ready(c);
        return DAFL_FAULT_NONE;
    }
    dafl_bulk_free(c->x);
    c->x = NULL;
    if (dafl_fault_falls(fault) == DAFL_FALLS_RUN)
        return fault;
    dafl_node_error(&c->node, c->slot, DAFL_NOBODY, fault);
    c->state = DAFL_CLIENT_MODELED;
    send_ready(c);
    return DAFL_FAULT_NONE;
}

/* The slot's encryption key is signed by its holder, for this setup and slot;
 * without encryption there is none. */
static dafl_fault check_key(const dafl_client *c, uint32_t slot,
                            dafl_bytes body, dafl_digest *he)
{
    const dafl_roster *roster = c->node.roster;
    dafl_key_msg key;
    dafl_digest said;

    *he = (dafl_digest){{0}};
    if (c->encryption == NULL)
        return body.len == 0 ? DAFL_FAULT_NONE : DAFL_E_FORMAT;
    if (dafl_get_key_msg(&key, body) != DAFL_OK)
        return DAFL_E_FORMAT;
    dafl_context_he(he, key.pk);
    dafl_context_key(&said, &c->node.run, &c->h_setup, slot, he);
    if (dafl_sign_check(&key.sig, &said,
                        roster->parties[roster->n - 1].id.sign_pk) != DAFL_OK &&
        !DAFL_WEAK(HOLDER_KEY))
        return DAFL_E_AUTH;
    return DAFL_FAULT_NONE;
}

static dafl_fault keep_key(dafl_client *c, dafl_bytes body)
{
    dafl_key_msg key;
    dafl_err err;

    if (c->encryption == NULL)
        return DAFL_FAULT_NONE;
    if (dafl_get_key_msg(&key, body) != DAFL_OK)
        return DAFL_E_FORMAT;
    dafl_he_public_free(&c->he_key);
    err = dafl_he_public_read(c->encryption, &c->he_key, key.pk);
    return err == DAFL_OK         ? DAFL_FAULT_NONE
           : err == DAFL_ERR_PEER ? DAFL_E_SEAL
                                  : dafl_client_broke(c, err);
}

dafl_fault dafl_client_on_model(dafl_client *c, const dafl_envelope *m)
{
    uint8_t w = (uint8_t)c->node.config->contract.w;
    uint32_t had = c->n_segments;
    dafl_model_msg model;
    dafl_fault fault;
    dafl_digest he;

    if (dafl_get_model(&model, m->body) != DAFL_OK)
        return DAFL_E_FORMAT;
    if (m->slot < dafl_node_first_slot(&c->node, c->enrolment) ||
        m->slot > dafl_node_last_slot(&c->node, c->enrolment))
        return DAFL_E_STATE;
    if ((m->slot < c->slot || m->slot <= c->closed) && !DAFL_WEAK(SLOT))
        return DAFL_E_SLOT_SPENT;
    if (m->slot == c->slot && c->state != DAFL_CLIENT_IDLE &&
        !DAFL_WEAK(SLOT)) {
        /* Again, after a reconnection: the same question, or none. */
        if (model.query != c->question.number || model.rank != c->question.rank)
            return DAFL_E_SLOT_SPENT;
        if (c->state == DAFL_CLIENT_READY || c->state == DAFL_CLIENT_MODELED)
            send_ready(c);
        return DAFL_FAULT_NONE;
    }
    fault = check_key(c, m->slot, model.key, &he);
    if (fault == DAFL_FAULT_NONE)
        fault = dafl_client_look_again(c);
    if (fault != DAFL_FAULT_NONE)
        return fault;
    if (DAFL_WEAK(SLOT))
        c->journal_upload = c->journal_sign = 0;
    dafl_client_close(c, m->slot - 1);
    if (m->slot > c->slot)
        dafl_node_recap(&c->node, c->slot);
    c->slot = m->slot;
    c->state = DAFL_CLIENT_IDLE;
    c->he = he;
    fault = keep_key(c, model.key);
    if (fault != DAFL_FAULT_NONE || c->err != DAFL_OK)
        return fault;
    fault = follow(c, &model);
    if ((fault == DAFL_FAULT_NONE || fault == DAFL_E_STATE) &&
        c->n_segments <= model.query) {
        /* Not all yet: say what we have, the server sends the rest. Not if
         * this brought nothing, or the two of us would not stop. */
        if (fault != DAFL_FAULT_NONE || c->n_segments > had)
            c->err = dafl_client_hello(c);
        return fault;
    }
    if (fault != DAFL_FAULT_NONE || c->err != DAFL_OK)
        return fault;
    c->question = (dafl_question){model.query, model.rank};
    fault = c->method->shape(c->method_self, &c->question, &c->shape);
    if (fault != DAFL_FAULT_NONE)
        return fault;
    if (dafl_config_upload_bytes(c->node.config, c->shape.len) == SIZE_MAX ||
        c->shape.n_ties > DAFL_TIES_MAX)
        return DAFL_E_MODEL;
    dafl_context_slot(&c->ctx, &c->h_setup,
                      &(dafl_slot_task){.slot = c->slot,
                                        .query = model.query,
                                        .rank = model.rank,
                                        .model = c->model,
                                        .len = c->shape.len,
                                        .w = w,
                                        .he = c->he});
    dafl_node_tell_model(&c->node,
                         &(dafl_event){.slot = c->slot,
                                       .number = model.query,
                                       .peer = m->sender,
                                       .digest = c->model},
                         model.rank, c->shape.len, &c->h_setup, &c->he);
    return answer(c);
}

/* Our secrets of the slot: sk, then b. */
static const dafl_key *own_keys(const dafl_client *c)
{
    return (const dafl_key *)(const void *)dafl_client_record(c, c->slot);
}

/* From masked words to what travels. */
static dafl_err wrap(dafl_client *c, const uint64_t *ring, size_t len,
                     unsigned w)
{
    size_t bytes = len * (w / 8);

    if (c->encryption != NULL)
        return dafl_he_encrypt(c->encryption, c->he_key, ring, len, &c->y);
    c->y = (dafl_writer){
        .ptr = dafl_bulk_alloc(len, w / 8), .len = bytes, .room = bytes};
    if (c->y.ptr == NULL) {
        c->y = (dafl_writer){0};
        return DAFL_ERR_NOMEM;
    }
    dafl_ring_pack(c->y.ptr, ring, len, w);
    return DAFL_OK;
}

static dafl_fault mask(dafl_client *c)
{
    size_t slots = c->node.config->slots, len = (size_t)c->shape.len;
    size_t i = c->slot - dafl_node_first_slot(&c->node, c->enrolment);
    unsigned w = c->node.config->contract.w;
    uint64_t *ring = (uint64_t *)c->x;
    dafl_public pk[DAFL_CLIENTS_MAX];
    dafl_masking masking = {&c->ctx2, &c->a, pk, w};
    dafl_err err;

    for (size_t u = 0; u < c->node.roster->n_clients; u++)
        pk[u] = c->keys[u * slots + i].pk;
    dafl_ring_from_int(ring, c->x, len);
    err = c->node.config->mode == DAFL_MODE_NONE
              ? DAFL_OK
              : dafl_masking_own(ring, len, &masking, c->node.index,
                                 own_keys(c), own_keys(c) + 1, c->pool);
    if (err == DAFL_OK)
        err = wrap(c, ring, len, w);
    if (err == DAFL_OK)
        dafl_context_upload(&c->dig, &c->ctx2, c->node.index,
                            dafl_writer_bytes(&c->y));
    dafl_bulk_free(c->x);
    c->x = NULL;
    return err == DAFL_OK ? DAFL_FAULT_NONE : dafl_client_broke(c, err);
}

/* Before the first byte leaves it is journaled which bytes those are; the slot
 * takes no others. */
static dafl_fault journal_upload(dafl_client *c)
{
    dafl_writer w = {0};

    if (c->journal_upload == c->slot) {
        if ((!dafl_digest_equal(&c->journal_ctx2, &c->ctx2) ||
             !dafl_digest_equal(&c->journal_dig, &c->dig)) &&
            !DAFL_WEAK(RESEND))
            return DAFL_E_SLOT_SPENT;
        return DAFL_FAULT_NONE;
    }
    if (dafl_client_give(c) != DAFL_OK)
        return dafl_client_broke(c, DAFL_ERR_NOMEM);
    c->journal_upload = c->slot;
    c->journal_ctx2 = c->ctx2;
    c->journal_dig = c->dig;
    dafl_put_u8(&w, DAFL_RECORD_UPLOAD);
    dafl_put_u32(&w, c->slot);
    dafl_put_fixed(&w, c->ctx2.b, sizeof c->ctx2.b);
    dafl_put_fixed(&w, c->dig.b, sizeof c->dig.b);
    dafl_node_append(&c->node, &w);
    return DAFL_FAULT_NONE;
}

static void send_upload(dafl_client *c)
{
    dafl_end_msg end = {.len = c->y.len, .dig = c->dig};
    dafl_writer w = {0};
    dafl_digest said;

    dafl_node_send_chunks(&c->node, c->slot, dafl_writer_bytes(&c->y), false);
    dafl_context_end(&said, &c->ctx2, c->node.index, &c->dig);
    dafl_sign(&end.sig, &said, c->node.self);
    dafl_put_end(&w, &end);
    dafl_node_send(&c->node, DAFL_MSG_END, c->slot, NULL, &w);
}

/* A restart has lost what was encrypted, and encrypting it again gives other
 * bytes: those that were journaled, if they have arrived, are all there is. */
static bool is_lost(const dafl_client *c)
{
    return c->encryption != NULL && c->journal_upload == c->slot &&
           dafl_digest_equal(&c->journal_ctx2, &c->ctx2) && !DAFL_WEAK(RESEND);
}

static dafl_fault upload(dafl_client *c)
{
    dafl_fault fault;

    if (is_lost(c)) {
        dafl_node_error(&c->node, c->slot, DAFL_NOBODY, DAFL_E_SLOT_SPENT);
        dafl_bulk_free(c->x);
        c->x = NULL;
        c->dig = c->journal_dig;
        c->uploaded = true;
        c->state = DAFL_CLIENT_CAST;
        send_ready(c); /* nothing follows */
        return DAFL_FAULT_NONE;
    }
    fault = mask(c);
    if (fault == DAFL_FAULT_NONE && c->err == DAFL_OK)
        fault = journal_upload(c);
    if (fault != DAFL_FAULT_NONE || c->err != DAFL_OK)
        return fault;
    c->uploaded = true;
    c->state = DAFL_CLIENT_UPLOADED;
    dafl_node_tell(&c->node,
                   &(dafl_event){.kind = DAFL_EVENT_UPLOAD,
                                 .slot = c->slot,
                                 .peer = DAFL_NOBODY,
                                 .digest = c->dig},
                   NULL);
    send_upload(c);
    return DAFL_FAULT_NONE;
}

dafl_fault dafl_client_on_cast(dafl_client *c, const dafl_envelope *m)
{
    dafl_slot_view view;
    dafl_members a;
    dafl_fault fault;

    if (m->slot != c->slot)
        return DAFL_E_STATE;
    if (dafl_get_cast(&a, m->body) != DAFL_OK ||
        a.n != c->node.roster->n_clients)
        return DAFL_E_FORMAT;
    if (c->state == DAFL_CLIENT_CAST || c->state == DAFL_CLIENT_UPLOADED) {
        if (!dafl_members_equal(&a, &c->a))
            return DAFL_E_SLOT_SPENT;
        if (c->state == DAFL_CLIENT_UPLOADED)
            send_upload(c);
        return DAFL_FAULT_NONE;
    }
    fault = view_slot(c, &view);
    if (fault == DAFL_FAULT_NONE)
        fault = dafl_rule_cast(&view, &a);
    if (fault != DAFL_FAULT_NONE)
        return fault;
    c->a = a;
    dafl_context_cast(&c->ctx2, &c->ctx, &a);
    dafl_node_tell(&c->node,
                   &(dafl_event){.kind = DAFL_EVENT_CAST,
                                 .slot = c->slot,
                                 .peer = m->sender,
                                 .set = a,
                                 .digest = c->ctx2},
                   NULL);
    if (c->state == DAFL_CLIENT_READY && dafl_members_has(&a, c->node.index))
        return upload(c);
    c->state = DAFL_CLIENT_CAST;
    return DAFL_FAULT_NONE;
}

/* One statement a slot, also after a restart, and journaled before it is
 * signed. */
static dafl_fault journal_sign(dafl_client *c, const dafl_digest *stmt,
                               const dafl_members *u3)
{
    dafl_writer w = {0};

    if (c->journal_sign == c->slot) {
        if (!dafl_digest_equal(&c->journal_stmt, stmt) && !DAFL_WEAK(STATEMENT))
            return DAFL_E_SECOND_STMT;
        return DAFL_FAULT_NONE;
    }
    if (dafl_client_witness(c, c->slot, u3) != DAFL_OK)
        return dafl_client_broke(c, DAFL_ERR_NOMEM);
    c->journal_sign = c->slot;
    c->journal_stmt = *stmt;
    dafl_put_u8(&w, DAFL_RECORD_SIGN);
    dafl_put_u32(&w, c->slot);
    dafl_put_fixed(&w, stmt->b, sizeof stmt->b);
    dafl_put_members(&w, u3);
    dafl_node_append(&c->node, &w);
    return DAFL_FAULT_NONE;
}

static void tell_sign(dafl_client *c, const dafl_envelope *m,
                      const dafl_surv *surv, const dafl_signature *sig)
{
    dafl_writer w = {0};

    dafl_put_fixed(&w, sig->b, sizeof sig->b);
    dafl_put_fixed(&w, surv->digests.ptr, surv->digests.len);
    dafl_node_tell(&c->node,
                   &(dafl_event){.kind = DAFL_EVENT_SIGN,
                                 .slot = c->slot,
                                 .peer = m->sender,
                                 .set = surv->u3,
                                 .digest = c->stmt},
                   &w);
}

/* Signed again as often as it is asked for; told of once. */
dafl_fault dafl_client_on_surv(dafl_client *c, const dafl_envelope *m)
{
    dafl_writer w = {0};
    dafl_slot_view view;
    dafl_signature sig;
    dafl_digest stmt;
    dafl_surv surv;
    dafl_fault fault;
    bool again;

    if (m->slot != c->slot)
        return DAFL_E_STATE;
    if (dafl_get_surv(&surv, m->body) != DAFL_OK ||
        surv.u3.n != c->node.roster->n_clients)
        return DAFL_E_FORMAT;
    fault = view_slot(c, &view);
    if (fault == DAFL_FAULT_NONE)
        fault = dafl_rule_surv(&view, &surv, &c->a, &c->ctx2, c->node.index,
                               c->uploaded ? &c->dig : NULL);
    if (fault != DAFL_FAULT_NONE)
        return fault;
    dafl_context_statement(&stmt, &c->ctx2, &surv.u3, surv.digests);
    fault = journal_sign(c, &stmt, &surv.u3);
    if (fault != DAFL_FAULT_NONE || c->err != DAFL_OK)
        return fault;
    again = c->state >= DAFL_CLIENT_SIGNED &&
            dafl_digest_equal(&c->stmt, &stmt) && !DAFL_WEAK(LINES);
    c->stmt = stmt;
    c->u3 = surv.u3;
    if (c->state != DAFL_CLIENT_REVEALED)
        c->state = DAFL_CLIENT_SIGNED;
    dafl_writer_drop(&c->y);
    dafl_sign(&sig, &stmt, c->node.self);
    if (!again)
        tell_sign(c, m, &surv, &sig);
    dafl_put_sign(&w, &sig);
    dafl_node_send(&c->node, DAFL_MSG_SIGN, c->slot, NULL, &w);
    return DAFL_FAULT_NONE;
}

/* One share of every dealer that was cast; of which secret, dafl_rule_reveal
 * says. `again`: it has been told. */
static void send_reveal(dafl_client *c, bool again)
{
    const uint8_t *record = dafl_client_record(c, c->slot);
    dafl_members gone = dafl_members_minus(&c->a, &c->u3);
    dafl_revealed items[DAFL_CLIENTS_MAX];
    dafl_writer w = {0};
    uint16_t n = 0;

    for (uint16_t u = 0; u < c->u1.n; u++) {
        dafl_share_kind kind = dafl_rule_reveal(&c->a, &c->u3, u);
        const uint8_t *held = record + dafl_client_held(c, u);
        if (u == c->node.index || kind == DAFL_SHARE_NOTHING ||
            !dafl_members_has(&c->u1, u) || sodium_is_zero(held, 64))
            continue;
        items[n].dealer = u;
        items[n].kind = (dafl_reveal_kind)kind;
        memcpy(items[n].share.b, held + (kind == DAFL_SHARE_B ? 0 : 32), 32);
        n++;
    }
    dafl_put_reveal(&w, items, n);
    dafl_wipe(items, sizeof items);
    if (!again)
        dafl_node_tell(&c->node,
                       &(dafl_event){.kind = DAFL_EVENT_REVEAL,
                                     .slot = c->slot,
                                     .peer = DAFL_NOBODY,
                                     .set = gone},
                       NULL);
    dafl_node_send(&c->node, DAFL_MSG_REVEAL, c->slot, NULL, &w);
}

/* A quorum that is refused is told as well: signatures in it may show that
 * their signers signed something else too. */
static void tell_conf(dafl_client *c, const dafl_envelope *m,
                      const dafl_conf *conf, dafl_fault fault)
{
    dafl_writer w = {0};

    dafl_put_fixed(&w, conf->signatures.ptr, conf->signatures.len);
    dafl_node_tell(&c->node,
                   &(dafl_event){.kind = DAFL_EVENT_CONF,
                                 .slot = c->slot,
                                 .peer = m->sender,
                                 .fault = fault,
                                 .set = conf->signers,
                                 .digest = c->stmt},
                   &w);
}

dafl_fault dafl_client_on_conf(dafl_client *c, const dafl_envelope *m)
{
    bool again = c->state == DAFL_CLIENT_REVEALED && !DAFL_WEAK(LINES);
    dafl_slot_view view;
    dafl_conf conf;
    dafl_fault fault;

    if (m->slot != c->slot)
        return DAFL_E_STATE;
    if (dafl_get_conf(&conf, m->body) != DAFL_OK)
        return DAFL_E_FORMAT;
    fault = view_slot(c, &view);
    if (fault == DAFL_FAULT_NONE)
        fault = dafl_rule_conf(&view, &conf, &c->a, &c->stmt);
    if (DAFL_WEAK(QUORUM))
        fault = DAFL_FAULT_NONE;
    if (conf.signers.n == c->a.n && (!again || fault != DAFL_FAULT_NONE))
        tell_conf(c, m, &conf, fault);
    if (fault != DAFL_FAULT_NONE)
        return fault;
    c->state = DAFL_CLIENT_REVEALED;
    send_reveal(c, again);
    return DAFL_FAULT_NONE;
}

/* Advisory; of slot 0 it says that the run is over, and every key goes. */
dafl_fault dafl_client_on_result(dafl_client *c, const dafl_envelope *m)
{
    dafl_result result;
    dafl_writer w = {0};

    if (dafl_get_result(&result, m->body) != DAFL_OK ||
        result.fault >= DAFL_FAULT_COUNT)
        return DAFL_E_FORMAT;
    if (m->slot == 0 && dafl_node_is_doubted(&result))
        return dafl_node_rolled_back(&c->node, &result) ? DAFL_E_STATE_LOST
                                                        : DAFL_FAULT_NONE;
    if (m->slot != 0 && !DAFL_WEAK(LINES)) {
        /* Each once: a server cannot fill our log with them. */
        if (m->slot <= c->resulted ||
            m->slot > dafl_node_last_slot(&c->node, c->enrolment))
            return DAFL_FAULT_NONE;
        c->resulted = m->slot;
    }
    dafl_node_tell(&c->node,
                   &(dafl_event){.kind = DAFL_EVENT_RESULT,
                                 .slot = m->slot,
                                 .number = DAFL_NO_QUESTION,
                                 .peer = m->sender,
                                 .fault = (dafl_fault)result.fault,
                                 .digest = result.sum},
                   NULL);
    if (m->slot != 0)
        return DAFL_FAULT_NONE;
    dafl_client_close(c, dafl_node_last_slot(&c->node, c->enrolment));
    dafl_client_drop_setup(c);
    dafl_put_u8(&w, DAFL_RECORD_OVER);
    dafl_put_u16(&w, result.fault);
    dafl_node_append(&c->node, &w);
    dafl_node_recap(&c->node, c->slot);
    c->fault = (dafl_fault)result.fault;
    c->state = DAFL_CLIENT_OUT;
    return DAFL_FAULT_NONE;
}
