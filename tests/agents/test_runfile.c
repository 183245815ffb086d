/* SPDX-License-Identifier: Apache-2.0 */
/* What a run file says, and what its digests depend on. */
#include "tests/agents/draft.h"

#include "agents/cli.h"

/* ---- reading ---- */

static void every_field_is_read(void **state)
{
    runfile *run = good_run();
    const dafl_config *c = &run->config;
    const dafl_params *p = &run->params;
    dafl_seed seed;
    dafl_params again = {.contract = c->contract};
    dafl_participation part;

    (void)state;
    assert_ok(dafl_seed_parse(&seed, SEED, NULL));
    assert_true(p->method == DAFL_METHOD_DEEPAFL && p->features == 40 &&
                p->width == 32 && p->hidden == 48 && p->classes == 7 &&
                p->layers == 3 && p->activation == DAFL_ACT_TANH &&
                p->lambda == 2.5 && p->gamma == 1e-3 &&
                p->schedule == DAFL_SCHEDULE_FULL &&
                p->ablate == DAFL_ABLATE_NOTHING && !p->own_projections);
    assert_memory_equal(&p->seed, &seed, sizeof seed);
    assert_int_equal(run->participation.permille, 500);
    assert_false(run->participation.consistent);
    assert_true(c->contract.exact && c->contract.s == 11 &&
                c->contract.q == 8 && c->contract.n_max == 100000 &&
                c->contract.w == 56);
    assert_memory_equal(&p->contract, &c->contract, sizeof p->contract);
    assert_true(c->policy.n_min == 6 && c->policy.m == 3 && c->policy.g == 3 &&
                c->policy.c == 0 && c->policy.a == 1);
    assert_true(c->mode == DAFL_MODE_NONE && c->want == 750 && c->tries == 0 &&
                c->retries == 3 && c->slots == 30 && c->chunk == 65536 &&
                c->body_max == 4000000);
    assert_true(
        c->wait[DAFL_WAIT_SETUP] == 1500 && c->wait[DAFL_WAIT_READY] == 2250 &&
        c->wait[DAFL_WAIT_UPLOAD] == 3125 && c->wait[DAFL_WAIT_SIGN] == 4000 &&
        c->wait[DAFL_WAIT_REVEAL] == 1);
    assert_string_equal(c->method, "deepafl");
    assert_ok(dafl_get_deep_params(&again, &part, c->method_params, NULL));
    assert_memory_equal(&again.seed, &p->seed, sizeof seed);
    assert_true(again.hidden == 48 && part.permille == 500);
    assert_int_equal(dafl_config_check(c, &run->roster, NULL), DAFL_FAULT_NONE);
    runfile_free(&run);
}

static void the_roster_is_read(void **state)
{
    draft *d = good();
    runfile *run;
    dafl_why why;
    dafl_digest digest;

    (void)state;
    d->n_parties = CLIENTS + 2;
    assert_ok(read_draft(&run, d, &why));
    assert_true(run->roster.n == CLIENTS + 2 && run->roster.n_cells == 2 &&
                run->roster.n_clients == CLIENTS);
    for (size_t i = 0; i < CLIENTS + 2; i++) {
        const dafl_party *p = &run->roster.parties[i];
        char line[DAFL_IDENTITY_LINE_MAX];
        dafl_identity_format(line, &p->id);
        assert_string_equal(line, d->key[i]);
        assert_int_equal(p->role, i < CLIENTS ? 0 : i - CLIENTS + 1);
        assert_int_equal(p->cell, i < CLIENTS ? i % 2 : DAFL_NO_CELL);
    }
    assert_ok(dafl_roster_digest(&digest, &run->roster));
    assert_true(dafl_digest_equal(&digest, &run->roster_digest));
    runfile_free(&run);
}

static void what_is_left_out_has_the_default(void **state)
{
    draft *d = good();
    dafl_config expected = dafl_config_default();
    dafl_params p;
    runfile *run;
    dafl_why why;

    (void)state;
    for (size_t i = 0; i < N_FIELDS; i++)
        if (!needed(&fields[i]))
            d->value[i] = NULL;
    if (read_draft(&run, d, &why) != DAFL_OK)
        fail_msg("%s", why.text);
    p = run->params;
    assert_true(
        p.method == DAFL_METHOD_DEEPAFL && p.width == 1024 &&
        p.hidden == 1024 && p.layers == 5 && p.activation == DAFL_ACT_GELU &&
        p.lambda == 1 && p.gamma == 0.01 && p.schedule == DAFL_SCHEDULE_DELTA &&
        run->participation.permille == 1000 && run->participation.consistent);
    expected.policy = run->config.policy;
    (void)strcpy(expected.method, "deepafl");
    expected.method_params = run->config.method_params;
    expected.slots = dafl_config_slots(2 * 5 + 3);
    assert_true(expected.contract.w == 48);
    {
        dafl_digest digest;

        assert_ok(dafl_config_digest(&digest, &expected));
        assert_true(dafl_digest_equal(&digest, &run->config_digest));
    }
    runfile_free(&run);
}

