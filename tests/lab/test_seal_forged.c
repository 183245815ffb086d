/* SPDX-License-Identifier: Apache-2.0 */
/* Anything at all between server and key holder, signed by them, and anything
 * on the key holder's disk: no machine stops for a reason of its own, and what
 * must always hold does (R1). */
#include "tests/check.h"

#include "crypto/he.h"
#include "tests/lab/lab.h"

/* ---- messages ---- */

typedef struct {
    uint64_t seq[2]; /* to the key holder, from it */
    unsigned left;   /* messages to be made up */
} forger;

/* Some other body, type or slot. */
static void mutate(dafl_writer *body, dafl_envelope *m)
{
    size_t at = body->len == 0 ? 0 : random_size(0, body->len - 1);

    switch (random_size(0, 5)) {
    case 0:
        if (body->len > 0)
            body->ptr[at] ^= (uint8_t)random_size(1, 255);
        break;
    case 1:
        if (body->len > 0)
            memset(body->ptr + at, (int)random_size(0, 255),
                   body->len - at < 8 ? body->len - at : 8);
        break;
    case 2:
        body->len = at;
        break;
    case 3:
        dafl_put_u64(body, random_u64());
        break;
    case 4:
        m->type = (uint8_t)random_size(1, DAFL_MSG_COUNT - 1);
        break;
    default:
        m->slot = (uint32_t)((uint64_t)m->slot + random_size(0, 4) - 2);
        break;
    }
}

static uint64_t post(lab *l, const lab_letter *m, const dafl_envelope *e,
                     uint64_t seq, dafl_bytes body)
{
    dafl_writer w = {0};

    lab_seal(l, &w, m->from, (dafl_msg_type)e->type, e->slot, seq, body);
    lab_post(l, m->from, m->to, dafl_writer_bytes(&w), 1);
    dafl_writer_drop(&w);
    return seq;
}

/* Now and then a forged message comes before the right one, or instead of
 * it. */
static bool forge(lab *l, lab_letter *m, void *ctx)
{
    uint16_t holder = lab_holder_index(l);
    forger *f = ctx;
    uint64_t *seq = &f->seq[m->from == holder];
    dafl_envelope e = m->envelope;
    dafl_writer body = {0};
    bool instead = false;

    if (m->from != holder && m->to != holder)
        return true;
    if (*seq < e.seq)
        *seq = e.seq;
    if (f->left > 0 && random_size(0, 2) == 0) {
        f->left--;
        dafl_put_fixed(&body, e.body.ptr, e.body.len);
        mutate(&body, &e);
        (void)post(l, m, &e, ++*seq, dafl_writer_bytes(&body));
        dafl_writer_drop(&body);
        instead = random_size(0, 1) == 0;
    }
    if (!instead)
        (void)post(l, m, &m->envelope, ++*seq, m->envelope.body);
    return false;
}

static void machines_take_any_message(void **state)
{
    size_t done = 0, runs = 40;

    (void)state;
    for (size_t i = 0; i < runs; i++) {
        forger f = {.left = (unsigned)random_size(1, 12)};
        lab_scenario s = lab_scenario_for(3, 1, random_u64());
        lab *l;
        lab_scenario_encrypt(&s);
        s.questions = 2;
        s.intercept = forge;
        s.ctx = &f;
        s.wrong_sums_expected = true;
        l = lab_new(&s);
        while (lab_now(l) < 200000 && lab_step(l))
            ;
        lab_check_invariants(l);
        done += lab_outcome_of(l) == LAB_DONE;
        lab_free(&l);
    }
    print_message("%zu of %zu runs finish\n", done, runs);
    assert_true(done > 0);
}

/* ---- disks ---- */

static void disks_are_understood_or_refused(void **state)
{
    lab_scenario s = lab_scenario_for(3, 1, random_u64());
    uint16_t holder = 4;
    size_t n, refused = 0, rounds = 300;
    dafl_why why = {{0}};
    dafl_effect e;
    lab *l;

    (void)state;
    lab_scenario_encrypt(&s);
    l = lab_new(&s);
    while (lab_disk_secret(l, holder, 2).ptr == NULL && lab_step(l))
        ;
    n = lab_disk_records(l, holder);
    for (size_t i = 0; i < rounds; i++) {
        dafl_holder_params p = {.roster = lab_roster(l),
                                .config = lab_config(l),
                                .self = lab_identity(l, holder),
                                .floor = s.floor};
        dafl_bytes answer = lab_disk_secret(l, holder, 2);
        size_t bad = random_size(0, n - 1);
        dafl_holder *h = NULL;
        dafl_err err = DAFL_OK;
        assert_ok(dafl_holder_new(&h, &p, NULL, &why));
        for (size_t k = 0; k < n && err == DAFL_OK; k++) {
            dafl_bytes record = lab_disk_record(l, holder, k);
            dafl_envelope none = {.slot = 0};
            dafl_writer w = {0};
            dafl_put_fixed(&w, record.ptr, record.len);
            if (k == bad)
                mutate(&w, &none);
            err = dafl_holder_recall(h, dafl_writer_bytes(&w));
            dafl_writer_drop(&w);
        }
        assert_true(err == DAFL_OK || err == DAFL_ERR_INPUT);
        refused += err != DAFL_OK;
        answer.len = random_size(0, answer.len);
        if (err == DAFL_OK) {
            assert_ok(dafl_holder_recall_answer(h, 2, answer));
            assert_ok(dafl_holder_start(h));
            while (dafl_holder_next(h, &e))
                ;
        }
        dafl_holder_free(&h);
    }
    print_message("%zu of %zu disks are refused\n", refused, rounds);
    assert_true(refused > 0 && refused < rounds);
    lab_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machines_take_any_message),
        cmocka_unit_test(disks_are_understood_or_refused),
    };

    if (!lab_can_encrypt())
        return 77;
    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
