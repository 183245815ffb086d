/* SPDX-License-Identifier: Apache-2.0 */
/* Judging audit logs (protocol/audit.h) after the fact, by anybody who has the
 * roster and the config: each log by itself, and the logs against each other.
 * Pure: logs are bytes.
 *
 * A log by itself cannot hide an edit, but it can be cut, or kept twice with
 * different contents; what its peers say of its heads tells. What no peer has
 * seen (at least what came after a party's last message) can be cut unseen. */
#ifndef DAFL_PROTOCOL_AUDIT_CHECK_H
#define DAFL_PROTOCOL_AUDIT_CHECK_H

#include "protocol/audit.h"
#include "protocol/config.h"

#define DAFL_AUDIT_RULES(X)                                \
    /* the text: */                                        \
    X(FORM, "line not canonical")                          \
    X(GAP, "lines missing or out of order")                \
    X(CHAIN, "line does not follow the one before")        \
    X(HASH, "line changed")                                \
    X(SIGNATURE, "not signed by the party")                \
    X(BINDING, "of another party, roster or config")       \
    /* what the party did: */                              \
    X(ORDER, "out of turn")                                \
    X(SLOT_ORDER, "slot order broken")                     \
    X(SLOT_REUSED, "slot used twice")                      \
    X(UPLOADS, "two uploads in one slot")                  \
    X(SECOND_STMT, "two statements signed in one slot")    \
    X(SETUP, "setup against the policy")                   \
    X(CELL_SPLIT, "cell split")                            \
    X(COHORT, "cohort below m or with strangers")          \
    X(DIGEST, "digest or signature not of what is logged") \
    X(QUORUM, "quorum missing")                            \
    X(EARLY_REVEAL, "shares revealed before a quorum")     \
    X(RESULT, "sum opened without a quorum for it")        \
    /* logs against each other: */                         \
    X(TRUNCATED, "log truncated or forked")                \
    X(FORK, "two logs of one party")                       \
    X(HIDDEN, "signature not in its signer's log")         \
    X(SPLIT, "the server's log says otherwise")

typedef enum {
#define X(name, text) DAFL_AUDIT_##name,
    DAFL_AUDIT_RULES(X)
#undef X
        DAFL_AUDIT_RULE_COUNT
} dafl_audit_rule;

/* "COHORT", and a few words. */
const char *dafl_audit_rule_name(dafl_audit_rule rule);
const char *dafl_audit_rule_text(dafl_audit_rule rule);

typedef struct {
    dafl_audit_rule rule;
    uint16_t party; /* at fault; DAFL_NOBODY: the log does not say whose it is
                     */
    size_t log;     /* in which of the logs it stands; SIZE_MAX: in none */
    uint64_t seq;   /* at or after which line; 0: none */
    dafl_why why;   /* one sentence with names */
} dafl_audit_finding;

/* Everything that a statement is made of (protocol/context.h), and who signed
 * it. */
typedef struct {
    dafl_run_id run;
    dafl_digest h_setup, model;
    uint32_t slot, question, rank;
    uint64_t len;
    uint8_t w;
    dafl_digest he; /* zeros without encryption */
    dafl_members a, u3;
    dafl_writer digests; /* of U3 in order */
    dafl_digest stmt;
    dafl_members signers;
    dafl_signature *signatures; /* [client] */
    /* for the checker: */
    dafl_members logged; /* who has it in its own log */
    size_t log;          /* who said it first, */
    uint64_t seq;        /* and where */
} dafl_audit_statement;

/* Two statements of one setup and slot, signed by one client: anyone can check
 * it with the client's public key alone. */
typedef struct {
    uint16_t client;
    size_t statements[2]; /* in the report */
} dafl_audit_proof;

/* What became of a slot: from the server's log if that was given. */
typedef struct {
    dafl_run_id run;
    uint32_t slot, question;
    bool confirmed; /* a quorum signed: from then on the sum was open */
    bool ended;     /* there is a result: */
    dafl_fault fault;
    dafl_digest sum;
    dafl_members cohort; /* n = 0: unknown, or it did not come so far */
    /* for the checker, what the server's log says: */
    bool asked, cast, surveyed, opened;
    dafl_digest ctx, ctx2, stmt, sealed;
} dafl_audit_slot;

typedef struct {
    const char *name; /* for the report; borrowed */
    dafl_bytes bytes;
} dafl_audit_log;

typedef struct {
    uint16_t party;   /* DAFL_NOBODY: it does not say */
    uint64_t n_lines; /* that are whole */
    bool older;       /* an earlier copy of another one: not looked at */
    bool damaged;     /* the rules were only applied to what is before that */
} dafl_audit_seen;

/* How many findings are kept; the others are counted. */
#define DAFL_AUDIT_FINDINGS_MAX 1000

typedef struct {
    size_t n_logs;
    dafl_audit_seen *logs; /* as given */
    size_t n_found;        /* 0: clean */
    size_t n_findings;
    dafl_audit_finding *findings;
    size_t n_statements;
    dafl_audit_statement *statements;
    size_t n_proofs;
    dafl_audit_proof *proofs;
    size_t n_slots;
    dafl_audit_slot *slots; /* by run and number */
} dafl_audit_report;

/* Judge logs. Roster and config must be those of the run (the logs name their
 * hashes); a config that breaks a rule is DAFL_ERR_INPUT with the reason. What
 * is wrong with a log is a finding, no error. */
DAFL_CHECK dafl_err dafl_audit_verify(dafl_audit_report **out,
                                      const dafl_roster *roster,
                                      const dafl_config *config,
                                      const dafl_audit_log *logs, size_t n,
                                      dafl_why *why);
void dafl_audit_report_free(dafl_audit_report **report);

#endif
