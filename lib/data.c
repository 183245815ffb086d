/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/data.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/params.h"
#include "lib/secret.h"

static dafl_err read_labels(dafl_data *data, const dafl_npy *npy,
                            const char *path, size_t classes, dafl_why *why)
{
    size_t most = classes == 0 ? DAFL_SIZE_MAX : classes;
    int64_t largest = 0;

    if (npy->cols != 1)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "%s: labels are one number a row, this array has %zu "
                         "columns",
                         path, npy->cols);
    if (npy->rows != data->n)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "%s: has %zu labels, %s has %zu rows", path, npy->rows,
                         data->path, data->n);
    data->y = dafl_bulk_alloc(data->n, sizeof *data->y);
    if (data->y == NULL)
        return DAFL_ERR_NOMEM;
    for (size_t i = 0; i < data->n; i++) {
        int64_t v = INT64_MAX; /* stands for a uint64 beyond it */
        if (dafl_npy_get_int(npy, &v, i) != DAFL_OK &&
            npy->type != DAFL_NPY_U64)
            return dafl_fail(why, DAFL_ERR_INPUT,
                             "%s: labels must be integers, these are %s; save "
                             "them with astype(numpy.int64)",
                             path, dafl_npy_type_name(npy->type));
        if (v < 0 || (uint64_t)v >= most)
            return dafl_fail(why, DAFL_ERR_INPUT,
                             "%s: label %" PRId64
                             " in row %zu is not in 0..%zu",
                             path, v, i, most - 1);
        data->y[i] = (uint32_t)v;
        largest = v > largest ? v : largest;
    }
    data->classes = classes == 0 ? (size_t)largest + 1 : classes;
    return DAFL_OK;
}

dafl_err dafl_data_open(dafl_data *out, const char *features_path,
                        const char *labels_path, size_t classes, dafl_why *why)
{
    dafl_err err;
    dafl_data data = {0};
    dafl_npy labels = {0};
    size_t len = strlen(features_path) + 1;

    data.path = malloc(len);
    if (data.path == NULL)
        return DAFL_ERR_NOMEM;
    memcpy(data.path, features_path, len);
    err = dafl_npy_open(&data.x, features_path, why);
    if (err != DAFL_OK)
        goto out;
    data.n = data.x.rows;
    data.classes = classes;
    err = DAFL_ERR_INPUT;
    if (data.x.n_dims != 2 || data.n == 0 || data.n > UINT32_MAX) {
        dafl_why_set(why,
                     "%s: features need two dimensions and at least one "
                     "row, this array has %u and %zu",
                     features_path, data.x.n_dims, data.n);
        goto out;
    }
    if (data.x.cols > DAFL_SIZE_MAX) {
        dafl_why_set(why, "%s: has %zu columns, at most %zu are supported",
                     features_path, data.x.cols, DAFL_SIZE_MAX);
        goto out;
    }
    err = DAFL_OK;
    if (labels_path != NULL) {
        err = dafl_npy_open(&labels, labels_path, why);
        if (err == DAFL_OK)
            err = read_labels(&data, &labels, labels_path, classes, why);
    }
out:
    dafl_npy_close(&labels);
    if (err == DAFL_OK)
        *out = data;
    else
        dafl_data_close(&data);
    return err;
}

void dafl_data_close(dafl_data *data)
{
    dafl_npy_close(&data->x);
    dafl_bulk_free(data->y);
    free(data->path);
    *data = (dafl_data){0};
}
