/* SPDX-License-Identifier: Apache-2.0 */
/* A client before its first slot: keys out, shares out, shares in. */
#include <stdlib.h>
#include <string.h>

#include "crypto/packet.h"
#include "lib/secret.h"
#include "protocol/client_state.h"
#include "protocol/setup.h"
#include "protocol/weaken.h"

static void resend(dafl_client *c, dafl_msg_type type, const dafl_writer *body)
{
    dafl_writer w = {0};

    dafl_put_fixed(&w, body->ptr, body->len);
    dafl_node_send(&c->node, type, 0, NULL, &w);
}

/* Draw the keys of all slots into the first parts of the records (which have
 * no shares yet), and write the public halves to `keys`. */
static void draw_keys(dafl_client *c, dafl_writer *keys)
{
    for (uint32_t i = 0; i < c->node.config->slots; i++) {
        uint8_t *record = c->secrets + i * c->record_bytes;
        dafl_key *sk = (dafl_key *)(void *)record;
        dafl_key *b = (dafl_key *)(void *)(record + sizeof *sk);
        dafl_public pk;
        dafl_digest cb;
        dafl_key_random(sk);
        dafl_key_random(b);
        dafl_key_public(&pk, sk);
        dafl_key_commit(&cb, b);
        dafl_put_fixed(keys, pk.b, sizeof pk.b);
        dafl_put_fixed(keys, cb.b, sizeof cb.b);
    }
}

static dafl_fault enroll(dafl_client *c)
{
    dafl_enroll m = {.n_slots = c->node.config->slots};
    dafl_writer keys = {0}, w = {0};
    dafl_digest signed_digest;

    c->over = false;
    c->fault = DAFL_FAULT_NONE;
    c->u0 = dafl_members_none(c->node.roster->n_clients);
    c->ek = dafl_secret_alloc(1, sizeof *c->ek);
    if (c->ek == NULL || dafl_client_make_records(c) != DAFL_OK)
        return dafl_client_broke(c, DAFL_ERR_NOMEM);
    dafl_key_random(c->ek);
    dafl_key_public(&m.ek, c->ek);
    draw_keys(c, &keys);
    if (dafl_writer_done(&keys) != DAFL_OK)
        return dafl_client_broke(c, DAFL_ERR_NOMEM);
    m.keys = dafl_writer_bytes(&keys);
    dafl_context_keys(&m.hk, m.keys);
    dafl_context_enroll(&signed_digest, &c->node.run, c->enrolment,
                        c->node.index, &m.ek, &m.hk);
    dafl_sign(&m.sig, &signed_digest, c->node.self);
    dafl_put_enroll(&c->enroll, &m);
    dafl_writer_drop(&keys);

    dafl_put_u8(&w, DAFL_RECORD_ENROLLED);
    dafl_put_fixed(&w, c->node.run.b, sizeof c->node.run.b);
    dafl_put_u32(&w, c->enrolment);
    dafl_put_fixed(&w, c->node.roster_hash.b, sizeof c->node.roster_hash.b);
    dafl_put_fixed(&w, c->node.config_hash.b, sizeof c->node.config_hash.b);
    dafl_put_fixed(&w, c->given.rows.b, sizeof c->given.rows.b);
    dafl_put_fixed(&w, c->given.basis.b, sizeof c->given.basis.b);
    dafl_put_fixed(&w, c->given.cell.b, sizeof c->given.cell.b);
    dafl_node_append(&c->node, &w);
    dafl_node_tell(&c->node,
                   &(dafl_event){.kind = DAFL_EVENT_ENROLL,
                                 .number = c->enrolment,
                                 .peer = DAFL_NOBODY,
                                 .digest = m.hk},
                   NULL);
    resend(c, DAFL_MSG_ENROLL, &c->enroll);
    c->state = DAFL_CLIENT_ENROLLED;
    return DAFL_FAULT_NONE;
}

