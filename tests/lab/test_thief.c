/* SPDX-License-Identifier: Apache-2.0 */
/* Forward secrecy (C6): whoever has recorded everything on the wire, and breaks
 * into all clients once a slot is closed, opens nothing of it but the sum that
 * everybody may know. That memory has no more than the disk is what test_wipe.c
 * shows.
 *
 * Built twice: in the second program clients keep what they should wipe. */
#include "tests/check.h"

#include "protocol/weaken.h"
#include "tests/lab/leak.h"

enum { CLIENTS = 9, LATE = 4 };

/* When the thief comes. */
typedef enum {
    SOON,   /* the slot has its sum, and is not closed yet */
    CLOSED, /* the next one has begun for everybody */
    OVER,   /* after the run */
} moment;

static size_t have_model(const lab *l, uint32_t slot)
{
    const lab_event *events;
    size_t n = lab_events(l, &events);
    dafl_members have = dafl_members_none(CLIENTS);

    for (size_t i = 0; i < n; i++)
        if (events[i].party < CLIENTS && events[i].event.slot == slot &&
            events[i].event.kind == DAFL_EVENT_MODEL)
            dafl_members_add(&have, events[i].party);
    return dafl_members_count(&have);
}

static bool has_come(lab *l, moment when)
{
    if (when == SOON)
        return lab_count(l, lab_server_index(l), DAFL_EVENT_RESULT,
                         DAFL_FAULT_NONE) > 0;
    return when == CLOSED ? have_model(l, 2) == CLIENTS
                          : lab_outcome_of(l) != LAB_RUNNING;
}

typedef struct {
    size_t dim;  /* of what can be computed of slot 1 */
    bool sum;    /* that is the sum over U3 */
    bool reads;  /* the upload that stayed closed */
    bool record; /* somebody has a secret of slot 1 on disk */
} loot;

/* Client 4 is cut off when it has sent its upload, of which nothing arrives:
 * its cell, 3 4 5, is left out; what 3 and 5 sent stays closed as well. */
static loot rob(moment when)
{
    lab_scenario s = lab_scenario_for(CLIENTS, 3, random_u64());
    dafl_members none = dafl_members_none(CLIENTS), u3;
    const leak_upload *late = NULL;
    loot got = {0};
    uint64_t words[4];
    leak *k;
    lab *l;

    s.net.latency_min = 10;
    s.net.latency_max = 12;
    l = lab_new(&s);
    lab_leave(l, LATE, 0, LAB_AT_CAST, LAB_NEXT_SLOT);
    k = leak_new(l, &none, true);
    do
        leak_watch(k);
    while (!has_come(l, when) && lab_step(l));
    leak_watch(k);
    assert_true(has_come(l, when));
    for (uint16_t u = 0; u < CLIENTS; u++) {
        leak_rob(k, u);
        got.record |= lab_disk_secret(l, u, 1).ptr != NULL;
    }
    u3 = lab_members(l, 0x1c7);
    got.dim = leak_dim(k, 1);
    got.sum = leak_is_sum(k, 1, &u3);
    assert_true(leak_is_real(k, 1));
    for (size_t i = 0; i < leak_uploads(k); i++)
        if (leak_upload_at(k, i)->client == LATE &&
            leak_upload_at(k, i)->slot == 1)
            late = leak_upload_at(k, i);
    assert_non_null(late); /* it is on the tape */
    got.reads = leak_strip(k, late, words, COUNT(words)) == 0;
    /* Its pair keys are known, since it was left out; its self mask is not. */
    assert_true(leak_knows_sk(k, LATE, 1));
    assert_int_equal(leak_knows_b(k, LATE, 1), got.reads);
    assert_int_equal(lab_run(l), LAB_DONE);
    leak_free(&k);
    lab_free(&l);
    return got;
}

static void a_thief_opens_no_upload_of_a_closed_slot(void **state)
{
    (void)state;
    for (int when = CLOSED; when <= OVER; when++) {
        loot got = rob((moment)when);
        assert_int_equal(got.dim, 1);
        assert_true(got.sum);
        assert_false(got.reads);
        assert_false(got.record);
    }
}

/* That there was something to be wiped. */
static void a_thief_who_comes_too_soon_reads_everything(void **state)
{
    loot got = rob(SOON);

    (void)state;
    assert_int_equal(got.dim, CLIENTS);
    assert_true(got.reads);
    assert_true(got.record);
}

#ifdef DAFL_WEAKEN
static void without_wiping_a_thief_reads_everything(void **state)
{
    (void)state;
    dafl_weakened = DAFL_WEAK_WIPE;
    for (int when = CLOSED; when <= OVER; when++) {
        loot got = rob((moment)when);
        assert_int_equal(got.dim, CLIENTS);
        assert_true(got.reads);
        assert_true(got.record);
    }
    dafl_weakened = DAFL_WEAK_NOTHING;
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thief_opens_no_upload_of_a_closed_slot),
        cmocka_unit_test(a_thief_who_comes_too_soon_reads_everything),
#ifdef DAFL_WEAKEN
        cmocka_unit_test(without_wiping_a_thief_reads_everything),
#endif
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
