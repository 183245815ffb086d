/* SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <math.h>

#include "tests/check.h"
#include "lib/grid.h"

__extension__ typedef unsigned __int128 u128;

static u128 square_of(const dafl_contract *c)
{
    u128 most = (u128)c->q << c->s;

    return most * most;
}

static unsigned derive(unsigned s, uint32_t q, uint64_t n_max)
{
    dafl_contract c = {.exact = true, .s = s, .q = q, .n_max = n_max};

    return dafl_contract_derive(&c, NULL) == DAFL_OK ? c.w : 0;
}

/* The narrowest w with n_max (q 2^s)^2 < 2^(w-1), found with 128 bits. */
static unsigned narrowest(unsigned s, uint32_t q, uint64_t n_max)
{
    dafl_contract c = {.s = s, .q = q};

    for (unsigned w = 32; w <= 64; w += 8)
        if (square_of(&c) * n_max < (u128)1 << (w - 1))
            return w;
    return 0;
}

static void the_ring_is_the_narrowest_that_holds_the_sums(void **state)
{
    unsigned at_bound[9] = {0};

    (void)state;
    for (unsigned s = 1; s <= 24; s++)
        for (size_t i = 0; i < 40; i++) {
            size_t most = (size_t)1 << (26 - s);
            uint32_t q = (uint32_t)random_size(1, most < 65536 ? most : 65536);
            dafl_contract c = {.s = s, .q = q};

            for (unsigned w = 32; w <= 64; w += 8) {
                /* The most rows that fit w bits, and one more. */
                u128 n = (((u128)1 << (w - 1)) - 1) / square_of(&c);

                if (n < 1 || n >= (u128)1 << 40)
                    continue;
                assert_int_equal(derive(s, q, (uint64_t)n),
                                 narrowest(s, q, (uint64_t)n));
                assert_int_equal(derive(s, q, (uint64_t)n), w);
                assert_int_equal(derive(s, q, (uint64_t)n + 1),
                                 w < 64 ? narrowest(s, q, (uint64_t)n + 1) : 0);
                at_bound[w / 8]++;
            }
        }
    for (unsigned w = 32; w <= 64; w += 8)
        assert_true(at_bound[w / 8] > 0);
}

/* Powers of two meet the bound with equality, which is one too much. */
static void equality_with_the_bound_does_not_fit(void **state)
{
    (void)state;
    assert_int_equal(derive(12, 4, (1 << 3) - 1), 32);
    assert_int_equal(derive(12, 4, 1 << 3), 40);
    assert_int_equal(derive(12, 4, 1 << 11), 48);
    assert_int_equal(derive(12, 4, (1 << 19) - 1), 48);
    assert_int_equal(derive(12, 4, 1 << 19), 56);
    assert_int_equal(derive(12, 4, 1 << 27), 64);
    assert_int_equal(derive(12, 4, (uint64_t)1 << 35), 0);
    assert_int_equal(derive(12, 4, ((uint64_t)1 << 35) - 1), 64);
}

static void the_default_contract_has_six_bytes_a_number(void **state)
{
    dafl_contract c = DAFL_CONTRACT_DEFAULT;

    (void)state;
    assert_ok(dafl_contract_derive(&c, NULL));
    assert_int_equal(c.w, 48);
}

