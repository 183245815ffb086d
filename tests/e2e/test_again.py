#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client that is started again when the run is over finds that out: from the server, from its journal, or else it
says what can be done. It can still be invited to another run."""
import random
import shutil
import signal
import sys

from federation import Federation, check, finish, seed, sha256

deepafl, agent, digits = sys.argv[1:4]
rng = random.Random(seed())


def ends(f, name, code, *words, seconds=40):
    got = f.wait(seconds, [name])[name]
    text = f.log(name)
    check(got == code and all(w in text for w in words), f"{name}: exit {got}, not {code}: {text[-800:]}")
    return text


def at_once(text):
    assert "tries: 2" in text
    return text.replace("tries: 2", "tries: 0")


with Federation((deepafl, agent), digits, 6, 3, layers=1, rng=rng, edit=at_once) as f:
    f.start_all()
    check(f.wait_for("server", lambda e: e.get("event") == "model" and e.get("question") == 1), "no training")
    f.kill("site0")
    away = shutil.copytree(f.dir / "site0.state", f.dir / "away")
    check(f.wait_for("server", lambda e: e.get("event") == "done"), "the others do not finish")
    f.start("site0")
    codes = f.wait(60)
    check(set(codes.values()) == {0}, f"the server is still there: exit codes {codes}")
    check("the training is done" in f.log("site0"), "site0 does not say how it ended")

    # The same run file once more: the server begins anew, clients keep their state.
    (f.dir / "model.safetensors").unlink()
    shutil.rmtree(f.dir / "server.state")
    f.start_all()
    codes = f.wait(60)
    check(set(codes.values()) == {0}, f"another run: exit codes {codes}")
    check(sha256(f.dir / "model.safetensors") == sha256(f.pooled_model()), "another run: another model")

    # Nobody is there any more: the journal knows, but for the state of one that was killed before it heard.
    before = len(f.log("site1"))
    shutil.rmtree(f.dir / "site0.state")
    shutil.copytree(away, f.dir / "site0.state")
    f.start("site0")
    f.start("site1")
    ends(f, "site1", 0)
    text = f.log("site1")[before:]
    check("the run of this state is over" in text and "the training is done" in text and
          "stop this agent" not in text, f"site1: {text}")
    check(f.wait_for("site0", lambda e: "stop this agent and keep its state" in e.get("says", "")),
          "site0 says nothing")
    check(f.processes["site0"].poll() is None, "site0 does not wait")
    f.kill("site0", signal.SIGTERM)
    ends(f, "site0", 4)
finish()
