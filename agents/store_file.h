/* SPDX-License-Identifier: Apache-2.0 */
/* Files and directories that belong to one party alone, below agents/store.h
 * and agents/logfile.h. Every error names the path and what the system said. */
#ifndef DAFL_AGENTS_STORE_FILE_H
#define DAFL_AGENTS_STORE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "lib/err.h"

/* How every sentence about lost or old state ends. A backup is the one thing
 * not to take: what was sent since it was made would be sent a second time. */
#define STORE_LOST                                                        \
    "E_STATE_LOST, this party sits out the run: move the directory away " \
    "and start with a new one, not with a backup"

typedef struct {
    int fd; /* -1: closed */
    char *path;
} store_file;

/* "DIR/NAME", to be freed; NULL when there is no memory. */
char *store_path(const char *dir, const char *name);

/* Whether the name is taken, be it by a link that leads nowhere. */
bool store_path_taken(const char *path);

/* Create `path` (0700) if it is missing and open it. DAFL_ERR_INPUT for a link
 * and for a directory that others can use. */
DAFL_CHECK dafl_err store_dir_open(store_file *out, const char *path,
                                   dafl_why *why);

/* Open for reading and writing; `flags` may add O_CREAT (0600) and O_APPEND.
 * DAFL_ERR_INPUT for what is not a regular file of this user, or gives others
 * one of the rights in `forbidden`. */
DAFL_CHECK dafl_err store_file_open(store_file *out, const char *path,
                                    int flags, mode_t forbidden, dafl_why *why);
/* Accepts one that is closed. */
void store_file_close(store_file *f);

/* An exclusive lock that ends with the process. DAFL_ERR_INPUT when another has
 * it; *held is then true. */
DAFL_CHECK dafl_err store_file_lock(const store_file *f, bool *held,
                                    dafl_why *why);

DAFL_CHECK dafl_err store_file_size(const store_file *f, uint64_t *out,
                                    dafl_why *why);
/* Fewer than `len` bytes only at the end of the file. */
DAFL_CHECK dafl_err store_file_read(const store_file *f, void *out, size_t len,
                                    uint64_t from, size_t *got, dafl_why *why);
/* All or an error; a part may then be written. */
DAFL_CHECK dafl_err store_file_write(const store_file *f, const void *bytes,
                                     size_t len, uint64_t to, dafl_why *why);
/* Durable, or an error that is final: what the kernel could not write it may
 * have forgotten, and a second call would say yes. */
DAFL_CHECK dafl_err store_file_sync(const store_file *f, dafl_why *why);
/* The same for the names in a directory. */
DAFL_CHECK dafl_err store_dir_sync(const store_file *dir, dafl_why *why);
/* And for the name `path` itself. */
DAFL_CHECK dafl_err store_parent_sync(const char *path, dafl_why *why);

/* DAFL_ERR_SYS: "PATH: cannot DOING: what errno says". */
DAFL_CHECK dafl_err store_fail(const char *path, const char *doing,
                               dafl_why *why);

#endif
