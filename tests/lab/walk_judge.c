/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a slot, and a run, gave what it may. */
#include "tests/lab/leak_inside.h"
#include "tests/lab/walk_inside.h"

#include "tests/lab/school.h"
#include "tests/same_model.h"

/* What honest clients and the server told of a slot. */
typedef struct {
    bool cast, split; /* some, and of different cohorts or models */
    dafl_digest ctx2;
    bool confirmed, opened, invalid; /* invalid: the sum was wrong */
    dafl_digest stmt;                /* that was confirmed, */
    dafl_members u3, signers;        /* of whom, signed by whom */
    dafl_members opened_over;
} fate;

static bool is_poisoned(const walk *w, uint32_t slot)
{
    const uint32_t *slots = w->poisoned.items;

    for (size_t i = 0; i < w->poisoned.n; i++)
        if (slots[i] == slot)
            return true;
    return false;
}

static void hear_server(fate *f, const dafl_event *e)
{
    if (e->kind != DAFL_EVENT_RESULT)
        return;
    f->opened |= e->fault == DAFL_FAULT_NONE;
    f->invalid |= e->fault == DAFL_E_SUM_INVALID;
    if (e->fault == DAFL_FAULT_NONE)
        f->opened_over = e->set;
}

/* S2. */
static void hear_conf(walk *w, fate *f, const dafl_event *e)
{
    if (f->confirmed && !dafl_digest_equal(&f->stmt, &e->digest))
        walk_broken(w, "S2: two statements are confirmed in slot %u",
                    (unsigned)e->slot);
    f->confirmed = true;
    f->stmt = e->digest;
}

static void hear_cast(fate *f, const dafl_event *e)
{
    f->split |= f->cast && !dafl_digest_equal(&f->ctx2, &e->digest);
    f->cast = true;
    f->ctx2 = e->digest;
}

/* Who signed the statement that was confirmed, and what it says. S10. */
static void count_signers(walk *w, fate *f, uint32_t slot)
{
    dafl_digest first[WALK_CLIENTS];
    dafl_members any = lab_members(w->lab, 0);
    const lab_event *events;
    size_t n = lab_events(w->lab, &events);

    f->signers = any;
    for (size_t i = 0; i < n; i++) {
        const dafl_event *e = &events[i].event;
        uint16_t u = events[i].party;
        if (e->slot != slot || e->kind != DAFL_EVENT_SIGN ||
            u >= WALK_CLIENTS || dafl_members_has(&w->colluders, u))
            continue;
        if (!dafl_members_has(&any, u))
            first[u] = e->digest;
        else if (!dafl_digest_equal(&first[u], &e->digest))
            walk_broken(w, "S10: client %u signs two statements in slot %u",
                        (unsigned)u, (unsigned)slot);
        dafl_members_add(&any, u);
        if (f->confirmed && dafl_digest_equal(&f->stmt, &e->digest)) {
            dafl_members_add(&f->signers, u);
            f->u3 = e->set;
        }
    }
}

static fate fate_of(walk *w, uint32_t slot)
{
    const lab_event *events;
    size_t n = lab_events(w->lab, &events);
    fate f = {.cast = false};

    for (size_t i = 0; i < n; i++) {
        const dafl_event *e = &events[i].event;
        if (e->slot != slot)
            continue;
        if (events[i].party == lab_server_index(w->lab))
            hear_server(&f, e);
        else if (dafl_members_has(&w->colluders, events[i].party))
            continue;
        else if (e->kind == DAFL_EVENT_CONF && e->fault == DAFL_FAULT_NONE)
            hear_conf(w, &f, e);
        else if (e->kind == DAFL_EVENT_CAST)
            hear_cast(&f, e);
    }
    count_signers(w, &f, slot);
    return f;
}

/* The cohort that a tied question must have: that of the two before it. */
static void check_ties(walk *w, const fate *f, uint32_t slot)
{
    uint32_t question = lab_slot_question(w->lab, slot);
    dafl_model_msg model;
    size_t at = 0;
    const lab_seen *m =
        lab_find(w->lab, &at, LAB_SENT, lab_server_index(w->lab), LAB_ANYBODY,
                 DAFL_MSG_MODEL, slot);

    if (w->report->deep || m == NULL ||
        dafl_get_model(&model, m->envelope.body) != DAFL_OK || model.rank == 0)
        return;
    for (uint32_t i = 1; i <= 2; i++) {
        const lab_sum *tie = lab_sum_of(w->lab, question - i);
        if (tie == NULL || !dafl_members_equal(&tie->cohort, &f->u3))
            walk_broken(w, "L7: slot %u is confirmed for another cohort",
                        (unsigned)slot);
    }
}

