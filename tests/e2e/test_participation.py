#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Partial participation over processes: the cohorts are those that the seed says, and the model is the one of
'deepafl simulate' with the same rows; in the clear the same file as under masks.

A cell counts as one client of simulate that holds all its rows, so the rows are dealt to the cells as simulate deals
them to its clients, and inside a cell at random.
"""
import random
import sys
from pathlib import Path

from federation import Federation, check, finish, np, seed, sha256

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "vectors"))
from stream import shuffled, words  # noqa: E402

PARTICIPATION, SIMULATION = 1, 2  # uses of the seed's streams
SHARE = 0.7


class Dealt(Federation):
    def run_seed(self):
        line = next(s for s in (self.dir / "run.yaml").read_text().splitlines() if s.strip().startswith("seed:"))
        return bytes.fromhex(line.split('"')[1])

    def cells(self):
        """Names by cell; without cells everybody is one."""
        lines = (self.dir / "run.yaml").read_text().splitlines()
        numbers = [int(s.split(":")[1]) for s in lines if s.strip().startswith("cell:")]
        numbers = numbers or list(range(self.k))
        return [[n for n, c in zip(self.names, numbers) if c == i] for i in range(max(numbers) + 1)]

    def deal(self, x, y):
        cells = self.cells()
        order = shuffled(len(x), words(self.run_seed(), SIMULATION, 0))
        mine = [[] for _ in cells]
        for i, row in enumerate(order):
            mine[i * len(cells) // len(x)].append(row)
        for rows, names in zip(mine, cells):
            self.rng.shuffle(rows)
            for name, part in zip(names, self.cut(rows, len(names))):
                np.save(self.dir / f"{name}_x.npy", x[part])
                np.save(self.dir / f"{name}_y.npy", y[part])
        np.save(self.dir / "all_x.npy", x)
        np.save(self.dir / "all_y.npy", y)

    def expected(self, question, consistent):
        """Who is in the sum of a question, drawn from the seed: census, then Gram and residual of each layer."""
        cells = self.cells()
        layer, residual = divmod(question - 1, 2)
        if question == 0 or question == 2 * self.layers + 2:
            return set(self.names)
        order = shuffled(len(cells), words(self.run_seed(), PARTICIPATION,
                                           2 * layer + (residual if not consistent else 0)))
        return {n for c in order[:int(SHARE * len(cells) + 0.5)] for n in cells[c]}

    def simulated(self, *more):
        path = self.dir / "simulated.safetensors"
        self.tool("simulate", "--features", self.dir / "all_x.npy", "--labels", self.dir / "all_y.npy", "--clients",
                  len(self.cells()), "--layers", self.layers, "--width", self.width, "--hidden", self.width, "--seed",
                  self.run_seed().hex(), "--classes", 10, "--model", path, "--quiet", *more)
        return path


def ended_well(f, what):
    codes = f.wait(120)
    if not check(set(codes.values()) == {0}, f"{what}: exit codes {codes}"):
        print(f.log("server")[-3000:], f.log("site0")[-2000:])
        return False
    return True


def partial(k, cell_size, kind):
    """kind: consistent, inconsistent."""
    what = f"K = {k}, cells of {cell_size}, {kind}"
    with Dealt(programs, digits, k, cell_size, rng=rng, init=("--participation", f"{SHARE}:{kind}")) as f:
        f.start("server")
        for name in f.names:
            f.start(name, *(["--allow-any-cohort"] if cell_size == 1 else []))
        if not ended_well(f, what):
            return
        sums = {e["question"]: set(e["members"]) for e in f.events("server")
                if e.get("event") == "result" and "error" not in e}
        check(sorted(sums) == list(range(2 * f.layers + 3)), f"{what}: sums {sorted(sums)}")
        for q, members in sums.items():
            check(members == f.expected(q, kind == "consistent"), f"{what}: question {q} over {sorted(members)}")
        model = sha256(f.dir / "model.safetensors")
        check(model == sha256(f.simulated("--participation", f"{SHARE}:{kind}")), f"{what}: another model")
        check(model != sha256(f.simulated()), f"{what}: the model of all rows")
        audit = f.audit()
        check(audit.returncode == 0, f"{what}: audit: {audit.stdout}{audit.stderr}")
        report = f.report()
        check(report["failed_slots"] == 0, f"{what}: {report}")
        print(f"{what}: sums over {[len(sums[q]) for q in sorted(sums)]}, {report['seconds']:.1f} s", flush=True)


def without_consent(k):
    """g = 1 and one client that did not allow it: it stays away, the others go on without it."""
    with Dealt(programs, digits, k, 1, rng=rng) as f:
        f.start("server")
        for name in f.names:
            f.start(name, *(["--allow-any-cohort"] if name != "site0" else []))
        code = f.wait(60, ["site0"])["site0"]
        check(code not in (0, None) and "E_POLICY" in f.log("site0"), f"without consent: exit {code}")


def plain(k):
    """The same run with masks and without: one file."""
    models = {}
    with Dealt(programs, digits, k, 3, rng=rng) as f:
        f.start_all()
        if not ended_well(f, "masks"):
            return
        models["masks"] = sha256(f.dir / "model.safetensors")
        first = f.run_seed().hex()

    def same_seed(text):
        return "\n".join(f'  seed: "{first}"' if s.strip().startswith("seed:") else s for s in text.splitlines()) + "\n"

    with Dealt(programs, digits, k, 3, rng=rng, init=("--secure-agg", "none"), edit=same_seed) as f:
        f.start_all()
        if not ended_well(f, "none"):
            return
        models["none"] = sha256(f.dir / "model.safetensors")
        check(models["none"] == sha256(f.pooled_model()), "none: another model than all rows give")
        audit = f.audit()
        check(audit.returncode == 0, f"none: audit: {audit.stdout}{audit.stderr}")
    check(len(set(models.values())) == 1, f"masks and none: {models}")
    print(f"K = {k}: in the clear the same file as under masks", flush=True)


programs, digits = sys.argv[1:3], sys.argv[3]
rng = random.Random(seed())
for kind in ("consistent", "inconsistent"):
    partial(12, 3, kind)
    partial(rng.randint(9, 11), 1, kind)
without_consent(5)
plain(9)
finish()
