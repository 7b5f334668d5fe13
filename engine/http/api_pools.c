/* api_pools: GET /pools and SIGUSR1: every pool, and who holds what of those that requests hold. */
#include "engine/http/api.h"

#include "engine/clock.h"
#include "engine/http/http_server.h"
#include "engine/json_out.h"
#include "engine/log.h"
#include "engine/sched.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { ELEMENTS_A_PIECE = 16, LINES_A_TURN = 64 };

/* What a request holds of a pool. */
struct holding {
    enum pool pool;
    uint32_t count;
};

enum { HOLDINGS = 7 };

/* Where a request is: with whom, and if that is the engine, in which state. */
static const char *stage_name(struct exchange *exchange)
{
    static const char *const names[] = {"reading", "intake", "choices", "engine", "done"};
    uint32_t stage = atomic_load_explicit(&exchange->request.stage, memory_order_relaxed);

    assert(stage < sizeof names / sizeof names[0]);
    return names[stage];
}

static const char *state_name(struct exchange *exchange)
{
    bool is_in_engine = atomic_load_explicit(&exchange->request.stage, memory_order_relaxed) == REQUEST_ENGINE;
    uint32_t state = atomic_load_explicit(&exchange->request.slot_state, memory_order_relaxed);

    return is_in_engine ? sched_state_name(state) : stage_name(exchange);
}

static const char *client_name(const struct exchange *exchange)
{
    return exchange->conn != NULL ? conn_state_name(exchange->conn) : "left";
}

static const char *body_name(const struct exchange *exchange)
{
    return exchange->body_pool == POOL_COUNT ? "none" : pools_name(exchange->body_pool);
}

static uint32_t load(_Atomic uint32_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void list_holdings(struct exchange *exchange, struct holding holdings[HOLDINGS])
{
    struct request *r = &exchange->request;
    bool has_body = exchange->body_pool != POOL_COUNT;

    holdings[0] = (struct holding){POOL_REQUEST, 1};
    holdings[1] = (struct holding){POOL_TOKENS, 1};
    holdings[2] = (struct holding){has_body ? exchange->body_pool : POOL_BODY_SMALL, has_body};
    holdings[3] = (struct holding){POOL_PAGE_LIST, load(&r->held_page_lists)};
    holdings[4] = (struct holding){POOL_KV_PAGE, load(&r->held_kv_pages)};
    holdings[5] = (struct holding){POOL_FEATURE, load(&r->held_features)};
    holdings[6] = (struct holding){POOL_MM_PAGE, load(&r->held_mm_pages)};
}

/* By whom the plan has a pool's elements held. */
static void write_planned_holders(struct json_out *json, enum pool pool)
{
    const struct pool_plan_row *row = &pools_opened_plan()->rows[pool];

    json_out_key(json, "holders");
    json_out_array_begin(json);
    for (uint32_t i = 0; i < row->holder_count; i++) {
        json_out_text(json, row->holders[i].whom);
    }
    json_out_array_end(json);
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
        write_planned_holders(json, pool);
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
    struct holding holdings[HOLDINGS];

    list_holdings(exchange, holdings);
    json_out_object_begin(json);
    json_out_key_text(json, "request", r->id);
    json_out_key_i64(json, "choice", r->choice);
    json_out_key_text(json, "stage", stage_name(exchange));
    json_out_key_text(json, "state", state_name(exchange));
    json_out_key_text(json, "client", client_name(exchange));
    json_out_key(json, "connection");
    if (exchange->conn != NULL) {
        json_out_i64(json, (int64_t)exchange->conn->number);
    } else {
        json_out_null(json);
    }
    json_out_key_i64(json, "age_ms", (int64_t)((now_us - r->arrived_us) / 1000));
    json_out_key_i64(json, "answer_tokens", load(&r->answer_tokens));
    json_out_key_text(json, "body", body_name(exchange));
    json_out_key(json, "holds");
    json_out_object_begin(json);
    for (int i = 0; i < HOLDINGS; i++) {
        if (holdings[i].count > 0) {
            json_out_key_i64(json, pools_name(holdings[i].pool), holdings[i].count);
        }
    }
    json_out_object_end(json);
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

static void log_pool(enum pool pool)
{
    log_info("pool name=%s capacity=%u used=%u cached=%u excess=%lld high_water=%u refused=%llu", pools_name(pool),
             pools_capacity(pool), pools_used(pool), pools_cached(pool), (long long)pools_excess(pool),
             pools_high_water(pool), (unsigned long long)pools_refused(pool));
}

static void log_exchange(struct exchange *exchange, uint64_t now_us)
{
    struct request *r = &exchange->request;

    log_info("holder request=%s choice=%u state=%s client=%s age_ms=%" PRIu64
             " REQUEST=1 TOKENS=1 body=%s PAGE_LIST=%u KV_PAGE=%u FEATURE=%u MM_PAGE=%u",
             r->id, r->choice, state_name(exchange), client_name(exchange), (now_us - r->arrived_us) / 1000,
             body_name(exchange), load(&r->held_page_lists), load(&r->held_kv_pages), load(&r->held_features),
             load(&r->held_mm_pages));
}

static void log_conn(const struct conn *conn, uint64_t now_us)
{
    log_info("holder connection=%" PRIu64 " state=%s age_ms=%" PRIu64 " CONN=1 request=%s", conn->number,
             conn_state_name(conn), (now_us - conn->opened_us) / 1000,
             conn->exchange != NULL ? conn->exchange->request.id : "none");
}

bool api_pools_log(uint32_t *at)
{
    const uint32_t requests_end = POOL_COUNT + pools_capacity(POOL_REQUEST);
    const uint32_t end = requests_end + pools_capacity(POOL_CONN);
    const uint64_t now_us = clock_now_us();

    for (uint32_t lines = 0; *at < end && lines < LINES_A_TURN; (*at)++) {
        if (*at < POOL_COUNT) {
            log_pool((enum pool)*at);
            lines++;
        } else if (*at < requests_end) {
            struct exchange *exchange = exchange_at(*at - POOL_COUNT);
            if (exchange != NULL) {
                log_exchange(exchange, now_us);
                lines++;
            }
        } else {
            const struct conn *conn = conn_at(*at - requests_end);
            if (conn != NULL) {
                log_conn(conn, now_us);
                lines++;
            }
        }
    }
    return *at < end;
}
