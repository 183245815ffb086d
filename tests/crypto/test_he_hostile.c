/* SPDX-License-Identifier: Apache-2.0 */
/* What others send, wrong arguments (H8) and too little memory: linked with
 * --wrap, so that allocations of ours fail on demand. */
#include "tests/crypto/he_parties.h"

#include "crypto/he_inside.h"

void *__wrap_calloc(size_t n, size_t len);
void *__real_calloc(size_t n, size_t len);
int __wrap_posix_memalign(void **out, size_t alignment, size_t len);
int __real_posix_memalign(void **out, size_t alignment, size_t len);

/* Allocations left until one fails; none does while it is negative. */
static volatile long left = -1;
static volatile bool failed;

static bool fails(void)
{
    if (left < 0 || left-- > 0)
        return false;
    failed = true;
    return true;
}

void *__wrap_calloc(size_t n, size_t len)
{
    return fails() ? NULL : __real_calloc(n, len);
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t len)
{
    return fails() ? 12 : __real_posix_memalign(out, alignment, len);
}

/* ---- H8: what others send ---- */

typedef struct {
    parties p;
    size_t n;
    uint64_t *y, *got;
    dafl_writer good, bad;
    dafl_he_sum *s;
} hostile;

static hostile meet(void)
{
    hostile h = {.p = start(56, 2), .n = 3 * DAFL_HE_N - 7};

    h.y = words(h.n);
    h.got = words(h.n);
    draw(h.y, h.n);
    h.good = encrypted(&h.p, h.y, h.n);
    dafl_put_fixed(&h.bad, h.good.ptr, h.good.len);
    assert_ok(dafl_he_sum_new(&h.s, h.p.he, h.n));
    return h;
}

static void part(hostile *h)
{
    dafl_he_sum_free(&h->s);
    dafl_writer_drop(&h->good);
    dafl_writer_drop(&h->bad);
    free(h->y);
    free(h->got);
    stop(&h->p);
}

/* The server and the key holder refuse these bytes, and the sum, of none or of
 * one upload, stays as it is. */
static void assert_refused(hostile *h, dafl_bytes bytes)
{
    dafl_he_sum *s = NULL;
    uint8_t *copy = exactly(bytes.len);

    if (bytes.len > 0)
        memcpy(copy, bytes.ptr, bytes.len);
    bytes.ptr = copy;
    assert_ok(dafl_he_sum_new(&s, h->p.he, h->n));
    assert_int_equal(dafl_he_sum_add(s, bytes), DAFL_ERR_PEER);
    assert_ok(dafl_he_sum_add(s, dafl_writer_bytes(&h->good)));
    assert_int_equal(dafl_he_sum_add(s, bytes), DAFL_ERR_PEER);
    assert_opens_to(&h->p, s, h->y, h->n);
    memset(h->got, 1, h->n * sizeof *h->got);
    assert_int_equal(dafl_he_decrypt(h->p.he, h->p.sk, bytes, h->got, h->n),
                     DAFL_ERR_PEER);
    for (size_t i = 0; i < h->n; i++)
        assert_true(h->got[i] == 0);
    dafl_he_sum_free(&s);
    free(copy);
}

/* Residue i of row `row` of ciphertext ct becomes x. */
static void plant(dafl_writer *cts, size_t ct, unsigned row, size_t i,
                  uint64_t x)
{
    uint64_t residues[DAFL_HE_N];
    uint8_t *at = cts->ptr + ct * dafl_he_bytes(1) + row * dafl_he_row_bytes(0);

    assert_true(dafl_he_unpack(residues, at, row % 2));
    residues[i] = x;
    dafl_he_pack(at, residues, row % 2);
}

static void residues_that_are_too_large_are_refused(void **state)
{
    hostile h = meet();

    (void)state;
    for (unsigned row = 0; row < 4; row++) {
        uint64_t q = dafl_he_primes[row % 2];
        size_t ct = random_size(0, 2), i = random_size(0, DAFL_HE_N - 1);

        plant(&h.bad, ct, row, i, q - 1); /* the control */
        assert_ok(dafl_he_sum_add(h.s, dafl_writer_bytes(&h.bad)));
        assert_ok(dafl_he_decrypt(h.p.he, h.p.sk, dafl_writer_bytes(&h.bad),
                                  h.got, h.n));
        plant(&h.bad, ct, row, i, q);
        assert_refused(&h, dafl_writer_bytes(&h.bad));
        memcpy(h.bad.ptr, h.good.ptr, h.good.len);
        plant(&h.bad, ct, row, i, (UINT64_C(1) << 36) - 1);
        assert_refused(&h, dafl_writer_bytes(&h.bad));
        memcpy(h.bad.ptr, h.good.ptr, h.good.len);
    }
    part(&h);
}

