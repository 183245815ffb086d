/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the checker of audit logs, shared by the files audit_*.c. */
#ifndef DAFL_PROTOCOL_AUDIT_STATE_H
#define DAFL_PROTOCOL_AUDIT_STATE_H

#include "protocol/audit_check.h"
#include "protocol/context.h"

/* A line and where it stands. */
typedef struct {
    dafl_audit_line line;
    uint64_t seq;
    bool sound; /* before anything that is damaged */
} dafl_audit_place;

typedef struct {
    dafl_audit_place *places; /* lines that are really the party's */
    size_t n, room;
    dafl_digest *heads; /* all hashes that stand there, sorted */
    size_t n_heads, room_heads;
} dafl_audit_loaded;

/* A setup as the first log has it that tells of it. */
typedef struct {
    dafl_run_id run;
    uint32_t enrolment;
    dafl_digest h_setup;
    size_t log;
} dafl_audit_setup;

typedef struct {
    const dafl_roster *roster;
    const dafl_config *config;
    dafl_digest roster_hash, config_hash;
    const dafl_audit_log *given;
    dafl_audit_loaded *loaded; /* [log] */
    dafl_audit_report *report;
    bool server; /* the server's log is there and whole */
    size_t room_findings, room_statements, room_proofs, room_slots;
    dafl_audit_setup *setups;
    size_t n_setups, room_setups;
    size_t *table; /* statements by digest: index + 1, 0 for none */
    size_t n_table;
    dafl_err err; /* memory was short */
} dafl_audit_checker;

/* Room for one more item at the end of a list, zeroed; NULL sets k->err. */
void *dafl_audit_grow(dafl_audit_checker *k, void **list, size_t *n,
                      size_t *room, size_t size);

/* Note a finding; the caller makes the sentence with dafl_why_set, which takes
 * the NULL that comes when there are too many. */
dafl_why *dafl_audit_find(dafl_audit_checker *k, dafl_audit_rule rule,
                          uint16_t party, size_t log, uint64_t seq);
/* The party's name, or the log's. */
const char *dafl_audit_name(const dafl_audit_checker *k, uint16_t party);

/* audit_chain.c: read a log, judge its text, find out whose it is. */
void dafl_audit_load(dafl_audit_checker *k, size_t log);

/* audit_rules.c: what its party did, line by line. */
void dafl_audit_walk(dafl_audit_checker *k, size_t log);

/* audit_cross.c: find a slot or, if asked, enter it; find or enter a statement;
 * enter a signature if it holds. NULL when there is none or memory is short. */
dafl_audit_slot *dafl_audit_slot_of(dafl_audit_checker *k,
                                    const dafl_run_id *run, uint32_t slot,
                                    bool make);
dafl_audit_statement *dafl_audit_state(dafl_audit_checker *k,
                                       const dafl_audit_statement *said);
bool dafl_audit_signed(dafl_audit_checker *k, dafl_audit_statement *s,
                       uint16_t client, const uint8_t *signature);
/* Copies of one log, and forks. */
void dafl_audit_compare_copies(dafl_audit_checker *k);
/* Heads that peers saw. */
void dafl_audit_compare_heads(dafl_audit_checker *k);
/* Clients that signed twice, or what they do not tell of. */
void dafl_audit_compare_statements(dafl_audit_checker *k);

#endif
