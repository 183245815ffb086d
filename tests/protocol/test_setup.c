/* SPDX-License-Identifier: Apache-2.0 */
/* What a server may say before the first slot, to a client or a key holder. */
#include "tests/check.h"

#include "protocol/setup.h"
#include "tests/crypto/bytes.h"

#define K 12
#define CELL 4
#define SLOTS 2

static dafl_secret_identity ids[K + 1]; /* the server's is the last */
static dafl_roster roster;
static dafl_config config = {
    .slots = SLOTS, .policy = {.n_min = 8, .m = 8, .g = CELL, .c = 2, .a = 0}};
static const dafl_node node = {
    .roster = &roster, .config = &config, .run = {{9}}};

/* Everyone's enrolment, the server's too, and what it has dealt. */
static dafl_writer keys[K + 1];
static dafl_peer peers[K + 1];
static dafl_dealer dealers[K + 1];

static void sign_peer(dafl_peer *p, size_t signer, uint32_t enrolment)
{
    dafl_digest said;

    dafl_context_enroll(&said, &node.run, enrolment, p->client, &p->ek, &p->hk);
    dafl_sign(&p->sig, &said, &ids[signer]);
}

static void sign_dealer(dafl_dealer *d, size_t signer, uint32_t enrolment)
{
    dafl_digest said;

    dafl_context_dealt(&said, &node.run, enrolment, d->client, &d->h_shares);
    dafl_sign(&d->sig, &said, &ids[signer]);
}

static dafl_public draw_public(void)
{
    dafl_public pk;
    dafl_key sk;

    random_bytes(&sk, sizeof sk);
    dafl_key_public(&pk, &sk);
    return pk;
}

static int make_parties(void **state)
{
    dafl_party p[K + 1];

    (void)state;
    memset(p, 0, sizeof p);
    for (uint16_t i = 0; i <= K; i++) {
        uint8_t seed[64], cb[DAFL_HASH_BYTES] = {0};
        char name[16];
        random_bytes(seed, sizeof seed);
        (void)snprintf(name, sizeof name, "p%u", (unsigned)i);
        assert_ok(dafl_identity_new_derand(&ids[i], name, seed, NULL));
        p[i].id = ids[i].public;
        p[i].role = i < K ? DAFL_ROLE_CLIENT : DAFL_ROLE_SERVER;
        p[i].cell = (uint16_t)(i < K ? i / CELL : DAFL_NO_CELL);
        for (size_t e = 0; e < SLOTS; e++) {
            dafl_public pk = draw_public();
            dafl_put_fixed(&keys[i], pk.b, sizeof pk.b);
            dafl_put_fixed(&keys[i], cb, sizeof cb);
        }
        peers[i] = (dafl_peer){.client = i, .ek = draw_public()};
        dafl_context_keys(&peers[i].hk, dafl_writer_bytes(&keys[i]));
        sign_peer(&peers[i], i, 0);
        dealers[i] = (dafl_dealer){.client = i, .h_shares = {{(uint8_t)i}}};
        sign_dealer(&dealers[i], i, 0);
    }
    assert_ok(dafl_roster_make(&roster, p, K + 1, NULL));
    assert_int_equal(dafl_policy_check(&config.policy, &roster, NULL), 0);
    return 0;
}

static int drop_parties(void **state)
{
    (void)state;
    for (size_t i = 0; i <= K; i++)
        dafl_writer_drop(&keys[i]);
    return 0;
}

/* ---- PEERS ---- */

/* What is said to these of a list. */
static dafl_fault list(const dafl_peer *all, unsigned bits, dafl_members *u0,
                       size_t *t)
{
    dafl_peer some[K + 1], got[K];
    dafl_writer w = {0};
    dafl_peers m;
    uint16_t n = 0;
    dafl_fault fault;

    for (unsigned i = 0; i <= K; i++)
        if (bits >> i & 1)
            some[n++] = all[i];
    dafl_put_peers(&w, some, n);
    assert_ok(dafl_get_peers(&m, dafl_writer_bytes(&w)));
    fault = dafl_setup_peers(&node, 0, &m, u0, got, t);
    dafl_writer_drop(&w);
    return fault;
}

static dafl_fault listed(const dafl_peer *all, unsigned bits)
{
    dafl_members u0;
    size_t t;

    return list(all, bits, &u0, &t);
}

static void the_threshold_is_that_of_the_list(void **state)
{
    dafl_members u0, two = dafl_members_none(K);
    size_t t = 0;

    (void)state;
    for (size_t i = 0; i < 2 * (size_t)CELL; i++)
        dafl_members_add(&two, i);
    assert_int_equal(list(peers, 0xfff, &u0, &t), 0);
    assert_int_equal(t, 7);
    assert_int_equal(list(peers, 0x0ff, &u0, &t), 0);
    assert_true(dafl_members_equal(&u0, &two));
    assert_int_equal(t, 5);
}

static void a_list_has_n_min_clients_of_whole_cells(void **state)
{
    (void)state;
    assert_int_equal(listed(peers, 0x00f), DAFL_E_PARAMS);
    assert_int_equal(listed(peers, 0), DAFL_E_PARAMS);
    assert_int_equal(listed(peers, 0x07f), DAFL_E_PARAMS);
    assert_int_equal(listed(peers, 0x1ff), DAFL_E_CELL_SPLIT);
    assert_int_equal(listed(peers, 0xffe), DAFL_E_CELL_SPLIT);
    config.policy.g = 1;
    assert_int_equal(listed(peers, 0x1ff), 0);
    config.policy.g = CELL;
}

