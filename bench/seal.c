/* SPDX-License-Identifier: Apache-2.0 */
/* What homomorphic encryption costs: against the bare calls of sealc, and in a
 * slot against masks alone. The least time of several repetitions, taken in
 * turn; of a single thread the time on the processor, which others on the
 * machine disturb less. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sodium.h>

#include "agents/cli.h"
#include "crypto/he.h"
#include "crypto/he_inside.h"
#include "crypto/mask.h"
#include "lib/ring.h"
#include "lib/secret.h"

/* sealc, bare. */
long EncParams_Create1(uint8_t scheme, void **out);
long EncParams_SetPolyModulusDegree(void *parms, uint64_t n);
long EncParams_SetCoeffModulus(void *parms, uint64_t n, void **moduli);
long EncParams_SetPlainModulus2(void *parms, uint64_t t);
long CoeffModulus_BFVDefault(uint64_t n, int bits, uint64_t *count,
                             void **moduli);
long SEALContext_Create(void *parms, bool chain, int bits, void **out);
long KeyGenerator_Create1(void *context, void **out);
long KeyGenerator_CreatePublicKey(void *generator, bool save, void **out);
long KeyGenerator_SecretKey(void *generator, void **out);
long Encryptor_Create(void *context, void *pk, void *sk, void **out);
long Encryptor_Encrypt(void *encryptor, void *pt, void *ct, void *memory);
long Decryptor_Create(void *context, void *sk, void **out);
long Decryptor_Decrypt(void *decryptor, void *ct, void *pt);
long Evaluator_Create(void *context, void **out);
long Evaluator_Add(void *evaluator, void *a, void *b, void *out);
long Ciphertext_Create1(void *memory, void **out);
long Ciphertext_Set(void *ct, void *from);
long Ciphertext_GetDataAt1(void *ct, uint64_t index, uint64_t *out);
long Ciphertext_SetDataAt(void *ct, uint64_t index, uint64_t value);
long Plaintext_Create2(uint64_t n, void *memory, void **out);
long Plaintext_Set4(void *pt, uint64_t n, uint64_t *coefficients);
long Plaintext_CoeffAt(void *pt, uint64_t index, uint64_t *out);
long ValCheck_Ciphertext_IsValidFor(void *ct, void *context, bool *out);

#define W 56
#define CTS 16 /* ciphertexts in one measurement against sealc */
#define RESIDUES ((size_t)4 * DAFL_HE_N)
#define MOST_CLIENTS 64

static void must(bool ok)
{
    if (!ok) {
        (void)fprintf(stderr, "bench/seal: a call failed\n");
        exit(EXIT_FAILED);
    }
}

static void least(double *best, double seconds)
{
    if (*best == 0 || seconds < *best)
        *best = seconds;
}

