/* SPDX-License-Identifier: Apache-2.0 */
/* The only file that knows libmicrohttpd. It runs on our thread, which can so
 * end what takes too long: its own time limit begins anew with every byte. */
#include "agents/metrics_http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <microhttpd.h>

#define CONNECTIONS 64
#define OPEN_MAX 16 /* of those that are not being cut; the oldest one goes */
#define CONNECTION_MS 5000 /* from its first byte to the last */
#define HEADER_BYTES 8192  /* longer requests are refused */
#define TICK_MS 200

typedef struct {
    int fd; /* -1: none */
    bool cut;
    uint64_t number, since; /* many begin in one millisecond */
} visit;

struct metrics_http {
    metrics_page *page;
    void *ctx;
    char url[96];
    bool public;
    struct MHD_Daemon *daemon;
    pthread_t thread;
    bool running;
    atomic_bool stop;
    visit visits[CONNECTIONS];
    uint64_t visitors;
};

static uint64_t now_ms(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- answers ---- */

static enum MHD_Result answer(struct MHD_Connection *c, unsigned status,
                              char *text, size_t len,
                              enum MHD_ResponseMemoryMode whose)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(len, text, whose);
    enum MHD_Result done = MHD_NO;

    if (r == NULL) {
        if (whose == MHD_RESPMEM_MUST_FREE)
            free(text);
        return MHD_NO;
    }
    if (MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE,
                                status == MHD_HTTP_OK
                                    ? "text/plain; version=0.0.4; charset=utf-8"
                                    : "text/plain; charset=utf-8") == MHD_YES &&
        MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close") ==
            MHD_YES &&
        (status != MHD_HTTP_METHOD_NOT_ALLOWED ||
         MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD") ==
             MHD_YES))
        done = MHD_queue_response(c, status, r);
    MHD_destroy_response(r);
    return done;
}

static enum MHD_Result refuse(struct MHD_Connection *c, unsigned status,
                              char *text)
{
    return answer(c, status, text, strlen(text), MHD_RESPMEM_PERSISTENT);
}

/* Called with the header of a request, before its body, if it has one. */
static enum MHD_Result on_request(void *self, struct MHD_Connection *c,
                                  const char *url, const char *method,
                                  const char *version, const char *data,
                                  size_t *data_len, void **request)
{
    static char no_page[] = "There is only /metrics.\n";
    static char no_method[] = "There is only GET and HEAD.\n";
    const metrics_http *h = self;
    size_t len = 0;
    char *text;

    (void)version, (void)data, (void)data_len, (void)request;
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
        strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED, no_method);
    if (strcmp(url, "/metrics") != 0)
        return refuse(c, MHD_HTTP_NOT_FOUND, no_page);
    text = h->page(h->ctx, &len);
    if (text == NULL)
        return MHD_NO;
    return answer(c, MHD_HTTP_OK, text, len, MHD_RESPMEM_MUST_FREE);
}

/* ---- the thread ---- */

/* libmicrohttpd, which owns the descriptor, then sees the end of it. */
static void cut(visit *v)
{
    v->cut = true;
    (void)shutdown(v->fd, SHUT_RDWR);
}

static void cut_long_visits(metrics_http *h)
{
    uint64_t now = now_ms();

    for (size_t i = 0; i < CONNECTIONS; i++) {
        visit *v = &h->visits[i];
        if (v->fd >= 0 && !v->cut && now - v->since > CONNECTION_MS)
            cut(v);
    }
}

/* Whoever says something is answered at once: the newest is the likeliest to
 * be about to. */
static void bound_visits(metrics_http *h)
{
    visit *oldest = NULL;
    size_t n = 0;

    for (size_t i = 0; i < CONNECTIONS; i++) {
        visit *v = &h->visits[i];
        if (v->fd < 0 || v->cut)
            continue;
        n++;
        if (oldest == NULL || v->number < oldest->number)
            oldest = v;
    }
    if (n > OPEN_MAX)
        cut(oldest);
}

static void on_connection(void *self, struct MHD_Connection *c, void **slot,
                          enum MHD_ConnectionNotificationCode code)
{
    metrics_http *h = self;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);

    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*slot != NULL)
            ((visit *)*slot)->fd = -1;
        *slot = NULL;
        return;
    }
    for (size_t i = 0; info != NULL && i < CONNECTIONS; i++)
        if (h->visits[i].fd < 0) {
            h->visits[i] = (visit){.fd = info->connect_fd,
                                   .number = ++h->visitors,
                                   .since = now_ms()};
            *slot = &h->visits[i];
            break;
        }
    bound_visits(h);
}

static void *run(void *self)
{
    const struct timespec pause = {.tv_nsec = TICK_MS * 1000000L};
    metrics_http *h = self;

    while (!h->stop) {
        if (MHD_run_wait(h->daemon, TICK_MS) != MHD_YES)
            (void)nanosleep(&pause, NULL);
        cut_long_visits(h);
    }
    return NULL;
}

/* Signals are the owner's; a write to somebody who is gone is only an error. */
static bool start_thread(metrics_http *h)
{
    sigset_t all, before;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    h->running = pthread_create(&h->thread, NULL, run, h) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return h->running;
}