/* S2, S5, S7, S9: what was confirmed could be. */
static void check_statement(walk *w, const fate *f, uint32_t slot)
{
    size_t signers =
        dafl_members_count(&f->signers) + dafl_members_count(&w->colluders);
    dafl_members honest = dafl_members_minus(&f->u3, &w->colluders);

    if (signers < leak_setup_of(w->leak, slot)->t + 1u)
        walk_broken(w, "S9: slot %u is confirmed by %zu", (unsigned)slot,
                    signers);
    else if (!dafl_roster_whole_cells(lab_roster(w->lab), &f->u3))
        walk_broken(w, "S7: slot %u is confirmed for a split cell",
                    (unsigned)slot);
    else if (dafl_members_count(&f->u3) < lab_config(w->lab)->policy.m)
        walk_broken(w, "S5: slot %u is confirmed for %zu clients",
                    (unsigned)slot, dafl_members_count(&f->u3));
    else if (dafl_members_count(&honest) < 2)
        walk_broken(w, "S5: slot %u is confirmed for one honest client",
                    (unsigned)slot);
    else
        check_ties(w, f, slot);
}

/* C2. */
static void check_leak(walk *w, const fate *f, uint32_t slot)
{
    size_t dim = leak_dim(w->leak, slot);
    bool sum = f->confirmed && dim == 1 && leak_is_sum(w->leak, slot, &f->u3);

    if (!leak_is_of_cells(w->leak, slot))
        walk_broken(w, "C3: slot %u gives more than sums of whole cells",
                    (unsigned)slot);
    else if (!f->confirmed && dim > 0)
        walk_broken(w, "C2: slot %u gives %zu sums without a statement",
                    (unsigned)slot, dim);
    else if (dim > 0 && !sum)
        walk_broken(w, "C2: slot %u gives %zu sums, not its own",
                    (unsigned)slot, dim);
    else if (f->opened && !sum)
        walk_broken(w, "C2: slot %u is opened, and %zu sums can be computed",
                    (unsigned)slot, dim);
    else if (!w->report->deep && !w->report->sealed &&
             !leak_is_real(w->leak, slot))
        walk_broken(w, "C2: the numbers of slot %u are others", (unsigned)slot);
}

static void check_slot(walk *w, uint32_t slot, bool over)
{
    fate f = fate_of(w, slot);

    if (f.confirmed)
        check_statement(w, &f, slot);
    if (f.opened &&
        (!f.confirmed || !dafl_members_equal(&f.opened_over, &f.u3)))
        walk_broken(w, "S2: slot %u is opened for others than confirmed",
                    (unsigned)slot);
    if (f.invalid && !is_poisoned(w, slot))
        walk_broken(w, "I1: the sum of slot %u is wrong", (unsigned)slot);
    check_leak(w, &f, slot);
    if (!over)
        return;
    w->report->slots++;
    w->report->opened += f.opened;
    w->report->torn += f.confirmed && !f.opened;
    w->report->refused += !f.confirmed;
    w->report->split += f.split;
}

/* R6. Of vectors that the lab does not know: plain numbers are small, so the
 * last byte of each word would be 0 or 255. */
static void check_masked(walk *w, size_t i)
{
    const leak_upload *u = leak_upload_at(w->leak, i);
    size_t bytes = lab_config(w->lab)->contract.w / 8, small = 0;

    for (size_t at = bytes - 1; at < u->len; at += bytes)
        small += u->bytes[at] == 0 || u->bytes[at] == 255;
    if (leak_masks_of(w->leak, i) != LEAK_MASKED || small == u->len / bytes)
        walk_broken(w, "R6: a vector of client %u in slot %u is not masked",
                    (unsigned)u->client, (unsigned)u->slot);
}

/* The model is that of the cohorts used. */
static void check_model(walk *w)
{
    dafl_model *plain = school_plain(school.plots, school.k);

    if (!same_model(school.model, plain))
        walk_broken(w, "I1: the model is not that of its cohorts");
    dafl_model_free(&plain);
}

void walk_judge(walk *w, bool over)
{
    uint32_t newest = w->liar.slot;

    for (; w->judged + 1 < newest; w->judged++)
        if (lab_slot_question(w->lab, w->judged + 1) != UINT32_MAX)
            check_slot(w, w->judged + 1, false);
    if (!over)
        return;
    for (uint32_t slot = 1; slot <= newest; slot++)
        if (lab_slot_question(w->lab, slot) != UINT32_MAX)
            check_slot(w, slot, true);
    for (size_t i = 0; i < leak_uploads(w->leak); i++)
        check_masked(w, i);
    if (!leak_run_is_of_cells(w->leak))
        walk_broken(w, "C3: the run gives more than sums of whole cells");
    if (w->report->deep && w->report->outcome == LAB_DONE && w->poisoned.n == 0)
        check_model(w);
}
