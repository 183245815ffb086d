#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the seed inputs of the fuzz targets: corpus/npy, corpus/safetensors, corpus/messages,
corpus/audit, corpus/he, corpus/machines and corpus/runfile.

Needs nothing but Python. The files are laid out here by hand, not by the library under test or by
numpy, so they are also a second reading of the two formats. The same files come out every time.
"""
import json
import pathlib
import struct

CORPUS = pathlib.Path(__file__).parent / "corpus"


def npy(header, data=b"", version=1, length=None):
    text = header.encode("latin1")
    count = len(text) if length is None else length
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", count) + text + data


def plain(descr="'<f4'", order="False", shape="(2, 3)"):
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"
    return text + " " * (-(len(text) + 11) % 64) + "\n"


def npy_files():
    data = bytes(range(1, 49))
    for descr, size in (("<f2", 2), ("<f4", 4), ("<f8", 8), ("|u1", 1), ("<u2", 2), ("<u4", 4), ("<u8", 8),
                        ("|i1", 1), ("<i2", 2), ("<i4", 4), ("=i8", 8)):
        yield "type_" + descr[1:], npy(plain(f"'{descr}'"), data[:6 * size])
    yield "f2_special", npy(plain("'<f2'", shape="(9,)"), struct.pack(
        "<9H", 0, 0x8000, 1, 0x3ff, 0x400, 0x7bff, 0x7c00, 0xfc00, 0x7d01))
    yield "u8_above_i64", npy(plain("'<u8'", shape="(2,)"), b"\xff" * 16)
    yield "version_2", npy(plain(), data[:24], 2)
    yield "version_3", npy(plain(), data[:24], 3)
    yield "version_4", npy(plain(), data[:24], 4)
    yield "quotes_and_order", npy('{"shape":(6,),"fortran_order":False,"descr":"<f4"}', data[:24])
    yield "no_rows", npy(plain(shape="(0, 3)"))
    yield "no_columns", npy(plain(shape="(3, 0)"))
    yield "no_dimensions", npy(plain(shape="()"), data[:4])
    yield "three_dimensions", npy(plain(shape="(1, 2, 3)"), data[:24])
    yield "number_for_tuple", npy(plain(shape="(6)"), data[:24])
    yield "negative", npy(plain(shape="(-2, 3)"), data[:24])
    yield "leading_zero", npy(plain(shape="(02, 3)"), data[:24])
    yield "wraps", npy(plain(shape="(6148914691236517206, 3)"), data[:8])
    yield "huge", npy(plain(shape="(99999999999999999999,)"))
    yield "fortran", npy(plain(order="True"), data[:24])
    yield "big_endian", npy(plain("'>f4'"), data[:24])
    yield "boolean", npy(plain("'|b1'"), data[:6])
    yield "object", npy(plain("'|O'"), data[:6])
    yield "string", npy(plain("'<U1'"), data[:24])
    yield "structured", npy(plain("[('a', '<f4')]", shape="(6,)"), data[:24])
    yield "key_twice", npy("{'descr': '<f4', 'descr': '<f4'}", data[:24])
    yield "key_unknown", npy("{'descr': '<f4', 'offset': 0}", data[:24])
    yield "open_string", npy("{'descr': '<f4")
    yield "text_after", npy(plain() + "x", data[:24])
    yield "cut_header", npy(plain(), length=4000)
    yield "cut_data", npy(plain(), data[:23])
    yield "long_data", npy(plain(), data[:25])
    yield "magic_alone", b"\x93NUMPY"
    yield "zip", b"PK\x03\x04" + bytes(26)
    yield "empty", b""


def st(header, data=b"", length=None):
    text = header if isinstance(header, str) else json.dumps(header, sort_keys=True, separators=(",", ":"))
    raw = text.encode("latin1" if "\xff" in text else "utf8")
    raw += b" " * (-len(raw) % 8)
    return struct.pack("<Q", len(raw) if length is None else length) + raw + data


def tensor(shape, begin, end, dtype="F64"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def st_files():
    data = struct.pack("<6d", 1, -0.0, 5e-324, 1e308, float("inf"), 0.1)
    yield "nothing", st({})
    yield "one", st({"w": tensor([2, 3], 0, 48)}, data)
    yield "two", st({"b": tensor([2], 0, 16), "w": tensor([2, 2], 16, 48)}, data)
    yield "data_order", st({"a": tensor([4], 16, 48), "z": tensor([2], 0, 16)}, data)
    yield "metadata", st({"__metadata__": {"rounds": "12", "note": "a\n\u20ac\"\\"}, "w": tensor([6], 0, 48)}, data)
    yield "metadata_alone", st({"__metadata__": {"a": ""}})
    yield "zeros", st({"a": tensor([0], 0, 0), "b": tensor([1], 0, 8), "c": tensor([5, 0], 8, 8)}, data[:8])
    yield "escaped_name", st('{"\\u00e9\\t":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}', data[:8])
    yield "not_padded", struct.pack("<Q", 2) + b"{}"
    yield "gap", st({"a": tensor([1], 0, 8), "b": tensor([1], 16, 24)}, data[:24])
    yield "overlap", st({"a": tensor([2], 0, 16), "b": tensor([1], 8, 16)}, data[:16])
    yield "empty_inside", st({"a": tensor([2], 0, 16), "b": tensor([0], 8, 8)}, data[:16])
    yield "backwards", st({"a": tensor([1], 8, 0)}, data[:8])
    yield "shape_mismatch", st({"a": tensor([2], 0, 8)}, data[:8])
    yield "wraps", st({"a": tensor([2 ** 32, 2 ** 32], 0, 0)})
    yield "huge_width", st({"a": tensor([0, 2 ** 61], 0, 0)})
    yield "huge_number", st({"a": tensor([2 ** 64], 0, 8)}, data[:8])
    yield "negative", st({"a": tensor([-1], 0, 8)}, data[:8])
    yield "real", st({"a": tensor([1.0], 0, 8)}, data[:8])
    yield "no_dimensions", st({"a": tensor([], 0, 8)}, data[:8])
    yield "three_dimensions", st({"a": tensor([1, 1, 1], 0, 8)}, data[:8])
    yield "float32", st({"a": tensor([2], 0, 8, "F32")}, data[:8])
    yield "extra_key", st({"a": dict(tensor([1], 0, 8), more=1)}, data[:8])
    yield "missing_key", st({"a": {"dtype": "F64", "shape": [1]}}, data[:8])
    yield "no_name", st({"": tensor([1], 0, 8)}, data[:8])
    yield "duplicate", st('{"a":{},"a":{}}')
    yield "metadata_number", st({"__metadata__": {"a": 1}})
    yield "metadata_list", st({"__metadata__": []})
    yield "not_an_object", st("[]")
    yield "not_json", st('{"a":')
    yield "not_utf8", st('{"\xff":1}')
    yield "nul_name", st('{"a\\u0000":1}')
    yield "deep", st('{"a":' + "[" * 400 + "]" * 400 + "}")
    yield "cut_header", st({}, length=4000)
    yield "header_above_cap", st({}, length=2 ** 63)
    yield "cut_data", st({"a": tensor([1], 0, 8)}, data[:7])
    yield "long_data", st({"a": tensor([1], 0, 8)}, data[:9])
    yield "cut_length", b"\x02\0\0\0"
    yield "empty", b""


def members(n, *present):
    bits = sum(1 << i for i in present)
    return struct.pack("<H", n) + bits.to_bytes((n + 7) // 8, "little")


def message_files():
    """The type's number, then a body; 0 is an envelope, 254 a config, 255 a roster."""
    d, sig = bytes(range(32)), bytes(64)
    u16, u32, u64 = (lambda v, f=f: struct.pack("<" + f, v) for f in "HIQ")
    surv = members(4, 0, 1, 2, 3) + members(4, 0, 1) + d + d + sig + sig
    bodies = [
        ("invite", u32(1) + d + d),
        ("enroll", d + d + sig + u32(2) + 2 * (d + d)),
        ("peers", u16(2) + u16(0) + d + d + sig + u16(9) + d + d + sig),
        ("shares", u16(2) + u32(5) + u16(1) + b"abcde" + u16(3) + b"fghij" + sig),
        ("setup", u16(2) + u32(1) + u32(3) + u16(0) + d + sig + u16(1) + d + sig + b"abc" + 2 * (d + d)),
        ("setup_ack", d + members(9, 0, 8)),
        ("model", u32(4) + u32(10) + u32(3) + b"key" + u16(2) + 2 * (u32(3) + b"\1" + u16(0) + u32(2) + u64(3) + b"xyz")),
        ("ready", d),
        ("cast", members(12, 0, 1, 2, 9, 10, 11)),
        ("upload", u64(4096) + b"chunk"),
        ("end", u64(4101) + d + sig),
        ("surv", surv),
        ("sign", sig),
        ("conf", members(4, 1, 3) + sig + sig),
        ("reveal", u16(2) + u16(0) + b"\1" + d + u16(2) + b"\2" + d),
        ("result", u16(0) + d),
        ("hello", u32(1) + u32(7) + d),
        ("ask", b""),
        ("key", sig + b"residues"),
        ("open", u32(2) + u32(3) + d + u64(9) + d + u32(len(surv)) + surv + members(4, 1, 3) + sig + sig),
        ("opened", d),
    ]
    header = b"DAF1" + bytes([8]) + bytes(16) + u32(3) + u16(1) + u64(1 << 32 | 5) + d + u64(32)
    yield "envelope", b"\0" + header + d + sig
    yield "envelope_long", b"\0" + header[:-8] + u64(1 << 63) + d + sig
    yield "envelope_type", b"\0" + header[:4] + b"\xff" + header[5:] + d + sig
    for number, (name, body) in enumerate(bodies, 1):
        yield name, bytes([number]) + body
        yield name + "_cut", bytes([number]) + body[:-1]
        yield name + "_long", bytes([number]) + body + b"\0"
    party = lambda i, role, cell: (u16(i) + b"\x02p" + bytes([97 + i, role]) + u16(cell) + bytes([i]) * 64)
    roster = b"DAFR" + u16(4) + party(0, 0, 0) + party(1, 0, 0) + party(2, 1, 65535) + party(3, 2, 65535)
    yield "roster", b"\xff" + roster
    yield "roster_cut", b"\xff" + roster[:-1]
    config = (b"DAFC\1" + struct.pack("<5H", 5, 4, 3, 1, 1) + b"\x0c" + u32(4) + u64(1 << 18) + b"\x30" +
              u16(900) + u16(2) + u16(8) + u32(16) + u32(1 << 20) + u64(1 << 28) + 5 * u32(30000))
    method = b"\x04deep" + u32(3) + b"abc"
    yield "config", b"\xfe" + config + method
    yield "config_cut", b"\xfe" + config + method[:-1]
    yield "config_long", b"\xfe" + config + method + b"\0"
    yield "config_no_params", b"\xfe" + config + b"\x01a" + u32(0)
    yield "config_zero_in_name", b"\xfe" + config + b"\x04de\0p" + u32(0)
    yield "config_long_name", b"\xfe" + config + b"\x20" + 32 * b"a" + u32(0)
    yield "config_narrow_ring", b"\xfe" + config[:28] + b"\x28" + config[29:] + method
    yield "config_huge_params", b"\xfe" + config + b"\x04deep" + u32(0xffffffff)
    yield "cast_spare_bit", b"\x09" + u16(3) + b"\x0f"
    yield "peers_twice", b"\x03" + u16(2) + 2 * (u16(5) + d + d + sig)
    yield "enroll_huge", b"\x02" + d + d + sig + u32(0xffffffff)
    yield "reveal_kind", b"\x0f" + u16(1) + u16(0) + b"\3" + d
    yield "empty", b""


