/* SPDX-License-Identifier: Apache-2.0 */
/* Parties that hold a key they should not have, or use their own as they should
 * not, against real agents over real sockets. What was sent is printed as JSON
 * when stdin ends.
 *
 *   rogue RELAY CONFIG SEED LISTEN CONNECT SERVER.key CLIENT.key OTHER.key
 *     Stands between one client and the server, with the transport keys of
 *     both, so inside CURVE. Everything genuine is passed on; RELAY says what
 *     is sent besides, in both directions:
 *       flip    each message with bits flipped: every byte of the first of each
 *               type, some of the others; then again, and an older one
 *       swap    messages that follow each other closely change places
 *       bomb    with the signing keys too: messages that promise much
 *       who     with the signing key of the client: for somebody else; and
 *               with those of OTHER, a client, and of nobody in the roster
 *       flood   100,000 small frames to the server
 *   rogue uploads CONFIG SEED CONNECT ROUNDS CLIENT.key..
 *     Clients that never enrol and send chunks of uploads, as long as they may
 *     be: ROUNDS each as fast as they can, then "all" is printed, and on, one
 *     after the other.
 *   rogue dial CONFIG SEED CLIENT.key CONNECT..
 *     A client that connects to one after the other: "1" for each connection
 *     that came to something, else "0". */
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agents/link.h"
#include "agents/runfile.h"
#include "protocol/envelope.h"

enum { FLOOD = 100000, SOME = 3, SWAPS = 2, SWAP_MS = 300 };

/* Where fields of an envelope begin. */
enum { AT_SLOT = 21, AT_LEN = 67, AT_BODY = 75 };

static void quit(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
    exit(1);
}

static void need(dafl_err err, const char *what, const dafl_why *why)
{
    if (err != DAFL_OK)
        quit("rogue: %s: error %d %s", what, (int)err,
             why == NULL ? "" : why->text);
}

static runfile *run;
static uint64_t chance;

/* splitmix64. */
static uint64_t draw(uint64_t below)
{
    uint64_t z = chance += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % below;
}

