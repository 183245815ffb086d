/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the lab, shared by its files; tests include lab.h. */
#ifndef DAFL_TESTS_LAB_INSIDE_H
#define DAFL_TESTS_LAB_INSIDE_H

#include "lib/stream.h"
#include "protocol/audit.h"
#include "tests/lab/lab.h"

/* A growing list of items of one size. */
typedef struct {
    void *items;
    size_t n, room;
} lab_list;
/* Memory that is there, or the program ends. */
void *lab_alloc(size_t n, size_t size);
/* One more item, zeroed; valid until the next is added. */
void *lab_list_add(lab_list *list, size_t size);
void lab_list_drop(lab_list *list);
/* A copy of bytes in a block of their own length. */
uint8_t *lab_copy(dafl_bytes bytes);
/* Say what is wrong with the lab or its use, and abort. */
_Noreturn void lab_die(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* ---- dice.c: what chance decides ---- */

/* libsodium's random numbers follow from the seed from here on. */
void lab_dice_load(uint64_t seed);
/* The system's again. */
void lab_dice_unload(void);
/* A seed of its own for each use. */
void lab_dice_derive(uint8_t *out, size_t len, uint64_t seed, const char *use,
                     uint32_t number);

/* ---- party.c: machines and their disks ---- */

typedef struct {
    uint8_t *ptr;
    size_t len;
} lab_record;
typedef struct {
    uint32_t slot;
    uint8_t *ptr;
    size_t len;
} lab_kept;
struct lab_disk {
    lab_list journal, vault; /* lab_record, lab_kept */
};

typedef struct {
    uint16_t index;
    dafl_secret_identity id;
    dafl_roster *roster;
    dafl_config config;
    dafl_floor floor;
    dafl_fault refused;
    dafl_client *client; /* of these three .. */
    dafl_server *server;
    dafl_holder *holder; /* .. one, while it lives */
    void *method_self;
    lab_disk disk;
    dafl_writer log; /* on the disk as well */
    dafl_audit audit;
    uint64_t effects, crash_at; /* UINT64_MAX: no */
    bool working;               /* effects are being carried out */
    bool crashing;              /* after the one in hand */
    uint64_t restart_at;
    uint64_t last_seq, boots;
    /* the connection of a client or the key holder: */
    bool up;
    bool kept_away;           /* until lab_reconnect or the end of away_slot */
    uint32_t link;            /* counts connections */
    uint64_t up_at;           /* it connects */
    uint64_t tell_lost_at;    /* the server notices that it is gone */
    uint64_t heard_at;        /* the last message, HELLO or connection */
    uint64_t last_arrival[2]; /* of what is in flight to it and from it */
    uint32_t away_slot;       /* 0: none */
} lab_party;

bool lab_party_alive(const lab_party *p);
/* Make the machine, recall its disk, start it. */
void lab_party_boot(lab *l, lab_party *p);
void lab_party_halt(lab *l, lab_party *p);
/* HELLO, unasked. */
void lab_party_hello(lab *l, lab_party *p);
/* Whether it has left the run. */
bool lab_party_is_out(const lab_party *p);
/* As soon as the effect in hand, if any, is finished. */
void lab_party_crash(lab *l, lab_party *p, uint64_t restart_at);
/* Carry out what the machine wants after a call that returned err. */
void lab_party_work(lab *l, lab_party *p, dafl_err err);
void lab_disk_drop(lab_disk *disk);

/* ---- log.c: audit logs ---- */

/* Go on with the log that is there; the machine is about to start. */
void lab_log_open(lab *l, lab_party *p);
void lab_log_event(lab *l, lab_party *p, const dafl_effect *effect);

/* ---- net.c: the network ---- */

typedef struct {
    uint64_t at, order;
    uint16_t from, to;
    uint32_t link; /* the connection it travels on */
    uint8_t *bytes;
    size_t len;
} lab_flight;

void lab_net_send(lab *l, lab_party *from, const dafl_effect *effect);
/* The next to arrive, or NULL. */
lab_flight *lab_net_next(lab *l);
/* Let it arrive. */
void lab_net_deliver(lab *l, lab_flight *flight);
void lab_net_break(lab *l, lab_party *peer);
void lab_net_connect(lab *l, lab_party *peer);

/* ---- leave.c: clients that go away ---- */

typedef struct {
    uint16_t client;
    uint32_t question;
    lab_phase phase;
    lab_back back;
    bool crash, done;
} lab_leaving;
typedef enum { LAB_HOW_SENT, LAB_HOW_ARRIVING, LAB_HOW_ARRIVED } lab_how;
/* Whether the client goes now that a message of its own is sent or has arrived,
 * or one of the server is about to arrive. */
bool lab_leave_now(lab *l, lab_party *client, lab_how how,
                   const dafl_envelope *m);
/* The server has sent this: who comes back? */
void lab_leave_over(lab *l, const dafl_envelope *m);

/* ---- vectors.c: what is summed ---- */

extern const lab_method lab_vectors;
typedef struct {
    uint16_t client;
    uint32_t question;
    dafl_fault fault;
} lab_refusal;

/* ---- witness.c: what was seen ---- */

void lab_witness_message(lab *l, lab_way way, uint16_t from, uint16_t to,
                         dafl_bytes bytes);
void lab_witness_event(lab *l, const lab_party *p, const dafl_event *event);
/* A message is about to be sent: is the disk as it must be? */
void lab_witness_disk(lab *l, const lab_party *p, const dafl_envelope *m);
void lab_broken(lab *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void lab_witness_drop(lab *l);

/* ---- judge.c: whether it is right ---- */

typedef struct lab_judge lab_judge;
void lab_judge_drop(lab *l);

/* ---- lab.c ---- */

struct lab {
    lab_scenario scenario;
    dafl_roster roster;
    uint8_t method_params[8];
    dafl_run_id run;
    dafl_draw draw; /* the network's chances */
    dafl_draw own;  /* lab_random */
    dafl_seed inputs;
    uint64_t now, steps, order;
    uint64_t ahead; /* the server's clock of ours, modulo 2^64 */
    lab_outcome outcome;
    bool trace;
    uint16_t n;         /* parties */
    lab_party *parties; /* k clients, the server, a key holder */
    lab_list flights;   /* lab_flight */
    lab_list leavings;  /* lab_leaving */
    lab_list refusals;  /* lab_refusal */
    lab_list questions; /* uint32_t by slot */
    lab_list seen;      /* lab_seen */
    lab_list events;    /* lab_event */
    lab_list sums;      /* lab_sum */
    size_t wrong_sums;
    lab_judge *judge; /* made by the first lab_violation */
    char violation[256];
};

/* What the server's clock shows. */
uint64_t lab_server_time(const lab *l);
lab_party *lab_party_of(const lab *l, uint16_t index);
lab_party *lab_the_server(const lab *l);
/* The server has sent the first MODEL of a slot. */
void lab_slot_opens(lab *l, uint32_t slot, uint32_t question);
bool lab_chance(lab *l, uint16_t permille);
uint64_t lab_between(lab *l, uint64_t from, uint64_t to);
void lab_say(const lab *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
