/* SPDX-License-Identifier: Apache-2.0 */
/* A server that lies in a slot: about models, cohorts and survivors. What it
 * does with signatures and shares is in attack_quorum.c. */
#include "tests/lab/attack.h"

#include "tests/check.h"

#include "lib/ring.h"
#include "tests/lab/rogue.h"
#include "tests/lab/script.h"
#include "tests/noise.h"

/* k clients in cells, c of whom may collude and `colluding` do. From the first
 * MODEL on the script has the word. */
static script *begin(uint16_t k, uint16_t cell_size, uint16_t c,
                     size_t colluding, uint32_t tail)
{
    dafl_members colluders = dafl_members_none(k);
    lab_scenario s;

    check_seed();
    s = lab_scenario_for(k, cell_size, random_u64());
    lab_scenario_collude(&s, c);
    s.tail = tail;
    while (dafl_members_count(&colluders) < colluding)
        dafl_members_add(&colluders, random_size(0, k - 1u));
    return script_new(&s, &colluders, 1, DAFL_MSG_MODEL);
}

/* ---- S1: survivor and dropped, in one message ---- */

/* SURV names the victim as survivor of a cohort that does not have it. */
static bool not_cast(script *s, uint16_t to, dafl_msg_type type,
                     dafl_writer *body)
{
    const uint16_t *victim = s->ctx;
    dafl_writer w = {0};
    dafl_surv surv;

    (void)to;
    if (type != DAFL_MSG_SURV)
        return true;
    assert_ok(dafl_get_surv(&surv, dafl_writer_bytes(body)));
    dafl_members_remove(&surv.a, *victim);
    dafl_put_surv(&w, &surv);
    dafl_writer_drop(body);
    *body = w;
    return true;
}

/* Once it was cast, once it was not. U3 is one set within A, so there is no
 * message that names it twice. */
static bool both_lists(bool stopped)
{
    script *s = begin(10, 1, 2, 2, 5);
    dafl_members all = lab_everybody(s->lab), rest;
    uint16_t victim = script_any_honest(s);
    bool won = false;

    rest = script_others(s, victim);
    s->ctx = &victim;
    for (uint32_t slot = 1; slot <= 2; slot++) {
        s->change = slot == 1 ? not_cast : NULL;
        script_play(s, slot, slot == 1 ? &all : &rest, &all);
        won = won || script_signatures(s) > 0 || script_reveals(s) > 0 ||
              leak_dim(s->leak, slot) > 0;
        if (stopped)
            assert_int_equal(script_refusals(s, DAFL_E_COHORT),
                             script_honest_n(s));
    }
    s->change = NULL;
    script_goes_on(s);
    script_free(&s);
    return won;
}

/* ---- S3: different models ---- */

/* Another model for those in s->ctx. */
static bool other_model(script *s, uint16_t to, dafl_msg_type type,
                        dafl_writer *body)
{
    const dafl_members *told = s->ctx;

    /* The last byte is one of the newest segment. */
    if (type == DAFL_MSG_MODEL && dafl_members_has(told, to))
        body->ptr[body->len - 1] ^= 1;
    return true;
}

/* The sum of all vectors without the masks that can be taken off them. Looks
 * like noise, or is the sum of the inputs. */
