/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the link share: a roster, links that hear of each other
 * quickly, peers that use ZeroMQ or TCP as they like, and a relay that listens
 * in. All on 127.0.0.1. */
#ifndef DAFL_TESTS_AGENTS_LINK_WORLD_H
#define DAFL_TESTS_AGENTS_LINK_WORLD_H

#include "tests/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <zmq.h>

#include "agents/link.h"

#define CLIENTS 4
#define PATIENCE_MS 8000
#define ANYWHERE "tcp://127.0.0.1:*"

static dafl_secret_identity server_id, client_ids[CLIENTS], stranger_id;
static dafl_roster roster;

static void make_identity(dafl_secret_identity *id, const char *name)
{
    uint8_t seed[64];

    for (size_t i = 0; i < sizeof seed; i++)
        seed[i] = (uint8_t)random_u64();
    assert_ok(dafl_identity_new_derand(id, name, seed, NULL));
}

CHECK_HELPER int make_world(void **state)
{
    dafl_party parties[CLIENTS + 1];

    (void)state;
    check_seed();
    memset(parties, 0, sizeof parties);
    for (size_t i = 0; i < CLIENTS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "site%zu", i);
        make_identity(&client_ids[i], name);
        parties[i].id = client_ids[i].public;
    }
    make_identity(&server_id, "server");
    make_identity(&stranger_id, "stranger");
    parties[CLIENTS] = (dafl_party){
        .id = server_id.public, .role = DAFL_ROLE_SERVER, .cell = DAFL_NO_CELL};
    assert_ok(dafl_roster_make(&roster, parties, CLIENTS + 1, NULL));
    return 0;
}

CHECK_HELPER link_caps quick_caps(void)
{
    return (link_caps){.message = 64 << 10,
                       .in = 1 << 20,
                       .out = 1 << 20,
                       .strangers = 8,
                       .lost_ms = 1000,
                       .handshake_ms = 1000,
                       .linger_ms = 200};
}

/* ---- links ---- */

/* Refusals come when they like: they are put aside. */
static struct {
    const dafl_link *by;
    link_event event;
} refusals[64];
static size_t n_refusals;

static bool put_aside(const dafl_link *l, const link_event *e)
{
    if (e->kind != LINK_REFUSED)
        return false;
    assert_true(n_refusals < COUNT(refusals));
    refusals[n_refusals].by = l;
    refusals[n_refusals++].event = *e;
    return true;
}

CHECK_HELPER dafl_link *serve(const char *endpoint, const link_caps *caps)
{
    dafl_link *l = NULL;
    dafl_why why = {""};

    n_refusals = 0;
    if (link_listen(&l, endpoint, &server_id, &roster, caps, &why) != DAFL_OK)
        fail_msg("%s", why.text);
    return l;
}

CHECK_HELPER dafl_link *join(size_t client, const char *endpoint,
                             const link_caps *caps)
{
    dafl_link *l = NULL;

    assert_ok(link_connect(&l, endpoint, &client_ids[client], &server_id.public,
                           caps, NULL));
    return l;
}

