/* SPDX-License-Identifier: Apache-2.0 */
/* The key holder before the first slot, and after a restart. */
#include <stdlib.h>
#include <string.h>

#include "protocol/holder_state.h"
#include "protocol/setup.h"

static bool knows(const dafl_holder *h, const dafl_run_id *run)
{
    for (size_t i = 0; i < h->n_runs; i++)
        if (memcmp(h->runs[i].b, run->b, sizeof run->b) == 0)
            return true;
    return false;
}

static dafl_err join(dafl_holder *h, const dafl_run_id *run)
{
    dafl_run_id *more = realloc(h->runs, (h->n_runs + 1) * sizeof *more);

    if (more == NULL)
        return DAFL_ERR_NOMEM;
    h->runs = more;
    h->runs[h->n_runs++] = *run;
    h->node.run = *run;
    h->in_run = true;
    h->over = false;
    h->fault = DAFL_FAULT_NONE;
    h->slot = 0;
    return DAFL_OK;
}

dafl_fault dafl_holder_on_invite(dafl_holder *h, const dafl_envelope *m)
{
    bool ours =
        h->in_run && memcmp(m->run.b, h->node.run.b, sizeof m->run.b) == 0;
    dafl_invite invite;

    if (dafl_get_invite(&invite, m->body) != DAFL_OK ||
        invite.enrolment >= DAFL_ENROLMENTS_MAX)
        return DAFL_E_FORMAT;
    if (!dafl_setup_invited(&h->node, &invite))
        return DAFL_E_POLICY;
    if (!ours && knows(h, &m->run))
        return DAFL_E_REPLAY;
    if (ours && invite.enrolment < h->enrolment)
        return DAFL_E_REPLAY;
    if (ours && invite.enrolment == h->enrolment &&
        h->state >= DAFL_HOLDER_IDLE)
        return DAFL_FAULT_NONE; /* SETUP follows and is acknowledged again */
    dafl_holder_drop_slot(h);
    free(h->peers);
    h->peers = NULL;
    if (!ours) {
        if (join(h, &m->run) != DAFL_OK)
            return dafl_holder_broke(h, DAFL_ERR_NOMEM);
        h->node.heard[m->sender] = m->seq;
        /* What is kept of another run could be of a slot with this number. */
        dafl_holder_erase(h, UINT32_MAX);
    }
    h->enrolment = invite.enrolment;
    h->state = DAFL_HOLDER_INVITED;
    dafl_node_recap(&h->node, h->slot);
    dafl_node_tell(&h->node,
                   &(dafl_event){.kind = DAFL_EVENT_INVITE,
                                 .number = h->enrolment,
                                 .peer = m->sender},
                   NULL);
    return DAFL_FAULT_NONE;
}

dafl_fault dafl_holder_on_peers(dafl_holder *h, const dafl_envelope *m)
{
    dafl_peer *peers;
    dafl_members u0;
    dafl_peers list;
    dafl_fault fault;
    size_t t = 0;

    if (h->state >= DAFL_HOLDER_IDLE)
        return DAFL_FAULT_NONE; /* they are known */
    if (dafl_get_peers(&list, m->body) != DAFL_OK ||
        list.n > h->node.roster->n_clients)
        return DAFL_E_FORMAT;
    peers = calloc(h->node.roster->n_clients, sizeof *peers);
    if (peers == NULL)
        return dafl_holder_broke(h, DAFL_ERR_NOMEM);
    fault = dafl_setup_peers(&h->node, h->enrolment, &list, &u0, peers, &t);
    if (fault != DAFL_FAULT_NONE) {
        free(peers);
        return fault;
    }
    free(h->peers);
    h->peers = peers;
    h->u0 = u0;
    h->t = t;
    h->state = DAFL_HOLDER_LISTED;
    return DAFL_FAULT_NONE;
}

