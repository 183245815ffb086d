#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Man pages, services and the guide say what the programs say: options, commands, exit codes, named errors."""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from common import Program, check, finish

deepafl, agent = Program(sys.argv[1]), Program(sys.argv[2])
root = Path(sys.argv[3])


def plain(roff):
    return roff.replace("\\-", "-")


def described(roff):
    """The options that a page describes: the lines after .TP."""
    return re.findall(r'^\.TP\n\.BI? "?(--[a-z-]+)', roff, re.MULTILINE)


def offered(program, *words):
    done = program.run(*words, "--help")
    check(done.returncode == 0, f"{words} --help: exit code {done.returncode}")
    return re.findall(r"^  (--[a-z-]+)", done.stdout, re.MULTILINE)


def compare(what, page, program):
    check(len(program) > 0, f"{what}: the help has no options")
    for name in sorted(set(program) - set(page)):
        check(False, f"{what}: {name} is not in the man page")
    for name in sorted(set(page) - set(program)):
        check(False, f"{what}: the man page has {name}, the program does not")
    check(len(page) == len(set(page)), f"{what}: an option stands twice in the man page")


def words(text):
    return set(re.findall(r"[a-z0-9]+", text.lower()))


def compare_texts(what, roff, program, *command):
    """Every word that the help says of an option stands in the man page, too."""
    page = {o: words(text) for o, text in
            re.findall(r'^\.TP\n\.BI? "?(--[a-z-]+)[^\n]*\n(.*?)(?=^\.(?:TP|S[SH]|PP)|\Z)', roff, re.MULTILINE | re.DOTALL)}
    for option, text in re.findall(r"^  (--[a-z-]+)(?: [^ ]+)? +(.*(?:\n {12,}.*)*)", program.run(*command, "--help").stdout,
                                   re.MULTILINE):
        missing = words(text) - page.get(option, set())
        check(not missing, f"{what} {option}: the help says {sorted(missing)}, the man page does not")


def section(page, title):
    found = re.search(rf"^\.SH {title}\n(.*?)(?=^\.SH |\Z)", page, re.MULTILINE | re.DOTALL)
    return found.group(1) if check(found, f"no section {title}") else ""


def the_toolbox():
    page = plain((root / "man" / "deepafl.1").read_text())
    parts = {}
    for head, text in re.findall(r'^\.SS "(.*?)"\n(.*?)(?=^\.S[SH] |\Z)', page, re.MULTILINE | re.DOTALL):
        parts[head.split()[1]] = text
    commands = re.findall(r"^  ([a-z]+) ", deepafl.run("--help").stdout, re.MULTILINE)
    check(len(commands) >= 8 and set(commands) == set(parts), f"commands {commands}, in the man page {list(parts)}")
    second = {"config": ["check"], "audit": ["verify"]}
    for command in commands:
        compare(f"deepafl {command}", described(parts.get(command, "")),
                offered(deepafl, command, *second.get(command, [])))
        compare_texts(f"deepafl {command}", parts.get(command, ""), deepafl, command, *second.get(command, []))
    return page


def the_agent():
    page = plain((root / "man" / "deepafl-agent.1").read_text())
    compare("deepafl-agent", described(page), offered(agent))
    check(agent.run("--help").stdout.startswith("Usage: deepafl-agent --role server"), "usage of deepafl-agent")
    return page


def codes_and_version(page, program, name):
    said = re.findall(r"\b(\d) [a-z]", program.run("--help").stdout.split("Exit codes:")[1])
    listed = re.findall(r"^\.TP\n\.B (\d)$", section(page, "EXIT STATUS"), re.MULTILINE)
    check(len(said) >= 3 and said == listed, f"{name}: exit codes {said}, in the man page {listed}")
    version = program.run("--version").stdout.split()[1]
    check(f'"deepafl {version}"' in page.split("\n.SH", 1)[0], f"{name}: the page is not of version {version}")


def the_text(path):
    """What the formatter warns of."""
    if shutil.which("groff") is None:
        print("not checked for warnings: there is no groff")
        return
    done = subprocess.run(["groff", "-man", "-ww", "-Tascii", path], capture_output=True, text=True, timeout=60)
    check(done.returncode == 0 and done.stderr == "", f"{path.name}: {done.stderr}")


def the_services():
    options = set(offered(agent))
    for role in ["server", "client", "keyholder"]:
        text = (root / "share" / "systemd" / f"deepafl-{role}.service.in").read_text()
        start = re.search(r"^ExecStart=((?:.*\\\n)*.*)$", text, re.MULTILINE).group(1)
        used = re.findall(r"(--[a-z-]+)", start)
        check(len(used) >= 5 and set(used) <= options, f"{role}: options {sorted(set(used) - options)}")
        for line in ["Restart=on-failure", "RestartPreventExitStatus=1 2 3", "SuccessExitStatus=4", "LimitCORE=0"]:
            check(f"\n{line}\n" in text, f"{role}: no {line}")
        if shutil.which("systemd-analyze") is None:
            print("services not verified: there is no systemd-analyze")
            continue
        with tempfile.TemporaryDirectory() as d:
            unit = Path(d) / f"deepafl-{role}.service"
            unit.write_text(text.replace("@bindir@/deepafl-agent", agent.exe))
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True,
                                  timeout=60)
            ours = [line for line in done.stderr.splitlines() if f"deepafl-{role}" in line]
            check(not ours, f"{role}: {ours}")


def the_guide():
    """Every named error is explained, and none that is not there."""
    faults = re.findall(r"X\(([A-Z_]+), ([A-Z]+), ", (root / "protocol" / "fault.h").read_text())
    names = {("W_" if kind == "WARNING" else "E_") + name: kind.lower() for name, kind in faults}
    rows = dict(re.findall(r"^\| `([EW]_[A-Z_]+)` \| ([a-z]+) \|", (root / "docs" / "operations.md").read_text(),
                           re.MULTILINE))
    check(len(names) > 20 and rows == names, "docs/operations.md: the table of errors is not that of protocol/fault.h: "
          f"{sorted(set(rows.items()) ^ set(names.items()))}")


codes_and_version(the_toolbox(), deepafl, "deepafl")
codes_and_version(the_agent(), agent, "deepafl-agent")
for name in ["deepafl.1", "deepafl-agent.1"]:
    the_text(root / "man" / name)
the_services()
the_guide()
finish()
