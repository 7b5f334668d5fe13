/* conn: one client's connection, from accept to close.
 *
 * Always true between calls: in CONN_HEAD nothing of an answer waits, so requests of one connection are answered one
 * after the other and what was pipelined lies in `in` or in the kernel; an exchange is held from the head of a request
 * with a body until its answer is whole; a connection that has a deadline is known to the server's next_deadline_us.
 */
#define _GNU_SOURCE
#include "engine/http/conn.h"

#include "engine/clock.h"
#include "engine/http/http_server.h"
#include "engine/http/judge.h"
#include "engine/http/reply.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

uint64_t conn_bytes(void)
{
    return sizeof(struct conn);
}

static uint64_t seconds_us(double seconds)
{
    return (uint64_t)(seconds * 1e6);
}

static void set_state(struct conn *conn, enum conn_state state)
{
    conn->state = state;
    conn->state_us = conn->progress_us = clock_now_us();
}

static void begin_request(struct conn *conn)
{
    memmove(conn->in, conn->in + conn->in_begin, conn->in_end - conn->in_begin);
    conn->in_end -= conn->in_begin;
    conn->in_begin = 0;
    head_open(&conn->head);
    conn->source = SOURCE_NONE;
    set_state(conn, CONN_HEAD);
}

bool conn_is_idle(const struct conn *conn)
{
    return conn->state == CONN_HEAD && conn->in_end == 0;
}

static uint64_t earlier(uint64_t a_us, uint64_t b_us)
{
    return a_us < b_us ? a_us : b_us;
}

/* Each byte must come `patience` after the last one, and buys time at the slowest pace that is allowed: so a drip
 * cannot keep a slot. */
static uint64_t transfer_deadline(const struct conn *conn, uint64_t begin_us, double patience_seconds, uint64_t bytes,
                                  uint64_t bytes_s_min)
{
    uint64_t patience_us = seconds_us(patience_seconds);

    return earlier(conn->progress_us + patience_us, begin_us + patience_us + bytes * 1000000 / bytes_s_min);
}

/* Until when the state may last; 0: no limit. */
static uint64_t deadline_of(const struct http_server *server, const struct conn *conn)
{
    const struct options *options = server->facts.options;
    bool is_between_requests = conn->answered_count > 0 && conn_is_idle(conn);
    uint64_t linger_ms = conn->is_too_many ? LINGER_TOO_MANY_MS : LINGER_MS;

    switch (conn->state) {
    case CONN_HEAD:
        return conn->state_us + seconds_us(is_between_requests ? options->keep_alive : options->header_timeout);
    case CONN_BODY_WAIT:
        return conn->state_us + seconds_us(options->body_wait);
    case CONN_BODY:
        return transfer_deadline(conn, conn->state_us, options->body_timeout, conn->body.taken_bytes,
                                 conn->exchange->body_pool == POOL_BODY_LARGE ? UPLOAD_LARGE_BYTES_S_MIN
                                                                              : UPLOAD_SMALL_BYTES_S_MIN);
    case CONN_ANSWER:
        if (outbox_waiting(&conn->outbox) > 0) {
            return transfer_deadline(conn, conn->unsent_us, options->write_timeout, conn->unsent_taken,
                                     DOWNLOAD_BYTES_S_MIN);
        }
        return conn->source == SOURCE_HEALTH ? conn->state_us + (uint64_t)HEALTH_WAIT_MS * 1000 : 0;
    case CONN_LINGER:
        return earlier(conn->state_us + linger_ms * 1000, conn->progress_us + (uint64_t)LINGER_IDLE_MS * 1000);
    case CONN_CLOSED:
        break;
    }
    return 0;
}

static bool reads(const struct conn *conn)
{
    return conn->state == CONN_HEAD || conn->state == CONN_BODY || conn->state == CONN_LINGER;
}

/* Tells epoll and the server's clock what the state waits for now. */
static void update(struct http_server *server, struct conn *conn)
{
    uint32_t events = (uint32_t)EPOLLRDHUP | (reads(conn) ? (uint32_t)EPOLLIN : 0) |
                      (outbox_waiting(&conn->outbox) > 0 ? (uint32_t)EPOLLOUT : 0);

    assert(conn->state != CONN_CLOSED);
    if (events != conn->events) {
        http_server_watch(server, conn, events);
    }
    conn->deadline_us = deadline_of(server, conn);
    if (conn->deadline_us != 0) {
        http_server_note_deadline(server, conn->deadline_us);
    }
}

