/* SPDX-License-Identifier: Apache-2.0 */
#include "agents/link.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agents/link_state.h"

#define BATCH 256          /* messages between looks at everything else */
#define TICK_MS 100        /* longest time between two such looks */
#define REDIAL_MS 100      /* the first time, then twice as long .. */
#define REDIAL_MAX_MS 5000 /* .. up to this */

link_caps link_caps_default(void)
{
    return (link_caps){.message = (size_t)16 << 20,
                       .in = (size_t)128 << 20,
                       .out = (size_t)256 << 20,
                       .strangers = 64,
                       .lost_ms = 15000,
                       .handshake_ms = 10000,
                       .linger_ms = 2000};
}

const char *link_reason_name(link_reason reason)
{
    static const char *const names[] = {
        [LINK_CLOSED] = "connection closed",
        [LINK_LEFT] = "it has left",
        [LINK_SILENT] = "silent for too long",
        [LINK_SLOW] = "too slow to take what is sent",
        [LINK_REPLACED] = "replaced by a second connection with its key",
        [LINK_TOO_MUCH] = "sends more than a message may have",
        [LINK_STRANGER] = "a key that is not in the roster",
        [LINK_OTHER_CURVE] = "the keys do not fit",
        [LINK_NO_CURVE] = "does not use CURVE",
        [LINK_NO_ZMTP] = "does not speak ZMTP 3",
        [LINK_STALLED] = "handshake not finished",
        [LINK_HUNG_UP] = "hung up during the handshake",
        [LINK_TOO_MANY] = "too many connections",
        [LINK_UNAUTHORISED] = "the server does not let us in",
    };

    return (size_t)reason < sizeof names / sizeof names[0] ? names[reason]
                                                           : "unknown";
}

