#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Strangers, wrong configurations and noise at the door of a run: each is refused by name, and the run does not
notice. Properties T1, T3, T4, M5 and M7 with real processes."""
import json
import random
import shutil
import signal
import socket
import sys
import time

from federation import Federation, check, finish, np, seed, sha256

deepafl, agent, digits = sys.argv[1:4]
rng = random.Random(seed())

SIGNATURE = b"\xff\0\0\0\0\0\0\0\0\x7f"


def greeting(mechanism, major=3, minor=0):
    return SIGNATURE + bytes([major, minor]) + mechanism.ljust(20, b"\0") + bytes(32)


def open_socket(f):
    s = socket.create_connection((f.host, f.port), timeout=20)
    s.settimeout(20)
    return s


def until_closed(s):
    """What the other side says before it hangs up; None if it does not."""
    got = b""
    try:
        while True:
            more = s.recv(4096)
            if not more:
                return got
            got += more
    except socket.timeout:
        return None
    except OSError:
        return got
    finally:
        s.close()


def command(name, length):
    return b"\x04" + bytes([length + 1 + len(name)]) + bytes([len(name)]) + name


def copy_of(f, name, change):
    """A run.yaml of one's own."""
    path = f.dir / name
    text = (f.dir / "run.yaml").read_text()
    changed = change(text)
    assert changed != text, name
    path.write_text(changed)
    return path


def intruder(f, name, identity, config=None, state=None, more=(), mode=("--secure-agg",)):
    """A client process beside the honest ones, with a log of its own."""
    args = ["--role", "client", "--connect", f"tcp://{f.host}:{f.port}", "--features", f.dir / "site5_x.npy",
            "--labels", f.dir / "site5_y.npy", "--config", config or f.dir / "run.yaml", "--key",
            f.dir / f"{identity}.key", "--state", state or f.dir / f"{name}.state", "--threads", "1", *mode, *more]
    f.start(name, command=[f.agent, *map(str, args)])


def refused_here(f, name, code, *words, seconds=20):
    """The process has ended with this code, and says so in these words."""
    got = f.wait(seconds, [name])[name]
    del f.processes[name]
    text = f.log(name)
    check(got == code and all(w in text for w in words), f"{name}: exit {got}, not {code}; {text[-600:]}")
    print(f"{name}: exit {got}: {text.strip().splitlines()[-1][:150] if text.strip() else ''}", flush=True)


def says(f, name, *words, seconds=20):
    """A line of a log with all these words."""
    return f.wait_for(name, lambda e: all(w in str(e) for w in words), seconds)


def wrong_configs(f):
    """Clients that stay away by themselves, or are kept away by what the server invites to."""
    swap = {"wrong_lambda": ("lambda: 1 ", "lambda: 2 "), "wrong_seed": ('seed: "', 'seed: "'),
            "wrong_policy": ("a: 1 ", "a: 0 ")}
    for name, (old, new) in swap.items():
        if name == "wrong_seed":
            at = (f.dir / "run.yaml").read_text().split('seed: "')[1][:64]
            old, new = at, at[1:] + ("0" if at[0] != "0" else "1")
        config = copy_of(f, f"{name}.yaml", lambda t, old=old, new=new: t.replace(old, new))
        # Its own state: whoever corrects the file and starts again goes on from there.
        intruder(f, name, "site5", config=config, state=f.dir / "site5.state")
        refused_here(f, name, 1, "E_POLICY", "the server's config is another one")
    keys = [ln for ln in (f.dir / "run.yaml").read_text().splitlines() if ln.startswith('  - key: "site')]
    for name, more, says in (("wrong_roster", ("", ""), "the server's roster is another one"),
                             ("wrong_both", ("a: 1 ", "a: 0 "), "the server has another run file")):
        config = copy_of(f, f"{name}.yaml", lambda t, more=more: t.replace(keys[0], "@").replace(
            keys[1], keys[0]).replace("@", keys[1]).replace(*more))
        intruder(f, name, "site5", config=config, state=f.dir / "site5.state")
        refused_here(f, name, 1, "E_POLICY", says)
        # Nothing but errors is shown then, but these are.
        intruder(f, f"{name}_quiet", "site5", config=config, state=f.dir / "site5.state", more=["--quiet"])
        refused_here(f, f"{name}_quiet", 1, "E_POLICY", says, '"event":"out"')
        check('"event":"connected"' not in f.log(f"{name}_quiet"), "--quiet: what is no error is shown")
    floors = {"min_cohort": (["--min-cohort", "4"], "m = 3"), "min_cell": (["--min-cell", "4"], "g = 3")}
    for name, (more, says) in floors.items():
        intruder(f, name, "site5", more=more)
        refused_here(f, name, 2, "E_POLICY", f"{says}, this client insists on 4; ask for a stronger run")
    plain = copy_of(f, "plain.yaml", lambda t: t.replace("secure_agg: masks", "secure_agg: none"))
    intruder(f, "plain", "site5", config=plain, mode=())
    refused_here(f, "plain", 2, "E_POLICY", "no masks", "--allow-plaintext")
    intruder(f, "plain_allowed", "site5", config=plain, state=f.dir / "site5.state", mode=(),
             more=["--allow-plaintext"])
    refused_here(f, "plain_allowed", 1, "E_POLICY")
    lines = [ln for ln in (f.dir / "run.yaml").read_text().splitlines() if not ln.startswith("    cell:")]
    single = copy_of(f, "single.yaml", lambda t: "\n".join(lines).replace("  g: 3 ", "  g: 1 ").replace(
        "by: cells", "by: clients") + "\n")
    intruder(f, "single", "site5", config=single)
    refused_here(f, "single", 2, "E_POLICY", "single clients out")
    for name, mode in {"no_mode": (), "mode_none": ("--secure-agg", "none"), "seal": ("--secure-agg", "seal")}.items():
        intruder(f, name, "site5", mode=mode)
        refused_here(f, name, 2, "E_POLICY", "both must say the same")
    intruder(f, "plain_masks", "site5", config=plain, more=["--allow-plaintext"])
    refused_here(f, "plain_masks", 2, "E_POLICY", "both must say the same")


