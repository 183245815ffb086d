/* SPDX-License-Identifier: Apache-2.0 */
#include "agents/simulate.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void print_protocol(const simulation *sim)
{
    const dafl_policy *p = secure_policy(federation_secure(sim->fed));
    size_t t = 0;

    if (dafl_threshold(&t, sim->set.clients, p->c, p->a) != DAFL_FAULT_NONE)
        return;
    if (p->g == 1)
        printf("masked sums over any %u or more clients (no cells)",
               (unsigned)p->m);
    else
        printf("masked sums over whole cells of %u or more, %u or more clients",
               (unsigned)p->g, (unsigned)p->m);
    printf("; %u may collude with the server; quorum %zu of %zu\n",
           (unsigned)p->c, t + 1, sim->set.clients);
}

void simulate_print_heading(const simulation *sim)
{
    const dafl_params *p = &sim->model->params;
    size_t least, most;

    federation_site_sizes(sim->fed, &least, &most);
    printf("%zu rows, %zu features, %zu classes; %zu client%s (%s, %zu to %zu "
           "rows each)\n",
           sim->train.n, p->features, p->classes, sim->set.clients,
           sim->set.clients == 1 ? "" : "s", sim->set.partition, least, most);
    printf("method %s, %zu layers, widths %zu and %zu, lambda %g, gamma %g, "
           "ring %u bits\n",
           dafl_method_name(p->method), p->layers, p->width, p->hidden,
           p->lambda, p->gamma, p->contract.w);
    if (federation_secure(sim->fed) != NULL)
        print_protocol(sim);
    printf(
        "\nlayer       risk   reg. risk    train     test  seconds   up/client"
        " down/client  sums over\n");
}

void simulate_print_row(const simulate_row *row)
{
    char up[32], down[32], risk[32] = "-", regularised[32] = "-";
    char test[32] = "-";

    cli_bytes(up, row->upload);
    cli_bytes(down, row->download);
    if (row->risk.known) {
        (void)snprintf(risk, sizeof risk, "%.2f", row->risk.risk);
        (void)snprintf(regularised, sizeof regularised, "%.2f",
                       row->risk.regularised_risk);
    }
    if (!isnan(row->test))
        (void)snprintf(test, sizeof test, "%.2f%%", 100 * row->test);
    printf("%5zu %10s  %10s  %6.2f%%  %7s %8.2f %11s %11s  %zu %s", row->layer,
           risk, regularised, 100 * row->train, test, row->seconds, up, down,
           row->cohort, row->full ? "(full)" : "(increment)");
    if (row->dropouts > 0)
        printf(", %zu dropout%s, %zu slots", row->dropouts,
               row->dropouts == 1 ? "" : "s", row->slots);
    printf("\n");
    (void)fflush(stdout);
}

static void print_security(const simulation *sim)
{
    dafl_server_stats st = secure_stats(federation_secure(sim->fed));
    bool seal = strcmp(sim->set.secure_agg, "seal") == 0;
    const simulate_row *all = &sim->all;

    printf("Time: clients computing %.2f s, masking %.2f s; server unmasking "
           "%.2f s, solving %.2f s.\n",
           all->compute_s, all->masking_s, all->unmasking_s, all->solve_s);
    printf("%u slots (%u failed), %zu full and %zu increment sums of Gram "
           "matrices, %zu dropouts, %u secrets of\ndropped clients rebuilt, "
           "%u enrolment%s.\n",
           st.slots, st.failed, sim->full, sim->increments, all->dropouts,
           st.rebuilt, st.enrolments, st.enrolments == 1 ? "" : "s");
    printf("The server saw masked %suploads and opened %u sums %s, nothing "
           "else.\n",
           seal ? "and encrypted " : "", st.answered,
           secure_policy(federation_secure(sim->fed))->g == 1
               ? "over many clients"
               : "of whole cells");
}

