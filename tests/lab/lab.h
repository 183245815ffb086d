/* SPDX-License-Identifier: Apache-2.0 */
/* The lab: the real machines of a whole run in one process, on a virtual clock,
 * with seeded randomness, disks and a network in memory.
 * Everything that happens follows from the scenario, its seed included, so any
 * run can be had again.
 *
 *     lab_scenario s = lab_scenario_for(5, 1, seed);
 *     lab *l = lab_new(&s);
 *
 *     lab_leave(l, 2, 1, LAB_AFTER_END, LAB_NEXT_SLOT);
 *     lab_check_done(l);
 *     lab_free(&l);
 *
 * Parties are known by their number in the roster: clients 0 .. k - 1, then the
 * server, lab_server_index(l) = k, then, with encryption, the key holder,
 * lab_holder_index(l) = k + 1. Times are virtual milliseconds. What goes
 * wrong in the lab itself (no memory, a scenario that makes no sense) aborts
 * the program. DAFL_LAB_TRACE=1 in the environment prints all that happens.
 *
 * One lab at a time: the random numbers of libsodium come from the last lab
 * that was made. */
#ifndef DAFL_TESTS_LAB_LAB_H
#define DAFL_TESTS_LAB_LAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/client.h"
#include "protocol/config.h"
#include "protocol/envelope.h"
#include "protocol/holder.h"
#include "protocol/roster.h"
#include "protocol/server.h"

typedef struct lab lab;

#define LAB_NEVER UINT64_MAX

/* ---- the scenario ---- */

/* What the network does to messages, each with so many chances in a thousand,
 * decided one message at a time from the seed. Without any of it a connection
 * is like TCP: it delivers in order or breaks. */
typedef struct {
    uint16_t drop;
    uint16_t delay;     /* by up to `delay_max` more */
    uint16_t reorder;   /* let it overtake and be overtaken */
    uint16_t duplicate; /* deliver it again later */
    uint16_t truncate;
    uint16_t flip;    /* one bit */
    bool spare_setup; /* only messages of slots (MODEL .. RESULT) suffer */
    uint32_t latency_min, latency_max;
    uint32_t delay_max;
    uint32_t lost_after; /* from a broken connection to dafl_server_lost */
} lab_net;

/* A message between its sender and the network. */
typedef struct {
    uint16_t from, to;
    dafl_envelope envelope; /* decoded; a view of `bytes` */
    uint8_t *bytes;
    size_t len;
} lab_letter;

/* The attacker on the server's side of the wire. Sees every message as it is
 * sent, before the network's own faults, once per receiver. May change it
 * (lab_letter_set, lab_letter_reseal), send others (lab_post), make parties
 * leave. Returns whether it goes on its way: false keeps it back, for good
 * unless the test copies and posts it later. */
typedef bool lab_intercept(lab *l, lab_letter *letter, void *ctx);

/* What is summed. Fresh objects are made whenever a machine starts. */
typedef struct {
    const char *name;
    const dafl_client_method *client;
    const dafl_server_method *server;
    void *(*new_client)(lab *l, uint16_t client);
    void *(*new_server)(lab *l);
    void (*free_client)(void *self);
    void (*free_server)(void *self);
} lab_method;

typedef struct {
    uint64_t seed;
    uint32_t run; /* another number is another run of the same parties */
    uint16_t k;   /* clients */
    /* Client u is in cell u / cell_size, those that are left over in the last
     * cell; or in cells[u], if there is a list (borrowed). */
    uint16_t cell_size;
    const uint16_t *cells;
    /* As it stands here, but for the method's name, the params of the vectors,
     * and the slots if they are 0: these the lab fills in. */
    dafl_config config;
    dafl_floor floor; /* of every client */
    /* What to sum: NULL for the vectors of tests/lab/vectors.c; the next five
     * are theirs. */
    const lab_method *method;
    uint32_t questions;
    uint32_t tail;         /* numbers of an answer: k + tail + question % 3 */
    uint32_t segment_more; /* 32-byte pieces of a segment beyond the first */
    bool ties; /* ask odd questions from 3 on tied to the two before */
    /* Leave in `cohort` who is to answer, or NULL: everybody. */
    void (*choose)(void *ctx, const dafl_question *q, const dafl_roster *roster,
                   dafl_members *cohort);
    lab_net net;
    uint32_t hello_after;   /* silence after which a client says HELLO */
    uint32_t restart_after; /* from a crash to the restart */
    uint64_t steps_max;     /* one more is LAB_HUNG */
    lab_intercept *intercept;
    /* Give a party another roster, config or floor than the others have. */
    void (*outfit)(void *ctx, uint16_t party, dafl_roster *roster,
                   dafl_config *config, dafl_floor *floor);
    void *ctx;  /* handed to the functions above */
    bool audit; /* every party writes its audit log, see lab_log */
    /* The test provokes sums that do not open: they are E_SUM_INVALID and
     * counted, and no broken invariant. */
    bool wrong_sums_expected;
} lab_scenario;

