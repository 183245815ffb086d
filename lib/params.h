/* SPDX-License-Identifier: Apache-2.0 */
/* What is learnt, and how: everything all parties of a run must agree on
 * before the first sum. */
#ifndef DAFL_LIB_PARAMS_H
#define DAFL_LIB_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/activation.h"
#include "lib/err.h"
#include "lib/grid.h"
#include "lib/stream.h"

#define DAFL_SIZE_MAX ((size_t)65536) /* widths and classes */
#define DAFL_LAYERS_MAX ((size_t)512)

typedef enum {
    DAFL_METHOD_DEEPAFL,
    DAFL_METHOD_AFL, /* ridge regression on the features as they are */
} dafl_method;

typedef enum {
    DAFL_SCHEDULE_DELTA, /* Gram increments while the cohort stays the same */
    DAFL_SCHEDULE_FULL,  /* the paper's: G and H every layer */
} dafl_schedule;

/* The paper's ablations: one component left out. */
typedef enum {
    DAFL_ABLATE_NOTHING,
    DAFL_ABLATE_SKIP,       /* Phi_t+1 = F Omega, fitted to Y */
    DAFL_ABLATE_PROJECTION, /* B_t = I, b_t = 0; needs d = dF */
    DAFL_ABLATE_ACTIVATION, /* F = Phi B + b; tanh at layer 0 stays */
    DAFL_ABLATE_OMEGA,      /* Omega = I; needs d = dF */
} dafl_ablation;

typedef struct {
    dafl_method method;
    size_t features; /* d0, columns of X */
    size_t width;    /* d, columns of Phi; = features for AFL */
    size_t hidden;   /* dF, columns of F */
    size_t classes;  /* C */
    size_t layers;   /* T */
    dafl_activation activation;
    double lambda, gamma;
    dafl_seed seed;
    dafl_schedule schedule;
    dafl_ablation ablate;
    bool own_projections; /* A, a, B_t, b_t given, not drawn from the seed */
    dafl_contract contract;
} dafl_params;

/* Check every range, fit what the method implies (AFL: width = features, no
 * layers) and derive the ring width. */
DAFL_CHECK dafl_err dafl_params_check(dafl_params *p, dafl_why *why);

const char *dafl_method_name(dafl_method method);
const char *dafl_schedule_name(dafl_schedule schedule);
const char *dafl_ablation_name(dafl_ablation ablate);
DAFL_CHECK dafl_err dafl_method_parse(dafl_method *out, const char *name,
                                      dafl_why *why);
DAFL_CHECK dafl_err dafl_schedule_parse(dafl_schedule *out, const char *name,
                                        dafl_why *why);
DAFL_CHECK dafl_err dafl_ablation_parse(dafl_ablation *out, const char *name,
                                        dafl_why *why);

#endif
