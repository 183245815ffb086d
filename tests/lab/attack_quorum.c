/* SPDX-License-Identifier: Apache-2.0 */
/* A server that wants signatures it should not have, or shares without them. */
#include "tests/lab/attack.h"

#include "tests/check.h"

#include "tests/lab/script.h"

static size_t threshold_of(const script *s)
{
    const dafl_policy *p = &lab_config(s->lab)->policy;
    size_t t = 0;

    assert_int_equal(dafl_threshold(&t, p->n_min, p->c, p->a), 0);
    return t;
}

static dafl_members plus(dafl_members set, const dafl_members *more)
{
    for (size_t u = 0; u < more->n; u++)
        if (dafl_members_has(more, u))
            dafl_members_add(&set, u);
    return set;
}

static uint16_t any_of(const dafl_members *set)
{
    uint16_t u;

    do
        u = (uint16_t)random_size(0, set->n - 1u);
    while (!dafl_members_has(set, u));
    return u;
}

/* ---- S2: two views ---- */

#define SPLITS_MAX 64u /* in one run */

/* The honest clients in two groups that are told of different survivors. */
typedef struct {
    uint16_t victim;
    dafl_members group[2], u3[2];
} split;

/* A group hears of itself, the other of itself and one of the first, both of
 * all colluders. Shares for a client come from its own group, which has one
 * holder less, or from the other. If only the other is large enough, of all but
 * the victim sk becomes known, of the victim b. */
static split make_split(const script *s, uint32_t bits)
{
    dafl_members honest = script_honest(s);
    size_t m = lab_config(s->lab)->policy.m;
    split v;

    v.group[0] = v.group[1] = lab_members(s->lab, 0);
    for (uint16_t u = 0, i = 0; u < honest.n; u++)
        if (dafl_members_has(&honest, u))
            dafl_members_add(&v.group[bits >> i++ & 1], u);
    v.victim = any_of(&v.group[0]);
    for (int g = 0; g < 2; g++) {
        v.u3[g] = plus(v.group[g], &s->colluders);
        dafl_members_add(&v.u3[g], v.victim);
        while (dafl_members_count(&v.u3[g]) < m)
            dafl_members_add(&v.u3[g], any_of(&honest));
    }
    return v;
}

/* `casts`: they are told of different cohorts too. */
static void play_split(script *s, uint32_t slot, const split *v, bool casts)
{
    dafl_members all = lab_everybody(s->lab);

    script_model(s, slot);
    for (uint16_t u = 0; u < all.n; u++) {
        int g = dafl_members_has(&v->group[1], u);
        s->clients[u].a = casts ? v->u3[g] : all;
        s->clients[u].u3 = v->u3[g];
    }
    script_cast(s);
    script_survey(s);
    assert_int_equal(leak_dim(s->leak, slot), 0);
    script_confirm(s);
}

static size_t reveals_in(const script *s, const dafl_members *group)
{
    size_t n = 0;

    for (uint16_t u = 0; u < group->n; u++)
        n += dafl_members_has(group, u) && s->clients[u].revealed;
    return n;
}

/* Whether the honest survivors that a group is told of were cast as it was. */
static bool agrees(const script *s, const split *v, int g)
{
    dafl_members others = dafl_members_minus(&v->u3[g], &v->group[g]);

    others = dafl_members_minus(&others, &s->colluders);
    return dafl_members_count(&others) == 0;
}

/* One group may be confirmed, if it is large enough and was not told of
 * survivors that were cast apart; then it is the sum over its cohort that is
 * known. */
static void check_split(script *s, const split *v, bool casts)
{
    size_t t = threshold_of(s), c = dafl_members_count(&s->colluders);
    size_t refused = 0, forged = 0, both = 0;
    bool sum = false;

    for (int g = 0; g < 2; g++) {
        size_t n = dafl_members_count(&v->group[g]);
        bool signs = !casts || agrees(s, v, g), confirmed = signs && n + c > t;
        assert_int_equal(reveals_in(s, &v->group[g]), confirmed ? n : 0);
        refused += !signs || confirmed ? 0 : n;
        forged += signs ? 0 : n;
        both += confirmed;
        sum = sum || (confirmed && script_opens(s, s->slot, &v->u3[g]));
    }
    assert_int_equal(script_refusals(s, DAFL_E_QUORUM), refused);
    assert_int_equal(script_refusals(s, DAFL_E_FORGED), forged);
    assert_true(both <= 1);
    assert_true(sum || leak_dim(s->leak, s->slot) == 0);
    assert_true(sum || both == 0);
}

