/* SPDX-License-Identifier: Apache-2.0 */
/* The server before the first slot: it passes keys and sealed packets on and
 * learns who can be summed. */
#include <stdlib.h>
#include <string.h>

#include "crypto/packet.h"
#include "protocol/server_state.h"

static size_t packet_bytes(const dafl_server *s)
{
    return (size_t)s->node.config->slots * 64 + DAFL_PACKET_OVERHEAD;
}

void dafl_server_drop_shares(dafl_server *s)
{
    for (size_t u = 0; u < s->node.roster->n_clients; u++)
        dafl_writer_drop(&s->seats[u].shares);
}

static void put_invite(const dafl_server *s, dafl_writer *w)
{
    dafl_put_invite(w, &(dafl_invite){.enrolment = s->enrolment,
                                      .roster = s->node.roster_hash,
                                      .config = s->node.config_hash});
}

void dafl_server_send_invite(dafl_server *s, const dafl_members *to)
{
    dafl_writer w = {0};

    put_invite(s, &w);
    dafl_node_send(&s->node, DAFL_MSG_INVITE, 0, to, &w);
}

void dafl_server_invite(dafl_server *s)
{
    dafl_members all = dafl_roster_clients(s->node.roster);
    dafl_writer w = {0};

    s->stands = s->holder_acked = false;
    s->awaited = 0;
    s->enrolled = s->dealt = s->u0 = s->u1 = s->acked = s->usable =
        dafl_members_none(s->node.roster->n_clients);
    dafl_server_drop_shares(s);
    s->stats.enrolments++;
    dafl_node_recap(&s->node, s->slot);
    dafl_put_u8(&w, DAFL_RECORD_INVITED);
    dafl_put_fixed(&w, s->node.run.b, sizeof s->node.run.b);
    dafl_put_u32(&w, s->enrolment);
    dafl_put_fixed(&w, s->node.roster_hash.b, sizeof s->node.roster_hash.b);
    dafl_put_fixed(&w, s->node.config_hash.b, sizeof s->node.config_hash.b);
    dafl_node_append(&s->node, &w);
    dafl_node_tell(&s->node,
                   &(dafl_event){.kind = DAFL_EVENT_INVITE,
                                 .number = s->enrolment,
                                 .peer = DAFL_NOBODY},
                   NULL);
    dafl_server_send_invite(s, &all);
    dafl_server_enter(s, DAFL_SERVER_ENROLLING, DAFL_WAIT_SETUP);
}

/* This enrolment came to nothing; count it and begin another. */
void dafl_server_invite_again(dafl_server *s, dafl_fault fault)
{
    dafl_node_error(&s->node, 0, DAFL_NOBODY, fault);
    if (++s->failures > s->node.config->retries) {
        dafl_server_over(s, fault);
        return;
    }
    s->enrolment++;
    dafl_server_invite(s);
}

/* Every key of an enrolment, that of the packets too, is good and new: clients
 * would refuse a setup with two that are alike, without knowing whose fault it
 * is. The first who has a key keeps it. */
static dafl_fault check_enrolled_keys(dafl_server *s, const dafl_enroll *got)
{
    size_t n = (size_t)got->n_slots + 1;
    dafl_public *keys = calloc(n, sizeof *keys);
    dafl_fault fault;

    if (keys == NULL)
        return dafl_server_broke(s, DAFL_ERR_NOMEM);
    for (size_t e = 0; e < got->n_slots; e++)
        keys[e] = dafl_slot_keys_at(got->keys, e).pk;
    keys[n - 1] = got->ek;
    fault = dafl_node_check_keys(keys, n);
    for (size_t u = 0; u < s->enrolled.n && fault == DAFL_FAULT_NONE; u++) {
        const dafl_seat *seat = &s->seats[u];
        if (!dafl_members_has(&s->enrolled, u))
            continue;
        for (size_t e = 0; e < got->n_slots; e++)
            if (dafl_node_has_key(keys, n, &seat->keys[e].pk))
                fault = DAFL_E_BAD_KEY;
        if (dafl_node_has_key(keys, n, &seat->peer.ek))
            fault = DAFL_E_BAD_KEY;
    }
    free(keys);
    return fault;
}

static bool same_ack(const dafl_server *s, uint16_t from,
                     const dafl_setup_ack *ack)
{
    for (size_t u = 0; u < s->u1.n; u++)
        if (u != from && dafl_members_has(&s->u1, u) &&
            dafl_members_has(&ack->failed, u) !=
                dafl_members_has(&s->seats[u].unopened, from))
            return false;
    return dafl_digest_equal(&ack->h_setup, &s->h_setup);
}

