/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/activation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    double x, y;
} known;

/* python3 scripts/fit-activations.py --vectors */
static const known gelu_known[] = {
    {0x0.0p+0, 0x0.0p+0},
    {-0x0.0p+0, 0x0.0p+0},
    {0x0.0000000000001p-1022, 0x0.0p+0},
    {-0x0.0000000000001p-1022, -0x0.0p+0},
    {0x0.012688b70e62bp-1022, 0x0.0093445b87316p-1022},
    {-0x0.012688b70e62bp-1022, -0x0.0093445b87316p-1022},
    {0x1.1fa182c40c60dp-1022, 0x0.8fd0c16206306p-1022},
    {-0x1.1fa182c40c60dp-1022, -0x0.8fd0c16206306p-1022},
    {0x1.87e92154ef7acp-665, 0x1.87e92154ef7acp-666},
    {-0x1.87e92154ef7acp-665, -0x1.87e92154ef7acp-666},
    {0x1.bff2ee48e0530p-333, 0x1.bff2ee48e0530p-334},
    {-0x1.bff2ee48e0530p-333, -0x1.bff2ee48e0530p-334},
    {0x1.4484bfeebc2a0p-100, 0x1.4484bfeebc2a0p-101},
    {-0x1.4484bfeebc2a0p-100, -0x1.4484bfeebc2a0p-101},
    {0x1.cd2b297d889bcp-54, 0x1.cd2b297d889bdp-55},
    {-0x1.cd2b297d889bcp-54, -0x1.cd2b297d889bbp-55},
    {0x1.5798ee2308c3ap-27, 0x1.5798ee5107764p-28},
    {-0x1.5798ee2308c3ap-27, -0x1.5798edf50a110p-28},
    {0x1.a36e2eb1c432dp-14, 0x1.a376bfe71c634p-15},
    {-0x1.a36e2eb1c432dp-14, -0x1.a3659d7c6c026p-15},
    {0x1.47ae147ae147bp-7, 0x1.4a4b62076ecb6p-8},
    {-0x1.47ae147ae147bp-7, -0x1.4510c6ee53c40p-8},
    {0x1.999999999999ap-4, 0x1.ba3a1a550a71cp-5},
    {-0x1.999999999999ap-4, -0x1.78f918de28c18p-5},
    {0x1.5c28f5c28f5c3p-3, 0x1.8b2877545b5f3p-4},
    {-0x1.5c28f5c28f5c3p-3, -0x1.2d297430c3593p-4},
    {0x1.70a3d70a3d70ap-3, 0x1.a54c9d6f39a0ep-4},
    {-0x1.70a3d70a3d70ap-3, -0x1.3bfb10a541406p-4},
    {0x1.0000000000000p-2, 0x1.3289a2b16ed6cp-3},
    {-0x1.0000000000000p-2, -0x1.9aecba9d22528p-4},
    {0x1.5555555555555p-2, 0x1.ae761ce5ad56cp-3},
    {-0x1.5555555555555p-2, -0x1.f8691b89faa7cp-4},
    {0x1.0000000000000p-1, 0x1.62075e232ac77p-2},
    {-0x1.0000000000000p-1, -0x1.3bf143b9aa712p-3},
    {0x1.0a3d70a3d70a4p-1, 0x1.73eb9c4df1fa9p-2},
    {-0x1.0a3d70a3d70a4p-1, -0x1.411e89f37833ep-3},
    {0x1.8000000000000p-1, 0x1.28f99fefbe511p-1},
    {-0x1.8000000000000p-1, -0x1.5c19804106bbap-3},
    {0x1.0000000000000p+0, 0x1.aec4bd120d37dp-1},
    {-0x1.0000000000000p+0, -0x1.44ed0bb7cb20bp-3},
    {0x1.199999999999ap+0, 0x1.e6caf9d253f26p-1},
    {-0x1.199999999999ap+0, -0x1.31a0e5837d039p-3},
    {0x1.8000000000000p+0, 0x1.665895bb1e942p+0},
    {-0x1.8000000000000p+0, -0x1.9a76a44e16be6p-4},
    {0x1.0000000000000p+1, 0x1.f45a183e9b13dp+0},
    {-0x1.0000000000000p+1, -0x1.74bcf82c9d860p-5},
    {0x1.4000000000000p+1, 0x1.3e034de12223cp+1},
    {-0x1.4000000000000p+1, -0x1.fcb21edddc41dp-7},
    {0x1.8000000000000p+1, 0x1.7f7b4cb426ddcp+1},
    {-0x1.8000000000000p+1, -0x1.096697b244861p-8},
    {0x1.0000000000000p+2, 0x1.fffbd94a1aad4p+1},
    {-0x1.0000000000000p+2, -0x1.09ad7954afff8p-13},
    {0x1.4000000000000p+2, 0x1.3ffff9fd0d146p+2},
    {-0x1.4000000000000p+2, -0x1.80bcbae98063dp-20},
    {0x1.8000000000000p+2, 0x1.7ffffff9a4da6p+2},
    {-0x1.8000000000000p+2, -0x1.96c96680dc3ecp-28},
    {0x1.e000000000000p+2, 0x1.dfffffffffef3p+2},
    {-0x1.e000000000000p+2, -0x1.0d72649dfc971p-42},
    {0x1.1000000000000p+3, 0x1.1000000000000p+3},
    {-0x1.1000000000000p+3, -0x1.7397679c0bf2ep-54},
    {0x1.4000000000000p+3, 0x1.4000000000000p+3},
    {-0x1.4000000000000p+3, -0x1.7079362639d51p-74},
    {0x1.e000000000000p+3, 0x1.e000000000000p+3},
    {-0x1.e000000000000p+3, -0x1.49a217080f7a5p-164},
    {0x1.2e66666666666p+4, 0x1.2e66666666666p+4},
    {-0x1.2e66666666666p+4, -0x1.ff2e9832f3d3ep-260},
    {0x1.319999999999ap+4, 0x1.319999999999ap+4},
    {-0x1.319999999999ap+4, -0x1.6df54d26681ddp-265},
    {0x1.4000000000000p+4, 0x1.4000000000000p+4},
    {-0x1.4000000000000p+4, -0x1.1876296f504b2p-290},
    {0x1.9000000000000p+4, 0x1.9000000000000p+4},
    {-0x1.9000000000000p+4, -0x1.c7026759863b5p-453},
    {0x1.e000000000000p+4, 0x1.e000000000000p+4},
    {-0x1.e000000000000p+4, -0x1.601c52358b95dp-651},
    {0x1.2800000000000p+5, 0x1.2800000000000p+5},
    {-0x1.2800000000000p+5, -0x1.1bbe62e6f3e25p-989},
    {0x1.2c00000000000p+5, 0x1.2c00000000000p+5},
    {-0x1.2c00000000000p+5, -0x1.367682a29e309p-1016},
    {0x1.3000000000000p+5, 0x1.3000000000000p+5},
    {-0x1.3000000000000p+5, -0x0.0000084474d57p-1022},
    {0x1.9000000000000p+6, 0x1.9000000000000p+6},
    {-0x1.9000000000000p+6, -0x0.0p+0},
    {0x1.2a05f20000000p+33, 0x1.2a05f20000000p+33},
    {-0x1.2a05f20000000p+33, -0x0.0p+0},
    {0x1.249ad2594c37dp+332, 0x1.249ad2594c37dp+332},
    {-0x1.249ad2594c37dp+332, -0x0.0p+0},
};
static const known tanh_known[] = {
    {0x0.0p+0, 0x0.0p+0},
    {0x0.0000000000001p-1022, 0x0.0000000000001p-1022},
    {0x0.012688b70e62bp-1022, 0x0.012688b70e62bp-1022},
    {0x1.1fa182c40c60dp-1022, 0x1.1fa182c40c60dp-1022},
    {0x1.87e92154ef7acp-665, 0x1.87e92154ef7acp-665},
    {0x1.bff2ee48e0530p-333, 0x1.bff2ee48e0530p-333},
    {0x1.4484bfeebc2a0p-100, 0x1.4484bfeebc2a0p-100},
    {0x1.cd2b297d889bcp-54, 0x1.cd2b297d889bcp-54},
    {0x1.5798ee2308c3ap-27, 0x1.5798ee2308c3ap-27},
    {0x1.a36e2eb1c432dp-14, 0x1.a36e2e9a4f662p-14},
    {0x1.47ae147ae147bp-7, 0x1.47ab48ae4595ep-7},
    {0x1.999999999999ap-4, 0x1.983d7795f413ap-4},
    {0x1.5c28f5c28f5c3p-3, 0x1.58d8296a405bdp-3},
    {0x1.70a3d70a3d70ap-3, 0x1.6cb5a984db976p-3},
    {0x1.0000000000000p-2, 0x1.f597ea69a1c86p-3},
    {0x1.5555555555555p-2, 0x1.493aa293c8802p-2},
    {0x1.0000000000000p-1, 0x1.d9353d7568af3p-2},
    {0x1.0a3d70a3d70a4p-1, 0x1.e92a312640004p-2},
    {0x1.8000000000000p-1, 0x1.45323e552f228p-1},
    {0x1.0000000000000p+0, 0x1.85efab514f394p-1},
    {0x1.199999999999ap+0, 0x1.99db01fde2405p-1},
    {0x1.8000000000000p+0, 0x1.cf6f9786df577p-1},
    {0x1.0000000000000p+1, 0x1.ed9505e1bc3d4p-1},
    {0x1.4000000000000p+1, 0x1.f9258260a71c2p-1},
    {0x1.8000000000000p+1, 0x1.fd77d111a0b00p-1},
    {0x1.0000000000000p+2, 0x1.ffa81708a0b42p-1},
    {0x1.4000000000000p+2, 0x1.fff419668df11p-1},
    {0x1.8000000000000p+2, 0x1.fffe63abe253cp-1},
    {0x1.e000000000000p+2, 0x1.ffffeb78a3c73p-1},
    {0x1.1000000000000p+3, 0x1.fffffd38c39f0p-1},
    {0x1.4000000000000p+3, 0x1.ffffffdc96f35p-1},
    {0x1.e000000000000p+3, 0x1.ffffffffff96ap-1},
    {0x1.2e66666666666p+4, 0x1.fffffffffffffp-1},
    {0x1.319999999999ap+4, 0x1.0000000000000p+0},
    {0x1.4000000000000p+4, 0x1.0000000000000p+0},
    {0x1.9000000000000p+4, 0x1.0000000000000p+0},
    {0x1.e000000000000p+4, 0x1.0000000000000p+0},
    {0x1.2800000000000p+5, 0x1.0000000000000p+0},
    {0x1.2c00000000000p+5, 0x1.0000000000000p+0},
    {0x1.3000000000000p+5, 0x1.0000000000000p+0},
    {0x1.9000000000000p+6, 0x1.0000000000000p+0},
    {0x1.2a05f20000000p+33, 0x1.0000000000000p+0},
    {0x1.249ad2594c37dp+332, 0x1.0000000000000p+0},
};

