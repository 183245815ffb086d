/* SPDX-License-Identifier: Apache-2.0 */
/* The link between parties that mean well, and what happens to it. Those that
 * do not: test_link_hostile.c. */
#include "tests/agents/link_world.h"

static void messages_arrive_whole_in_order_and_named(void **state)
{
    link_caps caps = quick_caps();
    dafl_link *s = serve(ANYWHERE, &caps), *c[CLIENTS];
    uint8_t *bytes = malloc(caps.message);

    (void)state;
    assert_non_null(bytes);
    for (size_t i = 0; i < CLIENTS; i++)
        c[i] = joined(s, i, &caps);
    for (int round = 0; round < 200; round++) {
        size_t who = random_size(0, CLIENTS - 1);
        size_t len = round == 0 ? caps.message : random_size(2, caps.message);
        link_event e;
        for (size_t i = 0; i < len; i++)
            bytes[i] = (uint8_t)random_u64();
        assert_ok(link_send(c[who], 0, (dafl_bytes){bytes, len}));
        e = expect(s, LINK_MESSAGE, (uint16_t)who);
        assert_int_equal(e.bytes.len, len);
        assert_memory_equal(e.bytes.ptr, bytes, len);
        assert_ok(link_send(s, (uint16_t)who, e.bytes));
        e = expect(c[who], LINK_MESSAGE, 0);
        assert_int_equal(e.bytes.len, len);
        assert_memory_equal(e.bytes.ptr, bytes, len);
    }
    for (int i = 0; i < 500; i++) {
        char text[16];
        (void)snprintf(text, sizeof text, "number %d", i);
        send_text(c[1], 0, text);
    }
    for (int i = 0; i < 500; i++) {
        char text[16];
        (void)snprintf(text, sizeof text, "number %d", i);
        expect_text(s, 1, text);
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        expect_nothing(c[i], 0);
        link_free(&c[i]);
    }
    link_free(&s);
    free(bytes);
}

static void one_message_goes_to_all_that_are_named(void **state)
{
    link_caps caps = quick_caps();
    dafl_link *s = serve(ANYWHERE, &caps), *c[CLIENTS];
    dafl_members to = dafl_members_none(CLIENTS);

    (void)state;
    for (size_t i = 0; i < CLIENTS - 1; i++)
        c[i] = joined(s, i, &caps);
    dafl_members_add(&to, 0);
    dafl_members_add(&to, 2);
    assert_ok(link_send_all(s, &to, text_bytes("to 0 and 2")));
    expect_text(c[0], 0, "to 0 and 2");
    expect_text(c[2], 0, "to 0 and 2");
    expect_nothing(c[1], 50);
    /* One that is not there does not keep the others from getting it. */
    dafl_members_add(&to, CLIENTS - 1);
    assert_int_equal(link_send_all(s, &to, text_bytes("again")), DAFL_ERR_PEER);
    expect_text(c[0], 0, "again");
    expect_text(c[2], 0, "again");
    for (size_t i = 0; i < CLIENTS - 1; i++)
        link_free(&c[i]);
    link_free(&s);
}

static void counts_tell_what_has_passed_and_who_is_there(void **state)
{
    static uint8_t bytes[50000];
    const size_t n = sizeof bytes, pings = 1000;
    link_caps caps = quick_caps();
    dafl_link *s = serve(ANYWHERE, &caps), *c;

    (void)state;
    assert_false(link_is_up(s, 1));
    c = joined(s, 1, &caps);
    assert_true(link_is_up(s, 1) && link_is_up(c, 0));
    assert_false(link_is_up(s, 0) || link_is_up(s, CLIENTS + 1));
    assert_ok(link_send(c, 0, (dafl_bytes){bytes, n}));
    (void)expect(s, LINK_MESSAGE, 1);
    send_text(s, 1, "an answer");
    expect_text(c, 0, "an answer"); /* what was before it is counted */
    assert_in_range(link_count(c).bytes_out, n, n + pings);
    assert_in_range(link_count(s).bytes_in, n, n + pings);
    assert_in_range(link_count(c).bytes_in, 9, 9 + pings);
    link_free(&c);
    expect_lost(s, 1, LINK_CLOSED);
    assert_in_range(link_count(s).bytes_out, 9, 9 + pings);
    assert_false(link_is_up(s, 1));
    link_free(&s);
}

