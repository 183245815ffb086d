/* SPDX-License-Identifier: Apache-2.0 */
/* Train with the library's own sites and trainer and write what it found:
 *
 *   train_f64 X.npy y.npy PROJECTIONS OUT C T d dF lambda gamma ACTIVATION
 *             SCHEDULE SITES GRID MAGNITUDE COHORTS
 *
 * PROJECTIONS holds A.npy a.npy B0.npy ..; "-" trains AFL. Rows are dealt out
 * in turn. GRID 0 switches rounding off. COHORTS.npy says who answers which
 * question (2 T + 3 x SITES, 0 or 1); "-": everybody all. OUT gets W0.npy ..
 * WT.npy (d x C) and risk.npy: per layer the risk and the regularised risk the
 * trainer states, the risk of the scores, and 1 where G came by an increment.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/npy.h"
#include "tests/reference/run.h"

enum {
    ARG_X = 1,
    ARG_Y,
    ARG_PROJECTIONS,
    ARG_OUT,
    ARG_CLASSES,
    ARG_LAYERS,
    ARG_WIDTH,
    ARG_HIDDEN,
    ARG_LAMBDA,
    ARG_GAMMA,
    ARG_ACTIVATION,
    ARG_SCHEDULE,
    ARG_SITES,
    ARG_GRID,
    ARG_MAGNITUDE,
    ARG_COHORTS,
    ARG_COUNT
};

static size_t size_of(const char *text)
{
    return (size_t)strtoull(text, NULL, 10);
}

static dafl_err read_params(dafl_params *p, char **argv, size_t features,
                            dafl_why *why)
{
    size_t grid = size_of(argv[ARG_GRID]);
    bool afl = strcmp(argv[ARG_PROJECTIONS], "-") == 0;

    *p = (dafl_params){.method = afl ? DAFL_METHOD_AFL : DAFL_METHOD_DEEPAFL,
                       .features = features,
                       .width = size_of(argv[ARG_WIDTH]),
                       .hidden = size_of(argv[ARG_HIDDEN]),
                       .classes = size_of(argv[ARG_CLASSES]),
                       .layers = size_of(argv[ARG_LAYERS]),
                       .lambda = strtod(argv[ARG_LAMBDA], NULL),
                       .gamma = strtod(argv[ARG_GAMMA], NULL),
                       .contract = DAFL_CONTRACT_DEFAULT};
    p->contract.exact = grid != 0;
    p->contract.s = (unsigned)grid;
    p->contract.q = (uint32_t)size_of(argv[ARG_MAGNITUDE]);
    DAFL_TRY(dafl_activation_parse(&p->activation, argv[ARG_ACTIVATION], why));
    DAFL_TRY(dafl_schedule_parse(&p->schedule, argv[ARG_SCHEDULE], why));
    return dafl_params_check(p, why);
}

/* *out: n bytes, to be freed; NULL for "-". */
static dafl_err read_cohorts(uint8_t **out, const char *path, size_t n,
                             dafl_why *why)
{
    dafl_npy npy;
    int64_t in = 0;
    dafl_err err = DAFL_OK;

    *out = NULL;
    if (strcmp(path, "-") == 0)
        return DAFL_OK;
    DAFL_TRY(dafl_npy_open(&npy, path, why));
    *out = calloc(n + 1, 1);
    if (npy.rows * npy.cols != n)
        err = dafl_fail(why, DAFL_ERR_INPUT, "%s: another shape", path);
    if (*out == NULL)
        err = DAFL_ERR_NOMEM;
    for (size_t i = 0; err == DAFL_OK && i < n; i++) {
        err = dafl_npy_get_int(&npy, &in, i);
        (*out)[i] = in != 0;
    }
    dafl_npy_close(&npy);
    return err;
}

