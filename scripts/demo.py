# SPDX-License-Identifier: Apache-2.0
"""The federations of scripts/demo: DEEPAFL DEEPAFL-AGENT [--seal]"""
import json
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path

root = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(root / "tests" / "e2e"))
from federation import Federation, has_seal, np, sha256  # noqa: E402

SITES, CELL, SEED = 9, 3, 7
digits = root / "share" / "digits"
VICTIM = "site4"


class Demo(Federation):
    """Every digit is spread unevenly over the sites; three of them also hold rows out."""

    def deal(self, x, y):
        rng = np.random.default_rng(SEED)
        shares = rng.dirichlet([0.5] * self.k, size=10)
        site = np.empty(len(y), dtype=int)
        for digit in range(10):
            of_it = np.flatnonzero(y == digit)
            site[of_it] = rng.choice(self.k, size=len(of_it), p=shares[digit])
        self.rows = {}
        for i, name in enumerate(self.names):
            np.save(self.dir / f"{name}_x.npy", x[site == i])
            np.save(self.dir / f"{name}_y.npy", y[site == i])
            self.rows[name] = y[site == i]
        np.save(self.dir / "all_x.npy", x)
        np.save(self.dir / "all_y.npy", y)
        held = np.load(self.digits / "test_features.npy"), np.load(self.digits / "test_labels.npy")
        for i, name in enumerate(self.names[:3]):
            np.save(self.dir / f"{name}_tx.npy", held[0][i::3])
            np.save(self.dir / f"{name}_ty.npy", held[1][i::3])

    def launch(self, name):
        held = ["--test-features", self.dir / f"{name}_tx.npy", "--test-labels", self.dir / f"{name}_ty.npy"]
        return self.start(name, *(held if name in self.names[:3] else []))

    def launch_all(self):
        self.cells = {p["name"]: p["cell"] for p in self.config()["parties"] if p["role"] == "client"}
        for name in [*self.others, *self.names]:
            self.launch(name)

    def cell_of(self, name):
        return [n for n in self.names if self.cells[n] == self.cells[name]]

    def pooled_accuracy(self):
        self.pooled_model()
        done = self.tool("evaluate", "--model", self.dir / "pooled.safetensors", "--features",
                         self.digits / "test_features.npy", "--labels", self.digits / "test_labels.npy", "--json")
        found = json.loads(done.stdout)
        return 100 * found["layers"][-1]["correct"] / found["rows"]


class Tail:
    """The JSON lines of one party as they are written."""

    def __init__(self, f, name):
        self.f, self.name, self.at = f, name, 0

    def new(self):
        path = self.f.dir / f"{self.name}.log"
        with open(path, "rb") as log:
            log.seek(self.at)
            text = log.read()
        whole = text[:text.rfind(b"\n") + 1]
        self.at += len(whole)
        for line in whole.splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                print("  ", self.name, "says:", line.decode(errors="replace"))


def question(f, number):
    if number == 0:
        return "count the rows"
    if number == 2 * f.layers + 2:
        return "count right answers"
    layer, what = divmod(number - 1, 2)
    return f"layer {layer}, hidden features" if what else f"layer {layer}, classifier"


def show(f, event):
    """One line per sum: what was asked and who is in it."""
    members = event.get("members", [])
    if "error" in event:
        print(f"  slot {event['slot']:2}  no sum: {event['error']} ({event['says']})", flush=True)
        return
    cells = sorted({f.cells[n] for n in members})
    out = sorted(set(f.cells.values()) - set(cells))
    print(f"  slot {event['slot']:2}  {question(f, event['question']):25} {len(members)} of {f.k} sites"
          + (f", without cell {', '.join(map(str, out))}" if out else ""), flush=True)


def follow(f, tail):
    """Until the server is done; every event, after its line was shown."""
    end = time.monotonic() + 150
    while time.monotonic() < end:
        over = f.processes["server"].poll() is not None
        for event in tail.new():
            if event["event"] == "result":
                show(f, event)
            yield event
        if over:
            return
        yield None
        time.sleep(0.002)
    raise SystemExit("demo: the server did not come to an end within 150 s")


def must(ok, what):
    if not ok:
        raise SystemExit(f"demo: {what}")


def finish_run(f):
    codes = f.wait(30)
    must(set(codes.values()) == {0}, f"exit codes {codes}; the server said: {f.log('server')[-1000:]}")
    return f.report()


def audit(f):
    done = f.audit("--json")
    must(done.returncode == 0, f"the audit found something: {done.stdout}{done.stderr}")
    found = json.loads(done.stdout)
    opened = [[f.names[u] for u in s["cohort"]] for s in found["slots"] if s["opened"]]
    for members in opened:
        must(all(set(f.cell_of(name)) <= set(members) for name in members), f"a part of a cell was summed: {members}")
    return len(found["logs"]), len(opened), Counter(map(len, opened))


def quiet_run(programs, seal):
    who = "a server and a key holder: eleven" if seal else "a server: ten"
    print(f"== {SITES} sites, {who} processes on loopback, cells of {CELL}, fresh keys ==")
    with Demo(programs, digits, SITES, CELL, layers=3, width=512, seal=seal) as f:
        print(f"  rows: {', '.join(str(len(r)) for r in f.rows.values())}; "
              f"{sum(len(set(r)) < 10 for r in f.rows.values())} sites lack one or more of the ten digits")
        f.launch_all()
        for _ in follow(f, Tail(f, "server")):
            pass
        report = finish_run(f)
        pooled = f.pooled_accuracy()
        a, b = sha256(f.dir / "model.safetensors"), sha256(f.dir / "pooled.safetensors")
        print(f"  held-out rows right: {report['held_accuracy'][-1]:.2f} %; all rows in one place: {pooled:.2f} %")
        print(f"  SHA-256 of the federation's model  {a}\n  SHA-256 of the pooled model        {b}")
        must(a == b, "they differ: the federation did not learn what the pooled data teach")
        print("  Identical: nothing was lost by keeping the rows where they are, or by masking"
              f"{' and encrypting' if seal else ''} the sums.\n")


