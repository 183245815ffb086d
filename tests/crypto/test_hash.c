/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/crypto/bytes.h"
#include "crypto/hash.h"
#include "tests/vectors/crypto.h"

static void begin(dafl_hash *h, const char *key, const char *label)
{
    uint8_t k[DAFL_KEY_BYTES];

    if (key == NULL) {
        dafl_hash_init(h, label);
        return;
    }
    from_hex(k, sizeof k, key);
    dafl_kdf_init(h, k, label);
}

static void hashes_equal_the_independent_model(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(hash_known); i++) {
        dafl_digest digest, known;
        dafl_hash h;

        begin(&h, hash_known[i].key, hash_known[i].label);
        for (size_t k = 0; k < hash_known[i].n_parts; k++) {
            const char *hex = hash_known[i].parts[k].bytes;
            uint64_t value = hash_known[i].parts[k].value;
            uint8_t bytes[2000];

            switch (hash_known[i].parts[k].kind) {
            case '2':
                dafl_hash_u16(&h, (uint16_t)value);
                break;
            case '4':
                dafl_hash_u32(&h, (uint32_t)value);
                break;
            case '8':
                dafl_hash_u64(&h, value);
                break;
            default:
                from_hex(bytes, strlen(hex) / 2, hex);
                dafl_hash_part(&h, bytes, strlen(hex) / 2);
            }
        }
        dafl_hash_end(&h, &digest);
        from_hex(known.b, sizeof known.b, hash_known[i].digest);
        assert_memory_equal(digest.b, known.b, sizeof known.b);
    }
}

static void no_two_known_hashes_are_equal(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(hash_known); i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(hash_known[i].digest, hash_known[j].digest);
}

static void a_part_in_pieces_is_the_same_part(void **state)
{
    enum { MOST = 700 };
    uint8_t part[MOST];

    (void)state;
    for (int round = 0; round < 200; round++) {
        size_t len = random_size(0, MOST), at = 0;
        dafl_digest whole, pieces, one;
        dafl_hash h;

        random_bytes(part, len);
        dafl_hash_init(&h, "test/pieces");
        dafl_hash_part(&h, part, len);
        dafl_hash_end(&h, &whole);
        dafl_hash_init(&h, "test/pieces");
        dafl_hash_begin(&h, len);
        while (at < len) {
            size_t n = random_size(0, len - at);

            dafl_hash_piece(&h, part + at, n);
            at += n;
        }
        dafl_hash_end(&h, &pieces);
        assert_memory_equal(&pieces, &whole, sizeof whole);
        dafl_hash_one(&one, "test/pieces", (dafl_bytes){part, len});
        assert_memory_equal(&one, &whole, sizeof whole);
    }
}

/* H(label, part, part): 1 <= lens[0] + lens[1] + lens[2] <= 16 bytes of text
 * divided in three. */
static void divided(dafl_digest *out, const char *text, size_t label,
                    size_t first, size_t second)
{
    char copy[17] = "";
    dafl_hash h;

    memcpy(copy, text, label);
    dafl_hash_init(&h, copy);
    dafl_hash_part(&h, text + label, first);
    dafl_hash_part(&h, text + label + first, second);
    dafl_hash_end(&h, out);
}

static void every_division_of_the_same_bytes_hashes_differently(void **state)
{
    static const char text[] = "deepafl/";
    enum { LEN = sizeof text - 1, MOST = (LEN + 1) * (LEN + 2) / 2 };
    dafl_digest seen[MOST];
    size_t n = 0;

    (void)state;
    for (size_t label = 0; label <= LEN; label++)
        for (size_t first = 0; first <= LEN - label; first++)
            divided(&seen[n++], text, label, first, LEN - label - first);
    assert_int_equal(n, MOST);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(&seen[i], &seen[j], sizeof seen[0]);
}

static void an_integer_is_its_bytes_lowest_first(void **state)
{
    (void)state;
    for (int round = 0; round < 50; round++) {
        uint64_t v = random_u64();
        uint8_t le[8];
        dafl_digest as_integers, as_bytes;
        dafl_hash h;

        for (unsigned i = 0; i < 8; i++)
            le[i] = (uint8_t)(v >> 8 * i);
        dafl_hash_init(&h, "test/integers");
        dafl_hash_u16(&h, (uint16_t)v);
        dafl_hash_u32(&h, (uint32_t)v);
        dafl_hash_u64(&h, v);
        dafl_hash_end(&h, &as_integers);
        dafl_hash_init(&h, "test/integers");
        dafl_hash_part(&h, le, 2);
        dafl_hash_part(&h, le, 4);
        dafl_hash_part(&h, le, 8);
        dafl_hash_end(&h, &as_bytes);
        assert_memory_equal(&as_integers, &as_bytes, sizeof as_bytes);
    }
}