static double busy(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t *numbers(size_t n)
{
    uint64_t *x = dafl_bulk_alloc(n, sizeof *x);

    must(x != NULL);
    randombytes_buf(x, n * sizeof *x);
    return x;
}

/* ---- against the bare calls, for one ciphertext ---- */

typedef struct {
    /* sealc: its operation, and moving residues into or out of its objects */
    double encrypt, add, decrypt, get, set, coefficients;
    double pack, unpack; /* ours alone */
    /* ours, whole, with one thread and with two */
    double our_encrypt[2], our_add[2], our_decrypt[2];
} figures;

typedef struct {
    void *context, *encryptor, *decryptor, *evaluator, *pt, *ct;
    void *cts[CTS], *sums[CTS];
} bare;

static bare bare_new(void)
{
    bare b = {0};
    void *parms = NULL, *moduli[3], *generator = NULL, *pk = NULL, *sk = NULL;
    uint64_t n = 0;

    must(EncParams_Create1(1, &parms) == 0 &&
         EncParams_SetPolyModulusDegree(parms, DAFL_HE_N) == 0 &&
         CoeffModulus_BFVDefault(DAFL_HE_N, 128, &n, moduli) == 0 &&
         EncParams_SetCoeffModulus(parms, n, moduli) == 0 &&
         EncParams_SetPlainModulus2(parms, UINT64_C(1) << W) == 0 &&
         SEALContext_Create(parms, false, 128, &b.context) == 0 &&
         KeyGenerator_Create1(b.context, &generator) == 0 &&
         KeyGenerator_CreatePublicKey(generator, false, &pk) == 0 &&
         KeyGenerator_SecretKey(generator, &sk) == 0 &&
         Encryptor_Create(b.context, pk, NULL, &b.encryptor) == 0 &&
         Decryptor_Create(b.context, sk, &b.decryptor) == 0 &&
         Evaluator_Create(b.context, &b.evaluator) == 0 &&
         Plaintext_Create2(DAFL_HE_N, NULL, &b.pt) == 0 &&
         Ciphertext_Create1(NULL, &b.ct) == 0);
    for (size_t i = 0; i < CTS; i++)
        must(Ciphertext_Create1(NULL, &b.cts[i]) == 0 &&
             Ciphertext_Create1(NULL, &b.sums[i]) == 0);
    must(Plaintext_Set4(b.pt, 1, &n) == 0 &&
         Encryptor_Encrypt(b.encryptor, b.pt, b.ct, NULL) == 0);
    return b;
}

/* Over several ciphertexts, so that they come from as far away as ours. */
static void measure_bare(figures *f, const bare *b, uint64_t *y,
                         uint64_t *residues)
{
    double start;
    bool valid = false;

    for (size_t i = 0; i < DAFL_HE_N; i++)
        y[i] &= UINT64_MAX >> (64 - W);
    must(Plaintext_Set4(b->pt, DAFL_HE_N, y) == 0);
    start = busy();
    for (size_t i = 0; i < CTS; i++)
        must(Encryptor_Encrypt(b->encryptor, b->pt, b->cts[i], NULL) == 0);
    least(&f->encrypt, (busy() - start) / CTS);
    start = busy();
    for (size_t i = 0; i < CTS; i++)
        for (size_t k = 0; k < RESIDUES; k++)
            must(Ciphertext_GetDataAt1(b->cts[i], k,
                                       &residues[i * RESIDUES + k]) == 0);
    least(&f->get, (busy() - start) / CTS);
    for (size_t i = 0; i < CTS; i++)
        must(Ciphertext_Set(b->sums[i], b->cts[i]) == 0);
    start = busy();
    for (size_t i = 0; i < CTS; i++) {
        for (size_t k = 0; k < RESIDUES; k++)
            must(Ciphertext_SetDataAt(b->ct, k, residues[i * RESIDUES + k]) ==
                 0);
        must(ValCheck_Ciphertext_IsValidFor(b->ct, b->context, &valid) == 0 &&
             valid);
    }
    least(&f->set, (busy() - start) / CTS);
    start = busy();
    for (size_t i = 0; i < CTS; i++)
        must(Evaluator_Add(b->evaluator, b->sums[i], b->ct, b->sums[i]) == 0);
    least(&f->add, (busy() - start) / CTS);
    start = busy();
    for (size_t i = 0; i < CTS; i++)
        must(Decryptor_Decrypt(b->decryptor, b->cts[i], b->pt) == 0);
    least(&f->decrypt, (busy() - start) / CTS);
    start = busy();
    for (size_t i = 0; i < CTS; i++)
        for (size_t k = 0; k < DAFL_HE_N; k++)
            must(Plaintext_CoeffAt(b->pt, k, &y[i * DAFL_HE_N + k]) == 0);
    least(&f->coefficients, (busy() - start) / CTS);
}

static void measure_rows(figures *f, uint64_t *residues, uint8_t *row)
{
    double start = busy();

    for (size_t i = 0; i < CTS; i++)
        for (unsigned k = 0; k < 4; k++)
            dafl_he_pack(row + k * dafl_he_row_bytes(0),
                         residues + i * RESIDUES + (size_t)k * DAFL_HE_N,
                         k % 2);
    least(&f->pack, (busy() - start) / CTS);
    start = busy();
    for (size_t i = 0; i < CTS; i++)
        for (unsigned k = 0; k < 4; k++)
            must(dafl_he_unpack(residues + i * RESIDUES + (size_t)k * DAFL_HE_N,
                                row + k * dafl_he_row_bytes(0), k % 2));
    least(&f->unpack, (busy() - start) / CTS);
}

/* A party that is all three. */
typedef struct {
    dafl_pool *pool;
    dafl_he *he;
    dafl_he_secret *sk;
    dafl_he_public *pk;
} party;

static party party_new(unsigned threads)
{
    party p = {0};
    dafl_writer key = {0};

    must(dafl_pool_new(&p.pool, threads) == DAFL_OK &&
         dafl_he_new(&p.he, W, p.pool, NULL) == DAFL_OK &&
         dafl_he_keygen(p.he, &p.sk, &key) == DAFL_OK &&
         dafl_he_public_read(p.he, &p.pk, dafl_writer_bytes(&key)) == DAFL_OK);
    dafl_writer_drop(&key);
    return p;
}

static void party_free(party *p)
{
    dafl_he_secret_free(&p->sk);
    dafl_he_public_free(&p->pk);
    dafl_he_free(&p->he);
    dafl_pool_free(&p->pool);
}

static void measure_ours(figures *f, const party *p, int which, uint64_t *y)
{
    size_t n = (size_t)CTS * DAFL_HE_N;
    dafl_writer cts = {0};
    dafl_he_sum *s = NULL;
    double start, (*now)(void) = which == 0 ? busy : cli_now;

    must(dafl_put_room(&cts, dafl_he_bytes(n)) != NULL);
    dafl_writer_clear(&cts);
    start = now();
    must(dafl_he_encrypt(p->he, p->pk, y, n, &cts) == DAFL_OK);
    least(&f->our_encrypt[which], (now() - start) / CTS);
    must(dafl_he_sum_new(&s, p->he, n) == DAFL_OK &&
         dafl_he_sum_add(s, dafl_writer_bytes(&cts)) == DAFL_OK);
    start = now();
    must(dafl_he_sum_add(s, dafl_writer_bytes(&cts)) == DAFL_OK);
    least(&f->our_add[which], (now() - start) / CTS);
    start = now();
    must(dafl_he_decrypt(p->he, p->sk, dafl_writer_bytes(&cts), y, n) ==
         DAFL_OK);
    least(&f->our_decrypt[which], (now() - start) / CTS);
    dafl_he_sum_free(&s);
    dafl_writer_drop(&cts);
}

/* ---- a slot, against masks alone; one thread ---- */

typedef struct {
    double mask, plain_pack, plain_add; /* for one client */
    double encrypt, add;                /* for one client */
    double blind, put, open, unmask;    /* once */
} slot;

static void measure_slot(slot *t, const party *p, size_t n, size_t clients)
{
    size_t plain = n * W / 8;
    uint64_t *y = numbers(n), *sum = numbers(n), *r = numbers(n);
    uint8_t *bytes = dafl_bulk_alloc(plain, 1);
    dafl_mask masks[MOST_CLIENTS];
    dafl_writer up = {0}, down = {0};
    dafl_he_sum *s = NULL;
    double start;

    must(bytes != NULL && dafl_put_room(&up, dafl_he_bytes(n)) != NULL &&
         dafl_put_room(&down, dafl_he_bytes(n)) != NULL &&
         dafl_he_sum_new(&s, p->he, n) == DAFL_OK);
    memset(bytes, 0, plain);
    for (size_t i = 0; i < clients; i++)
        dafl_key_random(&masks[i].key), masks[i].negate = i % 2 != 0;
    for (size_t i = 0; i < clients; i++) {
        start = busy(); /* one with every other client, and its own */
        dafl_mask_apply(y, n, W, masks, clients, p->pool);
        least(&t->mask, busy() - start);
        start = busy();
        dafl_ring_pack(bytes, y, n, W);
        least(&t->plain_pack, busy() - start);
        start = busy();
        dafl_ring_add_words(sum, bytes, n, W, false);
        least(&t->plain_add, busy() - start);
        dafl_writer_clear(&up);
        start = busy();
        must(dafl_he_encrypt(p->he, p->pk, y, n, &up) == DAFL_OK);
        least(&t->encrypt, busy() - start);
        start = busy();
        must(dafl_he_sum_add(s, dafl_writer_bytes(&up)) == DAFL_OK);
        if (i > 0) /* the first is not added */
            least(&t->add, busy() - start);
    }
    start = busy();
    must(dafl_he_sum_blind(s, r) == DAFL_OK);
    least(&t->blind, busy() - start);
    dafl_writer_clear(&down);
    start = busy();
    must(dafl_he_sum_put(s, &down) == DAFL_OK);
    least(&t->put, busy() - start);
    start = busy();
    must(dafl_he_decrypt(p->he, p->sk, dafl_writer_bytes(&down), y, n) ==
         DAFL_OK);
    least(&t->open, busy() - start);
    start = busy();
    dafl_mask_apply(sum, n, W, masks, clients, p->pool);
    least(&t->unmask, busy() - start);
    dafl_he_sum_free(&s);
    dafl_writer_drop(&up);
    dafl_writer_drop(&down);
    dafl_bulk_free(bytes);
    dafl_bulk_free(y);
    dafl_bulk_free(sum);
    dafl_bulk_free(r);
}

/* ---- what is printed ---- */

typedef struct {
    double encrypt, add, decrypt, packing;
} ratios;

static ratios compare(const figures *f)
{
    return (ratios){
        f->our_encrypt[0] / (f->encrypt + f->get),
        f->our_add[0] / (f->set + f->add),
        f->our_decrypt[0] / (f->set + f->decrypt + f->coefficients),
        (f->pack + f->unpack) / f->encrypt,
    };
}

static void print_figures(const figures *f)
{
    ratios r = compare(f);

    printf("| %d numbers | sealc: operation | sealc: moving residues | ours, "
           "1 thread | 2 threads | over sealc |\n|---|---|---|---|---|---|\n",
           DAFL_HE_N);
    printf("| encrypt | %.0f us | %.0f us | %.0f us | %.0f us | %.2f x |\n",
           1e6 * f->encrypt, 1e6 * f->get, 1e6 * f->our_encrypt[0],
           1e6 * f->our_encrypt[1], r.encrypt);
    printf("| add | %.0f us | %.0f us | %.0f us | %.0f us | %.2f x |\n",
           1e6 * f->add, 1e6 * f->set, 1e6 * f->our_add[0], 1e6 * f->our_add[1],
           r.add);
    printf("| decrypt | %.0f us | %.0f us | %.0f us | %.0f us | %.2f x |\n\n",
           1e6 * f->decrypt, 1e6 * (f->set + f->coefficients),
           1e6 * f->our_decrypt[0], 1e6 * f->our_decrypt[1], r.decrypt);
    printf("Packing %.0f us, unpacking %.0f us: %.1f %% of an encryption. "
           "%.2f bytes a number.\n\n",
           1e6 * f->pack, 1e6 * f->unpack, 100 * r.packing,
           (double)dafl_he_bytes(DAFL_HE_N) / DAFL_HE_N);
}

static void print_slot(const slot *t, size_t n, size_t clients,
                       const figures *f)
{
    double k = (double)clients, moved = f->get + f->pack;
    double up = (f->set + f->unpack * 2) / f->our_add[0];

    printf("| %zu numbers, %zu clients, 1 thread | masks | SEAL over masks "
           "|\n|---|---|---|\n",
           n, clients);
    printf("| a client: mask | %.1f ms | %.1f ms |\n", 1e3 * t->mask,
           1e3 * t->mask);
    printf(
        "| a client: pack, or encrypt (of it moving and packing) | %.1f ms | "
        "%.1f ms (%.0f %%) |\n",
        1e3 * t->plain_pack, 1e3 * t->encrypt, 100 * moved / f->our_encrypt[0]);
    printf("| server: add %zu uploads (of it unpacking and moving) | %.1f ms | "
           "%.1f ms (%.0f %%) |\n",
           clients, 1e3 * k * t->plain_add, 1e3 * k * t->add, 100 * up);
    printf("| server: unmask | %.1f ms | %.1f ms |\n", 1e3 * t->unmask,
           1e3 * t->unmask);
    printf("| server: blind; move and pack | | %.1f ms; %.1f ms |\n",
           1e3 * t->blind, 1e3 * t->put);
    printf("| key holder: open | | %.1f ms |\n", 1e3 * t->open);
    printf("| upload | %.1f MB | %.1f MB |\n", (double)n * W / 8e6,
           (double)dafl_he_bytes(n) / 1e6);
}

static bool print_json(const figures *f, const slot *t, size_t n,
                       size_t clients)
{
    ratios r = compare(f);
    json_t *one = json_pack(
        "{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}",
        "sealc_encrypt_us", 1e6 * f->encrypt, "sealc_add_us", 1e6 * f->add,
        "sealc_decrypt_us", 1e6 * f->decrypt, "sealc_get_us", 1e6 * f->get,
        "sealc_set_us", 1e6 * f->set, "encrypt_us", 1e6 * f->our_encrypt[0],
        "add_us", 1e6 * f->our_add[0], "decrypt_us", 1e6 * f->our_decrypt[0],
        "encrypt_us_2_threads", 1e6 * f->our_encrypt[1], "add_us_2_threads",
        1e6 * f->our_add[1], "decrypt_us_2_threads", 1e6 * f->our_decrypt[1],
        "bytes_per_number", (double)dafl_he_bytes(DAFL_HE_N) / DAFL_HE_N);
    json_t *over =
        json_pack("{s:f, s:f, s:f, s:f}", "encrypt", r.encrypt, "add", r.add,
                  "decrypt", r.decrypt, "packing_of_encryption", r.packing);
    json_t *s =
        json_pack("{s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}",
                  "numbers", (json_int_t)n, "clients", (json_int_t)clients,
                  "mask_ms", 1e3 * t->mask, "encrypt_ms", 1e3 * t->encrypt,
                  "plain_add_ms", 1e3 * t->plain_add, "add_ms", 1e3 * t->add,
                  "blind_ms", 1e3 * t->blind, "put_ms", 1e3 * t->put, "open_ms",
                  1e3 * t->open, "upload_mb", (double)dafl_he_bytes(n) / 1e6);

    return cli_print_json(json_pack("{s:o, s:o, s:o}", "ciphertext", one,
                                    "over_sealc", over, "slot", s));
}

int main(int argc, char **argv)
{
    size_t n = 627200, clients = 10, repeat = 7, n_words = 0;
    bool json = false;
    const opt opts[] = {
        {OPT_HEADING, NULL, NULL, NULL, "Options"},
        {OPT_SIZE, "numbers", "N", &n, "of the slot (default 627200)"},
        {OPT_SIZE, "clients", "N", &clients, "of the slot (default 10)"},
        {OPT_SIZE, "repeat", "N", &repeat, "repetitions (default 7)"},
        {OPT_FLAG, "json", NULL, &json, "one JSON object on stdout"},
    };
    dafl_why why = {{0}};
    figures f = {0};
    slot t = {0};
    party one, two;
    bare b;
    uint64_t *y, *residues;
    uint8_t *row;
    int help = 0;

    if (opt_parse(opts, sizeof opts / sizeof opts[0], argc, argv, NULL, 0,
                  &n_words, &help, &why) != DAFL_OK ||
        clients < 2 || clients > MOST_CLIENTS || n == 0 || repeat == 0) {
        (void)fprintf(stderr, "bench/seal: %s\n", why.text);
        return EXIT_INPUT;
    }
    if (help) {
        opt_print_help(opts, sizeof opts / sizeof opts[0]);
        return 0;
    }
    one = party_new(1);
    two = party_new(2);
    b = bare_new();
    y = numbers((size_t)CTS * DAFL_HE_N);
    residues = numbers(CTS * RESIDUES);
    row = dafl_bulk_alloc(dafl_he_bytes(1), 1);
    must(row != NULL);
    for (size_t i = 0; i < repeat; i++) {
        measure_bare(&f, &b, y, residues);
        measure_rows(&f, residues, row);
        measure_ours(&f, &one, 0, y);
        measure_ours(&f, &two, 1, y);
    }
    for (size_t i = 0; i < (repeat + 2) / 3; i++)
        measure_slot(&t, &one, n, clients);
    dafl_bulk_free(y);
    dafl_bulk_free(residues);
    dafl_bulk_free(row);
    party_free(&one);
    party_free(&two);
    if (json)
        return print_json(&f, &t, n, clients) ? 0 : EXIT_FAILED;
    print_figures(&f);
    print_slot(&t, n, clients, &f);
    return 0;
}
