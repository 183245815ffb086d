/* SPDX-License-Identifier: Apache-2.0 */
/* What a masked sum costs: K clients, vectors of N numbers, and a share of the
 * clients that drop out after they were cast. The server is a process of its
 * own, so that its memory is its own; the clients live in this one and talk to
 * it through a socket. Every sum is checked. */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/secagg.h"
#include "protocol/client.h"
#include "protocol/envelope.h"

static const double shares[SLOTS] = {0, 0.1, 0.3};

/* ---- the clients ---- */

typedef struct {
    uint8_t *bytes;
    size_t len;
} letter;

typedef struct {
    size_t numbers, number;
    dafl_secret_identity id;
    dafl_client *machine;
    letter *in;
    size_t n_in, room_in;
    letter *out;
    size_t n_out, room_out, given; /* of these, to the server already */
    bool connected, drops;
    double cast_s, slot_s;       /* time for CAST, for all of the slot */
    double up_bytes, down_bytes; /* in the slot */
    double upload_bytes;         /* of UPLOAD and END */
} client;

typedef struct {
    int fd;
    size_t n;
    client *clients;
    dafl_pool *pool;
    report server;
    double model_s; /* the server's time when the slot was opened */
    double setup_s;
    uint32_t slot; /* from 0 */
    struct {
        double client_ms, cast_ms, server_ms, up, down, upload;
        size_t dropped;
    } result[SLOTS];
} bench;

static dafl_fault client_answer(void *self, const dafl_question *q, int64_t *x,
                                size_t len)
{
    const client *c = self;

    (void)q;
    for (size_t i = 0; i < len; i++)
        x[i] = number_of(c->number, i);
    return DAFL_FAULT_NONE;
}

static dafl_fault client_shape(void *self, const dafl_question *q,
                               dafl_shape *out)
{
    (void)q;
    *out = (dafl_shape){.len = ((const client *)self)->numbers};
    return DAFL_FAULT_NONE;
}

static dafl_fault client_follow(void *self, const dafl_segment *segment)
{
    (void)self;
    (void)segment;
    return DAFL_FAULT_NONE;
}

static dafl_fault client_rewind(void *self)
{
    (void)self;
    return DAFL_FAULT_NONE;
}

static const dafl_client_method client_method = {.follow = client_follow,
                                                 .shape = client_shape,
                                                 .answer = client_answer,
                                                 .rewind = client_rewind};

static void keep(letter **list, size_t *n, size_t *room, const void *bytes,
                 size_t len)
{
    if (*n == *room) {
        *room = *room == 0 ? 8 : 2 * *room;
        *list = realloc(*list, *room * sizeof **list);
        if (*list == NULL)
            die("out of memory");
    }
    (*list)[*n] = (letter){malloc(len), len};
    if ((*list)[*n].bytes == NULL)
        die("out of memory");
    memcpy((*list)[(*n)++].bytes, bytes, len);
}

static dafl_msg_type type_of(const letter *l)
{
    dafl_envelope m;

    if (dafl_get_envelope(&m, (dafl_bytes){l->bytes, l->len}, UINT64_MAX) !=
        DAFL_FAULT_NONE)
        die("no envelope");
    return (dafl_msg_type)m.type;
}

static void empty_client(client *c)
{
    dafl_effect e;

    while (dafl_client_next(c->machine, &e))
        if (e.kind == DAFL_DO_SEND)
            keep(&c->out, &c->n_out, &c->room_out, e.bytes.ptr, e.bytes.len);
}

static void work(void *ctx, unsigned worker, size_t i)
{
    client *c = &((bench *)ctx)->clients[i];

    (void)worker;
    for (size_t k = 0; k < c->n_in; k++) {
        bool cast = type_of(&c->in[k]) == DAFL_MSG_CAST;
        double start = cli_now();
        if (cast && c->drops) {
            c->connected = false; /* it was cast and is gone */
        } else if (c->connected) {
            if (dafl_client_receive(
                    c->machine, (dafl_bytes){c->in[k].bytes, c->in[k].len}) !=
                DAFL_OK)
                die("a client failed");
            empty_client(c);
            c->slot_s += cli_now() - start;
            c->cast_s += cast ? cli_now() - start : 0;
        }
        free(c->in[k].bytes);
    }
    c->n_in = 0;
}

