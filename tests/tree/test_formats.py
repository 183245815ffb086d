# SPDX-License-Identifier: Apache-2.0
"""formats.py sees a page or a header that has changed alone.   test_formats.py SOURCE_ROOT"""
import shutil
import sys
import tempfile
from pathlib import Path

import formats

root, failures = Path(sys.argv[1]).resolve(), 0


def changed(edits):
    """What is found in a copy of the tree after edits (file, old, new)."""
    with tempfile.TemporaryDirectory() as d:
        at = Path(d)
        for part in ("docs", "protocol", "tests/fuzz/corpus/messages"):
            shutil.copytree(root / part, at / part)
        for file, old, new in edits:
            text = (at / file).read_text()
            assert old in text, (file, old)
            (at / file).write_text(text.replace(old, new))
        return formats.findings(at)


def case(what, edits, says):
    global failures
    found = changed(edits)
    if (says is None) != (not found) or (says and not any(says in f for f in found)):
        failures += 1
        print(f"FAILED: {what}; found {found}")


WIRE, MESSAGES, CONTEXT = "docs/wire.md", "protocol/messages.h", "protocol/context.h"
case("nothing", [], None)
case("a field is narrower on the page", [(WIRE, "u64 len, dig[32], sig[64]", "u32 len, dig[32], sig[64]")],
     f"END is not that of {MESSAGES}")
case("a field is gone in the header", [(MESSAGES, "sum[32]", "")], f"RESULT is not that of {MESSAGES}")
case("another number", [(WIRE, "13 C SIGN", "14 C SIGN")], "the numbers of the types")
case("a message is missing", [(WIRE, "21 K OPENED    = dig[32]\n", "")], f"OPENED of {MESSAGES} is missing")
case("a digest has other parts", [(CONTEXT, "ctx2, U3, digests", "ctx2, digests")], f"stmt is not that of {CONTEXT}")
case("config bytes", [(WIRE, "u16 want, u16 tries", "u16 tries, u16 want")], "config is not that of protocol/config.h")
case("wrong on both sides: the bytes tell", [(f, "u16 fault, sum[32]", "u32 fault, sum[32]") for f in (WIRE, MESSAGES)],
     "result does not decode as RESULT")
case("an event without a row", [("docs/audit.md", "| ready | client | ctx |\n", "")], "the event ready is missing")
case("a field of an event", [("protocol/audit.c", '{"w", DAFL_FIELD_U8, 12}', '{"wide", DAFL_FIELD_U8, 12}')],
     "model has a field wide")
case("a record without a row", [("docs/state.md", "| 12 HEARD |", "| 12 SEEN |")], "the records are")
case("a state that is not told of", [("protocol/holder.c", '"LISTED"', '"SEATED"')], "the state SEATED of the holder")
case("an error that is not there", [("docs/seal.md", "# Encrypted sums", "# Encrypted sums `E_SEALED`")], "no error E_SEALED")
sys.exit(failures > 0)
