/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/crypto/bytes.h"
#include "tests/crypto/low_order.h"
#include "crypto/keys.h"
#include "tests/vectors/crypto.h"

static dafl_key key_of(const char *hex)
{
    dafl_key key;

    from_hex(key.b, sizeof key.b, hex);
    return key;
}

static dafl_digest digest_of(const char *hex)
{
    dafl_digest digest;

    from_hex(digest.b, sizeof digest.b, hex);
    return digest;
}

static dafl_public public_of(const dafl_key *sk)
{
    dafl_public pk;

    dafl_key_public(&pk, sk);
    return pk;
}

static void public_keys_equal_the_independent_model(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(public_known); i++) {
        dafl_key sk = key_of(public_known[i].sk);
        dafl_public pk = public_of(&sk), known;

        from_hex(known.b, sizeof known.b, public_known[i].pk);
        assert_memory_equal(&pk, &known, sizeof pk);
    }
}

static void packet_keys_equal_the_independent_model(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(packet_key_known); i++) {
        dafl_key sk_u = key_of(packet_key_known[i].sk_u);
        dafl_key sk_v = key_of(packet_key_known[i].sk_v);
        dafl_key known = key_of(packet_key_known[i].key), key;
        dafl_end from = {packet_key_known[i].u, public_of(&sk_u),
                         digest_of(packet_key_known[i].hk_u)};
        dafl_end to = {packet_key_known[i].v, public_of(&sk_v),
                       digest_of(packet_key_known[i].hk_v)};
        dafl_run_id run;

        from_hex(run.b, sizeof run.b, packet_key_known[i].run);
        assert_ok(dafl_key_packet(&key, &sk_u, &run, &from, &to, true));
        assert_memory_equal(&key, &known, sizeof key);
        assert_ok(dafl_key_packet(&key, &sk_v, &run, &from, &to, false));
        assert_memory_equal(&key, &known, sizeof key);
    }
}

static void pair_keys_equal_the_independent_model(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(pair_key_known); i++) {
        dafl_key sk_u = key_of(pair_key_known[i].sk_u);
        dafl_key sk_v = key_of(pair_key_known[i].sk_v);
        dafl_key known = key_of(pair_key_known[i].key), key;
        dafl_public pk_u = public_of(&sk_u), pk_v = public_of(&sk_v);
        dafl_digest ctx2 = digest_of(pair_key_known[i].ctx2);
        uint16_t u = pair_key_known[i].u, v = pair_key_known[i].v;

        assert_ok(dafl_key_pair(&key, &sk_u, &ctx2, u, &pk_u, v, &pk_v));
        assert_memory_equal(&key, &known, sizeof key);
        assert_ok(dafl_key_pair(&key, &sk_v, &ctx2, v, &pk_v, u, &pk_u));
        assert_memory_equal(&key, &known, sizeof key);
    }
}

static void self_keys_and_commitments_equal_the_independent_model(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(self_key_known); i++) {
        dafl_key b = key_of(self_key_known[i].b), key;
        dafl_key known = key_of(self_key_known[i].key);
        dafl_digest ctx2 = digest_of(self_key_known[i].ctx2);
        dafl_digest known_commitment = digest_of(self_key_known[i].commitment);
        dafl_digest commitment;

        dafl_key_self(&key, &b, &ctx2, self_key_known[i].u);
        assert_memory_equal(&key, &known, sizeof key);
        dafl_key_commit(&commitment, &b);
        assert_memory_equal(&commitment, &known_commitment, sizeof commitment);
    }
}

/* ---- everything that goes into a key ---- */

/* Two parties and what they agreed on: plain bytes, each of which matters. */
typedef struct {
    dafl_key own;
    dafl_public pk_u, pk_v;
    dafl_run_id run;
    dafl_digest ctx2, hk_u, hk_v;
    uint8_t u[2], v[2];
} inputs;

static uint16_t u16_of(const uint8_t le[2])
{
    return (uint16_t)(le[0] | le[1] << 8);
}

static inputs random_inputs(void)
{
    inputs in;
    dafl_key other;

    random_bytes(&in, sizeof in);
    random_bytes(&other, sizeof other);
    in.pk_u = public_of(&in.own);
    in.pk_v = public_of(&other);
    in.u[1] = 1;
    in.v[1] = 2;
    return in;
}

/* The derivations by number, the party that knows `own` being u. */
enum { PACKET_SENT, PACKET_GOT, PAIR, SELF, COMMITMENT, N_DERIVATIONS };

