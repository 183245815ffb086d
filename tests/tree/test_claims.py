# SPDX-License-Identifier: Apache-2.0
"""claims.py sees a property, a test, a file or an error that is no longer there.
    test_claims.py SOURCE_ROOT BUILD_ROOT"""
import os
import sys
import tempfile
from pathlib import Path

import claims

root, build = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
if not (build / "meson-info" / "intro-tests.json").exists():
    sys.exit(77)
suite = claims.Suite(root, build)
if "attacks_S1" not in suite.names:
    print("skipped: a build without the lab's tests (needs cmocka)")
    sys.exit(77)
failures = 0


def mirror(at):
    """The tree in links, but the pages and the names of the tests' files, which a case may change."""
    for name in os.listdir(root):
        if name not in ("tests", "threat-model", build.name):
            (at / name).symlink_to(root / name)
    (at / "threat-model").mkdir()
    for page in (root / "threat-model").iterdir():
        (at / "threat-model" / page.name).write_text(page.read_text())
    (at / "tests").mkdir()
    (at / "tests" / "README.md").write_text((root / "tests" / "README.md").read_text())
    for entry in (root / "tests").iterdir():
        if entry.is_dir():
            (at / "tests" / entry.name).mkdir()
            for file in entry.iterdir():
                (at / "tests" / entry.name / file.name).symlink_to(file)


def case(what, change, *expected):
    """After a change: findings that name each of `expected`, and none when nothing is expected."""
    global failures
    with tempfile.TemporaryDirectory() as d:
        mirror(Path(d))
        gone = change(Path(d)) if change else None
        suite.names.discard(gone)
        found = claims.findings(Path(d), suite)
        suite.names |= {gone} if gone else set()
    ok = found if expected else not found
    for part in expected:
        ok = ok and any(part in f for f in found)
    if not ok:
        failures += 1
        print(f"FAILED: {what}; found {found}")


def edit(page, old, new):
    def change(at):
        text = (at / page).read_text()
        assert old in text, (page, old)
        (at / page).write_text(text.replace(old, new))
    return change


def remove(file):
    return lambda at: (at / file).unlink()


def add(text):
    return lambda at: (at / "threat-model" / "more.md").write_text(text) and None


def add_test(at):
    (at / "tests" / "lab" / "test_new.c").write_text("int main(void) { return 0; }\n")
    add("`lab/test_new.c`\n")(at)


case("nothing is wrong with the tree as it is", None)
case("a property that is renamed", edit("tests/README.md", "| S7 |", "| S77 |"), "no property S7 in")
case("a property that is taken out of the table", edit("tests/README.md", "| L11 |", "| |"), "no property L11 in")
case("a test file that is removed", remove("tests/lab/test_sums_gram.c"), "L1: there is no lab/test_sums_gram.c")
case("a test that is no longer run", lambda at: "slot_model", "no test runs spin/slot.pml")
case("an attack that is no longer run", lambda at: "attacks_S5", "there is no test attacks_S5")
case("the only test of a property", lambda at: "attacks_S15", "there is no test attacks_S15", "S15: no test shows it")
case("a range with a hole", add("S1-S17\n"), "more.md: no property S17")
case("a range in words", add("C1 to C10\n"), "more.md: no property C10")
case("a file that is not there", add("`lab/test_nothing.c`, `scripts/leek-demo`\n"), "lab/test_nothing.c", "leek-demo")
case("a program that is not built", add("`build/tests/lab/test_nothing`\n"), "nothing makes build/tests/lab/")
case("a test file that is not run", add_test, "more.md: no test runs lab/test_new.c")
case("an error that there is not", add("E_CELL_SPLIT, E_CELL_SPILT\n"), "there is no error E_CELL_SPILT")
case("a link that leads nowhere", add("[x](../docs/nothing.md)\n"), "docs/nothing.md")
case("what is there", add("E_CELL_SPLIT W_ROW_DIFF S1-S16 `lab/attack_slot.c` [x](../docs/audit.md)\n"))
print(f"{failures} failures")
sys.exit(failures > 0)
