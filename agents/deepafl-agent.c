/* SPDX-License-Identifier: Apache-2.0 */
/* One party of a run on its own machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/cli.h"
#include "agents/role.h"
#include "lib/version.h"

static const char about[] =
    "Usage: deepafl-agent --role server --listen tcp://ADDRESS:PORT --config "
    "RUN.yaml\n"
    "         --key SERVER.key --secure-agg --state DIR --model "
    "OUT.safetensors\n"
    "       deepafl-agent --role client --connect tcp://HOST:PORT --config "
    "RUN.yaml\n"
    "         --key SITE.key --secure-agg --state DIR --features X.npy "
    "--labels y.npy\n"
    "       deepafl-agent --role keyholder --connect tcp://HOST:PORT --config "
    "RUN.yaml\n"
    "         --key HOLDER.key --state DIR\n\n"
    "One party of a federated training: the server, a client with its rows, or "
    "the key\nholder without whom nothing is opened.\n";
static const char exit_codes[] =
    "\nExit codes: 0 done, 1 failed, 2 an option or file must be corrected,\n"
    "3 the state or the disk, 4 stopped (start again to go on).\n";

int role_fail(desk *d, dafl_err err, const dafl_why *why)
{
    bool disk = err == DAFL_ERR_SYS && d->at_disk;
    bool lost = strstr(why->text, "E_STATE_LOST") != NULL;

    watch_clear(&d->watch);
    (void)fprintf(stderr, "deepafl-agent: %s\n",
                  why->text[0] != '\0' ? why->text : dafl_err_name(err));
    if (disk)
        (void)fprintf(stderr, "deepafl-agent: nothing more was sent; mend that "
                              "and start again\n");
    return disk || lost            ? EXIT_STATE
           : err == DAFL_ERR_INPUT ? EXIT_INPUT
                                   : EXIT_FAILED;
}

/* "--secure-agg" alone means masks. */
static void complete_mode(int argc, char **argv)
{
    static char masks[] = "--secure-agg=masks";

    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--secure-agg") == 0 &&
            (i + 1 == argc || strncmp(argv[i + 1], "--", 2) == 0))
            argv[i] = masks;
}

static int refuse(const dafl_why *why)
{
    (void)fprintf(stderr, "deepafl-agent: %s\nTry 'deepafl-agent --help'.\n",
                  why->text);
    return EXIT_INPUT;
}

static dafl_err need(const char *role, const char *option, const char *value,
                     bool wanted, dafl_why *why)
{
    if (wanted && value == NULL)
        return dafl_fail(why, DAFL_ERR_INPUT, "--role %s needs --%s", role,
                         option);
    if (!wanted && value != NULL)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--%s has no meaning with --role "
                         "%s",
                         option, role);
    return DAFL_OK;
}

static dafl_err check_sizes(const role_options *o, dafl_why *why)
{
    if (o->min_cohort > UINT16_MAX || o->min_cell > UINT16_MAX)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--min-cohort and --min-cell are at most 65535");
    if (o->threads > 256)
        return dafl_fail(why, DAFL_ERR_INPUT, "--threads: %zu is more than 256",
                         o->threads);
    return DAFL_OK;
}

static dafl_err find_role(dafl_role *out, const char *text, dafl_why *why)
{
    static const char *const names[] = {"client", "server", "keyholder"};

    for (unsigned i = 0; text != NULL && i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            *out = (dafl_role)i;
            return DAFL_OK;
        }
    return dafl_fail(why, DAFL_ERR_INPUT,
                     "--role is to be server, client or keyholder");
}

static dafl_err check(dafl_role *out, const char *role, const role_options *o,
                      const char *listen, const char *connect, dafl_why *why)
{
    bool server, client;

    DAFL_TRY(find_role(out, role, why));
    server = *out == DAFL_ROLE_SERVER;
    client = *out == DAFL_ROLE_CLIENT;
    DAFL_TRY(need(role, "config", o->desk.config, true, why));
    DAFL_TRY(need(role, "key", o->desk.key, true, why));
    DAFL_TRY(need(role, "state", o->desk.state, true, why));
    DAFL_TRY(need(role, "listen", listen, server, why));
    DAFL_TRY(need(role, "model", o->model, server, why));
    DAFL_TRY(need(role, "connect", connect, !server, why));
    DAFL_TRY(need(role, "features", o->features, client, why));
    DAFL_TRY(need(role, "labels", o->labels, client, why));
    if ((o->test_features == NULL) != (o->test_labels == NULL))
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--test-features and --test-labels go together");
    if (server && (o->min_cohort > 0 || o->min_cell > 0 || o->allow_any_cohort))
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "floors and what is allowed belong to --role client "
                         "and --role keyholder");
    if (!server && o->json)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--json has no meaning with --role %s: events are "
                         "lines of JSON when standard error is not a terminal",
                         role);
    if (!client && (o->test_features != NULL || o->allow_plaintext))
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "test rows and --allow-plaintext belong to --role "
                         "client");
    return check_sizes(o, why);
}

