/* SPDX-License-Identifier: Apache-2.0 */
/* Holders that are never there (D9). */
#include "tests/check.h"

#include "protocol/context.h"
#include "tests/lab/rogue.h"

static const struct {
    uint16_t k, cell_size; /* a = 1, 2, 3, 4 */
} sizes[] = {{5, 1}, {7, 1}, {9, 3}, {12, 3}};

/* D9. Every secret is rebuilt from exactly t shares, all run long. */
static void with_as_few_holders_as_allowed_every_sum_is_exact(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        lab_scenario s =
            lab_scenario_for(sizes[i].k, sizes[i].cell_size, random_u64());
        dafl_members gone;
        lab *l;
        s.questions = 4;
        l = lab_new(&s);
        /* One cell of three, and the rest of another: cells stay. */
        gone = lab_members(l, ((uint64_t)1 << s.config.policy.a) - 1);
        assert_int_equal(s.k - 1 - s.config.policy.a, rogue_threshold(l));
        lab_leave_all(l, &gone, 0, LAB_BEFORE_MODEL, LAB_FOR_GOOD);
        lab_check_done(l);
        assert_int_equal(dafl_server_stat(lab_server(l)).failed, 0);
        for (uint32_t q = 0; q < s.questions; q++) {
            dafl_members both =
                dafl_members_both(&lab_sum_of(l, q)->cohort, &gone);
            assert_int_equal(dafl_members_count(&both), 0);
        }
        lab_free(&l);
    }
}

/* D9. One more: it waits, and goes on when one is back. */
static void with_one_holder_less_it_waits_for_one_to_come_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        lab_scenario s =
            lab_scenario_for(sizes[i].k, sizes[i].cell_size, random_u64());
        const lab_sum *sums;
        dafl_members gone;
        dafl_fault fault;
        lab *l = lab_new(&s);
        gone = lab_members(l, ((uint64_t)2 << s.config.policy.a) - 1);
        lab_leave_all(l, &gone, 0, LAB_BEFORE_MODEL, LAB_FOR_GOOD);
        while (lab_now(l) < 30000 && lab_step(l))
            ;
        fault = lab_result(l, 1);
        assert_true(fault == DAFL_E_QUORUM || fault == DAFL_E_COHORT);
        assert_int_equal(dafl_server_where(lab_server(l)), DAFL_SERVER_PAUSED);
        assert_int_equal(lab_sums(l, &sums), 0);
        assert_int_equal(
            rogue_sent(l, LAB_ANYBODY, DAFL_MSG_REVEAL, UINT32_MAX), 0);
        lab_reconnect(l, 0);
        lab_check_done(l);
        lab_free(&l);
    }
}

/* What is done to the packets of one dealer at setup. */
static struct {
    uint16_t dealer;
    dafl_members dead; /* holders whose packets do not open, */
    bool dealt;        /* because the dealer made them so; else on their way */
} committee;

