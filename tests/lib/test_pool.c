/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/check.h"
#include "lib/pool.h"

enum { ITEMS = 1000 };

typedef struct {
    dafl_pool *pool;
    atomic_uint times[ITEMS];
    atomic_uint wrong;
} count;

static void count_item(void *ctx, unsigned worker, size_t item)
{
    count *c = ctx;

    atomic_fetch_add(&c->times[item], 1);
    if (worker >= dafl_pool_size(c->pool))
        atomic_fetch_add(&c->wrong, 1);
}

static void every_item_is_done_once(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 5; threads++) {
        dafl_pool *pool = NULL;

        assert_ok(dafl_pool_new(&pool, threads));
        assert_int_equal(dafl_pool_size(pool), threads);
        for (size_t round = 0; round < 60; round++) {
            size_t n = round < 4 ? round : random_size(0, ITEMS);
            count c = {.pool = pool};

            dafl_pool_run(pool, n, count_item, &c);
            for (size_t i = 0; i < ITEMS; i++)
                assert_int_equal(c.times[i], i < n);
            assert_int_equal(c.wrong, 0);
        }
        dafl_pool_free(&pool);
        assert_null(pool);
    }
}

/* All workers must be at work at once, or this would never end. */
static void wait_for_all(void *ctx, unsigned worker, size_t item)
{
    (void)worker;
    (void)item;
    (void)pthread_barrier_wait(ctx);
}

static void workers_work_at_the_same_time(void **state)
{
    dafl_pool *pool = NULL;
    pthread_barrier_t all;

    (void)state;
    assert_int_equal(pthread_barrier_init(&all, NULL, 3), 0);
    assert_ok(dafl_pool_new(&pool, 3));
    dafl_pool_run(pool, 3, wait_for_all, &all);
    dafl_pool_run(pool, 6, wait_for_all, &all);
    dafl_pool_free(&pool);
    (void)pthread_barrier_destroy(&all);
}

/* An inner run stays on its worker and goes through the items in order. */
typedef struct {
    dafl_pool *pool;
    pthread_t thread;
    unsigned worker;
    size_t next;
    atomic_uint *wrong;
} inner;

static void inner_item(void *ctx, unsigned worker, size_t item)
{
    inner *in = ctx;

    if (worker != in->worker || item != in->next ||
        !pthread_equal(in->thread, pthread_self()))
        atomic_fetch_add(in->wrong, 1);
    in->next++;
}

static void outer_item(void *ctx, unsigned worker, size_t item)
{
    count *c = ctx;
    unsigned first, end;

    for (int twice = 0; twice < 2; twice++) {
        inner in = {c->pool, pthread_self(), worker, 0, &c->wrong};

        dafl_pool_run(c->pool, 10, inner_item, &in);
        dafl_pool_workers(c->pool, &first, &end);
        if (in.next != 10 || first != worker || end != worker + 1)
            atomic_fetch_add(&c->wrong, 1);
    }
    atomic_fetch_add(&c->times[item], 1);
}

static void a_run_inside_a_run_stays_on_its_worker(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 4; threads++) {
        dafl_pool *pool = NULL;
        unsigned first = 9, end = 9;
        count c = {0};

        assert_ok(dafl_pool_new(&pool, threads));
        c.pool = pool;
        dafl_pool_run(pool, 200, outer_item, &c);
        for (size_t i = 0; i < 200; i++)
            assert_int_equal(c.times[i], 1);
        assert_int_equal(c.wrong, 0);
        dafl_pool_workers(pool, &first, &end);
        assert_int_equal(first, 0);
        assert_int_equal(end, threads);
        dafl_pool_free(&pool);
    }
}

static void write_scratch(void *ctx, unsigned worker, size_t item)
{
    count *c = ctx;
    unsigned char *p = dafl_pool_scratch(c->pool, worker);

    (void)item;
    memset(p, (int)worker + 1, 1000);
    for (size_t i = 0; i < 1000; i++)
        if (p[i] != worker + 1)
            atomic_fetch_add(&c->wrong, 1);
}

