/* SPDX-License-Identifier: Apache-2.0 */
/* A client after a restart: what the journal and the vault say it has done. It
 * may do those things again, byte for byte, and nothing else in their place. */
#include <stdlib.h>
#include <string.h>

#include "lib/secret.h"
#include "protocol/client_state.h"
#include "protocol/weaken.h"

static dafl_err recall_enrolled(dafl_client *c, dafl_reader *r)
{
    dafl_digest roster, config;
    dafl_run_id run;

    DAFL_TRY(dafl_get_fixed(r, run.b, sizeof run.b));
    DAFL_TRY(dafl_get_u32(r, &c->enrolment));
    DAFL_TRY(dafl_get_fixed(r, roster.b, sizeof roster.b));
    DAFL_TRY(dafl_get_fixed(r, config.b, sizeof config.b));
    DAFL_TRY(dafl_get_fixed(r, c->given.rows.b, sizeof c->given.rows.b));
    DAFL_TRY(dafl_get_fixed(r, c->given.basis.b, sizeof c->given.basis.b));
    DAFL_TRY(dafl_get_fixed(r, c->given.cell.b, sizeof c->given.cell.b));
    DAFL_TRY(dafl_get_end(r));
    if (c->enrolment >= DAFL_ENROLMENTS_MAX)
        return DAFL_ERR_PEER;
    dafl_client_drop_setup(c);
    if (!dafl_client_knows(c, &run))
        DAFL_TRY(dafl_client_join(c, &run));
    c->foreign = !dafl_digest_equal(&roster, &c->node.roster_hash) ||
                 !dafl_digest_equal(&config, &c->node.config_hash);
    c->in_run = !c->foreign;
    c->over = false;
    c->fault = DAFL_FAULT_NONE;
    /* Without the keys that it sent it can only wait for a new enrolment. */
    c->state = DAFL_CLIENT_WAITING;
    return DAFL_OK;
}

static dafl_err recall_setup(dafl_client *c, dafl_reader *r)
{
    dafl_setup_ack ack;
    dafl_bytes keys;
    uint16_t t = 0;
    dafl_run_id run;

    DAFL_TRY(dafl_get_fixed(r, run.b, sizeof run.b));
    DAFL_TRY(dafl_get_u32(r, &c->enrolment));
    DAFL_TRY(dafl_get_u16(r, &t));
    DAFL_TRY(dafl_get_fixed(r, c->h_setup.b, sizeof c->h_setup.b));
    DAFL_TRY(dafl_get_members(r, &c->u0));
    DAFL_TRY(dafl_get_members(r, &c->u1));
    DAFL_TRY(dafl_get_members(r, &ack.failed));
    DAFL_TRY(dafl_get_items(
        r, &keys, (uint64_t)dafl_members_count(&c->u1) * c->node.config->slots,
        DAFL_SLOT_KEYS_BYTES));
    DAFL_TRY(dafl_get_end(r));
    if (c->enrolment >= DAFL_ENROLMENTS_MAX || !c->in_run ||
        memcmp(run.b, c->node.run.b, sizeof run.b) != 0 ||
        c->u0.n != c->node.roster->n_clients ||
        !dafl_members_within(&c->u1, &c->u0) ||
        !dafl_members_has(&c->u1, c->node.index))
        return DAFL_ERR_PEER;
    c->t = t;
    dafl_client_drop_setup(c);
    DAFL_TRY(dafl_client_make_records(c));
    DAFL_TRY(dafl_client_keep_keys(c, &c->u1, keys));
    ack.h_setup = c->h_setup;
    dafl_put_setup_ack(&c->ack, &ack);
    c->state = DAFL_CLIENT_IDLE;
    return dafl_writer_done(&c->ack);
}

static dafl_err recall_upload(dafl_client *c, dafl_reader *r)
{
    DAFL_TRY(dafl_get_u32(r, &c->journal_upload));
    DAFL_TRY(dafl_get_fixed(r, c->journal_ctx2.b, sizeof c->journal_ctx2.b));
    DAFL_TRY(dafl_get_fixed(r, c->journal_dig.b, sizeof c->journal_dig.b));
    DAFL_TRY(dafl_get_end(r));
    return dafl_client_give(c);
}

static dafl_err recall_sign(dafl_client *c, dafl_reader *r)
{
    dafl_members u3;

    DAFL_TRY(dafl_get_u32(r, &c->journal_sign));
    DAFL_TRY(dafl_get_fixed(r, c->journal_stmt.b, sizeof c->journal_stmt.b));
    DAFL_TRY(dafl_get_members(r, &u3));
    DAFL_TRY(dafl_get_end(r));
    return dafl_client_witness(c, c->journal_sign, &u3);
}

