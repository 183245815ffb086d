/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/secagg.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int64_t number_of(size_t u, size_t i)
{
    return (int64_t)((i * 2654435761u + u * 40503u) & 0xfff) - 2048;
}

typedef struct {
    size_t n; /* numbers */
    uint32_t asked;
    bool right; /* every sum so far */
} method;

static dafl_fault shape(void *self, const dafl_question *q, dafl_shape *out)
{
    const method *m = self;

    (void)q;
    *out = (dafl_shape){.len = m->n};
    return DAFL_FAULT_NONE;
}

static bool next(void *self, bool plain, dafl_question *out)
{
    const method *m = self;

    (void)plain;
    *out = (dafl_question){.number = m->asked};
    return m->asked < SLOTS;
}

static dafl_fault segment(void *self, uint32_t n, dafl_segment *out,
                          dafl_writer *bytes)
{
    (void)self;
    (void)n;
    (void)bytes;
    out->kind = 0;
    out->layer = 0;
    return DAFL_FAULT_NONE;
}

static dafl_fault take(void *self, const dafl_question *q, const int64_t *sum,
                       size_t len, const dafl_members *cohort, dafl_why *why)
{
    method *m = self;

    (void)q;
    (void)why;
    for (size_t i = 0; i < len; i += 97) {
        int64_t want = 0;
        for (size_t u = 0; u < cohort->n; u++)
            want += dafl_members_has(cohort, u) ? number_of(u, i) : 0;
        m->right &= sum[i] == want;
    }
    m->asked++;
    return m->right ? DAFL_FAULT_NONE : DAFL_E_SUM_INVALID;
}

static const dafl_server_method server_method = {
    .next = next, .shape = shape, .segment = segment, .take = take};

void die(const char *what)
{
    (void)fprintf(stderr, "bench/secagg: %s\n", what);
    exit(EXIT_FAILED);
}

static void write_all(int fd, const void *bytes, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = write(fd, (const char *)bytes + done, len - done);
        if (n <= 0)
            die("the other process is gone");
        done += (size_t)n;
    }
}

void read_all(int fd, void *bytes, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = read(fd, (char *)bytes + done, len - done);
        if (n <= 0)
            die("the other process is gone");
        done += (size_t)n;
    }
}

void put(int fd, uint8_t kind, uint32_t number, const void *bytes, size_t len)
{
    frame f = {kind, number, len};

    write_all(fd, &f, sizeof f);
    write_all(fd, bytes, len);
}

static void answer_with_effects(int fd, dafl_server *s, double busy)
{
    report r = {.busy_s = busy, .peak_mb = cli_peak_mb()};
    dafl_effect e;

    while (dafl_server_next(s, &e)) {
        if (e.kind == DAFL_DO_SEND) {
            put(fd, SEND, 0, &e.to, sizeof e.to);
            put(fd, SEND, 1, e.bytes.ptr, e.bytes.len);
        } else if (e.kind == DAFL_DO_TELL && e.event.kind == DAFL_EVENT_MODEL) {
            put(fd, AT_MODEL, e.event.number, &r, sizeof r);
        } else if (e.kind == DAFL_DO_TELL &&
                   e.event.kind == DAFL_EVENT_RESULT) {
            put(fd, AT_RESULT, (uint32_t)e.event.fault, &r, sizeof r);
        }
    }
    r.deadline = dafl_server_deadline(s);
    r.state = dafl_server_where(s);
    put(fd, IDLE, 0, &r, sizeof r);
}

int serve(int fd, const dafl_roster *roster, const dafl_config *config,
          const dafl_secret_identity *self, size_t numbers)
{
    method m = {.n = numbers, .right = true};
    dafl_server_params params = {.roster = roster,
                                 .config = config,
                                 .self = self,
                                 .method = &server_method,
                                 .method_self = &m};
    uint8_t *bytes = NULL;
    size_t room = 0;
    double busy = 0;
    dafl_server *s = NULL;
    dafl_pool *pool = NULL;
    dafl_why why = {{0}};

    if (dafl_pool_new(&pool, 0) != DAFL_OK)
        die("no threads");
    params.pool = pool;
    if (dafl_server_new(&s, &params, NULL, &why) != DAFL_OK)
        die(why.text);
    for (bool first = true;; first = false) {
        frame f = {0};
        dafl_err err;
        double start;
        if (!first) {
            read_all(fd, &f, sizeof f);
            if (f.len > room) {
                free(bytes);
                bytes = malloc(f.len);
                room = f.len;
                if (bytes == NULL)
                    die("out of memory");
            }
            read_all(fd, bytes, f.len);
        }
        if (f.kind == QUIT)
            break;
        start = cli_now();
        err = first ? dafl_server_start(s, 0)
              : f.kind == MESSAGE
                  ? dafl_server_receive(s, (dafl_bytes){bytes, f.len}, 0)
              : f.kind == LOST ? dafl_server_lost(s, (uint16_t)f.number, 0)
                               : dafl_server_tick(s, UINT64_MAX - 1);
        busy += cli_now() - start;
        if (err != DAFL_OK)
            die(dafl_err_name(err));
        answer_with_effects(fd, s, busy);
    }
    dafl_server_free(&s);
    dafl_pool_free(&pool);
    free(bytes);
    return 0;
}
