/* SPDX-License-Identifier: Apache-2.0 */
/* What most tests need: cmocka, a directory of their own, reasons, and random
 * inputs from a seed that is printed and can be given again:
 *
 *   DAFL_TEST_SEED=123 ./test_tally
 */
#ifndef DAFL_TESTS_CHECK_H
#define DAFL_TESTS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/err.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
/* Not every program uses every helper. */
#define CHECK_HELPER __attribute__((unused)) static

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif

/* ---- a temporary directory ---- */

static char dir[128];

/* The path of `name` in the test's directory; the last four stay valid. */
CHECK_HELPER const char *at(const char *name)
{
    static char paths[4][512];
    static unsigned next;
    char *path = paths[next++ % 4];

    assert_true(snprintf(path, sizeof paths[0], "%s/%s", dir, name) <
                (int)sizeof paths[0]);
    return path;
}

/* Names in the test's directory, removing them if asked. */
CHECK_HELPER size_t count_names(int remove_them)
{
    DIR *d = opendir(dir);
    size_t n = 0;

    assert_non_null(d);
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        n++;
        if (remove_them)
            (void)remove(at(e->d_name));
    }
    (void)closedir(d);
    return n;
}

CHECK_HELPER int make_dir(void **state)
{
    const char *tmp = getenv("TMPDIR");

    (void)state;
    (void)snprintf(dir, sizeof dir, "%s/dafl-test-XXXXXX",
                   tmp != NULL && strlen(tmp) < 100 ? tmp : "/tmp");
    return mkdtemp(dir) == NULL;
}

CHECK_HELPER int remove_dir(void **state)
{
    (void)state;
    (void)count_names(1);
    return rmdir(dir);
}

#define CASE_IN_DIR(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)

/* ---- errors and their reasons ---- */

#define assert_ok(expr) assert_int_equal((expr), DAFL_OK)

CHECK_HELPER void assert_says(const dafl_why *why, const char *words)
{
    if (strstr(why->text, words) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", why->text, words);
}

/* ---- random inputs ---- */

/* One for all files of a program. */
extern uint64_t check_state;
__attribute__((weak)) uint64_t check_state;

/* Call first in main or in a case: prints the seed of what follows. */
CHECK_HELPER void check_seed(void)
{
    const char *text = getenv("DAFL_TEST_SEED");
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    check_state = text != NULL ? strtoull(text, NULL, 10)
                               : (uint64_t)now.tv_sec * 1000000007u ^
                                     (uint64_t)now.tv_nsec;
    print_message("DAFL_TEST_SEED=%llu\n", (unsigned long long)check_state);
}

/* SplitMix64. */
CHECK_HELPER uint64_t random_u64(void)
{
    uint64_t z = check_state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* In [from, to]. */
CHECK_HELPER size_t random_size(size_t from, size_t to)
{
    return from + (size_t)(random_u64() % (to - from + 1));
}

/* In [-1, 1). */
CHECK_HELPER double random_double(void)
{
    return (double)(int64_t)random_u64() * 0x1p-63;
}

CHECK_HELPER void random_fill(double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = random_double();
}

/* n doubles of memory, to be freed; fails the test rather than return NULL. */
CHECK_HELPER double *doubles(size_t n)
{
    double *x = calloc(n + 1, sizeof *x);

    assert_non_null(x);
    return x;
}

CHECK_HELPER double *random_doubles(size_t n)
{
    double *x = doubles(n);

    random_fill(x, n);
    return x;
}

#endif
