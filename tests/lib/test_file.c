/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/check.h"
#include "lib/file.h"

static dafl_bytes text(const char *s)
{
    return (dafl_bytes){(const uint8_t *)s, strlen(s)};
}

static void put(const char *path, const char *content)
{
    dafl_bytes part = text(content);

    assert_int_equal(dafl_file_replace(path, &part, 1, NULL), DAFL_OK);
}

static void assert_holds(const char *path, const char *content)
{
    dafl_map map;

    assert_int_equal(dafl_map_open(&map, path, NULL), DAFL_OK);
    assert_int_equal(map.bytes.len, strlen(content));
    if (map.bytes.len > 0)
        assert_memory_equal(map.bytes.ptr, content, map.bytes.len);
    dafl_map_close(&map);
}

static void assert_map_refused(const char *path, const char *reason)
{
    dafl_map map = {{NULL, 7}};
    dafl_why why;

    assert_int_equal(dafl_map_open(&map, path, &why), DAFL_ERR_INPUT);
    assert_non_null(strstr(why.text, reason));
    assert_int_equal(strncmp(why.text, path, strlen(path)), 0);
    assert_int_equal(map.bytes.len, 7); /* outputs only on success */
}

/* Both questions, asked about the same target, get the same answer. */
static void assert_write_refused(const char *path, const char *reason)
{
    dafl_bytes part = text("new");
    dafl_why why;

    assert_int_equal(dafl_file_check_writable(path, &why), DAFL_ERR_INPUT);
    assert_non_null(strstr(why.text, reason));
    assert_int_equal(dafl_file_replace(path, &part, 1, &why), DAFL_ERR_INPUT);
    assert_non_null(strstr(why.text, reason));
    assert_int_equal(dafl_file_replace(path, &part, 1, NULL), DAFL_ERR_INPUT);
}

static void replace_writes_the_parts_in_order(void **state)
{
    dafl_bytes parts[] = {text("one "), {NULL, 0}, text("two "), text("three")};

    (void)state;
    assert_int_equal(dafl_file_replace(at("a"), parts, 4, NULL), DAFL_OK);
    assert_holds(at("a"), "one two three");
    assert_int_equal(count_names(0), 1);
}

static void replace_of_no_parts_is_an_empty_file(void **state)
{
    dafl_map map = {{NULL, 7}};

    (void)state;
    assert_int_equal(dafl_file_replace(at("a"), NULL, 0, NULL), DAFL_OK);
    assert_int_equal(dafl_map_open(&map, at("a"), NULL), DAFL_OK);
    assert_null(map.bytes.ptr);
    assert_int_equal(map.bytes.len, 0);
    dafl_map_close(&map);
    dafl_map_close(NULL);
}

static void replace_overwrites_even_a_read_only_file(void **state)
{
    (void)state;
    put(at("a"), "a longer old content");
    assert_int_equal(chmod(at("a"), 0444), 0);
    put(at("a"), "new");
    assert_holds(at("a"), "new");
    assert_int_equal(count_names(0), 1);
}

static void replace_replaces_a_link_and_not_its_target(void **state)
{
    (void)state;
    put(at("target"), "old");
    assert_int_equal(symlink("target", at("link")), 0);
    put(at("link"), "new");
    assert_holds(at("link"), "new");
    assert_holds(at("target"), "old");
}

static void replace_works_in_the_current_directory(void **state)
{
    char before[PATH_MAX];

    (void)state;
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(dir), 0);
    put("plain", "here");
    assert_int_equal(dafl_file_check_writable("plain", NULL), DAFL_OK);
    assert_int_equal(chdir(before), 0);
    assert_holds(at("plain"), "here");
}

static void a_new_file_gets_0644_less_the_umask(void **state)
{
    static const mode_t masks[] = {0, 022, 027, 077};

    (void)state;
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
        mode_t before = umask(masks[i]);
        struct stat st;

        put(at("a"), "x");
        assert_int_equal(umask(before), masks[i]); /* and leaves it alone */
        assert_int_equal(stat(at("a"), &st), 0);
        assert_int_equal(st.st_mode & 0777, 0644 & ~masks[i]);
    }
}

static void map_refuses_what_is_not_a_regular_file(void **state)
{
    (void)state;
    assert_map_refused(at("missing"), "No such file");
    assert_map_refused("", "No such file");
    assert_map_refused(dir, "is a directory");
    assert_map_refused("/dev/null", "is a device or pipe");
    assert_int_equal(mkfifo(at("pipe"), 0600), 0);
    assert_map_refused(at("pipe"), "is a device or pipe"); /* and no waiting */
}

