/* SPDX-License-Identifier: Apache-2.0 */
/* A run file as texts, before anybody knows what they mean (agents/runfile.c),
 * how one is refused, and what it means alone (agents/runfile_value.c). What
 * they mean together is judged in agents/runfile_judge.c. */
#ifndef DAFL_AGENTS_RUNFILE_RAW_H
#define DAFL_AGENTS_RUNFILE_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/bytes.h"
#include "lib/err.h"

/* Every value as it stands in the file; NULL where there is none. */
typedef struct {
    char *key, *role, *cell;
} raw_party;

typedef struct {
    char *method, *features, *width, *hidden, *classes, *layers, *activation;
    char *lambda, *gamma, *seed, *schedule;
    char *participation, *participation_kind, *by;
} raw_training;

typedef struct {
    char *s, *q, *n_max, *w;
} raw_contract;

typedef struct {
    char *n_min, *m, *g, *c, *a;
} raw_policy;

typedef struct {
    char *setup, *ready, *upload, *sign, *reveal;
} raw_timeouts;

typedef struct {
    char *chunk, *body_max;
} raw_caps;

typedef struct {
    raw_party *roster;
    uint32_t n_roster;
    raw_training training;
    raw_contract contract;
    raw_policy policy;
    raw_timeouts timeouts;
    raw_caps caps;
    char *secure_agg, *want, *tries, *retries, *slots;
} raw_run;

/* What is read, what reasons call it (NULL: nothing), and where they go. */
typedef struct {
    dafl_bytes text;
    const char *name;
    dafl_why *why;
} raw_source;

DAFL_CHECK dafl_err raw_read(raw_run **out, const raw_source *src);
void raw_drop(raw_run **raw);

/* "FILE, line 7: PATH is 'VALUE': ..", or "FILE: PATH is missing: .." for the
 * value NULL. A value must be one of raw_read from the same source: its line is
 * looked for. Both return DAFL_ERR_INPUT. */
dafl_err raw_refuse(const raw_source *src, const char *path, const char *value,
                    const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* "FILE: ..": a rule that lies between several fields. */
dafl_err raw_refuse_rule(const raw_source *src, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Decimal digits without a leading zero, which would be octal elsewhere. */
bool raw_whole(const char *text, uint64_t *out);

typedef enum {
    RAW_WHOLE,
    RAW_THOUSANDTHS, /* of a share, of a second: times 1000 */
} raw_kind;

/* A field that holds a number, and where the number goes; a missing one stays
 * as it is there unless it is needed. */
typedef struct {
    const char *path, *text;
    raw_kind kind;
    bool needed;
    uint64_t least, most;
    void *out;
    size_t size;
} raw_number;

#define RAW_NUMBER(path, text, kind, needed, least, most, out)     \
    {                                                              \
        path, text, kind, needed, least, most, &(out), sizeof(out) \
    }

DAFL_CHECK dafl_err raw_take_number(const raw_source *src, const raw_number *n);
DAFL_CHECK dafl_err raw_take_numbers(const raw_source *src,
                                     const raw_number *list, size_t n);
/* A finite number, zero or more; one of names[0..n). *out stays when there is
 * no text. */
DAFL_CHECK dafl_err raw_take_penalty(const raw_source *src, const char *path,
                                     const char *text, double *out);
DAFL_CHECK dafl_err raw_take_choice(const raw_source *src, const char *path,
                                    const char *text, const char *const *names,
                                    size_t n, unsigned *out);

#endif
