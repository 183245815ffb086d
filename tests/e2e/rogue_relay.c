/* SPDX-License-Identifier: Apache-2.0 */
/* Between a client and the server, inside CURVE. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/rogue.h"

enum { FLOOD = 100000, SOME = 3, SWAPS = 2, SWAP_MS = 300 };

/* Where fields of an envelope begin. */
enum { AT_SLOT = 21, AT_LEN = 67, AT_BODY = 75 };

typedef struct {
    uint8_t *b;
    size_t len;
} copy;

static copy copy_of(dafl_bytes m)
{
    copy c = {malloc(m.len), m.len};

    if (c.b == NULL)
        quit("rogue: no memory");
    memcpy(c.b, m.ptr, m.len);
    return c;
}

static dafl_bytes view(const copy *c)
{
    return (dafl_bytes){c->b, c->len};
}

typedef enum { TO_SERVER, TO_CLIENT, WAYS } way;

/* One direction. */
typedef struct {
    dafl_link *out;
    uint16_t to;
    const dafl_secret_identity *signs; /* who may sign here */
    uint64_t seq;                      /* when we number */
    bool seen[DAFL_MSG_COUNT];
    copy *past;
    size_t n_past;
    copy held;
    uint64_t held_since;
    /* what was sent: */
    uint64_t genuine, flipped, again, old, swapped, forged;
    uint64_t hello_again; /* of again and old: HELLOs */
} lane;

static lane lanes[WAYS];
static dafl_secret_identity server_id, client_id, other_id, nobody_id;

static void pass(lane *l, dafl_bytes m)
{
    /* Dropped when nobody is there; who misses it says HELLO. */
    dafl_err err = link_send(l->out, l->to, m);

    if (err != DAFL_OK && err != DAFL_ERR_PEER)
        need(err, "send", NULL);
}

static void flip_at(lane *l, dafl_bytes m, size_t at)
{
    copy c = copy_of(m);

    c.b[at] ^= (uint8_t)(1 << draw(8));
    pass(l, view(&c));
    l->flipped++;
    free(c.b);
}

static void count_hello(lane *l, dafl_bytes m)
{
    l->hello_again += m.ptr[4] == DAFL_MSG_HELLO;
}

static void flip(lane *l, dafl_bytes m)
{
    uint8_t type = m.ptr[4];
    copy *more = realloc(l->past, (l->n_past + 1) * sizeof *more);

    if (more == NULL)
        quit("rogue: no memory");
    l->past = more;
    if (!l->seen[type])
        for (size_t at = 0; at < m.len; at++)
            flip_at(l, m, at);
    else
        for (int i = 0; i < SOME; i++)
            flip_at(l, m, draw(m.len));
    l->seen[type] = true;
    pass(l, m);
    l->genuine++;
    pass(l, m);
    l->again++;
    count_hello(l, m);
    if (l->n_past > 0) {
        const copy *old = &l->past[draw(l->n_past)];
        pass(l, view(old));
        l->old++;
        count_hello(l, view(old));
    }
    l->past[l->n_past++] = copy_of(m);
}

static void let_go(lane *l)
{
    if (l->held.b == NULL)
        return;
    pass(l, view(&l->held));
    l->genuine++;
    free(l->held.b);
    l->held.b = NULL;
}

static void swap(lane *l, dafl_bytes m)
{
    if (l->held.b != NULL) {
        pass(l, m);
        l->genuine++;
        l->swapped++;
        let_go(l);
    } else if (l->swapped < SWAPS) {
        l->held = copy_of(m);
        l->held_since = now_ms();
    } else {
        pass(l, m);
        l->genuine++;
    }
}

