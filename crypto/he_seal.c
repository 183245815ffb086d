/* SPDX-License-Identifier: Apache-2.0 */
/* Keys, encryption and decryption by SEAL. */
#include <stdlib.h>
#include <string.h>

#include "crypto/he_seal.h"
#include "lib/ring.h"
#include "lib/secret.h"

#define SCHEME_BFV 1
#define SECURITY 128

struct dafl_he_secret {
    void *decryptor; /* has the only copy of the key */
};

struct dafl_he_public {
    void *encryptor;
};

bool dafl_he_built(void)
{
    return true;
}

/* Polynomials of size 2 as SEAL has them, modulo the first n primes: from
 * their rows. DAFL_ERR_PEER unless every residue is below its prime. */
static dafl_err fill(void *ct, const uint8_t *rows, unsigned n, uint64_t *row)
{
    uint64_t at = 0;

    for (unsigned k = 0; k < 2 * n; k++) {
        if (!dafl_he_unpack(row, rows, k % n))
            return DAFL_ERR_PEER;
        for (size_t i = 0; i < DAFL_HE_N; i++)
            TRY_SEAL(Ciphertext_SetDataAt(ct, at++, row[i]));
        rows += dafl_he_row_bytes(k % n);
    }
    return DAFL_OK;
}

/* .. and back. */
dafl_err dafl_seal_drain(uint8_t *rows, void *ct, unsigned n, uint64_t *row)
{
    uint64_t at = 0;

    for (unsigned k = 0; k < 2 * n; k++) {
        for (size_t i = 0; i < DAFL_HE_N; i++)
            TRY_SEAL(Ciphertext_GetDataAt1(ct, at++, &row[i]));
        dafl_he_pack(rows, row, k % n);
        rows += dafl_he_row_bytes(k % n);
    }
    return DAFL_OK;
}

dafl_err dafl_seal_ct_new(dafl_he *he, void **out)
{
    TRY_SEAL(Ciphertext_Create1(he->memory, out));
    return dafl_seal_verdict(
        Ciphertext_Resize1(*out, he->context, he->ct_id, 2));
}

dafl_err dafl_seal_ct_read(const dafl_he *he, void *ct, const uint8_t *rows,
                           uint64_t *row)
{
    bool valid = false;

    if (dafl_he_transparent(rows, DAFL_HE_PRIMES))
        return DAFL_ERR_PEER;
    DAFL_TRY(fill(ct, rows, DAFL_HE_PRIMES, row));
    TRY_SEAL(ValCheck_Ciphertext_IsValidFor(ct, he->context, &valid));
    return valid ? DAFL_OK : DAFL_ERR_PEER;
}

typedef struct {
    dafl_he *he;
    dafl_seal_task *fn;
    void *what;
} job;

static void run_one(void *ctx, unsigned id, size_t i)
{
    const job *j = ctx;
    dafl_seal_worker *me = &j->he->workers[id];

    if (me->err == DAFL_OK)
        me->err = j->fn(j->he, me, j->what, i);
}

dafl_err dafl_seal_run(dafl_he *he, size_t n, dafl_seal_task *fn, void *what)
{
    job j = {he, fn, what};
    dafl_err err = DAFL_OK;

    for (unsigned k = 0; k < he->n_workers; k++)
        he->workers[k].err = DAFL_OK;
    if (he->pool != NULL)
        dafl_pool_run(he->pool, n, run_one, &j);
    else
        for (size_t i = 0; i < n; i++)
            run_one(&j, 0, i);
    for (unsigned k = 0; k < he->n_workers && err == DAFL_OK; k++)
        err = he->workers[k].err;
    return err;
}

dafl_err dafl_seal_load(const dafl_he *he, dafl_seal_worker *me,
                        const uint64_t *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        me->row[i] = y[i] & (UINT64_MAX >> (64 - he->w));
    return dafl_seal_verdict(Plaintext_Set4(me->pt, n, me->row));
}

void dafl_seal_blank(dafl_seal_worker *me)
{
    (void)Plaintext_SetZero1(me->pt);
    dafl_wipe(me->row, DAFL_HE_N * sizeof *me->row);
}

