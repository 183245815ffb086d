/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that go, come back or never come, and a server that makes the most of
 * it (D2 .. D6, D9, D10): a question is answered exactly, or asked again in a
 * slot of its own, or the run says why not.
 *
 * Built twice: the second program has machines whose checks can be left out one
 * at a time, and shows what the server would learn then. */
#include "tests/check.h"

#include "lib/ring.h"
#include "protocol/context.h"
#include "protocol/masking.h"
#include "protocol/weaken.h"
#include "tests/lab/lab.h"

/* ---- a server that does as the test says ---- */

/* Everything that the server's machine sends gets a new number, so that there
 * is room for other messages in its name. From a chosen message on the machine
 * is cut off, and the test speaks instead. */
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

/* A lab that stops when a party sends such a message in slot 1. */
static lab *taken_lab(lab_scenario *s, dafl_msg_type type, uint16_t from)
{
    lab *l;

    memset(&wire, 0, sizeof wire);
    wire.at = type;
    wire.slot = 1;
    wire.from = from;
    wire.seq = (uint64_t)1 << 32;
    s->intercept = take_wire;
    l = lab_new(s);
    while (!wire.taken && lab_step(l))
        ;
    assert_true(wire.taken);
    return l;
}

static void say(lab *l, uint16_t to, dafl_msg_type type, uint32_t slot,
                dafl_bytes body)
{
    dafl_writer w = {0};

    lab_seal(l, &w, lab_server_index(l), type, slot, ++wire.seq, body);
    lab_post(l, lab_server_index(l), to, dafl_writer_bytes(&w), 1);
    dafl_writer_drop(&w);
}

static void say_all(lab *l, dafl_msg_type type, uint32_t slot, dafl_bytes body)
{
    for (uint16_t u = 0; u < lab_scenario_of(l)->k; u++)
        say(l, u, type, slot, body);
}

/* Let what was said arrive and be answered. */
static void listen(lab *l)
{
    uint64_t until = lab_now(l) + 100;

    while (lab_now(l) < until && lab_step(l))
        ;
}

/* What clients have sent between two places of the transcript. */
typedef struct {
    uint32_t slot;
    size_t from, to;
    dafl_members a, u3;
} act;

static size_t now_at(const lab *l)
{
    const lab_seen *seen;

    return lab_transcript(l, &seen);
}

/* The first that a client sent; NULL: nothing. */
static const lab_seen *sent(const lab *l, const act *in, uint16_t client,
                            dafl_msg_type type)
{
    size_t at_entry = in->from;
    const lab_seen *m = lab_find(l, &at_entry, LAB_SENT, client,
                                 lab_server_index(l), type, in->slot);

    return m == NULL || at_entry > in->to ? NULL : m;
}

static dafl_members senders(const lab *l, const act *in, dafl_msg_type type)
{
    dafl_members m = lab_members(l, 0);

    for (uint16_t u = 0; u < m.n; u++)
        if (sent(l, in, u, type) != NULL)
            dafl_members_add(&m, u);
    return m;
}

static size_t n_senders(const lab *l, const act *in, dafl_msg_type type)
{
    dafl_members m = senders(l, in, type);

    return dafl_members_count(&m);
}

/* What the machines did in slot 1, up to now. */
static act first_act(const lab *l)
{
    return (act){.slot = 1,
                 .to = now_at(l),
                 .a = lab_everybody(l),
                 .u3 = lab_everybody(l)};
}

/* The first question, put in any slot. */
static void say_model(lab *l, uint16_t to, uint32_t slot)
{
    size_t at_entry = 0;
    const lab_seen *m = lab_find(l, &at_entry, LAB_SENT, lab_server_index(l),
                                 LAB_ANYBODY, DAFL_MSG_MODEL, 1);

    assert_non_null(m);
    say(l, to, DAFL_MSG_MODEL, slot, m->envelope.body);
}

