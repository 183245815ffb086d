/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/agents/store_party.h"

#include <fcntl.h>

#include "tests/agents/disk.h"

/* ---- what is written ---- */

/* Bytes that depend on what and n alone. */
static void fill(uint8_t *out, size_t len, uint64_t what, uint64_t n)
{
    uint64_t x = what * 0x9e3779b97f4a7c15u + n * 0xd1342543de82ef95u + 1;

    for (size_t i = 0; i < len; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        out[i] = (uint8_t)(x >> 32);
    }
}

size_t party_record(uint8_t *out, size_t n)
{
    /* Mostly small; some longer than a page. */
    size_t len = 8 + n * 37 % 120 + (n % 5 == 0 ? n * 911 % 8000 : 0);

    fill(out, len, 1, n);
    return len;
}

void party_secret(uint8_t *out, uint32_t slot)
{
    fill(out, PARTY_SECRET_BYTES, 2, slot);
}

/* Slots that n records close. */
static uint32_t closed(size_t n)
{
    size_t last = n % PARTY_RECORDS;

    return (uint32_t)(n / PARTY_RECORDS * PARTY_SLOTS +
                      (last == 0 ? 0 : (last - 1) / 3));
}

dafl_err party_open(store **out, const char *path, dafl_why *why)
{
    return store_open(out, path, "alice", true, PARTY_SECRET_BYTES, PARTY_SLOTS,
                      why);
}

dafl_err party_count(void *ctx, dafl_bytes record)
{
    uint8_t expected[PARTY_RECORD_MAX];
    size_t *n = ctx, len = party_record(expected, *n);

    assert_int_equal(record.len, len);
    assert_memory_equal(record.ptr, expected, len);
    ++*n;
    return DAFL_OK;
}

/* ---- running ---- */

static dafl_err keep_all(store *s, uint32_t closed)
{
    uint8_t secret[PARTY_SECRET_BYTES];

    for (uint32_t slot = closed + 1; slot <= closed + PARTY_SLOTS; slot++) {
        party_secret(secret, slot);
        DAFL_TRY(store_keep(s, slot, (dafl_bytes){secret, sizeof secret}));
    }
    return DAFL_OK;
}

static dafl_err flush(store *s, size_t n, size_t *acked, int tell)
{
    DAFL_TRY(store_flush(s));
    if (acked != NULL)
        *acked = n;
    if (tell >= 0 && write(tell, &n, sizeof n) != sizeof n)
        return DAFL_ERR_SYS;
    return DAFL_OK;
}

static dafl_err go_on(store *s, size_t until, size_t *acked, int tell)
{
    uint8_t record[PARTY_RECORD_MAX];
    size_t n = 0;

    DAFL_TRY(store_each_record(s, party_count, &n));
    DAFL_TRY(store_erase(s, closed(n)));
    while (n < until) {
        dafl_bytes bytes = {record, party_record(record, n)};
        if (n % PARTY_RECORDS == 0)
            DAFL_TRY(keep_all(s, closed(n)));
        DAFL_TRY(store_append(s, bytes));
        n++;
        if (closed(n) != closed(n - 1))
            DAFL_TRY(store_erase(s, closed(n)));
        else if (n / PARTY_RECORDS % 2 == 0 || n % PARTY_RECORDS > 4)
            DAFL_TRY(flush(s, n, acked, tell)); /* or it waits for more */
    }
    return flush(s, n, acked, tell);
}

static dafl_err no_record(void *ctx, dafl_bytes record)
{
    (void)ctx;
    (void)record;
    return DAFL_OK;
}

/* Nothing goes any more, not even to a disk that may work again. */
static void assert_stands_by(store *s, dafl_err err)
{
    static const uint8_t byte = 1;
    size_t none = 0;

    assert_true(store_why(s)[0] != '\0');
    for (int i = 0; i < 2; i++) {
        assert_int_equal(store_flush(s), err);
        assert_int_equal(store_append(s, (dafl_bytes){&byte, 1}), err);
        assert_int_equal(store_keep(s, 1, (dafl_bytes){&byte, 1}), err);
        assert_int_equal(store_erase(s, 1), err);
        assert_int_equal(store_each_record(s, no_record, &none), err);
    }
}

dafl_err party_run(const char *path, size_t until, size_t *acked, int tell,
                   dafl_why *why)
{
    store *s = NULL;
    dafl_err err = party_open(&s, path, why);

    if (err != DAFL_OK) {
        assert_null(s);
        return err;
    }
    err = go_on(s, until, acked, tell);
    if (err == DAFL_OK) {
        store_close(&s);
    } else {
        long calls = disk_calls();
        dafl_why_set(why, "%s", store_why(s));
        assert_stands_by(s, err);
        store_close(&s);
        assert_int_equal(disk_calls(), calls);
    }
    assert_null(s);
    return err;
}

