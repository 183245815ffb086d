/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/deep.h"

#include <string.h>

static void put_double(dafl_writer *w, double v)
{
    uint64_t bits;

    v += 0.0; /* minus zero is written as zero */
    memcpy(&bits, &v, sizeof bits);
    dafl_put_u64(w, bits);
}

static dafl_err get_double(dafl_reader *r, double *out)
{
    uint64_t bits = 0;

    DAFL_TRY(dafl_get_u64(r, &bits));
    memcpy(out, &bits, sizeof *out);
    return DAFL_OK;
}

static dafl_err get_size(dafl_reader *r, size_t *out)
{
    uint32_t v = 0;

    DAFL_TRY(dafl_get_u32(r, &v));
    *out = v;
    return DAFL_OK;
}

/* One of `count` values of an enum. */
static dafl_err get_choice(dafl_reader *r, unsigned *out, unsigned count)
{
    uint8_t v = 0;

    DAFL_TRY(dafl_get_u8(r, &v));
    if (v >= count)
        return DAFL_ERR_PEER;
    *out = v;
    return DAFL_OK;
}

void dafl_put_deep_params(dafl_writer *w, const dafl_params *p,
                          const dafl_participation *part)
{
    dafl_put_u8(w, (uint8_t)p->method);
    dafl_put_u32(w, (uint32_t)p->features);
    dafl_put_u32(w, (uint32_t)p->width);
    dafl_put_u32(w, (uint32_t)p->hidden);
    dafl_put_u32(w, (uint32_t)p->classes);
    dafl_put_u32(w, (uint32_t)p->layers);
    dafl_put_u8(w, (uint8_t)p->activation);
    put_double(w, p->lambda);
    put_double(w, p->gamma);
    dafl_put_fixed(w, p->seed.b, sizeof p->seed.b);
    dafl_put_u8(w, (uint8_t)p->schedule);
    dafl_put_u8(w, (uint8_t)p->ablate);
    dafl_put_u16(w, part->permille);
    dafl_put_u8(w, part->consistent ? 1 : 0);
}

static dafl_err decode(dafl_params *p, dafl_participation *part,
                       dafl_bytes bytes)
{
    dafl_reader r = dafl_read(bytes);
    unsigned method = 0, activation = 0, schedule = 0, ablate = 0;
    unsigned consistent = 0;

    DAFL_TRY(get_choice(&r, &method, DAFL_METHOD_AFL + 1));
    DAFL_TRY(get_size(&r, &p->features));
    DAFL_TRY(get_size(&r, &p->width));
    DAFL_TRY(get_size(&r, &p->hidden));
    DAFL_TRY(get_size(&r, &p->classes));
    DAFL_TRY(get_size(&r, &p->layers));
    DAFL_TRY(get_choice(&r, &activation, DAFL_ACT_COUNT));
    DAFL_TRY(get_double(&r, &p->lambda));
    DAFL_TRY(get_double(&r, &p->gamma));
    DAFL_TRY(dafl_get_fixed(&r, p->seed.b, sizeof p->seed.b));
    DAFL_TRY(get_choice(&r, &schedule, DAFL_SCHEDULE_FULL + 1));
    DAFL_TRY(get_choice(&r, &ablate, DAFL_ABLATE_OMEGA + 1));
    DAFL_TRY(dafl_get_u16(&r, &part->permille));
    DAFL_TRY(get_choice(&r, &consistent, 2));
    DAFL_TRY(dafl_get_end(&r));
    p->method = (dafl_method)method;
    p->activation = (dafl_activation)activation;
    p->schedule = (dafl_schedule)schedule;
    p->ablate = (dafl_ablation)ablate;
    p->own_projections = false;
    part->consistent = consistent == 1;
    return DAFL_OK;
}

/* Whether these params are written as these bytes. */
static dafl_err compare(const dafl_params *p, const dafl_participation *part,
                        dafl_bytes bytes)
{
    dafl_writer w = {0};
    dafl_err err;

    dafl_put_deep_params(&w, p, part);
    err = dafl_writer_done(&w);
    if (err == DAFL_OK &&
        (w.len != bytes.len || memcmp(w.ptr, bytes.ptr, w.len) != 0))
        err = DAFL_ERR_INPUT;
    dafl_writer_drop(&w);
    return err;
}

dafl_err dafl_get_deep_params(dafl_params *p, dafl_participation *part,
                              dafl_bytes bytes, dafl_why *why)
{
    dafl_params got = {.contract = p->contract};
    dafl_participation share = {0};
    dafl_err err;

    if (decode(&got, &share, bytes) != DAFL_OK)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "the method's parameters are malformed");
    if (share.permille < 1 || share.permille > 1000)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "participation of %u per mille: choose 1 to 1000",
                         (unsigned)share.permille);
    DAFL_TRY(dafl_params_check(&got, why));
    got.contract = p->contract; /* its ring may be wider than derived */
    err = compare(&got, &share, bytes);
    if (err == DAFL_ERR_INPUT)
        dafl_why_set(why, "the method's parameters are not canonical");
    if (err != DAFL_OK)
        return err;
    *p = got;
    *part = share;
    return DAFL_OK;
}

