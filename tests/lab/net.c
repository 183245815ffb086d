/* SPDX-License-Identifier: Apache-2.0 */
/* The network between the server and everybody else: connections that break,
 * and on demand worse than any transport would do. */
#include "tests/lab/inside.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/context.h"

/* The end of a message's way that is not the server's. */
static lab_party *peer_of(const lab *l, uint16_t from, uint16_t to)
{
    return lab_party_of(l, from == l->scenario.k ? to : from);
}

/* Connections. */

void lab_net_break(lab *l, lab_party *peer)
{
    peer->up_at = LAB_NEVER;
    if (!peer->up)
        return;
    lab_say(l, "party %u is disconnected", (unsigned)peer->index);
    peer->up = false;
    peer->link++;
    peer->tell_lost_at = l->now + l->scenario.net.lost_after;
}

void lab_net_connect(lab *l, lab_party *peer)
{
    peer->up_at = LAB_NEVER;
    peer->tell_lost_at = LAB_NEVER; /* a transport would not mix them up */
    if (peer->up || !lab_party_alive(peer) || lab_the_server(l)->server == NULL)
        return;
    lab_say(l, "party %u connects", (unsigned)peer->index);
    peer->up = true;
    peer->link++;
    memset(peer->last_arrival, 0, sizeof peer->last_arrival);
    lab_party_hello(l, peer);
}

/* Messages. */

static void launch(lab *l, const lab_letter *m, uint64_t at)
{
    lab_flight *f = lab_list_add(&l->flights, sizeof *f);

    *f = (lab_flight){.at = at,
                      .order = l->order++,
                      .from = m->from,
                      .to = m->to,
                      .link = peer_of(l, m->from, m->to)->link,
                      .bytes = lab_copy((dafl_bytes){m->bytes, m->len}),
                      .len = m->len};
}

/* When it arrives: behind what went before it, unless it leaves the row. */
static uint64_t arrival(lab *l, const lab_letter *m)
{
    const lab_net *net = &l->scenario.net;
    uint64_t *last =
        &peer_of(l, m->from, m->to)->last_arrival[m->from == l->scenario.k];
    uint64_t at = l->now + lab_between(l, net->latency_min, net->latency_max);

    if (lab_chance(l, net->delay))
        at += lab_between(l, 0, net->delay_max);
    if (lab_chance(l, net->reorder))
        return at + lab_between(l, 0, net->delay_max);
    if (at < *last)
        at = *last;
    return *last = at;
}

static void fly(lab *l, lab_letter *m)
{
    const lab_net *net = &l->scenario.net;
    bool spared = net->spare_setup && m->envelope.type < DAFL_MSG_MODEL;

    if (spared) {
        launch(l, m, arrival(l, m));
        return;
    }
    if (lab_chance(l, net->drop))
        return;
    if (lab_chance(l, net->duplicate))
        launch(l, m, l->now + lab_between(l, 0, net->delay_max));
    if (lab_chance(l, net->truncate) && m->len > 0)
        m->len = (size_t)lab_between(l, 0, m->len - 1);
    if (lab_chance(l, net->flip) && m->len > 0)
        m->bytes[lab_between(l, 0, m->len - 1)] ^=
            (uint8_t)(1u << lab_between(l, 0, 7));
    launch(l, m, arrival(l, m));
}

static void send_one(lab *l, uint16_t from, uint16_t to, dafl_bytes bytes)
{
    lab_letter m = {.from = from, .to = to};

    if (!peer_of(l, from, to)->up)
        return;
    m.len = bytes.len;
    m.bytes = lab_copy(bytes);
    if (dafl_get_envelope(&m.envelope, (dafl_bytes){m.bytes, m.len},
                          UINT64_MAX) == DAFL_FAULT_NONE &&
        (l->scenario.intercept == NULL ||
         l->scenario.intercept(l, &m, l->scenario.ctx)))
        fly(l, &m);
    free(m.bytes);
}

void lab_net_send(lab *l, lab_party *from, const dafl_effect *effect)
{
    uint16_t server = l->scenario.k;
    dafl_envelope m;

    if (dafl_get_envelope(&m, effect->bytes, UINT64_MAX) != DAFL_FAULT_NONE ||
        m.sender != from->index) {
        lab_broken(l, "party %u sends what is no envelope of its own",
                   (unsigned)from->index);
        return;
    }
    if (m.seq <= from->last_seq)
        lab_broken(l, "party %u sends number %llx after %llx",
                   (unsigned)from->index, (unsigned long long)m.seq,
                   (unsigned long long)from->last_seq);
    from->last_seq = m.seq;
    lab_witness_disk(l, from, &m);
    if (from->index != server) {
        lab_witness_message(l, LAB_SENT, from->index, server, effect->bytes);
        if (!lab_leave_now(l, from, LAB_HOW_SENT, &m))
            send_one(l, from->index, server, effect->bytes);
        return;
    }
    if (m.type == DAFL_MSG_MODEL) {
        dafl_model_msg model;
        if (dafl_get_model(&model, m.body) != DAFL_OK)
            lab_broken(l, "the server sends a malformed MODEL");
        else
            lab_slot_opens(l, m.slot, model.query);
    }
    lab_leave_over(l, &m);
    for (uint16_t u = 0; u < l->n; u++)
        if (u < server ? dafl_members_has(&effect->to, u)
                       : u > server && effect->to_holder) {
            lab_witness_message(l, LAB_SENT, server, u, effect->bytes);
            send_one(l, server, u, effect->bytes);
        }
}

