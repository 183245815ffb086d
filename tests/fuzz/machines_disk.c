/* SPDX-License-Identifier: Apache-2.0 */
/* What outlives a machine: the rules of its federation, and its disk. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/he.h"
#include "tests/fuzz/machines.h"

/* ---- memory ---- */

void *fm_alloc(size_t n, size_t size)
{
    void *p = calloc(n == 0 ? 1 : n, size);

    if (p == NULL)
        abort();
    return p;
}

uint8_t *fm_copy(const void *bytes, size_t len)
{
    uint8_t *copy = fm_alloc(len, 1);

    if (len > 0)
        memcpy(copy, bytes, len);
    return copy;
}

/* ---- the rules ---- */

/* Who plays: with cells and without, chunks and ties, every ring width, masks
 * and none; six clients so that a wrong share can be corrected; the last with a
 * key holder, if there is encryption. */
static const struct {
    uint16_t k, cell, c, m, n_min, tries;
    uint32_t slots, tail;
    unsigned w;
    bool ties, pick, plain, sealed;
} scenarios[FM_SCENARIOS] = {
    {4, 1, 0, 2, 3, 0, 5, 2, 32, true, false, false, false},
    {4, 2, 0, 2, 2, 1, 4, 1, 40, true, false, false, false},
    {3, 3, 1, 3, 3, 1, 3, 3, 48, true, false, false, false},
    {6, 1, 0, 2, 4, 0, 3, 2048, 64, false, true, false, false},
    {3, 1, 0, 2, 2, 1, 3, 1, 56, false, false, true, false},
    {3, 1, 0, 2, 2, 0, 4, 2, 56, true, false, false, true},
};

static void make_rules(fm_rules *r, unsigned scenario)
{
    dafl_party parties[FM_PEERS_MAX + 1];
    dafl_config *c = &r->config;

    memset(parties, 0, sizeof parties);
    memset(r, 0, sizeof *r);
    r->k = scenarios[scenario].k;
    r->tail = scenarios[scenario].tail;
    r->ties = scenarios[scenario].ties;
    r->pick = scenarios[scenario].pick;
    r->sealed = scenarios[scenario].sealed && dafl_he_built();
    /* Without masks a model takes more than one message. */
    r->segment = scenarios[scenario].plain ? 6000 : 8;
    r->floor = (dafl_floor){.any_cohort = true, .plain = true};
    memset(r->run.b, 0x52, sizeof r->run.b);
    for (uint16_t i = 0; i <= r->k + r->sealed; i++) {
        uint8_t seed[64];
        char name[16];
        (void)snprintf(name, sizeof name, "p%u", (unsigned)i);
        memset(seed, 16 * (int)scenario + i, sizeof seed);
        if (dafl_identity_new_derand(&r->ids[i], name, seed, NULL) != DAFL_OK)
            abort();
        parties[i].id = r->ids[i].public;
        parties[i].role = i < r->k    ? DAFL_ROLE_CLIENT
                          : i == r->k ? DAFL_ROLE_SERVER
                                      : DAFL_ROLE_KEYHOLDER;
        parties[i].cell =
            (uint16_t)(i >= r->k ? DAFL_NO_CELL : i / scenarios[scenario].cell);
    }
    if (dafl_roster_make(&r->roster, parties, r->k + 1u + r->sealed, NULL) !=
        DAFL_OK)
        abort();
    *c = dafl_config_default();
    c->mode = scenarios[scenario].plain ? DAFL_MODE_NONE
              : r->sealed               ? DAFL_MODE_SEAL
                                        : DAFL_MODE_MASKS;
    c->policy = (dafl_policy){.n_min = scenarios[scenario].n_min,
                              .m = scenarios[scenario].m,
                              .g = scenarios[scenario].cell,
                              .c = scenarios[scenario].c};
    c->contract = (dafl_contract){.exact = true, .s = 1, .q = 1, .n_max = 64};
    c->contract.w = scenarios[scenario].w;
    c->want = 1000;
    c->tries = scenarios[scenario].tries;
    c->retries = 2;
    c->slots = scenarios[scenario].slots;
    c->chunk = r->sealed ? 1 << 17 : DAFL_CHUNK_MIN; /* a ciphertext */
    c->body_max = c->chunk + 64;
    (void)snprintf(c->method, sizeof c->method, "fuzz");
}

const fm_rules *fm_rules_of(unsigned scenario)
{
    static fm_rules rules[FM_SCENARIOS];

    if (rules[scenario].k == 0)
        make_rules(&rules[scenario], scenario);
    return &rules[scenario];
}

/* ---- disks ---- */

void fm_blocks_add(fm_blocks *list, size_t at, dafl_bytes bytes, uint32_t slot)
{
    if (list->n == list->room) {
        list->room = 2 * list->room + 8;
        list->items = realloc(list->items, list->room * sizeof *list->items);
        if (list->items == NULL)
            abort();
    }
    memmove(list->items + at + 1, list->items + at,
            (list->n - at) * sizeof *list->items);
    list->items[at] =
        (fm_block){fm_copy(bytes.ptr, bytes.len), bytes.len, slot};
    list->n++;
}

void fm_blocks_remove(fm_blocks *list, size_t at)
{
    free(list->items[at].ptr);
    list->n--;
    memmove(list->items + at, list->items + at + 1,
            (list->n - at) * sizeof *list->items);
}

static void blocks_drop(fm_blocks *list)
{
    while (list->n > 0)
        fm_blocks_remove(list, list->n - 1);
    free(list->items);
    *list = (fm_blocks){0};
}

void fm_disk_drop(fm_disk *disk)
{
    blocks_drop(&disk->journal);
    blocks_drop(&disk->vault);
}

static void blocks_copy(fm_blocks *to, const fm_blocks *from)
{
    for (size_t i = 0; i < from->n; i++)
        fm_blocks_add(to, i,
                      (dafl_bytes){from->items[i].ptr, from->items[i].len},
                      from->items[i].slot);
}

void fm_disk_copy(fm_disk *to, const fm_disk *from)
{
    *to = (fm_disk){0};
    blocks_copy(&to->journal, &from->journal);
    blocks_copy(&to->vault, &from->vault);
}

void fm_vault_keep(fm_blocks *vault, uint32_t slot, dafl_bytes bytes)
{
    for (size_t i = vault->n; i-- > 0;)
        if (vault->items[i].slot == slot)
            fm_blocks_remove(vault, i);
    fm_blocks_add(vault, vault->n, bytes, slot);
}

void fm_vault_erase(fm_blocks *vault, uint32_t slot)
{
    for (size_t i = vault->n; i-- > 0;)
        if (vault->items[i].slot <= slot)
            fm_blocks_remove(vault, i);
}
