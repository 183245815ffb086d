/* SPDX-License-Identifier: Apache-2.0 */
/* Audit logs of whole runs: those of honest parties are clean whatever happens
 * to them; R7 audit_tamper, R8 audit_truncate_fork. With --write DIR the logs
 * of a run, for the tests of the command. */
#include "tests/check.h"

#include "crypto/he.h"
#include "tests/lab/audited.h"

/* ---- honest runs ---- */

/* Every question is in the summary, with the cohort that was summed. */
static void check_summary(const lab *l, const dafl_audit_report *r)
{
    for (uint32_t q = 0; q < lab_scenario_of(l)->questions; q++) {
        const lab_sum *sum = lab_sum_of(l, q);
        bool there = false;
        for (size_t i = 0; sum != NULL && i < r->n_slots; i++) {
            const dafl_audit_slot *s = &r->slots[i];
            there |= s->question == q && s->confirmed && s->ended &&
                     s->fault == DAFL_FAULT_NONE &&
                     dafl_members_equal(&s->cohort, &sum->cohort);
        }
        assert_true(there || sum == NULL);
    }
}

static void check_clean(lab *l)
{
    audited a = audited_take(l);
    dafl_audit_report *r = audited_judge(&a, 0);

    lab_check_invariants(l);
    audited_print(r);
    if (r->n_found > 0) {
        lab_dump(l);
        fail_msg("seed %llu: %zu findings in an honest run",
                 (unsigned long long)lab_scenario_of(l)->seed, r->n_found);
    }
    assert_int_equal(r->n_proofs, 0);
    check_summary(l, r);
    dafl_audit_report_free(&r);
    audited_drop(&a);
}

/* Seven parties. */
static void check_quiet(lab_scenario *s)
{
    dafl_audit_report *r;
    audited a;
    lab *l;

    s->audit = true;
    l = lab_new(s);
    lab_check_done(l);
    check_clean(l);
    /* Any part of them too. */
    a = audited_take(l);
    for (uint64_t without = 0; without < 127; without++) {
        r = audited_judge(&a, without);
        assert_int_equal(r->n_found, 0);
        if (!(without >> lab_server_index(l) & 1))
            check_summary(l, r);
        dafl_audit_report_free(&r);
    }
    audited_drop(&a);
    lab_free(&l);
}

static void logs_of_a_quiet_run_are_clean(void **state)
{
    lab_scenario s = lab_scenario_for(6, 3, random_u64());

    (void)state;
    check_quiet(&s);
    s = lab_scenario_for(5, 1, random_u64());
    if (!dafl_he_built())
        return;
    lab_scenario_encrypt(&s);
    check_quiet(&s);
}

static void logs_of_any_trouble_are_clean(void **state)
{
    (void)state;
    for (int i = 0; i < 12; i++) {
        lab_scenario s = lab_scenario_for(i % 2 == 0 ? 6 : 9,
                                          i % 2 == 0 ? 1 : 3, random_u64());
        lab *l;
        s.audit = true;
        s.questions = 6;
        s.steps_max *= 6;
        s.ties = i % 3 == 0;
        s.config.slots = i % 4 == 0 ? 3 : 0; /* enrols again */
        s.config.tries = (uint16_t)(i % 2);
        s.net.delay = s.net.duplicate = s.net.reorder = 30;
        s.net.drop = (uint16_t)(i % 3 * 10);
        s.net.flip = (uint16_t)(i % 3 * 5);
        s.net.spare_setup = true;
        l = lab_new(&s);
        for (size_t n = random_size(4, 20); n > 0; n--)
            (random_u64() % 2 == 0 ? lab_leave_crashing : lab_leave)(
                l, (uint16_t)random_size(0, s.k - 1u),
                (uint32_t)random_size(0, 5),
                (lab_phase)random_size(0, LAB_PHASES - 1),
                random_u64() % 3 == 0 ? LAB_SOON : LAB_NEXT_SLOT);
        if (i % 3 == 1)
            lab_crash_after(l, lab_server_index(l), random_size(1, 200));
        lab_run(l);
        check_clean(l);
        lab_free(&l);
    }
}

