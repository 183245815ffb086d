/* SPDX-License-Identifier: Apache-2.0 */
/* A server that has kept what was said in another run or slot (S13). */
#include "tests/check.h"

#include <sodium.h>

#include "protocol/client_state.h"
#include "protocol/server_state.h"
#include "tests/lab/attack.h"
#include "tests/lab/rogue.h"

enum { CLIENTS = ROGUE_CLIENTS, VICTIM = ROGUE_VICTIM, OTHER = ROGUE_OTHER };

#define KEPT_MAX 512

/* What a server keeps of a run, and what the parties do. */
typedef struct {
    bool second; /* run */
    bool packets, all;
    dafl_run_id run;
    dafl_writer invite, packet;
    struct {
        uint16_t from, to;
        dafl_writer bytes;
    } kept[KEPT_MAX];
    size_t n;
    lab_disk *disks[CLIENTS];
} past;

static bool keep_past(lab *l, lab_letter *m, void *ctx)
{
    past *a = ctx;
    rogue_setup s;

    if (m->to == VICTIM && m->envelope.type == DAFL_MSG_SETUP) {
        s = rogue_take_apart(m);
        if (!a->second)
            dafl_put_fixed(&a->packet, rogue_packet_in(&s, OTHER, VICTIM),
                           s.m.packet_len);
        else if (a->packets)
            memcpy(rogue_packet_in(&s, OTHER, VICTIM), a->packet.ptr,
                   a->packet.len);
        rogue_put_together(l, m, &s);
    }
    if (a->second)
        return true;
    if (m->to == VICTIM && m->envelope.type == DAFL_MSG_INVITE) {
        dafl_writer_clear(&a->invite);
        dafl_put_fixed(&a->invite, m->bytes, m->len);
    }
    if (a->n < KEPT_MAX && m->envelope.type != DAFL_MSG_HELLO) {
        dafl_put_fixed(&a->kept[a->n].bytes, m->bytes, m->len);
        a->kept[a->n].from = m->from;
        a->kept[a->n++].to = m->to;
    }
    return true;
}

/* A run of the same parties before, broken off in its second slot; and the
 * next, before anybody has done anything. */
static lab *second_run(past *a)
{
    lab_scenario s = rogue_scenario(random_u64(), keep_past, a);
    uint8_t other[1000];
    lab *l = lab_new(&s);

    assert_true(lab_run_to(l, DAFL_MSG_MODEL, 1));
    a->run = lab_run_id(l);
    for (uint16_t u = 0; u < CLIENTS; u++)
        a->disks[u] = lab_disk_copy(l, u);
    lab_free(&l);
    a->second = true;
    s.run = 1;
    l = lab_new(&s);
    randombytes_buf(other, sizeof other); /* else it draws the same keys */
    for (uint16_t u = 0; u < CLIENTS; u++)
        lab_disk_put(l, u, a->disks[u]);
    return l;
}

static void drop_past(past *a)
{
    for (uint16_t u = 0; u < CLIENTS; u++)
        lab_disk_free(&a->disks[u]);
    for (size_t i = 0; i < a->n; i++)
        dafl_writer_drop(&a->kept[i].bytes);
    dafl_writer_drop(&a->invite);
    dafl_writer_drop(&a->packet);
    free(a);
}

static past *new_past(void)
{
    past *a = calloc(1, sizeof *a);

    assert_non_null(a);
    return a;
}

/* Whether a client enrols in the run of which there are keys already. */
static bool enrols_again(const lab *l, const past *a)
{
    const lab_seen *m;
    size_t at_entry = 0;
    bool again = false;

    while ((m = lab_find(l, &at_entry, LAB_SENT, LAB_ANYBODY, LAB_ANYBODY,
                         DAFL_MSG_ENROLL, UINT32_MAX)) != NULL)
        again |= memcmp(&m->envelope.run, &a->run, sizeof a->run) == 0;
    return again;
}

