/* SPDX-License-Identifier: Apache-2.0 */
/* deepafl config check: what a run.yaml says, for the person who signs up to
 * it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "agents/cli.h"
#include "agents/runfile.h"
#include "crypto/he.h"
#include "lib/query.h"

static const char word[] = "config";

/* Questions of one kind. */
typedef struct {
    const char *name;
    size_t times;
    uint64_t bytes; /* of one client's answer */
    bool or_less;   /* the rank of a sum may be lower */
} upload;

#define UPLOADS_MAX 5
#define WARNINGS_MAX 12

/* What follows from a run. */
typedef struct {
    const runfile *run;
    uint32_t questions;
    size_t t;                  /* with everybody enrolled */
    size_t absent;             /* that this t leaves room for */
    size_t absent_at_min;      /* the same with n_min enrolled */
    size_t cells, spare_cells; /* in a sum; how many of them may be missing */
    upload uploads[UPLOADS_MAX];
    size_t n_uploads;
    uint64_t upload_bytes; /* of one client in the whole run */
    const char *warnings[WARNINGS_MAX];
    size_t n_warnings;
} facts;

static void add_upload(facts *f, dafl_query_kind kind, size_t times)
{
    const dafl_params *p = &f->run->params;
    dafl_query query = {.kind = kind};
    dafl_layout layout;
    upload *u = &f->uploads[f->n_uploads];

    if (times == 0)
        return;
    if (kind == DAFL_QUERY_INCREMENT)
        query.rank = p->width < p->classes ? p->width : p->classes;
    dafl_query_layout(&layout, p, &query);
    *u = (upload){.name = dafl_query_name(kind),
                  .times = times,
                  .bytes = f->run->config.mode == DAFL_MODE_SEAL
                               ? dafl_he_bytes(layout.len)
                               : (uint64_t)layout.len * (p->contract.w / 8),
                  .or_less = kind == DAFL_QUERY_INCREMENT};
    f->upload_bytes += u->bytes * times;
    f->n_uploads++;
}

static void count_uploads(facts *f)
{
    const dafl_params *p = &f->run->params;
    /* An increment needs the cohort of the sums before it; drawn cohorts
     * change from layer to layer. */
    bool increments =
        dafl_trainer_increments(p) && f->cells == f->run->roster.n_cells;

    add_upload(f, DAFL_QUERY_CENSUS, 1);
    add_upload(f, DAFL_QUERY_GRAM, increments ? 1 : p->layers + 1);
    add_upload(f, DAFL_QUERY_RESIDUAL, p->layers);
    add_upload(f, DAFL_QUERY_INCREMENT, increments ? p->layers : 0);
    add_upload(f, DAFL_QUERY_REPORT, 1);
}

static void warn(facts *f, bool when, const char *text)
{
    if (when && f->n_warnings < WARNINGS_MAX)
        f->warnings[f->n_warnings++] = text;
}

static void add_warnings(facts *f)
{
    const dafl_roster *r = &f->run->roster;
    const dafl_config *c = &f->run->config;
    const dafl_policy *y = &c->policy;

    warn(f, c->mode == DAFL_MODE_NONE,
         "secure_agg is none: nothing is protected, the server sees every "
         "client's matrices; each client has to allow it");
    warn(f, c->mode == DAFL_MODE_SEAL && !dafl_he_built(),
         "secure_agg is seal: this program was built without Microsoft SEAL, "
         "its agents refuse the run");
    warn(f, c->mode != DAFL_MODE_SEAL && r->n == r->n_clients + 2,
         "the key holder has nothing to do: secure_agg is not seal");
    warn(f, y->g == 1,
         "policy.g is 1: there are no cells, the server can single a client "
         "out by comparing sums; each client has to allow it");
    warn(f, y->c == 0,
         "policy.c is 0: one client that helps the server is one too many");
    warn(f, f->absent == 0,
         "the threshold tolerates nobody missing: one silent client ends "
         "every slot");
    warn(f, f->absent > 0 && f->absent_at_min == 0,
         "when only policy.n_min clients enrol, the threshold tolerates nobody "
         "missing");
    warn(f, y->n_min == r->n_clients,
         "policy.n_min is the number of clients: the run waits until all have "
         "enrolled");
    warn(f, y->n_min < y->m,
         "policy.n_min is below policy.m: a run may start that cannot open a "
         "sum");
    warn(f, f->spare_cells == 0,
         y->g == 1 ? "no client may be missing from a sum"
                   : "no cell may be missing from a sum: whoever is away holds "
                     "all up");
    warn(f, c->slots < f->questions,
         "slots are fewer than the questions: the clients enrol again in the "
         "middle of the run");
    warn(f,
         dafl_trainer_increments(&f->run->params) && f->cells < r->n_cells &&
             f->run->params.layers > 0,
         "training.schedule is delta, but with a participation below 1 Gram "
         "matrices are sent in full");
}

