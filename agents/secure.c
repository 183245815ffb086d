/* SPDX-License-Identifier: Apache-2.0 */
#include "agents/secure.h"

#include "agents/cli.h"
#include "agents/secure_state.h"

void secure_empty_client(secure_client *c)
{
    dafl_effect e;

    while (dafl_client_next(c->machine, &e))
        if (e.kind == DAFL_DO_SEND &&
            letters_add(&c->out, letter_new(e.bytes)) != DAFL_OK)
            c->err = DAFL_ERR_NOMEM;
}

static void work_client(void *ctx, unsigned worker, size_t i)
{
    secure_client *c = &((secure *)ctx)->clients[i];
    double start = cli_now();

    (void)worker;
    for (size_t k = 0; k < c->in.n && c->err == DAFL_OK; k++) {
        c->err = dafl_client_receive(
            c->machine, (dafl_bytes){c->in.at[k]->bytes, c->in.at[k]->len});
        secure_empty_client(c);
    }
    letters_clear(&c->in);
    c->busy_s += cli_now() - start;
}

void secure_for_all(secure *s, dafl_pool_fn *fn)
{
    if (s->n >= 2 * (size_t)dafl_pool_size(s->pool))
        dafl_pool_run(s->pool, s->n, fn, s);
    else
        for (size_t i = 0; i < s->n; i++)
            fn(s, 0, i);
}

dafl_err secure_first_error(const secure *s, dafl_why *why)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->clients[i].err != DAFL_OK) {
            if (why != NULL)
                *why = s->clients[i].why;
            return s->clients[i].err;
        }
    return DAFL_OK;
}

/* ---- dropping out ---- */

bool secure_by_chance(secure *s, double p)
{
    return dafl_draw_unit(&s->dice) < p;
}

/* Decide, when the MODEL of a new slot goes out, whether and where a client
 * drops out of it. */
static void roll(secure *s, secure_client *c, uint32_t slot)
{
    bool drops;

    if (c->slot == slot)
        return;
    c->slot = slot;
    drops = s->asking.number >= c->leaves || secure_by_chance(s, s->plan.drop);
    c->phase =
        drops ? (drop_phase)dafl_draw_below(&s->dice, DROP_PHASES) : DROP_NOT;
}

static dafl_err disconnect(secure *s, secure_client *c)
{
    c->connected = false;
    s->step.dropouts++;
    letters_clear(&c->in);
    letters_clear(&c->out);
    return dafl_server_lost(s->server, (uint16_t)c->number, s->now);
}

/* Whether a client's message still reaches the server, and whether it was its
 * last. */
static bool passes(const secure_client *c, dafl_msg_type type, bool *last)
{
    static const struct {
        dafl_msg_type type;
        bool arrives;
    } ends[DROP_PHASES] = {
        [DROP_AT_MODEL] = {DAFL_MSG_READY, false},
        [DROP_AFTER_READY] = {DAFL_MSG_READY, true},
        [DROP_AT_UPLOAD] = {DAFL_MSG_UPLOAD, false},
        [DROP_MID_UPLOAD] = {DAFL_MSG_UPLOAD, true},
        [DROP_AFTER_END] = {DAFL_MSG_END, true},
        [DROP_AT_SIGN] = {DAFL_MSG_SIGN, false},
        [DROP_AFTER_SIGN] = {DAFL_MSG_SIGN, true},
        [DROP_AFTER_REVEAL] = {DAFL_MSG_REVEAL, true},
    };

    *last = c->phase != DROP_NOT && ends[c->phase].type == type;
    return !*last || ends[c->phase].arrives;
}

/* Everyone who dropped out of a slot is back when it is over, unless it has
 * left for good. */
static dafl_err reconnect_all(secure *s)
{
    for (size_t i = 0; i < s->n; i++) {
        secure_client *c = &s->clients[i];
        if (c->connected || s->asking.number >= c->leaves)
            continue;
        c->connected = true;
        DAFL_TRY(dafl_client_hello(c->machine));
        secure_empty_client(c);
    }
    return DAFL_OK;
}

/* ---- the server and the wire ---- */

/* A message of the server to one client. */
static dafl_err route_to(secure *s, secure_client *c, letter *l)
{
    uint32_t slot = 0;

    if (!c->connected)
        return DAFL_OK;
    if (letter_type(l, &slot) == DAFL_MSG_MODEL) {
        roll(s, c, slot);
        if (c->phase == DROP_AT_MODEL)
            return disconnect(s, c);
    }
    s->step.download += (double)l->len / (double)s->n;
    atomic_fetch_add(&l->users, 1);
    return letters_add(&c->in, l);
}

static dafl_err route(secure *s, const dafl_effect *e)
{
    letter *l = letter_new(e->bytes);
    dafl_err err = l == NULL ? DAFL_ERR_NOMEM : DAFL_OK;

    if (e->to_holder)
        return letters_add(&s->to_holder, l);
    for (size_t i = 0; i < s->n && err == DAFL_OK; i++)
        if (dafl_members_has(&e->to, i))
            err = route_to(s, &s->clients[i], l);
    letter_drop(l);
    return err;
}

static dafl_err heed(secure *s, const dafl_event *e)
{
    switch (e->kind) {
    case DAFL_EVENT_MODEL:
        s->step.slots++;
        s->step.question = s->asking;
        return DAFL_OK;
    case DAFL_EVENT_RESULT:
        if (e->fault == DAFL_FAULT_NONE) {
            s->step.cohort = e->set;
            s->last = s->step;
            s->step = (secure_step){0};
            s->answered = true;
        }
        return reconnect_all(s);
    default:
        return DAFL_OK;
    }
}

