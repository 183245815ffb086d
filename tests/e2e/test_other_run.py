#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server's state belongs to one run: with another config or roster it is refused, and no model is made of it. So does an
audit log."""
import random
import re
import sys

from federation import Federation, check, finish, seed

deepafl, agent, digits = sys.argv[1:4]
rng = random.Random(seed())


def another_seed(text):
    return re.sub(r'(seed: )"[0-9a-f]{64}"', lambda m: f'{m.group(1)}"{rng.randbytes(32).hex()}"', text)


def another_order(text):
    """The first two clients change places: another roster, the same config."""
    keys = re.findall(r'  - key: "site.*?"\n', text)
    first, second = keys[:2]
    return text.replace(first, "@").replace(second, first).replace("@", second)


with Federation((deepafl, agent), digits, 3, 3, layers=1, rng=rng) as f:
    f.start_all()
    codes = f.wait(120)
    check(set(codes.values()) == {0}, f"exit codes {codes}")
    model, run = f.dir / "model.safetensors", f.dir / "run.yaml"
    whole = model.read_bytes()
    own = run.read_text()
    for change in [another_seed, another_order]:
        model.unlink(missing_ok=True)
        run.write_text(change(own))
        check(run.read_text() != own, f"{change.__name__}: the run is the same")
        f.start("server")
        code = f.wait(20, ["server"])["server"]
        check(code == 3 and "E_STATE_LOST" in f.log("server").splitlines()[-1],
              f"{change.__name__}: exit code {code}: {f.log('server')[-500:]}")
        check(not model.exists(), f"{change.__name__}: a model was written")
    # A client has another number there: it needs another audit log, and is told which one and how.
    name = f.names[0]
    f.start(name)
    code, said = f.wait(20, [name])[name], f.log(name).splitlines()[-1]
    check(code == 2 and "audit.log: " in said and "--audit" in said, f"another number: exit code {code}: {said}")
    # Its own run is over, which it knows, and the model is made again.
    run.write_text(own)
    f.start("server")
    code = f.wait(20, ["server"])["server"]
    check(code == 0 and model.exists() and model.read_bytes() == whole, f"its own run: exit code {code}")
finish()