#define LENGTH(a) (sizeof(a) / sizeof(a)[0])

static double of(dafl_activation act, double x)
{
    dafl_activation_apply(act, &x, 1);
    return x;
}

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* xorshift64: the same numbers everywhere, as the bit hashes need. */
static uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Uniform in [-half, half). */
static double draw_double(uint64_t *state, double half)
{
    return ((double)(draw(state) >> 11) * 0x1p-52 - 1) * half;
}

/* Stops at the first value that is too far off, and names it. */
static void assert_close(const char *what, double x, double got, double want,
                         double tolerance)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("%s(%a) = %a, not %a: off by %g, allowed %g", what, x, got,
                 want, fabs(got - want), tolerance);
}

/* The fit is off by 2^-51.3, and some ten roundings by up to 2^-53 each. A
 * subnormal result is rounded to a multiple of DBL_TRUE_MIN. */
static void gelu_matches_known_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(gelu_known); i++) {
        const known *k = &gelu_known[i];
        /* Phi(x) counts as 0 from -37.5 down, where |x Phi(x)| < 2e-306. */
        double floor_of = k->x <= -37.5 ? 2e-306 : DBL_TRUE_MIN;
        assert_close("gelu", k->x, of(DAFL_ACT_GELU, k->x), k->y,
                     2e-15 * fabs(k->y) + floor_of);
    }
}

