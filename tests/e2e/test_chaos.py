#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of random clients all the time and of the server three times in one training: it finishes, and by the logs
and journals of all parties nobody did anything twice."""
import argparse
import json
import os
import random
import sqlite3
import sys
import time

import federation
from federation import Federation, check, finish, sha256

K, CELL, LAYERS, WIDTH = 12, 4, 10, 32


def patient(text):
    """Cohorts are waited for: in the end the sums are over everybody."""
    return quick(text).replace("want: 0.9", "want: 1").replace("tries: 2", "tries: 100")


def quick(text):
    for a, b in (("setup: 60", "setup: 4"), ("ready: 600", "ready: 4"), ("upload: 120", "upload: 4"),
                 ("sign: 30", "sign: 2"), ("reveal: 30", "reveal: 2"), ("retries: 8", "retries: 100")):
        assert a in text, a
        text = text.replace(a, b)
    return text


def records(f, name):
    """What the journal holds; the first byte is the kind (protocol/effect.h)."""
    db = sqlite3.connect(f"file:{f.dir / (name + '.state')}/journal.db?mode=ro", uri=True)
    rows = [bytes(r) for (r,) in db.execute("select bytes from record order by seq")]
    db.close()
    return rows


def judge_journals(f, label):
    """Slots that the server opened only rise; a client has one upload and one statement per slot."""
    boot, upload, sign, slot = 1, 4, 5, 9
    mine = records(f, "server")
    slots = [int.from_bytes(r[1:5], "little") for r in mine if r[0] == slot]
    check(len(slots) > 0 and all(a < b for a, b in zip(slots, slots[1:])), f"{label}: slots {slots}")
    boots = sum(r[0] == boot for r in mine)
    signed = 0
    for name in f.names:
        for kind, what in ((upload, "uploads"), (sign, "statements")):
            seen = {}
            for r in records(f, name):
                if r[0] != kind:
                    continue
                old = seen.setdefault(r[1:5], r)
                check(old == r, f"{label}: {name}: two {what} in slot {int.from_bytes(r[1:5], 'little')}")
            signed += len(seen)
    check(signed > 0, f"{label}: the journals say nothing")
    return boots


def questions_begun(f):
    return {e["question"] for e in f.events("server") if e.get("event") == "model"}


def torment(f, rng, limit):
    """Until the server is done. Returns how often clients and the server were killed."""
    at = sorted(rng.sample(range(2 * LAYERS), 3))
    clients = servers = 0
    pause = rng.uniform(0.1, 0.5)
    end = time.monotonic() + limit
    while f.processes["server"].poll() is None and time.monotonic() < end:
        time.sleep(rng.uniform(0.2, 1.8) * pause)
        if at and max(questions_begun(f), default=-1) >= at[0]:
            at.pop(0)
            f.kill("server")
            f.start("server")
            servers += 1
        running = [n for n in f.names if f.processes[n].poll() is None]
        if not running or (not at and any(e.get("event") == "done" for e in f.events("server"))):
            break
        name = rng.choice(running)
        f.kill(name)
        f.start(name)
        clients += 1
    return clients, servers


def one(programs, digits, number, rng):
    label = f"run {number}"
    full = number % 2 == 0
    with Federation(programs, digits, K, CELL, layers=LAYERS, width=WIDTH, rng=rng,
                    edit=patient if full else quick) as f:
        begun = time.monotonic()
        f.start_all()
        kills = torment(f, rng, 90)
        codes = f.wait(40)
        seconds = time.monotonic() - begun
        if not check(set(codes.values()) == {0}, f"{label}: exit codes {codes}"):
            for name in [n for n in codes if codes[n] != 0][:2]:
                print(name, f.log(name)[-1500:])
            return
        check(kills[1] == 3 and kills[0] >= 3, f"{label}: only {kills} kills")
        audit = f.audit("--json")
        check(audit.returncode == 0, f"{label}: audit: {audit.stdout[-3000:]}{audit.stderr}")
        check(judge_journals(f, label) == kills[1] + 1, f"{label}: boots of the server")
        slots = json.loads(audit.stdout)["slots"]
        events = f.events("server")
        wrong = [e for e in events if e.get("error") in ("E_SUM_INVALID", "E_UNRECOVERABLE", "E_SECOND_STMT")]
        check(not wrong, f"{label}: {wrong[:3]}")
        answered = [s for s in slots if s["opened"] and s["result"] == "OK"]
        everybody = all(len(s["cohort"]) == K for s in slots if s["opened"])
        same = sha256(f.dir / "model.safetensors") == sha256(f.pooled_model())
        if everybody:
            check(same, f"{label}: every sum was over everybody and the model is not the pooled one")
        accuracy = f.report()["train_accuracy"][-1]
        check(accuracy > 85, f"{label}: accuracy {accuracy}")
        print(f"{label}: {seconds:.1f} s, {kills[0]} clients and {kills[1]} times the server killed, {len(slots)} slots, "
              f"{len(answered)} answered, {sum(len(s['cohort']) < K for s in slots if s['opened'])} sums with "
              f"dropouts, {'the pooled model' if same else 'another cohort'}, accuracy {accuracy:.2f} %", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("programs", nargs=2)
    p.add_argument("digits")
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--seed", type=int)
    o = p.parse_args()
    if o.seed is not None:
        os.environ["DAFL_TEST_SEED"] = str(o.seed)
    rng = random.Random(federation.seed())
    for number in range(o.runs):
        one(o.programs, o.digits, number, rng)
    finish()


if __name__ == "__main__":
    sys.exit(main())
