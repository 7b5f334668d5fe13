/* engine_pools: pools of a size that suits tests of the scheduler's parts. */
#ifndef TESTS_ENGINE_ENGINE_POOLS_H
#define TESTS_ENGINE_ENGINE_POOLS_H

#include "engine/kv.h"
#include "engine/mm.h"
#include "engine/prefix.h"
#include "engine/request.h"
#include "pools/pools.h"

#include <stdlib.h>

struct engine_pools {
    uint32_t kv_pages, running_requests, requests, context_tokens, picture_pages, cache_pages;
};

/* Opens them; ends the test program if it cannot. An element of KV_PAGE holds a uint64_t a token. */
static inline void engine_pools_open(const struct engine_pools *wanted)
{
    static struct pool_plan plan;
    const struct pool_sizes sizes = {.kv_page_bytes = KV_PAGE_TOKENS * sizeof(uint64_t),
                                     .mm_page_bytes = 64,
                                     .pixels_bytes = 64,
                                     .request_bytes = sizeof(struct request),
                                     .kv_meta_bytes = sizeof(struct kv_page),
                                     .prefix_bytes = sizeof(struct prefix_node),
                                     .feature_bytes = mm_feature_bytes(wanted->picture_pages)};
    const struct pool_limits limits = {.context_tokens = wanted->context_tokens,
                                       .context_pages = wanted->context_tokens / KV_PAGE_TOKENS,
                                       .running_requests = wanted->running_requests,
                                       .queued_requests = wanted->requests - wanted->running_requests,
                                       .picture_pages = wanted->picture_pages,
                                       .feature_cache_pages = wanted->cache_pages,
                                       .picture_workers = 1,
                                       .has_prefix_cache = true};

    if (!pools_plan(&sizes, &limits, wanted->kv_pages, &plan) || !pools_open(&plan)) {
        exit(2);
    }
}

/* Elements in use, all pools together: 0 when everything came home and no cache is left. */
static inline uint32_t engine_pools_held(void)
{
    uint32_t held = 0;
    for (int i = 0; i < POOL_COUNT; i++) {
        held += pools_used((enum pool)i) + pools_cached((enum pool)i);
    }
    return held;
}

/* A picture that is nothing but its digest, of token_count tokens. */
static inline struct picture engine_pools_picture(unsigned char digest, uint32_t first_token, uint32_t token_count)
{
    struct picture picture = {
        .grid_h = 2, .grid_w = (uint16_t)(2 * token_count), .token_count = token_count, .first_token = first_token};
    picture.digest[0] = digest;
    return picture;
}

#endif
