/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/check.h"

#include <stdbool.h>

#include "protocol/policy.h"

/* k clients dealt to cells of `size` in turn, a server and a key holder. */
static size_t make_parties(dafl_party *p, size_t k, size_t size)
{
    memset(p, 0, (k + 2) * sizeof *p);
    for (size_t i = 0; i < k + 2; i++) {
        (void)snprintf(p[i].id.name, sizeof p[i].id.name, "party-%zu", i);
        p[i].id.sign_pk[0] = (uint8_t)i;
        p[i].id.sign_pk[1] = (uint8_t)(i >> 8);
        p[i].id.curve_pk.b[5] = (uint8_t)i;
        p[i].id.curve_pk.b[6] = (uint8_t)(i >> 8);
        p[i].role = i < k    ? DAFL_ROLE_CLIENT
                    : i == k ? DAFL_ROLE_SERVER
                             : DAFL_ROLE_KEYHOLDER;
        p[i].cell = (uint16_t)(i < k ? i / size : DAFL_NO_CELL);
    }
    return k + 2;
}

static dafl_roster roster_of(size_t k, size_t size)
{
    dafl_party p[DAFL_PARTIES_MAX];
    dafl_roster r;

    assert_ok(dafl_roster_make(&r, p, make_parties(p, k, size), NULL));
    return r;
}

static void refused(const dafl_party *p, size_t n, const char *words)
{
    dafl_roster r;
    dafl_why why = {{0}};

    assert_int_equal(dafl_roster_make(&r, p, n, &why), DAFL_ERR_INPUT);
    assert_says(&why, words);
}

static void a_roster_is_counted(void **state)
{
    dafl_roster r = roster_of(256, 8);
    dafl_members cell = dafl_roster_cell(&r, 31);

    (void)state;
    assert_int_equal(r.n, 258);
    assert_int_equal(r.n_clients, 256);
    assert_int_equal(r.n_cells, 32);
    assert_int_equal(dafl_members_count(&cell), 8);
    assert_true(dafl_members_has(&cell, 255) && !dafl_members_has(&cell, 247));
    assert_int_equal(dafl_roster_find(&r, "party-256"), 256);
    assert_int_equal(dafl_roster_find(&r, "nobody"), -1);
    r = roster_of(13, 4);
    assert_int_equal(dafl_roster_least_cell(&r), 1);
}

static void every_broken_rule_is_named(void **state)
{
    dafl_party good[DAFL_PARTIES_MAX + 1], p[DAFL_PARTIES_MAX + 1];
    size_t n = make_parties(good, 6, 3);

    (void)state;
    refused(good, 0, "0 clients");
    refused(good, 6, "one server");
    refused(good, DAFL_PARTIES_MAX + 1, "at most 258");
#define CHANGE(what, words)        \
    do {                           \
        memcpy(p, good, sizeof p); \
        what;                      \
        refused(p, n, words);      \
    } while (0)
    CHANGE(p[0].role = DAFL_ROLE_SERVER, "0 clients");
    CHANGE(p[3].role = DAFL_ROLE_SERVER, "one server");
    CHANGE(p[7].role = DAFL_ROLE_SERVER, "key holder");
    CHANGE(p[2].cell = 6, "'party-2' cannot be in cell 6");
    CHANGE(p[6].cell = 0, "'party-6' cannot be in cell 0");
    CHANGE((p[3].cell = p[4].cell = p[5].cell = 2), "cell 1 of the roster");
    CHANGE(memcpy(p[4].id.name, "party-1", 8), "'party-1' twice");
    CHANGE(p[4].id.sign_pk[0] = 1, "'party-1' and 'party-4'");
    CHANGE(p[7].id.curve_pk.b[5] = 0, "'party-0' and 'party-7'");
#undef CHANGE
}

