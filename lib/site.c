/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/site.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/blas.h"
#include "lib/rows.h"
#include "lib/secret.h"
#include "lib/tally.h"
#include "lib/weights.h"

struct dafl_site {
    const dafl_params *params;
    dafl_pool *pool;
    char *name; /* of the data, for messages */
    size_t n;
    uint32_t *index;  /* the data set's numbers of our rows, for messages */
    uint32_t *labels; /* NULL when there are none */
    size_t layer;
    dafl_rows phi, f;
    uint64_t *correct; /* per head */
    double prominence; /* of the sum answered last */
};

/* One walk over the rows, batch by batch. */
typedef struct {
    dafl_site *site;
    const dafl_data *data;
    const dafl_head *head;
    const dafl_projection *projection;
    const dafl_block *block;
    double *scores;
    dafl_tally *tally; /* NULL: nothing is added up */
    pthread_mutex_t lock;
    /* Under the lock: */
    uint64_t correct;
    dafl_weights weights[2]; /* of the operands of the sum */
    bool fault; /* the first row out of range, its value and what it was */
    uint32_t fault_row;
    double fault_value;
    const char *fault_what;
} walk;

/* `at` counts our rows; the one named is the first in the data set. */
static void note_fault(walk *w, size_t at, double value, const char *what)
{
    uint32_t row = w->site->index[at];

    pthread_mutex_lock(&w->lock);
    if (!w->fault || row < w->fault_row) {
        w->fault = true;
        w->fault_row = row;
        w->fault_value = value;
        w->fault_what = what;
    }
    pthread_mutex_unlock(&w->lock);
}

/* Weigh the rows of operand `which` of the sum. */
static void weigh(walk *w, size_t which, const double *x, size_t n, size_t cols)
{
    dafl_weights here = dafl_weights_of(x, n, cols);

    pthread_mutex_lock(&w->lock);
    dafl_weights_add(&w->weights[which], &here);
    pthread_mutex_unlock(&w->lock);
}

/* Round one row to the grid. A value out of range is noted and its row zeroed,
 * so that what the walk still computes stays finite. */
static void round_row(walk *w, double *row, size_t n, size_t at,
                      const char *what)
{
    size_t bad = dafl_grid_round(&w->site->params->contract, row, n);

    if (bad < n) {
        note_fault(w, at, row[bad], what);
        memset(row, 0, n * sizeof *row);
    }
}

/* The rows of one batch; the rest of the batch is zeros. */
typedef struct {
    size_t first, n;
} span;

static span span_of(const dafl_site *site, size_t batch)
{
    span s = {.first = batch * DAFL_BATCH};

    s.n = site->n - s.first < DAFL_BATCH ? site->n - s.first : DAFL_BATCH;
    return s;
}

static void zero_rest(double *x, size_t n, size_t cols)
{
    memset(x + n * cols, 0, (DAFL_BATCH - n) * cols * sizeof *x);
}

/* rows += bias, activation, grid, kept in `keep`. */
static void activate(walk *w, double *x, span s, size_t cols,
                     const double *bias, dafl_activation act, dafl_rows *keep,
                     const char *what)
{
    for (size_t i = 0; i < s.n; i++) {
        double *row = x + i * cols;
        if (bias != NULL)
            for (size_t c = 0; c < cols; c++)
                row[c] += bias[c];
        dafl_activation_apply(act, row, cols);
        round_row(w, row, cols, s.first + i, what);
        dafl_rows_store(keep, row, s.first + i);
    }
}

/* Phi_0 from the raw features. */
static void first_batch(void *ctx, unsigned worker, size_t batch)
{
    walk *w = ctx;
    dafl_site *site = w->site;
    const dafl_params *p = site->params;
    span s = span_of(site, batch);
    double *x = dafl_pool_scratch(site->pool, worker);
    double *phi = x + DAFL_BATCH * p->features;

    dafl_npy_get_rows(&w->data->x, x, site->index + s.first, 0, s.n);
    zero_rest(x, s.n, p->features);
    for (size_t i = 0; i < s.n; i++)
        for (size_t c = 0; c < p->features; c++)
            if (!isfinite(x[i * p->features + c]))
                note_fault(w, s.first + i, x[i * p->features + c], "feature");
    if (w->projection == NULL) {
        activate(w, x, s, p->features, NULL, DAFL_ACT_NONE, &site->phi,
                 "feature");
        return;
    }
    dafl_batch_gemm(phi, x, w->projection->w, p->width, p->features, 0.0);
    activate(w, phi, s, p->width, w->projection->b, DAFL_ACT_TANH, &site->phi,
             "feature");
}

