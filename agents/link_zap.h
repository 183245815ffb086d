/* SPDX-License-Identifier: Apache-2.0 */
/* Who may come in, and the name they get (ZAP, RFC 27). Internal to the link.
 *
 * A connection's name is "NUMBER.TOKEN". A peer can put a "User-Id" of its own
 * into its handshake, which would count if no handler had given one; the token,
 * drawn anew by every server, is what it cannot know. */
#ifndef DAFL_AGENTS_LINK_ZAP_H
#define DAFL_AGENTS_LINK_ZAP_H

#include "agents/link.h"

typedef struct {
    char hex[2 * DAFL_KEY_BYTES + 1];
} link_token;

void zap_draw_token(link_token *token);

#define ZAP_DOMAIN "deepafl"
#define ZAP_NAME_MAX (6 + 2 * DAFL_KEY_BYTES + 1)

/* The parts of a request, in this order. */
enum {
    ZAP_VERSION,
    ZAP_REQUEST,
    ZAP_REALM,
    ZAP_ADDRESS,
    ZAP_IDENTITY,
    ZAP_MECHANISM,
    ZAP_CREDENTIAL,
    ZAP_PARTS
};

typedef struct {
    uint8_t b[255];
    size_t len;
} zap_part;

/* The party of the roster to let in, and its name; else -1 and who it is. */
int zap_judge(const zap_part request[ZAP_PARTS], const dafl_roster *roster,
              const link_token *token, char name[ZAP_NAME_MAX],
              char who[LINK_WHO_MAX]);

/* The party that has this name (NULL: none), or -1. */
int zap_party(const char *name, const dafl_roster *roster,
              const link_token *token);

#endif
