/* SPDX-License-Identifier: Apache-2.0 */
/* What makes the coverage-guided target fast; linked into it alone
 * (-Wl,--wrap). Elliptic curves take most of the time of a run, and runs of a
 * fuzzer repeat each other: four functions of their arguments alone keep their
 * results under all of their arguments and give them again. Secret memory comes
 * from malloc, whose leaks and bounds the sanitizer sees. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PLACES 32768

typedef struct {
    uint8_t what;
    uint8_t in[128], out[64];
    int result;
} memo;

int __real_crypto_sign_ed25519_detached(unsigned char *sig,
                                        unsigned long long *sig_len,
                                        const unsigned char *m,
                                        unsigned long long m_len,
                                        const unsigned char *sk);
int __real_crypto_sign_ed25519_verify_detached(const unsigned char *sig,
                                               const unsigned char *m,
                                               unsigned long long m_len,
                                               const unsigned char *pk);
int __real_crypto_scalarmult_curve25519(unsigned char *q,
                                        const unsigned char *n,
                                        const unsigned char *p);
int __real_crypto_scalarmult_curve25519_base(unsigned char *q,
                                             const unsigned char *n);
int __wrap_crypto_sign_ed25519_detached(unsigned char *sig,
                                        unsigned long long *sig_len,
                                        const unsigned char *m,
                                        unsigned long long m_len,
                                        const unsigned char *sk);
int __wrap_crypto_sign_ed25519_verify_detached(const unsigned char *sig,
                                               const unsigned char *m,
                                               unsigned long long m_len,
                                               const unsigned char *pk);
int __wrap_crypto_scalarmult_curve25519(unsigned char *q,
                                        const unsigned char *n,
                                        const unsigned char *p);
int __wrap_crypto_scalarmult_curve25519_base(unsigned char *q,
                                             const unsigned char *n);

void *__wrap_sodium_allocarray(size_t n, size_t size);
void __wrap_sodium_free(void *ptr);

void *__wrap_sodium_allocarray(size_t n, size_t size)
{
    return calloc(n, size);
}

void __wrap_sodium_free(void *ptr)
{
    free(ptr);
}

/* The place for a call; true when it holds that very call already. */
static int find(memo **out, uint8_t what, const uint8_t in[128])
{
    static memo memos[PLACES];
    uint64_t h = what, word;

    for (size_t i = 0; i < 128; i += sizeof word) {
        memcpy(&word, in + i, sizeof word);
        h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 32;
    }
    *out = &memos[h % PLACES];
    if ((*out)->what == what && memcmp((*out)->in, in, 128) == 0)
        return 1;
    (*out)->what = what;
    memcpy((*out)->in, in, 128);
    return 0;
}

int __wrap_crypto_sign_ed25519_detached(unsigned char *sig,
                                        unsigned long long *sig_len,
                                        const unsigned char *m,
                                        unsigned long long m_len,
                                        const unsigned char *sk)
{
    uint8_t in[128] = {0};
    memo *e;

    if (m_len != 32 || sig_len != NULL)
        return __real_crypto_sign_ed25519_detached(sig, sig_len, m, m_len, sk);
    memcpy(in, m, 32);
    memcpy(in + 32, sk, 64);
    if (!find(&e, 1, in))
        e->result =
            __real_crypto_sign_ed25519_detached(e->out, NULL, m, m_len, sk);
    memcpy(sig, e->out, 64);
    return e->result;
}

int __wrap_crypto_sign_ed25519_verify_detached(const unsigned char *sig,
                                               const unsigned char *m,
                                               unsigned long long m_len,
                                               const unsigned char *pk)
{
    uint8_t in[128] = {0};
    memo *e;

    if (m_len != 32)
        return __real_crypto_sign_ed25519_verify_detached(sig, m, m_len, pk);
    memcpy(in, m, 32);
    memcpy(in + 32, pk, 32);
    memcpy(in + 64, sig, 64);
    if (!find(&e, 2, in))
        e->result =
            __real_crypto_sign_ed25519_verify_detached(sig, m, m_len, pk);
    return e->result;
}

int __wrap_crypto_scalarmult_curve25519(unsigned char *q,
                                        const unsigned char *n,
                                        const unsigned char *p)
{
    uint8_t in[128] = {0};
    memo *e;

    memcpy(in, n, 32);
    memcpy(in + 32, p, 32);
    if (!find(&e, 3, in))
        e->result = __real_crypto_scalarmult_curve25519(e->out, n, p);
    memcpy(q, e->out, 32);
    return e->result;
}

int __wrap_crypto_scalarmult_curve25519_base(unsigned char *q,
                                             const unsigned char *n)
{
    uint8_t in[128] = {0};
    memo *e;

    memcpy(in, n, 32);
    if (!find(&e, 4, in))
        e->result = __real_crypto_scalarmult_curve25519_base(e->out, n);
    memcpy(q, e->out, 32);
    return e->result;
}
