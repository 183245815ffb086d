/* SPDX-License-Identifier: Apache-2.0 */
/* deepafl evaluate, predict and inspect: what is done with a trained model. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "agents/cli.h"
#include "lib/data.h"
#include "lib/model.h"
#include "lib/npy.h"
#include "lib/pool.h"
#include "lib/secret.h"
#include "lib/site.h"

typedef struct {
    const char *model_path, *features, *labels, *out;
    const char *layer; /* NULL: the last */
    size_t threads;
    bool scores, json, quiet;
    dafl_model *model;
    dafl_pool *pool;
    dafl_data data;
    dafl_site *site;
    cli_progress progress;
} job;

static void job_drop(job *j)
{
    dafl_site_free(&j->site);
    dafl_pool_free(&j->pool);
    dafl_data_close(&j->data);
    dafl_model_free(&j->model);
}

/* Open model and data and compute the first features. */
static dafl_err job_open(job *j, dafl_why *why)
{
    dafl_projection first = {0};
    bool projected;
    dafl_err err = DAFL_OK;

    if (j->model_path == NULL || j->features == NULL)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--model and --features are needed");
    if (j->threads > 256)
        return dafl_fail(why, DAFL_ERR_INPUT, "--threads: %zu is more than 256",
                         j->threads);
    DAFL_TRY(dafl_model_load(&j->model, j->model_path, why));
    DAFL_TRY(dafl_data_open(&j->data, j->features, j->labels,
                            j->model->params.classes, why));
    DAFL_TRY(dafl_pool_new(&j->pool, (unsigned)j->threads));
    projected = j->model->params.method != DAFL_METHOD_AFL;
    if (projected)
        err = dafl_model_projection(j->model, &first, 0);
    if (err == DAFL_OK)
        err = dafl_site_new(&j->site, &j->model->params, j->pool, &j->data,
                            NULL, j->data.n, projected ? &first : NULL, why);
    dafl_projection_drop(&first);
    cli_progress_start(&j->progress, j->quiet);
    return err;
}

/* Bring the features from layer t to t + 1. */
static dafl_err job_advance(job *j, size_t t, dafl_why *why)
{
    const dafl_head *head = &j->model->heads[t];
    dafl_projection projection;
    dafl_err err;
    char what[64];

    DAFL_TRY(dafl_model_projection(j->model, &projection, t + 1));
    err = dafl_site_hidden(j->site, head, &projection, NULL, why);
    dafl_projection_drop(&projection);
    DAFL_TRY(err);
    (void)snprintf(what, sizeof what, "layer %zu", t + 1);
    cli_progress_step(&j->progress, t + 1, j->model->params.layers, what);
    return dafl_site_advance(j->site, head, &j->model->blocks[t], NULL, why);
}

static dafl_err evaluate(job *j, dafl_why *why)
{
    size_t layers;
    json_t *list;

    if (j->labels == NULL)
        return dafl_fail(why, DAFL_ERR_INPUT, "--labels is needed");
    DAFL_TRY(job_open(j, why));
    layers = j->model->params.layers;
    for (size_t t = 0; t < layers; t++)
        DAFL_TRY(job_advance(j, t, why));
    DAFL_TRY(dafl_site_score(j->site, &j->model->heads[layers], NULL, why));
    cli_progress_clear(&j->progress);
    list = j->json ? json_array() : NULL;
    for (size_t t = 0; t <= layers; t++) {
        uint64_t correct = dafl_site_correct(j->site, t);
        double share = (double)correct / (double)j->data.n;
        if (j->json)
            (void)json_array_append_new(
                list,
                json_pack("{s:I, s:I, s:f}", "layer", (json_int_t)t, "correct",
                          (json_int_t)correct, "accuracy", share));
        else
            printf("layer %3zu: %6.2f%% (%llu of %zu)\n", t, 100 * share,
                   (unsigned long long)correct, j->data.n);
    }
    return cli_printed(!j->json ||
                           cli_print_json(json_pack(
                               "{s:s, s:I, s:o}", "model", j->model_path,
                               "rows", (json_int_t)j->data.n, "layers", list)),
                       why);
}

