#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ChaCha20 (the original, 64-bit nonce and counter) and what lib/stream.c draws
from it, written from the papers alone:  python3 stream.py > stream.h"""
import math
import struct

MASK = 0xFFFFFFFF


def quarter(x, a, b, c, d):
    for p, q, r, n in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        x[p] = (x[p] + x[q]) & MASK
        x[r] = ((x[r] ^ x[p]) << n | (x[r] ^ x[p]) >> (32 - n)) & MASK


def block(key, nonce, counter):
    start = struct.unpack('<4I', b'expand 32-byte k') + struct.unpack('<8I', key)
    start += struct.unpack('<4I', struct.pack('<QQ', counter, nonce))
    x = list(start)
    for _ in range(10):
        for i in range(4):
            quarter(x, i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(x, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return struct.pack('<16I', *((a + b) & MASK for a, b in zip(x, start)))


def words(seed, use, number):
    counter = 0
    while True:
        yield from struct.unpack('<8Q', block(seed, use << 56 | number, counter))
        counter += 1


def uniform(word, bound):
    return ((word >> 11) - 2**52 + 0.5) / 2**52 * bound


def below(stream, n):
    while True:
        v = next(stream)
        if v >= 2**64 % n:
            return v % n


def shuffled(n, stream):
    items = list(range(n))
    for i in range(n, 1, -1):
        j = below(stream, i)
        items[i - 1], items[j] = items[j], items[i - 1]
    return items


# RFC 7539, 2.3.2: its 96-bit nonce and counter are our counter and nonce.
assert block(bytes(range(32)), 0x4A000000, 1 | 0x09000000 << 32)[:8] == \
    bytes.fromhex('10f1e7e4d13b5915')


def main():
    zero, ramp = bytes(32), bytes(range(32))
    number_7 = (7).to_bytes(32, 'little')
    print('/* SPDX-License-Identifier: Apache-2.0 */')
    print('/* Written by stream.py. */')
    print('static const struct {\n    const char *seed;\n    int use;\n'
          '    uint64_t number;\n    size_t at;\n    uint64_t word;\n'
          '    double bound, uniform;\n} stream_known[] = {')
    for seed in (zero, ramp, number_7):
        for use, number in ((0, 0), (0, 1), (1, 0), (2, 2**56 - 1)):
            stream = words(seed, use, number)
            for at in range(1026):
                w = next(stream)
                if at in (0, 1, 63, 64, 511, 512, 1025):
                    bound = 1 / math.sqrt(at + 1)
                    print(f'    {{"{seed.hex()}", {use}, {number}u, {at},\n'
                          f'     0x{w:016x}u, {bound.hex()},\n'
                          f'     {uniform(w, bound).hex()}}},')
    print('};')
    print('/* Seed ramp, use 2, number 0: below(n) one after another. */')
    print('static const uint64_t below_known[][2] = {')
    stream = words(ramp, 2, 0)
    for n in (1, 2, 10, 2**32 + 1, 2**63 + 1, 2**63 + 1, 2**63 + 1, 2**64 - 1, 3):
        print(f'    {{{n}u, {below(stream, n)}u}},')
    print('};')
    print('/* Seed ramp, use 2, number 1: 0 .. 19 shuffled. */')
    items = shuffled(20, words(ramp, 2, 1))
    print('static const uint32_t shuffle_known[] = {' +
          ', '.join(map(str, items[:10])) + ',\n                                        ' +
          ', '.join(map(str, items[10:])) + '};')


if __name__ == '__main__':
    main()
