/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/check.h"

#include "protocol/config.h"

static const uint8_t params[] = {'p', 0, 0xff};

/* Five clients in one cell, a server and, if n is 7, a key holder. */
static dafl_roster roster_of(size_t n)
{
    dafl_party p[7] = {0};
    dafl_roster r;

    for (size_t i = 0; i < COUNT(p); i++) {
        (void)snprintf(p[i].id.name, sizeof p[i].id.name, "party-%zu", i);
        p[i].id.sign_pk[0] = p[i].id.curve_pk.b[0] = (uint8_t)i;
        p[i].role = i < 5    ? DAFL_ROLE_CLIENT
                    : i == 5 ? DAFL_ROLE_SERVER
                             : DAFL_ROLE_KEYHOLDER;
        p[i].cell = i < 5 ? 0 : DAFL_NO_CELL;
    }
    assert_ok(dafl_roster_make(&r, p, n, NULL));
    return r;
}

static dafl_roster five(void)
{
    return roster_of(7);
}

static dafl_config usual(void)
{
    dafl_config c = dafl_config_default();

    c.policy = (dafl_policy){.n_min = 5, .m = 4, .g = 3, .c = 1, .a = 1};
    memcpy(c.method, "deep", 5);
    c.method_params = (dafl_bytes){params, sizeof params};
    return c;
}

/* From a block of exactly so many bytes, so that reading on is seen. The view
 * in *out is of no use afterwards. */
static dafl_err get(dafl_config *out, const uint8_t *bytes, size_t len,
                    dafl_why *why)
{
    uint8_t *copy = malloc(len > 0 ? len : 1);
    dafl_config untouched;
    dafl_err err;

    assert_non_null(copy);
    memcpy(copy, bytes, len);
    memset(out, 0x5a, sizeof *out);
    memcpy(&untouched, out, sizeof untouched);
    err = dafl_get_config(out, (dafl_bytes){copy, len}, why);
    if (err == DAFL_OK) { /* what decodes encodes to the same bytes */
        dafl_writer again = {0};
        dafl_digest digest;

        dafl_put_config(&again, out);
        assert_ok(dafl_writer_done(&again));
        assert_int_equal(again.len, len);
        assert_memory_equal(again.ptr, copy, len);
        assert_ok(dafl_config_digest(&digest, out));
        dafl_writer_drop(&again);
    } else {
        assert_int_equal(err, DAFL_ERR_INPUT);
        assert_memory_equal(out, &untouched, sizeof untouched);
    }
    free(copy);
    return err;
}

/* The check, the decoder and the digest judge a range alike. */
static void judged(const dafl_config *c, const char *words)
{
    dafl_roster r = five();
    dafl_why why = {{0}}, why_bytes = {{0}};
    dafl_writer w = {0};
    dafl_config back;
    dafl_digest digest;

    dafl_put_config(&w, c);
    if (words == NULL) {
        if (dafl_config_check(c, &r, &why) != DAFL_FAULT_NONE)
            fail_msg("refused: %s", why.text);
        assert_ok(get(&back, w.ptr, w.len, NULL));
        assert_ok(dafl_config_digest(&digest, c));
    } else {
        assert_int_equal(dafl_config_check(c, &r, &why), DAFL_E_POLICY);
        assert_says(&why, words);
        assert_int_equal(dafl_config_check(c, &r, NULL), DAFL_E_POLICY);
        assert_int_equal(get(&back, w.ptr, w.len, &why_bytes), DAFL_ERR_INPUT);
        assert_true(why_bytes.text[0] != '\0');
        assert_int_equal(dafl_config_digest(&digest, c), DAFL_ERR_ARG);
    }
    dafl_writer_drop(&w);
}

#define CHANGED(what, words)     \
    do {                         \
        dafl_config c = usual(); \
        what;                    \
        judged(&c, words);       \
    } while (0)
#define FINE(what) CHANGED(what, NULL)

static void the_default_needs_only_policy_and_method(void **state)
{
    dafl_config c = dafl_config_default();
    dafl_contract derived = DAFL_CONTRACT_DEFAULT;
    dafl_roster r = five();
    dafl_why why = {{0}};

    (void)state;
    assert_ok(dafl_contract_derive(&derived, NULL));
    assert_int_equal(c.mode, DAFL_MODE_MASKS);
    assert_int_equal(c.contract.w, derived.w);
    assert_int_equal(dafl_config_check(&c, &r, &why), DAFL_E_POLICY);
    assert_says(&why, "method");
    memcpy(c.method, "deep", 5);
    assert_int_equal(dafl_config_check(&c, &r, &why), DAFL_E_POLICY);
    assert_says(&why, "g = 0");
    c.policy = usual().policy;
    assert_int_equal(dafl_config_check(&c, &r, &why), DAFL_FAULT_NONE);
}