static void other_sizes_are_refused(void **state)
{
    hostile h = meet();
    size_t poly = dafl_he_poly_bytes(DAFL_HE_PRIMES);
    size_t lens[] = {0,
                     1,
                     h.good.len - 1,
                     h.good.len - 2 * poly,
                     2 * poly,
                     h.good.len + 1,
                     h.good.len + poly,
                     3 * 3 * poly /* of size 3 */,
                     dafl_he_key_bytes()};

    (void)state;
    dafl_put_fixed(&h.bad, h.good.ptr, h.good.len);
    for (size_t i = 0; i < COUNT(lens); i++)
        assert_refused(&h, (dafl_bytes){h.bad.ptr, lens[i]});
    part(&h);
}

static void transparent_ciphertexts_are_refused(void **state)
{
    hostile h = meet();
    size_t poly = dafl_he_poly_bytes(DAFL_HE_PRIMES);

    (void)state;
    memset(h.bad.ptr + 3 * poly, 0, poly);
    assert_refused(&h, dafl_writer_bytes(&h.bad));
    h.bad.ptr[4 * poly - 1] = 1; /* the control */
    assert_ok(dafl_he_sum_add(h.s, dafl_writer_bytes(&h.bad)));
    part(&h);
}

/* Two that work together: the second takes the randomness of the first away
 * from one ciphertext, and SEAL would refuse its own result half way. */
static void uploads_that_cancel_are_refused(void **state)
{
    hostile h = meet();
    dafl_he_sum *other = NULL;

    (void)state;
    for (unsigned row = 2; row < 4; row++) {
        uint8_t *at = h.bad.ptr + dafl_he_bytes(1) + row * dafl_he_row_bytes(0);
        uint64_t residues[DAFL_HE_N];

        assert_true(dafl_he_unpack(residues, at, row % 2));
        for (size_t i = 0; i < DAFL_HE_N; i++)
            if (residues[i] != 0)
                residues[i] = dafl_he_primes[row % 2] - residues[i];
        dafl_he_pack(at, residues, row % 2);
    }
    assert_ok(dafl_he_sum_add(h.s, dafl_writer_bytes(&h.good)));
    assert_int_equal(dafl_he_sum_add(h.s, dafl_writer_bytes(&h.bad)),
                     DAFL_ERR_PEER);
    assert_opens_to(&h.p, h.s, h.y, h.n);
    assert_ok(dafl_he_sum_new(&other, h.p.he, h.n));
    assert_ok(dafl_he_sum_add(other, dafl_writer_bytes(&h.bad)));
    assert_int_equal(dafl_he_sum_merge(h.s, other), DAFL_ERR_PEER);
    assert_opens_to(&h.p, h.s, h.y, h.n);
    /* The control: with a third one's on top nothing is left to refuse. */
    assert_ok(dafl_he_sum_add(h.s, dafl_writer_bytes(&h.good)));
    assert_ok(dafl_he_sum_add(h.s, dafl_writer_bytes(&h.bad)));
    dafl_he_sum_free(&other);
    part(&h);
}

static void malformed_keys_are_refused(void **state)
{
    parties p = start(56, 1);
    size_t len = p.key.len, poly = dafl_he_poly_bytes(DAFL_HE_KEY_PRIMES);
    dafl_he_public *pk = NULL;
    uint8_t *bad = exactly(len + 1);
    uint64_t residues[DAFL_HE_N];
    size_t at = 0;

    (void)state;
    for (unsigned row = 0; row < 6; row++) {
        unsigned prime = row % 3;

        for (int too_large = 0; too_large <= 1; too_large++) {
            memcpy(bad, p.key.ptr, len);
            assert_true(dafl_he_unpack(residues, bad + at, prime));
            residues[random_size(0, DAFL_HE_N - 1)] =
                dafl_he_primes[prime] - !too_large;
            dafl_he_pack(bad + at, residues, prime);
            assert_int_equal(
                dafl_he_public_read(p.he, &pk, (dafl_bytes){bad, len}),
                too_large ? DAFL_ERR_PEER : DAFL_OK);
            dafl_he_public_free(&pk);
        }
        at += dafl_he_row_bytes(prime);
    }
    memcpy(bad, p.key.ptr, len);
    bad[len] = 0;
    for (size_t k = 0; k < 3; k++)
        assert_int_equal(
            dafl_he_public_read(
                p.he, &pk,
                (dafl_bytes){bad, (size_t[]){0, len - 1, len + 1}[k]}),
            DAFL_ERR_PEER);
    memset(bad + poly, 0, poly);
    assert_int_equal(dafl_he_public_read(p.he, &pk, (dafl_bytes){bad, len}),
                     DAFL_ERR_PEER);
    assert_null(pk);
    free(bad);
    stop(&p);
}