static void without_cells_every_client_is_one(void **state)
{
    draft *d = good();
    runfile *run;
    dafl_why why;
    bool same_roster, same_config;

    (void)state;
    set(d, "policy", "g", "1");
    refused_draft(d, "E_POLICY: training.by is 'cells'");
    set(d, "training", "by", "clients");
    refused_draft(d, "E_POLICY: policy.g = 1 means no cells");
    memset(d->cell, 0, sizeof d->cell);
    assert_ok(read_draft(&run, d, &why));
    assert_int_equal(run->roster.n_cells, CLIENTS);
    for (uint16_t i = 0; i < CLIENTS; i++)
        assert_int_equal(run->roster.parties[i].cell, i);
    set(d, "training", "by", NULL);
    compare(d, run, &same_roster, &same_config);
    assert_true(same_roster && same_config);
    runfile_free(&run);
    set(d, "policy", "g", "3");
    refused_draft(d, "roster.1.cell is missing");
    set(d, "training", "by", "clients");
    for (size_t i = 0; i < CLIENTS; i++)
        d->cell[i] = i < 3 ? "0" : "1";
    refused_draft(d, "E_POLICY: training.by is 'clients': that needs policy.g "
                     "= 1");
}

static void method_afl_leaves_no_choice_of_widths(void **state)
{
    draft *d = good();
    runfile *run;
    dafl_why why;

    (void)state;
    set(d, "training", "method", "afl");
    refused_draft(d, "training.width is '32': method afl has 40 here");
    set(d, "training", "width", "40");
    refused_draft(d, "training.hidden is '48': method afl has 40 here");
    set(d, "training", "hidden", NULL);
    refused_draft(d, "training.layers is '3': method afl has 0 here");
    set(d, "training", "layers", NULL);
    set(d, "contract", "q", NULL);
    assert_ok(read_draft(&run, d, &why));
    assert_true(run->params.method == DAFL_METHOD_AFL &&
                run->params.width == 40 && run->params.layers == 0 &&
                run->config.contract.q == 16);
    runfile_free(&run);
}

/* ---- digests ---- */

static void every_change_of_a_field_changes_the_config_digest(void **state)
{
    runfile *run = good_run();

    (void)state;
    for (size_t i = 0; i < N_FIELDS; i++) {
        draft *d = good();
        char seed[65];
        bool roster, config;
        if (fields[i].other == NULL)
            continue;
        d->value[i] = fields[i].other;
        if (strcmp(fields[i].key, "seed") == 0) {
            (void)snprintf(seed, sizeof seed, "%s", fields[i].other);
            d->value[i] = seed;
        }
        compare(d, run, &roster, &config);
        if (!roster || config)
            fail_msg("%s.%s: roster %d, config %d", fields[i].section,
                     fields[i].key, roster, config);
    }
    runfile_free(&run);
}

static void every_change_of_a_party_changes_the_roster_digest(void **state)
{
    runfile *run = good_run();
    draft *d = good();
    char line[DAFL_IDENTITY_LINE_MAX];
    bool roster, config;

    (void)state;
    d->n_parties = CLIENTS + 2;
    compare(d, run, &roster, &config);
    assert_true(!roster && config);
    for (size_t i = 0; i <= CLIENTS; i++) {
        /* Of the name, of each key. */
        static const char *const before[] = {"party",
                                             "ed25519:", "curve25519:"};
        for (size_t k = 0; k < COUNT(before); k++) {
            char *at;
            d = good();
            at = strstr(d->key[i], before[k]) + strlen(before[k]);
            *at = *at == 'a' ? 'b' : 'a';
            compare(d, run, &roster, &config);
            assert_true(!roster && config);
        }
    }
    d = good();
    d->cell[0] = "1";
    d->cell[1] = "0";
    compare(d, run, &roster, &config);
    assert_true(!roster && config);
    d = good();
    (void)strcpy(line, d->key[0]);
    (void)strcpy(d->key[0], d->key[2]);
    (void)strcpy(d->key[2], line);
    compare(d, run, &roster, &config);
    assert_true(!roster && config);
    runfile_free(&run);
}

static void shuffle(size_t *order, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t j = random_size(0, i);
        order[i] = order[j];
        order[j] = i;
    }
}

/* What may stand between two lines. */
static void add_noise(draft *d, unsigned *line)
{
    static const char *const noise[] = {"", "# width: 7", "        # more", "#",
                                        "   "};

    while (random_size(0, 2) == 0)
        add_line(d, line, "%s", noise[random_size(0, COUNT(noise) - 1)]);
}