/* Within 3 ulp; an ulp is at most 2^-52 of the value. */
static void tanh_matches_known_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(tanh_known); i++) {
        const known *k = &tanh_known[i];
        assert_close("tanh", k->x, of(DAFL_ACT_TANH, k->x), k->y,
                     3 * DBL_EPSILON * fabs(k->y));
    }
}

#define GRID 1000001

/* out[i] = act(x_i) over x_0 = -end .. x_(GRID-1) = end; to be freed. */
static double *on_grid(dafl_activation act, double **x, double end)
{
    double *out = malloc(GRID * sizeof *out);

    *x = malloc(GRID * sizeof **x);
    assert_non_null(out);
    assert_non_null(*x);
    for (size_t i = 0; i < GRID; i++)
        out[i] = (*x)[i] = end * (2.0 * (double)i / (GRID - 1) - 1);
    dafl_activation_apply(act, out, GRID);
    return out;
}

/* Ours is to be within 1e-15 max(1, |x|). Theirs: erfc to a few ulp, and its
 * argument's rounding costs x^2 2^-53 Phi(x), below 2^-53 for every x. */
static void gelu_agrees_with_libm_on_a_dense_grid(void **state)
{
    double *x;
    double *y = on_grid(DAFL_ACT_GELU, &x, 12);

    (void)state;
    for (size_t i = 0; i < GRID; i++)
        assert_close("gelu", x[i], y[i],
                     0.5 * x[i] * erfc(-x[i] * 0x1.6a09e667f3bcdp-1),
                     1e-15 * fmax(1, fabs(x[i])));
    free(x);
    free(y);
}