static facts find_facts(const runfile *run)
{
    const dafl_policy *y = &run->config.policy;
    facts f = {.run = run,
               .questions = dafl_deep_questions(&run->params),
               .absent = dafl_threshold_absent(run->roster.n_clients, y->c),
               .absent_at_min = dafl_threshold_absent(y->n_min, y->c),
               .cells = runfile_cells_in_sum(run)};

    f.t = run->roster.n_clients - 1u - f.absent;
    while (f.spare_cells + 1 < f.cells &&
           runfile_least_sum(run, f.cells - f.spare_cells - 1) >= y->m)
        f.spare_cells++;
    count_uploads(&f);
    add_warnings(&f);
    return f;
}

/* ---- for people ---- */

static const char *mode_name(dafl_mode mode)
{
    static const char *const names[] = {"none", "masks", "seal"};

    return names[mode];
}

static void print_parties(const facts *f)
{
    const dafl_roster *r = &f->run->roster;
    bool cells = f->run->config.policy.g != 1;

    printf("Parties: server %s", r->parties[r->n_clients].id.name);
    if (r->n > r->n_clients + 1)
        printf(", key holder %s", r->parties[r->n_clients + 1].id.name);
    printf(", %u clients in %s\n", (unsigned)r->n_clients,
           cells ? "cells" : "no cells");
    for (unsigned c = 0; c < (cells ? r->n_cells : 1u); c++) {
        if (cells)
            printf("  cell %u:", c);
        else
            printf(" ");
        for (size_t i = 0; i < r->n_clients; i++)
            if (!cells || r->parties[i].cell == c)
                printf(" %s", r->parties[i].id.name);
        printf("\n");
    }
}

static void print_training(const facts *f)
{
    const dafl_params *p = &f->run->params;
    const dafl_participation *part = &f->run->participation;
    char seed[2 * DAFL_SEED_BYTES + 1];

    dafl_seed_format(seed, &p->seed);
    printf("\nTraining: %s on %zu features, %zu classes",
           dafl_method_name(p->method), p->features, p->classes);
    if (p->method == DAFL_METHOD_DEEPAFL)
        printf(", %zu layers, widths %zu and %zu,\n  %s", p->layers, p->width,
               p->hidden, dafl_activation_name(p->activation));
    printf(", lambda %g, gamma %g, schedule %s\n  seed %s\n", p->lambda,
           p->gamma, dafl_schedule_name(p->schedule), seed);
    printf("  Each sum is over %zu of %u %s%s.\n", f->cells,
           (unsigned)f->run->roster.n_cells,
           f->run->config.policy.g == 1 ? "clients" : "cells",
           part->permille == 1000 ? ""
           : part->consistent     ? ", drawn once per layer"
                                  : ", drawn for every sum");
    printf("  The sites together need at least %zu rows, at most %llu, and %d "
           "of each class that occurs.\n",
           2 * p->width, (unsigned long long)p->contract.n_max,
           DAFL_DEEP_CLASS_ROWS);
}

static void print_encryption(void)
{
    char size[32];

    cli_bytes(size, (double)dafl_he_key_bytes());
    printf("  Encrypted, 18 bytes for a number, %d numbers at a time. Each "
           "client gets a key of\n  %s a slot; the key holder gets as much as "
           "one client sends, and answers in w bits.\n",
           DAFL_HE_N, size);
}

static void print_uploads(const facts *f)
{
    const dafl_config *c = &f->run->config;
    char size[32];

    printf("\nQuestions: %u, with %u slots prepared by one enrolment; a failed "
           "attempt costs a slot.\n  Numbers are summed in w = %u bits. A "
           "client sends:\n",
           (unsigned)f->questions, (unsigned)c->slots, c->contract.w);
    for (size_t i = 0; i < f->n_uploads; i++) {
        const upload *u = &f->uploads[i];
        cli_bytes(size, (double)u->bytes);
        printf("  %3zu x %-9s %14llu bytes (%s)%s\n", u->times, u->name,
               (unsigned long long)u->bytes, size,
               u->or_less ? " or less" : "");
    }
    cli_bytes(size, (double)f->upload_bytes);
    printf("  in all about %s when every sum succeeds at once\n", size);
    if (c->mode == DAFL_MODE_SEAL)
        print_encryption();
}

