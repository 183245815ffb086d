/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/check.h"

#include <stdbool.h>

#include "protocol/threshold.h"

static void the_published_examples_hold(void **state)
{
    size_t t = 0;

    (void)state;
    assert_int_equal(dafl_threshold(&t, 5, 1, 1), DAFL_FAULT_NONE);
    assert_int_equal(t, 3);
    assert_int_equal(dafl_threshold_absent(5, 1), 1);
    assert_int_equal(dafl_threshold_absent(3, 0), 0);
    assert_int_equal(dafl_threshold(&t, 100, 10, 44), DAFL_FAULT_NONE);
    assert_int_equal(t, 55);
    assert_int_equal(dafl_threshold(&t, 100, 10, 45), DAFL_E_PARAMS);
    assert_int_equal(dafl_threshold(&t, 1, 0, 0), DAFL_E_PARAMS);
    assert_int_equal(dafl_threshold(&t, 257, 0, 0), DAFL_E_PARAMS);
}

/* A cheating server shows two things to the honest; colluders go along with
 * both. Whether there is a split in which both views have so many behind them.
 */
static bool two_views(size_t need, size_t honest, size_t c)
{
    for (size_t i = 0; i <= honest; i++)
        if (i + c >= need && honest - i + c >= need)
            return true;
    return false;
}

/* S8. Of a client's k holders t give shares of one kind, t of the other; of n
 * clients t + 1 sign one statement, t + 1 another. */
static void no_two_quorums_and_never_both_secrets(void **state)
{
    (void)state;
    for (size_t n = 2; n <= 40; n++)
        for (size_t c = 0; c < n; c++)
            for (size_t a = 0; a < n; a++) {
                size_t t = 0, k = n - 1;

                if (dafl_threshold(&t, n, c, a) != DAFL_FAULT_NONE) {
                    assert_true(c >= n || a + (k + c) / 2 + 1 > k);
                    continue;
                }
                assert_true(t >= 1 && t <= k - a);
                assert_false(two_views(t, k - c, c));
                assert_false(two_views(t + 1, n - c, c));
                /* With one less both secrets can be had, and, where the bound
                 * is tight for them too, two statements. */
                assert_true(two_views(t - 1, k - c, c));
                assert_int_equal(two_views(t, n - c, c), (k + c) % 2 == 1);
            }
}

static void every_fault_has_a_name_and_a_class(void **state)
{
    (void)state;
    for (unsigned f = 0; f < DAFL_FAULT_COUNT; f++) {
        assert_true(strlen(dafl_fault_name((dafl_fault)f)) > 1);
        assert_true(strlen(dafl_fault_text((dafl_fault)f)) > 1);
        for (unsigned g = 0; g < f; g++)
            assert_string_not_equal(dafl_fault_name((dafl_fault)f),
                                    dafl_fault_name((dafl_fault)g));
    }
    assert_string_equal(dafl_fault_name(DAFL_E_QUORUM), "E_QUORUM");
    assert_string_equal(dafl_fault_name(DAFL_E_ROW_DIFF), "W_ROW_DIFF");
    assert_int_equal(dafl_fault_falls(DAFL_E_POLICY), DAFL_FALLS_RUN);
    assert_int_equal(dafl_fault_falls(DAFL_E_QUORUM), DAFL_FALLS_SLOT);
    assert_int_equal(dafl_fault_falls(DAFL_E_REPLAY), DAFL_FALLS_MESSAGE);
    assert_int_equal(dafl_fault_falls(DAFL_FAULT_COUNT), DAFL_FALLS_RUN);
    assert_int_equal(dafl_fault_err(DAFL_E_AUTH), DAFL_ERR_CRYPTO);
    assert_int_equal(dafl_fault_err(DAFL_E_ROW_DIFF), DAFL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_examples_hold),
        cmocka_unit_test(no_two_quorums_and_never_both_secrets),
        cmocka_unit_test(every_fault_has_a_name_and_a_class),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
