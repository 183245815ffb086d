/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of a slot without its messages: masked vectors go in, the
 * plain sum over the survivors comes out. */
#include "tests/check.h"

#include <stdbool.h>

#include "crypto/shamir.h"
#include "lib/ring.h"
#include "protocol/context.h"
#include "protocol/masking.h"

#define K_MAX 256
#define LEN 37

typedef struct {
    size_t k;
    unsigned w;
    dafl_key sk[K_MAX], b[K_MAX];
    dafl_public pk[K_MAX];
    dafl_digest ctx2[K_MAX]; /* what each client was told; the server: [0] */
    int64_t x[K_MAX][LEN];
    uint64_t y[K_MAX][LEN];
} slot;

static slot s;

static void random_bytes(void *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((uint8_t *)out)[i] = (uint8_t)random_u64();
}

/* Secrets and inputs; coded so that a sum shows who is in it: entry u of client
 * u is one, entries from k on are random within the ring's share. */
static void make_slot(size_t k, unsigned w)
{
    dafl_digest ctx2;

    s.k = k;
    s.w = w;
    random_bytes(&ctx2, sizeof ctx2);
    for (size_t u = 0; u < k; u++) {
        random_bytes(&s.sk[u], sizeof s.sk[u]);
        random_bytes(&s.b[u], sizeof s.b[u]);
        dafl_key_public(&s.pk[u], &s.sk[u]);
        s.ctx2[u] = ctx2;
        for (size_t i = 0; i < LEN; i++)
            s.x[u][i] = (int64_t)(random_u64() >> (64 - w + 9)) *
                        (random_u64() % 2 == 0 ? 1 : -1);
        for (size_t i = 0; i < LEN && i < k; i++)
            s.x[u][i] = i == u;
    }
}

static void upload(size_t u, const dafl_members *a)
{
    dafl_masking m = {&s.ctx2[u], a, s.pk, s.w};

    dafl_ring_from_int(s.y[u], s.x[u], LEN);
    assert_ok(dafl_masking_own(s.y[u], LEN, &m, (uint16_t)u, &s.sk[u], &s.b[u],
                               NULL));
}

/* The opened sum over u3 as integers. */
static void open_sum(int64_t *out, const dafl_members *a,
                     const dafl_members *u3, const dafl_key *b,
                     const dafl_key *sk)
{
    dafl_masking m = {&s.ctx2[0], a, s.pk, s.w};
    uint64_t acc[LEN] = {0};

    for (size_t u = 0; u < s.k; u++)
        for (size_t i = 0; i < LEN && dafl_members_has(u3, u); i++)
            acc[i] += s.y[u][i];
    assert_ok(dafl_masking_open(acc, LEN, &m, u3, b, sk, NULL));
    dafl_ring_to_int(out, acc, LEN, s.w);
}

static bool is_plain_sum(const int64_t *sum, const dafl_members *u3)
{
    for (size_t i = 0; i < LEN; i++) {
        int64_t want = 0;
        for (size_t u = 0; u < s.k; u++)
            want += dafl_members_has(u3, u) ? s.x[u][i] : 0;
        if (want != sum[i])
            return false;
    }
    return true;
}

static dafl_members members_of(size_t k, unsigned long bits)
{
    dafl_members m = dafl_members_none(k);

    for (size_t u = 0; u < k; u++)
        if (bits >> u & 1)
            dafl_members_add(&m, u);
    return m;
}

static void every_cohort_and_every_dropout_opens_exactly(void **state)
{
    (void)state;
    for (size_t k = 1; k <= 6; k++) {
        make_slot(k, 32 + 8 * (unsigned)random_size(0, 4));
        for (unsigned long a = 1; a < 1ul << k; a++) {
            dafl_members cast = members_of(k, a);
            for (size_t u = 0; u < k; u++)
                if (dafl_members_has(&cast, u))
                    upload(u, &cast);
            for (unsigned long u3 = a;; u3 = (u3 - 1) & a) {
                dafl_members alive = members_of(k, u3);
                int64_t sum[LEN];
                open_sum(sum, &cast, &alive, s.b, s.sk);
                assert_true(is_plain_sum(sum, &alive));
                if (u3 == 0)
                    break;
            }
        }
    }
}

