/* SPDX-License-Identifier: Apache-2.0 */
#include "agents/metrics.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agents/cli.h"
#include "agents/metrics_http.h"
#include "lib/version.h"

#define PHASES_MAX 16

struct metrics {
    const char *role;
    double started; /* by the wall clock */
    metrics_http *http;
    pthread_mutex_t lock; /* of everything below */
    watch seen;
    const dafl_link *link; /* NULL: not yet */
    dafl_run_id run;
    uint64_t events[DAFL_EVENTS], errors[DAFL_FAULT_COUNT];
    size_t survived; /* of the slot at hand */
    /* Phases in the order they came first; the one at hand since `since`. */
    struct {
        const char *name;
        double seconds;
    } phases[PHASES_MAX];
    size_t n_phases, phase;
    double since;
};

/* ---- collecting ---- */

static void enter_phase(metrics *m, const char *name)
{
    double now = cli_now();
    size_t i = 0;

    if (m->n_phases > 0)
        m->phases[m->phase].seconds += now - m->since;
    m->since = now;
    while (i < m->n_phases && strcmp(m->phases[i].name, name) != 0)
        i++;
    if (i == m->n_phases && i < PHASES_MAX)
        m->phases[m->n_phases++].name = name;
    m->phase = i < PHASES_MAX ? i : 0;
}

static void count(metrics *m, const dafl_event *e)
{
    m->run = e->run;
    m->events[e->kind]++;
    if (e->kind == DAFL_EVENT_ERROR)
        m->errors[e->fault]++;
    if (e->kind == DAFL_EVENT_ERRORS)
        m->errors[e->fault] += e->number;
    if (e->kind == DAFL_EVENT_MODEL || e->kind == DAFL_EVENT_KEY)
        m->survived = 0;
    if (e->kind == DAFL_EVENT_SURV || e->kind == DAFL_EVENT_SIGN)
        m->survived = dafl_members_count(&e->set);
}

void metrics_event(metrics *m, const watch *w, const dafl_event *event)
{
    if (m == NULL)
        return;
    (void)pthread_mutex_lock(&m->lock);
    m->seen = *w;
    enter_phase(m, w->phase);
    if (event != NULL)
        count(m, event);
    (void)pthread_mutex_unlock(&m->lock);
}

void metrics_link(metrics *m, const dafl_link *link)
{
    if (m == NULL)
        return;
    (void)pthread_mutex_lock(&m->lock);
    m->link = link;
    (void)pthread_mutex_unlock(&m->lock);
}

/* ---- the page ---- */

/* Label values need no escapes: names of parties are letters, digits and
 * ".-_" (dafl_name_ok), the rest are words of ours. */

