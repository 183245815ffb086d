/* SPDX-License-Identifier: Apache-2.0 */
/* Logs that their own party has written anew, with its key: as texts they are
 * in order, but they tell of what must not be (R9 audit_policy), or hide what
 * others know. */
#include "tests/check.h"

#include "crypto/he.h"
#include "protocol/context.h"
#include "tests/lab/audited.h"

/* ---- R9 audit_policy ---- */

typedef enum {
    AS_IT_WAS,
    NO_CAST,
    NO_CONF,
    NO_SETUP,
    NO_START,
    NOT_CAST,
    NOT_MINE,
    OLD_SLOT,
    SAME_SLOT,
    SAME_ENROLMENT,
    OTHER_A,
    OTHER_CONF,
    OTHER_CTX,
    OTHER_GONE,
    OTHER_LEN,
    OTHER_RING,
    OTHER_ROSTER,
    OTHER_SECOND,
    OTHER_SENDER,
    OTHER_SIGNATURE,
    OTHER_STMT,
    OTHER_SIGNED,
    OTHER_T,
    OTHER_U0,
    OTHER_U1,
    OTHER_UPLOAD,
} lie;

typedef struct {
    lie what;
    uint32_t uploaded; /* the slot */
} liar;

static void remove_from(dafl_members *m, uint16_t first)
{
    for (uint16_t u = first; u < first + 3; u++)
        dafl_members_remove(m, u);
}

/* Whether a line is left out. */
static bool leaves_out(lie what, dafl_event_kind kind)
{
    return (what == NO_CAST && kind == DAFL_EVENT_CAST) ||
           (what == NO_CONF && kind == DAFL_EVENT_CONF) ||
           (what == NO_SETUP && kind == DAFL_EVENT_SETUP) ||
           (what == NO_START && kind == DAFL_EVENT_START);
}

/* What a party would do to its log, knowing how it must look. */
static bool tell_lies(void *ctx, dafl_audit_line *line, uint8_t *more)
{
    liar *a = ctx;
    dafl_event *e = &line->event;
    bool again = e->kind == DAFL_EVENT_UPLOAD && e->slot == a->uploaded;

    if (e->kind == DAFL_EVENT_UPLOAD)
        a->uploaded = e->slot;
    if (leaves_out(a->what, e->kind))
        return false;
    if (a->what == OLD_SLOT && e->slot > 0 && e->slot < 5)
        e->slot = 5 - e->slot; /* the last slots come first */
    if (a->what == SAME_SLOT && e->slot > 1)
        e->slot--;
    switch (e->kind) {
    case DAFL_EVENT_START:
        more[0] ^= a->what == OTHER_ROSTER;
        break;
    case DAFL_EVENT_SETUP:
        e->number = a->what == SAME_ENROLMENT ? 0 : e->number;
        more[0] = (uint8_t)(more[0] - (a->what == OTHER_T));
        more[4] &= a->what == OTHER_U0 ? 7 : 63; /* a cell less */
        if (a->what == OTHER_U1)
            dafl_members_remove(&e->set, 2);
        break;
    case DAFL_EVENT_MODEL:
        more[4] = (uint8_t)(more[4] + (a->what == OTHER_LEN));
        more[12] = (uint8_t)(more[12] + (a->what == OTHER_RING));
        break;
    case DAFL_EVENT_READY:
        e->digest.b[0] ^= a->what == OTHER_CTX;
        break;
    case DAFL_EVENT_CAST:
        if (a->what == NOT_CAST)
            remove_from(&e->set, 0);
        if (a->what == OTHER_A)
            remove_from(&e->set, 3);
        break;
    case DAFL_EVENT_UPLOAD:
        e->digest.b[0] ^= a->what == OTHER_UPLOAD;
        e->digest.b[0] ^= a->what == OTHER_SECOND && again;
        if (a->what == OTHER_SENDER)
            e->peer = 0; /* heard six times */
        break;
    case DAFL_EVENT_SIGN:
        more[0] ^= a->what == OTHER_SIGNATURE;
        /* fall through */
    case DAFL_EVENT_SURV:
        e->digest.b[3] ^= a->what == OTHER_SIGNED;
        break;
    case DAFL_EVENT_CONF:
        more[0] ^= a->what == OTHER_CONF;
        e->digest.b[3] ^= a->what == OTHER_STMT;
        break;
    case DAFL_EVENT_REVEAL:
        if (a->what == OTHER_GONE)
            dafl_members_add(&e->set, 3);
        break;
    case DAFL_EVENT_RESULT:
        if (a->what == NOT_MINE)
            e->kind = DAFL_EVENT_DONE;
        break;
    default:
        break;
    }
    return true;
}

