/* SPDX-License-Identifier: Apache-2.0 */
/* A server that does as the test says: from a chosen message on its machine is
 * cut off, and the test speaks instead. And what such a server can compute of
 * what it has heard. */
#ifndef DAFL_TESTS_LAB_STAGE_H
#define DAFL_TESTS_LAB_STAGE_H

#include "tests/lab/lab.h"

/* ---- speaking ---- */

/* A lab whose server's messages get new numbers, so that there is room for
 * others in its name. */
lab *stage_new(lab_scenario *s);
/* The same, at the moment when a party sends such a message in slot 1: neither
 * that nor anything later arrives. */
lab *stage_taken(lab_scenario *s, dafl_msg_type type, uint16_t from);

void stage_say(lab *l, uint16_t to, dafl_msg_type type, uint32_t slot,
               dafl_bytes body);
void stage_say_all(lab *l, dafl_msg_type type, uint32_t slot, dafl_bytes body);
/* The first question, put in any slot. */
void stage_say_model(lab *l, uint16_t to, uint32_t slot);
/* Let what was said arrive and be answered. */
void stage_listen(lab *l);

/* ---- what is heard ---- */

/* What clients have sent between two places of the transcript. */
typedef struct {
    uint32_t slot;
    size_t from, to;
    dafl_members a, u3;
} stage_act;

size_t stage_now(const lab *l);
/* What the machines did in slot 1, up to now. */
stage_act stage_first(const lab *l);
/* The first that a client sent; NULL: nothing. */
const lab_seen *stage_sent(const lab *l, const stage_act *in, uint16_t client,
                           dafl_msg_type type);
size_t stage_n_senders(const lab *l, const stage_act *in, dafl_msg_type type);

/* SURV from the ENDs that were sent. */
void stage_put_surv(const lab *l, dafl_writer *w, const stage_act *uploads,
                    const dafl_members *a, const dafl_members *u3);
/* CONF, with the signatures of `most` clients at most. */
void stage_put_conf(const lab *l, dafl_writer *w, const stage_act *in,
                    size_t most);
/* A whole slot for the first question, as the test wants it; whoever does not
 * answer a step is passed over. `before` has the uploads of those who do not
 * send others. */
stage_act stage_play(lab *l, uint32_t slot, const dafl_members *a,
                     const dafl_members *u3, const stage_act *before);

/* ---- what can be computed of it ---- */

/* A secret of a dealer, if t have revealed their shares of it. */
bool stage_rebuild(const lab *l, const stage_act *in, uint16_t dealer,
                   dafl_reveal_kind kind, dafl_key *out);
/* The sum over in->u3, to be freed; NULL when a secret is missing. */
int64_t *stage_sum(const lab *l, const stage_act *in);
/* One client's upload without the masks that these secrets make, to be freed.
 */
int64_t *stage_unmask(const lab *l, const stage_act *in, uint16_t client,
                      const dafl_key *sk, const dafl_key *b);
/* Whether these are the numbers of one client, or of some together. */
bool stage_is_answer(const lab *l, const int64_t *x, uint16_t client);
bool stage_are_answers(const lab *l, const int64_t *x,
                       const dafl_members *clients);

#endif
