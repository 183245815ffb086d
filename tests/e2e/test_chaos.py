#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of random clients all the time and of the server three times in one training: it finishes, and by the logs
and journals of all parties nobody did anything twice. Every sum that was opened, used or not, and the model are
computed again in the clear from the sites' rows, over the cohorts that the server's audit log names (recompute.c).
Every other run takes sums over everybody only, and has to give the pooled model to the bit; the others take the cells
that are there."""
import argparse
import json
import os
import random
import sys
import time

import federation
from federation import Federation, check, finish, hurry, sha256
from judge import judge_journals, judge_sums, sums

K, CELL, LAYERS, WIDTH = 12, 4, 10, 32
quick = hurry(setup=4, ready=4, upload=4, sign=2, reveal=2)


def questions_begun(f):
    return {e["question"] for e in f.events("server") if e.get("event") == "model"}


def out_of_breath(f):
    """Whether slot after slot fails: on a slow machine parties are killed faster than they come back."""
    results = [e for e in f.events("server") if e.get("event") == "result"][-30:]
    return len(results) == 30 and all("error" in e for e in results)


def torment(f, rng, limit, pause):
    """Until the server is done, ever more slowly. Returns how often clients and the server were killed."""
    at = sorted(rng.sample(range(2 * LAYERS), 3))
    clients = servers = 0
    begun = due = time.monotonic()
    while f.processes["server"].poll() is None and time.monotonic() < begun + limit:
        time.sleep(0.01)
        if at and max(questions_begun(f), default=-1) >= at[0]:
            at.pop(0)
            f.kill("server")
            f.start("server")
            servers += 1
        if time.monotonic() < due or out_of_breath(f):
            continue
        slow = 1 + (time.monotonic() - begun) / 10
        due = time.monotonic() + rng.uniform(0.2, 1.8) * pause * slow
        running = [n for n in f.names if f.processes[n].poll() is None]
        if not running or (not at and any(e.get("event") == "done" for e in f.events("server"))):
            break
        name = rng.choice(running)
        f.kill(name)
        f.start(name)
        clients += 1
    return clients, servers


def one(programs, recomputer, digits, number, rng):
    label = f"run {number}"
    full = number % 2 == 0  # sums over everybody or none
    with Federation(programs, digits, K, CELL, layers=LAYERS, width=WIDTH, rng=rng,
                    init=("--min-cohort", K, "--schedule", "full") if full else (), edit=quick) as f:
        begun = time.monotonic()
        f.start_all()
        kills = torment(f, rng, 60, rng.uniform(0.25, 0.5) if full else rng.uniform(0.05, 0.2))
        code = f.wait(40, ["server"])["server"]
        time.sleep(0.5)
        if code == 0 and any(p.poll() is None for p in f.processes.values()):
            # One was killed when it had just heard of the end: the server, started again, tells it once more.
            for name in [n for n in f.names if f.processes[n].poll() is None]:
                print(f"{label}: {name} has not heard of the end: {f.log(name)[-250:]}", flush=True)
            f.start("server")
            kills = kills[0], kills[1] + 1
        codes = f.wait(25)
        seconds = time.monotonic() - begun
        if not check(set(codes.values()) == {0}, f"{label}: exit codes {codes}"):
            for name in [n for n in codes if codes[n] != 0][:2]:
                print(name, f.log(name)[-1500:])
                print("\n".join(x for x in f.log("server").splitlines() if f"{name} is" in x or '"done"' in x)[-1500:])
            return
        check(kills[1] >= 3 and kills[0] >= 3, f"{label}: only {kills} kills")
        audit = f.audit("--json")
        check(audit.returncode == 0, f"{label}: audit: {audit.stdout[-3000:]}{audit.stderr}")
        boots = judge_journals(f, label)  # one may be killed before it has written that it lives
        check(2 < boots <= kills[1] + 1, f"{label}: {boots} lives of the server")
        slots = len(json.loads(audit.stdout)["slots"])
        events = f.events("server")
        wrong = [e for e in events if e.get("error") in ("E_SUM_INVALID", "E_SECOND_STMT", "E_STATE_LOST")]
        check(not wrong, f"{label}: {wrong[:3]}")
        used = sums(f)
        check([q for q, _, _ in used.values()] == list(range(2 * LAYERS + 3)), f"{label}: sums {used}")
        n_opened = judge_sums(f, label, recomputer, used, rng)
        if full:
            # Without increments: which of them are asked for in full depends on the kills, and rounds differently.
            check(all(len(u) == K for _, _, u in used.values()), f"{label}: cohorts {used}")
            same = sha256(f.dir / "model.safetensors") == sha256(f.pooled_model("--schedule", "full"))
            check(same, f"{label}: every sum was over everybody and the model is not the pooled one: {used}")
        accuracy = f.report()["train_accuracy"][-1]
        check(accuracy > 85, f"{label}: accuracy {accuracy}")
        print(f"{label}: {seconds:.1f} s, {kills[0]} clients and {kills[1]} times the server killed, {slots} slots, "
              f"{n_opened} sums opened, {len(used)} used, "
              f"{sum(len(u) < K for _, _, u in used.values())} of them without everybody, "
              f"{sum(r > 0 for _, r, _ in used.values())} increments; all recomputed, "
              f"{'the pooled model, ' if full else ''}accuracy {accuracy:.2f} %", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("programs", nargs=2)
    p.add_argument("digits")
    p.add_argument("recompute")
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--seed", type=int)
    o = p.parse_args()
    if o.seed is not None:
        os.environ["DAFL_TEST_SEED"] = str(o.seed)
    rng = random.Random(federation.seed())
    for number in range(o.runs):
        one(o.programs, o.recompute, o.digits, number, rng)
    finish()


if __name__ == "__main__":
    sys.exit(main())