/* Whether two views can reach beyond what one group sees. */
static bool is_tight(const script *s, const split *v)
{
    size_t c = dafl_members_count(&s->colluders), t = threshold_of(s);

    return dafl_members_count(&v->group[0]) + c >= t &&
           dafl_members_count(&v->group[1]) + c >= t;
}

/* Splits first .. of ten clients, c of whom collude and sign both statements.
 * Returns in how many the victim is read. */
static size_t play_splits(bool stopped, uint16_t c, uint32_t first, uint32_t n,
                          bool casts)
{
    lab_scenario scenario = lab_scenario_for(10, 1, random_u64());
    dafl_members colluders = dafl_members_none(10);
    size_t won = 0, tight = 0;
    script *s;

    lab_scenario_collude(&scenario, c);
    scenario.config.slots = n + 1;
    while (dafl_members_count(&colluders) < c)
        dafl_members_add(&colluders, random_size(0, 9));
    s = script_new(&scenario, &colluders, 1, DAFL_MSG_MODEL);
    for (uint32_t i = 0; i < n; i++) {
        /* The first honest client is always in the first group. */
        split v = make_split(s, 2 * (first + i));
        play_split(s, i + 1, &v, casts);
        won += script_reads(s, v.victim, i + 1);
        tight += is_tight(s, &v) && !casts;
        if (stopped)
            check_split(s, &v, casts);
    }
    assert_int_equal(won, stopped ? 0 : tight);
    if (stopped)
        script_goes_on(s);
    script_free(&s);
    return won;
}

/* Every split of all ten, of nine with one colluder, of eight with two; and
 * some with different cohorts. */
static bool two_views(bool stopped)
{
    size_t won = 0;

    check_seed();
    for (uint16_t c = 0; c <= 2; c++) {
        uint32_t n = 512u >> c;
        for (uint32_t at = 0; at < n; at += SPLITS_MAX)
            won += play_splits(stopped, c, at, SPLITS_MAX, false);
        won +=
            play_splits(stopped, c, (uint32_t)random_size(0, n - 16), 16, true);
    }
    return won > 0;
}

/* Some cells are told that each of them alone was cast, the others that
 * everybody was. If the others sign for everybody and give every b away, it is
 * the sums over those cells that open, and not the one that was confirmed. */
static bool play_apart(bool stopped, uint16_t cell_size, uint16_t cells,
                       uint16_t c)
{
    lab_scenario scenario = lab_scenario_for(12, cell_size, random_u64());
    dafl_members colluders = dafl_members_none(12), all, rest, honest;
    script *s;
    bool won;

    lab_scenario_collude(&scenario, c);
    while (dafl_members_count(&colluders) < c)
        dafl_members_add(&colluders, random_size(0, 11));
    s = script_new(&scenario, &colluders, 1, DAFL_MSG_MODEL);
    all = lab_everybody(s->lab);
    script_model(s, 1);
    script_tell(s, &all, &all);
    for (uint16_t u = 0; u < cells * cell_size; u++)
        s->clients[u].a = s->clients[u].u3 = dafl_roster_cell(
            lab_roster(s->lab), lab_roster(s->lab)->parties[u].cell);
    rest = lab_members(s->lab, ((uint64_t)1 << cells * cell_size) - 1);
    rest = dafl_members_minus(&all, &rest);
    honest = dafl_members_minus(&rest, &colluders);
    script_cast(s);
    script_survey(s);
    assert_int_equal(leak_dim(s->leak, 1), 0);
    script_confirm(s);
    won = leak_dim(s->leak, 1) == cells && !leak_is_sum(s->leak, 1, &all);
    assert_int_equal(reveals_in(s, &honest),
                     stopped ? 0 : dafl_members_count(&honest));
    if (stopped) {
        assert_int_equal(script_refusals(s, DAFL_E_FORGED),
                         dafl_members_count(&honest));
        assert_int_equal(leak_dim(s->leak, 1), 0);
        script_goes_on(s);
    }
    script_free(&s);
    return won;
}

