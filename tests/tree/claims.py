# SPDX-License-Identifier: Apache-2.0
"""Claims and tests: whatever threat-model/ names is there and is run.
    claims.py SOURCE_ROOT BUILD_ROOT           a line for each property, test, file, link or error that is not; exit code 1
    claims.py --table SOURCE_ROOT BUILD_ROOT   each property, its tests, and what the last `meson test` made of them"""
import json
import re
import sys
from pathlib import Path

ID = r"[CDHILMRST]\d{1,2}"
TEST_FILE = re.compile(r"(test_|attack_|fuzz_)\w+\.(c|py)$|spin/|reference/compare\.py$")


class Suite:
    """The tests that meson knows, and the source files behind each."""

    def __init__(self, root, build):
        self.root, self.build = Path(root).resolve(), Path(build).resolve()
        self.tests = json.loads((self.build / "meson-info" / "intro-tests.json").read_text())
        self.inputs = {}
        for line in (self.build / "build.ninja").read_text().replace("$\n", "").splitlines():
            edge = re.match(r"build ([^:]+): \S+ ?(.*)", line)
            for out in edge[1].split() if edge else []:
                self.inputs.setdefault(out, []).extend(x for x in edge[2].split() if x not in ("|", "||"))
        self.memo = {}
        self.names = {t["name"] for t in self.tests}
        self.behind = {}  # file or directory: names of tests
        for t in self.tests:
            for file in self.files_of(t):
                for path in (file, *map(str, Path(file).parents)):
                    self.behind.setdefault(path, {})[t["name"]] = True

    def sources(self, out):
        """Source files, from the root, that an output of ninja is made of."""
        if out not in self.memo:
            self.memo[out] = set()  # while it is being looked at
            found = set()
            for i in self.inputs.get(out, []):
                found |= self.sources(i) if i in self.inputs else self.local(i)
            self.memo[out] = found
        return self.memo[out]

    def local(self, path):
        path = (self.build / path).resolve()
        return {str(path.relative_to(self.root))} if path.is_relative_to(self.root) else set()

    def files_of(self, test):
        files = set()
        for word in test["cmd"]:
            path = Path(word) if Path(word).is_absolute() else self.build / word
            out = str(path.relative_to(self.build)) if path.is_relative_to(self.build) else None
            files |= self.sources(out) if out in self.inputs else self.local(word) if path.exists() else set()
        return files

    def running(self, file):
        """Names of the tests that a file of tests/ takes part in."""
        return [name for name in self.behind.get("tests/" + file.rstrip("/"), {}) if name in self.names]


def properties(root):
    """id: [(property, files)], from the table of tests/README.md."""
    table, found = (Path(root) / "tests" / "README.md").read_text().split("\n| id |")[1], {}
    for row in table.splitlines():
        cells = [c.strip() for c in row.split("|")[1:-1]]
        if len(cells) >= 3 and re.fullmatch(rf"{ID}(, {ID})*", cells[0]):
            files = re.findall(r"`([a-z_0-9]+/[\w./-]*)`", cells[2])
            for i in cells[0].split(", "):
                found.setdefault(i, []).append((cells[1], files))
    return found


def shown_by(suite, i, files):
    """The tests behind an id: of the attacks only those that are called so."""
    names = []
    for file in files:
        run = suite.running(file)
        if Path(file).name.startswith("attack_"):
            run = [n for n in run if n == "attacks_" + i]
        names += [n for n in run if n not in names]
    return names


def named_ids(text):
    """With ranges: S1-S16, H2 to H7."""
    ids = set(re.findall(rf"\b({ID})\b", text))
    for kind, first, to, last in re.findall(r"\b([CDHILMRST])(\d{1,2})(?:-| to )([CDHILMRST])(\d{1,2})\b", text):
        if kind == to:
            ids |= {f"{kind}{n}" for n in range(int(first), int(last) + 1)}
    return ids


def findings(root, suite):
    root, table, wrong = Path(root), properties(root), []
    faults = re.findall(r"\bX\(([A-Z_]+), (\w+),", (root / "protocol" / "fault.h").read_text())
    faults = {("W_" if falls == "WARNING" else "E_") + name for name, falls in faults}
    for i, rows in table.items():
        files = [f for _, fs in rows for f in fs]
        for file in files:
            if not (root / "tests" / file).exists() and not (root / file).exists():
                wrong.append(f"tests/README.md, {i}: there is no {file}")
            elif TEST_FILE.search(file) and not suite.running(file):
                wrong.append(f"tests/README.md, {i}: no test runs {file}")
        if files and not shown_by(suite, i, files):
            wrong.append(f"tests/README.md, {i}: no test shows it")
    for file in sorted((root / "tests" / "lab").glob("attack_*.c")):
        for i in sorted(set(re.findall(rf'{{"({ID}) ', file.read_text()))):
            if "attacks_" + i not in suite.names:
                wrong.append(f"{file.name}: there is no test attacks_{i}")
    for page in sorted((root / "threat-model").glob("*.md")):
        text = page.read_text()
        for i in sorted(named_ids(text) - set(table)):
            wrong.append(f"{page.name}: no property {i} in tests/README.md")
        for name in sorted(set(re.findall(r"`([\w.-]+/[\w./-]*)`", text))):
            if name.startswith("build/"):
                if name.removeprefix("build/") not in suite.inputs:
                    wrong.append(f"{page.name}: nothing makes {name}")
            elif not (root / name).exists() and not (root / "tests" / name).exists():
                wrong.append(f"{page.name}: there is no {name}")
            elif TEST_FILE.search(name) and not suite.running(name.removeprefix("tests/")):
                wrong.append(f"{page.name}: no test runs {name}")
        for link in sorted(set(re.findall(r"\]\(([^):#]+)[^):]*\)", text))):
            if not (page.parent / link).exists():
                wrong.append(f"{page.name}: a link to {link}, which is not there")
        for fault in sorted(set(re.findall(r"\b[EW]_[A-Z_]+\b", text)) - faults):
            wrong.append(f"{page.name}: there is no error {fault}")
    return wrong


def print_table(root, suite):
    status, log = {}, suite.build / "meson-logs" / "testlog.json"
    for line in log.read_text().splitlines() if log.exists() else []:
        result = json.loads(line)
        status[result["name"].rsplit(" / ", 1)[-1]] = result["result"]
    print("| property | | test | last run |\n|---|---|---|---|")
    for i, rows in sorted(properties(root).items(), key=lambda r: (r[0][0], int(r[0][1:]))):
        for what, files in rows:
            for n, name in enumerate(shown_by(suite, i, files) or ["none of its own"]):
                print(f"| {'' if n else i} | {'' if n else what} | `{name}` | {status.get(name, 'not run')} |")


if __name__ == "__main__":
    args = [a for a in sys.argv[1:] if a != "--table"]
    if not (Path(args[1]) / "meson-info" / "intro-tests.json").exists():
        print("skipped: this build has no list of tests")
        sys.exit(77)
    the_suite = Suite(*args)
    if "attacks_S1" not in the_suite.names:
        print("skipped: a build without the lab's tests (needs cmocka)")
        sys.exit(77)
    if len(args) < len(sys.argv) - 1:
        print_table(args[0], the_suite)
        sys.exit(0)
    bad = findings(args[0], the_suite)
    print("\n".join(bad) or "every claim has its tests")
    sys.exit(len(bad) > 0)