/* ---- looking ---- */

typedef struct {
    uint32_t from, to; /* slots that must be there */
    uint32_t gone;     /* slots up to this one must not */
    uint32_t found;
} expected;

static dafl_err look_at(void *ctx, uint32_t slot, dafl_bytes secret)
{
    uint8_t bytes[PARTY_SECRET_BYTES];
    expected *e = ctx;

    party_secret(bytes, slot);
    assert_int_equal(secret.len, sizeof bytes);
    assert_memory_equal(secret.ptr, bytes, sizeof bytes);
    assert_true(slot > e->gone);
    if (slot >= e->from && slot <= e->to)
        e->found++;
    return DAFL_OK;
}

/* The last slots; what lay in the places of older ones was overwritten. */
static void assert_gone(const char *path, uint32_t upto)
{
    uint8_t secret[PARTY_SECRET_BYTES];
    snap files;

    if (upto == 0)
        return; /* there may be no directory yet */
    snap_take(&files, path);
    for (uint32_t i = 0; i < PARTY_SLOTS && i < upto; i++) {
        party_secret(secret, upto - i);
        for (size_t from = 0; from + 32 <= sizeof secret; from += 1024)
            assert_false(snap_holds(&files, secret + from, 32));
    }
    snap_drop(&files);
}

size_t party_check(const char *path, size_t acked)
{
    size_t n = 0;
    store *s = NULL;
    dafl_why why = {""};
    expected e = {0};
    uint32_t gone = closed(acked);

    assert_gone(path, gone);
    if (party_open(&s, path, &why) != DAFL_OK)
        fail_msg("%s", why.text);
    assert_ok(store_each_record(s, party_count, &n));
    assert_true(n >= acked);
    e.gone = gone;
    e.from = closed(n) + 1;
    e.to = (uint32_t)((n + PARTY_RECORDS - 1) / PARTY_RECORDS * PARTY_SLOTS);
    assert_ok(store_each_secret(s, look_at, &e));
    assert_int_equal(e.found, e.to + 1 - e.from);
    store_close(&s);
    return n;
}

/* ---- files ---- */

static size_t read_file(const char *path, uint8_t **out)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    *out = malloc((size_t)st.st_size + 1);
    assert_non_null(*out);
    assert_int_equal(read(fd, *out, (size_t)st.st_size), st.st_size);
    (void)close(fd);
    return (size_t)st.st_size;
}

static const char *join(char *room, size_t size, const char *path,
                        const char *name)
{
    assert_true(snprintf(room, size, "%s/%s", path, name) < (int)size);
    return room;
}

void write_file(const char *path, const void *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), len);
    (void)close(fd);
}

void snap_take(snap *out, const char *path)
{
    DIR *d = opendir(path);
    char file[600];

    assert_non_null(d);
    *out = (snap){0};
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        if (e->d_name[0] == '.')
            continue;
        assert_true(out->n < SNAP_FILES && strlen(e->d_name) < 64);
        (void)snprintf(out->file[out->n].name, 64, "%.63s", e->d_name);
        out->file[out->n].len = read_file(
            join(file, sizeof file, path, e->d_name), &out->file[out->n].bytes);
        out->n++;
    }
    (void)closedir(d);
}

size_t snap_find(const snap *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->file[i].name, name) == 0)
            return i;
    fail_msg("there is no %s", name);
    return 0;
}

void snap_put_one(const snap *s, const char *path, const char *name)
{
    size_t i = snap_find(s, name);
    char file[600];

    write_file(join(file, sizeof file, path, name), s->file[i].bytes,
               s->file[i].len);
}

void snap_put(const snap *s, const char *path)
{
    remove_all(path);
    assert_int_equal(mkdir(path, 0700), 0);
    for (size_t i = 0; i < s->n; i++)
        snap_put_one(s, path, s->file[i].name);
}

void snap_drop(snap *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->file[i].bytes);
    *s = (snap){0};
}

void remove_all(const char *path)
{
    DIR *d = opendir(path);
    char file[600];

    if (d == NULL)
        return;
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            (void)remove(join(file, sizeof file, path, e->d_name));
    (void)closedir(d);
    assert_int_equal(rmdir(path), 0);
}

bool snap_holds(const snap *s, const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < s->n; i++) {
        const uint8_t *next = s->file[i].bytes, *end = next + s->file[i].len;
        while ((size_t)(end - next) >= len) {
            next = memchr(next, bytes[0], (size_t)(end - next) - len + 1);
            if (next == NULL)
                break;
            if (memcmp(next, bytes, len) == 0)
                return true;
            next++;
        }
    }
    return false;
}
