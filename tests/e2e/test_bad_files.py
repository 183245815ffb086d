#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""R2: files that an agent cannot use. Exit code 2, one line that names the file and what is wrong with it, nothing
sent: a client does not connect, a server does not listen."""
import random
import shutil
import socket
import subprocess
import sys
import time

from federation import Federation, Trap, check, finish, np, seed

deepafl, agent, digits = sys.argv[1:4]
rng = random.Random(seed())


def listens(f):
    with socket.socket() as s:
        return s.connect_ex((f.host, f.port)) == 0


def run(f, name):
    """The agent's exit code and what it said; whether it connected or listened."""
    state = f.dir / f"{name}.state"
    shutil.rmtree(state, ignore_errors=True)
    if name != "server":
        with Trap(f) as trap:
            trap.socket.settimeout(0.05)
            done = subprocess.run(f.command(name), capture_output=True, text=True, timeout=60)
            return done.returncode, done.stderr, trap.caught()
    p = subprocess.Popen(f.command(name), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    heard = False
    while p.poll() is None and not heard:
        heard = listens(f)
        time.sleep(0.005)
    if heard:
        p.terminate()
    return p.wait(60), p.communicate()[1], heard


def refused(f, name, what, path, says, change):
    """With path changed this agent does not start; the file is put back."""
    good, mode = path.read_bytes(), path.stat().st_mode & 0o777
    change(path, good)
    code, text, sent = run(f, name)
    path.unlink(missing_ok=True)
    path.write_bytes(good)
    path.chmod(mode)
    what = f"{name}, {path.name} {what}"
    check(code == 2, f"{what}: exit code {code}: {text}")
    check(len(text.splitlines()) == 1 and path.name in text and any(s in text for s in says), f"{what}: {text}")
    check(not sent, f"{what}: something was sent")
    print(f"{what}: {text.strip()[-150:]}", flush=True)


def cut(part):
    return lambda path, good: path.write_bytes(good[:int(len(good) * part)])


def mode(bits):
    return lambda path, good: path.chmod(bits)


def gone(path, good):
    path.unlink()


def twice(path, good):
    """One of the keys stands there once more, with the same value."""
    lines = good.decode().splitlines(keepends=True)
    at = rng.choice([i for i, ln in enumerate(lines)
                     if ln.startswith("  ") and ":" in ln.split("#")[0] and "- " not in ln])
    path.write_text("".join(lines[:at + 1] + lines[at:]))


def renamed(path, good):
    """Its key is in the roster, under another name."""
    path.write_bytes(good.replace(b'"server ', b'"boss ').replace(b'"site0 ', b'"praxis '))


def digit(path, good):
    """Another hexadecimal digit somewhere: the hash at the end does not fit any more."""
    at = rng.choice([i for i, b in enumerate(good) if b in b"0123456789abcdef" and i > len(good) // 2])
    path.write_bytes(good[:at] + (b"0" if good[at:at + 1] != b"0" else b"1") + good[at + 1:])


def array(make):
    return lambda path, good: np.save(path, make(np.load(path)))


def no_log(f, name, what, data):
    """A file that is no audit log of this agent's stays as it is."""
    path = f.dir / "notes.txt"
    path.write_bytes(data)
    path.chmod(0o600)
    done = subprocess.run(f.command(name, "--audit", path), capture_output=True, text=True, timeout=60)
    shutil.rmtree(f.dir / f"{name}.state", ignore_errors=True)
    what = f"{name}, --audit {what}"
    check(done.returncode == 2 and len(done.stderr.splitlines()) == 1 and str(path) in done.stderr, f"{what}: {done}")
    check(path.read_bytes() == data, f"{what}: it was changed")


def no_meaning(f, name, *more):
    """Options that this role does not have are refused, not ignored."""
    done = subprocess.run(f.command(name, *more), capture_output=True, text=True, timeout=60)
    check(done.returncode == 2 and f"{more[0]} has no meaning" in done.stderr, f"{name} {more}: {done}")
    check(not (f.dir / f"{name}.state").exists(), f"{name} {more}: there is a state")


with Federation((deepafl, agent), digits, 3, 3, layers=1, rng=rng) as f:
    # The control: with good files the one listens and the other connects.
    check(run(f, "server")[::2] == (4, True), "the server does not listen")
    with Trap(f) as trap:
        trap.socket.settimeout(20)
        f.start("site0")
        check(trap.caught(), "site0 does not connect")
        f.kill("site0")
    for name in ("server", "site0"):
        key = f.dir / f"{name}.key"
        for part in (0, 0.25, 0.5, 0.9):
            refused(f, name, f"cut at {part}", f.dir / "run.yaml",
                    ["empty", "not YAML", "missing", "roster", "policy", "E_P", "line "], cut(part))
            refused(f, name, f"cut at {part}", key, ["not a whole"], cut(part))
        refused(f, name, "with a key twice", f.dir / "run.yaml", ["given twice"], twice)
        refused(f, name, "with another name", f.dir / "run.yaml", [f"key of '{name}', whom the roster of"], renamed)
        refused(f, name, "without", f.dir / "run.yaml", ["No such file"], gone)
        refused(f, name, "with another digit", key, ["not a whole"], digit)
        refused(f, name, "without", key, ["No such file"], gone)
        for bits in (0o644, 0o640, 0o604):
            refused(f, name, f"of mode {bits:o}", key, ["chmod", f"{bits:o}"], mode(bits))
        for what, data in (("a torn text", b"no newline"), ("a text", b"two\nlines\n"),
                           ("rows", (f.dir / "site0_x.npy").read_bytes())):
            no_log(f, name, what, data)
    shutil.rmtree(f.dir / "site0.state", ignore_errors=True)
    no_meaning(f, "site0", "--json")
    no_meaning(f, "site0", "--listen", "tcp://127.0.0.1:1")
    rows, labels = f.dir / "site0_x.npy", f.dir / "site0_y.npy"
    for path in (rows, labels):
        for part in (0, 0.001, 0.5, 0.9999):
            refused(f, "site0", f"cut at {part}", path, ["cut short", "not a", "empty", "header"], cut(part))
        refused(f, "site0", "without", path, ["No such file"], gone)
    refused(f, "site0", "of other rows", labels, ["rows", "labels"], array(lambda y: y[1:]))
    refused(f, "site0", "with another class", labels, ["label 10"], array(lambda y: np.append(y[1:], y.dtype.type(10))))
    refused(f, "site0", "of too few columns", rows, ["63", "columns"], array(lambda x: x[:, 1:]))
    refused(f, "site0", "with a hole", rows, ["not finite"], array(lambda x: np.where(x == x.max(), np.nan, x)))
finish()
