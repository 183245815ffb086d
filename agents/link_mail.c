/* SPDX-License-Identifier: Apache-2.0 */
#include "agents/link_mail.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* What a queued message costs beside its bytes: a peer that takes nothing must
 * not be able to collect small ones without end. */
#define OVERHEAD 256

typedef struct item {
    struct item *next;
    link_event event;
    uint8_t bytes[];
} item;

struct link_mail {
    size_t in_cap, out_cap;
    pthread_mutex_t lock;
    item *first, *last, *taken; /* in */
    size_t in_bytes;
    link_parcel *head, *tail; /* out */
    bool waiting;             /* the link waits for room */
    dafl_err broken;
    int owner_bell, link_bell;
    atomic_bool woken;
    uint16_t n;
    link_account accounts[];
};

dafl_err mail_new(link_mail **out, uint16_t n_peers, const link_caps *caps)
{
    link_mail *m = calloc(1, sizeof *m + n_peers * sizeof m->accounts[0]);

    if (m == NULL)
        return DAFL_ERR_NOMEM;
    m->in_cap = caps->in;
    m->out_cap = caps->out;
    m->n = n_peers;
    (void)pthread_mutex_init(&m->lock, NULL);
    m->owner_bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    m->link_bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (m->owner_bell < 0 || m->link_bell < 0) {
        mail_free(&m);
        return DAFL_ERR_SYS;
    }
    *out = m;
    return DAFL_OK;
}

void mail_free(link_mail **mail)
{
    link_mail *m = *mail;

    if (m == NULL)
        return;
    for (link_parcel *p = mail_take_all(m), *next; p != NULL; p = next) {
        next = p->next;
        free(p);
    }
    free(m->taken);
    for (item *i = m->first, *next; i != NULL; i = next) {
        next = i->next;
        free(i);
    }
    if (m->owner_bell >= 0)
        (void)close(m->owner_bell);
    if (m->link_bell >= 0)
        (void)close(m->link_bell);
    (void)pthread_mutex_destroy(&m->lock);
    free(m);
    *mail = NULL;
}

/* A bell that cannot be rung is ringing already. */
static void ring(int bell)
{
    const uint64_t one = 1;
    ssize_t rc = write(bell, &one, sizeof one);

    (void)rc;
}

static void silence(int bell)
{
    uint64_t n;
    ssize_t rc = read(bell, &n, sizeof n);

    (void)rc;
}

/* ---- out ---- */

static link_parcel *wrap(dafl_bytes message, size_t n)
{
    link_parcel *p = malloc(sizeof *p + n * sizeof p->tickets[0] + message.len);

    if (p == NULL)
        return NULL;
    p->next = NULL;
    p->bytes = (uint8_t *)&p->tickets[n];
    p->len = message.len;
    p->n = 0;
    memcpy(p->bytes, message.ptr, message.len);
    return p;
}

static void address(link_parcel *p, link_mail *m, uint16_t to)
{
    p->tickets[p->n++] = (link_ticket){p, &m->accounts[to], to};
}

dafl_err mail_send(link_mail *m, const uint16_t *to, size_t n,
                   dafl_bytes message)
{
    size_t cost = message.len + OVERHEAD;
    bool first;
    link_parcel *p;

    if (message.len < 2 || message.len > m->out_cap)
        return DAFL_ERR_ARG;
    p = wrap(message, n);
    if (p == NULL)
        return DAFL_ERR_NOMEM;
    for (size_t i = 0; i < n; i++) {
        link_account *a = to[i] < m->n ? &m->accounts[to[i]] : NULL;
        if (a == NULL || !a->up || a->slow)
            continue;
        if (atomic_fetch_add(&a->queued, cost) + cost > m->out_cap + OVERHEAD) {
            atomic_fetch_sub(&a->queued, cost);
            a->slow = true;
        } else {
            address(p, m, to[i]);
        }
    }
    if (p->n == 0) {
        free(p);
        ring(m->link_bell);
        return DAFL_ERR_PEER;
    }
    n -= p->n;
    p->left = p->n;
    (void)pthread_mutex_lock(&m->lock);
    first = m->tail == NULL; /* behind others the bell has been rung */
    if (first)
        m->head = p;
    else
        m->tail->next = p;
    m->tail = p;
    (void)pthread_mutex_unlock(&m->lock);
    if (first || n > 0)
        ring(m->link_bell);
    return n == 0 ? DAFL_OK : DAFL_ERR_PEER;
}

link_parcel *mail_take_all(link_mail *m)
{
    link_parcel *p;

    silence(m->link_bell);
    (void)pthread_mutex_lock(&m->lock);
    p = m->head;
    m->head = m->tail = NULL;
    (void)pthread_mutex_unlock(&m->lock);
    return p;
}

