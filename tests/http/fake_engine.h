/* fake_engine: implements engine/engine.h for tests of http/: a thread that parses bodies with the real parser and then
 * answers with the text of the last message, one token a turn. What the text begins with may ask for something else:
 *   "fail "   refused by the engine after three tokens      "hang "   no token until the client leaves
 *   "deny "   refused as over the context                    "slow "   ten milliseconds a token
 *   "until "  stops by a stop string                          "forever " repeats the text until max_tokens
 * Choice i of n leaves the first i tokens of the text out; "fail " and "hang " are then for the last choice only.
 * Included once a test program.
 */
#ifndef TESTS_HTTP_FAKE_ENGINE_H
#define TESTS_HTTP_FAKE_ENGINE_H

#include "engine/clock.h"
#include "engine/engine.h"
#include "engine/http/chat_request.h"
#include "engine/http/exchange.h"
#include "engine/http/conn.h"
#include "pools/pools.h"
#include "tests/text/open_tokenizer.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { FAKE_VOCAB = 1088, FAKE_REQUESTS = 6, FAKE_CONTEXT = 2048, FAKE_NOTICES = 4096, FAKE_TEXT = 8192 };

struct fake_job {
    struct request *request; /* NULL: free */
    bool is_parsed, is_slow, hangs, fails, repeats, has_stop;
    bool is_away; /* conn makes its choices */
    int32_t ids[FAKE_CONTEXT];
    uint32_t id_count;
    uint64_t next_us;
    struct detok detok;
};

struct engine {
    pthread_mutex_t lock;
    pthread_t thread;
    _Atomic bool is_stopping, is_health_done, is_busy_for_flush;
    int notice_fd;
    uint32_t notices[FAKE_NOTICES];
    uint32_t notice_begin, notice_end;
    struct fake_job jobs[FAKE_REQUESTS];
    struct engine_stats stats;
    struct chat_parse *parse;
    struct chat_rules rules;
    struct text_room room;
    _Atomic uint32_t submitted_count, cancelled_count;
};

static struct engine fake;

/* For what comes outside a case, where CUnit cannot count. */
static inline void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void fake_notify(const struct request *request)
{
    uint64_t one = 1;
    fake.notices[fake.notice_end++ % FAKE_NOTICES] = request->index;
    (void)!write(fake.notice_fd, &one, sizeof one);
}

void engine_submit(struct engine *engine, struct request *request)
{
    (void)pthread_mutex_lock(&engine->lock);
    uint32_t i = 0;
    while (engine->jobs[i].request != NULL) {
        i++;
    }
    memset(&engine->jobs[i], 0, sizeof engine->jobs[i]);
    engine->jobs[i].request = request;
    engine->submitted_count++;
    atomic_store(&request->stage, REQUEST_INTAKE);
    (void)pthread_mutex_unlock(&engine->lock);
}

/* Its place, or a free one for NULL. */
static struct fake_job *fake_job_of(struct engine *engine, const struct request *request)
{
    uint32_t i = 0;
    while (engine->jobs[i].request != request) {
        i++;
        require(i < FAKE_REQUESTS);
    }
    return &engine->jobs[i];
}

static void fake_end(struct fake_job *job, enum finish_reason finish);

void engine_submit_choice(struct engine *engine, struct request *request)
{
    (void)pthread_mutex_lock(&engine->lock);
    if (atomic_load(&request->stage) == REQUEST_READING) {
        struct fake_job *job = fake_job_of(engine, NULL);
        *job = *fake_job_of(engine, &exchange_at(request->index)->first_choice->request);
        job->request = request;
        for (uint32_t k = 0; k < request->choice && job->id_count > 1; k++) {
            memmove(job->ids, job->ids + 1, --job->id_count * sizeof job->ids[0]);
        }
    }
    atomic_store(&request->stage, REQUEST_ENGINE);
    if (request->err != ERR_OK) {
        fake_end(fake_job_of(engine, request), FINISH_NONE);
    }
    for (int i = 0; i < FAKE_REQUESTS && request->choice + 1 == request->choice_count; i++) {
        struct fake_job *job = &engine->jobs[i]; /* they begin together */
        if (job->request != NULL && job->request->group == request->group) {
            bool is_last = job->request == request;
            job->is_away = false;
            job->hangs = job->hangs && is_last;
            job->fails = job->fails && is_last;
        }
    }
    (void)pthread_mutex_unlock(&engine->lock);
}

void engine_cancel(struct engine *engine, struct request *request)
{
    require(atomic_load(&request->is_cancelled));
    engine->cancelled_count++;
}

int engine_notice_fd(const struct engine *engine)
{
    return engine->notice_fd;
}

