/* exchange: a REQUEST as the connection thread holds it.
 *
 * Always true between calls: an open exchange holds exactly one REQUEST and one TOKENS, and a BODY if body_pool names
 * one; it is in the book's list once. It closes only in the stages READING and DONE, when no other thread looks at it,
 * and with all its choices.
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

/* A REQUEST with its TOKENS, in the book; the record is the caller's to open. NULL: one of them is missing. */
static struct exchange *take(struct exchange_book *book)
{
    slab_handle request = book->open_count < book->open_max ? pools_get(POOL_REQUEST) : SLAB_NONE;
    slab_handle tokens = slab_is_some(request) ? pools_get(POOL_TOKENS) : SLAB_NONE;

    if (!slab_is_some(tokens)) {
        if (slab_is_some(request)) {
            pools_put(POOL_REQUEST, request);
        }
        return NULL;
    }
    struct exchange *e = pools_at(POOL_REQUEST, request);
    memset(e, 0, sizeof *e);
    e->request_handle = request;
    e->tokens_handle = tokens;
    e->body_pool = POOL_COUNT;
    e->mark = EXCHANGE_MARK;
    e->first_choice = e;
    e->next = book->first;
    if (book->first != NULL) {
        book->first->previous = e;
    }
    book->first = e;
    book->open_count++;
    return e;
}

/* Both go back. */
static void give_back(struct exchange_book *book, struct exchange *exchange)
{
    slab_handle request = exchange->request_handle;
    slab_handle tokens = exchange->tokens_handle;

    assert(exchange->mark == EXCHANGE_MARK && exchange->body_pool == POOL_COUNT);
    assert(book->open_count > 0);
    if (exchange->previous != NULL) {
        exchange->previous->next = exchange->next;
    } else {
        book->first = exchange->next;
    }
    if (exchange->next != NULL) {
        exchange->next->previous = exchange->previous;
    }
    book->open_count--;
    exchange->mark = 0;
    pools_put(POOL_TOKENS, tokens);
    pools_put(POOL_REQUEST, request);
}

enum err exchange_open(struct exchange_book *book, struct conn *conn, uint64_t body_bytes, struct exchange **exchange)
{
    bool is_small = body_bytes <= pools_element_bytes(POOL_BODY_SMALL);
    struct exchange *e = take(book);