CHECK_HELPER int64_t clock_ms(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

CHECK_HELPER dafl_bytes text_bytes(const char *text)
{
    return (dafl_bytes){(const uint8_t *)text, strlen(text)};
}

/* The next event that is none. */
CHECK_HELPER link_event next(dafl_link *l, int ms)
{
    int64_t end = clock_ms() + ms;
    link_event e;

    do {
        int64_t left = end - clock_ms();
        assert_ok(link_next(l, &e, left > 0 ? (int)left : 0));
    } while (put_aside(l, &e));
    return e;
}

/* The next event must be of this kind and peer. */
CHECK_HELPER link_event expect(dafl_link *l, link_event_kind kind,
                               uint16_t peer)
{
    link_event e = next(l, PATIENCE_MS);

    if (e.kind != kind || e.peer != peer)
        fail_msg("event %d of peer %u (reason %d) instead of %d of %u",
                 (int)e.kind, e.peer, (int)e.reason, (int)kind, peer);
    return e;
}

CHECK_HELPER void expect_lost(dafl_link *l, uint16_t peer, link_reason reason)
{
    assert_string_equal(link_reason_name(expect(l, LINK_LOST, peer).reason),
                        link_reason_name(reason));
}

CHECK_HELPER void expect_text(dafl_link *l, uint16_t peer, const char *text)
{
    link_event e = expect(l, LINK_MESSAGE, peer);

    assert_int_equal(e.bytes.len, strlen(text));
    assert_memory_equal(e.bytes.ptr, text, e.bytes.len);
}

CHECK_HELPER void expect_nothing(dafl_link *l, int ms)
{
    link_event e = next(l, ms);

    if (e.kind != LINK_NOTHING)
        fail_msg("event %d of peer %u (%s)", (int)e.kind, e.peer,
                 link_reason_name(e.reason));
}

/* A refusal for this reason, sooner or later; nothing else comes. */
CHECK_HELPER link_event expect_refusal(dafl_link *l, link_reason reason)
{
    int64_t end = clock_ms() + PATIENCE_MS;

    while (clock_ms() < end) {
        for (size_t i = 0; i < n_refusals; i++)
            if (refusals[i].by == l && refusals[i].event.reason == reason)
                return refusals[i].event;
        expect_nothing(l, 20);
    }
    fail_msg("nobody was refused: %s", link_reason_name(reason));
    return (link_event){.kind = LINK_NOTHING};
}

/* So many refusals, and not one more, for whatever reason. */
CHECK_HELPER void expect_refused(dafl_link *l, uint64_t n)
{
    int64_t end = clock_ms() + PATIENCE_MS;

    while (link_count(l).refused < n && clock_ms() < end)
        expect_nothing(l, 10);
    expect_nothing(l, 50);
    assert_int_equal(link_count(l).refused, n);
}

CHECK_HELPER void send_text(dafl_link *l, uint16_t to, const char *text)
{
    assert_ok(link_send(l, to, text_bytes(text)));
}

/* To somebody who may not be there. */
CHECK_HELPER void try_send(dafl_link *l, uint16_t to, dafl_bytes message)
{
    dafl_err err = link_send(l, to, message);

    assert_true(err == DAFL_OK || err == DAFL_ERR_PEER);
}

/* Both ends know of each other, and talk. */
CHECK_HELPER dafl_link *joined(dafl_link *server, size_t client,
                               const link_caps *caps)
{
    dafl_link *l = join(client, link_endpoint(server), caps);

    (void)expect(server, LINK_UP, (uint16_t)client);
    (void)expect(l, LINK_UP, 0);
    return l;
}

CHECK_HELPER void talk(dafl_link *server, dafl_link *client, uint16_t number)
{
    char text[32];

    (void)snprintf(text, sizeof text, "from %u, %llu", number,
                   (unsigned long long)random_u64());
    send_text(client, 0, text);
    expect_text(server, number, text);
    send_text(server, number, text);
    expect_text(client, 0, text);
}

/* ---- peers with a ZeroMQ of their own ---- */

typedef struct {
    void *ctx, *socket;
} raw_peer;

CHECK_HELPER void raw_set(raw_peer *p, int option, int value)
{
    assert_int_equal(zmq_setsockopt(p->socket, option, &value, sizeof value),
                     0);
}

CHECK_HELPER raw_peer raw_new(void)
{
    raw_peer p = {.ctx = zmq_ctx_new()};

    p.socket = zmq_socket(p.ctx, ZMQ_DEALER);
    assert_non_null(p.socket);
    raw_set(&p, ZMQ_LINGER, 0);
    raw_set(&p, ZMQ_RECONNECT_IVL, -1);
    raw_set(&p, ZMQ_SNDTIMEO, 300);
    return p;
}

/* A DEALER with this key, and this routing id unless NULL. */
CHECK_HELPER raw_peer raw_curve(const dafl_secret_identity *id,
                                const dafl_identity *server,
                                const char *routing_id, const char *endpoint)
{
    raw_peer p = raw_new();

    assert_int_equal(
        zmq_setsockopt(p.socket, ZMQ_CURVE_SERVERKEY, server->curve_pk.b, 32),
        0);
    assert_int_equal(zmq_setsockopt(p.socket, ZMQ_CURVE_PUBLICKEY,
                                    id->public.curve_pk.b, 32),
                     0);
    assert_int_equal(
        zmq_setsockopt(p.socket, ZMQ_CURVE_SECRETKEY, id->curve_sk.b, 32), 0);
    if (routing_id != NULL)
        assert_int_equal(zmq_setsockopt(p.socket, ZMQ_ROUTING_ID, routing_id,
                                        strlen(routing_id)),
                         0);
    assert_int_equal(zmq_connect(p.socket, endpoint), 0);
    return p;
}

CHECK_HELPER void raw_say(raw_peer *p, const char *text)
{
    (void)zmq_send(p->socket, text, strlen(text), 0);
}

/* The next frame that is no ping; false when none comes. */
CHECK_HELPER bool raw_hear(raw_peer *p, char text[64], int ms)
{
    int64_t end = clock_ms() + ms;
    int len;

    raw_set(p, ZMQ_RCVTIMEO, 20);
    do {
        len = zmq_recv(p->socket, text, 63, 0);
        if (len > 1) {
            text[len < 63 ? len : 63] = '\0';
            return true;
        }
    } while (clock_ms() < end);
    return false;
}

CHECK_HELPER void raw_close(raw_peer *p)
{
    (void)zmq_close(p->socket);
    (void)zmq_ctx_term(p->ctx);
}

/* ---- peers that have only TCP ---- */

CHECK_HELPER int tcp_connect(const char *endpoint)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a.sin_port = htons((uint16_t)strtoul(strrchr(endpoint, ':') + 1, NULL, 10));
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

CHECK_HELPER int say_tcp(const char *endpoint, const void *bytes, size_t len)
{
    int fd = tcp_connect(endpoint);

    assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), len);
    return fd;
}