static bool adds_up(script *s, uint32_t slot)
{
    uint16_t k = lab_server_index(s->lab);
    size_t n = lab_answer_len(s->lab, 0), bytes;
    unsigned w = lab_config(s->lab)->contract.w;
    uint64_t *sum = calloc(n, sizeof *sum), *words = calloc(n, sizeof *words);
    int64_t *x = calloc(n, sizeof *x);
    uint8_t *packed = calloc(n, sizeof *sum);
    statistics noise = {.n = 0};
    size_t off = 0;

    assert_true(sum != NULL && words != NULL && x != NULL && packed != NULL);
    for (uint16_t u = 0; u < k; u++) {
        const leak_upload *upload = leak_upload_of(s->leak, u, slot);
        assert_non_null(upload);
        (void)leak_strip(s->leak, upload, words, n);
        lab_answer(s->lab, u, 0, x);
        for (size_t i = 0; i < n; i++)
            sum[i] += words[i] - (uint64_t)x[i];
    }
    bytes = n * (w / 8);
    dafl_ring_pack(packed, sum, n, w);
    for (size_t i = 0; i < bytes; i++)
        off += packed[i] != 0;
    look_at(&noise, packed, bytes);
    assert_true(off == 0 || is_uniform(&noise));
    free(sum);
    free(words);
    free(x);
    free(packed);
    return off == 0;
}

/* `n` of ten are told of another model. */
static bool model_split(bool stopped, size_t n)
{
    script *s = begin(10, 1, 1, 1, 4000);
    dafl_members all = lab_everybody(s->lab), told = lab_members(s->lab, 0);
    bool won;

    while (dafl_members_count(&told) < n)
        dafl_members_add(&told, script_any_honest(s));
    s->ctx = &told;
    s->change = other_model;
    script_play(s, 1, &all, &all);
    won = adds_up(s, 1);
    assert_int_equal(script_opens(s, 1, &all), won);
    if (stopped) {
        dafl_members rest = dafl_members_minus(&all, &told);
        assert_int_equal(leak_dim(s->leak, 1), 0);
        /* Nobody takes the others' uploads for what it was asked. */
        assert_int_equal(script_refusals(s, DAFL_E_FORGED), 9);
        /* Nine may agree, five are too few. */
        script_play(s, 2, &rest, &rest);
        assert_int_equal(script_opens(s, 2, &rest), n == 1);
        lab_check_invariants(s->lab);
    }
    script_free(&s);
    return won;
}

static bool model_split_one(bool stopped)
{
    return model_split(stopped, 1);
}

static bool model_split_half(bool stopped)
{
    return model_split(stopped, 5);
}

/* ---- S5: cohorts that are too small ---- */

/* The victim among colluders only, from none of them to all: as many as m - 1.
 */
static bool tiny_cohort(bool stopped, bool cast)
{
    script *s = begin(10, 1, 2, 2, 5);
    size_t m = lab_config(s->lab)->policy.m, won = 0;
    dafl_members all = lab_everybody(s->lab);

    for (uint32_t size = 1; size < m; size++) {
        uint16_t victim = script_any_honest(s);
        dafl_members few = lab_members(s->lab, 0);
        dafl_members_add(&few, victim);
        for (size_t u = 0; dafl_members_count(&few) < size; u++)
            if (dafl_members_has(&s->colluders, u))
                dafl_members_add(&few, u);
        script_model(s, size);
        script_tell(s, cast ? &few : &all, &few);
        script_cast(s);
        script_survey(s);
        assert_int_equal(leak_dim(s->leak, size), 0);
        script_confirm(s);
        won += script_reads(s, victim, size);
        if (!stopped)
            continue;
        assert_int_equal(script_refusals(s, DAFL_E_COHORT), script_honest_n(s));
        assert_int_equal(script_signatures(s), 0);
        assert_int_equal(leak_dim(s->leak, size), 0);
    }
    assert_int_equal(won, stopped ? 0 : m - 1);
    if (stopped)
        script_goes_on(s);
    script_free(&s);
    return won > 0;
}

static bool tiny_cohort_surv(bool stopped)
{
    return tiny_cohort(stopped, false);
}

static bool tiny_cohort_cast(bool stopped)
{
    return tiny_cohort(stopped, true);
}

/* ---- S6: survivors that never uploaded ---- */

/* Of five, two that keep their answers back make up the minimum. They know that
 * they did not upload, and the others miss their signatures. What the ghosts
 * did not send does not cancel: with or without them the victim's vector stays
 * closed, but secrets come out for a cohort that there never was.
 */
