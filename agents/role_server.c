/* SPDX-License-Identifier: Apache-2.0 */
/* The server: its machine, the model that grows from the sums, and the links to
 * all others. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agents/cli.h"
#include "agents/role.h"
#include "protocol/envelope.h"
#include "protocol/server.h"

/* Stay so long after the end for those who have not heard of it: longer than a
 * client is silent, and than its service needs to start again after a crash. */
enum { FAREWELL_MS = 10000 };

typedef struct {
    const role_options *o;
    desk desk;
    dafl_pool *pool;
    dafl_model *model;
    dafl_deep_server *deep;
    dafl_server *machine;
    dafl_digest head;  /* of the audit log, as the machine knows it */
    uint32_t answered; /* when the risk was looked at last */
    double start, seconds;
    dafl_members left; /* clients that went after the end */
    bool holder_left;  /* so did the key holder, or there is none */
} hub;

static dafl_err make_machine(hub *h, dafl_why *why)
{
    const runfile *run = h->desk.run;
    dafl_server_params params = {.roster = &run->roster,
                                 .config = &run->config,
                                 .self = h->desk.self,
                                 .method = &dafl_deep_server_method,
                                 .pool = h->pool};
    dafl_fault fault = DAFL_FAULT_NONE;
    dafl_key fresh;

    DAFL_TRY(dafl_model_new(&h->model, &run->params));
    DAFL_TRY(dafl_deep_server_new(&h->deep, h->model, &run->participation,
                                  run->roster.n_clients));
    if (h->o->allow_small)
        dafl_deep_server_allow_small(h->deep);
    params.method_self = h->deep;
    dafl_key_random(&fresh);
    memcpy(params.run.b, fresh.b, sizeof params.run.b);
    return dafl_server_new(&h->machine, &params, &fault, why);
}

static dafl_err recall_record(void *ctx, dafl_bytes record)
{
    return dafl_server_recall(((hub *)ctx)->machine, record);
}

static dafl_err recall(hub *h, dafl_why *why)
{
    dafl_err err = store_each_record(h->desk.store, recall_record, h);

    if (err == DAFL_ERR_INPUT && why->text[0] == '\0')
        dafl_why_set(why,
                     "E_STATE_LOST: %s is the state of another run, or "
                     "damaged; put it back as it was or start with an empty "
                     "directory",
                     h->o->desk.state);
    return err;
}

/* Show the risk of a layer when its sum has come. */
static void look_at_risk(hub *h)
{
    uint32_t answered = dafl_server_stat(h->machine).answered;
    dafl_risk risk;

    if (answered == h->answered || h->model->n_heads == 0)
        return;
    h->answered = answered;
    risk = dafl_trainer_risk(dafl_deep_server_trainer(h->deep));
    watch_risk(&h->desk.watch, &risk);
}

static dafl_err work(hub *h, dafl_err err, dafl_why *why)
{
    dafl_effect e;

    look_at_risk(h);
    while (err == DAFL_OK && dafl_server_next(h->machine, &e))
        err = desk_do(&h->desk, &e, why);
    if (err == DAFL_OK)
        err = desk_rest(&h->desk, why);
    if (err == DAFL_OK && !dafl_digest_equal(&h->head, &h->desk.audit.head)) {
        h->head = h->desk.audit.head;
        dafl_server_log(h->machine, &h->head);
    }
    return err;
}

static const char *name_of(const hub *h, uint16_t party)
{
    return h->desk.run->roster.parties[party].id.name;
}

static bool over(const hub *h)
{
    dafl_server_state state = dafl_server_where(h->machine);

    return state == DAFL_SERVER_DONE || state == DAFL_SERVER_FAILED;
}

static int wait_ms(const hub *h, uint64_t until)
{
    uint64_t now = desk_now(), deadline = dafl_server_deadline(h->machine);

    deadline = until < deadline ? until : deadline;
    if (deadline <= now)
        return 0;
    return deadline - now > 60000 ? 60000 : (int)(deadline - now);
}

