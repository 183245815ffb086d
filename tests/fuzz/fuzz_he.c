/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a ciphertext or a public key: what is taken and what is refused
 * is what a slow second reading says. Inputs are short, so they are programs:
 *
 *   u8   what is done (2 bits), what the bytes are at first (2 bits)
 *   i8   how many bytes there are too many
 *   4 bytes each: u8 row, u16 place, u8 value. The residue at this place
 *        becomes the prime - 128 + value; or, for rows from 128 on, the bits of
 *        the value flip in the byte at this place. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/he.h"
#include "crypto/he_inside.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { FIRST, ADDED, OPENED, KEY };
enum { RANDOM, ZERO, NEGATIVE, LARGEST };

static const unsigned widths[] = {36, 36, 37};

static void require(bool claim)
{
    if (!claim)
        abort();
}

/* Made once: a party that is all three, and an upload. */
static struct {
    dafl_he *he;
    dafl_he_secret *sk;
    dafl_writer key, upload;
} here;

static void begin(void)
{
    static const uint64_t y[] = {1, 2, 3};
    dafl_he_public *pk = NULL;

    if (here.he != NULL || !dafl_he_built())
        return;
    require(dafl_he_new(&here.he, 56, NULL, NULL) == DAFL_OK);
    require(dafl_he_keygen(here.he, &here.sk, &here.key) == DAFL_OK);
    require(dafl_he_public_read(here.he, &pk, dafl_writer_bytes(&here.key)) ==
            DAFL_OK);
    require(dafl_he_encrypt(here.he, pk, y, 3, &here.upload) == DAFL_OK);
    dafl_he_public_free(&pk);
}

/* Residue i of the row that starts at bit `start`. */
static uint64_t read_residue(const uint8_t *bytes, size_t start, size_t i,
                             unsigned width)
{
    size_t bit = start + i * width;
    uint64_t x = 0;
    unsigned have = 0;

    while (have < width) {
        unsigned from = (unsigned)(bit + have) % 8;

        x |= (uint64_t)(bytes[(bit + have) / 8] >> from) << have;
        have += 8 - from;
    }
    return x & ((UINT64_C(1) << width) - 1);
}

static void write_residue(uint8_t *bytes, size_t start, size_t i,
                          unsigned width, uint64_t x)
{
    for (unsigned k = 0; k < width; k++) {
        size_t bit = start + i * width + k;
        unsigned mask = 1u << bit % 8;

        bytes[bit / 8] =
            (uint8_t)((bytes[bit / 8] & ~mask) | (x >> k & 1 ? mask : 0));
    }
}

static size_t row_start(unsigned row, unsigned n)
{
    size_t bits = 0;

    for (unsigned r = 0; r < row; r++)
        bits += (size_t)DAFL_HE_N * widths[r % n];
    return bits;
}

static void prepare(uint8_t *bytes, unsigned base, unsigned n, uint64_t seed)
{
    static uint64_t x[DAFL_HE_N];

    for (unsigned row = 0; row < 2 * n; row++) {
        uint64_t q = dafl_he_primes[row % n];
        size_t start = row_start(row, n);

        for (size_t i = 0; i < DAFL_HE_N; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            x[i] = base == RANDOM ? seed % q : base == LARGEST ? q - 1 : 0;
        }
        if (base == NEGATIVE && here.he != NULL && n == DAFL_HE_PRIMES) {
            require(dafl_he_unpack(x, here.upload.ptr + start / 8, row % n));
            for (size_t i = 0; i < DAFL_HE_N; i++)
                x[i] = (q - x[i]) % q;
        }
        dafl_he_pack(bytes + start / 8, x, row % n);
    }
}

/* The second reading. */
static bool acceptable(const uint8_t *bytes, unsigned n, bool added)
{
    bool zero = true, cancels = true;

    for (unsigned row = 0; row < 2 * n; row++) {
        size_t start = row_start(row, n);
        uint64_t q = dafl_he_primes[row % n];

        for (size_t i = 0; i < DAFL_HE_N; i++) {
            uint64_t x = read_residue(bytes, start, i, widths[row % n]);

            if (x >= q)
                return false;
            if (row < n)
                continue;
            zero = zero && x == 0;
            cancels =
                cancels && added &&
                (x + read_residue(here.upload.ptr, start, i, widths[row % n])) %
                        q ==
                    0;
        }
    }
    return !zero && !(added && cancels);
}

