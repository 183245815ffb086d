/* SPDX-License-Identifier: Apache-2.0 */
#include "agents/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "crypto/hash.h"

#define APPLICATION_ID 0x4441464a /* "DAFJ" */
#define FORMAT 1
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

#define META                                                            \
    "CREATE TABLE meta(one INTEGER PRIMARY KEY CHECK (one = 1), owner " \
    "TEXT NOT NULL, id BLOB NOT NULL, vault INTEGER NOT NULL, "         \
    "generation INTEGER NOT NULL, records INTEGER NOT NULL) STRICT"
#define RECORD                                                     \
    "CREATE TABLE record(seq INTEGER PRIMARY KEY, bytes BLOB NOT " \
    "NULL, link BLOB NOT NULL) STRICT"

struct journal {
    char *path;
    sqlite3 *db;
    sqlite3_stmt *insert, *count;
    uint8_t id[STORE_ID_BYTES];
    uint64_t generation;
    uint64_t n;              /* records, appended ones too */
    dafl_digest first, link; /* of the chain */
    bool pending;            /* a transaction is open */
};

/* ---- errors ---- */

static dafl_err damaged(const journal *j, const char *how, dafl_why *why)
{
    return dafl_fail(why, DAFL_ERR_INPUT, "%s: is damaged (%s): %s", j->path,
                     how, STORE_LOST);
}

/* What SQLite's result code means. */
static dafl_err fail(const journal *j, int rc, const char *doing, dafl_why *why)
{
    int last = errno, code = rc & 0xff, sys = sqlite3_system_errno(j->db);

    /* It does not keep the number of every failure that it reports. */
    if (code == SQLITE_FULL)
        sys = ENOSPC;
    else if (code == SQLITE_IOERR && sys == 0)
        sys = last;

    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
        return damaged(j, sqlite3_errstr(code), why);
    if (code == SQLITE_NOMEM)
        return dafl_fail(why, DAFL_ERR_NOMEM, "%s: out of memory", j->path);
    return dafl_fail(why, DAFL_ERR_SYS, "%s: cannot %s: %s", j->path, doing,
                     sys != 0 ? strerror(sys) : sqlite3_errstr(rc));
}

static dafl_err run(const journal *j, const char *sql, dafl_why *why)
{
    int rc = sqlite3_exec(j->db, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK ? DAFL_OK : fail(j, rc, "write", why);
}

static dafl_err prepare(const journal *j, sqlite3_stmt **out, const char *sql,
                        dafl_why *why)
{
    int rc = sqlite3_prepare_v2(j->db, sql, -1, out, NULL);

    return rc == SQLITE_OK ? DAFL_OK : fail(j, rc, "read", why);
}

/* A step of a statement that gives no row; it is ready to be used again. */
static dafl_err finish(const journal *j, sqlite3_stmt *stmt, dafl_why *why)
{
    int rc = sqlite3_step(stmt);
    dafl_err err = rc == SQLITE_DONE ? DAFL_OK : fail(j, rc, "write", why);

    (void)sqlite3_reset(stmt);
    (void)sqlite3_clear_bindings(stmt);
    return err;
}

/* The text in the first row that `sql` gives, cut to fit; "" when it has none.
 * The last step counts too: it is the one that ends a transaction. */
static dafl_err first_text(const journal *j, char *out, size_t room,
                           const char *sql, dafl_why *why)
{
    sqlite3_stmt *stmt = NULL;
    dafl_err err = DAFL_OK;
    int rc;

    out[0] = '\0';
    DAFL_TRY(prepare(j, &stmt, sql, why));
    rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW) {
        const unsigned char *text = sqlite3_column_text(stmt, 0);
        if (text != NULL)
            (void)snprintf(out, room, "%s", (const char *)text);
    }
    while (rc == SQLITE_ROW)
        rc = sqlite3_step(stmt);
    if (rc != SQLITE_DONE)
        err = fail(j, rc, "read", why);
    (void)sqlite3_finalize(stmt);
    return err;
}

static dafl_err number(const journal *j, int64_t *out, const char *sql,
                       dafl_why *why)
{
    char text[32];

    DAFL_TRY(first_text(j, text, sizeof text, sql, why));
    *out = strtoll(text, NULL, 10);
    return DAFL_OK;
}

/* ---- the chain ---- */

static void chain_start(dafl_digest *link, const journal *j, const char *owner)
{
    dafl_hash h;

    dafl_hash_init(&h, "deepafl/journal");
    dafl_hash_part(&h, j->id, sizeof j->id);
    dafl_hash_part(&h, owner, strlen(owner));
    dafl_hash_end(&h, link);
}

