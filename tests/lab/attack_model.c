/* SPDX-License-Identifier: Apache-2.0 */
/* Models that a server makes up (S14, S15), and uploads that a client does
 * (M4), with the real method. */
#include "tests/sites.h"

#include <math.h>

#include "protocol/client_state.h"
#include "tests/lab/attack.h"
#include "tests/lab/inside.h"
#include "tests/lab/leak.h"
#include "tests/lab/rogue.h"
#include "tests/lab/school.h"

enum { CLIENTS = 6, VICTIM = 1, THIEF = 5 };

/* ---- a server's method that lies ---- */

typedef enum {
    NOT_A_NUMBER,
    INFINITE,
    HUGE_NUMBER,
    SHORT,      /* a number is missing */
    LONG,       /* one is too much */
    HIGH_RANK,  /* one too many */
    STRETCHED,  /* U is not orthonormal: longer, */
    SKEWED,     /* or its columns are not at right angles */
    PROJECTION, /* a segment of a kind that there is not */
    NO_BLOCK,   /* Omega = 0 */
    LIES
} lie;

static struct {
    lie lie;
    int64_t *grams[2]; /* of questions 1 and 3 */
    size_t len;
} hostile;

static dafl_server_method hostile_server;

/* Number i of a factor: behind the rank. */
static uint8_t *number_at(dafl_writer *bytes, size_t i)
{
    return bytes->ptr + 4 + 8 * i;
}

static void put_number(dafl_writer *bytes, size_t i, double x)
{
    memcpy(number_at(bytes, i), &x, sizeof x);
}

static double get_number(dafl_writer *bytes, size_t i)
{
    double x;

    memcpy(&x, number_at(bytes, i), sizeof x);
    return x;
}

/* U: d x r, row-major, then M: r x C. */
static void spoil_head(dafl_segment *out, dafl_writer *bytes)
{
    size_t d = school.p.width, r = bytes->ptr[0];
    size_t any = random_size(0, r * (d + school.p.classes) - 1);

    assert_true(r > 1);
    switch (hostile.lie) {
    case NOT_A_NUMBER:
        put_number(bytes, any, (double)NAN);
        break;
    case INFINITE:
        put_number(bytes, any, (double)-INFINITY);
        break;
    case HUGE_NUMBER:
        put_number(bytes, any, 1e300);
        break;
    case SHORT:
        bytes->len -= 8;
        break;
    case LONG:
        dafl_put_u64(bytes, 0);
        break;
    case HIGH_RANK:
        bytes->ptr[0]++;
        break;
    case STRETCHED:
        for (size_t i = 0; i < d * r; i++)
            put_number(bytes, i, 1.01 * get_number(bytes, i));
        break;
    case SKEWED: /* of length 1 still */
        for (size_t i = 0; i < d; i++)
            put_number(bytes, i * r,
                       0.8 * get_number(bytes, i * r) +
                           0.6 * get_number(bytes, i * r + 1));
        break;
    case PROJECTION:
        out->kind = DAFL_SEGMENT_BLOCK + 1;
        break;
    case NO_BLOCK:
    case LIES:
        break;
    }
}

static dafl_fault hostile_segment(void *self, uint32_t number,
                                  dafl_segment *out, dafl_writer *bytes)
{
    dafl_fault fault = school_server.segment(self, number, out, bytes);

    if (out->kind == DAFL_SEGMENT_HEAD && out->layer == 0)
        spoil_head(out, bytes);
    if (out->kind == DAFL_SEGMENT_BLOCK && hostile.lie == NO_BLOCK)
        memset(bytes->ptr + 4, 0, bytes->len - 4);
    return fault;
}

/* No increments: the whole matrix again. */
static bool hostile_next(void *self, bool plain, dafl_question *out)
{
    (void)plain;
    return school_server.next(self, true, out);
}