dafl_fault dafl_client_on_invite(dafl_client *c, const dafl_envelope *m)
{
    bool ours =
        c->in_run && memcmp(m->run.b, c->node.run.b, sizeof m->run.b) == 0;
    dafl_invite invite;
    dafl_fault fault;

    if (dafl_get_invite(&invite, m->body) != DAFL_OK)
        return DAFL_E_FORMAT;
    if (!ours && dafl_client_knows(c, &m->run) && !DAFL_WEAK(RUNS))
        return DAFL_E_REPLAY;
    if (!dafl_setup_invited(&c->node, &invite) && !DAFL_WEAK(PIN))
        return DAFL_E_POLICY;
    if (invite.enrolment >= DAFL_ENROLMENTS_MAX)
        return DAFL_E_FORMAT;
    if (ours && invite.enrolment == c->enrolment) {
        /* The server has not got our keys; it never gets other ones. */
        if (c->state == DAFL_CLIENT_ENROLLED)
            resend(c, DAFL_MSG_ENROLL, &c->enroll);
        return c->state == DAFL_CLIENT_ENROLLED ? DAFL_FAULT_NONE
                                                : DAFL_E_STATE;
    }
    if (ours && invite.enrolment < c->enrolment)
        return DAFL_E_REPLAY;
    if (c->in_run)
        dafl_client_close(c, dafl_node_last_slot(&c->node, c->enrolment));
    dafl_client_drop_setup(c);
    if (!ours) {
        /* The server has begun another run: what we have of a model is of no
         * use in it. */
        fault = c->n_segments == 0 ? DAFL_FAULT_NONE
                                   : c->method->rewind(c->method_self);
        if (fault != DAFL_FAULT_NONE)
            return fault;
        if (dafl_client_join(c, &m->run) != DAFL_OK)
            return dafl_client_broke(c, DAFL_ERR_NOMEM);
        c->node.heard[m->sender] = m->seq;
    }
    fault = dafl_client_look_back(c, ours);
    if (fault != DAFL_FAULT_NONE)
        return fault;
    c->enrolment = invite.enrolment;
    dafl_node_recap(&c->node, c->slot);
    dafl_node_tell(&c->node,
                   &(dafl_event){.kind = DAFL_EVENT_INVITE,
                                 .number = c->enrolment,
                                 .peer = m->sender},
                   NULL);
    return enroll(c);
}

/* The entries hold, and ours is as we sent it. */
static dafl_fault check_peers(dafl_client *c, const dafl_peers *list,
                              dafl_members *u0, dafl_peer *peers)
{
    const dafl_node *n = &c->node;
    const dafl_peer *own = &peers[n->index];
    dafl_enroll sent;
    dafl_fault fault;

    if (dafl_get_enroll(&sent, dafl_writer_bytes(&c->enroll)) != DAFL_OK)
        return dafl_client_broke(c, DAFL_ERR_ARG);
    fault = dafl_setup_peers(n, c->enrolment, list, u0, peers, &c->t);
    if (fault == DAFL_FAULT_NONE &&
        (!dafl_members_has(u0, n->index) ||
         memcmp(&own->ek, &sent.ek, sizeof sent.ek) != 0 ||
         !dafl_digest_equal(&own->hk, &sent.hk)))
        fault = DAFL_E_AUTH;
    return fault;
}

static dafl_end end_of(const dafl_client *c, uint16_t client)
{
    return (dafl_end){client, c->peers[client].ek, c->peers[client].hk};
}

/* Split the two secrets of every slot: plain[h] is what holder h of the others
 * (in order of U0) is to get. */
