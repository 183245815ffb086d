/* SPDX-License-Identifier: Apache-2.0 */
#include "agents/link_peers.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "agents/link_weaken.h"

#define BACKLOG_MIN 2
#define BACKLOG_MAX 64
#define LOOK_MS 50 /* between two looks at all connections */

dafl_err peers_init(link_peers *p, uint16_t n, const link_caps *caps,
                    link_mail *mail)
{
    memset(p, 0, sizeof *p);
    p->mail = mail;
    p->caps = *caps;
    p->n = n;
    /* One of each peer, strangers, and as many that were cut and linger. */
    p->n_conns = (size_t)2 * n + (size_t)2 * caps->strangers;
    p->peers = calloc(n, sizeof *p->peers);
    p->conns = calloc(p->n_conns, sizeof *p->conns);
    if (p->peers == NULL || p->conns == NULL) {
        peers_drop(p);
        return DAFL_ERR_NOMEM;
    }
    for (size_t i = 0; i < p->n_conns; i++)
        p->conns[i].fd = -1;
    return DAFL_OK;
}

void peers_drop(link_peers *p)
{
    free(p->peers);
    free(p->conns);
    memset(p, 0, sizeof *p);
}

int peers_backlog(const link_caps *caps, uint16_t n_peers)
{
    size_t n = caps->in / caps->message / (n_peers > 4 ? n_peers : 4);

    return n < BACKLOG_MIN ? BACKLOG_MIN
                           : (int)(n < BACKLOG_MAX ? n : BACKLOG_MAX);
}

