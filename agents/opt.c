/* SPDX-License-Identifier: Apache-2.0 */
#include "agents/opt.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OPTS 64
#define HELP_COLUMN 30

static const opt *find(const opt *opts, size_t n, const char *name, size_t len)
{
    for (size_t i = 0; i < n; i++)
        if (opts[i].kind != OPT_HEADING && strlen(opts[i].name) == len &&
            strncmp(opts[i].name, name, len) == 0)
            return &opts[i];
    return NULL;
}

static dafl_err set_size(const opt *o, const char *value, dafl_why *why)
{
    char *end = NULL;
    unsigned long long v;

    errno = 0;
    v = strtoull(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 ||
        v > SIZE_MAX)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--%s: '%s' is not a whole number", o->name, value);
    *(size_t *)o->out = (size_t)v;
    return DAFL_OK;
}

static dafl_err set_real(const opt *o, const char *value, dafl_why *why)
{
    char *end = NULL;
    double v = strtod(value, &end);

    if (end == value || *end != '\0' || !isfinite(v))
        return dafl_fail(why, DAFL_ERR_INPUT, "--%s: '%s' is not a number",
                         o->name, value);
    *(double *)o->out = v;
    return DAFL_OK;
}

static dafl_err add(const opt *o, const char *value, dafl_why *why)
{
    opt_list *list = o->out;

    if (list->n == OPT_LIST_MAX)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--%s is given more than %d times", o->name,
                         OPT_LIST_MAX);
    list->at[list->n++] = value;
    return DAFL_OK;
}

static dafl_err set(const opt *o, const char *value, dafl_why *why)
{
    switch (o->kind) {
    case OPT_TEXT:
        *(const char **)o->out = value;
        return DAFL_OK;
    case OPT_SIZE:
        return set_size(o, value, why);
    case OPT_REAL:
        return set_real(o, value, why);
    case OPT_LIST:
        return add(o, value, why);
    case OPT_FLAG:
    case OPT_HEADING:
        break;
    }
    return DAFL_ERR_ARG;
}

/* One argument that begins with two dashes; *i moves past its value. */
static dafl_err parse_option(const opt *opts, size_t n, int argc, char **argv,
                             int *i, bool *seen, dafl_why *why)
{
    const char *name = argv[*i] + 2, *equals = strchr(name, '=');
    size_t len = equals == NULL ? strlen(name) : (size_t)(equals - name);
    const opt *o = find(opts, n, name, len);

    if (o == NULL)
        return dafl_fail(why, DAFL_ERR_INPUT, "unknown option --%.*s",
                         (int)(len < 64 ? len : 64), name);
    if (seen[o - opts] && o->kind != OPT_LIST)
        return dafl_fail(why, DAFL_ERR_INPUT, "--%s is given twice", o->name);
    seen[o - opts] = true;
    if (o->kind == OPT_FLAG) {
        if (equals != NULL)
            return dafl_fail(why, DAFL_ERR_INPUT, "--%s takes no value",
                             o->name);
        *(bool *)o->out = true;
        return DAFL_OK;
    }
    if (equals != NULL)
        return set(o, equals + 1, why);
    if (*i + 1 >= argc)
        return dafl_fail(why, DAFL_ERR_INPUT, "--%s needs a value: %s", o->name,
                         o->operand);
    (*i)++;
    return set(o, argv[*i], why);
}

dafl_err opt_parse(const opt *opts, size_t n, int argc, char **argv,
                   const char **words, size_t max, size_t *n_words, int *help,
                   dafl_why *why)
{
    bool seen[MAX_OPTS] = {false};

    *n_words = 0;
    *help = 0;
    if (n > MAX_OPTS)
        return DAFL_ERR_ARG;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            *help = 1;
            return DAFL_OK;
        }
        if (strncmp(argv[i], "--", 2) == 0)
            DAFL_TRY(parse_option(opts, n, argc, argv, &i, seen, why));
        else if (argv[i][0] == '-' && argv[i][1] != '\0')
            return dafl_fail(why, DAFL_ERR_INPUT, "unknown option %s", argv[i]);
        else if (*n_words == max)
            return dafl_fail(why, DAFL_ERR_INPUT,
                             "'%s' is one argument too many", argv[i]);
        else
            words[(*n_words)++] = argv[i];
    }
    return DAFL_OK;
}

void opt_print_help(const opt *opts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *line = opts[i].help;
        int column;
        if (opts[i].kind == OPT_HEADING) {
            printf("\n%s\n", line);
            continue;
        }
        column = printf("  --%s%s%s", opts[i].name,
                        opts[i].operand == NULL ? "" : " ",
                        opts[i].operand == NULL ? "" : opts[i].operand);
        if (column >= HELP_COLUMN) {
            printf("\n");
            column = 0;
        }
        while (line != NULL) {
            const char *end = strchr(line, '\n');
            int len = end == NULL ? (int)strlen(line) : (int)(end - line);
            printf("%*s%.*s\n", HELP_COLUMN - column, "", len, line);
            column = 0;
            line = end == NULL ? NULL : end + 1;
        }
    }
}
