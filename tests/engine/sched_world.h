/* sched_world: a scheduler with small pools, requests made by hand, and rounds without arithmetic. */
#ifndef TESTS_ENGINE_SCHED_WORLD_H
#define TESTS_ENGINE_SCHED_WORLD_H

#include "engine/sched.h"
#include "tests/engine/engine_pools.h"
#include "tests/harness.h"

#include <string.h>

enum {
    WORLD_RUNNING = 3,
    WORLD_PAGES = 13, /* one is /health_generate's */
    WORLD_CONTEXT = 12 * KV_PAGE_TOKENS,
    WORLD_REQUESTS = 12,
    WORLD_PICTURE_PAGES = 2,
    WORLD_CACHE_PAGES = 2,
    WORLD_PICTURE_ID = 9
};

struct world {
    struct sched sched;
    struct sched_share shares[WORLD_RUNNING + 1];
    uint32_t share_count;
    uint32_t tokens_of[WORLD_REQUESTS + 1]; /* elements of TOKENS, by request index */
    uint64_t numbers;
};

static struct world world;
static void *world_memory;

static inline void world_pools(void)
{
    engine_pools_open(&(struct engine_pools){.kv_pages = WORLD_PAGES,
                                             .running_requests = WORLD_RUNNING,
                                             .requests = WORLD_REQUESTS,
                                             .context_tokens = WORLD_CONTEXT,
                                             .picture_pages = WORLD_PICTURE_PAGES,
                                             .cache_pages = WORLD_CACHE_PAGES});
    world_memory = harness_memory((size_t)sched_bytes(WORLD_RUNNING));
}

static inline void world_open(bool has_prefix_cache)
{
    struct sched_limits limits = {
        .running_requests = WORLD_RUNNING, .picture_pages = WORLD_PICTURE_PAGES, .has_prefix_cache = has_prefix_cache};
    memset(&world, 0, sizeof world);
    sched_open(&world.sched, &limits, world_memory);
}

/* A request whose prompt counts up from `from`. */
static inline struct request *world_request(int32_t from, uint32_t prompt_tokens, uint32_t max_new_tokens)
{
    slab_handle handle = pools_get(POOL_REQUEST), tokens = pools_get(POOL_TOKENS);
    CU_ASSERT_FATAL(slab_is_some(handle) && slab_is_some(tokens));
    struct request *request = pools_at(POOL_REQUEST, handle);
    request_open(request, handle.index, ++world.numbers, 0, 0);
    request->tokens = pools_at(POOL_TOKENS, tokens);
    world.tokens_of[request->index] = tokens.index;
    for (uint32_t i = 0; i < prompt_tokens; i++) {
        request->tokens[i] = from + (int32_t)i;
    }
    request->prompt_tokens = prompt_tokens;
    request->max_new_tokens = max_new_tokens;
    return request;
}

/* Another choice of `first`, which has choice_count set and is not submitted yet. */
static inline struct request *world_choice(const struct request *first, uint32_t choice)
{
    slab_handle handle = pools_get(POOL_REQUEST), tokens = pools_get(POOL_TOKENS);
    CU_ASSERT_FATAL(slab_is_some(handle) && slab_is_some(tokens));
    struct request *request = pools_at(POOL_REQUEST, handle);
    request_open_choice(request, handle.index, ++world.numbers, choice, first, pools_at(POOL_TOKENS, tokens));
    world.tokens_of[request->index] = tokens.index;
    return request;
}

/* Puts a picture over the prompt's tokens from `first` on. */
static inline void world_picture(struct request *request, unsigned char digest, uint32_t first, uint32_t token_count)
{
    struct picture *picture = &request->pictures[request->picture_count++];
    *picture = engine_pools_picture(digest, first, token_count);
    picture->part_index = request->picture_count - 1;
    for (uint32_t i = 0; i < token_count; i++) {
        request->tokens[first + i] = WORLD_PICTURE_ID;
    }
}

/* One round of text: what was planned is computed, every answer token is 1. */
static inline void world_step(uint32_t rows_max)
{
    sched_sweep(&world.sched);
    sched_admit(&world.sched);
    world.share_count = sched_plan(&world.sched, rows_max, world.shares);
    for (uint32_t i = 0; i < world.share_count; i++) {
        struct sched_slot *slot = &world.sched.slots[world.shares[i].slot];
        struct request *request = slot->request;
        sched_advance(&world.sched, &world.shares[i]);
        if (world.shares[i].wants_logits) {
            sched_append(&world.sched, world.shares[i].slot, 1);
            if (slot->known == request->prompt_tokens + request->max_new_tokens) {
                atomic_store(&request->finish, FINISH_LENGTH);
                sched_end(&world.sched, world.shares[i].slot);
            }
        }
    }
    sched_check(&world.sched);
}

static inline enum sched_state world_state(const struct request *request)
{
    return request->engine_slot == UINT32_MAX ? SLOT_FREE
                                              : (enum sched_state)world.sched.slots[request->engine_slot].state;
}

static inline void world_put(struct request *request)
{
    pools_put(POOL_TOKENS, pools_held(POOL_TOKENS, world.tokens_of[request->index]));
    pools_put(POOL_REQUEST, pools_held(POOL_REQUEST, request->index));
}

/* Takes the next request that ended home; false: none did. */
static inline bool world_take_ended(void)
{
    struct request *request = sched_take_ended(&world.sched);
    if (request == NULL) {
        return false;
    }
    world_put(request);
    return true;
}

/* Everything home? Empties the caches first. For harness_run. */
static inline int world_is_home(void)
{
    if (sched_flush(&world.sched) != ERR_OK) {
        return 1;
    }
    (void)kv_release(&world.sched.kv, world.sched.health_page);
    pools_put(POOL_PAGE_LIST, world.sched.slots[WORLD_RUNNING].page_list);
    return (int)engine_pools_held();
}

#endif
