/* SPDX-License-Identifier: Apache-2.0 */
/* Peers of a link that want its memory or its time: size bombs, floods, clients
 * that take nothing. The ids are those of the property list. Linked as
 * test_link_flood_weak, it shows what one of the defences is there for. */
#include "tests/agents/link_world.h"

#include "agents/link_weaken.h"

#ifndef DAFL_WEAKEN
/* ---- T8: size bombs ---- */

static void T8_a_frame_beyond_the_cap_is_refused_unread(void **state)
{
    /* A greeting for CURVE, then the head of a frame of 2^63 - 1 or 2^31 bytes:
     * from somebody who need not be in the roster. */
    static const uint8_t sizes[2][8] = {
        {127, 255, 255, 255, 255, 255, 255, 255}, {0, 0, 0, 0, 128, 0, 0, 0}};
    link_caps caps = quick_caps(), wide = quick_caps();
    dafl_link *s, *c, *other;
    size_t before, len = 32 << 20;
    uint8_t *bytes = calloc(1, len);

    (void)state;
    assert_non_null(bytes);
    caps.handshake_ms = 8000;
    s = serve(ANYWHERE, &caps);
    other = joined(s, 1, &caps);
    before = resident();
    for (int i = 0; i < 2; i++) {
        uint8_t greeting[64 + 9] = {255, [8] = 1, 127, 3,   0,
                                    'C', 'U',     'R', 'V', 'E'};
        int fd;
        greeting[64] = 6;
        memcpy(greeting + 65, sizes[i], 8);
        fd = say_tcp(link_endpoint(s), greeting, sizeof greeting);
        assert_true(
            tcp_ends(fd, 2000)); /* long before the handshake must end */
        (void)close(fd);
    }
    assert_true(resident() < before + (8 << 20) + MEMORY_SLACK);

    /* From a client: the connection ends, and nothing of it is seen. */
    wide.out = len;
    c = joined(s, 0, &wide);
    before = resident();
    assert_ok(link_send(c, 0, (dafl_bytes){bytes, caps.message + 1}));
    expect_lost(s, 0, LINK_CLOSED);
    expect_lost(c, 0, LINK_CLOSED);
    (void)expect(c, LINK_UP, 0);
    (void)expect(s, LINK_UP, 0);
    assert_ok(link_send(c, 0, (dafl_bytes){bytes, len}));
    expect_lost(s, 0, LINK_CLOSED);
    /* The sender's own copies: its parcel and what libzmq makes of it. */
    assert_true(resident() < before + 3 * len + (8 << 20) + MEMORY_SLACK);
    talk(s, other, 1);
    link_free(&c);
    link_free(&other);
    link_free(&s);
    free(bytes);
}
#endif

/* One message in very many parts, which libzmq collects without any bound. The
 * most memory that a server needs while client 0 sends one of `total` bytes. */
static size_t memory_for_many_parts(size_t total, bool *lost)
{
    static const char part[16 << 10];
    link_caps caps = quick_caps();
    size_t before, most = 0;
    int64_t end = clock_ms() + PATIENCE_MS;
    child k;
    dafl_link *s;

    if (child_wait(&k)) {
        raw_peer p =
            raw_curve(&client_ids[0], &server_id.public, NULL, k.endpoint);
        raw_say(&p, "hello");
        for (size_t sent = 0; sent < total; sent += sizeof part)
            (void)zmq_send(p.socket, part, sizeof part, ZMQ_SNDMORE);
        raw_say(&p, "end");
        child_stay(&k, -1);
    }
    caps.lost_ms = 2 * PATIENCE_MS; /* it is not silent, it is not heard */
    s = serve(ANYWHERE, &caps);
    before = resident();
    child_go(&k, link_endpoint(s));
    (void)expect(s, LINK_UP, 0);
    expect_text(s, 0, "hello");
    *lost = false;
    while (!*lost && link_count(s).malformed == 0 && clock_ms() < end) {
        link_event e = next(s, 10);
        size_t now = resident();
        most = now > before + most ? now - before : most;
        assert_true(e.kind != LINK_MESSAGE);
        *lost = e.kind == LINK_LOST && e.reason == LINK_TOO_MUCH;
    }
    child_end(&k);
    link_free(&s);
    return most;
}

#define PARTS_TOTAL ((size_t)128 << 20)

#ifndef DAFL_WEAKEN
static void T8_a_message_of_very_many_parts_is_cut_off(void **state)
{
    bool lost;

    (void)state;
    /* What arrives between two looks, 100 ms apart, comes on top. */
    assert_true(memory_for_many_parts(PARTS_TOTAL, &lost) <
                PARTS_TOTAL / 2 + MEMORY_SLACK);
    assert_true(lost);
}

/* ---- M10, R5: floods ---- */

/* Let clients 1 and 2 talk with the server, in the same thread; messages of
 * client 0 are counted. */
