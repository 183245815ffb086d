/* SPDX-License-Identifier: Apache-2.0 */
/* From the texts of a run file to a roster, a config and parameters. */
#include "agents/runfile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/runfile_raw.h"
#include "crypto/he.h"
#include "crypto/packet.h"
#include "lib/file.h"
#include "lib/query.h"
#include "protocol/messages.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* ---- sections ---- */

static dafl_err take_seed(const raw_source *src, const char *text,
                          dafl_seed *out)
{
    if (text == NULL || strlen(text) != 2 * (size_t)DAFL_SEED_BYTES ||
        dafl_seed_parse(out, text, NULL) != DAFL_OK)
        return raw_refuse(src, "training.seed", text,
                          "choose 64 hexadecimal digits");
    return DAFL_OK;
}

static dafl_err take_names(const raw_source *src, const raw_training *t,
                           runfile *run)
{
    static const char *const kinds[] = {"consistent", "inconsistent"};
    dafl_params *p = &run->params;
    unsigned kind = 0;
    dafl_why why = {{0}};

    if (t->method != NULL &&
        dafl_method_parse(&p->method, t->method, &why) != DAFL_OK)
        return raw_refuse(src, "training.method", t->method, "%s", why.text);
    if (t->activation != NULL &&
        dafl_activation_parse(&p->activation, t->activation, &why) != DAFL_OK)
        return raw_refuse(src, "training.activation", t->activation, "%s",
                          why.text);
    if (t->schedule != NULL &&
        dafl_schedule_parse(&p->schedule, t->schedule, &why) != DAFL_OK)
        return raw_refuse(src, "training.schedule", t->schedule, "%s",
                          why.text);
    DAFL_TRY(raw_take_choice(src, "training.participation_kind",
                             t->participation_kind, kinds, COUNT(kinds),
                             &kind));
    run->participation.consistent = kind == 0;
    return DAFL_OK;
}

/* Where the method leaves no choice another value must not stand there. */
static dafl_err check_implied(const raw_source *src, const char *path,
                              const char *text, size_t value)
{
    uint64_t v = 0;

    if (text == NULL || (raw_whole(text, &v) && v == value))
        return DAFL_OK;
    return raw_refuse(src, path, text,
                      "method afl has %zu here, so leave it out", value);
}

static dafl_err take_training(const raw_source *src, const raw_run *raw,
                              runfile *run)
{
    const raw_training *t = &raw->training;
    dafl_params *p = &run->params;
    dafl_contract *c = &p->contract;
    dafl_why why = {{0}};

    *p = (dafl_params){.width = 1024,
                       .hidden = 1024,
                       .layers = 5,
                       .lambda = 1.0,
                       .gamma = 0.01,
                       .contract = DAFL_CONTRACT_DEFAULT};
    run->participation = (dafl_participation){.permille = 1000};
    DAFL_TRY(take_names(src, t, run));
    if (p->method == DAFL_METHOD_AFL)
        c->q = 16; /* features as they are, larger than what tanh leaves */
    {
        const raw_number numbers[] = {
            RAW_NUMBER("training.features", t->features, RAW_WHOLE, true, 1,
                       DAFL_SIZE_MAX, p->features),
            RAW_NUMBER("training.width", t->width, RAW_WHOLE, false, 1,
                       DAFL_SIZE_MAX, p->width),
            RAW_NUMBER("training.hidden", t->hidden, RAW_WHOLE, false, 1,
                       DAFL_SIZE_MAX, p->hidden),
            RAW_NUMBER("training.classes", t->classes, RAW_WHOLE, true, 2,
                       DAFL_SIZE_MAX, p->classes),
            RAW_NUMBER("training.layers", t->layers, RAW_WHOLE, false, 0,
                       DAFL_LAYERS_MAX, p->layers),
            RAW_NUMBER("training.participation", t->participation,
                       RAW_THOUSANDTHS, false, 1, 1000,
                       run->participation.permille),
            RAW_NUMBER("contract.s", raw->contract.s, RAW_WHOLE, false, 1, 24,
                       c->s),
            RAW_NUMBER("contract.q", raw->contract.q, RAW_WHOLE, false, 1,
                       65536, c->q),
            RAW_NUMBER("contract.n_max", raw->contract.n_max, RAW_WHOLE, false,
                       1, (uint64_t)1 << 40, c->n_max),
        };

        DAFL_TRY(raw_take_numbers(src, numbers, COUNT(numbers)));
    }
    DAFL_TRY(raw_take_penalty(src, "training.lambda", t->lambda, &p->lambda));
    DAFL_TRY(raw_take_penalty(src, "training.gamma", t->gamma, &p->gamma));
    DAFL_TRY(take_seed(src, t->seed, &p->seed));
    if (dafl_params_check(p, &why) != DAFL_OK)
        return raw_refuse_rule(src, "training and contract: %s", why.text);
    DAFL_TRY(check_implied(src, "training.width", t->width, p->width));
    DAFL_TRY(check_implied(src, "training.hidden", t->hidden, p->hidden));
    return check_implied(src, "training.layers", t->layers, p->layers);
}

