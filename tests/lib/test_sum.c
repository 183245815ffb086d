/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "tests/check.h"
#include "lib/sum.h"

/* A symmetric 3 x 3, a 2 x 4 and an empty part. */
static dafl_layout layout_of_three(void)
{
    dafl_layout layout = {0};

    dafl_layout_add(&layout, "S", 3, 3, true, 10);
    dafl_layout_add(&layout, "M", 2, 4, false, 3);
    dafl_layout_add(&layout, "E", 5, 0, false, 3);
    return layout;
}

static void parts_lie_end_to_end(void **state)
{
    dafl_layout layout = layout_of_three();

    (void)state;
    assert_int_equal(layout.n, 3);
    assert_int_equal(layout.len, 6 + 8 + 0);
    assert_int_equal(layout.parts[0].offset, 0);
    assert_int_equal(layout.parts[1].offset, 6);
    assert_int_equal(layout.parts[1].len, 8);
    assert_int_equal(layout.parts[2].offset, 14);
    assert_int_equal(layout.parts[2].len, 0);
    assert_string_equal(layout.parts[1].name, "M");
}

static void what_is_put_is_got(void **state)
{
    dafl_layout layout = layout_of_three();
    /* Below the diagonal nothing is read. */
    static const double s[] = {0x1p-10, -2, 3.5, 99, 0x1p40, 5, NAN, 99, -6};
    static const double m[] = {0.125, -1, 2, 3, 4, 5, 6, 0x1p50};
    double out[9];

    (void)state;
    for (int exact = 0; exact < 2; exact++) {
        dafl_sum sum;

        assert_ok(dafl_sum_init(&sum, layout.len, exact));
        assert_int_equal(sum.len, layout.len);
        assert_int_equal(sum.i != NULL, exact);
        assert_int_equal(sum.f != NULL, !exact);
        for (int times = 1; times <= 3; times++) {
            dafl_sum_put(&sum, &layout.parts[0], s);
            dafl_sum_put(&sum, &layout.parts[1], m);
            dafl_sum_put(&sum, &layout.parts[2], NULL);
            dafl_sum_get(&sum, &layout.parts[0], out);
            for (size_t r = 0; r < 3; r++)
                for (size_t c = 0; c < 3; c++)
                    assert_true(out[3 * r + c] ==
                                times * (r < c ? s[3 * r + c] : s[3 * c + r]));
            dafl_sum_get(&sum, &layout.parts[1], out);
            for (size_t i = 0; i < 8; i++)
                assert_true(out[i] == times * m[i]);
        }
        if (exact)
            assert_true(sum.i[0] == 3 && sum.i[6] == 3);
        dafl_sum_clear(&sum);
        dafl_sum_get(&sum, &layout.parts[1], out);
        for (size_t i = 0; i < 8; i++)
            assert_true(out[i] == 0);
        dafl_sum_drop(&sum);
        assert_true(sum.i == NULL && sum.f == NULL && sum.len == 0);
        dafl_sum_drop(&sum);
    }
}

static void integers_wrap_like_the_ring(void **state)
{
    dafl_layout layout = {0};
    double one = 1;
    dafl_sum a, b;

    (void)state;
    dafl_layout_add(&layout, "x", 1, 1, false, 0);
    assert_ok(dafl_sum_init(&a, 1, true));
    assert_ok(dafl_sum_init(&b, 1, true));
    a.i[0] = INT64_MAX;
    b.i[0] = 1;
    dafl_sum_add(&a, &b);
    assert_true(a.i[0] == INT64_MIN);
    b.i[0] = -1;
    dafl_sum_add(&a, &b);
    assert_true(a.i[0] == INT64_MAX);
    dafl_sum_put(&a, &layout.parts[0], &one);
    assert_true(a.i[0] == INT64_MIN);
    dafl_sum_drop(&b);
    dafl_sum_drop(&a);
}

/* Masks of any size cancel: the order in which sums are added is free. */
static void sums_in_any_order_are_equal(void **state)
{
    enum { N = 20, LEN = 50 };
    dafl_sum parts[N], there, back;

    (void)state;
    assert_ok(dafl_sum_init(&there, LEN, true));
    assert_ok(dafl_sum_init(&back, LEN, true));
    for (size_t k = 0; k < N; k++) {
        assert_ok(dafl_sum_init(&parts[k], LEN, true));
        for (size_t i = 0; i < LEN; i++)
            parts[k].i[i] = (int64_t)random_u64();
        dafl_sum_add(&there, &parts[k]);
    }
    for (size_t k = N; k-- > 0;) {
        dafl_sum_add(&back, &parts[k]);
        dafl_sum_drop(&parts[k]);
    }
    assert_memory_equal(there.i, back.i, LEN * sizeof *back.i);
    dafl_sum_drop(&back);
    dafl_sum_drop(&there);
}

static void doubles_are_added_without_a_grid(void **state)
{
    dafl_sum a, b;

    (void)state;
    assert_ok(dafl_sum_init(&a, 2, false));
    assert_ok(dafl_sum_init(&b, 2, false));
    a.f[0] = 0.1;
    b.f[0] = 0.2;
    b.f[1] = -1e300;
    dafl_sum_add(&a, &b);
    assert_true(a.f[0] == 0.1 + 0.2 && a.f[1] == -1e300);
    dafl_sum_drop(&b);
    dafl_sum_drop(&a);
}

static void an_empty_sum_is_a_sum(void **state)
{
    dafl_sum a, b;

    (void)state;
    assert_ok(dafl_sum_init(&a, 0, true));
    assert_ok(dafl_sum_init(&b, 0, true));
    dafl_sum_add(&a, &b);
    dafl_sum_drop(&b);
    dafl_sum_drop(&a);
    assert_int_equal(dafl_sum_init(&a, SIZE_MAX / 4, true), DAFL_ERR_NOMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_lie_end_to_end),
        cmocka_unit_test(what_is_put_is_got),
        cmocka_unit_test(integers_wrap_like_the_ring),
        cmocka_unit_test(sums_in_any_order_are_equal),
        cmocka_unit_test(doubles_are_added_without_a_grid),
        cmocka_unit_test(an_empty_sum_is_a_sum),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