/* The same run in other words: order of keys and sections, the server's place,
 * quotes, blanks, comments, braces. */
static void write_anew(draft *d)
{
    static const char *const quotes[] = {"", "\"", "'"};
    size_t order[N_FIELDS], parts[COUNT(sections) + 2], first;
    unsigned line = 0;

    d->len = 0;
    shuffle(order, N_FIELDS);
    shuffle(parts, COUNT(parts));
    for (size_t i = 0; i < COUNT(parts); i++) {
        const char *name = parts[i] < COUNT(sections) ? sections[parts[i]] : "";
        bool flow = random_size(0, 1) == 0 && name[0] != '\0';
        add_noise(d, &line);
        if (parts[i] == COUNT(sections) + 1) {
            first = random_size(0, CLIENTS);
            add_line(d, &line, "roster:  # who");
            for (size_t k = 0, next = 0; k <= CLIENTS; k++) {
                if (k == first)
                    add_line(d, &line, "- {role: server, key: \"%s\"}",
                             d->key[CLIENTS]);
                else if (random_size(0, 1) == 0) {
                    add_line(d, &line, "- {cell: %s, key: %s, role: client}",
                             d->cell[next], d->key[next]);
                    next++;
                } else {
                    add_line(d, &line, "- cell: '%s'\n  key: '%s'  # him",
                             d->cell[next], d->key[next]);
                    next++;
                }
            }
            continue;
        }
        if (name[0] != '\0')
            add_line(d, &line, "%s:%s", name, flow ? " {" : "");
        for (size_t k = 0; k < N_FIELDS; k++) {
            const field *f = &fields[order[k]];
            const char *quote = quotes[random_size(0, 2)];
            if (strcmp(f->section, name) != 0)
                continue;
            add_noise(d, &line);
            add_line(d, &line, "%s%s: %*s%s%s%s%s", name[0] == '\0' ? "" : "  ",
                     f->key, (int)random_size(0, 3), "", quote,
                     d->value[order[k]], quote,
                     flow                     ? ", "
                     : random_size(0, 1) == 0 ? "  # so"
                                              : "");
        }
        if (flow)
            add_line(d, &line, "  }");
    }
    add_noise(d, &line);
}

static void comments_order_and_blanks_change_no_digest(void **state)
{
    runfile *run = good_run(), *again;
    dafl_why why;

    (void)state;
    check_seed();
    for (int i = 0; i < 200; i++) {
        draft *d = good();
        write_anew(d);
        if (read_text(&again, d->text, d->len, &why) != DAFL_OK)
            fail_msg("%s\n%s", why.text, d->text);
        assert_true(
            dafl_digest_equal(&run->roster_digest, &again->roster_digest));
        assert_true(
            dafl_digest_equal(&run->config_digest, &again->config_digest));
        runfile_free(&again);
    }
    runfile_free(&run);
}

static void other_spellings_of_a_number_are_the_same_number(void **state)
{
    static const struct {
        const char *section, *key, *value;
    } same[] = {
        {"training", "lambda", "25e-1"},
        {"training", "gamma", "0.0010"},
        {"training", "participation", "0.500"},
        {"", "want", "0.750"},
        {"timeouts", "setup", "1.50"},
        {"timeouts", "sign", "4.000"},
        {"training", "seed",
         "00112233445566778899AABBCCDDEEFF00112233445566778899AABBCCDDEEFF"},
    };
    runfile *run = good_run();

    (void)state;
    for (size_t i = 0; i < COUNT(same); i++) {
        draft *d = good();
        bool roster, config;
        set(d, same[i].section, same[i].key, same[i].value);
        compare(d, run, &roster, &config);
        assert_true(roster && config);
    }
    runfile_free(&run);
}

static void digests_are_shown_in_groups_of_four(void **state)
{
    char text[RUNFILE_DIGEST_TEXT];
    dafl_digest d;

    (void)state;
    for (size_t i = 0; i < sizeof d.b; i++)
        d.b[i] = (uint8_t)(i * 8 + 1);
    runfile_digest_text(text, &d);
    assert_string_equal(text, "0109 1119 2129 3139 4149 5159 6169 7179 8189 "
                              "9199 a1a9 b1b9 c1c9 d1d9 e1e9 f1f9");
}

/* ---- files ---- */

static void a_file_is_loaded_and_a_missing_one_named(void **state)
{
    draft *d = good();
    runfile *run = NULL;
    dafl_why why = {""};
    FILE *f = fopen(at("run.yaml"), "w");

    (void)state;
    write_draft(d);
    assert_non_null(f);
    assert_int_equal(fwrite(d->text, 1, d->len, f), d->len);
    assert_int_equal(fclose(f), 0);
    assert_ok(runfile_load(&run, at("run.yaml"), &why));
    runfile_free(&run);
    assert_int_equal(runfile_load(&run, at("other"), &why), DAFL_ERR_INPUT);
    assert_says(&why, "other: cannot open");
    assert_null(run);
    runfile_free(&run);
}

