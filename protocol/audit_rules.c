/* SPDX-License-Identifier: Apache-2.0 */
/* What a party did, by its own log: every rule that can be checked from what is
 * logged. An increment's cohort cannot: which questions are tied to which is
 * the method's. */
#include <stdlib.h>
#include <string.h>

#include "protocol/audit_state.h"
#include "protocol/node.h"

/* Of one log; nobody takes part in more. */
#define RUNS_MAX 4096

/* What a log has said of one run so far. */
typedef struct {
    dafl_run_id run;
    /* the newest setup */
    bool set_up;
    uint32_t enrolment;
    dafl_digest h_setup;
    size_t t;
    dafl_members u1;
    /* the newest slot */
    uint32_t slot;
    bool reopens; /* the party has restarted: the slot may be told again */
    bool asked, cast, stated, confirmed, opened;
    dafl_audit_statement now; /* its parts, as far as they are told */
    dafl_digest ctx, ctx2;
    /* what cannot be done otherwise in this slot any more */
    bool has_dig, has_stmt;
    dafl_digest dig, stmt; /* a client's own */
    dafl_members uploaded; /* the server's: */
    dafl_digest *digs;     /* [client] */
    uint32_t key_slot;     /* the key holder's: the newest with a key, and .. */
    dafl_digest key;       /* .. that */
} history;

typedef struct {
    dafl_audit_checker *k;
    size_t log;
    uint16_t party;
    bool client, server; /* or neither: the key holder */
    const dafl_audit_line *line;
    const dafl_event *e;
    uint64_t seq;
    history *runs;
    size_t n_runs, room_runs;
    history *h; /* of the line's run */
} walk;

static void found(walk *w, dafl_audit_rule rule, const char *what)
{
    dafl_why_set(dafl_audit_find(w->k, rule, w->party, w->log, w->seq),
                 "line %llu of %s, slot %u: %s", (unsigned long long)w->seq,
                 dafl_audit_name(w->k, w->party), (unsigned)w->e->slot, what);
}

static bool must(walk *w, bool holds, dafl_audit_rule rule, const char *what)
{
    if (!holds)
        found(w, rule, what);
    return holds;
}

/* The slot's entry for the summary, NULL for none; `make` it if needed. The
 * server's word counts more. */
static dafl_audit_slot *entry(walk *w, bool make)
{
    return dafl_audit_slot_of(w->k, &w->e->run, w->e->slot, make);
}

/* ---- setup ---- */

static void on_start(walk *w)
{
    const uint8_t *b = w->line->more.ptr;
    const char *name = w->k->roster->parties[w->party].id.name;
    size_t len = w->line->more.len - 64;

    must(w,
         memcmp(b, w->k->roster_hash.b, 32) == 0 &&
             memcmp(b + 32, w->k->config_hash.b, 32) == 0 &&
             strlen(name) == len && memcmp(b + 64, name, len) == 0,
         DAFL_AUDIT_BINDING, "another name, roster or config");
    for (size_t i = 0; i < w->n_runs; i++) {
        history *h = &w->runs[i];
        h->reopens = true;
        h->asked = h->cast = h->stated = h->confirmed = h->opened = false;
    }
}

/* All logs tell of one setup per enrolment. */
static void compare_setup(walk *w)
{
    dafl_audit_checker *k = w->k;
    dafl_audit_setup *s;

    for (size_t i = 0; i < k->n_setups; i++) {
        s = &k->setups[i];
        if (memcmp(s->run.b, w->e->run.b, sizeof s->run.b) != 0 ||
            s->enrolment != w->e->number)
            continue;
        if (!dafl_digest_equal(&s->h_setup, &w->e->digest))
            dafl_why_set(
                dafl_audit_find(k, DAFL_AUDIT_SETUP, w->party, w->log, w->seq),
                "line %llu of %s: not the setup that %s was told",
                (unsigned long long)w->seq, dafl_audit_name(k, w->party),
                dafl_audit_name(k, k->report->logs[s->log].party));
        return;
    }
    s = dafl_audit_grow(k, (void **)&k->setups, &k->n_setups, &k->room_setups,
                        sizeof *s);
    if (s != NULL)
        *s = (dafl_audit_setup){w->e->run, w->e->number, w->e->digest, w->log};
}