static void gram_batch(void *ctx, unsigned worker, size_t batch)
{
    walk *w = ctx;
    dafl_site *site = w->site;
    span s = span_of(site, batch);
    double *phi = dafl_pool_scratch(site->pool, worker);

    dafl_rows_load(&site->phi, phi, s.first, s.n, DAFL_BATCH);
    weigh(w, 0, phi, s.n, site->params->width);
    dafl_tally_square(w->tally, worker, 0, phi, s.n);
    dafl_tally_by_label(w->tally, worker, 1, phi, site->labels + s.first, s.n);
}

static uint32_t argmax(const double *x, size_t n)
{
    size_t best = 0;

    for (size_t i = 1; i < n; i++)
        if (x[i] > x[best])
            best = i;
    return (uint32_t)best;
}

static void count_correct(walk *w, const double *scores, span s)
{
    size_t classes = w->site->params->classes;
    uint64_t n = 0;

    for (size_t i = 0; i < s.n; i++)
        n += argmax(scores + i * classes, classes) ==
             w->site->labels[s.first + i];
    pthread_mutex_lock(&w->lock);
    w->correct += n;
    pthread_mutex_unlock(&w->lock);
}

/* scores -> R = Y - scores on the grid; without the skip connection the block
 * itself has to explain Y. */
static void residual(walk *w, double *scores, span s)
{
    const dafl_params *p = w->site->params;

    for (size_t i = 0; i < s.n; i++) {
        double *row = scores + i * p->classes;
        for (size_t c = 0; c < p->classes; c++)
            row[c] = p->ablate == DAFL_ABLATE_SKIP ? 0.0 : -row[c];
        row[w->site->labels[s.first + i]] += 1.0;
        round_row(w, row, p->classes, s.first + i, "residual");
    }
}

static void hidden_batch(void *ctx, unsigned worker, size_t batch)
{
    walk *w = ctx;
    dafl_site *site = w->site;
    const dafl_params *p = site->params;
    span s = span_of(site, batch);
    double *phi = dafl_pool_scratch(site->pool, worker);
    double *f = phi + DAFL_BATCH * p->width;
    double *scores = f + DAFL_BATCH * p->hidden;

    dafl_rows_load(&site->phi, phi, s.first, s.n, DAFL_BATCH);
    dafl_batch_gemm(f, phi, w->projection->w, p->hidden, p->width, 0.0);
    activate(w, f, s, p->hidden, w->projection->b,
             p->ablate == DAFL_ABLATE_ACTIVATION ? DAFL_ACT_NONE
                                                 : p->activation,
             &site->f, "hidden feature");
    if (site->labels == NULL)
        return;
    dafl_batch_gemm(scores, phi, w->head->w, p->classes, p->width, 0.0);
    count_correct(w, scores, s);
    if (w->tally == NULL)
        return;
    residual(w, scores, s);
    weigh(w, 0, f, s.n, p->hidden);
    weigh(w, 1, scores, s.n, p->classes);
    dafl_tally_square(w->tally, worker, 0, f, s.n);
    dafl_tally_product(w->tally, worker, 1, f, scores, s.n);
}

static void advance_batch(void *ctx, unsigned worker, size_t batch)
{
    walk *w = ctx;
    dafl_site *site = w->site;
    const dafl_params *p = site->params;
    span s = span_of(site, batch);
    double *phi = dafl_pool_scratch(site->pool, worker);
    double *f = phi + DAFL_BATCH * p->width;
    double *z = f + DAFL_BATCH * p->hidden;
    double *zg = z + DAFL_BATCH * w->block->rank;
    size_t r = w->block->rank;

    dafl_rows_load(&site->phi, phi, s.first, s.n, DAFL_BATCH);
    dafl_rows_load(&site->f, f, s.first, s.n, DAFL_BATCH);
    if (p->ablate == DAFL_ABLATE_OMEGA) {
        for (size_t i = 0; i < s.n * p->width; i++)
            phi[i] += f[i];
    } else {
        dafl_batch_gemm(z, f, w->block->n, r, p->hidden, 0.0);
        if (w->tally != NULL) {
            memcpy(zg, z, s.n * r * sizeof *z);
            for (size_t i = 0; i < s.n; i++)
                round_row(w, zg + i * r, r, s.first + i, "block output");
            weigh(w, 0, phi, s.n, p->width);
            weigh(w, 1, zg, s.n, r);
            dafl_tally_product(w->tally, worker, 0, phi, zg, s.n);
        }
        dafl_batch_gemm_nt(phi, z, w->head->u, p->width, r,
                           p->ablate == DAFL_ABLATE_SKIP ? 0.0 : 1.0);
    }
    for (size_t i = 0; i < s.n; i++) {
        double *row = phi + i * p->width;
        round_row(w, row, p->width, s.first + i, "feature");
        dafl_rows_store(&site->phi, row, s.first + i);
    }
}

