/* SPDX-License-Identifier: Apache-2.0 */
/* The door to HTTP: one page at /metrics for whoever collects metrics, from a
 * thread of its own. Few connections, each for one request and a few seconds,
 * and the oldest makes room for the newest: a slow or hostile one keeps nobody
 * waiting. */
#ifndef DAFL_AGENTS_METRICS_HTTP_H
#define DAFL_AGENTS_METRICS_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/err.h"

typedef struct metrics_http metrics_http;

/* The page, to be freed by the caller; NULL when memory is short. Called from
 * the door's thread. */
typedef char *metrics_page(void *ctx, size_t *len);

/* Listen at "PORT" or ":PORT" of 127.0.0.1, or at "ADDRESS:PORT", with brackets
 * around an IPv6 address; port 0: any that is free. Names are not looked up,
 * but localhost is known. DAFL_ERR_INPUT when that cannot be used. */
DAFL_CHECK dafl_err metrics_http_start(metrics_http **out, const char *address,
                                       metrics_page *page, void *ctx,
                                       dafl_why *why);
void metrics_http_stop(metrics_http **http);

/* "http://127.0.0.1:9400/metrics". */
const char *metrics_http_url(const metrics_http *h);
/* Whether other machines can come in. */
bool metrics_http_public(const metrics_http *h);

#endif
