#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every party is killed in every phase and started again: the model is the pooled one. State that cannot be trusted or
written is refused by name before anything is sent."""
import glob
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from datetime import datetime

from federation import Federation, Trap, check, finish, hurry, seed, sha256

deepafl, agent, digits = sys.argv[1:4]
rng = random.Random(seed())
K, CELL = 6, 3
SERVER_PHASES = ["invite", "enroll", "setup", "model", "cast", "upload", "surv", "conf", "result"]
CLIENT_PHASES = ["enroll", "setup", "model", "ready", "cast", "upload", "sign", "conf", "reveal", "result"]
DAY = 86400
quick = hurry(setup=5, ready=5, upload=5, sign=3, reveal=3)


def federation(**more):
    """Sums are over everybody or not at all, so every run has to give the pooled model."""
    return Federation((deepafl, agent), digits, K, CELL, layers=10, width=32, rng=rng, edit=quick,
                      init=("--min-cohort", K, "--schedule", "full"), **more)


def ends_well(f, label):
    codes = f.wait(60)
    if not check(set(codes.values()) == {0}, f"{label}: exit codes {codes}"):
        print(f.log("server")[-1500:])
        return
    pooled = f.pooled_model("--schedule", "full")
    check(sha256(f.dir / "model.safetensors") == sha256(pooled), f"{label}: another model")
    audit = f.audit()
    check(audit.returncode == 0, f"{label}: audit: {audit.stdout[-2000:]}{audit.stderr}")
    report = f.report()
    check(report["failed_slots"] == report["slots"] - report["sums"], f"{label}: {report}")
    print(f"{label}: the pooled model; {report['slots']} slots, {report['failed_slots']} without a sum, "
          f"{report['enrolments']} enrolments", flush=True)


def kill_in_phases(label, names, phases, how=signal.SIGKILL):
    with federation() as f:
        f.start_all()
        since = {n: 0 for n in f.processes}
        for phase in phases:
            name = rng.choice(names or f.names)
            if not check(f.follow(name, phase, since[name]), f"{label}: {name} never came to {phase}"):
                print(f.log(name)[-1500:])
                return
            f.kill(name, how)
            if how == signal.SIGTERM:
                code = f.processes[name].returncode
                check(code == 4, f"{label}: {name} ended with {code} in {phase}")
            since[name] = f.log_size(name)
            f.start(name)
        ends_well(f, label)


def clock_moved():
    """R4: the wall clock is set a day back, then a day ahead of the true time."""
    found = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
    if not found:
        print("SKIPPED: a clock that is set needs libfaketime")
        return

    def by(seconds):
        return ["env", f"LD_PRELOAD={found[0]}", f"FAKETIME={seconds:+d}s", "FAKETIME_DONT_FAKE_MONOTONIC=1"]

    if subprocess.run([*by(-DAY), agent, "--version"], capture_output=True).returncode != 0:
        print("SKIPPED: a clock that is set: libfaketime and this build (a sanitizer's) do not go together")
        return
    with federation() as f:
        f.start_all()
        since = 0
        for seconds in (-DAY, DAY):
            check(f.follow("server", "cast", since), "clock: no cast")
            since = f.log_size("server")
            for name in ("server", f.names[0]):
                f.kill(name)
                f.start(name, prefix=by(seconds))
        ends_well(f, "clocks a day back, then a day ahead")
        times = [datetime.fromisoformat(e["time"].replace("Z", "+00:00")).timestamp() for e in f.events("server")
                 if "time" in e]
        steps = [b - a for a, b in zip(times, times[1:])]
        check(min(steps) < -DAY + 600 and max(steps) > 2 * DAY - 600,
              f"clock: it was not set: {min(steps)} {max(steps)}")


# ---- state ----


def refused(f, label, wanted, says, prefix=()):
    """site0 does not start, says why, sends nothing and ends with this code."""
    since = f.log_size("site0")
    with Trap(f) as trap:
        f.start("site0", prefix=prefix)
        code = f.wait(20, ["site0"])["site0"]
        sent = trap.caught()
    text = f.log("site0")[since:]
    check(code == wanted, f"{label}: exit code {code}: {text}")
    check(any(s in text for s in says), f"{label}: {text}")
    check(not sent, f"{label}: it connected")
    print(f"{label}: {code}, {text.strip()[:150]}", flush=True)


def mounts(script):
    return ["unshare", "-m", "sh", "-c", script + ' && exec "$@"', "sh"]


def can_mount():
    return os.geteuid() == 0 and subprocess.run(mounts("mount -t tmpfs none /mnt") + ["true"],
                                                capture_output=True).returncode == 0


def bad_states():
    with federation() as f:
        f.start_all()
        check(f.follow("server", "conf", 0), "state: no sum")
        for name in f.processes:
            f.kill(name)
        state, good = f.dir / "site0.state", f.dir / "good"
        shutil.copytree(state, f.dir / "killed")
        # All of it into the one file, or SQLite mends that from its log.
        db = sqlite3.connect(state / "journal.db")
        check(db.execute("pragma wal_checkpoint(truncate)").fetchone()[0] == 0, "state: no checkpoint")
        db.close()
        shutil.copytree(state, good)

        def again():
            shutil.rmtree(state)
            shutil.copytree(good, state)

        # The control: with its own state it does connect.
        with Trap(f) as trap:
            f.start("site0")
            trap.socket.settimeout(10)
            check(trap.caught(), "state: the trap catches nothing")
            refused_second(f)
            f.kill("site0")
        again()
        shutil.rmtree(state)
        shutil.copytree(f.dir / "site1.state", state)
        refused(f, "another party's state", 2, ["site1"])
        for name, cut in (("journal.db", 0.5), ("journal.db", None), ("vault", 0.5), ("generation", 0)):
            again()
            path = state / name
            whole = bytearray(path.read_bytes())
            if cut is None:
                for i in range(len(whole) // 2, len(whole) // 2 + 64):
                    whole[i] ^= 0xff
            path.write_bytes(whole if cut is None else whole[:int(len(whole) * cut)])
            refused(f, f"{name} {'damaged' if cut is None else 'cut short'}", 3, ["E_STATE_LOST"])
        # As kill -9 left it, but for the end of SQLite's log.
        shutil.rmtree(state)
        shutil.copytree(f.dir / "killed", state)
        log = state / "journal.db-wal"
        os.truncate(log, int(log.stat().st_size * 0.97))
        refused(f, "journal.db-wal cut short", 3, ["its end is missing: E_STATE_LOST"])
        again()
        if not can_mount():
            print("SKIPPED: read-only and full disks need root and mount namespaces")
            return
        refused(f, "read-only state", 3, ["Read-only", "read-only"],
                mounts(f"mount --bind {state} {state} && mount -o remount,ro,bind {state}"))
        refused(f, "no room for the state", 3, ["space", "full"],
                mounts(f"mount -t tmpfs -o size=16k,mode=700 none {state}"))


def refused_second(f):
    p = subprocess.run(f.command("site0"), capture_output=True, text=True, timeout=20)
    check(p.returncode == 2 and "in use by another process" in p.stderr,
          f"second agent: {p.returncode} {p.stderr}")


def disk_runs_full():
    if not can_mount():
        return
    with federation() as f:
        state = f.dir / "site0.state"
        state.mkdir(mode=0o700)
        f.start("server")
        for name in f.names[1:]:
            f.start(name)
        f.start("site0", prefix=mounts(f"mount -t tmpfs -o size=600k,mode=700 none {state}"))
        code = f.wait(30, ["site0"])["site0"]
        check(code == 3 and "nothing more was sent" in f.log("site0"), f"full disk: {code} {f.log('site0')[-800:]}")
        spoke = sum(e.get("event") == "upload" for e in f.events("site0"))
        print(f"disk full after {spoke} uploads: {code}, {f.log('site0').splitlines()[-2][-150:]}")
        check(spoke > 0, "full disk: it never took part")


def rolled_back():
    """D8: a copy of the directory from two lives ago."""
    with federation() as f:
        f.start_all()
        check(f.follow("server", "setup", 0), "rollback: no setup")
        f.kill("site0")
        shutil.copytree(f.dir / "site0.state", f.dir / "copy")
        for _ in range(2):
            since = f.log_size("site0")
            f.start("site0")
            check(f.follow("site0", "sign", since), "rollback: site0 did not come back")
            f.kill("site0")
        shutil.rmtree(f.dir / "site0.state")
        shutil.copytree(f.dir / "copy", f.dir / "site0.state")
        since = f.log_size("site0")
        f.start("site0")
        code = f.wait(20, ["site0"])["site0"]
        text = f.log("site0")[since:]
        check(code == 3 and "E_STATE_LOST" in text, f"rollback: {code} {text[-800:]}")
        check('"event":"upload"' not in text and '"event":"sign"' not in text, f"rollback: it went on: {text[-800:]}")
        print(f"state two lives old: {code}, {text.splitlines()[-1][-120:]}", flush=True)


if sys.argv[4:] == ["stop"]:
    kill_in_phases("SIGTERM", ["server", "site0", "site1"], ["setup", "cast", "conf", "model"], signal.SIGTERM)
    finish()
kill_in_phases("server killed in every phase", ["server"], SERVER_PHASES)
kill_in_phases("a client killed in every phase", None, CLIENT_PHASES)
clock_moved()
rolled_back()
bad_states()
disk_runs_full()
finish()
