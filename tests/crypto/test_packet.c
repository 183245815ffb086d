/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/crypto/bytes.h"
#include "crypto/packet.h"
#include "tests/vectors/crypto.h"

#define MOST 1000

typedef struct {
    dafl_key key;
    dafl_run_id run;
    uint16_t from, to;
    size_t len;
    uint8_t plain[MOST], sealed[MOST + DAFL_PACKET_OVERHEAD];
} packet;

static dafl_bytes sealed_bytes(const packet *p)
{
    return (dafl_bytes){p->sealed, p->len + DAFL_PACKET_OVERHEAD};
}

static packet random_packet(size_t len)
{
    packet p;

    random_bytes(&p, sizeof p);
    p.to = p.from ^ 1;
    p.len = len;
    dafl_packet_seal(p.sealed, (dafl_bytes){p.plain, len}, &p.key, &p.run,
                     p.from, p.to);
    return p;
}

static void assert_opens(const packet *p)
{
    uint8_t *out = exactly(p->len);

    assert_ok(dafl_packet_open(out, p->len, sealed_bytes(p), &p->key, &p->run,
                               p->from, p->to));
    assert_memory_equal(out, p->plain, p->len);
    free(out);
}

/* Refused, and nothing of the plain text left in `out`. */
static void assert_refused(const packet *p)
{
    uint8_t out[MOST];

    memset(out, 0xa5, sizeof out);
    assert_int_equal(dafl_packet_open(out, p->len, sealed_bytes(p), &p->key,
                                      &p->run, p->from, p->to),
                     DAFL_ERR_CRYPTO);
    assert_true(sodium_is_zero(out, p->len));
    for (size_t i = p->len; i < sizeof out; i++)
        assert_int_equal(out[i], 0xa5);
}

static void packets_equal_the_independent_model(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(packet_known); i++) {
        uint8_t nonce[DAFL_PACKET_NONCE_BYTES];
        uint8_t known[MOST + DAFL_PACKET_OVERHEAD];
        packet p = {.from = packet_known[i].from,
                    .to = packet_known[i].to,
                    .len = packet_known[i].len};
        size_t len = p.len + DAFL_PACKET_OVERHEAD;

        from_hex(p.key.b, sizeof p.key.b, packet_known[i].key);
        from_hex(p.run.b, sizeof p.run.b, packet_known[i].run);
        from_hex(nonce, sizeof nonce, packet_known[i].nonce);
        from_hex(p.plain, p.len, packet_known[i].plain);
        from_hex(known, len, packet_known[i].sealed);
        dafl_packet_seal_derand(p.sealed, (dafl_bytes){p.plain, p.len}, &p.key,
                                &p.run, p.from, p.to, nonce);
        assert_memory_equal(p.sealed, known, len);
        assert_opens(&p);
    }
}

static void packets_of_any_length_open(void **state)
{
    static const size_t lens[] = {0,  1,  15, 16, 17,  31,  32,
                                  33, 63, 64, 65, 128, 640, MOST};

    (void)state;
    for (size_t i = 0; i < COUNT(lens); i++) {
        packet p = random_packet(lens[i]);
        uint8_t *exact = exactly(p.len + DAFL_PACKET_OVERHEAD);

        assert_opens(&p);
        /* Sealing stays within the bytes it was promised. */
        dafl_packet_seal(exact, (dafl_bytes){p.plain, p.len}, &p.key, &p.run,
                         p.from, p.to);
        free(exact);
    }
}

static void packets_with_any_bit_flipped_are_refused(void **state)
{
    packet p = random_packet(64);

    (void)state;
    for (size_t bit = 0; bit < 8 * (p.len + DAFL_PACKET_OVERHEAD); bit++) {
        flip(p.sealed, bit);
        assert_refused(&p);
        flip(p.sealed, bit);
    }
    p = random_packet(0);
    for (size_t bit = 0; bit < 8 * DAFL_PACKET_OVERHEAD; bit++) {
        flip(p.sealed, bit);
        assert_refused(&p);
        flip(p.sealed, bit);
    }
    assert_opens(&p);
}

