/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE /* syscall */
#include "tests/agents/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Defined under the names that the C library uses, so that the linker takes
 * them for this program and the libraries below it. */
ssize_t disk_write(int fd, const void *bytes, size_t len) __asm__("write");
ssize_t disk_pwrite(int fd, const void *bytes, size_t len, off_t at) //
    __asm__("pwrite");
ssize_t disk_pwrite64(int fd, const void *bytes, size_t len, off_t at) //
    __asm__("pwrite64");
int disk_ftruncate(int fd, off_t len) __asm__("ftruncate");
int disk_ftruncate64(int fd, off_t len) __asm__("ftruncate64");
int disk_fsync(int fd) __asm__("fsync");
int disk_fdatasync(int fd) __asm__("fdatasync");

static enum { WORKS, FAILS, CUT } mode;
static disk_fault how;
static long calls, calls_left;
static const char *failed;

/* The last that were synced. */
static ino_t synced[64];
static size_t n_synced;

static void die(const char *what)
{
    perror(what);
    _exit(99);
}

/* ---- power ---- */

#define FILES 16
#define BLOCK 4096

typedef struct {
    char name[NAME_MAX + 1];
    ino_t ino;
} name_entry;

typedef struct {
    ino_t ino;
    uint8_t *bytes; /* as of the last sync */
    size_t len;
} content;

static const char *cut_from, *cut_to;
static name_entry names[FILES]; /* that are durable */
static size_t n_names;
static content contents[FILES];
static size_t n_contents;
static uint64_t dice;

static bool coin(void)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return dice >> 63 != 0;
}

static size_t read_all(int fd, uint8_t **out)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        die("fstat");
    *out = malloc((size_t)st.st_size + 1);
    if (*out == NULL || pread(fd, *out, (size_t)st.st_size, 0) != st.st_size)
        die("pread");
    return (size_t)st.st_size;
}

static content *content_of(ino_t ino)
{
    for (size_t i = 0; i < n_contents; i++)
        if (contents[i].ino == ino)
            return &contents[i];
    if (n_contents == FILES)
        die("too many files");
    contents[n_contents] = (content){ino, NULL, 0};
    return &contents[n_contents++];
}

static size_t list_names(name_entry *out)
{
    DIR *d = opendir(cut_from);
    size_t n = 0;

    if (d == NULL)
        die(cut_from);
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        if (e->d_name[0] == '.')
            continue;
        if (n == FILES)
            die("too many files");
        memcpy(out[n].name, e->d_name, sizeof out[n].name);
        out[n++].ino = e->d_ino;
    }
    (void)closedir(d);
    return n;
}

static void note_sync(int fd)
{
    struct stat st, ours;
    content *c = NULL;

    if (fstat(fd, &st) != 0 || stat(cut_from, &ours) != 0)
        die("fstat");
    if (S_ISDIR(st.st_mode)) {
        if (st.st_ino == ours.st_ino)
            n_names = list_names(names);
        return;
    }
    c = content_of(st.st_ino);
    free(c->bytes);
    c->len = read_all(fd, &c->bytes);
}

static int open_in(const char *dir, const char *name, int flags)
{
    char path[PATH_MAX];
    int fd = -1;

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    fd = open(path, flags | O_CLOEXEC, 0600);
    return fd;
}

/* A file as it could be found after the cut; `now` < 0: it is gone by now. A
 * file that was cut to a shorter length has both lengths, but no holes. */
static void leave(const char *name, const content *was, int now)
{
    uint8_t *bytes = NULL, *mixed = NULL;
    size_t len = now < 0 ? was->len : read_all(now, &bytes), mixed_len;
    int fd = open_in(cut_to, name, O_WRONLY | O_CREAT | O_EXCL);

    mixed_len = coin() ? len : was->len;
    mixed = calloc(mixed_len + 1, 1);
    if (mixed == NULL || fd < 0)
        die(name);
    for (size_t at = 0; at < mixed_len; at += BLOCK) {
        bool newer = now >= 0 && at < len && coin();
        const uint8_t *from = newer ? bytes : was->bytes;
        size_t end = newer ? len : was->len;
        size_t part = mixed_len - at < BLOCK ? mixed_len - at : BLOCK;
        if (at < end)
            memcpy(mixed + at, from + at, end - at < part ? end - at : part);
    }
    if (syscall(SYS_write, fd, mixed, mixed_len) != (long)mixed_len)
        die(name);
    (void)close(fd);
    free(bytes);
    free(mixed);
}

