/* SPDX-License-Identifier: Apache-2.0 */
/* Many random walks (tests/lab/walk.h).
 *
 *     test_walk [--walks N] [--seed S] [--from I] [--every E]
 *
 * does the walks I, I + E, .. of a seed, N of them, with I = 0 after those that
 * once failed; --every 64 --from 32 only those with encryption. The second
 * program, test_walk_weak, has machines that lack one check at a time; there
 * walks must fail: those of a seed of its own for each, unless one is given. */
#include "tests/check.h"

#include "protocol/weaken.h"
#include "tests/lab/school.h"
#include "tests/lab/walk.h"

static uint64_t seed, from, every = 1,
                            walks =
#if defined(SANITIZED) && !defined(DAFL_WEAKEN)
                                100;
#else
                                1000;
#endif

#ifndef DAFL_WEAKEN
/* Walks that have found something; they come first. */
static const struct {
    uint64_t seed, number;
} known[] = {
    {1, 139}, /* MODEL was followed by halves, and asked for without end */
    {1, 231},
    /* a key holder, restarted between enrolments, acknowledged none */
    {15244649457977452968u, 160},
};

typedef struct {
    size_t walks, done, deep, sealed, holder_restarts, broken;
    size_t ops[WALK_OPS], faults[DAFL_FAULT_COUNT];
    size_t slots, opened, torn, refused, split;
} tally;

static void count(tally *t, const walk_report *r)
{
    t->walks++;
    t->done += r->outcome == LAB_DONE;
    t->deep += r->deep;
    t->sealed += r->sealed;
    t->holder_restarts += r->holder_restarts;
    t->broken += r->broken[0] != '\0';
    for (size_t i = 0; i < WALK_OPS; i++)
        t->ops[i] += r->ops[i];
    if (r->outcome == LAB_FAILED)
        t->faults[r->fault]++;
    t->slots += r->slots;
    t->opened += r->opened;
    t->torn += r->torn;
    t->refused += r->refused;
    t->split += r->split;
}

static void say(const tally *t)
{
    print_message("%zu walks (%zu for DeepAFL, %zu encrypted with %zu restarts "
                  "of the key holder), %zu finished;",
                  t->walks, t->deep, t->sealed, t->holder_restarts, t->done);
    for (size_t i = 1; i < DAFL_FAULT_COUNT; i++)
        if (t->faults[i] > 0)
            print_message(" %zu %s;", t->faults[i],
                          dafl_fault_name((dafl_fault)i));
    print_message(" %zu slots: %zu opened, %zu confirmed in vain, %zu refused, "
                  "%zu cast in two ways;",
                  t->slots, t->opened, t->torn, t->refused, t->split);
    for (size_t i = 0; i < WALK_OPS; i++)
        print_message(" %zu %s%s", t->ops[i], walk_op_name((walk_op)i),
                      i + 1 < WALK_OPS ? "," : "\n");
}

static bool walk_one(tally *t, uint64_t of_seed, uint64_t number)
{
    walk_report r;

    walk_run(&r, of_seed, number);
    count(t, &r);
    if (r.broken[0] == '\0')
        return true;
    print_message("walk %llu: %s\n  again: --seed %llu --from %llu --walks 1\n",
                  (unsigned long long)number, r.broken,
                  (unsigned long long)of_seed, (unsigned long long)number);
    return false;
}

static void walks_that_failed_hold(void **state)
{
    tally t = {0};

    (void)state;
    for (size_t i = 0; i < COUNT(known) && from == 0; i++)
        (void)walk_one(&t, known[i].seed, known[i].number);
    assert_int_equal(t.broken, 0);
}

static void every_walk_holds(void **state)
{
    tally t = {0};

    (void)state;
    for (uint64_t i = 0; i < walks; i++)
        (void)walk_one(&t, seed, from + i * every);
    say(&t);
    assert_int_equal(t.broken, 0);
    if (walks < 100 || every > 1)
        return;
    /* They go somewhere. */
    for (size_t i = 0; i < WALK_OPS; i++)
        assert_true(t.ops[i] > walks / 20);
    assert_true(t.done > walks / 2 && t.deep > 0);
    assert_true(t.opened > 2 * walks && t.refused > 0 && t.torn > 0);
}
#else
#define CHECK(name, soon)             \
    {                                 \
        DAFL_WEAK_##name, #name, soon \
    }

/* What the walks can see the lack of, and a seed with which they soon do: with
 * any, some take 400 walks now and then. */
static const struct {
    dafl_weak check;
    const char *name;
    uint64_t seed;
} checks[] = {
    CHECK(CELLS, 3),     CHECK(COHORT, 3),    CHECK(TIES, 2),
    CHECK(QUORUM, 1),    CHECK(STATEMENT, 3), CHECK(SLOT, 2),
    CHECK(RESEND, 2),    CHECK(WIPE, 1),      CHECK(COMMITMENT, 1),
    CHECK(FIRST_END, 3), CHECK(END, 1),       CHECK(AGREED, 1),
};

static void without_a_check_walks_fail(void **state)
{
    size_t blind = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(checks); i++) {
        walk_report r = {.broken = ""};
        uint64_t n = 0;
        dafl_weakened = checks[i].check;
        while (n < walks && r.broken[0] == '\0')
            walk_run(&r, seed != 0 ? seed : checks[i].seed, from + n++ * every);
        dafl_weakened = DAFL_WEAK_NOTHING;
        print_message("without %s, after %llu walks: %s\n", checks[i].name,
                      (unsigned long long)n, r.broken);
        blind += r.broken[0] == '\0' || r.outcome == LAB_HUNG;
    }
    assert_int_equal(blind, 0);
}
#endif

static void read_options(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        uint64_t n = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--walks") == 0)
            walks = n;
        else if (strcmp(argv[i], "--seed") == 0)
            seed = n;
        else if (strcmp(argv[i], "--from") == 0)
            from = n;
        else if (strcmp(argv[i], "--every") == 0)
            every = n;
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#ifdef DAFL_WEAKEN
        cmocka_unit_test(without_a_check_walks_fail),
#else
        cmocka_unit_test(walks_that_failed_hold),
        cmocka_unit_test(every_walk_holds),
#endif
    };
    int failed;

#ifndef DAFL_WEAKEN
    check_seed();
    seed = random_u64();
#endif
    read_options(argc, argv);
    /* The rows are always the same: a walk follows from its seed alone. */
    if (school_open(1, WALK_LAYERS) != 0)
        return 1;
    school_deal(WALK_CLIENTS);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    return school_close() != 0 || failed != 0;
}
