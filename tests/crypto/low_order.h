/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAFL_TESTS_CRYPTO_LOW_ORDER_H
#define DAFL_TESTS_CRYPTO_LOW_ORDER_H

/* Every u below 2^255 whose point has order 1, 2, 4 or 8 on the curve or its
 * twist: 0, 1, -1 and the two of order 8, and 0 and 1 again as p and p + 1.
 * The top bit is ignored, which makes 14 encodings. */
static const char *const low_order[] = {
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
};

#endif
