/* SPDX-License-Identifier: Apache-2.0 */
#include "agents/partition.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Streams of DAFL_STREAM_SIMULATION. */
enum { STREAM_PARTITION = 0, STREAM_LABELS = 1 };

void partition_drop(partition *p)
{
    free(p->rows);
    free(p->first);
    *p = (partition){0};
}

static double normal(dafl_draw *draw)
{
    double u = dafl_draw_unit(draw), v = dafl_draw_unit(draw);

    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

/* The logarithm of a Gamma(alpha) variate (Marsaglia and Tsang 2000). Below 1
 * it is that of alpha + 1 plus log(u) / alpha: in logarithms, because for small
 * alpha the variate itself underflows. */
static double log_gamma_variate(dafl_draw *draw, double alpha)
{
    double boost = 0, d, c;

    if (alpha < 1) {
        boost = log(dafl_draw_unit(draw)) / alpha;
        alpha += 1;
    }
    d = alpha - 1.0 / 3.0;
    c = 1.0 / sqrt(9.0 * d);
    for (;;) {
        double x = normal(draw), v = 1.0 + c * x;
        if (v <= 0)
            continue;
        v = v * v * v;
        if (log(dafl_draw_unit(draw)) < 0.5 * x * x + d - d * v + d * log(v))
            return boost + log(d * v);
    }
}

/* Dirichlet(alpha) proportions over k clients. */
static void proportions(dafl_draw *draw, double *share, size_t k, double alpha)
{
    double max = -INFINITY, sum = 0;

    for (size_t i = 0; i < k; i++) {
        share[i] = log_gamma_variate(draw, alpha);
        max = fmax(max, share[i]);
    }
    for (size_t i = 0; i < k; i++) {
        share[i] = exp(share[i] - max);
        sum += share[i];
    }
    for (size_t i = 0; i < k; i++)
        share[i] /= sum;
}

/* rows ordered by label, in their drawn order within a label: a counting
 * sort. start: classes + 1. */
static dafl_err by_label(const dafl_data *data, uint32_t *rows, size_t *start)
{
    uint32_t *sorted = malloc(data->n * sizeof *sorted);

    if (sorted == NULL)
        return DAFL_ERR_NOMEM;
    memset(start, 0, (data->classes + 1) * sizeof *start);
    for (size_t i = 0; i < data->n; i++)
        start[data->y[i] + 1]++;
    for (size_t c = 0; c < data->classes; c++)
        start[c + 1] += start[c];
    for (size_t i = 0; i < data->n; i++)
        sorted[start[data->y[rows[i]]]++] = rows[i];
    for (size_t c = data->classes; c > 0; c--)
        start[c] = start[c - 1];
    start[0] = 0;
    memcpy(rows, sorted, data->n * sizeof *rows);
    free(sorted);
    return DAFL_OK;
}

/* Give each row an owner, then lay the rows out owner by owner. */
static dafl_err deal(partition *p, const uint32_t *owner, size_t n)
{
    uint32_t *rows = malloc(n * sizeof *rows);

    if (rows == NULL)
        return DAFL_ERR_NOMEM;
    for (size_t i = 0; i < n; i++)
        p->first[owner[i] + 1]++;
    for (size_t k = 0; k < p->n_clients; k++)
        p->first[k + 1] += p->first[k];
    for (size_t i = 0; i < n; i++)
        rows[p->first[owner[i]]++] = p->rows[i];
    for (size_t k = p->n_clients; k > 0; k--)
        p->first[k] = p->first[k - 1];
    p->first[0] = 0;
    free(p->rows);
    p->rows = rows;
    return DAFL_OK;
}

/* owner[i] of the i-th row in p->rows, for each kind of partition. */
static void own_iid(const partition *p, uint32_t *owner, size_t n)
{
    for (size_t i = 0; i < n; i++)
        owner[i] = (uint32_t)(i * p->n_clients / n);
}

static dafl_err own_dirichlet(const partition *p, uint32_t *owner,
                              const size_t *start, size_t classes,
                              dafl_draw *draw, double alpha)
{
    double *share = malloc(p->n_clients * sizeof *share);

    if (share == NULL)
        return DAFL_ERR_NOMEM;
    for (size_t c = 0; c < classes; c++) {
        size_t n = start[c + 1] - start[c], k = 0;
        double upto;
        proportions(draw, share, p->n_clients, alpha);
        upto = share[0];
        for (size_t i = 0; i < n; i++) {
            while (k + 1 < p->n_clients && (double)i >= upto * (double)n)
                upto += share[++k];
            owner[start[c] + i] = (uint32_t)k;
        }
    }
    free(share);
    return DAFL_OK;
}

static dafl_err own_shards(const partition *p, uint32_t *owner, size_t n,
                           dafl_draw *draw, size_t per_client)
{
    size_t n_shards = p->n_clients * per_client;
    uint32_t *shard = malloc(n_shards * sizeof *shard);

    if (shard == NULL)
        return DAFL_ERR_NOMEM;
    for (size_t i = 0; i < n_shards; i++)
        shard[i] = (uint32_t)(i / per_client);
    dafl_draw_shuffle(draw, shard, n_shards);
    for (size_t i = 0; i < n; i++)
        owner[i] = shard[i * n_shards / n];
    free(shard);
    return DAFL_OK;
}

/* "dirichlet:0.1" -> the number after `word`, which must be in (0, 1e6]. */
static int parameter(const char *how, const char *word, double *value)
{
    size_t len = strlen(word);
    char *end = NULL;

    if (strncmp(how, word, len) != 0)
        return 0;
    *value = strtod(how + len, &end);
    return end != how + len && *end == '\0' && *value > 0 && *value <= 1e6;
}

dafl_err partition_make(partition *out, const dafl_data *data, size_t n_clients,
                        const char *how, const dafl_seed *seed, dafl_why *why)
{
    dafl_err err = DAFL_ERR_NOMEM;
    partition p = {.n_clients = n_clients};
    uint32_t *owner = NULL;
    size_t *start = NULL;
    double x = 0;
    int dirichlet = parameter(how, "dirichlet:", &x);
    int shards = !dirichlet && parameter(how, "shards:", &x) && x == floor(x);
    dafl_draw draw;

    if (!dirichlet && !shards && strcmp(how, "iid") != 0)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--partition: '%s' is none of iid, dirichlet:ALPHA "
                         "(ALPHA > 0), shards:S (S a whole number)",
                         how);
    if (n_clients < 1 || n_clients > data->n)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--clients: %zu clients cannot share the %zu rows of "
                         "%s",
                         n_clients, data->n, data->path);
    if (shards && x * (double)n_clients > (double)data->n)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--partition: %.0f shards for each of %zu clients "
                         "are more than the %zu rows of %s",
                         x, n_clients, data->n, data->path);
    p.rows = malloc(data->n * sizeof *p.rows);
    p.first = calloc(n_clients + 1, sizeof *p.first);
    owner = malloc(data->n * sizeof *owner);
    start = calloc(data->classes + 1, sizeof *start);
    if (p.rows == NULL || p.first == NULL || owner == NULL || start == NULL)
        goto out;
    for (size_t i = 0; i < data->n; i++)
        p.rows[i] = (uint32_t)i;
    dafl_draw_init(&draw, seed, DAFL_STREAM_SIMULATION, STREAM_PARTITION);
    dafl_draw_shuffle(&draw, p.rows, data->n);
    err = dirichlet || shards ? by_label(data, p.rows, start) : DAFL_OK;
    if (err != DAFL_OK)
        goto out;
    if (dirichlet)
        err = own_dirichlet(&p, owner, start, data->classes, &draw, x);
    else if (shards)
        err = own_shards(&p, owner, data->n, &draw, (size_t)x);
    else
        own_iid(&p, owner, data->n);
    if (err == DAFL_OK)
        err = deal(&p, owner, data->n);
out:
    free(start);
    free(owner);
    if (err == DAFL_OK)
        *out = p;
    else
        partition_drop(&p);
    return err;
}

dafl_err partition_flip_labels(dafl_data *data, double tau,
                               const dafl_seed *seed, dafl_why *why)
{
    uint32_t *rows;
    size_t n;
    dafl_draw draw;

    if (!(tau >= 0 && tau <= 1))
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--label-noise: %g is not between 0 and 1", tau);
    if (data->classes < 2)
        return DAFL_OK;
    rows = malloc(data->n * sizeof *rows);
    if (rows == NULL)
        return DAFL_ERR_NOMEM;
    for (size_t i = 0; i < data->n; i++)
        rows[i] = (uint32_t)i;
    dafl_draw_init(&draw, seed, DAFL_STREAM_SIMULATION, STREAM_LABELS);
    dafl_draw_shuffle(&draw, rows, data->n);
    n = (size_t)(tau * (double)data->n + 0.5);
    for (size_t i = 0; i < n; i++) {
        uint32_t *y = &data->y[rows[i]];
        uint32_t other = (uint32_t)dafl_draw_below(&draw, data->classes - 1);
        *y = other < *y ? other : other + 1;
    }
    free(rows);
    return DAFL_OK;
}
