/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lab/rogue.h"

#include "tests/check.h"

#include "crypto/mask.h"
#include "crypto/packet.h"
#include "lib/ring.h"
#include "lib/secret.h"
#include "protocol/client_state.h"
#include "protocol/server_state.h"
#include "tests/lab/inside.h"

size_t rogue_blamed(const lab *l, uint16_t by, uint16_t peer, dafl_fault fault)
{
    const lab_event *events;
    size_t n = lab_events(l, &events), found = 0;

    for (size_t i = 0; i < n; i++)
        found += events[i].party == by &&
                 events[i].event.kind == DAFL_EVENT_ERROR &&
                 events[i].event.peer == peer && events[i].event.fault == fault;
    return found;
}

size_t rogue_threshold(const lab *l)
{
    const dafl_policy *p = &lab_config(l)->policy;
    size_t t = 0;

    assert_int_equal(dafl_threshold(&t, lab_scenario_of(l)->k, p->c, p->a),
                     DAFL_FAULT_NONE);
    return t;
}

dafl_members rogue_cell(const lab *l, uint16_t client)
{
    return dafl_roster_cell(lab_roster(l), lab_roster(l)->parties[client].cell);
}

dafl_members rogue_without(const lab *l, uint16_t client)
{
    dafl_members left = lab_everybody(l), cell;

    if (lab_config(l)->policy.g == 1) {
        dafl_members_remove(&left, client);
        return left;
    }
    cell = rogue_cell(l, client);
    return dafl_members_minus(&left, &cell);
}

size_t rogue_sent(const lab *l, uint16_t client, dafl_msg_type type,
                  uint32_t slot)
{
    size_t at = 0, n = 0;

    while (lab_find(l, &at, LAB_SENT, client, LAB_ANYBODY, type, slot) != NULL)
        n++;
    return n;
}

/* ---- reading an upload ---- */

bool rogue_upload(const lab *l, uint16_t client, uint32_t slot,
                  dafl_writer *bytes)
{
    size_t at = 0;
    const lab_seen *m;

    while ((m = lab_find(l, &at, LAB_SENT, client, LAB_ANYBODY, DAFL_MSG_UPLOAD,
                         slot)) != NULL) {
        dafl_upload chunk;
        if (dafl_get_upload(&chunk, m->envelope.body) != DAFL_OK)
            lab_die("rogue: a malformed UPLOAD");
        if (chunk.offset == 0)
            dafl_writer_clear(bytes);
        if (chunk.offset == bytes->len)
            dafl_put_fixed(bytes, chunk.chunk.ptr, chunk.chunk.len);
    }
    at = 0;
    return lab_find(l, &at, LAB_SENT, client, LAB_ANYBODY, DAFL_MSG_END,
                    slot) != NULL;
}

bool rogue_was_cast(const lab *l, uint16_t client, uint32_t slot,
                    rogue_view *view)
{
    const lab_event *events;
    size_t n = lab_events(l, &events);
    bool found = false;

    *view = (rogue_view){.client = client, .slot = slot};
    for (size_t i = 0; i < n; i++)
        if (events[i].party == client && events[i].event.slot == slot &&
            events[i].event.kind == DAFL_EVENT_CAST) {
            view->a = events[i].event.set;
            view->ctx2 = events[i].event.digest;
            found = true;
        }
    return found;
}

/* The question that a client was last asked in a slot. */
static uint32_t asked(const lab *l, uint16_t client, uint32_t slot)
{
    const lab_event *events;
    size_t n = lab_events(l, &events);
    uint32_t question = 0;

    for (size_t i = 0; i < n; i++)
        if (events[i].party == client && events[i].event.slot == slot &&
            events[i].event.kind == DAFL_EVENT_MODEL)
            question = events[i].event.number;
    return question;
}

dafl_public rogue_enrolled(const lab *l, uint16_t client, uint32_t slot)
{
    size_t at = 0;
    const lab_seen *m = lab_find(l, &at, LAB_SENT, client, LAB_ANYBODY,
                                 DAFL_MSG_ENROLL, UINT32_MAX);
    dafl_enroll enroll;

    if (m == NULL || dafl_get_enroll(&enroll, m->envelope.body) != DAFL_OK)
        lab_die("rogue: client %u has not enrolled", (unsigned)client);
    return dafl_slot_keys_at(enroll.keys, slot - 1).pk;
}

void rogue_know(const lab *l, rogue_view *view, const dafl_key *sk,
                const dafl_key *b)
{
    uint16_t u = view->client;
    dafl_public own = rogue_enrolled(l, u, view->slot);

    for (uint16_t v = 0; v < view->a.n; v++) {
        dafl_public pk;
        if (v == u || !dafl_members_has(&view->a, v))
            continue;
        pk = rogue_enrolled(l, v, view->slot);
        if (dafl_key_pair(&view->keys[v], sk, &view->ctx2, u, &own, v, &pk) !=
            DAFL_OK)
            lab_die("rogue: no key of clients %u and %u", (unsigned)u,
                    (unsigned)v);
    }
    dafl_key_self(&view->keys[u], b, &view->ctx2, u);
}

