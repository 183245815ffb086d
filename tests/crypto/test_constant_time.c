/* SPDX-License-Identifier: Apache-2.0 */
/* Run under valgrind: secrets are marked undefined, and a branch or an address
 * that depends on one is then an error of memcheck. What comes out is made
 * defined before it is looked at.
 *
 *   valgrind --error-exitcode=9 ./test_constant_time
 *   valgrind --error-exitcode=9 ./test_constant_time leak   # must fail */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef HAVE_MEMCHECK

#include <valgrind/memcheck.h>

#include "crypto/gf256.h"
#include "crypto/hash.h"
#include "crypto/keys.h"
#include "crypto/mask.h"
#include "crypto/packet.h"
#include "crypto/shamir.h"
#include "lib/ring.h"

static int failures;

/* Not an assert: its condition is what must not depend on a secret. */
static void check(bool ok, const char *claim)
{
    if (!ok) {
        printf("wrong: %s\n", claim);
        failures++;
    }
}

static void make_secret(void *p, size_t n)
{
    (void)VALGRIND_MAKE_MEM_UNDEFINED(p, n);
}

static void make_public(void *p, size_t n)
{
    (void)VALGRIND_MAKE_MEM_DEFINED(p, n);
}

static void fill(void *p, size_t n, unsigned start)
{
    uint8_t *b = p;

    for (size_t i = 0; i < n; i++)
        b[i] = (uint8_t)(start + 37 * i);
}

static void the_field(void)
{
    uint8_t a = 0x57, b = 0x83, product, inverse, one, row[32], sum[32];

    fill(row, sizeof row, 5);
    fill(sum, sizeof sum, 6);
    make_secret(&a, 1);
    make_secret(&b, 1);
    make_secret(row, sizeof row);
    make_secret(sum, sizeof sum);
    product = dafl_gf_mul(a, b);
    inverse = dafl_gf_inverse(a);
    one = dafl_gf_mul(a, inverse);
    /* The scale too, though callers only have public ones. */
    dafl_gf_add_scaled(sum, row, a);
    make_public(&product, 1);
    make_public(&one, 1);
    make_public(sum, sizeof sum);
    check(product == 0xc1 && one == 1, "the field's products");
}

static void sharing(void)
{
    enum { N = 7, T = 4 };
    uint8_t places[N];
    dafl_key secret, coefficients[T - 1], joined;
    dafl_share shares[N];
    uint8_t random[DAFL_SHAMIR_TESTS * (N - T)];
    dafl_err split, join;
    bool agree;

    for (size_t i = 0; i < N; i++)
        places[i] = dafl_shamir_place(2, i < 2 ? i : i + 1);
    fill(&secret, sizeof secret, 1);
    fill(coefficients, sizeof coefficients, 2);
    make_secret(&secret, sizeof secret);
    make_secret(coefficients, sizeof coefficients);
    split =
        dafl_shamir_split_derand(shares, &secret, places, N, T, coefficients);
    join = dafl_shamir_join(&joined, shares + 2, places + 2, T);
    fill(random, sizeof random, 3);
    agree = dafl_shamir_agree_derand(shares, places, N, T, random);
    make_public(&agree, sizeof agree);
    make_public(&joined, sizeof joined);
    make_public(&secret, sizeof secret);
    check(agree && split == DAFL_OK && join == DAFL_OK &&
              memcmp(&joined, &secret, sizeof joined) == 0,
          "a sharing");
}

static void the_ring(unsigned w)
{
    enum { N = 37 };
    uint8_t words[N * 8], packed[N * 8];
    uint64_t acc[N], start[N];
    int64_t integers[N];

    fill(words, sizeof words, 9);
    fill(acc, sizeof acc, 10);
    memcpy(start, acc, sizeof acc);
    make_secret(words, sizeof words);
    make_secret(acc, sizeof acc);
    dafl_ring_add_words(acc, words, N, w, false);
    dafl_ring_pack(packed, acc, N, w);
    dafl_ring_add_words(acc, words, N, w, true);
    dafl_ring_to_int(integers, acc, N, w);
    dafl_ring_from_int(acc, integers, N);
    make_public(packed, sizeof packed);
    make_public(acc, sizeof acc);
    for (size_t i = 0; i < N; i++)
        check(((acc[i] ^ start[i]) << (64 - w)) == 0, "the ring's sums");
}

