/* SPDX-License-Identifier: Apache-2.0 */
/* The leakage checker on leaks that are planted into runs that are otherwise
 * honest: it finds each of them, as what it is, and nothing else. The machines
 * are those whose checks can be switched off, and the linker puts a function of
 * this test where a client masks its vector. */
#include "tests/check.h"

#include "lib/ring.h"
#include "protocol/client_state.h"
#include "protocol/masking.h"
#include "protocol/weaken.h"
#include "tests/lab/leak.h"
#include "tests/lab/liar.h"

enum { QUESTIONS = 4 };

/* ---- a run ---- */

static struct {
    lab *l;
    leak *k;
    liar a;
    dafl_members all, colluders;
    uint32_t question, slot; /* with the leak */
    size_t t;
    bool (*script)(lab_letter *m); /* the server's side, if it has a part */
    bool done;                     /* the script */
} run;

static bool intercept(lab *l, lab_letter *m, void *ctx)
{
    (void)l;
    (void)ctx;
    if (run.script != NULL && !run.script(m))
        return false;
    liar_see(&run.a, m);
    liar_number(&run.a, m);
    return true;
}

static void begin(uint16_t n, uint16_t cell_size, uint16_t c, size_t colluders)
{
    lab_scenario s = lab_scenario_for(n, cell_size, random_u64());

    lab_scenario_collude(&s, c);
    s.questions = QUESTIONS;
    s.intercept = intercept;
    s.wrong_sums_expected = true;
    memset(&run, 0, sizeof run);
    run.l = lab_new(&s);
    run.question = 1;
    run.all = lab_everybody(run.l);
    run.colluders = lab_members(run.l, 0);
    while (dafl_members_count(&run.colluders) < colluders)
        dafl_members_add(&run.colluders, random_size(0, n - 1u));
    assert_int_equal(dafl_threshold(&run.t, n, c, 0), DAFL_FAULT_NONE);
    liar_init(&run.a, run.l);
    run.k = leak_new(run.l, &run.colluders, false);
}

/* Until the server has sent this in the slot that the leak is planted in. */
static void go_to(dafl_msg_type type)
{
    size_t at = 0;

    do {
        const lab_seen *m;
        leak_watch(run.k);
        while ((m = lab_find(run.l, &at, LAB_SENT, lab_server_index(run.l),
                             LAB_ANYBODY, type, UINT32_MAX)) != NULL)
            if (lab_slot_question(run.l, m->slot) == run.question) {
                run.slot = m->slot;
                return;
            }
    } while (lab_step(run.l));
    fail_msg("no %s was sent", dafl_msg_name(type));
}

static void end(void)
{
    leak_free(&run.k);
    lab_free(&run.l);
    liar_drop(&run.a);
    dafl_weakened = DAFL_WEAK_NOTHING;
}

/* Any honest client; another one. */
static uint16_t somebody(uint16_t but)
{
    uint16_t u;

    do
        u = (uint16_t)random_size(0, run.all.n - 1u);
    while (u == but || dafl_members_has(&run.colluders, u));
    return u;
}

static dafl_members cell_of(uint16_t client)
{
    return dafl_roster_cell(lab_roster(run.l),
                            lab_roster(run.l)->parties[client].cell);
}

/* ---- what the checker finds ---- */

typedef struct {
    size_t dim; /* of the slot */
    bool sum;   /* the sum over everybody is among it */
    bool of_cells;
    dafl_members open; /* whose inputs can be read */
    size_t more;       /* rank of the run beyond one a question */
    bool run_of_cells;
} finding;

static finding nothing(void)
{
    return (finding){.dim = 1,
                     .sum = true,
                     .of_cells = true,
                     .open = lab_members(run.l, 0),
                     .run_of_cells = true};
}

/* What is left of a client's vector, is it its input? */
static bool reads(uint16_t client, uint32_t slot)
{
    const leak_upload *up = leak_upload_of(run.k, client, slot);
    size_t n = lab_answer_len(run.l, up->question);
    int64_t *x = calloc(n, sizeof *x), *found = calloc(n, sizeof *found);
    uint64_t *words = calloc(n, sizeof *words);
    bool open, equal;

    assert_true(x != NULL && found != NULL && words != NULL);
    open = leak_strip(run.k, up, words, n) == 0;
    dafl_ring_to_int(found, words, n, lab_config(run.l)->contract.w);
    lab_answer(run.l, client, up->question, x);
    equal = memcmp(x, found, n * sizeof *x) == 0;
    assert_int_equal(open, equal);
    free(x);
    free(found);
    free(words);
    return open;
}

