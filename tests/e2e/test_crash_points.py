#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Parties that die, as by kill -9, right before they write to disk or send (die.c): at every write that opening a state
takes, then clients and the server at random ones all through a training. And parties whose disk fails at such a write:
they end at once with exit code 3. Whatever was half done, the run finishes, nobody did anything twice, the logs are
clean, and every opened sum and the model are what the rows give (judge.py)."""
import itertools
import random
import subprocess
import sys
import time

from federation import Federation, check, finish, hurry, seed
from judge import judge_journals, judge_sums, sums

deepafl, agent, digits, recompute, die = sys.argv[1:6]
rng = random.Random(seed())
K, CELL, LAYERS = 6, 3, 24
quick = hurry(setup=5, ready=5, upload=5, sign=3, reveal=3)


class Fate:
    """Every party's lives: each ends at the next of its points, the one after the last at none. A point is how it ends
    and at which call."""

    ENDS = {"DAFL_DIE_AT": -9, "DAFL_FAIL_AT": 3}

    def __init__(self, f):
        self.f, self.points, self.how, self.ended = f, {}, {}, []

    def start(self, name):
        how, at = next(self.points.get(name, iter(())), (None, 0))
        self.how[name] = how
        self.f.start(name, prefix=[] if how is None else ["env", f"LD_PRELOAD={die}", f"{how}={at}",
                                                          "ASAN_OPTIONS=verify_asan_link_order=0"])

    def has_ended(self, name):
        """Whether its life is over as it was to be; killed by us counts, too."""
        code = self.f.processes[name].poll()
        if code is not None and code == self.ENDS.get(self.how.get(name)):
            self.ended.append((name, self.how[name]))
            return True
        return code == -9

    def openings(self, name):
        """Die at each of their writes; after the last one nothing more comes. How many there were."""
        for at in range(1, 60):
            self.points = {name: iter([("DAFL_DIE_AT", at)])}
            self.start(name)
            try:
                self.f.processes[name].wait(3)
            except subprocess.TimeoutExpired:
                self.f.kill(name)
                return at - 1
            check(self.has_ended(name), f"{name} at {at}: {self.f.log(name)[-500:]}")
        return at

    def rule(self, seconds, points):
        """For a while, or until the run is over; whoever lives then goes on to its point."""
        self.points = points
        for name in points:
            self.f.kill(name)
            self.start(name)
        end = time.monotonic() + seconds
        over = False
        while time.monotonic() < end and not over:
            time.sleep(0.005)
            over = True
            for name in self.f.processes:
                again = self.has_ended(name)
                over = over and not again and self.f.processes[name].poll() is not None
                if again:
                    self.start(name)
                    if name == "server":
                        self.dial_again()

    def dial_again(self):
        """A server that goes again and again is dialled ever more seldom: begin that anew."""
        for name in self.f.names:
            self.f.kill(name)
            self.start(name)

    def count(self, how, names):
        return sum(h == how and name in names for name, h in self.ended)


def draw(first, last):
    for how in itertools.cycle(Fate.ENDS):
        yield how, rng.randint(first, last)


with Federation((deepafl, agent), digits, K, CELL, layers=LAYERS, width=32, rng=rng, edit=quick) as f:
    begun = time.monotonic()
    f.start_all()
    fate = Fate(f)
    check(f.wait_for("server", lambda e: e.get("question") == 2), "no sums")
    for name in f.processes:
        f.kill(name)
    # Alone, with a state from the middle of a run.
    opened = [fate.openings(name) for name in ("server", "site0")]
    check(min(opened) > 15, f"openings of {opened} writes?")
    fate.ended.clear()
    f.start("server")
    fate.rule(4, {name: draw(1, 100) for name in f.names})
    fate.rule(7, {"server": draw(30, 120)})
    fate.rule(60, {})
    codes = f.wait(1)
    counts = [fate.count(how, names) for how in Fate.ENDS for names in (["server"], f.names)]
    print(f"every of {opened} writes of an opening; then the server died {counts[0]} times, clients {counts[1]}, and "
          f"disks failed {counts[2]} and {counts[3]} times; {time.monotonic() - begun:.1f} s", flush=True)
    check(min(counts) > 0, "some of them never happened")
    if not check(set(codes.values()) == {0}, f"exit codes {codes}"):
        print(f.log("server")[-2000:])
    audit = f.audit()
    check(audit.returncode == 0, f"audit: {audit.stdout[-2000:]}{audit.stderr}")
    judge_journals(f, "journals")
    used = sums(f)
    check([q for q, _, _ in used.values()] == list(range(2 * LAYERS + 3)), f"sums {used}")
    print(f"{judge_sums(f, 'sums', recompute, used, rng)} sums opened, {len(used)} used, all recomputed")
finish()
