/* SPDX-License-Identifier: Apache-2.0 */
/* What a malicious server may say in a slot, and what it gets for it. */
#include "tests/check.h"

#include <stdbool.h>

#include "protocol/context.h"
#include "protocol/rules.h"
#include "tests/protocol/party.h"

#define K 12
#define CELL 4

static dafl_secret_identity ids[K];
static dafl_roster roster;
static dafl_members u1;
static const dafl_policy policy = {
    .n_min = K, .m = 8, .g = CELL, .c = 2, .a = 4};
static dafl_slot_view view;
static const dafl_digest ctx2 = {{2}};

/* What everyone has uploaded, and said of it. */
static dafl_digest digs[K];
static dafl_signature ends[K];

static dafl_signature end_of(size_t signer, const dafl_digest *cast_in,
                             uint16_t u, const dafl_digest *dig)
{
    dafl_signature sig;
    dafl_digest end;

    dafl_context_end(&end, cast_in, u, dig);
    dafl_sign(&sig, &end, &ids[signer]);
    return sig;
}

static int make_parties(void **state)
{
    dafl_party p[K + 1];

    (void)state;
    for (size_t i = 0; i <= K; i++) {
        dafl_secret_identity id;

        p[i] = party_at(i, K, CELL, &id);
        if (i == K)
            break;
        ids[i] = id;
        digs[i].b[0] = (uint8_t)(i + 1);
        ends[i] = end_of(i, &ctx2, (uint16_t)i, &digs[i]);
    }
    assert_ok(dafl_roster_make(&roster, p, K + 1, NULL));
    assert_int_equal(dafl_policy_check(&policy, &roster, NULL), 0);
    u1 = dafl_roster_clients(&roster);
    view = (dafl_slot_view){&roster, &policy, &u1, 0, NULL};
    assert_int_equal(dafl_threshold(&view.t, K, policy.c, policy.a), 0);
    return 0;
}

static dafl_members members_of(unsigned bits)
{
    dafl_members m = dafl_members_none(K);

    for (size_t i = 0; i < K; i++)
        if (bits >> i & 1)
            dafl_members_add(&m, i);
    return m;
}

static bool whole(unsigned bits)
{
    for (unsigned c = 0; c < K / CELL; c++) {
        unsigned cell = bits >> CELL * c & 0xf;
        if (cell != 0 && cell != 0xf)
            return false;
    }
    return true;
}

/* Every one of the 4096 sets: whole cells and at least m, or nothing. */
static void only_large_unions_of_cells_may_be_cast(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 1u << K; bits++) {
        dafl_members a = members_of(bits);
        dafl_fault want = !whole(bits) ? DAFL_E_CELL_SPLIT
                          : dafl_members_count(&a) < policy.m ? DAFL_E_COHORT
                                                              : 0;
        assert_int_equal(dafl_rule_cast(&view, &a), want);
    }
}

static void a_client_outside_the_setup_is_not_cast(void **state)
{
    dafl_members a = members_of(0xfff), part = members_of(0x0ff);
    dafl_slot_view v = view;

    (void)state;
    v.u1 = &part;
    assert_int_equal(dafl_rule_cast(&v, &a), DAFL_E_COHORT);
    assert_int_equal(dafl_rule_cast(&v, &part), 0);
}

typedef struct {
    uint8_t digests[K * DAFL_HASH_BYTES], ends[K * DAFL_SIGNATURE_BYTES];
} lists;

/* SURV with what the survivors have said. */
static dafl_surv survey(lists *to, const dafl_members *a,
                        const dafl_members *u3)
{
    size_t n = 0;

    for (size_t u = 0; u < K; u++)
        if (dafl_members_has(u3, u)) {
            memcpy(to->digests + n * DAFL_HASH_BYTES, digs[u].b,
                   DAFL_HASH_BYTES);
            memcpy(to->ends + n++ * DAFL_SIGNATURE_BYTES, ends[u].b,
                   DAFL_SIGNATURE_BYTES);
        }
    return (dafl_surv){*a,
                       *u3,
                       {to->digests, n * DAFL_HASH_BYTES},
                       {to->ends, n * DAFL_SIGNATURE_BYTES}};
}

