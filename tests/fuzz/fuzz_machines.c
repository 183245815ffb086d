/* SPDX-License-Identifier: Apache-2.0 */
/* Client, server and key-holder machines under any sequence of messages, faults
 * and restarts. The input is a little program: its first byte chooses a
 * federation (and, from 128 on, that it begins with its setup and not after
 * it); then come operations, each a byte (modulo their number) and its
 * arguments. What must hold throughout is in machines_claims.c and
 * machines_method.c. */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "tests/fuzz/machines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OPS_MAX 100

/* ---- random numbers, the same for every input ---- */

static uint64_t drawn;

static const char *dice_name(void)
{
    return "fuzz";
}

static void dice_buf(void *out, const size_t len)
{
    static const uint8_t key[32] = {7};
    uint8_t nonce[8];

    for (size_t i = 0; i < sizeof nonce; i++)
        nonce[i] = (uint8_t)(drawn >> 8 * i);
    drawn++;
    crypto_stream_chacha20(out, len, nonce, key);
}

static uint32_t dice_random(void)
{
    uint32_t v;

    dice_buf(&v, sizeof v);
    return v;
}

static void load_dice(void)
{
    static randombytes_implementation dice = {
        .implementation_name = dice_name,
        .random = dice_random,
        .buf = dice_buf,
    };

    (void)randombytes_set_implementation(&dice);
}

/* ---- reading the program ---- */

static uint8_t next(dafl_reader *r)
{
    uint8_t v = 0;

    return dafl_get_u8(r, &v) == DAFL_OK ? v : 0;
}

/* As many bytes as the next one says and are left. */
static dafl_bytes next_bytes(dafl_reader *r)
{
    size_t len = next(r);
    dafl_bytes view = {NULL, 0};

    if (dafl_get_view(r, &view, len < r->left ? len : r->left) != DAFL_OK)
        abort();
    return view;
}

static uint16_t next_client(const fm_world *w, dafl_reader *r)
{
    return (uint16_t)(next(r) % w->rules->k);
}

static fm_party *next_party(fm_world *w, dafl_reader *r)
{
    return &w->parties[next(r) % fm_parties(w)];
}

/* A byte from 128 on counts down. */
static uint32_t near_by(uint32_t slot, uint8_t by)
{
    return by < 128 ? slot + by : slot - (256u - by);
}

/* The server's slot, or one near it: 0 is its own, 1 the next, 255 the last;
 * 128 on its own: none. */
static uint32_t next_slot(fm_world *w, dafl_reader *r)
{
    const fm_party *s = fm_server(w);
    uint32_t slot = s->server == NULL ? 0 : dafl_server_slot(s->server);
    uint8_t v = next(r);

    return v == 128 ? 0 : near_by(slot, v);
}

typedef struct {
    fm_way way;
    uint16_t client;
} place;

static place next_link(const fm_world *w, dafl_reader *r)
{
    uint8_t v = next(r);
    uint16_t n = fm_peers(w);
    place p = {v / n % 2 == 0 ? FM_UP : FM_DOWN, (uint16_t)(v % n)};

    return p;
}

/* ---- operations ---- */

typedef void operation(fm_world *w, dafl_reader *r);

static void op_run(fm_world *w, dafl_reader *r)
{
    (void)fm_pump(w, next(r) + 1u, 0);
}

static void op_hold(fm_world *w, dafl_reader *r)
{
    (void)fm_pump(w, SIZE_MAX, next(r) % DAFL_MSG_COUNT);
}

static void op_deliver(fm_world *w, dafl_reader *r)
{
    place p = next_link(w, r);

    fm_deliver(w, p.way, p.client, p.client);
}

static void op_drop(fm_world *w, dafl_reader *r)
{
    place p = next_link(w, r);

    fm_drop(w, p.way, p.client);
}

static fm_mail copy_mail(const fm_mail *mail)
{
    fm_mail copy = *mail;

    copy.ptr = fm_copy(mail->ptr, mail->len);
    return copy;
}

static void op_twice(fm_world *w, dafl_reader *r)
{
    place p = next_link(w, r);

    if (w->links[p.way][p.client].n == 0)
        return;
    fm_post(w, p.way, p.client, copy_mail(&w->links[p.way][p.client].mails[0]));
    fm_deliver(w, p.way, p.client, p.client);
}

static void op_astray(fm_world *w, dafl_reader *r)
{
    place p = next_link(w, r);
    uint16_t to = next_client(w, r);

    fm_deliver(w, p.way, p.client, p.way == FM_UP ? p.client : to);
}

/* Change the body, type or slot of the oldest mail of a link; it is signed
 * again. Offsets from 128 on count from the end. */
