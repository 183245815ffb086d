/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/crypto/bytes.h"

#include "protocol/config.h"
#include "protocol/context.h"
#include "protocol/envelope.h"
#include "protocol/roster.h"
#include "tests/vectors/protocol.h"

static dafl_digest digest(const char *hex)
{
    dafl_digest d;

    from_hex(d.b, sizeof d.b, hex);
    return d;
}

static void assert_known(const dafl_digest *got, const char *hex)
{
    dafl_digest want = digest(hex);

    assert_memory_equal(got->b, want.b, sizeof want.b);
}

static dafl_members members_of(size_t n, const uint8_t *list, size_t count)
{
    dafl_members m = dafl_members_none(n);

    for (size_t i = 0; i < count; i++)
        dafl_members_add(&m, list[i]);
    return m;
}

static void setup_digests_equal_the_independent_model(void **state)
{
    static const uint8_t packets[] = {'p', 'a', 'c', 'k', 'e', 't', 's'};
    uint8_t keys[3 * 64];
    dafl_run_id run;
    dafl_setup_member m[2] = {{.client = 1}, {.client = 258}};
    dafl_digest roster = digest(given_roster), config = digest(given_config);
    dafl_digest out;

    (void)state;
    from_hex(run.b, sizeof run.b, given_run);
    from_hex(keys, sizeof keys, given_keys);
    from_hex(m[0].ek.b, 32, given_ek);
    dafl_context_keys(&m[0].hk, (dafl_bytes){keys, sizeof keys});
    assert_known(&m[0].hk, known_hk);
    dafl_context_enroll(&out, &run, 0x20103, 1, &m[0].ek, &m[0].hk);
    assert_known(&out, known_enroll);
    dafl_context_shares(&out, (dafl_bytes){packets, sizeof packets});
    assert_known(&out, known_shares);
    dafl_context_dealt(&m[0].dealt, &run, 0x20103, 258, &out);
    assert_known(&m[0].dealt, known_dealt);
    from_hex(m[1].ek.b, 32, given_ek_2);
    m[1].hk = digest(given_hk_2);
    m[1].dealt = digest(given_dealt_2);
    dafl_context_setup(&out, &run, &roster, &config, 3, m, 2);
    assert_known(&out, known_setup);
}

static void slot_digests_equal_the_independent_model(void **state)
{
    static const uint8_t a[] = {0, 1, 2, 9, 10, 11}, u3[] = {9, 10, 11};
    static const uint8_t head[] = {'h', 'e', 'a', 'd'};
    static const char upload[] = "masked bytes";
    const dafl_segment segments[] = {
        {1, 2, 0, 5, {head, sizeof head}},
        {2, 3, 513, 7, {NULL, 0}},
    };
    dafl_digest setup = digest(known_setup), model = {{0}};
    dafl_digest ctx, ctx2, digests[3], pieces, end, stmt;
    dafl_members cast = members_of(12, a, sizeof a);
    dafl_members alive = members_of(12, u3, sizeof u3);
    dafl_hash h;

    (void)state;
    dafl_context_model(&model, &segments[0]);
    dafl_context_model(&model, &segments[1]);
    assert_known(&model, known_model);
    dafl_context_slot(&ctx, &setup,
                      &(dafl_slot_task){.slot = 9,
                                        .query = 2,
                                        .rank = 0x10203,
                                        .model = model,
                                        .len = 627200,
                                        .w = 48});
    assert_known(&ctx, known_ctx);
    dafl_context_cast(&ctx2, &ctx, &cast);
    assert_known(&ctx2, known_ctx2);
    dafl_context_upload(&digests[0], &ctx2, 9,
                        (dafl_bytes){(const uint8_t *)upload, 12});
    assert_known(&digests[0], known_dig);
    dafl_context_upload_begin(&h, &ctx2, 9, 12);
    for (size_t i = 0; i < 12; i += 4)
        dafl_hash_piece(&h, upload + i, 4);
    dafl_hash_end(&h, &pieces);
    assert_true(dafl_digest_equal(&pieces, &digests[0]));
    dafl_context_end(&end, &ctx2, 9, &digests[0]);
    assert_known(&end, known_end);
    digests[1] = digest(given_dig_10);
    digests[2] = digest(given_dig_11);
    dafl_context_statement(&stmt, &ctx2, &alive,
                           (dafl_bytes){digests[0].b, sizeof digests});
    assert_known(&stmt, known_stmt);
}

