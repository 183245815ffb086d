/* SPDX-License-Identifier: Apache-2.0 */
/* One layer of training on one site, against two yardsticks of the same run:
 *   blas   the BLAS calls that no implementation of it can avoid, on blocks
 *          that are already in the cache;
 *   paper  the paper's formulation: G = Phi'Phi and H = Phi'Y every layer,
 *          F Omega with Omega in full; with our activation and rounding.
 * Every time is the least of several repetitions, taken in turn. */
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/cli.h"
#include "lib/blas.h"
#include "lib/rows.h"
#include "lib/secret.h"
#include "lib/site.h"
#include "lib/tally.h"
#include "lib/trainer.h"

#define FEATURES 64

typedef struct {
    size_t rows, width, hidden, classes, threads, repeat;
    bool only_layer, json;
    double gamma;
} settings;

typedef struct {
    settings set;
    dafl_data data;
    float *x;
    dafl_model *model;
    dafl_pool *pool;
    dafl_trainer *trainer;
    dafl_site *site;
    dafl_set everyone;
    /* results */
    double hidden_s, advance_s, server_s, blas_s, paper_s, peak_mb;
    double risk_before, risk_after;
} bench;

static void die(const char *what, dafl_err err, const dafl_why *why)
{
    (void)fprintf(stderr, "bench/layer: %s: %s %s\n", what, dafl_err_name(err),
                  why->text);
    exit(EXIT_FAILED);
}

