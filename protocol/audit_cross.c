/* SPDX-License-Identifier: Apache-2.0 */
/* Logs against each other: slots, statements and who signed them, heads. */
#include <stdlib.h>
#include <string.h>

#include "protocol/audit_state.h"

/* ---- slots ---- */

static int order_of(const dafl_audit_slot *s, const dafl_run_id *run,
                    uint32_t slot)
{
    int runs = memcmp(s->run.b, run->b, sizeof run->b);

    return runs != 0 ? runs : (s->slot > slot) - (s->slot < slot);
}

dafl_audit_slot *dafl_audit_slot_of(dafl_audit_checker *k,
                                    const dafl_run_id *run, uint32_t slot,
                                    bool make)
{
    dafl_audit_report *r = k->report;
    size_t from = 0, to = r->n_slots;
    dafl_audit_slot *s;

    while (from < to) {
        size_t mid = from + (to - from) / 2;
        int order = order_of(&r->slots[mid], run, slot);
        if (order == 0)
            return &r->slots[mid];
        if (order < 0)
            from = mid + 1;
        else
            to = mid;
    }
    if (!make || dafl_audit_grow(k, (void **)&r->slots, &r->n_slots,
                                 &k->room_slots, sizeof *s) == NULL)
        return NULL;
    s = &r->slots[from];
    memmove(s + 1, s, (r->n_slots - 1 - from) * sizeof *s);
    *s = (dafl_audit_slot){
        .run = *run, .slot = slot, .question = DAFL_NO_QUESTION};
    return s;
}

/* ---- statements ---- */

static size_t *cell_of(const dafl_audit_checker *k, const dafl_digest *stmt)
{
    uint64_t at = 0;

    memcpy(&at, stmt->b, sizeof at);
    for (at %= k->n_table;; at = (at + 1) % k->n_table) {
        size_t index = k->table[at];
        if (index == 0 ||
            dafl_digest_equal(&k->report->statements[index - 1].stmt, stmt))
            return &k->table[at];
    }
}

/* Keep the table at most half full. */
static bool widen_table(dafl_audit_checker *k)
{
    size_t n = k->report->n_statements;

    if (2 * (n + 1) <= k->n_table)
        return true;
    free(k->table);
    k->n_table = k->n_table == 0 ? 64 : 2 * k->n_table;
    k->table = calloc(k->n_table, sizeof *k->table);
    if (k->table == NULL) {
        k->n_table = 0;
        k->err = DAFL_ERR_NOMEM;
        return false;
    }
    for (size_t i = 0; i < n; i++)
        *cell_of(k, &k->report->statements[i].stmt) = i + 1;
    return true;
}

dafl_audit_statement *dafl_audit_state(dafl_audit_checker *k,
                                       const dafl_audit_statement *said)
{
    dafl_audit_report *r = k->report;
    dafl_audit_statement *s;
    size_t *cell;

    if (k->err != DAFL_OK || !widen_table(k))
        return NULL;
    cell = cell_of(k, &said->stmt);
    if (*cell != 0)
        return &r->statements[*cell - 1];
    s = dafl_audit_grow(k, (void **)&r->statements, &r->n_statements,
                        &k->room_statements, sizeof *s);
    if (s == NULL)
        return NULL;
    *cell = r->n_statements;
    *s = *said;
    s->digests = (dafl_writer){0};
    dafl_put_fixed(&s->digests, said->digests.ptr, said->digests.len);
    s->signers = s->logged = dafl_members_none(k->roster->n_clients);
    s->signatures = calloc(k->roster->n_clients, sizeof *s->signatures);
    if (s->signatures == NULL || dafl_writer_done(&s->digests) != DAFL_OK) {
        k->err = DAFL_ERR_NOMEM;
        return NULL;
    }
    return s;
}

bool dafl_audit_signed(dafl_audit_checker *k, dafl_audit_statement *s,
                       uint16_t client, const uint8_t *signature)
{
    dafl_signature sig;

    memcpy(sig.b, signature, sizeof sig.b);
    if (dafl_members_has(&s->signers, client) &&
        memcmp(s->signatures[client].b, sig.b, sizeof sig.b) == 0)
        return true; /* known to hold: most logs have the same ones */
    if (dafl_sign_check(&sig, &s->stmt,
                        k->roster->parties[client].id.sign_pk) != DAFL_OK)
        return false;
    dafl_members_add(&s->signers, client);
    s->signatures[client] = sig;
    return true;
}

