/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/gf256.h"

#include <string.h>

/* Eight elements in a word, each doubled: shift left within bytes and reduce
 * where the top bit fell out (0x80 >> 7 * 0x1b = 0x1b in that byte). */
static uint64_t doubled(uint64_t v)
{
    uint64_t high = v & 0x8080808080808080u;

    return ((v ^ high) << 1) ^ (high >> 7) * 0x1b;
}

void dafl_gf_add_scaled(uint8_t out[32], const uint8_t v[32], uint8_t x)
{
    uint64_t o[4], p[4];

    memcpy(o, out, sizeof o);
    memcpy(p, v, sizeof p);
    for (unsigned bit = 0; bit < 8; bit++) {
        uint64_t take = 0u - (uint64_t)((unsigned)x >> bit & 1u);
        for (unsigned i = 0; i < 4; i++) {
            o[i] ^= p[i] & take;
            p[i] = doubled(p[i]);
        }
    }
    memcpy(out, o, sizeof o);
}