static void the_server_is_no_peer(void **state)
{
    (void)state;
    assert_int_equal(listed(peers, 0x1fff), DAFL_E_FORMAT);
    assert_int_equal(listed(peers, 0x10ff), DAFL_E_FORMAT);
}

static void every_peer_has_signed_for_this_enrolment(void **state)
{
    dafl_peer changed[K + 1];

    (void)state;
    for (size_t i = 0; i < K; i++) {
        memcpy(changed, peers, sizeof peers);
        sign_peer(&changed[i], (i + 1) % K, 0);
        assert_int_equal(listed(changed, 0xfff), DAFL_E_AUTH);
        sign_peer(&changed[i], i, 1);
        assert_int_equal(listed(changed, 0xfff), DAFL_E_AUTH);
        changed[i] = peers[i];
        changed[i].ek = draw_public();
        assert_int_equal(listed(changed, 0xfff), DAFL_E_AUTH);
        sign_peer(&changed[i], i, 0);
        assert_int_equal(listed(changed, 0xfff), 0);
        changed[i].ek = changed[(i + 1) % K].ek;
        sign_peer(&changed[i], i, 0);
        assert_int_equal(listed(changed, 0xfff), DAFL_E_BAD_KEY);
    }
}

/* ---- SETUP ---- */

/* What is said to dealers that are these of all. */
static dafl_fault set_up(const dafl_dealer *all, unsigned bits, unsigned within)
{
    dafl_dealer some[K + 1];
    dafl_members u0 = dafl_members_none(K), u1;
    dafl_setup m = {.n_slots = SLOTS};
    dafl_writer w = {0}, theirs = {0};
    dafl_digest h_setup;
    dafl_err err = DAFL_OK;
    dafl_fault fault;

    for (uint16_t i = 0; i <= K; i++) {
        if (bits >> i & 1) {
            some[m.n++] = all[i];
            dafl_put_fixed(&theirs, keys[i].ptr, keys[i].len);
        }
        if (i < K && (within >> i & 1))
            dafl_members_add(&u0, i);
    }
    m.keys = dafl_writer_bytes(&theirs);
    dafl_put_setup(&w, &m, some);
    assert_ok(dafl_get_setup(&m, dafl_writer_bytes(&w)));
    fault = dafl_setup_members(&node, &m, &u0, &u1);
    if (fault == DAFL_FAULT_NONE)
        fault = dafl_setup_dealers(&node, 0, &m, peers, 7, &h_setup, &err);
    assert_ok(err);
    dafl_writer_drop(&theirs);
    dafl_writer_drop(&w);
    return fault;
}

static void a_setup_has_n_min_dealers_of_whole_cells(void **state)
{
    (void)state;
    assert_int_equal(set_up(dealers, 0xfff, 0xfff), 0);
    assert_int_equal(set_up(dealers, 0xff0, 0xfff), 0);
    assert_int_equal(set_up(dealers, 0x0f0, 0xfff), DAFL_E_PARAMS);
    assert_int_equal(set_up(dealers, 0x7ff, 0xfff), DAFL_E_CELL_SPLIT);
    config.policy.g = 1;
    assert_int_equal(set_up(dealers, 0x7ff, 0xfff), 0);
    assert_int_equal(set_up(dealers, 0x07f, 0xfff), DAFL_E_PARAMS);
    config.policy.g = CELL;
}

static void all_dealers_were_listed(void **state)
{
    (void)state;
    assert_int_equal(set_up(dealers, 0xfff, 0xff0), DAFL_E_FORMAT);
    assert_int_equal(set_up(dealers, 0x1fff, 0xfff), DAFL_E_FORMAT);
}

static void every_dealer_has_signed_and_keeps_its_keys(void **state)
{
    dafl_dealer changed[K + 1];

    (void)state;
    for (size_t i = 0; i < K; i++) {
        memcpy(changed, dealers, sizeof dealers);
        sign_dealer(&changed[i], (i + 1) % K, 0);
        assert_int_equal(set_up(changed, 0xfff, 0xfff), DAFL_E_AUTH);
        sign_dealer(&changed[i], i, 1);
        assert_int_equal(set_up(changed, 0xfff, 0xfff), DAFL_E_AUTH);
        keys[i].ptr[keys[i].len - 1] ^= 1;
        assert_int_equal(set_up(dealers, 0xfff, 0xfff), DAFL_E_AUTH);
        keys[i].ptr[keys[i].len - 1] ^= 1;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_threshold_is_that_of_the_list),
        cmocka_unit_test(a_list_has_n_min_clients_of_whole_cells),
        cmocka_unit_test(the_server_is_no_peer),
        cmocka_unit_test(every_peer_has_signed_for_this_enrolment),
        cmocka_unit_test(a_setup_has_n_min_dealers_of_whole_cells),
        cmocka_unit_test(all_dealers_were_listed),
        cmocka_unit_test(every_dealer_has_signed_and_keeps_its_keys),
    };

    check_seed();
    return cmocka_run_group_tests(tests, make_parties, drop_parties);
}