/* The log of a party that is whole, or SIZE_MAX. */
static size_t whole_log_of(const dafl_audit_checker *k, uint16_t party)
{
    const dafl_audit_seen *logs = k->report->logs;

    for (size_t i = 0; i < k->report->n_logs; i++)
        if (logs[i].party == party && !logs[i].older && !logs[i].damaged)
            return i;
    return SIZE_MAX;
}

/* A statement that its signer's own log does not have. */
static void find_hidden(dafl_audit_checker *k, const dafl_audit_statement *s)
{
    dafl_members hidden = dafl_members_minus(&s->signers, &s->logged);

    for (uint16_t u = 0; u < hidden.n; u++) {
        size_t log = whole_log_of(k, u);
        if (!dafl_members_has(&hidden, u) || log == SIZE_MAX)
            continue;
        dafl_why_set(dafl_audit_find(k, DAFL_AUDIT_HIDDEN, u, log, 0),
                     "%s signed a statement in slot %u that its log does not "
                     "have, see line %llu of %s",
                     dafl_audit_name(k, u), (unsigned)s->slot,
                     (unsigned long long)s->seq,
                     dafl_audit_name(k, k->report->logs[s->log].party));
    }
}

/* Both of one slot of one setup. One h_setup is one run and one enrolment: it
 * is a digest of both. */
static bool same_slot(const dafl_audit_statement *a,
                      const dafl_audit_statement *b)
{
    return a->slot == b->slot && dafl_digest_equal(&a->h_setup, &b->h_setup);
}

/* Client u signed statement j, and i before it. */
static void prove(dafl_audit_checker *k, uint16_t u, size_t i, size_t j)
{
    const dafl_audit_statement *a = &k->report->statements[i],
                               *b = &k->report->statements[j];
    dafl_audit_proof *proof =
        dafl_audit_grow(k, (void **)&k->report->proofs, &k->report->n_proofs,
                        &k->room_proofs, sizeof *proof);

    if (proof == NULL)
        return;
    *proof = (dafl_audit_proof){.client = u, .statements = {i, j}};
    dafl_why_set(
        dafl_audit_find(k, DAFL_AUDIT_SECOND_STMT, u, SIZE_MAX, 0),
        "%s signed two statements in slot %u: line %llu of %s and "
        "line %llu of %s; proof %zu",
        dafl_audit_name(k, u), (unsigned)a->slot, (unsigned long long)a->seq,
        dafl_audit_name(k, k->report->logs[a->log].party),
        (unsigned long long)b->seq,
        dafl_audit_name(k, k->report->logs[b->log].party), k->report->n_proofs);
}

/* A statement's place in the order by setup and slot. */
typedef struct {
    const dafl_audit_statement *s;
} ordered;

static int by_slot(const void *a, const void *b)
{
    const dafl_audit_statement *x = ((const ordered *)a)->s,
                               *y = ((const ordered *)b)->s;
    int setups = memcmp(x->h_setup.b, y->h_setup.b, sizeof x->h_setup.b);

    if (setups != 0)
        return setups;
    if (x->slot != y->slot)
        return x->slot < y->slot ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* All statements of one slot: one proof for each client that signed more than
 * one of them. */
static void find_proofs(dafl_audit_checker *k, const ordered *group, size_t n)
{
    const dafl_audit_statement *all = k->report->statements;
    size_t first[DAFL_CLIENTS_MAX];
    bool proven[DAFL_CLIENTS_MAX] = {false};

    for (size_t u = 0; u < DAFL_CLIENTS_MAX; u++)
        first[u] = SIZE_MAX;
    for (size_t i = 0; i < n; i++)
        for (uint16_t u = 0; u < k->roster->n_clients; u++) {
            size_t at = (size_t)(group[i].s - all);
            if (proven[u] || !dafl_members_has(&group[i].s->signers, u))
                continue;
            if (first[u] == SIZE_MAX) {
                first[u] = at;
                continue;
            }
            proven[u] = true;
            prove(k, u, first[u], at);
        }
}

void dafl_audit_compare_statements(dafl_audit_checker *k)
{
    size_t n = k->report->n_statements;
    const dafl_audit_statement *all = k->report->statements;
    ordered *list = calloc(n + 1, sizeof *list);

    if (list == NULL) {
        k->err = DAFL_ERR_NOMEM;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        find_hidden(k, &all[i]);
        list[i].s = &all[i];
    }
    qsort(list, n, sizeof *list, by_slot);
    for (size_t i = 0, group = 1; i < n; i += group, group = 1) {
        while (i + group < n && same_slot(list[i].s, list[i + group].s))
            group++;
        find_proofs(k, &list[i], group);
    }
    free(list);
}

/* ---- copies and heads ---- */

/* Lines that two logs have in common; *ends: one of them ends there. */
static uint64_t common_lines(dafl_bytes a, dafl_bytes b, bool *ends)
{
    size_t least = a.len < b.len ? a.len : b.len, line = 0;
    uint64_t n = 0;

    for (size_t i = 0; i < least && a.ptr[i] == b.ptr[i]; i++)
        if (a.ptr[i] == '\n') {
            n++;
            line = i + 1;
        }
    *ends = line == least;
    return n;
}

void dafl_audit_compare_copies(dafl_audit_checker *k)
{
    dafl_audit_seen *logs = k->report->logs;

    for (size_t i = 0; i < k->report->n_logs; i++)
        for (size_t j = 0; j < i; j++) {
            dafl_bytes a = k->given[i].bytes, b = k->given[j].bytes;
            uint64_t from;
            bool ends = false;
            if (logs[i].older || logs[j].older ||
                logs[i].party == DAFL_NOBODY || logs[i].party != logs[j].party)
                continue;
            from = common_lines(a, b, &ends) + 1;
            if (ends) {
                logs[a.len > b.len ? j : i].older = true;
                continue;
            }
            dafl_why_set(
                dafl_audit_find(k, DAFL_AUDIT_FORK, logs[i].party, i, from),
                "two logs of %s differ from line %llu on: %s and %s",
                dafl_audit_name(k, logs[i].party), (unsigned long long)from,
                k->given[j].name, k->given[i].name);
        }
}

static int compare_heads(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(dafl_digest));
}