/* k clients in cells of at least cell_size, 3 questions with short answers,
 * waits of 20 s, a network without faults. The policy is the strictest that k
 * and the cells allow with one colluding client (c = 1; c = 0 for k < 3): n_min
 * = k, m = c + 2, g = cell_size, a = all that the threshold tolerates. No
 * cohort is sent home for being thin (tries = 0). */
lab_scenario lab_scenario_for(uint16_t k, uint16_t cell_size, uint64_t seed);
/* Another number of colluding clients; a follows. */
void lab_scenario_collude(lab_scenario *s, uint16_t c);
/* The same with encryption and a key holder; numbers of 56 bits. What SEAL
 * draws does not follow from the seed. */
void lab_scenario_encrypt(lab_scenario *s);
/* Whether this build can; if not, says so: the program leaves with 77. */
bool lab_can_encrypt(void);
/* Answers that take so many UPLOAD messages. */
void lab_scenario_chunks(lab_scenario *s, uint32_t chunks);

/* Nobody has started yet: the machines boot with the first steps, so that
 * trouble can be planned from their first effects on. */
lab *lab_new(const lab_scenario *scenario);
void lab_free(lab **l);

/* ---- running ---- */

typedef enum {
    LAB_RUNNING,
    LAB_DONE,   /* the method's questions are answered */
    LAB_FAILED, /* the server's run is over with a fault */
    LAB_HUNG,   /* steps_max are spent, or nothing can happen any more */
} lab_outcome;

/* Jump to the next thing that happens and let it happen: a delivery, a
 * deadline, a connection, a restart, a HELLO. False when the run is over (then
 * all that was in flight has been delivered) or hung. */
bool lab_step(lab *l);
/* All steps. LAB_HUNG prints the state of everybody. */
lab_outcome lab_run(lab *l);
/* Steps until the server has sent a message of this type for this question,
 * before it is delivered. False if the run ends first. */
bool lab_run_to(lab *l, dafl_msg_type type, uint32_t question);
lab_outcome lab_outcome_of(const lab *l);
/* Everybody's state and the last events, on stderr. */
void lab_dump(const lab *l);

/* ---- trouble ---- */

/* When a client goes away in a slot. */
typedef enum {
    LAB_BEFORE_MODEL, /* MODEL does not reach it */
    LAB_BEFORE_READY, /* has MODEL; its READY does not reach the server */
    LAB_AFTER_READY,  /* its READY is the last that reaches the server */
    LAB_AT_CAST,      /* has CAST; no part of its upload reaches the server */
    LAB_MID_UPLOAD,   /* one UPLOAD and no more reaches the server */
    LAB_AFTER_END,    /* its END is the last that reaches the server */
    LAB_AT_SURV,      /* has SURV; its SIGN does not reach the server */
    LAB_AFTER_SIGN,   /* its SIGN is the last that reaches the server */
    LAB_AFTER_REVEAL, /* its REVEAL is the last that reaches the server */
    LAB_PHASES
} lab_phase;

typedef enum {
    LAB_FOR_GOOD,
    LAB_NEXT_SLOT, /* back when the slot's RESULT or the next MODEL is sent */
    LAB_SOON,      /* back at once, before the server notices */
} lab_back;

/* Once, in the first slot of `question` in which the client comes that far:
 * its connection breaks. Any number of times per client. */
void lab_leave(lab *l, uint16_t client, uint32_t question, lab_phase phase,
               lab_back back);
void lab_leave_all(lab *l, const dafl_members *who, uint32_t question,
                   lab_phase phase, lab_back back);
/* The same as a crash; the client restarts when it would be back. */
void lab_leave_crashing(lab *l, uint16_t client, uint32_t question,
                        lab_phase phase, lab_back back);