struct conn *conn_at(uint32_t index)
{
    assert(index < pools_capacity(POOL_CONN));
    unsigned char *base = pools_base(POOL_CONN);
    struct conn *conn = (void *)(base + (size_t)index * pools_stride_bytes(POOL_CONN));
    bool is_held = conn->handle.index == index && conn->handle.generation % 2 == 1 && conn->state < CONN_CLOSED;
    return is_held ? conn : NULL;
}

const char *conn_state_name(const struct conn *conn)
{
    static const char *const names[] = {
        [CONN_HEAD] = "head",     [CONN_BODY_WAIT] = "body_wait", [CONN_BODY] = "body",
        [CONN_ANSWER] = "answer", [CONN_LINGER] = "linger",       [CONN_CLOSED] = "closed",
    };

    assert(conn->state <= CONN_CLOSED);
    return conn_is_idle(conn) ? "idle" : names[conn->state];
}

void conn_open(struct http_server *server, struct conn *conn, slab_handle handle, int fd)
{
    memset(conn, 0, offsetof(struct conn, in));
    conn->fd = fd;
    conn->handle = handle;
    conn->opened_us = clock_now_us();
    conn->is_too_many = http_server_enlist(server, conn);
    conn->in_begin = conn->in_end = 0;
    outbox_open(&conn->outbox);
    begin_request(conn);
    if (conn->is_too_many) {
        conn->route = ROUTE_COUNT;
        conn_refuse(server, conn, ERR_TOO_MANY_CONNECTIONS, "", "", true);
        (void)conn_advance(server, conn);
        return;
    }
    update(server, conn);
}

static void leave_exchange(struct http_server *server, struct conn *conn, bool is_answered)
{
    if (conn->exchange != NULL) {
        struct exchange *exchange = conn->exchange;
        conn->exchange = NULL;
        exchange_leave(&server->book, exchange, is_answered);
    }
}

void conn_drop(struct http_server *server, struct conn *conn)
{
    assert(conn->state != CONN_CLOSED);
    leave_exchange(server, conn, false);
    if (conn->source == SOURCE_HEALTH) {
        server->health_waiters--;
    }
    (void)close(conn->fd); /* and out of epoll with it */
    conn->fd = -1;
    conn->state = CONN_CLOSED;
    http_server_forget(server, conn);
}

void conn_refuse(struct http_server *server, struct conn *conn, enum err err, const char *param, const char *detail,
                 bool gives_up)
{
    size_t bytes = reply_error_json(err, param, detail, server->scratch);
    bool is_not_allowed = err == ERR_METHOD_NOT_ALLOWED && conn->route != ROUTE_COUNT;

    leave_exchange(server, conn, false);
    conn->has_unread = gives_up;
    conn->is_closing = conn->is_closing || gives_up || !http_server_is_open(server);
    struct reply_head head = {
        .status = err_row(err)->status,
        .content_type = "application/json",
        .framing = REPLY_LENGTH,
        .content_length = bytes,
        .is_keep_alive = !conn->is_closing,
        .is_http_1_0 = conn->head.is_http_1_0,
        .is_retryable = err_row(err)->is_retryable,
        .allowed_methods = is_not_allowed ? route_row(conn->route)->methods : 0,
    };
    reply_add_head(&conn->outbox, &head);
    if (conn->head.method != METHOD_HEAD) {
        outbox_add(&conn->outbox, server->scratch, bytes);
    }
    metrics_count_status(&server->metrics, head.status);
    conn->source = SOURCE_NONE;
    set_state(conn, CONN_ANSWER);
}

