/* SPDX-License-Identifier: Apache-2.0 */
/* What a server and its colluders do stands in the logs of the others: R9
 * audit_policy with clients that lack a check; M9 two_statements_evidence. With
 * --write DIR the logs of the honest in M9, for the tests of the command;
 * --write-encrypted DIR those of a run with encryption. */
#include "tests/check.h"

#include "crypto/he.h"
#include "protocol/context.h"
#include "protocol/weaken.h"
#include "tests/lab/audited.h"

/* ---- a server that deviates in slot 1 ---- */

typedef enum {
    SPLIT_CELL, /* SURV: one client is missing */
    SMALL,      /* SURV: two are left */
    SHORT,      /* CONF: too few signatures */
    TWICE,      /* SURV again when the slot is over, without the victim */
    REOPEN,     /* MODEL, CAST, SURV again */
    GROUPS,     /* two groups are told different survivors; colluders sign both
                 */
    WAYS
} way;

typedef struct {
    way how;
    uint16_t victim;
    uint16_t n_colluders; /* GROUPS: the first; the others go even and odd */
    bool begun;           /* the second round */
    bool posted;          /* CONF */
    uint64_t seq;
    dafl_writer model, cast;
    dafl_members a, signers;
    dafl_end_msg end[DAFL_CLIENTS_MAX];
    dafl_signature sig[DAFL_CLIENTS_MAX];
} script;

static void post(lab *l, script *s, dafl_msg_type type, dafl_bytes body,
                 const dafl_members *to, uint64_t after)
{
    uint16_t server = lab_server_index(l);
    dafl_writer w = {0};

    lab_seal(l, &w, server, type, 1, ++s->seq, body);
    for (uint16_t u = 0; u < server; u++)
        if (dafl_members_has(to, u))
            lab_post(l, server, u, dafl_writer_bytes(&w), after);
    dafl_writer_drop(&w);
}

static dafl_members survivors(const script *s)
{
    dafl_members u3 = s->a;

    dafl_members_remove(&u3, s->victim);
    for (uint16_t u = 0; s->how == SMALL && dafl_members_count(&u3) > 2; u++)
        if (dafl_members_has(&u3, u))
            dafl_members_remove(&u3, u);
    return u3;
}

static void put_digests(const script *s, dafl_writer *w, const dafl_members *u3)
{
    for (size_t u = 0; u < u3->n; u++)
        if (dafl_members_has(u3, u))
            dafl_put_fixed(w, s->end[u].dig.b, sizeof s->end[u].dig.b);
}

static void put_survivors(const script *s, dafl_writer *w)
{
    dafl_members u3 = survivors(s);
    dafl_writer digests = {0}, ends = {0};

    put_digests(s, &digests, &u3);
    for (size_t u = 0; u < u3.n; u++)
        if (dafl_members_has(&u3, u))
            dafl_put_fixed(&ends, s->end[u].sig.b, sizeof s->end[u].sig.b);
    dafl_put_surv(w, &(dafl_surv){s->a, u3, dafl_writer_bytes(&digests),
                                  dafl_writer_bytes(&ends)});
    dafl_writer_drop(&digests);
    dafl_writer_drop(&ends);
}

static void put_quorum(const script *s, dafl_writer *w,
                       const dafl_members *signers)
{
    dafl_conf conf = {.signers = *signers};
    dafl_writer signatures = {0};

    for (size_t u = 0; u < signers->n; u++)
        if (dafl_members_has(signers, u))
            dafl_put_fixed(&signatures, s->sig[u].b, sizeof s->sig[u].b);
    conf.signatures = dafl_writer_bytes(&signatures);
    dafl_put_conf(w, &conf);
    dafl_writer_drop(&signatures);
}

static void post_quorum(lab *l, script *s, const dafl_members *signers,
                        const dafl_members *to)
{
    dafl_writer w = {0};

    put_quorum(s, &w, signers);
    post(l, s, DAFL_MSG_CONF, dafl_writer_bytes(&w), to, 1);
    dafl_writer_drop(&w);
}

