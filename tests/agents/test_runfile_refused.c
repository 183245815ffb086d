/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever is wrong with a run file: one sentence that names it, and nothing
 * comes out. */
#include "tests/agents/draft.h"

/* ---- memory that runs out ---- */

static size_t asked, refuse; /* the how-manieth request fails; 0: none */

void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
    return ++asked == refuse ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return ++asked == refuse ? NULL : __real_realloc(old, size);
}

static void a_bad_value_is_named_with_its_line_and_what_is_allowed(void **state)
{
    static const char *const never[] = {"\"\"", "x",    "~",        "1 2",
                                        "0x10", "010",  "+1",       "' 1'",
                                        "1,5",  "true", "\"1\\n\"", "1_0"};

    (void)state;
    for (size_t i = 0; i < N_FIELDS; i++) {
        const char *bad[COUNT(never) + 2];
        size_t n = 0;
        if (fields[i].below != NULL)
            bad[n++] = fields[i].below;
        if (fields[i].above != NULL)
            bad[n++] = fields[i].above;
        for (size_t k = 0; k < COUNT(never); k++)
            bad[n++] = never[k];
        for (size_t k = 0; k < n; k++) {
            draft *d = good();
            char path[64], words[160];
            /* Penalties are numbers as C reads them. */
            bool real =
                strcmp(fields[i].allowed, "finite number, zero or more") == 0;
            if (real &&
                (strcmp(bad[k], "010") == 0 || strcmp(bad[k], "+1") == 0))
                continue;
            d->value[i] = bad[k];
            write_draft(d);
            path_of(path, &fields[i]);
            (void)snprintf(words, sizeof words, NAME ", line %u: %s is '",
                           d->line[i], path);
            refused(d->text, d->len, words);
            refused(d->text, d->len, fields[i].allowed);
        }
    }
}

static void a_value_of_the_wrong_kind_is_named_with_its_line(void **state)
{
    static const char *const bad[] = {"[1]", "{a: 1}", "[]", "{}"};

    (void)state;
    for (size_t i = 0; i < N_FIELDS; i++)
        for (size_t k = 0; k < COUNT(bad); k++) {
            draft *d = good();
            char path[64], words[160];
            d->value[i] = bad[k];
            write_draft(d);
            path_of(path, &fields[i]);
            (void)snprintf(words, sizeof words,
                           NAME ", line %u: %s must be one value", d->line[i],
                           path);
            refused(d->text, d->len, words);
        }
    refused_text("training: 5\n", "line 1: training must be a section");
    refused_text("\ntraining: [1]\n", "line 2: training must be a section");
    refused_text("roster: 5\n", "roster must be a list of parties");
    refused_text("roster: {a: b}\n", "roster must be a list of parties");
    refused_text("roster: [x]\n", "roster.1 must be a section");
    refused_text("roster: [{key: [x]}]\n", "roster.1.key must be one value");
    refused_text("[]\n", "the file must be a section");
    refused_text("hello\n", "the file must be a section");
}

static void what_is_needed_is_missed_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_FIELDS; i++) {
        draft *d = good();
        char path[64], words[96];
        if (!needed(&fields[i]))
            continue;
        d->value[i] = NULL;
        path_of(path, &fields[i]);
        (void)snprintf(words, sizeof words, NAME ": %s is missing", path);
        refused_draft(d, words);
        refused_draft(d, fields[i].allowed);
    }
    refused_text("secure_agg: masks\n", "training.features is missing");
    refused_text("{}\n", "training.features is missing");
    refused_text("# only a comment\n", "nothing is described here");
    refused_text("", "the file is empty");
}

static void unknown_and_repeated_keys_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_FIELDS; i++) {
        draft *d = good();
        char path[64], words[96], line[64];
        d->extra_in = fields[i].section;
        (void)snprintf(line, sizeof line, "%sx: 1", fields[i].key);
        d->extra = line;
        path_of(path, &fields[i]);
        (void)snprintf(words, sizeof words, "%sx is unknown: choose from ",
                       path);
        refused_draft(d, words);
        (void)snprintf(words, sizeof words, "%s", fields[i].key);
        refused_draft(d, words);
        (void)snprintf(line, sizeof line, "%s: %s", fields[i].key, "1");
        (void)snprintf(words, sizeof words, "%s is given twice", path);
        refused_draft(d, words);
    }
    {
        draft *d = good();

        d->extra_in = "roster";
        d->extra = "name: x";
        refused_draft(d, "roster.2.name is unknown: choose from key, role, "
                         "cell");
        d->extra = "cell: 1";
        refused_draft(d, "roster.2.cell is given twice");
        d->extra_in = "";
        d->extra = "caps: {}";
        refused_draft(d, "caps is given twice");
    }
}

