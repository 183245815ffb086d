/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lab/stage.h"

#include "tests/check.h"

#include "lib/ring.h"
#include "protocol/context.h"
#include "protocol/masking.h"
#include "tests/lab/rogue.h"

static struct {
    bool taken;
    dafl_msg_type at; /* the first message that is held back, */
    uint32_t slot;    /* of this slot, */
    uint16_t from;    /* of this party */
    uint64_t seq;
} wire;

static bool take_wire(lab *l, lab_letter *m, void *ctx)
{
    (void)ctx;
    if (m->envelope.type == (uint8_t)wire.at && m->envelope.slot == wire.slot &&
        m->from == wire.from)
        wire.taken = true;
    if (wire.taken)
        return false;
    if (m->from == lab_server_index(l)) {
        m->envelope.seq = ++wire.seq;
        lab_letter_reseal(l, m, m->envelope.body);
    }
    return true;
}

lab *stage_new(lab_scenario *s)
{
    memset(&wire, 0, sizeof wire);
    wire.seq = (uint64_t)1 << 32;
    s->intercept = take_wire;
    return lab_new(s);
}

lab *stage_taken(lab_scenario *s, dafl_msg_type type, uint16_t from)
{
    lab *l = stage_new(s);

    wire.at = type;
    wire.slot = 1;
    wire.from = from;
    while (!wire.taken && lab_step(l))
        ;
    assert_true(wire.taken);
    return l;
}

void stage_say(lab *l, uint16_t to, dafl_msg_type type, uint32_t slot,
               dafl_bytes body)
{
    dafl_writer w = {0};

    lab_seal(l, &w, lab_server_index(l), type, slot, ++wire.seq, body);
    lab_post(l, lab_server_index(l), to, dafl_writer_bytes(&w), 1);
    dafl_writer_drop(&w);
}

void stage_say_all(lab *l, dafl_msg_type type, uint32_t slot, dafl_bytes body)
{
    for (uint16_t u = 0; u < lab_scenario_of(l)->k; u++)
        stage_say(l, u, type, slot, body);
}

void stage_listen(lab *l)
{
    uint64_t until = lab_now(l) + 100;

    while (lab_now(l) < until && lab_step(l))
        ;
}

size_t stage_now(const lab *l)
{
    const lab_seen *seen;

    return lab_transcript(l, &seen);
}

const lab_seen *stage_sent(const lab *l, const stage_act *in, uint16_t client,
                           dafl_msg_type type)
{
    size_t at_entry = in->from;
    const lab_seen *m = lab_find(l, &at_entry, LAB_SENT, client,
                                 lab_server_index(l), type, in->slot);

    return m == NULL || at_entry > in->to ? NULL : m;
}

static dafl_members senders(const lab *l, const stage_act *in,
                            dafl_msg_type type)
{
    dafl_members m = lab_members(l, 0);

    for (uint16_t u = 0; u < m.n; u++)
        if (stage_sent(l, in, u, type) != NULL)
            dafl_members_add(&m, u);
    return m;
}

size_t stage_n_senders(const lab *l, const stage_act *in, dafl_msg_type type)
{
    dafl_members m = senders(l, in, type);

    return dafl_members_count(&m);
}

stage_act stage_first(const lab *l)
{
    return (stage_act){.slot = 1,
                       .to = stage_now(l),
                       .a = lab_everybody(l),
                       .u3 = lab_everybody(l)};
}

void stage_say_model(lab *l, uint16_t to, uint32_t slot)
{
    size_t at_entry = 0;
    const lab_seen *m = lab_find(l, &at_entry, LAB_SENT, lab_server_index(l),
                                 LAB_ANYBODY, DAFL_MSG_MODEL, 1);

    assert_non_null(m);
    stage_say(l, to, DAFL_MSG_MODEL, slot, m->envelope.body);
}

