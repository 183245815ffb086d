/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lab/unseal.h"

#include "tests/check.h"

#include "crypto/he_inside.h"
#include "lib/ring.h"
#include "protocol/context.h"
#include "protocol/holder_state.h"
#include "tests/lab/inside.h"
#include "tests/lab/rogue.h"

/* ---- arithmetic ---- */

__extension__ typedef unsigned __int128 wide; /* q has 72 bits */

static wide modulus(void)
{
    return (wide)dafl_he_primes[0] * dafl_he_primes[1];
}

void unseal_craft(dafl_writer *cts, size_t len, unsigned w)
{
    static const uint64_t zeros[DAFL_HE_N];
    uint64_t constant[DAFL_HE_N] = {0};
    size_t n = (len + DAFL_HE_N - 1) / DAFL_HE_N;

    for (size_t i = 0; i < n; i++)
        for (unsigned p = 0; p < 2 * DAFL_HE_PRIMES; p++) {
            unsigned prime = p % DAFL_HE_PRIMES;
            uint8_t *row = dafl_put_room(cts, dafl_he_row_bytes(prime));
            assert_non_null(row);
            constant[0] = (uint64_t)((modulus() >> w) % dafl_he_primes[prime]);
            dafl_he_pack(row, p < DAFL_HE_PRIMES ? zeros : constant, prime);
        }
}

bool unseal_key(int8_t key[DAFL_HE_N], const uint64_t *words, unsigned w)
{
    uint64_t minus = UINT64_MAX >> (64 - w);

    for (size_t i = 0; i < DAFL_HE_N; i++) {
        if (words[i] > 1 && words[i] != minus)
            return false;
        key[i] = words[i] == minus ? -1 : (int8_t)words[i];
    }
    return true;
}

/* v = c0 + c1 s modulo one prime, X^N = -1. */
static void phase(const int8_t *key, const uint8_t *ct, unsigned p, uint64_t *v)
{
    size_t poly = dafl_he_poly_bytes(DAFL_HE_PRIMES), at = 0;
    uint64_t q = dafl_he_primes[p], c1[DAFL_HE_N];

    for (unsigned i = 0; i < p; i++)
        at += dafl_he_row_bytes(i);
    assert_true(dafl_he_unpack(v, ct + at, p));
    assert_true(dafl_he_unpack(c1, ct + poly + at, p));
    /* Residues have 36 bits: 4096 of them fit. */
    for (size_t i = 0; i < DAFL_HE_N; i++)
        for (size_t j = 0; key[i] != 0 && j < DAFL_HE_N; j++) {
            bool minus = (key[i] < 0) != (i + j >= DAFL_HE_N);
            v[(i + j) % DAFL_HE_N] += minus ? q - c1[j] : c1[j];
        }
    for (size_t i = 0; i < DAFL_HE_N; i++)
        v[i] %= q;
}

static uint64_t power(uint64_t x, uint64_t n, uint64_t q)
{
    uint64_t y = 1;

    for (; n > 0; n >>= 1, x = (uint64_t)((wide)x * x % q))
        if (n & 1)
            y = (uint64_t)((wide)y * x % q);
    return y;
}

void unseal(const int8_t key[DAFL_HE_N], dafl_bytes cts, uint64_t *out,
            size_t len, unsigned w)
{
    uint64_t p0 = dafl_he_primes[0], p1 = dafl_he_primes[1];
    uint64_t inverse = power(p0 % p1, p1 - 2, p1);
    size_t each = 2 * dafl_he_poly_bytes(DAFL_HE_PRIMES);
    uint64_t r0[DAFL_HE_N], r1[DAFL_HE_N];

    assert_int_equal(cts.len, dafl_he_bytes(len));
    for (size_t i = 0; i < len; i++) {
        size_t j = i % DAFL_HE_N;
        wide v, scaled;
        if (j == 0) {
            phase(key, cts.ptr + i / DAFL_HE_N * each, 0, r0);
            phase(key, cts.ptr + i / DAFL_HE_N * each, 1, r1);
        }
        v = (wide)((r1[j] + p1 - r0[j] % p1) % p1) * inverse % p1 * p0 + r0[j];
        scaled = v << w; /* v < 2^72, w <= 56 */
        out[i] = (uint64_t)(scaled / modulus());
        out[i] += scaled % modulus() > modulus() / 2;
        out[i] &= UINT64_MAX >> (64 - w);
    }
}

/* ---- openings ---- */

dafl_writer unseal_upload(const lab *l, uint16_t client, uint32_t slot)
{
    dafl_writer bytes = {0};

    assert_true(rogue_upload(l, client, slot, &bytes));
    return bytes;
}