lab_flight *lab_net_next(lab *l)
{
    lab_flight *f = l->flights.items, *next = NULL;

    for (size_t i = 0; i < l->flights.n; i++)
        if (next == NULL || f[i].at < next->at ||
            (f[i].at == next->at && f[i].order < next->order))
            next = &f[i];
    return next;
}

/* The envelope as the receiver finds it; false when it is none. */
static bool decode(dafl_envelope *m, const lab_flight *f)
{
    return dafl_get_envelope(m, (dafl_bytes){f->bytes, f->len}, UINT64_MAX) ==
           DAFL_FAULT_NONE;
}

static void arrive(lab *l, const lab_flight *f)
{
    lab_party *peer = peer_of(l, f->from, f->to), *server = lab_the_server(l);
    dafl_bytes bytes = {f->bytes, f->len};
    dafl_envelope m = {0};
    bool whole = decode(&m, f);

    if (!peer->up || peer->link != f->link || server->server == NULL)
        return;
    if (f->to == server->index) {
        lab_witness_message(l, LAB_DELIVERED, f->from, f->to, bytes);
        /* Before the server answers: the answer is not to reach it. */
        if (whole && m.sender == peer->index)
            (void)lab_leave_now(l, peer, LAB_HOW_ARRIVED, &m);
        lab_party_work(
            l, server,
            dafl_server_receive(server->server, bytes, lab_server_time(l)));
        return;
    }
    if (whole && lab_leave_now(l, peer, LAB_HOW_ARRIVING, &m))
        return;
    lab_witness_message(l, LAB_DELIVERED, f->from, f->to, bytes);
    peer->heard_at = l->now;
    lab_party_work(l, peer,
                   peer->client != NULL
                       ? dafl_client_receive(peer->client, bytes)
                       : dafl_holder_receive(peer->holder, bytes));
}

void lab_net_deliver(lab *l, lab_flight *flight)
{
    lab_flight f = *flight;

    *flight = ((lab_flight *)l->flights.items)[--l->flights.n];
    arrive(l, &f);
    free(f.bytes);
}

void lab_stall(lab *l, uint16_t peer, uint64_t time)
{
    lab_party *p = lab_party_of(l, peer);

    for (size_t i = 0; i < 2; i++)
        if (p->last_arrival[i] < l->now + time)
            p->last_arrival[i] = l->now + time;
}

/* The attacker's tools. */

void lab_post(lab *l, uint16_t from, uint16_t to, dafl_bytes message,
              uint64_t after)
{
    lab_letter m = {.from = from, .to = to, .len = message.len};

    if ((from == l->scenario.k) == (to == l->scenario.k))
        lab_die("lab_post: from %u to %u", (unsigned)from, (unsigned)to);
    m.bytes = lab_copy(message);
    launch(l, &m, l->now + after);
    free(m.bytes);
}

void lab_seal(lab *l, dafl_writer *out, uint16_t from, dafl_msg_type type,
              uint32_t slot, uint64_t seq, dafl_bytes body)
{
    const lab_party *p = lab_party_of(l, from);

    dafl_put_envelope(out,
                      &(dafl_envelope){.type = (uint8_t)type,
                                       .run = l->run,
                                       .slot = slot,
                                       .sender = from,
                                       .seq = seq != 0 ? seq : p->last_seq,
                                       .body = body},
                      &p->id);
    if (dafl_writer_done(out) != DAFL_OK)
        lab_die("no memory");
}

void lab_sign_end(const lab *l, uint16_t client, const dafl_digest *ctx2,
                  dafl_end_msg *end)
{
    dafl_digest said;

    dafl_context_end(&said, ctx2, client, &end->dig);
    dafl_sign(&end->sig, &said, lab_identity(l, client));
}

void lab_letter_set(lab_letter *letter, dafl_bytes message)
{
    uint8_t *bytes = lab_copy(message);

    free(letter->bytes);
    letter->bytes = bytes;
    letter->len = message.len;
    letter->envelope = (dafl_envelope){0};
    (void)dafl_get_envelope(&letter->envelope,
                            (dafl_bytes){letter->bytes, letter->len},
                            UINT64_MAX);
}

void lab_letter_reseal(lab *l, lab_letter *letter, dafl_bytes body)
{
    dafl_envelope m = letter->envelope;
    dafl_writer w = {0};

    m.body = body;
    dafl_put_envelope(&w, &m, &lab_party_of(l, letter->from)->id);
    if (dafl_writer_done(&w) != DAFL_OK)
        lab_die("no memory");
    lab_letter_set(letter, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
}