link_parcel *mail_parcel(link_mail *m, uint16_t to, dafl_bytes message)
{
    link_parcel *p = wrap(message, 1);

    if (p == NULL)
        return NULL;
    address(p, m, to);
    p->left = 1;
    atomic_fetch_add(&m->accounts[to].queued, message.len + OVERHEAD);
    return p;
}

void mail_release(void *bytes, void *ticket)
{
    link_ticket *t = ticket;
    link_parcel *p = t->parcel;

    (void)bytes;
    atomic_fetch_sub(&t->account->queued, p->len + OVERHEAD);
    if (atomic_fetch_sub(&p->left, 1) == 1)
        free(p);
}

link_account *mail_account(link_mail *m, uint16_t peer)
{
    return &m->accounts[peer];
}

int mail_bell(const link_mail *m)
{
    return m->link_bell;
}

void mail_ring(link_mail *m)
{
    ring(m->link_bell);
}

/* ---- in ---- */

static size_t cost_of(const item *i)
{
    return sizeof *i + i->event.bytes.len;
}

void mail_put(link_mail *m, const link_event *event)
{
    item *i = malloc(sizeof *i + event->bytes.len);
    bool first;

    if (i == NULL) {
        mail_break(m, DAFL_ERR_NOMEM);
        return;
    }
    i->next = NULL;
    i->event = *event;
    i->event.bytes.ptr = i->bytes;
    if (event->bytes.len > 0)
        memcpy(i->bytes, event->bytes.ptr, event->bytes.len);
    (void)pthread_mutex_lock(&m->lock);
    first = m->last == NULL;
    if (first)
        m->first = i;
    else
        m->last->next = i;
    m->last = i;
    m->in_bytes += cost_of(i);
    (void)pthread_mutex_unlock(&m->lock);
    if (first)
        ring(m->owner_bell);
}

bool mail_full(link_mail *m)
{
    bool full;

    (void)pthread_mutex_lock(&m->lock);
    full = m->in_bytes >= m->in_cap;
    m->waiting = m->waiting || full;
    (void)pthread_mutex_unlock(&m->lock);
    return full;
}

void mail_break(link_mail *m, dafl_err err)
{
    (void)pthread_mutex_lock(&m->lock);
    if (m->broken == DAFL_OK)
        m->broken = err;
    (void)pthread_mutex_unlock(&m->lock);
    ring(m->owner_bell);
}

bool mail_broken(link_mail *m)
{
    bool broken;

    (void)pthread_mutex_lock(&m->lock);
    broken = m->broken != DAFL_OK;
    (void)pthread_mutex_unlock(&m->lock);
    return broken;
}

/* Take the first event, if there is one; what came before an error comes
 * before it here too. */
static dafl_err take(link_mail *m, bool *found)
{
    dafl_err err = DAFL_OK;
    bool room = false;

    free(m->taken);
    (void)pthread_mutex_lock(&m->lock);
    m->taken = m->first;
    if (m->first != NULL) {
        m->first = m->first->next;
        if (m->first == NULL)
            m->last = NULL;
        m->in_bytes -= cost_of(m->taken);
        room = m->waiting && m->in_bytes <= m->in_cap / 2;
        if (room)
            m->waiting = false;
    } else {
        err = m->broken;
    }
    (void)pthread_mutex_unlock(&m->lock);
    if (room)
        ring(m->link_bell);
    *found = m->taken != NULL;
    return err;
}

static int64_t now_ms(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

dafl_err mail_next(link_mail *m, link_event *out, int timeout_ms)
{
    struct pollfd bell = {.fd = m->owner_bell, .events = POLLIN};
    int64_t end = now_ms() + timeout_ms, left = timeout_ms;
    bool found = false;

    memset(out, 0, sizeof *out);
    DAFL_TRY(take(m, &found));
    for (;;) {
        if (!found) {
            silence(m->owner_bell); /* then look: what comes now rings again */
            DAFL_TRY(take(m, &found));
        }
        if (found)
            *out = m->taken->event;
        if (found || atomic_exchange(&m->woken, false))
            return DAFL_OK;
        if (timeout_ms >= 0) {
            left = end - now_ms();
            if (left <= 0)
                return DAFL_OK;
        }
        if (poll(&bell, 1, (int)left) < 0 && errno != EINTR)
            return DAFL_ERR_SYS;
    }
}

void mail_wake(link_mail *m)
{
    int saved = errno;

    m->woken = true;
    ring(m->owner_bell);
    errno = saved;
}
