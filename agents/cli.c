/* SPDX-License-Identifier: Apache-2.0 */
#include "agents/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "lib/blas.h"
#include "lib/file.h"

int cli_fail(const char *word, dafl_err err, const dafl_why *why)
{
    const char *reason = why->text[0] != '\0' ? why->text : dafl_err_name(err);

    (void)fprintf(stderr, "deepafl %s: %s\n", word, reason);
    return err == DAFL_ERR_INPUT ? EXIT_INPUT : EXIT_FAILED;
}

int cli_parse_words(const char *word, const char *usage, const char *about,
                    const opt *opts, size_t n, int argc, char **argv,
                    const char **words, size_t least, size_t most,
                    size_t *n_words)
{
    dafl_why why = {{0}};
    int help = 0;
    dafl_err err =
        opt_parse(opts, n, argc, argv, words, most, n_words, &help, &why);

    if (err == DAFL_OK && help) {
        printf("Usage: deepafl %s %s\n\n%s\n", word, usage, about);
        opt_print_help(opts, n);
        return 0;
    }
    if (err == DAFL_OK && *n_words < least)
        err = dafl_fail(&why, DAFL_ERR_INPUT, "usage: deepafl %s %s", word,
                        usage);
    if (err == DAFL_OK)
        return -1;
    (void)cli_fail(word, err, &why);
    (void)fprintf(stderr, "Try 'deepafl %s --help'.\n", word);
    return EXIT_INPUT;
}

int cli_parse(const char *word, const char *usage, const char *about,
              const opt *opts, size_t n, int argc, char **argv,
              const char **words, size_t n_words)
{
    size_t found = 0;

    return cli_parse_words(word, usage, about, opts, n, argc, argv, words,
                           n_words, n_words, &found);
}

dafl_err cli_check_output(const char *option, const char *path,
                          const char *const *inputs, size_t n, dafl_why *why)
{
    for (size_t i = 0; i < n; i++)
        if (inputs[i] != NULL && dafl_file_same(path, inputs[i]))
            return dafl_fail(why, DAFL_ERR_INPUT,
                             "--%s: %s is also read; choose another file to "
                             "write",
                             option, path);
    return dafl_file_check_writable(path, why);
}

double cli_now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double cli_peak_mb(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024 / 1e6;
}

void cli_bytes(char *text, double bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    size_t u = 0;

    while (bytes >= 1000 && u < 4) {
        bytes /= 1000;
        u++;
    }
    (void)snprintf(text, 32, u == 0 ? "%.0f %s" : "%.1f %s", bytes, units[u]);
}

void cli_use_fast_blas(char **argv)
{
    const char *core = dafl_blas_better_core();

    if (core != NULL && setenv("OPENBLAS_CORETYPE", core, 1) == 0)
        (void)execv("/proc/self/exe", argv);
}

void cli_check_rows(void)
{
    if (!dafl_blas_rows_are_stable())
        (void)fprintf(stderr,
                      "deepafl: warning: on this CPU the BLAS gives a row "
                      "other bits in another batch; models may differ in the "
                      "last digits between partitions of the data\n");
}

json_t *cli_params_json(const dafl_params *p)
{
    char seed[2 * DAFL_SEED_BYTES + 1];

    dafl_seed_format(seed, &p->seed);
    return json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:s, s:f, s:f, s:s, s:s, s:s, s:s, "
        "s:I, s:I, s:I, s:I}",
        "method", dafl_method_name(p->method), "features",
        (json_int_t)p->features, "width", (json_int_t)p->width, "hidden",
        (json_int_t)p->hidden, "classes", (json_int_t)p->classes, "layers",
        (json_int_t)p->layers, "activation",
        dafl_activation_name(p->activation), "lambda", p->lambda, "gamma",
        p->gamma, "seed", seed, "schedule", dafl_schedule_name(p->schedule),
        "ablate", dafl_ablation_name(p->ablate), "projections",
        p->own_projections ? "stored" : "seed", "grid_bits",
        (json_int_t)p->contract.s, "magnitude", (json_int_t)p->contract.q,
        "rows_max", (json_int_t)p->contract.n_max, "ring_bits",
        (json_int_t)p->contract.w);
}

bool cli_print_json(json_t *object)
{
    bool ok = object != NULL &&
              json_dumpf(object, stdout, JSON_INDENT(1)) == 0 &&
              printf("\n") > 0 && fflush(stdout) == 0;

    json_decref(object);
    return ok;
}

dafl_err cli_printed(bool printed, dafl_why *why)
{
    return printed ? DAFL_OK
                   : dafl_fail(why, DAFL_ERR_SYS,
                               "cannot write to standard output");
}

void cli_progress_start(cli_progress *p, bool quiet)
{
    *p = (cli_progress){.quiet = quiet,
                        .terminal = isatty(STDERR_FILENO) == 1,
                        .start = cli_now()};
    p->last = p->start;
}

void cli_fit_terminal(char *line)
{
    struct winsize size = {0};
    size_t most = 79, at;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1)
        most = size.ws_col - 1U;
    if (strlen(line) <= most)
        return;
    for (at = most; at > 0 && line[at] != ',';)
        at--;
    line[at > 0 ? at : most] = '\0';
}

void cli_progress_step(cli_progress *p, size_t done, size_t all,
                       const char *what)
{
    char bar[31], line[256];
    double now = cli_now(), left;

    /* A terminal is redrawn at most ten times a second, a log gets a line
     * every ten seconds. */
    if (p->quiet || now - p->last < (p->terminal ? 0.1 : 10.0))
        return;
    p->last = now;
    left =
        done == 0 ? 0 : (now - p->start) * (double)(all - done) / (double)done;
    if (!p->terminal) {
        (void)fprintf(stderr, "%zu of %zu: %s, about %.0f s left\n", done, all,
                      what, left);
        return;
    }
    memset(bar, '.', sizeof bar - 1);
    memset(bar, '#', all == 0 ? 0 : (sizeof bar - 1) * done / all);
    bar[sizeof bar - 1] = '\0';
    (void)snprintf(line, sizeof line, "[%s] about %.0f s left, %s", bar, left,
                   what);
    cli_fit_terminal(line);
    (void)fprintf(stderr, "\r%s\033[K", line);
}

void cli_progress_clear(cli_progress *p)
{
    if (!p->quiet && p->terminal)
        (void)fprintf(stderr, "\r\033[K");
}
