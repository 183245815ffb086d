#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Parties that die, as by kill -9, right before one of their writes to disk (die.c): at every one that opening a state
takes, then clients and the server at random ones all through a training. Whatever was half done, the run finishes,
nobody did anything twice, the logs are clean, and every opened sum and the model are what the rows give (judge.py)."""
import random
import subprocess
import sys
import time

from federation import Federation, check, finish, seed
from judge import judge_journals, judge_sums, sums

deepafl, agent, digits, recompute, die = sys.argv[1:6]
rng = random.Random(seed())
K, CELL, LAYERS = 6, 3, 12


def quick(text):
    for a, b in (("setup: 60", "setup: 5"), ("ready: 600", "ready: 5"), ("upload: 120", "upload: 5"),
                 ("sign: 30", "sign: 3"), ("reveal: 30", "reveal: 3"), ("retries: 8", "retries: 100")):
        assert a in text, a
        text = text.replace(a, b)
    return text


class Fate:
    """Every party's lives: each ends at the next of its points, the one after the last at none."""

    def __init__(self, f):
        self.f, self.points, self.opened, self.died = f, {}, {}, {name: 0 for name in ["server", *f.names]}

    def start(self, name):
        at = next(self.points.get(name, iter(())), None)
        mortal = [] if at is None else ["env", f"LD_PRELOAD={die}", f"DAFL_DIE_AT={at}",
                                        "ASAN_OPTIONS=verify_asan_link_order=0"]
        self.f.start(name, prefix=mortal)

    def openings(self, name, points):
        """Die at each of them; after the last write of the opening nothing more comes."""
        for at in points:
            self.points = {name: iter([at])}
            self.start(name)
            try:
                self.f.processes[name].wait(3)
            except subprocess.TimeoutExpired:
                self.f.kill(name)
                break
            check(self.f.processes[name].returncode == -9, f"{name} at {at}: {self.f.log(name)[-500:]}")
            self.died[name] += 1
        self.opened[name] = at - 1

    def rule(self, seconds, points):
        """For a while, or until the run is over; whoever lives then goes on to its point."""
        self.points = points
        for name in points:
            self.f.kill(name)
            self.start(name)
        end = time.monotonic() + seconds
        while time.monotonic() < end and any(p.poll() in (None, -9) for p in self.f.processes.values()):
            time.sleep(0.005)
            for name in list(self.f.processes):
                if self.f.processes[name].poll() == -9:
                    self.died[name] += 1
                    self.start(name)
                    if name == "server":
                        self.dial_again()

    def dial_again(self):
        """A server that goes again and again is dialled ever more seldom: begin that anew."""
        for name in self.f.names:
            if name in self.f.processes:
                self.f.kill(name)
                self.start(name)


with Federation((deepafl, agent), digits, K, CELL, layers=LAYERS, width=32, rng=rng, edit=quick) as f:
    begun = time.monotonic()
    f.start_all()
    fate = Fate(f)
    check(f.wait_for("server", lambda e: e.get("question") == 2), "no sums")
    for name in f.processes:
        f.kill(name)
    # Alone, with a state from the middle of a run: every write of the opening, some 35 of them.
    for name in ["server", "site0"]:
        fate.openings(name, range(1, 46))
    f.start("server")
    fate.rule(4, {name: iter([rng.randint(1, 100) for _ in range(1000)]) for name in f.names})
    fate.rule(8, {"server": iter([rng.randint(30, 100) for _ in range(1000)])})
    fate.rule(60, {})
    codes = f.wait(1)
    servers, clients = fate.died["server"], sum(fate.died[n] for n in f.names)
    print(f"openings of {fate.opened} writes; the server died {servers} times, clients {clients}; "
          f"{time.monotonic() - begun:.1f} s", flush=True)
    check(servers > fate.opened["server"] + 3 and clients > fate.opened["site0"] + 3, "too few")
    if not check(set(codes.values()) == {0}, f"exit codes {codes}"):
        print(f.log("server")[-2000:])
    audit = f.audit()
    check(audit.returncode == 0, f"audit: {audit.stdout[-2000:]}{audit.stderr}")
    judge_journals(f, "journals")
    used = sums(f)
    check([q for q, _, _ in used.values()] == list(range(2 * LAYERS + 3)), f"sums {used}")
    print(f"{judge_sums(f, 'sums', recompute, used, rng)} sums opened, {len(used)} used, all recomputed")
finish()