static void its_bytes_are_canonical_and_bind_everything(void **state)
{
    dafl_roster r = roster_of(5, 5), back;
    dafl_writer w = {0}, again = {0};
    dafl_digest digest, other;

    (void)state;
    dafl_put_roster(&w, &r);
    assert_ok(dafl_get_roster(&back, dafl_writer_bytes(&w), NULL));
    dafl_put_roster(&again, &back);
    assert_int_equal(w.len, again.len);
    assert_memory_equal(w.ptr, again.ptr, w.len);
    assert_ok(dafl_roster_digest(&digest, &r));
    for (size_t len = 0; len < w.len; len++)
        assert_int_equal(dafl_get_roster(&back, (dafl_bytes){w.ptr, len}, NULL),
                         DAFL_ERR_INPUT);
    for (size_t bit = 0; bit < 8 * w.len; bit++) {
        w.ptr[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (dafl_get_roster(&back, dafl_writer_bytes(&w), NULL) == DAFL_OK) {
            assert_ok(dafl_roster_digest(&other, &back));
            assert_false(dafl_digest_equal(&digest, &other));
        }
        w.ptr[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    dafl_put_u8(&w, 0);
    assert_int_equal(dafl_get_roster(&back, dafl_writer_bytes(&w), NULL),
                     DAFL_ERR_INPUT);
    dafl_writer_drop(&again);
    dafl_writer_drop(&w);
}

/* A name with a character that has another meaning elsewhere, or with a zero
 * that hides its end. The first name stands at byte 9. */
static void names_of_other_characters_are_refused(void **state)
{
    static const uint8_t wrong[] = {0, ' ', '/', '\n', 0x80, 0xff};
    dafl_roster r = roster_of(5, 5), back;
    dafl_writer w = {0};

    (void)state;
    dafl_put_roster(&w, &r);
    assert_memory_equal(w.ptr + 9, "party-0", 7);
    for (size_t i = 0; i < COUNT(wrong); i++)
        for (size_t k = 0; k < 7; k++) {
            uint8_t keep = w.ptr[9 + k];
            w.ptr[9 + k] = wrong[i];
            assert_int_equal(
                dafl_get_roster(&back, dafl_writer_bytes(&w), NULL),
                DAFL_ERR_INPUT);
            w.ptr[9 + k] = keep;
        }
    assert_ok(dafl_get_roster(&back, dafl_writer_bytes(&w), NULL));
    dafl_writer_drop(&w);
}

static void only_whole_cells_are_whole(void **state)
{
    dafl_roster r = roster_of(9, 3);

    (void)state;
    for (unsigned bits = 0; bits < 512; bits++) {
        dafl_members set = dafl_members_none(9), kept;
        bool whole = true;

        for (size_t i = 0; i < 9; i++)
            if (bits >> i & 1)
                dafl_members_add(&set, i);
        for (unsigned c = 0; c < 3; c++) {
            unsigned cell = bits >> 3 * c & 7;
            whole = whole && (cell == 0 || cell == 7);
        }
        assert_int_equal(dafl_roster_whole_cells(&r, &set), whole);
        kept = dafl_roster_keep_whole(&r, &set);
        assert_true(dafl_roster_whole_cells(&r, &kept));
        assert_true(dafl_members_within(&kept, &set));
    }
}

static void the_policys_rules_hold_at_their_bounds(void **state)
{
    dafl_roster r = roster_of(12, 4);
    const dafl_policy good = {.n_min = 12, .m = 8, .g = 4, .c = 2, .a = 3};
    dafl_policy p;
    dafl_why why = {{0}};

    (void)state;
    assert_int_equal(dafl_policy_check(&good, &r, &why), DAFL_FAULT_NONE);
#define CHANGE(what, fault, words)                                \
    do {                                                          \
        p = good;                                                 \
        what;                                                     \
        assert_int_equal(dafl_policy_check(&p, &r, &why), fault); \
        if ((fault) != DAFL_FAULT_NONE)                           \
            assert_says(&why, words);                             \
    } while (0)
    CHANGE(p.g = 3, DAFL_E_POLICY, "c + 2 = 4");
    CHANGE(p.g = 5, DAFL_E_POLICY, "has 4 members");
    CHANGE(p.g = 1, DAFL_FAULT_NONE, "");
    CHANGE(p.g = 0, DAFL_E_POLICY, "g = 0");
    CHANGE(p.c = 3, DAFL_E_POLICY, "c + 2 = 5");
    CHANGE(p.m = 3, DAFL_E_POLICY, "m = 3");
    CHANGE(p.m = 4, DAFL_FAULT_NONE, "");
    CHANGE(p.m = 13, DAFL_E_POLICY, "m = 13");
    CHANGE(p.n_min = 13, DAFL_E_POLICY, "n_min = 13");
    CHANGE(p.n_min = 1, DAFL_E_POLICY, "n_min = 1");
    CHANGE(p.a = 4, DAFL_FAULT_NONE, "");
    CHANGE(p.a = 5, DAFL_E_PARAMS, "at most 4 absent");
#undef CHANGE
}

static void a_client_keeps_its_floors(void **state)
{
    dafl_policy p = {.m = 8, .g = 4};
    dafl_floor floor = {.least_m = 8, .least_g = 4};
    dafl_why why = {{0}};

    (void)state;
    assert_int_equal(dafl_policy_floor(&p, &floor, &why), DAFL_FAULT_NONE);
    floor.least_m = 9;
    assert_int_equal(dafl_policy_floor(&p, &floor, &why), DAFL_E_POLICY);
    floor.least_m = 8;
    floor.least_g = 5;
    assert_int_equal(dafl_policy_floor(&p, &floor, &why), DAFL_E_POLICY);
    p.g = 1;
    assert_int_equal(dafl_policy_floor(&p, &floor, &why), DAFL_E_POLICY);
    assert_says(&why, "not allowed");
    floor.any_cohort = true;
    assert_int_equal(dafl_policy_floor(&p, &floor, &why), DAFL_FAULT_NONE);
}

static void cohorts_are_judged(void **state)
{
    dafl_roster r = roster_of(12, 4);
    dafl_members all = dafl_roster_clients(&r), cohort = all;
    dafl_members two = dafl_members_minus(&all, &(dafl_members){.n = 12});
    dafl_members first = dafl_roster_cell(&r, 0);
    dafl_policy p = {.m = 8, .g = 4};

    (void)state;
    assert_int_equal(dafl_policy_cohort(&p, &r, &all, &all), DAFL_FAULT_NONE);
    dafl_members_remove(&cohort, 5);
    assert_int_equal(dafl_policy_cohort(&p, &r, &all, &cohort),
                     DAFL_E_CELL_SPLIT);
    two = dafl_members_minus(&two, &first);
    assert_int_equal(dafl_policy_cohort(&p, &r, &all, &two), DAFL_FAULT_NONE);
    assert_int_equal(dafl_policy_cohort(&p, &r, &all, &first), DAFL_E_COHORT);
    assert_int_equal(dafl_policy_cohort(&p, &r, &two, &all), DAFL_E_COHORT);
    p.g = 1; /* without cells, m counts one by one */
    assert_int_equal(dafl_policy_cohort(&p, &r, &all, &cohort),
                     DAFL_FAULT_NONE);
    for (size_t left = dafl_members_count(&cohort); left-- > p.m;)
        dafl_members_remove(&cohort, left < 5 ? left : left + 1);
    assert_int_equal(dafl_members_count(&cohort), p.m);
    assert_int_equal(dafl_policy_cohort(&p, &r, &all, &cohort),
                     DAFL_FAULT_NONE);
    dafl_members_remove(&cohort, 0);
    assert_int_equal(dafl_policy_cohort(&p, &r, &all, &cohort), DAFL_E_COHORT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_roster_is_counted),
        cmocka_unit_test(every_broken_rule_is_named),
        cmocka_unit_test(its_bytes_are_canonical_and_bind_everything),
        cmocka_unit_test(names_of_other_characters_are_refused),
        cmocka_unit_test(only_whole_cells_are_whole),
        cmocka_unit_test(the_policys_rules_hold_at_their_bounds),
        cmocka_unit_test(a_client_keeps_its_floors),
        cmocka_unit_test(cohorts_are_judged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
