/* SPDX-License-Identifier: Apache-2.0 */
#include "agents/watch.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agents/cli.h"
#include "agents/metrics.h"

void watch_init(watch *w, uint16_t self, const dafl_roster *roster,
                const dafl_params *params, bool verbose, bool quiet)
{
    *w = (watch){.self = roster->parties[self].id.name,
                 .holder = roster->parties[self].role == DAFL_ROLE_KEYHOLDER,
                 .roster = roster,
                 .params = params,
                 .terminal = isatty(STDERR_FILENO) == 1,
                 .verbose = verbose,
                 .quiet = quiet,
                 .phase = "waiting",
                 .enrolled = dafl_members_none(roster->n_clients),
                 .risk = -1.0};
}

bool watch_serves(const watch *w)
{
    return w->self == w->roster->parties[w->roster->n_clients].id.name;
}

void watch_clear(watch *w)
{
    if (w->shown)
        (void)fputs("\r\033[K", stderr);
    w->shown = false;
}

/* ---- the status line ---- */

static const char *query_name(const watch *w)
{
    dafl_question q = {.number = w->question};
    dafl_query query;

    dafl_deep_query(&query, w->params, &q);
    return query.kind == DAFL_QUERY_CENSUS     ? "counting rows"
           : query.kind == DAFL_QUERY_REPORT   ? "counting answers"
           : query.kind == DAFL_QUERY_RESIDUAL ? "residual"
                                               : "Gram";
}

static size_t layer_of(const watch *w)
{
    dafl_question q = {.number = w->question};
    dafl_query query;

    dafl_deep_query(&query, w->params, &q);
    return query.layer;
}

/* From the time that the answered questions took. */
static void put_time_left(const watch *w, char *text, size_t size)
{
    uint32_t all = dafl_deep_questions(w->params);
    double each, left;

    text[0] = '\0';
    if (w->answered == 0 || w->question >= all)
        return;
    each = (cli_now() - w->start) / w->answered;
    left = each * (all - w->question);
    (void)snprintf(text, size, ", %d:%02d left", (int)left / 60,
                   (int)left % 60);
}

static int put_holder_status(const watch *w, char *line, size_t size)
{
    return snprintf(line, size, "%s  slot %u %s, %u opened, %u refused",
                    w->self, (unsigned)w->slot, w->phase, (unsigned)w->opened,
                    (unsigned)w->refused);
}

/* What only the server knows: who has uploaded, of how many; who did not make
 * it; the risk. */
static void put_counts(const watch *w, char *uploads, char *rest, size_t size)
{
    int n;

    uploads[0] = rest[0] = '\0';
    if (!watch_serves(w))
        return;
    if (w->cast > 0)
        (void)snprintf(uploads, size, " %zu/%zu", w->uploads, w->cast);
    n = snprintf(rest, size, ", %zu dropouts", w->dropouts);
    if (w->risk >= 0.0)
        (void)snprintf(rest + n, size - (size_t)n, ", risk %.5g", w->risk);
}

static int put_status(const watch *w, char *line, size_t size)
{
    char left[32], uploads[64], rest[64];

    put_time_left(w, left, sizeof left);
    put_counts(w, uploads, rest, sizeof rest);
    return snprintf(line, size, "%s  layer %zu/%zu %s, slot %u %s%s%s%s",
                    w->self, layer_of(w), w->params->layers, query_name(w),
                    (unsigned)w->slot, w->phase, uploads, left, rest);
}

static void show_status(watch *w)
{
    char line[256];
    int n;

    if (w->quiet || !w->terminal || (!w->asked && !w->holder))
        return;
    n = w->holder ? put_holder_status(w, line, sizeof line)
                  : put_status(w, line, sizeof line);
    if (n > 0) {
        cli_fit_terminal(line);
        (void)fprintf(stderr, "\r\033[K%s", line);
    }
    (void)fflush(stderr);
    w->shown = true;
}

/* ---- lines ---- */

static void put_line(json_t *line)
{
    char *text = line == NULL
                     ? NULL
                     : json_dumps(line, JSON_COMPACT | JSON_PRESERVE_ORDER);

    if (text != NULL)
        (void)fprintf(stderr, "%s\n", text);
    free(text);
    json_decref(line);
}

static json_t *new_line(const watch *w, const char *event)
{
    struct timespec now = {0};
    char when[40];
    struct tm tm;
    size_t n;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &tm);
    n = strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &tm);
    (void)snprintf(when + n, sizeof when - n, ".%03dZ",
                   (int)(now.tv_nsec / 1000000));
    return json_pack("{s:s,s:s,s:s}", "time", when, "party", w->self, "event",
                     event);
}

