/* engine_tick: one round of the engine's thread: what arrived, who left, a forward pass, its tokens, then pictures.
 *
 * Always true between rounds: no row is computed and not advanced, no token sampled and not published.
 */
#include "engine/clock.h"
#include "engine/engine_inside.h"
#include "engine/log.h"
#include "engine/sampling.h"
#include "pools/pools.h"

#include <assert.h>
#include <string.h>

enum {
    IDLE_RETRY_MS = 5, /* a pool refused something: only tests make that happen */
    WINDOW_US = 1000000,
};

/* ---- what came in ---- */

static bool take_arrivals(struct engine *engine)
{
    bool has_any = false;
    uint32_t index;

    while (crowd_ring_pop(&engine->arrivals, &index)) {
        struct request *request = request_at(index);
        assert(atomic_load_explicit(&request->stage, memory_order_acquire) == REQUEST_ENGINE);
        sched_submit(&engine->sched, request);
        if (atomic_load_explicit(&request->is_cancelled, memory_order_acquire)) {
            /* Its client left while intake had it: that sweep was too early. */
            atomic_store_explicit(&engine->has_cancels, true, memory_order_relaxed);
        }
        has_any = true;
    }
    return has_any;
}

static void start_health(struct engine *engine)
{
    struct request *request = engine->health_request;

    if (atomic_load_explicit(&engine->health, memory_order_acquire) != HEALTH_WANTED) {
        return;
    }
    assert(request->engine_slot == UINT32_MAX);
    request_open(request, request->index, 0, clock_now_us(), 0);
    request->tokens = pools_at(POOL_TOKENS, pools_held(POOL_TOKENS, engine->health_tokens));
    request->tokens[0] = engine->health_token;
    request->prompt_tokens = 1;
    request->max_new_tokens = 1;
    request->sampling.repetition_penalty = 1;
    if (sched_submit_health(&engine->sched, request)) {
        atomic_store_explicit(&engine->health, HEALTH_RUNNING, memory_order_release);
    }
}

/* Everything that others asked for. True if anything changed. */
static bool take_orders(struct engine *engine)
{
    bool has_any = take_arrivals(engine);

    start_health(engine);
    if (atomic_exchange_explicit(&engine->has_cancels, false, memory_order_acq_rel)) {
        sched_sweep(&engine->sched);
        has_any = true;
    }
    /* Behind the arrivals: whoever was submitted after the order still waits, and will find the caches empty. */
    if (atomic_load_explicit(&engine->wants_flush, memory_order_acquire) && sched_flush(&engine->sched) == ERR_OK) {
        atomic_store_explicit(&engine->wants_flush, false, memory_order_relaxed);
        log_info("flush_cache done=1");
    }
    return has_any;
}

/* ---- a forward pass ---- */

/* Prompt rows of this step: all that fit, or what the streams' pace has room for. */
static uint32_t rows_now(const struct engine *engine)
{
    bool has_picture = engine->sched.encoding != MM_NONE || engine->sched.decoded[0] != MM_NONE;

    return pace_rows(&engine->pace, sched_has_decode(&engine->sched), has_picture, engine->parts.limits->chunk_tokens);
}

static void count_step(struct engine *engine, uint64_t took_us)
{
    const struct text_step *step = &engine->batch.step;

    pace_count_step(&engine->pace, step->row_count - engine->batch.prefill_rows, engine->batch.prefill_rows, took_us);
    engine->meter.window_tokens += step->logit_row_count;
    atomic_fetch_add_explicit(&engine->stats.steps, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&engine->stats.generated_tokens_total, step->logit_row_count, memory_order_relaxed);
    atomic_store_explicit(&engine->stats.last_step_us, clock_now_us(), memory_order_relaxed);
}

