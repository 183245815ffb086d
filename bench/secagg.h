/* SPDX-License-Identifier: Apache-2.0 */
/* bench/secagg: the server in a process of its own, and the wire to it. */
#ifndef DAFL_BENCH_SECAGG_H
#define DAFL_BENCH_SECAGG_H

#include "agents/cli.h"
#include "protocol/server.h"

#define SLOTS 3 /* a slot for each share of dropouts */

/* The numbers of client u. */
int64_t number_of(size_t u, size_t i);

_Noreturn void die(const char *what);

/* ---- the wire: u8 kind, u32 number, u64 len, bytes ---- */

typedef struct {
    uint8_t kind;
    uint32_t number;
    uint64_t len;
} frame;

enum { MESSAGE = 1, LOST, TICK, QUIT, SEND, AT_MODEL, AT_RESULT, IDLE };

void put(int fd, uint8_t kind, uint32_t number, const void *bytes, size_t len);
void read_all(int fd, void *bytes, size_t len);

/* ---- the server ---- */

/* What the server tells when it has nothing more to say. */
typedef struct {
    uint64_t deadline;
    double busy_s; /* its time so far */
    double peak_mb;
    dafl_server_state state;
} report;

/* All that it does, until it is told to quit. */
int serve(int fd, const dafl_roster *roster, const dafl_config *config,
          const dafl_secret_identity *self, size_t numbers);

#endif