static void close_slot(bench *b, const report *r)
{
    double n = (double)b->n, up = 0, down = 0, cast = 0, all = 0, lasting = 0;
    double upload = 0;

    if (b->slot >= SLOTS)
        return;
    for (size_t i = 0; i < b->n; i++) {
        client *c = &b->clients[i];
        up += c->up_bytes;
        upload += c->upload_bytes;
        down += c->down_bytes;
        b->result[b->slot].dropped += c->drops;
        if (!c->drops) {
            cast += c->cast_s;
            all += c->slot_s;
            lasting++;
        }
        c->up_bytes = c->down_bytes = c->upload_bytes = 0;
        c->cast_s = c->slot_s = 0;
        c->drops = false;
    }
    b->result[b->slot].client_ms = 1e3 * all / lasting;
    b->result[b->slot].cast_ms = 1e3 * cast / lasting;
    b->result[b->slot].server_ms = 1e3 * (r->busy_s - b->model_s);
    b->result[b->slot].up = up / lasting;
    b->result[b->slot].upload = upload / lasting;
    b->result[b->slot].down = down / n;
    b->slot++;
}

static void open_slot(bench *b, const report *r)
{
    size_t drops =
        (size_t)(shares[b->slot < SLOTS ? b->slot : 0] * (double)b->n);

    b->model_s = r->busy_s;
    if (b->slot == 0)
        b->setup_s = r->busy_s;
    for (size_t i = 0; i < b->n; i++) {
        client *c = &b->clients[i];
        c->drops = i * 7919 % b->n < drops;
        if (b->slot == 0) /* what came before was setup */
            c->up_bytes = c->down_bytes = c->cast_s = c->slot_s = 0;
    }
}

/* Read what the server has to say, until it is idle. */
static void listen_to_server(bench *b)
{
    static dafl_members to;
    uint8_t *bytes = NULL;
    bool over = false;

    for (frame f = {0}; f.kind != IDLE;) {
        read_all(b->fd, &f, sizeof f);
        if (f.kind == SEND && f.number == 0) {
            read_all(b->fd, &to, sizeof to);
            continue;
        }
        bytes = realloc(bytes, f.len + 1);
        if (bytes == NULL)
            die("out of memory");
        read_all(b->fd, bytes, f.len);
        if (f.kind == SEND) {
            for (size_t i = 0; i < b->n; i++)
                if (dafl_members_has(&to, i) && b->clients[i].connected) {
                    client *c = &b->clients[i];
                    c->down_bytes += (double)f.len;
                    keep(&c->in, &c->n_in, &c->room_in, bytes, f.len);
                }
            continue;
        }
        memcpy(&b->server, bytes, sizeof b->server);
        if (f.kind == AT_RESULT) {
            if (f.number != 0)
                die("a slot failed");
            close_slot(b, &b->server);
            over = true;
        } else if (f.kind == AT_MODEL) {
            open_slot(b, &b->server);
        }
    }
    free(bytes);
    for (size_t i = 0; over && i < b->n; i++)
        if (!b->clients[i].connected) {
            b->clients[i].connected = true;
            if (dafl_client_hello(b->clients[i].machine) != DAFL_OK)
                die("a client failed");
            empty_client(&b->clients[i]);
        }
}

/* One message of a client to the server. */
static void deliver(bench *b, client *c, const letter *l)
{
    dafl_msg_type type = type_of(l);

    if (!c->connected)
        return;
    c->up_bytes += (double)l->len;
    if (type == DAFL_MSG_UPLOAD || type == DAFL_MSG_END)
        c->upload_bytes += (double)l->len;
    put(b->fd, MESSAGE, 0, l->bytes, l->len);
    listen_to_server(b);
}

/* Everything that clients have sent, a message of each in turn, so that their
 * uploads arrive side by side. */
