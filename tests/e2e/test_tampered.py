#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Outside of CURVE, between real clients and a real server: bytes of the stream changed, repeated, in another order,
late or made up. The connection ends, the client comes back, and the model is the pooled one to the bit. Properties T5,
T6 and T8 with real processes."""
import concurrent.futures
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

from federation import check, finish, hurry, seed, sha256
from proxy import Proxy
from rogue import MB, Even, Memory, errors, start_by

deepafl, agent, digits, rogue = sys.argv[1:5]
n_seed = seed()
listening = threading.Barrier(2, timeout=60)  # both servers, before others take ports


def together(*parts):
    with concurrent.futures.ThreadPoolExecutor(len(parts)) as pool:
        for done in [pool.submit(part) for part in parts]:
            done.result()


def flipped(at, position, data):
    """With one bit at this position of the stream changed."""
    if not at <= position < at + len(data):
        return None
    data = bytearray(data)
    data[position - at] ^= 1 << random.Random(n_seed + position).randrange(8)
    return bytes(data)


# ---- the handshake ----

# What means nothing in ZMTP and CURVE: the signature's padding, bits of its last byte, later versions, as-server and
# the filler of a greeting; flags of a frame that are not used (there are three frames each way, the last is a ping);
# the padding of HELLO, behind its name and version.
GREETING = {*range(1, 12), *range(32, 64)}
FREE = {True: GREETING | {64, 64 + 202, 64 + 202 + 301} | set(range(64 + 10, 64 + 10 + 72)),
        False: GREETING | {64, 64 + 170, 64 + 170 + 67}}


def dial(f, ports, key):
    """The rogue's word on each: whether the connection came to something."""
    command = [Path(rogue).resolve(), "dial", f.dir / "run.yaml", 0, f.dir / f"{key}.key",
               *(f"tcp://127.0.0.1:{p}" for p in ports)]
    return subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)


def handshakes(f, rng, workers=8):
    """Every byte of it, by a client that is not in the training otherwise."""
    plain = Proxy(f.port, lambda *a: None)
    came = dial(f, [plain.port], "site6").communicate(timeout=60)[0].split()
    check(came == ["1"], f"handshake: without a change: {came}")
    plain.close()
    length = plain.length
    check(length[True] > 500 and length[False] > 250, f"handshake: {length} bytes")
    jobs = [(way, at) for way in (True, False) for at in range(length[way])]
    rng.shuffle(jobs)
    up = {True: set(), False: set()}
    begun = time.monotonic()
    # Names of their own, or the workers would replace each other.
    parts = [(jobs[i::workers], f"site{6 + i}") for i in range(workers)]

    def work(part, key):
        while part:
            batch, part = part[:40], part[40:]
            ways = [Proxy(f.port, lambda n, way, at, data, job=job: flipped(at, job[1], data) if way == job[0] else
                            None) for job in batch]
            came = dial(f, [m.port for m in ways], key).communicate()[0].split()
            if check(len(came) == len(batch), f"handshake: {came}"):
                for (way, at), one in zip(batch, came):
                    if one == "1":
                        up[way].add(at)
            for m in ways:
                m.close()

    together(*(lambda p=p: work(*p) for p in parts))
    for way, free in FREE.items():
        print(f"handshake, {'to' if way else 'from'} the server: {length[way]} bytes, a change of {len(up[way])} of "
              f"them means nothing; {time.monotonic() - begun:.1f} s", flush=True)
        check(up[way] <= free, f"handshake: it came to something with a change at {sorted(up[way] - free)}")
        check(len(up[way]) > len(free) / 2, f"handshake: control: only {sorted(up[way])} came to something")


# ---- the training ----

HANDSHAKE = {True: 603, False: 337}
BOMB = b"\x02" + (1 << 31).to_bytes(8, "big") + bytes(64)  # a frame of 2 GiB begins


def boundary(state, at, data):
    """Where the fourth frame or a later one begins in this piece of a stream, or None. state: {} at first."""
    begins = state.setdefault("next", 64)
    while at <= begins < at + len(data):
        head = data[begins - at:begins - at + 9]
        if state.get("n", 0) >= 3:
            return begins - at
        long = head[0] & 2
        if len(head) < (9 if long else 2):
            return None
        begins += 9 + int.from_bytes(head[1:9], "big") if long else 2 + head[1]
        state["n"] = state.get("n", 0) + 1
        state["next"] = begins
    return None