static bool ghost_survivors(bool stopped)
{
    script *s = begin(5, 1, 1, 0, 5);
    dafl_members all = lab_everybody(s->lab), u3 = lab_members(s->lab, 7);
    bool won;

    lab_refuse(s->lab, 1, 0, DAFL_E_MODEL);
    lab_refuse(s->lab, 2, 0, DAFL_E_MODEL);
    script_play(s, 1, &all, &u3);
    won = leak_knows_b(s->leak, 0, 1);
    assert_int_equal(script_reveals(s), won ? 5 : 0);
    assert_int_equal(leak_dim(s->leak, 1), 0);
    assert_false(script_reads(s, 0, 1));
    if (stopped) {
        assert_int_equal(script_refusals(s, DAFL_E_FORGED), 5);
        script_ask_next(s);
        script_goes_on(s);
    }
    script_free(&s);
    return won;
}

/* Only the victim uploads, and everybody is told of other ghosts: most would
 * give the victim's b and any other's sk. */
static bool ghosts_for_each(bool stopped)
{
    script *s = begin(10, 1, 1, 1, 5);
    dafl_members all = lab_everybody(s->lab);
    uint16_t victim = script_any_honest(s);
    bool won;

    for (uint16_t u = 0; u < all.n; u++)
        if (u != victim)
            lab_refuse(s->lab, u, 0, DAFL_E_MODEL);
    script_model(s, 1);
    script_tell(s, &all, &all);
    for (uint16_t u = 0; u < all.n; u++) {
        dafl_members *u3 = &s->clients[u].u3;
        *u3 = lab_members(s->lab, 0);
        dafl_members_add(u3, victim);
        for (uint16_t v = u; dafl_members_count(u3) < 3;) {
            v = (uint16_t)((v + 1) % all.n);
            dafl_members_add(u3, v);
        }
    }
    script_cast(s);
    script_survey(s);
    assert_int_equal(leak_dim(s->leak, 1), 0);
    script_confirm(s);
    won = script_reads(s, victim, 1);
    if (stopped) {
        assert_int_equal(script_refusals(s, DAFL_E_FORGED), script_honest_n(s));
        assert_int_equal(script_signatures(s), 0);
        assert_int_equal(script_reveals(s), 0);
        script_ask_next(s);
        script_goes_on(s);
    }
    script_free(&s);
    return won;
}

/* ---- S7: part of a cell ---- */

/* The sum over everybody is there; then the one over all but one. Whether that
 * one is really away, or says so, or the server says so, nobody can tell. */
typedef enum { IN_CAST, IN_SURV, AWAY } missing;

static bool split_cell(bool stopped, missing way)
{
    script *s = begin(9, 3, 1, 1, 5);
    dafl_members all = lab_everybody(s->lab), rest;
    uint16_t victim = script_any_honest(s);
    bool won;

    rest = script_others(s, victim);
    script_play(s, 1, &all, &all);
    assert_true(script_opens(s, 1, &all));
    script_model(s, 2);
    if (way == AWAY)
        lab_disconnect(s->lab, victim);
    script_tell(s, way == IN_CAST ? &rest : &all, &rest);
    script_cast(s);
    script_survey(s);
    assert_true(leak_run_is_of_cells(s->leak));
    script_confirm(s);
    won = script_opens(s, 2, &rest);
    assert_int_equal(leak_run_is_of_cells(s->leak), !won);
    if (stopped) {
        assert_int_equal(script_refusals(s, DAFL_E_CELL_SPLIT),
                         script_honest_n(s) - (way == AWAY));
        assert_int_equal(script_signatures(s), 0);
        assert_int_equal(leak_dim(s->leak, 2), 0);
        lab_reconnect(s->lab, victim);
        script_await(s, victim);
        script_goes_on(s);
    }
    script_free(&s);
    return won;
}

