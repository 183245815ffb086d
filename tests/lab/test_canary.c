/* SPDX-License-Identifier: Apache-2.0 */
/* Canaries (C8): every key that a client draws, and every input, carries a
 * pattern of 16 bytes. In a run with dropouts it is on no message, in no event,
 * no journal, no line that is printed, and on no page that a core dump would
 * have, at any moment; it is in the vaults, where it belongs, and on pages that
 * are left out of dumps. */
#include "tests/check.h"

#include <fcntl.h>
#include <sodium.h>

#include "lib/secret.h"
#include "protocol/client_state.h"
#include "tests/lab/inside.h"

/* The test itself must not be found: what it compares with is veiled. */
#define VEIL 0x5a
#define CANARY 16
enum { CLIENTS = 6 };

/* ---- the patterns ---- */

typedef enum { KEY, INPUT, PACKED, PATTERNS } pattern;

static uint8_t veiled[PATTERNS][CANARY];

static uint8_t canary_byte(pattern p, size_t i)
{
    return veiled[p][i] ^ VEIL;
}

/* Three numbers of an input, within what the contract allows. As they are in
 * memory they begin with the pattern INPUT; packed to 48 bits, PACKED. */
static int64_t canary_number(size_t i)
{
    static const int64_t numbers[3] = {0x032c3b4a5968 ^ 0x5a5a5a5a5a5a,
                                       0x051e2d3c4b5a ^ 0x5a5a5a5a5a5a,
                                       0x02579bdf2468 ^ 0x5a5a5a5a5a5a};

    return numbers[i] ^ 0x5a5a5a5a5a5a;
}

static void make_canaries(void)
{
    for (size_t i = 0; i < CANARY; i++) {
        veiled[KEY][i] = (uint8_t)random_u64();
        veiled[INPUT][i] =
            (uint8_t)((uint64_t)canary_number(i / 8) >> 8 * (i % 8)) ^ VEIL;
        veiled[PACKED][i] =
            (uint8_t)((uint64_t)canary_number(i / 6) >> 8 * (i % 6)) ^ VEIL;
    }
}

/* Linked with --wrap=dafl_key_random: every key. */
void __wrap_dafl_key_random(dafl_key *key);
void __real_dafl_key_random(dafl_key *key);

static size_t n_keys;

void __wrap_dafl_key_random(dafl_key *key)
{
    __real_dafl_key_random(key);
    for (size_t i = 0; i < CANARY; i++)
        key->b[8 + i] = canary_byte(KEY, i);
    n_keys++;
}

/* ---- vectors that carry it ---- */

static dafl_client_method client;
static dafl_server_method server;
static lab_method method;
static lab *the_lab;

static dafl_fault answer(void *self, const dafl_question *q, int64_t *x,
                         size_t len)
{
    dafl_fault fault = lab_vectors.client->answer(self, q, x, len);

    for (size_t i = 0; i < 3; i++)
        x[CLIENTS + i] = canary_number(i);
    return fault;
}

/* The lab compares with what it knows: the same without the pattern. */
static dafl_fault take(void *self, const dafl_question *q, const int64_t *sum,
                       size_t len, const dafl_members *cohort, dafl_why *why)
{
    int64_t *plain = calloc(len, sizeof *plain);
    int64_t *x = calloc(len, sizeof *x);
    dafl_fault fault;

    assert_true(plain != NULL && x != NULL);
    memcpy(plain, sum, len * sizeof *plain);
    for (uint16_t u = 0; u < CLIENTS; u++) {
        if (!dafl_members_has(cohort, u))
            continue;
        lab_answer(the_lab, u, q->number, x);
        for (size_t i = 0; i < 3; i++)
            plain[CLIENTS + i] += x[CLIENTS + i] - canary_number(i);
    }
    fault = lab_vectors.server->take(self, q, plain, len, cohort, why);
    free(plain);
    free(x);
    return fault;
}

/* ---- the search ---- */

static size_t found[PATTERNS];

static void reset(void)
{
    memset(found, 0, sizeof found);
}

static size_t total(void)
{
    return found[KEY] + found[INPUT] + found[PACKED];
}

static bool is_canary(pattern p, const uint8_t *at_byte)
{
    uint8_t differ = 0;

    for (size_t i = 0; i < CANARY; i++)
        differ |= (uint8_t)(at_byte[i] ^ canary_byte(p, i));
    return differ == 0;
}

/* As it is, at any place. Not for sanitizers: it reads what is not allocated
 * any more. */
static void search(const uint8_t *from, size_t len)
{
    uint8_t first[PATTERNS];

    for (pattern p = KEY; p < PATTERNS; p++)
        first[p] = canary_byte(p, 0);
    for (size_t i = 0; i + CANARY <= len; i++)
        for (pattern p = KEY; p < PATTERNS; p++)
            found[p] += from[i] == first[p] && is_canary(p, from + i);
}

