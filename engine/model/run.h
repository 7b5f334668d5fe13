/* run: a loaded model. It walks the architecture's step tables over memory that the plan set aside.
 *
 * Always true between calls: a model holds no state of a request but the picture that it is encoding; the same rows
 * give the same bits in any step, beside any other rows, with any number of threads.
 */
#ifndef MODEL_RUN_H
#define MODEL_RUN_H

#include "engine/model/checkpoint.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct model;
struct team; /* kernels/team.h */

/* Type of activations, KV pages and features. The residual stream, norms and logits are float32 in both. */
enum model_dtype { MODEL_BF16, MODEL_F32 };

enum load_format { LOAD_AUTO, LOAD_DUMMY };

/* What a step may bring at most. All from the flags. */
struct model_limits {
    enum model_dtype dtype;
    uint32_t step_rows_max;  /* decode rows + chunk rows */
    uint32_t logit_rows_max; /* rows of a step whose logits are asked for */
    uint32_t sequences_max;  /* sequences of a step */
    uint32_t patches_max;    /* of the largest picture; 0: no vision */
    uint32_t tile_rows_max;  /* patches of a vision unit; rounded up to whole merged tokens */
    uint32_t threads;        /* of the team */
};

/* Bytes of each piece of memory, under the names of pools/plan_input.h; every one is a multiple of 64. */
struct model_sizes {
    uint64_t weights_bytes;      /* packed */
    uint64_t kv_page_bytes;      /* K and V of all layers, KV_PAGE_TOKENS tokens */
    uint64_t mm_page_bytes;      /* MM_PAGE_TOKENS feature rows */
    uint64_t pixels_bytes;       /* uint8 RGB of the largest resized picture; 0 without vision */
    uint64_t act_text_bytes;     /* of a text step */
    uint64_t act_vision_bytes;   /* of the picture being encoded: it keeps its place across text steps */
    uint64_t logits_bytes;       /* [logit_rows_max][vocab] float32 */
    uint64_t step_tables_bytes;  /* bound weights, window order, row descriptors */
    uint64_t op_workspace_bytes; /* the largest of any op */
};

/* Memory of those sizes, 64-byte aligned. */
struct model_memory {
    void *weights, *act_text, *act_vision, *step_tables, *op_workspace;
    void *kv_pages; /* page n lies at kv_pages + n * kv_page_bytes */
    uint32_t kv_page_count;
};

struct text_row {
    int32_t token;
    int32_t position[3]; /* t, h, w */
    uint32_t sequence;   /* index into text_step.sequences */
    uint32_t index;      /* place of the row in its sequence: its K and V go there; it sees keys 0..index */
    const void *feature; /* a feature row that replaces the embedding, or NULL */
};

struct sequence_pages {
    const uint32_t *pages; /* page numbers in order */
    uint32_t page_count;
};

/* Rows of one sequence are neighbours, in ascending index. */
struct text_step {
    const struct text_row *rows;
    uint32_t row_count;
    const struct sequence_pages *sequences;
    uint32_t sequence_count;
    const uint32_t *logit_rows; /* indices into rows, ascending */
    uint32_t logit_row_count;
};

/* Bytes that a model with these limits needs. Refuses to start (code 4) what the ops cannot run. */
void model_measure(const struct checkpoint *checkpoint, const struct model_limits *limits, struct model_sizes *sizes);

/* The one model of the process (its fixed-size part is static; all else lies in `memory`). `checkpoint`, `memory`'s
 * blocks and `team` outlive it. */
struct model *model_open(const struct checkpoint *checkpoint, const struct model_limits *limits,
                         const struct model_memory *memory, struct team *team);

/* Fills the weights: reads, checks and packs every tensor of the folder, or makes small ones up. Refuses to start
 * (code 4), naming file, tensor and axis. */
void model_load(struct model *model, enum load_format format);

/* One forward pass. `logits` gets [logit_row_count][vocab]. */
void model_text_step(struct model *model, const struct text_step *step, float *logits);

/* Starts a picture: `rgb` is [grid_h * patch][grid_w * patch][3]; `mm_pages` are the pages that its
 * grid_h * grid_w / merge^2 feature rows go to, MM_PAGE_TOKENS a page, raster order. Pointers stay valid until the end.
 */
void model_vision_begin(struct model *model, const uint8_t *rgb, uint32_t grid_h, uint32_t grid_w,
                        void *const *mm_pages);

/* One unit of work (block, tile of rows). True: the features lie in the pages. */
bool model_vision_advance(struct model *model);

/* What the next unit of the picture is, below VISION_KINDS: units of a kind take about as long. */
enum { VISION_KINDS = 5 };
uint32_t model_vision_kind(const struct model *model);

/* Drops the picture that is being encoded, if there is one. */
void model_vision_drop(struct model *model);

/* Units that the whole picture takes: for the scheduler's estimate. */
uint32_t model_vision_units(const struct model *model, uint32_t grid_h, uint32_t grid_w);

/* Bytes of a feature row, and the row of picture token `index` in its pages. */
size_t model_feature_bytes(const struct model *model);
const void *model_feature(const struct model *model, void *const *mm_pages, uint32_t index);

/* For tests: called after every row of a step table with the buffer that it wrote (enum buffer), the layer or block,
 * and the buffer's first byte (of the tile, for the tower). NULL: none. */
typedef void model_probe(void *ctx, int buffer, uint32_t layer, const void *data, uint32_t row_count);
void model_set_probe(struct model *model, model_probe *probe, void *ctx);

#endif
