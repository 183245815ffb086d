#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Much, or the promise of much, from one that has the keys: messages that announce more than there is, 100,000 small
frames, uploads of everybody at once that nobody asked for. The memory of server and client stays within bounds, and
the others' training gives the pooled model. Properties T8, M10 and R5 with real processes."""
import random
import sys

from federation import check, finish, np, seed, sha256
from rogue import MB, Even, Memory, Rogue, errors, relay, start_by

deepafl, agent, digits, rogue = sys.argv[1:5]
n_seed = seed()
rng = random.Random(n_seed)
CHUNK, SPARE = 1 * MB, 16 * MB  # of an upload in one message; what may wait besides the longest one


def ended_well(f, what, names):
    codes = f.wait(150, names)
    if not check(set(codes.values()) == {0}, f"{what}: exit codes {codes}"):
        print(f.log("server")[-2500:], f.log("site0")[-1500:])
        return False
    check(sha256(f.dir / "model.safetensors") == sha256(f.pooled_model()), f"{what}: another model")
    report = f.report()
    check(report["failed_slots"] == 0, f"{what}: {report['failed_slots']} slots failed")
    print(f"{what}: {report['sums']} sums, {report['seconds']:.1f} s", flush=True)
    return True


def by_relay(mode):
    with Even((deepafl, agent), digits, 6, 3, layers=1, width=16, rng=rng) as f:
        f.start("server")
        check(f.wait_for("server", lambda e: e.get("event") == "listening"), f"{mode}: the server does not listen")
        r, port = relay(rogue, f, mode, n_seed, "site0", "site1")
        for name in f.names[1:]:
            f.start(name)
        start_by(f, "site0", port)
        memory = {name: Memory(f.processes[name]) for name in ("server", "site0")}
        good = ended_well(f, mode, ["server", *f.names])
        sent = r.report()
        if not good:
            print(sent, errors(f, "server"), errors(f, "site0"))
            return
        for name, way in (("server", "to_server"), ("site0", "to_client")):
            # A message at its longest, what may wait to be read, and the training itself.
            print(memory[name].check(CHUNK + SPARE + 32 * MB, f"{mode}, {name}"))
            refused = errors(f, name)[("E_FORMAT", "site0" if name == "server" else "server")]
            check(refused == sent[way]["forged"], f"{mode}, {name}: {sent[way]} sent, {errors(f, name)}")
            print(f"{mode}, {way}: {sent[way]['forged']} forged, {dict(errors(f, name))}", flush=True)
        check(sent["to_server"]["forged"] > 0, f"{mode}: nothing sent")


class Few(Even):
    """Rows for the clients of four cells; the others have none, and are the rogue's."""

    def deal(self, x, y):
        lines = (self.dir / "run.yaml").read_text().splitlines()
        cells = [int(s.split(":")[1]) for s in lines if s.strip().startswith("cell:")]
        self.honest = [n for n, c in zip(self.names, cells) if c < 4]
        for i, name in enumerate(self.honest):
            np.save(self.dir / f"{name}_x.npy", x[i::len(self.honest)])
            np.save(self.dir / f"{name}_y.npy", y[i::len(self.honest)])
        np.save(self.dir / "all_x.npy", x)
        np.save(self.dir / "all_y.npy", y)


def uploads(k, rounds):
    """R5: everybody but twelve sends uploads without being asked."""
    def edit(text):
        lines = []
        for line in text.splitlines():
            key = line.strip().split(":")[0]
            new = {"n_min": "  n_min: 5", "m": "  m: 3", "c": "  c: 1", "a": "  a: 1", "setup": "  setup: 4"}
            lines.append(new.get(key, line))
        return "\n".join(lines) + "\n"

    with Few((deepafl, agent), digits, k, 3, layers=1, width=16, rng=rng, edit=edit) as f:
        f.start("server")
        check(f.wait_for("server", lambda e: e.get("event") == "listening"), "uploads: the server does not listen")
        memory = Memory(f.processes["server"])
        others = [n for n in f.names if n not in f.honest]
        keys = [f.dir / f"{n}.key" for n in others]
        r = Rogue(rogue, f, "uploads", n_seed, f"tcp://{f.host}:{f.port}", rounds, *keys)
        r.process.stdout.readline()
        for name in f.honest:
            f.start(name)
        check(f.wait_for("server", lambda e: e.get("event") == "done", 100), "uploads: no end")
        sent = r.report().get("uploads", 0)
        good = ended_well(f, "uploads", ["server", *f.honest])
        refused = sum(n for (e, peer), n in errors(f, "server").items()
                      if peer in others and e in ("E_STATE", "E_TIMEOUT"))
        check(rounds * len(others) <= refused <= sent, f"uploads: {sent} sent, {errors(f, 'server')}")
        print(f"uploads: {len(others)} clients, {sent} chunks of 1 MB, {refused} refused")
        if good:
            # Of an upload that was not granted nothing is kept: what may wait to be read, and of each connection two
            # messages and one on its way. All of them would be rounds times as much as that.
            bound = CHUNK + SPARE + 3 * k * CHUNK
            check(2 * bound < rounds * len(others) * CHUNK, "uploads: too few for this to fail")
            print(memory.check(bound, "uploads, server"))


which = sys.argv[5:] or ["bomb", "flood", "uploads"]
for mode in which:
    if mode == "uploads":
        uploads(150, 8)
    else:
        by_relay(mode)
finish()
