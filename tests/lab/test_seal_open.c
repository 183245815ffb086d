/* SPDX-License-Identifier: Apache-2.0 */
/* What a server, a key holder or both together get from openings. H3
 * single_ciphertext_opened: a client's upload, decrypted, is masked; H4
 * crafted_query: so it is with the slot's whole key; H5 one_open_per_slot: the
 * same answer again and no other; H7 pk_substitution: with two keys masks do
 * not cancel; H10 keyholder_blind: what the key holder sees is uniform. Attacks
 * that a check stops are in attack_seal.c. */
#include "tests/check.h"
#include "tests/noise.h"

#include "crypto/he_inside.h"
#include "crypto/mask.h"
#include "lib/ring.h"
#include "protocol/context.h"
#include "protocol/holder_state.h"
#include "protocol/server_state.h"
#include "tests/lab/audited.h"
#include "tests/lab/leak.h"
#include "tests/lab/rogue.h"
#include "tests/lab/unseal.h"

enum { W = DAFL_HE_W_MAX };

static size_t holder_errors(const lab *l, dafl_fault fault)
{
    return rogue_blamed(l, lab_holder_index(l), lab_server_index(l), fault);
}

/* ---- H3 single_ciphertext_opened, H4 crafted_query ---- */

static bool only_after_first(unseal_tap *t, unsigned i)
{
    (void)t;
    return i > 0;
}

static void craft(unseal_tap *t, lab *l, unsigned i, unseal_query *q)
{
    (void)t;
    if (i == 0)
        unseal_craft(&q->cts, (size_t)q->open.len, lab_config(l)->contract.w);
}

static void key_holder_helps(unseal_tap *t, lab *l, unsigned i, unseal_query *q)
{
    (void)t;
    if (i == 0)
        q->cts = unseal_upload(l, 2, 1);
}

/* With every upload of slot 1 decrypted the attacker has no more than with
 * masks alone: the sum over those whose shares it was given. */
static void check_masked(leak *k, lab *l, uint64_t *const *y, size_t n)
{
    dafl_members all = lab_everybody(l);
    statistics noise = {.n = 0};

    for (uint16_t u = 0; u < all.n; u++) {
        look_at_words(&noise, y[u], n, W);
        leak_decrypted(k, u, 1, y[u], n);
    }
    assert_true(is_uniform(&noise));
    for (size_t i = 0; i < leak_uploads(k); i++)
        if (leak_upload_at(k, i)->slot == 1)
            assert_int_equal(leak_masks_of(k, i), LEAK_MASKED);
    assert_int_equal(leak_dim(k, 1), 1);
    assert_true(leak_is_sum(k, 1, &all));
    assert_true(leak_is_real(k, 1));
    assert_true(leak_run_is_of_cells(k));
}

/* Both spend the slot's one opening, with a quorum: no check stops them. */
static void an_upload_that_is_opened_is_masked(void **state)
{
    unseal_tap t = {.change = key_holder_helps, .answers = only_after_first};
    lab_scenario s = unseal_scenario(6, 3, &t);
    dafl_members none = dafl_members_none(6);
    lab *l = lab_new(&s);
    leak *k = leak_new(l, &none, false);

    (void)state;
    (void)leak_run(k);
    lab_check_done(l);
    assert_non_null(t.answer[0]);
    assert_memory_equal(t.answer[0], t.plain[2], t.len * sizeof *t.answer[0]);
    check_masked(k, l, t.plain, t.len);
    leak_free(&k);
    lab_free(&l);
    unseal_drop(&t);
}

