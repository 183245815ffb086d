/* SPDX-License-Identifier: Apache-2.0 */
/* A method that sums a few numbers, and checks that the protocol calls it as
 * protocol/method.h says. */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/machines.h"

#define SEGMENT_KIND 3

static size_t length(const fm_rules *r, uint32_t question)
{
    return (question == 0 ? r->tail : 2) + 1 + question;
}

/* As large as the ring can take from so many, of either sign. */
static int64_t number(const fm_rules *r, uint16_t client, uint32_t question,
                      size_t i)
{
    int64_t bound =
        (int64_t)(((uint64_t)1 << (r->config.contract.w - 1)) / r->k - 1);
    uint64_t mix = (client + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15) +
                   (question + UINT64_C(1)) * UINT64_C(0xc2b2ae3d27d4eb4f) + i;

    mix = (mix ^ mix >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    mix ^= mix >> 32;
    if (i == 0)
        return client % 2 == 0 ? bound : -bound;
    return (int64_t)(mix % (uint64_t)bound) - bound / 2;
}

static dafl_fault shape_of(const fm_rules *r, const dafl_question *q,
                           dafl_shape *out)
{
    if (q->number >= FM_QUESTIONS || q->rank > 1 ||
        (q->rank == 1 && (q->number != 2 || !r->ties)))
        return DAFL_E_MODEL;
    *out = (dafl_shape){.len = length(r, q->number)};
    if (q->rank == 1) {
        out->n_ties = 2;
        out->ties[0] = 0;
        out->ties[1] = 1;
    }
    return DAFL_FAULT_NONE;
}

static dafl_fault site_follow(void *self, const dafl_segment *segment)
{
    fm_site *s = self;

    if (segment->query != s->followed)
        fm_broken("segments come once and in order", s->client, segment->slot);
    if (segment->kind != SEGMENT_KIND ||
        segment->bytes.len != s->world->rules->segment)
        return DAFL_E_MODEL;
    s->followed++;
    return DAFL_FAULT_NONE;
}

static dafl_fault site_shape(void *self, const dafl_question *q,
                             dafl_shape *out)
{
    const fm_site *s = self;

    return shape_of(s->world->rules, q, out);
}

static dafl_fault site_answer(void *self, const dafl_question *q, int64_t *x,
                              size_t len)
{
    const fm_site *s = self;
    const fm_rules *r = s->world->rules;

    if (q->number >= s->followed || len != length(r, q->number))
        fm_broken("a question is asked after its segment", s->client, 0);
    if (s->world->parties[s->client].refuses != DAFL_FAULT_NONE)
        return s->world->parties[s->client].refuses;
    for (size_t i = 0; i < len; i++)
        x[i] = number(r, s->client, q->number, i);
    return DAFL_FAULT_NONE;
}

static dafl_fault site_rewind(void *self)
{
    fm_site *s = self;

    s->followed = 0;
    return DAFL_FAULT_NONE;
}

static bool centre_next(void *self, bool plain, dafl_question *out)
{
    const fm_centre *s = self;
    uint32_t n = s->answered;

    if (n >= FM_QUESTIONS)
        return false;
    *out = (dafl_question){.number = n};
    if (!plain && n == 2 && s->world->rules->ties &&
        dafl_members_equal(&s->cohorts[0], &s->cohorts[1]))
        out->rank = 1;
    return true;
}

static dafl_fault centre_shape(void *self, const dafl_question *q,
                               dafl_shape *out)
{
    const fm_centre *s = self;

    return shape_of(s->world->rules, q, out);
}

static dafl_fault centre_segment(void *self, uint32_t n, dafl_segment *out,
                                 dafl_writer *bytes)
{
    const fm_centre *s = self;

    if (n != s->answered && !s->world->fed)
        fm_broken("a segment is made when it is the newest", n, s->answered);
    out->kind = SEGMENT_KIND;
    out->layer = (uint16_t)n;
    dafl_put_u64(bytes, s->chain);
    for (size_t i = 8; i < s->world->rules->segment; i++)
        dafl_put_u8(bytes, (uint8_t)i);
    return DAFL_FAULT_NONE;
}

static void centre_choose(void *self, const dafl_question *q,
                          const dafl_roster *roster, dafl_members *cohort)
{
    const fm_centre *s = self;

    (void)roster;
    if (s->world->rules->pick && q->number == 1)
        dafl_members_remove(cohort, 1);
}

static bool is_plain_sum(const fm_rules *r, uint32_t question,
                         const int64_t *sum, const dafl_members *cohort)
{
    for (size_t i = 0; i < length(r, question); i++) {
        int64_t left = 0;
        for (uint16_t u = 0; u < r->k; u++)
            if (dafl_members_has(cohort, u))
                left += number(r, u, question, i);
        if (left != sum[i])
            return false;
    }
    return true;
}

/* What the protocol promises of every sum. */
static void check_sum(const fm_centre *s, const dafl_question *q,
                      const int64_t *sum, size_t len,
                      const dafl_members *cohort)
{
    const fm_rules *r = s->world->rules;

    if (q->number != s->answered || len != length(r, q->number))
        fm_broken("sums come once and in order", q->number, s->answered);
    if (dafl_policy_cohort(&r->config.policy, &r->roster, cohort, cohort) !=
        DAFL_FAULT_NONE)
        fm_broken("a sum is over whole cells and m clients", q->number, 0);
    if (q->rank == 1 && (!dafl_members_equal(cohort, &s->cohorts[0]) ||
                         !dafl_members_equal(cohort, &s->cohorts[1])))
        fm_broken("a tied question has the cohort it is tied to", q->number, 0);
    if (!s->world->tainted && !is_plain_sum(r, q->number, sum, cohort))
        fm_broken("the sum is the plain sum", q->number, 0);
}

static dafl_fault centre_take(void *self, const dafl_question *q,
                              const int64_t *sum, size_t len,
                              const dafl_members *cohort, dafl_why *why)
{
    fm_centre *s = self;
    fm_world *w = s->world;

    if (!w->fed)
        check_sum(s, q, sum, len, cohort);
    if (q->number != s->answered || len != length(w->rules, q->number))
        return dafl_fail(why, DAFL_E_SUM_INVALID, "out of order");
    if (!w->recalling && w->refuses_sums > 0) {
        w->refuses_sums--;
        return dafl_fail(why, DAFL_E_SUM_INVALID, "refused");
    }
    for (size_t i = 0; i < len; i++)
        s->chain = s->chain * 31 + (uint64_t)sum[i];
    s->cohorts[s->answered++] = *cohort;
    return DAFL_FAULT_NONE;
}

const dafl_client_method fm_client_method = {
    .follow = site_follow,
    .shape = site_shape,
    .answer = site_answer,
    .rewind = site_rewind,
};

const dafl_server_method fm_server_method = {
    .next = centre_next,
    .shape = centre_shape,
    .segment = centre_segment,
    .choose = centre_choose,
    .take = centre_take,
};
