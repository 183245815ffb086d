/* SPDX-License-Identifier: Apache-2.0 */
/* What makes many runs of the machines fast, for programs that are linked with
 * it (-Wl,--wrap). Elliptic curves take most of the time of a run, and the
 * parties of a run, and similar runs, repeat each other: four functions of
 * their arguments alone keep their results and give them again.
 *  - A signature that was made here holds.
 *  - A product of keys is the same for both parties.
 * Secret memory comes from malloc, whose leaks and bounds the sanitizer sees.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PLACES 65536

typedef enum { SIGN, VERIFY, PRODUCT, PUBLIC, KINDS } kind;

typedef struct {
    int full;
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
static int find(memo **out, kind what, const uint8_t in[128])
{
    static memo memos[KINDS][PLACES];
    uint64_t h = what, word;

    for (size_t i = 0; i < 128; i += sizeof word) {
        memcpy(&word, in + i, sizeof word);
        h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 32;
    }
    *out = &memos[what][h % PLACES];
    if ((*out)->full && memcmp((*out)->in, in, 128) == 0)
        return 1;
    (*out)->full = 1;
    memcpy((*out)->in, in, 128);
    return 0;
}

static int find_verify(memo **out, const unsigned char *sig,
                       const unsigned char *m, const unsigned char *pk)
{
    uint8_t in[128];

    memcpy(in, m, 32);
    memcpy(in + 32, pk, 32);
    memcpy(in + 64, sig, 64);
    return find(out, VERIFY, in);
}

int __wrap_crypto_sign_ed25519_detached(unsigned char *sig,
                                        unsigned long long *sig_len,
                                        const unsigned char *m,
                                        unsigned long long m_len,
                                        const unsigned char *sk)
{
    uint8_t in[128] = {0};
    memo *e, *v;

    if (m_len != 32 || sig_len != NULL)
        return __real_crypto_sign_ed25519_detached(sig, sig_len, m, m_len, sk);
    memcpy(in, m, 32);
    memcpy(in + 32, sk, 64);
    if (!find(&e, SIGN, in)) {
        e->result =
            __real_crypto_sign_ed25519_detached(e->out, NULL, m, m_len, sk);
        (void)find_verify(&v, e->out, m, sk + 32);
        v->result = e->result;
    }
    memcpy(sig, e->out, 64);
    return e->result;
}

int __wrap_crypto_sign_ed25519_verify_detached(const unsigned char *sig,
                                               const unsigned char *m,
                                               unsigned long long m_len,
                                               const unsigned char *pk)
{
    memo *e;

    if (m_len != 32)
        return __real_crypto_sign_ed25519_verify_detached(sig, m, m_len, pk);
    if (!find_verify(&e, sig, m, pk))
        e->result =
            __real_crypto_sign_ed25519_verify_detached(sig, m, m_len, pk);
    return e->result;
}

int __wrap_crypto_scalarmult_curve25519(unsigned char *q,
                                        const unsigned char *n,
                                        const unsigned char *p)
{
    uint8_t in[128] = {0}, own[32];
    int first;
    memo *e;

    (void)__wrap_crypto_scalarmult_curve25519_base(own, n);
    first = memcmp(own, p, 32) < 0;
    memcpy(in, first ? own : p, 32);
    memcpy(in + 32, first ? p : own, 32);
    if (!find(&e, PRODUCT, in))
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
    if (!find(&e, PUBLIC, in))
        e->result = __real_crypto_scalarmult_curve25519_base(e->out, n);
    memcpy(q, e->out, 32);
    return e->result;
}
