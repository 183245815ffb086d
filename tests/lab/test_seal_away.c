/* SPDX-License-Identifier: Apache-2.0 */
/* Key holders that are away, or have other disks or rules: R6
 * no_silent_downgrade, a run waits, stops by name or burns a slot, and nothing
 * ever goes on without encryption. */
#include "tests/check.h"

#include "crypto/he.h"
#include "protocol/holder_state.h"
#include "tests/lab/rogue.h"

/* ---- disks ---- */

static bool has_opened(const lab *l, uint32_t slot)
{
    uint16_t holder = lab_holder_index(l);
    size_t n = lab_disk_records(l, holder);
    dafl_bytes last = lab_disk_record(l, holder, n - 1);

    return last.ptr[0] == DAFL_RECORD_OPEN && last.ptr[1] == slot;
}

/* Of slot 2 of another run there is an answer; of this one's there is none. */
static void an_answer_of_another_run_is_none(void **state)
{
    lab_scenario s = lab_scenario_for(4, 1, random_u64());
    uint16_t holder = 5;
    lab_disk *disk;
    lab *l;

    (void)state;
    lab_scenario_encrypt(&s);
    l = lab_new(&s);
    while (lab_disk_secret(l, holder, 2).ptr == NULL && lab_step(l))
        ;
    disk = lab_disk_copy(l, holder);
    lab_free(&l);
    s.run = 1;
    l = lab_new(&s);
    lab_disk_put(l, holder, disk);
    lab_disk_free(&disk);
    while (!(lab_disk_records(l, holder) > 0 && lab_holder(l) != NULL &&
             lab_holder(l)->slot == 2 && has_opened(l, 2)) &&
           lab_step(l))
        ;
    lab_crash(l, holder, 100);
    lab_check_done(l);
    assert_int_equal(dafl_server_stat(lab_server(l)).slots, s.questions + 1);
    assert_int_equal(
        rogue_blamed(l, holder, lab_server_index(l), DAFL_E_SLOT_SPENT), 1);
    /* Nothing is left of what was opened. */
    for (uint32_t slot = 1; slot <= s.questions + 1; slot++)
        assert_null(lab_disk_secret(l, holder, slot).ptr);
    lab_free(&l);
}

/* Slots of a run that it has been in would have keys again. */
static void a_key_holder_enters_a_run_once(void **state)
{
    lab_scenario s = lab_scenario_for(4, 1, random_u64());
    uint16_t holder = 5;
    dafl_writer invite = {0};
    const lab_seen *m;
    size_t at_entry = 0;
    lab_disk *disk;
    lab *l;

    (void)state;
    lab_scenario_encrypt(&s);
    l = lab_new(&s);
    while (lab_disk_secret(l, holder, 2).ptr == NULL && lab_step(l))
        ;
    m = lab_find(l, &at_entry, LAB_SENT, lab_server_index(l), holder,
                 DAFL_MSG_INVITE, UINT32_MAX);
    assert_non_null(m);
    dafl_put_fixed(&invite, m->bytes.ptr, m->bytes.len);
    disk = lab_disk_copy(l, holder);
    lab_free(&l);
    s.run = 1;
    l = lab_new(&s);
    lab_disk_put(l, holder, disk);
    lab_disk_free(&disk);
    assert_true(lab_run_to(l, DAFL_MSG_MODEL, 1));
    lab_post(l, lab_server_index(l), holder, dafl_writer_bytes(&invite), 0);
    lab_check_done(l);
    assert_int_equal(dafl_server_stat(lab_server(l)).slots, s.questions);
    assert_int_equal(
        rogue_blamed(l, holder, lab_server_index(l), DAFL_E_REPLAY), 1);
    dafl_writer_drop(&invite);
    lab_free(&l);
}

