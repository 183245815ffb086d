/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that are built twice: with machines as they are, for the cases, and
 * with machines that can lack a check (weakened.c), for the controls. */
#ifndef DAFL_TESTS_LAB_CONTROL_H
#define DAFL_TESTS_LAB_CONTROL_H

#include "tests/check.h"

#include "protocol/weaken.h"

#ifdef DAFL_WEAKEN
CHECK_HELPER int strengthen(void **state)
{
    (void)state;
    dafl_weakened = DAFL_WEAK_NOTHING;
    return 0;
}

/* A case that leaves a check out. */
#define CONTROL(f) cmocka_unit_test_teardown(f, strengthen)

/* The cases are those of the other program, and here only for `all`. */
#define RUN_CASES(cases, controls, all)                   \
    (cmocka_run_group_tests(controls, NULL, NULL) != 0 || \
     ((all) && cmocka_run_group_tests(cases, NULL, NULL) != 0))
#else
#define RUN_CASES(cases, controls, all) \
    ((void)(all), cmocka_run_group_tests(cases, NULL, NULL))
#endif

#endif
