/* SPDX-License-Identifier: Apache-2.0 */
/* Peers of a link that mean ill: strangers, downgrades, stolen routing ids.
 * The ids are those of the property list. Linked as test_link_hostile_weak,
 * with defences that can be switched off, it shows that the same attacks
 * succeed without them. */
#include "tests/agents/link_world.h"

#include "agents/link_weaken.h"

static const char canary[] = "canary 7f3a91c2e5d80b46";

/* ---- T1, M7: strangers ---- */

/* Whether a message of somebody who is not in the roster is delivered. */
static bool stranger_is_heard(dafl_link *s, uint16_t *as)
{
    raw_peer p =
        raw_curve(&stranger_id, &server_id.public, NULL, link_endpoint(s));
    int64_t end = clock_ms() + 600;
    bool heard = false;

    raw_say(&p, canary);
    while (!heard && clock_ms() < end) {
        link_event e = next(s, 50);
        heard = e.kind == LINK_MESSAGE;
        *as = e.peer;
    }
    raw_close(&p);
    return heard;
}

#ifndef DAFL_WEAKEN
static void T1_an_unknown_key_is_refused_by_name(void **state)
{
    link_caps caps = quick_caps();
    dafl_link *s = serve(ANYWHERE, &caps), *l = NULL;
    link_event e;
    char hex[65];
    uint16_t as;
    int told = 0;

    (void)state;
    for (size_t i = 0; i < 32; i++)
        (void)snprintf(hex + 2 * i, 3, "%02x",
                       stranger_id.public.curve_pk.b[i]);
    assert_false(stranger_is_heard(s, &as));
    e = expect_refusal(s, LINK_STRANGER);
    assert_non_null(strstr(e.who, "127.0.0.1"));
    assert_non_null(strstr(e.who, hex));
    assert_int_equal(link_count(s).unnamed, 0);

    /* The server's own key opens nothing either. And the one who is refused is
     * told, by its own link. */
    assert_ok(link_connect(&l, link_endpoint(s), &server_id, &server_id.public,
                           &caps, NULL));
    (void)expect_refusal(l, LINK_UNAUTHORISED);
    assert_int_equal(link_send(l, 0, text_bytes(canary)), DAFL_ERR_PEER);
    expect_nothing(s, 300);
    /* Over and over, and each told of once. */
    assert_true(link_count(s).refused > 2);
    for (size_t i = 0; i < n_refusals; i++)
        told += refusals[i].by == s;
    assert_int_equal(told, 2);
    link_free(&l);
    link_free(&s);
}

/* ---- T3: another server ---- */

static void T3_a_wrong_server_key_gets_no_handshake(void **state)
{
    link_caps caps = quick_caps();
    dafl_link *s = serve(ANYWHERE, &caps), *c = NULL;
    relay *r = relay_new(link_endpoint(s));
    raw_peer p, q;
    char text[64];

    (void)state;
    assert_ok(link_connect(&c, r->endpoint, &client_ids[0], &stranger_id.public,
                           &caps, NULL));
    (void)expect_refusal(s, LINK_OTHER_CURVE);
    (void)expect_refusal(c, LINK_HUNG_UP);
    assert_int_equal(link_send(c, 0, text_bytes(canary)), DAFL_ERR_PEER);
    link_free(&c);
    /* One that is less careful, and sends at once. */
    p = raw_curve(&client_ids[0], &stranger_id.public, NULL, r->endpoint);
    raw_say(&p, canary);
    expect_nothing(s, 300);
    raw_close(&p);
    assert_true(r->n > 64); /* the greetings at least */
    assert_false(relay_saw(r, canary));

    /* With the right key it arrives, and the line still does not show it. */
    c = join(0, r->endpoint, &caps);
    (void)expect(s, LINK_UP, 0);
    (void)expect(c, LINK_UP, 0);
    send_text(c, 0, canary);
    expect_text(s, 0, canary);
    assert_false(relay_saw(r, canary));
    link_free(&c);
    relay_free(r);
    link_free(&s);

    /* The relay sees what there is to see: two peers without CURVE. */
    p = raw_new();
    assert_int_equal(zmq_bind(p.socket, ANYWHERE), 0);
    assert_int_equal(zmq_getsockopt(p.socket, ZMQ_LAST_ENDPOINT, text,
                                    &(size_t){sizeof text}),
                     0);
    r = relay_new(text);
    q = raw_new();
    assert_int_equal(zmq_connect(q.socket, r->endpoint), 0);
    raw_say(&q, canary);
    assert_true(raw_hear(&p, text, 2000));
    assert_true(relay_saw(r, canary));
    raw_close(&q);
    raw_close(&p);
    relay_free(r);
}

