/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/crypto/he_parties.h"

#include "tests/crypto/he_loads.h"

static unsigned loads;

#define WRAP_LOAD(name)                                             \
    long __wrap_##name(void *, void *, void *, void *, void *);     \
    long __wrap_##name(void *a, void *b, void *c, void *d, void *e) \
    {                                                               \
        (void)a, (void)b, (void)c, (void)d, (void)e;                \
        loads++;                                                    \
        return 1;                                                   \
    }                                                               \
    long name(void *, void *, void *, void *, void *);
HE_LOADS(WRAP_LOAD)

parties start(unsigned w, unsigned threads)
{
    parties p = {.w = w};

    if (threads > 0)
        assert_ok(dafl_pool_new(&p.pool, threads));
    assert_ok(dafl_he_new(&p.he, w, p.pool, NULL));
    assert_ok(dafl_he_keygen(p.he, &p.sk, &p.key));
    assert_int_equal(p.key.len, dafl_he_key_bytes());
    assert_ok(dafl_he_public_read(p.he, &p.pk, dafl_writer_bytes(&p.key)));
    return p;
}

void stop(parties *p)
{
    dafl_he_secret_free(&p->sk);
    assert_null(p->sk);
    dafl_he_public_free(&p->pk);
    assert_null(p->pk);
    dafl_he_free(&p->he);
    assert_null(p->he);
    dafl_pool_free(&p->pool);
    dafl_writer_drop(&p->key);
}

uint64_t *words(size_t n)
{
    return exactly(n * sizeof(uint64_t));
}

void draw(uint64_t *y, size_t n)
{
    random_bytes(y, n * sizeof *y);
    y[0] = UINT64_MAX;
    if (n > 2)
        y[n - 1] = 0;
}

void assert_equal_mod(const uint64_t *got, const uint64_t *want, size_t n,
                      unsigned w)
{
    for (size_t i = 0; i < n; i++)
        if (got[i] != (want[i] & UINT64_MAX >> (64 - w)))
            fail_msg("number %zu of %zu: %llx, not %llx", i, n,
                     (unsigned long long)got[i], (unsigned long long)want[i]);
}

dafl_writer encrypted(const parties *p, const uint64_t *y, size_t n)
{
    dafl_writer out = {0};

    assert_ok(dafl_he_encrypt(p->he, p->pk, y, n, &out));
    assert_int_equal(out.len, dafl_he_bytes(n));
    return out;
}

dafl_writer put(const dafl_he_sum *s)
{
    dafl_writer out = {0};

    assert_ok(dafl_he_sum_put(s, &out));
    return out;
}

void assert_opens_to(const parties *p, const dafl_he_sum *s,
                     const uint64_t *want, size_t n)
{
    dafl_writer cts = put(s);
    uint64_t *got = words(n);

    assert_ok(dafl_he_decrypt(p->he, p->sk, dafl_writer_bytes(&cts), got, n));
    assert_equal_mod(got, want, n, p->w);
    free(got);
    dafl_writer_drop(&cts);
}

void nothing_was_loaded(void **state)
{
    (void)state;
    assert_int_equal(loads, 0);
}

void loads_would_have_been_seen(void **state)
{
    unsigned calls = 0;

    (void)state;
#define CALL_LOAD(name)                                      \
    assert_int_equal(name(NULL, NULL, NULL, NULL, NULL), 1); \
    calls++;
    HE_LOADS(CALL_LOAD)
    assert_true(calls > 0);
    assert_int_equal(loads, calls);
}

bool can_encrypt(void)
{
    dafl_why why = {{0}};
    dafl_he *he = NULL;

    if (dafl_he_built())
        return true;
    if (dafl_he_new(&he, 56, NULL, &why) != DAFL_ERR_INPUT)
        exit(1);
    (void)fprintf(stderr, "SKIPPED, nothing was tested: %s\n", why.text);
    return false;
}