static void head(FILE *f, const char *name, const char *type, const char *help)
{
    (void)fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void gauge(FILE *f, const char *name, const char *help, double value)
{
    head(f, name, "gauge", help);
    (void)fprintf(f, "%s %.15g\n", name, value);
}

static void counter(FILE *f, const char *name, const char *help, double value)
{
    head(f, name, "counter", help);
    (void)fprintf(f, "%s %.15g\n", name, value);
}

static void value(FILE *f, const char *name, const char *label,
                  const char *text, double x)
{
    (void)fprintf(f, "%s{%s=\"%s\"} %.15g\n", name, label, text, x);
}

static void put_info(FILE *f, const metrics *m)
{
    static const char name[] = "deepafl_agent_info";
    char run[2 * sizeof m->run.b + 1];

    for (size_t i = 0; i < sizeof m->run.b; i++)
        (void)snprintf(run + 2 * i, 3, "%02x", m->run.b[i]);
    head(f, name, "gauge",
         "Who this is; run is zeros until the first invitation.");
    (void)fprintf(f,
                  "%s{party=\"%s\",role=\"%s\",run=\"%s\",version=\"%s\"} 1\n",
                  name, m->seen.self, m->role, run, DAFL_VERSION);
}

static void put_training(FILE *f, const watch *w)
{
    dafl_question q = {.number = w->question};
    dafl_query query = {.layer = 0};

    if (w->asked)
        dafl_deep_query(&query, w->params, &q);
    gauge(f, "deepafl_run_finished", "Whether the run is over.", w->over);
    gauge(f, "deepafl_run_failed", "Whether it is over for an error.",
          w->over_failed);
    gauge(f, "deepafl_layers", "Layers that are to be trained.",
          (double)w->params->layers);
    gauge(f, "deepafl_layer", "The layer at hand.", (double)query.layer);
    gauge(f, "deepafl_questions", "Sums that the training takes.",
          dafl_deep_questions(w->params));
    gauge(f, "deepafl_question", "The sum at hand, from 0.", w->question);
    gauge(f, "deepafl_slot", "The slot at hand.", w->slot);
    head(f, "deepafl_slots_total", "counter",
         "Slots that are over, with a sum or, to be tried again, without.");
    value(f, "deepafl_slots_total", "outcome", "sum", w->answered);
    value(f, "deepafl_slots_total", "outcome", "failed", w->failed);
}

static void put_cohort(FILE *f, const metrics *m)
{
    static const char name[] = "deepafl_cohort_clients";
    const watch *w = &m->seen;

    gauge(f, "deepafl_clients", "Clients in the roster.", w->roster->n_clients);
    head(f, name, "gauge",
         "Clients of the slot at hand that were cast, have uploaded (a "
         "client's: itself) and are in the sum.");
    value(f, name, "stage", "cast", (double)w->cast);
    value(f, name, "stage", "uploaded", (double)w->uploads);
    value(f, name, "stage", "survived", (double)m->survived);
    counter(
        f, "deepafl_dropouts_total",
        "Clients that were cast and did not make it; the server counts them.",
        (double)w->dropouts);
}

static void put_phases(FILE *f, const metrics *m)
{
    double now = cli_now();

    head(f, "deepafl_phase", "gauge", "1 for the phase at hand.");
    for (size_t i = 0; i < m->n_phases; i++)
        value(f, "deepafl_phase", "phase", m->phases[i].name, i == m->phase);
    head(f, "deepafl_phase_seconds_total", "counter", "Time in each phase.");
    for (size_t i = 0; i < m->n_phases; i++)
        value(f, "deepafl_phase_seconds_total", "phase", m->phases[i].name,
              m->phases[i].seconds + (i == m->phase ? now - m->since : 0.0));
}

static void put_events(FILE *f, const metrics *m)
{
    head(f, "deepafl_events_total", "counter",
         "Events by name, as in the audit log.");
    for (int i = 0; i < DAFL_EVENTS; i++)
        value(f, "deepafl_events_total", "event",
              dafl_event_name((dafl_event_kind)i), (double)m->events[i]);
    head(f, "deepafl_errors_total", "counter",
         "Rules that were broken, by the name of the error.");
    for (int i = 1; i < DAFL_FAULT_COUNT; i++)
        value(f, "deepafl_errors_total", "error",
              dafl_fault_name((dafl_fault)i), (double)m->errors[i]);
}

static void put_peers(FILE *f, const metrics *m)
{
    static const char name[] = "deepafl_peer_connected";
    const dafl_roster *r = m->seen.roster;
    const char *server = r->parties[r->n_clients].id.name;
    bool serves = watch_serves(&m->seen);

    head(f, name, "gauge", "Whether a party of the roster is connected.");
    if (!serves)
        value(f, name, "peer", server,
              m->link != NULL && link_is_up(m->link, 0));
    for (uint16_t i = 0; serves && i < r->n; i++)
        if (i != r->n_clients)
            value(f, name, "peer", r->parties[i].id.name,
                  m->link != NULL && link_is_up(m->link, i));
}

static void put_network(FILE *f, const metrics *m)
{
    static const char dropped[] = "deepafl_dropped_frames_total";
    link_counts c = {.refused = 0};

    if (m->link != NULL)
        c = link_count(m->link);
    counter(f, "deepafl_received_bytes_total",
            "Bytes of messages, before encryption and its overhead.",
            (double)c.bytes_in);
    counter(f, "deepafl_sent_bytes_total",
            "Bytes of messages, before encryption and its overhead.",
            (double)c.bytes_out);
    counter(f, "deepafl_refused_connections_total",
            "Connections that were turned away.", (double)c.refused);
    head(f, dropped, "counter", "Frames that were no message of a peer.");
    value(f, dropped, "reason", "unnamed", (double)c.unnamed);
    value(f, dropped, "reason", "stale", (double)c.stale);
    value(f, dropped, "reason", "malformed", (double)c.malformed);
}

/* The second number of statm, in pages; 0 when it cannot be had. */
static double resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    char text[128] = "", *rest = text;

    if (f == NULL)
        return 0.0;
    if (fgets(text, sizeof text, f) != NULL)
        (void)strtoul(text, &rest, 10);
    (void)fclose(f);
    return (double)strtoul(rest, NULL, 10) * (double)sysconf(_SC_PAGESIZE);
}

static void put_process(FILE *f, const metrics *m)
{
    struct timespec cpu = {0};

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    gauge(f, "process_resident_memory_bytes", "Resident memory.",
          resident_bytes());
    counter(f, "process_cpu_seconds_total", "Processor time.",
            (double)cpu.tv_sec + (double)cpu.tv_nsec * 1e-9);
    gauge(f, "process_start_time_seconds", "Start, since the epoch.",
          m->started);
}

static char *page(void *ctx, size_t *len)
{
    metrics *m = ctx;
    char *text = NULL;
    FILE *f = open_memstream(&text, len);
    bool bad;

    if (f == NULL)
        return NULL;
    (void)pthread_mutex_lock(&m->lock);
    put_info(f, m);
    put_training(f, &m->seen);
    put_cohort(f, m);
    put_phases(f, m);
    put_events(f, m);
    put_peers(f, m);
    put_network(f, m);
    put_process(f, m);
    (void)pthread_mutex_unlock(&m->lock);
    bad = ferror(f) != 0;
    if (fclose(f) != 0 || bad) {
        free(text);
        return NULL;
    }
    return text;
}

/* ---- the owner ---- */

dafl_err metrics_new(metrics **out, const char *address, const watch *w,
                     dafl_role role, dafl_why *why)
{
    static const char *const roles[] = {"client", "server", "keyholder"};
    struct timespec now = {0};
    metrics *m = calloc(1, sizeof *m);
    dafl_err err;

    if (m == NULL)
        return DAFL_ERR_NOMEM;
    if (pthread_mutex_init(&m->lock, NULL) != 0) {
        free(m);
        return DAFL_ERR_SYS;
    }
    (void)clock_gettime(CLOCK_REALTIME, &now);
    m->started = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    m->role = roles[role];
    metrics_event(m, w, NULL);
    err = metrics_http_start(&m->http, address, page, m, why);
    if (err != DAFL_OK)
        metrics_free(&m);
    else
        *out = m;
    return err;
}

void metrics_free(metrics **owner)
{
    metrics *m = *owner;

    if (m == NULL)
        return;
    metrics_http_stop(&m->http);
    (void)pthread_mutex_destroy(&m->lock);
    free(m);
    *owner = NULL;
}

const char *metrics_url(const metrics *m)
{
    return metrics_http_url(m->http);
}

bool metrics_public(const metrics *m)
{
    return metrics_http_public(m->http);
}
