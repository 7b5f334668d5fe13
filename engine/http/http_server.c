/* http_server: the port, the connection thread's loop, and the way down.
 *
 * Always true between two turns of the loop: every open connection is in the list once; no deadline is earlier than
 * next_deadline_us; if a large body slot is free, nobody waits for one. The loop sleeps in epoll_wait and nowhere else.
 */
#define _GNU_SOURCE
#include "engine/http/http_server.h"

#include "engine/clock.h"
#include "engine/log.h"
#include "engine/start.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    EVENTS_MAX = 256,
    WATCH_MS = 1000, /* between two looks at the running step, while requests are open */
    NOTICES_A_TURN = 512,
    DESCRIPTORS_SPARE = 64, /* beside the connections: files, pipes, the log */
};

/* What an epoll event is about: a connection by its pool handle, or one of these (a connection's index is smaller). */
enum { WATCH_LISTEN = -3, WATCH_SIGNAL = -2, WATCH_NOTICE = -1 };

static uint64_t watch_special(int which)
{
    return (uint64_t)(uint32_t)which;
}

static uint64_t watch_conn(slab_handle handle)
{
    return (uint64_t)handle.generation << 32 | handle.index;
}

/* --- before the seal --- */

static socklen_t parse_address(const char *host, uint16_t port, struct sockaddr_storage *address)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;

    memset(address, 0, sizeof *address);
    if (strcmp(host, "localhost") == 0) {
        host = "127.0.0.1";
    }
    if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        return sizeof *v4;
    }
    if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        return sizeof *v6;
    }
    return 0;
}

/* Connections inherit the buffers. Left alone, the kernel would hold megabytes for each reader that stalls. */
static void set_socket_options(int fd)
{
    const int on = 1, send_bytes = SOCKET_SEND_BYTES, receive_bytes = SOCKET_RECEIVE_BYTES;

    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof send_bytes);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
}

void http_server_bind(struct http_server *server, const struct options *options)
{
    struct sockaddr_storage address;
    socklen_t address_bytes = parse_address(options->host, (uint16_t)options->port, &address);
    sigset_t signals;
    const char *name = options->served_model_name != NULL ? options->served_model_name : options->model_path;
    if (name != NULL && strlen(name) > SERVED_NAME_BYTES_MAX) {
        start_refuse(START_USAGE, "--served-model-name: %zu bytes, at most %d", strlen(name), SERVED_NAME_BYTES_MAX);
    }
    if (options->api_key != NULL && options->api_key[0] == '\0') { /* a script's unset variable */
        start_refuse(START_USAGE, "--api-key is empty: give a key, or leave the flag out");
    }
    if (address_bytes == 0) {
        start_refuse(START_USAGE, "--host %s is not a numeric address (IPv4 or IPv6)", options->host);
    }
    memset(server, 0, sizeof *server);
    server->listen_fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (server->listen_fd < 0) {
        start_refuse(START_NO_PORT, "no socket: %s", start_errno_text(errno));
    }
    set_socket_options(server->listen_fd);
    if (bind(server->listen_fd, (struct sockaddr *)&address, address_bytes) != 0) {
        start_refuse(START_NO_PORT, "cannot listen on %s port %d: %s", options->host, (int)options->port,
                     start_errno_text(errno));
    }
    if (getsockname(server->listen_fd, (struct sockaddr *)&address, &address_bytes) == 0) {
        server->port = ntohs(address.ss_family == AF_INET ? ((struct sockaddr_in *)&address)->sin_port
                                                          : ((struct sockaddr_in6 *)&address)->sin6_port);
    }
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGUSR1);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    server->signal_fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
    server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (server->signal_fd < 0 || server->epoll_fd < 0) {
        start_refuse(START_BUG, "no descriptor: %s", start_errno_text(errno));
    }
}

uint16_t http_server_port(const struct http_server *server)
{
    return server->port;
}

static void watch(struct http_server *server, int operation, int fd, uint32_t events, uint64_t data)
{
    struct epoll_event event = {.events = events, .data.u64 = data};

    if (epoll_ctl(server->epoll_fd, operation, fd, &event) != 0) {
        log_error("epoll_ctl operation=%d errno=%d", operation, errno);
        assert(false); /* a descriptor of ours that the kernel does not know */
    }
}