static const char *name_of(const watch *w, uint16_t party)
{
    return party < w->roster->n ? w->roster->parties[party].id.name : "?";
}

static json_t *names_of(const watch *w, const dafl_members *set)
{
    json_t *names = json_array();

    for (uint16_t u = 0; names != NULL && u < set->n; u++)
        if (dafl_members_has(set, u))
            (void)json_array_append_new(names, json_string(name_of(w, u)));
    return names;
}

static const char *fault_text(const dafl_event *e)
{
    return e->says != NULL ? e->says : dafl_fault_text(e->fault);
}

static void put_event(const watch *w, const dafl_event *e)
{
    json_t *line = new_line(w, dafl_event_name(e->kind));

    if (line == NULL)
        return;
    if (e->slot > 0)
        (void)json_object_set_new(line, "slot", json_integer(e->slot));
    if (w->asked && e->slot == w->slot &&
        (e->kind == DAFL_EVENT_MODEL || e->kind == DAFL_EVENT_RESULT)) {
        (void)json_object_set_new(line, "question", json_integer(w->question));
        (void)json_object_set_new(line, "layer",
                                  json_integer((json_int_t)layer_of(w)));
    }
    if (e->peer != DAFL_NOBODY)
        (void)json_object_set_new(line, "peer",
                                  json_string(name_of(w, e->peer)));
    if (dafl_members_count(&e->set) > 0)
        (void)json_object_set_new(line, "members", names_of(w, &e->set));
    if (e->fault != DAFL_FAULT_NONE) {
        (void)json_object_set_new(line, "error",
                                  json_string(dafl_fault_name(e->fault)));
        (void)json_object_set_new(line, "says", json_string(fault_text(e)));
    }
    if (e->kind == DAFL_EVENT_ERRORS)
        (void)json_object_set_new(line, "count", json_integer(e->number));
    put_line(line);
}

/* For people: errors always, the rest when they asked for it. */
static void print_event(watch *w, const dafl_event *e)
{
    if (e->fault == DAFL_FAULT_NONE && !w->verbose)
        return;
    watch_clear(w);
    (void)fprintf(stderr, "%s  %s", w->self, dafl_event_name(e->kind));
    if (e->slot > 0)
        (void)fprintf(stderr, ", slot %u", (unsigned)e->slot);
    if (e->fault != DAFL_FAULT_NONE)
        (void)fprintf(stderr, ": %s (%s)", dafl_fault_name(e->fault),
                      fault_text(e));
    if (e->peer != DAFL_NOBODY)
        (void)fprintf(stderr, ", %s", name_of(w, e->peer));
    if (dafl_members_count(&e->set) > 0)
        (void)fprintf(stderr, ", %zu clients", dafl_members_count(&e->set));
    if (e->kind == DAFL_EVENT_ERRORS)
        (void)fprintf(stderr, ", %u more", (unsigned)e->number);
    (void)fputc('\n', stderr);
}

static void follow_event(watch *w, const dafl_event *e)
{
    switch (e->kind) {
    case DAFL_EVENT_INVITE:
        w->over = w->over_failed = false;
        w->enrolled = dafl_members_none(w->roster->n_clients);
        w->awaited = 0;
        w->phase = "setup";
        break;
    case DAFL_EVENT_ENROLL:
        if (e->peer < w->enrolled.n)
            dafl_members_add(&w->enrolled, e->peer);
        break;
    case DAFL_EVENT_SETUP:
        w->phase = "waiting";
        break;
    case DAFL_EVENT_DONE:
        w->over = true;
        w->over_failed = e->fault != DAFL_FAULT_NONE;
        w->phase = "over";
        break;
    case DAFL_EVENT_MODEL:
        if (!w->asked)
            w->start = cli_now();
        w->asked = true;
        w->question = e->number;
        w->slot = e->slot;
        w->uploads = w->cast = 0;
        w->phase = "computing";
        break;
    case DAFL_EVENT_CAST:
        w->cast = dafl_members_count(&e->set);
        w->phase = "uploads";
        break;
    case DAFL_EVENT_UPLOAD:
        w->uploads++;
        break;
    case DAFL_EVENT_SURV:
        w->dropouts += w->cast - dafl_members_count(&e->set);
        w->phase = "signing";
        break;
    case DAFL_EVENT_SIGN:
        w->phase = "signed";
        break;
    case DAFL_EVENT_CONF:
        w->phase = "opening";
        break;
    case DAFL_EVENT_KEY:
        w->slot = e->slot;
        w->phase = "has a key";
        break;
    case DAFL_EVENT_OPEN:
        w->opened++;
        w->phase = w->holder ? "opened" : "with the key holder";
        break;
    case DAFL_EVENT_ERROR:
        w->refused += dafl_fault_falls(e->fault) == DAFL_FALLS_SLOT;
        break;
    case DAFL_EVENT_RESULT:
        if (watch_serves(w) && strcmp(w->phase, "uploads") == 0)
            w->dropouts += w->cast - w->uploads; /* given up before SURV */
        w->answered += e->fault == DAFL_FAULT_NONE;
        w->failed += e->fault != DAFL_FAULT_NONE;
        w->phase = "waiting";
        break;
    default:
        break;
    }
}

