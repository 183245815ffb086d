/* SPDX-License-Identifier: Apache-2.0 */
/* Parties, links and time. */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/machines.h"

fm_party *fm_server(fm_world *w)
{
    return &w->parties[w->rules->k];
}

uint16_t fm_peers(const fm_world *w)
{
    return (uint16_t)(w->rules->k + w->rules->sealed);
}

uint16_t fm_parties(const fm_world *w)
{
    return (uint16_t)(fm_peers(w) + 1);
}

uint16_t fm_peer(const fm_world *w, uint16_t link)
{
    return link < w->rules->k ? link : (uint16_t)(link + 1);
}

/* ---- links ---- */

static void mail_drop(fm_mail *mail)
{
    free(mail->ptr);
    *mail = (fm_mail){0};
}

static fm_mail take_first(fm_link *l)
{
    fm_mail first = l->mails[0];

    l->n--;
    memmove(l->mails, l->mails + 1, l->n * sizeof l->mails[0]);
    return first;
}

void fm_post(fm_world *w, fm_way way, uint16_t client, fm_mail mail)
{
    fm_link *l = &w->links[way][client];

    if (l->n == FM_MAILS)
        fm_drop(w, way, client);
    l->mails[l->n++] = mail;
}

void fm_post_first(fm_world *w, fm_way way, uint16_t client, fm_mail mail)
{
    fm_link *l = &w->links[way][client];

    fm_post(w, way, client, mail);
    memmove(l->mails + 1, l->mails, (l->n - 1) * sizeof l->mails[0]);
    l->mails[0] = mail;
}

/* What is gone can come again. */
static void remember(fm_world *w, fm_mail mail)
{
    fm_mail *place = &w->past[w->n_past++ % FM_PAST];

    mail_drop(place);
    *place = mail;
}

void fm_drop(fm_world *w, fm_way way, uint16_t client)
{
    if (w->links[way][client].n > 0)
        remember(w, take_first(&w->links[way][client]));
}

/* ---- effects ---- */

static void keep_copy(fm_mail *mail, const dafl_effect *e)
{
    mail_drop(mail);
    mail->ptr = fm_copy(e->bytes.ptr, e->bytes.len);
    mail->len = e->bytes.len;
}

/* What a lying server has of a client. */
static void overhear(fm_heard *h, const dafl_effect *e)
{
    dafl_envelope m;
    dafl_end_msg end;

    if (dafl_get_envelope(&m, e->bytes, UINT32_MAX) != DAFL_FAULT_NONE)
        return;
    if (m.type == DAFL_MSG_ENROLL)
        keep_copy(&h->enroll, e);
    if (m.type == DAFL_MSG_SHARES)
        keep_copy(&h->shares, e);
    if (m.type == DAFL_MSG_SETUP_ACK)
        keep_copy(&h->ack, e);
    if (m.type == DAFL_MSG_END && dafl_get_end_msg(&end, m.body) == DAFL_OK) {
        h->dig = end.dig;
        h->end_sig = end.sig;
        h->end_slot = m.slot;
    }
    if (m.type == DAFL_MSG_SIGN && dafl_get_sign(&h->sig, m.body) == DAFL_OK)
        h->sign_slot = m.slot;
}

static void sent(fm_world *w, fm_party *p, const dafl_effect *e)
{
    fm_claim_sent(w, p, e);
    if (p->index < w->rules->k) {
        fm_mail mail = {.ptr = fm_copy(e->bytes.ptr, e->bytes.len),
                        .len = e->bytes.len};
        overhear(&w->heard[p->index], e);
        fm_post(w, FM_UP, p->index, mail);
        return;
    }
    if (p->index > w->rules->k || e->to_holder) {
        if (!w->rules->sealed)
            fm_broken("there is a key holder", p->index, e->slot);
        fm_post(w, p->server == NULL ? FM_UP : FM_DOWN, w->rules->k,
                (fm_mail){.ptr = fm_copy(e->bytes.ptr, e->bytes.len),
                          .len = e->bytes.len});
        return;
    }
    if (e->to.n != w->rules->k)
        fm_broken("the server sends to clients", e->to.n, e->slot);
    for (uint16_t u = 0; u < w->rules->k; u++)
        if (dafl_members_has(&e->to, u))
            fm_post(w, FM_DOWN, u,
                    (fm_mail){.ptr = fm_copy(e->bytes.ptr, e->bytes.len),
                              .len = e->bytes.len});
}

