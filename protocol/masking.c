/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/masking.h"

#include "lib/secret.h"

/* Every key is derived before the first word is added: an unusable public key
 * leaves the vector as it was. */
typedef struct {
    dafl_mask *masks; /* in secret memory */
    size_t count;
} mask_list;

static dafl_err start(mask_list *l, size_t most)
{
    l->count = 0;
    l->masks = dafl_secret_alloc(most, sizeof *l->masks);
    return l->masks == NULL ? DAFL_ERR_NOMEM : DAFL_OK;
}

static dafl_key *next(mask_list *l, bool negate)
{
    l->masks[l->count].negate = negate;
    return &l->masks[l->count++].key;
}

dafl_err dafl_masking_own(uint64_t *acc, size_t n, const dafl_masking *m,
                          uint16_t u, const dafl_key *sk, const dafl_key *b,
                          dafl_pool *pool)
{
    mask_list l;
    dafl_err err = DAFL_OK;

    if (!dafl_members_has(m->a, u))
        return DAFL_ERR_ARG;
    DAFL_TRY(start(&l, dafl_members_count(m->a)));
    dafl_key_self(next(&l, false), b, m->ctx2, u);
    for (uint16_t v = 0; v < m->a->n && err == DAFL_OK; v++)
        if (v != u && dafl_members_has(m->a, v))
            err = dafl_key_pair(next(&l, u > v), sk, m->ctx2, u, &m->pk[u], v,
                                &m->pk[v]);
    if (err == DAFL_OK)
        dafl_mask_apply(acc, n, m->w, l.masks, l.count, pool);
    dafl_secret_free(l.masks);
    return err;
}

dafl_err dafl_masking_open(uint64_t *acc, size_t n, const dafl_masking *m,
                           const dafl_members *u3, const dafl_key *b,
                           const dafl_key *sk, dafl_pool *pool)
{
    dafl_members gone = dafl_members_minus(m->a, u3);
    mask_list l;
    dafl_err err = DAFL_OK;

    if (!dafl_members_within(u3, m->a))
        return DAFL_ERR_ARG;
    DAFL_TRY(
        start(&l, dafl_members_count(u3) * (1 + dafl_members_count(&gone))));
    for (uint16_t u = 0; u < m->a->n && err == DAFL_OK; u++) {
        if (!dafl_members_has(u3, u))
            continue;
        dafl_key_self(next(&l, true), &b[u], m->ctx2, u);
        for (uint16_t v = 0; v < m->a->n && err == DAFL_OK; v++)
            if (dafl_members_has(&gone, v))
                /* u added it when u < v, so it is taken off. */
                err = dafl_key_pair(next(&l, u < v), &sk[v], m->ctx2, v,
                                    &m->pk[v], u, &m->pk[u]);
    }
    if (err == DAFL_OK)
        dafl_mask_apply(acc, n, m->w, l.masks, l.count, pool);
    dafl_secret_free(l.masks);
    return err;
}