/* Run `deepafl init` with these options after its parties. */
static int init(const char *const *more)
{
    static char words[64][DAFL_IDENTITY_LINE_MAX + 32];
    char *argv[64];
    draft *d = good();
    int argc = 0;

    (void)strcpy(words[argc++], "init");
    for (size_t i = 0; i <= CLIENTS; i++)
        (void)snprintf(words[argc++], sizeof words[0], "--%s=%s",
                       i < CLIENTS ? "client" : "server", d->key[i]);
    (void)snprintf(words[argc++], sizeof words[0], "--out=%s", at("run.yaml"));
    for (; *more != NULL; more++)
        (void)snprintf(words[argc++], sizeof words[0], "%s", *more);
    for (int i = 0; i < argc; i++)
        argv[i] = words[i];
    return cmd_init(argc, argv);
}

static void what_init_writes_is_what_was_asked_for(void **state)
{
    static const char *const asked_for[] = {"--features=40",
                                            "--classes=7",
                                            "--width=32",
                                            "--hidden=48",
                                            "--layers=3",
                                            "--activation=tanh",
                                            "--lambda=0.1",
                                            "--gamma=1e-9",
                                            "--schedule=full",
                                            "--cell-size=3",
                                            "--colluders=1",
                                            "--min-cohort=3",
                                            "--secure-agg=none",
                                            "--participation=0.5:inconsistent",
                                            NULL};
    runfile *run = NULL;
    dafl_why why = {""};
    const dafl_params *p;

    (void)state;
    assert_int_equal(init(asked_for), 0);
    if (runfile_load(&run, at("run.yaml"), &why) != DAFL_OK)
        fail_msg("%s", why.text);
    p = &run->params;
    assert_true(p->features == 40 && p->classes == 7 && p->width == 32 &&
                p->hidden == 48 && p->layers == 3 &&
                p->activation == DAFL_ACT_TANH && p->lambda == 0.1 &&
                p->gamma == 1e-9 && p->schedule == DAFL_SCHEDULE_FULL);
    assert_true(run->participation.permille == 500 &&
                !run->participation.consistent);
    assert_true(run->roster.n_clients == CLIENTS && run->roster.n_cells == 2 &&
                dafl_roster_least_cell(&run->roster) == 3);
    assert_true(run->config.mode == DAFL_MODE_NONE &&
                run->config.policy.g == 3 && run->config.policy.c == 1 &&
                run->config.policy.m == 3 && run->config.policy.n_min == 5 &&
                run->config.policy.a == 1);
    runfile_free(&run);
    /* Never over an existing file. */
    assert_int_equal(init(asked_for), EXIT_INPUT);
}

static void init_draws_cells_and_seed_anew(void **state)
{
    static const char *const options[] = {"--features=4", "--classes=2",
                                          "--cell-size=3", NULL};
    dafl_seed seed = {{0}};
    unsigned together[CLIENTS] = {0};

    (void)state;
    for (int round = 0; round < 64; round++) {
        runfile *run = NULL;
        assert_int_equal(init(options), 0);
        assert_ok(runfile_load(&run, at("run.yaml"), NULL));
        assert_int_equal(remove(at("run.yaml")), 0);
        assert_memory_not_equal(&run->params.seed, &seed, sizeof seed);
        seed = run->params.seed;
        for (size_t i = 1; i < CLIENTS; i++)
            together[i] +=
                run->roster.parties[i].cell == run->roster.parties[0].cell;
        runfile_free(&run);
    }
    /* Each with chance 2/5: never below 3 or above 50 of 64 (1e-8). */
    for (size_t i = 1; i < CLIENTS; i++)
        assert_in_range(together[i], 3, 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_is_read),
        cmocka_unit_test(the_roster_is_read),
        cmocka_unit_test(what_is_left_out_has_the_default),
        cmocka_unit_test(without_cells_every_client_is_one),
        cmocka_unit_test(method_afl_leaves_no_choice_of_widths),
        cmocka_unit_test(every_change_of_a_field_changes_the_config_digest),
        cmocka_unit_test(every_change_of_a_party_changes_the_roster_digest),
        cmocka_unit_test(comments_order_and_blanks_change_no_digest),
        cmocka_unit_test(other_spellings_of_a_number_are_the_same_number),
        cmocka_unit_test(digests_are_shown_in_groups_of_four),
        CASE_IN_DIR(a_file_is_loaded_and_a_missing_one_named),
        CASE_IN_DIR(what_init_writes_is_what_was_asked_for),
        CASE_IN_DIR(init_draws_cells_and_seed_anew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
