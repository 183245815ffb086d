/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/holder.h"

#include <stdlib.h>
#include <string.h>

#include "lib/ring.h"
#include "lib/secret.h"
#include "protocol/holder_state.h"
#include "protocol/weaken.h"

static dafl_holder_handler on_ask, on_open, on_chunk, on_result;

/* The table. An empty cell is E_STATE: the message is dropped and recorded. A
 * slot only moves forward, and a key that is gone is gone. */
static dafl_holder_handler *const table[DAFL_HOLDER_STATES][DAFL_MSG_COUNT] = {
    [DAFL_HOLDER_WAITING] = {[DAFL_MSG_INVITE] = dafl_holder_on_invite,
                             [DAFL_MSG_RESULT] = on_result},
    [DAFL_HOLDER_INVITED] = {[DAFL_MSG_INVITE] = dafl_holder_on_invite,
                             [DAFL_MSG_PEERS] = dafl_holder_on_peers,
                             [DAFL_MSG_RESULT] = on_result},
    [DAFL_HOLDER_LISTED] = {[DAFL_MSG_INVITE] = dafl_holder_on_invite,
                            [DAFL_MSG_PEERS] = dafl_holder_on_peers,
                            [DAFL_MSG_SETUP] = dafl_holder_on_setup,
                            [DAFL_MSG_RESULT] = on_result},
    [DAFL_HOLDER_IDLE] = {[DAFL_MSG_INVITE] = dafl_holder_on_invite,
                          [DAFL_MSG_PEERS] = dafl_holder_on_peers,
                          [DAFL_MSG_SETUP] = dafl_holder_on_setup,
                          [DAFL_MSG_ASK] = on_ask,
                          [DAFL_MSG_OPEN] = on_open,
                          [DAFL_MSG_UPLOAD] = on_chunk,
                          [DAFL_MSG_RESULT] = on_result},
    [DAFL_HOLDER_KEYED] = {[DAFL_MSG_INVITE] = dafl_holder_on_invite,
                           [DAFL_MSG_PEERS] = dafl_holder_on_peers,
                           [DAFL_MSG_SETUP] = dafl_holder_on_setup,
                           [DAFL_MSG_ASK] = on_ask,
                           [DAFL_MSG_OPEN] = on_open,
                           [DAFL_MSG_UPLOAD] = on_chunk,
                           [DAFL_MSG_RESULT] = on_result},
    [DAFL_HOLDER_OPENING] = {[DAFL_MSG_INVITE] = dafl_holder_on_invite,
                             [DAFL_MSG_PEERS] = dafl_holder_on_peers,
                             [DAFL_MSG_SETUP] = dafl_holder_on_setup,
                             [DAFL_MSG_ASK] = on_ask,
                             [DAFL_MSG_OPEN] = on_open,
                             [DAFL_MSG_UPLOAD] = on_chunk,
                             [DAFL_MSG_RESULT] = on_result},
    [DAFL_HOLDER_OPENED] = {[DAFL_MSG_INVITE] = dafl_holder_on_invite,
                            [DAFL_MSG_PEERS] = dafl_holder_on_peers,
                            [DAFL_MSG_SETUP] = dafl_holder_on_setup,
                            [DAFL_MSG_ASK] = on_ask,
                            [DAFL_MSG_OPEN] = on_open,
                            [DAFL_MSG_UPLOAD] = on_chunk,
                            [DAFL_MSG_RESULT] = on_result},
    [DAFL_HOLDER_OUT] = {0},
};

const char *dafl_holder_state_name(dafl_holder_state state)
{
    static const char *const names[DAFL_HOLDER_STATES] = {
        "WAITING", "INVITED", "LISTED", "IDLE",
        "KEYED",   "OPENING", "OPENED", "OUT"};

    return (size_t)state < DAFL_HOLDER_STATES ? names[state] : "?";
}

