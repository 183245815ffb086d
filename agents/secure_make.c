/* SPDX-License-Identifier: Apache-2.0 */
/* Making a federation of agents/secure.h: its parties, its run, its methods
 * with a stopwatch. */
#include <stdlib.h>
#include <string.h>

#include "agents/cli.h"
#include "agents/secure_state.h"
#include "lib/secret.h"

/* The method's functions with a stopwatch: what they take is computing, the
 * rest of a client's time is masking. */
static dafl_fault timed_follow(void *self, const dafl_segment *segment)
{
    secure_client *c = self;
    double start = cli_now();
    dafl_fault fault = dafl_deep_client_method.follow(c->deep, segment);

    c->compute_s += cli_now() - start;
    return fault;
}

static dafl_fault timed_answer(void *self, const dafl_question *q, int64_t *x,
                               size_t len)
{
    secure_client *c = self;
    double start = cli_now();
    dafl_fault fault = dafl_deep_client_method.answer(c->deep, q, x, len);

    c->compute_s += cli_now() - start;
    return fault;
}

static dafl_fault plain_shape(void *self, const dafl_question *q,
                              dafl_shape *out)
{
    secure_client *c = self;

    return dafl_deep_client_method.shape(c->deep, q, out);
}

static dafl_fault plain_rewind(void *self)
{
    secure_client *c = self;

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
    secure_client *c = ctx;
    const secure *s = c->fed;
    size_t from = s->part->first[c->number];

    *held = NULL;
    *rows = (dafl_digest){0}; /* nobody restarts with other rows */
    return dafl_site_new(site, p, s->pool, s->train, s->part->rows + from,
                         s->part->first[c->number + 1] - from, first, why);
}

static dafl_err project(void *ctx, size_t k, const dafl_projection **out)
{
    secure_client *c = ctx;

    DAFL_TRY(shared_take(c->fed->projections, k, &c->lent));
    *out = c->lent;
    return DAFL_OK;
}

static void found_client(void *ctx, unsigned worker, size_t i)
{
    secure *s = ctx;
    secure_client *c = &s->clients[i];
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
    if (c->err == DAFL_OK) {
        dafl_deep_client_allow(c->deep, true, true); /* nobody looks */
        dafl_deep_client_forget(c->deep);
    }
    if (c->err == DAFL_OK)
        c->err = dafl_client_new(&c->machine, &params, NULL, &c->why);
    if (c->err == DAFL_OK)
        c->err = dafl_client_start(c->machine);
    if (c->err == DAFL_OK)
        secure_empty_client(c);
}

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
        secure_client *c = &s->clients[order[i]];
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

static dafl_err make_config(secure *s, dafl_why *why)
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
    if (dafl_config_upload_bytes(&s->config, dafl_deep_longest(s->params)) ==
        SIZE_MAX)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "an answer would have %llu numbers, more than an "
                         "upload has room for; lower --width, --hidden or "
                         "--classes",
                         (unsigned long long)dafl_deep_longest(s->params));
    return dafl_writer_done(&s->method_params);
}

/* Who leaves for good, and when. */
static void plan_leaving(secure *s)
{
    uint32_t questions = dafl_deep_questions(s->params);

    for (size_t i = 0; i < s->n; i++)
        s->clients[i].leaves =
            secure_by_chance(s, s->plan.drop_for_good)
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
    return secure_empty_holder(s);
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
        s->clients[i] = (secure_client){
            .fed = s, .number = i, .connected = true, .phase = DROP_NOT};
    dafl_draw_init(&s->dice, &model->params.seed, DAFL_STREAM_SIMULATION,
                   0x20000);
    err = make_roster(s, why);
    if (err == DAFL_OK)
        err = make_config(s, why);
    if (err == DAFL_OK)
        err = shared_new(&s->projections, model);
    if (err == DAFL_OK)
        err = make_server(s, model, why);
    if (err == DAFL_OK)
        err = make_holder(s, why);
    if (err == DAFL_OK) {
        plan_leaving(s);
        secure_for_all(s, found_client);
        err = secure_first_error(s, why);
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
        secure_client *c = &s->clients[i];
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
