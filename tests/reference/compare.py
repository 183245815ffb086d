#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The library against textbooks: compare.py TRAIN_F64 DIGITS [--seed N] [--cases N]

a  rounding off: every head of 20 layers, the risk and the regularised risk
b  the grid on the digits: the error falls with the bits as it should
c  AFL is ridge regression on the rounded features
d  rounding off: both schedules, with cohorts that change from sum to sum and without

With DEEPAFL_DATA set, (a) also compares with reference/deepafl_numpy.py there.
"""
import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np
    import scipy.linalg
except ImportError as e:
    print(f"skipped: needs numpy and scipy ({e})")
    sys.exit(77)

import textbook

ACTIVATIONS = ("gelu", "relu", "leakyrelu", "tanh", "hardswish", "softshrink", "none")
LAYERS = 20
HEADS_TOL = 1e-9  # relative, Frobenius
failures = 0


def check(ok, what):
    global failures
    if not ok:
        failures += 1
        print("FAILED:", what)


def distance(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


def random_projections(rng, d0, d, df, layers):
    def one(n_in, n_out):
        bound = n_in ** -0.5
        return rng.uniform(-bound, bound, (n_in, n_out)), rng.uniform(-bound, bound, n_out)
    return [one(d0, d)] + [one(d, df) for _ in range(layers)]


def library(exe, x, y, projections, classes, lam, gamma, act="gelu", schedule="delta",
            sites=1, grid=0, magnitude=4, cohorts=None):
    """Heads and the rows of risk.npy, from train_f64. No projections: AFL."""
    with tempfile.TemporaryDirectory() as name:
        tmp = Path(name)
        np.save(tmp / "X.npy", x)
        np.save(tmp / "y.npy", y)
        for k, (w, b) in enumerate(projections):
            np.save(tmp / (f"B{k - 1}.npy" if k else "A.npy"), w)
            # Case differs only: a.npy and A.npy want a case-sensitive directory.
            np.save(tmp / (f"b{k - 1}.npy" if k else "a.npy"), b)
        if cohorts is not None:
            np.save(tmp / "cohorts.npy", cohorts.astype(np.uint8))
        layers = max(len(projections) - 1, 0)
        d, df = projections[-1][0].shape if layers else (x.shape[1],) * 2
        subprocess.run([exe, tmp / "X.npy", tmp / "y.npy", tmp if projections else "-", tmp] +
                       [str(v) for v in (classes, layers, d, df, lam, gamma, act, schedule,
                                         sites, grid, magnitude)] +
                       [tmp / "cohorts.npy" if cohorts is not None else "-"], check=True)
        return ([np.load(tmp / f"W{t}.npy") for t in range(layers + 1)],
                np.load(tmp / "risk.npy"))


def shared_textbook():
    root = os.environ.get("DEEPAFL_DATA")
    path = Path(root or ".", "reference", "deepafl_numpy.py")
    if not root or not path.exists():
        print("DEEPAFL_DATA does not lead to reference/deepafl_numpy.py: not compared with it")
        return None
    spec = importlib.util.spec_from_file_location("deepafl_numpy", path)
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(module)
    return module


def rounding_off(exe, seed, cases):
    shared = shared_textbook()
    print(f"\n(a) rounding off, {LAYERS} layers, seed {seed}: largest relative error over the layers")
    print("case   N  d0   d  dF   C activation lambda gamma schedule sites |"
          "    heads   shared     risk reg.risk")
    for case in range(cases):
        rng = np.random.default_rng([seed, case])
        d, df = rng.integers(5, 81, 2)
        classes, n = rng.integers(2, 13), rng.integers(30, 401)
        if case % 4 == 3:  # more classes than features: W has rank d
            d = rng.integers(5, 8)
            classes = rng.integers(d + 1, 13)
        d0, sites = rng.integers(3, 41), rng.integers(1, 6)
        lam, gamma = rng.choice([0.01, 0.1, 1, 10], 2)
        act, schedule = ACTIVATIONS[case % 7], ("delta", "full")[rng.integers(2)]
        x, y = rng.normal(size=(n, d0)), rng.integers(0, classes, n)
        projections = random_projections(rng, d0, d, df, LAYERS)
        heads, said = library(exe, x, y, projections, classes, lam, gamma, act, schedule, sites)
        want, risk, penalised = textbook.train(x, y, projections, classes, lam, gamma, act)
        error = max(map(distance, heads, want))
        # Three terms of the size of tr Y'Y = N make a risk, which may be far smaller.
        error_risk = np.abs(said[:, 0] - risk).max() / n
        error_penalised = np.abs(said[:, 1] - penalised).max() / n
        other = float("nan")
        if shared:
            model = shared.train(x, y, projections, classes, lam, gamma, act)
            other = max(map(distance, heads, model["W"]))
            check(other <= HEADS_TOL, f"case {case}: heads against the shared textbook")
            check(np.abs(said[:, 1] - model["regularised_risk"]).max() <= HEADS_TOL * n,
                  f"case {case}: regularised risk against the shared textbook")
        print(f"{case:4} {n:3} {d0:3} {d:3} {df:3} {classes:3} {act:10} {lam:6} {gamma:5} "
              f"{schedule:8} {sites:5} | {error:8.1e} {other:8.1e} {error_risk:8.1e} "
              f"{error_penalised:8.1e}")
        check(error <= HEADS_TOL, f"case {case}: heads")
        check(error_risk <= HEADS_TOL and error_penalised <= HEADS_TOL, f"case {case}: risks")


def grid_on_digits(exe, digits, seed):
    x = np.load(digits / "train_features.npy")
    y = np.load(digits / "train_labels.npy")
    projections = random_projections(np.random.default_rng(seed), x.shape[1], 256, 256, 8)
    want, _, _ = textbook.train(x.astype(float), y, projections, 10, 1.0, 0.01, "gelu")
    print(f"\n(b) digits, d = dF = 256, 8 layers, lambda 1, gamma 0.01, seed {seed}: "
          "relative error of W_8 by grid")
    print("bits     error  falls by")
    errors = {}
    for bits in range(10, 21, 2):
        heads, _ = library(exe, x, y, projections, 10, 1.0, 0.01, sites=3, grid=bits)
        errors[bits] = distance(heads[-1], want[-1])
        fall = errors[bits - 2] / errors[bits] if bits > 10 else float("nan")
        print(f"{bits:4}  {errors[bits]:8.1e}  {fall:8.2f}")
        check(bits == 10 or fall >= 3, f"the error falls by less than 3 at {bits} bits")
    check(errors[12] <= 3e-2 and errors[16] <= 2e-3, "the grid's error is larger than it was")


def afl_is_ridge(exe, digits, seed):
    rng = np.random.default_rng(seed)
    raw = np.load(digits / "train_features.npy").astype(float)
    sets = (("digits", raw, np.load(digits / "train_labels.npy")),
            ("normal", 3 * rng.normal(size=(500, 40)), rng.integers(0, 10, 500)))
    print(f"\n(c) AFL against ridge regression on the rounded features, seed {seed}")
    print("data    grid lambda |    error  allowed  without rounding")
    for name, x, y in sets:
        for bits, lam in ((3, 1.0), (12, 0.01), (12, 1.0), (16, 10.0)):
            heads, _ = library(exe, x, y, [], 10, lam, 0, sites=4, grid=bits, magnitude=16)
            rounded = np.rint(x * 2**bits) / 2**bits
            want = textbook.ridge(rounded, np.eye(10)[y], lam)
            # Cholesky: ||dW|| <= c d eps cond(G + lambda I) ||W||.
            g = rounded.T @ rounded + lam * np.eye(x.shape[1])
            allowed = x.shape[1] * np.finfo(float).eps * np.linalg.cond(g)
            error = distance(heads[0], want)
            plain = distance(heads[0], textbook.ridge(x, np.eye(10)[y], lam))
            print(f"{name:7} {bits:4} {lam:6} | {error:8.1e} {allowed:8.1e}  {plain:8.1e}")
            check(error <= allowed, f"AFL on {name}, {bits} bits, lambda {lam}")
            if name == "normal" or bits < 4:  # digits are multiples of 1/16
                check(plain > 10 * allowed, "rounding leaves a trace")


def changing_cohorts(rng, layers, sites, churn):
    """Who answers which question: at most a third away, the same as before with 1 - churn."""
    rows, cohort = [], np.ones(sites, bool)
    for question in range(2 * layers + 3):
        if rng.random() < churn:
            cohort = np.ones(sites, bool)
            cohort[rng.choice(sites, rng.integers(0, sites // 3 + 1), replace=False)] = False
        rows.append(cohort)
    return np.array(rows)


def both_schedules(exe, seed, cases):
    """L6: an increment gives what a full Gram sum over the same cohort gives."""
    layers, increments = 10, {"delta": 0, "full": 0}
    print(f"\n(d) rounding off, {layers} layers, seed {seed}: schedules and churn, largest "
          "relative error of a head")
    print("case churn sites activation | increments    delta     full  delta - full")
    for case in range(cases):
        rng = np.random.default_rng([seed, 4, case])
        d, df, d0 = rng.integers(8, 41, 3)
        classes, sites = rng.integers(2, 8), rng.integers(3, 10)
        n = 12 * d
        churn = (0, 0.2, 0.5)[case % 3]
        act = ACTIVATIONS[case % 7]
        x, y = rng.normal(size=(n, d0)), rng.integers(0, classes, n)
        projections = random_projections(rng, d0, d, df, layers)
        cohorts = changing_cohorts(rng, layers, sites, churn)
        want, _, _ = textbook.train(x, y, projections, classes, 1.0, 0.1, act,
                                    present=cohorts[:, np.arange(n) % sites])
        heads, carried = {}, {}
        for schedule in ("delta", "full"):
            heads[schedule], said = library(exe, x, y, projections, classes, 1.0, 0.1, act,
                                            schedule, sites, cohorts=cohorts)
            carried[schedule] = int(said[:, 3].sum())
            increments[schedule] += carried[schedule]
        errors = [max(map(distance, heads[s], want)) for s in heads]
        errors.append(max(map(distance, heads["delta"], heads["full"])))
        print(f"{case:4} {churn:5} {sites:5} {act:10} | {carried['delta']:4} of {layers:2} "
              f"{errors[0]:8.1e} {errors[1]:8.1e}      {errors[2]:8.1e}")
        check(max(errors) <= HEADS_TOL, f"case {case}: heads of both schedules")
        # An increment wherever two Gram sums and the residual between have one cohort.
        same = [(cohorts[q - 2:q + 1] == cohorts[q]).all() for q in range(3, 2 * layers + 2, 2)]
        check(carried["delta"] == sum(same), f"case {case}: increments when the cohort stays")
    check(increments["full"] == 0, "schedule full carries nothing")
    check(0 < increments["delta"] < layers * cases, "some increments, some full sums")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("train_f64")
    parser.add_argument("digits", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=14)
    args = parser.parse_args()
    rounding_off(args.train_f64, args.seed, args.cases)
    grid_on_digits(args.train_f64, args.digits, args.seed)
    afl_is_ridge(args.train_f64, args.digits, args.seed)
    both_schedules(args.train_f64, args.seed, args.cases)
    print(f"\n{failures} failures; replay with --seed {args.seed} --cases {args.cases}")
    sys.exit(failures > 0)
