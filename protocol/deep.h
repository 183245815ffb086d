/* SPDX-License-Identifier: Apache-2.0 */
/* DeepAFL as a method of the protocol (protocol/method.h). Questions in order:
 *
 *   0 census, 1 full G_0 H_0, then for t = 0 .. T-1: 2t+2 residual of layer t,
 *   2t+3 Gram of layer t+1 (rank 0: full; else the increment, tied to the
 *   residual question before it and to the Gram question its base came from),
 *   2T+2 report.
 *
 * Where Omega is ablated there is no residual question: the Gram of layer t has
 * the number t+1, the report T+2.
 *
 * Segments: number n comes before question n and holds what the sum of question
 * n-1 gave. kind 0 "nothing" (before the census): no bytes; 3 "census": u64
 * rows, C (u64 rows of a class), for the clients to judge; 1 "head" of a layer:
 * u32 rank, U (d x rank), M (rank x C); 2 "block" of a layer: u32 rank, N (dF x
 * rank); numbers are IEEE doubles, little endian, row-major. Rank 0 has no
 * numbers. Where Omega is ablated a head brings the block of rank 0 after it
 * along. */
#ifndef DAFL_PROTOCOL_DEEP_H
#define DAFL_PROTOCOL_DEEP_H

#include "lib/site.h"
#include "lib/trainer.h"
#include "protocol/method.h"

typedef enum {
    DAFL_SEGMENT_NOTHING = 0,
    DAFL_SEGMENT_HEAD = 1,
    DAFL_SEGMENT_BLOCK = 2,
    DAFL_SEGMENT_CENSUS = 3,
} dafl_segment_kind;

/* What a client takes from a server: no number of a model is larger, and U'U is
 * the identity to so much in every entry. */
#define DAFL_DEEP_LARGEST 1e6
#define DAFL_DEEP_ORTHONORMAL 1e-6

/* A client with so many rows keeps its answer back when one of them has more
 * than this share of the squared norm of an operand: a planted model could have
 * silenced all the others. */
#define DAFL_DEEP_PROMINENT_ROWS 20
#define DAFL_DEEP_PROMINENT 0.2
/* A class that is not empty has at least so many rows over all clients. */
#define DAFL_DEEP_CLASS_ROWS 10

/* Who takes part in each sum, drawn from the run's seed; counts are always
 * taken over all. */
typedef struct {
    uint16_t permille; /* of the cells, 1 .. 1000 */
    bool consistent;   /* one draw per layer instead of one per sum */
} dafl_participation;

/* What the parties must agree on besides the contract, canonical: for
 * dafl_config.method_params. The method's name is "deepafl".
 *
 *   params = u8 method, u32 features, u32 width, u32 hidden, u32 classes,
 *            u32 layers, u8 activation, f64 lambda, f64 gamma, seed[32],
 *            u8 schedule, u8 ablate, u16 permille, u8 consistent
 *
 * Of checked params. Projections of one's own have no place in a run. */
void dafl_put_deep_params(dafl_writer *w, const dafl_params *p,
                          const dafl_participation *part);
/* The contract is not part of it: *p has it from the config, it is used in the
 * checks and stays. DAFL_ERR_INPUT for anything not canonical or out of range;
 * *p and *part are then unchanged. */
DAFL_CHECK dafl_err dafl_get_deep_params(dafl_params *p,
                                         dafl_participation *part,
                                         dafl_bytes bytes, dafl_why *why);

/* Questions of a whole training. */
uint32_t dafl_deep_questions(const dafl_params *p);
/* Numbers of the longest answer. */
uint64_t dafl_deep_longest(const dafl_params *p);
/* What a question is about; DAFL_QUERY_DONE for a number beyond the last. */
void dafl_deep_query(dafl_query *out, const dafl_params *p,
                     const dafl_question *q);
/* The number of the question about it. */
uint32_t dafl_deep_number(const dafl_params *p, const dafl_query *query);
/* What segment `number` is to be: fills in query, kind and layer. */
void dafl_deep_segment(dafl_segment *out, const dafl_params *p,
                       uint32_t number);
/* The shape of the answer; DAFL_E_MODEL when there is no such question, or for
 * an increment that this model does not allow. */
dafl_fault dafl_deep_shape(dafl_shape *out, const dafl_model *model,
                           const dafl_question *q);

