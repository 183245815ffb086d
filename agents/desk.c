/* SPDX-License-Identifier: Apache-2.0 */
#include "agents/desk.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "crypto/he.h"
#include "lib/secret.h"
#include "protocol/envelope.h"

/* ---- opening ---- */

static const char *mode_name(dafl_mode mode)
{
    static const char *const names[] = {"none", "masks", "seal"};

    return names[mode];
}

/* The command line says again what the config says, so that nobody starts a
 * weaker run than they think. */
static dafl_err check_mode(const desk *d, const desk_options *o, dafl_why *why)
{
    const char *said = o->secure_agg == NULL ? "none" : o->secure_agg;
    const char *is = mode_name(d->run->config.mode);

    if (strcmp(said, "none") != 0 && strcmp(said, "masks") != 0 &&
        strcmp(said, "seal") != 0)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--secure-agg %.32s: there are masks, seal and none",
                         said);
    if (strcmp(said, is) != 0)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "E_POLICY: %s has secure_agg: %s, the command line "
                         "%s; both must say the same",
                         o->config, is, said);
    if (d->run->config.mode == DAFL_MODE_SEAL && !dafl_he_built()) {
        dafl_he *none = NULL;
        return dafl_he_new(&none, d->run->config.contract.w, NULL, why);
    }
    return DAFL_OK;
}

static dafl_err find_self(desk *d, const desk_options *o, dafl_role role,
                          dafl_why *why)
{
    static const char *const names[] = {"client", "server", "keyholder"};
    const dafl_identity *own = &d->self->public;
    const dafl_roster *roster = &d->run->roster;

    for (uint16_t i = 0; i < roster->n; i++) {
        const dafl_party *p = &roster->parties[i];
        if (memcmp(p->id.sign_pk, own->sign_pk, sizeof own->sign_pk) != 0)
            continue;
        if (memcmp(&p->id.curve_pk, &own->curve_pk, sizeof own->curve_pk) != 0)
            return dafl_fail(why, DAFL_ERR_INPUT,
                             "%s: the roster of %s has another curve25519 key "
                             "for %s; paste its public line again",
                             o->key, o->config, p->id.name);
        if (strcmp(p->id.name, own->name) != 0)
            return dafl_fail(why, DAFL_ERR_INPUT,
                             "%s: is the key of '%s', whom the roster of %s "
                             "calls '%s'; paste its public line again",
                             o->key, own->name, o->config, p->id.name);
        if (p->role != role)
            return dafl_fail(
                why, DAFL_ERR_INPUT, "%s: %s is the %s of %s, not a %s", o->key,
                p->id.name, names[p->role], o->config, names[role]);
        d->index = i;
        return DAFL_OK;
    }
    return dafl_fail(why, DAFL_ERR_INPUT,
                     "%s: the roster of %s does not have the key of '%s'; ask "
                     "who wrote it to add its public line",
                     o->key, o->config, own->name);
}

/* Whether what follows the last whole line was a line once. */
static bool is_torn(dafl_bytes log, size_t keep)
{
    static const char begins[] = "{\"data\":";
    size_t n = log.len - keep;

    if (n > sizeof begins - 1)
        n = sizeof begins - 1;
    return n == 0 || memcmp(log.ptr + keep, begins, n) == 0;
}

/* Before anything is cut off: what is no log of ours stays as it is. */
static dafl_err judge_log(desk *d, const char *name, dafl_why *why)
{
    dafl_map map = {0};
    dafl_why reason = {{0}};
    size_t keep = 0;
    dafl_err err;

    dafl_audit_init(&d->audit, d->self, d->index, d->run->roster.n_clients);
    if (access(name, F_OK) != 0)
        return DAFL_OK;
    DAFL_TRY(dafl_map_open(&map, name, why));
    err = dafl_audit_resume(&d->audit, &keep, map.bytes, &reason);
    if (err == DAFL_OK && !is_torn(map.bytes, keep))
        err = dafl_fail(&reason, DAFL_ERR_INPUT, "is not an audit log");
    dafl_map_close(&map);
    if (err == DAFL_OK)
        return DAFL_OK;
    return dafl_fail(why, err,
                     "%s: %s; keep it, and for a new run, roster or key "
                     "name another --audit file",
                     name,
                     reason.text[0] != '\0' ? reason.text : dafl_err_name(err));
}