static void deliver_all(bench *b)
{
    bool any = true;

    while (any) {
        any = false;
        for (size_t i = 0; i < b->n; i++) {
            client *c = &b->clients[i];
            if (c->given == c->n_out)
                continue;
            deliver(b, c, &c->out[c->given]);
            free(c->out[c->given++].bytes);
            any = true;
        }
    }
    for (size_t i = 0; i < b->n; i++)
        b->clients[i].n_out = b->clients[i].given = 0;
}

static void run(bench *b)
{
    listen_to_server(b);
    while (b->server.state != DAFL_SERVER_DONE) {
        bool any = false, was[DAFL_CLIENTS_MAX] = {false};
        if (b->server.state == DAFL_SERVER_FAILED)
            die("the run failed");
        for (size_t i = 0; i < b->n; i++) {
            any |= b->clients[i].n_in + b->clients[i].n_out > 0;
            was[i] = b->clients[i].connected;
        }
        dafl_pool_run(b->pool, b->n, work, b);
        deliver_all(b);
        for (size_t i = 0; i < b->n; i++)
            if (was[i] && !b->clients[i].connected) {
                put(b->fd, LOST, (uint32_t)i, NULL, 0);
                listen_to_server(b);
            }
        if (!any) {
            put(b->fd, TICK, 0, NULL, 0);
            listen_to_server(b);
        }
    }
}

/* ---- putting together ---- */

static void identify(dafl_secret_identity *id, const char *name)
{
    if (dafl_identity_new(id, name, NULL) != DAFL_OK)
        die("no identity");
}

static void make_clients(bench *b, const dafl_roster *roster,
                         const dafl_config *config, size_t numbers)
{
    for (size_t i = 0; i < b->n; i++) {
        client *c = &b->clients[i];
        dafl_client_params params = {.roster = roster,
                                     .config = config,
                                     .self = &c->id,
                                     .floor = {.any_cohort = true},
                                     .method = &client_method,
                                     .method_self = c};
        c->numbers = numbers;
        c->connected = true;
        if (dafl_client_new(&c->machine, &params, NULL, NULL) != DAFL_OK ||
            dafl_client_start(c->machine) != DAFL_OK)
            die("no client");
        empty_client(c);
    }
}

static void free_clients(bench *b)
{
    for (size_t i = 0; i < b->n; i++) {
        dafl_client_free(&b->clients[i].machine);
        free(b->clients[i].in);
        free(b->clients[i].out);
    }
    free(b->clients);
    (void)malloc_trim(0); /* the next server is not to inherit it */
}

static json_t *show(const bench *b, size_t numbers, unsigned w, bool json)
{
    json_t *rows = json_array();
    double plain = (double)numbers * w / 8;

    for (size_t i = 0; i < SLOTS; i++) {
        double dropped = (double)b->result[i].dropped;
        double each =
            dropped == 0
                ? 0
                : (b->result[i].server_ms - b->result[0].server_ms) / dropped;
        (void)json_array_append_new(
            rows,
            json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}",
                      "dropouts", shares[i], "client_ms",
                      b->result[i].client_ms, "masking_ms",
                      b->result[i].cast_ms, "server_ms", b->result[i].server_ms,
                      "server_ms_per_dropout", each, "client_up_bytes",
                      b->result[i].up, "client_down_bytes", b->result[i].down,
                      "up_over_plain", b->result[i].up / plain,
                      "upload_over_plain", b->result[i].upload / plain));
        if (!json)
            printf("%7zu %8zu %5.0f%% %10.0f %10.0f %10.0f %12.1f %9.4f %10.3f "
                   "%10.0f "
                   "%8.0f\n",
                   b->n, numbers, 100 * shares[i], b->result[i].client_ms,
                   b->result[i].cast_ms, b->result[i].server_ms, each,
                   b->result[i].upload / plain, b->result[i].up / plain,
                   b->result[i].down / 1e3, b->server.peak_mb);
    }
    (void)fflush(stdout);
    return json_pack("{s:I, s:I, s:f, s:f, s:o}", "clients", (json_int_t)b->n,
                     "numbers", (json_int_t)numbers, "server_peak_mb",
                     b->server.peak_mb, "setup_server_ms", 1e3 * b->setup_s,
                     "slots", rows);
}

