# SPDX-License-Identifier: Apache-2.0
"""scripts/leak-demo: what it shows a person, and what it makes of a program that fails.
    test_leak_demo.py SOURCE_ROOT BUILD_ROOT"""
import os
import re
import subprocess
import sys
import tempfile

from common import check, finish

root, build = sys.argv[1:3]


def show(where):
    got = subprocess.run([os.path.join(root, "scripts", "leak-demo"), where], capture_output=True, text=True)
    return got.returncode, got.stdout + got.stderr


code, text = show(build)
print(text)
check(code == 0, "exit code 0")
exact = re.search(r"error of the site's matrix: (\S+)", text)
check(exact and float(exact[1]) < 1e-9, "without cells a site's matrix is read to 1e-9")
cells = re.search(r"error of the cell's matrix: (\S+), of the site's: (\S+)", text)
check(cells and float(cells[1]) < 1e-9, "with cells the cell's")
check(cells and float(cells[2]) > 0.1, "and not the site's")
check("6 of 6 sites refuse: E_CELL_SPLIT" in text, "everybody refuses a split cell by its name")
check(not re.search(r"^\[", text, re.M), "no line of the test framework")

with tempfile.TemporaryDirectory() as fake:
    os.makedirs(os.path.join(fake, "tests", "lab"))
    program = os.path.join(fake, "tests", "lab", "test_sums_gram")
    with open(program, "w") as f:
        f.write("#!/bin/sh\necho '[  FAILED  ] show'\nexit 1\n")
    os.chmod(program, 0o755)
    code, text = show(fake)
    check(code == 1 and "FAILED" in text, "a failure is exit code 1 and shown")
finish()