void stage_put_surv(const lab *l, dafl_writer *w, const stage_act *uploads,
                    const dafl_members *a, const dafl_members *u3)
{
    dafl_surv surv = {.a = *a, .u3 = *u3};
    dafl_writer digests = {0}, ends = {0};

    for (uint16_t u = 0; u < u3->n; u++) {
        const lab_seen *m;
        dafl_end_msg end;
        if (!dafl_members_has(u3, u))
            continue;
        m = stage_sent(l, uploads, u, DAFL_MSG_END);
        assert_non_null(m);
        assert_ok(dafl_get_end_msg(&end, m->envelope.body));
        dafl_put_fixed(&digests, end.dig.b, sizeof end.dig.b);
        dafl_put_fixed(&ends, end.sig.b, sizeof end.sig.b);
    }
    surv.digests = dafl_writer_bytes(&digests);
    surv.ends = dafl_writer_bytes(&ends);
    dafl_put_surv(w, &surv);
    dafl_writer_drop(&digests);
    dafl_writer_drop(&ends);
}

void stage_put_conf(const lab *l, dafl_writer *w, const stage_act *in,
                    size_t most)
{
    dafl_conf conf = {.signers = lab_members(l, 0)};
    dafl_writer signatures = {0};

    for (uint16_t u = 0; u < conf.signers.n; u++) {
        const lab_seen *m = stage_sent(l, in, u, DAFL_MSG_SIGN);
        if (m == NULL || dafl_members_count(&conf.signers) >= most)
            continue;
        dafl_members_add(&conf.signers, u);
        dafl_put_fixed(&signatures, m->envelope.body.ptr, DAFL_SIGNATURE_BYTES);
    }
    conf.signatures = dafl_writer_bytes(&signatures);
    dafl_put_conf(w, &conf);
    dafl_writer_drop(&signatures);
}

stage_act stage_play(lab *l, uint32_t slot, const dafl_members *a,
                     const dafl_members *u3, const stage_act *before)
{
    stage_act now = {.slot = slot, .from = stage_now(l), .a = *a, .u3 = *u3};
    dafl_writer w = {0};
    bool uploads;

    for (uint16_t u = 0; u < a->n; u++)
        stage_say_model(l, u, slot);
    stage_listen(l);
    dafl_put_cast(&w, a);
    stage_say_all(l, DAFL_MSG_CAST, slot, dafl_writer_bytes(&w));
    stage_listen(l);
    now.to = stage_now(l);
    uploads = stage_n_senders(l, &now, DAFL_MSG_END) == dafl_members_count(a);
    dafl_writer_clear(&w);
    stage_put_surv(l, &w, uploads ? &now : before, a, u3);
    stage_say_all(l, DAFL_MSG_SURV, slot, dafl_writer_bytes(&w));
    stage_listen(l);
    now.to = stage_now(l);
    dafl_writer_clear(&w);
    stage_put_conf(l, &w, &now, SIZE_MAX);
    stage_say_all(l, DAFL_MSG_CONF, slot, dafl_writer_bytes(&w));
    stage_listen(l);
    dafl_writer_drop(&w);
    now.to = stage_now(l);
    return now;
}

/* ---- what such a server can compute ---- */

static dafl_digest ctx2_of(const lab *l, const stage_act *in)
{
    dafl_digest ctx, ctx2;

    for (uint16_t u = 0;; u++) {
        const lab_seen *m = stage_sent(l, in, u, DAFL_MSG_READY);
        if (m == NULL)
            continue;
        assert_ok(dafl_get_ready(&ctx, m->envelope.body));
        dafl_context_cast(&ctx2, &ctx, &in->a);
        return ctx2;
    }
}

/* Everybody's public keys of a slot, as they were enrolled. */
static void public_keys(const lab *l, dafl_public *pk, uint32_t slot)
{
    for (uint16_t u = 0; u < lab_scenario_of(l)->k; u++)
        pk[u] = rogue_enrolled(l, u, slot);
}

bool stage_rebuild(const lab *l, const stage_act *in, uint16_t dealer,
                   dafl_reveal_kind kind, dafl_key *out)
{
    size_t t = rogue_threshold(l), n = 0;
    dafl_share shares[DAFL_CLIENTS_MAX];
    uint8_t places[DAFL_CLIENTS_MAX];

    for (uint16_t h = 0; h < lab_scenario_of(l)->k && n < t; h++) {
        const lab_seen *m = stage_sent(l, in, h, DAFL_MSG_REVEAL);
        dafl_reveal reveal;
        if (m == NULL)
            continue;
        assert_ok(dafl_get_reveal(&reveal, m->envelope.body));
        for (size_t i = 0; i < reveal.n; i++) {
            dafl_revealed r = dafl_reveal_at(&reveal, i);
            if (r.dealer != dealer || r.kind != kind)
                continue;
            places[n] = dafl_shamir_place(dealer, h);
            shares[n++] = r.share;
        }
    }
    return n == t && dafl_shamir_join(out, shares, places, t) == DAFL_OK;
}

