/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/setup.h"

#include <stdlib.h>

#include "protocol/weaken.h"

bool dafl_setup_invited(dafl_node *n, const dafl_invite *invite)
{
    bool roster = dafl_digest_equal(&invite->roster, &n->roster_hash);
    bool config = dafl_digest_equal(&invite->config, &n->config_hash);

    if (!(roster && config))
        n->says = roster   ? "the server's config is another one; compare the "
                             "config numbers of all parties"
                  : config ? "the server's roster is another one; compare the "
                             "roster numbers of all parties"
                           : "the server has another run file; compare the "
                             "numbers of all parties";
    return roster && config;
}

dafl_fault dafl_setup_peers(const dafl_node *n, uint32_t enrolment,
                            const dafl_peers *list, dafl_members *u0,
                            dafl_peer *peers, size_t *t)
{
    const dafl_policy *policy = &n->config->policy;
    dafl_public eks[DAFL_CLIENTS_MAX];
    dafl_fault fault;

    *u0 = dafl_members_none(n->roster->n_clients);
    for (size_t i = 0; i < list->n; i++) {
        dafl_peer p = dafl_peers_at(list, i);
        dafl_digest signed_digest;
        if (p.client >= n->roster->n_clients)
            return DAFL_E_FORMAT;
        dafl_context_enroll(&signed_digest, &n->run, enrolment, p.client, &p.ek,
                            &p.hk);
        if (dafl_sign_check(&p.sig, &signed_digest,
                            n->roster->parties[p.client].id.sign_pk) !=
                DAFL_OK &&
            !DAFL_WEAK(PEERS))
            return DAFL_E_AUTH;
        dafl_members_add(u0, p.client);
        peers[p.client] = p;
        eks[i] = p.ek;
    }
    if (list->n < policy->n_min ||
        dafl_threshold(t, list->n, policy->c, policy->a) != DAFL_FAULT_NONE)
        return DAFL_E_PARAMS;
    fault = dafl_node_check_keys(eks, list->n);
    if (fault == DAFL_FAULT_NONE && policy->g != 1 &&
        !dafl_roster_whole_cells(n->roster, u0))
        fault = DAFL_E_CELL_SPLIT;
    return fault;
}

dafl_fault dafl_setup_members(const dafl_node *n, const dafl_setup *setup,
                              const dafl_members *u0, dafl_members *u1)
{
    *u1 = dafl_members_none(n->roster->n_clients);
    for (size_t i = 0; i < setup->n; i++) {
        dafl_dealer d = dafl_setup_dealer(setup, i);
        if (!dafl_members_has(u0, d.client))
            return DAFL_E_FORMAT;
        dafl_members_add(u1, d.client);
    }
    if (n->config->policy.g != 1 && !dafl_roster_whole_cells(n->roster, u1))
        return DAFL_E_CELL_SPLIT;
    return setup->n < n->config->policy.n_min ? DAFL_E_PARAMS : DAFL_FAULT_NONE;
}

dafl_fault dafl_setup_dealers(const dafl_node *n, uint32_t enrolment,
                              const dafl_setup *setup, const dafl_peer *peers,
                              size_t t, dafl_digest *h_setup, dafl_err *err)
{
    size_t slots = n->config->slots;
    dafl_setup_member *members = calloc(setup->n, sizeof *members);
    dafl_public *pks = calloc(setup->n * slots, sizeof *pks);
    dafl_fault fault = DAFL_E_AUTH;

    if (members == NULL || pks == NULL) {
        *err = DAFL_ERR_NOMEM;
        fault = DAFL_FAULT_NONE;
        goto out;
    }
    for (size_t i = 0; i < setup->n; i++) {
        dafl_dealer d = dafl_setup_dealer(setup, i);
        dafl_bytes keys = dafl_setup_keys(setup, i);
        dafl_digest hk;
        members[i] = (dafl_setup_member){.client = d.client,
                                         .ek = peers[d.client].ek,
                                         .hk = peers[d.client].hk};
        dafl_context_dealt(&members[i].dealt, &n->run, enrolment, d.client,
                           &d.h_shares);
        dafl_context_keys(&hk, keys);
        if (dafl_sign_check(&d.sig, &members[i].dealt,
                            n->roster->parties[d.client].id.sign_pk) !=
                DAFL_OK ||
            (!dafl_digest_equal(&hk, &members[i].hk) && !DAFL_WEAK(KEYS)))
            goto out;
        for (size_t e = 0; e < slots; e++)
            pks[i * slots + e] = dafl_slot_keys_at(keys, e).pk;
    }
    fault = dafl_node_check_keys(pks, setup->n * slots);
    dafl_context_setup(h_setup, &n->run, &n->roster_hash, &n->config_hash,
                       (uint16_t)t, members, setup->n);
out:
    free(pks);
    free(members);
    return fault;
}
