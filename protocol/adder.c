/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/adder.h"

#include <string.h>

#include "lib/ring.h"
#include "lib/secret.h"

dafl_err dafl_adder_start(dafl_adder *a, dafl_he *he, size_t len, unsigned w)
{
    *a = (dafl_adder){.len = len, .w = w};
    if (he != NULL)
        return dafl_he_sum_new(&a->sealed, he, len);
    a->words = dafl_bulk_alloc(len, sizeof *a->words);
    if (a->words == NULL)
        return DAFL_ERR_NOMEM;
    memset(a->words, 0, len * sizeof *a->words);
    return DAFL_OK;
}

bool dafl_adder_started(const dafl_adder *a)
{
    return a->words != NULL || a->sealed != NULL;
}

dafl_err dafl_adder_add(dafl_adder *a, dafl_bytes upload)
{
    if (a->sealed != NULL)
        return dafl_he_sum_add(a->sealed, upload);
    dafl_ring_add_words(a->words, upload.ptr, upload.len / (a->w / 8), a->w,
                        false);
    return DAFL_OK;
}

dafl_err dafl_adder_merge(dafl_adder *a, dafl_adder *from)
{
    if (a->sealed != NULL)
        DAFL_TRY(dafl_he_sum_merge(a->sealed, from->sealed));
    else
        for (size_t i = 0; i < a->len; i++)
            a->words[i] += from->words[i];
    dafl_adder_drop(from);
    return DAFL_OK;
}

void dafl_adder_drop(dafl_adder *a)
{
    dafl_bulk_free(a->words);
    dafl_he_sum_free(&a->sealed);
    *a = (dafl_adder){0};
}
