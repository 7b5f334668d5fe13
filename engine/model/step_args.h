/* step_args: from a row of a step table to the operands of a launch. */
#ifndef MODEL_STEP_ARGS_H
#define MODEL_STEP_ARGS_H

#include "engine/model/plan_steps.h"
#include "engine/model/weights.h"

#include <stdint.h>

/* Everything that a row's symbols stand for at the moment. While measuring, memory and data pointers are NULL and the
 * row counts are the limits. */
struct step_frame {
    const struct arch *arch;
    const uint32_t *dims;
    const struct weight_bank *bank;
    const struct step_plan *plan;
    const struct head_dims *heads;
    enum kernel_type act;
    float eps;

    unsigned char *memory; /* of the text's activations, or of the tower's */
    float *logits;
    uint32_t rows[DIM_COUNT]; /* TOKENS, LOGIT_ROWS, PATCHES, TILE_ROWS, TILE_GROUPS: rows now */
    uint32_t first_patch;     /* where the tile begins in STATE buffers */

    /* Rows and their places. */
    const int32_t *ids;
    const void *const *features;
    const int32_t (*positions)[3];
    const uint8_t *axis;
    const float *frequency;
    struct kv_store store; /* of the layer */
    const struct kv_row *places;
    const struct kv_sequence *sequences;

    /* A picture. */
    const uint8_t *rgb;
    const float (*normalize)[256];
    const uint32_t *order;
    uint32_t grid_h, grid_w;
    void *const *pages;
};

/* The operands of one launch; `args` may point into the rest. */
struct step_call {
    union {
        struct embed_args embed;
        struct rmsnorm_args rmsnorm;
        struct linear_args linear;
        struct linear_swiglu_args linear_swiglu;
        struct gelu_erf_args gelu_erf;
        struct rotary_table_args rotary_table;
        struct rotary_args rotary;
        struct kv_write_args kv_write;
        struct attention_args attention;
        struct patchify_args patchify;
        struct scatter_rows_args scatter_rows;
    } args;
    struct packed_matrix matrix[2];
};

/* Fills `call` for `row` in layer (or block) `layer`. */
void step_args_fill(const struct step_frame *frame, const struct step_row *row, uint32_t layer, struct step_call *call);

/* The first byte of a buffer's row 0 (of the tile's first row, for STATE). */
void *step_args_address(const struct step_frame *frame, enum buffer buffer);

#endif
