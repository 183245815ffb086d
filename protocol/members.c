/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/members.h"

#include <assert.h>
#include <string.h>

static size_t used_bytes(size_t n)
{
    return (n + 7) / 8;
}

dafl_members dafl_members_none(size_t n)
{
    assert(n <= DAFL_CLIENTS_MAX);
    return (dafl_members){.n = (uint16_t)n};
}

void dafl_members_add(dafl_members *m, size_t client)
{
    assert(client < m->n);
    m->bits[client / 8] |= (uint8_t)(1u << client % 8);
}

void dafl_members_remove(dafl_members *m, size_t client)
{
    assert(client < m->n);
    m->bits[client / 8] &= (uint8_t) ~(1u << client % 8);
}

bool dafl_members_has(const dafl_members *m, size_t client)
{
    return client < m->n && (m->bits[client / 8] >> client % 8 & 1) != 0;
}

size_t dafl_members_count(const dafl_members *m)
{
    size_t count = 0;

    for (size_t i = 0; i < m->n; i++)
        count += dafl_members_has(m, i);
    return count;
}

bool dafl_members_equal(const dafl_members *a, const dafl_members *b)
{
    return a->n == b->n && memcmp(a->bits, b->bits, sizeof a->bits) == 0;
}

bool dafl_members_within(const dafl_members *a, const dafl_members *b)
{
    uint8_t outside = 0;

    for (size_t i = 0; i < sizeof a->bits; i++)
        outside |= (uint8_t)(a->bits[i] & ~b->bits[i]);
    return a->n == b->n && outside == 0;
}

dafl_members dafl_members_minus(const dafl_members *a, const dafl_members *b)
{
    dafl_members m = *a;

    for (size_t i = 0; i < sizeof m.bits; i++)
        m.bits[i] &= (uint8_t)~b->bits[i];
    return m;
}

dafl_members dafl_members_both(const dafl_members *a, const dafl_members *b)
{
    dafl_members m = *a;

    for (size_t i = 0; i < sizeof m.bits; i++)
        m.bits[i] &= b->bits[i];
    return m;
}

size_t dafl_members_rank(const dafl_members *m, size_t client)
{
    size_t before = 0;

    for (size_t i = 0; i < client; i++)
        before += dafl_members_has(m, i);
    return before;
}

void dafl_put_members(dafl_writer *w, const dafl_members *m)
{
    dafl_put_u16(w, m->n);
    dafl_put_fixed(w, m->bits, used_bytes(m->n));
}

dafl_err dafl_get_members(dafl_reader *r, dafl_members *m)
{
    dafl_members got = {0};

    DAFL_TRY(dafl_get_u16(r, &got.n));
    if (got.n > DAFL_CLIENTS_MAX)
        return DAFL_ERR_PEER;
    DAFL_TRY(dafl_get_fixed(r, got.bits, used_bytes(got.n)));
    if (got.n % 8 != 0 && got.bits[got.n / 8] >> got.n % 8 != 0)
        return DAFL_ERR_PEER;
    *m = got;
    return DAFL_OK;
}
