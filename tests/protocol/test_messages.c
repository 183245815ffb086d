/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/check.h"

#include "lib/secret.h"
#include "protocol/context.h"
#include "protocol/envelope.h"
#include "tests/protocol/recode.h"

/* A random body of each type, built by hand from the grammar: not by the
 * encoders under test. */
static void raw(dafl_writer *w, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dafl_put_u8(w, (uint8_t)random_u64());
}

/* members over n with about half of them in; returns how many. */
static size_t raw_members(dafl_writer *w, size_t n)
{
    size_t count = 0;
    uint8_t byte = 0;

    dafl_put_u16(w, (uint16_t)n);
    for (size_t i = 0; i < n; i++) {
        unsigned in = random_u64() & 1u;
        byte = (uint8_t)(byte | in << i % 8);
        count += in;
        if (i % 8 == 7 || i + 1 == n) {
            dafl_put_u8(w, byte);
            byte = 0;
        }
    }
    return count;
}

/* n items that begin with an ascending client number, `rest` bytes each. */
static void raw_list(dafl_writer *w, size_t n, size_t rest)
{
    size_t client = 0;

    for (size_t i = 0; i < n; i++) {
        client += random_size(0, 3);
        dafl_put_u16(w, (uint16_t)client++);
        raw(w, rest);
    }
}

static void raw_body(dafl_writer *w, unsigned type)
{
    size_t n = random_size(1, 40), len = random_size(0, 50), slots;

    switch (type) {
    case DAFL_MSG_INVITE:
        raw(w, 4 + 32 + 32);
        break;
    case DAFL_MSG_ENROLL:
        raw(w, 32 + 32 + 64);
        dafl_put_u32(w, (uint32_t)n);
        raw(w, n * 64);
        break;
    case DAFL_MSG_PEERS:
        dafl_put_u16(w, (uint16_t)n);
        raw_list(w, n, 128);
        break;
    case DAFL_MSG_SHARES:
        dafl_put_u16(w, (uint16_t)n);
        dafl_put_u32(w, (uint32_t)len);
        raw_list(w, n, len);
        raw(w, 64);
        break;
    case DAFL_MSG_SETUP:
        slots = random_size(0, 5);
        n++; /* with one member there is no packet to count bytes of */
        dafl_put_u16(w, (uint16_t)n);
        dafl_put_u32(w, (uint32_t)slots);
        dafl_put_u32(w, (uint32_t)len);
        raw_list(w, n, 96);
        raw(w, (n - 1) * len + n * slots * 64);
        break;
    case DAFL_MSG_SETUP_ACK:
        raw(w, 32);
        (void)raw_members(w, random_size(0, 256));
        break;
    case DAFL_MSG_MODEL:
        raw(w, 8);
        dafl_put_u32(w, (uint32_t)n);
        raw(w, n);
        dafl_put_u16(w, (uint16_t)n);
        for (size_t i = 0; i < n; i++) {
            len = random_size(0, 20);
            raw(w, 4 + 1 + 2 + 4);
            dafl_put_u64(w, len);
            raw(w, len);
        }
        break;
    case DAFL_MSG_READY:
        raw(w, 32);
        break;
    case DAFL_MSG_CAST:
        (void)raw_members(w, random_size(0, 256));
        break;
    case DAFL_MSG_UPLOAD:
        raw(w, 8 + 1 + len);
        break;
    case DAFL_MSG_END:
        raw(w, 8 + 32 + 64);
        break;
    case DAFL_MSG_SURV:
        (void)raw_members(w, n);
        raw(w, (32 + 64) * raw_members(w, n));
        break;
    case DAFL_MSG_SIGN:
        raw(w, 64);
        break;
    case DAFL_MSG_CONF:
        raw(w, 64 * raw_members(w, random_size(0, 256)));
        break;
    case DAFL_MSG_REVEAL:
        dafl_put_u16(w, (uint16_t)n);
        for (size_t i = 0; i < n; i++) {
            dafl_put_u16(w, (uint16_t)(3 * i));
            dafl_put_u8(w, (uint8_t)random_size(1, 2));
            raw(w, 32);
        }
        break;
    case DAFL_MSG_RESULT:
        dafl_put_u16(w, (uint16_t)random_size(0, DAFL_FAULT_COUNT - 1));
        raw(w, 32);
        break;
    case DAFL_MSG_HELLO:
        raw(w, 4 + 4 + 32);
        break;
    case DAFL_MSG_ASK:
        break;
    case DAFL_MSG_KEY:
        raw(w, 64 + len);
        break;
    case DAFL_MSG_OPEN: {
        dafl_writer surv = {0};
        raw(w, 4 + 4 + 32 + 8 + 32);
        raw_body(&surv, DAFL_MSG_SURV);
        dafl_put_u32(w, (uint32_t)surv.len);
        dafl_put_fixed(w, surv.ptr, surv.len);
        dafl_writer_drop(&surv);
        raw_body(w, DAFL_MSG_CONF);
        break;
    }
    case DAFL_MSG_OPENED:
        raw(w, 32);
        break;
    default:
        fail();
    }
    assert_ok(dafl_writer_done(w));
}