static void hostile_choose(void *self, const dafl_question *q,
                           const dafl_roster *roster, dafl_members *cohort)
{
    (void)self;
    (void)roster;
    if (q->number == 3 && dafl_members_has(cohort, VICTIM))
        dafl_members_remove(cohort, VICTIM);
}

static dafl_fault hostile_take(void *self, const dafl_question *q,
                               const int64_t *sum, size_t len,
                               const dafl_members *cohort, dafl_why *why)
{
    if (q->number == 1 || q->number == 3) {
        free(hostile.grams[q->number / 2]);
        hostile.grams[q->number / 2] = calloc(len, sizeof *sum);
        assert_non_null(hostile.grams[q->number / 2]);
        memcpy(hostile.grams[q->number / 2], sum, len * sizeof *sum);
        hostile.len = len;
    }
    return school_server.take(self, q, sum, len, cohort, why);
}

static lab_method hostile_method;

static lab_scenario hostile_scenario(lie how)
{
    lab_scenario s = school_scenario(CLIENTS, 3);

    hostile.lie = how;
    hostile_server = school_server;
    hostile_server.segment = hostile_segment;
    hostile_method = school_method;
    hostile_method.server = &hostile_server;
    s.method = &hostile_method;
    s.config.retries = 2;
    return s;
}

/* ---- S14, S15: whether anybody computes with it ---- */

static bool is_answered(bool stopped, lie how)
{
    lab_scenario s;
    lab *l;
    size_t answers = 0;

    (void)school_open(random_u64(), 2);
    s = hostile_scenario(how);
    l = lab_new(&s);
    (void)lab_run(l);
    /* Census, Gram; slot 3 is for the residual, with the first head. */
    assert_int_equal(lab_slot_question(l, 3), 2);
    for (uint16_t u = 0; u < CLIENTS; u++) {
        answers += rogue_sent(l, u, DAFL_MSG_UPLOAD, 3);
        if (stopped)
            assert_true(rogue_blamed(l, u, lab_server_index(l), DAFL_E_MODEL) >
                        0);
    }
    if (stopped) {
        assert_int_equal(lab_outcome_of(l), LAB_FAILED);
        assert_int_equal(school.n_taken, 2);
        lab_check_invariants(l);
    }
    lab_free(&l);
    (void)school_close();
    return answers > 0;
}

static bool no_numbers(bool stopped)
{
    bool answered = false;

    for (int how = NOT_A_NUMBER; how <= HUGE_NUMBER; how++)
        answered |= is_answered(stopped, (lie)how);
    return answered;
}

static bool wrong_shapes(bool stopped)
{
    bool answered = false;

    for (int how = SHORT; how <= HIGH_RANK; how++)
        answered |= is_answered(stopped, (lie)how);
    return answered;
}

static bool stretched_head(bool stopped)
{
    return is_answered(stopped, STRETCHED);
}

static bool skewed_head(bool stopped)
{
    return is_answered(stopped, SKEWED);
}

static bool server_projection(bool stopped)
{
    return is_answered(stopped, PROJECTION);
}

/* ---- S14: the same features twice, and one client less ---- */

static void any_cohort_server(void *ctx, uint16_t party, dafl_roster *roster,
                              dafl_config *config, dafl_floor *floor)
{
    (void)ctx;
    (void)roster;
    (void)floor;
    if (party == CLIENTS)
        config->policy.g = 1;
}

/* G and H of the victim's rows. */
static dafl_sum own_gram(void)
{
    dafl_question q = {.number = 1};
    dafl_projection first = {0};
    dafl_model *model = NULL;
    dafl_site *site = NULL;
    dafl_query query;
    dafl_sum sum;

    assert_ok(dafl_model_new(&model, &school.p));
    assert_ok(dafl_model_projection(model, &first, 0));
    assert_ok(dafl_site_new(&site, &school.p, school.pool, &school.data,
                            school.plots[VICTIM].rows, school.plots[VICTIM].n,
                            &first, NULL));
    dafl_deep_query(&query, &school.p, &q);
    sum = empty_sum(&school.p, &query);
    assert_ok(dafl_site_answer(site, model, &query, NULL, &sum, NULL));
    dafl_site_free(&site);
    dafl_projection_drop(&first);
    dafl_model_free(&model);
    return sum;
}