static void score_batch(void *ctx, unsigned worker, size_t batch)
{
    walk *w = ctx;
    dafl_site *site = w->site;
    const dafl_params *p = site->params;
    span s = span_of(site, batch);
    double *phi = dafl_pool_scratch(site->pool, worker);
    double *scores = phi + DAFL_BATCH * p->width;

    dafl_rows_load(&site->phi, phi, s.first, s.n, DAFL_BATCH);
    dafl_batch_gemm(scores, phi, w->head->w, p->classes, p->width, 0.0);
    if (site->labels != NULL)
        count_correct(w, scores, s);
    if (w->scores != NULL)
        memcpy(w->scores + s.first * p->classes, scores,
               s.n * p->classes * sizeof *scores);
}

static dafl_err explain_fault(const walk *w, dafl_why *why)
{
    const dafl_site *site = w->site;

    if (!isfinite(w->fault_value))
        return dafl_fail(
            why, DAFL_ERR_INPUT, "%s: row %u: a %s at layer %zu is not finite",
            site->name, (unsigned)w->fault_row, w->fault_what, site->layer);
    return dafl_fail(why, DAFL_ERR_INPUT,
                     "%s: row %u: the %s %.6g at layer %zu is beyond the "
                     "largest magnitude %u of the numeric contract; scale the "
                     "data or raise the magnitude",
                     site->name, (unsigned)w->fault_row, w->fault_what,
                     w->fault_value, site->layer,
                     (unsigned)site->params->contract.q);
}

/* Walk over all rows with `cols` doubles of scratch a row for each worker,
 * adding to `sum` (laid out for `kind`) unless it is NULL. */
static dafl_err walk_batches(walk *w, dafl_pool_fn *fn, size_t cols,
                             dafl_query_kind kind, dafl_sum *sum, dafl_why *why)
{
    dafl_site *site = w->site;
    size_t scratch = DAFL_BATCH * cols;
    size_t n_batches = (site->n + DAFL_BATCH - 1) / DAFL_BATCH;
    dafl_query query = {.kind = kind,
                        .rank = w->block == NULL ? 0 : w->block->rank};
    dafl_layout layout;
    dafl_tally tally;
    unsigned first, end;

    dafl_query_layout(&layout, site->params, &query);
    if (sum != NULL && (sum->len != layout.len || site->labels == NULL))
        return DAFL_ERR_ARG;
    DAFL_TRY(dafl_pool_reserve(
        site->pool,
        (scratch + (sum == NULL ? 0 : dafl_tally_scratch(&layout))) *
            sizeof(double)));
    if (sum != NULL) {
        DAFL_TRY(dafl_tally_init(&tally, &site->params->contract, &layout, sum,
                                 dafl_pool_size(site->pool)));
        dafl_pool_workers(site->pool, &first, &end);
        for (unsigned i = first; i < end; i++)
            dafl_tally_bind(&tally, i,
                            (double *)dafl_pool_scratch(site->pool, i) +
                                scratch);
        w->tally = &tally;
    }
    pthread_mutex_init(&w->lock, NULL);
    dafl_pool_run(site->pool, n_batches, fn, w);
    pthread_mutex_destroy(&w->lock);
    if (sum != NULL)
        dafl_tally_finish(&tally);
    site->prominence = fmax(dafl_weights_share(&w->weights[0]),
                            dafl_weights_share(&w->weights[1]));
    return w->fault ? explain_fault(w, why) : DAFL_OK;
}