/* ---- the address ---- */

typedef struct {
    struct sockaddr_storage sa;
    socklen_t len;
} endpoint;

/* "HOST:PORT" into its parts; HOST is empty where there is none. */
static bool split(const char *address, char host[64], char port[8])
{
    const char *colon = strrchr(address, ':');
    const char *digits = colon == NULL ? address : colon + 1;
    size_t n = colon == NULL ? 0 : (size_t)(colon - address);

    if (n >= 2 && address[0] == '[' && address[n - 1] == ']') {
        address++;
        n -= 2;
        if (n == 0)
            return false;
    } else if (memchr(address, ':', n) != NULL) {
        return false;
    }
    if (n >= 64 || strlen(digits) < 1 || strlen(digits) > 5 ||
        strspn(digits, "0123456789") != strlen(digits) ||
        strtol(digits, NULL, 10) > 65535)
        return false;
    (void)snprintf(host, 64, "%.*s", (int)n, address);
    (void)snprintf(port, 8, "%s", digits);
    return true;
}

static bool find_endpoint(endpoint *out, const char *address)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                                   .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char host[64], port[8];

    if (!split(address, host, port))
        return false;
    if (host[0] == '\0' || strcmp(host, "localhost") == 0)
        (void)snprintf(host, sizeof host, "127.0.0.1");
    if (getaddrinfo(host, port, &hints, &found) != 0)
        return false;
    memcpy(&out->sa, found->ai_addr, found->ai_addrlen);
    out->len = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

static bool is_loopback(const endpoint *e)
{
    const struct sockaddr_in *v4 = (const void *)&e->sa;
    const struct sockaddr_in6 *v6 = (const void *)&e->sa;

    return e->sa.ss_family == AF_INET
               ? ntohl(v4->sin_addr.s_addr) >> 24 == 127
               : IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) != 0;
}

static void put_url(metrics_http *h, const endpoint *e)
{
    char host[64] = "?", port[8] = "?";
    bool v6 = e->sa.ss_family == AF_INET6;

    (void)getnameinfo((const void *)&e->sa, e->len, host, sizeof host, port,
                      sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    (void)snprintf(h->url, sizeof h->url, "http://%s%s%s:%s/metrics",
                   v6 ? "[" : "", host, v6 ? "]" : "", port);
}

/* A socket that listens, or -1; *e then has the port that was chosen. */
static int listen_at(endpoint *e)
{
    const int yes = 1;
    int fd =
        socket(e->sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int saved;

    if (fd >= 0 &&
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        (e->sa.ss_family != AF_INET6 ||
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes) == 0) &&
        bind(fd, (const void *)&e->sa, e->len) == 0 &&
        listen(fd, CONNECTIONS) == 0 &&
        getsockname(fd, (void *)&e->sa, &e->len) == 0)
        return fd;
    saved = errno;
    if (fd >= 0)
        (void)close(fd);
    errno = saved;
    return -1;
}

/* ---- the owner ---- */

static dafl_err begin(metrics_http *h, const char *address, dafl_why *why)
{
    endpoint e = {.len = 0};
    int fd;

    if (!find_endpoint(&e, address))
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "--metrics %.80s: neither a port nor ADDRESS:PORT "
                         "with a numeric address",
                         address);
    fd = listen_at(&e);
    if (fd < 0)
        return dafl_fail(why, DAFL_ERR_INPUT, "--metrics %.80s: %s", address,
                         strerror(errno));
    put_url(h, &e);
    h->public = !is_loopback(&e);
    h->daemon = MHD_start_daemon(
        MHD_USE_EPOLL, 0, NULL, NULL, on_request, h, MHD_OPTION_LISTEN_SOCKET,
        fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, (void *)h, MHD_OPTION_END);
    if (h->daemon == NULL || !start_thread(h))
        return dafl_fail(why, DAFL_ERR_SYS,
                         "--metrics %.80s: cannot start serving", address);
    return DAFL_OK;
}

dafl_err metrics_http_start(metrics_http **out, const char *address,
                            metrics_page *page, void *ctx, dafl_why *why)
{
    metrics_http *h = calloc(1, sizeof *h);
    dafl_err err;

    if (h == NULL)
        return DAFL_ERR_NOMEM;
    h->page = page;
    h->ctx = ctx;
    for (size_t i = 0; i < CONNECTIONS; i++)
        h->visits[i].fd = -1;
    err = begin(h, address, why);
    if (err != DAFL_OK)
        metrics_http_stop(&h);
    else
        *out = h;
    return err;
}

void metrics_http_stop(metrics_http **http)
{
    metrics_http *h = *http;

    if (h == NULL)
        return;
    h->stop = true;
    if (h->running)
        (void)pthread_join(h->thread, NULL);
    if (h->daemon != NULL)
        MHD_stop_daemon(h->daemon); /* and the socket that listens */
    free(h);
    *http = NULL;
}

const char *metrics_http_url(const metrics_http *h)
{
    return h->url;
}

bool metrics_http_public(const metrics_http *h)
{
    return h->public;
}
