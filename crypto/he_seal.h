/* SPDX-License-Identifier: Apache-2.0 */
/* Microsoft SEAL, through the C export library sealc, for he_seal.c and
 * he_seal_sum.c: no other file may know it (tests/tree/arrows).
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
#ifndef DAFL_CRYPTO_HE_SEAL_H
#define DAFL_CRYPTO_HE_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/he.h"
#include "crypto/he_inside.h"

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

#define DAFL_SEAL_OUT_OF_MEMORY 0x8007000eL

static inline dafl_err dafl_seal_verdict(hresult r)
{
    if (r == 0)
        return DAFL_OK;
    return r == DAFL_SEAL_OUT_OF_MEMORY ? DAFL_ERR_NOMEM : DAFL_ERR_SYS;
}
#define TRY_SEAL(call) DAFL_TRY(dafl_seal_verdict(call))

/* What one thread works with. */
typedef struct {
    void *ct, *pt;
    uint64_t *row; /* DAFL_HE_N residues or numbers */
    dafl_err err;  /* the first of a run */
} dafl_seal_worker;

struct dafl_he {
    unsigned w, n_workers;
    dafl_pool *pool;
    dafl_seal_worker *workers;
    void *context, *evaluator;
    /* Not SEAL's global pool, which never gives memory back; and not one for
     * each thread, because a sum is made by one and freed by another. The hot
     * paths allocate nothing from it. */
    void *memory;
    uint64_t ct_id[4], key_id[4];
};

static inline size_t dafl_seal_count(size_t len)
{
    return len / DAFL_HE_N + (len % DAFL_HE_N != 0);
}

/* Numbers in ciphertext i of `len`. */
static inline size_t dafl_seal_part(size_t len, size_t i)
{
    size_t left = len - i * DAFL_HE_N;

    return left < DAFL_HE_N ? left : DAFL_HE_N;
}

#define DAFL_SEAL_CT_BYTES ((size_t)DAFL_HE_N * 18)

/* A ciphertext of ours: of the right size, zero. */
DAFL_CHECK dafl_err dafl_seal_ct_new(dafl_he *he, void **out);
/* From its rows; DAFL_ERR_PEER unless it is one. */
DAFL_CHECK dafl_err dafl_seal_ct_read(const dafl_he *he, void *ct,
                                      const uint8_t *rows, uint64_t *row);
/* To its rows, modulo the first n primes. */
DAFL_CHECK dafl_err dafl_seal_drain(uint8_t *rows, void *ct, unsigned n,
                                    uint64_t *row);

/* Numbers mod 2^w to the plaintext of a worker; wiped by blank. */
DAFL_CHECK dafl_err dafl_seal_load(const dafl_he *he, dafl_seal_worker *me,
                                   const uint64_t *y, size_t n);
void dafl_seal_blank(dafl_seal_worker *me);

/* Work on ciphertext i by a worker, for every i below n; the first error. */
typedef dafl_err dafl_seal_task(dafl_he *he, dafl_seal_worker *me, void *what,
                                size_t i);
DAFL_CHECK dafl_err dafl_seal_run(dafl_he *he, size_t n, dafl_seal_task *fn,
                                  void *what);

#endif