bool engine_notice_take(struct engine *engine, uint32_t *request_index)
{
    (void)pthread_mutex_lock(&engine->lock);
    bool has_one = engine->notice_begin != engine->notice_end;
    if (has_one) {
        *request_index = engine->notices[engine->notice_begin++ % FAKE_NOTICES];
    }
    (void)pthread_mutex_unlock(&engine->lock);
    return has_one;
}

void engine_notice_clear(struct engine *engine)
{
    uint64_t count;
    (void)!read(engine->notice_fd, &count, sizeof count);
}

const struct engine_stats *engine_stats(const struct engine *engine)
{
    return &engine->stats;
}

enum err engine_flush_caches(struct engine *engine)
{
    return engine->is_busy_for_flush ? ERR_BUSY : ERR_OK;
}

void engine_health_start(struct engine *engine)
{
    engine->is_health_done = true;
}

bool engine_health_done(const struct engine *engine)
{
    return engine->is_health_done;
}

static void fake_end(struct fake_job *job, enum finish_reason finish)
{
    struct request *r = job->request;
    job->request = NULL;
    atomic_store(&r->finished_us, clock_now_us());
    if (finish != FINISH_NONE) {
        atomic_store(&r->finish, finish);
    }
    fake_notify(r);
    atomic_store_explicit(&r->stage, REQUEST_DONE, memory_order_release);
    fake_notify(r);
}

static bool fake_asks(const char **text, size_t *bytes, const char *word)
{
    size_t length = strlen(word);
    bool asks = *bytes >= length && memcmp(*text, word, length) == 0;
    *text += asks ? length : 0;
    *bytes -= asks ? length : 0;
    return asks;
}

static void fake_begin(struct fake_job *job)
{
    struct request *r = job->request;
    const struct chat_parse *p = fake.parse;
    size_t count = 0;

    job->is_parsed = true;
    r->err = chat_request_parse(fake.parse, r, &fake.rules);
    if (r->err != ERR_OK) {
        fake_end(job, FINISH_NONE);
        return;
    }
    const struct chat_message *last = &p->messages[p->chat.message_count - 1];
    const struct chat_part *part = last->part_count > 0 ? &last->parts[last->part_count - 1] : NULL;
    const char *text = part != NULL && part->kind == CHAT_TEXT ? part->text.bytes : "picture";
    size_t bytes = part != NULL && part->kind == CHAT_TEXT ? part->text.length : 7;
    job->fails = fake_asks(&text, &bytes, "fail ");
    job->hangs = fake_asks(&text, &bytes, "hang ");
    job->is_slow = fake_asks(&text, &bytes, "slow ");
    job->has_stop = fake_asks(&text, &bytes, "until ");
    job->repeats = fake_asks(&text, &bytes, "forever ");
    if (fake_asks(&text, &bytes, "deny ")) {
        (void)request_refuse(r, ERR_CONTEXT_EXCEEDED, "messages", "%d tokens, the context is %d", 9999, FAKE_CONTEXT);
        fake_end(job, FINISH_NONE);
        return;
    }
    enum err err = tokenizer_encode(&fake.room.tokenizer, text, bytes, NULL, 0, job->ids, FAKE_CONTEXT / 2,
                                    fake.room.scratch, fake.room.scratch_bytes, &count);
    require(err == ERR_OK);
    job->id_count = (uint32_t)count;
    r->prompt_tokens = 3;
    r->cached_tokens = 2;
    for (uint32_t i = 0; i < r->picture_count; i++) {
        r->image_tokens += r->pictures[i].token_count;
    }
    r->max_new_tokens = p->limit_tokens > 0 ? p->limit_tokens : FAKE_CONTEXT / 2;
    r->matched_stop_id = r->matched_stop_string = -1;
    detok_open(&job->detok, r->skip_special_tokens);
    atomic_store(&r->is_body_free, true);
    job->is_away = r->choice_count > 1;
    atomic_store(&r->stage, job->is_away ? REQUEST_CHOICES : REQUEST_ENGINE);
    fake_notify(r);
}

static void fake_release(struct fake_job *job, bool is_final)
{
    char text[FAKE_TEXT];
    struct request *r = job->request;
    uint32_t tokens = atomic_load(&r->answer_tokens);

    while (detok_read(&job->detok, &fake.room.tokenizer, r->tokens + r->prompt_tokens, tokens, is_final, UINT64_MAX,
                      text, sizeof text) > 0) {
    }
    atomic_store_explicit(&r->answer_bytes, job->detok.text_bytes, memory_order_release);
}

