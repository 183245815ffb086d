/* SPDX-License-Identifier: Apache-2.0 */
/* deepafl simulate: a federation on one machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/simulate.h"
#include "lib/file.h"

static const char word[] = "simulate";

/* A number that was not given. */
#define UNSET SIZE_MAX

static dafl_err read_participation(const char *text, federation_plan *plan,
                                   dafl_why *why)
{
    char *end = NULL;

    plan->participation = strtod(text, &end);
    plan->consistent = strcmp(end, ":inconsistent") != 0;
    if (end == text || !(plan->participation > 0 && plan->participation <= 1) ||
        (*end != '\0' && strcmp(end, ":consistent") != 0 &&
         strcmp(end, ":inconsistent") != 0))
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--participation: '%s' is not a share in (0, 1], "
                         "alone or followed by :consistent or :inconsistent",
                         text);
    return DAFL_OK;
}

/* What --secure-agg and its companions say. */
static dafl_err read_security(const simulate_settings *set,
                              federation_plan *plan, dafl_why *why)
{
    secure_plan *p = &plan->secure;
    bool tuned = set->cell_size != UNSET || set->colluders != UNSET ||
                 set->min_cohort != UNSET || set->drop != 0 ||
                 set->drop_for_good != 0;

    p->encrypt = strcmp(set->secure_agg, "seal") == 0;
    plan->masks = p->encrypt || strcmp(set->secure_agg, "masks") == 0;
    if (!plan->masks && strcmp(set->secure_agg, "none") != 0)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--secure-agg: '%s' is not one of none, masks, seal",
                         set->secure_agg);
    if (!plan->masks)
        return !tuned ? DAFL_OK
                      : dafl_fail(why, DAFL_ERR_INPUT,
                                  "--cell-size, --colluders, --min-cohort, "
                                  "--drop, --drop-for-good: only with "
                                  "--secure-agg masks or seal");
    if (set->projections != NULL)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--projections: in a masked run all clients draw them "
                         "from the seed");
    p->colluders = set->colluders == UNSET ? 1 : set->colluders;
    p->min_cohort =
        set->min_cohort == UNSET ? p->colluders + 2 : set->min_cohort;
    p->cell_size = set->cell_size == UNSET ? p->colluders + 2 : set->cell_size;
    p->drop = set->drop;
    p->drop_for_good = set->drop_for_good;
    p->participation.permille = (uint16_t)(plan->participation * 1000 + 0.5);
    p->participation.consistent = plan->consistent;
    if (p->participation.permille < 1)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--participation: a masked run counts in thousandths");
    return secure_check(p, set->clients, why);
}

static dafl_err read_params(const simulation *sim, dafl_params *p,
                            dafl_why *why)
{
    const simulate_settings *set = &sim->set;

    *p = (dafl_params){.features = sim->train.x.cols,
                       .width = set->width,
                       .hidden = set->hidden,
                       .classes = sim->train.classes,
                       .layers = set->layers,
                       .lambda = set->lambda,
                       .gamma = set->gamma,
                       .contract = DAFL_CONTRACT_DEFAULT};
    DAFL_TRY(dafl_method_parse(&p->method, set->method, why));
    DAFL_TRY(dafl_activation_parse(&p->activation, set->activation, why));
    DAFL_TRY(dafl_schedule_parse(&p->schedule, set->schedule, why));
    DAFL_TRY(dafl_ablation_parse(&p->ablate, set->ablate, why));
    DAFL_TRY(dafl_seed_parse(&p->seed, set->seed, why));
    if (p->classes < 2)
        return dafl_fail(why, DAFL_ERR_INPUT, "%s: all rows have one label",
                         set->labels);
    if (set->grid < 1 || set->grid > 24)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--grid: %zu is not one of 1 to 24", set->grid);
    p->contract.s = (unsigned)set->grid;
    /* Raw backbone features are larger than what tanh leaves. */
    if (p->method == DAFL_METHOD_AFL)
        p->contract.q = 16;
    if (set->magnitude != UNSET) {
        if (set->magnitude < 1 || set->magnitude > 65536)
            return dafl_fail(why, DAFL_ERR_INPUT,
                             "--magnitude: %zu is not one of 1 to 65536",
                             set->magnitude);
        p->contract.q = (uint32_t)set->magnitude;
    }
    if (set->rows_max != UNSET)
        p->contract.n_max = set->rows_max;
    return dafl_params_check(p, why);
}

static dafl_err check_model_path(const simulate_settings *set, dafl_why *why)
{
    const char *inputs[] = {set->features, set->labels, set->test_features,
                            set->test_labels};
    json_t *text = json_string(set->model);

    json_decref(text);
    if (set->json && text == NULL)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--model: --json can only show a path in UTF-8");
    return cli_check_output("model", set->model, inputs,
                            sizeof inputs / sizeof inputs[0], why);
}