uint64_t link_now(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void link_refuse(dafl_link *l, link_reason reason, const char *who)
{
    l->n_refused++;
    refused_note(&l->refused, l->mail, reason, who, link_now());
}

/* ---- the thread: frames ---- */

static void post(dafl_link *l, link_ticket *t)
{
    uint16_t to = t->to;
    size_t len = t->parcel->len; /* the ticket is gone then */

    if (door_post(l, t)) {
        l->bytes_out += len;
        l->peers.peers[to].said = link_now();
    } else {
        peers_lose(&l->peers, to, LINK_CLOSED);
    }
}

static void say(dafl_link *l, uint16_t to, uint8_t byte)
{
    link_parcel *p = mail_parcel(l->mail, to, (dafl_bytes){&byte, 1});

    if (p == NULL)
        mail_break(l->mail, DAFL_ERR_NOMEM);
    else
        post(l, &p->tickets[0]);
}

static void post_all(dafl_link *l)
{
    for (link_parcel *p = mail_take_all(l->mail), *next; p != NULL; p = next) {
        uint16_t n = p->n; /* the last ticket may free it */
        next = p->next;
        for (uint16_t i = 0; i < n; i++)
            post(l, &p->tickets[i]);
    }
}

void link_frame(dafl_link *l, uint16_t peer, const link_rid *rid, int fd,
                dafl_bytes frame, bool part)
{
    l->bytes_in += frame.len;
    switch (peers_frame(&l->peers, peer, rid, fd, frame.len, link_now())) {
    case PEERS_STALE:
        l->stale++;
        return;
    case PEERS_NEW:
        if (l->listens)
            say(l, peer, LINK_PING); /* the answer to the first frame */
        break;
    case PEERS_SAME:
        break;
    }
    if (part || frame.len < 1 || frame.len > l->caps.message ||
        (frame.len == 1 && frame.ptr[0] != LINK_PING &&
         frame.ptr[0] != LINK_BYE))
        l->malformed++;
    else if (frame.len == 1 && frame.ptr[0] == LINK_BYE)
        l->peers.peers[peer].bye = true;
    else if (frame.len > 1)
        mail_put(
            l->mail,
            &(link_event){.kind = LINK_MESSAGE, .peer = peer, .bytes = frame});
}

/* Up to a batch, but no more than the owner has room for; whether that was
 * all. */
static bool read_some(dafl_link *l)
{
    for (int n = 0; n < BATCH && !mail_full(l->mail); n++)
        if (!door_read(l))
            return true;
    return false;
}

/* ---- the thread: connections ---- */

/* A client's: end the one, when all that came by it was read, and begin the
 * next. */
static void keep_dialled(dafl_link *l, bool drained)
{
    uint64_t now = link_now();
    bool up = l->peers.peers[0].up;

    if (l->socket != NULL &&
        ((l->gone && drained) || (!up && now > l->give_up_at))) {
        peers_lose(&l->peers, 0, LINK_CLOSED);
        door_close(l, true);
        /* Two programs with one key end each other's connections: only one
         * that has lasted makes the next pause short again. */
        if (l->shaken && now - l->dialled >= REDIAL_MAX_MS)
            l->redial_ms = REDIAL_MS;
        l->dial_at = now + l->redial_ms;
        l->redial_ms *= 2;
        if (l->redial_ms > REDIAL_MAX_MS)
            l->redial_ms = REDIAL_MAX_MS;
    }
    if (l->socket == NULL && now >= l->dial_at) {
        l->dials++;
        l->dialled = now;
        l->shaken = l->gone = false;
        l->peers.peers[0].said = 0;
        l->give_up_at = now + 2 * (uint64_t)l->caps.handshake_ms;
        if (!door_open(l))
            l->dial_at = now + REDIAL_MAX_MS;
    }
}

/* Whoever has had nothing from us for a while gets a ping; the server also as
 * the first frame of a connection. */
static void keep_alive(dafl_link *l)
{
    uint64_t now = link_now();

    for (uint16_t i = 0; i < l->peers.n; i++) {
        const link_peer *q = &l->peers.peers[i];
        if ((q->up || l->shaken) && now - q->said >= l->caps.lost_ms / 4)
            say(l, i, LINK_PING);
    }
}

static void *run(void *link)
{
    dafl_link *l = link;
    long tick = (long)(l->caps.lost_ms / 8);
    bool drained;

    while (!l->stop && !mail_broken(l->mail)) {
        door_wait(l, tick < TICK_MS ? tick : TICK_MS);
        drained = read_some(l);
        if (drained)
            peers_drained(&l->peers);
        post_all(l);
        peers_tick(&l->peers, mail_full(l->mail), link_now());
        if (!l->listens)
            keep_dialled(l, drained);
        keep_alive(l);
    }
    post_all(l);
    if (l->leaving && l->peers.peers[0].up)
        say(l, 0, LINK_BYE);
    door_close(l, false);
    return NULL;
}

/* Signals are the owner's. */
static bool start(dafl_link *l)
{
    sigset_t all, before;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    l->running = pthread_create(&l->thread, NULL, run, l) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return l->running;
}

/* ---- the owner ---- */

static bool caps_ok(const link_caps *c)
{
    return c->message >= 1024 && c->message <= SIZE_MAX / 16 &&
           c->in >= c->message && c->in <= SIZE_MAX / 16 && c->out >= 1024 &&
           c->out <= SIZE_MAX / 16 && c->strangers >= 1 &&
           c->strangers <= 65536 && c->lost_ms >= 100 &&
           c->lost_ms <= INT_MAX && c->handshake_ms >= 100 &&
           c->handshake_ms <= INT_MAX && c->linger_ms <= INT_MAX;
}

static dafl_err begin(dafl_link **out, dafl_link *l, uint16_t n_peers,
                      dafl_why *why)
{
    const char *problem = NULL;
    dafl_err err = mail_new(&l->mail, n_peers, &l->caps);

    if (err == DAFL_OK)
        err = peers_init(&l->peers, n_peers, &l->caps, l->mail);
    if (err == DAFL_OK)
        err = door_new(l, &problem);
    if (err != DAFL_OK) {
        err = dafl_fail(why, err, "%s: cannot %s: %s", l->endpoint,
                        l->listens ? "listen" : "connect",
                        problem != NULL ? problem : dafl_err_name(err));
    } else if (!start(l)) {
        err = dafl_fail(why, DAFL_ERR_SYS, "cannot start a thread");
        door_close(l, true);
    }
    if (err != DAFL_OK) {
        link_free(&l);
        return err;
    }
    *out = l;
    return DAFL_OK;
}

/* 1 to 65535; to listen also 0 or *, one that is free. ZeroMQ would take the
 * remainder of a larger number, and ignore what follows it. */
static bool port_ok(const char *text, bool listens)
{
    size_t n = strlen(text);
    unsigned long port;

    if (listens && strcmp(text, "*") == 0)
        return true;
    if (n == 0 || n > 5 || strspn(text, "0123456789") != n)
        return false;
    port = strtoul(text, NULL, 10);
    return port <= 65535 && (listens || port > 0);
}

/* Other transports have no addresses and no descriptors to tell. */
static bool endpoint_ok(const char *text, bool listens)
{
    const char *host = text + 6, *colon = strrchr(text, ':');
    const char *inner;

    if (strncmp(text, "tcp://", 6) != 0 ||
        strlen(text) >= sizeof(((dafl_link *)NULL)->endpoint) ||
        colon <= host || !port_ok(colon + 1, listens))
        return false;
    inner = strchr(host, ':'); /* of an IPv6 address */
    return (inner == colon || (host[0] == '[' && colon[-1] == ']')) &&
           (listens || host[0] != '*');
}

static dafl_err prepare(dafl_link **out, const char *endpoint, bool listens,
                        const dafl_secret_identity *self, const link_caps *caps,
                        dafl_why *why)
{
    dafl_link *l;

    if (!caps_ok(caps))
        return dafl_fail(why, DAFL_ERR_ARG, "the link's caps are out of range");
    if (!endpoint_ok(endpoint, listens))
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "'%.80s' is not 'tcp://ADDRESS:PORT' with a port up "
                         "to 65535; an IPv6 address stands in brackets",
                         endpoint);
    l = calloc(1, sizeof *l);
    if (l == NULL)
        return dafl_fail(why, DAFL_ERR_NOMEM, "no memory for the link");
    (void)snprintf(l->endpoint, sizeof l->endpoint, "%s", endpoint);
    l->listens = listens;
    l->self = self;
    l->caps = *caps;
    l->failed = -1;
    l->redial_ms = REDIAL_MS;
    zap_draw_token(&l->token);
    *out = l;
    return DAFL_OK;
}