/* A view at the very end of a heap block, so that reading on is seen. */
static bool decodes(unsigned type, const uint8_t *bytes, size_t len)
{
    uint8_t *copy = malloc(len > 0 ? len : 1);
    dafl_writer w = {0};
    bool ok;

    assert_non_null(copy);
    memcpy(copy, bytes, len);
    ok = recode(type, (dafl_bytes){copy, len}, &w);
    if (ok) {
        assert_int_equal(w.len, len);
        assert_memory_equal(w.ptr, copy, len);
    }
    dafl_writer_drop(&w);
    free(copy);
    return ok;
}

static void what_the_grammar_allows_decodes_to_itself(void **state)
{
    (void)state;
    for (unsigned type = 1; type < DAFL_MSG_COUNT; type++) {
        for (int i = 0; i < 50; i++) {
            dafl_writer w = {0};

            raw_body(&w, type);
            if (!decodes(type, w.ptr, w.len))
                fail_msg("%s was refused", dafl_msg_name(type));
            dafl_writer_drop(&w);
        }
    }
}

static void a_message_cut_or_continued_is_refused(void **state)
{
    (void)state;
    for (unsigned type = 1; type < DAFL_MSG_COUNT; type++) {
        dafl_writer w = {0};

        raw_body(&w, type);
        for (size_t len = 0; len < w.len; len++) {
            /* An upload is its offset and at least one more byte, a key is
             * its signature and whatever follows. */
            bool fine = (type == DAFL_MSG_UPLOAD && len > 8) ||
                        (type == DAFL_MSG_KEY && len >= 64);
            if (decodes(type, w.ptr, len) != fine)
                fail_msg("%s of %zu bytes", dafl_msg_name(type), len);
        }
        dafl_put_u8(&w, 0);
        assert_int_equal(decodes(type, w.ptr, w.len),
                         type == DAFL_MSG_UPLOAD || type == DAFL_MSG_KEY);
        dafl_writer_drop(&w);
    }
    assert_false(decodes(0, NULL, 0));
    assert_false(decodes(DAFL_MSG_COUNT, NULL, 0));
}

/* Counts that promise more than there is must be refused before anything is
 * made of them, whatever they multiply to. */
static void counts_beyond_the_bytes_are_refused(void **state)
{
    static const struct {
        unsigned type;
        size_t at, size;
    } counts[] = {
        {DAFL_MSG_ENROLL, 128, 4}, {DAFL_MSG_PEERS, 0, 2},
        {DAFL_MSG_SHARES, 0, 2},   {DAFL_MSG_SHARES, 2, 4},
        {DAFL_MSG_SETUP, 0, 2},    {DAFL_MSG_SETUP, 2, 4},
        {DAFL_MSG_SETUP, 6, 4},    {DAFL_MSG_MODEL, 8, 4},
        {DAFL_MSG_REVEAL, 0, 2},   {DAFL_MSG_OPEN, 80, 4},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(counts); i++) {
        for (unsigned bit = 3; bit < 8 * counts[i].size; bit++) {
            dafl_writer w = {0};
            uint8_t *byte;

            raw_body(&w, counts[i].type);
            byte = &w.ptr[counts[i].at + bit / 8];
            if ((*byte >> bit % 8 & 1) == 0) {
                *byte = (uint8_t)(*byte | 1u << bit % 8);
                if (decodes(counts[i].type, w.ptr, w.len))
                    fail_msg("%s, count at %zu, bit %u",
                             dafl_msg_name(counts[i].type), counts[i].at, bit);
            }
            dafl_writer_drop(&w);
        }
    }
}

