/* SPDX-License-Identifier: Apache-2.0 */
/* The model as a safetensors file. Tensors: "U.t" [d, r], "M.t" [r, C] for
 * t = 0 .. T, "N.t" [dF, r] for t = 0 .. T-1, and "A", "a", "B0", "b0", ..
 * only when they were not drawn from the seed. The parameters are strings in
 * the metadata; no date, host or roster, so equal models are equal files. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/model.h"
#include "lib/safetensors.h"

#define FORMAT "deepafl-model-1"
#define NAME_LEN 32
#define N_META 18

typedef char text[80];

static void put_text(dafl_st_meta *meta, text *store, size_t *n,
                     const char *key, const char *value)
{
    (void)snprintf(store[*n], sizeof store[*n], "%s", value);
    meta[*n] = (dafl_st_meta){key, store[*n]};
    (*n)++;
}

static void put_size(dafl_st_meta *meta, text *store, size_t *n,
                     const char *key, uint64_t value)
{
    text digits;

    (void)snprintf(digits, sizeof digits, "%" PRIu64, value);
    put_text(meta, store, n, key, digits);
}

static void put_real(dafl_st_meta *meta, text *store, size_t *n,
                     const char *key, double value)
{
    text digits;

    (void)snprintf(digits, sizeof digits, "%.17g", value);
    put_text(meta, store, n, key, digits);
}

static size_t describe(dafl_st_meta *meta, text *store, const dafl_params *p)
{
    char seed[2 * DAFL_SEED_BYTES + 1];
    size_t n = 0;

    dafl_seed_format(seed, &p->seed);
    put_text(meta, store, &n, "format", FORMAT);
    put_text(meta, store, &n, "method", dafl_method_name(p->method));
    put_size(meta, store, &n, "features", p->features);
    put_size(meta, store, &n, "width", p->width);
    put_size(meta, store, &n, "hidden", p->hidden);
    put_size(meta, store, &n, "classes", p->classes);
    put_size(meta, store, &n, "layers", p->layers);
    put_text(meta, store, &n, "activation",
             dafl_activation_name(p->activation));
    put_real(meta, store, &n, "lambda", p->lambda);
    put_real(meta, store, &n, "gamma", p->gamma);
    put_text(meta, store, &n, "seed", seed);
    put_text(meta, store, &n, "schedule", dafl_schedule_name(p->schedule));
    put_text(meta, store, &n, "ablate", dafl_ablation_name(p->ablate));
    put_text(meta, store, &n, "projections",
             p->own_projections ? "stored" : "seed");
    put_size(meta, store, &n, "grid_bits", p->contract.s);
    put_size(meta, store, &n, "magnitude", p->contract.q);
    put_size(meta, store, &n, "rows_max", p->contract.n_max);
    put_size(meta, store, &n, "ring_bits", p->contract.w);
    return n;
}

typedef struct {
    char (*names)[NAME_LEN];
    dafl_st_tensor *tensors;
    size_t n;
} tensor_list;

static char *next_name(tensor_list *l)
{
    return l->names[l->n];
}

static void put_tensor(tensor_list *l, unsigned n_dims, size_t rows,
                       size_t cols, const double *data)
{
    l->tensors[l->n] =
        (dafl_st_tensor){l->names[l->n], n_dims, rows, cols, data};
    l->n++;
}

static void put_layer(tensor_list *l, const char *kind, size_t t, size_t rows,
                      size_t cols, const double *data)
{
    (void)snprintf(next_name(l), NAME_LEN, "%s.%zu", kind, t);
    put_tensor(l, 2, rows, cols, data);
}

static void list_tensors(tensor_list *l, const dafl_model *model)
{
    const dafl_params *p = &model->params;

    for (size_t t = 0; t < model->n_heads; t++) {
        const dafl_head *h = &model->heads[t];
        put_layer(l, "U", t, p->width, h->rank, h->u);
        put_layer(l, "M", t, h->rank, p->classes, h->m);
        if (t < model->n_blocks)
            put_layer(l, "N", t, p->hidden, model->blocks[t].rank,
                      model->blocks[t].n);
    }
    for (size_t k = 0; model->given != NULL && k <= p->layers; k++) {
        const dafl_projection *m = &model->given[k];
        dafl_projection_name(next_name(l), k, 0);
        put_tensor(l, 2, m->in, m->out, m->w);
        dafl_projection_name(next_name(l), k, 1);
        put_tensor(l, 1, m->out, 1, m->b);
    }
}

dafl_err dafl_model_save(const dafl_model *model, const char *path,
                         dafl_why *why)
{
    dafl_err err = DAFL_ERR_NOMEM;
    size_t layers = model->params.layers, most = 5 * (layers + 1);
    dafl_st_meta meta[N_META];
    text store[N_META];
    tensor_list l = {calloc(most, sizeof *l.names),
                     calloc(most, sizeof *l.tensors), 0};

    if (l.names == NULL || l.tensors == NULL)
        goto out;
    err = DAFL_ERR_ARG;
    if (model->n_heads != layers + 1 || model->n_blocks != layers ||
        !model->params.contract.exact) {
        dafl_why_set(why,
                     "%s: the model is not complete, or was trained without "
                     "a grid",
                     path);
        goto out;
    }
    list_tensors(&l, model);
    err = dafl_st_write(path, l.tensors, l.n, meta,
                        describe(meta, store, &model->params), why);
out:
    free(l.names);
    free(l.tensors);
    return err;
}

typedef struct {
    const dafl_st *st;
    const char *path;
    dafl_why *why;
} source;

static dafl_err get_text(const source *s, const char *key, const char **out)
{
    *out = dafl_st_get_meta(s->st, key);
    if (*out == NULL)
        return dafl_fail(s->why, DAFL_ERR_INPUT,
                         "%s: not a deepafl model: the metadata has no '%s'",
                         s->path, key);
    return DAFL_OK;
}

static dafl_err get_u64(const source *s, const char *key, uint64_t max,
                        uint64_t *out)
{
    const char *value;
    char *end = NULL;
    unsigned long long v;

    DAFL_TRY(get_text(s, key, &value));
    errno = 0;
    v = strtoull(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 ||
        v > max)
        return dafl_fail(s->why, DAFL_ERR_INPUT,
                         "%s: metadata '%s' is '%s', not a number up to "
                         "%" PRIu64,
                         s->path, key, value, max);
    *out = v;
    return DAFL_OK;
}

static dafl_err get_size(const source *s, const char *key, size_t *out)
{
    uint64_t v = 0;

    DAFL_TRY(get_u64(s, key, DAFL_SIZE_MAX, &v));
    *out = (size_t)v;
    return DAFL_OK;
}

static dafl_err get_real(const source *s, const char *key, double *out)
{
    const char *value;
    char *end = NULL;

    DAFL_TRY(get_text(s, key, &value));
    *out = strtod(value, &end);
    if (end == value || *end != '\0' || !isfinite(*out))
        return dafl_fail(s->why, DAFL_ERR_INPUT,
                         "%s: metadata '%s' is '%s', not a finite number",
                         s->path, key, value);
    return DAFL_OK;
}

/* Say where a value was found that another module refused. */
static dafl_err refuse(const source *s, const char *key, const dafl_why *inner)
{
    return dafl_fail(s->why, DAFL_ERR_INPUT, "%s: metadata '%s': %s", s->path,
                     key, inner->text);
}

