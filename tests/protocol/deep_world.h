/* SPDX-License-Identifier: Apache-2.0 */
/* The two sides of DeepAFL as the machines see them, without the machines:
 * questions, segments, answers and sums go straight from one table to the
 * other. */
#ifndef DAFL_TESTS_PROTOCOL_DEEP_WORLD_H
#define DAFL_TESTS_PROTOCOL_DEEP_WORLD_H

#include "tests/check.h"

#include "lib/site.h"
#include "protocol/deep.h"

#define MOST_CLIENTS 6
#define ROWS 160
#define HELD 30
#define LAYERS 3
#define MOST_QUESTIONS (2 * LAYERS + 3)

static const dafl_client_method *const cm = &dafl_deep_client_method;
static const dafl_server_method *const sm = &dafl_deep_server_method;
static const dafl_participation everyone = {.permille = 1000};

/* One client's rows. */
typedef struct {
    const uint32_t *rows, *held;
    size_t n, n_held;
    size_t founded; /* how many times */
    bool gone;      /* founding fails */
} plot;

typedef struct {
    dafl_params p;
    size_t n;
    uint32_t rows[ROWS], held[HELD];
    plot plots[MOST_CLIENTS];
    dafl_deep_client *clients[MOST_CLIENTS];
    uint32_t followed[MOST_CLIENTS];
    dafl_model *model;
    dafl_deep_server *server;
    dafl_writer segments[MOST_QUESTIONS];
    dafl_segment heads[MOST_QUESTIONS];
    uint32_t n_segments;
} world;

/* Around every case: the rows that all clients share. */
int open_world(void **state);
int close_world(void **state);
#define CASE(f) cmocka_unit_test_setup_teardown(f, open_world, close_world)

dafl_params params(void);
/* Every kind of training there is. */
#define VARIANTS 12
dafl_params variant(size_t i);

/* What a client calls for its rows; ctx is a plot. */
dafl_err found(void *ctx, const dafl_params *p, const dafl_projection *first,
               dafl_site **site, dafl_site **held, dafl_digest *rows,
               dafl_why *why);
dafl_deep_client *new_client(const dafl_params *p, plot *at_plot);

/* The first ROWS rows, shuffled, cut at random into n clients, maybe empty;
 * client 0 has the other rows held out. */
world *new_world(const dafl_params *p, size_t n);
void drop_world(world *w);

dafl_members all_of(size_t n);
int64_t *integers(size_t n);
/* Numbers in a segment or in params. */
void put_number(uint8_t *at_byte, double v);
double get_number(const uint8_t *at_byte);

/* Segment `number`, written when it is first wanted. */
const dafl_segment *get_segment(world *w, uint32_t number);
/* Let a client follow up to the question, from the segment it has not seen. */
void bring_up(world *w, dafl_deep_client *c, uint32_t *followed,
              uint32_t number);
/* Of an answer. */
size_t length(world *w, const dafl_question *q);
/* One client's answer, to be freed; NULL when it refuses. */
int64_t *answer_of(world *w, dafl_deep_client *c, uint32_t *followed,
                   const dafl_question *q);
/* The sum over a cohort, to be freed; NULL when someone refuses. */
int64_t *sum_or_none(world *w, const dafl_question *q,
                     const dafl_members *cohort);
/* The same, and nobody may refuse. */
int64_t *sum_of(world *w, const dafl_question *q, const dafl_members *cohort);
/* The server has to take it. */
void give(world *w, const dafl_question *q, const int64_t *sum,
          const dafl_members *cohort);
/* Ask everyone the next question; false when there is none. */
bool step(world *w, bool plain);

/* What a trainer and one site with all rows make of it. */
dafl_model *plain_model(const dafl_params *p, dafl_site **site);

#endif