static void a_digest_is_a_part_of_its_bytes(void **state)
{
    dafl_digest part, a, b;
    dafl_hash h;

    (void)state;
    random_bytes(part.b, sizeof part.b);
    dafl_hash_init(&h, "test/digest");
    dafl_hash_digest(&h, &part);
    dafl_hash_end(&h, &a);
    dafl_hash_one(&b, "test/digest", (dafl_bytes){part.b, sizeof part.b});
    assert_memory_equal(&a, &b, sizeof a);
}

static void derive(dafl_digest *out, const uint8_t *key, const char *label,
                   const uint8_t *part)
{
    dafl_hash h;

    dafl_kdf_init(&h, key, label);
    dafl_hash_part(&h, part, 40);
    dafl_hash_end(&h, out);
}

static void any_bit_of_key_label_or_part_changes_the_output(void **state)
{
    uint8_t input[DAFL_KEY_BYTES + 40];
    char label[] = "deepafl/test";
    dafl_digest before, after;

    (void)state;
    random_bytes(input, sizeof input);
    derive(&before, input, label, input + DAFL_KEY_BYTES);
    for (size_t bit = 0; bit < 8 * sizeof input; bit++) {
        flip(input, bit);
        derive(&after, input, label, input + DAFL_KEY_BYTES);
        assert_memory_not_equal(&after, &before, sizeof before);
        flip(input, bit);
    }
    for (size_t bit = 0; bit < 8 * strlen("deepafl/test"); bit++) {
        flip(label, bit);
        derive(&after, input, label, input + DAFL_KEY_BYTES);
        assert_memory_not_equal(&after, &before, sizeof before);
        flip(label, bit);
    }
    derive(&after, input, label, input + DAFL_KEY_BYTES);
    assert_memory_equal(&after, &before, sizeof before);
}

static void a_key_of_zeros_is_not_no_key(void **state)
{
    static const uint8_t zeros[DAFL_KEY_BYTES];
    dafl_digest keyed, plain;
    dafl_hash h;

    (void)state;
    dafl_kdf_init(&h, zeros, "test");
    dafl_hash_end(&h, &keyed);
    dafl_hash_init(&h, "test");
    dafl_hash_end(&h, &plain);
    assert_memory_not_equal(&keyed, &plain, sizeof plain);
}

static void end_wipes_the_state(void **state)
{
    dafl_digest digest;
    dafl_hash h;

    (void)state;
    dafl_kdf_init(&h, (const uint8_t *)"a key of thirty-two bytes, a key", "x");
    dafl_hash_u64(&h, UINT64_MAX);
    assert_false(sodium_is_zero((const uint8_t *)&h, sizeof h));
    dafl_hash_end(&h, &digest);
    assert_true(sodium_is_zero((const uint8_t *)&h, sizeof h));
}

static void digests_are_equal_only_when_every_bit_is(void **state)
{
    dafl_digest a, b;

    (void)state;
    random_bytes(a.b, sizeof a.b);
    b = a;
    assert_true(dafl_digest_equal(&a, &b));
    for (size_t bit = 0; bit < 8 * sizeof b.b; bit++) {
        flip(b.b, bit);
        assert_false(dafl_digest_equal(&a, &b));
        flip(b.b, bit);
    }
    assert_true(dafl_digest_equal(&a, &a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_equal_the_independent_model),
        cmocka_unit_test(no_two_known_hashes_are_equal),
        cmocka_unit_test(a_part_in_pieces_is_the_same_part),
        cmocka_unit_test(every_division_of_the_same_bytes_hashes_differently),
        cmocka_unit_test(an_integer_is_its_bytes_lowest_first),
        cmocka_unit_test(a_digest_is_a_part_of_its_bytes),
        cmocka_unit_test(any_bit_of_key_label_or_part_changes_the_output),
        cmocka_unit_test(a_key_of_zeros_is_not_no_key),
        cmocka_unit_test(end_wipes_the_state),
        cmocka_unit_test(digests_are_equal_only_when_every_bit_is),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
