/* SPDX-License-Identifier: Apache-2.0 */
#include "agents/secure.h"

#include <stdlib.h>
#include <string.h>

#include "agents/cli.h"
#include "agents/letters.h"
#include "agents/shared.h"
#include "lib/secret.h"
#include "protocol/client.h"
#include "protocol/holder.h"

/* Where in a slot a client drops out: the last thing it does, or does not. */
typedef enum {
    DROP_AT_MODEL, /* does not get the question */
    DROP_AFTER_READY,
    DROP_AT_UPLOAD, /* was cast and sends nothing */
    DROP_MID_UPLOAD,
    DROP_AFTER_END,
    DROP_AT_SIGN, /* has uploaded and does not sign */
    DROP_AFTER_SIGN,
    DROP_AFTER_REVEAL,
    DROP_PHASES,
    DROP_NOT
} drop_phase;

typedef struct {
    secure *fed;
    size_t number;
    dafl_secret_identity id;
    dafl_deep_client *deep;
    dafl_client *machine;
    const dafl_projection *lent;
    letters in, out;
    bool connected;
    uint32_t slot;            /* the newest whose MODEL went to it */
    drop_phase phase;         /* in that slot */
    uint32_t leaves;          /* the question in which it leaves for good */
    double busy_s, compute_s; /* thread time since the last look */
    dafl_err err;
    dafl_why why;
} client;

struct secure {
    const dafl_params *params;
    dafl_pool *pool;
    const dafl_data *train;
    const partition *part;
    secure_plan plan;
    size_t n;
    client *clients;
    dafl_roster roster;
    dafl_config config;
    dafl_writer method_params;
    dafl_secret_identity server_id, holder_id;
    dafl_deep_server *deep;
    dafl_server *server;
    dafl_holder *holder; /* NULL: no encryption */
    letters to_holder, from_holder;
    shared *projections;
    uint64_t now; /* virtual milliseconds */
    dafl_draw dice;
    secure_step step, last; /* of the question at hand, the answered one */
    dafl_question asking;
    bool answered;
    double solve_s;
};

/* ---- clients ---- */

/* The method's functions with a stopwatch: what they take is computing, the
 * rest of a client's time is masking. */
static dafl_fault timed_follow(void *self, const dafl_segment *segment)
{
    client *c = self;
    double start = cli_now();
    dafl_fault fault = dafl_deep_client_method.follow(c->deep, segment);

    c->compute_s += cli_now() - start;
    return fault;
}

static dafl_fault timed_answer(void *self, const dafl_question *q, int64_t *x,
                               size_t len)
{
    client *c = self;
    double start = cli_now();
    dafl_fault fault = dafl_deep_client_method.answer(c->deep, q, x, len);

    c->compute_s += cli_now() - start;
    return fault;
}

static dafl_fault plain_shape(void *self, const dafl_question *q,
                              dafl_shape *out)
{
    client *c = self;

    return dafl_deep_client_method.shape(c->deep, q, out);
}

static dafl_fault plain_rewind(void *self)
{
    client *c = self;

    return dafl_deep_client_method.rewind(c->deep);
}

static const dafl_client_method timed_client = {.follow = timed_follow,
                                                .shape = plain_shape,
                                                .answer = timed_answer,
                                                .rewind = plain_rewind};

static dafl_fault timed_take(void *self, const dafl_question *q,
                             const int64_t *sum, size_t len,
                             const dafl_members *cohort, dafl_why *why)
{
    secure *s = self;
    double start = cli_now();
    dafl_fault fault =
        dafl_deep_server_method.take(s->deep, q, sum, len, cohort, why);

    s->solve_s += cli_now() - start;
    return fault;
}

static bool server_asks(void *self, bool plain, dafl_question *out)
{
    secure *s = self;

    if (!dafl_deep_server_method.next(s->deep, plain, out))
        return false;
    s->asking = *out;
    return true;
}

static dafl_fault server_shape(void *self, const dafl_question *q,
                               dafl_shape *out)
{
    secure *s = self;

    return dafl_deep_server_method.shape(s->deep, q, out);
}

static dafl_fault server_segment(void *self, uint32_t number, dafl_segment *out,
                                 dafl_writer *bytes)
{
    secure *s = self;

    return dafl_deep_server_method.segment(s->deep, number, out, bytes);
}

static void server_choose(void *self, const dafl_question *q,
                          const dafl_roster *roster, dafl_members *cohort)
{
    secure *s = self;

    dafl_deep_server_method.choose(s->deep, q, roster, cohort);
}

static const dafl_server_method timed_server = {.next = server_asks,
                                                .shape = server_shape,
                                                .segment = server_segment,
                                                .choose = server_choose,
                                                .take = timed_take};