/* The digest of rows index[0..n) of `data` (all n when index is NULL), whatever
 * their order; and of the projection that they are seen through. */
DAFL_CHECK dafl_err dafl_deep_digest(dafl_digest *out, const dafl_data *data,
                                     const uint32_t *index, size_t n);
void dafl_deep_basis(dafl_digest *out, const dafl_params *p);
/* Whether so many rows, and rows of each class, may be summed: at least twice
 * the width, and no class so rare that its column of H shows single rows.
 * DAFL_E_CENSUS. */
dafl_fault dafl_deep_census(const dafl_params *p, uint64_t rows,
                            const uint64_t *classes, dafl_why *why);

/* A client's side. It answers the newest question only, and that again as often
 * as it is asked, except for an increment once the features have advanced: the
 * full variant still has its answer then. Once the model has driven one of its
 * values out of the contract it refuses every answer, until it is rewound. Its
 * faults: DAFL_E_MODEL; DAFL_E_DOMINATED for an answer in which one row is too
 * prominent; DAFL_E_CENSUS for a segment with a census too small for it;
 * rewinding can give DAFL_E_DATA_CHANGED. */
typedef struct dafl_deep_client dafl_deep_client;
extern const dafl_client_method dafl_deep_client_method;

/* How to make the site anew (at the start, and when the machine starts over
 * from segment 0): its rows at layer 0, and the held-out ones or NULL; and
 * dafl_deep_digest of the former. */
typedef dafl_err dafl_deep_found(void *ctx, const dafl_params *p,
                                 const dafl_projection *first, dafl_site **site,
                                 dafl_site **held, dafl_digest *rows,
                                 dafl_why *why);

/* Projection k, lent until the next call for the same client. NULL instead of
 * a function: the client draws its own from the seed. Clients of one process
 * share one. */
typedef dafl_err dafl_deep_project(void *ctx, size_t k,
                                   const dafl_projection **out);

/* params must have been checked, with an exact contract; all borrowed. ctx is
 * handed to both functions. What found() makes belongs to the client. */
DAFL_CHECK dafl_err dafl_deep_client_new(dafl_deep_client **out,
                                         const dafl_params *params,
                                         dafl_deep_found *found,
                                         dafl_deep_project *project, void *ctx,
                                         dafl_why *why);
void dafl_deep_client_free(dafl_deep_client **client);
/* Take part although there are few rows or rare classes; answer although one
 * row stands out. For experiments with data that need no protection. */
void dafl_deep_client_allow(dafl_deep_client *client, bool small,
                            bool prominent);
/* Keep no layer of the model that the features have left behind. */
void dafl_deep_client_forget(dafl_deep_client *client);
/* The site as it is now (borrowed), for counts; NULL when rewinding failed. */
dafl_site *dafl_deep_client_site(const dafl_deep_client *client);

/* The server's side. take() judges a sum before the trainer sees it: counts,
 * diagonals and magnitudes within the contract, |G_ij|^2 <= G_ii G_jj, and no
 * negative eigenvalue, also of a G that an increment would give. Its faults:
 * DAFL_E_SUM_INVALID; DAFL_E_CENSUS for counts that clients would refuse;
 * DAFL_E_COHORT for an increment over another cohort than its ties;
 * DAFL_E_STATE for a question that is not the next one; DAFL_E_TIMEOUT,
 * nobody's fault, when memory was short. */
typedef struct dafl_deep_server dafl_deep_server;
extern const dafl_server_method dafl_deep_server_method;

/* Fills `model` (empty, with an exact contract, borrowed). */
DAFL_CHECK dafl_err dafl_deep_server_new(dafl_deep_server **out,
                                         dafl_model *model,
                                         const dafl_participation *part,
                                         size_t n_clients);
void dafl_deep_server_free(dafl_deep_server **server);
/* Go on with few rows or rare classes, for those clients that allow it. */
void dafl_deep_server_allow_small(dafl_deep_server *server);
const dafl_trainer *dafl_deep_server_trainer(const dafl_deep_server *server);
/* From the report: rows, and how many of them the head of a layer answered
 * correctly, of those trained on or of those held out. 0 before the report. */
uint64_t dafl_deep_server_rows(const dafl_deep_server *server, bool held);
uint64_t dafl_deep_server_correct(const dafl_deep_server *server, size_t layer,
                                  bool held);

#endif
