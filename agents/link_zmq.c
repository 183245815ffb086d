/* SPDX-License-Identifier: Apache-2.0 */
/* The only file that knows ZeroMQ. One thread owns every socket of a link: the
 * ROUTER or DEALER, its monitor, and the server's ZAP handler. That one I/O
 * thread feeds them all, and that this one thread answers the handler's
 * questions, gives an order to rely on: before a connection is let in, all that
 * the monitor had to say about its descriptor has been heard.
 *
 * Left out on purpose:
 * - ZMQ_ROUTER_HANDOVER: a peer that claims another's routing id would get that
 *   one's messages. Our clients claim none; libzmq makes up a new id for every
 *   connection, so coming back needs no handover.
 * - ZMTP heartbeats: libzmq takes a connection for dead whose input it has
 *   stopped itself because its own side is slow to read, and it answers them
 *   even while the thread behind it hangs. The ping (link.h) has neither fault.
 * - libzmq's reconnecting: it gives up for good after a protocol error, and
 *   mixes what came by the old connection with the new one. A client has one
 *   socket for each connection instead. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <zmq.h>

#include "agents/link_state.h"
#include "agents/link_weaken.h"

/* A DRAFT macro that 4.3.4 honours: without a handler nobody comes in. */
#define ZAP_ENFORCE_DOMAIN 93
#define ZAP_ENDPOINT "inproc://zeromq.zap.01"

/* ---- sockets ---- */

static bool set_int(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof value) == 0;
}

static bool set_bytes(void *socket, int option, const void *bytes, size_t len)
{
    return zmq_setsockopt(socket, option, bytes, len) == 0;
}

/* Queues are bounded by their bytes on the way out (link_mail.c), by messages
 * and MAXMSGSIZE on the way in. */
static bool set_common(const dafl_link *l, void *s)
{
    int64_t longest = (int64_t)l->caps.message + LINK_CURVE_ADDS;

    return set_bytes(s, ZMQ_MAXMSGSIZE, &longest, sizeof longest) &&
           set_int(s, ZMQ_RCVHWM, peers_backlog(&l->caps, l->peers.n)) &&
           set_int(s, ZMQ_SNDHWM, 0) &&
           set_int(s, ZMQ_LINGER, (int)l->caps.linger_ms) &&
           set_int(s, ZMQ_HANDSHAKE_IVL, (int)l->caps.handshake_ms) &&
           set_int(s, ZMQ_IPV6, 1) && set_int(s, ZMQ_TCP_KEEPALIVE, 1) &&
           set_bytes(s, ZMQ_CURVE_SECRETKEY, l->self->curve_sk.b,
                     sizeof l->self->curve_sk.b);
}

static bool set_server(void *s)
{
    return set_int(s, ZMQ_CURVE_SERVER, 1) &&
           set_bytes(s, ZMQ_ZAP_DOMAIN, ZAP_DOMAIN, strlen(ZAP_DOMAIN)) &&
           (LINK_WEAK(ENFORCE) || set_int(s, ZAP_ENFORCE_DOMAIN, 1)) &&
           set_int(s, ZMQ_ROUTER_MANDATORY, 1) &&
           set_int(s, ZMQ_ROUTER_HANDOVER, LINK_WEAK(ROUTING)) &&
           set_int(s, ZMQ_BACKLOG, DAFL_PARTIES_MAX);
}

static bool set_client(const dafl_link *l, void *s)
{
    return set_bytes(s, ZMQ_CURVE_PUBLICKEY, l->self->public.curve_pk.b,
                     sizeof l->self->public.curve_pk.b) &&
           set_bytes(s, ZMQ_CURVE_SERVERKEY, l->server->curve_pk.b,
                     sizeof l->server->curve_pk.b) &&
           set_int(s, ZMQ_CONNECT_TIMEOUT, (int)l->caps.handshake_ms) &&
           set_int(s, ZMQ_RECONNECT_IVL, -1) && set_int(s, ZMQ_IMMEDIATE, 1);
}

static bool watch(dafl_link *l)
{
    char name[40];

    (void)snprintf(name, sizeof name, "inproc://monitor-%u",
                   (unsigned)l->dials);
    if (zmq_socket_monitor(l->socket, name, ZMQ_EVENT_ALL) != 0)
        return false;
    l->monitor = zmq_socket(l->ctx, ZMQ_PAIR);
    /* No bound: the transport's thread must never wait for us. */
    return l->monitor != NULL && set_int(l->monitor, ZMQ_LINGER, 0) &&
           set_int(l->monitor, ZMQ_RCVHWM, 0) &&
           zmq_connect(l->monitor, name) == 0;
}

