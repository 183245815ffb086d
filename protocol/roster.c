/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/roster.h"

#include <string.h>

static const uint8_t magic[4] = {'D', 'A', 'F', 'R'};

static bool same_bytes(const void *a, const void *b, size_t n)
{
    return memcmp(a, b, n) == 0;
}

/* No name or key stands twice. */
static dafl_err check_distinct(const dafl_party *p, size_t n, dafl_why *why)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++) {
            const dafl_identity *a = &p[i].id, *b = &p[j].id;
            if (strcmp(a->name, b->name) == 0)
                return dafl_fail(why, DAFL_ERR_INPUT,
                                 "the roster has the name '%s' twice", a->name);
            if (same_bytes(a->sign_pk, b->sign_pk, sizeof a->sign_pk) ||
                same_bytes(a->curve_pk.b, b->curve_pk.b, sizeof a->curve_pk.b))
                return dafl_fail(why, DAFL_ERR_INPUT,
                                 "'%s' and '%s' have the same key in the "
                                 "roster",
                                 b->name, a->name);
        }
    return DAFL_OK;
}

/* Clients first, one server, at most one key holder. */
static dafl_err check_roles(const dafl_party *p, size_t n, size_t *n_clients,
                            dafl_why *why)
{
    size_t k = 0;

    while (k < n && p[k].role == DAFL_ROLE_CLIENT)
        k++;
    if (k < 1 || k > DAFL_CLIENTS_MAX)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "the roster has %zu clients at its start, 1 to %d are "
                         "possible",
                         k, DAFL_CLIENTS_MAX);
    if (n < k + 1 || n > k + 2 || p[k].role != DAFL_ROLE_SERVER ||
        (n == k + 2 && p[k + 1].role != DAFL_ROLE_KEYHOLDER))
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "the roster must end with one server and at most one "
                         "key holder");
    *n_clients = k;
    return DAFL_OK;
}

/* Cells 0 .. n_cells - 1, each with a client; nobody else has one. */
static dafl_err check_cells(const dafl_party *p, size_t n, size_t n_clients,
                            size_t *n_cells, dafl_why *why)
{
    bool seen[DAFL_CLIENTS_MAX] = {false};
    size_t most = 0;

    for (size_t i = 0; i < n; i++) {
        bool client = i < n_clients;
        if (client ? p[i].cell >= n_clients : p[i].cell != DAFL_NO_CELL)
            return dafl_fail(why, DAFL_ERR_INPUT,
                             "'%s' cannot be in cell %u of the roster",
                             p[i].id.name, (unsigned)p[i].cell);
        if (client) {
            seen[p[i].cell] = true;
            most = p[i].cell > most ? p[i].cell : most;
        }
    }
    for (size_t c = 0; c <= most; c++)
        if (!seen[c])
            return dafl_fail(why, DAFL_ERR_INPUT,
                             "cell %zu of the roster is empty", c);
    *n_cells = most + 1;
    return DAFL_OK;
}

dafl_err dafl_roster_make(dafl_roster *out, const dafl_party *parties, size_t n,
                          dafl_why *why)
{
    size_t n_clients = 0, n_cells = 0;

    if (n > DAFL_PARTIES_MAX)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "the roster has %zu parties, at most %d are possible",
                         n, DAFL_PARTIES_MAX);
    DAFL_TRY(check_roles(parties, n, &n_clients, why));
    DAFL_TRY(check_cells(parties, n, n_clients, &n_cells, why));
    DAFL_TRY(check_distinct(parties, n, why));
    memset(out, 0, sizeof *out);
    out->n = (uint16_t)n;
    out->n_clients = (uint16_t)n_clients;
    out->n_cells = (uint16_t)n_cells;
    memcpy(out->parties, parties, n * sizeof *parties);
    return DAFL_OK;
}

void dafl_put_roster(dafl_writer *w, const dafl_roster *roster)
{
    dafl_put_fixed(w, magic, sizeof magic);
    dafl_put_u16(w, roster->n);
    for (uint16_t i = 0; i < roster->n; i++) {
        const dafl_party *p = &roster->parties[i];
        size_t len = strlen(p->id.name);
        dafl_put_u16(w, i);
        dafl_put_u8(w, (uint8_t)len);
        dafl_put_fixed(w, p->id.name, len);
        dafl_put_u8(w, (uint8_t)p->role);
        dafl_put_u16(w, p->cell);
        dafl_put_fixed(w, p->id.sign_pk, sizeof p->id.sign_pk);
        dafl_put_fixed(w, p->id.curve_pk.b, sizeof p->id.curve_pk.b);
    }
}