/* ---- arguments and memory ---- */

static void other_widths_are_refused(void **state)
{
    unsigned bad[] = {0, 1, 8, 24, 33, 55, 57, 64, 100};
    dafl_he *he = NULL;
    dafl_why why;

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(dafl_he_new(&he, bad[i], NULL, &why), DAFL_ERR_ARG);
        assert_null(he);
        assert_says(&why, "at most 56");
    }
}

static void sums_of_none_are_not_put(void **state)
{
    parties p = start(48, 1);
    dafl_he_sum *s = NULL, *longer = NULL;
    dafl_writer out = {0};
    uint64_t r = 1;

    (void)state;
    assert_ok(dafl_he_sum_new(&s, p.he, 1));
    assert_ok(dafl_he_sum_new(&longer, p.he, 2));
    assert_int_equal(dafl_he_sum_put(s, &out), DAFL_ERR_ARG);
    assert_int_equal(dafl_he_sum_blind(s, &r), DAFL_ERR_ARG);
    assert_int_equal(dafl_he_sum_merge(s, s), DAFL_ERR_ARG);
    assert_int_equal(dafl_he_sum_merge(s, longer), DAFL_ERR_ARG);
    assert_int_equal(out.len, 0);
    dafl_he_sum_free(&s);
    dafl_he_sum_free(&longer);
    dafl_he_sum_free(&s);
    dafl_he_free(&(dafl_he *){NULL});
    dafl_he_secret_free(&(dafl_he_secret *){NULL});
    dafl_he_public_free(&(dafl_he_public *){NULL});
    stop(&p);
}

/* Everything once; with an allocation of ours that fails, out of memory and
 * what was there before stays. */
static dafl_err whole_life(const uint64_t *y, size_t n)
{
    dafl_he *he = NULL;
    dafl_he_secret *sk = NULL;
    dafl_he_public *pk = NULL;
    dafl_he_sum *s = NULL;
    dafl_writer key = {0}, cts = {0}, sum = {0};
    uint64_t got[1];
    dafl_err err = dafl_he_new(&he, 56, NULL, NULL);

    if (err == DAFL_OK)
        err = dafl_he_keygen(he, &sk, &key);
    if (err == DAFL_OK)
        err = dafl_he_public_read(he, &pk, dafl_writer_bytes(&key));
    else
        assert_int_equal(key.len, 0);
    if (err == DAFL_OK)
        err = dafl_he_encrypt(he, pk, y, n, &cts);
    if (err == DAFL_OK)
        err = dafl_he_sum_new(&s, he, n);
    if (err == DAFL_OK)
        err = dafl_he_sum_add(s, dafl_writer_bytes(&cts));
    if (err == DAFL_OK)
        err = dafl_he_sum_put(s, &sum);
    if (err == DAFL_OK)
        err = dafl_he_decrypt(he, sk, dafl_writer_bytes(&sum), got, n);
    if (err == DAFL_OK)
        assert_equal_mod(got, y, n, 56);
    dafl_writer_drop(&sum);
    dafl_writer_drop(&cts);
    dafl_writer_drop(&key);
    dafl_he_sum_free(&s);
    dafl_he_public_free(&pk);
    dafl_he_secret_free(&sk);
    dafl_he_free(&he);
    return err;
}

static void a_failing_allocation_is_survived(void **state)
{
    uint64_t y = random_u64();
    long k = 0;

    (void)state;
    for (;; k++) {
        dafl_err err;

        failed = false;
        left = k;
        err = whole_life(&y, 1);
        left = -1;
        assert_int_equal(err, failed ? DAFL_ERR_NOMEM : DAFL_OK);
        if (!failed)
            break;
    }
    assert_true(k >= 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(residues_that_are_too_large_are_refused),
        cmocka_unit_test(other_sizes_are_refused),
        cmocka_unit_test(transparent_ciphertexts_are_refused),
        cmocka_unit_test(uploads_that_cancel_are_refused),
        cmocka_unit_test(malformed_keys_are_refused),
        cmocka_unit_test(other_widths_are_refused),
        cmocka_unit_test(sums_of_none_are_not_put),
        cmocka_unit_test(a_failing_allocation_is_survived),
        cmocka_unit_test(nothing_was_loaded),
        cmocka_unit_test(loads_would_have_been_seen),
    };

    if (!can_encrypt())
        return 77;
    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