static dafl_err found(void *ctx, const dafl_params *p,
                      const dafl_projection *first, dafl_site **site,
                      dafl_site **held, dafl_digest *rows, dafl_why *why)
{
    client *c = ctx;
    const secure *s = c->fed;
    size_t from = s->part->first[c->number];

    *held = NULL;
    *rows = (dafl_digest){0}; /* nobody restarts with other rows */
    return dafl_site_new(site, p, s->pool, s->train, s->part->rows + from,
                         s->part->first[c->number + 1] - from, first, why);
}

static dafl_err project(void *ctx, size_t k, const dafl_projection **out)
{
    client *c = ctx;

    DAFL_TRY(shared_take(c->fed->projections, k, &c->lent));
    *out = c->lent;
    return DAFL_OK;
}

/* Carry out what a machine wants: keep what it sends; it has no journal here,
 * because nobody restarts. */
static void empty_client(client *c)
{
    dafl_effect e;

    while (dafl_client_next(c->machine, &e))
        if (e.kind == DAFL_DO_SEND &&
            letters_add(&c->out, letter_new(e.bytes)) != DAFL_OK)
            c->err = DAFL_ERR_NOMEM;
}

static void work_client(void *ctx, unsigned worker, size_t i)
{
    client *c = &((secure *)ctx)->clients[i];
    double start = cli_now();

    (void)worker;
    for (size_t k = 0; k < c->in.n && c->err == DAFL_OK; k++) {
        c->err = dafl_client_receive(
            c->machine, (dafl_bytes){c->in.at[k]->bytes, c->in.at[k]->len});
        empty_client(c);
    }
    letters_clear(&c->in);
    c->busy_s += cli_now() - start;
}

static void found_client(void *ctx, unsigned worker, size_t i)
{
    secure *s = ctx;
    client *c = &s->clients[i];
    dafl_client_params params = {
        .roster = &s->roster,
        .config = &s->config,
        .self = &c->id,
        .floor = {.least_m = s->config.policy.m,
                  .least_g = s->config.policy.g,
                  .any_cohort = s->config.policy.g == 1},
        .method = &timed_client,
        .method_self = c,
        .pool = s->pool,
    };

    (void)worker;
    c->err =
        dafl_deep_client_new(&c->deep, s->params, found, project, c, &c->why);
    if (c->err == DAFL_OK)
        dafl_deep_client_allow(c->deep, true, true); /* nobody looks */
    if (c->err == DAFL_OK)
        c->err = dafl_client_new(&c->machine, &params, NULL, &c->why);
    if (c->err == DAFL_OK)
        c->err = dafl_client_start(c->machine);
    if (c->err == DAFL_OK)
        empty_client(c);
}

static void for_all_clients(secure *s, dafl_pool_fn *fn)
{
    if (s->n >= 2 * (size_t)dafl_pool_size(s->pool))
        dafl_pool_run(s->pool, s->n, fn, s);
    else
        for (size_t i = 0; i < s->n; i++)
            fn(s, 0, i);
}

/* The error of the first client that had one. */
static dafl_err first_error(const secure *s, dafl_why *why)
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

static bool by_chance(secure *s, double p)
{
    return dafl_draw_unit(&s->dice) < p;
}

/* Decide, when the MODEL of a new slot goes out, whether and where a client
 * drops out of it. */
static void roll(secure *s, client *c, uint32_t slot)
{
    bool drops;

    if (c->slot == slot)
        return;
    c->slot = slot;
    drops = s->asking.number >= c->leaves || by_chance(s, s->plan.drop);
    c->phase =
        drops ? (drop_phase)dafl_draw_below(&s->dice, DROP_PHASES) : DROP_NOT;
}

static dafl_err disconnect(secure *s, client *c)
{
    c->connected = false;
    s->step.dropouts++;
    letters_clear(&c->in);
    letters_clear(&c->out);
    return dafl_server_lost(s->server, (uint16_t)c->number, s->now);
}

/* Whether a client's message still reaches the server, and whether it was its
 * last. */
static bool passes(const client *c, dafl_msg_type type, bool *last)
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
        client *c = &s->clients[i];
        if (c->connected || s->asking.number >= c->leaves)
            continue;
        c->connected = true;
        DAFL_TRY(dafl_client_hello(c->machine));
        empty_client(c);
    }
    return DAFL_OK;
}

/* ---- the server and the wire ---- */

/* A message of the server to one client. */
static dafl_err route_to(secure *s, client *c, letter *l)
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
static dafl_err deliver(secure *s, client *c)
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
    for_all_clients(s, work_client);
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

static dafl_err empty_holder(secure *s)
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
    DAFL_TRY(empty_holder(s));
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
        DAFL_TRY(first_error(s, why));
        DAFL_TRY(servers_turn(s, !worked));
    }
    *step = s->last;
    return DAFL_OK;
}

/* ---- making ---- */

