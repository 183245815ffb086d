/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static dafl_err fail_errno(dafl_why *why, dafl_err err, const char *path,
                           const char *doing)
{
    return dafl_fail(why, err, "%s: cannot %s: %s", path, doing,
                     strerror(errno));
}

static dafl_err fail_kind(dafl_why *why, const char *path, mode_t mode)
{
    return dafl_fail(why, DAFL_ERR_INPUT, "%s: is a %s, not a regular file",
                     path, S_ISDIR(mode) ? "directory" : "device or pipe");
}

dafl_err dafl_map_open(dafl_map *out, const char *path, dafl_why *why)
{
    dafl_err err = DAFL_ERR_INPUT;
    struct stat st;
    dafl_map map = {{NULL, 0}};
    int fd = -1;

    /* O_NONBLOCK: a named pipe is refused below instead of waited for. */
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) != 0) {
        err = fail_errno(why, err, path, "open");
        goto out;
    }
    if (!S_ISREG(st.st_mode)) {
        err = fail_kind(why, path, st.st_mode);
        goto out;
    }
    map.bytes.len = (size_t)st.st_size;
    if ((off_t)map.bytes.len != st.st_size) {
        err = dafl_fail(why, err, "%s: too large for this machine", path);
        goto out;
    }
    if (map.bytes.len > 0) { /* mmap refuses a length of zero */
        void *p = mmap(NULL, map.bytes.len, PROT_READ, MAP_PRIVATE, fd, 0);

        if (p == MAP_FAILED) {
            err = fail_errno(why, DAFL_ERR_SYS, path, "map");
            goto out;
        }
        map.bytes.ptr = p;
    }
    *out = map;
    err = DAFL_OK;
out:
    if (fd >= 0)
        (void)close(fd);
    return err;
}

void dafl_map_close(dafl_map *map)
{
    if (map == NULL)
        return;
    /* munmap takes no const pointer, though it changes no byte. */
    if (map->bytes.len > 0)
        (void)munmap((void *)(uintptr_t)map->bytes.ptr, map->bytes.len);
    *map = (dafl_map){{NULL, 0}};
}

/* The first `keep` bytes of path, then suffix; NULL when out of memory. */
static char *path_with(const char *path, size_t keep, const char *suffix)
{
    size_t suffix_len = strlen(suffix);
    char *s = malloc(keep + suffix_len + 1);

    if (s == NULL)
        return NULL;
    memcpy(s, path, keep);
    memcpy(s + keep, suffix, suffix_len + 1);
    return s;
}

/* Create the temporary file that would be renamed to `path`; the caller owns
 * its name and descriptor. Symbolic links are followed when asking what `path`
 * is, so that /dev/stdout is refused; a link to a file is itself replaced. */
static dafl_err open_temp(char **out, int *out_fd, const char *path,
                          dafl_why *why)
{
    dafl_err err = DAFL_ERR_INPUT;
    struct stat st;
    char *temp = NULL;
    int fd = -1;

    if (path[0] == '\0')
        return dafl_fail(why, err, "the name of the file to write is empty");
    if (stat(path, &st) == 0) {
        if (!S_ISREG(st.st_mode))
            return fail_kind(why, path, st.st_mode);
    } else if (errno != ENOENT) {
        return fail_errno(why, err, path, "write");
    }
    temp = path_with(path, strlen(path), ".tmp.XXXXXX");
    if (temp == NULL)
        return dafl_fail(why, DAFL_ERR_NOMEM, "%s: out of memory", path);
    fd = mkstemp(temp);
    if (fd < 0) {
        err = fail_errno(why, err, path, "write");
        free(temp);
        return err;
    }
    /* mkstemp has no flag for it; failure would only mean an inherited
     * descriptor. */
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    *out = temp;
    *out_fd = fd;
    return DAFL_OK;
}

static int write_all(int fd, dafl_bytes part)
{
    while (part.len > 0) {
        ssize_t done = write(fd, part.ptr, part.len);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -1;
        part.ptr += done;
        part.len -= (size_t)done;
    }
    return 0;
}

/* mkstemp gives 0600; give what open(.., 0644) would have. The mask can only
 * be read by setting it: for that moment it is the strictest one. */
static int set_mode(int fd)
{
    mode_t mask = umask(077);

    (void)umask(mask);
    return fchmod(fd, 0644 & ~mask);
}

/* Make the rename durable. It has happened by now, so a file system that
 * cannot sync a directory is no reason to report failure. */
void dafl_file_sync_parent(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t keep = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    char *dir = path_with(path, keep, ".");
    int fd = -1;

    if (dir != NULL)
        fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        (void)close(fd);
    }
    free(dir);
}

dafl_err dafl_file_replace(const char *path, const dafl_bytes *parts, size_t n,
                           dafl_why *why)
{
    char *temp = NULL;
    int fd = -1, closed = 0;
    dafl_err err = open_temp(&temp, &fd, path, why);

    if (temp == NULL)
        return err;
    for (size_t i = 0; i < n; i++)
        if (write_all(fd, parts[i]) != 0)
            goto fail;
    if (set_mode(fd) != 0 || fsync(fd) != 0)
        goto fail;
    closed = close(fd);
    fd = -1; /* gone even when close fails */
    if (closed != 0 || rename(temp, path) != 0)
        goto fail;
    dafl_file_sync_parent(path);
    err = DAFL_OK;
    goto out;
fail:
    err = fail_errno(why, DAFL_ERR_SYS, path, "write");
    if (fd >= 0)
        (void)close(fd);
    (void)unlink(temp);
out:
    free(temp);
    return err;
}

/* Asked by creating the file: access() says yes to root where creation still
 * fails. */
dafl_err dafl_file_check_writable(const char *path, dafl_why *why)
{
    char *temp = NULL;
    int fd = -1;
    dafl_err err = open_temp(&temp, &fd, path, why);

    if (temp == NULL)
        return err;
    (void)close(fd);
    (void)unlink(temp);
    free(temp);
    return DAFL_OK;
}

bool dafl_file_same(const char *a, const char *b)
{
    struct stat sa, sb;

    return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
           sa.st_ino == sb.st_ino;
}
