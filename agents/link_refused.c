/* SPDX-License-Identifier: Apache-2.0 */
#include "agents/link_refused.h"

#include <stdio.h>
#include <string.h>

#define AGAIN_MS 60000

static link_cause *find(link_refused *r, link_reason reason, const char *who)
{
    for (size_t i = 0; i < LINK_CAUSES; i++) {
        link_cause *c = &r->causes[i];
        if (c->used && c->reason == reason && strcmp(c->who, who) == 0)
            return c;
    }
    return NULL;
}

/* One that may be forgotten, or NULL. */
static link_cause *spare(link_refused *r, uint64_t now)
{
    for (size_t i = 0; i < LINK_CAUSES; i++) {
        link_cause *c = &r->causes[i];
        if (!c->used || now - c->told >= AGAIN_MS)
            return c;
    }
    return NULL;
}

void refused_note(link_refused *r, link_mail *mail, link_reason reason,
                  const char *who, uint64_t now)
{
    link_event event = {.kind = LINK_REFUSED, .reason = reason};
    link_cause *c;

    (void)snprintf(event.who, sizeof event.who, "%s", who);
    c = find(r, reason, event.who);
    if (c == NULL) {
        c = spare(r, now);
        if (c == NULL)
            return;
        memset(c, 0, sizeof *c);
        c->reason = reason;
        memcpy(c->who, event.who, sizeof c->who);
    }
    c->times++;
    if (c->used && now - c->told < AGAIN_MS)
        return;
    event.times = c->times;
    c->used = true;
    c->told = now;
    c->times = 0;
    mail_put(mail, &event);
}