static dafl_err take_config(const raw_source *src, const raw_run *raw,
                            runfile *run)
{
    static const char *const modes[] = {"none", "masks", "seal"};
    dafl_config *c = &run->config;
    const raw_policy *p = &raw->policy;
    const raw_timeouts *t = &raw->timeouts;
    unsigned mode = DAFL_MODE_MASKS;

    *c = dafl_config_default();
    c->contract = run->params.contract;
    c->slots = dafl_config_slots(dafl_deep_questions(&run->params));
    {
        const uint64_t longest = UINT32_MAX;
        const raw_number numbers[] = {
            RAW_NUMBER("policy.n_min", p->n_min, RAW_WHOLE, true, 2,
                       DAFL_CLIENTS_MAX, c->policy.n_min),
            RAW_NUMBER("policy.m", p->m, RAW_WHOLE, true, 2, DAFL_CLIENTS_MAX,
                       c->policy.m),
            RAW_NUMBER("policy.g", p->g, RAW_WHOLE, true, 1, DAFL_CLIENTS_MAX,
                       c->policy.g),
            RAW_NUMBER("policy.c", p->c, RAW_WHOLE, true, 0, DAFL_CLIENTS_MAX,
                       c->policy.c),
            RAW_NUMBER("policy.a", p->a, RAW_WHOLE, true, 0, DAFL_CLIENTS_MAX,
                       c->policy.a),
            RAW_NUMBER("contract.w", raw->contract.w, RAW_WHOLE, false, 32, 64,
                       c->contract.w),
            RAW_NUMBER("want", raw->want, RAW_THOUSANDTHS, false, 1, 1000,
                       c->want),
            RAW_NUMBER("tries", raw->tries, RAW_WHOLE, false, 0, UINT16_MAX,
                       c->tries),
            RAW_NUMBER("retries", raw->retries, RAW_WHOLE, false, 1, UINT16_MAX,
                       c->retries),
            RAW_NUMBER("slots", raw->slots, RAW_WHOLE, false, 1, DAFL_SLOTS_MAX,
                       c->slots),
            RAW_NUMBER("timeouts.setup", t->setup, RAW_THOUSANDTHS, false, 1,
                       longest, c->wait[DAFL_WAIT_SETUP]),
            RAW_NUMBER("timeouts.ready", t->ready, RAW_THOUSANDTHS, false, 1,
                       longest, c->wait[DAFL_WAIT_READY]),
            RAW_NUMBER("timeouts.upload", t->upload, RAW_THOUSANDTHS, false, 1,
                       longest, c->wait[DAFL_WAIT_UPLOAD]),
            RAW_NUMBER("timeouts.sign", t->sign, RAW_THOUSANDTHS, false, 1,
                       longest, c->wait[DAFL_WAIT_SIGN]),
            RAW_NUMBER("timeouts.reveal", t->reveal, RAW_THOUSANDTHS, false, 1,
                       longest, c->wait[DAFL_WAIT_REVEAL]),
            RAW_NUMBER("caps.chunk", raw->caps.chunk, RAW_WHOLE, false,
                       DAFL_CHUNK_MIN, DAFL_CHUNK_MAX, c->chunk),
            RAW_NUMBER("caps.body_max", raw->caps.body_max, RAW_WHOLE, false,
                       DAFL_CHUNK_MIN, DAFL_BODY_MAX, c->body_max),
        };

        DAFL_TRY(raw_take_numbers(src, numbers, COUNT(numbers)));
    }
    DAFL_TRY(raw_take_choice(src, "secure_agg", raw->secure_agg, modes,
                             COUNT(modes), &mode));
    c->mode = (dafl_mode)mode;
    run->params.contract = c->contract; /* w may be wider than derived */
    (void)snprintf(c->method, sizeof c->method, "deepafl");
    dafl_put_deep_params(&run->method, &run->params, &run->participation);
    c->method_params = dafl_writer_bytes(&run->method);
    return dafl_writer_done(&run->method);
}

