/* SPDX-License-Identifier: Apache-2.0 */
/* What every message travels in (grammar: protocol/messages.h): who says it,
 * in which run and slot, and a signature over all of it. */
#ifndef DAFL_PROTOCOL_ENVELOPE_H
#define DAFL_PROTOCOL_ENVELOPE_H

#include "protocol/fault.h"
#include "protocol/messages.h"

#define DAFL_ENVELOPE_OVERHEAD (4 + 1 + 16 + 4 + 2 + 8 + 32 + 8 + 64)

typedef struct {
    uint8_t type; /* dafl_msg_type */
    dafl_run_id run;
    uint32_t slot;
    uint16_t sender;
    uint64_t seq;         /* boot count << 32 | messages since */
    dafl_digest log_head; /* of the sender's audit log */
    dafl_bytes body;
    dafl_signature sig;
} dafl_envelope;

/* Sign and append. m->sig is not read. */
void dafl_put_envelope(dafl_writer *w, const dafl_envelope *m,
                       const dafl_secret_identity *sender);

/* Split bytes into fields, body as a view. DAFL_E_FORMAT for another magic, an
 * unknown type, a body longer than `cap` or not exactly as long as it says. The
 * signature is not looked at. */
dafl_fault dafl_get_envelope(dafl_envelope *m, dafl_bytes bytes, uint64_t cap);

/* DAFL_E_AUTH unless the signature is that of this public key. */
dafl_fault dafl_envelope_check(const dafl_envelope *m,
                               const uint8_t sign_pk[32]);

#endif
