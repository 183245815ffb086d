/* SPDX-License-Identifier: Apache-2.0 */
/* deepafl init: a run.yaml from public lines and a few numbers. The text is
 * read back by the reader that every party will use before a file is made. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "agents/cli.h"
#include "agents/runfile.h"
#include "lib/file.h"

/* A number that was not given. */
#define UNSET SIZE_MAX

typedef struct {
    opt_list clients;
    const char *clients_from, *server, *keyholder, *out;
    size_t cell_size, colluders, min_cohort;
    const char *secure_agg;
    size_t features, classes, width, hidden, layers;
    const char *method, *activation, *schedule, *participation;
    double lambda, gamma;
    bool json;
} settings;

/* What the file will say. */
typedef struct {
    const settings *set;
    size_t n; /* clients */
    dafl_identity clients[DAFL_CLIENTS_MAX], server, keyholder;
    uint16_t cell[DAFL_CLIENTS_MAX];
    dafl_policy policy;
    dafl_seed seed;
    double share;
    bool consistent;
} plan;

/* ---- public lines ---- */

static dafl_err parse_line(const char *option, const char *line,
                           dafl_identity *out, dafl_why *why)
{
    dafl_why reason = {{0}};

    if (dafl_identity_parse(out, line, &reason) != DAFL_OK)
        return dafl_fail(why, DAFL_ERR_INPUT, "--%s: %s", option, reason.text);
    return DAFL_OK;
}

/* The public lines of a file; empty ones and those that begin with '#' are
 * passed over. *n counts on. */
static dafl_err parse_lines(const char *option, dafl_bytes text,
                            const char *path, dafl_identity *ids, size_t max,
                            size_t *n, dafl_why *why)
{
    const char *at = (const char *)text.ptr, *end = at + text.len;

    while (at < end) {
        char line[DAFL_IDENTITY_LINE_MAX + 80];
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((stop == NULL ? end : stop) - at);
        const char *start = at;
        at += stop == NULL ? len : len + 1;
        if (len > 0 && start[0] == '#')
            continue;
        if (len >= sizeof line || memchr(start, '\0', len) != NULL)
            return dafl_fail(why, DAFL_ERR_INPUT,
                             "--%s: %s is no file of public lines", option,
                             path);
        memcpy(line, start, len);
        while (len > 0 && strchr(" \t\r", line[len - 1]) != NULL)
            len--;
        line[len] = '\0';
        if (len == 0)
            continue;
        if (strncmp(line, "deepafl-key", 11) == 0)
            return dafl_fail(why, DAFL_ERR_INPUT,
                             "--%s: %s is a secret key, which stays with its "
                             "owner: take the public line, the second of it",
                             option, path);
        if (*n == max)
            return dafl_fail(why, DAFL_ERR_INPUT, "--%s: %s has too many lines",
                             option, path);
        DAFL_TRY(parse_line(option, line, &ids[*n], why));
        ++*n;
    }
    return DAFL_OK;
}

static dafl_err read_lines(const char *option, const char *path,
                           dafl_identity *ids, size_t max, size_t *n,
                           dafl_why *why)
{
    dafl_why reason = {{0}};
    dafl_map map;
    dafl_err err = dafl_map_open(&map, path, &reason);

    if (err != DAFL_OK)
        return dafl_fail(why, err, "--%s: %s", option, reason.text);
    if (map.bytes.len > 0)
        err = parse_lines(option, map.bytes, path, ids, max, n, why);
    dafl_map_close(&map);
    return err;
}

/* A public line, or a file with one. */
static dafl_err read_party(const char *option, const char *text,
                           dafl_identity *out, dafl_why *why)
{
    size_t n = 0;

    if (strstr(text, " ed25519:") != NULL)
        return parse_line(option, text, out, why);
    DAFL_TRY(read_lines(option, text, out, 1, &n, why));
    if (n != 1)
        return dafl_fail(why, DAFL_ERR_INPUT, "--%s: %s has no public line",
                         option, text);
    return DAFL_OK;
}

