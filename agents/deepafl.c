/* SPDX-License-Identifier: Apache-2.0 */
/* deepafl: the toolbox. */
#include <stdio.h>
#include <string.h>

#include "agents/cli.h"
#include "lib/version.h"

typedef struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} command;

static const command commands[] = {
    {"keygen", cmd_keygen, "make the keys of a party"},
    {"init", cmd_init, "write a run.yaml from the parties' public lines"},
    {"config", cmd_config, "check a run.yaml and explain it"},
    {"simulate", cmd_simulate, "train over many clients inside one process"},
    {"evaluate", cmd_evaluate, "measure a model's accuracy, layer by layer"},
    {"predict", cmd_predict, "classify rows with a model"},
    {"inspect", cmd_inspect, "show what a model file holds"},
    {"audit", cmd_audit, "judge the audit logs of a run"},
};

#define N_COMMANDS (sizeof commands / sizeof commands[0])

static void print_usage(FILE *out)
{
    (void)fprintf(out,
                  "Usage: deepafl COMMAND [options]\n\n"
                  "Deep analytic federated learning: closed-form training from "
                  "sums of matrices.\n\nCommands\n");
    for (size_t i = 0; i < N_COMMANDS; i++)
        (void)fprintf(out, "  %-12s%s\n", commands[i].name, commands[i].help);
    (void)fprintf(out,
                  "\n'deepafl COMMAND --help' explains a command; "
                  "'deepafl --version' says which this is.\n"
                  "Exit codes: 0 done, 1 failed, 2 an option or file must be "
                  "corrected.\n");
}

/* What was printed but could not be written is a failure. */
static int check_output(int code)
{
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return code;
    if (code == 0)
        (void)fprintf(stderr, "deepafl: cannot write to standard output\n");
    return code == 0 ? EXIT_FAILED : code;
}

int main(int argc, char **argv)
{
    cli_use_fast_blas(argv);
    if (argc < 2) {
        print_usage(stderr);
        return EXIT_INPUT;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_usage(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("deepafl %s\n", DAFL_VERSION);
        return 0;
    }
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return check_output(commands[i].run(argc - 1, argv + 1));
    (void)fprintf(stderr,
                  "deepafl: unknown command '%.64s'\n"
                  "Try 'deepafl --help'.\n",
                  argv[1]);
    return EXIT_INPUT;
}
