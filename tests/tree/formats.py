# SPDX-License-Identifier: Apache-2.0
"""What the pages say of formats is what the code says of them: docs/wire.md against the headers and, line by line, against
a message of each type; the events of docs/audit.md against protocol/audit.c; the records of docs/state.md against
protocol/effect.h; the states of docs/protocol.md against the machines; and named errors exist.
    formats.py SOURCE_ROOT        a line for each difference; exit code 1"""
import re
import struct
import sys
from pathlib import Path

HEADERS = {"protocol/messages.h": None, "protocol/context.h": None, "protocol/roster.h": None, "protocol/config.h": None,
           "protocol/deep.h": {"params"}}
ENVELOPE, CONFIG, ROSTER = 0, 254, 255  # the numbers of tests/fuzz/fuzz_messages.c
OPEN_ENDED = {"UPLOAD", "KEY"}          # they take what there is


def squeeze(text):
    return " ".join(text.split()).rstrip(".")


def rules(lines):
    """name: right side, of `NAME = ..` and the lines that go on with it."""
    found, name = {}, None
    for line in lines:
        head = re.match(r"^ *(?:\d+ [SCK] )?([A-Za-z_][\w-]*) +=(?: (.*)|$)", line)
        if head:
            name = head[1]
            found[name] = head[2] or ""
        elif name and re.match(r"^ {6,}\S", line):
            found[name] += " " + line
        else:
            name = None
    return {n: squeeze(r) for n, r in found.items()}


def header_rules(text):
    return rules(re.sub(r"^ ?\* ?", "", line) for line in text.splitlines() if line.startswith((" *", "/*")))


def page_rules(text):
    return rules(line for block in re.findall(r"^```text\n(.*?)^```", text, re.M | re.S) for line in block.splitlines())


class Short(Exception):
    pass


