#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hosts of their own: network namespaces on a bridge. What runs is the first argument after the data: 'hosts', five
machines; 'netem', the same with 50 ms of delay and 1 % loss by the kernel; 'badnet', the same by an emulation that
every kernel can run, with resets besides (badnet.py says what it leaves out); or a path, a text whose command blocks
are followed."""
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from federation import Federation, check, finish, np, seed, sha256

deepafl, agent, digits, what = sys.argv[1:5]


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


class Hosts:
    """Namespaces host0 (10.77.0.1, with the bridge), host1 (10.77.0.2), .."""

    def __init__(self, n):
        self.names = [f"dafl{os.getpid()}h{i}" for i in range(n)]
        self.made = []

    def run(self, *args):
        return subprocess.run(args, capture_output=True, text=True, timeout=20)

    def must(self, *args):
        done = self.run(*args)
        if done.returncode != 0:
            self.close()
            skip(f"needs network namespaces: {' '.join(args)}: {done.stderr.strip()}")

    def open(self):
        if os.geteuid() != 0:
            skip("needs root for network namespaces")
        try:
            hub = self.names[0]
            for name in self.names:
                self.must("ip", "netns", "add", name)
                self.made.append(name)
                self.must("ip", "-n", name, "link", "set", "lo", "up")
            self.must("ip", "-n", hub, "link", "add", "br0", "type", "bridge")
            self.must("ip", "-n", hub, "addr", "add", "10.77.0.1/24", "dev", "br0")
            self.must("ip", "-n", hub, "link", "set", "br0", "up")
            for i, name in enumerate(self.names[1:], 1):
                self.must("ip", "-n", hub, "link", "add", f"v{i}", "type", "veth", "peer", "name", "eth0", "netns",
                          name)
                self.must("ip", "-n", hub, "link", "set", f"v{i}", "master", "br0", "up")
                self.must("ip", "-n", name, "addr", "add", f"10.77.0.{i + 1}/24", "dev", "eth0")
                self.must("ip", "-n", name, "link", "set", "eth0", "up")
        except FileNotFoundError as e:
            skip(f"needs iproute2 ({e})")

    def netem(self):
        for i in range(1, len(self.names)):
            done = self.run(*self.on(i), "tc", "qdisc", "add", "dev", "eth0", "root", "netem", "delay", "50ms",
                            "loss", "1%")
            if done.returncode != 0:
                self.close()
                skip(f"DELAY AND LOSS ARE NOT TESTED: this kernel has no netem ({done.stderr.strip()})")

    def on(self, i):
        return ["ip", "netns", "exec", self.names[i]]

    def close(self):
        for name in self.made:
            self.run("ip", "netns", "del", name)
        self.made = []

    def __enter__(self):
        self.open()
        return self

    def __exit__(self, *exc):
        self.close()


def five_hosts(netem):
    rng = random.Random(seed())
    with Hosts(6) as hosts, Federation((deepafl, agent), digits, 5, 5, rng=rng) as f:
        if netem:
            hosts.netem()
        f.host, f.port = "10.77.0.1", 5555
        f.start("server", prefix=hosts.on(0))
        for i, name in enumerate(f.names, 1):
            f.start(name, prefix=hosts.on(i))
        codes = f.wait(200)
        if not check(set(codes.values()) == {0}, f"{what}: exit codes {codes}"):
            print(f.log("server")[-3000:], f.log("site0")[-2000:])
            return
        report = f.report()
        check(sha256(f.dir / "model.safetensors") == sha256(f.pooled_model()), f"{what}: another model")
        check(f.audit().returncode == 0, f"{what}: audit")
        print(f"{what}: 5 clients, {report['sums']} sums, {report['seconds']:.1f} s, "
              f"{report['failed_slots']} slots without one")


def bad_network(life, at_the_end):
    """Connections live for life to 2 life seconds; at_the_end: all are cut when the server has just said that it is
    over, which takes 40 ms and more to be heard."""
    rng = random.Random(seed())
    # Over everybody or not at all, and no increments: which are asked for in full depends on the losses.
    with Hosts(6) as hosts, Federation((deepafl, agent), digits, 5, 5, rng=rng, init=("--schedule", "full"),
                                       edit=lambda t: t.replace("retries: 8", "retries: 100")) as f:
        f.host = "10.77.0.1"
        net = subprocess.Popen([*hosts.on(0), sys.executable, "-B", Path(__file__).with_name("badnet.py"),
                                str(rng.random()), f.host, "6001", "5", "5555", str(life)], stdout=subprocess.PIPE,
                               text=True)
        try:
            check(net.stdout.readline() == "ready\n", "the bad network did not start")
            f.port = 5555
            f.start("server", prefix=hosts.on(0))
            for i, name in enumerate(f.names, 1):
                f.port = 6000 + i
                f.start(name, prefix=hosts.on(i))
            if at_the_end:
                check(f.wait_for("server", lambda e: e.get("event") == "done", pause=0.005), f"{what}: no end")
                net.send_signal(signal.SIGUSR1)
            codes = f.wait(100)
        finally:
            net.terminate()
            did = json.loads(net.communicate(timeout=20)[0])
        if not check(set(codes.values()) == {0}, f"{what}: exit codes {codes}, {did}"):
            print(f.log("server")[-3000:], f.log("site0")[-2000:])
            return
        report = f.report()
        pooled = f.pooled_model("--schedule", "full")
        check(sha256(f.dir / "model.safetensors") == sha256(pooled), f"{what}: another model")
        check(f.audit().returncode == 0, f"{what}: audit")
        # Four round trips of 80 ms or more for every sum, or it went another way.
        check(report["seconds"] > 4 * 0.08 * report["sums"], f"{what}: {report['seconds']} s are too few")
        check(did["lost"] > 0 and did["reset"] > 0, f"{what}: nothing was lost or reset: {did}")
        print(f"{what} (an emulation): 5 clients, {report['sums']} sums, {report['seconds']:.1f} s, "
              f"{report['failed_slots']} slots without one; {did}", flush=True)


class Walk:
    """Follow a text on two hosts, each with a directory of its own."""

    def __init__(self, hosts, top):
        self.hosts, self.at = hosts, {"server": (0, top / "server"), "site": (1, top / "site")}
        self.behind = []
        tools = top / "bin"
        for path in (tools, top / "server", top / "site"):
            path.mkdir()
        for program in (deepafl, agent):
            (tools / Path(program).name).symlink_to(Path(program).resolve())
        self.env = dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}")

    def start(self, where, text):
        host, path = self.at[where]
        return subprocess.Popen([*self.hosts.on(host), "sh", "-ec", text], cwd=path, env=self.env, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def block(self, where, background, text):
        p = self.start(where, "exec " + text if background else text)
        if background:
            self.behind.append((text, p))
            return ""
        return self.ended(text, p)

    def ended(self, text, p):
        try:
            out = p.communicate(timeout=100)[0]
        except subprocess.TimeoutExpired:
            p.kill()
            out = p.communicate()[0]
        check(p.returncode == 0, f"{text.strip()}: exit {p.returncode}: {out[-800:]}")
        return out

    def carry(self, pattern, source, target):
        """What the text says is sent."""
        for path in self.at[source][1].glob(pattern):
            (self.at[target][1] / path.name).write_bytes(path.read_bytes())

    def wait(self):
        for text, p in self.behind:
            self.ended(text, p)
        self.behind = []


def follow(text):
    """Blocks '```sh HOST [background]' of the text, in their order; files go where it sends them."""
    blocks = re.findall(r"^```sh (server|site)( background)?\n(.*?)^```$", text, re.M | re.S)
    fences = text.count("```") // 2
    check(len(blocks) == fences and fences >= 8, f"{len(blocks)} of {fences} blocks are for a host")
    with Hosts(2) as hosts, tempfile.TemporaryDirectory(prefix="deepafl-walk-") as top:
        walk = Walk(hosts, Path(top))
        site, server = walk.at["site"][1], walk.at["server"][1]
        x, y = np.load(Path(digits) / "train_features.npy"), np.load(Path(digits) / "train_labels.npy")
        for i in range(3):
            np.save(site / f"site{i + 1}_x.npy", x[i::3])
            np.save(site / f"site{i + 1}_y.npy", y[i::3])
        checks = []
        for where, background, lines in blocks:
            if "init" in lines:
                walk.carry("*.pub", "site", "server")
            if "config check" in lines:
                walk.carry("run.yaml", "server", "site")
            if not background:
                walk.wait()
            out = walk.block(where, bool(background), lines)
            if "config check" in lines:
                checks.append([ln for ln in out.splitlines() if re.search(r"\b(roster|config)\b", ln)])
        walk.wait()
        check(len(checks) == 2 and checks[0] == checks[1] and len(checks[0]) >= 2, f"hashes: {checks}")
        check(not list(server.glob("site*.key")) and not list(site.glob("server.key")), "a key has travelled")
        model = server / "model.safetensors"
        if check(model.exists(), "no model"):
            done = subprocess.run([deepafl, "evaluate", "--model", model, "--features", Path(digits) /
                                   "test_features.npy", "--labels", Path(digits) / "test_labels.npy"],
                                  capture_output=True, text=True, timeout=60)
            check(done.returncode == 0, done.stderr)
            print(f"{len(blocks)} blocks followed on two hosts; {done.stdout.strip().splitlines()[-1]}")


if what in ("hosts", "netem"):
    five_hosts(what == "netem")
elif what == "badnet":
    bad_network(5, False)
    bad_network(1000, True)
else:
    follow(Path(what).read_text())
finish()
