/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded before a program (LD_PRELOAD): it dies, as by kill -9, at call number
 * DAFL_DIE_AT of those that change a file, before anything of it is done. */
#define _DEFAULT_SOURCE /* syscall */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
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
int die_unlink(const char *path) __asm__("unlink");

static atomic_long calls;

static void count(void)
{
    const char *at = getenv("DAFL_DIE_AT");

    if (at != NULL && atomic_fetch_add(&calls, 1) + 1 == atol(at))
        (void)kill(getpid(), SIGKILL);
}

/* Bells, pipes and sockets are no files; standard error is the watcher's. */
static void count_file(int fd)
{
    struct stat st;

    if (fd > STDERR_FILENO && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        count();
}

ssize_t die_write(int fd, const void *bytes, size_t len)
{
    count_file(fd);
    return syscall(SYS_write, fd, bytes, len);
}

ssize_t die_pwrite(int fd, const void *bytes, size_t len, off_t at)
{
    count_file(fd);
    return syscall(SYS_pwrite64, fd, bytes, len, at);
}

ssize_t die_pwrite64(int fd, const void *bytes, size_t len, off_t at)
{
    return die_pwrite(fd, bytes, len, at);
}

int die_ftruncate(int fd, off_t len)
{
    count_file(fd);
    return (int)syscall(SYS_ftruncate, fd, len);
}

int die_ftruncate64(int fd, off_t len)
{
    return die_ftruncate(fd, len);
}

int die_fsync(int fd)
{
    count();
    return (int)syscall(SYS_fsync, fd);
}

int die_fdatasync(int fd)
{
    count();
    return (int)syscall(SYS_fdatasync, fd);
}

int die_unlink(const char *path)
{
    count();
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}
