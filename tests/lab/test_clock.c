/* SPDX-License-Identifier: Apache-2.0 */
/* A server whose clock jumps, stands still or runs backwards (R4): it may wait
 * too long or not long enough, and nothing else changes. Clients have no clock.
 *
 * The linker puts the functions below between the lab and the server: the
 * server gets the time from them. */
#include "tests/check.h"

#include "tests/lab/leak.h"

#define DAY 86400000u
#define BASE ((uint64_t)20000 * DAY)

typedef enum { JUMPS, FROZEN, BACKWARDS, WILD, CLOCKS } clock_kind;

static struct {
    clock_kind kind;
    uint64_t base;
    lab *lab;
    unsigned rarely; /* one look in so many finds that the clock has jumped */
    size_t jumps;
} server_clock;

/* What the server's clock shows. */
static uint64_t look(uint64_t now)
{
    static const uint64_t wild[] = {0, 1, BASE, UINT64_MAX - 30000, UINT64_MAX};
    bool jump = random_u64() % server_clock.rarely == 0;

    switch (server_clock.kind) {
    case JUMPS:
        if (jump)
            server_clock.base = random_u64() % 2 == 0 && server_clock.base > DAY
                                    ? server_clock.base - DAY
                                    : server_clock.base + DAY;
        break;
    case FROZEN:
        return BASE;
    case BACKWARDS:
        return BASE - now;
    case WILD:
        if (jump)
            server_clock.base = wild[random_u64() % COUNT(wild)];
        break;
    case CLOCKS:
        break;
    }
    server_clock.jumps += jump;
    return server_clock.base + now;
}

dafl_err __real_dafl_server_start(dafl_server *s, uint64_t now);
dafl_err __real_dafl_server_receive(dafl_server *s, dafl_bytes message,
                                    uint64_t now);
dafl_err __real_dafl_server_lost(dafl_server *s, uint16_t client, uint64_t now);
dafl_err __real_dafl_server_tick(dafl_server *s, uint64_t now);
uint64_t __real_dafl_server_deadline(const dafl_server *s);
dafl_err __wrap_dafl_server_start(dafl_server *s, uint64_t now);
dafl_err __wrap_dafl_server_receive(dafl_server *s, dafl_bytes message,
                                    uint64_t now);
dafl_err __wrap_dafl_server_lost(dafl_server *s, uint16_t client, uint64_t now);
dafl_err __wrap_dafl_server_tick(dafl_server *s, uint64_t now);
uint64_t __wrap_dafl_server_deadline(const dafl_server *s);

dafl_err __wrap_dafl_server_start(dafl_server *s, uint64_t now)
{
    return __real_dafl_server_start(s, look(now));
}

dafl_err __wrap_dafl_server_receive(dafl_server *s, dafl_bytes message,
                                    uint64_t now)
{
    return __real_dafl_server_receive(s, message, look(now));
}

dafl_err __wrap_dafl_server_lost(dafl_server *s, uint16_t client, uint64_t now)
{
    return __real_dafl_server_lost(s, client, look(now));
}

dafl_err __wrap_dafl_server_tick(dafl_server *s, uint64_t now)
{
    return __real_dafl_server_tick(s, look(now));
}

/* Whoever drives a server by such a clock looks at it again and again. */
uint64_t __wrap_dafl_server_deadline(const dafl_server *s)
{
    return __real_dafl_server_deadline(s) == UINT64_MAX
               ? UINT64_MAX
               : lab_now(server_clock.lab) + 500;
}

/* ---- runs ---- */

/* What a deadline can make of a message or a slot: too late for its phase, or
 * too few came in time. No other fault has to do with time. */
static bool is_of_deadlines(dafl_fault fault)
{
    return fault == DAFL_FAULT_NONE || fault == DAFL_E_TIMEOUT ||
           fault == DAFL_E_STATE || fault == DAFL_E_COHORT ||
           fault == DAFL_E_QUORUM || fault == DAFL_E_UNRECOVERABLE ||
           fault == DAFL_E_PARAMS;
}

static lab *new_lab(clock_kind kind, uint16_t k, uint16_t cell_size)
{
    lab_scenario s = lab_scenario_for(k, cell_size, random_u64());
    lab *l;

    s.questions = 4;
    s.steps_max = 200000;
    l = lab_new(&s);
    server_clock.kind = kind;
    server_clock.base = BASE;
    server_clock.rarely = (unsigned)random_size(10, 100);
    server_clock.lab = l;
    server_clock.jumps = 0;
    return l;
}