/* Chooses and publishes the token behind a slot's last row. */
static void answer_slot(struct engine *engine, uint32_t index, float *logits)
{
    struct sched_slot *slot = &engine->sched.slots[index];
    struct request *request = slot->request;
    struct answer *answer = &engine->answers[index];
    assert(slot->known == slot->computed && slot->known >= request->prompt_tokens);
    uint32_t answered = slot->known - request->prompt_tokens;
    int32_t token = 0;
    const int32_t *masked_ids;

    if (answered == 0) {
        answer_open(answer, request, engine->parts.checkpoint->eos_ids, engine->parts.checkpoint->eos_count);
        atomic_store_explicit(&request->first_token_us, clock_now_us(), memory_order_relaxed);
    }
    uint32_t masked_count = answer_masked(answer, request, answered, &masked_ids);
    struct sampling_row row = {.logits = logits,
                               .vocab = engine->parts.checkpoint->vocab,
                               .id_limit = engine->parts.id_limit,
                               .params = &request->sampling,
                               .answer_ids = request->tokens + request->prompt_tokens,
                               .answer_count = answered,
                               .masked_ids = masked_ids,
                               .masked_count = masked_count};
    if (engine->parts.watch_logits != NULL) {
        engine->parts.watch_logits(engine->parts.watch_ctx, request, slot->known, logits);
    }
    double noise = sampling_noise(request->sampling.seed, request->choice, answered);
    enum err err = sampling_choose(&row, noise, engine->sample_work, &token);
    if (err != ERR_OK) {
        log_error("logits request=%s index=%u: not finite", request->id, slot->known);
        (void)request_refuse(request, err, "", "at token %u", slot->known);
        sched_end(&engine->sched, index);
        return;
    }
    sched_append(&engine->sched, index, token);
    if (answer_publish(answer, request, engine->parts.tokenizer, answered + 1) != FINISH_NONE) {
        sched_end(&engine->sched, index); /* its notice comes with DONE */
    } else {
        engine_notice(engine, request->index);
    }
}

/* KV pages that requests hold: all but the free, the evictable and the one kept for /health_generate. */
static uint32_t used_pages(const struct sched *sched)
{
    uint32_t kept = kv_available(&sched->kv) + 1;

    assert(kept <= sched->kv.page_count);
    return sched->kv.page_count - kept;
}

/* Hundredths of all KV tokens that are in use. */
static uint32_t token_usage(const struct sched *sched)
{
    return (uint32_t)((uint64_t)used_pages(sched) * 100 / sched->kv.page_count);
}

static uint64_t generated_tokens(const struct engine *engine)
{
    return atomic_load_explicit(&engine->stats.generated_tokens_total, memory_order_relaxed);
}

/* Where the throughput of the next line about decoding is counted from. */
static void begin_decode_window(struct engine *engine)
{
    engine->meter.decode_begin_us = clock_now_us();
    engine->meter.decode_begin_tokens = generated_tokens(engine);
}

/* The lines that SGLang's own scripts read. */
static void log_step(struct engine *engine)
{
    struct engine_meter *meter = &engine->meter;
    const struct sched *sched = &engine->sched;
    uint32_t usage = token_usage(sched);

    if (engine->batch.prefill_rows > 0) {
        log_info("Prefill batch. #new-seq: %u, #new-token: %u, #cached-token: %llu, token usage: %u.%02u, "
                 "#running-req: %u, #queue-req: %u",
                 engine->batch.prefill_shares, engine->batch.prefill_rows,
                 (unsigned long long)(sched->cached_tokens - meter->logged_cached_tokens), usage / 100, usage % 100,
                 sched->started_count, sched->queued_count);
        meter->logged_cached_tokens = sched->cached_tokens;
        return;
    }
    if (++meter->decode_steps % engine->parts.decode_log_interval == 0) {
        uint64_t past_us = clock_now_us() - meter->decode_begin_us;
        uint64_t milli = (generated_tokens(engine) - meter->decode_begin_tokens) * 1000000000 / (past_us + 1);
        log_info("Decode batch. #running-req: %u, #token: %u, token usage: %u.%02u, "
                 "gen throughput (token/s): %llu.%02u, #queue-req: %u",
                 sched->started_count, used_pages(sched) * KV_PAGE_TOKENS, usage / 100, usage % 100,
                 (unsigned long long)milli / 1000, (unsigned)(milli % 1000 / 10), sched->queued_count);
        begin_decode_window(engine);
    }
}

