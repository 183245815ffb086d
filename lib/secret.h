/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for what a site must not leave behind. Rows, features, Gram matrices
 * and everything computed from them live in bulk memory, which is wiped when
 * it is freed; blocks of DAFL_BULK_APART bytes or more are left out of core
 * dumps. */
#ifndef DAFL_LIB_SECRET_H
#define DAFL_LIB_SECRET_H

#include <stddef.h>

#define DAFL_BULK_APART ((size_t)128 << 10)

/* n * size bytes aligned for vector loads, contents unspecified; NULL when
 * there is no memory or the product overflows. n * size = 0 gives a pointer
 * that may be freed. */
void *dafl_bulk_alloc(size_t n, size_t size);

/* Wipe and release; accepts NULL. */
void dafl_bulk_free(void *bulk);

/* Keys, seeds and shares that live long: memory between guard pages, left out
 * of core dumps, kept from the swap as far as the limit on locked memory
 * allows, wiped when freed. Zero-filled; NULL when there is none. */
void *dafl_secret_alloc(size_t n, size_t size);
/* Accepts NULL. */
void dafl_secret_free(void *secret);

/* Wipe in a way the compiler does not remove. */
void dafl_wipe(void *ptr, size_t len);

#endif