static lab *crash_lab(uint64_t seed, uint16_t party, uint64_t point)
{
    lab_scenario s = lab_scenario_for(4, 1, seed);
    lab *l;

    s.config.policy.n_min = 3;
    lab_scenario_collude(&s, 0);
    s.questions = 2;
    s.audit = true;
    l = lab_new(&s);
    if (point > 0)
        lab_crash_after(l, party, point);
    return l;
}

/* After any effect of a client, of the server; back soon or late. */
static void a_crash_anywhere_leaves_clean_logs(void **state)
{
    uint64_t seed = random_u64();

    (void)state;
    for (uint16_t party = 2; party <= 4; party += 2) {
        lab *l = crash_lab(seed, party, 0);
        uint64_t points;
        lab_check_done(l);
        points = lab_effects(l, party);
        assert_true(points > 20);
        lab_free(&l);
        for (uint64_t n = random_size(1, 2); n <= points;
             n += random_size(1, 2)) {
            l = crash_lab(seed, party, n);
            lab_run(l);
            check_clean(l);
            lab_free(&l);
        }
    }
}

/* The log goes on when a second run begins. */
static void a_log_goes_on_over_runs(void **state)
{
    lab_scenario s = lab_scenario_for(5, 1, random_u64());
    lab_disk *disks[5];
    audited a;
    lab *l;

    (void)state;
    s.audit = true;
    l = lab_new(&s);
    lab_check_done(l);
    a = audited_take(l);
    for (uint16_t u = 0; u < 5; u++)
        disks[u] = lab_disk_copy(l, u);
    lab_free(&l);
    s.run = 1;
    l = lab_new(&s);
    for (uint16_t u = 0; u < 5; u++) {
        lab_disk_put(l, u, disks[u]);
        lab_disk_free(&disks[u]);
    }
    for (uint16_t i = 0; i < a.n; i++)
        lab_log_put(l, i, dafl_writer_bytes(&a.logs[i]));
    audited_drop(&a);
    lab_check_done(l);
    check_clean(l);
    for (uint16_t i = 0; i < 6; i++) {
        dafl_bytes log = lab_log(l, i);
        assert_true(audited_lines(log) > 20);
    }
    lab_free(&l);
}

/* ---- C8: what is never logged ---- */

/* Whether any log has these bytes in hexadecimal. */
static bool is_logged(const audited *a, const uint8_t *bytes, size_t len)
{
    char hex[2 * 32 + 1];

    (void)sodium_bin2hex(hex, sizeof hex, bytes, len);
    for (size_t i = 0; i < a->n; i++)
        if (strstr((const char *)a->logs[i].ptr, hex) != NULL)
            return true;
    return false;
}

/* The keys of all slots and the shares of others' keys, from the vaults before
 * they are wiped. */
static void take_secrets(const lab *l, dafl_writer *out)
{
    for (uint16_t u = 0; u < lab_server_index(l); u++)
        for (uint32_t slot = 1; slot <= lab_config(l)->slots; slot++) {
            dafl_bytes r = lab_disk_secret(l, u, slot);
            assert_non_null(r.ptr);
            dafl_put_fixed(out, r.ptr, r.len);
        }
}