static void what_was_sent_before_the_end_arrives(void **state)
{
    link_caps caps = quick_caps();
    dafl_link *s = serve(ANYWHERE, &caps), *c = joined(s, 0, &caps);

    (void)state;
    for (int i = 0; i < 20; i++)
        send_text(c, 0, "farewell");
    link_free(&c);
    for (int i = 0; i < 20; i++)
        expect_text(s, 0, "farewell");
    expect_lost(s, 0, LINK_CLOSED);
    assert_int_equal(link_send(s, 0, text_bytes("gone")), DAFL_ERR_PEER);
    link_free(&s);
}

static dafl_link *to_wake;

static void on_signal(int sig)
{
    (void)sig;
    link_wake(to_wake);
}

static void a_signal_handler_ends_the_wait(void **state)
{
    link_caps caps = quick_caps();
    struct sigaction act = {.sa_handler = on_signal};
    struct sigaction before;
    int64_t began;
    link_event e;

    (void)state;
    to_wake = serve(ANYWHERE, &caps);
    assert_int_equal(sigaction(SIGALRM, &act, &before), 0);
    (void)alarm(1);
    began = clock_ms();
    assert_ok(link_next(to_wake, &e, 20000));
    assert_int_equal(e.kind, LINK_NOTHING);
    assert_in_range(clock_ms() - began, 500, 5000);
    /* One that came before the wait ends the next. */
    link_wake(to_wake);
    assert_ok(link_next(to_wake, &e, -1));
    assert_int_equal(e.kind, LINK_NOTHING);
    (void)sigaction(SIGALRM, &before, NULL);
    link_free(&to_wake);
}

static void a_server_that_restarts_gets_its_clients_back(void **state)
{
    link_caps caps = quick_caps();
    dafl_link *s = serve(ANYWHERE, &caps), *c[2];
    char endpoint[256];

    (void)state;
    (void)snprintf(endpoint, sizeof endpoint, "%s", link_endpoint(s));
    c[0] = joined(s, 0, &caps);
    c[1] = joined(s, 1, &caps);
    for (int round = 0; round < 2; round++) {
        int seen = 0;
        link_free(&s);
        for (uint16_t i = 0; i < 2; i++) {
            expect_lost(c[i], 0, LINK_CLOSED);
            assert_int_equal(link_send(c[i], 0, text_bytes("lost")),
                             DAFL_ERR_PEER);
        }
        s = serve(endpoint, &caps);
        for (uint16_t i = 0; i < 2; i++) {
            link_event e = next(s, PATIENCE_MS);
            assert_int_equal(e.kind, LINK_UP);
            seen |= 1 << e.peer;
            (void)expect(c[i], LINK_UP, 0);
        }
        assert_int_equal(seen, 3);
        for (uint16_t i = 0; i < 2; i++)
            talk(s, c[i], i);
    }
    link_free(&c[0]);
    link_free(&c[1]);
    link_free(&s);
}

static void a_client_may_come_before_the_server(void **state)
{
    link_caps caps = quick_caps();
    dafl_link *s = serve(ANYWHERE, &caps), *c;
    char endpoint[256];

    (void)state;
    (void)snprintf(endpoint, sizeof endpoint, "%s", link_endpoint(s));
    link_free(&s);
    c = join(0, endpoint, &caps);
    expect_nothing(c, 300);
    s = serve(endpoint, &caps);
    (void)expect(s, LINK_UP, 0);
    (void)expect(c, LINK_UP, 0);
    talk(s, c, 0);
    link_free(&c);
    link_free(&s);
}

