/* SPDX-License-Identifier: Apache-2.0 */
/* The scenario made real. */
#include "tests/lab/inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crypto/he.h"

/* ---- small things ---- */

void lab_die(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
    abort();
}

void lab_say(const lab *l, const char *format, ...)
{
    va_list args;

    if (!l->trace)
        return;
    (void)fprintf(stderr, "%8llu ", (unsigned long long)l->now);
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
}

void *lab_alloc(size_t n, size_t size)
{
    void *p = calloc(n == 0 ? 1 : n, size);

    if (p == NULL)
        lab_die("no memory");
    return p;
}

void *lab_list_add(lab_list *list, size_t size)
{
    if (list->n == list->room) {
        size_t room = list->room == 0 ? 16 : 2 * list->room;
        void *more = realloc(list->items, room * size);
        if (more == NULL)
            lab_die("no memory");
        list->items = more;
        list->room = room;
    }
    return memset((char *)list->items + list->n++ * size, 0, size);
}

void lab_list_drop(lab_list *list)
{
    free(list->items);
    *list = (lab_list){0};
}

uint8_t *lab_copy(dafl_bytes bytes)
{
    uint8_t *copy = lab_alloc(bytes.len, 1);

    if (bytes.len > 0)
        memcpy(copy, bytes.ptr, bytes.len);
    return copy;
}

bool lab_chance(lab *l, uint16_t permille)
{
    return permille > 0 && dafl_draw_below(&l->draw, 1000) < permille;
}

uint64_t lab_between(lab *l, uint64_t from, uint64_t to)
{
    return to <= from ? from : from + dafl_draw_below(&l->draw, to - from + 1);
}

uint64_t lab_random(lab *l, uint64_t below)
{
    return dafl_draw_below(&l->own, below);
}

/* ---- scenarios ---- */

lab_scenario lab_scenario_for(uint16_t k, uint16_t cell_size, uint64_t seed)
{
    lab_scenario s = {
        .seed = seed,
        .k = k,
        .cell_size = cell_size,
        .config = dafl_config_default(),
        .floor = {.any_cohort = cell_size == 1},
        .questions = 3,
        .tail = 5,
        .net = {.latency_min = 1,
                .latency_max = 20,
                .delay_max = 500,
                .lost_after = 200},
        .hello_after = 5000,
        .restart_after = 300,
        .steps_max = 20000 + 2000 * (uint64_t)k,
    };

    s.config.policy = (dafl_policy){.n_min = k, .g = cell_size};
    lab_scenario_collude(&s, k < 3 ? 0 : 1);
    s.config.tries = 0;
    s.config.slots = 0;
    s.config.chunk = DAFL_CHUNK_MIN;
    for (size_t i = 0; i < DAFL_WAITS; i++)
        s.config.wait[i] = 20000;
    return s;
}

void lab_scenario_collude(lab_scenario *s, uint16_t c)
{
    s->config.policy.c = c;
    s->config.policy.m = (uint16_t)(c + 2);
    s->config.policy.a =
        (uint16_t)dafl_threshold_absent(s->config.policy.n_min, c);
}

void lab_scenario_encrypt(lab_scenario *s)
{
    s->config.mode = DAFL_MODE_SEAL;
    s->config.contract.w = DAFL_HE_W_MAX;
}

void lab_scenario_chunks(lab_scenario *s, uint32_t chunks)
{
    uint32_t word = s->config.contract.w / 8;

    /* Half a chunk too few, whatever else an answer has. */
    s->tail = (chunks * s->config.chunk - s->config.chunk / 2) / word;
}

static void make_roster(lab *l)
{
    const lab_scenario *s = &l->scenario;
    uint16_t cells = (uint16_t)(s->k / (s->cell_size == 0 ? 1 : s->cell_size));
    dafl_party parties[DAFL_PARTIES_MAX];
    dafl_why why = {{0}};

    memset(parties, 0, sizeof parties);
    for (uint16_t i = 0; i < l->n; i++) {
        lab_party *p = &l->parties[i];
        uint8_t seed[64];
        char name[16];
        uint16_t cell = (uint16_t)(i / (s->cell_size == 0 ? 1 : s->cell_size));
        (void)snprintf(name, sizeof name,
                       i < s->k    ? "site%u"
                       : i == s->k ? "server"
                                   : "holder",
                       (unsigned)i);
        lab_dice_derive(seed, sizeof seed, s->seed, "identity", i);
        if (dafl_identity_new_derand(&p->id, name, seed, &why) != DAFL_OK)
            lab_die("identity: %s", why.text);
        if (cell >= cells && cells > 0)
            cell = (uint16_t)(cells - 1);
        if (s->cells != NULL && i < s->k)
            cell = s->cells[i];
        parties[i] = (dafl_party){.id = p->id.public,
                                  .role = i < s->k    ? DAFL_ROLE_CLIENT
                                          : i == s->k ? DAFL_ROLE_SERVER
                                                      : DAFL_ROLE_KEYHOLDER,
                                  .cell = i < s->k ? cell : DAFL_NO_CELL};
    }
    if (dafl_roster_make(&l->roster, parties, l->n, &why) != DAFL_OK)
        lab_die("roster: %s", why.text);
}