static dafl_err read_layer(const job *j, size_t *out, dafl_why *why)
{
    size_t layers = j->model->params.layers;
    char *end = NULL;

    *out = layers;
    if (j->layer == NULL)
        return DAFL_OK;
    *out = (size_t)strtoull(j->layer, &end, 10);
    if (j->layer[0] < '0' || j->layer[0] > '9' || *end != '\0' || *out > layers)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--layer: '%s' is not one of 0..%zu, the layers of %s",
                         j->layer, layers, j->model_path);
    return DAFL_OK;
}

static dafl_err write_labels(const job *j, const double *scores, dafl_why *why)
{
    size_t classes = j->model->params.classes;
    uint32_t *labels = malloc(j->data.n * sizeof *labels);
    dafl_err err;

    if (labels == NULL)
        return DAFL_ERR_NOMEM;
    for (size_t i = 0; i < j->data.n; i++) {
        const double *row = scores + i * classes;
        labels[i] = 0;
        for (size_t c = 1; c < classes; c++)
            if (row[c] > row[labels[i]])
                labels[i] = (uint32_t)c;
    }
    err = dafl_npy_write(j->out, DAFL_NPY_U32, 1, j->data.n, 1, labels, why);
    free(labels);
    return err;
}

static dafl_err predict(job *j, dafl_why *why)
{
    const char *inputs[] = {j->model_path, j->features};
    size_t upto, classes;
    double *scores;
    dafl_err err;

    if (j->out == NULL)
        return dafl_fail(why, DAFL_ERR_INPUT, "--out is needed");
    DAFL_TRY(cli_check_output("out", j->out, inputs, 2, why));
    DAFL_TRY(job_open(j, why));
    DAFL_TRY(read_layer(j, &upto, why));
    for (size_t t = 0; t < upto; t++)
        DAFL_TRY(job_advance(j, t, why));
    classes = j->model->params.classes;
    scores = dafl_bulk_alloc(j->data.n * classes, sizeof *scores);
    if (scores == NULL)
        return DAFL_ERR_NOMEM;
    err = dafl_site_score(j->site, &j->model->heads[upto], scores, why);
    cli_progress_clear(&j->progress);
    if (err == DAFL_OK && j->scores)
        err = dafl_npy_write(j->out, DAFL_NPY_F64, 2, j->data.n, classes,
                             scores, why);
    else if (err == DAFL_OK)
        err = write_labels(j, scores, why);
    dafl_bulk_free(scores);
    DAFL_TRY(err);
    if (!j->json) {
        printf("%s: %s of %zu rows at layer %zu\n", j->out,
               j->scores ? "scores" : "labels", j->data.n, upto);
        return DAFL_OK;
    }
    return cli_printed(cli_print_json(json_pack(
                           "{s:s, s:s, s:I, s:I}", "out", j->out, "kind",
                           j->scores ? "scores" : "labels", "rows",
                           (json_int_t)j->data.n, "layer", (json_int_t)upto)),
                       why);
}

static int finish(const char *word, job *j, dafl_err err, const dafl_why *why)
{
    int code = err == DAFL_OK ? 0 : cli_fail(word, err, why);

    job_drop(j);
    return code;
}

int cmd_evaluate(int argc, char **argv)
{
    job j = {0};
    const opt opts[] = {
        {OPT_HEADING, NULL, NULL, NULL, "Options"},
        {OPT_TEXT, "model", "M.safetensors", &j.model_path, "a trained model"},
        {OPT_TEXT, "features", "X.npy", &j.features, "rows to classify"},
        {OPT_TEXT, "labels", "y.npy", &j.labels, "their true labels"},
        {OPT_SIZE, "threads", "N", &j.threads, "default: all cores"},
        {OPT_FLAG, "json", NULL, &j.json, "one JSON object on stdout"},
        {OPT_FLAG, "quiet", NULL, &j.quiet, "no progress"},
    };
    dafl_why why = {{0}};
    int code = cli_parse(
        "evaluate", "--model M.safetensors --features X.npy --labels y.npy",
        "Measure the accuracy of a model's every layer on "
        "labelled rows.",
        opts, sizeof opts / sizeof opts[0], argc, argv, NULL, 0);

    if (code >= 0)
        return code;
    return finish("evaluate", &j, evaluate(&j, &why), &why);
}

