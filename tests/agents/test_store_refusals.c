/* SPDX-License-Identifier: Apache-2.0 */
/* Properties D8 and R2: a directory that is not what this party left there is
 * refused with a sentence, and stays as it is. */
#define _DEFAULT_SOURCE /* chown */
#include <fcntl.h>
#include <sys/wait.h>

#include <sqlite3.h>

#include "tests/agents/store_party.h"

/* Refused by opening, in words that include `words`. */
static void assert_refused(const char *path, dafl_err err, const char *words)
{
    store *s = NULL;
    dafl_why why = {""};

    assert_int_equal(party_open(&s, path, &why), err);
    assert_null(s);
    assert_says(&why, words);
    assert_says(&why, path);
}

/* For whoever is to find out what happened: every file is as it was found, but
 * the pid in the lock. */
static void assert_left_alone(const snap *before, const snap *after)
{
    for (size_t i = 0; i < before->n; i++) {
        size_t j = snap_find(after, before->file[i].name);
        if (strcmp(before->file[i].name, "lock") == 0)
            continue;
        assert_int_equal(before->file[i].len, after->file[j].len);
        assert_memory_equal(before->file[i].bytes, after->file[j].bytes,
                            after->file[j].len);
    }
}

static void assert_lost(const char *file, const char *words)
{
    snap before, after;

    snap_take(&before, at("party"));
    assert_refused(at("party"), DAFL_ERR_INPUT, words);
    assert_refused(at("party"), DAFL_ERR_INPUT, file);
    assert_refused(at("party"), DAFL_ERR_INPUT, "E_STATE_LOST");
    assert_refused(at("party"), DAFL_ERR_INPUT, "not with a backup");
    snap_take(&after, at("party"));
    assert_left_alone(&before, &after);
    snap_drop(&before);
    snap_drop(&after);
}

/* Five records, secrets of slots 2, 3, 4. */
static int make_party(void **state)
{
    if (make_dir(state) != 0)
        return 1;
    assert_ok(party_run(at("party"), 5, NULL, -1, NULL));
    return 0;
}

static int remove_party(void **state)
{
    remove_all(at("party"));
    return remove_dir(state);
}

/* Let SQLite itself change the journal. */
static void change(const char *sql)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(at("party/journal.db"), &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* ---- whose it is ---- */

static void other_owner_is_refused(void **state)
{
    store *s = NULL;
    dafl_why why = {""};

    (void)state;
    assert_int_equal(store_open(&s, at("party"), "bob", true,
                                PARTY_SECRET_BYTES, PARTY_SLOTS, &why),
                     DAFL_ERR_INPUT);
    assert_says(&why, "'alice'");
    assert_says(&why, "'bob'");
    assert_int_equal(store_open(&s, at("party"), "alice", false, 0, 0, &why),
                     DAFL_ERR_INPUT);
    assert_says(&why, "a party with a vault");
    assert_null(s);
    assert_int_equal(party_check(at("party"), 5), 5);
}

static void foreign_database_is_refused_and_left_alone(void **state)
{
    snap before, after;

    (void)state;
    remove_all(at("party"));
    assert_int_equal(mkdir(at("party"), 0700), 0);
    write_file(at("party/journal.db"), "", 0);
    change("CREATE TABLE t(x); INSERT INTO t VALUES (1)");
    snap_take(&before, at("party"));
    assert_refused(at("party"), DAFL_ERR_INPUT, "another program");
    snap_take(&after, at("party"));
    assert_left_alone(&before, &after);
    snap_drop(&before);
    snap_drop(&after);
}

static void no_database_and_newer_one_are_refused(void **state)
{
    (void)state;
    write_file(at("party/journal.db"), "This is a text file.", 20);
    assert_lost("party/journal.db", "is damaged");
    remove_all(at("party"));
    assert_ok(party_run(at("party"), 5, NULL, -1, NULL));
    change("PRAGMA user_version = 2");
    assert_refused(at("party"), DAFL_ERR_INPUT, "has format 2");
    change("PRAGMA user_version = 1");
    assert_int_equal(party_check(at("party"), 5), 5);
}

static void vault_and_counter_of_another_store_are_refused(void **state)
{
    static const char *const names[] = {"vault", "generation"};
    snap own, other;

    (void)state;
    snap_take(&own, at("party"));
    remove_all(at("party"));
    assert_ok(party_run(at("party"), 5, NULL, -1, NULL));
    snap_take(&other, at("party"));
    for (size_t i = 0; i < COUNT(names); i++) {
        snap_put(&own, at("party"));
        snap_put_one(&other, at("party"), names[i]);
        assert_lost(names[i], "belongs to another journal");
    }
    snap_put(&own, at("party"));
    snap_put_one(&other, at("party"), "journal.db");
    assert_lost("vault", "belongs to another journal");
    snap_drop(&own);
    snap_drop(&other);
}

/* ---- what is missing or damaged ---- */

static void missing_file_is_not_made_anew(void **state)
{
    static const char *const names[] = {"journal.db", "vault", "generation"};
    snap own;

    (void)state;
    snap_take(&own, at("party"));
    for (size_t i = 0; i < COUNT(names); i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "party/%s", names[i]);
        snap_put(&own, at("party"));
        assert_int_equal(unlink(at(path)), 0);
        assert_lost(names[i], "is missing");
        assert_int_equal(access(at(path), F_OK), -1);
        write_file(at(path), "", 0); /* an empty one is no better */
        assert_lost(names[i], "is damaged");
    }
    snap_drop(&own);
}

