# SPDX-License-Identifier: Apache-2.0
"""Judging a run of real processes by what its parties left behind: journals, audit logs and the model."""
import json
import sqlite3
import subprocess

from federation import check, sha256


def records(f, name):
    """What the journal holds; the first byte is the kind (protocol/effect.h)."""
    db = sqlite3.connect(f"file:{f.dir / (name + '.state')}/journal.db?mode=ro", uri=True)
    rows = [bytes(r) for (r,) in db.execute("select bytes from record order by seq")]
    db.close()
    return rows


def judge_journals(f, label):
    """Slots that the server opened only rise; a client has one upload and one statement per slot."""
    boot, upload, sign, slot, barred = 1, 4, 5, 9, 11
    mine = records(f, "server")
    slots = [int.from_bytes(r[1:5], "little") for r in mine if r[0] == slot]
    check(len(slots) > 0 and all(a < b for a, b in zip(slots, slots[1:])), f"{label}: slots {slots}")
    check(not any(r[0] == barred for r in mine), f"{label}: the server bars somebody honest")
    boots = sum(r[0] == boot for r in mine)
    signed = 0
    for name in f.names:
        for kind, what in ((upload, "uploads"), (sign, "statements")):
            seen = {}
            for r in records(f, name):
                if r[0] != kind:
                    continue
                old = seen.setdefault(r[1:5], r)
                check(old == r, f"{label}: {name}: two {what} in slot {int.from_bytes(r[1:5], 'little')}")
            signed += len(seen)
    check(signed > 0, f"{label}: the journals say nothing")
    return boots


def sums(f):
    """{slot: (question, rank, clients in it)} of every sum that the server used, by its journal."""
    kind, found = 10, {}
    for r in records(f, "server"):
        if r[0] == kind:
            slot, question, rank = (int.from_bytes(r[i:i + 4], "little") for i in (1, 5, 9))
            bits = int.from_bytes(r[15:15 + (f.k + 7) // 8], "little")
            found[slot] = question, rank, [k for k in range(f.k) if bits >> k & 1]
    return found


def opened(f):
    """[(slot, question, rank, clients, digest)] of every sum that was opened, by the server's audit log."""
    rank, found = {}, []
    for line in (f.dir / "server.state" / "audit.log").read_text().splitlines():
        e = json.loads(line)
        if e["event"] == "model":
            rank[e["slot"]] = e["data"]["rank"]
        elif e["event"] == "result" and e["data"]["fault"] == "OK":
            found.append((e["slot"], e["data"]["question"], rank[e["slot"]], e["data"]["u3"], e["data"]["sum"]))
    return found


def recompute(f, program, listed, used, model="-"):
    """The digests of these sums, computed in the clear; the model goes into a file unless it is '-'."""
    lines = [f"{q} {rank} {int(slot in used)} " + "".join("01"[k in clients] for k in range(f.k))
             for slot, q, rank, clients, _ in listed]
    done = subprocess.run([program, f.dir / "run.yaml", f.dir, model],
                          input="".join(x + "\n" for x in lines), capture_output=True, text=True, timeout=120)
    check(done.returncode == 0, f"recompute: {done.stderr}")
    return done.stdout.split()


def judge_sums(f, label, program, used, rng):
    """Every opened sum is that of its cohort's rows, and the model what the used ones give."""
    listed = opened(f)
    check({s: (q, r, u) for s, q, r, u, _ in listed if s in used} == used, f"{label}: journal and audit log differ")
    again = recompute(f, program, listed, used, f.dir / "recomputed.safetensors")
    wrong = [x for x, digest in zip(listed, again) if x[4] != digest]
    check(len(again) == len(listed) and not wrong, f"{label}: {len(again)} of {len(listed)} sums, wrong: {wrong}")
    model = f.dir / "recomputed.safetensors"
    check(model.exists() and sha256(model) == sha256(f.dir / "model.safetensors"), f"{label}: another model")
    # The control: one client more or less in one sum is seen, and changes nothing else.
    at = rng.randrange(len(listed))
    _, q, rank, clients, digest = listed[at]
    other = sorted(set(clients) ^ {rng.randrange(f.k)})
    again = recompute(f, program, [*listed[:at], (None, q, rank, other, None), *listed[at:]], used)
    check(again.pop(at) != digest and again == [x[4] for x in listed],
          f"{label}: a sum over {other} instead of {clients} is not noticed")
    return len(listed)
