/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies with a byte too few or too many, of every type and signed by their
 * sender, come just before the right ones: each is refused as malformed and
 * changes nothing (R1). */
#include "tests/check.h"

#include "crypto/he.h"
#include "tests/lab/lab.h"
#include "tests/lab/rogue.h"

enum { CLIENTS = 5, PARTIES = CLIENTS + 2 };

typedef struct {
    dafl_msg_type type;             /* which is forged, */
    bool done[PARTIES][PARTIES];    /* once for each sender and receiver */
    uint64_t seq[PARTIES][PARTIES]; /* of the last message */
    size_t forged;
} forger;

static void post(lab *l, forger *f, const lab_letter *m, dafl_bytes body)
{
    dafl_writer w = {0};

    lab_seal(l, &w, m->from, (dafl_msg_type)m->envelope.type, m->envelope.slot,
             ++f->seq[m->from][m->to], body);
    lab_post(l, m->from, m->to, dafl_writer_bytes(&w), 1);
    dafl_writer_drop(&w);
}

static bool forge(lab *l, lab_letter *m, void *ctx)
{
    forger *f = ctx;
    uint64_t *seq = &f->seq[m->from][m->to];
    dafl_bytes body = m->envelope.body;
    dafl_writer longer = {0};

    if (*seq < m->envelope.seq)
        *seq = m->envelope.seq;
    if (m->envelope.type == f->type && !f->done[m->from][m->to]) {
        f->done[m->from][m->to] = true;
        dafl_put_fixed(&longer, body.ptr, body.len);
        dafl_put_u8(&longer, 0);
        post(l, f, m, dafl_writer_bytes(&longer));
        dafl_writer_drop(&longer);
        f->forged++;
        if (body.len > 0) {
            post(l, f, m, (dafl_bytes){body.ptr, body.len - 1});
            f->forged++;
        }
    }
    post(l, f, m, body);
    return false;
}

static size_t refused(const lab *l, uint16_t parties)
{
    size_t n = 0;

    for (uint16_t by = 0; by < parties; by++)
        for (uint16_t peer = 0; peer < parties; peer++)
            n += rogue_blamed(l, by, peer, DAFL_E_FORMAT);
    return n;
}

/* How many were forged. */
static size_t forge_each(dafl_msg_type type, bool encrypt)
{
    forger f = {.type = type};
    lab_scenario s = lab_scenario_for(CLIENTS, 1, random_u64());
    lab *l;

    if (encrypt)
        lab_scenario_encrypt(&s);
    s.questions = 2;
    s.intercept = forge;
    s.ctx = &f;
    l = lab_new(&s);
    lab_check_done(l);
    assert_int_equal(refused(l, encrypt ? PARTIES : PARTIES - 1), f.forged);
    lab_free(&l);
    return f.forged;
}

/* A piece of an upload may have any length. */
static void bodies_of_another_length_are_refused(void **state)
{
    (void)state;
    for (int type = 1; type < DAFL_MSG_COUNT; type++) {
        bool holders = type >= DAFL_MSG_ASK;
        if (type == DAFL_MSG_UPLOAD)
            continue;
        if (!holders)
            assert_true(forge_each((dafl_msg_type)type, false) >= CLIENTS);
        if (dafl_he_built())
            assert_true(forge_each((dafl_msg_type)type, true) > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_of_another_length_are_refused),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
