/* SPDX-License-Identifier: Apache-2.0 */
/* Google's Wycheproof vectors through libsodium as crypto/ calls it. Looked for
 * in $DEEPAFL_DATA/vectors/wycheproof; exit code 77 (skipped) without them.
 *
 * A result is "valid", "invalid" or "acceptable". Of X25519 the last means: may
 * be refused, but never computed wrongly. We refuse exactly the points of low
 * order and compute all others, twist and other forms of a number included. */
#include <stdbool.h>

#include <jansson.h>

#include "tests/crypto/bytes.h"
#include "crypto/identity.h"
#include "crypto/keys.h"
#include "crypto/packet.h"

static const char *root;

typedef struct {
    uint8_t *ptr;
    size_t len;
} hex_bytes;

/* To be freed. */
static hex_bytes hex_at(const json_t *object, const char *name)
{
    const char *hex = json_string_value(json_object_get(object, name));
    hex_bytes out;

    assert_non_null(hex);
    out.len = strlen(hex) / 2;
    out.ptr = exactly(out.len + 1);
    from_hex(out.ptr, out.len, hex);
    return out;
}

static json_t *open_vectors(const char *name)
{
    char path[1024];
    json_error_t error;
    json_t *all;

    (void)snprintf(path, sizeof path, "%s/vectors/wycheproof/%s", root, name);
    all = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (all == NULL)
        fail_msg("%s: %s", path, error.text);
    return all;
}

static bool flagged(const json_t *test, const char *flag)
{
    const json_t *flags = json_object_get(test, "flags");

    for (size_t i = 0; i < json_array_size(flags); i++)
        if (strcmp(json_string_value(json_array_get(flags, i)), flag) == 0)
            return true;
    return false;
}

static bool result_is(const json_t *test, const char *result)
{
    const char *is = json_string_value(json_object_get(test, "result"));

    assert_non_null(is);
    return strcmp(is, result) == 0;
}

static int id_of(const json_t *test)
{
    return (int)json_integer_value(json_object_get(test, "tcId"));
}

typedef struct {
    size_t n, accepted, refused;
} tally;

/* Calls `check` for every test of the file; it says whether we accepted. */
static tally for_all(const char *name,
                     bool (*check)(const json_t *group, const json_t *test))
{
    json_t *all = open_vectors(name);
    const json_t *groups = json_object_get(all, "testGroups");
    tally t = {0, 0, 0};

    for (size_t g = 0; g < json_array_size(groups); g++) {
        const json_t *group = json_array_get(groups, g);
        const json_t *tests = json_object_get(group, "tests");

        for (size_t i = 0; i < json_array_size(tests); i++) {
            bool ok = check(group, json_array_get(tests, i));

            t.n++;
            t.accepted += ok;
            t.refused += !ok;
        }
    }
    assert_int_equal(t.n,
                     json_integer_value(json_object_get(all, "numberOfTests")));
    print_message("%s: %zu vectors, %zu accepted, %zu refused\n", name, t.n,
                  t.accepted, t.refused);
    json_decref(all);
    return t;
}

/* ---- X25519 ---- */

/* KDF(shared, "deepafl/pair", ..) as crypto/keys.c should have it. */
static void pair_key(dafl_key *out, const uint8_t *shared,
                     const dafl_digest *ctx2, const dafl_public *lo,
                     const dafl_public *hi)
{
    dafl_digest d;
    dafl_hash h;

    dafl_kdf_init(&h, shared, "deepafl/pair");
    dafl_hash_digest(&h, ctx2);
    dafl_hash_u16(&h, 1);
    dafl_hash_u16(&h, 2);
    dafl_hash_part(&h, lo->b, sizeof lo->b);
    dafl_hash_part(&h, hi->b, sizeof hi->b);
    dafl_hash_end(&h, &d);
    memcpy(out->b, d.b, sizeof d.b);
}

static bool check_x25519(const json_t *group, const json_t *test)
{
    hex_bytes pk = hex_at(test, "public"), sk = hex_at(test, "private");
    hex_bytes shared = hex_at(test, "shared");
    bool zero = sodium_is_zero(shared.ptr, shared.len);
    uint8_t computed[32];
    dafl_key own, key, right;
    dafl_public own_pk, peer;
    dafl_digest ctx2 = {{3}};
    bool ok;

    (void)group;
    assert_true(pk.len == 32 && sk.len == 32 && shared.len == 32);
    memcpy(own.b, sk.ptr, 32);
    memcpy(peer.b, pk.ptr, 32);
    dafl_key_public(&own_pk, &own);
    ok = crypto_scalarmult_curve25519(computed, own.b, peer.b) == 0;
    if (result_is(test, "invalid") || (result_is(test, "valid") && !ok) ||
        ok == zero || zero != flagged(test, "ZeroSharedSecret") ||
        (ok && memcmp(computed, shared.ptr, 32) != 0))
        fail_msg("x25519, tcId %d", id_of(test));
    assert_int_equal(dafl_public_check(&peer), ok ? DAFL_OK : DAFL_ERR_CRYPTO);
    assert_int_equal(dafl_key_pair(&key, &own, &ctx2, 1, &own_pk, 2, &peer),
                     ok ? DAFL_OK : DAFL_ERR_CRYPTO);
    if (ok) {
        pair_key(&right, shared.ptr, &ctx2, &own_pk, &peer);
        assert_memory_equal(&key, &right, sizeof key);
    }
    free(pk.ptr);
    free(sk.ptr);
    free(shared.ptr);
    return ok;
}

