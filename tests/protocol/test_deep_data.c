/* SPDX-License-Identifier: Apache-2.0 */
/* Digests of rows, censuses, and rows that stand out. */
#include <math.h>

#include "tests/check.h"
#include "tests/sites.h"
#include "protocol/deep.h"

#define ROWS 60

static dafl_data data;
static dafl_pool *pool;

static int setup(void **state)
{
    return open_rows(state, &data, &pool, ROWS, 5, 3);
}

static int teardown(void **state)
{
    return close_rows(state, &data, &pool);
}

static dafl_params params(void)
{
    dafl_params p = {.features = 5,
                     .width = 6,
                     .hidden = 6,
                     .classes = 3,
                     .layers = 1,
                     .lambda = 0.5,
                     .gamma = 0.1,
                     .contract = DAFL_CONTRACT_DEFAULT};

    assert_ok(dafl_params_check(&p, NULL));
    return p;
}

/* ---- digests ---- */

static void a_digest_knows_the_rows_and_not_their_order(void **state)
{
    dafl_digest all, again, less, other;
    uint32_t index[ROWS];

    (void)state;
    for (uint32_t i = 0; i < ROWS; i++)
        index[i] = ROWS - 1 - i;
    assert_ok(dafl_deep_digest(&all, &data, NULL, ROWS));
    assert_ok(dafl_deep_digest(&again, &data, index, ROWS));
    assert_true(dafl_digest_equal(&all, &again));
    for (size_t i = 0; i < ROWS; i++) {
        uint32_t kept = index[i];
        /* One row less, one row twice: not the same. */
        index[i] = index[ROWS - 1];
        assert_ok(dafl_deep_digest(&less, &data, index, ROWS - 1));
        assert_false(dafl_digest_equal(&all, &less));
        index[i] = index[(i + 1) % ROWS];
        assert_ok(dafl_deep_digest(&other, &data, index, ROWS));
        assert_false(dafl_digest_equal(&all, &other));
        index[i] = kept;
    }
}

static void a_digest_knows_labels_and_numbers(void **state)
{
    double *x = doubles(ROWS * 5);
    int64_t y[ROWS];
    dafl_digest all;
    uint32_t every[ROWS];

    (void)state;
    assert_ok(dafl_deep_digest(&all, &data, NULL, ROWS));
    for (uint32_t i = 0; i < ROWS; i++)
        every[i] = i;
    for (int change = 0; change < 3; change++) {
        dafl_digest changed;
        dafl_data other;
        dafl_npy_get_rows(&data.x, x, every, 0, ROWS);
        for (size_t i = 0; i < ROWS; i++)
            y[i] = data.y[i];
        if (change == 1)
            x[7] += 1e-12;
        if (change == 2)
            y[7] = (y[7] + 1) % 3;
        assert_ok(
            dafl_npy_write(at("a.npy"), DAFL_NPY_F64, 2, ROWS, 5, x, NULL));
        assert_ok(
            dafl_npy_write(at("b.npy"), DAFL_NPY_I64, 1, ROWS, 1, y, NULL));
        assert_ok(dafl_data_open(&other, at("a.npy"), at("b.npy"), 3, NULL));
        assert_ok(dafl_deep_digest(&changed, &other, NULL, ROWS));
        assert_int_equal(dafl_digest_equal(&all, &changed), change == 0);
        dafl_data_close(&other);
    }
    free(x);
}

static void the_basis_is_the_seed_or_none(void **state)
{
    dafl_params p = params(), q = params(), raw = params();
    dafl_digest a, b;

    (void)state;
    q.width = q.hidden = 8; /* the same stream of numbers */
    dafl_deep_basis(&a, &p);
    dafl_deep_basis(&b, &q);
    assert_true(dafl_digest_equal(&a, &b));
    q.seed.b[31] ^= 1;
    dafl_deep_basis(&b, &q);
    assert_false(dafl_digest_equal(&a, &b));
    raw.method = DAFL_METHOD_AFL;
    dafl_deep_basis(&a, &raw);
    raw.seed.b[31] ^= 1;
    dafl_deep_basis(&b, &raw);
    assert_true(dafl_digest_equal(&a, &b));
}

/* ---- L4: censuses ---- */

