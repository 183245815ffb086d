/* SPDX-License-Identifier: Apache-2.0 */
#include "agents/guest.h"

#include "agents/cli.h"

/* Say HELLO again after so much silence: what was lost is asked for anew. */
enum { HELLO_MS = 5000 };
/* Wait so long for an invitation when the last run is over. */
enum { OVER_MS = 15000 };

typedef struct {
    const guest_machine *m;
    desk *desk;
    const char *endpoint;
    dafl_digest head; /* of the audit log, as the machine knows it */
    uint64_t heard;   /* when the server was, or we have asked */
    bool up, alone;   /* connected; it was said that we are not */
} visit;

dafl_err guest_refused(dafl_err err, dafl_fault fault, const dafl_why *reason,
                       dafl_why *why)
{
    if (err != DAFL_OK && fault != DAFL_FAULT_NONE)
        return dafl_fail(why, err, "%s: %s%s", dafl_fault_name(fault),
                         reason->text,
                         fault == DAFL_E_POLICY
                             ? "; ask for a stronger run, or if this one was "
                               "agreed on allow it: --allow-plaintext, "
                               "--allow-any-cohort or lower floors"
                             : "");
    if (err != DAFL_OK)
        *why = *reason;
    return err;
}

dafl_floor guest_floor(const role_options *o)
{
    return (dafl_floor){.least_m = (uint16_t)o->min_cohort,
                        .least_g = (uint16_t)o->min_cell,
                        .any_cohort = o->allow_any_cohort,
                        .plain = o->allow_plaintext};
}

static dafl_err recall(const guest_machine *m, desk *d, const char *state,
                       dafl_why *why)
{
    dafl_err err = store_each_record(d->store, m->recall, m->self);

    if (err == DAFL_OK)
        err = store_each_secret(d->store, m->recall_kept, m->self);
    if (err == DAFL_ERR_INPUT && why->text[0] == '\0')
        dafl_why_set(why,
                     "E_STATE_LOST: %s holds a journal that is not understood; "
                     "put the directory back as it was or start with an empty "
                     "one",
                     state);
    return err;
}

/* Carry out everything the machine wants; then it may know that the log is
 * written. */
static dafl_err work(visit *v, dafl_err err, dafl_why *why)
{
    dafl_effect e;

    while (err == DAFL_OK && v->m->next(v->m->self, &e))
        err = desk_do(v->desk, &e, why);
    if (err == DAFL_OK)
        err = desk_rest(v->desk, why);
    if (err == DAFL_OK && !dafl_digest_equal(&v->head, &v->desk->audit.head)) {
        v->head = v->desk->audit.head;
        v->m->log(v->m->self, &v->head);
    }
    return err;
}

/* Once: nobody else can tell whether the server will be back. One that knows
 * of the end does not wait for it. */
static void say_alone(visit *v)
{
    if (!v->up && !v->alone && !v->m->over(v->m->self))
        watch_say(&v->desk->watch, "lost",
                  "still no connection to %s; trying on. If the run is over, "
                  "or the server gone for good, stop this agent and keep its "
                  "state",
                  v->endpoint);
    v->alone = !v->up;
}

static dafl_err one_event(visit *v, dafl_why *why)
{
    watch *w = &v->desk->watch;
    uint64_t now = desk_now();
    link_event e;

    if (now >= v->heard + HELLO_MS) {
        v->heard = now;
        say_alone(v);
        return work(v, v->m->hello(v->m->self), why);
    }
    DAFL_TRY(link_next(v->desk->link, &e, (int)(v->heard + HELLO_MS - now)));
    switch (e.kind) {
    case LINK_MESSAGE:
        v->heard = desk_now();
        return work(v, v->m->receive(v->m->self, e.bytes), why);
    case LINK_UP:
        v->heard = desk_now();
        v->up = true;
        v->alone = false;
        watch_say(w, "connected", "connected to %s", v->endpoint);
        return work(v, v->m->hello(v->m->self), why);
    case LINK_LOST:
        v->up = false;
        watch_say(w, "lost", "no connection to %s: %s; trying on", v->endpoint,
                  link_reason_name(e.reason));
        break;
    case LINK_REFUSED:
        watch_say(w, "refused",
                  "E_AUTH: %s refuses us: %s; compare the "
                  "numbers of 'deepafl config check' with the server's",
                  v->endpoint, link_reason_name(e.reason));
        break;
    case LINK_NOTHING:
        break;
    }
    return DAFL_OK;
}

static dafl_err take_part(visit *v, dafl_why *why)
{
    const guest_machine *m = v->m;
    uint64_t until;

    v->heard = desk_now();
    until = v->heard + OVER_MS;
    if (m->over(m->self))
        watch_say(&v->desk->watch, "over",
                  "the run of this state is over; waiting %d s for an "
                  "invitation to another one",
                  OVER_MS / 1000);
    while (!desk_stopped() && !m->out(m->self) &&
           !(m->over(m->self) && desk_now() >= until))
        DAFL_TRY(one_event(v, why));
    return DAFL_OK;
}

dafl_err guest_run(const guest_machine *m, desk *d, const role_options *o,
                   dafl_why *why)
{
    visit v = {.m = m, .desk = d, .endpoint = o->endpoint};
    const dafl_roster *roster = &d->run->roster;
    link_caps caps = desk_caps(d);

    DAFL_TRY(recall(m, d, o->desk.state, why));
    DAFL_TRY(link_connect(&d->link, o->endpoint, d->self,
                          &roster->parties[roster->n_clients].id, &caps, why));
    desk_catch_signals(d);
    DAFL_TRY(work(&v, m->start(m->self), why));
    return take_part(&v, why);
}

int guest_verdict(const guest_machine *m, desk *d)
{
    dafl_fault fault = m->fault(m->self);

    if (!m->out(m->self) && (desk_stopped() || !m->over(m->self))) {
        watch_say(&d->watch, "stopped",
                  "stopped; start again with the same --state to go on");
        return EXIT_STOPPED;
    }
    link_leave(d->link);
    if (fault == DAFL_FAULT_NONE) {
        watch_say(&d->watch, "done", "the training is done");
        return 0;
    }
    watch_say(&d->watch, "out", "out of the run: %s (%s)",
              dafl_fault_name(fault), m->says(m->self));
    return fault == DAFL_E_STATE_LOST ? EXIT_STATE : EXIT_FAILED;
}