static void map_is_a_view_of_the_file_as_it_was(void **state)
{
    dafl_map map;

    (void)state;
    put(at("a"), "old");
    assert_int_equal(dafl_map_open(&map, at("a"), NULL), DAFL_OK);
    put(at("a"), "newer");
    assert_int_equal(map.bytes.len, 3);
    assert_memory_equal(map.bytes.ptr, "old", 3);
    dafl_map_close(&map);
    assert_null(map.bytes.ptr);
    dafl_map_close(&map); /* twice is harmless */
}

static void targets_that_cannot_be_files_are_refused(void **state)
{
    char long_name[NAME_MAX + 1];

    (void)state;
    put(at("file"), "old");
    assert_int_equal(mkdir(at("sub"), 0700), 0);
    assert_int_equal(mkfifo(at("pipe"), 0600), 0);
    assert_int_equal(symlink("/dev/null", at("null")), 0);
    memset(long_name, 'x', NAME_MAX);
    long_name[NAME_MAX] = '\0';
    assert_write_refused("", "is empty");
    assert_write_refused(at("sub"), "is a directory");
    assert_write_refused(at("sub/"), "is a directory");
    assert_write_refused(at("pipe"), "is a device or pipe");
    assert_write_refused("/dev/null", "is a device or pipe");
    assert_write_refused(at("null"), "is a device or pipe");
    assert_write_refused(at("missing/a"), "No such file");
    assert_write_refused(at("missing/"), "No such file");
    assert_write_refused(at("file/a"), "Not a directory");
    assert_write_refused(at(long_name), "File name too long");
    assert_holds(at("file"), "old");
    assert_int_equal(count_names(0), 4);
}

static void a_directory_without_permission_is_refused(void **state)
{
    (void)state;
    put(at("a"), "old");
    if (geteuid() == 0) { /* permissions do not bind root */
        assert_write_refused("/proc/self/a", "cannot write");
        return;
    }
    assert_int_equal(chmod(dir, 0500), 0);
    assert_write_refused(at("a"), "Permission denied");
    assert_write_refused(at("b"), "Permission denied");
    assert_int_equal(chmod(dir, 0700), 0);
    assert_holds(at("a"), "old");
}

static void check_writable_leaves_nothing_behind(void **state)
{
    (void)state;
    assert_int_equal(dafl_file_check_writable(at("a"), NULL), DAFL_OK);
    assert_int_equal(count_names(0), 0);
    put(at("a"), "old");
    assert_int_equal(dafl_file_check_writable(at("a"), NULL), DAFL_OK);
    assert_holds(at("a"), "old");
    assert_int_equal(count_names(0), 1);
}

/* A file size limit stands for a full disk: the write stops half way. The
 * limit is per process, so a child meets it. */
static void a_write_that_stops_half_way_keeps_the_old_file(void **state)
{
    static uint8_t big[100000];
    int status = 0;
    pid_t child = 0;

    (void)state;
    put(at("a"), "old");
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit limit = {4096, 4096};
        dafl_bytes part = {big, sizeof big};
        dafl_why why = {""};
        dafl_err err = DAFL_OK;

        if (signal(SIGXFSZ, SIG_IGN) == SIG_ERR ||
            setrlimit(RLIMIT_FSIZE, &limit) != 0)
            _exit(2);
        err = dafl_file_replace(at("a"), &part, 1, &why);
        _exit(err == DAFL_ERR_SYS && strstr(why.text, "too large") ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_holds(at("a"), "old");
    assert_int_equal(count_names(0), 1);
}

static void no_descriptor_is_left_open(void **state)
{
    int before = open("/dev/null", O_RDONLY | O_CLOEXEC), after = 0;
    dafl_map map;

    (void)state;
    (void)close(before);
    put(at("a"), "x");
    assert_int_equal(dafl_map_open(&map, at("a"), NULL), DAFL_OK);
    assert_int_equal(dafl_map_open(&map, dir, NULL), DAFL_ERR_INPUT);
    assert_int_equal(dafl_file_check_writable(at("a"), NULL), DAFL_OK);
    assert_int_equal(dafl_file_check_writable(dir, NULL), DAFL_ERR_INPUT);
    after = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)close(after);
    dafl_map_close(&map);
    assert_int_equal(before, after); /* the lowest free number is the same */
}

#define CASE(f) CASE_IN_DIR(f)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(replace_writes_the_parts_in_order),
        CASE(replace_of_no_parts_is_an_empty_file),
        CASE(replace_overwrites_even_a_read_only_file),
        CASE(replace_replaces_a_link_and_not_its_target),
        CASE(replace_works_in_the_current_directory),
        CASE(a_new_file_gets_0644_less_the_umask),
        CASE(map_refuses_what_is_not_a_regular_file),
        CASE(map_is_a_view_of_the_file_as_it_was),
        CASE(targets_that_cannot_be_files_are_refused),
        CASE(a_directory_without_permission_is_refused),
        CASE(check_writable_leaves_nothing_behind),
        CASE(a_write_that_stops_half_way_keeps_the_old_file),
        CASE(no_descriptor_is_left_open),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
