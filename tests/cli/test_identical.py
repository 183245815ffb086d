#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One data set, one seed, one model file: whoever holds the rows, on however many threads.

  test_identical.py DEEPAFL DIGITS [--data digits|cifar10|cifar100] [--width D] [--hidden DF]
                    [--layers T]

The CIFAR features are looked for in $DEEPAFL_DATA/data.
"""
import argparse
import os
import sys
import tempfile
from pathlib import Path

from common import Program, check, finish, np, rows, sha256, tensors

FEDERATIONS = (
    ("--clients", 1, "--threads", 1),
    ("--clients", 1, "--threads", 2),
    ("--clients", 10, "--partition", "dirichlet:0.1", "--threads", 1),
    ("--clients", 10, "--partition", "dirichlet:0.1", "--threads", 2),
    ("--clients", 100, "--partition", "shards:5", "--threads", 2),
    ("--clients", 1000, "--partition", "iid", "--threads", 2),
)
MORE_FEDERATIONS = (
    ("--clients", 2),
    ("--clients", 3, "--partition", "dirichlet:0.01", "--shuffle", 5),
    ("--clients", 17, "--shuffle", 1),
    ("--clients", 17, "--shuffle", 2, "--threads", 7),
    ("--clients", 100, "--partition", "dirichlet:100", "--shuffle", 3, "--threads", 1),
    ("--clients", 1437, "--threads", 2),
)


def one_hash(deepafl, base, federations, tmp, what):
    """Every federation writes the same file; the first one's is kept as tmp/WHAT."""
    kept = tmp / what
    for i, federation in enumerate(federations):
        path = kept if i == 0 else tmp / "other.safetensors"
        deepafl.json("simulate", *base, *federation, "--model", path)
        print(f"{sha256(path)[:16]}  {what}  {' '.join(map(str, federation))}", flush=True)
        check(sha256(path) == sha256(kept), f"{what}: another model with {federation}")
    return kept


def row_order(deepafl, base, digits, tmp, kept):
    """The order of the rows in the file is a partition too."""
    order = np.random.default_rng(4).permutation(1437)
    for part in ("features", "labels"):
        np.save(tmp / f"train_{part}.npy", np.load(digits / f"train_{part}.npy")[order])
    deepafl.json("simulate", *rows(tmp), *base[4:], "--clients", 3, "--model", tmp / "p")
    check(sha256(tmp / "p") == sha256(kept), "another model from the same rows in another order")


def what_must_matter(deepafl, base, tmp, kept):
    for change in (("--seed", 1), ("--lambda", 1.0001), ("--gamma", 0.02), ("--grid", 13),
                   ("--activation", "tanh"), ("--schedule", "full"), ("--label-noise", 0.01)):
        deepafl.json("simulate", *base, *change, "--model", tmp / "other")
        check(tensors(tmp / "other") != tensors(kept), f"{change} makes no difference")


def model_in_use(deepafl, base, digits, tmp, kept):
    """evaluate, predict and inspect say what simulate said, exactly."""
    said = deepafl.json("simulate", *base, *rows(digits, kind="test", prefix="test-"),
                        "--model", tmp / "again")
    check(sha256(tmp / "again") == sha256(kept), "test rows change the model")
    check(deepafl.json("inspect", kept)["params"] == said["params"], "inspect: other parameters")
    for kind in ("train", "test"):
        layers = deepafl.json("evaluate", "--model", kept, *rows(digits, kind=kind))["layers"]
        labels = np.load(digits / f"{kind}_labels.npy")
        for t, layer in enumerate(said["layers"]):
            want = layer[f"{kind}_accuracy"]
            out, scores = tmp / "labels.npy", tmp / "scores.npy"
            features = rows(digits, kind=kind)[:2]
            deepafl.json("predict", "--model", kept, *features, "--layer", t, "--out", out)
            deepafl.json("predict", "--model", kept, *features, "--layer", t, "--out", scores,
                         "--scores", "--threads", 1)
            check(layers[t]["accuracy"] == want, f"evaluate on {kind} rows, layer {t}")
            check((np.load(out) == labels).mean() == want, f"predict on {kind} rows, layer {t}")
            check((np.load(scores).argmax(1) == np.load(out)).all(), f"scores, layer {t}")
    check(layers[-1]["accuracy"] > 0.95, "the digits are not learnt")
    deepafl.json("predict", "--model", kept, *features, "--out", tmp / "last.npy")
    check((tmp / "last.npy").read_bytes() == out.read_bytes(), "the last layer is not the default")
    some = np.random.default_rng(5).permutation(len(labels))[:101]
    np.save(tmp / "some.npy", np.load(digits / "test_features.npy")[some])
    deepafl.json("predict", "--model", kept, "--features", tmp / "some.npy", "--scores", "--out", out)
    check((np.load(out) == np.load(scores)[some]).all(), "a row's scores depend on the other rows")


def given_projections(deepafl, base, digits, tmp, kept):
    directory = tmp / "projections"
    directory.mkdir()
    given = tmp / "given"
    deepafl.json("simulate", *base, "--export-projections", directory, "--model", tmp / "again")
    check(sha256(tmp / "again") == sha256(kept), "exporting projections changes the model")
    deepafl.json("simulate", *base, "--projections", directory, "--model", given, "--clients", 7)
    check(deepafl.json("inspect", given)["params"]["projections"] == "stored", "stored projections")
    a, b = tensors(kept), tensors(given)
    check(all(b.get(name) == value for name, value in a.items()), "given projections: another W")
    check(len(b) > len(a), "given projections are not in the model file")
    for path in (kept, given):
        deepafl.json("predict", "--model", path, *rows(digits, kind="test")[:2], "--scores",
                     "--out", tmp / f"{path.name}.npy")
    check((tmp / f"{kept.name}.npy").read_bytes() == (tmp / f"{given.name}.npy").read_bytes(),
          "given projections: other predictions")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("deepafl", type=Program)
    parser.add_argument("digits", type=Path)
    parser.add_argument("--data", default="digits", choices=("digits", "cifar10", "cifar100"))
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--layers", type=int, default=3)
    args = parser.parse_args()
    sizes = ["--width", args.width, "--hidden", args.hidden, "--layers", args.layers]
    with tempfile.TemporaryDirectory() as name:
        tmp = Path(name)
        if args.data == "digits":
            base = rows(args.digits) + sizes
            kept = one_hash(args.deepafl, base, FEDERATIONS + MORE_FEDERATIONS, tmp, "delta")
            one_hash(args.deepafl, base + ["--schedule", "full"], FEDERATIONS, tmp, "full")
            # Sums beyond 2^53: many blocks of few rows.
            fine = ["--grid", 24, "--rows-max", 1437]
            one_hash(args.deepafl, base + fine, FEDERATIONS, tmp, "grid-24")
            one_hash(args.deepafl, base + ["--method", "afl"], FEDERATIONS, tmp, "afl")
            row_order(args.deepafl, base, args.digits, tmp, kept)
            what_must_matter(args.deepafl, base, tmp, kept)
            model_in_use(args.deepafl, base, args.digits, tmp, kept)
            given_projections(args.deepafl, base, args.digits, tmp, kept)
        else:
            data = Path(os.environ.get("DEEPAFL_DATA", ""), "data")
            if not (data / f"{args.data}_train_features.npy").exists():
                print(f"skipped: DEEPAFL_DATA does not lead to data/{args.data}_train_features.npy")
                sys.exit(77)
            one_hash(args.deepafl, rows(data, f"{args.data}_") + sizes, FEDERATIONS, tmp, args.data)
    finish()
