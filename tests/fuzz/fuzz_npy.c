/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a .npy file: refused with a reason, or every element readable
 * and the same whichever way it is asked for. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void require(bool claim)
{
    if (!claim)
        abort();
}

static void check_elements(const dafl_npy *npy)
{
    size_t n = npy->rows * npy->cols;
    double *run = malloc((n + 1) * sizeof *run);
    double *row = malloc((n + 1) * sizeof *row);

    if (run == NULL || row == NULL)
        goto out;
    dafl_npy_get_rows(npy, run, NULL, 0, npy->rows);
    for (uint32_t i = 0; i < npy->rows; i++) {
        dafl_npy_get_rows(npy, row, &i, 0, 1);
        require(memcmp(row, run + i * npy->cols, npy->cols * sizeof *row) == 0);
    }
    for (size_t i = 0; i < n; i++) {
        int64_t v = 0;

        if (dafl_npy_get_int(npy, &v, i) == DAFL_OK)
            require((double)v == run[i]);
        else
            require(npy->type <= DAFL_NPY_F64 || npy->type == DAFL_NPY_U64);
    }
out:
    free(row);
    free(run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    dafl_npy npy;
    dafl_why why = {""};
    dafl_err err = dafl_npy_parse(&npy, (dafl_bytes){data, len}, "f", &why);

    if (err != DAFL_OK) {
        require(err == DAFL_ERR_INPUT && strncmp(why.text, "f: ", 3) == 0);
        return 0;
    }
    require(npy.n_dims == 1 || npy.n_dims == 2);
    require(npy.n_dims == 2 || npy.cols == 1);
    require(npy.cols > 0);
    require(npy.data + npy.rows * npy.cols * dafl_npy_type_size(npy.type) ==
            data + len);
    check_elements(&npy);
    return 0;
}
