/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "tests/check.h"
#include "lib/stream.h"
#include "tests/vectors/stream.h"

#define RAMP "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static dafl_seed seed_of(const char *text)
{
    dafl_seed seed;

    assert_ok(dafl_seed_parse(&seed, text, NULL));
    return seed;
}

static dafl_draw draw_of(const char *seed, dafl_stream_use use, uint64_t number)
{
    dafl_seed s = seed_of(seed);
    dafl_draw draw;

    dafl_draw_init(&draw, &s, use, number);
    return draw;
}

static void streams_equal_the_independent_model(void **state)
{
    double x[1026];

    (void)state;
    for (size_t i = 0; i < COUNT(stream_known); i++) {
        dafl_stream_use use = (dafl_stream_use)stream_known[i].use;
        dafl_seed seed = seed_of(stream_known[i].seed);
        dafl_draw draw =
            draw_of(stream_known[i].seed, use, stream_known[i].number);
        uint64_t word = 0;

        for (size_t k = 0; k <= stream_known[i].at; k++)
            word = dafl_draw_u64(&draw);
        assert_true(word == stream_known[i].word);
        dafl_stream_uniform(x, stream_known[i].at + 1, &seed, use,
                            stream_known[i].number, stream_known[i].bound);
        assert_true(x[stream_known[i].at] == stream_known[i].uniform);
    }
}

static void draws_and_shuffles_equal_the_independent_model(void **state)
{
    dafl_draw draw = draw_of(RAMP, DAFL_STREAM_SIMULATION, 0);
    uint32_t items[COUNT(shuffle_known)];

    (void)state;
    for (size_t i = 0; i < COUNT(below_known); i++)
        assert_true(dafl_draw_below(&draw, below_known[i][0]) ==
                    below_known[i][1]);
    draw = draw_of(RAMP, DAFL_STREAM_SIMULATION, 1);
    for (uint32_t i = 0; i < COUNT(items); i++)
        items[i] = i;
    dafl_draw_shuffle(&draw, items, COUNT(items));
    assert_memory_equal(items, shuffle_known, sizeof items);
}

static void streams_of_other_seeds_uses_and_numbers_differ(void **state)
{
    uint64_t first[2 * 3 * 5];
    size_t n = 0;

    (void)state;
    for (int seed = 0; seed < 2; seed++)
        for (int use = 0; use < 3; use++)
            for (uint64_t number = 0; number < 5; number++) {
                dafl_draw draw = draw_of(seed == 0 ? "1" : "2",
                                         (dafl_stream_use)use, number);
                first[n++] = dafl_draw_u64(&draw);
            }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            assert_true(first[i] != first[j]);
}

/* A prefix does not depend on how much is asked for. */
static void a_longer_stream_begins_with_the_shorter(void **state)
{
    enum { MOST = 1100 };
    static double all[MOST], some[MOST + 1];
    dafl_seed seed = seed_of("9");

    (void)state;
    dafl_stream_uniform(all, MOST, &seed, DAFL_STREAM_PROJECTION, 3, 0.5);
    for (size_t n = 0; n <= MOST; n += random_size(1, 40)) {
        some[n] = 77;
        dafl_stream_uniform(some, n, &seed, DAFL_STREAM_PROJECTION, 3, 0.5);
        assert_memory_equal(some, all, n * sizeof *all);
        assert_true(some[n] == 77);
    }
}

static void uniform_stays_inside_its_bound_and_is_centred(void **state)
{
    enum { N = 100000 };
    static double x[N];
    dafl_seed seed = seed_of("5");
    double bound = 1.0 / sqrt(3.0), sum = 0, squares = 0;

    (void)state;
    dafl_stream_uniform(x, N, &seed, DAFL_STREAM_PROJECTION, 0, bound);
    for (size_t i = 0; i < N; i++) {
        assert_true(fabs(x[i]) < bound && x[i] != 0);
        sum += x[i];
        squares += x[i] * x[i];
    }
    /* Five standard deviations: of the mean bound / sqrt(3 N), of the mean
     * square bound^2 sqrt(4 / (45 N)). */
    assert_true(fabs(sum / N) < 5 * bound / sqrt(3.0 * N));
    assert_true(fabs(squares / N - bound * bound / 3) <
                5 * bound * bound * sqrt(4.0 / (45.0 * N)));
}

/* 2^64 mod n is large for n = 3 * 2^62: without rejection, the lowest third
 * of the values would come up twice as often as the others. */
static void below_is_in_range_and_without_bias(void **state)
{
    enum { N = 30000 };
    static const uint64_t sizes[] = {
        1, 2, 3, 7, 1000, (uint64_t)1 << 63, (uint64_t)3 << 62, UINT64_MAX};

    (void)state;
    for (size_t s = 0; s < COUNT(sizes); s++) {
        dafl_draw draw = draw_of("3", DAFL_STREAM_SIMULATION, s);
        size_t low = 0, n = sizes[s] < 3 ? 0 : N;
        double share = (double)(sizes[s] / 3) / (double)sizes[s];

        for (size_t i = 0; i < N; i++) {
            uint64_t v = dafl_draw_below(&draw, sizes[s]);

            assert_true(v < sizes[s]);
            low += v < sizes[s] / 3;
        }
        if (n > 0)
            assert_true(fabs((double)low / N - share) < 5 * 0.48 / sqrt(N));
    }
}

