/* SPDX-License-Identifier: Apache-2.0 */
/* How small a cohort may be and how much trust the numbers ask for. Part of the
 * config; each client also has floors of its own below which it stays away. */
#ifndef DAFL_PROTOCOL_POLICY_H
#define DAFL_PROTOCOL_POLICY_H

#include "protocol/roster.h"

typedef struct {
    uint16_t n_min; /* least clients enrolled */
    uint16_t m;     /* least clients in a sum */
    uint16_t g;     /* least clients in a cell; 1: any cohort, no cells */
    uint16_t c;     /* most clients that collude with the server */
    uint16_t a;     /* most clients absent or not signing */
} dafl_policy;

/* What one client insists on, whatever the config says. */
typedef struct {
    uint16_t least_m, least_g;
    bool any_cohort; /* accept g = 1 */
    bool plain;      /* accept a run without masks */
} dafl_floor;

/* The hard rules: every cell has at least g members; g >= c + 2, or g = 1; m >=
 * c + 2; 2 <= n_min <= clients; m <= clients; a threshold exists for n_min. The
 * reason names the rule. DAFL_E_POLICY, or DAFL_E_PARAMS for the last. */
dafl_fault dafl_policy_check(const dafl_policy *p, const dafl_roster *roster,
                             dafl_why *why);

/* Whether a client's floors allow a policy: DAFL_E_POLICY when not. */
dafl_fault dafl_policy_floor(const dafl_policy *p, const dafl_floor *floor,
                             dafl_why *why);

/* Whether a cohort may be summed: within `allowed`, of whole cells, at least m.
 * DAFL_E_CELL_SPLIT or DAFL_E_COHORT. With g = 1 every client is a cell. */
dafl_fault dafl_policy_cohort(const dafl_policy *p, const dafl_roster *roster,
                              const dafl_members *allowed,
                              const dafl_members *cohort);

#endif