static void fill_config(lab *l)
{
    dafl_config *c = &l->scenario.config;

    if (c->slots == 0)
        c->slots = dafl_config_slots(l->scenario.questions);
    (void)snprintf(c->method, sizeof c->method, "%s", l->scenario.method->name);
    if (l->scenario.method != &lab_vectors)
        return;
    for (size_t i = 0; i < sizeof l->method_params; i++)
        l->method_params[i] = (uint8_t)(l->scenario.seed >> 8 * i);
    c->method_params = (dafl_bytes){l->method_params, sizeof l->method_params};
}

static void make_party(lab *l, uint16_t index)
{
    lab_party *p = &l->parties[index];

    p->index = index;
    p->roster = lab_alloc(1, sizeof *p->roster);
    *p->roster = l->roster;
    p->config = l->scenario.config;
    p->floor = l->scenario.floor;
    p->crash_at = p->restart_at = LAB_NEVER;
    p->up_at = p->tell_lost_at = LAB_NEVER;
    if (l->scenario.outfit != NULL)
        l->scenario.outfit(l->scenario.ctx, index, p->roster, &p->config,
                           &p->floor);
}

lab *lab_new(const lab_scenario *scenario)
{
    lab *l = lab_alloc(1, sizeof *l);
    const char *trace = getenv("DAFL_LAB_TRACE");
    dafl_seed chances;

    l->scenario = *scenario;
    if (l->scenario.k == 0 || l->scenario.k > DAFL_CLIENTS_MAX)
        lab_die("a lab with %u clients", (unsigned)l->scenario.k);
    if (l->scenario.method == NULL)
        l->scenario.method = &lab_vectors;
    l->trace = trace != NULL && trace[0] != '\0';
    lab_dice_load(l->scenario.seed);
    lab_dice_derive(chances.b, sizeof chances.b, scenario->seed, "chances", 0);
    lab_dice_derive(l->inputs.b, sizeof l->inputs.b, scenario->seed, "inputs",
                    0);
    lab_dice_derive(l->run.b, sizeof l->run.b, scenario->seed, "run",
                    scenario->run);
    dafl_draw_init(&l->draw, &chances, DAFL_STREAM_SIMULATION, 0);
    dafl_draw_init(&l->own, &chances, DAFL_STREAM_SIMULATION, 1);
    l->n = (uint16_t)(scenario->k +
                      (scenario->config.mode == DAFL_MODE_SEAL ? 2 : 1));
    l->parties = lab_alloc(l->n, sizeof *l->parties);
    make_roster(l);
    fill_config(l);
    for (uint16_t i = 0; i < l->n; i++)
        make_party(l, i);
    /* The first boots are due at once: crashes can be planned before. */
    for (uint16_t i = 0; i < l->n; i++)
        l->parties[i].restart_at = 0;
    return l;
}

void lab_free(lab **l)
{
    lab *gone = *l;

    if (gone == NULL)
        return;
    for (uint16_t i = 0; i < gone->n; i++) {
        lab_party *p = &gone->parties[i];
        gone->trace = false;
        lab_party_halt(gone, p);
        lab_disk_drop(&p->disk);
        dafl_writer_drop(&p->log);
        dafl_identity_wipe(&p->id);
        free(p->roster);
    }
    for (size_t i = 0; i < gone->flights.n; i++)
        free(((lab_flight *)gone->flights.items)[i].bytes);
    lab_list_drop(&gone->flights);
    lab_list_drop(&gone->leavings);
    lab_list_drop(&gone->refusals);
    lab_list_drop(&gone->questions);
    lab_judge_drop(gone);
    lab_witness_drop(gone);
    free(gone->parties);
    free(gone);
    lab_dice_unload();
    *l = NULL;
}
