/* SPDX-License-Identifier: Apache-2.0 */
/* Wrong shares: which are corrected, and which do not agree. */
#include <stdbool.h>

#include "tests/crypto/sharing.h"
#include "crypto/gf256.h"

/* The polynomial through (x[i], y[i]), i < t, at `at`: Lagrange. */
static dafl_share value_at(uint8_t at, const uint8_t *x, const dafl_share *y,
                           size_t t)
{
    dafl_share sum = {{0}};

    for (size_t i = 0; i < t; i++) {
        uint8_t l = 1;

        for (size_t j = 0; j < t; j++)
            if (j != i)
                l = dafl_gf_mul(
                    l, dafl_gf_mul(at ^ x[j], dafl_gf_inverse(x[i] ^ x[j])));
        dafl_gf_add_scaled(sum.b, y[i].b, l);
    }
    return sum;
}

/* ---- wrong shares ---- */

/* How wrong shares come about: each at random, one bit of each, one byte
 * position of all, or all from one other sharing. */
enum { RANDOM, ONE_BIT, ONE_BYTE, COLLUDING, N_KINDS };

static void spoil(dafl_share *shares, const bool *bad, const uint8_t *places,
                  size_t n, size_t t, int kind)
{
    static dafl_share others[MOST];
    size_t byte = random_size(0, 31);
    dafl_key other;

    dafl_key_random(&other);
    assert_ok(dafl_shamir_split(others, &other, places, n, t));
    for (size_t i = 0; i < n; i++) {
        dafl_share was = shares[i];

        if (!bad[i])
            continue;
        while (memcmp(&was, &shares[i], sizeof was) == 0)
            switch (kind) {
            case RANDOM:
                random_bytes(&shares[i], sizeof shares[i]);
                break;
            case ONE_BIT:
                flip(&shares[i], random_size(0, 255));
                break;
            case ONE_BYTE:
                shares[i].b[byte] = (uint8_t)random_u64();
                break;
            default:
                shares[i] = others[i];
            }
    }
}

static void assert_corrected(const dafl_share *shares, const bool *bad,
                             const uint8_t *places, size_t n, size_t t,
                             const dafl_key *secret)
{
    bool wrong[MOST];
    dafl_key key;

    for (size_t i = 0; i < n; i++)
        wrong[i] = !bad[i];
    assert_ok(dafl_shamir_correct(&key, wrong, shares, places, n, t));
    assert_memory_equal(&key, secret, sizeof key);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(wrong[i], bad[i]);
}

/* One wrong share too many: an error that writes nothing, or another secret
 * that is as close to these shares as its promise says. */
static void assert_not_believed(const dafl_share *shares, const uint8_t *places,
                                size_t n, size_t t, const dafl_key *secret)
{
    bool wrong[MOST];
    dafl_key key, before;
    size_t n_wrong = 0;
    dafl_err err;

    random_bytes(&before, sizeof before);
    key = before;
    memset(wrong, true, sizeof wrong);
    err = dafl_shamir_correct(&key, wrong, shares, places, n, t);
    for (size_t i = 0; i < n; i++)
        n_wrong += wrong[i];
    if (err == DAFL_OK) {
        assert_memory_not_equal(&key, secret, sizeof key);
        assert_true(n_wrong <= (n - t) / 2);
    } else {
        assert_int_equal(err, DAFL_ERR_CRYPTO);
        assert_memory_equal(&key, &before, sizeof key);
        assert_int_equal(n_wrong, n);
    }
}

static void all_few_wrong_shares_of_up_to_eight_are_corrected(void **state)
{
    (void)state;
    for (size_t n = 1; n <= 8; n++)
        for (size_t t = 1; t <= n; t++)
            for (unsigned set = 0; set < 1u << n; set++)
                for (int kind = 0; kind < N_KINDS; kind++) {
                    uint8_t places[8];
                    bool bad[8];
                    dafl_share shares[8];
                    dafl_key secret;
                    size_t n_bad = bits_in(set);

                    if (n_bad > (n - t) / 2 + 1)
                        continue;
                    deal(shares, &secret, places, n, t);
                    for (size_t i = 0; i < n; i++)
                        bad[i] = set >> i & 1;
                    spoil(shares, bad, places, n, t, kind);
                    if (n_bad <= (n - t) / 2)
                        assert_corrected(shares, bad, places, n, t, &secret);
                    else
                        assert_not_believed(shares, places, n, t, &secret);
                }
}