/* Each connection is a descriptor: ask for as many as may be needed. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)pools_capacity(POOL_CONN) + DESCRIPTORS_SPARE;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) {
        return;
    }
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < wanted) {
        log_warn("descriptors limit=%llu wanted=%llu: fewer connections than --max-connections will be accepted",
                 (unsigned long long)limit.rlim_cur, (unsigned long long)wanted);
    }
}

void http_server_open(struct http_server *server, struct engine *engine, const struct http_facts *facts)
{
    assert(server->listen_fd > 0);
    server->facts = *facts;
    server->engine = engine;
    metrics_open(&server->metrics);
    exchange_book_open(&server->book, engine, &server->metrics, facts->running_requests + facts->queued_requests);
    server->next_deadline_us = UINT64_MAX;
    raise_descriptor_limit();
    watch(server, EPOLL_CTL_ADD, server->signal_fd, EPOLLIN, watch_special(WATCH_SIGNAL));
    watch(server, EPOLL_CTL_ADD, engine_notice_fd(engine), EPOLLIN, watch_special(WATCH_NOTICE));
    watch(server, EPOLL_CTL_ADD, server->listen_fd, EPOLLIN, watch_special(WATCH_LISTEN));
    server->is_listening_watched = true;
    if (listen(server->listen_fd, LISTEN_BACKLOG) != 0) { /* who comes before "ready" waits in the backlog */
        start_refuse(START_NO_PORT, "cannot listen on port %u: %s", server->port, start_errno_text(errno));
    }
}

/* --- connections --- */

bool http_server_is_open(const struct http_server *server)
{
    return !server->is_draining;
}

void http_server_watch(struct http_server *server, struct conn *conn, uint32_t events)
{
    watch(server, conn->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, conn->fd, events, watch_conn(conn->handle));
    conn->events = events;
}

void http_server_note_deadline(struct http_server *server, uint64_t deadline_us)
{
    if (deadline_us < server->next_deadline_us) {
        server->next_deadline_us = deadline_us;
    }
}

bool http_server_enlist(struct http_server *server, struct conn *conn)
{
    conn->number = ++server->next_number;
    conn->previous = NULL;
    conn->next = server->first;
    if (server->first != NULL) {
        server->first->previous = conn;
    }
    server->first = conn;
    server->conn_count++;
    return server->conn_count == pools_capacity(POOL_CONN);
}

void http_server_forget(struct http_server *server, struct conn *conn)
{
    assert(server->conn_count > 0);
    if (conn->previous != NULL) {
        conn->previous->next = conn->next;
    } else {
        server->first = conn->next;
    }
    if (conn->next != NULL) {
        conn->next->previous = conn->previous;
    }
    server->conn_count--;
    slab_handle handle = conn->handle;
    pools_put(POOL_CONN, handle);
}

static void set_listening(struct http_server *server, bool is_on, uint64_t again_us)
{
    if (server->is_listening_watched != is_on) {
        watch(server, EPOLL_CTL_MOD, server->listen_fd, is_on ? (uint32_t)EPOLLIN : 0, watch_special(WATCH_LISTEN));
        server->is_listening_watched = is_on;
    }
    server->accept_again_us = again_us;
    if (again_us != 0) {
        http_server_note_deadline(server, again_us);
    }
}

static void open_conn(struct http_server *server, slab_handle handle, int fd)
{
    int on = 1, idle_s = KEEP_ALIVE_PROBE_S;
    struct conn *conn = pools_at(POOL_CONN, handle);

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on); /* a client that vanished shows in the end */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    server->metrics.accepted_total++;
    conn_open(server, conn, handle, fd);
}

static void accept_all(struct http_server *server)
{
    for (int i = 0; i < EVENTS_MAX; i++) {
        slab_handle handle = server->conn_count < pools_capacity(POOL_CONN) ? pools_get(POOL_CONN) : SLAB_NONE;
        int fd = slab_is_some(handle) ? accept4(server->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC) : -1;
        if (fd < 0) {
            bool is_dry =
                !slab_is_some(handle) || errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
            bool is_transient = slab_is_some(handle) && (errno == EINTR || errno == ECONNABORTED);
            if (slab_is_some(handle)) {
                pools_put(POOL_CONN, handle);
            }
            if (is_dry) { /* what waits in the backlog is taken when something was given back */
                set_listening(server, false, clock_now_us() + (uint64_t)ACCEPT_REST_MS * 1000);
            }
            if (is_transient) {
                continue;
            }
            return;
        }
        open_conn(server, handle, fd);
    }
}

