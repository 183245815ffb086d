/* SPDX-License-Identifier: Apache-2.0 */
/* Shares with errors are a Reed-Solomon word. It is decoded by Gao's method
 * (2003), the Berlekamp-Welch equations solved by Euclid's algorithm:
 *   g0 = product of (x - x_i), g1 = the polynomial through all points;
 *   Euclid on (g0, g1), stopped at the first remainder g of degree
 *   < (n + t) / 2, with g = u g0 + v g1;
 *   if v divides g and the quotient f has degree < t, f is the sharing
 *   polynomial and the roots of v are the wrong places. */
#include <string.h>

#include <sodium.h>

#include "crypto/gf256.h"
#include "crypto/shamir.h"

/* Degree at most 255; `len` coefficients, the lowest first, the last not 0. */
typedef struct {
    size_t len;
    uint8_t c[DAFL_HOLDERS_MAX + 2];
} poly;

static void trim(poly *p)
{
    while (p->len > 0 && p->c[p->len - 1] == 0)
        p->len--;
}

static uint8_t eval(const poly *p, uint8_t x)
{
    uint8_t y = 0;

    for (size_t i = p->len; i-- > 0;)
        y = dafl_gf_mul(y, x) ^ p->c[i];
    return y;
}

/* p *= (x - root). */
static void times_root(poly *p, uint8_t root)
{
    p->c[p->len] = 0;
    for (size_t i = p->len; i > 0; i--)
        p->c[i] = p->c[i - 1] ^ dafl_gf_mul(p->c[i], root);
    p->c[0] = dafl_gf_mul(p->c[0], root);
    p->len++;
}

/* a += scale x^shift b. */
static void add_shifted(poly *a, const poly *b, uint8_t scale, size_t shift)
{
    if (b->len == 0)
        return;
    while (a->len < b->len + shift)
        a->c[a->len++] = 0;
    for (size_t i = 0; i < b->len; i++)
        a->c[i + shift] ^= dafl_gf_mul(b->c[i], scale);
    trim(a);
}

/* a mod b in a, the quotient's terms applied to (to -= quotient * by) unless
 * `to` is NULL, and collected in `quotient` unless that is NULL. b != 0. */
static void reduce(poly *a, const poly *b, poly *to, const poly *by,
                   poly *quotient)
{
    uint8_t inverse = dafl_gf_inverse(b->c[b->len - 1]);

    if (quotient != NULL)
        *quotient = (poly){.len = a->len};
    while (a->len >= b->len) {
        size_t shift = a->len - b->len;
        uint8_t scale = dafl_gf_mul(a->c[a->len - 1], inverse);
        add_shifted(a, b, scale, shift);
        if (to != NULL)
            add_shifted(to, by, scale, shift);
        if (quotient != NULL)
            quotient->c[shift] = scale;
    }
    if (quotient != NULL)
        trim(quotient);
}

/* The polynomials of all points: Newton's form, point by point. */
static void interpolate(poly *g0, poly *g1, const uint8_t *x, const uint8_t *y,
                        size_t n)
{
    *g0 = (poly){.len = 1, .c = {1}};
    *g1 = (poly){.len = 0};
    for (size_t i = 0; i < n; i++) {
        uint8_t off = y[i] ^ eval(g1, x[i]);
        add_shifted(g1, g0, dafl_gf_mul(off, dafl_gf_inverse(eval(g0, x[i]))),
                    0);
        times_root(g0, x[i]);
    }
}

/* One byte position: marks wrong places; false when it cannot be decoded. */
static bool decode(uint8_t *secret, bool *wrong, const uint8_t *x,
                   const uint8_t *y, size_t n, size_t t)
{
    poly a, b, v0 = {.len = 0}, v1 = {.len = 1, .c = {1}}, f;

    interpolate(&a, &b, x, y, n);
    while (2 * b.len > n + t + 1) { /* degree b = b.len - 1 >= (n + t) / 2 */
        poly swap;
        reduce(&a, &b, &v0, &v1, NULL);
        swap = a, a = b, b = swap;
        swap = v0, v0 = v1, v1 = swap;
    }
    reduce(&b, &v1, NULL, NULL, &f);
    if (b.len != 0 || f.len > t)
        return false;
    for (size_t i = 0; i < n; i++)
        wrong[i] = wrong[i] || eval(&f, x[i]) != y[i];
    *secret = f.len == 0 ? 0 : f.c[0];
    return true;
}

dafl_err dafl_shamir_correct(dafl_key *secret, bool *wrong,
                             const dafl_share *shares, const uint8_t *places,
                             size_t n, size_t t)
{
    bool bad[DAFL_HOLDERS_MAX] = {false}, seen[256] = {[0] = true};
    uint8_t y[DAFL_HOLDERS_MAX];
    dafl_key key = {{0}};
    size_t n_bad = 0;
    dafl_err err = DAFL_ERR_ARG;

    if (t < 1 || t > n || n > DAFL_HOLDERS_MAX)
        return err;
    for (size_t i = 0; i < n; i++) {
        if (seen[places[i]])
            return err;
        seen[places[i]] = true;
    }
    err = DAFL_ERR_CRYPTO;
    for (size_t k = 0; k < sizeof key.b; k++) {
        for (size_t i = 0; i < n; i++)
            y[i] = shares[i].b[k];
        if (!decode(&key.b[k], bad, places, y, n, t))
            goto out;
    }
    /* A holder is wrong once, however many of its bytes are. */
    for (size_t i = 0; i < n; i++)
        n_bad += bad[i];
    if (2 * n_bad > n - t)
        goto out;
    memcpy(wrong, bad, n * sizeof *wrong);
    *secret = key;
    err = DAFL_OK;
out:
    dafl_key_wipe(&key);
    sodium_memzero(y, sizeof y);
    return err;
}