static bool split_cell_cast(bool stopped)
{
    return split_cell(stopped, IN_CAST);
}

static bool split_cell_surv(bool stopped)
{
    return split_cell(stopped, IN_SURV);
}

static bool split_cell_away(bool stopped)
{
    return split_cell(stopped, AWAY);
}

/* ---- S13: slots that nobody has keys for ---- */

/* S13. Of no enrolment, and of the next one. */
static bool slot_without_keys(bool stopped)
{
    script *s = begin(5, 1, 1, 0, 5);
    uint32_t slots = lab_config(s->lab)->slots;
    const uint32_t wrong[] = {0, slots + 1, 2 * slots};
    bool ready = false;

    assert_true(stopped);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        script_model(s, wrong[i]);
        assert_int_equal(script_refusals(s, DAFL_E_STATE), 5);
        for (uint16_t u = 0; u < 5; u++)
            ready |= s->clients[u].ready;
    }
    script_model(s, slots);
    assert_int_equal(script_refusals(s, DAFL_E_STATE), 0);
    for (uint16_t u = 0; u < 5; u++)
        assert_true(s->clients[u].ready);
    script_free(&s);
    return ready;
}

/* S13. A slot was closed without an upload, so its keys are zeros on the disk.
 * After a restart the client is asked in it again. */
static bool closed_slot(bool stopped)
{
    static const dafl_key zeros;
    script *s = begin(5, 1, 1, 0, 5);
    dafl_members all = lab_everybody(s->lab);
    uint16_t victim = script_any_honest(s);
    rogue_view view;
    bool reads = false;

    script_model(s, 1);
    script_model(s, 2);
    script_restart(s, victim);
    script_play(s, 1, &all, &all);
    if (rogue_was_cast(s->lab, victim, 1, &view)) {
        rogue_know(s->lab, &view, &zeros, &zeros);
        reads = rogue_reads(s->lab, &view);
    }
    if (stopped)
        assert_int_equal(script_refusals(s, DAFL_E_SLOT_SPENT), 5);
    script_free(&s);
    return reads;
}

/* S13. Another question, or the same of another rank, in an open slot: whether
 * a client is ready for it. */
static bool two_questions(bool stopped)
{
    bool ready = false;

    assert_true(stopped);
    for (size_t field = 0; field < 2; field++) {
        script *s = begin(5, 1, 1, 0, 5);
        script_model(s, 1);
        for (uint16_t u = 0; u < 5; u++)
            s->clients[u].ready = false;
        s->model.ptr[4 * field] ^= 1;
        script_model(s, 1);
        for (uint16_t u = 0; u < 5; u++)
            ready |= s->clients[u].ready;
        assert_int_equal(script_refusals(s, DAFL_E_SLOT_SPENT), 5);
        script_free(&s);
    }
    return ready;
}

/* S13. Another cohort in the same slot, smaller or larger: whether anybody
 * follows, those who uploaded and those who only help. */
static bool two_casts(bool stopped)
{
    size_t refusals = 0;

    assert_true(stopped);
    for (int larger = 0; larger < 2; larger++) {
        script *s = begin(9, 3, 1, 0, 5);
        dafl_members all = lab_everybody(s->lab), part;
        part = dafl_roster_cell(lab_roster(s->lab), 0);
        part = dafl_members_minus(&all, &part);
        script_model(s, 1);
        script_tell(s, larger == 1 ? &part : &all, &part);
        script_cast(s);
        script_cast(s); /* the same again: so is the upload */
        assert_int_equal(rogue_sent(s->lab, 8, DAFL_MSG_END, 1), 2);
        assert_int_equal(script_refusals(s, DAFL_E_SLOT_SPENT), 0);
        script_tell(s, larger == 1 ? &all : &part, &part);
        script_cast(s);
        refusals += script_refusals(s, DAFL_E_SLOT_SPENT);
        script_free(&s);
    }
    return refusals < 18;
}

