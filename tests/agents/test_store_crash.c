/* SPDX-License-Identifier: Apache-2.0 */
/* Properties R3 and D6 on a real disk: whatever ends a party, what it was told
 * to be durable is there when it comes back, in order. */
#define _GNU_SOURCE /* unshare */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/agents/disk.h"
#include "tests/agents/store_party.h"

/* In a child a failed assertion must not go on with the next test. */
static pid_t start_child(void)
{
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0)
        (void)setenv("CMOCKA_TEST_ABORT", "1", 1);
    return child;
}

/* Its exit status; a signal other than `allowed` fails the test. */
static int end_child(pid_t child, int allowed)
{
    int status = 0;

    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    assert_int_equal(WTERMSIG(status), allowed);
    return -1;
}

/* The last of up to `wait` numbers that came through the pipe. */
static size_t last_told(int fd, size_t acked, size_t wait)
{
    size_t n = 0;

    for (; wait > 0 && read(fd, &n, sizeof n) == sizeof n; wait--)
        acked = n;
    return acked;
}

/* ---- kill -9 ---- */

#define KILLS 200

static size_t run_and_kill(size_t acked)
{
    /* From the start, while it opens; or some records later. */
    size_t records = random_u64() % 3 == 0 ? 0 : random_size(1, 20);
    struct timespec wait = {
        0, (long)random_size(0, records > 0 ? 1000000 : 8000000)};
    int pipe_fds[2];
    pid_t child = 0;

    assert_int_equal(pipe(pipe_fds), 0);
    child = start_child();
    if (child == 0) {
        dafl_why why = {""};
        (void)close(pipe_fds[0]);
        if (party_run(at("party"), SIZE_MAX, NULL, pipe_fds[1], &why) !=
            DAFL_OK)
            fprintf(stderr, "%s\n", why.text);
        _exit(1); /* not before it is killed */
    }
    (void)close(pipe_fds[1]);
    acked = last_told(pipe_fds[0], acked, records);
    (void)nanosleep(&wait, NULL);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(end_child(child, SIGKILL), -1);
    acked = last_told(pipe_fds[0], acked, SIZE_MAX);
    (void)close(pipe_fds[0]);
    return acked;
}

static void what_was_flushed_survives_a_kill(void **state)
{
    size_t acked = 0, told = 0, more = 0;

    (void)state;
    for (int i = 0; i < KILLS; i++) {
        size_t before = acked;
        if (i % 25 == 0) { /* or reading it all again takes long */
            remove_all(at("party"));
            acked = before = 0;
        }
        acked = run_and_kill(acked);
        told += acked > before;
        more += party_check(at("party"), acked) > acked;
    }
    print_message("%d kills: %zu after some flush, %zu between a commit and "
                  "its report\n",
                  KILLS, told, more);
    assert_true(told > KILLS / 2 && more > 0);
    remove_all(at("party"));
}

/* ---- power ---- */

/* Run `from` until the power goes at call `k`, leaving at("cut"). False when
 * the party finished before. */
static bool run_and_cut(const snap *from, long k, size_t until, size_t *acked)
{
    uint64_t seed = random_u64();
    int pipe_fds[2], status = 0;
    pid_t child = 0;

    snap_put(from, at("party"));
    remove_all(at("cut"));
    assert_int_equal(mkdir(at("cut"), 0700), 0);
    assert_int_equal(pipe(pipe_fds), 0);
    child = start_child();
    if (child == 0) {
        dafl_why why = {""};
        char party[512], cut[512];
        (void)close(pipe_fds[0]);
        (void)snprintf(party, sizeof party, "%s", at("party"));
        (void)snprintf(cut, sizeof cut, "%s", at("cut"));
        disk_cut_power(party, cut, k, seed);
        if (party_run(party, until, NULL, pipe_fds[1], &why) == DAFL_OK)
            _exit(1);
        fprintf(stderr, "%s\n", why.text);
        _exit(2);
    }
    (void)close(pipe_fds[1]);
    *acked = last_told(pipe_fds[0], *acked, SIZE_MAX);
    (void)close(pipe_fds[0]);
    status = end_child(child, 0);
    assert_true(status == 0 || status == 1);
    return status == 0;
}

/* What is left can also be gone on with; a part of them, for the time it
 * takes. */
