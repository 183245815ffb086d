/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/node.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/weaken.h"

dafl_err dafl_node_init(dafl_node *n, const dafl_roster *roster,
                        const dafl_config *config,
                        const dafl_secret_identity *self, dafl_role role,
                        dafl_fault *fault, dafl_why *why)
{
    int index = dafl_roster_find(roster, self->public.name);
    static const char *const roles[] = {"client", "server", "key holder"};
    const dafl_party *own;
    dafl_fault found;

    if (index < 0 || roster->parties[index].role != role)
        return dafl_fail(why, DAFL_ERR_INPUT, "the roster has no %s named '%s'",
                         roles[role], self->public.name);
    own = &roster->parties[index];
    if (memcmp(own->id.sign_pk, self->public.sign_pk, 32) != 0 ||
        memcmp(own->id.curve_pk.b, self->public.curve_pk.b, 32) != 0)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "the roster has other keys for '%s' than its key file",
                         self->public.name);
    found = dafl_config_check(config, roster, why);
    if (found != DAFL_FAULT_NONE) {
        if (fault != NULL)
            *fault = found;
        return DAFL_ERR_INPUT;
    }
    memset(n, 0, sizeof *n);
    n->roster = roster;
    n->config = config;
    n->self = self;
    n->index = (uint16_t)index;
    DAFL_TRY(dafl_roster_digest(&n->roster_hash, roster));
    return dafl_config_digest(&n->config_hash, config);
}

void dafl_node_drop(dafl_node *n)
{
    dafl_effects_drop(&n->effects);
}

void dafl_node_boot(dafl_node *n)
{
    dafl_writer w = {0};

    n->boot++;
    n->sent = 0;
    dafl_put_u8(&w, DAFL_RECORD_BOOT);
    dafl_put_u32(&w, n->boot);
    dafl_node_append(n, &w);
}

static void send_effect(dafl_node *n, dafl_msg_type type,
                        const dafl_effect *effect, dafl_writer *body)
{
    dafl_writer w = {0};

    if (dafl_writer_done(body) == DAFL_OK)
        dafl_put_envelope(&w,
                          &(dafl_envelope){
                              .type = (uint8_t)type,
                              .run = n->run,
                              .slot = effect->slot,
                              .sender = n->index,
                              .seq = (uint64_t)n->boot << 32 | ++n->sent,
                              .log_head = n->log_head,
                              .body = dafl_writer_bytes(body),
                          },
                          n->self);
    else
        w.failed = true;
    dafl_writer_drop(body);
    dafl_effects_add(&n->effects, effect, &w);
}

void dafl_node_send(dafl_node *n, dafl_msg_type type, uint32_t slot,
                    const dafl_members *to, dafl_writer *body)
{
    dafl_effect effect = {.kind = DAFL_DO_SEND, .slot = slot};

    if (to != NULL)
        effect.to = *to;
    send_effect(n, type, &effect, body);
}

void dafl_node_send_holder(dafl_node *n, dafl_msg_type type, uint32_t slot,
                           dafl_writer *body)
{
    send_effect(
        n, type,
        &(dafl_effect){.kind = DAFL_DO_SEND, .slot = slot, .to_holder = true},
        body);
}

void dafl_node_send_chunks(dafl_node *n, uint32_t slot, dafl_bytes bytes,
                           bool holder)
{
    size_t chunk = n->config->chunk;
    dafl_writer w = {0};

    for (size_t at = 0; at < bytes.len; at += chunk) {
        size_t left = bytes.len - at;
        dafl_put_upload(
            &w,
            &(dafl_upload){at, {bytes.ptr + at, left < chunk ? left : chunk}});
        if (holder)
            dafl_node_send_holder(n, DAFL_MSG_UPLOAD, slot, &w);
        else
            dafl_node_send(n, DAFL_MSG_UPLOAD, slot, NULL, &w);
    }
}

dafl_fault dafl_node_take_chunk(dafl_writer *w, dafl_bytes body, size_t most,
                                dafl_err *err)
{
    dafl_upload got;

    if (dafl_get_upload(&got, body) != DAFL_OK)
        return DAFL_E_FORMAT;
    if (got.offset == 0)
        dafl_writer_clear(w); /* it starts anew */
    if (got.offset != w->len || got.chunk.len > most - w->len)
        return DAFL_E_FORMAT;
    dafl_put_fixed(w, got.chunk.ptr, got.chunk.len);
    if (dafl_writer_done(w) != DAFL_OK)
        *err = DAFL_ERR_NOMEM;
    return DAFL_FAULT_NONE;
}

