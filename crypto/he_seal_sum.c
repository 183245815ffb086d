/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of ciphertexts. */
#include <stdlib.h>

#include "crypto/he_seal.h"

struct dafl_he_sum {
    dafl_he *he;
    size_t len, n;
    bool any; /* something has been added */
    void **cts;
};

dafl_err dafl_he_sum_new(dafl_he_sum **out, dafl_he *he, size_t len)
{
    dafl_err err = DAFL_ERR_NOMEM;
    dafl_he_sum *s = calloc(1, sizeof *s);

    if (s == NULL)
        goto out;
    s->he = he;
    s->len = len;
    s->cts = calloc(dafl_seal_count(len) + 1, sizeof *s->cts);
    if (s->cts == NULL)
        goto out;
    err = DAFL_OK;
    for (; s->n < dafl_seal_count(len) && err == DAFL_OK; s->n++)
        err = dafl_seal_ct_new(he, &s->cts[s->n]);
    if (err != DAFL_OK)
        goto out;
    *out = s;
    s = NULL;
out:
    dafl_he_sum_free(&s);
    return err;
}

void dafl_he_sum_free(dafl_he_sum **sum)
{
    if (*sum == NULL)
        return;
    for (size_t i = 0; i < (*sum)->n; i++)
        if ((*sum)->cts[i] != NULL)
            (void)Ciphertext_Destroy((*sum)->cts[i]);
    free((*sum)->cts);
    free(*sum);
    *sum = NULL;
}

/* Whether row[i] + the residue at `at` of ct is 0 mod the prime for every i:
 * then adding would leave nothing of the randomness. The first i decides,
 * unless two parties mean to. */
static dafl_err cancels(bool *yes, void *ct, uint64_t at, const uint64_t *row,
                        unsigned p)
{
    uint64_t x;

    for (size_t i = 0; i < DAFL_HE_N; i++) {
        TRY_SEAL(Ciphertext_GetDataAt1(ct, at + i, &x));
        if (x + row[i] != 0 && x + row[i] != dafl_he_primes[p]) {
            *yes = false;
            return DAFL_OK;
        }
    }
    return DAFL_OK;
}

typedef struct {
    dafl_he_sum *sum;
    const uint8_t *cts;
} addition;

/* Everything that can be wrong with an upload, before the sum is touched. */
static dafl_err judge_one(dafl_he *he, dafl_seal_worker *me, void *what,
                          size_t i)
{
    const addition *a = what;
    const uint8_t *rows = a->cts + i * DAFL_SEAL_CT_BYTES;
    bool gone = a->sum->any;

    (void)he;
    if (dafl_he_transparent(rows, DAFL_HE_PRIMES))
        return DAFL_ERR_PEER;
    for (unsigned k = 0; k < 2 * DAFL_HE_PRIMES; k++) {
        unsigned p = k % DAFL_HE_PRIMES;

        if (!dafl_he_unpack(me->row, rows, p))
            return DAFL_ERR_PEER;
        if (gone && k >= DAFL_HE_PRIMES)
            DAFL_TRY(cancels(&gone, a->sum->cts[i], (uint64_t)k * DAFL_HE_N,
                             me->row, p));
        rows += dafl_he_row_bytes(p);
    }
    return gone ? DAFL_ERR_PEER : DAFL_OK;
}

static dafl_err add_one(dafl_he *he, dafl_seal_worker *me, void *what, size_t i)
{
    const addition *a = what;
    void *sum = a->sum->cts[i];

    if (!a->sum->any)
        return dafl_seal_ct_read(he, sum, a->cts + i * DAFL_SEAL_CT_BYTES,
                                 me->row);
    DAFL_TRY(dafl_seal_ct_read(he, me->ct, a->cts + i * DAFL_SEAL_CT_BYTES,
                               me->row));
    return dafl_seal_verdict(Evaluator_Add(he->evaluator, sum, me->ct, sum));
}