void conn_reply(struct http_server *server, struct conn *conn)
{
    struct api_reply *reply = &conn->reply;
    bool has_length = !reply->is_long;
    size_t length = 0;

    assert(reply->err == ERR_OK);
    if (has_length && reply->piece != NULL) {
        (void)reply->piece(server, reply, 0, server->scratch, &length);
    }
    conn->is_closing = conn->is_closing || (!has_length && conn->head.is_http_1_0);
    struct reply_head head = {
        .status = reply->is_empty ? 204 : 200,
        .content_type = reply->content_type,
        .framing = reply->is_empty ? REPLY_NO_BODY
                   : has_length    ? REPLY_LENGTH
                                   : (conn->head.is_http_1_0 ? REPLY_UNTIL_CLOSE : REPLY_CHUNKED),
        .content_length = length,
        .is_keep_alive = !conn->is_closing,
        .is_http_1_0 = conn->head.is_http_1_0,
        .asked_headers = reply->is_empty ? conn->in + conn->head.asked_headers.at : NULL,
        .asked_headers_bytes = conn->head.asked_headers.length,
    };
    reply_add_head(&conn->outbox, &head);
    if (has_length && conn->head.method != METHOD_HEAD) {
        outbox_add(&conn->outbox, server->scratch, length);
    }
    metrics_count_status(&server->metrics, head.status);
    conn->piece_index = 0;
    conn->source = has_length ? SOURCE_NONE : SOURCE_PIECES;
    set_state(conn, CONN_ANSWER);
}

void conn_wait_for_health(struct http_server *server, struct conn *conn)
{
    conn->source = SOURCE_HEALTH;
    server->health_waiters++;
    set_state(conn, CONN_ANSWER);
    if (!server->is_health_running) {
        server->is_health_running = true;
        engine_health_start(server->engine);
    }
}

/* The client waits for it before it sends the body; of no use once the body has begun to arrive. */
static void say_continue(struct conn *conn)
{
    static const char line[] = "HTTP/1.1 100 Continue\r\n\r\n";

    bool is_empty = !conn->head.is_chunked && conn->head.content_length == 0;

    if (conn->head.wants_continue && !is_empty && conn->in_begin == conn->in_end && conn->body.taken_bytes == 0) {
        outbox_add(&conn->outbox, line, sizeof line - 1);
    }
}

void conn_begin_body(struct conn *conn, struct exchange *exchange)
{
    conn->exchange = exchange;
    body_open(&conn->body, &conn->head, pools_element_bytes(POOL_BODY_LARGE));
    if (exchange->body_pool == POOL_COUNT) {
        set_state(conn, CONN_BODY_WAIT);
        return;
    }
    set_state(conn, CONN_BODY);
    say_continue(conn);
}

/* Takes what the socket has, once. 1: something came; 0: nothing now; -1: the connection is over. */
static int receive(struct conn *conn)
{
    char *place = conn->in + conn->in_end;
    size_t room = sizeof conn->in - conn->in_end;
    size_t direct = 0;

    if (conn->state == CONN_LINGER) {
        place = conn->in;
        room = sizeof conn->in;
    } else if (conn->state == CONN_BODY && conn->in_begin == conn->in_end) {
        conn->in_begin = conn->in_end = 0;
        place = conn->in;
        room = sizeof conn->in;
        size_t slot_bytes;
        unsigned char *slot = exchange_body(conn->exchange, &slot_bytes);
        direct = body_direct_bytes(&conn->body);
        size_t left = slot_bytes - (size_t)conn->body.taken_bytes;
        direct = direct < left ? direct : left;
        direct = direct < BODY_READ_BYTES_MAX ? direct : BODY_READ_BYTES_MAX;
        if (direct > 0) {
            place = (char *)slot + conn->body.taken_bytes;
            room = direct;
        }
    }
    assert(room > 0);
    ssize_t got = recv(conn->fd, place, room, 0);
    if (got <= 0) {
        return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? 0 : -1;
    }
    conn->progress_us = clock_now_us();
    if (conn->state == CONN_LINGER) {
        conn->lingered_bytes += (uint64_t)got;
    } else if (direct > 0) {
        (void)body_took(&conn->body, (size_t)got);
    } else {
        if (conn_is_idle(conn)) {
            conn->state_us = conn->progress_us; /* the head's time begins */
        }
        conn->in_end += (uint32_t)got;
    }
    return 1;
}

/* The advance_* functions do what the state allows now; true: the state changed, go on with the new one. */

static bool advance_head(struct http_server *server, struct conn *conn)
{
    switch (head_parse(&conn->head, conn->in, conn->in_end)) {
    case HEAD_MORE:
        return false;
    case HEAD_BAD:
        conn->route = ROUTE_COUNT;
        conn_refuse(server, conn, conn->head.err, "", "", true);
        return true;
    case HEAD_DONE:
        conn->in_begin = conn->head.bytes;
        judge_request(server, conn);
        assert(conn->state != CONN_HEAD);
        return true;
    }
    return false;
}

