/* SPDX-License-Identifier: Apache-2.0 */
/* deepafl audit verify: judge the audit logs of a run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/cli.h"
#include "agents/runfile.h"
#include "lib/file.h"
#include "protocol/audit_check.h"

/* Every party's log, and a few copies. */
#define LOGS_MAX ((size_t)4 * DAFL_PARTIES_MAX)

typedef struct {
    const char *roster_path, *config_path;
    bool json;
    const char *words[1 + LOGS_MAX]; /* "verify", logs */
    size_t n_words;
    dafl_map roster_file, config_file, files[LOGS_MAX];
    runfile *run; /* or the two files */
    dafl_roster roster;
    dafl_config config;
    dafl_audit_report *report;
} job;

static void job_drop(job *j)
{
    dafl_audit_report_free(&j->report);
    runfile_free(&j->run);
    dafl_map_close(&j->roster_file);
    dafl_map_close(&j->config_file);
    for (size_t i = 0; i < LOGS_MAX; i++)
        dafl_map_close(&j->files[i]);
}

static const char *name_of(const job *j, uint16_t party)
{
    return party < j->roster.n ? j->roster.parties[party].id.name : "?";
}

static const char *file_of(const job *j, size_t log)
{
    return log < j->n_words - 1 ? j->words[1 + log] : "";
}

/* ---- for people ---- */

/* "0-4,7". */
static void print_members(const dafl_members *m)
{
    const char *comma = "";

    for (size_t i = 0; i < m->n; i++) {
        size_t first = i;
        if (!dafl_members_has(m, i))
            continue;
        while (dafl_members_has(m, i + 1))
            i++;
        printf(first < i ? "%s%zu-%zu" : "%s%zu", comma, first, i);
        comma = ",";
    }
}

static void print_hex(const char *before, const void *bytes, size_t len)
{
    const uint8_t *b = bytes;

    printf("%s", before);
    for (size_t i = 0; i < len; i++)
        printf("%02x", b[i]);
}

static void print_logs(const job *j)
{
    for (size_t i = 0; i < j->report->n_logs; i++) {
        const dafl_audit_seen *seen = &j->report->logs[i];
        printf("%s: %llu lines of %s%s\n", file_of(j, i),
               (unsigned long long)seen->n_lines, name_of(j, seen->party),
               seen->older     ? ", an older copy"
               : seen->damaged ? ", damaged"
                               : "");
    }
}

static void print_slots(const job *j)
{
    for (size_t i = 0; i < j->report->n_slots; i++) {
        const dafl_audit_slot *s = &j->report->slots[i];
        if (i == 0 || memcmp(s->run.b, s[-1].run.b, sizeof s->run.b) != 0) {
            print_hex("\nrun ", s->run.b, sizeof s->run.b);
            printf("\n");
        }
        printf("  slot %u, question %u: ", (unsigned)s->slot,
               (unsigned)s->question);
        if (s->cohort.n > 0) {
            printf("%zu clients ", dafl_members_count(&s->cohort));
            print_members(&s->cohort);
            printf(", ");
        }
        if (s->ended && s->fault == DAFL_FAULT_NONE)
            print_hex("sum ", s->sum.b, sizeof s->sum.b);
        else
            printf("%s%s", s->confirmed ? "opened, not used: " : "nothing: ",
                   s->ended ? dafl_fault_name(s->fault) : "no result");
        printf("\n");
    }
}

static void print_findings(const job *j)
{
    const dafl_audit_report *r = j->report;

    printf("\n");
    for (size_t i = 0; i < r->n_findings; i++)
        printf("%s: %s\n", dafl_audit_rule_name(r->findings[i].rule),
               r->findings[i].why.text);
    if (r->n_found > r->n_findings)
        printf("and %zu more\n", r->n_found - r->n_findings);
    for (size_t i = 0; i < r->n_proofs; i++) {
        const dafl_audit_proof *p = &r->proofs[i];
        printf("\nproof %zu: %s signed", i + 1, name_of(j, p->client));
        for (size_t k = 0; k < 2; k++) {
            const dafl_audit_statement *s = &r->statements[p->statements[k]];
            print_hex("\n  statement ", s->stmt.b, sizeof s->stmt.b);
            printf("\n    of slot %u, question %u, ", (unsigned)s->slot,
                   (unsigned)s->question);
            print_members(&s->u3);
            printf(" of ");
            print_members(&s->a);
            print_hex("\n    with ", s->signatures[p->client].b,
                      DAFL_SIGNATURE_BYTES);
        }
        printf("\n");
    }
    if (r->n_found == 0)
        printf("no findings\n");
    else
        printf("\n%zu findings%s\n", r->n_found,
               r->n_proofs > 0 ? "; --json gives the proofs in full" : "");
}

