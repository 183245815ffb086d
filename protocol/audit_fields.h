/* SPDX-License-Identifier: Apache-2.0 */
/* The members of each event's `data` in the audit log, in the order of their
 * keys: one table for writing and reading. Internal to protocol/. */
#ifndef DAFL_PROTOCOL_AUDIT_FIELDS_H
#define DAFL_PROTOCOL_AUDIT_FIELDS_H

#include "protocol/audit.h"

/* Where a member's value is: in dafl_event, or in the event's bytes. */
typedef enum {
    /* dafl_event: */
    DAFL_FIELD_NUMBER, /* left out: DAFL_NO_QUESTION */
    DAFL_FIELD_PEER,   /* left out: DAFL_NOBODY */
    DAFL_FIELD_FAULT,  /* its name */
    DAFL_FIELD_SET,    /* left out: of no clients at all, n = 0 */
    DAFL_FIELD_DIGEST,
    /* the bytes, from `at` on: */
    DAFL_FIELD_U8,
    DAFL_FIELD_U16,
    DAFL_FIELD_U32,
    DAFL_FIELD_U64,
    DAFL_FIELD_HASH, /* 32 bytes */
    DAFL_FIELD_SIG,  /* 64 bytes */
    /* the same, and to the end: */
    DAFL_FIELD_HASHES, /* one for each of the set */
    DAFL_FIELD_SIGS,   /* one for each of the set */
    DAFL_FIELD_MEMBERS,
    DAFL_FIELD_NAME,
} dafl_field_kind;

typedef struct {
    const char *key; /* NULL after the last */
    dafl_field_kind kind;
    uint8_t at;
} dafl_field;

#define DAFL_FIELDS_MAX 10

extern const dafl_field dafl_audit_fields[DAFL_EVENTS][DAFL_FIELDS_MAX];

/* Bytes of one value; of one item for lists; 0 for those of any length. */
size_t dafl_field_bytes(dafl_field_kind kind);

#endif
