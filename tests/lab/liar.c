/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lab/liar.h"

#include <string.h>

#include "protocol/context.h"
#include "tests/lab/inside.h"

void liar_init(liar *a, lab *l)
{
    uint16_t k = lab_server_index(l);

    memset(a, 0, sizeof *a);
    a->lab = l;
    a->modeled = a->ready = a->ended = a->signers = a->a = a->u3 =
        a->colluders = dafl_members_none(k);
}

void liar_drop(liar *a)
{
    for (size_t u = 0; u < DAFL_CLIENTS_MAX; u++)
        dafl_writer_drop(&a->model[u]);
}

static void new_slot(liar *a, uint32_t slot)
{
    a->slot = slot;
    a->modeled = a->ready = a->ended = a->signers = a->a = a->u3 =
        dafl_members_none(a->modeled.n);
    a->cast = a->surveyed = false;
}

static void see_server(liar *a, const lab_letter *m)
{
    dafl_bytes body = m->envelope.body;
    dafl_surv surv;

    if (m->envelope.type == DAFL_MSG_MODEL) {
        if (m->envelope.slot > a->slot)
            new_slot(a, m->envelope.slot);
        dafl_writer_clear(&a->model[m->to]);
        dafl_put_fixed(&a->model[m->to], body.ptr, body.len);
        dafl_members_add(&a->modeled, m->to);
    }
    if (m->envelope.slot != a->slot)
        return;
    if (m->envelope.type == DAFL_MSG_CAST)
        a->cast = dafl_get_cast(&a->a, body) == DAFL_OK;
    if (m->envelope.type == DAFL_MSG_SURV &&
        dafl_get_surv(&surv, body) == DAFL_OK) {
        a->surveyed = true;
        a->u3 = surv.u3;
    }
}

static void see_client(liar *a, const lab_letter *m)
{
    dafl_bytes body = m->envelope.body;
    dafl_end_msg end;

    if (m->envelope.slot != a->slot)
        return;
    if (m->envelope.type == DAFL_MSG_READY &&
        dafl_get_ready(&a->ctx[m->from], body) == DAFL_OK)
        dafl_members_add(&a->ready, m->from);
    if (m->envelope.type == DAFL_MSG_END &&
        dafl_get_end_msg(&end, body) == DAFL_OK) {
        a->end[m->from] = end;
        dafl_members_add(&a->ended, m->from);
    }
    if (m->envelope.type == DAFL_MSG_SIGN &&
        dafl_get_sign(&a->sig[m->from], body) == DAFL_OK)
        dafl_members_add(&a->signers, m->from);
}

void liar_see(liar *a, const lab_letter *m)
{
    if (m->from == lab_server_index(a->lab))
        see_server(a, m);
    else
        see_client(a, m);
}

void liar_number(liar *a, lab_letter *m)
{
    uint64_t *last = m->from == lab_server_index(a->lab) ? &a->told[m->to]
                                                         : &a->said[m->from];

    if (m->envelope.seq <= *last) {
        m->envelope.seq = *last + 1;
        lab_letter_reseal(a->lab, m, m->envelope.body);
    }
    *last = m->envelope.seq;
}

void liar_say(liar *a, uint16_t client, dafl_msg_type type, uint32_t slot,
              dafl_bytes body, uint64_t after)
{
    dafl_writer w = {0};

    lab_seal(a->lab, &w, client, type, slot, ++a->said[client], body);
    lab_post(a->lab, client, lab_server_index(a->lab), dafl_writer_bytes(&w),
             after);
    dafl_writer_drop(&w);
}

void liar_tell(liar *a, const dafl_members *to, dafl_msg_type type,
               uint32_t slot, dafl_bytes body, uint64_t after)
{
    uint16_t server = lab_server_index(a->lab);
    dafl_writer w = {0};
    uint64_t seq = 0;

    /* One number for all: a signature is dear. */
    for (uint16_t u = 0; u < server; u++)
        if (dafl_members_has(to, u) && a->told[u] > seq)
            seq = a->told[u];
    lab_seal(a->lab, &w, server, type, slot, seq + 1, body);
    for (uint16_t u = 0; u < server; u++)
        if (dafl_members_has(to, u)) {
            a->told[u] = seq + 1;
            lab_post(a->lab, server, u, dafl_writer_bytes(&w), after);
        }
    dafl_writer_drop(&w);
}