static dafl_err check_settings(const simulate_settings *set, dafl_why *why)
{
    if (set->features == NULL || set->labels == NULL)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--features and --labels are needed");
    if ((set->test_features == NULL) != (set->test_labels == NULL))
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--test-features and --test-labels go together");
    if ((set->projections != NULL || set->export_projections != NULL) &&
        strcmp(set->method, "afl") == 0)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--projections, --export-projections: method afl has "
                         "none");
    if (set->projections != NULL && strcmp(set->ablate, "projection") == 0)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--projections: they are what --ablate projection "
                         "leaves out");
    if (set->threads > 256)
        return dafl_fail(why, DAFL_ERR_INPUT, "--threads: %zu is more than 256",
                         set->threads);
    if (set->classes == 0)
        return dafl_fail(why, DAFL_ERR_INPUT, "--classes: 0 is too few");
    if (set->shuffle != UNSET && set->shuffle > UINT32_MAX)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--shuffle: %zu is not below 2^32", set->shuffle);
    return set->model == NULL ? DAFL_OK : check_model_path(set, why);
}

static dafl_err export_projections(const dafl_model *model, const char *dir,
                                   dafl_why *why)
{
    for (size_t k = 0; k <= model->params.layers; k++) {
        dafl_projection m;
        dafl_err err;
        DAFL_TRY(dafl_model_projection(model, &m, k));
        err = dafl_projection_write(&m, dir, k, why);
        dafl_projection_drop(&m);
        DAFL_TRY(err);
    }
    return DAFL_OK;
}

static dafl_err prepare(simulation *sim, dafl_why *why)
{
    const simulate_settings *set = &sim->set;
    federation_plan plan = {0};
    dafl_params params;
    bool test = set->test_features != NULL;

    DAFL_TRY(check_settings(set, why));
    DAFL_TRY(read_participation(set->participation, &plan, why));
    plan.shuffle = set->shuffle != UNSET;
    plan.order = set->shuffle;
    DAFL_TRY(read_security(set, &plan, why));
    DAFL_TRY(dafl_data_open(&sim->train, set->features, set->labels,
                            set->classes == UNSET ? 0 : set->classes, why));
    DAFL_TRY(read_params(sim, &params, why));
    if (sim->train.n > params.contract.n_max)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "%s: %zu rows are more than the numeric contract's "
                         "%llu; raise --rows-max",
                         set->features, sim->train.n,
                         (unsigned long long)params.contract.n_max);
    if (test)
        DAFL_TRY(dafl_data_open(&sim->test, set->test_features,
                                set->test_labels, params.classes, why));
    DAFL_TRY(partition_flip_labels(&sim->train, set->label_noise, &params.seed,
                                   why));
    DAFL_TRY(partition_make(&sim->part, &sim->train, set->clients,
                            set->partition, &params.seed, why));
    DAFL_TRY(dafl_model_new(&sim->model, &params));
    if (set->projections != NULL)
        DAFL_TRY(
            dafl_model_read_projections(sim->model, set->projections, why));
    sim->rows = calloc(params.layers + 1, sizeof *sim->rows);
    if (sim->rows == NULL)
        return DAFL_ERR_NOMEM;
    DAFL_TRY(dafl_pool_new(&sim->pool, (unsigned)set->threads));
    DAFL_TRY(federation_new(&sim->fed, sim->model, sim->pool, &sim->train,
                            test ? &sim->test : NULL, &sim->part, &plan, why));
    return set->export_projections == NULL
               ? DAFL_OK
               : export_projections(sim->model, set->export_projections, why);
}

/* The row of a layer is complete when its head has been tried on the rows. */
static void close_row(simulation *sim, size_t layer)
{
    simulate_row *row = &sim->rows[layer];

    row->train = federation_train_accuracy(sim->fed, layer);
    row->test = federation_test_accuracy(sim->fed, layer);
    sim->n_rows = layer + 1;
    if (!sim->set.json && !sim->set.quiet) {
        cli_progress_clear(&sim->progress);
        simulate_print_row(row);
    }
}

static void add_cost(simulate_row *row, const federation_step *step)
{
    row->compute_s += step->compute_s;
    row->masking_s += step->masking_s;
    row->unmasking_s += step->unmasking_s;
    row->solve_s += step->solve_s;
    row->seconds +=
        step->compute_s + step->masking_s + step->unmasking_s + step->solve_s;
    row->upload += step->upload;
    row->download += step->download;
    row->slots += step->slots;
    row->dropouts += step->dropouts;
}