static dafl_err worker_new(dafl_he *he, dafl_seal_worker *me)
{
    me->row = dafl_bulk_alloc(DAFL_HE_N, sizeof *me->row);
    if (me->row == NULL)
        return DAFL_ERR_NOMEM;
    TRY_SEAL(Plaintext_Create2(DAFL_HE_N, he->memory, &me->pt));
    return dafl_seal_ct_new(he, &me->ct);
}

/* Other primes than those of he_pack.c: DAFL_ERR_SYS. */
static dafl_err set_primes(void *parms)
{
    void *moduli[DAFL_HE_KEY_PRIMES] = {0};
    uint64_t n = 0, q = 0;
    dafl_err err;

    TRY_SEAL(CoeffModulus_BFVDefault(DAFL_HE_N, SECURITY, &n, NULL));
    if (n != DAFL_HE_KEY_PRIMES)
        return DAFL_ERR_SYS;
    err = dafl_seal_verdict(
        CoeffModulus_BFVDefault(DAFL_HE_N, SECURITY, &n, moduli));
    for (unsigned p = 0; p < DAFL_HE_KEY_PRIMES && err == DAFL_OK; p++) {
        err = dafl_seal_verdict(Modulus_Value(moduli[p], &q));
        if (err == DAFL_OK && q != dafl_he_primes[p])
            err = DAFL_ERR_SYS;
    }
    if (err == DAFL_OK)
        err = dafl_seal_verdict(EncParams_SetCoeffModulus(parms, n, moduli));
    for (unsigned p = 0; p < DAFL_HE_KEY_PRIMES; p++)
        if (moduli[p] != NULL)
            (void)Modulus_Destroy(moduli[p]);
    return err;
}

static dafl_err make_context(dafl_he *he)
{
    void *parms = NULL;
    bool set = false;
    dafl_err err;

    TRY_SEAL(EncParams_Create1(SCHEME_BFV, &parms));
    err = dafl_seal_verdict(EncParams_SetPolyModulusDegree(parms, DAFL_HE_N));
    if (err == DAFL_OK)
        err = set_primes(parms);
    if (err == DAFL_OK)
        err = dafl_seal_verdict(
            EncParams_SetPlainModulus2(parms, UINT64_C(1) << he->w));
    if (err == DAFL_OK)
        err = dafl_seal_verdict(
            SEALContext_Create(parms, false, SECURITY, &he->context));
    (void)EncParams_Destroy(parms);
    DAFL_TRY(err);
    TRY_SEAL(SEALContext_ParametersSet(he->context, &set));
    if (!set)
        return DAFL_ERR_SYS;
    TRY_SEAL(SEALContext_KeyParmsId(he->context, he->key_id));
    TRY_SEAL(SEALContext_FirstParmsId(he->context, he->ct_id));
    TRY_SEAL(Evaluator_Create(he->context, &he->evaluator));
    return dafl_seal_verdict(MemoryPoolHandle_New(true, &he->memory));
}

dafl_err dafl_he_new(dafl_he **out, unsigned w, dafl_pool *pool, dafl_why *why)
{
    dafl_err err = DAFL_ERR_NOMEM;
    dafl_he *he = NULL;

    if (!dafl_ring_width_ok(w) || w > 56)
        return dafl_fail(why, DAFL_ERR_ARG,
                         "numbers of %u bits cannot be encrypted: take a width "
                         "of at most 56",
                         w);
    he = calloc(1, sizeof *he);
    if (he == NULL)
        goto out;
    he->w = w;
    he->pool = pool;
    he->n_workers = pool != NULL ? dafl_pool_size(pool) : 1;
    he->workers = calloc(he->n_workers, sizeof *he->workers);
    if (he->workers == NULL)
        goto out;
    err = make_context(he);
    for (unsigned k = 0; k < he->n_workers && err == DAFL_OK; k++)
        err = worker_new(he, &he->workers[k]);
    if (err != DAFL_OK)
        goto out;
    *out = he;
    he = NULL;
out:
    dafl_he_free(&he);
    if (err != DAFL_OK)
        dafl_why_set(why,
                     err == DAFL_ERR_NOMEM
                         ? "out of memory"
                         : "SEAL does not accept the parameters: it must be "
                           "version 4 with its default primes");
    return err;
}