bool dafl_server_has_it(const dafl_server *s, const dafl_envelope *m)
{
    const dafl_seat *seat;
    dafl_setup_ack ack;
    dafl_enroll got;

    if (m->sender >= s->node.roster->n_clients)
        return false; /* the key holder */
    seat = &s->seats[m->sender];
    switch (m->type) {
    case DAFL_MSG_ENROLL:
        return dafl_members_has(&s->enrolled, m->sender) &&
               dafl_get_enroll(&got, m->body) == DAFL_OK &&
               memcmp(got.ek.b, seat->peer.ek.b, sizeof got.ek.b) == 0 &&
               dafl_digest_equal(&got.hk, &seat->peer.hk);
    case DAFL_MSG_SHARES:
        return dafl_members_has(&s->dealt, m->sender) && seat->shares.len > 0 &&
               m->body.len == seat->shares.len &&
               memcmp(m->body.ptr, seat->shares.ptr, m->body.len) == 0;
    case DAFL_MSG_SETUP_ACK:
        return dafl_members_has(&s->acked, m->sender) &&
               dafl_get_setup_ack(&ack, m->body) == DAFL_OK &&
               ack.failed.n == s->u1.n && same_ack(s, m->sender, &ack);
    default:
        return false;
    }
}

dafl_fault dafl_server_on_enroll(dafl_server *s, const dafl_envelope *m)
{
    const dafl_node *n = &s->node;
    dafl_seat *seat = &s->seats[m->sender];
    dafl_digest hk, signed_digest;
    dafl_slot_keys *keys;
    dafl_enroll got;
    dafl_fault fault;

    if (dafl_get_enroll(&got, m->body) != DAFL_OK ||
        got.n_slots != n->config->slots)
        return DAFL_E_FORMAT;
    if (dafl_members_has(&s->enrolled, m->sender))
        return DAFL_E_STATE; /* the first one counts */
    dafl_context_keys(&hk, got.keys);
    dafl_context_enroll(&signed_digest, &n->run, s->enrolment, m->sender,
                        &got.ek, &got.hk);
    if (!dafl_digest_equal(&hk, &got.hk) ||
        dafl_sign_check(&got.sig, &signed_digest,
                        n->roster->parties[m->sender].id.sign_pk) != DAFL_OK)
        return DAFL_E_AUTH;
    fault = check_enrolled_keys(s, &got);
    if (fault != DAFL_FAULT_NONE || s->err != DAFL_OK)
        return fault;
    keys = calloc(got.n_slots, sizeof *keys);
    if (keys == NULL)
        return dafl_server_broke(s, DAFL_ERR_NOMEM);
    free(seat->keys);
    seat->keys = keys;
    for (size_t e = 0; e < got.n_slots; e++)
        keys[e] = dafl_slot_keys_at(got.keys, e);
    seat->peer = (dafl_peer){m->sender, got.ek, got.hk, got.sig};
    seat->unopened = dafl_members_none(n->roster->n_clients);
    dafl_members_add(&s->enrolled, m->sender);
    dafl_node_tell(&s->node,
                   &(dafl_event){.kind = DAFL_EVENT_ENROLL,
                                 .number = s->enrolment,
                                 .peer = m->sender,
                                 .digest = got.hk},
                   NULL);
    return DAFL_FAULT_NONE;
}

static void put_peers(const dafl_server *s, dafl_writer *w)
{
    dafl_peer peers[DAFL_CLIENTS_MAX];
    uint16_t n = 0;

    for (size_t u = 0; u < s->u0.n; u++)
        if (dafl_members_has(&s->u0, u))
            peers[n++] = s->seats[u].peer;
    dafl_put_peers(w, peers, n);
}

void dafl_server_send_peers(dafl_server *s, const dafl_members *to)
{
    dafl_writer w = {0};

    put_peers(s, &w);
    dafl_node_send(&s->node, DAFL_MSG_PEERS, 0, to, &w);
}

/* The whole cells that have enrolled. */
static dafl_members members_able(const dafl_server *s)
{
    dafl_members able = dafl_members_minus(&s->enrolled, &s->barred);

    return dafl_server_whole(s, &able);
}

/* How many of a set can be in a setup. */
static size_t count_able(const dafl_server *s, const dafl_members *set)
{
    dafl_members able = dafl_members_minus(set, &s->barred);

    able = dafl_server_whole(s, &able);
    return dafl_members_count(&able);
}