dafl_err dafl_holder_new(dafl_holder **out, const dafl_holder_params *p,
                         dafl_fault *fault, dafl_why *why)
{
    dafl_holder *h = calloc(1, sizeof *h);
    dafl_fault refused = DAFL_FAULT_NONE;
    dafl_err err;

    if (h == NULL)
        return DAFL_ERR_NOMEM;
    err = dafl_node_init(&h->node, p->roster, p->config, p->self,
                         DAFL_ROLE_KEYHOLDER, fault, why);
    if (err != DAFL_OK)
        goto out;
    if (p->config->mode != DAFL_MODE_SEAL)
        refused = dafl_fail(why, DAFL_E_POLICY,
                            "the config asks for no encryption: a key holder "
                            "has nothing to do");
    if (refused == DAFL_FAULT_NONE)
        refused = dafl_policy_floor(&p->config->policy, &p->floor, why);
    if (refused == DAFL_FAULT_NONE &&
        dafl_he_new(&h->encryption, p->config->contract.w, p->pool, why) !=
            DAFL_OK)
        refused = DAFL_E_POLICY;
    if (refused != DAFL_FAULT_NONE) {
        if (fault != NULL)
            *fault = refused;
        err = DAFL_ERR_INPUT;
    }
out:
    if (err == DAFL_OK)
        *out = h;
    else
        dafl_holder_free(&h);
    return err;
}

void dafl_holder_drop_slot(dafl_holder *h)
{
    dafl_he_secret_free(&h->key);
    dafl_writer_drop(&h->key_msg);
    dafl_writer_drop(&h->came);
    dafl_writer_drop(&h->answer);
    h->spent = false;
}

void dafl_holder_erase(dafl_holder *h, uint32_t slot)
{
    dafl_effects_add(&h->node.effects,
                     &(dafl_effect){.kind = DAFL_DO_ERASE, .slot = slot}, NULL);
}

void dafl_holder_free(dafl_holder **holder)
{
    dafl_holder *h = *holder;

    if (h == NULL)
        return;
    dafl_holder_drop_slot(h);
    dafl_he_free(&h->encryption);
    dafl_node_drop(&h->node);
    free(h->peers);
    free(h->runs);
    free(h);
    *holder = NULL;
}

dafl_fault dafl_holder_broke(dafl_holder *h, dafl_err err)
{
    h->err = err;
    return DAFL_FAULT_NONE;
}

/* ---- a slot ---- */

static void send_key(dafl_holder *h)
{
    dafl_writer w = {0};

    dafl_put_fixed(&w, h->key_msg.ptr, h->key_msg.len);
    dafl_node_send(&h->node, DAFL_MSG_KEY, h->slot, NULL, &w);
}

static dafl_err make_key(dafl_holder *h, uint32_t slot)
{
    dafl_key_msg m;
    dafl_writer pk = {0};
    dafl_digest said;
    dafl_err err = dafl_he_keygen(h->encryption, &h->key, &pk);

    if (err == DAFL_OK)
        err = dafl_writer_done(&pk);
    if (err == DAFL_OK) {
        m.pk = dafl_writer_bytes(&pk);
        dafl_context_he(&h->he, m.pk);
        dafl_context_key(&said, &h->node.run, &h->h_setup, slot, &h->he);
        dafl_sign(&m.sig, &said, h->node.self);
        dafl_put_key_msg(&h->key_msg, &m);
        err = dafl_writer_done(&h->key_msg);
    }
    dafl_writer_drop(&pk);
    return err;
}

/* A key for a slot that never had one; the one before it goes. */
static dafl_fault on_ask(dafl_holder *h, const dafl_envelope *m)
{
    dafl_writer w = {0};
    dafl_err err;

    if (dafl_get_ask(m->body) != DAFL_OK)
        return DAFL_E_FORMAT;
    if (m->slot < dafl_node_first_slot(&h->node, h->enrolment) ||
        m->slot > dafl_node_last_slot(&h->node, h->enrolment))
        return DAFL_E_STATE;
    if (m->slot == h->slot && h->key != NULL) {
        send_key(h);
        return DAFL_FAULT_NONE;
    }
    if (m->slot <= h->slot)
        return DAFL_E_SLOT_SPENT;
    dafl_holder_drop_slot(h);
    dafl_holder_erase(h, m->slot - 1);
    err = make_key(h, m->slot);
    if (err != DAFL_OK)
        return dafl_holder_broke(h, err);
    dafl_node_recap(&h->node, h->slot);
    h->slot = m->slot;
    h->state = DAFL_HOLDER_KEYED;
    dafl_put_u8(&w, DAFL_RECORD_KEY);
    dafl_put_u32(&w, h->slot);
    dafl_node_append(&h->node, &w);
    dafl_node_tell(&h->node,
                   &(dafl_event){.kind = DAFL_EVENT_KEY,
                                 .slot = h->slot,
                                 .peer = m->sender,
                                 .digest = h->he},
                   NULL);
    send_key(h);
    return DAFL_FAULT_NONE;
}