static void as_many_wrong_shares_of_many_as_promised_are_corrected(void **state)
{
    static const struct {
        size_t n, t;
    } sizes[] = {{255, 128}, {255, 1}, {255, 255}, {254, 129},
                 {99, 55},   {4, 3},   {0, 0},     {0, 0}};

    (void)state;
    for (size_t s = 0; s < COUNT(sizes); s++) {
        size_t n = sizes[s].n > 0 ? sizes[s].n : random_size(9, 60);
        size_t t = sizes[s].t > 0 ? sizes[s].t : random_size(1, n);
        uint8_t places[MOST];
        dafl_share shares[MOST];
        dafl_key secret;

        for (int more = 0; more < 2; more++) {
            size_t n_bad = (n - t) / 2 + (size_t)more;
            bool bad[MOST] = {false};

            deal(shares, &secret, places, n, t);
            for (size_t k = 0; k < n_bad;) {
                size_t i = random_size(0, n - 1);

                k += !bad[i];
                bad[i] = true;
            }
            spoil(shares, bad, places, n, t, s % 2 == 0 ? RANDOM : COLLUDING);
            if (more)
                assert_not_believed(shares, places, n, t, &secret);
            else
                assert_corrected(shares, bad, places, n, t, &secret);
        }
    }
}

/* Each byte position alone could be corrected: but a holder is wrong or right
 * as a whole, and too many are. */
static void wrong_holders_are_counted_over_all_bytes(void **state)
{
    enum { N = 9, T = 5 };
    uint8_t places[N];
    dafl_share shares[N];
    dafl_key secret;
    bool bad[N] = {false};

    (void)state;
    deal(shares, &secret, places, N, T);
    for (size_t i = 0; i < 2; i++) {
        flip(&shares[i], 8 * i);
        bad[i] = true;
    }
    assert_corrected(shares, bad, places, N, T, &secret);
    flip(&shares[2], 8 * 31);
    assert_not_believed(shares, places, N, T, &secret);
}

/* The secret and the wrong holders by trying all t-subsets; false when no
 * polynomial is close enough. */
static bool search(dafl_key *secret, bool *wrong, const dafl_share *shares,
                   const uint8_t *places, size_t n, size_t t)
{
    for (unsigned set = 0; set < 1u << n; set++) {
        dafl_share y[8];
        uint8_t x[8];
        size_t n_wrong = 0;

        if (bits_in(set) != t)
            continue;
        (void)chosen(y, x, set, shares, places, n);
        for (size_t i = 0; i < n; i++) {
            dafl_share v = value_at(places[i], x, y, t);

            wrong[i] = memcmp(&v, &shares[i], sizeof v) != 0;
            n_wrong += wrong[i];
        }
        if (2 * n_wrong <= n - t) {
            dafl_share v = value_at(0, x, y, t);

            memcpy(secret->b, v.b, sizeof v.b);
            return true;
        }
    }
    return false;
}

/* Shares from two sharings and from nowhere, in any mixture. */
static void correction_finds_what_a_search_finds(void **state)
{
    size_t found = 0, rounds = 3000;

    (void)state;
    for (size_t round = 0; round < rounds; round++) {
        size_t n = random_size(1, 7), t = random_size(1, n);
        uint8_t places[7];
        bool bad[7], wrong[7] = {false}, right_wrong[7];
        dafl_share shares[7];
        dafl_key secret, key, right;
        bool exists;

        deal(shares, &secret, places, n, t);
        for (int kind = 0; kind < N_KINDS; kind++) {
            for (size_t i = 0; i < n; i++)
                bad[i] = random_u64() % 6 == 0;
            spoil(shares, bad, places, n, t, kind);
        }
        exists = search(&right, right_wrong, shares, places, n, t);
        found += exists;
        assert_int_equal(dafl_shamir_correct(&key, wrong, shares, places, n, t),
                         exists ? DAFL_OK : DAFL_ERR_CRYPTO);
        if (exists) {
            assert_memory_equal(&key, &right, sizeof key);
            assert_memory_equal(wrong, right_wrong, n * sizeof *wrong);
        }
    }
    print_message("%zu of %zu words were close to a sharing\n", found, rounds);
    assert_true(found > rounds / 10 && found < rounds);
}

/* ---- shares of one sharing ---- */

static bool on_one_polynomial(const dafl_share *shares, const uint8_t *places,
                              size_t n, size_t t)
{
    for (size_t i = t; i < n; i++) {
        dafl_share v = value_at(places[i], places, shares, t);

        if (memcmp(&v, &shares[i], sizeof v) != 0)
            return false;
    }
    return true;
}

static void shares_of_one_sharing_agree(void **state)
{
    (void)state;
    for (int round = 0; round < 60; round++) {
        size_t n = round < 3 ? MOST : random_size(1, MOST);
        size_t t = round == 0 ? MOST : round == 1 ? 1 : random_size(1, n);
        uint8_t places[MOST];
        dafl_share shares[MOST];
        dafl_key secret;

        deal(shares, &secret, places, n, t);
        assert_true(dafl_shamir_agree(shares, places, n, t));
        /* One bit of one more than are needed. */
        flip(&shares[random_size(0, n - 1)], random_size(0, 255));
        assert_int_equal(dafl_shamir_agree(shares, places, n, t), n == t);
    }
}

