/* api: the answers that need no model: models, info, health, metrics, pools. */
#ifndef ENGINE_HTTP_API_H
#define ENGINE_HTTP_API_H

#include "engine/err.h"
#include "engine/http/route.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_server;

enum {
    API_PIECE_BYTES_MAX = 12 * 1024, /* so a piece and the answer's head fit into an outbox together */
};

struct api_reply;

/* Writes piece `index` of a body into `out` of API_PIECE_BYTES_MAX; *length may be 0. False: there is no such piece. */
typedef bool api_piece(struct http_server *server, struct api_reply *reply, uint32_t index, char *out, size_t *length);

struct api_reply {
    enum err err; /* not ERR_OK: a refusal, made from err_table.h */
    const char *param, *detail;
    const char *content_type; /* NULL: no body */
    api_piece *piece;         /* NULL: an empty body */
    bool is_empty;            /* 204: a preflight */
    bool is_long;             /* more than one piece: the length is not known beforehand */
    bool waits_for_health;    /* the answer comes when the engine's health check ends */
    bool has_item;            /* a piece's own: the open list is not empty */
};

/* Decides the answer of a route without a body. `path` is the request's. */
void api_reply_open(struct http_server *server, enum route route, const char *path, size_t path_bytes,
                    struct api_reply *reply);

/* The bodies. */
api_piece api_models_piece, api_model_piece, api_model_info_piece, api_server_info_piece, api_pools_piece;

/* The same as api_pools_piece, into the log: who holds what. A few lines a call, so that the log's writer keeps up;
 * begins with *at == 0. True if lines are left for the next call. */
bool api_pools_log(uint32_t *at);

#endif
