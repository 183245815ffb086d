/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/client.h"

#include <stdlib.h>
#include <string.h>

#include "lib/secret.h"
#include "protocol/client_state.h"
#include "protocol/weaken.h"

/* The table. An empty cell is E_STATE: the message is dropped and recorded.
 * A slot only moves forward; what leads to the same state again (a second CAST
 * after a reconnection, ..) sends the same bytes again or is refused. */
static dafl_client_handler *const table[DAFL_CLIENT_STATES][DAFL_MSG_COUNT] = {
    [DAFL_CLIENT_WAITING] = {[DAFL_MSG_INVITE] = dafl_client_on_invite,
                             [DAFL_MSG_RESULT] = dafl_client_on_result},
    [DAFL_CLIENT_ENROLLED] = {[DAFL_MSG_INVITE] = dafl_client_on_invite,
                              [DAFL_MSG_PEERS] = dafl_client_on_peers,
                              [DAFL_MSG_RESULT] = dafl_client_on_result},
    [DAFL_CLIENT_DEALT] = {[DAFL_MSG_INVITE] = dafl_client_on_invite,
                           [DAFL_MSG_PEERS] = dafl_client_on_peers,
                           [DAFL_MSG_SETUP] = dafl_client_on_setup,
                           [DAFL_MSG_RESULT] = dafl_client_on_result},
    [DAFL_CLIENT_IDLE] = {[DAFL_MSG_INVITE] = dafl_client_on_invite,
                          [DAFL_MSG_SETUP] = dafl_client_on_setup,
                          [DAFL_MSG_MODEL] = dafl_client_on_model,
                          [DAFL_MSG_RESULT] = dafl_client_on_result},
    [DAFL_CLIENT_MODELED] = {[DAFL_MSG_INVITE] = dafl_client_on_invite,
                             [DAFL_MSG_MODEL] = dafl_client_on_model,
                             [DAFL_MSG_CAST] = dafl_client_on_cast,
                             [DAFL_MSG_RESULT] = dafl_client_on_result},
    [DAFL_CLIENT_READY] = {[DAFL_MSG_INVITE] = dafl_client_on_invite,
                           [DAFL_MSG_MODEL] = dafl_client_on_model,
                           [DAFL_MSG_CAST] = dafl_client_on_cast,
                           [DAFL_MSG_RESULT] = dafl_client_on_result},
    [DAFL_CLIENT_CAST] = {[DAFL_MSG_INVITE] = dafl_client_on_invite,
                          [DAFL_MSG_MODEL] = dafl_client_on_model,
                          [DAFL_MSG_CAST] = dafl_client_on_cast,
                          [DAFL_MSG_SURV] = dafl_client_on_surv,
                          [DAFL_MSG_RESULT] = dafl_client_on_result},
    [DAFL_CLIENT_UPLOADED] = {[DAFL_MSG_INVITE] = dafl_client_on_invite,
                              [DAFL_MSG_MODEL] = dafl_client_on_model,
                              [DAFL_MSG_CAST] = dafl_client_on_cast,
                              [DAFL_MSG_SURV] = dafl_client_on_surv,
                              [DAFL_MSG_RESULT] = dafl_client_on_result},
    [DAFL_CLIENT_SIGNED] = {[DAFL_MSG_INVITE] = dafl_client_on_invite,
                            [DAFL_MSG_MODEL] = dafl_client_on_model,
                            [DAFL_MSG_SURV] = dafl_client_on_surv,
                            [DAFL_MSG_CONF] = dafl_client_on_conf,
                            [DAFL_MSG_RESULT] = dafl_client_on_result},
    [DAFL_CLIENT_REVEALED] = {[DAFL_MSG_INVITE] = dafl_client_on_invite,
                              [DAFL_MSG_MODEL] = dafl_client_on_model,
                              [DAFL_MSG_SURV] = dafl_client_on_surv,
                              [DAFL_MSG_CONF] = dafl_client_on_conf,
                              [DAFL_MSG_RESULT] = dafl_client_on_result},
    [DAFL_CLIENT_CLOSED] = {[DAFL_MSG_INVITE] = dafl_client_on_invite,
                            [DAFL_MSG_MODEL] = dafl_client_on_model,
                            [DAFL_MSG_RESULT] = dafl_client_on_result},
    [DAFL_CLIENT_OUT] = {0},
};

const char *dafl_client_state_name(dafl_client_state state)
{
    static const char *const names[DAFL_CLIENT_STATES] = {
        "WAITING", "ENROLLED", "DEALT",  "IDLE",     "MODELED", "READY",
        "CAST",    "UPLOADED", "SIGNED", "REVEALED", "CLOSED",  "OUT"};

    return (size_t)state < DAFL_CLIENT_STATES ? names[state] : "?";
}

