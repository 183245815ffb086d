/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting and joining: t shares say all, fewer say nothing. */
#include <stdbool.h>

#include "tests/crypto/sharing.h"
#include "tests/noise.h"
#include "tests/vectors/crypto.h"

/* ---- known answers ---- */

static void sharings_equal_the_independent_model(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(shamir_known); i++) {
        size_t dealer = shamir_known[i].dealer, t = shamir_known[i].t, n = 0;
        uint8_t places[MOST];
        dafl_key secret, coefficients[MOST];
        dafl_share shares[MOST], known;
        dafl_digest digest, known_digest;
        dafl_hash h;

        for (size_t holder = 0; holder < shamir_known[i].parties; holder++)
            if (holder != dealer)
                places[n++] = dafl_shamir_place(dealer, holder);
        for (size_t k = 1; k < t; k++) {
            dafl_hash_init(&h, "test/coefficient");
            dafl_hash_u32(&h, (uint32_t)dealer);
            dafl_hash_u32(&h, (uint32_t)k);
            dafl_hash_end(&h, &digest);
            memcpy(coefficients[k - 1].b, digest.b, sizeof digest.b);
        }
        from_hex(secret.b, sizeof secret.b, shamir_known[i].secret);
        assert_ok(dafl_shamir_split_derand(shares, &secret, places, n, t,
                                           coefficients));
        from_hex(known.b, sizeof known.b, shamir_known[i].first);
        assert_memory_equal(&shares[0], &known, sizeof known);
        from_hex(known.b, sizeof known.b, shamir_known[i].last);
        assert_memory_equal(&shares[n - 1], &known, sizeof known);
        dafl_hash_init(&h, "test/shares");
        for (size_t k = 0; k < n; k++)
            dafl_hash_part(&h, shares[k].b, sizeof shares[k].b);
        dafl_hash_end(&h, &digest);
        from_hex(known_digest.b, sizeof known_digest.b, shamir_known[i].shares);
        assert_memory_equal(&digest, &known_digest, sizeof digest);
    }
}

static void places_are_distinct_and_not_the_secrets(void **state)
{
    (void)state;
    for (size_t dealer = 0; dealer < 256; dealer++) {
        bool seen[256] = {[0] = true};

        for (size_t holder = 0; holder < 256; holder++) {
            uint8_t place = dafl_shamir_place(dealer, holder);

            if (holder == dealer)
                continue;
            assert_false(seen[place]);
            seen[place] = true;
            /* Among fewer parties, no place beyond theirs. */
            assert_true(place <= (dealer > holder ? dealer : holder));
        }
    }
}

/* ---- t - 1 shares say nothing ---- */

/* For each secret byte, each value of one share comes from exactly one
 * coefficient: at any place. */
static void one_share_of_two_fits_every_secret_equally(void **state)
{
    uint8_t places[MOST];
    static dafl_share shares[MOST];
    static bool seen[MOST][256];

    (void)state;
    random_places(places, MOST);
    for (unsigned s = 0; s < 256; s++) {
        dafl_key secret, coefficient;

        memset(secret.b, (int)s, sizeof secret.b);
        memset(seen, 0, sizeof seen);
        for (unsigned c = 0; c < 256; c += 32) {
            for (unsigned k = 0; k < 32; k++)
                coefficient.b[k] = (uint8_t)(c + k);
            assert_ok(dafl_shamir_split_derand(shares, &secret, places, MOST, 2,
                                               &coefficient));
            for (size_t i = 0; i < MOST; i++)
                for (size_t k = 0; k < 32; k++) {
                    assert_false(seen[i][shares[i].b[k]]);
                    seen[i][shares[i].b[k]] = true;
                }
        }
    }
}

/* The same for two shares of three: 2^24 sharings. */
static void two_shares_of_three_fit_every_secret_equally(void **state)
{
    static bool seen[65536];
    uint8_t places[3];

    (void)state;
    random_places(places, 3);
    for (unsigned s = 0; s < 256; s++) {
        dafl_key secret, coefficients[2];
        size_t twice = 0;

        memset(secret.b, (int)s, sizeof secret.b);
        memset(seen, 0, sizeof seen);
        for (unsigned c = 0; c < 65536; c += 32) {
            dafl_share shares[3];

            for (unsigned k = 0; k < 32; k++) {
                coefficients[0].b[k] = (uint8_t)(c + k);
                coefficients[1].b[k] = (uint8_t)(c >> 8);
            }
            assert_ok(dafl_shamir_split_derand(shares, &secret, places, 3, 3,
                                               coefficients));
            for (size_t k = 0; k < 32; k++) {
                size_t pair = shares[0].b[k] | (size_t)shares[1].b[k] << 8;

                twice += seen[pair];
                seen[pair] = true;
            }
        }
        assert_int_equal(twice, 0);
    }
}

/* A share, and what t - 1 shares make of it, relative to the secret. A leading
 * coefficient that is never 0 would show here. */