static void check_cut(size_t acked)
{
    size_t n = party_check(at("cut"), acked);

    if (random_u64() % 4 != 0)
        return;
    assert_ok(party_run(at("cut"), n + 3, &acked, -1, NULL));
    assert_int_equal(party_check(at("cut"), acked), n + 3);
}

/* A store with n records, closed or (as if by kill -9) not. */
static void make_base(snap *out, size_t n, bool closed)
{
    store *s = NULL;

    remove_all(at("party"));
    assert_ok(party_run(at("party"), n, NULL, -1, NULL));
    if (!closed) {
        pid_t child = start_child();
        if (child == 0) {
            uint8_t record[PARTY_RECORD_MAX];
            dafl_bytes bytes = {record, party_record(record, n)};
            assert_ok(party_open(&s, at("party"), NULL));
            assert_ok(store_append(s, bytes));
            assert_ok(store_flush(s));
            _exit(0);
        }
        assert_int_equal(end_child(child, 0), 0);
    }
    snap_take(out, at("party"));
}

static void what_was_flushed_survives_a_power_cut_at_any_call(void **state)
{
    /* None; in the middle of an enrolment; with a log; before the next one. */
    static const struct {
        size_t n, until;
        bool closed;
    } bases[] = {{0, 33, true}, {5, 8, true}, {5, 8, false}, {13, 15, true}};
    long cuts = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(bases); i++) {
        bool on = true;
        snap base = {0};
        if (bases[i].n > 0)
            make_base(&base, bases[i].n, bases[i].closed);
        for (long k = 0; on; k++) {
            /* More while the store is made, where names come and go. */
            int draws = i > 0 ? 2 : k < 60 ? 4 : 1;
            for (int draw = 0; draw < draws && on; draw++) {
                size_t acked = bases[i].n;
                on = run_and_cut(&base, k, bases[i].until, &acked);
                if (on)
                    check_cut(acked);
                cuts += on;
            }
        }
        snap_drop(&base);
    }
    print_message("%ld power cuts\n", cuts);
    assert_true(cuts > 200);
    remove_all(at("party"));
    remove_all(at("cut"));
}

static void power_cuts_in_a_row_lose_nothing(void **state)
{
    size_t acked = 0;
    snap left = {0};

    (void)state;
    for (int i = 0; i < 150; i++) {
        long k = (long)random_size(0, i % 3 == 0 ? 40 : 12);
        if (!run_and_cut(&left, k, acked + 10, &acked)) {
            snap_drop(&left);
            snap_take(&left, at("party"));
            continue;
        }
        snap_drop(&left);
        snap_take(&left, at("cut"));
    }
    snap_put(&left, at("cut"));
    assert_true(party_check(at("cut"), acked) > 0);
    snap_drop(&left);
    remove_all(at("party"));
    remove_all(at("cut"));
}

/* ---- calls that fail ---- */

static void assert_error_names(const dafl_why *why, disk_fault fault)
{
    assert_says(why, dir); /* "party", a file in it, or where its name is */
    assert_says(why, strerror(fault == DISK_FULL ? ENOSPC : EIO));
}

/* Let each call of a run fail in turn. */
static long fail_each(const snap *base, size_t n, size_t until,
                      disk_fault fault)
{
    const char *failed = "";
    bool closing = false;
    long k = 0;

    for (; failed != NULL; k++) {
        size_t acked = n;
        dafl_why why = {""};
        dafl_err err;

        snap_put(base, at("party"));
        disk_fail(fault, k);
        err = party_run(at("party"), until, &acked, -1, &why);
        failed = disk_heal();
        if (err == DAFL_OK) {
            /* The last thing that can fail is closing, with all on disk. */
            assert_int_equal(acked, until);
            closing |= failed != NULL && strcmp(failed, DISK_UNSEEN) != 0;
        } else {
            if (closing)
                fail_msg("call %ld: %s failed, and an earlier one unnoticed", k,
                         failed);
            assert_non_null(failed);
            assert_int_equal(err, DAFL_ERR_SYS);
            assert_error_names(&why, fault);
        }
        (void)party_check(at("party"), acked);
    }
    return k;
}

