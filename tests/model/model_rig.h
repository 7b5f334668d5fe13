/* model_rig: a model over memory of its own, for tests and for tools/parity.c: what engine/ does with pools, done
 * plainly.
 *
 * Memory is mapped, filled with NaN patterns, and ends at an unreadable page; KV pages are handed out in a scrambled
 * order.
 */
#ifndef TESTS_MODEL_MODEL_RIG_H
#define TESTS_MODEL_MODEL_RIG_H

#include "engine/model/checkpoint.h"
#include "engine/model/position.h"
#include "engine/model/run.h"
#include "kernels/op.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>

enum {
    RIG_SEQUENCES_MAX = 4,
    RIG_SEQUENCE_PAGES = 128,
    RIG_ROWS_MAX = 2048,
    RIG_PICTURES_MAX = 8,
    RIG_PICTURE_PAGES = 64, /* 4,096 tokens; a rig maps those that its patches need */
    RIG_PATCHES_MAX = 16384,
};

struct rig_setup {
    const char *folder;
    const char *model_override_json;
    enum model_dtype dtype;
    enum load_format format;
    uint32_t step_rows_max; /* longest chunk; 0: RIG_ROWS_MAX */
    uint32_t tile_rows_max; /* 0: 256 */
    uint32_t patches_max;   /* 0: what the pixel limits admit, up to RIG_PATCHES_MAX */
    struct team *team;      /* NULL: serial */
};

struct rig {
    struct checkpoint checkpoint;
    struct model_limits limits;
    struct model_sizes sizes;
    struct model_memory memory;
    struct model *model;
    uint32_t pages[RIG_SEQUENCES_MAX][RIG_SEQUENCE_PAGES];
    struct sequence_pages sequences[RIG_SEQUENCES_MAX];
    void *mm_pages[RIG_PICTURES_MAX][RIG_PICTURE_PAGES];
    float *logits; /* [logit_rows_max][vocab] */
    struct text_row rows[RIG_ROWS_MAX];
};

/* A prompt whose pictures were encoded before: span i lies in mm_pages[i]. */
struct rig_prompt {
    const int32_t *ids; /* expanded */
    uint32_t count;
    const struct position_span *spans;
    uint32_t span_count;
};

static inline uint64_t rig_whole_pages(uint64_t bytes)
{
    return (bytes + 4095) / 4096 * 4096;
}

