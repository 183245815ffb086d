/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a safetensors file: refused with a reason, or tensors that tile
 * the data and strings that can be found again. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void require(bool claim)
{
    if (!claim)
        abort();
}

/* Tensor after tensor, the bytes are those at the end of the file. */
static void check_tensors(const dafl_st *st, const uint8_t *data, size_t len)
{
    size_t header_len = 0, at = 0;

    for (unsigned i = 8; i-- > 0;)
        header_len = header_len << 8 | data[i];
    at = 8 + header_len;
    for (size_t i = 0; i < dafl_st_count(st); i++) {
        const dafl_st_tensor *t = dafl_st_at(st, i);
        size_t t_len = t->rows * t->cols * sizeof *t->data;

        require(t->n_dims == 1 || t->n_dims == 2);
        require(t->n_dims == 2 || t->cols == 1);
        require(t->name[0] != '\0' && dafl_st_find(st, t->name) == t);
        require(t_len <= len - at);
        require(memcmp(t->data, data + at, t_len) == 0);
        at += t_len;
    }
    require(at == len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    dafl_st *st = NULL;
    dafl_why why = {""};
    dafl_err err = dafl_st_parse(&st, (dafl_bytes){data, len}, "f", &why);

    if (err != DAFL_OK) {
        require(st == NULL && strncmp(why.text, "f: ", 3) == 0);
        require(err == DAFL_ERR_INPUT || err == DAFL_ERR_NOMEM);
        return 0;
    }
    check_tensors(st, data, len);
    for (size_t i = 0; i < dafl_st_meta_count(st); i++) {
        dafl_st_meta m = dafl_st_meta_at(st, i);

        require(m.key[0] != '\0' && dafl_st_get_meta(st, m.key) == m.value);
    }
    dafl_st_free(&st);
    return 0;
}