/* Before the first slot nothing is lost by waiting, and sites start when they
 * are ready. It is a failure when enough are there and do not enrol, and later,
 * when a site that left may be gone for good. */
bool dafl_server_awaits(const dafl_server *s)
{
    size_t n_min = s->node.config->policy.n_min;
    dafl_members all = dafl_roster_clients(s->node.roster);

    return s->state == DAFL_SERVER_ENROLLING && s->stats.slots == 0 &&
           count_able(s, &s->enrolled) < n_min &&
           count_able(s, &s->online) < n_min && count_able(s, &all) >= n_min;
}

/* Told when more have come than the last time. */
static void await_clients(dafl_server *s)
{
    size_t enrolled = dafl_members_count(&s->enrolled);

    if (s->awaited != enrolled + 1)
        dafl_node_error(&s->node, 0, DAFL_NOBODY, DAFL_E_TIMEOUT);
    s->awaited = enrolled + 1;
    dafl_server_enter(s, DAFL_SERVER_ENROLLING, DAFL_WAIT_SETUP);
}

/* All have enrolled, or no more will: U0 are the whole cells. */
static void close_enrolment(dafl_server *s)
{
    const dafl_policy *p = &s->node.config->policy;
    size_t n;

    if (dafl_server_awaits(s)) {
        await_clients(s);
        return;
    }
    s->u0 = members_able(s);
    n = dafl_members_count(&s->u0);
    if (n < p->n_min ||
        dafl_threshold(&s->t, n, p->c, p->a) != DAFL_FAULT_NONE) {
        dafl_server_invite_again(s, DAFL_E_PARAMS);
        return;
    }
    dafl_server_send_peers(s, &s->u0);
    dafl_server_enter(s, DAFL_SERVER_DEALING, DAFL_WAIT_SETUP);
}

/* One packet for every other member of U0, in order. */
static bool addressed_right(const dafl_server *s, const dafl_shares *shares,
                            uint16_t from)
{
    size_t i = 0;

    if (shares->n != dafl_members_count(&s->u0) - 1 ||
        shares->packet_len != packet_bytes(s))
        return false;
    for (uint16_t v = 0; v < s->u0.n; v++)
        if (v != from && dafl_members_has(&s->u0, v) &&
            dafl_shares_at(shares, i++).to != v)
            return false;
    return true;
}

dafl_fault dafl_server_on_shares(dafl_server *s, const dafl_envelope *m)
{
    dafl_seat *seat = &s->seats[m->sender];
    dafl_shares shares;
    dafl_digest dealt;

    if (dafl_get_shares(&shares, m->body) != DAFL_OK)
        return DAFL_E_FORMAT;
    if (!dafl_members_has(&s->u0, m->sender) ||
        dafl_members_has(&s->dealt, m->sender))
        return DAFL_E_STATE;
    if (!addressed_right(s, &shares, m->sender))
        return DAFL_E_FORMAT;
    dafl_context_shares(&seat->h_shares, shares.dealt);
    dafl_context_dealt(&dealt, &s->node.run, s->enrolment, m->sender,
                       &seat->h_shares);
    if (dafl_sign_check(&shares.sig, &dealt,
                        s->node.roster->parties[m->sender].id.sign_pk) !=
        DAFL_OK)
        return DAFL_E_AUTH;
    seat->shares_sig = shares.sig;
    dafl_writer_drop(&seat->shares);
    dafl_put_fixed(&seat->shares, m->body.ptr, m->body.len);
    if (dafl_writer_done(&seat->shares) != DAFL_OK)
        return dafl_server_broke(s, DAFL_ERR_NOMEM);
    dafl_members_add(&s->dealt, m->sender);
    return DAFL_FAULT_NONE;
}

/* The packet that `from` dealt for `to`; what it sent has been checked. */
static dafl_bytes packet_for(const dafl_server *s, uint16_t from, uint16_t to)
{
    dafl_shares shares;

    if (dafl_get_shares(&shares, dafl_writer_bytes(&s->seats[from].shares)) ==
        DAFL_OK)
        for (size_t i = 0; i < shares.n; i++)
            if (dafl_shares_at(&shares, i).to == to)
                return dafl_shares_at(&shares, i).packet;
    return (dafl_bytes){0};
}

/* Everybody's keys for all slots, in order of U1. */
static void put_keys(const dafl_server *s, dafl_writer *w)
{
    for (size_t u = 0; u < s->u1.n; u++)
        for (size_t e = 0;
             dafl_members_has(&s->u1, u) && e < s->node.config->slots; e++) {
            dafl_put_fixed(w, s->seats[u].keys[e].pk.b, 32);
            dafl_put_fixed(w, s->seats[u].keys[e].cb.b, 32);
        }
}

