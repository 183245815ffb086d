/* SPDX-License-Identifier: Apache-2.0 */
/* Trouble on demand, and a look at everybody. */
#include "tests/lab/inside.h"

#include <stdio.h>

/* ---- trouble ---- */

void lab_disconnect(lab *l, uint16_t peer)
{
    lab_party *p = lab_party_of(l, peer);

    lab_net_break(l, p);
    p->kept_away = true;
}

void lab_reconnect(lab *l, uint16_t peer)
{
    lab_party *p = lab_party_of(l, peer);

    p->kept_away = false;
    p->away_slot = 0;
    if (!p->up)
        p->up_at = l->now;
}

void lab_crash_after(lab *l, uint16_t party, uint64_t n)
{
    if (n <= lab_party_of(l, party)->effects)
        lab_die("party %u has done effect %llu", (unsigned)party,
                (unsigned long long)n);
    lab_party_of(l, party)->crash_at = n;
}

void lab_crash(lab *l, uint16_t party, uint64_t restart_after)
{
    lab_party_crash(l, lab_party_of(l, party),
                    restart_after == LAB_NEVER ? LAB_NEVER
                                               : l->now + restart_after);
}

void lab_restart(lab *l, uint16_t party)
{
    lab_party *p = lab_party_of(l, party);

    if (lab_party_alive(p))
        lab_die("party %u is alive", (unsigned)party);
    p->restart_at = l->now;
}

uint64_t lab_effects(const lab *l, uint16_t party)
{
    return lab_party_of(l, party)->effects;
}

void lab_refuse(lab *l, uint16_t client, uint32_t question, dafl_fault fault)
{
    lab_refusal *r = lab_list_add(&l->refusals, sizeof *r);

    *r = (lab_refusal){client, question, fault};
}

/* ---- looking ---- */

lab_party *lab_party_of(const lab *l, uint16_t index)
{
    if (index >= l->n)
        lab_die("there is no party %u", (unsigned)index);
    return &l->parties[index];
}

lab_party *lab_the_server(const lab *l)
{
    return &l->parties[l->scenario.k];
}

uint64_t lab_now(const lab *l)
{
    return l->now;
}

const lab_scenario *lab_scenario_of(const lab *l)
{
    return &l->scenario;
}

uint16_t lab_server_index(const lab *l)
{
    return l->scenario.k;
}

uint16_t lab_holder_index(const lab *l)
{
    return (uint16_t)(l->scenario.k + 1);
}

const dafl_roster *lab_roster(const lab *l)
{
    return &l->roster;
}

dafl_members lab_everybody(const lab *l)
{
    return dafl_roster_clients(&l->roster);
}

dafl_members lab_members(const lab *l, uint64_t bits)
{
    dafl_members m = dafl_members_none(l->scenario.k);

    for (uint16_t u = 0; u < l->scenario.k && u < 64; u++)
        if (bits >> u & 1)
            dafl_members_add(&m, u);
    return m;
}

const dafl_config *lab_config(const lab *l)
{
    return &l->scenario.config;
}

dafl_run_id lab_run_id(const lab *l)
{
    return l->run;
}

const dafl_secret_identity *lab_identity(const lab *l, uint16_t party)
{
    return &lab_party_of(l, party)->id;
}

dafl_client *lab_client(const lab *l, uint16_t client)
{
    return lab_party_of(l, client)->client;
}

dafl_server *lab_server(const lab *l)
{
    return lab_the_server(l)->server;
}

dafl_holder *lab_holder(const lab *l)
{
    return lab_party_of(l, lab_holder_index(l))->holder;
}

dafl_fault lab_refused(const lab *l, uint16_t party)
{
    return lab_party_of(l, party)->refused;
}

bool lab_connected(const lab *l, uint16_t peer)
{
    return lab_party_of(l, peer)->up;
}

void lab_slot_opens(lab *l, uint32_t slot, uint32_t question)
{
    while (l->questions.n <= slot)
        *(uint32_t *)lab_list_add(&l->questions, sizeof question) = UINT32_MAX;
    ((uint32_t *)l->questions.items)[slot] = question;
}

uint32_t lab_slot_question(const lab *l, uint32_t slot)
{
    return slot < l->questions.n ? ((uint32_t *)l->questions.items)[slot]
                                 : UINT32_MAX;
}

static void dump_peer(const lab_party *p)
{
    const char *state = "down";
    dafl_fault fault = p->refused;

    if (p->client != NULL) {
        state = dafl_client_state_name(dafl_client_where(p->client));
        fault = dafl_client_fault(p->client);
    } else if (p->holder != NULL) {
        state = dafl_holder_state_name(dafl_holder_where(p->holder));
        fault = dafl_holder_fault(p->holder);
    }
    (void)fprintf(stderr, "  %s: %s, %s, %s, %llu effects, %zu records\n",
                  p->id.public.name, state, p->up ? "connected" : "away",
                  dafl_fault_name(fault), (unsigned long long)p->effects,
                  p->disk.journal.n);
}

void lab_dump(const lab *l)
{
    static const char *const outcomes[] = {"running", "done", "failed", "hung"};
    const dafl_server *server = lab_the_server(l)->server;
    const lab_event *events = l->events.items;

    (void)fprintf(stderr,
                  "lab with seed %llu: %s at %llu ms after %llu steps, %zu "
                  "messages in flight\n",
                  (unsigned long long)l->scenario.seed, outcomes[l->outcome],
                  (unsigned long long)l->now, (unsigned long long)l->steps,
                  l->flights.n);
    if (server == NULL)
        (void)fprintf(stderr, "  server: down\n");
    else
        (void)fprintf(stderr, "  server: %s, slot %u, %s, deadline %llu\n",
                      dafl_server_state_name(dafl_server_where(server)),
                      (unsigned)dafl_server_slot(server),
                      dafl_fault_name(dafl_server_fault(server)),
                      (unsigned long long)dafl_server_deadline(server));
    for (uint16_t u = 0; u < l->n; u++)
        if (u != l->scenario.k)
            dump_peer(&l->parties[u]);
    for (size_t i = l->events.n > 24 ? l->events.n - 24 : 0; i < l->events.n;
         i++)
        (void)fprintf(
            stderr, "  %8llu party %u: %s, slot %u, peer %u, %s\n",
            (unsigned long long)events[i].time, (unsigned)events[i].party,
            dafl_event_name(events[i].event.kind),
            (unsigned)events[i].event.slot, (unsigned)events[i].event.peer,
            dafl_fault_name(events[i].event.fault));
}
