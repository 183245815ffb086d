/* SPDX-License-Identifier: Apache-2.0 */
/* Decode a message and encode it again, for tests and fuzzing. */
#ifndef DAFL_TESTS_RECODE_H
#define DAFL_TESTS_RECODE_H

#include <stdbool.h>

#include "protocol/messages.h"

/* Whether the body of a message of this type decodes; then what it encodes to
 * has been appended to w. */
bool recode(unsigned type, dafl_bytes body, dafl_writer *w);

#endif