static void close_socket(void **socket)
{
    if (*socket != NULL)
        (void)zmq_close(*socket);
    *socket = NULL;
}

void door_close(dafl_link *l, bool now)
{
    if (l->socket != NULL) {
        if (now)
            (void)set_int(l->socket, ZMQ_LINGER, 0);
        (void)zmq_socket_monitor(l->socket, NULL, 0);
    }
    close_socket(&l->monitor);
    close_socket(&l->socket);
    if (l->listens)
        close_socket(&l->zap);
}

bool door_open(dafl_link *l)
{
    int saved;

    l->socket = zmq_socket(l->ctx, l->listens ? ZMQ_ROUTER : ZMQ_DEALER);
    if (l->socket != NULL && set_common(l, l->socket) &&
        (l->listens ? set_server(l->socket) : set_client(l, l->socket)) &&
        watch(l) &&
        (l->listens ? zmq_bind(l->socket, l->endpoint)
                    : zmq_connect(l->socket, l->endpoint)) == 0)
        return true;
    saved = errno;
    door_close(l, true);
    errno = saved;
    return false;
}

/* The handler's place in the context: from here on it is asked. */
static bool open_handler(dafl_link *l)
{
    if (LINK_WEAK(ZAP))
        return true;
    l->zap = zmq_socket(l->ctx, ZMQ_REP);
    return l->zap != NULL && set_int(l->zap, ZMQ_LINGER, 0) &&
           zmq_bind(l->zap, ZAP_ENDPOINT) == 0;
}

/* An IPv4 address as people write it, not as part of IPv6. */
static void write_plainly(char *endpoint)
{
    static const char mapped[] = "tcp://[::ffff:";
    const size_t n = sizeof mapped - 1;
    char *end = strchr(endpoint, ']');

    if (strncmp(endpoint, mapped, n) != 0 || end == NULL ||
        strchr(endpoint, '.') == NULL)
        return;
    memmove(end, end + 1, strlen(end));
    memmove(endpoint + 6, endpoint + n, strlen(endpoint + n) + 1);
}

static const char *name_problem(const dafl_link *l, int code)
{
    /* What ZeroMQ says of a name: it does not look names up to listen. */
    if (l->listens && (code == EAGAIN || code == ENODEV || code == EINVAL))
        return "to listen takes an address of this machine in numbers, or * "
               "for all of them";
    return zmq_strerror(code);
}

dafl_err door_new(dafl_link *l, const char **problem)
{
    size_t len = sizeof l->endpoint;
    int code;

    l->ctx = zmq_ctx_new();
    if (l->ctx != NULL && zmq_ctx_set(l->ctx, ZMQ_IO_THREADS, 1) == 0 &&
        (!l->listens || open_handler(l)) && door_open(l) &&
        (!l->listens || zmq_getsockopt(l->socket, ZMQ_LAST_ENDPOINT,
                                       l->endpoint, &len) == 0)) {
        write_plainly(l->endpoint);
        return DAFL_OK;
    }
    code = errno;
    *problem = name_problem(l, code);
    door_close(l, true);
    if (code == ENOMEM)
        return DAFL_ERR_NOMEM;
    return code == EMFILE ? DAFL_ERR_SYS : DAFL_ERR_INPUT;
}

void door_free(dafl_link *l)
{
    if (l->ctx != NULL)
        while (zmq_ctx_term(l->ctx) != 0 && errno == EINTR)
            ;
    l->ctx = NULL;
}

/* ---- connections that begin and end ---- */

static link_reason reason_of(uint16_t event, int32_t value)
{
    if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
        return LINK_UNAUTHORISED;
    if (event == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL)
        return value == EPIPE || value == ECONNRESET ? LINK_HUNG_UP
                                                     : LINK_STALLED;
    if (value == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH)
        return LINK_NO_CURVE;
    if (value == ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC)
        return LINK_OTHER_CURVE;
    return LINK_NO_ZMTP;
}

/* The server's. A failed handshake and the end of its connection come one
 * right after the other, except when the handler has said no: that is told
 * already, and the peer goes when it likes. */