/* The honest of group g: those with even or odd numbers. */
static dafl_members group(const lab *l, const script *s, unsigned g)
{
    dafl_members m = dafl_members_none(lab_server_index(l));

    for (uint16_t u = s->n_colluders; u < m.n; u++)
        if (u % 2 == g)
            dafl_members_add(&m, u);
    return m;
}

/* The colluders sign what the second group was told. */
static void sign_for_second(lab *l, script *s)
{
    dafl_members u3 = survivors(s);
    const lab_event *events;
    size_t n = lab_events(l, &events);
    dafl_writer digests = {0};
    dafl_digest ctx2 = {{0}}, stmt;

    for (size_t i = 0; i < n; i++)
        if (events[i].event.kind == DAFL_EVENT_CAST)
            ctx2 = events[i].event.digest;
    put_digests(s, &digests, &u3);
    dafl_context_statement(&stmt, &ctx2, &u3, dafl_writer_bytes(&digests));
    dafl_writer_drop(&digests);
    for (uint16_t u = 0; u < s->n_colluders; u++)
        dafl_sign(&s->sig[u], &stmt, lab_identity(l, u));
}

/* Each group gets the signatures of its own and of the colluders. */
static void post_to_groups(lab *l, script *s)
{
    for (unsigned g = 0; g < 2; g++) {
        dafl_members to = group(l, s, g), signers = to;
        for (uint16_t u = 0; u < s->n_colluders; u++)
            dafl_members_add(&signers, u);
        if (g == 1)
            sign_for_second(l, s);
        post_quorum(l, s, &signers, &to);
    }
}

static void take_signature(lab *l, script *s, const lab_letter *m)
{
    dafl_members all = lab_everybody(l);

    if ((s->how == TWICE || s->how == REOPEN) && !s->begun)
        return; /* of the statement that is true */
    assert_ok(dafl_get_sign(&s->sig[m->from], m->envelope.body));
    dafl_members_add(&s->signers, m->from);
    if (s->how == SHORT || s->posted || dafl_members_count(&s->signers) < all.n)
        return;
    s->posted = true;
    if (s->how == GROUPS)
        post_to_groups(l, s);
    else
        post_quorum(l, s, &s->signers, &all);
}

/* The slot is over. Once more, without the victim. */
static void begin_again(lab *l, script *s, uint64_t seq)
{
    dafl_members all = lab_everybody(l);
    dafl_writer w = {0};

    s->begun = true;
    s->seq = seq - 1; /* what the server sends now does not arrive */
    if (s->how == REOPEN) {
        post(l, s, DAFL_MSG_MODEL, dafl_writer_bytes(&s->model), &all, 1);
        post(l, s, DAFL_MSG_CAST, dafl_writer_bytes(&s->cast), &all, 100);
    }
    put_survivors(s, &w);
    post(l, s, DAFL_MSG_SURV, dafl_writer_bytes(&w), &all, 200);
    dafl_writer_drop(&w);
}