/* With the packets for one client; `to` DAFL_NOBODY: without any. */
static void put_setup(const dafl_server *s, uint16_t to, dafl_writer *w)
{
    dafl_dealer dealers[DAFL_CLIENTS_MAX];
    dafl_writer packets = {0}, keys = {0};
    dafl_setup setup = {.n_slots = s->node.config->slots,
                        .packet_len =
                            to == DAFL_NOBODY ? 0 : (uint32_t)packet_bytes(s)};

    for (uint16_t u = 0; u < s->u1.n; u++) {
        dafl_bytes packet;
        if (!dafl_members_has(&s->u1, u))
            continue;
        dealers[setup.n++] =
            (dafl_dealer){u, s->seats[u].h_shares, s->seats[u].shares_sig};
        if (u == to || to == DAFL_NOBODY)
            continue;
        packet = packet_for(s, u, to);
        dafl_put_fixed(&packets, packet.ptr, packet.len);
    }
    put_keys(s, &keys);
    if (packets.failed || keys.failed)
        w->failed = true;
    setup.packets = dafl_writer_bytes(&packets);
    setup.keys = dafl_writer_bytes(&keys);
    dafl_put_setup(w, &setup, dealers);
    dafl_writer_drop(&packets);
    dafl_writer_drop(&keys);
}

void dafl_server_send_setup(dafl_server *s, uint16_t to)
{
    dafl_members one = dafl_members_none(s->node.roster->n_clients);
    dafl_writer w = {0};

    if (s->seats[to].shares.len == 0)
        return; /* after a restart of ours the packets are gone */
    dafl_members_add(&one, to);
    put_setup(s, to, &w);
    dafl_node_send(&s->node, DAFL_MSG_SETUP, 0, &one, &w);
}

/* It deals nothing and is dealt nothing, and judges the setup like a client. */
void dafl_server_introduce(dafl_server *s)
{
    dafl_writer w = {0};

    if (s->encryption == NULL)
        return;
    put_invite(s, &w);
    dafl_node_send_holder(&s->node, DAFL_MSG_INVITE, 0, &w);
    put_peers(s, &w);
    dafl_node_send_holder(&s->node, DAFL_MSG_PEERS, 0, &w);
    put_setup(s, DAFL_NOBODY, &w);
    dafl_node_send_holder(&s->node, DAFL_MSG_SETUP, 0, &w);
}

static void digest_setup(dafl_server *s)
{
    dafl_setup_member members[DAFL_CLIENTS_MAX];
    size_t n = 0;

    for (uint16_t u = 0; u < s->u1.n; u++) {
        const dafl_seat *seat = &s->seats[u];
        if (!dafl_members_has(&s->u1, u))
            continue;
        members[n] = (dafl_setup_member){
            .client = u, .ek = seat->peer.ek, .hk = seat->peer.hk};
        dafl_context_dealt(&members[n++].dealt, &s->node.run, s->enrolment, u,
                           &seat->h_shares);
    }
    dafl_context_setup(&s->h_setup, &s->node.run, &s->node.roster_hash,
                       &s->node.config_hash, (uint16_t)s->t, members, n);
}

/* What a restart of the server needs of the setup. */
static void record_setup(dafl_server *s)
{
    dafl_writer w = {0};

    dafl_put_u8(&w, DAFL_RECORD_STANDS);
    dafl_put_fixed(&w, s->node.run.b, sizeof s->node.run.b);
    dafl_put_u32(&w, s->enrolment);
    dafl_put_u16(&w, (uint16_t)s->t);
    dafl_put_fixed(&w, s->h_setup.b, sizeof s->h_setup.b);
    dafl_put_members(&w, &s->u0);
    dafl_put_members(&w, &s->u1);
    put_keys(s, &w);
    dafl_node_append(&s->node, &w);
}

