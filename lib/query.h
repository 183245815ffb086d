/* SPDX-License-Identifier: Apache-2.0 */
/* The questions a DeepAFL server asks, each answered by one sum. */
#ifndef DAFL_LIB_QUERY_H
#define DAFL_LIB_QUERY_H

#include "lib/params.h"
#include "lib/sum.h"

typedef enum {
    DAFL_QUERY_CENSUS,    /* row and class counts */
    DAFL_QUERY_GRAM,      /* G_t = Phi_t'Phi_t and H_t' = Y'Phi_t */
    DAFL_QUERY_RESIDUAL,  /* Pi_t = F'F and Upsilon_t = F'R */
    DAFL_QUERY_INCREMENT, /* Phi_t'Z, which carries G_t, H_t to t+1 */
    DAFL_QUERY_REPORT,    /* correct answers per layer, training and held out */
    DAFL_QUERY_DONE,      /* nothing more to ask */
} dafl_query_kind;

typedef struct {
    dafl_query_kind kind;
    size_t layer;
    size_t rank; /* INCREMENT: columns of Z */
} dafl_query;

/* The matrices of the answer, in order; DONE has none. */
void dafl_query_layout(dafl_layout *out, const dafl_params *p,
                       const dafl_query *query);

/* "census", "gram", .. */
const char *dafl_query_name(dafl_query_kind kind);

#endif