static dafl_err open_log(desk *d, const desk_options *o, dafl_why *why)
{
    char path[4096];
    const char *name = o->audit;

    if (name == NULL) {
        if (snprintf(path, sizeof path, "%s/audit.log", o->state) >=
            (int)sizeof path)
            return dafl_fail(why, DAFL_ERR_INPUT, "--state: path too long");
        name = path;
    }
    DAFL_TRY(judge_log(d, name, why));
    return logfile_open(&d->log, name, why);
}

/* A client keeps what it needs for every slot ahead, the key holder its answer
 * in the newest one. */
static dafl_err open_store(desk *d, const desk_options *o, dafl_role role,
                           dafl_why *why)
{
    const runfile *run = d->run;
    bool holder = role == DAFL_ROLE_KEYHOLDER;
    size_t shares = 64 + 64 * (size_t)run->roster.n_clients;
    size_t answer =
        (size_t)runfile_longest_answer(run) * (run->config.contract.w / 8);

    return store_open(&d->store, o->state, d->watch.self,
                      role != DAFL_ROLE_SERVER, holder ? answer : shares,
                      holder ? 1 : run->config.slots, why);
}

static dafl_err open_metrics(desk *d, const desk_options *o, dafl_role role,
                             dafl_why *why)
{
    watch *w = &d->watch;

    if (o->metrics == NULL)
        return DAFL_OK;
    DAFL_TRY(metrics_new(&d->metrics, o->metrics, w, role, why));
    w->metrics = d->metrics;
    watch_say(w, "metrics", "metrics at %s%s", metrics_url(d->metrics),
              metrics_public(d->metrics)
                  ? "; warning: other machines can read them, they are not "
                    "encrypted and name the sites"
                  : "");
    return DAFL_OK;
}

dafl_err desk_open(desk *d, const desk_options *o, dafl_role role,
                   dafl_why *why)
{
    DAFL_TRY(runfile_load(&d->run, o->config, why));
    d->self = dafl_secret_alloc(1, sizeof *d->self);
    if (d->self == NULL)
        return DAFL_ERR_NOMEM;
    DAFL_TRY(dafl_identity_load(d->self, o->key, why));
    DAFL_TRY(find_self(d, o, role, why));
    DAFL_TRY(check_mode(d, o, why));
    watch_init(&d->watch, d->index, &d->run->roster, &d->run->params,
               o->verbose, o->quiet);
    DAFL_TRY(open_metrics(d, o, role, why));
    d->at_disk = true;
    DAFL_TRY(open_store(d, o, role, why));
    return open_log(d, o, why);
}

void desk_close(desk *d)
{
    watch_clear(&d->watch);
    metrics_free(&d->metrics);
    link_free(&d->link);
    logfile_close(&d->log);
    store_close(&d->store);
    dafl_writer_drop(&d->line);
    if (d->self != NULL)
        dafl_identity_wipe(d->self);
    dafl_secret_free(d->self);
    runfile_free(&d->run);
    *d = (desk){0};
}

/* ---- effects ---- */

