/* SPDX-License-Identifier: Apache-2.0 */
/* A server that tells one client of other members or of an older enrolment
 * (S12, S13), or in another's name (M5); and a client that sends other keys
 * than it signed for (M6), or signs badly (M2). Where no check is named more
 * than one stands behind it, so that without one the client still gives nothing
 * away; what is asserted is that the lie is named where it is heard. */
#include "tests/check.h"

#include "crypto/he.h"
#include "tests/lab/attack.h"
#include "tests/lab/rogue.h"

/* The victim is alone in no cell: twelve in cells of three. */
enum { VICTIM = 4, MATE = 5, FIRST_OF_OTHERS = 6 };

typedef struct {
    const char *name;
    dafl_msg_type type; /* in which they are missing */
    uint16_t first, n;  /* who is */
    dafl_fault named;
} missing;

static const missing cases[] = {
    {"SETUP without the victim", DAFL_MSG_SETUP, VICTIM, 1, DAFL_E_AUTH},
    {"SETUP without a mate", DAFL_MSG_SETUP, MATE, 1, DAFL_E_CELL_SPLIT},
    {"SETUP of six", DAFL_MSG_SETUP, FIRST_OF_OTHERS, 6, DAFL_E_PARAMS},
    {"PEERS without the victim's cell", DAFL_MSG_PEERS, 3, 3, DAFL_E_AUTH},
    {"PEERS without a mate", DAFL_MSG_PEERS, MATE, 1, DAFL_E_CELL_SPLIT},
    {"PEERS of six", DAFL_MSG_PEERS, FIRST_OF_OTHERS, 6, DAFL_E_PARAMS},
};

static bool is_missing(const missing *a, uint16_t client)
{
    return client >= a->first && client < a->first + a->n;
}