static void bad_parties_are_named(void **state)
{
    draft *d = good();
    char *at;

    (void)state;
    d->cell[2] = "x";
    refused_draft(d, NAME ", line 8: roster.3.cell is 'x': choose a whole "
                          "number from 0 to 255");
    d->cell[2] = "3";
    refused_draft(d, "roster: cell 2 of the roster is empty");
    d->cell[2] = NULL;
    refused_draft(d, "roster.3.cell is missing");
    d = good();
    (void)strcpy(d->key[3], d->key[2]);
    refused_draft(d, "roster: the roster has the name 'party2' twice");
    d = good();
    at = strstr(d->key[3], "ed25519:");
    (void)strcpy(at, strstr(d->key[2], "ed25519:"));
    refused_draft(d, "'party2' and 'party3' have the same key");
    d = good();
    d->key[4][20] = 'g';
    refused_draft(d, "line 11: roster.5.key is 'party4 ed25519:");
    refused_draft(d, "NAME ed25519:HEX curve25519:HEX");
    d = good();
    d->n_parties = CLIENTS;
    refused_draft(d, "one server");
    d = good();
    d->extra_in = "roster";
    d->extra = "role: server";
    refused_draft(d, "roster.2.cell is '1': only clients have a cell");
    d->cell[1] = NULL;
    refused_draft(d, "must end with one server and at most one key holder");
    d->extra = "role: boss";
    refused_draft(d, "roster.2.role is 'boss': choose one of client, server, "
                     "keyholder");
    refused_text("roster: [{role: client}]\ntraining: {features: 1, classes: "
                 "2, seed: " SEED "}\npolicy: {n_min: 2, m: 2, g: 1, c: 0, a: "
                 "0}\n",
                 "roster.1.key is missing");
}

static void too_many_parties_are_refused(void **state)
{
    static char text[DAFL_PARTIES_MAX * 16 + 64];
    size_t len = (size_t)snprintf(text, sizeof text, "roster:\n");

    (void)state;
    for (size_t i = 0; i <= DAFL_PARTIES_MAX; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "- {key: x}\n");
    refused(text, len, "roster has more than 258 parties");
}

static void broken_rules_are_named(void **state)
{
    static const struct {
        const char *section, *key, *value, *words;
    } rules[] = {
        {"policy", "g", "4", "E_POLICY: a cell of the roster has 3 members"},
        {"policy", "c", "2", "E_POLICY: g = 3: cells need c + 2 = 4 members"},
        {"policy", "m", "7", "E_POLICY: m = 7: choose c + 2 = 2 to 6"},
        {"policy", "n_min", "7", "E_POLICY: n_min = 7: choose 2 to 6"},
        {"policy", "a", "3", "E_PARAMS: n_min = 6 clients with c = 0"},
        {"policy", "m", "4",
         "E_COHORT: training.participation of 0.5 means sums over 1 of 2 "
         "cells, perhaps only 3 clients: fewer than policy.m = 4"},
        {"contract", "w", "40", "E_POLICY: w = 40: choose"},
        {"contract", "w", "57", "E_POLICY: w = 57: choose"},
        {"contract", "s", "24", "training and contract: magnitude 8 on a grid"},
        {"contract", "q", "65536", "products are not exact beyond 26 bits"},
        {"caps", "body_max", "65543", "E_POLICY: body_max = 65543"},
        {"caps", "chunk", "4000000", "E_POLICY: body_max = 4000000"},
        {"training", "classes", "65536",
         "E_POLICY: caps.body_max = 4000000: the largest message"},
        {"", "secure_agg", "seal", "E_POLICY: secure_agg is 'seal'"},
    };
    draft *d;

    (void)state;
    for (size_t i = 0; i < COUNT(rules); i++) {
        d = good();
        set(d, rules[i].section, rules[i].key, rules[i].value);
        refused_draft(d, rules[i].words);
    }
    d = good();
    set(d, "training", "width", "65536");
    set(d, "caps", "body_max", "4294967295");
    refused_draft(d, "E_POLICY: an answer of this run has 2147");
    d = good();
    d->n_parties = CLIENTS + 2;
    set(d, "", "secure_agg", "seal");
    set(d, "contract", "w", "64");
    refused_draft(d, "that has room for w = 56 bits, not 64");
}

