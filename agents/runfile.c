/* SPDX-License-Identifier: Apache-2.0 */
/* From YAML to texts, and the words for what is wrong: the one file that knows
 * libcyaml. */
#include "agents/runfile_raw.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cyaml/cyaml.h>

#include "agents/runfile.h"

/* ---- the schema ---- */

/* What is missing is judged later: libcyaml would name another field. */
#define TEXT(type, name)                                              \
    CYAML_FIELD_STRING_PTR(#name, CYAML_FLAG_OPTIONAL, type, name, 0, \
                           CYAML_UNLIMITED)
#define SECTION(name)                                              \
    CYAML_FIELD_MAPPING(#name, CYAML_FLAG_OPTIONAL, raw_run, name, \
                        name##_fields)

static const cyaml_schema_field_t party_fields[] = {
    TEXT(raw_party, key), TEXT(raw_party, role), TEXT(raw_party, cell),
    CYAML_FIELD_END};

static const cyaml_schema_field_t training_fields[] = {
    TEXT(raw_training, method),
    TEXT(raw_training, features),
    TEXT(raw_training, width),
    TEXT(raw_training, hidden),
    TEXT(raw_training, classes),
    TEXT(raw_training, layers),
    TEXT(raw_training, activation),
    TEXT(raw_training, lambda),
    TEXT(raw_training, gamma),
    TEXT(raw_training, seed),
    TEXT(raw_training, schedule),
    TEXT(raw_training, participation),
    TEXT(raw_training, participation_kind),
    TEXT(raw_training, by),
    CYAML_FIELD_END};

static const cyaml_schema_field_t contract_fields[] = {
    TEXT(raw_contract, s), TEXT(raw_contract, q), TEXT(raw_contract, n_max),
    TEXT(raw_contract, w), CYAML_FIELD_END};

static const cyaml_schema_field_t policy_fields[] = {
    TEXT(raw_policy, n_min), TEXT(raw_policy, m), TEXT(raw_policy, g),
    TEXT(raw_policy, c),     TEXT(raw_policy, a), CYAML_FIELD_END};

static const cyaml_schema_field_t timeouts_fields[] = {
    TEXT(raw_timeouts, setup),  TEXT(raw_timeouts, ready),
    TEXT(raw_timeouts, upload), TEXT(raw_timeouts, sign),
    TEXT(raw_timeouts, reveal), CYAML_FIELD_END};

static const cyaml_schema_field_t caps_fields[] = {
    TEXT(raw_caps, chunk), TEXT(raw_caps, body_max), CYAML_FIELD_END};

static const cyaml_schema_value_t party_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, raw_party, party_fields)};

static const cyaml_schema_field_t run_fields[] = {
    CYAML_FIELD_SEQUENCE_COUNT(
        "roster", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, raw_run, roster,
        n_roster, &party_schema, 0, DAFL_PARTIES_MAX),
    SECTION(training),
    SECTION(contract),
    SECTION(policy),
    SECTION(timeouts),
    SECTION(caps),
    TEXT(raw_run, secure_agg),
    TEXT(raw_run, want),
    TEXT(raw_run, tries),
    TEXT(raw_run, retries),
    TEXT(raw_run, slots),
    CYAML_FIELD_END};

static const cyaml_schema_value_t run_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, raw_run, run_fields)};

/* ---- libcyaml ---- */

/* What its log tells of an error: the reason, then the way from the value
 * outwards. */
typedef struct {
    char reason[160], path[160];
    unsigned line; /* 0: none was named */
    bool second;   /* there is another document after the first */
} complaint;

static void prepend(char path[160], const char *element)
{
    char rest[160];

    (void)snprintf(rest, sizeof rest, "%s", path);
    (void)snprintf(path, 160, "%.80s%s%.70s", element,
                   rest[0] == '\0' ? "" : ".", rest);
}

/* A line of the way: "  in mapping field 'width' (line: 3, column: 9)", "  in
 * sequence entry '2' (line: ..", "  in mapping (line: ..". */
static void follow(complaint *c, const char *text)
{
    const char *quote = strchr(text, '\''), *line = strstr(text, "(line: ");

    if (quote != NULL) {
        char element[81];
        (void)snprintf(element, sizeof element, "%.*s",
                       (int)strcspn(quote + 1, "'"), quote + 1);
        prepend(c->path, element);
    }
    if (line != NULL && c->line == 0)
        c->line = (unsigned)strtoul(line + strlen("(line: "), NULL, 10);
}