def wrong_keys(f):
    """T1, T3, M7."""
    stranger = f.tool("keygen", "stranger", "--out", f.dir / "stranger.key").stdout.strip()
    intruder(f, "stranger_home", "stranger")
    refused_here(f, "stranger_home", 2, "does not have the key of 'stranger'")
    # With a roster of its own making it does knock.
    own = (f.dir / "site5.key").read_text().splitlines()[1]
    theirs = copy_of(f, "stranger.yaml", lambda t: t.replace(own, stranger))
    intruder(f, "stranger", "stranger", config=theirs)
    # M5: the signing key of a stranger next to the transport key of a client, and the other way round.
    words, mine = stranger.split(), own.split()
    mixed = copy_of(f, "mixed.yaml", lambda t: t.replace(own, f"{words[0]} {words[1]} {mine[2]}"))
    intruder(f, "mixed", "stranger", config=mixed)
    refused_here(f, "mixed", 2, "another curve25519 key")
    server = (f.dir / "server.key").read_text().splitlines()[1]
    other = f.tool("keygen", "server", "--out", f.dir / "other.key").stdout.strip()
    false_server = copy_of(f, "false_server.yaml", lambda t: t.replace(server, other))
    intruder(f, "false_server", "site5", config=false_server)
    check(says(f, "stranger", "refused", "E_AUTH", "config check"), "the stranger is not told")
    check(says(f, "false_server", "refused", "E_AUTH", "config check"), "a client with another server key is not told")
    told = says(f, "server", "E_AUTH", "not in the roster")
    check(told, "the server does not speak of the stranger")
    print(f"server: {told and told.get('says')}")
    for name in ("stranger", "false_server"):
        check("invite" not in f.log(name), f"{name} was invited")
        f.kill(name)
        del f.processes[name]


def noise(f):
    """T4: what is not CURVE."""
    cases = {
        "NULL": greeting(b"NULL") + command(b"READY", 0),
        "PLAIN": greeting(b"PLAIN") + command(b"HELLO", 10) + b"\x04user\x04pass",
        "ZMTP 2": SIGNATURE + b"\x01\x05\0\0",
        "ZMTP 1": b"\x01\0",
        "HTTP": b"GET / HTTP/1.1\r\nHost: model\r\n\r\n",
        "noise": rng.randbytes(4096),
        "CURVE and noise": greeting(b"CURVE") + command(b"HELLO", 194) + rng.randbytes(194),
        "a frame of 2^62 bytes": greeting(b"CURVE") + b"\x06" + b"\x40" + bytes(7) + rng.randbytes(64),
    }
    for what, sent in cases.items():
        s = open_socket(f)
        s.sendall(sent)
        if what == "ZMTP 1":
            s.shutdown(socket.SHUT_WR)
        got = until_closed(s)
        check(got is not None, f"{what}: the connection stays open")
        check(got is not None and len(got) < 300, f"{what}: is told {len(got or b'')} bytes")
    for reason in ("does not use CURVE", "does not speak ZMTP 3", "the keys do not fit"):
        check(says(f, "server", "E_AUTH", reason), f"the server does not say: {reason}")
    print(f"noise: {len(cases)} kinds, each hung up on")


def flood(f, n=2000, hold=150):
    """Thousands of connections, up to `hold` of them open at a time."""
    held, failed = [], 0
    for _ in range(n):
        try:
            s = socket.create_connection((f.host, f.port), timeout=5)
            s.sendall(rng.choice([b"", b"\xff", greeting(b"CURVE")]))
            held.append(s)
        except OSError:
            failed += 1
        if len(held) > hold:
            held.pop(rng.randrange(len(held))).close()
    for s in held:
        s.close()
    print(f"flood: {n} connections, {failed} not accepted")


