/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong in a walk. */
#include "tests/lab/walk_inside.h"

#include <string.h>

#include "protocol/context.h"

#define DAY 86400000
#define MINUTE 60000

/* ---- what colluders send ---- */

static void change_shares(walk *w, lab_letter *m)
{
    dafl_revealed items[DAFL_CLIENTS_MAX];
    bool all = walk_below(w, 2) == 0;
    dafl_reveal reveal;
    dafl_writer body = {0};

    if (dafl_get_reveal(&reveal, m->envelope.body) != DAFL_OK)
        return;
    for (size_t i = 0; i < reveal.n; i++) {
        items[i] = dafl_reveal_at(&reveal, i);
        if (all || walk_below(w, 3) == 0)
            items[i].share.b[walk_below(w, 32)] ^=
                (uint8_t)walk_between(w, 1, 255);
    }
    dafl_put_reveal(&body, items, reveal.n);
    lab_letter_reseal(w->lab, m, dafl_writer_bytes(&body));
    dafl_writer_drop(&body);
    dafl_members_remove(&w->lies_of_shares, m->from);
    w->report->ops[WALK_BAD_SHARE]++;
}

/* The context that a client masks in, as it told. */
static bool context_of(const walk *w, uint16_t client, uint32_t slot,
                       dafl_digest *ctx2)
{
    const lab_event *events;
    size_t n = lab_events(w->lab, &events);

    while (n-- > 0)
        if (events[n].party == client && events[n].event.slot == slot &&
            events[n].event.kind == DAFL_EVENT_CAST) {
            *ctx2 = events[n].event.digest;
            return true;
        }
    return false;
}

/* Answers are short: an upload is one chunk. */
static void change_chunk(walk *w, lab_letter *m)
{
    dafl_writer body = {0};
    dafl_upload chunk;
    dafl_digest ctx2;

    w->upload = (bad_upload)walk_below(w, BAD_UPLOADS);
    if (dafl_get_upload(&chunk, m->envelope.body) != DAFL_OK ||
        !context_of(w, m->from, m->envelope.slot, &ctx2))
        return;
    dafl_put_fixed(&body, m->envelope.body.ptr, m->envelope.body.len);
    if (w->upload != OTHER_END)
        body.ptr[8 + walk_below(w, chunk.chunk.len)] ^=
            (uint8_t)walk_between(w, 1, 255);
    dafl_context_upload(&w->end_dig, &ctx2, m->from,
                        (dafl_bytes){body.ptr + 8, chunk.chunk.len});
    lab_letter_reseal(w->lab, m, dafl_writer_bytes(&body));
    dafl_writer_drop(&body);
    w->end_follows = true;
}

static void change_end(walk *w, lab_letter *m)
{
    dafl_writer body = {0};
    dafl_digest ctx2;
    dafl_end_msg end;

    if (dafl_get_end_msg(&end, m->envelope.body) != DAFL_OK ||
        !context_of(w, m->from, m->envelope.slot, &ctx2))
        return;
    if (w->upload == POISON) {
        *(uint32_t *)lab_list_add(&w->poisoned, sizeof(uint32_t)) =
            m->envelope.slot;
        end.dig = w->end_dig;
    }
    if (w->upload == OTHER_END)
        end.dig.b[walk_below(w, 32)] ^= (uint8_t)walk_between(w, 1, 255);
    lab_sign_end(w->lab, m->from, &ctx2, &end);
    dafl_put_end(&body, &end);
    lab_letter_reseal(w->lab, m, dafl_writer_bytes(&body));
    dafl_writer_drop(&body);
    w->end_follows = false;
    dafl_members_remove(&w->lies_of_uploads, m->from);
    w->report->ops[WALK_BAD_UPLOAD]++;
}

