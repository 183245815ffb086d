/* SPDX-License-Identifier: Apache-2.0 */
/* deepafl simulate: what is asked for, what comes of it, how it is shown. */
#ifndef DAFL_AGENTS_SIMULATE_H
#define DAFL_AGENTS_SIMULATE_H

#include "agents/cli.h"
#include "agents/federation.h"
#include "agents/partition.h"

typedef struct {
    const char *features, *labels, *test_features, *test_labels;
    size_t clients, classes;
    const char *partition, *participation;
    double label_noise;
    size_t shuffle;
    const char *secure_agg;
    size_t cell_size, colluders, min_cohort;
    double drop, drop_for_good;
    const char *method, *activation, *schedule, *ablate, *seed;
    const char *projections, *export_projections;
    size_t layers, width, hidden;
    double lambda, gamma;
    size_t grid, magnitude, rows_max, threads;
    const char *model;
    bool json, quiet;
} simulate_settings;

/* One line of the result. */
typedef struct {
    size_t layer, cohort;
    bool full; /* G and H were summed, not an increment */
    dafl_risk risk;
    size_t slots, dropouts;
    double train, test, seconds, upload, download;
    double compute_s, masking_s, unmasking_s, solve_s;
} simulate_row;

typedef struct {
    simulate_settings set;
    dafl_data train, test;
    dafl_model *model;
    dafl_pool *pool;
    partition part;
    federation *fed;
    cli_progress progress;
    simulate_row *rows;
    size_t n_rows;
    simulate_row all; /* costs of the whole training */
    size_t full, increments;
    double seconds;
} simulation;

/* On stdout: before the first row, a row, after the last; or all as JSON, false
 * when it cannot be written. */
void simulate_print_heading(const simulation *sim);
void simulate_print_row(const simulate_row *row);
void simulate_print_summary(const simulation *sim);
bool simulate_print_json(const simulation *sim);

#endif
