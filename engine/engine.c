/* engine: threads, hand-overs and the face that the connection thread sees. What a round does is in engine_tick.c.
 *
 * Always true: a request that was submitted becomes DONE exactly once; open_count is the number of those that are not
 * yet; conn misses no notice: a bit is set before the eventfd is written, and looked at after it was read.
 */
#include "engine/engine.h"

#include "engine/clock.h"
#include "engine/engine_inside.h"
#include "engine/start.h"
#include "pools/pools.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct engine the_engine;

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static uint32_t request_count(const struct pool_limits *limits)
{
    return limits->running_requests + limits->queued_requests + 1;
}

static uint32_t row_max(const struct pool_limits *limits)
{
    return limits->step_tokens + 1; /* and /health_generate's */
}

uint64_t engine_bytes(const struct pool_limits *limits)
{
    uint32_t shares = limits->running_requests + 1;

    return sched_bytes(limits->running_requests) + batch_bytes(row_max(limits), shares) +
           round_up(shares * sizeof(struct answer)) + round_up(limits->picture_pages * sizeof(void *));
}

uint64_t engine_queue_bytes(const struct pool_limits *limits)
{
    uint64_t words = (request_count(limits) + 63) / 64;

    return intake_ring_bytes(limits->intake_workers, request_count(limits)) +
           crowd_ring_bytes(request_count(limits), sizeof(uint32_t)) + round_up(words * sizeof(uint64_t));
}

static void *take_pool(enum pool pool)
{
    slab_handle handle = pools_get(pool);

    assert(slab_is_some(handle));
    return pools_at(pool, handle);
}

static void open_engine_memory(struct engine *engine)
{
    const struct pool_limits *limits = engine->parts.limits;
    uint32_t shares = limits->running_requests + 1;
    unsigned char *place = take_pool(POOL_ENGINE);
    struct sched_limits sched_limits = {.running_requests = limits->running_requests,
                                        .picture_pages = limits->picture_pages,
                                        .has_prefix_cache = limits->has_prefix_cache};

    sched_open(&engine->sched, &sched_limits, place);
    place += sched_bytes(limits->running_requests);
    batch_open(&engine->batch, row_max(limits), shares, engine->parts.checkpoint->image.merge, place);
    place += batch_bytes(row_max(limits), shares);
    engine->answers = (void *)place;
    place += round_up(shares * sizeof(struct answer));
    engine->mm_pages = (void *)place;
    engine->logits = take_pool(POOL_LOGITS);
    engine->sample_work = take_pool(POOL_SAMPLE_WORK);
    memset(engine->sample_work, 0, pools_element_bytes(POOL_SAMPLE_WORK));
}

static void open_queues(struct engine *engine)
{
    const struct pool_limits *limits = engine->parts.limits;
    unsigned char *place = engine->queues;

    place += intake_ring_bytes(limits->intake_workers, request_count(limits));
    crowd_ring_open(&engine->arrivals, place, request_count(limits), sizeof(uint32_t));
    place += crowd_ring_bytes(request_count(limits), sizeof(uint32_t));
    engine->notices = (void *)place;
    engine->notice_words = (request_count(limits) + 63) / 64;
    memset(place, 0, engine->notice_words * sizeof(uint64_t));
    engine->notice_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (engine->notice_fd < 0) {
        start_refuse(START_BUG, "no eventfd: %s", start_errno_text(errno));
    }
}

/* The request of /health_generate: one token in, one out. */
static void open_health(struct engine *engine)
{
    slab_handle handle = pools_get(POOL_REQUEST);
    assert(slab_is_some(handle));
    slab_handle tokens = pools_get(POOL_TOKENS);
    assert(slab_is_some(tokens));
    engine->health_request = pools_at(POOL_REQUEST, handle);
    request_open(engine->health_request, handle.index, 0, 0, 0);
    engine->health_tokens = tokens.index;
    engine->health_token = engine->parts.checkpoint->eos_ids[0];
}