static bool cast_apart(bool stopped)
{
    static const struct {
        uint16_t cell_size, cells, c;
    } sizes[] = {{3, 1, 0}, {3, 1, 1}, {2, 1, 0}, {2, 2, 0}, {4, 1, 2}};
    size_t won = 0;

    check_seed();
    for (size_t i = 0; i < COUNT(sizes); i++)
        won +=
            play_apart(stopped, sizes[i].cell_size, sizes[i].cells, sizes[i].c);
    assert_int_equal(won, stopped ? 0 : COUNT(sizes));
    return won > 0;
}

/* ---- S9: a quorum that is none ---- */

typedef enum {
    SHORT,      /* t signatures, and so t - 1 besides a signer's own */
    DOUBLE,     /* one twice */
    FOREIGN,    /* one of somebody who is not in the roster */
    OTHER_SLOT, /* one on a statement over the same cohort, of another slot */
    OTHER_RUN,  /* .. of another run of the same parties */
    SERVER,     /* one of the server, which has no bit: one more than clients */
    FORGERIES
} forgery;

static script *ten_clients(uint64_t seed, uint32_t run)
{
    dafl_members none = dafl_members_none(10);
    lab_scenario s = lab_scenario_for(10, 1, seed);

    lab_scenario_collude(&s, 2);
    s.run = run;
    s.config.slots = 2 * FORGERIES + 2;
    return script_new(&s, &none, 1, DAFL_MSG_MODEL);
}

/* All survive and sign; CONF is yet to come. */
static void collect(script *s, uint32_t slot)
{
    dafl_members all = lab_everybody(s->lab);

    script_model(s, slot);
    script_tell(s, &all, &all);
    script_cast(s);
    script_survey(s);
    assert_int_equal(script_signatures(s), 10);
}

static dafl_signature other_run(uint64_t seed, size_t client)
{
    script *s = ten_clients(seed, 1);
    dafl_signature sig;

    collect(s, 1);
    sig = s->clients[client].sig;
    script_free(&s);
    return sig;
}

static dafl_signature foreign(const dafl_digest *stmt)
{
    const uint8_t seed[64] = {1, [33] = 1};
    dafl_secret_identity stranger;
    dafl_signature sig;

    assert_ok(dafl_identity_new_derand(&stranger, "stranger", seed, NULL));
    dafl_sign(&sig, stmt, &stranger);
    return sig;
}

/* t signatures of clients and one of the server, as client number k. */
static bool server_signs(script *s, uint16_t to, dafl_msg_type type,
                         dafl_writer *body)
{
    uint16_t server = lab_server_index(s->lab);
    dafl_writer signatures = {0};
    dafl_signature sig;
    dafl_conf conf;

    if (type != DAFL_MSG_CONF)
        return true;
    dafl_sign(&sig, &s->clients[to].stmt, lab_identity(s->lab, server));
    assert_ok(dafl_get_conf(&conf, dafl_writer_bytes(body)));
    dafl_put_fixed(&signatures, conf.signatures.ptr, conf.signatures.len);
    dafl_put_fixed(&signatures, sig.b, sizeof sig.b);
    conf.signatures = dafl_writer_bytes(&signatures);
    conf.signers.n = server + 1u;
    dafl_members_add(&conf.signers, server);
    dafl_writer_clear(body);
    dafl_put_conf(body, &conf);
    dafl_writer_drop(&signatures);
    return true;
}

/* Of t + 1 signatures the last is forged, or missing. */
static bool quorum_forgery(bool stopped)
{
    uint64_t seed;
    dafl_signature old, foreign_run;
    size_t t, won = 0;
    dafl_members all;
    script *s;

    check_seed();
    seed = random_u64();
    s = ten_clients(seed, 0);
    t = threshold_of(s);
    all = lab_everybody(s->lab);
    script_free(&s); /* one lab at a time */
    foreign_run = other_run(seed, t);
    s = ten_clients(seed, 0);
    for (uint32_t i = 0; i < FORGERIES; i++) {
        script_client *last = &s->clients[t];
        collect(s, 2 * i + 1);
        old = last->sig;
        collect(s, 2 * i + 2);
        s->quorum = i == SHORT || i == SERVER ? t : t + 1;
        s->change = i == SERVER ? server_signs : NULL;
        last->sig = i == DOUBLE       ? s->clients[0].sig
                    : i == FOREIGN    ? foreign(&last->stmt)
                    : i == OTHER_SLOT ? old
                    : i == OTHER_RUN  ? foreign_run
                                      : last->sig;
        assert_int_equal(leak_dim(s->leak, s->slot), 0);
        script_confirm(s);
        won += script_opens(s, s->slot, &all);
        if (!stopped)
            continue;
        assert_int_equal(script_refusals(s, DAFL_E_QUORUM), 10);
        assert_int_equal(script_reveals(s), 0);
        assert_int_equal(leak_dim(s->leak, s->slot), 0);
    }
    assert_int_equal(won, stopped ? 0 : FORGERIES);
    s->quorum = t + 1; /* which is enough */
    s->change = NULL;
    if (stopped)
        script_goes_on(s);
    script_free(&s);
    return won > 0;
}