static void slots_follow_the_questions(void **state)
{
    static const uint32_t known[][2] = {
        {0, 4},       {1, 6},       {4, 9},       {5, 11},    {43, 58},
        {3272, 4094}, {3273, 4096}, {3274, 4096}, {~0u, 4096}};

    (void)state;
    for (size_t i = 0; i < COUNT(known); i++)
        assert_int_equal(dafl_config_slots(known[i][0]), known[i][1]);
}

static void its_bytes_are_canonical_and_bind_everything(void **state)
{
    dafl_config c = usual(), back;
    dafl_digest digest, other;
    dafl_writer w = {0};
    dafl_why why = {{0}};

    (void)state;
    dafl_put_config(&w, &c);
    assert_ok(dafl_get_config(&back, dafl_writer_bytes(&w), NULL));
    assert_true(back.contract.exact);
    assert_string_equal(back.method, "deep");
    assert_int_equal(back.method_params.len, sizeof params);
    assert_ptr_equal(back.method_params.ptr, w.ptr + w.len - sizeof params);
    assert_ok(dafl_config_digest(&digest, &c));
    assert_ok(dafl_config_digest(&other, &back));
    assert_true(dafl_digest_equal(&digest, &other));
    for (size_t len = 0; len < w.len; len++)
        assert_int_equal(get(&back, w.ptr, len, &why), DAFL_ERR_INPUT);
    assert_says(&why, "malformed");
    for (size_t bit = 0; bit < 8 * w.len; bit++) {
        w.ptr[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (dafl_get_config(&back, dafl_writer_bytes(&w), NULL) == DAFL_OK) {
            assert_ok(dafl_config_digest(&other, &back));
            assert_false(dafl_digest_equal(&digest, &other));
        }
        (void)!get(&back, w.ptr, w.len, NULL); /* or refused, see there */
        w.ptr[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (unsigned byte = 0; byte < 256; byte++) {
        dafl_put_u8(&w, (uint8_t)byte);
        assert_int_equal(get(&back, w.ptr, w.len, NULL), DAFL_ERR_INPUT);
        w.len--;
    }
    dafl_writer_drop(&w);
}

static void every_field_changes_the_digest(void **state)
{
    static const uint8_t longer[] = {'p', 0, 0xff, 0}, other[] = {'p', 1, 0xff};
    dafl_digest seen[32];
    size_t n = 0;

    (void)state;
#define DIGEST(what)                                                \
    do {                                                            \
        dafl_config c = usual();                                    \
        what;                                                       \
        assert_ok(dafl_config_digest(&seen[n], &c));                \
        for (size_t i = 0; i < n; i++)                              \
            if (dafl_digest_equal(&seen[i], &seen[n]))              \
                fail_msg("digests %zu and %zu are the same", i, n); \
        n++;                                                        \
    } while (0)
    DIGEST((void)c);
    DIGEST(c.mode = DAFL_MODE_NONE);
    DIGEST(c.mode = DAFL_MODE_SEAL);
    DIGEST(c.policy.n_min++);
    DIGEST(c.policy.m++);
    DIGEST(c.policy.g++);
    DIGEST(c.policy.c++);
    DIGEST(c.policy.a++);
    DIGEST(c.contract.s--);
    DIGEST(c.contract.q--);
    DIGEST(c.contract.n_max--);
    DIGEST(c.contract.w += 8);
    DIGEST(c.want++);
    DIGEST(c.tries++);
    DIGEST(c.retries++);
    DIGEST(c.slots++);
    DIGEST(c.chunk++);
    DIGEST(c.body_max++);
    for (size_t k = 0; k < DAFL_WAITS; k++)
        DIGEST(c.wait[k]++);
    DIGEST(c.method[0] = 'D');
    DIGEST(memcpy(c.method, "deeper", 7));
    DIGEST(c.method_params.len--);
    DIGEST((c.method_params = (dafl_bytes){longer, sizeof longer}));
    DIGEST((c.method_params = (dafl_bytes){other, sizeof other}));
    DIGEST((c.method_params = (dafl_bytes){NULL, 0}));
#undef DIGEST
    /* What stands behind the end of the name is no part of it. */
    dafl_config c = usual();
    c.method[9] = 'x';
    assert_ok(dafl_config_digest(&seen[n], &c));
    assert_true(dafl_digest_equal(&seen[n], &seen[0]));
}

static void every_range_ends_where_it_says(void **state)
{
    (void)state;
    FINE(c.mode = DAFL_MODE_NONE);
    FINE(c.mode = DAFL_MODE_SEAL);
    CHANGED(c.mode = (dafl_mode)3, "mode = 3");
    CHANGED(c.want = 0, "want = 0");
    FINE(c.want = 1);
    FINE(c.want = 1000);
    CHANGED(c.want = 1001, "want = 1001");
    FINE(c.tries = 0);
    FINE(c.tries = 65535);
    CHANGED(c.retries = 0, "retries = 0");
    FINE(c.retries = 1);
    FINE(c.retries = 65535);
    CHANGED(c.slots = 0, "slots = 0");
    FINE(c.slots = 1);
    FINE(c.slots = DAFL_SLOTS_MAX);
    CHANGED(c.slots = DAFL_SLOTS_MAX + 1, "slots = 4097");
    CHANGED(c.chunk = DAFL_CHUNK_MIN - 1, "chunk = 16383");
    FINE(c.chunk = DAFL_CHUNK_MIN);
    FINE(c.chunk = DAFL_CHUNK_MAX);
    CHANGED(c.chunk = DAFL_CHUNK_MAX + 1, "chunk = 16777217");
    CHANGED(c.body_max = (uint64_t)c.chunk + 7, "body_max = 1048583");
    FINE(c.body_max = (uint64_t)c.chunk + 8);
    FINE(c.body_max = DAFL_BODY_MAX);
    CHANGED(c.body_max = DAFL_BODY_MAX + 1, "body_max = 4294967296");
    for (size_t i = 0; i < DAFL_WAITS; i++) {
        static const char *const names[DAFL_WAITS] = {
            "wait_setup = 0", "wait_ready = 0", "wait_upload = 0",
            "wait_sign = 0", "wait_reveal = 0"};
        CHANGED(c.wait[i] = 0, names[i]);
        FINE(c.wait[i] = 1);
        FINE(c.wait[i] = UINT32_MAX);
    }
    CHANGED(c.contract.s = 0, "grid of 0 bits");
    FINE(c.contract.s = 1);
    FINE(c.contract.s = 24; c.contract.w = 64; c.contract.n_max = 2047);
    CHANGED(c.contract.s = 25; c.contract.q = 1; c.contract.w = 64;
            c.contract.n_max = 1, "grid of 25 bits");
    CHANGED(c.contract.q = 0, "magnitude 0");
    FINE(c.contract.q = 65536; c.contract.s = 1; c.contract.n_max = 1);
    CHANGED(c.contract.q = 65537; c.contract.s = 1, "magnitude 65537");
    CHANGED(c.contract.n_max = 0, "n_max 0");
    FINE(c.contract.n_max = 1);
}

/* Contracts without a grid have no bytes; nothing else may pass for one. */
static void a_contract_without_a_grid_is_refused(void **state)
{
    dafl_config c = usual();
    dafl_roster r = five();
    dafl_digest digest;
    dafl_why why = {{0}};

    (void)state;
    c.contract.exact = false;
    c.contract.w = 64;
    assert_int_equal(dafl_config_check(&c, &r, &why), DAFL_E_POLICY);
    assert_says(&why, "exact");
    assert_int_equal(dafl_config_digest(&digest, &c), DAFL_ERR_ARG);
}

/* Parameters whose length the bytes cannot say, and numbers that their byte
 * cannot hold: 268 is 12 in one byte. */
static void what_the_bytes_cannot_say_has_no_digest(void **state)
{
    dafl_config c = usual();
    dafl_roster r = five();
    dafl_digest digest;

    (void)state;
    c.contract.s += 256;
    assert_int_equal(dafl_config_digest(&digest, &c), DAFL_ERR_ARG);
    c = usual();
    c.contract.w += 256;
    assert_int_equal(dafl_config_digest(&digest, &c), DAFL_ERR_ARG);
    c = usual();
    c.mode = (dafl_mode)(256 + DAFL_MODE_MASKS);
    assert_int_equal(dafl_config_digest(&digest, &c), DAFL_ERR_ARG);
    c = usual();
    c.method_params.len = UINT32_MAX; /* judged by its length alone */
    assert_int_equal(dafl_config_check(&c, &r, NULL), DAFL_FAULT_NONE);
    c.method_params.len++;
    assert_int_equal(dafl_config_check(&c, &r, NULL), DAFL_E_POLICY);
    assert_int_equal(dafl_config_digest(&digest, &c), DAFL_ERR_ARG);
}

/* I6 overflow_refused: n_max (q 2^s)^2 < 2^(w-1) at the limit of each width and
 * one row above. */
static void a_ring_that_could_wrap_is_refused(void **state)
{
    static const struct {
        unsigned s;
        uint32_t q;
    } grids[] = {{12, 4}, {1, 1}, {12, 3}, {10, 65536}, {24, 4}, {7, 1000}};

    (void)state;
    for (size_t i = 0; i < COUNT(grids); i++)
        for (unsigned w = 32; w <= 64; w += 8) {
            uint64_t top = (uint64_t)grids[i].q << grids[i].s;
            uint64_t most = (((uint64_t)1 << (w - 1)) - 1) / (top * top);

            if (most > (uint64_t)1 << 40)
                continue; /* n_max itself ends there */
            if (most > 0)
                FINE(c.contract = ((dafl_contract){true, grids[i].s, grids[i].q,
                                                   most, w}));
            CHANGED(c.contract = ((dafl_contract){true, grids[i].s, grids[i].q,
                                                  most + 1, w}),
                    w < 64 ? "w = " : "do not fit 64 bits");
        }
    FINE(c.contract.n_max = ((uint64_t)1 << 19) - 1); /* 2^28 each, w = 48 */
    CHANGED(c.contract.n_max = (uint64_t)1 << 19, "w = 48");
    FINE(c.contract = ((dafl_contract){true, 1, 1, (uint64_t)1 << 40, 64}));
    CHANGED(c.contract =
                ((dafl_contract){true, 1, 1, ((uint64_t)1 << 40) + 1, 64}),
            "n_max");
}

static void a_ring_has_one_of_five_widths(void **state)
{
    (void)state;
    for (unsigned w = 0; w < 256; w++) {
        dafl_config c = usual();

        c.contract = (dafl_contract){true, 1, 1, 1, w};
        judged(&c, w >= 32 && w <= 64 && w % 8 == 0 ? NULL : "w = ");
    }
}

static void a_method_has_a_name(void **state)
{
    static const char wrong[] = {' ', '/', '\n', '\x7f', '\x80', '\xff'};

    (void)state;
    CHANGED(c.method[0] = '\0', "method");
    FINE(c.method[1] = '\0');
    FINE(memset(c.method, 'a', DAFL_METHOD_NAME_MAX));
    CHANGED(memset(c.method, 'a', sizeof c.method), "method");
    for (size_t i = 0; i < COUNT(wrong); i++)
        for (size_t k = 0; k < 4; k++)
            CHANGED(c.method[k] = wrong[i], "method");
}

/* The name's length stands behind 71 bytes. A zero hides the rest of a name
 * from everyone who prints it. */
static void names_that_are_no_strings_are_refused(void **state)
{
    dafl_config c = usual(), back;
    dafl_writer w = {0};

    (void)state;
    dafl_put_config(&w, &c);
    assert_memory_equal(w.ptr + 71, "\4deep", 5);
    for (size_t k = 0; k < 4; k++) {
        uint8_t keep = w.ptr[72 + k];
        w.ptr[72 + k] = 0;
        assert_int_equal(get(&back, w.ptr, w.len, NULL), DAFL_ERR_INPUT);
        w.ptr[72 + k] = keep;
    }
    for (unsigned len = DAFL_METHOD_NAME_MAX - 1; len < 256; len++) {
        w.len = 71;
        dafl_put_u8(&w, (uint8_t)len);
        for (unsigned i = 0; i < len; i++)
            dafl_put_u8(&w, 'a');
        dafl_put_u32(&w, 0);
        assert_int_equal(get(&back, w.ptr, w.len, NULL),
                         len <= DAFL_METHOD_NAME_MAX ? DAFL_OK
                                                     : DAFL_ERR_INPUT);
    }
    dafl_writer_drop(&w);
}

static void parameters_beyond_the_bytes_are_refused(void **state)
{
    dafl_config c = usual(), back;
    dafl_writer w = {0};

    (void)state;
    dafl_put_config(&w, &c);
    for (unsigned bit = 0; bit < 32; bit++) {
        w.ptr[76 + bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(get(&back, w.ptr, w.len, NULL), DAFL_ERR_INPUT);
        w.ptr[76 + bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_ok(get(&back, w.ptr, w.len, NULL));
    dafl_writer_drop(&w);
}

/* Whatever the mode: without masks cells and cohorts count all the same. */
static void the_policys_rules_hold_in_every_mode(void **state)
{
    dafl_roster r = five();
    dafl_why why = {{0}};

    (void)state;
    for (int mode = DAFL_MODE_NONE; mode <= DAFL_MODE_SEAL; mode++) {
        dafl_config c = usual();

        c.mode = (dafl_mode)mode;
        assert_int_equal(dafl_config_check(&c, &r, &why), DAFL_FAULT_NONE);
        c.policy.m = 2;
        assert_int_equal(dafl_config_check(&c, &r, &why), DAFL_E_POLICY);
        assert_says(&why, "m = 2");
        c.policy.m = 4;
        c.policy.a = 2;
        assert_int_equal(dafl_config_check(&c, &r, &why), DAFL_E_PARAMS);
        assert_says(&why, "at most 1 absent");
    }
}

static void encryption_needs_a_key_holder_and_room(void **state)
{
    dafl_roster without = roster_of(6), with = roster_of(7);
    dafl_config c = usual();
    dafl_why why = {{0}};

    (void)state;
    c.mode = DAFL_MODE_SEAL;
    assert_int_equal(dafl_config_check(&c, &without, &why), DAFL_E_POLICY);
    assert_says(&why, "needs a key holder");
    c.contract.w = 56;
    assert_int_equal(dafl_config_check(&c, &with, &why), DAFL_FAULT_NONE);
    c.contract.w = 64;
    assert_int_equal(dafl_config_check(&c, &with, &why), DAFL_E_POLICY);
    assert_says(&why, "w = 56 bits");
    c.mode = DAFL_MODE_MASKS;
    assert_int_equal(dafl_config_check(&c, &without, &why), DAFL_FAULT_NONE);
}

static void uploads_are_as_long_as_a_digest_takes(void **state)
{
    dafl_config c = dafl_config_default();

    (void)state;
    c.contract.w = 64;
    assert_int_equal(dafl_config_upload_bytes(&c, 0), SIZE_MAX);
    assert_int_equal(dafl_config_upload_bytes(&c, 1), 8);
    assert_int_equal(dafl_config_upload_bytes(&c, UINT32_MAX / 8),
                     UINT32_MAX / 8 * 8);
    assert_int_equal(dafl_config_upload_bytes(&c, UINT32_MAX / 8 + 1),
                     SIZE_MAX);
    assert_int_equal(dafl_config_upload_bytes(&c, UINT64_MAX), SIZE_MAX);
    c.contract.w = 32;
    assert_int_equal(dafl_config_upload_bytes(&c, UINT32_MAX / 4),
                     UINT32_MAX / 4 * 4);
    c.mode = DAFL_MODE_SEAL; /* 73,728 bytes for 4096 of them */
    assert_int_equal(dafl_config_upload_bytes(&c, 4097), 2 * 73728);
    assert_int_equal(dafl_config_upload_bytes(&c, UINT32_MAX / 73728 * 4096),
                     UINT32_MAX / 73728 * 73728);
    assert_int_equal(
        dafl_config_upload_bytes(&c, UINT32_MAX / 73728 * 4096 + 1), SIZE_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_needs_only_policy_and_method),
        cmocka_unit_test(slots_follow_the_questions),
        cmocka_unit_test(its_bytes_are_canonical_and_bind_everything),
        cmocka_unit_test(every_field_changes_the_digest),
        cmocka_unit_test(every_range_ends_where_it_says),
        cmocka_unit_test(encryption_needs_a_key_holder_and_room),
        cmocka_unit_test(uploads_are_as_long_as_a_digest_takes),
        cmocka_unit_test(a_contract_without_a_grid_is_refused),
        cmocka_unit_test(what_the_bytes_cannot_say_has_no_digest),
        cmocka_unit_test(a_ring_that_could_wrap_is_refused),
        cmocka_unit_test(a_ring_has_one_of_five_widths),
        cmocka_unit_test(a_method_has_a_name),
        cmocka_unit_test(names_that_are_no_strings_are_refused),
        cmocka_unit_test(parameters_beyond_the_bytes_are_refused),
        cmocka_unit_test(the_policys_rules_hold_in_every_mode),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
