# SPDX-License-Identifier: Apache-2.0
"""A federation of real processes: keys, one run.yaml, rows dealt to sites, a server and its clients on loopback."""
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))
from common import check, failures, finish, np, sha256  # noqa: E402, F401 (the tests import them from here)


def seed():
    """Printed, and given again by DAFL_TEST_SEED."""
    n = int(os.environ.get("DAFL_TEST_SEED", time.time_ns() % 10**9))
    print(f"DAFL_TEST_SEED={n}", flush=True)
    return n


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def hurry(**seconds):
    """An edit of run.yaml: the server waits for so many seconds only, and tries again more often."""
    def edit(text):
        waits = {"setup": 60, "ready": 600, "upload": 120, "sign": 30, "reveal": 30}
        changes = {f"{k}: {v}": f"{k}: {seconds.get(k, v)}" for k, v in waits.items()}
        for a, b in {**changes, "retries: 8": "retries: 100"}.items():
            assert a in text, a
            text = text.replace(a, b)
        return text
    return edit


def has_seal(deepafl, digits):
    """Whether this build can encrypt; one that cannot says so in one sentence."""
    done = subprocess.run([deepafl, "simulate", "--features", f"{digits}/train_features.npy", "--labels",
                           f"{digits}/train_labels.npy", "--clients", "3", "--layers", "0", "--width", "8",
                           "--secure-agg", "seal", "--quiet"], capture_output=True, text=True, timeout=60)
    without = "built without Microsoft SEAL" in done.stderr
    check(done.returncode == (2 if without else 0), f"simulate --secure-agg seal: {done.returncode}: {done.stderr}")
    return not without


class Trap:
    """In the server's place: tells whether anybody connects."""

    def __init__(self, f):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind((f.host, f.port))
        self.socket.listen()
        self.socket.settimeout(0.3)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.socket.close()

    def caught(self):
        try:
            self.socket.accept()[0].close()
            return True
        except TimeoutError:
            return False