static bool same_rid(const link_rid *a, const link_rid *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static link_conn *find(link_peers *p, int fd)
{
    for (size_t i = 0; i < p->n_conns; i++)
        if (p->conns[i].fd == fd)
            return &p->conns[i];
    return NULL;
}

static void cut(link_conn *c, link_reason reason)
{
    if (c->cut)
        return;
    c->cut = true;
    c->reason = reason;
    (void)shutdown(c->fd, SHUT_RDWR);
}

/* ---- connections ---- */

static void name_address(char out[64], int fd)
{
    struct sockaddr_storage s = {0};
    const struct sockaddr_in *v4 = (const void *)&s;
    const struct sockaddr_in6 *v6 = (const void *)&s;
    socklen_t len = sizeof s;

    (void)snprintf(out, 64, "unknown address");
    if (getpeername(fd, (void *)&s, &len) != 0)
        return;
    if (s.ss_family == AF_INET)
        (void)inet_ntop(AF_INET, &v4->sin_addr, out, 64);
    else if (s.ss_family == AF_INET6)
        (void)inet_ntop(AF_INET6, &v6->sin6_addr, out, 64);
}

/* The newest stranger is the likeliest to be somebody: make room among the
 * others. */
static void bound_strangers(link_peers *p)
{
    link_conn *oldest = NULL;
    size_t n = 0;

    for (size_t i = 0; i < p->n_conns; i++) {
        link_conn *c = &p->conns[i];
        if (c->fd < 0 || c->named || c->cut)
            continue;
        n++;
        if (oldest == NULL || c->since < oldest->since)
            oldest = c;
    }
    if (n > p->caps.strangers)
        cut(oldest, LINK_TOO_MANY);
}

void peers_opened(link_peers *p, int fd, uint64_t now)
{
    char address[64];
    link_reason reason;
    link_conn *c;

    /* Whatever had this number before has ended. */
    (void)peers_closed(p, fd, address, &reason);
    c = find(p, -1);
    if (c == NULL) {
        (void)shutdown(fd, SHUT_RDWR);
        return;
    }
    memset(c, 0, sizeof *c);
    c->fd = fd;
    c->since = now;
    name_address(c->address, fd);
    bound_strangers(p);
}

bool peers_closed(link_peers *p, int fd, char address[64], link_reason *reason)
{
    link_conn *c = fd >= 0 ? find(p, fd) : NULL;

    if (c == NULL)
        return false;
    c->fd = -1;
    if (c->named) {
        link_peer *q = &p->peers[c->peer];
        if (q->up && same_rid(&q->rid, &c->rid))
            q->closing = true;
        return false;
    }
    memcpy(address, c->address, sizeof c->address);
    if (c->cut)
        *reason = c->reason;
    return true;
}

/* ---- peers ---- */

void peers_lose(link_peers *p, uint16_t peer, link_reason reason)
{
    link_peer *q = &p->peers[peer];
    link_account *a = mail_account(p->mail, peer);

    if (!q->up)
        return;
    if (reason == LINK_CLOSED && q->bye)
        reason = LINK_LEFT;
    q->up = q->closing = q->bye = false;
    a->up = false;
    a->slow = false;
    q->retired[q->n_retired++ % LINK_RETIRED] = q->rid;
    for (size_t i = 0; i < p->n_conns; i++) {
        link_conn *c = &p->conns[i];
        if (c->fd >= 0 && c->named && c->peer == peer &&
            same_rid(&c->rid, &q->rid))
            cut(c, reason);
    }
    mail_put(p->mail,
             &(link_event){.kind = LINK_LOST, .peer = peer, .reason = reason});
}

void peers_drained(link_peers *p)
{
    for (uint16_t i = 0; i < p->n; i++)
        if (p->peers[i].closing)
            peers_lose(p, i, LINK_CLOSED);
}

static bool retired(const link_peer *q, const link_rid *rid)
{
    unsigned n = q->n_retired < LINK_RETIRED ? q->n_retired : LINK_RETIRED;

    for (unsigned i = 0; i < n; i++)
        if (same_rid(&q->retired[i], rid))
            return true;
    return false;
}

static void take_over(link_peers *p, uint16_t peer, const link_rid *rid,
                      link_conn *c)
{
    link_peer *q = &p->peers[peer];

    peers_lose(p, peer, q->closing ? LINK_CLOSED : LINK_REPLACED);
    if (c != NULL && !c->named) {
        c->named = true;
        c->peer = peer;
        c->rid = *rid;
    }
    q->up = true;
    q->rid = *rid;
    mail_account(p->mail, peer)->up = true;
    mail_put(p->mail, &(link_event){.kind = LINK_UP, .peer = peer});
}

/* With the short or long head that ZMTP gives a frame. */
static size_t on_the_wire(size_t len)
{
    len += LINK_CURVE_ADDS;
    return len + (len <= 255 ? 2 : 9);
}

peers_verdict peers_frame(link_peers *p, uint16_t peer, const link_rid *rid,
                          int fd, size_t len, uint64_t now)
{
    link_peer *q = &p->peers[peer];
    link_conn *c = fd >= 0 ? find(p, fd) : NULL;
    peers_verdict verdict = PEERS_SAME;

    if (!q->up || !same_rid(&q->rid, rid)) {
        if (retired(q, rid))
            return PEERS_STALE;
        take_over(p, peer, rid, c);
        verdict = PEERS_NEW;
    }
    if (c != NULL && c->named && same_rid(&c->rid, rid))
        c->taken += on_the_wire(len);
    q->heard = now;
    return verdict;
}

/* ---- time ---- */

/* libzmq shows the parts of a message when it has them all, counts messages and
 * not parts, and so collects an endless one without a bound. The kernel knows
 * how much has come; we know how much we were given. */
static bool holds_too_much(const link_peers *p, const link_conn *c)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof info;
    int buffer = 0;
    uint64_t most = p->caps.in / 4 + 4 * (uint64_t)p->caps.message;

    if (LINK_WEAK(PARTS) ||
        getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
        return false;
    len = sizeof buffer;
    if (getsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &buffer, &len) != 0)
        return false;
    /* The rest: the kernel's buffer, and the handshake. */
    most += 2 * (uint64_t)buffer + 65536;
    return info.tcpi_bytes_received > c->taken + most;
}

static void check_conn(link_peers *p, link_conn *c, uint64_t now)
{
    if (c->fd < 0 || c->cut)
        return;
    if (!c->named &&
        now - c->since > (uint64_t)p->caps.handshake_ms + p->caps.lost_ms) {
        cut(c, LINK_STALLED);
    } else if (holds_too_much(p, c)) {
        if (c->named && same_rid(&c->rid, &p->peers[c->peer].rid))
            peers_lose(p, c->peer, LINK_TOO_MUCH);
        cut(c, LINK_TOO_MUCH);
    }
}

void peers_tick(link_peers *p, bool deaf, uint64_t now)
{
    /* A process that was stopped has heard nobody either. */
    if (now - p->ticked > p->caps.lost_ms / 2)
        deaf = true;
    p->ticked = now;
    for (uint16_t i = 0; i < p->n; i++) {
        link_peer *q = &p->peers[i];
        if (!q->up)
            continue;
        if (deaf)
            q->heard = now;
        if (mail_account(p->mail, i)->slow)
            peers_lose(p, i, LINK_SLOW);
        else if (now - q->heard > p->caps.lost_ms)
            peers_lose(p, i, LINK_SILENT);
    }
    if (now - p->looked < LOOK_MS)
        return;
    p->looked = now;
    for (size_t i = 0; i < p->n_conns; i++)
        check_conn(p, &p->conns[i], now);
}