/* The key of its connection says who speaks, whatever the message says. */
static dafl_err hear(hub *h, const link_event *e)
{
    dafl_envelope m;
    dafl_fault fault =
        dafl_get_envelope(&m, e->bytes, h->desk.run->config.body_max);

    if (fault == DAFL_FAULT_NONE && m.sender != e->peer)
        fault = DAFL_E_AUTH;
    if (fault != DAFL_FAULT_NONE)
        return dafl_server_refuse(h->machine, e->peer, fault);
    return dafl_server_receive(h->machine, e->bytes, desk_now());
}

/* It has heard of the end: one that was killed before that does not say that it
 * leaves. */
static void note_left(hub *h, uint16_t party)
{
    if (party < h->left.n)
        dafl_members_add(&h->left, party);
    else
        h->holder_left = true;
}

static dafl_err one_event(hub *h, uint64_t until, dafl_why *why)
{
    watch *w = &h->desk.watch;
    link_event e;

    DAFL_TRY(link_next(h->desk.link, &e, wait_ms(h, until)));
    switch (e.kind) {
    case LINK_MESSAGE:
        return work(h, hear(h, &e), why);
    case LINK_UP:
        watch_say(w, "up", "%s is connected", name_of(h, e.peer));
        if (e.peer < h->left.n)
            dafl_members_remove(&h->left, e.peer);
        else
            h->holder_left = false;
        break;
    case LINK_LOST:
        if (!over(h))
            watch_say(w, "lost", "%s is gone: %s", name_of(h, e.peer),
                      link_reason_name(e.reason));
        else if (e.reason == LINK_LEFT)
            note_left(h, e.peer);
        return work(h, dafl_server_lost(h->machine, e.peer, desk_now()), why);
    case LINK_REFUSED:
        watch_say(w, "refused", "E_AUTH: refused %s: %s", e.who,
                  link_reason_name(e.reason));
        break;
    case LINK_NOTHING:
        break;
    }
    return work(h, dafl_server_tick(h->machine, desk_now()), why);
}

static dafl_err serve(hub *h, dafl_why *why)
{
    link_caps caps;

    DAFL_TRY(dafl_file_check_writable(h->o->model, why));
    DAFL_TRY(desk_open(&h->desk, &h->o->desk, DAFL_ROLE_SERVER, why));
    DAFL_TRY(dafl_pool_new(&h->pool, (unsigned)h->o->threads));
    DAFL_TRY(make_machine(h, why));
    DAFL_TRY(recall(h, why));
    caps = desk_caps(&h->desk);
    DAFL_TRY(link_listen(&h->desk.link, h->o->endpoint, h->desk.self,
                         &h->desk.run->roster, &caps, why));
    desk_catch_signals(&h->desk);
    watch_say(&h->desk.watch, "listening", "listening on %s",
              link_endpoint(h->desk.link));
    h->start = cli_now();
    h->left = dafl_members_none(h->desk.run->roster.n_clients);
    h->holder_left = h->desk.run->config.mode != DAFL_MODE_SEAL;
    DAFL_TRY(work(h, dafl_server_start(h->machine, desk_now()), why));
    while (!desk_stopped() && !over(h))
        DAFL_TRY(one_event(h, UINT64_MAX, why));
    h->seconds = cli_now() - h->start;
    return DAFL_OK;
}

/* Whoever has heard that the run is over goes, and says so. One that was away
 * just then comes back and asks. */
static bool all_left(const hub *h)
{
    return dafl_members_count(&h->left) == h->left.n && h->holder_left;
}

static dafl_err bid_farewell(hub *h, dafl_why *why)
{
    uint64_t until = desk_now() + FAREWELL_MS;

    while (!desk_stopped() && !all_left(h) && desk_now() < until)
        DAFL_TRY(one_event(h, until, why));
    return DAFL_OK;
}