/* All have dealt, or no more will: U1 are the whole cells of those. */
static void close_dealing(dafl_server *s)
{
    dafl_writer w = {0};

    s->u1 = dafl_server_whole(s, &s->dealt);
    if (dafl_members_count(&s->u1) < s->node.config->policy.n_min) {
        dafl_server_invite_again(s, DAFL_E_PARAMS);
        return;
    }
    digest_setup(s);
    dafl_put_u16(&w, (uint16_t)s->t);
    dafl_put_members(&w, &s->u0);
    dafl_node_tell(&s->node,
                   &(dafl_event){.kind = DAFL_EVENT_SETUP,
                                 .number = s->enrolment,
                                 .peer = DAFL_NOBODY,
                                 .set = s->u1,
                                 .digest = s->h_setup},
                   &w);
    record_setup(s);
    for (uint16_t u = 0; u < s->u1.n; u++)
        if (dafl_members_has(&s->u1, u))
            dafl_server_send_setup(s, u);
    dafl_server_introduce(s);
    dafl_server_enter(s, DAFL_SERVER_ACKING, DAFL_WAIT_SETUP);
}

/* All were sent the same setup: whoever says otherwise is out with its cell,
 * and is not waited for. One client does not end a run. */
static void refuse_ack(dafl_server *s, uint16_t client)
{
    dafl_node_error(&s->node, 0, client, DAFL_E_SETUP_SPLIT);
    if (!dafl_members_has(&s->barred, client))
        dafl_server_bar(s, client);
    dafl_members_remove(&s->online, client);
}

dafl_fault dafl_server_on_ack(dafl_server *s, const dafl_envelope *m)
{
    dafl_setup_ack ack;

    if (dafl_get_setup_ack(&ack, m->body) != DAFL_OK ||
        ack.failed.n != s->node.roster->n_clients)
        return DAFL_E_FORMAT;
    if (!dafl_members_has(&s->u1, m->sender) ||
        dafl_members_has(&s->acked, m->sender))
        return DAFL_E_STATE;
    if (!dafl_digest_equal(&ack.h_setup, &s->h_setup)) {
        refuse_ack(s, m->sender);
        return DAFL_FAULT_NONE;
    }
    dafl_members_add(&s->acked, m->sender);
    for (size_t u = 0; u < s->u1.n; u++)
        if (u != m->sender && dafl_members_has(&ack.failed, u))
            dafl_members_add(&s->seats[u].unopened, m->sender);
    if (dafl_members_equal(&s->acked, &s->u1))
        dafl_server_drop_shares(s);
    /* In a slot already: this one can still help in it. */
    if (s->state > DAFL_SERVER_ACKING)
        dafl_server_catch_up(s, m->sender, false);
    return DAFL_FAULT_NONE;
}

/* Leave out the cells of dealers whose secrets could never be rebuilt. */
static void close_acking(dafl_server *s)
{
    size_t others = dafl_members_count(&s->u0) - 1;

    s->usable = dafl_members_minus(&s->u1, &s->barred);
    for (uint16_t u = 0; u < s->u1.n; u++)
        if (dafl_members_has(&s->u1, u) &&
            others - dafl_members_count(&s->seats[u].unopened) < s->t) {
            dafl_node_error(&s->node, 0, u, DAFL_E_UNRECOVERABLE);
            dafl_server_bar(s, u);
        }
    if (dafl_members_count(&s->usable) < s->node.config->policy.m) {
        dafl_server_invite_again(s, DAFL_E_COHORT);
        return;
    }
    s->stands = true;
    s->slot = dafl_node_first_slot(&s->node, s->enrolment) - 1;
    dafl_server_ask(s);
}

/* Whether everybody we wait for has answered. Before the first enrolment is
 * over nobody is known to be gone; later the lost are not waited for. */
static bool complete(const dafl_server *s, const dafl_members *wanted,
                     const dafl_members *got)
{
    dafl_members missing = dafl_members_minus(wanted, got);

    if (s->state != DAFL_SERVER_ENROLLING || s->enrolment > 0)
        missing = dafl_members_both(&missing, &s->online);
    return dafl_members_count(&missing) == 0;
}

void dafl_server_setup_progress(dafl_server *s, bool late)
{
    dafl_members all = dafl_roster_clients(s->node.roster);
    dafl_members able = members_able(s);
    bool enough = dafl_members_count(&able) >= s->node.config->policy.n_min;

    if (s->state == DAFL_SERVER_ENROLLING &&
        (late || (enough && complete(s, &all, &s->enrolled))))
        close_enrolment(s);
    else if (s->state == DAFL_SERVER_DEALING &&
             (late || complete(s, &s->u0, &s->dealt)))
        close_dealing(s);
    else if (s->state == DAFL_SERVER_ACKING && s->encryption != NULL &&
             !s->holder_acked) {
        if (late)
            dafl_server_await_holder(s, DAFL_WAIT_SETUP);
    } else if (s->state == DAFL_SERVER_ACKING &&
               (late || complete(s, &s->u1, &s->acked)))
        close_acking(s);
}
