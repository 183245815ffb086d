/* SPDX-License-Identifier: Apache-2.0 */
/* What the server learns of a slot (C2 rank_one_slot): the one sum over its
 * cohort, whoever goes away when, whoever colludes. With the argument "all"
 * every set of dropouts of ten clients is tried, else some of them. Servers
 * that deviate are in attack_slot.c and attack_quorum.c. */
#include "tests/check.h"

#include "tests/lab/leak.h"

static bool try_all;

typedef struct {
    uint32_t opened, refused, torn; /* slots; torn: confirmed, without a sum */
} tally;

/* What the server did in a slot. */
typedef struct {
    bool surveyed, confirmed, opened;
    dafl_members u3;
} fate;

static fate fate_of(const lab *l, uint32_t slot)
{
    const lab_event *events;
    size_t n = lab_events(l, &events);
    fate f = {.opened = false};

    for (size_t i = 0; i < n; i++) {
        const dafl_event *e = &events[i].event;
        if (events[i].party != lab_server_index(l) || e->slot != slot)
            continue;
        if (e->kind == DAFL_EVENT_SURV) {
            f.surveyed = true;
            f.u3 = e->set;
        }
        f.confirmed |= e->kind == DAFL_EVENT_CONF;
        f.opened |= e->kind == DAFL_EVENT_RESULT && e->fault == DAFL_FAULT_NONE;
    }
    return f;
}

/* Exactly the sum over U3, and its numbers can really be computed; nothing at
 * all unless it was confirmed. */
static void check_slot(lab *l, leak *k, uint32_t slot, const fate *f)
{
    bool right = leak_is_real(k, slot);

    if (f->opened)
        right = right && leak_is_sum(k, slot, &f->u3);
    else if (f->confirmed) /* enough shares may have come, or not */
        right =
            right && (leak_dim(k, slot) == 0 || leak_is_sum(k, slot, &f->u3));
    else
        right = right && leak_dim(k, slot) == 0;
    if (right)
        return;
    lab_dump(l);
    fail_msg("seed %llu, slot %u: %s, yet %zu combinations can be computed",
             (unsigned long long)lab_scenario_of(l)->seed, (unsigned)slot,
             f->opened      ? "opened"
             : f->confirmed ? "confirmed"
                            : "refused",
             leak_dim(k, slot));
}

#define VIEWS 4
#define PATTERNS_MAX 32u /* in one run */

/* Attackers with 0 .. c colluders chosen at random, and one that also taps the
 * wire. */
static size_t make_views(lab *l, leak **views)
{
    const lab_scenario *s = lab_scenario_of(l);
    dafl_members colluders = dafl_members_none(s->k);
    size_t n = 0;

    views[n++] = leak_new(l, &colluders, false);
    while (dafl_members_count(&colluders) < s->config.policy.c) {
        dafl_members_add(&colluders, random_size(0, s->k - 1u));
        if (dafl_members_count(&colluders) == n)
            views[n++] = leak_new(l, &colluders, false);
    }
    views[n++] = leak_new(l, &colluders, true);
    return n;
}

static void run_and_check(lab *l, tally *t)
{
    leak *views[VIEWS];
    size_t n = make_views(l, views);
    uint32_t last;

    assert_true(n <= VIEWS);
    do
        for (size_t i = 0; i < n; i++)
            leak_watch(views[i]);
    while (lab_step(l));
    lab_check_done(l);
    last = dafl_server_slot(lab_server(l));
    for (uint32_t slot = 1; slot <= last; slot++) {
        fate f = fate_of(l, slot);
        t->opened += f.opened;
        t->torn += f.confirmed && !f.opened;
        t->refused += !f.confirmed;
        for (size_t i = 0; i < n; i++)
            check_slot(l, views[i], slot, &f);
    }
    for (size_t i = 0; i < n; i++) {
        assert_true(leak_run_is_of_cells(views[i]));
        leak_free(&views[i]);
    }
}

/* That exactly these dropped out: who left before its END is not in the first
 * attempt at the question, everybody is in the second. */
static void check_dropouts(lab *l, uint32_t question, uint32_t early)
{
    dafl_members all = lab_everybody(l), left = lab_members(l, ~early);
    uint32_t slot = 1;
    fate f;

    while (lab_slot_question(l, slot) != question)
        slot++;
    f = fate_of(l, slot);
    assert_true(!f.surveyed || dafl_members_equal(&f.u3, &left));
    lab_check_cohort(l, question, f.opened ? &left : &all);
}

/* One set of dropouts a question; each of them leaves at a moment of its own
 * and is back for the next question. */
