/* SPDX-License-Identifier: Apache-2.0 */
/* A small federation for fuzz_machines.c: real machines, disks in memory, links
 * that the input controls, and a watch over what the machines promise. */
#ifndef DAFL_TESTS_FUZZ_MACHINES_H
#define DAFL_TESTS_FUZZ_MACHINES_H

#include "protocol/client.h"
#include "protocol/envelope.h"
#include "protocol/holder.h"
#include "protocol/server.h"

#define FM_K_MAX 6
#define FM_QUESTIONS 3
#define FM_PEERS_MAX (FM_K_MAX + 1) /* clients and a key holder */
#define FM_SCENARIOS 6
#define FM_MAILS 48 /* on a link; more push the oldest out */
#define FM_PAST 64  /* messages that can be replayed */

/* ---- the rules of a federation, made once ---- */

typedef struct {
    uint16_t k;
    uint32_t tail;  /* numbers in the first answer */
    size_t segment; /* bytes */
    bool ties;      /* question 2 can be tied to 0 and 1 */
    bool pick;      /* question 1 is asked of all but one client */
    dafl_config config;
    dafl_floor floor;
    dafl_roster roster;
    bool sealed; /* the last peer is the key holder */
    dafl_secret_identity ids[FM_PEERS_MAX + 1]; /* clients, server, holder */
    dafl_run_id run;                            /* the first */
} fm_rules;

const fm_rules *fm_rules_of(unsigned scenario);

/* ---- a federation ---- */

typedef struct {
    uint8_t *ptr;
    size_t len;
    uint32_t slot; /* of a vault's record */
} fm_block;

typedef struct {
    fm_block *items;
    size_t n, room;
} fm_blocks;

typedef struct {
    fm_blocks journal, vault;
} fm_disk;

typedef struct {
    uint8_t *ptr; /* an envelope */
    size_t len;
    bool forged;   /* not what a machine said; sealed when it is delivered */
    uint32_t flip; /* this byte (from 1) is broken on the way; 0: none */
} fm_mail;

typedef struct {
    fm_mail mails[FM_MAILS];
    size_t n;
    uint64_t seq; /* the highest that was delivered */
    bool hostile; /* a forged message was: later ones are numbered anew */
} fm_link;

typedef enum { FM_UP = 0, FM_DOWN = 1 } fm_way; /* to the server, to a client */

/* The two sides of the method. */
typedef struct {
    const struct fm_world *world;
    uint16_t client;
    uint32_t followed;
} fm_site;
typedef struct {
    struct fm_world *world;
    uint32_t answered;
    uint64_t chain;
    dafl_members cohorts[FM_QUESTIONS];
} fm_centre;

typedef struct {
    uint16_t index;
    dafl_client *client; /* of these .. */
    dafl_server *server;
    dafl_holder *holder; /* .. one, while it is up */
    fm_site site;
    fm_centre centre;
    fm_disk disk;
    size_t crash_in;    /* effects; SIZE_MAX: never */
    bool stay_down;     /* when it crashes */
    bool fed;           /* its disk is not what it wrote */
    dafl_fault refuses; /* instead of its next answer */
    uint64_t seq;       /* of its last message */
} fm_party;

/* What a client was seen to say; for a server that lies. */
typedef struct {
    fm_mail enroll, shares, ack;
    uint32_t end_slot, sign_slot;
    dafl_digest dig;
    dafl_signature end_sig, sig;
} fm_heard;

typedef struct fm_world {
    const fm_rules *rules;
    dafl_run_id run;
    fm_party parties[FM_PEERS_MAX + 1];
    fm_link links[2][FM_PEERS_MAX]; /* [peer]: a client, or k: the holder */
    fm_mail past[FM_PAST];
    size_t n_past;
    fm_heard heard[FM_K_MAX];
    uint64_t now;
    unsigned turn;        /* whose link is served next */
    size_t deliveries;    /* left */
    bool tainted;         /* a site may have cheated: sums can be anything */
    bool fed;             /* some disk is not what its party wrote */
    bool recalling;       /* the method is given old sums */
    uint8_t refuses_sums; /* so many */
    dafl_digest ctx2;     /* of the server's newest cast */
    struct fm_speech *speeches;
    size_t n_speeches, room_speeches;
} fm_world;