/* ---- the roster ---- */

static dafl_err take_party(const raw_source *src, const raw_party *raw,
                           size_t number_in_list, dafl_party *out)
{
    static const char *const roles[] = {"client", "server", "keyholder"};
    char path[32];
    unsigned role = DAFL_ROLE_CLIENT;

    *out = (dafl_party){.cell = DAFL_NO_CELL};
    (void)snprintf(path, sizeof path, "roster.%zu.role", number_in_list);
    DAFL_TRY(raw_take_choice(src, path, raw->role, roles, COUNT(roles), &role));
    out->role = (dafl_role)role;
    (void)snprintf(path, sizeof path, "roster.%zu.key", number_in_list);
    if (raw->key == NULL ||
        dafl_identity_parse(&out->id, raw->key, NULL) != DAFL_OK)
        return raw_refuse(src, path, raw->key,
                          "paste the line that 'deepafl keygen' printed, 'NAME "
                          "ed25519:HEX curve25519:HEX'");
    (void)snprintf(path, sizeof path, "roster.%zu.cell", number_in_list);
    if (out->role != DAFL_ROLE_CLIENT && raw->cell != NULL)
        return raw_refuse(src, path, raw->cell, "only clients have a cell");
    {
        const raw_number cell = RAW_NUMBER(path, raw->cell, RAW_WHOLE, false, 0,
                                           DAFL_CLIENTS_MAX - 1, out->cell);

        return raw_take_number(src, &cell);
    }
}

/* Without cells (g = 1) every client is one of its own. */
static dafl_err take_cells(const raw_source *src, const raw_run *raw,
                           const runfile *run, dafl_party *parties)
{
    bool none = run->config.policy.g == 1;
    uint16_t next = 0;

    for (size_t i = 0; none && i < raw->n_roster; i++)
        none = raw->roster[i].cell == NULL;
    for (size_t i = 0; i < raw->n_roster; i++) {
        char path[32];
        if (parties[i].role != DAFL_ROLE_CLIENT)
            continue;
        (void)snprintf(path, sizeof path, "roster.%zu.cell", i + 1);
        if (none)
            parties[i].cell = next++;
        else if (raw->roster[i].cell == NULL)
            return raw_refuse(src, path, NULL,
                              "number the cells from 0; only with policy.g = 1 "
                              "there are none");
    }
    return DAFL_OK;
}

/* In the order of their roles, so that the server may stand first in the file;
 * the clients keep their order. */
