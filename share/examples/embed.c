/* SPDX-License-Identifier: Apache-2.0 */
/* A client inside another program, over a transport and a disk of its own.
 *
 *     cc -std=c11 embed.c $(pkg-config --cflags --libs deepafl) -o embed
 *     ./embed DIR features.npy labels.npy
 *
 * plays a whole run in DIR (empty): a server and three sites, each a process
 * with a third of the rows, train a model with two layers,
 * DIR/model.safetensors. After the first sum site 1 is killed and started again
 * with what it has on disk. The part to take along is `site_main` and what is
 * above it.
 *
 * Left out, and needed in earnest: encryption and authentication of the
 * transport (messages are signed, but whoever listens sees who talks to whom;
 * the agents use CURVE), two processes on one disk, a disk put back from a
 * copy, a journal record torn by a power cut (docs/state.md), audit logs
 * (docs/audit.md), the server's own journal. */
#define _DEFAULT_SOURCE
#include <deepafl.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SITES = 3, HELLO_MS = 2000 };

/* ---- a transport: a byte stream of u32 length, message ---- */

static bool put_all(int fd, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;

    while (len > 0) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

static bool get_all(int fd, void *bytes, size_t len)
{
    uint8_t *at = bytes;

    while (len > 0) {
        ssize_t n = read(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

/* Blocking writes will do between two that never have much for each other at
 * the same time; others queue. */
static bool put_frame(int fd, dafl_bytes message)
{
    uint32_t len = (uint32_t)message.len;

    return put_all(fd, &len, sizeof len) &&
           put_all(fd, message.ptr, message.len);
}

/* To be freed. What a peer says of its length is bounded before it is
 * believed. */
static bool get_frame(int fd, uint64_t most, dafl_bytes *out)
{
    uint32_t len = 0;
    uint8_t *bytes;

    if (!get_all(fd, &len, sizeof len) || len == 0 || len > most)
        return false;
    bytes = malloc(len);
    if (bytes != NULL && get_all(fd, bytes, len)) {
        *out = (dafl_bytes){bytes, len};
        return true;
    }
    free(bytes);
    return false;
}

static uint64_t most_of(const dafl_config *config)
{
    return config->body_max + DAFL_ENVELOPE_OVERHEAD;
}

/* ---- a disk: DIR/journal and a file for each slot that has secrets ---- */

static bool write_durably(const char *path, int flags, const void *bytes,
                          size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
    bool ok = fd >= 0 && put_all(fd, bytes, len) && fsync(fd) == 0;

    if (fd >= 0 && close(fd) != 0)
        ok = false;
    if (ok)
        dafl_file_sync_parent(path);
    return ok;
}

static bool journal_append(const char *dir, dafl_bytes record)
{
    dafl_writer w = {0};
    char path[512];
    bool ok;

    (void)snprintf(path, sizeof path, "%s/journal", dir);
    dafl_put_u32(&w, (uint32_t)record.len);
    dafl_put_fixed(&w, record.ptr, record.len);
    ok = dafl_writer_done(&w) == DAFL_OK &&
         write_durably(path, O_APPEND, w.ptr, w.len);
    dafl_writer_drop(&w);
    return ok;
}

static void secret_path(char path[512], const char *dir, uint32_t slot)
{
    (void)snprintf(path, 512, "%s/secret.%u", dir, (unsigned)slot);
}

/* The slots that have secrets, one a call; 0: no more. */
static uint32_t next_secret(DIR *dir)
{
    const struct dirent *e;

    while (dir != NULL && (e = readdir(dir)) != NULL)
        if (strncmp(e->d_name, "secret.", 7) == 0)
            return (uint32_t)strtoul(e->d_name + 7, NULL, 10);
    return 0;
}

/* Zeros over what it holds, then away with it. */
static bool erase_secret(const char *path)
{
    static const uint8_t zeros[4096];
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    off_t left = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    bool ok = fd >= 0 && lseek(fd, 0, SEEK_SET) == 0;

    for (; ok && left > 0; left -= (off_t)sizeof zeros)
        ok = put_all(fd, zeros,
                     left < (off_t)sizeof zeros ? (size_t)left : sizeof zeros);
    ok = ok && fsync(fd) == 0;
    if (fd >= 0 && close(fd) != 0)
        ok = false;
    ok = ok && unlink(path) == 0;
    if (ok)
        dafl_file_sync_parent(path);
    return ok;
}

static bool erase_secrets(const char *dir, uint32_t upto)
{
    DIR *d = opendir(dir);
    bool ok = d != NULL;
    uint32_t slot;

    while (ok && (slot = next_secret(d)) != 0) {
        char path[512];
        secret_path(path, dir, slot);
        if (slot <= upto)
            ok = erase_secret(path);
    }
    if (d != NULL)
        (void)closedir(d);
    return ok;
}

/* After a restart the machine hears its journal in order, then its secrets. */
static dafl_err recall(dafl_client *machine, const char *dir, dafl_why *why)
{
    char path[512];
    dafl_map file;
    dafl_err err = DAFL_OK;
    DIR *d;
    uint32_t slot;

    (void)snprintf(path, sizeof path, "%s/journal", dir);
    if (access(path, F_OK) != 0)
        return DAFL_OK; /* a new one */
    DAFL_TRY(dafl_map_open(&file, path, why));
    for (dafl_reader r = dafl_read(file.bytes); err == DAFL_OK && r.left > 0;) {
        uint32_t len = 0;
        dafl_bytes record = {0};
        err = dafl_get_u32(&r, &len);
        if (err == DAFL_OK)
            err = dafl_get_view(&r, &record, len);
        if (err == DAFL_OK)
            err = dafl_client_recall(machine, record);
    }
    dafl_map_close(&file);
    d = opendir(dir);
    while (err == DAFL_OK && (slot = next_secret(d)) != 0) {
        secret_path(path, dir, slot);
        err = dafl_map_open(&file, path, why);
        if (err != DAFL_OK)
            break;
        err = dafl_client_recall_secret(machine, slot, file.bytes);
        dafl_map_close(&file);
    }
    if (d != NULL)
        (void)closedir(d);
    return err;
}

/* ---- what everybody has agreed on: files of DIR ---- */

typedef struct {
    dafl_roster roster;
    dafl_config config;
    dafl_params params; /* of the method, from the config */
    dafl_participation part;
    dafl_map bytes; /* which the config looks into */
} agreed;

static dafl_err agreed_read(agreed *out, const char *dir, dafl_why *why)
{
    char path[512];
    dafl_map roster;
    dafl_err err;

    (void)snprintf(path, sizeof path, "%s/roster", dir);
    DAFL_TRY(dafl_map_open(&roster, path, why));
    err = dafl_get_roster(&out->roster, roster.bytes, why);
    dafl_map_close(&roster);
    DAFL_TRY(err);
    (void)snprintf(path, sizeof path, "%s/config", dir);
    DAFL_TRY(dafl_map_open(&out->bytes, path, why));
    DAFL_TRY(dafl_get_config(&out->config, out->bytes.bytes, why));
    out->params.contract = out->config.contract;
    return dafl_get_deep_params(&out->params, &out->part,
                                out->config.method_params, why);
}

/* ---- a site ---- */

typedef struct {
    agreed run;
    dafl_secret_identity self;
    char dir[256];
    int fd;
    dafl_pool *pool;
    dafl_data data;
    uint32_t *rows; /* those of this site */
    size_t n_rows;
    dafl_deep_client *deep;
    dafl_client *machine;
} site;

/* How DeepAFL's client side gets its rows: at the start, and again if the run
 * begins anew. */
static dafl_err found(void *ctx, const dafl_params *p,
                      const dafl_projection *first, dafl_site **out,
                      dafl_site **held, dafl_digest *rows, dafl_why *why)
{
    site *s = ctx;

    *held = NULL;
    DAFL_TRY(dafl_deep_digest(rows, &s->data, s->rows, s->n_rows));
    return dafl_site_new(out, p, s->pool, &s->data, s->rows, s->n_rows, first,
                         why);
}

/* One effect after the other, each finished before the next is begun. */
static dafl_err work(site *s)
{
    dafl_effect e;
    char path[512];
    bool ok = true;

    while (ok && dafl_client_next(s->machine, &e))
        switch (e.kind) {
        case DAFL_DO_SEND:
            ok = put_frame(s->fd, e.bytes);
            break;
        case DAFL_DO_APPEND:
            ok = journal_append(s->dir, e.bytes);
            break;
        case DAFL_DO_KEEP:
            secret_path(path, s->dir, e.slot);
            ok = write_durably(path, O_TRUNC, e.bytes.ptr, e.bytes.len);
            break;
        case DAFL_DO_ERASE:
            ok = erase_secrets(s->dir, e.slot);
            break;
        case DAFL_DO_TELL:
            if (e.event.fault != DAFL_FAULT_NONE)
                (void)fprintf(stderr, "%s: %s: %s\n", s->self.public.name,
                              dafl_event_name(e.event.kind),
                              dafl_fault_name(e.event.fault));
            break;
        }
    return ok ? DAFL_OK : DAFL_ERR_SYS;
}

static dafl_err take_part(site *s, dafl_why *why)
{
    DAFL_TRY(recall(s->machine, s->dir, why));
    DAFL_TRY(dafl_client_start(s->machine));
    DAFL_TRY(dafl_client_hello(s->machine));
    DAFL_TRY(work(s));
    while (dafl_client_where(s->machine) != DAFL_CLIENT_OUT) {
        struct pollfd p = {.fd = s->fd, .events = POLLIN};
        dafl_bytes message;
        dafl_err err;
        if (poll(&p, 1, HELLO_MS) == 0) {
            DAFL_TRY(dafl_client_hello(s->machine)); /* what did we miss? */
            DAFL_TRY(work(s));
            continue;
        }
        if (!get_frame(s->fd, most_of(&s->run.config), &message))
            return dafl_fail(why, DAFL_ERR_SYS, "the server is gone");
        err = dafl_client_receive(s->machine, message);
        free((void *)message.ptr);
        DAFL_TRY(err);
        DAFL_TRY(work(s));
    }
    if (dafl_client_fault(s->machine) != DAFL_FAULT_NONE)
        return dafl_fail(why, DAFL_ERR_PEER, "%s",
                         dafl_client_says(s->machine));
    return DAFL_OK;
}

static dafl_err open_site(site *s, const char *dir, size_t number,
                          const char *features, const char *labels,
                          dafl_why *why)
{
    dafl_client_params params = {.roster = &s->run.roster,
                                 .config = &s->run.config,
                                 .self = &s->self,
                                 /* Whatever the config says: */
                                 .floor = {.least_m = 3, .least_g = 3},
                                 .method = &dafl_deep_client_method};
    char path[512];

    DAFL_TRY(agreed_read(&s->run, dir, why));
    (void)snprintf(path, sizeof path, "%s/site%zu.key", dir, number);
    DAFL_TRY(dafl_identity_load(&s->self, path, why));
    DAFL_TRY(
        dafl_data_open(&s->data, features, labels, s->run.params.classes, why));
    s->rows = calloc(s->data.n, sizeof *s->rows);
    if (s->rows == NULL)
        return DAFL_ERR_NOMEM;
    for (size_t i = number; i < s->data.n; i += SITES)
        s->rows[s->n_rows++] = (uint32_t)i;
    (void)snprintf(s->dir, sizeof s->dir, "%.200s/site%zu.state", dir, number);
    if (mkdir(s->dir, 0700) != 0 && errno != EEXIST)
        return dafl_fail(why, DAFL_ERR_SYS, "%s: %s", s->dir, strerror(errno));
    DAFL_TRY(dafl_pool_new(&s->pool, 1));
    DAFL_TRY(
        dafl_deep_client_new(&s->deep, &s->run.params, found, NULL, s, why));
    params.method_self = s->deep;
    params.pool = s->pool;
    return dafl_client_new(&s->machine, &params, NULL, why);
}

static int site_main(int fd, const char *dir, size_t number,
                     const char *features, const char *labels)
{
    site *s = calloc(1, sizeof *s);
    dafl_why why = {{0}};
    dafl_err err = DAFL_ERR_NOMEM;

    if (s != NULL) {
        s->fd = fd;
        err = open_site(s, dir, number, features, labels, &why);
        if (err == DAFL_OK)
            err = take_part(s, &why);
        dafl_client_free(&s->machine);
        dafl_deep_client_free(&s->deep);
        if (s->data.path != NULL)
            dafl_data_close(&s->data);
        dafl_pool_free(&s->pool);
        dafl_map_close(&s->run.bytes);
        dafl_identity_wipe(&s->self);
        free(s->rows);
    }
    free(s);
    if (err != DAFL_OK)
        (void)fprintf(stderr, "site %zu: %s: %s\n", number, dafl_err_name(err),
                      why.text);
    return err == DAFL_OK ? 0 : 1;
}

/* ---- the rest of the world: whoever writes the run, and the server ---- */

static dafl_err write_run(const char *dir, dafl_secret_identity *server,
                          size_t features, size_t classes, dafl_why *why)
{
    dafl_params params = {.method = DAFL_METHOD_DEEPAFL,
                          .features = features,
                          .width = 32,
                          .hidden = 32,
                          .classes = classes,
                          .layers = 2,
                          .activation = DAFL_ACT_GELU,
                          .lambda = 1,
                          .gamma = 0.01,
                          .contract = DAFL_CONTRACT_DEFAULT};
    dafl_participation all = {.permille = 1000};
    dafl_party parties[SITES + 1];
    dafl_roster roster;
    dafl_config config = dafl_config_default();
    dafl_writer w = {0}, method = {0};
    char path[512];
    dafl_err err;

    for (size_t u = 0; u <= SITES; u++) {
        dafl_secret_identity id;
        char name[16];
        (void)snprintf(name, sizeof name, u == SITES ? "server" : "site%zu", u);
        DAFL_TRY(dafl_identity_new(&id, name, why));
        (void)snprintf(path, sizeof path, "%s/%s.key", dir, name);
        DAFL_TRY(dafl_identity_save(&id, path, why));
        parties[u] = (dafl_party){.id = id.public,
                                  .role = u == SITES ? DAFL_ROLE_SERVER
                                                     : DAFL_ROLE_CLIENT,
                                  .cell = u == SITES ? DAFL_NO_CELL : 0};
        if (u == SITES)
            *server = id;
        dafl_identity_wipe(&id);
    }
    DAFL_TRY(dafl_roster_make(&roster, parties, SITES + 1, why));
    dafl_put_roster(&w, &roster);
    (void)snprintf(path, sizeof path, "%s/roster", dir);
    err = dafl_writer_done(&w);
    if (err == DAFL_OK)
        err = dafl_file_replace(path, &(dafl_bytes){w.ptr, w.len}, 1, why);
    dafl_writer_drop(&w);
    DAFL_TRY(err);

    DAFL_TRY(dafl_seed_parse(&params.seed, "7", why)); /* random, in earnest */
    DAFL_TRY(dafl_params_check(&params, why));
    config.mode = DAFL_MODE_MASKS;
    config.policy = (dafl_policy){.n_min = 3, .m = 3, .g = 3, .c = 1};
    config.contract = params.contract;
    config.slots = dafl_config_slots(dafl_deep_questions(&params));
    (void)strcpy(config.method, "deepafl");
    dafl_put_deep_params(&method, &params, &all);
    config.method_params = dafl_writer_bytes(&method);
    err = dafl_config_check(&config, &roster, why) == DAFL_FAULT_NONE
              ? dafl_writer_done(&method)
              : DAFL_ERR_INPUT;
    dafl_put_config(&w, &config);
    (void)snprintf(path, sizeof path, "%s/config", dir);
    if (err == DAFL_OK)
        err = dafl_writer_done(&w);
    if (err == DAFL_OK)
        err = dafl_file_replace(path, &(dafl_bytes){w.ptr, w.len}, 1, why);
    dafl_writer_drop(&w);
    dafl_writer_drop(&method);
    return err;
}

typedef struct {
    agreed run;
    dafl_secret_identity self;
    char **argv;
    pid_t pids[SITES];
    int fds[SITES]; /* -1: not connected */
    dafl_model *model;
    dafl_deep_server *deep;
    dafl_server *machine;
    bool killed;
} hub;

static uint64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* This program again, as a site at the other end of a pair of sockets. */
static bool start_site(hub *h, size_t u)
{
    int pair[2];
    char fd[16], number[16];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return false;
    (void)snprintf(fd, sizeof fd, "%d", pair[1]);
    (void)snprintf(number, sizeof number, "%zu", u);
    h->pids[u] = fork();
    if (h->pids[u] == 0) {
        (void)fcntl(pair[1], F_SETFD, 0);
        execl("/proc/self/exe", h->argv[0], "--site", fd, number, h->argv[1],
              h->argv[2], h->argv[3], (char *)NULL);
        _exit(127);
    }
    (void)close(pair[1]);
    h->fds[u] = pair[0];
    return h->pids[u] > 0;
}

static dafl_err lost(hub *h, size_t u)
{
    int status = 0;

    (void)close(h->fds[u]);
    h->fds[u] = -1;
    if (waitpid(h->pids[u], &status, 0) == h->pids[u] && WIFSIGNALED(status))
        printf("site %zu was killed; starting it again\n", u);
    h->pids[u] = 0;
    DAFL_TRY(dafl_server_lost(h->machine, (uint16_t)u, now_ms()));
    return start_site(h, u) ? DAFL_OK : DAFL_ERR_SYS;
}

static void hub_work(hub *h)
{
    dafl_effect e;

    while (dafl_server_next(h->machine, &e)) {
        for (size_t u = 0; e.kind == DAFL_DO_SEND && u < SITES; u++)
            if (dafl_members_has(&e.to, u) && h->fds[u] >= 0)
                (void)!put_frame(h->fds[u], e.bytes); /* a loss is read below */
        if (e.kind == DAFL_DO_TELL && e.event.kind == DAFL_EVENT_RESULT) {
            printf("slot %u: question %u %s\n", (unsigned)e.event.slot,
                   (unsigned)e.event.number,
                   e.event.fault == DAFL_FAULT_NONE
                       ? "answered"
                       : dafl_fault_name(e.event.fault));
            if (!h->killed)
                (void)kill(h->pids[1], SIGKILL);
            h->killed = true;
        }
    }
}

static dafl_err serve(hub *h, dafl_why *why)
{
    DAFL_TRY(dafl_server_start(h->machine, now_ms()));
    for (;;) {
        struct pollfd p[SITES];
        uint64_t deadline, now;
        hub_work(h);
        if (dafl_server_where(h->machine) == DAFL_SERVER_DONE)
            return DAFL_OK;
        if (dafl_server_where(h->machine) == DAFL_SERVER_FAILED)
            return dafl_fail(why, DAFL_ERR_PEER, "%s",
                             dafl_fault_name(dafl_server_fault(h->machine)));
        for (size_t u = 0; u < SITES; u++)
            p[u] = (struct pollfd){.fd = h->fds[u], .events = POLLIN};
        now = now_ms();
        deadline = dafl_server_deadline(h->machine);
        (void)poll(p, SITES,
                   deadline <= now             ? 0
                   : deadline - now < HELLO_MS ? (int)(deadline - now)
                                               : HELLO_MS);
        for (size_t u = 0; u < SITES; u++) {
            dafl_bytes message;
            dafl_err err;
            if (p[u].revents == 0)
                continue;
            if (!get_frame(h->fds[u], most_of(&h->run.config), &message)) {
                DAFL_TRY(lost(h, u));
                continue;
            }
            err = dafl_server_receive(h->machine, message, now_ms());
            free((void *)message.ptr);
            DAFL_TRY(err);
        }
        DAFL_TRY(dafl_server_tick(h->machine, now_ms()));
    }
}

static dafl_err open_hub(hub *h, dafl_why *why)
{
    dafl_server_params params = {.roster = &h->run.roster,
                                 .config = &h->run.config,
                                 .self = &h->self,
                                 .method = &dafl_deep_server_method};
    dafl_data data;

    DAFL_TRY(dafl_data_open(&data, h->argv[2], h->argv[3], 0, why));
    if (mkdir(h->argv[1], 0700) != 0 && errno != EEXIST)
        return dafl_fail(why, DAFL_ERR_SYS, "%s: %s", h->argv[1],
                         strerror(errno));
    DAFL_TRY(write_run(h->argv[1], &h->self, data.x.cols, data.classes, why));
    dafl_data_close(&data);
    DAFL_TRY(agreed_read(&h->run, h->argv[1], why));
    if (getentropy(params.run.b, sizeof params.run.b) != 0)
        return DAFL_ERR_SYS;
    DAFL_TRY(dafl_model_new(&h->model, &h->run.params));
    DAFL_TRY(dafl_deep_server_new(&h->deep, h->model, &h->run.part, SITES));
    params.method_self = h->deep;
    return dafl_server_new(&h->machine, &params, NULL, why);
}

/* Let everybody hear of the end, and see how they fared. */
static bool sites_done(hub *h)
{
    bool ok = true;

    for (size_t u = 0; u < SITES; u++) {
        int status = 1;
        if (h->pids[u] > 0 && waitpid(h->pids[u], &status, 0) == h->pids[u])
            ok = ok && WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (h->fds[u] >= 0)
            (void)close(h->fds[u]);
    }
    return ok;
}

static int hub_main(char **argv)
{
    hub *h = calloc(1, sizeof *h);
    dafl_why why = {{0}};
    char path[512];
    dafl_err err;
    bool ok = false;

    if (h == NULL)
        return 1;
    h->argv = argv;
    (void)signal(SIGPIPE, SIG_IGN);
    for (size_t u = 0; u < SITES; u++)
        h->fds[u] = -1;
    err = open_hub(h, &why);
    for (size_t u = 0; u < SITES && err == DAFL_OK; u++)
        err = start_site(h, u) ? DAFL_OK : DAFL_ERR_SYS;
    if (err == DAFL_OK)
        err = serve(h, &why);
    (void)snprintf(path, sizeof path, "%s/model.safetensors", argv[1]);
    if (err == DAFL_OK)
        err = dafl_model_save(h->model, path, &why);
    if (err == DAFL_OK)
        ok = sites_done(h);
    else
        (void)fprintf(stderr, "%s: %s\n", dafl_err_name(err), why.text);
    dafl_server_free(&h->machine);
    dafl_deep_server_free(&h->deep);
    dafl_model_free(&h->model);
    dafl_map_close(&h->run.bytes);
    dafl_identity_wipe(&h->self);
    free(h);
    if (ok)
        printf("%s\n", path);
    return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 7 && strcmp(argv[1], "--site") == 0)
        return site_main((int)strtol(argv[2], NULL, 10), argv[4],
                         strtoul(argv[3], NULL, 10), argv[5], argv[6]);
    if (argc == 4)
        return hub_main(argv);
    (void)fprintf(stderr, "usage: %s DIR features.npy labels.npy\n", argv[0]);
    return 2;
}
