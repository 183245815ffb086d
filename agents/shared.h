/* SPDX-License-Identifier: Apache-2.0 */
/* Projections that the clients of one process use together: each is drawn once
 * and freed when nobody uses it any more. */
#ifndef DAFL_AGENTS_SHARED_H
#define DAFL_AGENTS_SHARED_H

#include "lib/model.h"

typedef struct shared shared;

DAFL_CHECK dafl_err shared_new(shared **out, const dafl_model *model);
void shared_free(shared **s);

/* Give *held back (unless NULL) and hold projection k instead. Any thread. */
DAFL_CHECK dafl_err shared_take(shared *s, size_t k,
                                const dafl_projection **held);

#endif