class Trouble:
    """One thing for each of the first connections of a client. What does not decrypt makes ZeroMQ deaf on the server's
    side, and the connection is lost by its silence, after 15 s: so that comes once, at first, for all together, and not
    in the last seconds, when the server might leave before it hears of them again."""

    def __init__(self, to_server, rng):
        rest = [("flip", False), ("flip", False), (rng.choice(("twice", "swap")), False),
                ("late", rng.random() < 0.5)]
        rng.shuffle(rest)
        self.plan = [(kind, way, HANDSHAKE[way] + int(10 ** rng.uniform(0, 3.1 if way else 3.5)))
                     for kind, way in [("flip", to_server), ("bomb", rng.random() < 0.5), *rest]]
        self.held = {}
        self.frames = {}
        self.done = []

    def __call__(self, number, way, at, data):
        if number >= len(self.plan):
            return None
        kind, mine, position = self.plan[number]
        if way != mine:
            return None
        if number in self.held:
            return data + self.held.pop(number)
        if kind == "bomb":
            where = boundary(self.frames.setdefault(number, {}), at, data)
            if where is None:
                return None
            self.done.append(self.plan[number])
            return data[:where] + BOMB
        if not at <= position < at + len(data):
            return None
        self.done.append(self.plan[number])
        if kind == "flip":
            return flipped(at, position, data)
        if kind == "twice":
            return data + data
        if kind == "swap":
            self.held[number] = data
            return b""
        time.sleep(0.5)  # late
        return None


def training():
    """Sums over everybody or none: a cell that misses one would make another model."""
    k, rng = 6, random.Random(n_seed)
    with Even((deepafl, agent), digits, k, 3, layers=3, width=32, rng=rng, edit=hurry(ready=10, upload=10),
              init=("--min-cohort", k, "--schedule", "full")) as f:
        f.start("server")
        check(f.wait_for("server", lambda e: e.get("event") == "listening"), "the server does not listen")
        listening.wait()
        ways = {name: Proxy(f.port, Trouble(i % 2 == 0, rng)) for i, name in enumerate(f.names)}
        for name, way in ways.items():
            start_by(f, name, way.port)
        memory = {name: Memory(f.processes[name]) for name in ("server", "site0")}
        codes = f.wait(150)
        if not check(set(codes.values()) == {0}, f"training: exit codes {codes}"):
            print(f.log("server")[-2500:], f.log("site0")[-1500:])
            return
        check(sha256(f.dir / "model.safetensors") == sha256(f.pooled_model("--schedule", "full")),
              "training: another model")
        done = [(kind, way) for m in ways.values() for kind, way, _ in m.spoil.done]
        for kind in ("flip", "bomb"):
            check(any(d[0] == kind for d in done), f"training: no {kind}")
        # Nothing that was changed has come through.
        for name in ["server", *f.names]:
            found = {e for e, _ in errors(f, name)}
            check(not found & {"E_AUTH", "E_FORMAT", "E_REPLAY"}, f"training: {name}: {errors(f, name)}")
        lost = sum(e.get("event") == "lost" for e in f.events("server"))
        check(lost > 0, "training: no connection was lost")
        audit = f.audit()
        check(audit.returncode == 0, f"training: audit: {audit.stdout[-500:]}")
        report = f.report()
        kinds = ", ".join(f"{kind} {sum(d[0] == kind for d in done)}" for kind in sorted({d[0] for d in done}))
        print(f"training: {kinds}; {lost} connections lost, {sum(m.connections for m in ways.values())} made, "
              f"{report['failed_slots']} slots without a sum, the pooled model; {report['seconds']:.1f} s")
        for name, m in memory.items():
            print(m.check(64 * MB, f"training, {name}"))
        for m in ways.values():
            m.close()


def beginnings():
    rng = random.Random(n_seed)
    with Even((deepafl, agent), digits, 15, 3, layers=1, width=16, rng=rng) as f:
        f.start("server")
        check(f.wait_for("server", lambda e: e.get("event") == "listening"), "the server does not listen")
        listening.wait()
        handshakes(f, rng)


together(beginnings, training)
finish()
