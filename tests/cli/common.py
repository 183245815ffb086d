# SPDX-License-Identifier: Apache-2.0
"""What the command-line tests share: running the program and counting failures."""
import hashlib
import json
import subprocess
import sys
from pathlib import Path

try:
    import numpy as np  # noqa: F401 (the tests import it from here)
except ImportError as e:
    print(f"skipped: needs numpy ({e})")
    sys.exit(77)

failures = []


def check(ok, what):
    if not ok:
        failures.append(what)
        print("FAILED:", what, flush=True)
    return ok


def finish():
    print(f"{len(failures)} failures")
    sys.exit(len(failures) > 0)


class Program:
    def __init__(self, exe):
        self.exe = str(Path(exe).resolve())

    def run(self, *args):
        return subprocess.run([self.exe, *map(str, args)], capture_output=True, text=True,
                              timeout=280)

    def json(self, *args):
        """Run with --json, which must work, and return the object."""
        done = self.run(*args, "--json")
        if done.returncode != 0:
            raise SystemExit(f"deepafl {' '.join(map(str, args))}: {done.stderr}")
        return json.loads(done.stdout)


def rows(directory, name="", kind="train", prefix=""):
    """--features and --labels of a set; prefix 'test-' for simulate's held-out rows."""
    stem = Path(directory) / f"{name}{kind}"
    return [f"--{prefix}features", f"{stem}_features.npy", f"--{prefix}labels", f"{stem}_labels.npy"]


def sha256(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def tensors(path):
    """The tensors of a safetensors file: name -> (shape, bytes)."""
    data = Path(path).read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    return {name: (t["shape"], data[start + t["data_offsets"][0]:start + t["data_offsets"][1]])
            for name, t in header.items()}
