/* SPDX-License-Identifier: Apache-2.0 */
/* The only file that knows Microsoft SEAL, through the C export library sealc.
 *
 * Bytes of others never reach one of its Load functions: residues are unpacked
 * and judged here, put into a ciphertext one by one and checked by SEAL again.
 *
 * Randomness: each encryption and each key makes a generator of its own
 * (BLAKE2Xb), seeded with 64 bytes of /dev/urandom (UniformRandomGenerator-
 * Factory::create in SEAL's randomgen.h; nothing here sets a seed).
 *
 * Wiped: SEAL keeps secret keys, the randomness of encryptions, generators and
 * what decryption goes through in pools that it clears when they go, and so is
 * the pool made here, of the plaintexts. Not wiped: copies of seeds on the
 * stack, and in SEAL's global pool the encryption of zero from which, with the
 * ciphertext, the encrypted numbers follow; these are masked. Nothing of it is
 * locked in memory or left out of core dumps. */
#include "crypto/he.h"

#include <stdlib.h>
#include <string.h>

#include "crypto/he_inside.h"
#include "lib/ring.h"
#include "lib/secret.h"

/* What is used of sealc. Every function returns 0 if all went well. */
typedef long hresult;
hresult EncParams_Create1(uint8_t scheme, void **out);
hresult EncParams_Destroy(void *parms);
hresult EncParams_SetPolyModulusDegree(void *parms, uint64_t n);
hresult EncParams_SetCoeffModulus(void *parms, uint64_t n, void **moduli);
hresult EncParams_SetPlainModulus2(void *parms, uint64_t t);
hresult CoeffModulus_BFVDefault(uint64_t n, int bits, uint64_t *count,
                                void **moduli);
hresult Modulus_Value(void *modulus, uint64_t *out);
hresult Modulus_Destroy(void *modulus);
hresult SEALContext_Create(void *parms, bool whole_chain, int bits, void **out);
hresult SEALContext_Destroy(void *context);
hresult SEALContext_ParametersSet(void *context, bool *out);
hresult SEALContext_KeyParmsId(void *context, uint64_t id[4]);
hresult SEALContext_FirstParmsId(void *context, uint64_t id[4]);
hresult MemoryPoolHandle_New(bool clear, void **out);
hresult MemoryPoolHandle_Destroy(void *memory);
hresult KeyGenerator_Create1(void *context, void **out);
hresult KeyGenerator_Destroy(void *generator);
hresult KeyGenerator_CreatePublicKey(void *generator, bool save_seed,
                                     void **out);
hresult KeyGenerator_SecretKey(void *generator, void **out);
hresult SecretKey_Destroy(void *sk);
hresult PublicKey_Create1(void **out);
hresult PublicKey_Destroy(void *pk);
hresult PublicKey_Data(void *pk, void **ct); /* a part of it */
hresult Encryptor_Create(void *context, void *pk, void *sk, void **out);
hresult Encryptor_Destroy(void *encryptor);
hresult Encryptor_Encrypt(void *encryptor, void *pt, void *ct, void *memory);
hresult Decryptor_Create(void *context, void *sk, void **out);
hresult Decryptor_Destroy(void *decryptor);
hresult Decryptor_Decrypt(void *decryptor, void *ct, void *pt);
hresult Evaluator_Create(void *context, void **out);
hresult Evaluator_Destroy(void *evaluator);
hresult Evaluator_Add(void *evaluator, void *a, void *b, void *out);
hresult Evaluator_AddPlain(void *evaluator, void *ct, void *pt, void *out);
hresult Ciphertext_Create1(void *memory, void **out);
hresult Ciphertext_Destroy(void *ct);
hresult Ciphertext_Set(void *ct, void *from);
hresult Ciphertext_Resize1(void *ct, void *context, uint64_t id[4],
                           uint64_t size);
hresult Ciphertext_SetIsNTTForm(void *ct, bool yes);
hresult Ciphertext_GetDataAt1(void *ct, uint64_t index, uint64_t *out);
hresult Ciphertext_SetDataAt(void *ct, uint64_t index, uint64_t value);
hresult Plaintext_Create2(uint64_t n, void *memory, void **out);
hresult Plaintext_Destroy(void *pt);
hresult Plaintext_Set4(void *pt, uint64_t n, uint64_t *coefficients);
hresult Plaintext_SetZero1(void *pt);
hresult Plaintext_CoeffCount(void *pt, uint64_t *n);
hresult Plaintext_CoeffAt(void *pt, uint64_t index, uint64_t *out);
hresult ValCheck_Ciphertext_IsValidFor(void *ct, void *context, bool *out);
hresult ValCheck_PublicKey_IsValidFor(void *pk, void *context, bool *out);