static void
a_crafted_query_has_the_key_and_the_key_has_masked_uploads(void **state)
{
    unseal_tap t = {.change = craft, .answers = only_after_first};
    lab_scenario s = unseal_scenario(6, 3, &t);
    dafl_members none = dafl_members_none(6);
    uint64_t *y[6], *next;
    statistics noise = {.n = 0};
    int8_t key[DAFL_HE_N];
    dafl_audit_report *r;
    dafl_writer upload;
    leak *k;
    lab *l;

    (void)state;
    s.audit = true;
    l = lab_new(&s);
    k = leak_new(l, &none, false);
    (void)leak_run(k);
    lab_check_done(l);
    assert_non_null(t.answer[0]);
    assert_true(unseal_key(key, t.answer[0], W));
    for (uint16_t u = 0; u < 6; u++) {
        y[u] = calloc(t.len, sizeof *y[u]);
        assert_non_null(y[u]);
        upload = unseal_upload(l, u, 1);
        unseal(key, dafl_writer_bytes(&upload), y[u], t.len, W);
        dafl_writer_drop(&upload);
        assert_memory_equal(y[u], t.plain[u], t.len * sizeof *y[u]);
    }
    check_masked(k, l, y, t.len);
    /* Slot 2 asks the same question again, with another key. */
    assert_int_equal(dafl_server_stat(lab_server(l)).slots, s.questions + 1);
    next = y[0];
    upload = unseal_upload(l, 0, 2);
    unseal(key, dafl_writer_bytes(&upload), next, t.len, W);
    dafl_writer_drop(&upload);
    look_at_words(&noise, next, t.len, W);
    assert_true(is_uniform(&noise));
    /* And the logs tell that something else was opened than the server says. */
    r = audited_judge_lab(l);
    assert_int_equal(r->n_found, 1);
    assert_int_equal(audited_count(r, DAFL_AUDIT_SPLIT, lab_holder_index(l)),
                     1);
    dafl_audit_report_free(&r);
    for (uint16_t u = 0; u < 6; u++)
        free(y[u]);
    leak_free(&k);
    lab_free(&l);
    unseal_drop(&t);
}

/* ---- H5 one_open_per_slot ---- */

/* The first answer is lost on its way; the key holder may have restarted when
 * it is asked again. */
static void the_same_opening_gets_the_same_answer(void **state)
{
    (void)state;
    for (int restarts = 0; restarts <= 1; restarts++) {
        unseal_tap t = {.answers = only_after_first};
        lab_scenario s = unseal_scenario(5, 1, &t);
        lab *l = lab_new(&s);
        while (t.answer[0] == NULL && lab_step(l))
            ;
        if (restarts)
            lab_crash(l, lab_holder_index(l), 100);
        lab_check_done(l);
        assert_int_equal(t.asked, 2);
        assert_non_null(t.answer[1]);
        assert_memory_equal(t.answer[0], t.answer[1],
                            t.len * sizeof *t.answer[0]);
        /* No slot is lost. */
        assert_int_equal(dafl_server_stat(lab_server(l)).slots, s.questions);
        lab_free(&l);
        unseal_drop(&t);
    }
}

static void another_later(unseal_tap *t, lab *l, unsigned i, unseal_query *q)
{
    (void)t;
    if (i == 1)
        q->cts = unseal_upload(l, 2, 1);
}

static void another_opening_gets_none(void **state)
{
    (void)state;
    for (int restarts = 0; restarts <= 1; restarts++) {
        unseal_tap t = {.change = another_later, .answers = only_after_first};
        lab_scenario s = unseal_scenario(5, 1, &t);
        lab *l = lab_new(&s);
        while (t.answer[0] == NULL && lab_step(l))
            ;
        assert_null(lab_holder(l)->key);
        if (restarts)
            lab_crash(l, lab_holder_index(l), 100);
        lab_check_done(l);
        assert_null(t.answer[1]);
        assert_int_equal(holder_errors(l, DAFL_E_SLOT_SPENT), 1);
        assert_int_equal(dafl_server_stat(lab_server(l)).slots,
                         s.questions + 1);
        lab_free(&l);
        unseal_drop(&t);
    }
}

/* ---- what cannot be opened ---- */

static void break_residue(unseal_tap *t, lab *l, unsigned i, unseal_query *q)
{
    (void)t;
    if (i == 0) {
        q->cts = unseal_upload(l, 2, 1);
        memset(q->cts.ptr, 0xff, 9); /* two residues that are too large */
    }
}

