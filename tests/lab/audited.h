/* SPDX-License-Identifier: Apache-2.0 */
/* Audit logs of a lab: judged, looked into, forged. */
#ifndef DAFL_TESTS_LAB_AUDITED_H
#define DAFL_TESTS_LAB_AUDITED_H

#include "protocol/audit_check.h"
#include "tests/lab/lab.h"

/* Copies of all logs, one for each party of the roster, which a test may
 * change. */
typedef struct {
    const lab *l;
    size_t n;
    dafl_writer logs[DAFL_PARTIES_MAX];
} audited;

audited audited_take(const lab *l);
void audited_drop(audited *a);
/* Judge them; those whose bit is set in `without` are left out. Free it. */
dafl_audit_report *audited_judge(const audited *a, uint64_t without);
/* The same of what the lab has; prints what is found. */
dafl_audit_report *audited_judge_lab(const lab *l);

size_t audited_count(const dafl_audit_report *r, dafl_audit_rule rule,
                     uint16_t party);
/* The first finding of a rule, or NULL. */
const dafl_audit_finding *audited_find(const dafl_audit_report *r,
                                       dafl_audit_rule rule, uint16_t party);
void audited_print(const dafl_audit_report *r);

/* Roster, config and logs as files of a directory that is there. */
void audited_write(const audited *a, const char *dir, uint64_t without);

/* The lines of a log: where line i begins, up to i = their number, its end. */
size_t audited_lines(dafl_bytes log);
size_t audited_line_at(dafl_bytes log, size_t i);

/* Write a party's log anew with its own key: `edit` may change a line (its
 * event; `more` as a copy that may be changed) or leave it out (false).
 * Numbers, chain and signatures are right again. */
typedef bool audited_edit(void *ctx, dafl_audit_line *line, uint8_t *more);
void audited_rewrite(audited *a, uint16_t party, audited_edit *edit, void *ctx);

#endif
