/* SPDX-License-Identifier: Apache-2.0 */
/* A client: its data, its machine, and one server. */
#include "agents/guest.h"
#include "protocol/client.h"

GUEST_MACHINE(as_guest, dafl_client, recall_secret, DAFL_CLIENT_OUT)

typedef struct {
    const role_options *o;
    desk desk;
    dafl_pool *pool;
    dafl_data train, test;
    bool has_train, has_test;
    dafl_deep_client *deep;
    dafl_client *machine;
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
        .floor = guest_floor(o),
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
    return guest_refused(err, fault, &reason, why);
}

static dafl_err run(site *s, dafl_why *why)
{
    guest_machine m;

    DAFL_TRY(desk_open(&s->desk, &s->o->desk, DAFL_ROLE_CLIENT, why));
    DAFL_TRY(open_data(s, why));
    DAFL_TRY(dafl_pool_new(&s->pool, (unsigned)s->o->threads));
    DAFL_TRY(make_machine(s, why));
    m = as_guest(s->machine);
    return guest_run(&m, &s->desk, s->o, why);
}

int role_client(const role_options *o)
{
    site s = {.o = o};
    dafl_why why = {{0}};
    dafl_err err = run(&s, &why);
    guest_machine m = as_guest(s.machine);
    int code = err == DAFL_OK ? guest_verdict(&m, &s.desk)
                              : role_fail(&s.desk, err, &why);

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