#define MUST(expr)                 \
    do {                           \
        dafl_why why = {{0}};      \
        dafl_err err = (expr);     \
        if (err != DAFL_OK)        \
            die(#expr, err, &why); \
    } while (0)

static void *room(size_t n)
{
    double *x = dafl_bulk_alloc(n, sizeof *x);

    if (x == NULL) {
        (void)fprintf(stderr, "bench/layer: out of memory\n");
        exit(EXIT_FAILED);
    }
    memset(x, 0, n * sizeof *x);
    return x;
}

static void least(double *best, double seconds)
{
    if (*best == 0 || seconds < *best)
        *best = seconds;
}

/* Classes that overlap: a mean per class plus noise. */
static void make_data(bench *b)
{
    size_t n = b->set.rows;
    double *noise = room(n * FEATURES), *mean = room(b->set.classes * FEATURES);
    dafl_seed seed = {{7}};

    dafl_stream_uniform(noise, n * FEATURES, &seed, DAFL_STREAM_SIMULATION, 0,
                        2.0);
    dafl_stream_uniform(mean, b->set.classes * FEATURES, &seed,
                        DAFL_STREAM_SIMULATION, 1, 1.0);
    b->x = dafl_bulk_alloc(n * FEATURES, sizeof *b->x);
    b->data.y = dafl_bulk_alloc(n, sizeof *b->data.y);
    b->data.path = malloc(10);
    if (b->x == NULL || b->data.y == NULL || b->data.path == NULL)
        exit(EXIT_FAILED);
    memcpy(b->data.path, "synthetic", 10);
    for (size_t i = 0; i < n; i++) {
        size_t y = i % b->set.classes;
        b->data.y[i] = (uint32_t)y;
        for (size_t j = 0; j < FEATURES; j++)
            b->x[i * FEATURES + j] =
                (float)(noise[i * FEATURES + j] + mean[y * FEATURES + j]);
    }
    b->data.n = n;
    b->data.classes = b->set.classes;
    b->data.x = (dafl_npy){.type = DAFL_NPY_F32,
                           .n_dims = 2,
                           .rows = n,
                           .cols = FEATURES,
                           .data = (const uint8_t *)b->x};
    dafl_bulk_free(noise);
    dafl_bulk_free(mean);
}

/* The sum that one site gives to the trainer's next query, and its solution. */
static double take(bench *b, const dafl_query *query, dafl_sum *sum)
{
    double start = cli_now();

    MUST(dafl_trainer_take(b->trainer, query, sum, &b->everyone, &why));
    dafl_sum_drop(sum);
    return cli_now() - start;
}

static void next(bench *b, dafl_query *query, dafl_sum *sum)
{
    dafl_layout layout;

    dafl_trainer_next(b->trainer, query, &b->everyone);
    dafl_query_layout(&layout, &b->model->params, query);
    MUST(dafl_sum_init(sum, layout.len, true));
}

static void prepare(bench *b)
{
    dafl_params p = {.method = DAFL_METHOD_DEEPAFL,
                     .features = FEATURES,
                     .width = b->set.width,
                     .hidden = b->set.hidden,
                     .classes = b->set.classes,
                     .layers = b->set.repeat,
                     .activation = DAFL_ACT_GELU,
                     .lambda = 1.0,
                     .gamma = b->set.gamma,
                     .contract = DAFL_CONTRACT_DEFAULT};
    dafl_projection first;
    dafl_query query;
    dafl_sum sum;

    make_data(b);
    MUST(dafl_params_check(&p, &why));
    MUST(dafl_model_new(&b->model, &p));
    MUST(dafl_pool_new(&b->pool, (unsigned)b->set.threads));
    MUST(dafl_trainer_new(&b->trainer, b->model, 1));
    MUST(dafl_set_init(&b->everyone, 1));
    dafl_set_add(&b->everyone, 0);
    MUST(dafl_model_projection(b->model, &first, 0));
    MUST(dafl_site_new(&b->site, &b->model->params, b->pool, &b->data, NULL,
                       b->set.rows, &first, &why));
    dafl_projection_drop(&first);
    for (int i = 0; i < 2; i++) { /* census, G_0 H_0 */
        next(b, &query, &sum);
        MUST(dafl_site_answer(b->site, b->model, &query, NULL, &sum, &why));
        (void)take(b, &query, &sum);
    }
    b->risk_before = dafl_trainer_risk(b->trainer).risk;
}

/* Ours: the two walks of a site, and the server's two solutions. */
static void run_layer(bench *b, const dafl_projection *projection)
{
    dafl_query query;
    dafl_sum sum;
    double start, server;

    next(b, &query, &sum);
    start = cli_now();
    MUST(dafl_site_answer(b->site, b->model, &query, projection, &sum, &why));
    least(&b->hidden_s, cli_now() - start);
    server = take(b, &query, &sum);
    next(b, &query, &sum);
    start = cli_now();
    MUST(dafl_site_answer(b->site, b->model, &query, NULL, &sum, &why));
    least(&b->advance_s, cli_now() - start);
    least(&b->server_s, server + take(b, &query, &sum));
    b->risk_after = dafl_trainer_risk(b->trainer).risk;
    if (b->peak_mb == 0)
        b->peak_mb = cli_peak_mb();
}

typedef struct {
    const bench *b;
    const double *proj, *w, *n, *u, *omega;
    dafl_rows phi, f;
    dafl_tally tally;
    size_t rank;
} yardstick;

static void blas_batch(void *ctx, unsigned worker, size_t batch)
{
    yardstick *y = ctx;
    const settings *s = &y->b->set;
    size_t r = y->rank, m = DAFL_BATCH;
    double *phi = dafl_pool_scratch(y->b->pool, worker);
    double *f = phi + m * s->width, *scores = f + m * s->hidden;
    double *z = scores + m * s->classes, *pi = z + m * r;
    double *ups = pi + s->hidden * s->hidden,
           *inc = ups + s->hidden * s->classes;

    (void)batch;
    dafl_batch_gemm(f, phi, y->proj, s->hidden, s->width, 0.0);
    dafl_syrk(pi, f, s->hidden, m, 1.0);
    dafl_batch_gemm(scores, phi, y->w, s->classes, s->width, 0.0);
    dafl_gemm_tn(ups, f, scores, s->hidden, s->classes, m, 1.0);
    dafl_batch_gemm(z, f, y->n, r, s->hidden, 0.0);
    dafl_gemm_tn(inc, phi, z, s->width, r, m, 1.0);
    dafl_batch_gemm_nt(phi, z, y->u, s->width, r, 1.0);
}

static size_t n_batches(const bench *b)
{
    return (b->set.rows + DAFL_BATCH - 1) / DAFL_BATCH;
}

static void run_blas(bench *b, yardstick *y)
{
    const settings *s = &b->set;
    size_t r = y->rank;
    size_t len = DAFL_BATCH * (s->width + s->hidden + s->classes + r) +
                 s->hidden * s->hidden + s->hidden * s->classes + s->width * r;
    unsigned first, end;
    double start;

    MUST(dafl_pool_reserve(b->pool, len * sizeof(double)));
    dafl_pool_workers(b->pool, &first, &end);
    for (unsigned i = first; i < end; i++)
        memset(dafl_pool_scratch(b->pool, i), 0, len * sizeof(double));
    start = cli_now();
    dafl_pool_run(b->pool, n_batches(b), blas_batch, y);
    least(&b->blas_s, cli_now() - start);
}

/* Phi_t+1 = Phi_t + F Omega with Omega dense, then G and H = Phi'Y. */
static void paper_batch(void *ctx, unsigned worker, size_t batch)
{
    yardstick *y = ctx;
    const bench *b = y->b;
    const settings *s = &b->set;
    size_t at = batch * DAFL_BATCH;
    size_t n = s->rows - at < DAFL_BATCH ? s->rows - at : DAFL_BATCH;
    double *phi = dafl_pool_scratch(b->pool, worker);
    double *f = phi + DAFL_BATCH * s->width;
    double *labels = f + DAFL_BATCH * s->hidden;

    dafl_rows_load(&y->phi, phi, at, n, DAFL_BATCH);
    dafl_rows_load(&y->f, f, at, n, DAFL_BATCH);
    dafl_batch_gemm(phi, f, y->omega, s->width, s->hidden, 1.0);
    memset(labels, 0, n * s->classes * sizeof *labels);
    for (size_t i = 0; i < n; i++)
        labels[i * s->classes + b->data.y[at + i]] = 1.0;
    for (size_t i = 0; i < n; i++) {
        double *row = phi + i * s->width;
        if (dafl_grid_round(&b->model->params.contract, row, s->width) !=
            s->width)
            exit(EXIT_FAILED);
        dafl_rows_store(&y->phi, row, at + i);
    }
    dafl_tally_square(&y->tally, worker, 0, phi, n);
    dafl_tally_product(&y->tally, worker, 1, labels, phi, n);
}

static void run_paper(bench *b, yardstick *y)
{
    const settings *s = &b->set;
    dafl_query query = {.kind = DAFL_QUERY_GRAM};
    size_t own = DAFL_BATCH * (s->width + s->hidden + s->classes);
    dafl_layout layout;
    dafl_sum sum;
    unsigned first, end;
    double start;

    dafl_query_layout(&layout, &b->model->params, &query);
    MUST(dafl_sum_init(&sum, layout.len, true));
    start = cli_now();
    MUST(dafl_pool_reserve(b->pool, (own + dafl_tally_scratch(&layout)) *
                                        sizeof(double)));
    MUST(dafl_tally_init(&y->tally, &b->model->params.contract, &layout, &sum,
                         dafl_pool_size(b->pool)));
    dafl_pool_workers(b->pool, &first, &end);
    for (unsigned i = first; i < end; i++)
        dafl_tally_bind(&y->tally, i,
                        (double *)dafl_pool_scratch(b->pool, i) + own);
    dafl_pool_run(b->pool, n_batches(b), paper_batch, y);
    dafl_tally_finish(&y->tally);
    least(&b->paper_s, cli_now() - start);
    dafl_sum_drop(&sum);
}

static void fill_rows(dafl_rows *rows, const bench *b, size_t cols)
{
    double *row = room(cols);

    MUST(dafl_rows_init(rows, &b->model->params.contract, b->set.rows, cols));
    for (size_t i = 0; i < b->set.rows; i++) {
        for (size_t c = 0; c < cols; c++)
            row[c] = (double)((i * 31 + c * 7) % 1024) / 1024.0 - 0.5;
        dafl_rows_store(rows, row, i);
    }
    dafl_bulk_free(row);
}

static void run(bench *b)
{
    const settings *s = &b->set;
    yardstick y = {.b = b};

    prepare(b);
    for (size_t i = 0; i < s->repeat; i++) {
        dafl_projection projection;
        MUST(dafl_model_projection(b->model, &projection, i + 1));
        run_layer(b, &projection);
        if (!s->only_layer) {
            y.proj = projection.w;
            y.w = b->model->heads[i].w;
            y.u = b->model->heads[i].u;
            y.n = b->model->blocks[i].n;
            y.rank = b->model->heads[i].rank;
            run_blas(b, &y);
            if (y.omega == NULL) {
                y.omega = room(s->hidden * s->width);
                fill_rows(&y.phi, b, s->width);
                fill_rows(&y.f, b, s->hidden);
            }
            run_paper(b, &y);
        }
        dafl_projection_drop(&projection);
    }
    /* The paper's first walk (F, R, Pi, Upsilon) is ours. */
    b->paper_s += b->hidden_s;
    dafl_rows_drop(&y.phi);
    dafl_rows_drop(&y.f);
    dafl_bulk_free((double *)(uintptr_t)y.omega);
}

static bool print_result(const bench *b)
{
    const settings *s = &b->set;
    double layer = b->hidden_s + b->advance_s;
    json_t *o = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f}",
        "rows", (json_int_t)s->rows, "width", (json_int_t)s->width, "hidden",
        (json_int_t)s->hidden, "classes", (json_int_t)s->classes, "threads",
        (json_int_t)dafl_pool_size(b->pool), "blas_core", dafl_blas_core(),
        "layer_s", layer, "hidden_s", b->hidden_s, "advance_s", b->advance_s,
        "server_s", b->server_s, "peak_rss_mb", b->peak_mb, "risk_before",
        b->risk_before, "risk_after", b->risk_after);

    if (!s->only_layer && o != NULL) {
        (void)json_object_set_new(o, "blas_s", json_real(b->blas_s));
        (void)json_object_set_new(o, "paper_s", json_real(b->paper_s));
        (void)json_object_set_new(o, "over_blas", json_real(layer / b->blas_s));
        (void)json_object_set_new(o, "speedup_over_paper",
                                  json_real(b->paper_s / layer));
    }
    if (s->json)
        return cli_print_json(o);
    json_decref(o);
    printf("%zu rows, widths %zu and %zu, %zu classes, %u threads, kernels "
           "%s\n",
           s->rows, s->width, s->hidden, s->classes, dafl_pool_size(b->pool),
           dafl_blas_core());
    printf("layer    %.3f s (hidden %.3f, advance %.3f); server %.3f s; peak "
           "%.0f MB\n",
           layer, b->hidden_s, b->advance_s, b->server_s, b->peak_mb);
    printf("risk     %.2f before, %.2f after\n", b->risk_before, b->risk_after);
    if (!s->only_layer)
        printf("blas     %.3f s: our layer takes %.2f x\npaper    %.3f s: our "
               "layer is %.2f x faster\n",
               b->blas_s, layer / b->blas_s, b->paper_s, b->paper_s / layer);
    return true;
}

