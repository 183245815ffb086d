/* SPDX-License-Identifier: Apache-2.0 */
/* The door to the network. Signed envelopes travel between the server and the
 * parties of its roster; what is behind the door (ZeroMQ, ROUTER and DEALER
 * over CURVE) shows nowhere else. A link has a thread of its own: connections
 * are kept alive and watched while the owner computes, and link_send never
 * waits.
 *
 * Who a message is from is decided by the key of its connection and nothing
 * else. A link loses messages only together with their connection, and says
 * so: LOST, and UP when the peer is back.
 *
 * Between the ends there is one frame that is not a message: a ping, one byte.
 * Each end sends it when it has sent nothing else for a while; the first one
 * of a connection is a client's, the server answers it, and both are UP. */
#ifndef DAFL_AGENTS_LINK_H
#define DAFL_AGENTS_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "crypto/identity.h"
#include "lib/bytes.h"
#include "protocol/roster.h"

typedef struct dafl_link dafl_link; /* link() is POSIX's */

typedef struct {
    size_t message;     /* bytes of the longest message that is taken */
    size_t in;          /* bytes that may wait for link_next; then the peers
                           wait. At least `message` */
    size_t out;         /* bytes that may wait for one peer, 256 more for each
                           message; beyond them the peer is lost */
    uint32_t strangers; /* open connections that have not said who they are */
    uint32_t lost_ms;   /* a peer is lost after so much silence */
    uint32_t handshake_ms;
    uint32_t linger_ms; /* link_free waits for what is still to be sent */
} link_caps;

link_caps link_caps_default(void);

typedef enum {
    /* LOST: */
    LINK_CLOSED,   /* the connection has ended */
    LINK_LEFT,     /* so it has, and the peer had said so: link_leave */
    LINK_SILENT,   /* nothing heard for lost_ms */
    LINK_SLOW,     /* more than caps.out waits for it */
    LINK_REPLACED, /* there is a newer connection with the same key: a restart
                      behind a dead line, or one key at two places */
    LINK_TOO_MUCH, /* sends more than can be one message, in parts */
    /* REFUSED: */
    LINK_STRANGER,     /* its key is not in the roster */
    LINK_OTHER_CURVE,  /* does not know our key, or we not its */
    LINK_NO_CURVE,     /* wants another mechanism: NULL, PLAIN */
    LINK_NO_ZMTP,      /* ZMTP before 3, or something else altogether */
    LINK_STALLED,      /* did not finish the handshake, or says nothing */
    LINK_HUNG_UP,      /* ended the handshake: what it was offered did not suit
                          it, our key for instance */
    LINK_TOO_MANY,     /* made room for newer ones */
    LINK_UNAUTHORISED, /* (a client) the server does not let us in */
} link_reason;

/* "connection closed", ..: never NULL. */
const char *link_reason_name(link_reason reason);

typedef enum {
    LINK_NOTHING,
    LINK_MESSAGE,
    LINK_UP,
    LINK_LOST,
    LINK_REFUSED, /* the same one at most once a minute */
} link_event_kind;

#define LINK_WHO_MAX 160

typedef struct {
    link_event_kind kind;
    uint16_t peer;      /* number in the roster; at a client 0: the server */
    link_reason reason; /* LOST, REFUSED */
    uint32_t times;     /* REFUSED: since it was last told of */
    char who[LINK_WHO_MAX]; /* REFUSED: address, and the key if it showed one */
    dafl_bytes bytes; /* MESSAGE: valid until the next call of link_next */
} link_event;

/* Listen at "tcp://ADDRESS:PORT" (* for any) for the clients and the key holder
 * of a roster. `self` and `roster` are borrowed for the link's life; libzmq
 * keeps a copy of the transport's secret key that it does not wipe.
 * DAFL_ERR_INPUT when the endpoint cannot be used. */
DAFL_CHECK dafl_err link_listen(dafl_link **out, const char *endpoint,
                                const dafl_secret_identity *self,
                                const dafl_roster *roster,
                                const link_caps *caps, dafl_why *why);

/* Connect to the one server that has this key, and again whenever the
 * connection ends. `self` and `server` are borrowed likewise. */
DAFL_CHECK dafl_err link_connect(dafl_link **out, const char *endpoint,
                                 const dafl_secret_identity *self,
                                 const dafl_identity *server,
                                 const link_caps *caps, dafl_why *why);

/* A client that goes and does not come back: link_free then tells the server,
 * for which this is no lost connection. */
void link_leave(dafl_link *l);
/* Sends what is queued, for linger_ms at most. */
void link_free(dafl_link **link);

/* Where it listens, with the port that was chosen, or connects to. */
const char *link_endpoint(const dafl_link *l);

/* Copy and queue a message: signed and masked bytes only. From the thread that
 * calls link_next. `to` is ignored at a client. DAFL_ERR_PEER: dropped, the
 * peer is lost or now will be; DAFL_ERR_ARG for one shorter than 2 bytes or
 * longer than caps.out. */
DAFL_CHECK dafl_err link_send(dafl_link *l, uint16_t to, dafl_bytes message);
/* To several clients, with one copy for all. DAFL_ERR_PEER when one or more of
 * them do not get it. */
DAFL_CHECK dafl_err link_send_all(dafl_link *l, const dafl_members *to,
                                  dafl_bytes message);

/* The next event; NOTHING after timeout_ms (-1: never) or link_wake. An error
 * (DAFL_ERR_SYS, DAFL_ERR_NOMEM) is the end of the link. */
DAFL_CHECK dafl_err link_next(dafl_link *l, link_event *out, int timeout_ms);

/* End a wait, or the next one. From any thread or signal handler. */
void link_wake(dafl_link *l);

/* What has passed, frames that were dropped, and refusals, told of or not. */
typedef struct {
    uint64_t bytes_in, bytes_out; /* of frames, before they are encrypted */
    uint64_t unnamed;   /* of connections without a name from our allow-list */
    uint64_t stale;     /* of connections that had been replaced or lost */
    uint64_t malformed; /* no message: empty, in parts, too long, a routing id
                           of the peer's own choice */
    uint64_t refused;
} link_counts;

/* From any thread, like link_is_up: whether a peer is connected now. */
link_counts link_count(const dafl_link *l);
bool link_is_up(const dafl_link *l, uint16_t peer);

#endif