static void carry_out(fm_world *w, fm_party *p, const dafl_effect *e)
{
    switch (e->kind) {
    case DAFL_DO_SEND:
        sent(w, p, e);
        break;
    case DAFL_DO_APPEND:
        fm_blocks_add(&p->disk.journal, p->disk.journal.n, e->bytes, 0);
        break;
    case DAFL_DO_KEEP:
        fm_vault_keep(&p->disk.vault, e->slot, e->bytes);
        break;
    case DAFL_DO_ERASE:
        fm_vault_erase(&p->disk.vault, e->slot);
        break;
    case DAFL_DO_TELL:
        fm_trace("party %u: %s %s, slot %u", p->index,
                 dafl_event_name(e->event.kind),
                 dafl_fault_name(e->event.fault), e->event.slot);
        if (dafl_event_name(e->event.kind)[0] == '?' ||
            (unsigned)e->event.fault >= DAFL_FAULT_COUNT)
            fm_broken("events are known", p->index, e->slot);
        if (p->server != NULL && e->event.kind == DAFL_EVENT_CAST)
            w->ctx2 = e->event.digest;
        if (!p->fed && (e->event.kind == DAFL_EVENT_CAST ||
                        e->event.kind == DAFL_EVENT_SIGN))
            fm_claim_cohort(w, p, &e->event);
        break;
    }
}

static bool is_up(const fm_party *p)
{
    return p->client != NULL || p->server != NULL || p->holder != NULL;
}

void fm_halt(fm_party *p)
{
    dafl_client_free(&p->client);
    dafl_server_free(&p->server);
    dafl_holder_free(&p->holder);
    p->crash_in = SIZE_MAX;
}

/* A machine has worked: judge what it returned and do what it asks, as far as
 * it lives. */
static void work(fm_world *w, fm_party *p, dafl_err err)
{
    dafl_effect e;

    if (err != DAFL_OK) {
        bool known = p->client != NULL && err == DAFL_ERR_CRYPTO;
        if (!known && !p->fed)
            fm_broken("errors are those of the header", p->index,
                      (unsigned)err);
        p->crash_in = 0;
    }
    while (p->crash_in > 0 &&
           (p->client != NULL   ? dafl_client_next(p->client, &e)
            : p->holder != NULL ? dafl_holder_next(p->holder, &e)
                                : dafl_server_next(p->server, &e))) {
        carry_out(w, p, &e);
        if (p->crash_in != SIZE_MAX)
            p->crash_in--;
    }
    if (p->crash_in == 0) {
        fm_halt(p);
        /* One that fails with a strange disk would do so again. */
        if (!p->stay_down && (err == DAFL_OK || !p->fed))
            fm_boot(w, p);
    }
}

/* ---- machines ---- */

static dafl_err make(fm_world *w, fm_party *p)
{
    const fm_rules *r = w->rules;
    dafl_client_params cp = {.roster = &r->roster,
                             .config = &r->config,
                             .self = &r->ids[p->index],
                             .floor = r->floor,
                             .method = &fm_client_method,
                             .method_self = &p->site};
    dafl_server_params sp = {.roster = &r->roster,
                             .config = &r->config,
                             .self = &r->ids[p->index],
                             .method = &fm_server_method,
                             .method_self = &p->centre,
                             .run = w->run};
    dafl_holder_params hp = {.roster = &r->roster,
                             .config = &r->config,
                             .self = &r->ids[p->index],
                             .floor = r->floor};

    p->site = (fm_site){.world = w, .client = p->index};
    p->centre = (fm_centre){.world = w};
    return p->index < r->k    ? dafl_client_new(&p->client, &cp, NULL, NULL)
           : p->index == r->k ? dafl_server_new(&p->server, &sp, NULL, NULL)
                              : dafl_holder_new(&p->holder, &hp, NULL, NULL);
}

