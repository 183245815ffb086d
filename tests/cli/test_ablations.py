#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every variant of the learner runs on the digits and behaves as theory says.

  test_ablations.py DEEPAFL DIGITS
"""
import math
import sys
import tempfile
from pathlib import Path

from common import Program, check, finish, np, rows, sha256

deepafl = Program(sys.argv[1])
digits = Path(sys.argv[2])
LAYERS = 4
N = 1437
BASE = rows(digits) + rows(digits, kind="test", prefix="test-")
SIZES = ["--width", 128, "--hidden", 128, "--layers", LAYERS]


def simulate(what, *more, falls=False, sizes=SIZES):
    """Run; with `falls`, Theorem 3 holds and the regularised risk must not rise. The grid moves
    every operand by up to 2^-13, hence a risk of N rows by little more than N 2^-13."""
    done = deepafl.json("simulate", *BASE, *sizes, *more)
    layers = done["layers"]
    risks = [layer.get("regularised_risk", math.nan) for layer in layers]
    print(f"{what:28} train {layers[-1]['train_accuracy']:.4f}  test "
          f"{layers[-1]['test_accuracy']:.4f}  regularised risk "
          f"{' '.join(f'{r:.2f}' for r in risks)}  {layers[-1]['gram']}", flush=True)
    check(all(math.isfinite(layer[k]) for layer in layers for k in ("train_accuracy", "seconds")),
          f"{what}: not finite")
    if falls:
        check(all(b <= a + N / 2**13 for a, b in zip(risks, risks[1:])), f"{what}: the risk rises")
        check(risks[-1] < risks[0], f"{what}: the risk does not fall")
    return done


def grams(done):
    return [layer["gram"] for layer in done["layers"]]


def ablations():
    whole = simulate("nothing left out", "--ablate", "nothing", falls=True)
    check(grams(whole) == ["full"] + LAYERS * ["increment"], "increments when nobody is missing")
    scores = {}
    for name in ("skip", "projection", "activation", "omega"):
        # Theorem 3 asks nothing of F, but a skip connection and the best Omega.
        done = simulate(f"without {name}", "--ablate", name,
                        falls=name in ("projection", "activation"))
        check(all(math.isfinite(layer["regularised_risk"]) for layer in done["layers"]),
              f"without {name}: the risk is not known")
        check(done["params"]["ablate"] == name, f"without {name}: the parameters say otherwise")
        increments = name in ("projection", "activation")
        check(grams(done)[1:] == LAYERS * ["increment" if increments else "full"],
              f"without {name}: Gram matrices")
        scores[name] = done["layers"][-1]["risk"]
        check(done["layers"][0]["risk"] == whole["layers"][0]["risk"], f"without {name}: layer 0")
        check(done["layers"][-1]["risk"] > whole["layers"][-1]["risk"],
              f"without {name}: as good as the whole")
    check(len(set(scores.values())) == 4, "two ablations are the same")
    with tempfile.TemporaryDirectory() as tmp:
        for name in ("skip", "projection", "activation", "omega"):
            model = Path(tmp, name)
            hashes = set()
            for k in (1, 7):
                done = deepafl.json("simulate", *BASE, *SIZES, "--ablate", name, "--clients", k,
                                    "--model", model)
                hashes.add(sha256(model))
            said = [layer["test_accuracy"] for layer in done["layers"]]
            tried = deepafl.json("evaluate", "--model", model, *rows(digits, kind="test"))
            check(len(hashes) == 1, f"without {name}: the model depends on the partition")
            check([t["accuracy"] for t in tried["layers"]] == said, f"without {name}: evaluate")


def activations():
    for name in ("gelu", "relu", "leakyrelu", "tanh", "hardswish", "softshrink", "none"):
        done = simulate(f"activation {name}", "--activation", name, falls=True)
        check(done["params"]["activation"] == name, f"{name}: the parameters say otherwise")
    for schedule in ("delta", "full"):
        simulate(f"schedule {schedule}", "--schedule", schedule, falls=True)
    simulate("hidden wider", falls=True, sizes=["--width", 64, "--hidden", 200, "--layers", 3])
    simulate("hidden narrower", falls=True, sizes=["--width", 200, "--hidden", 64, "--layers", 3])


def participation():
    """With clients missing no increment fits, and nobody knows the rows in a sum."""
    with tempfile.TemporaryDirectory() as tmp:
        model = Path(tmp, "model")

        def share(eta, **more):
            done = simulate(f"participation {eta}", "--participation", eta, "--clients", 20,
                            "--model", model, **more)
            return done, sha256(model)

        hashes = {share("1", falls=True)[1]}
        for eta in ("0.7:consistent", "0.7:inconsistent"):
            done, found = share(eta)
            layers = done["layers"]
            check(grams(done) == (LAYERS + 1) * ["full"], f"{eta}: an increment over another cohort")
            check(all(layer["cohort"] == 14 for layer in layers), f"{eta}: 14 of 20 clients")
            check(not any("risk" in layer for layer in layers), f"{eta}: a risk of unknown rows")
            check(layers[-1]["test_accuracy"] > 0.9, f"{eta}: the digits are not learnt")
            check(share(eta)[1] == found, f"{eta}: another draw the second time")
            hashes.add(found)
        check(share("0.7")[1] in hashes, "0.7 is not 0.7:consistent")
        check(len(hashes) == 3, "two kinds of participation are the same")
        check(grams(simulate("participation 0.99", "--participation", 0.99))[1] == "increment",
              "0.99 of ten clients are not all ten")


def label_noise():
    clean = simulate("label noise 0", "--label-noise", 0, falls=True)
    before = clean["layers"][-1]
    for tau in (0.1, 0.3):
        done = simulate(f"label noise {tau}", "--label-noise", tau, falls=True)
        layer = done["layers"][-1]
        check(layer["train_accuracy"] < before["train_accuracy"], f"noise {tau}: fits as well")
        check(layer["risk"] > before["risk"], f"noise {tau}: no larger risk")
        # The classifier averages the noise out: it is better than its labels.
        check(layer["test_accuracy"] > 1 - tau, f"noise {tau}: test accuracy")
        before = layer


def afl():
    done = simulate("afl", "--method", "afl", sizes=[])
    check(len(done["layers"]) == 1 and done["params"]["width"] == 64, "afl: one layer of 64")
    x, y = np.load(digits / "train_features.npy").astype(float), np.load(digits / "train_labels.npy")
    w = np.linalg.solve(x.T @ x + np.eye(64), x.T @ np.eye(10)[y])  # on the grid as it is
    right = ((np.load(digits / "test_features.npy") @ w).argmax(1) ==
             np.load(digits / "test_labels.npy")).mean()
    check(abs(done["layers"][0]["test_accuracy"] - right) < 1e-12, "afl: not ridge regression")
    risk = np.square(np.eye(10)[y] - x @ w).sum()
    check(abs(done["layers"][0]["risk"] - risk) < 1e-9 * N, "afl: another risk")


ablations()
activations()
participation()
label_noise()
afl()
finish()