static void on_setup(walk *w)
{
    const dafl_policy *p = &w->k->config->policy;
    const dafl_roster *roster = w->k->roster;
    const dafl_members *u1 = &w->e->set;
    dafl_reader r = dafl_read(w->line->more);
    history *h = w->h;
    dafl_members u0 = {0};
    uint16_t t = 0;
    size_t right = 0;

    if (dafl_get_u16(&r, &t) != DAFL_OK || dafl_get_members(&r, &u0) != DAFL_OK)
        return;
    must(w,
         dafl_members_within(u1, &u0) && dafl_members_count(u1) >= p->n_min &&
             (!w->client || dafl_members_has(u1, w->party)),
         DAFL_AUDIT_SETUP, "too few clients, or others than enrolled");
    must(w,
         p->g == 1 || (dafl_roster_whole_cells(roster, &u0) &&
                       dafl_roster_whole_cells(roster, u1)),
         DAFL_AUDIT_CELL_SPLIT, "part of a cell was set up");
    must(w,
         dafl_threshold(&right, dafl_members_count(&u0), p->c, p->a) ==
                 DAFL_FAULT_NONE &&
             right == t,
         DAFL_AUDIT_SETUP, "another threshold than the policy's");
    must(w,
         w->e->number < DAFL_ENROLMENTS_MAX &&
             (!h->set_up || w->e->number > h->enrolment ||
              (w->e->number == h->enrolment &&
               dafl_digest_equal(&h->h_setup, &w->e->digest))),
         DAFL_AUDIT_SETUP, "a second setup of one enrolment, or an older one");
    compare_setup(w);
    h->set_up = true;
    h->enrolment = w->e->number;
    h->h_setup = w->e->digest;
    h->t = t;
    h->u1 = *u1;
}

/* ---- a slot ---- */

/* A party was told what the server says it told. */
static void agree(walk *w, bool server_has, const dafl_digest *server,
                  const dafl_digest *own)
{
    must(w,
         !w->k->server || w->server ||
             (server_has && dafl_digest_equal(server, own)),
         DAFL_AUDIT_SPLIT, "the server's log says that it told otherwise");
}

/* Open the slot; whether that may be. */
static bool open_slot(walk *w)
{
    uint64_t first = (uint64_t)w->h->enrolment * w->k->config->slots + 1;
    history *h = w->h;
    uint32_t slot = w->e->slot;
    bool right = must(w, slot >= first && slot < first + w->k->config->slots,
                      DAFL_AUDIT_SLOT_ORDER, "no slot of its setup") &&
                 must(w, slot >= h->slot, DAFL_AUDIT_SLOT_ORDER,
                      "an older slot than one before") &&
                 must(w, slot != h->slot || (w->client && h->reopens),
                      DAFL_AUDIT_SLOT_REUSED, "the slot was open before");

    if (slot != h->slot) {
        h->has_dig = h->has_stmt = false;
        h->uploaded = dafl_members_none(w->k->roster->n_clients);
    }
    h->slot = slot;
    h->reopens = false;
    h->asked = true;
    h->cast = h->stated = h->confirmed = h->opened = false;
    return right;
}