static void unit_is_strictly_between_zero_and_one(void **state)
{
    dafl_draw draw = draw_of("4", DAFL_STREAM_SIMULATION, 0);
    double sum = 0;

    (void)state;
    for (size_t i = 0; i < 100000; i++) {
        double u = dafl_draw_unit(&draw);

        assert_true(u > 0 && u < 1);
        sum += u;
    }
    assert_true(fabs(sum / 100000 - 0.5) < 5 * 0.289 / sqrt(100000));
}

static void a_shuffle_is_a_permutation(void **state)
{
    static const size_t sizes[] = {0, 1, 2, 3, 100, 1000};

    (void)state;
    for (size_t s = 0; s < COUNT(sizes); s++) {
        dafl_draw draw = draw_of("6", DAFL_STREAM_SIMULATION, s);
        uint32_t items[1000];
        unsigned char seen[1000] = {0};

        for (uint32_t i = 0; i < sizes[s]; i++)
            items[i] = i;
        dafl_draw_shuffle(&draw, items, sizes[s]);
        for (size_t i = 0; i < sizes[s]; i++) {
            assert_true(items[i] < sizes[s]);
            assert_int_equal(seen[items[i]]++, 0);
        }
    }
}

/* Each of the 6 orders of 3 items about as often. */
static void every_order_is_as_likely(void **state)
{
    enum { N = 12000 };
    dafl_draw draw = draw_of("7", DAFL_STREAM_SIMULATION, 0);
    size_t count[27] = {0};

    (void)state;
    for (size_t i = 0; i < N; i++) {
        uint32_t t[3] = {0, 1, 2};

        dafl_draw_shuffle(&draw, t, 3);
        count[9 * t[0] + 3 * t[1] + t[2]]++;
    }
    for (size_t i = 0; i < 27; i++)
        if (count[i] > 0)
            assert_true(fabs((double)count[i] / N - 1.0 / 6) <
                        5 * sqrt(5.0 / 36 / N));
}

static void seeds_are_hexadecimal_or_small_numbers(void **state)
{
    static const struct {
        const char *text, *formatted;
    } forms[] = {
        {RAMP, RAMP},
        {"000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F",
         RAMP},
        {"0",
         "0000000000000000000000000000000000000000000000000000000000000000"},
        {"258",
         "0201000000000000000000000000000000000000000000000000000000000000"},
        {"18446744073709551615",
         "ffffffffffffffff000000000000000000000000000000000000000000000000"},
        /* 64 decimal digits are hexadecimal ones. */
        {"1234567890123456789012345678901234567890123456789012345678901234",
         "1234567890123456789012345678901234567890123456789012345678901234"},
    };
    char text[65];

    (void)state;
    for (size_t i = 0; i < COUNT(forms); i++) {
        dafl_seed seed = seed_of(forms[i].text), again;

        dafl_seed_format(text, &seed);
        assert_string_equal(text, forms[i].formatted);
        again = seed_of(text);
        assert_memory_equal(&again, &seed, sizeof seed);
    }
}

static void other_seeds_are_refused(void **state)
{
    static const char *const bad[] = {
        "", " 1", "1 ", "-1", "+1", "0x10", "1.5", "1e3", "seed",
        "18446744073709551616", "99999999999999999999999",
        /* 63 and 65 digits, and 64 with one that is none */
        "00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
        RAMP "0",
        "g00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
        "00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f ",
        "00:02030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1ff"};

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        dafl_seed seed = {{1, 2, 3}}, before = seed;
        dafl_why why = {""};

        assert_int_equal(dafl_seed_parse(&seed, bad[i], &why), DAFL_ERR_INPUT);
        assert_says(&why, bad[i]);
        assert_says(&why, "hexadecimal digits");
        assert_memory_equal(&seed, &before, sizeof seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_equal_the_independent_model),
        cmocka_unit_test(draws_and_shuffles_equal_the_independent_model),
        cmocka_unit_test(streams_of_other_seeds_uses_and_numbers_differ),
        cmocka_unit_test(a_longer_stream_begins_with_the_shorter),
        cmocka_unit_test(uniform_stays_inside_its_bound_and_is_centred),
        cmocka_unit_test(below_is_in_range_and_without_bias),
        cmocka_unit_test(unit_is_strictly_between_zero_and_one),
        cmocka_unit_test(a_shuffle_is_a_permutation),
        cmocka_unit_test(every_order_is_as_likely),
        cmocka_unit_test(seeds_are_hexadecimal_or_small_numbers),
        cmocka_unit_test(other_seeds_are_refused),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
