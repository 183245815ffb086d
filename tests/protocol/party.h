/* SPDX-License-Identifier: Apache-2.0 */
/* Parties of a roster. */
#ifndef DAFL_TESTS_PROTOCOL_PARTY_H
#define DAFL_TESTS_PROTOCOL_PARTY_H

#include "tests/check.h"

#include "protocol/roster.h"

/* Party i of `clients` in cells of `size`, or the server that follows them;
 * always the same keys. */
CHECK_HELPER dafl_party party_at(size_t i, size_t clients, size_t size,
                                 dafl_secret_identity *id)
{
    uint8_t seed[64] = {(uint8_t)(i + 1)};
    dafl_party p = {.role = i < clients ? DAFL_ROLE_CLIENT : DAFL_ROLE_SERVER};
    char name[16];

    seed[33] = (uint8_t)(i + 1); /* X25519 drops bits of byte 32 */
    (void)snprintf(name, sizeof name, "p%zu", i);
    assert_ok(dafl_identity_new_derand(id, name, seed, NULL));
    p.id = id->public;
    p.cell = (uint16_t)(i < clients ? i / size : DAFL_NO_CELL);
    return p;
}

#endif