static dafl_err take_roster(const raw_source *src, const raw_run *raw,
                            runfile *run)
{
    dafl_party *listed = calloc(2 * (size_t)DAFL_PARTIES_MAX, sizeof *listed);
    dafl_party *sorted;
    dafl_why why = {{0}};
    dafl_err err = DAFL_OK;
    size_t n = 0;

    if (listed == NULL)
        return DAFL_ERR_NOMEM;
    sorted = listed + DAFL_PARTIES_MAX;
    for (size_t i = 0; i < raw->n_roster && err == DAFL_OK; i++)
        err = take_party(src, &raw->roster[i], i + 1, &listed[i]);
    if (err == DAFL_OK)
        err = take_cells(src, raw, run, listed);
    for (unsigned role = 0; role <= DAFL_ROLE_KEYHOLDER; role++)
        for (size_t i = 0; i < raw->n_roster; i++)
            if (listed[i].role == (dafl_role)role)
                sorted[n++] = listed[i];
    if (err == DAFL_OK &&
        dafl_roster_make(&run->roster, sorted, n, &why) != DAFL_OK)
        err = raw_refuse_rule(src, "roster: %s", why.text);
    free(listed);
    return err;
}

/* ---- rules between the sections ---- */

static dafl_err check_by(const raw_source *src, const char *text,
                         const runfile *run)
{
    static const char *const names[] = {"cells", "clients"};
    bool any_cohort = run->config.policy.g == 1;
    unsigned by = any_cohort;

    DAFL_TRY(
        raw_take_choice(src, "training.by", text, names, COUNT(names), &by));
    if (by == 1 && !any_cohort)
        return raw_refuse_rule(src,
                               "E_POLICY: training.by is 'clients': that needs "
                               "policy.g = 1, which lets the server single "
                               "clients out; or choose 'cells'");
    if (by == 0 && any_cohort)
        return raw_refuse_rule(src, "E_POLICY: training.by is 'cells': with "
                                    "policy.g = 1 there are none, choose "
                                    "'clients'");
    if (any_cohort && run->roster.n_cells != run->roster.n_clients)
        return raw_refuse_rule(src, "E_POLICY: policy.g = 1 means no cells: "
                                    "leave every roster cell out");
    return DAFL_OK;
}

static dafl_err check_rules(const raw_source *src, const raw_run *raw,
                            const runfile *run)
{
    const dafl_config *c = &run->config;
    size_t cells = runfile_cells_in_sum(run);
    dafl_why why = {{0}};
    dafl_fault fault = dafl_config_check(c, &run->roster, &why);

    if (fault != DAFL_FAULT_NONE)
        return raw_refuse_rule(src, "%s: %s", dafl_fault_name(fault), why.text);
    DAFL_TRY(check_by(src, raw->training.by, run));
    if (runfile_least_sum(run, cells) < c->policy.m)
        return raw_refuse_rule(
            src,
            "E_COHORT: training.participation of %g means sums over %zu of %u "
            "cells, perhaps only %zu clients: fewer than policy.m = %u",
            run->participation.permille / 1000.0, cells,
            (unsigned)run->roster.n_cells, runfile_least_sum(run, cells),
            (unsigned)c->policy.m);
    if (runfile_largest_body(run) > c->body_max)
        return raw_refuse_rule(src,
                               "E_POLICY: caps.body_max = %" PRIu64
                               ": the largest message of this run has %" PRIu64
                               " bytes",
                               c->body_max, runfile_largest_body(run));
    if (dafl_config_upload_bytes(c, runfile_longest_answer(run)) == SIZE_MAX)
        return raw_refuse_rule(
            src,
            "E_POLICY: an answer of this run has %" PRIu64
            " numbers: that is more than %" PRIu64
            " bytes; lower training.width, training.hidden or "
            "training.classes",
            runfile_longest_answer(run), DAFL_BODY_MAX);
    return DAFL_OK;
}

/* ---- all of it ---- */

static dafl_err judge(const raw_source *src, const raw_run *raw, runfile *run)
{
    DAFL_TRY(take_training(src, raw, run));
    DAFL_TRY(take_config(src, raw, run));
    DAFL_TRY(take_roster(src, raw, run));
    DAFL_TRY(check_rules(src, raw, run));
    DAFL_TRY(dafl_roster_digest(&run->roster_digest, &run->roster));
    return dafl_config_digest(&run->config_digest, &run->config);
}

