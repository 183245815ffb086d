/* SPDX-License-Identifier: Apache-2.0 */
/* Who may take part, in which cell. Written before the run by whoever the sites
 * trust to write it, never by the server, and the same at every party: they
 * compare its digest beforehand.
 *
 *   roster = "DAFR", u16 n, n (u16 idx, u8 name_len, name[name_len], u8 role,
 *            u16 cell, ed25519[32], curve25519[32])
 *
 * idx counts from 0: first all clients (at most 256), then the server, then the
 * key holder if there is one. Cells are numbered from 0 without gaps; the
 * server and the key holder have the cell 65535. Names and keys are distinct.
 */
#ifndef DAFL_PROTOCOL_ROSTER_H
#define DAFL_PROTOCOL_ROSTER_H

#include "crypto/identity.h"
#include "lib/codec.h"
#include "protocol/members.h"

typedef enum {
    DAFL_ROLE_CLIENT = 0,
    DAFL_ROLE_SERVER = 1,
    DAFL_ROLE_KEYHOLDER = 2,
} dafl_role;

#define DAFL_NO_CELL 65535
#define DAFL_PARTIES_MAX (DAFL_CLIENTS_MAX + 2)

typedef struct {
    dafl_identity id;
    dafl_role role;
    uint16_t cell;
} dafl_party;

typedef struct {
    uint16_t n, n_clients, n_cells;
    dafl_party parties[DAFL_PARTIES_MAX];
} dafl_roster;

/* Judge the parties and count clients and cells; DAFL_ERR_INPUT with the rule
 * that is broken and by whom. Roles decide the order: see above. */
DAFL_CHECK dafl_err dafl_roster_make(dafl_roster *out,
                                     const dafl_party *parties, size_t n,
                                     dafl_why *why);

void dafl_put_roster(dafl_writer *w, const dafl_roster *roster);
DAFL_CHECK dafl_err dafl_get_roster(dafl_roster *out, dafl_bytes bytes,
                                    dafl_why *why);
/* H("deepafl/roster", bytes). */
DAFL_CHECK dafl_err dafl_roster_digest(dafl_digest *out,
                                       const dafl_roster *roster);

/* The party of that name, or -1. */
int dafl_roster_find(const dafl_roster *roster, const char *name);

/* The clients of a cell; all clients. */
dafl_members dafl_roster_cell(const dafl_roster *roster, uint16_t cell);
dafl_members dafl_roster_clients(const dafl_roster *roster);
/* Size of the smallest cell. */
size_t dafl_roster_least_cell(const dafl_roster *roster);

/* Whether a set holds every cell wholly or not at all. */
bool dafl_roster_whole_cells(const dafl_roster *roster,
                             const dafl_members *set);
/* The members of `set` whose cell is wholly in it. */
dafl_members dafl_roster_keep_whole(const dafl_roster *roster,
                                    const dafl_members *set);

#endif
