/* booted: a whole engine on a model, in a child process with flags of its own, answers bodies; for tests. */
#ifndef TESTS_ENGINE_BOOTED_H
#define TESTS_ENGINE_BOOTED_H

#include "engine/boot.h"
#include "engine/clock.h"
#include "engine/engine_inside.h"
#include "engine/log.h"
#include "pools/pools.h"
#include "tests/harness.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BOOTED_ASKS_MAX = 64, BOOTED_TOKENS_MAX = 512, BOOTED_FLAGS_MAX = 40 };

/* One request, and what became of it. */
struct booted_ask {
    const char *body;
    uint64_t cancel_after_us; /* 0: never */
    bool is_done;
    enum err err;
    uint32_t finish, prompt_tokens, cached_tokens, answer_tokens;
    char detail[ERROR_DETAIL_BYTES_MAX];
    int32_t tokens[BOOTED_TOKENS_MAX];
    uint64_t logits_hash; /* over all bits of all rows */
};

/* Lies in memory that parent and child share. */
struct booted_run {
    uint32_t ask_count;
    uint32_t at_once; /* asks that are under way together */
    struct booted_ask asks[BOOTED_ASKS_MAX];
    uint64_t decoded, encoded, feature_hits, evicted;
    int64_t excess; /* elements not given back, all pools together */
    uint32_t high_water[POOL_COUNT];
    bool has_ended;
};

static struct boot booted;
static struct booted_run *booted_now;
static uint32_t booted_ask_of[1024];        /* by request index */
static uint32_t booted_poison = UINT32_MAX; /* the ask whose third token gets a logit that is not a number */

