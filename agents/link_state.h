/* SPDX-License-Identifier: Apache-2.0 */
/* A link from the inside: its state, which belongs to its thread, and the
 * transport that agents/link_zmq.c makes of ZeroMQ. */
#ifndef DAFL_AGENTS_LINK_STATE_H
#define DAFL_AGENTS_LINK_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "agents/link.h"
#include "agents/link_mail.h"
#include "agents/link_peers.h"
#include "agents/link_refused.h"
#include "agents/link_zap.h"

struct dafl_link {
    bool listens;
    char endpoint[256];
    link_caps caps;
    const dafl_secret_identity *self;
    const dafl_roster *roster;   /* the server's */
    const dafl_identity *server; /* a client's */
    link_mail *mail;
    link_peers peers;
    link_refused refused;
    link_token token;

    pthread_t thread;
    bool running;
    atomic_bool stop, leaving;

    void *ctx, *zap, *socket, *monitor;
    int failed; /* reason of a handshake that failed just now, or -1 */
    unsigned turned_away; /* by the handler, and still connected */

    /* a client's connection: */
    uint32_t dials;     /* its number */
    bool shaken, gone;  /* the handshake is done; the connection is */
    uint32_t redial_ms; /* the pause before the next */
    uint64_t dialled, give_up_at, dial_at;

    atomic_uint_fast64_t bytes_in, bytes_out;
    atomic_uint_fast64_t unnamed, stale, malformed, n_refused;
};

/* The frames that are not messages: we are here; we go and do not come back. */
#define LINK_PING 'p'
#define LINK_BYE 'b'

uint64_t link_now(void);
void link_refuse(dafl_link *l, link_reason reason, const char *who);
/* A frame of a peer; `part`: of a message of several. */
void link_frame(dafl_link *l, uint16_t peer, const link_rid *rid, int fd,
                dafl_bytes frame, bool part);

/* ---- the transport ---- */

/* Begin; the handler is there before anybody can connect. errno's text. */
DAFL_CHECK dafl_err door_new(dafl_link *l, const char **problem);
/* Waits for what is still to be sent, caps.linger_ms at most. */
void door_free(dafl_link *l);

/* Bind or connect a new socket; false: errno says why not. */
bool door_open(dafl_link *l);
/* `now`: without waiting for what is still to be sent. */
void door_close(dafl_link *l, bool now);

/* Wait a little, answer handshakes, hear of connections. */
void door_wait(dafl_link *l, long ms);
/* One message to link_frame, if there is one. */
bool door_read(dafl_link *l);
/* Put a ticket on its way; false: released, nobody is there. */
bool door_post(dafl_link *l, link_ticket *t);

#endif