/* Both within 3 ulp of the value, whose ulp is at most 2^-52 of it. */
static void tanh_agrees_with_libm_on_a_dense_grid(void **state)
{
    double *x;
    double *y = on_grid(DAFL_ACT_TANH, &x, 25);

    (void)state;
    for (size_t i = 0; i < GRID; i++)
        assert_close("tanh", x[i], y[i], tanh(x[i]),
                     6 * DBL_EPSILON * fabs(y[i]));
    free(x);
    free(y);
}

/* Relative to the value, which falls to 1e-300 here. */
static void gelu_keeps_its_digits_in_the_negative_tail(void **state)
{
    (void)state;
    for (double x = -1; x > -37; x -= 0x1p-10) {
        double want = 0.5 * x * erfc(-x * 0x1.6a09e667f3bcdp-1);
        /* erfc(z) changes by 2 z^2 = x^2 times the relative change of z, which
         * is two roundings. */
        assert_close("gelu", x, of(DAFL_ACT_GELU, x), want,
                     (4e-15 + x * x * DBL_EPSILON) * fabs(want));
    }
}

static void tanh_is_exactly_odd_and_within_one(void **state)
{
    double *x;
    double *y = on_grid(DAFL_ACT_TANH, &x, 21);

    (void)state;
    for (size_t i = 0; i < GRID; i++) {
        assert_true(bits_of(of(DAFL_ACT_TANH, -x[i])) == bits_of(-y[i]));
        assert_true(fabs(y[i]) <= 1);
    }
    assert_true(bits_of(of(DAFL_ACT_TANH, -0.0)) == bits_of(-0.0));
    free(x);
    free(y);
}

static void tanh_of_a_tiny_value_is_the_value(void **state)
{
    (void)state;
    for (double x = 0x1p-54; x > 0; x /= 3)
        assert_true(bits_of(of(DAFL_ACT_TANH, x)) == bits_of(x));
}

static void gelu_of_x_less_gelu_of_minus_x_is_x(void **state)
{
    double *x;
    double *y = on_grid(DAFL_ACT_GELU, &x, 40);

    (void)state;
    for (size_t i = 0; i < GRID; i++)
        assert_close("gelu(x) - gelu(-x) at ", x[i],
                     y[i] - of(DAFL_ACT_GELU, -x[i]), x[i],
                     DBL_EPSILON * fabs(x[i]));
    assert_true(bits_of(of(DAFL_ACT_GELU, -0.0)) == bits_of(-0.0));
    free(x);
    free(y);
}

