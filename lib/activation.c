/* SPDX-License-Identifier: Apache-2.0 */
/* Every activation is a branch-free scalar function of + - * /, comparisons
 * and fma(), each of which IEEE 754 rounds in one way only. The compiler may
 * run it four at a time or one at a time, and the bits are the same; no
 * function whose rounding depends on the C library (exp, erf, tanh) is called.
 * This needs -ffp-contract=off and no -ffast-math. Without FMA instructions
 * fma() is a call: slow, same bits.
 *
 * scripts/fit-activations.py computes the constants and prints the error of
 * each fit. tests/lib/test_activation.c holds gelu to 2e-15 of its value at
 * known points and to 1e-15 max(1, |x|) everywhere, tanh to 3 ulp. */
#include "lib/activation.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

_Static_assert(FLT_EVAL_METHOD == 0 && DBL_MANT_DIG == 53,
               "double operations round to 53 bits");

static inline uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double from_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* cond ? yes : no, by masks. Given the conditional itself, GCC moves arithmetic
 * into one arm of it and then cannot vectorise the loop. Whatever stands in
 * the arm not taken, NaN included, leaves no trace. */
static inline double pick(bool cond, double yes, double no)
{
    uint64_t mask = -(uint64_t)cond;
    return from_bits((bits_of(yes) & mask) | (bits_of(no) & ~mask));
}

/* a + b x + c x^2 + d x^3, given x2 = x^2, in two steps. Horner's rule in x^4
 * over these waits a quarter as long as Horner's rule in x. */
static inline double cubic(double x, double x2, double a, double b, double c,
                           double d)
{
    return fma(fma(d, x, c), x2, fma(b, x, a));
}

/* e^(m n) = scale * (1 + p): scale = 2^k, p = e^r - 1 with |r| <= ln(2)/2. */
typedef struct {
    double scale, p;
} exp_parts;

/* The product m n is never rounded: at m n = -700 that would cost 2^9 ulp.
 * p has a small relative error, also where m n is near 0. NaN gives NaN.
 * For |m n| <= 708, where 2^k is normal; the result means nothing elsewhere. */
static inline exp_parts exp_of_product(double m, double n)
{
    static const double shift = 0x1.8p52; /* its last place is worth 1 */
    static const double log2_e = 0x1.71547652b82fep+0;
    /* ln 2 in 42 bits, so that k ln2_hi is exact, and what that leaves. */
    static const double ln2_hi = 0x1.62e42fefa38p-1;
    static const double ln2_lo = 0x1.ef35793c7673p-45;
    exp_parts e;

    /* k = m n / ln 2 to the nearest integer, in the low bits of `shifted`. */
    double shifted = fma(m * log2_e, n, shift);
    double k = shifted - shift;
    double r = fma(-k, ln2_lo, fma(m, n, -(k * ln2_hi)));

    /* q = (e^r - 1 - r) / r^2, which leaves p off by 2^-54.4 relative. */
    double r2 = r * r;
    double r4 = r2 * r2;
    double q = fma(0x1.af389ecfd94c2p-26, r, 0x1.28917c89b4f29p-22);
    q = fma(q, r4,
            cubic(r, r2, 0x1.6c16c17889ef1p-10, 0x1.a01a01a7c2efep-13,
                  0x1.a019b9149a33bp-16, 0x1.71de0db2f6a8fp-19));
    q = fma(q, r4,
            cubic(r, r2, 0x1.0000000000001p-1, 0x1.5555555555556p-3,
                  0x1.5555555553d68p-5, 0x1.11111111109b5p-7));
    e.p = fma(q, r2, r);

    /* 2^k has k + 1023 in its exponent; `<<` drops what stood above k. */
    e.scale = from_bits((bits_of(shifted) + 1023) << 52);
    return e;
}

/* x Phi(x) = max(x, 0) - y Phi(-y) with y = |x|, and
 * Phi(-y) = e^(-y^2/2) tail(t) / (y + a) with t = (y - a)/(y + a), which takes
 * all y >= 0 to [-1, 1). There tail varies so gently, from 2.75 to 0.46, that
 * one polynomial gives it to full precision. */
