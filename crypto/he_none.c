/* SPDX-License-Identifier: Apache-2.0 */
/* A build without SEAL: there is never a dafl_he, so only dafl_he_new is ever
 * called, and free with nothing to free. */
#include "crypto/he.h"

bool dafl_he_built(void)
{
    return false;
}

dafl_err dafl_he_new(dafl_he **out, unsigned w, dafl_pool *pool, dafl_why *why)
{
    (void)out;
    (void)w;
    (void)pool;
    return dafl_fail(why, DAFL_ERR_INPUT,
                     "this program was built without Microsoft SEAL: install "
                     "its C library (sealc), or run scripts/setup-seal, and "
                     "build again with -Dseal=enabled");
}

void dafl_he_free(dafl_he **he)
{
    (void)he;
}

dafl_err dafl_he_keygen(dafl_he *he, dafl_he_secret **sk, dafl_writer *pk)
{
    (void)he;
    (void)sk;
    (void)pk;
    return DAFL_ERR_ARG;
}

void dafl_he_secret_free(dafl_he_secret **sk)
{
    (void)sk;
}

dafl_err dafl_he_decrypt(dafl_he *he, const dafl_he_secret *sk, dafl_bytes cts,
                         uint64_t *out, size_t len)
{
    (void)he;
    (void)sk;
    (void)cts;
    (void)out;
    (void)len;
    return DAFL_ERR_ARG;
}

dafl_err dafl_he_public_read(dafl_he *he, dafl_he_public **out, dafl_bytes pk)
{
    (void)he;
    (void)out;
    (void)pk;
    return DAFL_ERR_ARG;
}

void dafl_he_public_free(dafl_he_public **pk)
{
    (void)pk;
}

dafl_err dafl_he_encrypt(dafl_he *he, const dafl_he_public *pk,
                         const uint64_t *y, size_t len, dafl_writer *out)
{
    (void)he;
    (void)pk;
    (void)y;
    (void)len;
    (void)out;
    return DAFL_ERR_ARG;
}

dafl_err dafl_he_sum_new(dafl_he_sum **out, dafl_he *he, size_t len)
{
    (void)out;
    (void)he;
    (void)len;
    return DAFL_ERR_ARG;
}

void dafl_he_sum_free(dafl_he_sum **sum)
{
    (void)sum;
}

dafl_err dafl_he_sum_add(dafl_he_sum *s, dafl_bytes upload)
{
    (void)s;
    (void)upload;
    return DAFL_ERR_ARG;
}

dafl_err dafl_he_sum_merge(dafl_he_sum *s, const dafl_he_sum *other)
{
    (void)s;
    (void)other;
    return DAFL_ERR_ARG;
}

dafl_err dafl_he_sum_blind(dafl_he_sum *s, const uint64_t *r)
{
    (void)s;
    (void)r;
    return DAFL_ERR_ARG;
}

dafl_err dafl_he_sum_put(const dafl_he_sum *s, dafl_writer *w)
{
    (void)s;
    (void)w;
    return DAFL_ERR_ARG;
}