bool conn_take_large(struct http_server *server, struct conn *conn)
{
    size_t held = conn->exchange->body_pool == POOL_COUNT ? 0 : (size_t)conn->body.taken_bytes;

    assert(conn->state == CONN_BODY_WAIT);
    if (!exchange_take_large(conn->exchange, held)) {
        return false;
    }
    set_state(conn, CONN_BODY);
    say_continue(conn);
    (void)conn_advance(server, conn);
    return true;
}

static bool advance_body(struct http_server *server, struct conn *conn)
{
    size_t slot_bytes, taken, written;
    unsigned char *slot = exchange_body(conn->exchange, &slot_bytes);
    size_t filled = (size_t)conn->body.taken_bytes;

    assert(slot != NULL && filled <= slot_bytes);
    enum body_state state = body_feed(&conn->body, conn->in + conn->in_begin, conn->in_end - conn->in_begin, &taken,
                                      slot + filled, slot_bytes - filled, &written);
    conn->in_begin += (uint32_t)taken;
    switch (state) {
    case BODY_MORE:
        return false;
    case BODY_FULL:
        assert(conn->exchange->body_pool == POOL_BODY_SMALL); /* a large slot holds all that body_open allows */
        set_state(conn, CONN_BODY_WAIT);
        return true;
    case BODY_BAD:
        conn_refuse(server, conn, conn->body.err, "", conn->body.err == ERR_BAD_HTTP ? "chunked body" : "", true);
        return true;
    case BODY_DONE:
        set_state(conn, CONN_ANSWER);
        conn->source = SOURCE_CHAT;
        chat_answer_open(&conn->answer, conn->head.is_http_1_0, conn->is_closing);
        exchange_submit(&server->book, conn->exchange, (size_t)conn->body.taken_bytes);
        return true;
    }
    return false;
}

/* What the socket takes of the outbox. False: the connection is broken. */
static bool flush(struct conn *conn)
{
    if (outbox_waiting(&conn->outbox) == 0) {
        return true;
    }
    for (;;) {
        ssize_t sent =
            send(conn->fd, conn->outbox.bytes + conn->outbox.begin, outbox_waiting(&conn->outbox), MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
            return false;
        }
        if (sent <= 0) {
            break;
        }
        outbox_sent(&conn->outbox, (size_t)sent);
        conn->progress_us = clock_now_us();
        conn->unsent_taken += (uint64_t)sent;
        if (outbox_waiting(&conn->outbox) == 0) {
            conn->unsent_us = 0;
            return true;
        }
    }
    if (conn->unsent_us == 0) { /* from here on the reader is the slow one */
        conn->unsent_us = conn->progress_us = clock_now_us();
        conn->unsent_taken = 0;
    }
    return true;
}

static enum chat_progress fill_pieces(struct http_server *server, struct conn *conn)
{
    bool is_chunked = !conn->head.is_http_1_0;
    size_t length = 0;

    if (conn->head.method == METHOD_HEAD) {
        return CHAT_ENDED;
    }
    while (outbox_room(&conn->outbox) >= API_PIECE_BYTES_MAX + OUTBOX_FRAME_BYTES) {
        outbox_frame_begin(&conn->outbox, is_chunked);
        bool is_piece =
            conn->reply.piece(server, &conn->reply, conn->piece_index++, outbox_place(&conn->outbox), &length);
        outbox_wrote(&conn->outbox, is_piece ? length : 0);
        outbox_frame_end(&conn->outbox);
        if (!is_piece) {
            if (is_chunked) {
                outbox_last_chunk(&conn->outbox);
            }
            return CHAT_ENDED;
        }
    }
    return CHAT_WANTS_ROOM;
}

/* Makes as much of the answer as there is and as fits. */
static enum chat_progress fill(struct http_server *server, struct conn *conn)
{
    enum chat_progress progress = CHAT_ENDED;

    switch (conn->source) {
    case SOURCE_NONE:
        break;
    case SOURCE_PIECES:
        progress = fill_pieces(server, conn);
        break;
    case SOURCE_HEALTH:
        return CHAT_WAITS; /* http_server ends it */
    case SOURCE_CHAT:
        progress = chat_answer_fill(server, &conn->answer, conn->exchange, &conn->outbox);
        conn->is_closing = conn->is_closing || conn->answer.is_closing;
        break;
    }
    if (progress == CHAT_ENDED) {
        conn->source = SOURCE_NONE;
    }
    return progress;
}

