/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/check.h"

static void every_error_has_its_own_name(void **state)
{
    (void)state;
    for (int a = DAFL_OK; a <= DAFL_ERR_SYS; a++) {
        assert_string_not_equal(dafl_err_name((dafl_err)a), "");
        for (int b = a + 1; b <= DAFL_ERR_SYS + 1; b++)
            assert_string_not_equal(dafl_err_name((dafl_err)a),
                                    dafl_err_name((dafl_err)b));
    }
    assert_string_equal(dafl_err_name((dafl_err)99), "unknown error");
}

static void fail_returns_its_error_and_writes_the_reason(void **state)
{
    dafl_why why = {"old"};

    (void)state;
    assert_int_equal(dafl_fail(&why, DAFL_ERR_PEER, "%s: %d", "x", 7),
                     DAFL_ERR_PEER);
    assert_string_equal(why.text, "x: 7");
    assert_int_equal(dafl_fail(NULL, DAFL_ERR_SYS, "%s", "unread"),
                     DAFL_ERR_SYS);
}

static void a_reason_too_long_is_cut_and_ended(void **state)
{
    char name[2000];
    dafl_why why;

    (void)state;
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    memset(&why, 'x', sizeof why);
    (void)dafl_fail(&why, DAFL_ERR_INPUT, "%s", name);
    assert_int_equal(strlen(why.text), sizeof why.text - 1);
}

static void no_control_character_reaches_the_terminal(void **state)
{
    char all[256];
    dafl_why why;

    (void)state;
    for (int i = 0; i < 255; i++)
        all[i] = (char)(i + 1);
    all[255] = '\0';
    (void)dafl_fail(&why, DAFL_ERR_INPUT, "%s", all);
    assert_int_equal(strlen(why.text), 255);
    for (int i = 0; i < 255; i++) {
        unsigned char in = (unsigned char)all[i];
        char out = in < 0x20 || in == 0x7f ? '?' : all[i];

        assert_int_equal(why.text[i], out);
    }
}

static dafl_err try_twice(dafl_err first, int *went_on)
{
    DAFL_TRY(first);
    *went_on = 1;
    return DAFL_OK;
}

static void try_returns_early_on_errors_only(void **state)
{
    int went_on = 0;

    (void)state;
    assert_int_equal(try_twice(DAFL_ERR_NOMEM, &went_on), DAFL_ERR_NOMEM);
    assert_int_equal(went_on, 0);
    assert_int_equal(try_twice(DAFL_OK, &went_on), DAFL_OK);
    assert_int_equal(went_on, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_has_its_own_name),
        cmocka_unit_test(fail_returns_its_error_and_writes_the_reason),
        cmocka_unit_test(a_reason_too_long_is_cut_and_ended),
        cmocka_unit_test(no_control_character_reaches_the_terminal),
        cmocka_unit_test(try_returns_early_on_errors_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