dafl_err dafl_client_new(dafl_client **out, const dafl_client_params *p,
                         dafl_fault *fault, dafl_why *why)
{
    dafl_client *c = calloc(1, sizeof *c);
    dafl_fault refused;
    dafl_err err;

    if (c == NULL)
        return DAFL_ERR_NOMEM;
    err = dafl_node_init(&c->node, p->roster, p->config, p->self,
                         DAFL_ROLE_CLIENT, fault, why);
    if (err != DAFL_OK)
        goto out;
    refused = dafl_policy_floor(&p->config->policy, &p->floor, why);
    if (refused == DAFL_FAULT_NONE && p->config->mode == DAFL_MODE_NONE &&
        !p->floor.plain)
        refused = dafl_fail(why, DAFL_E_POLICY,
                            "the config asks for no masks; this client has not "
                            "allowed that");
    if (DAFL_WEAK(FLOOR))
        refused = DAFL_FAULT_NONE;
    if (refused == DAFL_FAULT_NONE && p->config->mode == DAFL_MODE_SEAL &&
        dafl_he_new(&c->encryption, p->config->contract.w, p->pool, why) !=
            DAFL_OK)
        refused = DAFL_E_POLICY;
    if (refused != DAFL_FAULT_NONE) {
        if (fault != NULL)
            *fault = refused;
        err = DAFL_ERR_INPUT;
        goto out;
    }
    c->method = p->method;
    c->method_self = p->method_self;
    c->pool = p->pool;
out:
    if (err == DAFL_OK)
        *out = c;
    else
        dafl_client_free(&c);
    return err;
}

void dafl_client_drop_setup(dafl_client *c)
{
    dafl_secret_free(c->ek);
    dafl_secret_free(c->secrets);
    free(c->peers);
    free(c->keys);
    c->ek = NULL;
    c->secrets = NULL;
    c->peers = NULL;
    c->keys = NULL;
    dafl_writer_drop(&c->enroll);
    dafl_writer_drop(&c->shares);
    dafl_writer_drop(&c->ack);
}

/* Forget the slot in hand. */
static void drop_slot(dafl_client *c)
{
    dafl_bulk_free(c->x);
    c->x = NULL;
    dafl_writer_drop(&c->y);
    dafl_he_public_free(&c->he_key);
    c->uploaded = false;
}

void dafl_client_free(dafl_client **client)
{
    dafl_client *c = *client;

    if (c == NULL)
        return;
    drop_slot(c);
    dafl_client_drop_setup(c);
    dafl_he_free(&c->encryption);
    dafl_node_drop(&c->node);
    free(c->answered);
    free(c->runs);
    free(c->past);
    free(c->witnessed);
    dafl_wipe(c, sizeof *c);
    free(c);
    *client = NULL;
}

bool dafl_client_knows(const dafl_client *c, const dafl_run_id *run)
{
    for (size_t i = 0; i < c->n_runs; i++)
        if (memcmp(c->runs[i].b, run->b, sizeof run->b) == 0)
            return true;
    return false;
}

dafl_err dafl_client_join(dafl_client *c, const dafl_run_id *run)
{
    static const dafl_digest none;
    dafl_run_id *more = realloc(c->runs, (c->n_runs + 1) * sizeof *more);

    if (more == NULL)
        return DAFL_ERR_NOMEM;
    c->runs = more;
    c->runs[c->n_runs++] = *run;
    c->node.run = *run;
    c->in_run = true;
    c->model = none;
    c->n_segments = 0;
    c->n_witnessed = 0;
    c->slot = c->closed = c->journal_upload = c->journal_sign = 0;
    c->resulted = 0;
    return DAFL_OK;
}

dafl_fault dafl_client_broke(dafl_client *c, dafl_err err)
{
    c->err = err;
    return DAFL_FAULT_NONE;
}

uint8_t *dafl_client_record(const dafl_client *c, uint32_t slot)
{
    return c->secrets + (slot - dafl_node_first_slot(&c->node, c->enrolment)) *
                            c->record_bytes;
}

size_t dafl_client_held(const dafl_client *c, size_t client)
{
    return DAFL_OWN_BYTES + dafl_members_rank(&c->u0, client) * DAFL_HELD_BYTES;
}

dafl_err dafl_client_make_records(dafl_client *c)
{
    c->record_bytes =
        DAFL_OWN_BYTES + dafl_members_count(&c->u0) * DAFL_HELD_BYTES;
    c->secrets = dafl_secret_alloc(c->node.config->slots, c->record_bytes);
    return c->secrets == NULL ? DAFL_ERR_NOMEM : DAFL_OK;
}