static void derive(dafl_key *out, const inputs *in, int which)
{
    dafl_end end_u = {u16_of(in->u), in->pk_u, in->hk_u};
    dafl_end end_v = {u16_of(in->v), in->pk_v, in->hk_v};
    dafl_digest d;

    switch (which) {
    case PACKET_SENT:
        assert_ok(
            dafl_key_packet(out, &in->own, &in->run, &end_u, &end_v, true));
        break;
    case PACKET_GOT:
        assert_ok(
            dafl_key_packet(out, &in->own, &in->run, &end_v, &end_u, false));
        break;
    case PAIR:
        assert_ok(dafl_key_pair(out, &in->own, &in->ctx2, end_u.index,
                                &in->pk_u, end_v.index, &in->pk_v));
        break;
    case SELF:
        dafl_key_self(out, &in->own, &in->ctx2, end_u.index);
        break;
    default:
        dafl_key_commit(&d, &in->own);
        memcpy(out->b, d.b, sizeof d.b);
    }
}

/* Which bytes of `inputs` a derivation takes in. */
static bool takes(int which, size_t byte)
{
    static const struct {
        size_t at, len;
        bool in[N_DERIVATIONS];
    } fields[] = {
#define FIELD(f, ...) {offsetof(inputs, f), sizeof((inputs *)0)->f, __VA_ARGS__}
        FIELD(own, {1, 1, 1, 1, 1}),  FIELD(pk_u, {1, 1, 1, 0, 0}),
        FIELD(pk_v, {1, 1, 1, 0, 0}), FIELD(run, {1, 1, 0, 0, 0}),
        FIELD(ctx2, {0, 0, 1, 1, 0}), FIELD(hk_u, {1, 1, 0, 0, 0}),
        FIELD(hk_v, {1, 1, 0, 0, 0}), FIELD(u, {1, 1, 1, 1, 0}),
        FIELD(v, {1, 1, 1, 0, 0}),
#undef FIELD
    };

    for (size_t i = 0; i < COUNT(fields); i++)
        if (byte >= fields[i].at && byte - fields[i].at < fields[i].len)
            return fields[i].in[which];
    fail_msg("byte %zu of the inputs is in no field", byte);
    return false;
}

/* X25519 sets these five bits of a scalar itself. */
static bool clamped(int which, size_t bit)
{
    return which < SELF && (bit < 3 || bit == 254 || bit == 255);
}

static void any_bit_of_any_input_changes_the_key_and_no_other_does(void **state)
{
    inputs in = random_inputs();

    (void)state;
    for (int which = 0; which < N_DERIVATIONS; which++) {
        dafl_key before, after;

        derive(&before, &in, which);
        for (size_t bit = 0; bit < 8 * sizeof in; bit++) {
            bool matters =
                takes(which, bit / 8) && !(bit < 256 && clamped(which, bit));

            flip(&in, bit);
            derive(&after, &in, which);
            flip(&in, bit);
            if ((memcmp(&after, &before, sizeof after) != 0) != matters)
                fail_msg("derivation %d, bit %zu of byte %zu", which, bit % 8,
                         bit / 8);
        }
    }
}

/* One secret value, as what two X25519 keys share, as a b, and as the bare key
 * of every label: no two uses give the same bytes. */
static void every_use_of_one_shared_value_gives_other_bytes(void **state)
{
    static const char *const labels[] = {
        "deepafl/share", "deepafl/pair", "deepafl/self", "deepafl/cb",
        "deepafl/model", "deepafl/ctx",  "deepafl/cast", "deepafl/stmt",
        "deepafl/msg",   "deepafl/body", "deepafl/up",   "deepafl/enroll",
        "deepafl/audit"};
    enum { MOST = N_DERIVATIONS + 1 + 2 * COUNT(labels) };
    dafl_key seen[MOST];
    inputs in = random_inputs(), as_secret;
    dafl_key shared;
    size_t n = 0;

    (void)state;
    assert_int_equal(
        crypto_scalarmult_curve25519(shared.b, in.own.b, in.pk_v.b), 0);
    as_secret = in;
    as_secret.own = shared;
    for (int which = 0; which < N_DERIVATIONS; which++)
        derive(&seen[n++], which < SELF ? &in : &as_secret, which);
    seen[n++] = shared;
    for (size_t i = 0; i < COUNT(labels); i++) {
        dafl_digest d;
        dafl_hash h;

        dafl_kdf_init(&h, shared.b, labels[i]);
        dafl_hash_end(&h, &d);
        memcpy(seen[n++].b, d.b, sizeof d.b);
        dafl_hash_one(&d, labels[i], (dafl_bytes){in.ctx2.b, 32});
        memcpy(seen[n++].b, d.b, sizeof d.b);
    }
    assert_int_equal(n, MOST);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(&seen[i], &seen[j], sizeof seen[0]);
}

/* ---- the two sides ---- */