static ino_t ino_of(const name_entry *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return list[i].ino;
    return 0;
}

static void leave_one(const char *name, ino_t durable, ino_t now)
{
    ino_t ino = durable == now || coin() ? durable : now;
    int fd = ino != 0 && ino == now ? open_in(cut_from, name, O_RDONLY) : -1;

    if (ino != 0)
        leave(name, content_of(ino), fd);
    if (fd >= 0)
        (void)close(fd);
}

static void cut(void)
{
    name_entry now[FILES];
    size_t n = list_names(now);

    for (size_t i = 0; i < n; i++)
        leave_one(now[i].name, ino_of(names, n_names, now[i].name), now[i].ino);
    for (size_t i = 0; i < n_names; i++)
        if (ino_of(now, n, names[i].name) == 0)
            leave_one(names[i].name, names[i].ino, 0);
    _exit(0);
}

void disk_cut_power(const char *dir, const char *to, long after, uint64_t seed)
{
    cut_from = dir;
    cut_to = to;
    dice = seed;
    n_names = list_names(names);
    for (size_t i = 0; i < n_names; i++) {
        int fd = open_in(dir, names[i].name, O_RDONLY);
        if (fd < 0)
            die(names[i].name);
        note_sync(fd);
        (void)close(fd);
    }
    calls_left = after;
    mode = CUT;
}

/* ---- calls ---- */

void disk_fail(disk_fault fault, long after)
{
    how = fault;
    calls_left = after;
    failed = NULL;
    mode = FAILS;
}

const char *disk_heal(void)
{
    mode = WORKS;
    memset(synced, 0, sizeof synced);
    return failed;
}

long disk_calls(void)
{
    return calls;
}

/* Whether this call is to fail; pipes and terminals always work. */
static bool fails(int fd, const char *name, bool is_write)
{
    struct stat st;

    if (fstat(fd, &st) != 0 || (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
        return false;
    calls++;
    if (mode == WORKS || calls_left-- > 0)
        return false;
    if (mode == CUT)
        cut();
    if (how == DISK_FULL && !is_write)
        return false;
    failed = S_ISDIR(st.st_mode) && strcmp(name, "fdatasync") == 0 ? DISK_UNSEEN
                                                                   : name;
    if (how != DISK_FULL)
        mode = WORKS;
    errno = how == DISK_FULL ? ENOSPC : EIO;
    return true;
}

ssize_t disk_write(int fd, const void *bytes, size_t len)
{
    if (fails(fd, "write", true)) {
        if (how == DISK_TORN)
            (void)syscall(SYS_write, fd, bytes, len / 2);
        errno = how == DISK_FULL ? ENOSPC : EIO;
        return -1;
    }
    return syscall(SYS_write, fd, bytes, len);
}

ssize_t disk_pwrite(int fd, const void *bytes, size_t len, off_t at)
{
    if (fails(fd, "pwrite", true)) {
        if (how == DISK_TORN)
            (void)syscall(SYS_pwrite64, fd, bytes, len / 2, at);
        errno = how == DISK_FULL ? ENOSPC : EIO;
        return -1;
    }
    return syscall(SYS_pwrite64, fd, bytes, len, at);
}

ssize_t disk_pwrite64(int fd, const void *bytes, size_t len, off_t at)
{
    return disk_pwrite(fd, bytes, len, at);
}

int disk_ftruncate(int fd, off_t len)
{
    return fails(fd, "ftruncate", false) ? -1
                                         : (int)syscall(SYS_ftruncate, fd, len);
}

int disk_ftruncate64(int fd, off_t len)
{
    return disk_ftruncate(fd, len);
}

bool disk_synced(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0)
        die(path);
    for (size_t i = 0; i < sizeof synced / sizeof synced[0]; i++)
        if (synced[i] == st.st_ino)
            return true;
    return false;
}

static int sync_file(int fd, const char *name)
{
    struct stat st;

    if (fails(fd, name, false))
        return -1;
    if (fstat(fd, &st) == 0)
        synced[n_synced++ % (sizeof synced / sizeof synced[0])] = st.st_ino;
    if (mode == CUT)
        note_sync(fd);
    return (int)syscall(SYS_fsync, fd);
}

int disk_fsync(int fd)
{
    return sync_file(fd, "fsync");
}

int disk_fdatasync(int fd)
{
    return sync_file(fd, "fdatasync");
}