/* ---- S1, S10, C2: a second statement ---- */

typedef enum {
    AFTER_REVEAL,
    BEFORE_CONF, /* the first is signed, but not confirmed */
    RESTARTED,   /* all clients have restarted since */
    REOPENED,    /* the slot is begun again */
} moment;

/* The victim survives, and then it does not: b and sk of one client. */
static bool two_statements(bool stopped, moment when)
{
    dafl_members none = dafl_members_none(6), all, rest;
    lab_scenario scenario;
    uint16_t victim;
    script *s;
    bool won;

    check_seed();
    scenario = lab_scenario_for(6, 1, random_u64());
    s = script_new(&scenario, &none, 1, DAFL_MSG_MODEL);
    all = lab_everybody(s->lab);
    victim = script_any_honest(s);
    rest = script_others(s, victim);
    script_model(s, 1);
    script_tell(s, &all, &all);
    script_cast(s);
    script_survey(s);
    if (when != BEFORE_CONF) {
        script_confirm(s);
        assert_true(script_opens(s, 1, &all));
    }
    for (uint16_t u = 0; u < all.n && when == RESTARTED; u++)
        script_restart(s, u);
    if (when == RESTARTED || when == REOPENED) {
        script_model(s, 1);
        script_tell(s, &all, &rest);
        script_cast(s);
    }
    script_tell(s, &all, &rest);
    script_survey(s);
    script_confirm(s);
    if (when == BEFORE_CONF) {
        script_tell(s, &all, &all);
        script_survey(s);
        script_confirm(s);
    }
    won = leak_knows_b(s->leak, victim, 1) && leak_knows_sk(s->leak, victim, 1);
    assert_int_equal(script_reads(s, victim, 1), won);
    assert_int_equal(leak_dim(s->leak, 1), won                   ? 2
                                           : when == BEFORE_CONF ? 0
                                                                 : 1);
    if (stopped) {
        assert_int_equal(script_refusals(s, DAFL_E_SECOND_STMT), 6);
        script_goes_on(s);
    }
    script_free(&s);
    return won;
}

static bool statement_after_reveal(bool stopped)
{
    return two_statements(stopped, AFTER_REVEAL);
}

static bool statement_before_conf(bool stopped)
{
    return two_statements(stopped, BEFORE_CONF);
}

static bool statement_after_restart(bool stopped)
{
    return two_statements(stopped, RESTARTED);
}

static bool slot_reopened(bool stopped)
{
    return two_statements(stopped, REOPENED);
}

/* ---- S11: shares before their time, or of others ---- */

static script *ten_with_one(void)
{
    dafl_members colluders = dafl_members_none(10);
    lab_scenario s;

    check_seed();
    s = lab_scenario_for(10, 1, random_u64());
    dafl_members_add(&colluders, random_size(0, 9));
    return script_new(&s, &colluders, 1, DAFL_MSG_MODEL);
}

/* CONF before SURV, with the signatures of the slot before. Its cohort has only
 * the victim in common with this one. */