static void on_model(walk *w)
{
    bool encrypted = w->k->config->mode == DAFL_MODE_SEAL;
    dafl_reader r = dafl_read(w->line->more);
    history *h = w->h;
    dafl_audit_statement *now = &h->now;
    dafl_audit_slot *slot;
    bool right;

    if (!must(w, h->set_up, DAFL_AUDIT_ORDER, "a question before any setup"))
        return;
    right = open_slot(w);
    dafl_writer_drop(&now->digests);
    *now = (dafl_audit_statement){.run = w->e->run,
                                  .slot = w->e->slot,
                                  .question = w->e->number,
                                  .model = w->e->digest};
    if (dafl_get_u32(&r, &now->rank) != DAFL_OK ||
        dafl_get_u64(&r, &now->len) != DAFL_OK ||
        dafl_get_u8(&r, &now->w) != DAFL_OK ||
        dafl_get_fixed(&r, now->h_setup.b, sizeof now->h_setup.b) != DAFL_OK ||
        dafl_get_fixed(&r, now->he.b, sizeof now->he.b) != DAFL_OK)
        return;
    must(w, encrypted != sodium_is_zero(now->he.b, sizeof now->he.b),
         DAFL_AUDIT_DIGEST, "an encryption key where there is none, or none");
    must(w,
         w->client || w->server ||
             (h->key_slot == now->slot && dafl_digest_equal(&h->key, &now->he)),
         DAFL_AUDIT_DIGEST, "another encryption key than the one it gave");
    must(w,
         dafl_digest_equal(&now->h_setup, &h->h_setup) &&
             now->w == w->k->config->contract.w,
         DAFL_AUDIT_DIGEST, "another setup or ring than the one that stands");
    dafl_context_slot(&h->ctx, &now->h_setup,
                      &(dafl_slot_task){.slot = now->slot,
                                        .query = now->question,
                                        .rank = now->rank,
                                        .model = now->model,
                                        .len = now->len,
                                        .w = now->w,
                                        .he = now->he});
    slot = entry(w, right);
    if (slot == NULL)
        return;
    agree(w, slot->asked, &slot->ctx, &h->ctx);
    if (w->server) {
        slot->asked = true;
        slot->ctx = h->ctx;
    }
    if (w->server || !slot->asked)
        slot->question = now->question;
}

/* Whether the line belongs to the slot at hand and that has come so far. */
static bool in_turn(walk *w, bool far)
{
    return must(w, far && w->e->slot == w->h->slot, DAFL_AUDIT_ORDER,
                "what must come before it in the slot is not there");
}

static void on_ready(walk *w)
{
    if (in_turn(w, w->h->asked))
        must(w, dafl_digest_equal(&w->e->digest, &w->h->ctx), DAFL_AUDIT_DIGEST,
             "ctx is not that of the question");
}

static void judge_cohort(walk *w, const dafl_members *allowed)
{
    const dafl_policy *p = &w->k->config->policy;
    const dafl_members *cohort = &w->e->set;

    must(w,
         dafl_members_within(cohort, allowed) &&
             dafl_members_count(cohort) >= p->m,
         DAFL_AUDIT_COHORT, "a cohort below m, or with strangers");
    must(w, p->g == 1 || dafl_roster_whole_cells(w->k->roster, cohort),
         DAFL_AUDIT_CELL_SPLIT, "a cohort that splits a cell");
}

static void on_cast(walk *w)
{
    history *h = w->h;
    dafl_audit_slot *slot = entry(w, false);

    if (!in_turn(w, h->asked))
        return;
    judge_cohort(w, &h->u1);
    h->now.a = w->e->set;
    h->cast = true;
    dafl_context_cast(&h->ctx2, &h->ctx, &h->now.a);
    must(w, dafl_digest_equal(&h->ctx2, &w->e->digest), DAFL_AUDIT_DIGEST,
         "ctx2 is not that of question and cohort");
    if (slot == NULL)
        return;
    agree(w, slot->cast, &slot->ctx2, &h->ctx2);
    if (w->server) {
        slot->cast = true;
        slot->ctx2 = h->ctx2;
    }
}