static void chain_add(dafl_digest *link, uint64_t seq, dafl_bytes record)
{
    dafl_hash h;

    dafl_hash_init(&h, "deepafl/journal");
    dafl_hash_digest(&h, link);
    dafl_hash_u64(&h, seq);
    dafl_hash_part(&h, record.ptr, record.len);
    dafl_hash_end(&h, link);
}

/* Every record, checked against the chain; `fn` may be NULL. *link and *n are
 * those of the last one. */
static dafl_err walk(const journal *j, dafl_digest *link, uint64_t *n,
                     journal_fn *fn, void *ctx, bool *ours, dafl_why *why)
{
    sqlite3_stmt *rows = NULL;
    dafl_err err = DAFL_OK;
    int rc = SQLITE_OK;

    *ours = true;
    *link = j->first;
    *n = 0;
    DAFL_TRY(prepare(j, &rows,
                     "SELECT seq, bytes, link FROM record ORDER BY "
                     "seq",
                     why));
    while (err == DAFL_OK && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        dafl_bytes record = {sqlite3_column_blob(rows, 1),
                             (size_t)sqlite3_column_bytes(rows, 1)};
        const void *written = sqlite3_column_blob(rows, 2);
        size_t len = (size_t)sqlite3_column_bytes(rows, 2);

        chain_add(link, ++*n, record);
        if (sqlite3_column_int64(rows, 0) != (int64_t)*n || written == NULL ||
            len != sizeof link->b || memcmp(written, link->b, len) != 0)
            err = damaged(j, "a record is not what was written", why);
        else if (fn != NULL && (err = fn(ctx, record)) != DAFL_OK)
            *ours = false;
    }
    if (err == DAFL_OK && rc != SQLITE_DONE)
        err = fail(j, rc, "read", why);
    (void)sqlite3_finalize(rows);
    return err;
}

/* ---- opening ---- */

/* Everything that goes with the database is ours alone, before SQLite looks at
 * it. */
static dafl_err check_files(const journal *j, bool may_create, dafl_why *why)
{
    static const char *const besides[] = {"-wal", "-journal", "-shm"};
    store_file f;

    if (!may_create && !store_path_taken(j->path))
        return dafl_fail(why, DAFL_ERR_INPUT, "%s: is missing: %s", j->path,
                         STORE_LOST);
    DAFL_TRY(store_file_open(&f, j->path, may_create ? O_CREAT : 0, 077, why));
    store_file_close(&f);
    for (size_t i = 0; i < sizeof besides / sizeof besides[0]; i++) {
        char *path = sqlite3_mprintf("%s%s", j->path, besides[i]);
        dafl_err err = path == NULL ? DAFL_ERR_NOMEM : DAFL_OK;
        if (err == DAFL_OK && store_path_taken(path)) {
            err = store_file_open(&f, path, 0, 077, why);
            if (err == DAFL_OK)
                store_file_close(&f);
        }
        sqlite3_free(path);
        DAFL_TRY(err);
    }
    return DAFL_OK;
}

/* Nothing in the file may run, and nothing is written to a file that may turn
 * out to be foreign. */
static dafl_err connect_db(journal *j, dafl_why *why)
{
    static const int off[] = {SQLITE_DBCONFIG_TRUSTED_SCHEMA,
                              SQLITE_DBCONFIG_ENABLE_TRIGGER,
                              SQLITE_DBCONFIG_ENABLE_VIEW,
                              SQLITE_DBCONFIG_DQS_DML, SQLITE_DBCONFIG_DQS_DDL};
    static const int on[] = {SQLITE_DBCONFIG_DEFENSIVE,
                             SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE};
    int rc = sqlite3_open_v2(j->path, &j->db,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
                                 SQLITE_OPEN_EXRESCODE,
                             NULL);

    for (size_t i = 0; rc == SQLITE_OK && i < sizeof off / sizeof off[0]; i++)
        rc = sqlite3_db_config(j->db, off[i], 0, NULL);
    for (size_t i = 0; rc == SQLITE_OK && i < sizeof on / sizeof on[0]; i++)
        rc = sqlite3_db_config(j->db, on[i], 1, NULL);
    if (rc != SQLITE_OK)
        return fail(j, rc, "open", why);
    /* Exclusive: no file of shared memory beside it. */
    return run(j,
               "PRAGMA locking_mode = EXCLUSIVE; PRAGMA cell_size_check = ON;"
               "PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY;"
               "PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = FULL",
               why);
}