static json_t *measure(size_t k, size_t numbers, bool json)
{
    bench b = {.n = k, .clients = calloc(k, sizeof *b.clients)};
    dafl_party parties[DAFL_CLIENTS_MAX + 1];
    dafl_config config = dafl_config_default();
    dafl_secret_identity server;
    dafl_roster roster;
    json_t *shown;
    int fds[2];
    pid_t child;

    if (b.clients == NULL || socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0)
        die("no socket");
    for (size_t i = 0; i < k; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "c%zu", i);
        b.clients[i].number = i;
        identify(&b.clients[i].id, name);
        parties[i] = (dafl_party){.id = b.clients[i].id.public,
                                  .role = DAFL_ROLE_CLIENT,
                                  .cell = (uint16_t)i};
    }
    identify(&server, "server");
    parties[k] = (dafl_party){
        .id = server.public, .role = DAFL_ROLE_SERVER, .cell = DAFL_NO_CELL};
    if (dafl_roster_make(&roster, parties, k + 1, NULL) != DAFL_OK)
        die("no roster");
    config.policy = (dafl_policy){.n_min = (uint16_t)k, .m = 3, .g = 1, .c = 1};
    config.policy.a = (uint16_t)dafl_threshold_absent(k, 1);
    config.slots = SLOTS;
    config.tries = 0;
    (void)strcpy(config.method, "bench");
    child = fork();
    if (child == 0) {
        (void)close(fds[0]);
        _exit(serve(fds[1], &roster, &config, &server, numbers));
    }
    (void)close(fds[1]);
    b.fd = fds[0];
    if (child < 0 || dafl_pool_new(&b.pool, 0) != DAFL_OK)
        die("no process");
    make_clients(&b, &roster, &config, numbers);
    run(&b);
    put(b.fd, QUIT, 0, NULL, 0);
    (void)waitpid(child, NULL, 0);
    (void)close(b.fd);
    shown = show(&b, numbers, config.contract.w, json);
    dafl_pool_free(&b.pool);
    free_clients(&b);
    return shown;
}

int main(int argc, char **argv)
{
    size_t clients = 0, numbers = 0, n_words = 0;
    static const size_t all_clients[] = {100, 250};
    static const size_t all_numbers[] = {100000, 627200};
    bool json = false;
    const opt opts[] = {
        {OPT_HEADING, NULL, NULL, NULL, "Options"},
        {OPT_SIZE, "clients", "K", &clients, "default: 100, then 250"},
        {OPT_SIZE, "numbers", "N", &numbers, "default: 100000, then 627200"},
        {OPT_FLAG, "json", NULL, &json, "one JSON object on stdout"},
    };
    json_t *list = json_array();
    dafl_why why = {{0}};
    int help = 0;

    if (opt_parse(opts, sizeof opts / sizeof opts[0], argc, argv, NULL, 0,
                  &n_words, &help, &why) != DAFL_OK) {
        (void)fprintf(stderr, "bench/secagg: %s\n", why.text);
        return EXIT_INPUT;
    }
    if (help) {
        opt_print_help(opts, sizeof opts / sizeof opts[0]);
        return 0;
    }
    if (clients > DAFL_CLIENTS_MAX || (clients > 0 && clients < 10))
        die("--clients: choose 10 to 256");
    if (!json)
        printf("clients  numbers  drop  client ms masking ms  server ms "
               "ms/dropout    upload     all up  down (kB) server MB\n");
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < 2; j++)
            if ((clients == 0 || i == 0) && (numbers == 0 || j == 0))
                (void)json_array_append_new(
                    list,
                    measure(clients == 0 ? all_clients[i] : clients,
                            numbers == 0 ? all_numbers[j] : numbers, json));
    if (json)
        return cli_print_json(json_pack("{s:o}", "runs", list)) ? 0
                                                                : EXIT_FAILED;
    json_decref(list);
    return 0;
}