static void an_increment_is_over_its_own_cohort_only(void **state)
{
    dafl_members base = members_of(0xff), all = members_of(0xfff);
    dafl_slot_view v = view;
    lists told;
    dafl_surv surv = survey(&told, &all, &base);

    (void)state;
    v.increment_over = &base;
    assert_int_equal(dafl_rule_cast(&v, &base), 0);
    assert_int_equal(dafl_rule_cast(&v, &all), DAFL_E_COHORT);
    /* and it loses nobody on the way */
    v.increment_over = &all;
    assert_int_equal(dafl_rule_surv(&v, &surv, &all, &ctx2, K, NULL),
                     DAFL_E_COHORT);
    v.increment_over = NULL;
    assert_int_equal(dafl_rule_surv(&v, &surv, &all, &ctx2, K, NULL), 0);
}

static void survivors_are_large_unions_of_cells_of_the_cast(void **state)
{
    dafl_members cast = members_of(0xfff), part = members_of(0x0ff);
    lists told;

    (void)state;
    for (unsigned bits = 0; bits < 1u << K; bits++) {
        dafl_members u3 = members_of(bits);
        dafl_surv s = survey(&told, &cast, &u3);
        dafl_fault want = !whole(bits) ? DAFL_E_CELL_SPLIT
                          : dafl_members_count(&s.u3) < policy.m ? DAFL_E_COHORT
                                                                 : 0;
        assert_int_equal(dafl_rule_surv(&view, &s, &cast, &ctx2, K, NULL),
                         want);
    }
    {
        dafl_surv more = survey(&told, &part, &cast);
        assert_int_equal(dafl_rule_surv(&view, &more, &part, &ctx2, K, NULL),
                         DAFL_E_COHORT);
        more = survey(&told, &cast, &part);
        assert_int_equal(dafl_rule_surv(&view, &more, &part, &ctx2, K, NULL),
                         DAFL_E_COHORT);
    }
}

static void nobody_is_a_survivor_without_its_own_digest(void **state)
{
    dafl_members cast = members_of(0xfff), later = members_of(0xff0);
    const dafl_digest *own = &digs[6], *other = &digs[7];
    lists told;
    dafl_surv s = survey(&told, &cast, &later);

    (void)state;
    assert_int_equal(dafl_rule_surv(&view, &s, &cast, &ctx2, 6, own), 0);
    assert_int_equal(dafl_rule_surv(&view, &s, &cast, &ctx2, 6, other),
                     DAFL_E_FORGED);
    assert_int_equal(dafl_rule_surv(&view, &s, &cast, &ctx2, 6, NULL),
                     DAFL_E_FORGED);
    assert_int_equal(dafl_rule_surv(&view, &s, &cast, &ctx2, 7, own),
                     DAFL_E_FORGED);
    /* one that was left out has nothing to compare */
    assert_int_equal(dafl_rule_surv(&view, &s, &cast, &ctx2, 1, own), 0);
}

/* Each of the survivors in turn has said something else, or somebody else has
 * said it. */
static void survivors_have_signed_for_the_same_cast(void **state)
{
    dafl_members cast = members_of(0xfff), later = members_of(0xff0);
    const dafl_digest apart = {{3}};
    lists told;
    dafl_surv s = survey(&told, &cast, &later);

    (void)state;
    assert_int_equal(dafl_rule_surv(&view, &s, &cast, &apart, 1, NULL),
                     DAFL_E_FORGED);
    for (uint16_t u = 4; u < K; u++) {
        const dafl_signature wrong[] = {
            end_of(u, &apart, u, &digs[u]),
            end_of(u, &ctx2, u, &digs[0]),
            end_of(u, &ctx2, 0, &digs[u]),
            end_of(0, &ctx2, u, &digs[u]),
            {{0}},
        };
        uint8_t *at = told.ends + (u - 4u) * sizeof wrong[0];
        for (size_t i = 0; i < COUNT(wrong); i++) {
            memcpy(at, wrong[i].b, sizeof wrong[i].b);
            for (size_t self = 0; self <= K; self += 6)
                assert_int_equal(dafl_rule_surv(&view, &s, &cast, &ctx2, self,
                                                self < K ? &digs[self] : NULL),
                                 DAFL_E_FORGED);
        }
        memcpy(at, ends[u].b, sizeof ends[u].b);
    }
    assert_int_equal(dafl_rule_surv(&view, &s, &cast, &ctx2, 6, &digs[6]), 0);
}

