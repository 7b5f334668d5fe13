/* exchange: a REQUEST as the connection thread holds it.
 *
 * Always true between calls: an open exchange holds exactly one REQUEST and one TOKENS, and a BODY if body_pool names
 * one; it is in the book's list once. It closes only in the stages READING and DONE, when no other thread looks at it.
 */
#include "engine/http/exchange.h"

#include "engine/clock.h"
#include "engine/log.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const uint64_t EXCHANGE_MARK = 0x6173686c61722121u; /* no fill pattern and no zeroed memory looks like it */

/* The finalizer of splitmix64: a bijection, so numbers that differ give ids that differ. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t exchange_bytes(void)
{
    return sizeof(struct exchange);
}

void exchange_book_open(struct exchange_book *book, struct engine *engine, struct metrics *metrics, uint32_t open_max)
{
    memset(book, 0, sizeof *book);
    book->open_max = open_max;
    book->engine = engine;
    book->metrics = metrics;
    book->next_number = 1;
    book->id_seed = mix(clock_now_us() ^ (uint64_t)clock_unix_seconds() << 32);
}

static void name_request(const struct exchange_book *book, struct request *request)
{
    (void)snprintf(request->id, sizeof request->id, "chatcmpl-%016" PRIx64 "%08" PRIx32,
                   mix(request->number ^ book->id_seed), (uint32_t)mix(book->id_seed + request->number));
}

static void put_body(struct exchange_book *book, struct exchange *exchange)
{
    if (exchange->body_pool == POOL_COUNT) {
        return;
    }
    book->has_large_come_free = book->has_large_come_free || exchange->body_pool == POOL_BODY_LARGE;
    pools_put(exchange->body_pool, exchange->body_handle);
    exchange->body_pool = POOL_COUNT;
}

enum err exchange_open(struct exchange_book *book, struct conn *conn, uint64_t body_bytes, struct exchange **exchange)
{
    bool is_small = body_bytes <= pools_element_bytes(POOL_BODY_SMALL);
    slab_handle request = book->open_count < book->open_max ? pools_get(POOL_REQUEST) : SLAB_NONE;
    slab_handle tokens = slab_is_some(request) ? pools_get(POOL_TOKENS) : SLAB_NONE;
    slab_handle body = slab_is_some(tokens) && is_small ? pools_get(POOL_BODY_SMALL) : SLAB_NONE;

    *exchange = NULL;
    if (!slab_is_some(tokens) || (is_small && !slab_is_some(body))) {
        if (slab_is_some(tokens)) {
            pools_put(POOL_TOKENS, tokens);
        }
        if (slab_is_some(request)) {
            pools_put(POOL_REQUEST, request);
        }
        return ERR_QUEUE_FULL;
    }
    struct exchange *e = pools_at(POOL_REQUEST, request);
    memset(e, 0, sizeof *e);
    request_open(&e->request, request.index, book->next_number++, clock_now_us(), (uint64_t)clock_unix_seconds());
    name_request(book, &e->request);
    e->request.tokens = pools_at(POOL_TOKENS, tokens);
    e->request_handle = request;
    e->tokens_handle = tokens;
    e->body_handle = body;
    e->body_pool = is_small ? POOL_BODY_SMALL : POOL_COUNT;
    e->mark = EXCHANGE_MARK;
    e->conn = conn;
    e->next = book->first;
    if (book->first != NULL) {
        book->first->previous = e;
    }
    book->first = e;
    book->open_count++;
    *exchange = e;
    return ERR_OK;
}

bool exchange_take_large(struct exchange *exchange, size_t held_bytes)
{
    assert(exchange->mark == EXCHANGE_MARK);
    assert(exchange->body_pool != POOL_BODY_LARGE);
    slab_handle large = pools_get(POOL_BODY_LARGE);
    if (!slab_is_some(large)) {
        return false;
    }
    if (exchange->body_pool == POOL_BODY_SMALL) {
        memcpy(pools_at(POOL_BODY_LARGE, large), pools_at(POOL_BODY_SMALL, exchange->body_handle), held_bytes);
        pools_put(POOL_BODY_SMALL, exchange->body_handle);
    } else {
        assert(held_bytes == 0);
    }
    exchange->body_handle = large;
    exchange->body_pool = POOL_BODY_LARGE;
    return true;
}

unsigned char *exchange_body(const struct exchange *exchange, size_t *room)
{
    *room = 0;
    if (exchange->body_pool == POOL_COUNT) {
        return NULL;
    }
    *room = (size_t)pools_element_bytes(exchange->body_pool);
    return pools_at(exchange->body_pool, exchange->body_handle);
}

void exchange_submit(struct exchange_book *book, struct exchange *exchange, size_t body_bytes)
{
    size_t room;

    assert(exchange->mark == EXCHANGE_MARK && !exchange->is_submitted);
    exchange->request.body = exchange_body(exchange, &room);
    exchange->request.body_bytes = body_bytes;
    assert(exchange->request.body != NULL && body_bytes <= room);
    exchange->is_submitted = true;
    engine_submit(book->engine, &exchange->request);
}

static bool is_with_conn(struct exchange *exchange)
{
    uint32_t stage = atomic_load_explicit(&exchange->request.stage, memory_order_acquire);
    return stage == REQUEST_READING || stage == REQUEST_DONE;
}

static void log_end(struct exchange *exchange)
{
    static const char *const finishes[] = {"none", "stop", "length", "abort"};
    struct request *r = &exchange->request;
    uint64_t first_us = atomic_load_explicit(&r->first_token_us, memory_order_relaxed);
    uint32_t finish = atomic_load_explicit(&r->finish, memory_order_acquire);

    log_info(
        "request id=%s err=%s finish=%s prompt_tokens=%u cached_tokens=%u images=%u answer_tokens=%u ttft_ms=%" PRIu64
        " e2e_ms=%" PRIu64,
        r->id, err_row(r->err)->name, finish <= FINISH_ABORT ? finishes[finish] : "?", r->prompt_tokens,
        r->cached_tokens, r->picture_count, atomic_load_explicit(&r->answer_tokens, memory_order_relaxed),
        first_us == 0 ? 0 : (first_us - r->arrived_us) / 1000, (clock_now_us() - r->arrived_us) / 1000);
}

static void close_exchange(struct exchange_book *book, struct exchange *exchange)
{
    assert(exchange->mark == EXCHANGE_MARK);
    assert(is_with_conn(exchange));
    if (exchange->is_submitted) {
        metrics_count_end(book->metrics, &exchange->request);
        log_end(exchange);
    }
    put_body(book, exchange);
    if (exchange->previous != NULL) {
        exchange->previous->next = exchange->next;
    } else {
        book->first = exchange->next;
    }
    if (exchange->next != NULL) {
        exchange->next->previous = exchange->previous;
    }
    book->open_count--;
    slab_handle request = exchange->request_handle;
    slab_handle tokens = exchange->tokens_handle;
    exchange->mark = 0;
    pools_put(POOL_TOKENS, tokens);
    pools_put(POOL_REQUEST, request);
}

void exchange_leave(struct exchange_book *book, struct exchange *exchange, bool is_answered)
{
    assert(exchange->mark == EXCHANGE_MARK);
    exchange->conn = NULL;
    if (exchange->is_submitted && !is_answered && !is_with_conn(exchange)) {
        atomic_store_explicit(&exchange->request.is_cancelled, true, memory_order_release);
        engine_cancel(book->engine, &exchange->request);
    }
    (void)exchange_observe(book, exchange);
}

void exchange_cut(struct exchange_book *book, struct exchange *exchange)
{
    exchange->is_cut = true;
    if (exchange->is_submitted && !is_with_conn(exchange)) {
        atomic_store_explicit(&exchange->request.is_cancelled, true, memory_order_release);
        engine_cancel(book->engine, &exchange->request);
    }
}

/* Feeds the histograms: the first token by its own time, the others by when they are seen here. */
static void observe_tokens(struct exchange_book *book, struct exchange *exchange, uint32_t tokens)
{
    const struct request *r = &exchange->request;
    uint64_t now_us = clock_now_us();

    if (exchange->seen_tokens == 0) {
        uint64_t first_us = atomic_load_explicit(&r->first_token_us, memory_order_relaxed);
        exchange->seen_us = first_us >= r->arrived_us && first_us <= now_us ? first_us : now_us;
        exchange->seen_tokens = 1;
        metrics_observe_first_token(book->metrics, exchange->seen_us - r->arrived_us);
    }
    if (tokens > exchange->seen_tokens) {
        uint32_t count = tokens - exchange->seen_tokens;
        metrics_observe_tokens(book->metrics, now_us - exchange->seen_us, count);
        exchange->seen_us = now_us;
        exchange->seen_tokens = tokens;
    }
}

bool exchange_observe(struct exchange_book *book, struct exchange *exchange)
{
    struct request *r = &exchange->request;

    assert(exchange->mark == EXCHANGE_MARK);
    bool is_over = is_with_conn(exchange); /* before the fields below: what DONE publishes is then seen */
    if (exchange->is_submitted && atomic_load_explicit(&r->is_body_free, memory_order_acquire)) {
        put_body(book, exchange);
    }
    uint32_t tokens = atomic_load_explicit(&r->answer_tokens, memory_order_acquire);
    if (tokens > exchange->seen_tokens) {
        observe_tokens(book, exchange, tokens);
    }
    if (is_over && exchange->conn == NULL) {
        close_exchange(book, exchange);
        return false;
    }
    return true;
}

struct exchange *exchange_at(uint32_t request_index)
{
    assert(request_index < pools_capacity(POOL_REQUEST));
    unsigned char *base = pools_base(POOL_REQUEST);
    struct exchange *exchange = (void *)(base + (size_t)request_index * pools_stride_bytes(POOL_REQUEST));
    return exchange->mark == EXCHANGE_MARK ? exchange : NULL;
}