int main(int argc, char **argv)
{
    bench b = {.set = {.rows = 50000,
                       .width = 1024,
                       .hidden = 1024,
                       .classes = 100,
                       .gamma = 0.01,
                       .repeat = 5}};
    settings *s = &b.set;
    const opt opts[] = {
        {OPT_HEADING, NULL, NULL, NULL, "Options"},
        {OPT_SIZE, "rows", "N", &s->rows, "default 50000"},
        {OPT_SIZE, "width", "D", &s->width, "default 1024"},
        {OPT_SIZE, "hidden", "DF", &s->hidden, "default 1024"},
        {OPT_SIZE, "classes", "C", &s->classes, "default 100"},
        {OPT_SIZE, "threads", "N", &s->threads, "default: all cores"},
        {OPT_SIZE, "repeat", "N", &s->repeat, "layers to time (default 5)"},
        {OPT_FLAG, "only-layer", NULL, &s->only_layer, "no yardsticks"},
        {OPT_FLAG, "json", NULL, &s->json, "one JSON object on stdout"},
    };
    int help = 0;
    size_t n_words = 0;
    dafl_why why = {{0}};

    cli_use_fast_blas(argv);
    if (opt_parse(opts, sizeof opts / sizeof opts[0], argc, argv, NULL, 0,
                  &n_words, &help, &why) != DAFL_OK) {
        (void)fprintf(stderr, "bench/layer: %s\n", why.text);
        return EXIT_INPUT;
    }
    if (help) {
        opt_print_help(opts, sizeof opts / sizeof opts[0]);
        return 0;
    }
    run(&b);
    return print_result(&b) ? 0 : EXIT_FAILED;
}
