/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>

#include "tests/check.h"
#include "lib/set.h"

enum { MOST = 200 };

/* Against an array of booleans, for sizes around the words' borders. */
static void a_set_holds_what_was_added(void **state)
{
    (void)state;
    for (size_t n = 0; n <= MOST; n++) {
        bool in[MOST] = {false};
        size_t count = 0;
        dafl_set set;

        assert_ok(dafl_set_init(&set, n));
        assert_int_equal(dafl_set_count(&set), 0);
        for (size_t k = 0; n > 0 && k < n / 2 + 1; k++) {
            size_t member = random_size(0, n - 1);

            count += !in[member];
            in[member] = true;
            dafl_set_add(&set, member);
        }
        for (size_t i = 0; i < MOST; i++)
            assert_int_equal(dafl_set_has(&set, i), in[i]);
        assert_int_equal(dafl_set_count(&set), count);
        dafl_set_clear(&set);
        assert_int_equal(dafl_set_count(&set), 0);
        dafl_set_drop(&set);
        assert_null(set.words);
        dafl_set_drop(&set);
    }
}

static void sets_are_equal_when_their_members_are(void **state)
{
    static const size_t sizes[] = {1, 63, 64, 65, 128, 130};

    (void)state;
    for (size_t s = 0; s < COUNT(sizes); s++) {
        dafl_set a, b;

        assert_ok(dafl_set_init(&a, sizes[s]));
        assert_ok(dafl_set_init(&b, sizes[s]));
        assert_true(dafl_set_equal(&a, &b));
        for (size_t i = 0; i < sizes[s]; i++) {
            dafl_set_add(&a, i);
            assert_false(dafl_set_equal(&a, &b));
            dafl_set_copy(&b, &a);
            assert_true(dafl_set_equal(&a, &b));
        }
        dafl_set_drop(&b);
        dafl_set_drop(&a);
    }
}

static void sets_over_different_sizes_differ(void **state)
{
    dafl_set a, b;

    (void)state;
    assert_ok(dafl_set_init(&a, 3));
    assert_ok(dafl_set_init(&b, 4));
    assert_false(dafl_set_equal(&a, &b));
    dafl_set_drop(&b);
    dafl_set_drop(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_holds_what_was_added),
        cmocka_unit_test(sets_are_equal_when_their_members_are),
        cmocka_unit_test(sets_over_different_sizes_differ),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