/* One step of everybody who can. False: nobody can. */
static bool run_step(struct engine *engine)
{
    struct batch *batch = &engine->batch;
    uint32_t share_count = sched_plan(&engine->sched, rows_now(engine), batch->shares);

    if (share_count == 0) {
        return false;
    }
    batch_fill(batch, &engine->sched, engine->parts.model, share_count);
    assert(batch->step.row_count > 0 && batch->step.logit_row_count <= share_count);
    log_step(engine);
    uint64_t begin_us = clock_now_us();
    model_text_step(engine->parts.model, &batch->step, engine->logits);
    for (uint32_t i = 0; i < share_count; i++) {
        sched_advance(&engine->sched, &batch->shares[i]);
    }
    sched_admit(&engine->sched); /* other choices of a prompt that is whole now, before its answer can end */
    count_step(engine, clock_now_us() - begin_us);
    for (uint32_t i = 0; i < batch->step.logit_row_count; i++) {
        answer_slot(engine, batch->logit_slots[i], engine->logits + (size_t)i * engine->parts.checkpoint->vocab);
    }
    return true;
}

/* ---- pictures ---- */

static bool take_decoded(struct engine *engine)
{
    enum err err;
    const char *reason;

    if (engine->parts.limits->picture_workers == 0 || !picture_take(&engine->picture, &err, &reason)) {
        return false;
    }
    atomic_fetch_add_explicit(&engine->stats.pictures_decoded_total, 1, memory_order_relaxed);
    sched_job_done(&engine->sched, err, reason);
    return true;
}

static bool give_job(struct engine *engine)
{
    if (!sched_next_job(&engine->sched)) {
        return false;
    }
    struct sched_job *job = &engine->sched.job;
    assert(engine->sched.is_decoding && job->picture < job->request->picture_count);
    struct picture_job given = {.picture = &job->request->pictures[job->picture],
                                .pixels = pools_at(POOL_PIXELS, job->pixels),
                                .pixels_bytes = (size_t)pools_element_bytes(POOL_PIXELS),
                                .is_cancelled = &job->is_cancelled};
    picture_give(&engine->picture, &given);
    return true;
}

/* The next picture's pixels go into the tower. False: none is being encoded. */
static bool begin_encode(struct engine *engine)
{
    uint32_t index;
    slab_handle pixels;

    if (sched_encode_is_unwanted(&engine->sched)) {
        model_vision_drop(engine->parts.model);
        sched_drop_encode(&engine->sched);
    }
    if (!sched_next_encode(&engine->sched, &index, &pixels)) {
        return engine->sched.encoding != MM_NONE;
    }
    const struct mm_feature *feature = mm_at(index);
    assert(feature->state == MM_ENCODING && feature->page_count <= engine->parts.limits->picture_pages);
    for (uint32_t i = 0; i < feature->page_count; i++) {
        engine->mm_pages[i] =
            (unsigned char *)pools_base(POOL_MM_PAGE) + feature->pages[i] * pools_stride_bytes(POOL_MM_PAGE);
    }
    model_vision_begin(engine->parts.model, pools_at(POOL_PIXELS, pixels), feature->grid_h, feature->grid_w,
                       engine->mm_pages);
    return true;
}

/* True if something waits that a round would see to. */
static bool has_news(struct engine *engine)
{
    return crowd_ring_has_any(&engine->arrivals) || atomic_load_explicit(&engine->has_cancels, memory_order_relaxed) ||
           atomic_load_explicit(&engine->health, memory_order_relaxed) == HEALTH_WANTED ||
           (engine->sched.is_decoding && picture_is_done(&engine->picture));
}

/* Units of the tower: at least one a round; more as long as the round's budget has room. */
static bool run_vision(struct engine *engine, uint64_t begin_us, bool has_text)
{
    bool has_stream = sched_has_decode(&engine->sched);

    if (!begin_encode(engine)) {
        return false;
    }
    for (;;) {
        uint64_t unit_us = clock_now_us();
        uint32_t kind = model_vision_kind(engine->parts.model);
        bool is_done = model_vision_advance(engine->parts.model);
        uint64_t now_us = clock_now_us();
        pace_count_unit(&engine->pace, kind, now_us - unit_us);
        if (is_done) {
            sched_encoded(&engine->sched);
            atomic_fetch_add_explicit(&engine->stats.pictures_encoded_total, 1, memory_order_relaxed);
            return true;
        }
        kind = model_vision_kind(engine->parts.model);
        if (has_news(engine) || !pace_has_room(&engine->pace, kind, has_stream, has_text, now_us - begin_us)) {
            return true;
        }
    }
}

/* ---- what goes out ---- */