dafl_err dafl_he_sum_add(dafl_he_sum *s, dafl_bytes upload)
{
    addition a = {s, upload.ptr};

    if (upload.len != dafl_he_bytes(s->len))
        return DAFL_ERR_PEER;
    DAFL_TRY(dafl_seal_run(s->he, s->n, judge_one, &a));
    DAFL_TRY(dafl_seal_run(s->he, s->n, add_one, &a));
    s->any = true;
    return DAFL_OK;
}

typedef struct {
    dafl_he_sum *sum;
    const dafl_he_sum *other;
} merger;

static dafl_err may_merge_one(dafl_he *he, dafl_seal_worker *me, void *what,
                              size_t i)
{
    const merger *m = what;
    bool gone = true;

    (void)he;
    for (unsigned k = DAFL_HE_PRIMES; gone && k < 2 * DAFL_HE_PRIMES; k++) {
        uint64_t at = (uint64_t)k * DAFL_HE_N;

        for (size_t c = 0; c < DAFL_HE_N; c++)
            TRY_SEAL(
                Ciphertext_GetDataAt1(m->other->cts[i], at + c, &me->row[c]));
        DAFL_TRY(
            cancels(&gone, m->sum->cts[i], at, me->row, k % DAFL_HE_PRIMES));
    }
    return gone ? DAFL_ERR_PEER : DAFL_OK;
}

static dafl_err merge_one(dafl_he *he, dafl_seal_worker *me, void *what,
                          size_t i)
{
    const merger *m = what;
    void *sum = m->sum->cts[i], *other = m->other->cts[i];

    (void)me;
    if (!m->sum->any)
        return dafl_seal_verdict(Ciphertext_Set(sum, other));
    return dafl_seal_verdict(Evaluator_Add(he->evaluator, sum, other, sum));
}

dafl_err dafl_he_sum_merge(dafl_he_sum *s, const dafl_he_sum *other)
{
    merger m = {s, other};

    if (s == other || s->he != other->he || s->len != other->len)
        return DAFL_ERR_ARG;
    if (!other->any)
        return DAFL_OK;
    if (s->any)
        DAFL_TRY(dafl_seal_run(s->he, s->n, may_merge_one, &m));
    DAFL_TRY(dafl_seal_run(s->he, s->n, merge_one, &m));
    s->any = true;
    return DAFL_OK;
}

typedef struct {
    dafl_he_sum *sum;
    const uint64_t *r;
} blinding;

static dafl_err blind_one(dafl_he *he, dafl_seal_worker *me, void *what,
                          size_t i)
{
    const blinding *b = what;
    void *sum = b->sum->cts[i];
    dafl_err err = dafl_seal_load(he, me, b->r + i * DAFL_HE_N,
                                  dafl_seal_part(b->sum->len, i));

    if (err == DAFL_OK)
        err = dafl_seal_verdict(
            Evaluator_AddPlain(he->evaluator, sum, me->pt, sum));
    dafl_seal_blank(me);
    return err;
}

dafl_err dafl_he_sum_blind(dafl_he_sum *s, const uint64_t *r)
{
    blinding b = {s, r};

    return s->any ? dafl_seal_run(s->he, s->n, blind_one, &b) : DAFL_ERR_ARG;
}

typedef struct {
    const dafl_he_sum *sum;
    uint8_t *out;
} putting;

static dafl_err put_one(dafl_he *he, dafl_seal_worker *me, void *what, size_t i)
{
    const putting *p = what;

    (void)he;
    return dafl_seal_drain(p->out + i * DAFL_SEAL_CT_BYTES, p->sum->cts[i],
                           DAFL_HE_PRIMES, me->row);
}

dafl_err dafl_he_sum_put(const dafl_he_sum *s, dafl_writer *w)
{
    size_t before = w->len;
    putting p = {s, NULL};
    dafl_err err;

    if (!s->any)
        return DAFL_ERR_ARG;
    p.out = dafl_put_room(w, dafl_he_bytes(s->len));
    if (p.out == NULL)
        return DAFL_ERR_NOMEM;
    err = dafl_seal_run(s->he, s->n, put_one, &p);
    if (err != DAFL_OK)
        w->len = before;
    return err;
}
