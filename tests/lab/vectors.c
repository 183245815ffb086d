/* SPDX-License-Identifier: Apache-2.0 */
/* A method that sums vectors the lab knows. Its model is one digest over all
 * sums so far: with one wrong number every later segment is another. */
#include "tests/lab/inside.h"

#include <stdlib.h>
#include <string.h>

#define SEGMENT_KIND 7

/* ---- the inputs ---- */

size_t lab_answer_len(const lab *l, uint32_t question)
{
    return l->scenario.k + (size_t)l->scenario.tail + question % 3;
}

void lab_answer(const lab *l, uint16_t client, uint32_t question, int64_t *x)
{
    const dafl_contract *c = &l->scenario.config.contract;
    /* What the rows of one site can add up to, when all have as many. */
    uint64_t operand = (uint64_t)c->q << c->s;
    uint64_t bound = c->n_max / l->scenario.k * operand * operand;
    size_t len = lab_answer_len(l, question);
    dafl_draw draw;

    dafl_draw_init(&draw, &l->inputs, DAFL_STREAM_SIMULATION,
                   (uint64_t)question << 16 | client);
    for (size_t i = 0; i < len; i++) {
        if (i < l->scenario.k)
            x[i] = i == client;
        else if (i % 8 == 0) /* as large as it may be */
            x[i] = dafl_draw_u64(&draw) % 2 == 0 ? (int64_t)bound
                                                 : -(int64_t)bound;
        else
            x[i] =
                (int64_t)dafl_draw_below(&draw, 2 * bound + 1) - (int64_t)bound;
    }
}

static bool is_plain_sum(const lab *l, uint32_t question, const int64_t *sum,
                         size_t len, const dafl_members *cohort)
{
    int64_t *left = lab_alloc(len, sizeof *left);
    int64_t *x = lab_alloc(len, sizeof *x);
    bool equal = len == lab_answer_len(l, question);

    for (uint16_t u = 0; u < l->scenario.k && equal; u++) {
        if (!dafl_members_has(cohort, u))
            continue;
        lab_answer(l, u, question, x);
        for (size_t i = 0; i < len; i++)
            left[i] += x[i];
    }
    equal = equal && memcmp(left, sum, len * sizeof *sum) == 0;
    free(left);
    free(x);
    return equal;
}

/* ---- what both sides know ---- */

static bool can_be_tied(uint32_t number)
{
    return number >= 3 && number % 2 == 1;
}

static dafl_fault shape_of(const lab *l, const dafl_question *q,
                           dafl_shape *out)
{
    if (q->number >= l->scenario.questions || q->rank > 1 ||
        (q->rank == 1 && !can_be_tied(q->number)))
        return DAFL_E_MODEL;
    *out = (dafl_shape){.len = lab_answer_len(l, q->number)};
    if (q->rank == 1) {
        out->n_ties = 2;
        out->ties[0] = q->number - 2;
        out->ties[1] = q->number - 1;
    }
    return DAFL_FAULT_NONE;
}

/* ---- a client's side ---- */

typedef struct {
    const lab *lab;
    uint16_t client;
    uint32_t followed;
} site;

static void *new_site(lab *l, uint16_t client)
{
    site *s = lab_alloc(1, sizeof *s);

    s->lab = l;
    s->client = client;
    return s;
}

/* The digest of the sums so far, as often as the scenario wants. */
static size_t segment_len(const lab *l)
{
    return (size_t)(1 + l->scenario.segment_more) * DAFL_HASH_BYTES;
}

static dafl_fault site_follow(void *self, const dafl_segment *segment)
{
    site *s = self;

    if (segment->query != s->followed || segment->kind != SEGMENT_KIND ||
        segment->layer != segment->query / 2 ||
        segment->bytes.len != segment_len(s->lab))
        return DAFL_E_MODEL;
    s->followed++;
    return DAFL_FAULT_NONE;
}

static dafl_fault site_shape(void *self, const dafl_question *q,
                             dafl_shape *out)
{
    const site *s = self;

    return shape_of(s->lab, q, out);
}

static dafl_fault site_answer(void *self, const dafl_question *q, int64_t *x,
                              size_t len)
{
    const site *s = self;
    const lab_refusal *refusals = s->lab->refusals.items;

    if (q->number >= s->followed || len != lab_answer_len(s->lab, q->number))
        return DAFL_E_MODEL;
    for (size_t i = 0; i < s->lab->refusals.n; i++)
        if (refusals[i].client == s->client &&
            refusals[i].question == q->number)
            return refusals[i].fault;
    lab_answer(s->lab, s->client, q->number, x);
    return DAFL_FAULT_NONE;
}

static dafl_fault site_rewind(void *self)
{
    site *s = self;

    s->followed = 0;
    return DAFL_FAULT_NONE;
}

/* ---- the server's side ---- */

typedef struct {
    lab *lab;
    uint32_t answered;
    dafl_digest chain;
    lab_list cohorts; /* dafl_members by question */
} centre;

