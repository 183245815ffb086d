/* SPDX-License-Identifier: Apache-2.0 */
/* Two pieces of work that add to one number without a lock: the thread
 * sanitizer must see it, and fail the program. */
#include <stdatomic.h>
#include <stdio.h>

#include "lib/pool.h"

static atomic_int here;
static int sum;

static void piece(void *ctx, unsigned worker, size_t item)
{
    (void)ctx;
    (void)worker;
    atomic_fetch_add_explicit(&here, 1, memory_order_relaxed);
    while (atomic_load_explicit(&here, memory_order_relaxed) < 2)
        ;
    sum += (int)item;
}

int main(void)
{
    dafl_pool *pool = NULL;

    if (dafl_pool_new(&pool, 2) == DAFL_OK)
        dafl_pool_run(pool, 2, piece, NULL);
    dafl_pool_free(&pool);
    printf("%d\n", sum);
    return 0;
}
