#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What crypto/ computes, written from PROTOCOL.md and the RFCs alone, with no library but the
standard one's BLAKE2b and SHA-512; every primitive is first held against its RFC.

    python3 crypto.py > crypto.h"""
import hashlib
import struct

# ---- ChaCha20, HChaCha20 (RFC 8439, draft-irtf-cfrg-xchacha-03) ----


def rotate(v, n):
    v &= 0xFFFFFFFF
    return (v << n | v >> (32 - n)) & 0xFFFFFFFF


def quarter(x, a, b, c, d):
    x[a] += x[b]
    x[d] = rotate(x[d] ^ x[a], 16)
    x[c] += x[d]
    x[b] = rotate(x[b] ^ x[c], 12)
    x[a] += x[b]
    x[d] = rotate(x[d] ^ x[a], 8)
    x[c] += x[d]
    x[b] = rotate(x[b] ^ x[c], 7)


def twenty_rounds(words):
    x = list(words)
    for _ in range(10):
        for a, b, c, d in ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
                           (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)):
            quarter(x, a, b, c, d)
        x = [v & 0xFFFFFFFF for v in x]
    return x


def chacha_start(key, last16):
    return struct.unpack('<16I', b'expand 32-byte k' + key + last16)


def chacha_block(key, last16):
    """last16: counter and nonce, in either division of those 16 bytes."""
    start = chacha_start(key, last16)
    return struct.pack('<16I', *((a + b) & 0xFFFFFFFF for a, b in zip(twenty_rounds(start), start)))


def hchacha(key, nonce16):
    x = twenty_rounds(chacha_start(key, nonce16))
    return struct.pack('<8I', *(x[:4] + x[12:]))


def keystream(key, begin, end):
    """Bytes [begin, end) of the stream with a 64-bit counter and nonce 0."""
    first, last = begin // 64, (end + 63) // 64
    stream = b''.join(chacha_block(key, struct.pack('<QQ', i, 0)) for i in range(first, last))
    return stream[begin - 64 * first:end - 64 * first]


ramp = bytes(range(32))
assert chacha_block(ramp, bytes.fromhex('01000000000000090000004a00000000'))[:16].hex() == \
    '10f1e7e4d13b5915500fdd1fa32071c4'
assert hchacha(ramp, bytes.fromhex('000000090000004a0000000031415927')).hex() == \
    '82413b4227b27bfed30e42508a877d73a0f9e4d58a74a853c12ec41326d3ecdc'

# ---- XChaCha20-Poly1305 ----


def poly1305(key, message):
    r = int.from_bytes(key[:16], 'little') & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    total = 0
    for i in range(0, len(message), 16):
        total = (total + int.from_bytes(message[i:i + 16] + b'\1', 'little')) * r % (2**130 - 5)
    return ((total + int.from_bytes(key[16:], 'little')) % 2**128).to_bytes(16, 'little')


assert poly1305(bytes.fromhex('85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b'),
                b'Cryptographic Forum Research Group').hex() == 'a8061dc1305136c6c22b8baf0c0127a9'


def pad16(x):
    return x + bytes(-len(x) % 16)


def xchacha_seal(key, nonce, ad, plain):
    subkey = hchacha(key, nonce[:16])
    blocks = [chacha_block(subkey, struct.pack('<II', i, 0) + nonce[16:])
              for i in range(len(plain) // 64 + 2)]
    cipher = bytes(p ^ k for p, k in zip(plain, b''.join(blocks[1:])))
    return cipher + poly1305(blocks[0][:32], pad16(ad) + pad16(cipher) +
                             struct.pack('<QQ', len(ad), len(cipher)))


sealed = xchacha_seal(bytes(range(0x80, 0xA0)), bytes(range(0x40, 0x58)),
                      bytes.fromhex('50515253c0c1c2c3c4c5c6c7'),
                      b"Ladies and Gentlemen of the class of '99: If I could offer you only one "
                      b"tip for the future, sunscreen would be it.")
assert sealed[:16].hex() == 'bd6d179d3e83d43b9576579493c0e939'
assert sealed[-16:].hex() == 'c0875924c1c7987947deafd8780acf49'

# ---- X25519 (RFC 7748) ----

P = 2**255 - 19


def x25519(scalar, point):
    k = int.from_bytes(scalar, 'little')
    k = k & ~7 & (2**255 - 1) | 2**254
    u = int.from_bytes(point, 'little') & (2**255 - 1)
    # (x0 : z0) and (x1 : z1) always differ by the point itself.
    x0, z0, x1, z1 = 1, 0, u, 1
    for bit in range(254, -1, -1):
        if k >> bit & 1:
            x0, z0, x1, z1 = x1, z1, x0, z0
        s, d = x0 + z0, x0 - z0
        ss, dd = s * s % P, d * d % P
        m, n = (x1 - z1) * s % P, (x1 + z1) * d % P
        x1, z1 = (m + n)**2 % P, u * (m - n)**2 % P
        e = ss - dd
        x0, z0 = ss * dd % P, e * (ss + 121665 * e) % P
        if k >> bit & 1:
            x0, z0, x1, z1 = x1, z1, x0, z0
    return (x0 * pow(z0, P - 2, P) % P).to_bytes(32, 'little')


def x25519_public(scalar):
    return x25519(scalar, (9).to_bytes(32, 'little'))


assert x25519(bytes.fromhex('a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4'),
              bytes.fromhex('e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c')
              ).hex() == 'c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552'
assert x25519(bytes.fromhex('4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d'),
              bytes.fromhex('e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493')
              ).hex() == '95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957'

# ---- Ed25519 (RFC 8032) ----

D = -121665 * pow(121666, P - 2, P) % P
L = 2**252 + 27742317777372353535851937790883648493


def ed_add(p, q):
    """Affine, by the complete addition law of the twisted Edwards curve."""
    (x1, y1), (x2, y2) = p, q
    c = D * x1 * x2 * y1 * y2 % P
    return ((x1 * y2 + x2 * y1) * pow(1 + c, P - 2, P) % P,
            (y1 * y2 + x1 * x2) * pow(1 - c, P - 2, P) % P)


def ed_times(k, p):
    total = (0, 1)
    while k > 0:
        if k & 1:
            total = ed_add(total, p)
        p, k = ed_add(p, p), k >> 1
    return total


def ed_bytes(p):
    return (p[1] | (p[0] & 1) << 255).to_bytes(32, 'little')


def ed_base():
    y = 4 * pow(5, P - 2, P) % P
    xx = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(xx, (P + 3) // 8, P)
    if (x * x - xx) % P != 0:
        x = x * pow(2, (P - 1) // 4, P) % P
    return (P - x if x & 1 else x, y)


BASE = ed_base()


def sha512_int(*parts):
    return int.from_bytes(hashlib.sha512(b''.join(parts)).digest(), 'little')


def ed_secret(seed):
    h = hashlib.sha512(seed).digest()
    return int.from_bytes(h[:32], 'little') & ~7 & (2**255 - 1) | 2**254, h[32:]


def ed_public(seed):
    return ed_bytes(ed_times(ed_secret(seed)[0], BASE))


def ed_sign(seed, message):
    a, prefix = ed_secret(seed)
    r = sha512_int(prefix, message) % L
    big_r = ed_bytes(ed_times(r, BASE))
    s = (r + sha512_int(big_r, ed_public(seed), message) * a) % L
    return big_r + s.to_bytes(32, 'little')


for seed, public, message, signature in (
        ('9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60',
         'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a', '',
         'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155'
         '5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b'),
        ('c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7',
         'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025', 'af82',
         '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac'
         '18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a')):
    assert ed_public(bytes.fromhex(seed)).hex() == public
    assert ed_sign(bytes.fromhex(seed), bytes.fromhex(message)).hex() == signature

# ---- Shamir over GF(2^8), by tables of powers of 3 ----

POWER = [1]
for _ in range(254):
    v = POWER[-1] << 1 ^ POWER[-1]
    POWER.append(v ^ 0x11B if v > 0xFF else v)
LOG = {v: i for i, v in enumerate(POWER)}
assert len(LOG) == 255 and POWER[LOG[0x57] + LOG[0x83] - 255] == 0xC1  # FIPS 197, 4.2


def gf_mul(a, b):
    return 0 if 0 in (a, b) else POWER[(LOG[a] + LOG[b]) % 255]


def gf_power(a, k):
    return POWER[LOG[a] * k % 255]


def place(dealer, holder):
    """The others in order, numbered from 1."""
    return [h for h in range(256) if h != dealer].index(holder) + 1


def split(secret, coefficients, x):
    share = list(secret)
    for k, c in enumerate(coefficients, 1):
        share = [s ^ gf_mul(v, gf_power(x, k)) for s, v in zip(share, c)]
    return bytes(share)


# ---- the protocol's derivations ----


def lp(x):
    return struct.pack('<I', len(x)) + x


def kdf(key, label, *parts):
    return hashlib.blake2b(b''.join(map(lp, (label.encode(),) + parts)), digest_size=32,
                           key=key).digest()


def h(label, *parts):
    return kdf(b'', label, *parts)


def u16(v):
    return struct.pack('<H', v)


def packet_key(own, peer, run, u, v, ek_u, hk_u, ek_v, hk_v):
    return kdf(x25519(own, peer), 'deepafl/share', run, u16(u), u16(v), ek_u, hk_u, ek_v, hk_v)


def pair_key(sk_u, pk_v, ctx2, u, v):
    ends = sorted([(u, x25519_public(sk_u)), (v, pk_v)])
    return kdf(x25519(sk_u, pk_v), 'deepafl/pair', ctx2, u16(ends[0][0]), u16(ends[1][0]),
               ends[0][1], ends[1][1])


def some(what, n=32):
    """Bytes of the test's own, the same in every run."""
    return hashlib.shake_256(what.encode()).digest(n)