static bool old_invite(bool stopped)
{
    past *a = new_past();
    lab *l = second_run(a);
    bool again;

    assert_true(lab_run_to(l, DAFL_MSG_MODEL, 0));
    lab_post(l, lab_server_index(l), VICTIM, dafl_writer_bytes(&a->invite), 5);
    if (stopped) {
        lab_check_done(l);
        assert_int_equal(
            rogue_blamed(l, VICTIM, lab_server_index(l), DAFL_E_REPLAY), 1);
    } else {
        (void)lab_run(l);
    }
    again = enrols_again(l, a);
    lab_free(&l);
    drop_past(a);
    return again;
}

/* S13. A packet that the same dealer sealed for the same holder. */
static bool old_packet(bool stopped)
{
    past *a = new_past();
    lab *l;
    bool keeps;

    assert_true(stopped);
    a->packets = true;
    l = second_run(a);
    keeps = rogue_keeps_packet(l);
    lab_free(&l);
    drop_past(a);
    return keeps;
}

/* S13. Everything that was ever said, to everybody, the last first: its numbers
 * are ahead of those of this run. */
static bool old_messages(bool stopped)
{
    past *a = new_past();
    lab *l = second_run(a);
    dafl_members all = lab_everybody(l);
    bool again;
    size_t posted = 0;

    assert_true(stopped);
    assert_true(lab_run_to(l, DAFL_MSG_PEERS, UINT32_MAX));
    while (lab_step(l))
        for (size_t i = 0; i < 4 && posted < a->n; i++) {
            size_t last = a->n - 1 - posted++;
            lab_post(l, a->kept[last].from, a->kept[last].to,
                     dafl_writer_bytes(&a->kept[last].bytes), 1);
        }
    lab_check_done(l);
    lab_check_cohort(l, 0, &all);
    assert_int_equal(posted, a->n);
    for (uint16_t u = 0; u <= CLIENTS; u++) {
        size_t replays = lab_count(l, u, DAFL_EVENT_ERROR, DAFL_E_REPLAY);
        assert_true(replays > 0);
        assert_int_equal(lab_count(l, u, DAFL_EVENT_ERROR, DAFL_FAULT_COUNT),
                         replays);
    }
    again = enrols_again(l, a);
    lab_free(&l);
    drop_past(a);
    return again;
}

/* S13. The question of slot 2, asked in slot 1, whose secrets are gone: masks
 * would be made of zeros. */
static bool old_slot(bool stopped)
{
    static const dafl_key zeros;
    lab_scenario s = rogue_scenario(random_u64(), NULL, NULL);
    lab *l = lab_new(&s);
    uint16_t server = lab_server_index(l);
    dafl_members all = lab_everybody(l);
    const lab_seen *model;
    dafl_writer w = {0}, cast = {0};
    rogue_view view;
    size_t at_entry = 0;
    bool reads;

    while (rogue_sent(l, VICTIM, DAFL_MSG_READY, 2) == 0 && lab_step(l))
        ;
    model = lab_find(l, &at_entry, LAB_SENT, server, VICTIM, DAFL_MSG_MODEL, 2);
    assert_non_null(model);
    dafl_put_cast(&cast, &all);
    /* The very bytes, then with a number of today; CAST too. */
    at_entry = 0;
    model = lab_find(l, &at_entry, LAB_SENT, server, VICTIM, DAFL_MSG_MODEL, 1);
    assert_non_null(model);
    lab_post(l, server, VICTIM, model->bytes, 0);
    model = lab_find(l, &at_entry, LAB_SENT, server, VICTIM, DAFL_MSG_MODEL, 2);
    assert_non_null(model);
    lab_seal(l, &w, server, DAFL_MSG_MODEL, 1, model->seq + 1000,
             model->envelope.body);
    lab_post(l, server, VICTIM, dafl_writer_bytes(&w), 0);
    dafl_writer_clear(&w);
    lab_seal(l, &w, server, DAFL_MSG_CAST, 1, model->seq + 1001,
             dafl_writer_bytes(&cast));
    lab_post(l, server, VICTIM, dafl_writer_bytes(&w), 0);
    dafl_writer_drop(&w);
    dafl_writer_drop(&cast);
    (void)lab_run(l);
    if (stopped) {
        lab_check_invariants(l);
        assert_int_equal(lab_outcome_of(l), LAB_DONE);
        assert_true(rogue_blamed(l, VICTIM, server, DAFL_E_SLOT_SPENT) > 0);
        assert_true(rogue_blamed(l, VICTIM, server, DAFL_E_REPLAY) > 0);
    }
    assert_true(rogue_was_cast(l, VICTIM, 1, &view));
    rogue_know(l, &view, &zeros, &zeros);
    reads = rogue_reads(l, &view);
    lab_free(&l);
    return reads;
}