/* A confirmation by the signers of `bits`, all on `stmt`. */
static dafl_conf confirm(uint8_t *signatures, unsigned bits,
                         const dafl_digest *stmt)
{
    dafl_conf c = {.signers = members_of(bits)};
    size_t n = 0;

    for (size_t i = 0; i < K; i++)
        if (bits >> i & 1) {
            dafl_signature sig;
            dafl_sign(&sig, stmt, &ids[i]);
            memcpy(signatures + 64 * n++, sig.b, sizeof sig.b);
        }
    c.signatures = (dafl_bytes){signatures, 64 * n};
    return c;
}

static void a_quorum_has_t_others_for_everyone(void **state)
{
    dafl_members a = members_of(0xfff), few = members_of(0xff);
    dafl_digest stmt = {{1, 2, 3}};
    uint8_t s[64 * K];
    dafl_conf c;

    (void)state;
    assert_int_equal(view.t, 7);
    c = confirm(s, 0x0ff, &stmt); /* eight: seven others for each signer */
    assert_int_equal(dafl_rule_conf(&view, &c, &a, &stmt), 0);
    assert_int_equal(dafl_rule_conf(&view, &c, &few, &stmt), 0);
    c = confirm(s, 0x07f, &stmt); /* seven: a signer has only six others */
    assert_int_equal(dafl_rule_conf(&view, &c, &a, &stmt), DAFL_E_QUORUM);
    c = confirm(s, 0xfe0, &stmt); /* and if none of them was cast */
    few = members_of(0x01f);
    assert_int_equal(dafl_rule_conf(&view, &c, &few, &stmt), DAFL_E_QUORUM);
    c = confirm(s, 0, &stmt);
    assert_int_equal(dafl_rule_conf(&view, &c, &a, &stmt), DAFL_E_QUORUM);
    few = dafl_members_none(K);
    assert_int_equal(dafl_rule_conf(&view, &c, &few, &stmt), DAFL_E_QUORUM);
}

static void forged_confirmations_are_refused(void **state)
{
    dafl_members a = members_of(0xfff), part = members_of(0xfe);
    dafl_digest stmt = {{1}}, other = {{2}};
    uint8_t s[64 * K], t[64 * K];
    dafl_conf c = confirm(s, 0xfff, &stmt), o = confirm(t, 0xfff, &other);
    dafl_slot_view v = view;

    (void)state;
    assert_int_equal(dafl_rule_conf(&view, &c, &a, &stmt), 0);
    assert_int_equal(dafl_rule_conf(&view, &o, &a, &stmt), DAFL_E_QUORUM);
    for (size_t i = 0; i < K; i++) {
        memcpy(s + 64 * i, t + 64 * i, 64); /* one on another statement */
        assert_int_equal(dafl_rule_conf(&view, &c, &a, &stmt), DAFL_E_QUORUM);
        c = confirm(s, 0xfff, &stmt);
        memcpy(s + 64 * i, s + 64 * ((i + 1) % K), 64); /* one twice */
        assert_int_equal(dafl_rule_conf(&view, &c, &a, &stmt), DAFL_E_QUORUM);
        c = confirm(s, 0xfff, &stmt);
        s[64 * i + 3] ^= 1;
        assert_int_equal(dafl_rule_conf(&view, &c, &a, &stmt), DAFL_E_QUORUM);
        c = confirm(s, 0xfff, &stmt);
    }
    v.u1 = &part; /* a signer that is not of the setup */
    assert_int_equal(dafl_rule_conf(&v, &c, &part, &stmt), DAFL_E_QUORUM);
    part = members_of(0xff); /* a cohort that is not of the setup */
    c = confirm(s, 0xff, &stmt);
    assert_int_equal(dafl_rule_conf(&v, &c, &part, &stmt), 0);
    assert_int_equal(dafl_rule_conf(&v, &c, &a, &stmt), DAFL_E_QUORUM);
}

/* ---- two views of many ---- */

#define MANY 250

static dafl_signature signed_by[2][MANY]; /* what everybody signs of both */
static const dafl_digest views[2] = {{{1}}, {{2}}};