/* Refused, or it holds the n records. */
static bool refused_or_right(size_t records)
{
    dafl_why why = {""};
    store *s = NULL;
    size_t n = 0;

    if (party_open(&s, at("party"), &why) != DAFL_OK) {
        assert_says(&why, at("party"));
        return true;
    }
    assert_ok(store_each_record(s, party_count, &n));
    assert_int_equal(n, records);
    store_close(&s);
    return false;
}

static void truncated_journal_is_refused(void **state)
{
    snap own;
    size_t len = 0;

    (void)state;
    snap_take(&own, at("party"));
    len = own.file[snap_find(&own, "journal.db")].len;
    for (size_t cut = 0; cut < len; cut += cut < 700 ? 97 : 1021) {
        snap_put(&own, at("party"));
        assert_int_equal(truncate(at("party/journal.db"), (off_t)cut), 0);
        assert_lost("party/journal.db", "is damaged");
    }
    snap_drop(&own);
}

static void truncated_vault_is_refused(void **state)
{
    snap own;

    (void)state;
    snap_take(&own, at("party"));
    for (off_t cut = 0; cut < 8192 + 4 * 8192; cut += 5001) {
        snap_put(&own, at("party"));
        assert_int_equal(truncate(at("party/vault"), cut), 0);
        assert_lost("party/vault", cut < 4176 ? "is damaged" : "is missing");
    }
    snap_drop(&own);
}

static void flipped_bits_give_no_wrong_record(void **state)
{
    size_t refused = 0, i = 0;
    snap own;

    (void)state;
    assert_ok(party_run(at("party"), 60, NULL, -1, NULL));
    snap_take(&own, at("party"));
    i = snap_find(&own, "journal.db");
    for (int n = 0; n < 300; n++) {
        size_t where = random_size(0, own.file[i].len - 1);
        uint8_t bit = (uint8_t)(1u << random_u64() % 8);

        own.file[i].bytes[where] ^= bit;
        snap_put(&own, at("party"));
        refused += refused_or_right(60);
        own.file[i].bytes[where] ^= bit;
    }
    print_message("%zu of 300 flips refused\n", refused);
    assert_true(refused > 150); /* the rest is room that nothing uses */
    snap_drop(&own);
}

/* All records are there, and something else. */
static void page_that_nothing_uses_is_refused(void **state)
{
    size_t i = 0;
    snap own;

    (void)state;
    snap_take(&own, at("party"));
    i = snap_find(&own, "journal.db");
    own.file[i].bytes = realloc(own.file[i].bytes, own.file[i].len + 4096);
    assert_non_null(own.file[i].bytes);
    memset(own.file[i].bytes + own.file[i].len, 0, 4096);
    own.file[i].len += 4096;
    own.file[i].bytes[31]++; /* the number of pages, big endian at 28 */
    snap_put(&own, at("party"));
    assert_lost("party/journal.db", "is damaged");
    snap_drop(&own);
}

/* The bytes of the records themselves, of which SQLite has no checksum. */
static void flipped_bit_in_a_record_is_refused(void **state)
{
    (void)state;
    change("UPDATE record SET bytes = zeroblob(length(bytes)) WHERE seq = 3");
    assert_lost("party/journal.db", "a record is not what was written");
}

