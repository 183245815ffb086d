/* SPDX-License-Identifier: Apache-2.0 */
/* What a client (and a key holder) checks of what the server says in a slot,
 * before it sends, signs or reveals anything. Each rule is a pure function of
 * what the party itself knows. */
#ifndef DAFL_PROTOCOL_RULES_H
#define DAFL_PROTOCOL_RULES_H

#include "protocol/messages.h"
#include "protocol/policy.h"

/* What a party knows about the slot it is in. */
typedef struct {
    const dafl_roster *roster;
    const dafl_policy *policy;
    const dafl_members *u1; /* the clients of the setup */
    size_t t;               /* the threshold of the setup */
    /* An increment must be answered by the cohort of the residual sum and of
     * the matrices it adds to; NULL for any other query. */
    const dafl_members *increment_over;
} dafl_slot_view;

/* CAST: A is within U1, of whole cells, at least m; for an increment, the very
 * cohort. DAFL_E_CELL_SPLIT or DAFL_E_COHORT. */
dafl_fault dafl_rule_cast(const dafl_slot_view *v, const dafl_members *a);

/* SURV: A is the one of CAST; U3 within A, of whole cells, at least m; for an
 * increment all of A. The party `self` is in U3 only with the digest of its own
 * upload (NULL: it has not uploaded), and everyone in U3 with one that it has
 * signed for the party's own ctx2: DAFL_E_FORGED. A party that is no client
 * passes self = DAFL_CLIENTS_MAX. */
dafl_fault dafl_rule_surv(const dafl_slot_view *v, const dafl_surv *surv,
                          const dafl_members *cast, const dafl_digest *ctx2,
                          size_t self, const dafl_digest *own_digest);

/* CONF: every signature is that of its signer on `stmt`, the party's own
 * statement; signers are within U1; and every client in A or among the signers
 * has at least t signers other than itself. DAFL_E_QUORUM. */
dafl_fault dafl_rule_conf(const dafl_slot_view *v, const dafl_conf *conf,
                          const dafl_members *a, const dafl_digest *stmt);

/* Which of a dealer's two secrets a holder may give its share of: b of a
 * survivor, sk of one that was cast and is gone, nothing of anyone else. Never
 * both, because a dealer is in one set only. */
typedef enum {
    DAFL_SHARE_NOTHING = 0,
    DAFL_SHARE_B = DAFL_REVEAL_B,
    DAFL_SHARE_SK = DAFL_REVEAL_SK,
} dafl_share_kind;
dafl_share_kind dafl_rule_reveal(const dafl_members *a, const dafl_members *u3,
                                 size_t dealer);

#endif
