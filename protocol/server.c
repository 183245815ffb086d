/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/server.h"

#include <stdlib.h>
#include <string.h>

#include "lib/secret.h"
#include "protocol/server_state.h"

static dafl_server_handler on_hello, on_late;

/* The table of what clients send. An empty cell is E_STATE: the message is
 * dropped and recorded. on_late takes what a slow client may well send after
 * its phase is over. */
static dafl_server_handler *const table[DAFL_SERVER_STATES][DAFL_MSG_COUNT] = {
    [DAFL_SERVER_ENROLLING] = {[DAFL_MSG_ENROLL] = dafl_server_on_enroll,
                               [DAFL_MSG_HELLO] = on_hello},
    [DAFL_SERVER_DEALING] = {[DAFL_MSG_SHARES] = dafl_server_on_shares,
                             [DAFL_MSG_ENROLL] = on_late,
                             [DAFL_MSG_HELLO] = on_hello},
    [DAFL_SERVER_ACKING] = {[DAFL_MSG_SETUP_ACK] = dafl_server_on_ack,
                            [DAFL_MSG_SHARES] = on_late,
                            [DAFL_MSG_HELLO] = on_hello},
    [DAFL_SERVER_PAUSED] = {[DAFL_MSG_SETUP_ACK] = dafl_server_on_ack,
                            [DAFL_MSG_HELLO] = on_hello},
    [DAFL_SERVER_KEYING] = {[DAFL_MSG_SETUP_ACK] = dafl_server_on_ack,
                            [DAFL_MSG_HELLO] = on_hello},
    [DAFL_SERVER_CASTING] = {[DAFL_MSG_SETUP_ACK] = dafl_server_on_ack,
                             [DAFL_MSG_READY] = dafl_server_on_ready,
                             [DAFL_MSG_HELLO] = on_hello},
    [DAFL_SERVER_COLLECT] = {[DAFL_MSG_SETUP_ACK] = dafl_server_on_ack,
                             [DAFL_MSG_READY] = dafl_server_on_ready,
                             [DAFL_MSG_UPLOAD] = dafl_server_on_upload,
                             [DAFL_MSG_END] = dafl_server_on_end,
                             [DAFL_MSG_HELLO] = on_hello},
    [DAFL_SERVER_SURVEY] = {[DAFL_MSG_SETUP_ACK] = dafl_server_on_ack,
                            [DAFL_MSG_READY] = dafl_server_on_ready,
                            [DAFL_MSG_UPLOAD] = on_late,
                            [DAFL_MSG_END] = on_late,
                            [DAFL_MSG_SIGN] = dafl_server_on_sign,
                            [DAFL_MSG_HELLO] = on_hello},
    [DAFL_SERVER_REVEAL] = {[DAFL_MSG_SETUP_ACK] = dafl_server_on_ack,
                            [DAFL_MSG_READY] = dafl_server_on_ready,
                            [DAFL_MSG_UPLOAD] = on_late,
                            [DAFL_MSG_END] = on_late,
                            [DAFL_MSG_SIGN] = on_late,
                            [DAFL_MSG_REVEAL] = dafl_server_on_reveal,
                            [DAFL_MSG_HELLO] = on_hello},
    [DAFL_SERVER_OPENING] = {[DAFL_MSG_SETUP_ACK] = dafl_server_on_ack,
                             [DAFL_MSG_READY] = dafl_server_on_ready,
                             [DAFL_MSG_UPLOAD] = on_late,
                             [DAFL_MSG_END] = on_late,
                             [DAFL_MSG_SIGN] = on_late,
                             [DAFL_MSG_REVEAL] = on_late,
                             [DAFL_MSG_HELLO] = on_hello},
    [DAFL_SERVER_DONE] = {[DAFL_MSG_HELLO] = on_hello},
    [DAFL_SERVER_FAILED] = {[DAFL_MSG_HELLO] = on_hello},
};

/* The table of what the key holder sends. Its HELLO and what it refuses are
 * heard in any state. */
static dafl_server_handler
    *const holder_table[DAFL_SERVER_STATES][DAFL_MSG_COUNT] = {
        [DAFL_SERVER_ACKING] = {[DAFL_MSG_SETUP_ACK] =
                                    dafl_server_on_holder_ack},
        [DAFL_SERVER_KEYING] = {[DAFL_MSG_KEY] = dafl_server_on_key},
        [DAFL_SERVER_OPENING] = {[DAFL_MSG_UPLOAD] = dafl_server_on_opening,
                                 [DAFL_MSG_OPENED] = dafl_server_on_opened},
};