static bool others_get_on(dafl_link *s, dafl_link *c[2], int rounds,
                          size_t *flood, bool *lost, size_t *most)
{
    int64_t end = clock_ms() + PATIENCE_MS;
    int sent[2] = {0, 0}, back[2] = {0, 0};
    size_t now = resident();

    *most = now > *most ? now : *most;
    while (back[0] < rounds || back[1] < rounds) {
        link_event e;
        for (int i = 0; i < 2; i++) {
            if (sent[i] == back[i] && sent[i] < rounds) {
                send_text(c[i], 0, "round");
                sent[i]++;
            }
            assert_ok(link_next(c[i], &e, 0));
            assert_true(e.kind != LINK_LOST);
            back[i] += e.kind == LINK_MESSAGE;
        }
        for (int n = 0; n < 100; n++) {
            assert_ok(link_next(s, &e, n == 0));
            if (e.kind == LINK_NOTHING)
                break;
            *lost = *lost || (e.kind == LINK_LOST && e.peer == 0);
            assert_false(e.kind == LINK_LOST && e.peer != 0);
            *flood += e.kind == LINK_MESSAGE && e.peer == 0;
            if (e.kind == LINK_MESSAGE && e.peer != 0)
                assert_ok(link_send(s, e.peer, e.bytes));
        }
        if (clock_ms() > end)
            return false;
    }
    return true;
}

static void M10_a_flood_of_small_frames_stops_nobody(void **state)
{
    enum { FRAMES = 100000 };
    static const uint8_t frame[250];
    link_caps caps = quick_caps();
    size_t flood = 0, most = 0, before;
    bool lost = false;
    child k;
    dafl_link *s, *c[2];

    (void)state;
    if (child_wait(&k)) {
        raw_peer p =
            raw_curve(&client_ids[0], &server_id.public, NULL, k.endpoint);
        raw_set(&p, ZMQ_SNDTIMEO, -1);
        for (int i = 0; i < FRAMES; i++) {
            (void)zmq_send(p.socket, frame, sizeof frame, 0);
            raw_say(&p, "p"); /* and as many pings */
        }
        child_stay(&k, -1);
    }
    s = serve(ANYWHERE, &caps);
    c[0] = joined(s, 1, &caps);
    c[1] = joined(s, 2, &caps);
    before = most = resident();
    child_go(&k, link_endpoint(s));
    /* First with a server that does not look: the flood has to wait. */
    (void)poll(NULL, 0, 1500);
    most = resident();
    while (flood < FRAMES && !lost)
        assert_true(others_get_on(s, c, 20, &flood, &lost, &most));
    assert_false(lost);
    assert_int_equal(flood, FRAMES);
    assert_true(most < before + (8 << 20) + MEMORY_SLACK);
    child_end(&k);
    link_free(&c[0]);
    link_free(&c[1]);
    link_free(&s);
}

static void R5_a_client_that_never_reads_is_cut_off(void **state)
{
    static const uint8_t bytes[32 << 10];
    link_caps caps = quick_caps();
    size_t flood = 0, most = 0, before, sent = 0;
    bool lost = false;
    int64_t longest = 0;
    child k;
    dafl_link *s, *c[2];

    (void)state;
    if (child_wait(&k)) {
        raw_peer p = raw_new();
        raw_set(&p, ZMQ_RCVHWM, 1);
        raw_set(&p, ZMQ_RCVBUF, 4096);
        (void)zmq_setsockopt(p.socket, ZMQ_CURVE_SERVERKEY,
                             server_id.public.curve_pk.b, 32);
        (void)zmq_setsockopt(p.socket, ZMQ_CURVE_PUBLICKEY,
                             client_ids[0].public.curve_pk.b, 32);
        (void)zmq_setsockopt(p.socket, ZMQ_CURVE_SECRETKEY,
                             client_ids[0].curve_sk.b, 32);
        (void)zmq_connect(p.socket, k.endpoint);
        for (;;) { /* it says that it is alive */
            raw_say(&p, "p");
            child_stay(&k, 100);
        }
    }
    s = serve(ANYWHERE, &caps);
    c[0] = joined(s, 1, &caps);
    c[1] = joined(s, 2, &caps);
    before = resident();
    child_go(&k, link_endpoint(s));
    (void)expect(s, LINK_UP, 0);
    for (; sent < 2000; sent++) {
        int64_t began = clock_ms();
        dafl_err err = link_send(s, 0, (dafl_bytes){bytes, sizeof bytes});
        longest = clock_ms() - began > longest ? clock_ms() - began : longest;
        if (err != DAFL_OK)
            break;
        if (sent % 10 == 0)
            (void)poll(NULL, 0, 1);
    }
    assert_true(sent < 2000); /* 64 MB */
    assert_true(longest < 500);
    expect_lost(s, 0, LINK_SLOW);
    assert_true(others_get_on(s, c, 100, &flood, &lost, &most));
    assert_true(most < before + (8 << 20) + MEMORY_SLACK);
    child_end(&k);
    link_free(&c[0]);
    link_free(&c[1]);
    link_free(&s);
}
#endif

#ifdef DAFL_WEAKEN
atomic_uint link_weakened;

static void T8_control_very_many_parts_fill_the_memory(void **state)
{
    bool lost;

    (void)state;
    link_weakened = LINK_WEAK_PARTS;
    assert_true(memory_for_many_parts(PARTS_TOTAL, &lost) >=
                PARTS_TOTAL / 8 * 7);
    assert_false(lost);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef DAFL_WEAKEN
        cmocka_unit_test(T8_control_very_many_parts_fill_the_memory),
#else
        cmocka_unit_test(T8_a_frame_beyond_the_cap_is_refused_unread),
        cmocka_unit_test(T8_a_message_of_very_many_parts_is_cut_off),
        cmocka_unit_test(M10_a_flood_of_small_frames_stops_nobody),
        cmocka_unit_test(R5_a_client_that_never_reads_is_cut_off),
#endif
    };

    return cmocka_run_group_tests(tests, make_world, NULL);
}
