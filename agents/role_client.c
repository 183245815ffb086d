/* SPDX-License-Identifier: Apache-2.0 */
/* A client: its data, its machine, and one server. */
#include <stdio.h>
#include <string.h>

#include "agents/cli.h"
#include "agents/role.h"
#include "protocol/client.h"

/* Say HELLO again after so much silence: what was lost is asked for anew. */
enum { HELLO_MS = 5000 };
/* Wait so long for an invitation when the last run is over. */
enum { OVER_MS = 15000 };

typedef struct {
    const role_options *o;
    desk desk;
    dafl_pool *pool;
    dafl_data train, test;
    bool has_train, has_test;
    dafl_deep_client *deep;
    dafl_client *machine;
    dafl_digest head; /* of the audit log, as the machine knows it */
    bool up, alone;   /* connected; it was said that we are not */
} site;

/* ---- data ---- */

static dafl_err open_data(site *s, dafl_why *why)
{
    const role_options *o = s->o;
    size_t classes = s->desk.run->params.classes;

    DAFL_TRY(dafl_data_open(&s->train, o->features, o->labels, classes, why));
    s->has_train = true;
    if (o->test_features == NULL)
        return DAFL_OK;
    DAFL_TRY(dafl_data_open(&s->test, o->test_features, o->test_labels, classes,
                            why));
    s->has_test = true;
    return DAFL_OK;
}

static dafl_err found(void *ctx, const dafl_params *p,
                      const dafl_projection *first, dafl_site **site_out,
                      dafl_site **held, dafl_digest *rows, dafl_why *why)
{
    site *s = ctx;

    DAFL_TRY(dafl_deep_digest(rows, &s->train, NULL, s->train.n));
    DAFL_TRY(dafl_site_new(site_out, p, s->pool, &s->train, NULL, s->train.n,
                           first, why));
    *held = NULL;
    if (!s->has_test)
        return DAFL_OK;
    return dafl_site_new(held, p, s->pool, &s->test, NULL, s->test.n, first,
                         why);
}

/* ---- the machine ---- */

static dafl_err make_machine(site *s, dafl_why *why)
{
    const runfile *run = s->desk.run;
    const role_options *o = s->o;
    dafl_client_params params = {
        .roster = &run->roster,
        .config = &run->config,
        .self = s->desk.self,
        .floor = {.least_m = (uint16_t)o->min_cohort,
                  .least_g = (uint16_t)o->min_cell,
                  .any_cohort = o->allow_any_cohort,
                  .plain = o->allow_plaintext},
        .method = &dafl_deep_client_method,
        .pool = s->pool,
    };
    dafl_fault fault = DAFL_FAULT_NONE;
    dafl_why reason = {{0}};
    dafl_err err;

    DAFL_TRY(dafl_deep_client_new(&s->deep, &run->params, found, NULL, s, why));
    dafl_deep_client_allow(s->deep, o->allow_small, false);
    params.method_self = s->deep;
    err = dafl_client_new(&s->machine, &params, &fault, &reason);
    if (err != DAFL_OK && fault != DAFL_FAULT_NONE)
        return dafl_fail(why, err, "%s: %s%s", dafl_fault_name(fault),
                         reason.text,
                         fault == DAFL_E_POLICY
                             ? "; ask for a stronger run, or allow this one if "
                               "that was agreed"
                             : "");
    if (err != DAFL_OK)
        *why = reason;
    return err;
}

static dafl_err recall_record(void *ctx, dafl_bytes record)
{
    return dafl_client_recall(((site *)ctx)->machine, record);
}

static dafl_err recall_secret(void *ctx, uint32_t slot, dafl_bytes record)
{
    return dafl_client_recall_secret(((site *)ctx)->machine, slot, record);
}

static dafl_err recall(site *s, dafl_why *why)
{
    dafl_err err = store_each_record(s->desk.store, recall_record, s);

    if (err == DAFL_OK)
        err = store_each_secret(s->desk.store, recall_secret, s);
    if (err == DAFL_ERR_INPUT && why->text[0] == '\0')
        dafl_why_set(why,
                     "E_STATE_LOST: %s holds a journal that is not understood; "
                     "put the directory back as it was or start with an empty "
                     "one",
                     s->o->desk.state);
    return err;
}

/* Carry out everything the machine wants; then it may know that the log is
 * written. */
static dafl_err work(site *s, dafl_err err, dafl_why *why)
{
    dafl_effect e;

    while (err == DAFL_OK && dafl_client_next(s->machine, &e))
        err = desk_do(&s->desk, &e, why);
    if (err == DAFL_OK)
        err = desk_rest(&s->desk, why);
    if (err == DAFL_OK && !dafl_digest_equal(&s->head, &s->desk.audit.head)) {
        s->head = s->desk.audit.head;
        dafl_client_log(s->machine, &s->head);
    }
    return err;
}