dafl_err secure_check(const secure_plan *plan, size_t clients, dafl_why *why)
{
    size_t two_more = plan->colluders + 2;

    if (clients < 3 || clients > DAFL_CLIENTS_MAX)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--clients: masks are for 3 to %d clients, not %zu",
                         DAFL_CLIENTS_MAX, clients);
    if (plan->colluders >= clients ||
        dafl_threshold_absent(clients, plan->colluders) +
                (clients - 1 + plan->colluders) / 2 + 1 >
            clients - 1)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--colluders: %zu of %zu clients leave no quorum of "
                         "honest ones",
                         plan->colluders, clients);
    if (plan->cell_size != 1 && plan->cell_size < two_more)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--cell-size: a cell needs two members more than the "
                         "colluders, %zu; or 1 for no cells",
                         two_more);
    if (plan->cell_size > clients)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--cell-size: %zu is more than the %zu clients",
                         plan->cell_size, clients);
    if (plan->min_cohort < two_more || plan->min_cohort > clients)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--min-cohort: %zu is not one of %zu to %zu, the "
                         "clients",
                         plan->min_cohort, two_more, clients);
    if (!(plan->drop >= 0 && plan->drop <= 1))
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--drop: a chance between 0 and 1");
    if (!(plan->drop_for_good >= 0 && plan->drop_for_good <= 1))
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--drop-for-good: a chance between 0 and 1");
    return DAFL_OK;
}

static dafl_err make_identity(dafl_secret_identity *out, const dafl_seed *seed,
                              size_t number, const char *name, dafl_why *why)
{
    uint8_t bytes[64];
    dafl_draw draw;
    dafl_err err;

    dafl_draw_init(&draw, seed, DAFL_STREAM_SIMULATION, 0x30000 + number);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)dafl_draw_below(&draw, 256);
    err = dafl_identity_new_derand(out, name, bytes, why);
    dafl_wipe(bytes, sizeof bytes);
    return err;
}

/* Cells at random, of the asked size; what is left over joins the last ones. */
static dafl_err make_roster(secure *s, dafl_why *why)
{
    dafl_party parties[DAFL_PARTIES_MAX];
    uint32_t order[DAFL_CLIENTS_MAX];
    size_t cells = s->plan.cell_size > s->n ? 1 : s->n / s->plan.cell_size;

    for (size_t i = 0; i < s->n; i++)
        order[i] = (uint32_t)i;
    dafl_draw_shuffle(&s->dice, order, s->n);
    for (size_t i = 0; i < s->n; i++) {
        client *c = &s->clients[order[i]];
        char name[32];
        (void)snprintf(name, sizeof name, "client-%u", (unsigned)order[i]);
        DAFL_TRY(make_identity(&c->id, &s->params->seed, order[i], name, why));
        /* Without cells the draw of participants is over the clients. */
        parties[order[i]] = (dafl_party){
            .id = c->id.public,
            .role = DAFL_ROLE_CLIENT,
            .cell = (uint16_t)(s->plan.cell_size == 1 ? order[i] : i % cells)};
    }
    DAFL_TRY(
        make_identity(&s->server_id, &s->params->seed, s->n, "server", why));
    parties[s->n] = (dafl_party){.id = s->server_id.public,
                                 .role = DAFL_ROLE_SERVER,
                                 .cell = DAFL_NO_CELL};
    if (!s->plan.encrypt)
        return dafl_roster_make(&s->roster, parties, s->n + 1, why);
    DAFL_TRY(make_identity(&s->holder_id, &s->params->seed, s->n + 1,
                           "keyholder", why));
    parties[s->n + 1] = (dafl_party){.id = s->holder_id.public,
                                     .role = DAFL_ROLE_KEYHOLDER,
                                     .cell = DAFL_NO_CELL};
    return dafl_roster_make(&s->roster, parties, s->n + 2, why);
}

static dafl_err make_config(secure *s)
{
    dafl_policy *p = &s->config.policy;
    size_t half = s->n / 2 + 1;

    s->config = dafl_config_default();
    s->config.mode = s->plan.encrypt ? DAFL_MODE_SEAL : DAFL_MODE_MASKS;
    p->c = (uint16_t)s->plan.colluders;
    p->g = (uint16_t)s->plan.cell_size;
    p->m = (uint16_t)s->plan.min_cohort;
    p->n_min = (uint16_t)(p->m > half ? p->m : half);
    while (p->n_min < s->n) {
        size_t t = 0;
        if (dafl_threshold(&t, p->n_min, p->c, 0) == DAFL_FAULT_NONE)
            break;
        p->n_min++;
    }
    p->a = (uint16_t)dafl_threshold_absent(p->n_min, p->c);
    s->config.contract = s->params->contract;
    s->config.slots = dafl_config_slots(dafl_deep_questions(s->params));
    s->config.body_max = DAFL_BODY_MAX;
    s->config.retries = 50;
    (void)strcpy(s->config.method, "deepafl");
    dafl_put_deep_params(&s->method_params, s->params, &s->plan.participation);
    s->config.method_params = dafl_writer_bytes(&s->method_params);
    return dafl_writer_done(&s->method_params);
}

