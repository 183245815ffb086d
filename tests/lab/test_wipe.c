/* SPDX-License-Identifier: Apache-2.0 */
/* When a slot is closed its secrets are gone from memory (C6 forward_secrecy):
 * the keys sk and b of every client, the keys of all masks, and every share
 * that anybody held or was given. All writable memory of the process is
 * searched, with the clients and the server in it: heap, guarded memory, what
 * was freed, all of the stack.
 *
 * The lab would keep copies of its own. Its disks wipe what they erase; of
 * REVEAL messages, which have shares in them, this test carries the bytes from
 * the client to the server itself and blanks the lab's. So nothing need be left
 * out of the search. */
#include "tests/check.h"

#include "lib/secret.h"
#include "protocol/client_state.h"
#include "protocol/weaken.h"
#include "tests/lab/inside.h"

/* What the test itself remembers must not be found: every byte is changed. */
#define VEIL 0x5a

enum { CLIENTS = 5 };

/* ---- what to search for ---- */

typedef struct {
    uint32_t slot;
    uint16_t client, dealer; /* dealer == client: its own key */
    const char *what;
    bool fleeting; /* only there while it is used */
    uint8_t veiled[32];
    bool found;
    char where[80]; /* the first place */
} mark;

static mark marks[2048];
static size_t n_marks;

static uint32_t last_cast;

static mark *remember(uint32_t slot, uint16_t client, uint16_t dealer,
                      const char *what, const uint8_t *secret)
{
    mark *m = &marks[n_marks++];

    assert_true(n_marks <= COUNT(marks));
    *m = (mark){.slot = slot, .client = client, .dealer = dealer, .what = what};
    for (size_t i = 0; i < sizeof m->veiled; i++)
        m->veiled[i] = secret[i] ^ VEIL;
    return m;
}

/* Everything in the vaults, as it was kept before the first slot. */
static void remember_vaults(const lab *l)
{
    last_cast = 0;
    for (uint32_t slot = 1; slot <= lab_config(l)->slots; slot++)
        for (uint16_t u = 0; u < CLIENTS; u++) {
            const uint8_t *record = lab_disk_secret(l, u, slot).ptr;
            assert_non_null(record);
            (void)remember(slot, u, u, "sk", record);
            (void)remember(slot, u, u, "b", record + 32);
            for (uint16_t v = 0; v < CLIENTS; v++) {
                const uint8_t *held =
                    record + DAFL_OWN_BYTES + (size_t)v * DAFL_HELD_BYTES;
                if (v == u)
                    continue;
                (void)remember(slot, u, v, "share of b", held);
                (void)remember(slot, u, v, "share of sk", held + 32);
            }
        }
}

static const dafl_key *own_key(const lab *l, uint16_t client, uint32_t slot)
{
    const uint8_t *record = lab_disk_secret(l, client, slot).ptr;

    assert_non_null(record);
    return (const dafl_key *)(const void *)record;
}

/* The keys of the masks, which open a recorded upload as well. */
static void remember_masks(const lab *l, uint32_t slot, const dafl_members *a,
                           const dafl_digest *ctx2)
{
    dafl_public pk[CLIENTS];
    dafl_key key;

    for (uint16_t u = 0; u < CLIENTS; u++)
        dafl_key_public(&pk[u], own_key(l, u, slot));
    for (uint16_t u = 0; u < CLIENTS; u++)
        for (uint16_t v = u; v < CLIENTS; v++) {
            if (!dafl_members_has(a, u) || !dafl_members_has(a, v))
                continue;
            if (u == v)
                dafl_key_self(&key, own_key(l, u, slot) + 1, ctx2, u);
            else
                assert_ok(dafl_key_pair(&key, own_key(l, u, slot), ctx2, u,
                                        &pk[u], v, &pk[v]));
            remember(slot, u, v, "mask key", key.b)->fleeting = true;
        }
    dafl_key_wipe(&key);
}

/* ---- the search ---- */

/* Half a secret is enough, so that copies in registers' sizes are found; and
 * the first and last byte do not count, since a curve's scalar is clamped
 * there. */
static const size_t halves[] = {1, 15};
#define HALF 16

static uint8_t filter[1u << 17]; /* bits: some half begins like that */

static uint32_t filter_at(const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof v);
    return v * 2654435761u >> 12;
}

static void make_filter(void)
{
    memset(filter, 0, sizeof filter);
    for (size_t i = 0; i < n_marks; i++)
        for (size_t h = 0; h < COUNT(halves); h++) {
            uint32_t at = filter_at(marks[i].veiled + halves[h]);
            filter[at / 8] |= (uint8_t)(1u << at % 8);
        }
}

static bool is_half(const uint8_t *memory, const uint8_t *veiled)
{
    uint8_t differ = 0;

    for (size_t i = 0; i < HALF; i++)
        differ |= (uint8_t)(memory[i] ^ VEIL ^ veiled[i]);
    return differ == 0;
}

