/* SPDX-License-Identifier: Apache-2.0 */
/* A server that tells clients different things before the first slot (S4), or
 * clients that were given a config they did not want (L8, R6). */
#include "tests/check.h"

#include "protocol/client_state.h"
#include "protocol/server_state.h"
#include "tests/lab/attack.h"
#include "tests/lab/leak.h"
#include "tests/lab/rogue.h"

/* ---- S4: two views of a run ---- */

typedef enum { CONFIG, ROSTER, DEALT, MODE } object;

/* Some clients are told another story than the others: their config or roster
 * has one bit changed; or client 0, who is in it, has signed that it dealt
 * something else. */
typedef struct {
    object what;
    uint16_t first, last; /* who are misled */
    dafl_mode mode;       /* of their config */
    bool honest; /* the server invites as it is, and does not play along */
    dafl_writer uploads[9];
    dafl_signature ends[9]; /* as they were signed */
} split;

static bool is_misled(const split *a, uint16_t party)
{
    return party >= a->first && party <= a->last;
}

static void other_outfit(void *ctx, uint16_t party, dafl_roster *roster,
                         dafl_config *config, dafl_floor *floor)
{
    const split *a = ctx;

    (void)floor;
    if (is_misled(a, party) && a->what == CONFIG)
        config->tries ^= 1;
    if (is_misled(a, party) && a->what == ROSTER)
        roster->parties[2].id.curve_pk.b[5] ^= 4;
}

/* To a client: what it wants to hear. */
static void put_invite_for(dafl_writer *w, const dafl_client *c,
                           dafl_bytes body)
{
    dafl_invite m;

    assert_ok(dafl_get_invite(&m, body));
    m.roster = c->node.roster_hash;
    m.config = c->node.config_hash;
    dafl_put_invite(w, &m);
}

/* Client 0 dealt something else, and signed that too. */
static void put_other_setup(lab *l, dafl_writer *w, dafl_bytes body)
{
    dafl_dealer dealers[DAFL_CLIENTS_MAX];
    dafl_run_id run = lab_run_id(l);
    dafl_digest dealt;
    dafl_setup m;

    assert_ok(dafl_get_setup(&m, body));
    for (size_t i = 0; i < m.n; i++)
        dealers[i] = dafl_setup_dealer(&m, i);
    dealers[0].h_shares.b[31] ^= 1;
    dafl_context_dealt(&dealt, &run, lab_server(l)->enrolment, 0,
                       &dealers[0].h_shares);
    dafl_sign(&dealers[0].sig, &dealt, lab_identity(l, 0));
    dafl_put_setup(w, &m, dealers);
}

/* From a client: what an honest server would want to hear. The machine is made
 * to believe that the misled have signed what it wants, as a server that does
 * not look would; others are shown what they did sign. */
static void put_agreeing(lab *l, split *a, dafl_writer *w, const lab_letter *m)
{
    const dafl_server *s = lab_server(l);
    dafl_bytes body = m->envelope.body;
    dafl_setup_ack ack;
    dafl_end_msg end;

    switch (m->envelope.type) {
    case DAFL_MSG_SETUP_ACK:
        assert_ok(dafl_get_setup_ack(&ack, body));
        ack.h_setup = s->h_setup;
        dafl_put_setup_ack(w, &ack);
        break;
    case DAFL_MSG_READY:
        dafl_put_ready(w, &s->ctx);
        break;
    default:
        assert_ok(dafl_get_end_msg(&end, body));
        dafl_context_upload(&end.dig, &s->ctx2, m->from,
                            dafl_writer_bytes(&a->uploads[m->from]));
        a->ends[m->from] = end.sig;
        lab_sign_end(l, m->from, &s->ctx2, &end);
        dafl_put_end(w, &end);
    }
}

static void put_true_ends(const split *a, dafl_writer *w, dafl_bytes body)
{
    dafl_writer ends = {0};
    dafl_surv surv;

    assert_ok(dafl_get_surv(&surv, body));
    dafl_put_fixed(&ends, surv.ends.ptr, surv.ends.len);
    for (uint16_t u = a->first; u <= a->last; u++)
        if (dafl_members_has(&surv.u3, u))
            memcpy(ends.ptr +
                       dafl_members_rank(&surv.u3, u) * DAFL_SIGNATURE_BYTES,
                   a->ends[u].b, DAFL_SIGNATURE_BYTES);
    surv.ends = dafl_writer_bytes(&ends);
    dafl_put_surv(w, &surv);
    dafl_writer_drop(&ends);
}