/* Whether the server opened a slot, and over whom. */
static bool opened(uint32_t slot, dafl_members *u3)
{
    const lab_event *events;
    size_t n = lab_events(run.l, &events);

    for (size_t i = 0; i < n; i++)
        if (events[i].party == lab_server_index(run.l) &&
            events[i].event.slot == slot &&
            events[i].event.kind == DAFL_EVENT_RESULT &&
            events[i].event.fault == DAFL_FAULT_NONE) {
            *u3 = events[i].event.set;
            return true;
        }
    return false;
}

/* Run to the end; then this and no more has been found. */
static void expect(const finding *f)
{
    size_t most, rank, honest;

    assert_int_equal(leak_run(run.k), LAB_DONE);
    for (uint32_t e = 1; e <= leak_last_slot(run.k); e++) {
        dafl_members u3;
        assert_true(leak_is_real(run.k, e));
        if (e == run.slot)
            continue;
        if (opened(e, &u3))
            assert_true(leak_is_sum(run.k, e, &u3));
        else
            assert_int_equal(leak_dim(run.k, e), 0);
    }
    assert_int_equal(leak_dim(run.k, run.slot), f->dim);
    assert_int_equal(leak_is_sum(run.k, run.slot, &run.all),
                     f->dim == 1 && f->sum);
    assert_int_equal(leak_is_of_cells(run.k, run.slot), f->of_cells);
    for (uint16_t u = 0; u < run.all.n; u++)
        if (!dafl_members_has(&run.colluders, u))
            assert_int_equal(reads(u, run.slot), dafl_members_has(&f->open, u));
    rank = leak_run_rank(run.k, &most);
    assert_int_equal(rank, QUESTIONS + f->more);
    honest = lab_roster(run.l)->n_cells * (size_t)QUESTIONS;
    assert_int_equal(most, honest);
    assert_int_equal(leak_run_is_of_cells(run.k), f->run_of_cells);
    assert_int_equal(leak_is_of_cells(run.k, 0), f->run_of_cells);
}

static void expect_masks(leak_masks other, size_t n)
{
    size_t found = 0;

    for (size_t i = 0; i < leak_uploads(run.k); i++)
        if (leak_masks_of(run.k, i) != LEAK_MASKED) {
            assert_int_equal(leak_masks_of(run.k, i), other);
            found++;
        }
    assert_int_equal(found, n);
}

static void an_honest_run_shows_nothing(void **state)
{
    static const struct {
        uint16_t n, cell, c;
    } sizes[] = {{9, 3, 1}, {12, 4, 2}, {8, 2, 0}};

    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        finding f;
        begin(sizes[i].n, sizes[i].cell, sizes[i].c, sizes[i].c);
        f = nothing();
        go_to(DAFL_MSG_CONF);
        expect(&f);
        expect_masks(LEAK_MASKED, 0);
        lab_check_invariants(run.l);
        end();
    }
}

/* ---- shares ---- */

/* The true share that a holder has of a dealer. */
static dafl_revealed true_share(uint16_t holder, uint16_t dealer,
                                dafl_reveal_kind kind)
{
    dafl_bytes record = lab_disk_secret(run.l, holder, run.slot);
    dafl_revealed r = {.dealer = dealer, .kind = kind};

    assert_non_null(record.ptr);
    memcpy(r.share.b,
           record.ptr + DAFL_OWN_BYTES + (size_t)dealer * DAFL_HELD_BYTES +
               (kind == DAFL_REVEAL_B ? 0 : 32),
           sizeof r.share.b);
    return r;
}

/* So many holders give their shares of a dealer's sk, besides what they give in
 * the course of the run (b); colluders or honest ones. */
static void give_away(uint16_t dealer, size_t n, bool colluders)
{
    uint16_t holder = 0;

    for (; n > 0; holder++) {
        dafl_revealed r;
        dafl_writer body = {0}, w = {0};
        assert_true(holder < run.all.n);
        if (holder == dealer ||
            dafl_members_has(&run.colluders, holder) != colluders)
            continue;
        r = true_share(holder, dealer, DAFL_REVEAL_SK);
        dafl_put_reveal(&body, &r, 1);
        lab_seal(run.l, &w, holder, DAFL_MSG_REVEAL, run.slot, 0,
                 dafl_writer_bytes(&body));
        lab_post(run.l, holder, lab_server_index(run.l), dafl_writer_bytes(&w),
                 1);
        dafl_writer_drop(&body);
        dafl_writer_drop(&w);
        n--;
    }
}