static void conn_ended(dafl_link *l, int fd)
{
    char address[64];
    link_reason reason = l->failed >= 0 ? (link_reason)l->failed : LINK_NO_ZMTP;
    bool stranger = peers_closed(&l->peers, fd, address, &reason);

    if (stranger && l->failed < 0 && l->turned_away > 0)
        l->turned_away--;
    else if (stranger)
        link_refuse(l, reason, address);
    l->failed = -1;
}

static void heard_at_server(dafl_link *l, uint16_t event, int32_t value)
{
    switch (event) {
    case ZMQ_EVENT_ACCEPTED:
        peers_opened(&l->peers, value, link_now());
        break;
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
        l->turned_away++;
        break;
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
        l->failed = (int)reason_of(event, value);
        break;
    case ZMQ_EVENT_DISCONNECTED:
        conn_ended(l, value);
        break;
    default:
        break;
    }
}

static void heard_at_client(dafl_link *l, uint16_t event, int32_t value)
{
    char address[64];
    link_reason reason;

    switch (event) {
    case ZMQ_EVENT_CONNECTED:
        peers_opened(&l->peers, value, link_now());
        break;
    case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
        l->shaken = true;
        break;
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
        link_refuse(l, reason_of(event, value), l->endpoint);
        l->gone = true;
        break;
    case ZMQ_EVENT_DISCONNECTED:
    case ZMQ_EVENT_CLOSED:
        (void)peers_closed(&l->peers, value, address, &reason);
        l->gone = true;
        break;
    default:
        break;
    }
}

/* An event is u16 what, i32 value, and a second part with the endpoint. */
static void hear_monitor(dafl_link *l)
{
    uint8_t head[6];
    char endpoint[256];

    while (l->monitor != NULL && zmq_recv(l->monitor, head, sizeof head,
                                          ZMQ_DONTWAIT) == sizeof head) {
        uint16_t event;
        int32_t value;
        memcpy(&event, head, sizeof event);
        memcpy(&value, head + sizeof event, sizeof value);
        (void)zmq_recv(l->monitor, endpoint, sizeof endpoint, ZMQ_DONTWAIT);
        if (l->listens)
            heard_at_server(l, event, value);
        else
            heard_at_client(l, event, value);
    }
}

/* ---- handshakes ---- */

/* All parts of a request; false if there are more, fewer or longer ones. */
static bool read_request(void *zap, zap_part request[ZAP_PARTS])
{
    bool fits = true, more = true;
    size_t n = 0;

    for (; more; n++) {
        zmq_msg_t m;
        (void)zmq_msg_init(&m);
        if (zmq_msg_recv(&m, zap, ZMQ_DONTWAIT) < 0) {
            (void)zmq_msg_close(&m);
            return false;
        }
        more = zmq_msg_more(&m);
        fits = fits && n < ZAP_PARTS && zmq_msg_size(&m) <= sizeof request[0].b;
        if (fits) {
            request[n].len = zmq_msg_size(&m);
            memcpy(request[n].b, zmq_msg_data(&m), request[n].len);
        }
        (void)zmq_msg_close(&m);
    }
    return fits && n == ZAP_PARTS;
}

static bool reply(void *zap, const zap_part *request, const char *status,
                  const char *text, const char *name)
{
    return zmq_send(zap, "1.0", 3, ZMQ_SNDMORE) >= 0 &&
           zmq_send(zap, request->b, request->len, ZMQ_SNDMORE) >= 0 &&
           zmq_send(zap, status, strlen(status), ZMQ_SNDMORE) >= 0 &&
           zmq_send(zap, text, strlen(text), ZMQ_SNDMORE) >= 0 &&
           zmq_send(zap, name, strlen(name), ZMQ_SNDMORE) >= 0 &&
           zmq_send(zap, "", 0, 0) >= 0;
}

/* A request that cannot be read or answered ends the handler and the link. */
static void answer_handshake(dafl_link *l)
{
    zap_part request[ZAP_PARTS] = {{.len = 0}};
    char name[ZAP_NAME_MAX] = "", who[LINK_WHO_MAX];
    int party = -1;

    if (read_request(l->zap, request)) {
        hear_monitor(l); /* for the order, see the top */
        party = zap_judge(request, l->roster, &l->token, name, who);
        if (party < 0)
            link_refuse(l, LINK_STRANGER, who);
        if (reply(l->zap, &request[ZAP_REQUEST], party >= 0 ? "200" : "400",
                  party >= 0 ? "OK" : "not in the roster", name))
            return;
    }
    close_socket(&l->zap);
    mail_break(l->mail, DAFL_ERR_SYS);
}

