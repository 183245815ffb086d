/* SPDX-License-Identifier: Apache-2.0 */
/* The key holder: its machine and one server. */
#include "agents/guest.h"
#include "protocol/holder.h"

GUEST_MACHINE(as_guest, dafl_holder, recall_answer, DAFL_HOLDER_OUT)

typedef struct {
    desk desk;
    dafl_pool *pool;
    dafl_holder *machine;
} keeper;

static dafl_err make_machine(keeper *k, const role_options *o, dafl_why *why)
{
    dafl_holder_params params = {.roster = &k->desk.run->roster,
                                 .config = &k->desk.run->config,
                                 .self = k->desk.self,
                                 .floor = guest_floor(o),
                                 .pool = k->pool};
    dafl_fault fault = DAFL_FAULT_NONE;
    dafl_why reason = {{0}};
    dafl_err err = dafl_holder_new(&k->machine, &params, &fault, &reason);

    return guest_refused(err, fault, &reason, why);
}

static dafl_err run(keeper *k, const role_options *o, dafl_why *why)
{
    guest_machine m;

    DAFL_TRY(desk_open(&k->desk, &o->desk, DAFL_ROLE_KEYHOLDER, why));
    DAFL_TRY(dafl_pool_new(&k->pool, (unsigned)o->threads));
    DAFL_TRY(make_machine(k, o, why));
    m = as_guest(k->machine);
    return guest_run(&m, &k->desk, o, why);
}

int role_keyholder(const role_options *o)
{
    keeper k = {.machine = NULL};
    dafl_why why = {{0}};
    dafl_err err = run(&k, o, &why);
    guest_machine m = as_guest(k.machine);
    int code = err == DAFL_OK ? guest_verdict(&m, &k.desk)
                              : role_fail(&k.desk, err, &why);

    dafl_holder_free(&k.machine);
    dafl_pool_free(&k.pool);
    desk_close(&k.desk);
    return code;
}