/* Half open: the line is dead and nobody says so. */
static void both_ends_notice_a_dead_line_in_time(void **state)
{
    link_caps caps = quick_caps();
    dafl_link *s = serve(ANYWHERE, &caps), *c;
    relay *r = relay_new(link_endpoint(s));
    int64_t began;

    (void)state;
    c = join(0, r->endpoint, &caps);
    (void)expect(s, LINK_UP, 0);
    (void)expect(c, LINK_UP, 0);
    talk(s, c, 0);
    /* A line that is only idle stays. */
    expect_nothing(s, 2 * (int)caps.lost_ms);
    expect_nothing(c, 0);
    r->frozen = true;
    began = clock_ms();
    expect_lost(s, 0, LINK_SILENT);
    expect_lost(c, 0, LINK_SILENT);
    assert_in_range(clock_ms() - began, caps.lost_ms / 2,
                    2 * caps.lost_ms + 500);
    r->frozen = false;
    (void)expect(s, LINK_UP, 0);
    (void)expect(c, LINK_UP, 0);
    talk(s, c, 0);
    link_free(&c);
    link_free(&s);
    relay_free(r);
}

/* Nobody is lost because the owner of a link computes for long, not even when
 * so much has come meanwhile that the peers have to wait. */
static void an_owner_may_be_busy(void **state)
{
    enum { MESSAGES = 400, BYTES = 40000 }; /* 16 times caps.in */
    link_caps caps = quick_caps(), wide = quick_caps();
    dafl_link *s = serve(ANYWHERE, &caps), *idle = joined(s, 0, &caps), *c;
    uint8_t *bytes = calloc(1, BYTES);

    (void)state;
    assert_non_null(bytes);
    wide.out = 2 * (size_t)MESSAGES * BYTES;
    c = joined(s, 1, &wide);
    for (int i = 0; i < MESSAGES; i++) {
        memcpy(bytes, &i, sizeof i);
        assert_ok(link_send(c, 0, (dafl_bytes){bytes, BYTES}));
    }
    (void)poll(NULL, 0, 2 * (int)caps.lost_ms);
    for (int i = 0; i < MESSAGES; i++) {
        link_event e = expect(s, LINK_MESSAGE, 1);
        assert_int_equal(e.bytes.len, BYTES);
        assert_memory_equal(e.bytes.ptr, &i, sizeof i);
    }
    talk(s, c, 1);
    talk(s, idle, 0);
    link_free(&c);
    link_free(&idle);
    link_free(&s);
    free(bytes);
}

/* Who is told of the end and goes is not one that was killed just then. */
static void a_client_that_leaves_says_so(void **state)
{
    link_caps caps = quick_caps();
    dafl_link *s = serve(ANYWHERE, &caps), *c;

    (void)state;
    for (int leaves = 0; leaves <= 2; leaves++) {
        c = join(0, link_endpoint(s), &caps);
        (void)expect(s, LINK_UP, 0);
        (void)expect(c, LINK_UP, 0);
        talk(s, c, 0);
        if (leaves == 1)
            link_leave(c);
        link_free(&c);
        expect_lost(s, 0, leaves == 1 ? LINK_LEFT : LINK_CLOSED);
    }
    assert_int_equal(link_count(s).malformed, 0);
    link_free(&s);
}

