/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "lib/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/blas.h"
#include "lib/secret.h"

#define MAX_THREADS 256

typedef struct {
    dafl_pool *pool;
    unsigned id;
    pthread_t thread;
    void *scratch;
    size_t scratch_len;
} crewman;

struct dafl_pool {
    unsigned n;
    crewman *workers;
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    /* Under the lock: the run in progress. `run` counts runs so that a sleeper
     * knows a new one from the one it has finished. */
    unsigned long run;
    size_t next, end;
    unsigned busy;
    bool stop;
    dafl_pool_fn *fn;
    void *ctx;
};

/* The worker this thread is while it executes a piece of work, else NULL. */
static _Thread_local crewman *self;

static void take_pieces(crewman *w)
{
    dafl_pool *p = w->pool;
    crewman *outer = self; /* of another pool, when that is how we came here */

    self = w;
    while (p->next < p->end) {
        size_t item = p->next++;
        dafl_pool_fn *fn = p->fn;
        void *ctx = p->ctx;
        pthread_mutex_unlock(&p->lock);
        fn(ctx, w->id, item);
        pthread_mutex_lock(&p->lock);
    }
    self = outer;
}

static void *crewman_main(void *arg)
{
    crewman *w = arg;
    dafl_pool *p = w->pool;
    unsigned long seen = 0;

    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (!p->stop && p->run == seen)
            pthread_cond_wait(&p->work, &p->lock);
        if (p->stop)
            break;
        seen = p->run;
        take_pieces(w);
        if (--p->busy == 0)
            pthread_cond_signal(&p->done);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Cores this process may run on. */
static unsigned count_cores(void)
{
    cpu_set_t set;
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    if (sched_getaffinity(0, sizeof set, &set) == 0)
        n = CPU_COUNT(&set);
    return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : (unsigned)n;
}

dafl_err dafl_pool_new(dafl_pool **out, unsigned n_threads)
{
    dafl_pool *p;

    if (n_threads > MAX_THREADS)
        return DAFL_ERR_ARG;
    p = calloc(1, sizeof *p);
    if (p == NULL)
        return DAFL_ERR_NOMEM;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->done, NULL);
    p->n = 1;
    if (n_threads == 0)
        n_threads = count_cores();
    p->workers = calloc(n_threads, sizeof *p->workers);
    if (p->workers == NULL) {
        dafl_pool_free(&p);
        return DAFL_ERR_NOMEM;
    }
    p->workers[0].pool = p;
    for (; p->n < n_threads; p->n++) {
        crewman *w = &p->workers[p->n];
        w->pool = p;
        w->id = p->n;
        if (pthread_create(&w->thread, NULL, crewman_main, w) != 0) {
            dafl_pool_free(&p);
            return DAFL_ERR_SYS;
        }
    }
    dafl_blas_single_thread();
    *out = p;
    return DAFL_OK;
}

void dafl_pool_free(dafl_pool **pool)
{
    dafl_pool *p = *pool;

    if (p == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; p->workers != NULL && i < p->n; i++) {
        if (i > 0)
            pthread_join(p->workers[i].thread, NULL);
        dafl_bulk_free(p->workers[i].scratch);
    }
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    free(p->workers);
    free(p);
    *pool = NULL;
}

unsigned dafl_pool_size(const dafl_pool *pool)
{
    return pool->n;
}

void dafl_pool_run(dafl_pool *pool, size_t n, dafl_pool_fn *fn, void *ctx)
{
    if (self != NULL && self->pool == pool) {
        for (size_t i = 0; i < n; i++)
            fn(ctx, self->id, i);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->fn = fn;
    pool->ctx = ctx;
    pool->next = 0;
    pool->end = n;
    if (n > 1 && pool->n > 1) {
        pool->busy = pool->n - 1;
        pool->run++;
        pthread_cond_broadcast(&pool->work);
    }
    take_pieces(&pool->workers[0]);
    while (pool->busy > 0)
        pthread_cond_wait(&pool->done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

void dafl_pool_workers(const dafl_pool *pool, unsigned *first, unsigned *end)
{
    bool inside = self != NULL && self->pool == pool;

    *first = inside ? self->id : 0;
    *end = inside ? self->id + 1 : pool->n;
}

dafl_err dafl_pool_reserve(dafl_pool *pool, size_t bytes)
{
    unsigned first, end;

    dafl_pool_workers(pool, &first, &end);
    for (unsigned i = first; i < end; i++) {
        crewman *w = &pool->workers[i];
        if (w->scratch_len >= bytes && w->scratch != NULL)
            continue;
        dafl_bulk_free(w->scratch);
        w->scratch_len = 0;
        w->scratch = dafl_bulk_alloc(bytes, 1);
        if (w->scratch == NULL)
            return DAFL_ERR_NOMEM;
        w->scratch_len = bytes;
    }
    return DAFL_OK;
}

void *dafl_pool_scratch(const dafl_pool *pool, unsigned worker)
{
    return pool->workers[worker].scratch;
}
