/* SPDX-License-Identifier: Apache-2.0 */
/* What the server learns of a slot (C2 rank_one_slot): the one sum over its
 * cohort, whoever goes away when, whoever colludes. With the argument "all"
 * every set of dropouts of ten clients is tried, else some of them.
 *
 * The attacks are tried on the machines as they are, where they get nothing;
 * and in the build whose checks can be switched off, where with the one check
 * missing they recover a client's input. */
#include "tests/check.h"

#include "lib/ring.h"
#include "protocol/weaken.h"
#include "tests/lab/leak.h"

static bool try_all;

/* ---- honest runs ---- */

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

/* ---- a server that deviates ---- */

/* In slot 1; afterwards nothing of the real server gets through any more. */
typedef struct {
    enum { SPLIT, CUT, TWICE, REOPEN } way;
    uint16_t victim;
    bool begun; /* the second round */
    uint64_t seq;
    dafl_writer model, cast;
    dafl_members a, signers;
    dafl_digest dig[DAFL_CLIENTS_MAX];
    dafl_signature sig[DAFL_CLIENTS_MAX];
} script;

static void post_to_all(lab *l, script *a, dafl_msg_type type, dafl_bytes body,
                        uint64_t after)
{
    uint16_t server = lab_server_index(l);
    dafl_writer w = {0};

    lab_seal(l, &w, server, type, 1, ++a->seq, body);
    for (uint16_t u = 0; u < server; u++)
        lab_post(l, server, u, dafl_writer_bytes(&w), after);
    dafl_writer_drop(&w);
}

static void put_survivors(const script *a, dafl_writer *w,
                          const dafl_members *u3)
{
    dafl_writer digests = {0};

    for (size_t u = 0; u < u3->n; u++)
        if (dafl_members_has(u3, u))
            dafl_put_fixed(&digests, a->dig[u].b, sizeof a->dig[u].b);
    dafl_put_surv(w, &(dafl_surv){a->a, *u3, dafl_writer_bytes(&digests)});
    dafl_writer_drop(&digests);
}

/* SPLIT: each holder is told of a cohort of three: the victim, and two that
 * hardly anybody else is told of. So most give b of the victim, and sk of any
 * other. CUT: all are told that the victim alone is gone. */