static void change(walk *w, lab_letter *m)
{
    bool uploads = dafl_members_has(&w->lies_of_uploads, m->from);

    if (m->envelope.type == DAFL_MSG_REVEAL &&
        dafl_members_has(&w->lies_of_shares, m->from))
        change_shares(w, m);
    else if (m->envelope.type == DAFL_MSG_UPLOAD && uploads)
        change_chunk(w, m);
    else if (m->envelope.type == DAFL_MSG_END && uploads && w->end_follows)
        change_end(w, m);
}

/* ---- the wire ---- */

/* One message is lost, or comes later than those behind it. */
static bool is_held(walk *w, const lab_letter *m)
{
    if (!w->hold || (m->from != w->hold_client && m->to != w->hold_client))
        return false;
    w->hold = false;
    if (!w->hold_for_good)
        lab_post(w->lab, m->from, m->to, (dafl_bytes){m->bytes, m->len},
                 w->hold_time);
    w->report->ops[w->hold_for_good ? WALK_DROP : WALK_REORDER]++;
    return true;
}

bool walk_intercept(lab *l, lab_letter *m, void *ctx)
{
    walk *w = ctx;

    liar_see(&w->liar, m);
    if (m->from != lab_server_index(l))
        change(w, m);
    else if (!walk_lie_meet(w, m))
        return false;
    liar_number(&w->liar, m);
    return !is_held(w, m);
}

/* ---- operations ---- */

static void plan_hold(walk *w, bool for_good)
{
    w->hold = true;
    w->hold_for_good = for_good;
    w->hold_client = walk_peer(w);
    w->hold_time = walk_between(w, 5, 600);
}

static void drop(walk *w)
{
    uint16_t u = walk_peer(w);

    if (walk_below(w, 2) == 0) {
        plan_hold(w, true);
        return;
    }
    lab_disconnect(w->lab, u);
    /* Without a key holder the server would wait for ever. */
    w->back_at[u] = walk_below(w, 16) == 0 && u < WALK_CLIENTS
                        ? LAB_NEVER
                        : lab_now(w->lab) + walk_between(w, 1, 30000);
    w->report->ops[WALK_DROP]++;
}

static void late(walk *w)
{
    lab_stall(w->lab, walk_peer(w),
              walk_below(w, 2) == 0 ? walk_between(w, 50, 2000)
                                    : walk_between(w, 2000, 45000));
    w->report->ops[WALK_LATE]++;
}

static void restart(walk *w, uint16_t party)
{
    uint64_t time = walk_below(w, 2) == 0 ? walk_between(w, 1, 30)
                                          : walk_between(w, 30, 20000);

    if (walk_below(w, 2) == 0)
        lab_crash_after(w->lab, party,
                        lab_effects(w->lab, party) + walk_between(w, 1, 30));
    else
        lab_crash(w->lab, party, time);
}

static void restart_client(walk *w)
{
    uint16_t u = walk_client(w);

    restart(w, u);
    /* It may have to upload again: for another cast? */
    if (walk_below(w, 3) == 0)
        walk_lie_plan_cast(w, u);
    w->report->ops[WALK_RESTART_CLIENT]++;
}

static void restart_server(walk *w)
{
    if (w->report->sealed && walk_below(w, 2) == 0) {
        restart(w, lab_holder_index(w->lab));
        w->report->holder_restarts++;
        return;
    }
    restart(w, lab_server_index(w->lab));
    w->report->ops[WALK_RESTART_SERVER]++;
}

/* A colluder's vector of the slot once more, signed again. */
static bool upload_again(walk *w)
{
    uint16_t u = walk_colluder(w);
    const lab_seen *upload, *end;
    size_t at = 0;

    upload = lab_find(w->lab, &at, LAB_SENT, u, LAB_ANYBODY, DAFL_MSG_UPLOAD,
                      w->liar.slot);
    end = lab_find(w->lab, &at, LAB_SENT, u, LAB_ANYBODY, DAFL_MSG_END,
                   w->liar.slot);
    if (upload == NULL || end == NULL)
        return false;
    liar_say(&w->liar, u, DAFL_MSG_UPLOAD, upload->slot, upload->envelope.body,
             5);
    liar_say(&w->liar, u, DAFL_MSG_END, end->slot, end->envelope.body, 6);
    return true;
}