/* The key is gone with it; whatever follows finds none. */
static void a_malformed_vector_spends_the_slot(void **state)
{
    unseal_tap t = {.change = break_residue};
    lab_scenario s = unseal_scenario(5, 1, &t);
    lab *l = lab_new(&s);
    const lab_seen *chunk;
    dafl_writer again = {0};
    size_t at = 0;

    (void)state;
    while (holder_errors(l, DAFL_E_SEAL) == 0 && lab_step(l))
        ;
    assert_null(lab_holder(l)->key);
    /* The same chunks once more, without another OPEN. */
    for (uint64_t seq = 0;
         (chunk = lab_find(l, &at, LAB_DELIVERED, LAB_ANYBODY,
                           lab_holder_index(l), DAFL_MSG_UPLOAD, 1)) != NULL;
         seq++) {
        lab_seal(l, &again, lab_server_index(l), DAFL_MSG_UPLOAD, 1,
                 chunk->seq + 1000, chunk->envelope.body);
        assert_ok(
            dafl_holder_receive(lab_holder(l), dafl_writer_bytes(&again)));
        dafl_writer_clear(&again);
    }
    dafl_writer_drop(&again);
    assert_null(t.answer[0]);
    assert_int_equal(holder_errors(l, DAFL_E_SEAL), 1);
    lab_free(&l);
    unseal_drop(&t);
}

/* ---- uploads that cancel ---- */

static void negate(dafl_writer *cts)
{
    size_t at = 0;

    while (at < cts->len)
        for (unsigned p = 0; p < 2 * DAFL_HE_PRIMES; p++) {
            unsigned prime = p % DAFL_HE_PRIMES;
            uint64_t row[DAFL_HE_N];
            assert_true(dafl_he_unpack(row, cts->ptr + at, prime));
            for (size_t i = 0; i < DAFL_HE_N; i++)
                row[i] = row[i] == 0 ? 0 : dafl_he_primes[prime] - row[i];
            dafl_he_pack(cts->ptr + at, row, prime);
            at += dafl_he_row_bytes(prime);
        }
}

/* Client 1 waits for the upload of client 0 and sends the opposite. Nobody else
 * has uploaded yet. */
static bool cancel(lab *l, lab_letter *m, void *ctx)
{
    dafl_writer body = {0}, bytes = {0};
    dafl_end_msg end;
    dafl_upload chunk;
    rogue_view view;

    (void)ctx;
    if (m->envelope.slot != 1)
        return true;
    if (m->envelope.type == DAFL_MSG_CAST && m->to > 0)
        lab_stall(l, m->to, m->to == 1 ? 1000 : 3000);
    if (m->from != 1 || (m->envelope.type != DAFL_MSG_UPLOAD &&
                         m->envelope.type != DAFL_MSG_END))
        return true;
    bytes = unseal_upload(l, 0, 1);
    negate(&bytes);
    if (m->envelope.type == DAFL_MSG_UPLOAD) {
        assert_ok(dafl_get_upload(&chunk, m->envelope.body));
        chunk.chunk.ptr = bytes.ptr + chunk.offset;
        dafl_put_upload(&body, &chunk);
    } else {
        assert_ok(dafl_get_end_msg(&end, m->envelope.body));
        assert_true(rogue_was_cast(l, 1, 1, &view));
        dafl_context_upload(&end.dig, &view.ctx2, 1, dafl_writer_bytes(&bytes));
        lab_sign_end(l, 1, &view.ctx2, &end);
        dafl_put_end(&body, &end);
    }
    lab_letter_reseal(l, m, dafl_writer_bytes(&body));
    dafl_writer_drop(&bytes);
    dafl_writer_drop(&body);
    return true;
}

static void uploads_that_cancel_cost_the_second_its_place(void **state)
{
    lab_scenario s = rogue_scenario(random_u64(), cancel, NULL);
    dafl_members others;
    lab *l;

    (void)state;
    lab_scenario_encrypt(&s);
    s.wrong_sums_expected = false;
    l = lab_new(&s);
    lab_check_done(l);
    assert_int_equal(rogue_blamed(l, lab_server_index(l), 1, DAFL_E_SEAL), 1);
    others = rogue_without(l, 1);
    lab_check_cohort(l, 0, &others);
    lab_free(&l);
}