static inline double gelu(double x)
{
    static const double a = 5.5;    /* the polynomial is for this one */
    static const double end = 37.5; /* Phi(-end) = 2^-1021; beyond, 0 */

    double y = fabs(x);
    double s = 1 / (y + a);
    exp_parts e = exp_of_product(-0.5 * y, y);

    /* q = tail(t), off by 2^-51.3 relative. */
    double t = fma(-2 * a, s, 1);
    double t2 = t * t;
    double t4 = t2 * t2;
    double q = cubic(t, t2, -0x1.0b0cfcc088e6cp-22, -0x1.7be1555010b28p-23,
                     0x1.280c8909c77a2p-25, 0x1.41916916d58d4p-26);
    q = fma(q, t4,
            cubic(t, t2, 0x1.11e5c2f0dc423p-16, -0x1.96bdf56a25ffdp-17,
                  0x1.d13df0c797498p-22, 0x1.8f23fc6685f2dp-20));
    q = fma(q, t4,
            cubic(t, t2, 0x1.4034e7aefe22cp-9, 0x1.1ab331fb27c94p-12,
                  -0x1.5449cc43ee834p-12, 0x1.2b8a78f72bbb1p-14));
    q = fma(q, t4,
            cubic(t, t2, 0x1.be33e6eea6cf5p-3, -0x1.c15806fa6a5b2p-4,
                  0x1.71707b537ae1bp-5, -0x1.c83edf30191c5p-7));
    q = fma(q, t4,
            cubic(t, t2, 0x1.8c2b8893b5c8ep-1, -0x1.5ed05c7e41a2bp-1,
                  0x1.1239b3f8c05b1p-1, -0x1.77dbb5cdda78dp-2));

    double phi = fma(e.scale, e.p, e.scale) * (q * s);
    return pick(x < 0, 0, x) - pick(y < end, y * phi, 0);
}

/* With m = e^(2|x|) - 1: m / (m + 2), which cancels nothing near 0. */
static inline double hyperbolic_tangent(double x)
{
    static const double end = 20; /* 1 - tanh(19.1) < 2^-54: all 1 */

    double y = fabs(x);
    exp_parts e = exp_of_product(2, y);
    double m = fma(e.scale, e.p, e.scale - 1); /* e.p itself if k = 0 */
    return copysign(pick(y > end, 1, m / (m + 2)), x);
}

static inline double relu(double x)
{
    return pick(x <= 0, 0, x);
}

static inline double leakyrelu(double x)
{
    return pick(x > 0, x, 0.01 * x);
}

static inline double hardswish(double x)
{
    x = pick(x < -3, -3, x); /* -3 * 0, as for all below; -inf * 0 is NaN */
    double gate = x + 3;
    gate = pick(gate > 6, 6, gate);
    return x * gate / 6;
}

static inline double softshrink(double x)
{
    double m = fabs(x) - 0.5;
    return copysign(pick(m <= 0, 0, m), x);
}

#define EACH(f)                    \
    for (size_t i = 0; i < n; i++) \
    x[i] = f(x[i])

void dafl_activation_apply(dafl_activation act, double *x, size_t n)
{
    switch (act) {
    case DAFL_ACT_GELU:
        EACH(gelu);
        break;
    case DAFL_ACT_RELU:
        EACH(relu);
        break;
    case DAFL_ACT_LEAKYRELU:
        EACH(leakyrelu);
        break;
    case DAFL_ACT_TANH:
        EACH(hyperbolic_tangent);
        break;
    case DAFL_ACT_HARDSWISH:
        EACH(hardswish);
        break;
    case DAFL_ACT_SOFTSHRINK:
        EACH(softshrink);
        break;
    case DAFL_ACT_NONE:
    case DAFL_ACT_COUNT: /* not an activation */
        break;
    }
}

static const char *const names[DAFL_ACT_COUNT] = {
    [DAFL_ACT_GELU] = "gelu",           [DAFL_ACT_RELU] = "relu",
    [DAFL_ACT_LEAKYRELU] = "leakyrelu", [DAFL_ACT_TANH] = "tanh",
    [DAFL_ACT_HARDSWISH] = "hardswish", [DAFL_ACT_SOFTSHRINK] = "softshrink",
    [DAFL_ACT_NONE] = "none",
};

const char *dafl_activation_name(dafl_activation act)
{
    return (unsigned)act < DAFL_ACT_COUNT ? names[act] : "unknown";
}

dafl_err dafl_activation_parse(dafl_activation *out, const char *name,
                               dafl_why *why)
{
    for (unsigned i = 0; i < DAFL_ACT_COUNT; i++) {
        if (strcmp(name, names[i]) == 0) {
            *out = (dafl_activation)i;
            return DAFL_OK;
        }
    }
    return dafl_fail(why, DAFL_ERR_INPUT,
                     "no activation '%.64s': choose gelu, relu, leakyrelu, "
                     "tanh, hardswish, softshrink or none",
                     name);
}