static void no_key_share_or_upload_is_logged(void **state)
{
    lab_scenario s = lab_scenario_for(4, 1, random_u64());
    dafl_writer secrets = {0};
    const lab_seen *m;
    size_t at = 0, looked = 0;
    audited a;
    lab *l;

    (void)state;
    s.audit = true;
    l = lab_new(&s);
    assert_true(lab_run_to(l, DAFL_MSG_MODEL, 0));
    take_secrets(l, &secrets);
    lab_leave(l, 2, 1, LAB_AT_CAST, LAB_NEXT_SLOT);
    lab_check_done(l);
    a = audited_take(l);
    for (size_t i = 0; i < a.n; i++)
        dafl_put_u8(&a.logs[i], '\0');
    for (size_t i = 0; i + 32 <= secrets.len; i += 32)
        if (!sodium_is_zero(secrets.ptr + i, 32)) {
            assert_false(is_logged(&a, secrets.ptr + i, 32));
            looked++;
        }
    assert_true(looked > 100);
    while ((m = lab_find(l, &at, LAB_SENT, LAB_ANYBODY, LAB_ANYBODY,
                         DAFL_MSG_UPLOAD, UINT32_MAX)) != NULL)
        assert_false(is_logged(&a, m->envelope.body.ptr + 8, 16));
    /* What is public is found that way. */
    at = 0;
    m = lab_find(l, &at, LAB_SENT, LAB_ANYBODY, LAB_ANYBODY, DAFL_MSG_END, 1);
    assert_non_null(m);
    assert_true(is_logged(&a, m->envelope.body.ptr + 8, 32));
    audited_drop(&a);
    dafl_writer_drop(&secrets);
    lab_free(&l);
}

/* ---- R7 audit_tamper ---- */

static lab *quiet_lab(void)
{
    lab_scenario s = lab_scenario_for(5, 1, random_u64());
    lab *l;

    s.audit = true;
    l = lab_new(&s);
    lab_leave(l, 1, 1, LAB_AT_CAST, LAB_NEXT_SLOT);
    lab_check_done(l);
    return l;
}

/* Put bytes in the place of a party's log from `at` to `end`. */
static void splice(audited *a, uint16_t party, size_t at, size_t end,
                   dafl_bytes bytes)
{
    dafl_writer *log = &a->logs[party], w = {0};

    dafl_put_fixed(&w, log->ptr, at);
    dafl_put_fixed(&w, bytes.ptr, bytes.len);
    dafl_put_fixed(&w, log->ptr + end, log->len - end);
    assert_ok(dafl_writer_done(&w));
    dafl_writer_drop(log);
    *log = w;
}

typedef enum { EDIT, DELETE, INSERT, FOREIGN, SWAP, TAMPERINGS } tampering;

/* Tamper with line i of the party's log (counted from 0), which is not the
 * last. */
