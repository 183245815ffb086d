/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that speak to fill a disk (M10): what is refused, new heads of a log,
 * what was said before, new lives without end. */
#include "tests/check.h"

#include "protocol/node.h"
#include "tests/lab/attack.h"
#include "tests/lab/audited.h"
#include "tests/lab/rogue.h"

enum { FLOODS = 400, FLOODER = 4 };

/* Twelve clients in cells of three; the server can do without one cell. */
static lab_scenario flooded_scenario(void)
{
    lab_scenario s = lab_scenario_for(12, 3, random_u64());

    s.config.policy.n_min = 9;
    lab_scenario_collude(&s, 1);
    s.audit = true;
    s.steps_max *= 4;
    return s;
}

/* One message of the flooder to the server, in its i-th life, with a head of
 * its log that nobody has seen. */
static void post(lab *l, dafl_msg_type type, uint32_t life, uint32_t i,
                 dafl_bytes body)
{
    dafl_envelope m = {.type = (uint8_t)type,
                       .run = lab_run_id(l),
                       .slot = 1,
                       .sender = FLOODER,
                       .seq = (uint64_t)life << 32 | i,
                       .body = body};
    dafl_writer w = {0};

    for (size_t b = 0; b < 4; b++)
        m.log_head.b[b] = (uint8_t)(i >> 8 * b);
    m.log_head.b[31] = (uint8_t)type;
    dafl_put_envelope(&w, &m, lab_identity(l, FLOODER));
    lab_post(l, FLOODER, lab_server_index(l), dafl_writer_bytes(&w), 0);
    dafl_writer_drop(&w);
}

/* Events of a kind that the server told about the flooder, and the sum of their
 * numbers. */
static size_t told(const lab *l, dafl_event_kind kind, dafl_fault fault,
                   size_t *sum)
{
    const lab_event *events;
    size_t n = lab_events(l, &events), found = 0;

    *sum = 0;
    for (size_t i = 0; i < n; i++) {
        const dafl_event *e = &events[i].event;
        if (events[i].party != lab_server_index(l) || e->kind != kind ||
            e->peer != FLOODER || e->fault != fault)
            continue;
        found++;
        *sum += e->number;
    }
    return found;
}

/* Of the flooder's errors, with and without a line; and the last of its heads
 * is in the server's log, so nothing is lost by not telling all. */
static void check_recap(const lab *l, size_t least)
{
    const lab_event *events;
    size_t n = lab_events(l, &events), sum, more;
    const dafl_event *last = NULL;

    for (unsigned i = 0; i < 2; i++) {
        dafl_fault fault = i == 0 ? DAFL_E_FORMAT : DAFL_E_REPLAY;
        size_t lines = told(l, DAFL_EVENT_ERROR, fault, &sum);
        assert_true(told(l, DAFL_EVENT_ERRORS, fault, &more) > 0);
        assert_true(lines + more >= least);
    }
    for (size_t i = 0; i < n; i++)
        if (events[i].party == lab_server_index(l) &&
            events[i].event.kind == DAFL_EVENT_PEER_HEAD &&
            events[i].event.peer == FLOODER)
            last = &events[i].event;
    assert_non_null(last);
    assert_int_equal(last->digest.b[31], DAFL_MSG_READY);
    assert_int_equal(last->digest.b[0] | last->digest.b[1] << 8, 2 * FLOODS);
}

/* M10. A client says what is refused, says it again, and has a new head of its
 * log each time: the server's log grows by few lines, and says how many there
 * would have been. */
static bool log_of_a_server(bool stopped)
{
    lab_scenario s = flooded_scenario();
    dafl_audit_report *r;
    dafl_members left;
    size_t before, after;
    lab *l = lab_new(&s);

    left = rogue_without(l, FLOODER);
    assert_true(lab_run_to(l, DAFL_MSG_MODEL, 0));
    before = audited_lines(lab_log(l, lab_server_index(l)));
    for (uint32_t i = 1; i <= FLOODS; i++) {
        post(l, DAFL_MSG_READY, 7, FLOODS + i, (dafl_bytes){0}); /* E_FORMAT */
        post(l, DAFL_MSG_READY, 7, i, (dafl_bytes){0});          /* E_REPLAY */
    }
    lab_check_done(l);
    after = audited_lines(lab_log(l, lab_server_index(l)));
    lab_check_cohort(l, 0, &left);
    lab_check_cohort(l, 2, &left);
    if (stopped)
        check_recap(l, FLOODS);
    /* Heads that it made up are found; everybody else's log is clean. */
    r = audited_judge_lab(l);
    assert_int_equal(audited_count(r, DAFL_AUDIT_TRUNCATED, FLOODER), 1);
    assert_int_equal(r->n_found, 1);
    dafl_audit_report_free(&r);
    lab_free(&l);
    /* What the run itself takes is less than a hundred lines a question. */
    return after - before > 3 * (100 + 3 * DAFL_ERRORS_TOLD + DAFL_HEADS_TOLD);
}