static void too_few_shares_of_random_splits_look_uniform(void **state)
{
    enum { SPLITS = 3000 };

    (void)state;
    for (size_t t = 2; t <= 4; t++) {
        statistics alone = {0}, joined = {0};

        for (int i = 0; i < SPLITS; i++) {
            uint8_t places[5];
            dafl_share shares[5];
            dafl_key secret, guess;

            random_bytes(&secret, sizeof secret);
            random_places(places, 5);
            assert_ok(dafl_shamir_split(shares, &secret, places, 5, t));
            assert_ok(dafl_shamir_join(&guess, shares, places, t - 1));
            for (size_t k = 0; k < 32; k++) {
                look_at(&alone, &(uint8_t){shares[4].b[k] ^ secret.b[k]}, 1);
                look_at(&joined, &(uint8_t){guess.b[k] ^ secret.b[k]}, 1);
            }
        }
        assert_int_equal(joined.n, 32 * SPLITS);
        assert_true(fabs(histogram_z(&alone)) < Z_LIMIT);
        assert_true(fabs(histogram_z(&joined)) < Z_LIMIT);
    }
}

/* ---- any t shares say all ---- */

static void any_t_of_up_to_eight_rebuild_and_fewer_do_not(void **state)
{
    (void)state;
    for (size_t n = 1; n <= 8; n++)
        for (size_t t = 1; t <= n; t++) {
            uint8_t all_places[8], places[8];
            dafl_share all[8], shares[8];
            dafl_key secret, rebuilt;

            deal(all, &secret, all_places, n, t);
            for (unsigned set = 1; set < 1u << n; set++) {
                size_t k = chosen(shares, places, set, all, all_places, n);

                assert_int_equal(k, bits_in(set));
                assert_ok(dafl_shamir_join(&rebuilt, shares, places, k));
                assert_int_equal(memcmp(&rebuilt, &secret, sizeof secret) == 0,
                                 k >= t);
            }
        }
}

static void any_t_of_many_rebuild_in_any_order(void **state)
{
    (void)state;
    for (int round = 0; round < 60; round++) {
        size_t n = round == 0 ? MOST : random_size(1, MOST);
        size_t t = round == 0 ? MOST : random_size(1, n);
        uint8_t places[MOST];
        dafl_share shares[MOST];
        dafl_key secret, rebuilt;

        deal(shares, &secret, places, n, t);
        for (size_t i = 0; i < t; i++) {
            size_t k = random_size(i, n - 1);
            dafl_share share = shares[k];
            uint8_t place = places[k];

            shares[k] = shares[i], places[k] = places[i];
            shares[i] = share, places[i] = place;
        }
        assert_ok(dafl_shamir_join(&rebuilt, shares, places, t));
        assert_memory_equal(&rebuilt, &secret, sizeof secret);
        /* One bit of one share: another secret. */
        flip(&shares[random_size(0, t - 1)], random_size(0, 255));
        assert_ok(dafl_shamir_join(&rebuilt, shares, places, t));
        assert_memory_not_equal(&rebuilt, &secret, sizeof secret);
    }
}

static void impossible_sharings_are_refused_and_write_nothing(void **state)
{
    static const struct {
        size_t n, t;
    } sizes[] = {{0, 0},   {3, 0},     {3, 4},       {0, 1},
                 {256, 3}, {256, 256}, {SIZE_MAX, 2}};
    static dafl_share shares[256], before[256];
    uint8_t places[256];
    dafl_key secret = {{1}}, key = secret;
    dafl_key coefficients[256] = {{{0}}};
    bool wrong[256] = {false};

    (void)state;
    random_places(places, MOST);
    places[255] = 1;
    random_bytes(shares, sizeof shares);
    memcpy(before, shares, sizeof shares);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        size_t n = sizes[i].n, t = sizes[i].t;

        assert_int_equal(dafl_shamir_split(shares, &secret, places, n, t),
                         DAFL_ERR_ARG);
        assert_int_equal(dafl_shamir_split_derand(shares, &secret, places, n, t,
                                                  coefficients),
                         DAFL_ERR_ARG);
        assert_int_equal(dafl_shamir_correct(&key, wrong, shares, places, n, t),
                         DAFL_ERR_ARG);
    }
    assert_int_equal(dafl_shamir_join(&key, shares, places, 0), DAFL_ERR_ARG);
    assert_int_equal(dafl_shamir_join(&key, shares, places, 256), DAFL_ERR_ARG);
    /* A place that is 0, and one that comes twice. */
    for (size_t i = 0; i < 20; i++) {
        uint8_t place = places[i];

        places[i] = i % 2 == 0 ? 0 : places[(i + 7) % 20];
        assert_int_equal(dafl_shamir_split(shares, &secret, places, 20, 5),
                         DAFL_ERR_ARG);
        assert_int_equal(dafl_shamir_split_derand(shares, &secret, places, 20,
                                                  5, coefficients),
                         DAFL_ERR_ARG);
        assert_int_equal(dafl_shamir_join(&key, shares, places, 20),
                         DAFL_ERR_ARG);
        assert_int_equal(
            dafl_shamir_correct(&key, wrong, shares, places, 20, 5),
            DAFL_ERR_ARG);
        places[i] = place;
    }
    assert_memory_equal(shares, before, sizeof shares);
    assert_memory_equal(&key, &secret, sizeof key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sharings_equal_the_independent_model),
        cmocka_unit_test(places_are_distinct_and_not_the_secrets),
        cmocka_unit_test(one_share_of_two_fits_every_secret_equally),
        cmocka_unit_test(two_shares_of_three_fit_every_secret_equally),
        cmocka_unit_test(too_few_shares_of_random_splits_look_uniform),
        cmocka_unit_test(any_t_of_up_to_eight_rebuild_and_fewer_do_not),
        cmocka_unit_test(any_t_of_many_rebuild_in_any_order),
        cmocka_unit_test(impossible_sharings_are_refused_and_write_nothing),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