const char *dafl_server_state_name(dafl_server_state state)
{
    static const char *const names[DAFL_SERVER_STATES] = {
        "NEW",     "ENROLLING", "DEALING", "ACKING", "PAUSED",
        "KEYING",  "CASTING",   "COLLECT", "SURVEY", "REVEAL",
        "OPENING", "DONE",      "FAILED"};

    return (size_t)state < DAFL_SERVER_STATES ? names[state] : "?";
}

dafl_err dafl_server_new(dafl_server **out, const dafl_server_params *p,
                         dafl_fault *fault, dafl_why *why)
{
    size_t k = p->roster->n_clients;
    dafl_server *s = calloc(1, sizeof *s);
    dafl_err err = DAFL_ERR_NOMEM;

    if (s == NULL)
        return DAFL_ERR_NOMEM;
    err = dafl_node_init(&s->node, p->roster, p->config, p->self,
                         DAFL_ROLE_SERVER, fault, why);
    if (err != DAFL_OK)
        goto out;
    s->node.run = p->run;
    s->method = p->method;
    s->method_self = p->method_self;
    s->pool = p->pool;
    s->deadline = UINT64_MAX;
    s->online = s->enrolled = s->dealt = s->u0 = s->u1 = s->acked = s->usable =
        s->around = s->barred = s->suspects = dafl_members_none(k);
    dafl_server_drop_slot(s);
    s->seats = calloc(k, sizeof *s->seats);
    s->cells = calloc(k, sizeof *s->cells);
    err = s->seats == NULL || s->cells == NULL ? DAFL_ERR_NOMEM : DAFL_OK;
    if (err == DAFL_OK && p->config->mode == DAFL_MODE_SEAL) {
        err = dafl_he_new(&s->encryption, p->config->contract.w, p->pool, why);
        if (err != DAFL_OK && fault != NULL)
            *fault = DAFL_E_POLICY;
    }
out:
    if (err == DAFL_OK)
        *out = s;
    else
        dafl_server_free(&s);
    return err;
}

void dafl_server_free(dafl_server **server)
{
    dafl_server *s = *server;

    if (s == NULL)
        return;
    if (s->seats != NULL) {
        dafl_server_drop_slot(s);
        dafl_server_drop_shares(s);
        for (size_t u = 0; u < s->node.roster->n_clients; u++)
            free(s->seats[u].keys);
    }
    for (uint32_t i = 0; i < s->n_chapters; i++)
        dafl_writer_drop(&s->chapters[i].bytes);
    free(s->chapters);
    dafl_server_drop_opening(s);
    dafl_he_free(&s->encryption);
    free(s->cells);
    free(s->seats);
    dafl_node_drop(&s->node);
    free(s);
    *server = NULL;
}

void dafl_server_enter(dafl_server *s, dafl_server_state state, dafl_wait wait)
{
    uint64_t ms = s->node.config->wait[wait];

    s->state = state;
    s->deadline = s->now < UINT64_MAX - ms ? s->now + ms : UINT64_MAX - 1;
}

dafl_fault dafl_server_broke(dafl_server *s, dafl_err err)
{
    s->err = err;
    return DAFL_FAULT_NONE;
}

uint16_t dafl_server_cell(const dafl_server *s, size_t client)
{
    return s->node.config->policy.g == 1 ? (uint16_t)client
                                         : s->node.roster->parties[client].cell;
}

uint16_t dafl_server_n_cells(const dafl_server *s)
{
    return s->node.config->policy.g == 1 ? s->node.roster->n_clients
                                         : s->node.roster->n_cells;
}

dafl_members dafl_server_cell_members(const dafl_server *s, uint16_t cell)
{
    dafl_members one;

    if (s->node.config->policy.g != 1)
        return dafl_roster_cell(s->node.roster, cell);
    one = dafl_members_none(s->node.roster->n_clients);
    dafl_members_add(&one, cell);
    return one;
}

dafl_members dafl_server_whole(const dafl_server *s, const dafl_members *set)
{
    return s->node.config->policy.g == 1
               ? *set
               : dafl_roster_keep_whole(s->node.roster, set);
}

static dafl_err result_of(const dafl_server *s)
{
    return s->err != DAFL_OK        ? s->err
           : s->node.effects.failed ? DAFL_ERR_NOMEM
                                    : DAFL_OK;
}

