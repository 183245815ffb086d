/* SPDX-License-Identifier: Apache-2.0 */
/* What a client and a key holder check of a setup before they take part in it.
 * Internal to protocol/. */
#ifndef DAFL_PROTOCOL_SETUP_H
#define DAFL_PROTOCOL_SETUP_H

#include "protocol/context.h"
#include "protocol/node.h"

/* INVITE: it is to the run that this party means; else n->says what differs. */
bool dafl_setup_invited(dafl_node *n, const dafl_invite *invite);

/* PEERS: every entry is signed by its client for this enrolment; the keys are
 * good; the cells are whole and enough. Gives U0, its entries ([client]) and
 * the threshold. */
dafl_fault dafl_setup_peers(const dafl_node *n, uint32_t enrolment,
                            const dafl_peers *list, dafl_members *u0,
                            dafl_peer *peers, size_t *t);

/* SETUP: U1 lies in U0, has whole cells, and is large enough. */
dafl_fault dafl_setup_members(const dafl_node *n, const dafl_setup *setup,
                              const dafl_members *u0, dafl_members *u1);

/* SETUP: every dealer signed what it dealt; every key list is the one that was
 * enrolled; no key is bad. Gives the digest of the setup. When
 * memory is short, *err is DAFL_ERR_NOMEM and there is no fault. */
dafl_fault dafl_setup_dealers(const dafl_node *n, uint32_t enrolment,
                              const dafl_setup *setup, const dafl_peer *peers,
                              size_t t, dafl_digest *h_setup, dafl_err *err);

#endif
