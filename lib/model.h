/* SPDX-License-Identifier: Apache-2.0 */
/* A trained model: one classifier ("head") per layer and one residual block
 * between two layers, both in factored form.
 *
 *   W_t = U_t M_t            U_t: d x r, orthonormal columns; M_t: r x C
 *   Phi_t+1 = Phi_t + (F_t N_t) U_t'                      N_t: dF x r
 */
#ifndef DAFL_LIB_MODEL_H
#define DAFL_LIB_MODEL_H

#include "lib/params.h"
#include "lib/projection.h"

typedef struct {
    size_t rank;
    double *u, *m; /* d x rank, rank x C */
    double *w;     /* d x C, computed from u and m by every party alike */
} dafl_head;

typedef struct {
    size_t rank; /* that of the head of the same layer; 0: Phi stays */
    double *n;   /* dF x rank; NULL for rank 0 */
} dafl_block;

typedef struct {
    dafl_params params;
    size_t n_heads, n_blocks;
    dafl_head *heads;       /* layers + 1 */
    dafl_block *blocks;     /* layers */
    dafl_projection *given; /* layers + 1 when params.own_projections */
} dafl_model;

/* An empty model; params have been checked. */
DAFL_CHECK dafl_err dafl_model_new(dafl_model **out, const dafl_params *p);
void dafl_model_free(dafl_model **model);

/* Append the next head or block; copies. u: d x rank, m: rank x C, n: dF x
 * rank, all row-major. */
DAFL_CHECK dafl_err dafl_model_add_head(dafl_model *model, const double *u,
                                        const double *m, size_t rank);
DAFL_CHECK dafl_err dafl_model_add_block(dafl_model *model, const double *n,
                                         size_t rank);

/* Release the numbers of heads and blocks of layers below `layer`, for a party
 * that has followed the model beyond them and keeps no copy. */
void dafl_model_forget(dafl_model *model, size_t layer);

/* Take all projections from files of a directory instead of the seed. */
DAFL_CHECK dafl_err dafl_model_read_projections(dafl_model *model,
                                                const char *dir, dafl_why *why);

/* Projection k, drawn or a copy of the given one; the caller drops it. */
DAFL_CHECK dafl_err dafl_model_projection(const dafl_model *model,
                                          dafl_projection *out, size_t k);

/* safetensors, atomically; the same model gives the same bytes. */
DAFL_CHECK dafl_err dafl_model_save(const dafl_model *model, const char *path,
                                    dafl_why *why);
DAFL_CHECK dafl_err dafl_model_load(dafl_model **out, const char *path,
                                    dafl_why *why);

#endif
