/* SPDX-License-Identifier: Apache-2.0 */
/* A server in the middle: keys that are not their owners' (S12), keys that are
 * no good (M6). */
#include "tests/check.h"

#include <sodium.h>

#include "crypto/packet.h"
#include "protocol/client_state.h"
#include "protocol/server_state.h"
#include "tests/crypto/bytes.h"
#include "tests/crypto/low_order.h"
#include "tests/lab/attack.h"
#include "tests/lab/rogue.h"

enum {
    CLIENTS = ROGUE_CLIENTS,
    VICTIM = ROGUE_VICTIM,
    COLLUDER = ROGUE_COLLUDER,
    OTHER = ROGUE_OTHER
};

/* ---- messages with something else in them ---- */

typedef void change_peer(lab *l, void *ctx, dafl_peer *peer);

static void rewrite_peers(lab *l, lab_letter *m, change_peer *change, void *ctx)
{
    dafl_peer peers[DAFL_CLIENTS_MAX];
    dafl_peers list;
    dafl_writer w = {0};

    assert_ok(dafl_get_peers(&list, m->envelope.body));
    for (size_t i = 0; i < list.n; i++) {
        peers[i] = dafl_peers_at(&list, i);
        change(l, ctx, &peers[i]);
    }
    dafl_put_peers(&w, peers, list.n);
    lab_letter_reseal(l, m, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
}

/* ---- S12: the man in the middle ---- */

typedef struct {
    dafl_key own[CLIENTS]; /* its keys, instead of the clients' */
    dafl_peer told[CLIENTS];
    dafl_share shares[2][CLIENTS]; /* the victim's, of b and of sk in slot 1 */
    size_t n_shares;
    enum { CB, PACKET, DEALT } way;
} middle;

static void draw_own(middle *a)
{
    for (size_t i = 0; i < CLIENTS; i++)
        random_bytes(&a->own[i], sizeof a->own[i]);
}

static void swap_ek(lab *l, void *ctx, dafl_peer *peer)
{
    middle *a = ctx;

    (void)l;
    if (peer->client != VICTIM)
        dafl_key_public(&peer->ek, &a->own[peer->client]);
    a->told[peer->client] = *peer;
}

/* The victim's packets are for the attacker. */
static void read_packets(lab *l, middle *a, dafl_bytes body)
{
    const dafl_peer *v = &a->told[VICTIM];
    dafl_end from = {VICTIM, v->ek, v->hk};
    dafl_run_id run = lab_run_id(l);
    dafl_shares shares;

    assert_ok(dafl_get_shares(&shares, body));
    for (size_t i = 0; i < shares.n; i++) {
        dafl_addressed p = dafl_shares_at(&shares, i);
        dafl_end to = {p.to, a->told[p.to].ek, a->told[p.to].hk};
        size_t len = p.packet.len - DAFL_PACKET_OVERHEAD;
        uint8_t *plain = exactly(len);
        dafl_key key;
        assert_ok(
            dafl_key_packet(&key, &a->own[p.to], &run, &from, &to, false));
        assert_ok(
            dafl_packet_open(plain, len, p.packet, &key, &run, VICTIM, p.to));
        memcpy(&a->shares[0][i], plain, 32);
        memcpy(&a->shares[1][i], plain + 32, 32);
        free(plain);
    }
    a->n_shares = shares.n;
}

/* Whatever the victim says of its setup, the server machine hears that all is
 * well; and that everybody could open the victim's packets. */
static bool swap_eks(lab *l, lab_letter *m, void *ctx)
{
    middle *a = ctx;
    dafl_setup_ack ack;
    dafl_writer w = {0};

    if (m->to == VICTIM && m->envelope.type == DAFL_MSG_PEERS)
        rewrite_peers(l, m, swap_ek, a);
    if (m->from == VICTIM && m->envelope.type == DAFL_MSG_SHARES)
        read_packets(l, a, m->envelope.body);
    if (m->envelope.type == DAFL_MSG_SETUP_ACK) {
        assert_ok(dafl_get_setup_ack(&ack, m->envelope.body));
        ack.failed = dafl_members_none(CLIENTS);
        if (m->from == VICTIM)
            ack.h_setup = lab_server(l)->h_setup;
        dafl_put_setup_ack(&w, &ack);
    } else if (m->from == VICTIM && m->envelope.type == DAFL_MSG_READY) {
        dafl_put_ready(&w, &lab_server(l)->ctx);
    }
    if (w.len > 0)
        lab_letter_reseal(l, m, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    return true;
}

/* S12. EK: the victim deals its secrets to the attacker. */
static bool other_ek(bool stopped)
{
    middle a = {.n_shares = 0};
    lab_scenario s = rogue_scenario(random_u64(), swap_eks, &a);
    rogue_view view;
    bool reads = false;
    lab *l;

    draw_own(&a);
    l = lab_new(&s);
    if (stopped)
        rogue_check_others(l, DAFL_E_AUTH);
    else
        (void)lab_run(l);
    if (a.n_shares >= 3 && rogue_was_cast(l, VICTIM, 1, &view)) {
        uint8_t places[CLIENTS];
        dafl_key b, sk;
        for (uint16_t i = 0; i < a.n_shares; i++)
            places[i] = (uint8_t)(i + 1);
        assert_ok(dafl_shamir_join(&b, a.shares[0], places, 3));
        assert_ok(dafl_shamir_join(&sk, a.shares[1], places, 3));
        rogue_know(l, &view, &sk, &b);
        reads = rogue_reads(l, &view);
    }
    lab_free(&l);
    return reads;
}

/* The victim masks with the attacker instead of with the others. */
static bool swap_pks(lab *l, lab_letter *m, void *ctx)
{
    middle *a = ctx;
    rogue_setup s;

    if (m->to != VICTIM || m->envelope.type != DAFL_MSG_SETUP)
        return true;
    s = rogue_take_apart(m);
    for (uint16_t u = 0; u < s.m.n; u++)
        if (u != VICTIM)
            dafl_key_public((dafl_public *)(void *)rogue_keys_in(&s, u, 1),
                            &a->own[u]);
    rogue_put_together(l, m, &s);
    return true;
}

/* S12. pk_e: b of the victim is revealed as of everybody who is summed. */
static bool other_pk(bool stopped)
{
    middle a = {.n_shares = 0};
    lab_scenario s = rogue_scenario(random_u64(), swap_pks, &a);
    dafl_key b;
    rogue_view view;
    bool reads = false;
    lab *l;

    draw_own(&a);
    s.questions = 1;
    s.config.retries = 1;
    l = lab_new(&s);
    if (stopped)
        rogue_check_others(l, DAFL_E_AUTH);
    else
        (void)lab_run(l);
    if (rogue_was_cast(l, VICTIM, 1, &view) &&
        rogue_rebuild(l, VICTIM, 1, DAFL_REVEAL_B, 3, &b)) {
        dafl_public v = rogue_enrolled(l, VICTIM, 1);
        for (uint16_t u = 0; u < CLIENTS; u++) {
            dafl_public pk;
            dafl_key_public(&pk, &a.own[u]);
            if (u != VICTIM)
                assert_ok(dafl_key_pair(&view.keys[u], &a.own[u], &view.ctx2, u,
                                        &pk, VICTIM, &v));
        }
        dafl_key_self(&view.keys[VICTIM], &b, &view.ctx2, VICTIM);
        reads = rogue_reads(l, &view);
    }
    lab_free(&l);
    return reads;
}

/* Of client 4, for the victim: another commitment, the packet of somebody
 * else, another digest of what it dealt. */
static bool swap_rest(lab *l, lab_letter *m, void *ctx)
{
    middle *a = ctx;
    rogue_setup s;

    if (m->to != VICTIM || m->envelope.type != DAFL_MSG_SETUP)
        return true;
    s = rogue_take_apart(m);
    if (a->way == CB)
        rogue_keys_in(&s, OTHER, 1)[32] ^= 1;
    else if (a->way == DEALT)
        s.dealers[OTHER].h_shares.b[0] ^= 1;
    else
        memcpy(rogue_packet_in(&s, OTHER, VICTIM),
               rogue_packet_in(&s, COLLUDER, VICTIM), s.m.packet_len);
    rogue_put_together(l, m, &s);
    return true;
}

/* S12. cb_e and the digest of what was dealt are signed for. */
static bool other_digests(bool stopped)
{
    bool took = false;

    assert_true(stopped);
    for (int way = CB; way <= DEALT; way += DEALT - CB) {
        middle a = {.way = way};
        lab_scenario s = rogue_scenario(random_u64(), swap_rest, &a);
        lab *l = lab_new(&s);
        rogue_check_others(l, DAFL_E_AUTH);
        took |= rogue_sent(l, VICTIM, DAFL_MSG_SETUP_ACK, UINT32_MAX) > 0;
        lab_free(&l);
    }
    return took;
}

/* S12. */
static bool other_packet(bool stopped)
{
    middle a = {.way = PACKET};
    lab_scenario s = rogue_scenario(random_u64(), swap_rest, &a);
    lab *l = lab_new(&s);
    bool keeps = rogue_keeps_packet(l);

    assert_true(stopped);
    lab_free(&l);
    return keeps;
}

/* In the place of client 4, with its own signature. */
static void enrol_server(lab *l, void *ctx, dafl_peer *peer)
{
    dafl_run_id run = lab_run_id(l);
    dafl_digest signed_digest;

    (void)ctx;
    if (peer->client != OTHER)
        return;
    peer->client = lab_server_index(l);
    dafl_context_enroll(&signed_digest, &run, 0, peer->client, &peer->ek,
                        &peer->hk);
    dafl_sign(&peer->sig, &signed_digest, lab_identity(l, peer->client));
}

static bool list_server(lab *l, lab_letter *m, void *ctx)
{
    if (m->to == VICTIM && m->envelope.type == DAFL_MSG_PEERS)
        rewrite_peers(l, m, enrol_server, ctx);
    return true;
}

/* S12. The roster has the server's key too; that makes it no client. */
static bool server_among_peers(bool stopped)
{
    lab_scenario s = rogue_scenario(random_u64(), list_server, NULL);
    lab *l = lab_new(&s);
    bool dealt;

    assert_true(stopped);
    rogue_check_others(l, DAFL_E_FORMAT);
    dealt = rogue_sent(l, VICTIM, DAFL_MSG_SHARES, UINT32_MAX) > 0;
    lab_free(&l);
    return dealt;
}

/* ---- M6: keys that are no good ---- */

/* What a client sent to enrol, or what has come of that; false when there is
 * none yet. */
static bool enrolment_of(const lab *l, lab_way way, uint16_t client,
                         dafl_enroll *out)
{
    size_t at_entry = 0;
    const lab_seen *m = lab_find(l, &at_entry, way, client, LAB_ANYBODY,
                                 DAFL_MSG_ENROLL, UINT32_MAX);

    if (m != NULL)
        assert_ok(dafl_get_enroll(out, m->envelope.body));
    return m != NULL;
}

/* The colluder's enrolment with another EK, or with another pk in a slot, and
 * what it says to that. */
typedef struct {
    dafl_public bad; /* unless it is a copy */
    bool copy;       /* of client 0's */
    bool at_setup;   /* pk, else EK */
    dafl_writer keys;
    dafl_enroll enroll;
} point;

static bool make_bad(lab *l, point *a)
{
    dafl_run_id run = lab_run_id(l);
    dafl_digest signed_digest;
    dafl_enroll first;

    if (!enrolment_of(l, LAB_DELIVERED, 0, &first) ||
        !enrolment_of(l, LAB_SENT, COLLUDER, &a->enroll))
        return false;
    if (a->copy)
        a->bad = a->at_setup ? dafl_slot_keys_at(first.keys, 0).pk : first.ek;
    dafl_writer_clear(&a->keys);
    dafl_put_fixed(&a->keys, a->enroll.keys.ptr, a->enroll.keys.len);
    if (a->at_setup)
        memcpy(a->keys.ptr, a->bad.b, sizeof a->bad.b);
    else
        a->enroll.ek = a->bad;
    a->enroll.keys = dafl_writer_bytes(&a->keys);
    dafl_context_keys(&a->enroll.hk, a->enroll.keys);
    dafl_context_enroll(&signed_digest, &run, 0, COLLUDER, &a->enroll.ek,
                        &a->enroll.hk);
    dafl_sign(&a->enroll.sig, &signed_digest, lab_identity(l, COLLUDER));
    return true;
}

static void show_bad(lab *l, void *ctx, dafl_peer *peer)
{
    point *a = ctx;

    if (peer->client != COLLUDER)
        return;
    assert_true(make_bad(l, a));
    *peer = (dafl_peer){COLLUDER, a->enroll.ek, a->enroll.hk, a->enroll.sig};
}

/* The server, in league with the colluder, shows the victim the bad key. */
static bool show_bad_keys(lab *l, lab_letter *m, void *ctx)
{
    point *a = ctx;
    rogue_setup s;

    if (m->to == VICTIM && m->envelope.type == DAFL_MSG_PEERS)
        rewrite_peers(l, m, show_bad, a);
    if (m->to == VICTIM && m->envelope.type == DAFL_MSG_SETUP && a->at_setup) {
        s = rogue_take_apart(m);
        memcpy(rogue_keys_in(&s, COLLUDER, 1), a->bad.b, sizeof a->bad.b);
        rogue_put_together(l, m, &s);
    }
    return true;
}

/* Whether the victim goes on with it. */
static bool bad_key_is_used(bool stopped, point *a)
{
    lab_scenario s = rogue_scenario(random_u64(), show_bad_keys, a);
    lab *l = lab_new(&s);
    bool used;

    if (stopped)
        rogue_check_others(l, DAFL_E_BAD_KEY);
    else
        (void)lab_run(l);
    used = rogue_sent(l, VICTIM,
                      a->at_setup ? DAFL_MSG_SETUP_ACK : DAFL_MSG_SHARES,
                      UINT32_MAX) > 0;
    lab_free(&l);
    dafl_writer_drop(&a->keys);
    return used;
}

static bool repeated_ek(bool stopped)
{
    point a = {.copy = true};

    return bad_key_is_used(stopped, &a);
}

static bool repeated_pk(bool stopped)
{
    point a = {.copy = true, .at_setup = true};

    return bad_key_is_used(stopped, &a);
}

static bool low_order_keys(bool stopped)
{
    bool used = false;

    for (size_t i = 0; i < 2 * COUNT(low_order); i++) {
        point a = {.at_setup = i % 2 == 1};
        from_hex(a.bad.b, sizeof a.bad.b, low_order[i / 2]);
        a.bad.b[31] |= (uint8_t)(random_u64() & 0x80);
        used |= bad_key_is_used(stopped, &a);
    }
    return used;
}

/* A client alone, with an honest server. */
static bool enrol_bad_keys(lab *l, lab_letter *m, void *ctx)
{
    point *a = ctx;
    dafl_writer w = {0};

    if (m->from != COLLUDER || m->envelope.type != DAFL_MSG_ENROLL)
        return true;
    if (!make_bad(l, a))
        return false; /* the first who has a key keeps it */
    dafl_put_enroll(&w, &a->enroll);
    lab_letter_reseal(l, m, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    return true;
}

/* M6. Whether it can spoil the setup of all others, or be part of it. */
static bool bad_enrolment(bool stopped)
{
    bool spoilt = false;

    assert_true(stopped);
    for (int i = 0; i < 6; i++) {
        point a = {.copy = i < 2, .at_setup = i % 2 == 1};
        lab_scenario s = rogue_scenario(random_u64(), enrol_bad_keys, &a);
        dafl_members left;
        dafl_enroll own;
        lab *l = lab_new(&s);
        left = lab_members(l, ~(1u << COLLUDER));
        if (i == 2 || i == 3)
            from_hex(a.bad.b, sizeof a.bad.b,
                     low_order[random_size(0, COUNT(low_order) - 1)]);
        if (i > 3) { /* one of its own twice: of slot 3 as EK, or in slot 1 */
            while (!enrolment_of(l, LAB_SENT, COLLUDER, &own) && lab_step(l))
                ;
            a.bad = dafl_slot_keys_at(own.keys, 2).pk;
        }
        lab_check_done(l);
        lab_check_cohort(l, 0, &left);
        assert_true(
            rogue_blamed(l, lab_server_index(l), COLLUDER, DAFL_E_BAD_KEY) > 0);
        spoilt |= dafl_server_stat(lab_server(l)).enrolments > 1;
        lab_free(&l);
        dafl_writer_drop(&a.keys);
    }
    return spoilt;
}

const lab_attack attacks_keys[] = {
    {"S12 other_ek", DAFL_WEAK_PEERS, other_ek},
    {"S12 other_pk", DAFL_WEAK_KEYS, other_pk},
    {"S12 other_digests", DAFL_WEAK_NOTHING, other_digests},
    {"S12 other_packet", DAFL_WEAK_NOTHING, other_packet},
    {"S12 server_among_peers", DAFL_WEAK_NOTHING, server_among_peers},
    {"M6 repeated_ek", DAFL_WEAK_BAD_KEY, repeated_ek},
    {"M6 repeated_pk", DAFL_WEAK_BAD_KEY, repeated_pk},
    {"M6 low_order_keys", DAFL_WEAK_NOTHING, low_order_keys},
    {"M6 bad_enrolment", DAFL_WEAK_NOTHING, bad_enrolment},
    {0},
};
