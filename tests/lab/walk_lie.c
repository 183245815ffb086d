/* SPDX-License-Identifier: Apache-2.0 */
/* The server's side of the wire tells some clients something else. */
#include "tests/lab/walk_inside.h"

#include <string.h>

void walk_lie_plan(walk *w, bool replay)
{
    static const dafl_msg_type starts[] = {DAFL_MSG_MODEL, DAFL_MSG_CAST,
                                           DAFL_MSG_CAST,  DAFL_MSG_SURV,
                                           DAFL_MSG_SURV,  DAFL_MSG_SURV};
    walk_lie *lie = &w->lie;

    if (lie->on)
        return;
    *lie = (walk_lie){.on = true,
                      .start = starts[walk_below(w, 6)],
                      .after = walk_below(w, 3) == 0,
                      .shuts = walk_below(w, 2) == 0};
    if (replay) { /* the slot is opened again */
        lie->start = DAFL_MSG_MODEL;
        lie->after = true;
    } else if (walk_below(w, 4) == 0) {
        lie->start = DAFL_MSG_CAST;
        lie->apart = true;
        lie->after = lie->shuts = false;
    }
}

void walk_lie_plan_cast(walk *w, uint16_t client)
{
    if (w->lie.on)
        return;
    w->lie = (walk_lie){.on = true,
                        .start = DAFL_MSG_CAST,
                        .chosen = true,
                        .fooled = lab_members(w->lab, (uint64_t)1 << client)};
}

static dafl_members cell_of(const walk *w, uint16_t client)
{
    const dafl_roster *roster = lab_roster(w->lab);

    return dafl_roster_cell(roster, roster->parties[client].cell);
}

/* Everybody, a cell, any, or one. */
static dafl_members draw_fooled(walk *w)
{
    switch (walk_below(w, 4)) {
    case 0:
        return lab_everybody(w->lab);
    case 1:
        return cell_of(w, walk_client(w));
    case 2:
        return lab_members(w->lab, walk_below(w, 1u << WALK_CLIENTS));
    default:
        return lab_members(w->lab, (uint64_t)1 << walk_client(w));
    }
}

/* The cells that any of the fooled are in. */
static dafl_members their_cells(const walk *w)
{
    dafl_members all = lab_members(w->lab, 0);

    for (uint16_t u = 0; u < WALK_CLIENTS; u++) {
        dafl_members cell = cell_of(w, u);
        dafl_members some = dafl_members_both(&cell, &w->lie.fooled);
        if (dafl_members_count(&some) > 0)
            dafl_members_add(&all, u);
    }
    return all;
}

/* A cohort like another one: the same, without a cell, without a client, only
 * one cell or only those of the fooled. */
static dafl_members draw_cohort(walk *w, const dafl_members *like)
{
    uint16_t client = walk_client(w);
    dafl_members cell = cell_of(w, client), theirs = their_cells(w),
                 out = *like;

    switch (walk_below(w, 5)) {
    case 0:
        break;
    case 1:
        out = dafl_members_minus(like, &cell);
        break;
    case 2:
        if (dafl_members_has(&out, client))
            dafl_members_remove(&out, client);
        break;
    case 3:
        out = dafl_members_both(like, &cell);
        break;
    default:
        out = dafl_members_both(like, &theirs);
        break;
    }
    return out;
}

/* A cell or two; the machine's cohort is not doubted by the others. */
static void set_apart(walk *w)
{
    walk_lie *lie = &w->lie;
    dafl_members all = lab_everybody(w->lab);
    uint16_t one = walk_client(w), other = walk_client(w);

    lie->fooled =
        lab_members(w->lab, (uint64_t)1 << one | (uint64_t)1 << other);
    lie->fooled = their_cells(w);
    lie->led = dafl_members_minus(&all, &lie->fooled);
    lie->a = lie->u3 = w->liar.a;
    lie->at = lab_now(w->lab) + walk_between(w, 100, 300);
    lie->next = DAFL_MSG_SURV;
}

static void begin(walk *w, uint32_t slot)
{
    walk_lie *lie = &w->lie;
    bool again = lie->after && lie->start == DAFL_MSG_MODEL;
    dafl_members all = lab_everybody(w->lab);

    lie->begun = true;
    lie->slot = slot;
    if (!lie->chosen)
        lie->fooled = draw_fooled(w);
    lie->a = w->liar.cast ? w->liar.a : all;
    if (lie->start != DAFL_MSG_SURV)
        lie->a = draw_cohort(w, &lie->a);
    lie->u3 = draw_cohort(w, w->liar.surveyed ? &w->liar.u3 : &lie->a);
    lie->at = lab_now(w->lab) + walk_between(w, 20, 300);
    lie->next = lie->after                     ? lie->start
                : lie->start == DAFL_MSG_MODEL ? DAFL_MSG_CAST
                : lie->start == DAFL_MSG_CAST  ? DAFL_MSG_SURV
                                               : DAFL_MSG_CONF;
    lie->led = lie->fooled;
    if (lie->apart)
        set_apart(w);
    w->report->ops[again ? WALK_REPLAY : WALK_EQUIVOCATE]++;
}