static const struct {
    lie what;
    uint16_t party;
    dafl_audit_rule rule;
    const char *says;
} lies[] = {
    {NO_CAST, 0, DAFL_AUDIT_ORDER, "what must come before it"},
    {NO_CAST, 6, DAFL_AUDIT_ORDER, "what must come before it"},
    {NO_CONF, 0, DAFL_AUDIT_EARLY_REVEAL, "before a quorum"},
    {NO_CONF, 6, DAFL_AUDIT_RESULT, "without a quorum"},
    {NO_SETUP, 0, DAFL_AUDIT_ORDER, "before any setup"},
    {NO_START, 6, DAFL_AUDIT_BINDING, "begins with a start"},
    {NOT_CAST, 0, DAFL_AUDIT_ORDER, "not cast"},
    {NOT_CAST, 6, DAFL_AUDIT_ORDER, "not cast"},
    {NOT_MINE, 0, DAFL_AUDIT_ORDER, "role"},
    {OLD_SLOT, 0, DAFL_AUDIT_SLOT_ORDER, "an older slot"},
    {OLD_SLOT, 6, DAFL_AUDIT_SLOT_ORDER, "an older slot"},
    {OLD_SLOT, 6, DAFL_AUDIT_SLOT_ORDER, "no slot of its setup"},
    {SAME_SLOT, 0, DAFL_AUDIT_SLOT_REUSED, "open before"},
    {SAME_SLOT, 6, DAFL_AUDIT_SLOT_REUSED, "open before"},
    {SAME_ENROLMENT, 0, DAFL_AUDIT_SETUP, "a second setup"},
    {OTHER_A, 0, DAFL_AUDIT_DIGEST, "ctx2 is not"},
    {OTHER_A, 6, DAFL_AUDIT_COHORT, "below m, or with strangers"},
    {OTHER_CONF, 0, DAFL_AUDIT_QUORUM, "some that do not hold"},
    {OTHER_CONF, 6, DAFL_AUDIT_QUORUM, "some that do not hold"},
    {OTHER_CTX, 0, DAFL_AUDIT_DIGEST, "ctx is not"},
    {OTHER_GONE, 0, DAFL_AUDIT_ORDER, "shares of others"},
    {OTHER_LEN, 0, DAFL_AUDIT_DIGEST, "ctx is not"},
    {OTHER_LEN, 6, DAFL_AUDIT_DIGEST, "ctx2 is not"},
    {OTHER_RING, 6, DAFL_AUDIT_DIGEST, "another setup or ring"},
    {OTHER_ROSTER, 0, DAFL_AUDIT_BINDING, "another name, roster"},
    {OTHER_SECOND, 0, DAFL_AUDIT_UPLOADS, "another upload"},
    {OTHER_SENDER, 6, DAFL_AUDIT_UPLOADS, "a second upload"},
    {OTHER_SIGNATURE, 0, DAFL_AUDIT_DIGEST, "signature does not hold"},
    {OTHER_STMT, 0, DAFL_AUDIT_ORDER, "confirms another statement"},
    {OTHER_STMT, 6, DAFL_AUDIT_RESULT, "without a quorum"},
    {OTHER_SIGNED, 0, DAFL_AUDIT_DIGEST, "stmt is not"},
    {OTHER_SIGNED, 6, DAFL_AUDIT_DIGEST, "stmt is not"},
    {OTHER_T, 0, DAFL_AUDIT_SETUP, "another threshold"},
    {OTHER_T, 6, DAFL_AUDIT_SETUP, "another threshold"},
    {OTHER_U0, 6, DAFL_AUDIT_SETUP, "others than enrolled"},
    {OTHER_U1, 6, DAFL_AUDIT_CELL_SPLIT, "part of a cell"},
    {OTHER_UPLOAD, 0, DAFL_AUDIT_DIGEST, "upload is stated"},
    {OTHER_UPLOAD, 6, DAFL_AUDIT_DIGEST, "upload is stated"},
};

