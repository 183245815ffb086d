/* SPDX-License-Identifier: Apache-2.0 */
/* Who a party is for years: an Ed25519 pair that signs what it says and a
 * Curve25519 pair that opens the transport. One secret file, one public line
 * for the roster. */
#ifndef DAFL_CRYPTO_IDENTITY_H
#define DAFL_CRYPTO_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto/hash.h"
#include "crypto/keys.h"
#include "lib/err.h"

#define DAFL_NAME_MAX 63 /* letters, digits, '-', '_' and '.' */
#define DAFL_SIGNATURE_BYTES 64

typedef struct {
    char name[DAFL_NAME_MAX + 1];
    uint8_t sign_pk[32];
    dafl_public curve_pk;
} dafl_identity;

/* The public half and the secrets that make it: the seed of the Ed25519 pair
 * and the Curve25519 scalar. Wipe with dafl_identity_wipe. */
typedef struct {
    dafl_identity public;
    uint8_t sign_sk[64];
    dafl_key curve_sk;
} dafl_secret_identity;

typedef struct {
    uint8_t b[DAFL_SIGNATURE_BYTES];
} dafl_signature;

/* Letters, digits, '-', '_' and '.', 1 to DAFL_NAME_MAX of them. */
bool dafl_name_ok(const char *name);

/* DAFL_ERR_INPUT for a name that is empty, too long or has other characters. */
DAFL_CHECK dafl_err dafl_identity_new(dafl_secret_identity *out,
                                      const char *name, dafl_why *why);
DAFL_CHECK dafl_err dafl_identity_new_derand(dafl_secret_identity *out,
                                             const char *name,
                                             const uint8_t seed[64],
                                             dafl_why *why);
void dafl_identity_wipe(dafl_secret_identity *id);

/* A key file of mode 0600, never over an existing one. */
DAFL_CHECK dafl_err dafl_identity_save(const dafl_secret_identity *id,
                                       const char *path, dafl_why *why);
/* Refused: a file that others may read or write, that is not ours, or whose
 * public half does not belong to its secret. */
DAFL_CHECK dafl_err dafl_identity_load(dafl_secret_identity *out,
                                       const char *path, dafl_why *why);

/* "name ed25519:HEX curve25519:HEX". */
#define DAFL_IDENTITY_LINE_MAX (DAFL_NAME_MAX + 9 + 64 + 12 + 64 + 1)
void dafl_identity_format(char line[DAFL_IDENTITY_LINE_MAX],
                          const dafl_identity *id);
DAFL_CHECK dafl_err dafl_identity_parse(dafl_identity *out, const char *line,
                                        dafl_why *why);

/* Sign and check a digest. */
void dafl_sign(dafl_signature *out, const dafl_digest *digest,
               const dafl_secret_identity *id);
DAFL_CHECK dafl_err dafl_sign_check(const dafl_signature *sig,
                                    const dafl_digest *digest,
                                    const uint8_t sign_pk[32]);

#endif