def audit_files():
    """0 and the text of a log; 1 and a program of four bytes an event, see fuzz_audit.c."""
    d, sig = 64 * "5", 128 * "6"

    def line(event, data, **other):
        fields = {"v": 1, "seq": 1, "ts": 0, "party": 0, "run": 32 * "0", "slot": 1, "event": event, "data": data,
                  "prev": 64 * "0", "hash": d, "sig": sig, **other}
        return json.dumps(fields, sort_keys=True, separators=(",", ":"))

    texts = [
        ("start", line("start", {"boot": 1, "config": d, "name": "a", "roster": d})),
        ("invite", line("invite", {"enrolment": 0, "peer": 3})),
        ("enroll", line("enroll", {"enrolment": 0, "hk": d})),
        ("setup", line("setup", {"enrolment": 0, "h_setup": d, "t": 2, "u0": [0, 1, 2], "u1": [0, 2]})),
        ("model", line("model", {"chosen": [1], "h_setup": d, "he": d, "len": 9, "model": d, "question": 0, "rank": 1, "w": 48})),
        ("ready", line("ready", {"ctx": d})),
        ("cast", line("cast", {"a": [0, 1], "ctx2": d})),
        ("upload", line("upload", {"dig": d, "peer": 1})),
        ("surv", line("surv", {"digests": [d], "stmt": d, "u3": [2]})),
        ("sign", line("sign", {"digests": [d], "signature": sig, "stmt": d, "u3": [2]})),
        ("conf", line("conf", {"fault": "OK", "signatures": [sig], "signers": [1], "stmt": d})),
        ("reveal", line("reveal", {"gone": []})),
        ("result", line("result", {"fault": "E_QUORUM", "question": 3, "sum": d, "u3": []})),
        ("error", line("error", {"fault": "W_ROW_DIFF"})),
        ("errors", line("errors", {"count": 7, "fault": "E_AUTH", "peer": 3})),
        ("done", line("done", {"fault": "OK"})),
        ("key", line("key", {"he": d, "peer": 3})),
        ("open", line("open", {"sealed": d, "u3": [1, 2]})),
        ("peer_head", line("peer_head", {"boot": 1, "head": d, "message": 7, "peer": 3})),
        ("seq_large", line("done", {"fault": "OK"}, seq=2**63 - 1)),
        ("seq_too_large", line("done", {"fault": "OK"}, seq=2**63)),
        ("extra_key", line("done", {"fault": "OK", "more": 1})),
        ("escaped", line("done", {"fault": "OK"}).replace("OK", "O\\u004b")),
        ("deep", line("done", {"fault": "OK"}).replace('"OK"', 100 * "[" + 100 * "]")),
        ("not_json", "{"),
        ("not_object", "[]"),
    ]
    for name, text in texts:
        yield name, b"\0" + text.encode()
        yield name + "_line", b"\0" + text.encode() + b"\n"
    yield "empty", b""
    yield "empty_log", b"\0"
    yield "empty_lines", b"\0\n\n"

    (start, invite, enroll, setup, model, ready, cast, upload, surv, sign, conf, reveal, result, error, done,
     peer_head, key, open_) = range(18)
    wrong_digest, wrong_signatures, no_peer, no_set, other_key, fault = (1 << i for i in range(6))

    def op(party, event, slot=0, members=7, how=0, number=0):
        return bytes([party + 5 * event, slot, number << 3 | members, how])

    def begin(party):
        return op(party, start) + op(party, invite) + op(party, setup)

    def opened(party, slot, cohort=7, how=0):
        """A slot up to CONF, as the party tells it."""
        out = op(party, model, slot, how=no_set if party < 3 else 0) + op(party, cast, slot)
        if party < 3:
            out += op(party, ready, slot) + op(party, upload, slot) + op(party, sign, slot, cohort, how)
        else:
            uploads = range(3) if party == 3 else ()
            out += b"".join(op(party, upload, slot, u) for u in uploads) + op(party, surv, slot, cohort)
        return out + op(party, conf, slot, 7, how)

    end = op(0, reveal, 1, 0) + op(0, result, 1, how=no_set)
    whole = b"".join(begin(p) + opened(p, 1) for p in (3, 0, 1)) + end + op(3, result, 1)
    yield "run", b"\1" + whole
    holder = begin(4) + op(4, key, 1) + opened(4, 1) + op(4, open_, 1)
    yield "run_holder", b"\1" + whole + holder
    yield "run_opened_twice", b"\1" + holder + op(4, open_, 1)
    yield "run_opened_early", b"\1" + begin(4) + opened(4, 1)[:-4] + op(4, open_, 1)
    yield "run_heads", b"\1" + whole + b"".join(op(p, peer_head) for p in range(4)) + op(3, peer_head, 0, 1)
    yield "run_two_slots", b"\1" + begin(0) + opened(0, 1) + opened(0, 2) + op(0, reveal, 2, 0)
    yield "run_restart", b"\1" + begin(0) + opened(0, 1) + op(0, start) + opened(0, 1)
    yield "run_reused", b"\1" + begin(0) + opened(0, 2) + opened(0, 2) + opened(0, 1)
    yield "run_two_statements", b"\1" + begin(0) + opened(0, 1) + begin(1) + opened(1, 1, 6) + begin(2) + opened(2, 1, 3)
    yield "run_signed_twice", b"\1" + begin(0) + opened(0, 1) + op(0, sign, 1, 3) + op(0, conf, 1, 6)
    yield "run_small", b"\1" + begin(0) + op(0, model, 1, how=no_set) + op(0, cast, 1, 1) + op(0, upload, 1) + op(0, sign, 1, 1)
    yield "run_wrong_signatures", b"\1" + begin(1) + opened(1, 1, 7, wrong_signatures) + op(1, reveal, 1, 0)
    yield "run_other_keys", b"\1" + begin(1) + opened(1, 1, 7, other_key)
    yield "run_wrong_digests", b"\1" + b"".join(op(0, e, 1, 7, wrong_digest) for e in range(16))
    yield "run_refused", b"\1" + begin(0) + opened(0, 1, 7, fault)
    yield "run_no_conf", b"\1" + begin(3) + opened(3, 1)[:-4] + op(3, result, 1) + op(3, done) + op(3, error, how=no_peer)
    yield "run_nobody", b"\1" + begin(3) + op(3, model, 1, 0) + op(3, cast, 1, 0) + op(3, surv, 1, 0) + op(3, conf, 1, 0)
    yield "run_turns", b"\1" + b"".join(op(p, e, 1) for e in range(15, -1, -1) for p in (0, 3))