void liar_cast(liar *a, const dafl_members *to, const dafl_members *cast,
               uint64_t after)
{
    dafl_writer w = {0};

    dafl_put_cast(&w, cast);
    liar_tell(a, to, DAFL_MSG_CAST, a->slot, dafl_writer_bytes(&w), after);
    dafl_writer_drop(&w);
}

/* The digests of U3 in order. */
static void put_digests(const liar *a, dafl_writer *w, const dafl_members *u3)
{
    static const dafl_digest none;

    for (size_t u = 0; u < u3->n; u++)
        if (dafl_members_has(u3, u))
            dafl_put_fixed(
                w, dafl_members_has(&a->ended, u) ? a->end[u].dig.b : none.b,
                sizeof none.b);
}

/* The signatures on them. Those who are told have one context, or the first
 * that has said READY is shown what it would like to see. */
static void put_ends(const liar *a, dafl_writer *w, const dafl_members *to,
                     const dafl_members *cast, const dafl_members *u3)
{
    dafl_members heard = dafl_members_both(to, &a->ready);
    dafl_digest ctx2;
    uint16_t like = 0;

    while (like < heard.n && !dafl_members_has(&heard, like))
        like++;
    if (like < heard.n)
        dafl_context_cast(&ctx2, &a->ctx[like], cast);
    for (uint16_t u = 0; u < u3->n; u++) {
        dafl_end_msg end = {.len = 0};
        if (!dafl_members_has(u3, u))
            continue;
        if (dafl_members_has(&a->ended, u))
            end = a->end[u];
        if (dafl_members_has(&a->colluders, u) && like < heard.n)
            lab_sign_end(a->lab, u, &ctx2, &end);
        dafl_put_fixed(w, end.sig.b, sizeof end.sig.b);
    }
}

void liar_put_surv(const liar *a, dafl_writer *w, const dafl_members *to,
                   const dafl_members *cast, const dafl_members *u3)
{
    dafl_writer digests = {0}, ends = {0};

    put_digests(a, &digests, u3);
    put_ends(a, &ends, to, cast, u3);
    dafl_put_surv(w, &(dafl_surv){*cast, *u3, dafl_writer_bytes(&digests),
                                  dafl_writer_bytes(&ends)});
    dafl_writer_drop(&digests);
    dafl_writer_drop(&ends);
}

void liar_surv(liar *a, const dafl_members *to, const dafl_members *cast,
               const dafl_members *u3, uint64_t after)
{
    dafl_writer w = {0};

    liar_put_surv(a, &w, to, cast, u3);
    liar_tell(a, to, DAFL_MSG_SURV, a->slot, dafl_writer_bytes(&w), after);
    dafl_writer_drop(&w);
}

void liar_conf(liar *a, const dafl_members *to, const dafl_members *signers,
               uint64_t after)
{
    dafl_conf conf = {.signers = dafl_members_both(signers, &a->signers)};
    dafl_writer signatures = {0}, w = {0};

    for (size_t u = 0; u < conf.signers.n; u++)
        if (dafl_members_has(&conf.signers, u))
            dafl_put_fixed(&signatures, a->sig[u].b, sizeof a->sig[u].b);
    conf.signatures = dafl_writer_bytes(&signatures);
    dafl_put_conf(&w, &conf);
    liar_tell(a, to, DAFL_MSG_CONF, a->slot, dafl_writer_bytes(&w), after);
    dafl_writer_drop(&signatures);
    dafl_writer_drop(&w);
}

void liar_sign_as(liar *a, uint16_t client, uint16_t like,
                  const dafl_members *cast, const dafl_members *u3)
{
    dafl_digest ctx2, stmt;
    dafl_writer digests = {0};

    put_digests(a, &digests, u3);
    dafl_context_cast(&ctx2, &a->ctx[like], cast);
    dafl_context_statement(&stmt, &ctx2, u3, dafl_writer_bytes(&digests));
    dafl_sign(&a->sig[client], &stmt, lab_identity(a->lab, client));
    dafl_members_add(&a->signers, client);
    dafl_writer_drop(&digests);
}
