/* SPDX-License-Identifier: Apache-2.0 */
/* A party: its machine, and the disk that outlives it. */
#include "tests/lab/inside.h"

#include <stdlib.h>
#include <string.h>

#include "lib/secret.h"

/* ---- disks ---- */

static lab_record *record_at(const lab_disk *disk, size_t i)
{
    return (lab_record *)disk->journal.items + i;
}

static lab_kept *kept_at(const lab_disk *disk, size_t i)
{
    return (lab_kept *)disk->vault.items + i;
}

static void disk_append(lab_disk *disk, dafl_bytes bytes)
{
    lab_record *r = lab_list_add(&disk->journal, sizeof *r);

    r->ptr = lab_copy(bytes);
    r->len = bytes.len;
}

static void disk_keep(lab_disk *disk, uint32_t slot, dafl_bytes bytes)
{
    lab_kept *k = NULL;

    for (size_t i = 0; i < disk->vault.n; i++)
        if (kept_at(disk, i)->slot == slot)
            k = kept_at(disk, i);
    if (k == NULL)
        k = lab_list_add(&disk->vault, sizeof *k);
    if (k->ptr != NULL)
        dafl_wipe(k->ptr, k->len);
    free(k->ptr);
    *k = (lab_kept){slot, lab_copy(bytes), bytes.len};
}

static void disk_erase(lab_disk *disk, uint32_t slot)
{
    size_t left = 0;

    for (size_t i = 0; i < disk->vault.n; i++) {
        lab_kept *k = kept_at(disk, i);
        if (k->slot > slot) {
            *kept_at(disk, left++) = *k;
            continue;
        }
        dafl_wipe(k->ptr, k->len);
        free(k->ptr);
    }
    disk->vault.n = left;
}

void lab_disk_drop(lab_disk *disk)
{
    disk_erase(disk, UINT32_MAX);
    for (size_t i = 0; i < disk->journal.n; i++)
        free(record_at(disk, i)->ptr);
    lab_list_drop(&disk->journal);
    lab_list_drop(&disk->vault);
}

static void disk_clone(lab_disk *to, const lab_disk *from)
{
    *to = (lab_disk){0};
    for (size_t i = 0; i < from->journal.n; i++)
        disk_append(
            to, (dafl_bytes){record_at(from, i)->ptr, record_at(from, i)->len});
    for (size_t i = 0; i < from->vault.n; i++) {
        const lab_kept *k = kept_at(from, i);
        disk_keep(to, k->slot, (dafl_bytes){k->ptr, k->len});
    }
}

lab_disk *lab_disk_copy(const lab *l, uint16_t party)
{
    lab_disk *disk = lab_alloc(1, sizeof *disk);

    disk_clone(disk, &lab_party_of(l, party)->disk);
    return disk;
}

void lab_disk_put(lab *l, uint16_t party, const lab_disk *disk)
{
    lab_party *p = lab_party_of(l, party);

    lab_disk_drop(&p->disk);
    disk_clone(&p->disk, disk);
}

void lab_disk_free(lab_disk **disk)
{
    if (*disk != NULL)
        lab_disk_drop(*disk);
    free(*disk);
    *disk = NULL;
}

size_t lab_disk_records(const lab *l, uint16_t party)
{
    return lab_party_of(l, party)->disk.journal.n;
}

dafl_bytes lab_disk_record(const lab *l, uint16_t party, size_t i)
{
    const lab_disk *disk = &lab_party_of(l, party)->disk;

    if (i >= disk->journal.n)
        lab_die("party %u has no journal record %zu", (unsigned)party, i);
    return (dafl_bytes){record_at(disk, i)->ptr, record_at(disk, i)->len};
}

dafl_bytes lab_disk_secret(const lab *l, uint16_t party, uint32_t slot)
{
    const lab_disk *disk = &lab_party_of(l, party)->disk;

    for (size_t i = 0; i < disk->vault.n; i++)
        if (kept_at(disk, i)->slot == slot)
            return (dafl_bytes){kept_at(disk, i)->ptr, kept_at(disk, i)->len};
    return (dafl_bytes){NULL, 0};
}

/* ---- machines ---- */

bool lab_party_alive(const lab_party *p)
{
    return p->client != NULL || p->server != NULL || p->holder != NULL;
}

static dafl_err recall_all(const lab_party *p)
{
    for (size_t i = 0; i < p->disk.journal.n; i++) {
        dafl_bytes r = {record_at(&p->disk, i)->ptr,
                        record_at(&p->disk, i)->len};
        DAFL_TRY(p->client != NULL   ? dafl_client_recall(p->client, r)
                 : p->server != NULL ? dafl_server_recall(p->server, r)
                                     : dafl_holder_recall(p->holder, r));
    }
    for (size_t i = 0; i < p->disk.vault.n; i++) {
        const lab_kept *k = kept_at(&p->disk, i);
        dafl_bytes bytes = {k->ptr, k->len};
        DAFL_TRY(p->client != NULL
                     ? dafl_client_recall_secret(p->client, k->slot, bytes)
                     : dafl_holder_recall_answer(p->holder, k->slot, bytes));
    }
    return DAFL_OK;
}