static void a_rare_class_is_refused(void **state)
{
    static const struct {
        uint64_t rows, classes[3];
        dafl_fault fault;
    } cases[] = {
        {30, {20, 1, 9}, DAFL_E_CENSUS},   {30, {29, 1, 0}, DAFL_E_CENSUS},
        {30, {0, 21, 9}, DAFL_E_CENSUS},   {30, {10, 10, 10}, DAFL_FAULT_NONE},
        {30, {0, 0, 30}, DAFL_FAULT_NONE}, {12, {12, 0, 0}, DAFL_FAULT_NONE},
        {11, {11, 0, 0}, DAFL_E_CENSUS},   {0, {0, 0, 0}, DAFL_E_CENSUS},
    };
    dafl_params p = params();

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        dafl_why why = {""};
        assert_int_equal(
            dafl_deep_census(&p, cases[i].rows, cases[i].classes, &why),
            cases[i].fault);
        if (cases[i].fault != DAFL_FAULT_NONE)
            assert_says(&why, "rows");
    }
}

/* ---- rows that stand out ---- */

static dafl_err found(void *ctx, const dafl_params *p,
                      const dafl_projection *first, dafl_site **site,
                      dafl_site **held, dafl_digest *rows, dafl_why *why)
{
    const dafl_data *loud = ctx;

    *held = NULL;
    DAFL_TRY(dafl_deep_digest(rows, loud, NULL, loud->n));
    return dafl_site_new(site, p, pool, loud, NULL, loud->n, first, why);
}

/* The answer to the Gram question of a client of plain AFL with n rows, one of
 * which has so large a share of the squares. */
static dafl_fault answer_with(size_t n, double share, bool allowed)
{
    dafl_params p = params();
    const dafl_client_method *m = &dafl_deep_client_method;
    dafl_question q = {.number = 1};
    dafl_deep_client *c = NULL;
    double *x = doubles(n * 5);
    int64_t *y = calloc(n, sizeof *y), sum[64];
    uint8_t census[32] = {100, [8] = 100};
    dafl_segment nothing = {.kind = DAFL_SEGMENT_NOTHING};
    dafl_segment counts = {.query = 1,
                           .kind = DAFL_SEGMENT_CENSUS,
                           .bytes = {census, sizeof census}};
    dafl_shape shape;
    dafl_data loud;
    dafl_fault fault;

    p.method = DAFL_METHOD_AFL;
    p.layers = 0;
    p.width = 5;
    p.contract.q = 128; /* one row may be loud */
    assert_ok(dafl_params_check(&p, NULL));
    for (size_t i = 0; i < n; i++)
        x[i * 5] = 1;
    x[5] = sqrt(share / (1 - share) * (double)(n - 1));
    assert_ok(dafl_npy_write(at("l.npy"), DAFL_NPY_F64, 2, n, 5, x, NULL));
    assert_ok(dafl_npy_write(at("m.npy"), DAFL_NPY_I64, 1, n, 1, y, NULL));
    assert_ok(dafl_data_open(&loud, at("l.npy"), at("m.npy"), 3, NULL));
    assert_ok(dafl_deep_client_new(&c, &p, found, NULL, &loud, NULL));
    dafl_deep_client_allow(c, false, allowed);
    assert_int_equal(m->follow(c, &nothing), 0);
    assert_int_equal(m->follow(c, &counts), 0);
    assert_int_equal(m->shape(c, &q, &shape), 0);
    assert_true(shape.len <= COUNT(sum));
    fault = m->answer(c, &q, sum, (size_t)shape.len);
    for (size_t i = 0; i < shape.len && fault != DAFL_FAULT_NONE; i++)
        assert_int_equal(sum[i], 0); /* nothing is left of it */
    dafl_deep_client_free(&c);
    dafl_data_close(&loud);
    free(x);
    free(y);
    return fault;
}

static void a_row_that_carries_an_operand_is_kept_back(void **state)
{
    (void)state;
    assert_int_equal(answer_with(20, 0.19, false), DAFL_FAULT_NONE);
    assert_int_equal(answer_with(20, 0.21, false), DAFL_E_DOMINATED);
    assert_int_equal(answer_with(20, 0.21, true), DAFL_FAULT_NONE);
    /* Of few rows one always has such a share. */
    assert_int_equal(answer_with(19, 0.21, false), DAFL_FAULT_NONE);
    assert_int_equal(answer_with(500, 0.9, false), DAFL_E_DOMINATED);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_digest_knows_the_rows_and_not_their_order),
        CASE(a_digest_knows_labels_and_numbers),
        CASE(the_basis_is_the_seed_or_none),
        CASE(a_rare_class_is_refused),
        CASE(a_row_that_carries_an_operand_is_kept_back),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