static void op_mutate(fm_world *w, dafl_reader *r)
{
    place p = next_link(w, r);
    uint8_t how = next(r) % 8, where = next(r), what = next(r);
    fm_link *l = &w->links[p.way][p.client];
    dafl_envelope m;
    uint8_t *body;
    size_t len, at;
    fm_mail changed;

    if (l->n == 0 ||
        dafl_get_envelope(&m, (dafl_bytes){l->mails[0].ptr, l->mails[0].len},
                          UINT32_MAX) != DAFL_FAULT_NONE)
        return;
    len = m.body.len;
    body = fm_alloc(len + 256, 1);
    memcpy(body, m.body.ptr, len);
    at = len == 0      ? 0
         : where < 128 ? where % len
                       : len - 1 - (255u - where) % len;
    switch (how) {
    case 0:
        body[at] ^= what == 0 ? 1 : what;
        break;
    case 1: /* a run of one value, up to the end */
        memset(body + at, what, len - at);
        break;
    case 2: /* a run of four */
        memset(body + at, what, len - at < 4 ? len - at : 4);
        break;
    case 3:
        len = at;
        break;
    case 4:
        memset(body + len, what, where);
        len += where;
        break;
    case 5:
        m.slot = near_by(m.slot, what);
        break;
    case 6:
        m.type = (uint8_t)(1 + what % (DAFL_MSG_COUNT - 1));
        break;
    default:
        m.run.b[where % sizeof m.run.b] ^= what;
        break;
    }
    m.body = (dafl_bytes){body, len};
    changed = fm_seal(w, &m);
    changed.forged = true;
    free(l->mails[0].ptr);
    l->mails[0] = changed;
    free(body);
}

static void op_flip(fm_world *w, dafl_reader *r)
{
    place p = next_link(w, r);
    uint32_t at = next(r) + 1u;

    if (w->links[p.way][p.client].n > 0)
        w->links[p.way][p.client].mails[0].flip = at;
}

/* To a client: from the server; to the server: from that client. */
static void op_say(fm_world *w, dafl_reader *r)
{
    place p = next_link(w, r);
    uint8_t type = (uint8_t)(1 + next(r) % (DAFL_MSG_COUNT - 1));
    uint32_t slot = next_slot(w, r);

    fm_say(w, p.way, p.client, type, slot, next_bytes(r));
}

static void op_lie(fm_world *w, dafl_reader *r)
{
    uint16_t to = next_client(w, r);
    uint8_t kind = next(r);
    uint32_t slot = next_slot(w, r);
    uint8_t a = next(r), b = next(r);

    fm_server_lies(w, to, kind, slot, a, b);
}

/* The same lie to everyone in a set. */
static void op_lie_to(fm_world *w, dafl_reader *r)
{
    uint8_t set = next(r), kind = next(r);
    uint32_t slot = next_slot(w, r);
    uint8_t a = next(r), b = next(r);

    for (uint16_t u = 0; u < w->rules->k; u++)
        if (set >> u & 1)
            fm_server_lies(w, u, kind, slot, a, b);
}

static void op_cheat(fm_world *w, dafl_reader *r)
{
    uint16_t from = next_client(w, r);
    uint8_t kind = next(r), a = next(r), b = next(r);

    fm_client_cheats(w, from, kind, a, b);
}

static void op_clock(fm_world *w, dafl_reader *r)
{
    fm_tick(w, w->now + 500u * next(r));
}

static void op_timeout(fm_world *w, dafl_reader *r)
{
    const fm_party *s = fm_server(w);
    uint64_t deadline = s->server == NULL ? 0 : dafl_server_deadline(s->server);

    (void)r;
    if (deadline > w->now && deadline != UINT64_MAX)
        fm_tick(w, deadline);
}

static void op_lost(fm_world *w, dafl_reader *r)
{
    fm_lost(w, next_client(w, r));
}

static void op_hello(fm_world *w, dafl_reader *r)
{
    fm_hello(w, next_client(w, r));
}

/* Now, or after some more effects; from 128 on it stays down. */
static void op_crash(fm_world *w, dafl_reader *r)
{
    fm_party *p = next_party(w, r);
    uint8_t when = next(r);

    p->stay_down = when >= 128;
    p->crash_in = when % 128;
    if (p->crash_in > 0)
        return;
    fm_halt(p);
    if (!p->stay_down)
        fm_boot(w, p);
}

static void op_boot(fm_world *w, dafl_reader *r)
{
    fm_boot(w, next_party(w, r));
}

