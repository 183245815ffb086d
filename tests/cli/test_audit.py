#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""deepafl audit verify on logs that the lab wrote: what it finds, how it says so, and that a proof holds
for someone who has nothing but the proof.   test_audit.py DEEPAFL TEST_AUDIT TEST_AUDIT_RULES"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from common import Program, check, finish

sys.path.insert(0, str(Path(__file__).parent.parent / "vectors"))
from crypto import BASE, D, L, P, ed_add, ed_bytes, ed_times, h, sha512_int, u16  # noqa: E402

deepafl = Program(sys.argv[1])


def write(program, name, how="--write"):
    """A directory with roster, config and logs; None if the program was built without what that takes."""
    to = tmp / name
    to.mkdir()
    done = subprocess.run([Path(program).resolve(), how, to], capture_output=True, timeout=120)
    check(done.returncode in (0, 77), f"{program} {how}: {done.stderr}")
    return to if done.returncode == 0 else None


def verify(directory, logs, *more):
    return deepafl.run("audit", "verify", "--roster", directory / "roster", "--config", directory / "config", *logs,
                       *more)


def judged(directory, logs, code):
    """The report, which must come with this exit code, as text and as JSON."""
    text, done = verify(directory, logs), verify(directory, logs, "--json")
    report = json.loads(done.stdout)
    check(text.returncode == done.returncode == code, f"exit code {text.returncode}, {done.returncode}, not {code}")
    check(text.stderr == done.stderr == "", "something on stderr")
    check(report["clean"] == (code == 0) == (report["found"] == 0), "clean or not")
    for f in report["findings"]:
        check(f["why"] in text.stdout and f["rule"] in text.stdout, f"the text does not have {f}")
    return report, text.stdout


def honest():
    logs = sorted(run.glob("*.log"))
    report, text = judged(run, logs, 0)
    check("no findings" in text, "does not say that all is well")
    check([s["question"] for s in report["slots"]] == [0, 1, 2], "not every question is there")
    check([s["cohort"] for s in report["slots"]] == [[0, 1, 2, 3, 4], [0, 2, 3, 4], [0, 1, 2, 3, 4]], "the cohorts")
    check(all(s["opened"] and s["result"] == "OK" and s["sum"] != 64 * "0" for s in report["slots"]), "the sums")
    check({x["party"] for x in report["logs"]} == {"server", *(f"site{i}" for i in range(5))}, "whose the logs are")
    for log in logs:
        judged(run, [log], 0)


def tampered():
    """An edit, a line less, a cut tail."""
    lines = (run / "site3.log").read_bytes().splitlines(keepends=True)
    others = [p for p in sorted(run.glob("*.log")) if p.name != "site3.log"]
    bad = tmp / "bad.log"
    at = next(i for i, x in enumerate(lines) if b'"event":"cast"' in x)

    def finds(what, content, rule, line, logs):
        bad.write_bytes(b"".join(content))
        report, text = judged(run, logs, 1)
        check(any(f["rule"] == rule and f["party"] == "site3" and line in (None, f["line"]) and f["file"] in ("", str(bad))
                  for f in report["findings"]), f"{what}: {report['findings']}")
        check("site3" in text, f"{what}: the text does not name it")

    finds("edit", lines[:at] + [lines[at].replace(b'"a":[0,1', b'"a":[1')] + lines[at + 1:], "HASH", at + 1, [bad])
    finds("form", lines[:at] + [lines[at].replace(b":", b": ", 1)] + lines[at + 1:], "FORM", at + 1, [bad])
    finds("deletion", lines[:at] + lines[at + 1:], "GAP", at + 1, [bad])
    finds("torn", lines[:-1] + [lines[-1][:-1]], "FORM", len(lines), [bad])
    bad.write_bytes(b"".join(lines[:at]))
    judged(run, [bad], 0)  # alone it cannot be seen
    finds("truncation", lines[:at], "TRUNCATED", None, [bad, *others])
    bad.write_bytes(b"")
    judged(run, [bad], 1)