static void on_upload(walk *w)
{
    history *h = w->h;
    uint16_t from = w->client ? w->party : w->e->peer;

    if (!in_turn(w, h->cast) ||
        !must(w, dafl_members_has(&h->now.a, from), DAFL_AUDIT_ORDER,
              "an upload of one who was not cast"))
        return;
    if (w->client) {
        must(w, !h->has_dig || dafl_digest_equal(&h->dig, &w->e->digest),
             DAFL_AUDIT_UPLOADS, "another upload in the same slot");
        h->has_dig = true;
        h->dig = w->e->digest;
        return;
    }
    if (h->digs == NULL)
        h->digs = calloc(w->k->roster->n_clients, sizeof *h->digs);
    if (h->digs == NULL) {
        w->k->err = DAFL_ERR_NOMEM;
        return;
    }
    must(w, !dafl_members_has(&h->uploaded, from), DAFL_AUDIT_UPLOADS,
         "a second upload of one client is counted");
    dafl_members_add(&h->uploaded, from);
    h->digs[from] = w->e->digest;
}

/* The digest that is stated for a client. */
static const uint8_t *stated(const history *h, size_t client)
{
    return h->now.digests.ptr +
           dafl_members_rank(&h->now.u3, client) * DAFL_HASH_BYTES;
}

/* A client knows its own upload, the server everybody's, the key holder none.
 */
static bool uploads_are_right(const walk *w)
{
    const history *h = w->h;
    bool holder = !w->client && !w->server;

    for (uint16_t u = 0; u < h->now.u3.n; u++) {
        const dafl_digest *dig = &h->dig;
        if (!dafl_members_has(&h->now.u3, u) || holder ||
            (w->client && u != w->party))
            continue;
        if (!(w->client ? h->has_dig : dafl_members_has(&h->uploaded, u)))
            return false;
        if (!w->client)
            dig = &h->digs[u];
        if (memcmp(stated(h, u), dig->b, sizeof dig->b) != 0)
            return false;
    }
    return true;
}

/* SURV of the server and the key holder, SIGN of a client. */
static void on_statement(walk *w)
{
    dafl_reader r = dafl_read(w->line->more);
    dafl_signature sig;
    dafl_audit_statement *s, *now = &w->h->now;
    dafl_audit_slot *slot;
    history *h = w->h;

    if (!in_turn(w, h->cast))
        return;
    judge_cohort(w, &now->a);
    now->u3 = w->e->set;
    dafl_writer_drop(&now->digests);
    if (w->client && dafl_get_fixed(&r, sig.b, sizeof sig.b) != DAFL_OK)
        return;
    dafl_put_fixed(&now->digests, r.at, r.left);
    if (dafl_writer_done(&now->digests) != DAFL_OK) {
        w->k->err = DAFL_ERR_NOMEM;
        return;
    }
    dafl_context_statement(&now->stmt, &h->ctx2, &now->u3,
                           dafl_writer_bytes(&now->digests));
    if (!must(w, dafl_digest_equal(&now->stmt, &w->e->digest),
              DAFL_AUDIT_DIGEST, "stmt is not that of cohort and uploads"))
        return;
    slot = entry(w, false);
    if (slot != NULL)
        agree(w, slot->surveyed, &slot->stmt, &now->stmt);
    if (slot != NULL && w->server) {
        slot->surveyed = true;
        slot->stmt = now->stmt;
    }
    must(w, uploads_are_right(w), DAFL_AUDIT_DIGEST,
         "an upload is stated that the log does not have");
    must(w, !h->has_stmt || dafl_digest_equal(&h->stmt, &now->stmt),
         DAFL_AUDIT_SECOND_STMT, "another statement in the same slot");
    h->has_stmt = h->stated = true;
    h->stmt = now->stmt;
    now->log = w->log;
    now->seq = w->seq;
    s = dafl_audit_state(w->k, now);
    if (s != NULL && w->client) {
        dafl_members_add(&s->logged, w->party);
        must(w, dafl_audit_signed(w->k, s, w->party, sig.b), DAFL_AUDIT_DIGEST,
             "the signature does not hold");
    }
}