/* Or as letters. */
static void search_text(const uint8_t *from, size_t len)
{
    static const char digits[] = "0123456789abcdef";

    search(from, len);
    for (size_t i = 0; i + 2 * CANARY <= len; i++)
        for (pattern p = KEY; p < PATTERNS; p++) {
            bool same = true;
            for (size_t j = 0; j < 2 * CANARY && same; j++) {
                unsigned byte = canary_byte(p, j / 2);
                same = (from[i + j] | (from[i + j] >= 'A' ? 0x20 : 0)) ==
                       digits[j % 2 == 0 ? byte >> 4 : byte & 15];
            }
            found[p] += same;
        }
}

#ifndef SANITIZED
/* The vault is on disk: in the lab that is memory like any other. */
static void search_around_vaults(const uint8_t *from, const uint8_t *to)
{
    while (from < to) {
        const uint8_t *stop = to, *next = to;
        for (uint16_t u = 0; u < CLIENTS; u++) {
            const lab_list *vault = &lab_party_of(the_lab, u)->disk.vault;
            for (size_t i = 0; i < vault->n; i++) {
                const lab_kept *k = (const lab_kept *)vault->items + i;
                if (k->ptr >= from && k->ptr < stop) {
                    stop = k->ptr;
                    next = k->ptr + k->len;
                }
            }
        }
        search(from, (size_t)(stop - from));
        from = next;
    }
}

/* All memory that can be written: the pages that a core dump has, or those that
 * it has not. */
static void search_memory(bool dumped)
{
    FILE *maps = fopen("/proc/self/smaps", "r");
    unsigned long from = 0, to = 0;
    char line[512], rights[5] = "";

    assert_non_null(maps);
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long begin, end;
        if (sscanf(line, "%lx-%lx %4s", &begin, &end, rights) == 3) {
            from = begin;
            to = end;
            continue;
        }
        if (strncmp(line, "VmFlags:", 8) == 0 && rights[0] == 'r' &&
            rights[1] == 'w' && (strstr(line, " dd") == NULL) == dumped)
            search_around_vaults((const uint8_t *)from, (const uint8_t *)to);
    }
    (void)fclose(maps);
}
#endif

/* ---- what is printed ---- */

static int kept_out, kept_err;

static void catch_output(void)
{
    int to = open(at("printed"), O_CREAT | O_TRUNC | O_WRONLY, 0600);

    assert_true(to >= 0);
    (void)fflush(NULL);
    kept_out = dup(1);
    kept_err = dup(2);
    assert_true(dup2(to, 1) == 1 && dup2(to, 2) == 2);
    (void)close(to);
}

static void search_output(void)
{
    static uint8_t text[1 << 22];
    FILE *f;
    size_t n;

    (void)fflush(NULL);
    assert_true(dup2(kept_out, 1) == 1 && dup2(kept_err, 2) == 2);
    (void)close(kept_out);
    (void)close(kept_err);
    f = fopen(at("printed"), "rb");
    assert_non_null(f);
    n = fread(text, 1, sizeof text, f);
    (void)fclose(f);
    assert_true(n > 1000 && n < sizeof text); /* the lab tells all it does */
    search_text(text, n);
}

/* ---- runs ---- */

static size_t on_wire, n_messages;

static bool look_at_message(lab *l, lab_letter *m, void *ctx)
{
    size_t before = total();

    (void)l;
    (void)ctx;
    search_text(m->bytes, m->len);
    on_wire += total() - before;
    n_messages++;
    return true;
}

static void search_records(const lab *l)
{
    const lab_event *events;
    size_t n = lab_events(l, &events);

    search_text((const uint8_t *)events, n * sizeof *events);
    for (uint16_t p = 0; p <= CLIENTS; p++)
        for (size_t i = 0; i < lab_disk_records(l, p); i++) {
            dafl_bytes record = lab_disk_record(l, p, i);
            search_text(record.ptr, record.len);
        }
}

static lab *canary_lab(dafl_mode mode)
{
    lab_scenario s = lab_scenario_for(CLIENTS, 3, random_u64());

    make_canaries();
    client = *lab_vectors.client;
    client.answer = answer;
    server = *lab_vectors.server;
    server.take = take;
    method = lab_vectors;
    method.client = &client;
    method.server = &server;
    s.method = &method;
    /* Inputs are large. */
    s.tail = (uint32_t)(DAFL_BULK_APART / sizeof(int64_t));
    s.config.mode = mode;
    s.floor.plain = mode == DAFL_MODE_NONE;
    s.intercept = look_at_message;
    s.net.latency_min = 10;
    s.net.latency_max = 12;
    n_keys = on_wire = n_messages = 0;
    reset();
    the_lab = lab_new(&s);
    return the_lab;
}

