/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "tests/check.h"
#include "lib/rows.h"

static const struct {
    dafl_contract c;
    int kind;
} kinds[] = {
    {{.exact = true, .s = 12, .q = 4}, DAFL_ROWS_I16},
    {{.exact = true, .s = 12, .q = 7}, DAFL_ROWS_I16},
    {{.exact = true, .s = 13, .q = 4},
     DAFL_ROWS_F32}, /* 2^15 is one too many */
    {{.exact = true, .s = 24, .q = 1},
     DAFL_ROWS_F32}, /* all of a float's bits */
    {{.exact = true, .s = 8, .q = 65536}, DAFL_ROWS_F32},
    {{.exact = true, .s = 24, .q = 2}, DAFL_ROWS_F64},
    {{.exact = true, .s = 13, .q = 2049}, DAFL_ROWS_F64},
    {{.exact = false}, DAFL_ROWS_F64},
};

/* Numbers a contract allows, the largest and its neighbours among them. */
static double value(const dafl_contract *c)
{
    uint64_t most = (uint64_t)c->q << c->s;
    double k = (double)(random_u64() % 4 == 0 ? most - random_u64() % 3
                                              : random_u64() % (most + 1));

    if (!c->exact)
        return random_double() * 1e300;
    return ldexp(random_u64() % 2 == 0 ? k : -k, -(int)c->s);
}

static void what_was_stored_is_loaded_exactly(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        const dafl_contract *c = &kinds[i].c;
        size_t n = random_size(1, 50), cols = random_size(1, 40);
        double *x = doubles(n * cols), *y = doubles(n * cols);
        dafl_rows rows;

        assert_ok(dafl_rows_init(&rows, c, n, cols));
        assert_int_equal(rows.kind, kinds[i].kind);
        for (size_t k = 0; k < n * cols; k++)
            x[k] = value(c);
        for (size_t r = n; r-- > 0;)
            dafl_rows_store(&rows, x + r * cols, r);
        dafl_rows_load(&rows, y, 0, n, n);
        for (size_t k = 0; k < n * cols; k++)
            assert_true(x[k] == y[k]);
        dafl_rows_drop(&rows);
        assert_null(rows.data);
        free(y);
        free(x);
    }
}

static void rows_beyond_the_last_are_zeros(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        double row[3] = {1, -1, 0.5}, out[6 * 3 + 1];
        dafl_rows rows;

        assert_ok(dafl_rows_init(&rows, &kinds[i].c, 5, 3));
        for (size_t r = 0; r < 5; r++) {
            row[0] = (double)r * 0.125;
            dafl_rows_store(&rows, row, r);
        }
        for (size_t k = 0; k < COUNT(out); k++)
            out[k] = NAN;
        dafl_rows_load(&rows, out, 3, 2, 6);
        assert_true(out[0] == 0.375 && out[3] == 0.5 && out[5] == 0.5);
        for (size_t k = 6; k < 18; k++)
            assert_true(out[k] == 0);
        assert_true(isnan(out[18]));
        dafl_rows_drop(&rows);
    }
}

static void no_rows_are_rows_too(void **state)
{
    double out[4] = {7, 7, 7, 7};
    dafl_rows rows;

    (void)state;
    assert_ok(dafl_rows_init(&rows, &kinds[0].c, 0, 4));
    dafl_rows_load(&rows, out, 0, 0, 1);
    assert_true(out[0] == 0 && out[3] == 0);
    dafl_rows_drop(&rows);
    dafl_rows_drop(&rows);
}

static void sizes_that_overflow_are_out_of_memory(void **state)
{
    dafl_rows rows = {.n = 77};

    (void)state;
    assert_int_equal(dafl_rows_init(&rows, &kinds[0].c, SIZE_MAX, 2),
                     DAFL_ERR_NOMEM);
    assert_int_equal(dafl_rows_init(&rows, &kinds[5].c, SIZE_MAX / 8, 2),
                     DAFL_ERR_NOMEM);
    assert_int_equal(rows.n, 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_stored_is_loaded_exactly),
        cmocka_unit_test(rows_beyond_the_last_are_zeros),
        cmocka_unit_test(no_rows_are_rows_too),
        cmocka_unit_test(sizes_that_overflow_are_out_of_memory),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