class Even(Federation):
    """Sites of one size: a tiny one may rightly refuse a question (E_DOMINATED)."""

    def deal(self, x, y):
        super().deal(x, y)
        for i, name in enumerate(self.names):
            np.save(self.dir / f"{name}_x.npy", x[i::self.k])
            np.save(self.dir / f"{name}_y.npy", y[i::self.k])


def under_siege():
    with Even((deepafl, agent), digits, 6, 3, layers=20, rng=rng) as f:
        f.start("server")
        check(says(f, "server", "listening"), "the server does not listen")
        stalled = [open_socket(f) for _ in range(3)]
        stalled[1].sendall(b"\xff")
        stalled[2].sendall(greeting(b"CURVE"))
        for name in f.names[:5]:
            f.start(name)
        wrong_configs(f)
        f.start("site5")
        check(says(f, "server", "result"), "no training")
        for attack in (wrong_keys, noise, flood):
            # One site takes its time, so that the slot is still open when the attack is over.
            f.processes["site0"].send_signal(signal.SIGSTOP)
            attack(f)
            check(f.processes["server"].poll() is None, "the run was over before all had tried")
            f.processes["site0"].send_signal(signal.SIGCONT)
            time.sleep(0.1)
        codes = f.wait(150)
        if not check(set(codes.values()) == {0}, f"under siege: exit codes {codes}"):
            print(f.log("server")[-3000:])
            return
        check(says(f, "server", "E_AUTH", "handshake not finished") or says(f, "server", "E_AUTH", "too many"),
              "the server does not speak of the half-open")
        check(all(until_closed(s) is not None for s in stalled), "a half-open connection stays")
        report = f.report()
        lost = [e for e in f.events("server") if e.get("event") == "lost" and "site5" not in e["says"]]
        check(not lost and report["failed_slots"] == 0, f"the run was disturbed: {report['failed_slots']}, {lost[:3]}")
        check(sha256(f.dir / "model.safetensors") == sha256(f.pooled_model()), "under siege: another model")
        audit = f.audit(names=["server", *f.names[:5]])
        check(audit.returncode == 0, f"under siege: audit: {audit.stdout[-500:]}")
        print(f"under siege: {report['sums']} sums, {report['seconds']:.1f} s, server {report['peak_mb']:.0f} MB")


def uploads(state):
    """What an audit log says of each slot's upload."""
    lines = [json.loads(ln) for ln in (state / "audit.log").read_text().splitlines()]
    return {ln["slot"]: ln["data"] for ln in lines if ln["event"] == "upload"}


def twins(kind):
    """M7: one identity twice, with an empty state or a copy of the other's. The newer life is the one that counts, the
    other is told and ends; nobody else does, and the logs tell one story."""
    with Even((deepafl, agent), digits, 6, 3, layers=20, rng=rng) as f:
        f.start_all()
        check(says(f, "server", "result"), "no training")
        f.processes["site0"].send_signal(signal.SIGSTOP)
        state = f.dir / "twin.state"
        intruder(f, "locked", "site5", state=f.dir / "site5.state")
        refused_here(f, "locked", 2, "in use")
        if kind == "copy":
            shutil.copytree(f.dir / "site5.state", state)
        intruder(f, "twin", "site5", state=state)
        told = says(f, "server", "site5", "replaced by a second connection with its key", seconds=30)
        check(told, f"{kind}: the server does not speak of the second process")
        f.processes["site0"].send_signal(signal.SIGCONT)
        old, new = ("site5", "twin") if kind == "copy" else ("twin", "site5")
        refused_here(f, old, 3, "E_STATE_LOST", "a copy of it is in use", seconds=60)
        check(says(f, "server", "E_STATE_LOST", "site5"), f"{kind}: the server does not name it")
        codes = f.wait(120, ["server", *f.names[:5], new])
        if not check(set(codes.values()) == {0}, f"twin, {kind}: exit codes {codes}"):
            print(f.log("server")[-3000:])
            return
        report = f.report()
        check((f.dir / "model.safetensors").exists(), f"twin, {kind}: no model")
        check(f.audit(names=["server", *f.names[:5]]).returncode == 0, f"twin, {kind}: audit of the others")
        audit = f.audit()
        if kind == "copy":
            # What the copy did is not in the log of the one it was copied from.
            check(audit.returncode == 1 and "log of site5 is truncated or forked" in audit.stdout,
                  f"twin, {kind}: audit: {audit.stdout[-500:]}")
            mine, other = uploads(f.dir / "site5.state"), uploads(state)
            both = mine.keys() & other.keys()
            check(both and all(mine[e] == other[e] for e in both), f"twin, {kind}: uploads differ in one of {both}")
        else:
            check(audit.returncode == 0, f"twin, {kind}: audit: {audit.stdout[-500:]}")
        print(f"twin, {kind}: {report['sums']} sums, {report['failed_slots']} slots without one", flush=True)


under_siege()
twins("empty")
twins("copy")
finish()