/* The server waits for the key holder as long as it takes, and says so once. */
static bool awaits_holder(watch *w, const dafl_event *e)
{
    bool before = w->awaits;

    if (e->kind == DAFL_EVENT_MODEL || e->kind == DAFL_EVENT_RESULT)
        w->awaits = false;
    if (e->kind != DAFL_EVENT_ERROR || e->fault != DAFL_E_TIMEOUT ||
        e->peer != w->roster->n_clients + 1)
        return false;
    w->awaits = true;
    if (!before)
        watch_say(w, "waiting",
                  "waiting for the key holder %s: without it nothing is opened",
                  name_of(w, e->peer));
    return true;
}

/* A few of those who have not enrolled, by name. */
static void name_missing(const watch *w, char *text, size_t size)
{
    size_t more = 0, shown = 0, at = 0;

    text[0] = '\0';
    for (uint16_t u = 0; u < w->enrolled.n; u++) {
        if (dafl_members_has(&w->enrolled, u))
            continue;
        if (shown == 4) {
            more++;
            continue;
        }
        at += (size_t)snprintf(text + at, size - at, "%s%s",
                               shown++ > 0 ? ", " : "", name_of(w, u));
    }
    if (more > 0)
        (void)snprintf(text + at, size - at, " and %zu more", more);
}

/* Nor does it begin before enough clients have enrolled; said when that has
 * changed. */
static bool awaits_clients(watch *w, const dafl_event *e)
{
    size_t n = dafl_members_count(&w->enrolled);
    char missing[4 * (DAFL_NAME_MAX + 2) + 32];

    if (!watch_serves(w) || e->kind != DAFL_EVENT_ERROR ||
        e->fault != DAFL_E_TIMEOUT || e->slot > 0 || e->peer != DAFL_NOBODY)
        return false;
    name_missing(w, missing, sizeof missing);
    if (w->awaited != n + 1)
        watch_say(w, "waiting",
                  "waiting for clients: %zu of %zu have enrolled, too few to "
                  "begin; not yet: %s",
                  n, (size_t)w->enrolled.n, missing);
    w->awaited = n + 1;
    return true;
}

void watch_event(watch *w, const dafl_event *event)
{
    follow_event(w, event);
    metrics_event(w->metrics, w, event);
    if ((w->quiet && event->fault == DAFL_FAULT_NONE) ||
        event->kind == DAFL_EVENT_PEER_HEAD || awaits_holder(w, event) ||
        awaits_clients(w, event))
        return;
    if (w->terminal)
        print_event(w, event);
    else
        put_event(w, event);
    show_status(w);
}

void watch_risk(watch *w, const dafl_risk *risk)
{
    w->risk = risk->known ? risk->risk : -1.0;
}

/* The names that stand for the end, see docs/operations.md. */
static void follow_words(watch *w, const char *event)
{
    bool failed = strcmp(event, "out") == 0 || strcmp(event, "failed") == 0;

    if (!failed && strcmp(event, "done") != 0 && strcmp(event, "over") != 0)
        return;
    w->over = true;
    w->over_failed = failed;
    w->phase = "over";
    metrics_event(w->metrics, w, NULL);
}

/* Words that are said even when nothing but errors is to be shown. */
static bool is_error(const char *event)
{
    return strcmp(event, "out") == 0 || strcmp(event, "failed") == 0 ||
           strcmp(event, "refused") == 0;
}

void watch_say(watch *w, const char *event, const char *format, ...)
{
    char text[512];
    va_list args;
    json_t *line;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    follow_words(w, event);
    if (w->quiet && !is_error(event))
        return;
    if (w->terminal) {
        watch_clear(w);
        (void)fprintf(stderr, "%s  %s\n", w->self, text);
        show_status(w);
        return;
    }
    line = new_line(w, event);
    if (line != NULL)
        (void)json_object_set_new(line, "says", json_string(text));
    put_line(line);
}