/* Sign and send a message like m with another sender and body. */
static void forge(lane *l, const dafl_envelope *m, uint16_t sender,
                  uint64_t seq, dafl_bytes body, const dafl_secret_identity *by)
{
    dafl_envelope f = *m;
    dafl_writer w = {0};

    f.sender = sender;
    f.seq = seq;
    f.body = body;
    dafl_put_envelope(&w, &f, by);
    need(dafl_writer_done(&w), "envelope", NULL);
    pass(l, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
}

static void forge_own(lane *l, const dafl_envelope *m, dafl_bytes body)
{
    forge(l, m, m->sender, ++l->seq, body, l->signs);
    l->forged++;
}

/* Numbers in a body that say how much follows. */
typedef struct {
    uint8_t type;
    size_t at, len;
} promise;

static const promise promises[] = {
    {DAFL_MSG_ENROLL, 128, 4},   {DAFL_MSG_SHARES, 0, 2},
    {DAFL_MSG_SHARES, 2, 4},     {DAFL_MSG_SHARES, 0, 6},
    {DAFL_MSG_SETUP_ACK, 32, 2}, {DAFL_MSG_UPLOAD, 0, 8},
    {DAFL_MSG_END, 0, 8},        {DAFL_MSG_REVEAL, 0, 2},
    {DAFL_MSG_PEERS, 0, 2},      {DAFL_MSG_SETUP, 0, 2},
    {DAFL_MSG_SETUP, 2, 4},      {DAFL_MSG_SETUP, 6, 4},
    {DAFL_MSG_SETUP, 0, 10},     {DAFL_MSG_MODEL, 8, 4},
    {DAFL_MSG_MODEL, 12, 2},     {DAFL_MSG_MODEL, 25, 8},
    {DAFL_MSG_CAST, 0, 2},       {DAFL_MSG_SURV, 0, 2},
    {DAFL_MSG_CONF, 0, 2},
};

/* Segments without end, as many as a MODEL can have and one more. */
static void forge_segments(lane *l, const dafl_envelope *m)
{
    static const dafl_segment empty;
    dafl_writer w = {0};
    dafl_segment *many = calloc(UINT16_MAX, sizeof *many);

    if (many == NULL)
        quit("rogue: no memory");
    dafl_put_model(&w, &(dafl_model_msg){.n = UINT16_MAX}, many);
    dafl_put_fixed(&w, &empty, 19);
    need(dafl_writer_done(&w), "segments", NULL);
    forge_own(l, m, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    free(many);
}

/* A body_len of 2^63 and what is there; no signature can help it. */
static void forge_length(lane *l, dafl_bytes message)
{
    copy c = copy_of(message);

    memset(c.b + AT_LEN, 0, 8);
    c.b[AT_LEN + 7] = 0x80;
    pass(l, view(&c));
    l->forged++;
    free(c.b);
}

static void bomb(lane *l, dafl_bytes message)
{
    dafl_envelope m;

    if (dafl_get_envelope(&m, message, run->config.body_max) != DAFL_FAULT_NONE)
        quit("rogue: a message that is none");
    if (l->seq < m.seq)
        l->seq = m.seq;
    if (!l->seen[m.type]) {
        l->seen[m.type] = true;
        forge_length(l, message);
        for (size_t i = 0; i < sizeof promises / sizeof promises[0]; i++) {
            const promise *p = &promises[i];
            copy c;
            if (p->type != m.type || p->at + p->len > m.body.len)
                continue;
            c = copy_of(m.body);
            memset(c.b + p->at, 0xff, p->len);
            forge_own(l, &m, view(&c));
            free(c.b);
        }
        if (m.type == DAFL_MSG_MODEL)
            forge_segments(l, &m);
    }
    forge(l, &m, m.sender, ++l->seq, m.body, l->signs);
    l->genuine++;
}

static void who(lane *l, dafl_bytes message)
{
    uint64_t late = (uint64_t)UINT32_MAX << 32;
    uint16_t clients = run->roster.n_clients, other = number_of(&other_id);
    const uint16_t names[] = {other, clients, (uint16_t)(clients + 1),
                              UINT16_MAX};
    dafl_envelope m;

    if (l == &lanes[TO_SERVER]) {
        if (dafl_get_envelope(&m, message, run->config.body_max) !=
            DAFL_FAULT_NONE)
            quit("rogue: a message that is none");
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            forge(l, &m, names[i], late, m.body, &client_id);
        /* Another's signature, by our connection: if that counted, nothing
         * that the other says would be new any more. */
        forge(l, &m, other, late, m.body, &other_id);
        forge(l, &m, m.sender, late, m.body, &nobody_id);
        forge(l, &m, m.sender, late, m.body, &other_id);
        l->forged += sizeof names / sizeof names[0] + 3;
    }
    pass(l, message);
    l->genuine++;
}

/* When the server has a training to disturb. */
static void flood(lane *l, dafl_bytes m)
{
    uint8_t junk[AT_BODY + 70] = {0};

    pass(l, m);
    l->genuine++;
    if (l != &lanes[TO_SERVER] || m.ptr[4] != DAFL_MSG_READY || l->forged > 0)
        return;
    for (size_t i = 0; i < FLOOD; i++) {
        size_t len = i % 2 == 0 ? 2 + draw(16) : 2 + draw(sizeof junk - 2);
        if (i % 3 == 0)
            memcpy(junk, m.ptr, AT_BODY);
        else
            for (size_t k = 0; k < len; k++)
                junk[k] = (uint8_t)draw(256);
        pass(l, (dafl_bytes){junk, len});
    }
    l->forged += FLOOD;
}

typedef void carrier(lane *l, dafl_bytes m);

static const struct {
    const char *name;
    carrier *carry;
} modes[] = {
    {"flip", flip}, {"swap", swap},   {"bomb", bomb},
    {"who", who},   {"flood", flood},
};

static bool over; /* the client was told so, and has left */

static bool tells_the_end(dafl_bytes m)
{
    static const uint8_t none[4];

    return m.ptr[4] == DAFL_MSG_RESULT && m.ptr[AT_BODY] == 0 &&
           memcmp(m.ptr + AT_SLOT, none, sizeof none) == 0;
}

static void turn(dafl_link *from, lane *to, carrier *carry)
{
    static bool told;
    link_event e;

    need(link_next(from, &e, 1), "link", NULL);
    if (e.kind == LINK_MESSAGE && !(told && to == &lanes[TO_CLIENT])) {
        told = told || tells_the_end(e.bytes);
        carry(to, e.bytes);
    }
    over = over || (told && e.kind == LINK_LOST);
    if (to->held.b != NULL && now_ms() - to->held_since > SWAP_MS)
        let_go(to);
}

static void print_lane(const char *name, const lane *l, const char *after)
{
    printf("\"%s\": {\"genuine\": %" PRIu64 ", \"flipped\": %" PRIu64
           ", \"again\": %" PRIu64 ", \"old\": %" PRIu64
           ", \"hello_again\": %" PRIu64 ", \"swapped\": %" PRIu64
           ", \"forged\": %" PRIu64 "}%s",
           name, l->genuine, l->flipped, l->again, l->old, l->hello_again,
           l->swapped, l->forged, after);
}

static void relay_by(carrier *carry, char **arg)
{
    dafl_link *down = NULL, *up = NULL;
    link_caps caps = wide_caps();
    dafl_why why = {{0}};
    link_event e = {.kind = LINK_NOTHING};

    load(&server_id, arg[2]);
    load(&client_id, arg[3]);
    load(&other_id, arg[4]);
    need(dafl_identity_new(&nobody_id, "nobody", &why), "keys", &why);
    need(link_connect(&up, arg[1], &client_id, &server_id.public, &caps, &why),
         "connect", &why);
    while (e.kind != LINK_UP)
        need(link_next(up, &e, -1), "link", NULL);
    need(link_listen(&down, arg[0], &server_id, &run->roster, &caps, &why),
         "listen", &why);
    lanes[TO_SERVER] = (lane){.out = up, .signs = &client_id};
    lanes[TO_CLIENT] =
        (lane){.out = down, .to = number_of(&client_id), .signs = &server_id};
    while (!told_to_stop() && !over) {
        turn(down, &lanes[TO_SERVER], carry);
        turn(up, &lanes[TO_CLIENT], carry);
    }
    link_leave(up); /* the server is not to wait for us */
    link_free(&down);
    link_free(&up);
    printf("{");
    print_lane("to_server", &lanes[TO_SERVER], ", ");
    print_lane("to_client", &lanes[TO_CLIENT], "}\n");
    for (int i = 0; i < WAYS; i++) {
        for (size_t k = 0; k < lanes[i].n_past; k++)
            free(lanes[i].past[k].b);
        free(lanes[i].past);
        free(lanes[i].held.b);
    }
}

void relay(const char *name, char **arg)
{
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(name, modes[i].name) == 0)
            relay_by(modes[i].carry, arg);
}