static void put_surv_of(const lab *l, dafl_writer *w, const act *uploads,
                        const dafl_members *a, const dafl_members *u3)
{
    dafl_surv surv = {.a = *a, .u3 = *u3};
    dafl_writer digests = {0}, ends = {0};

    for (uint16_t u = 0; u < u3->n; u++) {
        const lab_seen *m;
        dafl_end_msg end;
        if (!dafl_members_has(u3, u))
            continue;
        m = sent(l, uploads, u, DAFL_MSG_END);
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

/* With the signatures of `most` clients at most. */
static void put_conf_of(const lab *l, dafl_writer *w, const act *in,
                        size_t most)
{
    dafl_conf conf = {.signers = lab_members(l, 0)};
    dafl_writer signatures = {0};

    for (uint16_t u = 0; u < conf.signers.n; u++) {
        const lab_seen *m = sent(l, in, u, DAFL_MSG_SIGN);
        if (m == NULL || dafl_members_count(&conf.signers) >= most)
            continue;
        dafl_members_add(&conf.signers, u);
        dafl_put_fixed(&signatures, m->envelope.body.ptr, DAFL_SIGNATURE_BYTES);
    }
    conf.signatures = dafl_writer_bytes(&signatures);
    dafl_put_conf(w, &conf);
    dafl_writer_drop(&signatures);
}

/* A whole slot for the first question, as the test wants it; whoever does not
 * answer a step is passed over. `before` has the uploads of those who do not
 * send others. */
static act play(lab *l, uint32_t slot, const dafl_members *a,
                const dafl_members *u3, const act *before)
{
    act now = {.slot = slot, .from = now_at(l), .a = *a, .u3 = *u3};
    dafl_writer w = {0};
    bool uploads;

    for (uint16_t u = 0; u < a->n; u++)
        say_model(l, u, slot);
    listen(l);
    dafl_put_cast(&w, a);
    say_all(l, DAFL_MSG_CAST, slot, dafl_writer_bytes(&w));
    listen(l);
    now.to = now_at(l);
    uploads = n_senders(l, &now, DAFL_MSG_END) == dafl_members_count(a);
    dafl_writer_clear(&w);
    put_surv_of(l, &w, uploads ? &now : before, a, u3);
    say_all(l, DAFL_MSG_SURV, slot, dafl_writer_bytes(&w));
    listen(l);
    now.to = now_at(l);
    dafl_writer_clear(&w);
    put_conf_of(l, &w, &now, SIZE_MAX);
    say_all(l, DAFL_MSG_CONF, slot, dafl_writer_bytes(&w));
    listen(l);
    dafl_writer_drop(&w);
    now.to = now_at(l);
    return now;
}

/* ---- what such a server can compute ---- */

static size_t threshold_of(const lab *l)
{
    const dafl_policy *p = &lab_config(l)->policy;
    size_t t = 0;

    assert_int_equal(dafl_threshold(&t, lab_scenario_of(l)->k, p->c, p->a),
                     DAFL_FAULT_NONE);
    return t;
}

static dafl_digest ctx2_of(const lab *l, const act *in)
{
    dafl_digest ctx, ctx2;

    for (uint16_t u = 0;; u++) {
        const lab_seen *m = sent(l, in, u, DAFL_MSG_READY);
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
    for (uint16_t u = 0; u < lab_scenario_of(l)->k; u++) {
        act setup = {.to = now_at(l)};
        const lab_seen *m = sent(l, &setup, u, DAFL_MSG_ENROLL);
        dafl_enroll enroll;
        assert_non_null(m);
        assert_ok(dafl_get_enroll(&enroll, m->envelope.body));
        pk[u] = dafl_slot_keys_at(enroll.keys, slot - 1).pk;
    }
}

/* A secret of a dealer, if t have revealed their shares of it. */
static bool rebuild(const lab *l, const act *in, uint16_t dealer,
                    dafl_reveal_kind kind, dafl_key *out)
{
    size_t t = threshold_of(l), n = 0;
    dafl_share shares[DAFL_CLIENTS_MAX];
    uint8_t places[DAFL_CLIENTS_MAX];

    for (uint16_t h = 0; h < lab_scenario_of(l)->k && n < t; h++) {
        const lab_seen *m = sent(l, in, h, DAFL_MSG_REVEAL);
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
static void add_upload(const lab *l, const act *in, uint16_t client,
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

/* The sum over act->u3, to be freed; NULL when a secret is missing. */
static int64_t *open_sum(const lab *l, const act *in)
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
        if (!rebuild(l, in, u, survived ? DAFL_REVEAL_B : DAFL_REVEAL_SK,
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

/* One client's upload without the masks that these secrets make, to be freed.
 */
static int64_t *unmask(const lab *l, const act *in, uint16_t client,
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

/* Whether these are the numbers of one client, or of some together. */
static bool are_answers(const lab *l, const int64_t *x,
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

static bool is_answer(const lab *l, const int64_t *x, uint16_t client)
{
    dafl_members one = lab_members(l, 0);

    dafl_members_add(&one, client);
    return are_answers(l, x, &one);
}

/* Minuend, which is freed, less subtrahend, which is freed. */
static int64_t *difference(const lab *l, int64_t *a, int64_t *b)
{
    assert_non_null(a);
    assert_non_null(b);
    for (size_t i = 0; i < lab_answer_len(l, 0); i++)
        a[i] -= b[i];
    free(b);
    return a;
}

/* ---- helpers ---- */

static dafl_members cell_of(const lab *l, uint16_t client)
{
    return dafl_roster_cell(lab_roster(l), lab_roster(l)->parties[client].cell);
}

static size_t sent_in_slot(const lab *l, dafl_msg_type type, uint32_t slot)
{
    size_t at_entry = 0, n = 0;

    while (lab_find(l, &at_entry, LAB_SENT, LAB_ANYBODY, LAB_ANYBODY, type,
                    slot) != NULL)
        n++;
    return n;
}

/* How a slot ended, by the server's own account. */
static dafl_fault result_of(const lab *l, uint32_t slot)
{
    const lab_event *events;
    size_t n = lab_events(l, &events);

    for (size_t i = 0; i < n; i++)
        if (events[i].party == lab_server_index(l) &&
            events[i].event.kind == DAFL_EVENT_RESULT &&
            events[i].event.slot == slot)
            return events[i].event.fault;
    return DAFL_FAULT_COUNT;
}

/* Errors that the server has recorded because of a client. */
static size_t blamed(const lab *l, uint16_t client, dafl_fault fault)
{
    const lab_event *events;
    size_t n = lab_events(l, &events), found = 0;

    for (size_t i = 0; i < n; i++)
        found += events[i].party == lab_server_index(l) &&
                 events[i].event.kind == DAFL_EVENT_ERROR &&
                 events[i].event.peer == client &&
                 events[i].event.fault == fault;
    return found;
}

/* So many clients, at random. */
static dafl_members some(const lab *l, size_t n)
{
    dafl_members m = lab_members(l, 0);

    while (dafl_members_count(&m) < n)
        dafl_members_add(&m, random_size(0, m.n - 1u));
    return m;
}

static void leave_all(lab *l, const dafl_members *who, uint32_t question,
                      lab_phase phase, lab_back back)
{
    for (uint16_t u = 0; u < who->n; u++)
        if (dafl_members_has(who, u))
            lab_leave(l, u, question, phase, back);
}

static const struct {
    uint16_t k, cell_size; /* a = 1, 2, 3, 4 */
} sizes[] = {{5, 1}, {7, 1}, {9, 3}, {12, 3}};

/* ---- D2: one more than the threshold tolerates ---- */

/* D2. They are back for the next slot. */
static void
with_too_many_gone_the_slot_has_no_sum_and_no_share_leaves(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++)
        for (int p = 0; p <= LAB_AT_SURV; p++) {
            lab_scenario s =
                lab_scenario_for(sizes[i].k, sizes[i].cell_size, random_u64());
            dafl_members gone, all;
            dafl_fault fault;
            lab *l;
            if (p == LAB_MID_UPLOAD)
                lab_scenario_chunks(&s, 2);
            l = lab_new(&s);
            all = lab_everybody(l);
            gone = some(l, s.config.policy.a + 1u);
            leave_all(l, &gone, 0, (lab_phase)p, LAB_NEXT_SLOT);
            lab_check_done(l);
            fault = result_of(l, 1);
            assert_true(fault == DAFL_E_QUORUM || fault == DAFL_E_COHORT);
            assert_int_equal(sent_in_slot(l, DAFL_MSG_CONF, 1), 0);
            assert_int_equal(sent_in_slot(l, DAFL_MSG_REVEAL, 1), 0);
            assert_int_equal(dafl_server_stat(lab_server(l)).failed, 1);
            assert_int_equal(result_of(l, 2), DAFL_FAULT_NONE);
            lab_check_cohort(l, s.questions - 1, &all);
            lab_free(&l);
        }
}

/* D2. After CONF it is the shares that are too few. */
static void with_too_many_gone_after_signing_nothing_is_opened(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        lab_scenario s =
            lab_scenario_for(sizes[i].k, sizes[i].cell_size, random_u64());
        lab *l = lab_new(&s);
        dafl_members all = lab_everybody(l);
        dafl_members gone = some(l, s.config.policy.a + 1u);
        leave_all(l, &gone, 0, LAB_AFTER_SIGN, LAB_NEXT_SLOT);
        lab_check_done(l);
        assert_int_equal(result_of(l, 1), DAFL_E_UNRECOVERABLE);
        assert_int_equal(dafl_server_stat(lab_server(l)).failed, 1);
        /* Nobody's cell is to blame. */
        lab_check_cohort(l, s.questions - 1, &all);
        lab_free(&l);
    }
}

/* D2. */
static void with_too_many_gone_for_good_the_run_ends_with_a_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++)
        for (int p = 0; p <= LAB_AT_SURV; p++) {
            lab_scenario s =
                lab_scenario_for(sizes[i].k, sizes[i].cell_size, random_u64());
            const lab_sum *sums;
            dafl_members gone;
            lab *l;
            if (p == LAB_MID_UPLOAD)
                lab_scenario_chunks(&s, 2);
            s.config.retries = 2;
            l = lab_new(&s);
            gone = some(l, s.config.policy.a + 1u);
            leave_all(l, &gone, 0, (lab_phase)p, LAB_FOR_GOOD);
            assert_int_equal(lab_run(l), LAB_FAILED);
            lab_check_invariants(l);
            assert_int_equal(dafl_server_fault(lab_server(l)), DAFL_E_COHORT);
            assert_int_equal(lab_sums(l, &sums), 0);
            assert_int_equal(sent_in_slot(l, DAFL_MSG_REVEAL, UINT32_MAX), 0);
            lab_free(&l);
        }
}

/* CONF with so many signatures, of the 7 that there are. */
static act confirm_with(lab *l, size_t signatures)
{
    act signing = first_act(l), after = signing;
    dafl_writer w = {0};

    put_conf_of(l, &w, &signing, signatures);
    after.from = now_at(l);
    say_all(l, DAFL_MSG_CONF, 1, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    listen(l);
    after.to = now_at(l);
    return after;
}

/* D2. Whoever signs needs t others. */
static void a_confirmation_with_too_few_signatures_moves_nobody(void **state)
{
    (void)state;
    for (size_t n = 0; n <= 5; n++) {
        lab_scenario s = lab_scenario_for(7, 1, random_u64());
        lab *l = taken_lab(&s, DAFL_MSG_CONF, s.k);
        act after = confirm_with(l, n);
        assert_int_equal(threshold_of(l), 4);
        assert_int_equal(n_senders(l, &after, DAFL_MSG_REVEAL),
                         n == 5 ? s.k : 0);
        assert_int_equal(
            lab_count(l, LAB_ANYBODY, DAFL_EVENT_ERROR, DAFL_E_QUORUM),
            n == 5 ? 0 : s.k);
        lab_check_invariants(l);
        lab_free(&l);
    }
}

#ifdef DAFL_WEAKEN
/* D2 control. One signature opens everybody's secrets. */
static void without_the_quorum_one_signature_brings_the_shares_out(void **state)
{
    lab_scenario s = lab_scenario_for(7, 1, random_u64());
    lab *l = taken_lab(&s, DAFL_MSG_CONF, s.k);
    act before = first_act(l), after;
    int64_t *sum;

    (void)state;
    dafl_weakened = DAFL_WEAK_QUORUM;
    after = confirm_with(l, 1);
    assert_int_equal(n_senders(l, &after, DAFL_MSG_REVEAL), s.k);
    before.to = after.to;
    sum = open_sum(l, &before);
    assert_non_null(sum);
    assert_true(are_answers(l, sum, &before.u3));
    free(sum);
    lab_free(&l);
}
#endif

/* ---- D3: a cell with a gap ---- */

/* D3. Client 7 of the cell 6 7 8 is gone for the rest of the slot of question
 * 2, to which question 3 would be tied. (a_cell_with_a_gap_.. of
 * test_integrity.c is the same with a model.) */
static void a_cell_with_a_gap_is_out_and_stays_closed(void **state)
{
    (void)state;
    for (int p = LAB_AT_CAST; p < LAB_PHASES; p++) {
        lab_scenario s = lab_scenario_for(12, 3, random_u64());
        dafl_members left, cell;
        size_t at_entry = 0;
        const lab_seen *m;
        lab *l;
        lab_scenario_chunks(&s, 2);
        s.questions = 5;
        s.ties = true;
        l = lab_new(&s);
        left = lab_everybody(l);
        cell = cell_of(l, 7);
        if (p < LAB_AFTER_END)
            left = dafl_members_minus(&left, &cell);
        lab_leave(l, 7, 2, (lab_phase)p, LAB_NEXT_SLOT);
        lab_check_done(l);
        lab_check_cohort(l, 2, &left);
        assert_int_equal(dafl_server_stat(lab_server(l)).failed, 0);
        if (p < LAB_AFTER_END)
            assert_int_equal(lab_sum_of(l, 3)->rank, 0);
        /* b of a cell that is out, never; of one that is in, only that. */
        while ((m = lab_find(l, &at_entry, LAB_SENT, LAB_ANYBODY, LAB_ANYBODY,
                             DAFL_MSG_REVEAL, 3)) != NULL) {
            dafl_reveal reveal;
            assert_ok(dafl_get_reveal(&reveal, m->envelope.body));
            for (size_t i = 0; i < reveal.n; i++) {
                dafl_revealed r = dafl_reveal_at(&reveal, i);
                bool out =
                    p < LAB_AFTER_END && dafl_members_has(&cell, r.dealer);
                assert_int_equal(r.kind, out ? DAFL_REVEAL_SK : DAFL_REVEAL_B);
            }
        }
        lab_free(&l);
    }
}

/* ---- D4: the same question again ---- */

#define VICTIM 4

/* Nine clients in cells of three have answered question 0 in slot 1 and
 * revealed; the server says that it came to nothing. */
static lab *retried_lab(act *first)
{
    lab_scenario s = lab_scenario_for(9, 3, random_u64());
    lab *l = taken_lab(&s, DAFL_MSG_RESULT, s.k);
    dafl_writer w = {0};

    *first = first_act(l);
    dafl_put_result(&w, &(dafl_result){.fault = DAFL_E_UNRECOVERABLE});
    say_all(l, DAFL_MSG_RESULT, 1, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    listen(l);
    return l;
}

/* What an upload gives with a secret key from elsewhere. */
static bool opens(const lab *l, const act *upload, const act *b_from,
                  const act *sk_from)
{
    dafl_key b, sk;
    int64_t *x;
    bool right;

    if (!rebuild(l, b_from, VICTIM, DAFL_REVEAL_B, &b) ||
        !rebuild(l, sk_from, VICTIM, DAFL_REVEAL_SK, &sk))
        return false;
    x = unmask(l, upload, VICTIM, &sk, &b);
    right = is_answer(l, x, VICTIM);
    free(x);
    return right;
}

/* D4. */
static void a_spent_slot_is_not_played_again(void **state)
{
    act first, again;
    dafl_members all, left, cell;
    lab *l = retried_lab(&first);

    (void)state;
    all = lab_everybody(l);
    cell = cell_of(l, VICTIM);
    left = dafl_members_minus(&all, &cell);
    again = play(l, 1, &all, &left, &first);
    assert_int_equal(n_senders(l, &again, DAFL_MSG_READY), 0);
    assert_int_equal(n_senders(l, &again, DAFL_MSG_UPLOAD), 0);
    assert_int_equal(n_senders(l, &again, DAFL_MSG_SIGN), 0);
    assert_int_equal(n_senders(l, &again, DAFL_MSG_REVEAL), 0);
    assert_false(opens(l, &first, &first, &again));
    lab_check_invariants(l);
    lab_free(&l);
}

/* D4. In another slot the keys are others, and only whole cells may be missing:
 * what the server learns of the victim is the sum of its cell. */
static void a_question_asked_again_tells_of_no_single_client(void **state)
{
    act first, split, again;
    dafl_members all, left, cell;
    lab *l = retried_lab(&first);
    int64_t *more;

    (void)state;
    all = left = lab_everybody(l);
    dafl_members_remove(&left, VICTIM);
    split = play(l, 2, &all, &left, NULL);
    assert_int_equal(n_senders(l, &split, DAFL_MSG_END), all.n);
    assert_int_equal(n_senders(l, &split, DAFL_MSG_SIGN), 0);
    assert_int_equal(
        lab_count(l, LAB_ANYBODY, DAFL_EVENT_ERROR, DAFL_E_CELL_SPLIT), all.n);

    cell = cell_of(l, VICTIM);
    left = dafl_members_minus(&all, &cell);
    again = play(l, 3, &all, &left, NULL);
    assert_int_equal(n_senders(l, &again, DAFL_MSG_REVEAL), all.n);
    assert_false(opens(l, &first, &first, &again));
    assert_false(opens(l, &again, &first, &again));
    assert_false(opens(l, &split, &first, &again));
    more = difference(l, open_sum(l, &first), open_sum(l, &again));
    assert_true(are_answers(l, more, &cell));
    free(more);
    lab_check_invariants(l);
    lab_free(&l);
}

#ifdef DAFL_WEAKEN
/* D4 control "slot_reuse". Both secrets of one client in one slot: its upload
 * is open. */
static void in_a_slot_played_again_a_client_is_laid_open(void **state)
{
    act first, again;
    dafl_members all, left, cell;
    lab *l = retried_lab(&first);

    (void)state;
    dafl_weakened = DAFL_WEAK_SLOT;
    all = lab_everybody(l);
    cell = cell_of(l, VICTIM);
    left = dafl_members_minus(&all, &cell);
    again = play(l, 1, &all, &left, NULL);
    assert_int_equal(n_senders(l, &again, DAFL_MSG_REVEAL), all.n);
    assert_true(opens(l, &first, &first, &again));
    assert_non_null(lab_violation(l));
    lab_free(&l);
}
#endif

/* ---- D5: back after a while ---- */

/* Client 2 misses questions 1 .. n. `restart`: its machine is gone as well, and
 * it comes back with nothing but its disk. */
static void miss_questions(uint32_t n, lab_phase phase, bool restart)
{
    lab_scenario s = lab_scenario_for(5, 1, random_u64());
    size_t at_entry, ready, hello, old = 0;
    dafl_model_msg model;
    const lab_seen *m;
    dafl_members all;
    lab *l;

    memset(&wire, 0, sizeof wire);
    wire.seq = (uint64_t)1 << 32;
    s.intercept = take_wire;
    s.questions = 8;
    s.ties = n % 2 == 0;
    l = lab_new(&s);
    all = lab_everybody(l);
    (restart ? lab_leave_crashing : lab_leave)(l, 2, 1, phase, LAB_FOR_GOOD);
    assert_true(lab_run_to(l, DAFL_MSG_MODEL, n + 1));
    at_entry = now_at(l);
    if (restart)
        lab_restart(l, 2);
    else
        lab_reconnect(l, 2);
    /* It has everything anew that it missed, and is among the others. */
    assert_true(lab_run_to(l, DAFL_MSG_CAST, 7));
    m = lab_find(l, &at_entry, LAB_DELIVERED, LAB_ANYBODY, 2, DAFL_MSG_MODEL,
                 UINT32_MAX);
    assert_non_null(m);
    assert_ok(dafl_get_model(&model, m->envelope.body));
    assert_true(model.n >= (restart ? n + 1 : n));
    /* One message is enough: it does not ask for more. */
    ready = hello = at_entry;
    assert_non_null(
        lab_find(l, &ready, LAB_SENT, 2, LAB_ANYBODY, DAFL_MSG_READY, m->slot));
    assert_true(lab_find(l, &hello, LAB_SENT, 2, LAB_ANYBODY, DAFL_MSG_HELLO,
                         UINT32_MAX) == NULL ||
                hello > ready);
    assert_int_equal(dafl_client_where(lab_client(l, 2)), DAFL_CLIENT_READY);
    /* No slot from before is taken any more, missed or not. */
    for (uint32_t slot = 1; slot < dafl_server_slot(lab_server(l)); slot++) {
        at_entry = 0;
        m = lab_find(l, &at_entry, LAB_SENT, s.k, LAB_ANYBODY, DAFL_MSG_MODEL,
                     slot);
        assert_non_null(m);
        say(l, 2, DAFL_MSG_MODEL, slot, m->envelope.body);
        old++;
    }
    lab_check_done(l);
    assert_int_equal(lab_count(l, 2, DAFL_EVENT_ERROR, DAFL_E_SLOT_SPENT), old);
    for (uint32_t q = 1; q <= n; q++)
        assert_false(dafl_members_has(&lab_sum_of(l, q)->cohort, 2));
    lab_check_cohort(l, 7, &all);
    /* A question tied to the others alone is asked again when it is back. */
    assert_true(dafl_server_stat(lab_server(l)).failed <= s.ties);
    lab_free(&l);
}

/* D5. */
static void a_client_that_missed_questions_is_summed_again(void **state)
{
    static const lab_phase phases[] = {LAB_BEFORE_MODEL, LAB_AFTER_READY,
                                       LAB_AT_CAST};

    (void)state;
    for (uint32_t n = 1; n <= 5; n++)
        for (int restart = 0; restart <= 1; restart++)
            miss_questions(n, phases[random_size(0, COUNT(phases) - 1)],
                           restart == 1);
}

/* ---- D6: after a restart ---- */

#define CRASHED 1

/* Client CRASHED restarts from its disk and is asked question 0 in slot 1 once
 * more, up to CAST. */
static act ask_again(lab *l, const dafl_members *a)
{
    act again = {.slot = 1, .from = now_at(l), .a = *a};
    dafl_writer w = {0};

    lab_crash(l, CRASHED, 1);
    listen(l);
    assert_true(lab_connected(l, CRASHED));
    say_model(l, CRASHED, 1);
    listen(l);
    dafl_put_cast(&w, a);
    say(l, CRASHED, DAFL_MSG_CAST, 1, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    listen(l);
    again.to = now_at(l);
    assert_non_null(sent(l, &again, CRASHED, DAFL_MSG_READY));
    return again;
}

static bool same_body(const lab_seen *a, const lab_seen *b)
{
    assert_non_null(a);
    assert_non_null(b);
    return a->envelope.body.len == b->envelope.body.len &&
           memcmp(a->envelope.body.ptr, b->envelope.body.ptr,
                  a->envelope.body.len) == 0;
}

/* Everybody but client 6. */
static dafl_members other_cohort(const lab *l)
{
    dafl_members other = lab_everybody(l);

    dafl_members_remove(&other, 6);
    return other;
}

/* D6. (a_client_may_crash_after_any_effect of test_crash.c has the crashes.) */
static void a_client_that_restarts_uploads_the_same_or_nothing(void **state)
{
    (void)state;
    for (int other = 0; other <= 1; other++) {
        lab_scenario s = lab_scenario_for(7, 1, random_u64());
        lab *l = taken_lab(&s, DAFL_MSG_END, CRASHED);
        act first = first_act(l), again;
        dafl_members a = other == 1 ? other_cohort(l) : lab_everybody(l);
        again = ask_again(l, &a);
        if (other == 1) {
            assert_null(sent(l, &again, CRASHED, DAFL_MSG_UPLOAD));
            assert_null(sent(l, &again, CRASHED, DAFL_MSG_END));
        } else {
            assert_true(same_body(sent(l, &again, CRASHED, DAFL_MSG_UPLOAD),
                                  sent(l, &first, CRASHED, DAFL_MSG_UPLOAD)));
            assert_true(same_body(sent(l, &again, CRASHED, DAFL_MSG_END),
                                  sent(l, &first, CRASHED, DAFL_MSG_END)));
        }
        assert_int_equal(
            lab_count(l, CRASHED, DAFL_EVENT_ERROR, DAFL_E_SLOT_SPENT), other);
        lab_check_invariants(l);
        lab_free(&l);
    }
}

#ifdef DAFL_WEAKEN
/* D6 control. */
static void without_its_journal_a_client_uploads_twice(void **state)
{
    lab_scenario s = lab_scenario_for(7, 1, random_u64());
    lab *l = taken_lab(&s, DAFL_MSG_END, CRASHED);
    act first = first_act(l), again;
    dafl_members a = other_cohort(l);

    (void)state;
    dafl_weakened = DAFL_WEAK_RESEND;
    again = ask_again(l, &a);
    assert_false(same_body(sent(l, &again, CRASHED, DAFL_MSG_UPLOAD),
                           sent(l, &first, CRASHED, DAFL_MSG_UPLOAD)));
    assert_non_null(lab_violation(l));
    lab_free(&l);
}
#endif

/* Everybody has signed in slot 1; now client CRASHED, restarted or not, is
 * given another list of survivors. */
static act survey_again(lab *l, bool restart)
{
    act first = first_act(l), again = first;
    dafl_members all = lab_everybody(l), u3 = other_cohort(l);
    dafl_writer w = {0};

    if (restart)
        (void)ask_again(l, &all);
    again.from = now_at(l);
    put_surv_of(l, &w, &first, &all, &u3);
    say(l, CRASHED, DAFL_MSG_SURV, 1, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    listen(l);
    again.to = now_at(l);
    return again;
}

/* D6. */
static void a_client_signs_one_statement_also_after_a_restart(void **state)
{
    (void)state;
    for (int restart = 0; restart <= 1; restart++) {
        lab_scenario s = lab_scenario_for(7, 1, random_u64());
        lab *l = taken_lab(&s, DAFL_MSG_CONF, s.k);
        act again = survey_again(l, restart == 1);
        assert_null(sent(l, &again, CRASHED, DAFL_MSG_SIGN));
        assert_int_equal(
            lab_count(l, CRASHED, DAFL_EVENT_ERROR, DAFL_E_SECOND_STMT), 1);
        lab_check_invariants(l);
        lab_free(&l);
    }
}

#ifdef DAFL_WEAKEN
/* D6 control. */
static void without_the_rule_a_client_signs_two_statements(void **state)
{
    (void)state;
    dafl_weakened = DAFL_WEAK_STATEMENT;
    for (int restart = 0; restart <= 1; restart++) {
        lab_scenario s = lab_scenario_for(7, 1, random_u64());
        lab *l = taken_lab(&s, DAFL_MSG_CONF, s.k);
        act first = first_act(l), again = survey_again(l, restart == 1);
        assert_false(same_body(sent(l, &again, CRASHED, DAFL_MSG_SIGN),
                               sent(l, &first, CRASHED, DAFL_MSG_SIGN)));
        assert_non_null(lab_violation(l));
        lab_free(&l);
    }
}
#endif

/* ---- D9: holders that are never there ---- */

/* D9. Every secret is rebuilt from exactly t shares, all run long. */
static void with_as_few_holders_as_allowed_every_sum_is_exact(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        lab_scenario s =
            lab_scenario_for(sizes[i].k, sizes[i].cell_size, random_u64());
        dafl_members gone;
        lab *l;
        s.questions = 4;
        l = lab_new(&s);
        /* One cell of three, and the rest of another: cells stay. */
        gone = lab_members(l, ((uint64_t)1 << s.config.policy.a) - 1);
        assert_int_equal(s.k - 1 - s.config.policy.a, threshold_of(l));
        leave_all(l, &gone, 0, LAB_BEFORE_MODEL, LAB_FOR_GOOD);
        lab_check_done(l);
        assert_int_equal(dafl_server_stat(lab_server(l)).failed, 0);
        for (uint32_t q = 0; q < s.questions; q++) {
            dafl_members both =
                dafl_members_both(&lab_sum_of(l, q)->cohort, &gone);
            assert_int_equal(dafl_members_count(&both), 0);
        }
        lab_free(&l);
    }
}

/* D9. One more: it waits, and goes on when one is back. */
static void with_one_holder_less_it_waits_for_one_to_come_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        lab_scenario s =
            lab_scenario_for(sizes[i].k, sizes[i].cell_size, random_u64());
        const lab_sum *sums;
        dafl_members gone;
        dafl_fault fault;
        lab *l = lab_new(&s);
        gone = lab_members(l, ((uint64_t)2 << s.config.policy.a) - 1);
        leave_all(l, &gone, 0, LAB_BEFORE_MODEL, LAB_FOR_GOOD);
        while (lab_now(l) < 30000 && lab_step(l))
            ;
        fault = result_of(l, 1);
        assert_true(fault == DAFL_E_QUORUM || fault == DAFL_E_COHORT);
        assert_int_equal(dafl_server_where(lab_server(l)), DAFL_SERVER_PAUSED);
        assert_int_equal(lab_sums(l, &sums), 0);
        assert_int_equal(sent_in_slot(l, DAFL_MSG_REVEAL, UINT32_MAX), 0);
        lab_reconnect(l, 0);
        lab_check_done(l);
        lab_free(&l);
    }
}

/* What is done to the packets of one dealer at setup. */
static struct {
    uint16_t dealer;
    dafl_members dead; /* holders whose packets do not open, */
    bool dealt;        /* because the dealer made them so; else on their way */
} committee;

/* The dealer's SHARES with rubbish for the dead, signed as all it says. */
static void spoil_shares(lab *l, lab_letter *m)
{
    dafl_addressed packets[DAFL_CLIENTS_MAX];
    dafl_run_id run = lab_run_id(l);
    dafl_shares shares;
    dafl_signature sig;
    dafl_digest digest;
    dafl_writer w = {0};

    assert_ok(dafl_get_shares(&shares, m->envelope.body));
    for (size_t i = 0; i < shares.n; i++) {
        packets[i] = dafl_shares_at(&shares, i);
        /* A view of the letter's own bytes. */
        if (dafl_members_has(&committee.dead, packets[i].to))
            m->bytes[(size_t)(packets[i].packet.ptr - m->bytes) + 40] ^= 1;
    }
    dafl_put_shares(&w, packets, shares.n, shares.packet_len);
    dafl_context_shares(&digest, dafl_writer_bytes(&w));
    dafl_context_dealt(&digest, &run, 0, m->from, &digest);
    dafl_sign(&sig, &digest, lab_identity(l, m->from));
    dafl_put_shares_sig(&w, &sig);
    lab_letter_reseal(l, m, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
}

/* A bit of the dealer's packet in the SETUP for one of the dead. */
static void spoil_setup(lab *l, lab_letter *m)
{
    dafl_setup setup;
    size_t packet = 0;

    assert_ok(dafl_get_setup(&setup, m->envelope.body));
    for (size_t i = 0; i < setup.n; i++) {
        uint16_t from = dafl_setup_dealer(&setup, i).client;
        if (from == m->to)
            continue;
        if (from == committee.dealer) {
            dafl_bytes at_packet = dafl_setup_packet(&setup, packet);
            m->bytes[(size_t)(at_packet.ptr - m->bytes) + 40] ^= 1;
        }
        packet++;
    }
    lab_letter_reseal(l, m, m->envelope.body);
}

static bool spoil_packets(lab *l, lab_letter *m, void *ctx)
{
    (void)ctx;
    if (committee.dealt && m->envelope.type == DAFL_MSG_SHARES &&
        m->from == committee.dealer)
        spoil_shares(l, m);
    if (!committee.dealt && m->envelope.type == DAFL_MSG_SETUP &&
        dafl_members_has(&committee.dead, m->to))
        spoil_setup(l, m);
    return true;
}

/* `more` holders than k - t cannot open the dealer's packet. */
static lab *dead_lab(size_t i, size_t more, bool dealt)
{
    lab_scenario s =
        lab_scenario_for(sizes[i].k, sizes[i].cell_size, random_u64());
    lab *l;

    s.intercept = spoil_packets;
    l = lab_new(&s);
    committee.dealer = (uint16_t)random_size(0, s.k - 1u);
    committee.dealt = dealt;
    committee.dead = lab_members(l, 0);
    while (dafl_members_count(&committee.dead) <
           s.k - 1 - threshold_of(l) + more) {
        size_t holder = random_size(0, s.k - 1u);
        if (holder != committee.dealer)
            dafl_members_add(&committee.dead, holder);
    }
    return l;
}

/* The cells that remain without the dealer's. */
static dafl_members without_dealer(const lab *l)
{
    dafl_members left = lab_everybody(l), cell;

    if (lab_config(l)->policy.g == 1) {
        dafl_members_remove(&left, committee.dealer);
        return left;
    }
    cell = cell_of(l, committee.dealer);
    return dafl_members_minus(&left, &cell);
}

/* D9. Its b is rebuilt from the t shares that there are, or its sk. */
static void a_dealer_with_t_holders_left_is_summed_and_recovered(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        lab *l = dead_lab(i, 0, false);
        dafl_members all = lab_everybody(l), left = without_dealer(l);
        lab_leave(l, committee.dealer, 1, LAB_AT_CAST, LAB_NEXT_SLOT);
        lab_check_done(l);
        lab_check_cohort(l, 0, &all);
        lab_check_cohort(l, 1, &left);
        assert_int_equal(dafl_server_stat(lab_server(l)).failed, 0);
        lab_free(&l);
    }
}

/* D9. One of the t is gone when it matters: no sum, and from then on the run
 * goes on without the dealer's cell. */
static void a_dealer_with_a_holder_less_is_left_out_from_then_on(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        lab *l = dead_lab(i, 0, false);
        dafl_members left = without_dealer(l);
        uint16_t holder = 0;
        while (holder == committee.dealer ||
               dafl_members_has(&committee.dead, holder))
            holder++;
        lab_leave(l, holder, 0, LAB_AFTER_SIGN, LAB_NEXT_SLOT);
        lab_check_done(l);
        assert_int_equal(result_of(l, 1), DAFL_E_UNRECOVERABLE);
        assert_int_equal(blamed(l, committee.dealer, DAFL_E_UNRECOVERABLE), 1);
        assert_int_equal(dafl_server_stat(lab_server(l)).failed, 1);
        lab_check_cohort(l, 2, &left);
        lab_free(&l);
    }
}

/* D9. Already at setup, whether the dealer or the way is at fault. */
static void a_dealer_whose_packets_do_not_open_is_left_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++)
        for (int dealt = 0; dealt <= 1; dealt++) {
            lab *l = dead_lab(i, 1, dealt == 1);
            dafl_members left = without_dealer(l);
            lab_check_done(l);
            assert_int_equal(blamed(l, committee.dealer, DAFL_E_UNRECOVERABLE),
                             1);
            assert_int_equal(dafl_server_stat(lab_server(l)).failed, 0);
            assert_int_equal(dafl_server_stat(lab_server(l)).enrolments, 1);
            for (uint32_t q = 0; q < 3; q++)
                lab_check_cohort(l, q, &left);
            lab_free(&l);
        }
}

/* ---- D10: the next attempt is over another cohort ---- */

/* D10. All have signed, and the cell 0 1 2 is gone before CONF, with others who
 * come back: there is no quorum. */
static void a_question_is_asked_again_without_a_cell_that_vanished(void **state)
{
    (void)state;
    for (uint32_t q = 0; q < 5; q++) {
        lab_scenario s = lab_scenario_for(12, 3, random_u64());
        dafl_members all, cell, left, others;
        uint32_t slot = q + 1; /* of the attempt that fails */
        lab *l;
        s.questions = 5;
        s.ties = true;
        l = lab_new(&s);
        all = lab_everybody(l);
        cell = cell_of(l, 0);
        left = dafl_members_minus(&all, &cell);
        others = lab_members(l, (uint64_t)3 << random_size(3, 10));
        leave_all(l, &cell, q, LAB_AT_SURV, LAB_FOR_GOOD);
        leave_all(l, &others, q, LAB_AT_SURV, LAB_NEXT_SLOT);
        lab_check_done(l);
        assert_int_equal(result_of(l, slot), DAFL_E_QUORUM);
        assert_int_equal(sent_in_slot(l, DAFL_MSG_SIGN, slot), s.k);
        assert_int_equal(sent_in_slot(l, DAFL_MSG_REVEAL, slot), 0);
        assert_int_equal(lab_slot_question(l, slot), q);
        assert_int_equal(lab_slot_question(l, slot + 1), q);
        assert_int_equal(result_of(l, slot + 1), DAFL_FAULT_NONE);
        assert_int_equal(dafl_server_stat(lab_server(l)).failed, 1);
        assert_true(dafl_members_within(&lab_sum_of(l, q)->cohort, &left));
        if (q < 4)
            lab_check_cohort(l, 4, &left);
        lab_free(&l);
    }
}

/* The sum over everybody and then, in slot 2, over all but the victim. */
static int64_t *cast_without_victim(lab *l, act *first, act *second)
{
    dafl_members left = lab_everybody(l);

    dafl_members_remove(&left, VICTIM);
    *second = play(l, 2, &left, &left, first);
    if (n_senders(l, second, DAFL_MSG_REVEAL) == 0)
        return NULL;
    return difference(l, open_sum(l, first), open_sum(l, second));
}

/* D10. */
static void a_cohort_with_half_a_cell_gets_no_upload(void **state)
{
    act first, second;
    lab *l = retried_lab(&first);

    (void)state;
    assert_null(cast_without_victim(l, &first, &second));
    assert_int_equal(n_senders(l, &second, DAFL_MSG_READY), 9);
    assert_int_equal(n_senders(l, &second, DAFL_MSG_UPLOAD), 0);
    assert_int_equal(n_senders(l, &second, DAFL_MSG_SIGN), 0);
    assert_int_equal(
        lab_count(l, LAB_ANYBODY, DAFL_EVENT_ERROR, DAFL_E_CELL_SPLIT), 9);
    lab_check_invariants(l);
    lab_free(&l);
}

#ifdef DAFL_WEAKEN
/* D10 control. Two sums that differ by one client. */
static void without_whole_cells_two_sums_lay_a_client_open(void **state)
{
    act first, second;
    lab *l = retried_lab(&first);
    int64_t *x;

    (void)state;
    dafl_weakened = DAFL_WEAK_CELLS;
    x = cast_without_victim(l, &first, &second);
    assert_non_null(x);
    assert_true(is_answer(l, x, VICTIM));
    free(x);
    lab_free(&l);
}
#endif

/* Client 5 restarts before it has the keys of this enrolment, and everybody is
 * needed: it gets others, instead of slot after slot being lost without it. */
static void a_client_without_keys_is_enrolled_anew(void **state)
{
    lab_scenario s = lab_scenario_for(6, 3, random_u64());
    dafl_members all;
    size_t at = 0;
    lab *l;

    (void)state;
    s.config.policy.m = 6;
    s.config.slots = 40; /* more than may fail */
    l = lab_new(&s);
    all = lab_everybody(l);
    while (lab_find(l, &at, LAB_SENT, 6, 5, DAFL_MSG_SETUP, 0) == NULL)
        assert_true(lab_step(l));
    lab_crash(l, 5, 100);
    lab_check_done(l);
    for (uint32_t q = 0; q < s.questions; q++)
        lab_check_cohort(l, q, &all);
    assert_int_equal(dafl_server_stat(lab_server(l)).slots, s.questions);
    assert_int_equal(dafl_server_stat(lab_server(l)).enrolments, 2);
    lab_free(&l);
}

/* How often client 5 has sent a message of this type in slot 2; every time the
 * same, if it is sent once (not in chunks). */
static size_t times_said(lab *l, dafl_msg_type type, bool once)
{
    const lab_seen *first = NULL, *m;
    size_t n = 0, at = 0;

    while ((m = lab_find(l, &at, LAB_SENT, 5, LAB_ANYBODY, type, 2)) != NULL) {
        first = first == NULL ? m : first;
        if (once)
            assert_true(m->envelope.body.len == first->envelope.body.len &&
                        memcmp(m->envelope.body.ptr, first->envelope.body.ptr,
                               m->envelope.body.len) == 0);
        n++;
    }
    return n;
}

/* A second process on a copy of the disk, made before the client uploaded in
 * this slot: its journal does not know of that. It has the same keys and rows,
 * so what it sends is the same (lab_check_invariants looks at every chunk). */
static void a_twin_on_a_copy_of_the_disk_uploads_the_same(void **state)
{
    static const dafl_msg_type until[] = {DAFL_MSG_UPLOAD, DAFL_MSG_END};

    (void)state;
    for (size_t i = 0; i < COUNT(until); i++) {
        lab_scenario s = lab_scenario_for(6, 3, random_u64());
        lab *l = lab_new(&s);
        dafl_members all = lab_everybody(l);
        lab_disk *copy;

        assert_true(lab_run_to(l, DAFL_MSG_MODEL, 1));
        copy = lab_disk_copy(l, 5);
        while (times_said(l, until[i], false) == 0)
            assert_true(lab_step(l));
        lab_crash(l, 5, LAB_NEVER);
        lab_disk_put(l, 5, copy);
        lab_restart(l, 5);
        lab_check_done(l);
        lab_check_cohort(l, 1, &all);
        assert_true(times_said(l, DAFL_MSG_UPLOAD, false) >= 2);
        assert_int_equal(times_said(l, DAFL_MSG_END, true), 2);
        lab_disk_free(&copy);
        lab_free(&l);
    }
}

/* It knows of no run, so it is told in none. The numbers of its messages begin
 * anew, which is no invariant to keep here. */
static void a_client_that_lost_its_disk_is_told_that_it_is_out(void **state)
{
    lab_scenario s = lab_scenario_for(6, 3, random_u64());
    lab *l = lab_new(&s);
    lab_disk *empty = lab_disk_copy(l, 5);

    (void)state;
    assert_true(lab_run_to(l, DAFL_MSG_MODEL, 1));
    lab_crash(l, 5, LAB_NEVER);
    lab_disk_put(l, 5, empty);
    lab_restart(l, 5);
    assert_int_equal(lab_run(l), LAB_DONE);
    assert_int_equal(dafl_client_where(lab_client(l, 5)), DAFL_CLIENT_OUT);
    assert_int_equal(dafl_client_fault(lab_client(l, 5)), DAFL_E_STATE_LOST);
    lab_disk_free(&empty);
    lab_free(&l);
}

/* ---- */

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(
        with_too_many_gone_the_slot_has_no_sum_and_no_share_leaves),
    cmocka_unit_test(with_too_many_gone_after_signing_nothing_is_opened),
    cmocka_unit_test(with_too_many_gone_for_good_the_run_ends_with_a_name),
    cmocka_unit_test(a_confirmation_with_too_few_signatures_moves_nobody),
    cmocka_unit_test(a_cell_with_a_gap_is_out_and_stays_closed),
    cmocka_unit_test(a_spent_slot_is_not_played_again),
    cmocka_unit_test(a_question_asked_again_tells_of_no_single_client),
    cmocka_unit_test(a_client_that_missed_questions_is_summed_again),
    cmocka_unit_test(a_client_that_restarts_uploads_the_same_or_nothing),
    cmocka_unit_test(a_client_signs_one_statement_also_after_a_restart),
    cmocka_unit_test(with_as_few_holders_as_allowed_every_sum_is_exact),
    cmocka_unit_test(with_one_holder_less_it_waits_for_one_to_come_back),
    cmocka_unit_test(a_dealer_with_t_holders_left_is_summed_and_recovered),
    cmocka_unit_test(a_dealer_with_a_holder_less_is_left_out_from_then_on),
    cmocka_unit_test(a_dealer_whose_packets_do_not_open_is_left_out),
    cmocka_unit_test(a_question_is_asked_again_without_a_cell_that_vanished),
    cmocka_unit_test(a_cohort_with_half_a_cell_gets_no_upload),
    cmocka_unit_test(a_client_without_keys_is_enrolled_anew),
    cmocka_unit_test(a_twin_on_a_copy_of_the_disk_uploads_the_same),
    cmocka_unit_test(a_client_that_lost_its_disk_is_told_that_it_is_out),
};

#ifdef DAFL_WEAKEN
static int strengthen(void **state)
{
    (void)state;
    dafl_weakened = DAFL_WEAK_NOTHING;
    return 0;
}
#define CONTROL(f) cmocka_unit_test_teardown(f, strengthen)

static const struct CMUnitTest controls[] = {
    CONTROL(without_the_quorum_one_signature_brings_the_shares_out),
    CONTROL(in_a_slot_played_again_a_client_is_laid_open),
    CONTROL(without_its_journal_a_client_uploads_twice),
    CONTROL(without_the_rule_a_client_signs_two_statements),
    CONTROL(without_whole_cells_two_sums_lay_a_client_open),
};
#endif

int main(int argc, char **argv)
{
    bool all = argc > 1 && strcmp(argv[1], "all") == 0;

    check_seed();
#ifdef DAFL_WEAKEN
    /* The cases themselves are those of the other program. */
    if (cmocka_run_group_tests(controls, NULL, NULL) != 0)
        return 1;
    if (!all)
        return 0;
#endif
    (void)all;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
