/* SPDX-License-Identifier: Apache-2.0 */
#include "agents/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agents/journal.h"
#include "agents/vault.h"

#define LABEL "deepafl/generation"
#define MARK_LABEL "deepafl/records"

struct store {
    store_file dir, lock, counter;
    char *journal_path, *vault_path, *counter_path;
    store_stamp stamp; /* of the counter */
    store_stamp mark;  /* serial: records that were durable */
    journal *journal;
    vault *vault;     /* NULL: none */
    dafl_err refusal; /* the first error, for good */
    dafl_why why;
};

/* ---- opening ---- */

/* One process at a time; its pid is for the others' error. */
static dafl_err take_lock(store *s, const char *dir, dafl_why *why)
{
    char *path = store_path(dir, "lock"), pid[32] = "";
    bool held = false;
    size_t len = 0;
    dafl_err err;

    if (path == NULL)
        return dafl_fail(why, DAFL_ERR_NOMEM, "%s: out of memory", dir);
    err = store_file_open(&s->lock, path, O_CREAT, 077, why);
    free(path);
    DAFL_TRY(err);
    err = store_file_lock(&s->lock, &held, why);
    if (held) {
        DAFL_TRY(store_file_read(&s->lock, pid, sizeof pid - 1, 0, &len, why));
        pid[strspn(pid, "0123456789")] = '\0';
        return dafl_fail(why, err,
                         "%s: is in use by another process (pid %s); end that "
                         "one or name another directory",
                         dir, pid[0] == '\0' ? "unknown" : pid);
    }
    DAFL_TRY(err);
    /* Of one length, so that nothing of an older pid stays. */
    (void)snprintf(pid, sizeof pid, "%-20ld\n", (long)getpid());
    return store_file_write(&s->lock, pid, strlen(pid), 0, why);
}

static dafl_err open_counter(store *s, bool fresh, dafl_why *why)
{
    const char *path = s->counter_path;
    bool found = false;

    if (!fresh && !store_path_taken(path))
        return dafl_fail(why, DAFL_ERR_INPUT, "%s: is missing: %s", path,
                         STORE_LOST);
    DAFL_TRY(store_file_open(&s->counter, path, fresh ? O_CREAT : 0, 077, why));
    DAFL_TRY(store_stamp_read(&s->stamp, &found, &s->counter, LABEL, why));
    if (!found && !fresh)
        return dafl_fail(why, DAFL_ERR_INPUT, "%s: is damaged: %s", path,
                         STORE_LOST);
    if (!found) {
        s->stamp = (store_stamp){0};
        memcpy(s->stamp.id, journal_id(s->journal), STORE_ID_BYTES);
        return store_stamp_write(&s->stamp, &s->counter, LABEL, why);
    }
    if (memcmp(s->stamp.id, journal_id(s->journal), STORE_ID_BYTES) != 0)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "%s: belongs to another journal: %s", path,
                         STORE_LOST);
    return DAFL_OK;
}

/* The journal is the first to count, so the others are as far or one behind. */
static dafl_err check_generation(const store *s, const char *path,
                                 uint64_t generation, dafl_why *why)
{
    uint64_t ours = journal_generation(s->journal);

    if (generation == ours || generation + 1 == ours)
        return DAFL_OK;
    return dafl_fail(why, DAFL_ERR_INPUT,
                     "%s was opened %llu times and %s %llu times, so one of "
                     "them is an old copy: %s",
                     s->journal_path, (unsigned long long)ours, path,
                     (unsigned long long)generation, STORE_LOST);
}

/* SQLite takes a log whose end is missing for one that ends there. */
static dafl_err check_records(store *s, dafl_why *why)
{
    uint64_t n = journal_records(s->journal);
    bool found = false;

    DAFL_TRY(store_mark_read(&s->mark, &found, &s->counter, MARK_LABEL, why));
    if (found && s->mark.serial > n)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "%s has %llu records and had %llu, so its end is "
                         "missing: %s",
                         s->journal_path, (unsigned long long)n,
                         (unsigned long long)s->mark.serial, STORE_LOST);
    memcpy(s->mark.id, s->stamp.id, STORE_ID_BYTES);
    return DAFL_OK;
}

/* Bring the vault and the counter to the journal's generation. */
static dafl_err follow(store *s, dafl_why *why)
{
    s->stamp.generation = journal_generation(s->journal);
    if (s->vault != NULL)
        DAFL_TRY(vault_begin(s->vault, s->stamp.generation, why));
    return store_stamp_write(&s->stamp, &s->counter, LABEL, why);
}

static dafl_err begin(store *s, dafl_why *why)
{
    uint64_t now = journal_generation(s->journal);

    DAFL_TRY(check_generation(s, s->counter_path, s->stamp.generation, why));
    if (s->vault != NULL)
        DAFL_TRY(check_generation(s, s->vault_path, vault_generation(s->vault),
                                  why));
    DAFL_TRY(check_records(s, why));
    /* The names first: what is counted must be found again. */
    DAFL_TRY(store_dir_sync(&s->dir, why));
    if (now == 0)
        DAFL_TRY(store_parent_sync(s->dir.path, why));
    /* The opening before was cut short: finish it, or it would be two. */
    if (s->stamp.generation != now ||
        (s->vault != NULL && vault_generation(s->vault) != now))
        DAFL_TRY(follow(s, why));
    DAFL_TRY(journal_begin(s->journal, now + 1, why));
    /* SQLite has created its log by now; it does not look whether the sync of
     * the name succeeds. */
    DAFL_TRY(store_dir_sync(&s->dir, why));
    return follow(s, why);
}