static void x25519_computes_all_but_low_order_points(void **state)
{
    tally t = for_all("x25519_test.json", check_x25519);

    (void)state;
    assert_true(t.accepted > 0 && t.refused > 0);
}

/* ---- Ed25519 ---- */

static bool check_ed25519(const json_t *group, const json_t *test)
{
    hex_bytes pk = hex_at(json_object_get(group, "publicKey"), "pk");
    hex_bytes message = hex_at(test, "msg"), sig = hex_at(test, "sig");
    bool ok;

    assert_int_equal(pk.len, 32);
    /* Our signatures have no other length to be of. */
    ok = sig.len == DAFL_SIGNATURE_BYTES &&
         crypto_sign_ed25519_verify_detached(sig.ptr, message.ptr, message.len,
                                             pk.ptr) == 0;
    if (ok != result_is(test, "valid") || result_is(test, "acceptable"))
        fail_msg("ed25519, tcId %d", id_of(test));
    if (sig.len == DAFL_SIGNATURE_BYTES && message.len == DAFL_HASH_BYTES) {
        dafl_signature s;
        dafl_digest d;

        memcpy(s.b, sig.ptr, sizeof s.b);
        memcpy(d.b, message.ptr, sizeof d.b);
        assert_int_equal(dafl_sign_check(&s, &d, pk.ptr) == DAFL_OK, ok);
    }
    free(pk.ptr);
    free(message.ptr);
    free(sig.ptr);
    return ok;
}

static void ed25519_accepts_the_valid_signatures_only(void **state)
{
    tally t = for_all("ed25519_test.json", check_ed25519);

    (void)state;
    assert_true(t.accepted > 0 && t.refused > 0);
}

/* ---- XChaCha20-Poly1305 ---- */

static bool check_xchacha(const json_t *group, const json_t *test)
{
    hex_bytes key = hex_at(test, "key"), nonce = hex_at(test, "iv");
    hex_bytes ad = hex_at(test, "aad"), plain = hex_at(test, "msg");
    hex_bytes cipher = hex_at(test, "ct"), tag = hex_at(test, "tag");
    uint8_t *sealed = exactly(cipher.len + tag.len);
    uint8_t *out = exactly(cipher.len + 16);
    bool ok = nonce.len == DAFL_PACKET_NONCE_BYTES;

    (void)group;
    assert_int_equal(key.len, 32);
    memcpy(sealed, cipher.ptr, cipher.len);
    memcpy(sealed + cipher.len, tag.ptr, tag.len);
    ok = ok && crypto_aead_xchacha20poly1305_ietf_decrypt(
                   out, NULL, NULL, sealed, cipher.len + tag.len, ad.ptr,
                   ad.len, nonce.ptr, key.ptr) == 0;
    if (ok != result_is(test, "valid") || result_is(test, "acceptable"))
        fail_msg("xchacha20_poly1305, tcId %d", id_of(test));
    if (ok) {
        assert_int_equal(cipher.len, plain.len);
        assert_memory_equal(out, plain.ptr, plain.len);
        (void)crypto_aead_xchacha20poly1305_ietf_encrypt(
            out, NULL, plain.ptr, plain.len, ad.ptr, ad.len, NULL, nonce.ptr,
            key.ptr);
        assert_memory_equal(out, sealed, cipher.len + tag.len);
    }
    free(key.ptr);
    free(nonce.ptr);
    free(ad.ptr);
    free(plain.ptr);
    free(cipher.ptr);
    free(tag.ptr);
    free(sealed);
    free(out);
    return ok;
}

static void xchacha20_poly1305_opens_the_valid_packets_only(void **state)
{
    tally t = for_all("xchacha20_poly1305_test.json", check_xchacha);

    (void)state;
    assert_true(t.accepted > 0 && t.refused > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(x25519_computes_all_but_low_order_points),
        cmocka_unit_test(ed25519_accepts_the_valid_signatures_only),
        cmocka_unit_test(xchacha20_poly1305_opens_the_valid_packets_only),
    };

    root = getenv("DEEPAFL_DATA");
    if (root == NULL || root[0] == '\0') {
        printf("skipped: set DEEPAFL_DATA to the directory that holds "
               "vectors/wycheproof\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