static void piecewise_activations_follow_their_definitions(void **state)
{
    uint64_t seed = 2026;

    (void)state;
    for (int i = 0; i < 100000; i++) {
        double x = draw_double(&seed, i % 2 == 0 ? 8 : 1);
        double clip = x + 3 < 0 ? 0 : x + 3 > 6 ? 6 : x + 3;
        double shrunk = x > 0.5 ? x - 0.5 : x < -0.5 ? x + 0.5 : 0;

        assert_true(of(DAFL_ACT_RELU, x) == (x > 0 ? x : 0));
        assert_true(of(DAFL_ACT_LEAKYRELU, x) == (x > 0 ? x : 0.01 * x));
        assert_true(of(DAFL_ACT_HARDSWISH, x) == x * clip / 6);
        assert_true(of(DAFL_ACT_SOFTSHRINK, x) == shrunk);
        assert_true(of(DAFL_ACT_NONE, x) == x);
    }
}

static void piecewise_activations_hold_at_their_corners(void **state)
{
    static const struct {
        double x, relu, leaky, hardswish, softshrink;
    } at[] = {
        {0, 0, 0, 0, 0},
        {-0.0, 0, 0, 0, 0},
        {0.5, 0.5, 0.5, 0.5 * 3.5 / 6, 0},
        {-0.5, 0, -0.005, -0.5 * 2.5 / 6, 0},
        {0.75, 0.75, 0.75, 0.75 * 3.75 / 6, 0.25},
        {-0.75, 0, -0.0075, -0.75 * 2.25 / 6, -0.25},
        {3, 3, 3, 3, 2.5},
        {-3, 0, -0.03, 0, -2.5},
        {4, 4, 4, 4, 3.5},
        {-4, 0, -0.04, 0, -3.5},
        {1e300, 1e300, 1e300, 1e300, 1e300},
        {-1e300, 0, -1e298, 0, -1e300},
        {DBL_TRUE_MIN, DBL_TRUE_MIN, DBL_TRUE_MIN, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < LENGTH(at); i++) {
        double x = at[i].x;
        double ulp = DBL_EPSILON * fabs(x) + DBL_TRUE_MIN;

        assert_true(of(DAFL_ACT_RELU, x) == at[i].relu);
        assert_true(of(DAFL_ACT_SOFTSHRINK, x) == at[i].softshrink);
        assert_close("leakyrelu", x, of(DAFL_ACT_LEAKYRELU, x), at[i].leaky,
                     ulp);
        assert_close("hardswish", x, of(DAFL_ACT_HARDSWISH, x), at[i].hardswish,
                     ulp);
    }
}

static void nan_stays_nan(void **state)
{
    (void)state;
    for (int act = 0; act < DAFL_ACT_COUNT; act++) {
        /* Nine, so that vector and single-value code both meet one. */
        double x[9];

        for (size_t i = 0; i < LENGTH(x); i++)
            x[i] = i % 2 == 0 ? (double)NAN : -(double)NAN;
        dafl_activation_apply((dafl_activation)act, x, LENGTH(x));
        for (size_t i = 0; i < LENGTH(x); i++)
            assert_true(isnan(x[i]));
    }
}

static void infinities_give_the_limits(void **state)
{
    static const struct {
        dafl_activation act;
        double below, above;
    } limit[] = {
        {DAFL_ACT_GELU, 0, INFINITY},
        {DAFL_ACT_RELU, 0, INFINITY},
        {DAFL_ACT_LEAKYRELU, -INFINITY, INFINITY},
        {DAFL_ACT_TANH, -1, 1},
        {DAFL_ACT_HARDSWISH, 0, INFINITY},
        {DAFL_ACT_SOFTSHRINK, -INFINITY, INFINITY},
        {DAFL_ACT_NONE, -INFINITY, INFINITY},
    };

    (void)state;
    assert_int_equal(LENGTH(limit), DAFL_ACT_COUNT);
    for (size_t i = 0; i < LENGTH(limit); i++) {
        assert_true(of(limit[i].act, -INFINITY) == limit[i].below);
        assert_true(of(limit[i].act, INFINITY) == limit[i].above);
    }
}

static void far_tails_are_exact(void **state)
{
    (void)state;
    for (double x = 37.5; x < DBL_MAX / 8; x *= 1.7) {
        assert_true(of(DAFL_ACT_GELU, x) == x);
        assert_true(of(DAFL_ACT_GELU, -x) == 0);
        assert_true(of(DAFL_ACT_TANH, x) == 1);
    }
    for (double x = 9; x < 37.5; x += 0x1p-8)
        assert_true(of(DAFL_ACT_GELU, x) == x);
    for (double x = 19.1; x < 37.5; x += 0x1p-8)
        assert_true(of(DAFL_ACT_TANH, x) == 1);
}

/* Every value visits every position of every length and offset; what it
 * becomes there is what it becomes alone, and the neighbours are untouched. */
static void result_depends_on_the_value_alone(void **state)
{
    enum { MAX_LEN = 67, MAX_OFFSET = 7 };
    static const double guard = 0x1.23456789abcdep+77;
    double buffer[MAX_LEN + MAX_OFFSET + 1];
    double values[29] = {0.0,   -0.0,  DBL_TRUE_MIN, -1e-300,  1e-9, -0.17,
                         0.35,  -0.5,  1.0,          -1.0,     2.5,  -3.0,
                         3.0,   -6.0,  8.3,          -19.0,    20.5, -37.4,
                         -37.6, 1e300, INFINITY,     -INFINITY};
    uint64_t seed = 1;

    (void)state;
    for (size_t i = 22; i < LENGTH(values); i++)
        values[i] = draw_double(&seed, 4);
    for (int act = 0; act < DAFL_ACT_COUNT; act++)
        for (size_t len = 1; len <= MAX_LEN; len++)
            for (size_t offset = 0; offset <= MAX_OFFSET; offset++)
                for (size_t turn = 0; turn < LENGTH(values); turn++) {
                    double *x = buffer + offset;

                    for (size_t i = 0; i < LENGTH(buffer); i++)
                        buffer[i] = guard;
                    for (size_t i = 0; i < len; i++)
                        x[i] = values[(i + turn) % LENGTH(values)];
                    dafl_activation_apply((dafl_activation)act, x, len);
                    for (size_t i = 0; i < len; i++) {
                        double v = values[(i + turn) % LENGTH(values)];
                        double alone = of((dafl_activation)act, v);
                        if (bits_of(x[i]) != bits_of(alone))
                            fail_msg("%s(%a) at %zu of %zu, offset %zu: %a, "
                                     "alone %a",
                                     dafl_activation_name((dafl_activation)act),
                                     v, i, len, offset, x[i], alone);
                    }
                    for (size_t i = 0; i < LENGTH(buffer); i++)
                        assert_true((i >= offset && i < offset + len) ||
                                    buffer[i] == guard);
                }
}

/* One hash per activation, the same for every compiler, optimisation level,
 * instruction set and C library. A changed constant changes it; nothing else
 * may. */
static void bits_are_the_same_in_every_build(void **state)
{
    static const uint64_t want[DAFL_ACT_COUNT] = {
        0xe2afa911aec5a391, 0x148fb0aca9805d32, 0x54cc174e7b87d10f,
        0x6dc574ecfa30b170, 0xbb5f6472200431af, 0xee60a9f8727fb2c2,
        0xa22652e50344e57b,
    };
    static const double half[] = {0.5, 1, 4, 8, 40, 1e-5, 1e-300, 1e300};
    enum { N = 200003 };
    double *x = malloc(N * sizeof *x);

    bool same = true;

    (void)state;
    assert_non_null(x);
    for (int act = 0; act < DAFL_ACT_COUNT; act++) {
        uint64_t seed = 7, hash = 0xcbf29ce484222325;

        for (size_t i = 0; i < N; i++)
            x[i] = draw_double(&seed, half[i % LENGTH(half)]);
        dafl_activation_apply((dafl_activation)act, x, N);
        for (size_t i = 0; i < N; i++) {
            hash = (hash ^ bits_of(x[i])) * 0x100000001b3; /* FNV-1a */
            hash ^= hash >> 32;
        }
        if (hash != want[act]) {
            print_error("%s: hash 0x%016llx\n",
                        dafl_activation_name((dafl_activation)act),
                        (unsigned long long)hash);
            same = false;
        }
    }
    free(x);
    assert_true(same);
}

static void an_empty_array_is_left_alone(void **state)
{
    (void)state;
    for (int act = 0; act < DAFL_ACT_COUNT; act++)
        dafl_activation_apply((dafl_activation)act, NULL, 0);
}

static void every_name_parses_to_its_activation(void **state)
{
    static const char *const names[] = {
        "gelu", "relu", "leakyrelu", "tanh", "hardswish", "softshrink", "none"};

    (void)state;
    assert_int_equal(LENGTH(names), DAFL_ACT_COUNT);
    for (int i = 0; i < DAFL_ACT_COUNT; i++) {
        dafl_activation act = DAFL_ACT_COUNT;

        assert_string_equal(dafl_activation_name((dafl_activation)i), names[i]);
        assert_int_equal(dafl_activation_parse(&act, names[i], NULL), DAFL_OK);
        assert_int_equal(act, i);
    }
    assert_non_null(dafl_activation_name(DAFL_ACT_COUNT));
}

static void parse_refuses_an_unknown_name_and_lists_the_known(void **state)
{
    static const char *const wrong[] = {"",     "GELU",   "gelu ", " gelu",
                                        "gel",  "gelu2",  "relu6", "swish",
                                        "Tanh", "unknown"};

    (void)state;
    for (size_t i = 0; i < LENGTH(wrong); i++) {
        dafl_activation act = DAFL_ACT_TANH;
        dafl_why why = {{0}};

        assert_int_equal(dafl_activation_parse(&act, wrong[i], &why),
                         DAFL_ERR_INPUT);
        assert_int_equal(act, DAFL_ACT_TANH);
        assert_non_null(strstr(why.text, wrong[i]));
        for (int a = 0; a < DAFL_ACT_COUNT; a++)
            assert_non_null(
                strstr(why.text, dafl_activation_name((dafl_activation)a)));
        assert_int_equal(dafl_activation_parse(&act, wrong[i], NULL),
                         DAFL_ERR_INPUT);
    }
}

static void parse_lists_the_names_after_a_very_long_one(void **state)
{
    char name[2000];
    dafl_activation act = DAFL_ACT_TANH;
    dafl_why why = {{0}};

    (void)state;
    memset(name, 'g', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_int_equal(dafl_activation_parse(&act, name, &why), DAFL_ERR_INPUT);
    assert_non_null(strstr(why.text, "softshrink or none"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gelu_matches_known_values),
        cmocka_unit_test(tanh_matches_known_values),
        cmocka_unit_test(gelu_agrees_with_libm_on_a_dense_grid),
        cmocka_unit_test(tanh_agrees_with_libm_on_a_dense_grid),
        cmocka_unit_test(gelu_keeps_its_digits_in_the_negative_tail),
        cmocka_unit_test(tanh_is_exactly_odd_and_within_one),
        cmocka_unit_test(tanh_of_a_tiny_value_is_the_value),
        cmocka_unit_test(gelu_of_x_less_gelu_of_minus_x_is_x),
        cmocka_unit_test(piecewise_activations_follow_their_definitions),
        cmocka_unit_test(piecewise_activations_hold_at_their_corners),
        cmocka_unit_test(nan_stays_nan),
        cmocka_unit_test(infinities_give_the_limits),
        cmocka_unit_test(far_tails_are_exact),
        cmocka_unit_test(result_depends_on_the_value_alone),
        cmocka_unit_test(bits_are_the_same_in_every_build),
        cmocka_unit_test(an_empty_array_is_left_alone),
        cmocka_unit_test(every_name_parses_to_its_activation),
        cmocka_unit_test(parse_refuses_an_unknown_name_and_lists_the_known),
        cmocka_unit_test(parse_lists_the_names_after_a_very_long_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
