/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lab/script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/ring.h"
#include "protocol/context.h"
#include "tests/lab/inside.h"

/* ---- the wire ---- */

/* When the same one is begun again, what was heard in it stays. */
static void begin_slot(script *s, uint32_t slot)
{
    if (slot != s->slot)
        memset(s->clients, 0, sizeof s->clients);
    s->slot = slot;
}

/* What the machine tells a client before the script takes over. */
static void overhear(script *s, const lab_letter *m)
{
    script_client *c = &s->clients[m->to];
    dafl_bytes body = m->envelope.body;
    dafl_surv surv;

    if (m->envelope.type == DAFL_MSG_MODEL) {
        begin_slot(s, m->envelope.slot);
        dafl_writer_clear(&s->model);
        dafl_put_fixed(&s->model, body.ptr, body.len);
    }
    if (m->envelope.type == DAFL_MSG_CAST && dafl_get_cast(&c->a, body) != 0)
        lab_die("script: a malformed CAST");
    if (m->envelope.type == DAFL_MSG_SURV) {
        if (dafl_get_surv(&surv, body) != DAFL_OK)
            lab_die("script: a malformed SURV");
        c->u3 = surv.u3;
    }
}

static void hear(script *s, const lab_letter *m)
{
    script_client *c = &s->clients[m->from];
    dafl_bytes body = m->envelope.body;
    dafl_end_msg end;

    if (m->envelope.slot != s->slot)
        return;
    switch (m->envelope.type) {
    case DAFL_MSG_READY:
        c->ready = dafl_get_ready(&c->ctx, body) == DAFL_OK &&
                   !sodium_is_zero(c->ctx.b, sizeof c->ctx.b);
        break;
    case DAFL_MSG_END:
        c->uploaded = dafl_get_end_msg(&end, body) == DAFL_OK;
        if (c->uploaded) {
            c->dig = end.dig;
            c->end_sig = end.sig;
        }
        break;
    case DAFL_MSG_SIGN:
        c->has_signed = dafl_get_sign(&c->sig, body) == DAFL_OK;
        break;
    case DAFL_MSG_REVEAL:
        c->revealed = true;
        break;
    default:
        break;
    }
}

static bool on_wire(lab *l, lab_letter *m, void *ctx)
{
    script *s = ctx;

    if (m->from != lab_server_index(l)) {
        hear(s, m);
        return !s->taken;
    }
    if (s->taken)
        return false;
    overhear(s, m);
    if (m->envelope.slot == s->from_slot &&
        m->envelope.type == (uint8_t)s->from_type) {
        s->taken = true;
        s->seq = m->envelope.seq; /* which has not arrived anywhere */
    }
    return !s->taken;
}

static void step(script *s)
{
    if (!lab_step(s->lab))
        lab_die("script: the run is over");
    leak_watch(s->leak);
}

script *script_new(const lab_scenario *scenario, const dafl_members *colluders,
                   uint32_t slot, dafl_msg_type type)
{
    script *s = lab_alloc(1, sizeof *s);
    lab_scenario mine = *scenario;

    mine.intercept = on_wire;
    mine.ctx = s;
    mine.steps_max = UINT64_MAX;
    s->from_slot = slot;
    s->from_type = type;
    s->colluders = *colluders;
    s->quorum = SIZE_MAX;
    s->lab = lab_new(&mine);
    s->leak = leak_new(s->lab, colluders, true);
    while (!s->taken)
        step(s);
    return s;
}

void script_free(script **script_)
{
    script *s = *script_;

    if (s == NULL)
        return;
    leak_free(&s->leak);
    lab_free(&s->lab);
    dafl_writer_drop(&s->model);
    free(s);
    *script_ = NULL;
}

/* ---- speaking ---- */

/* Takes the body over. */
static void send(script *s, uint16_t to, dafl_msg_type type, dafl_writer *body)
{
    uint16_t server = lab_server_index(s->lab);
    dafl_writer w = {0};

    if (s->change == NULL || s->change(s, to, type, body)) {
        lab_seal(s->lab, &w, server, type, s->slot, s->seq++,
                 dafl_writer_bytes(body));
        lab_post(s->lab, server, to, dafl_writer_bytes(&w), 1);
        dafl_writer_drop(&w);
    }
    dafl_writer_drop(body);
}

/* A message of the slot at hand, to one client. */
static void say(script *s, uint16_t to, dafl_msg_type type, dafl_bytes body)
{
    dafl_writer w = {0};

    dafl_put_fixed(&w, body.ptr, body.len);
    send(s, to, type, &w);
}

