/* SPDX-License-Identifier: Apache-2.0 */
/* A text file that only grows, line by line, for the audit log. One process at
 * a time writes it. */
#ifndef DAFL_AGENTS_LOGFILE_H
#define DAFL_AGENTS_LOGFILE_H

#include <stddef.h>

#include "lib/bytes.h"
#include "lib/err.h"

/* Longer lines are neither written nor read back. */
#define LOGFILE_LINE_MAX ((size_t)1 << 20)

typedef struct logfile logfile;

/* Open for appending, or create (0600). A last line without its newline is what
 * a crash left: it is cut off. DAFL_ERR_INPUT for a link, a file that others
 * can write, one that another process has, and one that is no text of lines. */
DAFL_CHECK dafl_err logfile_open(logfile **out, const char *path,
                                 dafl_why *why);
/* What was not synced may be lost. */
void logfile_close(logfile **log);

/* The last whole line that was in it when it was opened, without its newline;
 * {NULL, 0} when there was none. */
dafl_bytes logfile_last(const logfile *log);
/* Bytes that were cut off. */
size_t logfile_cut(const logfile *log);

/* One line; the newline is added. The first error is final, as with
 * agents/store.h: DAFL_ERR_SYS, or DAFL_ERR_ARG for a line that is too long or
 * has a newline or a zero in it. */
DAFL_CHECK dafl_err logfile_write(logfile *log, dafl_bytes line);
/* After DAFL_OK every line before is durable. */
DAFL_CHECK dafl_err logfile_sync(logfile *log);
/* The sentence of the first error; "" while there is none. */
const char *logfile_why(const logfile *log);

#endif