static void contracts_out_of_range_are_refused(void **state)
{
    static const struct {
        dafl_contract c;
        const char *reason;
    } bad[] = {
        {{.exact = true, .s = 0, .q = 4, .n_max = 9}, "grid of 0 bits"},
        {{.exact = true, .s = 25, .q = 1, .n_max = 9}, "grid of 25 bits"},
        {{.exact = true, .s = 12, .q = 0, .n_max = 9}, "magnitude 0"},
        {{.exact = true, .s = 1, .q = 65537, .n_max = 9}, "magnitude 65537"},
        {{.exact = true, .s = 24, .q = 5, .n_max = 1}, "26 bits"},
        {{.exact = true, .s = 12, .q = 16385, .n_max = 1}, "26 bits"},
        {{.exact = true, .s = 12, .q = 4, .n_max = 0}, "n_max 0"},
        {{.exact = true, .s = 1, .q = 1, .n_max = ((uint64_t)1 << 40) + 1},
         "choose 1 to 2^40"},
        {{.exact = true, .s = 24, .q = 4, .n_max = 1 << 11}, "64 bits"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        dafl_contract c = bad[i].c;
        dafl_why why = {""};

        assert_int_equal(dafl_contract_derive(&c, &why), DAFL_ERR_INPUT);
        assert_says(&why, bad[i].reason);
        assert_int_equal(c.w, 0);
    }
}

static void exact_rows_is_the_most_a_double_can_sum(void **state)
{
    (void)state;
    for (unsigned s = 1; s <= 24; s++)
        for (uint32_t q = 1; q <= 65536 && (uint64_t)q << s <= 1 << 26; q++) {
            dafl_contract c = {.exact = true, .s = s, .q = q};
            u128 n = dafl_contract_exact_rows(&c), bound = (u128)1 << 53;

            assert_true(n >= 2 && n * square_of(&c) <= bound &&
                        (n + 1) * square_of(&c) > bound);
        }
    assert_true(dafl_contract_exact_rows(&(dafl_contract){.exact = false}) ==
                UINT64_MAX);
}

static const dafl_contract grids[] = {{.exact = true, .s = 1, .q = 65536},
                                      {.exact = true, .s = 12, .q = 4},
                                      {.exact = true, .s = 16, .q = 100},
                                      {.exact = true, .s = 22, .q = 16},
                                      {.exact = true, .s = 24, .q = 3}};

static void rounding_equals_rint_and_is_idempotent(void **state)
{
    enum { N = 1000 };
    double x[N], y[N], z[N];

    (void)state;
    for (size_t g = 0; g < COUNT(grids); g++) {
        int s = (int)grids[g].s;

        for (size_t i = 0; i < N; i++) {
            x[i] = random_double() * grids[g].q;
            if (i % 3 == 0) /* small ones, and ties */
                x[i] = ldexp((double)(int)random_size(0, 200) - 100, -s - 1);
            if (i % 3 == 1) /* next to a tie */
                x[i] = nextafter(ldexp(floor(ldexp(x[i], s)) + 0.5, -s),
                                 i % 2 == 0 ? 9e9 : -9e9);
            y[i] = ldexp(rint(ldexp(x[i], s)), -s);
        }
        memcpy(z, x, sizeof z);
        assert_int_equal(dafl_grid_round(&grids[g], z, N), N);
        for (size_t i = 0; i < N; i++)
            assert_true(z[i] == y[i]);
        assert_int_equal(dafl_grid_round(&grids[g], z, N), N);
        for (size_t i = 0; i < N; i++)
            assert_true(z[i] == y[i]);
    }
}

static void ties_go_to_even(void **state)
{
    dafl_contract c = {.exact = true, .s = 1, .q = 8};
    double x[] = {0.25, 0.75, 1.25, 1.75, -0.25, -0.75, -1.25, -1.75};
    static const double y[] = {0, 1, 1, 2, 0, -1, -1, -2};

    (void)state;
    assert_int_equal(dafl_grid_round(&c, x, COUNT(x)), COUNT(x));
    for (size_t i = 0; i < COUNT(x); i++)
        assert_true(x[i] == y[i]);
}

/* At q, at what still rounds to q, one step beyond, and far beyond: at the
 * places where the trick of adding a large number could fail. */
static void values_beyond_the_magnitude_are_found(void **state)
{
    (void)state;
    for (size_t g = 0; g < COUNT(grids); g++) {
        double q = grids[g].q, step = ldexp(1, -(int)grids[g].s);
        const double good[] = {q, -q,          q + step / 2.1, -q - step / 2.1,
                               0, DBL_TRUE_MIN};
        const double bad[] = {q + step,
                              -q - step,
                              q + step / 1.9,
                              2 * q,
                              ldexp(1, 51) * step,
                              ldexp(-1, 51) * step,
                              ldexp(1.5, 52) * step,
                              ldexp(-1.5, 52) * step,
                              ldexp(-1, 52) * step,
                              1e300,
                              -DBL_MAX,
                              NAN,
                              INFINITY,
                              -INFINITY};

        for (size_t i = 0; i < COUNT(good) + COUNT(bad); i++) {
            int is_good = i < COUNT(good);
            double v = is_good ? good[i] : bad[i - COUNT(good)];
            double x[40] = {0};
            size_t place = random_size(0, 38);

            x[place] = v;
            if (!is_good)
                x[39] = NAN; /* the first one counts */
            assert_int_equal(dafl_grid_round(&grids[g], x, 40),
                             is_good ? 40 : place);
        }
    }
}

static void nothing_is_rounded_without_a_grid(void **state)
{
    dafl_contract c = {.exact = false, .s = 12, .q = 4};
    double x[] = {0.1, -1e300, DBL_MAX, 5e-324, 1e9, NAN, INFINITY};
    double y[] = {0.1, -1e300, DBL_MAX, 5e-324, 1e9, NAN, INFINITY};

    (void)state;
    assert_ok(dafl_contract_derive(&c, NULL));
    assert_int_equal(dafl_grid_round(&c, x, 5), 5);
    assert_int_equal(dafl_grid_round(&c, x, 7), 5);
    assert_memory_equal(x, y, 5 * sizeof *x);
    x[5] = 0;
    assert_int_equal(dafl_grid_round(&c, x, 7), 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ring_is_the_narrowest_that_holds_the_sums),
        cmocka_unit_test(equality_with_the_bound_does_not_fit),
        cmocka_unit_test(the_default_contract_has_six_bytes_a_number),
        cmocka_unit_test(contracts_out_of_range_are_refused),
        cmocka_unit_test(exact_rows_is_the_most_a_double_can_sum),
        cmocka_unit_test(rounding_equals_rint_and_is_idempotent),
        cmocka_unit_test(ties_go_to_even),
        cmocka_unit_test(values_beyond_the_magnitude_are_found),
        cmocka_unit_test(nothing_is_rounded_without_a_grid),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
