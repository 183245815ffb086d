#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Completion in a real bash: every command and every option of --help is offered, values that the help names, files
where a file is wanted, and nothing else."""
import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import Program, check, finish

deepafl, agent = Program(sys.argv[1]), Program(sys.argv[2])
script = Path(sys.argv[3]).resolve()
if shutil.which("bash") is None:
    print("skipped: there is no bash")
    sys.exit(77)
here = tempfile.TemporaryDirectory(prefix="deepafl-completion-")
for name in ("run.yaml", "rows.npy", "a file.npy"):
    (Path(here.name) / name).write_text("")
(Path(here.name) / "state").mkdir()


def bash(text):
    done = subprocess.run(["bash", "--norc", "-c", text], capture_output=True, text=True, timeout=60, cwd=here.name)
    check(done.stderr == "", f"{text}: {done.stderr}")
    return done.stdout


def complete(program, *words):
    """What is offered for the last word."""
    words = [program.exe, *words]
    quoted = " ".join(map(shlex.quote, words))
    out = bash(f"source {script}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; "
               f"_deepafl {shlex.quote(program.exe)} {shlex.quote(words[-1])} {shlex.quote(words[-2])}; "
               'for w in "${COMPREPLY[@]}"; do printf "%s\\n" "$w"; done')
    return out.splitlines()


def the_help(program, *words):
    return program.run(*words, "--help").stdout


def options(text):
    """{option: (what it takes or None, help)}"""
    found = re.findall(r"^  (--[a-z-]+)(?: (\S+))?((?: .*)?(?:\n {30}.*)*)", text, re.MULTILINE)
    return {name: (operand or None, more) for name, operand, more in found}


def judge(program, text, *words):
    known = options(text)
    check(len(known) > 0, f"{words}: the help has no options")
    offered = complete(program, *words, "--")
    extra = {"--help"} if words else {"--help", "--version"}
    check(set(offered) == set(known) | extra and len(offered) == len(set(offered)), f"{words}: {offered}")
    some = next(iter(known))
    check(some in complete(program, *words, some[:-1]), f"{words}: {some} is not offered")
    for name, (operand, more) in known.items():
        if operand is None:
            continue
        for way in ([name, ""], [name, "="], [name, "=", ""]):
            got = complete(program, *words, *way)
            if operand == "DIR":
                check(got == ["state"], f"{words} {way}: {got}")
            elif re.search(r"FILE$|\.", operand):
                check(set(got) == {"run.yaml", "rows.npy", "a file.npy", "state"}, f"{words} {way}: {got}")
            else:
                check(all(re.search(rf"\b{v}\b", operand + more) for v in got), f"{words} {way}: {got}, help {more}")
                if name == "--role":
                    check(sorted(got) == ["client", "keyholder", "server"], f"{way}: {got}")


def the_tools():
    listed = bash(f"source {script}; complete -p")
    for name in ("deepafl", "deepafl-agent"):
        check(f"complete -F _deepafl {name}\n" in listed, f"{name}: {listed}")
    commands = re.findall(r"^  ([a-z]+) ", the_help(deepafl), re.MULTILINE)
    offered = complete(deepafl, "")
    check(len(commands) >= 8 and sorted(offered) == sorted([*commands, "--help", "--version"]), f"commands: {offered}")
    check(complete(deepafl, "si") == ["simulate"], "si")
    second = {"config": ["check"], "audit": ["verify"]}
    for command in commands:
        words = [command, *second.get(command, [])]
        judge(deepafl, the_help(deepafl, *words), *words)
        if command in second:
            check(complete(deepafl, command, "") == second[command], f"{command}: {complete(deepafl, command, '')}")
        check("run.yaml" in complete(deepafl, *words, "run"), f"{words}: no files")
    judge(agent, the_help(agent))
    check(complete(agent, "--role", "s") == ["server"], "--role s")
    check(complete(deepafl, "nonsense", "--") == [] and complete(deepafl, "$(touch x)", "--") == [], "no such command")
    check(not (Path(here.name) / "x").exists(), "a word was run")
    check(complete(Program("/nowhere/deepafl"), "") == [], "no such program")


def keys(shell, begin, text, want):
    """Typed into a shell on a terminal; whether what is wanted shows."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(here.name)
        os.environ["TERM"] = "dumb"
        os.execvp(shell[0], shell)
    seen, end = b"", time.monotonic() + 60
    os.write(fd, f"PATH={Path(agent.exe).parent}:$PATH; {begin}; echo rea''dy\n".encode())
    typed = False
    try:
        while time.monotonic() < end and want.encode() not in seen:
            if select.select([fd], [], [], 0.2)[0]:
                seen = re.sub(rb"[^\x08]\x08", b"", seen + os.read(fd, 4096))
            if not typed and b"ready\r\n" in seen:
                os.write(fd, text.encode())
                typed, seen = True, b""
    except OSError:
        pass  # the shell has ended
    check(want.encode() in seen, f"{shell[0]}: {text!r}: {seen!r}")
    os.close(fd)
    os.waitpid(pid, 0)


def on_a_terminal():
    shell, begin = ["bash", "--norc", "--noprofile", "-i"], f"source {script}"
    typed = [("deepafl-agent --role keyh\t--met\t", "--role keyholder --metrics"),
             ("deepafl config \trun\t", "config check run.yaml ")]
    for text, want in typed:
        keys(shell, begin, text, want)
    if shutil.which("zsh") is None:
        print("zsh not checked: there is none")
        return
    shell, begin = ["zsh", "-f", "-i"], f"fpath=({script.parent} $fpath); autoload -U compinit; compinit -u -D"
    for text, want in [*typed, ("deepafl simu\t--sched\tfu\t", "simulate --schedule=full")]:
        keys(shell, begin, text, want)


the_tools()
on_a_terminal()
here.cleanup()
finish()