/* Book a step: its cost belongs to the layer whose head it helps to find. */
static void book(simulation *sim, const federation_step *step)
{
    const dafl_query *q = &step->query;
    bool residual = q->kind == DAFL_QUERY_RESIDUAL;
    bool omega = sim->model->params.ablate == DAFL_ABLATE_OMEGA;
    size_t t = q->layer + (residual ? 1 : 0);
    simulate_row *row = &sim->rows[q->kind == DAFL_QUERY_REPORT ? q->layer : t];

    if (residual || q->kind == DAFL_QUERY_REPORT)
        close_row(sim, q->layer);
    else if (omega && q->kind == DAFL_QUERY_GRAM && t > 0)
        close_row(sim, t - 1);
    row->layer = t;
    add_cost(row, step);
    add_cost(&sim->all, step);
    if (q->kind == DAFL_QUERY_GRAM || q->kind == DAFL_QUERY_INCREMENT) {
        row->cohort = step->cohort;
        row->full = q->kind == DAFL_QUERY_GRAM;
        row->risk = federation_risk(sim->fed);
        sim->full += row->full;
        sim->increments += !row->full;
    }
}

static dafl_err train(simulation *sim, dafl_why *why)
{
    size_t all = federation_total_queries(sim->fed), done = 0;
    double start = cli_now();
    federation_step step;

    for (;;) {
        char what[128], more[48] = "";
        DAFL_TRY(federation_ask(sim->fed, &step, why));
        if (step.query.kind == DAFL_QUERY_DONE)
            break;
        book(sim, &step);
        if (step.dropouts > 0 || step.slots > 1)
            (void)snprintf(more, sizeof more, ", %zu dropped, %zu retries",
                           step.dropouts, step.slots - 1);
        (void)snprintf(what, sizeof what, "layer %zu of %zu, %s of %zu%s",
                       step.query.layer, sim->model->params.layers,
                       dafl_query_name(step.query.kind), step.cohort, more);
        cli_progress_step(&sim->progress, ++done, all, what);
    }
    cli_progress_clear(&sim->progress);
    sim->seconds = cli_now() - start;
    return DAFL_OK;
}

static dafl_err run(simulation *sim, dafl_why *why)
{
    DAFL_TRY(prepare(sim, why));
    cli_check_rows();
    if (!sim->set.json && !sim->set.quiet)
        simulate_print_heading(sim);
    cli_progress_start(&sim->progress, sim->set.quiet);
    DAFL_TRY(train(sim, why));
    if (sim->set.model != NULL)
        DAFL_TRY(dafl_model_save(sim->model, sim->set.model, why));
    if (sim->set.json)
        return cli_printed(simulate_print_json(sim), why);
    simulate_print_summary(sim);
    return DAFL_OK;
}