def point(data):
    """The curve point of an Ed25519 public key."""
    y, sign = int.from_bytes(data, "little") & (2**255 - 1), data[31] >> 7
    xx = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(xx, (P + 3) // 8, P)
    if (x * x - xx) % P != 0:
        x = x * pow(2, (P - 1) // 4, P) % P
    assert (x * x - xx) % P == 0
    return (P - x if x & 1 != sign else x, y)


def signed(key, message, signature):
    s = int.from_bytes(signature[32:], "little")
    k = sha512_int(signature[:32], key, message) % L
    x, y = ed_times(k, point(key))
    return s < L and ed_bytes(ed_add(ed_times(s, BASE), (-x % P, y))) == signature[:32]


def members(n, present):
    return u16(n) + sum(1 << i for i in present).to_bytes((n + 7) // 8, "little")


def statement(s, n):
    """From its parts, as protocol/context.h says."""
    number = lambda v, width: v.to_bytes(width, "little")
    ctx = h("deepafl/ctx", bytes.fromhex(s["h_setup"]), number(s["slot"], 4), number(s["question"], 4),
            number(s["rank"], 4), bytes.fromhex(s["model"]), number(s["len"], 8), number(s["w"], 1),
            bytes.fromhex(s["he"]))
    ctx2 = h("deepafl/cast", ctx, members(n, s["a"]))
    return h("deepafl/stmt", ctx2, members(n, s["u3"]), bytes.fromhex("".join(s["digests"])))


def proof(two, encrypted):
    """M9: one of six signed two statements; its own log and the server's are not there."""
    report, text = judged(two, sorted(two.glob("*.log")), 1)
    check(len(report["proofs"]) == 1 and "proof 1: site0 signed" in text, "no proof that names site0")
    p = report["proofs"][0]
    key = bytes.fromhex(p["ed25519"])
    check(p["party"] == "site0" and key in (two / "roster").read_bytes(), "the proof names another key")
    check(all(any(bytes.fromhex(s["he"])) == encrypted for s in p["statements"]), "the encryption key, or none")
    made = [statement(s, p["clients"]) for s in p["statements"]]
    one, other = p["statements"]
    check(made[0] != made[1] and one["h_setup"] == other["h_setup"] and one["slot"] == other["slot"] == p["slot"],
          "not two statements of one slot")
    for s, stmt in zip(p["statements"], made):
        check(stmt.hex() == s["stmt"], "the parts do not give the statement")
        check(signed(key, stmt, bytes.fromhex(s["signature"])), "the signature does not hold")
        check(not signed(key, bytes(32), bytes.fromhex(s["signature"])), "any signature holds")


def refused():
    logs = sorted(run.glob("*.log"))
    files = ["--roster", run / "roster", "--config", run / "config"]
    (tmp / "short").write_bytes((run / "roster").read_bytes()[:-1])
    for what, args, needle in (
            ("nothing", [], "usage"),
            ("no log", ["verify", *files], "usage"),
            ("another word", ["falsify", *files, logs[0]], "falsify"),
            ("no run file", ["verify", "--config", run / "config", logs[0]], "config"),
            ("no config", ["verify", "--roster", run / "roster", logs[0]], "--config"),
            ("unknown option", ["verify", *files, "--loud", logs[0]], "loud"),
            ("no such log", ["verify", *files, tmp / "none.log"], "none.log"),
            ("no such roster", ["verify", "--roster", tmp / "none", "--config", run / "config", logs[0]], "none"),
            ("a roster that is none", ["verify", "--roster", tmp / "short", "--config", run / "config", logs[0]], "short"),
            ("a config that is none", ["verify", "--roster", run / "roster", "--config", run / "roster", logs[0]],
             "roster")):
        done = deepafl.run("audit", *args)
        check(done.returncode == 2 and done.stdout == "" and needle in done.stderr.splitlines()[0],
              f"{what}: {done.returncode} {done.stderr}")
    # Another run's roster or config is no mistake of the command line: the logs say that it is not theirs.
    judged(two, logs, 1)
    config = bytearray((run / "config").read_bytes())
    config[33] += 1  # retries
    (tmp / "config").write_bytes(config)
    (tmp / "roster").write_bytes((run / "roster").read_bytes())
    report, _ = judged(tmp, logs, 1)
    check({(f["rule"], f["line"]) for f in report["findings"]} == {("BINDING", 1)}, "another config is not noticed")


with tempfile.TemporaryDirectory() as name:
    tmp = Path(name)
    run, two = write(sys.argv[2], "run"), write(sys.argv[3], "two")
    honest()
    tampered()
    proof(two, False)
    sealed = write(sys.argv[3], "sealed", "--write-encrypted")
    if sealed is not None:
        proof(sealed, True)
    refused()
finish()