class Federation:
    """k sites with the rows of share/digits dealt among them.

    programs: (deepafl, deepafl-agent); init: more options of 'deepafl init'; threads: of each agent; seal: with
    encryption and a key holder.
    """

    def __init__(self, programs, digits, k, cell_size, layers=2, width=64, rng=None, init=(), edit=None, rows=None,
                 directory=None, threads=1, seal=False):
        self.deepafl, self.agent = (str(Path(p).resolve()) for p in programs)
        self.k, self.layers, self.width, self.threads = k, layers, width, threads
        self.rng = rng or random.Random(1)
        self.own = None if directory else tempfile.TemporaryDirectory(prefix="deepafl-e2e-")
        self.dir = Path(directory or self.own.name)
        self.dir.mkdir(parents=True, exist_ok=True)
        self.digits = Path(digits)
        self.port = free_port()
        self.host = "127.0.0.1"
        self.processes = {}
        self.prefix = []  # of every command from now on
        self.logs = {}
        self.names = [f"site{i}" for i in range(k)]
        self.mode = "seal" if seal else "none" if "none" in init else "masks"
        self.others = ["server", "holder"] if seal else ["server"]
        lines = {name: self.tool("keygen", name, "--out", self.dir / f"{name}.key").stdout.strip()
                 for name in [*self.others, *self.names]}
        if seal:
            init = ("--secure-agg", "seal", "--keyholder", lines["holder"], *init)
        (self.dir / "clients.txt").write_text("".join(lines[n] + "\n" for n in self.names))
        x = np.load(self.digits / "train_features.npy")
        y = np.load(self.digits / "train_labels.npy")
        if rows is not None:
            x, y = x[:rows], y[:rows]
        self.tool("init", "--server", lines["server"], "--clients-from", self.dir / "clients.txt", "--cell-size",
                  cell_size, "--features", x.shape[1], "--classes", 10, "--layers", layers, "--width", width,
                  "--hidden", width, *init, "--out", self.dir / "run.yaml")
        if edit:
            path = self.dir / "run.yaml"
            path.write_text(edit(path.read_text()))
        self.deal(x, y)

    def cut(self, rows, parts):
        """Into parts of random sizes, none of them from 20 to 69: with so few rows one can stand out in an operand, and
        the site keeps its answer back (E_DOMINATED)."""
        small = 0 if len(rows) >= 70 * parts else parts - max(1, (len(rows) - 19 * parts) // 100)
        sizes = [self.rng.randint(15, 19) for _ in range(small)]
        spare = len(rows) - sum(sizes) - 70 * (parts - small)
        cuts = sorted(self.rng.randint(0, spare) for _ in range(parts - small - 1))
        sizes += [70 + b - a for a, b in zip([0, *cuts], [*cuts, spare])]
        self.rng.shuffle(sizes)
        return np.split(np.array(rows), np.cumsum(sizes)[:-1])

    def deal(self, x, y):
        order = list(range(len(x)))
        self.rng.shuffle(order)
        for name, part in zip(self.names, self.cut(order, self.k)):
            np.save(self.dir / f"{name}_x.npy", x[part])
            np.save(self.dir / f"{name}_y.npy", y[part])
        np.save(self.dir / "all_x.npy", x)
        np.save(self.dir / "all_y.npy", y)

    def tool(self, *args, ok=True):
        done = subprocess.run([*self.prefix, self.deepafl, *map(str, args)], capture_output=True, text=True,
                              timeout=280)
        if ok and done.returncode != 0:
            raise SystemExit(f"deepafl {' '.join(map(str, args))}: {done.stderr}")
        return done

    # ---- processes ----

    def command(self, name, *more):
        common = ["--config", self.dir / "run.yaml", "--key", self.dir / f"{name}.key", "--state",
                  self.dir / f"{name}.state", "--threads", self.threads]
        if self.mode != "none":
            common.append(f"--secure-agg={self.mode}")
        elif name != "server":
            common.append("--allow-plaintext")
        if name == "server":
            role = ["--role", "server", "--listen", f"tcp://{self.host}:{self.port}", "--model",
                    self.dir / "model.safetensors", "--json"]
        elif name == "holder":
            role = ["--role", "keyholder", "--connect", f"tcp://{self.host}:{self.port}"]
        else:
            role = ["--role", "client", "--connect", f"tcp://{self.host}:{self.port}", "--features",
                    self.dir / f"{name}_x.npy", "--labels", self.dir / f"{name}_y.npy"]
        return [self.agent, *map(str, [*role, *common, *more])]

    def start(self, name, *more, prefix=(), command=None):
        log = open(self.dir / f"{name}.log", "ab")
        out = open(self.dir / f"{name}.out", "wb")
        command = [*self.prefix, *prefix, *(command or self.command(name, *more))]
        self.processes[name] = subprocess.Popen(command, stdout=out, stderr=log, stdin=subprocess.DEVNULL)
        log.close()
        out.close()
        return self.processes[name]

    def start_all(self, *more):
        for name in [*self.others, *self.names]:
            self.start(name, *more)

    def kill(self, name, how=signal.SIGKILL):
        p = self.processes.get(name)
        if p is not None and p.poll() is None:
            p.send_signal(how)
        if p is not None:
            p.wait(60)

    def wait(self, seconds=120, names=None):
        """Exit codes by name; whoever is still there then is killed and has None."""
        end = time.monotonic() + seconds
        codes = {}
        for name in names or list(self.processes):
            p = self.processes[name]
            try:
                codes[name] = p.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                codes[name] = None
                self.kill(name)
        return codes

    def stop(self):
        for name in list(self.processes):
            self.kill(name)
        if self.own:
            self.own.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if failures and os.environ.get("DEEPAFL_KEEP") and self.own:
            self.own._finalizer.detach()
            print("kept:", self.dir)
            self.own = None
        self.stop()

    # ---- looking ----

    def log(self, name):
        path = self.dir / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def events(self, name):
        """The JSON lines of an agent; others (an abort) are given as {'text': ..}."""
        found = []
        for line in self.log(name).splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                found.append({"text": line})
        return found

    def wait_for(self, name, test, seconds=60, pause=0.05):
        """Until an event of this agent passes the test; the event, or None."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for e in self.events(name):
                if test(e):
                    return e
            p = self.processes.get(name)
            if p is not None and p.poll() is not None:
                break
            time.sleep(pause)
        return next((e for e in self.events(name) if test(e)), None)

    def log_size(self, name):
        path = self.dir / f"{name}.log"
        return path.stat().st_size if path.exists() else 0

    def follow(self, name, event, since, seconds=30):
        """Wait until the log has this event after so many bytes; whether it came."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.processes[name].poll() is None:
            with open(self.dir / f"{name}.log", "rb") as log:
                log.seek(since)
                if f'"event":"{event}"'.encode() in log.read():
                    return True
            time.sleep(0.002)
        return False

    def report(self):
        return json.loads((self.dir / "server.out").read_text())

    def config(self):
        return json.loads(self.tool("config", "check", self.dir / "run.yaml", "--json").stdout)

    def pooled_model(self, *more, clients=1):
        """What all rows in one place give, by 'deepafl simulate' with the run's seed."""
        path = self.dir / "pooled.safetensors"
        text = (self.dir / "run.yaml").read_text()
        run_seed = next(w for w in text.replace('"', " ").split() if len(w) == 64 and set(w) <= set("0123456789abcdef")
                        and f"seed: {w}" in text.replace('"', ""))
        self.tool("simulate", "--features", self.dir / "all_x.npy", "--labels", self.dir / "all_y.npy", "--clients",
                  clients, "--layers", self.layers, "--width", self.width, "--hidden", self.width, "--seed", run_seed,
                  "--model", path, "--quiet", "--classes", 10, *more)
        return path

    def audit(self, *more, names=None):
        logs = [self.dir / f"{n}.state" / "audit.log" for n in names or [*self.others, *self.names]]
        return self.tool("audit", "verify", "--config", self.dir / "run.yaml", *logs, *more, ok=False)