static inline void *rig_memory(uint64_t bytes)
{
    uint64_t whole = rig_whole_pages(bytes);
    if (bytes == 0) {
        return NULL;
    }
    unsigned char *base = mmap(NULL, whole + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert((void *)base != MAP_FAILED);
    (void)mprotect(base + whole, 4096, PROT_NONE);
    memset(base + (whole - bytes), 0xFF, bytes);
    return base + (whole - bytes);
}

static inline void rig_unmap(void *memory, uint64_t bytes)
{
    if (memory != NULL) {
        (void)munmap((unsigned char *)memory - (rig_whole_pages(bytes) - bytes), rig_whole_pages(bytes) + 4096);
    }
}

static inline void rig_take_memory(struct rig *rig)
{
    rig->memory = (struct model_memory){
        .weights = rig_memory(rig->sizes.weights_bytes),
        .act_text = rig_memory(rig->sizes.act_text_bytes),
        .act_vision = rig_memory(rig->sizes.act_vision_bytes),
        .step_tables = rig_memory(rig->sizes.step_tables_bytes),
        .op_workspace = rig_memory(rig->sizes.op_workspace_bytes),
        .kv_page_count = RIG_SEQUENCES_MAX * RIG_SEQUENCE_PAGES,
    };
    rig->memory.kv_pages = rig_memory(rig->sizes.kv_page_bytes * rig->memory.kv_page_count);
    rig->logits = rig_memory(rig->sizes.logits_bytes);
    for (uint32_t i = 0; i < RIG_PICTURES_MAX; i++) {
        for (uint32_t p = 0; p * MM_PAGE_TOKENS * 4 < rig->limits.patches_max; p++) {
            rig->mm_pages[i][p] = rig_memory(rig->sizes.mm_page_bytes);
        }
    }
}

/* Patches of the largest picture that the preprocessor's limits admit. */
static inline uint32_t rig_patches_max(const struct checkpoint *checkpoint)
{
    uint64_t patches = checkpoint->has_vision
                           ? grid_pixels_max(&checkpoint->image) / (checkpoint->image.patch * checkpoint->image.patch)
                           : 0;
    return patches < RIG_PATCHES_MAX ? (uint32_t)patches : RIG_PATCHES_MAX;
}

static inline void rig_open(struct rig *rig, const struct rig_setup *setup)
{
    struct checkpoint_source source = {.folder = setup->folder, .model_override_json = setup->model_override_json};
    struct team *team = setup->team != NULL ? setup->team : &team_serial;

    checkpoint_read(&rig->checkpoint, &source);
    rig->limits = (struct model_limits){
        .dtype = setup->dtype,
        .step_rows_max = setup->step_rows_max > 0 ? setup->step_rows_max : RIG_ROWS_MAX,
        .logit_rows_max = RIG_SEQUENCES_MAX,
        .sequences_max = RIG_SEQUENCES_MAX,
        .patches_max = setup->patches_max > 0 ? setup->patches_max : rig_patches_max(&rig->checkpoint),
        .tile_rows_max = setup->tile_rows_max > 0 ? setup->tile_rows_max : 256,
        .threads = team->worker_count,
    };
    model_measure(&rig->checkpoint, &rig->limits, &rig->sizes);
    rig_take_memory(rig);
    for (uint32_t s = 0; s < RIG_SEQUENCES_MAX; s++) {
        for (uint32_t p = 0; p < RIG_SEQUENCE_PAGES; p++) {
            uint32_t number = p * RIG_SEQUENCES_MAX + s; /* neighbours in a sequence are none in memory */
            rig->pages[s][p] = number * 37 % rig->memory.kv_page_count;
        }
        rig->sequences[s] = (struct sequence_pages){rig->pages[s], RIG_SEQUENCE_PAGES};
    }
    rig->model = model_open(&rig->checkpoint, &rig->limits, &rig->memory, team);
    model_load(rig->model, setup->format);
}

static inline void rig_close(struct rig *rig)
{
    rig_unmap(rig->memory.weights, rig->sizes.weights_bytes);
    rig_unmap(rig->memory.act_text, rig->sizes.act_text_bytes);
    rig_unmap(rig->memory.act_vision, rig->sizes.act_vision_bytes);
    rig_unmap(rig->memory.step_tables, rig->sizes.step_tables_bytes);
    rig_unmap(rig->memory.op_workspace, rig->sizes.op_workspace_bytes);
    rig_unmap(rig->memory.kv_pages, rig->sizes.kv_page_bytes * rig->memory.kv_page_count);
    rig_unmap(rig->logits, rig->sizes.logits_bytes);
    for (uint32_t i = 0; i < RIG_PICTURES_MAX; i++) {
        for (uint32_t p = 0; p < RIG_PICTURE_PAGES; p++) {
            rig_unmap(rig->mm_pages[i][p], rig->sizes.mm_page_bytes);
            rig->mm_pages[i][p] = NULL;
        }
    }
}

static inline void rig_encode(struct rig *rig, const uint8_t *rgb, uint32_t grid_h, uint32_t grid_w, uint32_t picture)
{
    model_vision_begin(rig->model, rgb, grid_h, grid_w, rig->mm_pages[picture]);
    while (!model_vision_advance(rig->model)) {
    }
}

/* The feature row that stands for token `index`, or NULL if it is text. */
static inline const void *rig_feature(const struct rig *rig, const struct rig_prompt *prompt, uint32_t index)
{
    for (uint32_t i = 0; i < prompt->span_count; i++) {
        const struct position_span *span = &prompt->spans[i];
        if (index >= span->first && index < span->first + span->height * span->width) {
            return model_feature(rig->model, rig->mm_pages[i], index - span->first);
        }
    }
    return NULL;
}

/* Makes tokens first .. first+count-1 of `ids` (generated ones may follow the prompt's) rows of a step. */
static inline void rig_rows(struct rig *rig, const struct rig_prompt *prompt, uint32_t sequence, uint32_t first,
                            uint32_t count, struct text_row *rows)
{
    int32_t position[1][3];
    for (uint32_t i = 0; i < count; i++) {
        position_fill(prompt->spans, prompt->span_count, first + i, 1, position);
        rows[i] = (struct text_row){
            .token = prompt->ids[first + i],
            .position = {position[0][0], position[0][1], position[0][2]},
            .sequence = sequence,
            .index = first + i,
            .feature = rig_feature(rig, prompt, first + i),
        };
    }
}

/* Runs `count` tokens from `first` on; rig->logits[0] gets the last row's if `wants_logits`. */
static inline void rig_run(struct rig *rig, const struct rig_prompt *prompt, uint32_t sequence, uint32_t first,
                           uint32_t count, bool wants_logits)
{
    uint32_t last = count - 1;
    rig_rows(rig, prompt, sequence, first, count, rig->rows);
    struct text_step step = {
        .rows = rig->rows,
        .row_count = count,
        .sequences = rig->sequences,
        .sequence_count = RIG_SEQUENCES_MAX,
        .logit_rows = &last,
        .logit_row_count = wants_logits ? 1 : 0,
    };
    model_text_step(rig->model, &step, rig->logits);
}

/* Runs the prompt in chunks; the last row's logits are in rig->logits[0]. */
static inline void rig_prefill(struct rig *rig, const struct rig_prompt *prompt, uint32_t sequence, uint32_t chunk)
{
    for (uint32_t first = 0; first < prompt->count; first += chunk) {
        uint32_t left = prompt->count - first, count = left < chunk ? left : chunk;
        rig_run(rig, prompt, sequence, first, count, first + count == prompt->count);
    }
}

static inline int32_t rig_argmax(const float *logits, uint32_t count, float *margin)
{
    uint32_t best = 0;
    float second = -3.4e38F;
    for (uint32_t i = 1; i < count; i++) {
        if (logits[i] > logits[best]) {
            second = logits[best];
            best = i;
        } else if (logits[i] > second) {
            second = logits[i];
        }
    }
    *margin = logits[best] - second;
    return (int32_t)best;
}

#endif