static dafl_err split_all(const dafl_client *c, uint8_t *plain,
                          size_t plain_len, size_t others)
{
    size_t own = dafl_members_rank(&c->u0, c->node.index);
    dafl_share *shares = dafl_secret_alloc(2 * others, sizeof *shares);
    uint8_t places[DAFL_HOLDERS_MAX];
    dafl_err err = shares == NULL ? DAFL_ERR_NOMEM : DAFL_OK;

    for (size_t h = 0; h < others; h++)
        places[h] = dafl_shamir_place(own, h < own ? h : h + 1);
    for (uint32_t i = 0; i < c->node.config->slots && err == DAFL_OK; i++) {
        const uint8_t *record = c->secrets + (size_t)i * c->record_bytes;
        const dafl_key *sk = (const dafl_key *)(const void *)record;
        err = dafl_shamir_split(shares, sk + 1, places, others, c->t);
        if (err == DAFL_OK)
            err = dafl_shamir_split(shares + others, sk, places, others, c->t);
        for (size_t h = 0; h < others && err == DAFL_OK; h++) {
            uint8_t *to = plain + h * plain_len + (size_t)i * DAFL_HELD_BYTES;
            memcpy(to, shares[h].b, 32);
            memcpy(to + 32, shares[others + h].b, 32);
        }
    }
    dafl_secret_free(shares);
    return err;
}

/* Seal plain[h] for every holder; write the SHARES body. */
static dafl_err seal_all(dafl_client *c, const uint8_t *plain, size_t plain_len,
                         size_t others)
{
    size_t sealed_len = plain_len + DAFL_PACKET_OVERHEAD;
    uint8_t *sealed = dafl_bulk_alloc(others, sealed_len);
    dafl_addressed packets[DAFL_CLIENTS_MAX];
    dafl_end own = end_of(c, c->node.index);
    dafl_err err = sealed == NULL ? DAFL_ERR_NOMEM : DAFL_OK;
    size_t h = 0;

    for (uint16_t v = 0; v < c->u0.n && err == DAFL_OK; v++) {
        dafl_end to;
        dafl_key key;
        if (v == c->node.index || !dafl_members_has(&c->u0, v))
            continue;
        to = end_of(c, v);
        err = dafl_key_packet(&key, c->ek, &c->node.run, &own, &to, true);
        if (err == DAFL_OK)
            dafl_packet_seal(sealed + h * sealed_len,
                             (dafl_bytes){plain + h * plain_len, plain_len},
                             &key, &c->node.run, own.index, v);
        packets[h] = (dafl_addressed){
            v, {sealed == NULL ? NULL : sealed + h * sealed_len, sealed_len}};
        dafl_key_wipe(&key);
        h++;
    }
    if (err == DAFL_OK)
        dafl_put_shares(&c->shares, packets, (uint16_t)h, (uint32_t)sealed_len);
    dafl_bulk_free(sealed);
    return err;
}

/* Widen the records, which had only our own keys, to hold shares too. */
static dafl_err widen_records(dafl_client *c)
{
    uint8_t *old = c->secrets;
    size_t old_bytes = c->record_bytes;
    dafl_err err = dafl_client_make_records(c);

    for (uint32_t i = 0; i < c->node.config->slots && err == DAFL_OK; i++)
        memcpy(c->secrets + i * c->record_bytes, old + i * old_bytes,
               DAFL_OWN_BYTES);
    dafl_secret_free(old);
    return err;
}

static dafl_err deal(dafl_client *c)
{
    size_t others = dafl_members_count(&c->u0) - 1;
    size_t plain_len = (size_t)c->node.config->slots * DAFL_HELD_BYTES;
    uint8_t *plain = dafl_secret_alloc(others, plain_len);
    dafl_signature sig;
    dafl_digest dealt;
    dafl_err err = plain == NULL ? DAFL_ERR_NOMEM : DAFL_OK;

    if (err == DAFL_OK)
        err = split_all(c, plain, plain_len, others);
    if (err == DAFL_OK)
        err = seal_all(c, plain, plain_len, others);
    dafl_secret_free(plain);
    if (err == DAFL_OK)
        err = dafl_writer_done(&c->shares);
    if (err != DAFL_OK)
        return err;
    dafl_context_shares(&c->own_shares, dafl_writer_bytes(&c->shares));
    dafl_context_dealt(&dealt, &c->node.run, c->enrolment, c->node.index,
                       &c->own_shares);
    dafl_sign(&sig, &dealt, c->node.self);
    dafl_put_shares_sig(&c->shares, &sig);
    return dafl_writer_done(&c->shares);
}