static void end_answer(struct http_server *server, struct conn *conn)
{
    leave_exchange(server, conn, true);
    conn->answered_count++;
    if (!conn->is_closing && http_server_is_open(server)) {
        begin_request(conn);
        return;
    }
    (void)shutdown(conn->fd, SHUT_WR);
    conn->in_begin = conn->in_end = 0;
    set_state(conn, CONN_LINGER);
}

static bool advance_answer(struct http_server *server, struct conn *conn, bool *is_broken)
{
    for (;;) {
        enum chat_progress progress = fill(server, conn);
        if (!flush(conn)) {
            *is_broken = true;
            return false;
        }
        if (outbox_waiting(&conn->outbox) > 0 || progress == CHAT_WAITS) {
            return false;
        }
        if (progress == CHAT_ENDED) {
            end_answer(server, conn);
            return true;
        }
    }
}

bool conn_advance(struct http_server *server, struct conn *conn)
{
    bool goes_on = true, is_broken = false;

    while (goes_on) {
        goes_on = false;
        switch (conn->state) {
        case CONN_HEAD:
            goes_on = advance_head(server, conn);
            break;
        case CONN_BODY_WAIT:
            server->book.has_large_come_free = true; /* perhaps: who waits longest is asked first */
            break;
        case CONN_BODY:
            goes_on = advance_body(server, conn);
            break;
        case CONN_ANSWER:
            goes_on = advance_answer(server, conn, &is_broken);
            break;
        case CONN_LINGER:
        case CONN_CLOSED:
            break;
        }
    }
    if (!is_broken && (conn->state == CONN_BODY || conn->state == CONN_BODY_WAIT)) { /* 100 Continue */
        is_broken = !flush(conn);
    }
    if (is_broken) {
        conn_drop(server, conn);
        return false;
    }
    update(server, conn);
    return true;
}

void conn_on_events(struct http_server *server, struct conn *conn, uint32_t events)
{
    bool is_leaving = (events & ((uint32_t)EPOLLRDHUP | (uint32_t)EPOLLHUP | (uint32_t)EPOLLERR)) != 0;
    int got = (events & (uint32_t)EPOLLIN) != 0 || is_leaving ? 1 : 0;
    uint64_t lingered_max = 2 * (uint64_t)server->facts.options->large_body_bytes; /* a body a little too long passes */

    /* What came before the end still counts: a last pipelined request gets its answer if it can be given at once. */
    while (got > 0 && reads(conn)) {
        got = receive(conn);
        if (got < 0 || conn->lingered_bytes > lingered_max) {
            conn_drop(server, conn);
            return;
        }
        if (got > 0 && !conn_advance(server, conn)) {
            return;
        }
        got = is_leaving ? got : 0;
    }
    if ((events & (uint32_t)EPOLLOUT) != 0 && !conn_advance(server, conn)) {
        return;
    }
    if (is_leaving) {
        conn_drop(server, conn);
    }
}

void conn_abandon(struct http_server *server, struct conn *conn)
{
    if (conn->state == CONN_ANSWER && conn->source == SOURCE_CHAT) {
        chat_answer_abandon(server, &conn->answer, &conn->outbox);
        (void)flush(conn);
    }
    conn_drop(server, conn);
}

void conn_on_deadline(struct http_server *server, struct conn *conn)
{
    enum err err = ERR_OK;
    const char *detail = "";

    switch (conn->state) {
    case CONN_HEAD:
        if (head_is_begun(&conn->head)) {
            err = ERR_TIMED_OUT;
            detail = "headers";
            conn->route = ROUTE_COUNT;
        }
        break;
    case CONN_BODY_WAIT:
        err = ERR_BODY_SLOTS_BUSY;
        break;
    case CONN_BODY:
        err = ERR_TIMED_OUT;
        detail = "body";
        break;
    case CONN_ANSWER:
        if (conn->source == SOURCE_HEALTH && outbox_waiting(&conn->outbox) == 0) {
            server->health_waiters--;
            err = ERR_UNHEALTHY;
            detail = "no token came in time";
        }
        break;
    case CONN_LINGER:
    case CONN_CLOSED:
        break;
    }
    if (err == ERR_OK) {
        conn_drop(server, conn);
        return;
    }
    conn_refuse(server, conn, err, "", detail, conn->state != CONN_ANSWER);
    (void)conn_advance(server, conn);
}