#define SCHEME_BFV 1
#define SECURITY 128
#define OUT_OF_MEMORY 0x8007000eL

static dafl_err verdict(hresult r)
{
    if (r == 0)
        return DAFL_OK;
    return r == OUT_OF_MEMORY ? DAFL_ERR_NOMEM : DAFL_ERR_SYS;
}
#define TRY_SEAL(call) DAFL_TRY(verdict(call))

/* What one thread works with. */
typedef struct {
    void *ct, *pt;
    uint64_t *row; /* DAFL_HE_N residues or numbers */
    dafl_err err;  /* the first of a run */
} worker;

struct dafl_he {
    unsigned w, n_workers;
    dafl_pool *pool;
    worker *workers;
    void *context, *evaluator;
    /* Not SEAL's global pool, which never gives memory back; and not one for
     * each thread, because a sum is made by one and freed by another. The hot
     * paths allocate nothing from it. */
    void *memory;
    uint64_t ct_id[4], key_id[4];
};

struct dafl_he_secret {
    void *decryptor; /* has the only copy of the key */
};

struct dafl_he_public {
    void *encryptor;
};

struct dafl_he_sum {
    dafl_he *he;
    size_t len, n;
    bool any; /* something has been added */
    void **cts;
};

bool dafl_he_built(void)
{
    return true;
}

static size_t count(size_t len)
{
    return len / DAFL_HE_N + (len % DAFL_HE_N != 0);
}

/* Numbers in ciphertext i of `len`. */
static size_t part(size_t len, size_t i)
{
    size_t left = len - i * DAFL_HE_N;

    return left < DAFL_HE_N ? left : DAFL_HE_N;
}

#define CT_BYTES ((size_t)DAFL_HE_N * 18)

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
static dafl_err drain(uint8_t *rows, void *ct, unsigned n, uint64_t *row)
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

/* A ciphertext of ours: of the right size, zero. */
static dafl_err ct_new(dafl_he *he, void **out)
{
    TRY_SEAL(Ciphertext_Create1(he->memory, out));
    return verdict(Ciphertext_Resize1(*out, he->context, he->ct_id, 2));
}

static dafl_err ct_read(const dafl_he *he, void *ct, const uint8_t *rows,
                        uint64_t *row)
{
    bool valid = false;

    if (dafl_he_transparent(rows, DAFL_HE_PRIMES))
        return DAFL_ERR_PEER;
    DAFL_TRY(fill(ct, rows, DAFL_HE_PRIMES, row));
    TRY_SEAL(ValCheck_Ciphertext_IsValidFor(ct, he->context, &valid));
    return valid ? DAFL_OK : DAFL_ERR_PEER;
}

/* Work on ciphertext i by a worker; errors are remembered. */
typedef dafl_err task(dafl_he *he, worker *me, void *what, size_t i);
typedef struct {
    dafl_he *he;
    task *fn;
    void *what;
} job;

static void run_one(void *ctx, unsigned id, size_t i)
{
    const job *j = ctx;
    worker *me = &j->he->workers[id];

    if (me->err == DAFL_OK)
        me->err = j->fn(j->he, me, j->what, i);
}

static dafl_err run(dafl_he *he, size_t n, task *fn, void *what)
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

/* Numbers mod 2^w to the plaintext of a worker; wiped by blank. */
static dafl_err load(const dafl_he *he, worker *me, const uint64_t *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        me->row[i] = y[i] & (UINT64_MAX >> (64 - he->w));
    return verdict(Plaintext_Set4(me->pt, n, me->row));
}

static void blank(worker *me)
{
    (void)Plaintext_SetZero1(me->pt);
    dafl_wipe(me->row, DAFL_HE_N * sizeof *me->row);
}

