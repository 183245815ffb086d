/* SPDX-License-Identifier: Apache-2.0 */
/* A server that has other things opened than the sum, or gives a client a key
 * of its own. */
#include "tests/lab/attack.h"

#include "tests/check.h"

#include "protocol/context.h"
#include "tests/lab/leak.h"
#include "tests/lab/rogue.h"
#include "tests/lab/unseal.h"

enum { CLIENTS = 6, CELL = 3, VICTIM = 2 };

/* The server does not get what is not its sum. */
static bool never(unseal_tap *t, unsigned i)
{
    (void)t;
    (void)i;
    return false;
}

/* Run to the end: whatever was opened in the first slot, the server burns it
 * and goes on in the next. The key holder has named this fault. */
static void run(unseal_tap *t, uint16_t cell_size, bool stopped,
                dafl_fault fault)
{
    lab_scenario s = unseal_scenario(CLIENTS, cell_size, t);
    lab *l = lab_new(&s);

    lab_check_done(l);
    if (stopped)
        assert_true(rogue_blamed(l, lab_holder_index(l), lab_server_index(l),
                                 fault) > 0);
    assert_int_equal(dafl_server_stat(lab_server(l)).slots, s.questions + 1);
    lab_free(&l);
}

/* ---- H6: without the clients ---- */

static void ask_for_victim(lab *l, unseal_query *q)
{
    q->cts = unseal_upload(l, VICTIM, 1);
}

static void no_signatures(unseal_tap *t, lab *l, unsigned i, unseal_query *q)
{
    (void)t;
    if (i > 0)
        return;
    ask_for_victim(l, q);
    q->conf = (dafl_conf){.signers = lab_members(l, 0)};
}

/* What is left of U3, with the digests and ENDs of those. */
static void only(lab *l, unseal_query *q, uint64_t bits)
{
    dafl_members u3 = lab_members(l, bits);
    static uint8_t digests[CLIENTS * DAFL_HASH_BYTES];
    static uint8_t ends[CLIENTS * DAFL_SIGNATURE_BYTES];
    size_t n = 0;

    for (uint16_t u = 0; u < CLIENTS; u++) {
        size_t rank = dafl_members_rank(&q->surv.u3, u);
        if (!dafl_members_has(&u3, u))
            continue;
        memcpy(digests + n * DAFL_HASH_BYTES,
               q->surv.digests.ptr + rank * DAFL_HASH_BYTES, DAFL_HASH_BYTES);
        memcpy(ends + n * DAFL_SIGNATURE_BYTES,
               q->surv.ends.ptr + rank * DAFL_SIGNATURE_BYTES,
               DAFL_SIGNATURE_BYTES);
        n++;
    }
    q->surv.u3 = u3;
    q->surv.digests = (dafl_bytes){digests, n * DAFL_HASH_BYTES};
    q->surv.ends = (dafl_bytes){ends, n * DAFL_SIGNATURE_BYTES};
}

/* Survivors that nobody has signed for; part of a cell; fewer than m. */
static void other_survivors(unseal_tap *t, lab *l, unsigned i, unseal_query *q)
{
    (void)t;
    if (i > 0)
        return;
    ask_for_victim(l, q);
    only(l, q, 0x7);
}

static void split_cell(unseal_tap *t, lab *l, unsigned i, unseal_query *q)
{
    (void)t;
    if (i > 0)
        return;
    ask_for_victim(l, q);
    only(l, q, 0x1f);
}

static void small_cohort(unseal_tap *t, lab *l, unsigned i, unseal_query *q)
{
    (void)t;
    if (i > 0)
        return;
    ask_for_victim(l, q);
    only(l, q, 1u << VICTIM);
}

/* Whether the victim's upload was opened. */
static bool opens_victim(const unseal_tap *t, unsigned i)
{
    assert_non_null(t->plain[VICTIM]);
    return t->answer[i] != NULL && memcmp(t->answer[i], t->plain[VICTIM],
                                          t->len * sizeof *t->answer[i]) == 0;
}

static bool opens_alone(bool stopped, uint16_t cell_size, dafl_fault fault,
                        void (*change)(unseal_tap *, lab *, unsigned,
                                       unseal_query *))
{
    unseal_tap t = {.change = change, .answers = never};
    bool won;

    check_seed();
    run(&t, cell_size, stopped, fault);
    won = opens_victim(&t, 0);
    unseal_drop(&t);
    return won;
}

static bool without_conf(bool stopped)
{
    return opens_alone(stopped, CELL, DAFL_E_QUORUM, no_signatures);
}

static bool other_u3(bool stopped)
{
    return opens_alone(stopped, CELL, DAFL_E_QUORUM, other_survivors);
}

