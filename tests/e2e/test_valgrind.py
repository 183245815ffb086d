#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server and three clients, each under valgrind: no value is used before it is set, nothing is read beyond its end or
lost, and the model is the pooled one (made under valgrind too, which has an arithmetic of its own)."""
import random
import shutil
import sys

from federation import Federation, check, finish, seed, sha256

if not shutil.which("valgrind"):
    print("SKIPPED: valgrind is not installed")
    sys.exit(77)
deepafl, agent, digits = sys.argv[1:4]
VALGRIND = ["valgrind", "--quiet", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"]

with Federation((deepafl, agent), digits, 3, 3, layers=1, width=16, rng=random.Random(seed()), threads=2) as f:
    f.prefix = VALGRIND
    f.start_all()
    codes = f.wait(250)
    for name, code in codes.items():
        if not check(code == 0, f"{name}: exit code {code}"):
            print(f.log(name)[-4000:])
    if set(codes.values()) == {0}:
        check(sha256(f.dir / "model.safetensors") == sha256(f.pooled_model()), "another model")
finish()
