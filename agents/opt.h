/* SPDX-License-Identifier: Apache-2.0 */
/* Command-line options from one table, which is also the help text. */
#ifndef DAFL_AGENTS_OPT_H
#define DAFL_AGENTS_OPT_H

#include <stddef.h>

#include "lib/err.h"

typedef enum {
    OPT_HEADING, /* `help` stands alone on a line */
    OPT_FLAG,    /* bool *: true when given */
    OPT_TEXT,    /* const char ** */
    OPT_SIZE,    /* size_t *: a decimal number */
    OPT_REAL,    /* double *: a finite number */
    OPT_LIST,    /* opt_list *: texts; may be given again and again */
} opt_kind;

#define OPT_LIST_MAX 256

/* Texts in the order they were given. */
typedef struct {
    size_t n;
    const char *at[OPT_LIST_MAX];
} opt_list;

typedef struct {
    opt_kind kind;
    const char *name;    /* without the dashes */
    const char *operand; /* for the help: "FILE", "N" */
    void *out;
    const char *help; /* lines separated by \n */
} opt;

/* Parse argv[1..argc): --name VALUE or --name=VALUE; words without dashes go
 * to words[0..max) and are counted in *n_words. An option given twice is an
 * error, unless it is a list. *help is set by --help. DAFL_ERR_INPUT with the
 * reason. */
DAFL_CHECK dafl_err opt_parse(const opt *opts, size_t n, int argc, char **argv,
                              const char **words, size_t max, size_t *n_words,
                              int *help, dafl_why *why);

/* The table as aligned text on stdout. */
void opt_print_help(const opt *opts, size_t n);

#endif