/* ---- T4: downgrades, noise, silence ---- */

static void refused_as(dafl_link *s, int fd, link_reason reason)
{
    assert_true(tcp_ends(fd, 2500));
    (void)close(fd);
    (void)expect_refusal(s, reason);
}

static void T4_other_mechanisms_are_refused(void **state)
{
    static const char *const names[] = {"NULL", "PLAIN", "GSSAPI", "CURVY"};
    link_caps caps = quick_caps();
    dafl_link *s = serve(ANYWHERE, &caps), *c = joined(s, 0, &caps);
    uint64_t refused = 0;

    (void)state;
    /* By libzmq, which itself hangs up, perhaps first. */
    for (int plain = 0; plain < 2; plain++) {
        raw_peer p = raw_new();
        if (plain) {
            (void)zmq_setsockopt(p.socket, ZMQ_PLAIN_USERNAME, "site0", 5);
            (void)zmq_setsockopt(p.socket, ZMQ_PLAIN_PASSWORD, "site0", 5);
        }
        assert_int_equal(zmq_connect(p.socket, link_endpoint(s)), 0);
        raw_say(&p, canary);
        expect_refused(s, ++refused);
        raw_close(&p);
    }
    /* By one that insists. */
    for (size_t i = 0; i < COUNT(names); i++) {
        uint8_t greeting[64] = {255, [8] = 1, 127, 3};
        memcpy(greeting + 12, names[i], strlen(names[i]));
        refused_as(s, say_tcp(link_endpoint(s), greeting, sizeof greeting),
                   LINK_NO_CURVE);
        expect_refused(s, ++refused);
    }
    talk(s, c, 0);
    link_free(&c);
    link_free(&s);
}