/* Whether the other side hangs up within so much time. */
CHECK_HELPER bool tcp_ends(int fd, int ms)
{
    int64_t end = clock_ms() + ms;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char bytes[512];

    while (clock_ms() < end)
        if (poll(&p, 1, 20) > 0 && recv(fd, bytes, sizeof bytes, 0) <= 0)
            return true;
    return false;
}

/* ---- a relay between a client and a server ---- */

typedef struct {
    int listener, in, out;
    char server[64], endpoint[64];
    atomic_bool stop, frozen;
    pthread_t thread;
    atomic_size_t n; /* bytes recorded */
    uint8_t record[1 << 20];
} relay;

static bool relay_pass(relay *r, int from, int to)
{
    uint8_t bytes[4096];
    ssize_t n = recv(from, bytes, sizeof bytes, 0);

    if (n <= 0)
        return false;
    for (ssize_t i = 0; i < n && r->n < sizeof r->record; i++)
        r->record[r->n++] = bytes[i];
    return send(to, bytes, (size_t)n, MSG_NOSIGNAL) == n;
}

static void *relay_run(void *arg)
{
    relay *r = arg;

    while (!r->stop) {
        struct pollfd p[3] = {
            {r->listener, POLLIN, 0}, {r->in, POLLIN, 0}, {r->out, POLLIN, 0}};
        bool over = false;
        if (r->frozen || poll(p, 3, 10) <= 0) {
            (void)poll(NULL, 0, r->frozen ? 10 : 0);
            continue;
        }
        if (r->in >= 0 && p[1].revents != 0)
            over = !relay_pass(r, r->in, r->out);
        if (r->in >= 0 && p[2].revents != 0)
            over = !relay_pass(r, r->out, r->in) || over;
        if (over || (r->in >= 0 && p[0].revents != 0)) {
            (void)close(r->in);
            (void)close(r->out);
            r->in = r->out = -1;
        }
        if (r->in < 0 && p[0].revents != 0) {
            r->in = accept(r->listener, NULL, NULL);
            r->out = tcp_connect(r->server);
        }
    }
    return NULL;
}

CHECK_HELPER relay *relay_new(const char *server)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t len = sizeof a;
    relay *r = calloc(1, sizeof *r);

    assert_non_null(r);
    r->in = r->out = -1;
    (void)snprintf(r->server, sizeof r->server, "%s", server);
    r->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(r->listener, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(r->listener, 16), 0);
    assert_int_equal(getsockname(r->listener, (struct sockaddr *)&a, &len), 0);
    (void)snprintf(r->endpoint, sizeof r->endpoint, "tcp://127.0.0.1:%u",
                   (unsigned)ntohs(a.sin_port));
    assert_int_equal(pthread_create(&r->thread, NULL, relay_run, r), 0);
    return r;
}

CHECK_HELPER void relay_free(relay *r)
{
    r->stop = true;
    (void)pthread_join(r->thread, NULL);
    (void)close(r->listener);
    (void)close(r->in);
    (void)close(r->out);
    free(r);
}

CHECK_HELPER bool relay_saw(const relay *r, const char *text)
{
    size_t len = strlen(text);

    for (size_t i = 0; i + len <= r->n; i++)
        if (memcmp(r->record + i, text, len) == 0)
            return true;
    return false;
}

/* ---- other processes, and our memory ---- */

/* A child that is told the endpoint when there is one: `if (child_wait(..)) {
 * ..; child_stay(..); }`. Start it before any link. */
typedef struct {
    pid_t pid;
    int pipe[2];
    char endpoint[64];
} child;

CHECK_HELPER bool child_wait(child *c)
{
    assert_int_equal(pipe(c->pipe), 0);
    c->pid = fork();
    assert_true(c->pid >= 0);
    if (c->pid > 0)
        return false;
    (void)close(c->pipe[1]);
    return read(c->pipe[0], c->endpoint, sizeof c->endpoint) ==
           sizeof c->endpoint;
}

/* Stay for so long (-1: for good), but not longer than the parent. */
CHECK_HELPER void child_stay(child *c, int ms)
{
    struct pollfd p = {.fd = c->pipe[0], .events = POLLIN};

    if (poll(&p, 1, ms) != 0)
        _exit(0);
}

CHECK_HELPER void child_go(child *c, const char *endpoint)
{
    (void)snprintf(c->endpoint, sizeof c->endpoint, "%s", endpoint);
    assert_int_equal(write(c->pipe[1], c->endpoint, sizeof c->endpoint),
                     sizeof c->endpoint);
}

CHECK_HELPER void child_end(child *c)
{
    (void)close(c->pipe[0]);
    (void)close(c->pipe[1]);
    (void)kill(c->pid, SIGKILL);
    (void)waitpid(c->pid, NULL, 0);
}

/* Resident bytes of this process. */
CHECK_HELPER size_t resident(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long size = 0, pages = 0;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu %lu", &size, &pages), 2);
    (void)fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* The sanitizer keeps what was freed for a while. */
#ifdef __SANITIZE_ADDRESS__
#define MEMORY_SLACK ((size_t)512 << 20)
#else
#define MEMORY_SLACK ((size_t)0)
#endif

#endif