int main(int argc, char **argv)
{
    role_options o = {.threads = 0};
    static int (*const roles[])(const role_options *) = {
        [DAFL_ROLE_CLIENT] = role_client,
        [DAFL_ROLE_SERVER] = role_server,
        [DAFL_ROLE_KEYHOLDER] = role_keyholder};
    const char *role = NULL, *listen = NULL, *connect = NULL;
    dafl_role which;
    const opt opts[] = {
        {OPT_HEADING, NULL, NULL, NULL, "Options"},
        {OPT_TEXT, "role", "ROLE", &role, "server, client or keyholder"},
        {OPT_TEXT, "config", "FILE", &o.desk.config,
         "the run: run.yaml, the same at every party"},
        {OPT_TEXT, "key", "FILE", &o.desk.key,
         "this party's key, from 'deepafl keygen'"},
        {OPT_TEXT, "state", "DIR", &o.desk.state,
         "what must survive a crash; made if it is not there"},
        {OPT_TEXT, "audit", "FILE", &o.desk.audit,
         "the audit log (default: audit.log in the state directory)"},
        {OPT_TEXT, "secure-agg", "MODE", &o.desk.secure_agg,
         "masks or seal; must be what the config says"},
        {OPT_TEXT, "metrics", "[ADDRESS:]PORT", &o.desk.metrics,
         "serve Prometheus metrics over HTTP (address: 127.0.0.1)"},
        {OPT_SIZE, "threads", "N", &o.threads, "default: all cores"},
        {OPT_FLAG, "allow-small", NULL, &o.allow_small,
         "go on with few rows or rare classes (experiments)"},
        {OPT_FLAG, "verbose", NULL, &o.desk.verbose, "show every step"},
        {OPT_FLAG, "quiet", NULL, &o.desk.quiet, "show nothing but errors"},
        {OPT_HEADING, NULL, NULL, NULL, "Server"},
        {OPT_TEXT, "listen", "ENDPOINT", &listen,
         "tcp://ADDRESS:PORT, in numbers; * for all addresses"},
        {OPT_TEXT, "model", "FILE", &o.model, "where the model goes"},
        {OPT_FLAG, "json", NULL, &o.json, "the report as JSON"},
        {OPT_HEADING, NULL, NULL, NULL, "Client and key holder"},
        {OPT_TEXT, "connect", "ENDPOINT", &connect, "tcp://HOST:PORT"},
        {OPT_SIZE, "min-cohort", "N", &o.min_cohort,
         "take part only when sums are over at least N clients"},
        {OPT_SIZE, "min-cell", "N", &o.min_cell,
         "take part only in cells of at least N clients"},
        {OPT_FLAG, "allow-any-cohort", NULL, &o.allow_any_cohort,
         "accept g = 1: the server may single clients out"},
        {OPT_HEADING, NULL, NULL, NULL, "Client"},
        {OPT_TEXT, "features", "FILE", &o.features, "rows to train on, .npy"},
        {OPT_TEXT, "labels", "FILE", &o.labels, "their classes, .npy"},
        {OPT_TEXT, "test-features", "FILE", &o.test_features,
         "held-out rows: only correct answers are counted"},
        {OPT_TEXT, "test-labels", "FILE", &o.test_labels, "their classes"},
        {OPT_FLAG, "allow-plaintext", NULL, &o.allow_plaintext,
         "accept secure_agg: none: the server sees what is sent"},
    };
    const size_t n = sizeof opts / sizeof opts[0];
    dafl_why why = {{0}};
    size_t n_words;
    int help = 0;

    cli_use_fast_blas(argv);
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("deepafl-agent %s\n", DAFL_VERSION);
        return 0;
    }
    complete_mode(argc, argv);
    if (opt_parse(opts, n, argc, argv, NULL, 0, &n_words, &help, &why) !=
        DAFL_OK)
        return refuse(&why);
    if (help) {
        printf("%s", about);
        opt_print_help(opts, n);
        printf("%s", exit_codes);
        return 0;
    }
    if (check(&which, role, &o, listen, connect, &why) != DAFL_OK)
        return refuse(&why);
    if (which == DAFL_ROLE_KEYHOLDER && o.desk.secure_agg == NULL)
        o.desk.secure_agg = "seal"; /* what else? */
    cli_check_rows();
    o.endpoint = listen != NULL ? listen : connect;
    return roles[which](&o);
}