dafl_fault dafl_client_on_peers(dafl_client *c, const dafl_envelope *m)
{
    dafl_peers list;
    dafl_members u0;
    dafl_peer *peers;
    dafl_fault fault;
    dafl_err err;

    if (c->state == DAFL_CLIENT_DEALT) {
        /* Dealt once; the server can have the same packets again. */
        resend(c, DAFL_MSG_SHARES, &c->shares);
        return DAFL_FAULT_NONE;
    }
    if (dafl_get_peers(&list, m->body) != DAFL_OK ||
        list.n > c->node.roster->n_clients)
        return DAFL_E_FORMAT;
    peers = calloc(c->node.roster->n_clients, sizeof *peers);
    if (peers == NULL)
        return dafl_client_broke(c, DAFL_ERR_NOMEM);
    fault = check_peers(c, &list, &u0, peers);
    if (fault != DAFL_FAULT_NONE || c->err != DAFL_OK) {
        free(peers);
        return fault;
    }
    c->peers = peers;
    c->u0 = u0;
    err = widen_records(c);
    if (err == DAFL_OK)
        err = deal(c);
    if (err != DAFL_OK)
        return dafl_client_broke(c, err);
    resend(c, DAFL_MSG_SHARES, &c->shares);
    c->state = DAFL_CLIENT_DEALT;
    return DAFL_FAULT_NONE;
}

/* We are in it, with what we dealt. */
static bool is_ours(const dafl_client *c, const dafl_setup *setup)
{
    for (size_t i = 0; i < setup->n; i++) {
        dafl_dealer d = dafl_setup_dealer(setup, i);
        if (d.client == c->node.index)
            return dafl_digest_equal(&d.h_shares, &c->own_shares);
    }
    return false;
}

/* Open the packets into the records; who dealt one that does not open is named.
 */
static dafl_err open_packets(dafl_client *c, const dafl_setup *setup,
                             dafl_members *failed)
{
    size_t len = setup->packet_len - DAFL_PACKET_OVERHEAD, packet = 0;
    uint8_t *plain = dafl_secret_alloc(len, 1);
    dafl_end own = end_of(c, c->node.index);

    if (plain == NULL)
        return DAFL_ERR_NOMEM;
    *failed = dafl_members_none(c->node.roster->n_clients);
    for (size_t i = 0; i < setup->n; i++) {
        uint16_t from = dafl_setup_dealer(setup, i).client;
        dafl_end dealer = end_of(c, from);
        dafl_err err;
        dafl_key key;
        if (from == c->node.index)
            continue;
        err = dafl_key_packet(&key, c->ek, &c->node.run, &dealer, &own, false);
        if (err == DAFL_OK)
            err = dafl_packet_open(plain, len, dafl_setup_packet(setup, packet),
                                   &key, &c->node.run, from, own.index);
        dafl_key_wipe(&key);
        packet++;
        if (err != DAFL_OK) {
            dafl_members_add(failed, from);
            continue;
        }
        for (size_t e = 0; e < c->node.config->slots; e++)
            memcpy(c->secrets + e * c->record_bytes + dafl_client_held(c, from),
                   plain + e * DAFL_HELD_BYTES, DAFL_HELD_BYTES);
    }
    dafl_secret_free(plain);
    return DAFL_OK;
}

dafl_err dafl_client_keep_keys(dafl_client *c, const dafl_members *u1,
                               dafl_bytes keys)
{
    size_t slots = c->node.config->slots, at = 0;

    c->keys = calloc(c->node.roster->n_clients * slots, sizeof *c->keys);
    if (c->keys == NULL)
        return DAFL_ERR_NOMEM;
    for (size_t u = 0; u < u1->n; u++)
        for (size_t e = 0; dafl_members_has(u1, u) && e < slots; e++)
            c->keys[u * slots + e] = dafl_slot_keys_at(keys, at++);
    return DAFL_OK;
}

