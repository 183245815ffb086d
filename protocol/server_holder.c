/* SPDX-License-Identifier: Apache-2.0 */
/* The server and the key holder. A slot begins with a key of its own and ends
 * with one opening, of a sum that the server has blinded: the key holder sees
 * uniform words. Without the key holder the server waits. */
#include <string.h>

#include <sodium.h>

#include "lib/ring.h"
#include "lib/secret.h"
#include "protocol/server_state.h"

static uint16_t holder(const dafl_server *s)
{
    return (uint16_t)(s->node.roster->n - 1);
}

void dafl_server_drop_opening(dafl_server *s)
{
    dafl_writer_drop(&s->key);
    dafl_writer_drop(&s->sealed);
    dafl_writer_drop(&s->open);
    dafl_writer_drop(&s->opened);
    dafl_bulk_free(s->blind);
    s->blind = NULL;
    s->he = (dafl_digest){{0}};
}

void dafl_server_await_holder(dafl_server *s, dafl_wait wait)
{
    dafl_node_error(&s->node, s->slot, holder(s), DAFL_E_TIMEOUT);
    dafl_server_enter(s, s->state, wait);
}

void dafl_server_dismiss(dafl_server *s)
{
    dafl_writer w = {0};

    if (s->encryption == NULL)
        return;
    dafl_put_result(&w, &(dafl_result){.fault = (uint16_t)s->fault});
    dafl_node_send_holder(&s->node, DAFL_MSG_RESULT, 0, &w);
}

dafl_fault dafl_server_on_holder_ack(dafl_server *s, const dafl_envelope *m)
{
    dafl_setup_ack ack;

    if (dafl_get_setup_ack(&ack, m->body) != DAFL_OK)
        return DAFL_E_FORMAT;
    if (!dafl_digest_equal(&ack.h_setup, &s->h_setup)) {
        dafl_node_error(&s->node, 0, m->sender, DAFL_E_SETUP_SPLIT);
        dafl_server_over(s, DAFL_E_SETUP_SPLIT);
        return DAFL_FAULT_NONE;
    }
    s->holder_acked = true;
    return DAFL_FAULT_NONE;
}

/* ---- its key ---- */

static void send_ask(dafl_server *s)
{
    dafl_writer w = {0};

    dafl_node_send_holder(&s->node, DAFL_MSG_ASK, s->slot, &w);
}

void dafl_server_ask_key(dafl_server *s)
{
    send_ask(s);
    dafl_server_enter(s, DAFL_SERVER_KEYING, DAFL_WAIT_SIGN);
}

dafl_fault dafl_server_on_key(dafl_server *s, const dafl_envelope *m)
{
    dafl_digest he, said;
    dafl_key_msg key;

    if (dafl_get_key_msg(&key, m->body) != DAFL_OK ||
        key.pk.len != dafl_he_key_bytes())
        return DAFL_E_FORMAT;
    if (m->slot != s->slot)
        return DAFL_E_STATE;
    dafl_context_he(&he, key.pk);
    dafl_context_key(&said, &s->node.run, &s->h_setup, s->slot, &he);
    if (dafl_sign_check(&key.sig, &said,
                        s->node.roster->parties[m->sender].id.sign_pk) !=
        DAFL_OK)
        return DAFL_E_AUTH;
    dafl_put_fixed(&s->key, m->body.ptr, m->body.len);
    if (dafl_writer_done(&s->key) != DAFL_OK)
        return dafl_server_broke(s, DAFL_ERR_NOMEM);
    s->he = he;
    dafl_server_begin_slot(s);
    return DAFL_FAULT_NONE;
}

/* ---- its opening ---- */

static dafl_err blind(dafl_server *s)
{
    uint64_t most = UINT64_MAX >> (64 - s->node.config->contract.w);
    size_t len = (size_t)s->shape.len;

    s->blind = dafl_bulk_alloc(len, sizeof *s->blind);
    if (s->blind == NULL)
        return DAFL_ERR_NOMEM;
    randombytes_buf(s->blind, len * sizeof *s->blind);
    for (size_t i = 0; i < len; i++)
        s->blind[i] &= most;
    DAFL_TRY(dafl_he_sum_blind(s->total.sealed, s->blind));
    DAFL_TRY(dafl_he_sum_put(s->total.sealed, &s->sealed));
    dafl_adder_drop(&s->total);
    return DAFL_OK;
}

static dafl_err write_open(dafl_server *s)
{
    dafl_open_msg open = {.query = s->question.number,
                          .rank = s->question.rank,
                          .model = s->chapters[s->question.number].model,
                          .len = s->shape.len,
                          .dig = s->sealed_dig};
    dafl_writer surv = {0}, conf = {0};
    dafl_err err;

    dafl_server_put_surv(s, &surv);
    dafl_server_put_conf(s, &conf);
    err = surv.failed || conf.failed ? DAFL_ERR_NOMEM : DAFL_OK;
    if (err == DAFL_OK)
        err = dafl_get_surv(&open.surv, dafl_writer_bytes(&surv));
    if (err == DAFL_OK)
        err = dafl_get_conf(&open.conf, dafl_writer_bytes(&conf));
    if (err == DAFL_OK) {
        dafl_put_open(&s->open, &open);
        err = dafl_writer_done(&s->open);
    }
    dafl_writer_drop(&surv);
    dafl_writer_drop(&conf);
    return err;
}

