/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log of one party: a line for every event that its machine tells
 * (protocol/effect.h), chained by hashes and signed, so that nobody, its party
 * included, can change, drop or add a line unnoticed once a peer has seen a
 * later head. Pure: the driver gives the time, writes the line, and tells the
 * machine the new head when the line is durable.
 *
 * A line is one JSON object and a newline: keys sorted, no spaces, nothing but
 * integers, strings and lists and objects of these; a string is lower-case hex
 * or a name of letters, digits, '-', '_' and '.'. So each event has one text.
 *
 *   {"data":{..},"event":NAME,"hash":HEX,"party":N,"prev":HEX,"run":HEX,
 *    "seq":N,"sig":HEX,"slot":N,"ts":N,"v":1}
 *
 *   hash = H("deepafl/audit", the object without hash and sig)
 *   sig  = Ed25519 of the party over hash
 *   prev = hash of the line before, zeros in the first
 *   seq  = number of the line, from 1
 *   ts   = milliseconds since 1970 by the party's clock; nothing depends on it
 *   data = the event's members, protocol/audit_fields.h
 *
 * Sets of clients are lists of their numbers. Never logged: inputs, uploads,
 * masks, shares, seeds, keys. */
#ifndef DAFL_PROTOCOL_AUDIT_H
#define DAFL_PROTOCOL_AUDIT_H

#include "crypto/identity.h"
#include "protocol/effect.h"

/* One line. */
typedef struct {
    uint64_t seq, ts;
    uint16_t party;
    dafl_event event;
    dafl_bytes more; /* the event's bytes */
    dafl_digest prev, hash;
    dafl_signature sig;
    dafl_writer own; /* holds `more` of a line that was read */
} dafl_audit_line;

/* Append the line's text with its newline. DAFL_ERR_ARG, nothing appended, when
 * the event and its bytes do not belong together or a number is beyond 2^63. */
DAFL_CHECK dafl_err dafl_put_audit_line(dafl_writer *w,
                                        const dafl_audit_line *line);
/* What its hash must be. DAFL_ERR_ARG as above, DAFL_ERR_NOMEM. */
DAFL_CHECK dafl_err dafl_audit_line_digest(dafl_digest *out,
                                           const dafl_audit_line *line);
/* Read the text of a line (without its newline) of a run with n clients. Only
 * the text that dafl_put_audit_line gives is accepted: DAFL_ERR_PEER for any
 * other. Neither hash nor signature are looked at. Drop it afterwards. */
DAFL_CHECK dafl_err dafl_get_audit_line(dafl_audit_line *out, dafl_bytes text,
                                        uint16_t n_clients);
void dafl_audit_line_drop(dafl_audit_line *line);

/* The end of a party's log. */
typedef struct {
    const dafl_secret_identity *self; /* borrowed */
    uint16_t party, n_clients;
    uint64_t seq;     /* of the last line */
    dafl_digest head; /* its hash; zeros: no line yet */
} dafl_audit;

/* An empty log. */
void dafl_audit_init(dafl_audit *a, const dafl_secret_identity *self,
                     uint16_t party, uint16_t n_clients);
/* Go on with a stored log. A last line that is cut short, as by a crash, does
 * not count: the log is to be cut to *keep bytes. DAFL_ERR_INPUT when the last
 * line is not this party's own. Earlier lines are not looked at. */
DAFL_CHECK dafl_err dafl_audit_resume(dafl_audit *a, size_t *keep,
                                      dafl_bytes log, dafl_why *why);
/* Append the line of an event to *text and move on. After an error nothing has
 * changed. */
DAFL_CHECK dafl_err dafl_audit_add(dafl_audit *a, dafl_writer *text,
                                   const dafl_event *event, dafl_bytes more,
                                   uint64_t ts);

#endif