static void changed_records_are_refused(void **state)
{
    static const char *const sql[] = {
        "DELETE FROM record WHERE seq = 2",
        "DELETE FROM record WHERE seq = 5",
        "DELETE FROM record",
        "UPDATE record SET seq = 6 WHERE seq = 5",
        "UPDATE record SET seq = 9 WHERE seq = 1; UPDATE record SET seq = 1 "
        "WHERE seq = 2; UPDATE record SET seq = 2 WHERE seq = 9",
        "INSERT INTO record SELECT 6, bytes, link FROM record WHERE seq = 5",
        "UPDATE record SET link = x'00' WHERE seq = 1",
        "DELETE FROM meta",
        "UPDATE meta SET records = 4",
        "UPDATE meta SET id = x'00'",
        "CREATE TABLE more(x)",
        "CREATE TRIGGER t AFTER INSERT ON record BEGIN DELETE FROM record; END",
        "DROP TABLE record",
    };
    snap own;

    (void)state;
    snap_take(&own, at("party"));
    for (size_t i = 0; i < COUNT(sql); i++) {
        snap_put(&own, at("party"));
        change(sql[i]);
        assert_lost("party/journal.db", "is damaged");
    }
    snap_drop(&own);
}

static dafl_err count_true(void *ctx, uint32_t slot, dafl_bytes secret)
{
    uint8_t expected[PARTY_SECRET_BYTES];

    party_secret(expected, slot);
    assert_int_equal(secret.len, sizeof expected);
    assert_memory_equal(secret.ptr, expected, sizeof expected);
    ++*(size_t *)ctx;
    return DAFL_OK;
}

/* Secrets there: only whole ones are. */
static size_t count_whole(void)
{
    store *s = NULL;
    size_t n = 0;

    assert_ok(party_open(&s, at("party"), NULL));
    assert_ok(store_each_secret(s, count_true, &n));
    store_close(&s);
    return n;
}

static void torn_secret_is_absent_and_wiped(void **state)
{
    size_t i = 0, n = 0;
    snap own, now;

    (void)state;
    snap_take(&own, at("party"));
    i = snap_find(&own, "vault");
    assert_int_equal(count_whole(), 3);
    /* Any byte of the record of slot 3, which has the third place. */
    for (size_t where = 0; where < 40 + PARTY_SECRET_BYTES; where += 83) {
        own.file[i].bytes[8192 + 2 * 8192 + where] ^= 0x10;
        snap_put(&own, at("party"));
        assert_int_equal(count_whole(), 2);
        own.file[i].bytes[8192 + 2 * 8192 + where] ^= 0x10;
        n++;
    }
    assert_true(n > 50);
    snap_take(&now, at("party"));
    for (size_t b = 0; b < 8192; b++)
        assert_int_equal(
            now.file[snap_find(&now, "vault")].bytes[8192 + 2 * 8192 + b], 0);
    snap_drop(&own);
    snap_drop(&now);
}

static void secret_in_a_wrong_place_is_absent(void **state)
{
    size_t i = 0;
    snap own;

    (void)state;
    snap_take(&own, at("party"));
    i = snap_find(&own, "vault");
    memcpy(own.file[i].bytes + 8192, own.file[i].bytes + 2 * 8192, 8192);
    snap_put(&own, at("party"));
    assert_int_equal(count_whole(), 3);
    snap_drop(&own);
}

static void one_stamp_is_enough(void **state)
{
    static const char *const names[] = {"vault", "generation"};
    snap own;

    (void)state;
    snap_take(&own, at("party"));
    for (size_t n = 0; n < COUNT(names); n++) {
        size_t i = snap_find(&own, names[n]);
        for (size_t block = 0; block < 2; block++) {
            own.file[i].bytes[block * 4096 + 30] ^= 1;
            snap_put(&own, at("party"));
            assert_int_equal(party_check(at("party"), 5), 5);
            own.file[i].bytes[block * 4096 + 30] ^= 1;
        }
        own.file[i].bytes[30] ^= 1;
        own.file[i].bytes[4096 + 30] ^= 1;
        snap_put(&own, at("party"));
        assert_lost(names[n], "is damaged");
        own.file[i].bytes[30] ^= 1;
        own.file[i].bytes[4096 + 30] ^= 1;
    }
    snap_drop(&own);
}

/* ---- old copies (D8) ---- */