static dafl_err empty_server(secure *s)
{
    dafl_effect e;

    while (dafl_server_next(s->server, &e)) {
        if (e.kind == DAFL_DO_SEND)
            DAFL_TRY(route(s, &e));
        else if (e.kind == DAFL_DO_TELL)
            DAFL_TRY(heed(s, &e.event));
    }
    return DAFL_OK;
}

/* What one client has sent goes to the server. */
static dafl_err deliver(secure *s, secure_client *c)
{
    for (size_t k = 0; k < c->out.n && c->connected; k++) {
        letter *l = c->out.at[k];
        uint32_t slot = 0;
        dafl_msg_type type = letter_type(l, &slot);
        bool last = false, arrives = true;
        if (slot == c->slot && slot > 0 && type != DAFL_MSG_HELLO)
            arrives = passes(c, type, &last);
        if (arrives) {
            s->step.upload += (double)l->len / (double)s->n;
            DAFL_TRY(dafl_server_receive(
                s->server, (dafl_bytes){l->bytes, l->len}, s->now));
        }
        if (last) {
            c->phase = DROP_NOT;
            DAFL_TRY(disconnect(s, c));
        }
    }
    letters_clear(&c->out);
    return DAFL_OK;
}

/* All clients work on what they have got; true if any had something. */
static bool clients_turn(secure *s)
{
    double start = cli_now(), busy = 0, compute = 0, wall;
    bool any = false;

    for (size_t i = 0; i < s->n; i++)
        any |= s->clients[i].in.n > 0;
    if (!any)
        return false;
    secure_for_all(s, work_client);
    wall = cli_now() - start;
    for (size_t i = 0; i < s->n; i++) {
        busy += s->clients[i].busy_s;
        compute += s->clients[i].compute_s;
        s->clients[i].busy_s = s->clients[i].compute_s = 0;
    }
    compute = busy > 0 ? wall * compute / busy : 0;
    s->step.compute_s += compute;
    s->step.masking_s += wall - compute;
    return true;
}

dafl_err secure_empty_holder(secure *s)
{
    dafl_effect e;

    while (dafl_holder_next(s->holder, &e))
        if (e.kind == DAFL_DO_SEND)
            DAFL_TRY(letters_add(&s->from_holder, letter_new(e.bytes)));
    return DAFL_OK;
}

/* The key holder works on what it has got, and the server takes its answer;
 * true if there was something. */
static dafl_err holders_turn(secure *s, bool *any)
{
    letters in = s->to_holder, out;

    *any = in.n > 0 || s->from_holder.n > 0;
    s->to_holder = (letters){0};
    for (size_t k = 0; k < in.n; k++)
        DAFL_TRY(dafl_holder_receive(
            s->holder, (dafl_bytes){in.at[k]->bytes, in.at[k]->len}));
    letters_free(&in);
    DAFL_TRY(secure_empty_holder(s));
    out = s->from_holder;
    s->from_holder = (letters){0};
    for (size_t k = 0; k < out.n; k++)
        DAFL_TRY(dafl_server_receive(
            s->server, (dafl_bytes){out.at[k]->bytes, out.at[k]->len}, s->now));
    letters_free(&out);
    return empty_server(s);
}

/* The server takes what has come; without anything, time passes. */
static dafl_err servers_turn(secure *s, bool idle)
{
    double start = cli_now();
    bool any = false, held = false;

    s->solve_s = 0;
    if (s->holder != NULL)
        DAFL_TRY(holders_turn(s, &held));
    for (size_t i = 0; i < s->n; i++) {
        any |= s->clients[i].out.n > 0;
        DAFL_TRY(deliver(s, &s->clients[i]));
        DAFL_TRY(empty_server(s));
    }
    if (!any && !held && idle) {
        s->now = dafl_server_deadline(s->server);
        if (s->now == UINT64_MAX)
            return DAFL_ERR_ARG; /* it would wait for ever */
        DAFL_TRY(dafl_server_tick(s->server, s->now));
        DAFL_TRY(empty_server(s));
    }
    s->step.solve_s += s->solve_s;
    s->step.unmasking_s += cli_now() - start - s->solve_s;
    return DAFL_OK;
}

dafl_err secure_ask(secure *s, secure_step *step, bool *more, dafl_why *why)
{
    s->answered = false;
    if (dafl_server_where(s->server) == DAFL_SERVER_NEW)
        DAFL_TRY(dafl_server_start(s->server, s->now));
    DAFL_TRY(empty_server(s));
    *more = true;
    while (!s->answered) {
        bool worked;
        if (dafl_server_where(s->server) == DAFL_SERVER_DONE) {
            *more = false;
            return DAFL_OK;
        }
        if (dafl_server_where(s->server) == DAFL_SERVER_FAILED)
            return dafl_fail(why, DAFL_ERR_PEER, "the run ended with %s: %s",
                             dafl_fault_name(dafl_server_fault(s->server)),
                             dafl_fault_text(dafl_server_fault(s->server)));
        worked = clients_turn(s);
        DAFL_TRY(secure_first_error(s, why));
        DAFL_TRY(servers_turn(s, !worked));
    }
    *step = s->last;
    return DAFL_OK;
}