static void masks(unsigned w)
{
    enum { N = 1100, MASKS = 3 };
    static uint64_t acc[N];
    dafl_mask m[MASKS];
    uint64_t all = 0;

    fill(acc, sizeof acc, 3);
    for (size_t i = 0; i < MASKS; i++) {
        fill(&m[i].key, sizeof m[i].key, (unsigned)i);
        m[i].negate = i % 2 != 0;
        make_secret(&m[i].key, sizeof m[i].key);
    }
    make_secret(acc, sizeof acc);
    dafl_mask_apply(acc, N, w, m, MASKS, NULL);
    make_public(acc, sizeof acc);
    for (size_t i = 0; i < N; i++)
        all |= acc[i];
    check(all != 0, "a masked vector");
}

static void derivations(void)
{
    dafl_key b, key;
    dafl_digest ctx2, commitment, same, other;
    int equal, different;

    fill(&b, sizeof b, 4);
    fill(&ctx2, sizeof ctx2, 5);
    make_secret(&b, sizeof b);
    dafl_key_self(&key, &b, &ctx2, 7);
    dafl_key_commit(&commitment, &b);
    same = commitment;
    other = commitment;
    other.b[31] ^= 1;
    equal = dafl_digest_equal(&commitment, &same);
    different = dafl_digest_equal(&commitment, &other);
    make_public(&equal, sizeof equal);
    make_public(&different, sizeof different);
    check(equal && !different, "a comparison of digests");
    make_public(&key, sizeof key);
    check(key.b[0] != 0 || key.b[1] != 0 || key.b[2] != 0, "a self mask key");
}

static void packets(void)
{
    uint8_t plain[100], sealed[100 + DAFL_PACKET_OVERHEAD], out[100];
    uint8_t nonce[DAFL_PACKET_NONCE_BYTES];
    dafl_run_id run;
    dafl_key key;
    dafl_err err;

    fill(plain, sizeof plain, 6);
    fill(nonce, sizeof nonce, 7);
    fill(&run, sizeof run, 8);
    fill(&key, sizeof key, 9);
    make_secret(plain, sizeof plain);
    make_secret(&key, sizeof key);
    dafl_packet_seal_derand(sealed, (dafl_bytes){plain, sizeof plain}, &key,
                            &run, 1, 2, nonce);
    /* It goes over the wire, and whether a tag holds shows; the key is still
     * secret, so the comparison of tags is a branch on it: not for here. */
    make_public(sealed, sizeof sealed);
    make_public(&key, sizeof key);
    err = dafl_packet_open(out, sizeof out, (dafl_bytes){sealed, sizeof sealed},
                           &key, &run, 1, 2);
    make_public(plain, sizeof plain);
    check(err == DAFL_OK && memcmp(out, plain, sizeof out) == 0, "a packet");
}

/* What the test must not overlook. */
static void leak(void)
{
    dafl_key key;

    fill(&key, sizeof key, 1);
    make_secret(&key, sizeof key);
    if (key.b[3] > 100)
        printf("the byte is large\n");
}

int main(int argc, char **argv)
{
    if (!RUNNING_ON_VALGRIND) {
        printf("skipped: not under valgrind\n");
        return 77;
    }
    if (argc > 1 && strcmp(argv[1], "leak") == 0) {
        leak();
        return 0;
    }
    the_field();
    sharing();
    derivations();
    packets();
    for (unsigned w = 32; w <= 64; w += 8) {
        the_ring(w);
        masks(w);
    }
    return failures > 0;
}

#else

int main(void)
{
    printf("skipped: built without valgrind/memcheck.h\n");
    return 77;
}

#endif