static uint64_t wall_clock(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Errors of the disk have a sentence of their own. */
static dafl_err store_says(const desk *d, dafl_err err, dafl_why *why)
{
    if (err != DAFL_OK)
        dafl_why_set(why, "%s", store_why(d->store));
    return err;
}

static dafl_err log_says(const desk *d, dafl_err err, dafl_why *why)
{
    if (err != DAFL_OK)
        dafl_why_set(why, "%s", logfile_why(d->log));
    return err;
}

/* Make everything durable; the audit log's head is then d->audit.head. */
static dafl_err flush(desk *d, dafl_why *why)
{
    if (d->lines)
        DAFL_TRY(log_says(d, logfile_sync(d->log), why));
    d->lines = d->pressing = false;
    DAFL_TRY(store_says(d, store_flush(d->store), why));
    d->records = false;
    return DAFL_OK;
}

static dafl_err tell(desk *d, const dafl_effect *e, dafl_why *why)
{
    /* A line that speaks of a record which a crash takes back accuses us of
     * doing it twice. */
    if (d->records)
        DAFL_TRY(flush(d, why));
    metrics_link(d->metrics, d->link);
    watch_event(&d->watch, &e->event);
    dafl_writer_clear(&d->line);
    DAFL_TRY(
        dafl_audit_add(&d->audit, &d->line, &e->event, e->bytes, wall_clock()));
    d->lines = true;
    if (e->event.kind != DAFL_EVENT_ERROR ||
        dafl_fault_falls(e->event.fault) != DAFL_FALLS_MESSAGE)
        d->pressing = true;
    return log_says(d,
                    logfile_write(d->log, /* it adds the newline */
                                  (dafl_bytes){d->line.ptr, d->line.len - 1}),
                    why);
}

dafl_err desk_rest(desk *d, dafl_why *why)
{
    if (d->pressing)
        return flush(d, why);
    DAFL_TRY(store_says(d, store_flush(d->store), why));
    d->records = false;
    return DAFL_OK;
}

static bool is_server(const desk *d)
{
    return d->index == d->run->roster.n_clients;
}

static dafl_err send_out(desk *d, const dafl_effect *e, dafl_why *why)
{
    dafl_err err;

    DAFL_TRY(flush(d, why));
    err = !is_server(d) ? link_send(d->link, 0, e->bytes)
          : e->to_holder
              ? link_send(d->link, d->run->roster.n_clients + 1, e->bytes)
              : link_send_all(d->link, &e->to, e->bytes);
    /* Who is not there will say HELLO. */
    return err == DAFL_ERR_PEER ? DAFL_OK : err;
}

dafl_err desk_do(desk *d, const dafl_effect *e, dafl_why *why)
{
    d->records |= e->kind == DAFL_DO_APPEND || e->kind == DAFL_DO_KEEP ||
                  e->kind == DAFL_DO_ERASE;
    switch (e->kind) {
    case DAFL_DO_SEND:
        return send_out(d, e, why);
    case DAFL_DO_APPEND:
        return store_says(d, store_append(d->store, e->bytes), why);
    case DAFL_DO_KEEP:
        return store_says(d, store_keep(d->store, e->slot, e->bytes), why);
    case DAFL_DO_ERASE:
        return store_says(d, store_erase(d->store, e->slot), why);
    case DAFL_DO_TELL:
        return tell(d, e, why);
    }
    return DAFL_ERR_ARG;
}

link_caps desk_caps(const desk *d)
{
    const size_t some = (size_t)16 << 20;
    const dafl_config *c = &d->run->config;
    size_t body = (size_t)runfile_largest_body(d->run);
    size_t sealed = c->mode == DAFL_MODE_SEAL
                        ? dafl_he_bytes(runfile_longest_answer(d->run))
                        : 0;
    link_caps caps = link_caps_default();
    bool server = is_server(d);

    /* A MODEL has as many segments as fit; what clients send is shorter. */
    if (body < (size_t)c->chunk + 8)
        body = (size_t)c->chunk + 8;
    caps.message =
        (server ? body : (size_t)c->body_max) + DAFL_ENVELOPE_OVERHEAD;
    caps.in = caps.message + some;
    caps.out = server ? (size_t)c->body_max + 4 * body + 2 * sealed + some
                      : SIZE_MAX / 16;
    return caps;
}

uint64_t desk_now(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- signals ---- */

static volatile sig_atomic_t stopped;
static dafl_link *awake; /* the link whose wait a signal ends */

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
    link_wake(awake);
}

void desk_catch_signals(desk *d)
{
    struct sigaction action = {.sa_handler = on_signal,
                               .sa_flags = (int)SA_RESETHAND};

    awake = d->link;
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    action.sa_handler = SIG_IGN;
    action.sa_flags = 0;
    (void)sigaction(SIGPIPE, &action, NULL);
}

bool desk_stopped(void)
{
    return stopped != 0;
}