static dafl_audit_report *judge_lie(const lab *l, lie what, uint16_t party)
{
    audited a = audited_take(l);
    liar told = {.what = what};
    dafl_audit_report *r;

    audited_rewrite(&a, party, tell_lies, &told);
    r = audited_judge(&a, ~(1ull << party));
    /* As a text it is in order. */
    for (dafl_audit_rule rule = DAFL_AUDIT_FORM; rule <= DAFL_AUDIT_SIGNATURE;
         rule++)
        assert_int_equal(audited_count(r, rule, LAB_ANYBODY), 0);
    audited_drop(&a);
    return r;
}

static void forged_logs_break_a_rule_by_its_name(void **state)
{
    lab_scenario s = lab_scenario_for(6, 3, random_u64());
    dafl_audit_report *r;
    lab *l;

    (void)state;
    s.audit = true;
    s.questions = 5;
    s.config.slots = 3; /* two enrolments */
    l = lab_new(&s);
    lab_leave_crashing(l, 0, 1, LAB_AT_SURV, LAB_SOON); /* uploads twice */
    lab_check_done(l);
    for (uint16_t party = 0; party <= 6; party += 6) {
        r = judge_lie(l, AS_IT_WAS, party);
        audited_print(r);
        assert_int_equal(r->n_found, 0);
        dafl_audit_report_free(&r);
    }
    for (size_t i = 0; i < COUNT(lies); i++) {
        bool said = false;
        r = judge_lie(l, lies[i].what, lies[i].party);
        for (size_t f = 0; f < r->n_findings; f++)
            said |= r->findings[f].rule == lies[i].rule &&
                    r->findings[f].party == lies[i].party &&
                    r->findings[f].seq > 0 &&
                    strstr(r->findings[f].why.text, lies[i].says) != NULL;
        if (!said) {
            audited_print(r);
            fail_msg("lie %zu: nobody says \"%s\"", i, lies[i].says);
        }
        dafl_audit_report_free(&r);
    }
    lab_free(&l);
}

/* ---- what a log hides, and others know ---- */

/* Nothing of slot 2 but that it was there. */
static bool forget_slot(void *ctx, dafl_audit_line *line, uint8_t *more)
{
    dafl_event_kind kind = line->event.kind;

    (void)ctx;
    (void)more;
    return line->event.slot != 2 ||
           (kind != DAFL_EVENT_SIGN && kind != DAFL_EVENT_CONF &&
            kind != DAFL_EVENT_REVEAL);
}

/* Another sum, another statement. */
static bool tell_other_sum(void *ctx, dafl_audit_line *line, uint8_t *more)
{
    (void)ctx;
    (void)more;
    if (line->event.kind == DAFL_EVENT_RESULT && line->event.slot == 2)
        line->event.digest.b[7] ^= 1;
    return true;
}

static bool tell_other_setup(void *ctx, dafl_audit_line *line, uint8_t *more)
{
    (void)ctx;
    if (line->event.kind == DAFL_EVENT_SETUP)
        line->event.digest.b[0] ^= 1;
    if (line->event.kind == DAFL_EVENT_MODEL)
        more[13] ^= 1;
    return true;
}

static void what_others_know_is_not_hidden(void **state)
{
    lab_scenario s = lab_scenario_for(5, 1, random_u64());
    dafl_audit_report *r;
    audited a;
    lab *l;

    (void)state;
    s.audit = true;
    l = lab_new(&s);
    lab_check_done(l);
    a = audited_take(l);
    audited_rewrite(&a, 1, forget_slot, NULL);
    r = audited_judge(&a, ~2ull);
    assert_int_equal(r->n_found, 0);
    dafl_audit_report_free(&r);
    r = audited_judge(&a, 0);
    assert_int_equal(audited_count(r, DAFL_AUDIT_HIDDEN, 1), 1);
    assert_int_equal(audited_count(r, DAFL_AUDIT_HIDDEN, LAB_ANYBODY), 1);
    dafl_audit_report_free(&r);
    audited_drop(&a);
    a = audited_take(l);
    audited_rewrite(&a, 5, tell_other_sum, NULL);
    r = audited_judge(&a, 31);
    assert_int_equal(r->n_found, 0);
    dafl_audit_report_free(&r);
    r = audited_judge(&a, 0);
    assert_int_equal(audited_count(r, DAFL_AUDIT_SPLIT, LAB_ANYBODY), 5);
    dafl_audit_report_free(&r);
    audited_drop(&a);
    a = audited_take(l);
    audited_rewrite(&a, 2, tell_other_setup, NULL);
    r = audited_judge(&a, ~4ull);
    assert_int_equal(audited_count(r, DAFL_AUDIT_SETUP, LAB_ANYBODY), 0);
    dafl_audit_report_free(&r);
    r = audited_judge(&a, 0);
    assert_int_equal(audited_count(r, DAFL_AUDIT_SETUP, 2), 1);
    assert_true(audited_count(r, DAFL_AUDIT_SPLIT, 2) > 0);
    dafl_audit_report_free(&r);
    audited_drop(&a);
    lab_free(&l);
}

