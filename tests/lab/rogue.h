/* SPDX-License-Identifier: Apache-2.0 */
/* Tools of attackers in the lab, and for a look at what they did. */
#ifndef DAFL_TESTS_LAB_ROGUE_H
#define DAFL_TESTS_LAB_ROGUE_H

#include "tests/lab/lab.h"

/* Errors that a party has recorded because of another. */
size_t rogue_blamed(const lab *l, uint16_t by, uint16_t peer, dafl_fault fault);

/* Shares that rebuild a secret. */
size_t rogue_threshold(const lab *l);

dafl_members rogue_cell(const lab *l, uint16_t client);
/* Everybody but the client's cell; but the client itself where there are no
 * cells. */
dafl_members rogue_without(const lab *l, uint16_t client);

/* Messages of a type that a client (LAB_ANYBODY: anybody) has sent in a slot
 * (UINT32_MAX: any). */
size_t rogue_sent(const lab *l, uint16_t client, dafl_msg_type type,
                  uint32_t slot);

/* ---- reading an upload ---- */

/* What a client has uploaded in a slot, from what it sent; *bytes is the
 * caller's to drop. False when there is no END. */
bool rogue_upload(const lab *l, uint16_t client, uint32_t slot,
                  dafl_writer *bytes);

/* What an attacker has of a client's slot: what its masks were bound to, and
 * their keys, [client] that of the self mask. */
typedef struct {
    uint16_t client;
    uint32_t slot;
    dafl_members a;
    dafl_digest ctx2;
    dafl_key keys[DAFL_CLIENTS_MAX];
} rogue_view;

/* The cohort and context that a client was told in a slot, no keys yet. False
 * when it was told none. */
bool rogue_was_cast(const lab *l, uint16_t client, uint32_t slot,
                    rogue_view *view);
/* The public key that a client enrolled for a slot of the first enrolment. */
dafl_public rogue_enrolled(const lab *l, uint16_t client, uint32_t slot);
/* All keys from the client's own secrets. */
void rogue_know(const lab *l, rogue_view *view, const dafl_key *sk,
                const dafl_key *b);

/* Whether what the client sent, without these masks, is what it was to answer
 * (lab_answer). */
bool rogue_reads(const lab *l, const rogue_view *view);

/* One secret of a dealer from t shares that were sent in a slot; false when
 * there are not so many. */
bool rogue_rebuild(const lab *l, uint16_t dealer, uint32_t slot,
                   dafl_reveal_kind kind, size_t t, dafl_key *out);

/* Whether an upload has the client's numbers in it as they are: any word of
 * those that are not small. */
bool rogue_in_clear(const lab *l, uint16_t client, uint32_t slot);

/* ---- a server with rules of its own ---- */

/* The server says that its config is the clients'. For a scenario whose outfit
 * has given it another: it goes by that one. From its first step on. */
void rogue_pretend(lab *l);

/* ---- a server between clients ---- */

/* Five clients without cells, one of which may be missing; t = 3. */
enum {
    ROGUE_CLIENTS = 5,
    ROGUE_VICTIM = 2,
    ROGUE_COLLUDER = 1,
    ROGUE_OTHER = 4
};
lab_scenario rogue_scenario(uint64_t seed, lab_intercept *intercept, void *ctx);
/* All but the victim have their sums, and the victim has refused something of
 * the server's by this name. */
void rogue_check_others(lab *l, dafl_fault fault);

/* What a SETUP is made of, apart, to be changed and put together again. */
typedef struct {
    dafl_setup m;
    dafl_dealer dealers[DAFL_CLIENTS_MAX];
    dafl_writer packets, keys;
} rogue_setup;
rogue_setup rogue_take_apart(const lab_letter *m);
void rogue_put_together(lab *l, lab_letter *m, rogue_setup *s);
/* pk, cb of a client for a slot from 1 on, when all clients are in it. */
uint8_t *rogue_keys_in(rogue_setup *s, uint16_t client, uint32_t slot);
/* The packet of a dealer among those for `to`. */
uint8_t *rogue_packet_in(rogue_setup *s, uint16_t dealer, uint16_t to);

/* Whether the victim keeps anything of a packet which the other one did not
 * seal for it. It names the dealer; and one holder less does no harm: all have
 * their sums. */
bool rogue_keeps_packet(lab *l);

/* ---- a dealer ---- */

/* What a dealer does to the shares that it is going to seal for a holder: 32
 * bytes of b and 32 of sk for every slot. False: the packet is not to open. */
typedef bool rogue_dealing(void *ctx, lab *l, uint16_t dealer, uint16_t holder,
                           uint8_t *plain, size_t len);
/* Replace a dealer's SHARES, before anybody has seen them. */
void rogue_deal(lab *l, lab_letter *shares, rogue_dealing *change, void *ctx);

#endif
