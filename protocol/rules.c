/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/rules.h"

#include <string.h>

#include "protocol/context.h"
#include "protocol/weaken.h"

dafl_fault dafl_rule_cast(const dafl_slot_view *v, const dafl_members *a)
{
    dafl_fault fault = dafl_policy_cohort(v->policy, v->roster, v->u1, a);

    if (fault != DAFL_FAULT_NONE)
        return fault;
    if (v->increment_over != NULL &&
        !dafl_members_equal(a, v->increment_over) && !DAFL_WEAK(TIES))
        return DAFL_E_COHORT;
    return DAFL_FAULT_NONE;
}

/* Whether a SURV says of the party itself what it has done. */
static bool own_holds(const dafl_surv *surv, size_t self,
                      const dafl_digest *own_digest)
{
    if (!dafl_members_has(&surv->u3, self))
        return true;
    return own_digest != NULL &&
           sodium_memcmp(surv->digests.ptr +
                             dafl_members_rank(&surv->u3, self) *
                                 DAFL_HASH_BYTES,
                         own_digest->b, DAFL_HASH_BYTES) == 0;
}

/* Every survivor has uploaded, and was cast as this party was. */
static bool ends_hold(const dafl_slot_view *v, const dafl_surv *surv,
                      const dafl_digest *ctx2)
{
    const uint8_t *dig_at = surv->digests.ptr, *sig_at = surv->ends.ptr;
    dafl_digest dig, end;
    dafl_signature sig;

    for (uint16_t u = 0; u < surv->u3.n; u++) {
        if (!dafl_members_has(&surv->u3, u))
            continue;
        memcpy(dig.b, dig_at, sizeof dig.b);
        memcpy(sig.b, sig_at, sizeof sig.b);
        dig_at += sizeof dig.b;
        sig_at += sizeof sig.b;
        dafl_context_end(&end, ctx2, u, &dig);
        if (dafl_sign_check(&sig, &end, v->roster->parties[u].id.sign_pk) !=
            DAFL_OK)
            return false;
    }
    return true;
}

dafl_fault dafl_rule_surv(const dafl_slot_view *v, const dafl_surv *surv,
                          const dafl_members *cast, const dafl_digest *ctx2,
                          size_t self, const dafl_digest *own_digest)
{
    dafl_fault fault;

    if (!dafl_members_equal(&surv->a, cast))
        return DAFL_E_COHORT;
    fault = dafl_policy_cohort(v->policy, v->roster, &surv->a, &surv->u3);
    if (fault != DAFL_FAULT_NONE)
        return fault;
    if (v->increment_over != NULL &&
        !dafl_members_equal(&surv->u3, v->increment_over) && !DAFL_WEAK(TIES))
        return DAFL_E_COHORT;
    if ((!own_holds(surv, self, own_digest) || !ends_hold(v, surv, ctx2)) &&
        !DAFL_WEAK(FORGED))
        return DAFL_E_FORGED;
    return DAFL_FAULT_NONE;
}

/* Every signature, in the signers' order, on the same statement. */
static bool signatures_hold(const dafl_slot_view *v, const dafl_conf *conf,
                            const dafl_digest *stmt)
{
    const uint8_t *at = conf->signatures.ptr;
    dafl_signature sig;

    for (size_t i = 0; i < conf->signers.n; i++) {
        if (!dafl_members_has(&conf->signers, i))
            continue;
        memcpy(sig.b, at, sizeof sig.b);
        at += sizeof sig.b;
        if (dafl_sign_check(&sig, stmt, v->roster->parties[i].id.sign_pk) !=
            DAFL_OK)
            return false;
    }
    return true;
}

dafl_fault dafl_rule_conf(const dafl_slot_view *v, const dafl_conf *conf,
                          const dafl_members *a, const dafl_digest *stmt)
{
    /* With t + 1 signers each has t others, and who does not sign has more. */
    if (!dafl_members_within(&conf->signers, v->u1) ||
        !dafl_members_within(a, v->u1) ||
        dafl_members_count(&conf->signers) < v->t + 1 ||
        !signatures_hold(v, conf, stmt))
        return DAFL_E_QUORUM;
    return DAFL_FAULT_NONE;
}

dafl_share_kind dafl_rule_reveal(const dafl_members *a, const dafl_members *u3,
                                 size_t dealer)
{
    if (!dafl_members_has(a, dealer) && !DAFL_WEAK(OUTSIDE))
        return DAFL_SHARE_NOTHING;
    return dafl_members_has(u3, dealer) ? DAFL_SHARE_B : DAFL_SHARE_SK;
}
