/* small_plan: a small plan with room in every pool, for tests of what lives in pools. */
#ifndef TESTS_SMALL_PLAN_H
#define TESTS_SMALL_PLAN_H

#include "config.h"
#include "pools/pools.h"

static const struct pool_sizes small_plan_sizes = {
    .weights_bytes = 100000,
    .kv_page_bytes = 9216,
    .mm_page_bytes = 3200,
    .pixels_bytes = 30000,
    .act_text_bytes = 100000,
    .act_vision_bytes = 50000,
    .logits_bytes = 655,
    .op_workspace_bytes = 1000,
    .step_tables_bytes = 5000,
    .request_bytes = 1234,
    .kv_meta_bytes = 16,
    .prefix_bytes = 56,
    .feature_bytes = 96,
    .conn_bytes = 4000,
    .intake_scratch_bytes = 5000,
    .tokenizer_bytes = 70000,
    .image_rgb_bytes = 9000,
    .image_work_bytes = 80000,
    .sample_work_bytes = 10000,
    .engine_bytes = 4096,
    .queue_bytes = 4096,
};

static const struct pool_limits small_plan_limits = {
    .context_tokens = 64,
    .context_pages = 4,
    .running_requests = 2,
    .queued_requests = 3,
    .chunk_tokens = 32,
    .step_tokens = 34,
    .picture_tokens = 256,
    .picture_pages = 4,
    .picture_pixels = 200704,
    .feature_cache_pages = 10,
    .images_per_request = 4,
    .source_pixels = 1000000,
    .large_bodies = 2,
    .small_body_bytes = BODY_SMALL_BYTES,
    .large_body_bytes = 104857,
    .connections = 8,
    .compute_threads = 2,
    .intake_workers = 2,
    .picture_workers = 1,
    .stacks = 8,
    .kv_pages_cap = 20,
    .has_prefix_cache = true,
};

/* Plans and opens all pools with those numbers. */
static inline bool small_plan_open(void)
{
    static struct pool_plan plan;

    return pools_plan(&small_plan_sizes, &small_plan_limits, small_plan_limits.kv_pages_cap, &plan) &&
           pools_open(&plan);
}

#endif
