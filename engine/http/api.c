/* api: the answers that need no model; the small ones, and which row of route_table.h goes where. */
#include "engine/http/api.h"

#include "engine/clock.h"
#include "engine/http/http_server.h"

#include <assert.h>
#include <string.h>

static const char json_type[] = "application/json";
static const char text_type[] = "text/plain; charset=utf-8";

static bool text_piece(const char *text, uint32_t index, char *out, size_t *length)
{
    *length = strlen(text);
    memcpy(out, text, *length);
    return index == 0;
}

static bool root_piece(struct http_server *server, struct api_reply *reply, uint32_t index, char *out, size_t *length)
{
    (void)server;
    (void)reply;
    return text_piece("ashlar " ASHLAR_VERSION ": POST /v1/chat/completions\n", index, out, length);
}

static bool flushed_piece(struct http_server *server, struct api_reply *reply, uint32_t index, char *out,
                          size_t *length)
{
    (void)server;
    (void)reply;
    return text_piece("Cache flushed: prefixes and picture features.\n", index, out, length);
}

static bool metrics_answer_piece(struct http_server *server, struct api_reply *reply, uint32_t index, char *out,
                                 size_t *length)
{
    (void)reply;
    const struct metrics_view view = {
        .metrics = &server->metrics,
        .stats = engine_stats(server->engine),
        .model_name = server->facts.model_name,
        .weight_bytes = server->facts.weight_bytes,
        .kv_bytes = pools_stride_bytes(POOL_KV_PAGE) * pools_capacity(POOL_KV_PAGE),
        .context_tokens = server->facts.context_tokens,
        .running_requests = server->facts.running_requests,
        .connections = server->conn_count,
        .open_requests = server->book.open_count,
    };
    return metrics_piece(&view, index, out, length);
}

/* Alive: taking work, and no step of the engine lasts longer than --watchdog-timeout. */
static enum err health(const struct http_server *server, const char **detail)
{
    if (!http_server_is_open(server)) {
        return ERR_SHUTTING_DOWN;
    }
    if (http_server_step_is_stuck(server)) {
        *detail = "a step lasts longer than --watchdog-timeout";
        return ERR_UNHEALTHY;
    }
    return ERR_OK;
}

static void set_body(struct api_reply *reply, const char *content_type, api_piece *piece, bool is_long)
{
    reply->content_type = content_type;
    reply->piece = piece;
    reply->is_long = is_long;
}

static void open_model(const struct http_server *server, const char *path, size_t path_bytes, struct api_reply *reply)
{
    size_t id_bytes;
    const char *id = route_rest(ROUTE_MODEL, path, path_bytes, &id_bytes);
    bool is_ours = strlen(server->facts.model_name) == id_bytes && memcmp(id, server->facts.model_name, id_bytes) == 0;

    reply->err = is_ours ? ERR_OK : ERR_MODEL_NOT_FOUND;
    reply->param = "model";
    set_body(reply, json_type, api_model_piece, false);
}

void api_reply_open(struct http_server *server, enum route route, const char *path, size_t path_bytes,
                    struct api_reply *reply)
{
    memset(reply, 0, sizeof *reply);
    reply->param = reply->detail = "";
    switch (route) {
    case ROUTE_MODELS:
        set_body(reply, json_type, api_models_piece, false);
        break;
    case ROUTE_MODEL:
        open_model(server, path, path_bytes, reply);
        break;
    case ROUTE_HEALTH:
        reply->err = health(server, &reply->detail);
        break;
    case ROUTE_HEALTH_GENERATE:
        reply->err = health(server, &reply->detail);
        reply->waits_for_health = reply->err == ERR_OK;
        break;
    case ROUTE_MODEL_INFO:
    case ROUTE_GET_MODEL_INFO:
        set_body(reply, json_type, api_model_info_piece, false);
        break;
    case ROUTE_SERVER_INFO:
    case ROUTE_GET_SERVER_INFO:
        set_body(reply, json_type, api_server_info_piece, true);
        break;
    case ROUTE_METRICS:
        set_body(reply, "text/plain; version=0.0.4; charset=utf-8", metrics_answer_piece, true);
        break;
    case ROUTE_POOLS:
        set_body(reply, json_type, api_pools_piece, true);
        break;
    case ROUTE_FLUSH_CACHE:
        reply->err = engine_flush_caches(server->engine);
        set_body(reply, text_type, flushed_piece, false);
        break;
    case ROUTE_PING:
        break;
    case ROUTE_ROOT:
        set_body(reply, text_type, root_piece, false);
        break;
    case ROUTE_CHAT:
    case ROUTE_COUNT:
        assert(false); /* these have no reply of this kind */
        break;
    }
}