static void a_key_holder_with_an_old_disk_stops(void **state)
{
    lab_scenario s = lab_scenario_for(4, 1, random_u64());
    uint16_t holder = 5;
    lab_disk *disk;
    lab *l;

    (void)state;
    lab_scenario_encrypt(&s);
    l = lab_new(&s);
    assert_true(lab_run_to(l, DAFL_MSG_OPEN, 0));
    disk = lab_disk_copy(l, holder);
    assert_true(lab_run_to(l, DAFL_MSG_CAST, 1));
    lab_crash(l, holder, 10);
    assert_true(lab_run_to(l, DAFL_MSG_CAST, 1));
    lab_crash(l, holder, LAB_NEVER);
    lab_disk_put(l, holder, disk);
    lab_disk_free(&disk);
    lab_restart(l, holder);
    while ((lab_holder(l) == NULL ||
            dafl_holder_where(lab_holder(l)) != DAFL_HOLDER_OUT) &&
           lab_now(l) < 1000000 && lab_step(l))
        ;
    assert_int_equal(dafl_holder_fault(lab_holder(l)), DAFL_E_STATE_LOST);
    lab_free(&l);
}

/* The second message of a type between the server and the key holder is lost.
 */
typedef struct {
    dafl_msg_type type;
    unsigned seen;
} loss;

static bool lose_second(lab *l, lab_letter *m, void *ctx)
{
    uint16_t holder = lab_holder_index(l);
    loss *lost = ctx;

    return (m->from != holder && m->to != holder) ||
           m->envelope.type != (uint8_t)lost->type || ++lost->seen != 2;
}

/* Of a run with two enrolments. */
static lab *lossy_lab(loss *lost)
{
    lab_scenario s = lab_scenario_for(4, 1, random_u64());

    lab_scenario_encrypt(&s);
    s.config.slots = 2;
    s.intercept = lose_second;
    s.ctx = lost;
    return lab_new(&s);
}

/* With its SETUP_ACK the key holder goes. It still has the last answer of the
 * enrolment before. */
static void a_restart_between_enrolments_is_no_end(void **state)
{
    loss acks = {DAFL_MSG_SETUP_ACK, 0};
    lab *l = lossy_lab(&acks);

    (void)state;
    while (acks.seen < 2 && lab_step(l))
        ;
    assert_non_null(lab_disk_secret(l, 5, 2).ptr);
    lab_crash(l, 5, 100);
    lab_check_done(l);
    assert_true(acks.seen > 2);
    lab_free(&l);
}

/* What follows it is not taken for the setup before. */
static void a_lost_invitation_is_no_end(void **state)
{
    loss invites = {DAFL_MSG_INVITE, 0};
    lab *l = lossy_lab(&invites);

    (void)state;
    lab_check_done(l);
    assert_true(invites.seen > 2);
    lab_free(&l);
}

/* It says that it knows nothing of the run, again and again. */
static bool deny_all(lab *l, lab_letter *m, void *ctx)
{
    dafl_writer body = {0};

    (void)ctx;
    if (m->from != lab_holder_index(l) || m->envelope.type != DAFL_MSG_HELLO)
        return true;
    dafl_put_hello(&body, &(dafl_hello){.keys = 0});
    lab_letter_reseal(l, m, dafl_writer_bytes(&body));
    dafl_writer_drop(&body);
    return true;
}

static void a_key_holder_that_forgets_all_ends_the_run(void **state)
{
    lab_scenario s = lab_scenario_for(4, 1, random_u64());
    lab *l;

    (void)state;
    lab_scenario_encrypt(&s);
    s.intercept = deny_all;
    s.hello_after = 25; /* more than once in a slot */
    l = lab_new(&s);
    assert_int_equal(lab_run(l), LAB_FAILED);
    lab_check_invariants(l);
    assert_int_equal(dafl_server_fault(lab_server(l)), DAFL_E_STATE_LOST);
    for (uint16_t u = 0; u < 4; u++) {
        assert_int_equal(dafl_client_where(lab_client(l, u)), DAFL_CLIENT_OUT);
        assert_int_equal(dafl_client_fault(lab_client(l, u)),
                         DAFL_E_STATE_LOST);
    }
    assert_int_equal(dafl_holder_where(lab_holder(l)), DAFL_HOLDER_OUT);
    lab_free(&l);
}

