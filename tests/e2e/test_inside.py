#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Inside CURVE, between a real client and a real server: bits flipped, messages repeated, old, in another order, and
said by others than their senders. Each is refused by its name, both ends go on, and the model is the pooled one to the
bit. Properties T5, T6 and M5 with real processes."""
import random
import sys

from federation import check, finish, seed, sha256
from rogue import Even, errors, relay, start_by

deepafl, agent, digits, rogue = sys.argv[1:5]
n_seed = seed()
rng = random.Random(n_seed)
DROPPED = {"E_AUTH", "E_FORMAT", "E_REPLAY", "E_STATE_LOST"}
SLOW = {"E_STATE", "E_TIMEOUT"}  # who has to wait asks, and what it gets it answers, again


def train(mode, layers=1):
    """A training of six, site0 by way of the rogue. What the rogue sent, what server and site0 logged; None: failed."""
    with Even((deepafl, agent), digits, 6, 3, layers=layers, width=16, rng=rng) as f:
        f.start("server")
        check(f.wait_for("server", lambda e: e.get("event") == "listening"), f"{mode}: the server does not listen")
        r, port = relay(rogue, f, mode, n_seed, "site0", "site1")
        for name in f.names[1:]:
            f.start(name)
        start_by(f, "site0", port)
        codes = f.wait(150)
        sent = r.report()
        if not check(set(codes.values()) == {0}, f"{mode}: exit codes {codes}"):
            print(sent, errors(f, "server"), errors(f, "site0"), f.log("server")[-2500:], f.log("site0")[-1500:])
            return None
        check(sha256(f.dir / "model.safetensors") == sha256(f.pooled_model()), f"{mode}: another model")
        report = f.report()
        check(report["failed_slots"] == 0, f"{mode}: {report['failed_slots']} slots failed")
        for name in f.names[1:]:
            check(not errors(f, name), f"{mode}: {name} is disturbed: {errors(f, name)}")
        audit = f.audit()
        check(audit.returncode == 0, f"{mode}: audit: {audit.stdout[-500:]}")
        return sent, errors(f, "server"), errors(f, "site0"), report["seconds"]


def by_name(found):
    return {name: sum(n for (e, _), n in found.items() if e == name) for name in sorted({e for e, _ in found})}


def flips():
    got = train("flip")
    if got is None:
        return
    for way, found in (("to_server", got[1]), ("to_client", got[2])):
        sent, names = got[0][way], by_name(found)
        # Every one of them is told of; the last two reach a client that has been told of the end, and may have left. A
        # HELLO of before the run is answered in no run: the client drops that too.
        extra = sent["flipped"] + sent["again"] + sent["old"]
        refused = sum(names.get(e, 0) for e in DROPPED)
        few, many = (2, got[0]["to_server"]["hello_again"]) if way == "to_client" else (0, 0)
        check(extra - few <= refused <= extra + many, f"flip, {way}: {extra} sent, {names} refused")
        check(set(names) <= DROPPED | SLOW, f"flip, {way}: {names}")
        check(names.get("E_STATE_LOST", 0) == sent["hello_again"], f"flip, {way}: HELLOs again: {sent}, {names}")
        # Whoever the message says it is from, it came by this connection.
        peers = {p for e, p in found if e in DROPPED}
        check(peers == {"site0" if way == "to_server" else "server"}, f"flip, {way}: {peers} blamed")
        print(f"flip, {way}: {sent}: {names}; {got[3]:.1f} s", flush=True)


def swaps():
    got = train("swap", layers=2)
    if got is None:
        return
    for way, found in (("to_server", got[1]), ("to_client", got[2])):
        sent, names = got[0][way], by_name(found)
        check(sent["swapped"] > 0, f"swap, {way}: none")
        late = names.get("E_REPLAY", 0) + names.get("E_STATE_LOST", 0)  # the latter: a HELLO
        # The last may reach a client that has been told of the end.
        check(late >= sent["swapped"] - (way == "to_client"), f"swap, {way}: {sent['swapped']}, refused {names}")
        check(set(names) <= DROPPED | SLOW, f"swap, {way}: {names}")
        print(f"swap, {way}: {sent['swapped']} of {sent['genuine']}: {names}; {got[3]:.1f} s", flush=True)


def others():
    """M5."""
    got = train("who")
    if got is None:
        return
    sent, found = got[0]["to_server"], got[1]
    found = {key: n for key, n in found.items() if key[0] in DROPPED}
    check(sent["forged"] > 0 and found == {("E_AUTH", "site0"): sent["forged"]}, f"who: {sent}, refused {found}")
    print(f"who: {sent['forged']} in other names or with other keys: {found}", flush=True)


for part in (flips, swaps, others):
    part()
finish()