/* Break the connection of a client or the key holder now: what is in flight
 * either way is lost. It stays broken until lab_reconnect. */
void lab_disconnect(lab *l, uint16_t peer);
void lab_reconnect(lab *l, uint16_t peer);

/* The line of a client or the key holder stands still: nothing that is sent
 * from now on, either way, arrives before so much later. */
void lab_stall(lab *l, uint16_t peer, uint64_t time);

/* The server's clock goes on from another time, that much later or earlier.
 * Nobody else has a clock, and lab_now does not show it. */
void lab_clock_jump(lab *l, int64_t by);
/* When the server's next deadline comes, by lab_now: LAB_NEVER for none. */
uint64_t lab_deadline(const lab *l);

/* The party's machine is gone as soon as it has carried out its n-th effect (n
 * from 1, over all its lives); the effects behind it are lost. It restarts from
 * its disk after scenario.restart_after. */
void lab_crash_after(lab *l, uint16_t party, uint64_t n);
/* Now, and until lab_restart (LAB_NEVER: none planned) or so much later. */
void lab_crash(lab *l, uint16_t party, uint64_t restart_after);
void lab_restart(lab *l, uint16_t party);
/* Effects carried out so far: the crash points there are. */
uint64_t lab_effects(const lab *l, uint16_t party);

/* A party's journal and vault. Put: as they were; restart the party to make it
 * look at them. */
typedef struct lab_disk lab_disk;
lab_disk *lab_disk_copy(const lab *l, uint16_t party);
void lab_disk_put(lab *l, uint16_t party, const lab_disk *disk);
void lab_disk_free(lab_disk **disk);
size_t lab_disk_records(const lab *l, uint16_t party);
dafl_bytes lab_disk_record(const lab *l, uint16_t party, size_t i);
/* The vault's record of a slot; .ptr is NULL when there is none. */
dafl_bytes lab_disk_secret(const lab *l, uint16_t party, uint32_t slot);

/* A party's audit log (scenario.audit), which outlives its crashes; and a test
 * may put another in its place while the party is down. */
dafl_bytes lab_log(const lab *l, uint16_t party);
void lab_log_put(lab *l, uint16_t party, dafl_bytes log);

/* The client keeps its answer to this question back with this fault. */
void lab_refuse(lab *l, uint16_t client, uint32_t question, dafl_fault fault);

/* ---- the attacker's tools ---- */

/* Put a message (copied) into the network, to be delivered `after` so long,
 * if the client's connection holds until then. Not intercepted, not damaged,
 * not in the transcript before it is delivered. The network does not compare
 * `from` with the sender in the envelope. */
void lab_post(lab *l, uint16_t from, uint16_t to, dafl_bytes message,
              uint64_t after);
/* Sign a message as `from`. seq 0: the highest that `from` has used so far.
 * Drop *out when done. */
void lab_seal(lab *l, dafl_writer *out, uint16_t from, dafl_msg_type type,
              uint32_t slot, uint64_t seq, dafl_bytes body);
/* Replace an intercepted message by any bytes; by one with another body, signed
 * by its sender. Both decode letter->envelope anew. */
void lab_letter_set(lab_letter *letter, dafl_bytes message);
void lab_letter_reseal(lab *l, lab_letter *letter, dafl_bytes body);
/* Sign an END (its dig) as a client that was cast in this context. */
void lab_sign_end(const lab *l, uint16_t client, const dafl_digest *ctx2,
                  dafl_end_msg *end);
/* Every party's secrets. */
const dafl_secret_identity *lab_identity(const lab *l, uint16_t party);

/* ---- looking ---- */

uint64_t lab_now(const lab *l);
const lab_scenario *lab_scenario_of(const lab *l);
uint16_t lab_server_index(const lab *l);
uint16_t lab_holder_index(const lab *l);
const dafl_roster *lab_roster(const lab *l);
dafl_members lab_everybody(const lab *l);
/* The clients at whose place there is a bit, of the first 64. */
dafl_members lab_members(const lab *l, uint64_t bits);
const dafl_config *lab_config(const lab *l);
dafl_run_id lab_run_id(const lab *l);
/* NULL before the start, while crashed, and when it was refused. */
dafl_client *lab_client(const lab *l, uint16_t client);
dafl_server *lab_server(const lab *l);
dafl_holder *lab_holder(const lab *l);
/* Why dafl_client_new, dafl_server_new or dafl_holder_new did not make the
 * party's machine. */
