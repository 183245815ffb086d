/* SPDX-License-Identifier: Apache-2.0 */
/* A borrowed view of bytes; keeping it means copying it. */
#ifndef DAFL_LIB_BYTES_H
#define DAFL_LIB_BYTES_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    const uint8_t *ptr;
    size_t len;
} dafl_bytes;

#endif
