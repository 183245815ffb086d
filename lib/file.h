/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files: mapped for reading, replaced atomically for writing. */
#ifndef DAFL_LIB_FILE_H
#define DAFL_LIB_FILE_H

#include <stdbool.h>

#include "lib/bytes.h"
#include "lib/err.h"

/* A file mapped read-only. The mapping is private: later writers of the file
 * do not change the program's mind, a truncation by them is still fatal. */
typedef struct {
    dafl_bytes bytes;
} dafl_map;

/* DAFL_ERR_INPUT when the file cannot be opened or is not a regular file; an
 * empty file maps to zero bytes. */
DAFL_CHECK dafl_err dafl_map_open(dafl_map *out, const char *path,
                                  dafl_why *why);
void dafl_map_close(dafl_map *map);

/* Replace `path` by the concatenation of parts[0..n): write a temporary file
 * beside it, fsync, rename, fsync the directory. After an error `path` is as
 * it was and the temporary file is gone. */
DAFL_CHECK dafl_err dafl_file_replace(const char *path, const dafl_bytes *parts,
                                      size_t n, dafl_why *why);

/* Make a name that was just created in a directory durable. */
void dafl_file_sync_parent(const char *path);

/* Ask whether dafl_file_replace(path) could succeed, before the work whose
 * result it will hold: the directory exists and is writable and `path` is not
 * a directory. */
DAFL_CHECK dafl_err dafl_file_check_writable(const char *path, dafl_why *why);

/* Whether both paths name one existing file, by whatever names. */
bool dafl_file_same(const char *a, const char *b);

#endif