static void print_policy(const facts *f)
{
    const dafl_config *c = &f->run->config;
    const dafl_policy *y = &c->policy;
    unsigned clients = f->run->roster.n_clients;

    printf("\nPolicy (secure_agg %s)\n", mode_name(c->mode));
    printf("  n_min = %-3u of %u clients have to enrol before the run starts\n",
           (unsigned)y->n_min, clients);
    printf("  m = %-7u clients at least are in every sum\n", (unsigned)y->m);
    if (y->g == 1)
        printf("  g = 1       no cells: a sum may be over any m clients\n");
    else
        printf("  g = %-7u clients at least are in a cell; sums are over whole "
               "cells\n",
               (unsigned)y->g);
    printf("  c = %-7u clients may collude with the server and learn no more "
           "than the sums\n",
           (unsigned)y->c);
    printf("  a = %-7u clients may be absent, or not sign, when n_min have "
           "enrolled\n",
           (unsigned)y->a);
    printf("  t = %-7zu shares rebuild a secret, and so many others' "
           "signatures confirm a cohort,\n"
           "              when all %u have enrolled\n",
           f->t, clients);
}

static void print_churn(const facts *f)
{
    const dafl_config *c = &f->run->config;
    const char *cells = c->policy.g == 1 ? "clients" : "cells";

    printf("\nWhat it survives\n"
           "  Shares and signatures: when all have enrolled, %zu of %u clients "
           "may vanish at any\n  moment of a slot.\n"
           "  Cohorts: of the %zu %s in a sum, %zu may be missing before it is "
           "refused (m = %u).\n",
           f->absent, (unsigned)f->run->roster.n_clients, f->cells, cells,
           f->spare_cells, (unsigned)c->policy.m);
    if (c->policy.g != 1)
        printf("  A client that is missing takes its cell along: out of the "
               "run if it never enrols,\n  out of a sum if it vanishes.\n");
    if (c->mode == DAFL_MODE_SEAL)
        printf("  Key holder: while it is away the run waits; a restart of it "
               "costs the slot at hand.\n");
    printf("  Below %g of the %s a sum is given up for a fuller one, %u "
           "times; after %u failed\n  attempts at one question the run ends.\n",
           c->want / 1000.0, cells, (unsigned)c->tries, (unsigned)c->retries);
}

static void print_learned(const facts *f)
{
    const dafl_config *c = &f->run->config;

    printf("\nWhat the server learns\n");
    if (c->mode == DAFL_MODE_NONE) {
        printf("  Every client's matrices as they are, and with them much of "
               "its data.\n");
        return;
    }
    printf("  Per slot one sum over one cohort: row and class counts, Gram and "
           "residual matrices,\n  correct answers; the model, which follows "
           "from them; and who was there when.\n");
    if (c->policy.g == 1)
        printf("  Comparing sums with and without a client it can learn that "
               "client's matrices.\n");
    else
        printf(
            "  While at most c clients collude with it, never a client's own "
            "matrices, rows or\n  labels: nothing below a whole cell, over "
            "all runs with these rows, cells and seed.\n  Rows that change "
            "between runs with one seed show; draw a new one.\n");
    if (c->mode == DAFL_MODE_SEAL)
        printf("  And no sum without the key holder, who opens one a slot by "
               "the rules of a client and\n  sees none: what it opens is "
               "blinded. Recorded uploads stay closed even if X25519 falls.\n");
}

static void print_facts(const facts *f, const char *path)
{
    char text[RUNFILE_DIGEST_TEXT];

    printf("%s: a run that all rules allow\n\n", path);
    printf("Compare these by telephone with the other parties:\n");
    runfile_digest_text(text, &f->run->roster_digest);
    printf("  roster  %s\n", text);
    runfile_digest_text(text, &f->run->config_digest);
    printf("  config  %s\n\n", text);
    print_parties(f);
    print_training(f);
    print_uploads(f);
    print_policy(f);
    print_churn(f);
    print_learned(f);
    if (f->n_warnings > 0)
        printf("\nWarnings\n");
    for (size_t i = 0; i < f->n_warnings; i++)
        printf("  %s\n", f->warnings[i]);
}

/* ---- for programs ---- */

static json_t *parties_json(const facts *f)
{
    const dafl_roster *r = &f->run->roster;
    json_t *list = json_array();

    for (size_t i = 0; list != NULL && i < r->n; i++) {
        static const char *const roles[] = {"client", "server", "keyholder"};
        const dafl_party *p = &r->parties[i];
        json_t *o =
            json_pack("{s:s, s:s}", "name", p->id.name, "role", roles[p->role]);
        if (p->role == DAFL_ROLE_CLIENT)
            (void)json_object_set_new(o, "cell", json_integer(p->cell));
        (void)json_array_append_new(list, o);
    }
    return list;
}