static void *new_centre(lab *l)
{
    centre *s = lab_alloc(1, sizeof *s);

    s->lab = l;
    return s;
}

static void free_centre(void *self)
{
    centre *s = self;

    lab_list_drop(&s->cohorts);
    free(s);
}

static bool centre_next(void *self, bool plain, dafl_question *out)
{
    const centre *s = self;
    const dafl_members *cohorts = s->cohorts.items;
    uint32_t n = s->answered;

    if (n >= s->lab->scenario.questions)
        return false;
    *out = (dafl_question){.number = n};
    if (s->lab->scenario.ties && !plain && can_be_tied(n) &&
        dafl_members_equal(&cohorts[n - 1], &cohorts[n - 2]))
        out->rank = 1;
    return true;
}

static dafl_fault centre_shape(void *self, const dafl_question *q,
                               dafl_shape *out)
{
    const centre *s = self;

    return shape_of(s->lab, q, out);
}

static dafl_fault centre_segment(void *self, uint32_t number, dafl_segment *out,
                                 dafl_writer *bytes)
{
    centre *s = self;

    if (number != s->answered)
        lab_broken(s->lab, "segment %u is asked for after %u sums",
                   (unsigned)number, (unsigned)s->answered);
    out->kind = SEGMENT_KIND;
    out->layer = (uint16_t)(number / 2);
    for (size_t at = 0; at < segment_len(s->lab); at += sizeof s->chain.b)
        dafl_put_fixed(bytes, s->chain.b, sizeof s->chain.b);
    return DAFL_FAULT_NONE;
}

static void centre_choose(void *self, const dafl_question *q,
                          const dafl_roster *roster, dafl_members *cohort)
{
    const lab_scenario *scenario = &((centre *)self)->lab->scenario;

    if (scenario->choose != NULL)
        scenario->choose(scenario->ctx, q, roster, cohort);
}

/* The cohort of a question with ties is that of the questions it is tied to. */
static bool ties_hold(const centre *s, const dafl_question *q,
                      const dafl_members *cohort)
{
    const dafl_members *cohorts = s->cohorts.items;

    return q->rank == 0 ||
           (dafl_members_equal(cohort, &cohorts[q->number - 1]) &&
            dafl_members_equal(cohort, &cohorts[q->number - 2]));
}

static dafl_fault centre_take(void *self, const dafl_question *q,
                              const int64_t *sum, size_t len,
                              const dafl_members *cohort, dafl_why *why)
{
    centre *s = self;
    lab *l = s->lab;
    const dafl_policy *policy = &l->scenario.config.policy;
    lab_sum *kept;
    dafl_hash h;

    if (q->number != s->answered) {
        lab_broken(l, "sum %u is given after %u sums", (unsigned)q->number,
                   (unsigned)s->answered);
        return DAFL_E_SUM_INVALID;
    }
    if (!is_plain_sum(l, q->number, sum, len, cohort)) {
        l->wrong_sums++;
        if (!l->scenario.wrong_sums_expected)
            lab_broken(l, "the sum of question %u is not the plain sum",
                       (unsigned)q->number);
        return dafl_fail(why, DAFL_E_SUM_INVALID, "not the plain sum");
    }
    if (dafl_policy_cohort(policy, &l->roster, cohort, cohort) !=
        DAFL_FAULT_NONE)
        lab_broken(l, "the cohort of question %u is against the policy",
                   (unsigned)q->number);
    if (!ties_hold(s, q, cohort))
        lab_broken(l, "question %u is tied to another cohort",
                   (unsigned)q->number);
    kept = lab_list_add(&l->sums, sizeof *kept);
    *kept = (lab_sum){.question = q->number,
                      .rank = q->rank,
                      .cohort = *cohort,
                      .sum = (const int64_t *)(const void *)lab_copy((
                          dafl_bytes){(const uint8_t *)sum, len * sizeof *sum}),
                      .len = len};
    *(dafl_members *)lab_list_add(&s->cohorts, sizeof *cohort) = *cohort;
    dafl_hash_init(&h, "deepafl/lab-model");
    dafl_hash_digest(&h, &s->chain);
    dafl_hash_part(&h, sum, len * sizeof *sum);
    dafl_hash_end(&h, &s->chain);
    s->answered++;
    return DAFL_FAULT_NONE;
}

static const dafl_client_method site_method = {
    .follow = site_follow,
    .shape = site_shape,
    .answer = site_answer,
    .rewind = site_rewind,
};

static const dafl_server_method centre_method = {
    .next = centre_next,
    .shape = centre_shape,
    .segment = centre_segment,
    .choose = centre_choose,
    .take = centre_take,
};

const lab_method lab_vectors = {
    .name = "vectors",
    .client = &site_method,
    .server = &centre_method,
    .new_client = new_site,
    .new_server = new_centre,
    .free_client = free,
    .free_server = free_centre,
};
