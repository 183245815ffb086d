/* SPDX-License-Identifier: Apache-2.0 */
/* The leakage checker: what a server that keeps everything, and the clients
 * that collude with it, can compute of the inputs of the others.
 *
 * The attacker has every masked vector that reached the server, whenever and
 * however much of it; every share of every REVEAL; and of the colluding clients
 * all they have: their inputs, keys, and shares of everybody. From the shares
 * follows which mask streams it can make itself: self_u from b_u, pair_uv from
 * sk_u or sk_v. What it can compute are the integer combinations of vectors in
 * which all other streams cancel.
 *
 *     leak *k = leak_new(l, &colluders, false);
 *
 *     leak_run(k);
 *     assert_true(leak_is_sum(k, slot, &u3));
 *     leak_free(&k);
 *
 * Streams belong to one slot, cohort and context, as each client was told them.
 * So the combinations of a whole run are those of its slots, and combinations
 * of these. That the masks are really those is seen from the bytes: a vector
 * that has none, or those of another one, is taken for what it is.
 *
 * Why this is exact: masks are added modulo 2^w, where not every nonzero number
 * has an inverse. The elimination is done in integers and divides only by 1 and
 * -1. It can: a stream stands in two vectors, with opposite signs, or in copies
 * of them if a slot is used twice; otherwise it aborts. So its result is right
 * over the integers, the rationals and modulo anything. */
#ifndef DAFL_TESTS_LAB_LEAK_H
#define DAFL_TESTS_LAB_LEAK_H

#include "tests/lab/lab.h"

typedef struct leak leak;

/* A masked vector as its client sent it. */
typedef struct {
    uint16_t client;
    uint32_t slot, question;
    dafl_members a; /* the cohort the client was told */
    dafl_digest ctx2;
    uint8_t *bytes;
    size_t len;
    bool reached; /* some of it: then the attacker is given all of it */
} leak_upload;

/* What is in its bytes besides the input (lab_answer), by a look at them with
 * the client's own keys. */
typedef enum {
    LEAK_MASKED, /* the masks of its slot, cohort and context; also when the
                    inputs are not those of the lab and none can be told */
    LEAK_CLEAR,  /* nothing */
    LEAK_REUSED, /* the masks of an earlier vector of the client */
    LEAK_ODD,    /* something else */
} leak_masks;

/* Watch a lab (borrowed), from its beginning if anybody colludes. An attacker
 * that taps the wire has what was sent, also if it never reached the server. */
leak *leak_new(lab *l, const dafl_members *colluders, bool taps);
void leak_free(leak **k);

/* Take in what has happened; to be called after every step of the lab.
 * (Colluders forget what is old: what was not taken in time is gone.) */
void leak_watch(leak *k);
/* lab_run, watching all the time. */
lab_outcome leak_run(leak *k);

/* The attacker also gets a client's vault as it is now: what a thief finds who
 * comes later. (leak_watch first.) */
void leak_rob(leak *k, uint16_t client);

/* The attacker has an encrypted vector of a client decrypted: from now on it is
 * these n words. (One that stays closed counts as if it were not encrypted, but
 * its numbers are not looked at.) */
void leak_decrypted(leak *k, uint16_t client, uint32_t slot,
                    const uint64_t *words, size_t n);

/* All vectors in the order they were sent; those that reached the attacker are
 * marked. */
size_t leak_uploads(const leak *k);
const leak_upload *leak_upload_at(const leak *k, size_t i);
/* Of a client in a slot the first one that did, or NULL. */
const leak_upload *leak_upload_of(const leak *k, uint16_t client,
                                  uint32_t slot);
/* The highest slot of which it has any. */
uint32_t leak_last_slot(const leak *k);
leak_masks leak_masks_of(leak *k, size_t i);

/* How many independent combinations of the honest clients' vectors of a slot
 * the attacker can take the masks off. */
size_t leak_dim(leak *k, uint32_t slot);
/* They are exactly the multiples of one: the sum over the honest ones of u3
 * (nothing, if there is none). */
bool leak_is_sum(leak *k, uint32_t slot, const dafl_members *u3);
/* In each of them (slot 0: in each of all slots together) the honest members of
 * a cell count alike. */
bool leak_is_of_cells(leak *k, uint32_t slot);
/* The same of everything that can be computed from a whole run. */
bool leak_run_is_of_cells(leak *k);
/* How many independent combinations of all inputs of honest clients (a number
 * for every client and question) a whole run gives: computed over all slots at
 * once. *most is what there would be if all cells with an honest client were
 * known for every question that anybody answered. */
size_t leak_run_rank(leak *k, size_t *most);

/* Whether the numbers are really there: for each of the combinations the
 * streams that the attacker knows are made from what it has, taken off the
 * bytes as they were sent, and what remains compared with the combination of
 * the inputs (lab_answer). Also false when a secret that it has enough shares
 * of is not the one that was enrolled. */
bool leak_is_real(leak *k, uint32_t slot);

/* Take the streams the attacker knows off one vector: out[0 .. n) is what is
 * left of its first n words, mod 2^w. Returns how many streams remain: none,
 * and it is the input. */
size_t leak_strip(leak *k, const leak_upload *upload, uint64_t *out, size_t n);
/* Whether the attacker knows this client's b, its sk of a slot. */
bool leak_knows_b(leak *k, uint16_t client, uint32_t slot);
bool leak_knows_sk(leak *k, uint16_t client, uint32_t slot);

#endif