static void send_open(dafl_server *s)
{
    dafl_writer w = {0};

    dafl_put_fixed(&w, s->open.ptr, s->open.len);
    dafl_node_send_holder(&s->node, DAFL_MSG_OPEN, s->slot, &w);
    dafl_node_send_chunks(&s->node, s->slot, dafl_writer_bytes(&s->sealed),
                          true);
}

void dafl_server_ask_open(dafl_server *s)
{
    s->err = blind(s);
    if (s->err != DAFL_OK)
        return;
    dafl_context_sealed(&s->sealed_dig, &s->ctx2,
                        dafl_writer_bytes(&s->sealed));
    s->err = write_open(s);
    if (s->err != DAFL_OK)
        return;
    dafl_node_tell(&s->node,
                   &(dafl_event){.kind = DAFL_EVENT_OPEN,
                                 .slot = s->slot,
                                 .peer = holder(s),
                                 .set = s->u3,
                                 .digest = s->sealed_dig},
                   NULL);
    send_open(s);
    dafl_server_enter(s, DAFL_SERVER_OPENING, DAFL_WAIT_UPLOAD);
}

static size_t opened_bytes(const dafl_server *s)
{
    return (size_t)s->shape.len * (s->node.config->contract.w / 8);
}

dafl_fault dafl_server_on_opening(dafl_server *s, const dafl_envelope *m)
{
    if (m->slot != s->slot)
        return DAFL_E_STATE;
    return dafl_node_take_chunk(&s->opened, m->body, opened_bytes(s), &s->err);
}

dafl_fault dafl_server_on_opened(dafl_server *s, const dafl_envelope *m)
{
    dafl_bytes words = dafl_writer_bytes(&s->opened);
    dafl_digest dig, right;

    if (dafl_get_opened(&dig, m->body) != DAFL_OK)
        return DAFL_E_FORMAT;
    if (m->slot != s->slot)
        return DAFL_E_STATE;
    dafl_context_opened(&right, &s->sealed_dig, words);
    if (words.len != opened_bytes(s) || !dafl_digest_equal(&dig, &right))
        return DAFL_E_FORMAT;
    s->err = dafl_adder_start(&s->total, NULL, (size_t)s->shape.len,
                              s->node.config->contract.w);
    if (s->err == DAFL_OK)
        s->err = dafl_adder_add(&s->total, words);
    for (size_t i = 0; s->err == DAFL_OK && i < s->total.len; i++)
        s->total.words[i] -= s->blind[i];
    if (s->err == DAFL_OK)
        dafl_server_open(s);
    return DAFL_FAULT_NONE;
}

/* It will not give the key, or not open: this slot is burnt. */
dafl_fault dafl_server_on_refusal(dafl_server *s, const dafl_envelope *m)
{
    dafl_result result;
    dafl_fault fault;

    if (dafl_get_result(&result, m->body) != DAFL_OK ||
        result.fault >= DAFL_FAULT_COUNT)
        return DAFL_E_FORMAT;
    if (m->slot != s->slot || s->state < DAFL_SERVER_KEYING ||
        s->state > DAFL_SERVER_OPENING)
        return DAFL_E_STATE;
    fault = (dafl_fault)result.fault;
    dafl_node_error(&s->node, s->slot, m->sender, fault);
    dafl_server_fail(
        s, dafl_fault_falls(fault) == DAFL_FALLS_SLOT ? fault : DAFL_E_SEAL);
    return DAFL_FAULT_NONE;
}

/* It comes, or comes back. Its HELLO says of which slot it has the key: a
 * restart has lost it. */
dafl_fault dafl_server_on_holder_hello(dafl_server *s, const dafl_envelope *m)
{
    bool ours = memcmp(m->run.b, s->node.run.b, sizeof m->run.b) == 0;
    dafl_hello hello;

    if (dafl_get_hello(&hello, m->body) != DAFL_OK)
        return DAFL_E_FORMAT;
    if (s->state >= DAFL_SERVER_DONE) {
        if (ours)
            dafl_server_dismiss(s);
    } else if (s->state == DAFL_SERVER_ACKING) {
        if (!s->holder_acked)
            dafl_server_introduce(s);
    } else if (s->state > DAFL_SERVER_ACKING &&
               (!ours || hello.keys != s->enrolment + 1)) {
        dafl_server_drop_slot(s);
        dafl_server_invite_again(s, DAFL_E_STATE_LOST);
    } else if (s->state == DAFL_SERVER_KEYING) {
        send_ask(s);
    } else if (s->state == DAFL_SERVER_OPENING) {
        send_open(s);
    } else if (s->state > DAFL_SERVER_KEYING && hello.last_slot != s->slot) {
        dafl_node_error(&s->node, s->slot, m->sender, DAFL_E_SLOT_SPENT);
        dafl_server_fail(s, DAFL_E_SLOT_SPENT);
    }
    return DAFL_FAULT_NONE;
}
