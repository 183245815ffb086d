/* SPDX-License-Identifier: Apache-2.0 */
#include "agents/link_zap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void to_hex(char *out, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

void zap_draw_token(link_token *token)
{
    dafl_key key;

    dafl_key_random(&key);
    to_hex(token->hex, key.b, sizeof key.b);
    dafl_key_wipe(&key);
}

static bool is_text(const zap_part *p, const char *text)
{
    return p->len == strlen(text) && memcmp(p->b, text, p->len) == 0;
}

/* Whoever connects to a server: clients and the key holder. */
static bool may_connect(const dafl_roster *roster, size_t i)
{
    return i < roster->n && roster->parties[i].role != DAFL_ROLE_SERVER;
}

static int party_of_key(const dafl_roster *roster, const zap_part *key)
{
    for (uint16_t i = 0; i < roster->n; i++) {
        const dafl_public *pk = &roster->parties[i].id.curve_pk;
        if (may_connect(roster, i) && key->len == sizeof pk->b &&
            memcmp(pk->b, key->b, sizeof pk->b) == 0)
            return i;
    }
    return -1;
}

static void describe(char who[LINK_WHO_MAX], const zap_part *address,
                     const zap_part *key)
{
    char hex[2 * DAFL_KEY_BYTES + 1] = "";

    if (key->len == DAFL_KEY_BYTES)
        to_hex(hex, key->b, key->len);
    (void)snprintf(who, LINK_WHO_MAX, "%.*s curve25519:%s",
                   (int)(address->len < 64 ? address->len : 64),
                   (const char *)address->b, hex);
}

int zap_judge(const zap_part request[ZAP_PARTS], const dafl_roster *roster,
              const link_token *token, char name[ZAP_NAME_MAX],
              char who[LINK_WHO_MAX])
{
    int party = -1;

    if (is_text(&request[ZAP_VERSION], "1.0") &&
        is_text(&request[ZAP_REALM], ZAP_DOMAIN) &&
        is_text(&request[ZAP_MECHANISM], "CURVE"))
        party = party_of_key(roster, &request[ZAP_CREDENTIAL]);
    if (party >= 0)
        (void)snprintf(name, ZAP_NAME_MAX, "%d.%s", party, token->hex);
    else
        describe(who, &request[ZAP_ADDRESS], &request[ZAP_CREDENTIAL]);
    return party;
}

int zap_party(const char *name, const dafl_roster *roster,
              const link_token *token)
{
    char *end = NULL;
    unsigned long party;

    if (name == NULL || name[0] < '0' || name[0] > '9')
        return -1;
    party = strtoul(name, &end, 10);
    if (*end != '.' || strcmp(end + 1, token->hex) != 0 ||
        !may_connect(roster, party))
        return -1;
    return (int)party;
}