static void note(mark *m, const uint8_t *at, const char *where)
{
    if (!m->found)
        (void)snprintf(m->where, sizeof m->where, "%p in %s", (const void *)at,
                       where);
    m->found = true;
}

/* Every place, whatever its alignment. Not for sanitizers: it reads what is
 * not allocated any more. */
static void search(const uint8_t *from, const uint8_t *to, const char *where)
{
    for (const uint8_t *p = from; p + HALF <= to; p++) {
        uint8_t start[4];
        uint32_t at;
        for (size_t i = 0; i < sizeof start; i++)
            start[i] = p[i] ^ VEIL;
        at = filter_at(start);
        if ((filter[at / 8] >> at % 8 & 1) == 0)
            continue;
        /* Memory that was filled with one byte may pass the filter all over. */
        if (memcmp(p, p + 1, HALF - 1) == 0)
            continue;
        for (size_t i = 0; i < n_marks; i++)
            for (size_t h = 0; h < COUNT(halves); h++)
                if (is_half(p, marks[i].veiled + halves[h]))
                    note(&marks[i], p, where);
    }
}

static void search_everywhere(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];

    assert_non_null(maps);
    for (size_t i = 0; i < n_marks; i++)
        marks[i].found = false;
    make_filter();
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long from, to;
        char rights[5], *name = strrchr(line, ' ');
        if (sscanf(line, "%lx-%lx %4s", &from, &to, rights) != 3 ||
            rights[0] != 'r' || rights[1] != 'w')
            continue;
        line[strcspn(line, "\n")] = '\0';
        search((const uint8_t *)from, (const uint8_t *)to,
               name == NULL ? "" : name + 1);
    }
    (void)fclose(maps);
}

/* Every journal, also for secrets of slots to come. */
static void search_journals(const lab *l)
{
    for (size_t i = 0; i < n_marks; i++)
        marks[i].found = false;
    make_filter();
    for (uint16_t p = 0; p <= lab_server_index(l); p++)
        for (size_t i = 0; i < lab_disk_records(l, p); i++) {
            dafl_bytes record = lab_disk_record(l, p, i);
            search(record.ptr, record.ptr + record.len, "a journal");
        }
}

/* How many secrets of slots from .. to were found, or are to be found if they
 * are not wiped. */
static size_t count(uint32_t from, uint32_t to, bool found)
{
    size_t n = 0;

    for (size_t i = 0; i < n_marks; i++)
        n += marks[i].slot >= from && marks[i].slot <= to &&
             (found ? marks[i].found : !marks[i].fleeting);
    return n;
}

static void assert_gone(uint32_t slot)
{
    if (count(1, slot, true) == 0)
        return;
    for (size_t i = 0; i < n_marks; i++)
        if (marks[i].found && marks[i].slot <= slot)
            print_error("slot %u is closed: %s of client %u, held by %u, at "
                        "%s\n",
                        (unsigned)marks[i].slot, marks[i].what,
                        (unsigned)marks[i].dealer, (unsigned)marks[i].client,
                        marks[i].where);
    fail_msg("%zu of %zu secrets of closed slots are still there",
             count(1, slot, true), count(1, slot, false));
}

/* ---- a run that leaves no copies of its own ---- */

static struct {
    uint8_t *veiled;
    size_t len;
} carried[CLIENTS];

static void blank_shares(uint8_t *body, size_t len)
{
    /* u16 n, n (u16 dealer, u8 kind, share[32]) */
    for (size_t at = 2; at + 35 <= len; at += 35)
        memset(body + at + 3, 0, 32);
}

static bool carry_reveals(lab *l, lab_letter *m, void *ctx)
{
    const lab_seen *seen;
    size_t n = lab_transcript(l, &seen);

    (void)ctx;
    if (m->envelope.type != DAFL_MSG_REVEAL)
        return true;
    free(carried[m->from].veiled);
    carried[m->from].veiled = malloc(m->len);
    carried[m->from].len = m->len;
    assert_non_null(carried[m->from].veiled);
    for (size_t i = 0; i < m->len; i++)
        carried[m->from].veiled[i] = m->bytes[i] ^ VEIL;
    dafl_wipe(m->bytes, m->len);
    assert_int_equal(seen[n - 1].type, DAFL_MSG_REVEAL);
    blank_shares((uint8_t *)(uintptr_t)seen[n - 1].envelope.body.ptr,
                 seen[n - 1].envelope.body.len);
    return false;
}

static void deliver_reveals(lab *l)
{
    for (uint16_t u = 0; u < CLIENTS; u++) {
        uint8_t *bytes = carried[u].veiled;
        if (bytes == NULL)
            continue;
        carried[u].veiled = NULL;
        for (size_t i = 0; i < carried[u].len; i++)
            bytes[i] ^= VEIL;
        if (lab_server(l) != NULL)
            lab_party_work(
                l, lab_the_server(l),
                dafl_server_receive(lab_server(l),
                                    (dafl_bytes){bytes, carried[u].len},
                                    lab_now(l)));
        dafl_wipe(bytes, carried[u].len);
        free(bytes);
    }
}