/* A request with a whole prompt goes to the engine's thread, from any other. */
static void arrive(struct engine *engine, struct request *request)
{
    uint32_t index = request->index;

    atomic_store_explicit(&request->stage, REQUEST_ENGINE, memory_order_release);
    bool is_given = crowd_ring_push(&engine->arrivals, &index);
    assert(is_given);
    (void)is_given;
    wake_up(&engine->wake);
}

/* Intake's way out, on its own thread. */
static void deliver(void *ctx, struct request *request)
{
    struct engine *engine = ctx;
    uint32_t index = request->index;

    if (request->err != ERR_OK) {
        engine_finish(engine, request);
        return;
    }
    if (request->picture_count == 0) {
        atomic_store_explicit(&request->is_body_free, true, memory_order_release);
        engine_notice(engine, index);
    }
    if (request->choice_count > 1) {
        atomic_store_explicit(&request->stage, REQUEST_CHOICES, memory_order_release);
        engine_notice(engine, index);
        return;
    }
    arrive(engine, request);
}

struct engine *engine_open(const struct engine_parts *parts)
{
    struct engine *engine = &the_engine;

    assert(engine->parts.model == NULL && parts->model != NULL);
    assert(parts->step_budget_ms > 0 && parts->decode_log_interval > 0);
    engine->parts = *parts;
    pace_open(&engine->pace, (uint64_t)parts->step_budget_ms * 1000);
    engine->queues = take_pool(POOL_QUEUE);
    open_engine_memory(engine);
    open_queues(engine);
    open_health(engine);
    return engine;
}

static void run(void *argument)
{
    static const enum pool owned[] = {POOL_KV_PAGE, POOL_PREFIX, POOL_MM_PAGE,
                                      POOL_FEATURE, POOL_PIXELS, POOL_PAGE_LIST};
    struct engine *engine = argument;

    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) {
        pools_adopt(owned[i]);
    }
    for (;;) {
        uint32_t seen = wake_ticket(&engine->wake);
        bool is_stopping = atomic_load_explicit(&engine->is_stopping, memory_order_acquire);
        if (engine_tick(engine)) {
            continue;
        }
        if (is_stopping && sched_load(&engine->sched) == 0) {
            return;
        }
        (void)wake_wait(&engine->wake, seen, engine_rest_ms(engine));
    }
}

void engine_start(struct engine *engine)
{
    const struct pool_limits *limits = engine->parts.limits;
    struct intake_rules rules = {.chat = engine->parts.rules,
                                 .chat_template = engine->parts.chat_template,
                                 .tokenizer = engine->parts.tokenizer,
                                 .image_token_id = engine->parts.checkpoint->image_token_id,
                                 .context_tokens = limits->context_tokens,
                                 .seed = engine->parts.seed,
                                 .deliver = deliver,
                                 .ctx = engine};

    intake_start(&engine->intake, &rules, limits->intake_workers, request_count(limits), engine->queues);
    if (limits->picture_workers > 0) {
        picture_start(&engine->picture, &engine->parts.checkpoint->image, limits->source_pixels, &engine->wake);
    }
    thread_start(&engine->thread, "engine", THREAD_NORMAL, run, engine);
}

void engine_stop(struct engine *engine)
{
    intake_stop(&engine->intake);
    atomic_store_explicit(&engine->is_stopping, true, memory_order_release);
    wake_up(&engine->wake);
    thread_join(&engine->thread);
    if (engine->parts.limits->picture_workers > 0) {
        picture_stop(&engine->picture);
    }
    (void)close(engine->notice_fd);
}

void engine_submit(struct engine *engine, struct request *request)
{
    assert(atomic_load_explicit(&request->stage, memory_order_relaxed) == REQUEST_READING);
    assert(request->tokens != NULL && request->body != NULL);
    atomic_fetch_add_explicit(&engine->open_count, 1, memory_order_relaxed);
    atomic_store_explicit(&request->stage, REQUEST_INTAKE, memory_order_release);
    intake_give(&engine->intake, request);
}