static void T4_older_protocols_and_noise_are_refused(void **state)
{
    static const uint8_t zmtp1[] = {1, 0, 24, 0};
    static const uint8_t zmtp2[] = {255, 0, 0,   0, 0, 0, 0,
                                    0,   1, 127, 1, 5, 0, 0};
    static const char http[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    uint8_t noise[5000];
    link_caps caps = quick_caps();

    (void)state;
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (uint8_t)random_u64();
    noise[0] = 0; /* a byte of 255 would ask for more */
    for (int i = 0; i < 4; i++) {
        dafl_link *s = serve(ANYWHERE, &caps), *c = joined(s, 0, &caps);
        const struct {
            const void *bytes;
            size_t len;
        } said[] = {{zmtp1, sizeof zmtp1},
                    {zmtp2, sizeof zmtp2},
                    {http, sizeof http - 1},
                    {noise, sizeof noise}};
        refused_as(s, say_tcp(link_endpoint(s), said[i].bytes, said[i].len),
                   LINK_NO_ZMTP);
        talk(s, c, 0);
        link_free(&c);
        link_free(&s);
    }
}

static void T4_stalled_connections_stop_nobody_and_do_not_stay(void **state)
{
    enum { STALLED = 40 };
    link_caps caps = quick_caps(); /* with 8 strangers at a time */
    dafl_link *s = serve(ANYWHERE, &caps), *c = joined(s, 0, &caps), *late;
    int fd[STALLED], open = 0;

    (void)state;
    for (int i = 0; i < STALLED; i++)
        fd[i] = tcp_connect(link_endpoint(s));
    talk(s, c, 0);
    (void)expect_refusal(s, LINK_TOO_MANY);
    for (int i = 0; i < STALLED; i++)
        open += !tcp_ends(fd[i], 20);
    assert_in_range(open, 1, 8);
    /* The newest of them are still there, and still somebody can come in. */
    late = joined(s, 1, &caps);
    talk(s, late, 1);
    talk(s, c, 0);
    (void)expect_refusal(s, LINK_STALLED);
    for (int i = 0; i < STALLED; i++) {
        assert_true(tcp_ends(fd[i], 2500));
        (void)close(fd[i]);
    }
    talk(s, late, 1);
    link_free(&late);
    link_free(&c);
    link_free(&s);
}
#endif

/* ---- T7, M5: routing ids and second connections ---- */

/* Client 0 claims the routing id of client 1. Whether it gets what is meant
 * for that one. */
static bool routing_id_can_be_stolen(void)
{
    link_caps caps = quick_caps();
    dafl_link *s = serve(ANYWHERE, &caps);
    raw_peer victim, thief;
    char text[64] = "";
    bool stolen;

    victim =
        raw_curve(&client_ids[1], &server_id.public, "abcde", link_endpoint(s));
    raw_say(&victim, "victim");
    (void)next(s, 300); /* UP, if such ids are taken */
    (void)next(s, 300);
    thief =
        raw_curve(&client_ids[0], &server_id.public, "abcde", link_endpoint(s));
    raw_say(&thief, "thief");
    (void)next(s, 300);
    (void)next(s, 300);
    try_send(s, 1, text_bytes("for the victim"));
    stolen = raw_hear(&thief, text, 500) && strcmp(text, "for the victim") == 0;
    raw_close(&victim);
    raw_close(&thief);
    link_free(&s);
    return stolen;
}

#ifndef DAFL_WEAKEN
static void T7_a_routing_id_is_nobody(void **state)
{
    link_caps caps = quick_caps();
    dafl_link *s = serve(ANYWHERE, &caps);
    raw_peer p;

    (void)state;
    assert_false(routing_id_can_be_stolen());
    p = raw_curve(&client_ids[0], &server_id.public, "abcde", link_endpoint(s));
    raw_say(&p, canary);
    expect_nothing(s, 300);
    assert_int_equal(link_count(s).malformed, 1);
    raw_close(&p);
    link_free(&s);
}

static void T7_the_newer_of_two_connections_has_the_name(void **state)
{
    link_caps caps = quick_caps();
    dafl_link *s = serve(ANYWHERE, &caps), *other = joined(s, 1, &caps), *c;
    raw_peer older =
        raw_curve(&client_ids[0], &server_id.public, NULL, link_endpoint(s));
    char text[64];

    (void)state;
    raw_say(&older, "first");
    (void)expect(s, LINK_UP, 0);
    expect_text(s, 0, "first");
    c = join(0, link_endpoint(s), &caps);
    expect_lost(s, 0, LINK_REPLACED);
    (void)expect(s, LINK_UP, 0);
    (void)expect(c, LINK_UP, 0);
    send_text(s, 0, "for the newer");
    expect_text(c, 0, "for the newer");
    assert_false(raw_hear(&older, text, 200));
    raw_say(&older, "still here");
    expect_nothing(s, 200);
    talk(s, c, 0);
    talk(s, other, 1);
    raw_close(&older);
    link_free(&c);
    link_free(&other);
    link_free(&s);
}

/* Some are still on their way through the server when it is replaced. */
static void T7_frames_of_a_replaced_connection_are_dropped(void **state)
{
    static const uint8_t frame[32 << 10];
    link_caps caps = quick_caps();
    dafl_link *s = serve(ANYWHERE, &caps), *c;
    raw_peer older =
        raw_curve(&client_ids[0], &server_id.public, NULL, link_endpoint(s));
    link_event e;

    (void)state;
    raw_say(&older, "p");
    (void)expect(s, LINK_UP, 0);
    for (int i = 0; i < 200; i++) /* six times what may wait */
        (void)zmq_send(older.socket, frame, sizeof frame, 0);
    (void)poll(NULL, 0, 300);
    c = join(0, link_endpoint(s), &caps);
    (void)poll(NULL, 0, 300);
    do
        e = next(s, PATIENCE_MS);
    while (e.kind == LINK_MESSAGE);
    assert_int_equal(e.kind, LINK_LOST);
    assert_int_equal(e.reason, LINK_REPLACED);
    (void)expect(s, LINK_UP, 0);
    (void)expect(c, LINK_UP, 0);
    talk(s, c, 0);
    expect_nothing(s, 100);
    assert_true(link_count(s).stale > 0);
    raw_close(&older);
    link_free(&c);
    link_free(&s);
}

/* Everything a client gets must be meant for it and everything the server gets
 * must be by whom it says, whoever comes and goes in between. */
static void T7_M5_nothing_goes_astray_while_clients_come_and_go(void **state)
{
    link_caps caps = quick_caps();
    dafl_link *s = serve(ANYWHERE, &caps), *c[CLIENTS];
    int got = 0, answered = 0;

    (void)state;
    for (size_t i = 0; i < CLIENTS; i++)
        c[i] = join(i, link_endpoint(s), &caps);
    for (int step = 0; step < 2500; step++) {
        size_t who = random_size(0, CLIENTS - 1);
        uint8_t said[2] = {(uint8_t)who, (uint8_t)step};
        link_event e;
        if (random_size(0, 49) == 0) {
            link_free(&c[who]);
            c[who] = join(who, link_endpoint(s), &caps);
        }
        try_send(c[who], 0, (dafl_bytes){said, 2});
        try_send(s, (uint16_t)who, (dafl_bytes){said, 2});
        assert_ok(link_next(c[who], &e, 1));
        if (e.kind == LINK_MESSAGE) {
            assert_int_equal(e.bytes.ptr[0], who);
            answered++;
        }
        for (int i = 0; i < 2; i++) {
            assert_ok(link_next(s, &e, 0));
            if (e.kind == LINK_MESSAGE) {
                assert_int_equal(e.bytes.ptr[0], e.peer);
                got++;
            }
        }
    }
    assert_true(got > 300 && answered > 300);
    for (size_t i = 0; i < CLIENTS; i++)
        link_free(&c[i]);
    link_free(&s);
}
#endif

/* ---- T2: the ZAP handler is missing or dies; controls ---- */

#ifdef DAFL_WEAKEN
atomic_uint link_weakened;

static void T2_without_a_handler_nobody_comes_in(void **state)
{
    link_caps caps = quick_caps();
    dafl_link *s, *c;
    uint16_t as;

    (void)state;
    link_weakened = LINK_WEAK_ZAP;
    s = serve(ANYWHERE, &caps);
    assert_false(stranger_is_heard(s, &as));
    assert_int_equal(link_count(s).unnamed, 0); /* not even a frame */
    c = join(0, link_endpoint(s), &caps);
    expect_nothing(c, 500);
    expect_nothing(s, 0);
    link_free(&c);
    link_free(&s);
}

static void T2_when_the_handler_dies_nobody_else_comes_in(void **state)
{
    link_caps caps = quick_caps();
    dafl_link *s, *c, *late;
    uint16_t as;

    (void)state;
    link_weakened = 0;
    s = serve(ANYWHERE, &caps);
    c = joined(s, 0, &caps);
    link_weakened = LINK_WEAK_ZAP;
    (void)poll(NULL, 0, 300);
    assert_false(stranger_is_heard(s, &as));
    assert_int_equal(link_count(s).unnamed, 0);
    late = join(1, link_endpoint(s), &caps);
    expect_nothing(late, 500);
    talk(s, c, 0);
    link_free(&late);
    link_free(&c);
    link_free(&s);
}

static void T2_control_without_option_93_only_the_name_is_missing(void **state)
{
    link_caps caps = quick_caps();
    dafl_link *s;
    uint16_t as;

    (void)state;
    link_weakened = LINK_WEAK_ZAP | LINK_WEAK_ENFORCE;
    s = serve(ANYWHERE, &caps);
    assert_false(stranger_is_heard(s, &as));
    assert_int_equal(link_count(s).unnamed, 1);
    link_free(&s);
}

static void T2_control_without_names_a_stranger_is_heard(void **state)
{
    link_caps caps = quick_caps();
    dafl_link *s;
    uint16_t as = 99;

    (void)state;
    link_weakened = LINK_WEAK_ZAP | LINK_WEAK_ENFORCE | LINK_WEAK_USER_ID;
    s = serve(ANYWHERE, &caps);
    assert_true(stranger_is_heard(s, &as));
    assert_int_equal(as, 0);
    link_free(&s);
}

static void T7_control_routing_ids_that_peers_choose_are_stolen(void **state)
{
    (void)state;
    link_weakened = 0;
    assert_false(routing_id_can_be_stolen());
    link_weakened = LINK_WEAK_ROUTING;
    assert_true(routing_id_can_be_stolen());
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef DAFL_WEAKEN
        cmocka_unit_test(T2_without_a_handler_nobody_comes_in),
        cmocka_unit_test(T2_when_the_handler_dies_nobody_else_comes_in),
        cmocka_unit_test(T2_control_without_option_93_only_the_name_is_missing),
        cmocka_unit_test(T2_control_without_names_a_stranger_is_heard),
        cmocka_unit_test(T7_control_routing_ids_that_peers_choose_are_stolen),
#else
        cmocka_unit_test(T1_an_unknown_key_is_refused_by_name),
        cmocka_unit_test(T3_a_wrong_server_key_gets_no_handshake),
        cmocka_unit_test(T4_other_mechanisms_are_refused),
        cmocka_unit_test(T4_older_protocols_and_noise_are_refused),
        cmocka_unit_test(T4_stalled_connections_stop_nobody_and_do_not_stay),
        cmocka_unit_test(T7_a_routing_id_is_nobody),
        cmocka_unit_test(T7_the_newer_of_two_connections_has_the_name),
        cmocka_unit_test(T7_frames_of_a_replaced_connection_are_dropped),
        cmocka_unit_test(T7_M5_nothing_goes_astray_while_clients_come_and_go),
#endif
    };

    return cmocka_run_group_tests(tests, make_world, NULL);
}