class Reader:
    """Decodes bytes by a rule of the page."""

    def __init__(self, grammar, data):
        self.grammar, self.data, self.at, self.names = grammar, data, 0, {}

    def take(self, n):
        if self.at + n > len(self.data):
            raise Short
        self.at += n
        return self.data[self.at - n:self.at]

    def count(self, text):
        if text == "rest":
            return len(self.data) - self.at
        if text.startswith("#"):
            return self.names[text[1:]]
        name, _, less = text.partition(" - ")
        return int(name) if name.isdigit() else self.names[name] - int(less or 0)

    def field(self, text):
        number = re.fullmatch(r"(u8|u16|u32|u64|f64) (\w+)", text)
        sized = re.fullmatch(r"(\w+)\[(.+)\]", text)
        if text == "nothing":
            return
        if text.startswith('"'):
            if self.take(len(text) - 2) != text[1:-1].encode():
                raise Short
        elif number:
            width = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "f64": "d"}[number[1]]
            self.names[number[2]] = struct.unpack("<" + width, self.take(struct.calcsize("<" + width)))[0]
        elif text.startswith("members "):
            n = struct.unpack("<H", self.take(2))[0]
            self.names[text.split()[1]] = sum(bin(b).count("1") for b in self.take((n + 7) // 8))
        elif sized:
            inner = self.take(self.count(sized[2]))
            if sized[1].isupper():  # a message in a message
                decode(self.grammar, sized[1], inner)
        else:
            raise ValueError(f"cannot read '{text}'")

    def sequence(self, text):
        for part in split(text):
            times = re.fullmatch(r"(.+?) \((.*)\)", part)
            if not times:
                self.field(part)
                continue
            for _ in range(self.count(times[1])):
                self.sequence(times[2])


def split(text):
    """At the commas that are in no brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [p.strip() for p in [*parts, text[start:]] if p.strip()]


def decode(grammar, name, data):
    reader = Reader(grammar, data)
    reader.sequence(grammar[name])
    if reader.at != len(data):
        raise Short


def decodes(grammar, name, data):
    try:
        decode(grammar, name, data)
    except Short:
        return False
    return True


def check_wire(root):
    wrong, text = [], (root / "docs" / "wire.md").read_text()
    page, code = page_rules(text), {}
    for header, wanted in HEADERS.items():
        for name, right in header_rules((root / header).read_text()).items():
            if wanted is None or name in wanted:
                code[name] = (right, header)
    for name in sorted(set(page) | set(code)):
        if name not in code:
            wrong.append(f"docs/wire.md: {name} is in no header")
        elif name not in page:
            wrong.append(f"docs/wire.md: {name} of {code[name][1]} is missing")
        elif page[name] != code[name][0]:
            wrong.append(f"docs/wire.md: {name} is not that of {code[name][1]}:\n  {page[name]}\n  {code[name][0]}")
    enum = re.search(r"typedef enum \{(.*?)\} dafl_msg_type;", (root / "protocol/messages.h").read_text(), re.S)[1]
    types = re.findall(r"DAFL_MSG_(\w+)(?: = 1)?,", enum)
    numbered = {int(n): name for n, name in re.findall(r"^ *(\d+) [SCK] (\w+) +=", text, re.M)}
    if numbered != dict(enumerate(types, 1)):
        wrong.append(f"docs/wire.md: the numbers of the types are {dict(enumerate(types, 1))}")
    corpus = root / "tests" / "fuzz" / "corpus" / "messages"
    names = {**numbered, ENVELOPE: "envelope", CONFIG: "config", ROSTER: "roster"}
    for number, name in names.items():
        good = corpus / name.lower()
        if name not in page or not good.exists():
            wrong.append(f"docs/wire.md: no rule or no example of {name}")
            continue
        data = good.read_bytes()
        if data[0] != number or not decodes(page, name, data[1:]):
            wrong.append(f"docs/wire.md: {good.name} does not decode as {name}")
        if name in OPEN_ENDED:
            continue
        for end, cut in (("one byte less", data[1:-1]), ("one byte more", data[1:] + b"\0")):
            if cut != data[1:] and decodes(page, name, cut):
                wrong.append(f"docs/wire.md: {name} with {end} decodes")
    return wrong


def check_audit(root):
    code = (root / "protocol" / "audit.c").read_text().split("dafl_audit_fields[DAFL_EVENTS]", 1)[1].split("#undef PEER")[0]
    fields = {}
    for event, body in re.findall(r"\[DAFL_EVENT_(\w+)\] = \{(.*?)\},\n(?=    \[|\};)", code, re.S):
        fields[event.lower()] = set(re.findall(r'\{"(\w+)"', body))
    rows = re.findall(r"^\| (\w+) \| ([\w, ]+) \| (.*) \|$", (root / "docs" / "audit.md").read_text(), re.M)
    page = {event: set(re.findall(r"\w+", text)) for event, _, text in rows if event != "event"}
    wrong = [f"docs/audit.md: the event {e} is missing" for e in sorted(set(fields) - set(page))]
    wrong += [f"docs/audit.md: there is no event {e}" for e in sorted(set(page) - set(fields))]
    for event in sorted(set(fields) & set(page)):
        for field in sorted(fields[event] - page[event]):
            wrong.append(f"docs/audit.md: {event} has a field {field}")
    return wrong


def check_records(root):
    text = (root / "protocol" / "effect.h").read_text()
    enum = re.search(r"typedef enum \{(.*?)\} dafl_record_kind;", re.sub(r"/\*.*?\*/", "", text, flags=re.S), re.S)[1]
    code = dict(enumerate(re.findall(r"DAFL_RECORD_(\w+)", enum), 1))
    rows = re.findall(r"^\| (\d+) (\w+) \|", (root / "docs" / "state.md").read_text(), re.M)
    page = {int(n): name for n, name in rows}
    return [] if page == code else [f"docs/state.md: the records are {code}"]


def check_states(root):
    wrong, page = [], set(re.findall(r"\b[A-Z_]{3,}\b", (root / "docs" / "protocol.md").read_text()))
    for machine in ("client", "server", "holder"):
        code = (root / "protocol" / f"{machine}.c").read_text()
        table = re.search(r"names\[DAFL_\w+_STATES\] = \{(.*?)\};", code, re.S)[1]
        wrong += [f"docs/protocol.md: the state {s} of the {machine} is missing"
                  for s in re.findall(r'"(\w+)"', table) if s not in page]
    return wrong


def check_errors(root):
    faults = re.findall(r"\bX\(([A-Z_]+), (\w+),", (root / "protocol" / "fault.h").read_text())
    names = {("W_" if falls == "WARNING" else "E_") + name for name, falls in faults}
    return [f"{page.relative_to(root)}: there is no error {name}" for page in sorted(root.glob("docs/*.md"))
            for name in sorted(set(re.findall(r"`([EW]_[A-Z_]+)`", page.read_text())) - names)]


def findings(root):
    return check_wire(root) + check_audit(root) + check_records(root) + check_states(root) + check_errors(root)


if __name__ == "__main__":
    bad = findings(Path(sys.argv[1]))
    print("\n".join(bad) or "the pages and the code say the same")
    sys.exit(len(bad) > 0)