static void t_shares_of_the_second_secret_open_their_dealer(void **state)
{
    (void)state;
    for (int less = 0; less <= 1; less++) {
        uint16_t victim;
        finding f;
        begin(9, 3, 1, 0);
        f = nothing();
        victim = somebody(UINT16_MAX);
        go_to(DAFL_MSG_CONF);
        give_away(victim, run.t - (size_t)less, false);
        if (!less) {
            f.dim = 2;
            f.of_cells = f.run_of_cells = false;
            dafl_members_add(&f.open, victim);
            f.more = 1;
        }
        expect(&f);
        for (uint16_t u = 0; u < run.all.n; u++) {
            assert_true(leak_knows_b(run.k, u, run.slot));
            assert_int_equal(leak_knows_sk(run.k, u, run.slot),
                             u == victim && !less);
        }
        end();
    }
}

static void two_clients_whose_secrets_are_out_are_open(void **state)
{
    uint16_t one, other;
    finding f;

    (void)state;
    begin(9, 3, 1, 0);
    f = nothing();
    one = somebody(UINT16_MAX);
    other = somebody(one);
    go_to(DAFL_MSG_CONF);
    give_away(one, run.t, false);
    give_away(other, run.t + 1, false);
    f.dim = 3;
    f.of_cells = f.run_of_cells = false;
    dafl_members_add(&f.open, one);
    dafl_members_add(&f.open, other);
    f.more = 2;
    expect(&f);
    end();
}

/* Colluders have their shares anyway: also when they give them to the server,
 * they count once. */
static void shares_of_colluders_count_once(void **state)
{
    static const struct {
        uint16_t n, cell, c;
    } sizes[] = {{9, 3, 1}, {12, 4, 2}};

    (void)state;
    for (size_t i = 0; i < 2 * COUNT(sizes); i++) {
        size_t c = sizes[i / 2].c;
        bool less = i % 2 == 1;
        uint16_t victim;
        finding f;
        begin(sizes[i / 2].n, sizes[i / 2].cell, sizes[i / 2].c, c);
        f = nothing();
        victim = somebody(UINT16_MAX);
        go_to(DAFL_MSG_CONF);
        give_away(victim, c, true);
        give_away(victim, run.t - c - less, false);
        if (!less) {
            f.dim = 2;
            f.of_cells = f.run_of_cells = false;
            dafl_members_add(&f.open, victim);
            f.more = 1;
        }
        expect(&f);
        end();
    }
}

/* ---- masks ---- */

static struct {
    bool on, clear; /* or masked as in the slot before */
    uint16_t client;
    size_t calls; /* uploads of this client; the slot with the leak is 2nd */
    dafl_digest ctx2;
    dafl_members a;
    dafl_key sk, b;
    dafl_public pk[DAFL_CLIENTS_MAX];
} masks;

dafl_err __real_dafl_masking_own(uint64_t *acc, size_t n, const dafl_masking *m,
                                 uint16_t u, const dafl_key *sk,
                                 const dafl_key *b, dafl_pool *pool);
dafl_err __wrap_dafl_masking_own(uint64_t *acc, size_t n, const dafl_masking *m,
                                 uint16_t u, const dafl_key *sk,
                                 const dafl_key *b, dafl_pool *pool);

dafl_err __wrap_dafl_masking_own(uint64_t *acc, size_t n, const dafl_masking *m,
                                 uint16_t u, const dafl_key *sk,
                                 const dafl_key *b, dafl_pool *pool)
{
    dafl_masking earlier = {&masks.ctx2, &masks.a, masks.pk, m->w};

    if (!masks.on || u != masks.client || ++masks.calls > 2)
        return __real_dafl_masking_own(acc, n, m, u, sk, b, pool);
    if (masks.calls == 2)
        return masks.clear ? DAFL_OK
                           : __real_dafl_masking_own(acc, n, &earlier, u,
                                                     &masks.sk, &masks.b, pool);
    masks.ctx2 = *m->ctx2;
    masks.a = *m->a;
    masks.sk = *sk;
    masks.b = *b;
    memcpy(masks.pk, m->pk, m->a->n * sizeof *masks.pk);
    return __real_dafl_masking_own(acc, n, m, u, sk, b, pool);
}

/* The sum of that slot is wrong, so nobody learns it: the masks between the
 * others and this client stay. */
static void a_vector_without_masks_is_open(void **state)
{
    finding f;

    (void)state;
    begin(9, 3, 1, 0);
    f = nothing();
    memset(&masks, 0, sizeof masks);
    masks.on = masks.clear = true;
    masks.client = somebody(UINT16_MAX);
    go_to(DAFL_MSG_CONF);
    dafl_members_add(&f.open, masks.client);
    f.sum = f.of_cells = f.run_of_cells = false;
    f.more = 1;
    expect(&f);
    expect_masks(LEAK_CLEAR, 1);
    assert_int_equal(lab_wrong_sums(run.l), 1);
    masks.on = false;
    end();
}