    *exchange = NULL;
    if (e == NULL) {
        return ERR_QUEUE_FULL;
    }
    if (is_small) {
        e->body_handle = pools_get(POOL_BODY_SMALL);
        if (!slab_is_some(e->body_handle)) {
            give_back(book, e);
            return ERR_QUEUE_FULL;
        }
        e->body_pool = POOL_BODY_SMALL;
    }
    request_open(&e->request, e->request_handle.index, book->next_number++, clock_now_us(),
                 (uint64_t)clock_unix_seconds());
    name_request(book, &e->request);
    e->request.tokens = pools_at(POOL_TOKENS, e->tokens_handle);
    e->conn = conn;
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

static uint32_t stage_of(struct exchange *exchange)
{
    return atomic_load_explicit(&exchange->request.stage, memory_order_acquire);
}

static bool is_with_conn(struct exchange *exchange)
{
    uint32_t stage = stage_of(exchange);
    return stage == REQUEST_READING || stage == REQUEST_DONE;
}

/* The other choices of a request that is parsed: all or none. */
static bool take_choices(struct exchange_book *book, struct exchange *first)
{
    struct exchange *last = first;

    assert(first->next_choice == NULL);
    for (uint32_t i = 1; i < first->request.choice_count; i++) {
        struct exchange *e = take(book);
        if (e == NULL) {
            while ((e = first->next_choice) != NULL) {
                first->next_choice = e->next_choice;
                give_back(book, e);
            }
            return false;
        }
        request_open_choice(&e->request, e->request_handle.index, book->next_number++, i, &first->request,
                            pools_at(POOL_TOKENS, e->tokens_handle));
        e->conn = first->conn;
        e->is_submitted = true;
        e->first_choice = first;
        last->next_choice = e;
        last = e;
    }
    return true;
}

/* A request that is parsed goes on to the engine with all its choices, or is refused. */
static void spread(struct exchange_book *book, struct exchange *first)
{
    struct request *r = &first->request;

    if (atomic_load_explicit(&r->is_cancelled, memory_order_relaxed)) {
        (void)request_refuse(r, ERR_CLIENT_GONE, "", "the client left");
    } else if (!take_choices(book, first)) {
        (void)request_refuse(r, ERR_QUEUE_FULL, "n", "%u choices take as many places", r->choice_count);
    }
    for (struct exchange *e = first; e != NULL; e = e->next_choice) {
        engine_submit_choice(book->engine, &e->request);
    }
}

static void log_end(struct exchange *exchange)
{
    static const char *const finishes[] = {"none", "stop", "length", "abort"};
    struct request *r = &exchange->request;
    uint64_t first_us = atomic_load_explicit(&r->first_token_us, memory_order_relaxed);
    uint32_t finish = atomic_load_explicit(&r->finish, memory_order_acquire);

    log_info("request id=%s choice=%u choices=%u err=%s finish=%s prompt_tokens=%u cached_tokens=%u images=%u "
             "answer_tokens=%u ttft_ms=%" PRIu64 " e2e_ms=%" PRIu64,
             r->id, r->choice, r->choice_count, err_row(r->err)->name, finish <= FINISH_ABORT ? finishes[finish] : "?",
             r->prompt_tokens, r->cached_tokens, r->picture_count,
             atomic_load_explicit(&r->answer_tokens, memory_order_relaxed),
             first_us == 0 ? 0 : (first_us - r->arrived_us) / 1000, (clock_now_us() - r->arrived_us) / 1000);
}

/* The request ended with its last choice. */
static void count_end(struct exchange_book *book, struct exchange *first)
{
    uint64_t last_us = 0;

    for (struct exchange *e = first; e != NULL; e = e->next_choice) {
        uint64_t finished_us = atomic_load_explicit(&e->request.finished_us, memory_order_relaxed);
        last_us = finished_us > last_us ? finished_us : last_us;
    }
    atomic_store_explicit(&first->request.finished_us, last_us, memory_order_relaxed);
    for (struct exchange *e = first; e != NULL; e = e->next_choice) {
        metrics_count_end(book->metrics, &e->request);
        log_end(e);
    }
}

static void close_choices(struct exchange_book *book, struct exchange *first)
{
    assert(first->first_choice == first);
    if (first->is_submitted) {
        count_end(book, first);
    }
    put_body(book, first);
    for (struct exchange *e = first, *next; e != NULL; e = next) {
        assert(is_with_conn(e));
        next = e->next_choice;
        give_back(book, e);
    }
}

static void cancel(struct exchange_book *book, struct exchange *exchange)
{
    if (exchange->is_submitted && !is_with_conn(exchange) &&
        !atomic_load_explicit(&exchange->request.is_cancelled, memory_order_relaxed)) {
        atomic_store_explicit(&exchange->request.is_cancelled, true, memory_order_release);
        engine_cancel(book->engine, &exchange->request);
    }
}

void exchange_leave(struct exchange_book *book, struct exchange *exchange, bool is_answered)
{
    assert(exchange->mark == EXCHANGE_MARK);
    for (struct exchange *e = exchange->first_choice; e != NULL; e = e->next_choice) {
        e->conn = NULL;
        if (!is_answered) {
            cancel(book, e);
        }
    }
    (void)exchange_observe(book, exchange);
}

void exchange_cut(struct exchange_book *book, struct exchange *exchange)
{
    exchange->is_cut = true;
    cancel(book, exchange);
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
        if (r->choice == 0) {
            metrics_observe_first_token(book->metrics, exchange->seen_us - r->arrived_us);
        }
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
    struct exchange *first = exchange->first_choice;

    assert(exchange->mark == EXCHANGE_MARK);
    assert(first != NULL && first->mark == EXCHANGE_MARK);
    bool is_over = true, is_body_free = first->is_submitted, is_refused = false;

    if (stage_of(first) == REQUEST_CHOICES) {
        spread(book, first);
    }
    for (struct exchange *e = first; e != NULL; e = e->next_choice) {
        bool is_ours = is_with_conn(e); /* before the fields below: what DONE publishes is then seen */
        is_over = is_over && is_ours;
        is_refused = is_refused || (is_ours && e->request.err != ERR_OK);
        is_body_free = is_body_free && atomic_load_explicit(&e->request.is_body_free, memory_order_acquire);
        uint32_t tokens = atomic_load_explicit(&e->request.answer_tokens, memory_order_acquire);
        if (tokens > e->seen_tokens) {
            observe_tokens(book, e, tokens);
        }
    }
    if (is_body_free) {
        put_body(book, first);
    }
    for (struct exchange *e = first; is_refused && e != NULL; e = e->next_choice) {
        cancel(book, e); /* its refusal is the answer */
    }
    if (is_over && first->conn == NULL) {
        close_choices(book, first);
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
