/* conn: one client's connection, from accept to close. */
#ifndef ENGINE_HTTP_CONN_H
#define ENGINE_HTTP_CONN_H

#include "engine/http/api.h"
#include "engine/http/body.h"
#include "engine/http/chat_answer.h"
#include "engine/http/exchange.h"
#include "engine/http/head.h"
#include "engine/http/outbox.h"
#include "engine/http/route.h"

struct http_server;

enum conn_state {
    CONN_HEAD,      /* between requests, or a head arrives */
    CONN_BODY_WAIT, /* the head is taken; a large body finds no slot and is not read */
    CONN_BODY,      /* a body arrives */
    CONN_ANSWER,    /* an answer is awaited or written; nothing is read */
    CONN_LINGER, /* answered and half closed: what still arrives is thrown away, so that the client sees the answer */
    CONN_CLOSED, /* gone; the element went back */
};

/* Where the rest of the answer comes from. */
enum conn_source {
    SOURCE_NONE,   /* all of it is in the outbox */
    SOURCE_PIECES, /* reply.piece */
    SOURCE_CHAT,   /* the exchange */
    SOURCE_HEALTH, /* the engine's health check */
};

/* One element of the pool CONN. */
struct conn {
    int fd;
    slab_handle handle;
    struct conn *next, *previous;
    uint64_t number; /* 1, 2, ...: for the log and GET /pools */

    enum conn_state state;
    enum conn_source source;
    uint32_t events;                  /* what epoll watches for now */
    uint64_t opened_us, deadline_us;  /* deadline 0: none */
    uint64_t state_us;                /* start of the state: of the head, the wait, the body, the lingering */
    uint64_t progress_us;             /* last byte in or out */
    uint64_t unsent_us, unsent_taken; /* since when the outbox holds something; bytes taken since then */
    uint64_t lingered_bytes;
    uint32_t answered_count;

    struct head head;
    struct body body;
    enum route route;
    struct exchange *exchange; /* NULL: none */
    struct api_reply reply;
    uint32_t piece_index;
    struct chat_answer answer;
    bool is_closing;  /* after this answer */
    bool has_unread;            /* the client may still send what nobody will read */
    bool is_too_many; /* beyond --max-connections: told so and closed */

    uint32_t in_begin, in_end; /* in[in_begin .. in_end) arrived and is not taken */
    char in[HEAD_BYTES_MAX];
    struct outbox outbox;
};

/* Bytes of one element of the pool CONN, for the plan. */
uint64_t conn_bytes(void);

/* Takes an accepted, non-blocking socket. */
void conn_open(struct http_server *server, struct conn *conn, slab_handle handle, int fd);

/* epoll says `events`. The connection may be dropped afterwards, as after all the following: its element was given
 * back, and whoever reads its state to find out reads what is no longer his. */
void conn_on_events(struct http_server *server, struct conn *conn, uint32_t events);

/* Something that the connection waits for may have changed: tokens, a slot, the health check. False: dropped. */
bool conn_advance(struct http_server *server, struct conn *conn);

/* Gives a free large slot to a connection in CONN_BODY_WAIT, which then goes on. False: none is free. */
bool conn_take_large(struct http_server *server, struct conn *conn);

/* The deadline has passed. */
void conn_on_deadline(struct http_server *server, struct conn *conn);

/* Closes at once; an open request is cancelled. */
void conn_drop(struct http_server *server, struct conn *conn);

/* conn_drop, but an answer that is owed ends with an error if the socket takes it at once. */
void conn_abandon(struct http_server *server, struct conn *conn);

/* Answers with a refusal. `gives_up`: the rest of what the client sends is not a request; close after it. */
void conn_refuse(struct http_server *server, struct conn *conn, enum err err, const char *param, const char *detail,
                 bool gives_up);

/* Begins the answer that a route without a body decided on. */
void conn_reply(struct http_server *server, struct conn *conn);

/* The answer comes when the engine's health check ends. */
void conn_wait_for_health(struct http_server *server, struct conn *conn);

/* Takes the exchange for a body, and begins to read it or to wait for a large slot. */
void conn_begin_body(struct conn *conn, struct exchange *exchange);

/* The open connection of a pool element; NULL when nobody holds it. */
struct conn *conn_at(uint32_t index);

/* "head", "body", ... for lists. */
const char *conn_state_name(const struct conn *conn);

/* True if the connection idles between requests. */
bool conn_is_idle(const struct conn *conn);

#endif
