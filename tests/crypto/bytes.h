/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes for the tests of crypto/: from the vectors, at random, changed. */
#ifndef DAFL_TESTS_CRYPTO_BYTES_H
#define DAFL_TESTS_CRYPTO_BYTES_H

#include <sodium.h>

#include "tests/check.h"

/* The n bytes that `hex` stands for, no more and no fewer. */
CHECK_HELPER void from_hex(void *out, size_t n, const char *hex)
{
    size_t len = 0;

    assert_int_equal(strlen(hex), 2 * n);
    if (n == 0)
        return;
    assert_int_equal(sodium_hex2bin(out, n, hex, 2 * n, NULL, &len, NULL), 0);
    assert_int_equal(len, n);
}

/* Heap memory of exactly n bytes, so that a sanitizer sees one byte more. */
CHECK_HELPER void *exactly(size_t n)
{
    void *p = malloc(n);

    assert_true(p != NULL || n == 0);
    return p;
}

CHECK_HELPER void random_bytes(void *out, size_t n)
{
    uint8_t *b = out;

    for (size_t i = 0; i < n; i++)
        b[i] = (uint8_t)(random_u64() >> 56);
}

CHECK_HELPER void flip(void *bytes, size_t bit)
{
    uint8_t *b = bytes;

    b[bit / 8] = (uint8_t)(b[bit / 8] ^ 1u << bit % 8);
}

#endif
