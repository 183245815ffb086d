# SPDX-License-Identifier: Apache-2.0
"""run_blocks.py sees what it must: a page that is right passes, and each way to be wrong is an error of its own.
usage: test_blocks.py SOURCE BUILD"""
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))
from common import check, finish  # noqa: E402

SOURCE, BUILD = (Path(a).resolve() for a in sys.argv[1:3])
RIGHT = """[here](page.md)

```sh
test -f X.npy -a -f site3/y.npy && deepafl --version > version
```

    sum = a + b

```python
assert "deepafl" in open("version").read()
```

```sh not-run: needs a machine
false
```
"""
WRONG = {  # what is put at the end of the page: what is said of it
    "```sh\nfalse\n```\n": "page.md:17: exit code 1",
    "```sh\nfalse | true\n```\n": "exit code 1",
    "```python\nassert False\n```\n": "exit code 1",
    "```sh not-run:\ntrue\n```\n": "no reason given",
    "```sh later\ntrue\n```\n": "'later' means nothing",
    "```\ntrue\n```\n": "needs a language",
    "```bash\ntrue\n```\n": "needs a language",
    "    deepafl --version\n": "commands belong into a fenced sh block",
    "[there](nowhere.md)\n": "a link leads nowhere: nowhere.md",
    "```sh\ntrue\n": "a fence without an end",
}


def follow(text):
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch)
        (tree / "page.md").write_text(text)
        (tree / "share").symlink_to(SOURCE / "share")
        done = subprocess.run([sys.executable, "-B", Path(__file__).with_name("run_blocks.py"), tree, BUILD, "page.md"],
                              capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr


def main():
    code, said = follow(RIGHT)
    seen = "2 blocks ran" in said and "NOT RUN  page.md:13: needs a machine" in said
    check(code == 0 and seen, f"a right page: {said}")
    for text, says in WRONG.items():
        code, said = follow(RIGHT + "\n" + text)
        check(code == 1 and says in said, f"{text!r}: {code}, {said}")
        check("1 failures" in said, f"{text!r} is one error: {said}")
    finish()


if __name__ == "__main__":
    main()