static json_t *uploads_json(const facts *f)
{
    json_t *list = json_array();

    for (size_t i = 0; list != NULL && i < f->n_uploads; i++)
        (void)json_array_append_new(
            list, json_pack("{s:s, s:I, s:I, s:b}", "kind", f->uploads[i].name,
                            "times", (json_int_t)f->uploads[i].times, "bytes",
                            (json_int_t)f->uploads[i].bytes, "or_less",
                            (int)f->uploads[i].or_less));
    return list;
}

static json_t *config_json(const facts *f)
{
    const dafl_config *c = &f->run->config;
    const dafl_policy *y = &c->policy;

    return json_pack(
        "{s:s, s:{s:i, s:i, s:i, s:i, s:i}, s:i, s:i, s:i, s:I, s:I, s:I, "
        "s:{s:I, s:I, s:I, s:I, s:I}, s:i, s:b}",
        "secure_agg", mode_name(c->mode), "policy", "n_min", (int)y->n_min, "m",
        (int)y->m, "g", (int)y->g, "c", (int)y->c, "a", (int)y->a,
        "want_permille", (int)c->want, "tries", (int)c->tries, "retries",
        (int)c->retries, "slots", (json_int_t)c->slots, "chunk",
        (json_int_t)c->chunk, "body_max", (json_int_t)c->body_max,
        "timeouts_ms", "setup", (json_int_t)c->wait[DAFL_WAIT_SETUP], "ready",
        (json_int_t)c->wait[DAFL_WAIT_READY], "upload",
        (json_int_t)c->wait[DAFL_WAIT_UPLOAD], "sign",
        (json_int_t)c->wait[DAFL_WAIT_SIGN], "reveal",
        (json_int_t)c->wait[DAFL_WAIT_REVEAL], "participation_permille",
        (int)f->run->participation.permille, "consistent",
        (int)f->run->participation.consistent);
}

static bool print_json(const facts *f, const char *path)
{
    char roster[2 * DAFL_HASH_BYTES + 1], config[2 * DAFL_HASH_BYTES + 1];
    json_t *warnings = json_array();

    sodium_bin2hex(roster, sizeof roster, f->run->roster_digest.b,
                   DAFL_HASH_BYTES);
    sodium_bin2hex(config, sizeof config, f->run->config_digest.b,
                   DAFL_HASH_BYTES);
    for (size_t i = 0; warnings != NULL && i < f->n_warnings; i++)
        (void)json_array_append_new(warnings, json_string(f->warnings[i]));
    return cli_print_json(json_pack(
        "{s:s, s:s, s:s, s:o, s:I, s:I, s:o, s:o, s:I, s:I, s:I, s:I, s:I, "
        "s:o, s:I, s:o}",
        "file", path, "roster", roster, "config", config, "parties",
        parties_json(f), "clients", (json_int_t)f->run->roster.n_clients,
        "cells", (json_int_t)f->run->roster.n_cells, "params",
        cli_params_json(&f->run->params), "settings", config_json(f),
        "questions", (json_int_t)f->questions, "threshold", (json_int_t)f->t,
        "absent", (json_int_t)f->absent, "cells_in_sum", (json_int_t)f->cells,
        "cells_missing", (json_int_t)f->spare_cells, "uploads", uploads_json(f),
        "upload_bytes", (json_int_t)f->upload_bytes, "warnings", warnings));
}

static dafl_err check(const char *path, bool json, dafl_why *why)
{
    json_t *shown = json_string(path);
    runfile *run = NULL;
    bool printed = true;
    facts f;

    json_decref(shown);
    if (json && shown == NULL)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--json can only show a path in UTF-8");
    DAFL_TRY(runfile_load(&run, path, why));
    f = find_facts(run);
    if (json)
        printed = print_json(&f, path);
    else
        print_facts(&f, path);
    runfile_free(&run);
    return cli_printed(printed, why);
}

int cmd_config(int argc, char **argv)
{
    bool json = false;
    const char *words[2] = {NULL, NULL};
    const opt opts[] = {
        {OPT_HEADING, NULL, NULL, NULL, "Options"},
        {OPT_FLAG, "json", NULL, &json, "one JSON object on stdout"},
    };
    dafl_why why = {{0}};
    dafl_err err;
    int code = cli_parse(
        word, "check RUN.yaml",
        "Judge the file that describes a run by every rule, and explain it: "
        "the two numbers\nthat the parties compare, who takes part, what is "
        "sent, what it survives and what\nthe server learns. Exit code 2: a "
        "rule is broken, and the reason names it.",
        opts, sizeof opts / sizeof opts[0], argc, argv, words, 2);

    if (code >= 0)
        return code;
    if (strcmp(words[0], "check") != 0)
        err = dafl_fail(&why, DAFL_ERR_INPUT, "'%s': only 'check' is known",
                        words[0]);
    else
        err = check(words[1], json, &why);
    return err == DAFL_OK ? 0 : cli_fail(word, err, &why);
}
