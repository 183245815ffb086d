/* SPDX-License-Identifier: Apache-2.0 */
/* Who was turned away: told once a minute for each cause, and of no more than
 * a few causes, so that nobody can fill a log from outside. Internal to the
 * link. */
#ifndef DAFL_AGENTS_LINK_REFUSED_H
#define DAFL_AGENTS_LINK_REFUSED_H

#include "agents/link_mail.h"

#define LINK_CAUSES 32

typedef struct {
    bool used;
    link_reason reason;
    char who[LINK_WHO_MAX];
    uint64_t told;
    uint32_t times; /* since then */
} link_cause;

/* Starts as {0}. */
typedef struct {
    link_cause causes[LINK_CAUSES];
} link_refused;

void refused_note(link_refused *r, link_mail *mail, link_reason reason,
                  const char *who, uint64_t now);

#endif
