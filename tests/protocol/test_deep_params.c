/* SPDX-License-Identifier: Apache-2.0 */
/* The params of DeepAFL as bytes. */
#include <math.h>

#include "tests/protocol/deep_world.h"

static dafl_writer encoded(const dafl_params *p, const dafl_participation *part)
{
    dafl_writer w = {0};

    dafl_put_deep_params(&w, p, part);
    assert_ok(dafl_writer_done(&w));
    return w;
}

static void assert_encodes_otherwise(const dafl_params *p,
                                     const dafl_participation *part,
                                     const dafl_writer *than)
{
    dafl_writer w = encoded(p, part);

    assert_int_equal(w.len, than->len);
    assert_memory_not_equal(w.ptr, than->ptr, w.len);
    dafl_writer_drop(&w);
}

#define CHANGED(field, value)                       \
    do {                                            \
        dafl_params other = p;                      \
        other.field = (value);                      \
        assert_encodes_otherwise(&other, &part, w); \
    } while (0)

static void every_parameter_is_in_the_bytes(void **state)
{
    dafl_params p = params();
    dafl_participation part = {.permille = 300, .consistent = true}, share;
    dafl_writer bytes = encoded(&p, &part), *w = &bytes;

    (void)state;
    CHANGED(method, DAFL_METHOD_AFL);
    CHANGED(features, 8);
    CHANGED(width, 13);
    CHANGED(hidden, 13);
    CHANGED(classes, 5);
    CHANGED(layers, 4);
    CHANGED(activation, DAFL_ACT_RELU);
    CHANGED(lambda, nextafter(p.lambda, 1));
    CHANGED(gamma, nextafter(p.gamma, 1));
    CHANGED(seed.b[31], 1);
    CHANGED(schedule, DAFL_SCHEDULE_FULL);
    CHANGED(ablate, DAFL_ABLATE_SKIP);
    share = part;
    share.permille = 301;
    assert_encodes_otherwise(&p, &share, w);
    share = part;
    share.consistent = false;
    assert_encodes_otherwise(&p, &share, w);
    dafl_writer_drop(&bytes);
}

static void params_that_are_read_are_written_alike(void **state)
{
    (void)state;
    for (size_t i = 0; i < 20 * VARIANTS; i++) {
        dafl_params p = variant(i % VARIANTS), got = {.contract = p.contract};
        dafl_participation part = {(uint16_t)random_size(1, 1000),
                                   random_size(0, 1)},
                           share;
        dafl_writer w, again;

        p.activation = (dafl_activation)random_size(0, DAFL_ACT_COUNT - 1);
        for (size_t j = 0; j < sizeof p.seed.b; j++)
            p.seed.b[j] = (uint8_t)random_u64();
        p.contract.w = got.contract.w = 64; /* wider than it need be */
        w = encoded(&p, &part);
        assert_ok(
            dafl_get_deep_params(&got, &share, dafl_writer_bytes(&w), NULL));
        assert_int_equal(got.contract.w, 64);
        assert_int_equal(got.layers, p.layers);
        assert_int_equal(share.permille, part.permille);
        again = encoded(&got, &share);
        assert_int_equal(w.len, again.len);
        assert_memory_equal(w.ptr, again.ptr, w.len);
        dafl_writer_drop(&again);
        dafl_writer_drop(&w);
    }
}

/* Any bit: refused, or other params that are written as just those bytes. */
static void params_of_other_bytes_are_refused(void **state)
{
    size_t refused = 0;

    (void)state;
    for (size_t i = 0; i < VARIANTS; i++) {
        dafl_params p = variant(i), got = {.contract = p.contract};
        dafl_participation share;
        dafl_writer w = encoded(&p, &everyone);
        dafl_bytes bytes = dafl_writer_bytes(&w);
        dafl_why why = {""};

        for (size_t len = 0; len < bytes.len; len++)
            assert_int_equal(dafl_get_deep_params(&got, &share,
                                                  (dafl_bytes){bytes.ptr, len},
                                                  &why),
                             DAFL_ERR_INPUT);
        assert_says(&why, "malformed");
        dafl_put_u8(&w, 0);
        assert_int_equal(
            dafl_get_deep_params(&got, &share, dafl_writer_bytes(&w), &why),
            DAFL_ERR_INPUT);
        bytes = (dafl_bytes){w.ptr, w.len - 1};
        for (size_t bit = 0; bit < 8 * bytes.len; bit++) {
            w.ptr[bit / 8] ^= (uint8_t)(1u << bit % 8);
            why.text[0] = '\0';
            if (dafl_get_deep_params(&got, &share, bytes, &why) == DAFL_OK) {
                dafl_writer again = encoded(&got, &share);

                assert_int_equal(again.len, bytes.len);
                assert_memory_equal(again.ptr, bytes.ptr, bytes.len);
                dafl_writer_drop(&again);
            } else {
                assert_string_not_equal(why.text, "");
                refused++;
            }
            w.ptr[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        dafl_writer_drop(&w);
    }
    assert_true(refused > 100);
}

static void params_out_of_range_are_refused(void **state)
{
    static const struct {
        size_t offset; /* of a byte or a double */
        double value;
        bool number;
    } bad[] = {
        {0, 2, false},   /* method */
        {21, 7, false},  /* activation */
        {70, 2, false},  /* schedule */
        {71, 5, false},  /* ablation */
        {74, 2, false},  /* consistent */
        {22, NAN, true}, /* lambda */
        {22, -1, true},       {22, -0.0, true},
        {30, INFINITY, true}, {30, -0.0, true}, /* gamma */
    };
    dafl_params p = params(), got = {.contract = p.contract};
    dafl_participation part = {.permille = 0}, share;
    dafl_writer w = encoded(&p, &part);
    dafl_why why = {""};

    (void)state;
    assert_int_equal(w.len, 75);
    assert_int_equal(
        dafl_get_deep_params(&got, &share, dafl_writer_bytes(&w), &why),
        DAFL_ERR_INPUT);
    assert_says(&why, "choose 1 to 1000");
    for (size_t i = 0; i < COUNT(bad); i++) {
        dafl_writer_drop(&w);
        w = encoded(&p, &everyone);
        if (bad[i].number)
            put_number(w.ptr + bad[i].offset, bad[i].value);
        else
            w.ptr[bad[i].offset] = (uint8_t)bad[i].value;
        assert_int_equal(
            dafl_get_deep_params(&got, &share, dafl_writer_bytes(&w), NULL),
            DAFL_ERR_INPUT);
        assert_int_equal(got.width, 0); /* untouched */
    }
    dafl_writer_drop(&w);
    /* minus zero is written as zero */
    p.gamma = -0.0;
    w = encoded(&p, &everyone);
    assert_ok(dafl_get_deep_params(&got, &share, dafl_writer_bytes(&w), NULL));
    assert_false(signbit(got.gamma));
    dafl_writer_drop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(every_parameter_is_in_the_bytes),
        CASE(params_that_are_read_are_written_alike),
        CASE(params_of_other_bytes_are_refused),
        CASE(params_out_of_range_are_refused),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