static dafl_err worker_new(dafl_he *he, worker *me)
{
    me->row = dafl_bulk_alloc(DAFL_HE_N, sizeof *me->row);
    if (me->row == NULL)
        return DAFL_ERR_NOMEM;
    TRY_SEAL(Plaintext_Create2(DAFL_HE_N, he->memory, &me->pt));
    return ct_new(he, &me->ct);
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
    err = verdict(CoeffModulus_BFVDefault(DAFL_HE_N, SECURITY, &n, moduli));
    for (unsigned p = 0; p < DAFL_HE_KEY_PRIMES && err == DAFL_OK; p++) {
        err = verdict(Modulus_Value(moduli[p], &q));
        if (err == DAFL_OK && q != dafl_he_primes[p])
            err = DAFL_ERR_SYS;
    }
    if (err == DAFL_OK)
        err = verdict(EncParams_SetCoeffModulus(parms, n, moduli));
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
    err = verdict(EncParams_SetPolyModulusDegree(parms, DAFL_HE_N));
    if (err == DAFL_OK)
        err = set_primes(parms);
    if (err == DAFL_OK)
        err = verdict(EncParams_SetPlainModulus2(parms, UINT64_C(1) << he->w));
    if (err == DAFL_OK)
        err = verdict(SEALContext_Create(parms, false, SECURITY, &he->context));
    (void)EncParams_Destroy(parms);
    DAFL_TRY(err);
    TRY_SEAL(SEALContext_ParametersSet(he->context, &set));
    if (!set)
        return DAFL_ERR_SYS;
    TRY_SEAL(SEALContext_KeyParmsId(he->context, he->key_id));
    TRY_SEAL(SEALContext_FirstParmsId(he->context, he->ct_id));
    TRY_SEAL(Evaluator_Create(he->context, &he->evaluator));
    return verdict(MemoryPoolHandle_New(true, &he->memory));
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
    err = verdict(PublicKey_Data(pk, &ct));
    if (err == DAFL_OK)
        err = drain(rows, ct, DAFL_HE_KEY_PRIMES, he->workers[0].row);
    (void)PublicKey_Destroy(pk);
    return err;
}