class Program:
    """A program for fuzz_machines.c: its operations in their order there, each a method that appends it."""
    OPERATIONS = ("run hold deliver drop twice astray mutate flip say lie lie_to cheat clock timeout lost hello crash boot "
                  "feed lose replay refuse finish another_run").split()
    CLIENTS = (4, 4, 3, 6, 3, 3)
    HOLDER = 5  # the scenario with a key holder: the last link, and the last party

    def __init__(self, scenario, setup=False):
        self.k = self.server = self.CLIENTS[scenario]
        self.peers = self.k + (scenario == self.HOLDER)
        self.code = bytes([scenario + (128 if setup else 0)])

    def __getattr__(self, name):
        number = self.OPERATIONS.index(name)

        def append(*arguments):
            self.code += bytes([number])
            for a in arguments:
                self.code += bytes([len(a)]) + a if isinstance(a, bytes) else bytes([a % 256])
            return self
        return append

    def down(self, client):
        """The link from the server; that to it is the client's own number."""
        return self.peers + client

    def all_down(self, n):
        for u in range(self.k):
            for _ in range(n):
                self.deliver(self.down(u))
        return self


def machine_files():
    (_, invite, enroll, peers, shares, setup, ack, model, ready, cast, upload, end, surv, sign, conf, reveal, result,
     hello, ask, key, open_, opened) = range(22)
    lie_cast, lie_surv, lie_conf, lie_peers, lie_setup, lie_invite, lie_result, lie_model = range(8)
    cheat_enroll, cheat_shares, cheat_ack, cheat_upload, cheat_reveal = range(5)
    u32 = struct.Struct("<I").pack
    down = 128

    def program(scenario, setup=False):
        return Program(scenario, setup)

    for scenario in range(6):
        yield f"setup_{scenario}", program(scenario, True).finish()
    yield "full_0", program(0).finish()
    yield "full_3", program(3).finish()
    # Messages that do not come, or come wrong.
    yield "drop_enroll", program(0, True).hold(enroll).drop(1).timeout().finish()
    yield "drop_shares", program(0, True).hold(shares).drop(2).timeout().finish()
    yield "drop_ack", program(0, True).hold(ack).drop(0).timeout().hello(0).finish()
    yield "drop_end", program(0).hold(end).drop(3).timeout().finish()
    yield "drop_sign", program(0).hold(sign).drop(0).drop(1).timeout().finish()
    yield "drop_reveal", program(0).hold(reveal).drop(0).drop(1).drop(2).timeout().finish()
    yield "lost_upload", program(3).hold(upload).drop(1).lost(1).hold(sign).hello(1).finish()
    yield "lost_in_cell", program(1).hold(upload).lost(2).finish()
    p = program(0)
    yield "twice_astray", p.hold(cast).twice(p.down(0)).astray(p.down(1), 2).flip(p.down(3), 90).finish()
    p = program(0, True)
    yield "setup_astray", p.hold(setup).astray(p.down(0), 1).astray(p.down(1), 0).finish()
    yield "replay", program(0).hold(conf).replay(3, 0).replay(9, 5).crash(0, 0).replay(5, 4).replay(1, 4).finish()
    # Restarts.
    for name, held in (("cast", cast), ("sign", sign), ("conf", conf)):
        yield f"restart_client_{name}", program(0).hold(held).crash(0, 0).crash(1, 0).finish()
    yield "restart_client_setup", program(0, True).hold(peers).crash(0, 0).hold(setup).crash(1, 0).finish()
    yield "restart_server_setup", program(0, True).hold(shares).crash(4, 0).finish()
    yield "restart_server_upload", program(1).hold(end).crash(4, 0).finish()
    yield "restart_server_reveal", program(0).hold(reveal).deliver(0).crash(4, 0).finish()
    p = program(0)
    yield "crash_effects", p.hold(cast).crash(0, 2).crash(1, 1).all_down(1).hold(surv).crash(2, 1).all_down(1).finish()
    yield "stay_down", program(0).hold(upload).crash(1, down).lost(1).hold(sign).boot(1).finish()
    yield "server_down", program(2).hold(sign).crash(3, down).run(9).boot(3).finish()
    yield "another_run", program(2).hold(surv).another_run().finish()
    yield "run_after_run", program(2).finish().another_run().crash(0, 0).crash(1, 0).crash(2, 0).hold(end).replay(2, 0).finish()
    # The key holder: party 4, link 3, and 7 down to it.
    yield "full_5", program(5).finish()
    yield "holder_drops", program(5).hold(ask).drop(7).hold(key).drop(3).hold(open_).drop(7).hold(opened).drop(3).finish()
    for name, held in (("ask", ask), ("key", key), ("surv", surv), ("open", open_), ("opened", opened)):
        yield f"restart_holder_{name}", program(5).hold(held).crash(4, 0).finish()
        yield f"restart_server_{name}", program(5).hold(held).crash(3, 0).finish()
    for at in range(1, 6):
        yield f"crash_holder_{at}", program(5).hold(open_).crash(4, at).finish()
    yield "holder_setup", program(5, True).hold(setup).crash(4, 0).hold(ack).crash(4, 0).finish()
    yield "open_changed", program(5).hold(open_).mutate(7, 0, 40, 1).deliver(7).run(9).finish()
    yield "chunk_changed", program(5).hold(open_).deliver(7).mutate(7, 0, 90, 1).deliver(7).finish()
    yield "opened_changed", program(5).hold(opened).mutate(3, 0, 0, 1).deliver(3).finish()
    yield "key_changed", program(5).hold(key).mutate(3, 0, 99, 1).deliver(3).finish()
    yield "holder_over", program(5).hold(ask).say(7, result - 1, down, bytes(34)).run(9).finish()
    yield "holder_disk", program(5).hold(surv).feed(4, 4, 1, 20, b"").finish()
    yield "upload_lost", program(5).hold(upload).crash(1, 0).finish()
    yield "lose_vault", program(0).hold(surv).lose(0, 1).finish()
    # What the method refuses.
    yield "refuse_answer", program(0).refuse(1, 1).hold(result).refuse(1, 0).refuse(2, 2).finish()
    yield "refuse_sum", program(2).refuse(3, 3).finish()
    # A server that lies.
    yield "two_casts", program(0).hold(cast).lie(0, lie_cast, 0, 7, 0).lie(1, lie_cast, 0, 1, 0).finish()
    yield "split_cell", program(1).hold(cast).lie(0, lie_cast, 0, 7, 0).hold(surv).lie(2, lie_surv, 0, 15, 7).finish()
    p = program(0)
    yield "two_survs", (p.hold(surv).lie_to(3, lie_surv, 0, 15, 7).deliver(p.down(0)).deliver(p.down(1)).drop(p.down(0))
                        .drop(p.down(1)).hold(conf).lie_to(15, lie_conf, 0, 15, 0).finish())
    yield "thin_quorum", program(0).hold(conf).lie(0, lie_conf, 0, 3, 0).lie(1, lie_conf, 0, 6, 0).lie(2, lie_conf, 0, 16, 0).finish()
    p = program(0)
    yield "other_tie", (p.hold(cast).all_down(1).hold(cast).all_down(1).hold(cast).lie(0, lie_cast, 0, 7, 0).hold(surv)
                        .lie(1, lie_surv, 0, 15, 7).finish())
    p = program(0)
    yield "unknown_tie", (p.hold(cast).all_down(1).hold(cast).all_down(1).hold(model).lie(0, lie_model, 0, 2, 128 + 8 + 7)
                          .deliver(p.down(0)).lie(0, lie_cast, 0, 15, 0).finish())
    yield "second_upload", program(0).hold(end).crash(0, 0).hold(cast).lie(0, lie_cast, 0, 7, 0).finish()
    yield "second_statement", program(0).hold(sign).crash(0, 0).hold(surv).lie(0, lie_surv, 0, 15, 7).finish()
    p = program(3, True)
    yield "two_setups", (p.hold(peers).lie_to(15, lie_peers, 128, 15, 0).run(9).lie_to(15, lie_setup, 128, 15, 1).run(9)
                         .finish())
    yield "lie_model", program(0).lie(0, lie_model, 0, 0, 0).lie(1, lie_model, 1, 1, 9).lie(2, lie_model, 1, 2, 128).finish()
    yield "lie_invite", program(0).lie(0, lie_invite, 128, 1, 0).lie(1, lie_invite, 128, 0, 1).lie(2, lie_result, 128, 0, 0).finish()
    p = program(0)
    yield "mutate_down", (p.hold(cast).mutate(p.down(0), 0, 2, 8).mutate(p.down(1), 5, 0, 1).mutate(p.down(2), 3, 1, 0)
                          .mutate(p.down(3), 6, 0, surv).finish())
    p = program(0)
    yield "say", p.say(p.down(0), cast - 1, 0, b"\x04\0\x0f").say(0, ready - 1, 0, bytes(32)).clock(200).finish()
    # Clients that cheat.
    yield "wrong_share", program(3).hold(reveal).mutate(0, 0, 6, 1).finish()
    yield "wrong_shares", program(3).hold(reveal).mutate(0, 0, 6, 1).mutate(1, 0, 6, 1).mutate(5, 1, 8, 3).finish()
    yield "cheat_keys", program(0, True).hold(enroll).cheat(0, cheat_enroll, 0, 1).cheat(1, cheat_enroll, 2, 2).finish()
    yield "cheat_shares", program(0, True).hold(shares).drop(0).cheat(0, cheat_shares, 15, 1).finish()
    yield "cheat_ack", program(0, True).hold(ack).cheat(0, cheat_ack, 8, 0).mutate(1, 0, 0, 1).finish()
    yield "barred", (program(0, True).hold(ack).cheat(0, cheat_ack, 8, 0).cheat(1, cheat_ack, 8, 0).hold(upload)
                     .crash(4, 0).finish().hello(0))
    yield "cheat_upload", program(0).hold(upload).drop(0).drop(0).cheat(0, cheat_upload, 12, 5).finish()
    yield "cheat_reveal", program(0).hold(reveal).drop(0).cheat(0, cheat_reveal, 14, 0).finish()
    # Disks that their owners did not write.
    yield "feed_raw", program(0).feed(0, 0, 1, 0, b"\x06" + u32(2)).feed(4, 0, 0, 0, b"\x01" + u32(7)).finish()
    yield "feed_patched", program(1).feed(0, 1, 2, 21, b"\x09").feed(4, 1, 2, 40, b"\x01").finish()
    yield "feed_less", program(0).hold(surv).feed(0, 2, 4, 0, b"").feed(1, 7, 1, 0, b"").feed(2, 6, 1, 3, b"abc").finish()
    yield "feed_twice", program(0).hold(result).feed(4, 3, 4, 0, b"").feed(2, 3, 3, 0, b"").finish()


