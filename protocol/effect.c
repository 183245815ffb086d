/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/effect.h"

#include <stdlib.h>

struct dafl_effect_node {
    dafl_effect effect;
    dafl_writer bytes;
    struct dafl_effect_node *next;
};

const char *dafl_event_name(dafl_event_kind kind)
{
    static const char *const names[] = {
        [DAFL_EVENT_START] = "start",   [DAFL_EVENT_INVITE] = "invite",
        [DAFL_EVENT_ENROLL] = "enroll", [DAFL_EVENT_SETUP] = "setup",
        [DAFL_EVENT_MODEL] = "model",   [DAFL_EVENT_READY] = "ready",
        [DAFL_EVENT_CAST] = "cast",     [DAFL_EVENT_UPLOAD] = "upload",
        [DAFL_EVENT_SURV] = "surv",     [DAFL_EVENT_SIGN] = "sign",
        [DAFL_EVENT_CONF] = "conf",     [DAFL_EVENT_REVEAL] = "reveal",
        [DAFL_EVENT_RESULT] = "result", [DAFL_EVENT_ERROR] = "error",
        [DAFL_EVENT_DONE] = "done",     [DAFL_EVENT_PEER_HEAD] = "peer_head",
        [DAFL_EVENT_KEY] = "key",       [DAFL_EVENT_OPEN] = "open",
        [DAFL_EVENT_ERRORS] = "errors",
    };

    return (size_t)kind < sizeof names / sizeof names[0] ? names[kind] : "?";
}

static void release(struct dafl_effect_node *node)
{
    if (node != NULL)
        dafl_writer_drop(&node->bytes);
    free(node);
}

void dafl_effects_add(dafl_effects *q, const dafl_effect *effect,
                      dafl_writer *bytes)
{
    struct dafl_effect_node *node = calloc(1, sizeof *node);
    bool whole = bytes == NULL || dafl_writer_done(bytes) == DAFL_OK;

    /* Once something is missing nothing may follow it. */
    if (node == NULL || !whole || q->failed) {
        q->failed = true;
        free(node);
        if (bytes != NULL)
            dafl_writer_drop(bytes);
        return;
    }
    node->effect = *effect;
    if (bytes != NULL) {
        node->bytes = *bytes;
        *bytes = (dafl_writer){0};
    }
    node->effect.bytes = dafl_writer_bytes(&node->bytes);
    if (q->tail == NULL)
        q->head = node;
    else
        q->tail->next = node;
    q->tail = node;
}

bool dafl_effects_next(dafl_effects *q, dafl_effect *out)
{
    release(q->taken);
    q->taken = q->head;
    if (q->taken == NULL)
        return false;
    q->head = q->taken->next;
    if (q->head == NULL)
        q->tail = NULL;
    *out = q->taken->effect;
    return true;
}

void dafl_effects_drop(dafl_effects *q)
{
    dafl_effect passed;

    while (dafl_effects_next(q, &passed))
        ;
    *q = (dafl_effects){0};
}