static dafl_err recall(const fm_party *p)
{
    for (size_t i = 0; i < p->disk.journal.n; i++) {
        const fm_block *b = &p->disk.journal.items[i];
        dafl_bytes record = {b->ptr, b->len};
        DAFL_TRY(p->client != NULL   ? dafl_client_recall(p->client, record)
                 : p->holder != NULL ? dafl_holder_recall(p->holder, record)
                                     : dafl_server_recall(p->server, record));
    }
    for (size_t i = 0; i < p->disk.vault.n && p->server == NULL; i++) {
        const fm_block *b = &p->disk.vault.items[i];
        dafl_bytes kept = {b->ptr, b->len};
        DAFL_TRY(p->client != NULL
                     ? dafl_client_recall_secret(p->client, b->slot, kept)
                     : dafl_holder_recall_answer(p->holder, b->slot, kept));
    }
    return DAFL_OK;
}

void fm_boot(fm_world *w, fm_party *p)
{
    dafl_err err;

    if (is_up(p))
        return;
    if (make(w, p) != DAFL_OK)
        fm_broken("a party can be made", p->index, 0);
    fm_trace("party %u starts", p->index);
    p->crash_in = SIZE_MAX;
    p->stay_down = false;
    w->recalling = true;
    err = recall(p);
    w->recalling = false;
    if (err != DAFL_OK) {
        if (!p->fed || err != DAFL_ERR_INPUT)
            fm_broken("a disk is understood or E_INPUT", p->index,
                      (unsigned)err);
        fm_halt(p);
        return;
    }
    work(w, p,
         p->client != NULL   ? dafl_client_start(p->client)
         : p->holder != NULL ? dafl_holder_start(p->holder)
                             : dafl_server_start(p->server, w->now));
}

/* ---- what can happen ---- */

/* Number and sign it anew: by whoever is named as its sender. */
static void reseal(const fm_world *w, fm_mail *mail, const dafl_envelope *m,
                   uint64_t seq)
{
    dafl_envelope e = *m;
    fm_mail again;

    e.seq = seq;
    again = fm_seal(w, &e);
    again.forged = mail->forged;
    again.flip = mail->flip;
    mail_drop(mail);
    *mail = again;
}

static void received(fm_world *w, fm_party *p, dafl_bytes bytes)
{
    work(w, p,
         p->client != NULL   ? dafl_client_receive(p->client, bytes)
         : p->holder != NULL ? dafl_holder_receive(p->holder, bytes)
                             : dafl_server_receive(p->server, bytes, w->now));
}