/* Everyone in A or among the signers has t signers besides itself. */
static bool is_quorum(const history *h, const dafl_members *signers)
{
    return dafl_members_within(signers, &h->u1) &&
           dafl_members_count(signers) >= h->t + 1;
}

static void on_conf(walk *w)
{
    history *h = w->h;
    const uint8_t *at = w->line->more.ptr;
    dafl_audit_statement *s;
    dafl_audit_slot *slot;
    bool hold = true;

    if (!in_turn(w, h->stated) ||
        !must(w, dafl_digest_equal(&w->e->digest, &h->now.stmt),
              DAFL_AUDIT_ORDER, "it confirms another statement"))
        return;
    s = dafl_audit_state(w->k, &h->now);
    for (uint16_t u = 0; s != NULL && u < w->e->set.n; u++)
        if (dafl_members_has(&w->e->set, u)) {
            hold &= dafl_audit_signed(w->k, s, u, at);
            at += DAFL_SIGNATURE_BYTES;
        }
    if (w->e->fault != DAFL_FAULT_NONE)
        return; /* refused: evidence, and no more */
    h->confirmed = true;
    must(w, hold && is_quorum(h, &w->e->set), DAFL_AUDIT_QUORUM,
         "too few signatures, or some that do not hold");
    slot = entry(w, false);
    if (slot == NULL || (!w->server && w->k->server))
        return;
    slot->confirmed = true;
    slot->cohort = h->now.u3;
}

static void on_reveal(walk *w)
{
    history *h = w->h;
    dafl_members gone = dafl_members_minus(&h->now.a, &h->now.u3);

    if (!must(w, h->confirmed && w->e->slot == h->slot, DAFL_AUDIT_EARLY_REVEAL,
              "shares were given before a quorum"))
        return;
    must(w, dafl_members_equal(&gone, &w->e->set), DAFL_AUDIT_ORDER,
         "shares of others than the statement says");
}

static void on_key(walk *w)
{
    history *h = w->h;

    must(w, w->e->slot > h->key_slot, DAFL_AUDIT_SLOT_REUSED,
         "a second key for the slot, or an older one");
    h->key_slot = w->e->slot;
    h->key = w->e->digest;
}

/* The server asks for it, the key holder does it. */
static void on_open(walk *w)
{
    dafl_audit_slot *slot = entry(w, false);
    history *h = w->h;

    if (!must(w, h->confirmed && w->e->slot == h->slot, DAFL_AUDIT_EARLY_REVEAL,
              "a sum was opened before a quorum"))
        return;
    must(w, dafl_members_equal(&w->e->set, &h->now.u3), DAFL_AUDIT_ORDER,
         "a sum of others than the statement says");
    must(w, !h->opened, DAFL_AUDIT_SLOT_REUSED, "a second opening in the slot");
    h->opened = true;
    if (slot == NULL)
        return;
    agree(w, slot->opened, &slot->sealed, &w->e->digest);
    if (w->server) {
        slot->opened = true;
        slot->sealed = w->e->digest;
    }
}

static void on_result(walk *w)
{
    dafl_audit_slot *slot = entry(w, false);
    const history *h = w->h;

    if (w->e->slot == 0)
        return; /* the run is over, whatever its last slot gave */
    if (w->server)
        must(w,
             w->e->fault != DAFL_FAULT_NONE ||
                 (h->confirmed && w->e->slot == h->slot &&
                  dafl_members_equal(&w->e->set, &h->now.u3)),
             DAFL_AUDIT_RESULT, "a sum without a quorum for it");
    else if (w->k->server &&
             !must(w,
                   slot != NULL && slot->ended && slot->fault == w->e->fault &&
                       dafl_digest_equal(&slot->sum, &w->e->digest),
                   DAFL_AUDIT_SPLIT, "the server's log has another result"))
        return;
    if (slot == NULL)
        return;
    slot->ended = true;
    slot->fault = w->e->fault;
    slot->sum = w->e->digest;
}

/* ---- the whole log ---- */

