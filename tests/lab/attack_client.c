/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that lie: about shares they hold (M1, M2), about secrets they deal
 * (M3), about whose upload is theirs (M4; with the real method in
 * attack_model.c). */
#include "tests/check.h"

#include "crypto/gf256.h"
#include "protocol/client_state.h"
#include "tests/lab/attack.h"
#include "tests/lab/leak.h"
#include "tests/lab/rogue.h"

/* ---- wrong shares ---- */

typedef enum {
    RANDOM,     /* each what it likes */
    COLLUDING,  /* shares of another secret that they agreed on */
    CANCELLING, /* two whose errors leave the secret as it is */
} lie;

enum { EVERYBODY = 65535 };

typedef struct {
    lie lie;
    uint16_t dealer; /* whose shares are wrong; EVERYBODY */
    dafl_members liars;
    size_t t;
    dafl_key secret; /* the one that they agreed on */
    dafl_key coefficients[DAFL_HOLDERS_MAX];
    uint8_t delta;
} liars;

/* The share of what they agreed on. */
static dafl_share agreed(const liars *a, uint16_t dealer, uint16_t holder)
{
    uint8_t places[DAFL_HOLDERS_MAX];
    dafl_share shares[DAFL_HOLDERS_MAX];
    size_t n = a->liars.n - 1u;

    for (size_t i = 0; i < n; i++)
        places[i] = (uint8_t)(i + 1);
    assert_ok(dafl_shamir_split_derand(shares, &a->secret, places, n, a->t,
                                       a->coefficients));
    return shares[dafl_shamir_place(dealer, holder) - 1];
}

/* What a 1 in the share of the i-th holder, of the first t, does to the
 * secret. */
static uint8_t influence(const liars *a, size_t i)
{
    uint8_t places[DAFL_HOLDERS_MAX];
    dafl_share shares[DAFL_HOLDERS_MAX];
    dafl_key secret;

    memset(shares, 0, sizeof shares);
    shares[i].b[0] = 1;
    for (size_t j = 0; j < a->t; j++)
        places[j] = (uint8_t)(j + 1);
    assert_ok(dafl_shamir_join(&secret, shares, places, a->t));
    return secret.b[0];
}

static void bend(lab *l, const liars *a, uint16_t holder, dafl_revealed *r)
{
    size_t place = dafl_shamir_place(r->dealer, holder);

    switch (a->lie) {
    case RANDOM:
        for (size_t i = 0; i < sizeof r->share.b; i++)
            r->share.b[i] ^= (uint8_t)(1 + lab_random(l, 255));
        break;
    case COLLUDING:
        r->share = agreed(a, r->dealer, holder);
        break;
    case CANCELLING: /* the holders of the first two places */
        assert_true(place <= 2);
        r->share.b[9] ^= dafl_gf_mul(a->delta, influence(a, 2 - place));
        break;
    }
}

