/* http_server: the port, the connection thread's loop, and the way down. */
#ifndef ENGINE_HTTP_HTTP_SERVER_H
#define ENGINE_HTTP_HTTP_SERVER_H

#include "engine/engine.h"
#include "engine/http/conn.h"
#include "engine/http/exchange.h"
#include "engine/http/metrics.h"
#include "engine/options.h"
#include "pools/pools.h"

struct tokenizer;

/* What the answers tell about this server. Strings and records are the caller's and outlive the server. */
struct http_facts {
    const struct options *options;
    const struct tokenizer *tokenizer;
    const char *model_name; /* --served-model-name, or the model path as given */
    const char *tokenizer_path;
    const char *model_type;   /* config.json "model_type" */
    const char *architecture; /* config.json "architectures"[0] */
    uint64_t weight_bytes;    /* as packed */
    uint64_t resident_bytes;  /* RssAnon at "ready" */
    uint64_t started_unix_s;
    uint32_t context_tokens; /* effective */
    uint32_t running_requests, queued_requests;
    bool has_pictures;
};

/* One a process; zeroed memory, made ready by http_server_bind and http_server_open. */
struct http_server {
    struct http_facts facts;
    struct engine *engine;
    struct exchange_book book;
    struct metrics metrics;
    int listen_fd, epoll_fd, signal_fd;
    uint16_t port;
    struct conn *first;
    uint32_t conn_count;
    uint64_t next_number;
    uint64_t next_deadline_us; /* no connection's deadline is earlier */
    uint64_t accept_again_us;  /* not 0: accepting rests (no descriptor, or one too many) */
    bool is_listening_watched;
    bool has_notices;               /* more of them wait than one turn takes */
    bool is_health_running;
    uint32_t health_waiters;
    bool is_draining, is_cut;
    bool is_step_stuck; /* the watchdog's last finding */
    uint64_t drain_until_us;
    uint32_t signal_count;
    bool is_listing_holders; /* SIGUSR1: into the log, some lines a turn */
    uint32_t holders_at;
    char scratch[API_PIECE_BYTES_MAX];
};

/* Takes the address before anything is loaded, and refuses to start with START_NO_PORT if it cannot; nobody is answered
 * yet. Blocks SIGTERM, SIGINT and SIGUSR1 for this thread and all that it will make. */
void http_server_bind(struct http_server *server, const struct options *options);

/* The port that was bound (for --port 0). */
uint16_t http_server_port(const struct http_server *server);

/* Makes everything that the loop will need, and listens: clients may connect, and are answered by http_server_run.
 * Before the seal; http_server_bind came first. */
void http_server_open(struct http_server *server, struct engine *engine, const struct http_facts *facts);

/* Serves on the calling thread until SIGTERM or SIGINT and the end of the drain. Adopts CONN, REQUEST, TOKENS,
 * BODY_SMALL and BODY_LARGE. Returns true if every request ended by itself or was cut properly; false after a second
 * signal. */
bool http_server_run(struct http_server *server);

/* For conn.c: the book-keeping of connections. http_server_enlist is true for the one too many. */
bool http_server_enlist(struct http_server *server, struct conn *conn);
void http_server_watch(struct http_server *server, struct conn *conn, uint32_t events);
void http_server_forget(struct http_server *server, struct conn *conn);
void http_server_note_deadline(struct http_server *server, uint64_t deadline_us);

/* True while new work is taken. */
bool http_server_is_open(const struct http_server *server);

/* True while a step of the engine lasts longer than --watchdog-timeout (0: never). */
bool http_server_step_is_stuck(const struct http_server *server);

#endif
