/* SPDX-License-Identifier: Apache-2.0 */
/* Who is there: the peers of a link, the connections they come by, and when
 * one has to go. Internal to the link; only its thread comes here.
 *
 * A peer is known by the name that its key gave it. Of its connections the
 * newest counts; frames of earlier ones are stale, and those connections are
 * cut. Cutting is shutdown(2): the transport, which owns the descriptor, then
 * sees the end of it and closes it. Should it have closed it a moment ago and
 * given the number to a newcomer, that one is cut, and will come again. */
#ifndef DAFL_AGENTS_LINK_PEERS_H
#define DAFL_AGENTS_LINK_PEERS_H

#include "agents/link_mail.h"

/* Routing ids are five bytes, as libzmq makes them up. */
#define LINK_RID_BYTES 5
typedef struct {
    uint8_t b[LINK_RID_BYTES];
} link_rid;

/* Bytes that CURVE adds to a frame. */
#define LINK_CURVE_ADDS 33

/* Ids of earlier connections that a peer is remembered by. Their connections
 * are cut at once, so few can have frames left. */
#define LINK_RETIRED 8

typedef struct {
    bool up, closing, bye; /* bye: it has said that it goes */
    link_rid rid;
    uint64_t heard, said; /* when */
    link_rid retired[LINK_RETIRED];
    unsigned n_retired;
} link_peer;

typedef struct {
    int fd; /* -1: none */
    bool named, cut;
    uint16_t peer;
    link_rid rid;
    uint64_t since;
    uint64_t taken; /* bytes on the wire of the frames we were given */
    link_reason reason;
    char address[64];
} link_conn;

typedef struct {
    link_mail *mail;
    link_caps caps;
    uint16_t n;
    size_t n_conns;
    link_peer *peers;
    link_conn *conns;
    uint64_t ticked, looked;
} link_peers;

DAFL_CHECK dafl_err peers_init(link_peers *p, uint16_t n, const link_caps *caps,
                               link_mail *mail);
void peers_drop(link_peers *p);

/* Messages that the transport may hold of one connection, so that their bytes
 * stay below a quarter of caps.in, and those of all below caps.in. But two at
 * least: with one, ZeroMQ lets nobody in. */
int peers_backlog(const link_caps *caps, uint16_t n_peers);

/* A connection has begun. */
void peers_opened(link_peers *p, int fd, uint64_t now);
/* It has ended. Returns whether it never said who it was, and then what is
 * known about it; reason is left alone unless it was us who cut it. */
bool peers_closed(link_peers *p, int fd, char address[64], link_reason *reason);
/* Everything was read of connections that have ended: their peers are lost. */
void peers_drained(link_peers *p);

/* A frame of a peer with so many bytes. */
typedef enum { PEERS_STALE, PEERS_NEW, PEERS_SAME } peers_verdict;
peers_verdict peers_frame(link_peers *p, uint16_t peer, const link_rid *rid,
                          int fd, size_t len, uint64_t now);

/* A peer cannot be reached, or must not be. */
void peers_lose(link_peers *p, uint16_t peer, link_reason reason);

/* Lose and cut what has been silent, slow, unnamed or unfinished for too long.
 * `deaf`: frames are not being read, so silence means nothing. */
void peers_tick(link_peers *p, bool deaf, uint64_t now);

#endif
