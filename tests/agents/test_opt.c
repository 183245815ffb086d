/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>

#include "tests/check.h"
#include "agents/opt.h"

typedef struct {
    bool flag;
    const char *text;
    size_t size;
    double real;
    opt_list list;
    const char *words[2];
    size_t n_words;
    int help;
    dafl_why why;
} parsed;

/* The arguments after the program's name, ended by NULL. */
static dafl_err parse(parsed *p, const char *const *args)
{
    char program[] = "deepafl", *argv[16] = {program};
    char copies[16][64];
    int argc = 1;
    dafl_err err;

    *p = (parsed){.text = "unset", .size = 77, .real = 7.5};
    for (; *args != NULL; args++, argc++) {
        (void)snprintf(copies[argc], sizeof copies[argc], "%s", *args);
        argv[argc] = copies[argc];
    }
    {
        const opt opts[] = {
            {OPT_HEADING, NULL, NULL, NULL, "Things"},
            {OPT_FLAG, "flag", NULL, &p->flag, "a flag"},
            {OPT_TEXT, "text", "FILE", &p->text, "a text\nof two lines"},
            {OPT_SIZE, "size", "N", &p->size, "a size"},
            {OPT_REAL, "real", "X", &p->real, "a number"},
            {OPT_LIST, "list", "WORD", &p->list, "words"},
        };

        err = opt_parse(opts, COUNT(opts), argc, argv, p->words, 2, &p->n_words,
                        &p->help, &p->why);
    }
    if (strcmp(p->text, "unset") != 0) { /* argv goes away */
        static char kept[64];

        (void)snprintf(kept, sizeof kept, "%s", p->text);
        p->text = kept;
    }
    return err;
}

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void values_stand_after_a_space_or_an_equals_sign(void **state)
{
    parsed p;

    (void)state;
    assert_ok(parse(
        &p, ARGS("--size", "12", "--real=-1.5e3", "--flag", "--text=a=b")));
    assert_true(p.flag && p.size == 12 && p.real == -1500);
    assert_string_equal(p.text, "a=b");
    assert_int_equal(p.n_words, 0);
    assert_ok(parse(&p, ARGS("--size=0", "--real", "-2", "--text", "--flag")));
    assert_true(!p.flag && p.size == 0 && p.real == -2);
    assert_string_equal(p.text, "--flag");
    assert_ok(parse(&p, ARGS("--text=")));
    assert_string_equal(p.text, "");
}

static void without_arguments_nothing_changes(void **state)
{
    parsed p;

    (void)state;
    assert_ok(parse(&p, (const char *const[]){NULL}));
    assert_true(!p.flag && p.size == 77 && p.real == 7.5 && p.n_words == 0 &&
                !p.help);
    assert_string_equal(p.text, "unset");
}

static void words_are_counted_and_kept_in_order(void **state)
{
    parsed p;

    (void)state;
    assert_ok(parse(&p, ARGS("one", "--flag", "-")));
    assert_int_equal(p.n_words, 2);
    assert_true(p.flag);
}

static void a_list_takes_every_value_in_order(void **state)
{
    char list[] = "--list", other[] = "--list=b", flag[] = "--flag";
    char first[] = "a", third[] = "--flag", program[] = "deepafl";
    char *argv[] = {program, list, first, flag, other, list, third};
    opt_list got = {0};
    bool given = false;
    size_t n_words = 0;
    int help = 0;
    dafl_why why = {""};
    const opt opts[] = {{OPT_LIST, "list", "WORD", &got, "words"},
                        {OPT_FLAG, "flag", NULL, &given, "a flag"}};

    (void)state;
    assert_ok(opt_parse(opts, COUNT(opts), COUNT(argv), argv, NULL, 0, &n_words,
                        &help, &why));
    assert_int_equal(got.n, 3);
    assert_string_equal(got.at[0], "a");
    assert_string_equal(got.at[1], "b");
    assert_string_equal(got.at[2], "--flag");
    assert_true(given);
}

