/* SPDX-License-Identifier: Apache-2.0 */
/* Run files for tests: every field with values that are allowed and values that
 * are not, and a draft that writes one file with what a test wants changed. */
#ifndef DAFL_TESTS_AGENTS_DRAFT_H
#define DAFL_TESTS_AGENTS_DRAFT_H

#include <stdbool.h>

#include "tests/check.h"
#include "agents/runfile.h"

#define NAME "f.yaml"
#define CLIENTS 6
#define SEED "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

/* Every field outside the roster: a value that is not the default, another that
 * is allowed too, values just out of range, and what the sentence must offer.
 */
typedef struct {
    const char *section, *key, *value, *other, *below, *above, *allowed;
} field;

static const field fields[] = {
    {"training", "method", "deepafl", NULL, NULL, NULL, "deepafl, afl"},
    {"training", "features", "40", "41", "0", "65537",
     "whole number from 1 to 65536"},
    {"training", "width", "32", "33", "0", "65537",
     "whole number from 1 to 65536"},
    {"training", "hidden", "48", "49", "0", "65537",
     "whole number from 1 to 65536"},
    {"training", "classes", "7", "8", "1", "65537",
     "whole number from 2 to 65536"},
    {"training", "layers", "3", "4", "-1", "513", "whole number from 0 to 512"},
    {"training", "activation", "tanh", "relu", NULL, NULL, "softshrink"},
    {"training", "lambda", "2.5", "2.5000000000000004", "-0.1", "1e999",
     "finite number, zero or more"},
    {"training", "gamma", "1e-3", "0", "-1e-9", "inf",
     "finite number, zero or more"},
    {"training", "seed", SEED, "1" SEED, NULL, NULL, "64 hexadecimal digits"},
    {"training", "schedule", "full", "delta", NULL, NULL, "delta, full"},
    {"training", "participation", "0.5", "1", "0", "1.001", "0.001 to 1,"},
    {"training", "participation_kind", "inconsistent", "consistent", NULL, NULL,
     "consistent, inconsistent"},
    {"training", "by", "cells", NULL, NULL, NULL, "cells, clients"},
    {"contract", "s", "11", "10", "0", "25", "whole number from 1 to 24"},
    {"contract", "q", "8", "2", "0", "65537", "whole number from 1 to 65536"},
    {"contract", "n_max", "100000", "100001", "0", "1099511627777",
     "whole number from 1 to 1099511627776"},
    {"contract", "w", "56", "64", "31", "65", "whole number from 32 to 64"},
    {"policy", "n_min", "6", "5", "1", "257", "whole number from 2 to 256"},
    {"policy", "m", "3", "2", "1", "257", "whole number from 2 to 256"},
    {"policy", "g", "3", "2", "0", "257", "whole number from 1 to 256"},
    {"policy", "c", "0", "1", "-1", "257", "whole number from 0 to 256"},
    {"policy", "a", "1", "0", "-1", "257", "whole number from 0 to 256"},
    {"timeouts", "setup", "1.5", "1.501", "0", "4294967.296",
     "0.001 to 4294967.295"},
    {"timeouts", "ready", "2.25", "3", "0", "4294967.296",
     "0.001 to 4294967.295"},
    {"timeouts", "upload", "3.125", "3", "0", "4294967.296",
     "0.001 to 4294967.295"},
    {"timeouts", "sign", "4", "5", "0", "4294967.296", "0.001 to 4294967.295"},
    {"timeouts", "reveal", "0.001", "5", "0", "4294967.296",
     "0.001 to 4294967.295"},
    {"caps", "chunk", "65536", "65537", "16383", "16777217",
     "whole number from 16384 to 16777216"},
    {"caps", "body_max", "4000000", "4000001", "16383", "4294967296",
     "whole number from 16384 to 4294967295"},
    {"", "secure_agg", "none", "masks", NULL, NULL, "none, masks, seal"},
    {"", "want", "0.75", "0.751", "0", "1.001", "0.001 to 1,"},
    {"", "tries", "0", "1", "-1", "65536", "whole number from 0 to 65535"},
    {"", "retries", "3", "4", "0", "65536", "whole number from 1 to 65535"},
    {"", "slots", "30", "31", "0", "4097", "whole number from 1 to 4096"},
};
#define N_FIELDS COUNT(fields)

/* Whether a file must have it. */
CHECK_HELPER bool needed(const field *f)
{
    static const char *const keys[] = {"features", "classes", "seed"};

    for (size_t i = 0; i < COUNT(keys); i++)
        if (strcmp(f->key, keys[i]) == 0)
            return true;
    return strcmp(f->section, "policy") == 0;
}

static const char *const sections[] = {"training", "contract", "policy",
                                       "timeouts", "caps"};

/* The file to write: values (NULL: without the field), public lines, cells. */
typedef struct {
    const char *value[N_FIELDS];
    char key[CLIENTS + 2][DAFL_IDENTITY_LINE_MAX];
    const char *cell[CLIENTS];
    size_t n_parties;     /* with a key holder: CLIENTS + 2 */
    const char *extra_in; /* a section with one line more .. */
    const char *extra;    /* .. which is this */
    char text[8192];
    size_t len;
    unsigned line[N_FIELDS]; /* where each field was written */
} draft;

