/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/secret.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

/* In front of every block, so that free knows how much to wipe. */
#define ALIGNMENT 64

/* Behind every block: some BLAS kernels load the next elements before they know
 * that there are none (OpenBLAS 0.3.21, dsymv for older CPUs: 64 bytes). */
#define READ_AHEAD 256

/* Without it libsodium works, with its slow portable code; so its failure
 * would change nothing else. Others may call it again at any time. */
__attribute__((constructor)) static void wake_sodium(void)
{
    int ready = sodium_init();

    (void)ready;
}

void *dafl_bulk_alloc(size_t n, size_t size)
{
    void *block = NULL;
    size_t len;

    if (size != 0 && n > (SIZE_MAX - ALIGNMENT - READ_AHEAD) / size)
        return NULL;
    len = n * size + ALIGNMENT + READ_AHEAD;
    if (posix_memalign(&block, ALIGNMENT, len) != 0)
        return NULL;
    memcpy(block, &len, sizeof len);
    return (uint8_t *)block + ALIGNMENT;
}

void dafl_bulk_free(void *bulk)
{
    uint8_t *block;
    size_t len;

    if (bulk == NULL)
        return;
    block = (uint8_t *)bulk - ALIGNMENT;
    memcpy(&len, block, sizeof len);
    sodium_memzero(block, len);
    free(block);
}

void *dafl_secret_alloc(size_t n, size_t size)
{
    /* sodium_malloc guards, locks and excludes from dumps; it fills with a
     * pattern, which is of no use as a key. */
    void *secret = sodium_allocarray(n, size);

    if (secret != NULL)
        sodium_memzero(secret, n * size);
    return secret;
}

void dafl_secret_free(void *secret)
{
    sodium_free(secret);
}

void dafl_wipe(void *ptr, size_t len)
{
    sodium_memzero(ptr, len);
}