/* Any shares of up to eight wrong in any way, also all of them in a way that
 * makes them a sharing again. */
static void only_shares_of_one_sharing_agree(void **state)
{
    size_t agreed = 0, tried = 0;

    (void)state;
    for (size_t n = 1; n <= 8; n++)
        for (size_t t = 1; t <= n; t++)
            for (unsigned set = 0; set < 1u << n; set++)
                for (int kind = 0; kind < N_KINDS; kind++) {
                    uint8_t places[8];
                    bool bad[8], agree;
                    dafl_share shares[8];
                    dafl_key secret;

                    deal(shares, &secret, places, n, t);
                    for (size_t i = 0; i < n; i++)
                        bad[i] = set >> i & 1;
                    spoil(shares, bad, places, n, t, kind);
                    agree = dafl_shamir_agree(shares, places, n, t);
                    assert_int_equal(agree,
                                     on_one_polynomial(shares, places, n, t));
                    agreed += agree;
                    tried++;
                }
    assert_true(agreed > 0 && agreed < tried);
}

/* Two wrong shares that leave the secret as it is. */
static void errors_that_cancel_in_the_secret_are_seen(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        size_t n = random_size(4, 40), t = random_size(2, n - 2);
        uint8_t places[MOST], delta = (uint8_t)random_size(1, 255);
        dafl_share shares[MOST], unit[MOST];
        dafl_key secret, rebuilt, weight[2];

        deal(shares, &secret, places, n, t);
        /* What a 1 in a share of the first t does to the secret. */
        for (size_t i = 0; i < 2; i++) {
            memset(unit, 0, sizeof unit);
            unit[i].b[0] = 1;
            assert_ok(dafl_shamir_join(&weight[i], unit, places, t));
        }
        shares[0].b[0] ^= dafl_gf_mul(delta, weight[1].b[0]);
        shares[1].b[0] ^= dafl_gf_mul(delta, weight[0].b[0]);
        assert_ok(dafl_shamir_join(&rebuilt, shares, places, t));
        assert_memory_equal(&rebuilt, &secret, sizeof secret);
        assert_false(dafl_shamir_agree(shares, places, n, t));
    }
}

/* Whoever knew the random numbers could pass: with zeros p(x) is 1 + x + x^2 +
 * x^3, which vanishes at 1 only. */
static void known_tests_can_be_passed(void **state)
{
    enum { N = 9, T = 5 };
    static const uint8_t zeros[DAFL_SHAMIR_TESTS * N];
    static const uint8_t places[N] = {2, 3, 4, 5, 6, 7, 8, 9, 10};
    dafl_share shares[N], tried;
    dafl_key secret;
    size_t passed = 0;

    (void)state;
    dafl_key_random(&secret);
    assert_ok(dafl_shamir_split(shares, &secret, places, N, T));
    assert_true(dafl_shamir_agree_derand(shares, places, N, T, zeros));
    shares[0].b[7] ^= 1;
    assert_false(dafl_shamir_agree_derand(shares, places, N, T, zeros));
    tried = shares[1];
    for (unsigned v = 0; v < 256; v++) {
        shares[1].b[7] = (uint8_t)v;
        if (v == tried.b[7] ||
            !dafl_shamir_agree_derand(shares, places, N, T, zeros))
            continue;
        passed++;
        assert_false(dafl_shamir_agree(shares, places, N, T));
    }
    assert_int_equal(passed, 1);
}

static void what_is_no_sharing_does_not_agree(void **state)
{
    static dafl_share shares[256];
    uint8_t places[256];

    (void)state;
    random_places(places, MOST);
    places[255] = 1;
    assert_true(dafl_shamir_agree(shares, places, 20, 5));
    assert_false(dafl_shamir_agree(shares, places, 20, 0));
    assert_false(dafl_shamir_agree(shares, places, 4, 5));
    assert_false(dafl_shamir_agree(shares, places, 256, 5));
    places[3] = places[4];
    assert_false(dafl_shamir_agree(shares, places, 20, 5));
    places[3] = 0;
    assert_false(dafl_shamir_agree(shares, places, 20, 5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_few_wrong_shares_of_up_to_eight_are_corrected),
        cmocka_unit_test(
            as_many_wrong_shares_of_many_as_promised_are_corrected),
        cmocka_unit_test(wrong_holders_are_counted_over_all_bytes),
        cmocka_unit_test(correction_finds_what_a_search_finds),
        cmocka_unit_test(shares_of_one_sharing_agree),
        cmocka_unit_test(only_shares_of_one_sharing_agree),
        cmocka_unit_test(errors_that_cancel_in_the_secret_are_seen),
        cmocka_unit_test(known_tests_can_be_passed),
        cmocka_unit_test(what_is_no_sharing_does_not_agree),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
