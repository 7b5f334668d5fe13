/* plan_measure: the bytes of one element of each pool, asked of the parts that will live there. */
#include "engine/plan_measure.h"

#include "engine/engine_open.h"
#include "engine/http/conn.h"
#include "engine/http/exchange.h"
#include "engine/image/picture_file.h"
#include "engine/intake.h"
#include "engine/kv.h"
#include "engine/mm.h"
#include "engine/prefix.h"
#include "engine/sampling.h"
#include "engine/text/tokenizer.h"

#include <assert.h>

enum { TILE_PATCHES = 512 }; /* of a vision unit: some 10 ms of a small model on a CPU, so that text keeps its pace */

static uint32_t type_bytes(enum model_dtype dtype)
{
    return dtype == MODEL_F32 ? sizeof(float) : sizeof(uint16_t);
}

/* Pixels of the edge of a merged token's square. */
static uint32_t token_edge(const struct checkpoint *checkpoint)
{
    return checkpoint->image.patch * checkpoint->image.merge;
}

struct plan_facts plan_measure_facts(const struct plan_subject *subject, uint32_t cpus)
{
    const struct checkpoint *checkpoint = subject->checkpoint;
    struct plan_facts facts = {.context_max_tokens = checkpoint->context_max, .cpus = cpus};

    assert(cpus > 0);
    if (checkpoint->has_vision) {
        facts.picture_tokens_max = grid_tokens_max(&checkpoint->image);
        facts.token_pixels = token_edge(checkpoint) * token_edge(checkpoint);
        facts.mm_page_bytes = (uint64_t)MM_PAGE_TOKENS * checkpoint->hidden * type_bytes(subject->dtype);
    }
    return facts;
}

struct model_limits plan_measure_model(const struct plan_subject *subject, const struct pool_limits *limits)
{
    uint32_t merge = subject->checkpoint->image.merge;
    uint32_t patches = limits->picture_tokens * merge * merge;

    assert(limits->running_requests > 0);
    assert(merge == 0 || patches / (merge * merge) == limits->picture_tokens);
    return (struct model_limits){
        .dtype = subject->dtype,
        .step_rows_max = limits->step_tokens + 1,       /* /health_generate's row */
        .logit_rows_max = limits->running_requests + 1, /* and its logits */
        .sequences_max = limits->running_requests + 1,
        .patches_max = patches,
        .tile_rows_max = patches < TILE_PATCHES ? patches : TILE_PATCHES,
        .threads = limits->compute_threads,
    };
}

static void measure_model(const struct plan_subject *subject, const struct pool_limits *limits,
                          struct pool_sizes *sizes)
{
    struct model_limits model_limits = plan_measure_model(subject, limits);
    struct model_sizes model;

    model_measure(subject->checkpoint, &model_limits, &model);
    sizes->weights_bytes = model.weights_bytes;
    sizes->kv_page_bytes = model.kv_page_bytes;
    sizes->mm_page_bytes = model.mm_page_bytes;
    sizes->pixels_bytes = model.pixels_bytes;
    sizes->act_text_bytes = model.act_text_bytes;
    sizes->act_vision_bytes = model.act_vision_bytes;
    sizes->logits_bytes = model.logits_bytes;
    sizes->step_tables_bytes = model.step_tables_bytes;
    sizes->op_workspace_bytes = model.op_workspace_bytes;
}

static void measure_pictures(const struct plan_subject *subject, const struct pool_limits *limits,
                             struct pool_sizes *sizes)
{
    const struct image_rules *rules = &subject->checkpoint->image;

    if (limits->picture_tokens == 0) {
        return;
    }
    assert(sizes->mm_page_bytes > 0);
    sizes->image_rgb_bytes = picture_file_rgb_bytes(limits->source_pixels);
    sizes->image_work_bytes = picture_file_work_bytes(limits->source_pixels, rules);
    sizes->feature_bytes = mm_feature_bytes(limits->picture_pages);
}

void plan_measure_pools(const void *subject, const struct pool_limits *limits, struct pool_sizes *sizes)
{
    const struct plan_subject *s = subject;
    const struct checkpoint *checkpoint = s->checkpoint;

    assert(checkpoint != NULL);
    assert(limits->context_tokens > 0);
    *sizes = (struct pool_sizes){
        .request_bytes = exchange_bytes(),
        .kv_meta_bytes = sizeof(struct kv_page),
        .prefix_bytes = sizeof(struct prefix_node),
        .conn_bytes = conn_bytes(),
        .intake_scratch_bytes = intake_scratch_bytes(limits->context_tokens),
        .tokenizer_bytes = tokenizer_bytes(checkpoint->vocab),
        .sample_work_bytes = sampling_work_bytes(checkpoint->vocab),
        .engine_bytes = engine_bytes(limits),
        .queue_bytes = engine_queue_bytes(limits),
    };
    measure_model(s, limits, sizes);
    measure_pictures(s, limits, sizes);
}