dafl_fault lab_refused(const lab *l, uint16_t party);
bool lab_connected(const lab *l, uint16_t peer);
/* The question that a slot is for: UINT32_MAX before its MODEL is sent. */
uint32_t lab_slot_question(const lab *l, uint32_t slot);
/* A random number for the test itself, from the scenario's seed. */
uint64_t lab_random(lab *l, uint64_t below);

/* What a machine told (DAFL_DO_TELL). */
typedef struct {
    uint64_t time;
    uint16_t party;
    dafl_event event;
} lab_event;
size_t lab_events(const lab *l, const lab_event **out);
#define LAB_ANYBODY 65535
/* Events of a kind; errors only with this fault, unless it is
 * DAFL_FAULT_COUNT. */
size_t lab_count(const lab *l, uint16_t party, dafl_event_kind kind,
                 dafl_fault fault);

/* How a slot ended, by the server's own account; DAFL_FAULT_COUNT: not yet. */
dafl_fault lab_result(const lab *l, uint32_t slot);

/* What was sent and what was delivered, in order. The bodies of PEERS, SHARES
 * and SETUP are left out: they are long, and an intercept has them. */
typedef enum {
    LAB_SENT,      /* by the machine `from`, whatever became of it */
    LAB_DELIVERED, /* to the machine `to`, whoever made it */
} lab_way;
typedef struct {
    uint64_t time;
    lab_way way;
    uint16_t from, to;
    uint8_t type; /* 0: bytes that are no envelope */
    uint32_t slot;
    uint64_t seq;
    dafl_envelope envelope; /* view of bytes */
    dafl_bytes bytes;
} lab_seen;
size_t lab_transcript(const lab *l, const lab_seen **out);
/* The next entry from *at on that fits; advances *at beyond it. NULL: none.
 * LAB_ANYBODY for from or to, UINT32_MAX for the slot fit all. */
const lab_seen *lab_find(const lab *l, size_t *at, lab_way way, uint16_t from,
                         uint16_t to, dafl_msg_type type, uint32_t slot);

/* Sums that the server's method was given and that opened exactly, in order;
 * after a restart of the server those of its journal come again. */
typedef struct {
    uint32_t question, rank;
    dafl_members cohort;
    const int64_t *sum;
    size_t len;
} lab_sum;
size_t lab_sums(const lab *l, const lab_sum **out);
/* The last one of a question, or NULL. */
const lab_sum *lab_sum_of(const lab *l, uint32_t question);
/* Sums that were not the plain sum over their cohort. */
size_t lab_wrong_sums(const lab *l);

/* Coded inputs: number u of client u is 1, the numbers of the other clients are
 * 0; from k on numbers that the contract just allows. */
size_t lab_answer_len(const lab *l, uint32_t question);
void lab_answer(const lab *l, uint16_t client, uint32_t question, int64_t *x);

/* ---- what must always hold ---- */

/* Of the machines, whatever the other side and the network did:
 *  - every sum that the method took is the plain sum over its cohort, which is
 *    of whole cells (g > 1) and has at least m members;
 *  - a client never sends two different uploads, ENDs, SIGNs or shares in one
 *    slot, nor anything for a slot older than one it has spoken in;
 *  - it never gives both kinds of share of one dealer in a slot, none before a
 *    CONF with a valid signature has reached it, and no two clients give
 *    different kinds;
 *  - sequence numbers of a sender rise;
 *  - before ENROLL, the first UPLOAD and SIGN go out their records are in the
 *    journal, and no secret of a slot is left in a vault once its client has
 *    spoken in a later slot;
 *  - the server sends one CAST and one SURV per slot;
 *  - the key holder gives one key and one answer per slot, each after its
 * record is in the journal, the answer after it is kept;
 *  - no machine returns an error.
 * The first thing that does not hold, in words; NULL when all does. Looks only
 * at what is new since the last call: it can be called after every step. */
const char *lab_violation(lab *l);

/* These fail the test (cmocka), with the seed and the state of everybody. */
void lab_check_invariants(lab *l);
/* Run to the end: invariants hold, and every vector question has its sum. */
void lab_check_done(lab *l);
/* The question was answered by exactly these. */
void lab_check_cohort(lab *l, uint32_t question, const dafl_members *cohort);

#endif