static void both_sides_derive_the_same_pair_key(void **state)
{
    (void)state;
    for (int round = 0; round < 100; round++) {
        dafl_key sk_u, sk_v, at_u, at_v;
        dafl_public pk_u, pk_v;
        dafl_digest ctx2;
        uint16_t u = (uint16_t)random_u64(), v = (uint16_t)(u + 1);

        dafl_key_random(&sk_u);
        dafl_key_random(&sk_v);
        random_bytes(&ctx2, sizeof ctx2);
        pk_u = public_of(&sk_u);
        pk_v = public_of(&sk_v);
        assert_ok(dafl_key_pair(&at_u, &sk_u, &ctx2, u, &pk_u, v, &pk_v));
        assert_ok(dafl_key_pair(&at_v, &sk_v, &ctx2, v, &pk_v, u, &pk_u));
        assert_memory_equal(&at_u, &at_v, sizeof at_u);
        /* Who has which number is part of it. */
        assert_ok(dafl_key_pair(&at_v, &sk_v, &ctx2, u, &pk_v, v, &pk_u));
        assert_memory_not_equal(&at_u, &at_v, sizeof at_u);
    }
}

static void the_two_directions_have_different_packet_keys(void **state)
{
    (void)state;
    for (int round = 0; round < 50; round++) {
        dafl_key sk_u, sk_v, there, there_too, back;
        dafl_end u = {.index = 3}, v = {.index = 4};
        dafl_run_id run;

        dafl_key_random(&sk_u);
        dafl_key_random(&sk_v);
        random_bytes(&run, sizeof run);
        u.ek = public_of(&sk_u);
        v.ek = public_of(&sk_v);
        assert_ok(dafl_key_packet(&there, &sk_u, &run, &u, &v, true));
        assert_ok(dafl_key_packet(&there_too, &sk_v, &run, &u, &v, false));
        assert_ok(dafl_key_packet(&back, &sk_u, &run, &v, &u, false));
        assert_memory_equal(&there, &there_too, sizeof there);
        assert_memory_not_equal(&there, &back, sizeof there);
    }
}

static void random_keys_differ_and_wiped_ones_are_zero(void **state)
{
    dafl_key keys[20];

    (void)state;
    for (size_t i = 0; i < COUNT(keys); i++) {
        dafl_key_random(&keys[i]);
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(&keys[i], &keys[j], sizeof keys[0]);
    }
    dafl_key_wipe(&keys[0]);
    assert_true(sodium_is_zero(keys[0].b, sizeof keys[0].b));
    assert_false(sodium_is_zero(keys[1].b, sizeof keys[1].b));
}

/* ---- points of low order ---- */

static void points_of_low_order_are_refused_everywhere(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * COUNT(low_order); i++)
        for (int round = 0; round < 10; round++) {
            dafl_key sk, out, before;
            dafl_end own = {.index = 1}, peer = {.index = 2};
            dafl_digest ctx2 = {{0}};
            dafl_run_id run = {{0}};

            from_hex(peer.ek.b, sizeof peer.ek.b, low_order[i / 2]);
            if (i % 2 != 0)
                flip(peer.ek.b, 255);
            dafl_key_random(&sk);
            own.ek = public_of(&sk);
            random_bytes(&before, sizeof before);
            out = before;
            assert_int_equal(dafl_public_check(&peer.ek), DAFL_ERR_CRYPTO);
            assert_int_equal(
                dafl_key_pair(&out, &sk, &ctx2, 1, &own.ek, 2, &peer.ek),
                DAFL_ERR_CRYPTO);
            assert_int_equal(
                dafl_key_packet(&out, &sk, &run, &own, &peer, true),
                DAFL_ERR_CRYPTO);
            assert_int_equal(
                dafl_key_packet(&out, &sk, &run, &peer, &own, false),
                DAFL_ERR_CRYPTO);
            assert_memory_equal(&out, &before, sizeof out);
        }
}

/* The neighbours of those points are not among them. */
static void other_points_are_accepted(void **state)
{
    dafl_public pk;

    (void)state;
    for (size_t i = 0; i < COUNT(low_order); i++) {
        from_hex(pk.b, sizeof pk.b, low_order[i]);
        flip(pk.b, 4);
        assert_ok(dafl_public_check(&pk));
        flip(pk.b, 4);
        flip(pk.b, 247);
        assert_ok(dafl_public_check(&pk));
    }
    for (int round = 0; round < 200; round++) {
        random_bytes(pk.b, sizeof pk.b);
        assert_ok(dafl_public_check(&pk));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(public_keys_equal_the_independent_model),
        cmocka_unit_test(packet_keys_equal_the_independent_model),
        cmocka_unit_test(pair_keys_equal_the_independent_model),
        cmocka_unit_test(self_keys_and_commitments_equal_the_independent_model),
        cmocka_unit_test(
            any_bit_of_any_input_changes_the_key_and_no_other_does),
        cmocka_unit_test(every_use_of_one_shared_value_gives_other_bytes),
        cmocka_unit_test(both_sides_derive_the_same_pair_key),
        cmocka_unit_test(the_two_directions_have_different_packet_keys),
        cmocka_unit_test(random_keys_differ_and_wiped_ones_are_zero),
        cmocka_unit_test(points_of_low_order_are_refused_everywhere),
        cmocka_unit_test(other_points_are_accepted),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