/* --- what others tell --- */

static void take_notices(struct http_server *server)
{
    uint32_t index;

    engine_notice_clear(server->engine);
    server->has_notices = true;
    for (int i = 0; i < NOTICES_A_TURN && server->has_notices; i++) {
        server->has_notices = engine_notice_take(server->engine, &index);
        if (!server->has_notices) {
            break;
        }
        struct exchange *exchange = exchange_at(index);
        if (exchange != NULL && exchange_observe(&server->book, exchange) && exchange->conn != NULL) {
            (void)conn_advance(server, exchange->conn);
        }
    }
}

/* Gives free large slots to those who wait for one, first come, first served. */
static void serve_body_waiters(struct http_server *server)
{
    while (server->book.has_large_come_free) {
        struct conn *oldest = NULL;
        for (struct conn *c = server->first; c != NULL; c = c->next) {
            bool waits = c->state == CONN_BODY_WAIT;
            if (waits && (oldest == NULL || c->exchange->request.number < oldest->exchange->request.number)) {
                oldest = c;
            }
        }
        server->book.has_large_come_free = oldest != NULL && conn_take_large(server, oldest);
    }
}

static void answer_health(struct http_server *server)
{
    if (!server->is_health_running || !engine_health_done(server->engine)) {
        return;
    }
    server->is_health_running = false;
    for (struct conn *c = server->first, *next; c != NULL; c = next) {
        next = c->next;
        if (c->state == CONN_ANSWER && c->source == SOURCE_HEALTH) {
            server->health_waiters--;
            conn_reply(server, c);
            (void)conn_advance(server, c);
        }
    }
}

static void check_deadlines(struct http_server *server)
{
    uint64_t now_us = clock_now_us();

    if (now_us < server->next_deadline_us) {
        return;
    }
    server->next_deadline_us = UINT64_MAX;
    if (server->accept_again_us != 0 && now_us >= server->accept_again_us && !server->is_draining) {
        set_listening(server, true, 0);
    } else if (server->accept_again_us != 0) {
        http_server_note_deadline(server, server->accept_again_us);
    }
    for (struct conn *c = server->first, *next; c != NULL; c = next) {
        next = c->next;
        if (c->deadline_us != 0 && now_us >= c->deadline_us) {
            conn_on_deadline(server, c);
        } else if (c->deadline_us != 0) {
            http_server_note_deadline(server, c->deadline_us);
        }
    }
}

/* --- the way down --- */

static void begin_drain(struct http_server *server)
{
    server->is_draining = true;
    server->drain_until_us = clock_now_us() + (uint64_t)(server->facts.options->shutdown_grace * 1e6);
    set_listening(server, false, 0);
    (void)close(server->listen_fd);
    server->listen_fd = -1;
    log_info("shutdown state=draining requests=%u connections=%u", server->book.open_count, server->conn_count);
    for (struct conn *c = server->first, *next; c != NULL; c = next) {
        next = c->next;
        if (c->state == CONN_BODY || c->state == CONN_BODY_WAIT) { /* not begun: somebody else can do it */
            conn_refuse(server, c, ERR_SHUTTING_DOWN, "", "", true);
            (void)conn_advance(server, c);
        }
    }
}

/* The grace is over: whatever still runs ends with what it has. */
static void cut(struct http_server *server)
{
    server->is_cut = true;
    server->drain_until_us = clock_now_us() + (uint64_t)CUT_WAIT_MS * 1000;
    log_warn("shutdown state=cutting requests=%u", server->book.open_count);
    for (struct exchange *e = server->book.first; e != NULL; e = e->next) {
        exchange_cut(&server->book, e);
    }
}

static void take_signals(struct http_server *server)
{
    struct signalfd_siginfo info;

    while (read(server->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGUSR1) {
            server->is_listing_holders = true;
            server->holders_at = 0;
        } else if (++server->signal_count == 1) {
            begin_drain(server);
        }
    }
}

static bool is_anything_owed(const struct http_server *server)
{
    for (const struct conn *c = server->first; c != NULL; c = c->next) {
        if (c->state == CONN_ANSWER || (c->state == CONN_LINGER && c->has_unread)) {
            return true;
        }
    }
    return server->book.open_count > 0;
}

/* --- the loop --- */

