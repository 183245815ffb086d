#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the seed inputs of the fuzz targets: corpus/npy, corpus/safetensors and corpus/messages.

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
    bodies = [
        ("invite", u32(1) + d + d),
        ("enroll", d + d + sig + u32(2) + 2 * (d + d)),
        ("peers", u16(2) + u16(0) + d + d + sig + u16(9) + d + d + sig),
        ("shares", u16(2) + u32(5) + u16(1) + b"abcde" + u16(3) + b"fghij" + sig),
        ("setup", u16(2) + u32(1) + u32(3) + u16(0) + d + sig + u16(1) + d + sig + b"abc" + 2 * (d + d)),
        ("setup_ack", d + members(9, 0, 8)),
        ("model", u32(4) + u32(10) + u16(2) + 2 * (u32(3) + b"\1" + u16(0) + u32(2) + u64(3) + b"xyz")),
        ("ready", d),
        ("cast", members(12, 0, 1, 2, 9, 10, 11)),
        ("upload", u64(4096) + b"chunk"),
        ("end", u64(4101) + d),
        ("surv", members(4, 0, 1, 2, 3) + members(4, 0, 1) + d + d),
        ("sign", sig),
        ("conf", members(4, 1, 3) + sig + sig),
        ("reveal", u16(2) + u16(0) + b"\1" + d + u16(2) + b"\2" + d),
        ("result", u16(0) + d),
        ("hello", u32(7) + d),
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


for folder, files in (("npy", npy_files()), ("safetensors", st_files()),
                      ("messages", message_files())):
    (CORPUS / folder).mkdir(parents=True, exist_ok=True)
    for name, content in files:
        assert len(content) < 1024, name
        (CORPUS / folder / name).write_bytes(content)