/* Where a head stands in a party's log. */
typedef enum { NO_LOG, IS_THERE, IS_NOT } head_state;

static head_state find_head(const dafl_audit_checker *k, uint16_t party,
                            const dafl_digest *head)
{
    head_state state = NO_LOG;

    for (size_t i = 0; i < k->report->n_logs && state != IS_THERE; i++) {
        const dafl_audit_loaded *l = &k->loaded[i];
        if (k->report->logs[i].party != party)
            continue;
        state = l->n_heads > 0 && bsearch(head, l->heads, l->n_heads,
                                          sizeof *head, compare_heads) != NULL
                    ? IS_THERE
                    : IS_NOT;
    }
    return state;
}

/* The line of that hash. */
static uint64_t seq_of(const dafl_audit_checker *k, uint16_t party,
                       const dafl_digest *head)
{
    for (size_t i = 0; i < k->report->n_logs; i++)
        for (size_t j = 0;
             k->report->logs[i].party == party && j < k->loaded[i].n; j++)
            if (dafl_digest_equal(&k->loaded[i].places[j].line.hash, head))
                return k->loaded[i].places[j].seq;
    return 0;
}

/* What one log says of all others' heads. The first that is missing is told of
 * for each party. */
static void compare_with(dafl_audit_checker *k, size_t log)
{
    const dafl_audit_loaded *l = &k->loaded[log];
    dafl_digest last[DAFL_PARTIES_MAX];
    bool told[DAFL_PARTIES_MAX] = {false};

    memset(last, 0, sizeof last);
    for (size_t i = 0; i < l->n; i++) {
        const dafl_event *e = &l->places[i].line.event;
        head_state state;
        uint64_t seq;
        if (e->kind != DAFL_EVENT_PEER_HEAD || e->peer >= k->roster->n ||
            told[e->peer])
            continue;
        state = find_head(k, e->peer, &e->digest);
        if (state == IS_THERE)
            last[e->peer] = e->digest;
        if (state != IS_NOT)
            continue;
        told[e->peer] = true;
        seq = seq_of(k, e->peer, &last[e->peer]);
        dafl_why_set(dafl_audit_find(k, DAFL_AUDIT_TRUNCATED, e->peer,
                                     whole_log_of(k, e->peer), seq),
                     "the log of %s is truncated or forked after line %llu: "
                     "%s saw a head that it does not have (line %llu)",
                     dafl_audit_name(k, e->peer), (unsigned long long)seq,
                     dafl_audit_name(k, k->report->logs[log].party),
                     (unsigned long long)l->places[i].seq);
    }
}

void dafl_audit_compare_heads(dafl_audit_checker *k)
{
    for (size_t i = 0; i < k->report->n_logs; i++)
        if (!k->report->logs[i].older)
            compare_with(k, i);
}