/* ---- R6 no_silent_downgrade ---- */

/* Every upload there was is ciphertexts, and has no number in the clear. */
static void check_encrypted(const lab *l)
{
    for (uint32_t slot = 1; slot <= dafl_server_slot(lab_server(l)); slot++)
        for (uint16_t u = 0; u < lab_server_index(l); u++) {
            uint32_t q = lab_slot_question(l, slot);
            dafl_writer bytes = {0};
            if (q != UINT32_MAX && rogue_upload(l, u, slot, &bytes)) {
                assert_int_equal(bytes.len,
                                 dafl_he_bytes(lab_answer_len(l, q)));
                assert_false(rogue_in_clear(l, u, slot));
            }
            dafl_writer_drop(&bytes);
        }
}

static void without_a_key_holder_the_server_waits(void **state)
{
    lab_scenario s = lab_scenario_for(4, 1, random_u64());
    uint16_t holder = 5, server = 4;
    size_t sums;
    const lab_sum *list;
    lab *l;

    (void)state;
    lab_scenario_encrypt(&s);
    l = lab_new(&s);
    assert_true(lab_run_to(l, DAFL_MSG_OPEN, 0));
    sums = lab_sums(l, &list);
    lab_disconnect(l, holder);
    while (lab_now(l) < 300000 && lab_step(l))
        ;
    assert_int_equal(lab_outcome_of(l), LAB_RUNNING);
    assert_int_equal(lab_sums(l, &list), sums);
    assert_true(rogue_blamed(l, server, holder, DAFL_E_TIMEOUT) > 5);
    assert_int_equal(dafl_server_where(lab_server(l)), DAFL_SERVER_OPENING);
    lab_reconnect(l, holder);
    lab_check_done(l);
    assert_int_equal(dafl_server_stat(lab_server(l)).slots, s.questions);
    check_encrypted(l);
    lab_free(&l);
}

/* MODEL without a key, as if there were no encryption. */
static bool take_key_away(lab *l, lab_letter *m, void *ctx)
{
    dafl_segment segments[8];
    dafl_model_msg model, copy;
    dafl_writer body = {0};

    (void)ctx;
    if (m->envelope.type != DAFL_MSG_MODEL || m->to != ROGUE_VICTIM)
        return true;
    assert_ok(dafl_get_model(&model, m->envelope.body));
    copy = model;
    assert_true(model.n <= COUNT(segments));
    for (size_t i = 0; i < model.n; i++)
        assert_ok(dafl_model_next(&copy, &segments[i]));
    model.key = (dafl_bytes){0};
    dafl_put_model(&body, &model, segments);
    lab_letter_reseal(l, m, dafl_writer_bytes(&body));
    dafl_writer_drop(&body);
    return true;
}

static void without_a_key_nothing_is_uploaded(void **state)
{
    lab_scenario s = rogue_scenario(random_u64(), take_key_away, NULL);
    lab *l;

    (void)state;
    lab_scenario_encrypt(&s);
    l = lab_new(&s);
    lab_run(l);
    rogue_check_others(l, DAFL_E_FORMAT);
    assert_int_equal(rogue_sent(l, ROGUE_VICTIM, DAFL_MSG_UPLOAD, UINT32_MAX),
                     0);
    check_encrypted(l);
    lab_free(&l);
}

/* One party has another mode in its config than the rest. */
static void other_mode(void *ctx, uint16_t party, dafl_roster *roster,
                       dafl_config *config, dafl_floor *floor)
{
    const uint16_t *odd = ctx;

    (void)roster;
    (void)floor;
    if (party == *odd)
        config->mode = DAFL_MODE_MASKS;
}

