#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is on the wire between real processes, and what becomes of it when it is sent again: T6 and C8."""
import random
import socket
import sys
import time

from federation import Federation, check, finish, free_port, has_seal, np, seed, sha256
from proxy import Proxy

deepafl, agent, digits = sys.argv[1:4]
rng = random.Random(seed())


def begin(f):
    """The server at a port of its own, the others by way of the proxy."""
    server_port = free_port()
    f.port = server_port
    f.start("server")
    check(f.wait_for("server", lambda e: e.get("event") == "listening"), "the server does not listen")
    proxy = Proxy(server_port)
    f.port = proxy.port
    for name in [*f.others[1:], *f.names]:
        f.start(name)
    return proxy, server_port


def ended_well(f, what):
    codes = f.wait(100)
    if not check(set(codes.values()) == {0}, f"{what}: exit codes {codes}"):
        print(f.log("server")[-2500:], f.log("site0")[-1000:])
        return False
    return check(sha256(f.dir / "model.safetensors") == sha256(f.pooled_model()), f"{what}: another model")


def vault_pieces(path):
    """Pieces of slot secrets: 16 bytes at a time of what is not zero, behind the two blocks of the stamp."""
    raw = path.read_bytes()[8192:]
    pieces = (raw[i:i + 16] for i in range(0, len(raw) - 16, 16))
    return {p for p in pieces if len(set(p)) > 8}


def canaries(f):
    found = {}
    for name in [*f.others, *f.names]:
        for line in (f.dir / f"{name}.key").read_text().splitlines():
            if line.startswith("seed "):
                key = line.split()[1]
                raw = bytes.fromhex(key)
                found[f"key of {name}"] = {raw[i:i + 16] for i in range(0, 64, 16)} | {key[:32].encode()}
    for name in f.names:
        x, y = np.load(f.dir / f"{name}_x.npy"), np.load(f.dir / f"{name}_y.npy")
        rows = {r.astype(t).tobytes() for r in x[:40] for t in (x.dtype, np.float64, np.float32)}
        found[f"rows of {name}"] = {r[i:i + 16] for r in rows for i in range(0, len(r) - 16, 16)
                                    if len(set(r[i:i + 16])) > 8}
        found[f"labels of {name}"] = {y.astype(t).tobytes()[:64] for t in (y.dtype, np.int64, np.int32, np.uint8)}
    return found


def seen(wire, pieces):
    """Which 16-byte pieces are on the wire, at any offset; shorter or longer ones are searched one by one."""
    short = {p for p in pieces if len(p) == 16}
    hits = {p for p in pieces - short if p in wire}
    if short:
        hits |= {wire[i:i + 16] for i in range(len(wire) - 15) if wire[i:i + 16] in short}
    return hits


def secrecy(seal):
    """C8. With encryption the key holder's connection and what it keeps are searched too."""
    what = "capture with encryption" if seal else "capture"
    with Federation((deepafl, agent), digits, 3, 3, layers=1, width=24, rng=rng, seal=seal) as f:
        # Values that are rare by chance: the features are multiplied by a number that nothing else has.
        for name in [*f.names, "all"]:
            x = np.load(f.dir / f"{name}_x.npy").astype(np.float64)
            np.save(f.dir / f"{name}_x.npy", x * 1.0123456789012345)
        proxy, server_port = begin(f)
        vault = set()
        end = time.monotonic() + 60
        while f.processes["server"].poll() is None and time.monotonic() < end:
            for name in [*f.others[1:], *f.names]:
                path = f.dir / f"{name}.state" / "vault"
                if path.exists():
                    vault |= vault_pieces(path)
            time.sleep(0.02)
        if not ended_well(f, what):
            return
        found = dict(canaries(f), **{"slot secrets": vault})
        wire = b"\0".join(bytes(s[1]) for s in proxy.streams)
        for kind, pieces in found.items():
            check(pieces, f"{what}: {kind}: no canary")
            hits = seen(wire, pieces)
            check(not hits, f"{what}: {kind}: {len(hits)} pieces on the wire")
        # Control: the same search finds what is sent in the clear by the same way.
        echo = socket.create_server(("127.0.0.1", 0))
        open_proxy = Proxy(echo.getsockname()[1])
        with socket.create_connection(("127.0.0.1", open_proxy.port)) as s:
            for pieces in found.values():
                s.sendall(b"?" + sorted(pieces)[0])
        end = time.monotonic() + 10
        while time.monotonic() < end:
            clear = b"\0".join(bytes(s[1]) for s in open_proxy.streams)
            if all(seen(clear, pieces) for pieces in found.values()):
                break
            time.sleep(0.05)
        for kind, pieces in found.items():
            check(len(seen(clear, pieces)) >= 1, f"control: {kind} is not found in the clear")
        open_proxy.close()
        echo.close()
        print(f"{what}: {len(wire)} bytes of {proxy.connections} connections, {sum(map(len, found.values()))} "
              f"canaries ({len(vault)} of slot secrets), none seen; all {len(found)} kinds found in the clear")
        proxy.close()


def replay():
    """T6: what a client has sent, sent again."""
    with Federation((deepafl, agent), digits, 3, 3, layers=6, width=48, rng=rng) as f:
        proxy, server_port = begin(f)
        check(f.wait_for("server", lambda e: e.get("event") == "result"), "replay: no training")
        recorded = [bytes(s[1]) for s in proxy.streams if s[0]]
        answers = []
        for stream in recorded:
            got = b""
            with socket.create_connection(("127.0.0.1", server_port), timeout=10) as s:
                s.settimeout(1)
                try:
                    s.sendall(stream)
                    while True:
                        more = s.recv(65536)
                        if not more:
                            break
                        got += more
                except OSError:
                    pass
            answers.append(len(got))
        # Greeting (64) and WELCOME (170): after that the server wants proof of a key that nobody has recorded.
        check(answers and max(answers) <= 64 + 170, f"replay: answers of {answers} bytes")
        check(f.wait_for("server", lambda e: e.get("event") == "refused" and "E_AUTH" in e["says"], 15),
              "replay: not refused by name")
        if ended_well(f, "replay"):
            replaced = [e for e in f.events("server") if e.get("event") == "lost" and "second" in e.get("says", "")]
            check(not replaced, f"replay: {replaced[:2]}")
            check(f.report()["failed_slots"] == 0, "replay: slots failed")
            print(f"replay: {len(recorded)} streams of up to {max(map(len, recorded))} bytes, answers {answers}")
        proxy.close()


secrecy(False)
if has_seal(deepafl, digits):
    secrecy(True)
else:
    print("SKIPPED: the capture with encryption: this build has no SEAL")
replay()
finish()
