/* SPDX-License-Identifier: Apache-2.0 */
/* What a whole run gives (C3 rank_whole_run): all that can be computed from the
 * 2T + 3 sums, from attempts that failed and from late messages, with clients
 * that come and go and some that collude, are combinations of the sums over
 * whole cells. The argument says how many runs to try. */
#include "tests/check.h"

#include "tests/lab/leak.h"
#include "tests/lab/liar.h"

static size_t runs = 6;

typedef struct {
    size_t slots, opened, rank, most, cohorts;
} tally;

/* Clients go away and come back at any moment of any question. */
static void churn(lab *l, size_t n)
{
    const lab_scenario *s = lab_scenario_of(l);

    for (; n > 0; n--)
        (random_u64() % 4 == 0 ? lab_leave_crashing : lab_leave)(
            l, (uint16_t)random_size(0, s->k - 1u),
            (uint32_t)random_size(0, s->questions - 1),
            (lab_phase)random_size(0, LAB_PHASES - 1),
            random_u64() % 4 == 0 ? LAB_SOON : LAB_NEXT_SLOT);
}

static size_t different_cohorts(const lab *l)
{
    const lab_sum *sums;
    size_t n = lab_sums(l, &sums), found = 0;

    for (size_t i = 0; i < n; i++) {
        bool again = false;
        for (size_t j = 0; j < i; j++)
            again |= dafl_members_equal(&sums[i].cohort, &sums[j].cohort);
        found += !again;
    }
    return found;
}

/* T layers; g = 1 is the scenario without cells, judged by the cells that the
 * roster nevertheless has. */
static lab *new_lab(uint16_t k, uint16_t cell_size, uint16_t c, uint32_t layers,
                    bool any_cohort)
{
    lab_scenario s = lab_scenario_for(k, cell_size, random_u64());

    lab_scenario_collude(&s, c);
    s.questions = 2 * layers + 3;
    s.steps_max *= s.questions;
    s.ties = true;
    s.config.tries = 1;
    s.net.delay = s.net.duplicate = s.net.reorder = 10;
    s.net.spare_setup = true;
    if (any_cohort) {
        s.config.policy.g = 1;
        s.floor.any_cohort = true;
    }
    return lab_new(&s);
}

/* Run it, watched by c colluders who tap the wire. True when everything lies in
 * the whole-cell space. */
static bool run_and_rank(lab *l, tally *t)
{
    dafl_members colluders = lab_members(l, 0);
    size_t most = 0, rank;
    bool cells;
    leak *k;

    while (dafl_members_count(&colluders) < lab_config(l)->policy.c)
        dafl_members_add(&colluders, random_size(0, lab_server_index(l) - 1u));
    k = leak_new(l, &colluders, true);
    leak_run(k);
    lab_check_done(l);
    for (uint32_t slot = 1; slot <= leak_last_slot(k); slot++)
        assert_true(leak_is_real(k, slot) && leak_dim(k, slot) <= 1);
    rank = leak_run_rank(k, &most);
    cells = leak_run_is_of_cells(k);
    assert_int_equal(leak_is_of_cells(k, 0), cells);
    t->slots += dafl_server_slot(lab_server(l));
    t->opened += lab_scenario_of(l)->questions;
    t->cohorts += different_cohorts(l);
    t->rank += rank;
    t->most += most;
    /* The sums at least are known. */
    assert_true(rank >= lab_scenario_of(l)->questions);
    assert_true(!cells || rank <= most);
    leak_free(&k);
    return cells;
}

static void say(const char *what, const tally *t)
{
    print_message("%s: %zu slots for %zu sums over %zu cohorts; rank %zu of "
                  "%zu that whole cells have\n",
                  what, t->slots, t->opened, t->cohorts, t->rank, t->most);
}