static void setup_fits_the_largest_message(void **state)
{
    draft *d = good();
    runfile *run;
    dafl_why why;
    char most[24];
    /* SETUP, see protocol/messages.h. */
    unsigned long setup = 2 + 4 + 4 + CLIENTS * (2 + 32 + 64) +
                          (CLIENTS - 1) * (30 * 64 + 24 + 16) +
                          CLIENTS * 30 * 64;

    (void)state;
    set(d, "caps", "chunk", "16384");
    (void)snprintf(most, sizeof most, "%lu", setup);
    set(d, "caps", "body_max", most);
    assert_ok(read_draft(&run, d, &why));
    assert_int_equal(runfile_largest_body(run), setup);
    runfile_free(&run);
    (void)snprintf(most, sizeof most, "%lu", setup - 1);
    refused_draft(d, "E_POLICY: caps.body_max");
}

static void what_is_not_plain_yaml_is_refused(void **state)
{
    static const struct {
        const char *text, *words;
    } bad[] = {
        {"training: {features: 1\n", "not YAML"},
        {"want: 1\n  tries: 2\n", "not YAML"},
        {"training:\n\tfeatures: 1\n", "after line 1: not YAML"},
        {"training:\n\tfeatures: 1\n", "with blanks, not with tabs"},
        {"want: \"open\n", "not YAML"},
        {"want: &a 1\ntries: *a\n", "aliases are not allowed"},
        {"want: *a\n", "aliases are not allowed"},
        {"{? [a] : b}\n", "not YAML: a key must be a plain word"},
        {"? {a: b}\n: c\n", "not YAML"},
        {"want: \"1\\0\"\n", "a zero character is not allowed"},
        {"want: \"1\\x00\"\n", "a zero character is not allowed"},
        {"want: \"1\\u0000x\"\n", "a zero character is not allowed"},
        {"want: \xff\xfe\n", "not YAML"},
        {"want: \x01\n", "not YAML"},
        {"%YAML 9.9\n---\nwant: 1\n", "not YAML"},
    };
    draft *d = good();
    static char huge[RUNFILE_BYTES_MAX + 1];

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++)
        refused_text(bad[i].text, bad[i].words);
    refused("want: 1\0", 8, "a zero character is not allowed");
    memset(huge, '#', sizeof huge);
    refused(huge, sizeof huge, "longer than 1048576 bytes");
    write_draft(d);
    (void)strcpy(d->text + d->len, "---\nwant: 1\n");
    refused(d->text, strlen(d->text), "second document");
}

static void without_a_name_reasons_begin_with_the_field(void **state)
{
    static const char text[] = "training: {features: x}\n";
    runfile *run = NULL;
    dafl_why why = {""};
    dafl_err err = runfile_read(
        &run, (dafl_bytes){(const uint8_t *)text, sizeof text - 1}, NULL, &why);

    (void)state;
    assert_int_equal(err, DAFL_ERR_INPUT);
    assert_true(strncmp(why.text, "training.features is 'x': ", 26) == 0);
    err = runfile_read(
        &run, (dafl_bytes){(const uint8_t *)text, sizeof text - 1}, NULL, NULL);
    assert_int_equal(err, DAFL_ERR_INPUT);
    assert_null(run);
}

static void short_memory_is_no_fault_of_the_file(void **state)
{
    draft *d = good();
    dafl_err err = DAFL_ERR_NOMEM;
    size_t k = 0;

    (void)state;
    write_draft(d);
    while (err != DAFL_OK) {
        runfile *run;
        dafl_why why;
        asked = 0;
        refuse = ++k;
        err = read_text(&run, d->text, d->len, &why);
        refuse = 0;
        if (err != DAFL_OK) {
            assert_int_equal(err, DAFL_ERR_NOMEM);
            assert_null(run);
        }
        runfile_free(&run);
    }
    assert_true(k > 40); /* every value is a piece of its own */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_bad_value_is_named_with_its_line_and_what_is_allowed),
        cmocka_unit_test(a_value_of_the_wrong_kind_is_named_with_its_line),
        cmocka_unit_test(what_is_needed_is_missed_by_name),
        cmocka_unit_test(unknown_and_repeated_keys_are_refused),
        cmocka_unit_test(bad_parties_are_named),
        cmocka_unit_test(too_many_parties_are_refused),
        cmocka_unit_test(broken_rules_are_named),
        cmocka_unit_test(setup_fits_the_largest_message),
        cmocka_unit_test(what_is_not_plain_yaml_is_refused),
        cmocka_unit_test(without_a_name_reasons_begin_with_the_field),
        cmocka_unit_test(short_memory_is_no_fault_of_the_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