static void hand_over(fm_world *w, fm_way way, uint16_t client, fm_mail mail)
{
    fm_party *p = way == FM_UP ? fm_server(w) : &w->parties[fm_peer(w, client)];
    fm_link *l = &w->links[way][client];
    dafl_envelope m;

    if (!is_up(p) || dafl_get_envelope(&m, (dafl_bytes){mail.ptr, mail.len},
                                       UINT32_MAX) != DAFL_FAULT_NONE) {
        remember(w, mail);
        return;
    }
    l->hostile |= mail.forged;
    if (mail.forged || (l->hostile && m.seq <= l->seq)) {
        reseal(w, &mail, &m, l->seq + 1);
        if (dafl_get_envelope(&m, (dafl_bytes){mail.ptr, mail.len},
                              UINT32_MAX) != DAFL_FAULT_NONE)
            fm_broken("what is sealed can be opened", client, 0);
    }
    if (mail.flip > 0) {
        mail.ptr[(mail.flip - 1) % mail.len] ^= (uint8_t)(1 << mail.flip % 8);
    } else {
        if (m.seq > l->seq)
            l->seq = m.seq;
        if (way == FM_DOWN && m.type == DAFL_MSG_CONF && client < w->rules->k)
            fm_claim_conf(w, client, &m);
        if (way == FM_UP && mail.forged &&
            (m.type == DAFL_MSG_UPLOAD || m.type == DAFL_MSG_END ||
             m.type == DAFL_MSG_OPENED))
            w->tainted = true;
    }
    fm_trace("to %u from %u: %s%s, slot %u", p->index, m.sender,
             dafl_msg_name(m.type), mail.forged ? " (forged)" : "", m.slot);
    received(w, p, (dafl_bytes){mail.ptr, mail.len});
    remember(w, mail);
}

void fm_deliver(fm_world *w, fm_way way, uint16_t client, uint16_t to)
{
    if (w->links[way][client].n == 0 || w->deliveries == 0)
        return;
    w->deliveries--;
    hand_over(w, way, to, take_first(&w->links[way][client]));
}

static uint8_t type_of(const fm_mail *mail)
{
    return mail->len > 4 ? mail->ptr[4] : 0; /* behind the magic */
}

bool fm_pump(fm_world *w, size_t n, uint8_t hold)
{
    unsigned links = 2u * fm_peers(w), idle = 0;
    bool any = false;

    while (n > 0 && idle < links && w->deliveries > 0) {
        fm_way way = w->turn % links < fm_peers(w) ? FM_UP : FM_DOWN;
        uint16_t client = (uint16_t)(w->turn % fm_peers(w));
        const fm_link *l = &w->links[way][client];
        w->turn++;
        if (l->n == 0 || type_of(&l->mails[0]) == hold) {
            idle++;
            continue;
        }
        fm_deliver(w, way, client, client);
        any = true;
        idle = 0;
        n--;
    }
    return any;
}

void fm_tick(fm_world *w, uint64_t now)
{
    fm_party *s = fm_server(w);

    w->now = now;
    if (is_up(s))
        work(w, s, dafl_server_tick(s->server, now));
}

void fm_lost(fm_world *w, uint16_t client)
{
    fm_party *s = fm_server(w);

    if (is_up(s))
        work(w, s, dafl_server_lost(s->server, client, w->now));
}

void fm_hello(fm_world *w, uint16_t client)
{
    fm_party *p = &w->parties[fm_peer(w, client)];

    if (is_up(p))
        work(w, p,
             p->client != NULL ? dafl_client_hello(p->client)
                               : dafl_holder_hello(p->holder));
}

void fm_another_run(fm_world *w)
{
    fm_party *s = fm_server(w);

    fm_halt(s);
    fm_disk_drop(&s->disk);
    s->fed = false;
    s->seq = 0;
    w->run.b[0]++;
    fm_boot(w, s);
}

/* Attempts at all questions, each with as many phases that time out. */
#define ROUNDS_MAX 150

static bool holder_is_out(const fm_world *w)
{
    const fm_party *p = &w->parties[w->rules->k + 1];

    return w->rules->sealed &&
           (p->holder == NULL ||
            dafl_holder_where(p->holder) == DAFL_HOLDER_OUT);
}

static bool somebody_is_out(const fm_world *w)
{
    for (uint16_t u = 0; u < w->rules->k; u++) {
        const dafl_client *c = w->parties[u].client;
        if (c == NULL || dafl_client_where(c) == DAFL_CLIENT_OUT)
            return true;
    }
    return false;
}

