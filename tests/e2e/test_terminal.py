#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""On terminals of several widths: the status line of a server that waits for its clients, and the bar of a simulation."""
import fcntl
import os
import pty
import random
import re
import struct
import subprocess
import sys
import termios
import threading

from federation import Federation, check, finish, hurry, seed

deepafl, agent, digits = sys.argv[1:4]
rng = random.Random(seed())


def read_all(fd, into):
    try:
        while data := os.read(fd, 4096):
            into.append(data)
    except OSError:
        pass  # the last one has closed it


def terminal(columns):
    """What is read from it, and the end for a program."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    return ours, theirs


def bar(columns):
    """The bar of a simulation fits its terminal, however narrow."""
    shown, (ours, theirs) = [], terminal(columns)
    p = subprocess.Popen([deepafl, "simulate", "--features", f"{digits}/train_features.npy", "--labels",
                          f"{digits}/train_labels.npy", "--width", "256", "--hidden", "512", "--clients", "60",
                          "--threads", "1"], stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    read_all(ours, shown)
    os.close(ours)
    lines = re.findall(r"\r(\[[^\r\n\x1b]*)", b"".join(shown).decode())
    check(p.wait(60) == 0 and lines and max(map(len, lines)) < columns, f"{columns} columns: {lines[-3:]}")
    check(columns < 60 or "s left" in lines[-1], f"{columns} columns: {lines[-1:]}")


def on_a_terminal(columns):
    """The status line fits its terminal, however narrow; what is shown at the end is not mixed with it. Before that the
    server waits for clients for longer than it tries anything, and says for whom."""
    with Federation((deepafl, agent), digits, 3, 3, rng=rng, edit=lambda text: hurry(setup=0.2)(text).replace(
            "retries: 100", "retries: 1")) as f:
        shown, (ours, theirs) = [], terminal(columns)
        reader = threading.Thread(target=read_all, args=(ours, shown))
        f.start("site0")
        p = f.processes["server"] = subprocess.Popen(f.command("server"), stdin=subprocess.DEVNULL,
                                                     stdout=subprocess.DEVNULL, stderr=theirs)
        os.close(theirs)
        reader.start()
        try:
            p.wait(3)
        except subprocess.TimeoutExpired:
            pass
        for name in f.names[1:]:
            f.start(name)
        codes = f.wait(60)
        reader.join(10)
        os.close(ours)
        text = b"".join(shown).decode()
        check(set(codes.values()) == {0}, f"{columns} columns: exit codes {codes}: {text}")
        said = re.findall(r"waiting for clients: (\d) of 3 have enrolled.*not yet: (.*)\r", text)
        check(("1", "site1, site2") in said, f"{columns} columns: waited for {said}")
        lines = re.findall(r"\r\x1b\[K(server  layer [^\r\n]*)", text)
        check(lines and max(map(len, lines)) < columns, f"{columns} columns: {max(map(len, lines), default=0)} shown")
        check(columns < 100 or any("left" in line and "risk" in line for line in lines), f"{columns} columns: {lines[-3:]}")


for width in (30, 60, 80, 200):
    on_a_terminal(width)
    bar(width)
finish()
