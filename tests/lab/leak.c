/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lab/leak.h"

#include <stdlib.h>
#include <string.h>

#include "crypto/mask.h"
#include "lib/ring.h"
#include "lib/secret.h"
#include "protocol/client_state.h"
#include "tests/lab/inside.h"

typedef enum { B, SK, KINDS } secret_kind;

/* What the attacker has of one client's secrets of one slot. */
typedef struct {
    bool known[KINDS];
    dafl_key value[KINDS];
} secrets;

typedef struct {
    bool have[KINDS];
    dafl_share share[KINDS];
} held;

typedef struct {
    held *held;       /* [dealer * k + holder]; NULL: nothing */
    secrets *secrets; /* [client]; NULL: to be worked out */
} slot_view;

/* From the server's journal. */
typedef struct {
    uint16_t t;
    dafl_members u0, u1;
    dafl_bytes keys; /* of U1, all slots of each; copied */
} setup;

/* Where a client is, by what it told. */
typedef struct {
    uint32_t slot, question;
    dafl_members a;
    dafl_digest ctx2;
} place;

struct leak {
    lab *lab;
    size_t n; /* clients */
    dafl_members colluders;
    bool taps;
    size_t seen, events, records; /* what has been taken in */
    place *places;                /* [client] */
    lab_list setups;              /* setup, by enrolment */
    lab_list slots;               /* slot_view, by slot */
    lab_list uploads;             /* leak_upload * */
    bool unreal;
    /* the slot that was solved last */
    const leak_upload **rows;
    size_t n_rows, dim;
    int32_t *combos; /* [dim * n_rows] */
};

leak *leak_new(lab *l, const dafl_members *colluders, bool taps)
{
    leak *k = lab_alloc(1, sizeof *k);

    k->lab = l;
    k->n = lab_server_index(l);
    k->colluders = *colluders;
    k->taps = taps;
    k->places = lab_alloc(k->n, sizeof *k->places);
    return k;
}

static slot_view *view_of(leak *k, uint32_t slot)
{
    while (k->slots.n <= slot)
        (void)lab_list_add(&k->slots, sizeof(slot_view));
    return (slot_view *)k->slots.items + slot;
}

static setup *setup_of(const leak *k, uint32_t enrolment)
{
    setup *s = (setup *)k->setups.items + enrolment;

    if (enrolment >= k->setups.n || s->t == 0)
        lab_die("leak: enrolment %u has no setup", (unsigned)enrolment);
    return s;
}

static uint32_t enrolment_of(const leak *k, uint32_t slot)
{
    return (slot - 1) / lab_config(k->lab)->slots;
}

static leak_upload *upload_at(const leak *k, size_t i)
{
    return ((leak_upload **)k->uploads.items)[i];
}

static void forget_secrets(const leak *k, slot_view *v)
{
    if (v->secrets != NULL)
        dafl_wipe(v->secrets, k->n * sizeof *v->secrets);
    free(v->secrets);
    v->secrets = NULL;
}

void leak_free(leak **leak_)
{
    leak *k = *leak_;

    if (k == NULL)
        return;
    for (size_t i = 0; i < k->slots.n; i++) {
        slot_view *v = (slot_view *)k->slots.items + i;
        forget_secrets(k, v);
        free(v->held);
    }
    for (size_t i = 0; i < k->uploads.n; i++) {
        free(upload_at(k, i)->bytes);
        free(upload_at(k, i));
    }
    for (size_t i = 0; i < k->setups.n; i++)
        free((void *)(uintptr_t)((setup *)k->setups.items)[i].keys.ptr);
    lab_list_drop(&k->slots);
    lab_list_drop(&k->uploads);
    lab_list_drop(&k->setups);
    free(k->places);
    free(k->rows);
    free(k->combos);
    free(k);
    *leak_ = NULL;
}

/* ---- what the attacker sees ---- */

