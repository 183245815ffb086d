#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""simulate --secure-agg masks and seal: the same model as without masks, a run that survives dropouts, and what the
options refuse.

  test_secure.py DEEPAFL DIGITS
"""
import sys
import tempfile
from pathlib import Path

from common import Program, check, finish, rows, sha256

FEDERATIONS = (
    ("--clients", 5),
    ("--clients", 5, "--partition", "dirichlet:0.1", "--cell-size", 1),
    ("--clients", 12, "--partition", "shards:2", "--cell-size", 4, "--colluders", 2, "--threads", 1),
    ("--clients", 12, "--partition", "dirichlet:0.1", "--schedule", "full"),
    ("--clients", 100, "--partition", "shards:5", "--cell-size", 8),
)


def identical(deepafl, base, tmp):
    for federation in FEDERATIONS:
        plain = federation[:2] + (("--schedule", "full") if "full" in federation else ())
        deepafl.json("simulate", *base, *plain, "--model", tmp / "plain")
        masked = deepafl.json("simulate", *base, *federation, "--secure-agg", "masks", "--model", tmp / "masked")
        print(sha256(tmp / "masked")[:16], *federation, flush=True)
        check(sha256(tmp / "plain") == sha256(tmp / "masked"), f"masks change the model with {federation}")
        check(masked["secure_agg"]["failed_slots"] == 0, f"slots fail with {federation}")
        check(masked["secure_agg"]["slots"] == 9, f"not one slot a question with {federation}")


def encrypted(deepafl, base, tmp):
    """Whether this build can encrypt; if so, that it changes nothing but the uploads."""
    first = deepafl.run("simulate", *base, "--clients", 5, "--secure-agg", "seal", "--model", tmp / "sealed")
    if first.returncode == 2:
        check("SEAL" in first.stderr and first.stderr.count("\n") == 1 and not (tmp / "sealed").exists(),
              f"without SEAL: {first.stderr!r}")
        print("SKIPPED: --secure-agg seal, this build has no SEAL:", first.stderr, end="", flush=True)
        return
    for federation in FEDERATIONS[:3]:
        deepafl.json("simulate", *base, *federation[:2], "--model", tmp / "plain")
        sealed = deepafl.json("simulate", *base, *federation, "--secure-agg", "seal", "--model", tmp / "sealed")
        check(sha256(tmp / "plain") == sha256(tmp / "sealed"), f"encryption changes the model with {federation}")
        check(sealed["secure_agg"]["mode"] == "seal" and sealed["secure_agg"]["failed_slots"] == 0,
              f"{federation}: {sealed['secure_agg']}")
    options = ("--clients", 10, "--drop", 0.1, "--cell-size", 1)
    masked = deepafl.json("simulate", *base, *options, "--secure-agg", "masks", "--model", tmp / "masked")
    sealed = deepafl.json("simulate", *base, *options, "--secure-agg", "seal", "--model", tmp / "sealed")
    check(sealed["secure_agg"]["dropouts"] > 0 and
          sha256(tmp / "masked") == sha256(tmp / "sealed"), "encryption changes who drops out")
    check(sealed["secure_agg"]["slots"] == masked["secure_agg"]["slots"], "encryption costs slots")


def participation(deepafl, base, tmp):
    """With cells of one the draw is that of the plain federation."""
    options = ("--clients", 10, "--participation", "0.5:inconsistent")
    deepafl.json("simulate", *base, *options, "--model", tmp / "plain")
    deepafl.json("simulate", *base, *options, "--secure-agg", "masks", "--cell-size", 1, "--model", tmp / "masked")
    check(sha256(tmp / "plain") == sha256(tmp / "masked"), "masks change who participates")


def dropouts(deepafl, base):
    for drop, more in ((0.05, ()), (0.2, ("--cell-size", 1)), (0.02, ("--drop-for-good", 0.2, "--cell-size", 1))):
        options = ("--clients", 20, "--secure-agg", "masks", "--drop", drop, *more)
        first = deepafl.json("simulate", *base, *options)
        again = deepafl.json("simulate", *base, *options)
        s = first["secure_agg"]
        print(options, s, flush=True)
        check(s["dropouts"] > 0, f"nobody dropped out with {options}")
        check(first["layers"][-1]["test_accuracy"] > 0.9, f"nothing learned with {options}")
        check(s["slots"] == again["secure_agg"]["slots"] and
              [r["test_accuracy"] for r in first["layers"]] == [r["test_accuracy"] for r in again["layers"]],
              f"another run with the same seed and {options}")


def refusals(deepafl, base):
    for options, words in (
            (("--secure-agg", "perhaps"), ["--secure-agg", "perhaps"]),
            (("--cell-size", 4), ["--cell-size", "--secure-agg"]),
            (("--drop", 0.1), ["--drop", "--secure-agg"]),
            (("--secure-agg", "masks", "--clients", 2), ["--clients", "3 to 256"]),
            (("--secure-agg", "masks", "--clients", 257), ["--clients", "3 to 256"]),
            (("--secure-agg", "masks", "--cell-size", 2), ["--cell-size", "3"]),
            (("--secure-agg", "masks", "--cell-size", 0), ["--cell-size"]),
            (("--secure-agg", "masks", "--cell-size", 11), ["--cell-size", "10 clients"]),
            (("--secure-agg", "masks", "--colluders", 9), ["--colluders"]),
            (("--secure-agg", "masks", "--min-cohort", 2), ["--min-cohort", "3"]),
            (("--secure-agg", "masks", "--min-cohort", 11), ["--min-cohort", "10"]),
            (("--secure-agg", "masks", "--drop", 1.5), ["--drop"]),
            (("--secure-agg", "masks", "--drop", -0.1), ["--drop"]),
            (("--secure-agg", "masks", "--drop-for-good", 2), ["--drop-for-good"]),
            (("--secure-agg", "masks", "--projections", "nowhere"), ["--projections"])):
        done = deepafl.run("simulate", *base, *(("--clients", 10) if "--clients" not in options else ()), *options)
        check(done.returncode == 2 and all(w in done.stderr for w in words) and done.stderr.count("\n") == 1,
              f"{options}: exit {done.returncode}, {done.stderr!r}")
    done = deepafl.run("simulate", *base, "--clients", 10, "--secure-agg", "masks", "--drop", 1)
    check(done.returncode == 1 and "E_" in done.stderr, f"all drop out: exit {done.returncode}, {done.stderr!r}")


def main():
    deepafl, digits = Program(sys.argv[1]), Path(sys.argv[2])
    base = [*rows(digits), *rows(digits, kind="test", prefix="test-"),
            "--width", 48, "--hidden", 48, "--layers", 3, "--quiet"]
    with tempfile.TemporaryDirectory() as tmp:
        identical(deepafl, base, Path(tmp))
        encrypted(deepafl, base, Path(tmp))
        participation(deepafl, base, Path(tmp))
        dropouts(deepafl, base)
        refusals(deepafl, base)
    finish()


if __name__ == "__main__":
    main()
