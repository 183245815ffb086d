/* SPDX-License-Identifier: Apache-2.0 */
/* The mail between a link's threads, with a transport that is threads of this
 * program: the thread sanitizer does not see what libzmq's do. Everybody waits
 * for its bell alone, so one that does not ring is found out. */
#include "tests/check.h"

#include <poll.h>
#include <pthread.h>

#include "agents/link_mail.h"

#define PEERS 3
#define MESSAGES 20000
#define PATIENCE_MS 20000

typedef struct {
    link_mail *mail;
    atomic_bool stop;
    atomic_uint wrong, wakes;

    /* from the link to the transport */
    pthread_mutex_t lock;
    pthread_cond_t more;
    link_ticket *queue[(MESSAGES + 1) * PEERS * 2];
    size_t put, taken;
    bool last;

    /* the link's own: what it has still to tell the owner */
    uint32_t seen[MESSAGES];
    size_t n_seen, n_told;
} world;

static void hand_over(world *w, link_ticket *t)
{
    (void)pthread_mutex_lock(&w->lock);
    if (t != NULL)
        w->queue[w->put++] = t;
    else
        w->last = true;
    (void)pthread_cond_broadcast(&w->more);
    (void)pthread_mutex_unlock(&w->lock);
}

static uint32_t number_of(dafl_bytes message)
{
    uint32_t n = UINT32_MAX;

    if (message.len >= sizeof n)
        memcpy(&n, message.ptr, sizeof n);
    return n;
}

/* The number, and then its low byte again and again. */
static bool is_whole(dafl_bytes message)
{
    uint32_t n = number_of(message);

    for (size_t i = sizeof n; i < message.len; i++)
        if (message.ptr[i] != (uint8_t)n)
            return false;
    return message.len == 1 || message.len >= sizeof n;
}

static dafl_bytes write_message(uint8_t *bytes, uint32_t n, size_t len)
{
    memset(bytes, (int)(n & 255), len);
    memcpy(bytes, &n, sizeof n);
    return (dafl_bytes){bytes, len};
}