void fm_finish(fm_world *w)
{
    fm_party *s = fm_server(w);
    uint64_t deadline;

    for (unsigned i = 0; i < ROUNDS_MAX && w->deliveries > 0; i++) {
        for (uint16_t u = 0; u < fm_parties(w); u++)
            fm_boot(w, &w->parties[u]);
        if (!is_up(s)) /* its disk is not its own */
            return;
        if (holder_is_out(w))
            return; /* somebody told it that the run is over */
        while (fm_pump(w, SIZE_MAX, 0))
            ;
        if (!is_up(s) || dafl_server_where(s->server) >= DAFL_SERVER_DONE)
            return;
        deadline = dafl_server_deadline(s->server);
        if (deadline == UINT64_MAX && !w->fed)
            fm_broken("the server waits for something", 0,
                      dafl_server_slot(s->server));
        for (uint16_t u = 0; u < fm_peers(w); u++)
            fm_hello(w, u); /* nothing was heard for a while */
        while (fm_pump(w, SIZE_MAX, 0))
            ;
        if (deadline > w->now && deadline != UINT64_MAX)
            w->now = deadline;
        fm_tick(w, w->now);
    }
    if (dafl_server_awaits(s->server) && somebody_is_out(w))
        return; /* without end */
    if (w->deliveries > 0 && !w->fed)
        fm_broken("a run comes to its end", 0, dafl_server_slot(s->server));
}

/* ---- worlds ---- */

static void begin(fm_world *w, unsigned scenario)
{
    memset(w, 0, sizeof *w);
    w->rules = fm_rules_of(scenario);
    w->run = w->rules->run;
    w->now = 1000;
    w->deliveries = 320;
    for (uint16_t i = 0; i < fm_parties(w); i++) {
        w->parties[i].index = i;
        w->parties[i].crash_in = SIZE_MAX;
    }
}

/* The disks when the first slot has been opened, and nobody knows it yet. */
static const fm_disk *disks_after_setup(unsigned scenario)
{
    static fm_disk disks[FM_SCENARIOS][FM_PEERS_MAX + 1];
    static bool made[FM_SCENARIOS];
    fm_disk *of = disks[scenario];
    fm_world w;

    if (made[scenario])
        return of;
    made[scenario] = true;
    begin(&w, scenario);
    for (uint16_t i = 0; i < fm_parties(&w); i++)
        fm_boot(&w, &w.parties[i]);
    while (fm_pump(&w, SIZE_MAX, DAFL_MSG_MODEL))
        ;
    for (uint16_t i = 0; i < fm_parties(&w); i++)
        fm_disk_copy(&of[i], &w.parties[i].disk);
    fm_close(&w);
    return of;
}

void fm_prepare(unsigned scenario)
{
    (void)disks_after_setup(scenario);
}

void fm_open(fm_world *w, unsigned scenario, bool set_up)
{
    const fm_disk *disks = disks_after_setup(scenario);

    begin(w, scenario);
    for (uint16_t i = 0; set_up && i < fm_parties(w); i++)
        fm_disk_copy(&w->parties[i].disk, &disks[i]);
    for (uint16_t i = 0; i < fm_parties(w); i++)
        fm_boot(w, &w->parties[i]);
}

void fm_close(fm_world *w)
{
    for (uint16_t i = 0; i < fm_parties(w); i++) {
        fm_halt(&w->parties[i]);
        fm_disk_drop(&w->parties[i].disk);
    }
    for (uint16_t u = 0; u < fm_peers(w); u++)
        for (size_t way = 0; way < 2; way++)
            for (size_t i = 0; i < w->links[way][u].n; i++)
                mail_drop(&w->links[way][u].mails[i]);
    for (uint16_t u = 0; u < w->rules->k; u++) {
        mail_drop(&w->heard[u].enroll);
        mail_drop(&w->heard[u].shares);
        mail_drop(&w->heard[u].ack);
    }
    for (size_t i = 0; i < FM_PAST; i++)
        mail_drop(&w->past[i]);
    fm_claims_drop(w);
}