/* A client that signs another statement than it was shown, of another upload of
 * client 0, and says so. */
typedef struct {
    lab *l;
    dafl_digest ctx2;
} signer;

static bool sign_otherwise(void *ctx, dafl_audit_line *line, uint8_t *more)
{
    signer *s = ctx;
    dafl_event *e = &line->event;
    dafl_signature sig;

    if (e->kind == DAFL_EVENT_CAST)
        s->ctx2 = e->digest;
    if (e->kind != DAFL_EVENT_SIGN)
        return true;
    more[sizeof sig.b] ^= 1;
    dafl_context_statement(
        &e->digest, &s->ctx2, &e->set,
        (dafl_bytes){more + sizeof sig.b, line->more.len - sizeof sig.b});
    dafl_sign(&sig, &e->digest, lab_identity(s->l, 1));
    memcpy(more, sig.b, sizeof sig.b);
    return true;
}

/* Who signed what the server's log says is not accused because another client
 * did not; whoever did not is, each of them. */
static void each_client_is_compared_with_the_server(void **state)
{
    lab_scenario sc = lab_scenario_for(5, 1, random_u64());
    dafl_audit_report *r;
    signer s;
    audited a;

    (void)state;
    sc.audit = true;
    s.l = lab_new(&sc);
    lab_check_done(s.l);
    a = audited_take(s.l);
    audited_rewrite(&a, 1, sign_otherwise, &s);
    r = audited_judge(&a, 0);
    for (uint16_t u = 0; u < 5; u++)
        assert_int_equal(audited_count(r, DAFL_AUDIT_SPLIT, u),
                         u == 1 ? sc.questions : 0);
    dafl_audit_report_free(&r);
    audited_drop(&a);
    lab_free(&s.l);
}

/* ---- the key holder's log ---- */

typedef enum {
    HONEST,
    OPENED_TWICE,
    OPENED_AGAIN,
    OPENED_UNCONFIRMED,
    OPENED_OTHERS,
    OPENED_WITHOUT_QUORUM,
    OPENED_SOMETHING,
    OTHER_KEY,
    TWO_KEYS,
    TOLD_OTHERWISE,
} holder_lie;

/* What would be a second one in a slot is that of slot 3, in slot 2. */
static bool lie_as_holder(void *ctx, dafl_audit_line *line, uint8_t *more)
{
    const holder_lie *what = ctx;
    dafl_event *e = &line->event;
    bool open = e->kind == DAFL_EVENT_OPEN;

    switch (*what) {
    case HONEST:
        break;
    case OPENED_TWICE:
        if (open && e->slot == 3)
            e->slot = 2;
        return e->slot != 3; /* nothing else of slot 3 */
    case OPENED_AGAIN:
        if (e->slot == 3)
            e->slot = 2;
        break;
    case OPENED_UNCONFIRMED:
        return e->kind != DAFL_EVENT_CONF;
    case OPENED_OTHERS:
        if (open)
            dafl_members_remove(&e->set, 1);
        break;
    case OPENED_WITHOUT_QUORUM:
        if (e->kind == DAFL_EVENT_CONF)
            more[5] ^= 1;
        break;
    case OPENED_SOMETHING:
        e->digest.b[0] ^= open;
        break;
    case OTHER_KEY:
        if (e->kind == DAFL_EVENT_KEY)
            e->digest.b[0] ^= 1;
        break;
    case TWO_KEYS:
        if (e->kind == DAFL_EVENT_KEY && e->slot > 1)
            e->slot--;
        break;
    case TOLD_OTHERWISE:
        if (e->kind == DAFL_EVENT_MODEL)
            e->number++; /* another question */
        break;
    }
    return true;
}