static void old_copy_of_one_file_is_lost_state(void **state)
{
    static const struct {
        const char *name;
        int openings; /* a copy from so many openings ago is refused */
    } files[] = {{"journal.db", 1}, {"vault", 2}, {"generation", 2}};

    (void)state;
    for (size_t i = 0; i < COUNT(files); i++) {
        for (int age = files[i].openings; age < 5; age++) {
            snap old, now;
            snap_take(&old, at("party"));
            for (int n = 0; n < age; n++)
                assert_ok(party_run(at("party"), 5, NULL, -1, NULL));
            snap_take(&now, at("party"));
            snap_put_one(&old, at("party"), files[i].name);
            assert_lost(files[i].name, "is an old copy");
            assert_lost("party/journal.db", "is an old copy");
            snap_put(&now, at("party"));
            assert_int_equal(party_check(at("party"), 5), 5);
            snap_drop(&old);
            snap_drop(&now);
        }
    }
}

/* After a crash all that happened since the opening is in the log. */
static void database_without_its_log_is_lost_state(void **state)
{
    uint8_t record[PARTY_RECORD_MAX];
    snap running;
    store *s = NULL;

    (void)state;
    assert_ok(party_open(&s, at("party"), NULL));
    for (size_t n = 5; n < 400; n++) {
        dafl_bytes bytes = {record, party_record(record, n)};
        assert_ok(store_append(s, bytes));
        assert_ok(store_flush(s));
    }
    snap_take(&running, at("party"));
    store_close(&s);
    snap_put(&running, at("party"));
    assert_int_equal(unlink(at("party/journal.db-wal")), 0);
    assert_lost("party/journal.db", "is an old copy");
    snap_drop(&running);
}

/* SQLite alone drops what it cannot read at the end of its log, and goes on. */
static void log_without_its_end_is_lost_state(void **state)
{
    uint8_t record[PARTY_RECORD_MAX];
    const char *wal = "party/journal.db-wal";
    snap running;
    store *s = NULL;
    size_t f, len;

    (void)state;
    assert_ok(party_open(&s, at("party"), NULL));
    for (size_t n = 5; n < 40; n++) {
        dafl_bytes bytes = {record, party_record(record, n)};
        assert_ok(store_append(s, bytes));
        assert_ok(store_flush(s));
    }
    snap_take(&running, at("party"));
    store_close(&s);
    f = snap_find(&running, "journal.db-wal");
    len = running.file[f].len;
    for (int i = 0; i < 100; i++) {
        /* Mostly of the last 3 %. */
        size_t most = i % 4 == 0 ? len - 1 : len / 33;
        size_t cut = i == 0 ? 1 : random_size(1, most);
        snap_put(&running, at("party"));
        if (i % 2 == 0) {
            assert_int_equal(truncate(at(wal), (off_t)(len - cut)), 0);
        } else {
            running.file[f].bytes[len - cut] ^= 1;
            snap_put_one(&running, at("party"), "journal.db-wal");
            running.file[f].bytes[len - cut] ^= 1;
        }
        if (cut <= len / 33)
            assert_lost("party/journal.db", "its end is missing");
        else
            assert_lost("party/journal.db", "");
    }
    /* The control. */
    snap_put(&running, at("party"));
    assert_ok(party_open(&s, at("party"), NULL));
    store_close(&s);
    snap_drop(&running);
}

/* The limit of what can be seen from here. */
static void old_copy_of_the_whole_directory_is_not_seen(void **state)
{
    store *s = NULL;
    snap old;

    (void)state;
    snap_take(&old, at("party"));
    assert_ok(party_run(at("party"), 9, NULL, -1, NULL));
    snap_put(&old, at("party"));
    assert_ok(party_open(&s, at("party"), NULL));
    assert_int_equal(store_generation(s), 2);
    store_close(&s);
    snap_drop(&old);
}

/* ---- others ---- */

static void what_others_can_use_is_refused(void **state)
{
    static const char *const names[] = {"journal.db", "vault", "generation",
                                        "lock"};
    static const mode_t modes[] = {0640, 0604, 0620, 0602, 0777};

    (void)state;
    for (size_t m = 0; m < COUNT(modes); m++) {
        assert_int_equal(chmod(at("party"), modes[m] | 0100), 0);
        assert_refused(at("party"), DAFL_ERR_INPUT, "chmod 700");
        assert_int_equal(chmod(at("party"), 0700), 0);
        for (size_t i = 0; i < COUNT(names); i++) {
            char path[64];
            (void)snprintf(path, sizeof path, "party/%s", names[i]);
            assert_int_equal(chmod(at(path), modes[m]), 0);
            assert_refused(at("party"), DAFL_ERR_INPUT, "chmod 600");
            assert_refused(at("party"), DAFL_ERR_INPUT, names[i]);
            assert_int_equal(chmod(at(path), 0600), 0);
        }
    }
    write_file(at("party/journal.db-wal"), "", 0);
    assert_int_equal(chmod(at("party/journal.db-wal"), 0666), 0);
    assert_refused(at("party"), DAFL_ERR_INPUT, "journal.db-wal");
    assert_int_equal(unlink(at("party/journal.db-wal")), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(at("party/vault"), 1234, 1234), 0);
        assert_refused(at("party"), DAFL_ERR_INPUT, "belongs to user 1234");
        assert_int_equal(chown(at("party/vault"), 0, 0), 0);
    }
    assert_int_equal(party_check(at("party"), 5), 5);
}