static void learn_setup(leak *k, dafl_bytes record)
{
    dafl_reader r = dafl_read(record);
    dafl_digest h_setup;
    dafl_bytes keys;
    dafl_run_id run;
    uint32_t enrolment;
    uint8_t kind;
    setup s;

    if (dafl_get_u8(&r, &kind) != DAFL_OK || kind != DAFL_RECORD_STANDS)
        return;
    if (dafl_get_fixed(&r, run.b, sizeof run.b) != DAFL_OK ||
        dafl_get_u32(&r, &enrolment) != DAFL_OK ||
        dafl_get_u16(&r, &s.t) != DAFL_OK ||
        dafl_get_fixed(&r, h_setup.b, sizeof h_setup.b) != DAFL_OK ||
        dafl_get_members(&r, &s.u0) != DAFL_OK ||
        dafl_get_members(&r, &s.u1) != DAFL_OK ||
        dafl_get_items(&r, &keys,
                       (uint64_t)dafl_members_count(&s.u1) *
                           lab_config(k->lab)->slots,
                       DAFL_SLOT_KEYS_BYTES) != DAFL_OK)
        lab_die("leak: the server's journal is not understood");
    s.keys = (dafl_bytes){lab_copy(keys), keys.len};
    while (k->setups.n <= enrolment)
        (void)lab_list_add(&k->setups, sizeof(setup));
    ((setup *)k->setups.items)[enrolment] = s;
}

static void learn_share(leak *k, uint32_t slot, size_t dealer, size_t holder,
                        secret_kind kind, const uint8_t share[32])
{
    slot_view *v = view_of(k, slot);
    held *h;

    if (dealer >= k->n || holder >= k->n)
        return;
    if (v->held == NULL)
        v->held = lab_alloc(k->n * k->n, sizeof *v->held);
    forget_secrets(k, v);
    h = &v->held[dealer * k->n + holder];
    h->have[kind] = true;
    memcpy(h->share[kind].b, share, sizeof h->share[kind].b);
}

/* All that a colluder's vault says of a slot. A dealer's own secrets go where
 * the shares that it would hold of itself would be. */
static void learn_vault(leak *k, uint16_t client, uint32_t slot)
{
    const setup *s = setup_of(k, enrolment_of(k, slot));
    dafl_bytes record = lab_disk_secret(k->lab, client, slot);
    const uint8_t *at = record.ptr + DAFL_OWN_BYTES;

    if (record.ptr == NULL)
        return;
    learn_share(k, slot, client, client, SK, record.ptr);
    learn_share(k, slot, client, client, B, record.ptr + 32);
    for (size_t u = 0; u < k->n; u++) {
        if (!dafl_members_has(&s->u0, u))
            continue;
        if (u != client && !sodium_is_zero(at, DAFL_HELD_BYTES)) {
            learn_share(k, slot, u, client, B, at);
            learn_share(k, slot, u, client, SK, at + 32);
        }
        at += DAFL_HELD_BYTES;
    }
}

static void learn_colluder(leak *k, uint16_t client)
{
    uint32_t slots = lab_config(k->lab)->slots;

    for (uint32_t e = 0; e < k->setups.n; e++)
        for (uint32_t i = 0;
             i < slots && ((const setup *)k->setups.items)[e].t != 0; i++)
            learn_vault(k, client, e * slots + i + 1);
}

static void learn_reveal(leak *k, const dafl_envelope *m)
{
    dafl_reveal reveal;

    if (dafl_get_reveal(&reveal, m->body) != DAFL_OK)
        return;
    for (size_t i = 0; i < reveal.n; i++) {
        dafl_revealed r = dafl_reveal_at(&reveal, i);
        learn_share(k, m->slot, r.dealer, m->sender,
                    r.kind == DAFL_REVEAL_B ? B : SK, r.share.b);
    }
}

/* Whether a chunk is, or continues, what an upload has so far. */
static bool fits(const leak_upload *u, const dafl_upload *chunk, bool more)
{
    if (chunk->offset + chunk->chunk.len > u->len)
        return more && chunk->offset == u->len;
    return memcmp(u->bytes + chunk->offset, chunk->chunk.ptr,
                  chunk->chunk.len) == 0;
}

