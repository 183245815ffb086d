/* SPDX-License-Identifier: Apache-2.0 */
/* What all parties of a run agree on beforehand, besides the roster: everyone
 * compares the digest of these bytes before it connects.
 *
 *   config = "DAFC", u8 mode, u16 n_min, u16 m, u16 g, u16 c, u16 a,
 *            u8 s, u32 q, u64 n_max, u8 w,
 *            u16 want, u16 tries, u16 retries, u32 slots, u32 chunk,
 *            u64 body_max, 5 (u32 wait), u8 name_len, name[name_len], u32 len,
 *            bytes[len]
 *
 * name and bytes belong to the method that is summed for; the protocol only
 * hashes them. */
#ifndef DAFL_PROTOCOL_CONFIG_H
#define DAFL_PROTOCOL_CONFIG_H

#include "lib/grid.h"
#include "protocol/policy.h"

typedef enum {
    DAFL_MODE_NONE = 0,  /* no masks: the server sees every upload */
    DAFL_MODE_MASKS = 1, /* pairwise and self masks */
    DAFL_MODE_SEAL = 2,  /* the same, encrypted on top */
} dafl_mode;

/* How long the server waits for the answers of a phase. */
typedef enum {
    DAFL_WAIT_SETUP,  /* ENROLL, SHARES, SETUP_ACK: each */
    DAFL_WAIT_READY,  /* MODEL to READY: the clients' computation */
    DAFL_WAIT_UPLOAD, /* CAST to END: masking and sending */
    DAFL_WAIT_SIGN,   /* SURV to SIGN */
    DAFL_WAIT_REVEAL, /* CONF to REVEAL */
    DAFL_WAITS
} dafl_wait;

#define DAFL_METHOD_NAME_MAX 31
#define DAFL_SLOTS_MAX 4096
/* Of a message's body and of a whole upload: the parts of a digest
 * (crypto/hash.h) are no longer. */
#define DAFL_BODY_MAX ((uint64_t)UINT32_MAX)
#define DAFL_CHUNK_MIN ((uint32_t)16 << 10)
#define DAFL_CHUNK_MAX ((uint32_t)16 << 20)

/* Ranges: want 1 .. 1000, retries from 1, slots 1 .. DAFL_SLOTS_MAX, chunk
 * DAFL_CHUNK_MIN .. DAFL_CHUNK_MAX, body_max chunk + 8 .. DAFL_BODY_MAX, waits
 * from 1; the contract exact, its w as derived or wider; the method a name as
 * of dafl_name_ok. */
typedef struct {
    dafl_mode mode;
    dafl_policy policy;
    dafl_contract contract;
    uint16_t want;    /* of 1000 cells that could answer, how many should */
    uint16_t tries;   /* times a thinner cohort is sent home for a fuller one */
    uint16_t retries; /* failed attempts at one question before the run ends */
    uint32_t slots;   /* prepared by one enrolment */
    uint32_t chunk;   /* bytes of an upload in one message */
    uint64_t body_max;         /* bytes of the largest message body */
    uint32_t wait[DAFL_WAITS]; /* milliseconds */
    char method[DAFL_METHOD_NAME_MAX + 1];
    dafl_bytes method_params; /* borrowed */
} dafl_config;

/* Sensible values for everything but policy and method; the contract is
 * DAFL_CONTRACT_DEFAULT, derived. */
dafl_config dafl_config_default(void);

/* Slots worth preparing for so many questions: R + ceil(R / 4) + 4, but at most
 * DAFL_SLOTS_MAX; the clients enrol anew when they are spent. */
uint32_t dafl_config_slots(uint32_t questions);

/* Bytes of an upload of so many numbers; SIZE_MAX for none, and for more than
 * can be sent (DAFL_BODY_MAX). */
size_t dafl_config_upload_bytes(const dafl_config *c, uint64_t len);

/* The hard rules: every range above; the ring holds every sum, n_max (q 2^s)^2
 * < 2^(w-1); the policy's own (protocol/policy.h). The reason names the field.
 * DAFL_E_POLICY or DAFL_E_PARAMS. */
dafl_fault dafl_config_check(const dafl_config *c, const dafl_roster *roster,
                             dafl_why *why);

/* Of a config within its ranges: of another the bytes may not say all. */
void dafl_put_config(dafl_writer *w, const dafl_config *c);
/* Canonical bytes only; method_params is a view of them. DAFL_ERR_INPUT. What
 * needs a roster is not judged. */
DAFL_CHECK dafl_err dafl_get_config(dafl_config *out, dafl_bytes bytes,
                                    dafl_why *why);
/* H("deepafl/config", bytes). DAFL_ERR_ARG for a config out of its ranges. */
DAFL_CHECK dafl_err dafl_config_digest(dafl_digest *out, const dafl_config *c);

#endif