static dafl_err read_contract(const source *s, dafl_contract *c)
{
    uint64_t bits = 0, q = 0, w = 0;
    dafl_why inner = {{0}};

    *c = (dafl_contract){.exact = true};
    DAFL_TRY(get_u64(s, "grid_bits", 24, &bits));
    DAFL_TRY(get_u64(s, "magnitude", 65536, &q));
    DAFL_TRY(get_u64(s, "rows_max", (uint64_t)1 << 40, &c->n_max));
    DAFL_TRY(get_u64(s, "ring_bits", 64, &w));
    c->s = (unsigned)bits;
    c->q = (uint32_t)q;
    if (dafl_contract_derive(c, &inner) != DAFL_OK)
        return refuse(s, "grid_bits, magnitude, rows_max", &inner);
    if (c->w != w)
        return dafl_fail(s->why, DAFL_ERR_INPUT,
                         "%s: metadata 'ring_bits' is %" PRIu64 ", but the "
                         "numeric contract implies %u",
                         s->path, w, c->w);
    return DAFL_OK;
}

/* The values that are words, each parsed by the module that knows them. */
static dafl_err read_words(const source *s, dafl_params *p)
{
    const char *value;
    dafl_why inner = {{0}};

    DAFL_TRY(get_text(s, "method", &value));
    if (dafl_method_parse(&p->method, value, &inner) != DAFL_OK)
        return refuse(s, "method", &inner);
    DAFL_TRY(get_text(s, "activation", &value));
    if (dafl_activation_parse(&p->activation, value, &inner) != DAFL_OK)
        return refuse(s, "activation", &inner);
    DAFL_TRY(get_text(s, "seed", &value));
    if (dafl_seed_parse(&p->seed, value, &inner) != DAFL_OK)
        return refuse(s, "seed", &inner);
    DAFL_TRY(get_text(s, "schedule", &value));
    if (dafl_schedule_parse(&p->schedule, value, &inner) != DAFL_OK)
        return refuse(s, "schedule", &inner);
    DAFL_TRY(get_text(s, "ablate", &value));
    if (dafl_ablation_parse(&p->ablate, value, &inner) != DAFL_OK)
        return refuse(s, "ablate", &inner);
    DAFL_TRY(get_text(s, "projections", &value));
    p->own_projections = strcmp(value, "stored") == 0;
    if (!p->own_projections && strcmp(value, "seed") != 0)
        return dafl_fail(s->why, DAFL_ERR_INPUT,
                         "%s: metadata 'projections' is '%s', not seed or "
                         "stored",
                         s->path, value);
    return DAFL_OK;
}