static void check_events(lab *l)
{
    const lab_event *events;
    size_t n = lab_events(l, &events);

    for (size_t i = 0; i < n; i++)
        if (!is_of_deadlines(events[i].event.fault)) {
            lab_dump(l);
            fail_msg("seed %llu: party %u tells %s",
                     (unsigned long long)lab_scenario_of(l)->seed,
                     (unsigned)events[i].party,
                     dafl_fault_name(events[i].event.fault));
        }
}

/* The sums are exact and of cohorts that may be summed (lab_check_invariants),
 * and an attacker who taps the wire learns one sum a slot and nothing below a
 * cell. A clock that jumps all the time may use up the attempts. */
static void run_and_check(lab *l)
{
    dafl_members none = dafl_members_none(lab_server_index(l));
    leak *k = leak_new(l, &none, true);
    const lab_sum *sums;
    lab_outcome outcome = leak_run(k);
    size_t n;

    lab_check_invariants(l);
    assert_true(outcome == LAB_DONE ||
                (outcome == LAB_FAILED && server_clock.kind != FROZEN &&
                 server_clock.kind != BACKWARDS));
    check_events(l);
    n = lab_sums(l, &sums);
    for (size_t i = 0; i < n; i++)
        assert_true(lab_config(l)->policy.g == 1 ||
                    dafl_roster_whole_cells(lab_roster(l), &sums[i].cohort));
    for (uint32_t slot = 1; slot <= leak_last_slot(k); slot++)
        assert_true(leak_dim(k, slot) <= 1 && leak_is_real(k, slot));
    assert_true(leak_run_is_of_cells(k));
    leak_free(&k);
}

static void any_clock_gives_exact_sums_of_whole_cells(void **state)
{
    size_t jumps = 0;

    (void)state;
    for (int i = 0; i < 10 * CLOCKS; i++) {
        bool cells = i / CLOCKS % 2 == 1;
        uint16_t k = cells ? 9 : 6;
        lab *l = new_lab((clock_kind)(i % CLOCKS), k, cells ? 3 : 1);

        for (size_t n = random_size(0, 6); n > 0; n--)
            (random_u64() % 4 == 0 ? lab_leave_crashing : lab_leave)(
                l, (uint16_t)random_size(0, k - 1u),
                (uint32_t)random_size(0, 3),
                (lab_phase)random_size(0, LAB_PHASES - 1),
                random_u64() % 2 == 0 ? LAB_NEXT_SLOT : LAB_SOON);
        run_and_check(l);
        jumps += server_clock.jumps;
        lab_free(&l);
    }
    assert_true(jumps > 0);
}

/* Nobody is late by a clock that does not run. */
static void a_clock_that_stands_or_runs_back_ends_no_wait(void **state)
{
    static const clock_kind kinds[] = {FROZEN, BACKWARDS};

    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        lab *l = new_lab(kinds[i], 6, 1);
        dafl_members all = lab_everybody(l);

        run_and_check(l);
        for (uint32_t q = 0; q < lab_scenario_of(l)->questions; q++)
            lab_check_cohort(l, q, &all);
        assert_int_equal(
            lab_count(l, LAB_ANYBODY, DAFL_EVENT_ERROR, DAFL_FAULT_COUNT), 0);
        lab_free(&l);
    }
}

/* The control: the clock is really the one the server goes by. */
static void a_jump_forward_ends_a_wait(void **state)
{
    lab *l = new_lab(JUMPS, 6, 1);

    (void)state;
    server_clock.rarely = UINT32_MAX;
    assert_true(lab_run_to(l, DAFL_MSG_CAST, 1));
    server_clock.base += DAY;
    run_and_check(l);
    assert_true(lab_count(l, lab_server_index(l), DAFL_EVENT_ERROR,
                          DAFL_E_TIMEOUT) >= 6);
    assert_true(lab_now(l) < lab_config(l)->wait[DAFL_WAIT_UPLOAD]);
    lab_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_clock_gives_exact_sums_of_whole_cells),
        cmocka_unit_test(a_clock_that_stands_or_runs_back_ends_no_wait),
        cmocka_unit_test(a_jump_forward_ends_a_wait),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