static void learn_sent(leak *k, uint16_t client, const dafl_envelope *m)
{
    const place *p = &k->places[client];
    dafl_upload chunk;
    leak_upload *u = NULL;

    if (dafl_get_upload(&chunk, m->body) != DAFL_OK || m->slot != p->slot)
        lab_die("leak: client %u uploads out of turn", (unsigned)client);
    for (size_t i = 0; i < k->uploads.n && u == NULL; i++)
        if (upload_at(k, i)->client == client &&
            upload_at(k, i)->slot == m->slot &&
            dafl_digest_equal(&upload_at(k, i)->ctx2, &p->ctx2) &&
            fits(upload_at(k, i), &chunk, true))
            u = upload_at(k, i);
    if (u == NULL) {
        if (chunk.offset != 0)
            lab_die("leak: client %u starts in the middle", (unsigned)client);
        u = lab_alloc(1, sizeof *u);
        *u = (leak_upload){.client = client,
                           .slot = m->slot,
                           .question = p->question,
                           .a = p->a,
                           .ctx2 = p->ctx2};
        *(leak_upload **)lab_list_add(&k->uploads, sizeof u) = u;
    }
    if (chunk.offset == u->len) {
        uint8_t *more = lab_alloc(u->len + chunk.chunk.len, 1);
        if (u->len > 0)
            memcpy(more, u->bytes, u->len);
        memcpy(more + u->len, chunk.chunk.ptr, chunk.chunk.len);
        free(u->bytes);
        u->bytes = more;
        u->len += chunk.chunk.len;
    }
    u->reached |= k->taps;
}

/* What reaches the server and no client sent is the attacker's own. */
static void learn_reached(leak *k, const dafl_envelope *m)
{
    dafl_upload chunk;

    if (dafl_get_upload(&chunk, m->body) != DAFL_OK)
        return;
    for (size_t i = 0; i < k->uploads.n; i++) {
        leak_upload *u = upload_at(k, i);
        if (u->client == m->sender && u->slot == m->slot &&
            fits(u, &chunk, false))
            u->reached = true;
    }
}

static void learn_event(leak *k, const lab_event *e)
{
    place *p;

    if (e->party >= k->n)
        return;
    p = &k->places[e->party];
    if (e->event.kind == DAFL_EVENT_MODEL)
        *p = (place){.slot = e->event.slot, .question = e->event.number};
    if (e->event.kind == DAFL_EVENT_CAST) {
        p->a = e->event.set;
        p->ctx2 = e->event.digest;
    }
}

static void learn_message(leak *k, const lab_seen *m)
{
    uint16_t server = lab_server_index(k->lab);
    bool sent = m->way == LAB_SENT;

    if (m->from == server || m->type == 0)
        return;
    if (m->type == DAFL_MSG_SETUP_ACK && sent &&
        dafl_members_has(&k->colluders, m->from))
        learn_colluder(k, m->from);
    else if (m->type == DAFL_MSG_UPLOAD && sent)
        learn_sent(k, m->from, &m->envelope);
    else if (m->type == DAFL_MSG_UPLOAD)
        learn_reached(k, &m->envelope);
    else if (m->type == DAFL_MSG_REVEAL && sent == k->taps)
        learn_reveal(k, &m->envelope);
}

void leak_watch(leak *k)
{
    uint16_t server = lab_server_index(k->lab);
    const lab_seen *seen;
    const lab_event *events;
    size_t n_seen = lab_transcript(k->lab, &seen);
    size_t n_events = lab_events(k->lab, &events);

    if (k->seen == n_seen && k->events == n_events)
        return;
    while (k->records < lab_disk_records(k->lab, server))
        learn_setup(k, lab_disk_record(k->lab, server, k->records++));
    for (; k->seen < n_seen; k->seen++) {
        /* A client tells of a CAST before it sends what follows from it. */
        while (k->events < n_events &&
               events[k->events].time <= seen[k->seen].time)
            learn_event(k, &events[k->events++]);
        learn_message(k, &seen[k->seen]);
    }
}

lab_outcome leak_run(leak *k)
{
    do
        leak_watch(k);
    while (lab_step(k->lab));
    leak_watch(k);
    return lab_run(k->lab);
}

size_t leak_uploads(const leak *k)
{
    return k->uploads.n;
}

const leak_upload *leak_upload_at(const leak *k, size_t i)
{
    return upload_at(k, i);
}

const leak_upload *leak_upload_of(const leak *k, uint16_t client, uint32_t slot)
{
    for (size_t i = 0; i < k->uploads.n; i++)
        if (upload_at(k, i)->reached && upload_at(k, i)->client == client &&
            upload_at(k, i)->slot == slot)
            return upload_at(k, i);
    return NULL;
}

uint32_t leak_last_slot(const leak *k)
{
    uint32_t last = 0;

    for (size_t i = 0; i < k->uploads.n; i++)
        if (upload_at(k, i)->slot > last)
            last = upload_at(k, i)->slot;
    return last;
}

/* ---- what it can rebuild ---- */

