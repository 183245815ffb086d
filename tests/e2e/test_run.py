#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server and its clients as processes: the model is the one that all rows in one place give. Agents of small
federations have several threads."""
import random
import sys

from federation import Federation, check, finish, seed, sha256

deepafl, agent, digits = sys.argv[1:4]
sizes = [int(k) for k in sys.argv[4:]] or [5, 12]
rng = random.Random(seed())

for k in sizes:
    with Federation((deepafl, agent), digits, k, 3, rng=rng, threads=3 if k < 10 else 1) as f:
        f.start_all()
        codes = f.wait(180)
        if not check(set(codes.values()) == {0}, f"K = {k}: exit codes {codes}"):
            for name in ["server", *(n for n in f.names if codes[n] != 0)][:3]:
                print(f"{name}:", f.log(name)[-3000:])
            continue
        report = f.report()
        check(report["failed_slots"] == 0, f"K = {k}: {report}")
        check(sha256(f.dir / "model.safetensors") == sha256(f.pooled_model()), f"K = {k}: another model")
        asked = {e["question"] for n in ["server", *f.names] for e in f.events(n) if "question" in e}
        check(asked == set(range(report["sums"])), f"K = {k}: questions {sorted(asked)} in the logs")
        audit = f.audit()
        check(audit.returncode == 0, f"K = {k}: audit: {audit.stdout}{audit.stderr}")
        print(f"K = {k}: {report['sums']} sums, {report['seconds']:.1f} s, "
              f"accuracy {report['train_accuracy'][-1]:.2f} %, server {report['peak_mb']:.0f} MB", flush=True)
finish()
