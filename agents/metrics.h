/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent tells Prometheus: how often, how many, how long, since it was
 * started. Collected from what agents/watch.h follows and from the link's
 * counters; names of parties and of errors, never what was sent. */
#ifndef DAFL_AGENTS_METRICS_H
#define DAFL_AGENTS_METRICS_H

#include "agents/link.h"
#include "agents/watch.h"

typedef struct metrics metrics;

/* Serve at an address as in agents/metrics_http.h. What *w points to is
 * borrowed. */
DAFL_CHECK dafl_err metrics_new(metrics **out, const char *address,
                                const watch *w, dafl_role role, dafl_why *why);
/* Before the link. */
void metrics_free(metrics **m);

/* These do nothing without metrics (NULL). From now on: this link, borrowed. */
void metrics_link(metrics *m, const dafl_link *link);
/* `w` has followed this event, or (NULL) something else. */
void metrics_event(metrics *m, const watch *w, const dafl_event *event);

/* Where they are served, and whether other machines can read them there. */
const char *metrics_url(const metrics *m);
bool metrics_public(const metrics *m);

#endif