dafl_err dafl_site_gram(dafl_site *site, dafl_sum *sum, dafl_why *why)
{
    walk w = {.site = site};

    if (sum == NULL)
        return DAFL_ERR_ARG;
    return walk_batches(&w, gram_batch, site->params->width, DAFL_QUERY_GRAM,
                        sum, why);
}

dafl_err dafl_site_hidden(dafl_site *site, const dafl_head *head,
                          const dafl_projection *projection, dafl_sum *sum,
                          dafl_why *why)
{
    const dafl_params *p = site->params;
    walk w = {.site = site, .head = head, .projection = projection};

    if (site->layer >= p->layers)
        return DAFL_ERR_ARG;
    DAFL_TRY(walk_batches(&w, hidden_batch, p->width + p->hidden + p->classes,
                          DAFL_QUERY_RESIDUAL, sum, why));
    site->correct[site->layer] = w.correct;
    return DAFL_OK;
}

dafl_err dafl_site_advance(dafl_site *site, const dafl_head *head,
                           const dafl_block *block, dafl_sum *sum,
                           dafl_why *why)
{
    const dafl_params *p = site->params;
    walk w = {.site = site, .head = head, .block = block};

    if (site->layer >= p->layers)
        return DAFL_ERR_ARG;
    DAFL_TRY(walk_batches(&w, advance_batch,
                          p->width + p->hidden + 2 * block->rank,
                          DAFL_QUERY_INCREMENT, sum, why));
    site->layer++;
    return DAFL_OK;
}

dafl_err dafl_site_score(dafl_site *site, const dafl_head *head, double *scores,
                         dafl_why *why)
{
    walk w = {.site = site, .head = head, .scores = scores};

    DAFL_TRY(walk_batches(&w, score_batch,
                          site->params->width + site->params->classes,
                          DAFL_QUERY_DONE, NULL, why));
    site->correct[site->layer] = w.correct;
    return DAFL_OK;
}

static dafl_err site_init(dafl_site *site, const dafl_data *data,
                          const uint32_t *index, size_t n, dafl_why *why)
{
    const dafl_params *p = site->params;
    size_t len = strlen(data->path) + 1;

    site->n = n;
    site->name = malloc(len);
    site->index = dafl_bulk_alloc(n, sizeof *site->index);
    site->correct = calloc(p->layers + 1, sizeof *site->correct);
    if (data->y != NULL)
        site->labels = dafl_bulk_alloc(n, sizeof *site->labels);
    if (site->name == NULL || site->index == NULL || site->correct == NULL ||
        (data->y != NULL && site->labels == NULL))
        return DAFL_ERR_NOMEM;
    memcpy(site->name, data->path, len);
    for (size_t i = 0; i < n; i++) {
        site->index[i] = index == NULL ? (uint32_t)i : index[i];
        if (site->index[i] >= data->n)
            return DAFL_ERR_ARG;
        if (site->labels != NULL)
            site->labels[i] = data->y[site->index[i]];
        if (site->labels != NULL && site->labels[i] >= p->classes)
            return dafl_fail(why, DAFL_ERR_INPUT,
                             "%s: row %u has label %u, the model has %zu "
                             "classes",
                             data->path, (unsigned)site->index[i],
                             (unsigned)site->labels[i], p->classes);
    }
    DAFL_TRY(dafl_rows_init(&site->phi, &p->contract, n, p->width));
    if (p->layers > 0)
        DAFL_TRY(dafl_rows_init(&site->f, &p->contract, n, p->hidden));
    return DAFL_OK;
}

dafl_err dafl_site_new(dafl_site **out, const dafl_params *params,
                       dafl_pool *pool, const dafl_data *data,
                       const uint32_t *index, size_t n,
                       const dafl_projection *first, dafl_why *why)
{
    dafl_err err;
    dafl_site *site;
    walk w = {.data = data, .projection = first};

    if (data->x.cols != params->features)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "%s: has %zu columns, the model has %zu features",
                         data->path, data->x.cols, params->features);
    if ((first == NULL) != (params->method == DAFL_METHOD_AFL))
        return DAFL_ERR_ARG;
    site = calloc(1, sizeof *site);
    if (site == NULL)
        return DAFL_ERR_NOMEM;
    site->params = params;
    site->pool = pool;
    err = site_init(site, data, index, n, why);
    w.site = site;
    if (err == DAFL_OK)
        err = walk_batches(&w, first_batch, params->features + params->width,
                           DAFL_QUERY_DONE, NULL, why);
    if (err == DAFL_OK)
        *out = site;
    else
        dafl_site_free(&site);
    return err;
}