void dafl_he_free(dafl_he **he)
{
    dafl_he *h = *he;

    if (h == NULL)
        return;
    for (unsigned k = 0; h->workers != NULL && k < h->n_workers; k++) {
        if (h->workers[k].ct != NULL)
            (void)Ciphertext_Destroy(h->workers[k].ct);
        if (h->workers[k].pt != NULL)
            (void)Plaintext_Destroy(h->workers[k].pt);
        dafl_bulk_free(h->workers[k].row);
    }
    free(h->workers);
    if (h->evaluator != NULL)
        (void)Evaluator_Destroy(h->evaluator);
    if (h->context != NULL)
        (void)SEALContext_Destroy(h->context);
    if (h->memory != NULL)
        (void)MemoryPoolHandle_Destroy(h->memory);
    free(h);
    *he = NULL;
}

/* The public key of a generator, packed. */
static dafl_err put_public(dafl_he *he, void *generator, uint8_t *rows)
{
    void *pk = NULL, *ct = NULL;
    dafl_err err;

    TRY_SEAL(KeyGenerator_CreatePublicKey(generator, false, &pk));
    err = dafl_seal_verdict(PublicKey_Data(pk, &ct));
    if (err == DAFL_OK)
        err = dafl_seal_drain(rows, ct, DAFL_HE_KEY_PRIMES, he->workers[0].row);
    (void)PublicKey_Destroy(pk);
    return err;
}

static dafl_err get_secret(dafl_he *he, void *generator, dafl_he_secret *s)
{
    void *sk = NULL;
    dafl_err err;

    TRY_SEAL(KeyGenerator_SecretKey(generator, &sk));
    err = dafl_seal_verdict(Decryptor_Create(he->context, sk, &s->decryptor));
    (void)SecretKey_Destroy(sk);
    return err;
}

dafl_err dafl_he_keygen(dafl_he *he, dafl_he_secret **sk, dafl_writer *pk)
{
    dafl_err err = DAFL_ERR_NOMEM;
    dafl_he_secret *s = calloc(1, sizeof *s);
    size_t before = pk->len;
    uint8_t *rows = dafl_put_room(pk, dafl_he_key_bytes());
    void *generator = NULL;

    if (s == NULL || rows == NULL)
        goto out;
    err = dafl_seal_verdict(KeyGenerator_Create1(he->context, &generator));
    if (err == DAFL_OK)
        err = put_public(he, generator, rows);
    if (err == DAFL_OK)
        err = get_secret(he, generator, s);
    if (err != DAFL_OK)
        goto out;
    *sk = s;
    s = NULL;
out:
    if (generator != NULL)
        (void)KeyGenerator_Destroy(generator);
    if (err != DAFL_OK)
        pk->len = before;
    dafl_he_secret_free(&s);
    return err;
}

void dafl_he_secret_free(dafl_he_secret **sk)
{
    if (*sk == NULL)
        return;
    if ((*sk)->decryptor != NULL)
        (void)Decryptor_Destroy((*sk)->decryptor);
    free(*sk);
    *sk = NULL;
}

typedef struct {
    void *decryptor;
    const uint8_t *cts;
    uint64_t *out;
    size_t len;
} decryption;

static dafl_err decrypt_one(dafl_he *he, dafl_seal_worker *me, void *what,
                            size_t i)
{
    const decryption *d = what;
    uint64_t *out = d->out + i * DAFL_HE_N, n = 0;
    size_t want = dafl_seal_part(d->len, i);

    DAFL_TRY(dafl_seal_ct_read(he, me->ct, d->cts + i * DAFL_SEAL_CT_BYTES,
                               me->row));
    TRY_SEAL(Decryptor_Decrypt(d->decryptor, me->ct, me->pt));
    /* Without the zeros at its end. */
    TRY_SEAL(Plaintext_CoeffCount(me->pt, &n));
    for (size_t k = 0; k < want && k < n; k++)
        TRY_SEAL(Plaintext_CoeffAt(me->pt, k, &out[k]));
    for (size_t k = n; k < want; k++)
        out[k] = 0;
    return dafl_seal_verdict(Plaintext_SetZero1(me->pt));
}

