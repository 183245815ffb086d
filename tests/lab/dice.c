/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers that can be had again. */
#include "tests/lab/inside.h"

#include <string.h>

#include <sodium.h>

static uint8_t key[32], pool[512];
static uint64_t block;
static size_t used = sizeof pool;

static const char *dice_name(void)
{
    return "lab";
}

static void dice_buf(void *out, const size_t len)
{
    static const uint8_t zeros[sizeof pool], nonce[8];
    uint8_t *at = out;

    for (size_t i = 0; i < len; i++) {
        if (used == sizeof pool) {
            crypto_stream_chacha20_xor_ic(pool, zeros, sizeof pool, nonce,
                                          block, key);
            block += sizeof pool / 64;
            used = 0;
        }
        at[i] = pool[used++];
    }
}

static uint32_t dice_random(void)
{
    uint32_t v;

    dice_buf(&v, sizeof v);
    return v;
}

static int dice_close(void)
{
    return 0;
}

void lab_dice_derive(uint8_t *out, size_t len, uint64_t seed, const char *use,
                     uint32_t number)
{
    dafl_digest d;
    dafl_hash h;
    const uint8_t nonce[8] = {0};

    dafl_hash_init(&h, "deepafl/lab");
    dafl_hash_u64(&h, seed);
    dafl_hash_part(&h, use, strlen(use));
    dafl_hash_u32(&h, number);
    dafl_hash_end(&h, &d);
    crypto_stream_chacha20(out, len, nonce, d.b);
}

void lab_dice_load(uint64_t seed)
{
    static randombytes_implementation dice = {
        .implementation_name = dice_name,
        .random = dice_random,
        .buf = dice_buf,
        .close = dice_close,
    };

    if (sodium_init() < 0)
        lab_die("libsodium does not start");
    lab_dice_derive(key, sizeof key, seed, "randombytes", 0);
    block = 0;
    used = sizeof pool;
    (void)randombytes_set_implementation(&dice);
}

void lab_dice_unload(void)
{
    (void)randombytes_set_implementation(&randombytes_sysrandom_implementation);
}