static void a_list_has_room_for_so_many_and_no_more(void **state)
{
    static char *argv[OPT_LIST_MAX + 2];
    char program[] = "deepafl", value[] = "--list=x";
    opt_list got = {0};
    size_t n_words = 0;
    int help = 0;
    dafl_why why = {""};
    const opt opts[] = {{OPT_LIST, "list", "WORD", &got, "words"}};

    (void)state;
    argv[0] = program;
    for (size_t i = 1; i < COUNT(argv); i++)
        argv[i] = value;
    assert_ok(opt_parse(opts, 1, OPT_LIST_MAX + 1, argv, NULL, 0, &n_words,
                        &help, &why));
    assert_int_equal(got.n, OPT_LIST_MAX);
    got.n = 0;
    assert_int_equal(opt_parse(opts, 1, OPT_LIST_MAX + 2, argv, NULL, 0,
                               &n_words, &help, &why),
                     DAFL_ERR_INPUT);
    assert_says(&why, "--list is given more than 256 times");
}

static void help_ends_the_parsing(void **state)
{
    parsed p;

    (void)state;
    assert_ok(parse(&p, ARGS("--size", "5", "--help", "--unknown")));
    assert_int_equal(p.help, 1);
    assert_int_equal(p.size, 5);
    assert_ok(parse(&p, ARGS("-h")));
    assert_int_equal(p.help, 1);
}

static void other_arguments_are_refused_with_the_reason(void **state)
{
    static const struct {
        const char *args[5];
        const char *reason;
    } bad[] = {
        {{"--unknown"}, "unknown option --unknown"},
        {{"--siz", "5"}, "unknown option --siz"},
        {{"--sizes", "5"}, "unknown option --sizes"},
        {{"--unknown=3"}, "unknown option --unknown"},
        {{"--"}, "unknown option --"},
        {{"-s"}, "unknown option -s"},
        {{"--size"}, "--size needs a value: N"},
        {{"--flag", "--text"}, "--text needs a value: FILE"},
        {{"--flag=1"}, "--flag takes no value"},
        {{"--flag", "--flag"}, "--flag is given twice"},
        {{"--size", "1", "--size=1"}, "--size is given twice"},
        {{"--size", "-1"}, "--size: '-1' is not a whole number"},
        {{"--size", "1.0"}, "--size: '1.0' is not a whole number"},
        {{"--size="}, "--size: '' is not a whole number"},
        {{"--size", " 1"}, "is not a whole number"},
        {{"--size", "0x10"}, "is not a whole number"},
        {{"--size", "18446744073709551616"}, "is not a whole number"},
        {{"--list", "a", "--list"}, "--list needs a value: WORD"},
        {{"--real", "1,5"}, "--real: '1,5' is not a number"},
        {{"--real="}, "--real: '' is not a number"},
        {{"--real", "nan"}, "is not a number"},
        {{"--real", "inf"}, "is not a number"},
        {{"--real", "1e999"}, "is not a number"},
        {{"a", "b", "c"}, "'c' is one argument too many"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        parsed p;

        assert_int_equal(parse(&p, bad[i].args), DAFL_ERR_INPUT);
        assert_says(&p.why, bad[i].reason);
    }
}

static void the_table_is_the_help_text(void **state)
{
    static const opt opts[] = {
        {OPT_HEADING, NULL, NULL, NULL, "Things"},
        {OPT_FLAG, "flag", NULL, NULL, "a flag"},
        {OPT_TEXT, "text", "FILE", NULL, "a text\nof two lines"},
        {OPT_TEXT, "a-name-longer-than-its-column", "N", NULL, "below"},
    };
    static const char expected[] =
        "\nThings\n"
        "  --flag                      a flag\n"
        "  --text FILE                 a text\n"
        "                              of two lines\n"
        "  --a-name-longer-than-its-column N\n"
        "                              below\n";
    char text[sizeof expected + 100];
    size_t len;
    int saved = dup(1);
    FILE *file;

    (void)state;
    (void)fflush(stdout);
    assert_non_null(freopen(at("help"), "w", stdout));
    opt_print_help(opts, COUNT(opts));
    (void)fflush(stdout);
    assert_true(dup2(saved, 1) == 1);
    (void)close(saved);
    file = fopen(at("help"), "r");
    assert_non_null(file);
    len = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[len] = '\0';
    assert_string_equal(text, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_stand_after_a_space_or_an_equals_sign),
        cmocka_unit_test(without_arguments_nothing_changes),
        cmocka_unit_test(words_are_counted_and_kept_in_order),
        cmocka_unit_test(a_list_takes_every_value_in_order),
        cmocka_unit_test(a_list_has_room_for_so_many_and_no_more),
        cmocka_unit_test(help_ends_the_parsing),
        cmocka_unit_test(other_arguments_are_refused_with_the_reason),
        CASE_IN_DIR(the_table_is_the_help_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