int cmd_predict(int argc, char **argv)
{
    job j = {0};
    const opt opts[] = {
        {OPT_HEADING, NULL, NULL, NULL, "Options"},
        {OPT_TEXT, "model", "M.safetensors", &j.model_path, "a trained model"},
        {OPT_TEXT, "features", "X.npy", &j.features, "rows to classify"},
        {OPT_TEXT, "out", "OUT.npy", &j.out, "where to write the answer"},
        {OPT_FLAG, "scores", NULL, &j.scores,
         "write a score for every class (float64) instead of labels\n"
         "(uint32)"},
        {OPT_TEXT, "layer", "T", &j.layer,
         "stop at this layer (default: last)"},
        {OPT_SIZE, "threads", "N", &j.threads, "default: all cores"},
        {OPT_FLAG, "json", NULL, &j.json, "one JSON object on stdout"},
        {OPT_FLAG, "quiet", NULL, &j.quiet, "no progress"},
    };
    dafl_why why = {{0}};
    int code = cli_parse("predict",
                         "--model M.safetensors --features X.npy --out OUT.npy",
                         "Classify rows with a model.", opts,
                         sizeof opts / sizeof opts[0], argc, argv, NULL, 0);

    if (code >= 0)
        return code;
    return finish("predict", &j, predict(&j, &why), &why);
}

static dafl_err inspect(const char *path, bool json, dafl_why *why)
{
    dafl_model *model = NULL;
    const dafl_params *p;
    json_t *list, *params;
    bool printed;

    DAFL_TRY(dafl_model_load(&model, path, why));
    p = &model->params;
    params = cli_params_json(p);
    list = json_array();
    for (size_t t = 0; list != NULL && t <= p->layers; t++) {
        double norm = 0;
        for (size_t i = 0;
             t < p->layers && i < p->hidden * model->blocks[t].rank; i++)
            norm += model->blocks[t].n[i] * model->blocks[t].n[i];
        (void)json_array_append_new(
            list, json_pack("{s:I, s:I, s:f}", "layer", (json_int_t)t, "rank",
                            (json_int_t)model->heads[t].rank, "omega_norm",
                            sqrt(norm)));
    }
    if (json) {
        printed = cli_print_json(json_pack("{s:s, s:o, s:o}", "model", path,
                                           "params", params, "layers", list));
    } else {
        const char *key;
        json_t *value;
        size_t t;
        printf("%s\n", path);
        json_object_foreach(params, key, value)
        {
            char *text = json_dumps(value, JSON_ENCODE_ANY);
            printf("  %-12s %s\n", key, text == NULL ? "?" : text);
            free(text);
        }
        printf("\nlayer  rank of W  norm of Omega\n");
        json_array_foreach(list, t, value) printf(
            "%5zu  %9lld  %13.6g\n", t,
            (long long)json_integer_value(json_object_get(value, "rank")),
            json_real_value(json_object_get(value, "omega_norm")));
        printed = fflush(stdout) == 0;
        json_decref(params);
        json_decref(list);
    }
    dafl_model_free(&model);
    return cli_printed(printed, why);
}

int cmd_inspect(int argc, char **argv)
{
    bool json = false;
    const char *path = NULL;
    const opt opts[] = {
        {OPT_HEADING, NULL, NULL, NULL, "Options"},
        {OPT_FLAG, "json", NULL, &json, "one JSON object on stdout"},
    };
    dafl_why why = {{0}};
    dafl_err err;
    int code = cli_parse(
        "inspect", "MODEL", "Show the parameters and layers of a model file.",
        opts, sizeof opts / sizeof opts[0], argc, argv, &path, 1);

    if (code >= 0)
        return code;
    err = inspect(path, json, &why);
    return err == DAFL_OK ? 0 : cli_fail("inspect", err, &why);
}