static bool split(bool stopped)
{
    return opens_alone(stopped, CELL, DAFL_E_CELL_SPLIT, split_cell);
}

static bool below_m(bool stopped)
{
    return opens_alone(stopped, 1, DAFL_E_COHORT, small_cohort);
}

/* ---- H4, H5: a second opening ---- */

static void craft(unseal_tap *t, lab *l, unsigned i, unseal_query *q)
{
    (void)t;
    if (i == 1)
        unseal_craft(&q->cts, (size_t)q->open.len, lab_config(l)->contract.w);
}

/* After the sum was opened, one crafted query has the whole key. */
static bool second_opening(bool stopped)
{
    unseal_tap t = {.change = craft, .answers = never};
    int8_t key[DAFL_HE_N];
    lab_scenario s;
    bool won;
    lab *l;

    check_seed();
    s = unseal_scenario(CLIENTS, CELL, &t);
    l = lab_new(&s);
    while (t.asked < 3 && lab_step(l))
        ;
    assert_non_null(t.answer[0]);
    won = t.answer[1] != NULL &&
          unseal_key(key, t.answer[1], lab_config(l)->contract.w);
    if (stopped)
        assert_true(rogue_blamed(l, lab_holder_index(l), lab_server_index(l),
                                 DAFL_E_SLOT_SPENT) > 0);
    for (uint16_t u = 0; won && u < CLIENTS; u++) {
        dafl_writer upload = unseal_upload(l, u, 1);
        uint64_t *y = calloc(t.len, sizeof *y);
        assert_non_null(y);
        unseal(key, dafl_writer_bytes(&upload), y, t.len,
               lab_config(l)->contract.w);
        assert_memory_equal(y, t.plain[u], t.len * sizeof *y);
        free(y);
        dafl_writer_drop(&upload);
    }
    lab_free(&l);
    unseal_drop(&t);
    return won;
}

static void craft_first(unseal_tap *t, lab *l, unsigned i, unseal_query *q)
{
    if (i == 0) {
        craft(t, l, 1, q);
        q->conf = (dafl_conf){.signers = lab_members(l, 0)};
    }
}

static bool crafted_query(bool stopped)
{
    unseal_tap t = {.change = craft_first, .answers = never};
    int8_t key[DAFL_HE_N];
    bool won;

    check_seed();
    run(&t, CELL, stopped, DAFL_E_QUORUM);
    won = t.answer[0] != NULL && unseal_key(key, t.answer[0], DAFL_HE_W_MAX);
    unseal_drop(&t);
    return won;
}

/* ---- H7: a key of the server's own ---- */

typedef struct {
    dafl_writer pk;  /* the server's, to encrypt to it */
    dafl_digest ctx; /* what the others are READY for */
    bool known;      /* ctx is */
    bool kept;       /* the victim's READY */
} own_key;

/* The victim's READY is kept back until another's says what it should say. */
static bool keep_ready(lab *l, const lab_letter *m, own_key *own)
{
    dafl_writer w = {0}, body = {0};

    if (m->from == VICTIM) {
        own->kept = true;
    } else {
        assert_ok(dafl_get_ready(&own->ctx, m->envelope.body));
        own->known = true;
    }
    if (own->kept && own->known) {
        dafl_put_ready(&body, &own->ctx);
        lab_seal(l, &w, VICTIM, DAFL_MSG_READY, 1, 0, dafl_writer_bytes(&body));
        lab_post(l, VICTIM, lab_server_index(l), dafl_writer_bytes(&w), 0);
        dafl_writer_drop(&w);
        dafl_writer_drop(&body);
        own->kept = false;
    }
    return m->from != VICTIM;
}

/* The victim gets another key, with a signature of the server's; its READY
 * says what the others' do. */
static bool give_own_key(lab *l, lab_letter *m, void *ctx)
{
    own_key *own = ctx;
    dafl_segment segments[8];
    dafl_model_msg model;
    dafl_key_msg key;
    dafl_writer w = {0}, body = {0};

    if (m->envelope.slot != 1)
        return true;
    if (m->envelope.type == DAFL_MSG_READY)
        return keep_ready(l, m, own);
    if (m->envelope.type != DAFL_MSG_MODEL || m->to != VICTIM)
        return true;
    assert_ok(dafl_get_model(&model, m->envelope.body));
    assert_ok(dafl_get_key_msg(&key, model.key));
    assert_true(model.n <= COUNT(segments));
    for (size_t i = 0, n = model.n; i < n; i++)
        assert_ok(dafl_model_next(&model, &segments[i]));
    key.pk = dafl_writer_bytes(&own->pk);
    dafl_put_key_msg(&w, &key);
    assert_ok(dafl_get_model(&model, m->envelope.body));
    model.key = dafl_writer_bytes(&w);
    dafl_put_model(&body, &model, segments);
    lab_letter_reseal(l, m, dafl_writer_bytes(&body));
    dafl_writer_drop(&w);
    dafl_writer_drop(&body);
    return true;
}

