/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that go away at a chosen moment of a slot, and come back. */
#include "tests/lab/inside.h"

/* What ends a client's presence in each phase. */
static const struct {
    const char *name;
    lab_how how;
    dafl_msg_type type;
} moments[LAB_PHASES] = {
    [LAB_BEFORE_MODEL] = {"before MODEL", LAB_HOW_ARRIVING, DAFL_MSG_MODEL},
    [LAB_BEFORE_READY] = {"before READY", LAB_HOW_SENT, DAFL_MSG_READY},
    [LAB_AFTER_READY] = {"after READY", LAB_HOW_ARRIVED, DAFL_MSG_READY},
    [LAB_AT_CAST] = {"at CAST", LAB_HOW_SENT, DAFL_MSG_UPLOAD},
    [LAB_MID_UPLOAD] = {"in mid-upload", LAB_HOW_ARRIVED, DAFL_MSG_UPLOAD},
    [LAB_AFTER_END] = {"after END", LAB_HOW_ARRIVED, DAFL_MSG_END},
    [LAB_AT_SURV] = {"at SURV", LAB_HOW_SENT, DAFL_MSG_SIGN},
    [LAB_AFTER_SIGN] = {"after SIGN", LAB_HOW_ARRIVED, DAFL_MSG_SIGN},
    [LAB_AFTER_REVEAL] = {"after REVEAL", LAB_HOW_ARRIVED, DAFL_MSG_REVEAL},
};

static void plan(lab *l, const lab_leaving *leaving)
{
    if (leaving->client >= l->scenario.k || leaving->phase >= LAB_PHASES)
        lab_die("lab_leave: client %u, phase %d", (unsigned)leaving->client,
                (int)leaving->phase);
    *(lab_leaving *)lab_list_add(&l->leavings, sizeof *leaving) = *leaving;
}

void lab_leave(lab *l, uint16_t client, uint32_t question, lab_phase phase,
               lab_back back)
{
    plan(l, &(lab_leaving){.client = client,
                           .question = question,
                           .phase = phase,
                           .back = back});
}

void lab_leave_all(lab *l, const dafl_members *who, uint32_t question,
                   lab_phase phase, lab_back back)
{
    for (uint16_t u = 0; u < who->n; u++)
        if (dafl_members_has(who, u))
            lab_leave(l, u, question, phase, back);
}

void lab_leave_crashing(lab *l, uint16_t client, uint32_t question,
                        lab_phase phase, lab_back back)
{
    plan(l, &(lab_leaving){.client = client,
                           .question = question,
                           .phase = phase,
                           .back = back,
                           .crash = true});
}

static void go(lab *l, lab_party *client, const lab_leaving *leaving,
               uint32_t slot)
{
    uint64_t back = leaving->back == LAB_SOON ? l->now + 1 : LAB_NEVER;

    lab_say(l, "client %u leaves %s", (unsigned)client->index,
            moments[leaving->phase].name);
    client->away_slot = leaving->back == LAB_NEXT_SLOT ? slot : 0;
    if (leaving->crash) {
        lab_party_crash(l, client, back);
        return;
    }
    lab_net_break(l, client);
    client->kept_away = leaving->back != LAB_SOON;
    client->up_at = back;
}

bool lab_leave_now(lab *l, lab_party *client, lab_how how,
                   const dafl_envelope *m)
{
    lab_leaving *leavings = l->leavings.items;

    for (size_t i = 0; i < l->leavings.n; i++) {
        lab_leaving *w = &leavings[i];
        if (w->done || w->client != client->index ||
            moments[w->phase].how != how || moments[w->phase].type != m->type ||
            lab_slot_question(l, m->slot) != w->question)
            continue;
        w->done = true;
        go(l, client, w, m->slot);
        return true;
    }
    return false;
}

void lab_leave_over(lab *l, const dafl_envelope *m)
{
    for (uint16_t u = 0; u < l->scenario.k; u++) {
        lab_party *client = lab_party_of(l, u);
        bool over =
            client->away_slot != 0 &&
            ((m->type == DAFL_MSG_RESULT && m->slot == client->away_slot) ||
             (m->type == DAFL_MSG_MODEL && m->slot > client->away_slot));
        if (!over)
            continue;
        client->away_slot = 0;
        client->kept_away = false;
        if (client->client == NULL)
            client->restart_at = l->now + 1;
        else
            client->up_at = l->now + 1;
    }
}