static void rank_whole_run(void **state)
{
    static const struct {
        uint16_t k, cell_size, c;
        uint32_t layers;
    } sizes[] = {{12, 3, 1, 3}, {12, 4, 2, 3}, {9, 3, 0, 5},
                 {10, 2, 0, 4}, {15, 5, 2, 2}, {12, 3, 0, 3}};
    tally t = {0};

    (void)state;
    for (size_t i = 0; i < runs; i++) {
        size_t at_size = i % COUNT(sizes);
        lab *l = new_lab(sizes[at_size].k, sizes[at_size].cell_size,
                         sizes[at_size].c, sizes[at_size].layers, false);
        churn(l, random_size(6, 24));
        assert_true(run_and_rank(l, &t));
        lab_free(&l);
    }
    say("cells", &t);
    assert_true(t.rank <= t.most);
    /* There was churn, and attempts failed. */
    assert_true(t.slots > t.opened && t.cohorts > runs);
}

/* The control: when cohorts are just who is there, the same churn gives sums
 * that differ by single clients. */
static void without_cells_the_run_gives_more(void **state)
{
    tally t = {0};
    size_t beyond = 0;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        lab *l = new_lab(12, 3, 1, 3, true);
        churn(l, 12);
        beyond += !run_and_rank(l, &t);
        lab_free(&l);
    }
    say("any cohort", &t);
    assert_true(beyond > 0);
}

/* ---- a server that casts cells apart ---- */

static struct {
    liar a;
    dafl_members apart;
} split;

/* In slot 1 these cells are told that each of them alone was cast. */
static bool cast_apart(lab *l, lab_letter *m, void *ctx)
{
    dafl_writer w = {0};
    dafl_members cell;

    (void)ctx;
    liar_see(&split.a, m);
    if (m->envelope.type == DAFL_MSG_CAST && m->envelope.slot == 1 &&
        dafl_members_has(&split.apart, m->to)) {
        cell =
            dafl_roster_cell(lab_roster(l), lab_roster(l)->parties[m->to].cell);
        dafl_put_cast(&w, &cell);
        lab_letter_reseal(l, m, dafl_writer_bytes(&w));
        dafl_writer_drop(&w);
    }
    liar_number(&split.a, m);
    return true;
}

static void step_to(lab *l, leak *k, uint64_t time)
{
    while (lab_now(l) < time && lab_step(l))
        leak_watch(k);
}

/* The others are asked to sign that everybody's vector is there, and so to give
 * shares of every b away, with which the sums over the cells apart would open
 * (attack S2 cast_apart). They see that those were not cast as they were, and
 * the slot is over; the machine asks again in another. */
static void cells_cast_apart_give_nothing(void **state)
{
    static const struct {
        uint16_t cell_size, cells;
    } sizes[] = {{3, 1}, {2, 1}, {2, 2}};

    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        lab_scenario s = lab_scenario_for(12, sizes[i].cell_size, random_u64());
        dafl_members none, all, others;
        lab *l;
        leak *k;
        lab_scenario_collude(&s, 0);
        s.intercept = cast_apart;
        l = lab_new(&s);
        none = lab_members(l, 0);
        all = lab_everybody(l);
        split.apart = lab_members(
            l, ((uint64_t)1 << sizes[i].cells * sizes[i].cell_size) - 1);
        others = dafl_members_minus(&all, &split.apart);
        liar_init(&split.a, l);
        k = leak_new(l, &none, false);
        assert_true(lab_run_to(l, DAFL_MSG_CAST, 0));
        step_to(l, k, lab_now(l) + 200);
        liar_surv(&split.a, &others, &all, &all, 1);
        step_to(l, k, lab_now(l) + 200);
        liar_conf(&split.a, &others, &others, 1);
        leak_run(k);
        lab_check_done(l);
        for (uint16_t u = 0; u < others.n; u++)
            assert_int_equal(lab_count(l, u, DAFL_EVENT_ERROR, DAFL_E_FORGED),
                             dafl_members_has(&others, u));
        assert_int_equal(leak_dim(k, 1), 0);
        assert_true(leak_run_is_of_cells(k));
        leak_free(&k);
        liar_drop(&split.a);
        lab_free(&l);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rank_whole_run),
        cmocka_unit_test(without_cells_the_run_gives_more),
        cmocka_unit_test(cells_cast_apart_give_nothing),
    };

    if (argc > 1)
        runs = (size_t)strtoul(argv[1], NULL, 10);
    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
