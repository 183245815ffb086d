/* SPDX-License-Identifier: Apache-2.0 */
/* From revealed shares to the sum: rebuild one secret of every client that was
 * cast, check each against what was published at setup, take the masks off. */
#include <stdlib.h>
#include <string.h>

#include "lib/ring.h"
#include "lib/secret.h"
#include "protocol/masking.h"
#include "protocol/server_state.h"
#include "protocol/weaken.h"

/* Whether a rebuilt secret is the one that was enrolled. */
static bool is_right(const dafl_slot_keys *keys, const dafl_key *secret,
                     bool survived)
{
    if (DAFL_WEAK(COMMITMENT))
        return true;
    if (survived) {
        dafl_digest cb;
        dafl_key_commit(&cb, secret);
        return dafl_digest_equal(&cb, &keys->cb);
    } else {
        dafl_public pk;
        dafl_key_public(&pk, secret);
        return sodium_memcmp(pk.b, keys->pk.b, sizeof pk.b) == 0;
    }
}

/* What the holders of a dealer's shares revealed, those named as liars last. */
typedef struct {
    size_t n, trusted; /* all; how many are not of liars */
    uint16_t who[DAFL_CLIENTS_MAX];
    uint8_t places[DAFL_HOLDERS_MAX];
    dafl_share *shares; /* secret memory */
} hand;

static dafl_err gather(const dafl_server *s, uint16_t dealer, hand *h)
{
    const dafl_seat *seat = &s->seats[dealer];
    size_t own = dafl_members_rank(&s->u0, dealer);

    *h = (hand){.shares =
                    dafl_secret_alloc(DAFL_HOLDERS_MAX, sizeof *h->shares)};
    if (h->shares == NULL)
        return DAFL_ERR_NOMEM;
    for (int liars = 0; liars <= 1; liars++) {
        for (uint16_t v = 0; v < s->u0.n; v++)
            if (dafl_members_has(&seat->holders, v) &&
                dafl_members_has(&s->liars, v) == (liars == 1)) {
                h->who[h->n] = v;
                h->places[h->n] =
                    dafl_shamir_place(own, dafl_members_rank(&s->u0, v));
                h->shares[h->n++] = seat->shares_of[v];
            }
        if (liars == 0)
            h->trusted = h->n;
    }
    return DAFL_OK;
}

/* Who revealed a wrong share of this dealer; or whom the dealer gave one. */
static void name_liars(dafl_server *s, uint16_t dealer, const hand *h,
                       const bool *wrong)
{
    for (size_t i = 0; i < h->n; i++)
        if (wrong[i] && !dafl_members_has(&s->liars, h->who[i])) {
            dafl_members_add(&s->liars, h->who[i]);
            dafl_node_tell(&s->node,
                           &(dafl_event){.kind = DAFL_EVENT_ERROR,
                                         .slot = s->slot,
                                         .number = dealer,
                                         .peer = h->who[i],
                                         .fault = DAFL_E_FORGED},
                           NULL);
        }
}

/* One secret of a dealer from what its holders revealed; wrong shares are
 * corrected as far as possible and their senders named, also when t others are
 * right. Whoever lies about every dealer is found once. */
static bool rebuild(dafl_server *s, uint16_t dealer, dafl_key *out)
{
    const dafl_slot_keys *keys =
        &s->seats[dealer]
             .keys[s->slot - dafl_node_first_slot(&s->node, s->enrolment)];
    bool survived = dafl_members_has(&s->u3, dealer), right = false, agree;
    bool wrong[DAFL_HOLDERS_MAX] = {false};
    dafl_key corrected;
    hand h;

    s->err = gather(s, dealer, &h);
    if (s->err != DAFL_OK)
        return false;
    if (h.n >= s->t)
        right = dafl_shamir_join(out, h.shares, h.places, s->t) == DAFL_OK &&
                is_right(keys, out, survived);
    agree = h.trusted < s->t || DAFL_WEAK(AGREE) ||
            dafl_shamir_agree(h.shares, h.places, h.trusted, s->t);
    if (h.n >= s->t && !(right && agree) &&
        dafl_shamir_correct(&corrected, wrong, h.shares, h.places, h.n, s->t) ==
            DAFL_OK &&
        is_right(keys, &corrected, survived)) {
        *out = corrected;
        right = true;
        name_liars(s, dealer, &h, wrong);
    }
    dafl_key_wipe(&corrected);
    dafl_secret_free(h.shares);
    return right;
}

/* What is missing belongs to everybody when too few holders revealed at all,
 * else to this dealer: then its cell stays out from now on. */
static void unrecoverable(dafl_server *s, uint16_t dealer)
{
    size_t holders = dafl_members_count(&s->revealed) -
                     (dafl_members_has(&s->revealed, dealer) ? 1 : 0);

    dafl_node_error(&s->node, s->slot, dealer, DAFL_E_UNRECOVERABLE);
    if (holders >= s->t)
        dafl_server_bar(s, dealer);
    dafl_server_fail(s, DAFL_E_UNRECOVERABLE);
}

