#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All clients hear that the run is over, on a machine that is busy with other federations.

A server that closed its links right after the last message left clients waiting in 4 of 47 such runs.
"""
import random
import sys
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
finish()
