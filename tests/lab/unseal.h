/* SPDX-License-Identifier: Apache-2.0 */
/* An attacker between the server and the key holder: what is to be opened
 * instead of the sum, and BFV by hand, to use a key that was got that way. */
#ifndef DAFL_TESTS_LAB_UNSEAL_H
#define DAFL_TESTS_LAB_UNSEAL_H

#include "crypto/he.h"
#include "tests/lab/lab.h"

/* ---- arithmetic ---- */

/* Ciphertexts (0, floor(q/t)) for `len` numbers of w bits: each decrypts to the
 * secret key. */
void unseal_craft(dafl_writer *cts, size_t len, unsigned w);
/* The key from what such a ciphertext was opened to; false when these are no
 * coefficients of one. */
bool unseal_key(int8_t key[DAFL_HE_N], const uint64_t *words, unsigned w);
/* Decrypt with it: round(t/q (c0 + c1 s)) mod t, t = 2^w. */
void unseal(const int8_t key[DAFL_HE_N], dafl_bytes cts, uint64_t *out,
            size_t len, unsigned w);

/* ---- openings ---- */

/* What a server asks to be opened, to be changed; the digest follows. */
typedef struct {
    dafl_open_msg open;
    dafl_surv surv;
    dafl_conf conf;
    dafl_writer cts;
} unseal_query;

#define UNSEAL_MOST 8
typedef struct unseal_tap unseal_tap;
struct unseal_tap {
    uint32_t slot; /* in which it meddles */
    /* Opening i, from 0 on. NULL: none is changed. */
    void (*change)(unseal_tap *t, lab *l, unsigned i, unseal_query *q);
    /* Whether the server gets the answer to opening i. */
    bool (*answers)(unseal_tap *t, unsigned i);
    void *ctx; /* the test's */
    /* What came of it: openings asked for; [i] what was answered, of which len
     * words are known. */
    unsigned asked;
    uint64_t *answer[UNSEAL_MOST];
    /* Decryptions of the uploads with the key holder's own key, [client]. */
    uint64_t *plain[DAFL_CLIENTS_MAX];
    size_t len;
    /* inside: */
    dafl_writer cts, words;
};

/* For lab_scenario.intercept, with a tap as ctx. */
lab_intercept unseal_meddle;
/* A scenario with encryption, 3 questions, of which the first is answered with
 * one full ciphertext; `t` is its tap. */
lab_scenario unseal_scenario(uint16_t k, uint16_t cell_size, unseal_tap *t);
/* An upload, whole, as its client sent it. Drop it. */
dafl_writer unseal_upload(const lab *l, uint16_t client, uint32_t slot);
void unseal_drop(unseal_tap *t);

#endif