/* ---- the loop ---- */

/* Once: nobody else can tell whether the server will be back. */
static void say_alone(site *s)
{
    if (!s->up && !s->alone)
        watch_say(&s->desk.watch, "lost",
                  "still no connection to %s; trying on. If the run is over, "
                  "or the server gone for good, stop this client and keep "
                  "its state",
                  s->o->endpoint);
    s->alone = !s->up;
}

static dafl_err one_event(site *s, uint64_t *heard, dafl_why *why)
{
    uint64_t now = desk_now();
    link_event e;

    if (now >= *heard + HELLO_MS) {
        *heard = now;
        say_alone(s);
        return work(s, dafl_client_hello(s->machine), why);
    }
    DAFL_TRY(link_next(s->desk.link, &e, (int)(*heard + HELLO_MS - now)));
    switch (e.kind) {
    case LINK_MESSAGE:
        *heard = desk_now();
        return work(s, dafl_client_receive(s->machine, e.bytes), why);
    case LINK_UP:
        *heard = desk_now();
        s->up = true;
        s->alone = false;
        watch_say(&s->desk.watch, "connected", "connected to %s",
                  s->o->endpoint);
        return work(s, dafl_client_hello(s->machine), why);
    case LINK_LOST:
        s->up = false;
        watch_say(&s->desk.watch, "lost", "no connection to %s: %s; trying on",
                  s->o->endpoint, link_reason_name(e.reason));
        return DAFL_OK;
    case LINK_REFUSED:
        watch_say(&s->desk.watch, "refused", "E_AUTH: %s refuses us: %s",
                  s->o->endpoint, link_reason_name(e.reason));
        break;
    case LINK_NOTHING:
        break;
    }
    return DAFL_OK;
}

static dafl_err take_part(site *s, dafl_why *why)
{
    uint64_t heard = desk_now(), until = heard + OVER_MS;
    dafl_err err = DAFL_OK;

    if (dafl_client_over(s->machine))
        watch_say(&s->desk.watch, "over",
                  "the run of this state is over; waiting %d s for an "
                  "invitation to another one",
                  OVER_MS / 1000);
    while (err == DAFL_OK && !desk_stopped() &&
           dafl_client_where(s->machine) != DAFL_CLIENT_OUT &&
           !(dafl_client_over(s->machine) && desk_now() >= until))
        err = one_event(s, &heard, why);
    return err;
}

static dafl_err run(site *s, dafl_why *why)
{
    const runfile *r;
    link_caps caps;

    DAFL_TRY(desk_open(&s->desk, &s->o->desk, DAFL_ROLE_CLIENT, why));
    r = s->desk.run;
    DAFL_TRY(open_data(s, why));
    DAFL_TRY(dafl_pool_new(&s->pool, (unsigned)s->o->threads));
    DAFL_TRY(make_machine(s, why));
    DAFL_TRY(recall(s, why));
    caps = desk_caps(&s->desk);
    DAFL_TRY(link_connect(&s->desk.link, s->o->endpoint, s->desk.self,
                          &r->roster.parties[r->roster.n_clients].id, &caps,
                          why));
    desk_catch_signals(&s->desk);
    DAFL_TRY(work(s, dafl_client_start(s->machine), why));
    return take_part(s, why);
}

/* How the run ended for this client. */
static int verdict(site *s)
{
    dafl_fault fault = dafl_client_fault(s->machine);

    if (dafl_client_where(s->machine) != DAFL_CLIENT_OUT &&
        (desk_stopped() || !dafl_client_over(s->machine))) {
        watch_say(&s->desk.watch, "stopped",
                  "stopped; start again with the same --state to go on");
        return EXIT_STOPPED;
    }
    if (fault == DAFL_FAULT_NONE) {
        watch_say(&s->desk.watch, "done", "the training is done");
        return 0;
    }
    watch_say(&s->desk.watch, "out", "out of the run: %s (%s)",
              dafl_fault_name(fault), dafl_client_says(s->machine));
    return fault == DAFL_E_STATE_LOST ? EXIT_STATE : EXIT_FAILED;
}

int role_client(const role_options *o)
{
    site s = {.o = o};
    dafl_why why = {{0}};
    dafl_err err = run(&s, &why);
    int code = err == DAFL_OK ? verdict(&s) : role_fail(&s.desk, err, &why);

    dafl_client_free(&s.machine);
    dafl_deep_client_free(&s.deep);
    if (s.has_train)
        dafl_data_close(&s.train);
    if (s.has_test)
        dafl_data_close(&s.test);
    dafl_pool_free(&s.pool);
    desk_close(&s.desk);
    return code;
}
