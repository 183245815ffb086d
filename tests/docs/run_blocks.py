# SPDX-License-Identifier: Apache-2.0
"""What the pages tell people to type is typed: every sh and python block of the Markdown files runs, those of one page
after each other in one directory, with the build's programs on PATH. There the page finds

  X.npy y.npy Xt.npy yt.npy      the digits, and the held-out ones
  site1/X.npy site1/y.npy ..     a third of the rows for each of three sites
  share                          that of the tree

A block that cannot run says why, in the open: ```sh not-run: REASON. Blocks of docs/quickstart.md name hosts and are
followed by e2e_quickstart. Commands that hide from this (fences without a language, indented ones) and links between
pages that lead nowhere are errors.
usage: run_blocks.py SOURCE BUILD [PAGE..]"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))
from common import check, finish, np  # noqa: E402

SOURCE, BUILD = (Path(a).resolve() for a in sys.argv[1:3])
PAGES = ["*.md", "docs/*.md", "threat-model/*.md", "share/**/*.md", "tests/**/*.md"]
HOSTS = "docs/quickstart.md"
RUNS = {"sh": ["bash", "-euo", "pipefail"], "python": ["/usr/bin/python3", "-B"]}
SHOWN = {"c", "text", "yaml", "json"}  # languages to read
HIDDEN = re.compile(r" {4,}(\$ )?(deepafl|scripts/|meson |ninja |cc |sudo |apt|dpkg|build/|docker |systemctl |python)")
SECONDS = 40


def own_network():
    """Go on in a network of our own, where any port is free; where that cannot be, on the host's loopback."""
    inside = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if os.environ.pop("DAFL_OWN_NETWORK", "") or subprocess.run([*inside, "true"], capture_output=True).returncode != 0:
        return
    os.execvpe(inside[0], [*inside, sys.executable, "-B", *sys.argv], {**os.environ, "DAFL_OWN_NETWORK": "1"})


def blocks(page, text):
    """(line, language, rest of the info string, text) of every fenced block."""
    fence, lines = None, text.splitlines()
    for number, line in enumerate(lines, 1):
        if not line.startswith("```"):
            if fence is None:
                check(not HIDDEN.match(line), f"{page}:{number}: commands belong into a fenced sh block: {line}")
            continue
        if fence is None:
            fence = number
            continue
        language, _, rest = lines[fence - 1][3:].strip().partition(" ")
        yield fence, language, rest.strip(), "\n".join(lines[fence:number - 1]) + "\n"
        fence = None
    check(fence is None, f"{page}:{fence}: a fence without an end")


def links(page, text):
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            check((SOURCE / page).parent.joinpath(target).exists(), f"{page}: a link leads nowhere: {target}")


def furnish(room):
    digits = SOURCE / "share" / "digits"
    for kind, end in (("train", ""), ("test", "t")):
        for name, short in (("features", "X"), ("labels", "y")):
            rows = np.load(digits / f"{kind}_{name}.npy")
            np.save(room / f"{short}{end}.npy", rows)
            for u in range(3 if kind == "train" else 0):
                site = room / f"site{u + 1}"
                site.mkdir(exist_ok=True)
                np.save(site / f"{short}.npy", rows[u::3])
    (room / "share").symlink_to(SOURCE / "share")


def run(where, command, script, room):
    env = {**os.environ, "PATH": f"{BUILD / 'agents'}:{os.environ['PATH']}", "LD_LIBRARY_PATH": str(BUILD),
           "PKG_CONFIG_PATH": str(BUILD / "meson-uninstalled")}
    start = time.monotonic()
    block = room.parent / "block"
    block.write_text(script)
    p = subprocess.Popen([*command, block], cwd=room, env=env, text=True, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        said, _ = p.communicate(timeout=SECONDS)
        how = f"exit code {p.returncode}"
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        said, _ = p.communicate()
        how = f"not done after {SECONDS} s"
    print(f"ran      {where} ({time.monotonic() - start:.1f} s)", flush=True)
    if not check(how == "exit code 0", f"{where}: {how}"):
        print(script, said[-3000:], sep="\n---\n", flush=True)


def follow(page, scratch):
    text = (SOURCE / page).read_text()
    room = Path(scratch) / page.replace("/", "_")
    ran = 0
    links(page, text)
    for line, language, rest, script in blocks(page, text):
        where = f"{page}:{line}"
        if language in SHOWN:
            continue
        if not check(language in RUNS, f"{where}: a block needs a language: sh, python, {', '.join(sorted(SHOWN))}"):
            continue
        if page == HOSTS:
            check(re.fullmatch("(server|site)( background)?", rest), f"{where}: on which host?")
            print(f"followed {where} by e2e_quickstart")
            continue
        if rest.startswith("not-run:"):
            check(len(rest.partition(":")[2].split()) >= 2, f"{where}: not run, and no reason given")
            print(f"NOT RUN  {where}: {rest.partition(':')[2].strip()}")
            continue
        if not check(rest == "", f"{where}: '{rest}' means nothing; not-run: REASON does"):
            continue
        if not room.exists():
            room.mkdir()
            furnish(room)
        run(where, RUNS[language], script, room)
        ran += 1
    return ran


def main():
    own_network()
    wanted = sys.argv[3:]
    pages = sorted({str(p.relative_to(SOURCE)) for pattern in PAGES for p in SOURCE.glob(pattern)})
    with tempfile.TemporaryDirectory() as scratch:
        ran = sum(follow(page, scratch) for page in pages if not wanted or page in wanted)
    check(ran > 0 or wanted, "no block was run")
    print(f"{ran} blocks ran")
    finish()


if __name__ == "__main__":
    main()