/* Each slot alone shows nothing; both together the difference of two inputs. */
static void a_stream_in_two_slots_gives_a_difference(void **state)
{
    finding f;

    (void)state;
    begin(9, 3, 1, 0);
    f = nothing();
    memset(&masks, 0, sizeof masks);
    masks.on = true;
    masks.client = somebody(UINT16_MAX);
    go_to(DAFL_MSG_CONF);
    f.dim = 0;
    f.sum = f.run_of_cells = false;
    f.more = 1;
    expect(&f);
    expect_masks(LEAK_REUSED, 1);
    assert_int_equal(lab_wrong_sums(run.l), 1);
    masks.on = false;
    end();
}

/* ---- cohorts ---- */

/* When the slot is over, all but one cell are started anew, asked the same
 * again, and told that they alone were cast. */
static struct {
    dafl_members left;
    uint64_t until;
} again;

static bool ask_again(lab_letter *m)
{
    if (m->from != lab_server_index(run.l) ||
        (run.done && lab_now(run.l) > again.until))
        return true;
    if (!run.done &&
        (m->envelope.type != DAFL_MSG_RESULT ||
         lab_slot_question(run.l, m->envelope.slot) != run.question))
        return true;
    if (!run.done) {
        run.done = true;
        again.until = lab_now(run.l) + 1000;
        for (uint16_t u = 0; u < run.all.n; u++)
            if (dafl_members_has(&again.left, u))
                lab_crash(run.l, u, 1);
    }
    return false;
}

/* Under the weakness that a client may send another upload after a restart. */
static void vectors_under_two_cohorts_are_two_sums(void **state)
{
    uint16_t out;
    dafl_members gone;
    finding f;

    (void)state;
    begin(9, 3, 1, 0);
    dafl_weakened = DAFL_WEAK_RESEND;
    f = nothing();
    out = somebody(UINT16_MAX);
    gone = cell_of(out);
    again.left = dafl_members_minus(&run.all, &gone);
    run.question = 0; /* they have forgotten the model: it is all in MODEL */
    run.script = ask_again;
    go_to(DAFL_MSG_RESULT);
    while (lab_now(run.l) < again.until - 800 && lab_step(run.l))
        leak_watch(run.k);
    for (uint16_t u = 0; u < run.all.n; u++)
        if (dafl_members_has(&again.left, u)) {
            dafl_members one = lab_members(run.l, (uint64_t)1 << u);
            liar_tell(&run.a, &one, DAFL_MSG_MODEL, run.slot,
                      dafl_writer_bytes(&run.a.model[u]), 10);
        }
    liar_cast(&run.a, &again.left, &again.left, 100);
    f.dim = 2;
    f.more = 1;
    expect(&f);
    assert_true(leak_uploads(run.k) >
                (size_t)QUESTIONS * run.all.n); /* they did */
    end();
}

static uint16_t cut_out;

static bool cut(lab_letter *m)
{
    dafl_members u3 = run.all;
    dafl_writer w = {0};

    if (m->from != lab_server_index(run.l) ||
        m->envelope.type != DAFL_MSG_SURV || run.done ||
        lab_slot_question(run.l, m->envelope.slot) != run.question)
        return true;
    dafl_members_remove(&u3, cut_out);
    liar_put_surv(&run.a, &w, &run.all, &run.all, &u3);
    lab_letter_reseal(run.l, m, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    return true;
}

/* Under the weakness that cells may be split. The machine gets no signatures,
 * asks again, and the two sums differ by one client. */
static void a_split_cell_is_no_cell(void **state)
{
    finding f;

    (void)state;
    begin(9, 3, 1, 0);
    dafl_weakened = DAFL_WEAK_CELLS;
    f = nothing();
    cut_out = somebody(UINT16_MAX);
    run.script = cut;
    go_to(DAFL_MSG_SURV);
    while (dafl_members_count(&run.a.signers) < run.all.n - 1u &&
           lab_step(run.l))
        leak_watch(run.k);
    run.done = true;
    liar_conf(&run.a, &run.all, &run.all, 100);
    f.sum = f.of_cells = f.run_of_cells = false;
    f.more = 1;
    expect(&f);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_honest_run_shows_nothing),
        cmocka_unit_test(t_shares_of_the_second_secret_open_their_dealer),
        cmocka_unit_test(two_clients_whose_secrets_are_out_are_open),
        cmocka_unit_test(shares_of_colluders_count_once),
        cmocka_unit_test(a_vector_without_masks_is_open),
        cmocka_unit_test(a_stream_in_two_slots_gives_a_difference),
        cmocka_unit_test(vectors_under_two_cohorts_are_two_sums),
        cmocka_unit_test(a_split_cell_is_no_cell),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