static uint64_t now_ms(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static bool told_to_stop(void)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

static link_caps wide_caps(void)
{
    link_caps caps = link_caps_default();

    caps.message = (size_t)run->config.body_max + ((size_t)4 << 20);
    caps.in = caps.message;
    caps.out = (size_t)2 << 30;
    return caps;
}

static uint16_t number_of(const dafl_secret_identity *id)
{
    int n = dafl_roster_find(&run->roster, id->public.name);

    if (n < 0)
        quit("rogue: %s is not in the roster", id->public.name);
    return (uint16_t)n;
}

static void load(dafl_secret_identity *id, const char *path)
{
    dafl_why why = {{0}};

    need(dafl_identity_load(id, path, &why), path, &why);
}

/* ---- the relay ---- */

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

static void relay(carrier *carry, char **arg)
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

/* ---- clients that only upload ---- */

typedef struct {
    dafl_secret_identity id;
    dafl_link *link;
    dafl_run_id run;
    bool up, invited;
    uint64_t seq;
    uint64_t sent;
} upstart;

static bool say(upstart *u, uint8_t type, dafl_bytes body)
{
    dafl_envelope m = {.type = type,
                       .run = u->run,
                       .slot = type == DAFL_MSG_HELLO ? 0 : 1,
                       .sender = number_of(&u->id),
                       .seq = (uint64_t)1 << 32 | ++u->seq,
                       .body = body};
    dafl_writer w = {0};
    dafl_err err;

    dafl_put_envelope(&w, &m, &u->id);
    need(dafl_writer_done(&w), "envelope", NULL);
    err = link_send(u->link, 0, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    return err == DAFL_OK;
}

static void hear(upstart *u, int ms)
{
    dafl_writer w = {0};
    dafl_envelope m;
    link_event e;

    need(link_next(u->link, &e, ms), "link", NULL);
    if (e.kind == LINK_UP) {
        u->up = true;
        dafl_put_hello(&w, &(dafl_hello){0});
        (void)say(u, DAFL_MSG_HELLO, dafl_writer_bytes(&w));
        dafl_writer_drop(&w);
    }
    if (e.kind == LINK_LOST)
        u->up = false;
    if (e.kind == LINK_MESSAGE &&
        dafl_get_envelope(&m, e.bytes, run->config.body_max) ==
            DAFL_FAULT_NONE &&
        m.type == DAFL_MSG_INVITE) {
        u->run = m.run;
        u->invited = true;
    }
}

static void uploads(char **arg, int n)
{
    upstart *us = calloc((size_t)n, sizeof *us);
    link_caps caps = wide_caps();
    uint64_t rounds = strtoull(arg[1], NULL, 10), sent = 0;
    dafl_identity server = run->roster.parties[run->roster.n_clients].id;
    dafl_writer body = {0};
    dafl_why why = {{0}};
    bool more = true;

    if (us == NULL)
        quit("rogue: no memory");
    /* One chunk may wait here, the rest where it is to go. */
    caps.out = run->config.chunk + 4096;
    caps.message = caps.in = (size_t)1 << 20;
    dafl_put_u64(&body, 0);
    for (uint32_t i = 0; i < run->config.chunk; i++)
        dafl_put_u8(&body, (uint8_t)i);
    need(dafl_writer_done(&body), "chunk", NULL);
    for (int i = 0; i < n; i++) {
        load(&us[i].id, arg[2 + i]);
        need(link_connect(&us[i].link, arg[0], &us[i].id, &server, &caps, &why),
             "connect", &why);
    }
    for (uint64_t turn = 0; !told_to_stop(); turn++) {
        bool was = more;
        more = false;
        for (int i = 0; i < n; i++) {
            upstart *u = &us[i];
            bool mine = u->sent < rounds || turn % (uint64_t)n == (uint64_t)i;
            hear(u, 0);
            if (u->up && u->invited && mine)
                u->sent += say(u, DAFL_MSG_UPLOAD, dafl_writer_bytes(&body));
            more = more || u->sent < rounds;
        }
        if (was && !more) {
            (void)puts("all");
            (void)fflush(stdout);
        }
        (void)poll(NULL, 0, more ? 1 : 20);
    }
    for (int i = 0; i < n; i++)
        sent += us[i].sent;
    printf("{\"uploads\": %" PRIu64 "}\n", sent);
    for (int i = 0; i < n; i++)
        link_free(&us[i].link);
    dafl_writer_drop(&body);
    free(us);
}

/* ---- connections ---- */

static bool comes_up(const char *endpoint, const dafl_secret_identity *self,
                     const dafl_identity *server)
{
    link_caps caps = wide_caps();
    uint64_t until = now_ms() + 1200;
    dafl_link *l = NULL;
    link_event e = {.kind = LINK_NOTHING};

    caps.handshake_ms = 1000;
    need(link_connect(&l, endpoint, self, server, &caps, NULL), "connect",
         NULL);
    while (e.kind == LINK_NOTHING && now_ms() < until)
        need(link_next(l, &e, 20), "link", NULL);
    link_free(&l);
    return e.kind == LINK_UP;
}

static void dial(char **arg, int n)
{
    dafl_identity server = run->roster.parties[run->roster.n_clients].id;
    dafl_secret_identity id;

    load(&id, arg[0]);
    for (int i = 1; i < n; i++) {
        (void)puts(comes_up(arg[i], &id, &server) ? "1" : "0");
        (void)fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    dafl_why why = {{0}};

    if (argc < 6)
        quit("rogue: see the top of rogue.c");
    need(runfile_load(&run, argv[2], &why), argv[2], &why);
    chance = strtoull(argv[3], NULL, 10);
    if (strcmp(argv[1], "uploads") == 0)
        uploads(argv + 4, argc - 6);
    else if (strcmp(argv[1], "dial") == 0)
        dial(argv + 4, argc - 4);
    else
        for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
            if (strcmp(argv[1], modes[i].name) == 0 && argc == 9)
                relay(modes[i].carry, argv + 4);
    runfile_free(&run);
    return 0;
}