/* ---- S14: a model with a gap ---- */

/* Segment 2 is called 3, and comes with question 3. Whether a client goes on
 * from there; it is to say what it has. */
static bool segment_left_out(bool stopped)
{
    dafl_members none = dafl_members_none(9);
    size_t at_entry = 0;
    lab_scenario scenario;
    bool ready = false;
    uint32_t slot = 3;
    script *s;

    assert_true(stopped);
    check_seed();
    scenario = lab_scenario_for(9, 3, random_u64());
    scenario.questions = 4;
    s = script_new(&scenario, &none, slot, DAFL_MSG_MODEL);
    script_ask_next(s);
    script_model(s, slot);
    assert_int_equal(script_refusals(s, DAFL_E_STATE), 9);
    for (uint16_t u = 0; u < 9; u++) {
        ready |= s->clients[u].ready;
        assert_non_null(lab_find(s->lab, &at_entry, LAB_SENT, u, LAB_ANYBODY,
                                 DAFL_MSG_HELLO, slot));
        at_entry = 0;
    }
    script_free(&s);
    return ready;
}

/* ---- L7: an increment over another cohort ---- */

/* Question 3 is tied to questions 1 and 2; it is asked of a part of their
 * cohort, loses a part on the way; questions 1 and 2 had different cohorts, of
 * which it is asked of the first or the second; one client has not signed for
 * question 2. */
typedef enum { SMALLER, SHRINKING, FIRST, SECOND, UNSIGNED } mismatch;

static void leave_a_cell_out(void *ctx, const dafl_question *q,
                             const dafl_roster *roster, dafl_members *cohort)
{
    dafl_members cell = dafl_roster_cell(roster, 0);

    (void)ctx;
    if (q->number == 2)
        *cohort = dafl_members_minus(cohort, &cell);
}

/* No SURV for the client in s->ctx. */
static bool not_surveyed(script *s, uint16_t to, dafl_msg_type type,
                         dafl_writer *body)
{
    const uint16_t *client = s->ctx;

    (void)body;
    return type != DAFL_MSG_SURV || to != *client;
}

/* Slot 4 is about to be opened, for question 3. */
static script *increment_lab(mismatch way)
{
    dafl_members none = dafl_members_none(9), all;
    lab_scenario scenario;
    uint16_t client;
    script *s;

    check_seed();
    scenario = lab_scenario_for(9, 3, random_u64());
    scenario.ties = true;
    scenario.questions = 4;
    if (way == FIRST || way == SECOND)
        scenario.choose = leave_a_cell_out;
    s = script_new(&scenario, &none, way == UNSIGNED ? 3 : 4, DAFL_MSG_MODEL);
    if (way != UNSIGNED)
        return s;
    all = lab_everybody(s->lab);
    client = (uint16_t)random_size(0, 8);
    s->ctx = &client;
    s->change = not_surveyed;
    script_play(s, 3, &all, &all);
    assert_true(script_opens(s, 3, &all));
    s->change = NULL;
    s->ctx = NULL;
    script_ask_next(s);
    return s;
}

/* The second field of MODEL. */
static void set_rank(script *s, uint8_t rank)
{
    s->model.ptr[4] = rank;
}

static bool increment_cohort(bool stopped, mismatch way)
{
    script *s = increment_lab(way);
    dafl_members all = lab_everybody(s->lab), part, u3;
    bool won;

    part = dafl_roster_cell(lab_roster(s->lab), 0);
    part = dafl_members_minus(&all, &part);
    u3 = way == FIRST || way == UNSIGNED ? all : part;
    set_rank(s, 1);
    script_play(s, 4, way == SHRINKING ? &all : &u3, &u3);
    won = script_opens(s, 4, &u3);
    if (stopped) {
        assert_int_equal(script_refusals(s, DAFL_E_COHORT),
                         way == UNSIGNED ? 1 : 9);
        assert_int_equal(leak_dim(s->leak, 4), 0);
        set_rank(s, 0); /* which any cohort can answer */
        script_goes_on(s);
    }
    script_free(&s);
    return won;
}

