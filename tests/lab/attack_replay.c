/* SPDX-License-Identifier: Apache-2.0 */
/* A server that has kept what was said in another run or slot (S13). */
#include "tests/check.h"

#include <sodium.h>

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

/* S13. Everything that was ever said, to everybody, at any time. */
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
        for (size_t i = 0; i < 4 && posted < a->n; i++, posted++)
            lab_post(l, a->kept[posted].from, a->kept[posted].to,
                     dafl_writer_bytes(&a->kept[posted].bytes), 1);
    lab_check_done(l);
    lab_check_cohort(l, 0, &all);
    assert_int_equal(posted, a->n);
    for (uint16_t u = 0; u <= CLIENTS; u++)
        assert_true(lab_count(l, u, DAFL_EVENT_ERROR, DAFL_E_REPLAY) > 0);
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

const lab_attack attacks_replay[] = {
    {"S13 old_invite", DAFL_WEAK_RUNS, old_invite},
    {"S13 old_packet", DAFL_WEAK_NOTHING, old_packet},
    {"S13 old_messages", DAFL_WEAK_NOTHING, old_messages},
    {"S13 old_slot", DAFL_WEAK_SLOT, old_slot},
    {0},
};