void engine_submit_choice(struct engine *engine, struct request *request)
{
    uint32_t stage = atomic_load_explicit(&request->stage, memory_order_relaxed);

    assert(stage == REQUEST_CHOICES || (stage == REQUEST_READING && request->choice > 0));
    assert(request->choice < request->choice_count);
    if (stage == REQUEST_READING) {
        atomic_fetch_add_explicit(&engine->open_count, 1, memory_order_relaxed);
    }
    if (request->err != ERR_OK) {
        engine_finish(engine, request);
        return;
    }
    arrive(engine, request);
}

void engine_cancel(struct engine *engine, struct request *request)
{
    assert(atomic_load_explicit(&request->is_cancelled, memory_order_relaxed));
    (void)request;
    atomic_store_explicit(&engine->has_cancels, true, memory_order_release);
    wake_up(&engine->wake);
}

void engine_finish(struct engine *engine, struct request *request)
{
    uint32_t index = request->index;

    if (atomic_load_explicit(&request->finish, memory_order_relaxed) == FINISH_NONE && request->err == ERR_OK) {
        (void)request_refuse(request, ERR_CLIENT_GONE, "", "the client left");
    }
    if (request->err != ERR_OK) {
        atomic_store_explicit(&request->finish, FINISH_ABORT, memory_order_release);
    }
    atomic_store_explicit(&request->finished_us, clock_now_us(), memory_order_relaxed);
    atomic_store_explicit(&request->is_body_free, true, memory_order_release);
    atomic_fetch_sub_explicit(&engine->open_count, 1, memory_order_relaxed);
    atomic_store_explicit(&request->stage, REQUEST_DONE, memory_order_release);
    engine_notice(engine, index);
}

void engine_notice(struct engine *engine, uint32_t index)
{
    const uint64_t one = 1;

    assert(index / 64 < engine->notice_words);
    atomic_fetch_or(&engine->notices[index / 64], UINT64_C(1) << (index % 64));
    if (!atomic_exchange(&engine->is_signalled, true)) {
        ssize_t written = write(engine->notice_fd, &one, sizeof one); /* cannot fail: the counter is 0 or 1 */
        (void)written;
    }
}

int engine_notice_fd(const struct engine *engine)
{
    return engine->notice_fd;
}

void engine_notice_clear(struct engine *engine)
{
    uint64_t count;
    ssize_t taken = read(engine->notice_fd, &count, sizeof count);

    (void)taken;
    atomic_store(&engine->is_signalled, false);
}

bool engine_notice_take(struct engine *engine, uint32_t *request_index)
{
    while (engine->notice_bits == 0) {
        if (engine->notice_at == engine->notice_words) {
            engine->notice_at = 0;
            return false;
        }
        engine->notice_bits = atomic_exchange(&engine->notices[engine->notice_at++], 0);
    }
    uint32_t bit = (uint32_t)__builtin_ctzll(engine->notice_bits);
    engine->notice_bits &= engine->notice_bits - 1;
    *request_index = (engine->notice_at - 1) * 64 + bit;
    return true;
}

const struct engine_stats *engine_stats(const struct engine *engine)
{
    return &engine->stats;
}

enum err engine_flush_caches(struct engine *engine)
{
    if (atomic_load_explicit(&engine->open_count, memory_order_relaxed) > 0) {
        return ERR_BUSY;
    }
    atomic_store_explicit(&engine->wants_flush, true, memory_order_release);
    wake_up(&engine->wake);
    return ERR_OK;
}

void engine_health_start(struct engine *engine)
{
    uint32_t state = atomic_load_explicit(&engine->health, memory_order_acquire);

    if (state == HEALTH_IDLE || state == HEALTH_DONE) {
        atomic_store_explicit(&engine->health, HEALTH_WANTED, memory_order_release);
        wake_up(&engine->wake);
    }
}

bool engine_health_done(const struct engine *engine)
{
    return atomic_load_explicit(&engine->health, memory_order_acquire) == HEALTH_DONE;
}