static bool tell_two_stories(lab *l, lab_letter *m, void *ctx)
{
    split *a = ctx;
    dafl_writer w = {0};
    dafl_upload chunk;

    if (a->honest || (!is_misled(a, m->to) && !is_misled(a, m->from) &&
                      m->envelope.type != DAFL_MSG_SURV))
        return true;
    switch (m->envelope.type) {
    case DAFL_MSG_INVITE:
        put_invite_for(&w, lab_client(l, m->to), m->envelope.body);
        break;
    case DAFL_MSG_SETUP:
        if (a->what != DEALT)
            return true;
        put_other_setup(l, &w, m->envelope.body);
        break;
    case DAFL_MSG_SETUP_ACK:
    case DAFL_MSG_READY:
    case DAFL_MSG_END:
        put_agreeing(l, a, &w, m);
        break;
    case DAFL_MSG_UPLOAD:
        assert_ok(dafl_get_upload(&chunk, m->envelope.body));
        if (chunk.offset == 0)
            dafl_writer_clear(&a->uploads[m->from]);
        dafl_put_fixed(&a->uploads[m->from], chunk.chunk.ptr, chunk.chunk.len);
        return true;
    case DAFL_MSG_SURV: /* six signatures are enough */
        if (is_misled(a, m->to))
            return false;
        put_true_ends(a, &w, m->envelope.body);
        break;
    default:
        return true;
    }
    lab_letter_reseal(l, m, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    return true;
}

static void drop_uploads(split *a)
{
    for (size_t u = 0; u < COUNT(a->uploads); u++)
        dafl_writer_drop(&a->uploads[u]);
}

static lab_scenario split_scenario(split *a)
{
    lab_scenario s = lab_scenario_for(9, 3, random_u64());

    s.config.policy.n_min = 6;
    lab_scenario_collude(&s, 1);
    s.questions = 1;
    s.config.retries = 2;
    s.intercept = tell_two_stories;
    s.outfit = other_outfit;
    s.ctx = a;
    s.wrong_sums_expected = true;
    return s;
}

/* Whether all nine were summed, though three of them agreed to something else.
 */
static bool sums_both(bool stopped, object what)
{
    split a = {.what = what, .first = 6, .last = 8};
    lab_scenario s = split_scenario(&a);
    lab *l = lab_new(&s);
    dafl_members none = lab_members(l, 0), all = lab_everybody(l);
    dafl_members six = lab_members(l, 0x3f);
    leak *k = leak_new(l, &none, false);
    const lab_sum *sum;
    bool opened;

    (void)leak_run(k);
    sum = lab_sum_of(l, 0);
    opened = sum != NULL && dafl_members_equal(&sum->cohort, &all);
    for (uint16_t u = 6; u < 9; u++)
        assert_true(rogue_sent(l, u, DAFL_MSG_END, 1) > 0);
    if (stopped) {
        /* The others do not sign for them, whenever they are asked: they are
         * summed alone, if ever the server leaves these three out. */
        if (sum == NULL)
            assert_int_equal(dafl_server_fault(lab_server(l)), DAFL_E_QUORUM);
        else
            assert_true(dafl_members_equal(&sum->cohort, &six));
        for (uint16_t u = 0; u < 6; u++)
            assert_true(rogue_blamed(l, u, 9, DAFL_E_FORGED) > 0);
        for (uint32_t slot = 1; slot <= leak_last_slot(k); slot++)
            assert_int_equal(leak_dim(k, slot),
                             sum != NULL && slot == leak_last_slot(k) ? 1 : 0);
        lab_check_invariants(l);
    }
    leak_free(&k);
    lab_free(&l);
    drop_uploads(&a);
    return opened;
}

static bool config_split(bool stopped)
{
    return sums_both(stopped, CONFIG);
}

static bool roster_split(bool stopped)
{
    return sums_both(stopped, ROSTER);
}

static bool setup_split(bool stopped)
{
    return sums_both(stopped, DEALT);
}

/* S4. A server that does not know better: whether a client gives its secrets
 * to a run that it has not agreed to. */
static bool other_invitation(bool stopped)
{
    bool dealt = false;

    for (object i = CONFIG; i <= ROSTER; i++) {
        split a = {.what = i, .first = 6, .last = 8, .honest = true};
        lab_scenario s = split_scenario(&a);
        lab *l = lab_new(&s);
        dafl_members left = lab_members(l, 0x3f);
        if (stopped) {
            lab_check_done(l);
            lab_check_cohort(l, 0, &left);
        } else {
            (void)lab_run(l);
        }
        for (uint16_t u = 6; u < 9; u++) {
            dealt |= rogue_sent(l, u, DAFL_MSG_SHARES, UINT32_MAX) > 0;
            if (stopped)
                assert_int_equal(dafl_client_fault(lab_client(l, u)),
                                 DAFL_E_POLICY);
        }
        lab_free(&l);
    }
    return dealt;
}

/* ---- a config that a client does not want ---- */

#define UNWILLING 3

static void unwilling_outfit(void *ctx, uint16_t party, dafl_roster *roster,
                             dafl_config *config, dafl_floor *floor)
{
    const split *a = ctx;

    (void)roster;
    if (!is_misled(a, party))
        return;
    config->mode = a->mode;
    /* It accepts any cohort, or no plain text: whatever the config has not. */
    floor->any_cohort = a->mode != DAFL_MODE_MASKS;
    floor->plain = false;
}

static lab *unwilling_lab(split *a)
{
    lab_scenario s = rogue_scenario(random_u64(), tell_two_stories, a);

    s.questions = 1;
    s.config.retries = 2;
    s.outfit = unwilling_outfit;
    return lab_new(&s);
}

static void check_refused(lab *l)
{
    dafl_members left = lab_members(l, ~(1u << UNWILLING));

    lab_check_done(l);
    lab_check_cohort(l, 0, &left);
    assert_int_equal(lab_refused(l, UNWILLING), DAFL_E_POLICY);
    assert_null(lab_client(l, UNWILLING));
}

/* L8. g = 1, and nobody asked this client. */
static bool g1_without_optin(bool stopped)
{
    split a = {.what = MODE,
               .first = UNWILLING,
               .last = UNWILLING,
               .mode = DAFL_MODE_MASKS};
    lab *l = unwilling_lab(&a);
    bool summed;

    (void)lab_run(l);
    summed = rogue_sent(l, UNWILLING, DAFL_MSG_UPLOAD, UINT32_MAX) > 0;
    if (stopped)
        check_refused(l);
    lab_free(&l);
    drop_uploads(&a);
    return summed;
}

/* R6. Its config asks for no masks, and it has not allowed that. */
static bool plain_without_optin(bool stopped)
{
    split a = {.what = MODE,
               .first = UNWILLING,
               .last = UNWILLING,
               .mode = DAFL_MODE_NONE};
    lab *l = unwilling_lab(&a);
    bool clear;

    (void)lab_run(l);
    if (stopped)
        check_refused(l);
    clear = rogue_in_clear(l, UNWILLING, 1);
    lab_free(&l);
    drop_uploads(&a);
    return clear;
}

/* R6. What this program cannot do it refuses; it does not do less instead. */
static bool seal_becomes_masks(bool stopped)
{
    split a = {.what = MODE,
               .first = UNWILLING,
               .last = UNWILLING,
               .mode = DAFL_MODE_SEAL};
    lab *l = unwilling_lab(&a);
    bool summed;

    assert_true(stopped);
    check_refused(l);
    summed = rogue_sent(l, UNWILLING, DAFL_MSG_UPLOAD, UINT32_MAX) > 0;
    lab_free(&l);
    return summed;
}

/* ---- R6: whatever goes wrong ---- */

static void plain_server(void *ctx, uint16_t party, dafl_roster *roster,
                         dafl_config *config, dafl_floor *floor)
{
    const lab_scenario *s = ctx;

    (void)roster;
    (void)floor;
    if (party == s->k)
        config->mode = DAFL_MODE_NONE;
}

static size_t in_clear(const lab *l)
{
    size_t n = 0;

    for (uint16_t u = 0; u < lab_server_index(l); u++)
        for (uint32_t slot = 1; slot <= 3 * lab_config(l)->slots; slot++)
            n += rogue_in_clear(l, u, slot);
    return n;
}

/* Masks are the clients' business: a server that has none in its config, and
 * says so or not, gets none the less. */
static bool server_without_masks(bool stopped)
{
    size_t clear = 0;

    assert_true(stopped);
    for (int says_so = 0; says_so <= 1; says_so++) {
        lab_scenario s = lab_scenario_for(5, 1, random_u64());
        lab *l;
        s.outfit = plain_server;
        s.ctx = &s;
        s.questions = 1;
        s.config.retries = 2;
        s.wrong_sums_expected = true;
        l = lab_new(&s);
        if (says_so == 0)
            rogue_pretend(l);
        assert_int_equal(lab_run(l), LAB_FAILED);
        assert_int_equal(dafl_server_fault(lab_server(l)),
                         says_so == 1 ? DAFL_E_PARAMS : DAFL_E_SUM_INVALID);
        for (uint16_t u = 0; u < 5 && says_so == 1; u++)
            assert_int_equal(dafl_client_fault(lab_client(l, u)),
                             DAFL_E_POLICY);
        clear += in_clear(l);
        lab_check_invariants(l);
        lab_free(&l);
    }
    return clear > 0;
}

/* All trouble at once that the lab can make. */
static lab *troubled_lab(size_t i, dafl_mode mode)
{
    lab_scenario s =
        lab_scenario_for(i % 2 == 0 ? 6 : 9, i % 2 == 0 ? 1 : 3, random_u64());
    lab *l;

    s.questions = 4;
    s.config.mode = mode;
    s.floor.plain = mode == DAFL_MODE_NONE;
    s.config.policy.n_min = (uint16_t)(s.k - (i % 2 == 0 ? 1 : 3));
    lab_scenario_collude(&s, 1);
    if (mode == DAFL_MODE_MASKS) {
        s.net.drop = s.net.flip = s.net.truncate = (uint16_t)random_size(0, 20);
        s.net.delay = s.net.reorder = s.net.duplicate = 30;
    }
    l = lab_new(&s);
    for (size_t n = random_size(0, 12); n > 0 && mode == DAFL_MODE_MASKS; n--)
        (n % 3 == 0 ? lab_leave_crashing : lab_leave)(
            l, (uint16_t)random_size(0, s.k - 1u), (uint32_t)random_size(0, 3),
            (lab_phase)random_size(0, LAB_PHASES - 1), (lab_back)(n % 3));
    if (mode == DAFL_MODE_MASKS && i % 3 == 0)
        lab_crash_after(l, s.k, random_size(5, 60));
    return l;
}

/* The run ends with all its sums, which are right, or with a name. */
static bool any_failure(bool stopped)
{
    size_t clear = 0, failed = 0, plain;
    lab *l = troubled_lab(0, DAFL_MODE_NONE);

    assert_true(stopped);
    lab_check_done(l);
    plain = in_clear(l); /* it can be seen */
    assert_int_equal(plain, 6 * 4);
    lab_free(&l);
    for (size_t i = 0; i < 24; i++) {
        l = troubled_lab(i, DAFL_MODE_MASKS);
        if (lab_run(l) == LAB_DONE)
            lab_check_done(l);
        else
            assert_true(lab_outcome_of(l) == LAB_FAILED &&
                        dafl_server_fault(lab_server(l)) != DAFL_FAULT_NONE);
        failed += lab_outcome_of(l) == LAB_FAILED;
        lab_check_invariants(l);
        clear += in_clear(l);
        lab_free(&l);
    }
    print_message("%zu of 24 runs failed, by name\n", failed);
    return clear > 0;
}

const lab_attack attacks_setup[] = {
    {"S4 config_split", DAFL_WEAK_SPLIT, config_split},
    {"S4 roster_split", DAFL_WEAK_SPLIT, roster_split},
    {"S4 setup_split", DAFL_WEAK_SPLIT, setup_split},
    {"S4 other_invitation", DAFL_WEAK_PIN, other_invitation},
    {"L8 g1_without_optin", DAFL_WEAK_FLOOR, g1_without_optin},
    {"R6 plain_without_optin", DAFL_WEAK_FLOOR, plain_without_optin},
    {"R6 seal_becomes_masks", DAFL_WEAK_NOTHING, seal_becomes_masks},
    {"R6 server_without_masks", DAFL_WEAK_NOTHING, server_without_masks},
    {"R6 any_failure", DAFL_WEAK_NOTHING, any_failure},
    {0},
};
