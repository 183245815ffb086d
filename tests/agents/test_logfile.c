/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "agents/logfile.h"
#include "tests/agents/disk.h"
#include "tests/agents/store_party.h"

static dafl_bytes text(const char *s)
{
    return (dafl_bytes){(const uint8_t *)s, strlen(s)};
}

static logfile *open_ok(const char *path)
{
    dafl_why why = {""};
    logfile *log = NULL;

    if (logfile_open(&log, path, &why) != DAFL_OK)
        fail_msg("%s", why.text);
    return log;
}

static void assert_last(const logfile *log, const char *line, size_t cut)
{
    dafl_bytes last = logfile_last(log);

    assert_int_equal(last.len, strlen(line));
    if (last.len > 0)
        assert_memory_equal(last.ptr, line, last.len);
    assert_int_equal(logfile_cut(log), cut);
}

static void assert_holds(const char *path, const char *content)
{
    char found[256] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    assert_true(read(fd, found, sizeof found - 1) >= 0);
    (void)close(fd);
    assert_string_equal(found, content);
}

static void lines_are_appended_and_the_last_is_read_back(void **state)
{
    struct stat st;
    mode_t before = umask(0);
    logfile *log = open_ok(at("log"));

    (void)state;
    (void)umask(before);
    assert_null(logfile_last(log).ptr);
    assert_int_equal(stat(at("log"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_ok(logfile_write(log, text("one")));
    assert_ok(logfile_write(log, text("two and more")));
    assert_ok(logfile_sync(log));
    logfile_close(&log);
    logfile_close(&log); /* harmless */
    log = open_ok(at("log"));
    assert_last(log, "two and more", 0);
    assert_ok(logfile_write(log, text("")));
    assert_string_equal(logfile_why(log), "");
    logfile_close(&log);
    log = open_ok(at("log"));
    assert_last(log, "", 0);
    assert_non_null(logfile_last(log).ptr); /* an empty line is one */
    logfile_close(&log);
    assert_holds(at("log"), "one\ntwo and more\n\n");
}

static void torn_line_is_cut_off_and_reported(void **state)
{
    static const struct {
        const char *found, *last, *left;
        size_t cut;
    } cases[] = {{"one\ntwo\nthr", "two", "one\ntwo\n", 3},
                 {"one\nt", "one", "one\n", 1},
                 {"torn", "", "", 4},
                 {"\nx", "", "\n", 1},
                 {"one\n", "one", "one\n", 0},
                 {"", "", "", 0}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        logfile *log = NULL;
        write_file(at("log"), cases[i].found, strlen(cases[i].found));
        log = open_ok(at("log"));
        assert_last(log, cases[i].last, cases[i].cut);
        logfile_close(&log);
        assert_holds(at("log"), cases[i].left);
        log = open_ok(at("log"));
        assert_last(log, cases[i].last, 0);
        logfile_close(&log);
    }
}

/* A whole line of `len` bytes and a torn one, behind many others. */
static void write_long(const char *path, size_t len, size_t torn)
{
    size_t all = 3000000 + len + 1 + torn;
    char *b = malloc(all);

    assert_non_null(b);
    memset(b, 'x', all);
    for (size_t i = 999; i < 3000000; i += 1000)
        b[i] = '\n';
    b[3000000 + len] = '\n';
    write_file(path, b, all);
    free(b);
}

static void longest_lines_are_read_back(void **state)
{
    static const size_t lens[] = {0, 1, 4096, LOGFILE_LINE_MAX - 1,
                                  LOGFILE_LINE_MAX};
    logfile *log = NULL;
    dafl_why why = {""};

    (void)state;
    for (size_t i = 0; i < COUNT(lens); i++) {
        for (size_t j = 0; j < COUNT(lens); j++) {
            write_long(at("log"), lens[i], lens[j]);
            log = open_ok(at("log"));
            assert_int_equal(logfile_last(log).len, lens[i]);
            assert_int_equal(logfile_cut(log), lens[j]);
            logfile_close(&log);
        }
    }
    write_long(at("log"), 3 * LOGFILE_LINE_MAX, 0);
    assert_int_equal(logfile_open(&log, at("log"), &why), DAFL_ERR_INPUT);
    assert_says(&why, "is not a log");
    write_long(at("log"), 5, 3 * LOGFILE_LINE_MAX); /* nothing is cut of it */
    assert_int_equal(logfile_open(&log, at("log"), &why), DAFL_ERR_INPUT);
    assert_null(log);
}

static void what_is_not_one_line_ends_a_log(void **state)
{
    char *big = calloc(LOGFILE_LINE_MAX + 1, 1);
    const dafl_bytes bad[] = {text("a\nb"),
                              text("\n"),
                              {(const uint8_t *)"a\0b", 3},
                              {(const uint8_t *)big, LOGFILE_LINE_MAX + 1}};

    (void)state;
    assert_non_null(big);
    memset(big, 'x', LOGFILE_LINE_MAX + 1);
    for (size_t i = 0; i < COUNT(bad); i++) {
        logfile *log = open_ok(at("log"));
        assert_int_equal(logfile_write(log, bad[i]), DAFL_ERR_ARG);
        assert_int_equal(logfile_write(log, text("fine")), DAFL_ERR_ARG);
        assert_int_equal(logfile_sync(log), DAFL_ERR_ARG);
        assert_non_null(strstr(logfile_why(log), at("log")));
        logfile_close(&log);
    }
    assert_holds(at("log"), "");
    free(big);
}

static void assert_refused(const char *path, dafl_err err, const char *words)
{
    logfile *log = NULL;
    dafl_why why = {""};

    assert_int_equal(logfile_open(&log, path, &why), err);
    assert_null(log);
    assert_says(&why, words);
    assert_says(&why, path);
}

static void what_cannot_be_a_log_is_refused(void **state)
{
    logfile *log = NULL;

    (void)state;
    write_file(at("log"), "one\n", 4);
    assert_int_equal(chmod(at("log"), 0644), 0); /* an auditor may read */
    log = open_ok(at("log"));
    assert_refused(at("log"), DAFL_ERR_INPUT, "another process");
    logfile_close(&log);
    assert_int_equal(chmod(at("log"), 0620), 0);
    assert_refused(at("log"), DAFL_ERR_INPUT, "others can write");
    assert_int_equal(chmod(at("log"), 0600), 0);
    assert_int_equal(symlink("log", at("link")), 0);
    assert_refused(at("link"), DAFL_ERR_INPUT, "is a symbolic link");
    assert_int_equal(mkfifo(at("pipe"), 0600), 0);
    assert_refused(at("pipe"), DAFL_ERR_INPUT, "not a regular file");
    assert_refused(dir, DAFL_ERR_SYS, "Is a directory");
    assert_refused(at("missing/log"), DAFL_ERR_SYS, "No such file");
    assert_holds(at("log"), "one\n");
}

/* ---- failures ---- */

/* Lines from .. to-1 as long as it goes. Returns how many are durable. */
static size_t write_lines(logfile *log, size_t from, size_t to, dafl_err *err)
{
    size_t synced = from;

    *err = DAFL_OK;
    for (size_t i = from; i < to; i++) {
        char line[64];
        (void)snprintf(line, sizeof line, "line %zu", i);
        *err = logfile_write(log, text(line));
        if (*err == DAFL_OK)
            *err = logfile_sync(log);
        if (*err != DAFL_OK)
            return synced;
        synced = i + 1;
    }
    return synced;
}

/* Whole lines 0, 1, .. n-1; returns n. */
static size_t check_lines(const char *path)
{
    logfile *log = open_ok(path);
    size_t n = 0;
    char line[64];
    FILE *f = NULL;

    logfile_close(&log);
    f = fopen(path, "re");
    assert_non_null(f);
    while (fgets(line, sizeof line, f) != NULL) {
        char expected[64];
        (void)snprintf(expected, sizeof expected, "line %zu\n", n++);
        assert_string_equal(line, expected);
    }
    (void)fclose(f);
    return n;
}

static void every_failing_call_is_an_error_that_stays(void **state)
{
    static const disk_fault faults[] = {DISK_ERROR, DISK_TORN, DISK_FULL};
    long failures = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(faults); i++) {
        const char *failed = "";
        for (long k = 0; failed != NULL; k++) {
            logfile *log = NULL;
            dafl_why why = {""};
            dafl_err err = DAFL_OK;
            size_t synced = 0;
            const char *said = strerror(faults[i] == DISK_FULL ? ENOSPC : EIO);

            write_file(at("log"), "torn", 4);
            disk_fail(faults[i], k);
            err = logfile_open(&log, at("log"), &why);
            if (err == DAFL_OK)
                synced = write_lines(log, 0, 6, &err);
            failed = disk_heal();
            failures += failed != NULL;
            assert_int_equal(err, failed != NULL ? DAFL_ERR_SYS : DAFL_OK);
            if (log != NULL && failed != NULL) {
                assert_int_equal(logfile_write(log, text("x")), DAFL_ERR_SYS);
                assert_int_equal(logfile_sync(log), DAFL_ERR_SYS);
                assert_non_null(strstr(logfile_why(log), at("log")));
                assert_non_null(strstr(logfile_why(log), said));
            } else if (failed != NULL) {
                assert_says(&why, said);
            }
            logfile_close(&log);
            assert_true(check_lines(at("log")) >= synced);
        }
    }
    assert_true(failures > 30);
}

static void synced_lines_survive_a_power_cut_at_any_call(void **state)
{
    bool on = true;
    long cuts = 0;

    (void)state;
    for (long k = 0; on; k++) {
        int fds[2], status = 0;
        uint64_t seed = random_u64();
        size_t synced = 0;
        pid_t child = 0;

        assert_int_equal(mkdir(at("logs"), 0700), 0);
        assert_int_equal(mkdir(at("cut"), 0700), 0);
        assert_int_equal(pipe(fds), 0);
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            char from[512], to[512];
            logfile *log = NULL;
            dafl_err err = DAFL_OK;
            (void)snprintf(from, sizeof from, "%s", at("logs"));
            (void)snprintf(to, sizeof to, "%s", at("cut"));
            disk_cut_power(from, to, k, seed);
            if (logfile_open(&log, at("logs/log"), NULL) != DAFL_OK)
                _exit(2);
            for (size_t n = 1; n <= 5 && err == DAFL_OK; n++) {
                (void)write_lines(log, n - 1, n, &err);
                if (write(fds[1], &n, sizeof n) != sizeof n)
                    _exit(2);
            }
            _exit(err == DAFL_OK ? 1 : 2);
        }
        (void)close(fds[1]);
        while (read(fds[0], &synced, sizeof synced) == sizeof synced)
            ;
        (void)close(fds[0]);
        assert_int_equal(waitpid(child, &status, 0), child);
        on = status == 0;
        assert_true(on || WEXITSTATUS(status) == 1);
        cuts += on;
        if (on)
            assert_true(check_lines(at("cut/log")) >= synced);
        remove_all(at("logs"));
        remove_all(at("cut"));
    }
    assert_true(cuts > 9);
}

static void synced_lines_survive_a_kill(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++) {
        struct timespec wait = {0, (long)random_size(0, 500000)};
        size_t told = 0, n = 0;
        int fds[2];
        pid_t child = 0;

        write_file(at("log"), "", 0);
        assert_int_equal(pipe(fds), 0);
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            logfile *log = NULL;
            if (logfile_open(&log, at("log"), NULL) != DAFL_OK)
                _exit(1);
            for (;; n++) {
                char line[64];
                (void)snprintf(line, sizeof line, "line %zu", n);
                if (logfile_write(log, text(line)) != DAFL_OK ||
                    logfile_sync(log) != DAFL_OK ||
                    write(fds[1], &n, sizeof n) != sizeof n)
                    _exit(1);
            }
        }
        (void)close(fds[1]);
        assert_int_equal(read(fds[0], &n, sizeof n), sizeof n);
        (void)nanosleep(&wait, NULL);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        do
            told = n + 1;
        while (read(fds[0], &n, sizeof n) == sizeof n);
        (void)close(fds[0]);
        assert_true(check_lines(at("log")) >= told);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE_IN_DIR(lines_are_appended_and_the_last_is_read_back),
        CASE_IN_DIR(torn_line_is_cut_off_and_reported),
        CASE_IN_DIR(longest_lines_are_read_back),
        CASE_IN_DIR(what_is_not_one_line_ends_a_log),
        CASE_IN_DIR(what_cannot_be_a_log_is_refused),
        CASE_IN_DIR(every_failing_call_is_an_error_that_stays),
        CASE_IN_DIR(synced_lines_survive_a_power_cut_at_any_call),
        CASE_IN_DIR(synced_lines_survive_a_kill),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