static dafl_err read_parties(plan *p, dafl_why *why)
{
    const settings *set = p->set;

    if (set->server == NULL)
        return dafl_fail(why, DAFL_ERR_INPUT, "--server is needed");
    DAFL_TRY(read_party("server", set->server, &p->server, why));
    if (set->keyholder != NULL)
        DAFL_TRY(read_party("keyholder", set->keyholder, &p->keyholder, why));
    for (size_t i = 0; i < set->clients.n; i++)
        DAFL_TRY(
            read_party("client", set->clients.at[i], &p->clients[p->n++], why));
    if (set->clients_from != NULL)
        DAFL_TRY(read_lines("clients-from", set->clients_from, p->clients,
                            DAFL_CLIENTS_MAX, &p->n, why));
    if (p->n == 0)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--client or --clients-from is needed");
    return DAFL_OK;
}

/* ---- numbers ---- */

static dafl_err read_share(plan *p, dafl_why *why)
{
    const char *text = p->set->participation;
    char *end = NULL;

    p->share = strtod(text, &end);
    p->consistent = strcmp(end, ":inconsistent") != 0;
    if (end == text || !isfinite(p->share) ||
        (*end != '\0' && strcmp(end, ":consistent") != 0 && p->consistent))
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--participation: '%s' is not a share in (0, 1], "
                         "alone or followed by :consistent or :inconsistent",
                         text);
    return DAFL_OK;
}

/* Cells at random, of the asked size; what is left over joins the first ones.
 * Not from the run's seed, which somebody may have chosen. */
static void draw_cells(plan *p)
{
    uint16_t order[DAFL_CLIENTS_MAX] = {0};
    size_t cells = p->n / p->set->cell_size;

    for (size_t i = 0; i < p->n; i++) {
        size_t j = randombytes_uniform((uint32_t)i + 1);
        order[i] = order[j];
        order[j] = (uint16_t)i;
    }
    for (size_t i = 0; i < p->n; i++)
        p->cell[order[i]] = (uint16_t)(i % cells);
}

/* What was not asked for: a cohort of one cell suffices, and more than half of
 * the clients have to enrol, as many as let one of them be absent. */
static void derive_policy(plan *p)
{
    const settings *set = p->set;
    dafl_policy *y = &p->policy;
    size_t two_more, half = p->n / 2 + 1, n_min;

    y->c = (uint16_t)set->colluders;
    y->g = (uint16_t)set->cell_size;
    two_more = set->colluders + 2;
    y->m = (uint16_t)(set->min_cohort != UNSET    ? set->min_cohort
                      : set->cell_size > two_more ? set->cell_size
                                                  : two_more);
    n_min = y->m > half ? y->m : half;
    while (n_min < p->n && dafl_threshold_absent(n_min, y->c) == 0)
        n_min++;
    y->n_min = (uint16_t)n_min;
    y->a = (uint16_t)dafl_threshold_absent(n_min, y->c);
}

static dafl_err make_plan(plan *p, dafl_why *why)
{
    const settings *set = p->set;
    const char *names[] = {set->method, set->activation, set->schedule,
                           set->secure_agg};

    if (set->out == NULL || set->features == UNSET || set->classes == UNSET ||
        set->cell_size == UNSET)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--out, --features, --classes and --cell-size are "
                         "needed");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!dafl_name_ok(names[i]))
            return dafl_fail(why, DAFL_ERR_INPUT, "'%.60s' is no name",
                             names[i]);
    DAFL_TRY(read_share(p, why));
    DAFL_TRY(read_parties(p, why));
    if (set->cell_size < 1 || set->cell_size > p->n)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--cell-size: choose 1 to %zu, the clients", p->n);
    if (set->colluders >= p->n)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--colluders: choose fewer than the %zu clients",
                         p->n);
    if (set->min_cohort != UNSET && set->min_cohort > p->n)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--min-cohort: choose at most %zu, the clients", p->n);
    draw_cells(p);
    derive_policy(p);
    randombytes_buf(p->seed.b, sizeof p->seed.b);
    return DAFL_OK;
}

/* ---- the text ---- */

/* As few digits as give the number again; with six there is no exponent where
 * none is understood. */