/* What a client would have seen of the slot, from OPEN. */
typedef struct {
    dafl_open_msg open;
    dafl_digest ctx, ctx2, stmt;
} claim;

static bool read_claim(const dafl_holder *h, dafl_bytes body, claim *c)
{
    const dafl_config *config = h->node.config;

    if (dafl_get_open(&c->open, body) != DAFL_OK ||
        c->open.surv.a.n != h->u1.n || c->open.surv.u3.n != h->u1.n ||
        c->open.conf.signers.n != h->u1.n ||
        dafl_config_upload_bytes(config, c->open.len) == SIZE_MAX)
        return false;
    dafl_context_slot(&c->ctx, &h->h_setup,
                      &(dafl_slot_task){.slot = h->slot,
                                        .query = c->open.query,
                                        .rank = c->open.rank,
                                        .model = c->open.model,
                                        .len = c->open.len,
                                        .w = (uint8_t)config->contract.w,
                                        .he = h->he});
    dafl_context_cast(&c->ctx2, &c->ctx, &c->open.surv.a);
    dafl_context_statement(&c->stmt, &c->ctx2, &c->open.surv.u3,
                           c->open.surv.digests);
    return true;
}

/* The rules of a client, for one that is none: which questions are tied to
 * which is the method's, and the clients' to check. */
static dafl_fault judge_claim(const dafl_holder *h, const claim *c)
{
    dafl_slot_view view = {.roster = h->node.roster,
                           .policy = &h->node.config->policy,
                           .u1 = &h->u1,
                           .t = h->t};
    dafl_fault fault = dafl_rule_cast(&view, &c->open.surv.a);

    if (fault == DAFL_FAULT_NONE)
        fault = dafl_rule_surv(&view, &c->open.surv, &c->open.surv.a, &c->ctx2,
                               DAFL_CLIENTS_MAX, NULL);
    if (fault == DAFL_FAULT_NONE)
        fault = dafl_rule_conf(&view, &c->open.conf, &c->open.surv.a, &c->stmt);
    return DAFL_WEAK(OPENING) ? DAFL_FAULT_NONE : fault;
}

/* As a client's log would tell it, so that the same rules audit it. */
static void tell_claim(dafl_holder *h, const dafl_envelope *m, const claim *c)
{
    dafl_event e = {.slot = h->slot, .peer = m->sender};
    dafl_writer w = {0};

    e.number = c->open.query;
    e.digest = c->open.model;
    dafl_node_tell_model(&h->node, &e, c->open.rank, c->open.len, &h->h_setup,
                         &h->he);
    e.kind = DAFL_EVENT_CAST;
    e.set = c->open.surv.a;
    e.digest = c->ctx2;
    dafl_node_tell(&h->node, &e, NULL);
    e.kind = DAFL_EVENT_SURV;
    e.set = c->open.surv.u3;
    e.digest = c->stmt;
    dafl_put_fixed(&w, c->open.surv.digests.ptr, c->open.surv.digests.len);
    dafl_node_tell(&h->node, &e, &w);
    e.kind = DAFL_EVENT_CONF;
    e.set = c->open.conf.signers;
    dafl_put_fixed(&w, c->open.conf.signatures.ptr,
                   c->open.conf.signatures.len);
    dafl_node_tell(&h->node, &e, &w);
    e.kind = DAFL_EVENT_OPEN;
    e.set = c->open.surv.u3;
    e.digest = c->open.dig;
    dafl_node_tell(&h->node, &e, NULL);
}

static void send_answer(dafl_holder *h)
{
    dafl_bytes words = dafl_writer_bytes(&h->answer);
    dafl_writer w = {0};
    dafl_digest dig;

    dafl_node_send_chunks(&h->node, h->slot, words, false);
    dafl_context_opened(&dig, &h->sealed, words);
    dafl_put_opened(&w, &dig);
    dafl_node_send(&h->node, DAFL_MSG_OPENED, h->slot, NULL, &w);
}