static void give_back(struct engine *engine)
{
    struct sched *sched = &engine->sched;
    struct request *request;

    for (uint32_t i = 0; i < sched->started_count; i++) {
        struct sched_slot *slot = &sched->slots[sched->ages[i]];
        if (!slot->is_body_told && slot->state != SLOT_LEAVING &&
            atomic_load_explicit(&slot->request->is_body_free, memory_order_relaxed)) {
            slot->is_body_told = true;
            engine_notice(engine, slot->request->index);
        }
    }
    while ((request = sched_take_ended(sched)) != NULL) {
        if (request == engine->health_request) {
            atomic_store_explicit(&engine->health, HEALTH_DONE, memory_order_release);
            engine_notice(engine, request->index);
        } else {
            engine_finish(engine, request);
        }
    }
}

static void publish_stats(struct engine *engine)
{
    struct engine_stats *stats = &engine->stats;
    const struct sched *sched = &engine->sched;
    uint64_t now_us = clock_now_us(), past_us = now_us - engine->meter.window_us;
    uint32_t claimed_pages = 0;

    if (past_us >= WINDOW_US) {
        uint64_t milli = engine->meter.window_tokens * 1000000000 / past_us;
        atomic_store_explicit(&stats->tokens_per_second_milli, (uint32_t)milli, memory_order_relaxed);
        engine->meter.window_us = now_us;
        engine->meter.window_tokens = 0;
    }
    for (uint32_t i = 0; i < sched->started_count; i++) {
        claimed_pages += sched->slots[sched->ages[i]].claim_pages;
    }
    atomic_store_explicit(&stats->claimed_kv_pages, claimed_pages, memory_order_relaxed);
    atomic_store_explicit(&stats->running_requests, sched->started_count - sched->paused_count, memory_order_relaxed);
    atomic_store_explicit(&stats->paused_requests, sched->paused_count, memory_order_relaxed);
    atomic_store_explicit(&stats->queued_requests, sched->queued_count, memory_order_relaxed);
    atomic_store_explicit(&stats->used_kv_pages, used_pages(sched), memory_order_relaxed);
    atomic_store_explicit(&stats->evictable_kv_pages, sched->kv.evictable_count, memory_order_relaxed);
    atomic_store_explicit(&stats->free_kv_pages, sched->kv.free_count, memory_order_relaxed);
    atomic_store_explicit(&stats->prompt_tokens_total, sched->prompt_tokens, memory_order_relaxed);
    atomic_store_explicit(&stats->cached_tokens_total, sched->cached_tokens, memory_order_relaxed);
    atomic_store_explicit(&stats->feature_hits_total, sched->mm.hit_count, memory_order_relaxed);
    atomic_store_explicit(&stats->evicted_pages_total, sched->prefix.evicted_count, memory_order_relaxed);
}

int64_t engine_rest_ms(const struct engine *engine)
{
    uint32_t milli = atomic_load_explicit(&engine->stats.tokens_per_second_milli, memory_order_relaxed);
    bool is_stuck = sched_load(&engine->sched) > 0 && !engine->sched.is_decoding;

    if (is_stuck) {
        return IDLE_RETRY_MS;
    }
    /* The throughput of an idle server is 0, and somebody has to say so. */
    return milli > 0 || engine->meter.window_tokens > 0 ? WINDOW_US / 1000 : -1;
}

bool engine_tick(struct engine *engine)
{
    uint64_t begin_us = clock_now_us();

    atomic_store_explicit(&engine->stats.tick_started_us, begin_us, memory_order_relaxed);
    if (sched_load(&engine->sched) == 0) {
        begin_decode_window(engine); /* idle time does not count */
    }
    bool has_any = take_orders(engine);
    has_any = take_decoded(engine) || has_any;
    if (atomic_load_explicit(&engine->is_stopping, memory_order_acquire)) {
        sched_cancel_all(&engine->sched);
    }
    sched_admit(&engine->sched);
    bool has_text = run_step(engine);
    has_any = give_job(engine) || has_any;
    has_any = run_vision(engine, begin_us, has_text) || has_any;
    give_back(engine);
    sched_publish_holdings(&engine->sched);
    publish_stats(engine);
    atomic_store_explicit(&engine->stats.tick_started_us, 0, memory_order_relaxed);
    return has_text || has_any;
}