def small_chunks(text):
    """So that an upload is many messages, and a sum without one cell of three is opened at once."""
    text = text.replace("chunk: 1048576", "chunk: 16384").replace("want: 0.9", "want: 0.6")
    must("chunk: 16384" in text and "want: 0.6" in text, "run.yaml is not as expected")
    return text


class Crash:
    """The victim dies in an upload, is missed, and comes back."""

    def __init__(self, f):
        self.f, self.tail = f, Tail(f, VICTIM)
        self.friends = f.cell_of(VICTIM)
        self.killed = self.back = None
        self.without = []

    def strike(self):
        for own in self.tail.new():
            # Odd slots ask for hidden features, a megabyte; what lies between them is short.
            if self.killed is None and own["event"] == "upload" and own["slot"] >= 5 and own["slot"] % 2 == 1:
                self.f.kill(VICTIM)
                self.killed = own["slot"]
                print(f"  -- {VICTIM} killed while it uploads in slot {self.killed}; its cell "
                      f"{self.f.cells[VICTIM]} is {', '.join(self.friends)}", flush=True)

    def see(self, event):
        if self.killed is None:
            self.strike()
        if event is None or event["event"] != "result" or "error" in event or self.killed is None:
            return
        there = set(self.friends) & set(event["members"])
        must(there in (set(), set(self.friends)), f"a part of a cell was summed: {event}")
        if not there:
            self.without.append(event["slot"])
            if len(self.without) == 1:
                self.f.launch(VICTIM)
                print(f"  -- {VICTIM} started again with the state that it had on disk", flush=True)
        elif self.without and self.back is None:
            self.back = event["slot"]
            print(f"  -- cell {self.f.cells[VICTIM]} is back", flush=True)
        elif not self.without:
            print("  -- its upload was whole before it died, and counts", flush=True)


class LostKey:
    """The key holder dies while a slot has its key, which was in its memory only."""

    def __init__(self, f):
        self.f = f
        self.killed = self.again = None

    def see(self, event, due):
        if event is None:
            return
        if self.killed is None and due and event["event"] == "model":
            self.f.kill("holder")
            self.killed, self.question = event["slot"], event["question"]
            print(f"  -- the key holder killed while it has the key of slot {self.killed}", flush=True)
            self.f.launch("holder")
        elif self.killed and event["event"] == "result":
            if event["slot"] == self.killed:
                must(event.get("error") == "E_SLOT_SPENT", f"slot {self.killed} was opened without its key: {event}")
                print("  -- the key is gone and the slot with it; the question is asked again in another", flush=True)
            elif self.again is None and event["question"] == self.question and "error" not in event:
                self.again = event["slot"]


def killed_run(programs, seal):
    print(f"== Once more, and {VICTIM} is killed (kill -9) in the middle of an upload"
          + (", then the key holder" if seal else "") + " ==")
    with Demo(programs, digits, SITES, CELL, layers=6, width=640, edit=small_chunks, seal=seal) as f:
        f.launch_all()
        crash, lost = Crash(f), LostKey(f) if seal else None
        for event in follow(f, Tail(f, "server")):
            crash.see(event)
            if seal:
                lost.see(event, crash.back is not None)
        report = finish_run(f)
        must(crash.killed and crash.without, f"{VICTIM} was not killed in an upload")
        must(crash.back, f"{VICTIM} did not come back")
        must(not seal or lost.again, "the key holder was not killed, or its question not asked again")
        pooled = f.pooled_accuracy()
        print(f"\n  held-out rows right: {report['held_accuracy'][-1]:.2f} %; all rows in one place: {pooled:.2f} %")
        same = sha256(f.dir / "model.safetensors") == sha256(f.dir / "pooled.safetensors")
        must(not same, "the model is the pooled one although a cell was left out")
        print(f"  The model is not the pooled one this time: {'sum' if len(crash.without) == 1 else 'sums'} "
              f"{', '.join(map(str, crash.without))} had to do without the rows of cell {f.cells[VICTIM]}.\n")
        logs, sums, sizes = audit(f)
        print("== What the server saw ==")
        print(f"  {sums} sums from {report['slots']} slots:",
              ", ".join(f"{n} over {size} sites" for size, n in sorted(sizes.items(), reverse=True)) + ".")
        print(f"  The smallest cohort has {min(sizes)} sites in whole cells of {CELL}; no site's own numbers.")
        if seal:
            print("  Uploads were encrypted on top of the masks: not one of these sums without the key holder, who\n"
                  "  opened each of them once, blinded, and has read none.")
        print(f"  deepafl audit verify: {logs} logs of all parties, signed and chained; no findings.")


def main():
    def stop(number, _):
        raise SystemExit(128 + number)
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGHUP, stop)
    os.chdir(root)
    programs, more = sys.argv[1:3], sys.argv[3:]
    must(more in ([], ["--seal"]), "usage: scripts/demo [--seal]")
    must(not more or has_seal(programs[0], digits), "this build has no SEAL: scripts/setup-seal, then build again")
    start = time.monotonic()
    try:
        quiet_run(programs, bool(more))
        killed_run(programs, bool(more))
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    print(f"\n{time.monotonic() - start:.0f} s. The same with your rows: docs/quickstart.md")


main()