/* ---- for programs ---- */

static json_t *json_hex(const void *bytes, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *b = bytes;
    char text[2 * DAFL_SIGNATURE_BYTES + 1];

    for (size_t i = 0; i < len; i++) {
        text[2 * i] = digits[b[i] >> 4];
        text[2 * i + 1] = digits[b[i] & 15];
    }
    return json_stringn(text, 2 * len);
}

static json_t *json_members(const dafl_members *m)
{
    json_t *list = json_array();

    for (size_t i = 0; i < m->n; i++)
        if (dafl_members_has(m, i))
            (void)json_array_append_new(list, json_integer((json_int_t)i));
    return list;
}

static json_t *json_logs(const job *j)
{
    json_t *list = json_array();

    for (size_t i = 0; i < j->report->n_logs; i++) {
        const dafl_audit_seen *seen = &j->report->logs[i];
        (void)json_array_append_new(
            list, json_pack("{s:s, s:s, s:I, s:b, s:b}", "file", file_of(j, i),
                            "party", name_of(j, seen->party), "lines",
                            (json_int_t)seen->n_lines, "older", seen->older,
                            "damaged", seen->damaged));
    }
    return list;
}

static json_t *json_slots(const job *j)
{
    json_t *list = json_array();

    for (size_t i = 0; i < j->report->n_slots; i++) {
        const dafl_audit_slot *s = &j->report->slots[i];
        (void)json_array_append_new(
            list,
            json_pack("{s:o, s:I, s:I, s:o, s:b, s:s, s:o}", "run",
                      json_hex(s->run.b, sizeof s->run.b), "slot",
                      (json_int_t)s->slot, "question", (json_int_t)s->question,
                      "cohort", json_members(&s->cohort), "opened",
                      s->confirmed, "result",
                      s->ended ? dafl_fault_name(s->fault) : "none", "sum",
                      json_hex(s->sum.b, sizeof s->sum.b)));
    }
    return list;
}

static json_t *json_findings(const job *j)
{
    json_t *list = json_array();

    for (size_t i = 0; i < j->report->n_findings; i++) {
        const dafl_audit_finding *f = &j->report->findings[i];
        (void)json_array_append_new(
            list, json_pack("{s:s, s:s, s:s, s:s, s:I, s:s}", "rule",
                            dafl_audit_rule_name(f->rule), "means",
                            dafl_audit_rule_text(f->rule), "party",
                            name_of(j, f->party), "file", file_of(j, f->log),
                            "line", (json_int_t)f->seq, "why", f->why.text));
    }
    return list;
}

static json_t *json_statement(const dafl_audit_statement *s, uint16_t signer)
{
    json_t *digests = json_array();

    for (size_t at = 0; at < s->digests.len; at += DAFL_HASH_BYTES)
        (void)json_array_append_new(
            digests, json_hex(s->digests.ptr + at, DAFL_HASH_BYTES));
    return json_pack(
        "{s:o, s:I, s:I, s:I, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}",
        "h_setup", json_hex(s->h_setup.b, sizeof s->h_setup.b), "slot",
        (json_int_t)s->slot, "question", (json_int_t)s->question, "rank",
        (json_int_t)s->rank, "model", json_hex(s->model.b, sizeof s->model.b),
        "len", (json_int_t)s->len, "w", (json_int_t)s->w, "he",
        json_hex(s->he.b, sizeof s->he.b), "a", json_members(&s->a), "u3",
        json_members(&s->u3), "digests", digests, "stmt",
        json_hex(s->stmt.b, sizeof s->stmt.b), "signature",
        json_hex(s->signatures[signer].b, DAFL_SIGNATURE_BYTES));
}

static json_t *json_proofs(const job *j)
{
    const dafl_audit_report *r = j->report;
    json_t *list = json_array();

    for (size_t i = 0; i < r->n_proofs; i++) {
        const dafl_audit_proof *p = &r->proofs[i];
        const dafl_audit_statement *s = &r->statements[p->statements[0]];
        (void)json_array_append_new(
            list,
            json_pack(
                "{s:s, s:o, s:o, s:I, s:I, s:[o, o]}", "party",
                name_of(j, p->client), "ed25519",
                json_hex(j->roster.parties[p->client].id.sign_pk, 32), "run",
                json_hex(s->run.b, sizeof s->run.b), "slot",
                (json_int_t)s->slot, "clients", (json_int_t)j->roster.n_clients,
                "statements", json_statement(s, p->client),
                json_statement(&r->statements[p->statements[1]], p->client)));
    }
    return list;
}