dafl_err link_listen(dafl_link **out, const char *endpoint,
                     const dafl_secret_identity *self,
                     const dafl_roster *roster, const link_caps *caps,
                     dafl_why *why)
{
    dafl_link *l = NULL;

    DAFL_TRY(prepare(&l, endpoint, true, self, caps, why));
    l->roster = roster;
    return begin(out, l, roster->n, why);
}

dafl_err link_connect(dafl_link **out, const char *endpoint,
                      const dafl_secret_identity *self,
                      const dafl_identity *server, const link_caps *caps,
                      dafl_why *why)
{
    dafl_link *l = NULL;

    DAFL_TRY(prepare(&l, endpoint, false, self, caps, why));
    l->server = server;
    l->dialled = link_now();
    l->give_up_at = l->dialled + 2 * (uint64_t)caps->handshake_ms;
    return begin(out, l, 1, why);
}

void link_leave(dafl_link *l)
{
    l->leaving = !l->listens;
}

void link_free(dafl_link **link)
{
    dafl_link *l = *link;

    if (l == NULL)
        return;
    if (l->running) {
        l->stop = true;
        mail_ring(l->mail);
        (void)pthread_join(l->thread, NULL);
    }
    door_free(l);
    mail_free(&l->mail);
    peers_drop(&l->peers);
    free(l);
    *link = NULL;
}

const char *link_endpoint(const dafl_link *l)
{
    return l->endpoint;
}

dafl_err link_send(dafl_link *l, uint16_t to, dafl_bytes message)
{
    if (!l->listens)
        to = 0;
    return mail_send(l->mail, &to, 1, message);
}

dafl_err link_send_all(dafl_link *l, const dafl_members *to, dafl_bytes message)
{
    uint16_t list[DAFL_CLIENTS_MAX];
    size_t n = 0;

    for (uint16_t i = 0; i < to->n; i++)
        if (dafl_members_has(to, i))
            list[n++] = i;
    return n == 0 ? DAFL_OK : mail_send(l->mail, list, n, message);
}

dafl_err link_next(dafl_link *l, link_event *out, int timeout_ms)
{
    return mail_next(l->mail, out, timeout_ms);
}

void link_wake(dafl_link *l)
{
    mail_wake(l->mail);
}

link_counts link_count(const dafl_link *l)
{
    return (link_counts){.bytes_in = l->bytes_in,
                         .bytes_out = l->bytes_out,
                         .unnamed = l->unnamed,
                         .stale = l->stale,
                         .malformed = l->malformed,
                         .refused = l->n_refused};
}

bool link_is_up(const dafl_link *l, uint16_t peer)
{
    return peer < l->peers.n && mail_account(l->mail, peer)->up;
}