/* See whether what we wait for has come, or will not come any more. */
static void progress(dafl_server *s, bool late)
{
    if (s->err != DAFL_OK)
        return;
    if (s->state <= DAFL_SERVER_ACKING)
        dafl_server_setup_progress(s, late);
    else
        dafl_server_slot_progress(s, late);
}

/* It starts again from what it was before: a copy of its disk or an empty one,
 * unless somebody repeats an old HELLO. It can tell these apart by the number
 * that we have heard from it. It hears us in the run that it knows. */
static void send_lost(dafl_server *s, const dafl_envelope *m)
{
    dafl_members to = dafl_members_none(s->node.roster->n_clients);
    dafl_run_id run = s->node.run;
    dafl_result result = {.fault = DAFL_E_STATE_LOST};
    dafl_writer w = {0};

    for (size_t i = 0; i < 8; i++)
        result.sum.b[i] = (uint8_t)(s->node.heard[m->sender] >> 8 * i);
    dafl_put_result(&w, &result);
    s->node.run = m->run;
    if (m->sender < to.n) {
        dafl_members_add(&to, m->sender);
        dafl_node_send(&s->node, DAFL_MSG_RESULT, 0, &to, &w);
    } else
        dafl_node_send_holder(&s->node, DAFL_MSG_RESULT, 0, &w);
    s->node.run = run;
}

/* A key holder that knows of no run has lost its disk and begins anew: it has
 * no key of before, and all enrol again. */
static bool is_reborn(dafl_server *s, const dafl_envelope *m)
{
    if (m->sender < s->node.roster->n_clients ||
        !sodium_is_zero(m->run.b, sizeof m->run.b) ||
        !dafl_node_lives(&s->node, m->sender, (uint32_t)(m->seq >> 32)))
        return false;
    s->node.heard[m->sender] = m->seq;
    return true;
}

static dafl_server_handler *handler_of(dafl_server *s, const dafl_envelope *m)
{
    if (m->sender >= s->node.roster->n_clients)
        return m->type == DAFL_MSG_HELLO    ? dafl_server_on_holder_hello
               : m->type == DAFL_MSG_RESULT ? dafl_server_on_refusal
                                            : holder_table[s->state][m->type];
    dafl_members_add(&s->online, m->sender);
    dafl_members_add(&s->around, m->sender);
    return table[s->state][m->type];
}

dafl_err dafl_server_receive(dafl_server *s, dafl_bytes message, uint64_t now)
{
    dafl_envelope m = {.sender = DAFL_NOBODY};
    dafl_fault fault = dafl_node_open(&s->node, &m, message);
    dafl_server_handler *handler;

    s->now = now;
    if (fault == DAFL_E_STATE_LOST && is_reborn(s, &m))
        fault = DAFL_FAULT_NONE;
    if (fault == DAFL_FAULT_NONE) {
        handler = handler_of(s, &m);
        fault = dafl_server_has_it(s, &m) ? DAFL_FAULT_NONE
                : handler == NULL         ? DAFL_E_STATE
                                          : handler(s, &m);
    } else if (fault == DAFL_E_STATE_LOST)
        send_lost(s, &m);
    if (fault != DAFL_FAULT_NONE)
        dafl_node_error(&s->node, m.slot, m.sender, fault);
    else
        progress(s, false);
    return result_of(s);
}

dafl_err dafl_server_refuse(dafl_server *s, uint16_t party, dafl_fault fault)
{
    dafl_node_error(&s->node, 0, party, fault);
    return result_of(s);
}

dafl_err dafl_server_lost(dafl_server *s, uint16_t party, uint64_t now)
{
    if (party >= s->node.roster->n || party == s->node.index)
        return DAFL_ERR_ARG;
    s->now = now;
    if (party < s->node.roster->n_clients)
        dafl_members_remove(&s->online, party);
    progress(s, false);
    return result_of(s);
}

dafl_err dafl_server_tick(dafl_server *s, uint64_t now)
{
    s->now = now;
    if (now >= dafl_server_deadline(s))
        progress(s, true);
    return result_of(s);
}

/* Too late to count, and nothing wrong with it. */
static dafl_fault on_late(dafl_server *s, const dafl_envelope *m)
{
    dafl_node_error(&s->node, m->slot, m->sender, DAFL_E_TIMEOUT);
    return DAFL_FAULT_NONE;
}

