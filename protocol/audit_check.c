/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/audit_check.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/audit_state.h"

static const struct {
    const char *name, *text;
} rules[DAFL_AUDIT_RULE_COUNT] = {
#define X(name, text) [DAFL_AUDIT_##name] = {#name, text},
    DAFL_AUDIT_RULES(X)
#undef X
};

const char *dafl_audit_rule_name(dafl_audit_rule rule)
{
    return (unsigned)rule < DAFL_AUDIT_RULE_COUNT ? rules[rule].name : "?";
}

const char *dafl_audit_rule_text(dafl_audit_rule rule)
{
    return (unsigned)rule < DAFL_AUDIT_RULE_COUNT ? rules[rule].text : "?";
}

void *dafl_audit_grow(dafl_audit_checker *k, void **list, size_t *n,
                      size_t *room, size_t size)
{
    if (*n == *room) {
        size_t more = *room == 0 ? 16 : 2 * *room;
        void *items = realloc(*list, more * size);
        if (items == NULL) {
            k->err = DAFL_ERR_NOMEM;
            return NULL;
        }
        *list = items;
        *room = more;
    }
    return memset((char *)*list + (*n)++ * size, 0, size);
}

dafl_why *dafl_audit_find(dafl_audit_checker *k, dafl_audit_rule rule,
                          uint16_t party, size_t log, uint64_t seq)
{
    dafl_audit_report *r = k->report;
    dafl_audit_finding *f = NULL;

    r->n_found++;
    if (r->n_findings < DAFL_AUDIT_FINDINGS_MAX)
        f = dafl_audit_grow(k, (void **)&r->findings, &r->n_findings,
                            &k->room_findings, sizeof *f);
    if (f == NULL)
        return NULL; /* which dafl_why_set accepts */
    f->rule = rule;
    f->party = party;
    f->log = log;
    f->seq = seq;
    return &f->why;
}

const char *dafl_audit_name(const dafl_audit_checker *k, uint16_t party)
{
    return party < k->roster->n ? k->roster->parties[party].id.name
                                : "an unknown party";
}

void dafl_audit_report_free(dafl_audit_report **report)
{
    dafl_audit_report *r = *report;

    if (r == NULL)
        return;
    for (size_t i = 0; i < r->n_statements; i++) {
        dafl_writer_drop(&r->statements[i].digests);
        free(r->statements[i].signatures);
    }
    free(r->statements);
    free(r->logs);
    free(r->findings);
    free(r->proofs);
    free(r->slots);
    free(r);
    *report = NULL;
}

static void drop(dafl_audit_checker *k)
{
    for (size_t i = 0;
         k->loaded != NULL && k->report != NULL && i < k->report->n_logs; i++) {
        for (size_t j = 0; j < k->loaded[i].n; j++)
            dafl_audit_line_drop(&k->loaded[i].places[j].line);
        free(k->loaded[i].places);
        free(k->loaded[i].heads);
    }
    free(k->loaded);
    free(k->setups);
    free(k->table);
}

static bool is_server(const dafl_audit_checker *k, size_t log)
{
    uint16_t party = k->report->logs[log].party;

    return party < k->roster->n &&
           k->roster->parties[party].role == DAFL_ROLE_SERVER;
}

/* The server's log first: the others are compared with it. */
static void walk_all(dafl_audit_checker *k)
{
    for (int server = 1; server >= 0; server--)
        for (size_t i = 0; i < k->report->n_logs && k->err == DAFL_OK; i++) {
            const dafl_audit_seen *seen = &k->report->logs[i];
            if (seen->older || is_server(k, i) != (server == 1))
                continue;
            dafl_audit_walk(k, i);
            if (server == 1 && !seen->damaged)
                k->server = true;
        }
}

dafl_err dafl_audit_verify(dafl_audit_report **out, const dafl_roster *roster,
                           const dafl_config *config,
                           const dafl_audit_log *logs, size_t n, dafl_why *why)
{
    dafl_audit_checker k = {.roster = roster, .config = config, .given = logs};

    if (dafl_config_check(config, roster, why) != DAFL_FAULT_NONE)
        return DAFL_ERR_INPUT;
    DAFL_TRY(dafl_roster_digest(&k.roster_hash, roster));
    DAFL_TRY(dafl_config_digest(&k.config_hash, config));
    k.report = calloc(1, sizeof *k.report);
    k.loaded = calloc(n + 1, sizeof *k.loaded);
    if (k.report != NULL)
        k.report->logs = calloc(n + 1, sizeof *k.report->logs);
    if (k.loaded == NULL || k.report == NULL || k.report->logs == NULL) {
        k.err = DAFL_ERR_NOMEM;
    } else {
        k.report->n_logs = n;
        for (size_t i = 0; i < n && k.err == DAFL_OK; i++)
            dafl_audit_load(&k, i);
        dafl_audit_compare_copies(&k);
        walk_all(&k);
        if (k.err == DAFL_OK)
            dafl_audit_compare_statements(&k);
        dafl_audit_compare_heads(&k);
    }
    drop(&k);
    if (k.err == DAFL_OK)
        *out = k.report;
    else
        dafl_audit_report_free(&k.report);
    return k.err;
}