static void run_patterns(uint16_t k, uint16_t cell_size, uint16_t c,
                         const uint32_t *patterns, uint32_t n, tally *t)
{
    lab_scenario s = lab_scenario_for(k, cell_size, random_u64());
    uint32_t early[PATTERNS_MAX] = {0};
    lab *l;

    assert_true(n <= PATTERNS_MAX);
    lab_scenario_collude(&s, c);
    s.questions = n;
    s.config.slots = 2 * n + 2; /* each question may need two */
    s.steps_max *= n;
    /* Who comes back is there before the next cast. */
    s.net.latency_min = 10;
    s.net.latency_max = 12;
    l = lab_new(&s);
    for (uint32_t q = 0; q < n; q++)
        for (uint16_t u = 0; u < k; u++)
            if (patterns[q] >> u & 1) {
                lab_phase phase = (lab_phase)random_size(0, LAB_PHASES - 1);
                early[q] |= (uint32_t)(phase < LAB_AFTER_END) << u;
                lab_leave(l, u, q, phase, LAB_NEXT_SLOT);
            }
    run_and_check(l, t);
    for (uint32_t q = 0; q < n && cell_size == 1; q++)
        check_dropouts(l, q, early[q]);
    lab_free(&l);
}

/* A permutation of all sets of ten clients. */
static void shuffle(uint32_t *patterns, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        patterns[i] = i;
    for (uint32_t i = n; i > 1; i--) {
        uint32_t j = (uint32_t)random_size(0, i - 1), swap = patterns[j];
        patterns[j] = patterns[i - 1];
        patterns[i - 1] = swap;
    }
}

static void say(const char *what, const tally *t)
{
    print_message("%s: %u slots opened, %u refused, %u confirmed and torn\n",
                  what, (unsigned)t->opened, (unsigned)t->refused,
                  (unsigned)t->torn);
}

/* Ten clients without cells, two of whom may collude. */
static void any_dropouts_of_ten_open_one_sum(void **state)
{
    uint32_t patterns[1024];
    tally t = {0};

    (void)state;
    shuffle(patterns, COUNT(patterns));
    for (uint32_t at = 0; at < (try_all ? COUNT(patterns) : 3 * PATTERNS_MAX);
         at += PATTERNS_MAX)
        run_patterns(10, 1, (uint16_t)(at / PATTERNS_MAX % 3), patterns + at,
                     PATTERNS_MAX, &t);
    say("K = 10", &t);
    assert_true(t.opened > 0 && t.refused > 0);
}

/* Cells of at least three, or, with two colluders, of at least four. */
static void any_dropouts_from_cells_open_one_sum(void **state)
{
    static const struct {
        uint16_t k, cell_size, c;
    } sizes[] = {{10, 3, 0}, {10, 3, 1}, {12, 3, 1}, {12, 4, 2}};
    tally t = {0};

    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++)
        for (int again = 0; again < (try_all ? 8 : 1); again++) {
            uint32_t patterns[12];
            for (size_t j = 0; j < COUNT(patterns); j++)
                /* Few leave, or no cell is ever whole. */
                patterns[j] = (uint32_t)(random_u64() & random_u64() &
                                         (j % 3 != 0 ? random_u64() : ~0u)) &
                              ((1u << sizes[i].k) - 1);
            run_patterns(sizes[i].k, sizes[i].cell_size, sizes[i].c, patterns,
                         COUNT(patterns), &t);
        }
    say("cells", &t);
    assert_true(t.opened > 0);
}

/* Twelve clients that leave, crash, return at any moment, over a network that
 * delays, doubles and turns round. */
static void any_trouble_of_twelve_opens_one_sum(void **state)
{
    tally t = {0};

    (void)state;
    for (int i = 0; i < (try_all ? 24 : 3); i++) {
        lab_scenario s = lab_scenario_for(12, i % 2 == 0 ? 1 : 3, random_u64());
        lab *l;
        lab_scenario_collude(&s, (uint16_t)(i % 2 == 0 ? i % 3 : i % 4 / 2));
        s.questions = 8;
        s.steps_max *= 8;
        s.config.tries = (uint16_t)(i % 2);
        s.net.delay = s.net.duplicate = s.net.reorder = 30;
        s.net.spare_setup = true;
        l = lab_new(&s);
        for (size_t n = random_size(8, 40); n > 0; n--)
            (random_u64() % 4 == 0 ? lab_leave_crashing : lab_leave)(
                l, (uint16_t)random_size(0, 11), (uint32_t)random_size(0, 7),
                (lab_phase)random_size(0, LAB_PHASES - 1),
                random_u64() % 4 == 0 ? LAB_SOON : LAB_NEXT_SLOT);
        run_and_check(l, &t);
        lab_free(&l);
    }
    say("K = 12", &t);
}

/* Without masks the checker sees that every vector is open. */
static void without_masks_everything_is_open(void **state)
{
    lab_scenario s = lab_scenario_for(5, 1, random_u64());
    dafl_members none = dafl_members_none(5);
    lab *l;
    leak *k;

    (void)state;
    s.config.mode = DAFL_MODE_NONE;
    s.floor.plain = true;
    l = lab_new(&s);
    k = leak_new(l, &none, false);
    leak_run(k);
    lab_check_done(l);
    assert_int_equal(leak_dim(k, 1), 5);
    assert_true(leak_is_real(k, 1));
    leak_free(&k);
    lab_free(&l);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_dropouts_of_ten_open_one_sum),
        cmocka_unit_test(any_dropouts_from_cells_open_one_sum),
        cmocka_unit_test(any_trouble_of_twelve_opens_one_sum),
        cmocka_unit_test(without_masks_everything_is_open),
    };

    try_all = argc > 1 && strcmp(argv[1], "all") == 0;
    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