/* Every client has an input in hand that it has not masked yet. */
static bool all_ready(lab *l)
{
    size_t n = 0;

    for (uint16_t u = 0; u < CLIENTS; u++)
        n += lab_client(l, u) != NULL && lab_client(l, u)->x != NULL;
    return n == CLIENTS;
}

/* What was found in memory while keys and inputs were there. Judged later, when
 * there is an output for it. */
typedef struct {
    size_t hidden[PATTERNS]; /* on pages that are not dumped */
    size_t dumped[PATTERNS];
} sight;

static void look_at_memory(sight *s)
{
#ifndef SANITIZED
    reset();
    search_memory(false);
    memcpy(s->hidden, found, sizeof found);
    reset();
    search_memory(true);
    memcpy(s->dumped, found, sizeof found);
#else
    (void)s;
#endif
}

static void check_sight(const lab *l, const sight *s)
{
#ifndef SANITIZED
    assert_true(s->hidden[KEY] >= CLIENTS * (lab_config(l)->slots - 2u) * 2);
    assert_int_equal(s->hidden[INPUT], CLIENTS);
    for (pattern p = KEY; p < PATTERNS; p++)
        assert_int_equal(s->dumped[p], 0);
#else
    (void)l;
    (void)s;
#endif
}

static void canaries_are_nowhere_outside(void **state)
{
    sight sights[8];
    size_t looked = 0;
    bool held = false;
    lab *l;

    (void)state;
    (void)setenv("DAFL_LAB_TRACE", "1", 1);
    l = canary_lab(DAFL_MODE_MASKS);
    (void)unsetenv("DAFL_LAB_TRACE");
    catch_output();
    lab_leave(l, 1, 0, LAB_AT_CAST, LAB_NEXT_SLOT);
    lab_leave_crashing(l, 4, 1, LAB_AFTER_SIGN, LAB_SOON);
    lab_leave(l, 2, 2, LAB_AFTER_END, LAB_NEXT_SLOT);
    while (lab_step(l)) {
        bool ready = all_ready(l);
        if (ready && !held && looked < COUNT(sights))
            look_at_memory(&sights[looked++]);
        held = ready;
    }
    reset();
    search_output();
    assert_int_equal(total(), 0);
    lab_check_done(l);
    assert_non_null(lab_sum_of(l, 2));
    assert_true(looked >= 2);
    for (size_t i = 0; i < looked; i++)
        check_sight(l, &sights[i]);
    assert_true(n_keys >= CLIENTS * (2 * lab_config(l)->slots + 1));
    assert_true(n_messages > 100);
    assert_int_equal(on_wire, 0);
    search_records(l);
    assert_int_equal(total(), 0);
#ifndef SANITIZED
    search_memory(true); /* when all is over */
    search_memory(false);
    assert_int_equal(total(), 0);
#endif
    lab_free(&l);
}

/* Without masks the inputs are on the wire, and are seen there. */
static void plain_inputs_are_seen_on_the_wire(void **state)
{
    lab *l = canary_lab(DAFL_MODE_NONE);

    (void)state;
    lab_check_done(l);
    assert_true(found[PACKED] >= 3 * CLIENTS);
    assert_int_equal(on_wire, found[PACKED]);
    lab_free(&l);
}

/* What a careless line or an unsealed packet would be: seen. */
static void carelessness_is_seen(void **state)
{
    lab *l = canary_lab(DAFL_MODE_MASKS);
    const uint8_t *record;
    uint8_t *copy;
    dafl_writer w = {0};
    lab_letter letter = {.from = 0, .to = CLIENTS};

    (void)state;
    assert_true(lab_run_to(l, DAFL_MSG_MODEL, 0));
    record = lab_disk_secret(l, 0, 1).ptr;
    assert_non_null(record);
    /* A message. */
    lab_seal(l, &w, 0, DAFL_MSG_SHARES, 0, 0, (dafl_bytes){record, 64});
    letter.bytes = w.ptr;
    letter.len = w.len;
    assert_true(look_at_message(l, &letter, NULL));
    assert_int_equal(on_wire, 2);
    dafl_writer_drop(&w);
    /* A line. */
    catch_output();
    lab_dump(l);
    (void)fprintf(stderr, "b = ");
    for (size_t i = 0; i < 32; i++)
        (void)fprintf(stderr, "%02X", record[32 + i]);
    reset();
    search_output();
    assert_int_equal(found[KEY], 1);
    /* Memory that is not for secrets. */
    copy = malloc(64);
    assert_non_null(copy);
    memcpy(copy, record, 64);
#ifndef SANITIZED
    reset();
    search_memory(true);
    assert_int_equal(found[KEY], 2);
#endif
    sodium_memzero(copy, 64);
    free(copy);
    lab_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE_IN_DIR(canaries_are_nowhere_outside),
        CASE_IN_DIR(plain_inputs_are_seen_on_the_wire),
        CASE_IN_DIR(carelessness_is_seen),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
