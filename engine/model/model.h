/* model: the types of the tables that describe an architecture. No code.
 *
 * Always true: dimensions are symbols. Two dimensions of equal value stay different things (Q_OUT and HIDDEN are both
 * 3584 in the 7B), so that a swapped weight is found by name and not by luck.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

/* V_: the vision tower. The last group is set by the flags (struct model_limits), the others by the checkpoint. */
enum dim {
    NO_DIM,
    LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD_DIM, Q_OUT, KV_OUT, FFN, VOCAB,
    V_BLOCKS, V_HIDDEN, V_HEADS, V_HEAD_DIM, V_QKV, V_FFN, V_OUT,
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

/* A dimension read from config.json, or the product of up to four others, or the quotient of two. */
struct dim_row {
    enum dim dim;
    const char *key;          /* under the text config, or "vision_config.…" */
    const char *alias;        /* another spelling of the key */
    uint32_t fallback;        /* 0: the key is required; otherwise the published default, logged when it is used */
    uint32_t factor;          /* of the product; 0 counts as 1 */
    enum dim product_of[4];
    enum dim quotient_of[2];  /* exact division is required unless the key is there */
};

enum repeat { ONCE, EACH_LAYER, EACH_BLOCK };
enum presence { REQUIRED, ABSENT_IF_TIED };
enum weight_kind {
    VECTOR,    /* kept as float32 */
    MATRIX,    /* [out, in]: packed for the linear op */
    TABLE,     /* rows that are looked up; also packed if the head is tied to it */
};

struct weight_row {
    uint8_t slot;             /* the arch's own enum; 0: none */
    const char *name;         /* tensor name as published; %d is the layer or block; NULL ends the table */
    enum repeat repeat;
    enum weight_kind kind;
    enum dim shape[5];        /* as in the file; [0] is `out` */
    enum dim in;              /* NO_DIM: shape[1]; otherwise the product of shape[1..] under its own name */
    enum presence presence;
    uint8_t tied_to;          /* ABSENT_IF_TIED: the slot that stands in */
};

/* Other tools write other prefixes. */
struct prefix_row {
    const char *other, *published;
};

struct arch {
    const char *hf_name;      /* config.json "architectures" */
    const struct dim_row *dims;
    const struct weight_row *weights;
    const struct prefix_row *prefixes;
    const char *const *ignored_suffixes; /* of tensors that the reference ignores, too */
};

#endif
