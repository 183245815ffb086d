/* SPDX-License-Identifier: Apache-2.0 */
/* Which masks are in a vector, and which of them the attacker can make. */
#include "tests/lab/leak_inside.h"

#include <stdlib.h>
#include <string.h>

#include "crypto/mask.h"
#include "lib/ring.h"
#include "lib/secret.h"

/* ---- what it can rebuild ---- */

static dafl_slot_keys keys_of(const leak *k, size_t client, uint32_t slot)
{
    const leak_setup *s = leak_setup_of(k, slot);
    size_t slots = lab_config(k->lab)->slots;

    return dafl_slot_keys_at(s->keys,
                             dafl_members_rank(&s->u1, client) * slots +
                                 (slot - 1) % slots);
}

static bool is_enrolled(const leak *k, size_t client, uint32_t slot,
                        leak_kind kind, const dafl_key *value)
{
    dafl_slot_keys keys = keys_of(k, client, slot);
    dafl_public pk;
    dafl_digest cb;

    dafl_key_public(&pk, value);
    dafl_key_commit(&cb, value);
    return kind == LEAK_B ? dafl_digest_equal(&cb, &keys.cb) != 0
                          : memcmp(&pk, &keys.pk, sizeof pk) == 0;
}

/* A client's secret, its own if it colludes, else from t shares or more. */
static bool rebuild(leak *k, const leak_slot *v, const leak_setup *s,
                    uint32_t slot, size_t client, leak_kind kind, dafl_key *out)
{
    const leak_held *of = &v->held[client * k->n];
    size_t own = dafl_members_rank(&s->u0, client), n = 0;
    dafl_share shares[DAFL_HOLDERS_MAX];
    uint8_t places[DAFL_HOLDERS_MAX];
    bool wrong[DAFL_HOLDERS_MAX];

    if (of[client].have[kind]) {
        memcpy(out->b, of[client].share[kind].b, sizeof out->b);
        k->unreal |= !is_enrolled(k, client, slot, kind, out);
        return true;
    }
    for (size_t h = 0; h < k->n; h++)
        if (of[h].have[kind] && dafl_members_has(&s->u0, h)) {
            shares[n] = of[h].share[kind];
            places[n++] = dafl_shamir_place(own, dafl_members_rank(&s->u0, h));
        }
    if (n < s->t)
        return false;
    if ((dafl_shamir_join(out, shares, places, s->t) != DAFL_OK ||
         !is_enrolled(k, client, slot, kind, out)) &&
        (dafl_shamir_correct(out, wrong, shares, places, n, s->t) != DAFL_OK ||
         !is_enrolled(k, client, slot, kind, out)))
        k->unreal = true;
    return true;
}

/* What the attacker knows of everybody's secrets of a slot; [client]. */
static const leak_secrets *secrets_of(leak *k, uint32_t slot)
{
    leak_slot *v = leak_slot_of(k, slot);
    const leak_setup *s = leak_setup_of(k, slot);

    if (v->secrets != NULL)
        return v->secrets;
    v->secrets = lab_alloc(k->n, sizeof *v->secrets);
    for (size_t u = 0; u < k->n && v->held != NULL; u++)
        for (leak_kind i = LEAK_B; i < LEAK_KINDS; i++)
            if (dafl_members_has(&s->u1, u))
                v->secrets[u].known[i] =
                    rebuild(k, v, s, slot, u, i, &v->secrets[u].value[i]);
    return v->secrets;
}

bool leak_knows_b(leak *k, uint16_t client, uint32_t slot)
{
    return secrets_of(k, slot)[client].known[LEAK_B];
}

bool leak_knows_sk(leak *k, uint16_t client, uint32_t slot)
{
    return secrets_of(k, slot)[client].known[LEAK_SK];
}

/* ---- what is in the bytes ---- */

static bool no_masks(const leak *k)
{
    return lab_config(k->lab)->mode == DAFL_MODE_NONE;
}

/* The first n words of a vector. */
static void unpack(const leak *k, const leak_upload *u, uint64_t *out, size_t n)
{
    unsigned w = lab_config(k->lab)->contract.w;

    if (n > u->len / (w / 8))
        lab_die("leak: the upload has only %zu bytes", u->len);
    memset(out, 0, n * sizeof *out);
    dafl_ring_add_words(out, u->bytes, n, w, false);
}

/* Whether rest[0 .. n) are the masks that the client had for v, made again with
 * its own keys. */
static bool are_masks_of(const leak *k, const leak_vector *v,
                         const uint64_t *rest, size_t n)
{
    const leak_upload *u = &v->up;
    unsigned w = lab_config(k->lab)->contract.w;
    dafl_public own = keys_of(k, u->client, u->slot).pk;
    uint64_t *left = lab_alloc(n, sizeof *left);
    bool zero = true;

    if (n > 0)
        memcpy(left, rest, n * sizeof *left);
    for (uint16_t p = 0; p < k->n; p++) {
        dafl_mask mask = {.negate = p >= u->client};
        dafl_public pk;
        if (!dafl_members_has(&u->a, p))
            continue;
        pk = keys_of(k, p, u->slot).pk;
        if (p == u->client)
            dafl_key_self(&mask.key, &v->b, &u->ctx2, p);
        else if (dafl_key_pair(&mask.key, &v->sk, &u->ctx2, u->client, &own, p,
                               &pk) != DAFL_OK)
            lab_die("leak: an unusable key of client %u", (unsigned)p);
        dafl_mask_apply(left, n, w, &mask, 1, NULL);
        dafl_wipe(&mask, sizeof mask);
    }
    for (size_t i = 0; i < n; i++)
        zero = zero && (left[i] & UINT64_MAX >> (64 - w)) == 0;
    free(left);
    return zero;
}