static bool early_reveal(bool stopped)
{
    script *s = ten_with_one();
    dafl_members all = lab_everybody(s->lab);
    uint16_t victim = script_any_honest(s);
    dafl_members first = lab_members(s->lab, 0), second = first;
    script_client before[10];
    bool won;

    for (uint16_t u = 0; u < all.n; u++)
        dafl_members_add(u % 2 == 0 ? &first : &second, u);
    dafl_members_add(&first, victim);
    dafl_members_add(&second, victim);
    script_play(s, 1, &all, &first);
    assert_true(script_opens(s, 1, &first));
    memcpy(before, s->clients, sizeof before);
    script_model(s, 2);
    script_tell(s, &second, &second);
    script_cast(s);
    for (uint16_t u = 0; u < all.n; u++) {
        s->clients[u].stmt = before[u].stmt;
        s->clients[u].sig = before[u].sig;
        s->clients[u].has_signed = true;
    }
    script_confirm(s);
    won = script_reads(s, victim, 2);
    if (stopped) {
        assert_int_equal(script_refusals(s, DAFL_E_STATE), script_honest_n(s));
        assert_int_equal(script_reveals(s), 0);
        assert_int_equal(leak_dim(s->leak, 2), 0);
        /* The message was dropped, and no more than that. */
        script_survey(s);
        script_confirm(s);
        assert_true(script_opens(s, 2, &second));
        script_goes_on(s);
    }
    script_free(&s);
    return won;
}

/* The victim alone is told that it was cast, and uploads. Those who confirm
 * were told that it was not; they are asked for shares all the same. */
static bool reveal_outside(bool stopped)
{
    script *s = ten_with_one();
    dafl_members all = lab_everybody(s->lab), rest;
    uint16_t victim = script_any_honest(s);
    uint64_t word;
    bool won;

    rest = script_others(s, victim);
    script_model(s, 1);
    script_tell(s, &rest, &rest);
    s->clients[victim].a = all;
    script_cast(s);
    script_survey(s);
    script_confirm(s);
    assert_true(script_opens(s, 1, &rest));
    won = leak_knows_sk(s->leak, victim, 1);
    assert_false(leak_knows_b(s->leak, victim, 1));
    /* Of the masks on its vector one is known, that with the colluder; or only
     * its own is not. */
    assert_int_equal(
        leak_strip(s->leak, leak_upload_of(s->leak, victim, 1), &word, 1),
        won ? 1 : 9);
    if (stopped) {
        /* To the victim the others are of another cohort. */
        assert_int_equal(script_refusals(s, DAFL_E_FORGED), 1);
        script_goes_on(s);
    }
    script_free(&s);
    return won;
}

/* All have signed in slot 1, and CONF comes when slot 2 is open. */
static bool older_slot(bool stopped)
{
    script *s = ten_with_one();
    dafl_members all = lab_everybody(s->lab);
    script_client first[10];
    bool won;

    script_model(s, 1);
    script_tell(s, &all, &all);
    script_cast(s);
    script_survey(s);
    assert_int_equal(script_signatures(s), script_honest_n(s));
    memcpy(first, s->clients, sizeof first);
    script_model(s, 2);
    for (int again = 0; again < 2; again++) {
        if (again == 1)
            script_model(s, 1);
        s->slot = 1;
        memcpy(s->clients, first, sizeof first);
        script_confirm(s);
    }
    won = script_reveals(s) > 0 || leak_dim(s->leak, 1) > 0;
    if (stopped) {
        assert_int_equal(script_refusals(s, DAFL_E_STATE), script_honest_n(s));
        assert_int_equal(script_refusals(s, DAFL_E_SLOT_SPENT),
                         script_honest_n(s));
        s->slot = 2;
        script_goes_on(s);
    }
    script_free(&s);
    return won;
}

const lab_attack attacks_quorum[] = {
    {"S1 both_lists_two_messages", DAFL_WEAK_STATEMENT, statement_after_reveal},
    {"S2 two_views", DAFL_WEAK_QUORUM, two_views},
    {"S2 cast_apart", DAFL_WEAK_AGREED, cast_apart},
    {"S9 quorum_forgery", DAFL_WEAK_QUORUM, quorum_forgery},
    {"S10 one_statement_before_conf", DAFL_WEAK_STATEMENT,
     statement_before_conf},
    {"S10 one_statement_after_restart", DAFL_WEAK_STATEMENT,
     statement_after_restart},
    {"C2 slot_reopened", DAFL_WEAK_SLOT, slot_reopened},
    {"S11 early_reveal", DAFL_WEAK_TURN, early_reveal},
    {"S11 reveal_outside_cast", DAFL_WEAK_OUTSIDE, reveal_outside},
    {"S11 reveal_of_older_slot", DAFL_WEAK_NOTHING, older_slot},
    {0},
};