def runfile_files():
    """A small run, and the ways in which texts like it go wrong."""
    def key(i):
        return f"p{i} ed25519:{i:064x} curve25519:{i:064x}"
    roster = f"roster:\n- key: {key(1)}\n- key: {key(2)}\n- {{role: server, key: {key(3)}}}\n"
    seed = "5eed" * 16
    training = f"training: {{features: 4, classes: 2, seed: {seed}}}\n"
    policy = "policy: {n_min: 2, m: 2, g: 1, c: 0, a: 0}\n"
    good = roster + training + policy
    yield "good", good
    yield "order", policy + "# so\n" + training + roster
    yield "cells", good.replace("g: 1", "g: 2").replace("- key", "- cell: 0\n  key")
    yield "everything", good + (
        "contract: {s: 12, q: 4, n_max: 1000, w: 48}\nsecure_agg: masks\nwant: 0.9\ntries: 1\nretries: 2\nslots: 9\n"
        "timeouts: {setup: 1, ready: 2.5, upload: 3, sign: 4, reveal: 5}\ncaps: {chunk: 16384, body_max: 100000}\n")
    yield "learner", good.replace("features: 4", "method: deepafl, features: 4, width: 8, hidden: 8, layers: 1, activation: "
                                  "relu, lambda: 1e-3, gamma: 0, schedule: full, participation: 1.0, participation_kind: "
                                  "inconsistent, by: clients")
    yield "afl", good.replace("features: 4", "method: afl, features: 4")
    yield "seal", good.replace("- key", f"- {{role: keyholder, key: {key(4)}}}\n- key", 1) + "secure_agg: seal\n"
    yield "twice", good + "want: 1\nwant: 1\n"
    yield "unknown", good + "wants: 1\n"
    yield "unknown_in_list", good.replace("- key", "- cells: 0\n  key", 1)
    yield "missing", roster + policy
    yield "range", good + "slots: 0\n"
    yield "kinds", good + "slots: [1]\n"
    yield "section", good + "caps: 3\n"
    yield "rule", good.replace("m: 2", "m: 3")
    yield "no_threshold", good.replace("a: 0", "a: 1")
    yield "same_key", good.replace(key(2), key(1))
    yield "alias", good + "want: &a 1\ntries: *a\n"
    yield "tags", good + "want: !!float 1\ntries: ! 3\n"
    yield "quotes", good + "want: \"\\x31\"\ntries: '3'\nretries: >-\n  3\n"
    yield "zero", good + "want: \"1\\0\"\n"
    yield "documents", good + "---\n" + policy
    yield "open", good + "caps: {chunk: 16384"
    yield "deep", "[" * 300
    yield "key_is_a_list", "{? [a] : b}"
    yield "merge", good + "<<: {want: 1}\n"
    yield "utf16", "\ufeffwant: 1\n".encode("utf-16-le")
    yield "bom", "\ufeff" + good
    yield "control", "want: \x01\n"
    yield "comment", "# nothing\n"
    yield "empty", b""