/* The dealer's SHARES with rubbish for the dead, signed as all it says. */
static void spoil_shares(lab *l, lab_letter *m)
{
    dafl_addressed packets[DAFL_CLIENTS_MAX];
    dafl_run_id run = lab_run_id(l);
    dafl_shares shares;
    dafl_signature sig;
    dafl_digest digest;
    dafl_writer w = {0};

    assert_ok(dafl_get_shares(&shares, m->envelope.body));
    for (size_t i = 0; i < shares.n; i++) {
        packets[i] = dafl_shares_at(&shares, i);
        /* A view of the letter's own bytes. */
        if (dafl_members_has(&committee.dead, packets[i].to))
            m->bytes[(size_t)(packets[i].packet.ptr - m->bytes) + 40] ^= 1;
    }
    dafl_put_shares(&w, packets, shares.n, shares.packet_len);
    dafl_context_shares(&digest, dafl_writer_bytes(&w));
    dafl_context_dealt(&digest, &run, 0, m->from, &digest);
    dafl_sign(&sig, &digest, lab_identity(l, m->from));
    dafl_put_shares_sig(&w, &sig);
    lab_letter_reseal(l, m, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
}

/* A bit of the dealer's packet in the SETUP for one of the dead. */
static void spoil_setup(lab *l, lab_letter *m)
{
    dafl_setup setup;
    size_t packet = 0;

    assert_ok(dafl_get_setup(&setup, m->envelope.body));
    for (size_t i = 0; i < setup.n; i++) {
        uint16_t from = dafl_setup_dealer(&setup, i).client;
        if (from == m->to)
            continue;
        if (from == committee.dealer) {
            dafl_bytes at_packet = dafl_setup_packet(&setup, packet);
            m->bytes[(size_t)(at_packet.ptr - m->bytes) + 40] ^= 1;
        }
        packet++;
    }
    lab_letter_reseal(l, m, m->envelope.body);
}

static bool spoil_packets(lab *l, lab_letter *m, void *ctx)
{
    (void)ctx;
    if (committee.dealt && m->envelope.type == DAFL_MSG_SHARES &&
        m->from == committee.dealer)
        spoil_shares(l, m);
    if (!committee.dealt && m->envelope.type == DAFL_MSG_SETUP &&
        dafl_members_has(&committee.dead, m->to))
        spoil_setup(l, m);
    return true;
}

/* `more` holders than k - t cannot open the dealer's packet. */
static lab *dead_lab(size_t i, size_t more, bool dealt)
{
    lab_scenario s =
        lab_scenario_for(sizes[i].k, sizes[i].cell_size, random_u64());
    lab *l;

    s.intercept = spoil_packets;
    l = lab_new(&s);
    committee.dealer = (uint16_t)random_size(0, s.k - 1u);
    committee.dealt = dealt;
    committee.dead = lab_members(l, 0);
    while (dafl_members_count(&committee.dead) <
           s.k - 1 - rogue_threshold(l) + more) {
        size_t holder = random_size(0, s.k - 1u);
        if (holder != committee.dealer)
            dafl_members_add(&committee.dead, holder);
    }
    return l;
}

/* D9. Its b is rebuilt from the t shares that there are, or its sk. */
static void a_dealer_with_t_holders_left_is_summed_and_recovered(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        lab *l = dead_lab(i, 0, false);
        dafl_members all = lab_everybody(l),
                     left = rogue_without(l, committee.dealer);
        lab_leave(l, committee.dealer, 1, LAB_AT_CAST, LAB_NEXT_SLOT);
        lab_check_done(l);
        lab_check_cohort(l, 0, &all);
        lab_check_cohort(l, 1, &left);
        assert_int_equal(dafl_server_stat(lab_server(l)).failed, 0);
        lab_free(&l);
    }
}

/* D9. One of the t is gone when it matters: no sum, and from then on the run
 * goes on without the dealer's cell. */
static void a_dealer_with_a_holder_less_is_left_out_from_then_on(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        lab *l = dead_lab(i, 0, false);
        dafl_members left = rogue_without(l, committee.dealer);
        uint16_t holder = 0;
        while (holder == committee.dealer ||
               dafl_members_has(&committee.dead, holder))
            holder++;
        lab_leave(l, holder, 0, LAB_AFTER_SIGN, LAB_NEXT_SLOT);
        lab_check_done(l);
        assert_int_equal(lab_result(l, 1), DAFL_E_UNRECOVERABLE);
        assert_int_equal(rogue_blamed(l, lab_server_index(l), committee.dealer,
                                      DAFL_E_UNRECOVERABLE),
                         1);
        assert_int_equal(dafl_server_stat(lab_server(l)).failed, 1);
        lab_check_cohort(l, 2, &left);
        lab_free(&l);
    }
}

/* D9. Already at setup, whether the dealer or the way is at fault. */
static void a_dealer_whose_packets_do_not_open_is_left_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++)
        for (int dealt = 0; dealt <= 1; dealt++) {
            lab *l = dead_lab(i, 1, dealt == 1);
            dafl_members left = rogue_without(l, committee.dealer);
            lab_check_done(l);
            assert_int_equal(rogue_blamed(l, lab_server_index(l),
                                          committee.dealer,
                                          DAFL_E_UNRECOVERABLE),
                             1);
            assert_int_equal(dafl_server_stat(lab_server(l)).failed, 0);
            assert_int_equal(dafl_server_stat(lab_server(l)).enrolments, 1);
            for (uint32_t q = 0; q < 3; q++)
                lab_check_cohort(l, q, &left);
            lab_free(&l);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_as_few_holders_as_allowed_every_sum_is_exact),
        cmocka_unit_test(with_one_holder_less_it_waits_for_one_to_come_back),
        cmocka_unit_test(a_dealer_with_t_holders_left_is_summed_and_recovered),
        cmocka_unit_test(a_dealer_with_a_holder_less_is_left_out_from_then_on),
        cmocka_unit_test(a_dealer_whose_packets_do_not_open_is_left_out),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
