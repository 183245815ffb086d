/* SPDX-License-Identifier: Apache-2.0 */
/* The clock: what happens next, and when. */
#include "tests/lab/inside.h"

static bool over(const lab *l)
{
    const dafl_server *server = lab_the_server(l)->server;

    return server != NULL && (dafl_server_where(server) == DAFL_SERVER_DONE ||
                              dafl_server_where(server) == DAFL_SERVER_FAILED);
}

uint64_t lab_server_time(const lab *l)
{
    return l->now + l->ahead;
}

void lab_clock_jump(lab *l, int64_t by)
{
    l->ahead += (uint64_t)by;
    lab_say(l, "the server's clock jumps by %lld", (long long)by);
}

uint64_t lab_deadline(const lab *l)
{
    const dafl_server *server = lab_the_server(l)->server;
    uint64_t deadline =
        server == NULL ? LAB_NEVER : dafl_server_deadline(server);

    if (deadline == UINT64_MAX)
        return LAB_NEVER;
    return deadline <= lab_server_time(l) ? l->now : deadline - l->ahead;
}

/* When the party next speaks unasked. */
static uint64_t hello_at(const lab *l, const lab_party *p)
{
    if (!p->up || !lab_party_alive(p) || lab_party_is_out(p))
        return LAB_NEVER;
    return p->heard_at + l->scenario.hello_after;
}

typedef enum { RESTART, CONNECT, LOST, HELLO, DELIVER, DEADLINE } happening;

typedef struct {
    uint64_t at;
    happening what;
    lab_party *who;
} due;

static void sooner(due *best, uint64_t at, happening what, lab_party *who)
{
    if (at < best->at)
        *best = (due){at, what, who};
}

/* What comes next; .at is LAB_NEVER for nothing. Once the run is over only what
 * is under way still happens. */
static due next_due(lab *l, const lab_flight *flight)
{
    lab_party *server = lab_the_server(l);
    bool running = !over(l);
    due best = {.at = LAB_NEVER};

    for (uint16_t i = 0; i < l->n; i++) {
        lab_party *p = &l->parties[i];
        sooner(&best, p->restart_at, RESTART, p);
        sooner(&best, p->up_at, CONNECT, p);
        sooner(&best, p->tell_lost_at, LOST, p);
        if (running)
            sooner(&best, hello_at(l, p), HELLO, p);
    }
    if (flight != NULL)
        sooner(&best, flight->at, DELIVER, NULL);
    if (running && server->server != NULL)
        sooner(&best, lab_deadline(l), DEADLINE, server);
    return best;
}

/* A machine is there again: so is its connection, a little later; with the
 * server those of all others. */
static void reconnect_later(lab *l, const lab_party *booted)
{
    for (uint16_t u = 0; u < l->n; u++) {
        lab_party *p = &l->parties[u];
        if ((booted == p || booted->index == l->scenario.k) && !p->kept_away &&
            p->server == NULL && lab_party_alive(p) && !p->up)
            p->up_at = l->now + lab_between(l, 1, 50);
    }
}

static void happen(lab *l, const due *d, lab_flight *flight)
{
    lab_party *server = lab_the_server(l), *p = d->who;

    switch (d->what) {
    case RESTART:
        lab_party_boot(l, p);
        reconnect_later(l, p);
        break;
    case CONNECT:
        lab_net_connect(l, p);
        break;
    case LOST:
        p->tell_lost_at = LAB_NEVER;
        if (server->server == NULL)
            break;
        lab_say(l, "the server loses party %u", (unsigned)p->index);
        lab_party_work(
            l, server,
            dafl_server_lost(server->server, p->index, lab_server_time(l)));
        break;
    case HELLO:
        lab_party_hello(l, p);
        break;
    case DELIVER:
        lab_net_deliver(l, flight);
        break;
    case DEADLINE:
        lab_say(l, "the server's deadline in %s",
                dafl_server_state_name(dafl_server_where(server->server)));
        lab_party_work(l, server,
                       dafl_server_tick(server->server, lab_server_time(l)));
        break;
    }
}

bool lab_step(lab *l)
{
    lab_flight *flight = lab_net_next(l);
    due d = next_due(l, flight);
    const dafl_server *server = lab_the_server(l)->server;

    if (l->outcome != LAB_RUNNING)
        return false;
    if (d.at == LAB_NEVER && over(l)) {
        l->outcome = dafl_server_where(server) == DAFL_SERVER_DONE ? LAB_DONE
                                                                   : LAB_FAILED;
        return false;
    }
    if (d.at == LAB_NEVER || l->steps++ == l->scenario.steps_max) {
        l->outcome = LAB_HUNG;
        return false;
    }
    if (d.at > l->now)
        l->now = d.at;
    happen(l, &d, flight);
    return true;
}

lab_outcome lab_run(lab *l)
{
    while (lab_step(l))
        ;
    if (l->outcome == LAB_HUNG)
        lab_dump(l);
    return l->outcome;
}

bool lab_run_to(lab *l, dafl_msg_type type, uint32_t question)
{
    size_t at = l->seen.n;

    do {
        const lab_seen *m;
        while ((m = lab_find(l, &at, LAB_SENT, l->scenario.k, LAB_ANYBODY, type,
                             UINT32_MAX)) != NULL)
            if (lab_slot_question(l, m->slot) == question)
                return true;
    } while (lab_step(l));
    return false;
}

lab_outcome lab_outcome_of(const lab *l)
{
    return l->outcome;
}