void door_wait(dafl_link *l, long ms)
{
    zmq_pollitem_t items[4];
    int n = 0;

    if (LINK_WEAK(ZAP))
        close_socket(&l->zap);
    items[n++] = (zmq_pollitem_t){NULL, mail_bell(l->mail), ZMQ_POLLIN, 0};
    if (l->zap != NULL)
        items[n++] = (zmq_pollitem_t){l->zap, 0, ZMQ_POLLIN, 0};
    if (l->monitor != NULL)
        items[n++] = (zmq_pollitem_t){l->monitor, 0, ZMQ_POLLIN, 0};
    if (l->socket != NULL && !mail_full(l->mail))
        items[n++] = (zmq_pollitem_t){l->socket, 0, ZMQ_POLLIN, 0};
    if (zmq_poll(items, n, ms) < 0 && errno != EINTR)
        mail_break(l->mail, DAFL_ERR_SYS);
    if (l->zap != NULL && (items[1].revents & ZMQ_POLLIN) != 0)
        answer_handshake(l);
    hear_monitor(l);
}

/* ---- frames ---- */

/* The peer's queue has no bound here, so a refusal means that nobody is there.
 */
bool door_post(dafl_link *l, link_ticket *t)
{
    const link_peer *peer = &l->peers.peers[t->to];
    zmq_msg_t m;
    bool ok = l->socket != NULL && (peer->up || !l->listens);

    if (zmq_msg_init_data(&m, t->parcel->bytes, t->parcel->len, mail_release,
                          t) != 0) {
        mail_release(NULL, t);
        mail_break(l->mail, DAFL_ERR_NOMEM);
        return false;
    }
    if (ok && l->listens)
        ok = zmq_send(l->socket, peer->rid.b, sizeof peer->rid.b,
                      ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0;
    ok = ok && zmq_msg_send(&m, l->socket, ZMQ_DONTWAIT) >= 0;
    if (!ok)
        (void)zmq_msg_close(&m); /* releases the ticket */
    return ok;
}

/* Who a frame at the server is from: what its key was named, and nothing the
 * peer has chosen. False if it is to be dropped. */
static bool tell_sender(dafl_link *l, zmq_msg_t *id, zmq_msg_t *body,
                        uint16_t *peer, link_rid *rid)
{
    const uint8_t *b = zmq_msg_data(id);
    int party = zap_party(zmq_msg_gets(body, "User-Id"), l->roster, &l->token);

    if (party < 0 && LINK_WEAK(USER_ID))
        party = 0;
    if (party < 0) {
        l->unnamed++;
        return false;
    }
    /* Ids that libzmq has made up are five bytes and begin with a zero. */
    if (zmq_msg_size(id) != sizeof rid->b ||
        (b[0] != 0 && !LINK_WEAK(ROUTING))) {
        l->malformed++;
        return false;
    }
    memcpy(rid->b, b, sizeof rid->b);
    *peer = (uint16_t)party;
    return true;
}

bool door_read(dafl_link *l)
{
    zmq_msg_t id, body;
    link_rid rid = {{0}};
    uint16_t peer = 0;
    bool got = l->socket != NULL, first = true, more = true;

    (void)zmq_msg_init(&id);
    (void)zmq_msg_init(&body);
    if (l->listens)
        got = got && zmq_msg_recv(&id, l->socket, ZMQ_DONTWAIT) >= 0;
    else
        memcpy(rid.b, &l->dials, sizeof l->dials);
    /* All parts count as read; a message of ours has only one. */
    for (; got && more; first = false) {
        got = zmq_msg_recv(&body, l->socket, ZMQ_DONTWAIT) >= 0;
        more = got && zmq_msg_more(&body);
        if (got && (!l->listens || tell_sender(l, &id, &body, &peer, &rid)))
            link_frame(l, peer, &rid, zmq_msg_get(&body, ZMQ_SRCFD),
                       (dafl_bytes){zmq_msg_data(&body), zmq_msg_size(&body)},
                       more || !first);
    }
    (void)zmq_msg_close(&id);
    (void)zmq_msg_close(&body);
    return got;
}
