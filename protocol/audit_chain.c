/* SPDX-License-Identifier: Apache-2.0 */
/* One log as a text: every line canonical, numbered, chained, signed. */
#include <stdlib.h>
#include <string.h>

#include "protocol/audit_state.h"

/* The next line without its newline; false at the end, or when the last one
 * has no newline (then *rest is not empty). */
static bool next_line(dafl_bytes *rest, dafl_bytes *line)
{
    const uint8_t *end =
        rest->len == 0 ? NULL : memchr(rest->ptr, '\n', rest->len);

    if (end == NULL)
        return false;
    *line = (dafl_bytes){rest->ptr, (size_t)(end - rest->ptr)};
    rest->ptr = end + 1;
    rest->len -= line->len + 1;
    return true;
}

/* Whether the line is by the party that it names. */
static dafl_audit_rule judge_line(const dafl_audit_checker *k,
                                  const dafl_audit_line *line, uint16_t party)
{
    dafl_digest hash;

    if (line->party != party || party >= k->roster->n)
        return DAFL_AUDIT_BINDING;
    if (dafl_audit_line_digest(&hash, line) != DAFL_OK ||
        !dafl_digest_equal(&hash, &line->hash))
        return DAFL_AUDIT_HASH;
    if (dafl_sign_check(&line->sig, &line->hash,
                        k->roster->parties[party].id.sign_pk) != DAFL_OK)
        return DAFL_AUDIT_SIGNATURE;
    return DAFL_AUDIT_RULE_COUNT;
}

/* Whose log it is: whom most of its lines name. */
static uint16_t owner_of(const dafl_audit_checker *k, dafl_bytes rest)
{
    uint16_t named = DAFL_NOBODY;
    dafl_audit_line line;
    dafl_bytes text;
    size_t votes = 0;

    while (next_line(&rest, &text)) {
        if (dafl_get_audit_line(&line, text, k->roster->n_clients) != DAFL_OK)
            continue;
        if (line.party < k->roster->n) {
            if (votes == 0)
                named = line.party;
            votes = line.party == named ? votes + 1 : votes - 1;
        }
        dafl_audit_line_drop(&line);
    }
    return named;
}

static int compare_heads(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(dafl_digest));
}

/* What a log looks like while it is read. */
typedef struct {
    dafl_audit_checker *k;
    size_t log;
    uint16_t party;
    uint64_t expected; /* the next number */
    bool chained;      /* the line before is known: */
    dafl_digest head;  /* its hash */
} reading;

static void damaged(reading *r, dafl_audit_rule rule, const char *what)
{
    dafl_why *why = dafl_audit_find(r->k, rule, r->party, r->log, r->expected);

    dafl_why_set(why, "line %llu of %s: %s", (unsigned long long)r->expected,
                 dafl_audit_name(r->k, r->party), what);
    r->k->report->logs[r->log].damaged = true;
}

/* Keep a line that is really its party's. */
static void keep(reading *r, dafl_audit_line *line)
{
    dafl_audit_loaded *to = &r->k->loaded[r->log];
    dafl_audit_place *place = dafl_audit_grow(
        r->k, (void **)&to->places, &to->n, &to->room, sizeof *to->places);

    if (place == NULL)
        return;
    place->seq = line->seq;
    place->sound = !r->k->report->logs[r->log].damaged;
    place->line = *line;
    *line = (dafl_audit_line){0};
}

static void keep_head(reading *r, const dafl_digest *hash)
{
    dafl_audit_loaded *to = &r->k->loaded[r->log];
    dafl_digest *head = dafl_audit_grow(r->k, (void **)&to->heads, &to->n_heads,
                                        &to->room_heads, sizeof *to->heads);

    if (head != NULL)
        *head = *hash;
}

/* One line; it is dropped or kept. */
static void take(reading *r, dafl_audit_line *line)
{
    dafl_audit_rule rule = judge_line(r->k, line, r->party);
    uint64_t next = line->seq;
    dafl_digest hash = line->hash;

    keep_head(r, &hash);
    if (rule != DAFL_AUDIT_RULE_COUNT) {
        damaged(r, rule, dafl_audit_rule_text(rule));
        next = r->expected;
    } else if (line->seq != r->expected) {
        damaged(r, DAFL_AUDIT_GAP, "another line stands there");
    } else if (r->chained && !dafl_digest_equal(&line->prev, &r->head)) {
        damaged(r, DAFL_AUDIT_CHAIN, "it does not follow the one before");
    }
    if (rule == DAFL_AUDIT_RULE_COUNT)
        keep(r, line);
    dafl_audit_line_drop(line);
    r->chained = true;
    r->head = hash;
    r->expected = next + 1;
}

void dafl_audit_load(dafl_audit_checker *k, size_t log)
{
    dafl_audit_loaded *to = &k->loaded[log];
    dafl_bytes rest = k->given[log].bytes, text;
    reading r = {.k = k, .log = log, .expected = 1, .chained = true};
    dafl_audit_line line;

    r.party = k->report->logs[log].party = owner_of(k, rest);
    while (k->err == DAFL_OK && next_line(&rest, &text)) {
        dafl_err err = dafl_get_audit_line(&line, text, k->roster->n_clients);
        if (err == DAFL_ERR_NOMEM) {
            k->err = err;
        } else if (err != DAFL_OK) {
            damaged(&r, DAFL_AUDIT_FORM, "it is not written as lines are");
            r.chained = false;
            r.expected++;
        } else {
            take(&r, &line);
        }
        k->report->logs[log].n_lines++;
    }
    if (rest.len > 0)
        damaged(&r, DAFL_AUDIT_FORM, "it is cut short");
    else if (k->report->logs[log].n_lines == 0)
        damaged(&r, DAFL_AUDIT_FORM, "the log is empty");
    if (to->n_heads > 0)
        qsort(to->heads, to->n_heads, sizeof *to->heads, compare_heads);
}
