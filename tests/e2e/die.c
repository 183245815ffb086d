/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded before a program (LD_PRELOAD). At call number DAFL_DIE_AT of those
 * that change a file or send to a peer it dies, as by kill -9, before anything
 * of it is done; at call number DAFL_FAIL_AT of those that change a file it is
 * told that the disk has failed (EIO), once. */
#define _DEFAULT_SOURCE /* syscall */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Under the names that the C library uses, which its headers may map. */
ssize_t die_write(int fd, const void *bytes, size_t len) __asm__("write");
ssize_t die_pwrite(int fd, const void *bytes, size_t len, off_t at) //
    __asm__("pwrite");
ssize_t die_pwrite64(int fd, const void *bytes, size_t len, off_t at) //
    __asm__("pwrite64");
int die_ftruncate(int fd, off_t len) __asm__("ftruncate");
int die_ftruncate64(int fd, off_t len) __asm__("ftruncate64");
int die_fsync(int fd) __asm__("fsync");
int die_fdatasync(int fd) __asm__("fdatasync");
ssize_t die_send(int fd, const void *bytes, size_t len, int flags) //
    __asm__("send");

static atomic_long calls, changes;

static bool now(atomic_long *count, const char *name)
{
    const char *at = getenv(name);

    return at != NULL && atomic_fetch_add(count, 1) + 1 == strtol(at, NULL, 10);
}

static void count(void)
{
    if (now(&calls, "DAFL_DIE_AT"))
        (void)kill(getpid(), SIGKILL);
}

/* Bells and pipes are no files; standard error is the watcher's. */
static bool fails(int fd)
{
    struct stat st;

    if (fd <= STDERR_FILENO || fstat(fd, &st) != 0 ||
        !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
        return false;
    count();
    if (!now(&changes, "DAFL_FAIL_AT"))
        return false;
    errno = EIO;
    return true;
}

ssize_t die_write(int fd, const void *bytes, size_t len)
{
    return fails(fd) ? -1 : syscall(SYS_write, fd, bytes, len);
}

ssize_t die_pwrite(int fd, const void *bytes, size_t len, off_t at)
{
    return fails(fd) ? -1 : syscall(SYS_pwrite64, fd, bytes, len, at);
}

ssize_t die_pwrite64(int fd, const void *bytes, size_t len, off_t at)
{
    return die_pwrite(fd, bytes, len, at);
}

int die_ftruncate(int fd, off_t len)
{
    return fails(fd) ? -1 : (int)syscall(SYS_ftruncate, fd, len);
}

int die_ftruncate64(int fd, off_t len)
{
    return die_ftruncate(fd, len);
}

int die_fsync(int fd)
{
    return fails(fd) ? -1 : (int)syscall(SYS_fsync, fd);
}

int die_fdatasync(int fd)
{
    return fails(fd) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

ssize_t die_send(int fd, const void *bytes, size_t len, int flags)
{
    count();
    return syscall(SYS_sendto, fd, bytes, len, flags, NULL, 0);
}
