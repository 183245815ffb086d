/* SPDX-License-Identifier: Apache-2.0 */
/* Audit logs. After a first byte that is even: the text of a log, of lines
 * nobody signed. Odd: a little program, four bytes an event, from which three
 * clients, their server and a key holder write logs with their own keys; those
 * are judged together.
 *
 *   who and what   party = b % 5 (3: the server, 4: the key holder),
 *                  event = b / 5
 *   slot
 *   number and set number = b >> 3, set = b & 7
 *   how            1: a wrong digest, 2: wrong signatures, 4: no peer,
 *                  8: no set, 16: another party's key on the statement,
 *                  32: a fault
 *
 * What is read is written again the same; the logs of a program are in order as
 * texts; a proof holds. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/audit_check.h"
#include "protocol/context.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CLIENTS 3
#define PARTIES (CLIENTS + 2)

enum {
    WRONG_DIGEST = 1,
    WRONG_SIGNATURES = 2,
    NO_PEER = 4,
    NO_SET = 8,
    OTHER_KEY = 16,
    FAULT = 32,
};

/* What a party has said so far, so that it can say what follows from it. */
typedef struct {
    dafl_audit audit;
    dafl_writer log;
    dafl_digest ctx, ctx2, stmt;
} scribe;

static struct {
    bool made;
    dafl_secret_identity ids[PARTIES];
    dafl_roster roster;
    dafl_config config;
} world;

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void make_world(void)
{
    static const char *const names[PARTIES] = {"a", "b", "c", "s", "k"};
    dafl_party parties[PARTIES];

    if (world.made)
        return;
    memset(parties, 0, sizeof parties);
    for (size_t i = 0; i < PARTIES; i++) {
        uint8_t seed[64];
        memset(seed, (int)i + 1, sizeof seed);
        must(dafl_identity_new_derand(&world.ids[i], names[i], seed, NULL) ==
             DAFL_OK);
        parties[i] = (dafl_party){.id = world.ids[i].public,
                                  .role = i < CLIENTS    ? DAFL_ROLE_CLIENT
                                          : i == CLIENTS ? DAFL_ROLE_SERVER
                                                         : DAFL_ROLE_KEYHOLDER,
                                  .cell = i < CLIENTS ? 0 : DAFL_NO_CELL};
    }
    must(dafl_roster_make(&world.roster, parties, PARTIES, NULL) == DAFL_OK);
    world.config = dafl_config_default();
    world.config.mode = DAFL_MODE_SEAL;
    world.config.policy = (dafl_policy){.n_min = 2, .m = 2, .g = 1};
    memcpy(world.config.method, "fuzz", 5);
    world.made = true;
}

static dafl_digest filled(uint8_t with)
{
    dafl_digest d;

    memset(d.b, with, sizeof d.b);
    return d;
}

static void put_filled(dafl_writer *w, uint8_t with)
{
    dafl_digest d = filled(with);

    dafl_put_fixed(w, d.b, sizeof d.b);
}

/* The digests of uploads, and who signed. */
static void put_digests(dafl_writer *w, const dafl_event *e)
{
    for (uint8_t u = 0; u < CLIENTS; u++)
        if (dafl_members_has(&e->set, u))
            put_filled(w, u);
}

static void put_signature(dafl_writer *w, const dafl_digest *stmt, size_t u,
                          uint8_t how)
{
    dafl_signature sig = {{0}};

    if (!(how & WRONG_SIGNATURES))
        dafl_sign(&sig, stmt,
                  &world.ids[how & OTHER_KEY ? (u + 1) % PARTIES : u]);
    dafl_put_fixed(w, sig.b, sizeof sig.b);
}

/* The digest that an event of this kind must have, and the bytes that go with
 * it. */
static void fill_in(scribe *s, dafl_event *e, dafl_writer *more, uint8_t how)
{
    dafl_members all = dafl_members_none(CLIENTS);
    dafl_writer digests = {0};
    dafl_digest d, he = filled(0x66);

    for (size_t u = 0; u < CLIENTS; u++)
        dafl_members_add(&all, u);
    switch (e->kind) {
    case DAFL_EVENT_START:
        must(dafl_roster_digest(&d, &world.roster) == DAFL_OK);
        dafl_put_fixed(more, d.b, sizeof d.b);
        must(dafl_config_digest(&d, &world.config) == DAFL_OK);
        dafl_put_fixed(more, d.b, sizeof d.b);
        dafl_put_fixed(more, world.ids[s->audit.party].public.name, 1);
        break;
    case DAFL_EVENT_SETUP:
        e->digest = filled(0x55);
        dafl_put_u16(more, 2);
        dafl_put_members(more, &all);
        break;
    case DAFL_EVENT_MODEL:
        e->digest = filled((uint8_t)e->number);
        dafl_put_u32(more, 0);
        dafl_put_u64(more, 9);
        dafl_put_u8(more, (uint8_t)world.config.contract.w);
        put_filled(more, 0x55);
        put_filled(more, 0x66);
        d = filled(0x55);
        dafl_context_slot(
            &s->ctx, &d,
            &(dafl_slot_task){.slot = e->slot,
                              .query = e->number,
                              .model = e->digest,
                              .len = 9,
                              .w = (uint8_t)world.config.contract.w,
                              .he = he});
        break;
    case DAFL_EVENT_READY:
        e->digest = s->ctx;
        break;
    case DAFL_EVENT_CAST:
        dafl_context_cast(&s->ctx2, &s->ctx, &e->set);
        e->digest = s->ctx2;
        break;
    case DAFL_EVENT_UPLOAD:
        e->digest = filled(
            (uint8_t)(s->audit.party < CLIENTS ? s->audit.party : e->peer));
        break;
    case DAFL_EVENT_SURV:
    case DAFL_EVENT_SIGN:
        put_digests(&digests, e);
        dafl_context_statement(&s->stmt, &s->ctx2, &e->set,
                               dafl_writer_bytes(&digests));
        e->digest = s->stmt;
        if (e->kind == DAFL_EVENT_SIGN)
            put_signature(more, &s->stmt, s->audit.party, how);
        dafl_put_fixed(more, digests.ptr, digests.len);
        dafl_writer_drop(&digests);
        break;
    case DAFL_EVENT_CONF:
        e->digest = s->stmt;
        for (size_t u = 0; u < CLIENTS; u++)
            if (dafl_members_has(&e->set, u))
                put_signature(more, &s->stmt, u, how);
        break;
    case DAFL_EVENT_PEER_HEAD:
        dafl_put_u64(more, e->number);
        break;
    default:
        e->digest = filled((uint8_t)e->number);
        break;
    }
}