/* One vector a slot, journaled before a byte of it is opened. */
static dafl_fault on_open(dafl_holder *h, const dafl_envelope *m)
{
    dafl_writer w = {0};
    dafl_fault fault;
    claim c;

    if (m->slot != h->slot)
        return DAFL_E_SLOT_SPENT;
    if (!read_claim(h, m->body, &c))
        return DAFL_E_FORMAT;
    if (h->spent && !DAFL_WEAK(ONE_OPENING)) {
        if (!dafl_digest_equal(&c.open.dig, &h->sealed) ||
            (h->state != DAFL_HOLDER_OPENED && h->key == NULL))
            return DAFL_E_SLOT_SPENT;
        if (h->state == DAFL_HOLDER_OPENED)
            send_answer(h);
        return DAFL_FAULT_NONE;
    }
    if (h->key == NULL)
        return DAFL_E_SLOT_SPENT;
    fault = judge_claim(h, &c);
    if (fault != DAFL_FAULT_NONE)
        return fault;
    h->spent = true;
    h->len = c.open.len;
    h->sealed = c.open.dig;
    h->ctx2 = c.ctx2;
    h->state = DAFL_HOLDER_OPENING;
    tell_claim(h, m, &c);
    dafl_put_u8(&w, DAFL_RECORD_OPEN);
    dafl_put_u32(&w, h->slot);
    dafl_put_fixed(&w, h->sealed.b, sizeof h->sealed.b);
    dafl_node_append(&h->node, &w);
    return DAFL_FAULT_NONE;
}

static dafl_err decrypt(dafl_holder *h)
{
    unsigned w = h->node.config->contract.w;
    size_t len = (size_t)h->len, bytes = len * (w / 8);
    uint64_t *words = dafl_bulk_alloc(len, sizeof *words);
    uint8_t *packed = dafl_bulk_alloc(len, w / 8);
    dafl_err err = words == NULL || packed == NULL ? DAFL_ERR_NOMEM : DAFL_OK;

    if (err == DAFL_OK)
        err = dafl_he_decrypt(h->encryption, h->key,
                              dafl_writer_bytes(&h->came), words, len);
    if (err == DAFL_OK) {
        dafl_ring_pack(packed, words, len, w);
        dafl_writer_drop(&h->answer);
        h->answer = (dafl_writer){.ptr = packed, .len = bytes, .room = bytes};
        packed = NULL;
    }
    dafl_bulk_free(words);
    dafl_bulk_free(packed);
    return err;
}

/* The key is used once and is gone before the answer leaves. */
static dafl_fault finish(dafl_holder *h)
{
    dafl_writer kept = {0};
    dafl_digest dig;
    dafl_err err;

    dafl_context_sealed(&dig, &h->ctx2, dafl_writer_bytes(&h->came));
    if (!dafl_digest_equal(&dig, &h->sealed) && !DAFL_WEAK(ONE_OPENING)) {
        dafl_writer_clear(&h->came);
        return DAFL_E_FORGED;
    }
    err = decrypt(h);
    dafl_writer_drop(&h->came);
    if (!DAFL_WEAK(ONE_OPENING)) {
        dafl_he_secret_free(&h->key);
        h->state = DAFL_HOLDER_IDLE; /* nothing is opened without a key */
    }
    if (err == DAFL_ERR_PEER)
        return DAFL_E_SEAL;
    if (err != DAFL_OK)
        return dafl_holder_broke(h, err);
    h->state = DAFL_HOLDER_OPENED;
    dafl_put_fixed(&kept, h->answer.ptr, h->answer.len);
    dafl_effects_add(&h->node.effects,
                     &(dafl_effect){.kind = DAFL_DO_KEEP, .slot = h->slot},
                     &kept);
    send_answer(h);
    return DAFL_FAULT_NONE;
}

static dafl_fault on_chunk(dafl_holder *h, const dafl_envelope *m)
{
    size_t most = dafl_he_bytes(h->len);
    dafl_fault fault;

    if (m->slot != h->slot)
        return DAFL_E_STATE;
    if (h->state != DAFL_HOLDER_OPENING)
        return DAFL_FAULT_NONE; /* refused, or answered already */
    fault = dafl_node_take_chunk(&h->came, m->body, most, &h->err);
    if (fault == DAFL_FAULT_NONE && h->err == DAFL_OK && h->came.len == most)
        fault = finish(h);
    return fault;
}