def he_files():
    """See fuzz/fuzz_he.c: what is done, by how much the length is wrong, places that are changed."""
    for kind, name in enumerate(("first", "added", "opened", "key")):
        for base, words in enumerate(("random", "zero", "negative", "largest")):
            yield f"{name}_{words}", bytes([kind | base << 2, 0])
        yield f"{name}_short", bytes([kind, 0xff])
        yield f"{name}_long", bytes([kind, 1])
        for row in range(6 if name == "key" else 4):
            for what, value in (("below", 127), ("at", 128), ("above", 255)):
                yield f"{name}_row{row}_{what}_prime", bytes([kind, 0, row, 0xff, 0x0f, value])
        yield f"{name}_flipped", bytes([kind, 0, 0x81, 7, 0, 0x80])
        # What is zero or cancels everywhere but in one place.
        yield f"{name}_zero_but_one", bytes([kind | 4, 0, 0x83, 0xff, 0xff, 0x01])
        yield f"{name}_negative_but_one", bytes([kind | 8, 0, 3, 5, 0, 9])


# Programs that found something once.
FOUND = (
    ("erase_after_closed", bytes.fromhex("0001100204100001020416")),
    ("closed_beyond_slots", bytes.fromhex("0012000003000506ffffffff")),
    ("sum_too_early", bytes.fromhex("00120400ff001f0a01000000050000000000000004000f04000f000000000000000000000000")),
    ("unopened_by_all", bytes.fromhex("800106060002ff01060102ff01060202ff01060302ff0116")),
    ("stands_before_setup", bytes.fromhex("800104020002010202100401020316")),
    ("another_run", bytes.fromhex("02010c1716")),
    ("out_before_a_slot", bytes.fromhex("010000000041000027c100b78677868116792abf38171ed15007aa6058173fca1e70fe168ca70d357e9378160016")),
    ("out_before_a_slot_2", bytes.fromhex("2582347bfe000f032f6465762f7572616e6400030103020d16")),
    ("unopened_told_twice", bytes.fromhex("8001060b0002080002000800108028000000000000000000000000000000000000000000000000000000000000"
        "0000000000000000000002000b0002080002000800108028000000000000000000000000000000000000000000"
        "0000000000000000000000000000000000000002000b00020800020016")),
)

for folder, files in (("npy", npy_files()), ("safetensors", st_files()), ("messages", message_files()),
                      ("audit", audit_files()), ("he", he_files()),
                      ("machines", (*((name, p.code) for name, p in machine_files()), *FOUND)),
                      ("runfile", ((name, text if isinstance(text, bytes) else text.encode())
                                   for name, text in runfile_files()))):
    (CORPUS / folder).mkdir(parents=True, exist_ok=True)
    for name, content in files:
        assert len(content) < 1024, name
        (CORPUS / folder / name).write_bytes(content)
