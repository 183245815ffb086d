/* SPDX-License-Identifier: Apache-2.0 */
/* Run attacks (tests/lab/attack.h): on machines as they are each must fail; on
 * machines without a check those that rely on it must succeed. */
#include "tests/lab/attack.h"

#include "tests/check.h"

#include "crypto/he.h"

static const lab_attack *const lists[] = {
    attacks_slot,  attacks_quorum, attacks_setup, attacks_client,
    attacks_data,  attacks_deep,   attacks_keys,  attacks_replay,
    attacks_model, attacks_seal,   attacks_flood, attacks_members};

static void run_one(void **state)
{
    const lab_attack *a = *state;
    bool stopped = lab_weakened() == DAFL_WEAK_NOTHING;
    bool success = a->succeeds(stopped);

    print_message("%s: %s\n", a->name, success ? "succeeds" : "is stopped");
    assert_int_equal(success, !stopped);
}

/* Whether this program is to try it. */
static bool wanted(const lab_attack *a, const char *prefix)
{
    if (a->name[0] == 'H' && !dafl_he_built())
        return false;
    return (lab_weakened() == DAFL_WEAK_NOTHING ||
            lab_weakened() == a->check) &&
           strncmp(a->name, prefix, strlen(prefix)) == 0;
}

int main(int argc, char **argv)
{
    struct CMUnitTest tests[128];
    size_t n = 0;

    check_seed();
    for (size_t i = 0; i < COUNT(lists); i++)
        for (const lab_attack *a = lists[i]; a->name != NULL; a++) {
            if (!wanted(a, argc > 1 ? argv[1] : ""))
                continue;
            assert_true(n < COUNT(tests));
            tests[n++] =
                (struct CMUnitTest){.name = a->name,
                                    .test_func = run_one,
                                    .initial_state = (void *)(uintptr_t)a};
        }
    if (n == 0 && !dafl_he_built()) {
        print_error("SKIPPED, nothing was tested: there is no encryption in "
                    "this build\n");
        return 77;
    }
    if (n == 0) {
        print_error("no attack relies on this\n");
        return 1;
    }
    return _cmocka_run_group_tests("attacks", tests, n, NULL, NULL);
}
