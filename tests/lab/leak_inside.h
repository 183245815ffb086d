/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the leakage checker, shared by its files; tests include
 * leak.h. */
#ifndef DAFL_TESTS_LAB_LEAK_INSIDE_H
#define DAFL_TESTS_LAB_LEAK_INSIDE_H

#include "tests/lab/inside.h"
#include "tests/lab/leak.h"

typedef enum { LEAK_B, LEAK_SK, LEAK_KINDS } leak_kind;

/* What the attacker has of one client's secrets of one slot. */
typedef struct {
    bool known[LEAK_KINDS];
    dafl_key value[LEAK_KINDS];
} leak_secrets;

typedef struct {
    bool have[LEAK_KINDS];
    dafl_share share[LEAK_KINDS];
} leak_held;

typedef struct {
    leak_held *held;       /* [dealer * k + holder]; NULL: nothing */
    leak_secrets *secrets; /* [client]; NULL: to be worked out */
} leak_slot;

/* From the server's journal. */
typedef struct {
    uint16_t t;
    dafl_members u0, u1;
    dafl_bytes keys; /* of U1, all slots of each; copied */
} leak_setup;

/* Where a client is, by what it told. */
typedef struct {
    uint32_t slot, question;
    dafl_members a;
    dafl_digest ctx2;
} leak_place;

/* A vector, and its client's own keys of the slot as the lab's disk had them:
 * not for the attacker, but to see what the bytes are. */
typedef struct {
    leak_upload up; /* first: handed out as such */
    bool has_keys;
    dafl_key sk, b;
    size_t looked; /* its length when it was looked at */
    leak_masks masks;
    const leak_upload *like; /* REUSED: the other one */
} leak_vector;

struct leak {
    lab *lab;
    size_t n; /* clients */
    dafl_members colluders;
    bool taps;
    size_t seen, events, records; /* what has been taken in */
    leak_place *places;           /* [client] */
    lab_list setups;              /* leak_setup, by enrolment */
    lab_list slots;               /* leak_slot, by slot */
    lab_list uploads;             /* leak_vector * */
    bool unreal;
    /* what was solved last */
    leak_vector **rows;
    size_t n_rows, dim;
    int32_t *combos; /* [dim * n_rows] */
};

/* ---- leak.c: what the attacker sees ---- */

leak_slot *leak_slot_of(leak *k, uint32_t slot);
/* The setup that a slot belongs to. */
const leak_setup *leak_setup_of(const leak *k, uint32_t slot);
leak_vector *leak_vector_at(const leak *k, size_t i);

/* ---- leak_streams.c: which masks are in a vector, and which it knows ---- */

/* The vector whose masks are in this one: itself, another one, or NULL: none
 * are. */
const leak_upload *leak_streams_of(leak *k, leak_vector *v);
/* Whether the attacker can make the stream of client v in the masks of u. */
bool leak_knows_stream(leak *k, const leak_upload *u, uint16_t v);

#endif