/* RESULT of slot 0: the run is over. */
static void send_over(dafl_server *s, const dafl_members *to)
{
    dafl_writer w = {0};

    dafl_put_result(&w, &(dafl_result){.fault = (uint16_t)s->fault});
    dafl_node_send(&s->node, DAFL_MSG_RESULT, 0, to, &w);
}

/* A client that comes, or comes back: give it what it lacks. */
static dafl_fault on_hello(dafl_server *s, const dafl_envelope *m)
{
    bool ours = memcmp(m->run.b, s->node.run.b, sizeof m->run.b) == 0;
    dafl_members to = dafl_members_none(s->node.roster->n_clients);
    dafl_seat *seat = &s->seats[m->sender];
    dafl_hello hello;

    if (dafl_get_hello(&hello, m->body) != DAFL_OK)
        return DAFL_E_FORMAT;
    dafl_members_add(&to, m->sender);
    seat->have = 0;
    for (uint32_t i = 0; ours && i < s->n_chapters; i++)
        if (dafl_digest_equal(&s->chapters[i].model, &hello.model))
            seat->have = i + 1;
    switch (s->state) {
    case DAFL_SERVER_ENROLLING:
        if (!dafl_members_has(&s->enrolled, m->sender))
            dafl_server_send_invite(s, &to);
        break;
    case DAFL_SERVER_DEALING:
        if (dafl_members_has(&s->u0, m->sender) &&
            !dafl_members_has(&s->dealt, m->sender))
            dafl_server_send_peers(s, &to);
        break;
    case DAFL_SERVER_ACKING:
    case DAFL_SERVER_PAUSED:
    case DAFL_SERVER_KEYING:
    case DAFL_SERVER_CASTING:
    case DAFL_SERVER_COLLECT:
    case DAFL_SERVER_SURVEY:
    case DAFL_SERVER_REVEAL:
    case DAFL_SERVER_OPENING:
        /* One without keys that cannot have them any more waits for the next
         * enrolment. */
        if (!dafl_members_has(&s->u1, m->sender))
            break;
        if (!ours || hello.keys != s->enrolment + 1)
            dafl_members_remove(&s->acked, m->sender);
        if (!dafl_members_has(&s->acked, m->sender))
            dafl_server_send_setup(s, m->sender);
        else
            dafl_server_catch_up(s, m->sender, hello.last_slot == s->slot);
        break;
    case DAFL_SERVER_DONE:
    case DAFL_SERVER_FAILED:
        if (ours)
            send_over(s, &to);
        break;
    case DAFL_SERVER_NEW:
    case DAFL_SERVER_STATES:
        break;
    }
    return DAFL_FAULT_NONE;
}

void dafl_server_over(dafl_server *s, dafl_fault fault)
{
    dafl_server_drop_slot(s);
    dafl_server_drop_shares(s);
    s->fault = fault;
    s->state = fault == DAFL_FAULT_NONE ? DAFL_SERVER_DONE : DAFL_SERVER_FAILED;
    s->deadline = UINT64_MAX;
    dafl_node_recap(&s->node, s->slot);
    dafl_node_tell(&s->node,
                   &(dafl_event){.kind = DAFL_EVENT_DONE,
                                 .slot = s->slot,
                                 .peer = DAFL_NOBODY,
                                 .fault = fault},
                   NULL);
    send_over(s, &s->online);
    dafl_server_dismiss(s);
}

uint64_t dafl_server_deadline(const dafl_server *s)
{
    uint64_t least = s->deadline;

    for (size_t u = 0; s->state == DAFL_SERVER_COLLECT && u < s->granted.n; u++)
        if (dafl_members_has(&s->granted, u) && s->seats[u].until < least)
            least = s->seats[u].until;
    return least;
}

void dafl_server_log(dafl_server *s, const dafl_digest *head)
{
    s->node.log_head = *head;
}

bool dafl_server_next(dafl_server *s, dafl_effect *out)
{
    return dafl_effects_next(&s->node.effects, out);
}

dafl_server_state dafl_server_where(const dafl_server *s)
{
    return s->state;
}

dafl_fault dafl_server_fault(const dafl_server *s)
{
    return s->fault;
}

uint32_t dafl_server_slot(const dafl_server *s)
{
    return s->slot;
}

dafl_server_stats dafl_server_stat(const dafl_server *s)
{
    return s->stats;
}
