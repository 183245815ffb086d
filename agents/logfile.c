/* SPDX-License-Identifier: Apache-2.0 */
#include "agents/logfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agents/store_file.h"

struct logfile {
    store_file file;
    uint8_t *buffer; /* what was read back: `last` is in it */
    dafl_bytes last;
    size_t cut;
    dafl_err refusal; /* the first error, for good */
    dafl_why why;
};

/* ---- opening ---- */

/* The place behind the last newline of b[0..n); 0: there is none. */
static size_t behind_newline(const uint8_t *b, size_t n)
{
    while (n > 0 && b[n - 1] != '\n')
        n--;
    return n;
}

/* Find the last whole line and cut off what is behind it. */
static dafl_err read_back(logfile *log, dafl_why *why)
{
    /* A torn line and a whole one, each with its newline, and the newline
     * before them. */
    size_t room = 2 * (LOGFILE_LINE_MAX + 1) + 1, got = 0, end, start;
    uint64_t size = 0, from;

    DAFL_TRY(store_file_size(&log->file, &size, why));
    from = size > room ? size - room : 0;
    if (size > from)
        log->buffer = malloc((size_t)(size - from));
    if (size > from && log->buffer == NULL)
        return dafl_fail(why, DAFL_ERR_NOMEM, "%s: out of memory",
                         log->file.path);
    DAFL_TRY(store_file_read(&log->file, log->buffer, (size_t)(size - from),
                             from, &got, why));
    end = behind_newline(log->buffer, got);
    start = end == 0 ? 0 : behind_newline(log->buffer, end - 1);
    if ((end == 0 || start == 0) && from > 0)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "%s: is not a log: its last line is longer than %zu "
                         "bytes",
                         log->file.path, LOGFILE_LINE_MAX);
    log->cut = got - end;
    if (end > 0)
        log->last = (dafl_bytes){log->buffer + start, end - 1 - start};
    if (log->cut == 0)
        return DAFL_OK;
    if (ftruncate(log->file.fd, (off_t)(from + end)) != 0)
        return store_fail(log->file.path, "cut off a torn line", why);
    return store_file_sync(&log->file, why);
}

dafl_err logfile_open(logfile **out, const char *path, dafl_why *why)
{
    dafl_err err = DAFL_ERR_NOMEM;
    logfile *log = calloc(1, sizeof *log);
    bool held = false;

    if (log == NULL)
        return dafl_fail(why, err, "%s: out of memory", path);
    log->file.fd = -1;
    err = store_file_open(&log->file, path, O_CREAT | O_APPEND, 022, why);
    if (err == DAFL_OK)
        err = store_file_lock(&log->file, &held, why);
    if (err == DAFL_OK)
        err = read_back(log, why);
    if (err == DAFL_OK)
        err = store_parent_sync(path, why);
    if (err == DAFL_OK)
        *out = log;
    else
        logfile_close(&log);
    return err;
}

void logfile_close(logfile **log)
{
    if (*log == NULL)
        return;
    store_file_close(&(*log)->file);
    free((*log)->buffer);
    free(*log);
    *log = NULL;
}

dafl_bytes logfile_last(const logfile *log)
{
    return log->last;
}

size_t logfile_cut(const logfile *log)
{
    return log->cut;
}

/* ---- writing ---- */

static dafl_err append(logfile *log, const uint8_t *bytes, size_t len)
{
    while (len > 0) {
        ssize_t done = write(log->file.fd, bytes, len);
        if (done < 0 && errno == EINTR)
            continue;
        if (done == 0)
            errno = ENOSPC;
        if (done <= 0)
            return store_fail(log->file.path, "write", &log->why);
        bytes += done;
        len -= (size_t)done;
    }
    return DAFL_OK;
}

dafl_err logfile_write(logfile *log, dafl_bytes line)
{
    uint8_t *whole = NULL;

    if (log->refusal != DAFL_OK)
        return log->refusal;
    if (line.len > LOGFILE_LINE_MAX ||
        (line.len > 0 && (memchr(line.ptr, '\n', line.len) != NULL ||
                          memchr(line.ptr, '\0', line.len) != NULL)))
        return log->refusal =
                   dafl_fail(&log->why, DAFL_ERR_ARG,
                             "%s: what is to be written is not one line of at "
                             "most %zu bytes",
                             log->file.path, LOGFILE_LINE_MAX);
    /* With its newline in one call: a crash hardly ever tears it. */
    whole = malloc(line.len + 1);
    if (whole == NULL)
        return log->refusal = dafl_fail(&log->why, DAFL_ERR_NOMEM,
                                        "%s: out of memory", log->file.path);
    if (line.len > 0)
        memcpy(whole, line.ptr, line.len);
    whole[line.len] = '\n';
    log->refusal = append(log, whole, line.len + 1);
    free(whole);
    return log->refusal;
}

dafl_err logfile_sync(logfile *log)
{
    if (log->refusal == DAFL_OK)
        log->refusal = store_file_sync(&log->file, &log->why);
    return log->refusal;
}

const char *logfile_why(const logfile *log)
{
    return log->why.text;
}