static bool pk_substitution(bool stopped)
{
    own_key own = {.pk = {0}};
    lab_scenario s = rogue_scenario(0, give_own_key, &own);
    dafl_he_secret *sk = NULL;
    dafl_writer upload = {0};
    dafl_members none;
    dafl_why why = {{0}};
    dafl_he *he = NULL;
    uint64_t y[64];
    bool won;
    leak *k;
    lab *l;

    check_seed();
    s.seed = random_u64();
    lab_scenario_encrypt(&s);
    assert_ok(dafl_he_new(&he, s.config.contract.w, NULL, &why));
    assert_ok(dafl_he_keygen(he, &sk, &own.pk));
    l = lab_new(&s);
    none = lab_members(l, 0);
    k = leak_new(l, &none, false);
    (void)leak_run(k);
    lab_check_done(l);
    if (stopped)
        assert_true(rogue_blamed(l, VICTIM, lab_server_index(l), DAFL_E_AUTH) >
                    0);
    won = rogue_upload(l, VICTIM, 1, &upload);
    if (won) {
        /* The server reads it, and it is masked; nor do the masks go with those
         * of the others, who have another key. */
        dafl_members others = rogue_without(l, VICTIM);
        size_t n = lab_answer_len(l, 0);
        assert_true(n <= COUNT(y));
        assert_ok(dafl_he_decrypt(he, sk, dafl_writer_bytes(&upload), y, n));
        leak_decrypted(k, VICTIM, 1, y, n);
        for (size_t i = 0; i < leak_uploads(k); i++)
            if (leak_upload_at(k, i)->client == VICTIM &&
                leak_upload_at(k, i)->slot == 1)
                assert_int_equal(leak_masks_of(k, i), LEAK_MASKED);
        assert_true(leak_is_sum(k, 1, &others));
    }
    dafl_writer_drop(&upload);
    leak_free(&k);
    lab_free(&l);
    dafl_he_secret_free(&sk);
    dafl_he_free(&he);
    dafl_writer_drop(&own.pk);
    return won;
}

/* ---- H5: another key ---- */

/* Before it asks for the key of slot 2 the server asks for one of slot 1 again,
 * whose sum has been opened. */
static bool ask_again(lab *l, lab_letter *m, void *ctx)
{
    dafl_writer w = {0};

    (void)ctx;
    if (m->envelope.type != DAFL_MSG_ASK || m->envelope.slot != 2)
        return true;
    lab_seal(l, &w, m->from, DAFL_MSG_ASK, 1, m->envelope.seq - 1,
             (dafl_bytes){0});
    lab_post(l, m->from, m->to, dafl_writer_bytes(&w), 0);
    dafl_writer_drop(&w);
    lab_post(l, m->from, m->to, (dafl_bytes){m->bytes, m->len}, 0);
    return false;
}

/* H5. A slot has one key, also when that is gone. Clients would sign nothing
 * for a second one: more than one check stands behind this. */
static bool second_key(bool stopped)
{
    lab_scenario s = lab_scenario_for(CLIENTS, CELL, random_u64());
    size_t keys;
    lab *l;

    lab_scenario_encrypt(&s);
    s.intercept = ask_again;
    l = lab_new(&s);
    assert_int_equal(lab_run(l), LAB_DONE);
    keys = rogue_sent(l, lab_holder_index(l), DAFL_MSG_KEY, 1);
    assert_int_equal(rogue_blamed(l, lab_holder_index(l), lab_server_index(l),
                                  DAFL_E_SLOT_SPENT),
                     stopped);
    lab_free(&l);
    return keys > 1;
}

const lab_attack attacks_seal[] = {
    {"H4 crafted_query", DAFL_WEAK_OPENING, crafted_query},
    {"H5 second_opening", DAFL_WEAK_ONE_OPENING, second_opening},
    {"H5 second_key", DAFL_WEAK_NOTHING, second_key},
    {"H6 open_without_conf", DAFL_WEAK_OPENING, without_conf},
    {"H6 open_other_u3", DAFL_WEAK_OPENING, other_u3},
    {"H6 open_split_cell", DAFL_WEAK_OPENING, split},
    {"H6 open_below_m", DAFL_WEAK_OPENING, below_m},
    {"H7 pk_substitution", DAFL_WEAK_HOLDER_KEY, pk_substitution},
    {0},
};
