/* SPDX-License-Identifier: Apache-2.0 */
/* What is opened is the plain sum, exactly: the largest that are allowed (I6),
 * whoever leaves whenever (I1). With the argument 250 for so many clients. */
#include "tests/check.h"

#include "tests/lab/table.h"

/* ---- I6: the largest sums ---- */

/* Contracts whose products fill rings of every width. */
static dafl_contract contract_of(unsigned w, unsigned s, uint32_t q)
{
    dafl_contract c = {.exact = true, .s = s, .q = q, .w = w};
    uint64_t square = (uint64_t)q * q << 2 * s;

    c.n_max = (((uint64_t)1 << (w - 1)) - 1) / square;
    return c;
}

static const struct {
    unsigned w, s;
    uint32_t q;
} contracts[] = {{32, 1, 1},  {32, 12, 3}, {40, 1, 1},  {40, 12, 4},
                 {48, 10, 7}, {48, 12, 4}, {56, 12, 4}, {56, 13, 5},
                 {64, 24, 4}, {64, 20, 3}, {64, 16, 5}};

/* What both kinds of machine say to a contract. */
static dafl_fault judged(const lab *l, const dafl_contract *contract)
{
    dafl_config config = *lab_config(l);
    dafl_client_params cp = {.roster = lab_roster(l),
                             .config = &config,
                             .self = lab_identity(l, 0),
                             .floor = {.any_cohort = true},
                             .method = &table_client_method};
    dafl_server_params sp = {.roster = lab_roster(l),
                             .config = &config,
                             .self = lab_identity(l, lab_server_index(l)),
                             .method = &table_server_method};
    dafl_fault client = DAFL_FAULT_NONE, server = DAFL_FAULT_NONE;
    dafl_client *c = NULL;
    dafl_server *s = NULL;
    dafl_err err;

    config.contract = *contract;
    err = dafl_client_new(&c, &cp, &client, NULL);
    assert_int_equal(err, client == DAFL_FAULT_NONE ? DAFL_OK : DAFL_ERR_INPUT);
    assert_int_equal(dafl_server_new(&s, &sp, &server, NULL), err);
    assert_int_equal(client, server);
    dafl_client_free(&c);
    dafl_server_free(&s);
    return client;
}

/* I6. */
static void sums_that_could_wrap_are_refused_by_every_machine(void **state)
{
    lab_scenario s = lab_scenario_for(5, 1, random_u64());
    lab *l = lab_new(&s);

    (void)state;
    for (size_t i = 0; i < COUNT(contracts); i++) {
        dafl_contract c =
            contract_of(contracts[i].w, contracts[i].s, contracts[i].q);
        assert_int_equal(judged(l, &c), DAFL_FAULT_NONE);
        c.n_max++;
        assert_int_equal(judged(l, &c), DAFL_E_POLICY);
        c.w += 8;
        assert_int_equal(judged(l, &c),
                         c.w <= 64 ? DAFL_FAULT_NONE : DAFL_E_POLICY);
        c.w -= 8;
        c.n_max = UINT64_MAX;
        assert_int_equal(judged(l, &c), DAFL_E_POLICY);
        c.n_max = (uint64_t)1 << 40;
        assert_int_equal(judged(l, &c), DAFL_E_POLICY);
        c.n_max = 1;
        c.exact = false;
        assert_int_equal(judged(l, &c), DAFL_E_POLICY);
    }
    lab_free(&l);
}

/* I6. Every row has the largest product that there is, of either sign. */
static void the_largest_sums_that_are_allowed_are_exact(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(contracts); i++) {
        lab_scenario s = lab_scenario_for(5, 1, random_u64());
        dafl_contract c =
            contract_of(contracts[i].w, contracts[i].s, contracts[i].q);
        int64_t square = (int64_t)((uint64_t)c.q * c.q << 2 * c.s);
        uint64_t left = c.n_max;
        lab *l;
        table_open(s.k, 7);
        for (size_t u = 0; u < s.k; u++) {
            uint64_t rows = u + 1 == s.k ? left : random_u64() % (left / 2 + 1);
            left -= rows;
            for (size_t j = 0; j < table.len; j++)
                table.x[u * table.len + j] =
                    (int64_t)rows * (j % 2 == 0 ? square : -square);
        }
        s.config.contract = c;
        s.method = &table_method;
        s.questions = 1;
        l = lab_new(&s);
        lab_check_done(l);
        assert_true(table_holds());
        assert_int_equal(dafl_members_count(&table.cohort), s.k);
        for (size_t j = 0; j < table.len; j++)
            assert_true(table.sum[j] ==
                        (j % 2 == 0 ? 1 : -1) * (int64_t)c.n_max * square);
        lab_free(&l);
        table_close();
    }
}

/* ---- I1: whoever leaves whenever ---- */

/* A share of the clients leaves in every question, each somewhere. */
static void leave_at_random(uint16_t k, uint16_t cell_size, uint32_t questions,
                            size_t percent)
{
    lab_scenario s = lab_scenario_for(k, cell_size, random_u64());
    lab *l;

    s.questions = questions;
    s.config.slots = 3 * questions;
    s.tail = 3;
    l = lab_new(&s);
    for (uint32_t q = 0; q < questions; q++)
        for (uint16_t u = 0; u < k; u++)
            if (random_size(1, 100) <= percent)
                lab_leave(l, u, q, (lab_phase)random_size(0, LAB_PHASES - 1),
                          random_size(0, 3) == 0 ? LAB_SOON : LAB_NEXT_SLOT);
    lab_check_done(l);
    print_message("%u clients: %u slots for %u sums, %u secrets of absent "
                  "clients\n",
                  (unsigned)k, (unsigned)dafl_server_stat(lab_server(l)).slots,
                  (unsigned)questions,
                  (unsigned)dafl_server_stat(lab_server(l)).rebuilt);
    lab_free(&l);
}

static void sums_over_12_clients_that_come_and_go_are_exact(void **state)
{
    (void)state;
    for (size_t i = 0; i < 8; i++)
        leave_at_random(12, i % 2 == 0 ? 1 : 3, 4, random_size(10, 30));
}

static void sums_over_100_clients_that_come_and_go_are_exact(void **state)
{
    (void)state;
    leave_at_random(100, 1, 1, random_size(10, 30));
}

static void sums_over_250_clients_that_come_and_go_are_exact(void **state)
{
    (void)state;
    leave_at_random(250, 1, 1, random_size(10, 30));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_that_could_wrap_are_refused_by_every_machine),
        cmocka_unit_test(the_largest_sums_that_are_allowed_are_exact),
        cmocka_unit_test(sums_over_12_clients_that_come_and_go_are_exact),
        cmocka_unit_test(sums_over_100_clients_that_come_and_go_are_exact),
    };
    const struct CMUnitTest large[] = {
        cmocka_unit_test(sums_over_250_clients_that_come_and_go_are_exact),
    };

    check_seed();
    if (argc > 1 && strcmp(argv[1], "250") == 0)
        return cmocka_run_group_tests(large, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