void dafl_node_append(dafl_node *n, dafl_writer *record)
{
    dafl_effects_add(&n->effects, &(dafl_effect){.kind = DAFL_DO_APPEND},
                     record);
}

void dafl_node_tell(dafl_node *n, const dafl_event *event, dafl_writer *more)
{
    dafl_effect effect = {
        .kind = DAFL_DO_TELL, .slot = event->slot, .event = *event};

    effect.event.run = n->run;
    dafl_effects_add(&n->effects, &effect, more);
}

void dafl_node_tell_start(dafl_node *n)
{
    const char *name = n->self->public.name;
    dafl_writer w = {0};

    dafl_put_fixed(&w, n->roster_hash.b, sizeof n->roster_hash.b);
    dafl_put_fixed(&w, n->config_hash.b, sizeof n->config_hash.b);
    dafl_put_fixed(&w, name, strlen(name));
    dafl_node_tell(n,
                   &(dafl_event){.kind = DAFL_EVENT_START,
                                 .number = n->boot,
                                 .peer = DAFL_NOBODY},
                   &w);
}

void dafl_node_tell_model(dafl_node *n, const dafl_event *event, uint32_t rank,
                          uint64_t len, const dafl_digest *h_setup,
                          const dafl_digest *he)
{
    dafl_event model = *event;
    dafl_writer w = {0};

    model.kind = DAFL_EVENT_MODEL;
    dafl_put_u32(&w, rank);
    dafl_put_u64(&w, len);
    dafl_put_u8(&w, (uint8_t)n->config->contract.w);
    dafl_put_fixed(&w, h_setup->b, sizeof h_setup->b);
    dafl_put_fixed(&w, he->b, sizeof he->b);
    dafl_node_tell(n, &model, &w);
}

/* How often this peer has been at fault like this since the last recap. */
static uint32_t *errors_of(dafl_node *n, uint16_t peer, dafl_fault fault)
{
    return &n->errors[peer < DAFL_PARTIES_MAX ? peer : DAFL_PARTIES_MAX][fault];
}

void dafl_node_error(dafl_node *n, uint32_t slot, uint16_t peer,
                     dafl_fault fault)
{
    uint32_t *errors = errors_of(n, peer, fault);

    if (*errors < DAFL_ERRORS_TOLD || DAFL_WEAK(LINES))
        dafl_node_tell(n,
                       &(dafl_event){.kind = DAFL_EVENT_ERROR,
                                     .slot = slot,
                                     .peer = peer,
                                     .fault = fault,
                                     .says = n->says},
                       NULL);
    *errors += *errors < UINT32_MAX;
    n->says = NULL;
}

static void tell_head(dafl_node *n, uint16_t peer)
{
    const dafl_peer_head *head = &n->heads[peer];
    dafl_writer w = {0};

    dafl_put_u64(&w, head->seq);
    dafl_node_tell(n,
                   &(dafl_event){.kind = DAFL_EVENT_PEER_HEAD,
                                 .slot = head->slot,
                                 .peer = peer,
                                 .digest = head->digest},
                   &w);
}

/* What a peer says of its log binds it: it cannot give that part of it another
 * content any more. */
static void note_head(dafl_node *n, const dafl_envelope *m)
{
    dafl_peer_head *head = &n->heads[m->sender];

    if (sodium_is_zero(m->log_head.b, sizeof m->log_head.b) ||
        dafl_digest_equal(&m->log_head, &head->digest))
        return;
    head->digest = m->log_head;
    head->seq = m->seq;
    head->slot = m->slot;
    if (head->seen < DAFL_HEADS_TOLD || DAFL_WEAK(LINES))
        tell_head(n, m->sender);
    head->seen += head->seen < UINT32_MAX;
}

static void recap_errors(dafl_node *n, uint32_t slot, uint16_t peer)
{
    for (unsigned fault = 0; fault < DAFL_FAULT_COUNT; fault++) {
        uint32_t *errors = errors_of(n, peer, (dafl_fault)fault);
        if (*errors > DAFL_ERRORS_TOLD && !DAFL_WEAK(LINES))
            dafl_node_tell(n,
                           &(dafl_event){.kind = DAFL_EVENT_ERRORS,
                                         .slot = slot,
                                         .number = *errors - DAFL_ERRORS_TOLD,
                                         .peer = peer,
                                         .fault = (dafl_fault)fault},
                           NULL);
        *errors = 0;
    }
}

void dafl_node_recap(dafl_node *n, uint32_t slot)
{
    for (uint16_t peer = 0; peer < n->roster->n; peer++) {
        recap_errors(n, slot, peer);
        if (n->heads[peer].seen > DAFL_HEADS_TOLD && !DAFL_WEAK(LINES))
            tell_head(n, peer);
        n->heads[peer].seen = 0;
    }
    recap_errors(n, slot, DAFL_NOBODY);
}