static void take_event(struct http_server *server, const struct epoll_event *event)
{
    uint32_t index = (uint32_t)event->data.u64;
    uint32_t generation = (uint32_t)(event->data.u64 >> 32);

    if (generation == 0) {
        switch ((int)index) {
        case WATCH_LISTEN:
            accept_all(server);
            return;
        case WATCH_SIGNAL:
            take_signals(server);
            return;
        default:
            assert((int)index == WATCH_NOTICE);
            take_notices(server);
            return;
        }
    }
    /* An event of this batch may be older than the element's present holder. */
    struct conn *conn = conn_at(index);
    if (conn != NULL && conn->handle.generation == generation) {
        conn_on_events(server, conn, event->events);
    }
}

bool http_server_step_is_stuck(const struct http_server *server)
{
    uint64_t started_us = atomic_load_explicit(&engine_stats(server->engine)->tick_started_us, memory_order_relaxed);
    uint64_t patience_us = (uint64_t)(server->facts.options->watchdog_timeout * 1e6);
    uint64_t now_us = clock_now_us();

    return started_us != 0 && patience_us != 0 && now_us > started_us && now_us - started_us > patience_us;
}

/* One line when a step is found to last too long, one when it ended after all. */
static void watch_step(struct http_server *server)
{
    bool is_stuck = http_server_step_is_stuck(server);

    if (is_stuck && !server->is_step_stuck) {
        log_error("watchdog step=stuck timeout_s=%g open_requests=%u", server->facts.options->watchdog_timeout,
                  server->book.open_count);
    } else if (!is_stuck && server->is_step_stuck) {
        log_warn("watchdog step=ended open_requests=%u", server->book.open_count);
    }
    server->is_step_stuck = is_stuck;
}

static int sleep_ms(const struct http_server *server)
{
    uint64_t now_us = clock_now_us();
    uint64_t until_us = server->has_notices ? now_us : server->next_deadline_us;

    if (server->is_health_running) {
        until_us = until_us < now_us + HEALTH_POLL_MS * 1000 ? until_us : now_us + HEALTH_POLL_MS * 1000;
    }
    if (server->is_listing_holders) {
        until_us = until_us < now_us + LIST_REST_MS * 1000 ? until_us : now_us + LIST_REST_MS * 1000;
    }
    if (server->is_draining && server->drain_until_us < until_us) {
        until_us = server->drain_until_us;
    }
    if (server->book.open_count > 0 && now_us + WATCH_MS * 1000 < until_us) {
        until_us = now_us + WATCH_MS * 1000;
    }
    if (until_us == UINT64_MAX) {
        return -1;
    }
    uint64_t left_ms = until_us <= now_us ? 0 : (until_us - now_us + 999) / 1000;
    return left_ms > INT32_MAX ? INT32_MAX : (int)left_ms;
}

/* True when the loop is over. */
static bool is_down(struct http_server *server)
{
    if (!server->is_draining) {
        return false;
    }
    if (!is_anything_owed(server) || server->signal_count > 1) {
        return true;
    }
    if (clock_now_us() >= server->drain_until_us) {
        if (server->is_cut) {
            return true;
        }
        cut(server);
    }
    return false;
}

static void adopt_pools(void)
{
    pools_adopt(POOL_CONN);
    pools_adopt(POOL_REQUEST);
    pools_adopt(POOL_TOKENS);
    pools_adopt(POOL_BODY_SMALL);
    pools_adopt(POOL_BODY_LARGE);
}

bool http_server_run(struct http_server *server)
{
    struct epoll_event events[EVENTS_MAX];

    adopt_pools();
    while (!is_down(server)) {
        int count = epoll_wait(server->epoll_fd, events, EVENTS_MAX, sleep_ms(server));
        for (int i = 0; i < count; i++) {
            take_event(server, &events[i]);
        }
        assert(count >= 0 || errno == EINTR);
        if (server->has_notices) { /* others had their turn in between */
            take_notices(server);
        }
        if (server->is_listing_holders) {
            server->is_listing_holders = api_pools_log(&server->holders_at);
        }
        serve_body_waiters(server);
        answer_health(server);
        watch_step(server);
        check_deadlines(server);
        serve_body_waiters(server);
    }
    bool is_clean = !is_anything_owed(server);
    log_info("shutdown state=done clean=%d requests=%u", is_clean, server->book.open_count);
    while (server->first != NULL) {
        conn_abandon(server, server->first);
    }
    return is_clean;
}