static void listen(cyaml_log_t level, void *ctx, const char *format,
                   va_list args)
{
    complaint *c = ctx;
    char text[256];

    (void)vsnprintf(text, sizeof text, format, args);
    text[strcspn(text, "\n")] = '\0';
    if (level < CYAML_LOG_ERROR)
        c->second = true;
    else if (strncmp(text, "  in ", 5) == 0)
        follow(c, text);
    else if (c->reason[0] == '\0' && strcmp(text, "Load: Backtrace:") != 0 &&
             strncmp(text, "Load: ", 6) == 0)
        (void)snprintf(c->reason, sizeof c->reason, "%.159s", text + 6);
}

/* Memory that knows as how-manieth piece it was asked for. The reading is the
 * same every time, so that the line of a value can be found by reading again
 * and refusing its memory: libcyaml then tells where it was. */
typedef struct {
    size_t asked, refuse;
} pieces;

typedef union {
    size_t number;
    max_align_t align;
} piece;

static void *give(void *ctx, void *old, size_t size)
{
    pieces *p = ctx;
    piece *was = old == NULL ? NULL : (piece *)old - 1, *is;

    if (size == 0) {
        free(was);
        return NULL;
    }
    if (++p->asked == p->refuse || size > SIZE_MAX - sizeof *is)
        return NULL;
    is = realloc(was, sizeof *is + size);
    if (is == NULL)
        return NULL;
    is->number = p->asked;
    return is + 1;
}

static cyaml_config_t reading(complaint *c, pieces *p)
{
    return (cyaml_config_t){.log_fn = listen,
                            .log_ctx = c,
                            .log_level = CYAML_LOG_WARNING,
                            .mem_fn = give,
                            .mem_ctx = p,
                            .flags = CYAML_CFG_NO_ALIAS};
}

void raw_drop(raw_run **raw)
{
    complaint c = {.line = 0};
    pieces p = {0};
    cyaml_config_t config = reading(&c, &p);

    (void)cyaml_free(&config, &run_schema, *raw, 0);
    *raw = NULL;
}

static unsigned line_of(const raw_source *src, const char *value)
{
    complaint c = {.line = 0};
    pieces p = {.refuse = ((const piece *)(const void *)value - 1)->number};
    cyaml_config_t config = reading(&c, &p);
    cyaml_data_t *data = NULL;
    raw_run *raw;

    if (cyaml_load_data(src->text.ptr, src->text.len, &config, &run_schema,
                        &data, NULL) == CYAML_OK) {
        raw = data;
        raw_drop(&raw);
    }
    return c.line;
}

/* ---- refusing ---- */

/* "run.yaml, line 7: ", or nothing for a text without a name. */
static void say_where(char *out, size_t room, const raw_source *src,
                      const char *word, unsigned line)
{
    if (src->name == NULL)
        out[0] = '\0';
    else if (line == 0)
        (void)snprintf(out, room, "%.200s: ", src->name);
    else
        (void)snprintf(out, room, "%.200s, %s %u: ", src->name, word, line);
}

dafl_err raw_refuse(const raw_source *src, const char *path, const char *value,
                    const char *format, ...)
{
    char where[256], allowed[256];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(allowed, sizeof allowed, format, args);
    va_end(args);
    say_where(where, sizeof where, src, "line",
              value == NULL || src->name == NULL ? 0 : line_of(src, value));
    if (value == NULL)
        dafl_why_set(src->why, "%s%s is missing: %s", where, path, allowed);
    else
        dafl_why_set(src->why, "%s%s is '%.60s': %s", where, path, value,
                     allowed);
    return DAFL_ERR_INPUT;
}

dafl_err raw_refuse_rule(const raw_source *src, const char *format, ...)
{
    char where[256], rule[400];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(rule, sizeof rule, format, args);
    va_end(args);
    say_where(where, sizeof where, src, "", 0);
    dafl_why_set(src->why, "%s%s", where, rule);
    return DAFL_ERR_INPUT;
}

static void list_keys(char *out, size_t room, const char *path)
{
    const cyaml_schema_field_t *fields = run_fields;
    size_t len = 0;

    for (const cyaml_schema_field_t *f = run_fields; f->key != NULL; f++) {
        size_t n = strlen(f->key);
        if (strncmp(f->key, path, n) == 0 &&
            (path[n] == '\0' || path[n] == '.'))
            fields = f->value.type == CYAML_MAPPING ? f->value.mapping.fields
                                                    : party_fields;
    }
    out[0] = '\0';
    for (; fields->key != NULL && len + 1 < room; fields++)
        len += (size_t)snprintf(out + len, room - len, "%s%s",
                                len == 0 ? "" : ", ", fields->key);
}