static void tell(scribe *scribes, const uint8_t op[4])
{
    scribe *s = &scribes[op[0] % PARTIES];
    dafl_event e = {.kind = (dafl_event_kind)(op[0] / PARTIES % DAFL_EVENTS),
                    .slot = op[1],
                    .number = op[2] >> 3,
                    .peer = op[3] & NO_PEER             ? DAFL_NOBODY
                            : s->audit.party != CLIENTS ? CLIENTS
                                                        : op[2] & 3,
                    .fault = op[3] & FAULT ? DAFL_E_QUORUM : DAFL_FAULT_NONE};
    dafl_writer more = {0};

    if (!(op[3] & NO_SET))
        e.set = dafl_members_none(CLIENTS);
    for (size_t u = 0; u < e.set.n; u++)
        if (op[2] >> u & 1)
            dafl_members_add(&e.set, u);
    fill_in(s, &e, &more, op[3]);
    if (e.kind == DAFL_EVENT_PEER_HEAD)
        e.digest = scribes[e.peer % PARTIES].audit.head;
    e.digest.b[0] ^= op[3] & WRONG_DIGEST;
    /* What cannot be written is not. */
    if (dafl_audit_add(&s->audit, &s->log, &e, dafl_writer_bytes(&more),
                       op[1]) != DAFL_OK)
        must(e.set.n == 0);
    dafl_writer_drop(&more);
}

static void judge(const dafl_audit_log *logs, size_t n, bool texts_in_order)
{
    dafl_audit_report *r = NULL;

    must(dafl_audit_verify(&r, &world.roster, &world.config, logs, n, NULL) ==
         DAFL_OK);
    for (size_t i = 0; texts_in_order && i < r->n_findings; i++)
        must(r->findings[i].rule > DAFL_AUDIT_SIGNATURE ||
             r->logs[r->findings[i].log].n_lines == 0);
    for (size_t i = 0; i < r->n_proofs; i++) {
        const dafl_audit_proof *p = &r->proofs[i];
        const dafl_audit_statement *a = &r->statements[p->statements[0]];
        const dafl_audit_statement *b = &r->statements[p->statements[1]];
        const uint8_t *pk = world.roster.parties[p->client].id.sign_pk;
        must(a->slot == b->slot && !dafl_digest_equal(&a->stmt, &b->stmt) &&
             dafl_sign_check(&a->signatures[p->client], &a->stmt, pk) ==
                 DAFL_OK &&
             dafl_sign_check(&b->signatures[p->client], &b->stmt, pk) ==
                 DAFL_OK);
    }
    dafl_audit_report_free(&r);
}

static void run_program(const uint8_t *data, size_t size)
{
    dafl_audit_log logs[PARTIES];
    scribe scribes[PARTIES];

    memset(scribes, 0, sizeof scribes);
    for (uint16_t i = 0; i < PARTIES; i++)
        dafl_audit_init(&scribes[i].audit, &world.ids[i], i, CLIENTS);
    for (size_t i = 0; i + 4 <= size && i < 256; i += 4)
        tell(scribes, data + i);
    for (size_t i = 0; i < PARTIES; i++)
        logs[i] = (dafl_audit_log){"log", dafl_writer_bytes(&scribes[i].log)};
    judge(logs, PARTIES, true);
    for (size_t i = 0; i < PARTIES; i++)
        dafl_writer_drop(&scribes[i].log);
}

static void read_text(dafl_bytes text)
{
    const dafl_audit_log log = {"log", text};
    dafl_audit_line line;
    dafl_writer w = {0};
    dafl_audit a;
    size_t keep = 0;

    if (dafl_get_audit_line(&line, text, CLIENTS) == DAFL_OK) {
        must(dafl_put_audit_line(&w, &line) == DAFL_OK &&
             w.len == text.len + 1 && memcmp(w.ptr, text.ptr, text.len) == 0);
        dafl_audit_line_drop(&line);
        dafl_writer_drop(&w);
    }
    dafl_audit_init(&a, &world.ids[0], 0, CLIENTS);
    if (dafl_audit_resume(&a, &keep, text, NULL) == DAFL_OK)
        must(keep <= text.len && (keep == 0) == (a.seq == 0));
    judge(&log, 1, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    make_world();
    if (size == 0)
        return 0;
    if (data[0] % 2 == 0)
        read_text((dafl_bytes){data + 1, size - 1});
    else
        run_program(data + 1, size - 1);
    return 0;
}