static void tamper(audited *a, uint16_t party, size_t i, tampering what)
{
    dafl_bytes log = dafl_writer_bytes(&a->logs[party]);
    size_t at = audited_line_at(log, i), end = audited_line_at(log, i + 1);
    dafl_bytes foreign = dafl_writer_bytes(&a->logs[party == 0 ? 1 : 0]);
    dafl_writer w = {0};
    size_t other;

    switch (what) {
    case EDIT:
        a->logs[party].ptr[random_size(at, end - 1)] ^=
            (uint8_t)(1u << random_size(0, 7));
        return;
    case DELETE:
        break;
    case INSERT: /* another one of its own once more */
        other = i == 0 ? 1 : 0;
        dafl_put_fixed(&w, log.ptr + audited_line_at(log, other),
                       audited_line_at(log, other + 1) -
                           audited_line_at(log, other));
        end = at;
        break;
    case FOREIGN: /* another's */
        dafl_put_fixed(&w, foreign.ptr, audited_line_at(foreign, 1));
        end = at;
        break;
    case SWAP:
        end = audited_line_at(log, i + 2);
        dafl_put_fixed(&w, log.ptr + audited_line_at(log, i + 1),
                       end - audited_line_at(log, i + 1));
        dafl_put_fixed(&w, log.ptr + at, audited_line_at(log, i + 1) - at);
        break;
    case TAMPERINGS:
        break;
    }
    splice(a, party, at, end, dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
}

/* With nothing but the one log: what is wrong is named with its line. (Every
 * byte of a short log: tests/protocol/test_audit.c.) */
static void tampering_with_any_line_is_found_and_named(void **state)
{
    lab *l = quiet_lab();

    (void)state;
    for (uint16_t party = 0; party <= 5; party += 5)
        for (tampering what = EDIT; what < TAMPERINGS; what++) {
            size_t n = audited_lines(lab_log(l, party));
            for (size_t i = random_size(0, 3); i + 2 < n;
                 i += random_size(1, n / 8)) {
                audited a = audited_take(l);
                dafl_audit_report *r;
                bool named = false;
                tamper(&a, party, i, what);
                r = audited_judge(&a, ~(1ull << party));
                for (size_t f = 0; f < r->n_findings; f++)
                    named |= r->findings[f].party == party &&
                             r->findings[f].seq == i + 1;
                if (!named)
                    fail_msg("party %u, line %zu, tampering %d is not named",
                             (unsigned)party, i + 1, (int)what);
                dafl_audit_report_free(&r);
                audited_drop(&a);
            }
        }
    lab_free(&l);
}

/* ---- R8 audit_truncate_fork ---- */

/* The last line of a party's log whose hash a peer has in its own log. */
static size_t last_line_seen(const lab *l, uint16_t party)
{
    dafl_bytes log = lab_log(l, party);
    audited a = audited_take(l);
    size_t n = audited_lines(log), seen = 0;

    for (uint16_t peer = 0; peer < a.n; peer++)
        dafl_put_u8(&a.logs[peer], '\0');
    for (size_t i = 0; i < n; i++) {
        size_t at = audited_line_at(log, i), end = audited_line_at(log, i + 1);
        char head[80], hex[65];
        dafl_audit_line line;
        assert_ok(dafl_get_audit_line(&line,
                                      (dafl_bytes){log.ptr + at, end - 1 - at},
                                      lab_roster(l)->n_clients));
        (void)snprintf(head, sizeof head, "\"head\":\"%s\"",
                       sodium_bin2hex(hex, sizeof hex, line.hash.b, 32));
        dafl_audit_line_drop(&line);
        for (uint16_t peer = 0; peer < a.n; peer++)
            if (strstr((const char *)a.logs[peer].ptr, head) != NULL)
                seen = i + 1;
    }
    audited_drop(&a);
    return seen;
}

static void a_cut_log_is_found_through_its_peers(void **state)
{
    lab *l = quiet_lab();

    (void)state;
    for (uint16_t party = 0; party <= 5; party++) {
        size_t n = audited_lines(lab_log(l, party));
        size_t seen = last_line_seen(l, party);
        assert_true(seen > 10 && seen < n);
        for (size_t left = 1; left < n; left += random_size(1, 9)) {
            audited a = audited_take(l);
            const dafl_audit_finding *f;
            dafl_audit_report *r;
            a.logs[party].len =
                audited_line_at(dafl_writer_bytes(&a.logs[party]), left);
            /* By itself it is in order. */
            r = audited_judge(&a, ~(1ull << party));
            assert_int_equal(r->n_found, 0);
            dafl_audit_report_free(&r);
            r = audited_judge(&a, 0);
            f = audited_find(r, DAFL_AUDIT_TRUNCATED, party);
            assert_int_equal(f != NULL, left < seen);
            assert_true(f == NULL || f->seq <= left);
            for (uint16_t other = 0; other <= 5; other++)
                assert_true(other == party ||
                            audited_count(r, DAFL_AUDIT_TRUNCATED, other) == 0);
            dafl_audit_report_free(&r);
            audited_drop(&a);
        }
    }
    lab_free(&l);
}

/* Leave the n-th line out. */
static bool leave_out(void *ctx, dafl_audit_line *line, uint8_t *more)
{
    (void)more;
    return line->seq != *(size_t *)ctx;
}

/* Written anew by its party, with its key: no signature and no hash is wrong.
 */
static void a_forked_log_is_found_through_its_peers(void **state)
{
    lab *l = quiet_lab();

    (void)state;
    for (uint16_t party = 0; party <= 5; party++) {
        audited a = audited_take(l), copy = audited_take(l);
        size_t drop = random_size(5, last_line_seen(l, party) - 1);
        dafl_audit_log both[2];
        const dafl_audit_finding *f;
        dafl_audit_report *r = NULL;
        dafl_why why;
        audited_rewrite(&a, party, leave_out, &drop);
        r = audited_judge(&a, 0);
        f = audited_find(r, DAFL_AUDIT_TRUNCATED, party);
        assert_non_null(f);
        assert_true(f->seq < drop);
        assert_true(
            strstr(f->why.text, "truncated or forked") != NULL &&
            strstr(f->why.text, lab_roster(l)->parties[party].id.name) != NULL);
        dafl_audit_report_free(&r);
        /* Both of them, and nobody else's. */
        both[0] = (dafl_audit_log){"one", dafl_writer_bytes(&a.logs[party])};
        both[1] = (dafl_audit_log){"two", dafl_writer_bytes(&copy.logs[party])};
        assert_ok(
            dafl_audit_verify(&r, lab_roster(l), lab_config(l), both, 2, &why));
        f = audited_find(r, DAFL_AUDIT_FORK, party);
        assert_non_null(f);
        assert_int_equal(f->seq, drop);
        dafl_audit_report_free(&r);
        /* An older copy is no fork. */
        both[0] = both[1];
        both[0].bytes.len = audited_line_at(both[0].bytes, drop);
        assert_ok(
            dafl_audit_verify(&r, lab_roster(l), lab_config(l), both, 2, &why));
        assert_int_equal(r->n_found, 0);
        assert_true(r->logs[0].older && !r->logs[1].older);
        dafl_audit_report_free(&r);
        audited_drop(&copy);
        audited_drop(&a);
    }
    lab_free(&l);
}

/* A disk that is put back to an earlier state takes the log along (D8). */
static void a_rolled_back_log_is_found_through_its_peers(void **state)
{
    lab_scenario s = lab_scenario_for(5, 1, random_u64());
    dafl_writer old = {0};
    dafl_audit_report *r;
    lab *l;

    (void)state;
    s.audit = true;
    l = lab_new(&s);
    assert_true(lab_run_to(l, DAFL_MSG_CONF, 0));
    dafl_put_fixed(&old, lab_log(l, 2).ptr, lab_log(l, 2).len);
    assert_true(lab_run_to(l, DAFL_MSG_CAST, 1));
    lab_crash(l, 2, LAB_NEVER);
    lab_log_put(l, 2, dafl_writer_bytes(&old));
    lab_restart(l, 2);
    lab_check_done(l);
    r = audited_judge_lab(l);
    assert_true(audited_count(r, DAFL_AUDIT_TRUNCATED, 2) > 0);
    assert_int_equal(audited_count(r, DAFL_AUDIT_TRUNCATED, LAB_ANYBODY),
                     audited_count(r, DAFL_AUDIT_TRUNCATED, 2));
    dafl_audit_report_free(&r);
    dafl_writer_drop(&old);
    lab_free(&l);
}

static int write_logs(const char *to)
{
    lab *l = quiet_lab();
    audited a = audited_take(l);

    audited_write(&a, to, 0);
    audited_drop(&a);
    lab_free(&l);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logs_of_a_quiet_run_are_clean),
        cmocka_unit_test(logs_of_any_trouble_are_clean),
        cmocka_unit_test(a_crash_anywhere_leaves_clean_logs),
        cmocka_unit_test(a_log_goes_on_over_runs),
        cmocka_unit_test(no_key_share_or_upload_is_logged),
        cmocka_unit_test(tampering_with_any_line_is_found_and_named),
        cmocka_unit_test(a_cut_log_is_found_through_its_peers),
        cmocka_unit_test(a_forked_log_is_found_through_its_peers),
        cmocka_unit_test(a_rolled_back_log_is_found_through_its_peers),
    };

    check_seed();
    if (argc == 3 && strcmp(argv[1], "--write") == 0)
        return write_logs(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
