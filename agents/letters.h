/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between the machines of one process. */
#ifndef DAFL_AGENTS_LETTERS_H
#define DAFL_AGENTS_LETTERS_H

#include <stdatomic.h>

#include "protocol/messages.h"

/* A message on its way; several clients may be about to get the same one. */
typedef struct {
    atomic_uint users;
    size_t len;
    uint8_t bytes[];
} letter;

typedef struct {
    letter **at;
    size_t n, room;
} letters;

/* A copy of the bytes with one user; NULL when there is no memory. */
letter *letter_new(dafl_bytes bytes);
/* One user less. */
void letter_drop(letter *l);
/* Type and slot of a message that a machine of ours made. */
dafl_msg_type letter_type(const letter *l, uint32_t *slot);

/* Takes the letter (NULL: there was no memory for it) over. */
DAFL_CHECK dafl_err letters_add(letters *list, letter *l);
void letters_clear(letters *list);
void letters_free(letters *list);

#endif