/* ZeroMQ takes 99999 for 34463, 80x for 80 and a name for a busy system. */
static void endpoints_are_taken_at_their_word(void **state)
{
    static const char *const never[] = {
        "tcp://127.0.0.1",       "tcp://127.0.0.1:",      "tcp://:7400",
        "tcp://127.0.0.1:99999", "tcp://127.0.0.1:65536", "tcp://127.0.0.1:80x",
        "tcp://127.0.0.1:7400/", "tcp://127.0.0.1:-1",    "tcp://::1:7400",
        "tcp://[::1:7400",       "127.0.0.1:7400",        "",
    };
    static const char *const no_server[] = {"tcp://*:7400", "tcp://127.0.0.1:0",
                                            ANYWHERE};
    link_caps caps = quick_caps();
    dafl_link *l = serve("tcp://127.0.0.1:0", &caps);
    dafl_why why;

    (void)state;
    assert_int_equal(strncmp(link_endpoint(l), "tcp://127.0.0.1:", 16), 0);
    assert_string_not_equal(link_endpoint(l), "tcp://127.0.0.1:0");
    link_free(&l);
    for (size_t i = 0; i < COUNT(never) + COUNT(no_server); i++) {
        bool both = i < COUNT(never);
        const char *at = both ? never[i] : no_server[i - COUNT(never)];
        assert_int_equal(link_connect(&l, at, &client_ids[0], &server_id.public,
                                      &caps, &why),
                         DAFL_ERR_INPUT);
        assert_says(&why, "tcp://ADDRESS:PORT");
        if (!both)
            continue;
        assert_int_equal(link_listen(&l, at, &server_id, &roster, &caps, &why),
                         DAFL_ERR_INPUT);
        assert_says(&why, "tcp://ADDRESS:PORT");
    }
    assert_int_equal(
        link_listen(&l, "tcp://localhost:0", &server_id, &roster, &caps, &why),
        DAFL_ERR_INPUT);
    assert_says(&why, "in numbers");
    assert_null(l);
}

static void wrong_arguments_are_refused_with_a_reason(void **state)
{
    link_caps caps = quick_caps(), bad = caps;
    dafl_link *s = serve(ANYWHERE, &caps), *l = NULL;
    dafl_why why;
    uint8_t bytes[2] = {0};

    (void)state;
    assert_int_equal(
        link_listen(&l, link_endpoint(s), &server_id, &roster, &caps, &why),
        DAFL_ERR_INPUT);
    assert_says(&why, "in use");
    assert_int_equal(
        link_listen(&l, "ipc:///tmp/x", &server_id, &roster, &caps, &why),
        DAFL_ERR_INPUT);
    assert_says(&why, "tcp://ADDRESS:PORT");
    assert_int_equal(link_connect(&l, "tcp://127.0.0.1", &client_ids[0],
                                  &server_id.public, &caps, &why),
                     DAFL_ERR_INPUT);
    bad.in = bad.message - 1;
    assert_int_equal(link_listen(&l, ANYWHERE, &server_id, &roster, &bad, &why),
                     DAFL_ERR_ARG);
    assert_null(l);
    assert_int_equal(link_send(s, 0, (dafl_bytes){bytes, 1}), DAFL_ERR_ARG);
    assert_int_equal(link_send(s, 0, (dafl_bytes){bytes, caps.out + 1}),
                     DAFL_ERR_ARG);
    assert_int_equal(link_send(s, 0, (dafl_bytes){bytes, 2}), DAFL_ERR_PEER);
    assert_int_equal(link_send(s, CLIENTS + 7, (dafl_bytes){bytes, 2}),
                     DAFL_ERR_PEER);
    link_free(&s);
    link_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_arrive_whole_in_order_and_named),
        cmocka_unit_test(one_message_goes_to_all_that_are_named),
        cmocka_unit_test(counts_tell_what_has_passed_and_who_is_there),
        cmocka_unit_test(what_was_sent_before_the_end_arrives),
        cmocka_unit_test(a_signal_handler_ends_the_wait),
        cmocka_unit_test(a_server_that_restarts_gets_its_clients_back),
        cmocka_unit_test(a_client_may_come_before_the_server),
        cmocka_unit_test(both_ends_notice_a_dead_line_in_time),
        cmocka_unit_test(an_owner_may_be_busy),
        cmocka_unit_test(a_client_that_leaves_says_so),
        cmocka_unit_test(endpoints_are_taken_at_their_word),
        cmocka_unit_test(wrong_arguments_are_refused_with_a_reason),
    };

    return cmocka_run_group_tests(tests, make_world, NULL);
}
