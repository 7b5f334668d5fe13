/* api_pools: GET /pools and SIGUSR1: every pool, and who holds what of those that requests hold. */
#include "engine/http/api.h"

#include "engine/clock.h"
#include "engine/http/http_server.h"
#include "engine/json_out.h"
#include "engine/log.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { ELEMENTS_A_PIECE = 32 };

static const char *stage_name(struct exchange *exchange)
{
    static const char *const names[] = {"reading", "intake", "choices", "engine", "done"};
    uint32_t stage = atomic_load_explicit(&exchange->request.stage, memory_order_relaxed);
    return stage < sizeof names / sizeof names[0] ? names[stage] : "?";
}

static const char *body_name(const struct exchange *exchange)
{
    return exchange->body_pool == POOL_COUNT ? "none" : pools_name(exchange->body_pool);
}

static void write_pools(struct json_out *json)
{
    json_out_key(json, "pools");
    json_out_array_begin(json);
    for (int i = 0; i < POOL_COUNT; i++) {
        enum pool pool = (enum pool)i;
        json_out_object_begin(json);
        json_out_key_text(json, "pool", pools_name(pool));
        json_out_key_text(json, "domain", domain_name(pools_domain(pool)));
        json_out_key_i64(json, "capacity", pools_capacity(pool));
        json_out_key_i64(json, "used", pools_used(pool));
        json_out_key_i64(json, "cached", pools_cached(pool));
        json_out_key_i64(json, "excess", pools_excess(pool));
        json_out_key_i64(json, "high_water", pools_high_water(pool));
        json_out_key_i64(json, "refused", (int64_t)pools_refused(pool));
        json_out_object_end(json);
    }
    json_out_array_end(json);
}

static void write_conn(struct json_out *json, const struct conn *conn, uint64_t now_us)
{
    json_out_object_begin(json);
    json_out_key_i64(json, "connection", (int64_t)conn->number);
    json_out_key_text(json, "state", conn_state_name(conn));
    json_out_key_i64(json, "age_ms", (int64_t)((now_us - conn->opened_us) / 1000));
    json_out_key_i64(json, "idle_ms", (int64_t)((now_us - conn->progress_us) / 1000));
    json_out_key_i64(json, "answered", conn->answered_count);
    json_out_key_i64(json, "unsent_bytes", (int64_t)outbox_waiting(&conn->outbox));
    if (conn->exchange != NULL) {
        json_out_key_text(json, "request", conn->exchange->request.id);
    }
    json_out_object_end(json);
}

static void write_exchange(struct json_out *json, struct exchange *exchange, uint64_t now_us)
{
    struct request *r = &exchange->request;

    json_out_object_begin(json);
    json_out_key_text(json, "request", r->id);
    json_out_key_i64(json, "choice", r->choice);
    json_out_key_text(json, "stage", stage_name(exchange));
    json_out_key_i64(json, "age_ms", (int64_t)((now_us - r->arrived_us) / 1000));
    json_out_key_text(json, "body", body_name(exchange));
    json_out_key_i64(json, "answer_tokens", atomic_load_explicit(&r->answer_tokens, memory_order_relaxed));
    json_out_key(json, "connection");
    if (exchange->conn != NULL) {
        json_out_i64(json, (int64_t)exchange->conn->number);
    } else {
        json_out_null(json);
    }
    json_out_object_end(json);
}

/* Pieces: the pools; the connections by index; a bridge; the requests by index; the end. */
bool api_pools_piece(struct http_server *server, struct api_reply *reply, uint32_t index, char *out, size_t *length)
{
    const uint32_t conn_pieces = (pools_capacity(POOL_CONN) + ELEMENTS_A_PIECE - 1) / ELEMENTS_A_PIECE;
    const uint32_t request_pieces = (pools_capacity(POOL_REQUEST) + ELEMENTS_A_PIECE - 1) / ELEMENTS_A_PIECE;
    const uint64_t now_us = clock_now_us();
    struct json_out json;

    (void)server;
    json_out_open(&json, out, API_PIECE_BYTES_MAX);
    if (index == 0) {
        json_out_object_begin(&json);
        write_pools(&json);
        json_out_key(&json, "connections");
        json_out_array_begin(&json);
        reply->has_item = false;
    } else if (index == conn_pieces + 1) {
        json_out_raw(&json, "],\"requests\":[", 14);
        reply->has_item = false;
    } else if (index == conn_pieces + request_pieces + 2) {
        json_out_raw(&json, "]}", 2);
    } else if (index < conn_pieces + request_pieces + 2) {
        bool is_conn = index <= conn_pieces;
        uint32_t begin = (index - (is_conn ? 1 : conn_pieces + 2)) * ELEMENTS_A_PIECE;
        uint32_t count = pools_capacity(is_conn ? POOL_CONN : POOL_REQUEST);
        json_out_array_begin(&json); /* its bracket becomes the comma behind the piece before, or a blank */
        bool has_item = false;
        for (uint32_t i = begin; i < begin + ELEMENTS_A_PIECE && i < count; i++) {
            struct conn *conn = is_conn ? conn_at(i) : NULL;
            struct exchange *exchange = is_conn ? NULL : exchange_at(i);
            if (conn != NULL) {
                write_conn(&json, conn, now_us);
            } else if (exchange != NULL) {
                write_exchange(&json, exchange, now_us);
            }
            has_item = has_item || conn != NULL || exchange != NULL;
        }
        out[0] = has_item && reply->has_item ? ',' : ' ';
        reply->has_item = reply->has_item || has_item;
    } else {
        return false;
    }
    assert(!json.has_overflowed);
    *length = json.length;
    return true;
}

void api_pools_log(const struct http_server *server)
{
    uint64_t now_us = clock_now_us();

    for (int i = 0; i < POOL_COUNT; i++) {
        enum pool pool = (enum pool)i;
        log_info("pool name=%s capacity=%u used=%u cached=%u excess=%lld high_water=%u refused=%llu", pools_name(pool),
                 pools_capacity(pool), pools_used(pool), pools_cached(pool), (long long)pools_excess(pool),
                 pools_high_water(pool), (unsigned long long)pools_refused(pool));
    }
    for (const struct conn *c = server->first; c != NULL; c = c->next) {
        log_info("connection number=%" PRIu64 " state=%s age_ms=%" PRIu64 " request=%s", c->number, conn_state_name(c),
                 (now_us - c->opened_us) / 1000, c->exchange != NULL ? c->exchange->request.id : "none");
    }
    for (struct exchange *e = server->book.first; e != NULL; e = e->next) {
        log_info("holder request=%s stage=%s age_ms=%" PRIu64 " body=%s", e->request.id, stage_name(e),
                 (now_us - e->request.arrived_us) / 1000, body_name(e));
    }
}
