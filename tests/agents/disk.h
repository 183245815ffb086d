/* SPDX-License-Identifier: Apache-2.0 */
/* A disk that fails. The calls that write (write, pwrite, ftruncate, fsync,
 * fdatasync) are replaced for the whole program, SQLite's too: each can be made
 * to fail, or to be the one at which the power goes. */
#ifndef DAFL_TESTS_DISK_H
#define DAFL_TESTS_DISK_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    DISK_ERROR, /* EIO, once; the next call works again */
    DISK_TORN,  /* half of a write is done, then EIO, once */
    DISK_FULL,  /* from now on nothing more can be written: ENOSPC */
} disk_fault;

/* From now on let `after` calls pass, then fail. */
void disk_fail(disk_fault fault, long after);
/* Stop it and forget what was synced. The name of the call that failed, NULL
 * when none did. */
const char *disk_heal(void);
/* How SQLite syncs a name: it does not look at the result. */
#define DISK_UNSEEN "fdatasync of a directory"

/* Calls so far, those that failed too. */
long disk_calls(void);

/* Whether a file or directory has been synced since, by whatever name. */
bool disk_synced(const char *path);

/* Once the disk behind `dir` has been given everything that is in it: let
 * `after` calls pass, then write one of the states that a power cut could leave
 * into the directory `to` and exit with status 0. What was not synced is there
 * or not, each block of 4,096 bytes and each name by itself, drawn from
 * `seed`. */
void disk_cut_power(const char *dir, const char *to, long after, uint64_t seed);

#endif