static void send_ack(dafl_holder *h)
{
    dafl_setup_ack ack = {.h_setup = h->h_setup,
                          .failed =
                              dafl_members_none(h->node.roster->n_clients)};
    dafl_writer w = {0};

    dafl_put_setup_ack(&w, &ack);
    dafl_node_send(&h->node, DAFL_MSG_SETUP_ACK, 0, NULL, &w);
}

static void record_setup(dafl_holder *h, const dafl_envelope *m)
{
    dafl_writer w = {0};

    dafl_put_u16(&w, (uint16_t)h->t);
    dafl_put_members(&w, &h->u0);
    dafl_node_tell(&h->node,
                   &(dafl_event){.kind = DAFL_EVENT_SETUP,
                                 .number = h->enrolment,
                                 .peer = m->sender,
                                 .set = h->u1,
                                 .digest = h->h_setup},
                   &w);
    dafl_put_u8(&w, DAFL_RECORD_HOLDS);
    dafl_put_fixed(&w, h->node.run.b, sizeof h->node.run.b);
    dafl_put_u32(&w, h->enrolment);
    dafl_put_fixed(&w, h->node.roster_hash.b, sizeof h->node.roster_hash.b);
    dafl_put_fixed(&w, h->node.config_hash.b, sizeof h->node.config_hash.b);
    dafl_put_u16(&w, (uint16_t)h->t);
    dafl_put_fixed(&w, h->h_setup.b, sizeof h->h_setup.b);
    dafl_put_members(&w, &h->u0);
    dafl_put_members(&w, &h->u1);
    dafl_node_append(&h->node, &w);
}

/* Whether it is of the enrolment that we know: its dealers say so. */
static bool is_known(const dafl_holder *h, const dafl_setup *setup)
{
    dafl_dealer d;
    dafl_digest dealt;

    if (setup->n == 0)
        return false;
    d = dafl_setup_dealer(setup, 0);
    if (d.client >= h->node.roster->n_clients)
        return false;
    dafl_context_dealt(&dealt, &h->node.run, h->enrolment, d.client,
                       &d.h_shares);
    return dafl_sign_check(&d.sig, &dealt,
                           h->node.roster->parties[d.client].id.sign_pk) ==
           DAFL_OK;
}

dafl_fault dafl_holder_on_setup(dafl_holder *h, const dafl_envelope *m)
{
    dafl_digest h_setup;
    dafl_setup setup;
    dafl_members u1;
    dafl_fault fault;

    if (dafl_get_setup(&setup, m->body) != DAFL_OK || setup.packet_len != 0 ||
        setup.n_slots != h->node.config->slots)
        return DAFL_E_FORMAT;
    if (h->state >= DAFL_HOLDER_IDLE) {
        if (!is_known(h, &setup))
            return DAFL_E_STATE; /* its invitation was lost */
        send_ack(h);
        return DAFL_FAULT_NONE;
    }
    fault = dafl_setup_members(&h->node, &setup, &h->u0, &u1);
    if (fault == DAFL_FAULT_NONE)
        fault = dafl_setup_dealers(&h->node, h->enrolment, &setup, h->peers,
                                   h->t, &h_setup, &h->err);
    if (fault != DAFL_FAULT_NONE || h->err != DAFL_OK)
        return fault;
    h->u1 = u1;
    h->h_setup = h_setup;
    h->state = DAFL_HOLDER_IDLE;
    record_setup(h, m);
    send_ack(h);
    return DAFL_FAULT_NONE;
}

/* ---- after a restart ---- */