/* The file is ours; *empty: it will be. */
static dafl_err check_kind(const journal *j, bool *empty, dafl_why *why)
{
    int64_t id = 0, format = 0, things = 0;

    DAFL_TRY(number(j, &id, "PRAGMA application_id", why));
    DAFL_TRY(number(j, &format, "PRAGMA user_version", why));
    DAFL_TRY(number(j, &things, "SELECT count(*) FROM sqlite_schema", why));
    *empty = id == 0 && format == 0 && things == 0;
    if (*empty)
        return DAFL_OK;
    if (id != APPLICATION_ID)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "%s: is a database of another program; name another "
                         "directory",
                         j->path);
    if (format != FORMAT)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "%s: has format %lld, this program knows %d; use the "
                         "version that wrote it",
                         j->path, (long long)format, FORMAT);
    return DAFL_OK;
}

static dafl_err check_schema(const journal *j, dafl_why *why)
{
    char text[512];
    int64_t things = 0;

    DAFL_TRY(first_text(j, text, sizeof text, "PRAGMA quick_check(1)", why));
    if (strcmp(text, "ok") != 0)
        return damaged(j, text, why);
    DAFL_TRY(number(j, &things, "SELECT count(*) FROM sqlite_schema", why));
    DAFL_TRY(first_text(j, text, sizeof text,
                        "SELECT group_concat(sql, ';') FROM (SELECT sql FROM "
                        "sqlite_schema ORDER BY name)",
                        why));
    if (things != 2 || strcmp(text, META ";" RECORD) != 0)
        return damaged(j, "not the tables that it was made with", why);
    return DAFL_OK;
}

static dafl_err take_meta(journal *j, sqlite3_stmt *row, const char *owner,
                          bool has_vault, int64_t *records, dafl_why *why)
{
    const char *name = (const char *)sqlite3_column_text(row, 0);
    const void *id = sqlite3_column_blob(row, 1);
    int64_t generation = sqlite3_column_int64(row, 3);

    *records = sqlite3_column_int64(row, 4);
    if (name == NULL || id == NULL ||
        sqlite3_column_bytes(row, 1) != STORE_ID_BYTES || generation < 0)
        return damaged(j, "its head makes no sense", why);
    if (strcmp(name, owner) != 0)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "%s: is the journal of '%s', not of '%s'; name the "
                         "directory of '%s'",
                         j->path, name, owner, owner);
    if ((sqlite3_column_int64(row, 2) != 0) != has_vault)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "%s: was made for a party %s a vault; name another "
                         "directory",
                         j->path, has_vault ? "without" : "with");
    memcpy(j->id, id, STORE_ID_BYTES);
    j->generation = (uint64_t)generation;
    return DAFL_OK;
}

static dafl_err read_meta(journal *j, const char *owner, bool has_vault,
                          int64_t *records, dafl_why *why)
{
    sqlite3_stmt *row = NULL;
    dafl_err err;
    int rc;

    DAFL_TRY(prepare(j, &row,
                     "SELECT owner, id, vault, generation, records FROM meta",
                     why));
    rc = sqlite3_step(row);
    err = rc == SQLITE_ROW ? take_meta(j, row, owner, has_vault, records, why)
          : rc == SQLITE_DONE ? damaged(j, "its head is missing", why)
                              : fail(j, rc, "read", why);
    (void)sqlite3_finalize(row);
    return err;
}

static dafl_err create(journal *j, const char *owner, bool has_vault,
                       dafl_why *why)
{
    sqlite3_stmt *stmt = NULL;
    dafl_err err;

    randombytes_buf(j->id, sizeof j->id);
    DAFL_TRY(run(j,
                 "BEGIN IMMEDIATE;"
                 "PRAGMA application_id = " TEXT(
                     APPLICATION_ID) ";"
                                     "PRAGMA user_version = " TEXT(
                                         FORMAT) ";" META ";" RECORD,
                 why));
    DAFL_TRY(
        prepare(j, &stmt, "INSERT INTO meta VALUES (1, ?, ?, ?, 0, 0)", why));
    (void)sqlite3_bind_text(stmt, 1, owner, -1, SQLITE_STATIC);
    (void)sqlite3_bind_blob(stmt, 2, j->id, sizeof j->id, SQLITE_STATIC);
    (void)sqlite3_bind_int(stmt, 3, has_vault);
    err = finish(j, stmt, why);
    (void)sqlite3_finalize(stmt);
    return err == DAFL_OK ? run(j, "COMMIT", why) : err;
}

/* From here on SQLite may write. */
static dafl_err use_log(const journal *j, dafl_why *why)
{
    char mode[16];

    DAFL_TRY(
        first_text(j, mode, sizeof mode, "PRAGMA journal_mode = WAL", why));
    if (strcmp(mode, "wal") != 0)
        return dafl_fail(why, DAFL_ERR_SYS,
                         "%s: SQLite cannot keep a log on this file system",
                         j->path);
    return DAFL_OK;
}