static dafl_err get_secret(dafl_he *he, void *generator, dafl_he_secret *s)
{
    void *sk = NULL;
    dafl_err err;

    TRY_SEAL(KeyGenerator_SecretKey(generator, &sk));
    err = verdict(Decryptor_Create(he->context, sk, &s->decryptor));
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
    err = verdict(KeyGenerator_Create1(he->context, &generator));
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

static dafl_err decrypt_one(dafl_he *he, worker *me, void *what, size_t i)
{
    const decryption *d = what;
    uint64_t *out = d->out + i * DAFL_HE_N, n = 0;
    size_t want = part(d->len, i);

    DAFL_TRY(ct_read(he, me->ct, d->cts + i * CT_BYTES, me->row));
    TRY_SEAL(Decryptor_Decrypt(d->decryptor, me->ct, me->pt));
    /* Without the zeros at its end. */
    TRY_SEAL(Plaintext_CoeffCount(me->pt, &n));
    for (size_t k = 0; k < want && k < n; k++)
        TRY_SEAL(Plaintext_CoeffAt(me->pt, k, &out[k]));
    for (size_t k = n; k < want; k++)
        out[k] = 0;
    return verdict(Plaintext_SetZero1(me->pt));
}

dafl_err dafl_he_decrypt(dafl_he *he, const dafl_he_secret *sk, dafl_bytes cts,
                         uint64_t *out, size_t len)
{
    decryption d = {sk->decryptor, cts.ptr, out, len};
    dafl_err err = DAFL_ERR_PEER;

    if (cts.len == dafl_he_bytes(len))
        err = run(he, count(len), decrypt_one, &d);
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
    err = verdict(PublicKey_Create1(&key));
    if (err == DAFL_OK)
        err = get_public(he, key, pk.ptr);
    if (err == DAFL_OK)
        err = verdict(Encryptor_Create(he->context, key, NULL, &p->encryptor));
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

static dafl_err encrypt_one(dafl_he *he, worker *me, void *what, size_t i)
{
    const encryption *e = what;
    dafl_err err = load(he, me, e->y + i * DAFL_HE_N, part(e->len, i));

    if (err == DAFL_OK)
        err = verdict(
            Encryptor_Encrypt(e->encryptor, me->pt, me->ct, he->memory));
    blank(me);
    DAFL_TRY(err);
    return drain(e->out + i * CT_BYTES, me->ct, DAFL_HE_PRIMES, me->row);
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
    err = run(he, count(len), encrypt_one, &e);
    if (err != DAFL_OK)
        out->len = before;
    return err;
}

dafl_err dafl_he_sum_new(dafl_he_sum **out, dafl_he *he, size_t len)
{
    dafl_err err = DAFL_ERR_NOMEM;
    dafl_he_sum *s = calloc(1, sizeof *s);

    if (s == NULL)
        goto out;
    s->he = he;
    s->len = len;
    s->cts = calloc(count(len) + 1, sizeof *s->cts);
    if (s->cts == NULL)
        goto out;
    err = DAFL_OK;
    for (; s->n < count(len) && err == DAFL_OK; s->n++)
        err = ct_new(he, &s->cts[s->n]);
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
static dafl_err judge_one(dafl_he *he, worker *me, void *what, size_t i)
{
    const addition *a = what;
    const uint8_t *rows = a->cts + i * CT_BYTES;
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

static dafl_err add_one(dafl_he *he, worker *me, void *what, size_t i)
{
    const addition *a = what;
    void *sum = a->sum->cts[i];

    if (!a->sum->any)
        return ct_read(he, sum, a->cts + i * CT_BYTES, me->row);
    DAFL_TRY(ct_read(he, me->ct, a->cts + i * CT_BYTES, me->row));
    return verdict(Evaluator_Add(he->evaluator, sum, me->ct, sum));
}

dafl_err dafl_he_sum_add(dafl_he_sum *s, dafl_bytes upload)
{
    addition a = {s, upload.ptr};

    if (upload.len != dafl_he_bytes(s->len))
        return DAFL_ERR_PEER;
    DAFL_TRY(run(s->he, s->n, judge_one, &a));
    DAFL_TRY(run(s->he, s->n, add_one, &a));
    s->any = true;
    return DAFL_OK;
}

typedef struct {
    dafl_he_sum *sum;
    const dafl_he_sum *other;
} merger;

static dafl_err may_merge_one(dafl_he *he, worker *me, void *what, size_t i)
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

static dafl_err merge_one(dafl_he *he, worker *me, void *what, size_t i)
{
    const merger *m = what;
    void *sum = m->sum->cts[i], *other = m->other->cts[i];

    (void)me;
    if (!m->sum->any)
        return verdict(Ciphertext_Set(sum, other));
    return verdict(Evaluator_Add(he->evaluator, sum, other, sum));
}

dafl_err dafl_he_sum_merge(dafl_he_sum *s, const dafl_he_sum *other)
{
    merger m = {s, other};

    if (s == other || s->he != other->he || s->len != other->len)
        return DAFL_ERR_ARG;
    if (!other->any)
        return DAFL_OK;
    if (s->any)
        DAFL_TRY(run(s->he, s->n, may_merge_one, &m));
    DAFL_TRY(run(s->he, s->n, merge_one, &m));
    s->any = true;
    return DAFL_OK;
}

typedef struct {
    dafl_he_sum *sum;
    const uint64_t *r;
} blinding;

static dafl_err blind_one(dafl_he *he, worker *me, void *what, size_t i)
{
    const blinding *b = what;
    void *sum = b->sum->cts[i];
    dafl_err err = load(he, me, b->r + i * DAFL_HE_N, part(b->sum->len, i));

    if (err == DAFL_OK)
        err = verdict(Evaluator_AddPlain(he->evaluator, sum, me->pt, sum));
    blank(me);
    return err;
}

dafl_err dafl_he_sum_blind(dafl_he_sum *s, const uint64_t *r)
{
    blinding b = {s, r};

    return s->any ? run(s->he, s->n, blind_one, &b) : DAFL_ERR_ARG;
}

typedef struct {
    const dafl_he_sum *sum;
    uint8_t *out;
} putting;

static dafl_err put_one(dafl_he *he, worker *me, void *what, size_t i)
{
    const putting *p = what;

    (void)he;
    return drain(p->out + i * CT_BYTES, p->sum->cts[i], DAFL_HE_PRIMES,
                 me->row);
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
    err = run(s->he, s->n, put_one, &p);
    if (err != DAFL_OK)
        w->len = before;
    return err;
}