dafl_err dafl_he_decrypt(dafl_he *he, const dafl_he_secret *sk, dafl_bytes cts,
                         uint64_t *out, size_t len)
{
    decryption d = {sk->decryptor, cts.ptr, out, len};
    dafl_err err = DAFL_ERR_PEER;

    if (cts.len == dafl_he_bytes(len))
        err = dafl_seal_run(he, dafl_seal_count(len), decrypt_one, &d);
    if (err != DAFL_OK && len > 0)
        dafl_wipe(out, len * sizeof *out);
    return err;
}

/* A public key from its bytes to `pk`. */
static dafl_err get_public(dafl_he *he, void *pk, const uint8_t *rows)
{
    void *ct = NULL;
    bool valid = false;

    if (dafl_he_transparent(rows, DAFL_HE_KEY_PRIMES))
        return DAFL_ERR_PEER;
    TRY_SEAL(PublicKey_Data(pk, &ct));
    TRY_SEAL(Ciphertext_Resize1(ct, he->context, he->key_id, 2));
    TRY_SEAL(Ciphertext_SetIsNTTForm(ct, true));
    DAFL_TRY(fill(ct, rows, DAFL_HE_KEY_PRIMES, he->workers[0].row));
    TRY_SEAL(ValCheck_PublicKey_IsValidFor(pk, he->context, &valid));
    return valid ? DAFL_OK : DAFL_ERR_PEER;
}

dafl_err dafl_he_public_read(dafl_he *he, dafl_he_public **out, dafl_bytes pk)
{
    dafl_err err = DAFL_ERR_NOMEM;
    dafl_he_public *p;
    void *key = NULL;

    if (pk.len != dafl_he_key_bytes())
        return DAFL_ERR_PEER;
    p = calloc(1, sizeof *p);
    if (p == NULL)
        goto out;
    err = dafl_seal_verdict(PublicKey_Create1(&key));
    if (err == DAFL_OK)
        err = get_public(he, key, pk.ptr);
    if (err == DAFL_OK)
        err = dafl_seal_verdict(
            Encryptor_Create(he->context, key, NULL, &p->encryptor));
    if (err != DAFL_OK)
        goto out;
    *out = p;
    p = NULL;
out:
    if (key != NULL)
        (void)PublicKey_Destroy(key);
    dafl_he_public_free(&p);
    return err;
}

void dafl_he_public_free(dafl_he_public **pk)
{
    if (*pk == NULL)
        return;
    if ((*pk)->encryptor != NULL)
        (void)Encryptor_Destroy((*pk)->encryptor);
    free(*pk);
    *pk = NULL;
}

typedef struct {
    void *encryptor;
    const uint64_t *y;
    size_t len;
    uint8_t *out;
} encryption;

static dafl_err encrypt_one(dafl_he *he, dafl_seal_worker *me, void *what,
                            size_t i)
{
    const encryption *e = what;
    dafl_err err =
        dafl_seal_load(he, me, e->y + i * DAFL_HE_N, dafl_seal_part(e->len, i));

    if (err == DAFL_OK)
        err = dafl_seal_verdict(
            Encryptor_Encrypt(e->encryptor, me->pt, me->ct, he->memory));
    dafl_seal_blank(me);
    DAFL_TRY(err);
    return dafl_seal_drain(e->out + i * DAFL_SEAL_CT_BYTES, me->ct,
                           DAFL_HE_PRIMES, me->row);
}

dafl_err dafl_he_encrypt(dafl_he *he, const dafl_he_public *pk,
                         const uint64_t *y, size_t len, dafl_writer *out)
{
    size_t before = out->len;
    encryption e = {pk->encryptor, y, len,
                    dafl_put_room(out, dafl_he_bytes(len))};
    dafl_err err = DAFL_ERR_NOMEM;

    if (e.out == NULL)
        return err;
    err = dafl_seal_run(he, dafl_seal_count(len), encrypt_one, &e);
    if (err != DAFL_OK)
        out->len = before;
    return err;
}