static void *transport_main(void *arg)
{
    world *w = arg;

    (void)pthread_mutex_lock(&w->lock);
    for (;;) {
        link_ticket *t;
        bool wake;
        while (w->taken == w->put && !w->last)
            (void)pthread_cond_wait(&w->more, &w->lock);
        if (w->taken == w->put)
            break;
        t = w->queue[w->taken++];
        wake = w->taken % 64 == 0;
        (void)pthread_mutex_unlock(&w->lock);
        w->wrong += !is_whole((dafl_bytes){t->parcel->bytes, t->parcel->len}) ||
                    t->to >= PEERS ||
                    t->account != mail_account(w->mail, t->to);
        mail_release(t->parcel->bytes, t);
        if (wake) {
            w->wakes++;
            mail_wake(w->mail);
        }
        (void)pthread_mutex_lock(&w->lock);
    }
    (void)pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void take_parcels(world *w)
{
    static const uint8_t ping = 'p';

    for (link_parcel *p = mail_take_all(w->mail), *next; p != NULL; p = next) {
        uint16_t n = p->n;
        uint32_t number = number_of((dafl_bytes){p->bytes, p->len});
        next = p->next;
        if (w->n_seen > 0)
            w->wrong += number <= w->seen[w->n_seen - 1];
        w->seen[w->n_seen++] = number;
        for (uint16_t i = 0; i < n; i++)
            hand_over(w, &p->tickets[i]);
        if (number % 16 == 0) {
            p = mail_parcel(w->mail, (uint16_t)(number % PEERS),
                            (dafl_bytes){&ping, 1});
            hand_over(w, &p->tickets[0]);
        }
    }
    for (uint16_t i = 0; i < PEERS; i++)
        mail_account(w->mail, i)->slow = false; /* it has come back */
}

static void *link_main(void *arg)
{
    world *w = arg;
    struct pollfd bell = {.fd = mail_bell(w->mail), .events = POLLIN};

    while (!w->stop) {
        take_parcels(w);
        while (w->n_told < w->n_seen && !mail_full(w->mail)) {
            uint8_t bytes[200];
            uint32_t number = w->seen[w->n_told++];
            mail_put(w->mail,
                     &(link_event){.kind = LINK_MESSAGE,
                                   .peer = (uint16_t)(number % PEERS),
                                   .bytes = write_message(bytes, number,
                                                          4 + number % 196)});
        }
        if (poll(&bell, 1, PATIENCE_MS) != 1) {
            w->wrong++;
            break;
        }
    }
    mail_break(w->mail, DAFL_ERR_SYS);
    take_parcels(w);
    hand_over(w, NULL);
    return NULL;
}

/* Whatever came is in order, and of those before it that all peers could take
 * none is missing. */
static void hear(const bool *sure, uint32_t *next, const link_event *e)
{
    uint32_t number = number_of(e->bytes);

    assert_true(is_whole(e->bytes));
    assert_true(number < MESSAGES);
    for (; *next < number; (*next)++)
        assert_false(sure[*next]);
    assert_int_equal(*next, number);
    (*next)++;
}

/* Until all have come that must. */
static void hear_until(world *w, const bool *sure, uint32_t *next, uint32_t end)
{
    static unsigned nothing;
    link_event e;

    while (end > *next) {
        assert_ok(mail_next(w->mail, &e, PATIENCE_MS));
        if (e.kind == LINK_MESSAGE)
            hear(sure, next, &e);
        else /* woken, or it waited in vain */
            assert_true(++nothing <= w->wakes);
    }
}

static void threads_lose_and_mix_up_nothing(void **state)
{
    static world w;
    static bool sure[MESSAGES];
    static uint8_t bytes[2000];
    const link_caps caps = {.in = 4 << 10, .out = 24 << 10};
    uint32_t next = 0, end = 0, refused = 0;
    pthread_t link, transport[2];
    link_event e;
    dafl_err err = DAFL_OK;

    (void)state;
    check_seed();
    assert_ok(mail_new(&w.mail, PEERS, &caps));
    for (uint16_t i = 0; i < PEERS; i++)
        mail_account(w.mail, i)->up = true;
    (void)pthread_mutex_init(&w.lock, NULL);
    (void)pthread_cond_init(&w.more, NULL);
    assert_int_equal(pthread_create(&link, NULL, link_main, &w), 0);
    for (int i = 0; i < 2; i++) /* one of libzmq, and the link itself */
        assert_int_equal(
            pthread_create(&transport[i], NULL, transport_main, &w), 0);

    for (uint32_t number = 0; number < MESSAGES; number++) {
        uint16_t to[PEERS] = {0, 1, 2};
        size_t first = random_size(0, PEERS - 1);
        err = mail_send(
            w.mail, to + first, random_size(1, PEERS - first),
            write_message(bytes, number, random_size(4, sizeof bytes)));
        assert_true(err == DAFL_OK || err == DAFL_ERR_PEER);
        sure[number] = err == DAFL_OK;
        if (sure[number])
            end = number + 1;
        else
            refused++; /* by some or by all */
        if (!sure[number] || random_size(0, 40) == 0)
            hear_until(&w, sure, &next, end);
        if (!sure[number])
            (void)poll(NULL, 0, 1); /* until there is room again */
    }
    hear_until(&w, sure, &next, end);
    w.stop = true;
    mail_ring(w.mail);
    (void)pthread_join(link, NULL);
    for (int i = 0; i < 2; i++)
        (void)pthread_join(transport[i], NULL);

    do { /* what came before the end comes first */
        err = mail_next(w.mail, &e, 0);
        if (err == DAFL_OK && e.kind == LINK_MESSAGE)
            hear(sure, &next, &e);
    } while (err == DAFL_OK);
    assert_int_equal(err, DAFL_ERR_SYS);
    print_message("%u refused, %u wakes\n", refused, (unsigned)w.wakes);
    assert_true(refused > 0 && refused < MESSAGES);
    assert_int_equal(w.wrong, 0);
    assert_int_equal(w.taken, w.put);
    for (uint16_t i = 0; i < PEERS; i++)
        assert_int_equal(mail_account(w.mail, i)->queued, 0);
    mail_free(&w.mail);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_lose_and_mix_up_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
