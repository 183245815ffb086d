#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""keygen, init and config check: from keys to a run that all sites agree on, and what is refused.

  test_run_files.py DEEPAFL DIGITS
"""
import os
import re
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

from common import Program, check, finish

NAMES = [f"site{i}" for i in range(1, 8)]
LINE = re.compile(r"([\w.-]+) ed25519:[0-9a-f]{64} curve25519:[0-9a-f]{64}\n")


def snapshot():
    return sorted((str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in tmp.rglob("*"))


def refused(what, args, *needles, code=2):
    """One line that says why, nothing on stdout, nothing written."""
    before = snapshot()
    done = deepafl.run(*args)
    lines = done.stderr.splitlines()
    print(f"{what}: {done.stderr.strip() or '(silent)'}", flush=True)
    check(done.returncode == code, f"{what}: exit code {done.returncode}")
    check(1 <= len(lines) <= 2 and lines[0].startswith("deepafl ") and
          all(line.startswith("Try 'deepafl") for line in lines[1:]), f"{what}: not one reason line")
    for needle in needles:
        check(lines and needle in lines[0], f"{what}: no '{needle}' in the reason")
    check(done.stdout == "", f"{what}: something on stdout")
    check(snapshot() == before, f"{what}: something was written")


def keygen():
    """A secret file that only its owner reads, a public line; the file's name from the party's."""
    lines = {}
    for name in ["server", "holder", *NAMES]:
        done = subprocess.run([deepafl.exe, "keygen", name], capture_output=True, text=True, cwd=tmp)
        check(done.returncode == 0 and LINE.fullmatch(done.stdout) and done.stderr == "", f"keygen {name}")
        check(done.stdout.split()[0] == name, f"keygen {name}: another name")
        path = tmp / f"{name}.key"
        check(stat.S_IMODE(path.stat().st_mode) == 0o600, f"{path}: mode")
        check(done.stdout in path.read_text(), f"{path}: another public line")
        lines[name] = done.stdout.strip()
    check(len(set(line.split(" ", 1)[1] for line in lines.values())) == len(lines), "two parties with one key")
    old = os.umask(0)
    made = deepafl.json("keygen", "other", "--out", tmp / "a.key")
    os.umask(old)
    check(set(made) == {"name", "file", "public"} and made["name"] == "other" and
          made["file"] == str(tmp / "a.key") and LINE.fullmatch(made["public"] + "\n"), f"keygen --json: {made}")
    check(stat.S_IMODE((tmp / "a.key").stat().st_mode) == 0o600, "keygen: mode without a umask")
    for what, args, needles in (
            ("existing", ["x", "--out", tmp / "a.key"], ["a.key", "exists", "second line"]),
            ("no name", [], ["usage"]),
            ("two names", ["x", "y"], ["'y'"]),
            ("blank", ["a b", "--out", tmp / "b.key"], ["a b", "letters"]),
            ("slash", ["../x"], ["../x", "letters"]),
            ("empty", ["", "--out", tmp / "b.key"], ["letters"]),
            ("long", ["x" * 64, "--out", tmp / "b.key"], ["63"]),
            ("no directory", ["x", "--out", tmp / "none" / "x.key"], ["none/x.key"]),
            ("directory", ["x", "--out", tmp], [str(tmp)])):
        refused(f"keygen: {what}", ["keygen", *args], *needles)
    return lines


def options(*more, clients=NAMES, cells=3, out="run.yaml"):
    named = [a for name in clients for a in ("--client", lines[name])]
    return ["init", "--server", lines["server"], *named, "--features", 64, "--classes", 10, "--cell-size", cells,
            "--out", tmp / out, *more]


def accepted():
    """What init writes passes config check with the numbers that init showed."""
    (tmp / "some.pub").write_text("# by mail\n\n" + "".join(f"{lines[n]}  \r\n" for n in NAMES[:3]))
    (tmp / "server.pub").write_text(lines["server"] + "\n")
    (tmp / "one.pub").write_text(lines["site4"])
    cases = (
        ("plain", options(out="0"), 2, {"g": 3, "c": 1, "m": 3, "n_min": 5, "a": 1}),
        ("any cohort", options(cells=1, out="1"), 7, {"g": 1, "c": 1, "m": 3, "n_min": 5, "a": 1}),
        ("colluders", options("--colluders", 2, "--min-cohort", 5, cells=7, out="2"), 1,
         {"g": 7, "c": 2, "m": 5, "n_min": 6, "a": 1}),
        ("three", options(clients=NAMES[:3], out="3"), 1, {"g": 3, "c": 1, "m": 3, "n_min": 3, "a": 0}),
        ("afl", options("--method", "afl", "--secure-agg", "none", out="4"), 2, {}),
        ("seal", options("--secure-agg", "seal", "--keyholder", lines["holder"], out="5"), 2, {}),
        ("tuned", options("--width", 32, "--hidden", 16, "--layers", 4, "--activation", "relu", "--lambda", 0.3,
                          "--gamma", "1e-12", "--schedule", "full", "--participation", "0.5:inconsistent", out="6"), 2, {}),
        ("files", ["init", "--server", tmp / "server.pub", "--client", tmp / "one.pub", "--clients-from",
                   tmp / "some.pub", "--cell-size", 4, "--features", 64, "--classes", 10, "--out", tmp / "7"], 1, {}),
    )
    for what, args, cells, policy in cases:
        made = deepafl.json(*args)
        told = deepafl.json("config", "check", made["file"])
        check(set(made) == {"file", "clients", "cells", "roster", "config"}, f"{what}: keys of init --json")
        check(all(made[k] == told[k] for k in ("roster", "config", "cells", "clients")), f"{what}: {made} {told}")
        check(told["cells"] == cells, f"{what}: {told['cells']} cells")
        check(all(told["settings"]["policy"][k] == v for k, v in policy.items()), f"{what}: {told['settings']['policy']}")
        sizes = [sum(p.get("cell") == c for p in told["parties"]) for c in range(cells)]
        check(max(sizes) - min(sizes) <= 1 and sum(sizes) == told["clients"], f"{what}: cells of {sizes}")
        check("at random" in Path(made["file"]).read_text(), f"{what}: does not say how cells and seed were drawn")
    tuned = deepafl.json("config", "check", tmp / "6")
    check([tuned["params"][k] for k in ("width", "hidden", "layers", "activation", "lambda", "gamma", "schedule")] ==
          [32, 16, 4, "relu", 0.3, 1e-12, "full"], f"tuned: {tuned['params']}")
    check(tuned["settings"]["participation_permille"] == 500 and not tuned["settings"]["consistent"] and
          tuned["cells_in_sum"] == 1, "tuned: participation")
    names = [p["name"] for p in deepafl.json("config", "check", tmp / "7")["parties"]]
    check(names == ["site4", "site1", "site2", "site3", "server"], f"files: {names}")
    holder = deepafl.json("config", "check", tmp / "5")["parties"][-1]
    check(holder == {"name": "holder", "role": "keyholder"}, f"seal: {holder}")
    old = os.umask(0o027)
    deepafl.json(*options(out="8"))
    os.umask(old)
    check(stat.S_IMODE((tmp / "8").stat().st_mode) == 0o640, "init: mode of the file")


def explained():
    """config check says what a person needs, and its numbers are right."""
    deepafl.json(*options("--width", 32, "--hidden", 48, "--layers", 4))
    told, text = deepafl.json("config", "check", tmp / "run.yaml"), deepafl.run("config", "check", tmp / "run.yaml").stdout
    w = told["params"]["ring_bits"] // 8
    triangle = lambda d: d * (d + 1) // 2  # noqa: E731
    wanted = [("census", 1, 11 * w), ("gram", 1, (triangle(32) + 320) * w), ("residual", 4, (triangle(48) + 480) * w),
              ("increment", 4, 320 * w), ("report", 1, 12 * w)]
    check([(u["kind"], u["times"], u["bytes"]) for u in told["uploads"]] == wanted, f"uploads: {told['uploads']}")
    check(told["upload_bytes"] == sum(n * b for _, n, b in wanted), "upload_bytes")
    check(told["questions"] == 11 and told["settings"]["slots"] == 18, "questions and slots")
    # n = 7, c = 1: t = floor((6 + 1) / 2) + 1 = 4; of two cells of 3 and 4 one may miss with m = 3.
    check((told["threshold"], told["absent"], told["cells_missing"]) == (4, 2, 1), f"threshold: {told}")
    check(told["warnings"] == [], f"warnings: {told['warnings']}")
    for digest in (told["roster"], told["config"]):
        check(" ".join(digest[i:i + 4] for i in range(0, 64, 4)) in text, "no hash in groups of four")
    for needle in (*NAMES, "cell 0:", "cell 1:", "11, with 18 slots", "w = 48", "t = 4", "n_min = 5", "m = 3", "g = 3", "c = 1",
                   "a = 1", "2 of 7 clients may vanish", "1 may be missing", "What the server learns", "at most c clients collude",
                   "these rows, cells and seed", "gelu"):
        check(needle in text, f"config check does not say '{needle}'")
    check("Warnings" not in text, "warnings without a reason")
    for changes in ({"schedule: delta": "schedule: full"}, {"participation: 1": "participation: 0.5"}):
        full = edited(changes)
        check([u["times"] for u in full["uploads"]] == [1, 5, 4, 1], f"{changes}: {full['uploads']}")


def edited(changes, name="edited.yaml"):
    text = (tmp / "run.yaml").read_text()
    for old, new in changes.items():
        check(old in text, f"run.yaml has no '{old}'")
        text = text.replace(old, new)
    (tmp / name).write_text(text)
    return deepafl.json("config", "check", tmp / name)


def warned():
    base = deepafl.json("config", "check", tmp / "run.yaml")
    for changes, needle in (
            ({"secure_agg: masks": "secure_agg: none"}, "secure_agg is none"),
            ({"  c: 1": "  c: 0"}, "policy.c is 0"),
            ({"  n_min: 5": "  n_min: 7"}, "policy.n_min is the number of clients"),
            ({"  n_min: 5": "  n_min: 4", "  a: 1": "  a: 0"}, "only policy.n_min clients enrol"),
            ({"  m: 3": "  m: 5"}, "no cell may be missing"),
            ({"  m: 3": "  m: 6"}, "policy.n_min is below policy.m"),
            ({"want: 0.9": "want: 0.9\nslots: 3"}, "slots are fewer than the questions"),
            ({"participation: 1": "participation: 0.5"}, "Gram matrices are sent in full")):
        told = edited(changes)
        check(any(needle in w for w in told["warnings"]), f"{changes}: {told['warnings']}")
        check(told["config"] != base["config"] and told["roster"] == base["roster"], f"{changes}: digests")
    for name, needle in (("1", "policy.g is 1"), ("3", "tolerates nobody missing")):
        told = deepafl.json("config", "check", tmp / name)
        check(any(needle in w for w in told["warnings"]), f"{name}: {told['warnings']}")
        check(needle in deepafl.run("config", "check", tmp / name).stdout, f"{name}: not told to people")
    # Encryption: 18 bytes a number in whole ciphertexts of 4096 numbers, and who opens.
    told = deepafl.json("config", "check", tmp / "5")
    check(all(u["bytes"] % (18 * 4096) == 0 for u in told["uploads"]), f"seal: {told['uploads']}")
    about = [w for w in told["warnings"] if "seal" in w]
    check(all("built without Microsoft SEAL" in w for w in about), f"seal: {about}")
    text = deepafl.run("config", "check", tmp / "5").stdout
    check("no sum without the key holder" in text and "while it is away the run waits" in text, f"seal: {text}")
    noted = edited({"training:": "# by a careful hand\ntraining:", "c: 1  #": "c:   1 #"})
    check(noted["config"] == base["config"] and noted["roster"] == base["roster"], "a comment changes a digest")


def broken():
    """config check: exit code 2 and the rule."""
    text = (tmp / "run.yaml").read_text()
    for what, old, new, needles in (
            ("policy", "  g: 3", "  g: 2", ["E_POLICY", "g = 2", "c + 2 = 3"]),
            ("cells", "  g: 3", "  g: 4", ["E_POLICY", "g = 4"]),
            ("threshold", "  a: 1", "  a: 3", ["E_PARAMS", "a = 3"]),
            ("by", "by: cells", "by: clients", ["E_POLICY", "training.by", "g = 1"]),
            ("cohort", text[text.index("  participation: 1"):text.index("  g: 3")],
             "  participation: 0.5\npolicy:\n  n_min: 5\n  m: 5\n", ["E_COHORT", "participation", "m = 5"]),
            ("twice", "participation: 1", "participation: 0.5\n  schedule: full", ["training.schedule", "twice"]),
            ("range", "layers: 4", "layers: 513", ["training.layers", "'513'", "0 to 512", "line "]),
            ("type", "lambda: 1", "lambda: [1]", ["training.lambda", "line "]),
            ("unknown", "want:", "wanted:", ["wanted", "want, tries", "line "]),
            ("missing", "  features:", "  # features:", ["training.features is missing"]),
            ("key", "key: \"site3", "key: \"site3 x", ["roster.3.key", "site3 x", "line "]),
            ("YAML", "roster:", "roster: [", ["not YAML"]),
            ("empty", text, "", ["empty"]),
            ("cut", text[len(text) // 2:], "", [])):
        check(old in text, f"run.yaml has no '{old}'")
        (tmp / "bad.yaml").write_text(text.replace(old, new))
        refused(f"check: {what}", ["config", "check", tmp / "bad.yaml"], "bad.yaml", *needles)
        refused(f"check --json: {what}", ["config", "check", tmp / "bad.yaml", "--json"])
    refused("check: no file", ["config", "check", tmp / "none"], "none", "No such file")
    refused("check: directory", ["config", "check", tmp], "directory")
    refused("check: no word", ["config"], "usage")
    refused("check: no name", ["config", "check"], "usage")
    refused("check: another word", ["config", "chekc", tmp / "run.yaml"], "chekc")
    refused("check: two files", ["config", "check", tmp / "run.yaml", "x"], "'x'")


def not_made():
    """init: what is wrong with its options, and no file."""
    (tmp / "two.pub").write_text(f"{lines['site1']}\n{lines['site2']}\n")
    (tmp / "none.pub").write_text("# nobody\n")
    (tmp / "binary.pub").write_bytes(bytes(range(256)) * 4)
    (tmp / "long.pub").write_text(lines["site1"] + " " * 200 + "and more\n")
    out = "new.yaml"
    short = ["init", "--server", lines["server"], "--client", lines["site1"], "--out", tmp / out]
    for what, args, needles in (
            ("nothing", ["init"], ["--out", "needed"]),
            ("no features", short + ["--classes", 2, "--cell-size", 3], ["--features", "needed"]),
            ("no cell size", short + ["--classes", 2, "--features", 3], ["--cell-size", "needed"]),
            ("no server", ["init", *short[3:], "--classes", 2, "--features", 2, "--cell-size", 1], ["--server", "needed"]),
            ("no clients", options(clients=[], out=out), ["--client", "needed"]),
            ("existing", options(out="run.yaml"), ["run.yaml", "exists"]),
            ("no directory", options(out="none/run.yaml"), ["none/run.yaml"]),
            ("bad line", options("--client", lines["site1"][:-1], out=out), ["--client", "NAME ed25519:HEX"]),
            ("client twice", options("--client", lines["site1"], out=out), ["'site1' twice"]),
            ("server twice", options("--server", lines["site1"], out=out), ["--server", "twice"]),
            ("no such file", options("--client", tmp / "none", out=out), ["--client", "No such file"]),
            ("secret key", options("--client", tmp / "a.key", out=out), ["--client", "secret key", "public line"]),
            ("two lines", options("--client", tmp / "two.pub", out=out), ["--client", "two.pub", "too many"]),
            ("no line", options("--client", tmp / "none.pub", out=out), ["--client", "none.pub", "no public line"]),
            ("binary", options("--clients-from", tmp / "binary.pub", out=out), ["--clients-from", "no file of public"]),
            ("long line", options("--client", tmp / "long.pub", out=out), ["--client", "long.pub", "no file of public"]),
            ("cell of none", options(cells=0, out=out), ["--cell-size", "1 to 7"]),
            ("cell of too many", options(cells=8, out=out), ["--cell-size", "1 to 7"]),
            ("small cells", options(cells=2, out=out), ["E_POLICY", "c + 2 = 3"]),
            ("colluders", options("--colluders", 2, out=out), ["E_POLICY", "c + 2 = 4"]),
            ("many colluders", options("--colluders", 65537, out=out), ["--colluders", "7 clients"]),
            ("large cohort", options("--min-cohort", 65539, out=out), ["--min-cohort", "7"]),
            ("min cohort", options("--min-cohort", 2, out=out), ["E_POLICY", "m = 2"]),
            ("two clients", options(clients=NAMES[:2], cells=1, out=out), ["E_POLICY", "m = 3"]),
            ("secure agg", options("--secure-agg", "maybe", out=out), ["secure_agg", "maybe", "none, masks, seal"]),
            ("seal alone", options("--secure-agg", "seal", out=out), ["E_POLICY", "key holder"]),
            ("no name", options("--activation", "a: b", out=out), ["'a: b'"]),
            ("activation", options("--activation", "selu", out=out), ["training.activation", "gelu"]),
            ("width", options("--width", 0, out=out), ["training.width", "1 to 65536"]),
            ("layers", options("--layers", 513, out=out), ["training.layers", "0 to 512"]),
            ("lambda", options("--lambda", -1, out=out), ["training.lambda", "zero or more"]),
            ("participation", options("--participation", "half", out=out), ["--participation", "half"]),
            ("participation kind", options("--participation", "0.5:often", out=out), ["--participation", "0.5:often"]),
            ("no participation", options("--participation", 0, out=out), ["training.participation", "0.001 to 1"]),
            ("fine participation", options("--participation", 0.3333, out=out), ["training.participation", "0.3333"]),
            ("few in a sum", options("--participation", 0.1, cells=1, out=out), ["E_COHORT", "policy.m = 3"]),
            ("word", options("x", out=out), ["'x'"])):
        refused(f"init: {what}", args, *needles)
    done = subprocess.run([deepafl.exe, "keygen", "full", "--out", str(tmp / "full.key")],
                          stdout=open("/dev/full", "w"), stderr=subprocess.PIPE, text=True)
    check(done.returncode == 1 and "standard output" in done.stderr, f"full stdout: {done.returncode}, {done.stderr!r}")


def helps():
    wanted = {"keygen": {"out", "json"}, "config": {"json"},
              "init": set("""server client clients-from keyholder cell-size colluders min-cohort secure-agg features classes
                  method layers width hidden activation lambda gamma schedule participation out json""".split())}
    for word, names in wanted.items():
        done = deepafl.run(word, "--help")
        check(done.returncode == 0 and set(re.findall(r"^  --([a-z-]+)", done.stdout, re.M)) == names, f"{word} --help")
        check(re.search(rf"^  {word} ", deepafl.run("--help").stdout, re.M), f"--help has no {word}")


with tempfile.TemporaryDirectory() as directory:
    deepafl, tmp = Program(sys.argv[1]), Path(directory)
    lines = keygen()
    accepted()
    explained()
    warned()
    broken()
    not_made()
    helps()
finish()
