/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/projection.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/npy.h"
#include "lib/secret.h"

void dafl_projection_name(char *name, size_t k, int bias)
{
    if (k == 0)
        (void)snprintf(name, 24, "%s", bias ? "a" : "A");
    else
        (void)snprintf(name, 24, "%s%zu", bias ? "b" : "B", k - 1);
}

void dafl_projection_drop(dafl_projection *projection)
{
    dafl_bulk_free(projection->w);
    dafl_bulk_free(projection->b);
    *projection = (dafl_projection){0};
}

static dafl_err make(dafl_projection *out, size_t in, size_t n_out)
{
    dafl_projection m = {.in = in, .out = n_out};

    m.w = dafl_bulk_alloc(in * n_out, sizeof *m.w);
    m.b = dafl_bulk_alloc(n_out, sizeof *m.b);
    if (m.w == NULL || m.b == NULL) {
        dafl_projection_drop(&m);
        return DAFL_ERR_NOMEM;
    }
    *out = m;
    return DAFL_OK;
}

/* Of the shape that number k has in a run. */
static dafl_err make_number(dafl_projection *out, const dafl_params *p,
                            size_t k)
{
    return k == 0 ? make(out, p->features, p->width)
                  : make(out, p->width, p->hidden);
}

dafl_err dafl_projection_copy(dafl_projection *out, size_t in, size_t n_out,
                              const double *w, const double *b)
{
    DAFL_TRY(make(out, in, n_out));
    memcpy(out->w, w, in * n_out * sizeof *w);
    memcpy(out->b, b, n_out * sizeof *b);
    return DAFL_OK;
}

dafl_err dafl_projection_draw(dafl_projection *out, const dafl_params *p,
                              size_t k)
{
    dafl_projection m;
    double bound;

    DAFL_TRY(make_number(&m, p, k));
    bound = 1.0 / sqrt((double)m.in);
    if (k > 0 && p->ablate == DAFL_ABLATE_PROJECTION) {
        memset(m.w, 0, m.in * m.out * sizeof *m.w);
        memset(m.b, 0, m.out * sizeof *m.b);
        for (size_t i = 0; i < m.in; i++)
            m.w[i * m.out + i] = 1.0;
    } else {
        dafl_stream_uniform(m.w, m.in * m.out, &p->seed, DAFL_STREAM_PROJECTION,
                            2 * k, bound);
        dafl_stream_uniform(m.b, m.out, &p->seed, DAFL_STREAM_PROJECTION,
                            2 * k + 1, bound);
    }
    *out = m;
    return DAFL_OK;
}

static dafl_err path_of(char *path, size_t len, const char *dir, size_t k,
                        int bias, dafl_why *why)
{
    char name[24];
    int n;

    dafl_projection_name(name, k, bias);
    n = snprintf(path, len, "%s/%s.npy", dir, name);
    if (n < 0 || (size_t)n >= len)
        return dafl_fail(why, DAFL_ERR_INPUT, "%s: the path is too long", dir);
    return DAFL_OK;
}

static dafl_err read_matrix(double *out, size_t rows, size_t cols,
                            const char *path, dafl_why *why)
{
    dafl_err err = DAFL_OK;
    dafl_npy npy;

    DAFL_TRY(dafl_npy_open(&npy, path, why));
    if (npy.rows * npy.cols != rows * cols ||
        (npy.n_dims == 2 && (npy.rows != rows || npy.cols != cols)))
        err = dafl_fail(why, DAFL_ERR_INPUT,
                        "%s: has %zu x %zu numbers, this run needs %zu x %zu",
                        path, npy.rows, npy.cols, rows, cols);
    else
        dafl_npy_get_rows(&npy, out, NULL, 0, npy.rows);
    dafl_npy_close(&npy);
    for (size_t i = 0; err == DAFL_OK && i < rows * cols; i++)
        if (!isfinite(out[i]))
            err = dafl_fail(why, DAFL_ERR_INPUT,
                            "%s: element %zu is not finite", path, i);
    return err;
}

dafl_err dafl_projection_read(dafl_projection *out, const dafl_params *p,
                              const char *dir, size_t k, dafl_why *why)
{
    dafl_err err;
    dafl_projection m;
    char path[4096];

    DAFL_TRY(make_number(&m, p, k));
    err = path_of(path, sizeof path, dir, k, 0, why);
    if (err == DAFL_OK)
        err = read_matrix(m.w, m.in, m.out, path, why);
    if (err == DAFL_OK)
        err = path_of(path, sizeof path, dir, k, 1, why);
    if (err == DAFL_OK)
        err = read_matrix(m.b, m.out, 1, path, why);
    if (err == DAFL_OK)
        *out = m;
    else
        dafl_projection_drop(&m);
    return err;
}

dafl_err dafl_projection_write(const dafl_projection *m, const char *dir,
                               size_t k, dafl_why *why)
{
    char path[4096];

    DAFL_TRY(path_of(path, sizeof path, dir, k, 0, why));
    DAFL_TRY(dafl_npy_write(path, DAFL_NPY_F64, 2, m->in, m->out, m->w, why));
    DAFL_TRY(path_of(path, sizeof path, dir, k, 1, why));
    return dafl_npy_write(path, DAFL_NPY_F64, 1, m->out, 1, m->b, why);
}