static dafl_err recall_setup(dafl_holder *h, dafl_reader *r)
{
    dafl_digest roster, config;
    dafl_run_id run;
    uint16_t t = 0;

    DAFL_TRY(dafl_get_fixed(r, run.b, sizeof run.b));
    DAFL_TRY(dafl_get_u32(r, &h->enrolment));
    DAFL_TRY(dafl_get_fixed(r, roster.b, sizeof roster.b));
    DAFL_TRY(dafl_get_fixed(r, config.b, sizeof config.b));
    DAFL_TRY(dafl_get_u16(r, &t));
    DAFL_TRY(dafl_get_fixed(r, h->h_setup.b, sizeof h->h_setup.b));
    DAFL_TRY(dafl_get_members(r, &h->u0));
    DAFL_TRY(dafl_get_members(r, &h->u1));
    DAFL_TRY(dafl_get_end(r));
    if (h->enrolment >= DAFL_ENROLMENTS_MAX ||
        !dafl_members_within(&h->u1, &h->u0))
        return DAFL_ERR_PEER;
    if (!knows(h, &run))
        DAFL_TRY(join(h, &run));
    h->t = t;
    h->spent = false; /* what was opened before it is not asked for any more */
    /* One of another roster or config: the invitation will say so. */
    h->in_run = h->u0.n == h->node.roster->n_clients &&
                dafl_digest_equal(&roster, &h->node.roster_hash) &&
                dafl_digest_equal(&config, &h->node.config_hash);
    h->state = h->in_run ? DAFL_HOLDER_IDLE : DAFL_HOLDER_WAITING;
    return DAFL_OK;
}

static dafl_err recall_key(dafl_holder *h, dafl_reader *r)
{
    DAFL_TRY(dafl_get_u32(r, &h->slot));
    h->spent = false;
    return dafl_get_end(r);
}

static dafl_err recall_open(dafl_holder *h, dafl_reader *r)
{
    DAFL_TRY(dafl_get_u32(r, &h->slot));
    DAFL_TRY(dafl_get_fixed(r, h->sealed.b, sizeof h->sealed.b));
    h->spent = true;
    return dafl_get_end(r);
}

static dafl_err recall_over(dafl_holder *h, dafl_reader *r)
{
    uint16_t fault = 0;

    DAFL_TRY(dafl_get_u16(r, &fault));
    if (fault >= DAFL_FAULT_COUNT)
        return DAFL_ERR_PEER;
    h->over = true;
    h->fault = (dafl_fault)fault;
    return dafl_get_end(r);
}

static dafl_err recall_boot(dafl_holder *h, dafl_reader *r)
{
    DAFL_TRY(dafl_get_u32(r, &h->node.boot));
    return dafl_get_end(r);
}

dafl_err dafl_holder_recall(dafl_holder *h, dafl_bytes record)
{
    dafl_reader r = dafl_read(record);
    uint8_t kind = 0;
    dafl_err err = dafl_get_u8(&r, &kind);

    if (err == DAFL_OK)
        err = kind == DAFL_RECORD_BOOT    ? recall_boot(h, &r)
              : kind == DAFL_RECORD_HOLDS ? recall_setup(h, &r)
              : kind == DAFL_RECORD_KEY   ? recall_key(h, &r)
              : kind == DAFL_RECORD_OPEN  ? recall_open(h, &r)
              : kind == DAFL_RECORD_OVER  ? recall_over(h, &r)
                                          : DAFL_ERR_PEER;
    return err == DAFL_ERR_PEER ? DAFL_ERR_INPUT : err;
}

dafl_err dafl_holder_recall_answer(dafl_holder *h, uint32_t slot,
                                   dafl_bytes answer)
{
    if (slot != h->slot || !h->spent || h->state != DAFL_HOLDER_IDLE)
        return DAFL_OK; /* of an earlier slot: of no use any more */
    dafl_writer_clear(&h->answer);
    dafl_put_fixed(&h->answer, answer.ptr, answer.len);
    return dafl_writer_done(&h->answer);
}

dafl_err dafl_holder_start(dafl_holder *h)
{
    dafl_node_boot(&h->node);
    dafl_node_tell_start(&h->node);
    if (h->answer.len > 0)
        h->state = DAFL_HOLDER_OPENED;
    return dafl_holder_hello(h);
}