/* ---- the result ---- */

static double percent(const hub *h, size_t layer, bool held)
{
    uint64_t rows = dafl_deep_server_rows(h->deep, held);

    return rows == 0
               ? -1.0
               : 100.0 *
                     (double)dafl_deep_server_correct(h->deep, layer, held) /
                     (double)rows;
}

/* Also those of earlier lives, which the machine has counted as opened. */
static uint32_t slots_without(const dafl_server_stats *stats)
{
    return stats->slots - stats->answered;
}

static void print_report(const hub *h)
{
    dafl_server_stats stats = dafl_server_stat(h->machine);
    bool held = dafl_deep_server_rows(h->deep, true) > 0;

    printf("layer  accuracy on training rows%s\n",
           held ? "  on held-out rows" : "");
    for (size_t t = 0; t < h->model->n_heads; t++) {
        printf("%5zu  %24.2f %%", t, percent(h, t, false));
        if (held)
            printf("  %14.2f %%", percent(h, t, true));
        printf("\n");
    }
    printf("%" PRIu32 " sums from %" PRIu32 " slots (%" PRIu32
           " gave none), %" PRIu32 " enrolments, %.1f s\n"
           "Model  %s\n",
           stats.answered, stats.slots, slots_without(&stats), stats.enrolments,
           h->seconds, h->o->model);
}

static json_t *accuracies(const hub *h, bool held)
{
    json_t *list = json_array();

    for (size_t t = 0; t < h->model->n_heads; t++)
        (void)json_array_append_new(list, json_real(percent(h, t, held)));
    return list;
}

static bool print_json(const hub *h)
{
    dafl_server_stats stats = dafl_server_stat(h->machine);
    json_t *report = json_pack(
        "{s:s,s:i,s:i,s:i,s:i,s:f,s:f}", "model", h->o->model, "sums",
        (int)stats.answered, "slots", (int)stats.slots, "failed_slots",
        (int)slots_without(&stats), "enrolments", (int)stats.enrolments,
        "seconds", h->seconds, "peak_mb", cli_peak_mb());

    if (report == NULL)
        return false;
    (void)json_object_set_new(report, "train_accuracy", accuracies(h, false));
    if (dafl_deep_server_rows(h->deep, true) > 0)
        (void)json_object_set_new(report, "held_accuracy", accuracies(h, true));
    return cli_print_json(report);
}

static int verdict(hub *h)
{
    dafl_fault fault = dafl_server_fault(h->machine);
    dafl_why why = {{0}};
    dafl_err err;

    if (!over(h)) {
        watch_say(&h->desk.watch, "stopped",
                  "stopped; start again with the same --state to go on");
        return EXIT_STOPPED;
    }
    if (fault != DAFL_FAULT_NONE) {
        (void)bid_farewell(h, &why);
        watch_say(&h->desk.watch, "failed", "the run is over: %s (%s)",
                  dafl_fault_name(fault), dafl_fault_text(fault));
        return EXIT_FAILED;
    }
    err = dafl_model_save(h->model, h->o->model, &why);
    if (err != DAFL_OK)
        return role_fail(&h->desk, err, &why);
    err = bid_farewell(h, &why);
    if (err != DAFL_OK)
        return role_fail(&h->desk, err, &why);
    watch_clear(&h->desk.watch);
    if (!h->o->json)
        print_report(h);
    else if (!print_json(h))
        return EXIT_FAILED;
    return 0;
}

int role_server(const role_options *o)
{
    hub h = {.o = o};
    dafl_why why = {{0}};
    dafl_err err = serve(&h, &why);
    int code = err == DAFL_OK ? verdict(&h) : role_fail(&h.desk, err, &why);

    dafl_server_free(&h.machine);
    dafl_deep_server_free(&h.deep);
    dafl_model_free(&h.model);
    dafl_pool_free(&h.pool);
    desk_close(&h.desk); /* what was sent last is still on its way */
    return code;
}