/* ---- a client's log ---- */

/* The victim hears the server's messages of a slot again and again. */
static bool say_again(lab *l, lab_letter *m, void *ctx)
{
    uint32_t *said = ctx;
    uint8_t type = m->envelope.type;
    dafl_writer w = {0};

    if (m->to != FLOODER || m->envelope.slot != 1 ||
        (type != DAFL_MSG_SURV && type != DAFL_MSG_CONF &&
         type != DAFL_MSG_RESULT))
        return true;
    for (uint32_t i = 0; i < FLOODS; i++, ++*said) {
        /* Between the numbers of two real messages there is no room: another
         * life of the server, of which the client does not know. */
        lab_seal(l, &w, m->from, type, 1,
                 (uint64_t)(type - DAFL_MSG_SURV + 2) << 48 | (i + 1),
                 m->envelope.body);
        lab_post(l, m->from, m->to, dafl_writer_bytes(&w), 0);
        dafl_writer_clear(&w);
    }
    dafl_writer_drop(&w);
    return false;
}

/* M10. A server says to a client again what it has said: the client signs and
 * reveals the same again, and its log has one line for each. */
static bool log_of_a_client(bool stopped)
{
    lab_scenario s = flooded_scenario();
    uint32_t said = 0;
    size_t lines;
    lab *l;

    s.intercept = say_again;
    s.ctx = &said;
    s.questions = 1;
    l = lab_new(&s);
    lab_check_done(l);
    assert_int_equal(said, 3 * FLOODS);
    assert_true(rogue_sent(l, FLOODER, DAFL_MSG_SIGN, 1) >= FLOODS);
    assert_true(rogue_sent(l, FLOODER, DAFL_MSG_REVEAL, 1) >= FLOODS);
    lines = audited_lines(lab_log(l, FLOODER));
    if (stopped) {
        assert_int_equal(
            lab_count(l, FLOODER, DAFL_EVENT_SIGN, DAFL_FAULT_COUNT), 1);
        assert_int_equal(
            lab_count(l, FLOODER, DAFL_EVENT_REVEAL, DAFL_FAULT_COUNT), 1);
    }
    lab_free(&l);
    return lines > 100 + 4 * DAFL_ERRORS_TOLD;
}

/* ---- a server's journal ---- */

/* M10. A client begins a new life with every message. Each is a record of the
 * server's journal, up to a number that it remembers over a restart. */
static bool many_lives(bool stopped)
{
    lab_scenario s = flooded_scenario();
    dafl_writer hello = {0};
    size_t before, records;
    dafl_members left;
    lab *l;

    s.audit = false;
    s.steps_max += 4 * DAFL_LIVES_MAX;
    l = lab_new(&s);
    left = rogue_without(l, FLOODER);
    dafl_put_hello(&hello, &(dafl_hello){.keys = 0});
    assert_true(lab_run_to(l, DAFL_MSG_MODEL, 0));
    before = lab_disk_records(l, lab_server_index(l));
    for (uint32_t life = 1; life <= DAFL_LIVES_MAX + 300; life++)
        post(l, DAFL_MSG_HELLO, 7 + life, 1, dafl_writer_bytes(&hello));
    assert_true(lab_run_to(l, DAFL_MSG_CAST, 0));
    lab_crash(l, lab_server_index(l), 0);
    assert_true(lab_run_to(l, DAFL_MSG_MODEL, 0));
    for (uint32_t life = 1; life <= 300; life++)
        post(l, DAFL_MSG_HELLO, 2 * DAFL_LIVES_MAX + life, 1,
             dafl_writer_bytes(&hello));
    lab_check_done(l);
    lab_check_cohort(l, 2, &left);
    records = lab_disk_records(l, lab_server_index(l)) - before;
    if (stopped)
        assert_true(
            rogue_blamed(l, lab_server_index(l), FLOODER, DAFL_E_STATE) > 0);
    dafl_writer_drop(&hello);
    lab_free(&l);
    return records > DAFL_LIVES_MAX + 50;
}

const lab_attack attacks_flood[] = {
    {"M10 log_of_a_server", DAFL_WEAK_LINES, log_of_a_server},
    {"M10 log_of_a_client", DAFL_WEAK_LINES, log_of_a_client},
    {"M10 many_lives", DAFL_WEAK_LIVES, many_lives},
    {0},
};