static void patch(fm_block *b, uint8_t at, dafl_bytes bytes)
{
    for (size_t i = 0; i < bytes.len && b->len > 0; i++)
        b->ptr[((at < 128 ? at : b->len + at - 256) + i) % b->len] =
            bytes.ptr[i];
}

/* Write something else to a disk. */
static void meddle(fm_disk *disk, dafl_reader *r)
{
    uint8_t how = next(r) % 8, which = next(r), at = next(r);
    fm_blocks *list = how < 5 ? &disk->journal : &disk->vault;
    dafl_bytes bytes = next_bytes(r);
    size_t i = list->n == 0 ? 0 : which % list->n;

    if (how == 0)
        fm_blocks_add(list, list->n == 0 ? 0 : which % (list->n + 1), bytes, 0);
    else if (how == 5)
        fm_blocks_add(list, 0, bytes, which);
    else if (list->n == 0)
        return;
    else if (how == 1 || how == 6)
        patch(&list->items[i], at, bytes);
    else if (how == 2 || how == 7)
        fm_blocks_remove(list, i);
    else if (how == 3)
        fm_blocks_add(list, list->n,
                      (dafl_bytes){list->items[i].ptr, list->items[i].len}, 0);
    else
        list->items[i].len = at < list->items[i].len ? at : list->items[i].len;
}

/* A party is restarted with a disk that it did not write. What it refuses is
 * put back. */
static void op_feed(fm_world *w, dafl_reader *r)
{
    fm_party *p = next_party(w, r);
    bool fed = p->fed, world_fed = w->fed, tainted = w->tainted;
    fm_disk before;

    fm_disk_copy(&before, &p->disk);
    fm_halt(p);
    p->fed = w->fed = w->tainted = true;
    meddle(&p->disk, r);
    fm_boot(w, p);
    if (p->client == NULL && p->server == NULL && p->holder == NULL) {
        fm_disk_drop(&p->disk);
        p->disk = before;
        p->fed = fed;
        w->fed = world_fed;
        w->tainted = tainted;
        fm_boot(w, p);
    } else {
        fm_disk_drop(&before);
    }
}

/* A client loses a record of its vault, and says so. */
static void op_lose(fm_world *w, dafl_reader *r)
{
    fm_party *p = &w->parties[next_client(w, r)];
    uint8_t which = next(r);

    if (p->disk.vault.n == 0)
        return;
    fm_halt(p);
    fm_blocks_remove(&p->disk.vault, which % p->disk.vault.n);
    fm_boot(w, p);
}

/* A message of long ago comes by some link. */
static void op_replay(fm_world *w, dafl_reader *r)
{
    uint8_t which = next(r);
    place p = next_link(w, r);
    size_t n = w->n_past < FM_PAST ? w->n_past : FM_PAST;

    if (n == 0)
        return;
    fm_post_first(w, p.way, p.client, copy_mail(&w->past[which % n]));
    fm_deliver(w, p.way, p.client, p.client);
}

static void op_refuse(fm_world *w, dafl_reader *r)
{
    static const dafl_fault faults[] = {DAFL_FAULT_NONE, DAFL_E_DOMINATED,
                                        DAFL_E_CENSUS, DAFL_E_MODEL};
    fm_party *p = next_party(w, r);
    uint8_t what = next(r);

    if (p->index == w->rules->k)
        w->refuses_sums = what % 4;
    else
        p->refuses = faults[what % 4];
}

static void op_another_run(fm_world *w, dafl_reader *r)
{
    (void)r;
    fm_another_run(w);
}

static void op_finish(fm_world *w, dafl_reader *r)
{
    (void)r;
    fm_finish(w);
}

/* make_corpus.py knows their order. */
static operation *const operations[] = {
    op_run,    op_hold,    op_deliver, op_drop,   op_twice,  op_astray,
    op_mutate, op_flip,    op_say,     op_lie,    op_lie_to, op_cheat,
    op_clock,  op_timeout, op_lost,    op_hello,  op_crash,  op_boot,
    op_feed,   op_lose,    op_replay,  op_refuse, op_finish, op_another_run,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static fm_world w;
    dafl_reader r = dafl_read((dafl_bytes){data, size});
    uint8_t first = next(&r);

    if (size == 0)
        return 0;
    load_dice();
    drawn = 0;
    fm_prepare(first % 128 % FM_SCENARIOS);
    drawn = (uint64_t)1 << 32; /* none of those again */
    fm_open(&w, first % 128 % FM_SCENARIOS, first < 128);
    for (unsigned n = 0; r.left > 0 && n < OPS_MAX; n++)
        operations[next(&r) % (sizeof operations / sizeof operations[0])](&w,
                                                                          &r);
    fm_close(&w);
    return 0;
}