/* ---- from another enrolment of the same run ---- */

/* Twelve clients in cells of three, t = 7, one slot in each enrolment. In the
 * first the victim's cell, 3 4 5, is said to be gone after CAST: its keys sk
 * are revealed. In the second the victim is shown the old entries of the other
 * two, and a cohort of the three of them. */
enum { SINGLED = 4, FIRST = 3, LAST = 5, NEEDED = 7 };

typedef struct {
    bool second; /* enrolment */
    dafl_peer peers[LAST + 1];
    dafl_dealer dealers[LAST + 1];
    dafl_writer keys[LAST + 1];
    dafl_writer upload;
    dafl_key b; /* the victim's, which nobody tells the server */
} old_keys;

static bool is_mate(uint16_t client)
{
    return client >= FIRST && client <= LAST && client != SINGLED;
}

static void show_old_peers(lab *l, old_keys *a, lab_letter *m)
{
    dafl_peer peers[DAFL_CLIENTS_MAX];
    dafl_peers list;
    dafl_writer w = {0};

    assert_ok(dafl_get_peers(&list, m->envelope.body));
    for (size_t i = 0; i < list.n; i++) {
        peers[i] = dafl_peers_at(&list, i);
        if (is_mate(peers[i].client) && a->second)
            peers[i] = a->peers[peers[i].client];
        else if (is_mate(peers[i].client))
            a->peers[peers[i].client] = peers[i];
    }
    dafl_put_peers(&w, peers, list.n);
    lab_letter_reseal(l, m, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
}

static void show_old_setup(lab *l, old_keys *a, lab_letter *m)
{
    rogue_setup s = rogue_take_apart(m);
    size_t len = s.m.n_slots * (size_t)DAFL_SLOT_KEYS_BYTES;

    for (uint16_t u = FIRST; u <= LAST; u++) {
        if (!is_mate(u))
            continue;
        if (a->second) {
            s.dealers[u] = a->dealers[u];
            memcpy(rogue_keys_in(&s, u, 1), a->keys[u].ptr, len);
        } else {
            a->dealers[u] = s.dealers[u];
            dafl_put_fixed(&a->keys[u], rogue_keys_in(&s, u, 1), len);
        }
    }
    rogue_put_together(l, m, &s);
}

/* What the victim says, as the server machine would like to hear it. */
static void put_agreeing(lab *l, old_keys *a, dafl_writer *w,
                         const lab_letter *m)
{
    const dafl_server *s = lab_server(l);
    dafl_setup_ack ack;
    dafl_end_msg end;

    if (m->envelope.type == DAFL_MSG_SETUP_ACK) {
        assert_ok(dafl_get_setup_ack(&ack, m->envelope.body));
        ack.h_setup = s->h_setup;
        dafl_put_setup_ack(w, &ack);
    } else if (m->envelope.type == DAFL_MSG_READY) {
        dafl_put_ready(w, &s->ctx);
    } else if (m->envelope.type == DAFL_MSG_END) {
        assert_ok(dafl_get_end_msg(&end, m->envelope.body));
        dafl_context_upload(&end.dig, &s->ctx2, SINGLED,
                            dafl_writer_bytes(&a->upload));
        dafl_put_end(w, &end);
        memcpy(a->b.b, dafl_client_record(lab_client(l, SINGLED), 2) + 32, 32);
    }
}

static bool play_old_keys(lab *l, lab_letter *m, void *ctx)
{
    dafl_members cell = lab_members(l, 7u << FIRST);
    old_keys *a = ctx;
    dafl_invite invite;
    dafl_upload chunk;
    dafl_writer w = {0};

    if (m->envelope.type == DAFL_MSG_INVITE) {
        assert_ok(dafl_get_invite(&invite, m->envelope.body));
        a->second = invite.enrolment == 1;
    }
    if (m->to == SINGLED && m->envelope.type == DAFL_MSG_PEERS)
        show_old_peers(l, a, m);
    if (m->to == SINGLED && m->envelope.type == DAFL_MSG_SETUP)
        show_old_setup(l, a, m);
    if (!a->second || (m->to != SINGLED && m->from != SINGLED))
        return true;
    if (m->envelope.type == DAFL_MSG_SURV)
        return false; /* the others' signatures are enough */
    if (m->envelope.type == DAFL_MSG_UPLOAD) {
        assert_ok(dafl_get_upload(&chunk, m->envelope.body));
        dafl_writer_clear(&a->upload);
        dafl_put_fixed(&a->upload, chunk.chunk.ptr, chunk.chunk.len);
    }
    if (m->envelope.type == DAFL_MSG_CAST)
        dafl_put_cast(&w, &cell);
    else
        put_agreeing(l, a, &w, m);
    if (w.len > 0)
        lab_letter_reseal(l, m, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    return true;
}

/* What the victim enrolled the second time. */
static dafl_public second_key(const lab *l)
{
    size_t at_entry = 0;
    const lab_seen *m = NULL;
    dafl_enroll enroll;

    for (int i = 0; i < 2; i++)
        m = lab_find(l, &at_entry, LAB_SENT, SINGLED, LAB_ANYBODY,
                     DAFL_MSG_ENROLL, UINT32_MAX);
    assert_non_null(m);
    assert_ok(dafl_get_enroll(&enroll, m->envelope.body));
    return dafl_slot_keys_at(enroll.keys, 0).pk;
}

/* Whether sk of slot 1 of its mates takes all masks off but the victim's own.
 * That one stays: nobody else signs for a cohort of the three, so b of slot 2
 * is not revealed. To see that it is the only one left, take it off. */
static bool strips_singled(const lab *l, const old_keys *a)
{
    dafl_public own;
    rogue_view view;
    dafl_key b;

    assert_false(rogue_rebuild(l, SINGLED, 2, DAFL_REVEAL_B, NEEDED, &b));
    if (!rogue_was_cast(l, SINGLED, 2, &view))
        return false;
    own = second_key(l);
    dafl_key_self(&view.keys[SINGLED], &a->b, &view.ctx2, SINGLED);
    for (uint16_t u = FIRST; u <= LAST; u++) {
        dafl_public pk = rogue_enrolled(l, u, 1);
        dafl_key sk;
        if (!is_mate(u))
            continue;
        assert_true(rogue_rebuild(l, u, 1, DAFL_REVEAL_SK, NEEDED, &sk));
        assert_ok(dafl_key_pair(&view.keys[u], &sk, &view.ctx2, u, &pk, SINGLED,
                                &own));
    }
    return rogue_reads(l, &view);
}

/* S13. Keys of an earlier enrolment, of which the server knows some. With them
 * it needs no more than the victim's b. */
static bool old_enrolment(bool stopped)
{
    old_keys a = {.second = false};
    lab_scenario s = lab_scenario_for(12, 3, random_u64());
    dafl_members left;
    bool stripped;
    lab *l;

    s.config.policy.n_min = 9;
    lab_scenario_collude(&s, 1);
    s.config.slots = 1;
    s.config.retries = 1;
    s.questions = 2;
    s.intercept = play_old_keys;
    s.ctx = &a;
    s.wrong_sums_expected = true;
    l = lab_new(&s);
    left = rogue_without(l, SINGLED);
    lab_leave(l, LAST, 0, LAB_AT_CAST, LAB_NEXT_SLOT);
    if (stopped) {
        lab_check_done(l);
        lab_check_cohort(l, 1, &left);
        assert_true(rogue_blamed(l, SINGLED, lab_server_index(l), DAFL_E_AUTH) >
                    0);
    } else {
        (void)lab_run(l);
    }
    lab_check_cohort(l, 0, &left);
    stripped = strips_singled(l, &a);
    lab_free(&l);
    for (uint16_t u = 0; u <= LAST; u++)
        dafl_writer_drop(&a.keys[u]);
    dafl_writer_drop(&a.upload);
    return stripped;
}

/* ---- D8 ---- */

/* A client's disk is put back to what it was a life ago, while the server has
 * heard of that life; in between the server restarts too. Another client is
 * sent nothing but the answer to an old HELLO of its own. */
static bool snapshot_rollback(bool stopped)
{
    const uint16_t victim = 1, honest = 4;
    lab_scenario s = lab_scenario_for(12, 3, random_u64());
    const lab_seen *hello;
    dafl_writer old = {0};
    lab_disk *disk;
    size_t at_entry = 0;
    bool goes_on;
    lab *l;

    s.config.policy.n_min = 9;
    lab_scenario_collude(&s, 1);
    s.questions = 8;
    l = lab_new(&s);
    assert_true(lab_run_to(l, DAFL_MSG_MODEL, 1));
    disk = lab_disk_copy(l, victim);
    for (uint32_t life = 0; life < 2; life++) {
        lab_crash(l, victim, 0);
        assert_true(lab_run_to(l, DAFL_MSG_CONF, 2 + life));
    }
    lab_crash(l, lab_server_index(l), 0);
    assert_true(lab_run_to(l, DAFL_MSG_MODEL, 5));
    lab_check_invariants(l);
    hello = lab_find(l, &at_entry, LAB_SENT, honest, LAB_ANYBODY,
                     DAFL_MSG_HELLO, UINT32_MAX);
    assert_non_null(hello);
    dafl_put_fixed(&old, hello->bytes.ptr, hello->bytes.len);
    lab_post(l, honest, lab_server_index(l), dafl_writer_bytes(&old), 0);
    lab_crash(l, victim, LAB_NEVER);
    lab_disk_put(l, victim, disk);
    lab_restart(l, victim);
    assert_int_equal(lab_run(l), LAB_DONE);
    assert_int_equal(lab_count(l, lab_server_index(l), DAFL_EVENT_ERROR,
                               DAFL_E_STATE_LOST) >= 2,
                     true);
    assert_int_equal(lab_count(l, honest, DAFL_EVENT_ERROR, DAFL_E_STATE_LOST),
                     0);
    assert_int_equal(dafl_client_fault(lab_client(l, honest)), DAFL_FAULT_NONE);
    goes_on = lab_count(l, victim, DAFL_EVENT_ERROR, DAFL_E_STATE_LOST) == 0;
    if (stopped)
        assert_int_equal(dafl_client_fault(lab_client(l, victim)),
                         DAFL_E_STATE_LOST);
    lab_disk_free(&disk);
    dafl_writer_drop(&old);
    lab_free(&l);
    return goes_on;
}

const lab_attack attacks_replay[] = {
    {"D8 snapshot_rollback", DAFL_WEAK_ROLLBACK, snapshot_rollback},
    {"S13 old_invite", DAFL_WEAK_RUNS, old_invite},
    {"S13 old_packet", DAFL_WEAK_NOTHING, old_packet},
    {"S13 old_messages", DAFL_WEAK_NOTHING, old_messages},
    {"S13 old_slot", DAFL_WEAK_SLOT, old_slot},
    {"S13 old_enrolment", DAFL_WEAK_ENROLMENT, old_enrolment},
    {0},
};