static void links_are_refused(void **state)
{
    static const char *const names[] = {"journal.db", "vault", "generation",
                                        "lock", "journal.db-wal"};

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        char path[64];
        bool was_there = false;
        (void)snprintf(path, sizeof path, "party/%s", names[i]);
        was_there = rename(at(path), at("aside")) == 0;
        assert_int_equal(symlink("../aside", at(path)), 0);
        assert_refused(at("party"), DAFL_ERR_INPUT, "is a symbolic link");
        assert_refused(at("party"), DAFL_ERR_INPUT, names[i]);
        assert_int_equal(unlink(at(path)), 0);
        if (was_there)
            assert_int_equal(rename(at("aside"), at(path)), 0);
    }
    assert_int_equal(symlink("party", at("link")), 0);
    assert_refused(at("link"), DAFL_ERR_INPUT, "is a symbolic link");
    assert_int_equal(unlink(at("link")), 0);
    assert_int_equal(party_check(at("party"), 5), 5);
}

static void what_is_no_directory_or_file_is_refused(void **state)
{
    (void)state;
    write_file(at("file"), "x", 1);
    assert_refused(at("file"), DAFL_ERR_INPUT, "is not a directory");
    assert_refused(at("missing/party"), DAFL_ERR_SYS, "No such file");
    assert_int_equal(unlink(at("party/vault")), 0);
    assert_int_equal(mkfifo(at("party/vault"), 0600), 0);
    assert_refused(at("party"), DAFL_ERR_INPUT, "not a regular file");
}

/* Root is not bound by permissions: it becomes somebody else. */
static void directory_without_permission_is_refused(void **state)
{
    int status = 0;
    pid_t child = 0;

    (void)state;
    assert_int_equal(mkdir(at("sub"), 0500), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(dir, 65534, 65534), 0);
        assert_int_equal(chown(at("sub"), 65534, 65534), 0);
    }
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        store *s = NULL;
        dafl_why why = {""};
        if (geteuid() == 0 && setuid(65534) != 0)
            _exit(2);
        _exit(party_open(&s, at("sub"), &why) == DAFL_ERR_SYS &&
                      strstr(why.text, "Permission denied") != NULL &&
                      strstr(why.text, at("sub")) != NULL
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(rmdir(at("sub")), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, make_party, remove_party)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(other_owner_is_refused),
        CASE(foreign_database_is_refused_and_left_alone),
        CASE(no_database_and_newer_one_are_refused),
        CASE(vault_and_counter_of_another_store_are_refused),
        CASE(missing_file_is_not_made_anew),
        CASE(truncated_journal_is_refused),
        CASE(truncated_vault_is_refused),
        CASE(flipped_bits_give_no_wrong_record),
        CASE(page_that_nothing_uses_is_refused),
        CASE(flipped_bit_in_a_record_is_refused),
        CASE(changed_records_are_refused),
        CASE(torn_secret_is_absent_and_wiped),
        CASE(secret_in_a_wrong_place_is_absent),
        CASE(one_stamp_is_enough),
        CASE(old_copy_of_one_file_is_lost_state),
        CASE(database_without_its_log_is_lost_state),
        CASE(log_without_its_end_is_lost_state),
        CASE(old_copy_of_the_whole_directory_is_not_seen),
        CASE(what_others_can_use_is_refused),
        CASE(links_are_refused),
        CASE(what_is_no_directory_or_file_is_refused),
        CASE(directory_without_permission_is_refused),
    };

    check_seed();
    /* Every sync of 2,000 openings takes its time on a disk. */
    if (access("/dev/shm", W_OK) == 0)
        (void)setenv("TMPDIR", "/dev/shm", 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
