/* SPDX-License-Identifier: Apache-2.0 */
/* How many shares rebuild a secret, and how many signatures confirm a
 * statement. */
#ifndef DAFL_PROTOCOL_THRESHOLD_H
#define DAFL_PROTOCOL_THRESHOLD_H

#include <stddef.h>

#include "protocol/fault.h"

#define DAFL_CLIENTS_MAX 256

/* n enrolled clients, so k = n - 1 holders of each secret; at most c of them
 * collude with the server, at most a are absent or do not sign.
 *
 *   t = floor((k + c) / 2) + 1,  and  n - 1 - a >= t
 *
 * Two quorums of t among k holders share 2t - k > c of them, so at least one
 * that is honest and signs one statement per slot: no client can have both its
 * secrets opened. DAFL_E_PARAMS when no such t exists. */
dafl_fault dafl_threshold(size_t *t, size_t n, size_t c, size_t a);

/* The most absences that n and c allow; 0 also when they allow no run. */
size_t dafl_threshold_absent(size_t n, size_t c);

#endif