# ---- output ----


def table(comment, fields, name, rows):
    print(f'\n/* {comment} */\nstatic const struct {{')
    for f in fields:
        print(f'    {f};')
    print(f'}} {name}[] = {{')
    for row in rows:
        text = '    {' + row[0]
        for before, field in zip(row, row[1:]):
            long = '"' in before or '"' in field
            text += (',\n     ' if long else ', ') + field
        print(text + '},')
    print('};')


def quoted(x):
    text = x.hex() if isinstance(x, bytes) else x
    lines = [text[i:i + 64] for i in range(0, len(text), 64)] or ['']
    return '\n     '.join(f'"{line}"' for line in lines)


def hash_rows():
    cases = (
        (None, 'deepafl/cb', [('b', ramp)]),
        (None, 'deepafl/cb', []),
        (None, '', []),
        (None, '', [('b', b'')]),
        (None, 'a', [('b', b''), ('b', b'')]),
        (None, 'deepafl/x', [('b', b'ab'), ('b', b'c')]),
        (None, 'deepafl/x', [('b', b'a'), ('b', b'bc')]),
        (None, 'deepafl/x', [('b', b'abc')]),
        (None, 'deepafl/x', [('2', 0x0102), ('4', 0x01020304), ('8', 0x0102030405060708)]),
        (None, 'deepafl/x', [('2', 0xFFFF), ('4', 0xFFFFFFFF), ('8', 2**64 - 1)]),
        (None, 'deepafl/x', [('8', 0), ('b', b''), ('2', 0), ('b', b'end')]),
        (None, 'deepafl/long', [('b', some('long', 1000))]),
        (bytes(32), 'deepafl/pair', []),
        (ramp, 'deepafl/pair', [('b', some('ctx2')), ('2', 1), ('2', 2)]),
        (ramp, 'deepafl/self', [('b', some('ctx2')), ('2', 1), ('2', 2)]),
        (some('key'), 'deepafl/share', [('b', b''), ('4', 7), ('b', some('long', 300))]),
    )
    size = {'2': 2, '4': 4, '8': 8}
    for key, label, parts in cases:
        raw = [p if k == 'b' else p.to_bytes(size[k], 'little') for k, p in parts]
        shown = ',\n      '.join(
            f"{{'b', 0, {quoted(p)}}}" if k == 'b' else f"{{'{k}', {p:#x}u, NULL}}"
            for k, p in parts)
        yield ('NULL' if key is None else quoted(key), f'"{label}"', str(len(parts)),
               f'{{{shown or "{0, 0, NULL}"}}}', quoted(kdf(key or b'', label, *raw)))