void dafl_client_close(dafl_client *c, uint32_t slot)
{
    uint32_t first = dafl_node_first_slot(&c->node, c->enrolment);
    uint32_t last = dafl_node_last_slot(&c->node, c->enrolment);
    dafl_writer w = {0};

    drop_slot(c);
    if (slot <= c->closed || DAFL_WEAK(WIPE))
        return;
    for (uint32_t e = first; c->secrets != NULL && e <= slot && e <= last; e++)
        dafl_wipe(dafl_client_record(c, e), c->record_bytes);
    c->closed = slot;
    dafl_put_u8(&w, DAFL_RECORD_CLOSED);
    dafl_put_u32(&w, slot);
    dafl_node_append(&c->node, &w);
    dafl_effects_add(&c->node.effects,
                     &(dafl_effect){.kind = DAFL_DO_ERASE, .slot = slot}, NULL);
}

dafl_err dafl_client_witness(dafl_client *c, uint32_t slot,
                             const dafl_members *u3)
{
    if (c->n_witnessed == c->room_witnessed) {
        size_t room = c->room_witnessed == 0 ? 16 : 2 * c->room_witnessed;
        dafl_witnessed *more = realloc(c->witnessed, room * sizeof *more);
        if (more == NULL)
            return DAFL_ERR_NOMEM;
        c->witnessed = more;
        c->room_witnessed = room;
    }
    c->witnessed[c->n_witnessed++] = (dafl_witnessed){slot, *u3};
    return DAFL_OK;
}

/* What a fault takes with it. */
static void fall(dafl_client *c, const dafl_envelope *m, dafl_fault fault)
{
    const char *says = c->node.says;

    dafl_node_error(&c->node, m->slot, m->sender, fault);
    switch (dafl_fault_falls(fault)) {
    case DAFL_FALLS_SLOT:
        /* Silent until the next slot; its secrets go when that opens. */
        if (c->state >= DAFL_CLIENT_IDLE && m->slot == c->slot) {
            c->state = DAFL_CLIENT_CLOSED;
            drop_slot(c);
        }
        break;
    case DAFL_FALLS_RUN:
        c->fault = fault;
        c->says = says;
        c->state = DAFL_CLIENT_OUT;
        dafl_client_close(c, dafl_node_last_slot(&c->node, c->enrolment));
        dafl_client_drop_setup(c);
        break;
    case DAFL_FALLS_NOTHING:
    case DAFL_FALLS_WARNING:
    case DAFL_FALLS_MESSAGE:
        break;
    }
}

static dafl_err result_of(const dafl_client *c)
{
    return c->err != DAFL_OK        ? c->err
           : c->node.effects.failed ? DAFL_ERR_NOMEM
                                    : DAFL_OK;
}

dafl_err dafl_client_receive(dafl_client *c, dafl_bytes message)
{
    dafl_envelope m = {0};
    dafl_fault fault = dafl_node_open(&c->node, &m, message);
    dafl_client_handler *handler;

    if (fault == DAFL_FAULT_NONE) {
        handler = table[c->state][m.type];
        if (handler == NULL && DAFL_WEAK(TURN))
            handler = table[DAFL_CLIENT_SIGNED][m.type];
        fault = handler == NULL ? DAFL_E_STATE : handler(c, &m);
    } else {
        /* Whatever it says: nobody else speaks to a client. */
        m.sender = c->node.roster->n_clients;
    }
    if (fault != DAFL_FAULT_NONE)
        fall(c, &m, fault);
    return result_of(c);
}

dafl_err dafl_client_hello(dafl_client *c)
{
    dafl_writer w = {0};

    if (c->state == DAFL_CLIENT_OUT)
        return result_of(c);
    dafl_put_hello(&w,
                   &(dafl_hello){.keys = c->keys == NULL ? 0 : c->enrolment + 1,
                                 .last_slot = c->slot,
                                 .model = c->model});
    dafl_node_send(&c->node, DAFL_MSG_HELLO, c->slot, NULL, &w);
    return result_of(c);
}

void dafl_client_log(dafl_client *c, const dafl_digest *head)
{
    c->node.log_head = *head;
}

bool dafl_client_next(dafl_client *c, dafl_effect *out)
{
    return dafl_effects_next(&c->node.effects, out);
}

dafl_client_state dafl_client_where(const dafl_client *c)
{
    return c->state;
}

dafl_fault dafl_client_fault(const dafl_client *c)
{
    return c->fault;
}

const char *dafl_client_says(const dafl_client *c)
{
    return c->says != NULL ? c->says : dafl_fault_text(c->fault);
}

bool dafl_client_over(const dafl_client *c)
{
    return c->over;
}