static dafl_slot_keys keys_of(const leak *k, size_t client, uint32_t slot)
{
    const setup *s = setup_of(k, enrolment_of(k, slot));
    size_t slots = lab_config(k->lab)->slots;

    return dafl_slot_keys_at(s->keys,
                             dafl_members_rank(&s->u1, client) * slots +
                                 (slot - 1) % slots);
}

static bool is_enrolled(const leak *k, size_t client, uint32_t slot,
                        secret_kind kind, const dafl_key *value)
{
    dafl_slot_keys keys = keys_of(k, client, slot);
    dafl_public pk;
    dafl_digest cb;

    dafl_key_public(&pk, value);
    dafl_key_commit(&cb, value);
    return kind == B ? dafl_digest_equal(&cb, &keys.cb) != 0
                     : memcmp(&pk, &keys.pk, sizeof pk) == 0;
}

/* A client's secret, its own if it colludes, else from t shares or more. */
static bool rebuild(leak *k, const slot_view *v, const setup *s, uint32_t slot,
                    size_t client, secret_kind kind, dafl_key *out)
{
    const held *of = &v->held[client * k->n];
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

static const secrets *secrets_of(leak *k, uint32_t slot)
{
    slot_view *v = view_of(k, slot);
    const setup *s = setup_of(k, enrolment_of(k, slot));

    if (v->secrets != NULL)
        return v->secrets;
    v->secrets = lab_alloc(k->n, sizeof *v->secrets);
    for (size_t u = 0; u < k->n && v->held != NULL; u++)
        for (secret_kind i = B; i < KINDS; i++)
            if (dafl_members_has(&s->u1, u))
                v->secrets[u].known[i] =
                    rebuild(k, v, s, slot, u, i, &v->secrets[u].value[i]);
    return v->secrets;
}

bool leak_knows_b(leak *k, uint16_t client, uint32_t slot)
{
    return secrets_of(k, slot)[client].known[B];
}

bool leak_knows_sk(leak *k, uint16_t client, uint32_t slot)
{
    return secrets_of(k, slot)[client].known[SK];
}

/* ---- streams ---- */

static bool no_masks(const leak *k)
{
    return lab_config(k->lab)->mode == DAFL_MODE_NONE;
}

/* The stream of u and v, or of u itself, if the attacker can make it. */
static bool key_of(leak *k, const leak_upload *u, uint16_t v, dafl_key *out)
{
    const secrets *s = secrets_of(k, u->slot);
    dafl_public pk_u = keys_of(k, u->client, u->slot).pk;
    dafl_public pk_v = keys_of(k, v, u->slot).pk;
    dafl_err err = DAFL_OK;

    if (v == u->client) {
        if (s[v].known[B])
            dafl_key_self(out, &s[v].value[B], &u->ctx2, v);
        return s[v].known[B];
    }
    if (s[u->client].known[SK])
        err = dafl_key_pair(out, &s[u->client].value[SK], &u->ctx2, u->client,
                            &pk_u, v, &pk_v);
    else if (s[v].known[SK])
        err = dafl_key_pair(out, &s[v].value[SK], &u->ctx2, v, &pk_v, u->client,
                            &pk_u);
    else
        return false;
    if (err != DAFL_OK)
        k->unreal = true;
    return true;
}

static bool is_known(leak *k, const leak_upload *u, uint16_t v)
{
    const secrets *s = secrets_of(k, u->slot);

    return v == u->client ? s[v].known[B]
                          : s[u->client].known[SK] || s[v].known[SK];
}

size_t leak_strip(leak *k, const leak_upload *upload, uint64_t *out, size_t n)
{
    unsigned w = lab_config(k->lab)->contract.w;
    uint8_t *words = lab_alloc(upload->len + DAFL_RING_SLACK, 1);
    size_t left = 0;

    if (n > upload->len / (w / 8))
        lab_die("leak: the upload has only %zu bytes", upload->len);
    memcpy(words, upload->bytes, upload->len);
    memset(out, 0, n * sizeof *out);
    dafl_ring_add_words(out, words, n, w, false);
    for (uint16_t v = 0; v < k->n && !no_masks(k); v++) {
        dafl_mask mask = {.negate = v >= upload->client};
        if (!dafl_members_has(&upload->a, v))
            continue;
        if (key_of(k, upload, v, &mask.key))
            dafl_mask_apply(out, n, w, &mask, 1, NULL);
        else
            left++;
        dafl_wipe(&mask, sizeof mask);
    }
    for (size_t i = 0; i < n; i++)
        out[i] &= UINT64_MAX >> (64 - w);
    free(words);
    return left;
}

/* ---- elimination ---- */

/* Columns are streams: those of each context apart, by pairs of clients. */
typedef struct {
    uint16_t lo, hi;
    const dafl_digest *ctx2;
} stream;

static size_t column_of(lab_list *columns, uint16_t u, uint16_t v,
                        const dafl_digest *ctx2)
{
    stream s = {u < v ? u : v, u < v ? v : u, ctx2};
    const stream *known = columns->items;

    for (size_t i = 0; i < columns->n; i++)
        if (known[i].lo == s.lo && known[i].hi == s.hi &&
            dafl_digest_equal(known[i].ctx2, ctx2))
            return i;
    *(stream *)lab_list_add(columns, sizeof s) = s;
    return columns->n - 1;
}

/* row -= times pivot, within what an int32_t holds. */
static void subtract(int32_t *row, const int32_t *pivot, int64_t times,
                     size_t width)
{
    for (size_t i = 0; i < width; i++) {
        int64_t v = row[i] - times * pivot[i];
        if (v > INT32_MAX || v < INT32_MIN)
            lab_die("leak: numbers grow beyond 32 bits");
        row[i] = (int32_t)v;
    }
}

static void swap_rows(int32_t *a, int32_t *b, size_t width)
{
    for (size_t i = 0; i < width; i++) {
        int32_t t = a[i];
        a[i] = b[i];
        b[i] = t;
    }
}

/* Rows of m: `cols` entries, then the unit matrix. Returns where the rows
 * begin that have come to zero; beside them stand the combinations. */
static size_t eliminate(int32_t *m, size_t rows, size_t cols)
{
    size_t width = cols + rows, done = 0;

    for (size_t c = 0; c < cols; c++) {
        size_t pivot = rows;
        bool any = false;
        for (size_t r = done; r < rows; r++) {
            int32_t v = m[r * width + c];
            any |= v != 0;
            if ((v == 1 || v == -1) && pivot == rows)
                pivot = r;
        }
        if (!any)
            continue;
        if (pivot == rows)
            lab_die("leak: no pivot of 1 or -1, the result would not hold "
                    "modulo 2^w");
        swap_rows(m + done * width, m + pivot * width, width);
        for (size_t r = done + 1; r < rows; r++)
            subtract(m + r * width, m + done * width,
                     (int64_t)m[r * width + c] * m[done * width + c], width);
        done++;
    }
    return done;
}

/* The rows: vectors of the slot that are in the attacker's hands and not its
 * own. A colluder's input and all its streams are known, so its vector adds
 * nothing to what can be said of the others. */
static void gather_rows(leak *k, uint32_t slot)
{
    free(k->rows);
    k->rows = lab_alloc(k->uploads.n, sizeof *k->rows);
    k->n_rows = 0;
    for (size_t i = 0; i < k->uploads.n; i++) {
        const leak_upload *u = upload_at(k, i);
        if (u->reached && u->slot == slot &&
            !dafl_members_has(&k->colluders, u->client))
            k->rows[k->n_rows++] = u;
    }
}

static void solve(leak *k, uint32_t slot)
{
    lab_list columns = {0};
    size_t cols, width, from;
    int32_t *m;

    gather_rows(k, slot);
    for (size_t r = 0; r < k->n_rows; r++)
        for (uint16_t v = 0; v < k->n; v++)
            if (dafl_members_has(&k->rows[r]->a, v))
                (void)column_of(&columns, k->rows[r]->client, v,
                                &k->rows[r]->ctx2);
    cols = columns.n;
    width = cols + k->n_rows;
    m = lab_alloc(k->n_rows * width, sizeof *m);
    for (size_t r = 0; r < k->n_rows; r++) {
        const leak_upload *u = k->rows[r];
        for (uint16_t v = 0; v < k->n && !no_masks(k); v++)
            if (dafl_members_has(&u->a, v) && !is_known(k, u, v))
                m[r * width + column_of(&columns, u->client, v, &u->ctx2)] =
                    v >= u->client ? 1 : -1;
        m[r * width + cols + r] = 1;
    }
    from = eliminate(m, k->n_rows, cols);
    k->dim = k->n_rows - from;
    free(k->combos);
    k->combos = lab_alloc(k->dim * k->n_rows, sizeof *k->combos);
    for (size_t i = 0; i < k->dim; i++)
        memcpy(k->combos + i * k->n_rows, m + (from + i) * width + cols,
               k->n_rows * sizeof *k->combos);
    free(m);
    lab_list_drop(&columns);
}

/* How often the input of a client to a question is in a combination. */
static int64_t weight(const leak *k, size_t combo, size_t client,
                      uint32_t question)
{
    int64_t sum = 0;

    for (size_t r = 0; r < k->n_rows; r++)
        if (k->rows[r]->client == client && k->rows[r]->question == question)
            sum += k->combos[combo * k->n_rows + r];
    return sum;
}

size_t leak_dim(leak *k, uint32_t slot)
{
    solve(k, slot);
    return k->dim;
}

bool leak_is_sum(leak *k, uint32_t slot, const dafl_members *u3)
{
    dafl_members honest = dafl_members_minus(u3, &k->colluders);
    uint32_t question = lab_slot_question(k->lab, slot);
    int64_t sign;

    solve(k, slot);
    if (dafl_members_count(&honest) == 0)
        return k->dim == 0;
    if (k->dim != 1)
        return false;
    sign = 0;
    for (size_t u = 0; u < k->n; u++) {
        int64_t times = weight(k, 0, u, question);
        if (!dafl_members_has(&honest, u) && times != 0)
            return false;
        if (!dafl_members_has(&honest, u))
            continue;
        if (sign == 0)
            sign = times;
        if (times != sign || (times != 1 && times != -1))
            return false;
    }
    return true;
}

static bool counts_cells_alike(const leak *k, size_t combo, uint32_t question)
{
    const dafl_roster *roster = lab_roster(k->lab);

    for (size_t u = 0; u < k->n; u++)
        for (size_t v = 0; v < u; v++)
            if (roster->parties[u].cell == roster->parties[v].cell &&
                !dafl_members_has(&k->colluders, u) &&
                !dafl_members_has(&k->colluders, v) &&
                weight(k, combo, u, question) != weight(k, combo, v, question))
                return false;
    return true;
}

bool leak_is_of_cells(leak *k, uint32_t slot)
{
    solve(k, slot);
    for (size_t i = 0; i < k->dim; i++)
        for (size_t r = 0; r < k->n_rows; r++)
            if (!counts_cells_alike(k, i, k->rows[r]->question))
                return false;
    return true;
}

bool leak_run_is_of_cells(leak *k)
{
    for (uint32_t slot = 1; slot <= leak_last_slot(k); slot++)
        if (!leak_is_of_cells(k, slot))
            return false;
    return true;
}

/* ---- the numbers ---- */

/* Words that all vectors of a combination have. */
static size_t common_words(const leak *k, size_t combo)
{
    size_t bytes = SIZE_MAX;

    for (size_t r = 0; r < k->n_rows; r++)
        if (k->combos[combo * k->n_rows + r] != 0 && k->rows[r]->len < bytes)
            bytes = k->rows[r]->len;
    return bytes / (lab_config(k->lab)->contract.w / 8);
}

static bool combo_is_real(leak *k, size_t combo)
{
    size_t n = common_words(k, combo), right = 0;
    uint64_t *found = lab_alloc(n, sizeof *found);
    uint64_t *words = lab_alloc(n, sizeof *words);
    unsigned w = lab_config(k->lab)->contract.w;

    for (size_t r = 0; r < k->n_rows; r++) {
        int32_t times = k->combos[combo * k->n_rows + r];
        const leak_upload *u = k->rows[r];
        size_t len = lab_answer_len(k->lab, u->question);
        int64_t *x = lab_alloc(len, sizeof *x);
        if (times != 0)
            (void)leak_strip(k, u, words, n);
        lab_answer(k->lab, u->client, u->question, x);
        for (size_t i = 0; i < n && times != 0; i++)
            found[i] += (uint64_t)(int64_t)times * (words[i] - (uint64_t)x[i]);
        free(x);
    }
    while (right < n && (found[right] & UINT64_MAX >> (64 - w)) == 0)
        right++;
    free(found);
    free(words);
    return right == n && n > 0;
}

bool leak_is_real(leak *k, uint32_t slot)
{
    bool real = true;

    solve(k, slot);
    for (size_t i = 0; i < k->dim; i++)
        real = real && combo_is_real(k, i);
    return real && !k->unreal;
}
