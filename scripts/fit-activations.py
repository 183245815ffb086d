#!/usr/bin/env python3
"""Compute the constants of lib/activation.c, print them as C, and check the error of each fit.

Needs mpmath (Debian: python3-mpmath). Run: python3 scripts/fit-activations.py
The same script prints the known answers of tests/lib/test_activation.c:
python3 scripts/fit-activations.py --vectors

Each polynomial interpolates its function at Chebyshev nodes (within a small factor of the minimax
error, without an iteration), in 60 digits, and is then rounded to doubles. The printed error is
that of the rounded coefficients in exact arithmetic: rounding during evaluation comes on top.
"""
import sys

from mpmath import cos, erfc, exp, expm1, factorial, fsum, log, lu_solve, matrix, mp, mpf, pi, sqrt, tanh

mp.dps = 60
UNDERFLOW = mpf(2) ** -1022

GELU_CENTRE = mpf("5.5")  # of the t = (y - a) / (y + a) tried, the smallest error at this degree
GELU_END = mpf("37.5")  # Phi(-37.5) is still a normal double; Phi(-37.6) is not
GELU_DEGREE = 19
EXPM1_DEGREE = 9
EXPM1_SLACK = mpf("1e-9")  # the rounded quotient may miss the nearest multiple of ln 2 by this little


def expm1_rest(r):
    """(e^r - 1 - r) / r^2, continued through 0."""
    if abs(r) < mpf("1e-8"):
        return fsum(r**i / factorial(i + 2) for i in range(6))
    return (expm1(r) - r) / r**2


def tail(t):
    """(y + a) e^(y^2/2) Phi(-y) at t = (y - a) / (y + a)."""
    y = GELU_CENTRE * (1 + t) / (1 - t)
    return (y + GELU_CENTRE) * exp(y * y / 2) * erfc(y / sqrt(mpf(2))) / 2


def fit(f, lo, hi, degree):
    """Coefficients, lowest first, of the interpolant of f at the Chebyshev nodes of [lo, hi]."""
    n = degree + 1
    nodes = [(lo + hi) / 2 + (hi - lo) / 2 * cos(pi * (2 * j + 1) / (2 * n)) for j in range(n)]
    powers = matrix([[x**i for i in range(n)] for x in nodes])
    return [float(c) for c in lu_solve(powers, matrix([f(x) for x in nodes]))]


def worst(f, coefficients, lo, hi, weight=lambda x: 1):
    """Largest |p / f - 1| * weight over a grid of [lo, hi]."""
    grid = [lo + (hi - lo) * i / 2000 for i in range(2001)]
    return max(abs(fsum(c * x**i for i, c in enumerate(coefficients)) / f(x) - 1) * weight(x) for x in grid)


def print_fit(name, coefficients, error):
    print(f"/* {name}: relative error of the fit {float(error):.1e} = 2^{float(log(error, 2)):.1f} */")
    for c in coefficients:
        print(f"    {c.hex()},")


def print_constants():
    bits = mpf(2) ** 42  # ln 2 = 0.1011..b: 42 bits leave 11 zeros, so k * ln2_hi is exact for |k| < 2^11
    ln2_hi = float(int(log(2) * bits) / bits)
    print(f"log2(e) {float(1 / log(2)).hex()}  ln2_hi {ln2_hi.hex()}  ln2_lo {float(log(2) - ln2_hi).hex()}")

    half = log(2) / 2 + EXPM1_SLACK
    rest = fit(expm1_rest, -half, half, EXPM1_DEGREE)
    # What counts is the error against e^r - 1 = r + r^2 rest(r), where rest weighs r^2 rest / (e^r - 1).
    share = lambda r: abs(r * expm1_rest(r) / (1 + r * expm1_rest(r)))
    print_fit("expm1_rest", rest, worst(expm1_rest, rest, -half, half, share))

    end = (GELU_END - GELU_CENTRE) / (GELU_END + GELU_CENTRE)
    coefficients = fit(tail, mpf(-1), end, GELU_DEGREE)
    print_fit("tail", coefficients, worst(tail, coefficients, mpf(-1), end))
    for y in (GELU_END, GELU_END + mpf("0.1")):
        ratio = erfc(y / sqrt(mpf(2))) / 2 / UNDERFLOW
        print(f"/* Phi(-{y}) is {float(ratio):.2g} times the smallest normal double */")


def print_vectors():
    points = [0.0, 5e-324, 1e-310, 2.5e-308, 1e-200, 1e-100, 1e-30, 1e-16, 1e-8, 1e-4, 0.01, 0.1, 0.17, 0.18, 0.25,
              1 / 3, 0.5, 0.52, 0.75, 1.0, 1.1, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.5, 8.5, 10.0, 15.0, 18.9, 19.1,
              20.0, 25.0, 30.0, 37.0, 37.5, 38.0, 100.0, 1e10, 1e100]
    signed = [s * x for x in points for s in (1.0, -1.0)]
    gelu = lambda x: mpf(x) * erfc(-mpf(x) / sqrt(mpf(2))) / 2
    mp.dps = 400  # tanh(1e-200) and its like need the digits
    for name, f, xs in (("gelu", gelu, signed), ("tanh", tanh, points)):
        print(f"static const known {name}_known[] = {{")
        for x in xs:
            value = float(f(mpf(x)))
            print(f"    {{{x.hex()}, {value.hex()}}},")
        print("};")


print_vectors() if "--vectors" in sys.argv[1:] else print_constants()
