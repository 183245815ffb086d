/* SPDX-License-Identifier: Apache-2.0 */
/* What a store gives back, and what it keeps from whom. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/agents/disk.h"
#include "tests/agents/store_party.h"

static store *open_ok(const char *path)
{
    store *s = NULL;
    dafl_why why = {""};

    if (party_open(&s, path, &why) != DAFL_OK)
        fail_msg("%s", why.text);
    assert_string_equal(store_why(s), "");
    return s;
}

/* Of this length, and each different. */
static uint8_t *some_bytes(size_t len, uint8_t which)
{
    uint8_t *b = malloc(len + 1);

    assert_non_null(b);
    for (size_t i = 0; i < len; i++)
        b[i] = (uint8_t)(i * 31 + i / 251 + which * 7u);
    return b;
}

/* ---- round trips ---- */

static dafl_err count_secrets(void *ctx, uint32_t slot, dafl_bytes secret)
{
    uint8_t expected[PARTY_SECRET_BYTES];

    party_secret(expected, slot);
    assert_int_equal(secret.len, sizeof expected);
    assert_memory_equal(secret.ptr, expected, sizeof expected);
    *(uint64_t *)ctx |= (uint64_t)1 << slot;
    return DAFL_OK;
}

/* The slots whose secrets are there, as bits. */
static uint64_t slots_in(store *s)
{
    uint64_t slots = 0;

    assert_ok(store_each_secret(s, count_secrets, &slots));
    return slots;
}

static void keep(store *s, uint32_t slot)
{
    uint8_t secret[PARTY_SECRET_BYTES];

    party_secret(secret, slot);
    assert_ok(store_keep(s, slot, (dafl_bytes){secret, sizeof secret}));
}

