/* model: the types of the tables that describe an architecture. No code.
 *
 * Always true: dimensions are symbols. Two dimensions of equal value stay different things (Q_OUT and HIDDEN are both
 * 3584 in the 7B), so that a swapped weight is found by name and not by luck.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "kernels/op.h"

#include <stdint.h>

/* V_: the vision tower. The last group is set by the flags (struct model_limits), the others by the checkpoint. */
enum dim {
    NO_DIM,
    LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD_DIM, HALF_DIM, Q_OUT, KV_OUT, QK_OUT, QKV_OUT, FFN, VOCAB,
    V_BLOCKS, V_HIDDEN, V_HEADS, V_HEAD_DIM, V_HALF_DIM, V_KV, V_QKV, V_FFN, V_OUT,
    V_CHANNELS, V_FRAMES, V_PATCH, V_PATCH_IN, /* pixels of a patch: channels * frames * patch^2 */
    V_MERGE, V_GROUP, V_MERGED,                /* patches of a merged token: merge^2; their width together */
    V_WINDOW,                                  /* pixels an edge of an attention window */
    TOKENS,      /* rows of a text step */
    LOGIT_ROWS,  /* rows of a text step that go through the head */
    PATCHES,     /* of the largest picture */
    TILE_ROWS,   /* patches that one unit of vision work handles; a multiple of V_GROUP */
    TILE_GROUPS, /* merged tokens of it */
    DIM_COUNT,
};

/* A dimension read from config.json; or else a product, a sum or a quotient of others. */
struct dim_row {
    enum dim dim;
    const char *key;          /* of the text model, or "vision_config.…" */
    const char *alias;        /* another spelling of the key */
    uint32_t fallback;        /* 0: the key is required; otherwise the published default, logged when it is used */
    uint32_t factor;          /* of the product; 0 counts as 1 */
    enum dim product_of[4];
    enum dim sum_of[2];
    enum dim quotient_of[2];  /* must divide */
    uint32_t divisor;         /* in place of quotient_of[1] */
};

enum repeat { ONCE, EACH_LAYER, EACH_BLOCK };

/* A weight as the steps see it: [out][in], packed in the activation type; or a vector [out] of f32 with in = NO_DIM. */
struct weight_row {
    uint8_t slot;             /* the arch's own enum; 0 ends the table */
    enum repeat repeat;
    enum dim out, in;
    uint8_t tied_to;          /* the slot that stands in when the head is tied; 0: never */
};

enum presence { REQUIRED, ABSENT_IF_TIED };

/* A tensor of the files, and the rows of the weight (or of two weights) that it fills. */
struct tensor_row {
    const char *name;         /* as published; %d is the layer or block; NULL ends the table */
    enum repeat repeat;
    enum dim shape[5];        /* [0] is `out`; all the others together are `in` */
    uint8_t slot;
    enum dim at;              /* its first row there; NO_DIM: 0 */
    uint8_t rest_slot;        /* where the rows behind the first `split` go; 0: there are none */
    enum dim split;
    enum presence presence;
};

/* Other tools write other prefixes. */
struct prefix_row {
    const char *other, *published;
};

/* Activations. V…: the vision tower's. */
enum buffer {
    NO_BUFFER,
    X, NORMED, QKV, Q, K, V, QK, COS, SIN, ATTENDED, GATED, PICKED, LOGITS,
    VX, VPIXELS, VNORMED, VGROUPED, VQ, VKV, VK, VV, VCOS, VSIN, VATTENDED, VGATED, VMIXED, VACTIVE, VFEATURES,
    BUFFER_COUNT,
};

enum buffer_kind {
    ACT,      /* of the activation type; lives from its first step to its last */
    F32,      /* the same in float32 */
    STATE,    /* float32, kept from unit to unit of a picture: [PATCHES][…] */
    EXTERNAL, /* float32, the caller's */
    VIEW,     /* columns of another buffer, or the same bytes in another shape */
};

struct buffer_row {
    enum buffer buffer;       /* NO_BUFFER ends the table */
    enum buffer_kind kind;
    enum dim shape[2];        /* rows, columns */
    enum buffer view_of;      /* VIEW */
    enum dim at;              /* first column there; NO_DIM: 0 */
};

/* One launch. Operands by op:
 *   EMBED          out = rows of weight[0], or features
 *   RMSNORM        out = norm(in[0]) * weight[0]; with LOGIT_ROWS from TOKENS: of the picked rows
 *   LINEAR, _ADD   out (+)= weight[0] in[0] + bias[0]
 *   LINEAR_SWIGLU  out = silu(weight[0] in[0] + bias[0]) * (weight[1] in[0] + bias[1])
 *   GELU_ERF       out = gelu(in[0])
 *   ROTARY_TABLE   out = cos, in[0] = sin: both are written
 *   ROTARY         out is rotated in place by in[0] = cos, in[1] = sin
 *   KV_WRITE       in[0] = keys and in[1] = values go to the layer's store
 *   ATTENTION      out = attention of the queries in[0] over the store
 *   PATCHIFY       out = patch rows of the picture
 *   SCATTER_ROWS   in[0] goes to the feature pages
 */
struct step_row {
    enum op op;               /* OP_COUNT ends the table */
    enum buffer out, in[2];
    uint8_t weight[2], bias[2]; /* slots; 0: none */
};

#define STEPS_END {OP_COUNT, NO_BUFFER, {NO_BUFFER}, {0}, {0}}

struct head_dims {
    enum dim heads, kv_heads, head_dim, half_dim, q_out, kv_out;
};

struct arch {
    const char *hf_name;      /* config.json "architectures" */
    const struct dim_row *dims;
    const struct weight_row *weights;
    const struct tensor_row *tensors;
    const struct prefix_row *prefixes;
    const char *const *ignored_suffixes; /* of tensors that the reference ignores, too */
    const char *const *image_processors; /* names that preprocessor_config.json may give; NULL-ended */
    uint64_t full_blocks;     /* vision blocks with full attention, where the config does not say: published default */
    const struct buffer_row *buffers;
    struct head_dims text_heads, vision_heads;
    /* A text step: begin, every layer, end. */
    const struct step_row *begin_steps, *layer_steps, *end_steps;
    /* A picture, for every tile of rows: patches; for every block keys and, when all keys are there, rest; merge. */
    const struct step_row *patch_steps, *keys_steps, *rest_steps, *merge_steps;
};

#endif