static void put_real(FILE *f, const char *before, double v, const char *after)
{
    char text[40];

    for (int digits = 6; digits <= 17; digits++) {
        (void)snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    (void)fprintf(f, "%s%s%s", before, text, after);
}

static void put_party(FILE *f, const dafl_identity *id, const char *rest)
{
    char line[DAFL_IDENTITY_LINE_MAX];

    dafl_identity_format(line, id);
    (void)fprintf(f, "  - key: \"%s\"\n    %s\n", line, rest);
}

static void put_roster(FILE *f, const plan *p)
{
    bool cells = p->policy.g != 1;

    (void)fprintf(f, "# A run of deepafl. Every party keeps a copy of this "
                     "file. Before they start, all\n# compare the two numbers "
                     "that 'deepafl config check FILE' shows, by telephone.\n"
                     "# Comments, the order of keys and white space do not "
                     "change them; all else does.\n\n");
    if (cells)
        (void)fprintf(f, "# Who takes part: 'key' is the line that 'deepafl "
                         "keygen' printed. Cells were drawn\n# at random by "
                         "'deepafl init'. Only sums over whole cells are ever "
                         "opened; sites\n# with the same data must stay in "
                         "their cell in later runs.\n");
    else
        (void)fprintf(f, "# Who takes part: 'key' is the line that 'deepafl "
                         "keygen' printed. There are no\n# cells (policy.g = "
                         "1): the server can single a client out.\n");
    (void)fprintf(f, "roster:\n");
    for (size_t i = 0; i < p->n; i++) {
        char rest[48] = "role: client";
        if (cells)
            (void)snprintf(rest, sizeof rest, "cell: %u", (unsigned)p->cell[i]);
        put_party(f, &p->clients[i], rest);
    }
    put_party(f, &p->server, "role: server");
    if (p->set->keyholder != NULL)
        put_party(f, &p->keyholder, "role: keyholder");
}

static void put_training(FILE *f, const plan *p)
{
    const settings *set = p->set;
    char seed[2 * DAFL_SEED_BYTES + 1];

    dafl_seed_format(seed, &p->seed);
    (void)fprintf(f,
                  "\ntraining:\n"
                  "  method: %s\n"
                  "  features: %zu        # columns of every site's features\n"
                  "  classes: %zu\n",
                  set->method, set->features, set->classes);
    if (strcmp(set->method, "afl") != 0)
        (void)fprintf(f,
                      "  width: %zu          # features per layer\n"
                      "  hidden: %zu         # random hidden features per "
                      "block\n"
                      "  layers: %zu             # residual blocks\n",
                      set->width, set->hidden, set->layers);
    (void)fprintf(f, "  activation: %s\n", set->activation);
    put_real(f, "  lambda: ", set->lambda, "  # penalty of the classifiers\n");
    put_real(f, "  gamma: ", set->gamma, "  # penalty of the blocks\n");
    (void)fprintf(f,
                  "  # Public, for projections and draws; drawn at random by "
                  "'deepafl init'.\n  seed: \"%s\"\n"
                  "  schedule: %s      # delta: Gram increments while the "
                  "cohort stays; or full\n",
                  seed, set->schedule);
    put_real(f, "  participation: ", p->share, "  # share of them in a sum\n");
    (void)fprintf(f,
                  "  participation_kind: %s  # one draw per layer, or "
                  "inconsistent: per sum\n"
                  "  by: %s\n",
                  p->consistent ? "consistent" : "inconsistent",
                  p->policy.g == 1 ? "clients" : "cells");
}

static void put_policy(FILE *f, const plan *p)
{
    const dafl_policy *y = &p->policy;

    (void)fprintf(
        f,
        "\n# none: the server sees every upload; masks: it sees sums; seal: "
        "and those only with\n# the key holder.\nsecure_agg: %s\n\n"
        "policy:\n"
        "  n_min: %u  # least clients enrolled\n"
        "  m: %u  # least clients in a sum\n"
        "  g: %u  # least clients in a cell\n"
        "  c: %u  # most clients that collude with the server\n"
        "  a: %u  # most clients absent, or not signing, at a time\n",
        p->set->secure_agg, (unsigned)y->n_min, (unsigned)y->m, (unsigned)y->g,
        (unsigned)y->c, (unsigned)y->a);
}

/* What is the same for most runs, written out so that another version with
 * other defaults reads the same run. */
static void put_rest(FILE *f, const plan *p)
{
    dafl_config c = dafl_config_default();
    bool afl = strcmp(p->set->method, "afl") == 0;

    (void)fprintf(f,
                  "\n# Operands are multiples of 2^-s within +-q, of at most "
                  "n_max rows over all sites.\ncontract:\n  s: %u\n  q: %u\n"
                  "  n_max: %llu\n",
                  c.contract.s, afl ? 16u : (unsigned)c.contract.q,
                  (unsigned long long)c.contract.n_max);
    put_real(f,
             "\n# Below this share of the cells a sum is given up, 'tries' "
             "times, for a fuller one.\nwant: ",
             c.want / 1000.0, "\n");
    (void)fprintf(f,
                  "tries: %u\nretries: %u  # failed attempts at one question "
                  "before the run ends\n\n# Seconds that the server waits.\n"
                  "timeouts:\n",
                  (unsigned)c.tries, (unsigned)c.retries);
    put_real(f, "  setup: ", c.wait[DAFL_WAIT_SETUP] / 1000.0, "\n");
    put_real(f, "  ready: ", c.wait[DAFL_WAIT_READY] / 1000.0, "\n");
    put_real(f, "  upload: ", c.wait[DAFL_WAIT_UPLOAD] / 1000.0, "\n");
    put_real(f, "  sign: ", c.wait[DAFL_WAIT_SIGN] / 1000.0, "\n");
    put_real(f, "  reveal: ", c.wait[DAFL_WAIT_REVEAL] / 1000.0, "\n");
    (void)fprintf(f,
                  "\n# Bytes of an upload in one message, and of the largest "
                  "message.\ncaps:\n  chunk: %u\n  body_max: %llu\n",
                  (unsigned)c.chunk, (unsigned long long)c.body_max);
}

static dafl_err make_text(const plan *p, char **text, size_t *len)
{
    FILE *f = open_memstream(text, len);
    bool whole;

    if (f == NULL)
        return DAFL_ERR_NOMEM;
    put_roster(f, p);
    put_training(f, p);
    put_policy(f, p);
    put_rest(f, p);
    whole = ferror(f) == 0;
    return fclose(f) == 0 && whole ? DAFL_OK : DAFL_ERR_NOMEM;
}

/* ---- the file ---- */

static dafl_err create(const char *path, const char *text, size_t len,
                       dafl_why *why)
{
    FILE *f = fopen(path, "wx");
    bool whole;

    if (f == NULL)
        return dafl_fail(why, DAFL_ERR_INPUT, "--out: %s: cannot create: %s",
                         path, strerror(errno));
    whole = fwrite(text, 1, len, f) == len && fflush(f) == 0 &&
            fsync(fileno(f)) == 0;
    if (fclose(f) == 0 && whole) {
        dafl_file_sync_parent(path);
        return DAFL_OK;
    }
    (void)unlink(path);
    return dafl_fail(why, DAFL_ERR_SYS, "--out: %s: cannot write", path);
}

static dafl_err print_run(const settings *set, const runfile *run,
                          dafl_why *why)
{
    char roster[RUNFILE_DIGEST_TEXT], config[RUNFILE_DIGEST_TEXT];

    if (set->json) {
        sodium_bin2hex(roster, sizeof roster, run->roster_digest.b,
                       DAFL_HASH_BYTES);
        sodium_bin2hex(config, sizeof config, run->config_digest.b,
                       DAFL_HASH_BYTES);
        return cli_printed(cli_print_json(json_pack(
                               "{s:s, s:I, s:I, s:s, s:s}", "file", set->out,
                               "clients", (json_int_t)run->roster.n_clients,
                               "cells", (json_int_t)run->roster.n_cells,
                               "roster", roster, "config", config)),
                           why);
    }
    runfile_digest_text(roster, &run->roster_digest);
    runfile_digest_text(config, &run->config_digest);
    printf("%s: %u clients", set->out, (unsigned)run->roster.n_clients);
    if (run->config.policy.g != 1)
        printf(" in %u cell%s drawn at random", (unsigned)run->roster.n_cells,
               run->roster.n_cells == 1 ? "" : "s");
    printf("\n\nroster  %s\nconfig  %s\n\nSend the file to every party. Each "
           "runs 'deepafl config check' on its copy and\ncompares both numbers "
           "with you by telephone.\n",
           roster, config);
    return DAFL_OK;
}

static dafl_err init(const settings *set, plan *p, dafl_why *why)
{
    char *text = NULL;
    size_t len = 0;
    runfile *run = NULL;
    json_t *shown = NULL;
    dafl_err err;

    p->set = set;
    DAFL_TRY(make_plan(p, why));
    shown = json_string(set->out);
    json_decref(shown);
    if (set->json && shown == NULL)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--out: --json can only show a path in UTF-8");
    err = make_text(p, &text, &len);
    if (err == DAFL_OK)
        err = runfile_read(&run, (dafl_bytes){(const uint8_t *)text, len}, NULL,
                           why);
    if (err == DAFL_OK)
        err = create(set->out, text, len, why);
    if (err == DAFL_OK)
        err = print_run(set, run, why);
    runfile_free(&run);
    free(text);
    return err;
}

int cmd_init(int argc, char **argv)
{
    settings s = {.cell_size = UNSET,
                  .colluders = 1,
                  .min_cohort = UNSET,
                  .secure_agg = "masks",
                  .features = UNSET,
                  .classes = UNSET,
                  .width = 1024,
                  .hidden = 1024,
                  .layers = 5,
                  .method = "deepafl",
                  .activation = "gelu",
                  .schedule = "delta",
                  .participation = "1",
                  .lambda = 1.0,
                  .gamma = 0.01};
    const opt opts[] = {
        {OPT_HEADING, NULL, NULL, NULL, "Parties"},
        {OPT_TEXT, "server", "LINE|FILE", &s.server,
         "the server's public line, or a file with it"},
        {OPT_LIST, "client", "LINE|FILE", &s.clients,
         "one client's, once for each"},
        {OPT_TEXT, "clients-from", "FILE", &s.clients_from,
         "more clients, one public line each"},
        {OPT_TEXT, "keyholder", "LINE|FILE", &s.keyholder,
         "whoever opens sums in the mode seal: not the server's operator"},
        {OPT_HEADING, NULL, NULL, NULL, "Secure aggregation"},
        {OPT_SIZE, "cell-size", "G", &s.cell_size,
         "least clients per cell, colluders + 2 or more: sums are over\n"
         "whole cells (1: no cells, any cohort)"},
        {OPT_SIZE, "colluders", "C", &s.colluders,
         "clients that may collude with the server (default 1)"},
        {OPT_SIZE, "min-cohort", "M", &s.min_cohort,
         "least clients in a sum (default: the cell size, at least\n"
         "colluders + 2)"},
        {OPT_TEXT, "secure-agg", "HOW", &s.secure_agg,
         "masks (default), seal (encrypted on top) or none"},
        {OPT_HEADING, NULL, NULL, NULL, "Learner"},
        {OPT_SIZE, "features", "D0", &s.features,
         "columns of every site's features"},
        {OPT_SIZE, "classes", "C", &s.classes, "number of classes"},
        {OPT_TEXT, "method", "NAME", &s.method, "deepafl (default) or afl"},
        {OPT_SIZE, "layers", "T", &s.layers, "residual blocks (default 5)"},
        {OPT_SIZE, "width", "D", &s.width, "features per layer (default 1024)"},
        {OPT_SIZE, "hidden", "DF", &s.hidden,
         "random hidden features per block (default 1024)"},
        {OPT_TEXT, "activation", "NAME", &s.activation, "default gelu"},
        {OPT_REAL, "lambda", "L", &s.lambda,
         "ridge penalty of the classifiers (default 1)"},
        {OPT_REAL, "gamma", "G", &s.gamma,
         "ridge penalty of the blocks (default 0.01)"},
        {OPT_TEXT, "schedule", "NAME", &s.schedule,
         "delta (default) or full: Gram matrices every layer"},
        {OPT_TEXT, "participation", "ETA", &s.participation,
         "share of the cells in each sum (default 1), followed by\n"
         ":consistent (one draw per layer, default) or :inconsistent"},
        {OPT_HEADING, NULL, NULL, NULL, "Output"},
        {OPT_TEXT, "out", "RUN.yaml", &s.out,
         "the file to write, never over an existing one"},
        {OPT_FLAG, "json", NULL, &s.json, "one JSON object on stdout"},
    };
    dafl_why why = {{0}};
    plan *p;
    dafl_err err;
    int code = cli_parse(
        "init",
        "--server LINE --client LINE.. --cell-size G --features D0 "
        "--classes C --out RUN.yaml",
        "Write the file that describes a run. Cells and the public seed are "
        "drawn at random;\nthe rest of the policy follows from the options. "
        "Everything can be edited later.",
        opts, sizeof opts / sizeof opts[0], argc, argv, NULL, 0);

    if (code >= 0)
        return code;
    p = calloc(1, sizeof *p);
    err = p == NULL ? DAFL_ERR_NOMEM : init(&s, p, &why);
    free(p);
    return err == DAFL_OK ? 0 : cli_fail("init", err, &why);
}