static void parties_with_another_mode_stop(void **state)
{
    (void)state;
    for (uint16_t odd = 3; odd <= 5; odd++) {
        lab_scenario s = lab_scenario_for(4, 1, random_u64());
        lab *l;
        lab_scenario_encrypt(&s);
        s.outfit = other_mode;
        s.ctx = &odd;
        l = lab_new(&s);
        while (lab_now(l) < 100000 && lab_step(l))
            ;
        if (odd == 3) { /* a client: it goes by itself */
            assert_int_equal(dafl_client_fault(lab_client(l, odd)),
                             DAFL_E_POLICY);
        } else if (odd == 4) { /* the server: everybody else goes */
            for (uint16_t u = 0; u < 4; u++)
                assert_int_equal(dafl_client_fault(lab_client(l, u)),
                                 DAFL_E_POLICY);
        } else /* the key holder: is none */
            assert_int_equal(lab_refused(l, odd), DAFL_E_POLICY);
        for (uint16_t u = 0; u < 4; u++)
            assert_int_equal(rogue_sent(l, u, DAFL_MSG_UPLOAD, UINT32_MAX), 0);
        lab_free(&l);
    }
}

static void high_floor(void *ctx, uint16_t party, dafl_roster *roster,
                       dafl_config *config, dafl_floor *floor)
{
    (void)ctx;
    (void)roster;
    if (party == 5)
        floor->least_m = (uint16_t)(config->policy.m + 1);
}

static void a_key_holder_has_a_floor_too(void **state)
{
    lab_scenario s = lab_scenario_for(4, 1, random_u64());
    lab *l;

    (void)state;
    lab_scenario_encrypt(&s);
    s.outfit = high_floor;
    l = lab_new(&s);
    while (lab_now(l) < 100000 && lab_step(l))
        ;
    assert_int_equal(lab_refused(l, 5), DAFL_E_POLICY);
    assert_null(lab_holder(l));
    assert_int_equal(rogue_sent(l, 0, DAFL_MSG_UPLOAD, UINT32_MAX), 0);
    lab_free(&l);
}

/* ---- slots of no enrolment ---- */

/* The first ASK is for another slot. */
static bool ask_for(lab *l, lab_letter *m, void *ctx)
{
    uint32_t *slot = ctx;
    dafl_writer w = {0};

    if (m->envelope.type != DAFL_MSG_ASK || *slot == UINT32_MAX)
        return true;
    lab_seal(l, &w, m->from, DAFL_MSG_ASK, *slot, m->envelope.seq,
             m->envelope.body);
    lab_letter_set(m, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    *slot = UINT32_MAX;
    return true;
}

static void a_key_is_for_a_slot_of_the_enrolment(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        uint32_t slot = i == 0 ? 0 : i == 1 ? 9 : 1000;
        lab_scenario s = lab_scenario_for(4, 1, random_u64());
        lab *l;
        lab_scenario_encrypt(&s);
        s.config.slots = 8;
        s.intercept = ask_for;
        s.ctx = &slot;
        l = lab_new(&s);
        lab_check_done(l);
        assert_int_equal(rogue_blamed(l, 5, lab_server_index(l), DAFL_E_STATE),
                         1);
        lab_free(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_of_another_run_is_none),
        cmocka_unit_test(a_key_holder_enters_a_run_once),
        cmocka_unit_test(a_key_holder_with_an_old_disk_stops),
        cmocka_unit_test(a_restart_between_enrolments_is_no_end),
        cmocka_unit_test(a_lost_invitation_is_no_end),
        cmocka_unit_test(a_key_holder_that_forgets_all_ends_the_run),
        cmocka_unit_test(without_a_key_holder_the_server_waits),
        cmocka_unit_test(without_a_key_nothing_is_uploaded),
        cmocka_unit_test(parties_with_another_mode_stop),
        cmocka_unit_test(a_key_holder_has_a_floor_too),
        cmocka_unit_test(a_key_is_for_a_slot_of_the_enrolment),
    };

    if (!lab_can_encrypt())
        return 77;
    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