__attribute__((format(printf, 3, 4))) CHECK_HELPER void
add_line(draft *d, unsigned *line, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    d->len += (size_t)vsnprintf(d->text + d->len, sizeof d->text - d->len,
                                format, args);
    va_end(args);
    assert_true(d->len < sizeof d->text - 1);
    d->text[d->len++] = '\n';
    ++*line;
}

CHECK_HELPER void write_section(draft *d, unsigned *line, const char *name)
{
    bool top = name[0] == '\0', opened = top;

    for (size_t i = 0; i < N_FIELDS; i++) {
        if (strcmp(fields[i].section, name) != 0 || d->value[i] == NULL)
            continue;
        if (!opened)
            add_line(d, line, "%s:", name);
        opened = true;
        d->line[i] = *line;
        add_line(d, line, "%s%s: %s", top ? "" : "  ", fields[i].key,
                 d->value[i]);
    }
    if (d->extra_in != NULL && strcmp(d->extra_in, name) == 0)
        add_line(d, line, "%s%s", top ? "" : "  ", d->extra);
}

CHECK_HELPER void write_draft(draft *d)
{
    unsigned line = 1;

    d->len = 0;
    add_line(d, &line, "# a run");
    add_line(d, &line, "roster:");
    for (size_t i = 0; i < d->n_parties; i++) {
        add_line(d, &line, "  - key: %s", d->key[i]);
        if (i >= CLIENTS)
            add_line(d, &line, "    role: %s",
                     i == CLIENTS ? "server" : "keyholder");
        else if (d->cell[i] != NULL)
            add_line(d, &line, "    cell: %s", d->cell[i]);
        if (i == 1 && d->extra_in != NULL && strcmp(d->extra_in, "roster") == 0)
            add_line(d, &line, "    %s", d->extra);
    }
    for (size_t i = 0; i < COUNT(sections); i++)
        write_section(d, &line, sections[i]);
    write_section(d, &line, "");
}

CHECK_HELPER draft *good(void)
{
    static draft d;

    memset(&d, 0, sizeof d);
    d.n_parties = CLIENTS + 1;
    for (size_t i = 0; i < CLIENTS + 2; i++) {
        uint8_t seed[64];
        char name[16];
        dafl_secret_identity id;
        memset(seed, (int)i + 1, sizeof seed);
        (void)snprintf(name, sizeof name, "party%zu", i);
        assert_ok(dafl_identity_new_derand(&id, name, seed, NULL));
        dafl_identity_format(d.key[i], &id.public);
    }
    for (size_t i = 0; i < CLIENTS; i++)
        d.cell[i] = i % 2 == 0 ? "0" : "1";
    for (size_t i = 0; i < N_FIELDS; i++)
        d.value[i] = fields[i].value;
    return &d;
}

CHECK_HELPER size_t find(const char *section, const char *key)
{
    for (size_t i = 0; i < N_FIELDS; i++)
        if (strcmp(fields[i].section, section) == 0 &&
            strcmp(fields[i].key, key) == 0)
            return i;
    fail_msg("no field %s.%s", section, key);
    return 0;
}

CHECK_HELPER void set(draft *d, const char *section, const char *key,
                      const char *value)
{
    d->value[find(section, key)] = value;
}

CHECK_HELPER void path_of(char path[64], const field *f)
{
    (void)snprintf(path, 64, "%s%s%s", f->section,
                   f->section[0] == '\0' ? "" : ".", f->key);
}

CHECK_HELPER dafl_err read_text(runfile **run, const char *text, size_t len,
                                dafl_why *why)
{
    *run = NULL;
    why->text[0] = '\0';
    return runfile_read(run, (dafl_bytes){(const uint8_t *)text, len}, NAME,
                        why);
}

CHECK_HELPER dafl_err read_draft(runfile **run, draft *d, dafl_why *why)
{
    write_draft(d);
    return read_text(run, d->text, d->len, why);
}

/* Two that must be read, and whether their digests are equal. */
CHECK_HELPER void compare(draft *a, const runfile *b, bool *roster,
                          bool *config)
{
    runfile *run;
    dafl_why why;

    if (read_draft(&run, a, &why) != DAFL_OK)
        fail_msg("%s\n%s", why.text, a->text);
    *roster = dafl_digest_equal(&run->roster_digest, &b->roster_digest) != 0;
    *config = dafl_digest_equal(&run->config_digest, &b->config_digest) != 0;
    runfile_free(&run);
    assert_null(run);
}

CHECK_HELPER runfile *good_run(void)
{
    runfile *run;
    dafl_why why;

    if (read_draft(&run, good(), &why) != DAFL_OK)
        fail_msg("%s", why.text);
    return run;
}

/* Refused with a sentence that has these words; nothing comes out. */
CHECK_HELPER void refused(const char *text, size_t len, const char *words)
{
    runfile *run;
    dafl_why why;

    if (read_text(&run, text, len, &why) != DAFL_ERR_INPUT)
        fail_msg("taken, but should say '%s':\n%.*s", words, (int)len, text);
    assert_null(run);
    if (strncmp(why.text, NAME, strlen(NAME)) != 0 ||
        strchr(why.text, '\n') != NULL)
        fail_msg("'%s' does not name the file", why.text);
    assert_says(&why, words);
}

CHECK_HELPER void refused_draft(draft *d, const char *words)
{
    write_draft(d);
    refused(d->text, d->len, words);
}

CHECK_HELPER void refused_text(const char *text, const char *words)
{
    refused(text, strlen(text), words);
}

#endif