void *fm_alloc(size_t n, size_t size);
uint8_t *fm_copy(const void *bytes, size_t len);
fm_party *fm_server(fm_world *w);
/* How many parties there are, and how many of them are not the server. */
uint16_t fm_parties(const fm_world *w);
uint16_t fm_peers(const fm_world *w);
/* The party at the other end of a link. */
uint16_t fm_peer(const fm_world *w, uint16_t link);

/* Before the first fm_open of a scenario, which then draws the same random
 * numbers each time. */
void fm_prepare(unsigned scenario);
/* From nothing; or as after a setup, everybody restarted. */
void fm_open(fm_world *w, unsigned scenario, bool set_up);
void fm_close(fm_world *w);

/* Make, recall and start a party that is down. */
void fm_boot(fm_world *w, fm_party *p);
void fm_halt(fm_party *p);
void fm_disk_drop(fm_disk *disk);
void fm_disk_copy(fm_disk *to, const fm_disk *from);
void fm_blocks_add(fm_blocks *list, size_t at, dafl_bytes bytes, uint32_t slot);
void fm_blocks_remove(fm_blocks *list, size_t at);
void fm_vault_keep(fm_blocks *vault, uint32_t slot, dafl_bytes bytes);
void fm_vault_erase(fm_blocks *vault, uint32_t slot);

/* The oldest mail of a link, given to whom it is for, or to another client. */
void fm_deliver(fm_world *w, fm_way way, uint16_t client, uint16_t to);
void fm_drop(fm_world *w, fm_way way, uint16_t client);
/* Serve the links in turn, at most n messages; those of the type `hold` stay,
 * and what is behind them. False when there was nothing to deliver. */
bool fm_pump(fm_world *w, size_t n, uint8_t hold);
void fm_post(fm_world *w, fm_way way, uint16_t client, fm_mail mail);
/* Before all that are on their way. */
void fm_post_first(fm_world *w, fm_way way, uint16_t client, fm_mail mail);
void fm_tick(fm_world *w, uint64_t now);
void fm_lost(fm_world *w, uint16_t client);
void fm_hello(fm_world *w, uint16_t client);
/* The server forgets everything and begins anew. */
void fm_another_run(fm_world *w);
/* Everybody up and every message delivered, until the run is over. */
void fm_finish(fm_world *w);

/* ---- machines_forge.c: parties that lie ---- */

/* Signed by whoever it names as its sender (of the roster). */
fm_mail fm_seal(const fm_world *w, const dafl_envelope *m);
/* A forged message of this run, delivered next. */
void fm_say(fm_world *w, fm_way way, uint16_t client, uint8_t type,
            uint32_t slot, dafl_bytes body);
/* A body of the type that a client might believe; arguments choose it. */
void fm_server_lies(fm_world *w, uint16_t to, uint8_t kind, uint32_t slot,
                    uint8_t a, uint8_t b);
void fm_client_cheats(fm_world *w, uint16_t from, uint8_t kind, uint8_t a,
                      uint8_t b);

/* ---- machines_method.c ---- */

extern const dafl_client_method fm_client_method;
extern const dafl_server_method fm_server_method;

/* ---- machines_claims.c: what must hold ---- */

/* A line about what happens, when DAFL_FUZZ_TRACE is set. */
void fm_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Say what is broken, and abort. */
_Noreturn void fm_broken(const char *claim, unsigned party, unsigned slot);
void fm_claim_sent(fm_world *w, fm_party *p, const dafl_effect *e);
void fm_claim_cohort(const fm_world *w, const fm_party *p, const dafl_event *e);
void fm_claim_conf(fm_world *w, uint16_t client, const dafl_envelope *m);
void fm_claims_drop(fm_world *w);

#endif