/* ---- H7 pk_substitution: two keys ---- */

typedef struct {
    dafl_he *he;
    dafl_he_secret *sk;
    dafl_writer pk;
    dafl_digest ctx;
} second_key;

/* The key holder, with the server, signs another key for client 2 alone; and
 * the server overlooks that it then has another context. */
static bool give_second_key(lab *l, lab_letter *m, void *ctx)
{
    second_key *k = ctx;
    const dafl_server *server = lab_server(l);
    dafl_segment segments[8];
    dafl_writer key = {0}, body = {0};
    dafl_digest he, said;
    dafl_model_msg model, copy;
    dafl_key_msg msg = {.pk = dafl_writer_bytes(&k->pk)};

    if (m->envelope.slot != 1)
        return true;
    if (m->envelope.type == DAFL_MSG_READY) {
        dafl_put_ready(&body, &server->ctx);
    } else if (m->envelope.type == DAFL_MSG_MODEL && m->to == 2) {
        assert_ok(dafl_get_model(&model, m->envelope.body));
        copy = model;
        assert_true(model.n <= COUNT(segments));
        for (size_t i = 0; i < model.n; i++)
            assert_ok(dafl_model_next(&copy, &segments[i]));
        dafl_context_he(&he, msg.pk);
        dafl_context_key(&said, &server->node.run, &server->h_setup, 1, &he);
        dafl_sign(&msg.sig, &said, lab_identity(l, lab_holder_index(l)));
        dafl_put_key_msg(&key, &msg);
        model.key = dafl_writer_bytes(&key);
        dafl_put_model(&body, &model, segments);
    } else
        return true;
    lab_letter_reseal(l, m, dafl_writer_bytes(&body));
    dafl_writer_drop(&key);
    dafl_writer_drop(&body);
    return true;
}

static void masks_of_clients_with_two_keys_do_not_cancel(void **state)
{
    second_key second = {.he = NULL};
    lab_scenario s = rogue_scenario(random_u64(), give_second_key, &second);
    dafl_members none = dafl_members_none(ROGUE_CLIENTS), others;
    dafl_writer upload;
    dafl_why why = {{0}};
    uint64_t y[64];
    leak *k;
    lab *l;

    (void)state;
    lab_scenario_encrypt(&s);
    assert_ok(dafl_he_new(&second.he, W, NULL, &why));
    assert_ok(dafl_he_keygen(second.he, &second.sk, &second.pk));
    l = lab_new(&s);
    k = leak_new(l, &none, true);
    (void)leak_run(k);
    lab_check_done(l);
    upload = unseal_upload(l, 2, 1);
    assert_true(lab_answer_len(l, 0) <= COUNT(y));
    assert_ok(dafl_he_decrypt(second.he, second.sk, dafl_writer_bytes(&upload),
                              y, lab_answer_len(l, 0)));
    leak_decrypted(k, 2, 1, y, lab_answer_len(l, 0));
    others = rogue_without(l, 2);
    assert_int_equal(leak_dim(k, 1), 1);
    assert_true(leak_is_sum(k, 1, &others));
    dafl_writer_drop(&upload);
    leak_free(&k);
    lab_free(&l);
    dafl_he_secret_free(&second.sk);
    dafl_he_free(&second.he);
    dafl_writer_drop(&second.pk);
}

/* ---- H10 keyholder_blind ---- */

typedef struct {
    statistics seen; /* by the key holder */
    uint64_t *blind; /* of the slot at hand */
    size_t len, slots;
    dafl_writer words;
} blindness;

/* What the key holder has of the sum, if it knew every self mask: `words` of an
 * answer. */