/* With the secrets rebuilt from shares, of which some holders are gone. */
static void large_cohorts_open_from_rebuilt_secrets(void **state)
{
    static const size_t sizes[] = {12, 100, 256};
    static dafl_key b[K_MAX], sk[K_MAX];

    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        size_t k = sizes[i], t = 0;
        dafl_members cast = dafl_members_none(k), alive;
        int64_t sum[LEN];

        make_slot(k, 48);
        assert_int_equal(dafl_threshold(&t, k, k / 10, k / 4), 0);
        for (size_t u = 0; u < k; u++)
            dafl_members_add(&cast, u);
        alive = cast;
        for (size_t n = 0; n < k / 5; n++)
            dafl_members_remove(&alive, random_size(0, k - 1));
        for (size_t u = 0; u < k; u++) {
            bool lives = dafl_members_has(&alive, u);
            uint8_t places[K_MAX];
            dafl_share shares[K_MAX];
            size_t n = 0;
            upload(u, &cast);
            for (size_t v = 0; v < k; v++)
                if (v != u)
                    places[n++] = dafl_shamir_place(u, v);
            assert_ok(dafl_shamir_split(shares, lives ? &s.b[u] : &s.sk[u],
                                        places, n, t));
            /* the last t holders are the ones that are left */
            assert_ok(dafl_shamir_join(lives ? &b[u] : &sk[u], shares + n - t,
                                       places + n - t, t));
        }
        open_sum(sum, &cast, &alive, b, sk);
        assert_true(is_plain_sum(sum, &alive));
    }
}

/* A client that the server declared gone sends its vector after all. Its pair
 * masks can be taken off, the self mask stays. */
static void a_late_upload_stays_closed(void **state)
{
    dafl_members cast, alive, late;
    uint64_t acc[LEN], plain[LEN];
    dafl_masking m;

    (void)state;
    make_slot(5, 64);
    cast = members_of(5, 31);
    alive = members_of(5, 30);
    late = dafl_members_minus(&cast, &alive);
    upload(0, &cast);
    memcpy(acc, s.y[0], sizeof acc);
    /* Everything the server can know: sk of the late one (rebuilt), and with
     * it every pair key. Open as if it were the only survivor, with the pair
     * keys taken from its own sk instead of its peers'. */
    m = (dafl_masking){&s.ctx2[0], &cast, s.pk, s.w};
    for (uint16_t v = 1; v < 5; v++) {
        dafl_mask mask = {.negate = true};
        assert_ok(dafl_key_pair(&mask.key, &s.sk[0], m.ctx2, 0, &s.pk[0], v,
                                &s.pk[v]));
        dafl_mask_apply(acc, LEN, s.w, &mask, 1, NULL);
    }
    dafl_ring_from_int(plain, s.x[0], LEN);
    for (size_t i = 0; i < LEN; i++)
        assert_true(acc[i] != plain[i]);
    /* The control: with b it opens. */
    {
        dafl_mask self = {.negate = true};
        dafl_key_self(&self.key, &s.b[0], m.ctx2, 0);
        dafl_mask_apply(acc, LEN, s.w, &self, 1, NULL);
        assert_memory_equal(acc, plain, sizeof acc);
    }
    assert_int_equal(dafl_members_count(&late), 1);
}

/* Told another model, cohort or key, a client masks with other words. */
static void another_context_does_not_open(void **state)
{
    dafl_members cast = members_of(4, 15);
    int64_t sum[LEN];

    (void)state;
    make_slot(4, 56);
    for (size_t u = 0; u < 4; u++)
        upload(u, &cast);
    open_sum(sum, &cast, &cast, s.b, s.sk);
    assert_true(is_plain_sum(sum, &cast));
    s.ctx2[2].b[31] ^= 1;
    upload(2, &cast);
    open_sum(sum, &cast, &cast, s.b, s.sk);
    for (size_t i = 0; i < LEN; i++) /* not one entry by luck: 2^-56 each */
        assert_true(sum[i] != s.x[0][i] + s.x[1][i] + s.x[2][i] + s.x[3][i]);
}

static void misuse_is_refused_and_leaves_the_vector(void **state)
{
    dafl_members cast = members_of(3, 3), all = members_of(3, 7);
    uint64_t acc[LEN] = {0}, zero[LEN] = {0};
    dafl_masking m = {&s.ctx2[0], &cast, s.pk, 48};

    (void)state;
    make_slot(3, 48);
    assert_int_equal(dafl_masking_own(acc, LEN, &m, 2, &s.sk[2], &s.b[2], NULL),
                     DAFL_ERR_ARG);
    assert_int_equal(dafl_masking_open(acc, LEN, &m, &all, s.b, s.sk, NULL),
                     DAFL_ERR_ARG);
    memset(&s.pk[1], 0, sizeof s.pk[1]); /* of low order */
    assert_int_equal(dafl_masking_own(acc, LEN, &m, 0, &s.sk[0], &s.b[0], NULL),
                     DAFL_ERR_CRYPTO);
    assert_memory_equal(acc, zero, sizeof acc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cohort_and_every_dropout_opens_exactly),
        cmocka_unit_test(large_cohorts_open_from_rebuilt_secrets),
        cmocka_unit_test(a_late_upload_stays_closed),
        cmocka_unit_test(another_context_does_not_open),
        cmocka_unit_test(misuse_is_refused_and_leaves_the_vector),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
