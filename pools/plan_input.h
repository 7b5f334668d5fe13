/* plan_input: the plain numbers that the rows of pool_table.h are computed from. Filled by engine/, once, at start. */
#ifndef POOLS_PLAN_INPUT_H
#define POOLS_PLAN_INPUT_H

#include <stdbool.h>
#include <stdint.h>

/* What the model and the records measure. Bytes of ONE element of the row of the same name. */
struct pool_sizes {
    uint64_t weights_bytes;        /* all weights as packed for the kernels */
    uint64_t kv_page_bytes;        /* K and V of all layers for KV_PAGE_TOKENS tokens */
    uint64_t mm_page_bytes;        /* features of MM_PAGE_TOKENS picture tokens */
    uint64_t pixels_bytes;         /* one resized picture, RGB bytes */
    uint64_t act_text_bytes;       /* live peak of the text steps for a full step */
    uint64_t act_vision_bytes;     /* live peak of the tower's steps for a largest picture */
    uint64_t logits_bytes;         /* logits of every row that is sampled in one step */
    uint64_t op_workspace_bytes;   /* the largest workspace of any op */
    uint64_t step_tables_bytes;    /* rows, positions, page tables of one step */
    uint64_t request_bytes;        /* struct request with what belongs to it alone */
    uint64_t kv_meta_bytes;        /* holder count and key of one KV page */
    uint64_t prefix_bytes;         /* one node of the prefix cache */
    uint64_t feature_bytes;        /* one entry of the feature cache */
    uint64_t conn_bytes;           /* one connection: parser state and write ring */
    uint64_t intake_scratch_bytes; /* JSON spans, rendered chat, tokenizer work of one intake worker */
    uint64_t tokenizer_bytes;      /* tables of the tokenizer */
    uint64_t image_rgb_bytes;      /* a decoded source picture */
    uint64_t image_work_bytes;     /* decoder's and resizer's own memory */
    uint64_t sample_work_bytes;    /* candidates of one sampler */
    uint64_t engine_bytes;         /* slots, admission, the rows of a step, answers under way */
    uint64_t queue_bytes;          /* all rings between the threads */
};

/* What the flags allow. Counts unless a unit is named. */
struct pool_limits {
    uint32_t context_tokens; /* effective context length: prompt + answer */
    uint32_t context_pages;  /* KV pages of a full context */
    uint32_t running_requests;
    uint32_t queued_requests;
    uint32_t chunk_tokens;        /* prefill rows of one step, at most */
    uint32_t step_tokens;         /* rows of one step: chunk_tokens + running_requests */
    uint32_t picture_tokens;      /* of the largest picture, after resizing; 0: the model sees no pictures */
    uint32_t picture_pages;       /* MM pages of it */
    uint32_t picture_pixels;      /* of it, as resized */
    uint32_t feature_cache_pages; /* evictable MM pages beyond the two pictures' */
    uint32_t images_per_request;
    uint64_t source_pixels; /* largest picture that is accepted, before resizing */
    uint32_t large_bodies;
    uint64_t small_body_bytes;
    uint64_t large_body_bytes;
    uint32_t connections;
    uint32_t compute_threads; /* the engine's own thread included */
    uint32_t intake_workers;
    uint32_t picture_workers; /* 0 without a vision tower */
    uint32_t stacks;          /* threads that we make: all but the first */
    uint32_t kv_pages_cap;    /* what the running requests and the prefix cache can use, at most */
    bool has_prefix_cache;
};

#endif