/* Any message that was ever sent: as it was, or, where the attacker has the
 * key, signed again. */
static bool send_again(walk *w)
{
    uint16_t server = lab_server_index(w->lab);
    const lab_seen *seen, *m;
    size_t n = lab_transcript(w->lab, &seen);
    dafl_members to;

    if (n == 0)
        return false;
    /* Rather a late one. */
    m = &seen[walk_below(w, 2) == 0 || n < 200 ? walk_below(w, n)
                                               : n - 1 - walk_below(w, 200)];
    if (m->bytes.ptr == NULL || m->type == 0)
        return false;
    if (walk_below(w, 2) == 0) {
        lab_post(w->lab, m->from, m->to, m->bytes, walk_between(w, 1, 300));
    } else if (m->from == server) {
        to = lab_members(w->lab, (uint64_t)1 << m->to);
        liar_tell(&w->liar, &to, (dafl_msg_type)m->type, m->slot,
                  m->envelope.body, walk_between(w, 1, 300));
    } else if (dafl_members_has(&w->colluders, m->from)) {
        liar_say(&w->liar, m->from, (dafl_msg_type)m->type, m->slot,
                 m->envelope.body, walk_between(w, 1, 300));
    } else {
        return false;
    }
    return true;
}

static void replay(walk *w)
{
    bool done = false;

    if (walk_below(w, 3) == 0) {
        walk_lie_plan(w, true);
        return;
    }
    if (dafl_members_count(&w->colluders) > 0 && walk_below(w, 3) == 0)
        done = upload_again(w);
    for (size_t i = 0; i < 3 && !done; i++)
        done = send_again(w);
    w->report->ops[WALK_REPLAY] += done;
}

static void jump(walk *w)
{
    lab_clock_jump(w->lab, walk_below(w, 2) == 0 ? DAY : -DAY);
    w->report->ops[WALK_CLOCK]++;
}

static void operate(walk *w)
{
    bool collusion = dafl_members_count(&w->colluders) > 0;

    switch ((walk_op)walk_below(w, WALK_OPS)) {
    case WALK_DROP:
        drop(w);
        break;
    case WALK_LATE:
        late(w);
        break;
    case WALK_RESTART_CLIENT:
        restart_client(w);
        break;
    case WALK_RESTART_SERVER:
        restart_server(w);
        break;
    case WALK_REPLAY:
        replay(w);
        break;
    case WALK_REORDER:
        plan_hold(w, false);
        break;
    case WALK_BAD_SHARE:
        if (collusion)
            dafl_members_add(&w->lies_of_shares, walk_colluder(w));
        break;
    case WALK_BAD_UPLOAD:
        if (collusion)
            dafl_members_add(&w->lies_of_uploads, walk_colluder(w));
        break;
    case WALK_CLOCK:
        jump(w);
        break;
    case WALK_EQUIVOCATE:
    case WALK_OPS:
        walk_lie_plan(w, false);
        break;
    }
}

/* A clock that was set back is put right, lest the server wait for a day. */
static void mend_clock(walk *w)
{
    uint64_t now = lab_now(w->lab), deadline = lab_deadline(w->lab);

    if (deadline == LAB_NEVER || deadline < now + 10 * MINUTE)
        w->stuck_at = 0;
    else if (w->stuck_at == 0)
        w->stuck_at = now;
    else if (now > w->stuck_at + MINUTE)
        lab_clock_jump(w->lab, DAY);
}

void walk_trouble(walk *w)
{
    for (uint16_t u = 0; u < WALK_CLIENTS + 2; u++)
        if (w->back_at[u] <= lab_now(w->lab)) {
            w->back_at[u] = LAB_NEVER;
            lab_reconnect(w->lab, u);
        }
    mend_clock(w);
    walk_lie_tick(w);
    if (w->left > 0 && walk_below(w, w->spacing) == 0) {
        w->left--;
        operate(w);
    }
}