static const struct {
    holder_lie what;
    dafl_audit_rule rule;
    const char *says;
} holder_lies[] = {
    {OPENED_TWICE, DAFL_AUDIT_SLOT_REUSED, "a second opening"},
    {OPENED_AGAIN, DAFL_AUDIT_SLOT_REUSED, "open before"},
    {OPENED_UNCONFIRMED, DAFL_AUDIT_EARLY_REVEAL, "before a quorum"},
    {OPENED_OTHERS, DAFL_AUDIT_ORDER, "a sum of others"},
    {OPENED_WITHOUT_QUORUM, DAFL_AUDIT_QUORUM, "some that do not hold"},
    {OPENED_SOMETHING, DAFL_AUDIT_SPLIT, "told otherwise"},
    {OTHER_KEY, DAFL_AUDIT_DIGEST, "another encryption key"},
    {TWO_KEYS, DAFL_AUDIT_SLOT_REUSED, "a second key"},
    {TOLD_OTHERWISE, DAFL_AUDIT_SPLIT, "told otherwise"},
};

static void logs_of_key_holders_break_a_rule_by_its_name(void **state)
{
    lab_scenario s = lab_scenario_for(5, 1, random_u64());
    dafl_audit_report *r;
    uint16_t holder = 6;
    lab *l;

    (void)state;
    if (!dafl_he_built())
        skip();
    lab_scenario_encrypt(&s);
    s.audit = true;
    l = lab_new(&s);
    lab_check_done(l);
    for (size_t i = 0; i <= COUNT(holder_lies); i++) {
        holder_lie what = i == 0 ? HONEST : holder_lies[i - 1].what;
        audited a = audited_take(l);
        bool said = i == 0;
        audited_rewrite(&a, holder, lie_as_holder, &what);
        /* With the server's log alone: clients would only add to it. */
        r = audited_judge(&a, 0x1f);
        for (size_t f = 0; i > 0 && f < r->n_findings; f++)
            said |= r->findings[f].rule == holder_lies[i - 1].rule &&
                    r->findings[f].party == holder &&
                    strstr(r->findings[f].why.text, holder_lies[i - 1].says) !=
                        NULL;
        if (!said || (i == 0 && r->n_found > 0)) {
            audited_print(r);
            fail_msg("lie %zu of the key holder is not found by its name", i);
        }
        dafl_audit_report_free(&r);
        audited_drop(&a);
    }
    lab_free(&l);
}

/* Statements of two runs, of one number and slot, are no proof. */
static void one_statement_in_each_run_proves_nothing(void **state)
{
    lab_scenario s = lab_scenario_for(5, 1, random_u64());
    dafl_audit_log given[12];
    dafl_audit_report *r = NULL;
    audited one, two;
    dafl_why why;
    lab *l;

    (void)state;
    s.audit = true;
    l = lab_new(&s);
    lab_check_done(l);
    one = audited_take(l);
    lab_free(&l);
    s.run = 1;
    l = lab_new(&s);
    lab_check_done(l);
    two = audited_take(l);
    for (size_t i = 0; i < 6; i++) {
        given[2 * i] = (dafl_audit_log){"one", dafl_writer_bytes(&one.logs[i])};
        given[2 * i + 1] =
            (dafl_audit_log){"two", dafl_writer_bytes(&two.logs[i])};
    }
    assert_ok(
        dafl_audit_verify(&r, lab_roster(l), lab_config(l), given, 12, &why));
    assert_int_equal(r->n_proofs, 0);
    /* Two logs of one party, though. */
    assert_int_equal(audited_count(r, DAFL_AUDIT_FORK, LAB_ANYBODY), 6);
    dafl_audit_report_free(&r);
    audited_drop(&one);
    audited_drop(&two);
    lab_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forged_logs_break_a_rule_by_its_name),
        cmocka_unit_test(what_others_know_is_not_hidden),
        cmocka_unit_test(each_client_is_compared_with_the_server),
        cmocka_unit_test(logs_of_key_holders_break_a_rule_by_its_name),
        cmocka_unit_test(one_statement_in_each_run_proves_nothing),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
