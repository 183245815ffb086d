/* SPDX-License-Identifier: Apache-2.0 */
/* Every function of sealc that reads SEAL's own format; tests/tree/he_loads
 * compares this list with the library. */
#ifndef DAFL_TESTS_CRYPTO_HE_LOADS_H
#define DAFL_TESTS_CRYPTO_HE_LOADS_H

#define HE_LOADS(X)           \
    X(Ciphertext_Load)        \
    X(Ciphertext_UnsafeLoad)  \
    X(EncParams_Load)         \
    X(KSwitchKeys_Load)       \
    X(KSwitchKeys_UnsafeLoad) \
    X(Modulus_Load)           \
    X(Plaintext_Load)         \
    X(Plaintext_UnsafeLoad)   \
    X(PublicKey_Load)         \
    X(PublicKey_UnsafeLoad)   \
    X(SecretKey_Load)         \
    X(SecretKey_UnsafeLoad)

#endif