bool rogue_reads(const lab *l, const rogue_view *view)
{
    unsigned w = lab_config(l)->contract.w;
    uint32_t question = asked(l, view->client, view->slot);
    size_t n = lab_answer_len(l, question), same = 0;
    int64_t *x = lab_alloc(n, sizeof *x);
    uint64_t *y = lab_alloc(n, sizeof *y);
    dafl_writer bytes = {0};

    if (rogue_upload(l, view->client, view->slot, &bytes) &&
        bytes.len == n * (w / 8)) {
        dafl_ring_add_words(y, bytes.ptr, n, w, false);
        for (uint16_t v = 0; v < view->a.n; v++) {
            dafl_mask mask = {view->keys[v], v >= view->client};
            if (dafl_members_has(&view->a, v))
                dafl_mask_apply(y, n, w, &mask, 1, NULL);
        }
        lab_answer(l, view->client, question, x);
        for (size_t i = 0; i < n; i++)
            same += ((y[i] - (uint64_t)x[i]) << (64 - w)) == 0;
    }
    dafl_writer_drop(&bytes);
    free(x);
    free(y);
    return same == n;
}

bool rogue_rebuild(const lab *l, uint16_t dealer, uint32_t slot,
                   dafl_reveal_kind kind, size_t t, dafl_key *out)
{
    dafl_share shares[DAFL_HOLDERS_MAX];
    uint8_t places[DAFL_HOLDERS_MAX];
    size_t n = 0, at = 0;
    const lab_seen *m;

    while (n < t && (m = lab_find(l, &at, LAB_SENT, LAB_ANYBODY, LAB_ANYBODY,
                                  DAFL_MSG_REVEAL, slot)) != NULL) {
        dafl_reveal reveal;
        if (dafl_get_reveal(&reveal, m->envelope.body) != DAFL_OK)
            continue;
        for (size_t i = 0; i < reveal.n; i++) {
            dafl_revealed r = dafl_reveal_at(&reveal, i);
            if (r.dealer != dealer || r.kind != kind)
                continue;
            places[n] = dafl_shamir_place(dealer, m->from);
            shares[n++] = r.share;
        }
    }
    return n >= t && dafl_shamir_join(out, shares, places, t) == DAFL_OK;
}

bool rogue_in_clear(const lab *l, uint16_t client, uint32_t slot)
{
    unsigned w = lab_config(l)->contract.w / 8;
    uint32_t question = asked(l, client, slot);
    size_t n = lab_answer_len(l, question), found = 0;
    int64_t *x = lab_alloc(n, sizeof *x);
    dafl_writer bytes = {0};

    (void)rogue_upload(l, client, slot, &bytes);
    lab_answer(l, client, question, x);
    for (size_t i = 0; i < n && (i + 1) * w <= bytes.len; i++)
        if (x[i] > UINT16_MAX || x[i] < -UINT16_MAX) /* no accident */
            found += memcmp(bytes.ptr + i * w, &x[i], w) == 0;
    dafl_writer_drop(&bytes);
    free(x);
    return found > 0;
}

/* ---- a server with rules of its own ---- */

void rogue_pretend(lab *l)
{
    dafl_server *s;

    while (lab_server(l) == NULL)
        if (!lab_step(l))
            lab_die("rogue: the server does not start");
    s = lab_server(l);
    if (dafl_config_digest(&s->node.config_hash, lab_config(l)) != DAFL_OK)
        lab_die("rogue: no digest of the config");
}

/* ---- a server between clients ---- */

lab_scenario rogue_scenario(uint64_t seed, lab_intercept *intercept, void *ctx)
{
    lab_scenario s = lab_scenario_for(ROGUE_CLIENTS, 1, seed);

    s.config.policy.n_min = ROGUE_CLIENTS - 1;
    lab_scenario_collude(&s, 1);
    s.intercept = intercept;
    s.ctx = ctx;
    s.wrong_sums_expected = true;
    return s;
}

void rogue_check_others(lab *l, dafl_fault fault)
{
    dafl_members left = lab_members(l, ~(UINT64_C(1) << ROGUE_VICTIM));

    lab_check_done(l);
    lab_check_cohort(l, 0, &left);
    assert_true(rogue_blamed(l, ROGUE_VICTIM, lab_server_index(l), fault) > 0);
}

rogue_setup rogue_take_apart(const lab_letter *m)
{
    rogue_setup s = {0};

    assert_ok(dafl_get_setup(&s.m, m->envelope.body));
    for (size_t i = 0; i < s.m.n; i++)
        s.dealers[i] = dafl_setup_dealer(&s.m, i);
    dafl_put_fixed(&s.packets, s.m.packets.ptr, s.m.packets.len);
    dafl_put_fixed(&s.keys, s.m.keys.ptr, s.m.keys.len);
    return s;
}