static void make_many(dafl_roster *many)
{
    static dafl_party p[MANY + 1];

    for (size_t i = 0; i <= MANY; i++) {
        uint8_t seed[64] = {(uint8_t)i, (uint8_t)(i >> 8), 1};
        dafl_secret_identity id;
        char name[16];

        seed[33] = (uint8_t)i;
        seed[34] = (uint8_t)(i >> 8);
        (void)snprintf(name, sizeof name, "p%zu", i);
        assert_ok(dafl_identity_new_derand(&id, name, seed, NULL));
        p[i].id = id.public;
        p[i].role = i < MANY ? DAFL_ROLE_CLIENT : DAFL_ROLE_SERVER;
        p[i].cell = i < MANY ? 0 : DAFL_NO_CELL;
        for (size_t v = 0; v < 2 && i < MANY; v++)
            dafl_sign(&signed_by[v][i], &views[v], &id);
    }
    assert_ok(dafl_roster_make(many, p, MANY + 1, NULL));
}

/* Clients below `first` see view 0, those from MANY - c on sign both; whether a
 * client takes its view for confirmed. (Who has which number is the same to
 * the rule: all keys differ.) */
static bool confirmed(const dafl_slot_view *v, size_t view_number, size_t first,
                      size_t c)
{
    static uint8_t signatures[MANY * DAFL_SIGNATURE_BYTES];
    dafl_conf conf = {.signers = dafl_members_none(MANY)};
    size_t n = 0;

    for (size_t u = 0; u < MANY; u++)
        if (u >= MANY - c || (u >= first) == (view_number == 1)) {
            dafl_members_add(&conf.signers, u);
            memcpy(signatures + DAFL_SIGNATURE_BYTES * n++,
                   signed_by[view_number][u].b, DAFL_SIGNATURE_BYTES);
        }
    conf.signatures = (dafl_bytes){signatures, DAFL_SIGNATURE_BYTES * n};
    return dafl_rule_conf(v, &conf, v->u1, &views[view_number]) == 0;
}

/* S2. Splits at random and around the threshold. With one signature less to be
 * found, two views are confirmed where the bound is tight. */
static void of_two_views_of_250_clients_one_is_confirmed_at_most(void **state)
{
    static dafl_roster many;
    dafl_members everybody;
    dafl_slot_view v = {.roster = &many, .policy = &policy, .u1 = &everybody};

    (void)state;
    check_seed();
    make_many(&many);
    everybody = dafl_roster_clients(&many);
    for (size_t i = 0; i < 40; i++) {
        size_t c = random_size(0, 100), honest = MANY - c, first, t = 0;
        bool one, two;

        assert_int_equal(dafl_threshold(&t, MANY, c, 0), 0);
        first = i % 2 == 0 ? random_size(0, honest)
                           : t - c + random_size(0, 2); /* - 1, 0, 1 */
        v.t = t;
        one = confirmed(&v, 0, first, c);
        two = confirmed(&v, 1, first, c);
        assert_int_equal(one, first + c > t);
        assert_int_equal(two, honest - first + c > t);
        assert_false(one && two);
        v.t = t - 1;
        first = honest / 2;
        assert_int_equal(confirmed(&v, 0, first, c) &&
                             confirmed(&v, 1, first, c),
                         (MANY - 1 + c) % 2 == 1);
    }
}

static void never_both_kinds_of_share(void **state)
{
    (void)state;
    for (unsigned a = 0; a < 16; a++)
        for (unsigned u3 = 0; u3 < 16; u3++)
            for (size_t u = 0; u < 5; u++) {
                dafl_members ma = members_of(a), m3 = members_of(u3);
                dafl_share_kind want = !(a >> u & 1)   ? DAFL_SHARE_NOTHING
                                       : (u3 >> u & 1) ? DAFL_SHARE_B
                                                       : DAFL_SHARE_SK;
                assert_int_equal(dafl_rule_reveal(&ma, &m3, u), want);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_large_unions_of_cells_may_be_cast),
        cmocka_unit_test(a_client_outside_the_setup_is_not_cast),
        cmocka_unit_test(an_increment_is_over_its_own_cohort_only),
        cmocka_unit_test(survivors_are_large_unions_of_cells_of_the_cast),
        cmocka_unit_test(nobody_is_a_survivor_without_its_own_digest),
        cmocka_unit_test(survivors_have_signed_for_the_same_cast),
        cmocka_unit_test(a_quorum_has_t_others_for_everyone),
        cmocka_unit_test(forged_confirmations_are_refused),
        cmocka_unit_test(of_two_views_of_250_clients_one_is_confirmed_at_most),
        cmocka_unit_test(never_both_kinds_of_share),
    };

    return cmocka_run_group_tests(tests, make_parties, NULL);
}