int cmd_simulate(int argc, char **argv)
{
    simulation sim = {.set = {.clients = 10,
                              .partition = "iid",
                              .participation = "1",
                              .method = "deepafl",
                              .activation = "gelu",
                              .schedule = "delta",
                              .ablate = "nothing",
                              .seed = "0",
                              .layers = 5,
                              .width = 1024,
                              .hidden = 1024,
                              .lambda = 1.0,
                              .gamma = 0.01,
                              .grid = 12,
                              .classes = UNSET,
                              .magnitude = UNSET,
                              .rows_max = UNSET,
                              .secure_agg = "none",
                              .cell_size = UNSET,
                              .colluders = UNSET,
                              .min_cohort = UNSET,
                              .shuffle = UNSET}};
    simulate_settings *s = &sim.set;
    const opt opts[] = {
        {OPT_HEADING, NULL, NULL, NULL, "Data"},
        {OPT_TEXT, "features", "X.npy", &s->features,
         "one row a sample, float16/32/64 or integers"},
        {OPT_TEXT, "labels", "y.npy", &s->labels, "integers from 0"},
        {OPT_TEXT, "test-features", "X.npy", &s->test_features,
         "rows that no client holds, to measure accuracy on"},
        {OPT_TEXT, "test-labels", "y.npy", &s->test_labels, "their labels"},
        {OPT_SIZE, "classes", "C", &s->classes,
         "number of classes (default: largest label + 1)"},
        {OPT_HEADING, NULL, NULL, NULL, "Federation"},
        {OPT_SIZE, "clients", "K", &s->clients, "default 10"},
        {OPT_TEXT, "partition", "HOW", &s->partition,
         "iid (default), dirichlet:ALPHA or shards:S"},
        {OPT_TEXT, "participation", "ETA", &s->participation,
         "share of the clients in each sum (default 1), followed by\n"
         ":consistent (one draw per layer, default) or :inconsistent"},
        {OPT_REAL, "label-noise", "TAU", &s->label_noise,
         "change this share of the training labels (default 0)"},
        {OPT_SIZE, "shuffle", "N", &s->shuffle,
         "visit the clients in another order; the model must not change"},
        {OPT_HEADING, NULL, NULL, NULL, "Secure aggregation"},
        {OPT_TEXT, "secure-agg", "HOW", &s->secure_agg,
         "none (default), or masks: uploads are masked, the server opens\n"
         "only sums, through the real protocol (3 to 256 clients); or\n"
         "seal: masked uploads are encrypted, a key holder opens the sum"},
        {OPT_SIZE, "cell-size", "G", &s->cell_size,
         "least clients per cell: sums are over whole cells (default:\n"
         "colluders + 2; 1: no cells, any cohort)"},
        {OPT_SIZE, "colluders", "C", &s->colluders,
         "clients that may collude with the server (default 1)"},
        {OPT_SIZE, "min-cohort", "M", &s->min_cohort,
         "least clients in a sum (default: colluders + 2)"},
        {OPT_REAL, "drop", "P", &s->drop,
         "chance of a client to drop out at a random moment of each slot;\n"
         "it comes back after the slot (default 0)"},
        {OPT_REAL, "drop-for-good", "P", &s->drop_for_good,
         "chance of a client to leave for good during the run (default 0)"},
        {OPT_HEADING, NULL, NULL, NULL, "Learner"},
        {OPT_TEXT, "method", "NAME", &s->method,
         "deepafl (default), or afl: ridge regression on the features"},
        {OPT_SIZE, "layers", "T", &s->layers, "residual blocks (default 5)"},
        {OPT_SIZE, "width", "D", &s->width,
         "features per layer (default 1024)"},
        {OPT_SIZE, "hidden", "DF", &s->hidden,
         "random hidden features per block (default 1024)"},
        {OPT_REAL, "lambda", "L", &s->lambda,
         "ridge penalty of the classifiers (default 1)"},
        {OPT_REAL, "gamma", "G", &s->gamma,
         "ridge penalty of the blocks (default 0.01)"},
        {OPT_TEXT, "activation", "NAME", &s->activation,
         "gelu (default), relu, leakyrelu, tanh, hardswish, softshrink,\n"
         "none"},
        {OPT_TEXT, "seed", "HEX|N", &s->seed,
         "64 hex digits or a number: projections and draws (default 0)"},
        {OPT_TEXT, "schedule", "NAME", &s->schedule,
         "delta (default): Gram increments while the cohort stays;\n"
         "full: Gram matrices every layer, as in the paper"},
        {OPT_TEXT, "ablate", "NAME", &s->ablate,
         "leave out: skip, projection, activation or omega"},
        {OPT_TEXT, "projections", "DIR", &s->projections,
         "read A.npy a.npy B0.npy b0.npy .. instead of drawing them"},
        {OPT_TEXT, "export-projections", "DIR", &s->export_projections,
         "write them"},
        {OPT_HEADING, NULL, NULL, NULL, "Numbers and machine"},
        {OPT_SIZE, "grid", "S", &s->grid,
         "operands are rounded to multiples of 2^-S (default 12)"},
        {OPT_SIZE, "magnitude", "Q", &s->magnitude,
         "largest magnitude of an operand (default 4; afl: 16)"},
        {OPT_SIZE, "rows-max", "N", &s->rows_max,
         "most rows of all clients together (default 262144)"},
        {OPT_SIZE, "threads", "N", &s->threads, "default: all cores"},
        {OPT_HEADING, NULL, NULL, NULL, "Output"},
        {OPT_TEXT, "model", "OUT.safetensors", &s->model,
         "where to write the model (default: nowhere)"},
        {OPT_FLAG, "json", NULL, &s->json, "one JSON object on stdout"},
        {OPT_FLAG, "quiet", NULL, &s->quiet, "no progress, no table"},
    };
    dafl_why why = {{0}};
    dafl_err err;
    int code = cli_parse(
        word, "--features X.npy --labels y.npy [options]",
        "Train a deep analytic network over K clients that live in this "
        "process. Each\nclient holds its own rows and answers with integer "
        "matrices; the server object\nis handed only their sums. The model "
        "file depends on the rows, the seed and the\nparameters, not on the "
        "number of clients, the partition or the threads.",
        opts, sizeof opts / sizeof opts[0], argc, argv, NULL, 0);

    if (code >= 0)
        return code;
    err = run(&sim, &why);
    if (err != DAFL_OK)
        code = cli_fail(word, err, &why);
    else
        code = 0;
    federation_free(&sim.fed);
    dafl_pool_free(&sim.pool);
    partition_drop(&sim.part);
    dafl_model_free(&sim.model);
    dafl_data_close(&sim.train);
    dafl_data_close(&sim.test);
    free(sim.rows);
    return code;
}