static dafl_err recall_closed(dafl_client *c, dafl_reader *r)
{
    DAFL_TRY(dafl_get_u32(r, &c->closed));
    if (c->closed > dafl_node_last_slot(&c->node, DAFL_ENROLMENTS_MAX - 1))
        return DAFL_ERR_PEER;
    return dafl_get_end(r);
}

static dafl_err recall_over(dafl_client *c, dafl_reader *r)
{
    uint16_t fault = 0;

    DAFL_TRY(dafl_get_u16(r, &fault));
    if (fault >= DAFL_FAULT_COUNT)
        return DAFL_ERR_PEER;
    c->over = true;
    c->fault = (dafl_fault)fault;
    return dafl_get_end(r);
}

static dafl_err recall_boot(dafl_client *c, dafl_reader *r)
{
    DAFL_TRY(dafl_get_u32(r, &c->node.boot));
    return dafl_get_end(r);
}

dafl_err dafl_client_recall(dafl_client *c, dafl_bytes record)
{
    dafl_reader r = dafl_read(record);
    uint8_t kind = 0;
    dafl_err err = dafl_get_u8(&r, &kind);

    if (err == DAFL_OK && c->foreign &&
        (kind == DAFL_RECORD_SETUP || kind == DAFL_RECORD_SIGN ||
         kind == DAFL_RECORD_CLOSED || kind == DAFL_RECORD_OVER))
        return DAFL_OK; /* means something with its own roster only */
    if (err == DAFL_OK)
        err = kind == DAFL_RECORD_BOOT       ? recall_boot(c, &r)
              : kind == DAFL_RECORD_ENROLLED ? recall_enrolled(c, &r)
              : kind == DAFL_RECORD_SETUP    ? recall_setup(c, &r)
              : kind == DAFL_RECORD_UPLOAD   ? recall_upload(c, &r)
              : kind == DAFL_RECORD_SIGN     ? recall_sign(c, &r)
              : kind == DAFL_RECORD_CLOSED   ? recall_closed(c, &r)
              : kind == DAFL_RECORD_OVER     ? recall_over(c, &r)
                                             : DAFL_ERR_PEER;
    return err == DAFL_ERR_PEER ? DAFL_ERR_INPUT : err;
}

dafl_err dafl_client_recall_secret(dafl_client *c, uint32_t slot,
                                   dafl_bytes record)
{
    if (c->state != DAFL_CLIENT_IDLE || slot <= c->closed ||
        slot < dafl_node_first_slot(&c->node, c->enrolment) ||
        slot > dafl_node_last_slot(&c->node, c->enrolment))
        return DAFL_OK; /* of another enrolment: of no use any more */
    if (record.len != c->record_bytes)
        return DAFL_ERR_INPUT;
    memcpy(dafl_client_record(c, slot), record.ptr, record.len);
    return DAFL_OK;
}

/* Every slot that is still open has its keys. */
static bool vault_is_whole(const dafl_client *c)
{
    uint32_t first = dafl_node_first_slot(&c->node, c->enrolment);
    uint32_t last = dafl_node_last_slot(&c->node, c->enrolment);

    if (c->state != DAFL_CLIENT_IDLE)
        return true;
    for (uint32_t e = c->closed < first ? first : c->closed + 1; e <= last; e++)
        if (sodium_is_zero(dafl_client_record(c, e), DAFL_OWN_BYTES))
            return false;
    return true;
}

dafl_err dafl_client_start(dafl_client *c)
{
    dafl_node_boot(&c->node);
    dafl_node_tell_start(&c->node);
    if (!vault_is_whole(c)) {
        dafl_node_error(&c->node, c->closed, DAFL_NOBODY, DAFL_E_STATE_LOST);
        c->fault = DAFL_E_STATE_LOST;
        c->state = DAFL_CLIENT_OUT;
        dafl_client_drop_setup(c);
    }
    /* The slot at hand may be opened again, what was closed may not; it may
     * have been closed just before its secrets were erased. */
    c->slot = c->closed;
    if (c->closed > 0 || c->foreign)
        dafl_effects_add(
            &c->node.effects,
            &(dafl_effect){.kind = DAFL_DO_ERASE,
                           .slot = c->foreign ? UINT32_MAX : c->closed},
            NULL);
    return dafl_client_hello(c);
}