static bool is_sum(lab *l, uint32_t slot, const uint64_t *words, size_t n)
{
    uint32_t question = lab_slot_question(l, slot);
    size_t t = lab_server(l)->t, same = 0;
    uint64_t *left = calloc(n, sizeof *left), *sum = calloc(n, sizeof *sum);
    int64_t *x = calloc(n, sizeof *x);

    assert_true(left != NULL && sum != NULL && x != NULL);
    memcpy(left, words, n * sizeof *left);
    for (uint16_t u = 0; u < lab_server_index(l); u++) {
        dafl_mask mask = {.negate = true};
        rogue_view view;
        dafl_key b;
        assert_true(rogue_was_cast(l, u, slot, &view));
        assert_true(rogue_rebuild(l, u, slot, DAFL_REVEAL_B, t, &b));
        dafl_key_self(&mask.key, &b, &view.ctx2, u);
        dafl_mask_apply(left, n, W, &mask, 1, NULL);
        lab_answer(l, u, question, x);
        for (size_t i = 0; i < n; i++)
            sum[i] += (uint64_t)x[i];
    }
    for (size_t i = 0; i < n; i++)
        same += (left[i] - sum[i]) << (64 - W) == 0;
    free(left);
    free(sum);
    free(x);
    assert_true(same == n || same < 3); /* by chance none */
    return same == n;
}

static bool watch_holder(lab *l, lab_letter *m, void *ctx)
{
    blindness *b = ctx;
    const dafl_server *server = lab_server(l);
    uint64_t *words;
    dafl_err err = DAFL_OK;

    if (m->to == lab_holder_index(l) && m->envelope.type == DAFL_MSG_OPEN) {
        b->len = (size_t)server->shape.len;
        free(b->blind);
        b->blind = calloc(b->len, sizeof *b->blind);
        assert_non_null(b->blind);
        memcpy(b->blind, server->blind, b->len * sizeof *b->blind);
    }
    if (m->from != lab_holder_index(l) || m->envelope.type != DAFL_MSG_UPLOAD)
        return true;
    assert_int_equal(dafl_node_take_chunk(&b->words, m->envelope.body,
                                          b->len * (W / 8), &err),
                     DAFL_FAULT_NONE);
    if (b->words.len < b->len * (W / 8))
        return true;
    look_at(&b->seen, b->words.ptr, b->words.len);
    words = calloc(b->len, sizeof *words);
    assert_non_null(words);
    dafl_ring_add_words(words, b->words.ptr, b->len, W, false);
    assert_false(is_sum(l, m->envelope.slot, words, b->len));
    /* The control: without r it would be. */
    for (size_t i = 0; i < b->len; i++)
        words[i] -= b->blind[i];
    assert_true(is_sum(l, m->envelope.slot, words, b->len));
    free(words);
    b->slots++;
    dafl_writer_clear(&b->words);
    return true;
}

static void the_key_holder_sees_noise(void **state)
{
    blindness b = {.slots = 0};
    lab_scenario s = lab_scenario_for(5, 1, random_u64());
    lab *l;

    (void)state;
    lab_scenario_encrypt(&s);
    s.tail = DAFL_HE_N;
    s.questions = 4;
    s.intercept = watch_holder;
    s.ctx = &b;
    l = lab_new(&s);
    lab_check_done(l);
    assert_int_equal(b.slots, s.questions);
    assert_true(b.seen.n > 100000 && is_uniform(&b.seen));
    lab_free(&l);
    free(b.blind);
    dafl_writer_drop(&b.words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_upload_that_is_opened_is_masked),
        cmocka_unit_test(
            a_crafted_query_has_the_key_and_the_key_has_masked_uploads),
        cmocka_unit_test(the_same_opening_gets_the_same_answer),
        cmocka_unit_test(another_opening_gets_none),
        cmocka_unit_test(a_malformed_vector_spends_the_slot),
        cmocka_unit_test(uploads_that_cancel_cost_the_second_its_place),
        cmocka_unit_test(masks_of_clients_with_two_keys_do_not_cancel),
        cmocka_unit_test(the_key_holder_sees_noise),
    };

    if (!lab_can_encrypt())
        return 77;
    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
