/* SPDX-License-Identifier: Apache-2.0 */
/* What the bytes on the wire look like: an upload is uniform, whatever is in it
 * (C1 upload_uniform), and stays so when its client was declared gone and its
 * key opened before it arrived (C5 late_upload_stays_closed). Statistics are
 * passed at p > 1e-6; vectors without masks fail them. */
#include "tests/check.h"
#include "tests/noise.h"

#include <math.h>

#include "crypto/mask.h"
#include "lib/ring.h"
#include "tests/lab/silent.h"
#include "tests/lab/leak.h"

/* ---- statistics of bytes ---- */

static void assert_uniform(const statistics *s, const char *what, int kind,
                           unsigned w)
{
    if (!is_uniform(s))
        fail_msg("%s, input %d, w = %u: histogram %.2f, serial correlation "
                 "%.2f standard deviations",
                 what, kind, w, histogram_z(s), serial_z(s));
}

/* ---- a method whose inputs are all alike ---- */

enum { CLIENTS = 6, QUESTIONS = 8, LENGTH = 5000 };

/* All zero; all 2^w - 1; a one here and there. */
enum { ZEROS, ONES, SPARSE, N_INPUTS };

static int64_t input_at(int kind, size_t i)
{
    return kind == ZEROS ? 0 : kind == ONES ? -1 : i % 37 == 5;
}

/* The scenario's ctx, and the self of all: */
typedef struct {
    int kind;
    uint32_t answered;
} alike;

static void *new_client(lab *l, uint16_t client)
{
    (void)client;
    return lab_scenario_of(l)->ctx;
}

static void *new_server(lab *l)
{
    return lab_scenario_of(l)->ctx;
}

static dafl_fault alike_shape(void *self, const dafl_question *q,
                              dafl_shape *out)
{
    (void)self;
    (void)q;
    *out = (dafl_shape){.len = LENGTH};
    return DAFL_FAULT_NONE;
}

static dafl_fault alike_answer(void *self, const dafl_question *q, int64_t *x,
                               size_t len)
{
    (void)q;
    for (size_t i = 0; i < len; i++)
        x[i] = input_at(((const alike *)self)->kind, i);
    return DAFL_FAULT_NONE;
}

static bool alike_next(void *self, bool plain, dafl_question *out)
{
    (void)plain;
    *out = (dafl_question){.number = ((const alike *)self)->answered};
    return out->number < QUESTIONS;
}

static dafl_fault alike_take(void *self, const dafl_question *q,
                             const int64_t *sum, size_t len,
                             const dafl_members *cohort, dafl_why *why)
{
    alike *a = self;
    int64_t n = (int64_t)dafl_members_count(cohort);

    (void)q;
    for (size_t i = 0; i < len; i++)
        if (sum[i] != n * input_at(a->kind, i))
            return dafl_fail(why, DAFL_E_SUM_INVALID, "not the plain sum");
    a->answered++;
    return DAFL_FAULT_NONE;
}

static const dafl_client_method alike_client = {.follow = follow_nothing,
                                                .shape = alike_shape,
                                                .answer = alike_answer,
                                                .rewind = rewind_nothing};
static const dafl_server_method alike_server = {.next = alike_next,
                                                .shape = alike_shape,
                                                .segment = segment_of_nothing,
                                                .take = alike_take};
static const lab_method alike_method = {.name = "alike",
                                        .client = &alike_client,
                                        .server = &alike_server,
                                        .new_client = new_client,
                                        .new_server = new_server,
                                        .free_client = free_nothing,
                                        .free_server = free_nothing};

/* ---- C1 ---- */

