/* SPDX-License-Identifier: Apache-2.0 */
/* Compute in the clear what a run's log says was summed:
 *
 *   recompute RUN.yaml DIR MODEL < SUMS > DIGESTS
 *
 * DIR has NAME_x.npy and NAME_y.npy of every client. A line of SUMS is a sum
 * that was opened, in the run's order: question, rank, 1 if the training went
 * on with it (else 0), and a 0 or 1 for every client, 1 if it was in the sum.
 * For each its digest is printed, as the audit logs have it; MODEL ("-": none)
 * is what the training ends with. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/runfile.h"
#include "lib/ring.h"
#include "lib/secret.h"

typedef struct {
    const char *dir;
    runfile *run;
    dafl_model *model;
    dafl_pool *pool;
    dafl_trainer *trainer;
    size_t n;
    dafl_site *sites[DAFL_CLIENTS_MAX];
    dafl_set cohort;
    dafl_query *past; /* those whose sums were used */
    size_t n_past;
} replay;

static dafl_err found(replay *r, dafl_why *why)
{
    const dafl_params *p = &r->run->params;
    dafl_projection first = {0};
    dafl_err err = dafl_model_projection(r->model, &first, 0);

    for (size_t k = 0; err == DAFL_OK && k < r->n; k++) {
        const char *name = r->run->roster.parties[k].id.name;
        char x[4096], y[4096];
        dafl_data data;
        (void)snprintf(x, sizeof x, "%s/%s_x.npy", r->dir, name);
        (void)snprintf(y, sizeof y, "%s/%s_y.npy", r->dir, name);
        err = dafl_data_open(&data, x, y, p->classes, why);
        if (err != DAFL_OK)
            break;
        dafl_site_free(&r->sites[k]);
        err = dafl_site_new(&r->sites[k], p, r->pool, &data, NULL, data.n,
                            &first, why);
        dafl_data_close(&data);
    }
    dafl_projection_drop(&first);
    return err;
}

static dafl_err open_run(replay *r, const char *path, dafl_why *why)
{
    DAFL_TRY(runfile_load(&r->run, path, why));
    if (r->run->params.method != DAFL_METHOD_DEEPAFL ||
        r->run->params.ablate != DAFL_ABLATE_NOTHING)
        return dafl_fail(why, DAFL_ERR_INPUT, "%s: of another method", path);
    r->n = r->run->roster.n_clients;
    DAFL_TRY(dafl_set_init(&r->cohort, r->n));
    DAFL_TRY(dafl_pool_new(&r->pool, 1));
    DAFL_TRY(dafl_model_new(&r->model, &r->run->params));
    DAFL_TRY(dafl_trainer_new(&r->trainer, r->model, r->n));
    r->past = calloc(dafl_deep_questions(&r->run->params), sizeof *r->past);
    return r->past == NULL ? DAFL_ERR_NOMEM : found(r, why);
}

/* Who is not in the cohort follows the model all the same; without a total all
 * of them only do that. */
static dafl_err add_up(replay *r, const dafl_query *query, dafl_sum *total,
                       dafl_why *why)
{
    dafl_projection projection = {0};
    dafl_err err = DAFL_OK;

    if (query->kind == DAFL_QUERY_RESIDUAL)
        err = dafl_model_projection(r->model, &projection, query->layer + 1);
    for (size_t k = 0; err == DAFL_OK && k < r->n; k++)
        err = dafl_site_answer(r->sites[k], r->model, query, &projection,
                               dafl_set_has(&r->cohort, k) ? total : NULL, why);
    dafl_projection_drop(&projection);
    return err;
}

/* An increment cannot be answered twice: back to what was before it. */
static dafl_err start_over(replay *r, dafl_why *why)
{
    dafl_err err = found(r, why);

    for (size_t i = 0; err == DAFL_OK && i < r->n_past; i++)
        err = add_up(r, &r->past[i], NULL, why);
    return err;
}

static dafl_err print_digest(const dafl_sum *sum, unsigned w)
{
    uint8_t *words = dafl_bulk_alloc(sum->len, w / 8);
    dafl_digest digest;

    if (words == NULL)
        return DAFL_ERR_NOMEM;
    dafl_ring_pack(words, (const uint64_t *)sum->i, sum->len, w);
    dafl_hash_one(&digest, "deepafl/sum",
                  (dafl_bytes){words, sum->len * (w / 8)});
    dafl_bulk_free(words);
    for (size_t i = 0; i < sizeof digest.b; i++)
        printf("%02x", digest.b[i]);
    printf("\n");
    return DAFL_OK;
}

static dafl_err recompute(replay *r, const dafl_question *q, bool used,
                          dafl_why *why)
{
    const dafl_params *p = &r->run->params;
    dafl_query query;
    dafl_layout layout;
    dafl_sum total;
    dafl_err err;

    dafl_deep_query(&query, p, q);
    dafl_query_layout(&layout, p, &query);
    DAFL_TRY(dafl_sum_init(&total, layout.len, true));
    err = add_up(r, &query, &total, why);
    if (err == DAFL_OK)
        err = print_digest(&total, p->contract.w);
    if (err == DAFL_OK && used)
        err = dafl_trainer_take(r->trainer, &query, &total, &r->cohort, why);
    dafl_sum_drop(&total);
    if (err == DAFL_OK && used)
        r->past[r->n_past++] = query;
    else if (err == DAFL_OK && query.kind == DAFL_QUERY_INCREMENT)
        err = start_over(r, why);
    return err;
}

static dafl_err read_line(replay *r, char *line, dafl_why *why)
{
    dafl_question q;
    bool used;

    q.number = (uint32_t)strtoul(line, &line, 10);
    q.rank = (uint32_t)strtoul(line, &line, 10);
    used = strtoul(line, &line, 10) != 0;
    line += strspn(line, " ");
    if (strspn(line, "01") != r->n)
        return dafl_fail(why, DAFL_ERR_INPUT, "not a cohort: %s", line);
    dafl_set_clear(&r->cohort);
    for (size_t k = 0; k < r->n; k++)
        if (line[k] == '1')
            dafl_set_add(&r->cohort, k);
    return recompute(r, &q, used, why);
}

int main(int argc, char **argv)
{
    replay r = {.dir = argc > 2 ? argv[2] : ""};
    dafl_why why = {{0}};
    char line[64 + DAFL_CLIENTS_MAX];
    dafl_err err;

    if (argc != 4)
        return 2;
    err = open_run(&r, argv[1], &why);
    while (err == DAFL_OK && fgets(line, sizeof line, stdin) != NULL)
        err = read_line(&r, line, &why);
    if (err == DAFL_OK && strcmp(argv[3], "-") != 0)
        err = dafl_model_save(r.model, argv[3], &why);
    if (err != DAFL_OK)
        (void)fprintf(stderr, "recompute: %s: %s\n", dafl_err_name(err),
                      why.text);
    for (size_t k = 0; k < r.n; k++)
        dafl_site_free(&r.sites[k]);
    dafl_trainer_free(&r.trainer);
    dafl_model_free(&r.model);
    dafl_pool_free(&r.pool);
    dafl_set_drop(&r.cohort);
    free(r.past);
    runfile_free(&r.run);
    return err == DAFL_OK ? 0 : 1;
}