static dafl_err load(store *s, const char *dir, const char *owner,
                     bool has_vault, size_t record_bytes, uint32_t slots,
                     dafl_why *why)
{
    bool fresh = false;

    DAFL_TRY(store_dir_open(&s->dir, dir, why));
    DAFL_TRY(take_lock(s, dir, why));
    s->journal_path = store_path(dir, "journal.db");
    s->vault_path = store_path(dir, "vault");
    s->counter_path = store_path(dir, "generation");
    if (s->journal_path == NULL || s->vault_path == NULL ||
        s->counter_path == NULL)
        return dafl_fail(why, DAFL_ERR_NOMEM, "%s: out of memory", dir);
    /* The journal is made before the others: where they are, it was. */
    DAFL_TRY(journal_open(&s->journal, s->journal_path, owner, has_vault,
                          !store_path_taken(s->vault_path) &&
                              !store_path_taken(s->counter_path),
                          why));
    fresh = journal_generation(s->journal) == 0;
    if (has_vault)
        DAFL_TRY(vault_open(&s->vault, s->vault_path, fresh,
                            journal_id(s->journal), record_bytes, slots, why));
    DAFL_TRY(open_counter(s, fresh, why));
    return begin(s, why);
}

dafl_err store_open(store **out, const char *dir, const char *owner,
                    bool has_vault, size_t vault_record_bytes,
                    uint32_t vault_slots, dafl_why *why)
{
    dafl_err err = DAFL_ERR_NOMEM;
    store *s = NULL;

    if (dir[0] == '\0' || owner[0] == '\0')
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "a store needs a directory and an owner");
    s = calloc(1, sizeof *s);
    if (s == NULL)
        return dafl_fail(why, err, "%s: out of memory", dir);
    s->dir.fd = s->lock.fd = s->counter.fd = -1;
    err = load(s, dir, owner, has_vault, vault_record_bytes, vault_slots, why);
    if (err == DAFL_OK) {
        *out = s;
        return DAFL_OK;
    }
    s->refusal = err;
    store_close(&s);
    return err;
}

void store_close(store **out)
{
    store *s = *out;

    if (s == NULL)
        return;
    journal_close(&s->journal, s->refusal != DAFL_OK);
    vault_close(&s->vault);
    store_file_close(&s->counter);
    store_file_close(&s->lock); /* others may come now */
    store_file_close(&s->dir);
    free(s->journal_path);
    free(s->vault_path);
    free(s->counter_path);
    free(s);
    *out = NULL;
}

/* ---- effects ---- */

/* From now on nothing goes. */
static dafl_err refuse(store *s, dafl_err err)
{
    /* What the user could have corrected when it was opened is by now a disk
     * that does not do its work. */
    if (err != DAFL_OK)
        s->refusal = err == DAFL_ERR_INPUT ? DAFL_ERR_SYS : err;
    return s->refusal;
}

/* Secrets first, then the records that were appended after them; then how many
 * there are. */
static dafl_err settle(store *s)
{
    if (s->vault != NULL)
        DAFL_TRY(vault_sync(s->vault, &s->why));
    DAFL_TRY(journal_commit(s->journal, &s->why));
    if (s->mark.serial == journal_records(s->journal))
        return DAFL_OK;
    s->mark.serial = journal_records(s->journal);
    return store_mark_write(&s->mark, &s->counter, MARK_LABEL, &s->why);
}

dafl_err store_append(store *s, dafl_bytes record)
{
    if (s->refusal != DAFL_OK)
        return s->refusal;
    return refuse(s, journal_append(s->journal, record, &s->why));
}

/* Before the vault is written to: no record may wait. */
static dafl_err turn_to_vault(store *s)
{
    if (s->refusal != DAFL_OK)
        return s->refusal;
    if (s->vault == NULL)
        return dafl_fail(&s->why, DAFL_ERR_ARG, "%s: has no vault",
                         s->dir.path);
    return journal_pending(s->journal) ? settle(s) : DAFL_OK;
}

dafl_err store_keep(store *s, uint32_t slot, dafl_bytes secret)
{
    dafl_err err = turn_to_vault(s);

    if (err == DAFL_OK)
        err = vault_keep(s->vault, slot, secret, &s->why);
    return refuse(s, err);
}

dafl_err store_erase(store *s, uint32_t upto)
{
    dafl_err err = turn_to_vault(s);

    if (err == DAFL_OK)
        err = vault_erase(s->vault, upto, &s->why);
    return refuse(s, err);
}

dafl_err store_flush(store *s)
{
    return s->refusal != DAFL_OK ? s->refusal : refuse(s, settle(s));
}

const char *store_why(const store *s)
{
    return s->why.text;
}

/* ---- after a restart ---- */

dafl_err store_each_record(store *s, store_record_fn *fn, void *ctx)
{
    bool ours = false;
    dafl_err err = s->refusal;

    if (err != DAFL_OK)
        return err;
    err = journal_each(s->journal, fn, ctx, &ours, &s->why);
    return ours ? refuse(s, err) : err;
}

dafl_err store_each_secret(store *s, store_secret_fn *fn, void *ctx)
{
    bool ours = false;
    dafl_err err = s->refusal;

    if (err != DAFL_OK || s->vault == NULL)
        return err;
    err = vault_each(s->vault, fn, ctx, &ours, &s->why);
    return ours ? refuse(s, err) : err;
}

uint64_t store_generation(const store *s)
{
    return journal_generation(s->journal);
}