/* Whether the difference of the two sums is the victim's own matrix. */
static bool differs_by_victim(void)
{
    dafl_sum own = own_gram();
    bool equal = hostile.grams[0] != NULL && hostile.grams[1] != NULL &&
                 own.len == hostile.len;

    assert_true(school.plots[VICTIM].n > 0);
    for (size_t i = 0; i < own.len && equal; i++)
        equal = hostile.grams[0][i] - hostile.grams[1][i] == own.i[i];
    dafl_sum_drop(&own);
    return equal;
}

static bool one_client_less(bool stopped)
{
    lab_scenario s;
    bool differs;
    lab *l;

    (void)school_open(random_u64(), 2);
    do
        s = hostile_scenario(NO_BLOCK);
    while (school.plots[VICTIM].n == 0);
    hostile_server.next = hostile_next;
    hostile_server.choose = hostile_choose;
    hostile_server.take = hostile_take;
    s.outfit = any_cohort_server;
    l = lab_new(&s);
    rogue_pretend(l);
    (void)lab_run(l);
    differs = differs_by_victim();
    if (stopped) {
        for (uint16_t u = 0; u < CLIENTS; u++)
            assert_true(rogue_blamed(l, u, CLIENTS, DAFL_E_CELL_SPLIT) > 0);
        assert_int_equal(school.n_taken, 3);
        assert_int_equal(lab_outcome_of(l), LAB_FAILED);
        lab_check_invariants(l);
    }
    lab_free(&l);
    for (size_t i = 0; i < COUNT(hostile.grams); i++) {
        free(hostile.grams[i]);
        hostile.grams[i] = NULL;
    }
    (void)school_close();
    return differs;
}

/* ---- M4: an upload that is not one's own, signed as if it were ---- */

typedef struct {
    uint32_t question;
    uint32_t slots[2]; /* in which it copies, and in which it sends its own of
                          the slot before */
    dafl_writer victims, own;
    size_t forged;
} forger;

static void note_upload(dafl_writer *to, const lab_letter *m)
{
    dafl_upload chunk;

    assert_ok(dafl_get_upload(&chunk, m->envelope.body));
    if (chunk.offset == 0)
        dafl_writer_clear(to);
    dafl_put_fixed(to, chunk.chunk.ptr, chunk.chunk.len);
}

/* One chunk is enough for these small answers. */
static void put_forged(lab *l, forger *a, dafl_writer *w, const lab_letter *m)
{
    dafl_client *c = lab_client(l, THIEF);
    dafl_bytes bytes = m->envelope.slot == a->slots[0]
                           ? dafl_writer_bytes(&a->victims)
                           : dafl_writer_bytes(&a->own);
    dafl_end_msg end = {.len = bytes.len};

    assert_true(bytes.len > 0);
    if (m->envelope.type == DAFL_MSG_UPLOAD) {
        dafl_put_upload(w, &(dafl_upload){0, bytes});
        return;
    }
    dafl_context_upload(&end.dig, &c->ctx2, THIEF, bytes);
    lab_sign_end(l, THIEF, &c->ctx2, &end);
    c->dig = end.dig; /* it knows what it does, and will sign */
    dafl_put_end(w, &end);
}