def prg_rows():
    for key in (bytes(32), ramp, some('prg')):
        for w in (32, 40, 48, 56, 64):
            for at in (0, 1, 9, 63, 64, 1023, 1024, 1025, 4097):
                word = keystream(key, at * w // 8, (at + 1) * w // 8)
                yield (quoted(key), str(w), str(at), f'0x{word[::-1].hex()}u')


MASKED = 1100


def masked_rows():
    keys = [(some('mask 1'), 1), (some('mask 2'), -1), (some('mask 3'), -1), (bytes(32), 1)]
    for w in (32, 40, 48, 56, 64):
        size = w // 8
        acc = [i * 0x9E3779B97F4A7C15 for i in range(MASKED)]
        for key, sign in keys:
            stream = keystream(key, 0, MASKED * size)
            acc = [a + sign * int.from_bytes(stream[i * size:(i + 1) * size], 'little')
                   for i, a in enumerate(acc)]
        acc = [a % 2**w for a in acc]
        packed = b''.join(a.to_bytes(size, 'little') for a in acc)
        yield (str(w), quoted(packed[:32]), quoted(h('test/vector', packed)))


def public_rows():
    for sk in (ramp, some('sk 1'), some('sk 2'), bytes(31) + b'\xff', b'\xff' * 32, bytes(32)):
        yield quoted(sk), quoted(x25519_public(sk))


def packet_key_rows():
    for i, (u, v) in enumerate(((0, 1), (1, 0), (255, 256), (0x1234, 0xFFFE))):
        sk_u, sk_v = some(f'ek {u}'), some(f'ek {v}')
        ek_u, ek_v = x25519_public(sk_u), x25519_public(sk_v)
        hk_u, hk_v, run = some(f'hk {u}'), some(f'hk {v}'), some(f'run {i}', 16)
        yield (quoted(sk_u), quoted(sk_v), quoted(hk_u), quoted(hk_v), quoted(run), str(u), str(v),
               quoted(packet_key(sk_u, ek_v, run, u, v, ek_u, hk_u, ek_v, hk_v)))


def pair_key_rows():
    for i, (u, v) in enumerate(((0, 1), (1, 0), (256, 255), (0x00FF, 0x0100), (7, 65535))):
        sk_u, sk_v, ctx2 = some(f'pair {u}'), some(f'pair {v}'), some(f'ctx2 {i}')
        key = pair_key(sk_u, x25519_public(sk_v), ctx2, u, v)
        assert key == pair_key(sk_v, x25519_public(sk_u), ctx2, v, u)
        yield quoted(sk_u), quoted(sk_v), quoted(ctx2), str(u), str(v), quoted(key)


def self_key_rows():
    for b, ctx2, u in ((ramp, some('ctx2'), 0), (some('b'), some('ctx2'), 0x1234),
                       (bytes(32), bytes(32), 65535)):
        yield (quoted(b), quoted(ctx2), str(u), quoted(kdf(b, 'deepafl/self', ctx2, u16(u))),
               quoted(h('deepafl/cb', b)))


def packet_rows():
    for i, n in enumerate((0, 1, 63, 64, 65, 192, 640)):
        key, run, nonce = some(f'packet {i}'), some(f'run {i}', 16), some(f'nonce {i}', 24)
        u, v, plain = i, 0xFF00 + i, some(f'shares {i}', n)
        yield (quoted(key), quoted(run), str(u), str(v), quoted(nonce), str(n), quoted(plain),
               quoted(nonce + xchacha_seal(key, nonce, run + u16(u) + u16(v), plain)))


def shamir_rows():
    for parties, dealer, t in ((2, 0, 1), (2, 1, 1), (6, 0, 3), (6, 3, 3), (6, 5, 5), (40, 17, 26),
                               (256, 0, 2), (256, 100, 55), (256, 255, 128)):
        secret = some(f'secret {dealer}')
        coefficients = [h('test/coefficient', struct.pack('<I', dealer), struct.pack('<I', k))
                        for k in range(1, t)]
        shares = [split(secret, coefficients, place(dealer, holder))
                  for holder in range(parties) if holder != dealer]
        yield (str(parties), str(dealer), str(t), quoted(secret), quoted(shares[0]),
               quoted(shares[-1]), quoted(h('test/shares', *shares)))


def identity_rows():
    for name, seed in (('site-1', some('identity', 64)), ('A', bytes(range(64))),
                       ('x' * 60 + '._-', bytes(64))):
        digest = some('digest of ' + name)
        sign_pk, curve_pk = ed_public(seed[:32]), x25519_public(seed[32:])
        yield (f'"{name}"', quoted(seed),
               f'"{name}"\n     " ed25519:{sign_pk.hex()}"\n     " curve25519:{curve_pk.hex()}"',
               quoted(digest), quoted(ed_sign(seed[:32], digest)))


def main():
    print('/* SPDX-License-Identifier: Apache-2.0 */')
    print('/* Written by crypto.py; bytes in hexadecimal. */')
    table("H, or KDF where there is a key. A part is bytes ('b') or an integer.",
          ['const char *key, *label', 'size_t n_parts',
           'struct {\n        char kind;\n        uint64_t value;\n        const char *bytes;\n'
           '    } parts[4]', 'const char *digest'], 'hash_known', hash_rows())
    table('Word `at` of the mask of a key.', ['const char *key', 'unsigned w', 'size_t at',
                                              'uint64_t word'], 'prg_known', prg_rows())
    print('\n/* i * 0x9e3779b97f4a7c15 for i < MASKED under four masks: the first bytes and\n'
          ' * H("test/vector", all) of the packed words. */')
    print(f'#define MASKED {MASKED}')
    print('static const struct {\n    const char *key;\n    int negate;\n} masked_keys[] = {')
    for what, negate in (('mask 1', 0), ('mask 2', 1), ('mask 3', 1)):
        print(f'    {{{quoted(some(what))}, {negate}}},')
    print(f'    {{{quoted(bytes(32))}, 0}},\n}};')
    table('See above.', ['unsigned w', 'const char *first, *digest'], 'masked_known', masked_rows())
    table('X25519 of the base point.', ['const char *sk, *pk'], 'public_known', public_rows())
    table('Packet keys from u to v.', ['const char *sk_u, *sk_v, *hk_u, *hk_v, *run', 'uint16_t u, v',
                                       'const char *key'], 'packet_key_known', packet_key_rows())
    table('Pair keys.', ['const char *sk_u, *sk_v, *ctx2', 'uint16_t u, v', 'const char *key'],
          'pair_key_known', pair_key_rows())
    table('Self keys and commitments.', ['const char *b, *ctx2', 'uint16_t u',
                                         'const char *key, *commitment'], 'self_key_known',
          self_key_rows())
    table('Sealed packets.', ['const char *key, *run', 'uint16_t from, to', 'const char *nonce',
                              'size_t len', 'const char *plain, *sealed'], 'packet_known',
          packet_rows())
    table('All shares of a dealer among `parties`: those of the first and of the last\n'
          ' * holder, and H("test/shares", share ..) over all. Coefficient k is\n'
          ' * H("test/coefficient", u32 dealer, u32 k).',
          ['size_t parties, dealer, t',
           'const char *secret, *first, *last, *shares'], 'shamir_known', shamir_rows())
    table('The secret file\'s seed, the public line, a signature.',
          ['const char *name, *seed, *line, *digest, *signature'], 'identity_known', identity_rows())


if __name__ == '__main__':
    main()