static dafl_err read_params(const source *s, dafl_params *p)
{
    const char *value;
    dafl_params said;
    dafl_why inner = {{0}};

    *p = (dafl_params){0};
    DAFL_TRY(get_text(s, "format", &value));
    if (strcmp(value, FORMAT) != 0)
        return dafl_fail(s->why, DAFL_ERR_INPUT,
                         "%s: metadata 'format' is '%s', not %s", s->path,
                         value, FORMAT);
    DAFL_TRY(get_size(s, "features", &p->features));
    DAFL_TRY(get_size(s, "width", &p->width));
    DAFL_TRY(get_size(s, "hidden", &p->hidden));
    DAFL_TRY(get_size(s, "classes", &p->classes));
    DAFL_TRY(get_size(s, "layers", &p->layers));
    DAFL_TRY(get_real(s, "lambda", &p->lambda));
    DAFL_TRY(get_real(s, "gamma", &p->gamma));
    DAFL_TRY(read_words(s, p));
    DAFL_TRY(read_contract(s, &p->contract));
    said = *p;
    if (dafl_params_check(p, &inner) != DAFL_OK)
        return dafl_fail(s->why, DAFL_ERR_INPUT, "%s: metadata: %s", s->path,
                         inner.text);
    /* What AFL implies must be what the file says. */
    if (said.width != p->width || said.hidden != p->hidden ||
        said.layers != p->layers || said.ablate != p->ablate)
        return dafl_fail(s->why, DAFL_ERR_INPUT,
                         "%s: metadata 'width', 'hidden', 'layers' or 'ablate' "
                         "does not fit method afl",
                         s->path);
    return DAFL_OK;
}