/* Row i goes to site i mod n_sites. */
static dafl_err train(dafl_model *model, dafl_pool *pool, const dafl_data *data,
                      size_t n_sites, const char *cohorts, layer_facts *facts,
                      dafl_why *why)
{
    uint32_t *rows = malloc(data->n * sizeof *rows);
    size_t *first = calloc(n_sites + 1, sizeof *first), at = 0;
    uint8_t *present = NULL;
    deal d = {.n_sites = n_sites, .rows = rows, .first = first};
    dafl_err err =
        rows == NULL || first == NULL
            ? DAFL_ERR_NOMEM
            : read_cohorts(&present, cohorts,
                           (2 * model->params.layers + 3) * n_sites, why);

    d.present = present;
    if (err == DAFL_OK) {
        for (size_t k = 0; k < n_sites; k++) {
            for (size_t i = k; i < data->n; i += n_sites)
                rows[at++] = (uint32_t)i;
            first[k + 1] = at;
        }
        err = run_training(model, pool, data, &d, facts, NULL, why);
    }
    free(present);
    free(first);
    free(rows);
    return err;
}

static dafl_err write_all(const dafl_model *model, const layer_facts *facts,
                          const char *dir, dafl_why *why)
{
    const dafl_params *p = &model->params;
    size_t n = p->layers + 1;
    double *risk = malloc(4 * n * sizeof *risk);
    char path[4096];
    dafl_err err = risk == NULL ? DAFL_ERR_NOMEM : DAFL_OK;

    for (size_t t = 0; err == DAFL_OK && t < n; t++) {
        risk[4 * t] = facts[t].said.risk;
        risk[4 * t + 1] = facts[t].said.regularised_risk;
        risk[4 * t + 2] = facts[t].risk;
        risk[4 * t + 3] = facts[t].carried ? 1 : 0;
        (void)snprintf(path, sizeof path, "%s/W%zu.npy", dir, t);
        err = dafl_npy_write(path, DAFL_NPY_F64, 2, p->width, p->classes,
                             model->heads[t].w, why);
    }
    (void)snprintf(path, sizeof path, "%s/risk.npy", dir);
    if (err == DAFL_OK)
        err = dafl_npy_write(path, DAFL_NPY_F64, 2, n, 4, risk, why);
    free(risk);
    return err;
}

int main(int argc, char **argv)
{
    dafl_why why = {{0}};
    dafl_data data = {0};
    dafl_params p;
    dafl_model *model = NULL;
    dafl_pool *pool = NULL;
    layer_facts *facts = NULL;
    dafl_err err;

    if (argc != ARG_COUNT) {
        (void)fprintf(stderr,
                      "train_f64: %d arguments wanted, see the source\n",
                      ARG_COUNT - 1);
        return 2;
    }
    err = dafl_data_open(&data, argv[ARG_X], argv[ARG_Y],
                         size_of(argv[ARG_CLASSES]), &why);
    if (err == DAFL_OK)
        err = read_params(&p, argv, data.x.cols, &why);
    if (err == DAFL_OK)
        err = dafl_model_new(&model, &p);
    if (err == DAFL_OK && p.method == DAFL_METHOD_DEEPAFL)
        err = dafl_model_read_projections(model, argv[ARG_PROJECTIONS], &why);
    if (err == DAFL_OK)
        err = dafl_pool_new(&pool, 0);
    if (err == DAFL_OK) {
        facts = calloc(p.layers + 1, sizeof *facts);
        err = facts == NULL
                  ? DAFL_ERR_NOMEM
                  : train(model, pool, &data, size_of(argv[ARG_SITES]),
                          argv[ARG_COHORTS], facts, &why);
    }
    if (err == DAFL_OK)
        err = write_all(model, facts, argv[ARG_OUT], &why);
    if (err != DAFL_OK)
        (void)fprintf(stderr, "train_f64: %s: %s\n", dafl_err_name(err),
                      why.text);
    free(facts);
    dafl_pool_free(&pool);
    dafl_model_free(&model);
    dafl_data_close(&data);
    return err == DAFL_OK ? 0 : 1;
}