static bool forge_upload(lab *l, lab_letter *m, void *ctx)
{
    uint32_t slot = m->envelope.slot;
    forger *a = ctx;
    dafl_writer w = {0};

    if ((m->envelope.type != DAFL_MSG_UPLOAD &&
         m->envelope.type != DAFL_MSG_END) ||
        lab_slot_question(l, slot) != a->question)
        return true;
    if (a->slots[0] == 0)
        a->slots[0] = slot;
    else if (a->slots[1] == 0 && slot > a->slots[0])
        a->slots[1] = slot;
    if (m->from == VICTIM && m->envelope.type == DAFL_MSG_UPLOAD &&
        slot == a->slots[0])
        note_upload(&a->victims, m);
    if (m->from != THIEF || (slot != a->slots[0] && slot != a->slots[1]))
        return true;
    if (slot == a->slots[0] && m->envelope.type == DAFL_MSG_UPLOAD)
        note_upload(&a->own, m);
    a->forged += m->envelope.type == DAFL_MSG_END;
    put_forged(l, a, &w, m);
    lab_letter_reseal(l, m, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    return true;
}

/* Whether the server takes a sum with it for true. The thief colludes with the
 * server; of the others they get no more than their sum. */
static bool is_believed(bool stopped, uint32_t question)
{
    forger a = {.question = question};
    lab_scenario s = school_scenario(CLIENTS, 3);
    dafl_members thief, all, cells[2];
    size_t refused, rows = 0;
    leak *k;
    lab *l;

    s.intercept = forge_upload;
    s.ctx = &a;
    /* The victim comes before the thief. */
    s.net.latency_min = s.net.latency_max = 1;
    l = lab_new(&s);
    thief = lab_members(l, 1u << THIEF);
    all = lab_everybody(l);
    for (uint16_t i = 0; i < 2; i++)
        cells[i] = dafl_roster_cell(lab_roster(l), i);
    k = leak_new(l, &thief, false);
    (void)leak_run(k);
    refused = lab_count(l, CLIENTS, DAFL_EVENT_RESULT, DAFL_E_SUM_INVALID);
    /* The second slot is one without the first cell, where nothing changes. */
    for (size_t i = 0; i < a.forged; i++)
        assert_true(leak_is_sum(k, a.slots[i], i == 0 ? &all : &cells[1]));
    if (stopped) {
        /* Both slots are lost; without the thief's cell all is well. */
        for (size_t u = 0; u < CLIENTS; u++)
            rows += dafl_members_has(&cells[0], u) ? school.plots[u].n : 0;
        assert_int_equal(lab_outcome_of(l), LAB_DONE);
        assert_int_equal(a.forged, 2);
        assert_int_equal(dafl_server_stat(lab_server(l)).failed, 2);
        assert_int_equal(
            dafl_deep_server_rows(lab_the_server(l)->method_self, false), rows);
    }
    lab_check_invariants(l);
    leak_free(&k);
    lab_free(&l);
    dafl_writer_drop(&a.victims);
    dafl_writer_drop(&a.own);
    return refused < a.forged;
}

/* The census, both kinds of matrices, the report. (An increment is asked for
 * once: its own of the slot before would be too short.) */
static bool copied_upload(bool stopped)
{
    uint32_t last;
    bool believed = false;

    (void)school_open(random_u64(), 2);
    last = dafl_deep_questions(&school.p) - 1;
    for (uint32_t q = 0; q <= 2; q++)
        believed |= is_believed(stopped, q);
    believed |= is_believed(stopped, last);
    (void)school_close();
    return believed;
}

const lab_attack attacks_model[] = {
    {"S14 no_numbers", DAFL_WEAK_NOTHING, no_numbers},
    {"S14 wrong_shapes", DAFL_WEAK_NOTHING, wrong_shapes},
    {"S14 stretched_head", DAFL_WEAK_ORTHONORMAL, stretched_head},
    {"S14 skewed_head", DAFL_WEAK_ORTHONORMAL, skewed_head},
    {"S14 one_client_less", DAFL_WEAK_CELLS, one_client_less},
    {"S15 server_projection", DAFL_WEAK_NOTHING, server_projection},
    {"M4 copied_upload", DAFL_WEAK_SANITY, copied_upload},
    {0},
};