static void new_store_is_empty_and_private(void **state)
{
    static const char *const names[] = {"lock", "journal.db", "journal.db-wal",
                                        "vault", "generation"};
    mode_t before = umask(0);
    size_t n = 0;
    struct stat st;
    store *s = open_ok(at("party"));

    (void)state;
    (void)umask(before);
    assert_ok(store_each_record(s, party_count, &n));
    assert_int_equal(n, 0);
    assert_int_equal(slots_in(s), 0);
    assert_int_equal(store_generation(s), 1);
    assert_int_equal(stat(at("party"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    for (size_t i = 0; i < COUNT(names); i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "party/%s", names[i]);
        assert_int_equal(lstat(at(path), &st), 0);
        assert_int_equal(st.st_mode & 07777, 0600);
    }
    store_close(&s);
    store_close(&s); /* harmless */
    remove_all(at("party"));
}

/* By whatever name it is called. */
static void new_directory_is_durable_too(void **state)
{
    char before[512];
    store *s = NULL;

    (void)state;
    assert_non_null(getcwd(before, sizeof before));
    for (int how = 0; how < 3; how++) {
        /* Directories of their own, so that each has its own sync. */
        char inside[64];
        (void)snprintf(inside, sizeof inside, "in%d", how);
        assert_int_equal(mkdir(at(inside), 0700), 0);
        assert_int_equal(chdir(at(inside)), 0);
        (void)disk_heal();
        assert_false(disk_synced("."));
        (void)snprintf(inside, sizeof inside, "in%d/party/", how);
        s = open_ok(how == 0 ? "party" : how == 1 ? "./party" : at(inside));
        assert_true(disk_synced("."));
        store_close(&s);
        remove_all("party");
        assert_int_equal(chdir(before), 0);
    }
}

static void records_come_back_in_order(void **state)
{
    size_t until = 0;

    (void)state;
    for (int life = 1; life <= 8; life++) {
        store *s = NULL;
        until += random_size(1, 40);
        assert_ok(party_run(at("party"), until, NULL, -1, NULL));
        s = open_ok(at("party"));
        assert_int_equal(store_generation(s), 2 * life);
        store_close(&s);
    }
    assert_int_equal(party_check(at("party"), until), until);
    remove_all(at("party"));
}

typedef struct {
    size_t n;
    const size_t *lens;
} lens;

static dafl_err check_len(void *ctx, dafl_bytes record)
{
    lens *l = ctx;
    uint8_t *expected = some_bytes(l->lens[l->n], (uint8_t)l->n);

    assert_int_equal(record.len, l->lens[l->n++]);
    assert_memory_equal(record.ptr, expected, record.len);
    free(expected);
    return DAFL_OK;
}

static void records_may_be_long(void **state)
{
    static const size_t sizes[] = {1, 4095, 4096, 70000, 5000000, 2};
    store *s = open_ok(at("party"));
    lens l = {0, sizes};

    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        uint8_t *b = some_bytes(sizes[i], (uint8_t)i);
        assert_ok(store_append(s, (dafl_bytes){b, sizes[i]}));
        free(b);
    }
    assert_ok(store_flush(s));
    for (int again = 0; again < 2; again++) {
        l.n = 0;
        assert_ok(store_each_record(s, check_len, &l));
        assert_int_equal(l.n, COUNT(sizes));
        store_close(&s);
        s = open_ok(at("party"));
    }
    store_close(&s);
    remove_all(at("party"));
}

static void secrets_are_kept_replaced_and_erased(void **state)
{
    store *s = open_ok(at("party"));

    (void)state;
    for (uint32_t slot = 1; slot <= 4; slot++)
        keep(s, slot);
    assert_int_equal(slots_in(s), 0x1e);
    assert_ok(store_erase(s, 2));
    assert_ok(store_flush(s));
    assert_int_equal(slots_in(s), 0x18);
    store_close(&s);

    s = open_ok(at("party"));
    assert_int_equal(slots_in(s), 0x18);
    keep(s, 6);
    keep(s, 8); /* where slot 4 was */
    assert_int_equal(slots_in(s), 0x148);
    assert_ok(store_erase(s, 5));
    assert_ok(store_flush(s));
    store_close(&s);

    s = open_ok(at("party"));
    assert_int_equal(slots_in(s), 0x140);
    assert_ok(store_erase(s, UINT32_MAX));
    assert_int_equal(slots_in(s), 0);
    assert_ok(store_flush(s));
    store_close(&s);
    remove_all(at("party"));
}

/* The least a secret may leave behind is 16 of its bytes in a row. */
static void assert_traces(const char *path, uint32_t slot, bool there)
{
    uint8_t secret[PARTY_SECRET_BYTES];
    snap files;

    snap_take(&files, path);
    party_secret(secret, slot);
    for (size_t from = 0; from + 16 <= sizeof secret; from += 16)
        assert_int_equal(snap_holds(&files, secret + from, 16), there);
    snap_drop(&files);
}

static void erased_secrets_are_nowhere(void **state)
{
    static const uint8_t note[] = "a record";
    store *s = open_ok(at("party"));

    (void)state;
    for (uint32_t slot = 1; slot <= 4; slot++)
        keep(s, slot);
    assert_ok(store_append(s, (dafl_bytes){note, sizeof note}));
    assert_ok(store_flush(s));
    assert_traces(at("party"), 2, true); /* such bytes are found */
    assert_ok(store_erase(s, 2));
    keep(s, 7); /* over slot 3 */
    assert_ok(store_flush(s));
    assert_traces(at("party"), 1, false);
    assert_traces(at("party"), 2, false);
    assert_traces(at("party"), 3, false);
    assert_traces(at("party"), 4, true);
    store_close(&s);
    assert_traces(at("party"), 1, false);
    assert_traces(at("party"), 3, false);
    remove_all(at("party"));
}

static void shorter_secret_leaves_nothing_of_the_longer(void **state)
{
    static const uint8_t byte = 0x55;
    store *s = open_ok(at("party"));

    (void)state;
    keep(s, 1);
    assert_ok(store_keep(s, 5, (dafl_bytes){&byte, 1}));
    assert_ok(store_keep(s, 2, (dafl_bytes){NULL, 0}));
    assert_ok(store_flush(s));
    store_close(&s);
    assert_traces(at("party"), 1, false);
    remove_all(at("party"));
}

static dafl_err stop_at_second(void *ctx, dafl_bytes record)
{
    (void)record;
    return ++*(size_t *)ctx == 2 ? DAFL_ERR_PEER : DAFL_OK;
}

static dafl_err stop_at_once(void *ctx, uint32_t slot, dafl_bytes secret)
{
    (void)slot;
    (void)secret;
    ++*(size_t *)ctx;
    return DAFL_ERR_NUMERIC;
}

static void reader_may_stop(void **state)
{
    size_t seen = 0;
    store *s = NULL;

    (void)state;
    assert_ok(party_run(at("party"), 5, NULL, -1, NULL));
    s = open_ok(at("party"));
    assert_int_equal(store_each_record(s, stop_at_second, &seen),
                     DAFL_ERR_PEER);
    assert_int_equal(seen, 2);
    assert_int_equal(store_each_secret(s, stop_at_once, &seen),
                     DAFL_ERR_NUMERIC);
    assert_int_equal(seen, 3);
    seen = 0; /* and nothing is wrong with the store */
    assert_ok(store_each_record(s, party_count, &seen));
    assert_int_equal(seen, 5);
    assert_ok(store_flush(s));
    store_close(&s);
    remove_all(at("party"));
}

/* ---- wrong use ---- */

static void wrong_use_ends_a_store(void **state)
{
    static uint8_t big[8192];
    static const uint8_t byte = 1;

    (void)state;
    for (int what = 0; what < 5; what++) {
        store *s = NULL;
        dafl_err err = DAFL_OK;

        if (what < 4)
            s = open_ok(at("party"));
        else /* a server keeps no secrets */
            assert_ok(
                store_open(&s, at("server"), "server", false, 0, 0, NULL));
        err = what == 0   ? store_append(s, (dafl_bytes){NULL, 0})
              : what == 1 ? store_keep(s, 0, (dafl_bytes){&byte, 1})
              : what == 2 ? store_keep(s, 1, (dafl_bytes){big, sizeof big})
              : what == 3 ? store_append(s, (dafl_bytes){big, SIZE_MAX})
                          : store_keep(s, 1, (dafl_bytes){&byte, 1});
        assert_int_equal(err, DAFL_ERR_ARG);
        assert_non_null(strstr(store_why(s), what < 4 ? "party" : "server"));
        assert_int_equal(store_append(s, (dafl_bytes){&byte, 1}), DAFL_ERR_ARG);
        assert_int_equal(store_erase(s, 1), DAFL_ERR_ARG);
        assert_int_equal(store_flush(s), DAFL_ERR_ARG);
        store_close(&s);
    }
    remove_all(at("party"));
    remove_all(at("server"));
}

static void open_refuses_sizes_that_make_no_sense(void **state)
{
    store *s = NULL;
    dafl_why why = {""};

    (void)state;
    assert_int_equal(store_open(&s, at("a"), "alice", true, 0, 4, &why),
                     DAFL_ERR_ARG);
    assert_int_equal(store_open(&s, at("a"), "alice", true, 9, 0, &why),
                     DAFL_ERR_ARG);
    assert_int_equal(store_open(&s, at("a"), "alice", true, SIZE_MAX, 4, &why),
                     DAFL_ERR_ARG);
    assert_int_equal(
        store_open(&s, at("a"), "alice", true, 9, UINT32_MAX, &why),
        DAFL_ERR_ARG);
    assert_int_equal(store_open(&s, at("a"), "", true, 9, 4, &why),
                     DAFL_ERR_INPUT);
    assert_int_equal(store_open(&s, "", "alice", true, 9, 4, &why),
                     DAFL_ERR_INPUT);
    assert_null(s);
    /* What was begun is finished by the next one. */
    assert_ok(store_open(&s, at("a"), "alice", true, 9, 4, &why));
    store_close(&s);
    remove_all(at("a"));
}

/* ---- a vault of other sizes ---- */

static dafl_err open_sized(store **s, size_t bytes, uint32_t slots)
{
    return store_open(s, at("party"), "alice", true, bytes, slots, NULL);
}

static void empty_vault_takes_new_sizes(void **state)
{
    static uint8_t big[50000];
    store *s = NULL;

    (void)state;
    assert_ok(party_run(at("party"), PARTY_RECORDS, NULL, -1, NULL));
    assert_ok(open_sized(&s, sizeof big, 9)); /* all slots are closed */
    for (uint32_t slot = 1; slot <= 9; slot++)
        assert_ok(store_keep(s, slot, (dafl_bytes){big, sizeof big}));
    assert_ok(store_flush(s));
    assert_ok(store_erase(s, 9));
    assert_ok(store_flush(s));
    store_close(&s);
    s = open_ok(at("party")); /* and back; larger records do no harm */
    keep(s, 1);
    keep(s, 5);
    assert_int_equal(slots_in(s), 0x20);
    assert_ok(store_flush(s));
    store_close(&s);
    remove_all(at("party"));
}

static void full_vault_takes_new_sizes_when_it_is_erased(void **state)
{
    static const uint8_t byte = 1;
    static uint8_t big[50000];
    store *s = NULL;

    (void)state;
    assert_ok(party_run(at("party"), 4, NULL, -1, NULL));
    /* A run with other sizes, before it has erased those of the last one. */
    assert_ok(open_sized(&s, sizeof big, 6));
    assert_int_equal(slots_in(s), 0x1c);
    assert_int_equal(store_keep(s, 1, (dafl_bytes){&byte, 1}), DAFL_ERR_SYS);
    assert_non_null(strstr(store_why(s), "finish that run first"));
    store_close(&s);

    assert_ok(open_sized(&s, sizeof big, 6));
    assert_int_equal(slots_in(s), 0x1c);
    assert_ok(store_erase(s, 3));
    assert_int_equal(slots_in(s), 0x10);
    store_close(&s);

    assert_ok(open_sized(&s, sizeof big, 6));
    assert_ok(store_erase(s, UINT32_MAX));
    assert_ok(store_keep(s, 6, (dafl_bytes){big, sizeof big}));
    assert_ok(store_flush(s));
    store_close(&s);
    for (uint32_t slot = 1; slot <= 4; slot++)
        assert_traces(at("party"), slot, false);
    remove_all(at("party"));
}

/* ---- one process at a time ---- */

static void second_process_is_told_who_has_it(void **state)
{
    store *s = open_ok(at("party")), *other = NULL;
    char pid[32];
    dafl_why why = {""};
    int status = 0;
    pid_t child = 0;

    (void)state;
    (void)snprintf(pid, sizeof pid, "(pid %ld)", (long)getpid());
    assert_int_equal(party_open(&other, at("party"), &why), DAFL_ERR_INPUT);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dafl_why said = {""};
        _exit(party_open(&other, at("party"), &said) == DAFL_ERR_INPUT &&
                      strstr(said.text, pid) != NULL &&
                      strstr(said.text, at("party")) != NULL
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_null(other);
    assert_says(&why, pid);
    store_close(&s);
    s = open_ok(at("party"));
    assert_int_equal(store_generation(s), 2); /* the others changed nothing */
    store_close(&s);
    remove_all(at("party"));
}

static void dead_process_holds_nothing(void **state)
{
    int ready[2];
    char byte = 0;
    pid_t child = 0;
    store *s = NULL;

    (void)state;
    assert_int_equal(pipe(ready), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (party_open(&s, at("party"), NULL) != DAFL_OK ||
            write(ready[1], "x", 1) != 1)
            _exit(1);
        (void)alarm(60); /* should the test end before it */
        (void)pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(party_open(&s, at("party"), NULL), DAFL_ERR_INPUT);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    s = open_ok(at("party"));
    store_close(&s);
    (void)close(ready[0]);
    (void)close(ready[1]);
    remove_all(at("party"));
}

static void no_descriptor_is_left_open(void **state)
{
    int before = open("/dev/null", O_RDONLY | O_CLOEXEC), after = 0;
    store *s = NULL;

    (void)state;
    (void)close(before);
    assert_ok(party_run(at("party"), 5, NULL, -1, NULL));
    assert_int_equal(store_open(&s, at("party"), "bob", true, 9, 4, NULL),
                     DAFL_ERR_INPUT);
    assert_int_equal(unlink(at("party/generation")), 0);
    assert_int_equal(party_open(&s, at("party"), NULL), DAFL_ERR_INPUT);
    after = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)close(after);
    assert_int_equal(before, after); /* the lowest free number is the same */
    remove_all(at("party"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE_IN_DIR(new_store_is_empty_and_private),
        CASE_IN_DIR(new_directory_is_durable_too),
        CASE_IN_DIR(records_come_back_in_order),
        CASE_IN_DIR(records_may_be_long),
        CASE_IN_DIR(secrets_are_kept_replaced_and_erased),
        CASE_IN_DIR(erased_secrets_are_nowhere),
        CASE_IN_DIR(shorter_secret_leaves_nothing_of_the_longer),
        CASE_IN_DIR(reader_may_stop),
        CASE_IN_DIR(wrong_use_ends_a_store),
        CASE_IN_DIR(open_refuses_sizes_that_make_no_sense),
        CASE_IN_DIR(empty_vault_takes_new_sizes),
        CASE_IN_DIR(full_vault_takes_new_sizes_when_it_is_erased),
        CASE_IN_DIR(second_process_is_told_who_has_it),
        CASE_IN_DIR(dead_process_holds_nothing),
        CASE_IN_DIR(no_descriptor_is_left_open),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