/* One bit of the last segment. */
static void change_model(walk *w, lab_letter *m)
{
    dafl_writer body = {0};

    dafl_put_fixed(&body, m->envelope.body.ptr, m->envelope.body.len);
    body.ptr[body.len - 1 - walk_below(w, 8)] ^=
        (uint8_t)(1u << walk_below(w, 8));
    lab_letter_reseal(w->lab, m, dafl_writer_bytes(&body));
    dafl_writer_drop(&body);
}

static void replace(walk *w, lab_letter *m)
{
    const walk_lie *lie = &w->lie;
    dafl_members own = cell_of(w, m->to);
    dafl_members to = lab_members(w->lab, (uint64_t)1 << m->to);
    dafl_writer body = {0};

    if (lie->start == DAFL_MSG_MODEL) {
        change_model(w, m);
        return;
    }
    if (lie->apart)
        dafl_put_cast(&body, &own);
    else if (lie->start == DAFL_MSG_CAST)
        dafl_put_cast(&body, &lie->a);
    else
        liar_put_surv(&w->liar, &body, &to, &lie->a, &lie->u3);
    lab_letter_reseal(w->lab, m, dafl_writer_bytes(&body));
    dafl_writer_drop(&body);
}

bool walk_lie_meet(walk *w, lab_letter *m)
{
    walk_lie *lie = &w->lie;
    unsigned type = m->envelope.type;

    if (!lie->on || m->envelope.slot != w->liar.slot)
        return true;
    if (!lie->begun && type == lie->start &&
        (!lie->chosen || dafl_members_has(&lie->fooled, m->to)))
        begin(w, m->envelope.slot);
    if (!lie->begun || m->envelope.slot != lie->slot ||
        !dafl_members_has(&lie->fooled, m->to))
        return true;
    if (type == lie->start && !lie->after)
        replace(w, m);
    else if (lie->shuts && type > lie->start && type <= DAFL_MSG_CONF)
        return false;
    return true;
}

static void tell_model(walk *w)
{
    for (uint16_t u = 0; u < WALK_CLIENTS; u++) {
        dafl_members one = lab_members(w->lab, (uint64_t)1 << u);
        if (dafl_members_has(&w->lie.fooled, u) &&
            dafl_members_has(&w->liar.modeled, u))
            liar_tell(&w->liar, &one, DAFL_MSG_MODEL, w->lie.slot,
                      dafl_writer_bytes(&w->liar.model[u]), 1);
    }
}

/* The colluders sign whatever the first of those was told; whoever else
 * signed something may be put beside them. */
static void tell_conf(walk *w)
{
    walk_lie *lie = &w->lie;
    dafl_members signers = lie->led;
    uint16_t like = 0;

    while (like < WALK_CLIENTS && !(dafl_members_has(&lie->led, like) &&
                                    dafl_members_has(&w->liar.ready, like)))
        like++;
    for (uint16_t u = 0; u < WALK_CLIENTS; u++)
        if (dafl_members_has(&w->colluders, u) && like < WALK_CLIENTS) {
            liar_sign_as(&w->liar, u, like, &lie->a, &lie->u3);
            dafl_members_add(&signers, u);
        }
    if (walk_below(w, 4) == 0)
        signers = lab_everybody(w->lab);
    liar_conf(&w->liar, &lie->led, &signers, 1);
}

void walk_lie_tick(walk *w)
{
    walk_lie *lie = &w->lie;

    if (!lie->on || !lie->begun)
        return;
    if (lie->slot != w->liar.slot) {
        lie->on = false;
        return;
    }
    if (lab_now(w->lab) < lie->at)
        return;
    lie->at = lab_now(w->lab) + walk_between(w, 30, 300);
    switch (lie->next) {
    case DAFL_MSG_MODEL:
        tell_model(w);
        lie->next = DAFL_MSG_CAST;
        break;
    case DAFL_MSG_CAST:
        liar_cast(&w->liar, &lie->led, &lie->a, 1);
        lie->next = DAFL_MSG_SURV;
        break;
    case DAFL_MSG_SURV:
        liar_surv(&w->liar, &lie->led, &lie->a, &lie->u3, 1);
        lie->next = DAFL_MSG_CONF;
        break;
    default:
        tell_conf(w);
        lie->on = false;
        break;
    }
}