/* The masks that remain in the total. */
static dafl_err take_masks_off(dafl_server *s, const dafl_key *b,
                               const dafl_key *sk)
{
    size_t i = s->slot - dafl_node_first_slot(&s->node, s->enrolment);
    dafl_public pk[DAFL_CLIENTS_MAX];
    dafl_masking masking = {&s->ctx2, &s->a, pk, s->node.config->contract.w};

    if (s->node.config->mode == DAFL_MODE_NONE)
        return DAFL_OK;
    for (size_t u = 0; u < s->a.n; u++)
        if (dafl_members_has(&s->a, u))
            pk[u] = s->seats[u].keys[i].pk;
    return dafl_masking_open(s->total.words, (size_t)s->shape.len, &masking,
                             &s->u3, b, sk, s->pool);
}

/* Tell of the sum and journal it, in this order: it is known from now on, even
 * if a crash makes the server ask again. A restarted server gives what is
 * journaled to its method again. */
static void record_sum(dafl_server *s, dafl_digest *digest)
{
    unsigned w = s->node.config->contract.w;
    size_t len = (size_t)s->shape.len, bytes = len * (w / 8);
    uint8_t *words = dafl_bulk_alloc(len, w / 8);
    dafl_writer record = {0};

    if (words == NULL) {
        s->err = DAFL_ERR_NOMEM;
        return;
    }
    dafl_ring_pack(words, s->total.words, len, w);
    dafl_hash_one(digest, "deepafl/sum", (dafl_bytes){words, bytes});
    dafl_put_u8(&record, DAFL_RECORD_SUM);
    dafl_put_u32(&record, s->slot);
    dafl_put_u32(&record, s->question.number);
    dafl_put_u32(&record, s->question.rank);
    dafl_put_members(&record, &s->u3);
    dafl_put_members(&record, &s->signers);
    dafl_put_fixed(&record, words, bytes);
    dafl_bulk_free(words);
    dafl_node_tell(&s->node,
                   &(dafl_event){.kind = DAFL_EVENT_RESULT,
                                 .slot = s->slot,
                                 .number = s->question.number,
                                 .peer = DAFL_NOBODY,
                                 .set = s->u3,
                                 .digest = *digest},
                   NULL);
    dafl_node_append(&s->node, &record);
}

/* Hand the opened sum to the method. */
static void finish(dafl_server *s)
{
    size_t len = (size_t)s->shape.len;
    int64_t *sum = dafl_bulk_alloc(len, sizeof *sum);
    dafl_result result = {0};
    dafl_writer w = {0};
    dafl_why why = {{0}};
    dafl_fault fault;

    if (sum == NULL) {
        s->err = DAFL_ERR_NOMEM;
        return;
    }
    dafl_ring_to_int(sum, s->total.words, len, s->node.config->contract.w);
    fault =
        s->method->take(s->method_self, &s->question, sum, len, &s->u3, &why);
    dafl_bulk_free(sum);
    if (dafl_fault_falls(fault) == DAFL_FALLS_RUN)
        dafl_server_over(s, fault);
    else if (fault == DAFL_E_SUM_INVALID)
        dafl_server_doubt(s);
    else if (fault != DAFL_FAULT_NONE)
        dafl_server_fail(s, fault);
    if (fault != DAFL_FAULT_NONE)
        return;
    dafl_server_blame(s);
    record_sum(s, &result.sum);
    dafl_put_result(&w, &result);
    dafl_node_send(&s->node, DAFL_MSG_RESULT, s->slot, &s->online, &w);
    dafl_server_note_answer(s, s->slot, &s->question, &s->u3, &s->signers);
    dafl_server_ask(s);
}

void dafl_server_open(dafl_server *s)
{
    size_t k = s->node.roster->n_clients;
    dafl_key *secrets = dafl_secret_alloc(2 * k, sizeof *secrets);
    dafl_key *b = secrets, *sk = secrets + k;
    int missing = -1;

    if (secrets == NULL) {
        s->err = DAFL_ERR_NOMEM;
        return;
    }
    for (uint16_t u = 0; u < k && missing < 0 && s->err == DAFL_OK; u++) {
        bool survived = dafl_members_has(&s->u3, u);
        if (!dafl_members_has(&s->a, u))
            continue;
        s->stats.rebuilt += !survived;
        if (!rebuild(s, u, survived ? &b[u] : &sk[u]))
            missing = u;
    }
    if (missing < 0 && s->err == DAFL_OK)
        s->err = take_masks_off(s, b, sk);
    dafl_secret_free(secrets);
    if (s->err != DAFL_OK)
        return;
    if (missing >= 0)
        unrecoverable(s, (uint16_t)missing);
    else
        finish(s);
}