/* Add what a client uploaded to acc. */
static void add_upload(const lab *l, const stage_act *in, uint16_t client,
                       uint64_t *acc, size_t len)
{
    unsigned w = lab_config(l)->contract.w;
    size_t at_entry = in->from;
    dafl_writer y = {0};

    while (y.len < len * (w / 8)) {
        const lab_seen *m =
            lab_find(l, &at_entry, LAB_SENT, client, lab_server_index(l),
                     DAFL_MSG_UPLOAD, in->slot);
        dafl_upload chunk;
        assert_non_null(m);
        assert_ok(dafl_get_upload(&chunk, m->envelope.body));
        assert_int_equal(chunk.offset, y.len);
        dafl_put_fixed(&y, chunk.chunk.ptr, chunk.chunk.len);
    }
    dafl_ring_add_words(acc, y.ptr, len, w, false);
    dafl_writer_drop(&y);
}

static uint64_t *ring(size_t len)
{
    uint64_t *acc = calloc(len, sizeof *acc);

    assert_non_null(acc);
    return acc;
}

int64_t *stage_sum(const lab *l, const stage_act *in)
{
    size_t len = lab_answer_len(l, 0);
    uint16_t k = lab_scenario_of(l)->k;
    unsigned w = lab_config(l)->contract.w;
    dafl_public pk[DAFL_CLIENTS_MAX];
    dafl_key b[DAFL_CLIENTS_MAX], sk[DAFL_CLIENTS_MAX];
    dafl_digest ctx2 = ctx2_of(l, in);
    dafl_masking masking = {&ctx2, &in->a, pk, w};
    uint64_t *acc = ring(len);

    public_keys(l, pk, in->slot);
    for (uint16_t u = 0; u < k; u++) {
        bool survived = dafl_members_has(&in->u3, u);
        if (!dafl_members_has(&in->a, u))
            continue;
        if (!stage_rebuild(l, in, u, survived ? DAFL_REVEAL_B : DAFL_REVEAL_SK,
                           survived ? &b[u] : &sk[u])) {
            free(acc);
            return NULL;
        }
        if (survived)
            add_upload(l, in, u, acc, len);
    }
    assert_ok(dafl_masking_open(acc, len, &masking, &in->u3, b, sk, NULL));
    dafl_ring_to_int((int64_t *)acc, acc, len, w);
    return (int64_t *)acc;
}

int64_t *stage_unmask(const lab *l, const stage_act *in, uint16_t client,
                      const dafl_key *sk, const dafl_key *b)
{
    size_t len = lab_answer_len(l, 0);
    unsigned w = lab_config(l)->contract.w;
    dafl_public pk[DAFL_CLIENTS_MAX];
    dafl_digest ctx2 = ctx2_of(l, in);
    dafl_masking masking = {&ctx2, &in->a, pk, w};
    uint64_t *acc = ring(len), *masks = ring(len);

    public_keys(l, pk, in->slot);
    add_upload(l, in, client, acc, len);
    assert_ok(dafl_masking_own(masks, len, &masking, client, sk, b, NULL));
    for (size_t i = 0; i < len; i++)
        acc[i] -= masks[i];
    free(masks);
    dafl_ring_to_int((int64_t *)acc, acc, len, w);
    return (int64_t *)acc;
}

bool stage_are_answers(const lab *l, const int64_t *x,
                       const dafl_members *clients)
{
    size_t len = lab_answer_len(l, 0);
    int64_t *sum = (int64_t *)ring(len), *one = (int64_t *)ring(len);
    bool equal;

    for (uint16_t u = 0; u < clients->n; u++) {
        if (!dafl_members_has(clients, u))
            continue;
        lab_answer(l, u, 0, one);
        for (size_t i = 0; i < len; i++)
            sum[i] += one[i];
    }
    equal = memcmp(sum, x, len * sizeof *sum) == 0;
    free(one);
    free(sum);
    return equal;
}

bool stage_is_answer(const lab *l, const int64_t *x, uint16_t client)
{
    dafl_members one = lab_members(l, 0);

    dafl_members_add(&one, client);
    return stage_are_answers(l, x, &one);
}