static void on_nothing(walk *w)
{
    (void)w;
}

typedef void handler(walk *w);

static handler *const handlers[DAFL_EVENTS] = {
    [DAFL_EVENT_START] = on_start,    [DAFL_EVENT_INVITE] = on_nothing,
    [DAFL_EVENT_ENROLL] = on_nothing, [DAFL_EVENT_SETUP] = on_setup,
    [DAFL_EVENT_MODEL] = on_model,    [DAFL_EVENT_READY] = on_ready,
    [DAFL_EVENT_CAST] = on_cast,      [DAFL_EVENT_UPLOAD] = on_upload,
    [DAFL_EVENT_SURV] = on_statement, [DAFL_EVENT_SIGN] = on_statement,
    [DAFL_EVENT_CONF] = on_conf,      [DAFL_EVENT_REVEAL] = on_reveal,
    [DAFL_EVENT_RESULT] = on_result,  [DAFL_EVENT_ERROR] = on_nothing,
    [DAFL_EVENT_DONE] = on_nothing,   [DAFL_EVENT_PEER_HEAD] = on_nothing,
    [DAFL_EVENT_KEY] = on_key,        [DAFL_EVENT_OPEN] = on_open,
    [DAFL_EVENT_ERRORS] = on_nothing,
};

/* Who may tell what. */
static bool may_tell(const walk *w)
{
    switch (w->e->kind) {
    case DAFL_EVENT_READY:
    case DAFL_EVENT_SIGN:
    case DAFL_EVENT_REVEAL:
        return w->client;
    case DAFL_EVENT_ENROLL:
    case DAFL_EVENT_UPLOAD:
        return w->client || w->server;
    case DAFL_EVENT_SURV:
    case DAFL_EVENT_OPEN:
        return !w->client;
    case DAFL_EVENT_DONE:
        return w->server;
    case DAFL_EVENT_KEY:
        return !w->client && !w->server;
    default:
        return true;
    }
}

static history *history_of(walk *w, const dafl_run_id *run)
{
    history *h;

    for (size_t i = w->n_runs; i-- > 0;)
        if (memcmp(w->runs[i].run.b, run->b, sizeof run->b) == 0)
            return &w->runs[i];
    if (w->n_runs == RUNS_MAX) {
        found(w, DAFL_AUDIT_ORDER, "more runs than anyone takes part in");
        return NULL;
    }
    h = dafl_audit_grow(w->k, (void **)&w->runs, &w->n_runs, &w->room_runs,
                        sizeof *h);
    if (h != NULL) {
        h->run = *run;
        h->u1 = h->now.a = h->now.u3 = h->uploaded =
            dafl_members_none(w->k->roster->n_clients);
    }
    return h;
}

void dafl_audit_walk(dafl_audit_checker *k, size_t log)
{
    const dafl_audit_loaded *l = &k->loaded[log];
    walk w = {.k = k, .log = log, .party = k->report->logs[log].party};

    if (w.party >= k->roster->n)
        return;
    w.server = k->roster->parties[w.party].role == DAFL_ROLE_SERVER;
    w.client = k->roster->parties[w.party].role == DAFL_ROLE_CLIENT;
    for (size_t i = 0; i < l->n && l->places[i].sound; i++) {
        w.line = &l->places[i].line;
        w.e = &w.line->event;
        w.seq = l->places[i].seq;
        w.h = history_of(&w, &w.e->run);
        if (w.h == NULL)
            break;
        if (i == 0)
            must(&w, w.e->kind == DAFL_EVENT_START, DAFL_AUDIT_BINDING,
                 "a log begins with a start");
        if (must(&w, may_tell(&w), DAFL_AUDIT_ORDER,
                 "no event of this party's role"))
            handlers[w.e->kind](&w);
    }
    for (size_t i = 0; i < w.n_runs; i++) {
        dafl_writer_drop(&w.runs[i].now.digests);
        free(w.runs[i].digs);
    }
    free(w.runs);
}