dafl_err runfile_read(runfile **out, dafl_bytes text, const char *name,
                      dafl_why *why)
{
    raw_source src = {.text = text, .name = name, .why = why};
    raw_run *raw = NULL;
    runfile *run = NULL;
    dafl_err err;

    DAFL_TRY(raw_read(&raw, &src));
    run = calloc(1, sizeof *run);
    err = run == NULL ? DAFL_ERR_NOMEM : judge(&src, raw, run);
    if (err == DAFL_OK)
        *out = run;
    else
        runfile_free(&run);
    raw_drop(&raw);
    return err;
}

dafl_err runfile_load(runfile **out, const char *path, dafl_why *why)
{
    dafl_map map;
    dafl_err err;

    DAFL_TRY(dafl_map_open(&map, path, why));
    err = runfile_read(out, map.bytes, path, why);
    dafl_map_close(&map);
    return err;
}

void runfile_free(runfile **run)
{
    if (*run == NULL)
        return;
    dafl_writer_drop(&(*run)->method);
    free(*run);
    *run = NULL;
}

/* ---- what follows from a run ---- */

size_t runfile_cells_in_sum(const runfile *run)
{
    /* As the server draws them, protocol/deep_server.c. */
    size_t cells = run->roster.n_cells;
    size_t n =
        (size_t)(run->participation.permille / 1000.0 * (double)cells + 0.5);

    return n < 1 ? 1 : n > cells ? cells : n;
}

static int by_size(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;

    return (x > y) - (x < y);
}

size_t runfile_least_sum(const runfile *run, size_t cells)
{
    size_t sizes[DAFL_CLIENTS_MAX] = {0}, sum = 0;

    for (uint16_t c = 0; c < run->roster.n_cells; c++) {
        dafl_members m = dafl_roster_cell(&run->roster, c);
        sizes[c] = dafl_members_count(&m);
    }
    qsort(sizes, run->roster.n_cells, sizeof sizes[0], by_size);
    for (size_t i = 0; i < cells && i < run->roster.n_cells; i++)
        sum += sizes[i];
    return sum;
}

uint64_t runfile_longest_answer(const runfile *run)
{
    return dafl_deep_longest(&run->params);
}

uint64_t runfile_largest_body(const runfile *run)
{
    /* SETUP: per client its digest and signature, keys and packet for every
     * slot. MODEL: at least one segment, of which a head has rank at most C,
     * and with encryption the slot's key. See protocol/messages.h and
     * protocol/deep.h. */
    const dafl_params *p = &run->params;
    uint64_t n = run->roster.n_clients, slots = run->config.slots;
    uint64_t keys = slots * DAFL_SLOT_KEYS_BYTES;
    uint64_t setup =
        10 + n * (2 + 32 + 64 + keys) + (n - 1) * (keys + DAFL_PACKET_OVERHEAD);
    uint64_t rank = p->width < p->classes ? p->width : p->classes;
    uint64_t wide =
        p->hidden > p->width + p->classes ? p->hidden : p->width + p->classes;
    uint64_t model = 14 + 19 + 4 + 8 * rank * wide;

    if (run->config.mode == DAFL_MODE_SEAL)
        model += sizeof(dafl_signature) + dafl_he_key_bytes();
    return setup > model ? setup : model;
}

void runfile_digest_text(char text[RUNFILE_DIGEST_TEXT], const dafl_digest *d)
{
    size_t at = 0;

    for (size_t i = 0; i < sizeof d->b; i += 2)
        at +=
            (size_t)snprintf(text + at, RUNFILE_DIGEST_TEXT - at, "%s%02x%02x",
                             i == 0 ? "" : " ", d->b[i], d->b[i + 1]);
}
