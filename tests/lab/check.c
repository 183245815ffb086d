/* SPDX-License-Identifier: Apache-2.0 */
/* What a test asks of a lab, as assertions. */
#include "tests/lab/inside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "crypto/he.h"

bool lab_can_encrypt(void)
{
    if (!dafl_he_built())
        (void)fprintf(stderr, "SKIPPED, nothing was tested: there is no "
                              "encryption in this build\n");
    return dafl_he_built();
}

void lab_check_invariants(lab *l)
{
    const char *violation = lab_violation(l);

    if (violation == NULL)
        return;
    lab_dump(l);
    fail_msg("seed %llu: %s", (unsigned long long)l->scenario.seed, violation);
}

void lab_check_done(lab *l)
{
    lab_run(l);
    lab_check_invariants(l);
    if (l->outcome != LAB_DONE) {
        lab_dump(l);
        fail_msg("seed %llu: the run does not finish",
                 (unsigned long long)l->scenario.seed);
    }
    for (uint32_t q = 0;
         l->scenario.method == &lab_vectors && q < l->scenario.questions; q++)
        assert_non_null(lab_sum_of(l, q));
}

void lab_check_cohort(lab *l, uint32_t question, const dafl_members *cohort)
{
    const lab_sum *sum = lab_sum_of(l, question);

    if (sum != NULL && dafl_members_equal(&sum->cohort, cohort))
        return;
    lab_dump(l);
    fail_msg("seed %llu, question %u: %zu members summed, not those %zu",
             (unsigned long long)l->scenario.seed, (unsigned)question,
             sum == NULL ? 0 : dafl_members_count(&sum->cohort),
             dafl_members_count(cohort));
}
