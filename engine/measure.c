/* measure: bytes of one element of each pool. */
#include "engine/measure.h"

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

/* Patches of a vision unit: some tens of milliseconds of a 3B model's tower on two cores. */
enum { TILE_ROWS = 256 };

void measure_model_limits(const struct measure *measure, const struct pool_limits *limits, struct model_limits *model)
{
    uint32_t merge = measure->checkpoint->image.merge;

    assert(limits->compute_threads > 0 && limits->step_tokens > 0);
    *model = (struct model_limits){.dtype = measure->dtype,
                                   .step_rows_max = limits->step_tokens + 1, /* and /health_generate's */
                                   .logit_rows_max = limits->running_requests + 1,
                                   .sequences_max = limits->running_requests + 1,
                                   .patches_max = limits->picture_tokens * merge * merge,
                                   .tile_rows_max = limits->picture_tokens > 0 ? TILE_ROWS : 0,
                                   .threads = limits->compute_threads};
}

void measure_facts(const struct measure *measure, uint32_t cpus, struct plan_facts *facts)
{
    const struct checkpoint *checkpoint = measure->checkpoint;
    const struct model_limits least = {.dtype = measure->dtype,
                                       .step_rows_max = 1,
                                       .logit_rows_max = 1,
                                       .sequences_max = 1,
                                       .threads = 1};
    struct model_sizes sizes;
    uint32_t edge = checkpoint->image.patch * checkpoint->image.merge;

    model_measure(checkpoint, &least, &sizes);
    *facts = (struct plan_facts){.context_max_tokens = checkpoint->context_max,
                                 .picture_tokens_max = checkpoint->has_vision ? grid_tokens_max(&checkpoint->image) : 0,
                                 .token_pixels = edge * edge,
                                 .mm_page_bytes = sizes.mm_page_bytes,
                                 .cpus = cpus};
}

static void measure_model(const struct measure *measure, const struct pool_limits *limits, struct pool_sizes *sizes)
{
    struct model_limits model_limits;
    struct model_sizes model;

    measure_model_limits(measure, limits, &model_limits);
    model_measure(measure->checkpoint, &model_limits, &model);
    sizes->weights_bytes = model.weights_bytes;
    sizes->kv_page_bytes = model.kv_page_bytes;
    sizes->mm_page_bytes = model.mm_page_bytes;
    sizes->pixels_bytes = model.pixels_bytes;
    sizes->act_text_bytes = model.act_text_bytes;
    sizes->act_vision_bytes = model.act_vision_bytes;
    sizes->logits_bytes = model.logits_bytes;
    sizes->op_workspace_bytes = model.op_workspace_bytes;
    sizes->step_tables_bytes = model.step_tables_bytes;
}

void measure_sizes(const void *context, const struct pool_limits *limits, struct pool_sizes *sizes)
{
    const struct measure *measure = context;
    const struct checkpoint *checkpoint = measure->checkpoint;

    *sizes = (struct pool_sizes){.request_bytes = exchange_bytes(),
                                 .kv_meta_bytes = sizeof(struct kv_page),
                                 .prefix_bytes = sizeof(struct prefix_node),
                                 .feature_bytes = mm_feature_bytes(limits->picture_pages),
                                 .conn_bytes = conn_bytes(),
                                 .intake_scratch_bytes = intake_scratch_bytes(limits->context_tokens),
                                 .tokenizer_bytes = tokenizer_bytes(checkpoint->vocab),
                                 .sample_work_bytes = sampling_work_bytes(checkpoint->vocab),
                                 .engine_bytes = engine_bytes(limits),
                                 .queue_bytes = engine_queue_bytes(limits)};
    measure_model(measure, limits, sizes);
    if (limits->picture_workers > 0) {
        sizes->image_rgb_bytes = picture_file_rgb_bytes(limits->source_pixels);
        sizes->image_work_bytes = picture_file_work_bytes(limits->source_pixels, &checkpoint->image);
    }
}