/* Questions from one layer's Gram matrix to the next one's. */
static size_t per_layer(const dafl_params *p)
{
    return p->ablate == DAFL_ABLATE_OMEGA ? 1 : 2;
}

uint32_t dafl_deep_questions(const dafl_params *p)
{
    return (uint32_t)(3 + per_layer(p) * p->layers);
}

uint64_t dafl_deep_longest(const dafl_params *p)
{
    uint64_t longest = 0;

    for (unsigned kind = 0; kind < DAFL_QUERY_DONE; kind++) {
        /* The rank of an increment is at most C. */
        dafl_query query = {.kind = (dafl_query_kind)kind,
                            .rank =
                                p->width < p->classes ? p->width : p->classes};
        dafl_layout layout;
        dafl_query_layout(&layout, p, &query);
        longest = layout.len > longest ? layout.len : longest;
    }
    return longest;
}

void dafl_deep_query(dafl_query *out, const dafl_params *p,
                     const dafl_question *q)
{
    uint32_t last = dafl_deep_questions(p) - 1;

    *out = (dafl_query){.kind = DAFL_QUERY_DONE, .layer = p->layers};
    if (q->number == 0) {
        *out = (dafl_query){.kind = DAFL_QUERY_CENSUS};
    } else if (q->number == last) {
        out->kind = DAFL_QUERY_REPORT;
    } else if (q->number < last) {
        out->layer = (q->number - 1) / per_layer(p);
        if ((q->number - 1) % per_layer(p) == 1) {
            out->kind = DAFL_QUERY_RESIDUAL;
        } else {
            out->kind = q->rank == 0 ? DAFL_QUERY_GRAM : DAFL_QUERY_INCREMENT;
            out->rank = q->rank;
        }
    }
}

uint32_t dafl_deep_number(const dafl_params *p, const dafl_query *query)
{
    size_t gram = 1 + per_layer(p) * query->layer;

    switch (query->kind) {
    case DAFL_QUERY_CENSUS:
        return 0;
    case DAFL_QUERY_GRAM:
    case DAFL_QUERY_INCREMENT:
        return (uint32_t)gram;
    case DAFL_QUERY_RESIDUAL:
        return (uint32_t)gram + 1;
    case DAFL_QUERY_REPORT:
        return dafl_deep_questions(p) - 1;
    case DAFL_QUERY_DONE:
        break;
    }
    return dafl_deep_questions(p);
}

void dafl_deep_segment(dafl_segment *out, const dafl_params *p, uint32_t number)
{
    dafl_question before = {.number = number - 1};
    dafl_query query = {.kind = DAFL_QUERY_CENSUS};

    out->query = number;
    out->kind = DAFL_SEGMENT_NOTHING;
    out->layer = 0;
    if (number > 0)
        dafl_deep_query(&query, p, &before);
    if (query.kind == DAFL_QUERY_CENSUS && number > 0)
        out->kind = DAFL_SEGMENT_CENSUS;
    if (query.kind != DAFL_QUERY_GRAM && query.kind != DAFL_QUERY_RESIDUAL)
        return;
    out->layer = (uint16_t)query.layer;
    out->kind =
        query.kind == DAFL_QUERY_GRAM ? DAFL_SEGMENT_HEAD : DAFL_SEGMENT_BLOCK;
}

/* Whether the model's newest block is the one an increment brings G past. */
static bool increment_fits(const dafl_model *model, const dafl_query *query)
{
    return dafl_trainer_increments(&model->params) && query->layer > 0 &&
           query->layer == model->n_blocks &&
           query->rank == model->blocks[query->layer - 1].rank;
}

dafl_fault dafl_deep_shape(dafl_shape *out, const dafl_model *model,
                           const dafl_question *q)
{
    dafl_query query;
    dafl_layout layout;

    dafl_deep_query(&query, &model->params, q);
    if (query.kind == DAFL_QUERY_DONE || query.rank != q->rank ||
        (query.kind == DAFL_QUERY_INCREMENT && !increment_fits(model, &query)))
        return DAFL_E_MODEL;
    dafl_query_layout(&layout, &model->params, &query);
    *out = (dafl_shape){.len = layout.len};
    if (query.kind == DAFL_QUERY_INCREMENT) {
        out->n_ties = 2;
        out->ties[0] = q->number - 1;
        out->ties[1] = q->number - 2;
    }
    return DAFL_FAULT_NONE;
}
