/* run_state: what run.c and tower.c share: the loaded model. Private to engine/model. */
#ifndef MODEL_RUN_STATE_H
#define MODEL_RUN_STATE_H

#include "config.h"
#include "engine/model/run.h"
#include "engine/model/step_args.h"

enum vision_phase { VISION_IDLE, VISION_PATCH, VISION_KEYS, VISION_REST, VISION_MERGE };

/* The picture that is being encoded, and the unit that comes next. */
struct vision_work {
    enum vision_phase phase;
    uint32_t block, tile, tile_count;
    uint32_t patch_count;
    uint32_t window_count;
    uint32_t *order;             /* [groups] merged tokens in the tower's order */
    uint32_t *bounds;            /* [windows + 1] in merged tokens */
    struct kv_sequence sequence; /* of keys: the picture's own array */
};

/* Pieces of the STEP_TABLES memory; the load's scratch lies in the same place before. */
struct step_tables {
    int32_t *ids;                  /* [TOKENS] */
    int32_t (*positions)[3];       /* [TOKENS or TILE_ROWS, the larger] */
    const void **features;         /* [TOKENS] */
    struct kv_row *places;         /* as positions */
    struct kv_sequence *sequences; /* [sequences_max] */
    uint32_t *order, *bounds;      /* of the picture: these live across text steps */
};

struct model {
    const struct checkpoint *checkpoint;
    struct model_limits limits;
    struct model_memory memory;
    struct team *team;

    uint32_t dims[DIM_COUNT]; /* the checkpoint's and the limits' */
    enum kernel_type act;
    struct weight_bank bank;
    struct step_plan plan;
    struct step_tables tables;
    struct model_sizes sizes;

    uint8_t text_axis[HEAD_DIM_MAX / 2], vision_axis[HEAD_DIM_MAX / 2];
    float text_frequency[HEAD_DIM_MAX / 2], vision_frequency[HEAD_DIM_MAX / 2];
    float normalize[3][256];

    struct step_frame text, vision;
    struct vision_work work;

    model_probe *probe; /* tests look at buffers after every step row */
    void *probe_ctx;
};

/* Runs the rows of a table for one layer or block. `picked`: for RMSNORM from TOKENS to LOGIT_ROWS. */
void run_steps(struct model *model, struct step_frame *frame, const struct step_row *steps, uint32_t layer,
               const uint32_t *picked);

/* Frames with the limits as row counts and no memory. */
void run_measure_frames(struct model *model);

/* Sets up the tower's part of `model`: rotary, pixel table, store. */
void tower_open(struct model *model);

/* Bytes of the tower's keys and values. */
uint64_t tower_store_bytes(const struct model *model);

#endif