static void every_worker_has_scratch_of_its_own(void **state)
{
    dafl_pool *pool = NULL;
    void *before[4];
    count c = {0};

    (void)state;
    assert_ok(dafl_pool_new(&pool, 4));
    assert_ok(dafl_pool_reserve(pool, 1000));
    c.pool = pool;
    dafl_pool_run(pool, 400, write_scratch, &c);
    assert_int_equal(c.wrong, 0);
    for (unsigned w = 0; w < 4; w++) {
        before[w] = dafl_pool_scratch(pool, w);
        assert_int_equal((uintptr_t)before[w] % 64, 0);
        for (unsigned v = 0; v < w; v++)
            assert_ptr_not_equal(before[v], before[w]);
    }
    assert_ok(dafl_pool_reserve(pool, 10)); /* large enough: it stays */
    for (unsigned w = 0; w < 4; w++)
        assert_ptr_equal(dafl_pool_scratch(pool, w), before[w]);
    assert_ok(dafl_pool_reserve(pool, 100000));
    memset(dafl_pool_scratch(pool, 3), 1, 100000);
    dafl_pool_free(&pool);
}

/* A reservation made inside a piece of work is for that worker alone. */
static void reserve_inside(void *ctx, unsigned worker, size_t item)
{
    count *c = ctx;
    size_t len = 1000 + 100 * item;

    if (dafl_pool_reserve(c->pool, len) != DAFL_OK)
        atomic_fetch_add(&c->wrong, 1);
    else
        memset(dafl_pool_scratch(c->pool, worker), 1, len);
}

static void workers_can_reserve_at_the_same_time(void **state)
{
    dafl_pool *pool = NULL;
    count c = {0};

    (void)state;
    assert_ok(dafl_pool_new(&pool, 3));
    c.pool = pool;
    dafl_pool_run(pool, 100, reserve_inside, &c);
    assert_int_equal(c.wrong, 0);
    dafl_pool_free(&pool);
}

static void a_failed_reservation_can_be_repeated(void **state)
{
    dafl_pool *pool = NULL;

    (void)state;
    assert_ok(dafl_pool_new(&pool, 2));
    assert_ok(dafl_pool_reserve(pool, 10));
    assert_int_equal(dafl_pool_reserve(pool, SIZE_MAX - 7), DAFL_ERR_NOMEM);
    assert_ok(dafl_pool_reserve(pool, 20));
    memset(dafl_pool_scratch(pool, 0), 1, 20);
    memset(dafl_pool_scratch(pool, 1), 1, 20);
    dafl_pool_free(&pool);
}

static void a_pool_that_never_worked_can_be_freed(void **state)
{
    dafl_pool *pool = NULL;

    (void)state;
    dafl_pool_free(&pool);
    for (int i = 0; i < 20; i++) {
        assert_ok(dafl_pool_new(&pool, 4));
        dafl_pool_free(&pool);
        assert_null(pool);
    }
}

static void zero_threads_are_all_cores_and_many_are_refused(void **state)
{
    dafl_pool *pool = NULL;

    (void)state;
    assert_ok(dafl_pool_new(&pool, 0));
    assert_true(dafl_pool_size(pool) >= 1);
    dafl_pool_free(&pool);
    assert_int_equal(dafl_pool_new(&pool, 100000), DAFL_ERR_ARG);
    assert_null(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_is_done_once),
        cmocka_unit_test(workers_work_at_the_same_time),
        cmocka_unit_test(a_run_inside_a_run_stays_on_its_worker),
        cmocka_unit_test(every_worker_has_scratch_of_its_own),
        cmocka_unit_test(workers_can_reserve_at_the_same_time),
        cmocka_unit_test(a_failed_reservation_can_be_repeated),
        cmocka_unit_test(a_pool_that_never_worked_can_be_freed),
        cmocka_unit_test(zero_threads_are_all_cores_and_many_are_refused),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
