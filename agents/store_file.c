/* SPDX-License-Identifier: Apache-2.0 */
#include "agents/store_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

dafl_err store_fail(const char *path, const char *doing, dafl_why *why)
{
    return dafl_fail(why, DAFL_ERR_SYS, "%s: cannot %s: %s", path, doing,
                     strerror(errno));
}

char *store_path(const char *dir, const char *name)
{
    size_t room = strlen(dir) + 1 + strlen(name) + 1;
    char *path = malloc(room);

    if (path != NULL)
        (void)snprintf(path, room, "%s/%s", dir, name);
    return path;
}

bool store_path_taken(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 || errno != ENOENT;
}

/* Ours, and nobody else has one of the rights in `forbidden`. */
static dafl_err check_owner(const char *path, const struct stat *st,
                            mode_t forbidden, dafl_why *why)
{
    if (st->st_uid != geteuid())
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "%s: belongs to user %lu, this is user %lu", path,
                         (unsigned long)st->st_uid, (unsigned long)geteuid());
    if ((st->st_mode & forbidden) != 0)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "%s: others can %s it (mode %03o); chmod %s it if you "
                         "trust what it holds",
                         path, (forbidden & 044) != 0 ? "use" : "write",
                         (unsigned)(st->st_mode & 0777),
                         S_ISDIR(st->st_mode) ? "700" : "600");
    return DAFL_OK;
}

/* Take over fd. */
static dafl_err keep(store_file *out, int fd, const char *path, dafl_why *why)
{
    char *copy = strdup(path);

    if (copy == NULL) {
        (void)close(fd);
        return dafl_fail(why, DAFL_ERR_NOMEM, "%s: out of memory", path);
    }
    *out = (store_file){fd, copy};
    return DAFL_OK;
}

dafl_err store_dir_open(store_file *out, const char *path, dafl_why *why)
{
    dafl_err err = DAFL_OK;
    struct stat st;
    int fd = -1;

    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return store_fail(path, "create the directory", why);
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "%s: is a symbolic link; name the directory itself",
                         path);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOTDIR)
        return dafl_fail(why, DAFL_ERR_INPUT, "%s: is not a directory", path);
    if (fd < 0)
        return store_fail(path, "open", why);
    err = fstat(fd, &st) != 0 ? store_fail(path, "open", why)
                              : check_owner(path, &st, 077, why);
    if (err != DAFL_OK) {
        (void)close(fd);
        return err;
    }
    return keep(out, fd, path, why);
}

dafl_err store_file_open(store_file *out, const char *path, int flags,
                         mode_t forbidden, dafl_why *why)
{
    dafl_err err = DAFL_OK;
    struct stat st;
    /* O_NONBLOCK: a named pipe is refused below instead of waited for. */
    int fd =
        open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | flags, 0600);

    if (fd < 0 && errno == ELOOP)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "%s: is a symbolic link; put the file itself there",
                         path);
    if (fd < 0)
        return store_fail(path, "open", why);
    if (fstat(fd, &st) != 0)
        err = store_fail(path, "open", why);
    else if (!S_ISREG(st.st_mode))
        err = dafl_fail(why, DAFL_ERR_INPUT, "%s: is not a regular file", path);
    else
        err = check_owner(path, &st, forbidden, why);
    if (err != DAFL_OK) {
        (void)close(fd);
        return err;
    }
    return keep(out, fd, path, why);
}

void store_file_close(store_file *f)
{
    if (f->fd >= 0)
        (void)close(f->fd);
    free(f->path);
    *f = (store_file){-1, NULL};
}

dafl_err store_file_lock(const store_file *f, bool *held, dafl_why *why)
{
    *held = false;
    if (flock(f->fd, LOCK_EX | LOCK_NB) == 0)
        return DAFL_OK;
    if (errno != EWOULDBLOCK)
        return store_fail(f->path, "lock", why);
    *held = true;
    return dafl_fail(why, DAFL_ERR_INPUT, "%s: another process uses it",
                     f->path);
}

dafl_err store_file_size(const store_file *f, uint64_t *out, dafl_why *why)
{
    struct stat st;

    if (fstat(f->fd, &st) != 0)
        return store_fail(f->path, "read", why);
    *out = (uint64_t)st.st_size;
    return DAFL_OK;
}

dafl_err store_file_read(const store_file *f, void *out, size_t len,
                         uint64_t from, size_t *got, dafl_why *why)
{
    size_t n = 0;

    while (n < len) {
        ssize_t more =
            pread(f->fd, (uint8_t *)out + n, len - n, (off_t)(from + n));
        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0)
            return store_fail(f->path, "read", why);
        if (more == 0)
            break;
        n += (size_t)more;
    }
    *got = n;
    return DAFL_OK;
}

dafl_err store_file_write(const store_file *f, const void *bytes, size_t len,
                          uint64_t to, dafl_why *why)
{
    size_t n = 0;

    while (n < len) {
        ssize_t more =
            pwrite(f->fd, (const uint8_t *)bytes + n, len - n, (off_t)(to + n));
        if (more < 0 && errno == EINTR)
            continue;
        if (more == 0)
            errno = ENOSPC;
        if (more <= 0)
            return store_fail(f->path, "write", why);
        n += (size_t)more;
    }
    return DAFL_OK;
}

dafl_err store_file_sync(const store_file *f, dafl_why *why)
{
    return fdatasync(f->fd) == 0 ? DAFL_OK
                                 : store_fail(f->path, "sync to disk", why);
}

dafl_err store_dir_sync(const store_file *dir, dafl_why *why)
{
    return fsync(dir->fd) == 0 ? DAFL_OK
                               : store_fail(dir->path, "sync to disk", why);
}

dafl_err store_parent_sync(const char *path, dafl_why *why)
{
    store_file parent = {-1, strdup(path)};
    size_t len = strlen(path);
    dafl_err err;

    if (parent.path == NULL)
        return dafl_fail(why, DAFL_ERR_NOMEM, "%s: out of memory", path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    while (len > 0 && path[len - 1] != '/')
        len--;
    /* Of "name", "/name" and "dir/name" in turn. */
    if (len == 0)
        parent.path[0] = '.';
    parent.path[len <= 1 ? 1 : len - 1] = '\0';
    parent.fd = open(parent.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    err = parent.fd < 0 ? store_fail(parent.path, "open", why)
                        : store_dir_sync(&parent, why);
    store_file_close(&parent);
    return err;
}