static void shorten_peers(lab *l, const missing *a, lab_letter *m)
{
    dafl_peer peers[DAFL_CLIENTS_MAX];
    dafl_peers list;
    dafl_writer w = {0};
    uint16_t n = 0;

    assert_ok(dafl_get_peers(&list, m->envelope.body));
    for (size_t i = 0; i < list.n; i++) {
        peers[n] = dafl_peers_at(&list, i);
        if (!is_missing(a, peers[n].client))
            n++;
    }
    dafl_put_peers(&w, peers, n);
    lab_letter_reseal(l, m, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
}

static void shorten_setup(lab *l, const missing *a, lab_letter *m)
{
    rogue_setup all = rogue_take_apart(m), s = {.m = all.m};
    size_t keys = all.m.n_slots * (size_t)DAFL_SLOT_KEYS_BYTES;

    s.m.n = 0;
    for (uint16_t u = 0; u < all.m.n; u++) {
        if (is_missing(a, u))
            continue;
        s.dealers[s.m.n++] = all.dealers[u];
        dafl_put_fixed(&s.keys, rogue_keys_in(&all, u, 1), keys);
        /* One packet less than there are members, whoever is one. */
        if (u != VICTIM &&
            s.packets.len < (all.m.n - a->n - 1u) * (size_t)all.m.packet_len)
            dafl_put_fixed(&s.packets, rogue_packet_in(&all, u, VICTIM),
                           all.m.packet_len);
    }
    rogue_put_together(l, m, &s);
    dafl_writer_drop(&all.packets);
    dafl_writer_drop(&all.keys);
}

static bool leave_out(lab *l, lab_letter *m, void *ctx)
{
    const missing *a = ctx;

    if (m->to != VICTIM || m->envelope.type != a->type)
        return true;
    if (a->type == DAFL_MSG_PEERS)
        shorten_peers(l, a, m);
    else
        shorten_setup(l, a, m);
    return true;
}

static lab_scenario crowd(lab_intercept *intercept, void *ctx)
{
    lab_scenario s = lab_scenario_for(12, 3, random_u64());

    s.config.policy.n_min = 9;
    lab_scenario_collude(&s, 1);
    s.config.policy.a = 0; /* six would have a threshold */
    s.intercept = intercept;
    s.ctx = ctx;
    return s;
}

/* S12. The victim goes no further, and the others have their sums. */
static bool other_members(bool stopped)
{
    bool went_on = false;

    assert_true(stopped);
    for (size_t i = 0; i < COUNT(cases); i++) {
        missing a = cases[i];
        lab_scenario s = crowd(leave_out, &a);
        lab *l = lab_new(&s);
        dafl_members left = rogue_without(l, VICTIM);
        print_message("%s\n", a.name);
        lab_check_done(l);
        lab_check_cohort(l, 0, &left);
        assert_true(rogue_blamed(l, VICTIM, lab_server_index(l), a.named) > 0);
        went_on |= rogue_sent(l, VICTIM, DAFL_MSG_SETUP_ACK, UINT32_MAX) > 0 ||
                   (a.type == DAFL_MSG_PEERS &&
                    rogue_sent(l, VICTIM, DAFL_MSG_SHARES, UINT32_MAX) > 0);
        lab_free(&l);
    }
    return went_on;
}

/* ---- an older enrolment ---- */

static bool invite_to_the_first(lab *l, lab_letter *m, void *ctx)
{
    dafl_writer w = {0};
    dafl_invite invite;

    (void)ctx;
    if (m->to != VICTIM || m->envelope.type != DAFL_MSG_INVITE)
        return true;
    assert_ok(dafl_get_invite(&invite, m->envelope.body));
    if (invite.enrolment < 2)
        return true;
    invite.enrolment = 0;
    dafl_put_invite(&w, &invite);
    lab_letter_reseal(l, m, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    return true;
}

/* S13. Invited, in a new message, to an enrolment before the one it is in. */
static bool older_enrolment(bool stopped)
{
    lab_scenario s = crowd(invite_to_the_first, NULL);
    dafl_members left;
    size_t enrolled;
    lab *l;

    assert_true(stopped);
    s.config.slots = 1;
    l = lab_new(&s);
    left = rogue_without(l, VICTIM);
    lab_check_done(l);
    lab_check_cohort(l, 2, &left);
    assert_true(rogue_blamed(l, VICTIM, lab_server_index(l), DAFL_E_REPLAY) >
                0);
    enrolled = lab_count(l, VICTIM, DAFL_EVENT_ENROLL, DAFL_FAULT_COUNT);
    lab_free(&l);
    return enrolled > 2;
}

/* ---- keys that are not those that were signed for ---- */

/* The first commitment of the client's keys, behind the number of them. */
static bool change_a_key(lab *l, lab_letter *m, void *ctx)
{
    const size_t at = 32 + 32 + 64 + 4 + 32;
    dafl_writer w = {0};

    (void)ctx;
    if (m->from != VICTIM || m->envelope.type != DAFL_MSG_ENROLL)
        return true;
    dafl_put_fixed(&w, m->envelope.body.ptr, m->envelope.body.len);
    assert_true(w.len > at);
    w.ptr[at] ^= 1;
    lab_letter_reseal(l, m, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    return true;
}

/* M6. Passed on, they would make everybody refuse the setup, and nobody could
 * tell whose fault it is. */
static bool other_hk(bool stopped)
{
    lab_scenario s = crowd(change_a_key, NULL);
    dafl_members left;
    size_t refused;
    lab *l = lab_new(&s);

    assert_true(stopped);
    left = rogue_without(l, VICTIM);
    lab_check_done(l);
    lab_check_cohort(l, 0, &left);
    assert_true(rogue_blamed(l, lab_server_index(l), VICTIM, DAFL_E_AUTH) > 0);
    refused = lab_count(l, 0, DAFL_EVENT_ERROR, DAFL_FAULT_COUNT);
    lab_free(&l);
    return refused > 0;
}

/* Both SIGN and END finish with a signature. */
static bool sign_badly(lab *l, lab_letter *m, void *ctx)
{
    const dafl_msg_type *type = ctx;
    dafl_writer w = {0};

    if (m->from != VICTIM || m->envelope.type != *type)
        return true;
    dafl_put_fixed(&w, m->envelope.body.ptr, m->envelope.body.len);
    w.ptr[w.len - DAFL_SIGNATURE_BYTES] ^= 1;
    lab_letter_reseal(l, m, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    return true;
}

/* M2. Shown to the others in CONF or SURV, a signature that does not hold would
 * make them refuse every slot. */
static bool bad_signature(bool stopped)
{
    dafl_msg_type types[] = {DAFL_MSG_SIGN, DAFL_MSG_END};
    uint32_t failed = 0;

    assert_true(stopped);
    for (size_t i = 0; i < COUNT(types); i++) {
        lab_scenario s = crowd(sign_badly, &types[i]);
        lab *l = lab_new(&s);
        assert_int_equal(lab_run(l), LAB_DONE);
        assert_true(rogue_blamed(l, lab_server_index(l), VICTIM, DAFL_E_AUTH) >
                    0);
        failed += dafl_server_stat(lab_server(l)).failed;
        lab_free(&l);
    }
    return failed > 0;
}

/* ---- a client that is out ---- */

/* C6. The server has another config all of a sudden: the client goes, and no
 * secret of a slot that is to come stays on its disk. */
static bool out_of_the_run(bool stopped)
{
    lab_scenario s = crowd(NULL, NULL);
    dafl_writer body = {0}, w = {0};
    bool kept = false;
    lab *l = lab_new(&s);

    assert_true(stopped);
    assert_true(lab_run_to(l, DAFL_MSG_MODEL, 1));
    assert_non_null(lab_disk_secret(l, VICTIM, 3).ptr);
    dafl_put_invite(&body, &(dafl_invite){.enrolment = 1});
    lab_seal(l, &w, lab_server_index(l), DAFL_MSG_INVITE, 0, UINT64_C(1) << 40,
             dafl_writer_bytes(&body));
    lab_post(l, lab_server_index(l), VICTIM, dafl_writer_bytes(&w), 0);
    assert_int_equal(lab_run(l), LAB_DONE);
    assert_int_equal(dafl_client_fault(lab_client(l, VICTIM)), DAFL_E_POLICY);
    for (uint32_t slot = 1; slot <= lab_config(l)->slots; slot++)
        kept |= lab_disk_secret(l, VICTIM, slot).ptr != NULL;
    dafl_writer_drop(&body);
    dafl_writer_drop(&w);
    lab_free(&l);
    return kept;
}

/* ---- another speaker ---- */

/* A message signed by `from`, whoever brings it. */
static void say(lab *l, uint16_t from, uint16_t to, dafl_msg_type type,
                dafl_bytes body)
{
    uint16_t server = lab_server_index(l);
    dafl_writer w = {0};

    lab_seal(l, &w, from, type, 0, UINT64_C(1) << 40, body);
    lab_post(l, to == server ? MATE : server, to, dafl_writer_bytes(&w), 0);
    dafl_writer_drop(&w);
}

/* M5. A client's signature does not make a word of the server's, for clients
 * and for the key holder; nor does the server listen to itself. */
static bool other_speaker(bool stopped)
{
    lab_scenario s = lab_scenario_for(6, 3, random_u64());
    dafl_writer over = {0}, hello = {0};
    dafl_members all;
    uint16_t server;
    bool heard;
    lab *l;

    assert_true(stopped);
    if (dafl_he_built())
        lab_scenario_encrypt(&s);
    l = lab_new(&s);
    all = lab_everybody(l);
    server = lab_server_index(l);
    dafl_put_result(&over, &(dafl_result){.fault = 0});
    dafl_put_hello(&hello, &(dafl_hello){.keys = 0});
    assert_true(lab_run_to(l, DAFL_MSG_CAST, 0));
    say(l, MATE, VICTIM, DAFL_MSG_RESULT, dafl_writer_bytes(&over));
    say(l, server, server, DAFL_MSG_HELLO, dafl_writer_bytes(&hello));
    if (dafl_he_built())
        say(l, MATE, lab_holder_index(l), DAFL_MSG_RESULT,
            dafl_writer_bytes(&over));
    assert_int_equal(lab_run(l), LAB_DONE);
    for (uint32_t q = 0; q < s.questions; q++)
        lab_check_cohort(l, q, &all);
    heard = rogue_blamed(l, VICTIM, server, DAFL_E_AUTH) != 1 ||
            rogue_blamed(l, server, server, DAFL_E_AUTH) != 1 ||
            (dafl_he_built() &&
             rogue_blamed(l, lab_holder_index(l), MATE, DAFL_E_AUTH) != 1);
    dafl_writer_drop(&over);
    dafl_writer_drop(&hello);
    lab_free(&l);
    return heard;
}

const lab_attack attacks_members[] = {
    {"C6 out_of_the_run", DAFL_WEAK_NOTHING, out_of_the_run},
    {"M2 bad_signature", DAFL_WEAK_NOTHING, bad_signature},
    {"M5 other_speaker", DAFL_WEAK_NOTHING, other_speaker},
    {"M6 other_hk", DAFL_WEAK_NOTHING, other_hk},
    {"S12 other_members", DAFL_WEAK_NOTHING, other_members},
    {"S13 older_enrolment", DAFL_WEAK_NOTHING, older_enrolment},
    {0},
};