static dafl_err get_party(dafl_reader *r, dafl_party *out, uint16_t number)
{
    uint16_t idx = 0;
    uint8_t len = 0, role = 0;

    memset(out, 0, sizeof *out);
    DAFL_TRY(dafl_get_u16(r, &idx));
    DAFL_TRY(dafl_get_u8(r, &len));
    if (idx != number || len > DAFL_NAME_MAX)
        return DAFL_ERR_PEER;
    DAFL_TRY(dafl_get_fixed(r, out->id.name, len));
    DAFL_TRY(dafl_get_u8(r, &role));
    DAFL_TRY(dafl_get_u16(r, &out->cell));
    DAFL_TRY(dafl_get_fixed(r, out->id.sign_pk, sizeof out->id.sign_pk));
    DAFL_TRY(dafl_get_fixed(r, out->id.curve_pk.b, sizeof out->id.curve_pk.b));
    if (role > DAFL_ROLE_KEYHOLDER || !dafl_name_ok(out->id.name) ||
        strlen(out->id.name) != len)
        return DAFL_ERR_PEER;
    out->role = (dafl_role)role;
    return DAFL_OK;
}

dafl_err dafl_get_roster(dafl_roster *out, dafl_bytes bytes, dafl_why *why)
{
    static const char malformed[] = "the roster is malformed";
    dafl_party parties[DAFL_PARTIES_MAX];
    dafl_reader r = dafl_read(bytes);
    uint8_t head[sizeof magic];
    uint16_t n = 0;

    if (dafl_get_fixed(&r, head, sizeof head) != DAFL_OK ||
        !same_bytes(head, magic, sizeof magic) ||
        dafl_get_u16(&r, &n) != DAFL_OK || n > DAFL_PARTIES_MAX)
        return dafl_fail(why, DAFL_ERR_INPUT, "%s", malformed);
    for (uint16_t i = 0; i < n; i++)
        if (get_party(&r, &parties[i], i) != DAFL_OK)
            return dafl_fail(why, DAFL_ERR_INPUT, "%s at party %u", malformed,
                             (unsigned)i);
    if (dafl_get_end(&r) != DAFL_OK)
        return dafl_fail(why, DAFL_ERR_INPUT, "%s", malformed);
    return dafl_roster_make(out, parties, n, why);
}

dafl_err dafl_roster_digest(dafl_digest *out, const dafl_roster *roster)
{
    dafl_writer w = {0};
    dafl_err err;

    dafl_put_roster(&w, roster);
    err = dafl_writer_done(&w);
    if (err == DAFL_OK)
        dafl_hash_one(out, "deepafl/roster", dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    return err;
}

int dafl_roster_find(const dafl_roster *roster, const char *name)
{
    for (int i = 0; i < roster->n; i++)
        if (strcmp(roster->parties[i].id.name, name) == 0)
            return i;
    return -1;
}

dafl_members dafl_roster_cell(const dafl_roster *roster, uint16_t cell)
{
    dafl_members m = dafl_members_none(roster->n_clients);

    for (size_t i = 0; i < roster->n_clients; i++)
        if (roster->parties[i].cell == cell)
            dafl_members_add(&m, i);
    return m;
}

dafl_members dafl_roster_clients(const dafl_roster *roster)
{
    dafl_members m = dafl_members_none(roster->n_clients);

    for (size_t i = 0; i < roster->n_clients; i++)
        dafl_members_add(&m, i);
    return m;
}

size_t dafl_roster_least_cell(const dafl_roster *roster)
{
    size_t least = DAFL_CLIENTS_MAX;

    for (uint16_t c = 0; c < roster->n_cells; c++) {
        dafl_members m = dafl_roster_cell(roster, c);
        size_t n = dafl_members_count(&m);
        least = n < least ? n : least;
    }
    return least;
}

dafl_members dafl_roster_keep_whole(const dafl_roster *roster,
                                    const dafl_members *set)
{
    dafl_members whole = dafl_members_none(roster->n_clients);

    for (uint16_t c = 0; c < roster->n_cells; c++) {
        dafl_members cell = dafl_roster_cell(roster, c);
        if (!dafl_members_within(&cell, set))
            continue;
        for (size_t i = 0; i < roster->n_clients; i++)
            if (dafl_members_has(&cell, i))
                dafl_members_add(&whole, i);
    }
    return whole;
}

bool dafl_roster_whole_cells(const dafl_roster *roster, const dafl_members *set)
{
    dafl_members whole = dafl_roster_keep_whole(roster, set);

    return dafl_members_equal(&whole, set);
}
