/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/set.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static size_t n_words(const dafl_set *set)
{
    return (set->n + 63) / 64;
}

dafl_err dafl_set_init(dafl_set *set, size_t n)
{
    uint64_t *words = calloc((n + 63) / 64 + 1, sizeof *words);

    if (words == NULL)
        return DAFL_ERR_NOMEM;
    *set = (dafl_set){n, words};
    return DAFL_OK;
}

void dafl_set_drop(dafl_set *set)
{
    free(set->words);
    *set = (dafl_set){0};
}

void dafl_set_clear(dafl_set *set)
{
    memset(set->words, 0, n_words(set) * sizeof *set->words);
}

void dafl_set_add(dafl_set *set, size_t member)
{
    assert(member < set->n);
    set->words[member / 64] |= (uint64_t)1 << member % 64;
}

bool dafl_set_has(const dafl_set *set, size_t member)
{
    return member < set->n && (set->words[member / 64] >> member % 64 & 1) != 0;
}

size_t dafl_set_count(const dafl_set *set)
{
    size_t count = 0;

    for (size_t i = 0; i < n_words(set); i++)
        for (uint64_t w = set->words[i]; w != 0; w &= w - 1)
            count++;
    return count;
}

bool dafl_set_equal(const dafl_set *a, const dafl_set *b)
{
    return a->n == b->n &&
           memcmp(a->words, b->words, n_words(a) * sizeof *a->words) == 0;
}

void dafl_set_copy(dafl_set *to, const dafl_set *from)
{
    assert(to->n == from->n);
    memcpy(to->words, from->words, n_words(to) * sizeof *to->words);
}