/* Of slot 0 it says that the run is over; others are the clients'. */
static dafl_fault on_result(dafl_holder *h, const dafl_envelope *m)
{
    dafl_writer w = {0};
    dafl_result result;

    if (dafl_get_result(&result, m->body) != DAFL_OK ||
        result.fault >= DAFL_FAULT_COUNT || m->slot != 0)
        return DAFL_E_FORMAT;
    if (dafl_node_is_doubted(&result))
        return dafl_node_rolled_back(&h->node, &result) ? DAFL_E_STATE_LOST
                                                        : DAFL_FAULT_NONE;
    dafl_node_tell(&h->node,
                   &(dafl_event){.kind = DAFL_EVENT_RESULT,
                                 .number = DAFL_NO_QUESTION,
                                 .peer = m->sender,
                                 .fault = (dafl_fault)result.fault,
                                 .digest = result.sum},
                   NULL);
    dafl_node_recap(&h->node, h->slot);
    dafl_holder_erase(h, UINT32_MAX);
    dafl_holder_drop_slot(h);
    dafl_put_u8(&w, DAFL_RECORD_OVER);
    dafl_put_u16(&w, result.fault);
    dafl_node_append(&h->node, &w);
    h->fault = (dafl_fault)result.fault;
    h->state = DAFL_HOLDER_OUT;
    return DAFL_FAULT_NONE;
}

/* ---- driving it ---- */

/* What a fault takes with it. The server is told of a slot that is lost. */
static void fall(dafl_holder *h, const dafl_envelope *m, dafl_fault fault)
{
    const char *says = h->node.says;
    dafl_writer w = {0};

    dafl_node_error(&h->node, m->slot, m->sender, fault);
    switch (dafl_fault_falls(fault)) {
    case DAFL_FALLS_SLOT:
        dafl_put_result(&w, &(dafl_result){.fault = (uint16_t)fault});
        dafl_node_send(&h->node, DAFL_MSG_RESULT, m->slot, NULL, &w);
        break;
    case DAFL_FALLS_RUN:
        dafl_holder_drop_slot(h);
        h->fault = fault;
        h->says = says;
        h->state = DAFL_HOLDER_OUT;
        break;
    case DAFL_FALLS_NOTHING:
    case DAFL_FALLS_WARNING:
    case DAFL_FALLS_MESSAGE:
        break;
    }
}

static dafl_err result_of(const dafl_holder *h)
{
    return h->err != DAFL_OK        ? h->err
           : h->node.effects.failed ? DAFL_ERR_NOMEM
                                    : DAFL_OK;
}

dafl_err dafl_holder_receive(dafl_holder *h, dafl_bytes message)
{
    dafl_envelope m = {.sender = DAFL_NOBODY};
    dafl_fault fault = dafl_node_open(&h->node, &m, message);
    dafl_holder_handler *handler;

    if (fault == DAFL_FAULT_NONE) {
        handler = table[h->state][m.type];
        fault = handler == NULL ? DAFL_E_STATE : handler(h, &m);
    }
    if (fault != DAFL_FAULT_NONE)
        fall(h, &m, fault);
    return result_of(h);
}

dafl_err dafl_holder_hello(dafl_holder *h)
{
    bool set_up = h->state >= DAFL_HOLDER_IDLE;
    dafl_writer w = {0};

    if (h->state == DAFL_HOLDER_OUT)
        return result_of(h);
    dafl_put_hello(&w,
                   &(dafl_hello){.keys = set_up ? h->enrolment + 1 : 0,
                                 .last_slot = h->key != NULL ? h->slot : 0});
    dafl_node_send(&h->node, DAFL_MSG_HELLO, h->slot, NULL, &w);
    return result_of(h);
}

void dafl_holder_log(dafl_holder *h, const dafl_digest *head)
{
    h->node.log_head = *head;
}

bool dafl_holder_next(dafl_holder *h, dafl_effect *out)
{
    return dafl_effects_next(&h->node.effects, out);
}

dafl_holder_state dafl_holder_where(const dafl_holder *h)
{
    return h->state;
}

dafl_fault dafl_holder_fault(const dafl_holder *h)
{
    return h->fault;
}

const char *dafl_holder_says(const dafl_holder *h)
{
    return h->says != NULL ? h->says : dafl_fault_text(h->fault);
}

bool dafl_holder_over(const dafl_holder *h)
{
    return h->over;
}