/* Who leaves for good, and when. */
static void plan_leaving(secure *s)
{
    uint32_t questions = dafl_deep_questions(s->params);

    for (size_t i = 0; i < s->n; i++)
        s->clients[i].leaves =
            by_chance(s, s->plan.drop_for_good)
                ? (uint32_t)dafl_draw_below(&s->dice, questions)
                : UINT32_MAX;
}

static dafl_err make_server(secure *s, dafl_model *model, dafl_why *why)
{
    dafl_server_params params = {.roster = &s->roster,
                                 .config = &s->config,
                                 .self = &s->server_id,
                                 .method = &timed_server,
                                 .method_self = s,
                                 .pool = s->pool};

    for (size_t i = 0; i < sizeof params.run.b; i++)
        params.run.b[i] = (uint8_t)dafl_draw_below(&s->dice, 256);
    DAFL_TRY(
        dafl_deep_server_new(&s->deep, model, &s->plan.participation, s->n));
    dafl_deep_server_allow_small(s->deep);
    return dafl_server_new(&s->server, &params, NULL, why);
}

static dafl_err make_holder(secure *s, dafl_why *why)
{
    dafl_holder_params params = {
        .roster = &s->roster,
        .config = &s->config,
        .self = &s->holder_id,
        .floor = {.any_cohort = s->config.policy.g == 1},
        .pool = s->pool};

    if (!s->plan.encrypt)
        return DAFL_OK;
    DAFL_TRY(dafl_holder_new(&s->holder, &params, NULL, why));
    DAFL_TRY(dafl_holder_start(s->holder));
    return empty_holder(s);
}

dafl_err secure_new(secure **out, dafl_model *model, dafl_pool *pool,
                    const dafl_data *train, const partition *p,
                    const secure_plan *plan, dafl_why *why)
{
    secure *s = calloc(1, sizeof *s);
    dafl_err err = DAFL_ERR_NOMEM;

    if (s == NULL)
        return DAFL_ERR_NOMEM;
    s->params = &model->params;
    s->pool = pool;
    s->train = train;
    s->part = p;
    s->plan = *plan;
    s->n = p->n_clients;
    s->clients = calloc(s->n, sizeof *s->clients);
    if (s->clients == NULL)
        goto out;
    for (size_t i = 0; i < s->n; i++)
        s->clients[i] = (client){
            .fed = s, .number = i, .connected = true, .phase = DROP_NOT};
    dafl_draw_init(&s->dice, &model->params.seed, DAFL_STREAM_SIMULATION,
                   0x20000);
    err = make_roster(s, why);
    if (err == DAFL_OK)
        err = make_config(s);
    if (err == DAFL_OK)
        err = shared_new(&s->projections, model);
    if (err == DAFL_OK)
        err = make_server(s, model, why);
    if (err == DAFL_OK)
        err = make_holder(s, why);
    if (err == DAFL_OK) {
        plan_leaving(s);
        for_all_clients(s, found_client);
        err = first_error(s, why);
    }
out:
    if (err == DAFL_OK)
        *out = s;
    else
        secure_free(&s);
    return err;
}

void secure_free(secure **secure_federation)
{
    secure *s = *secure_federation;

    if (s == NULL)
        return;
    for (size_t i = 0; s->clients != NULL && i < s->n; i++) {
        client *c = &s->clients[i];
        dafl_client_free(&c->machine);
        dafl_deep_client_free(&c->deep);
        dafl_identity_wipe(&c->id);
        letters_free(&c->in);
        letters_free(&c->out);
    }
    free(s->clients);
    letters_free(&s->to_holder);
    letters_free(&s->from_holder);
    dafl_holder_free(&s->holder);
    dafl_server_free(&s->server);
    dafl_deep_server_free(&s->deep);
    shared_free(&s->projections);
    dafl_writer_drop(&s->method_params);
    dafl_identity_wipe(&s->server_id);
    dafl_identity_wipe(&s->holder_id);
    free(s);
    *secure_federation = NULL;
}

dafl_server_stats secure_stats(const secure *s)
{
    return dafl_server_stat(s->server);
}

const dafl_trainer *secure_trainer(const secure *s)
{
    return dafl_deep_server_trainer(s->deep);
}

dafl_site *secure_site(const secure *s, size_t client_number)
{
    return dafl_deep_client_site(s->clients[client_number].deep);
}

const dafl_policy *secure_policy(const secure *s)
{
    return &s->config.policy;
}