/* Let all that is under way arrive. Answers are heard when they are sent, so
 * nothing else is waited for. */
static void let_arrive(script *s)
{
    while (s->lab->flights.n > 0)
        step(s);
}

void script_await(script *s, uint16_t client)
{
    while (!lab_connected(s->lab, client))
        step(s);
}

void script_restart(script *s, uint16_t client)
{
    lab_crash(s->lab, client, 1);
    script_await(s, client);
}

void script_model(script *s, uint32_t slot)
{
    dafl_bytes body = dafl_writer_bytes(&s->model);
    dafl_model_msg model;

    if (dafl_get_model(&model, body) != DAFL_OK)
        lab_die("script: no MODEL to send");
    begin_slot(s, slot);
    lab_slot_opens(s->lab, slot, model.query);
    for (uint16_t u = 0; u < lab_server_index(s->lab); u++)
        say(s, u, DAFL_MSG_MODEL, body);
    let_arrive(s);
}

void script_ask_next(script *s)
{
    dafl_model_msg model;
    dafl_segment segment;
    dafl_writer w = {0};

    if (dafl_get_model(&model, dafl_writer_bytes(&s->model)) != DAFL_OK ||
        dafl_model_next(&model, &segment) != DAFL_OK)
        lab_die("script: no question to follow");
    segment.query++;
    segment.layer = (uint16_t)(segment.query / 2);
    segment.slot = s->slot;
    dafl_put_model(&w, &(dafl_model_msg){.query = segment.query, .n = 1},
                   &segment);
    dafl_writer_drop(&s->model);
    s->model = w;
}

void script_tell(script *s, const dafl_members *a, const dafl_members *u3)
{
    for (uint16_t u = 0; u < lab_server_index(s->lab); u++) {
        s->clients[u].a = *a;
        s->clients[u].u3 = *u3;
    }
}

void script_cast(script *s)
{
    for (uint16_t u = 0; u < lab_server_index(s->lab); u++) {
        dafl_writer w = {0};
        dafl_put_cast(&w, &s->clients[u].a);
        send(s, u, DAFL_MSG_CAST, &w);
    }
    let_arrive(s);
}

/* One that keeps its answer back does not say its context: it is that of the
 * others. */
static const dafl_digest *context_of(const script *s, uint16_t client)
{
    for (uint16_t u = 0; u < lab_server_index(s->lab); u++)
        if (!s->clients[client].ready && s->clients[u].ready)
            return &s->clients[u].ctx;
    return &s->clients[client].ctx;
}

/* What v said of its upload, to be shown to one whose context is this. */
static dafl_signature end_of(const script *s, uint16_t v,
                             const dafl_digest *ctx2)
{
    dafl_end_msg end = {.dig = s->clients[v].dig, .sig = s->clients[v].end_sig};

    if (dafl_members_has(&s->colluders, v))
        lab_sign_end(s->lab, v, ctx2, &end);
    return end.sig;
}

void script_survey(script *s)
{
    for (uint16_t u = 0; u < lab_server_index(s->lab); u++) {
        script_client *c = &s->clients[u];
        dafl_surv surv = {.a = c->a, .u3 = c->u3};
        dafl_writer digests = {0}, ends = {0}, w = {0};
        dafl_digest ctx2;
        dafl_context_cast(&ctx2, context_of(s, u), &c->a);
        for (uint16_t v = 0; v < lab_server_index(s->lab); v++)
            if (dafl_members_has(&c->u3, v)) {
                dafl_signature sig = end_of(s, v, &ctx2);
                dafl_put_fixed(&digests, s->clients[v].dig.b, DAFL_HASH_BYTES);
                dafl_put_fixed(&ends, sig.b, sizeof sig.b);
            }
        surv.digests = dafl_writer_bytes(&digests);
        surv.ends = dafl_writer_bytes(&ends);
        dafl_context_statement(&c->stmt, &ctx2, &c->u3, surv.digests);
        c->has_signed = false;
        dafl_put_surv(&w, &surv);
        dafl_writer_drop(&digests);
        dafl_writer_drop(&ends);
        send(s, u, DAFL_MSG_SURV, &w);
    }
    let_arrive(s);
}

/* The signature of u on what `to` was told, if it is to be had. */
static bool signature_of(const script *s, uint16_t u, uint16_t to,
                         dafl_signature *out)
{
    const script_client *c = &s->clients[u];
    const dafl_digest *stmt = &s->clients[to].stmt;

    if (dafl_members_has(&s->colluders, u)) {
        dafl_sign(out, stmt, lab_identity(s->lab, u));
        return true;
    }
    *out = c->sig;
    return c->has_signed && dafl_digest_equal(&c->stmt, stmt);
}

