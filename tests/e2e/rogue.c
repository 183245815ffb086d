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

#include "tests/e2e/rogue.h"

void quit(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
    exit(1);
}

void need(dafl_err err, const char *what, const dafl_why *why)
{
    if (err != DAFL_OK)
        quit("rogue: %s: error %d %s", what, (int)err,
             why == NULL ? "" : why->text);
}

runfile *run;
uint64_t chance;

/* splitmix64. */
uint64_t draw(uint64_t below)
{
    uint64_t z = chance += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % below;
}

uint64_t now_ms(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

bool told_to_stop(void)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

link_caps wide_caps(void)
{
    link_caps caps = link_caps_default();

    caps.message = (size_t)run->config.body_max + ((size_t)4 << 20);
    caps.in = caps.message;
    caps.out = (size_t)2 << 30;
    return caps;
}

uint16_t number_of(const dafl_secret_identity *id)
{
    int n = dafl_roster_find(&run->roster, id->public.name);

    if (n < 0)
        quit("rogue: %s is not in the roster", id->public.name);
    return (uint16_t)n;
}

void load(dafl_secret_identity *id, const char *path)
{
    dafl_why why = {{0}};

    need(dafl_identity_load(id, path, &why), path, &why);
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
    for (int i = 0; i < n; i++) {
        link_leave(us[i].link);
        link_free(&us[i].link);
    }
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
    else if (argc == 9)
        relay(argv[1], argv + 4);
    runfile_free(&run);
    return 0;
}
