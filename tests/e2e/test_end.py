#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All clients hear that the run is over, on a machine that is busy with other federations, and when one is killed just
then and is started again by its service.

A server that closed its links right after the last message left clients waiting in 4 of 47 such runs; one that took the
loss of a client after the end for its farewell, in 2 of 3.
"""
import random
import sys
import time
from contextlib import ExitStack

from federation import Federation, check, finish, seed

deepafl, agent, digits = sys.argv[1:4]
rng = random.Random(seed())
for _ in range(2):
    with ExitStack() as stack:
        all_at_once = [stack.enter_context(Federation((deepafl, agent), digits, 9, 3, layers=1, rng=rng))
                       for _ in range(5)]
        for f in all_at_once:
            f.start_all()
        for f in all_at_once:
            f.wait(100, ["server"])
            codes = f.wait(15)
            check(set(codes.values()) == {0}, f"exit codes {codes}")


def killed_at_the_end():
    with Federation((deepafl, agent), digits, 3, 3, layers=1, rng=rng) as f:
        f.start_all()
        check(f.wait_for("server", lambda e: e.get("event") == "done", pause=0.001), "no end")
        f.kill("site0")
        time.sleep(3)
        before = len(f.log("site0"))
        f.start("site0")
        codes = f.wait(25)
        check(set(codes.values()) == {0}, f"killed at the end: exit codes {codes}: {f.log('site0')[before:]}")
        return "the run of this state is over" not in f.log("site0")[before:]


heard = [killed_at_the_end() for _ in range(4)]
print(f"killed at the end, {sum(heard)} of {len(heard)} times before it had heard of it", flush=True)
finish()