void simulate_print_summary(const simulation *sim)
{
    const simulate_row *last = &sim->rows[sim->n_rows - 1];
    char up[32], down[32];

    cli_bytes(up, sim->all.upload);
    cli_bytes(down, sim->all.download);
    printf("\n%s accuracy %.2f%% after %.2f s; a client sent %s and received "
           "%s; at most %.0f MB of memory.\n",
           isnan(last->test) ? "Training" : "Test",
           100 * (isnan(last->test) ? last->train : last->test), sim->seconds,
           up, down, cli_peak_mb());
    if (federation_secure(sim->fed) != NULL)
        print_security(sim);
    else if (sim->set.clients > 1)
        printf("The server object saw %zu sums of integer matrices over the "
               "clients, never one client's.\n",
               federation_total_queries(sim->fed));
    if (sim->set.model != NULL)
        printf("Model: %s\n", sim->set.model);
}

/* Where the time went. */
static bool put_times(json_t *o, const simulate_row *row)
{
    return json_object_set_new(o, "compute_seconds",
                               json_real(row->compute_s)) == 0 &&
           json_object_set_new(o, "masking_seconds",
                               json_real(row->masking_s)) == 0 &&
           json_object_set_new(o, "unmasking_seconds",
                               json_real(row->unmasking_s)) == 0 &&
           json_object_set_new(o, "solve_seconds", json_real(row->solve_s)) ==
               0;
}

static json_t *row_json(const simulate_row *row)
{
    json_t *o = json_pack(
        "{s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:s, s:I, s:I, s:I}", "layer",
        (json_int_t)row->layer, "train_accuracy", row->train, "seconds",
        row->seconds, "site_seconds", row->compute_s + row->masking_s,
        "server_seconds", row->unmasking_s + row->solve_s, "upload_bytes",
        row->upload, "download_bytes", row->download, "gram",
        row->full ? "full" : "increment", "cohort", (json_int_t)row->cohort,
        "slots", (json_int_t)row->slots, "dropouts", (json_int_t)row->dropouts);

    if (o != NULL && row->risk.known &&
        json_object_set_new(o, "risk", json_real(row->risk.risk)) == 0)
        (void)json_object_set_new(o, "regularised_risk",
                                  json_real(row->risk.regularised_risk));
    if (o != NULL && !isnan(row->test))
        (void)json_object_set_new(o, "test_accuracy", json_real(row->test));
    return o != NULL && put_times(o, row) ? o : NULL;
}

/* What the protocol did; null when sums were added up plainly. */
static json_t *security_json(const simulation *sim)
{
    const secure *s = federation_secure(sim->fed);
    const dafl_policy *p;
    dafl_server_stats st;

    if (s == NULL)
        return json_null();
    p = secure_policy(s);
    st = secure_stats(s);
    return json_pack(
        "{s:s, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "mode",
        sim->set.secure_agg, "cell_size", (int)p->g, "min_cohort", (int)p->m,
        "colluders", (int)p->c, "slots", (json_int_t)st.slots, "failed_slots",
        (json_int_t)st.failed, "full_grams", (json_int_t)sim->full,
        "increments", (json_int_t)sim->increments, "dropouts",
        (json_int_t)sim->all.dropouts, "secrets_rebuilt",
        (json_int_t)st.rebuilt, "enrolments", (json_int_t)st.enrolments);
}

bool simulate_print_json(const simulation *sim)
{
    json_t *layers = json_array(), *o;

    for (size_t t = 0; layers != NULL && t < sim->n_rows; t++)
        if (json_array_append_new(layers, row_json(&sim->rows[t])) != 0)
            return false;
    o = json_pack("{s:o, s:I, s:s, s:I, s:o, s:f, s:f, s:f, s:f, s:o, s:s?}",
                  "params", cli_params_json(&sim->model->params), "clients",
                  (json_int_t)sim->set.clients, "partition", sim->set.partition,
                  "rows", (json_int_t)sim->train.n, "layers", layers, "seconds",
                  sim->seconds, "upload_bytes", sim->all.upload,
                  "download_bytes", sim->all.download, "peak_rss_mb",
                  cli_peak_mb(), "secure_agg", security_json(sim), "model",
                  sim->set.model);
    return o != NULL && put_times(o, &sim->all) && cli_print_json(o);
}
