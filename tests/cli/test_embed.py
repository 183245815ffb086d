# SPDX-License-Identifier: Apache-2.0
"""share/examples/embed.c: three sites in processes of a foreign program, one of them killed; the model is that of
`deepafl simulate`, byte for byte, and no secret of a slot is left on a disk.
usage: test_embed.py DEEPAFL DIGITS EMBED"""
import subprocess
import sys
import tempfile
from pathlib import Path

from common import Program, check, finish, rows, sha256


def main():
    deepafl, digits, embed = Program(sys.argv[1]), sys.argv[2], str(Path(sys.argv[3]).resolve())
    with tempfile.TemporaryDirectory() as scratch:
        run, reference = Path(scratch) / "run", Path(scratch) / "reference.safetensors"
        features, labels = rows(digits)[1::2]
        done = subprocess.run([embed, run, features, labels], capture_output=True, text=True, timeout=100)
        print(done.stdout, done.stderr)
        check(done.returncode == 0, "the example ends well")
        check("site 1 was killed" in done.stdout, "a site was killed")
        made = deepafl.run("simulate", *rows(digits), "--clients", 1, "--width", 32, "--hidden", 32, "--layers", 2,
                           "--lambda", 1, "--gamma", 0.01, "--seed", 7, "--model", reference)
        if not check(made.returncode == 0, f"simulate: {made.stderr}"):
            finish()
        if check((run / "model.safetensors").exists(), "there is a model"):
            check(sha256(run / "model.safetensors") == sha256(reference), "the model is that of all rows in one place")
        for u in range(3):
            state = run / f"site{u}.state"
            check((state / "journal").exists(), f"site {u} has a journal")
            check(not list(state.glob("secret.*")), f"site {u} has erased the secrets of its slots")
    finish()


if __name__ == "__main__":
    main()