static bool lie_in_reveals(lab *l, lab_letter *m, void *ctx)
{
    const liars *a = ctx;
    dafl_revealed items[DAFL_CLIENTS_MAX];
    dafl_reveal reveal;
    dafl_writer w = {0};

    if (m->envelope.type != DAFL_MSG_REVEAL ||
        !dafl_members_has(&a->liars, m->from))
        return true;
    assert_ok(dafl_get_reveal(&reveal, m->envelope.body));
    for (size_t i = 0; i < reveal.n; i++) {
        items[i] = dafl_reveal_at(&reveal, i);
        if (a->dealer == EVERYBODY || a->dealer == items[i].dealer)
            bend(l, a, m->from, &items[i]);
    }
    dafl_put_reveal(&w, items, reveal.n);
    lab_letter_reseal(l, m, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    return true;
}

/* Twelve clients in cells of three, one of which is cast and leaves: sk of
 * three is wanted, b of nine. t = 7 of 11 holders, of which ten reveal: one
 * wrong share can be told; of fifteen t = 8 of 14, 13 reveal: two. */
static lab *lying_lab(liars *a, uint16_t k, bool gone)
{
    lab_scenario s = lab_scenario_for(k, 3, random_u64());
    lab *l;

    s.intercept = lie_in_reveals;
    s.ctx = a;
    s.wrong_sums_expected = true;
    l = lab_new(&s);
    assert_int_equal(dafl_threshold(&a->t, k, 1, 0), DAFL_FAULT_NONE);
    a->delta = (uint8_t)random_size(1, 255);
    for (size_t i = 0; i < sizeof a->secret; i++)
        a->secret.b[i] = (uint8_t)random_u64();
    for (size_t j = 0; j < a->t; j++)
        for (size_t i = 0; i < sizeof a->secret; i++)
            a->coefficients[j].b[i] = (uint8_t)random_u64();
    if (gone)
        lab_leave(l, 5, 0, LAB_AT_CAST, LAB_NEXT_SLOT);
    return l;
}

/* As many as can be told apart. */
static size_t correctable(const liars *a, size_t received)
{
    return (received - a->t) / 2;
}

/* Whether some liar got away; everything else is in order. */
static bool unnamed(lab *l, const liars *a)
{
    uint16_t server = lab_server_index(l);
    size_t named = 0;

    lab_check_done(l);
    assert_int_equal(lab_wrong_sums(l), 0);
    assert_int_equal(dafl_server_stat(lab_server(l)).failed, 0);
    for (uint16_t u = 0; u < server; u++) {
        bool blamed = rogue_blamed(l, server, u, DAFL_E_FORGED) > 0;
        if (!dafl_members_has(&a->liars, u))
            assert_false(blamed);
        named += blamed;
    }
    return named < dafl_members_count(&a->liars);
}

/* M1. Behind the t that are enough, about everybody. */
static bool lie_unneeded(lie how)
{
    bool got_away = false;

    for (int gone = 0; gone <= 1; gone++) {
        liars a = {.lie = how, .dealer = EVERYBODY};
        lab *l = lying_lab(&a, 15, gone == 1);
        a.liars = lab_members(l, 0);
        for (size_t i = 0; i < correctable(&a, 13); i++)
            dafl_members_add(&a.liars, 14 - i);
        assert_int_equal(dafl_members_count(&a.liars), 2);
        got_away |= unnamed(l, &a);
        lab_free(&l);
    }
    return got_away;
}

static bool random_lies(bool stopped)
{
    (void)stopped;
    return lie_unneeded(RANDOM);
}

static bool colluding_lies(bool stopped)
{
    (void)stopped;
    return lie_unneeded(COLLUDING);
}

/* M1. Among the t that are taken first: the secret is right. Of dealers behind
 * the liars, who therefore have the first places. */
static bool cancelling_lies(bool stopped)
{
    liars a = {.lie = CANCELLING, .dealer = 7};
    lab *l = lying_lab(&a, 15, false);
    bool got_away;

    (void)stopped;
    a.liars = lab_members(l, 3);
    got_away = unnamed(l, &a);
    lab_free(&l);
    return got_away;
}

/* M1. Wherever they sit, whatever they say: the sum is right. */
static bool lies_in_front(bool stopped)
{
    bool got_away = false;

    (void)stopped;
    for (int how = RANDOM; how <= COLLUDING; how++)
        for (int gone = 0; gone <= 1; gone++) {
            liars a = {.lie = (lie)how, .dealer = EVERYBODY};
            lab *l = lying_lab(&a, 15, gone == 1);
            a.liars = lab_members(l, 1 | (gone == 1 ? 1u << 9 : 2));
            got_away |= unnamed(l, &a);
            lab_free(&l);
        }
    return got_away;
}

/* M1. Three of twelve, about everybody, are too many for most dealers; but not
 * where one of them is the dealer, and whoever has been named there is believed
 * last. */
static bool lies_of_too_many(bool stopped)
{
    liars a = {.lie = COLLUDING, .dealer = EVERYBODY};
    lab *l = lying_lab(&a, 12, false);
    bool got_away;

    (void)stopped;
    a.liars = lab_members(l, 7);
    got_away = unnamed(l, &a);
    lab_free(&l);
    return got_away;
}

/* M2. One more than can be told apart, about one dealer. */
static bool one_lie_more(bool stopped)
{
    bool taken = false;

    for (int how = RANDOM; how <= COLLUDING; how++)
        for (int gone = 0; gone <= 1; gone++) {
            liars a = {.lie = (lie)how, .dealer = 4};
            lab *l = lying_lab(&a, 12, gone == 1);
            uint16_t server = lab_server_index(l);
            dafl_members left = rogue_without(l, a.dealer);
            a.liars = lab_members(l, gone == 1 ? 3 : 7);
            assert_int_equal(dafl_members_count(&a.liars),
                             correctable(&a, gone == 1 ? 10 : 11) + 1);
            if (stopped) {
                lab_check_done(l);
                assert_int_equal(
                    rogue_blamed(l, server, a.dealer, DAFL_E_UNRECOVERABLE), 1);
                assert_int_equal(dafl_server_stat(lab_server(l)).failed, 1);
                lab_check_cohort(l, 2, &left);
            } else {
                (void)lab_run(l);
            }
            taken |= lab_wrong_sums(l) > 0;
            lab_free(&l);
        }
    return taken;
}

/* M2. About everybody, and so many that they are too many for each other as
 * well: they can stop a run, but not without a name for it, and they cannot
 * make it go on with a wrong sum. */
static bool lies_about_everybody(bool stopped)
{
    liars a = {.lie = COLLUDING, .dealer = EVERYBODY};
    lab *l = lying_lab(&a, 12, false);
    bool taken;

    a.liars = lab_members(l, 15);
    (void)lab_run(l);
    if (stopped) {
        assert_int_equal(lab_outcome_of(l), LAB_FAILED);
        assert_true(dafl_server_fault(lab_server(l)) == DAFL_E_UNRECOVERABLE ||
                    dafl_server_fault(lab_server(l)) == DAFL_E_COHORT);
        lab_check_invariants(l);
    }
    taken = lab_wrong_sums(l) > 0;
    lab_free(&l);
    return taken;
}

/* ---- bad dealers ---- */

typedef enum {
    SHUT,     /* packets that do not open */
    SPLIT,    /* shares of one secret for some, of another for others */
    TOO_HIGH, /* of a polynomial that t shares do not give */
} deal;

typedef struct {
    deal deal;
    dafl_members dealers;
    size_t holders; /* how many of the first get something bad */
} dealers;

static bool deal_badly(void *ctx, lab *l, uint16_t dealer, uint16_t holder,
                       uint8_t *plain, size_t len)
{
    const dealers *a = ctx;
    uint8_t place = dafl_shamir_place(dealer, holder);

    if (place > a->holders)
        return true;
    for (size_t i = 0; i < len && a->deal == TOO_HIGH; i++)
        plain[i] ^= (uint8_t)(1 + lab_random(l, 255));
    for (size_t i = 0; i < len && a->deal == SPLIT; i++)
        plain[i] ^= (uint8_t)(i + 1); /* the same for all: of s + i + 1 */
    return a->deal != SHUT;
}

static bool intercept_shares(lab *l, lab_letter *m, void *ctx)
{
    const dealers *a = ctx;

    if (m->envelope.type == DAFL_MSG_SHARES &&
        dafl_members_has(&a->dealers, m->from))
        rogue_deal(l, m, deal_badly, ctx);
    return true;
}

/* Two bad dealers of two of five cells; whether they cost more than a slot
 * each, or any if `at_setup`. */
static bool costs_more(bool stopped, dealers *a, bool at_setup)
{
    lab_scenario s = lab_scenario_for(15, 3, random_u64());
    dafl_members left;
    uint32_t failed;
    bool done;
    lab *l;

    s.intercept = intercept_shares;
    s.ctx = a;
    s.wrong_sums_expected = true;
    l = lab_new(&s);
    a->dealers = lab_members(l, 1u << 4 | 1u << 10);
    left = rogue_without(l, 4);
    for (uint16_t u = 9; u < 12; u++)
        dafl_members_remove(&left, u);
    done = lab_run(l) == LAB_DONE;
    failed = dafl_server_stat(lab_server(l)).failed;
    if (stopped) {
        lab_check_done(l);
        lab_check_cohort(l, 2, &left);
        for (uint16_t u = 4; u <= 10; u += 6)
            assert_int_equal(
                rogue_blamed(l, lab_server_index(l), u, DAFL_E_UNRECOVERABLE),
                1);
        assert_int_equal(dafl_server_stat(lab_server(l)).enrolments, 1);
    }
    assert_int_equal(lab_wrong_sums(l), 0);
    lab_free(&l);
    return !done || failed > (at_setup ? 0 : 2);
}

/* M3. t = 8 of 14 holders: seven packets that open are too few. */
static bool shut_packets(bool stopped)
{
    dealers a = {.deal = SHUT, .holders = 7};

    return costs_more(stopped, &a, true);
}

static bool split_secret(bool stopped)
{
    dealers a = {.deal = SPLIT, .holders = 7};

    return costs_more(stopped, &a, false);
}

static bool no_polynomial(bool stopped)
{
    dealers a = {.deal = TOO_HIGH, .holders = 14};

    return costs_more(stopped, &a, false);
}

/* M3. The shares that are taken first give another secret: no sum of it. */
static bool other_secret(bool stopped)
{
    dealers a = {.deal = SPLIT, .holders = 8};
    lab_scenario s = lab_scenario_for(15, 3, random_u64());
    bool taken;
    lab *l;

    s.intercept = intercept_shares;
    s.ctx = &a;
    s.wrong_sums_expected = true;
    l = lab_new(&s);
    a.dealers = lab_members(l, 1u << 14);
    if (stopped)
        lab_check_done(l);
    else
        (void)lab_run(l);
    taken = lab_wrong_sums(l) > 0;
    lab_free(&l);
    return taken;
}

/* M3. It says that it was shown another setup: that costs its cell, and no
 * slot, and not the run. */
static bool change_ack(lab *l, lab_letter *m, void *ctx)
{
    uint16_t *liar = ctx;
    dafl_setup_ack ack;
    dafl_writer w = {0};

    if (m->envelope.type != DAFL_MSG_SETUP_ACK || m->from != *liar)
        return true;
    assert_ok(dafl_get_setup_ack(&ack, m->envelope.body));
    ack.h_setup.b[0] ^= 1;
    dafl_put_setup_ack(&w, &ack);
    lab_letter_reseal(l, m, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    return true;
}

static bool other_setup(bool stopped)
{
    lab_scenario s = lab_scenario_for(15, 3, random_u64());
    uint16_t liar = (uint16_t)random_size(0, 14);
    dafl_members left;
    bool costs;
    lab *l;

    s.intercept = change_ack;
    s.ctx = &liar;
    s.config.tries = 2;
    l = lab_new(&s);
    left = rogue_without(l, liar);
    costs = lab_run(l) != LAB_DONE ||
            dafl_server_stat(lab_server(l)).failed > 0 ||
            dafl_server_stat(lab_server(l)).enrolments > 1;
    if (stopped && !costs) {
        lab_check_done(l);
        for (uint32_t q = 0; q < 3; q++)
            lab_check_cohort(l, q, &left);
        assert_true(
            rogue_blamed(l, lab_server_index(l), liar, DAFL_E_SETUP_SPLIT) > 0);
    }
    lab_free(&l);
    return costs;
}

/* ---- another client's upload ---- */

typedef struct {
    uint16_t thief, victim;
    dafl_writer bytes;
    dafl_end_msg end;
    bool done;
} copy;

/* The thief sends what the victim has sent, END and all, in its own name. */
static bool copy_upload(lab *l, lab_letter *m, void *ctx)
{
    copy *a = ctx;
    dafl_upload chunk;
    dafl_writer w = {0};

    if (m->envelope.slot != 1 || (m->envelope.type != DAFL_MSG_UPLOAD &&
                                  m->envelope.type != DAFL_MSG_END))
        return true;
    if (m->from == a->victim && m->envelope.type == DAFL_MSG_UPLOAD) {
        assert_ok(dafl_get_upload(&chunk, m->envelope.body));
        dafl_put_fixed(&a->bytes, chunk.chunk.ptr, chunk.chunk.len);
    } else if (m->from == a->victim) {
        assert_ok(dafl_get_end_msg(&a->end, m->envelope.body));
        a->done = true;
    }
    if (m->from != a->thief)
        return true;
    if (m->envelope.type == DAFL_MSG_UPLOAD) {
        assert_ok(dafl_get_upload(&chunk, m->envelope.body));
        chunk.chunk.ptr = a->bytes.ptr + chunk.offset;
        dafl_put_upload(&w, &chunk);
    } else {
        assert_true(a->done);
        lab_sign_end(l, a->thief, &lab_client(l, a->thief)->ctx2, &a->end);
        dafl_put_end(&w, &a->end);
    }
    lab_letter_reseal(l, m, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    return true;
}

/* M4. The digest of an upload is of its client. */
static bool copied_end(bool stopped)
{
    copy a = {.thief = 5, .victim = 1};
    lab_scenario s = lab_scenario_for(9, 3, random_u64());
    dafl_members left;
    bool taken;
    lab *l;

    s.intercept = copy_upload;
    s.ctx = &a;
    s.wrong_sums_expected = true;
    /* The victim is first. */
    s.net.latency_min = s.net.latency_max = 1;
    l = lab_new(&s);
    left = rogue_without(l, a.thief);
    if (stopped) {
        lab_check_done(l);
        lab_check_cohort(l, 0, &left);
        assert_true(
            rogue_blamed(l, lab_server_index(l), a.thief, DAFL_E_FORGED) > 0);
    } else {
        (void)lab_run(l);
    }
    taken = lab_wrong_sums(l) > 0;
    lab_free(&l);
    dafl_writer_drop(&a.bytes);
    return taken;
}

const lab_attack attacks_client[] = {
    {"M1 random_lies", DAFL_WEAK_AGREE, random_lies},
    {"M1 colluding_lies", DAFL_WEAK_AGREE, colluding_lies},
    {"M1 cancelling_lies", DAFL_WEAK_AGREE, cancelling_lies},
    {"M1 lies_in_front", DAFL_WEAK_NOTHING, lies_in_front},
    {"M1 lies_of_too_many", DAFL_WEAK_NOTHING, lies_of_too_many},
    {"M2 one_lie_more", DAFL_WEAK_COMMITMENT, one_lie_more},
    {"M2 lies_about_everybody", DAFL_WEAK_COMMITMENT, lies_about_everybody},
    {"M3 shut_packets", DAFL_WEAK_BAR, shut_packets},
    {"M3 split_secret", DAFL_WEAK_BAR, split_secret},
    {"M3 no_polynomial", DAFL_WEAK_BAR, no_polynomial},
    {"M3 other_secret", DAFL_WEAK_COMMITMENT, other_secret},
    {"M3 other_setup", DAFL_WEAK_NOTHING, other_setup},
    {"M4 copied_end", DAFL_WEAK_END, copied_end},
    {0},
};
