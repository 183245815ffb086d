/* SPDX-License-Identifier: Apache-2.0 */
/* dafl_secret_alloc, and bulk memory: what the kernel was told about the
 * memory, and what is in it when it is given back. The munmap() below stands in
 * front of the C library's, also for libsodium. */
#define _DEFAULT_SOURCE

#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/crypto/bytes.h"
#include "lib/secret.h"

/* Memory whose contents matter when it is unmapped. */
static const uint8_t *volatile watched;
static volatile size_t watched_len;
static volatile bool unmapped, zeros;

int munmap(void *addr, size_t len)
{
    const uint8_t *begin = addr;

    if (watched != NULL && watched >= begin && watched < begin + len) {
        bool all = true;

        for (size_t i = 0; i < watched_len; i++)
            all = all && watched[i] == 0;
        unmapped = true;
        zeros = all;
    }
    return (int)syscall(SYS_munmap, addr, len);
}

static const size_t sizes[] = {1, 16, 32, 33, 64, 4095, 4096, 4097, 100000};

static void secrets_start_as_zeros_and_can_be_written(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        uint8_t *p = dafl_secret_alloc(sizes[i], 1);

        assert_non_null(p);
        assert_true(sodium_is_zero(p, sizes[i]));
        memset(p, 0xa5, sizes[i]);
        dafl_secret_free(p);
    }
}

static void free_wipes_the_secret(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        uint8_t *p = dafl_secret_alloc(1, sizes[i]);

        assert_non_null(p);
        memset(p, 0xa5, sizes[i]);
        watched_len = sizes[i];
        watched = p;
        unmapped = zeros = false;
        dafl_secret_free(p);
        watched = NULL;
        assert_true(unmapped);
        assert_true(zeros);
    }
}

static void nothing_can_be_freed_and_too_much_is_refused(void **state)
{
    (void)state;
    dafl_secret_free(NULL);
    dafl_secret_free(dafl_secret_alloc(0, 8));
    assert_null(dafl_secret_alloc(SIZE_MAX, 1));
    assert_null(dafl_secret_alloc(SIZE_MAX / 2, 3));
    assert_null(dafl_secret_alloc(2, SIZE_MAX));
    assert_null(dafl_secret_alloc((size_t)1 << 61, 8));
}

/* ---- guards ---- */

enum { READ_PAST, WRITE_PAST, WRITE_BEFORE_AND_FREE, WRITE_LAST_AND_FREE };

static void trespass(uint8_t *p, size_t len, int how)
{
    volatile uint8_t *v = p;

    switch (how) {
    case READ_PAST:
        (void)v[len];
        break;
    case WRITE_PAST:
        v[len] = 1;
        break;
    case WRITE_BEFORE_AND_FREE:
        (v - 1)[0] ^= 1;
        dafl_secret_free(p);
        break;
    default:
        v[len - 1] = 1;
        dafl_secret_free(p);
    }
}

/* The signal that ends a child doing that; 0 when it lives. */
static int death_of(size_t len, int how)
{
    uint8_t *p = dafl_secret_alloc(1, len);
    int status = 0;
    pid_t child;

    assert_non_null(p);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static const struct rlimit no_core = {0, 0};

        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)signal(SIGSEGV, SIG_DFL);
        (void)signal(SIGABRT, SIG_DFL);
        trespass(p, len, how);
        _exit(0);
    }
    assert_true(waitpid(child, &status, 0) == child);
    dafl_secret_free(p);
    if (WIFEXITED(status)) {
        assert_int_equal(WEXITSTATUS(status), 0);
        return 0;
    }
    return WTERMSIG(status);
}

static void one_byte_past_the_end_is_death(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        assert_int_equal(death_of(sizes[i], READ_PAST), SIGSEGV);
        assert_int_equal(death_of(sizes[i], WRITE_PAST), SIGSEGV);
        assert_int_equal(death_of(sizes[i], WRITE_LAST_AND_FREE), 0);
    }
}

static void one_byte_before_the_start_is_death_when_freed(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++)
        assert_true(death_of(sizes[i], WRITE_BEFORE_AND_FREE) != 0);
}

/* ---- what the kernel was told ---- */

