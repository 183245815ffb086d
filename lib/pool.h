/* SPDX-License-Identifier: Apache-2.0 */
/* A fixed crew of threads that share out numbered pieces of work. Each worker
 * owns a scratch buffer that lives as long as the pool, so the inner loops
 * allocate nothing.
 *
 * BLAS runs single-threaded inside each worker (the pool switches OpenBLAS to
 * one thread for the whole process): which worker takes which piece then has
 * no influence on the bits of a result. */
#ifndef DAFL_LIB_POOL_H
#define DAFL_LIB_POOL_H

#include <stddef.h>

#include "lib/err.h"

typedef struct dafl_pool dafl_pool;

/* n_threads = 0 takes every core this process may run on. */
DAFL_CHECK dafl_err dafl_pool_new(dafl_pool **out, unsigned n_threads);
void dafl_pool_free(dafl_pool **pool);
unsigned dafl_pool_size(const dafl_pool *pool);

/* Call fn(ctx, worker, item) for every item in [0, n), each once, in any
 * order, and return when all are done. The calling thread is one of the
 * workers. Called from inside a piece of work, it runs the items one after
 * another on that worker: nesting is allowed and adds no threads. */
typedef void dafl_pool_fn(void *ctx, unsigned worker, size_t item);
void dafl_pool_run(dafl_pool *pool, size_t n, dafl_pool_fn *fn, void *ctx);

/* Make sure that each worker that a run started here can use has `bytes` of
 * scratch; contents are lost when it grows. Not to be called by two threads
 * at once unless they are workers of this pool. */
DAFL_CHECK dafl_err dafl_pool_reserve(dafl_pool *pool, size_t bytes);
void *dafl_pool_scratch(const dafl_pool *pool, unsigned worker);

/* The workers that a run started here can use: [*first, *end). */
void dafl_pool_workers(const dafl_pool *pool, unsigned *first, unsigned *end);

#endif