/* Vault first, then the journal that says it is there. */
static void record_setup(dafl_client *c, const dafl_members *failed,
                         dafl_bytes keys)
{
    uint32_t first = dafl_node_first_slot(&c->node, c->enrolment);
    dafl_writer w = {0};

    for (uint32_t i = 0; i < c->node.config->slots; i++) {
        dafl_put_fixed(&w, c->secrets + i * c->record_bytes, c->record_bytes);
        dafl_effects_add(
            &c->node.effects,
            &(dafl_effect){.kind = DAFL_DO_KEEP, .slot = first + i}, &w);
    }
    dafl_put_u8(&w, DAFL_RECORD_SETUP);
    dafl_put_fixed(&w, c->node.run.b, sizeof c->node.run.b);
    dafl_put_u32(&w, c->enrolment);
    dafl_put_u16(&w, (uint16_t)c->t);
    dafl_put_fixed(&w, c->h_setup.b, sizeof c->h_setup.b);
    dafl_put_members(&w, &c->u0);
    dafl_put_members(&w, &c->u1);
    dafl_put_members(&w, failed);
    dafl_put_fixed(&w, keys.ptr, keys.len);
    dafl_node_append(&c->node, &w);
}

dafl_fault dafl_client_on_setup(dafl_client *c, const dafl_envelope *m)
{
    size_t packet_len =
        (size_t)c->node.config->slots * DAFL_HELD_BYTES + DAFL_PACKET_OVERHEAD;
    dafl_setup_ack ack;
    dafl_digest h_setup;
    dafl_setup setup;
    dafl_writer w = {0};
    dafl_members u1;
    dafl_fault fault;
    dafl_err err;

    if (c->state == DAFL_CLIENT_IDLE) {
        resend(c, DAFL_MSG_SETUP_ACK, &c->ack);
        return DAFL_FAULT_NONE;
    }
    if (dafl_get_setup(&setup, m->body) != DAFL_OK ||
        setup.n_slots != c->node.config->slots ||
        (setup.n > 1 && setup.packet_len != packet_len))
        return DAFL_E_FORMAT;
    if (!is_ours(c, &setup))
        return DAFL_E_AUTH;
    fault = dafl_setup_members(&c->node, &setup, &c->u0, &u1);
    if (fault == DAFL_FAULT_NONE)
        fault = dafl_setup_dealers(&c->node, c->enrolment, &setup, c->peers,
                                   c->t, &h_setup, &c->err);
    if (fault != DAFL_FAULT_NONE || c->err != DAFL_OK)
        return fault;
    err = open_packets(c, &setup, &ack.failed);
    if (err == DAFL_OK)
        err = dafl_client_keep_keys(c, &u1, setup.keys);
    if (err != DAFL_OK)
        return dafl_client_broke(c, err);
    c->u1 = u1;
    c->h_setup = ack.h_setup = h_setup;
    dafl_secret_free(c->ek);
    c->ek = NULL;
    dafl_writer_drop(&c->shares);
    dafl_writer_drop(&c->enroll);
    dafl_put_u16(&w, (uint16_t)c->t);
    dafl_put_members(&w, &c->u0);
    /* Told before it is journaled: a slot without its setup in the log could
     * not be judged. */
    dafl_node_tell(&c->node,
                   &(dafl_event){.kind = DAFL_EVENT_SETUP,
                                 .number = c->enrolment,
                                 .peer = m->sender,
                                 .set = u1,
                                 .digest = h_setup},
                   &w);
    record_setup(c, &ack.failed, setup.keys);
    dafl_put_setup_ack(&c->ack, &ack);
    resend(c, DAFL_MSG_SETUP_ACK, &c->ack);
    c->state = DAFL_CLIENT_IDLE;
    return DAFL_FAULT_NONE;
}
