/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE /* madvise */
#include "lib/secret.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

/* Whether pages of this block go into a core dump. Large ones have pages of
 * their own; for small ones that would be a page each, and a mapping each, of
 * which a process may have 65,530. Where the system does not know of it they
 * are dumped. */
static void dump(void *block, size_t len, int advice)
{
    if (len >= DAFL_BULK_APART)
        (void)madvise(block, len, advice);
}

void *dafl_bulk_alloc(size_t n, size_t size)
{
    size_t alignment = ALIGNMENT, page = (size_t)sysconf(_SC_PAGESIZE), len;
    void *block = NULL;

    if (size != 0 && n > (SIZE_MAX - ALIGNMENT - READ_AHEAD - page) / size)
        return NULL;
    len = n * size + ALIGNMENT + READ_AHEAD;
    if (len >= DAFL_BULK_APART) {
        alignment = page;
        len = (len + page - 1) / page * page;
    }
    if (posix_memalign(&block, alignment, len) != 0)
        return NULL;
    dump(block, len, MADV_DONTDUMP);
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
    dump(block, len, MADV_DODUMP);
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