static void key_holders_digests_equal_the_independent_model(void **state)
{
    static const char pk[] = "public key", sum[] = "ciphertexts",
                      out[] = "words";
    dafl_digest setup = digest(known_setup), ctx2 = digest(known_ctx2);
    dafl_digest he, key, sealed, opened;
    dafl_run_id run;

    (void)state;
    from_hex(run.b, sizeof run.b, given_run);
    dafl_context_he(&he, (dafl_bytes){(const uint8_t *)pk, 10});
    assert_known(&he, known_he);
    dafl_context_key(&key, &run, &setup, 9, &he);
    assert_known(&key, known_key);
    dafl_context_sealed(&sealed, &ctx2, (dafl_bytes){(const uint8_t *)sum, 11});
    assert_known(&sealed, known_sealed);
    dafl_context_opened(&opened, &sealed,
                        (dafl_bytes){(const uint8_t *)out, 5});
    assert_known(&opened, known_opened);
}

static void an_envelope_equals_the_independent_model(void **state)
{
    uint8_t seed[64], want[DAFL_ENVELOPE_OVERHEAD + 32];
    dafl_digest body = digest(known_ctx);
    dafl_envelope m = {.type = DAFL_MSG_READY, .slot = 9, .sender = 258};
    dafl_secret_identity id;
    dafl_writer w = {0};

    (void)state;
    from_hex(seed, sizeof seed, given_seed);
    from_hex(want, sizeof want, known_envelope);
    from_hex(m.run.b, sizeof m.run.b, given_run);
    m.log_head = digest(given_log_head);
    m.seq = (uint64_t)3 << 32 | 17;
    m.body = (dafl_bytes){body.b, sizeof body.b};
    assert_ok(dafl_identity_new_derand(&id, "anyone", seed, NULL));
    dafl_put_envelope(&w, &m, &id);
    assert_int_equal(w.len, sizeof want);
    assert_memory_equal(w.ptr, want, sizeof want);
    dafl_writer_drop(&w);
    dafl_identity_wipe(&id);
}

static void a_roster_equals_the_independent_model(void **state)
{
    static const struct {
        const char *name, *seed;
        dafl_role role;
        uint16_t cell;
    } list[] = {{"site-a", given_seed_site_a, DAFL_ROLE_CLIENT, 0},
                {"site-b", given_seed_site_b, DAFL_ROLE_CLIENT, 0},
                {"server", given_seed_server, DAFL_ROLE_SERVER, DAFL_NO_CELL}};
    dafl_party parties[3];
    static dafl_roster roster;
    dafl_writer w = {0};
    dafl_digest out;
    uint8_t want[512];

    (void)state;
    for (size_t i = 0; i < COUNT(list); i++) {
        dafl_secret_identity id;
        uint8_t seed[64];

        from_hex(seed, sizeof seed, list[i].seed);
        assert_ok(dafl_identity_new_derand(&id, list[i].name, seed, NULL));
        parties[i] = (dafl_party){id.public, list[i].role, list[i].cell};
        dafl_identity_wipe(&id);
    }
    assert_ok(dafl_roster_make(&roster, parties, COUNT(list), NULL));
    dafl_put_roster(&w, &roster);
    assert_int_equal(2 * w.len, strlen(known_roster_bytes));
    from_hex(want, w.len, known_roster_bytes);
    assert_memory_equal(w.ptr, want, w.len);
    assert_ok(dafl_roster_digest(&out, &roster));
    assert_known(&out, known_roster_digest);
    dafl_writer_drop(&w);
}

/* Every byte of every field is another one, so none can change places. */
static void a_config_equals_the_independent_model(void **state)
{
    dafl_config c = {
        .mode = DAFL_MODE_SEAL,
        .policy = {0x1102, 0x2203, 0x3304, 0x4405, 0x5506},
        .contract = {true, 3, 0x107, 0x1000000809, 64},
        .want = 0x2ab,
        .tries = 0x660c,
        .retries = 0x770d,
        .slots = 0xeef,
        .chunk = 0x123456,
        .body_max = 0x89abcdef,
        .wait = {0x10000001, 0x20000002, 0x30000003, 0x40000004, 0x50000005},
        .method = "Some.m-_9",
    };
    uint8_t params[258], want[512];
    dafl_writer w = {0};
    dafl_digest out;

    (void)state;
    from_hex(params, sizeof params, given_params);
    c.method_params = (dafl_bytes){params, sizeof params};
    dafl_put_config(&w, &c);
    assert_int_equal(2 * w.len, strlen(known_config_bytes));
    from_hex(want, w.len, known_config_bytes);
    assert_memory_equal(w.ptr, want, w.len);
    assert_ok(dafl_config_digest(&out, &c));
    assert_known(&out, known_config_digest);
    dafl_writer_drop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(setup_digests_equal_the_independent_model),
        cmocka_unit_test(slot_digests_equal_the_independent_model),
        cmocka_unit_test(key_holders_digests_equal_the_independent_model),
        cmocka_unit_test(an_envelope_equals_the_independent_model),
        cmocka_unit_test(a_roster_equals_the_independent_model),
        cmocka_unit_test(a_config_equals_the_independent_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