static bool deviate_surv(lab *l, script *s, lab_letter *m)
{
    dafl_members second = group(l, s, 1);
    dafl_writer w = {0};

    s->seq = m->envelope.seq;
    if (s->how > SMALL &&
        !(s->how == GROUPS && dafl_members_has(&second, m->to)))
        return true;
    put_survivors(s, &w);
    lab_letter_reseal(l, m, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    return true;
}

/* SHORT: one signature too few is left. */
static bool deviate_conf(lab *l, script *s, lab_letter *m)
{
    dafl_members few = lab_members(l, 15); /* t, one too few */
    dafl_writer w = {0};

    if (s->how == TWICE || s->how == REOPEN)
        return true;
    if (s->how != SHORT)
        return false; /* ours are enough */
    put_quorum(s, &w, &few);
    lab_letter_reseal(l, m, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    return true;
}

static bool deviate(lab *l, lab_letter *m, void *ctx)
{
    dafl_bytes body = m->envelope.body;
    script *s = ctx;

    if (m->from == lab_server_index(l) && s->begun)
        return false;
    if (m->envelope.slot != 1)
        return true;
    switch (m->envelope.type) {
    case DAFL_MSG_MODEL:
        dafl_writer_clear(&s->model);
        dafl_put_fixed(&s->model, body.ptr, body.len);
        break;
    case DAFL_MSG_CAST:
        dafl_writer_clear(&s->cast);
        dafl_put_fixed(&s->cast, body.ptr, body.len);
        assert_ok(dafl_get_cast(&s->a, body));
        break;
    case DAFL_MSG_END:
        assert_ok(dafl_get_end_msg(&s->end[m->from], body));
        break;
    case DAFL_MSG_SURV:
        return deviate_surv(l, s, m);
    case DAFL_MSG_SIGN:
        take_signature(l, s, m);
        break;
    case DAFL_MSG_CONF:
        return deviate_conf(l, s, m);
    case DAFL_MSG_RESULT:
        if (s->how == TWICE || s->how == REOPEN)
            begin_again(l, s, m->envelope.seq);
        return false;
    default:
        break;
    }
    return true;
}

/* A lab in which the server has done so. */
static lab *deviating_lab(way how, uint16_t n_colluders, bool encrypted)
{
    static script s; /* one lab at a time */
    lab_scenario scenario =
        lab_scenario_for(6, how == SPLIT_CELL ? 3 : 1, random_u64());
    lab *l;

    s = (script){.how = how,
                 .n_colluders = n_colluders,
                 .victim = (uint16_t)(how == GROUPS ? 0 : random_size(0, 5)),
                 .signers = dafl_members_none(6)};
    if (encrypted)
        lab_scenario_encrypt(&scenario);
    scenario.audit = true;
    scenario.intercept = deviate;
    scenario.ctx = &s;
    l = lab_new(&scenario);
    while (lab_step(l) && lab_now(l) < 3000)
        ;
    dafl_writer_drop(&s.model);
    dafl_writer_drop(&s.cast);
    return l;
}

/* ---- R9: clients without a check ---- */

static const struct {
    way how;
    dafl_weak check;      /* that the clients lack */
    dafl_audit_rule rule; /* that their logs break */
    dafl_fault refused;   /* how they answer if they have it */
} deviations[] = {
    {SPLIT_CELL, DAFL_WEAK_CELLS, DAFL_AUDIT_CELL_SPLIT, DAFL_E_CELL_SPLIT},
    {SMALL, DAFL_WEAK_COHORT, DAFL_AUDIT_COHORT, DAFL_E_COHORT},
    {SHORT, DAFL_WEAK_QUORUM, DAFL_AUDIT_QUORUM, DAFL_E_QUORUM},
    {TWICE, DAFL_WEAK_STATEMENT, DAFL_AUDIT_SECOND_STMT, DAFL_E_SECOND_STMT},
    {REOPEN, DAFL_WEAK_SLOT, DAFL_AUDIT_SLOT_REUSED, DAFL_E_SECOND_STMT},
};

/* Whether the log of every client, judged alone, breaks the rule. */
static size_t clients_found(const lab *l, dafl_audit_rule rule)
{
    audited a = audited_take(l);
    size_t n = 0;

    for (uint16_t u = 0; u < 6; u++) {
        dafl_audit_report *r = audited_judge(&a, ~(1ull << u));
        const dafl_audit_finding *f = audited_find(r, rule, u);
        n += f != NULL && f->seq > 0;
        if (f == NULL && r->n_found > 0)
            audited_print(r);
        assert_true(f != NULL || r->n_found == 0);
        dafl_audit_report_free(&r);
    }
    audited_drop(&a);
    return n;
}

static void clients_that_refuse_have_clean_logs(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(deviations); i++) {
        lab *l = deviating_lab(deviations[i].how, 0, false);
        assert_int_equal(clients_found(l, deviations[i].rule), 0);
        for (uint16_t u = 0; u < 6; u++)
            assert_true(
                lab_count(l, u, DAFL_EVENT_ERROR, deviations[i].refused) > 0);
        lab_free(&l);
    }
}

#ifdef DAFL_WEAKEN
static void clients_without_a_check_break_its_rule(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(deviations); i++) {
        lab *l;
        dafl_weakened = deviations[i].check;
        l = deviating_lab(deviations[i].how, 0, false);
        dafl_weakened = DAFL_WEAK_NOTHING; /* the auditor lacks nothing */
        assert_int_equal(clients_found(l, deviations[i].rule), 6);
        lab_free(&l);
    }
}
#endif