/* ---- the work ---- */

/* What all parties agreed on: from run.yaml, or from the bytes that they
 * hashed. */
static dafl_err read_agreement(job *j, dafl_why *why)
{
    dafl_why reason = {{0}};

    if (j->config_path == NULL)
        return dafl_fail(why, DAFL_ERR_INPUT, "--config is needed");
    if (j->roster_path == NULL) {
        DAFL_TRY(runfile_load(&j->run, j->config_path, why));
        j->roster = j->run->roster;
        j->config = j->run->config;
        return DAFL_OK;
    }
    DAFL_TRY(dafl_map_open(&j->roster_file, j->roster_path, why));
    if (dafl_get_roster(&j->roster, j->roster_file.bytes, &reason) != DAFL_OK)
        return dafl_fail(why, DAFL_ERR_INPUT, "%s: %s", j->roster_path,
                         reason.text);
    DAFL_TRY(dafl_map_open(&j->config_file, j->config_path, why));
    if (dafl_get_config(&j->config, j->config_file.bytes, &reason) != DAFL_OK)
        return dafl_fail(why, DAFL_ERR_INPUT, "%s: %s", j->config_path,
                         reason.text);
    return DAFL_OK;
}

static dafl_err read_files(job *j, dafl_audit_log *logs, dafl_why *why)
{
    DAFL_TRY(read_agreement(j, why));
    for (size_t i = 0; i + 1 < j->n_words; i++) {
        DAFL_TRY(dafl_map_open(&j->files[i], j->words[1 + i], why));
        logs[i] = (dafl_audit_log){j->words[1 + i], j->files[i].bytes};
    }
    return DAFL_OK;
}

static dafl_err verify(job *j, dafl_why *why)
{
    dafl_audit_log logs[LOGS_MAX];

    if (strcmp(j->words[0], "verify") != 0)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "unknown word '%.64s', only 'verify' is known",
                         j->words[0]);
    DAFL_TRY(read_files(j, logs, why));
    DAFL_TRY(dafl_audit_verify(&j->report, &j->roster, &j->config, logs,
                               j->n_words - 1, why));
    if (!j->json) {
        print_logs(j);
        print_slots(j);
        print_findings(j);
        return DAFL_OK;
    }
    return cli_printed(
        cli_print_json(json_pack("{s:b, s:o, s:o, s:I, s:o, s:o}", "clean",
                                 j->report->n_found == 0, "logs", json_logs(j),
                                 "slots", json_slots(j), "found",
                                 (json_int_t)j->report->n_found, "findings",
                                 json_findings(j), "proofs", json_proofs(j))),
        why);
}

int cmd_audit(int argc, char **argv)
{
    job *j = calloc(1, sizeof *j);
    dafl_why why = {{0}};
    dafl_err err;
    int code;

    if (j == NULL)
        return cli_fail("audit", DAFL_ERR_NOMEM, &why);
    {
        const opt opts[] = {
            {OPT_HEADING, NULL, NULL, NULL, "Options"},
            {OPT_TEXT, "config", "RUN.yaml", &j->config_path,
             "what the parties agreed on"},
            {OPT_TEXT, "roster", "FILE", &j->roster_path,
             "with it, both files are the canonical bytes of roster and "
             "config"},
            {OPT_FLAG, "json", NULL, &j->json, "one JSON object on stdout"},
        };
        code = cli_parse_words(
            "audit", "verify --config RUN.yaml LOG..",
            "Judge the audit logs of a run: each by itself, and what parties "
            "say of each\nother. Exit code 1 when anything is found.",
            opts, sizeof opts / sizeof opts[0], argc, argv, j->words, 2,
            sizeof j->words / sizeof j->words[0], &j->n_words);
    }
    if (code < 0) {
        err = verify(j, &why);
        code = err != DAFL_OK           ? cli_fail("audit", err, &why)
               : j->report->n_found > 0 ? EXIT_FAILED
                                        : 0;
    }
    job_drop(j);
    free(j);
    return code;
}