static int compare_words(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

typedef struct {
    statistics bytes, differences; /* of one client's in two slots */
    size_t twice;                  /* words that stand somewhere else as well */
} findings;

/* The words of an upload. */
static void unpack(uint64_t *words, const leak_upload *u, unsigned w)
{
    assert_int_equal(u->len, LENGTH * (w / 8));
    memset(words, 0, LENGTH * sizeof *words);
    dafl_ring_add_words(words, u->bytes, LENGTH, w, false);
}

/* CLIENTS * QUESTIONS uploads of one input in one run. */
static void upload_all(findings *f, int kind, unsigned w, dafl_mode mode)
{
    enum { N = CLIENTS * QUESTIONS };
    lab_scenario s = lab_scenario_for(CLIENTS, 1, random_u64());
    dafl_members none = dafl_members_none(CLIENTS);
    uint64_t *words = calloc((size_t)N * LENGTH, sizeof *words);
    alike a = {.kind = kind};
    leak *k;
    lab *l;

    assert_non_null(words);
    *f = (findings){.twice = 0};
    s.method = &alike_method;
    s.ctx = &a;
    s.questions = QUESTIONS;
    s.config.mode = mode;
    s.config.contract.w = w;
    s.floor.plain = mode == DAFL_MODE_NONE;
    l = lab_new(&s);
    k = leak_new(l, &none, false);
    leak_run(k);
    lab_check_done(l);
    assert_int_equal(leak_uploads(k), N);
    for (size_t i = 0; i < N; i++) {
        const leak_upload *u = leak_upload_at(k, i), *next;
        assert_true(u->reached);
        look_at(&f->bytes, u->bytes, u->len);
        unpack(words + i * LENGTH, u, w);
        next = leak_upload_of(k, u->client, u->slot + 1);
        if (next != NULL) {
            uint64_t *y = calloc(LENGTH, sizeof *y);
            assert_non_null(y);
            unpack(y, next, w);
            for (size_t j = 0; j < LENGTH; j++)
                y[j] -= words[i * LENGTH + j];
            look_at_words(&f->differences, y, LENGTH, w);
            free(y);
        }
    }
    qsort(words, (size_t)N * LENGTH, sizeof *words, compare_words);
    for (size_t i = 1; i < (size_t)N * LENGTH; i++)
        f->twice += words[i] == words[i - 1];
    free(words);
    leak_free(&k);
    lab_free(&l);
}

static const unsigned widths[] = {48, 64};

/* 240,000 words have 2.9e10 pairs, each equal with 2^-48: one pair now and then
 * is chance, two are not (5e-9). */
static void uploads_of_any_input_are_uniform(void **state)
{
    findings f;

    (void)state;
    for (int kind = 0; kind < N_INPUTS; kind++)
        for (size_t i = 0; i < COUNT(widths); i++) {
            upload_all(&f, kind, widths[i], DAFL_MODE_MASKS);
            assert_uniform(&f.bytes, "uploads", kind, widths[i]);
            assert_uniform(&f.differences, "differences", kind, widths[i]);
            assert_true(f.twice <= 1);
        }
}

/* The control: a run without masks, which every client has allowed. */
static void uploads_without_masks_are_not_uniform(void **state)
{
    findings f;

    (void)state;
    for (int kind = 0; kind < N_INPUTS; kind++)
        for (size_t i = 0; i < COUNT(widths); i++) {
            upload_all(&f, kind, widths[i], DAFL_MODE_NONE);
            assert_true(histogram_z(&f.bytes) > Z_LIMIT);
            assert_true(kind == SPARSE || fabs(serial_z(&f.bytes)) > Z_LIMIT);
            assert_true(histogram_z(&f.differences) > Z_LIMIT);
            assert_true(f.twice > 1000);
        }
}

/* ---- C5 ---- */

/* A server that lets one client's upload wait until the sum is open. */
typedef struct {
    uint16_t late;
    bool given;
    dafl_key b; /* the control's: no attacker has it */
    dafl_writer held[8];
    size_t n;
} waiting_room;

static bool let_wait(lab *l, lab_letter *m, void *ctx)
{
    waiting_room *r = ctx;

    if (m->envelope.slot != 1)
        return true;
    if (m->from == r->late && (m->envelope.type == DAFL_MSG_UPLOAD ||
                               m->envelope.type == DAFL_MSG_END)) {
        memcpy(r->b.b, lab_disk_secret(l, r->late, 1).ptr + 32, sizeof r->b.b);
        if (r->n < COUNT(r->held)) /* it is sent again now and then */
            dafl_put_fixed(&r->held[r->n++], m->bytes, m->len);
        return false;
    }
    if (m->envelope.type == DAFL_MSG_RESULT && !r->given) {
        r->given = true;
        for (size_t i = 0; i < r->n; i++)
            lab_post(l, r->late, lab_server_index(l),
                     dafl_writer_bytes(&r->held[i]), 1 + i);
    }
    return true;
}

/* Of the late vector there is nothing left but its own mask, which hides it. */
static void check_closed(lab *l, leak *k, const waiting_room *r)
{
    unsigned w = lab_config(l)->contract.w;
    const leak_upload *u = leak_upload_of(k, r->late, 1);
    size_t n = lab_answer_len(l, 0);
    uint64_t *left = calloc(n, sizeof *left), *plain = calloc(n, sizeof *plain);
    int64_t *x = calloc(n, sizeof *x);
    statistics closed = {.n = 0}, open = {.n = 0};
    dafl_mask self = {.negate = true};

    assert_non_null(u);
    assert_true(left != NULL && plain != NULL && x != NULL);
    assert_true(leak_knows_sk(k, r->late, 1));
    assert_false(leak_knows_b(k, r->late, 1));
    assert_int_equal(leak_strip(k, u, left, n), 1);
    look_at_words(&closed, left, n, w);
    assert_uniform(&closed, "a late upload", 0, w);
    lab_answer(l, r->late, 0, x);
    dafl_ring_from_int(plain, x, n);
    for (size_t i = 0; i < n; i++)
        assert_true(((left[i] ^ plain[i]) & UINT64_MAX >> (64 - w)) != 0);
    /* The control: with b it opens, and the statistics see what it is. */
    dafl_key_self(&self.key, &r->b, &u->ctx2, r->late);
    dafl_mask_apply(left, n, w, &self, 1, NULL);
    for (size_t i = 0; i < n; i++)
        assert_true(((left[i] ^ plain[i]) & UINT64_MAX >> (64 - w)) == 0);
    look_at_words(&open, left, n, w);
    assert_false(is_uniform(&open));
    free(left);
    free(plain);
    free(x);
}

static void an_upload_that_comes_too_late_stays_closed(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(widths); i++)
        for (uint16_t c = 0; c <= 1; c++) {
            lab_scenario s = lab_scenario_for(5, 1, random_u64());
            waiting_room r = {.late = (uint16_t)random_size(0, 4)};
            dafl_members colluders = dafl_members_none(5), u3;
            leak *k;
            lab *l;
            s.config.contract.w = widths[i];
            s.config.chunk = 1u << 20;
            s.questions = 2;
            s.tail = 30000;
            s.intercept = let_wait;
            s.ctx = &r;
            l = lab_new(&s);
            u3 = lab_everybody(l);
            dafl_members_remove(&u3, r.late);
            if (c > 0)
                dafl_members_add(&colluders, (r.late + 1u) % 5);
            k = leak_new(l, &colluders, false);
            leak_run(k);
            lab_check_done(l);
            lab_check_cohort(l, 0, &u3);
            assert_true(r.given && r.n >= 2);
            check_closed(l, k, &r);
            assert_true(leak_is_sum(k, 1, &u3));
            assert_true(leak_is_real(k, 1));
            leak_free(&k);
            lab_free(&l);
            for (size_t j = 0; j < r.n; j++)
                dafl_writer_drop(&r.held[j]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uploads_of_any_input_are_uniform),
        cmocka_unit_test(uploads_without_masks_are_not_uniform),
        cmocka_unit_test(an_upload_that_comes_too_late_stays_closed),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
