# SPDX-License-Identifier: Apache-2.0
"""Rogue parties (rogue.c) around a federation of real processes."""
import collections
import json
import subprocess
import threading
import time
from pathlib import Path

from federation import Federation, check, free_port, np

MB = 1 << 20


class Even(Federation):
    """Sites of one size: a tiny one may rightly refuse a question (E_DOMINATED)."""

    def deal(self, x, y):
        super().deal(x, y)
        for i, name in enumerate(self.names):
            np.save(self.dir / f"{name}_x.npy", x[i::self.k])
            np.save(self.dir / f"{name}_y.npy", y[i::self.k])


class Rogue:
    def __init__(self, program, f, mode, seed, *args):
        self.mode = mode
        command = [Path(program).resolve(), mode, f.dir / "run.yaml", seed, *args]
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def report(self):
        """Stop it; what it has sent."""
        try:
            out = self.process.communicate("", timeout=60)[0]
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            check(False, f"{self.mode}: does not stop")
            return {}
        check(self.process.returncode == 0, f"{self.mode}: exit {self.process.returncode}")
        return json.loads(out.splitlines()[-1]) if out else {}


def relay(program, f, mode, seed, name, other):
    """Between this client, to be started with the port that is given back, and the server."""
    port = free_port()
    keys = [f.dir / f"{n}.key" for n in ("server", name, other)]
    return Rogue(program, f, mode, seed, f"tcp://127.0.0.1:{port}", f"tcp://{f.host}:{f.port}", *keys), port


def start_by(f, name, port, *more):
    own, f.port = f.port, port
    f.start(name, *more)
    f.port = own


def errors(f, name):
    """How often an agent has met which error, and about whom: with a line of its own, or only counted."""
    met = collections.Counter()
    for e in f.events(name):
        if e.get("event") in ("error", "errors"):
            met[e["error"], e.get("peer")] += e.get("count", 1)
    return met


class Memory:
    """The peaks of a process, resident and promised, from now to its end."""

    def __init__(self, process):
        self.path = f"/proc/{process.pid}/status"
        self.before = self.peak = self.read()
        threading.Thread(target=self.follow, daemon=True).start()

    def read(self):
        with open(self.path) as s:
            found = dict(line.split(":", 1) for line in s if line.startswith(("VmHWM", "VmPeak")))
        return [int(found[k].split()[0]) * 1024 for k in ("VmHWM", "VmPeak")]

    def follow(self):
        try:
            while True:
                self.peak = self.read()
                time.sleep(0.01)
        except (OSError, KeyError):
            pass  # it has ended

    def check(self, most, what):
        grown = [b - a for a, b in zip(self.before, self.peak)]
        if self.peak[1] > 1 << 40:  # the sanitizer reserves terabytes, and keeps what was freed for a while
            most, grown[1] = most + 512 * MB, 0
        check(grown[0] <= most, f"{what}: {grown[0] / MB:.0f} MB more resident, bound {most / MB:.0f}")
        # 2 GiB that are asked for and not touched would show here.
        check(grown[1] <= most + 1024 * MB, f"{what}: {grown[1] / MB:.0f} MB more promised")
        return f"{what}: {grown[0] / MB:.1f} MB more resident, bound {most / MB:.0f}"
