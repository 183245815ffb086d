/* SPDX-License-Identifier: Apache-2.0 */
#include "agents/letters.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/envelope.h"

letter *letter_new(dafl_bytes bytes)
{
    letter *l = malloc(sizeof *l + bytes.len);

    if (l == NULL)
        return NULL;
    atomic_init(&l->users, 1);
    l->len = bytes.len;
    memcpy(l->bytes, bytes.ptr, bytes.len);
    return l;
}

void letter_drop(letter *l)
{
    if (l != NULL && atomic_fetch_sub(&l->users, 1) == 1)
        free(l);
}

dafl_err letters_add(letters *list, letter *l)
{
    if (l == NULL)
        return DAFL_ERR_NOMEM;
    if (list->n == list->room) {
        size_t room = list->room == 0 ? 8 : 2 * list->room;
        letter **at = realloc(list->at, room * sizeof(letter *));
        if (at == NULL) {
            letter_drop(l);
            return DAFL_ERR_NOMEM;
        }
        list->at = at;
        list->room = room;
    }
    list->at[list->n++] = l;
    return DAFL_OK;
}

void letters_clear(letters *list)
{
    for (size_t i = 0; i < list->n; i++)
        letter_drop(list->at[i]);
    list->n = 0;
}

dafl_msg_type letter_type(const letter *l, uint32_t *slot)
{
    dafl_envelope m;

    if (dafl_get_envelope(&m, (dafl_bytes){l->bytes, l->len}, UINT64_MAX) !=
        DAFL_FAULT_NONE)
        return DAFL_MSG_COUNT;
    *slot = m.slot;
    return (dafl_msg_type)m.type;
}

void letters_free(letters *list)
{
    letters_clear(list);
    free(list->at);
    *list = (letters){0};
}