static inline struct booted_run *booted_open(void)
{
    struct booted_run *run = mmap(NULL, sizeof *run, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (run == MAP_FAILED) {
        _exit(2);
    }
    return run;
}

static inline void booted_watch(void *ctx, const struct request *request, uint32_t index, const float *logits)
{
    struct booted_ask *ask = &booted_now->asks[booted_ask_of[request->index]];
    uint64_t hash = ask->logits_hash * 31 + index;
    (void)ctx;
    if (booted_ask_of[request->index] == booted_poison && index == request->prompt_tokens + 2) {
        ((float *)(uintptr_t)logits)[17] = (float)NAN;
    }
    for (uint32_t i = 0; i < booted.checkpoint.vocab; i++) {
        uint32_t bits;
        memcpy(&bits, &logits[i], sizeof bits);
        hash = (hash ^ bits) * 0x100000001b3u;
    }
    ask->logits_hash = hash;
}

/* NULL: a pool is empty for now. */
static inline struct request *booted_submit(uint32_t ask_index)
{
    const char *body = booted_now->asks[ask_index].body;
    bool is_small = strlen(body) <= pools_element_bytes(POOL_BODY_SMALL);
    enum pool body_pool = is_small ? POOL_BODY_SMALL : POOL_BODY_LARGE;
    slab_handle request_handle = pools_get(POOL_REQUEST), tokens = pools_get(POOL_TOKENS), slot = pools_get(body_pool);
    if (!slab_is_some(request_handle) || !slab_is_some(tokens) || !slab_is_some(slot)) {
        if (slab_is_some(request_handle)) {
            pools_put(POOL_REQUEST, request_handle);
        }
        if (slab_is_some(tokens)) {
            pools_put(POOL_TOKENS, tokens);
        }
        if (slab_is_some(slot)) {
            pools_put(body_pool, slot);
        }
        return NULL;
    }
    struct request *request = pools_at(POOL_REQUEST, request_handle);
    request_open(request, request_handle.index, ask_index + 1, clock_now_us(), 0);
    request->tokens = pools_at(POOL_TOKENS, tokens);
    request->body = pools_at(body_pool, slot);
    request->body_bytes = strlen(body);
    memcpy(request->body, body, request->body_bytes);
    booted_ask_of[request->index] = ask_index;
    engine_submit(booted.engine, request);
    return request;
}

static inline uint32_t booted_element(enum pool pool, const void *element)
{
    const unsigned char *base = pools_base(pool);
    return (uint32_t)((uint64_t)((const unsigned char *)element - base) / pools_stride_bytes(pool));
}

static inline bool booted_is_in(enum pool pool, const void *element)
{
    const unsigned char *base = pools_base(pool), *at = element;
    return base != NULL && at >= base && at < base + pools_capacity(pool) * pools_stride_bytes(pool);
}

static inline void booted_collect(struct request *request)
{
    struct booted_ask *ask = &booted_now->asks[booted_ask_of[request->index]];
    enum pool body_pool = booted_is_in(POOL_BODY_SMALL, request->body) ? POOL_BODY_SMALL : POOL_BODY_LARGE;
    ask->err = request->err;
    ask->finish = atomic_load(&request->finish);
    ask->prompt_tokens = request->prompt_tokens;
    ask->cached_tokens = request->cached_tokens;
    ask->answer_tokens = atomic_load(&request->answer_tokens);
    memcpy(ask->detail, request->err_detail, sizeof ask->detail);
    for (uint32_t i = 0; i < ask->answer_tokens && i < BOOTED_TOKENS_MAX; i++) {
        ask->tokens[i] = request->tokens[request->prompt_tokens + i];
    }
    ask->is_done = true;
    if (request->choice == 0) {
        pools_put(body_pool, pools_held(body_pool, booted_element(body_pool, request->body)));
    }
    pools_put(POOL_TOKENS, pools_held(POOL_TOKENS, booted_element(POOL_TOKENS, request->tokens)));
    pools_put(POOL_REQUEST, pools_held(POOL_REQUEST, request->index));
}

/* Where a choice of the one ask for several is noted; its own place for choice 0. */
static inline struct booted_ask *booted_choice(struct booted_run *run, uint32_t choice)
{
    return &run->asks[choice == 0 ? 0 : BOOTED_ASKS_MAX - choice];
}

/* Makes the other choices of a parsed request and hands all to the engine. */
static inline void booted_spread(struct request *first, struct request **live, uint32_t *live_count)
{
    uint32_t begin = *live_count;
    for (uint32_t i = 1; i < first->choice_count; i++) {
        slab_handle handle = pools_get(POOL_REQUEST), tokens = pools_get(POOL_TOKENS);
        struct request *request = pools_at(POOL_REQUEST, handle);
        request_open_choice(request, handle.index, BOOTED_ASKS_MAX + i, i, first, pools_at(POOL_TOKENS, tokens));
        booted_ask_of[handle.index] = BOOTED_ASKS_MAX - i;
        live[(*live_count)++] = request;
    }
    engine_submit_choice(booted.engine, first);
    for (uint32_t i = begin; i < *live_count; i++) {
        engine_submit_choice(booted.engine, live[i]);
    }
}

static inline void booted_cancel_late(struct request **live, uint32_t live_count)
{
    for (uint32_t i = 0; i < live_count; i++) {
        uint64_t after_us = booted_now->asks[booted_ask_of[live[i]->index]].cancel_after_us;
        if (after_us > 0 && clock_now_us() - live[i]->arrived_us > after_us && !atomic_load(&live[i]->is_cancelled)) {
            atomic_store(&live[i]->is_cancelled, true);
            engine_cancel(booted.engine, live[i]);
        }
    }
}

/* Keeps `at_once` asks under way until all are done. */
static inline void booted_ask_all(void)
{
    struct request *live[BOOTED_ASKS_MAX];
    uint32_t live_count = 0, next = 0, index;
    struct pollfd watch = {.fd = engine_notice_fd(booted.engine), .events = POLLIN};
    while (next < booted_now->ask_count || live_count > 0) {
        while (next < booted_now->ask_count && live_count < booted_now->at_once) {
            struct request *request = booted_submit(next);
            if (request == NULL) {
                break;
            }
            live[live_count++] = request;
            next++;
        }
        (void)poll(&watch, 1, 2);
        engine_notice_clear(booted.engine);
        while (engine_notice_take(booted.engine, &index)) {
        }
        booted_cancel_late(live, live_count);
        for (uint32_t i = 0, count = live_count; i < count; i++) {
            if (atomic_load_explicit(&live[i]->stage, memory_order_acquire) == REQUEST_CHOICES) {
                booted_spread(live[i], live, &live_count);
            }
        }
        for (uint32_t i = 0; i < live_count;) {
            if (atomic_load_explicit(&live[i]->stage, memory_order_acquire) == REQUEST_DONE) {
                booted_collect(live[i]);
                live[i] = live[--live_count];
            } else {
                i++;
            }
        }
    }
}

static inline void booted_child(struct booted_run *run, char **flags, int flag_count, char **environment,
                                const char *refusal)
{
    static struct options options;
    struct options_error error;
    booted_now = run;
    log_set_level(LOG_ERROR);
    if (!options_parse(&options, flag_count, flags, environment, &error)) {
        (void)fprintf(stderr, "booted: %s\n", error.text);
        _exit(2);
    }
    if (refusal != NULL && !pools_refuse_text(refusal)) {
        _exit(2);
    }
    boot_plan(&booted, &options);
    boot_carve(&booted);
    boot_load(&booted);
    booted.engine->parts.watch_logits = booted_watch;
    (void)boot_seal(&booted);
    booted_ask_all();
    const struct engine_stats *stats = engine_stats(booted.engine);
    run->decoded = atomic_load(&stats->pictures_decoded_total);
    run->encoded = atomic_load(&stats->pictures_encoded_total);
    run->feature_hits = atomic_load(&stats->feature_hits_total);
    run->evicted = atomic_load(&stats->evicted_pages_total);
    for (int i = 0; i < POOL_COUNT; i++) {
        run->excess += pools_excess((enum pool)i);
        run->high_water[i] = pools_high_water((enum pool)i);
    }
    seal_end();
    boot_stop(&booted);
    run->has_ended = true;
}

/* Answers run->asks in a child that was started with `flags` (one string, blanks between; NAME=value goes to its
 * environment). True if it came to its end. */
static inline bool booted_answer(struct booted_run *run, const char *flags, const char *refusal)
{
    static char line[2048];
    char *words[BOOTED_FLAGS_MAX] = {"ashlar", "serve"}, *environment[BOOTED_FLAGS_MAX + 1] = {NULL};
    int count = 2, environment_count = 0, status = 0;
    (void)snprintf(line, sizeof line, "%s", flags);
    for (char *word = strtok(line, " "); word != NULL && count < BOOTED_FLAGS_MAX; word = strtok(NULL, " ")) {
        if (word[0] != '-' && strchr(word, '=') != NULL) {
            environment[environment_count++] = word;
        } else {
            words[count++] = word;
        }
    }
    run->has_ended = false;
    run->excess = 0;
    for (uint32_t i = 0; i < run->ask_count; i++) {
        run->asks[i] = (struct booted_ask){.body = run->asks[i].body, .cancel_after_us = run->asks[i].cancel_after_us};
    }
    pid_t child = fork();
    if (child == 0) {
        booted_child(run, words, count, environment, refusal);
        _exit(0);
    }
    (void)waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 && run->has_ended;
}

#endif
