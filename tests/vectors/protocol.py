#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The digests that the protocol binds keys and signatures to, and a signed envelope, written from the
grammar at the head of protocol/context.h, messages.h, roster.h and config.h alone.

    python3 protocol.py > protocol.h"""
import struct

from crypto import ed_public, ed_sign, h, quoted, some, u16, x25519_public

ZERO = bytes(32)


def u32(v):
    return struct.pack('<I', v)


def u64(v):
    return struct.pack('<Q', v)


def members(n, *present):
    return u16(n) + sum(1 << i for i in present).to_bytes((n + 7) // 8, 'little')


def define(name, value):
    print(f'static const char {name}[] =\n     {quoted(value)};')


run, roster, config = some('run', 16), some('roster'), some('config')
keys = some('keys', 3 * 64)
ek = some('ek')
hk = h('deepafl/hk', keys)
shares = h('deepafl/shares', b'packets')
dealt = h('deepafl/dealt', run, u32(0x20103), u16(258), shares)
setup = h('deepafl/setup', run, roster, config, u16(3),
          u16(1), ek, hk, dealt, u16(258), some('ek 2'), some('hk 2'), some('dealt 2'))
model = ZERO
for query, kind, layer, slot, data in ((1, 2, 0, 5, b'head'), (2, 3, 513, 7, b'')):
    model = h('deepafl/model', model, u32(query), bytes([kind]), u16(layer), u32(slot), data)
ctx = h('deepafl/ctx', setup, u32(9), u32(2), u32(0x10203), model, u64(627200), bytes([48]), ZERO)
ctx2 = h('deepafl/cast', ctx, members(12, 0, 1, 2, 9, 10, 11))
dig = h('deepafl/up', ctx2, u16(9), b'masked bytes')
end = h('deepafl/end', ctx2, u16(9), dig)
he = h('deepafl/he', b'public key')
key = h('deepafl/key', run, setup, u32(9), he)
sealed = h('deepafl/sealed', ctx2, b'ciphertexts')
opened = h('deepafl/opened', sealed, b'words')
stmt = h('deepafl/stmt', ctx2, members(12, 9, 10, 11), dig + some('dig 10') + some('dig 11'))

body = ctx
header = (b'DAF1' + bytes([8]) + run + u32(9) + u16(258) + u64(3 << 32 | 17) + some('log head') +
          u64(len(body)))
seed = some('identity', 64)
envelope = header + body + ed_sign(seed[:32], h('deepafl/msg', header, h('deepafl/body', body)))

parties = [('site-a', 0, 0), ('site-b', 0, 0), ('server', 1, 65535)]
roster_bytes = b'DAFR' + u16(len(parties))
for i, (name, role, cell) in enumerate(parties):
    secret = some(name, 64)
    roster_bytes += (u16(i) + bytes([len(name)]) + name.encode() + bytes([role]) + u16(cell) +
                     ed_public(secret[:32]) + x25519_public(secret[32:]))

config_bytes = (b'DAFC' + bytes([2]) + u16(0x1102) + u16(0x2203) + u16(0x3304) + u16(0x4405) + u16(0x5506) +
                bytes([3]) + u32(0x107) + u64(0x1000000809) + bytes([64]) +
                u16(0x2ab) + u16(0x660c) + u16(0x770d) + u32(0xeef) + u32(0x123456) + u64(0x89abcdef) +
                u32(0x10000001) + u32(0x20000002) + u32(0x30000003) + u32(0x40000004) + u32(0x50000005) +
                bytes([9]) + b'Some.m-_9' + u32(258) + some('params', 258))

print('/* SPDX-License-Identifier: Apache-2.0 */')
print('/* Written by protocol.py; bytes in hexadecimal. */\n')
for name, value in (('run', run), ('roster', roster), ('config', config), ('keys', keys), ('ek', ek),
                    ('ek_2', some('ek 2')), ('hk_2', some('hk 2')), ('dealt_2', some('dealt 2')),
                    ('dig_10', some('dig 10')), ('dig_11', some('dig 11')),
                    ('log_head', some('log head')), ('seed', seed),
                    ('seed_site_a', some('site-a', 64)), ('seed_site_b', some('site-b', 64)),
                    ('seed_server', some('server', 64)), ('params', some('params', 258))):
    define(f'given_{name}', value)
print()
for name, value in (('hk', hk), ('enroll', h('deepafl/enroll', run, u32(0x20103), u16(1), ek, hk)), ('shares', shares),
                    ('dealt', dealt), ('setup', setup), ('model', model), ('he', he),
                    ('key', key), ('sealed', sealed), ('opened', opened), ('ctx', ctx), ('ctx2', ctx2), ('dig', dig),
                    ('end', end), ('stmt', stmt), ('envelope', envelope), ('roster_bytes', roster_bytes),
                    ('roster_digest', h('deepafl/roster', roster_bytes)),
                    ('config_bytes', config_bytes),
                    ('config_digest', h('deepafl/config', config_bytes))):
    define(f'known_{name}', value)