static void every_failing_call_is_an_error_that_stays(void **state)
{
    static const disk_fault faults[] = {DISK_ERROR, DISK_TORN, DISK_FULL};
    snap none = {0}, some = {0}, left = {0};
    long calls = 0;

    (void)state;
    make_base(&some, 6, true);
    make_base(&left, 7, false);
    for (size_t i = 0; i < COUNT(faults); i++) {
        calls += fail_each(&none, 0, 5, faults[i]);
        calls += fail_each(&some, 6, 15, faults[i]);
        calls += fail_each(&left, 8, 10, faults[i]);
    }
    print_message("%ld calls failed\n", calls);
    assert_true(calls > 100);
    snap_drop(&some);
    snap_drop(&left);
    remove_all(at("party"));
}

/* ---- a disk that is really full ---- */

/* In a child: run into the wall, then look at what was acknowledged. */
static void file_size_limit_is_an_error(void **state)
{
    pid_t child = 0;

    (void)state;
    child = start_child();
    if (child == 0) {
        struct rlimit limit = {200000, RLIM_INFINITY};
        size_t acked = 0;
        dafl_why why = {""};

        assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        assert_int_equal(party_run(at("party"), 10000, &acked, -1, &why),
                         DAFL_ERR_SYS);
        assert_says(&why, at("party/journal.db"));
        assert_says(&why, strerror(EFBIG));
        limit.rlim_cur = RLIM_INFINITY;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        assert_true(acked > PARTY_RECORDS);
        (void)party_check(at("party"), acked);
        _exit(0);
    }
    assert_int_equal(end_child(child, 0), 0);
    remove_all(at("party"));
}

/* A file system that this process alone sees; false when not permitted. */
static bool mount_small(const char *path)
{
    return mkdir(path, 0700) == 0 && unshare(CLONE_NEWNS) == 0 &&
           mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", path, "tmpfs", 0, "size=1m,mode=700") == 0;
}

static void full_disk_is_an_error(void **state)
{
    pid_t child = 0;
    int status = 0;

    (void)state;
    child = start_child();
    if (child == 0) {
        size_t acked = 0;
        dafl_why why = {""};

        if (!mount_small(at("full")))
            _exit(77);
        assert_int_equal(party_run(at("full/party"), 10000, &acked, -1, &why),
                         DAFL_ERR_SYS);
        assert_says(&why, at("full/party/"));
        assert_says(&why, strerror(ENOSPC));
        assert_true(acked > PARTY_RECORDS);
        assert_int_equal(
            mount("none", at("full"), "tmpfs", MS_REMOUNT, "size=8m"), 0);
        acked = party_check(at("full/party"), acked);
        assert_ok(party_run(at("full/party"), acked + 5, &acked, -1, &why));
        _exit(0);
    }
    status = end_child(child, 0);
    (void)rmdir(at("full"));
    if (status == 77)
        skip();
    assert_int_equal(status, 0);
}

static void read_only_disk_is_an_error(void **state)
{
    pid_t child = 0;
    int status = 0;

    (void)state;
    child = start_child();
    if (child == 0) {
        dafl_why why = {""};

        if (!mount_small(at("full")))
            _exit(77);
        assert_ok(party_run(at("full/party"), 5, NULL, -1, NULL));
        assert_int_equal(
            mount("none", at("full"), "tmpfs", MS_REMOUNT | MS_RDONLY, ""), 0);
        assert_int_equal(party_run(at("full/party"), 5, NULL, -1, &why),
                         DAFL_ERR_SYS);
        assert_says(&why, at("full/party/"));
        assert_says(&why, strerror(EROFS));
        assert_int_equal(party_run(at("full/other"), 5, NULL, -1, &why),
                         DAFL_ERR_SYS);
        assert_says(&why, strerror(EROFS));
        _exit(0);
    }
    status = end_child(child, 0);
    (void)rmdir(at("full"));
    if (status == 77)
        skip();
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE_IN_DIR(what_was_flushed_survives_a_kill),
        CASE_IN_DIR(what_was_flushed_survives_a_power_cut_at_any_call),
        CASE_IN_DIR(power_cuts_in_a_row_lose_nothing),
        CASE_IN_DIR(every_failing_call_is_an_error_that_stays),
        CASE_IN_DIR(file_size_limit_is_an_error),
        CASE_IN_DIR(full_disk_is_an_error),
        CASE_IN_DIR(read_only_disk_is_an_error),
    };

    check_seed();
    /* Thousands of syncs, whose meaning is played here: memory is enough. */
    if (access("/dev/shm", W_OK) == 0)
        (void)setenv("TMPDIR", "/dev/shm", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