static void tell_survivors(lab *l, script *a, lab_letter *m)
{
    dafl_members u3 = dafl_members_none(a->a.n);
    dafl_writer w = {0};

    dafl_members_add(&u3, a->victim);
    if (a->way == CUT)
        u3 = dafl_members_minus(&a->a, &u3);
    for (uint16_t u = m->to; dafl_members_count(&u3) < 3;) {
        u = (uint16_t)((u + 1) % a->a.n);
        dafl_members_add(&u3, u);
    }
    put_survivors(a, &w, &u3);
    lab_letter_reseal(l, m, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    a->seq = m->envelope.seq;
}

static void put_quorum(const script *a, dafl_writer *w)
{
    dafl_conf conf = {.signers = a->signers};
    dafl_writer signatures = {0};

    for (size_t u = 0; u < a->signers.n; u++)
        dafl_put_fixed(&signatures, a->sig[u].b, sizeof a->sig[u].b);
    conf.signatures = dafl_writer_bytes(&signatures);
    dafl_put_conf(w, &conf);
    dafl_writer_drop(&signatures);
}

/* The slot is over. Once more, without the victim: first the slot itself, if
 * that is the attack; then SURV. */
static void begin_again(lab *l, script *a, uint64_t seq)
{
    dafl_members u3 = a->a;
    dafl_writer w = {0};

    a->begun = true;
    a->seq = seq - 1; /* what the server sends now does not arrive */
    if (a->way == REOPEN) {
        post_to_all(l, a, DAFL_MSG_MODEL, dafl_writer_bytes(&a->model), 1);
        post_to_all(l, a, DAFL_MSG_CAST, dafl_writer_bytes(&a->cast), 100);
    }
    dafl_members_remove(&u3, a->victim);
    put_survivors(a, &w, &u3);
    post_to_all(l, a, DAFL_MSG_SURV, dafl_writer_bytes(&w), 200);
    dafl_writer_drop(&w);
}

/* When all have signed, whatever they signed, they get a CONF. */
static void take_signature(lab *l, script *a, const lab_letter *m)
{
    dafl_writer w = {0};

    if (a->way >= TWICE && !a->begun)
        return; /* of the statement that is true */
    assert_ok(dafl_get_sign(&a->sig[m->from], m->envelope.body));
    dafl_members_add(&a->signers, m->from);
    if (dafl_members_count(&a->signers) < a->a.n)
        return;
    put_quorum(a, &w);
    post_to_all(l, a, DAFL_MSG_CONF, dafl_writer_bytes(&w), 1);
    dafl_writer_drop(&w);
}

static bool attack(lab *l, lab_letter *m, void *ctx)
{
    uint16_t server = lab_server_index(l);
    dafl_bytes body = m->envelope.body;
    script *a = ctx;
    dafl_end_msg end;

    if (m->from == server && a->begun)
        return false;
    if (m->envelope.slot != 1)
        return true;
    switch (m->envelope.type) {
    case DAFL_MSG_MODEL:
        dafl_writer_clear(&a->model);
        dafl_put_fixed(&a->model, body.ptr, body.len);
        break;
    case DAFL_MSG_CAST:
        dafl_writer_clear(&a->cast);
        dafl_put_fixed(&a->cast, body.ptr, body.len);
        assert_ok(dafl_get_cast(&a->a, body));
        break;
    case DAFL_MSG_END:
        assert_ok(dafl_get_end_msg(&end, body));
        a->dig[m->from] = end.dig;
        break;
    case DAFL_MSG_SURV:
        if (a->way < TWICE)
            tell_survivors(l, a, m);
        break;
    case DAFL_MSG_SIGN:
        take_signature(l, a, m);
        break;
    case DAFL_MSG_RESULT:
        begin_again(l, a, m->envelope.seq);
        return false;
    default:
        break;
    }
    return true;
}

/* ---- what it gets ---- */

typedef struct {
    size_t dim;      /* of what can be computed of slot 1 */
    bool reads;      /* the victim's input is open */
    bool cells;      /* cells are only seen as a whole */
    size_t refusals; /* clients that named the fault */
} loot;

/* What is left of the victim's vector is its input, or is not. */
static bool reads(lab *l, leak *k, uint16_t victim)
{
    unsigned w = lab_config(l)->contract.w;
    const leak_upload *upload = leak_upload_of(k, victim, 1);
    size_t n = lab_answer_len(l, 0);
    int64_t *x = calloc(n, sizeof *x), *found = calloc(n, sizeof *found);
    uint64_t *words = calloc(n, sizeof *words);
    bool open;

    assert_non_null(upload);
    assert_true(x != NULL && found != NULL && words != NULL);
    open = leak_strip(k, upload, words, n) == 0;
    dafl_ring_to_int(found, words, n, w);
    lab_answer(l, victim, 0, x);
    assert_int_equal(memcmp(x, found, n * sizeof *x) == 0, open);
    free(x);
    free(found);
    free(words);
    return open;
}

static const struct {
    unsigned way;
    uint16_t k, cell_size;
    dafl_fault refused; /* how each of the clients answers */
    size_t dim;         /* 1: the slot had been opened before */
    dafl_weak check;    /* that stops it */
    loot without;       /* it */
} attacks[] = {
    {SPLIT, 10, 1, DAFL_E_QUORUM, 0, DAFL_WEAK_QUORUM, {1, true, true, 0}},
    {CUT, 9, 3, DAFL_E_CELL_SPLIT, 0, DAFL_WEAK_CELLS, {1, false, false, 0}},
    {TWICE,
     6,
     1,
     DAFL_E_SECOND_STMT,
     1,
     DAFL_WEAK_STATEMENT,
     {2, true, true, 0}},
    {REOPEN, 6, 1, DAFL_E_SECOND_STMT, 1, DAFL_WEAK_SLOT, {2, true, true, 0}},
};

static loot try_attack(size_t i)
{
    uint16_t n = attacks[i].k;
    lab_scenario s = lab_scenario_for(n, attacks[i].cell_size, random_u64());
    dafl_members none = dafl_members_none(n);
    script a = {.way = attacks[i].way,
                .victim = (uint16_t)random_size(0, n - 1u),
                .signers = none};
    loot got = {0};
    leak *k;
    lab *l;

    s.intercept = attack;
    s.ctx = &a;
    l = lab_new(&s);
    k = leak_new(l, &none, false);
    do
        leak_watch(k);
    while (lab_step(l) && lab_now(l) < 3000);
    got.dim = leak_dim(k, 1);
    got.reads = reads(l, k, a.victim);
    got.cells = leak_is_of_cells(k, 1);
    assert_true(leak_is_real(k, 1));
    for (uint16_t u = 0; u < n; u++)
        got.refusals +=
            lab_count(l, u, DAFL_EVENT_ERROR, attacks[i].refused) > 0;
    /* No client gives both kinds of share away, unless it reads. */
    assert_int_equal(lab_violation(l) != NULL, got.reads);
    leak_free(&k);
    lab_free(&l);
    dafl_writer_drop(&a.model);
    dafl_writer_drop(&a.cast);
    return got;
}

static void no_deviation_of_the_server_opens_more(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(attacks); i++) {
        loot got = try_attack(i);
        assert_int_equal(got.dim, attacks[i].dim);
        assert_int_equal(got.refusals, attacks[i].k);
        assert_false(got.reads);
        assert_true(got.cells);
    }
}

#ifdef DAFL_WEAKEN
static void without_its_check_every_deviation_opens_more(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(attacks); i++) {
        loot got;
        dafl_weakened = attacks[i].check;
        got = try_attack(i);
        dafl_weakened = DAFL_WEAK_NOTHING;
        assert_int_equal(got.dim, attacks[i].without.dim);
        assert_int_equal(got.refusals, attacks[i].without.refusals);
        assert_int_equal(got.reads, attacks[i].without.reads);
        assert_int_equal(got.cells, attacks[i].without.cells);
    }
}
#endif

int main(int argc, char **argv)
{
    const struct CMUnitTest honest[] = {
        cmocka_unit_test(any_dropouts_of_ten_open_one_sum),
        cmocka_unit_test(any_dropouts_from_cells_open_one_sum),
        cmocka_unit_test(any_trouble_of_twelve_opens_one_sum),
        cmocka_unit_test(without_masks_everything_is_open),
    };
    const struct CMUnitTest hostile[] = {
        cmocka_unit_test(no_deviation_of_the_server_opens_more),
#ifdef DAFL_WEAKEN
        cmocka_unit_test(without_its_check_every_deviation_opens_more),
#endif
    };
    int failed = 0;

    try_all = argc > 1 && strcmp(argv[1], "all") == 0;
    check_seed();
#ifdef DAFL_WEAKEN
    (void)honest; /* the other build has them */
#else
    failed = cmocka_run_group_tests(honest, NULL, NULL);
#endif
    return failed + cmocka_run_group_tests(hostile, NULL, NULL);
}