void script_confirm(script *s)
{
    for (uint16_t to = 0; to < lab_server_index(s->lab); to++) {
        dafl_conf conf = {.signers = lab_members(s->lab, 0)};
        dafl_writer signatures = {0}, w = {0};
        dafl_signature sig;
        for (uint16_t u = 0; u < lab_server_index(s->lab); u++)
            if (dafl_members_count(&conf.signers) < s->quorum &&
                signature_of(s, u, to, &sig)) {
                dafl_members_add(&conf.signers, u);
                dafl_put_fixed(&signatures, sig.b, sizeof sig.b);
            }
        conf.signatures = dafl_writer_bytes(&signatures);
        dafl_put_conf(&w, &conf);
        dafl_writer_drop(&signatures);
        send(s, to, DAFL_MSG_CONF, &w);
    }
    let_arrive(s);
}

void script_play(script *s, uint32_t slot, const dafl_members *a,
                 const dafl_members *u3)
{
    script_model(s, slot);
    script_tell(s, a, u3);
    script_cast(s);
    script_survey(s);
    script_confirm(s);
}

/* ---- what came of it ---- */

dafl_members script_honest(const script *s)
{
    dafl_members all = lab_everybody(s->lab);

    return dafl_members_minus(&all, &s->colluders);
}

size_t script_honest_n(const script *s)
{
    dafl_members honest = script_honest(s);

    return dafl_members_count(&honest);
}

uint16_t script_any_honest(script *s)
{
    dafl_members honest = script_honest(s);
    uint16_t u;

    do
        u = (uint16_t)lab_random(s->lab, honest.n);
    while (!dafl_members_has(&honest, u));
    return u;
}

dafl_members script_others(const script *s, uint16_t client)
{
    dafl_members all = lab_everybody(s->lab);

    dafl_members_remove(&all, client);
    return all;
}

size_t script_refusals(const script *s, dafl_fault fault)
{
    dafl_members named = lab_members(s->lab, 0), honest = script_honest(s);
    const lab_event *e;
    size_t n = lab_events(s->lab, &e);

    for (size_t i = 0; i < n; i++)
        if (e[i].event.kind == DAFL_EVENT_ERROR && e[i].event.fault == fault &&
            e[i].event.slot == s->slot && dafl_members_has(&honest, e[i].party))
            dafl_members_add(&named, e[i].party);
    return dafl_members_count(&named);
}

size_t script_signatures(const script *s)
{
    dafl_members honest = script_honest(s);
    size_t n = 0;

    for (uint16_t u = 0; u < honest.n; u++)
        n += dafl_members_has(&honest, u) && s->clients[u].has_signed;
    return n;
}

size_t script_reveals(const script *s)
{
    dafl_members honest = script_honest(s);
    size_t n = 0;

    for (uint16_t u = 0; u < honest.n; u++)
        n += dafl_members_has(&honest, u) && s->clients[u].revealed;
    return n;
}

bool script_opens(script *s, uint32_t slot, const dafl_members *u3)
{
    return leak_is_sum(s->leak, slot, u3) && leak_is_real(s->leak, slot);
}

bool script_reads(script *s, uint16_t client, uint32_t slot)
{
    const leak_upload *upload = leak_upload_of(s->leak, client, slot);
    unsigned w = lab_config(s->lab)->contract.w;
    size_t n = upload == NULL ? 0 : lab_answer_len(s->lab, upload->question);
    int64_t *x = lab_alloc(n, sizeof *x), *found = lab_alloc(n, sizeof *found);
    uint64_t *words = lab_alloc(n, sizeof *words);
    bool open = upload != NULL && leak_strip(s->leak, upload, words, n) == 0;

    if (upload != NULL) {
        dafl_ring_to_int(found, words, n, w);
        lab_answer(s->lab, client, upload->question, x);
        assert_int_equal(memcmp(x, found, n * sizeof *x) == 0, open);
    }
    free(x);
    free(found);
    free(words);
    return open;
}

void script_goes_on(script *s)
{
    dafl_members all = lab_everybody(s->lab);

    script_play(s, s->slot + 1, &all, &all);
    if (!script_opens(s, s->slot, &all)) {
        lab_dump(s->lab);
        fail_msg("seed %llu: the clients do not go on in slot %u",
                 (unsigned long long)lab_scenario_of(s->lab)->seed,
                 (unsigned)s->slot);
    }
    lab_check_invariants(s->lab);
}