static bool step(lab *l)
{
    bool more = lab_step(l);
    const lab_event *events;
    size_t n = lab_events(l, &events);

    for (size_t i = n_marks == 0 ? n : 0; i < n; i++)
        if (events[i].party == lab_server_index(l) &&
            events[i].event.kind == DAFL_EVENT_CAST &&
            events[i].event.slot > last_cast) {
            last_cast = events[i].event.slot;
            remember_masks(l, last_cast, &events[i].event.set,
                           &events[i].event.digest);
        }
    deliver_reveals(l);
    return more;
}

/* Until every client has a slot's MODEL, and so has closed those before. */
static void run_to_slot(lab *l, uint32_t slot)
{
    const lab_event *events;
    size_t there;

    do {
        size_t n = lab_events(l, &events);
        dafl_members have = dafl_members_none(CLIENTS);
        for (size_t i = 0; i < n; i++)
            if (events[i].party < CLIENTS &&
                events[i].event.kind == DAFL_EVENT_MODEL &&
                events[i].event.slot == slot)
                dafl_members_add(&have, events[i].party);
        there = dafl_members_count(&have);
    } while (there < CLIENTS && step(l));
    assert_int_equal(there, CLIENTS);
}

typedef enum { NO_TROUBLE, ONE_GONE, ONE_CRASHES, TOO_FEW, TROUBLES } trouble;

static lab *begin(trouble t)
{
    lab_scenario s = lab_scenario_for(CLIENTS, 1, random_u64());
    lab *l;

    n_marks = 0;
    s.questions = 4;
    s.intercept = carry_reveals;
    s.net.latency_min = 10;
    s.net.latency_max = 12;
    l = lab_new(&s);
    if (t == ONE_GONE) /* the server rebuilds its sk */
        lab_leave(l, 2, 0, LAB_AT_CAST, LAB_NEXT_SLOT);
    if (t == ONE_CRASHES) /* and reads its disk again */
        lab_leave_crashing(l, 2, 0, LAB_AFTER_SIGN, LAB_SOON);
    for (uint16_t u = 0; t == TOO_FEW && u < 3; u++) /* E_QUORUM */
        lab_leave(l, u, 0, LAB_AT_SURV, LAB_NEXT_SLOT);
    run_to_slot(l, 1);
    remember_vaults(l);
    return l;
}

static void secrets_of_closed_slots_are_gone(void **state)
{
    (void)state;
    for (int t = 0; t < TROUBLES; t++) {
        lab *l = begin((trouble)t);
        uint32_t last = lab_config(l)->slots;

        for (uint32_t slot = 2; slot <= 4; slot++) {
            /* The search finds what is there: all of the open slots. */
            run_to_slot(l, slot);
            search_everywhere();
            assert_int_equal(count(slot, last, true), count(slot, last, false));
            assert_gone(slot - 1);
            search_journals(l);
            assert_gone(last);
        }
        while (step(l))
            ;
        lab_check_done(l);
        assert_true(last_cast >= 4);
        assert_true(t != ONE_GONE || dafl_server_stat(lab_server(l)).rebuilt);
        assert_int_equal(dafl_server_stat(lab_server(l)).failed, t == TOO_FEW);
        search_everywhere();
        assert_gone(last);
        search_journals(l);
        assert_gone(last);
        lab_free(&l);
    }
}

#ifdef DAFL_WEAKEN
/* In a run whose client does not wipe, the lab's disk does not erase either:
 * what is on disk is not what this test is about. */
static void blank_disks(lab *l, uint32_t slot)
{
    for (uint16_t u = 0; u < CLIENTS; u++) {
        const lab_list *vault = &lab_party_of(l, u)->disk.vault;
        for (size_t i = 0; i < vault->n; i++) {
            lab_kept *k = (lab_kept *)vault->items + i;
            if (k->slot <= slot)
                dafl_wipe(k->ptr, k->len);
        }
    }
}

static void without_wiping_they_are_found(void **state)
{
    lab *l;

    (void)state;
    dafl_weakened = DAFL_WEAK_WIPE;
    l = begin(NO_TROUBLE);
    run_to_slot(l, 3);
    blank_disks(l, 2);
    search_everywhere();
    assert_int_equal(count(1, 2, true), count(1, 2, false));
    lab_free(&l);
    dafl_weakened = DAFL_WEAK_NOTHING;
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secrets_of_closed_slots_are_gone),
#ifdef DAFL_WEAKEN
        cmocka_unit_test(without_wiping_they_are_found),
#endif
    };

#ifdef SANITIZED
    print_message("skipped: a sanitizer keeps what was freed, and terabytes of "
                  "its own\n");
    return 77;
#endif
    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