/* The first explanation that holds; its own masks come before those of
 * others. */
static void explain(leak *k, leak_vector *v, const uint64_t *rest, size_t n)
{
    unsigned w = lab_config(k->lab)->contract.w;
    bool clear = true;

    for (size_t i = 0; i < n; i++)
        clear = clear && (rest[i] & UINT64_MAX >> (64 - w)) == 0;
    v->masks = clear ? LEAK_CLEAR : LEAK_ODD;
    if (!clear && are_masks_of(k, v, rest, n))
        v->masks = LEAK_MASKED;
    for (size_t i = 0; v->masks == LEAK_ODD && i < k->uploads.n; i++) {
        const leak_vector *other = leak_vector_at(k, i);
        if (other != v && other->up.client == v->up.client && other->has_keys &&
            are_masks_of(k, other, rest, n)) {
            v->masks = LEAK_REUSED;
            v->like = &other->up;
        }
    }
    k->unreal |= v->masks == LEAK_ODD;
}

static void look_at(leak *k, leak_vector *v)
{
    const leak_upload *u = &v->up;
    size_t n = u->len / (lab_config(k->lab)->contract.w / 8);
    uint64_t *rest;
    int64_t *x;

    if (v->looked == u->len || !v->has_keys || no_masks(k) ||
        k->lab->scenario.method != &lab_vectors ||
        n > lab_answer_len(k->lab, u->question))
        return;
    v->looked = u->len;
    rest = lab_alloc(n, sizeof *rest);
    x = lab_alloc(lab_answer_len(k->lab, u->question), sizeof *x);
    unpack(k, u, rest, n);
    lab_answer(k->lab, u->client, u->question, x);
    for (size_t i = 0; i < n; i++)
        rest[i] -= (uint64_t)x[i];
    explain(k, v, rest, n);
    free(x);
    free(rest);
}

leak_masks leak_masks_of(leak *k, size_t i)
{
    leak_vector *v = leak_vector_at(k, i);

    look_at(k, v);
    return v->masks;
}

const leak_upload *leak_streams_of(leak *k, leak_vector *v)
{
    look_at(k, v);
    if (no_masks(k) || v->masks == LEAK_CLEAR)
        return NULL;
    return v->masks == LEAK_REUSED ? v->like : &v->up;
}

/* ---- streams ---- */

/* The stream of u and v, or of u itself, if the attacker can make it. */
static bool key_of(leak *k, const leak_upload *u, uint16_t v, dafl_key *out)
{
    const leak_secrets *s = secrets_of(k, u->slot);
    dafl_public pk_u = keys_of(k, u->client, u->slot).pk;
    dafl_public pk_v = keys_of(k, v, u->slot).pk;
    dafl_err err = DAFL_OK;

    if (v == u->client) {
        if (s[v].known[LEAK_B])
            dafl_key_self(out, &s[v].value[LEAK_B], &u->ctx2, v);
        return s[v].known[LEAK_B];
    }
    if (s[u->client].known[LEAK_SK])
        err = dafl_key_pair(out, &s[u->client].value[LEAK_SK], &u->ctx2,
                            u->client, &pk_u, v, &pk_v);
    else if (s[v].known[LEAK_SK])
        err = dafl_key_pair(out, &s[v].value[LEAK_SK], &u->ctx2, v, &pk_v,
                            u->client, &pk_u);
    else
        return false;
    if (err != DAFL_OK)
        k->unreal = true;
    return true;
}

bool leak_knows_stream(leak *k, const leak_upload *u, uint16_t v)
{
    const leak_secrets *s = secrets_of(k, u->slot);

    return v == u->client ? s[v].known[LEAK_B]
                          : s[u->client].known[LEAK_SK] || s[v].known[LEAK_SK];
}

size_t leak_strip(leak *k, const leak_upload *upload, uint64_t *out, size_t n)
{
    unsigned w = lab_config(k->lab)->contract.w;
    const leak_upload *u =
        leak_streams_of(k, (leak_vector *)(uintptr_t)(const void *)upload);
    size_t left = 0;

    unpack(k, upload, out, n);
    for (uint16_t v = 0; v < k->n && u != NULL; v++) {
        dafl_mask mask = {.negate = v >= u->client};
        if (!dafl_members_has(&u->a, v))
            continue;
        if (key_of(k, u, v, &mask.key))
            dafl_mask_apply(out, n, w, &mask, 1, NULL);
        else
            left++;
        dafl_wipe(&mask, sizeof mask);
    }
    for (size_t i = 0; i < n; i++)
        out[i] &= UINT64_MAX >> (64 - w);
    return left;
}