/* The VmFlags of the mapping that holds p; false without such a file. */
static bool flags_of(char *flags, size_t size, const void *p)
{
    FILE *f = fopen("/proc/self/smaps", "r");
    bool inside = false, found = false;
    char line[512];

    if (f == NULL)
        return false;
    while (!found && fgets(line, sizeof line, f) != NULL) {
        unsigned long begin, end;

        if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
            inside = (uintptr_t)p >= begin && (uintptr_t)p < end;
        else if (inside && strncmp(line, "VmFlags:", 8) == 0)
            found = snprintf(flags, size, "%s", line + 8) < (int)size;
    }
    (void)fclose(f);
    return found;
}

/* An ordinary page. */
static void *ordinary(void)
{
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(p != MAP_FAILED);
    return p;
}

/* Whether the limit allows it, asked by doing it; and looked at, because a
 * sanitizer makes mlock() do nothing. */
static bool may_lock(void)
{
    void *p = ordinary();
    char flags[256];
    bool locked = mlock(p, 4096) == 0 && flags_of(flags, sizeof flags, p) &&
                  strstr(flags, " lo") != NULL;

    (void)munmap(p, 4096);
    return locked;
}

static void secrets_are_kept_from_dumps_and_swap(void **state)
{
    bool lock = may_lock();
    void *secret = dafl_secret_alloc(1, 32), *other = ordinary();
    char flags[256], of_other[256];
    bool known;

    (void)state;
    assert_non_null(secret);
    known = flags_of(flags, sizeof flags, secret) &&
            flags_of(of_other, sizeof of_other, other);
    dafl_secret_free(secret);
    (void)munmap(other, 4096);
    if (!known) {
        print_message("no VmFlags in /proc/self/smaps here\n");
        skip();
    }
    assert_non_null(strstr(flags, " dd"));
    if (lock)
        assert_non_null(strstr(flags, " lo"));
    else
        print_message("no memory can be locked here\n");
    /* Not so of other memory, or the flags would say nothing. */
    assert_null(strstr(of_other, " dd"));
    assert_null(strstr(of_other, " lo"));
}

/* Whether a page is left out of core dumps; -1: not known. */
static int left_out(const void *p)
{
    char flags[256];

    return flags_of(flags, sizeof flags, p) ? strstr(flags, " dd") != NULL : -1;
}

static void large_bulk_is_kept_from_dumps(void **state)
{
    (void)state;
    for (size_t i = 0; i < 6; i++) {
        size_t len = DAFL_BULK_APART + i * i * i * 12345;
        uint8_t *bulk = dafl_bulk_alloc(len, 1);
        int first, last;

        assert_non_null(bulk);
        memset(bulk, 1, len);
        first = left_out(bulk);
        last = left_out(bulk + len - 1);
        dafl_bulk_free(bulk);
        if (first < 0)
            skip();
        assert_true(first == 1 && last == 1);
    }
}

/* Where a block was, others are not left out. */
static void freed_bulk_can_be_dumped_again(void **state)
{
    void *small[64], *bulk[64];

    (void)state;
    for (size_t i = 0; i < COUNT(bulk); i++) {
        small[i] = malloc(100); /* so that the heap grows around them */
        bulk[i] = dafl_bulk_alloc(DAFL_BULK_APART, 1);
        assert_true(small[i] != NULL && bulk[i] != NULL);
    }
    for (size_t i = 0; i < COUNT(bulk); i++)
        dafl_bulk_free(bulk[i]);
    for (size_t i = 0; i < COUNT(bulk); i++) {
        uint8_t *again = malloc(DAFL_BULK_APART);

        assert_non_null(again);
        again[DAFL_BULK_APART / 2] = 1;
        assert_true(left_out(again + DAFL_BULK_APART / 2) <= 0);
        free(again);
        free(small[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_start_as_zeros_and_can_be_written),
        cmocka_unit_test(free_wipes_the_secret),
        cmocka_unit_test(nothing_can_be_freed_and_too_much_is_refused),
        cmocka_unit_test(one_byte_past_the_end_is_death),
        cmocka_unit_test(one_byte_before_the_start_is_death_when_freed),
        cmocka_unit_test(secrets_are_kept_from_dumps_and_swap),
        cmocka_unit_test(large_bulk_is_kept_from_dumps),
        cmocka_unit_test(freed_bulk_can_be_dumped_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