static void another_key_run_sender_or_receiver_is_refused(void **state)
{
    packet p = random_packet(96);

    (void)state;
    for (size_t bit = 0; bit < 8 * sizeof p.key; bit++) {
        flip(&p.key, bit);
        assert_refused(&p);
        flip(&p.key, bit);
    }
    for (size_t bit = 0; bit < 8 * sizeof p.run; bit++) {
        flip(&p.run, bit);
        assert_refused(&p);
        flip(&p.run, bit);
    }
    for (size_t bit = 0; bit < 16; bit++) {
        flip(&p.from, bit);
        assert_refused(&p);
        flip(&p.from, bit);
        flip(&p.to, bit);
        assert_refused(&p);
        flip(&p.to, bit);
    }
    assert_opens(&p);
}

static void a_packet_sent_back_is_refused(void **state)
{
    packet p = random_packet(32), back = p;

    (void)state;
    back.from = p.to;
    back.to = p.from;
    assert_refused(&back);
}

static void any_other_length_is_a_malformed_message(void **state)
{
    packet p = random_packet(64);
    uint8_t out[MOST], before[MOST];
    size_t len = p.len + DAFL_PACKET_OVERHEAD;

    (void)state;
    memset(before, 0xa5, sizeof before);
    memcpy(out, before, sizeof out);
    for (size_t cut = 0; cut < len; cut++) {
        uint8_t *exact = exactly(cut);

        if (cut > 0)
            memcpy(exact, p.sealed, cut);
        assert_int_equal(dafl_packet_open(out, p.len, (dafl_bytes){exact, cut},
                                          &p.key, &p.run, p.from, p.to),
                         DAFL_ERR_PEER);
        /* Shorter, with a length to match: the tag does not hold. */
        if (cut >= DAFL_PACKET_OVERHEAD) {
            uint8_t *shorter = exactly(cut - DAFL_PACKET_OVERHEAD);

            assert_int_equal(dafl_packet_open(shorter,
                                              cut - DAFL_PACKET_OVERHEAD,
                                              (dafl_bytes){exact, cut}, &p.key,
                                              &p.run, p.from, p.to),
                             DAFL_ERR_CRYPTO);
            free(shorter);
        }
        free(exact);
    }
    assert_int_equal(dafl_packet_open(out, p.len,
                                      (dafl_bytes){p.sealed, len + 1}, &p.key,
                                      &p.run, p.from, p.to),
                     DAFL_ERR_PEER);
    assert_int_equal(dafl_packet_open(out, p.len + 1, sealed_bytes(&p), &p.key,
                                      &p.run, p.from, p.to),
                     DAFL_ERR_PEER);
    /* A length that only matches modulo 2^64. */
    assert_int_equal(dafl_packet_open(out, (size_t)0 - DAFL_PACKET_OVERHEAD,
                                      (dafl_bytes){p.sealed, 0}, &p.key, &p.run,
                                      p.from, p.to),
                     DAFL_ERR_PEER);
    assert_memory_equal(out, before, sizeof out);
}

static void every_sealing_draws_another_nonce(void **state)
{
    enum { N = 50 };
    packet p = random_packet(10);
    uint8_t sealed[N][10 + DAFL_PACKET_OVERHEAD];

    (void)state;
    for (size_t i = 0; i < N; i++) {
        dafl_packet_seal(sealed[i], (dafl_bytes){p.plain, p.len}, &p.key,
                         &p.run, p.from, p.to);
        for (size_t j = 0; j < i; j++) {
            assert_memory_not_equal(sealed[i], sealed[j],
                                    DAFL_PACKET_NONCE_BYTES);
            assert_memory_not_equal(sealed[i] + DAFL_PACKET_NONCE_BYTES,
                                    sealed[j] + DAFL_PACKET_NONCE_BYTES, 10);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_equal_the_independent_model),
        cmocka_unit_test(packets_of_any_length_open),
        cmocka_unit_test(packets_with_any_bit_flipped_are_refused),
        cmocka_unit_test(another_key_run_sender_or_receiver_is_refused),
        cmocka_unit_test(a_packet_sent_back_is_refused),
        cmocka_unit_test(any_other_length_is_a_malformed_message),
        cmocka_unit_test(every_sealing_draws_another_nonce),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