static dafl_err make_machine(lab *l, lab_party *p, dafl_why *why)
{
    const lab_method *method = l->scenario.method;
    dafl_client_params cp = {.roster = p->roster,
                             .config = &p->config,
                             .self = &p->id,
                             .floor = p->floor,
                             .method = method->client};
    dafl_server_params sp = {.roster = p->roster,
                             .config = &p->config,
                             .self = &p->id,
                             .method = method->server,
                             .run = l->run};
    dafl_holder_params hp = {.roster = p->roster,
                             .config = &p->config,
                             .self = &p->id,
                             .floor = p->floor};

    p->refused = DAFL_FAULT_NONE;
    if (p->index == l->scenario.k) {
        p->method_self = sp.method_self = method->new_server(l);
        return dafl_server_new(&p->server, &sp, &p->refused, why);
    }
    if (p->index > l->scenario.k)
        return dafl_holder_new(&p->holder, &hp, &p->refused, why);
    p->method_self = cp.method_self = method->new_client(l, p->index);
    return dafl_client_new(&p->client, &cp, &p->refused, why);
}

static void drop_machine(lab *l, lab_party *p)
{
    bool server = p->index == l->scenario.k;

    dafl_client_free(&p->client);
    dafl_server_free(&p->server);
    dafl_holder_free(&p->holder);
    if (p->method_self != NULL)
        (server ? l->scenario.method->free_server
                : l->scenario.method->free_client)(p->method_self);
    p->method_self = NULL;
}

void lab_party_boot(lab *l, lab_party *p)
{
    dafl_why why = {{0}};

    p->restart_at = LAB_NEVER;
    if (make_machine(l, p, &why) != DAFL_OK) {
        lab_say(l, "party %u is refused: %s (%s)", (unsigned)p->index,
                dafl_fault_name(p->refused), why.text);
        if (p->refused == DAFL_FAULT_NONE)
            lab_die("party %u: %s", (unsigned)p->index, why.text);
        drop_machine(l, p);
        return;
    }
    lab_say(l, "party %u starts, life %llu", (unsigned)p->index,
            (unsigned long long)++p->boots);
    if (recall_all(p) != DAFL_OK)
        lab_broken(l, "party %u does not understand its own disk",
                   (unsigned)p->index);
    p->heard_at = l->now;
    lab_log_open(l, p);
    lab_party_work(l, p,
                   p->client != NULL ? dafl_client_start(p->client)
                   : p->holder != NULL
                       ? dafl_holder_start(p->holder)
                       : dafl_server_start(p->server, lab_server_time(l)));
}

void lab_party_halt(lab *l, lab_party *p)
{
    lab_say(l, "party %u crashes after effect %llu", (unsigned)p->index,
            (unsigned long long)p->effects);
    drop_machine(l, p);
    if (p->index != l->scenario.k) {
        lab_net_break(l, p);
        return;
    }
    for (uint16_t u = 0; u < l->n; u++) {
        if (u == l->scenario.k)
            continue;
        lab_net_break(l, lab_party_of(l, u));
        lab_party_of(l, u)->tell_lost_at = LAB_NEVER;
    }
}

void lab_party_hello(lab *l, lab_party *p)
{
    p->heard_at = l->now;
    lab_party_work(l, p,
                   p->client != NULL ? dafl_client_hello(p->client)
                                     : dafl_holder_hello(p->holder));
}

bool lab_party_is_out(const lab_party *p)
{
    return p->client != NULL ? dafl_client_where(p->client) == DAFL_CLIENT_OUT
                             : dafl_holder_where(p->holder) == DAFL_HOLDER_OUT;
}

/* ---- effects ---- */

static void carry_out(lab *l, lab_party *p, const dafl_effect *e)
{
    switch (e->kind) {
    case DAFL_DO_SEND:
        lab_net_send(l, p, e);
        break;
    case DAFL_DO_APPEND:
        if (e->bytes.len == 0)
            lab_broken(l, "party %u journals nothing", (unsigned)p->index);
        else
            disk_append(&p->disk, e->bytes);
        break;
    case DAFL_DO_KEEP:
        disk_keep(&p->disk, e->slot, e->bytes);
        break;
    case DAFL_DO_ERASE:
        disk_erase(&p->disk, e->slot);
        break;
    case DAFL_DO_TELL:
        lab_witness_event(l, p, &e->event);
        lab_log_event(l, p, e);
        break;
    }
}

static bool next_effect(lab_party *p, dafl_effect *e)
{
    return p->client != NULL   ? dafl_client_next(p->client, e)
           : p->holder != NULL ? dafl_holder_next(p->holder, e)
                               : dafl_server_next(p->server, e);
}

void lab_party_crash(lab *l, lab_party *p, uint64_t restart_at)
{
    p->restart_at = restart_at;
    if (p->working)
        p->crashing = true; /* when its effect is finished */
    else if (lab_party_alive(p))
        lab_party_halt(l, p);
}

void lab_party_work(lab *l, lab_party *p, dafl_err err)
{
    dafl_effect e;

    if (err != DAFL_OK)
        lab_broken(l, "party %u returned \"%s\"", (unsigned)p->index,
                   dafl_err_name(err));
    p->working = true;
    while (!p->crashing && next_effect(p, &e)) {
        carry_out(l, p, &e);
        if (++p->effects == p->crash_at)
            lab_party_crash(l, p, l->now + l->scenario.restart_after);
    }
    p->working = false;
    if (p->crashing)
        lab_party_halt(l, p);
    p->crashing = false;
}
