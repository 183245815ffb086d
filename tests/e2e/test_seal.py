#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Encryption on top of masks between real processes: the model is that of masks, of plaintext and of the pooled rows;
the key holder may be killed at any moment, be away, come back, and is nobody else.

  test_seal.py DEEPAFL DEEPAFL-AGENT DIGITS run|kills|away|threads
"""
import random
import shutil
import signal
import sys
import time

from federation import Federation, check, failures, finish, free_port, has_seal, hurry, seed, sha256
from proxy import Proxy

deepafl, agent, digits = sys.argv[1:4]
programs = (deepafl, agent)
rng = random.Random(seed())
K, CELL = 6, 3
NO_SEAL = "built without Microsoft SEAL"
quick = hurry(setup=2, ready=4, upload=3, sign=2, reveal=2)


def federation(**more):
    """Sums are over everybody or not at all, so every run has to give the pooled model."""
    return Federation(programs, digits, K, CELL, layers=8, width=32, rng=rng, edit=quick, seal=True,
                      init=("--min-cohort", K, "--schedule", "full"), **more)


def ends_well(f, label, log_lost=False):
    codes = f.wait(60)
    if not check(set(codes.values()) == {0}, f"{label}: exit codes {codes}"):
        print(f.log("server")[-2500:], f.log("holder")[-1500:])
        return None
    pooled = f.pooled_model("--schedule", "full")
    check(sha256(f.dir / "model.safetensors") == sha256(pooled), f"{label}: another model")
    audit = f.audit()
    check("lines of holder" in audit.stdout, f"{label}: the audit has no log of the key holder")
    if log_lost:
        check(audit.returncode == 1 and "log of holder is truncated or forked" in audit.stdout,
              f"{label}: audit: {audit.stdout[-2000:]}{audit.stderr}")
        audit = f.audit(names=["server", *f.names])
    check(audit.returncode == 0, f"{label}: audit: {audit.stdout[-2000:]}{audit.stderr}")
    return f.report()


# ---- one model ----

def one_model(k, modes=("seal", "masks", "none"), threads=1):
    """H2: the same rows with encryption, with masks, with nothing, pooled and simulated."""
    with Federation(programs, digits, k, CELL, rng=rng, seal=True, threads=threads) as f:
        run = (f.dir / "run.yaml").read_text()
        found, seconds = {}, {}
        for mode in modes:
            (f.dir / "run.yaml").write_text(run.replace("secure_agg: seal", f"secure_agg: {mode}"))
            f.mode, f.others = mode, ["server", "holder"] if mode == "seal" else ["server"]
            f.processes = {}
            for name in [*f.others, *f.names]:
                f.start(name)
            codes = f.wait(100)
            if not check(set(codes.values()) == {0}, f"K = {k}, {mode}: exit codes {codes}"):
                print(f.log("server")[-2500:])
                return
            report = f.report()
            seconds[mode] = report["seconds"]
            check(report["failed_slots"] == 0, f"K = {k}, {mode}: {report}")
            found[mode] = sha256(f.dir / "model.safetensors")
            audit = f.audit()
            check(audit.returncode == 0, f"K = {k}, {mode}: audit: {audit.stdout[-1000:]}{audit.stderr}")
            check(("lines of holder" in audit.stdout) == (mode == "seal"), f"K = {k}, {mode}: {audit.stdout[:500]}")
            for name in [*f.others, *f.names]:
                shutil.rmtree(f.dir / f"{name}.state")
        found["pooled"] = sha256(f.pooled_model())
        found["simulated"] = sha256(f.pooled_model("--secure-agg", "seal", clients=k))
        check(len(set(found.values())) == 1, f"K = {k}: not one model: {found}")
        print(f"K = {k}: one model,", ", ".join(f"{mode} {s:.1f} s" for mode, s in seconds.items()),
              "and pooled and simulated", flush=True)


# ---- kills ----

def burnt(f):
    return [e for e in f.events("server") if e.get("event") == "result" and e.get("error") == "E_SLOT_SPENT"]


def kill_with_key(f):
    """The key holder dies when it has given its key and nobody has asked it to open anything. It may be quicker than we
    are."""
    for _ in range(5):
        if not f.follow("holder", "key", f.log_size("holder")):
            break
        f.kill("holder")
        since = f.log_size("server")
        f.start("holder")
        if not f.follow("server", "result", since) or burnt(f):
            break
    check(burnt(f), "kills: no slot was burnt for want of its key")


def killed_in_phases():
    """Each process dies after this event of its own, or a little later, and is started again."""
    plan = [("holder", p) for p in ("start", "invite", "setup", "cast", "open")]
    plan += [("server", p) for p in ("setup", "model", "conf", "open", "result")]
    plan += [("client", p) for p in ("upload", "sign", "reveal")]
    rng.shuffle(plan)
    with federation() as f:
        f.start_all()
        kill_with_key(f)
        for who, phase in plan:
            name = rng.choice(f.names) if who == "client" else who
            since = 0 if phase in ("start", "invite", "setup") else f.log_size(name)
            if not check(f.follow(name, phase, since), f"kills: {name} never came to {phase}"):
                print(f.log(name)[-1500:])
                return
            time.sleep(rng.choice((0, rng.uniform(0, 0.02))))
            f.kill(name)
            f.start(name)
        report = ends_well(f, "kills")
        if report:
            print(f"kills: {len(plan) + 1} processes killed or more, the pooled model; {report['slots']} slots, "
                  f"{len(burnt(f))} without their key", flush=True)


def kept_answer():
    """H5: the key holder dies when it has opened a sum and the server has not heard of it. Its next life gives the
    stored answer, in the same slot, and opens nothing twice."""
    with federation() as f:
        server_port = f.port = free_port()
        f.start("server")
        check(f.follow("server", "listening", 0), "kept: the server does not listen")
        proxy = Proxy(server_port)
        for name in f.names:
            f.start(name)
        f.port = proxy.port
        f.start("holder")
        vault = f.dir / "holder.state" / "vault"
        for tried in range(5):
            since = f.log_size("server")
            if not check(f.follow("server", "model", since), "kept: no slot"):
                return
            f.processes["holder"].send_signal(signal.SIGSTOP)  # it has given its key
            proxy.open.clear()
            slot = [e for e in f.events("server") if e.get("event") == "model"][-1]["slot"]
            f.processes["holder"].send_signal(signal.SIGCONT)
            end = time.monotonic() + 10
            while time.monotonic() < end and not any(vault.read_bytes()[8192:]):
                time.sleep(0.005)
            done = [e for e in f.events("server") if e.get("event") == "result" and e["slot"] == slot]
            if not done:
                break
            proxy.open.set()  # it was too quick for us
        if not check(any(vault.read_bytes()[8192:]) and not done, "kept: no answer in the vault"):
            return
        f.kill("holder")
        proxy.cut()
        f.start("holder")
        report = ends_well(f, "kept")
        if not report:
            return
        results = [e for e in f.events("server") if e.get("event") == "result" and e["slot"] == slot]
        check(len(results) == 1 and "error" not in results[0], f"kept: slot {slot}: {results}")
        for event in ("key", "open"):
            told = [e for e in f.events("holder") if e.get("event") == event and e["slot"] == slot]
            check(len(told) == 1, f"kept: {event} of slot {slot}: {told}")
        print(f"kept: the answer of slot {slot} given by the next life of the key holder; "
              f"{report['failed_slots']} slots failed", flush=True)
        proxy.close()


# ---- away ----

def away():
    """The key holder comes late, is stopped in the middle and is away for a while: the server waits and says so once
    each time; nobody does without it."""
    def waits():
        return sum(e.get("event") == "waiting" for e in f.events("server"))
    with federation() as f:
        for name in ["server", *f.names]:
            f.start(name)
        check(f.follow("server", "waiting", 0), "away: the server does not say that it waits")
        time.sleep(2.5)  # and the setup's time is over once more
        check(waits() == 1, f"away: said {waits()} times that it waits")
        check(not any(e.get("event") == "model" for e in f.events("server")), "away: a slot without the key holder")
        since = f.log_size("server")
        f.start("holder")
        check(f.follow("server", "result", since), "away: no sum when it has come")
        f.kill("holder", signal.SIGTERM)
        check(f.processes["holder"].returncode == 4, f"away: exit {f.processes['holder'].returncode} after SIGTERM")
        since = f.log_size("server")
        check(f.follow("server", "waiting", since), "away: the server does not say again that it waits")
        time.sleep(2.5)
        check(waits() == 2, f"away: said {waits()} times that it waits")
        errors = [e for e in f.events("server") if e.get("error") == "E_TIMEOUT" and e.get("peer") == "holder"]
        check(not errors, f"away: noise: {errors[:2]}")
        f.start("holder")
        report = ends_well(f, "away")
        if report:
            print(f"away: twice, the pooled model; {report['failed_slots']} slots failed", flush=True)


def disk_lost():
    """A copy of the key holder's disk is refused when it has lived on since; with an empty one it begins anew, and
    everybody enrols again."""
    state, copy = "holder.state", "holder.copy"
    with federation() as f:
        f.start_all()
        check(f.follow("server", "result", 0), "disk: no sum")
        f.kill("holder")
        shutil.copytree(f.dir / state, f.dir / copy)
        since = f.log_size("server")
        f.start("holder")
        check(f.follow("server", "result", since), "disk: no sum after a restart")
        f.kill("holder")
        shutil.rmtree(f.dir / state)
        (f.dir / copy).rename(f.dir / state)
        f.start("holder")
        code = f.wait(30, ["holder"])["holder"]
        check(code == 3 and "E_STATE_LOST" in f.log("holder").splitlines()[-1], f"disk: a copy: exit {code}")
        shutil.rmtree(f.dir / state)
        f.start("holder")
        report = ends_well(f, "disk", log_lost=True)
        if report:
            check(report["enrolments"] == 2, f"disk: {report}")
            print(f"disk: a copy refused (exit 3), then made anew: the pooled model; {report['enrolments']} enrolments",
                  flush=True)


def dropouts():
    """Whole cells come and go: every sum is of whole cells, and what is left out is left out of the opening too."""
    def partly(text):
        assert "want: 0.9" in text
        return quick(text).replace("want: 0.9", "want: 0.6")

    with Federation(programs, digits, 9, CELL, layers=6, width=48, rng=rng, edit=partly, seal=True) as f:
        f.start_all()
        name = rng.choice(f.names)
        check(f.follow(name, "upload", 0), f"dropouts: {name} never uploads")
        f.kill(name)
        check(f.wait_for("server", lambda e: e.get("event") == "result" and "error" not in e and len(e["members"]) < 9),
              f"dropouts: no sum without {name}")
        f.start(name)
        codes = f.wait(60)
        if not check(set(codes.values()) == {0}, f"dropouts: exit codes {codes}"):
            print(f.log("server")[-2500:])
            return
        audit = f.audit()
        check(audit.returncode == 0, f"dropouts: audit: {audit.stdout[-1500:]}")
        sums = [e for e in f.events("server") if e.get("event") == "result" and "error" not in e]
        opened = {e["slot"]: e["members"] for e in f.events("holder") if e.get("event") == "open"}
        check(all(opened[e["slot"]] == e["members"] for e in sums), "dropouts: opened over others than summed")
        part = sum(len(e["members"]) < 9 for e in sums)
        check(part > 0, "dropouts: nobody was left out")
        accuracy = f.report()["train_accuracy"][-1]
        check(accuracy > 85, f"dropouts: accuracy {accuracy}")
        print(f"dropouts: {len(sums)} sums, {part} of them without a cell, accuracy {accuracy:.1f} %", flush=True)


# ---- refusals ----

def refusals():
    """Wrong keys, files and modes: exit 2 and a sentence, or E_POLICY by what the server invites to."""
    with Federation(programs, digits, 3, 3, layers=1, rng=rng, seal=True) as f:
        f.tool("keygen", "stranger", "--out", f.dir / "stranger.key")
        run = f.dir / "run.yaml"
        masks = f.dir / "masks.yaml"
        masks.write_text(run.read_text().replace("secure_agg: seal", "secure_agg: masks"))
        other = f.dir / "other.yaml"
        other.write_text(run.read_text().replace("lambda: 1 ", "lambda: 2 "))
        assert other.read_text() != run.read_text() != masks.read_text()

        def tried(label, role, key, config, mode, code, *words, more=()):
            name = f"try-{label}".replace(" ", "-")
            where = "--listen" if role == "server" else "--connect"
            own = {"server": ["--model", f.dir / "no.safetensors"], "keyholder": [],
                   "client": ["--features", f.dir / "site0_x.npy", "--labels", f.dir / "site0_y.npy"]}[role]
            f.start(name, command=[f.agent, "--role", role, where, f"tcp://127.0.0.1:{f.port}", "--config", str(config),
                                   "--key", str(f.dir / f"{key}.key"), "--state", str(f.dir / name), "--threads", "1",
                                   *mode, *map(str, own), *more])
            got = f.wait(20, [name])[name]
            del f.processes[name]
            text = f.log(name)
            check(got == code and all(w in text for w in words), f"{label}: exit {got}, not {code}: {text[-500:]}")

        seal = ["--secure-agg=seal"]
        tried("a client's key", "keyholder", "site0", run, [], 2, "site0 is the client", "not a keyholder")
        tried("the server's key", "keyholder", "server", run, [], 2, "not a keyholder")
        tried("a stranger's key", "keyholder", "stranger", run, [], 2, "does not have the key of 'stranger'")
        tried("its key as a client", "client", "holder", run, seal, 2, "holder is the keyholder", "not a client")
        tried("masks in the config", "keyholder", "holder", masks, [], 2, "E_POLICY", "both must say the same")
        tried("masks everywhere", "keyholder", "holder", masks, ["--secure-agg=masks"], 2, "E_POLICY", "nothing to do")
        for role, key in (("keyholder", "holder"), ("server", "server"), ("client", "site0")):
            tried(f"masks said by a {role}", role, key, run, ["--secure-agg=masks"], 2, "E_POLICY", "same")
        tried("a floor", "keyholder", "holder", run, [], 2, "E_POLICY", more=["--min-cohort", "4"])
        tried("rows", "keyholder", "holder", run, [], 2, "--features has no meaning", more=["--features", "x.npy"])
        f.start("server")
        for name in f.names:
            f.start(name)
        tried("another config", "keyholder", "holder", other, [], 1, "E_POLICY")
        check(f.processes["server"].poll() is None, "refusals: the run did not wait for the right key holder")
        f.start("holder")
        codes = f.wait(60)
        check(set(codes.values()) == {0}, f"refusals: exit codes {codes}")
        print("refusals: 12, and a run that waited for the right one", flush=True)


def without_seal():
    """A build without SEAL: every role says so, nobody does without encryption."""
    with Federation(programs, digits, 3, 3, layers=1, rng=rng, seal=True) as f:
        f.start_all()
        codes = f.wait(20)
        check(set(codes.values()) == {2}, f"without SEAL: exit codes {codes}")
        for name in codes:
            check(NO_SEAL in f.log(name), f"without SEAL: {name}: {f.log(name)}")


if not has_seal(deepafl, digits):
    without_seal()
    print("SKIPPED: this build has no SEAL, so that nothing was encrypted; every role refused the run by name. "
          "To run these tests: scripts/setup-seal, then build again")
    sys.exit(1 if failures else 77)
parts = {"run": [lambda: one_model(5), lambda: one_model(12, ["seal"]), dropouts, refusals],
         "kills": [killed_in_phases, kept_answer, disk_lost],
         "away": [away],
         "threads": [lambda: one_model(5, ["seal"], threads=3)]}
for part in parts[sys.argv[4]]:
    part()
finish()
