#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server and its clients as processes: the model is the one that all rows in one place give."""
import random
import sys

from federation import Federation, check, finish, seed, sha256

deepafl, agent, digits = sys.argv[1:4]
sizes = [int(k) for k in sys.argv[4:]] or [5, 12]
rng = random.Random(seed())

for k in sizes:
    with Federation((deepafl, agent), digits, k, 3, rng=rng) as f:
        f.start_all()
        codes = f.wait(180)
        if not check(set(codes.values()) == {0}, f"K = {k}: exit codes {codes}"):
            print(f.log("server")[-3000:], f.log("site0")[-2000:])
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