/* ---- M9 two_statements_evidence ---- */

static void hash_members(dafl_hash *h, const dafl_members *m)
{
    dafl_writer w = {0};

    dafl_put_members(&w, m);
    dafl_hash_part(h, w.ptr, w.len);
    dafl_writer_drop(&w);
}

/* Made anew from its parts, as protocol/context.h says. */
static dafl_digest statement_again(const dafl_audit_statement *s)
{
    dafl_digest d;
    dafl_hash h;

    dafl_hash_init(&h, "deepafl/ctx");
    dafl_hash_digest(&h, &s->h_setup);
    dafl_hash_u32(&h, s->slot);
    dafl_hash_u32(&h, s->question);
    dafl_hash_u32(&h, s->rank);
    dafl_hash_digest(&h, &s->model);
    dafl_hash_u64(&h, s->len);
    dafl_hash_part(&h, &s->w, 1);
    dafl_hash_digest(&h, &s->he);
    dafl_hash_end(&h, &d);
    dafl_hash_init(&h, "deepafl/cast");
    dafl_hash_digest(&h, &d);
    hash_members(&h, &s->a);
    dafl_hash_end(&h, &d);
    dafl_hash_init(&h, "deepafl/stmt");
    dafl_hash_digest(&h, &d);
    hash_members(&h, &s->u3);
    dafl_hash_part(&h, s->digests.ptr, s->digests.len);
    dafl_hash_end(&h, &d);
    return d;
}

/* Two different statements of one setup and slot, and the client's signature
 * on each: nothing else is asked. */
static void check_proof(const lab *l, const dafl_audit_report *r,
                        const dafl_audit_proof *p)
{
    const dafl_audit_statement *a = &r->statements[p->statements[0]],
                               *b = &r->statements[p->statements[1]];
    const uint8_t *pk = lab_roster(l)->parties[p->client].id.sign_pk;
    dafl_digest one = statement_again(a), two = statement_again(b);

    assert_memory_equal(a->h_setup.b, b->h_setup.b, sizeof a->h_setup.b);
    assert_int_equal(a->slot, b->slot);
    assert_memory_not_equal(one.b, two.b, sizeof one.b);
    assert_ok(dafl_sign_check(&a->signatures[p->client], &one, pk));
    assert_ok(dafl_sign_check(&b->signatures[p->client], &two, pk));
}

/* One colluder, whose statements the honest refuse to act on; and four, more
 * than the policy tolerates, who get both groups to reveal. The colluders and
 * the server do not hand in their logs. */
static void two_statements_prove_who_signed_both(void **state)
{
    (void)state;
    for (uint16_t n = 1; n <= 4; n += 3) {
        lab *l = deviating_lab(GROUPS, n, false);
        uint64_t silent = (1ull << n) - 1, server = 64;
        audited a = audited_take(l);
        dafl_audit_report *r;
        dafl_members seen = dafl_members_none(6);
        for (uint16_t u = n; u < 6; u++) {
            size_t revealed =
                lab_count(l, u, DAFL_EVENT_REVEAL, DAFL_FAULT_COUNT);
            assert_int_equal(revealed, n == 4 ? 1 : 0);
            /* Each log alone shows nothing. */
            r = audited_judge(&a, ~(1ull << u));
            assert_int_equal(r->n_found, 0);
            dafl_audit_report_free(&r);
        }
        r = audited_judge(&a, silent | server);
        assert_int_equal(r->n_proofs, n);
        assert_int_equal(audited_count(r, DAFL_AUDIT_SECOND_STMT, LAB_ANYBODY),
                         n);
        assert_int_equal(r->n_found, n);
        for (size_t i = 0; i < n; i++) {
            assert_true(r->proofs[i].client < n);
            dafl_members_add(&seen, r->proofs[i].client);
            check_proof(l, r, &r->proofs[i]);
        }
        assert_int_equal(dafl_members_count(&seen), n);
        dafl_audit_report_free(&r);
        /* With the colluders' own logs: those do not have the second one. */
        r = audited_judge(&a, server);
        assert_int_equal(r->n_proofs, n);
        assert_int_equal(audited_count(r, DAFL_AUDIT_HIDDEN, LAB_ANYBODY), n);
        dafl_audit_report_free(&r);
        /* With the server's: what it told the second group is not there. */
        r = audited_judge(&a, silent);
        assert_true(audited_count(r, DAFL_AUDIT_SPLIT, LAB_ANYBODY) > 0);
        dafl_audit_report_free(&r);
        audited_drop(&a);
        lab_free(&l);
    }
}

