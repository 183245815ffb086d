/* SPDX-License-Identifier: Apache-2.0 */
/* Between a link's thread and its owner: events on their way in, messages on
 * their way out, both bounded in bytes, and a bell at each side. Internal to
 * the link. */
#ifndef DAFL_AGENTS_LINK_MAIL_H
#define DAFL_AGENTS_LINK_MAIL_H

#include <stdatomic.h>

#include "agents/link.h"

/* What waits for one peer. The only part that the owner, the link's thread and
 * the transport's thread all touch. */
typedef struct {
    atomic_size_t queued; /* bytes, until the transport has let go of them */
    atomic_bool up;
    atomic_bool slow; /* something did not fit: to be cut off */
} link_account;

/* A message on its way to one peer; the last one frees what they share. */
typedef struct {
    struct link_parcel *parcel;
    link_account *account;
    uint16_t to;
} link_ticket;

typedef struct link_parcel {
    struct link_parcel *next;
    uint8_t *bytes;
    size_t len;
    atomic_uint left; /* tickets */
    uint16_t n;
    link_ticket tickets[];
} link_parcel;

typedef struct link_mail link_mail;

DAFL_CHECK dafl_err mail_new(link_mail **out, uint16_t n_peers,
                             const link_caps *caps);
/* When no ticket is left in the transport. */
void mail_free(link_mail **mail);

/* ---- the owner's side ---- */

DAFL_CHECK dafl_err mail_send(link_mail *m, const uint16_t *to, size_t n,
                              dafl_bytes message);
DAFL_CHECK dafl_err mail_next(link_mail *m, link_event *out, int timeout_ms);
void mail_wake(link_mail *m);

/* ---- the link's side ---- */

link_account *mail_account(link_mail *m, uint16_t peer);
/* Readable when there is something to do; mail_take_all silences it. */
int mail_bell(const link_mail *m);
void mail_ring(link_mail *m);
/* Everything that was sent since, in order. */
link_parcel *mail_take_all(link_mail *m);
/* A parcel for one peer that did not come from the owner, whether it fits or
 * not; NULL when there is no memory. */
link_parcel *mail_parcel(link_mail *m, uint16_t to, dafl_bytes message);
/* Done with a ticket; any thread. As the transport calls it. */
void mail_release(void *bytes, void *ticket);

/* Queue an event; copies the bytes. Without memory the link is broken. */
void mail_put(link_mail *m, const link_event *event);
/* No more messages for now; the bell rings when that has changed. */
bool mail_full(link_mail *m);
/* The link has come to its end. */
void mail_break(link_mail *m, dafl_err err);
bool mail_broken(link_mail *m);

#endif