bool dafl_node_lives(dafl_node *n, uint16_t party, uint32_t boot)
{
    dafl_writer w = {0};

    if (n->lives[party] >= DAFL_LIVES_MAX && !DAFL_WEAK(LIVES)) {
        n->says = "it has been started too often in this run";
        return false;
    }
    n->lives[party]++;
    dafl_put_u8(&w, DAFL_RECORD_HEARD);
    dafl_put_u16(&w, party);
    dafl_put_u32(&w, boot);
    dafl_node_append(n, &w);
    return true;
}

/* A message that is signed and new: journal its sender's life if that is. */
static dafl_fault note_boot(dafl_node *n, const dafl_envelope *m)
{
    uint32_t boot = (uint32_t)(m->seq >> 32);

    if (boot > n->heard[m->sender] >> 32 &&
        !dafl_node_lives(n, m->sender, boot))
        return DAFL_E_STATE;
    return DAFL_FAULT_NONE;
}

dafl_fault dafl_node_open(dafl_node *n, dafl_envelope *m, dafl_bytes message)
{
    bool server = n->roster->parties[n->index].role == DAFL_ROLE_SERVER;
    const dafl_party *sender;
    bool ours;
    dafl_fault fault = dafl_get_envelope(m, message, n->config->body_max);

    if (fault != DAFL_FAULT_NONE)
        return fault;
    if (m->sender >= n->roster->n)
        return DAFL_E_AUTH;
    sender = &n->roster->parties[m->sender];
    if ((sender->role == DAFL_ROLE_SERVER) == server)
        return DAFL_E_AUTH;
    ours = memcmp(m->run.b, n->run.b, sizeof m->run.b) == 0;
    if (!ours && m->type != DAFL_MSG_INVITE && m->type != DAFL_MSG_HELLO)
        return DAFL_E_REPLAY;
    /* Another run of the server counts from its own beginning; whoever joins
     * it goes on from there. */
    if (!ours && m->type == DAFL_MSG_INVITE)
        return dafl_envelope_check(m, sender->id.sign_pk);
    if (m->seq <= n->heard[m->sender] && (!server || m->type != DAFL_MSG_HELLO))
        return DAFL_E_REPLAY;
    fault = dafl_envelope_check(m, sender->id.sign_pk);
    if (fault == DAFL_FAULT_NONE && m->seq <= n->heard[m->sender])
        return DAFL_E_STATE_LOST;
    if (fault == DAFL_FAULT_NONE && server)
        fault = note_boot(n, m);
    if (fault == DAFL_FAULT_NONE) {
        n->heard[m->sender] = m->seq;
        note_head(n, m);
    }
    return fault;
}

bool dafl_node_is_doubted(const dafl_result *result)
{
    return result->fault == DAFL_E_STATE_LOST &&
           !sodium_is_zero(result->sum.b, sizeof result->sum.b);
}

bool dafl_node_rolled_back(dafl_node *n, const dafl_result *result)
{
    uint64_t ours = (uint64_t)n->boot << 32 | n->sent, heard = 0;

    for (size_t i = 0; i < 8; i++)
        heard |= (uint64_t)result->sum.b[i] << 8 * i;
    if (heard <= ours || DAFL_WEAK(ROLLBACK))
        return false;
    n->says = "the server has heard a later life of this party: this state is "
              "not its newest, or a copy of it is in use";
    return true;
}

static int compare_keys(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(dafl_public));
}

dafl_fault dafl_node_check_keys(dafl_public *keys, size_t n)
{
    qsort(keys, n, sizeof *keys, compare_keys);
    for (size_t i = 0; i < n; i++)
        if ((i > 0 && compare_keys(&keys[i - 1], &keys[i]) == 0 &&
             !DAFL_WEAK(BAD_KEY)) ||
            dafl_public_check(&keys[i]) != DAFL_OK)
            return DAFL_E_BAD_KEY;
    return DAFL_FAULT_NONE;
}

bool dafl_node_has_key(const dafl_public *sorted, size_t n,
                       const dafl_public *key)
{
    return bsearch(key, sorted, n, sizeof *key, compare_keys) != NULL;
}

uint32_t dafl_node_first_slot(const dafl_node *n, uint32_t enrolment)
{
    return enrolment * n->config->slots + 1;
}

uint32_t dafl_node_last_slot(const dafl_node *n, uint32_t enrolment)
{
    return (enrolment + 1) * n->config->slots;
}
