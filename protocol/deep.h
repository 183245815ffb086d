/* SPDX-License-Identifier: Apache-2.0 */
/* DeepAFL as a method of the protocol (protocol/method.h). Questions in order:
 *
 *   0 census, 1 full G_0 H_0, then for t = 0 .. T-1: 2t+2 residual of layer t,
 *   2t+3 Gram of layer t+1 (rank 0: full; else the increment, tied to the
 *   residual question before it and to the Gram question its base came from),
 *   2T+2 report.
 *
 * Segments: number n comes before question n. kind 0 "nothing" (census, G_0),
 * 1 "head" of a layer: u32 rank, U (d x rank), M (rank x C); 2 "block" of a
 * layer: u32 rank, N (dF x rank); numbers are IEEE doubles, little endian,
 * row-major. Rank 0 has no numbers. */
#ifndef DAFL_PROTOCOL_DEEP_H
#define DAFL_PROTOCOL_DEEP_H

#include "lib/site.h"
#include "lib/trainer.h"
#include "protocol/method.h"

typedef enum {
    DAFL_SEGMENT_NOTHING = 0,
    DAFL_SEGMENT_HEAD = 1,
    DAFL_SEGMENT_BLOCK = 2,
} dafl_segment_kind;

/* Who takes part in each sum, drawn from the run's seed; counts are always
 * taken over all. */
typedef struct {
    uint16_t permille; /* of the cells, 1 .. 1000 */
    bool consistent;   /* one draw per layer instead of one per sum */
} dafl_participation;

/* What the parties must agree on besides the contract, canonical: for
 * dafl_config.method_params. The method's name is "deepafl". */
void dafl_put_deep_params(dafl_writer *w, const dafl_params *p,
                          const dafl_participation *part);
/* The contract is not part of it: *p has it from the config, and it is used in
 * the checks. DAFL_ERR_INPUT for anything not canonical or out of range. */
DAFL_CHECK dafl_err dafl_get_deep_params(dafl_params *p,
                                         dafl_participation *part,
                                         dafl_bytes bytes, dafl_why *why);

/* Questions of a whole training. */
uint32_t dafl_deep_questions(const dafl_params *p);
/* What a question is about. */
void dafl_deep_query(dafl_query *out, const dafl_params *p,
                     const dafl_question *q);

/* A client's side. */
typedef struct dafl_deep_client dafl_deep_client;
extern const dafl_client_method dafl_deep_client_method;

/* How to make the site anew (at the start, and when the machine starts over
 * from segment 0): its rows at layer 0, and the held-out ones or NULL. */
typedef dafl_err dafl_deep_found(void *ctx, const dafl_params *p,
                                 const dafl_projection *first, dafl_site **site,
                                 dafl_site **held, dafl_why *why);

/* Projection k, lent until the next call for the same client. NULL instead of
 * a function: the client draws its own from the seed. Clients of one process
 * share one. */
typedef dafl_err dafl_deep_project(void *ctx, size_t k,
                                   const dafl_projection **out);

/* params must have been checked; all borrowed. ctx is handed to both
 * functions. */
DAFL_CHECK dafl_err dafl_deep_client_new(dafl_deep_client **out,
                                         const dafl_params *params,
                                         dafl_deep_found *found,
                                         dafl_deep_project *project, void *ctx,
                                         dafl_why *why);
void dafl_deep_client_free(dafl_deep_client **client);
/* The site as it is now (borrowed), for counts. */
dafl_site *dafl_deep_client_site(const dafl_deep_client *client);

/* The server's side. */
typedef struct dafl_deep_server dafl_deep_server;
extern const dafl_server_method dafl_deep_server_method;

/* Fills `model` (empty, borrowed). */
DAFL_CHECK dafl_err dafl_deep_server_new(dafl_deep_server **out,
                                         dafl_model *model,
                                         const dafl_participation *part,
                                         size_t n_clients);
void dafl_deep_server_free(dafl_deep_server **server);
const dafl_trainer *dafl_deep_server_trainer(const dafl_deep_server *server);

#endif