static dafl_err load(journal *j, const char *owner, bool has_vault,
                     bool may_create, dafl_why *why)
{
    bool empty = false, ours = false;
    int64_t records = 0;

    DAFL_TRY(check_files(j, may_create, why));
    DAFL_TRY(connect_db(j, why));
    DAFL_TRY(check_kind(j, &empty, why));
    if (empty && !may_create)
        return damaged(j, "it is empty", why);
    if (!empty)
        DAFL_TRY(check_schema(j, why));
    DAFL_TRY(use_log(j, why));
    if (empty)
        DAFL_TRY(create(j, owner, has_vault, why));
    DAFL_TRY(read_meta(j, owner, has_vault, &records, why));
    chain_start(&j->first, j, owner);
    DAFL_TRY(walk(j, &j->link, &j->n, NULL, NULL, &ours, why));
    if (records != (int64_t)j->n)
        return damaged(j, "records are missing", why);
    DAFL_TRY(
        prepare(j, &j->insert, "INSERT INTO record VALUES (?, ?, ?)", why));
    return prepare(j, &j->count, "UPDATE meta SET generation = ?, records = ?",
                   why);
}

dafl_err journal_open(journal **out, const char *path, const char *owner,
                      bool has_vault, bool may_create, dafl_why *why)
{
    dafl_err err = DAFL_ERR_NOMEM;
    journal *j = calloc(1, sizeof *j);

    if (j != NULL)
        j->path = strdup(path);
    if (j == NULL || j->path == NULL)
        dafl_why_set(why, "%s: out of memory", path);
    else
        err = load(j, owner, has_vault, may_create, why);
    if (err == DAFL_OK)
        *out = j;
    else
        journal_close(&j, true);
    return err;
}

void journal_close(journal **out, bool broken)
{
    journal *j = *out;

    if (j == NULL)
        return;
    if (j->pending && !broken)
        (void)sqlite3_exec(j->db, "ROLLBACK", NULL, NULL, NULL);
    (void)sqlite3_finalize(j->insert);
    (void)sqlite3_finalize(j->count);
    /* The log goes into the database now, or when it is next opened. */
    if (!broken)
        (void)sqlite3_db_config(j->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0,
                                NULL);
    (void)sqlite3_close(j->db);
    free(j->path);
    free(j);
    *out = NULL;
}

const uint8_t *journal_id(const journal *j)
{
    return j->id;
}

uint64_t journal_generation(const journal *j)
{
    return j->generation;
}

uint64_t journal_records(const journal *j)
{
    return j->n;
}

/* ---- writing ---- */

static dafl_err open_transaction(journal *j, dafl_why *why)
{
    if (!j->pending)
        DAFL_TRY(run(j, "BEGIN IMMEDIATE", why));
    j->pending = true;
    return DAFL_OK;
}

dafl_err journal_begin(journal *j, uint64_t generation, dafl_why *why)
{
    /* What an earlier life left in the log belongs to its generation. */
    int rc = sqlite3_wal_checkpoint_v2(j->db, NULL, SQLITE_CHECKPOINT_TRUNCATE,
                                       NULL, NULL);

    if (rc != SQLITE_OK)
        return fail(j, rc, "write", why);
    DAFL_TRY(open_transaction(j, why));
    j->generation = generation;
    return journal_commit(j, why);
}

dafl_err journal_append(journal *j, dafl_bytes record, dafl_why *why)
{
    if (record.len == 0 || record.len > JOURNAL_RECORD_MAX)
        return dafl_fail(why, DAFL_ERR_ARG, "%s: cannot hold %zu bytes",
                         j->path, record.len);
    DAFL_TRY(open_transaction(j, why));
    chain_add(&j->link, ++j->n, record);
    (void)sqlite3_bind_int64(j->insert, 1, (int64_t)j->n);
    (void)sqlite3_bind_blob64(j->insert, 2, record.ptr, record.len,
                              SQLITE_STATIC);
    (void)sqlite3_bind_blob(j->insert, 3, j->link.b, sizeof j->link.b,
                            SQLITE_STATIC);
    return finish(j, j->insert, why);
}

bool journal_pending(const journal *j)
{
    return j->pending;
}

dafl_err journal_commit(journal *j, dafl_why *why)
{
    if (!j->pending)
        return DAFL_OK;
    (void)sqlite3_bind_int64(j->count, 1, (int64_t)j->generation);
    (void)sqlite3_bind_int64(j->count, 2, (int64_t)j->n);
    DAFL_TRY(finish(j, j->count, why));
    DAFL_TRY(run(j, "COMMIT", why));
    j->pending = false;
    return DAFL_OK;
}

dafl_err journal_each(journal *j, journal_fn *fn, void *ctx, bool *ours,
                      dafl_why *why)
{
    dafl_digest link;
    uint64_t n = 0;

    return walk(j, &link, &n, fn, ctx, ours, why);
}