/* What all uploads of the slot are, while there is a key. */
static void look_inside(unseal_tap *t, lab *l, uint32_t slot)
{
    dafl_holder *h = lab_holder(l);

    for (uint16_t u = 0; u < lab_server_index(l); u++) {
        dafl_writer upload = {0};
        if (h == NULL || h->key == NULL || t->plain[u] != NULL ||
            !rogue_upload(l, u, slot, &upload)) {
            dafl_writer_drop(&upload);
            continue;
        }
        t->plain[u] = lab_alloc(t->len, sizeof *t->plain[u]);
        assert_ok(dafl_he_decrypt(h->encryption, h->key,
                                  dafl_writer_bytes(&upload), t->plain[u],
                                  t->len));
        dafl_writer_drop(&upload);
    }
}

/* The context that everybody has in the slot, for a cohort. */
static dafl_digest context_of(const lab *l, uint32_t slot,
                              const dafl_members *a)
{
    const lab_event *e;
    size_t n = lab_events(l, &e);
    dafl_digest ctx2 = {{0}};

    for (size_t i = 0; i < n; i++)
        if (e[i].event.kind == DAFL_EVENT_READY && e[i].event.slot == slot)
            dafl_context_cast(&ctx2, &e[i].event.digest, a);
    return ctx2;
}

static void change_open(unseal_tap *t, lab *l, lab_letter *m, unsigned i)
{
    dafl_writer body = {0};
    unseal_query q = {.cts = {0}};
    dafl_digest ctx2;

    assert_ok(dafl_get_open(&q.open, m->envelope.body));
    q.surv = q.open.surv;
    q.conf = q.open.conf;
    if (t->change != NULL)
        t->change(t, l, i, &q);
    dafl_writer_drop(&t->cts);
    t->cts = q.cts;
    if (q.cts.len > 0) {
        ctx2 = context_of(l, t->slot, &q.surv.a);
        dafl_context_sealed(&q.open.dig, &ctx2, dafl_writer_bytes(&q.cts));
    }
    q.open.surv = q.surv;
    q.open.conf = q.conf;
    dafl_put_open(&body, &q.open);
    lab_letter_reseal(l, m, dafl_writer_bytes(&body));
    dafl_writer_drop(&body);
}

static void change_chunk(const unseal_tap *t, lab *l, lab_letter *m)
{
    dafl_upload chunk;
    dafl_writer body = {0};

    if (t->cts.len == 0)
        return;
    assert_ok(dafl_get_upload(&chunk, m->envelope.body));
    assert_true(chunk.offset + chunk.chunk.len <= t->cts.len);
    chunk.chunk.ptr = t->cts.ptr + chunk.offset;
    dafl_put_upload(&body, &chunk);
    lab_letter_reseal(l, m, dafl_writer_bytes(&body));
    dafl_writer_drop(&body);
}

static void note_answer(unseal_tap *t, const lab *l, const lab_letter *m)
{
    unsigned w = lab_config(l)->contract.w;
    uint64_t **answer = &t->answer[t->asked - 1];
    dafl_err err = DAFL_OK;

    assert_int_equal(dafl_node_take_chunk(&t->words, m->envelope.body,
                                          t->len * (w / 8), &err),
                     DAFL_FAULT_NONE);
    if (t->words.len < t->len * (w / 8))
        return;
    free(*answer);
    *answer = lab_alloc(t->len, sizeof **answer);
    dafl_ring_add_words(*answer, t->words.ptr, t->len, w, false);
    for (size_t i = 0; i < t->len; i++)
        (*answer)[i] &= UINT64_MAX >> (64 - w);
    dafl_writer_clear(&t->words);
}

bool unseal_meddle(lab *l, lab_letter *m, void *ctx)
{
    uint16_t holder = lab_holder_index(l);
    uint8_t type = m->envelope.type;
    unseal_tap *t = ctx;

    if (m->envelope.slot != t->slot)
        return true;
    if (m->to == holder && type == DAFL_MSG_OPEN) {
        assert_true(t->asked < UNSEAL_MOST);
        t->len = lab_answer_len(l, lab_slot_question(l, t->slot));
        look_inside(t, l, t->slot);
        change_open(t, l, m, t->asked++);
    } else if (m->to == holder && type == DAFL_MSG_UPLOAD) {
        change_chunk(t, l, m);
    } else if (m->from == holder &&
               (type == DAFL_MSG_UPLOAD || type == DAFL_MSG_OPENED)) {
        if (type == DAFL_MSG_UPLOAD)
            note_answer(t, l, m);
        return t->answers == NULL || t->answers(t, t->asked - 1);
    }
    return true;
}

lab_scenario unseal_scenario(uint16_t k, uint16_t cell_size, unseal_tap *t)
{
    lab_scenario s = lab_scenario_for(k, cell_size, random_u64());

    lab_scenario_encrypt(&s);
    s.tail = (uint32_t)DAFL_HE_N - k;
    s.intercept = unseal_meddle;
    s.ctx = t;
    if (t->slot == 0)
        t->slot = 1;
    return s;
}

void unseal_drop(unseal_tap *t)
{
    for (size_t i = 0; i < UNSEAL_MOST; i++)
        free(t->answer[i]);
    for (size_t u = 0; u < DAFL_CLIENTS_MAX; u++)
        free(t->plain[u]);
    dafl_writer_drop(&t->cts);
    dafl_writer_drop(&t->words);
}
