/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lab/audited.h"

#include "lib/file.h"
#include "tests/check.h"

audited audited_take(const lab *l)
{
    audited a = {.l = l, .n = lab_roster(l)->n};

    for (uint16_t i = 0; i < a.n; i++) {
        dafl_bytes log = lab_log(l, i);
        dafl_put_fixed(&a.logs[i], log.ptr, log.len);
        assert_ok(dafl_writer_done(&a.logs[i]));
    }
    return a;
}

void audited_drop(audited *a)
{
    for (size_t i = 0; i < a->n; i++)
        dafl_writer_drop(&a->logs[i]);
}

dafl_audit_report *audited_judge(const audited *a, uint64_t without)
{
    dafl_audit_log given[DAFL_PARTIES_MAX];
    dafl_audit_report *report = NULL;
    dafl_why why = {{0}};
    size_t n = 0;

    for (size_t i = 0; i < a->n; i++)
        if (i >= 64 || !(without >> i & 1))
            given[n++] = (dafl_audit_log){lab_roster(a->l)->parties[i].id.name,
                                          dafl_writer_bytes(&a->logs[i])};
    assert_ok(dafl_audit_verify(&report, lab_roster(a->l), lab_config(a->l),
                                given, n, &why));
    return report;
}

dafl_audit_report *audited_judge_lab(const lab *l)
{
    audited a = audited_take(l);
    dafl_audit_report *report = audited_judge(&a, 0);

    audited_drop(&a);
    return report;
}

size_t audited_count(const dafl_audit_report *r, dafl_audit_rule rule,
                     uint16_t party)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n_findings; i++)
        n += r->findings[i].rule == rule &&
             (party == LAB_ANYBODY || r->findings[i].party == party);
    return n;
}

const dafl_audit_finding *audited_find(const dafl_audit_report *r,
                                       dafl_audit_rule rule, uint16_t party)
{
    for (size_t i = 0; i < r->n_findings; i++)
        if (r->findings[i].rule == rule &&
            (party == LAB_ANYBODY || r->findings[i].party == party))
            return &r->findings[i];
    return NULL;
}

void audited_print(const dafl_audit_report *r)
{
    for (size_t i = 0; i < r->n_findings; i++)
        print_message("%s: %s\n", dafl_audit_rule_name(r->findings[i].rule),
                      r->findings[i].why.text);
}

static void write_file(const char *dir_name, const char *name, dafl_bytes bytes)
{
    char path[512];
    dafl_why why = {{0}};

    (void)snprintf(path, sizeof path, "%s/%s", dir_name, name);
    assert_ok(dafl_file_replace(path, &bytes, 1, &why));
}

void audited_write(const audited *a, const char *to, uint64_t without)
{
    dafl_writer w = {0};
    char name[80];

    dafl_put_roster(&w, lab_roster(a->l));
    write_file(to, "roster", dafl_writer_bytes(&w));
    dafl_writer_clear(&w);
    dafl_put_config(&w, lab_config(a->l));
    write_file(to, "config", dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    for (size_t i = 0; i < a->n; i++) {
        (void)snprintf(name, sizeof name, "%s.log",
                       lab_roster(a->l)->parties[i].id.name);
        if (!(without >> i & 1))
            write_file(to, name, dafl_writer_bytes(&a->logs[i]));
    }
}

size_t audited_lines(dafl_bytes log)
{
    size_t n = 0;

    for (size_t i = 0; i < log.len; i++)
        n += log.ptr[i] == '\n';
    return n;
}

size_t audited_line_at(dafl_bytes log, size_t i)
{
    size_t at = 0;

    while (i > 0 && at < log.len)
        i -= log.ptr[at++] == '\n';
    assert_int_equal(i, 0);
    return at;
}

void audited_rewrite(audited *a, uint16_t party, audited_edit *edit, void *ctx)
{
    dafl_bytes log = dafl_writer_bytes(&a->logs[party]);
    uint16_t k = lab_roster(a->l)->n_clients;
    size_t n = audited_lines(log), at = 0;
    dafl_writer out = {0};
    dafl_audit audit;

    dafl_audit_init(&audit, lab_identity(a->l, party), party, k);
    for (size_t i = 0; i < n; i++) {
        size_t end =
            at + audited_line_at((dafl_bytes){log.ptr + at, log.len - at}, 1);
        dafl_audit_line line;
        assert_ok(dafl_get_audit_line(
            &line, (dafl_bytes){log.ptr + at, end - 1 - at}, k));
        if (edit(ctx, &line, line.own.ptr))
            assert_ok(
                dafl_audit_add(&audit, &out, &line.event, line.more, line.ts));
        dafl_audit_line_drop(&line);
        at = end;
    }
    dafl_writer_drop(&a->logs[party]);
    a->logs[party] = out;
}