static bool increment_smaller(bool stopped)
{
    return increment_cohort(stopped, SMALLER);
}

static bool increment_shrinking(bool stopped)
{
    return increment_cohort(stopped, SHRINKING);
}

static bool increment_first(bool stopped)
{
    return increment_cohort(stopped, FIRST);
}

static bool increment_second(bool stopped)
{
    return increment_cohort(stopped, SECOND);
}

static bool increment_unsigned(bool stopped)
{
    return increment_cohort(stopped, UNSIGNED);
}

/* ---- S3: different variants of one question ---- */

/* The variant without ties for the client in s->ctx. */
static bool other_variant(script *s, uint16_t to, dafl_msg_type type,
                          dafl_writer *body)
{
    const uint16_t *client = s->ctx;

    if (type == DAFL_MSG_MODEL && to == *client)
        body->ptr[4] = 0;
    return true;
}

/* One client is asked for another variant than its cell, as long as theirs.
 * Next to a sum in which all answer alike, that sum would be about it alone. */
static bool variant_split(bool stopped)
{
    script *s = increment_lab(SHRINKING);
    dafl_members all = lab_everybody(s->lab);
    uint16_t client = (uint16_t)random_size(0, 8);
    bool won;

    set_rank(s, 1);
    s->ctx = &client;
    s->change = other_variant;
    script_play(s, 4, &all, &all);
    won = script_opens(s, 4, &all);
    if (stopped) {
        assert_int_equal(leak_dim(s->leak, 4), 0);
        assert_int_equal(script_refusals(s, DAFL_E_FORGED), 9);
        s->change = NULL;
        script_goes_on(s);
    }
    script_free(&s);
    return won;
}

const lab_attack attacks_slot[] = {
    {"S1 both_lists_one_message", DAFL_WEAK_NOTHING, both_lists},
    {"S3 model_split_one", DAFL_WEAK_BINDING, model_split_one},
    {"S3 model_split_half", DAFL_WEAK_BINDING, model_split_half},
    {"S3 variant_split", DAFL_WEAK_VARIANT, variant_split},
    {"S5 tiny_cohort_cast", DAFL_WEAK_COHORT, tiny_cohort_cast},
    {"S5 tiny_cohort_surv", DAFL_WEAK_COHORT, tiny_cohort_surv},
    {"S6 ghost_survivors", DAFL_WEAK_FORGED, ghost_survivors},
    {"S6 ghost_survivors_for_each", DAFL_WEAK_NOTHING, ghosts_for_each},
    {"S7 split_cell_cast", DAFL_WEAK_CELLS, split_cell_cast},
    {"S7 split_cell_surv", DAFL_WEAK_CELLS, split_cell_surv},
    {"S7 split_cell_away", DAFL_WEAK_CELLS, split_cell_away},
    {"S13 slot_without_keys", DAFL_WEAK_NOTHING, slot_without_keys},
    {"S13 closed_slot", DAFL_WEAK_SLOT, closed_slot},
    {"S13 two_questions", DAFL_WEAK_NOTHING, two_questions},
    {"S13 two_casts", DAFL_WEAK_NOTHING, two_casts},
    {"S14 segment_left_out", DAFL_WEAK_NOTHING, segment_left_out},
    {"L7 increment_cohort_smaller", DAFL_WEAK_TIES, increment_smaller},
    {"L7 increment_cohort_shrinking", DAFL_WEAK_TIES, increment_shrinking},
    {"L7 increment_cohort_first", DAFL_WEAK_TIES, increment_first},
    {"L7 increment_cohort_second", DAFL_WEAK_TIES, increment_second},
    {"L7 increment_cohort_unsigned", DAFL_WEAK_TIES, increment_unsigned},
    {0},
};
