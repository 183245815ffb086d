/* SPDX-License-Identifier: Apache-2.0 */
/* Does the time of a function tell its secret? After Reparaz, Balasch and
 * Verbauwhede, "Dude, is my code constant time?" (2017): the cycles of many
 * calls with one fixed secret and with random ones, mixed at random, compared
 * by Welch's t-test. The slowest calls are interruptions and hide a
 * difference, so the test is made for several shares of the fastest; the
 * largest |t| counts. Below 4.5 nothing was seen. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>
#include <x86intrin.h>

#include "agents/cli.h"
#include "crypto/gf256.h"
#include "crypto/hash.h"
#include "crypto/shamir.h"
#include "lib/secret.h"

#define LIMIT 4.5
#define BATCH 256
#define SECRET_MAX 512

/* ---- what is measured: a function of secret bytes ---- */

#define JOINED 5

static uint8_t reference[SECRET_MAX];
static volatile unsigned sink;

static void multiply(const uint8_t *secret)
{
    unsigned all = 0;

    for (size_t i = 0; i < 32; i++)
        all += dafl_gf_mul(secret[i], secret[32 + i]);
    sink = all;
}

static void invert(const uint8_t *secret)
{
    sink = dafl_gf_inverse(secret[0]);
}

static void join(const uint8_t *secret)
{
    static const uint8_t places[JOINED] = {1, 2, 77, 128, 255};
    dafl_share shares[JOINED];
    dafl_key key;

    memcpy(shares, secret, sizeof shares);
    sink = (unsigned)dafl_shamir_join(&key, shares, places, JOINED);
    sink = key.b[0];
}

static void equal(const uint8_t *secret)
{
    dafl_digest a, b;

    memcpy(a.b, secret, sizeof a.b);
    memcpy(b.b, reference, sizeof b.b);
    sink = (unsigned)dafl_digest_equal(&a, &b);
}

/* Stops at the first difference: must be seen to leak. */
static void compare(const uint8_t *secret)
{
    sink = (unsigned)memcmp(secret, reference, SECRET_MAX);
}

static const struct {
    const char *name;
    void (*call)(const uint8_t *secret);
    size_t len;
    bool leaks;
} functions[] = {
    {"dafl_gf_mul x 32", multiply, 64, false},
    {"dafl_gf_inverse", invert, 1, false},
    {"dafl_shamir_join", join, JOINED * sizeof(dafl_share), false},
    {"dafl_digest_equal", equal, 32, false},
    {"memcmp (control)", compare, SECRET_MAX, true},
};
#define N_FUNCTIONS (sizeof functions / sizeof functions[0])

/* ---- measuring ---- */

typedef struct {
    uint32_t cycles;
    bool random;
} sample;

static uint64_t ticks(void)
{
    uint64_t t;

    _mm_lfence();
    t = __rdtsc();
    _mm_lfence();
    return t;
}

/* n calls; the fixed secret is the reference, at the same addresses as the
 * random ones. */
static void measure(sample *samples, size_t n, size_t which)
{
    static uint8_t secrets[BATCH][SECRET_MAX];
    static uint8_t choice[BATCH];
    size_t len = functions[which].len;

    for (size_t done = 0; done < n; done += BATCH) {
        size_t k = n - done < BATCH ? n - done : BATCH;

        randombytes_buf(choice, sizeof choice);
        for (size_t i = 0; i < k; i++) {
            randombytes_buf(secrets[i], len);
            if (choice[i] % 2 == 0)
                memcpy(secrets[i], reference, len);
        }
        for (size_t i = 0; i < k; i++) {
            uint64_t start = ticks(), used;

            functions[which].call(secrets[i]);
            used = ticks() - start;
            samples[done + i].cycles =
                used < UINT32_MAX ? (uint32_t)used : UINT32_MAX;
            samples[done + i].random = choice[i] % 2 != 0;
        }
    }
}

static int by_cycles(const void *a, const void *b)
{
    uint32_t x = ((const sample *)a)->cycles, y = ((const sample *)b)->cycles;

    return (x > y) - (x < y);
}

/* Welch's t of the first n samples' two classes. */
static double welch(const sample *samples, size_t n)
{
    double count[2] = {0, 0}, mean[2] = {0, 0}, squares[2] = {0, 0}, error;

    for (size_t i = 0; i < n; i++) {
        int c = samples[i].random;
        double off = samples[i].cycles - mean[c];

        count[c]++;
        mean[c] += off / count[c];
        squares[c] += off * (samples[i].cycles - mean[c]);
    }
    if (count[0] < 2 || count[1] < 2)
        return 0;
    error = squares[0] / (count[0] - 1) / count[0] +
            squares[1] / (count[1] - 1) / count[1];
    return error > 0 ? (mean[0] - mean[1]) / sqrt(error) : 0;
}

/* The largest |t| over the fastest shares. Calls that took equally long are
 * kept or left out together: their order after sorting means nothing. */
static double largest_t(sample *samples, size_t n)
{
    static const double shares[] = {0.5, 0.75, 0.9, 0.99, 1};
    double most = 0;

    qsort(samples, n, sizeof *samples, by_cycles);
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        size_t keep = (size_t)(shares[i] * (double)n);

        while (keep > 0 && keep < n &&
               samples[keep].cycles == samples[keep - 1].cycles)
            keep++;
        most = fmax(most, fabs(welch(samples, keep)));
    }
    return most;
}

int main(int argc, char **argv)
{
    size_t n = 200000, n_words = 0;
    bool json = false;
    const opt opts[] = {
        {OPT_HEADING, NULL, NULL, NULL, "Options"},
        {OPT_SIZE, "runs", "N", &n, "calls of each function (default 200000)"},
        {OPT_FLAG, "json", NULL, &json, "one JSON object on stdout"},
    };
    dafl_why why = {{0}};
    json_t *list = json_array();
    sample *samples;
    int help = 0;

    if (opt_parse(opts, sizeof opts / sizeof opts[0], argc, argv, NULL, 0,
                  &n_words, &help, &why) != DAFL_OK) {
        (void)fprintf(stderr, "bench/dudect: %s\n", why.text);
        return EXIT_INPUT;
    }
    if (help) {
        opt_print_help(opts, sizeof opts / sizeof opts[0]);
        return 0;
    }
    samples = dafl_bulk_alloc(n, sizeof *samples);
    if (samples == NULL || list == NULL)
        return EXIT_FAILED;
    randombytes_buf(reference, sizeof reference);
    for (size_t i = 0; i < N_FUNCTIONS; i++) {
        double t;

        measure(samples, n, i); /* the first calls warm up */
        measure(samples, n, i);
        t = largest_t(samples, n);
        (void)json_array_append_new(
            list, json_pack("{s:s, s:f, s:b, s:b}", "function",
                            functions[i].name, "t", t, "leak_seen", t > LIMIT,
                            "control", functions[i].leaks));
        if (!json)
            printf("%-18s |t| = %8.2f  %s\n", functions[i].name, t,
                   t > LIMIT ? "depends on the secret" : "nothing seen");
    }
    dafl_bulk_free(samples);
    if (json)
        return cli_print_json(json_pack("{s:I, s:f, s:o}", "runs",
                                        (json_int_t)n, "limit", LIMIT,
                                        "functions", list))
                   ? 0
                   : EXIT_FAILED;
    json_decref(list);
    return 0;
}
