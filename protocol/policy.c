/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/policy.h"

#include "protocol/weaken.h"

dafl_fault dafl_policy_check(const dafl_policy *p, const dafl_roster *roster,
                             dafl_why *why)
{
    size_t t = 0, least = dafl_roster_least_cell(roster);
    unsigned two_more = p->c + 2u;

    if (p->g != 1 && p->g < two_more)
        return dafl_fail(why, DAFL_E_POLICY,
                         "g = %u: cells need c + 2 = %u members, or g = 1 for "
                         "no cells",
                         (unsigned)p->g, two_more);
    if (least < p->g)
        return dafl_fail(why, DAFL_E_POLICY,
                         "a cell of the roster has %zu members, g = %u", least,
                         (unsigned)p->g);
    if (p->m < two_more || p->m > roster->n_clients)
        return dafl_fail(why, DAFL_E_POLICY,
                         "m = %u: choose c + 2 = %u to %u, the clients",
                         (unsigned)p->m, two_more, (unsigned)roster->n_clients);
    if (p->n_min < 2 || p->n_min > roster->n_clients)
        return dafl_fail(why, DAFL_E_POLICY,
                         "n_min = %u: choose 2 to %u, the clients",
                         (unsigned)p->n_min, (unsigned)roster->n_clients);
    if (dafl_threshold(&t, p->n_min, p->c, p->a) != DAFL_FAULT_NONE)
        return dafl_fail(why, DAFL_E_PARAMS,
                         "n_min = %u clients with c = %u colluding allow at "
                         "most %zu absent, not a = %u",
                         (unsigned)p->n_min, (unsigned)p->c,
                         dafl_threshold_absent(p->n_min, p->c), (unsigned)p->a);
    return DAFL_FAULT_NONE;
}

dafl_fault dafl_policy_floor(const dafl_policy *p, const dafl_floor *floor,
                             dafl_why *why)
{
    if (p->g == 1 && !floor->any_cohort)
        return dafl_fail(why, DAFL_E_POLICY,
                         "g = 1 lets the server single clients out; this "
                         "client has not allowed it");
    if (p->g != 1 && p->g < floor->least_g)
        return dafl_fail(why, DAFL_E_POLICY,
                         "g = %u, this client insists on %u", (unsigned)p->g,
                         (unsigned)floor->least_g);
    if (p->m < floor->least_m)
        return dafl_fail(why, DAFL_E_POLICY,
                         "m = %u, this client insists on %u", (unsigned)p->m,
                         (unsigned)floor->least_m);
    return DAFL_FAULT_NONE;
}

dafl_fault dafl_policy_cohort(const dafl_policy *p, const dafl_roster *roster,
                              const dafl_members *allowed,
                              const dafl_members *cohort)
{
    if (!dafl_members_within(cohort, allowed))
        return DAFL_E_COHORT;
    if (p->g != 1 && !dafl_roster_whole_cells(roster, cohort) &&
        !DAFL_WEAK(CELLS))
        return DAFL_E_CELL_SPLIT;
    if (dafl_members_count(cohort) < p->m && !DAFL_WEAK(COHORT))
        return DAFL_E_COHORT;
    return DAFL_FAULT_NONE;
}