static dafl_err offer(unsigned kind, dafl_bytes bytes)
{
    dafl_he_sum *s = NULL;
    dafl_he_public *pk = NULL;
    uint64_t out[3];
    dafl_writer after = {0};
    dafl_err err;

    if (kind == OPENED)
        return dafl_he_decrypt(here.he, here.sk, bytes, out, 3);
    if (kind == KEY) {
        err = dafl_he_public_read(here.he, &pk, bytes);
        require((err == DAFL_OK) == (pk != NULL));
        dafl_he_public_free(&pk);
        return err;
    }
    require(dafl_he_sum_new(&s, here.he, 3) == DAFL_OK);
    if (kind == ADDED)
        require(dafl_he_sum_add(s, dafl_writer_bytes(&here.upload)) == DAFL_OK);
    err = dafl_he_sum_add(s, bytes);
    if (err == DAFL_OK && kind == FIRST) {
        require(dafl_he_sum_put(s, &after) == DAFL_OK);
        require(after.len == bytes.len &&
                memcmp(after.ptr, bytes.ptr, bytes.len) == 0);
    }
    if (err != DAFL_OK && kind == ADDED) {
        require(dafl_he_sum_put(s, &after) == DAFL_OK);
        require(after.len == here.upload.len &&
                memcmp(after.ptr, here.upload.ptr, after.len) == 0);
    }
    dafl_writer_drop(&after);
    dafl_he_sum_free(&s);
    return err;
}

/* Without SEAL the rows are read all the same. */
static bool rows_ok(const uint8_t *bytes, unsigned n)
{
    static uint64_t residues[DAFL_HE_N];
    bool ok = !dafl_he_transparent(bytes, n);

    for (unsigned row = 0; row < 2 * n; row++)
        ok = dafl_he_unpack(residues, bytes + row_start(row, n) / 8, row % n) &&
             ok;
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    unsigned kind, n;
    size_t right, given;
    uint8_t *bytes;
    bool expect;

    if (len < 2)
        return 0;
    begin();
    kind = data[0] & 3;
    n = kind == KEY ? DAFL_HE_KEY_PRIMES : DAFL_HE_PRIMES;
    right = kind == KEY ? dafl_he_key_bytes() : dafl_he_bytes(3);
    given = right + data[1] - (data[1] > 127 ? 256u : 0);
    bytes = calloc(given > right ? given : right, 1);
    if (bytes == NULL)
        return 0;
    prepare(bytes, data[0] >> 2 & 3, n, data[0]);
    for (size_t at = 2; at + 4 <= len && at < 2 + 4 * 64; at += 4) {
        size_t place = data[at + 1] | (size_t)data[at + 2] << 8;
        unsigned row = data[at] % 128 % (2 * n);

        if (data[at] >= 128)
            bytes[(row_start(row, n) / 8 + place) % right] ^= data[at + 3];
        else
            write_residue(bytes, row_start(row, n), place % DAFL_HE_N,
                          widths[row % n],
                          dafl_he_primes[row % n] - 128 + data[at + 3]);
    }
    if (given < right) { /* exactly as long as it says */
        uint8_t *less = malloc(given);

        if (less != NULL)
            memcpy(less, bytes, given);
        free(bytes);
        bytes = less;
    }
    if (bytes != NULL && here.he != NULL) {
        expect = given == right && acceptable(bytes, n, kind == ADDED);
        require(offer(kind, (dafl_bytes){bytes, given}) ==
                (expect ? DAFL_OK : DAFL_ERR_PEER));
    }
    if (bytes != NULL && given == right)
        require(rows_ok(bytes, n) == acceptable(bytes, n, false));
    free(bytes);
    return 0;
}
