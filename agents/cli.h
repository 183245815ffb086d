/* SPDX-License-Identifier: Apache-2.0 */
/* What the subcommands of `deepafl` share. */
#ifndef DAFL_AGENTS_CLI_H
#define DAFL_AGENTS_CLI_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "agents/opt.h"
#include "lib/err.h"
#include "lib/params.h"

/* Exit codes. */
enum {
    EXIT_FAILED = 1, /* the work itself failed */
    EXIT_INPUT = 2,  /* an option or file must be corrected */
};

/* Print "deepafl WORD: reason" on stderr and return the exit code. */
int cli_fail(const char *word, dafl_err err, const dafl_why *why);

/* Parse, or print the help: returns -1 to go on, else the exit code. Exactly
 * n_words words are wanted. */
int cli_parse(const char *word, const char *usage, const char *about,
              const opt *opts, size_t n, int argc, char **argv,
              const char **words, size_t n_words);

/* The same for `least` to `most` words, which are counted in *n_words. */
int cli_parse_words(const char *word, const char *usage, const char *about,
                    const opt *opts, size_t n, int argc, char **argv,
                    const char **words, size_t least, size_t most,
                    size_t *n_words);

/* Whether `path` can be written at the end of the work: see lib/file.h, and it
 * is none of the inputs (NULLs are passed over). `option` names it. */
DAFL_CHECK dafl_err cli_check_output(const char *option, const char *path,
                                     const char *const *inputs, size_t n,
                                     dafl_why *why);

/* Seconds on a clock that only moves forward. */
double cli_now(void);
/* The most memory this process has held, in MB (10^6 bytes). */
double cli_peak_mb(void);

/* "1.2 MB" for people; text: 32 bytes. */
void cli_bytes(char *text, double bytes);

/* At the start of main: if OpenBLAS has not recognised this CPU, start the
 * program anew with the kernels that fit it (returns when there is no need or
 * no way). */
void cli_use_fast_blas(char **argv);

/* Warn, once, when the BLAS at hand breaks the bit-identity of models. */
void cli_check_rows(void);

/* The run's parameters as a JSON object. */
json_t *cli_params_json(const dafl_params *p);
/* Print and release; false when stdout cannot be written. */
bool cli_print_json(json_t *object);
/* DAFL_OK if `printed`; else DAFL_ERR_SYS, which is about stdout. */
DAFL_CHECK dafl_err cli_printed(bool printed, dafl_why *why);

/* A bar on a terminal, a line every few seconds otherwise; on stderr. */
typedef struct {
    bool quiet, terminal;
    double start, last;
} cli_progress;

/* Cut a status line to the width of the terminal: one that is too long goes on
 * in the next line, which stays on the screen. Whole items if possible: half a
 * number is another one. */
void cli_fit_terminal(char *line);
void cli_progress_start(cli_progress *p, bool quiet);
void cli_progress_step(cli_progress *p, size_t done, size_t all,
                       const char *what);
/* Wipe the bar. */
void cli_progress_clear(cli_progress *p);

int cmd_keygen(int argc, char **argv);
int cmd_init(int argc, char **argv);
int cmd_config(int argc, char **argv);
int cmd_simulate(int argc, char **argv);
int cmd_evaluate(int argc, char **argv);
int cmd_predict(int argc, char **argv);
int cmd_inspect(int argc, char **argv);
int cmd_audit(int argc, char **argv);

#endif