void rogue_put_together(lab *l, lab_letter *m, rogue_setup *s)
{
    dafl_writer w = {0};

    s->m.packets = dafl_writer_bytes(&s->packets);
    s->m.keys = dafl_writer_bytes(&s->keys);
    dafl_put_setup(&w, &s->m, s->dealers);
    lab_letter_reseal(l, m, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    dafl_writer_drop(&s->packets);
    dafl_writer_drop(&s->keys);
}

uint8_t *rogue_keys_in(rogue_setup *s, uint16_t client, uint32_t slot)
{
    return s->keys.ptr +
           (client * (size_t)s->m.n_slots + slot - 1) * DAFL_SLOT_KEYS_BYTES;
}

uint8_t *rogue_packet_in(rogue_setup *s, uint16_t dealer, uint16_t to)
{
    return s->packets.ptr +
           (size_t)(dealer < to ? dealer : dealer - 1) * s->m.packet_len;
}

/* Whether the victim holds shares of a dealer for slot 1. */
static bool holds(const lab *l, uint16_t dealer)
{
    dafl_bytes record = lab_disk_secret(l, ROGUE_VICTIM, 1);

    return record.ptr != NULL &&
           !sodium_is_zero(record.ptr + DAFL_OWN_BYTES +
                               (size_t)dealer * DAFL_HELD_BYTES,
                           DAFL_HELD_BYTES);
}

bool rogue_keeps_packet(lab *l)
{
    dafl_members all = lab_everybody(l);
    dafl_members other = lab_members(l, UINT64_C(1) << ROGUE_OTHER);
    const lab_seen *m;
    dafl_setup_ack ack;
    size_t entry = 0;
    bool keeps;

    assert_true(lab_run_to(l, DAFL_MSG_MODEL, 0));
    keeps = holds(l, ROGUE_OTHER);
    for (uint16_t u = 0; u < ROGUE_CLIENTS; u++)
        assert_true(u == ROGUE_VICTIM || u == ROGUE_OTHER || holds(l, u));
    m = lab_find(l, &entry, LAB_SENT, ROGUE_VICTIM, LAB_ANYBODY,
                 DAFL_MSG_SETUP_ACK, UINT32_MAX);
    assert_non_null(m);
    assert_ok(dafl_get_setup_ack(&ack, m->envelope.body));
    assert_true(dafl_members_equal(&ack.failed, &other));
    lab_check_done(l);
    lab_check_cohort(l, 0, &all);
    return keeps;
}

/* ---- a dealer ---- */

void rogue_deal(lab *l, lab_letter *m, rogue_dealing *change, void *ctx)
{
    dafl_client *c = lab_client(l, m->from);
    const dafl_peer *own = &c->peers[m->from];
    dafl_end from = {m->from, own->ek, own->hk};
    dafl_addressed packets[DAFL_CLIENTS_MAX];
    dafl_run_id run = lab_run_id(l);
    dafl_shares shares;
    dafl_signature sig;
    dafl_digest digest;
    dafl_writer w = {0};

    if (dafl_get_shares(&shares, m->envelope.body) != DAFL_OK)
        lab_die("rogue: malformed SHARES");
    for (size_t i = 0; i < shares.n; i++) {
        dafl_addressed a = dafl_shares_at(&shares, i);
        const dafl_peer *peer = &c->peers[a.to];
        dafl_end to = {a.to, peer->ek, peer->hk};
        size_t len = a.packet.len - DAFL_PACKET_OVERHEAD;
        uint8_t *plain = lab_alloc(len, 1);
        uint8_t *sealed = lab_alloc(a.packet.len, 1);
        dafl_key key;
        if (dafl_key_packet(&key, c->ek, &run, &from, &to, true) != DAFL_OK ||
            dafl_packet_open(plain, len, a.packet, &key, &run, m->from, a.to) !=
                DAFL_OK)
            lab_die("rogue: a packet of its own does not open");
        if (!change(ctx, l, m->from, a.to, plain, len))
            key.b[0] ^= 1;
        dafl_packet_seal(sealed, (dafl_bytes){plain, len}, &key, &run, m->from,
                         a.to);
        packets[i] = (dafl_addressed){a.to, {sealed, a.packet.len}};
        dafl_key_wipe(&key);
        free(plain);
    }
    dafl_put_shares(&w, packets, shares.n, shares.packet_len);
    for (size_t i = 0; i < shares.n; i++)
        free((void *)(uintptr_t)packets[i].packet.ptr);
    dafl_context_shares(&digest, dafl_writer_bytes(&w));
    c->own_shares = digest; /* it knows what it does */
    dafl_context_dealt(&digest, &run, c->enrolment, m->from, &digest);
    dafl_sign(&sig, &digest, lab_identity(l, m->from));
    dafl_put_shares_sig(&w, &sig);
    lab_letter_reseal(l, m, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
}