/* Say what libcyaml found wrong in words for the author of the file. Where it
 * complains of a key, its line is that of the value before. */
static dafl_err translate(const raw_source *src, cyaml_err_t err,
                          const complaint *c)
{
    static const char unknown[] = "Unexpected key: ";
    static const char twice[] = "Mapping field already seen";
    const char *path = c->path[0] == '\0' ? "the file" : c->path;
    char where[256], keys[256];

    if (err == CYAML_ERR_OOM)
        return DAFL_ERR_NOMEM;
    say_where(where, sizeof where, src,
              err == CYAML_ERR_INVALID_VALUE ? "line" : "after line", c->line);
    if (err == CYAML_ERR_INVALID_KEY &&
        strncmp(c->reason, unknown, sizeof unknown - 1) == 0) {
        list_keys(keys, sizeof keys, c->path);
        dafl_why_set(src->why, "%s%s%s%.80s is unknown: choose from %s", where,
                     c->path, c->path[0] == '\0' ? "" : ".",
                     c->reason + sizeof unknown - 1, keys);
    } else if (strncmp(c->reason, twice, sizeof twice - 1) == 0) {
        dafl_why_set(src->why, "%s%s is given twice: keep one", where, path);
    } else if (err == CYAML_ERR_INVALID_VALUE) {
        bool list = strstr(c->reason, "Expecting SEQUENCE") != NULL;
        bool section = strstr(c->reason, "Expecting MAPPING") != NULL;
        dafl_why_set(src->why, "%s%s must be %s", where, path,
                     list      ? "a list of parties"
                     : section ? "a section of 'key: value' lines"
                               : "one value");
    } else if (err == CYAML_ERR_SEQUENCE_ENTRIES_MAX) {
        dafl_why_set(src->why, "%sroster has more than %d parties", where,
                     DAFL_PARTIES_MAX);
    } else if (err == CYAML_ERR_ALIAS) {
        dafl_why_set(src->why,
                     "%s%s: aliases are not allowed, write the value "
                     "out",
                     where, path);
    } else {
        const char *reason =
            strncmp(c->reason, "libyaml: ", 9) == 0 ? c->reason + 9 : c->reason;
        /* libyaml's words for a tab. */
        bool tab = strstr(reason, "cannot start any token") != NULL;
        dafl_why_set(src->why, "%snot YAML: %s%s", where,
                     reason[0] == '\0' ? "a key must be a plain word" : reason,
                     tab ? "; indent with blanks, not with tabs" : "");
    }
    return DAFL_ERR_INPUT;
}

/* A zero that a quoted text spells out would end it half-way. */
static bool spells_zero(dafl_bytes text)
{
    static const char *const zeros[] = {"\\0", "\\x00", "\\u0000",
                                        "\\U00000000"};

    for (size_t i = 0; i < text.len; i++)
        for (size_t k = 0; k < sizeof zeros / sizeof zeros[0]; k++) {
            size_t n = strlen(zeros[k]);
            if (text.len - i >= n && memcmp(text.ptr + i, zeros[k], n) == 0)
                return true;
        }
    return false;
}

dafl_err raw_read(raw_run **out, const raw_source *src)
{
    complaint c = {.line = 0};
    pieces p = {0};
    cyaml_config_t config = reading(&c, &p);
    cyaml_data_t *data = NULL;
    raw_run *raw;
    cyaml_err_t err;

    if (src->text.len > RUNFILE_BYTES_MAX)
        return raw_refuse_rule(src, "the file is longer than %zu bytes",
                               RUNFILE_BYTES_MAX);
    if (src->text.len == 0) /* libyaml asserts that there is something */
        return raw_refuse_rule(src, "the file is empty");
    if (memchr(src->text.ptr, '\0', src->text.len) != NULL ||
        spells_zero(src->text))
        return raw_refuse_rule(src, "a zero character is not allowed");
    err = cyaml_load_data(src->text.ptr, src->text.len, &config, &run_schema,
                          &data, NULL);
    if (err != CYAML_OK)
        return translate(src, err, &c);
    if (data == NULL)
        return raw_refuse_rule(src, "nothing is described here");
    raw = data;
    if (c.second) {
        raw_drop(&raw);
        return raw_refuse_rule(src, "there is a second document after '---': a "
                                    "run is described by one");
    }
    *out = raw;
    return DAFL_OK;
}