/* A finite tensor of just that shape. */
static dafl_err get_tensor(const source *s, const char *name, size_t rows,
                           size_t cols, const double **data)
{
    const dafl_st_tensor *t = dafl_st_find(s->st, name);

    if (t == NULL)
        return dafl_fail(s->why, DAFL_ERR_INPUT, "%s: tensor '%s' is missing",
                         s->path, name);
    if (t->rows != rows || t->cols != cols)
        return dafl_fail(s->why, DAFL_ERR_INPUT,
                         "%s: tensor '%s' is %zu x %zu, not %zu x %zu", s->path,
                         name, t->rows, t->cols, rows, cols);
    for (size_t i = 0; i < rows * cols; i++)
        if (!isfinite(t->data[i]))
            return dafl_fail(s->why, DAFL_ERR_INPUT,
                             "%s: tensor '%s', element %zu is not finite",
                             s->path, name, i);
    *data = t->data;
    return DAFL_OK;
}

static dafl_err read_layer(const source *s, dafl_model *model, size_t t)
{
    const dafl_params *p = &model->params;
    char name[NAME_LEN];
    const dafl_st_tensor *ut;
    const double *u, *m, *n;
    size_t rank, most = p->width < p->classes ? p->width : p->classes;

    (void)snprintf(name, sizeof name, "U.%zu", t);
    ut = dafl_st_find(s->st, name);
    rank = ut == NULL ? 0 : ut->cols;
    if (rank > most)
        return dafl_fail(s->why, DAFL_ERR_INPUT,
                         "%s: tensor '%s' has %zu columns, at most %zu are "
                         "possible",
                         s->path, name, rank, most);
    DAFL_TRY(get_tensor(s, name, p->width, rank, &u));
    (void)snprintf(name, sizeof name, "M.%zu", t);
    DAFL_TRY(get_tensor(s, name, rank, p->classes, &m));
    DAFL_TRY(dafl_model_add_head(model, u, m, rank));
    if (t == p->layers)
        return DAFL_OK;
    if (p->ablate == DAFL_ABLATE_OMEGA)
        rank = 0;
    (void)snprintf(name, sizeof name, "N.%zu", t);
    DAFL_TRY(get_tensor(s, name, p->hidden, rank, &n));
    return dafl_model_add_block(model, n, rank);
}

static dafl_err read_projection(const source *s, dafl_model *model, size_t k)
{
    const dafl_params *p = &model->params;
    size_t in = k == 0 ? p->features : p->width;
    size_t out = k == 0 ? p->width : p->hidden;
    char name[NAME_LEN];
    const double *w, *b;

    dafl_projection_name(name, k, 0);
    DAFL_TRY(get_tensor(s, name, in, out, &w));
    dafl_projection_name(name, k, 1);
    DAFL_TRY(get_tensor(s, name, out, 1, &b));
    return dafl_projection_copy(&model->given[k], in, out, w, b);
}

static dafl_err read_model(const source *s, dafl_model **out)
{
    dafl_err err = DAFL_OK;
    dafl_params p;
    dafl_model *model = NULL;

    DAFL_TRY(read_params(s, &p));
    DAFL_TRY(dafl_model_new(&model, &p));
    for (size_t t = 0; err == DAFL_OK && t <= p.layers; t++)
        err = read_layer(s, model, t);
    if (err == DAFL_OK && p.own_projections) {
        model->given = calloc(p.layers + 1, sizeof *model->given);
        if (model->given == NULL)
            err = DAFL_ERR_NOMEM;
        for (size_t k = 0; err == DAFL_OK && k <= p.layers; k++)
            err = read_projection(s, model, k);
    }
    if (err == DAFL_OK)
        *out = model;
    else
        dafl_model_free(&model);
    return err;
}

dafl_err dafl_model_load(dafl_model **out, const char *path, dafl_why *why)
{
    dafl_err err;
    dafl_st *st = NULL;
    source s = {.path = path, .why = why};

    DAFL_TRY(dafl_st_read(&st, path, why));
    s.st = st;
    err = read_model(&s, out);
    dafl_st_free(&st);
    return err;
}
