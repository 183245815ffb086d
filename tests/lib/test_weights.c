/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/check.h"
#include "lib/weights.h"

static void the_share_is_that_of_the_heaviest_row(void **state)
{
    const double x[] = {1, 2, 0, 0, 3, 4, 1, 1}; /* squares 5, 0, 25, 2 */
    dafl_weights w = dafl_weights_of(x, 4, 2);

    (void)state;
    assert_true(dafl_weights_share(&w) == 25.0 / 32.0);
}

static void parts_add_up_to_the_whole(void **state)
{
    double *x = random_doubles(40 * 3);
    dafl_weights whole = dafl_weights_of(x, 40, 3), parts = {0};

    (void)state;
    for (size_t i = 0; i < 40; i += 8) {
        dafl_weights part = dafl_weights_of(x + i * 3, 8, 3);
        dafl_weights_add(&parts, &part);
    }
    assert_true(parts.most == whole.most);
    assert_true(parts.total > 0.999999 * whole.total &&
                parts.total < 1.000001 * whole.total);
    free(x);
}

static void an_operand_of_zeros_is_carried_by_no_row(void **state)
{
    const double zeros[6] = {0};
    dafl_weights w = dafl_weights_of(zeros, 3, 2), none = {0};

    (void)state;
    assert_true(dafl_weights_share(&w) == 1.0);
    w = dafl_weights_of(zeros, 0, 2);
    assert_true(dafl_weights_share(&w) == 1.0);
    assert_true(dafl_weights_share(&none) == 0.0);
    w = dafl_weights_of(zeros, 3, 0);
    assert_true(dafl_weights_share(&w) == 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_share_is_that_of_the_heaviest_row),
        cmocka_unit_test(parts_add_up_to_the_whole),
        cmocka_unit_test(an_operand_of_zeros_is_carried_by_no_row),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
