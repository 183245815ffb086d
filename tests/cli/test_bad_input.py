#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Whatever is wrong with a file or an option: exit code 2, one line that says which and why,
nothing on stdout, nothing written.   test_bad_input.py DEEPAFL DIGITS"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from common import Program, check, finish, np, rows

deepafl = Program(sys.argv[1])
digits = Path(sys.argv[2])
SMALL = ["--width", 16, "--hidden", 16, "--layers", 2]


def snapshot(directory):
    return sorted((str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in directory.rglob("*"))


def refused(what, args, *needles):
    """The reason must hold every needle, a string or a pattern."""
    before = snapshot(tmp)
    done = deepafl.run(*args)
    lines = done.stderr.splitlines()
    print(f"{what}: {done.stderr.strip() or '(silent)'}", flush=True)
    check(done.returncode == 2, f"{what}: exit code {done.returncode}")
    check(1 <= len(lines) <= 2 and lines[0].startswith("deepafl") and
          all(line.startswith("Try 'deepafl") for line in lines[1:]), f"{what}: not one reason line")
    for needle in needles:
        check(lines and re.search(needle, lines[0]), f"{what}: no '{needle}' in the reason")
    check(done.stdout == "", f"{what}: something on stdout")
    check(snapshot(tmp) == before, f"{what}: something was written")


def save(name, array):
    np.save(tmp / name, array)
    return tmp / name


def simulate(features=None, labels=None, *more):
    return ["simulate", "--features", features or good_x, "--labels", labels or good_y,
            *([] if "--width" in more else SMALL), *more, "--model", tmp / "out"]


def use(word, model, features=None):
    """evaluate or predict with this model."""
    more = ["--labels", good_y] if word == "evaluate" else ["--out", tmp / "out"]
    return [word, "--model", model, "--features", features or good_x, *more]


def arrays():
    """Files that are no features or no labels."""
    raw = good_x.read_bytes()
    (tmp / "short.npy").write_bytes(raw[:-1])
    (tmp / "head.npy").write_bytes(raw[:40])
    (tmp / "empty.npy").write_bytes(b"")
    (tmp / "long.npy").write_bytes(raw + b"\0")
    (tmp / "text.npy").write_text("1,2,3\n4,5,6\n")
    for name, reason in (("short.npy", "cut short"), ("head.npy", "cut short|header"),
                         ("empty.npy", "cut short|not a|empty"), ("long.npy", "too long"),
                         ("text.npy", "not a .*npy")):
        refused(name, simulate(tmp / name), name, reason)
        refused(name + " as labels", simulate(None, tmp / name), name, reason)
    refused("Fortran order", simulate(save("fortran.npy", np.asfortranarray(x))), "fortran.npy",
            "Fortran")
    for dtype in ("complex128", "bool", "object", ">f4", ">f8", "U3", "longdouble"):
        name = f"dtype-{dtype.strip('>')}.npy"
        refused(f"dtype {dtype}", simulate(save(name, x.astype(dtype))), name, "dtype")
        refused(f"labels of dtype {dtype}", simulate(None, save(name, y.astype(dtype))), name,
                "dtype")
    refused("float labels", simulate(None, save("float.npy", y.astype(float))), "float.npy",
            "integers", "float64")
    refused("one-hot labels", simulate(None, save("onehot.npy", np.eye(10, dtype=int)[y])),
            "onehot.npy", "10 columns")
    refused("one dimension", simulate(save("flat.npy", x[:, 0])), "flat.npy", "two dimensions")
    refused("three dimensions", simulate(save("cube.npy", x.reshape(len(x), 8, 8))), "cube.npy",
            "dimension")
    refused("no rows", simulate(save("none.npy", x[:0]), save("none-y.npy", y[:0])), "none.npy")
    refused("no columns", simulate(save("thin.npy", x[:, :0])), "thin.npy")


def values():
    for bad, where in ((np.nan, 0), (np.nan, 299), (np.inf, 7), (-np.inf, 123)):
        wrong = x.copy()
        wrong[where, 5] = bad
        for k in (1, 10):
            refused(f"{bad} in row {where}, {k} clients",
                    simulate(save("nan.npy", wrong), None, "--clients", k), "nan.npy",
                    rf"row {where}\b", "not finite")
        refused(f"{bad} in test row {where}",
                simulate(None, None, "--test-features", tmp / "nan.npy", "--test-labels", good_y),
                "nan.npy", rf"row {where}\b", "not finite")
    wrong = x.copy()
    wrong[41, 3] = -17.5
    for more in ((), ("--magnitude", 17)):
        refused("feature beyond q", simulate(save("big.npy", wrong), None, "--method", "afl", *more),
                "big.npy", r"row 41\b", r"-17\.5\b", "magnitude 1[67]")
    label = y.astype(int)
    label[17] = -1
    refused("negative label", simulate(None, save("minus.npy", label)), "minus.npy", r"label -1\b",
            r"row 17\b")
    label[17] = 10
    refused("label out of range", simulate(None, save("ten.npy", label), "--classes", 10),
            "ten.npy", r"label 10\b", r"row 17\b", r"0\.\.9")
    refused("test label out of range",
            simulate(None, None, "--test-features", good_x, "--test-labels", tmp / "ten.npy"),
            "ten.npy", r"label 10\b", r"row 17\b")
    label[17] = 2**62
    refused("label beyond all", simulate(None, save("huge.npy", label)), "huge.npy", r"row 17\b")
    refused("one class only", simulate(None, save("zero.npy", 0 * y)), "zero.npy", "one label")
    refused("exported only when all is well",
            simulate(tmp / "nan.npy", None, "--export-projections", tmp), "nan.npy", "not finite")
    everywhere = save("nans.npy", x * np.nan)
    refused("all NaN, many clients", simulate(everywhere, None, "--clients", 50), r"row \d+\b")
    said = {deepafl.run(*simulate(everywhere, None, "--clients", 50)).stderr for _ in range(5)}
    check(len(said) == 1, "all NaN: another row is named whenever another thread is first")
    refused("fewer labels", simulate(None, save("few.npy", y[:-1])), "few.npy", r"\b299\b",
            r"\b300\b")
    refused("test columns", simulate(None, None, "--test-features", save("narrow.npy", x[:, :9]),
                                     "--test-labels", good_y), "narrow.npy", r"\b9\b", r"\b64\b")


def options():
    for what, more, needles in (
            ("unknown option", ["--widht", 5], ["--widht", "unknown"]),
            ("unknown short option", ["-w", 5], ["-w", "unknown"]),
            ("option twice", ["--seed", 1, "--seed", 1], ["--seed", "twice"]),
            ("flag with a value", ["--json=yes"], ["--json", "no value"]),
            ("stray word", ["extra"], ["extra"]),
            ("not a number", ["--clients", "ten"], ["--clients", "ten"]),
            ("negative count", ["--clients", -3], ["--clients", "-3"]),
            ("fraction of a client", ["--clients", 1.5], ["--clients", "1.5"]),
            ("no clients", ["--clients", 0], ["--clients", r"\b0\b"]),
            ("too many clients", ["--clients", 301], ["--clients", "301", "300"]),
            ("number too long", ["--clients", 10**30], ["--clients"]),
            ("lambda", ["--lambda", "nan"], ["lambda", "nan"]),
            ("negative lambda", ["--lambda", -1], ["lambda", "-1"]),
            ("negative gamma", ["--gamma", "-0.5"], ["gamma", "-0.5"]),
            ("bad seed", ["--seed", "0xz"], ["seed", "0xz"]),
            ("seed of 63 digits", ["--seed", 63 * "a"], ["seed"]),
            ("seed too large", ["--seed", 2**64], ["seed"]),
            ("partition", ["--partition", "even"], ["--partition", "even"]),
            ("dirichlet 0", ["--partition", "dirichlet:0"], ["--partition", "dirichlet:0"]),
            ("dirichlet nan", ["--partition", "dirichlet:nan"], ["--partition"]),
            ("dirichlet without", ["--partition", "dirichlet:"], ["--partition"]),
            ("half a shard", ["--partition", "shards:0.5"], ["--partition", "shards:0.5"]),
            ("too many shards", ["--partition", "shards:31"], ["--partition", "31", "300"]),
            ("participation 0", ["--participation", 0], ["--participation", "'0'"]),
            ("participation 1.1", ["--participation", 1.1], ["--participation", "1.1"]),
            ("participation nan", ["--participation", "nan"], ["--participation", "nan"]),
            ("participation mode", ["--participation", "0.5:often"], ["--participation", "often"]),
            ("label noise", ["--label-noise", 1.5], ["--label-noise", "1.5"]),
            ("shuffle", ["--shuffle", "x"], ["--shuffle", "x"]),
            ("method", ["--method", "sgd"], ["method", "sgd", "deepafl, afl"]),
            ("activation", ["--activation", "swish"], ["activation", "swish", "gelu"]),
            ("schedule", ["--schedule", "lazy"], ["schedule", "lazy", "delta"]),
            ("ablation", ["--ablate", "all"], ["ablat", "all", "skip"]),
            ("ablation of unequal widths", ["--ablate", "omega", "--width", 8, "--hidden", 16],
             ["omega", r"\b8\b", r"\b16\b"]),
            ("no width", ["--width", 0], ["width", r"\b0\b"]),
            ("width too large", ["--width", 10**6], ["width", "1000000"]),
            ("too many layers", ["--width", 8, "--layers", 5000], ["layers", "5000"]),
            ("fewer classes than labels", ["--classes", 9], ["y.npy", r"label 9\b", r"0\.\.8"]),
            ("threads", ["--threads", 1000], ["--threads", "1000"]),
            ("no grid", ["--grid", 0], ["grid", r"\b0\b"]),
            ("grid too fine", ["--grid", 25], ["grid", r"\b25\b"]),
            ("contract too wide", ["--grid", 24, "--magnitude", 8], ["grid", r"\b24\b", r"\b8\b"]),
            ("rows too many for the ring", ["--grid", 24, "--rows-max", 2**21], ["grid", "2097152"]),
            ("too many rows", ["--rows-max", 299], ["x.npy", "300", "299", "--rows-max"]),
            ("test rows without labels", ["--test-features", good_x], ["--test-labels"]),
            ("projections of afl", ["--method", "afl", "--projections", tmp], ["--projections", "afl"]),
            ("projections missing", ["--projections", tmp / "nowhere"], ["nowhere/A.npy"])):
        refused(what, simulate(None, None, *more), *needles)
    for name in ("grid", "magnitude"):
        refused(f"{name} far too large", simulate(None, None, f"--{name}", 2000000), f"--{name}", "2000000")
    for name in ("magnitude", "classes", "clients", "width"):
        refused(f"{name} 0", simulate(None, None, f"--{name}", 0), name, r"\b0\b")
    refused("no rows at most", simulate(None, None, "--rows-max", 0), "n_max|rows-max", r"\b0\b")
    refused("shuffle too large", simulate(None, None, "--shuffle", 2**32), "--shuffle")
    refused("shuffle beyond all", simulate(None, None, "--shuffle", 2**70), "--shuffle")
    refused("projections that are left out",
            simulate(None, None, "--ablate", "projection", "--projections", tmp), "--projections")
    refused("projections of afl to write",
            simulate(None, None, "--method", "afl", "--export-projections", tmp), "afl")
    refused("missing value", ["simulate", "--features", good_x, "--labels"], "--labels", "value")
    refused("no features", ["simulate", "--labels", good_y], "--features")
    refused("no labels", ["simulate", "--features", good_x], "--labels")
    refused("unknown command", ["simulat"], "unknown command", "simulat")
    np.save(tmp / "A.npy", np.zeros((64, 15)))
    refused("projections of another size", simulate(None, None, "--projections", tmp), "A.npy",
            "64 x 15", "64 x 16")


def paths():
    refused("missing features", simulate(tmp / "absent.npy"), "absent.npy", "No such file")
    refused("missing labels", simulate(None, tmp / "absent.npy"), "absent.npy", "No such file")
    refused("directory as features", simulate(tmp), str(tmp), "directory")
    refused("device as features", simulate("/dev/zero"), "/dev/zero", "device")
    for out, needles in ((tmp / "no" / "where", ["no/where", "No such file"]),
                         (tmp, [str(tmp), "directory"]), ("", ["empty"]),
                         (good_x / "model", ["x.npy/model", "Not a directory"])):
        refused(f"model to '{out}'", simulate()[:-1] + [out], *needles)
        refused(f"labels to '{out}'", use("predict", model)[:-1] + [out], *needles)
    for file in (good_x, good_y):
        refused(f"model over {file.name}", simulate()[:-1] + [file], "--model", file.name, "also read")
    for file in (good_x, model):
        refused(f"labels over {file.name}", use("predict", model)[:-1] + [file], "--out", file.name,
                "also read")
    refused("path that JSON cannot show", simulate()[:-1] + [os.fsdecode(b"/tmp/\xff"), "--json"], "--model", "UTF-8")
    for args in (simulate(), use("evaluate", model), use("predict", model), ["inspect", model]):
        with open("/dev/full", "w") as full:
            code = subprocess.run([deepafl.exe, *map(str, args)], stdout=full, stderr=subprocess.DEVNULL).returncode
        check(code == 1, f"{args[0]} on a full disk: exit code {code}")
    refused("projections to nowhere",
            simulate(None, None, "--export-projections", tmp / "no" / "where"), "no/where")


def models():
    raw = model.read_bytes()
    text = raw.replace(b'"width":"16"', b'"width":"17"')
    assert text != raw
    for name, data, reason in (("cut", raw[:-8], "cut short"), ("cut-header", raw[:100], "cut short"),
                               ("cut-length", raw[:5], "cut short"), ("no-bytes", b"", "cut short"),
                               ("noise", bytes(range(256)) * 9, "not a safetensors"),
                               ("plain", b"\x02" + bytes(7) + b"{}", "not a deepafl model"),
                               ("tail", raw + b"\0", "too long"), ("wider", text, "17")):
        (tmp / name).write_bytes(data)
        for word in ("evaluate", "predict"):
            refused(f"{word} with model {name}", use(word, tmp / name), name, reason)
        refused(f"inspect {name}", ["inspect", tmp / name], name, reason)
    refused("inspect nothing", ["inspect"], "MODEL")
    refused("inspect two", ["inspect", model, model], "too many")
    narrow = save("narrow.npy", x[:, :63])
    wrong = x.copy()
    wrong[9, 9] = np.nan
    bad = save("nan.npy", wrong)
    for word in ("evaluate", "predict"):
        refused(f"{word}: narrow", use(word, model, narrow), "narrow.npy", r"\b63\b", r"\b64\b")
        refused(f"{word}: NaN", use(word, model, bad), "nan.npy", r"row 9\b", "not finite")
        refused(f"{word}: missing model", use(word, tmp / "absent"), "absent", "No such file")
        refused(f"{word}: directory", use(word, tmp), str(tmp), "directory")
        refused(f"{word}: .npy as model", use(word, good_x), "x.npy")
        refused(f"{word}: option", use(word, model) + ["--lambda", 1], "--lambda", "unknown")
        refused(f"{word}: nothing", [word], "--(model|labels|out)")
    refused("evaluate: fewer labels", ["evaluate", "--model", model, "--features", good_x,
                                       "--labels", save("few.npy", y[:-1])], "few.npy", "299")
    refused("evaluate: label", ["evaluate", "--model", model, "--features", good_x, "--labels",
                                save("ten.npy", np.where(y == 9, 10, y))], "ten.npy", r"label 10\b")
    for layer in (3, -1, "x", "1x", "", 10**30):
        refused(f"predict: layer {layer}", use("predict", model) + ["--layer", layer], "--layer",
                f"'{layer}'", r"0\.\.2")


def helps():
    """--help knows every option the program takes, and every result its keys."""
    common = {"threads", "json", "quiet", "model", "features"}
    wanted = {
        "simulate": common | set("""labels test-features test-labels classes clients partition
            participation label-noise shuffle method layers width hidden lambda gamma activation
            seed schedule ablate projections export-projections grid magnitude rows-max
            secure-agg cell-size colluders min-cohort drop drop-for-good""".split()),
        "evaluate": common | {"labels"},
        "predict": common | {"out", "scores", "layer"},
        "inspect": {"json"},
    }
    top = deepafl.run("--help")
    check(top.returncode == 0 and all(word in top.stdout for word in wanted), "deepafl --help")
    check(deepafl.run("--version").stdout.startswith("deepafl "), "deepafl --version")
    check(deepafl.run().returncode == 2, "deepafl alone")
    for word, names in wanted.items():
        for flag in ("--help", "-h"):
            done = deepafl.run(word, flag)
            shown = set(re.findall(r"^  --([a-z-]+)", done.stdout, re.M))
            check(done.returncode == 0 and done.stderr == "", f"{word} {flag}: exit code")
            check(shown == names, f"{word} {flag}: {sorted(shown ^ names)} shown or wanted alone")
    done = deepafl.json(*simulate(None, None, "--test-features", good_x, "--test-labels", good_y))
    check({"params", "clients", "partition", "rows", "layers", "seconds", "upload_bytes",
           "download_bytes", "peak_rss_mb", "model"} <= set(done), "simulate --json: keys")
    keys = {"layer", "train_accuracy", "test_accuracy", "risk", "regularised_risk", "seconds",
            "upload_bytes", "download_bytes", "gram", "cohort"}
    check(len(done["layers"]) == 3 and all(keys <= set(layer) for layer in done["layers"]),
          "simulate --json: keys of the layers")
    check([layer["layer"] for layer in done["layers"]] == [0, 1, 2], "simulate --json: layers")
    total = sum(layer["upload_bytes"] for layer in done["layers"])
    check(total == done["upload_bytes"], "simulate --json: the layers' bytes are not all")
    check(set(deepafl.json("evaluate", "--model", model, "--features", good_x, "--labels", good_y)
              ["layers"][0]) == {"layer", "correct", "accuracy"}, "evaluate --json: keys")
    check(set(deepafl.json(*use("predict", model))) == {"out", "kind", "rows", "layer"},
          "predict --json: keys")
    check(set(deepafl.json("inspect", model)) == {"model", "params", "layers"},
          "inspect --json: keys")


with tempfile.TemporaryDirectory() as directory:
    tmp = Path(directory)
    x = np.load(digits / "train_features.npy")[:300]
    y = np.load(digits / "train_labels.npy")[:300]
    good_x, good_y, model = save("x.npy", x), save("y.npy", y), tmp / "model"
    deepafl.json("simulate", *rows(digits), *SMALL, "--model", model)
    arrays()
    values()
    options()
    paths()
    models()
    helps()
finish()