/* All that a proof needs is in the report, whatever was asked: variants of a
 * question, and with a key holder the key. */
static void statements_are_made_of_what_is_reported(void **state)
{
    (void)state;
    for (int sealed = 0; sealed <= dafl_he_built(); sealed++) {
        lab_scenario s = lab_scenario_for(6, 3, random_u64());
        dafl_audit_report *r;
        size_t tied = 0;
        lab *l;
        s.audit = s.ties = true;
        s.questions = 4;
        if (sealed)
            lab_scenario_encrypt(&s);
        l = lab_new(&s);
        lab_check_done(l);
        r = audited_judge_lab(l);
        assert_int_equal(r->n_found, 0);
        assert_int_equal(r->n_statements, 4);
        for (size_t i = 0; i < r->n_statements; i++) {
            const dafl_audit_statement *said = &r->statements[i];
            dafl_digest again = statement_again(said);
            assert_memory_equal(again.b, said->stmt.b, sizeof again.b);
            assert_int_equal(sodium_is_zero(said->he.b, sizeof said->he.b),
                             !sealed);
            tied += said->rank == 1;
        }
        assert_int_equal(tied, 1);
        dafl_audit_report_free(&r);
        lab_free(&l);
    }
}

/* The statement holds the digest of the encryption key too, so the proof does.
 */
static void a_proof_has_the_encryption_key(void **state)
{
    lab *l;
    audited a;
    dafl_audit_report *r;

    (void)state;
    if (!dafl_he_built())
        skip();
    l = deviating_lab(GROUPS, 1, true);
    a = audited_take(l);
    r = audited_judge(&a, 1 | 64);
    assert_int_equal(r->n_proofs, 1);
    assert_int_equal(r->proofs[0].client, 0);
    assert_false(sodium_is_zero(r->statements[r->proofs[0].statements[0]].he.b,
                                DAFL_HASH_BYTES));
    check_proof(l, r, &r->proofs[0]);
    dafl_audit_report_free(&r);
    audited_drop(&a);
    lab_free(&l);
}

static int write_logs(const char *to, bool encrypted)
{
    lab *l;
    audited a;

    if (encrypted && !dafl_he_built())
        return 77;
    l = deviating_lab(GROUPS, 1, encrypted);
    a = audited_take(l);
    audited_write(&a, to, 1 | 64);
    audited_drop(&a);
    lab_free(&l);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_that_refuse_have_clean_logs),
#ifdef DAFL_WEAKEN
        cmocka_unit_test(clients_without_a_check_break_its_rule),
#endif
        cmocka_unit_test(two_statements_prove_who_signed_both),
        cmocka_unit_test(a_proof_has_the_encryption_key),
        cmocka_unit_test(statements_are_made_of_what_is_reported),
    };

    check_seed();
    if (argc == 3 && strcmp(argv[1], "--write") == 0)
        return write_logs(argv[2], false);
    if (argc == 3 && strcmp(argv[1], "--write-encrypted") == 0)
        return write_logs(argv[2], true);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