static void fake_step(struct fake_job *job)
{
    struct request *r = job->request;
    uint32_t tokens = atomic_load(&r->answer_tokens);

    if (job->is_away) {
        return;
    }
    if (atomic_load(&r->is_cancelled)) {
        r->err = ERR_CLIENT_GONE;
        fake_end(job, FINISH_ABORT);
        return;
    }
    if (!job->is_parsed) {
        fake_begin(job);
        return;
    }
    if (job->hangs || clock_now_us() < job->next_us) {
        return;
    }
    job->next_us = clock_now_us() + (job->is_slow ? 10000 : 0);
    if (job->fails && tokens == 3) {
        (void)request_refuse(r, ERR_INTERNAL, "", "at token %u", tokens);
        fake_end(job, FINISH_NONE);
        return;
    }
    uint32_t limit = job->repeats || r->max_new_tokens < job->id_count ? r->max_new_tokens : job->id_count;
    if (tokens < limit) {
        r->tokens[r->prompt_tokens + tokens] = job->ids[tokens % job->id_count];
        if (tokens == 0) {
            atomic_store(&r->first_token_us, clock_now_us());
        }
        atomic_store_explicit(&r->answer_tokens, tokens + 1, memory_order_release);
        fake_release(job, false);
        fake_notify(r);
        return;
    }
    fake_release(job, true);
    bool is_length = limit == r->max_new_tokens;
    r->matched_stop_string = job->has_stop && r->stop_string_count > 0 ? 0 : -1;
    r->matched_stop_id = is_length || job->has_stop ? -1 : 7;
    fake_end(job, is_length ? FINISH_LENGTH : FINISH_STOP);
}

static inline void *fake_run(void *unused)
{
    (void)unused;
    while (!fake.is_stopping) {
        bool is_idle = true;
        (void)pthread_mutex_lock(&fake.lock);
        for (int i = 0; i < FAKE_REQUESTS; i++) {
            if (fake.jobs[i].request != NULL) {
                fake_step(&fake.jobs[i]);
                is_idle = false;
            }
        }
        (void)pthread_mutex_unlock(&fake.lock);
        (void)usleep(is_idle ? 1000 : 100);
    }
    return NULL;
}

/* Opens pools of a few elements, as http/ needs them. */
static inline void fake_open_pools(uint32_t connections)
{
    static struct pool_plan plan;
    const struct pool_sizes sizes = {
        .weights_bytes = 64,
        .kv_page_bytes = 64,
        .mm_page_bytes = 64,
        .pixels_bytes = 64,
        .act_text_bytes = 64,
        .logits_bytes = 64,
        .op_workspace_bytes = 64,
        .step_tables_bytes = 64,
        .request_bytes = exchange_bytes(),
        .kv_meta_bytes = 16,
        .prefix_bytes = 16,
        .feature_bytes = 16,
        .conn_bytes = conn_bytes(),
        .intake_scratch_bytes = chat_parse_bytes(),
        .tokenizer_bytes = 64,
        .image_rgb_bytes = 64,
        .image_work_bytes = 64,
        .sample_work_bytes = 64,
        .queue_bytes = 64,
    };
    const struct pool_limits limits = {
        .context_tokens = FAKE_CONTEXT,
        .context_pages = 4,
        .running_requests = 2,
        .queued_requests = 3,
        .chunk_tokens = 16,
        .step_tokens = 18,
        .picture_tokens = 16,
        .picture_pages = 1,
        .picture_pixels = 784,
        .feature_cache_pages = 2,
        .images_per_request = 4,
        .source_pixels = 1000000,
        .large_bodies = 2,
        .small_body_bytes = BODY_SMALL_BYTES,
        .large_body_bytes = 1024 * 1024,
        .connections = connections,
        .compute_threads = 1,
        .intake_workers = 1,
        .picture_workers = 1,
        .stacks = 2,
        .kv_pages_cap = 20,
        .has_prefix_cache = true,
    };
    bool is_planned = pools_plan(&sizes, &limits, 10, &plan);
    bool is_open = is_planned && pools_open(&plan);
    require(is_open);
}

/* After fake_open_pools. */
static inline void fake_start(void)
{
    (void)pthread_mutex_init(&fake.lock, NULL);
    fake.notice_fd = eventfd(0, EFD_NONBLOCK);
    fake.parse = harness_memory(chat_parse_bytes());
    fake.rules = (struct chat_rules){
        .vocab_size = FAKE_VOCAB,
        .defaults = {.temperature = 1, .top_p = 1, .top_k = -1, .repetition_penalty = 1},
        .has_pictures = true,
        .has_tools = true,
        .image = {.patch = 14, .merge = 2, .min_pixels = 3136, .max_pixels = 1003520, .std = {1, 1, 1}},
        .max_source_pixels = 1000000,
        .images_max = 4,
        .choices_max = 4,
    };
    bool is_open = open_folder(&fake.room, FAKE_VOCAB, "tests/data/fixtures/tokenizer-small", false, NULL);
    require(is_open);
    (void)pthread_create(&fake.thread, NULL, fake_run, NULL);
}

static inline void fake_stop(void)
{
    fake.is_stopping = true;
    (void)pthread_join(fake.thread, NULL);
}

#endif