void dafl_site_free(dafl_site **site)
{
    dafl_site *s = *site;

    if (s == NULL)
        return;
    dafl_rows_drop(&s->phi);
    dafl_rows_drop(&s->f);
    dafl_bulk_free(s->labels);
    dafl_bulk_free(s->index);
    free(s->correct);
    free(s->name);
    free(s);
    *site = NULL;
}

size_t dafl_site_rows(const dafl_site *site)
{
    return site->n;
}

double dafl_site_prominence(const dafl_site *site)
{
    return site->prominence;
}

uint64_t dafl_site_correct(const dafl_site *site, size_t layer)
{
    return site->correct[layer];
}

/* Add a count to position `at` of a part. */
static void add_count(dafl_sum *sum, const dafl_part *part, size_t at,
                      uint64_t count)
{
    if (sum->i != NULL)
        sum->i[part->offset + at] += (int64_t)count;
    else
        sum->f[part->offset + at] += (double)count;
}

void dafl_site_census(const dafl_site *site, dafl_sum *sum)
{
    dafl_query query = {.kind = DAFL_QUERY_CENSUS};
    dafl_layout layout;

    dafl_query_layout(&layout, site->params, &query);
    add_count(sum, &layout.parts[0], 0, site->n);
    for (size_t i = 0; site->labels != NULL && i < site->n; i++)
        add_count(sum, &layout.parts[1], site->labels[i], 1);
}

void dafl_site_report(const dafl_site *site, const dafl_site *held,
                      dafl_sum *sum)
{
    dafl_query query = {.kind = DAFL_QUERY_REPORT};
    const dafl_site *of[] = {site, held};
    dafl_layout layout;

    dafl_query_layout(&layout, site->params, &query);
    for (size_t i = 0; i < 2 && of[i] != NULL; i++) {
        add_count(sum, &layout.parts[0], i, of[i]->n);
        for (size_t t = 0; t <= site->params->layers; t++)
            add_count(sum, &layout.parts[1 + i], t, of[i]->correct[t]);
    }
}

/* From layer t - 1 to t, through the block between them. */
static dafl_err advance_to(dafl_site *site, const dafl_model *model, size_t t,
                           const dafl_projection *projection, dafl_sum *sum,
                           dafl_why *why)
{
    const dafl_head *head = &model->heads[t - 1];

    if (site->params->ablate == DAFL_ABLATE_OMEGA)
        DAFL_TRY(dafl_site_hidden(site, head, projection, NULL, why));
    return dafl_site_advance(site, head, &model->blocks[t - 1], sum, why);
}

dafl_err dafl_site_answer(dafl_site *site, const dafl_model *model,
                          const dafl_query *query,
                          const dafl_projection *projection, dafl_sum *sum,
                          dafl_why *why)
{
    size_t t = query->layer;

    switch (query->kind) {
    case DAFL_QUERY_CENSUS:
        site->prominence = 0.0;
        if (sum != NULL)
            dafl_site_census(site, sum);
        return DAFL_OK;
    case DAFL_QUERY_GRAM:
        if (t > 0 && site->layer == t - 1)
            DAFL_TRY(advance_to(site, model, t, projection, NULL, why));
        if (site->layer != t)
            return DAFL_ERR_ARG;
        return sum == NULL ? DAFL_OK : dafl_site_gram(site, sum, why);
    case DAFL_QUERY_INCREMENT:
        if (t == 0 || site->layer != t - 1)
            return DAFL_ERR_ARG;
        return advance_to(site, model, t, projection, sum, why);
    case DAFL_QUERY_RESIDUAL:
        if (site->layer != t)
            return DAFL_ERR_ARG;
        return dafl_site_hidden(site, &model->heads[t], projection, sum, why);
    case DAFL_QUERY_REPORT:
        if (site->layer != t)
            return DAFL_ERR_ARG;
        DAFL_TRY(dafl_site_score(site, &model->heads[t], NULL, why));
        if (sum != NULL)
            dafl_site_report(site, NULL, sum);
        return DAFL_OK;
    case DAFL_QUERY_DONE:
        break;
    }
    return DAFL_ERR_ARG;
}
