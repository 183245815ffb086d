/* SPDX-License-Identifier: Apache-2.0 */
/* Masking against libsodium's bare ChaCha20 of the same run, in GB of keystream
 * a second: the least time of several repetitions, taken in turn. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "agents/cli.h"
#include "crypto/mask.h"
#include "lib/secret.h"

#define REPEAT 7
#define MASKS 20
#define CHUNK 16384 /* bytes, in the first-level cache */

typedef struct {
    unsigned w;
    double bare, one, all; /* seconds: one core bare, one core, all cores */
} figures;

static void least(double *best, double start)
{
    double seconds = cli_now() - start;

    if (*best == 0 || seconds < *best)
        *best = seconds;
}

static void bare(const dafl_mask *masks, size_t len)
{
    static const uint8_t nonce[crypto_stream_chacha20_NONCEBYTES];
    static uint8_t chunk[CHUNK];

    for (size_t i = 0; i < MASKS; i++)
        for (size_t at = 0; at < len; at += CHUNK)
            (void)crypto_stream_chacha20(chunk,
                                         len - at < CHUNK ? len - at : CHUNK,
                                         nonce, masks[i].key.b);
}

static figures measure(uint64_t *acc, size_t n, unsigned w,
                       const dafl_mask *masks, dafl_pool *pool)
{
    figures f = {.w = w};

    for (int i = 0; i < REPEAT; i++) {
        double start = cli_now();
        bare(masks, n * w / 8);
        least(&f.bare, start);
        start = cli_now();
        dafl_mask_apply(acc, n, w, masks, MASKS, NULL);
        least(&f.one, start);
        start = cli_now();
        dafl_mask_apply(acc, n, w, masks, MASKS, pool);
        least(&f.all, start);
    }
    return f;
}

int main(int argc, char **argv)
{
    size_t n = 627200, threads = 0, n_words = 0;
    bool json = false;
    const opt opts[] = {
        {OPT_HEADING, NULL, NULL, NULL, "Options"},
        {OPT_SIZE, "numbers", "N", &n, "length of the vector (default 627200)"},
        {OPT_SIZE, "threads", "N", &threads, "default: all cores"},
        {OPT_FLAG, "json", NULL, &json, "one JSON object on stdout"},
    };
    dafl_why why = {{0}};
    dafl_mask masks[MASKS];
    dafl_pool *pool = NULL;
    json_t *list = json_array();
    uint64_t *acc;
    int help = 0;

    if (opt_parse(opts, sizeof opts / sizeof opts[0], argc, argv, NULL, 0,
                  &n_words, &help, &why) != DAFL_OK ||
        dafl_pool_new(&pool, (unsigned)threads) != DAFL_OK) {
        (void)fprintf(stderr, "bench/mask: %s\n", why.text);
        return EXIT_INPUT;
    }
    if (help) {
        opt_print_help(opts, sizeof opts / sizeof opts[0]);
        return 0;
    }
    acc = dafl_bulk_alloc(n, sizeof *acc);
    if (acc == NULL || list == NULL)
        return EXIT_FAILED;
    memset(acc, 0, n * sizeof *acc);
    for (size_t i = 0; i < MASKS; i++) {
        dafl_key_random(&masks[i].key);
        masks[i].negate = i % 2 != 0;
    }
    for (unsigned w = 32; w <= 64; w += 8) {
        figures f = measure(acc, n, w, masks, pool);
        double gb = (double)n * w / 8 * MASKS * 1e-9;
        (void)json_array_append_new(
            list,
            json_pack("{s:I, s:f, s:f, s:f, s:f, s:f}", "w", (json_int_t)w,
                      "bare_gbs", gb / f.bare, "mask_gbs", gb / f.one,
                      "of_bare", f.bare / f.one, "threads_gbs", gb / f.all,
                      "threads_speedup", f.one / f.all));
        if (!json)
            printf("w = %u: ChaCha20 alone %.2f GB/s, masking %.2f GB/s (%.0f "
                   "%% of it), %u threads %.2f x\n",
                   w, gb / f.bare, gb / f.one, 100 * f.bare / f.one,
                   dafl_pool_size(pool), f.one / f.all);
    }
    dafl_bulk_free(acc);
    dafl_pool_free(&pool);
    if (json)
        return cli_print_json(json_pack("{s:I, s:o}", "numbers", (json_int_t)n,
                                        "widths", list))
                   ? 0
                   : EXIT_FAILED;
    json_decref(list);
    return 0;
}