static void lists_that_do_not_ascend_are_refused(void **state)
{
    static const uint16_t wrong[][2] = {{1, 1}, {2, 1}, {0, 256}, {7, 0xffff}};

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        dafl_peer p[2] = {{.client = wrong[i][0]}, {.client = wrong[i][1]}};
        dafl_revealed r[2] = {{.dealer = wrong[i][0], .kind = DAFL_REVEAL_B},
                              {.dealer = wrong[i][1], .kind = DAFL_REVEAL_SK}};
        dafl_addressed a[2] = {{.to = wrong[i][0]}, {.to = wrong[i][1]}};
        dafl_signature sig = {{0}};
        dafl_writer w = {0};

        dafl_put_peers(&w, p, 2);
        assert_false(decodes(DAFL_MSG_PEERS, w.ptr, w.len));
        dafl_writer_clear(&w);
        dafl_put_shares(&w, a, 2, 0);
        dafl_put_shares_sig(&w, &sig);
        assert_false(decodes(DAFL_MSG_SHARES, w.ptr, w.len));
        dafl_writer_clear(&w);
        dafl_put_reveal(&w, r, 2);
        assert_false(decodes(DAFL_MSG_REVEAL, w.ptr, w.len));
        dafl_writer_drop(&w);
    }
}

/* What the dealer writes and signs is what the receiver gets to check. */
static void shares_carry_their_dealers_signature(void **state)
{
    static const uint8_t seed[64] = {1}, packets[2][3] = {{1, 2, 3}, {4, 5, 6}};
    const dafl_addressed a[2] = {{.to = 2, .packet = {packets[0], 3}},
                                 {.to = 7, .packet = {packets[1], 3}}};
    const dafl_run_id run = {{9}};
    dafl_secret_identity id;
    dafl_writer w = {0};
    dafl_signature sig;
    dafl_digest d;
    dafl_shares m;

    (void)state;
    assert_ok(dafl_identity_new_derand(&id, "site", seed, NULL));
    dafl_put_shares(&w, a, 2, 3);
    dafl_context_shares(&d, dafl_writer_bytes(&w));
    dafl_context_dealt(&d, &run, 0, 5, &d);
    dafl_sign(&sig, &d, &id);
    dafl_put_shares_sig(&w, &sig);
    assert_true(decodes(DAFL_MSG_SHARES, w.ptr, w.len));
    for (size_t bit = 0; bit < 8 * w.len; bit++) {
        w.ptr[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (dafl_get_shares(&m, dafl_writer_bytes(&w)) == DAFL_OK) {
            dafl_context_shares(&d, m.dealt);
            dafl_context_dealt(&d, &run, 0, 5, &d);
            assert_int_equal(dafl_sign_check(&m.sig, &d, id.public.sign_pk),
                             DAFL_ERR_CRYPTO);
        }
        w.ptr[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_ok(dafl_get_shares(&m, dafl_writer_bytes(&w)));
    dafl_context_shares(&d, m.dealt);
    dafl_context_dealt(&d, &run, 0, 5, &d);
    assert_ok(dafl_sign_check(&m.sig, &d, id.public.sign_pk));
    dafl_identity_wipe(&id);
    dafl_writer_drop(&w);
}

static void spare_bits_and_unknown_kinds_are_refused(void **state)
{
    static const uint8_t spare[] = {3, 0, 0x0f}; /* bit 3 of 3 clients */
    static const uint8_t most[2 + 32] = {0, 1};  /* 256 clients */
    static const uint8_t many[2 + 33] = {1, 1};  /* 257, all bytes there */
    dafl_revealed r = {.dealer = 1, .kind = DAFL_REVEAL_B};
    dafl_result result = {.fault = DAFL_FAULT_COUNT};
    dafl_writer w = {0};

    (void)state;
    assert_false(decodes(DAFL_MSG_CAST, spare, sizeof spare));
    assert_true(decodes(DAFL_MSG_CAST, (const uint8_t[]){3, 0, 7}, 3));
    assert_true(decodes(DAFL_MSG_CAST, most, sizeof most));
    assert_false(decodes(DAFL_MSG_CAST, many, sizeof many));
    for (unsigned kind = 0; kind < 256; kind++) {
        dafl_writer_clear(&w);
        dafl_put_reveal(&w, &r, 1);
        w.ptr[4] = (uint8_t)kind;
        assert_int_equal(decodes(DAFL_MSG_REVEAL, w.ptr, w.len),
                         kind == 1 || kind == 2);
    }
    dafl_writer_clear(&w);
    dafl_put_result(&w, &result);
    assert_false(decodes(DAFL_MSG_RESULT, w.ptr, w.len));
    dafl_writer_drop(&w);
}

static void members_are_sets(void **state)
{
    dafl_members a = dafl_members_none(256), b = dafl_members_none(256), c;

    (void)state;
    dafl_members_add(&a, 0);
    dafl_members_add(&a, 255);
    assert_int_equal(dafl_members_count(&a), 2);
    assert_true(dafl_members_has(&a, 255) && !dafl_members_has(&a, 256));
    assert_true(dafl_members_within(&b, &a) && !dafl_members_within(&a, &b));
    dafl_members_add(&b, 255);
    c = dafl_members_minus(&a, &b);
    assert_true(dafl_members_has(&c, 0) && !dafl_members_has(&c, 255));
    dafl_members_remove(&a, 0);
    assert_true(dafl_members_equal(&a, &b));
    b = dafl_members_none(255);
    assert_false(dafl_members_within(&b, &a)); /* of another roster */
}

static void an_envelope_of_no_known_type_is_refused(void **state)
{
    static const uint8_t seed[64] = {1};
    dafl_secret_identity id;
    dafl_envelope got;

    (void)state;
    assert_ok(dafl_identity_new_derand(&id, "site", seed, NULL));
    for (unsigned type = 0; type < 256; type++) {
        dafl_envelope m = {.type =
                               (uint8_t)type}; /* well signed, all of them */
        dafl_writer w = {0};

        dafl_put_envelope(&w, &m, &id);
        assert_int_equal(dafl_get_envelope(&got, dafl_writer_bytes(&w), 0),
                         type >= 1 && type < DAFL_MSG_COUNT ? DAFL_FAULT_NONE
                                                            : DAFL_E_FORMAT);
        dafl_writer_drop(&w);
    }
    dafl_identity_wipe(&id);
}

static void an_envelope_is_its_senders_and_whole(void **state)
{
    static const uint8_t seed[64] = {1};
    dafl_secret_identity id;
    dafl_envelope m = {.type = DAFL_MSG_CAST, .slot = 7, .sender = 3}, got;
    dafl_writer w = {0};
    uint8_t body[] = {1, 2, 3};

    (void)state;
    assert_ok(dafl_identity_new_derand(&id, "site", seed, NULL));
    m.body = (dafl_bytes){body, sizeof body};
    m.seq = (uint64_t)5 << 32 | 9;
    dafl_put_envelope(&w, &m, &id);
    assert_ok(dafl_writer_done(&w));
    assert_int_equal(w.len, sizeof body + DAFL_ENVELOPE_OVERHEAD);
    assert_int_equal(dafl_get_envelope(&got, dafl_writer_bytes(&w), 3), 0);
    assert_int_equal(dafl_envelope_check(&got, id.public.sign_pk), 0);
    assert_int_equal(got.seq, m.seq);
    assert_memory_equal(got.body.ptr, body, sizeof body);
    assert_int_equal(dafl_get_envelope(&got, dafl_writer_bytes(&w), 2),
                     DAFL_E_FORMAT); /* the cap */
    for (size_t bit = 0; bit < 8 * w.len; bit++) {
        dafl_fault fault;

        w.ptr[bit / 8] ^= (uint8_t)(1u << bit % 8);
        fault = dafl_get_envelope(&got, dafl_writer_bytes(&w), 3);
        if (fault == DAFL_FAULT_NONE)
            fault = dafl_envelope_check(&got, id.public.sign_pk);
        assert_true(fault == DAFL_E_FORMAT || fault == DAFL_E_AUTH);
        w.ptr[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t len = 0; len < w.len; len++)
        assert_int_equal(dafl_get_envelope(&got, (dafl_bytes){w.ptr, len}, 99),
                         DAFL_E_FORMAT);
    dafl_identity_wipe(&id);
    dafl_writer_drop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_grammar_allows_decodes_to_itself),
        cmocka_unit_test(a_message_cut_or_continued_is_refused),
        cmocka_unit_test(counts_beyond_the_bytes_are_refused),
        cmocka_unit_test(lists_that_do_not_ascend_are_refused),
        cmocka_unit_test(shares_carry_their_dealers_signature),
        cmocka_unit_test(spare_bits_and_unknown_kinds_are_refused),
        cmocka_unit_test(members_are_sets),
        cmocka_unit_test(an_envelope_of_no_known_type_is_refused),
        cmocka_unit_test(an_envelope_is_its_senders_and_whole),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
